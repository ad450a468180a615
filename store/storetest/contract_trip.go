package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// tripChecks are about lists of trips, where else a trip is found, and requests.
func tripChecks() []check {
	return []check{
		{"Trips/lists newest first, page by page, by each filter", tripsListNewestFirst},
		{"ActiveTrip/finds the active one among those of the tracking id", activeTripFindsTheActiveOne},
		{"TripByLink/finds the trip of any application, until the link is revoked", tripByLinkFindsItUntilRevoked},
		{"Requests/lists a driver's, oldest first and then by tracking id", requestsListOldestFirst},
	}
}

// tripsListNewestFirst compares with a plain filter, by pages of each size.
func tripsListNewestFirst(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	var trips []tracking.Trip
	for i := range 18 {
		trip := newTrip(tracking.TripID(fmt.Sprint(i)), tracking.DriverID(fmt.Sprint("d", i%2)),
			tracking.TrackingID(fmt.Sprint("x", i%6)), at(time.Duration(i/2)*time.Minute))
		if trip.Status = tracking.TripStatus(i%3 + 1); trip.Status == tracking.TripActive && i > 5 {
			trip.Status = tracking.TripStopped
		}
		trips = append(trips, trip)
	}
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d0", t0), newDriver("d1", t0)}, Trips: trips[:9]})
	c.commit(tracking.Changeset{Trips: trips[9:]})
	moved := c.trip("3") // active till now
	moved.Status, moved.DriverID, moved.TrackingID = tracking.TripDiscarded, "d7", "x7"
	c.commit(tracking.Changeset{Trips: []tracking.Trip{moved}})
	trips[3] = moved
	for _, f := range []tracking.TripFilter{
		{}, {Status: tracking.TripActive}, {Status: tracking.TripStopped}, {
			Status: tracking.TripDiscarded,
		}, {Status: 4},
		{DriverID: "d0"}, {DriverID: "d7"}, {DriverID: "nobody"}, {TrackingID: "x3"}, {TrackingID: "x7"},
		{TrackingID: "X1"}, {DriverID: "d1", Status: tracking.TripStopped},
		{DriverID: "d1", TrackingID: "x1", Status: tracking.TripStopped},
	} {
		var want []tracking.TripID
		for i := len(trips) - 1; i >= 0; i-- {
			if tr := trips[i]; (f.Status == 0 || f.Status == tr.Status) &&
				(f.DriverID == "" || f.DriverID == tr.DriverID) &&
				(f.TrackingID == "" || f.TrackingID == tr.TrackingID) {
				want = append(want, tr.ID)
			}
		}
		for _, limit := range []int{1, 5, 1000} {
			pages(t, fmt.Sprintf("trips by %+v", f), want, limit, func(p tracking.Page) ([]tracking.TripID, bool) {
				f.Page = p
				list, more := c.trips(f)
				return each(list, tripID), more
			})
		}
	}
}

func activeTripFindsTheActiveOne(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	var trips []tracking.Trip
	for i := range 5 {
		trip := newTrip(tracking.TripID(fmt.Sprint(i)), "d", "x", at(time.Duration(i)*time.Minute))
		if i != 2 {
			trip.Status, trip.EndedAt = tracking.TripStopped, trip.StartedAt
		}
		trips = append(trips, trip)
	}
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0)}, Trips: trips})
	got, err := s.ActiveTrip(c.ctx, here, "x")
	c.ok(err)
	same(t, "trip", got, c.trip("2"))
	for _, id := range []tracking.TrackingID{"X", "x ", "y"} {
		_, err = s.ActiveTrip(c.ctx, here, id)
		missing(t, fmt.Sprintf("ActiveTrip(%q)", id), err)
	}
}

func tripByLinkFindsItUntilRevoked(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	trip := newTrip("a", "d", "x", t0)
	trip.Link = tracking.Link{Generation: 1, Hash: hash(1), MadeAt: t0}
	c.commit(tracking.Changeset{
		Drivers: []tracking.Driver{newDriver("d", t0)}, Trips: []tracking.Trip{trip, newTrip("no link", "d", "y", t0)},
	})
	app, got, err := s.TripByLink(c.ctx, hash(1))
	c.ok(err)
	same(t, "application", app, here)
	same(t, "trip", got, c.trip("a"))
	_, _, err = s.TripByLink(c.ctx, tracking.Hash{})
	missing(t, "TripByLink of the zero hash", err)
	_, _, err = s.TaskByLink(c.ctx, hash(1))
	missing(t, "TaskByLink of a trip's hash", err)
	got.Link = tracking.Link{Generation: 2, Hash: hash(2), MadeAt: at(time.Hour)}
	c.commit(tracking.Changeset{Trips: []tracking.Trip{got}})
	_, _, err = s.TripByLink(c.ctx, hash(1))
	missing(t, "TripByLink of the older generation", err)
	_, again, err := s.TripByLink(c.ctx, hash(2))
	c.ok(err)
	same(t, "trip", again, c.trip("a"))
}

func requestsListOldestFirst(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d",
		t0), newDriver("e", t0)}, Requests: []tracking.Request{
		newRequest("d", "c", t0), newRequest("d", "B", t0), newRequest("e", "a", t0), newRequest("d", "a", t0),
		newRequest("d", "0", at(time.Second)), newRequest("d", "z", at(-time.Second)),
	}})
	same(t, "requests", each(c.requests("d"), func(r tracking.Request) tracking.TrackingID { return r.TrackingID }),
		[]tracking.TrackingID{"z", "B", "a", "c", "0"})
	same(t, "requests of another", c.requests("e"), []tracking.Request{newRequest("e", "a", t0)})
	got, err := s.Request(c.ctx, here, tracking.RequestID{DriverID: "e", TrackingID: "a"})
	c.ok(err)
	same(t, "request", got, newRequest("e", "a", t0))
	_, err = s.Request(c.ctx, here, tracking.RequestID{DriverID: "e", TrackingID: "b"})
	missing(t, "Request", err)
}
