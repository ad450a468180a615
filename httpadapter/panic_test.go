package httpadapter_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

// brokenRouter panics when told to, as a program's own code may.
type brokenRouter struct{ broken atomic.Bool }

func (r *brokenRouter) TravelTime(context.Context, []tracking.LngLat) (time.Duration, error) {
	if r.broken.Load() {
		panic("router: nil map")
	}
	return 0, errors.New("no way known")
}

// TestLivePanic: what panics while a link is followed ends its streams and not the server. Viewers come again, for the stream has had no end.
func TestLivePanic(t *testing.T) {
	router := &brokenRouter{}
	s := newServer(t, func(so *tracking.Options, _ *httpadapter.Options) { so.Router = router })
	token := s.newDriver("ravi")
	task := s.newTask("")
	s.data(s.app("POST", "/v1/task/assign", `{"task_id":"`+task+`","driver_id":"ravi"}`))
	s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/start", `{"lnglat":[80.26,13]}`))
	link := s.link(task)

	router.broken.Store(true)
	r := s.do("GET", link+"/live", "")
	s.check("from the start", r, 500, "")
	if strings.Contains(r.body, "router") {
		t.Errorf("it tells what happened inside: %s", r.body)
	}

	router.broken.Store(false)
	v := s.watch(link)
	if event, data := v.next(); event != "state" {
		t.Fatalf("%s: %s", event, data)
	}
	router.broken.Store(true)
	s.clock.Advance(time.Minute) // the expected time is asked for anew
	s.fix(token, 80.261, 13)
	if event, data := v.next(); event != "EOF" {
		t.Errorf("%s: %s", event, data)
	}
	if n := strings.Count(s.log.String(), `msg="a tracking link cannot be followed"`); n != 2 {
		t.Errorf("the log tells of %d panics, want 2", n)
	}
}
