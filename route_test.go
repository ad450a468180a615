package tracking_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8aba7b13/tracking"
)

// stops names a route: the task's letter, and p or d.
func (w *world) stops(names map[tracking.TaskID]string) string {
	w.t.Helper()
	var words []string
	for _, s := range must(w.Driver(w.ctx, "own"))(w.t).Route {
		words = append(words, names[s.TaskID]+string(s.Leg[0]))
	}
	return strings.Join(words, " ")
}

// The route follows every verb, in the same step.
func TestRouteFollowsTheTasks(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	w.driver("other", 0)
	a, b, c := w.give(tracking.TypePickupAndDrop, 100, 200), w.give(tracking.TypePickup, 300, 0),
		w.give(tracking.TypePickupAndDrop, 400, 500)
	names := map[tracking.TaskID]string{a: "a", b: "b", c: "c"}
	for _, step := range []struct {
		what string
		do   func() error
		want string
	}{
		{"assigned", func() error { return nil }, "ap ad bp cp cd"},
		{"started", func() error { return startOwn(w, a) }, "ap ad bp cp cd"},
		{"picked up", func() error { return pickUp(w, a) }, "ad bp cp cd"},
		{"updated", func() error { return update(w, c) }, "ad bp cp cd"},
		{"declined", func() error { return decline(w, b) }, "ad cp cd"},
		{"assigned again", func() error { return assign("own")(w, b) }, "ad cp cd bp"},
		{"unassigned while under way", func() error { return unassign(w, a) }, "cp cd bp"},
		{"assigned anew it is to be fetched anew", func() error { return assign("own")(w, a) }, "cp cd bp ap ad"},
		{"given to another", func() error { return assign("other")(w, c) }, "bp ap ad"},
		{"cancelled", func() error { return cancel(w, b) }, "ap ad"},
		{"completed", func() error { return complete(w, a) }, ""},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		if got := w.stops(names); got != step.want {
			t.Errorf("%s: %q, want %q", step.what, got, step.want)
		}
	}
}

func TestSetRoute(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	a, b := w.give(tracking.TypePickupAndDrop, 100, 200), w.give(tracking.TypeDrop, 0, 300)
	ap, ad, bd := tracking.Stop{TaskID: a, Leg: tracking.LegPickup}, tracking.Stop{TaskID: a, Leg: tracking.LegDrop},
		tracking.Stop{TaskID: b, Leg: tracking.LegDrop}
	foreign := tracking.Stop{TaskID: "nobody's", Leg: tracking.LegDrop}
	r := must(w.Route(w.ctx, "own"))(t)
	if got := stopsOf(r); !slices.Equal(got, []tracking.Stop{ap, ad, bd}) {
		t.Errorf("at first the route is %v", got)
	}
	for _, c := range []struct {
		name    string
		stops   []tracking.Stop
		version int64
		code    tracking.ErrorCode
		field   string
	}{
		{"one lacks", []tracking.Stop{ap, ad}, 0, tracking.ErrConflict, "stops"},
		{"none", nil, 0, tracking.ErrConflict, "stops"},
		{"one is there twice", []tracking.Stop{ap, ad, bd, bd}, 0, tracking.ErrConflict, "stops[3]"},
		{"one is not his", []tracking.Stop{ap, ad, bd, foreign}, 0, tracking.ErrConflict, "stops[3]"},
		{"instead of one of his", []tracking.Stop{ap, foreign, ad}, 0, tracking.ErrConflict, "stops[1]"},
		{"the drop before its pickup", []tracking.Stop{bd, ad, ap}, 0, tracking.ErrConflict, "stops[1]"},
		{"no such leg", []tracking.Stop{ap, {TaskID: a, Leg: "way"}, bd}, 0, tracking.ErrInvalid, "stops[1].leg"},
		{"from an older route", []tracking.Stop{bd, ap, ad}, r.Version - 1, tracking.ErrConflict, "version"},
		{"from none that there can be", []tracking.Stop{ap, ad, bd}, -1, tracking.ErrInvalid, "version"},
		{"too many", make([]tracking.Stop, tracking.MaxStops+1), 0, tracking.ErrConflict, "stops"},
	} {
		for by, set := range map[string]func() (tracking.Route, error){
			"application": func() (tracking.Route, error) { return w.SetRoute(w.ctx, "own", c.stops, c.version) },
			"driver":      func() (tracking.Route, error) { return w.ReorderRoute(w.ctx, "own", c.stops, c.version) },
		} {
			_, err := set()
			var e *tracking.Error
			if code(err) != c.code || !asError(err, &e) || e.Field != c.field {
				t.Errorf("%s, by the %s: %v, want code %s of %s", c.name, by, err, c.code, c.field)
			}
		}
	}
	if _, err := w.SetRoute(w.ctx, "nobody", nil, 0); code(err) != tracking.ErrNotFound {
		t.Errorf("nobody's route: %v", err)
	}

	n := len(w.told(tracking.KindDriver, "own", 0))
	w.advance(time.Minute)
	same := must(w.SetRoute(w.ctx, "own", []tracking.Stop{ap, ad, bd}, r.Version))(t)
	if same.Version != r.Version {
		t.Error("the same order is a change")
	}
	next := must(w.SetRoute(w.ctx, "own", []tracking.Stop{bd, ap, ad}, r.Version))(t)
	if got := stopsOf(next); !slices.Equal(got, []tracking.Stop{bd, ap, ad}) || next.Version == r.Version {
		t.Errorf("now the route is %v, version %d", got, next.Version)
	}
	must(w.ReorderRoute(w.ctx, "own", []tracking.Stop{ap, bd, ad}, 0))(t)
	if d := cmp.Diff([]string{"driver.routed own:route", "driver.routed"}, w.told(tracking.KindDriver, "own", n)); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if got := must(w.Driver(w.ctx, "own"))(t).UpdatedAt; !got.Equal(w.now()) {
		t.Errorf("updated at %v", got)
	}
}

// A task comes among the stops of a driver there where it is put, in one change, of which he is told
// once; and nowhere else.
func TestAssignAmongStops(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	w.driver("other", 0)
	a, b := w.give(tracking.TypePickupAndDrop, 100, 200), w.give(tracking.TypeDrop, 0, 300)
	ap, ad, bd := tracking.Stop{TaskID: a, Leg: tracking.LegPickup}, tracking.Stop{TaskID: a, Leg: tracking.LegDrop},
		tracking.Stop{TaskID: b, Leg: tracking.LegDrop}
	id := must(w.CreateTask(w.ctx, newDrop()))(t).ID
	d := tracking.Stop{TaskID: id, Leg: tracking.LegDrop}
	assign := func(force bool, stops ...tracking.Stop) error {
		_, err := w.Assign(w.ctx, tracking.Assignment{Task: id, Driver: "own", Stops: stops, Force: force})
		return err
	}
	for _, c := range []struct {
		name  string
		stops []tracking.Stop
		code  tracking.ErrorCode
	}{
		{"it lacks", []tracking.Stop{ap, ad, bd}, tracking.ErrConflict},
		{"another lacks", []tracking.Stop{d, ap, ad}, tracking.ErrConflict},
		{"a drop before its pickup", []tracking.Stop{d, ad, ap, bd}, tracking.ErrConflict},
		{"no such leg", []tracking.Stop{ap, ad, bd, {TaskID: id, Leg: "way"}}, tracking.ErrInvalid},
		{"one that it does not have", []tracking.Stop{ap, ad, bd, {TaskID: id, Leg: tracking.LegPickup}, d}, tracking.ErrConflict},
		{"too many", make([]tracking.Stop, tracking.MaxStops+1), tracking.ErrConflict},
	} {
		if err := assign(false, c.stops...); code(err) != c.code {
			t.Errorf("%s: %v, want code %s", c.name, err, c.code)
		}
	}
	if got := w.task(id); got.Status != tracking.StatusCreated {
		t.Errorf("after what was refused it is %s", got.Status)
	}
	route := func(what string, want ...tracking.Stop) {
		t.Helper()
		if diff := cmp.Diff(want, stopsOf(must(w.Route(w.ctx, "own"))(t))); diff != "" {
			t.Errorf("%s: the route (-want +got):\n%s", what, diff)
		}
	}
	feed := func() (kinds []string) {
		t.Helper()
		list, _, err := w.Notices(w.ctx, "own", 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range list {
			kinds = append(kinds, string(n.Kind))
		}
		return kinds
	}
	told := func(what string, n int, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, feed()[n:], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: he is told (-want +got):\n%s", what, diff)
		}
	}
	n := len(feed())
	if err := assign(false, ap, d, bd, ad); err != nil { // the others in another order, too
		t.Fatal(err)
	}
	route("put in", ap, d, bd, ad)
	told("put in", n, "assigned")
	version := must(w.Route(w.ctx, "own"))(t).Version
	if err := assign(false, ap, d, bd, ad); err != nil {
		t.Fatal(err)
	}
	if must(w.Route(w.ctx, "own"))(t).Version != version {
		t.Error("the same again is a change")
	}
	told("the same again", n+1)
	was := w.task(id)
	if err := assign(false, d, ap, bd, ad); err != nil {
		t.Fatal(err)
	}
	route("moved", d, ap, bd, ad)
	told("moved", n+1, "route")
	if diff := cmp.Diff(was, w.task(id)); diff != "" {
		t.Errorf("moved, the task is another (-was +is):\n%s", diff)
	}

	// Taken from another who is at it, it comes where it is put just as well.
	must(w.AssignTask(w.ctx, id, "other"))(t)
	w.startTask("other", id)
	n = len(feed())
	if err := assign(false, ap, d, bd, ad); code(err) != tracking.ErrConflict {
		t.Errorf("one that is under way: %v", err)
	}
	if err := assign(true, ap, d, bd, ad); err != nil {
		t.Fatal(err)
	}
	route("taken from another", ap, d, bd, ad)
	told("taken from another", n, "assigned")
	if got := must(w.Driver(w.ctx, "other"))(t).Route; len(got) > 0 {
		t.Errorf("the other still has %v", got)
	}
}

func TestDriversMayNotReorder(t *testing.T) {
	w := newWorld(t, func(o *tracking.Options) { o.DriversReorder = new(false) })
	w.driver("own", 0)
	a, b := w.give(tracking.TypeDrop, 0, 200), w.give(tracking.TypeDrop, 0, 300)
	order := []tracking.Stop{{TaskID: b, Leg: tracking.LegDrop}, {TaskID: a, Leg: tracking.LegDrop}}
	if _, err := w.ReorderRoute(w.ctx, "own", order, 0); code(err) != tracking.ErrConflict {
		t.Errorf("by the driver: %v", err)
	}
	if got := stopsOf(must(w.SetRoute(w.ctx, "own", order, 0))(t)); !slices.Equal(got, order) {
		t.Errorf("by the application: %v", got)
	}
}

func stopsOf(r tracking.Route) (list []tracking.Stop) {
	for _, s := range r.Stops {
		list = append(list, s.Stop)
	}
	return list
}

// Nobody gets more stops than a route can have, by hand or automatically.
func TestRouteIsFull(t *testing.T) {
	w := newWorld(t, func(o *tracking.Options) { o.MaxOpenTasks = -1 })
	w.driver("own", 0)
	w.driver("far", 9000)
	for range tracking.MaxStops - 1 {
		w.give(tracking.TypeDrop, 0, 100)
	}
	both := w.create(false)
	if _, err := w.AssignTask(w.ctx, both.ID, "own"); code(err) != tracking.ErrConflict {
		t.Errorf("two stops where there is room for one: %v", err)
	}
	if task := w.create(true); task.DriverID != "far" {
		t.Errorf("two stops where there is room for one went to %q", task.DriverID)
	}
	w.give(tracking.TypeDrop, 0, 100)
	drop := must(w.CreateTask(w.ctx, tracking.NewTask{Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: east(1)}}))(t)
	if _, err := w.AssignTask(w.ctx, drop.ID, "own"); code(err) != tracking.ErrConflict {
		t.Errorf("one more: %v", err)
	}
	if n := len(must(w.Driver(w.ctx, "own"))(t).Route); n != tracking.MaxStops {
		t.Errorf("%d stops", n)
	}
}

// The times of a route grow from stop to stop, and are those that the links show.
func TestRouteTimes(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	a, b := w.give(tracking.TypePickupAndDrop, 1000, 2000), w.give(tracking.TypeDrop, 0, 4000)
	times := func() (list []time.Duration) {
		t.Helper()
		for _, s := range must(w.Route(w.ctx, "own"))(t).Stops {
			if s.ETA != nil {
				list = append(list, s.ETA.Time.Sub(w.now()).Round(time.Second))
			}
		}
		return list
	}
	near := func(what string, got []time.Duration, want ...time.Duration) {
		t.Helper()
		ok := len(got) == len(want)
		for i := range got {
			ok = ok && (got[i]-want[i]).Abs() <= 2*time.Second
		}
		if !ok {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	want := []time.Duration{in(1000), in(1000, 1000), in(1000, 1000, 2000)}
	near("before the start", times(), want...)
	for _, id := range []tracking.TaskID{a, b} {
		if err := startOwn(w, id); err != nil {
			t.Fatal(err)
		}
	}
	w.fix(0)
	near("under way", times(), want...)
	w.expects("the first customer", a, want[1])
	w.expects("the second customer", b, want[2])
	if n := w.look(b).StopsBefore; n == nil || *n != 2 {
		t.Errorf("stops before: %v", n)
	}
	must(w.SetRoute(w.ctx, "own", []tracking.Stop{
		{TaskID: b, Leg: tracking.LegDrop}, {TaskID: a, Leg: tracking.LegPickup}, {TaskID: a, Leg: tracking.LegDrop},
	}, 0))(t)
	near("the other way round", times(), in(4000), in(4000, 3000), in(4000, 3000, 1000))
	w.expects("the second customer, now first", b, in(4000))
	w.advance(6 * time.Minute)
	near("silent", times())
}

// Who is watched by several at once is shown only to those whose stop is near, if so wished; the
// expected time stays.
func TestShowWithin(t *testing.T) {
	w := newWorld(t, func(o *tracking.Options) { o.ShowWithin = 1 })
	w.driver("own", 0)
	var ids []tracking.TaskID
	for i := range 13 {
		id := w.give(tracking.TypeDrop, 0, float64(100+i))
		if err := startOwn(w, id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	w.fix(10)
	for i, id := range ids {
		v := w.look(id)
		if shown := v.Position != nil; shown != (i == 0) || shown != (v.Path != nil) {
			t.Errorf("stop %d: position %v, path %v", i+1, v.Position, v.Path)
		}
		if v.ETA == nil {
			t.Errorf("stop %d: no expected time", i+1)
		}
		want := "none"
		if i <= 10 {
			want = fmt.Sprint(i)
		}
		got := "none"
		if v.StopsBefore != nil {
			got = fmt.Sprint(*v.StopsBefore)
		}
		if got != want {
			t.Errorf("stop %d: %s stops before, want %s", i+1, got, want)
		}
	}
}
