package tracking_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// candidates lists who might get a task, as "id fit".
func (w *world) candidates(id tracking.TaskID) (list []string, waits *tracking.Waits) {
	w.t.Helper()
	all, waits, err := w.Candidates(w.ctx, id, 0)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range all {
		list = append(list, string(c.Driver.ID)+" "+string(c.Fit))
	}
	task := w.task(id)
	of, err := w.Waits(w.ctx, []tracking.Task{task})
	if err != nil {
		w.t.Fatal(err)
	}
	if diff := cmp.Diff([]*tracking.Waits{waits}, of); diff != "" {
		w.t.Errorf("why it waits, by itself and in a list (-by itself +in a list):\n%s", diff)
	}
	if own := task.Waits(w.now()); waits == nil != (own == nil) {
		w.t.Errorf("it waits: %v, and says itself %v", waits, own)
	}
	return list, waits
}

// Each thing that is in a driver's way is told, the first of several in the order of the words.
func TestFit(t *testing.T) {
	type way struct {
		fit tracking.Fit
		put func(w *world, id tracking.TaskID)
	}
	self := func(change tracking.DriverUpdate) func(*world, tracking.TaskID) {
		return func(w *world, _ tracking.TaskID) {
			change.ID = "d"
			must(w.SaveDriver(w.ctx, change))(w.t)
		}
	}
	ways := []way{
		{tracking.FitOffDuty, self(tracking.DriverUpdate{Available: new(false)})},
		{tracking.FitSilent, func(w *world, _ tracking.TaskID) { w.advance(11 * time.Minute) }},
		{tracking.FitUnfit, self(tracking.DriverUpdate{Properties: props{"van": "no"}})},
		{tracking.FitExcluded, func(w *world, id tracking.TaskID) {
			must(w.AssignTask(w.ctx, id, "d"))(w.t)
			must(w.UnassignTask(w.ctx, id))(w.t)
		}},
		{tracking.FitTooFar, self(tracking.DriverUpdate{LngLat: east(5000)})},
		{tracking.FitBusy, func(w *world, _ tracking.TaskID) {
			must(w.AssignTask(w.ctx, w.create(false).ID, "d"))(w.t)
		}},
	}
	for first := range 1 << len(ways) { // all sets of them
		w := newWorld(t, func(o *tracking.Options) { o.MaxAssignDistance = 1000 })
		n := newDrop()
		n.Requires = props{"van": "yes"}
		task := must(w.CreateTask(w.ctx, n))(t)
		w.with("d", 100, nil, props{"van": "yes"})
		want := tracking.FitYes
		for i, way := range slices.Backward(ways) { // the silence last, as steps are signs of life
			if first&(1<<i) != 0 && way.fit != tracking.FitSilent {
				way.put(w, task.ID)
			}
		}
		for i, way := range slices.Backward(ways) {
			if first&(1<<i) != 0 {
				if want = way.fit; way.fit == tracking.FitSilent {
					way.put(w, task.ID)
				}
			}
		}
		if got, _ := w.candidates(task.ID); !slices.Equal(got, []string{"d " + string(want)}) {
			t.Errorf("%b: %q, want %s", first, got, want)
		}
	}
}

// Candidates come nearest first, those without a position last and the oldest of them first, at
// most as many as are asked for; each with where he is and what he has to do.
func TestCandidatesInOrder(t *testing.T) {
	w := newWorld(t)
	must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "nowhere", Available: new(true), Name: new("No Where")}))(t)
	must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "new"}))(t)
	w.driver("far", 2000)
	w.driver("near", 0)
	w.driver("off", 500)
	must(w.SetAvailability(w.ctx, "off", false, time.Time{}))(t)
	must(w.AssignTask(w.ctx, w.create(false).ID, "far"))(t)
	n := newDrop()
	task := must(w.CreateTask(w.ctx, n))(t)
	want := []string{"near yes", "off off_duty", "far busy", "nowhere no_position", "new off_duty"}
	for limit := 1; limit <= 7; limit++ {
		list, waits, err := w.Candidates(w.ctx, task.ID, limit)
		if err != nil || waits != nil {
			t.Fatal(err, waits)
		}
		var got []string
		for _, c := range list {
			got = append(got, string(c.Driver.ID)+" "+string(c.Fit))
			metres := map[tracking.DriverID]float64{"near": 0, "off": 500, "far": 2000}
			want, located := metres[c.Driver.ID]
			if located != (c.Distance != nil) || located && int(*c.Distance+0.5) != int(want) {
				t.Errorf("%s is at %v", c.Driver.ID, c.Distance)
			}
		}
		if diff := cmp.Diff(want[:min(limit, len(want))], got); diff != "" {
			t.Errorf("%d of them (-want +got):\n%s", limit, diff)
		}
	}
	n.Drop = &tracking.Place{Address: "somewhere"} // without a point nobody is near or far
	task = must(w.CreateTask(w.ctx, n))(t)
	got, _ := w.candidates(task.ID)
	if diff := cmp.Diff([]string{"nowhere no_position", "new off_duty", "far busy", "near yes", "off off_duty"},
		got); diff != "" {
		t.Errorf("without a point (-want +got):\n%s", diff)
	}
	for _, limit := range []int{-1, 1001} {
		if _, _, err := w.Candidates(w.ctx, task.ID, limit); code(err) != tracking.ErrInvalid {
			t.Errorf("limit %d: %v", limit, err)
		}
	}
	if _, _, err := w.Candidates(w.ctx, "nobody", 0); code(err) != tracking.ErrNotFound {
		t.Errorf("no such task: %v", err)
	}
	if _, _, err := w.ForApp("other").Candidates(w.ctx, task.ID, 0); code(err) != tracking.ErrNotFound {
		t.Errorf("another application's: %v", err)
	}
}

// Why a task waits is what is in the way of the driver who comes closest.
func TestWhyATaskWaits(t *testing.T) {
	w := newWorld(t, func(o *tracking.Options) { o.MaxAssignDistance = 1000 })
	n := newDrop()
	n.AutoAssign, n.Requires = true, props{"van": "yes"}
	n.Window.From = start.Add(3 * time.Hour)
	task := must(w.CreateTask(w.ctx, n))(t)
	expect := func(what string, reason tracking.WaitReason, since time.Time) {
		t.Helper()
		_, waits := w.candidates(task.ID)
		if diff := cmp.Diff(&tracking.Waits{Since: since, Reason: reason}, waits); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		w.advance(time.Second)
	}
	expect("before its time", tracking.WaitWindow, start)
	w.advance(2 * time.Hour)
	from := start.Add(2 * time.Hour)
	expect("at its time, before a sweep", tracking.WaitNoDriver, from)
	w.markDue(1)
	expect("at its time", tracking.WaitNoDriver, from)
	must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "off", LngLat: east(0), Properties: n.Requires}))(t)
	expect("with a driver off duty", tracking.WaitNoDriver, from)
	must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "nowhere", Available: new(true), Properties: n.Requires}))(t)
	expect("with one who is nowhere", tracking.WaitSilent, from)
	w.with("silent", 0, nil, n.Requires)
	w.advance(11 * time.Minute)
	expect("with one who is silent", tracking.WaitSilent, from)
	w.with("bike", 0, nil, nil)
	expect("with one who has no van", tracking.WaitUnfit, from)
	w.with("excluded", 0, nil, n.Requires)
	must(w.AssignTask(w.ctx, task.ID, "excluded"))(t)
	must(w.UnassignTask(w.ctx, task.ID))(t)
	if got, waits := w.candidates(task.ID); waits != nil || !slices.Contains(got, "excluded excluded") {
		t.Errorf("taken from him it waits for nobody: %q, %v", got, waits)
	}
	// the same of one that goes to drivers by itself
	n.Window.From = time.Time{}
	from = w.now()
	task = must(w.CreateTask(w.ctx, n))(t)
	if task.DriverID != "excluded" {
		t.Fatalf("it went to %q", task.DriverID)
	}
	if _, waits := w.candidates(task.ID); waits != nil {
		t.Errorf("somebody has it, and it waits: %v", waits)
	}
	w.advance(time.Minute)
	must(w.DeclineTask(w.ctx, "excluded", task.ID, tracking.Reason{}, tracking.Step{}))(t)
	expect("with one who has declined it", tracking.WaitExcluded, from.Add(time.Minute))
	from = from.Add(time.Minute)
	w.with("far", 1500, nil, n.Requires)
	expect("with one who is too far", tracking.WaitTooFar, from)
	w.with("busy", 500, new(0), n.Requires)
	expect("with one who may have none", tracking.WaitBusy, from)
	w.with("busy", 500, new(tracking.AsOptions), n.Requires)
	expect("with one who is about to get it", tracking.WaitBusy, from)
	w.serve(1)
	if _, waits := w.candidates(task.ID); waits != nil {
		t.Errorf("it is served, and waits: %v", waits)
	}
}

// A task whose point nobody knows waits for that, and one that began too early by a clock that was
// wrong for its window.
func TestWhyATaskWaitsForNoDriver(t *testing.T) {
	w := newWorld(t, func(o *tracking.Options) { o.Geocoder = nowhere{} })
	n := newDrop()
	n.AutoAssign, n.Drop = true, &tracking.Place{Address: "somewhere"}
	task := must(w.CreateTask(w.ctx, n))(t)
	if _, waits := w.candidates(task.ID); waits == nil || waits.Reason != tracking.WaitNoPoint {
		t.Errorf("without a point: %+v", waits)
	}
	task = must(w.CreateTask(w.ctx, later()))(t)
	w.advance(2 * time.Hour)
	w.markDue(1)
	w.advance(-2 * time.Hour)
	_, waits := w.candidates(task.ID)
	if waits == nil || waits.Reason != tracking.WaitWindow || waits.Since.After(w.now()) {
		t.Errorf("begun too early: %+v", waits)
	}
}

// What is asked of the store does not grow with the drivers.
func TestCandidatesCost(t *testing.T) {
	store := &counted{Store: memory.New()}
	w := newWorldOn(t, store, func(o *tracking.Options) { o.MaxAssignDistance = 1000 })
	for i := range 200 {
		id := tracking.DriverID(string(rune('a'+i%26)) + string(rune('a'+i/26)))
		must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: id, Available: new(true)}))(t)
	}
	w.driver("bike", 0)
	task := w.requiring(props{"van": "yes"})
	store.offers.Store(0)
	list, waits, err := w.Candidates(w.ctx, task.ID, 5)
	if err != nil || len(list) != 5 || list[0].Driver.ID != "bike" || waits.Reason != tracking.WaitUnfit {
		t.Errorf("%d candidates, %+v, %v", len(list), waits, err)
	}
	if got := store.offers.Load(); got > 4 {
		t.Errorf("the store was asked for offers %d times, want at most 4", got)
	}
}

// Why many tasks wait is told of each, and where nobody could have any of them the store is not asked
// about each.
func TestWhyManyTasksWait(t *testing.T) {
	store := &counted{Store: memory.New()}
	w := newWorldOn(t, store, func(o *tracking.Options) { o.Geocoder = nowhere{} })
	var tasks []tracking.Task
	for range 50 {
		tasks = append(tasks, w.requiring(props{"van": "yes"}))
	}
	n := newDrop()
	n.AutoAssign, n.Drop = true, &tracking.Place{Address: "somewhere"}
	tasks = append(tasks, must(w.CreateTask(w.ctx, later()))(t), must(w.CreateTask(w.ctx, n))(t), w.create(false))
	reasons := func() (list []tracking.WaitReason) {
		waits, err := w.Waits(w.ctx, tasks)
		if err != nil || len(waits) != len(tasks) || waits[len(waits)-1] != nil {
			t.Fatalf("%d, %v", len(waits), err)
		}
		for i, of := range waits[:len(waits)-1] {
			if !of.Since.Equal(tasks[i].CreatedAt) {
				t.Errorf("the %dth waits since %v", i, of.Since)
			}
			list = append(list, of.Reason)
		}
		return list
	}
	all := func(reason tracking.WaitReason) []tracking.WaitReason {
		return append(slices.Repeat([]tracking.WaitReason{reason}, 50), tracking.WaitWindow, tracking.WaitNoPoint)
	}
	store.offers.Store(0)
	if diff := cmp.Diff(all(tracking.WaitNoDriver), reasons()); diff != "" {
		t.Errorf("without a driver (-want +got):\n%s", diff)
	}
	if got := store.offers.Load(); got > 4 {
		t.Errorf("the store was asked for offers %d times, want at most 4", got)
	}
	w.driver("bike", 0)
	if diff := cmp.Diff(all(tracking.WaitUnfit), reasons()); diff != "" {
		t.Errorf("with one who has no van (-want +got):\n%s", diff)
	}
	if _, err := w.Waits(w.ctx, make([]tracking.Task, 1001)); code(err) != tracking.ErrInvalid {
		t.Errorf("of 1001 tasks: %v", err)
	}
}
