package tracking_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// between is a Store in which something else happens just before a commit, once.
type between struct {
	tracking.Store
	then func()
}

func (b *between) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	if then := b.then; then != nil {
		b.then = nil
		then()
	}
	return b.Store.Commit(ctx, app, cs)
}

// A fix that comes while silence is noted is not lost.
func TestHeardOfWhileSilenceIsNoted(t *testing.T) {
	store := &between{Store: memory.New()}
	w := newWorldOn(t, store)
	w.driver("own", 100)
	w.advance(11 * time.Minute)
	store.then = func() { must(w.RecordFixes(w.ctx, "own", nil))(t) }
	must(w.MarkSilent(w.ctx))(t)
	if next := w.create(true); next.DriverID != "own" {
		t.Error("just heard of, the driver is not offered anything")
	}
}

func TestAssignWaitingCountsItsOwn(t *testing.T) {
	store := &between{Store: memory.New()}
	w := newWorldOn(t, store)
	first := w.create(true)
	w.advance(time.Second)
	second := w.create(true)
	w.driver("own", 100)
	store.then = func() { must(w.CancelTask(w.ctx, first.ID, tracking.Reason{}))(t) }
	if n := must(w.AssignWaiting(w.ctx))(t); n != 1 {
		t.Errorf("assigned %d, want 1", n)
	}
	if got := w.task(second.ID); got.DriverID != "own" {
		t.Error("the next one was passed over")
	}
}

// A clock that is put back holds up nobody.
func TestClockPutBack(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	times, calls := []time.Time{start.Add(3 * time.Hour), start}, 0
	back := false
	svc, err := tracking.New(memory.New(), &tracking.Options{Now: func() time.Time {
		if !back {
			return start
		}
		if calls++; calls > 100 {
			cancel()
		}
		return times[min(calls, len(times))-1]
	}})
	if err != nil {
		t.Fatal(err)
	}
	must(svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "a", Available: new(true)}))(t)
	id := must(svc.StartTrip(ctx, "a", "x", tracking.Step{}))(t).ID
	back = true
	if _, err := svc.Trip(ctx, id); err != nil {
		t.Errorf("%v after %d looks at the clock", err, calls)
	}
}
