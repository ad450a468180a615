package storetest

import (
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// uniqueChecks are about values that only one row may have.
func uniqueChecks() []check {
	return []check{
		{"unique/an idempotency key is taken within its application", keyIsTakenWithinItsApp},
		{"unique/a tracking id is taken by the active trip of its application", trackingIDIsTakenByTheActiveTrip},
		{"unique/an invite's code is taken over the whole store", codeIsTakenOverTheStore},
		{"unique/the hash of an API key is taken over the whole store", apiKeyIsTakenOverTheStore},
		{"unique/after a refusal the value is still free", refusedValueStaysFree},
	}
}

func keyIsTakenWithinItsApp(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	taken := tracking.ConflictError{Kind: tracking.KindTask, Unique: "key"}
	c.commit(tracking.Changeset{Tasks: []tracking.Task{
		keyedTask("a", "k"), keyedTask("none", ""), keyedTask("none either", ""),
	}})
	c.refused(tracking.Changeset{Tasks: []tracking.Task{keyedTask("b", "k")}}, taken)
	c.refused(tracking.Changeset{Tasks: []tracking.Task{keyedTask("b", "k2"), keyedTask("c", "k2")}}, taken)
	none := c.task("none")
	none.Key = "k"
	c.refused(tracking.Changeset{Tasks: []tracking.Task{none}}, taken)
	c.commit(tracking.Changeset{Tasks: []tracking.Task{keyedTask("b", "K")}})
	use(t, s, there).commit(tracking.Changeset{Tasks: []tracking.Task{keyedTask("a", "k")}})
	done := c.task("a")
	done.Status = tracking.StatusCompleted
	c.commit(tracking.Changeset{Tasks: []tracking.Task{done}})
	c.refused(tracking.Changeset{Tasks: []tracking.Task{keyedTask("d", "k")}}, taken)
}

func trackingIDIsTakenByTheActiveTrip(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	taken := tracking.ConflictError{Kind: tracking.KindTrip, Unique: "tracking_id"}
	c.commit(tracking.Changeset{
		Drivers: []tracking.Driver{newDriver("d", t0), newDriver("e", t0)},
		Trips:   []tracking.Trip{newTrip("a", "d", "x", t0)},
	})
	c.refused(tracking.Changeset{Trips: []tracking.Trip{newTrip("b", "e", "x", t0)}}, taken)
	c.refused(tracking.Changeset{Trips: []tracking.Trip{newTrip("b", "d", "y", t0), newTrip("c", "e", "y", t0)}}, taken)
	use(t, s, there).commit(tracking.Changeset{Trips: []tracking.Trip{newTrip("a", "d", "x", t0)}})

	over := newTrip("over", "d", "x", t0)
	over.Status, over.EndedAt = tracking.TripDiscarded, t0
	c.commit(tracking.Changeset{Trips: []tracking.Trip{over}})
	over.Status, over.Version = tracking.TripActive, 1
	c.refused(tracking.Changeset{Trips: []tracking.Trip{over}}, taken)

	a := c.trip("a")
	a.Status, a.EndedAt = tracking.TripStopped, at(time.Minute)
	c.commit(tracking.Changeset{Trips: []tracking.Trip{a}})
	_, err := s.ActiveTrip(c.ctx, here, "x")
	missing(t, "ActiveTrip after it was stopped", err)
	c.commit(tracking.Changeset{Trips: []tracking.Trip{newTrip("b", "e", "x", t0)}})
}

func codeIsTakenOverTheStore(t testing.TB, s tracking.Store) {
	c, o := use(t, s, here), use(t, s, there)
	taken := tracking.ConflictError{Kind: tracking.KindInvite, Unique: "code"}
	drivers := []tracking.Driver{newDriver("d", t0), newDriver("e", t0), newDriver("f", t0)}
	c.commit(tracking.Changeset{Drivers: drivers, Invites: []tracking.Invite{newInvite("d", 1, 2)}})
	o.commit(tracking.Changeset{Drivers: drivers})
	c.refused(tracking.Changeset{Invites: []tracking.Invite{newInvite("e", 3, 2)}}, taken)
	o.refused(tracking.Changeset{Invites: []tracking.Invite{newInvite("d", 3, 2)}}, taken)
	c.refused(tracking.Changeset{Invites: []tracking.Invite{newInvite("e", 3, 4), newInvite("f", 5, 4)}}, taken)
	o.commit(tracking.Changeset{Invites: []tracking.Invite{newInvite("d", 3, 4)}})
	mine := newInvite("d", 1, 4)
	mine.Version = 1
	c.refused(tracking.Changeset{Invites: []tracking.Invite{mine}}, taken)
	c.commit(tracking.Changeset{Invites: []tracking.Invite{newInvite("d", 6, 2)}}) // the same driver's code again

	none := newInvite("e", 7, 0)
	none.CodeHash = tracking.Hash{}
	other := none
	other.DriverID, other.LinkHash = "f", hash(8)
	c.commit(tracking.Changeset{Invites: []tracking.Invite{none, other}})

	free := c.driver("d")
	c.commit(tracking.Changeset{DeleteDrivers: []tracking.Driver{free}})
	o.commit(tracking.Changeset{Invites: []tracking.Invite{newInvite("e", 1, 2)}})
}

func apiKeyIsTakenOverTheStore(t testing.TB, s tracking.Store) {
	c, o := use(t, s, here), use(t, s, there)
	taken := tracking.ConflictError{Kind: tracking.KindKey, Unique: "hash"}
	c.commit(tracking.Changeset{Keys: []tracking.Key{newKey("a", 1, t0)}})
	c.refused(tracking.Changeset{Keys: []tracking.Key{newKey("b", 1, t0)}}, taken)
	o.refused(tracking.Changeset{Keys: []tracking.Key{newKey("a", 1, t0)}}, taken)
	c.refused(tracking.Changeset{Keys: []tracking.Key{newKey("b", 2, t0), newKey("c", 2, t0)}}, taken)
	a := c.keys()[0]
	a.RevokedAt = t0
	c.commit(tracking.Changeset{Keys: []tracking.Key{a}})
	o.refused(tracking.Changeset{Keys: []tracking.Key{newKey("a", 1, t0)}}, taken)
	o.commit(tracking.Changeset{Keys: []tracking.Key{newKey("a", 2, t0)}})
}

func refusedValueStaysFree(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{
		Tasks: []tracking.Task{newTask("old", t0)}, Drivers: []tracking.Driver{newDriver("d", t0), newDriver("e", t0)},
	})
	cs := tracking.Changeset{
		Tasks:   []tracking.Task{keyedTask("a", "k"), newTask("old", t0)},
		Trips:   []tracking.Trip{newTrip("a", "d", "x", t0)},
		Invites: []tracking.Invite{newInvite("d", 1, 2)},
		Keys:    []tracking.Key{newKey("a", 3, t0)},
	}
	c.refused(cs, tracking.ConflictError{Kind: tracking.KindTask, ID: "old"})
	c.commit(tracking.Changeset{
		Tasks:   []tracking.Task{keyedTask("b", "k")},
		Trips:   []tracking.Trip{newTrip("b", "e", "x", t0)},
		Invites: []tracking.Invite{newInvite("e", 1, 2)},
		Keys:    []tracking.Key{newKey("b", 3, t0)},
	})
}

func keyedTask(id tracking.TaskID, key string) tracking.Task {
	t := newTask(id, t0)
	t.Key = key
	return t
}
