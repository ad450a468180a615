package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed migrations/*.sql
var embedded embed.FS

// Migrations are the steps of the schema, numbered files: 0001_initial.sql leads from nothing to
// version 1, the next to version 2. One that was released is never changed. They name the schema
// "tracking", which must be there; [Open] puts Options.Schema in its place.
//
// Who applies them by other means notes each in the table that Open makes for that:
//
//	CREATE TABLE tracking.migrations (
//		version int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())
//
// Its file is not all of version 2: since then numbers in the digits of any script are found, and
// Open and [Migrate] renew what the tasks that hold such digits are found by. Where the file is
// applied by other means these are not found by them until each is written again; nor is what a
// process of version 1 still writes afterwards.
func Migrations() fs.FS { return migrations{} }

// migrations is the folder of the embedded files.
type migrations struct{}

func (migrations) Open(name string) (fs.File, error) {
	return embedded.Open(path.Join("migrations", name))
}

// migrationFiles lists them in order; the first leads to version 1.
func migrationFiles(dir fs.FS) ([]string, error) {
	names, err := fs.Glob(dir, "*.sql") // sorted
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		number, _, _ := strings.Cut(name, "_")
		if n, err := strconv.Atoi(number); err != nil || n != i+1 {
			return nil, fmt.Errorf("postgres: %s: its number should be %d", name, i+1)
		}
	}
	return names, nil
}

const (
	selectServer       = `SELECT current_setting('server_version_num')::int, current_setting('server_encoding')`
	selectSchemaExists = `SELECT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = $1)`
	createSchema       = `CREATE SCHEMA `
	selectMigrated     = `SELECT to_regclass($1) IS NOT NULL`
	createMigrations   = `CREATE TABLE IF NOT EXISTS tracking.migrations (
		version int PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())`
	selectVersion   = `SELECT coalesce(max(version), 0) FROM tracking.migrations`
	insertMigration = `INSERT INTO tracking.migrations (version) VALUES ($1)`
	tryLock         = `SELECT pg_try_advisory_xact_lock(hashtextextended('tracking migrations of ' || $1, 0))`
	limitLockWait   = `SET LOCAL lock_timeout = '500ms'`
	takeTime        = `SET LOCAL statement_timeout = 0` // a large table takes longer than calls may
	selectTables    = `SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = $1`

	lockWait = 200 * time.Millisecond
)

// serves reports whether code that knows the migrations up to latest works on a schema of a version:
// its own, or the next one.
func serves(version, latest int) bool { return version == latest || version == latest+1 }

// prepare brings the schema up to date, or checks that it is.
func (s *Store) prepare(ctx context.Context) error {
	refuse := func(err error, advice string) error {
		return &OpenError{Schema: s.opts.Schema, Err: err, Advice: advice}
	}
	var number int
	var encoding string
	err := s.pool.QueryRow(ctx, selectServer).Scan(&number, &encoding)
	switch {
	case err != nil:
		return refuse(err, "")
	case number < 150000:
		return refuse(ErrTooOld, "Use PostgreSQL 15 or later.")
	case encoding != "UTF8":
		return refuse(ErrEncoding, "Make a database with ENCODING 'UTF8'.")
	}
	names, err := migrationFiles(s.opts.migrations)
	if err != nil {
		return refuse(err, "")
	}
	latest := len(names)
	version, err := s.version(ctx)
	if err == nil && version < latest && !s.opts.CheckOnly {
		version, err = s.migrate(ctx, names, version)
	}
	switch {
	case err != nil:
		return refuse(err, "")
	case version < latest:
		return refuse(ErrOlder, fmt.Sprintf("It has version %d, and this program needs %d: "+
			"apply what comes after it of postgres.Migrations, or open it once without Options.CheckOnly.",
			version, latest))
	case !serves(version, latest):
		return refuse(ErrNewer, fmt.Sprintf("It has version %d, and this program knows %d. Use a newer program.",
			version, latest))
	}
	if err := s.ask(ctx); err != nil {
		return refuse(err, "")
	}
	return nil
}

// version is the schema's; 0 where there is none.
func (s *Store) version(ctx context.Context) (version int, err error) {
	var there bool
	table := pgx.Identifier{s.opts.Schema, "migrations"}.Sanitize()
	if err := s.pool.QueryRow(ctx, selectMigrated, table).Scan(&there); err != nil || !there {
		return 0, err
	}
	err = s.pool.QueryRow(ctx, s.sql(selectVersion)).Scan(&version)
	return version, err
}

// migrate applies what is missing to the schema of a version, each step in a transaction of its own,
// and returns the version that it has then. Of several processes at once one does it.
func (s *Store) migrate(ctx context.Context, names []string, version int) (int, error) {
	if version == 1 {
		if err := s.renewTerms(ctx); err != nil {
			return version, fmt.Errorf("update to version 2: %w", err)
		}
	}
	for {
		done, err := s.step(ctx, names, &version)
		if err != nil {
			return version, err
		}
		if done {
			return version, s.analyze(ctx)
		}
	}
}

// errBusy is of a step that another process is at.
var errBusy = errors.New("somebody else migrates")

// step applies the next migration, and reports whether there is none.
//
// The lock is tried and not waited for: a transaction that waits for it would make CREATE INDEX
// CONCURRENTLY, which waits for all transactions, a deadlock for whoever holds it. Nor is a table
// waited for long, as everybody else who wants it stands behind who waits to change it: where a
// transaction stays open, the step is tried again until it has ended.
func (s *Store) step(ctx context.Context, names []string, version *int) (done bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		var mine, there bool
		if err := tx.QueryRow(ctx, tryLock, s.opts.Schema).Scan(&mine); err != nil {
			return err
		}
		if !mine {
			return errBusy
		}
		for _, set := range []string{limitLockWait, takeTime} {
			if _, err := tx.Exec(ctx, set); err != nil {
				return err
			}
		}
		// Whether it is there is asked first: CREATE SCHEMA IF NOT EXISTS wants a right that who
		// works in a schema made by others has not.
		if err := tx.QueryRow(ctx, selectSchemaExists, s.opts.Schema).Scan(&there); err != nil {
			return err
		}
		if !there {
			if _, err := tx.Exec(ctx, createSchema+s.quoted); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, s.sql(createMigrations)); err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, s.sql(selectVersion)).Scan(version); err != nil {
			return err
		}
		if done = *version >= len(names); done {
			return nil
		}
		return s.apply(ctx, tx, names[*version], *version+1)
	})
	if errors.Is(err, errBusy) || passes(err) {
		return false, letEnd(ctx)
	}
	return done, err
}

// letEnd lets others come to their end.
func letEnd(ctx context.Context) error {
	select {
	case <-time.After(lockWait):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// apply runs one migration.
func (s *Store) apply(ctx context.Context, tx pgx.Tx, name string, version int) error {
	script, err := fs.ReadFile(s.opts.migrations, name)
	if err != nil {
		return err
	}
	// Without parameters a text may hold many statements.
	if _, err := tx.Conn().PgConn().Exec(ctx, s.qualify(string(script))).ReadAll(); err != nil {
		return fmt.Errorf("update to version %d: %w", version, err)
	}
	if _, err := tx.Exec(ctx, s.sql(insertMigration), version); err != nil {
		return err
	}
	s.opts.Logger.Info("postgres: the schema was updated", "schema", s.opts.Schema, "version", version)
	return nil
}

// analyze tells the planner of the tables, that it may not go on with what it believed of empty
// ones.
func (s *Store) analyze(ctx context.Context) error {
	found, err := s.pool.Query(ctx, selectTables, s.opts.Schema)
	if err != nil {
		return err
	}
	tables, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, table := range tables {
		if err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, takeTime); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, `ANALYZE `+table)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// Migrate brings a schema up to date, as [Open] does, and no more: for a deployment that does so
// before its processes start.
func Migrate(ctx context.Context, pool *pgxpool.Pool, opts *Options) error {
	o, err := opts.withDefaults()
	if err != nil {
		return err
	}
	o.CheckOnly = false
	return newStore(pool, o).prepare(ctx)
}
