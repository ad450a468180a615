package httpadapter_test

import (
	"context"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// brokenStore panics when told to, as a store of the program's own may.
type brokenStore struct {
	tracking.Store
	broken atomic.Bool
}

func (s *brokenStore) Fixes(ctx context.Context, app tracking.AppID, d tracking.DriverID,
	r tracking.FixRange) iter.Seq2[tracking.Fix, error] {
	if s.broken.Load() {
		panic("store: nil map")
	}
	return s.Store.Fixes(ctx, app, d, r)
}

// TestLivePanic: what panics while a link is followed ends its streams and not the server. Viewers
// come again, for the stream has had no end.
func TestLivePanic(t *testing.T) {
	store := &brokenStore{Store: memory.New()}
	s := newServerOn(t, store)
	token := s.newDriver("ravi")
	task := s.newTask("")
	s.data(s.app("POST", "/v1/task/assign", `{"task_id":"`+task+`","driver_id":"ravi"}`))
	s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/start", `{"lnglat":[80.26,13]}`))
	link := s.link(task)

	store.broken.Store(true)
	r := s.do("GET", link+"/live", "")
	s.check("from the start", r, 500, "")
	if strings.Contains(r.body, "nil map") {
		t.Errorf("it tells what happened inside: %s", r.body)
	}

	store.broken.Store(false)
	v := s.watch(link)
	if event, data := v.next(); event != "state" {
		t.Fatalf("%s: %s", event, data)
	}
	store.broken.Store(true)
	s.clock.Advance(time.Minute)
	r = s.asDriver(token, "POST", "/v1/driver/fixes", `{"fixes":[{"lnglat":[80.261,13],"time":"2026-03-14T09:01:00Z"}]}`)
	s.check("a fix, which is kept and then looked at", r, 500, "")
	if event, data := v.next(); event != "EOF" {
		t.Errorf("%s: %s", event, data)
	}
	if n := strings.Count(s.log.String(), `msg="a tracking link cannot be followed"`); n != 2 {
		t.Errorf("the log tells of %d panics, want 2", n)
	}
}
