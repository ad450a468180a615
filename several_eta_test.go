package tracking_test

import (
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// Two processes show one expected time for a link and one for each stop of the route, whichever is
// asked, whenever it looked first, and whatever it has seen before.
func TestSeveralServicesShowOneExpectedTime(t *testing.T) {
	store := memory.New()
	w := newWorldOn(t, store)
	other := must(tracking.New(store, &tracking.Options{Now: w.now}))(t)
	w.driver("own", 100)
	id := w.create(true).ID
	if _, _, err := w.StartTask(w.ctx, "own", id, tracking.Step{LngLat: east(100)}); err != nil {
		t.Fatal(err)
	}
	link := must(w.TaskLink(w.ctx, id))(t)
	compare := func(when string, first, second *tracking.Service) {
		t.Helper()
		a := must(first.Tracking(w.ctx, link))(t).ETA
		ra := must(first.Route(w.ctx, "own"))(t)
		w.advance(7 * time.Second)
		b := must(second.Tracking(w.ctx, link))(t).ETA
		rb := must(second.Route(w.ctx, "own"))(t)
		if a == nil || b == nil || *a != *b {
			t.Errorf("%s one shows %+v, 7 s later the other %+v", when, a, b)
		}
		for i := range ra.Stops {
			if x, y := ra.Stops[i].ETA, rb.Stops[i].ETA; x == nil || y == nil || *x != *y {
				t.Errorf("%s stop %d is expected by one %+v, 7 s later by the other %+v", when, i, x, y)
			}
		}
	}
	compare("at the start", w.Service, other)
	for i := range 40 {
		var fixes []tracking.Fix
		for at := w.now().Add(-6 * time.Second); !at.After(w.now()); at = at.Add(700 * time.Millisecond) {
			fixes = append(fixes, tracking.Fix{Time: at, LngLat: *east(100 + at.Sub(start).Seconds()*float64(5+i%7))})
		}
		must(w.RecordFixes(w.ctx, "own", fixes))(t)
		w.advance(23 * time.Second)
		if i%3 == 0 {
			compare("on the way", other, w.Service)
		} else if i%3 == 1 {
			compare("on the way", w.Service, other)
		}
	}
	if err := pickUp(w, id); err != nil {
		t.Fatal(err)
	}
	compare("after the pickup", other, w.Service)
}
