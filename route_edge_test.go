package tracking_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// beside has another process on the same store and clock do something.
func (w *world) beside(store tracking.Store) (by func(do func())) {
	w.t.Helper()
	opts := &tracking.Options{Now: w.now, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	here, there := w.Service, must(tracking.New(store, opts))(w.t)
	return func(do func()) {
		w.Service = there
		defer func() { w.Service = here }()
		do()
	}
}

// begin gives own a drop so many metres east, and starts it.
func (w *world) begin(drop float64) tracking.TaskID {
	w.t.Helper()
	id := w.give(tracking.TypeDrop, 0, drop)
	if err := startOwn(w, id); err != nil {
		w.t.Fatal(err)
	}
	return id
}

// every has own at each of these metres, so long apart.
func (w *world) every(d time.Duration, metres ...float64) {
	w.t.Helper()
	for _, m := range metres {
		w.advance(d)
		w.fix(m)
	}
}

func (w *world) wantApproaches(when string, id tracking.TaskID, want ...string) {
	w.t.Helper()
	if d := cmp.Diff(want, w.approaches(id)); d != "" {
		w.t.Errorf("%s (-want +got):\n%s", when, d)
	}
}

// Who stands at the door is there, and not two minutes away.
func TestNotLateAtTheDoor(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	id := w.begin(1000)
	second := w.give(tracking.TypeDrop, 0, 3000)
	must(w.UpdateTask(w.ctx, id, tracking.TaskUpdate{Promised: new(w.now().Add(10 * time.Minute))}))(t)
	w.advance(9 * time.Minute)
	w.fix(1000)
	w.every(10*time.Second, 1000, 1000, 1000, 1000)
	if w.task(id).Late(w.now()) {
		t.Error("at the door before the promise it is late")
	}
	stops := must(w.Route(w.ctx, "own"))(t).Stops
	if eta := stops[0].ETA; eta == nil || !eta.Time.Equal(eta.ComputedAt) {
		t.Errorf("at the door of the first stop the driver is expected there at %+v", eta)
	}
	if got, want := stops[1].ETA, w.look(second); want.ETA != nil && !got.Time.Equal(want.ETA.Time) {
		t.Errorf("the second stop: %v, and on the link %v", got.Time, want.ETA.Time)
	}
}

// A stop without a point has no expected time, and keeps nobody from being told that another one is
// late.
func TestStopWithoutPoint(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	unknown := must(w.CreateTask(w.ctx, tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "Somewhere"},
	}))(t).ID
	must(w.AssignTask(w.ctx, unknown, "own"))(t)
	if err := startOwn(w, unknown); err != nil {
		t.Fatal(err)
	}
	w.fix(0)
	if eta := must(w.Route(w.ctx, "own"))(t).Stops[0].ETA; eta != nil {
		t.Errorf("the driver is expected at %v where nobody knows the way", eta.Time)
	}
	after := w.give(tracking.TypeDrop, 0, 4000)
	must(w.UpdateTask(w.ctx, after, tracking.TaskUpdate{Promised: new(w.now().Add(5 * time.Minute))}))(t)
	w.every(time.Minute, 10)
	if !w.task(after).Late(w.now()) {
		t.Error("the stop after it is not late")
	}
	if _, err := w.ArriveTask(w.ctx, "own", unknown, tracking.Step{}); err != nil {
		t.Error(err)
	}
}

// One driver's fixes come to two processes: each judges by all of them.
func TestFixesOfTwoProcesses(t *testing.T) {
	store := memory.New()
	w := newWorldOn(t, store)
	elsewhere := w.beside(store)
	w.driver("own", 0)
	id := w.begin(5000)
	w.every(10*time.Second, 100)
	elsewhere(func() { w.every(10*time.Second, 110) })
	w.every(5*time.Minute, 4000)
	elsewhere(func() { w.every(10*time.Second, 4010) })
	for range 5 {
		w.every(10*time.Second, 5000)
		elsewhere(func() { w.every(10*time.Second, 5300) })
	}
	w.wantApproaches("in and out", id, "arriving drop 320")
	for range 2 {
		w.every(10*time.Second, 5000)
		elsewhere(func() { w.every(10*time.Second, 5000) })
	}
	w.wantApproaches("he stays", id, "arriving drop 320", "arrived drop 440")
}

// What was measured for one start says nothing of the next one, which another process saw.
func TestStartedAnewElsewhere(t *testing.T) {
	store := memory.New()
	w := newWorldOn(t, store)
	elsewhere := w.beside(store)
	w.driver("own", 0)
	id := w.begin(5000)
	w.every(5*time.Minute, 5000)
	w.every(9*time.Second, 5000)
	w.advance(time.Second)
	elsewhere(func() {
		must(w.UnassignTask(w.ctx, id))(t)
		must(w.AssignTask(w.ctx, id, "own"))(t)
		if err := startOwn(w, id); err != nil {
			t.Fatal(err)
		}
	})
	w.every(4*time.Second, 5000, 5000, 5000, 5000, 5000)
	w.wantApproaches("15 s after the start", id, "arriving drop 300", "arriving drop 314")
	w.every(5*time.Second, 5000)
	w.wantApproaches("20 s after it", id, "arriving drop 300", "arriving drop 314", "arrived drop 314")
}

// A place that is moved on the way is another one: who came to the old one has not arrived.
func TestPlaceMovedOnTheWay(t *testing.T) {
	store := memory.New()
	w := newWorldOn(t, store)
	elsewhere := w.beside(store)
	w.driver("own", 0)
	id := w.begin(5000)
	w.every(5*time.Minute, 5000)
	w.every(4*time.Second, 5000, 5000, 5000, 5000)
	elsewhere(func() {
		must(w.UpdateTask(w.ctx, id, tracking.TaskUpdate{Drop: &tracking.Place{LngLat: east(9000)}}))(t)
	})
	if got := w.task(id).Phase(); got != tracking.PhaseToDrop {
		t.Errorf("4 km from the new place the phase is %s", got)
	}
	w.every(4*time.Second, 5000, 5000, 5000, 5000)
	w.wantApproaches("at the old place", id, "arriving drop 300")
	w.every(2*time.Minute, 9000)
	w.every(10*time.Second, 9000, 9000)
	w.wantApproaches("at the new one", id, "arriving drop 300", "arriving drop 452", "arrived drop 452")
	must(w.UpdateTask(w.ctx, id, tracking.TaskUpdate{Drop: &tracking.Place{LngLat: east(9020)}}))(t)
	if got := w.task(id).Phase(); got != tracking.PhaseAtDrop {
		t.Errorf("with the pin set right by 20 m the phase is %s", got)
	}
}

// What becomes of the stops after the next one says nothing of the way to that.
func TestLateArrivalAmongChanges(t *testing.T) {
	for name, change := range map[string]func(w *world, next, second, third tracking.TaskID) error{
		"a later one is cancelled": func(w *world, _, second, _ tracking.TaskID) error { return cancel(w, second) },
		"a later one under way is cancelled": func(w *world, _, _, third tracking.TaskID) error {
			return cancel(w, third)
		},
		"the later ones are put in another order": func(w *world, next, second, third tracking.TaskID) error {
			_, err := w.SetRoute(w.ctx, "own", []tracking.Stop{
				{TaskID: next, Leg: tracking.LegDrop}, {TaskID: third, Leg: tracking.LegDrop},
				{TaskID: second, Leg: tracking.LegDrop},
			}, 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.driver("own", 0)
			next := w.begin(1000)
			second := w.give(tracking.TypeDrop, 0, 3000)
			third := w.begin(4000)
			w.every(10*time.Second, 100)
			offline := stand(1000, 0, 200, 240, 10)
			w.advance(5 * time.Minute)
			if err := change(w, next, second, third); err != nil {
				t.Fatal(err)
			}
			w.advance(time.Minute)
			must(w.RecordFixes(w.ctx, "own", offline))(t)
			w.wantApproaches("then he is heard of", next, "arriving drop 10", "arrived drop 200")
		})
	}
	w := newWorld(t)
	w.driver("own", 0)
	first := w.begin(1000)
	second := w.begin(1500)
	w.every(10*time.Second, 100)
	w.advance(10 * time.Minute)
	must(w.SetRoute(w.ctx, "own", []tracking.Stop{
		{TaskID: second, Leg: tracking.LegDrop}, {TaskID: first, Leg: tracking.LegDrop},
	}, 0))(t)
	must(w.RecordFixes(w.ctx, "own", stand(1500, 0, 200, 240, 10)))(t)
	w.wantApproaches("it was not the next one then", second)
}

// A clock that ran ahead when the task was started keeps nobody from arriving.
func TestArrivalAfterAWrongClock(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	w.advance(24 * time.Hour)
	id := w.begin(1000)
	w.advance(-24 * time.Hour)
	w.every(10*time.Second, 100, 200)
	w.every(time.Minute, 1000)
	w.every(7*time.Second, 1000, 1000, 1000, 1000)
	w.wantApproaches("the clock is right again", id, "arriving drop 10", "arrived drop 80")
}

// The order that is there already is no change, whoever says it again.
func TestSetRouteAgain(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	a, b := w.give(tracking.TypeDrop, 0, 200), w.give(tracking.TypeDrop, 0, 300)
	order := []tracking.Stop{{TaskID: b, Leg: tracking.LegDrop}, {TaskID: a, Leg: tracking.LegDrop}}
	r := must(w.Route(w.ctx, "own"))(t)
	first := must(w.SetRoute(w.ctx, "own", order, r.Version))(t)
	again, err := w.SetRoute(w.ctx, "own", order, r.Version) // the answer was lost
	if err != nil || again.Version != first.Version {
		t.Errorf("version %d, error %v", again.Version, err)
	}
}

// A route that an older file made longer than there can be gets shorter by every step.
func TestRouteOverTheLimit(t *testing.T) {
	store := memory.New()
	w := newWorldOn(t, store)
	w.driver("own", 0)
	id := w.give(tracking.TypePickupAndDrop, 0, 1000)
	d := must(w.Driver(w.ctx, "own"))(t)
	for i := range tracking.MaxStops + 100 {
		d.Route = append(d.Route, tracking.Stop{TaskID: tracking.TaskID(fmt.Sprint(i)), Leg: tracking.LegDrop})
	}
	if _, err := store.Commit(w.ctx, tracking.DefaultApp, &tracking.Changeset{Drivers: []tracking.Driver{d}}); err != nil {
		t.Fatal(err)
	}
	for _, step := range []func(*world, tracking.TaskID) error{startOwn, pickUp, finish} {
		if err := step(w, id); err != nil {
			t.Error(err)
		}
	}
	one := must(w.CreateTask(w.ctx, tracking.NewTask{Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: east(1)}}))(t)
	if _, err := w.AssignTask(w.ctx, one.ID, "own"); code(err) != tracking.ErrConflict {
		t.Errorf("one more: %v", err)
	}
}

// taskReads counts the tasks that are asked for.
type taskReads struct {
	tracking.Store
	n int
}

func (c *taskReads) Task(ctx context.Context, app tracking.AppID, id tracking.TaskID) (tracking.Task, error) {
	c.n++
	return c.Store.Task(ctx, app, id)
}

func (c *taskReads) Tasks(ctx context.Context, app tracking.AppID, f tracking.TaskFilter) ([]tracking.Task, bool, error) {
	c.n++
	return c.Store.Tasks(ctx, app, f)
}

// With nothing under way a fix asks for no task, however far apart they come.
func TestFixWithNothingUnderWay(t *testing.T) {
	store := &taskReads{Store: memory.New()}
	w := newWorldOn(t, store)
	w.driver("own", 0)
	id := w.give(tracking.TypeDrop, 0, 1000)
	w.every(15*time.Second, 10)
	store.n = 0
	for i := range 20 {
		w.every(15*time.Second, float64(20+i))
	}
	if store.n != 0 {
		t.Errorf("20 fixes asked for tasks %d times", store.n)
	}
	w.beside(store)(func() {
		if err := startOwn(w, id); err != nil {
			t.Fatal(err)
		}
	})
	w.every(15*time.Second, 1000, 1000, 1000)
	w.wantApproaches("started in another process", id, "arriving drop 315", "arrived drop 330")
}

// With ShowWithin nobody sees where the driver is at somebody else's, nor later where he was.
func TestShowWithinHidesOthers(t *testing.T) {
	only := func(o *tracking.Options) { o.ShowWithin = 1 }
	t.Run("the own pickup has no point", func(t *testing.T) {
		w := newWorld(t, only)
		w.driver("own", 0)
		w.begin(1000)
		id := must(w.CreateTask(w.ctx, tracking.NewTask{
			Type: tracking.TypePickupAndDrop, Pickup: &tracking.Place{Address: "A shop"}, Drop: &tracking.Place{LngLat: east(3000)},
		}))(t).ID
		must(w.AssignTask(w.ctx, id, "own"))(t)
		if err := startOwn(w, id); err != nil {
			t.Fatal(err)
		}
		w.every(10*time.Second, 10)
		v := w.look(id)
		if v.Position != nil || v.Path != nil {
			t.Errorf("two stops before there are %+v and %v", v.Position, v.Path)
		}
		if v.StopsBefore == nil || *v.StopsBefore != 2 || v.ETA != nil {
			t.Errorf("stops before %v, expected %v", v.StopsBefore, v.ETA)
		}
	})
	t.Run("the link of the trip", func(t *testing.T) {
		w := newWorld(t, only)
		w.driver("own", 0)
		second, first := w.begin(3000), w.begin(1000)
		must(w.SetRoute(w.ctx, "own", []tracking.Stop{
			{TaskID: first, Leg: tracking.LegDrop}, {TaskID: second, Leg: tracking.LegDrop},
		}, 0))(t)
		w.every(10*time.Second, 10)
		shown := func(id tracking.TaskID) bool {
			t.Helper()
			trips, _, err := w.Trips(w.ctx, tracking.TripFilter{TrackingID: tracking.TrackingID(id)})
			if err != nil {
				t.Fatal(err)
			}
			v := must(w.Tracking(w.ctx, must(w.TripLink(w.ctx, trips[0].ID))(t)))(t)
			if (v.Position == nil) != (v.Path == nil) {
				t.Errorf("position %v, path %v", v.Position, v.Path)
			}
			return v.Position != nil
		}
		if !shown(first) || shown(second) {
			t.Errorf("shown to the first %t, to the second %t", shown(first), shown(second))
		}
		if err := finish(w, first); err != nil {
			t.Fatal(err)
		}
		trips, _, _ := w.Trips(w.ctx, tracking.TripFilter{TrackingID: tracking.TrackingID(second)})
		must(w.StopTrip(w.ctx, "own", trips[0].ID, tracking.Step{}))(t)
		w.advance(time.Minute)
		if err := startOwn(w, second); err != nil { // anew, with another trip
			t.Fatal(err)
		}
		w.every(10*time.Second, 1100)
		if !shown(second) {
			t.Error("its own stop hides it")
		}
	})
	t.Run("the way to others", func(t *testing.T) {
		w := newWorld(t, only)
		w.driver("own", 0)
		first, second := w.begin(1000), w.begin(3000)
		w.every(30*time.Second, 200, 500, 900, 1000)
		if err := finish(w, first); err != nil {
			t.Fatal(err)
		}
		w.every(30*time.Second, 1200, 1500)
		v := w.look(second)
		if v.Position == nil || len(v.Path) != 3 { // he begins where he was when it became his turn
			t.Errorf("position %v, path %v", v.Position, v.Path)
		}
		if slices.ContainsFunc(v.Path, func(p tracking.LngLat) bool { return tracking.Distance(p, *east(0)) < 990 }) {
			t.Errorf("the path tells how he came to others: %v", v.Path)
		}
		trips, _, _ := w.Trips(w.ctx, tracking.TripFilter{TrackingID: tracking.TrackingID(second)})
		if got := fmt.Sprint(w.path(trips[0].ID)); !strings.HasPrefix(got, "[0 200 500") && !strings.HasPrefix(got, "[200 500") {
			t.Errorf("the application has the whole path: %s", got)
		}
	})
}

// What comes after the arrival by the driver's word is after it, whatever the phone says.
func TestNoStepBeforeTheArrival(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	id := w.give(tracking.TypePickupAndDrop, 100, 1000)
	if err := startOwn(w, id); err != nil {
		t.Fatal(err)
	}
	early := tracking.Step{At: start.Add(time.Minute)}
	w.advance(10 * time.Minute)
	must(w.ArriveTask(w.ctx, "own", id, tracking.Step{}))(t)
	w.advance(10 * time.Minute)
	must(w.PickUpTask(w.ctx, "own", id, early))(t)
	must(w.ArriveTask(w.ctx, "own", id, tracking.Step{}))(t)
	w.advance(10 * time.Minute)
	must(w.FinishTask(w.ctx, "own", id, tracking.Completion{}, early))(t)
	got := w.task(id)
	for what, at := range map[string]struct {
		got  time.Time
		want time.Duration
	}{
		"at the pickup": {got.PickupArrivedAt, 10 * time.Minute}, "picked up": {got.PickedUpAt, 10 * time.Minute},
		"at the drop": {got.ArrivedAt, 20 * time.Minute}, "completed": {got.CompletedAt, 20 * time.Minute},
	} {
		if !at.got.Equal(start.Add(at.want)) {
			t.Errorf("%s %v after the start, want %v", what, at.got.Sub(start), at.want)
		}
	}
}

// Who has said to be there is not late by the way there.
func TestNotLateAfterTheArrival(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	id := w.begin(1000)
	must(w.UpdateTask(w.ctx, id, tracking.TaskUpdate{Promised: new(w.now().Add(10 * time.Minute))}))(t)
	w.advance(9 * time.Minute)
	must(w.ArriveTask(w.ctx, "own", id, tracking.Step{}))(t) // in front of the estate
	w.every(15*time.Second, 800, 800)
	if w.task(id).Late(w.now()) {
		t.Error("arrived before the promise it is late")
	}
}
