package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8aba7b13/tracking"
)

const (
	maxGroup = 1024 // changes in one transaction

	maxLog = 32 << 20 // bytes; a log that has grown beyond is cut when it starts again

	// checkpointPages is how many pages of 4 KiB the log gathers before the writer, when it has a moment, copies them into the file. The log then starts
	// from its beginning again as soon as nobody reads from it. From twice as many on the writer waits a little for that moment.
	checkpointPages = 2000
)

// writer is the one connection that writes, and the goroutine that owns it.
type writer struct {
	store *Store
	db    *sqlx.DB
	conn  *sqlx.Conn
	queue chan *job
	done  chan struct{} // closed when the goroutine has ended

	statements map[string]*sqlx.Stmt
	drivers    driverCache
	groups     int  // since the size of the log was looked at
	logAtLast  int  // pages in the log when it was last tried to be emptied in vain
	untidy     bool // the log could not be copied into the file
	unsettled  bool // the log of the last process is still to be copied into the file; see settle
}

// job is a change that waits, or runs.
type job struct {
	apply func(*tx) error
	atom  bool       // apply may have written something when it fails: it needs a savepoint
	err   chan error // has room for the one answer

	mu    sync.Mutex // held while apply runs
	state jobState
}

type jobState int

const (
	waits jobState = iota
	claimed
	cancelled
)

// tx is the transaction of a group of jobs.
type tx struct {
	*writer
	newApps map[tracking.AppID]int64
	touched map[driverKey]struct{} // drivers whose entry in the index may change
	mine    []driverKey            // of these, the current job's
	myApp   tracking.AppID         // given a number by the current job
	dirty   bool                   // the current job has written something
}

func (w *writer) connect(c connect) (err error) {
	if w.db, err = c.open(1); err != nil {
		return err
	}
	// The pool's one connection stays in the pool until the first write, for the migrations.
	if err := w.db.Ping(); err != nil {
		return errors.Join(err, w.db.Close())
	}
	return nil
}

func (w *writer) disconnect() error {
	var err error
	if w.conn != nil {
		for _, st := range w.statements {
			err = errors.Join(err, st.Close())
		}
		err = errors.Join(err, w.conn.Close())
	}
	if w.db != nil {
		err = errors.Join(err, w.db.Close())
	}
	return err
}

func (w *writer) start(s *Store) {
	w.store = s
	w.queue = make(chan *job, s.opts.Queue)
	w.done = make(chan struct{})
	w.statements = map[string]*sqlx.Stmt{}
	go w.run()
}

// write hands a change to the writer and waits until it is durable. When it returns, apply does not run any more.
//
// apply must use no context: SQLite answers an interrupted write by rolling back the whole group.
func (s *Store) write(ctx context.Context, atom bool, apply func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{apply: apply, atom: atom, err: make(chan error, 1)}
	if err := s.enqueue(j); err != nil {
		return err
	}
	select {
	case err := <-j.err:
		return failure(ctx, err)
	case <-ctx.Done():
	}
	j.mu.Lock()
	if j.state == waits {
		j.state = cancelled
	}
	j.mu.Unlock()
	return ctx.Err()
}

func (s *Store) enqueue(j *job) error {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return errClosed
	}
	if err := s.health.Load(); err != nil {
		return unavailable("The store does not write any more.", *err)
	}
	select {
	case s.writer.queue <- j:
		return nil
	default:
		return unavailable("Too many changes are waiting to be written.", nil)
	}
}

func (w *writer) run() {
	defer close(w.done)
	var group []*job
	for j := range w.queue {
		group = w.gather(append(group[:0], j))
		w.commit(group)
		clear(group)
		w.tidy()
	}
}

// gather takes all that waits. Those just answered get a turn first, as they often come right back.
func (w *writer) gather(group []*job) []*job {
	for seen := 0; seen < len(group); {
		seen = len(group)
		runtime.Gosched()
		for len(group) < maxGroup && len(w.queue) > 0 {
			j, ok := <-w.queue
			if !ok {
				return group
			}
			group = append(group, j)
		}
	}
	return group
}

// commit runs the jobs of a group in one transaction and answers each.
func (w *writer) commit(group []*job) {
	if g := w.store.gate; g != nil {
		g.Lock()
		defer g.Unlock()
	}
	answers := make([]error, len(group))
	x := &tx{writer: w}
	err := w.transact(x, group, answers)
	if err != nil {
		w.drivers.forget()
		if stopsWriting(err) {
			w.store.halt(err)
		}
		for i := range answers {
			answers[i] = err
		}
	}
	for i, j := range group {
		j.err <- answers[i]
	}
}

// transact runs the jobs and commits. An error is the whole group's.
func (w *writer) transact(x *tx, group []*job, answers []error) (err error) {
	if why := w.store.health.Load(); why != nil {
		return unavailable("The store does not write any more.", *why)
	}
	if w.conn == nil {
		if w.conn, err = w.db.Connx(context.Background()); err != nil {
			return err
		}
	}
	if w.unsettled {
		if err := w.settle(x.get); err != nil {
			return err
		}
	}
	if err := x.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			x.exec("ROLLBACK") // fails when SQLite has rolled back by itself
		}
	}()
	for i, j := range group {
		if err, fatal := x.runJob(j); fatal {
			return err
		} else if err != nil {
			answers[i] = err
		}
	}
	moves, err := x.moves()
	if err != nil {
		return err
	}
	if err := x.exec("COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	for app, n := range x.newApps {
		w.store.apps.add(n, app)
	}
	w.store.index.apply(moves)
	return nil
}

// runJob runs one job, and undoes what a failed one has written. A fatal error is the whole group's.
func (x *tx) runJob(j *job) (err error, fatal bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.state == cancelled {
		return context.Canceled, false
	}
	j.state = claimed
	x.mine, x.myApp, x.dirty = x.mine[:0], "", false
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
	for _, k := range x.mine {
		x.drivers.drop(k)
	}
	delete(x.newApps, x.myApp)
	return x.exec("ROLLBACK TO job")
}

// tidy copies the log into the file when it has grown, so that it can start again.
func (w *writer) tidy() {
	w.groups++
	pages := w.store.opts.checkpointPages
	if w.groups < min(16, pages/16) || w.store.path == "" || w.conn == nil || w.store.health.Load() != nil {
		return
	}
	w.groups = 0
	r, err := w.logState("NOOP")
	waiting := r.Log - r.Checkpointed
	switch {
	case err != nil:
	case r.Log >= 2*pages && r.Log >= w.logAtLast+pages && !w.store.backingUp():
		err = w.restartLog()
	case waiting >= pages:
		_, err = w.logState("PASSIVE")
	}
	switch {
	case err == nil:
		w.untidy = false
	case stopsWriting(err):
		w.store.halt(err)
	case !w.untidy: // nothing is lost by it, and it is tried again; but if it goes on failing, the log grows
		w.untidy = true
		w.store.opts.Logger.Error("sqlite: the log could not be copied into the file", "path", w.store.path, "err", err)
	}
}

// restartLog empties the log, and waits a little for those who read from it.
func (w *writer) restartLog() error {
	x := &tx{writer: w}
	if err := x.exec("PRAGMA busy_timeout = 50"); err != nil {
		return err
	}
	r, err := w.logState("RESTART")
	w.logAtLast = 0
	if r.Busy {
		w.logAtLast = r.Log
	}
	return errors.Join(err, x.exec(fmt.Sprintf("PRAGMA busy_timeout = %d", w.store.opts.BusyTimeout.Milliseconds())))
}

// logRow is what PRAGMA wal_checkpoint answers: pages in the log, and those of them that are in the file.
type logRow struct {
	Busy              bool
	Log, Checkpointed int
}

func (w *writer) logState(mode string) (r logRow, err error) {
	x := &tx{writer: w}
	err = x.get(&r, "PRAGMA wal_checkpoint("+mode+")")
	return r, err
}

// settle copies the log of the last process into the file and syncs it there, before anything is added to it.
//
// A log left by a process that saw an fsync fail may be whole in the kernel's memory and not on the disk; commits that followed in the same log would be
// lost with it. On a full disk there may be no room for that now. Then reads go on, and the first write tries it again.
func (w *writer) settle(get func(dest any, query string, args ...any) error) error {
	w.unsettled = true
	var r logRow
	if err := get(&r, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return err
	}
	if r.Busy {
		return errors.New("something else holds the file; close it first")
	}
	w.unsettled = false
	return nil
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

// get reads one row into dest; without one, found is false.
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

func (x *tx) list(dest any, query string, args ...any) error {
	st, err := x.prepared(query)
	if err != nil {
		return err
	}
	return st.Select(dest, args...)
}

// app returns the number of an application, which is given one when it first commits.
func (x *tx) app(app tracking.AppID) (int64, error) {
	if n, ok := x.store.apps.number(app); ok {
		return n, nil
	}
	if n, ok := x.newApps[app]; ok {
		return n, nil
	}
	n, err := x.insert(insertApp, app)
	if err != nil {
		return 0, err
	}
	if x.newApps == nil {
		x.newApps = map[tracking.AppID]int64{}
	}
	x.newApps[app], x.myApp = n, app
	return n, nil
}
