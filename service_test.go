package tracking_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a Service on the memory store with a clock that the test moves.
type world struct {
	*tracking.Service
	t   testing.TB
	ctx context.Context
	mu  sync.Mutex
	at  time.Time
}

func (w *world) now() time.Time          { w.mu.Lock(); defer w.mu.Unlock(); return w.at }
func (w *world) advance(d time.Duration) { w.mu.Lock(); defer w.mu.Unlock(); w.at = w.at.Add(d) }

func newWorld(t testing.TB, change ...func(*tracking.Options)) *world {
	t.Helper()
	return newWorldOn(t, memory.New(), change...)
}

func newWorldOn(t testing.TB, store tracking.Store, change ...func(*tracking.Options)) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), at: start}
	opts := &tracking.Options{Now: w.now, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, c := range change {
		c(opts)
	}
	t.Cleanup(func() { store.Close() })
	var err error
	if w.Service, err = tracking.New(store, opts); err != nil {
		t.Fatal(err)
	}
	return w
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func lnglat(lng, lat float64) *tracking.LngLat { return &tracking.LngLat{Lng: lng, Lat: lat} }

// metres east of the origin of these tests, on the equator.
func east(m float64) *tracking.LngLat { return lnglat(10+m/111195.08, 0) }

// driver makes one who is on duty at that many metres.
func (w *world) driver(id tracking.DriverID, m float64) {
	w.t.Helper()
	must(w.SaveDriver(w.ctx, tracking.SaveDriver{ID: id, Available: new(true), LngLat: east(m)}))(w.t)
}

func (w *world) create(auto bool) tracking.Task {
	w.t.Helper()
	return must(w.CreateTask(w.ctx, tracking.NewTask{
		Type: tracking.PickupAndDrop, Pickup: &tracking.Place{LngLat: east(0), Address: "Here 1"}, Drop: &tracking.Place{LngLat: east(5000), Address: "There 2"}, AutoAssign: auto,
	}))(w.t)
}

func (w *world) task(id tracking.TaskID) tracking.Task {
	w.t.Helper()
	return must(w.Task(w.ctx, id))(w.t)
}

// told lists what the events of a subject since the n-th say, each with its notices: "task.assigned a+assigned b-unassigned".
func (w *world) told(kind tracking.SubjectKind, id string, since int) []string {
	w.t.Helper()
	events, _, err := w.Events(w.ctx, tracking.EventFilter{Subject: tracking.Subject{Kind: kind, ID: id}, Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	var list []string
	for i, e := range events {
		if e.Seq != int64(i+1) {
			w.t.Errorf("event %d of %s has seq %d", i+1, id, e.Seq)
		}
		if i < since {
			continue
		}
		s := string(e.Type)
		for _, n := range e.Notices {
			s += fmt.Sprintf(" %s:%s", n.DriverID, n.Kind)
		}
		list = append(list, s)
	}
	return list
}

func code(err error) tracking.ErrorCode {
	var e *tracking.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return tracking.ErrorCode("not an *Error: " + err.Error())
	}
	return ""
}

// What each verb makes of each state is told in one event, to the drivers whom it concerns, and leaves the right count with each driver.
func TestTaskEffects(t *testing.T) {
	states := map[string]func(w *world) tracking.TaskID{
		"created": func(w *world) tracking.TaskID { return w.create(false).ID },
		"assigned": func(w *world) tracking.TaskID {
			id := w.create(false).ID
			must(w.AssignTask(w.ctx, id, "own"))(w.t)
			return id
		},
		"auto": func(w *world) tracking.TaskID {
			if t := w.create(true); t.Status != tracking.StatusAssigned || t.DriverID != "own" {
				w.t.Fatalf("not assigned at once: %+v", t)
			} else {
				return t.ID
			}
			return ""
		},
	}
	states["in_progress"] = func(w *world) tracking.TaskID {
		id := states["assigned"](w)
		if _, _, err := w.StartTask(w.ctx, "own", id, tracking.Step{}); err != nil {
			w.t.Fatal(err)
		}
		return id
	}
	states["completed"] = func(w *world) tracking.TaskID {
		id := states["in_progress"](w)
		must(w.FinishTask(w.ctx, "own", id, tracking.Completion{}, tracking.Step{}))(w.t)
		return id
	}
	for _, c := range []struct {
		verb, state string
		do          func(w *world, id tracking.TaskID) error
		events      []string // of the task
		open        int      // open tasks of own afterwards
		err         tracking.ErrorCode
	}{
		{"assign own", "created", assign("own"), []string{"task.assigned own:assigned"}, 1, ""},
		{"assign own", "assigned", assign("own"), nil, 1, ""},
		{"assign other", "assigned", assign("other"), []string{"task.assigned own:unassigned other:assigned"}, 0, ""},
		{"assign other", "in_progress", assign("other"), nil, 1, tracking.ErrConflict},
		{"assign other", "completed", assign("other"), nil, 0, tracking.ErrConflict},
		{"assign nobody", "created", assign("nobody"), nil, 0, tracking.ErrNotFound},
		{"unassign", "created", unassign, nil, 0, ""},
		{"unassign", "assigned", unassign, []string{"task.unassigned own:unassigned"}, 0, ""},
		{"unassign", "in_progress", unassign, []string{"task.unassigned own:unassigned"}, 0, ""},
		{"unassign", "completed", unassign, nil, 0, tracking.ErrConflict},
		{"decline", "assigned", decline, []string{"task.declined"}, 0, ""},
		{"decline", "auto", decline, []string{"task.declined"}, 0, ""},
		{"decline", "in_progress", decline, nil, 1, tracking.ErrConflict},
		{"decline", "created", decline, nil, 0, tracking.ErrNotFound},
		{"update", "created", update, []string{"task.updated"}, 0, ""},
		{"update", "assigned", update, []string{"task.updated own:updated"}, 1, ""},
		{"update", "in_progress", update, []string{"task.updated own:updated"}, 1, ""},
		{"update", "completed", update, nil, 0, tracking.ErrConflict},
		{"cancel", "created", cancel, []string{"task.completed"}, 0, ""},
		{"cancel", "assigned", cancel, []string{"task.completed own:cancelled"}, 0, ""},
		{"cancel", "in_progress", cancel, []string{"task.completed own:cancelled"}, 0, ""},
		{"cancel", "completed", cancel, nil, 0, tracking.ErrConflict},
		{"complete", "created", complete, []string{"task.completed"}, 0, ""},
		{"complete", "assigned", complete, []string{"task.completed own:updated"}, 0, ""},
		{"complete", "completed", complete, nil, 0, ""},
		{"start", "assigned", startOwn, []string{"task.started"}, 1, ""},
		{"start", "in_progress", startOwn, nil, 1, ""},
		{"start", "completed", startOwn, nil, 0, tracking.ErrConflict},
		{"pick up", "assigned", pickUp, nil, 1, tracking.ErrConflict},
		{"pick up", "in_progress", pickUp, []string{"task.picked_up"}, 1, ""},
		{"finish", "assigned", finish, nil, 1, tracking.ErrConflict},
		{"finish", "in_progress", finish, []string{"task.completed"}, 0, ""},
		{"finish", "completed", finish, nil, 0, ""},
	} {
		t.Run(c.verb+"/"+c.state, func(t *testing.T) {
			w := newWorld(t)
			w.driver("own", 100)
			must(w.SaveDriver(w.ctx, tracking.SaveDriver{ID: "other"}))(t)
			id := states[c.state](w)
			n := len(w.told(tracking.KindTask, string(id), 0))
			before := w.task(id)
			w.advance(time.Minute)
			if err := c.do(w, id); code(err) != c.err {
				t.Fatalf("%v, want code %q", err, c.err)
			}
			if got := w.told(tracking.KindTask, string(id), n); !slices.Equal(got, c.events) {
				t.Errorf("events %q, want %q", got, c.events)
			}
			if after := w.task(id); c.events == nil && !after.UpdatedAt.Equal(before.UpdatedAt) {
				t.Errorf("nothing happened, and updated_at moved by %v", after.UpdatedAt.Sub(before.UpdatedAt))
			}
			if got := must(w.Driver(w.ctx, "own"))(t).OpenTasks; got != c.open {
				t.Errorf("own has %d open tasks, want %d", got, c.open)
			}
			active, _, err := w.Trips(w.ctx, tracking.TripFilter{Status: tracking.Active})
			if running := w.task(id).Status == tracking.StatusInProgress; err != nil || (len(active) == 1) != running {
				t.Errorf("%d active trips of a task that is %s", len(active), w.task(id).Status)
			}
		})
	}
}

func assign(d tracking.DriverID) func(*world, tracking.TaskID) error {
	return func(w *world, id tracking.TaskID) error { _, err := w.AssignTask(w.ctx, id, d); return err }
}
func unassign(w *world, id tracking.TaskID) error { _, err := w.UnassignTask(w.ctx, id); return err }
func decline(w *world, id tracking.TaskID) error {
	_, err := w.DeclineTask(w.ctx, "own", id, "", tracking.Step{})
	return err
}
func update(w *world, id tracking.TaskID) error {
	_, err := w.UpdateTask(w.ctx, id, tracking.TaskUpdate{Notes: new("ring twice")})
	return err
}
func cancel(w *world, id tracking.TaskID) error { _, err := w.CancelTask(w.ctx, id, ""); return err }
func complete(w *world, id tracking.TaskID) error {
	_, err := w.CompleteTask(w.ctx, id, tracking.Completion{})
	return err
}
func startOwn(w *world, id tracking.TaskID) error {
	_, _, err := w.StartTask(w.ctx, "own", id, tracking.Step{})
	return err
}
func pickUp(w *world, id tracking.TaskID) error {
	_, err := w.PickUpTask(w.ctx, "own", id, tracking.Step{})
	return err
}
func finish(w *world, id tracking.TaskID) error {
	_, err := w.FinishTask(w.ctx, "own", id, tracking.Completion{}, tracking.Step{})
	return err
}

func TestDeclinedGoesToTheNext(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 100)
	w.driver("next", 900)
	task := w.create(true)
	if err := decline(w, task.ID); err != nil {
		t.Fatal(err)
	}
	if n, err := w.AssignWaiting(w.ctx); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if got := w.task(task.ID); got.DriverID != "next" || !got.AutoAssigned {
		t.Errorf("it went to %q", got.DriverID)
	}
}

func TestWaitingOldestFirst(t *testing.T) {
	w := newWorld(t)
	first := w.create(true)
	w.advance(time.Second)
	second := w.create(true)
	if first.Status != tracking.StatusCreated || !second.Waiting {
		t.Fatal("they do not wait")
	}
	w.driver("a", 50)
	newer := w.create(true) // must not be served before the older ones
	if got := w.task(first.ID).DriverID; got != "a" {
		t.Errorf("the oldest went to %q", got)
	}
	if !newer.Waiting || !w.task(second.ID).Waiting {
		t.Error("one driver got more than one task")
	}
	w.driver("b", 70)
	if n, err := w.AssignWaiting(w.ctx); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if got := w.task(second.ID).DriverID; got != "b" {
		t.Errorf("the second went to %q", got)
	}
}

func TestWhoIsOffered(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*tracking.Options)
		set    func(w *world)
		want   tracking.DriverID
	}{
		{"the nearest", nil, func(w *world) { w.driver("far", 900); w.driver("near", 100) }, "near"},
		{"not who is off duty", nil, func(w *world) {
			w.driver("far", 900)
			w.driver("near", 100)
			must(w.SetAvailability(w.ctx, "near", false, time.Time{}))(w.t)
		}, "far"},
		{"who comes back without a new fix", nil, func(w *world) {
			w.driver("far", 900)
			w.driver("near", 100)
			must(w.SetAvailability(w.ctx, "near", false, time.Time{}))(w.t)
			must(w.SetAvailability(w.ctx, "near", true, time.Time{}))(w.t)
		}, "near"},
		{"not who was last heard of too long ago", func(o *tracking.Options) { o.MaxFixAge = 5 * time.Minute }, func(w *world) {
			w.driver("near", 100)
			w.advance(5*time.Minute + time.Second - 10*time.Second)
			w.driver("far", 900)
			w.advance(10 * time.Second)
		}, "far"},
		{"who was heard of just in time", func(o *tracking.Options) { o.MaxFixAge = 5 * time.Minute }, func(w *world) {
			w.driver("near", 100)
			w.advance(4 * time.Minute)
			w.driver("far", 900)
			w.advance(59 * time.Second)
		}, "near"},
		{"a sign of life is enough", nil, func(w *world) {
			w.driver("near", 100)
			w.advance(time.Hour)
			must(w.RecordFixes(w.ctx, "near", nil))(w.t)
		}, "near"},
		{"not who is full", nil, func(w *world) { w.driver("far", 900); w.driver("near", 100); w.create(true) }, "far"},
		{"who may have two", func(o *tracking.Options) { o.MaxOpenTasks = 2 }, func(w *world) { w.driver("far", 900); w.driver("near", 100); w.create(true) }, "near"},
		{"fewer open tasks among equally near", func(o *tracking.Options) { o.MaxOpenTasks = -1 }, func(w *world) { w.driver("a", 100); w.create(true); w.driver("b", 100) }, "b"},
		{"then by id", nil, func(w *world) { w.driver("b", 100); w.driver("a", 100) }, "a"},
		{"not too far", func(o *tracking.Options) { o.MaxAssignDistance = 1000 }, func(w *world) { w.driver("far", 1001) }, ""},
		{"free again after finishing", nil, func(w *world) {
			w.driver("own", 100)
			id := w.create(true).ID
			startOwn(w, id)
			finish(w, id)
		}, "own"},
		{"nobody", nil, func(*world) {}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			change := c.change
			if change == nil {
				change = func(*tracking.Options) {}
			}
			w := newWorld(t, change)
			c.set(w)
			task := w.create(true)
			if task.DriverID != c.want || task.Waiting != (c.want == "") {
				t.Errorf("it went to %q (waiting %v), want %q", task.DriverID, task.Waiting, c.want)
			}
		})
	}
}

func TestEqualKeysMakeOneTask(t *testing.T) {
	w := newWorld(t)
	n := tracking.NewTask{Type: tracking.Drop, Drop: &tracking.Place{Address: "x"}, Key: "k1"}
	ids := make([]tracking.TaskID, 20)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			task, err := w.CreateTask(w.ctx, n)
			if err != nil {
				t.Error(err)
			}
			ids[i] = task.ID
		})
	}
	wg.Wait()
	if slices.Sort(ids); ids[0] != ids[len(ids)-1] {
		t.Error("one key made several tasks")
	}
	w.advance(time.Hour)
	if again := must(w.CreateTask(w.ctx, n))(t); again.ID != ids[0] {
		t.Error("later the key makes another task")
	}
	if got := w.told(tracking.KindTask, string(ids[0]), 0); len(got) != 1 {
		t.Errorf("events %q", got)
	}
	n.Notes = "other"
	_, err := w.CreateTask(w.ctx, n)
	var e *tracking.Error
	if !errors.As(err, &e) || e.Code != tracking.ErrConflict || e.Field != "Idempotency-Key" {
		t.Errorf("other content: %v", err)
	}
}

func TestCancelAndCompleteAtOnce(t *testing.T) {
	for range 200 {
		w := newWorld(t)
		w.driver("own", 0)
		id := w.create(true).ID
		startOwn(w, id)
		var wg sync.WaitGroup
		var errs [2]error
		wg.Go(func() { errs[0] = cancel(w, id) })
		wg.Go(func() { errs[1] = finish(w, id) })
		wg.Wait()
		ok := slices.Index([]bool{errs[0] == nil, errs[1] == nil}, true)
		if ok < 0 || code(errs[1-ok]) != tracking.ErrConflict {
			t.Fatal(errs)
		}
		if got, want := w.task(id).Outcome, []tracking.Outcome{tracking.Cancelled, tracking.Succeeded}[ok]; got != want {
			t.Fatalf("%s won, and the outcome is %s", want, got)
		}
		if got := w.told(tracking.KindTask, string(id), 3); len(got) != 1 {
			t.Fatalf("events %q", got)
		}
	}
}

func TestTripLife(t *testing.T) {
	fix := func(w *world, d time.Duration, m float64) {
		w.t.Helper()
		w.advance(d)
		out := must(w.RecordFixes(w.ctx, "a", []tracking.Fix{{LngLat: *east(m), Time: w.now()}}))(w.t)
		if out[0] != tracking.FixLive {
			w.t.Fatalf("the fix is %s", out[0])
		}
	}
	begin := func(w *world) tracking.TripID {
		must(w.SaveDriver(w.ctx, tracking.SaveDriver{ID: "a", Available: new(true)}))(w.t)
		return must(w.StartTrip(w.ctx, "a", "order-7", tracking.Step{}))(w.t).ID
	}
	t.Run("one fix and silence", func(t *testing.T) {
		w := newWorld(t)
		id := begin(w)
		fix(w, time.Second, 0)
		w.advance(2*time.Hour + time.Millisecond)
		list, _, err := w.Trips(w.ctx, tracking.TripFilter{Status: tracking.Active})
		got := must(w.Trip(w.ctx, id))(t)
		if err != nil || len(list) != 0 || got.Status != tracking.Stopped || *got.EndsAt != *east(0) || !got.EndedAt.Equal(start.Add(2*time.Hour+time.Second)) {
			t.Errorf("%d active; %+v", len(list), got)
		}
		if events := w.told(tracking.KindTrip, string(id), 0); !slices.Equal(events, []string{"trip.started", "trip.stopped"}) {
			t.Error(events)
		}
	})
	t.Run("no fix at all", func(t *testing.T) {
		w := newWorld(t)
		id := begin(w)
		w.advance(2 * time.Hour)
		if got := must(w.Trip(w.ctx, id))(t); got.Status != tracking.Discarded || got.EndsAt != nil || !got.EndedAt.Equal(got.TTL) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("fixes carry it on", func(t *testing.T) {
		w := newWorld(t)
		id := begin(w)
		for range 10 {
			fix(w, 90*time.Minute, 0)
		}
		if got := must(w.Trip(w.ctx, id))(t); got.Status != tracking.Active || !got.TTL.After(w.now()) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a fix after a gap does not bring it back", func(t *testing.T) {
		w := newWorld(t)
		id := begin(w)
		fix(w, time.Minute, 0)
		fix(w, 3*time.Hour, 100)
		got := must(w.Trip(w.ctx, id))(t)
		if got.Status != tracking.Stopped || !got.EndedAt.Equal(start.Add(time.Minute+2*time.Hour)) || *got.EndsAt != *east(0) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("late fixes join, fixes after the end do not", func(t *testing.T) {
		w := newWorld(t)
		id := begin(w)
		fix(w, time.Minute, 0)
		fix(w, time.Minute, 1000)
		must(w.StopTrip(w.ctx, "a", id, tracking.Step{}))(t)
		fix(w, time.Second, 1010)
		fix(w, time.Hour, 1500)
		out := must(w.RecordFixes(w.ctx, "a", []tracking.Fix{{LngLat: *east(500), Time: start.Add(90 * time.Second)}}))(t)
		if out[0] != tracking.FixLate {
			t.Error(out)
		}
		got := must(w.Trip(w.ctx, id))(t)
		if path := w.path(id); !slices.Equal(path, []float64{0, 500, 1000}) || *got.EndsAt != *east(1000) {
			t.Errorf("path %v, ends at %v", path, got.EndsAt)
		}
		if d := got.Distance; d < 999 || d > 1001 || got.Moving != time.Minute {
			t.Errorf("%v m, %v on the move", d, got.Moving)
		}
	})
	t.Run("off duty, a late fix of the trip is kept and others are not", func(t *testing.T) {
		w := newWorld(t)
		id := begin(w)
		fix(w, time.Minute, 0)
		w.advance(10 * time.Minute)
		must(w.StopTrip(w.ctx, "a", id, tracking.Step{}))(t)
		must(w.SetAvailability(w.ctx, "a", false, time.Time{}))(t)
		w.advance(time.Millisecond)
		out := must(w.RecordFixes(w.ctx, "a", []tracking.Fix{{LngLat: *east(9), Time: start.Add(2 * time.Minute)}, {LngLat: *east(10), Time: w.now()}}))(t)
		if !slices.Equal(out, []tracking.FixOutcome{tracking.FixLive, tracking.FixOffDuty}) {
			t.Error(out)
		}
	})
	t.Run("stopped in the past by an offline phone", func(t *testing.T) {
		w := newWorld(t)
		id := begin(w)
		fix(w, time.Minute, 0)
		fix(w, 28*time.Minute, 2000)
		got := must(w.StopTrip(w.ctx, "a", id, tracking.Step{At: start.Add(2 * time.Minute)}))(t)
		if path := w.path(id); !slices.Equal(path, []float64{0}) || !got.EndedAt.Equal(start.Add(2*time.Minute)) || *got.EndsAt != *east(0) {
			t.Errorf("path %v, %+v", path, got)
		}
	})
	t.Run("the table", func(t *testing.T) {
		w := newWorld(t)
		id := begin(w)
		must(w.SaveDriver(w.ctx, tracking.SaveDriver{ID: "b"}))(t)
		if again := must(w.StartTrip(w.ctx, "a", "order-7", tracking.Step{}))(t); again.ID != id {
			t.Error("started again it is another trip")
		}
		_, err := w.StartTrip(w.ctx, "b", "order-7", tracking.Step{})
		if code(err) != tracking.ErrConflict {
			t.Error("another driver:", err)
		}
		if _, err := w.StopTrip(w.ctx, "b", id, tracking.Step{}); code(err) != tracking.ErrNotFound {
			t.Error("another driver stops it:", err)
		}
		must(w.DiscardTrip(w.ctx, "a", id, tracking.Step{}))(t)
		must(w.DiscardTrip(w.ctx, "a", id, tracking.Step{}))(t)
		if _, err := w.StopTrip(w.ctx, "a", id, tracking.Step{}); code(err) != tracking.ErrConflict {
			t.Error("stopped after it was discarded:", err)
		}
		next := must(w.StartTrip(w.ctx, "b", "order-7", tracking.Step{}))(t)
		if next.ID == id {
			t.Error("the ended trip came back")
		}
		if got := w.told(tracking.KindTrip, string(id), 0); !slices.Equal(got, []string{"trip.started", "trip.discarded"}) {
			t.Error(got)
		}
	})
	t.Run("a task's trip", func(t *testing.T) {
		w := newWorld(t)
		w.driver("own", 20)
		w.driver("b", 5000)
		task := w.create(true)
		if _, err := w.StartTrip(w.ctx, "b", tracking.TrackingID(task.ID), tracking.Step{}); code(err) != tracking.ErrConflict {
			t.Error("another driver starts it:", err)
		}
		trip := must(w.StartTrip(w.ctx, "own", tracking.TrackingID(task.ID), tracking.Step{}))(t)
		if w.task(task.ID).Status != tracking.StatusInProgress || trip.TaskID != task.ID || trip.StartLocation != "Here 1" {
			t.Errorf("%+v", trip)
		}
		w.advance(time.Minute)
		must(w.StopTrip(w.ctx, "own", trip.ID, tracking.Step{}))(t)
		if w.task(task.ID).Status != tracking.StatusInProgress {
			t.Error("the end of its trip ended the task")
		}
		_, second, err := w.StartTask(w.ctx, "own", task.ID, tracking.Step{})
		if err != nil || second.ID == trip.ID || second.Status != tracking.Active {
			t.Errorf("started again: %+v %v", second, err)
		}
		if got := w.told(tracking.KindTask, string(task.ID), 2); !slices.Equal(got, []string{"task.started"}) {
			t.Error(got)
		}
	})
}

// path lists a trip's points in metres.
func (w *world) path(id tracking.TripID) (list []float64) {
	w.t.Helper()
	_, points, err := w.TripPath(w.ctx, id)
	if err != nil {
		w.t.Fatal(err)
	}
	for f, err := range points {
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, float64(int(tracking.Distance(*east(0), f.LngLat)+0.5)))
	}
	return list
}

func TestFixOutcomesOfTheService(t *testing.T) {
	w := newWorld(t)
	w.driver("a", 0)
	w.advance(time.Minute)
	at := func(d time.Duration) time.Time { return w.now().Add(d) }
	fixes := []tracking.Fix{
		{LngLat: *east(1), Time: at(0)},
		{LngLat: *east(1), Time: at(0)},
		{LngLat: tracking.LngLat{}, Time: at(time.Second)},
		{LngLat: *lnglat(181, 0), Time: at(time.Second)},
		{LngLat: *east(2)},
		{LngLat: *east(2), Time: at(time.Second), Accuracy: tracking.Known(-1)},
		{LngLat: *east(2), Time: at(2*time.Minute + time.Millisecond)},
		{LngLat: *east(2), Time: at(3 * 365 * 24 * time.Hour)},
		{LngLat: *east(2), Time: at(2 * time.Minute)},
		{LngLat: *east(900_000), Time: at(time.Second)},
		{LngLat: *east(3), Time: at(-time.Second)},
	}
	out := must(w.RecordFixes(w.ctx, "a", fixes))(t)
	want := "live duplicate invalid invalid invalid invalid future future live jump late"
	if got := strings.Join(strings.Fields(fmt.Sprint(out)), " "); got != "["+want+"]" {
		t.Errorf("\n%s, want\n%s", got, want)
	}
	d := must(w.Driver(w.ctx, "a"))(t)
	if d.Position.Fix.LngLat != *east(2) || !d.Position.SeenAt.Equal(w.now()) || d.Version != 1 {
		t.Errorf("%+v", d)
	}
	_, err := w.RecordFixes(w.ctx, "a", make([]tracking.Fix, 1001))
	if code(err) != tracking.ErrTooLarge {
		t.Error(err)
	}
	if _, err := w.RecordFixes(w.ctx, "nobody", nil); code(err) != tracking.ErrNotFound {
		t.Error(err)
	}
}

func TestSilence(t *testing.T) {
	w := newWorld(t)
	w.driver("a", 0)
	w.advance(10 * time.Minute)
	if n := must(w.MarkSilent(w.ctx))(t); n != 0 {
		t.Error("silent too early")
	}
	w.advance(time.Millisecond)
	for range 3 {
		must(w.MarkSilent(w.ctx))(t)
	}
	if got := w.told(tracking.KindDriver, "a", 0); !slices.Equal(got, []string{"driver.available", "driver.silent"}) {
		t.Error(got)
	}
	if task := w.create(true); task.DriverID != "" {
		t.Error("a silent driver got a task")
	}
	must(w.RecordFixes(w.ctx, "a", nil))(t)
	if n := must(w.AssignWaiting(w.ctx))(t); n != 1 {
		t.Error("heard of again, the driver gets nothing")
	}
	w.advance(time.Hour)
	must(w.MarkSilent(w.ctx))(t)
	if got := w.told(tracking.KindDriver, "a", 2); !slices.Equal(got, []string{"driver.silent"}) {
		t.Error(got)
	}
}

func TestJoin(t *testing.T) {
	join := func(w *world, j tracking.Join) (tracking.Joined, error) { return w.Join(w.ctx, j) }
	t.Run("once by either way", func(t *testing.T) {
		w := newWorld(t)
		inv := must(w.InviteDriver(w.ctx, tracking.NewInvite{DriverID: "d", Name: new("Dora Diaz")}))(t)
		got := must(join(w, tracking.Join{Code: fmt.Sprint(inv.Code)}))(t)
		if got.Driver.ID != "d" || got.App != w.App() || got.Driver.Available {
			t.Errorf("%+v", got)
		}
		for _, j := range []tracking.Join{{Code: fmt.Sprint(inv.Code)}, {Token: inv.Token}, {Token: "x"}, {Token: fmt.Sprint(inv.Code)}, {Code: inv.Token}} {
			if _, err := join(w, j); code(err) != tracking.ErrNotFound {
				t.Errorf("%v: %v", j, err)
			}
		}
		_, d, err := w.AuthenticateDriver(w.ctx, tracking.AppToken, got.Token)
		if err != nil || d != "d" {
			t.Error(d, err)
		}
		if _, _, err := w.AuthenticateDriver(w.ctx, tracking.AppToken, got.IngestToken); code(err) != tracking.ErrUnauthorized {
			t.Error("the ingest token acts as the driver:", err)
		}
		if token := must(w.IngestToken(w.ctx, "d"))(t); token != got.IngestToken {
			t.Error("the ingest token is another when asked for again")
		}
		second := must(w.InviteDriver(w.ctx, tracking.NewInvite{DriverID: "d"}))(t)
		again := must(join(w, tracking.Join{Token: second.Token}))(t)
		if _, _, err := w.AuthenticateDriver(w.ctx, tracking.AppToken, got.Token); code(err) != tracking.ErrUnauthorized {
			t.Error("the older token lives on")
		}
		if err := w.RevokeTokens(w.ctx, "d"); err != nil {
			t.Fatal(err)
		}
		for kind, token := range map[tracking.TokenKind]string{tracking.AppToken: again.Token, tracking.IngestToken: again.IngestToken} {
			if _, _, err := w.AuthenticateDriver(w.ctx, kind, token); code(err) != tracking.ErrUnauthorized {
				t.Error("a revoked token lives on")
			}
		}
		if must(w.Driver(w.ctx, "d"))(t).Name != "Dora Diaz" {
			t.Error("the second invite took the name away")
		}
	})
	t.Run("a new invite kills the older", func(t *testing.T) {
		w := newWorld(t)
		old := must(w.InviteDriver(w.ctx, tracking.NewInvite{DriverID: "d"}))(t)
		must(w.InviteDriver(w.ctx, tracking.NewInvite{DriverID: "d"}))(t)
		if _, err := join(w, tracking.Join{Token: old.Token}); code(err) != tracking.ErrNotFound {
			t.Error(err)
		}
	})
	t.Run("expiry", func(t *testing.T) {
		w := newWorld(t)
		inv := must(w.InviteDriver(w.ctx, tracking.NewInvite{}))(t)
		w.advance(time.Hour)
		if _, err := join(w, tracking.Join{Code: fmt.Sprint(inv.Code)}); code(err) != tracking.ErrNotFound {
			t.Error("the code:", err)
		}
		w.advance(23*time.Hour - time.Millisecond)
		must(join(w, tracking.Join{Token: inv.Token}))(t)
	})
	t.Run("a lost answer", func(t *testing.T) {
		w := newWorld(t)
		inv := must(w.InviteDriver(w.ctx, tracking.NewInvite{DriverID: "d"}))(t)
		one := must(join(w, tracking.Join{Token: inv.Token, Nonce: "n1"}))(t)
		w.advance(9 * time.Minute)
		two := must(join(w, tracking.Join{Token: inv.Token, Nonce: "n1"}))(t)
		if one.Token != two.Token || one.IngestToken != two.IngestToken {
			t.Error("another answer")
		}
		if got := w.told(tracking.KindDriver, "d", 0); !slices.Equal(got, []string{"driver.joined"}) {
			t.Error(got)
		}
		if _, err := join(w, tracking.Join{Token: inv.Token, Nonce: "n2"}); code(err) != tracking.ErrNotFound {
			t.Error("another nonce:", err)
		}
		w.advance(2 * time.Minute)
		if _, err := join(w, tracking.Join{Token: inv.Token, Nonce: "n1"}); code(err) != tracking.ErrNotFound {
			t.Error("after 10 minutes:", err)
		}
	})
	t.Run("guessing", func(t *testing.T) {
		w := newWorld(t)
		inv := must(w.InviteDriver(w.ctx, tracking.NewInvite{DriverID: "d"}))(t)
		for range 5 {
			if _, err := join(w, tracking.Join{Code: "99", Source: "s"}); code(err) != tracking.ErrNotFound {
				t.Error(err)
			}
		}
		_, err := join(w, tracking.Join{Code: fmt.Sprint(inv.Code), Source: "s"})
		var e *tracking.Error
		if !errors.As(err, &e) || e.Code != tracking.ErrRateLimited || e.RetryAfter != 15*time.Minute {
			t.Errorf("the 6th: %v", err)
		}
		must(join(w, tracking.Join{Code: fmt.Sprint(inv.Code), Source: "other"}))(t)
	})
}

func TestLinks(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 100)
	must(w.SaveDriver(w.ctx, tracking.SaveDriver{ID: "own", Name: new("Asha Rao")}))(t)
	task := w.create(true)
	link := must(w.TaskLink(w.ctx, task.ID))(t)
	if again := must(w.TaskLink(w.ctx, task.ID))(t); again != link || w.task(task.ID).Version != task.Version {
		t.Error("asked again it is another link, or something was written")
	}
	see := func(token string) tracking.Tracking { t.Helper(); return must(w.Tracking(w.ctx, token))(t) }
	if v := see(link); v.DriverName != "" || v.Position != nil || v.Place.Address != "Here 1" {
		t.Errorf("before the start: %+v", v)
	}
	_, trip, err := w.StartTask(w.ctx, "own", task.ID, tracking.Step{LngLat: east(100)})
	if err != nil {
		t.Fatal(err)
	}
	w.advance(time.Minute)
	must(w.RecordFixes(w.ctx, "own", []tracking.Fix{{LngLat: *east(50), Time: w.now(), Bearing: tracking.Known(270)}}))(t)
	v := see(link)
	if v.DriverName != "Asha" || v.Position == nil || v.Position.LngLat != *east(50) || !v.Position.Live || len(v.Path) != 2 {
		t.Errorf("on the way: %+v", v)
	}
	w.advance(5*time.Minute + time.Millisecond)
	if v := see(link); v.Position.Live {
		t.Error("a position of 5 minutes ago is live")
	}
	if err := pickUp(w, task.ID); err != nil {
		t.Fatal(err)
	}
	if v := see(link); v.Place.Address != "There 2" {
		t.Errorf("after the pickup: %+v", v.Place)
	}
	tripLink := must(w.TripLink(w.ctx, trip.ID))(t)
	if err := finish(w, task.ID); err != nil {
		t.Fatal(err)
	}
	w.advance(time.Second)
	must(w.RecordFixes(w.ctx, "own", []tracking.Fix{{LngLat: *east(60), Time: w.now()}}))(t)
	for _, token := range []string{link, tripLink} {
		if v := see(token); !v.Ended || v.Position != nil || v.Path != nil || v.DriverName != "" {
			t.Errorf("after the end: %+v", v)
		}
	}
	w.advance(24 * time.Hour)
	if _, err := w.Tracking(w.ctx, link); code(err) != tracking.ErrNotFound {
		t.Error("expired:", err)
	}
	fresh := must(w.TaskLink(w.ctx, task.ID))(t)
	w.advance(24*time.Hour - time.Millisecond)
	if fresh == link || !see(fresh).Ended {
		t.Error("asked for after expiry it does not work for its full time")
	}
	if err := w.RevokeTaskLink(w.ctx, task.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Tracking(w.ctx, fresh); code(err) != tracking.ErrNotFound {
		t.Error("revoked:", err)
	}
	if newest := must(w.TaskLink(w.ctx, task.ID))(t); newest == fresh || newest == link {
		t.Error("a revoked link came back")
	}
}

// What a link shows of the path is the trip's path, also when fixes come late or turn out good afterwards.
func TestLinkFollowsThePath(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	task := w.create(true)
	link := must(w.TaskLink(w.ctx, task.ID))(t)
	_, trip, err := w.StartTask(w.ctx, "own", task.ID, tracking.Step{LngLat: east(0)})
	if err != nil {
		t.Fatal(err)
	}
	send := func(after time.Duration, m float64) {
		t.Helper()
		must(w.RecordFixes(w.ctx, "own", []tracking.Fix{{LngLat: *east(m), Time: start.Add(after)}}))(t)
		var got []float64
		for _, p := range must(w.Tracking(w.ctx, link))(t).Path {
			got = append(got, float64(int(tracking.Distance(*east(0), p)+0.5)))
		}
		if want := w.path(trip.ID); !slices.Equal(got, want) {
			t.Errorf("after %v m the link shows %v, the path is %v", m, got, want)
		}
	}
	w.advance(time.Minute)
	send(10*time.Second, 100)
	send(20*time.Second, 200)
	send(15*time.Second, 150)
	send(30*time.Second, 90_000) // a jump
	send(31*time.Second, 90_010) // which was right
	send(25*time.Second, 45_000)
	w.advance(2 * time.Minute)
	send(170*time.Second, 90_100)
	for i := range 700 {
		w.advance(time.Second)
		must(w.RecordFixes(w.ctx, "own", []tracking.Fix{{LngLat: *east(90_100 + float64(i*i%97)), Time: w.now()}}))(t)
		if n := len(must(w.Tracking(w.ctx, link))(t).Path); n > 500 {
			t.Fatalf("%d points", n)
		}
	}
}

// An expected time stands for a while, but not for another place or another driver.
func TestExpectedTime(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 100)
	w.driver("far", 9000)
	task := w.create(true)
	link := must(w.TaskLink(w.ctx, task.ID))(t)
	expected := func() time.Duration { t.Helper(); return must(w.Tracking(w.ctx, link))(t).ETA.Time.Sub(w.now()) }
	near := func(what string, got time.Duration, metres float64) {
		t.Helper()
		want := time.Duration((120 + 1.3*metres/(25/3.6)) * float64(time.Second))
		if (got - want).Abs() > 2*time.Second {
			t.Errorf("%s: in %v, want %v", what, got, want)
		}
	}
	begin := func(d tracking.DriverID, m float64) {
		t.Helper()
		if _, _, err := w.StartTask(w.ctx, d, task.ID, tracking.Step{LngLat: east(m)}); err != nil {
			t.Fatal(err)
		}
	}
	begin("own", 100)
	near("to the pickup", expected(), 100)
	w.advance(20 * time.Second)
	near("20 s later at the lights it is the same moment", expected()+20*time.Second, 100)
	if err := pickUp(w, task.ID); err != nil {
		t.Fatal(err)
	}
	near("to the drop", expected(), 4900)
	must(w.UnassignTask(w.ctx, task.ID))(t)
	must(w.AssignTask(w.ctx, task.ID, "far"))(t)
	begin("far", 9000)
	near("another driver, to the pickup", expected(), 9000)
	w.advance(time.Hour)
	if got := expected(); got < time.Minute {
		t.Errorf("overdue it is expected in %v", got)
	}
}

func TestApplicationsDoNotMeet(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	task := w.create(false)
	other := w.ForApp("other")
	if _, err := other.Task(w.ctx, task.ID); code(err) != tracking.ErrNotFound {
		t.Error(err)
	}
	if _, err := w.AssignTask(w.ctx, task.ID, "own"); err != nil {
		t.Error(err)
	}
	if _, err := other.AssignTask(w.ctx, task.ID, "own"); code(err) != tracking.ErrNotFound {
		t.Error(err)
	}
	mine := must(other.CreateTask(w.ctx, tracking.NewTask{Type: tracking.Drop, Drop: &tracking.Place{LngLat: east(0)}, AutoAssign: true}))(t)
	if mine.DriverID != "" {
		t.Error("a foreign driver got the task")
	}
	if _, err := other.AssignTask(w.ctx, mine.ID, "own"); code(err) != tracking.ErrNotFound {
		t.Error("assigned to a foreign driver:", err)
	}
}

func TestKeys(t *testing.T) {
	w := newWorld(t)
	key, secret, err := w.ForApp("shop").CreateKey(w.ctx, "checkout")
	if err != nil {
		t.Fatal(err)
	}
	app, got, err := w.AuthenticateKey(w.ctx, secret)
	if err != nil || app != "shop" || got.ID != key.ID {
		t.Error(app, got, err)
	}
	if err := w.ForApp("shop").RevokeKey(w.ctx, key.ID); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{secret, "", "nonsense"} {
		if _, _, err := w.AuthenticateKey(w.ctx, s); code(err) != tracking.ErrUnauthorized {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestPushSubscriptions(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	sub := func(n int) tracking.PushSubscription {
		return tracking.PushSubscription{Endpoint: fmt.Sprintf("https://push.example/%d", n), P256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", Auth: strings.Repeat("A", 22)}
	}
	for n := range 12 {
		if err := w.SubscribePush(w.ctx, "own", sub(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.SubscribePush(w.ctx, "own", sub(5)); err != nil {
		t.Fatal(err)
	}
	if err := w.UnsubscribePush(w.ctx, "own", sub(7).Endpoint); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range must(w.Driver(w.ctx, "own"))(t).Push {
		got = append(got, strings.TrimPrefix(p.Endpoint, "https://push.example/"))
	}
	if want := []string{"2", "3", "4", "6", "8", "9", "10", "11", "5"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for field, bad := range map[string]func(*tracking.PushSubscription){
		"endpoint": func(p *tracking.PushSubscription) { p.Endpoint = "http://push.example/1" },
		"p256dh":   func(p *tracking.PushSubscription) { p.P256dh = "B" + strings.Repeat("A", 86) },
		"auth":     func(p *tracking.PushSubscription) { p.Auth = "!" },
	} {
		p := sub(1)
		bad(&p)
		var e *tracking.Error
		if err := w.SubscribePush(w.ctx, "own", p); !errors.As(err, &e) || e.Code != tracking.ErrInvalid || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := w.RevokeTokens(w.ctx, "own"); err != nil {
		t.Fatal(err)
	}
	inv := must(w.InviteDriver(w.ctx, tracking.NewInvite{DriverID: "own"}))(t)
	must(w.Join(w.ctx, tracking.Join{Token: inv.Token}))(t)
	if got := must(w.Driver(w.ctx, "own"))(t).Push; got != nil {
		t.Errorf("after joining anew: %v", got)
	}
}

func TestDeleteDriver(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	task := w.create(true)
	if err := w.DeleteDriver(w.ctx, "own"); code(err) != tracking.ErrConflict {
		t.Error("with an open task:", err)
	}
	startOwn(w, task.ID)
	finish(w, task.ID)
	if err := w.DeleteDriver(w.ctx, "own"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Driver(w.ctx, "own"); code(err) != tracking.ErrNotFound {
		t.Error(err)
	}
	trips, _, err := w.Trips(w.ctx, tracking.TripFilter{})
	if err != nil || len(trips) != 1 || trips[0].DriverID != "own" || len(w.path(trips[0].ID)) != 0 {
		t.Errorf("%+v %v", trips, err)
	}
	w.driver("own", 0)
	if got := must(w.Driver(w.ctx, "own"))(t); got.OpenTasks != 0 {
		t.Errorf("%+v", got)
	}
}

func TestInputIsChecked(t *testing.T) {
	w := newWorld(t)
	long := func(n int) string { return strings.Repeat("é", n) }
	drop := func(change func(*tracking.NewTask)) tracking.NewTask {
		n := tracking.NewTask{Type: tracking.Drop, Drop: &tracking.Place{LngLat: east(0), Address: "x"}}
		change(&n)
		return n
	}
	for field, n := range map[string]tracking.NewTask{
		"type":                 {},
		"pickup":               {Type: tracking.Pickup},
		"drop":                 {Type: tracking.PickupAndDrop, Pickup: &tracking.Place{Address: "x"}},
		"drop.lnglat":          drop(func(n *tracking.NewTask) { n.Drop.LngLat = lnglat(181, 0) }),
		"drop.address":         drop(func(n *tracking.NewTask) { n.Drop.Address = long(1001) }),
		"drop.customer.mobile": drop(func(n *tracking.NewTask) { n.Drop.Customer = &tracking.Contact{Mobile: long(33)} }),
		"customer.name":        drop(func(n *tracking.NewTask) { n.Customer = &tracking.Contact{Name: "a\x00b"} }),
		"order_id":             drop(func(n *tracking.NewTask) { n.OrderID = "a\tb" }),
		"notes":                drop(func(n *tracking.NewTask) { n.Notes = long(4001) }),
		"time":                 drop(func(n *tracking.NewTask) { n.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }),
	} {
		_, err := w.CreateTask(w.ctx, n)
		var e *tracking.Error
		if errors.As(err, &e); e == nil || e.Code != tracking.ErrInvalid || e.Field != field && !(field == "customer.name" && e.Field == "drop.customer.name") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if list, _, _ := w.Tasks(w.ctx, tracking.TaskFilter{}); len(list) != 0 {
		t.Errorf("%d tasks were made all the same", len(list))
	}
	must(w.CreateTask(w.ctx, drop(func(n *tracking.NewTask) { n.Notes, n.OrderID = long(4000), "INV/2024/17" })))(t)
	for _, id := range []tracking.DriverID{"", " a", "a ", "a,b", "a\nb", tracking.DriverID(long(129))} {
		if _, err := w.SaveDriver(w.ctx, tracking.SaveDriver{ID: id}); code(err) != tracking.ErrInvalid {
			t.Errorf("driver %q: %v", id, err)
		}
	}
	for _, email := range []string{"a@b@c", "a", "@b", "a@", "a @b", "a@b\r\nBcc: x", strings.Repeat("a", 300) + "@b"} {
		if _, err := w.InviteDriver(w.ctx, tracking.NewInvite{Email: &email}); code(err) != tracking.ErrInvalid {
			t.Errorf("email %q: %v", email, err)
		}
	}
}

// Whatever a driver does is a sign of life, and ends a silence.
func TestStepsEndSilence(t *testing.T) {
	for name, do := range map[string]func(w *world, task tracking.TaskID, trip tracking.TripID) error{
		"finish": func(w *world, task tracking.TaskID, _ tracking.TripID) error { return finish(w, task) },
		"pickup": func(w *world, task tracking.TaskID, _ tracking.TripID) error { return pickUp(w, task) },
		"stop": func(w *world, _ tracking.TaskID, trip tracking.TripID) error {
			_, err := w.StopTrip(w.ctx, "own", trip, tracking.Step{})
			return err
		},
		"start a trip": func(w *world, _ tracking.TaskID, _ tracking.TripID) error {
			_, err := w.StartTrip(w.ctx, "own", "other", tracking.Step{})
			return err
		},
		"decline": func(w *world, _ tracking.TaskID, _ tracking.TripID) error {
			id := w.create(false).ID
			must(w.AssignTask(w.ctx, id, "own"))(w.t)
			return decline(w, id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *tracking.Options) { o.MaxOpenTasks = 5 })
			w.driver("own", 100)
			id := w.create(true).ID
			_, trip, err := w.StartTask(w.ctx, "own", id, tracking.Step{})
			if err != nil {
				t.Fatal(err)
			}
			w.advance(11 * time.Minute)
			if n := must(w.MarkSilent(w.ctx))(t); n != 1 {
				t.Fatal("not silent")
			}
			if err := do(w, id, trip.ID); err != nil {
				t.Fatal(err)
			}
			if next := w.create(true); next.DriverID != "own" {
				t.Error("heard of by what he does, the driver is not offered anything")
			}
			w.advance(11 * time.Minute)
			if n := must(w.MarkSilent(w.ctx))(t); n != 1 {
				t.Error("silent again, nobody is told")
			}
		})
	}
}

func TestKeyWithTheSameInstant(t *testing.T) {
	w := newWorld(t)
	n := newDrop()
	n.Key, n.Time = "k", start
	first := must(w.CreateTask(w.ctx, n))(t)
	n.Time = start.In(time.FixedZone("", 5*3600+1800)).Add(time.Microsecond)
	if again := must(w.CreateTask(w.ctx, n))(t); again.ID != first.ID {
		t.Error("the same moment in another zone made another task")
	}
	n = newDrop()
	n.Time = time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC).In(time.FixedZone("", 7200))
	if got := must(w.CreateTask(w.ctx, n))(t); !got.Time.Equal(n.Time) {
		t.Error(got.Time)
	}
}

func TestLinkSeesWhatComesLate(t *testing.T) {
	begin := func(t *testing.T, step tracking.Step) (w *world, link string, trip tracking.TripID) {
		w = newWorld(t)
		must(w.SaveDriver(w.ctx, tracking.SaveDriver{ID: "own", Available: new(true)}))(t)
		id := w.create(false).ID
		must(w.AssignTask(w.ctx, id, "own"))(t)
		_, got, err := w.StartTask(w.ctx, "own", id, step)
		if err != nil {
			t.Fatal(err)
		}
		return w, must(w.TaskLink(w.ctx, id))(t), got.ID
	}
	same := func(w *world, link string, trip tracking.TripID) {
		w.t.Helper()
		var got []float64
		for _, p := range must(w.Tracking(w.ctx, link))(w.t).Path {
			got = append(got, float64(int(tracking.Distance(*east(0), p)+0.5)))
		}
		if want := w.path(trip); !slices.Equal(got, want) {
			w.t.Errorf("the link shows %v, the path is %v", got, want)
		}
	}
	send := func(w *world, at time.Duration, m float64) {
		w.t.Helper()
		must(w.RecordFixes(w.ctx, "own", []tracking.Fix{{LngLat: *east(m), Time: start.Add(at)}}))(w.t)
	}
	t.Run("a fix of the very start", func(t *testing.T) {
		w, link, trip := begin(t, tracking.Step{})
		same(w, link, trip)
		send(w, 0, 10)
		same(w, link, trip)
	})
	t.Run("a fix with a step", func(t *testing.T) {
		w, link, trip := begin(t, tracking.Step{LngLat: east(0)})
		w.advance(30 * time.Second)
		send(w, 30*time.Second, 300)
		same(w, link, trip)
		must(w.StartTrip(w.ctx, "own", "other", tracking.Step{At: start.Add(15 * time.Second), LngLat: east(150)}))(t)
		same(w, link, trip)
	})
	t.Run("an older one shows the newest to be a jump", func(t *testing.T) {
		w, link, trip := begin(t, tracking.Step{})
		w.advance(30 * time.Second)
		send(w, 20*time.Second, 90_000)
		same(w, link, trip)
		send(w, 10*time.Second, 0)
		same(w, link, trip)
	})
	t.Run("what a caller got is his", func(t *testing.T) {
		w, link, trip := begin(t, tracking.Step{LngLat: east(0)})
		must(w.Tracking(w.ctx, link))(t).Path[0] = *east(77)
		same(w, link, trip)
	})
}

// Who was made off duty was off duty until the first coming on.
func TestOffDutyFromTheInviteOn(t *testing.T) {
	for name, make := range map[string]func(w *world){
		"invited": func(w *world) { must(w.InviteDriver(w.ctx, tracking.NewInvite{DriverID: "a"}))(w.t) },
		"saved":   func(w *world) { must(w.SaveDriver(w.ctx, tracking.SaveDriver{ID: "a"}))(w.t) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			make(w)
			w.advance(10 * time.Minute)
			must(w.SetAvailability(w.ctx, "a", true, time.Time{}))(t)
			out := must(w.RecordFixes(w.ctx, "a", []tracking.Fix{{LngLat: *east(0), Time: start.Add(5 * time.Minute)}, {LngLat: *east(1), Time: w.now()}}))(t)
			if want := []tracking.FixOutcome{tracking.FixOffDuty, tracking.FixLive}; !slices.Equal(out, want) {
				t.Errorf("%v, want %v", out, want)
			}
		})
	}
}

// Where a trip ends is the last good fix of its window, also when that came with the stop.
func TestEndsAtTheLastGoodFix(t *testing.T) {
	for _, c := range []struct {
		name  string
		fixes []tracking.Fix
		stop  float64
		path  []float64
	}{
		{"agrees with a candidate", []tracking.Fix{{LngLat: *east(50_000), Time: start.Add(10 * time.Second)}}, 50_010, []float64{0, 50_000, 50_010}},
		{"is a jump", nil, 60_000, []float64{0}},
		{"is no jump", nil, 100, []float64{0, 100}},
		{"has the time of a fix", []tracking.Fix{{LngLat: *east(30), Time: start.Add(12 * time.Second)}}, 100, []float64{0, 30}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			must(w.SaveDriver(w.ctx, tracking.SaveDriver{ID: "a", Available: new(true)}))(t)
			id := must(w.StartTrip(w.ctx, "a", "x", tracking.Step{LngLat: east(0)}))(t).ID
			w.advance(12 * time.Second)
			must(w.RecordFixes(w.ctx, "a", c.fixes))(t)
			got := must(w.StopTrip(w.ctx, "a", id, tracking.Step{LngLat: east(c.stop)}))(t)
			path := w.path(id)
			if !slices.Equal(path, c.path) {
				t.Fatalf("path %v, want %v", path, c.path)
			}
			if *got.EndsAt != *east(path[len(path)-1]) {
				t.Errorf("ends at %.0f m, want %.0f", tracking.Distance(*east(0), *got.EndsAt), path[len(path)-1])
			}
		})
	}
}

// A request is answered by starting the trip, also when that is on its way already.
func TestRequestForAnActiveTrip(t *testing.T) {
	w := newWorld(t)
	w.driver("a", 0)
	trip := must(w.StartTrip(w.ctx, "a", "x", tracking.Step{}))(t)
	if err := w.RequestTrip(w.ctx, tracking.NewRequest{DriverID: "a", TrackingID: "x"}); err != nil {
		t.Fatal(err)
	}
	again := must(w.StartTrip(w.ctx, "a", "x", tracking.Step{}))(t)
	if list := must(w.Requests(w.ctx, "a"))(t); len(list) != 0 || again.ID != trip.ID {
		t.Errorf("still open: %v", list)
	}
	if got := w.told(tracking.KindTrip, string(trip.ID), 0); !slices.Equal(got, []string{"trip.started"}) {
		t.Error(got)
	}
}

func TestUpdateNamesThePlaceToBlame(t *testing.T) {
	for _, found := range []bool{false, true} { // waiting, or with a driver who may decline it
		w := newWorld(t)
		if found {
			w.driver("own", 0)
		}
		task := w.create(true)
		_, err := w.UpdateTask(w.ctx, task.ID, tracking.TaskUpdate{Pickup: &tracking.Place{Address: "somewhere"}})
		var e *tracking.Error
		if !errors.As(err, &e) || e.Field != "pickup.lnglat" {
			t.Errorf("with a driver %v: %v", found, err)
		}
	}
}

// Where steps off duty happened is kept as fixes off duty are.
func TestStepOffDuty(t *testing.T) {
	for _, keep := range []bool{false, true} {
		w := newWorld(t, func(o *tracking.Options) { o.KeepOffDuty = keep })
		must(w.SaveDriver(w.ctx, tracking.SaveDriver{ID: "own"}))(t)
		id := w.create(false).ID
		must(w.AssignTask(w.ctx, id, "own"))(t)
		must(w.DeclineTask(w.ctx, "own", id, "", tracking.Step{LngLat: east(10)}))(t)
		if got := must(w.Driver(w.ctx, "own"))(t).Position.Located(); got != keep {
			t.Errorf("with KeepOffDuty %v: kept %v", keep, got)
		}
	}
}
