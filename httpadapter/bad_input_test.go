package httpadapter_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// bad is a call and what is to be answered. A target without apikey gets application a's.
type bad struct {
	method, target, body string
	status               int
	field                string
}

var codes = map[int]string{
	400: "invalid", 401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed", 409: "conflict",
	413: "too_large", 414: "uri_too_long", 415: "unsupported_media_type", 429: "rate_limited", 500: "internal",
	503: "unavailable",
}

// check asserts what every answer under /v1 has.
func (s *server) check(what string, r reply, status int, field string) {
	s.Helper()
	if len(what) > 200 {
		what = what[:200] + "…"
	}
	if r.status != status {
		s.Errorf("%s: %d, want %d: %s", what, r.status, status, r.body)
		return
	}
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
		"Content-Type": "application/json; charset=utf-8",
	} {
		if got := r.header.Get(name); got != want {
			s.Errorf("%s: %s is %q", what, name, got)
		}
	}
	if status != 200 {
		if code, f := r.failure(); code != codes[status] || f != field {
			s.Errorf("%s: code %q, field %q, want %q, %q: %s", what, code, f, codes[status], field, r.body)
		}
	}
}

func (s *server) checkAll(rows []bad, headers ...string) {
	s.Helper()
	for _, b := range rows {
		target := b.target
		if !strings.Contains(strings.ToLower(target), "apikey=") && !strings.HasPrefix(target, "/v1/driver/") {
			target = withKey(target, "key-a")
		}
		s.check(b.method+" "+b.target+" "+b.body, s.do(b.method, target, b.body, headers...), b.status, b.field)
	}
}

func TestKeys(t *testing.T) {
	s := newServer(t)
	key, secret, err := s.svc.CreateKey(t.Context(), "first")
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := s.svc.CreateKey(t.Context(), "second")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{secret, other, "key-a"} { // both keys of a rotation
		s.check("key", s.do("GET", "/v1/task/list?apikey="+k, ""), 200, "")
		s.check("X-Api-Key", s.do("GET", "/v1/task/list", "", "X-Api-Key: "+k), 200, "")
		s.check("both", s.do("GET", "/v1/task/list?apikey="+k, "", "X-Api-Key: "+k), 200, "")
	}
	if err := s.svc.RevokeKey(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	want := s.do("GET", "/v1/task/list", "")
	for _, target := range []string{
		"/v1/task/list", "/v1/task/list?apikey=", "/v1/task/list?apikey=nobody", "/v1/task/list?APIKEY=key-a",
		"/v1/task/list?apikey=" + secret, "/v1/task/list?apikey=%00", "/v1/task/list?apikey=%FF",
	} {
		r := s.do("GET", target, "")
		s.check(target, r, 401, "")
		if r.sameButID() != want.sameButID() {
			t.Errorf("%s: %s", target, r.body)
		}
	}
	s.check("two that differ", s.do("GET", "/v1/task/list?apikey=key-a", "", "X-Api-Key: key-b"), 400, "apikey")
	s.check("two headers that differ", s.do("GET", "/v1/task/list", "", "X-Api-Key: key-b", "X-Api-Key: key-a"), 400,
		"apikey")
	s.check("driver's token as key", s.do("GET", "/v1/task/list", "", "Authorization: Bearer key-a"), 401, "")
	s.check("Bearer ignored", s.do("GET", "/v1/task/list?apikey=key-a", "", "Authorization: Bearer nonsense"), 200, "")
	s.check("the rest unchanged", s.do("GET", "/v1/task/list?apikey="+other, ""), 200, "")
}

func TestDriverTokens(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	s.check("apikey ignored", s.do("GET", "/v1/driver/me?apikey=nonsense", "", "Authorization: Bearer "+token), 200, "")
	s.check("scheme in another case", s.do("GET", "/v1/driver/me", "", "Authorization: bearer "+token), 200, "")
	for _, hd := range []string{
		"X: y", "Authorization: Bearer", "Authorization: Bearer nobody", "Authorization: " + token,
		"Authorization: Basic " + token,
	} {
		r := s.do("GET", "/v1/driver/me?apikey=key-a", "", hd)
		s.check(hd, r, 401, "")
		if r.header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: WWW-Authenticate is %q", hd, r.header.Get("WWW-Authenticate"))
		}
	}
	s.data(s.app("POST", "/v1/users/driver/revoke", `{"driver_id":"ravi"}`))
	s.check("revoked", s.asDriver(token, "GET", "/v1/driver/me", ""), 401, "")
	if again := s.newDriver("ravi"); again == token {
		t.Error("joining again gives the old token")
	}
}

func TestPathsAndMethods(t *testing.T) {
	s := newServer(t)
	for _, target := range []string{
		"/", "/v1", "/v1/", "/v1/task/", "/V1/task", "/v1/Task", "/v1/nothing", "/v1/trips/", "/v1/trips/a/b",
		"//v1/task", "/v1//task", "/v1/./task", "/v1/x/../task", "/v1/task%2Flist", "/healthz",
		"/v1/driver/tasks//start",
	} {
		s.check(target, s.do("GET", withKey(target, "key-a"), ""), 404, "")
	}
	for _, c := range []struct{ method, target, allow string }{
		{"POST", "/v1/task", "GET, HEAD, OPTIONS"},
		{"GET", "/v1/task/create", "OPTIONS, POST"},
		{"TRACE", "/v1/task", "GET, HEAD, OPTIONS"},
		{"BREW", "/v1/task", "GET, HEAD, OPTIONS"},
		{"DELETE", "/v1/users/driver", "GET, HEAD, OPTIONS, POST"},
		{"PUT", "/v1/driver/trips", "GET, HEAD, OPTIONS, POST"},
		{"POST", "/track/x", "GET, HEAD, OPTIONS"},
	} {
		r := s.do(c.method, c.target, "") // before the key is looked at
		s.check(c.method+" "+c.target, r, 405, "")
		if r.header.Get("Allow") != c.allow {
			t.Errorf("%s %s: Allow is %q, want %q", c.method, c.target, r.header.Get("Allow"), c.allow)
		}
		if r = s.do("OPTIONS", c.target, ""); r.status != 204 || r.header.Get("Allow") != c.allow || r.body != "" ||
			r.header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("OPTIONS %s: %d, %v", c.target, r.status, r.header)
		}
	}

	get, head := s.app("GET", "/v1/task/list", ""), s.app("HEAD", "/v1/task/list", "")
	if head.status != 200 || head.body != "" || head.header.Get("Content-Length") != fmt.Sprint(len(get.body)) ||
		head.header.Get("Content-Type") != get.header.Get("Content-Type") {
		t.Errorf("HEAD: %d, %v", head.status, head.header)
	}
	if r := s.do("HEAD", "/v1/task/list", ""); r.status != 401 || r.body != "" {
		t.Errorf("HEAD without key: %d", r.status)
	}
}

func TestOrderOfChecks(t *testing.T) {
	s := newServer(t)
	s.checkAll([]bad{
		{"GET", "/v1/nothing?a=%zz&apikey=", "", 404, ""},
		{"DELETE", "/v1/task?a=%zz&apikey=", "", 405, ""},
		{"POST", "/v1/task/create?a=%zz&apikey=", "{", 400, ""},
		{"POST", "/v1/task/create?apikey=&a=" + strings.Repeat("x", 8<<10), "{", 414, ""},
		{"POST", "/v1/task/create?apikey=", "{", 401, ""},
		{"GET", "/v1/task/list?page=0&apikey=", "", 401, ""},
	})
}

func TestQueries(t *testing.T) {
	s := newServer(t)
	s.checkAll([]bad{
		{"GET", "/v1/task/list?apikey=key-a&apikey=bad", "", 400, ""},
		{"GET", "/v1/task/list?apikey=key-a&apikey=key-a", "", 400, ""},
		{"GET", "/v1/task/list?x=1&x=1", "", 400, ""},
		{"GET", "/v1/task/list?x=%zz", "", 400, ""},
		{"GET", "/v1/task/list?a;b", "", 400, ""},
		{"GET", "/v1/task/list?" + strings.Repeat("x", 8<<10+1-len("&apikey=key-a")), "", 414, ""},
		{"GET", "/v1/task/list?" + strings.Repeat("x", 8<<10-len("&apikey=key-a")), "", 200, ""},
		{"GET", "/v1/task/list?unknown=&extra=1&PAGE=0", "", 200, ""},
	})
	for _, list := range []string{"/v1/task/list", "/v1/trips", "/v1/users/drivers"} {
		for _, v := range []string{
			"0", "-1", "abc", "1.5", "", "%2B1", "+1", "01", "1e3", "%EF%BC%91", "99999999999999999999", "0x1", "%201",
		} {
			s.checkAll([]bad{
				{"GET", list + "?page=" + v, "", 400, "page"}, {"GET", list + "?limit=" + v, "", 400, "limit"},
			})
		}
		s.checkAll([]bad{
			{"GET", list + "?limit=1001", "", 400, "limit"},
			{"GET", list + "?limit=1000&page=99999999", "", 200, ""},
			{"GET", list + "?page=9223372036854775807&limit=1000", "", 200, ""},
		})
	}
	for _, v := range []string{
		"foo", "ASSIGNED", "assigned,,completed", "", strings.Repeat(",", 1000), "assigned,", "%20assigned",
	} {
		s.checkAll([]bad{{"GET", "/v1/task/list?status=" + v, "", 400, "status"}})
	}
	for _, v := range []string{"4", "-1", "a", "1,2", "", "01"} {
		s.checkAll([]bad{{"GET", "/v1/trips?status=" + v, "", 400, "status"}})
	}
	for _, v := range []string{"1", "t", "TRUE", "yes", ""} {
		s.checkAll([]bad{{"GET", "/v1/users/drivers?availability=" + v, "", 400, "availability"}})
	}
	for _, v := range []string{"", "1", "1,2,3", "181,0", "0,91", "NaN,0", "a,b", "1;2"} {
		status, field := 400, "position"
		if v == "1;2" {
			field = ""
		}
		s.checkAll([]bad{{"GET", "/v1/users/drivers?position=" + v, "", status, field}})
	}
	var eleven []string
	for i := range 11 {
		eleven = append(eleven, fmt.Sprintf("properties.k%d=v", i))
	}
	s.checkAll([]bad{
		{"GET", "/v1/users/drivers?properties.=x", "", 400, "properties"},
		{"GET", "/v1/users/drivers?properties." + strings.Repeat("k", 65) + "=x", "", 400, "properties"},
		{"GET", "/v1/users/drivers?properties." + strings.Repeat("%C3%BC", 64) + "=x", "", 200, ""},
		{"GET", "/v1/users/drivers?properties.a%00=x", "", 400, "properties"},
		{"GET", "/v1/users/drivers?" + strings.Join(eleven, "&"), "", 400, "properties"},
		{"GET", "/v1/users/drivers?" + strings.Join(eleven[:10], "&"), "", 200, ""},
		{"GET", "/v1/users/drivers?properties.a=x&properties.a=x", "", 400, ""},
		{"GET", "/v1/task/list?status=created,created&driver_id=nobody&order_id=x", "", 200, ""},
		{"GET", "/v1/trips?status=0", "", 200, ""},
		{"GET", "/v1/events?limit=0", "", 400, "limit"},
		{"GET", "/v1/events?task_id=a&trip_id=b", "", 400, "trip_id"},
		{"GET", "/v1/events?after=nonsense", "", 404, "after"},
		{"GET", "/v1/events?dead=false", "", 400, "dead"},
		{"GET", "/v1/events?dead=yes", "", 400, "dead"},
		{"GET", "/v1/events?outbox=hook", "", 400, "outbox"},
		{"GET", "/v1/events?dead=true&outbox=nobody", "", 200, ""},
		{"POST", "/v1/events/replay", `{"outbox":"hook"}`, 400, "ids"},
		{"POST", "/v1/events/replay", `{"ids":[]}`, 400, "ids"},
		{"POST", "/v1/events/replay", `{"ids":[7]}`, 400, "ids"},
		{"POST", "/v1/events/replay", `{"ids":["x"],"outbox":7}`, 400, "outbox"},
		{"POST", "/v1/events/replay", `{"ids":["x"` + strings.Repeat(`,"x"`, 1000) + `]}`, 400, "ids"},
		{"POST", "/v1/events/replay", `{"ids":["x"],"outbox":"nobody"}`, 200, ""},
	})
}

func TestEmptyLists(t *testing.T) {
	s := newServer(t)
	s.newDriver("known")
	for target, want := range map[string]string{
		"/v1/task/list": `{"message":"Task List","success":true,"data":{"has_more":false,"task_list":[]}}`,
		"/v1/trips":     `{"message":"Trips","success":true,"data":{"has_more":false,"trips":[]}}`,
	} {
		name := map[string]string{"/v1/task/list": "driver_id", "/v1/trips": "operator_id"}[target]
		for _, q := range []string{
			"", "?page=99", "?" + name + "=nobody", "?" + name + "=known", "?" + name + "=%00", "?" + name + "=%FF%27",
			"?" + name + "=" + strings.Repeat("x", 4096),
		} {
			if r := s.app("GET", target+q, ""); r.body != want+"\n" {
				t.Errorf("%s%.30s: %s", target, q, r.body)
			}
		}
	}
	want := `{"message":"Drivers","success":true,"data":{"drivers":[],"has_more":false}}` + "\n"
	for _, q := range []string{"?page=99", "?properties.a=b", "?position=1,1&page=9", "?position=0,0"} {
		if r := s.app("GET", "/v1/users/drivers"+q, ""); r.body != want {
			t.Errorf("%s: %s", q, r.body)
		}
	}
	if r := s.do("GET", "/v1/users/drivers?apikey=key-b", ""); r.body != want {
		t.Errorf("another application's: %s", r.body)
	}
}

func TestCreateTaskRefuses(t *testing.T) {
	s := newServer(t)
	const drop = `"type":2,"drop":{"address":"x"}`
	n := func(n int) string { return strings.Repeat("ü", n) }
	rows := []bad{}
	add := func(body, field string) { rows = append(rows, bad{"POST", "/v1/task/create", body, 400, field}) }
	for _, body := range []string{
		"", "[]", `"x"`, "1", "true", "null", "{} x", "{}{}", "{" + drop + "} //c", "{" + drop + ",}", "{'type':2}",
		"\xef\xbb\xbf{" + drop + "}", "\xff\xfe{\x00}\x00", "{" + drop + `,"notes":"` + "\xff" + `"}`,
		"{" + drop + `,"x":01}`, "{" + drop + `,"x":{"a":1,"a":1}}`,
		"{" + drop + `,"x":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + "}",
	} {
		add(body, "")
	}
	for _, v := range []string{"0", "4", "-1", "99999999999999999999", `"1"`, "true", "1.0", "1e0", "null", "[]"} {
		add(`{"type":`+v+`,"drop":{"address":"x"}}`, "type")
	}
	add(`{}`, "type")
	add(`{"type":1,"type":2}`, "type")
	add(`{"Type":2,"drop":{"address":"x"}}`, "type")
	add(`{"type":1}`, "pickup")
	add(`{"type":2}`, "drop")
	add(`{"type":3,"drop":{"address":"x"}}`, "pickup")
	add(`{"type":3,"pickup":{"address":"x"}}`, "drop")
	add(`{"type":1,"pickup":{"address":"x"},"drop":{"address":"x"}}`, "drop")
	add(`{"type":2,"pickup":{"address":"x"},"drop":{"address":"x"}}`, "pickup")
	add(`{"type":1,"pickup":[]}`, "pickup")
	add(`{"type":1,"pickup":"street"}`, "pickup")
	add(`{"type":1,"pickup":null}`, "pickup")
	add(`{"type":2,"drop":{}}`, "drop")
	add(`{"type":2,"drop":{"address":""}}`, "drop")
	for _, v := range []string{
		"[]", "[1]", "[1,2,3]", "{}", `"77,28"`, `["77","28"]`, "[null,13]", "[180.0001,0]", "[0,90.0001]", "[-181,0]",
		"[1e999,0]",
	} {
		add(`{"type":2,"drop":{"address":"x","lnglat":`+v+`}}`, "drop.lnglat")
	}
	add(`{"type":2,"drop":{"lnglat":[NaN,0]}}`, "")
	add(`{"type":2,"drop":{"lnglat":[Infinity,0]}}`, "")
	add(`{"type":2,"drop":{"address":"`+n(1001)+`"}}`, "drop.address")
	add(`{"type":2,"drop":{"address":"x\u0000"}}`, "drop.address")
	add(`{`+drop+`,"auto_assign":"true"}`, "auto_assign")
	add(`{`+drop+`,"auto_assign":1}`, "auto_assign")
	add(`{`+drop+`,"auto_assign":true}`, "drop.lnglat")
	add(`{`+drop+`,"order_id":7}`, "order_id")
	add(`{`+drop+`,"order_id":"`+n(201)+`"}`, "order_id")
	add(`{`+drop+`,"order_id":"a\u0000"}`, "order_id")
	add(`{`+drop+`,"order_id":"a\nb"}`, "order_id")
	add(`{`+drop+`,"order_id":"a\u007f"}`, "order_id")
	add(`{`+drop+`,"notes":"`+n(4001)+`"}`, "notes")
	add(`{`+drop+`,"notes":"\ud800"}`, "notes")
	for _, v := range []string{
		`"2026-02-30T10:00Z"`, `"2026-02-03T24:00Z"`, `"2026-02-03T10:00:60Z"`, `"2026-02-03T10:00z"`,
		`"2026-02-03T10:00Z "`, `"2026-1-1T1:00Z"`, `"2026-02-03T10:00"`, `"2026-02-03"`, "7", `""`,
		`"2026-02-03T10:00:05,123Z"`, `"0001-01-01T00:00Z"`,
	} {
		add(`{`+drop+`,"time":`+v+`}`, "time")
	}
	add(`{`+drop+`,"customer":[]}`, "customer")
	add(`{`+drop+`,"customer":{"mobile":7}}`, "customer.mobile")
	add(`{`+drop+`,"customer":{"mobile":"`+n(33)+`"}}`, "customer.mobile")
	add(`{"type":1,"pickup":{"address":"x","customer":{"mobile":"`+n(33)+`"}}}`, "pickup.customer.mobile")
	add(`{`+drop+`,"customer":{"name":"`+n(201)+`"}}`, "customer.name")
	s.checkAll(rows)
	if got := s.data(s.app("GET", "/v1/task/list", "")); len(got["task_list"].([]any)) != 0 {
		t.Errorf("something was created: %v", got)
	}

	for _, body := range []string{
		`{"type":2,"drop":{"lnglat":[180,90]}}`, `{"type":2,"drop":{"lnglat":[-180,-90]}}`,
		`{"type":2,"drop":{"lnglat":[1,2]},"auto_assign":true}`,
		`{` + drop + `,"auto_assign":null,"pickup":null,"time":null}`,
		`{` + drop + `,"order_id":"#1001"}`, `{` + drop + `,"order_id":"INV/2024/17"}`,
		`{` + drop + `,"order_id":"INV/2024/17"}`,
		`{` + drop + `,"order_id":"` + n(200) + `","notes":"` + n(4000) + `"}`,
		`{` + drop + `,"task_id":"x","status":"completed","tenant_id":2,"__proto__":{},"driver_id":7}`,
		`{` + drop + `,"time":"2024-03-10T08:50+05:30"}`, `{` + drop + `,"time":"2024-03-10T08:50:05.123Z"}`,
	} {
		r := s.app("POST", "/v1/task/create", body)
		s.check(body, r, 200, "")
		if text(s.data(r), "task", "status") != "created" {
			t.Errorf("%s: %s", body, r.body)
		}
	}
	s.check("no content type", s.doRaw("/v1/task/create?apikey=key-a", "{"+drop+"}"), 200, "")
}

// doRaw posts without a content type.
func (s *server) doRaw(target, body string) reply { return s.do("POST", target, body) }

func TestMediaTypes(t *testing.T) {
	s := newServer(t)
	const body = `{"type":2,"drop":{"address":"x"}}`
	for ct, status := range map[string]int{
		"application/json": 200, "application/json; charset=utf-8": 200, `Application/JSON;charset="UTF-8"`: 200,
		"application/json; foo=bar": 200, "": 200,
		"text/plain": 415, "application/x-www-form-urlencoded": 415, "application/json; charset=latin1": 415,
		"application/jsonx": 415, "json": 415, "/": 415, "application/json; charset": 415,
		"application/merge-patch+json": 415,
	} {
		s.check(ct, s.app("POST", "/v1/task/create", body, "Content-Type: "+ct), status, "")
	}
	s.check("gzip", s.app("POST", "/v1/task/create", body, "Content-Encoding: gzip"), 415, "")
	s.check("two types",
		s.app("POST", "/v1/task/create", body, "Content-Type: application/json", "Content-Type: text/plain"), 415, "")
	s.check("empty optional body", s.app("POST", "/v1/invite_user", "", "Content-Type: text/plain"), 200, "")
	s.check("optional body", s.app("POST", "/v1/invite_user", "{}", "Content-Type: text/plain"), 415, "")
	s.check("assign_trip", s.app("POST", "/v1/assign_trip?user_id=x&tracking_id=y", "x", "Content-Type: text/plain"),
		415, "")
}

func TestIdempotencyKey(t *testing.T) {
	s := newServer(t)
	const body = `{"type":2,"drop":{"address":"x"}}`
	first := s.app("POST", "/v1/task/create", body, "Idempotency-Key: k1")
	if again := s.app("POST", "/v1/task/create", body+" ", "Idempotency-Key: k1"); again.body != first.body ||
		again.status != 200 {
		t.Errorf("again: %d %s, want %s", again.status, again.body, first.body)
	}
	s.check("other content",
		s.app("POST", "/v1/task/create", `{"type":2,"drop":{"address":"y"}}`, "Idempotency-Key: k1"), 409,
		"Idempotency-Key")
	for _, hd := range [][]string{
		{"Idempotency-Key: "}, {"Idempotency-Key: a", "Idempotency-Key: b"},
		{"Idempotency-Key: " + strings.Repeat("x", 129)}, {"Idempotency-Key: \xff"},
	} {
		s.check(hd[0], s.app("POST", "/v1/task/create", body, hd...), 400, "Idempotency-Key")
	}
	if other := s.do("POST", "/v1/task/create?apikey=key-b", body, "Idempotency-Key: k1"); other.status != 200 ||
		other.body == first.body {
		t.Errorf("another application: %d %s", other.status, other.body)
	}
}

func TestSingleReads(t *testing.T) {
	s := newServer(t)
	foreign := text(s.data(s.do("POST", "/v1/task/create?apikey=key-b", `{"type":2,"drop":{"address":"x"}}`)), "task",
		"task_id")
	want := s.app("GET", "/v1/task?task_id=nobody", "")
	for _, id := range []string{foreign, "%27%20OR%201=1--", "%00", "%FF", strings.Repeat("x", 4096)} {
		r := s.app("GET", "/v1/task?task_id="+id, "")
		s.check(id, r, 404, "task_id")
		if r.sameButID() != want.sameButID() {
			t.Errorf("%.40s: %s", id, r.body)
		}
	}
	s.checkAll([]bad{
		{"GET", "/v1/task", "", 400, "task_id"},
		{"GET", "/v1/task?task_id=", "", 400, "task_id"},
		{"GET", "/v1/task?task_id=a&task_id=a", "", 400, ""},
		{"GET", "/v1/users/driver", "", 400, "driver_id"},
		{"GET", "/v1/users/driver?driver_id=nobody", "", 404, "driver_id"},
		{"GET", "/v1/trips/nobody", "", 404, "trip_id"},
		{"GET", "/v1/trips/%00", "", 404, "trip_id"},
		{"GET", "/v1/trips/a%2Fb", "", 404, "trip_id"},
		{"GET", "/v1/triphistory/nobody", "", 404, "trip_id"},
		{"GET", "/v1/task/trackingurl/nobody", "", 404, "task_id"},
		{"GET", "/v1/trips/trackingurl/nobody", "", 404, "trip_id"},
	})
}

func TestAssignmentsAndInvites(t *testing.T) {
	s := newServer(t)
	s.newDriver("ravi")
	task := s.newTask("")
	s.data(s.do("POST", "/v1/invite_user?apikey=key-b", `{"user_id":"foreign"}`))
	s.checkAll([]bad{
		{"POST", "/v1/task/assign", `{"task_id":"` + task + `"}`, 400, "driver_id"},
		{"POST", "/v1/task/assign", `{"driver_id":"ravi"}`, 400, "task_id"},
		{"POST", "/v1/task/assign", `{"task_id":"","driver_id":"ravi"}`, 400, "task_id"},
		{"POST", "/v1/task/assign", `{"task_id":7,"driver_id":"ravi"}`, 400, "task_id"},
		{"POST", "/v1/task/assign", `{"task_id":"nobody","driver_id":"ravi"}`, 404, "task_id"},
		{"POST", "/v1/task/assign", `{"task_id":"` + task + `","driver_id":"nobody"}`, 404, "driver_id"},
		{"POST", "/v1/task/assign", `{"task_id":"` + task + `","driver_id":"foreign"}`, 404, "driver_id"},
		{"POST", "/v1/task/assign", `{"task_id":"` + task + `","driver_id":"\u0000"}`, 404, "driver_id"},
		{"POST", "/v1/task/complete", `{"task_id":"` + task + `","outcome":"cancelled"}`, 400, "outcome"},
		{"POST", "/v1/task/complete", `{"task_id":"` + task + `","outcome":""}`, 400, "outcome"},
		{
			"POST", "/v1/task/complete", `{"task_id":"` + task + `","reason":"` + strings.Repeat("x", 201) + `"}`, 400,
			"reason",
		},
		{"POST", "/v1/task/update", `{"task_id":"` + task + `","pickup":{"address":"x"}}`, 400, "pickup"},

		{"POST", "/v1/assign_trip?user_id=ravi&tracking_id=a", `{"tracking_id":"b"}`, 400, "tracking_id"},
		{"POST", "/v1/assign_trip?user_id=ravi&tracking_id=a&desc=x", `{"desc":"y"}`, 400, "desc"},
		{"POST", "/v1/assign_trip?user_id=ravi", "", 400, "tracking_id"},
		{"POST", "/v1/assign_trip", `{"tracking_id":"a"}`, 400, "user_id"},
		{"POST", "/v1/assign_trip", `{"tracking_id":"a","user_id":"foreign"}`, 404, "user_id"},
		{"POST", "/v1/assign_trip", `{"tracking_id":"a","user_id":"nobody"}`, 404, "user_id"},
		{"POST", "/v1/assign_trip", `{"tracking_id":"a","user_id":"\u0000"}`, 404, "user_id"},
		{"POST", "/v1/assign_trip?tracking_id=a&user_id=%FF", "", 404, "user_id"},
		{"POST", "/v1/assign_trip", `{"tracking_id":"a,b","user_id":"ravi"}`, 400, "tracking_id"},
		{"POST", "/v1/assign_trip", `{"tracking_id":" a","user_id":"ravi"}`, 400, "tracking_id"},
		{"POST", "/v1/assign_trip", `{"tracking_id":"a","user_id":"ravi","dest":[181,0]}`, 400, "dest"},
		{
			"POST", "/v1/assign_trip",
			`{"tracking_id":"a","user_id":"ravi","message":"` + strings.Repeat("x", 4001) + `"}`, 400, "message",
		},
		{"POST", "/v1/assign_trip?message=%FF&tracking_id=a&user_id=ravi", "", 400, "message"},
		{"POST", "/v1/assign_trip?message=&tracking_id=a&user_id=ravi", "", 400, "message"},
		{"POST", "/v1/assign_trip?dest=", `{"tracking_id":"a","user_id":"ravi"}`, 400, "dest"},
		{"POST", "/v1/assign_trip?desc&tracking_id=a&user_id=ravi", "", 400, "desc"},
		{"POST", "/v1/assign_trip?tracking_id=&user_id=ravi", "", 400, "tracking_id"},

		{"POST", "/v1/invite_user", `{"email":"a@b@c"}`, 400, "email"},
		{"POST", "/v1/invite_user", `{"email":"` + strings.Repeat("a", 300) + `@b.example"}`, 400, "email"},
		{"POST", "/v1/invite_user", `{"email":"a@b.example\r\nBcc: c@d"}`, 400, "email"},
		{"POST", "/v1/invite_user", `{"user_id":"a\u0000"}`, 400, "user_id"},
		{"POST", "/v1/invite_user", `{"user_id":" a"}`, 400, "user_id"},
		{"POST", "/v1/invite_user", `{"user_id":""}`, 400, "user_id"},
		{"POST", "/v1/invite_user", `{"user_id":"` + strings.Repeat("x", 129) + `"}`, 400, "user_id"},
		{"POST", "/v1/invite_user", `{"user_id":7}`, 400, "user_id"},
		{"POST", "/v1/invite_user", "", 200, ""},

		{"POST", "/v1/users/driver", `{}`, 400, "driver_id"},
		{"POST", "/v1/users/driver", `{"driver_id":"a,b"}`, 400, "driver_id"},
		{"POST", "/v1/users/driver", `{"driver_id":"a","properties":{"k":7}}`, 400, "properties"},
		{"POST", "/v1/users/driver", `{"driver_id":"a","properties":[]}`, 400, "properties"},
		{"POST", "/v1/users/driver", `{"driver_id":"a","availability":"true"}`, 400, "availability"},
		{"POST", "/v1/users/driver", `{"driver_id":"a","lnglat":[0,0]}`, 400, "lnglat"},
		{"POST", "/v1/users/driver/delete", `{"driver_id":"nobody"}`, 404, "driver_id"},
		{"POST", "/v1/users/driver/revoke", `{}`, 400, "driver_id"},
	})
	s.check("form twice",
		s.app("POST", "/v1/assign_trip", "tracking_id=a&tracking_id=a&user_id=ravi",
			"Content-Type: application/x-www-form-urlencoded"), 400, "")
	s.check("form broken",
		s.app("POST", "/v1/assign_trip", "tracking_id=%zz&user_id=ravi",
			"Content-Type: application/x-www-form-urlencoded"), 400, "")

	made := s.data(s.app("POST", "/v1/invite_user", `{"name":"New"}`))
	if id := text(made, "user_id"); text(s.data(s.app("GET", "/v1/users/driver?driver_id="+id, "")), "driver",
		"name") != "New" {
		t.Errorf("a driver without a given id: %v", made)
	}

	s.data(s.app("POST", "/v1/task/cancel", `{"task_id":"`+task+`","reason":"sold out"}`))
	s.check("completed", s.app("POST", "/v1/task/assign", `{"task_id":"`+task+`","driver_id":"ravi"}`), 409, "")
}

func TestBodySize(t *testing.T) {
	s := newServer(t)
	body := func(n int) string {
		const head, tail = `{"type":2,"drop":{"address":"x"},"x":"`, `"}`
		return head + strings.Repeat("y", n-len(head)-len(tail)) + tail
	}
	s.check("64 KiB", s.app("POST", "/v1/task/create", body(64<<10)), 200, "")
	s.check("64 KiB + 1", s.app("POST", "/v1/task/create", body(64<<10+1)), 413, "")
	s.check("64 KiB form",
		s.app("POST", "/v1/assign_trip", "x="+strings.Repeat("y", 64<<10),
			"Content-Type: application/x-www-form-urlencoded"), 413, "")
}

func TestPublicPagesIgnoreTheQuery(t *testing.T) {
	s := newServer(t)
	link := strings.TrimPrefix(text(s.data(s.app("GET", "/v1/task/trackingurl/"+s.newTask(""), "")), "webUrl"), s.base)
	for _, q := range []string{"?apikey=key-a", "?a=%zz", "?x=1&x=1;", "?" + strings.Repeat("x", 9000)} {
		for _, path := range []string{link, link + "/state"} {
			if r := s.do("GET", path+q, ""); r.status != http.StatusOK {
				t.Errorf("%s%.20s: %d %s", path, q, r.status, r.body)
			}
		}
	}
}
