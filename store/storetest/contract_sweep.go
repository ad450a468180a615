package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// sweepChecks are about Due and Purge, which look over all applications.
func sweepChecks() []check {
	return []check{
		{"Due/trips: the active ones whose TTL has come, longest due first", dueTripsListLongestDueFirst},
		{"Due/geocodes: tasks and trips whose GeocodeAt is set and has come", dueGeocodesListTasksAndTrips},
		{"Due/tasks: those whose DueAt is set and has come", dueTasksListsByDueAt},
		{"Due/silence: the available, not silent, long not heard of", dueSilenceListsTheUnheard},
		{"Stats/counts tasks, drivers, and what outboxes hold, of all applications", statsCountAll},
		{"Purge/removes old fixes, finished events and notices, and nothing else", purgeRemovesOldAndFinished},
		{"Purge/removes at most Limit rows, and all of them in the end", purgeKeepsToItsLimit},
		{"Purge/counts the requests and invites that it removes, and keeps those that live",
			purgeCountsRequestsAndInvites},
		{"Purge/takes the last position with the fixes", lastPositionGoesWithTheFixes},
		{"Purge/never changes which of the remaining fixes are good", purgeNeverChangesGoodFixes},
	}
}

// dueTripsListLongestDueFirst asks of all applications, of one, and of one driver, also for what
// lies too far ahead.
func dueTripsListLongestDueFirst(t testing.TB, s tracking.Store) {
	c, o := use(t, s, here), use(t, s, there)
	make := func(c *client, ttl int, status tracking.TripStatus) {
		id := fmt.Sprint(ttl)
		tr := newTrip(tracking.TripID(id), "d", tracking.TrackingID(id), t0)
		tr.TTL, tr.Status = minute(ttl), status
		c.commit(tracking.Changeset{Trips: []tracking.Trip{tr}})
	}
	make(c, 5, tracking.TripActive)
	make(c, 3, tracking.TripActive)
	make(o, 4, tracking.TripActive)
	make(c, 1, tracking.TripStopped)
	make(c, 2, tracking.TripDiscarded)
	make(c, 7, tracking.TripActive)
	q := tracking.DueQuery{Kind: tracking.DueTrips, Before: minute(5)}
	same(t, "due", c.due(q), []tracking.Due{dueTrip(here, "3"), dueTrip(there, "4"), dueTrip(here, "5")})
	q.Limit = 2
	same(t, "due, at most 2", c.due(q), []tracking.Due{dueTrip(here, "3"), dueTrip(there, "4")})
	q.App, q.Limit = here, 0
	same(t, "due of one application", c.due(q), []tracking.Due{dueTrip(here, "3"), dueTrip(here, "5")})
	other := newTrip("other", "other", "other", t0)
	other.TTL, other.Status = minute(4), tracking.TripActive
	c.commit(tracking.Changeset{Trips: []tracking.Trip{other}})
	q.Driver = "other"
	same(t, "due of one driver", c.due(q), []tracking.Due{dueTrip(here, "other")})
	q.Before = minute(3)
	same(t, "due of one driver, a minute before", c.due(q), nil)
	q.Before, q.Driver = minute(5), "d"
	same(t, "due of the other driver", c.due(q), []tracking.Due{dueTrip(here, "3"), dueTrip(here, "5")})
	q.Driver = "nobody"
	same(t, "due of nobody", c.due(q), nil)
	q.Driver, q.Beyond = "d", minute(6)
	same(t, "due of a driver, and further ahead than it can be", c.due(q), []tracking.Due{
		dueTrip(here, "3"), dueTrip(here, "5"), dueTrip(here, "7"),
	})
	q.Driver = ""
	same(t, "due, and further ahead than it can be", c.due(q), []tracking.Due{
		dueTrip(here, "3"), dueTrip(here, "other"), dueTrip(here, "5"), dueTrip(here, "7"),
	})
	q.Beyond = minute(7)
	same(t, "due, and as far ahead as it can be", c.due(q), []tracking.Due{
		dueTrip(here, "3"), dueTrip(here, "other"), dueTrip(here, "5"),
	})
	other = c.trip("other")
	other.Status, other.EndedAt = tracking.TripStopped, minute(4)
	c.commit(tracking.Changeset{Trips: []tracking.Trip{other}})
	q.Beyond = time.Time{}
	q.Before = minute(3).Add(-time.Millisecond)
	same(t, "due a millisecond before", c.due(q), nil)

	moved := c.trip("3")
	moved.TTL = minute(6)
	c.commit(tracking.Changeset{Trips: []tracking.Trip{moved}})
	ended := c.trip("5")
	ended.Status, ended.EndedAt = tracking.TripStopped, minute(5)
	c.commit(tracking.Changeset{Trips: []tracking.Trip{ended}})
	q.Before = minute(5)
	same(t, "due after one was moved and one ended", c.due(q), nil)
	q.Before = minute(6)
	same(t, "due a minute later", c.due(q), []tracking.Due{dueTrip(here, "3")})
}

// dueGeocodesListTasksAndTrips asks of all applications and of one, also for what lies too far
// ahead.
func dueGeocodesListTasksAndTrips(t testing.TB, s tracking.Store) {
	c, o := use(t, s, here), use(t, s, there)
	tr := newTrip("x", "d", "x", t0)
	tr.GeocodeAt, tr.Status = minute(2), tracking.TripStopped
	a, b, none := newTask("x", t0), newTask("b", t0), newTask("none", t0)
	a.GeocodeAt, b.GeocodeAt = minute(1), minute(4)
	c.commit(tracking.Changeset{
		Tasks: []tracking.Task{b, a, none}, Trips: []tracking.Trip{tr, newTrip("none", "d", "y", t0)},
	})
	f := newTask("f", t0)
	f.GeocodeAt = minute(3)
	o.commit(tracking.Changeset{Tasks: []tracking.Task{f}})
	q := tracking.DueQuery{Kind: tracking.DueGeocodes, Before: minute(4)}
	same(t, "due", c.due(q), []tracking.Due{
		dueTask(here, "x"), dueTrip(here, "x"), dueTask(there, "f"), dueTask(here, "b"),
	})
	q.Limit = 2
	same(t, "due, at most 2", c.due(q), []tracking.Due{dueTask(here, "x"), dueTrip(here, "x")})
	q.App, q.Limit, q.Before = here, 0, minute(3)
	same(t, "due of one application", c.due(q), []tracking.Due{dueTask(here, "x"), dueTrip(here, "x")})
	q.Before, q.Beyond = minute(1), minute(2)
	same(t, "due, and further ahead than it can be", c.due(q), []tracking.Due{dueTask(here, "x"), dueTask(here, "b")})
	q.Before, q.Beyond = minute(3), time.Time{}
	found := c.task("x")
	found.GeocodeAt = time.Time{}
	c.commit(tracking.Changeset{Tasks: []tracking.Task{found}})
	same(t, "due after one was cleared", c.due(q), []tracking.Due{dueTrip(here, "x")})
}

// dueTasksListsByDueAt has tasks of two applications at different times, and one at none.
func dueTasksListsByDueAt(t testing.TB, s tracking.Store) {
	c, o := use(t, s, here), use(t, s, there)
	minute := func(n int) time.Time { return at(time.Duration(n) * time.Minute) }
	a, b, none, f := newTask("a", t0), newTask("b", t0), newTask("none", t0), newTask("f", t0)
	a.DueAt, b.DueAt, f.DueAt = minute(1), minute(4), minute(3)
	c.commit(tracking.Changeset{Tasks: []tracking.Task{b, a, none}})
	o.commit(tracking.Changeset{Tasks: []tracking.Task{f}})
	q := tracking.DueQuery{Kind: tracking.DueTasks, Before: minute(4)}
	same(t, "due", c.due(q), []tracking.Due{dueTask(here, "a"), dueTask(there, "f"), dueTask(here, "b")})
	q.Limit = 1
	same(t, "due, at most 1", c.due(q), []tracking.Due{dueTask(here, "a")})
	q.App, q.Limit, q.Before, q.Beyond = here, 0, minute(1), minute(2)
	same(t, "due, and further ahead than it can be", c.due(q), []tracking.Due{dueTask(here, "a"), dueTask(here, "b")})
	q.Before, q.Beyond = minute(4), time.Time{}
	moved, done := c.task("a"), c.task("b")
	moved.DueAt, done.DueAt = minute(2), time.Time{}
	c.commit(tracking.Changeset{Tasks: []tracking.Task{moved, done}})
	same(t, "due after one moved and one was done", c.due(q), []tracking.Due{dueTask(here, "a")})
	q.Before = minute(1)
	same(t, "due before it moved to", c.due(q), nil)
}

// dueSilenceListsTheUnheard has drivers whose duty began, and who were heard of, at different
// times.
func dueSilenceListsTheUnheard(t testing.TB, s tracking.Store) {
	c, o := use(t, s, here), use(t, s, there)
	driver := func(a tracking.AppID, id string) tracking.Due {
		return tracking.Due{App: a, Subject: tracking.Subject{Kind: tracking.KindDriver, ID: id}}
	}
	make := func(c *client, id tracking.DriverID, duty, seen int, change func(*tracking.Driver)) {
		d := newDriver(id, t0)
		d.DutyAt = minute(duty)
		if change != nil {
			change(&d)
		}
		c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
		if seen > 0 {
			c.record(tracking.FixBatch{DriverID: id, SeenAt: minute(seen)})
		}
	}
	make(c, "seen 3", 1, 3, nil)
	make(c, "seen 2", 2, 2, nil)
	make(c, "never seen", 1, 0, nil)
	make(c, "duty 9", 9, 1, nil)
	make(c, "seen 10", 1, 10, nil)
	make(c, "off", 1, 1, func(d *tracking.Driver) { d.Available = false })
	make(c, "silent", 1, 1, func(d *tracking.Driver) { d.Silent = true })
	make(o, "seen 4", 1, 4, nil)
	q := tracking.DueQuery{Kind: tracking.DueSilence, Before: minute(4)}
	same(t, "due", c.silent(q, 4), []tracking.Due{
		driver(here, "never seen"), driver(here, "seen 2"), driver(here, "seen 3"), driver(there, "seen 4"),
	})
	q.Limit = 1
	same(t, "due, at most 1", c.due(q), []tracking.Due{driver(here, "never seen")})
	q.App, q.Limit, q.Before = here, 0, minute(2)
	same(t, "due of one application", c.silent(q, 2), []tracking.Due{driver(here, "never seen"), driver(here, "seen 2")})
	q.Beyond = minute(10)
	same(t, "due, and as far ahead as it can be", c.silent(q, 2), []tracking.Due{
		driver(here, "never seen"), driver(here, "seen 2"),
	})
	q.Beyond = minute(8)
	same(t, "due, and further ahead than it can be", c.silent(q, 4), []tracking.Due{
		driver(here, "never seen"), driver(here, "seen 2"), driver(here, "duty 9"), driver(here, "seen 10"),
	})
	q.Beyond = time.Time{}
	// an old fix is a sign of life all the same
	c.record(tracking.FixBatch{DriverID: "seen 2", SeenAt: minute(5), Fixes: []tracking.Fix{newFix(t0, 11, 48)}})
	d := c.driver("never seen")
	d.Silent = true
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
	same(t, "due after a sign of life and after it was noted", c.silent(q, 0), nil)
}

// silent are the first n of the drivers who are due. There may be others after them, who are
// available and not silent.
func (c *client) silent(q tracking.DueQuery, n int) []tracking.Due {
	c.Helper()
	list := c.due(q)
	for _, more := range list[min(n, len(list)):] {
		d, err := c.s.Driver(c.ctx, more.App, tracking.DriverID(more.Subject.ID))
		if c.ok(err); !d.Available || d.Silent || q.App != "" && more.App != q.App {
			c.Errorf("Due lists %+v, who is off duty, silent or elsewhere", more)
		}
	}
	return append([]tracking.Due(nil), list[:min(n, len(list))]...)
}

// purgeRemovesOldAndFinished compares all rows before and after.
func purgeRemovesOldAndFinished(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{
		Tasks: []tracking.Task{newTask("a", t0)}, Drivers: []tracking.Driver{newDriver("d", t0)},
		Trips: []tracking.Trip{newTrip("r", "d", "x", t0)}, Keys: []tracking.Key{newKey("k", 1, t0)},
		Invites: []tracking.Invite{newInvite("d", 2, 3)}, Requests: []tracking.Request{
			newRequest("d", "y", minute(60)),
		},
	})
	for i := range 6 {
		c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{walk(float64(60 * i))}})
		c.commit(tracking.Changeset{
			Events: []tracking.Event{newEvent(fmt.Sprint("done", i), tracking.KindTask, "a", minute(i), "d")},
		})
		c.commit(tracking.Changeset{
			Events:  []tracking.Event{newEvent(fmt.Sprint("open", i), tracking.KindTask, "b", minute(i))},
			Deliver: []string{""},
		})
	}
	before := snap(t, s, here)
	same(t, "purged with no times", c.purge(tracking.Before{Limit: 100}), tracking.Purged{})
	same(t, "rows", snap(t, s, here), before)
	got := c.purge(tracking.Before{Fixes: minute(2), Limit: 100})
	same(t, "purged fixes", got, tracking.Purged{Fixes: 2})
	got = c.purge(tracking.Before{Events: minute(3), Limit: 100})
	same(t, "purged events and notices", got, tracking.Purged{Events: 3, Notices: 3})
	want := before
	want.Fixes["d"] = want.Fixes["d"][2:]
	want.Notices["d"] = want.Notices["d"][3:]
	want.Events = slices.DeleteFunc(want.Events, func(e tracking.Event) bool {
		return e.Subject.ID == "a" && e.RecordedAt.Before(minute(3))
	})
	same(t, "rows", snap(t, s, here), want)
	same(t, "purged the second time", c.purge(tracking.Before{Fixes: minute(2), Events: minute(3), Limit: 100}),
		tracking.Purged{})

	c.lease("w", t0, 1)
	c.finish(done("w", "open0", tracking.DeliveryDead))
	same(t, "purged when one was given up", c.purge(tracking.Before{Events: minute(3), Limit: 100}),
		tracking.Purged{Events: 1})
}

// purgeKeepsToItsLimit purges four rows at a time, until nothing is left.
func purgeKeepsToItsLimit(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0), newDriver("e", t0)}})
	for i := range 7 {
		c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{walk(float64(i))}})
		c.record(tracking.FixBatch{DriverID: "e", SeenAt: t0, Fixes: []tracking.Fix{walk(float64(i))}})
		c.commit(tracking.Changeset{Events: []tracking.Event{newEvent(fmt.Sprint(i), tracking.KindTask, "a", t0, "d")}})
	}
	var sum tracking.Purged
	for range 100 {
		p := c.purge(tracking.Before{Fixes: at(time.Hour), Events: at(time.Hour), Limit: 4})
		if p.Total() > 4 {
			t.Fatalf("Purge removed %d rows, of at most 4", p.Total())
		}
		if p.Total() == 0 {
			break
		}
		sum.Fixes, sum.Events, sum.Notices = sum.Fixes+p.Fixes, sum.Events+p.Events, sum.Notices+p.Notices
	}
	same(t, "purged in all", sum, tracking.Purged{Fixes: 14, Events: 7, Notices: 7})
	events, _ := c.events(tracking.EventFilter{})
	same(t, "events", events, nil)
	notices, _ := c.notices("d", 0)
	same(t, "notices", notices, nil)
}

func purgeCountsRequestsAndInvites(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	const year = 365 * 24 * time.Hour
	old, live := newInvite("old", 1, 2), newInvite("d", 3, 4)
	old.CreatedAt, old.LinkExpiresAt, old.CodeExpiresAt = at(-3*year), at(-3*year+time.Hour), at(-3*year+time.Hour)
	c.commit(tracking.Changeset{
		Drivers:  []tracking.Driver{newDriver("old", t0), newDriver("d", t0)},
		Invites:  []tracking.Invite{old, live},
		Requests: []tracking.Request{newRequest("old", "x", at(-3*year)), newRequest("d", "x", t0)},
	})
	before := snap(t, s, here)
	p := c.purge(tracking.Before{Events: at(-year), Limit: 100})
	after := snap(t, s, here)
	same(t, "purged", p, tracking.Purged{
		Requests: len(before.Requests) - len(after.Requests), Invites: len(before.Invites) - len(after.Invites),
	})
	same(t, "invite that lives", c.invite("d"), before.Invites[0])
	same(t, "requests that live", c.requests("d"), []tracking.Request{newRequest("d", "x", t0)})
	same(t, "invites and requests removed", p, tracking.Purged{Requests: 1, Invites: 1})
}

func lastPositionGoesWithTheFixes(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0), newDriver("e", t0)}})
	coarse := func(sec float64) tracking.Fix {
		f := walk(sec)
		f.Accuracy = tracking.Known(2500)
		return f
	}
	send := func(d tracking.DriverID, fixes ...tracking.Fix) tracking.Recorded {
		return c.record(tracking.FixBatch{DriverID: d, SeenAt: at(time.Hour), Fixes: fixes,
			MaxAccuracy: 250, MaxFixAge: time.Minute, Skew: tracking.Known(40)})
	}
	purge := func(sec, limit, want int) {
		t.Helper()
		got := c.purge(tracking.Before{Fixes: at(time.Duration(sec) * time.Second), Limit: limit})
		same(t, fmt.Sprintf("purged before %d s", sec), got, tracking.Purged{Fixes: want})
	}
	position := func(what string, d tracking.DriverID, want tracking.Fix) {
		t.Helper()
		p := c.driver(d).Position
		same(t, "position of "+string(d)+", "+what, p.Fix, want)
		same(t, "what is known of the phone, "+what, []any{p.SeenAt, p.Skew.Least}, []any{
			at(time.Hour), tracking.Known(40),
		})
		near := 0
		list, _ := c.drivers(tracking.DriverFilter{Near: &tracking.LngLat{Lng: 11, Lat: 48}})
		for _, n := range list {
			if n.ID == d {
				near++
			}
		}
		if found := near == 1; found == want.Time.IsZero() {
			t.Errorf("%s, %s: found by position: %v", d, what, found)
		}
	}
	send("d", walk(1), walk(2), walk(3), far(4, 20))
	send("e", walk(1), walk(2), coarse(20))
	purge(3, 100, 4)
	position("with its fix left", "d", walk(3))
	position("of which only a coarse one is left", "e", coarse(20))
	purge(10, 1, 1)
	position("with its fix gone, and a jump after it for a while", "d", tracking.Fix{})
	purge(10, 1, 1)
	position("of which nothing is left", "d", tracking.Fix{})
	same(t, "all that is known of d's fixes", c.driver("d").Position.Tail, "")
	kept, err := s.KeptFixes(c.ctx, here, "d", tracking.FixRange{Limit: 100})
	c.ok(err)
	same(t, "kept fixes of d", len(kept), 0)
	purge(30, 100, 1)
	position("of which nothing is left", "e", tracking.Fix{})
	purge(30, 100, 0)

	r := send("d", far(40, 12))
	same(t, "outcomes after all is gone", r.Outcomes, words{live})
	position("new", "d", far(40, 12))

	// A late fix does not bring back what was purged.
	send("e", walk(50), far(51, 20))
	purge(51, 100, 2)
	position("with a jump left", "e", tracking.Fix{})
	r = send("e", far(50.5, 30))
	if p := r.Driver.Position; p.Located() && !p.Fix.Time.After(at(50*time.Second)) {
		t.Errorf("after a late fix the position is at %v, which was purged", p.Fix.Time)
	}
}

func purgeNeverChangesGoodFixes(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0)}})
	c.record(tracking.FixBatch{
		DriverID: "d", SeenAt: t0,
		Fixes: []tracking.Fix{walk(1), walk(2), far(3, 20), walk(4), walk(5), far(6, 20), far(7, 20.0001), walk(8)},
	})
	before := c.driver("d").Position
	for cut := 2; cut <= 7; cut++ {
		// A store may keep more than it must: an older fix that a later one was judged by.
		from := at(time.Duration(cut) * time.Second)
		want := c.fixes("d", tracking.FixRange{From: from})
		c.purge(tracking.Before{Fixes: from, Limit: 100})
		same(t, fmt.Sprintf("fixes purged before %d s", cut), c.fixes("d", tracking.FixRange{From: from}), want)
		same(t, "position", c.driver("d").Position, before)
	}
	// walk(8) is a candidate still, and what comes next confirms it: far(6) and far(7) were an
	// island.
	r := c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{walk(9)}})
	same(t, "outcomes", r.Outcomes, []tracking.FixOutcome{tracking.FixLive})
	same(t, "fixes", c.fixes("d", tracking.FixRange{From: at(7 * time.Second)}), []tracking.Fix{walk(8), walk(9)})
}

func dueTrip(a tracking.AppID, id string) tracking.Due {
	return tracking.Due{App: a, Subject: tracking.Subject{Kind: tracking.KindTrip, ID: id}}
}

func dueTask(a tracking.AppID, id string) tracking.Due {
	return tracking.Due{App: a, Subject: tracking.Subject{Kind: tracking.KindTask, ID: id}}
}

func minute(n int) time.Time { return at(time.Duration(n) * time.Minute) }

func statsCountAll(t testing.TB, s tracking.Store) {
	c, o := use(t, s, here), use(t, s, there)
	expect := func(now time.Time, want tracking.Stats) {
		t.Helper()
		n, err := s.Stats(c.ctx, now)
		c.ok(err)
		same(t, "stats", n, want)
	}
	expect(t0, tracking.Stats{})

	tasks := []tracking.Task{newTask("a", minute(1)), newTask("b", minute(2)), newTask("c", minute(3)), newTask("d", t0)}
	tasks[0].Waiting, tasks[0].WaitsSince = true, minute(9)
	tasks[1].Waiting = true
	tasks[2].Status, tasks[2].DriverID, tasks[2].Window.To = tracking.StatusAssigned, "on", minute(5)
	tasks[3].AssignAt = minute(99) // it waits for that, and not for a driver
	over := newTask("done", t0)
	over.Status, over.CompletedAt, over.Outcome = tracking.StatusCompleted, minute(1), tracking.OutcomeSucceeded
	c.commit(tracking.Changeset{Tasks: tasks})
	drivers := []tracking.Driver{newDriver("on", t0), newDriver("silent", t0), newDriver("off", t0)}
	drivers[0].Available = true
	drivers[1].Available, drivers[1].Silent = true, true
	drivers[2].Available, drivers[2].Silent = false, true
	under := newTask("a", minute(4))
	under.Status, under.DriverID = tracking.StatusInProgress, "on"
	o.commit(tracking.Changeset{Tasks: []tracking.Task{under, over}, Drivers: drivers})
	want := tracking.Stats{
		Created: 3, Assigned: 1, InProgress: 1, Waiting: 2, OldestWaiting: minute(2), OnDuty: 2, Silent: 1,
	}
	expect(minute(5).Add(-time.Millisecond), want)
	want.Late = 1
	expect(minute(6), want)

	first, next := newEvent("first", tracking.KindTask, "a", minute(7)), newEvent("next", tracking.KindTask, "a", minute(8))
	c.commit(tracking.Changeset{Events: []tracking.Event{first}, Deliver: []string{hook, push}})
	c.commit(tracking.Changeset{Events: []tracking.Event{next}, Deliver: []string{push}})
	o.commit(tracking.Changeset{
		Events: []tracking.Event{newEvent("other", tracking.KindTask, "a", minute(9))}, Deliver: []string{push},
	})
	want.Outboxes = []tracking.OutboxStats{
		{Name: hook, Undelivered: 1, Oldest: minute(7)}, {Name: push, Undelivered: 3, Oldest: minute(7)},
	}
	expect(minute(6), want)
	for _, name := range []string{hook, push} { // what is leased is undelivered still
		if _, err := s.LeaseEvents(c.ctx, tracking.Lease{
			Outbox: name, Owner: "w", Now: minute(10), For: time.Hour, Limit: 10,
		}); err != nil {
			t.Fatal(err)
		}
	}
	expect(minute(6), want)
	c.finish(from(hook, done("w", "first", tracking.DeliveryDead)), from(push, done("w", "first", tracking.DeliveryDone)))
	want.Outboxes = []tracking.OutboxStats{
		{Name: hook, Dead: 1}, {Name: push, Undelivered: 2, Oldest: minute(8)},
	}
	expect(minute(6), want)
	c.finish(from(hook, done("w", "first", tracking.DeliveryReleased)), from(push, done("w", "next", tracking.DeliveryDone)))
	elsewhere := from(push, done("w", "other", tracking.DeliveryDone))
	elsewhere.App = there
	c.finish(elsewhere)
	want.Outboxes = []tracking.OutboxStats{{Name: hook, Undelivered: 1, Oldest: minute(7)}}
	expect(minute(6), want)

	// The oldest is of whichever application, however late its event came here, and also while
	// another try waits.
	o.commit(tracking.Changeset{
		Events:  []tracking.Event{newEvent("early", tracking.KindTask, "a", minute(3))},
		Deliver: []string{hook, "zap"},
	})
	o.commit(tracking.Changeset{
		Events: []tracking.Event{newEvent("after", tracking.KindTask, "b", minute(4))}, Deliver: []string{hook},
	})
	want.Outboxes = []tracking.OutboxStats{
		{Name: hook, Undelivered: 3, Oldest: minute(3)}, {Name: "zap", Undelivered: 1, Oldest: minute(3)},
	}
	expect(minute(6), want)
	leased, err := s.LeaseEvents(c.ctx, tracking.Lease{
		Outbox: hook, Owner: "w", Now: minute(10), For: time.Hour, Limit: 10,
	})
	c.ok(err)
	for _, l := range leased {
		d := from(hook, done("w", l.Event.ID, tracking.DeliveryRetry))
		d.App, d.Now, d.RetryIn = l.App, minute(10), time.Minute
		c.finish(d)
		expect(minute(6), want)
	}
	same(t, "leased", len(leased), 3)
}
