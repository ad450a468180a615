package postgres

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

const driverColumns = ` d.app, d.id, d.n, d.person, d.version, d.name, d.mobile, d.email, d.available, d.properties,
	d.push, d.route, d.leg_at, d.max_open_tasks, d.silent, d.duty_at, d.off_duty_at,
	d.token_generation, d.app_token, d.ingest_token, d.created_at, d.updated_at,
	p.seen_at, p.oldest_at, p.skew_least, p.skew_recent, p.skew_arrivals, p.unread, p.rewrites, p.tail,
	p.fix_time, p.fix_lng, p.fix_lat, p.fix_event_id, p.fix_accuracy, p.fix_speed, p.fix_bearing, p.fix_battery,
	p.fix_trusted, p.last_notice, p.stamp`

// Drivers with their positions: there is one for each.
const (
	selectDrivers = `SELECT` + driverColumns + fromDrivers
	fromDrivers   = ` FROM tracking.drivers d JOIN tracking.positions p ON p.app = d.app AND p.driver = d.n`
)

// driverState is a driver as a transaction knows him: the row and what it needs to know beside it.
type driverState struct {
	tracking.Driver
	app        int32
	number     int64
	oldest     *int64 // when the oldest fix was, UTC ms; nil: there is none
	lastNotice int64
	stamp      int64 // of the row of the position
}

// scanDriver reads driverColumns.
func scanDriver(row pgx.CollectableRow) (*driverState, error) { return scanDriverAnd(row) }

// scanDriverAnd reads driverColumns, and what more there is of a row.
func scanDriverAnd(row pgx.CollectableRow, more ...any) (*driverState, error) {
	var (
		d                                    driverState
		leg, duty, offDuty, created, updated instant
		seen                                 instant
		appToken, ingestToken                hash
		most                                 *int
		least, recent                        reading
		tail                                 text
		fix                                  fixRow
		properties                           map[string]string
		push                                 []rows.Push
		route                                []tracking.Stop
	)
	dest := []any{
		&d.app, &d.ID, &d.number, &d.Person, &d.Version, &d.Name, &d.Mobile, &d.Email, &d.Available, &properties,
		&push, &route, &leg, &most, &d.Silent, &duty, &offDuty,
		&d.TokenGeneration, &appToken, &ingestToken, &created, &updated,
		&seen, &d.oldest, &least, &recent, &d.Position.Skew.Arrivals, &d.Position.Unread, &d.Position.Rewrites, &tail,
	}
	if err := row.Scan(append(append(append(dest, fix.dest()...), &d.lastNotice, &d.stamp), more...)...); err != nil {
		return nil, err
	}
	d.Seq, d.Properties, d.Push, d.Route, d.MaxOpenTasks = d.number, properties, rows.Subscriptions(push), route, most
	d.LegAt, d.DutyAt, d.OffDutyAt = leg.Time, duty.Time, offDuty.Time
	d.CreatedAt, d.UpdatedAt = created.Time, updated.Time
	d.AppToken, d.IngestToken = appToken.Hash, ingestToken.Hash
	d.Position.Fix, d.Position.Tail, d.Position.SeenAt = fix.fix(), string(tail), seen.Time
	d.Position.Skew.Least, d.Position.Skew.Recent = least.Reading, recent.Reading
	return &d, nil
}

// plainDriver reads driverColumns for who wants no more than the driver.
func plainDriver(row pgx.CollectableRow) (tracking.Driver, error) {
	d, err := scanDriver(row)
	if err != nil {
		return tracking.Driver{}, err
	}
	return d.Driver, nil
}

const (
	// The lock comes first, in a statement of its own: the row that is read with it would be that of
	// before the wait.
	lockPositions = `
SELECT p.driver FROM tracking.positions p WHERE p.app = $1 AND p.driver IN (
	SELECT n FROM tracking.drivers WHERE app = $1 AND id = ANY ($2)) ORDER BY p.driver FOR UPDATE`
	selectLocked = selectDrivers + ` WHERE d.app = $1 AND d.id = ANY ($2)`
)

const driverSet = `person, name, mobile, email, available, properties, push, route, leg_at, max_open_tasks, silent,
	duty_at, off_duty_at, token_generation, app_token, ingest_token, updated_at`

var (
	insertDriver = `INSERT INTO tracking.drivers (app, n, id, version, created_at, ` + driverSet + `)
		VALUES (` + params(1, 5+17) + `)`
	updateDriver = `UPDATE tracking.drivers SET version = version + 1, (` + driverSet + `) = ROW (` + params(3, 17) + `)
		WHERE app = $1 AND id = $2`
)

const insertPosition = `
INSERT INTO tracking.positions (app, driver, id, class, open_tasks, heard, last_notice)
VALUES ($1, $2, $3, $4, $5, $6, $7)`

// updateClass keeps what a search goes by, and tells by the stamp that the driver's row is written.
const updateClass = `
UPDATE tracking.positions SET class = $3, open_tasks = $4, heard = $5, stamp = stamp + 1
WHERE app = $1 AND driver = $2`

// params are so many parameters of a statement, from $first on.
func params(first, n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("$" + strconv.Itoa(first+i))
	}
	return b.String()
}

// Classes of drivers, by which searches pass over who is not wanted. Who is on offer and has no limit
// of his own has the class of as many open tasks.
const (
	classOffDuty = 0
	classSilent  = 1
	classOnOffer = 2  // and the number of open tasks
	classMost    = 10 // the last of these: so many, or more
	classFree    = 11 // on offer, with fewer open tasks than a limit of his own
	classFull    = 12 // on offer, with as many as that, or more
)

// classOf is the class of a driver.
func classOf(d *tracking.Driver) int16 {
	switch {
	case !d.Available:
		return classOffDuty
	case d.Silent:
		return classSilent
	case d.MaxOpenTasks != nil && d.Full(0):
		return classFull
	case d.MaxOpenTasks != nil:
		return classFree
	}
	return int16(min(classOnOffer+d.OpenTasks(), classMost))
}

// heardBits are those of a moment in milliseconds that do not matter for who is silent: 4.4 minutes.
const heardBits = 18

// heardOf is when a driver was heard of, or came on duty, as the sweep of silence goes by it.
func heardOf(d *tracking.Driver) int64 {
	return max(d.Position.SeenAt.UnixMilli(), d.DutyAt.UnixMilli()) >> heardBits
}

// driverValues are the columns of driverSet.
func driverValues(d *tracking.Driver) ([]any, error) {
	properties, err := jsonValue(d.Properties, len(d.Properties))
	if err != nil {
		return nil, err
	}
	push, err := jsonValue(rows.Pushes(d.Push), len(d.Push))
	if err != nil {
		return nil, err
	}
	route, err := jsonValue(d.Route, len(d.Route))
	if err != nil {
		return nil, err
	}
	return []any{
		d.Person, d.Name, d.Mobile, d.Email, d.Available, properties, push, route, millis(d.LegAt), d.MaxOpenTasks,
		d.Silent, millis(d.DutyAt), millis(d.OffDutyAt), d.TokenGeneration, hashValue(d.AppToken),
		hashValue(d.IngestToken), millis(d.UpdatedAt),
	}, nil
}

const updatePosition = `
UPDATE tracking.positions SET class = $3, cell = $4, heard = $5, oldest_at = $6, seen_at = $7, skew_least = $8,
	skew_recent = $9, skew_arrivals = $10, unread = $11, rewrites = $12, tail = $13,
	fix_time = $14, fix_lng = $15, fix_lat = $16, fix_event_id = $17, fix_accuracy = $18, fix_speed = $19,
	fix_bearing = $20, fix_battery = $21, fix_trusted = $22, stamp = stamp + 1
WHERE app = $1 AND driver = $2`

// putPosition queues where a driver is now.
func (x *tx) putPosition(d *driverState) {
	p := d.Position
	var cell *int64
	if p.Located() {
		cell = new(cellOf(p.Fix.LngLat))
	}
	args := []any{
		d.app, d.number, classOf(&d.Driver), cell, heardOf(&d.Driver), d.oldest, millis(p.SeenAt),
		readingValue(p.Skew.Least), readingValue(p.Skew.Recent), p.Skew.Arrivals, p.Unread, p.Rewrites,
		textValue(p.Tail),
	}
	x.queue(updatePosition, append(args, fixValues(p.Fix)...)...)
}

const (
	selectDriver              = selectDrivers + ` WHERE d.app = $1 AND d.id = $2`
	selectDriverByAppToken    = selectDrivers + ` WHERE d.app_token = $1`
	selectDriverByIngestToken = selectDrivers + ` WHERE d.ingest_token = $1`
)

// Driver implements [tracking.DriverReader].
func (s *Store) Driver(ctx context.Context, app tracking.AppID, id tracking.DriverID) (tracking.Driver, error) {
	return oneIn(ctx, s, app, plainDriver, selectDriver, string(id))
}

// DriverByToken implements [tracking.DriverReader].
func (s *Store) DriverByToken(
	ctx context.Context, kind tracking.TokenKind, hash tracking.Hash,
) (tracking.AppID, tracking.Driver, error) {
	query := selectDriverByAppToken
	if kind == tracking.TokenIngest {
		query = selectDriverByIngestToken
	}
	d, err := one(ctx, s, scanDriver, query, hashValue(hash))
	if err != nil {
		return "", tracking.Driver{}, err
	}
	app, err := s.appOf(ctx, d.app)
	return app, d.Driver, err
}

// Lists of drivers without a place. The planner chooses between the order of age and the rarest
// property.
const (
	driversOldestFirst  = ` ORDER BY d.created_at, d.n LIMIT $2 OFFSET $3`
	driversByAge        = selectDrivers + ` WHERE d.app = $1` + driversOldestFirst
	driversByAvailable  = selectDrivers + ` WHERE d.app = $1 AND d.available = $4` + driversOldestFirst
	driversByProperties = selectDrivers + ` WHERE d.app = $1 AND d.properties @> $4::jsonb` + driversOldestFirst
	driversByBoth       = selectDrivers + ` WHERE d.app = $1 AND d.properties @> $4::jsonb AND d.available = $5` +
		driversOldestFirst
)

// driversQuery is the query for a filter without a place.
func driversQuery(f tracking.DriverFilter) (query string, args []any) {
	args = []any{f.Limit + 1, f.Offset()}
	switch {
	case len(f.Properties) > 0 && f.Available != nil:
		return driversByBoth, append(args, propertiesValue(f.Properties), *f.Available)
	case len(f.Properties) > 0:
		return driversByProperties, append(args, propertiesValue(f.Properties))
	case f.Available != nil:
		return driversByAvailable, append(args, *f.Available)
	}
	return driversByAge, args
}

// propertiesValue is what drivers must have, for @>.
func propertiesValue(m map[string]string) string {
	b, _ := json.Marshal(m) // of texts: cannot fail
	return string(b)
}

// Drivers implements [tracking.DriverReader].
func (s *Store) Drivers(
	ctx context.Context, app tracking.AppID, f tracking.DriverFilter,
) (found []tracking.Driver, more bool, err error) {
	if f.Near != nil {
		return s.near(ctx, app, f)
	}
	for k, v := range f.Properties {
		if !rows.Text(k) || !rows.Text(v) { // which JSON would make others of
			return nil, false, ctx.Err()
		}
	}
	query, args := driversQuery(f)
	found, err = listIn(ctx, s, app, plainDriver, query, args...)
	found, more = page(found, f.Limit)
	return found, more, err
}

// deleted notes what of a driver outlives him.
// newVersion is the version of a new task or trip: none of its id has had it.
const newVersion = `(SELECT last_version + 1 FROM tracking.apps WHERE n = $1)`

const keepMarks = `
UPDATE tracking.apps SET last_version = greatest(last_version, $2), last_notice = greatest(last_notice, $3)
WHERE n = $1`

const (
	deletePosition = `DELETE FROM tracking.positions WHERE app = $1 AND driver = $2`
	deleteDriver   = `DELETE FROM tracking.drivers WHERE app = $1 AND n = $2`
	deleteRequests = `DELETE FROM tracking.requests WHERE app = $1 AND driver = $2`
	deleteCode     = `DELETE FROM tracking.codes WHERE app = $1 AND driver = $2 AND code_hash = (
		SELECT code_hash FROM tracking.invites WHERE app = $1 AND driver = $2)`
	deleteInvite = `DELETE FROM tracking.invites WHERE app = $1 AND driver = $2`
	insertErased = `INSERT INTO tracking.erased (app, driver) VALUES ($1, $2)`
)

// marks are the greatest numbers of rows that are gone. New rows go on from there.
type marks struct{ version, notice int64 }

// after raises them to those of a row that goes.
func (m marks) after(version, notice int64) marks {
	return marks{max(m.version, version), max(m.notice, notice)}
}

// deleteDriver queues the end of a driver, who is locked; of an invite's version, 0 for none, too.
// What there may be much of is left to the purge.
func (x *tx) deleteDriver(d *driverState, invite int64) {
	x.queue(keepMarks, d.app, max(d.Version, invite), d.lastNotice)
	for _, sql := range []string{deleteRequests, deleteCode, deleteInvite, deletePosition, deleteDriver, insertErased} {
		x.queue(sql, d.app, d.number)
	}
}

// putDriver queues a new driver's row, or another one in place of the old one. It returns the driver
// as of then.
func (x *tx) putDriver(app int32, d *tracking.Driver, old *driverState, number int64, m marks) (*driverState, error) {
	values, err := driverValues(d)
	if err != nil {
		return nil, err
	}
	next := &driverState{Driver: rows.Driver(*d), app: app, number: number}
	if old == nil {
		next.Version, next.Seq, next.lastNotice = m.version+1, number, m.notice
		row := []any{app, number, string(d.ID), next.Version, d.CreatedAt.UnixMilli()}
		x.queue(insertDriver, append(row, values...)...)
		x.queue(insertPosition, app, number, string(d.ID), classOf(&next.Driver), next.OpenTasks(),
			heardOf(&next.Driver), next.lastNotice)
		return next, nil
	}
	next.number, next.oldest, next.lastNotice = old.number, old.oldest, old.lastNotice
	next.Version, next.Seq, next.CreatedAt, next.Position = old.Version+1, old.Seq, old.CreatedAt, old.Position
	x.queue(updateDriver, append([]any{app, string(d.ID)}, values...)...)
	x.queue(updateClass, app, next.number, classOf(&next.Driver), next.OpenTasks(),
		heardOf(&next.Driver))
	return next, nil
}
