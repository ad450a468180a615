package sqlite

import (
	"context"
	"database/sql"
	"iter"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

const (
	fixColumns = ` time, lng, lat, event_id, accuracy, speed, bearing, battery, trusted`

	upsertFix = `
INSERT INTO fixes (driver, mark,` + fixColumns + `) VALUES (?, ?,  ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (driver, time) DO UPDATE SET mark = CASE WHEN mark < 0 THEN -excluded.mark ELSE excluded.mark END`

	selectFixMark       = `SELECT mark FROM fixes WHERE driver = ? AND time = ?`
	deleteFix           = `DELETE FROM fixes WHERE driver = ? AND time = ?`
	selectFixBefore     = `SELECT abs(mark) AS mark,` + fixColumns + ` FROM fixes WHERE driver = ? AND time < ? ORDER BY time DESC LIMIT 1`
	selectGoodFixBefore = `SELECT abs(mark) AS mark,` + fixColumns + ` FROM fixes WHERE driver = ? AND time < ? AND abs(mark) <> 3 ORDER BY time DESC LIMIT 1`
	selectFixesAfter    = `SELECT abs(mark) AS mark,` + fixColumns + ` FROM fixes WHERE driver = ? AND time > ? ORDER BY time LIMIT ?`

	// A trip without a start began at the zero time.
	selectInTrip = `
SELECT EXISTS (SELECT 1 FROM trips INDEXED BY trips_by_window
	WHERE app = ? AND driver_id = ? AND covers_until >= ? AND coalesce(started_at, -62135596800000) <= ?)`
)

type keptFixRow struct {
	fixRow
	Mark tracking.FixMark
}

func (r *keptFixRow) kept() tracking.KeptFix { return tracking.KeptFix{Fix: r.fix(), Mark: r.Mark} }

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
	err = l.get(&in, selectInTrip, l.app, l.driver.ID, ms, ms)
	return in, err
}

// Has removes a purged fix of that time: the caller is about to put another one there.
func (l *fixLog) Has(t time.Time) (bool, error) {
	var mark int
	found, err := l.find(&mark, selectFixMark, l.driver.Seq, t.UnixMilli())
	if err != nil || !found {
		return false, err
	}
	if mark < 0 {
		return false, l.exec(deleteFix, l.driver.Seq, t.UnixMilli())
	}
	return true, nil
}

func (l *fixLog) Before(t time.Time, good bool) (f tracking.KeptFix, ok bool, err error) {
	query := selectFixBefore
	if good {
		query = selectGoodFixBefore
	}
	var r keptFixRow
	ok, err = l.find(&r, query, l.driver.Seq, t.UnixMilli())
	return r.kept(), ok, err
}

// After reads in growing chunks: mostly the caller stops after one or two.
func (l *fixLog) After(t time.Time) iter.Seq2[tracking.KeptFix, error] {
	return func(yield func(tracking.KeptFix, error) bool) {
		for after, limit := t.UnixMilli(), 4; ; limit = min(2*limit, 1024) {
			var rows []keptFixRow
			if err := l.list(&rows, selectFixesAfter, l.driver.Seq, after, limit); err != nil {
				yield(tracking.KeptFix{}, err)
				return
			}
			for i := range rows {
				if !yield(rows[i].kept(), nil) {
					return
				}
			}
			if len(rows) < limit {
				return
			}
			after = rows[len(rows)-1].Time.Int64
		}
	}
}

func (l *fixLog) Put(f tracking.KeptFix) error {
	l.args = appendFix(append(l.args[:0], l.driver.Seq, f.Mark), f.Fix)
	return l.exec(upsertFix, l.args...)
}

const (
	insertPosition = `
INSERT INTO positions (driver, oldest_at, seen_at,
	fix_time, fix_lng, fix_lat, fix_event_id, fix_accuracy, fix_speed, fix_bearing, fix_battery, fix_trusted,
	cand_time, cand_lng, cand_lat, cand_event_id, cand_accuracy, cand_speed, cand_bearing, cand_battery, cand_trusted)
VALUES (?, ?, ?,  ?, ?, ?, ?, ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	updateSeen = `UPDATE positions SET seen_at = ? WHERE driver = ?`

	updateFix = `
UPDATE positions SET seen_at = ?,
	fix_time = ?, fix_lng = ?, fix_lat = ?, fix_event_id = ?, fix_accuracy = ?, fix_speed = ?, fix_bearing = ?, fix_battery = ?, fix_trusted = ?
WHERE driver = ?`

	updatePosition = `
UPDATE positions SET seen_at = ?,
	fix_time = ?, fix_lng = ?, fix_lat = ?, fix_event_id = ?, fix_accuracy = ?, fix_speed = ?, fix_bearing = ?, fix_battery = ?, fix_trusted = ?,
	cand_time = ?, cand_lng = ?, cand_lat = ?, cand_event_id = ?, cand_accuracy = ?, cand_speed = ?, cand_bearing = ?, cand_battery = ?, cand_trusted = ?
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
	log := &fixLog{tx: x, app: app, driver: old}
	pos, outcomes, err := b.Record(log, old.Driver)
	if err != nil {
		return tracking.Recorded{}, err
	}
	next := *old
	next.Position = pos
	for i, o := range outcomes {
		if o == tracking.FixJump || o == tracking.FixLate || o == tracking.FixLive {
			if ms := b.Fixes[i].Time.UnixMilli(); !next.oldest.Valid || ms < next.oldest.Int64 {
				next.oldest = sql.NullInt64{Int64: ms, Valid: true}
			}
		}
	}
	if err := x.putPosition(old, &next); err != nil {
		return tracking.Recorded{}, err
	}
	x.setDriver(k, &next)
	return tracking.Recorded{Outcomes: outcomes, Driver: next.Driver.Clone(), Moved: pos.Fix != old.Position.Fix}, nil
}

// putPosition writes what differs.
func (x *tx) putPosition(old, next *driverState) error {
	pos := next.Position
	args := make([]any, 0, 24)
	if !old.placed {
		var oldest any
		if next.oldest.Valid {
			oldest = next.oldest.Int64
		}
		args = appendMaybeFix(append(args, next.Seq, oldest, millis(pos.SeenAt)), pos.Fix)
		next.placed = true
		return x.exec(insertPosition, appendMaybeFix(args, pos.Candidate)...)
	}
	if next.oldest != old.oldest {
		if err := x.exec(updateOldest, next.oldest.Int64, next.Seq); err != nil {
			return err
		}
	}
	switch {
	case pos == old.Position:
		return nil
	case pos.Candidate != old.Position.Candidate:
		args = appendMaybeFix(append(args, millis(pos.SeenAt)), pos.Fix)
		return x.exec(updatePosition, append(appendMaybeFix(args, pos.Candidate), next.Seq)...)
	case pos.Fix != old.Position.Fix:
		args = appendMaybeFix(append(args, millis(pos.SeenAt)), pos.Fix)
		return x.exec(updateFix, append(args, next.Seq)...)
	}
	return x.exec(updateSeen, millis(pos.SeenAt), next.Seq)
}

// RecordFixes implements [tracking.Store].
func (s *Store) RecordFixes(ctx context.Context, app tracking.AppID, b tracking.FixBatch) (tracking.Recorded, error) {
	b = wholeBatch(b)
	var r tracking.Recorded
	// Without a savepoint: once the driver is found, only an error that ends the whole transaction can stop it.
	err := s.write(ctx, false, func(x *tx) (err error) {
		n, ok := s.apps.number(app)
		if !ok {
			if n, ok = x.newApps[app]; !ok {
				return tracking.ErrNotFound
			}
		}
		r, err = x.record(n, b)
		return err
	})
	if err != nil {
		return tracking.Recorded{}, err
	}
	return r, nil
}

const (
	selectFixes = `
SELECT f.time, f.lng, f.lat, f.event_id, f.accuracy, f.speed, f.bearing, f.battery, f.trusted
FROM drivers d JOIN fixes f ON f.driver = d.seq
WHERE d.app = ? AND d.id = ? AND f.time >= ? AND f.time <= ? AND f.mark IN (1, 2) ORDER BY f.time LIMIT ?`
	selectFixesNewest = `
SELECT f.time, f.lng, f.lat, f.event_id, f.accuracy, f.speed, f.bearing, f.battery, f.trusted
FROM drivers d JOIN fixes f ON f.driver = d.seq
WHERE d.app = ? AND d.id = ? AND f.time >= ? AND f.time <= ? AND f.mark IN (1, 2) ORDER BY f.time DESC LIMIT ?`

	fixChunk = 1000
)

// Fixes implements [tracking.TripReader]. Between chunks it holds nothing: however long the caller takes, the log can be emptied.
func (s *Store) Fixes(ctx context.Context, app tracking.AppID, driver tracking.DriverID, r tracking.FixRange) iter.Seq2[tracking.Fix, error] {
	return func(yield func(tracking.Fix, error) bool) {
		from, to := ceilMillis(r.From), int64(endless)
		if !r.To.IsZero() {
			to = r.To.UnixMilli()
		}
		left := r.Limit
		for {
			limit := fixChunk
			if r.Limit > 0 {
				limit = min(limit, left)
			}
			chunk, err := s.fixChunk(ctx, app, driver, from, to, r.Newest, limit)
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

func (s *Store) fixChunk(ctx context.Context, app tracking.AppID, driver tracking.DriverID, from, to int64, newest bool, limit int) (chunk []tracking.Fix, err error) {
	query := selectFixes
	if newest {
		query = selectFixesNewest
	}
	n, _ := s.apps.number(app)
	err = s.read(ctx, func(ctx context.Context) error {
		st, err := s.statement(ctx, query)
		if err != nil {
			return err
		}
		rows, err := st.QueryContext(ctx, n, driver, from, to, limit)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var r fixRow
			if err := rows.Scan(&r.Time, &r.Lng, &r.Lat, &r.EventID, &r.Accuracy, &r.Speed, &r.Bearing, &r.Battery, &r.Trusted); err != nil {
				return err
			}
			chunk = append(chunk, r.fix())
		}
		return rows.Err()
	})
	return chunk, err
}
