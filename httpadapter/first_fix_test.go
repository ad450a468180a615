package httpadapter_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

// The first fix of a trip lies in another country. Once two others contradict it, link, stream,
// page and trip know nothing of it.
func TestFirstFixIsAJump(t *testing.T) {
	type fix struct {
		after    time.Duration
		lng, lat float64
	}
	fixes := []fix{
		{10 * time.Second, 114.06, 22.54}, {40 * time.Second, 80.27, 13.08}, {70 * time.Second, 80.2705, 13.08},
	}
	for _, c := range []struct {
		name  string
		calls [][]fix
	}{
		{"one by one", [][]fix{fixes[:1], fixes[1:2], fixes[2:]}},
		{"in one call", [][]fix{fixes}},
		{"the first one late", [][]fix{fixes[1:], fixes[:1]}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t)
			token := s.newDriver("d1")
			id := text(s.data(s.app("POST", "/v1/task/create",
				`{"type": 2, "drop": {"lnglat": [80.28, 13.08], "address": "12 River Street"}}`)), "task", "task_id")
			s.data(s.app("POST", "/v1/task/assign", fmt.Sprintf(`{"task_id": %q, "driver_id": "d1"}`, id)))
			s.data(s.asDriver(token, "POST", "/v1/driver/availability", `{"availability": true}`))
			link := s.link(id)
			trip := text(s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+id+"/start", `{}`)), "trip", "_id")
			stream := s.follow(link, "identity")
			began := s.clock.Now()
			for _, call := range c.calls {
				body, last := "", s.clock.Now()
				for i, f := range call {
					if i > 0 {
						body += ","
					}
					at := began.Add(f.after)
					if at.After(last) {
						last = at
					}
					body += fmt.Sprintf(`{"lnglat": [%g, %g], "time": %q, "accuracy": 8}`, f.lng, f.lat,
						at.Format(time.RFC3339))
				}
				s.clock.Advance(last.Sub(s.clock.Now()))
				s.data(s.asDriver(token, "POST", "/v1/driver/fixes", `{"fixes": [`+body+`]}`))
			}

			state := s.state(link)
			if got, want := at(state, "path"), []any{
				[]any{80.27, 13.08}, []any{80.2705, 13.08},
			}; !reflect.DeepEqual(got, want) {
				t.Errorf("the path is %v, want %v", got, want)
			}
			if got, want := at(state, "position", "lnglat"), []any{80.2705, 13.08}; !reflect.DeepEqual(got, want) ||
				at(state, "position", "live") != true {
				t.Errorf("the position is %v, want %v, live", at(state, "position"), want)
			}
			eta, err := time.Parse(time.RFC3339, text(state, "eta", "time"))
			if left := eta.Sub(s.clock.Now()); err != nil || left < time.Minute || left > 20*time.Minute {
				t.Errorf("expected in %v for 1,029 m: %v", left, err)
			}
			stream.catchUp(state)

			tr := at(s.data(s.app("GET", "/v1/trips/"+trip, "")), "trip")
			if got := text(tr, "starts_at"); got != "13.08,80.27" {
				t.Errorf("starts_at is %q", got)
			}
			if d, _ := at(tr, "distance").(float64); d < 54.1 || d > 54.3 {
				t.Errorf("the distance is %v m", at(tr, "distance"))
			}
		})
	}
}
