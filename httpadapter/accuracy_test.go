package httpadapter_test

import (
	"fmt"
	"testing"
	"time"
)

// TestLinkAccuracy: how far off a position may be stands in the state and in each move, and is left
// out where the phone did not say it. A coarse position shows only while there is nothing finer,
// with what it is worth.
func TestLinkAccuracy(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	task := s.newTask("")
	s.data(s.assign(task, "ravi"))
	s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/start", ""))
	link := s.link(task)
	f := s.follow(link, "identity")
	for i, c := range []struct {
		said string
		want any // nil: left out
	}{
		{`,"accuracy":2500`, 2500.}, {`,"accuracy":12.5`, 12.5}, {`,"accuracy":0`, 0.}, {``, nil},
		{`,"accuracy":null`, nil}, {`,"accuracy":2500`, nil}, {`,"accuracy":8`, 8.},
	} {
		s.clock.Advance(10 * time.Second)
		moves := f.moves
		s.data(s.asDriver(token, "POST", "/v1/driver/fixes",
			fmt.Sprintf(`{"fixes":[{"lnglat":[80.26,%v],"time":%q%s}]}`, 13+float64(i)/1e4,
				s.clock.Now().Format(time.RFC3339), c.said)))
		state := s.state(link)
		position, _ := state["position"].(map[string]any)
		if got, there := position["accuracy"]; got != c.want || there != (c.want != nil) {
			t.Errorf("fix %d, %q: the state says %v, %v; want %v", i, c.said, got, there, c.want)
		}
		f.catchUp(state)
		if i == 2 && f.moves == moves {
			t.Error("a fix of the same kind as the one before came as a state: no move was looked at")
		}
	}
}
