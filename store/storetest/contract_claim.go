package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// claimChecks are about what several processes sweep.
func claimChecks() []check {
	return []check{
		{"Due/what one owner was given no other is given before the claim is over", claimedIsNotHandedOutAgain},
		{"Due/who names no owner is given all, and claims nothing", sweepWithoutOwnerClaimsNothing},
		{"Due/a claim counts for its Kind, application and row", claimsAreOfOneKind},
		{"Due/a claim further ahead than it can be counts no more", farClaimsCountNoMore},
		{"Due/trips of a tracking id", dueTripsOfTrackingID},
		{"Matches/what one owner was given no other is given before the claim is over", claimedMatchIsNotListedAgain},
	}
}

// dueFor asks in an owner's name, and expects the ids of these rows. The claim lasts for a minute.
func (c *client) dueFor(owner string, now time.Time, q tracking.DueQuery, want ...string) {
	c.Helper()
	if q.Before.IsZero() {
		q.Before = at(time.Hour)
	}
	if owner != "" {
		q.Claim = tracking.Claim{Owner: owner, Now: now, For: time.Minute}
	}
	got := each(c.due(q), func(d tracking.Due) string { return d.Subject.ID })
	same(c, fmt.Sprintf("due for %q at %v", owner, now.Sub(t0)), got, want)
}

func dueTasks(c *client, ids ...tracking.TaskID) {
	c.Helper()
	var cs tracking.Changeset
	for i, id := range ids {
		task := newTask(id, t0)
		task.DueAt, task.GeocodeAt = at(time.Duration(i)*time.Second), at(time.Duration(i)*time.Second)
		cs.Tasks = append(cs.Tasks, task)
	}
	c.commit(cs)
}

func claimedIsNotHandedOutAgain(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	dueTasks(c, "a", "b", "c", "d", "e")
	q := tracking.DueQuery{Kind: tracking.DueTasks, Limit: 2}
	c.dueFor("one", t0, q, "a", "b")
	c.dueFor("two", t0, q, "c", "d")
	c.dueFor("one", at(30*time.Second), q, "a", "b") // again, with a new claim
	c.dueFor("three", at(30*time.Second), q, "e")
	c.dueFor("four", at(time.Minute-time.Millisecond), q)
	c.dueFor("four", at(time.Minute+time.Millisecond), q, "c", "d")
	c.dueFor("two", at(time.Minute+time.Millisecond), q)
	c.dueFor("two", at(90*time.Second+time.Millisecond), q, "a", "b")
	done := c.task("a")
	done.DueAt = time.Time{}
	c.commit(tracking.Changeset{Tasks: []tracking.Task{done}})
	c.dueFor("two", at(91*time.Second), q, "b", "e")
}

func sweepWithoutOwnerClaimsNothing(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	dueTasks(c, "a", "b")
	q := tracking.DueQuery{Kind: tracking.DueTasks}
	c.dueFor("", t0, q, "a", "b")
	c.dueFor("one", t0, q, "a", "b")
	c.dueFor("", t0, q, "a", "b")
	c.dueFor("two", t0, q)
}

func claimsAreOfOneKind(t testing.TB, s tracking.Store) {
	c, o := use(t, s, here), use(t, s, there)
	dueTasks(c, "a", "b")
	dueTasks(o, "a")
	q := tracking.DueQuery{Kind: tracking.DueTasks, App: here, Limit: 1}
	c.dueFor("one", t0, q, "a")
	q.Limit = 10
	c.dueFor("two", t0, q, "b")
	q.App = there
	c.dueFor("two", t0, q, "a")
	q.Kind, q.App = tracking.DueGeocodes, here
	c.dueFor("two", t0, q, "a", "b")

	trip, d := newTrip("a", "a", "x", t0), newDriver("a", t0)
	c.commit(tracking.Changeset{Trips: []tracking.Trip{trip}, Drivers: []tracking.Driver{d}})
	for _, kind := range []tracking.DueKind{tracking.DueTrips, tracking.DueSilence} {
		q := tracking.DueQuery{Kind: kind, Before: at(3 * time.Hour)}
		c.dueFor("one", t0, q, "a")
		c.dueFor("two", t0, q)
		c.dueFor("two", at(2*time.Minute), q, "a")
	}
}

func farClaimsCountNoMore(t testing.TB, s tracking.Store) {
	const years = 10 * 365 * 24 * time.Hour
	c := use(t, s, here)
	dueTasks(c, "a")
	q := tracking.DueQuery{Kind: tracking.DueTasks}
	c.dueFor("wrong", at(years), q, "a")
	c.dueFor("right", t0, q, "a")
	c.dueFor("other", t0, q)
}

func dueTripsOfTrackingID(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	for i, id := range []tracking.TripID{"a", "b", "c"} {
		trip := newTrip(id, "d", tracking.TrackingID("of "+id), t0)
		trip.TTL = at(time.Duration(i) * time.Minute)
		c.commit(tracking.Changeset{Trips: []tracking.Trip{trip}})
	}
	use(t, s, there).commit(tracking.Changeset{Trips: []tracking.Trip{newTrip("other", "d", "of b", t0)}})
	q := tracking.DueQuery{Kind: tracking.DueTrips, App: here, TrackingID: "of b", Before: at(time.Minute)}
	c.dueFor("", t0, q, "b")
	q.Driver = "d"
	c.dueFor("", t0, q, "b")
	q.Driver = "e"
	c.dueFor("", t0, q)
	q.Driver, q.Before = "", at(time.Minute-time.Millisecond)
	c.dueFor("", t0, q)
	q.Beyond = q.Before
	c.dueFor("", t0, q, "b")
	trip := c.trip("b")
	trip.Status, trip.EndedAt = tracking.TripStopped, at(time.Minute)
	c.commit(tracking.Changeset{Trips: []tracking.Trip{trip}})
	q.Beyond, q.Before = time.Time{}, at(time.Hour)
	c.dueFor("", t0, q)
}

func claimedMatchIsNotListedAgain(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	cs := tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0)}, Fixes: []tracking.FixBatch{{
		DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{newFix(t0, 11, 48)},
	}}}
	for i, id := range []tracking.TaskID{"a", "b", "c"} {
		task := newTask(id, at(time.Duration(i)*time.Second))
		task.Waiting, task.Drop.LngLat = true, &tracking.LngLat{Lng: 11, Lat: 48}
		cs.Tasks = append(cs.Tasks, task)
	}
	c.commit(cs)
	ask := func(owner string, now time.Time, limit int) map[tracking.TaskID]bool {
		t.Helper()
		q := tracking.MatchQuery{MaxOpen: 1, SeenSince: t0, Limit: limit}
		if owner != "" {
			q.Claim = tracking.Claim{Owner: owner, Now: now, For: time.Minute}
		}
		found := map[tracking.TaskID]bool{}
		for _, task := range c.matches(q) {
			found[task.ID] = true
		}
		return found
	}
	one := ask("one", t0, 2)
	if len(one) == 0 || len(one) > 2 {
		t.Fatalf("one was given %v", one)
	}
	for id := range ask("two", t0, 10) {
		if one[id] {
			t.Errorf("%s was given to both", id)
		}
	}
	if len(ask("", t0, 10)) == 0 {
		t.Error("who names no owner was given nothing")
	}
	if again := ask("one", at(time.Second), 10); len(again) == 0 {
		t.Error("the owner was given nothing the second time")
	}
	if later := ask("three", at(2*time.Minute), 10); len(later) == 0 {
		t.Error("another was given nothing when the claims were over")
	}

	// Claims are of one application.
	claim := tracking.Claim{Owner: "four", Now: t0, For: time.Minute}
	o := use(t, s, there)
	o.commit(cs)
	q := tracking.MatchQuery{MaxOpen: 1, SeenSince: t0, Claim: claim}
	if len(o.matches(q)) == 0 {
		t.Error("a claim in one application counts in another")
	}
}
