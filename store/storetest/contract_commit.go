package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8aba7b13/tracking"
)

// commitChecks are about Commit: rows, versions, and that all of a Changeset applies or nothing.
func commitChecks() []check {
	return []check{
		{"Commit/returns the Seq and the Version of each task, trip and driver, in the order of the Changeset",
			commitReturnsWhatItGave},
		{"Commit/a new row comes back whole, with version 1", newRowComesBackWhole},
		{"Commit/a row replaces the one that has its version, which is raised", rowReplacesItsVersion},
		{"Commit/values can be taken away again", valuesCanBeTakenAway},
		{"Commit/an id that exists is a conflict", existingIDConflicts},
		{"Commit/another version than the row has is a conflict", otherVersionConflicts},
		{"Commit/a row that is not there cannot be replaced or deleted", missingRowConflicts},
		{"Commit/Seq grows with each insertion, in the order of the Changeset", seqGrowsWithEachInsertion},
		{"Commit/what is refused changes nothing at all", refusedCommitChangesNothing},
		{"Commit/an empty changeset is no change", emptyChangesetChangesNothing},
		{"Commit/leaves the caller's changeset as it was", commitLeavesTheChangeset},
		{"Commit/with a context that has ended changes nothing", endedContextCommitsNothing},
		{"Commit/updates apply before inserts", updatesApplyBeforeInserts},
		{"Commit/an invite of version 0 replaces whatever was there", inviteOfVersion0Replaces},
		{"Commit/invites, requests and fixes need the driver's row", rowsOfADriverNeedTheDriver},
		{"Commit/a driver's position and distance are ignored", driverPositionIsIgnored},
		{"Commit/requests replace what was there, and are closed", requestsReplaceAndClose},
	}
}

func newRowComesBackWhole(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(everyRow(1))
	checkEveryRow(c, 1, 1)
}

func rowReplacesItsVersion(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(everyRow(1))
	was := c.task("t")
	cs := everyRow(2)
	setVersions(&cs, 1)
	c.commit(cs)
	checkEveryRow(c, 2, 2)
	if seq := c.task("t").Seq; seq != was.Seq {
		t.Errorf("Seq was %d and is %d: it must stay", was.Seq, seq)
	}
}

func valuesCanBeTakenAway(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(everyRow(1))
	bare := tracking.Changeset{
		Tasks:   []tracking.Task{{ID: "t", Type: tracking.TypeDrop, Status: tracking.StatusCreated, Version: 1}},
		Trips:   []tracking.Trip{{ID: "r", Status: tracking.TripStopped, Version: 1}},
		Drivers: []tracking.Driver{{ID: "d", Version: 1}},
		Invites: []tracking.Invite{{DriverID: "d", Version: 1}},
		Keys:    []tracking.Key{{ID: "k", Hash: hash(9), Version: 1}},
	}
	want := kept(bare)
	c.commit(bare)
	first := everyRow(1)
	task, trip, driver := c.task("t"), c.trip("r"), c.driver("d")
	want.Tasks[0].Version, want.Tasks[0].Seq, want.Tasks[0].CreatedAt = 2, task.Seq, first.Tasks[0].CreatedAt
	want.Trips[0].Version, want.Trips[0].Seq, want.Trips[0].CreatedAt = 2, trip.Seq, first.Trips[0].CreatedAt
	want.Drivers[0].Version, want.Drivers[0].Seq, want.Drivers[0].CreatedAt = 2, driver.Seq, first.Drivers[0].CreatedAt
	want.Invites[0].Version, want.Invites[0].CreatedAt = 2, first.Invites[0].CreatedAt
	want.Keys[0].Version, want.Keys[0].CreatedAt = 2, first.Keys[0].CreatedAt
	same(t, "task", task, want.Tasks[0])
	same(t, "trip", trip, want.Trips[0])
	same(t, "driver", driver, want.Drivers[0])
	same(t, "invite", c.invite("d"), want.Invites[0])
	same(t, "keys", c.keys(), want.Keys)
}

func existingIDConflicts(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(everyRow(1))
	again := everyRow(2)
	c.refused(tracking.Changeset{Tasks: again.Tasks}, tracking.ConflictError{Kind: tracking.KindTask, ID: "t"})
	c.refused(tracking.Changeset{Trips: again.Trips}, tracking.ConflictError{Kind: tracking.KindTrip, ID: "r"})
	c.refused(tracking.Changeset{Drivers: again.Drivers}, tracking.ConflictError{Kind: tracking.KindDriver, ID: "d"})
	c.refused(tracking.Changeset{Keys: again.Keys}, tracking.ConflictError{Kind: tracking.KindKey, ID: "k"})
	checkEveryRow(c, 1, 1)
}

func otherVersionConflicts(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(everyRow(1))
	moved := everyRow(1)
	setVersions(&moved, 1)
	c.commit(moved) // all are at version 2 now
	for _, v := range []int64{1, 3, -1, 1<<62 + 2} {
		cs := everyRow(2)
		setVersions(&cs, v)
		c.refused(tracking.Changeset{Tasks: cs.Tasks}, tracking.ConflictError{Kind: tracking.KindTask, ID: "t"})
		c.refused(tracking.Changeset{Trips: cs.Trips}, tracking.ConflictError{Kind: tracking.KindTrip, ID: "r"})
		c.refused(tracking.Changeset{Drivers: cs.Drivers}, tracking.ConflictError{Kind: tracking.KindDriver, ID: "d"})
		c.refused(tracking.Changeset{Invites: cs.Invites}, tracking.ConflictError{Kind: tracking.KindInvite, ID: "d"})
		c.refused(tracking.Changeset{Keys: cs.Keys}, tracking.ConflictError{Kind: tracking.KindKey, ID: "k"})
		c.refused(tracking.Changeset{DeleteDrivers: cs.Drivers}, tracking.ConflictError{
			Kind: tracking.KindDriver, ID: "d",
		})
	}
	checkEveryRow(c, 1, 2)
}

func missingRowConflicts(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0)}})
	before := snap(t, s, here)
	cs := everyRow(1)
	cs.Tasks[0].Version, cs.Trips[0].Version, cs.Invites[0].Version, cs.Keys[0].Version = 1, 1, 1, 1
	cs.Drivers[0].ID, cs.Drivers[0].Version = "nobody", 1
	c.refused(tracking.Changeset{Tasks: cs.Tasks}, tracking.ConflictError{Kind: tracking.KindTask, ID: "t"})
	c.refused(tracking.Changeset{Trips: cs.Trips}, tracking.ConflictError{Kind: tracking.KindTrip, ID: "r"})
	c.refused(tracking.Changeset{Drivers: cs.Drivers}, tracking.ConflictError{Kind: tracking.KindDriver, ID: "nobody"})
	c.refused(tracking.Changeset{Invites: cs.Invites}, tracking.ConflictError{Kind: tracking.KindInvite, ID: "d"})
	c.refused(tracking.Changeset{Keys: cs.Keys}, tracking.ConflictError{Kind: tracking.KindKey, ID: "k"})
	c.refused(tracking.Changeset{DeleteDrivers: cs.Drivers}, tracking.ConflictError{
		Kind: tracking.KindDriver, ID: "nobody",
	})
	same(t, "rows", snap(t, s, here), before)
}

// seqGrowsWithEachInsertion inserts at one moment, so that Seq alone orders the lists.
func seqGrowsWithEachInsertion(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{
		Tasks:   []tracking.Task{newTask("b", t0), newTask("c", t0), newTask("a", t0)},
		Trips:   []tracking.Trip{newTrip("b", "d", "1", t0), newTrip("c", "d", "2", t0), newTrip("a", "d", "3", t0)},
		Drivers: []tracking.Driver{newDriver("b", t0), newDriver("c", t0), newDriver("a", t0)},
	})
	c.commit(tracking.Changeset{
		Tasks:   []tracking.Task{newTask("0", t0)},
		Trips:   []tracking.Trip{newTrip("0", "d", "4", t0)},
		Drivers: []tracking.Driver{newDriver("0", t0)},
	})
	tasks, _ := c.tasks(tracking.TaskFilter{})
	same(t, "tasks, newest first", each(tasks, taskID), []tracking.TaskID{"0", "a", "c", "b"})
	trips, _ := c.trips(tracking.TripFilter{})
	same(t, "trips, newest first", each(trips, tripID), []tracking.TripID{"0", "a", "c", "b"})
	drivers, _ := c.drivers(tracking.DriverFilter{})
	same(t, "drivers, oldest first", each(drivers, driverID), []tracking.DriverID{"b", "c", "a", "0"})
	for i := 1; i < 4; i++ {
		if tasks[i-1].Seq <= tasks[i].Seq || trips[i-1].Seq <= trips[i].Seq || drivers[i-1].Seq >= drivers[i].Seq {
			t.Errorf("Seq of tasks %d, %d, of trips %d, %d, of drivers %d, %d: not in order of insertion",
				tasks[i-1].Seq, tasks[i].Seq, trips[i-1].Seq, trips[i].Seq, drivers[i-1].Seq, drivers[i].Seq)
		}
	}
	if tasks[3].Seq < 1 || trips[3].Seq < 1 || drivers[0].Seq < 1 {
		t.Errorf("the first Seq of tasks, trips, drivers: %d, %d, %d; want at least 1, "+
			"as the zero Cursor is before everything", tasks[3].Seq, trips[3].Seq, drivers[0].Seq)
	}
}

// refusedCommitChangesNothing spoils a sound changeset in each of its parts.
func refusedCommitChangesNothing(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(everyRow(1))
	c.commit(tracking.Changeset{
		Drivers: []tracking.Driver{newDriver("gone", t0)}, Invites: []tracking.Invite{newInvite("gone", 70, 71)},
	})
	c.record(tracking.FixBatch{DriverID: "gone", SeenAt: t0, Fixes: []tracking.Fix{newFix(t0, 11, 48)}})
	before := snap(t, s, here)
	good := func() tracking.Changeset {
		gone := newDriver("gone", t0)
		gone.Version = 1
		task := c.task("t")
		task.Notes = "changed"
		return tracking.Changeset{
			Tasks:         []tracking.Task{newTask("new", t0), task},
			Trips:         []tracking.Trip{newTrip("new", "d", "new", t0)},
			Drivers:       []tracking.Driver{newDriver("new", t0)},
			DeleteDrivers: []tracking.Driver{gone},
			Invites:       []tracking.Invite{newInvite("new", 80, 81)},
			Keys:          []tracking.Key{newKey("new", 82, t0)},
			Requests:      []tracking.Request{newRequest("new", "x", t0)},
			CloseRequests: []tracking.RequestID{{DriverID: "d", TrackingID: "q"}},
			Fixes: []tracking.FixBatch{{
				DriverID: "d", SeenAt: at(time.Hour), Fixes: []tracking.Fix{newFix(at(time.Hour), 11, 48)},
			}},
			Events:  []tracking.Event{newEvent("new", tracking.KindTask, "t", t0, "d")},
			Deliver: []string{""},
		}
	}
	bad := everyRow(3)
	for _, spoil := range []func(*tracking.Changeset){
		func(cs *tracking.Changeset) { cs.Tasks = append(cs.Tasks, newTask("t", t0)) },
		func(cs *tracking.Changeset) { cs.Trips = append(cs.Trips, bad.Trips...) },
		func(cs *tracking.Changeset) { cs.Drivers = append(cs.Drivers, bad.Drivers...) },
		func(cs *tracking.Changeset) { cs.DeleteDrivers = append(cs.DeleteDrivers, newDriver("d", t0)) },
		func(cs *tracking.Changeset) { cs.Keys = append(cs.Keys, bad.Keys...) },
		func(cs *tracking.Changeset) { cs.Invites = append(cs.Invites, newInvite("nobody", 90, 91)) },
		func(cs *tracking.Changeset) { cs.Requests = append(cs.Requests, newRequest("nobody", "x", t0)) },
		func(cs *tracking.Changeset) { cs.Fixes = append(cs.Fixes, tracking.FixBatch{DriverID: "nobody"}) },
		func(cs *tracking.Changeset) { cs.Tasks[0].Key = everyRow(1).Tasks[0].Key },
	} {
		cs := good()
		spoil(&cs)
		_, err := s.Commit(c.ctx, here, &cs)
		if !errors.Is(err, tracking.ErrConflict) {
			t.Errorf("Commit of what must be refused: got error %v, want a conflict", err)
		}
		same(t, "rows after a refused Commit", snap(t, s, here), before)
		if l := c.lease("w", t0, 10); l != nil {
			t.Errorf("a refused Commit left %d events to deliver", len(l))
		}
	}
	c.commit(good()) // what was spoilt above was sound otherwise
}

func emptyChangesetChangesNothing(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(everyRow(1))
	before := snap(t, s, here)
	c.commit(tracking.Changeset{})
	same(t, "rows", snap(t, s, here), before)
}

func commitLeavesTheChangeset(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	cs := everyRow(1)
	c.commit(cs)
	if d := differs(everyRow(1), cs); d != "" {
		t.Errorf("the changeset after Commit (-before +after):\n%s", d)
	}
}

func endedContextCommitsNothing(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	ctx, cancel := context.WithCancel(c.ctx)
	cancel()
	cs := everyRow(1)
	if _, err := s.Commit(ctx, here, &cs); !errors.Is(err, context.Canceled) {
		t.Errorf("Commit: got error %v, want %v", err, context.Canceled)
	}
	same(t, "rows", snap(t, s, here, "d"), snapshot{
		Fixes: map[tracking.DriverID][]tracking.Fix{}, Notices: map[tracking.DriverID][]tracking.Notice{},
	})
}

func updatesApplyBeforeInserts(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{
		Drivers: []tracking.Driver{newDriver("d", t0)},
		Trips:   []tracking.Trip{newTrip("old", "d", "x", t0)},
		Tasks:   []tracking.Task{func() tracking.Task { t := newTask("old", t0); t.Key = "k"; return t }()},
	})
	trip, task := c.trip("old"), c.task("old")
	trip.Status, trip.EndedAt = tracking.TripStopped, at(time.Minute)
	task.Key = ""
	keyed := newTask("new", t0)
	keyed.Key = "k"
	c.commit(tracking.Changeset{
		Trips: []tracking.Trip{newTrip("new", "d", "x", at(time.Minute)), trip},
		Tasks: []tracking.Task{keyed, task},
	})
	got, err := s.ActiveTrip(c.ctx, here, "x")
	c.ok(err)
	same(t, "the active trip", got.ID, "new")
	byKey, err := s.TaskByKey(c.ctx, here, "k")
	c.ok(err)
	same(t, "the task of the key", byKey.ID, "new")
}

func inviteOfVersion0Replaces(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{
		Drivers: []tracking.Driver{newDriver("d", t0)}, Invites: []tracking.Invite{newInvite("d", 1, 2)},
	})
	joined := c.invite("d")
	joined.JoinedAt, joined.Generation = at(time.Minute), 1
	c.commit(tracking.Changeset{Invites: []tracking.Invite{joined}})
	again := newInvite("d", 3, 4)
	again.CreatedAt = at(time.Hour)
	c.commit(tracking.Changeset{Invites: []tracking.Invite{again}})
	again.Version = 3 // goes on from the one replaced
	same(t, "invite", c.invite("d"), again)
	for _, h := range []tracking.Hash{hash(1), hash(2)} {
		_, _, err := s.InviteByHash(c.ctx, h)
		missing(t, "InviteByHash of the replaced one", err)
	}
}

func rowsOfADriverNeedTheDriver(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	use(t, s, there).commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0)}})
	nobody := tracking.ConflictError{Kind: tracking.KindDriver, ID: "d"}
	cs := everyRow(1)
	c.refused(tracking.Changeset{Invites: cs.Invites}, nobody)
	c.refused(tracking.Changeset{Requests: cs.Requests}, nobody)
	c.refused(tracking.Changeset{Fixes: []tracking.FixBatch{{DriverID: "d", SeenAt: t0}}}, nobody)
	c.commit(tracking.Changeset{
		Drivers: cs.Drivers, Invites: cs.Invites, Requests: cs.Requests,
		Fixes: []tracking.FixBatch{{DriverID: "d", SeenAt: t0}},
	})
	gone := c.driver("d")
	c.refused(tracking.Changeset{DeleteDrivers: []tracking.Driver{gone}, Invites: cs.Invites}, nobody)
	c.refused(tracking.Changeset{DeleteDrivers: []tracking.Driver{gone}, Requests: cs.Requests}, nobody)
}

func driverPositionIsIgnored(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	d := newDriver("d", t0)
	d.Position, d.Distance = filled[tracking.Position](1), 5
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
	got := c.driver("d")
	same(t, "position", got.Position, tracking.Position{})
	same(t, "distance", got.Distance, 0)
	rec := c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{newFix(t0, 11, 48)}})
	d.Version, d.Name = 1, "renamed"
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
	same(t, "position after a change of the row", c.driver("d").Position, rec.Driver.Position)
}

func requestsReplaceAndClose(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	a, b := newRequest("d", "x", t0), newRequest("d", "y", t0)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0)}, Requests: []tracking.Request{a, b}})
	again := fullRequest(a.RequestID, 3)
	c.commit(tracking.Changeset{Requests: []tracking.Request{again}})
	same(t, "requests", c.requests("d"), []tracking.Request{b, again})
	c.commit(tracking.Changeset{CloseRequests: []tracking.RequestID{
		a.RequestID, {DriverID: "d", TrackingID: "none"}, {DriverID: "nobody", TrackingID: "x"},
	}})
	same(t, "requests after one was closed", c.requests("d"), []tracking.Request{b})
	_, err := s.Request(c.ctx, here, a.RequestID)
	missing(t, "Request of the closed one", err)
	c.commit(tracking.Changeset{
		Requests: []tracking.Request{again}, CloseRequests: []tracking.RequestID{again.RequestID},
	})
	same(t, "requests after one was made and closed at once", c.requests("d"), []tracking.Request{b})

	// Those of all drivers for a trip, of this application.
	of := func(driver tracking.DriverID, id tracking.TrackingID) tracking.Request {
		return newRequest(driver, id, t0)
	}
	c.commit(tracking.Changeset{
		Drivers:  []tracking.Driver{newDriver("e", t0), newDriver("f", t0)},
		Requests: []tracking.Request{of("d", "x"), of("e", "x"), of("e", "y"), of("f", "x")},
	})
	elsewhere := use(t, s, there)
	elsewhere.commit(tracking.Changeset{
		Drivers: []tracking.Driver{newDriver("d", t0)}, Requests: []tracking.Request{of("d", "x")},
	})
	c.commit(tracking.Changeset{CloseRequests: []tracking.RequestID{{TrackingID: "x"}, {TrackingID: "none"}}})
	same(t, "requests of d after those for x were closed", c.requests("d"), []tracking.Request{b})
	same(t, "requests of e", c.requests("e"), []tracking.Request{of("e", "y")})
	same(t, "requests of f", c.requests("f"), []tracking.Request(nil))
	same(t, "requests elsewhere", elsewhere.requests("d"), []tracking.Request{of("d", "x")})
	c.commit(tracking.Changeset{
		Requests: []tracking.Request{of("f", "x")}, CloseRequests: []tracking.RequestID{{TrackingID: "x"}},
	})
	same(t, "requests after one was made, and all closed at once", c.requests("f"), []tracking.Request(nil))
}

// everyRow has one row of each kind, with every field set to values that depend on n.
func everyRow(n int) tracking.Changeset {
	return tracking.Changeset{
		Tasks:    []tracking.Task{fullTask("t", n)},
		Trips:    []tracking.Trip{fullTrip("r", n)},
		Drivers:  []tracking.Driver{fullDriver("d", n)},
		Invites:  []tracking.Invite{fullInvite("d", n)},
		Keys:     []tracking.Key{fullKey("k", n)},
		Requests: []tracking.Request{fullRequest(tracking.RequestID{DriverID: "d", TrackingID: "q"}, n)},
	}
}

// setVersions names a version for each row of everyRow.
func setVersions(cs *tracking.Changeset, v int64) {
	cs.Tasks[0].Version, cs.Trips[0].Version, cs.Drivers[0].Version = v, v, v
	cs.Invites[0].Version, cs.Keys[0].Version = v, v
}

// checkEveryRow expects the rows of everyRow(n) at that version, with the CreatedAt of everyRow(1).
func checkEveryRow(c *client, n int, version int64) {
	c.Helper()
	want, first := everyRow(n), everyRow(1)
	task, trip, driver := c.task("t"), c.trip("r"), c.driver("d")
	want.Tasks[0].Version, want.Tasks[0].Seq, want.Tasks[0].CreatedAt = version, task.Seq, first.Tasks[0].CreatedAt
	want.Trips[0].Version, want.Trips[0].Seq, want.Trips[0].CreatedAt = version, trip.Seq, first.Trips[0].CreatedAt
	want.Drivers[0].Version, want.Drivers[0].Seq, want.Drivers[0].CreatedAt = version, driver.Seq,
		first.Drivers[0].CreatedAt
	want.Invites[0].Version, want.Invites[0].CreatedAt = version, first.Invites[0].CreatedAt
	want.Keys[0].Version, want.Keys[0].CreatedAt = version, first.Keys[0].CreatedAt
	same(c, "task", task, want.Tasks[0])
	same(c, "trip", trip, want.Trips[0])
	same(c, "driver", driver, want.Drivers[0])
	same(c, "invite", c.invite("d"), want.Invites[0])
	same(c, "keys", c.keys(), want.Keys)
	request, err := c.s.Request(c.ctx, c.app, want.Requests[0].RequestID)
	c.ok(err)
	same(c, "request", request, want.Requests[0])
}

func commitReturnsWhatItGave(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	commit := func(cs tracking.Changeset) {
		t.Helper()
		got, err := s.Commit(c.ctx, here, &cs)
		c.ok(err)
		var want tracking.Written
		for _, v := range cs.Tasks {
			kept := c.task(v.ID)
			want.Tasks = append(want.Tasks, tracking.Given{Seq: kept.Seq, Version: kept.Version})
		}
		for _, v := range cs.Trips {
			kept := c.trip(v.ID)
			want.Trips = append(want.Trips, tracking.Given{Seq: kept.Seq, Version: kept.Version})
		}
		for _, v := range cs.Drivers {
			kept := c.driver(v.ID)
			want.Drivers = append(want.Drivers, tracking.Given{Seq: kept.Seq, Version: kept.Version})
		}
		same(t, "what Commit returns", got, want, cmpopts.EquateEmpty())
	}
	first := tracking.Changeset{
		Tasks: []tracking.Task{newTask("b", t0), newTask("a", t0)},
		Trips: []tracking.Trip{newTrip("r", "d", "x", t0)}, Drivers: []tracking.Driver{newDriver("d", t0)},
	}
	commit(first)
	commit(tracking.Changeset{Events: []tracking.Event{newEvent("e", tracking.KindTask, "a", t0)}})
	// What is new comes before what was there, and is written after it.
	commit(tracking.Changeset{
		Tasks:   []tracking.Task{newTask("c", t0), c.task("a"), c.task("b")},
		Trips:   []tracking.Trip{newTrip("s", "d", "y", t0), c.trip("r")},
		Drivers: []tracking.Driver{newDriver("e", t0), c.driver("d")},
	})
	commit(tracking.Changeset{
		DeleteDrivers: []tracking.Driver{c.driver("e")}, Drivers: []tracking.Driver{c.driver("d")},
		Tasks: []tracking.Task{newTask("f", t0)},
	})
	commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("e", t0)}})
	got, err := s.Commit(c.ctx, here, &first)
	if err == nil {
		t.Error("what is there was written again")
	}
	same(t, "what a refused Commit returns", got, tracking.Written{})
}
