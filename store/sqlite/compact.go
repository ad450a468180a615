package sqlite

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// secure_delete overwrites what a statement deletes, where it lies. But SQLite also moves rows from
// one page to another, and what they leave behind stays in the unused part of the page, where no
// statement finds it. VACUUM writes all pages anew, with nothing in them but what there is.
//
// So a change that erases notes in its transaction that there may be remains; they are removed when
// a purge leaves nothing to do, and the note goes when the log is empty behind that. A process
// that ends before leaves the note to the next.

const (
	noteRemains   = `INSERT INTO remains (n) VALUES (1) ON CONFLICT DO NOTHING`
	selectRemains = `SELECT EXISTS (SELECT 1 FROM remains)`
	deleteRemains = `DELETE FROM remains`
)

// A store compacts itself for a thousandth of the time at most, since changes wait meanwhile.
const (
	compactShare  = 1000
	compactOften  = time.Minute
	compactSeldom = 24 * time.Hour
	compactFailed = time.Hour // after an attempt that failed, on a full disk perhaps

	compactAgain = 100 * time.Millisecond // from one look at who reads from the log to the next
)

// compaction is what was asked for, or is due.
type compaction struct {
	due     bool           // by itself
	asked   chan compacted // by a caller; nil: by none
	logOnly bool           // the file has no remains any more, but the log could not be emptied yet
	next    time.Time      // not by itself before
}

// compacted is the answer; done is false while somebody reads from the log.
type compacted struct {
	done bool
	err  error
}

// Compact writes the whole file anew, so that no byte of what was erased is left in it or its log,
// and gives space back that is not used. The store does so by itself some time after an erasure; see
// "What is erased" above. Whoever wants to choose the time calls Compact then, with
// Options.CompactOnRequest; whoever wants to know that it is done calls it after the purges.
//
// Reads go on meanwhile. Changes wait, about 20 seconds for a file of a gigabyte. It takes as much
// room on the disk as two more files of that size: in the log, and where SQLite has temporary files
// (SQLITE_TMPDIR or TMPDIR, else /var/tmp). At the end it waits for those who read from the log. When
// ctx ends Compact returns, while what it has begun goes on. Close ends it, and the next process has
// to do it, as after an erasure.
func (s *Store) Compact(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.backupBegins(ctx); err != nil { // a Backup reads from the log
		return err
	}
	defer s.backupEnds()
	answer := make(chan compacted, 1)
	for anew := true; ; anew = false {
		err := s.write(ctx, change{lane: large, rows: 1, atom: true, apply: func(x *tx) error {
			x.compaction.asked = answer
			if anew {
				x.compaction.logOnly = false
			}
			return x.exec(noteRemains)
		}})
		if err != nil {
			return err
		}
		select {
		case c := <-answer:
			if c.err != nil || c.done {
				return failure(ctx, c.err)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		select {
		case <-time.After(compactAgain):
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closing.Done():
			return rows.ErrClosed
		}
	}
}

// leavesRemains notes that the transaction erases.
func (x *tx) leavesRemains() error {
	x.erased, x.compaction.logOnly = true, false
	return x.exec(noteRemains)
}

// Erased implements [tracking.Eraser].
func (s *Store) Erased(ctx context.Context) error {
	return s.write(ctx, change{lane: large, rows: 1, atom: true, apply: (*tx).leavesRemains})
}

// compactDue has the file compacted after this group if it has remains and it is time.
func (x *tx) compactDue() error {
	if x.store.opts.CompactOnRequest {
		return nil
	}
	if !x.compaction.logOnly && x.store.opts.now().Before(x.compaction.next) {
		return nil
	}
	return x.get(&x.compaction.due, selectRemains)
}

// compactAsDue sees to what is due and to who has asked.
func (w *writer) compactAsDue() {
	c := &w.compaction
	due, asked := c.due, c.asked
	c.due, c.asked = false, nil
	switch {
	case asked != nil: // who holds w.store.backup
		done, err := w.compact()
		asked <- compacted{done, err}
	case due && w.store.tryBackup():
		defer w.store.backupEnds()
		if _, err := w.compact(); err != nil && w.store.closing.Err() == nil {
			w.store.opts.Logger.Error("sqlite: remains of what was erased could not be removed; it will be tried again",
				"path", w.store.path, "err", err)
		}
	}
}

// compact writes all pages anew, and the log into the file. While somebody reads from the log that
// is not done yet.
func (w *writer) compact() (done bool, err error) {
	if w.store.path == "" {
		return true, nil
	}
	if why := w.store.health.Load(); why != nil {
		return false, unavailable("The store does not write any more.", *why)
	}
	if !w.compaction.logOnly {
		if err := w.vacuum(); err != nil {
			return false, err
		}
		w.erased, w.compaction.logOnly = true, true
	}
	if done, err = w.wipeLog(); err != nil || !done {
		return false, w.haltIf(err)
	}
	x := &tx{writer: w}
	return true, w.haltIf(x.exec(deleteRemains))
}

const (
	insertOther  = `INSERT INTO task_terms (rowid, terms) VALUES (?, 'x')` // no task is found by that
	mergeAllOfIt = `INSERT INTO task_terms (task_terms) VALUES ('optimize')`
)

// renewTerms writes what tasks are found by anew. FTS5 deletes a term from the page that it stands on,
// but where it was the first one there a table of pages goes on to have it, or as much of it as tells
// the page from the one before. Only a merge makes that table anew, and for that there must be two
// segments at least.
func (w *writer) renewTerms() error {
	other := math.MinInt64 + w.store.opts.now().UnixMilli() // the place of no task
	for _, step := range []struct {
		query string
		args  []any
	}{{insertOther, []any{other}}, {mergeAllOfIt, nil}, {deleteTerms, []any{other, "x"}}} {
		if _, err := w.conn.ExecContext(w.store.closing, step.query, step.args...); err != nil {
			return err
		}
	}
	return nil
}

// vacuum writes all pages anew, into the log.
func (w *writer) vacuum() error {
	began := w.store.opts.now()
	x := &tx{writer: w}
	// In memory it would take as much of that as the file is long.
	err := x.exec("PRAGMA temp_store = FILE")
	if err == nil {
		// Close interrupts it. What SQLite does last it does to its end all the same.
		if err = w.renewTerms(); err == nil {
			_, err = w.conn.ExecContext(w.store.closing, "VACUUM")
		}
		if w.store.closing.Err() != nil {
			err = rows.ErrClosed
		}
	}
	err = errors.Join(err, x.exec("PRAGMA temp_store = MEMORY"))
	now := w.store.opts.now()
	rest := min(max(compactShare*now.Sub(began), compactOften), compactSeldom)
	if err == nil {
		w.compaction.next = now.Add(rest)
		return nil
	}
	w.compaction.next = now.Add(max(rest, compactFailed))
	if w.haltIf(err); w.store.health.Load() == nil {
		_, e := w.wipeLog() // gives back the room that the attempt has taken
		err = errors.Join(err, w.haltIf(e))
	}
	return err
}

func (w *writer) haltIf(err error) error {
	if stopsWriting(err) {
		w.store.halt(err)
	}
	return err
}
