package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// personChecks are about ids that are used again, by another person.
func personChecks() []check {
	return []check{
		{"Commit/a row made again begins at a version that none of its id has had", remadeRowHasAFreshVersion},
		{"Commit/an invite made after one that was purged begins at a version that it has not had",
			inviteAfterPurgeHasAFreshVersion},
		{"Notices/ids go on when a driver's id is used again", noticeIDsGoOnForTheNextPerson},
		{"Fixes/those of another person are not in a range of one's", fixesOfAnotherPersonAreApart},
		{"RecordFixes/the trips of another person with the id keep no fix", tripsOfAnotherPersonKeepNoFix},
		{"Tasks/and trips of a person", listsAreOfAPerson},
		{"DeleteDrivers/what there is much of goes in steps, and is gone at once", deletionGoesInSteps},
		{"InviteByHash/a code is its invite's while it lives, and known afterwards", codeIsItsInvitesWhileItLives},
		{"Events/after an event of another subject", eventsAfterAnotherSubject},
	}
}

// remadeRowHasAFreshVersion makes a driver and an invite three times, and tries to write over each
// with all that was read of those before.
func remadeRowHasAFreshVersion(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	var had []tracking.Driver  // every state of those who are gone
	var hadV []tracking.Invite // and of their invites
	for round := range 3 {
		d := newDriver("d", at(time.Duration(round)*time.Hour))
		c.commit(tracking.Changeset{
			Drivers: []tracking.Driver{d}, Invites: []tracking.Invite{newInvite("d", byte(2*round+1), byte(2*round+2))},
		})
		for range 5 {
			d, v := c.driver("d"), c.invite("d")
			for _, gone := range had {
				if d.Version <= gone.Version {
					t.Fatalf("driver %d has version %d, one before him had %d", round, d.Version, gone.Version)
				}
				c.refused(tracking.Changeset{Drivers: []tracking.Driver{gone}}, tracking.ConflictError{
					Kind: tracking.KindDriver, ID: "d",
				})
				c.refused(tracking.Changeset{DeleteDrivers: []tracking.Driver{gone}}, tracking.ConflictError{
					Kind: tracking.KindDriver, ID: "d",
				})
			}
			for _, gone := range hadV {
				c.refused(tracking.Changeset{Invites: []tracking.Invite{gone}}, tracking.ConflictError{
					Kind: tracking.KindInvite, ID: "d",
				})
			}
			d.Name, v.Generation = fmt.Sprint("name ", d.Version), int(v.Version)
			c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}, Invites: []tracking.Invite{v}})
		}
		last, lastV := c.driver("d"), c.invite("d")
		c.commit(tracking.Changeset{DeleteDrivers: []tracking.Driver{last}})
		for n := range last.Version {
			gone, goneV := last, lastV
			gone.Version, goneV.Version = n+1, n+1
			had = append(had, gone)
			if n < lastV.Version {
				hadV = append(hadV, goneV)
			}
		}
	}
}

func inviteAfterPurgeHasAFreshVersion(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{
		Drivers: []tracking.Driver{newDriver("d", t0)}, Invites: []tracking.Invite{newInvite("d", 1, 2)},
	})
	for range 3 {
		c.commit(tracking.Changeset{Invites: []tracking.Invite{c.invite("d")}})
	}
	purged := c.invite("d")
	same(t, "purged", c.purge(tracking.Before{Events: at(1000 * time.Hour), Limit: 100}).Invites, 1)
	c.commit(tracking.Changeset{Invites: []tracking.Invite{newInvite("d", 3, 4)}})
	for range 5 {
		c.refused(tracking.Changeset{Invites: []tracking.Invite{purged}}, tracking.ConflictError{
			Kind: tracking.KindInvite, ID: "d",
		})
		c.commit(tracking.Changeset{Invites: []tracking.Invite{c.invite("d")}})
	}
}

// noticeIDsGoOnForTheNextPerson gives an id to three drivers after each other, and reads each one's
// feed from every place.
func noticeIDsGoOnForTheNextPerson(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	n := 0
	tell := func(times int) {
		for range times {
			n++
			c.commit(tracking.Changeset{Events: []tracking.Event{
				newEvent(fmt.Sprint("e", n), tracking.KindTask, "t", at(time.Duration(n)*time.Minute), "d"),
			}})
		}
	}
	var last int64
	for round := range 3 {
		c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0)}})
		tell(8)
		list, lost := c.notices("d", 0)
		if len(list) != 8 || lost || list[0].ID <= last {
			t.Fatalf("round %d: %d notices, lost %v, the first with the id %d after %d", round, len(list), lost,
				list[0].ID, last)
		}
		if list, lost := c.notices("d", last); len(list) != 8 || lost {
			t.Errorf("after the last of the driver before: %d notices, lost %v; want all 8", len(list), lost)
		}
		for i, notice := range list {
			rest, lost := c.notices("d", notice.ID)
			if len(rest) != 7-i || lost {
				t.Errorf("after notice %d: %d notices, lost %v", i, len(rest), lost)
			}
		}
		last = list[7].ID
		if round == 1 { // purged ones have been given, too
			c.purge(tracking.Before{Events: at(1000 * time.Hour), Limit: 1000})
		}
		c.commit(tracking.Changeset{DeleteDrivers: []tracking.Driver{c.driver("d")}})
		if list, lost := c.notices("d", 4); list != nil || !lost {
			t.Errorf("of a driver who is gone: %d notices, lost %v; want none, lost", len(list), lost)
		}
	}
}

func fixesOfAnotherPersonAreApart(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	d := newDriver("d", t0)
	d.Person = "first"
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
	c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{newFix(t0, 11, 48)}})
	same(t, "the first one's", len(c.fixes("d", tracking.FixRange{Person: "first"})), 1)
	same(t, "the second one's", len(c.fixes("d", tracking.FixRange{Person: "second"})), 0)
	c.commit(tracking.Changeset{DeleteDrivers: []tracking.Driver{c.driver("d")}})
	d.Person = "second"
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
	c.record(tracking.FixBatch{
		DriverID: "d", SeenAt: t0,
		Fixes: []tracking.Fix{newFix(at(time.Minute), 11, 48), newFix(at(2*time.Minute), 11, 48)},
	})
	for _, newest := range []bool{false, true} {
		same(t, "the first one's, later", len(c.fixes("d", tracking.FixRange{Person: "first", Newest: newest})), 0)
		same(t, "the second one's, later", len(c.fixes("d", tracking.FixRange{Person: "second", Newest: newest})), 2)
		same(t, "anybody's", len(c.fixes("d", tracking.FixRange{Newest: newest})), 2)
	}
}

func tripsOfAnotherPersonKeepNoFix(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	d := newDriver("d", t0)
	d.Person, d.Available = "second", false
	trip := newTrip("r", "d", "x", t0)
	trip.Person, trip.Status, trip.EndedAt = "first", tracking.TripStopped, at(time.Hour)
	active := newTrip("r2", "d", "y", t0)
	active.Person = "first"
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}, Trips: []tracking.Trip{trip, active}})
	fix := tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{newFix(at(time.Minute), 11, 48)}}
	same(t, "within the trips of the first", c.record(fix).Outcomes, []tracking.FixOutcome{tracking.FixOffDuty})
	own := newTrip("r3", "d", "z", t0)
	own.Person, own.Status, own.EndedAt = "second", tracking.TripStopped, at(time.Hour)
	c.commit(tracking.Changeset{Trips: []tracking.Trip{own}})
	same(t, "within a trip of his own", c.record(fix).Outcomes, []tracking.FixOutcome{tracking.FixLive})
}

// listsAreOfAPerson lists tasks and trips of two persons with one id, by each filter.
func listsAreOfAPerson(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	for i, person := range []string{"first", "second", "second"} {
		task, trip := newTask(tracking.TaskID(fmt.Sprint("t", i)), at(time.Duration(i)*time.Minute)),
			newTrip(tracking.TripID(fmt.Sprint("r", i)), "d", tracking.TrackingID(fmt.Sprint("x", i)),
				at(time.Duration(i)*time.Minute))
		task.DriverID, task.Person, task.Status, task.CompletedAt, task.OrderID = "d", person, tracking.StatusCompleted,
			at(time.Hour), "#1"
		trip.Person = person
		c.commit(tracking.Changeset{Tasks: []tracking.Task{task}, Trips: []tracking.Trip{trip}})
	}
	for name, f := range map[string]tracking.TaskFilter{
		"":                      {},
		" by status":            {Status: []tracking.TaskStatus{tracking.StatusCompleted, tracking.StatusAssigned}},
		" by order":             {OrderID: "#1"},
		" by completion":        {CompletedSince: t0},
		" by completion status": {CompletedSince: t0, Status: []tracking.TaskStatus{tracking.StatusCompleted}},
	} {
		f.DriverID, f.Person = "d", "second"
		list, _ := c.tasks(f)
		same(t, "tasks"+name, each(list, taskID), []tracking.TaskID{"t2", "t1"})
		f.Limit = 1
		list, more := c.tasks(f)
		if len(list) != 1 || !more {
			t.Errorf("the first page of tasks%s has %d, more %v", name, len(list), more)
		}
	}
	for name, f := range map[string]tracking.TripFilter{
		"": {}, " by status": {Status: tracking.TripActive}, " by tracking id": {TrackingID: "x2"},
	} {
		f.DriverID, f.Person = "d", "second"
		want := []tracking.TripID{"r2", "r1"}
		if f.TrackingID != "" {
			want = want[:1]
		}
		list, _ := c.trips(f)
		same(t, "trips"+name, each(list, tripID), want)
		f.Person = "first"
		list, _ = c.trips(f)
		same(t, "trips of the first"+name, len(list), len(want)-1)
	}
}

// deletionGoesInSteps deletes a driver with many fixes and notices: they are gone at once, and
// purged little by little.
func deletionGoesInSteps(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0), newDriver("stays", t0)}})
	const fixes, told = 250, 30
	for _, id := range []tracking.DriverID{"d", "stays"} {
		b := tracking.FixBatch{DriverID: id, SeenAt: t0}
		for i := range fixes {
			b.Fixes = append(b.Fixes, newFix(at(time.Duration(i)*time.Second), 11, 48))
		}
		c.record(b)
		for i := range told {
			c.commit(tracking.Changeset{
				Events: []tracking.Event{newEvent(fmt.Sprint(id, i), tracking.KindTask, "t", t0, id)},
			})
		}
	}
	c.commit(tracking.Changeset{DeleteDrivers: []tracking.Driver{c.driver("d")}})
	gone := func(when string) {
		t.Helper()
		same(t, "fixes "+when, len(c.fixes("d", tracking.FixRange{})), 0)
		list, _ := c.notices("d", 0)
		same(t, "notices "+when, len(list), 0)
	}
	gone("of the deleted")
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0)}})
	gone("of the next")
	same(t, "outcomes of the same times", c.record(tracking.FixBatch{
		DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{newFix(t0, 11, 48)},
	}).Outcomes, []tracking.FixOutcome{tracking.FixLive})
	var all tracking.Purged
	for {
		p := c.purge(tracking.Before{Limit: 40}) // nothing is too old
		if p.Total() > 40 {
			t.Fatalf("a purge of 40 rows at most has removed %d", p.Total())
		}
		all.Fixes, all.Notices = all.Fixes+p.Fixes, all.Notices+p.Notices
		if p.Total() == 0 {
			break
		}
	}
	// taken away at once, or in steps
	if want := (tracking.Purged{Fixes: fixes, Notices: told}); all != want && all != (tracking.Purged{}) {
		t.Errorf("purged in all: %+v, want %+v", all, want)
	}
	same(t, "fixes of the next, after the purge", len(c.fixes("d", tracking.FixRange{})), 1)
	same(t, "fixes of the other", len(c.fixes("stays", tracking.FixRange{})), fixes)
	list, _ := c.notices("stays", 0)
	same(t, "notices of the other", len(list), told)
}

// codeIsItsInvitesWhileItLives gives one code to several invites, one after another.
func codeIsItsInvitesWhileItLives(t testing.TB, s tracking.Store) {
	c, other := use(t, s, here), use(t, s, there)
	for _, c := range []*client{c, other} {
		c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("a", t0), newDriver("b", t0)}})
	}
	whose := func(code tracking.Hash) (tracking.AppID, tracking.DriverID) {
		t.Helper()
		app, i, err := s.InviteByHash(c.ctx, code)
		c.ok(err)
		return app, i.DriverID
	}
	invite := func(id tracking.DriverID, link, code byte, made time.Time) tracking.Invite {
		i := newInvite(id, link, code)
		i.CreatedAt, i.LinkExpiresAt, i.CodeExpiresAt = made, made.Add(24*time.Hour), made.Add(time.Hour)
		return i
	}
	first := invite("a", 1, 9, t0)
	c.commit(tracking.Changeset{Invites: []tracking.Invite{first}})
	taken := tracking.ConflictError{Kind: tracking.KindInvite, Unique: "code"}
	for _, x := range []*client{c, other} {
		x.refused(tracking.Changeset{Invites: []tracking.Invite{invite("b", 2, 9, at(time.Hour-time.Millisecond))}},
			taken)
	}
	// Also in one Changeset, and where the other's would have expired by then: one of the two is still live.
	long := invite("b", 6, 4, at(2*time.Hour))
	for _, pair := range [][]tracking.Invite{{invite("a", 5, 4, t0), long}, {long, invite("a", 5, 4, t0)}} {
		other.refused(tracking.Changeset{Invites: pair}, taken)
	}
	other.commit(tracking.Changeset{Invites: []tracking.Invite{invite("b", 2, 9, at(time.Hour))}}) // it has expired
	// Whoever had it before is in the way of an invite from before that.
	other.commit(tracking.Changeset{Invites: []tracking.Invite{invite("b", 2, 3, at(time.Hour))}})
	other.refused(tracking.Changeset{Invites: []tracking.Invite{invite("a", 5, 9, t0)}}, taken)
	other.commit(tracking.Changeset{Invites: []tracking.Invite{invite("b", 2, 9, at(time.Hour))}})
	if app, id := whose(hash(9)); app != there || id != "b" {
		t.Errorf("the code is that of %s in %s, want the one that has it now", id, app)
	}
	used := c.invite("a")
	used.JoinedAt = at(2 * time.Hour)
	c.commit(tracking.Changeset{Invites: []tracking.Invite{used}}) // it goes on having had the code
	if app, _, err := s.InviteByHash(c.ctx, hash(1)); err != nil || app != here {
		t.Errorf("the link's invite is of %q, error %v", app, err)
	}
	// Replaced: its code is known as one that was.
	next := invite("b", 3, 8, at(time.Minute))
	next.PastCodes = []tracking.Hash{hash(7), hash(6)}
	c.commit(tracking.Changeset{Invites: []tracking.Invite{next}})
	same(t, "invite", c.invite("b").PastCodes, next.PastCodes)
	if app, id := whose(hash(6)); app != here || id != "b" {
		t.Errorf("the past code is that of %s in %s", id, app)
	}
	c.commit(tracking.Changeset{Invites: []tracking.Invite{invite("a", 4, 6, at(time.Minute))}}) // and free for others
	if app, id := whose(hash(6)); app != here || id != "a" {
		t.Errorf("the code is that of %s in %s, want the one that has it now", id, app)
	}
	c.commit(tracking.Changeset{Invites: []tracking.Invite{invite("b", 5, 5, at(time.Minute))}})
	_, _, err := s.InviteByHash(c.ctx, hash(7))
	missing(t, "a past code that is forgotten", err)
	c.commit(tracking.Changeset{DeleteDrivers: []tracking.Driver{c.driver("b")}})
	_, _, err = s.InviteByHash(c.ctx, hash(5))
	missing(t, "the code of a driver who is gone", err)
}

func eventsAfterAnotherSubject(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	for i, subject := range []string{"a", "b", "a", "b"} {
		c.commit(tracking.Changeset{
			Events: []tracking.Event{newEvent(fmt.Sprint("e", i), tracking.KindTask, subject, t0)},
		})
	}
	b := tracking.Subject{Kind: tracking.KindTask, ID: "b"}
	for after, want := range map[string][]string{"e0": {"e1", "e3"}, "e1": {"e3"}, "e2": {"e3"}, "e3": nil} {
		list, _ := c.events(tracking.EventFilter{Subject: b, After: after})
		same(t, "events of b after "+after, each(list, eventID), want)
	}
	_, _, err := s.Events(c.ctx, here, tracking.EventFilter{Subject: b, After: "e9", Limit: 1})
	missing(t, "after no event", err)
}
