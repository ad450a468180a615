package sqlite

import (
	"context"
	"errors"
	"sync"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// writer is the one connection that writes, and the goroutine that owns it.
//
// A caller's change goes this way: write puts it into its lane and waits; run wakes up and has
// commit take what waits, a group at a time, into one transaction (group.go); there each change is
// applied by itself, and undone by itself if it fails (tx.go); when the transaction is on the disk,
// all of its callers are answered. Between two groups the log is looked after (log.go).
type writer struct {
	store *Store
	db    *sqlx.DB
	conn  *sqlx.Conn
	lanes [numLanes]chan *job
	owed  [numLanes]bool // the lane had to stand back from the last group
	wake  chan struct{}  // something waits; closed when nothing more will
	done  chan struct{}  // closed when the goroutine has ended

	statements  map[string]*sqlx.Stmt
	inserts     map[uint64]string // of new tasks, by what they have; see insertTask
	drivers     driverCache
	journal     journal
	driven      []driven // empty: room for the next transaction's
	recorded    []byte   // likewise
	sweepAt     int      // no sooner are rows brought up to date as the journal is long; see commit
	lastPlace   int64    // no task has a greater one; 0: not known yet
	groups      int      // since the size of the log was looked at
	logAtLast   int      // pages in the log when it was last tried to be emptied in vain
	untidy      bool     // the log could not be copied into the file
	logUnsynced bool     // the log of the last process is still to be copied into the file; see syncLog
	erased      bool     // the log holds what was erased
	wipes       bool     // it is to be emptied after this group
	compaction  compaction
}

// change is what a caller wants written.
type change struct {
	lane lane
	rows int  // about how many it writes
	atom bool // apply may have written something when it fails: it needs a savepoint
	adds bool // it seldom fails, and apply may be run twice: it shares a savepoint with others like it

	// apply must use no context: SQLite answers an interrupted write by rolling back the whole
	// group.
	apply func(*tx) error
}

// job is a change that waits, or runs.
type job struct {
	change
	err chan error // has room for the one answer

	mu    sync.Mutex // held while apply runs
	state jobState
}

type jobState int

const (
	waits jobState = iota
	claimed
	cancelled
)

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
	for l := range w.lanes {
		w.lanes[l] = make(chan *job, s.opts.Queue)
	}
	w.wake = make(chan struct{}, 1)
	w.done = make(chan struct{})
	w.statements = map[string]*sqlx.Stmt{}
	w.inserts = map[uint64]string{}
	go w.run()
}

// write hands a change to the writer and waits until it is durable. When it returns, apply does not
// run any more.
func (s *Store) write(ctx context.Context, c change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{change: c, err: make(chan error, 1)}
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
		return rows.ErrClosed
	}
	if err := s.health.Load(); err != nil {
		return unavailable("The store does not write any more.", *err)
	}
	select {
	case s.writer.lanes[j.lane] <- j:
	default:
		return unavailable("Too many changes are waiting to be written.", nil)
	}
	select {
	case s.writer.wake <- struct{}{}:
	default: // it is on its way already
	}
	return nil
}

// run writes what waits, a group at a time, until nothing more will come.
func (w *writer) run() {
	defer close(w.done)
	for range w.wake {
		for w.waiting() > 0 {
			w.commit()
			w.tidy()
		}
	}
	w.sweepLast()
}

// waiting is how many changes wait.
func (w *writer) waiting() (n int) {
	for _, l := range w.lanes {
		n += len(l)
	}
	return n
}
