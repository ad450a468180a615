package httpadapter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

// promises are the members of a task that are about when it is to be done and by whom.
func promises(task any) map[string]any {
	got := map[string]any{}
	for _, name := range []string{"window", "promised", "late", "requires"} {
		if v, ok := task.(map[string]any)[name]; ok {
			got[name] = v
		}
	}
	return got
}

// What is agreed of a task comes back with it, in every answer that shows it, and can be changed and
// taken back.
func TestWindowOfATask(t *testing.T) {
	s := newServer(t)
	at := func(d time.Duration) string {
		return s.clock.Now().Add(d).UTC().Format("2006-01-02T15:04:05.000Z")
	}
	from, to := at(time.Hour), at(2*time.Hour)
	made := s.data(s.app("POST", "/v1/task/create", fmt.Sprintf(`{"type":2,"drop":{"address":"x"},
		"window":{"from":%q,"to":%q},"promised":%q,"requires":{"vehicle":"van"}}`, from, to, at(0))))
	id := text(made, "task", "task_id")
	read := func() map[string]any {
		t.Helper()
		one := promises(s.data(s.app("GET", "/v1/task?task_id="+id, ""))["task"])
		listed := promises(s.data(s.app("GET", "/v1/task/list", ""))["task_list"].([]any)[0])
		if diff := cmp.Diff(one, listed); diff != "" {
			t.Errorf("alone and in the list (-alone +listed):\n%s", diff)
		}
		return one
	}
	whole := map[string]any{
		"window": map[string]any{"from": from, "to": to}, "promised": to, "requires": map[string]any{"vehicle": "van"},
	}
	for what, got := range map[string]map[string]any{"created": promises(made["task"]), "read": read()} {
		if diff := cmp.Diff(whole, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	for _, c := range []struct {
		change string
		want   map[string]any
	}{
		{`"window":null,"promised":null,"requires":null`, whole},
		{fmt.Sprintf(`"window":{"from":%q}`, to), map[string]any{
			"window": map[string]any{"from": to}, "promised": at(0), "requires": whole["requires"],
		}},
		{`"window":{},"requires":{}`, map[string]any{"promised": at(0)}},
		{fmt.Sprintf(`"promised":%q`, to), map[string]any{"promised": to}},
		{`"promised":""`, map[string]any{}},
	} {
		changed := promises(s.data(s.app("POST", "/v1/task/update", `{"task_id":"`+id+`",`+c.change+`}`))["task"])
		for what, got := range map[string]map[string]any{"changed": changed, "read": read()} {
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s by %s (-want +got):\n%s", what, c.change, diff)
			}
		}
	}
}

// A task shows that it is late from the very moment on, whether or not a sweep has run, and no more
// when it is done; the event comes with the sweep.
func TestLateTask(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	id := s.newTask(fmt.Sprintf(`,"promised":%q`, s.clock.Now().Add(time.Hour).UTC().Format(time.RFC3339)))
	s.data(s.assign(id, "ravi"))
	shown := func() (late []any) {
		t.Helper()
		for _, task := range []any{
			s.data(s.app("GET", "/v1/task?task_id="+id, ""))["task"],
			s.data(s.app("GET", "/v1/task/list", ""))["task_list"].([]any)[0],
			s.data(s.asDriver(token, "GET", "/v1/driver/tasks", ""))["task_list"].([]any)[0],
		} {
			late = append(late, task.(map[string]any)["late"])
		}
		return late
	}
	s.clock.Advance(time.Hour - time.Millisecond)
	if diff := cmp.Diff([]any{nil, nil, nil}, shown()); diff != "" {
		t.Errorf("before its time (-want +got):\n%s", diff)
	}
	s.clock.Advance(time.Millisecond)
	for range 2 {
		if diff := cmp.Diff([]any{true, true, true}, shown()); diff != "" {
			t.Errorf("from then on (-want +got):\n%s", diff)
		}
		if _, err := s.svc.MarkDueTasks(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	events := s.data(s.app("GET", "/v1/events?task_id="+id, ""))["events"].([]any)
	last := events[len(events)-1]
	if text(last, "type") != "task.late" || text(last, "data", "driver_id") != "ravi" ||
		text(last, "data", "promised") != s.clock.Now().UTC().Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("the event: %v", last)
	}
	s.data(s.app("POST", "/v1/task/complete", `{"task_id":"`+id+`"}`))
	if diff := cmp.Diff([]any{nil, nil, nil}, shown()); diff != "" {
		t.Errorf("when it is done (-want +got):\n%s", diff)
	}
}

// A driver's limit of open tasks is shown while there is one, and can be taken back.
func TestLimitOfADriver(t *testing.T) {
	s := newServer(t)
	save := func(member string) any {
		t.Helper()
		d := s.data(s.app("POST", "/v1/users/driver", `{"driver_id":"ravi"`+member+`}`))["driver"].(map[string]any)
		read := s.data(s.app("GET", "/v1/users/driver?driver_id=ravi", ""))["driver"].(map[string]any)
		if d["max_open_tasks"] != read["max_open_tasks"] {
			t.Errorf("%s: answered %v, read %v", member, d["max_open_tasks"], read["max_open_tasks"])
		}
		return read["max_open_tasks"]
	}
	for _, c := range []struct {
		member string
		want   any
	}{
		{``, nil}, {`,"max_open_tasks":0`, 0.0}, {``, 0.0}, {`,"max_open_tasks":null`, 0.0},
		{`,"max_open_tasks":-1`, -1.0}, {`,"max_open_tasks":1000`, 1000.0}, {`,"max_open_tasks":-2`, nil},
	} {
		if got := save(c.member); got != c.want {
			t.Errorf("after %q the limit is %v, want %v", c.member, got, c.want)
		}
	}
	for _, v := range []string{"1001", "-3", "1.5", `"1"`, "true", "99999999999999999999"} {
		s.checkAll([]bad{
			{"POST", "/v1/users/driver", `{"driver_id":"ravi","max_open_tasks":` + v + `}`, 400, "max_open_tasks"},
		})
	}
}

// A task goes to the nearest driver who has what it requires.
func TestRequirementsOfATask(t *testing.T) {
	s := newServer(t)
	for i, vehicle := range []string{"bike", "van"} {
		s.data(s.app("POST", "/v1/users/driver", fmt.Sprintf(`{"driver_id":%q,"availability":true,
			"lnglat":[80.27,13.%d],"properties":{"vehicle":%[1]q}}`, vehicle, 8+i)))
	}
	for vehicle, status := range map[string]string{"van": "assigned", "crane": "created"} {
		task := s.data(s.app("POST", "/v1/task/create", `{"type":2,"drop":{"lnglat":[80.27,13.08]},"auto_assign":true,
			"requires":{"vehicle":"`+vehicle+`"}}`))
		driver := text(task, "task", "driver_id")
		if text(task, "task", "status") != status || status == "assigned" && driver != vehicle {
			t.Errorf("a task for a %s: %v", vehicle, task)
		}
	}
}

func TestWindowRefuses(t *testing.T) {
	s := newServer(t)
	task := s.newTask("")
	many := strings.Builder{}
	for i := range 51 {
		fmt.Fprintf(&many, `"k%d":"v",`, i)
	}
	n := func(n int) string { return strings.Repeat("ü", n) }
	for _, c := range []struct{ member, field string }{
		{`"window":[]`, "window"},
		{`"window":"tomorrow"`, "window"},
		{`"window":{"from":"tomorrow"}`, "window.from"},
		{`"window":{"from":7}`, "window.from"},
		{`"window":{"to":"2026-02-30T10:00Z"}`, "window.to"},
		{`"window":{"to":""}`, "window.to"},
		{`"window":{"From":"2026-02-03T10:00Z"}`, "window.from"},
		{`"window":{"from":"2026-02-03T10:00Z","to":"2026-02-03T09:59:59.999Z"}`, "window.to"},
		{`"promised":7`, "promised"},
		{`"promised":"2026-02-03"`, "promised"},
		{`"requires":[]`, "requires"},
		{`"requires":{"k":7}`, "requires"},
		{`"requires":{"":"v"}`, "requires"},
		{`"requires":{"` + n(65) + `":"v"}`, "requires"},
		{`"requires":{"k":"` + n(257) + `"}`, "requires"},
		{`"requires":{"k":"\u0000"}`, "requires"},
		{`"requires":{` + strings.TrimSuffix(many.String(), ",") + `}`, "requires"},
	} {
		s.checkAll([]bad{
			{"POST", "/v1/task/create", `{"type":2,"drop":{"address":"x"},` + c.member + `}`, 400, c.field},
			{"POST", "/v1/task/update", `{"task_id":"` + task + `",` + c.member + `}`, 400, c.field},
		})
	}
	s.checkAll([]bad{
		{"POST", "/v1/task/create", `{"type":2,"drop":{"address":"x"},"promised":""}`, 400, "promised"},
		{"POST", "/v1/task/create", `{"type":2,"drop":{"address":"x"},"window":{"from":null},"promised":null}`, 200, ""},
		{"POST", "/v1/task/create", `{"type":2,"drop":{"address":"x"},"window":{"from":"2026-02-03T10:00Z",
			"to":"2026-02-03T10:00Z"},"requires":{"` + n(64) + `":"` + n(256) + `"}}`, 200, ""},
	})
	token := s.newDriver("ravi")
	s.data(s.assign(task, "ravi"))
	update := func(member string, status int) bad {
		return bad{"POST", "/v1/task/update", `{"task_id":"` + task + `",` + member + `}`, status, ""}
	}
	s.checkAll([]bad{update(`"requires":{"k":"v"}`, 200)})
	s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/start", ""))
	s.checkAll([]bad{
		update(`"requires":{"k":"w"}`, 409), update(`"window":{"to":"2026-02-03T10:00Z"}`, 200),
		update(`"promised":"2026-02-03T10:00Z"`, 200),
	})
	s.data(s.app("POST", "/v1/task/complete", `{"task_id":"`+task+`"}`))
	s.checkAll([]bad{update(`"window":{}`, 409), update(`"promised":""`, 409)})
}

// Who might get a task, and why it waits, is answered as it is now.
func TestCandidates(t *testing.T) {
	s := newServer(t, func(o *tracking.Options, _ *httpadapter.Options) { o.MaxAssignDistance = 5000 })
	driver := func(member string) { s.data(s.app("POST", "/v1/users/driver", `{`+member+`}`)) }
	driver(`"driver_id":"busy","name":"Bea","availability":true,"lnglat":[80.27,13.081],"properties":{"van":"yes"},
		"max_open_tasks":0`)
	driver(`"driver_id":"bike","availability":true,"lnglat":[80.27,13.08]`)
	driver(`"driver_id":"far","availability":true,"lnglat":[80.27,14.08],"properties":{"van":"yes"}`)
	driver(`"driver_id":"nowhere","availability":true`)
	driver(`"driver_id":"off","lnglat":[80.27,13.082],"properties":{"van":"yes"}`)
	made := s.data(s.app("POST", "/v1/task/create", `{"type":2,"drop":{"lnglat":[80.27,13.08]},"auto_assign":true,
		"requires":{"van":"yes"}}`))
	id, since := text(made, "task", "task_id"), text(made, "task", "created_at")
	s.clock.Advance(time.Minute)
	ask := func(query string) map[string]any {
		t.Helper()
		return s.data(s.app("GET", "/v1/task/candidates?task_id="+id+query, ""))
	}
	got := ask("")
	var list []string
	for _, c := range got["candidates"].([]any) {
		c := c.(map[string]any)
		if _, known := c["distance"]; known == (c["driver_id"] == "nowhere") {
			t.Errorf("the distance of %v", c)
		}
		list = append(list, fmt.Sprint(c["driver_id"], " ", c["fit"], " ", c["open_tasks"]))
	}
	want := []string{"bike unfit 0", "busy busy 0", "off off_duty 0", "far too_far 0", "nowhere no_position 0"}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("candidates (-want +got):\n%s", diff)
	}
	if name := text(got, "candidates", 1, "name"); name != "Bea" {
		t.Errorf("the second is called %q", name)
	}
	if diff := cmp.Diff(map[string]any{"since": since, "reason": "busy"}, got["waiting"]); diff != "" {
		t.Errorf("waiting (-want +got):\n%s", diff)
	}
	if n := len(ask("&limit=2")["candidates"].([]any)); n != 2 {
		t.Errorf("%d candidates, of at most 2", n)
	}
	for _, c := range []struct {
		target string
		want   any
	}{
		{"/v1/task/list?waiting=true", map[string]any{"since": since, "reason": "busy"}},
		{"/v1/task/list", map[string]any{"since": since}},
	} {
		list := s.data(s.app("GET", c.target, ""))
		if diff := cmp.Diff(c.want, at(list, "task_list", 0, "waiting")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.target, diff)
		}
	}
	if diff := cmp.Diff(any(map[string]any{"since": since}),
		at(s.data(s.app("GET", "/v1/task?task_id="+id, "")), "task", "waiting")); diff != "" {
		t.Errorf("the task itself (-want +got):\n%s", diff)
	}
	s.data(s.assign(id, "bike"))
	if waits := at(s.data(s.app("GET", "/v1/task/list", "")), "task_list", 0, "waiting"); waits != nil {
		t.Errorf("somebody has it, and it waits: %v", waits)
	}
	if _, waits := ask("")["waiting"]; waits {
		t.Error("somebody has it, and it waits")
	}
	foreign := s.app("GET", "/v1/task/candidates?task_id=nobody", "")
	r := s.do("GET", withKey("/v1/task/candidates?task_id="+id, "key-b"), "")
	s.check("another application's task", r, 404, "task_id")
	if r.sameButID() != foreign.sameButID() {
		t.Errorf("another application's task: %s, one that is unknown: %s", r.body, foreign.body)
	}
	s.checkAll([]bad{
		{"GET", "/v1/task/candidates", "", 400, "task_id"},
		{"GET", "/v1/task/candidates?task_id=", "", 400, "task_id"},
		{"GET", "/v1/task/candidates?task_id=" + id + "&limit=0", "", 400, "limit"},
		{"GET", "/v1/task/candidates?task_id=" + id + "&limit=1001", "", 400, "limit"},
		{"GET", "/v1/task/candidates?task_id=" + id + "&limit=ten", "", 400, "limit"},
		{"GET", "/v1/task/candidates?task_id=" + id + "&limit=1000", "", 200, ""},
		{"GET", "/v1/task/candidates?task_id=%00", "", 404, "task_id"},
		{"POST", "/v1/task/candidates", "", 405, ""},
	})
	empty := s.do("POST", withKey("/v1/task/create", "key-b"), `{"type":2,"drop":{"address":"x"}}`)
	id = text(s.data(empty), "task", "task_id")
	if r := s.do("GET", withKey("/v1/task/candidates?task_id="+id, "key-b"), ""); r.body !=
		`{"message":"Candidates","success":true,"data":{"candidates":[]}}`+"\n" {
		t.Errorf("without drivers: %s", r.body)
	}
}

// TestWaitsForItsTime: a task for which a driver is looked for later only says so, wherever it is shown,
// and from then on that it waits.
func TestWaitsForItsTime(t *testing.T) {
	s := newServer(t)
	made := s.data(s.app("POST", "/v1/task/create",
		`{"type":2,"drop":{"lnglat":[80.27,13.08]},"auto_assign":true,"window":{"from":"2026-03-14T20:00Z"}}`))
	id, created := text(made, "task", "task_id"), text(made, "task", "created_at")
	says := func(when string, shown any, want map[string]any) {
		t.Helper()
		if diff := cmp.Diff(any(want), at(shown, "waiting")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	later := map[string]any{"since": created, "reason": "window"}
	says("created", at(made, "task"), later)
	s.clock.Advance(time.Minute)
	read := func() (any, any) {
		t.Helper()
		return at(s.data(s.app("GET", "/v1/task?task_id="+id, "")), "task"),
			at(s.data(s.app("GET", "/v1/task/list", "")), "task_list", 0)
	}
	one, listed := read()
	says("by itself", one, later)
	says("in a list", listed, later)
	says("changed", at(s.data(s.app("POST", "/v1/task/update", `{"task_id":"`+id+`","notes":"n"}`)), "task"), later)
	s.clock.Advance(11 * time.Hour)
	now := map[string]any{"since": "2026-03-14T19:00:00.000Z"}
	one, listed = read()
	says("by itself, in time", one, now)
	says("in a list, in time", listed, now)
}
