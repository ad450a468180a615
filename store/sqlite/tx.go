package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8aba7b13/tracking"
)

// tx is the transaction of a group of jobs.
type tx struct {
	*writer
	newApps map[tracking.AppID]int64
	driven  []driven                             // what has become of drivers, in order
	waiting []wait                               // tasks that began or ended to wait, or wait for something else
	terms   []termsChange                        // what tasks are found by, to be written at the end
	earlier struct{ driven, waiting, terms int } // of these, those of the jobs before
	myApps  []tracking.AppID                     // given a number by the current job
	dirty   bool                                 // the current job has written something
	sharing []int                                // jobs of the group that share a savepoint, each locked

	sharesUntil int // rows of the group; then the savepoint is shared no more

	journal  journal
	recorded []byte // what goes into it at the end, of jobs that are never undone
	newly    int    // of how many drivers whose rows were not behind it before
	sweeps   bool   // all rows are to be brought up to date, and the journal wiped
	tries    bool   // to bring them up to date as the journal is long
	log      fixLog // see fixLog

	// drivers whose rows are up to date with it by the end; nil: they are not brought there
	swept []*driverState

	lastMarks struct { // as read last; of no application: not known
		app int64
		marks
	}
}

// runJob runs one job, and undoes what a failed one has written. A fatal error is the whole
// group's.
func (x *tx) runJob(j *job) (err error, fatal bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.state == cancelled {
		return context.Canceled, false
	}
	j.state = claimed
	return x.runApart(j)
}

// begins notes what undo brings back.
func (x *tx) begins() {
	x.myApps, x.dirty = x.myApps[:0], false
	x.earlier.driven, x.earlier.waiting, x.earlier.terms = len(x.driven), len(x.waiting), len(x.terms)
}

// runShared runs one job under a savepoint that it shares with those that were run so before it, as for
// each savepoint SQLite copies each page that is written. When one has failed they are run again, each
// with its own; until then their callers have to wait, whatever happens, so that there are few of them.
// (Measured: an eighth of a create.)
func (x *tx) runShared(g *group, i int) error {
	j := g.jobs[i]
	j.mu.Lock()
	if j.state == cancelled {
		j.mu.Unlock()
		g.answers[i] = context.Canceled
		return nil
	}
	j.state = claimed
	x.sharing = append(x.sharing, i)
	if len(x.sharing) == 1 {
		x.sharesUntil = g.rows + laneRows
		x.begins()
		if err := x.exec("SAVEPOINT job"); err != nil {
			return err
		}
	}
	x.dirty = false
	err := j.apply(x)
	if err == nil || endsTransaction(err) {
		return err
	}
	if !x.dirty {
		g.answers[i] = err
		return nil
	}
	if err := x.undo(); err != nil {
		return err
	}
	if err := x.exec("RELEASE job"); err != nil {
		return err
	}
	defer x.unshare(g)
	for _, i := range x.sharing {
		err, fatal := x.runApart(g.jobs[i])
		if fatal {
			return err
		}
		g.answers[i] = err
	}
	return nil
}

// endShared ends the savepoint of those that share one.
func (x *tx) endShared(g *group) error {
	if len(x.sharing) == 0 {
		return nil
	}
	defer x.unshare(g)
	return x.exec("RELEASE job")
}

func (x *tx) unshare(g *group) {
	for _, i := range x.sharing {
		g.jobs[i].mu.Unlock()
	}
	x.sharing = x.sharing[:0]
}

// runApart runs one job, which is locked, by itself.
func (x *tx) runApart(j *job) (err error, fatal bool) {
	x.begins()
	if j.atom {
		if err := x.exec("SAVEPOINT job"); err != nil {
			return err, true
		}
		x.dirty = false
	}
	err = j.apply(x)
	if err == nil {
		if j.atom {
			err = x.exec("RELEASE job")
		}
		return err, err != nil
	}
	if endsTransaction(err) {
		return err, true
	}
	if !x.dirty {
		return err, false
	}
	if !j.atom {
		return err, true
	}
	if e := x.undo(); e != nil {
		return e, true
	}
	return err, false
}

// undo brings back what was before the job.
func (x *tx) undo() error {
	for _, d := range slices.Backward(x.driven[x.earlier.driven:]) {
		x.drivers.keep(d.key, d.old)
	}
	x.driven = x.driven[:x.earlier.driven]
	x.waiting, x.terms = x.waiting[:x.earlier.waiting], x.terms[:x.earlier.terms]
	x.lastMarks.app = 0
	for _, app := range x.myApps {
		delete(x.newApps, app)
	}
	x.myApps = x.myApps[:0]
	return x.exec("ROLLBACK TO job")
}

// prepared returns the prepared form of a statement.
func (w *writer) prepared(query string) (*sqlx.Stmt, error) {
	if st, ok := w.statements[query]; ok {
		return st, nil
	}
	st, err := w.conn.PreparexContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	w.statements[query] = st
	return st, nil
}

func (x *tx) run(query string, args ...any) (sql.Result, error) {
	st, err := x.prepared(query)
	if err != nil {
		return nil, err
	}
	x.dirty = true
	return st.Exec(args...)
}

func (x *tx) exec(query string, args ...any) error {
	_, err := x.run(query, args...)
	return err
}

// changed runs a statement and counts the rows that it changed.
func (x *tx) changed(query string, args ...any) (int, error) {
	r, err := x.run(query, args...)
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}

// insert runs a statement and returns the new row's number.
func (x *tx) insert(query string, args ...any) (int64, error) {
	r, err := x.run(query, args...)
	if err != nil {
		return 0, err
	}
	return r.LastInsertId()
}

// find reads one row into dest; without one, found is false.
func (x *tx) find(dest any, query string, args ...any) (found bool, err error) {
	err = x.get(dest, query, args...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

func (x *tx) get(dest any, query string, args ...any) error {
	st, err := x.prepared(query)
	if err != nil {
		return err
	}
	return st.Get(dest, args...)
}

// scan reads the columns of one row, cheaper than get, which looks for the fields of a struct.
// (Measured: two of them, 4 % of a create.)
func (x *tx) scan(query string, args []any, columns ...any) error {
	st, err := x.prepared(query)
	if err != nil {
		return err
	}
	return st.Stmt.QueryRow(args...).Scan(columns...)
}

func (x *tx) list(dest any, query string, args ...any) error {
	st, err := x.prepared(query)
	if err != nil {
		return err
	}
	return st.Select(dest, args...)
}

// number finds an application that has committed something, or does so in this transaction.
func (x *tx) number(app tracking.AppID) (int64, bool) {
	if n, ok := x.store.apps.Number(app); ok {
		return n, true
	}
	n, ok := x.newApps[app]
	return n, ok
}

// app returns the number of an application, which is given one when it first commits.
func (x *tx) app(app tracking.AppID) (int64, error) {
	if n, ok := x.number(app); ok {
		return n, nil
	}
	n, err := x.insert(insertApp, app)
	if err != nil {
		return 0, err
	}
	if x.newApps == nil {
		x.newApps = map[tracking.AppID]int64{}
	}
	x.newApps[app], x.myApps = n, append(x.myApps, app)
	return n, nil
}
