package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"iter"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// A trip without a start began at the zero time.
const selectInTrip = `
SELECT EXISTS (SELECT 1 FROM trips INDEXED BY trips_by_window
	WHERE app = ? AND driver_id = ? AND covers_until >= ? AND coalesce(started_at, -62135596800000) <= ?
		AND person = ?)`

const (
	insertPosition = `
INSERT INTO positions (driver, oldest_at, seen_at, skew_least, skew_recent, skew_arrivals, unread, rewrites, tail, open,
	place, fix_time, fix_lng, fix_lat, fix_event_id, fix_accuracy, fix_speed, fix_bearing, fix_battery, fix_trusted)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	updateSeen = `UPDATE positions SET seen_at = ?, skew_least = ?, skew_recent = ?, skew_arrivals = ?, unread = ?,
		rewrites = ?, place = ? WHERE driver = ?`

	updatePosition = `
UPDATE positions SET seen_at = ?, skew_least = ?, skew_recent = ?, skew_arrivals = ?, unread = ?, rewrites = ?,
	tail = ?, open = ?, place = ?, fix_time = ?, fix_lng = ?, fix_lat = ?, fix_event_id = ?, fix_accuracy = ?,
	fix_speed = ?, fix_bearing = ?, fix_battery = ?, fix_trusted = ?
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

// packedValue is packed fixes in a column; NULL for none.
func packedValue(b []byte) any {
	if len(b) == 0 {
		return nil
	}
	return b
}

// appendSeen appends the columns of what an arrival says: seen_at, skew_least, skew_recent,
// skew_arrivals, unread, rewrites.
func appendSeen(args []any, p tracking.Position) []any {
	return append(args, millis(p.SeenAt), readingValue(p.Skew.Least), readingValue(p.Skew.Recent), p.Skew.Arrivals,
		p.Unread, p.Rewrites)
}

// recorded is a [tracking.Recorded] whose driver is not copied yet: that need not be done by the writer.
type recorded struct {
	outcomes         []tracking.FixOutcome
	driver           *driverState
	before           time.Time
	moved, rewritten bool
}

// record keeps a batch whose times are whole milliseconds.
func (x *tx) record(app int64, b tracking.FixBatch, ofCommit bool) (r recorded, err error) {
	k := driverKey{app, b.DriverID}
	old, err := x.driver(k)
	if err != nil {
		return r, err
	}
	if old == nil {
		return r, tracking.ErrNotFound
	}
	log := x.fixLog(app, old)
	log.ofCommit = ofCommit
	rec, err := b.Record(log, old.Driver)
	if err != nil {
		return r, err
	}
	next := new(driverState)
	*next = *old
	next.Position, next.open, next.end = rec.Driver.Position, log.open, log.end
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
	return recorded{rec.Outcomes, next, rec.Before, rec.Moved, rec.Rewritten}, log.keep(k, next)
}

// moves reports whether fixes have made something else of a driver, and whether that is more than what
// an arrival says.
func (d *driverState) moves(next *driverState) (some, more bool) {
	more = next.Position.Fix != d.Position.Fix || next.Position.Tail != d.Position.Tail || !bytes.Equal(next.open, d.open)
	return more || next.Position != d.Position, more
}

// keep notes what fixes have made of a driver. Where they have written blocks his row is written too:
// readers of the blocks see by it which open fixes go with them. So it is where they are part of a
// commit: they are seen at the moment at which its rows are.
func (l *fixLog) keep(k driverKey, next *driverState) error {
	if l.driver.placed && !l.wrote && !l.ofCommit && l.journals(l.driver) {
		return l.recordPosition(k, l.driver, next)
	}
	return l.putPosition(k, l.driver, next)
}

// recordPosition puts what differs into the journal, but the time of the oldest fix, by which rows are
// found.
func (x *tx) recordPosition(k driverKey, old, next *driverState) error {
	if next.oldest != old.oldest {
		if err := x.exec(updateOldest, next.oldest, next.Seq); err != nil {
			return err
		}
	}
	if some, _ := old.moves(next); some {
		x.dirty, x.recorded = true, appendMoved(x.recorded, old, next)
		next.place, next.behind = x.here(), true
	}
	x.setDriver(k, old, next)
	return nil
}

// putPosition writes what differs into the row, which has then also what stands in the journal.
func (x *tx) putPosition(k driverKey, old, next *driverState) error {
	pos := next.Position
	next.place, next.behind = x.here(), false
	args := make([]any, 0, 20)
	if !old.placed {
		var oldest any
		if next.oldest.Valid {
			oldest = next.oldest.Int64
		}
		next.placed = true
		args = appendSeen(append(args, next.Seq, oldest), pos)
		args = append(args, textValue(pos.Tail), packedValue(next.open), next.place)
		x.setDriver(k, old, next)
		return x.exec(insertPosition, appendMaybeFix(args, pos.Fix)...)
	}
	if next.oldest != old.oldest {
		if err := x.exec(updateOldest, next.oldest, next.Seq); err != nil {
			return err
		}
	}
	some, more := old.moves(next)
	var err error
	switch {
	case more || old.behind:
		err = x.writePosition(next)
	case some:
		err = x.exec(updateSeen, append(appendSeen(args, pos), next.place, next.Seq)...)
	default:
		next.place = old.place
	}
	x.setDriver(k, old, next)
	return err
}

// writePosition writes all of a driver's row of positions but the time of the oldest fix.
func (x *tx) writePosition(d *driverState) error {
	args := appendSeen(make([]any, 0, 20), d.Position)
	args = append(args, textValue(d.Position.Tail), packedValue(d.open), d.place)
	return x.exec(updatePosition, append(appendMaybeFix(args, d.Position.Fix), d.Seq)...)
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
	var r recorded
	// Without a savepoint: once the driver is found, only an error that ends the whole transaction
	// can stop it.
	n, known := s.apps.Number(app)
	err := s.write(ctx, change{lane: l, rows: 1 + len(b.Fixes), apply: func(x *tx) (err error) {
		n, ok := n, known
		if !ok {
			n, ok = x.number(app)
		}
		if !ok {
			return tracking.ErrNotFound
		}
		r, err = x.record(n, b, false)
		return err
	}})
	if err != nil {
		return tracking.Recorded{}, err
	}
	return tracking.Recorded{
		Outcomes: r.outcomes, Driver: r.driver.Driver.Clone(), Moved: r.moved, Before: r.before, Rewritten: r.rewritten,
	}, nil
}

// A driver's fixes, those beside the position with every block: from the block that has the first of a
// window to that which has the last. One statement sees one moment.
const (
	selectFixes = `
SELECT p.open, p.place, b.first, b.fixes FROM drivers d JOIN positions p ON p.driver = d.seq
LEFT JOIN fix_blocks b INDEXED BY fix_blocks_by_time ON b.driver = d.seq AND b.first <= ?5 AND b.first >= coalesce(
	(SELECT f.first FROM fix_blocks f WHERE f.driver = d.seq AND f.first <= ?4 ORDER BY f.first DESC LIMIT 1), ?4)
WHERE d.app = ?1 AND d.id = ?2 AND ?3 IN ('', d.person) ORDER BY b.first`
	selectFixesNewest = selectFixes + ` DESC`

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
			var chunk []tracking.Fix
			err := s.readFixes(ctx, app, driver, r, from, to, func(f tracking.KeptFix) bool {
				if f.Mark.Good() && !f.Purged {
					chunk = append(chunk, f.Fix)
				}
				return len(chunk) < limit
			})
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

// KeptFixes implements [tracking.TripReader].
func (s *Store) KeptFixes(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID, r tracking.FixRange,
) (list []tracking.KeptFix, err error) {
	from, to := rows.Window(r)
	err = s.readFixes(ctx, app, driver, r, from, to, func(f tracking.KeptFix) bool {
		list = append(list, f)
		return len(list) < r.Limit
	})
	return list, err
}

// readFixes reads fixes of a window, UTC ms, until do returns false.
func (s *Store) readFixes(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID, r tracking.FixRange, from, to int64,
	do func(tracking.KeptFix) bool,
) error {
	query := selectFixes
	if r.Newest {
		query = selectFixesNewest
	}
	n, _ := s.apps.Number(app)
	// Before the rows are read: where that is older than they are, their place is greater. Whatever
	// writes blocks writes the row of the position, too.
	var late openFixes
	if d := s.late.get(driverKey{n, driver}); d != nil {
		late = openFixes{d.place, d.open}
	}
	return s.read(ctx, func(ctx context.Context) error {
		st, err := s.statement(ctx, query)
		if err != nil {
			return err
		}
		rows, err := st.QueryContext(ctx, n, driver, r.Person, from, to)
		if err != nil {
			return err
		}
		return readPacked(rows, late, r.Newest, from, to, do)
	})
}

// openFixes are those beside a position, up to a place in the journal.
type openFixes struct {
	place  place
	packed []byte
}

// readPacked reads what selectFixes or, with newest, selectFixesNewest finds; late are the open fixes
// where the row is behind.
func readPacked(
	found *sql.Rows, late openFixes, newest bool, from, to int64, do func(tracking.KeptFix) bool,
) error {
	defer found.Close()
	more := true
	some := func(packed []byte) error {
		if !newest {
			return eachPacked(packed, func(f tracking.KeptFix) bool {
				at := f.Time.UnixMilli()
				more = at <= to && (at < from || do(f))
				return more
			})
		}
		list, err := unpack(packed)
		for i := len(list) - 1; i >= 0 && more; i-- {
			at := list[i].Time.UnixMilli()
			more = at >= from && (at > to || do(list[i]))
		}
		return err
	}
	var open []byte
	for first := true; more && found.Next(); first = false {
		var again, fixes sql.RawBytes
		var begins sql.NullInt64 // NULL: there is no block
		var has place
		if err := found.Scan(&again, &has, &begins, &fixes); err != nil {
			return err
		}
		if first {
			if open = late.packed; late.place <= has {
				open = bytes.Clone(again)
			}
			if newest {
				if err := some(open); err != nil {
					return err
				}
			}
		}
		if more && begins.Valid {
			if first, err := firstPacked(fixes); err != nil || first != begins.Int64 {
				return errPacked
			}
			if err := some(fixes); err != nil {
				return err
			}
		}
	}
	if err := found.Err(); err != nil || newest || !more {
		return err
	}
	return some(open)
}
