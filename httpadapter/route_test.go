package httpadapter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

// The order of a driver's stops, by the application and by the driver, and what it does to the
// driver's list, the times and the links.
func TestRoute(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	var ids [3]string
	for i, lng := range []float64{80.26, 80.27, 80.28} {
		ids[i] = text(s.data(s.app("POST", "/v1/task/create",
			fmt.Sprintf(`{"type":2,"drop":{"lnglat":[%v,13],"address":"d"}}`, lng))), "task", "task_id")
		s.data(s.app("POST", "/v1/task/assign", fmt.Sprintf(`{"task_id":%q,"driver_id":"ravi"}`, ids[i])))
	}
	stop := func(i int) string { return fmt.Sprintf(`{"task_id":%q,"leg":"drop"}`, ids[i]) }
	order := func(list ...int) string {
		body := ""
		for i, n := range list {
			if i > 0 {
				body += ","
			}
			body += stop(n)
		}
		return "[" + body + "]"
	}
	same := func(what string, got []string, want ...int) {
		t.Helper()
		var names []string
		for _, n := range want {
			names = append(names, ids[n])
		}
		if d := cmp.Diff(names, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", what, d)
		}
	}
	read := func() map[string]any { return s.data(s.app("GET", "/v1/users/driver/route?driver_id=ravi", "")) }
	first := read()
	same("as they were assigned", texts(at(first, "stops"), "task_id"), 0, 1, 2)
	if at(first, "stops", 0, "eta") != nil {
		t.Error("there is an expected time, and nobody knows where the driver is")
	}
	version := fmt.Sprint(at(first, "version"))

	s.checkAll([]bad{
		{"POST", "/v1/users/driver/route", `{"driver_id":"ravi"}`, 400, "stops"},
		{"POST", "/v1/users/driver/route", `{"stops":[]}`, 400, "driver_id"},
		{"POST", "/v1/users/driver/route", `{"driver_id":"ravi","stops":[{"leg":"drop"}]}`, 400, "stops[0].task_id"},
		{"POST", "/v1/users/driver/route", `{"driver_id":"ravi","stops":[{"task_id":"x"}]}`, 400, "stops[0].leg"},
		{"POST", "/v1/users/driver/route", `{"driver_id":"ravi","stops":[{"task_id":"x","leg":"way"}]}`, 400, "stops[0].leg"},
		{"POST", "/v1/users/driver/route", `{"driver_id":"ravi","stops":["x"]}`, 400, "stops[0]"},
		{"POST", "/v1/users/driver/route", `{"driver_id":"ravi","stops":[],"version":"1"}`, 400, "version"},
		{"POST", "/v1/users/driver/route", `{"driver_id":"ravi","stops":[],"version":-1}`, 400, "version"},
		{"POST", "/v1/users/driver/route", `{"driver_id":"ravi","stops":` + order(0, 1) + `}`, 409, "stops"},
		{"POST", "/v1/users/driver/route", `{"driver_id":"ravi","stops":` + order(0, 1, 1) + `}`, 409, "stops[2]"},
		{
			"POST", "/v1/users/driver/route",
			`{"driver_id":"ravi","stops":[{"task_id":"nobody's","leg":"drop"}]}`, 409, "stops[0]",
		},
		{
			"POST", "/v1/users/driver/route",
			`{"driver_id":"ravi","stops":` + order(2, 1, 0) + `,"version":99999}`, 409, "version",
		},
		{"POST", "/v1/users/driver/route", `{"driver_id":"nobody","stops":[]}`, 404, "driver_id"},
		{"POST", "/v1/task/assign", `{"task_id":"` + ids[0] + `","driver_id":"ravi","stops":[]}`, 409, "stops"},
		{"GET", "/v1/users/driver/route?driver_id=nobody", "", 404, "driver_id"},
		{"GET", "/v1/users/driver/route", "", 400, "driver_id"},
	})

	n := len(s.told("ravi"))
	next := s.data(s.app("POST", "/v1/users/driver/route",
		`{"driver_id":"ravi","stops":`+order(2, 0, 1)+`,"version":`+version+`}`))
	same("the application's order", texts(at(next, "stops"), "task_id"), 2, 0, 1)
	if got := s.told("ravi")[n:]; !cmp.Equal(got, []string{"route"}) {
		t.Errorf("the driver was told %q", got)
	}
	same("the driver's list", texts(at(s.data(s.asDriver(token, "GET", "/v1/driver/tasks", "")), "task_list"), "task_id"),
		2, 0, 1)
	for _, task := range at(s.data(s.app("GET", "/v1/task/list?driver_id=ravi", "")), "task_list").([]any) {
		if at(task, "task_id") == ids[2] && at(task, "stop") != 1.0 {
			t.Errorf("in the list by driver the first one is stop %v", at(task, "stop"))
		}
	}
	if got := at(s.data(s.app("GET", "/v1/task?task_id="+ids[1], "")), "task", "stop"); got != 3.0 {
		t.Errorf("the last one is stop %v", got)
	}
	own := s.data(s.asDriver(token, "POST", "/v1/driver/route", `{"stops":`+order(0, 1, 2)+`}`))
	same("the driver's order", texts(at(own, "stops"), "task_id"), 0, 1, 2)
	if got := s.told("ravi")[n:]; len(got) != 1 {
		t.Errorf("the driver was told of his own order: %q", got)
	}

	// Under way: times from stop to stop, and what the links say.
	for _, id := range ids {
		s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+id+"/start", ""))
	}
	s.clock.Advance(time.Second)
	s.fix(token, 80.25, 13)
	etas := texts(at(s.data(s.asDriver(token, "GET", "/v1/driver/route", "")), "stops"), "eta", "time")
	if len(etas) != 3 || !(etas[0] < etas[1] && etas[1] < etas[2]) {
		t.Errorf("expected times %q", etas)
	}
	last := s.link(ids[2])
	if v := s.state(last); at(v, "stops_before") != 2.0 || at(v, "phase") != "to_drop" {
		t.Errorf("the last customer sees %v", v)
	}
	arrived := s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+ids[0]+"/arrive", ""))
	if at(arrived, "task", "phase") != "at_drop" || at(arrived, "task", "arrived_at") == nil {
		t.Errorf("arrived: %v", arrived)
	}
	s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+ids[0]+"/complete", ""))
	if v := s.state(last); at(v, "stops_before") != 1.0 {
		t.Errorf("one is done, and the last customer sees %v", v)
	}
}

// TestDriverKnowsWhatIsAllowed: an app offers neither an order that would be refused, nor to take
// back what is too long ago.
func TestDriverKnowsWhatIsAllowed(t *testing.T) {
	for _, reorder := range []bool{true, false} {
		s := newServer(t, func(so *tracking.Options, _ *httpadapter.Options) {
			so.DriversReorder, so.UndoFor = &reorder, 90*time.Second
		})
		token := s.newDriver("ravi")
		me := s.data(s.asDriver(token, "GET", "/v1/driver/me", ""))
		if me["reorder"] != reorder || me["undo_for"] != 90.0 {
			t.Errorf("reorder is %v and undo_for %v", me["reorder"], me["undo_for"])
		}
		if r := s.asDriver(token, "POST", "/v1/driver/route", `{"stops":[]}`); (r.status == 200) != reorder {
			t.Errorf("an order of the driver's gets %d", r.status)
		}
	}
}
