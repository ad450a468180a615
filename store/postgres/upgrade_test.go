package postgres_test

import (
	"fmt"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
)

// nextMigrations are those of a later version of the library, which has one more: it adds to tables in
// another order than a Commit writes to them.
func nextMigrations(t testing.TB) fs.FS {
	t.Helper()
	return withMigration(t, `
ALTER TABLE tracking.events ADD COLUMN later text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE tracking.tasks ADD COLUMN later bigint;
ALTER TABLE tracking.positions ADD COLUMN later bigint NOT NULL DEFAULT 0;
CREATE INDEX tasks_later ON tracking.tasks (app, later) WHERE later IS NOT NULL;
CREATE TABLE tracking.later (app int NOT NULL, id text COLLATE "C" NOT NULL, PRIMARY KEY (app, id));
`)
}

// withMigration are the migrations and one more.
func withMigration(t testing.TB, script string) fs.FS {
	t.Helper()
	steps := fstest.MapFS{}
	names, err := fs.Glob(postgres.Migrations(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(postgres.Migrations(), name)
		if err != nil {
			t.Fatal(err)
		}
		steps[name] = &fstest.MapFile{Data: text}
	}
	steps[fmt.Sprintf("%04d_later.sql", len(names)+1)] = &fstest.MapFile{Data: []byte(script)}
	return steps
}

// Processes are replaced one by one by those of the next version, which brings the schema up to date
// under load: the old ones go on, and can be started again on the newer schema, until all are new.
// While it waits for a transaction that somebody has left open, nobody waits with it.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	if isWorker(t) {
		return
	}
	const looks, next = "PROCESS_CHECKS=1", "PROCESS_NEXT=1"
	f := newFleet(t, template.Database(t))
	s := open(t, f.url, nil)
	defer s.Close()
	f.hire(s, "a", "b", "c")
	a, b := f.start("a", looks), f.start("b", looks)
	load := endured(10, 2000)
	f.await(load, a, b)

	left := connect(t, f.url)
	execute(t, left, "BEGIN")
	execute(t, left, "SELECT 1 FROM tracking.tasks LIMIT 1")
	c := f.start("c", next)
	watcher := connect(t, f.url)
	for waits := false; !waits; {
		const waiting = `SELECT EXISTS (SELECT 1 FROM pg_locks, pg_sleep(0.005)
			WHERE NOT granted AND mode = 'AccessExclusiveLock' AND relation = 'tracking.tasks'::regclass)`
		if err := watcher.QueryRow(t.Context(), waiting).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	f.await(load, a, b)
	execute(t, left, "COMMIT")
	f.await(load, c, a, b)

	b.kill()
	b = f.start("b", looks) // as when a machine restarts amid the rollout
	f.await(load, b)
	f.finish(a)
	a = f.start("a", looks, next)
	f.await(load, a, b, c)
	f.finish(b)
	b = f.start("b", looks, next)
	f.await(load, a, b, c)
	f.finish(a, b, c)
	f.check(s)
	if got := sql(t, f.url, `SELECT count(*)::text FROM tracking.tasks WHERE later IS NULL`); got[0] == "0" {
		t.Error("the schema is as it was")
	}
}

// A migration, and what the server learns of the tables after it, take as long as they need, whatever is
// set for calls.
func TestMigrationTakesItsTime(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s := open(t, url, nil)
	_, err := s.Commit(t.Context(), app, &tracking.Changeset{Drivers: someDrivers(1)})
	s.Close()
	if err != nil {
		t.Fatal(err)
	}
	// The index runs the function for each row when it is made, and when the table is analyzed.
	steps := withMigration(t, `
CREATE FUNCTION tracking.unlimited(n bigint) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('statement_timeout') <> '0' THEN
		RAISE EXCEPTION 'it may take %', current_setting('statement_timeout');
	END IF;
	RETURN 'unlimited';
END $$;
CREATE INDEX drivers_later ON tracking.drivers (tracking.unlimited(n));
`)
	open(t, url, postgres.Options{}.WithMigrations(steps)).Close()
	if got := sql(t, url, `SELECT count(*)::text FROM pg_stats WHERE tablename = 'drivers_later'`); got[0] == "0" {
		t.Error("the index was not analyzed")
	}
}
