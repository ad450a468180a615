package tracking_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// clashing is a store that others are at work on, as long as clashes last.
type clashing struct {
	tracking.Store
	clashes int
}

func (s *clashing) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	if s.clashes > 0 {
		s.clashes--
		return tracking.Written{}, &tracking.ConflictError{}
	}
	return s.Store.Commit(ctx, app, cs)
}

// A clash that names no row is tried again, and the caller hears nothing of it.
func TestPassingClashIsTriedAgain(t *testing.T) {
	store := &clashing{Store: memory.New()}
	w := newWorldOn(t, store)
	store.clashes = 3
	w.driver("asha", 100)
	store.clashes = 3
	task := w.create(true)
	if task.DriverID != "asha" {
		t.Errorf("the task went to %q", task.DriverID)
	}
	store.clashes = 3
	if _, _, err := w.StartTask(w.ctx, "asha", task.ID, tracking.Step{}); err != nil {
		t.Fatal(err)
	}
	if got := w.told(tracking.KindTask, string(task.ID), 0); len(got) != 3 || store.clashes != 0 {
		t.Errorf("told %q, %d clashes left", got, store.clashes)
	}
}

// generous is a store that takes who was heard of a little later for silent, too.
type generous struct {
	tracking.Store
	by time.Duration
}

func (s generous) Due(ctx context.Context, q tracking.DueQuery) ([]tracking.Due, error) {
	if q.Kind == tracking.DueSilence {
		q.Before = q.Before.Add(s.by)
	}
	return s.Store.Due(ctx, q)
}

// Who is listed as silent too early is left alone, and not counted as something that was done.
func TestSilenceIsLookedAtAgain(t *testing.T) {
	w := newWorldOn(t, generous{memory.New(), 5 * time.Minute})
	w.driver("asha", 100)
	must(w.MarkSilent(w.ctx))(t)
	w.advance(14 * time.Minute)
	must(w.RecordFixes(w.ctx, "asha", nil))(t)
	w.advance(6 * time.Minute)
	if n := must(w.MarkSilent(w.ctx))(t); n != 0 {
		t.Errorf("%d were marked 6 minutes after a sign of life, want none", n)
	}
	w.advance(5 * time.Minute)
	if n := must(w.MarkSilent(w.ctx))(t); n != 1 {
		t.Errorf("%d were marked 11 minutes after it, want 1", n)
	}
}
