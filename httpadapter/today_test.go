package httpadapter_test

import (
	"testing"
	"time"
)

// TestTodaysTasks: a driver is shown what was completed within 24 hours, and not for ever what a
// clock of ours that was wrong completed in the future.
func TestTodaysTasks(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	complete := func() string {
		t.Helper()
		id := s.newTask("")
		s.data(s.assign(id, "ravi"))
		s.data(s.app("POST", "/v1/task/complete", `{"task_id":"`+id+`"}`))
		return id
	}
	shown := func() (ids []string) {
		t.Helper()
		for _, task := range s.data(s.asDriver(token, "GET", "/v1/driver/tasks", ""))["task_list"].([]any) {
			ids = append(ids, text(task, "task_id"))
		}
		return ids
	}
	const years = 10 * 365 * 24 * time.Hour
	s.clock.Advance(years)
	ahead := complete()
	s.same("in the future", shown(), ahead)
	s.clock.Advance(-years)
	s.same("when the clock is right", shown())
	today := complete()
	s.same("completed today", shown(), today)
	s.clock.Advance(24*time.Hour - time.Minute)
	s.same("nearly a day later", shown(), today)
	s.clock.Advance(2 * time.Minute)
	s.same("a day later", shown())
}

func (s *server) same(when string, got []string, want ...string) {
	s.Helper()
	if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
		s.Errorf("%s the driver is shown %q, want %q", when, got, want)
	}
}
