package tracking_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// later is a task that goes to a driver by itself, from 2 h on.
func later() tracking.NewTask {
	n := newDrop()
	n.AutoAssign, n.Window = true, tracking.Window{From: start.Add(3 * time.Hour), To: start.Add(4 * time.Hour)}
	return n
}

func (w *world) markDue(want int) {
	w.t.Helper()
	if n, err := w.MarkDueTasks(w.ctx); n != want || err != nil {
		w.t.Errorf("%d tasks were due, error %v; want %d", n, err, want)
	}
}

func (w *world) serve(want int) {
	w.t.Helper()
	if n, err := w.AssignWaiting(w.ctx); n != want || err != nil {
		w.t.Errorf("%d tasks were served, error %v; want %d", n, err, want)
	}
}

func TestTaskForLater(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	task := must(w.CreateTask(w.ctx, later()))(t)
	if task.Status != tracking.StatusCreated || task.Waiting || !task.AssignAt.Equal(start.Add(2*time.Hour)) ||
		!task.DueAt.Equal(task.AssignAt) {
		t.Fatalf("it does not wait for its time: %+v", task)
	}
	if kept := w.task(task.ID); !kept.DueAt.Equal(task.DueAt) {
		t.Errorf("it is due at %v, and kept with %v", task.DueAt, kept.DueAt)
	}
	w.markDue(0)
	w.serve(0)
	if other := w.create(true); other.DriverID != "own" {
		t.Error("a task for now waits behind one for later")
	} else {
		must(w.CancelTask(w.ctx, other.ID, tracking.Reason{}))(t)
	}

	w.advance(2*time.Hour - time.Millisecond)
	must(w.RecordFixes(w.ctx, "own", nil))(t)
	w.markDue(0)
	w.advance(time.Millisecond)
	w.markDue(1)
	w.markDue(0)
	if got := w.task(task.ID); !got.Waiting || !got.UpdatedAt.Equal(start) || !got.WaitsSince.Equal(w.now()) {
		t.Errorf("its time has come: %+v", got)
	}
	w.serve(1)
	if got := w.task(task.ID); got.DriverID != "own" {
		t.Errorf("it went to %q", got.DriverID)
	}
	if got := w.told(tracking.KindTask, string(task.ID), 0); len(got) != 2 {
		t.Errorf("events %q", got)
	}
}

// Options.AssignLead says how long before its window a task is looked after.
func TestAssignLead(t *testing.T) {
	w := newWorld(t, func(o *tracking.Options) { o.AssignLead = 3 * time.Hour })
	w.driver("own", 0)
	if task := must(w.CreateTask(w.ctx, later()))(t); task.DriverID != "own" {
		t.Errorf("its window begins in 3 h, and it waits: %+v", task)
	}
}

// What is done with a task that waits for its time decides whether it waits on.
func TestTaskForLaterIsTaken(t *testing.T) {
	for name, do := range map[string]func(w *world, id tracking.TaskID) error{
		"assigned": func(w *world, id tracking.TaskID) error { _, err := w.AssignTask(w.ctx, id, "own"); return err },
		"unassigned": func(w *world, id tracking.TaskID) error {
			_, err := w.UnassignTask(w.ctx, id)
			return err
		},
		"cancelled": func(w *world, id tracking.TaskID) error {
			_, err := w.CancelTask(w.ctx, id, tracking.Reason{})
			return err
		},
		"completed": func(w *world, id tracking.TaskID) error {
			_, err := w.CompleteTask(w.ctx, id, tracking.Completion{})
			return err
		},
	} {
		w := newWorld(t)
		w.driver("own", 0)
		w.driver("other", 100)
		task := must(w.CreateTask(w.ctx, later()))(t)
		if err := do(w, task.ID); err != nil {
			t.Fatal(err)
		}
		if got := w.task(task.ID); got.Waiting || !got.AssignAt.IsZero() {
			t.Errorf("%s: it waits: %+v", name, got)
		}
		w.advance(3*time.Hour + time.Minute)
		must(w.RecordFixes(w.ctx, "other", nil))(t)
		w.markDue(0)
		w.serve(0)
	}
}

// A task given automatically, whose window was moved, waits for its new time when it is declined.
func TestDeclinedWaitsForItsTime(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	task := w.create(true)
	must(w.UpdateTask(w.ctx, task.ID, tracking.TaskUpdate{Window: &tracking.Window{From: start.Add(3 * time.Hour)}}))(t)
	must(w.DeclineTask(w.ctx, "own", task.ID, tracking.Reason{}, tracking.Step{}))(t)
	w.driver("other", 100)
	w.serve(0)
	w.advance(2 * time.Hour)
	must(w.RecordFixes(w.ctx, "other", nil))(t)
	w.markDue(1)
	w.serve(1)
	if got := w.task(task.ID); got.DriverID != "other" {
		t.Errorf("it went to %q", got.DriverID)
	}
}

// An update of the window moves the moment from which a driver is looked for, there and back.
func TestUpdateMovesTheMoment(t *testing.T) {
	w := newWorld(t)
	task := must(w.CreateTask(w.ctx, later()))(t)
	move := func(from time.Duration) tracking.Task {
		return must(w.UpdateTask(w.ctx, task.ID, tracking.TaskUpdate{
			Window: &tracking.Window{From: start.Add(from), To: start.Add(from + time.Hour)},
		}))(t)
	}
	if got := move(5 * time.Hour); !got.AssignAt.Equal(start.Add(4*time.Hour)) || !got.DueAt.Equal(got.AssignAt) {
		t.Errorf("moved on: %+v", got)
	}
	if got := move(time.Hour); !got.Waiting || !got.AssignAt.IsZero() || !got.DueAt.Equal(start.Add(2*time.Hour)) {
		t.Errorf("moved to within the lead: %+v", got)
	}
	w.driver("own", 0)
	if got := move(3 * time.Hour); got.Waiting || !got.AssignAt.Equal(start.Add(2*time.Hour)) {
		t.Errorf("moved back: %+v", got)
	}
	w.serve(0)
	move(time.Hour)
	w.serve(1)
}

// What is late reads so at once, and fires once for each promise; what is completed does not.
func TestLateTasks(t *testing.T) {
	w := newWorld(t, func(o *tracking.Options) { o.MaxOpenTasks = -1 })
	w.driver("own", 0)
	n := newDrop()
	n.AutoAssign, n.Promised = true, start.Add(time.Hour)
	task, done := must(w.CreateTask(w.ctx, n))(t), must(w.CreateTask(w.ctx, n))(t)
	startOwn(w, task.ID)
	startOwn(w, done.ID)
	w.advance(30 * time.Minute)
	finish(w, done.ID)
	w.advance(30*time.Minute - time.Millisecond)
	w.markDue(0)
	w.advance(time.Millisecond)
	if !w.task(task.ID).Late(w.now()) || w.task(done.ID).Late(w.now()) {
		t.Error("before the sweep: late is the one that is not done, and the other is not")
	}
	w.advance(time.Minute)
	w.markDue(1)
	w.markDue(0)
	late := func() (list []tracking.Event) {
		events, _, err := w.Events(w.ctx, tracking.EventFilter{Subject: tracking.Subject{
			Kind: tracking.KindTask, ID: string(task.ID),
		}})
		if err != nil {
			t.Fatal(err)
		}
		return slices.DeleteFunc(events, func(e tracking.Event) bool { return e.Type != tracking.EventTaskLate })
	}
	if got := late(); len(got) != 1 || !got[0].Time.Equal(n.Promised) || !got[0].RecordedAt.Equal(w.now()) ||
		got[0].Details() != (tracking.TaskLateData{DriverID: "own", Promised: n.Promised}) || got[0].Person == "" ||
		got[0].Actor != "system" || len(got[0].Notices) > 0 {
		t.Errorf("told: %+v", got)
	}

	moved := must(w.UpdateTask(w.ctx, task.ID, tracking.TaskUpdate{Promised: new(w.now().Add(time.Hour))}))(t)
	if moved.Late(w.now()) || !moved.DueAt.Equal(w.now().Add(time.Hour)) {
		t.Errorf("with a new promise: %+v", moved)
	}
	w.markDue(0)
	w.advance(time.Hour)
	w.markDue(1)
	if got := late(); len(got) != 2 {
		t.Errorf("told of the second promise: %+v", got)
	}
	w.advance(time.Hour)
	if got := finishedBy(w, task.ID); got.Late(w.now()) || !got.DueAt.IsZero() {
		t.Errorf("when it is done: %+v", got)
	}
	w.markDue(0)
}

func finishedBy(w *world, id tracking.TaskID) tracking.Task {
	return must(w.FinishTask(w.ctx, "own", id, tracking.Completion{}, tracking.Step{}))(w.t)
}

// With its driver erased a task is nobody's and waits for nobody: nothing more comes due of it.
func TestErasedDriverLeavesNothingDue(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	n := newDrop()
	n.AutoAssign, n.Promised = true, start.Add(time.Hour)
	task := must(w.CreateTask(w.ctx, n))(t)
	if err := w.ForceDeleteDriver(w.ctx, "own"); err != nil {
		t.Fatal(err)
	}
	if got := w.task(task.ID); !got.DueAt.IsZero() {
		t.Errorf("it is due at %v", got.DueAt)
	}
	w.advance(2 * time.Hour)
	w.markDue(0)
}

// A clock that ran ahead begins too early, which ends when it is right.
func TestBegunTooEarly(t *testing.T) {
	w := newWorld(t)
	task := must(w.CreateTask(w.ctx, later()))(t)
	w.advance(2 * time.Hour)
	w.markDue(1)
	w.advance(-2 * time.Hour)
	w.driver("own", 0)
	w.serve(0)
	if got := w.task(task.ID); got.Waiting || !got.AssignAt.Equal(start.Add(2*time.Hour)) {
		t.Errorf("when the clock is right: %+v", got)
	}
	w.advance(2 * time.Hour)
	must(w.RecordFixes(w.ctx, "own", nil))(t)
	w.markDue(1)
	w.serve(1)
}

// A clock that ran ahead has told of lateness; once it is right the task is not late, and is told
// of when it is.
func TestLateInTheFuture(t *testing.T) {
	for _, changed := range []bool{false, true} {
		w := newWorld(t)
		n := newDrop()
		n.AutoAssign, n.Promised = true, start.Add(time.Hour)
		task := must(w.CreateTask(w.ctx, n))(t)
		const years = 10 * 365 * 24 * time.Hour
		w.advance(years)
		w.markDue(1)
		w.advance(-years)
		if changed {
			must(w.UpdateTask(w.ctx, task.ID, tracking.TaskUpdate{Notes: new("ring")}))(t)
		}
		if w.task(task.ID).Late(w.now()) {
			t.Errorf("changed since (%v): it is late before its time", changed)
		}
		w.advance(time.Hour)
		if changed { // what has not been touched stays as it was told
			w.markDue(1)
		}
		w.markDue(0)
		if !w.task(task.ID).Late(w.now()) {
			t.Errorf("changed since (%v): its time has come, and it is not late", changed)
		}
	}
}

// The clock is put back between the look for what is due and the change: nothing is done before its
// time, and nothing spins.
func TestClockPutBackWhileDue(t *testing.T) {
	store := &putBack{Store: memory.New()}
	w := newWorldOn(t, store)
	must(w.CreateTask(w.ctx, later()))(t)
	w.advance(2 * time.Hour)
	store.between = func() { w.advance(-time.Minute) }
	w.markDue(0)
	store.between = func() {}
	w.advance(time.Minute)
	w.markDue(1)
}

type putBack struct {
	tracking.Store
	between func()
}

func (s *putBack) Due(ctx context.Context, q tracking.DueQuery) ([]tracking.Due, error) {
	due, err := s.Store.Due(ctx, q)
	if len(due) > 0 {
		s.between()
	}
	return due, err
}

// One task that cannot be written holds up no other, of its application or another.
func TestOneThatFailsHoldsUpNoDueTask(t *testing.T) {
	store := &refusing{Store: memory.New()}
	w := newWorldOn(t, store)
	for range 3 {
		must(w.CreateTask(w.ctx, later()))(t)
	}
	bad := must(w.CreateTask(w.ctx, later()))(t)
	must(w.ForApp("other").CreateTask(w.ctx, later()))(t)
	store.id = bad.ID
	w.advance(2 * time.Hour)
	n, err := w.MarkDueTasks(w.ctx)
	if n != 4 || code(err) != tracking.ErrInternal && !strings.Contains(err.Error(), "refused") {
		t.Errorf("%d were marked, error %v; want 4 and an error", n, err)
	}
	store.id = ""
	w.markDue(1)
}

// refusing is a store that fails to write one task.
type refusing struct {
	tracking.Store
	id tracking.TaskID
}

func (s *refusing) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	if slices.ContainsFunc(cs.Tasks, func(t tracking.Task) bool { return t.ID == s.id }) {
		return tracking.Written{}, errors.New("refused")
	}
	return s.Store.Commit(ctx, app, cs)
}

// While Run runs a task for later has its driver within a second, and late ones are told of.
func TestRunBeginsAndTellsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		svc := running(t, &tracking.Options{Notifier: r})
		ctx := t.Context()
		now := time.Now()
		n := newDrop()
		n.AutoAssign, n.Window = true, tracking.Window{From: now.Add(3 * time.Hour), To: now.Add(4 * time.Hour)}
		task := must(svc.CreateTask(ctx, n))(t)
		time.Sleep(2*time.Hour - time.Minute)
		must(svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "a", Available: new(true), LngLat: east(0)}))(t)
		time.Sleep(time.Minute - time.Millisecond)
		if got := must(svc.Task(ctx, task.ID))(t); got.DriverID != "" {
			t.Error("it has a driver before its time")
		}
		time.Sleep(time.Millisecond + time.Second)
		if got := must(svc.Task(ctx, task.ID))(t); got.DriverID != "a" {
			t.Error("its time has come, and it has no driver")
		}
		time.Sleep(2 * time.Hour)
		if got := r.seqs(string(task.ID)); !slices.Equal(got, []int64{1, 2, 3}) { // created, assigned, late
			t.Errorf("of the task: %v", got)
		}
	})
}

func TestWindowInputs(t *testing.T) {
	w := newWorld(t)
	many := map[string]string{}
	for i := range 51 {
		many[strings.Repeat("k", i+1)] = "v"
	}
	old := time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)
	task := w.create(false)
	for _, c := range []struct {
		field  string
		window tracking.Window
		at     time.Time
		needs  map[string]string
	}{
		{"window.to", tracking.Window{From: start, To: start.Add(-time.Millisecond)}, time.Time{}, nil},
		{"window.from", tracking.Window{From: old}, time.Time{}, nil},
		{"window.to", tracking.Window{To: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, time.Time{}, nil},
		{"promised", tracking.Window{}, old, nil},
		{"requires", tracking.Window{}, time.Time{}, many},
		{"requires", tracking.Window{}, time.Time{}, map[string]string{"": "v"}},
		{"requires", tracking.Window{}, time.Time{}, map[string]string{strings.Repeat("ü", 65): "v"}},
		{"requires", tracking.Window{}, time.Time{}, map[string]string{"k": strings.Repeat("ü", 257)}},
		{"requires", tracking.Window{}, time.Time{}, map[string]string{"k": "\x00"}},
		{"", tracking.Window{From: start, To: start}, start, map[string]string{
			strings.Repeat("ü", 64): strings.Repeat("ü", 256), "k": "",
		}},
		// the same millisecond
		{"", tracking.Window{From: start.Add(500 * time.Microsecond), To: start}, time.Time{}, nil},
		{"", tracking.Window{To: start.Add(-time.Hour)}, start.Add(-time.Hour), nil},
	} {
		n := newDrop()
		n.Window, n.Promised, n.Requires = c.window, c.at, c.needs
		_, err := w.CreateTask(w.ctx, n)
		_, err2 := w.UpdateTask(w.ctx, task.ID, tracking.TaskUpdate{
			Window: &c.window, Promised: &c.at, Requires: c.needs,
		})
		for _, err := range []error{err, err2} {
			var e *tracking.Error
			if c.field == "" && err != nil || c.field != "" && (!errors.As(err, &e) || e.Code != tracking.ErrInvalid ||
				e.Field != c.field) {
				t.Errorf("%+v: %v, want the field %q to blame", c, err, c.field)
			}
		}
	}
}

// The same key with the same window is the same task, with another it is other content.
func TestKeyWithAWindow(t *testing.T) {
	w := newWorld(t)
	n := later()
	n.Key = "k"
	first := must(w.CreateTask(w.ctx, n))(t)
	n.Window.From = n.Window.From.In(time.FixedZone("", 3600)).Add(time.Microsecond)
	if again := must(w.CreateTask(w.ctx, n))(t); again.ID != first.ID {
		t.Error("the same moment in another zone is another task")
	}
	n.Window.To = n.Window.To.Add(time.Millisecond)
	if _, err := w.CreateTask(w.ctx, n); code(err) != tracking.ErrConflict {
		t.Errorf("another window: %v", err)
	}
}
