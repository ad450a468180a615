package tracking

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A task for later is sought from lead before its window on, at the millisecond.
func TestSought(t *testing.T) {
	from := t0.Add(3 * time.Hour)
	later := Task{AssignAt: from.Add(-time.Hour), WaitsSince: t0}
	for _, c := range []struct {
		name string
		from time.Time
		was  Task
		now  time.Time
		want Task // what waits of it
	}{
		{"no window", time.Time{}, Task{}, t0, Task{Waiting: true, WaitsSince: t0}},
		{"later", from, Task{}, t0, later},
		{"a millisecond before", from, Task{}, from.Add(-time.Hour - 1e6), Task{
			AssignAt: from.Add(-time.Hour), WaitsSince: from.Add(-time.Hour - 1e6),
		}},
		{"from then on", from, Task{}, from.Add(-time.Hour), Task{Waiting: true, WaitsSince: from.Add(-time.Hour)}},
		{"long ago", t0.Add(-day), Task{}, t0, Task{Waiting: true, WaitsSince: t0}},
		{"waits for another time", from, Task{AssignAt: t0.Add(day), WaitsSince: t0}, t0.Add(time.Minute), later},
		{"waits already", time.Time{}, Task{Waiting: true, WaitsSince: t0}, t0.Add(time.Minute), Task{
			Waiting: true, WaitsSince: t0,
		}},
		{"begins to look", t0, Task{AssignAt: t0.Add(day), WaitsSince: t0}, t0.Add(time.Minute), Task{
			Waiting: true, WaitsSince: t0.Add(time.Minute),
		}},
		{"looks no longer", from, Task{Waiting: true, WaitsSince: t0}, t0.Add(time.Minute), Task{
			AssignAt: from.Add(-time.Hour), WaitsSince: t0.Add(time.Minute),
		}},
	} {
		c.was.Window.From, c.want.Window.From = c.from, c.from
		if diff := cmp.Diff(c.want, c.was.sought(time.Hour, c.now)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// What ends the waiting of a task ends that for a later moment as well.
func TestEachVerbEndsTheWaitingForLater(t *testing.T) {
	now := t0.Add(time.Minute)
	for _, name := range []string{"created", "waiting"} {
		was := taskStates()[name]
		was.Window = Window{From: t0.Add(3 * time.Hour), To: t0.Add(4 * time.Hour)}
		was = was.sought(time.Hour, t0)
		if was.Waiting || was.AssignAt.IsZero() {
			t.Fatalf("it waits at once: %+v", was)
		}
		for verb, next := range map[string]func() (Task, bool, error){
			"assign":   func() (Task, bool, error) { return was.assigned(Driver{ID: "own"}, false, now) },
			"unassign": func() (Task, bool, error) { return was.unassigned(now) },
			"cancel": func() (Task, bool, error) {
				return was.completed("", Completion{Outcome: OutcomeCancelled}, time.Time{}, now)
			},
			"complete": func() (Task, bool, error) {
				return was.completed("", Completion{Outcome: OutcomeSucceeded}, time.Time{}, now)
			},
		} {
			got, changed, err := next()
			if err != nil || !changed || got.Seeks() || !got.WaitsSince.IsZero() {
				t.Errorf("%s: changed %v, error %v, waits for %v, since %v", verb, changed, err, got.AssignAt,
					got.WaitsSince)
			}
			want := time.Time{}
			if verb == "assign" {
				want = was.Window.To
			}
			if !got.due().Equal(want) {
				t.Errorf("%s: due at %v, want %v", verb, got.due(), want)
			}
		}
	}
}

// A task that was assigned automatically is sought again when it is declined, at its time.
func TestDeclinedForLater(t *testing.T) {
	was := taskStates()["assigned by auto"]
	was.Window.From = t0.Add(3 * time.Hour)
	got, _, err := was.declined("own", Reason{}, time.Hour, t0.Add(time.Minute))
	if err != nil || got.Waiting || !got.AssignAt.Equal(t0.Add(2*time.Hour)) {
		t.Errorf("it waits: %v, for %v; error %v", got.Waiting, got.AssignAt, err)
	}
	by := taskStates()["assigned"]
	by.Window = was.Window
	if got, _, _ = by.declined("own", Reason{}, time.Hour, t0.Add(time.Minute)); got.Seeks() {
		t.Error("a task that was given by hand waits")
	}
}

// A task is late from the moment of its promise on, while it is somebody's work or waits; that is
// told once for each promise.
func TestLate(t *testing.T) {
	promised := t0.Add(time.Hour)
	states := taskStates()
	states["for later"] = func() Task { t := states["created"]; t.AssignAt = t0.Add(3 * time.Hour); return t }()
	for name, late := range map[string]bool{
		"created": false, "waiting": true, "for later": true, "assigned": true, "assigned by auto": true,
		"in_progress": true, "picked up": true, "succeeded": false, "failed": false, "cancelled": false,
	} {
		for _, window := range []bool{false, true} {
			task := states[name]
			if window { // its end counts more than what was promised beside it
				task.Window.To, task.Promise = promised, t0.Add(-day)
			} else {
				task.Promise = promised
			}
			what := fmt.Sprintf("%s, by window %v", name, window)
			for _, now := range []time.Time{promised.Add(-time.Millisecond), promised, promised.Add(day)} {
				want := late && !now.Before(promised)
				if task.Late(now) != want {
					t.Errorf("%s: late is %v at %v", what, !want, now)
				}
				next, told := task.late(time.Time{}, now)
				if told != want {
					t.Errorf("%s: told is %v at %v", what, told, now)
				}
				if !told {
					continue
				}
				if !next.UpdatedAt.Equal(now) || !next.Late(now) {
					t.Errorf("%s: told, and updated at %v, late %v", what, next.UpdatedAt, next.Late(now))
				}
				if _, again := next.late(time.Time{}, now.Add(day)); again {
					t.Errorf("%s: told twice", what)
				}
				other := next
				other.Window.To, other.Promise = time.Time{}, now.Add(time.Hour)
				if _, again := other.late(time.Time{}, now); again || other.Late(now) {
					t.Errorf("%s: another promise, and late at once", what)
				}
				if _, again := other.late(time.Time{}, now.Add(time.Hour)); !again {
					t.Errorf("%s: another promise that is not kept, and not told", what)
				}
			}
			if task.due().IsZero() == late {
				t.Errorf("%s: due at %v", what, task.due())
			}
		}
	}
}

// With an expected time later than the promise a task is late at once, and stays so, as that is
// told.
func TestLateByTheExpectedTime(t *testing.T) {
	promised, now := t0.Add(time.Hour), t0.Add(10*time.Minute)
	task := taskStates()["in_progress"]
	task.Promise = promised
	if _, told := task.late(promised, now); told {
		t.Error("expected at the very moment, and late")
	}
	task, told := task.late(promised.Add(time.Millisecond), now)
	if !told || !task.Late(now.Add(time.Minute)) {
		t.Errorf("expected later: told %v, late %v", told, task.Late(now))
	}
	if !task.due().IsZero() {
		t.Errorf("it was told, and is due at %v", task.due())
	}
}

// What a clock that ran ahead has told of lateness does not count once it is right.
func TestLateByAWrongClock(t *testing.T) {
	task := taskStates()["assigned"]
	task.Promise = t0.Add(time.Hour)
	task, _ = task.late(time.Time{}, t0.Add(day))
	if now := t0.Add(time.Minute); task.Late(now) {
		t.Error("it is late before its time")
	}
	if got := task.asTold(t0.Add(time.Minute)); !got.LateFor.IsZero() || !got.due().Equal(task.Promise) {
		t.Errorf("it is due at %v, told for %v", got.due(), got.LateFor)
	}
	if now := t0.Add(2 * time.Hour); !task.Late(now) || task.asTold(now).LateFor.IsZero() {
		t.Error("what has come true meanwhile is forgotten")
	}
}

func TestDue(t *testing.T) {
	task := taskStates()["created"]
	task.AssignAt = t0.Add(time.Hour)
	if !task.due().Equal(task.AssignAt) {
		t.Errorf("without a promise it is due at %v", task.due())
	}
	task.Promise = t0.Add(2 * time.Hour)
	if !task.due().Equal(task.AssignAt) {
		t.Errorf("with a later promise it is due at %v", task.due())
	}
	task.Promise = t0.Add(time.Minute)
	if !task.due().Equal(task.Promise) {
		t.Errorf("with an earlier promise it is due at %v", task.due())
	}
	if task.LateFor = task.Promise; !task.due().Equal(task.AssignAt) {
		t.Errorf("when that was told it is due at %v", task.due())
	}
}

// What an update makes of window, promise and requirements, in the states that it is allowed in.
func TestUpdateOfTheWindow(t *testing.T) {
	now := t0.Add(time.Minute)
	from, to := t0.Add(5*time.Hour), t0.Add(6*time.Hour)
	for state, fields := range map[string][]string{
		"created":     {"window", "promised", "requires"},
		"waiting":     {"window", "promised", "requires"},
		"assigned":    {"window", "promised", "requires"},
		"in_progress": {"window", "promised"},
	} {
		was := taskStates()[state]
		u := TaskUpdate{Window: &Window{from, to}, Promised: &to, Requires: map[string]string{"van": "yes"}}
		if state == "in_progress" {
			if _, _, err := was.updated(u, time.Hour, now); err == nil {
				t.Error("what a driver must have is changed while the task is in progress")
			}
			u.Requires = nil
		}
		got, changed, err := was.updated(u, time.Hour, now)
		if err != nil || !slices.Equal(changed, fields) || got.Window != *u.Window || !got.Promise.Equal(to) ||
			len(got.Requires) != len(u.Requires) {
			t.Errorf("%s: %q, error %v: %+v", state, changed, err, got)
		}
		if waits := state == "waiting"; got.AssignAt.Equal(from.Add(-time.Hour)) != waits || got.Waiting {
			t.Errorf("%s: it waits for %v", state, got.AssignAt)
		}
		if _, again, _ := got.updated(u, time.Hour, now); again != nil {
			t.Errorf("%s: the same again changes %q", state, again)
		}
		if state == "in_progress" {
			continue
		}
		none := TaskUpdate{Window: &Window{}, Promised: new(time.Time), Requires: map[string]string{}}
		got, changed, err = got.updated(none, time.Hour, now)
		if err != nil || !slices.Equal(changed, fields) || !got.Promised().IsZero() || len(got.Requires) > 0 ||
			got.Waiting != (state == "waiting") || !got.AssignAt.IsZero() {
			t.Errorf("%s: taken back, %q, error %v: %+v", state, changed, err, got)
		}
	}
	for state, was := range taskStates() {
		_, _, err := was.updated(TaskUpdate{Promised: &to}, time.Hour, now)
		if (err != nil) != (was.Status == StatusCompleted) {
			t.Errorf("%s: error %v", state, err)
		}
	}
}
