package httpadapter_test

import (
	"strings"
	"testing"
)

// TestStuckOverHTTP: a phone tells of a step that was refused; the application sees it with the task,
// and no driver does; either can say that it is settled.
func TestStuckOverHTTP(t *testing.T) {
	s := newServer(t)
	ravi, meena, task := s.newDriver("ravi"), s.newDriver("meena"), s.newTask("")
	s.data(s.assign(task, "ravi"))
	s.data(s.assign(task, "meena"))
	at := "/v1/driver/tasks/" + task
	const noted = `{"message":"Step noted","success":true}` + "\n"
	if r := s.asDriver(ravi, "POST", at+"/stuck", `{"step":"complete","at":"2026-03-14T08:59:30Z","why":"gone"}`); r.body != noted {
		t.Errorf("%d %s", r.status, r.body)
	}
	s.check("no word", s.asDriver(ravi, "POST", at+"/stuck", `{"step":"sing"}`), 400, "step")
	s.check("none", s.asDriver(ravi, "POST", at+"/stuck", `{}`), 400, "step")

	stuck := func() string {
		t.Helper()
		body := s.app("GET", "/v1/task?task_id="+task, "").body
		_, after, found := strings.Cut(body, `"stuck":`)
		if !found {
			return ""
		}
		list, _, _ := strings.Cut(after, "]")
		return list + "]"
	}
	const want = `[{"driver_id":"ravi","step":"complete","at":"2026-03-14T09:00:00.000Z","why":"gone"}]`
	if got := stuck(); got != want {
		t.Errorf("the application sees %s, want %s", got, want)
	}
	if r := s.asDriver(meena, "GET", "/v1/driver/tasks", ""); strings.Contains(r.body, "stuck") {
		t.Errorf("a driver sees %s", r.body)
	}
	for why, settle := range map[string]func() reply{
		"gone": func() reply { return s.asDriver(ravi, "POST", at+"/settle", `{"step":"complete"}`) },
		"pin":  func() reply { return s.app("POST", "/v1/task/settle", `{"task_id":"`+task+`"}`) },
	} {
		again := `{"step":"complete","why":"` + why + `","at":"2026-03-14T08:59:30Z"}`
		s.asDriver(ravi, "POST", at+"/stuck", again)
		if stuck() == "" {
			t.Fatal("it is not stuck")
		}
		for range 2 {
			s.check("settle", settle(), 200, "")
		}
		if got := stuck(); got != "" {
			t.Errorf("after it was settled: %s", got)
		}
		if s.check("retried", s.asDriver(ravi, "POST", at+"/stuck", again), 200, ""); stuck() != "" {
			t.Errorf("the phone says it again: %s", stuck())
		}
	}
	s.check("unknown", s.app("POST", "/v1/task/settle", `{"task_id":"nobody"}`), 404, "task_id")
}
