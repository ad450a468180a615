package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// eraseChecks are about tasks and trips that are deleted, files that are dropped, and what says when
// that is to be done.
func eraseChecks() []check {
	return []check{
		{"DeleteTasks/remove the row with all that is found by it, its events and their notices, and nothing else",
			deletedTaskLeavesNothing},
		{"DeleteTasks/what was unique is free in the same step", deletedTaskFreesItsKey},
		{"DeleteTasks/a row of the same id has a version that none of it has had, and events that count from 1",
			deletedTaskComesAgain},
		{"DeleteTasks/at another version, or twice, are a conflict, and nothing is changed", deletionConflicts},
		{"DeleteTasks/take what is undelivered out of every outbox, also where it is leased or dead",
			deletionEmptiesOutboxes},
		{"DeleteTasks/a notice that went is one that was purged", deletionPurgesNotices},
		{"DropFiles/remove the application's own files and ignore those that are not there", droppedFilesAreGone},
		{"Due/contacts are completed tasks that say something of a person, deletions all completed ones, by their end",
			dueErasuresListsByTheEnd},
	}
}

// toErase makes two tasks, "gone" and "stays", each with all that a task can have and a trip.
func toErase(t testing.TB, s tracking.Store) *client {
	c := use(t, s, here)
	cs := tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0)}, Deliver: []string{"", "push"}}
	for i, id := range []tracking.TaskID{"gone", "stays"} {
		task := fullTask(id, i+1)
		task.Type, task.OrderID, task.Key = tracking.TypeDrop, "#1", "key of "+string(id)
		task.Drop.Address = "Marienplatz of " + string(id)
		task.DriverID, task.Waiting, task.Drop.LngLat = "d", true, &tracking.LngLat{Lng: 11, Lat: 48}
		task.Link.Hash = hash(byte(10 + i))
		trip := newTrip(tracking.TripID("trip of "+id), "d", tracking.TrackingID(id), t0)
		trip.TaskID, trip.Link = id, tracking.Link{Generation: 1, Hash: hash(byte(20 + i))}
		cs.Tasks, cs.Trips = append(cs.Tasks, task), append(cs.Trips, trip)
		cs.Events = append(cs.Events,
			newEvent("task event of "+string(id), tracking.KindTask, string(id), t0, "d"),
			newEvent("trip event of "+string(id), tracking.KindTrip, "trip of "+string(id), t0, "d"))
	}
	cs.Events = append(cs.Events, newEvent("of the driver", tracking.KindDriver, "d", t0, "d"))
	c.commit(cs)
	return c
}

// erase deletes the task "gone" and its trip.
func (c *client) erase() {
	c.Helper()
	c.commit(tracking.Changeset{
		DeleteTasks: []tracking.Task{c.task("gone")}, DeleteTrips: []tracking.Trip{c.trip("trip of gone")},
	})
}

func deletedTaskLeavesNothing(t testing.TB, s tracking.Store) {
	c := toErase(t, s)
	want := snap(t, s, here)
	c.erase()
	keep := func(list []tracking.Event) (kept []tracking.Event) {
		for _, e := range list {
			if e.Subject.ID != "gone" && e.Subject.ID != "trip of gone" {
				kept = append(kept, e)
			}
		}
		return kept
	}
	want.Tasks, want.Trips, want.Events = []tracking.Task{c.task("stays")}, []tracking.Trip{c.trip("trip of stays")},
		keep(want.Events)
	var notices []tracking.Notice
	for _, n := range want.Notices["d"] {
		if n.EventID != "task event of gone" && n.EventID != "trip event of gone" {
			notices = append(notices, n)
		}
	}
	want.Notices["d"] = notices
	same(t, "rows", snap(t, s, here), want)

	_, err := s.Task(c.ctx, here, "gone")
	missing(t, "Task", err)
	_, err = s.TaskByKey(c.ctx, here, "key of gone")
	missing(t, "TaskByKey", err)
	_, _, err = s.TaskByLink(c.ctx, hash(10))
	missing(t, "TaskByLink", err)
	_, err = s.Trip(c.ctx, here, "trip of gone")
	missing(t, "Trip", err)
	_, err = s.ActiveTrip(c.ctx, here, "gone")
	missing(t, "ActiveTrip", err)
	_, _, err = s.TripByLink(c.ctx, hash(20))
	missing(t, "TripByLink", err)
	for name, f := range map[string]tracking.TaskFilter{
		"by words": {Query: "marienpl"}, "by order": {OrderID: "#1"}, "by driver": {DriverID: "d"},
		"by status":     {Status: []tracking.TaskStatus{tracking.StatusCompleted}},
		"by completion": {CompletedSince: t0}, "by window": {Sort: tracking.SortWindow}, "waiting": {Waiting: true},
	} {
		found, _ := c.tasks(f)
		same(t, "tasks "+name, each(found, taskID), []tracking.TaskID{"stays"})
	}
	waiting, err := s.Waiting(c.ctx, here, tracking.WaitingFilter{Limit: 10})
	c.ok(err)
	same(t, "tasks that wait", each(waiting, taskID), []tracking.TaskID{"stays"})
	trips, _ := c.trips(tracking.TripFilter{TrackingID: "gone"})
	same(t, "trips by tracking id", trips, nil)
	for kind, want := range map[tracking.DueKind][]tracking.Due{
		tracking.DueTrips:    {dueTrip(here, "trip of stays")},
		tracking.DueTasks:    {dueTask(here, "stays")},
		tracking.DueGeocodes: {dueTask(here, "stays")},
		tracking.DueContacts: {dueTask(here, "stays")}, tracking.DueDeletions: {dueTask(here, "stays")},
	} {
		same(t, "due", c.due(tracking.DueQuery{Kind: kind, Before: at(10000 * time.Hour)}), want)
	}
	n, err := s.TaskCounts(c.ctx, here, tracking.CountQuery{Now: t0})
	c.ok(err)
	same(t, "completed tasks", n.Completed, map[tracking.Outcome]int{tracking.OutcomeFailed: 1})
	_, _, err = s.Events(c.ctx, here, tracking.EventFilter{After: "task event of gone", Limit: 1})
	missing(t, "Events after one that is gone", err)
}

func deletedTaskFreesItsKey(t testing.TB, s tracking.Store) {
	c := toErase(t, s)
	next, trip := newTask("next", t0), newTrip("next trip", "d", "gone", t0)
	next.Key = "key of gone"
	c.commit(tracking.Changeset{
		DeleteTasks: []tracking.Task{c.task("gone")}, DeleteTrips: []tracking.Trip{c.trip("trip of gone")},
		Tasks: []tracking.Task{next}, Trips: []tracking.Trip{trip},
	})
	found, err := s.TaskByKey(c.ctx, here, "key of gone")
	c.ok(err)
	same(t, "who has the key", found.ID, "next")
	active, err := s.ActiveTrip(c.ctx, here, "gone")
	c.ok(err)
	same(t, "which trip is active", active.ID, "next trip")
}

func deletedTaskComesAgain(t testing.TB, s tracking.Store) {
	c := toErase(t, s)
	for range 3 { // so that its version is greater than that of others
		task, trip := c.task("gone"), c.trip("trip of gone")
		c.commit(tracking.Changeset{Tasks: []tracking.Task{task}, Trips: []tracking.Trip{trip}})
	}
	task, trip := c.task("gone"), c.trip("trip of gone")
	c.erase()
	again, tripAgain := newTask("gone", t0), newTrip("trip of gone", "d", "gone", t0)
	again.Drop.Address = "Elsewhere"
	c.commit(tracking.Changeset{
		Tasks: []tracking.Task{again}, Trips: []tracking.Trip{tripAgain},
		Events: []tracking.Event{
			newEvent("again", tracking.KindTask, "gone", t0), newEvent("trip again", tracking.KindTrip, "trip of gone", t0),
		},
	})
	if got := c.task("gone").Version; got <= task.Version {
		t.Errorf("the task that has come again has version %d, the one before had %d", got, task.Version)
	}
	if got := c.trip("trip of gone").Version; got <= trip.Version {
		t.Errorf("the trip that has come again has version %d, the one before had %d", got, trip.Version)
	}
	for _, of := range []tracking.Subject{
		{Kind: tracking.KindTask, ID: "gone"}, {Kind: tracking.KindTrip, ID: "trip of gone"},
	} {
		events, _ := c.events(tracking.EventFilter{Subject: of})
		same(t, "seq of the events", each(events, func(e tracking.Event) int64 { return e.Seq }), []int64{1})
	}
	c.refused(tracking.Changeset{Tasks: []tracking.Task{task}},
		tracking.ConflictError{Kind: tracking.KindTask, ID: "gone"})
	c.refused(tracking.Changeset{Trips: []tracking.Trip{trip}},
		tracking.ConflictError{Kind: tracking.KindTrip, ID: "trip of gone"})
	found, _ := c.tasks(tracking.TaskFilter{Query: "marienpl"})
	same(t, "tasks by words of the former one", each(found, taskID), []tracking.TaskID{"stays"})
}

func deletionConflicts(t testing.TB, s tracking.Store) {
	c := toErase(t, s)
	task, trip := c.task("gone"), c.trip("trip of gone")
	before := snap(t, s, here)
	other, otherTrip := task, trip
	other.Version++
	otherTrip.Version--
	also := []tracking.Task{c.task("stays")}
	for what, cs := range map[string]tracking.Changeset{
		"another version":      {DeleteTasks: []tracking.Task{other}, Tasks: also},
		"no such task":         {DeleteTasks: []tracking.Task{{ID: "gone?", Version: 1}}, Tasks: also},
		"one that is new":      {DeleteTasks: []tracking.Task{{ID: "gone?"}}, Tasks: also},
		"another trip version": {DeleteTasks: []tracking.Task{task}, DeleteTrips: []tracking.Trip{otherTrip}},
	} {
		if _, err := s.Commit(c.ctx, here, &cs); !errors.Is(err, tracking.ErrConflict) {
			t.Errorf("%s: error %v, want a conflict", what, err)
		}
	}
	same(t, "rows", snap(t, s, here), before)
}

func deletionEmptiesOutboxes(t testing.TB, s tracking.Store) {
	c := toErase(t, s)
	lease := func(outbox, owner string, now time.Time) []string {
		t.Helper()
		leased, err := s.LeaseEvents(c.ctx, tracking.Lease{
			Outbox: outbox, Owner: owner, Now: now, For: time.Minute, Limit: 100,
		})
		c.ok(err)
		return each(leased, leasedID)
	}
	lease("", "first", t0) // all of it is leased
	c.ok(s.FinishEvents(c.ctx, []tracking.Delivery{
		{App: here, EventID: "trip event of gone", Owner: "first", State: tracking.DeliveryDead, Now: t0},
	}))
	c.erase()
	c.ok(s.FinishEvents(c.ctx, []tracking.Delivery{
		{App: here, EventID: "task event of gone", Owner: "first", State: tracking.DeliveryRetry, Now: t0, RetryIn: time.Second},
		{App: here, EventID: "trip event of gone", Owner: "first", State: tracking.DeliveryReleased, Now: t0},
	}))
	dead, _ := c.events(tracking.EventFilter{Dead: true})
	same(t, "dead events", dead, nil)
	kept := []string{"task event of stays", "trip event of stays", "of the driver"}
	same(t, "what is left in the one outbox", lease("push", "second", at(time.Second)), kept)
	same(t, "what is left in the other", lease("", "second", at(time.Hour)), kept)
	again := newTask("gone", t0)
	c.commit(tracking.Changeset{
		Tasks: []tracking.Task{again}, Deliver: []string{""},
		Events: []tracking.Event{newEvent("again", tracking.KindTask, "gone", at(2*time.Hour))},
	})
	same(t, "what the task that comes again has to tell", lease("", "third", at(time.Hour)), []string{"again"})
}

func deletionPurgesNotices(t testing.TB, s tracking.Store) {
	c := toErase(t, s)
	before, _ := c.notices("d", 0)
	c.erase()
	left, lost := c.notices("d", 0)
	same(t, "what is left", each(left, func(n tracking.Notice) string { return n.EventID }),
		[]string{"task event of stays", "trip event of stays", "of the driver"})
	if !lost {
		t.Error("who has heard nothing yet has not lost his place")
	}
	last := before[1].ID // of what is gone
	if _, lost := c.notices("d", last); lost {
		t.Error("who has heard all that is gone has lost his place")
	}
}

func droppedFilesAreGone(t testing.TB, s tracking.Store) {
	if s.Files() == nil {
		t.Skip("the store keeps no files")
	}
	c := use(t, s, here)
	for _, app := range []tracking.AppID{here, there} {
		for _, id := range []string{"a", "b"} {
			c.ok(s.Files().Put(c.ctx, app, id, tracking.File{TaskID: "t", At: t0, Data: []byte(id)}))
		}
	}
	c.commit(tracking.Changeset{DropFiles: []string{"a", "none"}})
	_, err := readFile(c.ctx, s, here, "a")
	missing(t, "the file that was dropped", err)
	for app, id := range map[tracking.AppID]string{here: "b", there: "a"} {
		if _, err := readFile(c.ctx, s, app, id); err != nil {
			t.Errorf("the file %s of %s: %v", id, app, err)
		}
	}
	none := newTask("t", t0)
	none.Version = 7
	if _, err := s.Commit(c.ctx, here, &tracking.Changeset{
		DropFiles: []string{"b"}, Tasks: []tracking.Task{none},
	}); !errors.Is(err, tracking.ErrConflict) {
		t.Errorf("a changeset that cannot be applied: error %v", err)
	}
	if _, err := readFile(c.ctx, s, here, "b"); err != nil {
		t.Errorf("a file of a changeset that was refused: %v", err)
	}
}

// dueErasuresListsByTheEnd has tasks of two applications that ended at different times, one that has
// not, and some that say nothing of anybody.
func dueErasuresListsByTheEnd(t testing.TB, s tracking.Store) {
	c, o := use(t, s, here), use(t, s, there)
	ended := func(id tracking.TaskID, at time.Time) tracking.Task {
		task := newTask(id, t0)
		task.Status, task.CompletedAt = tracking.StatusCompleted, at
		task.Notes, task.Drop = "", &tracking.Place{LngLat: &tracking.LngLat{Lng: 11, Lat: 48}}
		return task
	}
	named, noted, plain, open, far := ended("named", minute(3)), ended("noted", minute(1)), ended("plain", minute(2).Add(time.Second)),
		newTask("open", t0), ended("far", minute(2))
	named.Drop.Customer = &tracking.Contact{Name: "Ana"}
	noted.DriverNote = "behind the gate"
	far.Drop.Address = "Marienplatz 1"
	c.commit(tracking.Changeset{Tasks: []tracking.Task{named, noted, plain, open}})
	o.commit(tracking.Changeset{Tasks: []tracking.Task{far}})

	contacts := tracking.DueQuery{Kind: tracking.DueContacts, Before: minute(3)}
	same(t, "contacts", c.due(contacts),
		[]tracking.Due{dueTask(here, "noted"), dueTask(there, "far"), dueTask(here, "named")})
	deletions := tracking.DueQuery{Kind: tracking.DueDeletions, Before: minute(3), App: here}
	same(t, "deletions of one application", c.due(deletions),
		[]tracking.Due{dueTask(here, "noted"), dueTask(here, "plain"), dueTask(here, "named")})
	contacts.Before, deletions.Before, deletions.App = minute(2), minute(1), ""
	same(t, "contacts till then", c.due(contacts), []tracking.Due{dueTask(here, "noted"), dueTask(there, "far")})
	same(t, "deletions till then", c.due(deletions), []tracking.Due{dueTask(here, "noted")})
	contacts.Limit = 1
	same(t, "contacts, at most 1", c.due(contacts), []tracking.Due{dueTask(here, "noted")})

	cleaned, reopened := c.task("noted"), c.task("named")
	cleaned.DriverNote, cleaned.ErasedAt = "", at(time.Hour)
	reopened.CompletedAt = time.Time{}
	c.commit(tracking.Changeset{Tasks: []tracking.Task{cleaned, reopened}})
	contacts.App, contacts.Before, contacts.Limit, deletions.Before = here, minute(9), 0, minute(9)
	same(t, "contacts after one was erased and one goes on", c.due(contacts), nil)
	same(t, "deletions then", c.due(deletions),
		[]tracking.Due{dueTask(here, "noted"), dueTask(there, "far"), dueTask(here, "plain")})
}
