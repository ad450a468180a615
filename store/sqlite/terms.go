package sqlite

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// What tasks are found by is an FTS5 table of whole terms, [rows.Terms], of which each begins with
// the number of its application. It is read in the order of its rowid, from the newest on, so that a
// page costs its length however common a term is. (Measured for 45 terms a task: 150 µs to write
// them, of a table of their own 900 µs.) It holds no text, so that what it is to forget has to be
// told again, as it was.

const (
	termBits = 15 // of a place: tasks that are created in one millisecond

	// allTerms are longer than any that a search has.
	allTerms = 100

	selectLastPlace = `SELECT coalesce(max(place), 1) FROM tasks INDEXED BY tasks_by_place`

	selectPlace = `SELECT coalesce(max(place) + 1, ?) FROM tasks INDEXED BY tasks_by_place WHERE place >= ? AND place < ?`
	insertTerms = `INSERT INTO task_terms (rowid, terms) VALUES (?, ?)`
	deleteTerms = `INSERT INTO task_terms (task_terms, rowid, terms) VALUES ('delete', ?, ?)`
)

// place finds a place for a task that is created now. Behind the last one it is free without a look.
func (x *tx) place(createdAt int64) (place int64, err error) {
	if x.lastPlace == 0 {
		if err := x.scan(selectLastPlace, nil, &x.lastPlace); err != nil {
			return 0, err
		}
	}
	if place = createdAt << termBits; place > x.lastPlace {
		x.lastPlace = place
		return place, nil
	}
	for ; ; createdAt++ { // until there is room
		from, to := createdAt<<termBits, (createdAt+1)<<termBits
		if err := x.scan(selectPlace, []any{from, from, to}, &place); err != nil || place < to {
			x.lastPlace = max(x.lastPlace, place)
			return place, err
		}
	}
}

// terms is what the table is told of a task.
func terms(app int64, t *tracking.Task) string {
	return string(rows.AppendTerms(make([]byte, 0, 512), t, allTerms, strconv.FormatInt(app, 10)))
}

// termsChange is what the table is to be told of a task.
type termsChange struct {
	place int64
	query string // insertTerms or deleteTerms
	terms string
}

// putTerms keeps what a task is found by, when the group ends; before is what it was, nil of a new
// one.
func (x *tx) putTerms(app, place int64, before, after *tracking.Task) {
	put := func(query string, t *tracking.Task) {
		if list := terms(app, t); list != "" {
			x.terms, x.dirty = append(x.terms, termsChange{place, query, list}), true
		}
	}
	if before != nil {
		if rows.SameTerms(before, after) {
			return
		}
		put(deleteTerms, before)
	}
	put(insertTerms, after)
}

// writeTerms tells the table what the group has changed. FTS5 writes out what it was told as a segment
// of its own, to be merged later, at each savepoint and where a rowid does not follow the last: so all
// is told at the end, in order. (Measured: a third of what a create costs, and most of its bytes.)
func (x *tx) writeTerms() error {
	slices.SortStableFunc(x.terms, func(a, b termsChange) int { return cmp.Compare(a.place, b.place) })
	for _, c := range x.terms {
		if err := x.exec(c.query, c.place, c.terms); err != nil {
			return err
		}
	}
	return nil
}

// commitTerms commits the transaction, upon which FTS5 writes its segments and merges some. The pages that
// this frees have nothing that was to go, as long as no terms are deleted with it: so they are left as they
// are until they are used again or the file is compacted. To overwrite them would be to write each once
// more. (Measured: 7 % of the bytes of a create.)
func (x *tx) commitTerms() error {
	deletes := func(c termsChange) bool { return c.query == deleteTerms }
	if x.store.path == "" || len(x.terms) == 0 || slices.ContainsFunc(x.terms, deletes) {
		return x.exec("COMMIT")
	}
	err := x.exec("PRAGMA secure_delete = FAST")
	if err == nil {
		err = x.exec("COMMIT")
	}
	if e := x.exec("PRAGMA secure_delete = ON"); e != nil {
		x.store.halt(e) // what is deleted next would not be overwritten
	}
	return err
}

// match is what the table is asked for; "": it finds nothing.
func match(app int64, f tracking.TaskFilter) string {
	wanted, _ := rows.Wanted(f, allTerms)
	number := strconv.FormatInt(app, 10)
	var either []string
	for _, all := range wanted {
		either = append(either, "("+number+strings.Join(all, " AND "+number)+")")
	}
	return strings.Join(either, " OR ")
}

// lastPlace is the greatest place of a task created by then.
func lastPlace(createdAt int64) int64 {
	if createdAt >= math.MaxInt64>>termBits {
		return math.MaxInt64
	}
	return (createdAt + 1000) << termBits // whose millisecond was full is a little behind
}

const (
	selectUnfound = `
SELECT seq, app, place, type, status, order_id, waiting, updated_at, window_from, window_to, more,
	pickup_lng AS "pickup.lng", pickup_lat AS "pickup.lat", pickup_address AS "pickup.address",
	pickup_name AS "pickup.name", pickup_mobile AS "pickup.mobile",
	drop_lng AS "drop.lng", drop_lat AS "drop.lat", drop_address AS "drop.address",
	drop_name AS "drop.name", drop_mobile AS "drop.mobile"
FROM tasks WHERE seq > ? ORDER BY seq LIMIT 1000`
	updateFound = `UPDATE tasks SET late_from = ?, seeks = ? WHERE seq = ?`
)

type unfoundRow struct {
	taskRow
	Place int64
}

// listAll notes of the tasks that there are what lists go by since version 7.
func listAll(ctx context.Context, tx *sqlx.Tx) error {
	return eachUnfound(ctx, tx, func(r unfoundRow, t tracking.Task) error {
		_, err := tx.ExecContext(ctx, updateFound, millis(t.LateFrom()), t.Seeks(), r.Seq)
		return err
	})
}

// findAll tells the table what the tasks that there are are found by since version 10.
func findAll(ctx context.Context, tx *sqlx.Tx) error {
	return eachUnfound(ctx, tx, func(r unfoundRow, t tracking.Task) error {
		list := terms(r.App, &t)
		if list == "" {
			return nil
		}
		_, err := tx.ExecContext(ctx, insertTerms, r.Place, list)
		return err
	})
}

func eachUnfound(ctx context.Context, tx *sqlx.Tx, do func(unfoundRow, tracking.Task) error) error {
	for after := int64(math.MinInt64); ; {
		var list []unfoundRow
		if err := tx.SelectContext(ctx, &list, selectUnfound, after); err != nil || len(list) == 0 {
			return err
		}
		for _, r := range list {
			after = r.Seq
			t, err := r.task()
			if err != nil {
				return err
			}
			if err := do(r, t); err != nil {
				return err
			}
		}
	}
}
