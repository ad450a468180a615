package httpadapter_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

// target is how the tests name a thing in a call of each route: in its path, in its query or in its
// body.
type target struct {
	query, body string // with %s for the id
	kind        string // of the id: task, trip, driver; "" when the route names nothing
	made        bool   // the id may be one that does not exist yet: the call makes it
	filter      bool   // an unknown id gives an empty list
	other       string // the body when nothing is named
	stream      bool   // the answer is one
}

// targets says for each route that takes a key or token what it names. A route that is missing here
// fails the test.
var targets = map[string][]target{
	"POST /v1/task/create": {{other: `{"type":2,"drop":{"address":"x"}}`}},
	"POST /v1/task/batch":  {{other: `{"tasks":[]}`}},
	"GET /v1/task/list":    {{query: "driver_id=%s", kind: "driver", filter: true}},
	"GET /v1/task/counts":  {{}},
	"GET /v1/task":         {{query: "task_id=%s", kind: "task"}},
	"POST /v1/task/assign": {
		{body: `{"task_id":%s,"driver_id":"ravi"}`, kind: "task"},
		{body: `{"task_id":"TASK","driver_id":%s}`, kind: "driver"},
	},
	"POST /v1/task/unassign": {{body: `{"task_id":%s}`, kind: "task"}},
	"POST /v1/task/update":   {{body: `{"task_id":%s,"notes":"n"}`, kind: "task"}},
	"POST /v1/task/cancel":   {{body: `{"task_id":%s}`, kind: "task"}},
	"POST /v1/task/retry":    {{body: `{"task_id":%s}`, kind: "task"}},
	"POST /v1/task/complete": {{body: `{"task_id":%s}`, kind: "task"}},
	"POST /v1/task/reopen":   {{body: `{"task_id":%s}`, kind: "task"}},
	"POST /v1/geocode":       {{other: `{"address":"Anna Salai 12"}`}},
	"POST /v1/task/settle":   {{body: `{"task_id":%s}`, kind: "task"}},
	"GET /v1/task/proof": {
		{query: "task_id=%s&id=PROOF", kind: "task"}, {query: "task_id=TASK&id=%s", kind: "proof"},
	},
	"GET /v1/task/candidates":            {{query: "task_id=%s", kind: "task"}},
	"GET /v1/task/trackingurl/{task_id}": {{kind: "task"}},
	"POST /v1/task/trackingurl/revoke":   {{body: `{"task_id":%s}`, kind: "task"}},

	"GET /v1/trips": {
		{query: "operator_id=%s", kind: "driver", filter: true},
		{query: "tracking_id=%s", kind: "tracking", filter: true},
	},
	"GET /v1/trips/{trip_id}":             {{kind: "trip"}},
	"GET /v1/triphistory/{trip_id}":       {{kind: "trip"}},
	"GET /v1/trips/trackingurl/{trip_id}": {{kind: "trip"}},
	"POST /v1/trips/trackingurl/revoke":   {{body: `{"trip_id":%s}`, kind: "trip"}},
	"POST /v1/assign_trip": {
		{body: `{"tracking_id":"T9","user_id":%s}`, kind: "driver"},
		{query: "tracking_id=T9&user_id=%s", kind: "driver"},
	},

	"POST /v1/task/delete":       {{body: `{"task_id":%s}`, kind: "task"}},
	"POST /v1/contact/erase":     {{other: `{"mobile":"+49 170 1234"}`}},
	"GET /v1/users/drivers":      {{}},
	"GET /v1/users/driver":       {{query: "driver_id=%s", kind: "driver"}},
	"POST /v1/users/driver":      {{body: `{"driver_id":%s,"name":"N"}`, kind: "driver", made: true}},
	"GET /v1/users/driver/route": {{query: "driver_id=%s", kind: "driver"}},
	"POST /v1/users/driver/route": {
		{body: `{"driver_id":%s,"stops":[{"task_id":"TASK","leg":"pickup"},{"task_id":"TASK","leg":"drop"}]}`, kind: "driver"},
	},
	"POST /v1/users/driver/revoke": {{body: `{"driver_id":%s}`, kind: "driver"}},
	"POST /v1/users/driver/delete": {{body: `{"driver_id":%s}`, kind: "driver"}},
	"POST /v1/users/driver/handover": {
		{body: `{"from":%s,"to":"meena"}`, kind: "driver"},
		{body: `{"from":"meena","to":%s}`, kind: "driver"},
		{body: `{"from":"ravi","to":"meena","task_ids":["TASK",%s]}`, kind: "task"},
	},
	"POST /v1/invite_user": {{body: `{"user_id":%s}`, kind: "driver", made: true}},
	"GET /v1/session":      {{}},
	"GET /v1/events": {{
		query: "task_id=%s", kind: "task", filter: true,
	}, {query: "trip_id=%s", kind: "trip", filter: true}, {
		query: "driver_id=%s", kind: "driver", filter: true,
	},
		{query: "after=%s", kind: "event"}},
	"POST /v1/events/replay": {{other: `{"ids":["x"]}`}}, // whose they are: TestDeadLetters
	"GET /v1/live":           {{stream: true}},

	"GET /v1/driver/me":                      {{}},
	"POST /v1/driver/availability":           {{other: `{"availability":true}`}},
	"POST /v1/driver/fixes":                  {{other: `{"fixes":[]}`}},
	"GET /v1/driver/tasks":                   {{}},
	"POST /v1/driver/tasks/{task_id}/start":  {{kind: "task"}},
	"POST /v1/driver/tasks/{task_id}/arrive": {{kind: "task"}},
	"POST /v1/driver/tasks/{task_id}/stuck":  {{kind: "task", other: `{"step":"complete"}`}},
	"POST /v1/driver/tasks/{task_id}/settle": {{kind: "task"}},
	"GET /v1/driver/route":                   {{}},
	"POST /v1/driver/route": {{
		other: `{"stops":[{"task_id":"TASK","leg":"pickup"},{"task_id":"TASK","leg":"drop"}]}`,
	}},
	"POST /v1/driver/tasks/{task_id}/pickup":      {{kind: "task"}},
	"POST /v1/driver/tasks/{task_id}/complete":    {{kind: "task"}},
	"POST /v1/driver/tasks/{task_id}/decline":     {{kind: "task"}},
	"POST /v1/driver/tasks/{task_id}/undo":        {{kind: "task"}},
	"PUT /v1/driver/tasks/{task_id}/proof/{kind}": {{kind: "task", other: pictureOf(1)}},
	"GET /v1/driver/proof": {
		{query: "task_id=%s&id=PROOF", kind: "task"}, {query: "task_id=TASK&id=%s", kind: "proof"},
	},
	"GET /v1/driver/trips":                    {{query: "tracking_id=%s", kind: "tracking", filter: true}},
	"POST /v1/driver/trips":                   {{body: `{"tracking_id":%s}`, kind: "tracking", made: true}},
	"POST /v1/driver/trips/{trip_id}/stop":    {{kind: "trip"}},
	"POST /v1/driver/trips/{trip_id}/discard": {{kind: "trip"}},
	"GET /v1/driver/requests":                 {{}},
	"GET /v1/driver/notifications":            {{}},
	"GET /v1/driver/phone":                    {{}},
	"POST /v1/driver/push":                    {{other: subscription("https://push.example/1")}},
	"POST /v1/driver/push/delete":             {{other: `{"endpoint":"https://push.example/1"}`}},
}

// world is a server where two applications and two drivers of the first one each have one of
// everything.
type world struct {
	*server
	token               string            // of the driver ravi of application a
	own, foreign, other map[string]string // ids by kind: of ravi of a, of application b, of another driver of a
}

func newWorld(t *testing.T) world {
	w := world{server: newServer(t, func(o *tracking.Options, _ *httpadapter.Options) { o.Geocoder = oneAddress{} })}
	one := func(key, driver string) (ids map[string]string, token string) {
		call := func(target, body string) map[string]any { return w.data(w.do("POST", withKey(target, key), body)) }
		link := text(call("/v1/invite_user", fmt.Sprintf(`{"user_id":%q}`, driver)), "url")
		token = text(w.data(w.do("POST", "/v1/driver/join",
			fmt.Sprintf(`{"invite":%q}`, link[strings.LastIndex(link, "/")+1:]))), "token")
		task := text(call("/v1/task/create",
			`{"type":3,"pickup":{"address":"p"},"drop":{"lnglat":[1,2],"address":"d"},"proof":["pin"]}`),
			"task", "task_id")
		call("/v1/task/assign", fmt.Sprintf(`{"task_id":%q,"driver_id":%q}`, task, driver))
		trip := text(w.data(w.asDriver(token, "POST", "/v1/driver/trips",
			fmt.Sprintf(`{"tracking_id":"of %s %s","lnglat":[1,2]}`, key, driver))), "trip", "_id")
		w.data(w.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/start", ""))
		given := w.data(w.asDriver(token, "PUT", "/v1/driver/tasks/"+task+"/proof/photo", pictureOf(2)))
		event := text(w.data(w.do("GET", withKey("/v1/events?limit=1", key), "")), "events", 0, "id")
		return map[string]string{
			"proof": text(given, "proof", "id"),
			"task":  task, "trip": trip, "driver": driver, "event": event, "tracking": "of " + key + " " + driver,
		}, token
	}
	w.own, w.token = one("key-a", "ravi")
	w.other, _ = one("key-a", "meena")
	w.foreign, _ = one("key-b", "foreign")
	return w
}

// oneAddress is a Geocoder that knows one address, and no other.
type oneAddress struct{}

func (oneAddress) Point(_ context.Context, address string) (tracking.LngLat, error) {
	if address == "Anna Salai 12" {
		return tracking.LngLat{Lng: 80.25, Lat: 13.06}, nil
	}
	return tracking.LngLat{}, tracking.ErrNotFound
}

func (oneAddress) Address(context.Context, tracking.LngLat) (string, error) {
	return "", tracking.ErrNotFound
}

// call fills an id in.
func (w world) call(method, pattern string, tg target, id, key string) reply {
	w.Helper()
	path := pattern
	for _, name := range []string{"{task_id}", "{trip_id}"} {
		path = strings.Replace(path, name, escape(id), 1)
	}
	path = strings.Replace(path, "{kind}", "photo", 1)
	if tg.query != "" {
		own := strings.NewReplacer("TASK", w.own["task"], "PROOF", w.own["proof"]).Replace(tg.query)
		path += "?" + fmt.Sprintf(own, escape(id))
	}
	body := strings.ReplaceAll(tg.other, "TASK", w.own["task"])
	if tg.body != "" {
		body = strings.Replace(fmt.Sprintf(tg.body, quote(id)), "TASK", w.own["task"], -1)
	}
	if strings.HasPrefix(pattern, "/v1/driver/") {
		r := w.asDriver(w.token, method, path, body)
		if strings.Contains(r.body, `"pin":"`) { // which the customer is to tell the driver
			w.Errorf("%s %s sends a driver the PIN: %s", method, pattern, r.body)
		}
		return r
	}
	return w.do(method, withKey(path, key), body)
}

// TestEveryRouteAndID tries, for each route of the table and each id that it takes, the caller's
// own, another tenant's, another driver's, random and malformed ones.
func TestEveryRouteAndID(t *testing.T) {
	routes := newServer(t).h.Routes()
	for _, rt := range routes {
		if rt.Who == "public" {
			continue
		}
		name := rt.Method + " " + rt.Pattern
		list, ok := targets[name]
		if !ok {
			t.Errorf("%s: the test does not know what this route names", name)
			continue
		}
		for _, tg := range list {
			t.Run(name+" "+tg.query+tg.body, func(t *testing.T) {
				w := newWorld(t)
				switch {
				case tg.stream:
					r := w.call(rt.Method, rt.Pattern, tg, "", "key-a")
					if r.status != 200 || !strings.Contains(r.body, w.own["task"]) {
						w.Errorf("%d %s", r.status, r.body)
					}
					for kind, id := range w.foreign {
						if strings.Contains(r.body, `"`+id+`"`) {
							w.Errorf("the %s of another application: %s", kind, r.body)
						}
					}
				case tg.kind == "":
					w.check(name, w.call(rt.Method, rt.Pattern, tg, "", "key-a"), 200, "")
				default:
					w.tryIDs(rt.Method, rt.Pattern, tg)
				}
				if strings.Contains(rt.Pattern, "/driver/") && rt.Who == "driver" {
					path := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(rt.Pattern, "x")
					w.check("no token", w.do(rt.Method, path, tg.other), 401, "")
				} else {
					w.check("no key", w.call(rt.Method, rt.Pattern, tg, "x", ""), 401, "")
				}
			})
		}
	}
	for name := range targets {
		if !slices.ContainsFunc(routes, func(rt routeInfo) bool { return rt.Method+" "+rt.Pattern == name }) {
			t.Errorf("%s: there is no such route", name)
		}
	}
}

func (w world) tryIDs(method, pattern string, tg target) {
	w.Helper()
	before := w.snapshot()
	unknown := map[string]string{
		"random":  "01jfoo0000000000000000zzzz",
		"foreign": w.foreign[tg.kind],
		"quoted":  `' OR 1=1--`,
		"NUL":     "\x00",
		"long":    strings.Repeat("x", 2000),
		"slash":   "a/b",
		"other row": w.own[map[string]string{
			"task": "trip", "trip": "task", "driver": "task", "tracking": "driver", "event": "task", "proof": "task",
		}[tg.kind]],
	}
	if strings.HasPrefix(pattern, "/v1/driver/") && !tg.filter {
		unknown["another driver's"] = w.other[tg.kind]
	}
	if tg.made {
		// What makes a thing takes a foreign id as a new one of its own, and refuses a malformed
		// one.
		for _, what := range []string{"NUL", "long"} {
			if r := w.call(method, pattern, tg, unknown[what], "key-a"); r.status != 400 {
				w.Errorf("%s: %d %s", what, r.status, r.body)
			}
		}
		w.check("foreign", w.call(method, pattern, tg, w.foreign[tg.kind], "key-a"), 200, "")
		w.check("own", w.call(method, pattern, tg, w.own[tg.kind], "key-a"), 200, "")
		if after := w.snapshot(); after != before {
			w.Errorf("application b was touched: %s, was %s", after, before)
		}
		return
	}
	want := w.call(method, pattern, tg, unknown["random"], "key-a")
	status := 404
	if tg.filter {
		status = 200
	}
	for what, id := range unknown {
		r := w.call(method, pattern, tg, id, "key-a")
		if r.status != status || r.sameButID() != want.sameButID() {
			w.Errorf("%s: %d %s, want %s", what, r.status, r.body, want.body)
		}
	}
	if after := w.snapshot(); after != before {
		w.Errorf("application b was touched: %s, was %s", after, before)
	}
	r := w.call(method, pattern, tg, w.own[tg.kind], "key-a")
	if r.status != 200 && r.status != 409 { // 409: his, but not in the right state
		w.Errorf("own: %d %s", r.status, r.body)
	}
	if tg.filter && r.body == want.body {
		w.Errorf("own: nothing found: %s", r.body)
	}
}

// snapshot is all of application b.
func (w world) snapshot() string {
	w.Helper()
	var all string
	for _, path := range []string{"/v1/task/list", "/v1/trips", "/v1/users/drivers", "/v1/events"} {
		all += w.do("GET", withKey(path, "key-b"), "").body
	}
	return all
}
