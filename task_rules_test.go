package tracking

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// taskStates are all states that a task can be in, held by driver "own" where anybody holds it.
func taskStates() map[string]Task {
	created := Task{
		ID: "t", Type: TypePickupAndDrop, Status: StatusCreated, CreatedAt: t0, UpdatedAt: t0,
		Pickup: &Place{Address: "p"}, Drop: &Place{Address: "d"}, Version: 1,
	}
	with := func(t Task, change func(*Task)) Task { t = t.Clone(); change(&t); return t }
	assigned := with(created, func(t *Task) {
		t.Status, t.DriverID, t.AssignedAt = StatusAssigned, "own", t0.Add(time.Minute)
	})
	started := with(assigned, func(t *Task) {
		t.Status, t.StartedAt, t.StepAt = StatusInProgress, t0.Add(2*time.Minute), t0.Add(55*time.Minute)
	})
	done := func(o Outcome) Task {
		return with(started, func(t *Task) {
			t.Status, t.Outcome, t.CompletedAt = StatusCompleted, o, t0.Add(3*time.Minute)
			if o == OutcomeCancelled { // which is no step of the driver's
				t.StepAt = time.Time{}
			}
		})
	}
	return map[string]Task{
		"created":          created,
		"waiting":          with(created, func(t *Task) { t.Waiting = true }),
		"assigned":         assigned,
		"assigned by auto": with(assigned, func(t *Task) { t.AutoAssigned = true }),
		"in_progress":      started,
		"picked up":        with(started, func(t *Task) { t.PickedUpAt = t0.Add(150 * time.Second) }),
		"succeeded":        done(OutcomeSucceeded),
		"failed":           done(OutcomeFailed),
		"cancelled":        done(OutcomeCancelled),
	}
}

// The table of what each verb does to each state, by whom: the status it leads to, "nothing", or
// the code of the error.
func TestTaskTable(t *testing.T) {
	now := t0.Add(time.Hour)
	type verb func(Task) (Task, bool, error)
	update := func(u TaskUpdate) verb {
		return func(t Task) (Task, bool, error) {
			n, fields, err := t.updated(u, time.Hour, now)
			return n, fields != nil, err
		}
	}
	notes, order, when := "new notes", "new order", t0.Add(time.Hour)
	verbs := map[string]verb{
		"assign own":     func(t Task) (Task, bool, error) { return t.assigned(Driver{ID: "own"}, false, now) },
		"assign other":   func(t Task) (Task, bool, error) { return t.assigned(Driver{ID: "other"}, false, now) },
		"auto other":     func(t Task) (Task, bool, error) { return t.assigned(Driver{ID: "other"}, true, now) },
		"force own":      func(t Task) (Task, bool, error) { return t.reassigned(Driver{ID: "own"}, now) },
		"force other":    func(t Task) (Task, bool, error) { return t.reassigned(Driver{ID: "other"}, now) },
		"unassign":       func(t Task) (Task, bool, error) { return t.unassigned(now) },
		"decline own":    func(t Task) (Task, bool, error) { return t.declined("own", Reason{}, time.Hour, now) },
		"decline other":  func(t Task) (Task, bool, error) { return t.declined("other", Reason{}, time.Hour, now) },
		"decline nobody": func(t Task) (Task, bool, error) { return t.declined("", Reason{}, time.Hour, now) },
		"update notes":   update(TaskUpdate{Notes: &notes}),
		"update drop":    update(TaskUpdate{Drop: &Place{Address: "new"}}),
		"update pickup":  update(TaskUpdate{Pickup: &Place{Address: "new"}}),
		"update order":   update(TaskUpdate{OrderID: &order}),
		"update time":    update(TaskUpdate{Time: &when}),
		"update same":    update(TaskUpdate{Notes: new(string)}),
		"cancel": func(t Task) (Task, bool, error) {
			return t.completed("", Completion{Outcome: OutcomeCancelled}, time.Time{}, now)
		},
		"retry":        func(t Task) (Task, bool, error) { return t.retried("next", now) },
		"note":         func(t Task) (Task, bool, error) { return t.noted("new", now) },
		"note same":    func(t Task) (Task, bool, error) { return t.noted("", now) },
		"start own":    func(t Task) (Task, bool, error) { return t.started("own", time.Time{}, now) },
		"start other":  func(t Task) (Task, bool, error) { return t.started("other", time.Time{}, now) },
		"pickup own":   func(t Task) (Task, bool, error) { return t.pickedUp("own", time.Time{}, now) },
		"pickup other": func(t Task) (Task, bool, error) { return t.pickedUp("other", time.Time{}, now) },
		"succeed own": func(t Task) (Task, bool, error) {
			return t.completed("own", Completion{Outcome: OutcomeSucceeded}, time.Time{}, now)
		},
		"fail own": func(t Task) (Task, bool, error) {
			return t.completed("own", Completion{Outcome: OutcomeFailed}, time.Time{}, now)
		},
		"succeed other": func(t Task) (Task, bool, error) {
			return t.completed("other", Completion{Outcome: OutcomeSucceeded}, time.Time{}, now)
		},
		"succeed by the app": func(t Task) (Task, bool, error) {
			return t.completed("", Completion{Outcome: OutcomeSucceeded}, time.Time{}, now)
		},
		"fail by the app": func(t Task) (Task, bool, error) {
			return t.completed("", Completion{Outcome: OutcomeFailed}, time.Time{}, now)
		},
	}
	for name, held := range map[string]bool{"reopen": true, "reopen, its driver gone": false} {
		verbs[name] = func(t Task) (Task, bool, error) { return t.reopened(held, day, 0, now) }
	}
	for name, d := range map[string]DriverID{"undo own": "own", "undo other": "other", "undo nobody": ""} {
		verbs[name] = func(t Task) (Task, bool, error) {
			n, step, err := t.undone(d, "", 10*time.Minute, now)
			return n, step != "", err
		}
	}
	const no, c409, c404 = "nothing", "conflict", "not_found"
	states := []string{
		"created", "waiting", "assigned", "assigned by auto", "in_progress", "picked up", "succeeded", "failed",
		"cancelled",
	}
	table := map[string][]string{
		"assign own":   {"assigned", "assigned", no, no, no, no, c409, c409, c409},
		"assign other": {"assigned", "assigned", "assigned", "assigned", c409, c409, c409, c409, c409},
		"auto other":   {"assigned", "assigned", "assigned", "assigned", c409, c409, c409, c409, c409},
		"force own":    {"assigned", "assigned", no, no, no, no, c409, c409, c409},
		"force other": {
			"assigned", "assigned", "assigned", "assigned", "assigned", "assigned", c409, c409, c409,
		},
		"unassign":       {no, "created", "created", "created", "created", "created", c409, c409, c409},
		"decline own":    {c404, c404, "created", "waiting", c409, c409, c409, c409, c409},
		"decline other":  {c404, c404, c404, c404, c404, c404, c404, c404, c404},
		"decline nobody": {c404, c404, c404, c404, c404, c404, c404, c404, c404},
		"update notes": {
			"created", "waiting", "assigned", "assigned by auto", "in_progress", "picked up", c409, c409, c409,
		},
		"update drop": {
			"created", "waiting", "assigned", "assigned by auto", "in_progress", "picked up", c409, c409, c409,
		},
		"update pickup": {"created", "waiting", "assigned", "assigned by auto", c409, c409, c409, c409, c409},
		"update order":  {"created", "waiting", "assigned", "assigned by auto", c409, c409, c409, c409, c409},
		"update time":   {"created", "waiting", "assigned", "assigned by auto", c409, c409, c409, c409, c409},
		"update same":   {no, no, no, no, no, no, c409, c409, c409},
		"cancel": {
			"cancelled", "cancelled", "cancelled", "cancelled", "cancelled", "cancelled", c409, c409, no,
		},
		"retry": {c409, c409, c409, c409, c409, c409, c409, "failed", "cancelled"},
		"note": {
			"created", "waiting", "assigned", "assigned by auto", "in_progress", "picked up", c409, c409, c409,
		},
		"note same":     {no, no, no, no, no, no, c409, c409, c409},
		"start own":     {c404, c404, "in_progress", "in_progress", no, no, c409, c409, c409},
		"start other":   {c404, c404, c404, c404, c404, c404, c404, c404, c404},
		"pickup own":    {c404, c404, c409, c409, "picked up", no, c409, c409, c409},
		"pickup other":  {c404, c404, c404, c404, c404, c404, c404, c404, c404},
		"succeed own":   {c404, c404, c409, c409, "succeeded", "succeeded", no, c409, c409},
		"fail own":      {c404, c404, c409, c409, "failed", "failed", c409, no, c409},
		"succeed other": {c404, c404, c404, c404, c404, c404, c404, c404, c404},
		"succeed by the app": {
			"succeeded", "succeeded", "succeeded", "succeeded", "succeeded", "succeeded", no, c409, c409,
		},
		"fail by the app":         {"failed", "failed", "failed", "failed", "failed", "failed", c409, no, c409},
		"reopen":                  {no, no, no, no, no, no, "assigned", "assigned", "assigned"},
		"reopen, its driver gone": {no, no, no, no, no, no, "created", "created", "created"},
		"undo own":                {c404, c404, no, no, "assigned", "in_progress", "in_progress", "in_progress", c409},
		"undo other":              {c404, c404, c404, c404, c404, c404, c404, c404, c404},
		"undo nobody":             {c404, c404, c404, c404, c404, c404, c404, c404, c404},
	}
	if len(table) != len(verbs) {
		t.Fatalf("the table has %d rows for %d verbs", len(table), len(verbs))
	}
	all := taskStates()
	for name, row := range table {
		for i, state := range states {
			t.Run(name+"/"+state, func(t *testing.T) {
				before := all[state].Clone()
				after, changed, err := verbs[name](before)
				got := describe(after)
				var e *Error
				switch {
				case errors.As(err, &e):
					got = string(e.Code)
				case err != nil:
					t.Fatal(err)
				case !changed:
					got = no
				case name == "unassign" && state == "waiting": // nothing to be seen, but it waits no longer
					if !after.UpdatedAt.Equal(before.UpdatedAt) {
						t.Errorf("nothing to be seen, and UpdatedAt is %v", after.UpdatedAt)
					}
				case !after.UpdatedAt.Equal(now):
					t.Errorf("changed, and UpdatedAt is %v", after.UpdatedAt)
				}
				want := row[i]
				if want == "in_progress" && state == "assigned by auto" || want == "assigned by auto" {
					want = describe(Task{Status: after.Status, AutoAssigned: true, DriverID: "own"})
				}
				if name == "auto other" && want == "assigned" {
					want = "assigned by auto"
				}
				if got != want {
					t.Errorf("leads to %q, want %q", got, want)
				}
				if diff := cmp.Diff(before, after); !changed && diff != "" {
					t.Error("nothing changed, and yet:", diff)
				}
				if diff := cmp.Diff(all[state], before); diff != "" {
					t.Error("the task passed in was altered:", diff)
				}
			})
		}
	}
}

// describe names the state of a task as taskStates does.
func describe(t Task) string {
	switch {
	case t.Status == StatusCompleted:
		return string(t.Outcome)
	case t.Status == StatusInProgress && !t.PickedUpAt.IsZero():
		return "picked up"
	case t.Status == StatusAssigned && t.AutoAssigned:
		return "assigned by auto"
	case t.Waiting:
		return "waiting"
	}
	return string(t.Status)
}

// TestUndoMeansOneStep plays a driver's steps, and asks for one back: whichever was the last, or one
// that is named.
func TestUndoMeansOneStep(t *testing.T) {
	const no, c409 = "nothing", "conflict"
	states := taskStates()
	with := func(state string, change func(*Task)) Task { t := states[state].Clone(); change(&t); return t }
	both := with("picked up", func(t *Task) {
		t.Status, t.Outcome, t.CompletedAt = StatusCompleted, OutcomeFailed, t0.Add(3*time.Minute)
	})
	noStep := func(t *Task) { t.StepAt = time.Time{} }
	for _, c := range []struct {
		name string
		task Task
		want map[TaskStep]string // by the step that is meant
	}{
		{"assigned", states["assigned"], map[TaskStep]string{"": no, "start": no, "pickup": no, "complete": no}},
		{"started", states["in_progress"], map[TaskStep]string{
			"": "assigned", "start": "assigned", "pickup": no, "complete": no,
		}},
		{"picked up", states["picked up"], map[TaskStep]string{
			"": "in_progress", "start": c409, "pickup": "in_progress", "complete": no,
		}},
		{"completed", states["succeeded"], map[TaskStep]string{
			"": "in_progress", "start": c409, "pickup": no, "complete": "in_progress",
		}},
		{"picked up and completed", both, map[TaskStep]string{
			"": "picked up", "start": c409, "pickup": c409, "complete": "picked up",
		}},
		{"started, and no step left", with("in_progress", noStep), map[TaskStep]string{
			"": c409, "start": c409, "pickup": no, "complete": no,
		}},
		{"picked up, and no step left", with("picked up", noStep), map[TaskStep]string{
			"": c409, "start": c409, "pickup": c409, "complete": no,
		}},
		{"ended by the dispatcher", with("succeeded", noStep), map[TaskStep]string{
			"": c409, "start": c409, "pickup": no, "complete": c409,
		}},
		{"tried again by another", with("failed", func(t *Task) { t.RetriedBy = "other" }), map[TaskStep]string{
			"": c409, "start": c409, "pickup": no, "complete": c409,
		}},
	} {
		for meant, want := range c.want {
			got := no
			after, step, err := c.task.undone("own", meant, 10*time.Minute, t0.Add(time.Hour))
			if err != nil {
				got = string(err.(*Error).Code)
			} else if step != "" {
				got = describe(after)
			}
			if got != want {
				t.Errorf("%s, %q is meant: leads to %s, want %s", c.name, meant, got, want)
			}
			if _, second, _ := after.undone("own", "", 10*time.Minute, t0.Add(time.Hour)); step != "" && second != "" {
				t.Errorf("%s, %q is meant: taken back once more, so is %s", c.name, meant, second)
			}
		}
	}
}

// TestTakenBackInTime: what lies ahead was noted by a clock that was wrong.
func TestTakenBackInTime(t *testing.T) {
	task := taskStates()["failed"]
	for _, c := range []struct {
		after time.Duration
		ok    bool
	}{
		{0, true}, {time.Hour - time.Millisecond, true}, {time.Hour, false}, {-2 * time.Minute, true},
		{-2*time.Minute - time.Millisecond, false},
	} {
		if _, _, err := task.undone("own", "", time.Hour, task.StepAt.Add(c.after)); (err == nil) != c.ok {
			t.Errorf("undone after %v: %v", c.after, err)
		}
		if _, _, err := task.reopened(true, time.Hour, 0, task.CompletedAt.Add(c.after)); (err == nil) != c.ok {
			t.Errorf("reopened after %v: %v", c.after, err)
		}
	}
	task.RetriedBy = "another"
	if _, _, err := task.reopened(true, day, 0, t0.Add(time.Hour)); !errors.Is(err, ErrConflict) {
		t.Errorf("reopened although another task tries it again: %v", err)
	}
}

// full is a task with every field set.
func full() Task {
	var task Task
	n := 0
	var fill func(v reflect.Value)
	fill = func(v reflect.Value) {
		switch n++; v.Kind() {
		case reflect.Struct:
			if v.Type() == reflect.TypeFor[time.Time]() {
				v.Set(reflect.ValueOf(t0.Add(time.Duration(n) * time.Second)))
				return
			}
			for i := range v.NumField() {
				fill(v.Field(i))
			}
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem())
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0))
		case reflect.Array:
			fill(v.Index(0))
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(reflect.ValueOf("k"), reflect.ValueOf("v"))
		case reflect.String:
			v.SetString(fmt.Sprint("text ", n))
		case reflect.Int, reflect.Int64:
			v.SetInt(int64(n))
		case reflect.Uint8:
			v.SetUint(uint64(n))
		case reflect.Float64:
			v.SetFloat(float64(n))
		case reflect.Bool:
			v.SetBool(true)
		default:
			panic(v.Kind())
		}
	}
	fill(reflect.ValueOf(&task).Elem())
	task.Type, task.RetriedBy = TypePickupAndDrop, ""
	return task
}

// TestWhatIsTakenBack names the fields that change with a task that has all of them: a field that is
// added is thought of here.
func TestWhatIsTakenBack(t *testing.T) {
	now := t0.Add(time.Hour)
	in := func(status TaskStatus, change ...func(*Task)) Task {
		task := full()
		task.Waiting, task.StepAt, task.ErasedAt = false, now, time.Time{}
		if task.Status = status; status != StatusCompleted {
			task.Outcome, task.CompletedAt = "", time.Time{}
		}
		for _, f := range change {
			f(&task)
		}
		return task
	}
	undo := func(t Task) (Task, error) {
		next, _, err := t.undone(t.DriverID, "", time.Hour, now)
		return next, err
	}
	reopen := func(held bool) func(Task) (Task, error) {
		return func(t Task) (Task, error) { next, _, err := t.reopened(held, day, 0, now); return next, err }
	}
	ending := []string{"CompletedAt", "CompletedFrom", "DriverNote", "Outcome", "Reason", "ReasonCode"}
	way := []string{"ArrivedAt", "ArrivingAt", "PickedUpAt", "PickupArrivedAt", "PickupArrivingAt", "StartedAt"}
	owner := []string{"AssignedAt", "AutoAssigned", "DriverID", "Person"}
	for _, c := range []struct {
		name string
		task Task
		do   func(Task) (Task, error)
		want []string
	}{
		{"undo the start", in(StatusInProgress, func(t *Task) { t.PickedUpAt = time.Time{} }), undo, []string{
			"ArrivedAt", "ArrivingAt", "PickupArrivedAt", "PickupArrivingAt", "StartedAt", "Status",
		}},
		{"undo the pickup", in(StatusInProgress), undo, []string{"ArrivedAt", "ArrivingAt", "PickedUpAt"}},
		{"undo the end", in(StatusCompleted), undo, append([]string{"Status"}, ending...)},
		{"reopen", in(StatusCompleted), reopen(true), slices.Concat(ending, way, []string{"AssignedAt", "Status"})},
		{
			"reopen, its driver gone", in(StatusCompleted), reopen(false),
			slices.Concat(ending, way, owner, []string{"Status"}),
		},
		{"force", in(StatusInProgress), func(t Task) (Task, error) {
			next, _, err := t.reassigned(Driver{ID: "other", Person: "another"}, now)
			return next, err
		}, slices.Concat(way, owner, []string{"AssignAt", "Excluded", "Reason", "ReasonCode", "Status", "WaitsSince"})},
	} {
		before := c.task.Clone()
		after, err := c.do(c.task)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if d := cmp.Diff(before, c.task); d != "" {
			t.Errorf("%s: the task passed in was altered: %s", c.name, d)
		}
		var changed []string
		was, is := reflect.ValueOf(before), reflect.ValueOf(after)
		for i := range was.NumField() {
			name := was.Type().Field(i).Name
			if !reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()) {
				changed = append(changed, name)
			}
		}
		want := append([]string{"StepAt", "UpdatedAt"}, c.want...)
		slices.Sort(changed)
		slices.Sort(want)
		if d := cmp.Diff(want, changed); d != "" {
			t.Errorf("%s: fields that change (-want +got)\n%s", c.name, d)
		}
		if !after.UpdatedAt.Equal(now) || !after.StepAt.IsZero() {
			t.Errorf("%s: updated at %v, step at %v", c.name, after.UpdatedAt, after.StepAt)
		}
	}
}

// TestStepsAreNoted: what its driver does to a task can be taken back, what others do cannot.
func TestStepsAreNoted(t *testing.T) {
	now := t0.Add(time.Hour)
	states := taskStates()
	next := func(t Task, _ bool, err error) Task {
		if err != nil {
			panic(err)
		}
		return t
	}
	succeed, cancelled := Completion{Outcome: OutcomeSucceeded}, Completion{Outcome: OutcomeCancelled}
	for name, c := range map[string]struct {
		task  Task
		noted bool
	}{
		"start":                  {next(states["assigned"].started("own", t0, now)), true},
		"pickup":                 {next(states["in_progress"].pickedUp("own", t0, now)), true},
		"complete":               {next(states["picked up"].completed("own", succeed, t0, now)), true},
		"complete by dispatcher": {next(states["picked up"].completed("", succeed, t0, now)), false},
		"cancel":                 {next(states["picked up"].completed("", cancelled, t0, now)), false},
		"unassign":               {next(states["picked up"].unassigned(now)), false},
		"force assign":           {next(states["picked up"].reassigned(Driver{ID: "other"}, now)), false},
	} {
		if got := c.task.StepAt; c.noted && !got.Equal(now) || !c.noted && !got.IsZero() {
			t.Errorf("%s: the step is noted at %v", name, got)
		}
	}
	again := next(states["in_progress"].started("own", t0, now))
	if !again.StepAt.Equal(states["in_progress"].StepAt) {
		t.Errorf("started again, and the step is noted at %v", again.StepAt)
	}
}

func TestExclusion(t *testing.T) {
	now := t0.Add(time.Hour)
	task := taskStates()["assigned by auto"]
	task, _, _ = task.declined("own", Reason{ReasonOther, "too far"}, time.Hour, now)
	if !slices.Equal(task.Excluded, []DriverID{"own"}) || !task.Waiting || task.Reason != "too far" {
		t.Fatalf("after declining: %+v", task)
	}
	task, _, _ = task.assigned(Driver{ID: "b"}, true, now)
	task, _, _ = task.unassigned(now)
	if !slices.Equal(task.Excluded, []DriverID{"b", "own"}) || task.Waiting {
		t.Fatalf("after unassigning: excluded %v, waiting %v", task.Excluded, task.Waiting)
	}
	task, _, _ = task.assigned(Driver{ID: "own"}, false, now)
	if !slices.Equal(task.Excluded, []DriverID{"b"}) {
		t.Fatalf("a manual assignment does not lift the exclusion: %v", task.Excluded)
	}
}

// keyed is a creation with every field set that there was when sums were kept first.
func keyed() NewTask {
	place := func(lng float64) *Place {
		return &Place{
			LngLat: &LngLat{Lng: lng, Lat: 48.1}, Address: "1 Shop St",
			Customer: &Contact{Name: "Priya", Mobile: "+91 1"},
		}
	}
	return NewTask{
		Type: TypePickupAndDrop, Pickup: place(11), Drop: place(12), Customer: &Contact{Name: "Noor", Mobile: "+91 2"},
		OrderID: "#1001", Notes: "ring twice",
		Time: time.Date(2024, 3, 10, 9, 0, 0, 0, time.UTC), AutoAssign: true, Key: "k",
	}
}

// keyedWhole is a creation with every field set.
func keyedWhole() NewTask {
	n := keyed()
	n.Window = Window{n.Time.Add(time.Hour), n.Time.Add(2 * time.Hour)}
	n.Promised = n.Time.Add(3 * time.Hour)
	n.Requires = map[string]string{"vehicle": "van", "fridge": ""}
	n.Properties = map[string]string{"zone": "1", "vip": ""}
	n.Proof = []ProofKind{ProofPhoto, ProofPIN}
	return n
}

// TestKeySumStays holds the encoding behind idempotency keys: sums are kept, and a program of
// tomorrow must come to the same ones.
func TestKeySumStays(t *testing.T) {
	proving := keyed()
	proving.Proof = []ProofKind{ProofPhoto, ProofPIN}
	for _, tt := range []struct {
		name string
		sum  Hash
		want string
	}{
		{"every field", keyed().sum(), "02b9d5494160122805461bb876c7e88f5860d6dd0201e85c4fb2b680d0e71d6c"},
		{"proof", proving.sum(), "02f5b9e3aeafd682419897b2bd0f0a9c49920c0d952738d29f352310a69dfdf3"},
		{
			"few fields", NewTask{Type: TypeDrop, Drop: &Place{Address: "a"}}.sum(),
			"0265b354dfd1c07883cd3c4a9e1c2c9e5d41588579390efbe60594d5ed91694b",
		},
		{"version 1", keyed().formerSum(), "9510229eaf2f7e28bfe5664999a5d965aed8dc722fa2d468b4b4a9bb5274c13b"},
		{
			"version 1, which could not have what came later", keyedWhole().formerSum(),
			hex.EncodeToString(make([]byte, 32)),
		},
	} {
		if got := hex.EncodeToString(tt.sum[:]); got != tt.want {
			t.Errorf("%s: the sum is %s, it was %s", tt.name, got, tt.want)
		}
	}
}

// TestKeySumOfEveryField changes each field there is: a field that is added must get into the sum.
func TestKeySumOfEveryField(t *testing.T) {
	seen := map[Hash]string{}
	note := func(what string, n NewTask) {
		if other, ok := seen[n.sum()]; ok {
			t.Errorf("%s has the sum of %s", what, other)
		}
		seen[n.sum()] = what
	}
	note("the whole", keyedWhole())
	// change sets one field after another, also inside others, to another value and to zero.
	var change func(path string, of func(*NewTask) reflect.Value)
	change = func(path string, of func(*NewTask) reflect.Value) {
		base := keyedWhole()
		v := of(&base)
		apply := func(what string, set func(reflect.Value)) {
			n := keyedWhole()
			set(of(&n))
			note(path+" "+what, n)
		}
		switch v.Kind() {
		case reflect.Struct:
			if v.Type() != reflect.TypeFor[time.Time]() {
				for i := range v.NumField() {
					name := v.Type().Field(i).Name
					if path == "" && name == "Key" { // what is looked up by
						continue
					}
					change(path+"."+name, func(n *NewTask) reflect.Value { return of(n).Field(i) })
				}
				return
			}
			apply("later", func(v reflect.Value) {
				v.Set(reflect.ValueOf(v.Interface().(time.Time).Add(time.Millisecond)))
			})
		case reflect.Pointer:
			change(path, func(n *NewTask) reflect.Value { return of(n).Elem() })
		case reflect.String:
			apply("longer", func(v reflect.Value) { v.SetString(v.String() + "x") })
		case reflect.Int:
			apply("more", func(v reflect.Value) { v.SetInt(v.Int() + 1) })
		case reflect.Float64:
			apply("more", func(v reflect.Value) { v.SetFloat(math.Nextafter(v.Float(), 100)) })
		case reflect.Map:
			apply("other", func(v reflect.Value) { v.Set(reflect.ValueOf(map[string]string{"vehicle": "van"})) })
		case reflect.Bool:
		case reflect.Slice:
			apply("shorter", func(v reflect.Value) { v.Set(v.Slice(0, v.Len()-1)) })
		default:
			t.Fatalf("no test of %s, a %s", path, v.Type())
		}
		apply("zero", func(v reflect.Value) { v.SetZero() })
	}
	change("", func(n *NewTask) reflect.Value { return reflect.ValueOf(n).Elem() })

	// what is in one field cannot pass for another's
	for _, text := range [][2]string{{"a", "bc"}, {"ab", "c"}, {"", "abc"}, {"abc", ""}} {
		n := keyed()
		n.OrderID, n.Notes = text[0], text[1]
		note(fmt.Sprintf("%q", text), n)
	}
}

func TestKeySumOfZeros(t *testing.T) {
	zero, negative := keyed(), keyed()
	zero.Drop.LngLat = &LngLat{}
	negative.Drop.LngLat = &LngLat{Lng: math.Copysign(0, -1), Lat: math.Copysign(0, -1)}
	if zero.sum() != negative.sum() {
		t.Error("0 and −0 are other content")
	}
}
