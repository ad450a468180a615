package postgres_test

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
	"github.com/seed-8aba7b13/tracking/store/postgres/pgtest"
)

// blank are databases without anything in them.
var blank = pgtest.NewTemplate(func(context.Context, string) error { return nil })

// sql runs a statement of the test's own and returns the first column of its rows.
func sql(t *testing.T, url, text string, args ...any) []string {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	return texts(t, c, text, args...)
}

// texts are what a statement finds, of one column.
func texts(t testing.TB, c *pgx.Conn, text string, args ...any) []string {
	t.Helper()
	found, err := c.Query(t.Context(), text, args...)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// refused opens a store that must not open.
func refused(t *testing.T, url string, opts *postgres.Options, want error) {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, opts)
	var refusal *postgres.OpenError
	switch {
	case err == nil:
		s.Close()
		t.Errorf("it opens, want %v", want)
	case !errors.Is(err, want) || !errors.As(err, &refusal) || refusal.Advice == "":
		t.Errorf("got error %v, want %v and an advice", err, want)
	}
}

func TestCheckOnly(t *testing.T) {
	t.Parallel()
	url := blank.Database(t)
	refused(t, url, &postgres.Options{CheckOnly: true}, postgres.ErrOlder)
	if got := sql(t, url, `SELECT nspname::text FROM pg_namespace WHERE nspname = 'tracking'`); len(got) > 0 {
		t.Error("it was told to look only, and has made the schema")
	}
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := postgres.Migrate(t.Context(), pool, nil); err != nil {
		t.Fatal(err)
	}
	if err := open(t, url, &postgres.Options{CheckOnly: true}).Close(); err != nil {
		t.Error(err)
	}
}

// The code of a version works on the schema of the next one, and leaves a newer one alone.
func TestNewerSchema(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	insert := `INSERT INTO tracking.migrations (version) SELECT max(version) + 1 FROM tracking.migrations RETURNING version::text`
	sql(t, url, insert)
	if err := open(t, url, nil).Close(); err != nil {
		t.Errorf("on the schema of the next version: %v", err)
	}
	versions := sql(t, url, insert)
	refused(t, url, nil, postgres.ErrNewer)
	if got := sql(t, url, `SELECT max(version)::text FROM tracking.migrations`); got[0] != versions[0] {
		t.Errorf("the schema has version %s afterwards, want %s", got[0], versions[0])
	}
}

// Of many processes that start at once on an empty database one makes the schema, also while somebody
// holds a long transaction open.
func TestManyOpenAtOnce(t *testing.T) {
	t.Parallel()
	url := blank.Database(t)
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			s, err := postgres.Open(t.Context(), url, nil)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := s.Secret(t.Context()); err != nil {
				t.Error(err)
			}
			s.Close()
		})
	}
	all.Wait()
	if got := sql(t, url, `SELECT count(*)::text FROM tracking.migrations`); got[0] != versionsThere(t) {
		t.Errorf("%s steps are noted, want %s", got[0], versionsThere(t))
	}
}

// versionsThere is how many migrations there are.
func versionsThere(t *testing.T) string {
	t.Helper()
	names, err := fs.Glob(postgres.Migrations(), "*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("the migrations are %v, %v", names, err)
	}
	return string(rune('0' + len(names)))
}

// A schema of another name, even one that has to be quoted, lies beside that of everybody else.
func TestSchema(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	opts := &postgres.Options{Schema: `Two "words"`, CallersClock: true}
	one, other := open(t, url, callersClock), open(t, url, opts)
	t.Cleanup(func() { one.Close(); other.Close() })
	commit(t, other, tracking.Changeset{Drivers: []tracking.Driver{driver("d")}})
	if _, err := other.Driver(t.Context(), "here", "d"); err != nil {
		t.Error(err)
	}
	if _, err := one.Driver(t.Context(), "here", "d"); !errors.Is(err, tracking.ErrNotFound) {
		t.Errorf("in the other schema: got error %v, want ErrNotFound", err)
	}
}

// The pool that New is given stays open.
func TestNewLeavesThePool(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), template.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := postgres.New(t.Context(), pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := pool.Ping(t.Context()); err != nil {
		t.Errorf("after Close: %v", err)
	}
	if _, err := s.Driver(t.Context(), "here", "d"); !errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("after Close: got error %v, want ErrUnavailable", err)
	}
}

// A server that only reads, as one does that waits to take over, answers reads and refuses writes as
// unavailable; when it writes again, so does the store.
func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s := open(t, url, nil)
	t.Cleanup(func() { s.Close() })
	commit(t, s, tracking.Changeset{Drivers: []tracking.Driver{driver("d")}})
	name := sql(t, url, `SELECT current_database()::text`)[0]
	set := func(value string) {
		sql(t, url, `ALTER DATABASE `+name+` SET default_transaction_read_only = `+value)
		sql(t, url, `SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	}
	write := func() error {
		var err error
		for range 10 { // each connection that was cut has to be found
			_, err = s.Commit(t.Context(), "here", &tracking.Changeset{Keys: []tracking.Key{{ID: "k", CreatedAt: start}}})
			if err == nil {
				return nil
			}
		}
		return err
	}
	set("on")
	if err := write(); !errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("Commit: got error %v, want ErrUnavailable", err)
	}
	if _, err := s.Driver(t.Context(), "here", "d"); err != nil {
		t.Errorf("Driver: %v", err)
	}
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), `SET default_transaction_read_only = off`); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Exec(t.Context(), `ALTER DATABASE `+name+` RESET default_transaction_read_only`); err != nil {
		t.Fatal(err)
	}
	c.Close(t.Context())
	sql(t, url, `SELECT pg_terminate_backend(pid)::text FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	if err := write(); err != nil {
		t.Errorf("Commit, once it writes again: %v", err)
	}
}
