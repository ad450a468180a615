package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"iter"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

const (
	fixColumns = ` time, lng, lat, event_id, accuracy, speed, bearing, battery, trusted`

	insertFix = `INSERT INTO fixes (driver, mark,` + fixColumns + `) VALUES (?, ?,  ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	deleteFixesAfter = `DELETE FROM fixes WHERE driver = ? AND time > ?`

	updateFixMark = `UPDATE fixes SET mark = CASE WHEN mark < 0 THEN -?1 ELSE ?1 END WHERE driver = ?2 AND time = ?3`

	selectFixesBefore = `SELECT mark,` + fixColumns + ` FROM fixes WHERE driver = ? AND time < ?
		ORDER BY time DESC LIMIT ?`
	selectFixesFrom = `SELECT mark,` + fixColumns + ` FROM fixes WHERE driver = ? AND time >= ?
		ORDER BY time LIMIT ?`

	// A trip without a start began at the zero time.
	selectInTrip = `
SELECT EXISTS (SELECT 1 FROM trips INDEXED BY trips_by_window
	WHERE app = ? AND driver_id = ? AND covers_until >= ? AND coalesce(started_at, -62135596800000) <= ?
		AND person = ?)`
)

type keptFixRow struct {
	fixRow
	Mark tracking.FixMark
}

// kept reads a mark that is below zero once the fix was purged.
func (r *keptFixRow) kept() tracking.KeptFix {
	return tracking.KeptFix{Fix: r.fix(), Mark: max(r.Mark, -r.Mark), Purged: r.Mark < 0}
}

// fixLog is a driver's fixes inside the writer's transaction.
type fixLog struct {
	*tx
	app    int64
	driver *driverState
	args   []any
}

var _ tracking.FixLog = (*fixLog)(nil)

func (l *fixLog) InTrip(t time.Time) (in bool, err error) {
	ms := t.UnixMilli()
	err = l.get(&in, selectInTrip, l.app, l.driver.ID, ms, ms, l.driver.Person)
	return in, err
}

func (l *fixLog) Before(t time.Time, n int) ([]tracking.KeptFix, error) {
	return l.kept(selectFixesBefore, t, n)
}

func (l *fixLog) From(t time.Time, n int) ([]tracking.KeptFix, error) {
	return l.kept(selectFixesFrom, t, n)
}

func (l *fixLog) kept(query string, t time.Time, n int) ([]tracking.KeptFix, error) {
	var rows []keptFixRow
	if err := l.list(&rows, query, l.driver.Seq, t.UnixMilli(), n); err != nil {
		return nil, err
	}
	list := make([]tracking.KeptFix, len(rows))
	for i := range rows {
		list[i] = rows[i].kept()
	}
	return list, nil
}

func (l *fixLog) Put(fixes []tracking.KeptFix) error {
	for _, f := range fixes {
		l.args = appendFix(append(l.args[:0], l.driver.Seq, f.Mark), f.Fix)
		if err := l.exec(insertFix, l.args...); err != nil {
			return err
		}
	}
	return nil
}

func (l *fixLog) Forget(t time.Time) error {
	return l.exec(deleteFixesAfter, l.driver.Seq, t.UnixMilli())
}

func (l *fixLog) Mark(fixes []tracking.KeptFix) error {
	for _, f := range fixes {
		if err := l.exec(updateFixMark, f.Mark, l.driver.Seq, f.Time.UnixMilli()); err != nil {
			return err
		}
	}
	return nil
}

const (
	insertPosition = `
INSERT INTO positions (driver, oldest_at, seen_at, skew_least, skew_recent, skew_arrivals, unread, rewrites, tail,
	fix_time, fix_lng, fix_lat, fix_event_id, fix_accuracy, fix_speed, fix_bearing, fix_battery, fix_trusted)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	updateSeen = `UPDATE positions SET seen_at = ?, skew_least = ?, skew_recent = ?, skew_arrivals = ?, unread = ?,
		rewrites = ? WHERE driver = ?`

	updatePosition = `
UPDATE positions SET seen_at = ?, skew_least = ?, skew_recent = ?, skew_arrivals = ?, unread = ?, rewrites = ?,
	tail = ?, fix_time = ?, fix_lng = ?, fix_lat = ?, fix_event_id = ?, fix_accuracy = ?, fix_speed = ?, fix_bearing = ?,
	fix_battery = ?, fix_trusted = ?
WHERE driver = ?`

	updateOldest = `UPDATE positions SET oldest_at = ? WHERE driver = ?`
)

// appendMaybeFix is appendFix with NULLs for none.
func appendMaybeFix(args []any, f tracking.Fix) []any {
	if f.Time.IsZero() {
		return append(args, nil, nil, nil, nil, nil, nil, nil, nil, nil)
	}
	return appendFix(args, f)
}

// appendSeen appends the columns of what an arrival says: seen_at, skew_least, skew_recent,
// skew_arrivals, unread, rewrites.
func appendSeen(args []any, p tracking.Position) []any {
	return append(args, millis(p.SeenAt), readingValue(p.Skew.Least), readingValue(p.Skew.Recent), p.Skew.Arrivals,
		p.Unread, p.Rewrites)
}

// record keeps a batch whose times are whole milliseconds.
func (x *tx) record(app int64, b tracking.FixBatch) (tracking.Recorded, error) {
	k := driverKey{app, b.DriverID}
	old, err := x.driver(k)
	if err != nil {
		return tracking.Recorded{}, err
	}
	if old == nil {
		return tracking.Recorded{}, tracking.ErrNotFound
	}
	rec, err := b.Record(&fixLog{tx: x, app: app, driver: old}, old.Driver)
	if err != nil {
		return tracking.Recorded{}, err
	}
	next := *old
	next.Position = rec.Driver.Position
	if !b.Latest.IsZero() && next.oldest.Int64 > b.Latest.UnixMilli() { // it was forgotten
		next.oldest = sql.NullInt64{}
	}
	for i, o := range rec.Outcomes {
		if o.Kept() {
			if ms := b.Fixes[i].Time.UnixMilli(); !next.oldest.Valid || ms < next.oldest.Int64 {
				next.oldest = sql.NullInt64{Int64: ms, Valid: true}
			}
		}
	}
	if err := x.putPosition(old, &next); err != nil {
		return tracking.Recorded{}, err
	}
	x.setDriver(k, &next)
	rec.Driver = rec.Driver.Clone()
	return rec, nil
}

// putPosition writes what differs.
func (x *tx) putPosition(old, next *driverState) error {
	pos := next.Position
	args := make([]any, 0, 20)
	if !old.placed {
		var oldest any
		if next.oldest.Valid {
			oldest = next.oldest.Int64
		}
		next.placed = true
		args = append(appendSeen(append(args, next.Seq, oldest), pos), textValue(pos.Tail))
		return x.exec(insertPosition, appendMaybeFix(args, pos.Fix)...)
	}
	if next.oldest != old.oldest {
		if err := x.exec(updateOldest, next.oldest, next.Seq); err != nil {
			return err
		}
	}
	switch {
	case pos == old.Position:
		return nil
	case pos.Fix != old.Position.Fix || pos.Tail != old.Position.Tail:
		args = append(appendSeen(args, pos), textValue(pos.Tail))
		return x.exec(updatePosition, append(appendMaybeFix(args, pos.Fix), next.Seq)...)
	}
	return x.exec(updateSeen, append(appendSeen(args, pos), next.Seq)...)
}

// RecordFixes implements [tracking.Store].
func (s *Store) RecordFixes(ctx context.Context, app tracking.AppID, b tracking.FixBatch) (tracking.Recorded, error) {
	if err := cmp.Or(ctx.Err(), rows.FixTexts(b.Fixes)); err != nil {
		return tracking.Recorded{}, err
	}
	b = rows.Batch(b)
	l := small
	if len(b.Fixes) > smallBatch {
		l = large
	}
	var r tracking.Recorded
	// Without a savepoint: once the driver is found, only an error that ends the whole transaction
	// can stop it.
	err := s.write(ctx, change{lane: l, rows: 1 + len(b.Fixes), apply: func(x *tx) (err error) {
		n, ok := s.apps.Number(app)
		if !ok {
			if n, ok = x.newApps[app]; !ok {
				return tracking.ErrNotFound
			}
		}
		r, err = x.record(n, b)
		return err
	}})
	if err != nil {
		return tracking.Recorded{}, err
	}
	return r, nil
}

const (
	selectFixes = `
SELECT f.time, f.lng, f.lat, f.event_id, f.accuracy, f.speed, f.bearing, f.battery, f.trusted
FROM drivers d JOIN fixes f ON f.driver = d.seq
WHERE d.app = ?1 AND d.id = ?2 AND f.time >= ?3 AND f.time <= ?4 AND ?5 IN ('', d.person) AND f.mark IN (1, 2)
	ORDER BY f.time LIMIT ?6`
	selectFixesNewest = `
SELECT f.time, f.lng, f.lat, f.event_id, f.accuracy, f.speed, f.bearing, f.battery, f.trusted
FROM drivers d JOIN fixes f ON f.driver = d.seq
WHERE d.app = ?1 AND d.id = ?2 AND f.time >= ?3 AND f.time <= ?4 AND ?5 IN ('', d.person) AND f.mark IN (1, 2)
	ORDER BY f.time DESC LIMIT ?6`

	selectKept = `
SELECT f.time, f.lng, f.lat, f.event_id, f.accuracy, f.speed, f.bearing, f.battery, f.trusted, f.mark
FROM drivers d JOIN fixes f ON f.driver = d.seq
WHERE d.app = ?1 AND d.id = ?2 AND f.time >= ?3 AND f.time <= ?4 AND ?5 IN ('', d.person) ORDER BY f.time LIMIT ?6`
	selectKeptNewest = `
SELECT f.time, f.lng, f.lat, f.event_id, f.accuracy, f.speed, f.bearing, f.battery, f.trusted, f.mark
FROM drivers d JOIN fixes f ON f.driver = d.seq
WHERE d.app = ?1 AND d.id = ?2 AND f.time >= ?3 AND f.time <= ?4 AND ?5 IN ('', d.person) ORDER BY f.time DESC LIMIT ?6`

	fixChunk = 1000
)

// Fixes implements [tracking.TripReader]. Between chunks it holds nothing: however long the caller
// takes, the log can be emptied.
func (s *Store) Fixes(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID, r tracking.FixRange,
) iter.Seq2[tracking.Fix, error] {
	return func(yield func(tracking.Fix, error) bool) {
		from, to := rows.Window(r)
		left := r.Limit
		for {
			limit := fixChunk
			if r.Limit > 0 {
				limit = min(limit, left)
			}
			chunk, err := s.fixChunk(ctx, app, driver, r.Person, from, to, r.Newest, limit)
			if err != nil {
				yield(tracking.Fix{}, err)
				return
			}
			for _, f := range chunk {
				if !yield(f, nil) {
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

// fixChunk reads up to limit good fixes of a window, UTC ms.
func (s *Store) fixChunk(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID, person string, from, to int64, newest bool,
	limit int,
) (chunk []tracking.Fix, err error) {
	query := selectFixes
	if newest {
		query = selectFixesNewest
	}
	err = s.readFixes(ctx, query, app, driver, person, from, to, limit,
		func(r *keptFixRow) []any { return r.places() }, func(r *keptFixRow) { chunk = append(chunk, r.fix()) })
	return chunk, err
}

// KeptFixes implements [tracking.TripReader].
func (s *Store) KeptFixes(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID, r tracking.FixRange,
) (list []tracking.KeptFix, err error) {
	query := selectKept
	if r.Newest {
		query = selectKeptNewest
	}
	from, to := rows.Window(r)
	all := func(r *keptFixRow) []any { return append(r.places(), &r.Mark) }
	err = s.readFixes(ctx, query, app, driver, r.Person, from, to, r.Limit, all, func(r *keptFixRow) {
		list = append(list, r.kept())
	})
	return list, err
}

// places are where the columns of fixColumns go.
func (r *fixRow) places() []any {
	return []any{&r.Time, &r.Lng, &r.Lat, &r.EventID, &r.Accuracy, &r.Speed, &r.Bearing, &r.Battery, &r.Trusted}
}

// readFixes reads fixes of a window, UTC ms, one row after another: places says where its columns
// go.
func (s *Store) readFixes(
	ctx context.Context, query string, app tracking.AppID, driver tracking.DriverID, person string,
	from, to int64, limit int, places func(*keptFixRow) []any, add func(*keptFixRow),
) error {
	n, _ := s.apps.Number(app)
	return s.read(ctx, func(ctx context.Context) error {
		st, err := s.statement(ctx, query)
		if err != nil {
			return err
		}
		rows, err := st.QueryContext(ctx, n, driver, from, to, person, limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var r keptFixRow
			if err := rows.Scan(places(&r)...); err != nil {
				return err
			}
			add(&r)
		}
		return rows.Err()
	})
}
