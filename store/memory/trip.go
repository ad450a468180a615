package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// tripRow is a trip's place in the lists. The Trip itself is never changed but replaced.
type tripRow struct {
	place
	trip *tracking.Trip
}

func (r *tripRow) compare(o *tripRow) int { return r.place.compare(o.place) }

// version is 0 of a row that is not there.
func (r *tripRow) version() int64 {
	if r == nil {
		return 0
	}
	return r.trip.Version
}

func byTTL(a, b *tripRow) int { return cmp.Or(a.trip.TTL.Compare(b.trip.TTL), a.compare(b)) }

func byEnd(a, b *tripRow) int { return cmp.Or(a.trip.EndedAt.Compare(b.trip.EndedAt), a.compare(b)) }

func byTripGeocode(a, b *tripRow) int {
	return cmp.Or(a.trip.GeocodeAt.Compare(b.trip.GeocodeAt), a.compare(b))
}

// trips holds an application's trips, and the lists that serve its filters.
type trips struct {
	byID       map[tracking.TripID]*tripRow
	all        list[*tripRow]
	byStatus   map[tracking.TripStatus]*list[*tripRow]
	byTracking map[tracking.TrackingID]*list[*tripRow]
	byDriver   map[tracking.DriverID]*driverTrips
	active     map[tracking.TrackingID]*tripRow
	due        list[*tripRow] // the active ones by TTL
	geocode    list[*tripRow] // by GeocodeAt
}

// driverTrips is the trips of one driver.
type driverTrips struct {
	all      list[*tripRow]
	byStatus map[tracking.TripStatus]*list[*tripRow]
	ended    list[*tripRow] // those not active, by EndedAt
}

func newTrips() trips {
	return trips{
		byID:       make(map[tracking.TripID]*tripRow),
		byStatus:   make(map[tracking.TripStatus]*list[*tripRow]),
		byTracking: make(map[tracking.TrackingID]*list[*tripRow]),
		byDriver:   make(map[tracking.DriverID]*driverTrips),
		active:     make(map[tracking.TrackingID]*tripRow),
	}
}

// insert adds a new trip. Its CreatedAt and Seq are set.
func (x *trips) insert(t *tracking.Trip) {
	r := &tripRow{place{t.CreatedAt.UnixMilli(), t.Seq}, t}
	x.byID[t.ID] = r
	x.all.insert(r, (*tripRow).compare)
	x.enter(r)
}

// replace puts t in the place of r's trip. Few changes of a trip leave its lists alone, so that it
// goes through all of them.
func (x *trips) replace(r *tripRow, t *tracking.Trip) {
	x.leave(r)
	r.trip = t
	x.enter(r)
}

func (x *trips) enter(r *tripRow) {
	t := r.trip
	t.Person = strings.Clone(t.Person) // which may be part of all that a driver's row has kept
	insertInto(x.byStatus, t.Status, r, (*tripRow).compare)
	insertInto(x.byTracking, t.TrackingID, r, (*tripRow).compare)
	d := x.byDriver[t.DriverID]
	if d == nil {
		d = &driverTrips{byStatus: make(map[tracking.TripStatus]*list[*tripRow])}
		x.byDriver[t.DriverID] = d
	}
	d.all.insert(r, (*tripRow).compare)
	insertInto(d.byStatus, t.Status, r, (*tripRow).compare)
	if t.Status == tracking.TripActive {
		x.active[t.TrackingID] = r
		x.due.insert(r, byTTL)
	} else {
		d.ended.insert(r, byEnd)
	}
	if !t.GeocodeAt.IsZero() {
		x.geocode.insert(r, byTripGeocode)
	}
}

func (x *trips) leave(r *tripRow) {
	t := r.trip
	removeFrom(x.byStatus, t.Status, r, (*tripRow).compare)
	removeFrom(x.byTracking, t.TrackingID, r, (*tripRow).compare)
	d := x.byDriver[t.DriverID]
	d.all.remove(r, (*tripRow).compare)
	removeFrom(d.byStatus, t.Status, r, (*tripRow).compare)
	if t.Status == tracking.TripActive {
		if x.active[t.TrackingID] == r {
			delete(x.active, t.TrackingID)
		}
		x.due.remove(r, byTTL)
	} else {
		d.ended.remove(r, byEnd)
	}
	if d.all.len() == 0 {
		delete(x.byDriver, t.DriverID)
	}
	if !t.GeocodeAt.IsZero() {
		x.geocode.remove(r, byTripGeocode)
	}
}

// covers reports whether t is within the window of one of the trips that this person drove.
func (d *driverTrips) covers(person string, t time.Time) bool {
	if d == nil {
		return false
	}
	if active := d.byStatus[tracking.TripActive]; active != nil {
		c := active.end(0)
		for r, ok := c.prev(); ok; r, ok = c.prev() {
			if r.trip.Person == person && !t.Before(r.trip.StartedAt) {
				return true
			}
		}
	}
	c := d.ended.at(func(r *tripRow) bool { return !r.trip.EndedAt.Before(t) })
	for r, ok := c.next(); ok; r, ok = c.next() {
		if r.trip.Person == person && !t.Before(r.trip.StartedAt) {
			return true
		}
	}
	return false
}

// Trip implements [tracking.TripReader].
func (s *Store) Trip(ctx context.Context, app tracking.AppID, id tracking.TripID) (tracking.Trip, error) {
	a, err := s.read(ctx, app)
	if err != nil {
		return tracking.Trip{}, err
	}
	if a == nil {
		return tracking.Trip{}, tracking.ErrNotFound
	}
	return a.unlockTrip(a.trips.byID[id])
}

// ActiveTrip implements [tracking.TripReader].
func (s *Store) ActiveTrip(ctx context.Context, app tracking.AppID, id tracking.TrackingID) (tracking.Trip, error) {
	a, err := s.read(ctx, app)
	if err != nil {
		return tracking.Trip{}, err
	}
	if a == nil {
		return tracking.Trip{}, tracking.ErrNotFound
	}
	return a.unlockTrip(a.trips.active[id])
}

// unlockTrip gives back the lock and returns a copy of r's trip; r may be nil.
func (a *application) unlockTrip(r *tripRow) (tracking.Trip, error) {
	if r == nil {
		a.mu.RUnlock()
		return tracking.Trip{}, tracking.ErrNotFound
	}
	t := r.trip
	a.mu.RUnlock()
	return t.Clone(), nil
}

// TripByLink implements [tracking.TripReader].
func (s *Store) TripByLink(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Trip, error) {
	a, row, err := findSecret(ctx, s, &s.secrets.tripLinks, hash, func(a *application, id tracking.TripID) *tripRow {
		if r := a.trips.byID[id]; r != nil && r.trip.Link.Hash == hash {
			return r
		}
		return nil
	})
	if err != nil {
		return "", tracking.Trip{}, err
	}
	t, err := a.unlockTrip(row)
	return a.id, t, err
}

// Trips implements [tracking.TripReader].
func (s *Store) Trips(ctx context.Context, app tracking.AppID, f tracking.TripFilter) ([]tracking.Trip, bool, error) {
	a, err := s.read(ctx, app)
	if a == nil || err != nil {
		return nil, false, err
	}
	found, more := a.trips.page(f)
	a.mu.RUnlock()
	return copies(found, (*tracking.Trip).Clone), more, nil
}

// page finds the trips of a page.
func (x *trips) page(f tracking.TripFilter) (page []*tracking.Trip, more bool) {
	source := &x.all
	byStatus := x.byStatus
	if f.DriverID != "" {
		d := x.byDriver[f.DriverID]
		if d == nil {
			return nil, false
		}
		source, byStatus = &d.all, d.byStatus
	}
	if f.Status != 0 {
		if source = byStatus[f.Status]; source == nil {
			return nil, false
		}
	}
	var keep func(*tripRow) bool
	if f.TrackingID != "" {
		l := x.byTracking[f.TrackingID]
		if l == nil {
			return nil, false
		}
		if l.len() <= source.len() {
			source = l
		}
	}
	if f.Person != "" || f.TrackingID != "" && (f.DriverID != "" || f.Status != 0) {
		keep = func(r *tripRow) bool {
			t := r.trip
			return (f.TrackingID == "" || t.TrackingID == f.TrackingID) &&
				(f.DriverID == "" || t.DriverID == f.DriverID) &&
				(f.Person == "" || t.Person == f.Person) && (f.Status == 0 || t.Status == f.Status)
		}
	}
	rows, more := newest([]*list[*tripRow]{source}, f.Page, (*tripRow).compare, keep)
	return copies(rows, func(r *tripRow) *tracking.Trip { return r.trip }), more
}

// Request implements [tracking.TripReader].
func (s *Store) Request(ctx context.Context, app tracking.AppID, id tracking.RequestID) (tracking.Request, error) {
	a, err := s.read(ctx, app)
	if err != nil {
		return tracking.Request{}, err
	}
	if a == nil {
		return tracking.Request{}, tracking.ErrNotFound
	}
	defer a.mu.RUnlock()
	if d := a.drivers.row(id.DriverID); d != nil {
		if r := d.others().requests[id.TrackingID]; r != nil {
			return r.Clone(), nil
		}
	}
	return tracking.Request{}, tracking.ErrNotFound
}

// Requests implements [tracking.TripReader].
func (s *Store) Requests(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID,
) ([]tracking.Request, error) {
	a, err := s.read(ctx, app)
	if a == nil || err != nil {
		return nil, err
	}
	defer a.mu.RUnlock()
	d := a.drivers.row(driver)
	if d == nil {
		return nil, nil
	}
	var list []tracking.Request
	for _, r := range d.others().requests {
		list = append(list, r.Clone())
	}
	slices.SortFunc(list, byRequestAge)
	return list, nil
}

func byRequestAge(a, b tracking.Request) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(string(a.TrackingID), string(b.TrackingID)))
}
