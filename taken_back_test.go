package tracking_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// taskOf creates a task and assigns it.
func (w *world) taskOf(d tracking.DriverID) tracking.TaskID {
	w.t.Helper()
	id := w.create(false).ID
	must(w.AssignTask(w.ctx, id, d))(w.t)
	return id
}

func (w *world) startTask(d tracking.DriverID, id tracking.TaskID) tracking.Trip {
	w.t.Helper()
	_, trip, err := w.StartTask(w.ctx, d, id, tracking.Step{})
	if err != nil {
		w.t.Fatal(err)
	}
	return trip
}

// fixAt records where a driver is now.
func (w *world) fixAt(d tracking.DriverID, m float64) {
	w.t.Helper()
	must(w.RecordFixes(w.ctx, d, []tracking.Fix{{LngLat: *east(m), Time: w.now()}}))(w.t)
}

// route is a driver's stops: the letter of the task, p for its pickup and d for its drop.
func (w *world) route(d tracking.DriverID, letters map[tracking.TaskID]string) string {
	w.t.Helper()
	s := ""
	for _, stop := range must(w.Driver(w.ctx, d))(w.t).Route {
		s += letters[stop.TaskID] + string(stop.Leg)[:1] + " "
	}
	return s
}

func (w *world) trips(id tracking.TaskID) []tracking.Trip {
	w.t.Helper()
	list, _, err := w.Trips(w.ctx, tracking.TripFilter{TrackingID: tracking.TrackingID(id)})
	if err != nil {
		w.t.Fatal(err)
	}
	slices.Reverse(list)
	return list
}

func TestUndoStart(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 100)
	id := w.taskOf("own")
	w.advance(time.Minute)
	before := w.task(id)
	w.advance(time.Minute)
	trip := w.startTask("own", id)
	w.advance(2 * time.Minute)
	link := must(w.TaskLink(w.ctx, id))(t)
	task, discarded, err := w.UndoTask(w.ctx, "own", id, tracking.StepStart, tracking.Step{
		At: w.now().Add(-time.Minute), LngLat: east(300),
	})
	if err != nil {
		t.Fatal(err)
	}
	before.UpdatedAt, before.Version = w.now(), before.Version+2
	if d := cmp.Diff(before, task); d != "" {
		t.Errorf("it is not as it was before the start (-was +is)\n%s", d)
	}
	if d := cmp.Diff(task, w.task(id)); d != "" {
		t.Errorf("it is not what is kept (-said +kept)\n%s", d)
	}
	if discarded.ID != trip.ID || discarded.Status != tracking.TripDiscarded ||
		!discarded.EndedAt.Equal(w.now().Add(-time.Minute)) || discarded.EndsAt != nil {
		t.Errorf("the trip: %+v", discarded)
	}
	if got := must(w.Trip(w.ctx, trip.ID))(t); got.Version != discarded.Version ||
		got.Trip.Status != tracking.TripDiscarded {
		t.Errorf("the trip as it is read: %+v", got)
	}
	if got := must(w.Driver(w.ctx, "own"))(t); !got.Position.SeenAt.Equal(w.now()) ||
		got.Position.Fix.LngLat != *east(300) {
		t.Errorf("the driver: %+v", got.Position)
	}
	if v := must(w.Tracking(w.ctx, link))(t); v.Status != "assigned" || v.Position != nil || v.DriverName != "" {
		t.Errorf("the link: %+v", v)
	}
	if again := w.startTask("own", id); again.ID == trip.ID || again.Status != tracking.TripActive {
		t.Errorf("started again: %+v", again)
	}
}

// The customer's path goes on where it ended, without a gap and without what was before.
func TestUndoComplete(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	id := w.taskOf("own")
	first := w.startTask("own", id)
	w.advance(2 * time.Minute)
	w.fixAt("own", 100)
	w.advance(2 * time.Minute)
	w.fixAt("own", 500)
	w.advance(time.Minute)
	ended := w.now()
	if err := finish(w, id); err != nil {
		t.Fatal(err)
	}
	w.advance(3 * time.Minute)
	task, trip, err := w.UndoTask(w.ctx, "own", id, "", tracking.Step{LngLat: east(900)})
	if err != nil {
		t.Fatal(err)
	}
	if task.Status != tracking.StatusInProgress || task.Outcome != "" || !task.CompletedAt.IsZero() ||
		task.StartedAt.IsZero() {
		t.Errorf("%+v", task)
	}
	old := must(w.Trip(w.ctx, first.ID))(t)
	if trip.ID == first.ID || trip.Status != tracking.TripActive || trip.TaskID != id ||
		!old.EndedAt.Equal(ended) || !trip.StartedAt.Equal(ended) || *trip.StartsAt != *old.EndsAt {
		t.Errorf("%+v after %+v", trip, old)
	}
	must(w.RecordFixes(w.ctx, "own", []tracking.Fix{{LngLat: *east(700), Time: ended.Add(time.Minute)}}))(t)
	if got := w.path(trip.ID); !slices.Equal(got, []float64{700, 900}) {
		t.Errorf("its path: %v", got)
	}
	v := must(w.Tracking(w.ctx, must(w.TaskLink(w.ctx, id))(t)))(t)
	if v.Ended || v.Status != "in_progress" || v.Position == nil || len(v.Path) != 2 {
		t.Errorf("the link: %+v", v)
	}

	// It can be completed again, and that can be taken back again.
	w.advance(time.Minute)
	if err := finish(w, id); err != nil {
		t.Fatal(err)
	}
	if err := undo(w, id); err != nil {
		t.Fatal(err)
	}
	events, _, err := w.Events(w.ctx, tracking.EventFilter{
		Subject: tracking.Subject{Kind: tracking.KindTask, ID: string(id)},
	})
	if err != nil {
		t.Fatal(err)
	}
	told := ""
	for _, e := range events {
		switch d := e.Details(); e.Type {
		case tracking.EventTaskCompleted:
			told += "completed "
		case tracking.EventTaskUndone:
			if told += "undone "; d != (tracking.TaskUndoneData{DriverID: "own", Step: tracking.StepComplete}) ||
				e.Actor != "driver:own" ||
				told == "completed undone " && !e.Time.Equal(ended.Add(3*time.Minute)) {
				t.Errorf("the event: %+v", e)
			}
		}
	}
	if told != "completed undone completed undone " {
		t.Errorf("the events tell %s", told)
	}
	if n := len(w.trips(id)); n != 3 {
		t.Errorf("%d trips", n)
	}
}

// A trip that its driver stopped before the end of the task stays his own business: what he drove
// after it is not shown because he takes back the end.
func TestUndoCompleteAfterTheTrip(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	id := w.taskOf("own")
	first := w.startTask("own", id)
	w.advance(time.Minute)
	must(w.StopTrip(w.ctx, "own", first.ID, tracking.Step{}))(t)
	w.advance(time.Minute)
	w.fixAt("own", 700)
	w.advance(time.Minute)
	ended := w.now()
	if err := finish(w, id); err != nil {
		t.Fatal(err)
	}
	w.advance(time.Minute)
	_, trip, err := w.UndoTask(w.ctx, "own", id, "", tracking.Step{})
	if err != nil {
		t.Fatal(err)
	}
	if !trip.StartedAt.Equal(ended) || *trip.StartsAt != *east(700) || len(w.path(trip.ID)) != 0 {
		t.Errorf("%+v, %v", trip, w.path(trip.ID))
	}
}

// Where the phone's clock is ahead of ours, the windows share what it is ahead by.
func TestUndoCompleteByAClockAhead(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	id := w.taskOf("own")
	w.startTask("own", id)
	w.advance(time.Minute)
	ahead := w.now().Add(90 * time.Second)
	must(w.RecordFixes(w.ctx, "own", []tracking.Fix{{LngLat: *east(400), Time: ahead}}))(t)
	if err := finish(w, id); err != nil {
		t.Fatal(err)
	}
	w.advance(time.Second)
	_, trip, err := w.UndoTask(w.ctx, "own", id, "", tracking.Step{})
	if err != nil {
		t.Fatal(err)
	}
	if old := w.trips(id)[0]; !old.EndedAt.Equal(ahead) || !trip.StartedAt.Equal(w.now()) {
		t.Errorf("from %v, after one that ended at %v, at %v", trip.StartedAt, old.EndedAt, w.now())
	}
	if got := w.path(trip.ID); !slices.Equal(got, []float64{400}) {
		t.Errorf("its path: %v", got)
	}
}

// What is asked for again takes back nothing more.
func TestUndoAgain(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	id := w.taskOf("own")
	w.startTask("own", id)
	if err := pickUp(w, id); err != nil {
		t.Fatal(err)
	}
	if err := finish(w, id); err != nil {
		t.Fatal(err)
	}
	once, _, err := w.UndoTask(w.ctx, "own", id, tracking.StepComplete, tracking.Step{})
	if err != nil {
		t.Fatal(err)
	}
	n := len(w.told(tracking.KindTask, string(id), 0))
	w.advance(time.Second)
	again, trip, err := w.UndoTask(w.ctx, "own", id, tracking.StepComplete, tracking.Step{LngLat: east(5)})
	if err != nil || again.Version != once.Version || again.PickedUpAt.IsZero() || trip.ID != "" {
		t.Errorf("%v: %+v, trip %q", err, again, trip.ID)
	}
	for _, meant := range []tracking.TaskStep{"", tracking.StepPickup, tracking.StepStart} {
		if _, _, err := w.UndoTask(w.ctx, "own", id, meant, tracking.Step{}); code(err) != tracking.ErrConflict {
			t.Errorf("%q after the end was taken back: %v", meant, err)
		}
	}
	if got := w.told(tracking.KindTask, string(id), n); got != nil || len(w.trips(id)) != 2 {
		t.Errorf("events %q, %d trips", got, len(w.trips(id)))
	}
	if _, _, err := w.UndoTask(w.ctx, "own", id, "arrive", tracking.Step{}); code(err) != tracking.ErrInvalid {
		t.Errorf("an unknown step: %v", err)
	}
}

func TestUndoWhatOthersDid(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(w *world, id tracking.TaskID) error
		want tracking.ErrorCode
	}{
		"complete":   {complete, tracking.ErrConflict},
		"cancel":     {cancel, tracking.ErrConflict},
		"unassign":   {unassign, tracking.ErrNotFound},
		"force":      {force("other"), tracking.ErrNotFound},
		"hand over":  {handOver(true), tracking.ErrNotFound},
		"reopen":     {func(w *world, id tracking.TaskID) error { return first(finish(w, id), reopen(w, id)) }, ""},
		"update":     {update, ""},
		"time":       {pass(10 * time.Minute), tracking.ErrConflict},
		"less time":  {pass(10*time.Minute - time.Millisecond), ""},
		"wrong time": {pass(-time.Hour), tracking.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.driver("own", 0)
			w.driver("other", 0)
			id := w.taskOf("own")
			w.startTask("own", id)
			if err := c.do(w, id); err != nil {
				t.Fatal(err)
			}
			if err := undo(w, id); code(err) != c.want {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func pass(d time.Duration) func(*world, tracking.TaskID) error {
	return func(w *world, _ tracking.TaskID) error { w.advance(d); return nil }
}

func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// What is taken back is the driver's next stop again; what goes to him goes to the end.
func TestTakenBackIsNext(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	a, b, c := w.taskOf("own"), w.taskOf("own"), w.taskOf("own")
	of := map[tracking.TaskID]string{a: "a", b: "b", c: "c"}
	route := func(what, want string) {
		t.Helper()
		if got := w.route("own", of); got != want {
			t.Errorf("%s: the route is %s, want %s", what, got, want)
		}
	}
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	route("at first", "ap ad bp bd cp cd ")
	w.startTask("own", b)
	do(pickUp(w, b))
	route("b picked up", "ap ad bd cp cd ")
	do(undo(w, b))
	route("the pickup undone", "bp ap ad bd cp cd ")
	do(finish(w, b))
	route("b completed", "ap ad cp cd ")
	do(undo(w, b))
	route("the end undone", "bp bd ap ad cp cd ")
	do(pickUp(w, b))
	do(finish(w, b))
	do(undo(w, b))
	route("picked up, completed and undone", "bd ap ad cp cd ")
	do(complete(w, b))
	do(reopen(w, b))
	route("reopened", "ap ad cp cd bp bd ")
	w.startTask("own", c)
	do(undo(w, c))
	route("a start undone", "ap ad cp cd bp bd ")
}

func TestReopen(t *testing.T) {
	w := newWorld(t, func(o *tracking.Options) { o.LinkTTL = time.Hour })
	w.driver("own", 0)
	w.taskOf("own") // he has as much as he may get automatically
	id := w.taskOf("own")
	link := must(w.TaskLink(w.ctx, id))(t)
	w.startTask("own", id)
	must(w.FinishTask(w.ctx, "own", id, tracking.Completion{
		Outcome: tracking.OutcomeFailed, Reason: tracking.Reason{Code: tracking.ReasonClosed, Text: "closed"},
	}, tracking.Step{}))(t)
	must(w.SetAvailability(w.ctx, "own", false, time.Time{}))(t)
	w.advance(24*time.Hour - time.Millisecond)
	if _, err := w.Tracking(w.ctx, link); code(err) != tracking.ErrNotFound {
		t.Fatalf("the link has not expired: %v", err)
	}
	task := must(w.As("user:7").ReopenTask(w.ctx, id))(t)
	if task.Status != tracking.StatusAssigned || task.DriverID != "own" || task.Reason+string(task.ReasonCode) != "" ||
		!task.StartedAt.IsZero() || !task.AssignedAt.Equal(w.now()) || task.Version != w.task(id).Version {
		t.Errorf("%+v", task)
	}
	if v := must(w.Tracking(w.ctx, link))(t); v.Status != "assigned" || v.Ended || !v.EndedAt.IsZero() ||
		v.Outcome != "" {
		t.Errorf("its link shows %+v", v)
	}
	events, _, err := w.Events(w.ctx, tracking.EventFilter{
		Subject: tracking.Subject{Kind: tracking.KindTask, ID: string(id)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if e := events[len(events)-1]; e.Type != tracking.EventTaskReopened || e.Actor != "user:7" ||
		e.Person != task.Person || e.Details() != (tracking.TaskReopenedData{DriverID: "own"}) {
		t.Errorf("the event: %+v", e)
	}
	w.startTask("own", id)
	if err := finish(w, id); err != nil || w.task(id).Outcome != tracking.OutcomeSucceeded {
		t.Errorf("completed again: %v, %+v", err, w.task(id))
	}
	w.advance(24 * time.Hour)
	if err := reopen(w, id); code(err) != tracking.ErrConflict {
		t.Errorf("a day after the end: %v", err)
	}
}

// Who had it must be the one who gets it.
func TestReopenWithoutItsDriver(t *testing.T) {
	for name, end := range map[string]func(w *world, id tracking.TaskID){
		"nobody had it": func(w *world, id tracking.TaskID) { must(w.CancelTask(w.ctx, id, tracking.Reason{}))(w.t) },
		"he is erased": func(w *world, id tracking.TaskID) {
			must(w.AssignTask(w.ctx, id, "own"))(w.t)
			must(w.CompleteTask(w.ctx, id, tracking.Completion{}))(w.t)
			if err := w.DeleteDriver(w.ctx, "own"); err != nil {
				w.t.Fatal(err)
			}
		},
		"another has his id": func(w *world, id tracking.TaskID) {
			must(w.AssignTask(w.ctx, id, "own"))(w.t)
			must(w.CompleteTask(w.ctx, id, tracking.Completion{}))(w.t)
			if err := w.DeleteDriver(w.ctx, "own"); err != nil {
				w.t.Fatal(err)
			}
			w.driver("own", 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.driver("own", 90000)
			task := w.create(true)
			must(w.UnassignTask(w.ctx, task.ID))(t)
			end(w, task.ID)
			n := len(w.told(tracking.KindTask, string(task.ID), 0))
			got := must(w.ReopenTask(w.ctx, task.ID))(t)
			if got.Status != tracking.StatusCreated || got.DriverID != "" || got.Person != "" || got.Waiting ||
				!got.AssignedAt.IsZero() {
				t.Errorf("%+v", got)
			}
			if told := w.told(tracking.KindTask, string(task.ID), n); !slices.Equal(told, []string{"task.reopened"}) {
				t.Errorf("events %q", told)
			}
			w.driver("next", 0)
			must(w.AssignTask(w.ctx, task.ID, "next"))(t)
		})
	}
}

// A task that waited when it was cancelled waits again, and is served.
func TestReopenWaiting(t *testing.T) {
	w := newWorld(t)
	id := w.create(true).ID
	if err := cancel(w, id); err != nil {
		t.Fatal(err)
	}
	w.driver("own", 0)
	if n := must(w.AssignWaiting(w.ctx))(t); n != 0 {
		t.Fatalf("%d cancelled tasks were assigned", n)
	}
	if got := must(w.ReopenTask(w.ctx, id))(t); got.Status != tracking.StatusCreated || !got.Waiting || got.AutoAssigned {
		t.Errorf("%+v", got)
	}
	if n := must(w.AssignWaiting(w.ctx))(t); n != 1 || w.task(id).DriverID != "own" {
		t.Errorf("%d were assigned: %+v", n, w.task(id))
	}
}

// A driver who is erased on the way gets nothing.
func TestReopenWhileItsDriverGoes(t *testing.T) {
	store := &between{Store: memory.New()}
	w := newWorldOn(t, store)
	w.driver("own", 0)
	id := w.taskOf("own")
	if err := complete(w, id); err != nil {
		t.Fatal(err)
	}
	elsewhere := newWorldOn(t, store.Store)
	store.then = func() {
		if err := elsewhere.DeleteDriver(w.ctx, "own"); err != nil {
			t.Error(err)
		}
		elsewhere.driver("own", 0)
	}
	if got := must(w.ReopenTask(w.ctx, id))(t); got.Status != tracking.StatusCreated || got.DriverID != "" {
		t.Errorf("%+v", got)
	}
	if d := must(w.Driver(w.ctx, "own"))(t); len(d.Route) != 0 {
		t.Errorf("the next one has %v", d.Route)
	}
}

// Who has the id of an erased driver cannot take back what that one did.
func TestUndoOfSomebodyErased(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	id := w.taskOf("own")
	w.startTask("own", id)
	if err := finish(w, id); err != nil {
		t.Fatal(err)
	}
	if err := w.DeleteDriver(w.ctx, "own"); err != nil {
		t.Fatal(err)
	}
	for _, when := range []string{"nobody", "somebody else"} {
		if err := undo(w, id); code(err) != tracking.ErrNotFound {
			t.Errorf("%s has the id: %v", when, err)
		}
		w.driver("own", 0)
	}
	if got := w.task(id); got.Status != tracking.StatusCompleted {
		t.Errorf("%+v", got)
	}
}

// A driver who takes back the end, and a dispatcher who cancels: one is first, and the other is
// judged by that.
func TestUndoAgainstOthers(t *testing.T) {
	for name, c := range map[string]struct {
		then func(w *world, id tracking.TaskID) error
		want tracking.ErrorCode
		is   tracking.TaskStatus
	}{
		"undo":   {undo, tracking.ErrConflict, tracking.StatusInProgress},
		"reopen": {reopen, "", tracking.StatusAssigned},
		"reopen and complete": {
			func(w *world, id tracking.TaskID) error { return first(reopen(w, id), complete(w, id)) },
			tracking.ErrConflict, tracking.StatusCompleted,
		},
		"reopen and give to another": {
			func(w *world, id tracking.TaskID) error { return first(reopen(w, id), assign("other")(w, id)) },
			tracking.ErrNotFound, tracking.StatusAssigned,
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := &between{Store: memory.New()}
			w := newWorldOn(t, store)
			w.driver("own", 0)
			w.driver("other", 0)
			id := w.taskOf("own")
			w.startTask("own", id)
			if err := finish(w, id); err != nil {
				t.Fatal(err)
			}
			elsewhere := newWorldOn(t, store.Store) // which the locks of the first do not bind
			store.then = func() {
				if err := c.then(elsewhere, id); err != nil {
					t.Error(err)
				}
			}
			if err := undo(w, id); code(err) != c.want {
				t.Errorf("%v, want %q", err, c.want)
			}
			if got := w.task(id).Status; got != c.is {
				t.Errorf("the task is %s, want %s", got, c.is)
			}
		})
	}
}

// A task that nobody knew the points of when it ended is looked for again.
func TestTakenBackIsSought(t *testing.T) {
	for name, back := range map[string]func(*world, tracking.TaskID) error{"reopen": reopen, "undo": undo} {
		w := newWorld(t, func(o *tracking.Options) { o.Geocoder = nowhere{} })
		w.driver("own", 0)
		id := must(w.CreateTask(w.ctx, tracking.NewTask{
			Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "There 2"},
		}))(t).ID
		must(w.AssignTask(w.ctx, id, "own"))(t)
		w.startTask("own", id)
		if err := finish(w, id); err != nil {
			t.Fatal(err)
		}
		w.advance(time.Minute)
		if err := back(w, id); err != nil {
			t.Fatal(err)
		}
		if got := w.task(id).GeocodeAt; !got.Equal(w.now()) {
			t.Errorf("%s: to be looked for at %v, want %v", name, got, w.now())
		}
	}
}
