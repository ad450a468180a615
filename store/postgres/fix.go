package postgres

import (
	"context"
	"errors"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// arrival is a batch that a transaction keeps for a driver whom it has locked, and what became of
// it.
type arrival struct {
	driver *driverState // nil: there is none
	batch  tracking.FixBatch
	out    tracking.Recorded
	err    error
}

// fixing is a driver as fixes change him, and the log of these.
type fixing struct {
	*driverState
	log fixLog

	// of a driver who is known:
	seat   *seat
	was    past
	failed bool // the rule needs more than is known
}

// past is what is kept of a driver's past beside his place.
type past struct {
	oldest           *int64
	skew             tracking.Skew
	unread, rewrites int
}

func (d *driverState) past() past {
	return past{d.oldest, d.Position.Skew, d.Position.Unread, d.Position.Rewrites}
}

// record keeps batches in their order and queues what is to be written; the drivers are as of
// afterwards then. What the rule needs to know of fixes kept before is read in as few round trips
// as it has steps that depend on each other; where all fixes are newer than those kept, it is none.
func (x *tx) record(ctx context.Context, list []*arrival) error {
	of := map[*driverState]*fixing{}
	var order []*fixing // as they come
	for rest := list; len(rest) > 0; {
		var unread []*arrival // the rest of those whose log needs more
		behind := map[*driverState]bool{}
		for _, a := range rest {
			if a.driver == nil {
				a.err = tracking.ErrNotFound
				continue
			}
			f := of[a.driver]
			if f == nil {
				f = &fixing{driverState: a.driver, log: newFixLog()}
				of[a.driver] = f
				order = append(order, f)
			}
			if behind[a.driver] {
				unread = append(unread, a)
				continue
			}
			if a.err = a.judge(&f.log); errors.Is(a.err, errUnread) {
				behind[a.driver] = true
				unread = append(unread, a)
			}
		}
		if rest = unread; len(rest) > 0 {
			if err := x.readFixes(ctx, order); err != nil {
				return err
			}
		}
	}
	x.putFixes(order)
	x.putPositions(order)
	return nil
}

// judge applies the rule to the batch, and notes in the driver and in the log what has come of it. With
// an error nothing has changed but what the log wants. Of what is in the driver, the outcome has what
// nobody changes.
func (a *arrival) judge(l *fixLog) error {
	d := a.driver
	err := l.try(func() (err error) {
		a.out, err = a.batch.Record(l, d.Driver)
		return err
	})
	if errors.Is(err, errUnread) {
		if w := l.want; w.trips != nil { // the others of the batch will be asked for as well
			for _, f := range a.batch.Fixes {
				t := f.Time.UnixMilli()
				w.trips.from, w.trips.to = min(w.trips.from, t), max(w.trips.to, t)
			}
		} else {
			w.from += 2 * len(a.batch.Fixes)
		}
	}
	if err != nil {
		return err
	}
	d.Position = a.out.Driver.Position
	if latest := a.batch.Latest; !latest.IsZero() && d.oldest != nil && *d.oldest > latest.UnixMilli() {
		d.oldest = nil // it was forgotten
	}
	for i, o := range a.out.Outcomes {
		if o.Kept() {
			if t := a.batch.Fixes[i].Time.UnixMilli(); d.oldest == nil || t < *d.oldest {
				d.oldest = new(t)
			}
		}
	}
	return nil
}

// How a window of a driver's fixes, and the trips within it, are read for many at once.
const (
	keptColumns = ` f.mark, f.time, f.lng, f.lat, f.event_id, f.accuracy, f.speed, f.bearing, f.battery, f.trusted`

	selectWindowsBefore = `
SELECT u.i,` + keptColumns + `
FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::int[]) WITH ORDINALITY u (app, driver, at, n, i)
CROSS JOIN LATERAL (SELECT * FROM tracking.fixes k WHERE k.app = u.app AND k.driver = u.driver AND k.time < u.at
	ORDER BY k.time DESC LIMIT u.n) f`

	selectWindowsFrom = `
SELECT u.i,` + keptColumns + `
FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::int[]) WITH ORDINALITY u (app, driver, at, n, i)
CROSS JOIN LATERAL (SELECT * FROM tracking.fixes k WHERE k.app = u.app AND k.driver = u.driver AND k.time >= u.at
	ORDER BY k.time LIMIT u.n) f`

	// A trip without a start began at the zero time.
	selectTripWindows = `
SELECT u.i, coalesce(t.started_at, -62135596800000), t.covers_until
FROM unnest($1::int[], $2::text[], $3::text[], $4::bigint[], $5::bigint[])
	WITH ORDINALITY u (app, driver_id, person, lo, hi, i)
JOIN tracking.trips t ON t.app = u.app AND t.driver_id = u.driver_id AND t.person = u.person
	AND t.covers_until >= u.lo AND coalesce(t.started_at, -62135596800000) <= u.hi`
)

// window is a row of those: of the i-th driver that was asked for.
type window[T any] struct {
	i int
	v T
}

func scanKeptWindow(row pgx.CollectableRow) (w window[tracking.KeptFix], err error) {
	var f keptRow
	err = row.Scan(append([]any{&w.i}, f.dest()...)...)
	w.v = f.kept()
	return w, err
}

func scanTripWindow(row pgx.CollectableRow) (w window[span], err error) {
	err = row.Scan(&w.i, &w.v.from, &w.v.to)
	return w, err
}

// keptRow is a fix with its mark, which is below zero once it was purged.
type keptRow struct {
	fixRow
	mark int16
}

func (r *keptRow) dest() []any { return append([]any{&r.mark}, r.fixRow.dest()...) }

func (r *keptRow) kept() tracking.KeptFix {
	return tracking.KeptFix{Fix: r.fix(), Mark: tracking.FixMark(max(r.mark, -r.mark)), Purged: r.mark < 0}
}

// readFixes reads what the logs want, in one round trip.
func (x *tx) readFixes(ctx context.Context, drivers []*fixing) error {
	var fixes, trips []*fixLog
	var apps, tripApps []int32
	var numbers, times, lo, hi []int64
	var before, from []int32
	var ids, persons []string
	for _, d := range drivers {
		switch l := &d.log; {
		case l.want == nil:
		case l.want.trips != nil:
			trips, tripApps = append(trips, l), append(tripApps, d.app)
			ids, persons = append(ids, string(d.ID)), append(persons, d.Person)
			lo, hi = append(lo, l.want.trips.from), append(hi, l.want.trips.to)
		default:
			fixes, apps, numbers = append(fixes, l), append(apps, d.app), append(numbers, d.number)
			times, before = append(times, l.want.at), append(before, int32(l.want.before))
			from = append(from, int32(l.want.from))
		}
	}
	var earlier, later []window[tracking.KeptFix]
	var windows []window[span]
	if len(fixes) > 0 {
		x.by(ofFixes)
		queueRows(x, &earlier, scanKeptWindow, selectWindowsBefore, apps, numbers, times, before)
		queueRows(x, &later, scanKeptWindow, selectWindowsFrom, apps, numbers, times, from)
	}
	if len(trips) > 0 {
		x.by(ofTrips)
		queueRows(x, &windows, scanTripWindow, selectTripWindows, tripApps, ids, persons, lo, hi)
	}
	if err := x.flush(ctx); err != nil {
		return err
	}
	earlierOf, laterOf, tripsOf := byPlace(earlier), byPlace(later), byPlace(windows)
	for i, l := range fixes {
		l.readBefore(l.want.at, l.want.before, earlierOf[i+1])
		l.readFrom(l.want.at, l.want.from, laterOf[i+1])
		l.want = nil
	}
	for i, l := range trips {
		l.trips, l.want = tripWindows{known: l.want.trips, spans: tripsOf[i+1]}, nil
	}
	return nil
}

// positionWithout is where a driver is once all fixes before a moment, UTC ms, are purged; empty
// tells that then there are none.
func (x *tx) positionWithout(ctx context.Context, d *driverState, before int64) (
	next tracking.Position, empty bool, err error,
) {
	f := &fixing{driverState: d, log: newFixLog()}
	for {
		next, empty, err = d.Position.Purged(&f.log, fromMillis(before))
		if !errors.Is(err, errUnread) {
			return next, empty, err
		}
		if err := x.readFixes(ctx, []*fixing{f}); err != nil {
			return next, false, err
		}
	}
}

// byPlace puts together the rows of each driver that was asked for.
func byPlace[T any](list []window[T]) map[int][]T {
	m := map[int][]T{}
	for _, w := range list {
		m[w.i] = append(m[w.i], w.v)
	}
	return m
}

const (
	deleteForgotten = `DELETE FROM tracking.fixes WHERE app = $1 AND driver = $2 AND time > $3`

	fixFields = `app, driver, time, mark, trusted, lng, lat, event_id, accuracy, speed, bearing, battery`
	fixTypes  = `int, bigint, bigint, smallint, bool, float8, float8, text, float8, float8, float8, float8`

	updateMarks = `
UPDATE tracking.fixes f SET mark = CASE WHEN f.mark < 0 THEN -u.mark ELSE u.mark END
FROM unnest($1::int[], $2::bigint[], $3::bigint[], $4::smallint[]) u (app, driver, time, mark)
WHERE f.app = u.app AND f.driver = u.driver AND f.time = u.time`
)

var insertFixes = `INSERT INTO tracking.fixes (` + fixFields + `) SELECT * FROM ` + arrays(1, fixFields, fixTypes)

// putFixes queues what the logs have changed.
func (x *tx) putFixes(drivers []*fixing) {
	var marks []int16
	var marked, markedTimes []int64
	var markedApps []int32
	for _, d := range drivers {
		l := &d.log
		if l.forget != endless {
			x.by(ofFixes)
			x.queue(deleteForgotten, d.app, d.number, l.forget)
		}
		for t, m := range l.marks {
			markedApps, marked = append(markedApps, d.app), append(marked, d.number)
			markedTimes, marks = append(markedTimes, t), append(marks, int16(m))
		}
	}
	var put newFixColumns
	if put.addFresh(drivers); put.apps.there > 0 {
		x.updates()
		x.queue(insertFixes, plainValues(put.list())...)
	}
	if len(marks) > 0 {
		x.by(ofFixes)
		x.queue(updateMarks, markedApps, marked, markedTimes, marks)
	}
}

// fixColumns are fixes as columns. Those that may be missing are NULL then, all of them.
type fixColumns struct {
	time                              ints
	trusted                           bools
	lng, lat                          floats
	eventID                           strs
	accuracy, speed, bearing, battery floats
}

func (c *fixColumns) add(f *tracking.Fix) {
	there := !f.Time.IsZero()
	c.time.add(f.Time.UnixMilli(), there)
	c.trusted.add(f.Trusted, there)
	c.lng.add(f.LngLat.Lng, there)
	c.lat.add(f.LngLat.Lat, there)
	c.eventID.add(f.EventID, there && f.EventID != "")
	c.accuracy.add(f.Accuracy.Value, there && f.Accuracy.Known)
	c.speed.add(f.Speed.Value, there && f.Speed.Known)
	c.bearing.add(f.Bearing.Value, there && f.Bearing.Known)
	c.battery.add(f.Battery.Value, there && f.Battery.Known)
}

// newFixColumns are new rows of fixes as columns.
type newFixColumns struct {
	apps, drivers, marks ints
	fixColumns
}

func (c *newFixColumns) add(app int32, driver int64, mark int16, f *tracking.Fix) {
	c.apps.add(int64(app), true)
	c.drivers.add(driver, true)
	c.marks.add(int64(mark), true)
	c.fixColumns.add(f)
}

// addFresh adds the new fixes of the drivers.
func (c *newFixColumns) addFresh(drivers []*fixing) {
	for _, d := range drivers {
		for i := range d.log.fresh {
			f := &d.log.fresh[i]
			c.add(d.app, d.number, int16(f.Mark), &f.Fix)
		}
	}
}

// list are those of fixFields.
func (c *newFixColumns) list() []array {
	return []array{
		&c.apps, &c.drivers, &c.time, &c.marks, &c.trusted, &c.lng, &c.lat, &c.eventID, &c.accuracy, &c.speed, &c.bearing,
		&c.battery,
	}
}

const (
	// what a new place changes; the rest stays for a driver in whose past nothing changes, mostly
	setPlace = `cell = u.cell, heard = u.heard, seen_at = u.seen, tail = u.tail, fix_time = u.time, fix_lng = u.lng,
	fix_lat = u.lat, fix_event_id = u.event_id, fix_accuracy = u.accuracy, fix_speed = u.speed, fix_bearing = u.bearing,
	fix_battery = u.battery, fix_trusted = u.trusted, stamp = p.stamp + 1`
	placeFields = `app, driver, cell, heard, seen, tail, time, lng, lat, event_id, accuracy, speed, bearing, battery,
	trusted`
	placeTypes = `int, bigint, bigint, bigint, bigint, text, bigint, float8, float8, text, float8, float8, float8, float8,
	bool`

	setPosition = setPlace + `, oldest_at = u.oldest, skew_least = u.least, skew_recent = u.recent,
	skew_arrivals = u.arrivals, unread = u.unread, rewrites = u.rewrites`
	positionFields = placeFields + `, oldest, least, recent, arrivals, unread, rewrites`
	positionTypes  = placeTypes + `, bigint, float8, float8, bigint, bigint, bigint`
)

var updatePositions = `UPDATE tracking.positions p SET ` + setPosition + `
FROM ` + arrays(1, positionFields, positionTypes) + ` WHERE p.app = u.app AND p.driver = u.driver`

// putPositions queues where drivers are now.
func (x *tx) putPositions(drivers []*fixing) {
	if len(drivers) > 0 {
		x.updates()
		var at positionColumns
		at.add(drivers)
		x.queue(updatePositions, plainValues(at.list())...)
		for _, d := range drivers {
			d.stamp++
		}
	}
}

// positionColumns are where drivers are now, as columns.
type positionColumns struct {
	apps, numbers, cells, heard, oldest, seen ints
	least, recent                             floats
	arrivals, unread, rewrites                ints
	tails                                     strs
	fixColumns
}

func (c *positionColumns) add(drivers []*fixing) {
	for _, d := range drivers {
		p := &d.Position
		c.apps.add(int64(d.app), true)
		c.numbers.add(d.number, true)
		c.cells.add(cellOf(p.Fix.LngLat), p.Located())
		c.heard.add(heardOf(&d.Driver), true)
		if d.oldest != nil {
			c.oldest.add(*d.oldest, true)
		} else {
			c.oldest.add(0, false)
		}
		c.seen.add(p.SeenAt.UnixMilli(), p.SeenAt.UnixMilli() != zeroMillis)
		c.least.add(p.Skew.Least.Value, p.Skew.Least.Known)
		c.recent.add(p.Skew.Recent.Value, p.Skew.Recent.Known)
		c.arrivals.add(int64(p.Skew.Arrivals), true)
		c.unread.add(int64(p.Unread), true)
		c.rewrites.add(int64(p.Rewrites), true)
		c.tails.add(p.Tail, p.Tail != "")
		c.fixColumns.add(&p.Fix)
	}
}

// place are those of placeFields.
func (c *positionColumns) place() []array {
	return []array{
		&c.apps, &c.numbers, &c.cells, &c.heard, &c.seen, &c.tails, &c.time, &c.lng, &c.lat, &c.eventID, &c.accuracy,
		&c.speed, &c.bearing, &c.battery, &c.trusted,
	}
}

// list are those of positionFields.
func (c *positionColumns) list() []array {
	return append(c.place(), &c.oldest, &c.least, &c.recent, &c.arrivals, &c.unread, &c.rewrites)
}

const (
	fixesOf = ` FROM tracking.drivers d JOIN tracking.fixes f ON f.app = d.app AND f.driver = d.n
WHERE d.app = $1 AND d.id = $2 AND f.time >= $3 AND f.time <= $4 AND $5::text IN ('', d.person)`

	selectGood       = `SELECT` + keptColumns + fixesOf + ` AND f.mark IN (1, 2) ORDER BY f.time LIMIT $6`
	selectGoodNewest = `SELECT` + keptColumns + fixesOf + ` AND f.mark IN (1, 2) ORDER BY f.time DESC LIMIT $6`
	selectKept       = `SELECT` + keptColumns + fixesOf + ` ORDER BY f.time LIMIT $6`
	selectKeptNewest = `SELECT` + keptColumns + fixesOf + ` ORDER BY f.time DESC LIMIT $6`

	fixChunk = 1000
)

func scanKept(row pgx.CollectableRow) (tracking.KeptFix, error) {
	var r keptRow
	err := row.Scan(r.dest()...)
	return r.kept(), err
}

// Fixes implements [tracking.TripReader]. Between chunks it holds nothing, however long the caller
// takes.
func (s *Store) Fixes(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID, r tracking.FixRange,
) iter.Seq2[tracking.Fix, error] {
	return func(yield func(tracking.Fix, error) bool) {
		query := selectGood
		if r.Newest {
			query = selectGoodNewest
		}
		from, to := rows.Window(r)
		for left := r.Limit; ; {
			limit := fixChunk
			if r.Limit > 0 {
				limit = min(limit, left)
			}
			chunk, err := listIn(ctx, s, app, scanKept, query, string(driver), from, to, r.Person, limit)
			if err != nil {
				yield(tracking.Fix{}, err)
				return
			}
			for _, f := range chunk {
				if !yield(f.Fix, nil) {
					return
				}
			}
			left -= len(chunk)
			if len(chunk) < limit || r.Limit > 0 && left == 0 {
				return
			}
			if last := chunk[len(chunk)-1].Time.UnixMilli(); r.Newest {
				to = last - 1
			} else {
				from = last + 1
			}
		}
	}
}

// KeptFixes implements [tracking.TripReader].
func (s *Store) KeptFixes(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID, r tracking.FixRange,
) ([]tracking.KeptFix, error) {
	query := selectKept
	if r.Newest {
		query = selectKeptNewest
	}
	from, to := rows.Window(r)
	return listIn(ctx, s, app, scanKept, query, string(driver), from, to, r.Person, r.Limit)
}
