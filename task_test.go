package tracking_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// What each verb makes of each state is told in one event, to the drivers whom it concerns, and
// leaves the right count with each driver.
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
		{"force own", "in_progress", force("own"), nil, 1, ""},
		{"force other", "created", force("other"), []string{"task.assigned other:assigned"}, 0, ""},
		{"force other", "assigned", force("other"), []string{"task.assigned own:unassigned other:assigned"}, 0, ""},
		{"force other", "in_progress", force("other"), []string{"task.assigned own:unassigned other:assigned"}, 0, ""},
		{"force other", "completed", force("other"), nil, 0, tracking.ErrConflict},
		{"force nobody", "in_progress", force("nobody"), nil, 1, tracking.ErrNotFound},
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
		{"reopen", "created", reopen, nil, 0, ""},
		{"reopen", "assigned", reopen, nil, 1, ""},
		{"reopen", "in_progress", reopen, nil, 1, ""},
		{"reopen", "completed", reopen, []string{"task.reopened own:reopened"}, 1, ""},
		{"undo", "created", undo, nil, 0, tracking.ErrNotFound},
		{"undo", "assigned", undo, nil, 1, ""},
		{"undo", "in_progress", undo, []string{"task.undone"}, 1, ""},
		{"undo", "completed", undo, []string{"task.undone"}, 1, ""},
		{"hand over", "created", handOver(false), nil, 0, tracking.ErrConflict},
		{"hand over", "assigned", handOver(false), []string{"task.assigned own:unassigned other:handed_over"}, 0, ""},
		{"hand over", "in_progress", handOver(false), nil, 1, tracking.ErrConflict},
		{
			"hand over with force", "in_progress", handOver(true),
			[]string{"task.assigned own:unassigned other:handed_over"}, 0, "",
		},
		{"hand over", "completed", handOver(true), nil, 0, tracking.ErrConflict},
	} {
		t.Run(c.verb+"/"+c.state, func(t *testing.T) {
			w := newWorld(t)
			w.driver("own", 100)
			must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "other"}))(t)
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
			if got := must(w.Driver(w.ctx, "own"))(t).OpenTasks(); got != c.open {
				t.Errorf("own has %d open tasks, want %d", got, c.open)
			}
			active, _, err := w.Trips(w.ctx, tracking.TripFilter{Status: tracking.TripActive})
			if running := w.task(id).Status == tracking.StatusInProgress; err != nil || (len(active) == 1) != running {
				t.Errorf("%d active trips of a task that is %s", len(active), w.task(id).Status)
			}
		})
	}
}

func assign(d tracking.DriverID) func(*world, tracking.TaskID) error {
	return func(w *world, id tracking.TaskID) error { _, err := w.AssignTask(w.ctx, id, d); return err }
}

func force(d tracking.DriverID) func(*world, tracking.TaskID) error {
	return func(w *world, id tracking.TaskID) error { _, err := w.ForceAssignTask(w.ctx, id, d); return err }
}

func handOver(force bool) func(*world, tracking.TaskID) error {
	return func(w *world, id tracking.TaskID) error {
		_, err := w.HandOver(w.ctx, tracking.HandOverRequest{
			From: "own", To: "other", Tasks: []tracking.TaskID{id}, Force: force,
		})
		return err
	}
}

func reopen(w *world, id tracking.TaskID) error { _, err := w.ReopenTask(w.ctx, id); return err }

func undo(w *world, id tracking.TaskID) error {
	_, _, err := w.UndoTask(w.ctx, "own", id, "", tracking.Step{})
	return err
}

func unassign(w *world, id tracking.TaskID) error { _, err := w.UnassignTask(w.ctx, id); return err }

func decline(w *world, id tracking.TaskID) error {
	_, err := w.DeclineTask(w.ctx, "own", id, tracking.Reason{}, tracking.Step{})
	return err
}

func update(w *world, id tracking.TaskID) error {
	_, err := w.UpdateTask(w.ctx, id, tracking.TaskUpdate{Notes: new("ring twice")})
	return err
}

func cancel(w *world, id tracking.TaskID) error {
	_, err := w.CancelTask(w.ctx, id, tracking.Reason{})
	return err
}

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
	newer := w.create(true) // must not be served before the older ones, and does not serve them
	if got := w.task(first.ID); !got.Waiting || !newer.Waiting {
		t.Errorf("a new task took the driver: %+v, or served the oldest: %+v", newer, got)
	}
	if n, err := w.AssignWaiting(w.ctx); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	if got := w.task(first.ID).DriverID; got != "a" {
		t.Errorf("the oldest went to %q", got)
	}
	if !w.task(newer.ID).Waiting || !w.task(second.ID).Waiting {
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
		{"not who was last heard of too long ago", func(o *tracking.Options) {
			o.MaxFixAge = 5 * time.Minute
		}, func(w *world) {
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
		{"who may have two", func(o *tracking.Options) {
			o.MaxOpenTasks = 2
		}, func(w *world) { w.driver("far", 900); w.driver("near", 100); w.create(true) }, "near"},
		{"fewer open tasks among equally near", func(o *tracking.Options) {
			o.MaxOpenTasks = -1
		}, func(w *world) { w.driver("a", 100); w.create(true); w.driver("b", 100) }, "b"},
		{"then by id", nil, func(w *world) { w.driver("b", 100); w.driver("a", 100) }, "a"},
		{"not too far", func(o *tracking.Options) {
			o.MaxAssignDistance = 1000
		}, func(w *world) { w.driver("far", 1001) }, ""},
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
	n := tracking.NewTask{Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "x"}, Key: "k1"}
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
		if got, want := w.task(id).Outcome, []tracking.Outcome{
			tracking.OutcomeCancelled, tracking.OutcomeSucceeded,
		}[ok]; got != want {
			t.Fatalf("%s won, and the outcome is %s", want, got)
		}
		if got := w.told(tracking.KindTask, string(id), 3); len(got) != 1 {
			t.Fatalf("events %q", got)
		}
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
