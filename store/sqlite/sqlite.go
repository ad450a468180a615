// Package sqlite is a [tracking.Store] on one SQLite file that loses nothing: what a caller was
// told is done survives a killed process and a power cut.
//
//	store, err := sqlite.Open("/var/lib/tracking/tracking.db", nil)
//	if err != nil {
//		log.Fatal(err) // says what is wrong with the file, and what to do
//	}
//	defer store.Close()
//	svc, err := tracking.New(store, nil)
//
// The file, its -wal and -shm companions and a -lock file lie beside each other and belong
// together; all are readable by their owner only. One process has a file open at a time: a second
// [Open] answers [ErrInUse], on Linux also by another name of the file (a hard link).
// [Store.Backup] copies a running store; copying the files by other means is safe only after
// [Store.Close].
//
// # Upgrade and restore
//
// A newer version of this library brings a file up to date when it opens it, in one transaction:
// all or nothing, and told to Options.Logger. Copy the file first, by [Store.Backup] or with the
// program stopped: an older version refuses what a newer one has written ([ErrNewer]) and leaves it
// as it is, so that the way back is the copy.
//
// To restore, stop the program, remove the file with its -wal and -shm, and put the copy in its
// place, or open the copy where it is. What was written since the copy is gone; the tokens of
// drivers and links that are in it work on. A copy of an older version is brought up to date like
// any other file.
//
// Two versions cannot have one file open, nor can two processes of one version ([ErrInUse]): for an
// upgrade stop the one and start the other, which takes less than a second, and longer where the file
// has to be brought up to date: as long as it takes to copy it, or to write it anew. To try a new version
// beside the running one, give it a copy; it should have no notifiers, as it would tell everybody
// again what the copy has not yet delivered. Programs that have to be replaced without a pause keep
// their rows in package store/postgres.
//
// # How it writes
//
// There is one writer. Durability costs one fsync a transaction, so the writer takes all changes
// that wait, runs each under a savepoint, its own or one that it shares with others that add tasks,
// commits once and answers all: alone a change costs an fsync, among many a small part of one. Commits go before fixes, single fixes before
// large batches, and a transaction that has written for a while ends: a burst of old fixes holds up
// nobody who starts or finishes something, and is not starved by them either. A bounded number of
// changes may wait; one more is answered ErrUnavailable at once. The transaction log (WAL) is
// synced at every commit (synchronous=FULL); where the system has fdatasync(2) it is used instead
// of fsync(2), which [driver.Fdatasync] switches for the whole process.
//
// A driver's fixes are packed: the newest beside his position, those before in blocks that are not
// written again but for late fixes and purges. What fixes change of positions is written into a journal
// first, of all drivers of a transaction together, and into their rows later: when the journal is long,
// with each purge, when a driver is deleted, and when the store is closed. So who looks into the file of
// a running store by other means finds positions up to a minute old in table positions; this package
// and its backups know the newest. One fix takes about 14 bytes of the file for good, and in batches of
// 1, 10 and 100 from 64 callers about 330, 150 and 60 bytes written to the disk.
//
// A change whose commit failed may or may not be in the file: it is answered ErrUnavailable, the
// code whose outcome is unknown. A full disk is such an error; reads go on, and writing resumes by
// itself once there is space. After a failed fsync nothing more is written until the store is
// opened again, because the kernel no longer knows what has reached the disk; [Store.Health] says
// so. Damage that is met in the file is reported in the same way ([ErrDamaged]) and never repaired:
// restore a backup.
//
// # How it reads
//
// Readers have connections of their own, see the last commit, and do not wait for the writer. Each
// read has a time limit. Lists read their page by an index. Positions are rows like all others, but
// who is near is answered from an index in memory, which is built in the background after Open:
// queries by position wait for it, all others do not.
//
// # What is erased
//
// What is deleted or replaced is overwritten, in the file (secure_delete) and in the index of words
// alike. The log holds it a little longer: until the [Store.Purge] after it, once a minute where
// [tracking.Service.Run] runs, or until Close; while somebody reads from the log, until a later one.
//
// Where SQLite moves rows from one page to another, it leaves pieces of them in the unused part of
// a page, and where the index of words is merged, pages that are free have words of tasks as they
// were until they are used again. So the file remembers that something was erased (a contact, a
// task, a driver, a proof), and the store writes it anew by [Store.Compact] as soon as a purge
// leaves nothing to do: then no byte is left in the file or its log, and a [Store.Backup] after the
// erasure has none in any case. Reads go on meanwhile, and changes wait: a tenth of a second in a
// small file, 10 seconds in one of 500 MB. Therefore it is done for a thousandth of the time at
// most, which is once a minute in a small file, every two or three hours in one of 500 MB, and once
// a day in a large one, sooner after the store was opened. Set Options.CompactOnRequest and call
// Compact yourself, at night perhaps, if that is too much. It fails where the disk has no room for
// it, or somebody else holds a lock on the file, and is then tried again an hour later; a process
// that is killed meanwhile, or closes the store, leaves it to the next. A file that an older
// version has written is written anew once after its upgrade, by the first purge: of a large file
// choose the time for that, as all changes wait.
//
// What an update has replaced, and what goes by its age alone (Options.KeepFixes, KeepEvents), is no
// reason to write the file anew; pieces of it go when it is next done. It is done
// after every [tracking.Service.EraseContact], also when an edit has replaced the number before.
//
// Copies that were made before have what was erased still: backups, what a file system or a disk
// keeps of what was there, and the copy of a file from before an upgrade (FILE-v12).
//
// What sweeps have claimed ([tracking.Claim]) is known in memory too: the process is alone.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	driver "modernc.org/sqlite"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/claims"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Options adjust a Store. The zero Options, like nil, are right for most.
type Options struct {
	// Queue is how many changes may wait for the writer, and how many small and how many large
	// batches of fixes besides; 0 means
	// 4096. More than that are answered ErrUnavailable.
	Queue int

	// Readers is how many reads run at once, each on a connection of its own; 0 means one for each
	// CPU, but at least 4. Others wait.
	Readers int

	// ReadTimeout limits each read; 0 means 10 seconds. It bounds what a read can hold up: the log
	// cannot shrink while an old state is being read.
	ReadTimeout time.Duration

	// BusyTimeout is how long to wait for a lock that something else holds on the file, such as a
	// person with a SQLite shell; 0 means 5 seconds.
	BusyTimeout time.Duration

	// CacheSize is the page cache of the writer in bytes, and of each reader; 0 means 16 MiB.
	CacheSize int

	// CompactOnRequest leaves it to [Store.Compact] to write the file anew after erasures; see "What is
	// erased" above. The store does so by itself otherwise.
	CompactOnRequest bool

	// Logger is told of migrations and of what stops the writer; nil means slog.Default().
	Logger *slog.Logger

	// For tests.
	now             func() time.Time
	vfs             string       // the SQLite VFS; "" is the system's
	synchronous     string       // "" is FULL
	migrations      fs.FS        // nil is the embedded ones
	checkpointPages int          // 0 is the constant
	maxJournal      int          // likewise
	maxLate         int          // likewise
	noJournal       bool         // of a version that has none
	grouped         func([]*job) // is told of each transaction's changes, in order
}

// withDefaults fills in what is not set, and refuses what cannot be meant.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	switch {
	case c.Queue < 0:
		return c, fmt.Errorf("sqlite: Options.Queue is %d; give the number of changes that may wait, or 0", c.Queue)
	case c.Readers < 0:
		return c, fmt.Errorf("sqlite: Options.Readers is %d; give a number of connections, or 0", c.Readers)
	case c.ReadTimeout < 0:
		return c, fmt.Errorf("sqlite: Options.ReadTimeout is %v; give a duration, or 0", c.ReadTimeout)
	case c.BusyTimeout < 0:
		return c, fmt.Errorf("sqlite: Options.BusyTimeout is %v; give a duration, or 0", c.BusyTimeout)
	case c.CacheSize < 0:
		return c, fmt.Errorf("sqlite: Options.CacheSize is %d; give a number of bytes, or 0", c.CacheSize)
	}
	defaultTo(&c.Queue, 4096)
	defaultTo(&c.Readers, max(4, runtime.GOMAXPROCS(0)))
	defaultTo(&c.ReadTimeout, 10*time.Second)
	defaultTo(&c.BusyTimeout, 5*time.Second)
	defaultTo(&c.CacheSize, 16<<20)
	defaultTo(&c.Logger, slog.Default())
	if c.now == nil {
		c.now = time.Now
	}
	defaultTo(&c.synchronous, "FULL")
	defaultTo(&c.checkpointPages, checkpointPages)
	defaultTo(&c.maxJournal, maxJournal)
	defaultTo(&c.maxLate, maxLate)
	if c.migrations == nil {
		c.migrations = migrations
	}
	return c, nil
}

func defaultTo[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Memory is the path of a store that lives in memory and ends with its Close: for tests.
const Memory = ":memory:"

// Store is a [tracking.Store] on a file. Make one with [Open].
type Store struct {
	opts   Options
	path   string // of the file; "" in memory
	unlock func() error

	// life is held while a connection is in use, and taken by Close.
	life    sync.RWMutex
	closed  bool
	closing context.Context // ends when Close begins
	stop    context.CancelFunc

	readers    *sqlx.DB
	statements sync.Map // query → *sqlx.Stmt on readers

	// gate keeps readers and the writer apart in memory, where there is no log to read an old state
	// from. Nil for a file.
	gate *sync.RWMutex

	writer writer
	late   late
	apps   rows.Registry[int64]
	index  index
	health atomic.Pointer[error] // why nothing more is written
	backup chan struct{}         // held by one Backup or compaction at a time

	due     claims.Claims[claimedDue]
	matches claims.Claims[claimedTask]
}

var _ tracking.Store = (*Store)(nil)

// Open opens the store in the file at path, and makes it if there is none; its directory must
// exist. [Memory] is a store without a file.
//
// A file that it cannot use is an [*OpenError], and stays as it is. An older file is brought up to
// date, each step in one transaction, and a copy of it is kept beside it: FILE-v1 for a file of
// version 1.
func Open(path string, opts *Options) (_ *Store, err error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Store{opts: o, unlock: func() error { return nil }, backup: make(chan struct{}, 1)}
	s.closing, s.stop = context.WithCancel(context.Background())
	if path == Memory {
		s.gate = new(sync.RWMutex)
		err = s.openMemory()
	} else {
		driver.Fdatasync(true) // an error says that there is no such call here, and fsync stays
		err = s.openFile(path)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	s.writer.start(s)
	s.index.fill(s, nil)
	return s, nil
}

// Close waits for the changes that were accepted, ends reads, and releases the file. A later call
// of any method returns ErrUnavailable.
func (s *Store) Close() error {
	s.stop()
	s.life.Lock()
	if s.closed {
		s.life.Unlock()
		return rows.ErrClosed
	}
	s.closed = true
	close(s.writer.wake)
	s.life.Unlock()
	<-s.writer.done
	s.index.running.Wait()
	err := s.disconnect()
	if e := s.unlock(); err == nil {
		err = e
	}
	return err
}

// disconnect closes the connections, the writer's last: it takes the log back into the file.
func (s *Store) disconnect() error {
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	if s.readers != nil {
		note(s.readers.Close())
	}
	note(s.writer.disconnect())
	return first
}

// Health is nil while the store reads and writes. Otherwise it says why nothing is written until
// the store is opened again, or why queries by position cannot be answered; these it tries to mend.
func (s *Store) Health() error {
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return rows.ErrClosed
	}
	if err := s.health.Load(); err != nil {
		return *err
	}
	f := s.index.fill(s, nil)
	select {
	case <-f.done:
		if f.err != nil {
			s.index.fill(s, f)
		}
		return f.err
	default:
		return nil // it is being filled
	}
}

// halt stops writing for good.
func (s *Store) halt(err error) {
	why := "a write could not be brought to the disk; open the store again"
	if isDamage(err) {
		why = "the file is damaged; restore a backup"
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	err = fmt.Errorf("%s: %w", why, err)
	if s.health.CompareAndSwap(nil, &err) {
		s.opts.Logger.Error("sqlite: nothing more is written", "err", err)
	}
}

// read runs f with a connection for reading within the time limit. f must not keep it.
func (s *Store) read(ctx context.Context, f func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return rows.ErrClosed
	}
	limited, cancel := context.WithTimeout(ctx, s.opts.ReadTimeout)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	if s.gate != nil {
		s.gate.RLock()
		defer s.gate.RUnlock()
	}
	err := f(limited)
	if err != nil && ctx.Err() == nil && s.closing.Err() != nil {
		return rows.ErrClosed
	}
	if isDamage(err) {
		s.halt(err)
	}
	return failure(ctx, err)
}

// statement returns the prepared form of a constant query.
func (s *Store) statement(ctx context.Context, query string) (*sqlx.Stmt, error) {
	if st, ok := s.statements.Load(query); ok {
		return st.(*sqlx.Stmt), nil
	}
	st, err := s.readers.PreparexContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if first, loaded := s.statements.LoadOrStore(query, st); loaded {
		st.Close()
		return first.(*sqlx.Stmt), nil
	}
	return st, nil
}

// get reads one row into dest, a pointer to a row struct or a value.
func (s *Store) get(ctx context.Context, dest any, query string, args ...any) error {
	st, err := s.statement(ctx, query)
	if err != nil {
		return err
	}
	return st.GetContext(ctx, dest, args...)
}

// one reads the row that a query finds, and the application it is of.
func one[R, T any](ctx context.Context, s *Store, of func(*R) (int64, T, error), query string, args ...any) (
	app tracking.AppID, v T, err error,
) {
	err = s.read(ctx, func(ctx context.Context) error {
		var r R
		if err := s.get(ctx, &r, query, args...); err != nil {
			return err
		}
		n, got, err := of(&r)
		app, v = s.appOf(n), got
		return err
	})
	if err != nil {
		var none T
		return "", none, err
	}
	return app, v, nil
}

// list reads all rows into dest, a pointer to a slice of row structs or values.
func (s *Store) list(ctx context.Context, dest any, query string, args ...any) error {
	st, err := s.statement(ctx, query)
	if err != nil {
		return err
	}
	return st.SelectContext(ctx, dest, args...)
}

const selectSecret = `SELECT value FROM secrets WHERE name = 'store'`

// Secret implements [tracking.Store].
func (s *Store) Secret(ctx context.Context) ([]byte, error) {
	var secret []byte
	err := s.read(ctx, func(ctx context.Context) error { return s.get(ctx, &secret, selectSecret) })
	return secret, err
}

const (
	selectMemo = `SELECT value FROM memos WHERE name = ?`
	upsertMemo = `INSERT INTO memos (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value`
)

// Memo implements [tracking.Store].
func (s *Store) Memo(ctx context.Context, name string) (value []byte, err error) {
	err = s.read(ctx, func(ctx context.Context) error {
		err := s.get(ctx, &value, selectMemo, name)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return value, err
}

// SetMemo implements [tracking.Store].
func (s *Store) SetMemo(ctx context.Context, name string, value []byte) error {
	if err := cmp.Or(ctx.Err(), rows.Texts(name)); err != nil {
		return err
	}
	value = append([]byte{}, value...)
	return s.write(ctx, change{
		lane: small, rows: 1, atom: true, apply: func(x *tx) error { return x.exec(upsertMemo, name, value) },
	})
}
