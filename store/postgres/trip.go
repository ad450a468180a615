package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
)

const tripSet = `tracking_id, driver_id, person, task_id, status,
	starts_at_lng, starts_at_lat, ends_at_lng, ends_at_lat, start_location, end_location,
	dest_lng, dest_lat, dest_address, dest_name, dest_mobile,
	started_at, ended_at, covers_until, ttl, geocode_at, link_generation, link_hash, link_made_at, updated_at`

const tripColumns = ` app, id, seq, version, created_at, ` + tripSet

var (
	insertTrip = `INSERT INTO tracking.trips (app, id, version, created_at, ` + tripSet + `)
		VALUES ($1, $2, ` + newVersion + `, ` + params(3, 1+25) + `) RETURNING seq, version`
	updateTrip = `UPDATE tracking.trips SET version = version + 1, (` + tripSet + `) = ROW (` + params(3, 25) + `)
		WHERE app = $1 AND id = $2 RETURNING seq, version`
)

const (
	lockTrips   = eachOfIDs + `SELECT id, version FROM tracking.trips` + lockedByID
	releaseTrip = `UPDATE tracking.trips SET status = 0 WHERE app = $1 AND id = $2`
)

// tripValues are the columns of tripSet.
func tripValues(t *tracking.Trip) []any {
	startLng, startLat := pointValues(t.StartsAt)
	endLng, endLat := pointValues(t.EndsAt)
	until := int64(endless)
	if t.Status != tracking.TripActive {
		until = t.EndedAt.UnixMilli()
	}
	args := []any{
		string(t.TrackingID), string(t.DriverID), t.Person, string(t.TaskID), int(t.Status),
		startLng, startLat, endLng, endLat, t.StartLocation, t.EndLocation,
	}
	return append(append(args, placeValues(t.Dest)...), millis(t.StartedAt), millis(t.EndedAt), until, millis(t.TTL),
		millis(t.GeocodeAt), t.Link.Generation, hashValue(t.Link.Hash), millis(t.Link.MadeAt), millis(t.UpdatedAt))
}

// putTrip queues a new row, or another one in place of the old one. Given is what that gives it.
func (x *tx) putTrip(app int32, t *tracking.Trip, given *tracking.Given) {
	values := tripValues(t)
	if t.Version == 0 {
		x.giving(given, insertTrip, append([]any{app, string(t.ID), t.CreatedAt.UnixMilli()}, values...)...)
	} else {
		x.giving(given, updateTrip, append([]any{app, string(t.ID)}, values...)...)
	}
}

// appTrip is a trip of some application.
type appTrip struct {
	tracking.Trip
	app int32
}

// scanTrip reads tripColumns.
func scanTrip(row pgx.CollectableRow) (appTrip, error) {
	var (
		v                                                    appTrip
		t                                                    = &v.Trip
		created, started, ended, ttl, geocode, made, updated instant
		start, end                                           pointRow
		dest                                                 placeRow
		link                                                 hash
		until                                                int64
	)
	to := []any{
		&v.app, &t.ID, &t.Seq, &t.Version, &created, &t.TrackingID, &t.DriverID, &t.Person, &t.TaskID, &t.Status,
	}
	to = append(append(append(to, start.dest()...), end.dest()...), &t.StartLocation, &t.EndLocation)
	to = append(to, dest.dest()...)
	if err := row.Scan(append(to, &started, &ended, &until, &ttl, &geocode, &t.Link.Generation, &link, &made,
		&updated)...); err != nil {
		return v, err
	}
	t.StartsAt, t.EndsAt, t.Dest = start.point(), end.point(), dest.place()
	t.StartedAt, t.EndedAt, t.TTL, t.GeocodeAt = started.Time, ended.Time, ttl.Time, geocode.Time
	t.Link.Hash, t.Link.MadeAt, t.CreatedAt, t.UpdatedAt = link.Hash, made.Time, created.Time, updated.Time
	return v, nil
}

// plainTrip reads tripColumns for who knows the application.
func plainTrip(row pgx.CollectableRow) (tracking.Trip, error) {
	t, err := scanTrip(row)
	return t.Trip, err
}

const (
	selectTrips      = `SELECT` + tripColumns + ` FROM tracking.trips WHERE `
	selectTrip       = selectTrips + `app = $1 AND id = $2`
	selectActiveTrip = selectTrips + `app = $1 AND tracking_id = $2 AND status = 1`
	selectTripByLink = selectTrips + `link_hash = $1`
)

// Trip implements [tracking.TripReader].
func (s *Store) Trip(ctx context.Context, app tracking.AppID, id tracking.TripID) (tracking.Trip, error) {
	return oneIn(ctx, s, app, plainTrip, selectTrip, string(id))
}

// ActiveTrip implements [tracking.TripReader].
func (s *Store) ActiveTrip(ctx context.Context, app tracking.AppID, id tracking.TrackingID) (tracking.Trip, error) {
	return oneIn(ctx, s, app, plainTrip, selectActiveTrip, string(id))
}

// TripByLink implements [tracking.TripReader].
func (s *Store) TripByLink(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Trip, error) {
	t, err := one(ctx, s, scanTrip, selectTripByLink, hashValue(hash))
	if err != nil {
		return "", tracking.Trip{}, err
	}
	app, err := s.appOf(ctx, t.app)
	return app, t.Trip, err
}

const (
	tripsAndTracking = ` AND tracking_id = %d`
	tripsAndDriver   = ` AND driver_id = %d`
	tripsAndPerson   = ` AND person = %d`
	tripsAndStatus   = ` AND status = %d`
)

// tripsQuery is the query for a filter.
func tripsQuery(f tracking.TripFilter) (string, []any) {
	q := where{args: []any{nil, f.Limit + 1, f.Offset()}}
	if f.TrackingID != "" {
		q.and(tripsAndTracking, string(f.TrackingID))
	}
	if f.DriverID != "" {
		q.and(tripsAndDriver, string(f.DriverID))
	}
	if f.Person != "" {
		q.and(tripsAndPerson, f.Person)
	}
	if f.Status != 0 {
		q.and(tripsAndStatus, int(f.Status))
	}
	return selectTrips + `app = $1` + q.sql + newestFirst + pageEnd, q.args[1:]
}

// Trips implements [tracking.TripReader].
func (s *Store) Trips(
	ctx context.Context, app tracking.AppID, f tracking.TripFilter,
) (found []tracking.Trip, more bool, err error) {
	query, args := tripsQuery(f)
	found, err = listIn(ctx, s, app, plainTrip, query, args...)
	found, more = page(found, f.Limit)
	return found, more, err
}

const (
	requestColumns = ` d.id, r.tracking_id, r.message, r.dest_lng, r.dest_lat, r.dest_address, r.dest_name,
	r.dest_mobile, r.description, r.created_at`
	selectRequests = `SELECT` + requestColumns + ` FROM tracking.drivers d
		JOIN tracking.requests r ON r.app = d.app AND r.driver = d.n WHERE d.app = $1 AND d.id = $2`
	selectRequest      = selectRequests + ` AND r.tracking_id = $3`
	selectRequestsList = selectRequests + ` ORDER BY r.created_at, r.tracking_id`

	replaceRequest = `
INSERT INTO tracking.requests (app, driver, tracking_id, message, dest_lng, dest_lat, dest_address, dest_name,
	dest_mobile, description, created_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
ON CONFLICT (app, driver, tracking_id) DO UPDATE SET message = excluded.message, dest_lng = excluded.dest_lng,
	dest_lat = excluded.dest_lat, dest_address = excluded.dest_address, dest_name = excluded.dest_name,
	dest_mobile = excluded.dest_mobile, description = excluded.description, created_at = excluded.created_at`
	// Who closes the requests for a trip has not locked their drivers. So all that a transaction is about
	// are locked in their order: those for trips, of drivers and trips, and of drivers who go.
	lockRequests = `
SELECT tracking_id, driver FROM tracking.requests WHERE app = $1 AND (driver, tracking_id) IN (
	SELECT driver, tracking_id FROM tracking.requests WHERE app = $1 AND tracking_id = ANY ($2)
	UNION ALL SELECT d.n, u.tracking_id FROM unnest($3::text[], $4::text[]) u (driver, tracking_id)
		JOIN tracking.drivers d ON d.app = $1 AND d.id = u.driver
	UNION ALL SELECT r.driver, r.tracking_id FROM tracking.drivers d
		JOIN tracking.requests r ON r.app = d.app AND r.driver = d.n WHERE d.app = $1 AND d.id = ANY ($5))
ORDER BY driver, tracking_id FOR UPDATE`
	deleteRequest        = `DELETE FROM tracking.requests WHERE app = $1 AND driver = $2 AND tracking_id = $3`
	deleteRequestsOfTrip = `DELETE FROM tracking.requests WHERE app = $1 AND driver = ANY ($2) AND tracking_id = $3`
)

// putRequest queues a request, in place of the former one. Its driver is locked.
func (x *tx) putRequest(d *driverState, r *tracking.Request) {
	args := append([]any{d.app, d.number, string(r.TrackingID), r.Message}, placeValues(r.Dest)...)
	x.queue(replaceRequest, append(args, r.Desc, r.CreatedAt.UnixMilli())...)
}

func scanRequest(row pgx.CollectableRow) (r tracking.Request, err error) {
	var dest placeRow
	var created instant
	to := append([]any{&r.DriverID, &r.TrackingID, &r.Message}, dest.dest()...)
	err = row.Scan(append(to, &r.Desc, &created)...)
	r.Dest, r.CreatedAt = dest.place(), created.Time
	return r, err
}

// Request implements [tracking.TripReader].
func (s *Store) Request(ctx context.Context, app tracking.AppID, id tracking.RequestID) (tracking.Request, error) {
	return oneIn(ctx, s, app, scanRequest, selectRequest, string(id.DriverID), string(id.TrackingID))
}

// Requests implements [tracking.TripReader].
func (s *Store) Requests(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID,
) ([]tracking.Request, error) {
	return listIn(ctx, s, app, scanRequest, selectRequestsList, string(driver))
}
