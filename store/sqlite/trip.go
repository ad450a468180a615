package sqlite

import (
	"context"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

const tripColumns = `
	t.seq, t.app, t.id, t.version, t.tracking_id, t.driver_id, t.person, t.task_id, t.status,
	t.starts_at_lng AS "starts_at.lng", t.starts_at_lat AS "starts_at.lat",
	t.ends_at_lng AS "ends_at.lng", t.ends_at_lat AS "ends_at.lat", t.start_location, t.end_location,
	t.dest_lng AS "dest.lng", t.dest_lat AS "dest.lat", t.dest_address AS "dest.address",
	t.dest_name AS "dest.name", t.dest_mobile AS "dest.mobile",
	t.started_at, t.ended_at, t.covers_until, t.ttl, t.geocode_at, t.link_generation, t.link_hash, t.link_made_at,
	t.created_at, t.updated_at`

type tripRow struct {
	Seq, App       int64
	ID             tracking.TripID
	Version        int64
	TrackingID     tracking.TrackingID `db:"tracking_id"`
	DriverID       tracking.DriverID   `db:"driver_id"`
	Person         string
	TaskID         tracking.TaskID `db:"task_id"`
	Status         tracking.TripStatus
	StartsAt       pointRow `db:"starts_at"`
	EndsAt         pointRow `db:"ends_at"`
	StartLocation  string   `db:"start_location"`
	EndLocation    string   `db:"end_location"`
	Dest           placeRow
	StartedAt      instant `db:"started_at"`
	EndedAt        instant `db:"ended_at"`
	CoversUntil    int64   `db:"covers_until"`
	TTL            instant
	GeocodeAt      instant `db:"geocode_at"`
	LinkGeneration int     `db:"link_generation"`
	LinkHash       hash    `db:"link_hash"`
	LinkMadeAt     instant `db:"link_made_at"`
	CreatedAt      instant `db:"created_at"`
	UpdatedAt      instant `db:"updated_at"`
}

func (r *tripRow) trip() (tracking.Trip, error) {
	return tracking.Trip{
		ID: r.ID, TrackingID: r.TrackingID, DriverID: r.DriverID, Person: r.Person, TaskID: r.TaskID, Status: r.Status,
		StartsAt: r.StartsAt.point(), EndsAt: r.EndsAt.point(), StartLocation: r.StartLocation,
		EndLocation: r.EndLocation, Dest: r.Dest.place(), StartedAt: r.StartedAt.Time, EndedAt: r.EndedAt.Time,
		TTL: r.TTL.Time, GeocodeAt: r.GeocodeAt.Time,
		Link:      tracking.Link{Generation: r.LinkGeneration, Hash: r.LinkHash.Hash, MadeAt: r.LinkMadeAt.Time},
		CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time, Seq: r.Seq, Version: r.Version,
	}, nil
}

const (
	insertTrip = `
INSERT INTO trips (task_id, starts_at_lng, starts_at_lat, ends_at_lng, ends_at_lat, start_location, end_location,
	dest_lng, dest_lat, dest_address, dest_name, dest_mobile, started_at, ended_at, link_generation, link_made_at,
	updated_at, person,
	version, app, id, created_at, tracking_id, driver_id, status, covers_until, ttl, geocode_at, link_hash)
VALUES (?, ?, ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	selectTripIndexed = `
SELECT seq, version, tracking_id, driver_id, status, covers_until, ttl, geocode_at, link_hash FROM trips
	WHERE app = ? AND id = ?`

	// The columns that stand in no index, in the order of insertTrip.
	updateTrip = `
UPDATE trips SET task_id = ?, starts_at_lng = ?, starts_at_lat = ?, ends_at_lng = ?, ends_at_lat = ?,
	start_location = ?, end_location = ?,
	dest_lng = ?, dest_lat = ?, dest_address = ?, dest_name = ?, dest_mobile = ?, started_at = ?, ended_at = ?,
	link_generation = ?, link_made_at = ?, updated_at = ?, person = ?, version = version + 1`
	updateTripWhere = ` WHERE seq = ?`

	selectTripExists = `SELECT EXISTS (SELECT 1 FROM trips WHERE app = ? AND id = ?)`
)

// putTrip inserts or replaces a trip's row.
func (x *tx) putTrip(app int64, t *tracking.Trip, first int64) (g tracking.Given, err error) {
	startLng, startLat := pointValues(t.StartsAt)
	endLng, endLat := pointValues(t.EndsAt)
	dest := placeValues(t.Dest)
	args := make([]any, 0, 32)
	args = append(args, t.TaskID, startLng, startLat, endLng, endLat, t.StartLocation, t.EndLocation)
	args = append(args, dest[:]...)
	args = append(args, millis(t.StartedAt), millis(t.EndedAt), t.Link.Generation, millis(t.Link.MadeAt),
		millis(t.UpdatedAt), t.Person)
	until := int64(endless)
	if t.Status != tracking.TripActive {
		until = t.EndedAt.UnixMilli()
	}

	if t.Version == 0 {
		seq, err := x.insert(insertTrip, append(args, first, app, t.ID, t.CreatedAt.UnixMilli(), t.TrackingID, t.DriverID,
			t.Status, until,
			millis(t.TTL), millis(t.GeocodeAt), hashValue(t.Link.Hash))...)
		return tracking.Given{Seq: seq, Version: first}, x.inserted(err, tracking.KindTrip, string(t.ID), "tracking_id", selectTripExists, app)
	}

	var old tripRow
	if _, err := x.find(&old, selectTripIndexed, app, t.ID); err != nil {
		return g, err
	}
	if err := rows.Expect(tracking.KindTrip, t.ID, t.Version, old.Version); err != nil {
		return g, err
	}
	// One statement, with the indexed columns that have another value: each would cost its index.
	var u update
	u.begin(updateTrip, args...)
	u.set(old.TrackingID != t.TrackingID, "tracking_id", t.TrackingID)
	u.set(old.DriverID != t.DriverID, "driver_id", t.DriverID)
	u.set(old.Status != t.Status, "status", t.Status)
	u.set(old.CoversUntil != until, "covers_until", until)
	u.set(!old.TTL.Equal(rows.Time(t.TTL)), "ttl", millis(t.TTL))
	u.set(!old.GeocodeAt.Equal(rows.Time(t.GeocodeAt)), "geocode_at", millis(t.GeocodeAt))
	u.set(old.LinkHash.Hash != t.Link.Hash, "link_hash", hashValue(t.Link.Hash))
	err = u.run(x, updateTripWhere, old.Seq)
	if isConstraint(err) {
		return g, rows.UniqueConflict(tracking.KindTrip, "tracking_id")
	}
	return tracking.Given{Seq: old.Seq, Version: old.Version + 1}, err
}

const (
	selectTrip       = `SELECT` + tripColumns + ` FROM trips t WHERE t.app = ? AND t.id = ?`
	selectActiveTrip = `SELECT` + tripColumns + ` FROM trips t WHERE t.app = ? AND t.tracking_id = ? AND t.status = 1`
	selectTripByLink = `SELECT` + tripColumns + ` FROM trips t WHERE t.link_hash = ?`
)

func (s *Store) trip(ctx context.Context, query string, args ...any) (tracking.AppID, tracking.Trip, error) {
	return one(ctx, s, func(r *tripRow) (int64, tracking.Trip, error) {
		v, err := r.trip()
		return r.App, v, err
	}, query, args...)
}

// Trip implements [tracking.TripReader].
func (s *Store) Trip(ctx context.Context, app tracking.AppID, id tracking.TripID) (tracking.Trip, error) {
	n, _ := s.apps.Number(app)
	_, t, err := s.trip(ctx, selectTrip, n, id)
	return t, err
}

// ActiveTrip implements [tracking.TripReader].
func (s *Store) ActiveTrip(ctx context.Context, app tracking.AppID, id tracking.TrackingID) (tracking.Trip, error) {
	n, _ := s.apps.Number(app)
	_, t, err := s.trip(ctx, selectActiveTrip, n, id)
	return t, err
}

// TripByLink implements [tracking.TripReader].
func (s *Store) TripByLink(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Trip, error) {
	return s.trip(ctx, selectTripByLink, hashValue(hash))
}

// Lists of trips, as those of tasks.
const (
	selectTrips      = `SELECT` + tripColumns + ` FROM trips t INDEXED BY `
	tripsByAge       = `trips_by_age WHERE t.app = ?`
	tripsByTracking  = `trips_by_tracking WHERE t.app = ? AND t.tracking_id = ?`
	tripsByDriver    = `trips_by_driver WHERE t.app = ? AND t.driver_id = ?`
	tripsByStatus    = `trips_by_status WHERE t.app = ? AND t.status = ?`
	tripsAndDriver   = ` AND t.driver_id = ?`
	tripsAndPerson   = ` AND t.person = ?`
	tripsAndStatus   = ` AND t.status = ?`
	tripsNewestFirst = ` ORDER BY t.created_at DESC, t.seq DESC LIMIT ? OFFSET ?`
)

// tripsQuery is the query for a filter: the narrowest index, and the rest as conditions.
func tripsQuery(app int64, f tracking.TripFilter) (query string, args []any) {
	switch {
	case f.TrackingID != "":
		query, args = selectTrips+tripsByTracking, []any{app, f.TrackingID}
		if f.DriverID != "" {
			query, args = query+tripsAndDriver, append(args, f.DriverID)
		}
	case f.DriverID != "":
		query, args = selectTrips+tripsByDriver, []any{app, f.DriverID}
	case f.Status != 0:
		query, args = selectTrips+tripsByStatus, []any{app, f.Status}
	default:
		query, args = selectTrips+tripsByAge, []any{app}
	}
	if f.Status != 0 && (f.TrackingID != "" || f.DriverID != "") {
		query, args = query+tripsAndStatus, append(args, f.Status)
	}
	if f.Person != "" {
		query, args = query+tripsAndPerson, append(args, f.Person)
	}
	return query + tripsNewestFirst, append(args, f.Limit+1, f.Offset())
}

// Trips implements [tracking.TripReader].
func (s *Store) Trips(
	ctx context.Context, app tracking.AppID, f tracking.TripFilter,
) (list []tracking.Trip, more bool, err error) {
	n, _ := s.apps.Number(app)
	query, args := tripsQuery(n, f)
	err = s.read(ctx, func(ctx context.Context) error {
		var rows []tripRow
		if err := s.list(ctx, &rows, query, args...); err != nil {
			return err
		}
		rows, more = cut(rows, f.Limit)
		list, err = convert(rows, (*tripRow).trip)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return list, more, nil
}

const requestColumns = `
	d.id AS driver_id, r.tracking_id, r.message, r.dest_lng AS "dest.lng", r.dest_lat AS "dest.lat",
	r.dest_address AS "dest.address",
	r.dest_name AS "dest.name", r.dest_mobile AS "dest.mobile", r.description, r.created_at`

type requestRow struct {
	DriverID    tracking.DriverID   `db:"driver_id"`
	TrackingID  tracking.TrackingID `db:"tracking_id"`
	Message     string
	Dest        placeRow
	Description string
	CreatedAt   instant `db:"created_at"`
}

func (r *requestRow) request() (tracking.Request, error) {
	return tracking.Request{
		RequestID: tracking.RequestID{DriverID: r.DriverID, TrackingID: r.TrackingID},
		Message:   r.Message, Dest: r.Dest.place(), Desc: r.Description, CreatedAt: r.CreatedAt.Time,
	}, nil
}

const (
	replaceRequest = `
INSERT OR REPLACE INTO requests (driver, tracking_id, message, dest_lng, dest_lat, dest_address, dest_name,
	dest_mobile, description, created_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	deleteRequest = `DELETE FROM requests WHERE driver = ? AND tracking_id = ?`
	// Of whichever drivers of the application.
	deleteRequestsOfTrip = `
DELETE FROM requests WHERE tracking_id = ? AND (SELECT app FROM drivers WHERE seq = requests.driver) = ?`
	selectRequest = `
SELECT` + requestColumns + ` FROM drivers d JOIN requests r ON r.driver = d.seq
	WHERE d.app = ? AND d.id = ? AND r.tracking_id = ?`
	selectRequests = `
SELECT` + requestColumns + ` FROM drivers d JOIN requests r ON r.driver = d.seq WHERE d.app = ? AND d.id = ?
	ORDER BY r.created_at, r.tracking_id`
)

func (x *tx) putRequest(app int64, r *tracking.Request) error {
	d, err := x.driver(driverKey{app, r.DriverID})
	if err != nil {
		return err
	}
	if d == nil {
		return rows.VersionConflict(tracking.KindDriver, r.DriverID)
	}
	dest := placeValues(r.Dest)
	args := append([]any{d.Seq, r.TrackingID, r.Message}, dest[:]...)
	return x.exec(replaceRequest, append(args, r.Desc, r.CreatedAt.UnixMilli())...)
}

func (x *tx) closeRequest(app int64, id tracking.RequestID) error {
	if id.DriverID == "" {
		return x.exec(deleteRequestsOfTrip, id.TrackingID, app)
	}
	d, err := x.driver(driverKey{app, id.DriverID})
	if err != nil || d == nil {
		return err
	}
	return x.exec(deleteRequest, d.Seq, id.TrackingID)
}

// Request implements [tracking.TripReader].
func (s *Store) Request(
	ctx context.Context, app tracking.AppID, id tracking.RequestID,
) (r tracking.Request, err error) {
	n, _ := s.apps.Number(app)
	err = s.read(ctx, func(ctx context.Context) error {
		var row requestRow
		if err := s.get(ctx, &row, selectRequest, n, id.DriverID, id.TrackingID); err != nil {
			return err
		}
		r, err = row.request()
		return err
	})
	return r, err
}

// Requests implements [tracking.TripReader].
func (s *Store) Requests(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID,
) (list []tracking.Request, err error) {
	n, _ := s.apps.Number(app)
	err = s.read(ctx, func(ctx context.Context) error {
		var rows []requestRow
		if err := s.list(ctx, &rows, selectRequests, n, driver); err != nil {
			return err
		}
		list, err = convert(rows, (*requestRow).request)
		return err
	})
	return list, err
}
