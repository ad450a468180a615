package storetest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// Invariants reads all of the applications named and returns what is wrong with it, joined; nil if
// nothing is. It may be called whenever no operation is under way, on a store that a
// [tracking.Service] has written, from which no event was purged and no driver or task deleted.
//
// It plays the events through the rules of tasks and trips anew, and compares the outcome with the
// rows:
//
//   - each subject's events are numbered 1, 2, 3 …, and each is a move that the rules allow;
//   - each task and trip is as its events say: one driver at most, none lost, none without its
//     events, no change without one;
//   - who got a task automatically was available, had fewer than maxOpen open tasks (negative: no
//     limit), or than the driver's row says, and was not excluded from it;
//   - a task is told to be late once for each promise; it is due when a driver is to be looked for
//     from then on, or it is to be told that it is late;
//   - a driver's Route has the stops of the open tasks that the driver has, each once, and a pickup
//     before its drop;
//   - who is given or loses a task, or whose customer writes, is told, once;
//   - a task is tried again by one other at most, and both say so;
//   - one active trip has a tracking id, a task's trip belongs to the task's driver while the task
//     is in progress, and one whose end is taken back has a new one;
//   - a driver takes back his own last step and no other, and is told once of what is handed to him;
//   - a task has a PIN when it asks for one, and the files that its driver has given, with all of
//     their bytes; by its driver's word it has succeeded only with the evidence that it asks for;
//   - what was erased says nothing any more that people have written, and does not go on;
//   - a path is in order of time, within the trip's window, and has no fix twice;
//   - a driver has joined no oftener than tokens were given out;
//   - no row names a driver or a task of another application.
func Invariants(ctx context.Context, s tracking.Store, maxOpen int, apps ...tracking.AppID) error {
	_, err := inspect(ctx, s, maxOpen, false, apps...)
	return err
}

// InvariantsAfterDeletions is [Invariants] of a store from which drivers and tasks were deleted, and
// where the drivers' ids may have been used again. What becomes of a driver with the row is then not compared
// with the events: duty, joinings, notices, and who is excluded from a task.
func InvariantsAfterDeletions(ctx context.Context, s tracking.Store, maxOpen int, apps ...tracking.AppID) error {
	_, err := inspect(ctx, s, maxOpen, true, apps...)
	return err
}

// inspect is Invariants, and returns what it has read.
func inspect(
	ctx context.Context, s tracking.Store, maxOpen int, deletions bool, apps ...tracking.AppID,
) (map[tracking.AppID]*audit, error) {
	books := map[tracking.AppID]*audit{}
	var errs []error
	for _, app := range apps {
		a := &audit{s: s, app: app, maxOpen: maxOpen, deletions: deletions}
		if err := a.read(ctx); err != nil {
			return nil, err
		}
		a.replay()
		a.compareTasks()
		a.compareProofs(ctx)
		a.compareTrips(ctx)
		a.compareDrivers(ctx)
		books[app] = a
	}
	for _, a := range books {
		for _, b := range books {
			if a != b {
				a.foreign(b)
			}
		}
		errs = append(errs, a.errs...)
	}
	return books, errors.Join(errs...)
}

// audit is one application's rows, and what its events make of them.
type audit struct {
	s       tracking.Store
	app     tracking.AppID
	maxOpen int
	errs    []error

	deletions bool // drivers and tasks have come and gone

	tasks   map[tracking.TaskID]tracking.Task
	trips   map[tracking.TripID]tracking.Trip
	drivers map[tracking.DriverID]tracking.Driver
	events  []tracking.Event

	seqs      map[tracking.Subject]int64
	moved     map[tracking.TaskID]*taskState
	ended     map[tracking.TripID]tracking.TripStatus
	available map[tracking.DriverID]bool
	open      map[tracking.DriverID]int
	joined    map[tracking.DriverID]int
	told      map[tracking.DriverID][]tracking.Notice
	handovers map[string]bool // of which somebody was told
}

// taskState is a task as its events tell it.
type taskState struct {
	status  tracking.TaskStatus
	driver  tracking.DriverID
	outcome tracking.Outcome
	why     string // a ReasonCode
	picked  bool
	auto    bool
	step    tracking.TaskStep // of its driver, that can be taken back; "" for none
	resumes bool              // its end was taken back, and its next trip has not begun

	arriving, arrived map[tracking.Leg]bool
	late              string // the promise of which was told last
	proofs            int    // files that were given
	byDriver          bool   // its driver has completed it
	excluded          map[tracking.DriverID]bool

	retryOf, retriedBy tracking.TaskID
	noted, stuck       bool
	erased             bool
}

// unstarted takes back what its driver did.
func (s *taskState) unstarted() {
	s.picked, s.why, s.step, s.arriving, s.arrived = false, "", "", nil, nil
}

func (s taskState) isOpen() bool {
	return s.status == tracking.StatusAssigned || s.status == tracking.StatusInProgress
}

func (a *audit) fail(format string, args ...any) {
	a.errs = append(a.errs, fmt.Errorf("application %s: "+format, append([]any{a.app}, args...)...))
}

// readAll reads a list page by page.
func readAll[K comparable, T any](id func(T) K, read func(tracking.Page) ([]T, bool, error)) (map[K]T, error) {
	rows := map[K]T{}
	for n := 1; ; n++ {
		list, more, err := read(tracking.Page{Number: n, Limit: 1000})
		if err != nil {
			return nil, err
		}
		for _, v := range list {
			rows[id(v)] = v
		}
		if !more {
			return rows, nil
		}
	}
}

// read reads all rows and events of the application.
func (a *audit) read(ctx context.Context) (err error) {
	a.tasks, err = readAll(taskID, func(p tracking.Page) ([]tracking.Task, bool, error) {
		return a.s.Tasks(ctx, a.app, tracking.TaskFilter{Page: p})
	})
	if err != nil {
		return err
	}
	a.trips, err = readAll(tripID, func(p tracking.Page) ([]tracking.Trip, bool, error) {
		return a.s.Trips(ctx, a.app, tracking.TripFilter{Page: p})
	})
	if err != nil {
		return err
	}
	a.drivers, err = readAll(driverID, func(p tracking.Page) ([]tracking.Driver, bool, error) {
		return a.s.Drivers(ctx, a.app, tracking.DriverFilter{Page: p})
	})
	if err != nil {
		return err
	}
	var after string
	for {
		list, more, err := a.s.Events(ctx, a.app, tracking.EventFilter{After: after, Limit: 1000})
		if err != nil {
			return err
		}
		a.events = append(a.events, list...)
		if !more {
			return nil
		}
		after = list[len(list)-1].ID
	}
}

// compareTasks holds the rows of tasks to what their events tell.
func (a *audit) compareTasks() {
	for id, t := range a.moved {
		if _, ok := a.tasks[id]; !ok {
			a.fail("task %s, which is %s, has no row", id, t.status)
		}
	}
	for id, row := range a.tasks {
		t := a.moved[id]
		if t == nil {
			a.fail("task %s has no events", id)
			continue
		}
		if row.Status != t.status || row.DriverID != t.driver || row.Outcome != t.outcome ||
			row.PickedUpAt.IsZero() == t.picked {
			a.fail("task %s is %s %s, of driver %q, picked up at %v; by its events %s %s, of %q, picked up: %v",
				id, row.Status, row.Outcome, row.DriverID, row.PickedUpAt, t.status, t.outcome, t.driver, t.picked)
		}
		if row.RetryOf != t.retryOf || row.RetriedBy != t.retriedBy || (row.CustomerNote != "") != t.noted {
			a.fail("task %s tries %q again and is tried again by %q, noted %q; by its events %q, %q, noted: %v", id,
				row.RetryOf, row.RetriedBy, row.CustomerNote, t.retryOf, t.retriedBy, t.noted)
		}
		if row.Stuck != nil && !t.stuck {
			a.fail("task %s has steps that could not be delivered; by its events it has none", id)
		}
		for _, s := range row.Stuck {
			if slices.Contains(row.Settled, s) {
				a.fail("task %s: %+v was seen to, and could not be delivered all the same", id, s)
			}
		}
		if row.ErasedAt.IsZero() == t.erased || t.erased && row.Notes+row.Reason+row.ReceivedBy+row.DriverNote != "" {
			a.fail("task %s was erased at %v, by its events: %v, and says %q", id, row.ErasedAt, t.erased,
				row.Notes+row.Reason+row.ReceivedBy+row.DriverNote)
		}
		there := func(id tracking.TaskID) bool { // or it was deleted
			_, ok := a.tasks[id]
			return id != "" && (ok || !a.deletions)
		}
		if next := row.RetriedBy; there(next) && a.tasks[next].RetryOf != id {
			a.fail("task %s is tried again by %s, which tries %q again", id, next, a.tasks[next].RetryOf)
		}
		if first := row.RetryOf; there(first) && a.tasks[first].RetriedBy != id {
			a.fail("task %s tries %s again, which is tried again by %q", id, first, a.tasks[first].RetriedBy)
		}
		if string(row.ReasonCode) != t.why {
			a.fail("task %s has the reason %q, by its events %q", id, row.ReasonCode, t.why)
		}
		if row.StepAt.IsZero() != (t.step == "") {
			a.fail("task %s: the last step was at %v, by its events it is %q", id, row.StepAt, t.step)
		}
		if t.resumes {
			a.fail("task %s goes on without a trip", id)
		}
		if row.Open() && row.AutoAssigned != t.auto {
			a.fail("task %s: AutoAssigned is %v, by its events %v", id, row.AutoAssigned, t.auto)
		}
		if excluded := slices.Sorted(maps.Keys(t.excluded)); !slices.Equal(row.Excluded, excluded) && !a.deletions {
			a.fail("task %s excludes %q, by its events %q", id, row.Excluded, excluded)
		}
		if row.Waiting && row.Status != tracking.StatusCreated {
			a.fail("task %s waits and is %s", id, row.Status)
		}
		if !row.AssignAt.IsZero() && (row.Status != tracking.StatusCreated || row.Waiting) {
			a.fail("task %s is %s, waiting: %v, and waits for %v", id, row.Status, row.Waiting, row.AssignAt)
		}
		if due := dueAt(row); !row.DueAt.Equal(due) {
			a.fail("task %s is due at %v, and kept with %v", id, due, row.DueAt)
		}
		last := row.CreatedAt
		for _, step := range []struct {
			name string
			at   func() bool
		}{
			{"assigned_at", func() bool { return row.AssignedAt.IsZero() || !row.AssignedAt.Before(last) }},
			{"started_at", func() bool { return row.StartedAt.IsZero() || !row.StartedAt.Before(row.AssignedAt) }},
			{"picked_up_at", func() bool { return row.PickedUpAt.IsZero() || !row.PickedUpAt.Before(row.StartedAt) }},
			{"completed_at", func() bool {
				return row.CompletedAt.IsZero() ||
					!row.CompletedAt.Before(later(later(row.AssignedAt, row.StartedAt), row.PickedUpAt))
			}},
		} {
			if !step.at() {
				a.fail("task %s: %s is before the step before it", id, step.name)
			}
		}
		if (row.Status == tracking.StatusCompleted) == row.CompletedAt.IsZero() {
			a.fail("task %s is %s, completed at %v", id, row.Status, row.CompletedAt)
		}
	}
}

// dueAt is when something is to be done about a task: a driver to be looked for from then on, or to
// be told that a promise is not kept, which somebody is to keep.
func dueAt(t tracking.Task) time.Time {
	promised := t.Promise
	if !t.Window.To.IsZero() {
		promised = t.Window.To
	}
	somebody := t.Status == tracking.StatusAssigned || t.Status == tracking.StatusInProgress || t.Waiting ||
		!t.AssignAt.IsZero()
	var due time.Time
	if somebody && !t.LateFor.Equal(promised) {
		due = promised
	}
	if !t.AssignAt.IsZero() && (due.IsZero() || t.AssignAt.Before(due)) {
		due = t.AssignAt
	}
	return due
}

// compareProofs holds the evidence of tasks to what they ask for, and to the files that are kept.
func (a *audit) compareProofs(ctx context.Context) {
	for id, row := range a.tasks {
		t := a.moved[id]
		if t == nil {
			continue // told already
		}
		if (row.PIN != "") != slices.Contains(row.Proof, tracking.ProofPIN) || row.WrongPINs > 10 {
			a.fail("task %s asks for %q, has the PIN %q, and %d wrong ones were tried", id, row.Proof, row.PIN,
				row.WrongPINs)
		}
		if len(row.Proofs) != t.proofs || t.proofs > tracking.MaxProofs {
			a.fail("task %s has %d files, by its events %d", id, len(row.Proofs), t.proofs)
		}
		given := map[tracking.ProofKind]bool{
			tracking.ProofName: row.ReceivedBy != "", tracking.ProofPIN: row.WrongPINs < 10,
		}
		for _, p := range row.Proofs {
			given[p.Kind] = true
			data, err := readFile(ctx, a.s, a.app, p.ID)
			if err != nil || len(data) != p.Size || sha256.Sum256(data) != p.Sum {
				a.fail("task %s names the file %s: %d bytes are kept, error %v", id, p.ID, len(data), err)
			}
		}
		if !t.byDriver || t.outcome != tracking.OutcomeSucceeded || t.erased {
			continue
		}
		for _, kind := range row.Proof {
			if !given[kind] {
				a.fail("task %s has succeeded by its driver's word, and the %s that it asks for lacks", id, kind)
			}
		}
	}
}

// compareTrips holds the rows of trips, and the paths in their windows, to what their events tell.
func (a *audit) compareTrips(ctx context.Context) {
	for id, status := range a.ended {
		if row, ok := a.trips[id]; !ok || row.Status != status {
			a.fail("trip %s has the status %d, by its events %d", id, row.Status, status)
		}
	}
	active := map[tracking.TrackingID]tracking.TripID{}
	for id, row := range a.trips {
		if _, ok := a.ended[id]; !ok {
			a.fail("trip %s has no events", id)
		}
		if row.Status == tracking.TripActive {
			if other, ok := active[row.TrackingID]; ok {
				a.fail("trips %s and %s are active with one tracking id", id, other)
			}
			active[row.TrackingID] = id
		}
		if (row.Status == tracking.TripActive) != row.EndedAt.IsZero() ||
			(!row.EndedAt.IsZero() && row.EndedAt.Before(row.StartedAt)) {
			a.fail("trip %s of status %d goes from %v to %v", id, row.Status, row.StartedAt, row.EndedAt)
		}
		if row.EndsAt != nil && row.Status != tracking.TripStopped {
			a.fail("trip %s of status %d has an end position", id, row.Status)
		}
		if d, there := a.drivers[row.DriverID]; row.Status == tracking.TripActive &&
			(!there || d.Person != row.Person) {
			a.fail("trip %s of driver %s is active, and its driver is gone", id, row.DriverID)
		}
		if task, ok := a.tasks[tracking.TaskID(row.TrackingID)]; ok != (row.TaskID != "") {
			a.fail("trip %s with the tracking id %s names the task %q", id, row.TrackingID, row.TaskID)
		} else if ok && row.Status == tracking.TripActive &&
			(task.Status != tracking.StatusInProgress || task.DriverID != row.DriverID || row.TaskID != task.ID) {
			a.fail("trip %s of driver %s is active for task %s, which is %s with %q", id, row.DriverID, task.ID,
				task.Status, task.DriverID)
		}
		var before tracking.Fix
		for f, err := range a.s.Fixes(ctx, a.app, row.DriverID, tracking.FixRange{
			Person: row.Person, From: row.StartedAt, To: row.EndedAt,
		}) {
			switch {
			case err != nil:
				a.fail("fixes of trip %s: %v", id, err)
			case !f.Time.After(before.Time):
				a.fail("the path of trip %s has a fix of %v after one of %v", id, f.Time, before.Time)
			case f.Time.Before(row.StartedAt) || (!row.EndedAt.IsZero() && f.Time.After(row.EndedAt)):
				a.fail("the path of trip %s has a fix of %v, outside its window", id, f.Time)
			}
			before = f
		}
	}
}

// compareDrivers holds the rows of drivers, and their feeds, to the tasks and the events.
func (a *audit) compareDrivers(ctx context.Context) {
	route := map[tracking.DriverID][]tracking.Stop{}
	for id, t := range a.tasks {
		if t.Open() {
			route[t.DriverID] = append(route[t.DriverID], stopsOf(t)...)
			if d := a.drivers[t.DriverID]; d.Person != t.Person {
				a.fail("task %s is open with driver %s, and that one is gone", id, t.DriverID)
			}
		}
	}
	for id := range route {
		if _, ok := a.drivers[id]; !ok {
			a.fail("driver %q has open tasks and no row", id)
		}
	}
	for id, row := range a.drivers {
		if !sameStops(row.Route, route[id]) {
			a.fail("the route of driver %s is %v, by the tasks %v", id, row.Route, route[id])
		}
		if a.deletions {
			continue
		}
		if row.Available != a.available[id] {
			a.fail("driver %s: available is %v, by the events %v", id, row.Available, a.available[id])
		}
		if a.joined[id] > row.TokenGeneration {
			a.fail("driver %s has joined %d times and got tokens %d times", id, a.joined[id], row.TokenGeneration)
		}
		feed, lost, err := a.s.Notices(ctx, a.app, id, 0, math.MaxInt32)
		if err != nil || lost {
			a.fail("notices of driver %s: lost %v, error %v", id, lost, err)
		}
		got := each(feed, func(n tracking.Notice) string { return n.EventID + " " + string(n.Kind) })
		want := each(a.told[id], func(n tracking.Notice) string { return n.EventID + " " + string(n.Kind) })
		if !slices.Equal(got, want) {
			a.fail("driver %s was told %q, by the events %q", id, got, want)
		}
		if !slices.IsSortedFunc(feed, func(x, y tracking.Notice) int { return cmp.Or(cmp.Compare(x.ID, y.ID), 1) }) {
			a.fail("the notices of driver %s do not grow", id)
		}
	}
}

// stopsOf are the stops of an open task.
func stopsOf(t tracking.Task) (list []tracking.Stop) {
	if t.Type == tracking.TypePickup || t.Type == tracking.TypePickupAndDrop && t.PickedUpAt.IsZero() {
		list = append(list, tracking.Stop{TaskID: t.ID, Leg: tracking.LegPickup})
	}
	if t.Type != tracking.TypePickup {
		list = append(list, tracking.Stop{TaskID: t.ID, Leg: tracking.LegDrop})
	}
	return list
}

// sameStops reports whether a route has these stops and no others, each once, and pickups before
// their drops.
func sameStops(route, stops []tracking.Stop) bool {
	at := map[tracking.Stop]int{}
	for i, s := range route {
		at[s] = i
	}
	for i, s := range stops {
		if at, ok := at[s]; !ok || i > 0 && stops[i-1].TaskID == s.TaskID && at < slices.Index(route, stops[i-1]) {
			return false
		}
	}
	return len(route) == len(stops)
}

// foreign looks for what refers to another application.
func (a *audit) foreign(b *audit) {
	check := func(what string, id tracking.DriverID) {
		_, own := a.drivers[id]
		if _, other := b.drivers[id]; other && !own {
			a.fail("%s names the driver %s of application %s", what, id, b.app)
		}
	}
	for id, t := range a.tasks {
		check("task "+string(id), t.DriverID)
		if _, other := b.tasks[id]; other {
			a.fail("task %s is in application %s too", id, b.app)
		}
	}
	for id, t := range a.trips {
		check("trip "+string(id), t.DriverID)
		if _, own := a.tasks[t.TaskID]; t.TaskID != "" && !own {
			a.fail("trip %s names the task %s, which is none of its application", id, t.TaskID)
		}
		if _, other := b.trips[id]; other {
			a.fail("trip %s is in application %s too", id, b.app)
		}
	}
	for _, e := range a.events {
		check("event "+e.ID, tracking.DriverID(e.Data["driver_id"]))
	}
}
