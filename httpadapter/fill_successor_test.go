package httpadapter_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

// notified keeps what it is told of.
type notified struct {
	mu   sync.Mutex
	list []tracking.Notification
}

func (k *notified) Notify(_ context.Context, n tracking.Notification) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list = append(k.list, n)
	return nil
}

// TestFillNobodyElse: events of a driver who is gone, told late, hold nothing of the one who has
// his id now; those of that one hold his record.
func TestFillNobodyElse(t *testing.T) {
	var told notified
	s := newServer(t, func(o *tracking.Options, _ *httpadapter.Options) { o.Notifier = &told })
	// live is a driver's day: each type of event that names him.
	live := func(name string) {
		token := s.newDriver("d7")
		s.data(s.app("POST", "/v1/users/driver", `{"driver_id":"d7","name":"`+name+`","mobile":"555"}`))
		s.data(s.app("POST", "/v1/assign_trip", `{"user_id":"d7","tracking_id":"x","message":"for `+name+`"}`))
		s.data(s.asDriver(token, "POST", "/v1/driver/trips", `{"tracking_id":"y"}`))
		s.data(s.assign(s.newTask(`,"order_id":"declined"`), "d7"))
		task := s.newTask(`,"order_id":"done"`)
		s.data(s.assign(task, "d7"))
		s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/start", ""))
		s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/complete", ""))
		s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/undo", ""))
		s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/complete", ""))
		s.data(s.app("POST", "/v1/task/reopen", `{"task_id":"`+task+`"}`))
		s.data(s.app("POST", "/v1/task/complete", `{"task_id":"`+task+`"}`))
		s.data(s.asDriver(token, "POST", "/v1/driver/availability", `{"availability":false}`))
	}
	live("First")
	s.data(s.app("POST", "/v1/users/driver/delete", `{"driver_id":"d7","force":true}`))
	live("Second")
	if _, err := s.svc.DeliverEvents(t.Context()); err != nil {
		t.Fatal(err)
	}
	filled := map[string]map[bool]int{} // by type: how many hold the record of the driver who is there
	second, err := s.svc.Driver(t.Context(), "d7")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range told.list {
		v, err := s.h.Fill(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var rows struct {
			Driver  *struct{ Name string }
			Request *struct{ Message string }
		}
		if err := json.Unmarshal(b, &rows); err != nil {
			t.Fatal(err)
		}
		his := strings.Contains(string(b), "Second") || rows.Driver != nil || rows.Request != nil
		if his && n.Event.Person != second.Person {
			t.Errorf("%s of another person holds %s", n.Event.Type, b)
		}
		of := string(n.Event.Type)
		if filled[of] == nil {
			filled[of] = map[bool]int{}
		}
		filled[of][his]++
	}
	want := map[string]map[bool]int{
		"driver.available": {true: 1, false: 1}, "driver.unavailable": {true: 1, false: 1},
		"driver.joined":  {true: 1, false: 1},
		"trip.requested": {true: 1, false: 1}, "trip.started": {true: 3, false: 3}, "trip.stopped": {true: 2, false: 3},
		"task.created": {false: 4}, "task.assigned": {true: 2, false: 2}, "task.unassigned": {false: 1},
		"task.started":   {true: 1, false: 1},
		"task.completed": {true: 3, false: 3}, "task.undone": {true: 1, false: 1}, "task.reopened": {true: 1, false: 1},
	}
	if d := cmp.Diff(want, filled); d != "" {
		t.Errorf("by type, whether they hold the record of the driver (-want +got)\n%s", d)
	}
}
