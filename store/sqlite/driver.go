package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"maps"
	"slices"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

const driverColumns = `
	d.seq, d.app, d.id, d.person, d.version, d.name, d.mobile, d.email, d.available, d.properties, d.push,
	d.route, d.leg_at, d.max_open_tasks, d.silent, d.duty_at, d.off_duty_at,
	d.token_generation, d.app_token, d.ingest_token, d.created_at, d.updated_at, d.last_notice,
	p.driver IS NOT NULL AS placed, coalesce(p.place, 0) AS place, p.seen_at, p.oldest_at, p.skew_least, p.skew_recent,
	coalesce(p.skew_arrivals, 0) AS skew_arrivals, coalesce(p.unread, 0) AS unread,
	coalesce(p.rewrites, 0) AS rewrites,
	p.fix_time AS "fix.time", p.fix_lng AS "fix.lng", p.fix_lat AS "fix.lat", p.fix_event_id AS "fix.event_id",
	p.fix_accuracy AS "fix.accuracy", p.fix_speed AS "fix.speed", p.fix_bearing AS "fix.bearing",
	p.fix_battery AS "fix.battery",
	p.fix_trusted AS "fix.trusted", p.tail`

type driverRow struct {
	Seq, App        int64
	ID              tracking.DriverID
	Person          string
	Version         int64
	Name            string
	Mobile          string
	Email           string
	Available       bool
	Properties      text
	Push            text
	Route           text
	LegAt           instant `db:"leg_at"`
	MaxOpenTasks    *int    `db:"max_open_tasks"`
	Silent          bool
	DutyAt          instant `db:"duty_at"`
	OffDutyAt       instant `db:"off_duty_at"`
	TokenGeneration int     `db:"token_generation"`
	AppToken        hash    `db:"app_token"`
	IngestToken     hash    `db:"ingest_token"`
	CreatedAt       instant `db:"created_at"`
	UpdatedAt       instant `db:"updated_at"`
	LastNotice      int64   `db:"last_notice"`
	Placed          bool    // there is a row of positions
	Place           place
	SeenAt          instant         `db:"seen_at"`
	OldestAt        sql.NullInt64   `db:"oldest_at"`
	SkewLeast       sql.NullFloat64 `db:"skew_least"`
	SkewRecent      sql.NullFloat64 `db:"skew_recent"`
	SkewArrivals    int             `db:"skew_arrivals"`
	Unread          int
	Rewrites        int
	Fix             fixRow
	Tail            text
}

func (r *driverRow) driver() (tracking.Driver, error) {
	properties, err := fromJSON[map[string]string](r.Properties)
	if err != nil {
		return tracking.Driver{}, err
	}
	route, err := fromJSON[[]tracking.Stop](r.Route)
	if err != nil {
		return tracking.Driver{}, err
	}
	push, err := fromJSON[[]rows.Push](r.Push)
	return tracking.Driver{
		ID: r.ID, Person: r.Person, Name: r.Name, Mobile: r.Mobile, Email: r.Email, Available: r.Available,
		Properties: properties,
		Route:      route, LegAt: r.LegAt.Time, MaxOpenTasks: r.MaxOpenTasks, Silent: r.Silent, DutyAt: r.DutyAt.Time, OffDutyAt: r.OffDutyAt.Time,
		TokenGeneration: r.TokenGeneration, AppToken: r.AppToken.Hash, IngestToken: r.IngestToken.Hash, Push: rows.Subscriptions(push),
		CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time, Seq: r.Seq, Version: r.Version,
		Position: tracking.Position{
			Fix: r.Fix.fix(), Tail: string(r.Tail), SeenAt: r.SeenAt.Time,
			Skew:   tracking.Skew{Least: reading(r.SkewLeast), Recent: reading(r.SkewRecent), Arrivals: r.SkewArrivals},
			Unread: r.Unread, Rewrites: r.Rewrites,
		},
	}, err
}

// driverKey is a driver's id in the store.
type driverKey struct {
	app int64
	id  tracking.DriverID
}

// driverState is a driver as the writer knows it: the row and what it needs to know beside it.
type driverState struct {
	tracking.Driver
	lastNotice int64
	fixesState
}

// fixesState is what a driver's fixes make, beside his position.
type fixesState struct {
	placed bool          // there is a row of positions
	behind bool          // the row lacks what stands in the journal
	late   bool          // the state is among store.late, or will be once it is committed
	oldest sql.NullInt64 // when the oldest fix was, UTC ms
	open   []byte        // the newest fixes, packed
	end    packer        // goes on behind open, where it has that: it need not be unpacked then
	place  place         // up to where it has what stands in the journal
}

// driverToWrite is a driver's row as the writer reads it.
type driverToWrite struct {
	driverRow
	Open []byte
}

func (r *driverToWrite) state() (*driverState, error) {
	d, err := r.driver()
	if err != nil {
		return nil, err
	}
	return &driverState{d, r.LastNotice, fixesState{
		placed: r.Placed, oldest: r.OldestAt, open: r.Open, place: r.Place,
	}}, nil
}

// driverCache keeps the drivers that the writer has met, so that a fix costs no read; nil: deleted. Only
// the writer changes rows, so they are never out of date; what is not committed must be forgotten.
type driverCache struct {
	known map[driverKey]*driverState
}

// maxDrivers bounds the cache. When it is full it is emptied: it fills again as fast as drivers
// report.
const maxDrivers = 1 << 15

func (c *driverCache) forget()                          { clear(c.known) }
func (c *driverCache) keep(k driverKey, d *driverState) { c.known[k] = d }

// begin makes room. Within a transaction nothing goes: what that has made of a driver is known here.
func (c *driverCache) begin() {
	if c.known == nil || len(c.known) >= maxDrivers {
		c.known = map[driverKey]*driverState{}
	}
}

const (
	selectDriver        = `SELECT` + driverColumns + byDriverID
	selectDriverToWrite = `SELECT` + driverColumns + `, p.open` + byDriverID
	byDriverID          = `
FROM drivers d LEFT JOIN positions p ON p.driver = d.seq WHERE d.app = ? AND d.id = ?`
)

// driver returns a driver as of this transaction; nil if there is none. The caller must not change
// it, but put another in its place.
func (x *tx) driver(k driverKey) (*driverState, error) {
	if d, ok := x.drivers.known[k]; ok {
		return d, nil
	}
	d := x.store.late.get(k)
	if d == nil {
		var r driverToWrite
		found, err := x.find(&r, selectDriverToWrite, k.app, k.id)
		if err != nil || !found {
			return nil, err
		}
		if d, err = r.state(); err != nil {
			return nil, err
		}
	}
	x.drivers.keep(k, d)
	return d, nil
}

// driven is what a job has made of a driver; nil: he was not there, or is deleted.
type driven struct {
	key      driverKey
	old, now *driverState
}

// setDriver notes what the transaction has made of a driver.
func (x *tx) setDriver(k driverKey, old, now *driverState) {
	if now != nil && now.behind && !now.late {
		now.late = true
		x.newly++
	}
	x.drivers.keep(k, now)
	x.driven = append(x.driven, driven{k, old, now})
}

const (
	insertDriver = `
INSERT INTO drivers (name, mobile, email, properties, push, route, leg_at, max_open_tasks, silent, duty_at, off_duty_at,
	token_generation, updated_at, person, version, last_notice, app, id, created_at, available, app_token, ingest_token)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	// The columns that stand in no index, in the order of insertDriver.
	updateDriver = `
UPDATE drivers SET name = ?, mobile = ?, email = ?, properties = ?, push = ?, route = ?, leg_at = ?, max_open_tasks = ?, silent = ?,
	duty_at = ?, off_duty_at = ?, token_generation = ?, updated_at = ?, person = ?, version = version + 1`
	updateDriverWhere = ` WHERE seq = ?`

	insertProperty   = `INSERT INTO driver_properties (app, key, value, created_at, driver) VALUES (?, ?, ?, ?, ?)`
	deleteProperties = `DELETE FROM driver_properties WHERE driver = ?`
	deleteDriver     = `DELETE FROM drivers WHERE seq = ?` // what refers to the row goes with it
	insertErased     = `INSERT INTO erased (driver) VALUES (?)`
)

// putDriver inserts or replaces a driver's row, and what is found by its properties.
func (x *tx) putDriver(app int64, d *tracking.Driver) (g tracking.Given, err error) {
	k := driverKey{app, d.ID}
	old, err := x.driver(k)
	if err != nil {
		return g, err
	}
	var present int64
	if old != nil {
		present = old.Version
	}
	if err := rows.Expect(tracking.KindDriver, d.ID, d.Version, present); err != nil {
		return g, err
	}
	properties, err := jsonValue(d.Properties, len(d.Properties))
	if err != nil {
		return g, err
	}
	push, err := jsonValue(rows.Pushes(d.Push), len(d.Push))
	if err != nil {
		return g, err
	}
	route, err := jsonValue(d.Route, len(d.Route))
	if err != nil {
		return g, err
	}
	args := make([]any, 0, 20)
	args = append(args, d.Name, d.Mobile, d.Email, properties, push, route, millis(d.LegAt), d.MaxOpenTasks, d.Silent, millis(d.DutyAt),
		millis(d.OffDutyAt),
		d.TokenGeneration, millis(d.UpdatedAt), d.Person)
	next := &driverState{Driver: rows.Driver(*d)}
	next.Version = d.Version + 1

	if old == nil {
		marks, err := x.marks(app)
		if err != nil {
			return g, err
		}
		next.Version, next.lastNotice = marks.LastVersion+1, marks.LastNotice
		next.Seq, err = x.insert(insertDriver, append(args, next.Version, next.lastNotice, app, d.ID,
			d.CreatedAt.UnixMilli(), d.Available, hashValue(d.AppToken), hashValue(d.IngestToken))...)
		if err != nil {
			return g, err
		}
	} else {
		next.fixesState, next.lastNotice = old.fixesState, old.lastNotice
		next.Seq, next.CreatedAt, next.Position = old.Seq, old.CreatedAt, old.Position
		// One statement, with the indexed columns that have another value: each would cost its
		// index.
		var u update
		u.begin(updateDriver, args...)
		u.set(old.Available != d.Available, "available", d.Available)
		u.set(old.AppToken != d.AppToken, "app_token", hashValue(d.AppToken))
		u.set(old.IngestToken != d.IngestToken, "ingest_token", hashValue(d.IngestToken))
		if err := u.run(x, updateDriverWhere, old.Seq); err != nil {
			return g, err
		}
	}
	x.setDriver(k, old, next)
	g = tracking.Given{Seq: next.Seq, Version: next.Version}

	if old != nil {
		if maps.Equal(old.Properties, d.Properties) {
			return g, nil
		}
		if err := x.exec(deleteProperties, next.Seq); err != nil {
			return g, err
		}
	}
	for key, value := range d.Properties {
		if err := x.exec(insertProperty, app, key, value, next.CreatedAt.UnixMilli(), next.Seq); err != nil {
			return g, err
		}
	}
	return g, nil
}

// deleteDriver removes a driver's row, by which all readers come to what belongs to it, and leaves
// what there may be much of to the purge.
func (x *tx) deleteDriver(app int64, d *tracking.Driver) error {
	k := driverKey{app, d.ID}
	old, err := x.driver(k)
	if err != nil {
		return err
	}
	if old == nil || old.Version != d.Version {
		return rows.VersionConflict(tracking.KindDriver, d.ID)
	}
	if err := x.raise(keepMarks, old.Version, old.Seq, old.lastNotice, app); err != nil {
		return err
	}
	if err := x.fixLog(app, old).closeAll(); err != nil {
		return err
	}
	if err := x.exec(deleteDriver, old.Seq); err != nil {
		return err
	}
	if err := x.exec(insertErased, old.Seq); err != nil {
		return err
	}
	x.sweeps = true // nothing of his fixes is to be left there
	x.setDriver(k, old, nil)
	return nil
}

const (
	selectDriverByAppToken = `
SELECT` + driverColumns + ` FROM drivers d LEFT JOIN positions p ON p.driver = d.seq WHERE d.app_token = ?`
	selectDriverByIngestToken = `
SELECT` + driverColumns + ` FROM drivers d LEFT JOIN positions p ON p.driver = d.seq WHERE d.ingest_token = ?`
)

func (s *Store) driver(
	ctx context.Context, query string, args ...any,
) (app tracking.AppID, d tracking.Driver, err error) {
	err = s.readDrivers(ctx, func(ctx context.Context) error {
		var r driverRow
		if err := s.get(ctx, &r, query, args...); err != nil {
			return err
		}
		app = s.appOf(r.App)
		d, err = s.toDriver(&r)
		return err
	})
	if err != nil {
		return "", tracking.Driver{}, err
	}
	return app, d, nil
}

// toDriver is a row's driver, with what it has not yet.
func (s *Store) toDriver(r *driverRow) (tracking.Driver, error) {
	d, err := r.driver()
	s.late.correct(r, &d)
	return d, err
}

// Driver implements [tracking.DriverReader].
func (s *Store) Driver(ctx context.Context, app tracking.AppID, id tracking.DriverID) (tracking.Driver, error) {
	n, _ := s.apps.Number(app)
	_, d, err := s.driver(ctx, selectDriver, n, id)
	return d, err
}

// DriverByToken implements [tracking.DriverReader].
func (s *Store) DriverByToken(
	ctx context.Context, kind tracking.TokenKind, hash tracking.Hash,
) (tracking.AppID, tracking.Driver, error) {
	query := selectDriverByAppToken
	if kind == tracking.TokenIngest {
		query = selectDriverByIngestToken
	}
	return s.driver(ctx, query, hashValue(hash))
}

// Lists of drivers. With properties, the rarest one leads and the others are looked up for each
// driver.
const (
	selectDriversBy       = `SELECT` + driverColumns + ` FROM drivers d INDEXED BY `
	driversByAge          = `drivers_by_age LEFT JOIN positions p ON p.driver = d.seq WHERE d.app = ?`
	driversByAvailability = `drivers_by_availability
		LEFT JOIN positions p ON p.driver = d.seq WHERE d.app = ? AND d.available = ?`
	driversOldestFirst = ` ORDER BY d.created_at, d.seq LIMIT ? OFFSET ?`

	selectDriversByProperty = `SELECT` + driverColumns + driversByProperty
	driversByProperty       = `
FROM driver_properties q CROSS JOIN drivers d ON d.seq = q.driver LEFT JOIN positions p ON p.driver = d.seq
WHERE q.app = ? AND q.key = ? AND q.value = ?`
	driversAndAvailable = ` AND d.available = ?`
	driversAndProperty  = ` AND EXISTS (SELECT 1 FROM driver_properties o
		WHERE o.driver = q.driver AND o.key = ? AND o.value = ?)`
	driversByPropertyOldest   = ` ORDER BY q.created_at, q.driver LIMIT ? OFFSET ?`
	selectDriverIDsByProperty = `SELECT d.id` + driversByProperty
	selectPropertyHolders     = `SELECT count(*) FROM (SELECT 1 FROM driver_properties
		WHERE app = ? AND key = ? AND value = ? LIMIT 1000)`
	selectDriversByID = `SELECT` + driverColumns + `
		FROM json_each(?) j CROSS JOIN drivers d ON d.app = ? AND d.id = j.value
		LEFT JOIN positions p ON p.driver = d.seq`
)

// property is a filter.
type property struct{ key, value string }

// properties lists a filter's, the rarest first.
func (s *Store) properties(ctx context.Context, app int64, filter map[string]string) ([]property, error) {
	var list []property
	for k, v := range filter {
		list = append(list, property{k, v})
	}
	if len(list) < 2 {
		return list, nil
	}
	holders := map[property]int{}
	for _, p := range list {
		var n int
		if err := s.get(ctx, &n, selectPropertyHolders, app, p.key, p.value); err != nil {
			return nil, err
		}
		holders[p] = n
	}
	slices.SortFunc(list, func(a, b property) int { return holders[a] - holders[b] })
	return list, nil
}

// byProperties completes a query that begins with driversByProperty.
func byProperties(query string, app int64, list []property, available *bool) (string, []any) {
	args := []any{app, list[0].key, list[0].value}
	if available != nil {
		query, args = query+driversAndAvailable, append(args, *available)
	}
	for _, p := range list[1:] {
		query, args = query+driversAndProperty, append(args, p.key, p.value)
	}
	return query, args
}

// driversQuery is the query for a filter without a place.
func driversQuery(app int64, f tracking.DriverFilter, properties []property) (query string, args []any) {
	page := []any{f.Limit + 1, f.Offset()}
	switch {
	case len(properties) > 0:
		query, args = byProperties(selectDriversByProperty, app, properties, f.Available)
		return query + driversByPropertyOldest, append(args, page...)
	case f.Available != nil:
		return selectDriversBy + driversByAvailability + driversOldestFirst, append([]any{app, *f.Available}, page...)
	}
	return selectDriversBy + driversByAge + driversOldestFirst, append([]any{app}, page...)
}

// Drivers implements [tracking.DriverReader].
func (s *Store) Drivers(
	ctx context.Context, app tracking.AppID, f tracking.DriverFilter,
) (list []tracking.Driver, more bool, err error) {
	if f.Near != nil {
		return s.near(ctx, app, f)
	}
	n, _ := s.apps.Number(app)
	err = s.readDrivers(ctx, func(ctx context.Context) error {
		properties, err := s.properties(ctx, n, f.Properties)
		if err != nil {
			return err
		}
		query, args := driversQuery(n, f, properties)
		var rows []driverRow
		if err := s.list(ctx, &rows, query, args...); err != nil {
			return err
		}
		rows, more = cut(rows, f.Limit)
		list, err = convert(rows, s.toDriver)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return list, more, nil
}

// driversByID reads drivers, all as of one moment, in no order. It is called in readDrivers.
func (s *Store) driversByID(
	ctx context.Context, app int64, ids []tracking.DriverID,
) (map[tracking.DriverID]tracking.Driver, error) {
	b, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	var rows []driverRow
	if err := s.list(ctx, &rows, selectDriversByID, string(b), app); err != nil {
		return nil, err
	}
	found := make(map[tracking.DriverID]tracking.Driver, len(rows))
	for i := range rows {
		d, err := s.toDriver(&rows[i])
		if err != nil {
			return nil, err
		}
		found[d.ID] = d
	}
	return found, nil
}
