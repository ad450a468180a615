package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-8aba7b13/tracking"
)

// Cut is a store whose connections are cut at random, and the same rows without that.
type Cut struct {
	Through, Direct tracking.Store

	// Settle returns when nothing is under way any more that calls of Through have begun.
	Settle func()
}

// RunCut plays the histories of the service and of the model while connections are cut: what a Commit
// says is done is there, what it refuses is not, and where it says that the store is unavailable all of
// it is there or nothing. The books balance after each step, whatever became of it, and all that can be
// read is what the reference has.
func RunCut(t *testing.T, open func(t testing.TB) Cut) {
	t.Run("service", func(t *testing.T) { cutService(t, open) })
	t.Run("model", func(t *testing.T) { cutModel(t, open) })
}

// cutModel plays the model's histories. What is read comes without cuts, as do leases and purges, of
// which nobody could tell whether they were done.
func cutModel(t *testing.T, open func(t testing.TB) Cut) {
	play(t, func(t *testing.T) func(*rapid.T) {
		return func(rt *rapid.T) {
			c := open(t)
			defer c.Direct.Close()
			defer c.Through.Close()
			w := newWorld(rt, cutWriter{c.Direct, c.Through})
			w.direct = &c
			repeat(rt, 2, w.actions())
			w.compareAll()
		}
	})
}

// cutWriter writes what the model's histories write where connections are cut.
type cutWriter struct {
	tracking.Store
	through tracking.Store
}

// Commit implements [tracking.Store]. Of what has no version and no event nobody could tell whether it is
// done: that goes where nothing is cut.
func (w cutWriter) Commit(
	ctx context.Context, app tracking.AppID, cs *tracking.Changeset,
) (tracking.Written, error) {
	if len(cs.Tasks)+len(cs.Trips)+len(cs.Drivers)+len(cs.DeleteDrivers)+len(cs.Keys)+len(cs.Events) == 0 {
		return w.Store.Commit(ctx, app, cs)
	}
	return w.through.Commit(ctx, app, cs)
}

// RecordFixes implements [tracking.Store].
func (w cutWriter) RecordFixes(
	ctx context.Context, app tracking.AppID, b tracking.FixBatch,
) (tracking.Recorded, error) {
	return w.through.RecordFixes(ctx, app, b)
}

// commitAgain finds out what has become of a Commit whose answer was lost: what is done already is
// refused, as its rows have gone on since, and what is not is done now. Allowed tells that there was
// nothing to refuse at first.
func (w *world) commitAgain(
	app tracking.AppID, cs *tracking.Changeset, allowed bool,
) (written tracking.Written, err error, done bool) {
	w.direct.Settle()
	written, err = w.direct.Direct.Commit(w.ctx, app, cs)
	if allowed && err != nil {
		return tracking.Written{}, nil, true
	}
	return written, err, false
}

// driverMarks are what any recording of fixes changes of a driver, if it changes anything.
type driverMarks struct {
	Position tracking.Position
	Kept     []tracking.KeptFix
}

func (w *world) marks(app tracking.AppID, id tracking.DriverID) (m driverMarks) {
	if w.direct == nil {
		return m
	}
	d, err := w.direct.Direct.Driver(w.ctx, app, id)
	if errors.Is(err, tracking.ErrNotFound) {
		return m
	}
	w.noError(err)
	m.Position = d.Position
	m.Kept, err = w.direct.Direct.KeptFixes(w.ctx, app, id, tracking.FixRange{Limit: 1 << 20})
	w.noError(err)
	return m
}

// cutService plays the histories of [RunService].
func cutService(t *testing.T, open func(t testing.TB) Cut) {
	play(t, func(t *testing.T) func(*rapid.T) {
		return fewer(50, func(rt *rapid.T) {
			c := open(t)
			defer c.Direct.Close()
			defer c.Through.Close()
			h := newHistory(rt, c.Direct)
			h.settle = c.Settle
			w := &witness{c.Through, c, func(text string, args ...any) { h.Errorf(text, args...) }}
			svc := service(rt, w, h.opts)
			for _, app := range historyApps {
				h.svc[app] = svc.ForApp(app)
			}
			repeat(rt, 3, h.actions())
			h.check()
		})
	})
}

// witness looks at what became of each Commit.
type witness struct {
	tracking.Store
	cut    Cut
	errorf func(string, ...any)
}

func (w *witness) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	written, err := w.Store.Commit(ctx, app, cs)
	there, asked := 0, 0
	if errors.Is(err, tracking.ErrUnavailable) {
		w.cut.Settle()
	}
	for _, e := range cs.Events {
		list, _, e2 := w.cut.Direct.Events(ctx, app, tracking.EventFilter{Subject: e.Subject, Limit: 1 << 20})
		if e2 != nil {
			return written, errors.Join(fmt.Errorf("the events of %v", e.Subject), e2)
		}
		asked++
		for _, other := range list {
			if other.ID == e.ID {
				there++
			}
		}
	}
	switch {
	case err == nil && there < asked:
		w.errorf("a Commit is done, and of its %d events %d are there", asked, there)
	case errors.Is(err, tracking.ErrUnavailable) && there > 0 && there < asked:
		w.errorf("of a Commit whose outcome is unknown %d events are there, of %d", there, asked)
	case err != nil && !errors.Is(err, tracking.ErrUnavailable) && there > 0:
		w.errorf("a Commit was refused (%v), and %d of its events are there", err, there)
	}
	return written, err
}
