// Package postgres is a [tracking.Store] on PostgreSQL 15 or later, for any number of processes:
// what one has done, another reads at once.
//
//	store, err := postgres.Open(ctx, "postgres://tracking@db.example.com/shop?sslmode=verify-full", nil)
//	if err != nil {
//		log.Fatal(err) // says what is wrong with the database, and what to do
//	}
//	defer store.Close()
//	svc, err := tracking.New(store, nil)
//
// Where the program has a pool of connections already, [New] takes that. No extension is needed,
// and no right but those of the owner of a schema: everything is in one, "tracking" by default,
// that is made by Open in a database that may hold anything else.
//
// # The schema
//
// [Open] and [New] bring the schema up to date, each step in one transaction; of several
// processes that start at once one does it. It waits for the transactions that are open on a
// table, and lets nobody else wait with it for more than half a second; what it does itself may
// take as long as it needs, whatever statement_timeout says. With Options.CheckOnly they only
// look, and say what to run; [Migrations] are the files, for other tools. The code of one version
// works on its own schema and on the next one, so that processes can be replaced one by one. On a
// newer one than that it does not, and leaves it untouched.
//
// # How it writes
//
// A Commit compares versions and sets: in one round trip it locks the rows that it replaces,
// always in the same order, in a second one it writes all and commits. Nobody waits for longer
// than that for a row. What is all new takes one round trip, and so do fixes for a driver to
// whom nobody else has written since this process has: it remembers the last 16,384 of them, and
// asks the server whether one is still as it knows him, in the step that writes. Calls of one
// process that are made at once share a transaction, if they are about different rows, and so do
// calls of RecordFixes; each is answered for itself. A row that somebody else's transaction
// holds keeps nobody waiting but who writes it, and not for longer than Options.Timeout. What
// the server refuses because of others who were at work on the same rows is tried again, and in
// the end is a conflict that names no row. When a connection is lost after the commit was sent,
// nobody knows whether it was done: that is ErrUnavailable, the code whose outcome is unknown. A
// server that only reads, restarts or fails over is ErrUnavailable too, and the store goes on by
// itself as soon as it can.
//
// Numbers of events (Seq) come from a row of each subject, which is locked to the end of the
// commit. The place of an event in the list of an application is given after the commit, in the
// background or by the list that is read: so nobody waits for another one's commit, and nothing
// is ever shown before what was shown already.
//
// # What other processes do
//
// The store is a [tracking.Watcher]: what a process has changed it tells the others by NOTIFY,
// all of a few milliseconds together, after the commits and outside of them. Each hears it on a
// connection of its own. Nothing depends on that but how soon somebody looks. As a
// [tracking.Limiter] it counts wrong codes and notes for all of them.
//
// # What is erased
//
// What is deleted or replaced nobody reads any more once that is committed; its bytes stay in
// the tables and indices, and samples of them among what the server knows of its tables. Its
// vacuum frees that space, and it is overwritten when it is used again, not before. So where that
// matters run this after an erasure and the purges behind it, as the owner of the database, at a
// time when nobody needs these tables:
//
//	VACUUM (FULL, ANALYZE) tracking.tasks, tracking.trips, tracking.files, tracking.requests,
//		tracking.drivers, tracking.positions, tracking.fixes;
//	VACUUM FULL pg_catalog.pg_statistic;
//
// The files are so after the server's next checkpoint. A transaction that was open before, in
// whichever database of the server, may keep what it could still read: run this again once it has
// ended. The log (WAL), its archives and backups made before keep the bytes for as long as they are
// kept themselves, and standbys until they have caught up.
//
// # In your own transaction
//
// [In] and [InSQL] make of a transaction of yours, in the same database, what
// [tracking.Service.Within] takes: an order and its task are written together or not at all.
// What a call writes is behind a savepoint, so that one that is refused leaves the transaction
// as it was, without a lock; only a trip whose time is up when its driver's position is saved
// stays ended.
//
//   - A new task, driver or invite is new rows alone, for which nobody waits, however long the
//     transaction takes; only who uses the same key or id does. What is changed is held until its end:
//     the task, and its driver, with his fixes. An update or a cancellation is for short
//     transactions.
//   - Isolation is yours. At REPEATABLE READ and SERIALIZABLE what others have changed since the
//     transaction began is a conflict, as for your own tables, and a driver who moves changes with
//     each fix; so is a new row where others have deleted one of the application since. At
//     SERIALIZABLE your commit may fail as well.
//   - Nothing is to be called after the commit: the store asks the server what has become of the
//     transaction, and has those told who follow. What it does not come to, as when the process ends,
//     Run finds by itself.
//   - The first task of an application ever needs a second connection, from the store's pool.
//   - A transaction to be prepared (PREPARE TRANSACTION) and one through a pooler will do as well.
//
// # Poolers and other settings
//
// All names are qualified by the schema, and no right answer needs anything that a session
// keeps, so a pooler such as PgBouncer may hand out connections by transaction. Listening is the
// exception: Options.Listen. Tell pgx not to prepare statements then:
// default_query_exec_mode=exec in the URL (or cache_describe, or simple_protocol). In the URL
// stands whatever else pgx and the server know: TLS, pool_max_conns, application_name,
// statement_timeout. Where the URL names none of these modes and leaves them out, Open sets for
// its own connections application_name, statement_timeout (Options.Timeout), jit=off and
// plan_cache_mode=force_custom_plan: plans that were made for small tables are not kept, and
// compiling costs more than it gains here. Who hands a pool to New is advised to set the last
// two.
//
// # Beyond one server
//
// What was run is PostgreSQL 15, alone, behind PgBouncer, with NOTIFY taken away, and with SKIP
// LOCKED switched off. The rest of this section was not: it is what the documentation of others
// leads to expect.
//
// What differs is asked for by Open and New. Where a server has no LISTEN or NOTIFY, the store
// looks for what has changed twice a second, as behind a pooler. Where it has no FOR UPDATE SKIP
// LOCKED, a sweep locks rows with NOWAIT, and one by one, behind savepoints, where somebody
// holds some. The store does not do without ON CONFLICT, statements that write several tables
// (WITH … INSERT), partial unique indexes, GIN and UNLOGGED; partitions are not used.
//
// YugabyteDB has these where it is made of PostgreSQL 15, the later ones LISTEN and NOTIFY as
// well. CockroachDB has no LISTEN and NOTIFY, and is refused while it calls itself PostgreSQL
// 13, as it did for years; nothing is known about the others of the list there.
//
// The rows of an application can be distributed by it, as with Citus: their primary keys begin
// with its number, every Commit is of one, and no right answer depends on a sequence without
// gaps, or on an advisory lock, which only migrations take. The tables apps, secrets, memos,
// codes, limits, and keys, as a key's hash is unique over all applications, stay in one place.
// But the store would have to be changed for that: fixes that come at once, leases and sweeps
// lock and write rows of several applications in one statement, which Citus does within one
// shard only.
//
// Isolation is READ COMMITTED, or REPEATABLE READ for single reads, and nothing depends on what the
// database's default is.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Options adjust a Store. The zero Options, like nil, are right for most.
type Options struct {
	// Schema is the PostgreSQL schema of the tables; "" means "tracking".
	Schema string

	// CheckOnly says that a schema that is not up to date is an error, and is left as it is.
	CheckOnly bool

	// ApplicationName is what the server calls the connections of [Open]; "" means "tracking". One
	// in the URL goes first.
	ApplicationName string

	// Timeout limits what each call takes; 0 means 30 seconds.
	Timeout time.Duration

	// CallersClock says that leases, retries and claims go by the Now that comes with each call, and
	// not by the server's clock: for tests that play at a time of their own.
	CallersClock bool

	// Listen is the URL at which the server itself can be reached, where the pool goes through a pooler:
	// what other processes change is heard on a connection of its own there. "" means where the pool
	// goes; if that does not prepare statements, nothing is heard, and those who follow something look
	// for it twice a second.
	Listen string

	// Logger is told of migrations; nil means slog.Default().
	Logger *slog.Logger

	// For tests.
	migrations fs.FS  // nil is the embedded ones
	trySkip    string // what is asked of the server; "" means trySkip
	mostLooked int    // 0 means mostLooked
}

// withDefaults fills in what is not set, and refuses what cannot be meant.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	switch {
	case c.Timeout < 0:
		return c, fmt.Errorf("postgres: Options.Timeout is %v; give a duration, or 0", c.Timeout)
	case c.Listen != "" && !parses(c.Listen):
		return c, errors.New("postgres: Options.Listen does not parse; give a URL such as postgres://user@host/database")
	case len(c.Schema) > 63, strings.ContainsRune(c.Schema, 0):
		return c, errors.New("postgres: Options.Schema cannot be a name of a schema; give one of at most 63 bytes")
	}
	defaultTo(&c.Schema, defaultSchema)
	defaultTo(&c.ApplicationName, "tracking")
	defaultTo(&c.Timeout, 30*time.Second)
	defaultTo(&c.Logger, slog.Default())
	defaultTo(&c.trySkip, trySkip)
	defaultTo(&c.mostLooked, mostLooked)
	if c.migrations == nil {
		c.migrations = Migrations()
	}
	return c, nil
}

func parses(url string) bool {
	_, err := pgx.ParseConfig(url)
	return err == nil
}

func defaultTo[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// defaultSchema is the one that stands in the texts of all statements.
const defaultSchema = "tracking"

// Store is a [tracking.Store] in a schema of a database. Make one with [Open] or [New].
type Store struct {
	*base
	tx borrowed // the embedder's transaction that it works in; nil: it begins its own
}

// base is what a store has in all transactions.
type base struct {
	opts   Options
	pool   *pgxpool.Pool
	mine   bool   // the pool was opened here
	quoted string // the schema's name in a statement

	prepares bool // the server has told of what type parameters are, before any is sent

	// life is held by each call, and taken by Close.
	life    sync.RWMutex
	closed  bool
	closing context.Context // ends when Close begins
	stop    context.CancelFunc

	statements sync.Map // the text of a statement → the same with the schema's name
	apps       rows.Registry[int32]
	recorder   recorder
	committer  committer
	able       abilities
	plans      plans
	density    density
	placer     placer
	teller     teller
	commits    commits
}

var _ tracking.Store = (*Store)(nil)

// Open opens a store in the database at a URL, or a key=value text, as [pgxpool.ParseConfig] takes
// it, with a pool of connections of its own. What it finds wrong is an [*OpenError].
func Open(ctx context.Context, url string, opts *Options) (*Store, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, &OpenError{Schema: o.Schema, Err: err, Advice: "Give a URL such as postgres://user@host/database."}
	}
	set := func(name, value string) {
		if _, given := config.ConnConfig.RuntimeParams[name]; !given {
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
	set("application_name", o.ApplicationName)
	if config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		// Straight to a server: a pooler would refuse these, or give them to others.
		set("statement_timeout", fmt.Sprint(o.Timeout.Milliseconds()))
		set("jit", "off")
		set("plan_cache_mode", "force_custom_plan")
	}
	config.AfterConnect = func(_ context.Context, c *pgx.Conn) error {
		takeShortWays(c.TypeMap())
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, &OpenError{Schema: o.Schema, Err: err}
	}
	s := newStore(pool, o)
	s.mine = true
	if err := s.prepare(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	s.start()
	return s, nil
}

// New is a store that works with the pool of the caller, who closes it after the store.
func New(ctx context.Context, pool *pgxpool.Pool, opts *Options) (*Store, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := newStore(pool, o)
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	s.start()
	return s, nil
}

func newStore(pool *pgxpool.Pool, o Options) *Store {
	s := &Store{base: &base{opts: o, pool: pool, quoted: pgx.Identifier{o.Schema}.Sanitize()}}
	switch pool.Config().ConnConfig.DefaultQueryExecMode {
	case pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec:
		s.prepares = true
	}
	s.closing, s.stop = context.WithCancel(context.Background())
	return s
}

// start runs what goes on beside the calls.
func (s *Store) start() {
	s.placer.start(s)
	s.teller.start(s)
	s.commits.start(s)
}

// Close ends what is under way, and closes the pool if [Open] has made it. A later call of any method
// returns ErrUnavailable.
func (s *Store) Close() error {
	s.stop()
	s.life.Lock()
	if s.closed {
		s.life.Unlock()
		return rows.ErrClosed
	}
	s.closed = true
	s.life.Unlock()
	<-s.placer.done
	<-s.teller.done
	<-s.commits.done
	if s.mine {
		s.pool.Close()
	}
	return nil
}

// qualify puts the schema's name in place of the one that stands in all texts.
func (s *Store) qualify(text string) string {
	if s.opts.Schema == defaultSchema {
		return text
	}
	return strings.ReplaceAll(text, defaultSchema+".", s.quoted+".")
}

// sql is a statement of the constants, for the server.
func (s *Store) sql(text string) string {
	if q, ok := s.statements.Load(text); ok {
		return q.(string)
	}
	q := s.qualify(text)
	s.statements.Store(text, q)
	return q
}

// call runs f, which reads or writes, within the time limit.
func (s *Store) call(ctx context.Context, f func(ctx context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.tx != nil {
		return s.callWithin(ctx, f)
	}
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return rows.ErrClosed
	}
	limited, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	err := f(limited)
	if err != nil && ctx.Err() == nil && s.closing.Err() != nil {
		return rows.ErrClosed
	}
	return failure(ctx, err)
}
