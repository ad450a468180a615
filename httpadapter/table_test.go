package httpadapter_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// cell is a server with a task in one of the states of the table, and the two drivers: own, who has
// or had it, and other.
type cell struct {
	*server
	own, other string // tokens
	task       string
}

// shown names the state of the task as the table does, with its driver while it is open.
func (c cell) shown() string {
	c.Helper()
	got := c.data(c.app("GET", "/v1/task?task_id="+c.task, ""))
	word := text(got, "task", "status")
	switch {
	case word == "completed":
		return text(got, "task", "outcome")
	case word == "in_progress" && at(got, "task", "picked_up_at") != nil:
		word = "picked up"
	case word == "created":
		return word
	}
	return word + " " + text(got, "task", "driver_id")
}

func (c cell) step(token, verb, body string) reply {
	c.Helper()
	return c.asDriver(token, "POST", "/v1/driver/tasks/"+c.task+"/"+verb, body)
}

func (c cell) verb(verb, more string) reply {
	c.Helper()
	return c.app("POST", "/v1/task/"+verb, `{"task_id":"`+c.task+`"`+more+`}`)
}

// TestTaskTableOverHTTP is contract 3's table, cell by cell. What changes is one event of the task,
// and what does not is none; the task's trip runs while it is in progress.
func TestTaskTableOverHTTP(t *testing.T) {
	states := []string{
		"created", "assigned", "in_progress", "picked up", "succeeded", "failed", "cancelled", "by the dispatcher",
	}
	brought := func(c cell, state string) {
		c.Helper()
		if state == "created" {
			return
		}
		c.data(c.assign(c.task, "own"))
		if state == "assigned" {
			return
		}
		c.data(c.step(c.own, "start", ""))
		switch state {
		case "picked up":
			c.data(c.step(c.own, "pickup", ""))
		case "succeeded":
			c.data(c.step(c.own, "complete", ""))
		case "failed":
			c.data(c.step(c.own, "complete", `{"outcome":"failed"}`))
		case "cancelled":
			c.data(c.verb("cancel", ""))
		case "by the dispatcher":
			c.data(c.verb("complete", ""))
		}
	}
	type does = func(c cell) reply
	verb := func(verb, more string) does { return func(c cell) reply { c.Helper(); return c.verb(verb, more) } }
	own := func(verb, body string) does {
		return func(c cell) reply { c.Helper(); return c.step(c.own, verb, body) }
	}
	other := func(verb, body string) does {
		return func(c cell) reply { c.Helper(); return c.step(c.other, verb, body) }
	}
	const (
		no, c404, c409     = "nothing", "404", "409"
		hasOwn, hasOther   = "assigned own", "assigned other"
		started, picked    = "in_progress own", "picked up own"
		done, failed, gone = "succeeded", "failed", "cancelled"
	)
	never := []string{c404, c404, c404, c404, c404, c404, c404, c404}
	for _, row := range []struct {
		name string
		do   does
		want []string // by the state
	}{
		{"assign, same driver", verb("assign", `,"driver_id":"own"`), []string{
			hasOwn, no, no, no, c409, c409, c409, c409,
		}},
		{"assign, another driver", verb("assign", `,"driver_id":"other"`), []string{
			hasOther, hasOther, c409, c409, c409, c409, c409, c409,
		}},
		{"assign with force, same driver", verb("assign", `,"driver_id":"own","force":true`), []string{
			hasOwn, no, no, no, c409, c409, c409, c409,
		}},
		{"assign with force, another driver", verb("assign", `,"driver_id":"other","force":true`), []string{
			hasOther, hasOther, hasOther, hasOther, c409, c409, c409, c409,
		}},
		{"unassign", verb("unassign", ""), []string{no, "created", "created", "created", c409, c409, c409, c409}},
		{"decline", own("decline", ""), []string{c404, "created", c409, c409, c409, c409, c409, c409}},
		{"update notes", verb("update", `,"notes":"n"`), []string{
			"created", hasOwn, started, picked, c409, c409, c409, c409,
		}},
		{"update drop", verb("update", `,"drop":{"address":"n"}`), []string{
			"created", hasOwn, started, picked, c409, c409, c409, c409,
		}},
		{"update pickup", verb("update", `,"pickup":{"address":"n"}`), []string{
			"created", hasOwn, c409, c409, c409, c409, c409, c409,
		}},
		{"update order_id", verb("update", `,"order_id":"n"`), []string{
			"created", hasOwn, c409, c409, c409, c409, c409, c409,
		}},
		{"update time", verb("update", `,"time":"2024-03-10T08:50Z"`), []string{
			"created", hasOwn, c409, c409, c409, c409, c409, c409,
		}},
		{"cancel", verb("cancel", ""), []string{gone, gone, gone, gone, c409, c409, no, c409}},
		{"start", own("start", ""), []string{c404, started, no, no, c409, c409, c409, c409}},
		{"pickup", own("pickup", ""), []string{c404, c409, picked, no, c409, c409, c409, c409}},
		{"complete", own("complete", ""), []string{c404, c409, done, done, no, c409, c409, no}},
		{"complete as failed", own("complete", `{"outcome":"failed"}`), []string{
			c404, c409, failed, failed, c409, no, c409, c409,
		}},
		{"the dispatcher completes", verb("complete", ""), []string{done, done, done, done, no, c409, c409, no}},
		{"the dispatcher completes as failed", verb("complete", `,"outcome":"failed"`), []string{
			failed, failed, failed, failed, c409, no, c409, c409,
		}},
		{"reopen", verb("reopen", ""), []string{no, no, no, no, hasOwn, hasOwn, hasOwn, hasOwn}},
		{"undo", own("undo", ""), []string{c404, no, hasOwn, started, started, started, c409, c409}},
		{"arrive", own("arrive", ""), []string{c404, c409, started, picked, c409, c409, c409, c409}},
		{"another's decline", other("decline", ""), never},
		{"another's start", other("start", ""), never},
		{"another's pickup", other("pickup", ""), never},
		{"another's complete", other("complete", ""), never},
		{"another's undo", other("undo", ""), never},
		{"another's arrive", other("arrive", ""), never},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := newServer(t)
			c := cell{server: s, own: s.newDriver("own"), other: s.newDriver("other")}
			for i, state := range states {
				c.task = text(s.data(s.app("POST", "/v1/task/create",
					`{"type":3,"pickup":{"address":"p"},"drop":{"address":"d"}}`)), "task", "task_id")
				brought(c, state)
				s.clock.Advance(time.Second)
				events := func() []string {
					return texts(s.data(s.app("GET", "/v1/events?task_id="+c.task, ""))["events"], "type")
				}
				was, before, told := c.shown(), s.app("GET", "/v1/task?task_id="+c.task, "").body, events()
				r := row.do(c)
				got, happened := fmt.Sprint(r.status), len(events())-len(told)
				after := s.app("GET", "/v1/task?task_id="+c.task, "").body
				switch {
				case r.status == 200 && happened == 0:
					got = no
				case r.status == 200:
					got = c.shown()
				}
				if got != row.want[i] {
					t.Errorf("%s (%s): %s, want %s: %s", state, was, got, row.want[i], r.body)
				}
				if happened == 0 && after != before || happened > 1 {
					t.Errorf("%s: %d events, the task is %s, was %s", state, happened, after, before)
				}
				active := len(texts(s.data(s.app("GET", "/v1/trips?status=1&tracking_id="+c.task, ""))["trips"], "_id"))
				if is := c.shown(); active > 1 || (active == 1) != (is == started || is == picked) {
					t.Errorf("%s: %d active trips of a task that is %s", state, active, is)
				}
			}
		})
	}
}

// TestUndoOverHTTP: what the driver's app gets, and what it may send.
func TestUndoOverHTTP(t *testing.T) {
	s := newServer(t)
	token, task := s.newDriver("ravi"), s.newTask("")
	s.data(s.assign(task, "ravi"))
	path := "/v1/driver/tasks/" + task
	first := text(s.data(s.asDriver(token, "POST", path+"/start", `{"lnglat":[80.1,13]}`)), "trip", "_id")
	s.clock.Advance(time.Minute)
	s.data(s.asDriver(token, "POST", path+"/complete", `{"outcome":"failed","reason_code":"not_home","reason":"x"}`))
	s.clock.Advance(time.Minute)
	back := s.data(s.asDriver(token, "POST", path+"/undo",
		`{"step":"complete","lnglat":[80.2,13],"at":"2026-03-14T09:01:30Z"}`))
	if text(back, "task", "status") != "in_progress" || text(back, "task", "reason") != "" ||
		text(back, "task", "reason_code") != "" || at(back, "task", "completed_at") != nil ||
		text(back, "trip", "_id") == first || text(back, "trip", "starts_at") != "13,80.1" ||
		text(back, "trip", "started_at") != "2026-03-14T09:01:00.000Z" {
		t.Errorf("%v", back)
	}
	again := s.data(s.asDriver(token, "POST", path+"/undo", `{"step":"complete"}`))
	if d := cmp.Diff(map[string]any{"task": back["task"]}, again); d != "" {
		t.Errorf("again (-once +again)\n%s", d)
	}
	s.check("no step left", s.asDriver(token, "POST", path+"/undo", ""), 409, "")
	s.check("nor that one", s.asDriver(token, "POST", path+"/undo", `{"step":"start"}`), 409, "")
	s.data(s.asDriver(token, "POST", path+"/complete", ""))
	s.data(s.asDriver(token, "POST", path+"/undo", ""))
	events := s.data(s.app("GET", "/v1/events?task_id="+task, ""))["events"].([]any)
	if e := events[4]; text(e, "type") != "task.undone" || text(e, "data", "step") != "complete" ||
		text(e, "time") != "2026-03-14T09:01:30.000Z" || text(e, "actor") != "driver:ravi" {
		t.Errorf("%v", e)
	}
	if got := s.history(text(back, "trip", "_id")); len(got) != 1 {
		t.Errorf("its path: %v", got)
	}

	second := s.newTask("")
	s.data(s.assign(second, "ravi"))
	path = "/v1/driver/tasks/" + second
	started := s.data(s.asDriver(token, "POST", path+"/start", ""))
	undone := s.data(s.asDriver(token, "POST", path+"/undo", "{}"))
	if text(undone, "task", "status") != "assigned" || text(undone, "trip", "_id") != text(started, "trip", "_id") ||
		text(undone, "trip", "status") != "3" {
		t.Errorf("%v", undone)
	}
	s.data(s.asDriver(token, "POST", path+"/start", ""))
	s.clock.Advance(10 * time.Minute)
	s.check("too late", s.asDriver(token, "POST", path+"/undo", ""), 409, "")

	var rows []bad
	for _, body := range []string{
		`{"step":"arrive"}`, `{"step":""}`, `{"step":7}`, `{"step":["start"]}`, `{"Step":"start"}`,
	} {
		rows = append(rows, bad{"POST", path + "/undo", body, 400, "step"})
	}
	rows = append(rows,
		bad{"POST", path + "/undo", `{"at":"yesterday"}`, 400, "at"},
		bad{"POST", path + "/undo", `{"lnglat":[181,0]}`, 400, "lnglat"},
		bad{"POST", "/v1/driver/tasks/unknown/undo", "", 404, "task_id"},
	)
	s.checkAll(rows, "Authorization: Bearer "+token)
}

// TestReopenOverHTTP follows the customer's link through an end that is taken back.
func TestReopenOverHTTP(t *testing.T) {
	s := newServer(t)
	token, task := s.newDriver("ravi"), s.newTask("")
	s.data(s.assign(task, "ravi"))
	link := strings.TrimPrefix(text(s.data(s.app("GET", "/v1/task/trackingurl/"+task, "")), "webUrl"), s.base)
	shown := func() string { return text(s.data(s.do("GET", link+"/state", "")), "tracking", "status") }
	s.data(s.app("POST", "/v1/task/cancel", `{"task_id":"`+task+`","reason":"x"}`))
	if got := shown(); got != "completed" {
		t.Fatalf("the link shows %s", got)
	}
	got := s.data(s.app("POST", "/v1/task/reopen", `{"task_id":"`+task+`"}`))
	if text(got, "task", "status") != "assigned" || text(got, "task", "outcome") != "" ||
		text(got, "task", "reason") != "" || at(got, "task", "completed_at") != nil || shown() != "assigned" {
		t.Errorf("%v; the link shows %s", got, shown())
	}
	if told := s.told("ravi"); !slices.Equal(told, []string{"assigned", "cancelled", "reopened"}) {
		t.Errorf("ravi was told %v", told)
	}
	feed := s.notices(token, "?after=2")["notifications"]
	if text(feed, 0, "kind") != "reopened" || text(feed, 0, "task", "status") != "assigned" {
		t.Errorf("his feed: %v", feed)
	}
	s.data(s.app("POST", "/v1/task/complete", `{"task_id":"`+task+`"}`))
	s.clock.Advance(24 * time.Hour)
	s.check("too late", s.app("POST", "/v1/task/reopen", `{"task_id":"`+task+`"}`), 409, "")
	s.checkAll([]bad{
		{"POST", "/v1/task/reopen", `{}`, 400, "task_id"},
		{"POST", "/v1/task/reopen", ``, 400, ""},
		{"POST", "/v1/task/reopen", `{"task_id":7}`, 400, "task_id"},
		{"POST", "/v1/task/reopen", `{"task_id":"nobody"}`, 404, "task_id"},
	})
}

// TestHandOverOverHTTP hands a van over.
func TestHandOverOverHTTP(t *testing.T) {
	s := newServer(t)
	a, b := s.newDriver("a"), s.newDriver("b")
	var tasks []string
	for range 3 {
		tasks = append(tasks, s.newTask(""))
		s.data(s.assign(tasks[len(tasks)-1], "a"))
	}
	s.data(s.asDriver(a, "POST", "/v1/driver/tasks/"+tasks[1]+"/start", ""))
	hand := func(more string) reply {
		return s.app("POST", "/v1/users/driver/handover", `{"from":"a","to":"b"`+more+`}`)
	}
	s.check("one is in progress", hand(""), 409, "")
	one := s.data(hand(`,"task_ids":["` + tasks[2] + `","` + tasks[2] + `"]`))
	if got := texts(one["task_list"], "task_id"); !slices.Equal(got, tasks[2:]) {
		t.Errorf("%v, want %v", got, tasks[2:])
	}
	all := s.data(hand(`,"force":true`))
	if got := texts(all["task_list"], "task_id"); !slices.Equal(got, tasks[:2]) {
		t.Errorf("%v, want %v", got, tasks[:2])
	}
	for _, status := range texts(all["task_list"], "status") {
		if status != "assigned" {
			t.Errorf("one is %s", status)
		}
	}
	if got := s.data(hand("")); len(got["task_list"].([]any)) != 0 {
		t.Errorf("again: %v", got)
	}
	if got := s.told("b"); !slices.Equal(got, []string{"handed_over", "handed_over"}) {
		t.Errorf("b was told %v", got)
	}
	if got := s.told("a"); !slices.Equal(got, []string{
		"assigned", "assigned", "assigned", "unassigned", "unassigned", "unassigned",
	}) {
		t.Errorf("a was told %v", got)
	}
	if n := s.notices(b, "")["notifications"].([]any)[0]; at(n, "task_id") != nil || at(n, "task") != nil {
		t.Errorf("the notice: %v", n)
	}
	events := s.data(s.app("GET", "/v1/events?task_id="+tasks[0], ""))["events"].([]any)
	if e := events[2]; text(e, "type") != "task.assigned" || text(e, "data", "previous_driver_id") != "a" ||
		text(e, "data", "handover") == "" {
		t.Errorf("%v", e)
	}

	foreign := s.newTask("")
	many := strings.Repeat(`"x",`, 1000) + `"x"`
	s.checkAll([]bad{
		{"POST", "/v1/users/driver/handover", `{"to":"b"}`, 400, "from"},
		{"POST", "/v1/users/driver/handover", `{"from":"","to":"b"}`, 400, "from"},
		{"POST", "/v1/users/driver/handover", `{"from":"a"}`, 400, "to"},
		{"POST", "/v1/users/driver/handover", `{"from":"a","to":"a"}`, 400, "to"},
		{"POST", "/v1/users/driver/handover", `{"from":"a","to":"nobody"}`, 404, "to"},
		{"POST", "/v1/users/driver/handover", `{"from":"nobody","to":"a"}`, 404, "from"},
		{"POST", "/v1/users/driver/handover", `{"from":"a","to":"b","task_ids":[]}`, 400, "task_ids"},
		{"POST", "/v1/users/driver/handover", `{"from":"a","to":"b","task_ids":"x"}`, 400, "task_ids"},
		{"POST", "/v1/users/driver/handover", `{"from":"a","to":"b","task_ids":[7]}`, 400, "task_ids"},
		{"POST", "/v1/users/driver/handover", `{"from":"a","to":"b","task_ids":[` + many + `]}`, 400, "task_ids"},
		{"POST", "/v1/users/driver/handover", `{"from":"a","to":"b","task_ids":["x"]}`, 404, "task_ids"},
		{"POST", "/v1/users/driver/handover", `{"from":"a","to":"b","task_ids":["` + foreign + `"]}`, 409, "task_ids"},
		{"POST", "/v1/users/driver/handover", `{"from":"a","to":"b","force":"yes"}`, 400, "force"},
		{"POST", "/v1/task/assign", `{"task_id":"` + foreign + `","driver_id":"a","force":1}`, 400, "force"},
	})
}
