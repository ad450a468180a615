package storetest

import (
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// deleteChecks are about what goes with a driver who is deleted, and what stays.
func deleteChecks() []check {
	return []check{
		{"DeleteDrivers/removes what belongs to the driver, and leaves tasks, trips and events",
			deletionRemovesWhatIsTheDrivers},
		{"DeleteDrivers/who comes again under the same id begins with nothing", returnedDriverBeginsWithNothing},
		{"DeleteDrivers/notices of the same changeset for the driver are dropped", deletionDropsItsNotices},
	}
}

// deletionRemovesWhatIsTheDrivers compares all rows before and after.
func deletionRemovesWhatIsTheDrivers(t testing.TB, s tracking.Store) {
	c := twoFullDrivers(t, s)
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
	_, _, err := s.DriverByToken(c.ctx, tracking.TokenApp, hash(1))
	missing(t, "DriverByToken", err)
	_, _, err = s.DriverByToken(c.ctx, tracking.TokenIngest, hash(2))
	missing(t, "DriverByToken", err)
	_, err = s.RecordFixes(c.ctx, here, tracking.FixBatch{DriverID: "d", SeenAt: t0})
	missing(t, "RecordFixes", err)
	near, _ := c.drivers(tracking.DriverFilter{Near: &tracking.LngLat{Lng: 11, Lat: 48}})
	same(t, "drivers nearby", each(near, driverID), []tracking.DriverID{"stays"})
	same(t, "offers", each(c.offers(tracking.Offer{At: tracking.LngLat{Lng: 11, Lat: 48}, MaxOpen: -1}), driverID),
		[]tracking.DriverID{"stays"})
}

func returnedDriverBeginsWithNothing(t testing.TB, s tracking.Store) {
	c := twoFullDrivers(t, s)
	c.commit(tracking.Changeset{DeleteDrivers: []tracking.Driver{c.driver("d")}})
	again := newDriver("d", at(time.Hour))
	c.commit(tracking.Changeset{
		Drivers: []tracking.Driver{again}, Events: []tracking.Event{newEvent("again", tracking.KindDriver, "d", t0)},
	})
	got := c.driver("d")
	again.Version, again.Seq = got.Version, got.Seq
	same(t, "driver", got, again)
	same(t, "fixes", c.fixes("d", tracking.FixRange{}), nil)
	notices, _ := c.notices("d", 0)
	same(t, "notices", notices, nil)
	events, _ := c.events(tracking.EventFilter{Subject: tracking.Subject{Kind: tracking.KindDriver, ID: "d"}})
	same(t, "seq of the driver's events", each(events, func(e tracking.Event) int64 { return e.Seq }), []int64{1, 2})
	r := c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{newFix(t0, -70, -30)}})
	same(t, "outcomes", r.Outcomes, []tracking.FixOutcome{tracking.FixLive})
}

func deletionDropsItsNotices(t testing.TB, s tracking.Store) {
	c := twoFullDrivers(t, s)
	c.commit(tracking.Changeset{
		DeleteDrivers: []tracking.Driver{c.driver("d")},
		Events:        []tracking.Event{newEvent("last", tracking.KindDriver, "d", t0, "d", "stays")},
	})
	notices, _ := c.notices("d", 0)
	same(t, "notices of the deleted driver", notices, nil)
	notices, _ = c.notices("stays", 0)
	same(t, "notices of the other", len(notices), 2)
}

// twoFullDrivers makes a driver who has everything, and another who must keep it.
func twoFullDrivers(t testing.TB, s tracking.Store) *client {
	c := use(t, s, here)
	var cs tracking.Changeset
	for i, id := range []tracking.DriverID{"d", "stays"} {
		driver := newDriver(id, t0)
		driver.AppToken, driver.IngestToken = hash(byte(10*i+1)), hash(byte(10*i+2))
		task := newTask(tracking.TaskID("task of "+id), t0)
		task.DriverID, task.Status = id, tracking.StatusCompleted
		trip := newTrip(tracking.TripID("trip of "+id), id, tracking.TrackingID(id), t0)
		trip.Status, trip.EndedAt = tracking.TripStopped, at(time.Hour)
		cs.Drivers, cs.Tasks, cs.Trips = append(cs.Drivers, driver), append(cs.Tasks, task), append(cs.Trips, trip)
		cs.Invites = append(cs.Invites, newInvite(id, byte(10*i+3), byte(10*i+4)))
		cs.Requests = append(cs.Requests, newRequest(id, "x", t0))
		cs.Fixes = append(cs.Fixes, tracking.FixBatch{
			DriverID: id, SeenAt: t0, Fixes: []tracking.Fix{newFix(t0, 11, 48), newFix(at(time.Minute), 11, 48)},
		})
		cs.Events = append(cs.Events, newEvent("event of "+string(id), tracking.KindDriver, string(id), t0, id))
	}
	c.commit(cs)
	return c
}
