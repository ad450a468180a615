package tracking_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// handed is what the two drivers, a and b, have.
type handed struct {
	A, B         tracking.Driver
	Tasks        []tracking.Task
	Trips        []tracking.Trip
	ToldA, ToldB []tracking.Notice
	Events       []tracking.Event
}

func (w *world) handed() (h handed) {
	w.t.Helper()
	var err error
	check := func(e error) {
		w.t.Helper()
		if e != nil {
			w.t.Fatal(e)
		}
	}
	h.A, h.B = must(w.Driver(w.ctx, "a"))(w.t), must(w.Driver(w.ctx, "b"))(w.t)
	h.Tasks, _, err = w.Tasks(w.ctx, tracking.TaskFilter{Page: tracking.Page{Limit: 1000}})
	check(err)
	h.Trips, _, err = w.Trips(w.ctx, tracking.TripFilter{})
	check(err)
	h.ToldA, _, err = w.Notices(w.ctx, "a", 0, 0)
	check(err)
	h.ToldB, _, err = w.Notices(w.ctx, "b", 0, 0)
	check(err)
	h.Events, _, err = w.Events(w.ctx, tracking.EventFilter{Limit: 1000})
	check(err)
	return h
}

// TestHandOver hands over a van with two tasks under way: the stops keep their order, where a pickup
// that has to be done again comes before its drop.
func TestHandOver(t *testing.T) {
	w := newWorld(t)
	w.driver("a", 0)
	w.driver("b", 5000)
	own := w.taskOf("b")
	x, y, z := w.taskOf("a"), w.taskOf("a"), w.taskOf("a")
	of := map[tracking.TaskID]string{own: "o", x: "x", y: "y", z: "z"}
	first := w.startTask("a", y)
	if err := pickUpAs("a")(w, y); err != nil {
		t.Fatal(err)
	}
	must(w.FinishTask(w.ctx, "a", y, tracking.Completion{}, tracking.Step{}))(t)
	if _, _, err := w.UndoTask(w.ctx, "a", y, "", tracking.Step{}); err != nil { // so that its drop comes first
		t.Fatal(err)
	}
	second := w.startTask("a", z)
	if got := w.route("a", of); got != "yd xp xd zp zd " {
		t.Fatalf("the route at first: %s", got)
	}
	links := map[tracking.TaskID]string{}
	for id := range of {
		links[id] = must(w.TaskLink(w.ctx, id))(t)
	}
	before := w.handed()
	w.advance(time.Minute)

	all := tracking.HandOverRequest{From: "a", To: "b"}
	if _, err := w.HandOver(w.ctx, all); code(err) != tracking.ErrConflict {
		t.Fatalf("two are in progress: %v", err)
	}
	if d := cmp.Diff(before, w.handed()); d != "" {
		t.Fatalf("refused, and yet (-before +after)\n%s", d)
	}
	all.Force = true
	list := must(w.As("user:7").HandOver(w.ctx, all))(t)
	var got []tracking.TaskID
	for _, task := range list {
		got = append(got, task.ID)
		if d := cmp.Diff(task, w.task(task.ID)); d != "" {
			t.Errorf("told and kept differ: %s", d)
		}
		if task.Status != tracking.StatusAssigned || task.DriverID != "b" || !task.StartedAt.IsZero() ||
			!task.PickedUpAt.IsZero() || !slices.Equal(task.Excluded, []tracking.DriverID{"a"}) {
			t.Errorf("%+v", task)
		}
	}
	if !slices.Equal(got, []tracking.TaskID{y, x, z}) {
		t.Errorf("in the order %v, want %v", got, []tracking.TaskID{y, x, z})
	}
	if a, b := w.route("a", of), w.route("b", of); a != "" || b != "op od yp yd xp xd zp zd " {
		t.Errorf("routes %q and %q", a, b)
	}
	after := w.handed()
	kinds := func(list []tracking.Notice) (kinds []string) {
		for _, n := range list {
			kinds = append(kinds, string(n.Kind)+" "+of[n.TaskID])
		}
		return kinds
	}
	if got := kinds(after.ToldA[len(before.ToldA):]); !slices.Equal(got, []string{
		"unassigned y", "unassigned x", "unassigned z",
	}) {
		t.Errorf("a was told %q", got)
	}
	if got := kinds(after.ToldB[len(before.ToldB):]); !slices.Equal(got, []string{"handed_over "}) {
		t.Errorf("b was told %q", got)
	}
	together := ""
	for _, e := range after.Events[len(before.Events):] {
		if e.Actor != "user:7" {
			t.Errorf("%s by %s", e.Type, e.Actor)
		}
		d, ok := e.Details().(tracking.TaskAssignedData)
		if !ok {
			continue
		}
		if together == "" {
			together = d.Handover
		}
		want := tracking.TaskAssignedData{DriverID: "b", PreviousDriverID: "a", Handover: together}
		if together == "" || d != want {
			t.Errorf("the event %+v", e)
		}
	}
	for _, id := range []tracking.TripID{first.ID, second.ID} {
		if trip := must(w.Trip(w.ctx, id))(t); trip.Trip.Status != tracking.TripStopped {
			t.Errorf("trip %+v", trip)
		}
	}
	for id, link := range links {
		if again := must(w.TaskLink(w.ctx, id))(t); again != link {
			t.Errorf("the link of %s has changed", of[id])
		}
	}

	// Asked again, there is nothing left to do; b can begin.
	if list := must(w.HandOver(w.ctx, all))(t); len(list) != 0 {
		t.Errorf("again: %v", list)
	}
	if d := cmp.Diff(after, w.handed()); d != "" {
		t.Errorf("again (-before +after)\n%s", d)
	}
	w.startTask("b", y)
}

func pickUpAs(d tracking.DriverID) func(*world, tracking.TaskID) error {
	return func(w *world, id tracking.TaskID) error {
		_, err := w.PickUpTask(w.ctx, d, id, tracking.Step{})
		return err
	}
}

// TestHandOverOfSome names tasks: what the other has already counts, what nobody of the two has open
// is refused, and with it all.
func TestHandOverOfSome(t *testing.T) {
	w := newWorld(t)
	w.driver("a", 0)
	w.driver("b", 0)
	w.driver("c", 0)
	x, y, z, done := w.taskOf("a"), w.taskOf("a"), w.taskOf("a"), w.taskOf("a")
	his, free := w.taskOf("c"), w.create(false).ID
	w.startTask("a", x)
	if err := complete(w, done); err != nil {
		t.Fatal(err)
	}
	some := func(ids ...tracking.TaskID) tracking.HandOverRequest {
		return tracking.HandOverRequest{From: "a", To: "b", Tasks: ids}
	}
	before := w.handed()
	for name, c := range map[string]struct {
		request tracking.HandOverRequest
		want    tracking.ErrorCode
		field   string
	}{
		"an unknown one":       {some(z, "unknown"), tracking.ErrNotFound, "task_ids"},
		"one without an id":    {some(z, ""), tracking.ErrNotFound, "task_ids"},
		"another driver's":     {some(z, his), tracking.ErrConflict, "task_ids"},
		"one that is nobody's": {some(free, z), tracking.ErrConflict, "task_ids"},
		"a completed one":      {some(z, done), tracking.ErrConflict, "task_ids"},
		"one in progress":      {some(z, x), tracking.ErrConflict, ""},
		"none": {
			tracking.HandOverRequest{From: "a", To: "b", Tasks: []tracking.TaskID{}}, tracking.ErrInvalid, "task_ids",
		},
		"too many":            {some(make([]tracking.TaskID, 1001)...), tracking.ErrInvalid, "task_ids"},
		"from nobody":         {tracking.HandOverRequest{To: "b"}, tracking.ErrInvalid, "from"},
		"to nobody":           {tracking.HandOverRequest{From: "a"}, tracking.ErrInvalid, "to"},
		"to himself":          {tracking.HandOverRequest{From: "a", To: "a"}, tracking.ErrInvalid, "to"},
		"from an unknown one": {tracking.HandOverRequest{From: "unknown", To: "b"}, tracking.ErrNotFound, "from"},
		"to an unknown one":   {tracking.HandOverRequest{From: "a", To: "unknown"}, tracking.ErrNotFound, "to"},
	} {
		_, err := w.HandOver(w.ctx, c.request)
		var field string
		if e, ok := err.(*tracking.Error); ok {
			field = e.Field
		}
		if code(err) != c.want || field != c.field {
			t.Errorf("%s: %v of %q, want %s of %q", name, err, field, c.want, c.field)
		}
	}
	if d := cmp.Diff(before, w.handed()); d != "" {
		t.Fatalf("refused, and yet (-before +after)\n%s", d)
	}

	list := must(w.HandOver(w.ctx, some(z, y, z)))(t)
	if len(list) != 2 || list[0].ID != y || list[1].ID != z {
		t.Errorf("not y and z: %+v", list)
	}
	after := w.handed()
	again := must(w.HandOver(w.ctx, some(z, y)))(t)
	if d := cmp.Diff(list, again); d != "" {
		t.Errorf("again (-once +again)\n%s", d)
	}
	if d := cmp.Diff(after, w.handed()); d != "" {
		t.Errorf("again, and it has changed (-before +after)\n%s", d)
	}
	if got := w.task(x); got.Status != tracking.StatusInProgress || got.DriverID != "a" {
		t.Errorf("the one that was not named: %+v", got)
	}
}

// TestHandOverFillsTheRoute: all or nothing, also by the number of stops.
func TestHandOverFillsTheRoute(t *testing.T) {
	w := newWorld(t)
	w.driver("a", 0)
	w.driver("b", 0)
	for range tracking.MaxStops/2 - 1 {
		w.taskOf("a")
	}
	w.taskOf("b")
	all := tracking.HandOverRequest{From: "a", To: "b"}
	if list := must(w.HandOver(w.ctx, all))(t); len(list) != tracking.MaxStops/2-1 {
		t.Fatalf("%d tasks", len(list))
	}
	last := w.taskOf("a")
	before := w.handed()
	if _, err := w.HandOver(w.ctx, all); code(err) != tracking.ErrConflict {
		t.Errorf("there are 1,000 stops already: %v", err)
	}
	if err := force("b")(w, last); code(err) != tracking.ErrConflict {
		t.Errorf("assigned although there are 1,000 stops already: %v", err)
	}
	if d := cmp.Diff(before, w.handed()); d != "" {
		t.Errorf("refused, and yet (-before +after)\n%s", d)
	}
	// One that is reopened or undone needs room too.
	done := must(w.Driver(w.ctx, "b"))(t).Route[0].TaskID
	w.startTask("b", done)
	must(w.FinishTask(w.ctx, "b", done, tracking.Completion{}, tracking.Step{}))(t)
	must(w.AssignTask(w.ctx, last, "b"))(t)
	if err := reopen(w, done); code(err) != tracking.ErrConflict {
		t.Errorf("reopened although there are 1,000 stops already: %v", err)
	}
	if _, _, err := w.UndoTask(w.ctx, "b", done, "", tracking.Step{}); code(err) != tracking.ErrConflict {
		t.Errorf("undone although there are 1,000 stops already: %v", err)
	}
}

// TestHandOverAgainstOthers: what changes on the way is decided anew.
func TestHandOverAgainstOthers(t *testing.T) {
	for name, c := range map[string]struct {
		then func(w *world, x, y tracking.TaskID) error
		want string // what b has afterwards
		err  tracking.ErrorCode
	}{
		"one more": {func(w *world, x, y tracking.TaskID) error { w.taskOf("a"); return nil }, "x y new ", ""},
		"one less": {func(w *world, x, y tracking.TaskID) error { return unassign(w, x) }, "y ", ""},
		"all gone": {func(w *world, x, y tracking.TaskID) error { return first(cancel(w, x), cancel(w, y)) }, "", ""},
		"one is started": {func(w *world, x, y tracking.TaskID) error {
			_, _, err := w.StartTask(w.ctx, "a", y, tracking.Step{})
			return err
		}, "", tracking.ErrConflict},
		"he is erased": {func(w *world, x, y tracking.TaskID) error {
			return w.ForceDeleteDriver(w.ctx, "a")
		}, "", tracking.ErrNotFound},
		"the other is erased": {func(w *world, x, y tracking.TaskID) error {
			err := w.ForceDeleteDriver(w.ctx, "b")
			w.driver("b", 0)
			return err
		}, "", tracking.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			store := &between{Store: memory.New()}
			w := newWorldOn(t, store)
			elsewhere := newWorldOn(t, store.Store)
			w.driver("a", 0)
			w.driver("b", 0)
			x, y := w.taskOf("a"), w.taskOf("a")
			names := map[tracking.TaskID]string{x: "x", y: "y"}
			store.then = func() {
				if err := c.then(elsewhere, x, y); err != nil {
					t.Error(err)
				}
			}
			if _, err := w.HandOver(w.ctx, tracking.HandOverRequest{From: "a", To: "b"}); code(err) != c.err {
				t.Errorf("%v, want %q", err, c.err)
			}
			got := ""
			for _, s := range must(w.Driver(w.ctx, "b"))(t).Route {
				if name, known := names[s.TaskID]; s.Leg == tracking.LegDrop && known {
					got += name + " "
				} else if s.Leg == tracking.LegDrop {
					got += "new "
				}
			}
			if got != c.want {
				t.Errorf("b has %s, want %s", got, c.want)
			}
		})
	}
}

// TestForceAssign takes a task from a driver who is at it.
func TestForceAssign(t *testing.T) {
	w := newWorld(t)
	w.driver("a", 0)
	w.driver("b", 0)
	id := w.taskOf("a")
	trip := w.startTask("a", id)
	w.advance(time.Minute)
	w.fixAt("a", 200)
	if err := pickUpAs("a")(w, id); err != nil {
		t.Fatal(err)
	}
	task := must(w.ForceAssignTask(w.ctx, id, "b"))(t)
	if task.Status != tracking.StatusAssigned || task.DriverID != "b" || !task.PickedUpAt.IsZero() ||
		task.AutoAssigned || !slices.Equal(task.Excluded, []tracking.DriverID{"a"}) {
		t.Errorf("%+v", task)
	}
	if got := must(w.Trip(w.ctx, trip.ID))(t); got.Trip.Status != tracking.TripStopped || !got.EndedAt.Equal(w.now()) ||
		*got.EndsAt != *east(200) {
		t.Errorf("its trip: %+v", got)
	}
	link := must(w.TaskLink(w.ctx, id))(t)
	if v := must(w.Tracking(w.ctx, link))(t); v.Position != nil || v.Path != nil || v.DriverName != "" {
		t.Errorf("the link shows %+v", v)
	}
	_, err := w.FinishTask(w.ctx, "a", id, tracking.Completion{}, tracking.Step{})
	if code(err) != tracking.ErrNotFound {
		t.Errorf("completed by the former driver: %v", err)
	}
	if next := w.startTask("b", id); next.DriverID != "b" || next.ID == trip.ID {
		t.Errorf("the new driver's trip: %+v", next)
	}
}
