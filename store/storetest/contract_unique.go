package storetest

import (
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

func uniqueChecks() []check {
	keyed := func(id tracking.TaskID, key string) tracking.Task {
		t := newTask(id, t0)
		t.Key = key
		return t
	}
	return []check{
		{"unique/an idempotency key is taken within its application", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			taken := tracking.ConflictError{Kind: tracking.KindTask, Unique: "key"}
			c.commit(tracking.Changeset{Tasks: []tracking.Task{keyed("a", "k"), keyed("none", ""), keyed("none either", "")}})
			c.refused(tracking.Changeset{Tasks: []tracking.Task{keyed("b", "k")}}, taken)
			c.refused(tracking.Changeset{Tasks: []tracking.Task{keyed("b", "k2"), keyed("c", "k2")}}, taken)
			none := c.task("none")
			none.Key = "k"
			c.refused(tracking.Changeset{Tasks: []tracking.Task{none}}, taken)
			c.commit(tracking.Changeset{Tasks: []tracking.Task{keyed("b", "K")}})
			use(t, s, there).commit(tracking.Changeset{Tasks: []tracking.Task{keyed("a", "k")}})
			done := c.task("a")
			done.Status = tracking.StatusCompleted
			c.commit(tracking.Changeset{Tasks: []tracking.Task{done}})
			c.refused(tracking.Changeset{Tasks: []tracking.Task{keyed("d", "k")}}, taken)
		}},
		{"unique/a tracking id is taken by the active trip of its application", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			taken := tracking.ConflictError{Kind: tracking.KindTrip, Unique: "tracking_id"}
			c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0), newDriver("e", t0)}, Trips: []tracking.Trip{newTrip("a", "d", "x", t0)}})
			c.refused(tracking.Changeset{Trips: []tracking.Trip{newTrip("b", "e", "x", t0)}}, taken)
			c.refused(tracking.Changeset{Trips: []tracking.Trip{newTrip("b", "d", "y", t0), newTrip("c", "e", "y", t0)}}, taken)
			use(t, s, there).commit(tracking.Changeset{Trips: []tracking.Trip{newTrip("a", "d", "x", t0)}})

			over := newTrip("over", "d", "x", t0)
			over.Status, over.EndedAt = tracking.Discarded, t0
			c.commit(tracking.Changeset{Trips: []tracking.Trip{over}})
			over.Status, over.Version = tracking.Active, 1
			c.refused(tracking.Changeset{Trips: []tracking.Trip{over}}, taken)

			a := c.trip("a")
			a.Status, a.EndedAt = tracking.Stopped, at(time.Minute)
			c.commit(tracking.Changeset{Trips: []tracking.Trip{a}})
			_, err := s.ActiveTrip(c.ctx, here, "x")
			missing(t, "ActiveTrip after it was stopped", err)
			c.commit(tracking.Changeset{Trips: []tracking.Trip{newTrip("b", "e", "x", t0)}})
		}},
		{"unique/an invite's code is taken over the whole store", func(t testing.TB, s tracking.Store) {
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
		}},
		{"unique/the hash of an API key is taken over the whole store", func(t testing.TB, s tracking.Store) {
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
		}},
		{"unique/after a refusal the value is still free", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			c.commit(tracking.Changeset{Tasks: []tracking.Task{newTask("old", t0)}, Drivers: []tracking.Driver{newDriver("d", t0), newDriver("e", t0)}})
			cs := tracking.Changeset{
				Tasks:   []tracking.Task{keyed("a", "k"), newTask("old", t0)},
				Trips:   []tracking.Trip{newTrip("a", "d", "x", t0)},
				Invites: []tracking.Invite{newInvite("d", 1, 2)},
				Keys:    []tracking.Key{newKey("a", 3, t0)},
			}
			c.refused(cs, tracking.ConflictError{Kind: tracking.KindTask, ID: "old"})
			c.commit(tracking.Changeset{
				Tasks:   []tracking.Task{keyed("b", "k")},
				Trips:   []tracking.Trip{newTrip("b", "e", "x", t0)},
				Invites: []tracking.Invite{newInvite("e", 1, 2)},
				Keys:    []tracking.Key{newKey("b", 3, t0)},
			})
		}},
	}
}

func deleteChecks() []check {
	// seed makes a driver who has everything, and another who must keep it.
	seed := func(t testing.TB, s tracking.Store) *client {
		c := use(t, s, here)
		var cs tracking.Changeset
		for i, id := range []tracking.DriverID{"d", "stays"} {
			driver := newDriver(id, t0)
			driver.AppToken, driver.IngestToken = hash(byte(10*i+1)), hash(byte(10*i+2))
			task := newTask(tracking.TaskID("task of "+id), t0)
			task.DriverID, task.Status = id, tracking.StatusCompleted
			trip := newTrip(tracking.TripID("trip of "+id), id, tracking.TrackingID(id), t0)
			trip.Status, trip.EndedAt = tracking.Stopped, at(time.Hour)
			cs.Drivers, cs.Tasks, cs.Trips = append(cs.Drivers, driver), append(cs.Tasks, task), append(cs.Trips, trip)
			cs.Invites = append(cs.Invites, newInvite(id, byte(10*i+3), byte(10*i+4)))
			cs.Push = append(cs.Push, newRequest(id, "x", t0))
			cs.Fixes = append(cs.Fixes, tracking.FixBatch{DriverID: id, SeenAt: t0, Fixes: []tracking.Fix{newFix(t0, 11, 48), newFix(at(time.Minute), 11, 48)}})
			cs.Events = append(cs.Events, newEvent("event of "+string(id), tracking.KindDriver, string(id), t0, id))
		}
		c.commit(cs)
		return c
	}
	return []check{
		{"DeleteDrivers/removes what belongs to the driver, and leaves tasks, trips and events", func(t testing.TB, s tracking.Store) {
			c := seed(t, s)
			before := snap(t, s, here)
			c.commit(tracking.Changeset{DeleteDrivers: []tracking.Driver{c.driver("d")}})
			got := snap(t, s, here, "d")
			want := before
			want.Drivers, want.Invites, want.Requests = before.Drivers[1:], before.Invites[1:], before.Requests[1:]
			delete(want.Fixes, "d")
			delete(want.Notices, "d")
			for i := range got.Events { // whether an event still names those who were told is the store's affair
				got.Events[i].Notices, want.Events[i].Notices = nil, nil
			}
			same(t, "rows", got, want)
			for _, h := range []tracking.Hash{hash(3), hash(4)} {
				_, _, err := s.InviteByHash(c.ctx, h)
				missing(t, "InviteByHash", err)
			}
			_, _, err := s.DriverByToken(c.ctx, tracking.AppToken, hash(1))
			missing(t, "DriverByToken", err)
			_, _, err = s.DriverByToken(c.ctx, tracking.IngestToken, hash(2))
			missing(t, "DriverByToken", err)
			_, err = s.RecordFixes(c.ctx, here, tracking.FixBatch{DriverID: "d", SeenAt: t0})
			missing(t, "RecordFixes", err)
			near, _ := c.drivers(tracking.DriverFilter{Near: &tracking.LngLat{Lng: 11, Lat: 48}})
			same(t, "drivers nearby", each(near, driverID), []tracking.DriverID{"stays"})
			same(t, "offers", each(c.offers(tracking.Offer{At: tracking.LngLat{Lng: 11, Lat: 48}, MaxOpen: -1}), driverID), []tracking.DriverID{"stays"})
		}},
		{"DeleteDrivers/who comes again under the same id begins with nothing", func(t testing.TB, s tracking.Store) {
			c := seed(t, s)
			c.commit(tracking.Changeset{DeleteDrivers: []tracking.Driver{c.driver("d")}})
			again := newDriver("d", at(time.Hour))
			c.commit(tracking.Changeset{Drivers: []tracking.Driver{again}, Events: []tracking.Event{newEvent("again", tracking.KindDriver, "d", t0)}})
			got := c.driver("d")
			again.Version, again.Seq = 1, got.Seq
			same(t, "driver", got, again)
			same(t, "fixes", c.fixes("d", tracking.FixRange{}), nil)
			notices, _ := c.notices("d", 0)
			same(t, "notices", notices, nil)
			events, _ := c.events(tracking.EventFilter{Subject: tracking.Subject{Kind: tracking.KindDriver, ID: "d"}})
			same(t, "seq of the driver's events", each(events, func(e tracking.Event) int64 { return e.Seq }), []int64{1, 2})
			r := c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{newFix(t0, -70, -30)}})
			same(t, "outcomes", r.Outcomes, []tracking.FixOutcome{tracking.FixLive})
		}},
		{"DeleteDrivers/notices of the same changeset for the driver are dropped", func(t testing.TB, s tracking.Store) {
			c := seed(t, s)
			c.commit(tracking.Changeset{
				DeleteDrivers: []tracking.Driver{c.driver("d")},
				Events:        []tracking.Event{newEvent("last", tracking.KindDriver, "d", t0, "d", "stays")},
			})
			notices, _ := c.notices("d", 0)
			same(t, "notices of the deleted driver", notices, nil)
			notices, _ = c.notices("stays", 0)
			same(t, "notices of the other", len(notices), 2)
		}},
	}
}
