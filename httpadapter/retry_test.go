package httpadapter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// failed creates a task that fails because nobody is home.
func (s *server) failed(more string) string {
	s.Helper()
	task := s.newTask(more)
	s.data(s.app("POST", "/v1/task/complete",
		`{"task_id":"`+task+`","outcome":"failed","reason":"canary","reason_code":"not_home"}`))
	return task
}

// TestRetryOverHTTP: a task that failed is tried again, once; what it was made of comes again, its
// link goes on, and both tasks name each other.
func TestRetryOverHTTP(t *testing.T) {
	s := newServer(t)
	first := s.newTask(`,"order_id":"#1001","notes":"Ring twice","customer":{"name":"Asha","mobile":"+91 98"},
		"requires":{"vehicle":"van"}`)
	link := s.link(first)
	s.data(s.app("POST", "/v1/task/complete",
		`{"task_id":"`+first+`","outcome":"failed","reason":"canary","reason_code":"not_home"}`))
	v := s.watch(link) // over: the browser is told not to come again
	if v.res.StatusCode != 204 {
		t.Errorf("the stream of one that has ended: %d", v.res.StatusCode)
	}
	s.clock.Advance(time.Hour)

	again := s.app("POST", "/v1/task/retry", `{"task_id":"`+first+`","window":{"from":"2026-03-15T09:00Z",
		"to":"2026-03-15T11:00Z"},"promised":"2026-03-15T10:00Z"}`)
	second := text(s.data(again), "task", "task_id")
	if msg := text(s.json(again, 200), "message"); msg != "Task created" || second == first {
		t.Errorf("%s %s", msg, second)
	}
	before := at(s.data(s.app("GET", "/v1/task/list?page=2&limit=1", "")), "task_list", 0).(map[string]any)
	got := at(s.data(again), "task").(map[string]any)
	want := map[string]any{
		"task_id": second, "status": "created", "outcome": "", "reason": "", "reason_code": "", "retry_of": first,
		"retried_by": "", "window": map[string]any{"from": "2026-03-15T09:00:00.000Z", "to": "2026-03-15T11:00:00.000Z"},
		"promised": "2026-03-15T11:00:00.000Z", "time": "2026-03-14T10:00:00.000Z",
		"created_at": "2026-03-14T10:00:00.000Z", "updated_at": "2026-03-14T10:00:00.000Z", "phase": "created",
		"version": 1.0,
	}
	for _, name := range []string{"type", "notes", "order_id", "drop", "requires", "driver_id", "customer_note"} {
		if want[name] = before[name]; want[name] == nil {
			t.Errorf("the first has no %s", name)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the new task (-want +got)\n%s", d)
	}
	if text(before, "retried_by") != second || text(before, "retry_of") != "" ||
		text(before, "reason_code") != "not_home" {
		t.Errorf("the first: %v", before)
	}

	// The link goes on with the new one, its stream too.
	state := s.state(link)
	wantEarlier := map[string]any{"outcome": "failed", "reason_code": "not_home", "ended_at": "2026-03-14T09:00:00.000Z"}
	if d := cmp.Diff(wantEarlier, state["earlier"]); d != "" || state["status"] != "created" ||
		state["reason_code"] != "" {
		t.Errorf("the link shows %v", state)
	}
	if got := s.link(first); got != link {
		t.Errorf("the first one's link is %s, was %s", got, link)
	}
	v = s.watch(link)
	if event, data := v.next(); event != "state" || text(s.state(link), "status") != "created" {
		t.Errorf("the stream begins with %s %s", event, data)
	}
	token := s.newDriver("ravi")
	s.data(s.assign(second, "ravi"))
	for {
		event, data := v.next()
		if event != "state" {
			t.Fatalf("the stream goes on with %s %s", event, data)
		}
		if got := s.state(link); got["status"] == "assigned" {
			break
		}
	}

	// Once; and the driver is told of what it is.
	if r := s.app("POST", "/v1/task/retry", `{"task_id":"`+first+`"}`); text(s.data(r), "task", "task_id") != second ||
		text(s.data(r), "task", "status") != "assigned" {
		t.Errorf("asked again: %s", r.body)
	}
	if got := s.data(s.asDriver(token, "GET", "/v1/driver/tasks", "")); text(got, "task_list", 0, "retry_of") != first {
		t.Errorf("the driver's tasks: %v", got)
	}
	var told []string
	for _, e := range s.data(s.app("GET", "/v1/events?limit=3&after="+s.eventOf(first, 1), ""))["events"].([]any) {
		told = append(told, fmt.Sprint(text(e, "type"), " ", at(e, "data")))
	}
	if d := cmp.Diff([]string{
		"task.retried map[retried_by:" + second + "]", "task.created map[retry_of:" + first + "]",
	}, told[:2]); d != "" {
		t.Errorf("events (-want +got)\n%s", d)
	}
}

// eventOf is the id of the n-th event of a task, from 0.
func (s *server) eventOf(task string, n int) string {
	s.Helper()
	return text(s.data(s.app("GET", "/v1/events?task_id="+task, "")), "events", n, "id")
}

func TestRetryRefuses(t *testing.T) {
	s := newServer(t)
	open, done, failed := s.newTask(""), s.newTask(""), s.failed("")
	s.data(s.app("POST", "/v1/task/complete", `{"task_id":"`+done+`"}`))
	foreign := text(s.data(s.do("POST", "/v1/task/create?apikey=key-b", `{"type":2,"drop":{"address":"x"}}`)), "task",
		"task_id")
	s.data(s.do("POST", "/v1/task/cancel?apikey=key-b", `{"task_id":"`+foreign+`"}`))
	retry := func(members string, status int, field string) bad {
		return bad{"POST", "/v1/task/retry", `{` + members + `}`, status, field}
	}
	of := func(id, more string, status int, field string) bad {
		return retry(`"task_id":"`+id+`"`+more, status, field)
	}
	s.checkAll([]bad{
		{"POST", "/v1/task/retry", "", 400, ""},
		retry(``, 400, "task_id"),
		retry(`"task_id":""`, 400, "task_id"),
		retry(`"task_id":7`, 400, "task_id"),
		of("nobody", "", 404, "task_id"),
		of(foreign, "", 404, "task_id"),
		of(`\u0000`, "", 404, "task_id"),
		of(open, "", 409, ""),
		of(done, "", 409, ""),
		of(failed, `,"window":[]`, 400, "window"),
		of(failed, `,"window":{"from":"tomorrow"}`, 400, "window.from"),
		of(failed, `,"window":{"to":7}`, 400, "window.to"),
		of(failed, `,"window":{"from":"2026-02-03T10:00Z","to":"2026-02-03T09:59:59.999Z"}`, 400, "window.to"),
		of(failed, `,"promised":""`, 400, "promised"),
		of(failed, `,"promised":"2026-02-30T10:00Z"`, 400, "promised"),
		of(failed, `,"promised":7`, 400, "promised"),
	})
	if got := s.data(s.app("GET", "/v1/task?task_id="+failed, "")); text(got, "task", "retried_by") != "" {
		t.Errorf("refused, and done: %v", got)
	}
	s.checkAll([]bad{of(failed, `,"window":null,"promised":null,"type":7,"notes":"other"`, 200, "")})
}
