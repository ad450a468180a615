package httpadapter_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/seed-8aba7b13/tracking"
)

// TestMain puts the server where local time is not UTC, and looks for goroutines that were left
// behind.
func TestMain(m *testing.M) {
	loc, err := time.LoadLocation("America/New_York")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	time.Local = loc
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// texts collects one text of each entry.
func texts(v any, path ...any) []string {
	list := []string{}
	l, _ := v.([]any)
	for _, e := range l {
		list = append(list, text(e, path...))
	}
	return list
}

func (s *server) drivers(query string) []string {
	s.Helper()
	return texts(s.data(s.app("GET", "/v1/users/drivers?"+query, ""))["drivers"], "driver_id")
}

func (s *server) tasks(query string) []string {
	s.Helper()
	return texts(s.data(s.app("GET", "/v1/task/list?"+query, ""))["task_list"], "task_id")
}

// told is the kinds of what a driver has been told.
func (s *server) told(driver string) []string {
	s.Helper()
	notices, _, err := s.svc.Notices(s.Context(), tracking.DriverID(driver), 0, 100)
	if err != nil {
		s.Fatal(err)
	}
	list := []string{}
	for _, n := range notices {
		list = append(list, string(n.Kind))
	}
	return list
}

func (s *server) assign(task, driver string) reply {
	s.Helper()
	return s.app("POST", "/v1/task/assign", fmt.Sprintf(`{"task_id":%q,"driver_id":%q}`, task, driver))
}

// TestOneOrderOfCoordinates: the same place in the list of drivers, the history, the trip and the
// customer's data.
func TestOneOrderOfCoordinates(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	trip := text(s.data(s.asDriver(token, "POST", "/v1/driver/trips", `{"tracking_id":"T"}`)), "trip", "_id")
	s.fix(token, 80.2628844, 13.0039875)
	lngLat := []any{80.2628844, 13.0039875}
	track := strings.TrimPrefix(text(s.data(s.app("GET", "/v1/trips/trackingurl/"+trip, "")), "webUrl"), s.base)
	got := []any{
		at(s.data(s.app("GET", "/v1/users/drivers", "")), "drivers", 0, "lnglat"),
		at(s.data(s.app("GET", "/v1/triphistory/"+trip, "")), "loc", 0, "lnglat"),
		at(s.data(s.do("GET", track+"/state", "")), "tracking", "position", "lnglat"),
	}
	s.data(s.asDriver(token, "POST", "/v1/driver/trips/"+trip+"/stop", ""))
	v := s.data(s.app("GET", "/v1/trips/"+trip, ""))
	got = append(got, text(v, "trip", "starts_at"), text(v, "trip", "ends_at"))
	if d := cmp.Diff([]any{
		lngLat, lngLat, []any{80.262884, 13.003988}, "13.0039875,80.2628844", "13.0039875,80.2628844",
	}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestPositionQuery(t *testing.T) {
	s := newServer(t)
	for id, p := range map[string]string{
		"chennai": "[80.27,13.08]", "north": "[13.08,80.27]", "east": "[179.9,0]", "west": "[-179.9,0]",
		"nowhere": "null",
	} {
		s.data(s.app("POST", "/v1/users/driver", fmt.Sprintf(`{"driver_id":%q,"lnglat":%s}`, id, p)))
	}
	for position, first := range map[string]string{
		"80.27,13.08": "chennai", "13.08,80.27": "north", "179.95,0": "east", "-179.95,0": "west",
	} {
		got := s.data(s.app("GET", "/v1/users/drivers?position="+position, ""))
		if ids := texts(got["drivers"], "driver_id"); len(ids) != 4 || ids[0] != first {
			t.Errorf("%s: %v", position, ids)
		}
	}
	got := s.data(s.app("GET", "/v1/users/drivers?position=179.95,0&limit=2", ""))
	for i, want := range []float64{5560, 16679} {
		if d := at(got, "drivers", i, "distance").(float64); math.Abs(d-want) > 1 {
			t.Errorf("%d: %v m, want %v", i, d, want)
		}
	}
	if at(got, "has_more") != true || !slices.Equal(texts(got["drivers"], "driver_id"), []string{"east", "west"}) {
		t.Errorf("across the 180th meridian: %v", got)
	}
	if at(s.data(s.app("GET", "/v1/users/driver?driver_id=east", "")), "driver", "distance") != nil {
		t.Error("a distance from nowhere")
	}

	// Nearest first within 100 m.
	for id, m := range map[string]float64{"m53": 53, "m81": 81, "m91": 91, "m99": 99} {
		s.data(s.app("POST", "/v1/users/driver",
			fmt.Sprintf(`{"driver_id":%q,"lnglat":[10,%.9f]}`, id, 50+m/111195.08)))
	}
	if ids := s.drivers("position=10,50&limit=4"); !slices.Equal(ids, []string{"m53", "m81", "m91", "m99"}) {
		t.Errorf("%v", ids)
	}
}

func TestTimesComeBack(t *testing.T) {
	s := newServer(t)
	for in, want := range map[string]string{
		"2024-03-10T08:50Z": "2024-03-10T08:50:00.000Z", "2024-03-10T08:50+05:30": "2024-03-10T03:20:00.000Z",
		"2024-03-10T02:30Z": "2024-03-10T02:30:00.000Z",
		"2024-03-31T00:59Z": "2024-03-31T00:59:00.000Z", "2024-03-31T01:00Z": "2024-03-31T01:00:00.000Z",
		"2024-10-27T00:30Z": "2024-10-27T00:30:00.000Z", "2024-10-27T01:30Z": "2024-10-27T01:30:00.000Z",
		"0001-01-01T00:00:00.001Z": "0001-01-01T00:00:00.001Z", "9999-12-31T23:59:59.999Z": "9999-12-31T23:59:59.999Z",
		"1969-12-31T23:59:59.9999Z": "1969-12-31T23:59:59.999Z",
	} {
		got := s.data(s.app("POST", "/v1/task/create", `{"type":2,"drop":{"address":"x"},"time":"`+in+`"}`))
		if text(got, "task", "time") != want || text(got, "task", "created_at") != "2026-03-14T09:00:00.000Z" {
			t.Errorf("%s: %v", in, got)
		}
	}
}

func TestPagesFitTogether(t *testing.T) {
	s := newServer(t)
	var want []string
	for range 25 {
		want = append([]string{s.newTask("")}, want...) // newest first, also within one millisecond
	}
	var got []string
	for page := 1; ; page++ {
		d := s.data(s.app("GET", fmt.Sprintf("/v1/task/list?page=%d", page), ""))
		got = append(got, texts(d["task_list"], "task_id")...)
		if d["has_more"] != true {
			break
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if n := len(s.tasks("")); n != 10 {
		t.Errorf("%d tasks by default, want 10", n)
	}
}

// TestCancelAgainstComplete: one wins, the other is told so, and one event ends the task.
func TestCancelAgainstComplete(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	for range 50 {
		task := s.newTask("")
		s.data(s.assign(task, "ravi"))
		s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/start", ""))
		var wg sync.WaitGroup
		var a, b reply
		wg.Go(func() { a = s.app("POST", "/v1/task/cancel", `{"task_id":"`+task+`"}`) })
		wg.Go(func() { b = s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/complete", "") })
		wg.Wait()
		want := "cancelled"
		if b.status == 200 {
			want = "succeeded"
		}
		got := s.data(s.app("GET", "/v1/task?task_id="+task, ""))
		if a.status+b.status != 200+409 || text(got, "task", "outcome") != want {
			t.Fatalf("%d, %d, %v", a.status, b.status, got)
		}
		types := texts(s.data(s.app("GET", "/v1/events?task_id="+task, ""))["events"], "type")
		if n := len(types); n != 4 || types[3] != "task.completed" {
			t.Fatalf("events: %v", types)
		}
	}
}

func TestCancelledStaysCancelled(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	task := s.newTask("")
	s.data(s.assign(task, "ravi"))
	before := s.data(s.app("GET", "/v1/users/driver?driver_id=ravi", ""))
	cancelled := s.app("POST", "/v1/task/cancel", `{"task_id":"`+task+`"}`)
	s.data(cancelled)
	s.clock.Advance(time.Minute)
	for _, r := range []reply{
		s.assign(task, "ravi"), s.app("POST", "/v1/task/unassign", `{"task_id":"`+task+`"}`),
		s.app("POST", "/v1/task/update", `{"task_id":"`+task+`","notes":"x"}`),
		s.app("POST", "/v1/task/complete", `{"task_id":"`+task+`"}`),
		s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/start", ""),
		s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/complete", ""),
		s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/decline", ""),
	} {
		s.check("after the end", r, 409, "")
	}
	if again := s.app("POST", "/v1/task/cancel", `{"task_id":"`+task+`"}`); again.body != cancelled.body {
		t.Errorf("cancelled again: %s, want %s", again.body, cancelled.body)
	}
	if ids := s.tasks("driver_id=ravi&status=assigned,in_progress"); len(ids) != 0 {
		t.Errorf("still in his list: %v", ids)
	}
	after := s.data(s.app("GET", "/v1/users/driver?driver_id=ravi", ""))
	if at(before, "driver", "open_tasks") != 1.0 || at(after, "driver", "open_tasks") != 0.0 {
		t.Errorf("open tasks: %v, then %v", before, after)
	}
}

func TestStartAgain(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	task := s.newTask("")
	s.data(s.assign(task, "ravi"))
	first := s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/start", "")
	s.data(first)
	s.clock.Advance(time.Minute)
	if again := s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/start", ""); again.body != first.body {
		t.Errorf("again: %s, want %s", again.body, first.body)
	}
	if types := texts(s.data(s.app("GET", "/v1/events?task_id="+task, ""))["events"], "type"); !slices.Equal(types,
		[]string{
			"task.created", "task.assigned", "task.started",
		}) {
		t.Errorf("events: %v", types)
	}
	s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/complete", ""))
}

func TestFiftyAssignsOfOneTask(t *testing.T) {
	s := newServer(t)
	task := s.newTask("")
	for i := range 50 {
		s.data(s.app("POST", "/v1/users/driver", fmt.Sprintf(`{"driver_id":"d%d"}`, i)))
	}
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() { s.assign(task, fmt.Sprintf("d%d", i)) })
	}
	wg.Wait()
	final := text(s.data(s.app("GET", "/v1/task/list", "")), "task_list", 0, "driver_id")
	for i := range 50 {
		id := fmt.Sprintf("d%d", i)
		want := []string{"assigned", "unassigned"}
		if id == final {
			want = want[:1]
		}
		if got := s.told(id); !slices.Equal(got, want) {
			t.Errorf("%s was told %v, want %v", id, got, want)
		}
	}
}

func TestReassignAndTellAgain(t *testing.T) {
	s := newServer(t)
	s.newDriver("a")
	s.newDriver("b")
	task := s.newTask("")
	s.data(s.assign(task, "a"))
	s.data(s.assign(task, "a"))
	s.data(s.assign(task, "b"))
	if ids := s.tasks("driver_id=a"); len(ids) != 0 {
		t.Errorf("a still has %v", ids)
	}
	if a, b := s.told("a"), s.told("b"); !slices.Equal(a, []string{"assigned", "unassigned"}) ||
		!slices.Equal(b, []string{"assigned"}) {
		t.Errorf("a was told %v, b %v", a, b)
	}
	s.data(s.app("POST", "/v1/task/unassign", `{"task_id":"`+task+`"}`))
	s.data(s.assign(task, "b"))
	if b := s.told("b"); !slices.Equal(b, []string{"assigned", "unassigned", "assigned"}) {
		t.Errorf("b was told %v", b)
	}

	var wg sync.WaitGroup
	ids := make([]string, 20)
	for i := range ids {
		ids[i] = s.newTask("")
		wg.Go(func() { s.assign(ids[i], "a") })
	}
	wg.Wait()
	if n, told := len(s.tasks("driver_id=a&limit=100&status=assigned")), len(s.told("a")); n != 20 || told != 22 {
		t.Errorf("%d tasks, told %d times", n, told)
	}
}

func TestAutoAssign(t *testing.T) {
	s := newServer(t)
	create := func() map[string]any {
		return s.data(s.app("POST", "/v1/task/create", `{"type":2,"drop":{"lnglat":[80.27,13.08]},"auto_assign":true}`))
	}
	state := func(id string) (status, driver string) {
		got := s.data(s.app("GET", "/v1/task?task_id="+id, ""))
		return text(got, "task", "status"), text(got, "task", "driver_id")
	}
	waiting := create()
	if text(waiting, "task", "status") != "created" {
		t.Fatalf("with no driver: %v", waiting)
	}
	near := s.newDriver("near")
	s.fix(near, 80.271, 13.08)
	if _, err := s.svc.AssignWaiting(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, driver := state(text(waiting, "task", "task_id")); status != "assigned" || driver != "near" {
		t.Fatalf("when a driver turned up: %s, %q", status, driver)
	}

	// Full, then free again.
	far := s.newDriver("far")
	s.fix(far, 80.3, 13.08)
	second := create()
	if text(second, "task", "driver_id") != "far" {
		t.Errorf("with the near one full: %v", second)
	}
	first := text(waiting, "task", "task_id")
	s.data(s.asDriver(near, "POST", "/v1/driver/tasks/"+first+"/start", ""))
	s.data(s.asDriver(near, "POST", "/v1/driver/tasks/"+first+"/complete", ""))
	third := create()
	if text(third, "task", "driver_id") != "near" {
		t.Errorf("with the near one free again: %v", third)
	}

	// Declined: not to the same driver again.
	if d := s.data(s.asDriver(near, "POST", "/v1/driver/tasks/"+text(third, "task", "task_id")+"/decline",
		`{"reason":"flat tyre"}`)); text(d, "task", "status") != "created" {
		t.Errorf("declined: %v", d)
	}
	if _, err := s.svc.AssignWaiting(t.Context()); err != nil {
		t.Fatal(err)
	}
	if status, _ := state(text(third, "task", "task_id")); status != "created" {
		t.Errorf("declined and assigned again: %s", status)
	}
}

func TestSilentDriversGetNothing(t *testing.T) {
	for _, c := range []struct {
		ago  time.Duration
		want string
	}{{5*time.Minute + time.Second, "b"}, {4*time.Minute + 59*time.Second, "a"}} {
		s := newServer(t)
		a, b := s.newDriver("a"), s.newDriver("b")
		s.fix(a, 80.2718, 13.08) // about 200 m away
		s.clock.Advance(c.ago - 10*time.Second)
		s.fix(b, 80.2976, 13.08) // about 3 km
		s.clock.Advance(10 * time.Second)
		got := s.data(s.app("POST", "/v1/task/create", `{"type":2,"drop":{"lnglat":[80.27,13.08]},"auto_assign":true}`))
		if text(got, "task", "driver_id") != c.want {
			t.Errorf("last heard of %v ago: %v", c.ago, got)
		}
	}
}

func TestAvailability(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	s.fix(token, 80.27, 13.08)
	duty := func(on bool) {
		s.data(s.asDriver(token, "POST", "/v1/driver/availability", fmt.Sprintf(`{"availability":%v}`, on)))
	}
	duty(false)
	if on, off := s.drivers("availability=true&position=80.27,13.08"), s.drivers("availability=false&position=80.27,13.08"); len(on) != 0 || len(off) != 1 {
		t.Errorf("off duty: %v, %v", on, off)
	}
	if got := s.data(s.app("POST", "/v1/task/create",
		`{"type":2,"drop":{"lnglat":[80.27,13.08]},"auto_assign":true}`)); text(got, "task", "status") != "created" {
		t.Errorf("assigned off duty: %v", got)
	}
	duty(true)
	if on := s.drivers("availability=true&position=80.27,13.08"); len(on) != 1 {
		t.Errorf("on duty again, without a new fix: %v", on)
	}
}

func TestNothingAfterTheEnd(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	trip := text(s.data(s.asDriver(token, "POST", "/v1/driver/trips", `{"tracking_id":"T","lnglat":[80.27,13]}`)),
		"trip", "_id")
	track := strings.TrimPrefix(text(s.data(s.app("GET", "/v1/trips/trackingurl/"+trip, "")), "webUrl"), s.base)
	s.clock.Advance(time.Minute)
	s.fix(token, 80.271, 13)
	s.data(s.asDriver(token, "POST", "/v1/driver/trips/"+trip+"/stop", ""))
	before := s.app("GET", "/v1/triphistory/"+trip, "").body
	for _, d := range []time.Duration{time.Second, time.Hour} {
		s.clock.Advance(d)
		s.fix(token, 80.28, 13)
	}
	if after := s.app("GET", "/v1/triphistory/"+trip, "").body; after != before {
		t.Errorf("history: %s, was %s", after, before)
	}
	if got := s.data(s.do("GET", track+"/state", "")); at(got, "tracking", "position") != nil ||
		len(at(got, "tracking", "path").([]any)) != 0 || text(got, "tracking", "status") != "2" {
		t.Errorf("state: %v", got)
	}
}

func TestSilentTripEnds(t *testing.T) {
	s := newServer(t)
	token, other := s.newDriver("ravi"), s.newDriver("meena")
	one := text(s.data(s.asDriver(token, "POST", "/v1/driver/trips", `{"tracking_id":"T1"}`)), "trip", "_id")
	none := text(s.data(s.asDriver(other, "POST", "/v1/driver/trips", `{"tracking_id":"T2"}`)), "trip", "_id")
	s.fix(token, 80.27, 13)
	s.clock.Advance(2*time.Hour + time.Second)
	if ids := texts(s.data(s.app("GET", "/v1/trips?status=1", ""))["trips"], "_id"); len(ids) != 0 {
		t.Errorf("active: %v", ids)
	}
	if got := s.data(s.app("GET", "/v1/trips/"+one, "")); text(got, "trip", "status") != "2" ||
		text(got, "trip", "ends_at") != "13,80.27" {
		t.Errorf("with a fix: %v", got)
	}
	if got := s.data(s.app("GET", "/v1/trips/"+none, "")); text(got, "trip", "status") != "3" ||
		text(got, "trip", "ends_at") != "" || text(got, "trip", "starts_at") != "" {
		t.Errorf("without a fix: %v", got)
	}
}

func TestOddFixes(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	trip := text(s.data(s.asDriver(token, "POST", "/v1/driver/trips", `{"tracking_id":"T"}`)), "trip", "_id")
	now := s.clock.Now()
	s.clock.Advance(10 * time.Second)
	stamp := func(sec int) string {
		return now.Add(time.Duration(sec) * time.Second).Format("2006-01-02T15:04:05Z")
	}
	got := s.data(s.asDriver(token, "POST", "/v1/driver/fixes", `{"fixes":[
		{"lnglat":[80.27,13],"time":"`+stamp(4)+`"},
		{"lnglat":[80.2701,13],"time":"`+stamp(2)+`"},
		{"lnglat":[0,0],"time":"`+stamp(5)+`"},
		{"lnglat":[80.27,13],"time":"2029-03-14T09:00Z"},
		{"lnglat":[80.2702,13],"time":"`+stamp(6)+`"}]}`))
	if d := cmp.Diff([]any{"live", "late", "invalid", "future", "live"}, got["outcomes"]); d != "" {
		t.Errorf("outcomes (-want +got)\n%s", d)
	}
	loc := at(s.data(s.app("GET", "/v1/triphistory/"+trip, "")), "loc")
	if d := cmp.Diff([]string{
		now.Add(2 * time.Second).Format("2006-01-02T15:04:05.000Z"),
		now.Add(4 * time.Second).Format("2006-01-02T15:04:05.000Z"),
		now.Add(6 * time.Second).Format("2006-01-02T15:04:05.000Z"),
	}, texts(loc, "time")); d != "" {
		t.Errorf("path (-want +got)\n%s", d)
	}
	d := s.data(s.app("GET", "/v1/users/driver?driver_id=ravi", ""))
	if at(d, "driver", "lnglat", 0) != 80.2702 || text(d, "driver", "last_seen_at") != "2026-03-14T09:00:10.000Z" {
		t.Errorf("driver: %v", d)
	}
}

func TestTrackingURL(t *testing.T) {
	s := newServer(t)
	task := s.newTask("")
	urls := make([]string, 20)
	var wg sync.WaitGroup
	for i := range urls {
		wg.Go(func() { urls[i] = s.link(task) })
	}
	wg.Wait()
	if len(slices.Compact(urls)) != 1 {
		t.Errorf("asked 20 times: %v", urls)
	}
	first := urls[0]
	s.data(s.app("POST", "/v1/task/complete", `{"task_id":"`+task+`"}`))
	s.clock.Advance(25 * time.Hour)
	if r := s.do("GET", first+"/state", ""); r.status != 404 {
		t.Errorf("expired: %d", r.status)
	}
	second := s.link(task)
	s.clock.Advance(23 * time.Hour)
	if r := s.do("GET", second+"/state", ""); r.status != 200 || second == first {
		t.Errorf("made anew: %d", r.status)
	}
	s.clock.Advance(2 * time.Hour)
	if r := s.do("GET", second+"/state", ""); r.status != 404 {
		t.Errorf("expired again: %d", r.status)
	}

	token := s.newDriver("ravi")
	trip := text(s.data(s.asDriver(token, "POST", "/v1/driver/trips", `{"tracking_id":"T"}`)), "trip", "_id")
	seen := map[string]bool{}
	for range 100 {
		seen[strings.TrimPrefix(text(s.data(s.app("GET", "/v1/trips/trackingurl/"+trip, "")), "webUrl"), s.base)] = true
	}
	s.data(s.app("POST", "/v1/trips/trackingurl/revoke", `{"trip_id":"`+trip+`"}`))
	for url := range seen {
		if r := s.do("GET", url+"/state", ""); r.status != 404 {
			t.Errorf("revoked: %d", r.status)
		}
	}
	if len(seen) != 1 {
		t.Errorf("%d different URLs", len(seen))
	}
}

// TestCallerGoesAway: a call that is given up has happened or has not, and if it has, then whole.
func TestCallerGoesAway(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	s.fix(token, 80.27, 13.08)
	for i := range 40 {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, "POST", s.url+"/v1/task/create?apikey=key-a",
			strings.NewReader(`{"type":2,"drop":{"lnglat":[80.27,13.08]},"auto_assign":true}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Idempotency-Key", fmt.Sprint(i))
		var wg sync.WaitGroup
		wg.Go(func() {
			if res, err := http.DefaultClient.Do(req); err == nil {
				res.Body.Close()
			}
		})
		wg.Go(cancel)
		wg.Wait()
		// Asked again with the same key, there is exactly one.
		again := s.data(s.app("POST", "/v1/task/create",
			`{"type":2,"drop":{"lnglat":[80.27,13.08]},"auto_assign":true}`, fmt.Sprintf("Idempotency-Key: %d", i)))
		id := text(again, "task", "task_id")
		events := texts(s.data(s.app("GET", "/v1/events?task_id="+id, ""))["events"], "type")
		want := []string{"task.created"}
		if text(again, "task", "status") == "assigned" {
			want = append(want, "task.assigned")
		}
		if !slices.Equal(events, want) {
			t.Fatalf("%v: events %v", again, events)
		}
		s.data(s.app("POST", "/v1/task/cancel", `{"task_id":"`+id+`"}`))
	}
	if n := len(s.tasks("limit=1000")); n != 40 {
		t.Errorf("%d tasks, want 40", n)
	}
}

func TestDescriptionIsCleaned(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	for desc, want := range map[string]string{
		`plain & <b>bold</b>`:                              `plain &amp; <b>bold</b>`,
		`<script>alert(1)</script>x`:                       `x`,
		`<iframe src=//evil></iframe>x`:                    `x`,
		`<style>*{display:none}</style>x`:                  `x`,
		`<b onclick="x()" style="color:red" class=a>y</b>`: `<b>y</b>`,
		`<a href="javascript:x()">y</a>`:                   `y`,
		`<a href="https://a.example/">y</a>`:               `<a href="https://a.example/" rel="nofollow noreferrer noopener" target="_blank">y</a>`,
		`<img src="https://a.example/pixel.gif">x`:         `x`,
		`<p>not closed <b>`:                                `<p>not closed <b></b></p>`,
		`</div></div>x`:                                    `x`,
		`<td>alone</td>`:                                   `alone`,
		`<svg onload=x()>y</svg>`:                          `y`,
		`<form action=//evil><input name=a></form>x`:       `x`,
		"": "",
	} {
		s.data(s.app("POST", "/v1/assign_trip",
			fmt.Sprintf(`{"tracking_id":"T","user_id":"ravi","desc":%s}`, quote(desc))))
		got := at(s.data(s.asDriver(token, "GET", "/v1/driver/requests", "")), "requests", 0)
		if text(got, "desc") != desc || text(got, "desc_html") != want {
			t.Errorf("%s: %q, want %q", desc, text(got, "desc_html"), want)
		}
	}
}

// TestTwoTenantsWithTheSameIDs: the same ids in two applications are two things.
func TestTwoTenantsWithTheSameIDs(t *testing.T) {
	s := newServer(t)
	for key, name := range map[string]string{"key-a": "Asha", "key-b": "Bala"} {
		s.data(s.do("POST", "/v1/users/driver?apikey="+key, fmt.Sprintf(`{"driver_id":"d","name":%q}`, name)))
	}
	for key, name := range map[string]string{"key-a": "Asha", "key-b": "Bala"} {
		if got := s.data(s.do("GET", "/v1/users/driver?driver_id=d&apikey="+key, "")); text(got, "driver",
			"name") != name {
			t.Errorf("%s: %v", key, got)
		}
	}
}
