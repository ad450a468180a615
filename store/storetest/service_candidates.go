package storetest

import (
	"slices"

	"github.com/seed-8aba7b13/tracking"
)

// fits are the words for how a driver fits, the farthest from getting a task first.
var fits = []tracking.Fit{
	tracking.FitOffDuty, tracking.FitNoPosition, tracking.FitSilent, tracking.FitUnfit, tracking.FitExcluded,
	tracking.FitTooFar, tracking.FitBusy, tracking.FitYes,
}

// candidates asks who might get a task, and compares with the rows, one by one.
func (h *history) candidates() error {
	svc, _ := h.pick()
	id := h.task(svc)
	list, waits, err := svc.Candidates(h.ctx, id, 0)
	if h.unknown(err) {
		return err
	}
	a := h.before[svc.App()]
	t, own := a.tasks[id]
	if err != nil || !own {
		if own || err == nil {
			h.Fatalf("Candidates of a task (own: %v): %v", own, err)
		}
		return err
	}
	if len(list) != len(a.drivers) {
		h.Errorf("%d candidates, of %d drivers", len(list), len(a.drivers))
	}
	best := fits[0]
	last := -1.0
	for _, c := range list {
		want := h.fit(t, a.drivers[c.Driver.ID])
		if c.Fit != want {
			h.Errorf("driver %s is %s for task %s, want %s", c.Driver.ID, c.Fit, id, want)
		}
		if slices.Index(fits, want) > slices.Index(fits, best) {
			best = want
		}
		if c.Distance == nil || *c.Distance < last {
			h.Errorf("driver %s is at %v, after one at %v", c.Driver.ID, c.Distance, last)
			continue
		}
		last = *c.Distance
	}
	if sought := t.Waiting || !t.AssignAt.IsZero(); sought != (waits != nil) {
		h.Fatalf("task %s waits: %v, and is said to wait: %+v", id, sought, waits)
	}
	of, err := svc.Waits(h.ctx, []tracking.Task{t})
	if h.unknown(err) {
		return err
	}
	if err != nil || len(of) != 1 || (of[0] == nil) != (waits == nil) || waits != nil && *of[0] != *waits {
		h.Fatalf("task %s waits: %+v, in a list %+v, %v", id, waits, of, err)
	}
	if waits == nil {
		return nil
	}
	want := tracking.WaitReason(best)
	switch {
	case t.AssignAt.After(h.clock.now()):
		want = tracking.WaitWindow
	case best == tracking.FitOffDuty:
		want = tracking.WaitNoDriver
	case best == tracking.FitNoPosition:
		want = tracking.WaitSilent
	case best == tracking.FitYes:
		want = tracking.WaitBusy
	}
	if waits.Reason != want || waits.Since.Before(t.CreatedAt) || waits.Since.After(h.clock.now()) {
		h.Errorf("task %s of %v waits since %v by %s, want %s", id, t.CreatedAt, waits.Since, waits.Reason, want)
	}
	return nil
}

// fit is how a driver fits by the rows; no distance is too far in histories.
func (h *history) fit(t tracking.Task, d tracking.Driver) tracking.Fit {
	switch {
	case !d.Available:
		return tracking.FitOffDuty
	case !d.Position.Located():
		return tracking.FitNoPosition
	case d.Silent || d.Position.SeenAt.Before(h.clock.now().Add(-maxFixAge)):
		return tracking.FitSilent
	case !hasAll(d.Properties, t.Requires):
		return tracking.FitUnfit
	case slices.Contains(t.Excluded, d.ID):
		return tracking.FitExcluded
	case !hasRoom(d, maxOpen):
		return tracking.FitBusy
	}
	return tracking.FitYes
}
