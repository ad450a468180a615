package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/seed-8aba7b13/tracking"
)

// Invariants reads all of the applications named and returns what is wrong with it, joined; nil if nothing is. It may be called whenever no
// operation is under way, on a store that a [tracking.Service] has written, from which no event was purged and no driver deleted.
//
// It plays the events through the rules of tasks and trips anew, and compares the outcome with the rows:
//
//   - each subject's events are numbered 1, 2, 3 …, and each is a move that the rules allow;
//   - each task and trip is as its events say: one driver at most, none lost, none without its events, no change without one;
//   - who got a task automatically was available, had fewer than maxOpen open tasks (negative: no limit), and was not excluded from it;
//   - a driver's OpenTasks are the open tasks that the driver has;
//   - who is given or loses a task is told, once;
//   - one active trip has a tracking id, a task's trip belongs to the task's driver while the task is in progress;
//   - a path is in order of time, within the trip's window, and has no fix twice;
//   - a driver has joined no oftener than tokens were given out;
//   - no row names a driver or a task of another application.
func Invariants(ctx context.Context, s tracking.Store, maxOpen int, apps ...tracking.AppID) error {
	_, err := inspect(ctx, s, maxOpen, apps...)
	return err
}

// inspect is Invariants, and returns what it has read.
func inspect(ctx context.Context, s tracking.Store, maxOpen int, apps ...tracking.AppID) (map[tracking.AppID]*audit, error) {
	books := map[tracking.AppID]*audit{}
	var errs []error
	for _, app := range apps {
		a := &audit{s: s, app: app, maxOpen: maxOpen}
		if err := a.read(ctx); err != nil {
			return nil, err
		}
		a.replay()
		a.compareTasks()
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
}

// taskState is a task as its events tell it.
type taskState struct {
	status   tracking.TaskStatus
	driver   tracking.DriverID
	outcome  tracking.Outcome
	picked   bool
	auto     bool
	excluded map[tracking.DriverID]bool
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

// replay plays the events, and notes those that the rules do not allow.
func (a *audit) replay() {
	a.seqs, a.moved, a.ended = map[tracking.Subject]int64{}, map[tracking.TaskID]*taskState{}, map[tracking.TripID]tracking.TripStatus{}
	a.available, a.open, a.joined = map[tracking.DriverID]bool{}, map[tracking.DriverID]int{}, map[tracking.DriverID]int{}
	a.told = map[tracking.DriverID][]tracking.Notice{}
	ids := map[string]bool{}
	for _, e := range a.events {
		if a.seqs[e.Subject]++; e.Seq != a.seqs[e.Subject] {
			a.fail("event %d of %v comes in place %d", e.Seq, e.Subject, a.seqs[e.Subject])
		}
		if ids[e.ID] {
			a.fail("two events have the id %s", e.ID)
		}
		ids[e.ID] = true
		allowed := true
		switch e.Subject.Kind {
		case tracking.KindTask:
			allowed = a.taskEvent(e)
		case tracking.KindTrip:
			allowed = a.tripEvent(e)
		case tracking.KindDriver:
			allowed = a.driverEvent(e)
		default:
			allowed = false
		}
		if !allowed {
			a.fail("the event %s of %v, number %d, is not allowed after what was before: %v", e.Type, e.Subject, e.Seq, e.Data)
		}
	}
}

func (a *audit) tell(e tracking.Event, d tracking.DriverID, kind tracking.NoticeKind) {
	a.told[d] = append(a.told[d], tracking.Notice{EventID: e.ID, Kind: kind})
}

// taskEvent moves a task along the table of contract 3.
func (a *audit) taskEvent(e tracking.Event) bool {
	t := a.moved[tracking.TaskID(e.Subject.ID)]
	if (t == nil) != (e.Type == tracking.TaskCreated) {
		return false
	}
	d := tracking.DriverID(e.Data["driver_id"])
	byDriver := e.Actor == "driver:"+string(d)
	free := func() {
		a.open[t.driver]--
		t.excluded[t.driver] = true
		t.status, t.driver, t.auto, t.picked = tracking.StatusCreated, "", false, false
	}
	switch e.Type {
	case tracking.TaskCreated:
		a.moved[tracking.TaskID(e.Subject.ID)] = &taskState{status: tracking.StatusCreated, excluded: map[tracking.DriverID]bool{}}
	case tracking.TaskUpdated:
		if t.isOpen() {
			a.tell(e, t.driver, tracking.NoticeUpdated)
		}
		return t.status != tracking.StatusCompleted
	case tracking.TaskAssigned:
		if d == "" || d == t.driver || tracking.DriverID(e.Data["previous_driver_id"]) != t.driver || (t.status != tracking.StatusCreated && t.status != tracking.StatusAssigned) {
			return false
		}
		if e.Data["auto"] == "true" {
			switch {
			case !a.available[d]:
				a.fail("task %s went automatically to %s, who is not available", e.Subject.ID, d)
			case t.excluded[d]:
				a.fail("task %s went automatically to %s, who is excluded from it", e.Subject.ID, d)
			case a.maxOpen >= 0 && a.open[d] >= a.maxOpen:
				a.fail("task %s went automatically to %s, who has %d open tasks", e.Subject.ID, d, a.open[d])
			case t.driver != "":
				a.fail("task %s was taken from %s automatically", e.Subject.ID, t.driver)
			}
		}
		if t.driver != "" {
			a.tell(e, t.driver, tracking.NoticeUnassigned)
			free()
		}
		if e.Data["auto"] != "true" {
			delete(t.excluded, d)
		}
		a.tell(e, d, tracking.NoticeAssigned)
		t.status, t.driver, t.auto = tracking.StatusAssigned, d, e.Data["auto"] == "true"
		a.open[d]++
	case tracking.TaskUnassigned:
		if !t.isOpen() || d != t.driver {
			return false
		}
		a.tell(e, d, tracking.NoticeUnassigned)
		free()
	case tracking.TaskDeclined:
		if t.status != tracking.StatusAssigned || d != t.driver || !byDriver {
			return false
		}
		free()
	case tracking.TaskStarted:
		if t.status != tracking.StatusAssigned || d != t.driver || !byDriver {
			return false
		}
		t.status = tracking.StatusInProgress
	case tracking.TaskPickedUp:
		if t.status != tracking.StatusInProgress || t.picked || d != t.driver || !byDriver {
			return false
		}
		t.picked = true
	case tracking.TaskCompleted:
		if t.status == tracking.StatusCompleted || d != t.driver || (d != "" && byDriver && t.status != tracking.StatusInProgress) {
			return false
		}
		outcome := tracking.Outcome(e.Data["outcome"])
		if t.isOpen() {
			a.open[t.driver]--
			if !byDriver {
				kind := tracking.NoticeUpdated
				if outcome == tracking.Cancelled {
					kind = tracking.NoticeCancelled
				}
				a.tell(e, d, kind)
			}
		}
		t.status, t.outcome = tracking.StatusCompleted, outcome
		return slices.Contains([]tracking.Outcome{tracking.Succeeded, tracking.Failed, tracking.Cancelled}, outcome)
	default:
		return false
	}
	return true
}

func (a *audit) tripEvent(e tracking.Event) bool {
	id := tracking.TripID(e.Subject.ID)
	was, started := a.ended[id]
	switch e.Type {
	case tracking.TripStarted:
		a.ended[id] = tracking.Active
		return !started
	case tracking.TripStopped:
		a.ended[id] = tracking.Stopped
	case tracking.TripDiscarded:
		a.ended[id] = tracking.Discarded
	default:
		return false
	}
	return started && was == tracking.Active
}

func (a *audit) driverEvent(e tracking.Event) bool {
	id := tracking.DriverID(e.Subject.ID)
	was := a.available[id]
	switch e.Type {
	case tracking.DriverAvailable:
		a.available[id] = true
		return !was
	case tracking.DriverUnavailable:
		a.available[id] = false
		return was
	case tracking.DriverSilent:
		return was
	case tracking.DriverJoined:
		a.joined[id]++
	case tracking.TripRequested:
		a.tell(e, id, tracking.NoticeRequest)
	default:
		return false
	}
	return true
}

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
		if row.Status != t.status || row.DriverID != t.driver || row.Outcome != t.outcome || row.PickedUpAt.IsZero() == t.picked {
			a.fail("task %s is %s %s, of driver %q, picked up at %v; by its events %s %s, of %q, picked up: %v",
				id, row.Status, row.Outcome, row.DriverID, row.PickedUpAt, t.status, t.outcome, t.driver, t.picked)
		}
		if row.Open() && row.AutoAssigned != t.auto {
			a.fail("task %s: AutoAssigned is %v, by its events %v", id, row.AutoAssigned, t.auto)
		}
		if excluded := slices.Sorted(maps.Keys(t.excluded)); !slices.Equal(row.Excluded, excluded) {
			a.fail("task %s excludes %q, by its events %q", id, row.Excluded, excluded)
		}
		if row.Waiting && row.Status != tracking.StatusCreated {
			a.fail("task %s waits and is %s", id, row.Status)
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
				return row.CompletedAt.IsZero() || !row.CompletedAt.Before(later(later(row.AssignedAt, row.StartedAt), row.PickedUpAt))
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
		if row.Status == tracking.Active {
			if other, ok := active[row.TrackingID]; ok {
				a.fail("trips %s and %s are active with one tracking id", id, other)
			}
			active[row.TrackingID] = id
		}
		if (row.Status == tracking.Active) != row.EndedAt.IsZero() || (!row.EndedAt.IsZero() && row.EndedAt.Before(row.StartedAt)) {
			a.fail("trip %s of status %d goes from %v to %v", id, row.Status, row.StartedAt, row.EndedAt)
		}
		if row.EndsAt != nil && row.Status != tracking.Stopped {
			a.fail("trip %s of status %d has an end position", id, row.Status)
		}
		if task, ok := a.tasks[tracking.TaskID(row.TrackingID)]; ok != (row.TaskID != "") {
			a.fail("trip %s with the tracking id %s names the task %q", id, row.TrackingID, row.TaskID)
		} else if ok && row.Status == tracking.Active && (task.Status != tracking.StatusInProgress || task.DriverID != row.DriverID || row.TaskID != task.ID) {
			a.fail("trip %s of driver %s is active for task %s, which is %s with %q", id, row.DriverID, task.ID, task.Status, task.DriverID)
		}
		var before tracking.Fix
		for f, err := range a.s.Fixes(ctx, a.app, row.DriverID, tracking.FixRange{From: row.StartedAt, To: row.EndedAt}) {
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

func (a *audit) compareDrivers(ctx context.Context) {
	open := map[tracking.DriverID]int{}
	for _, t := range a.tasks {
		if t.Open() {
			open[t.DriverID]++
		}
	}
	for id := range open {
		if _, ok := a.drivers[id]; !ok {
			a.fail("driver %q has open tasks and no row", id)
		}
	}
	for id, row := range a.drivers {
		if row.OpenTasks != open[id] {
			a.fail("driver %s has %d open tasks, by the tasks %d", id, row.OpenTasks, open[id])
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
