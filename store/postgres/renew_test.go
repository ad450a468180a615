package postgres_test

import (
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
)

// firstMigrations are those of the first version of the library.
func firstMigrations(t testing.TB) fs.FS {
	t.Helper()
	const name = "0001_initial.sql"
	text, err := fs.ReadFile(postgres.Migrations(), name)
	if err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{name: &fstest.MapFile{Data: text}}
}

// What version 1 had tasks found by where a number stands in the digits of another script is renewed,
// also of a task that somebody writes meanwhile, and what is right is not written.
func TestTermsAreRenewed(t *testing.T) {
	t.Parallel()
	url := blank.Database(t)
	s := open(t, url, postgres.Options{}.WithMigrations(firstMigrations(t)))
	defer s.Close()
	var cs tracking.Changeset
	said := func(id, address string) {
		cs.Tasks = append(cs.Tasks, tracking.Task{
			ID: tracking.TaskID(id), CreatedAt: start, Type: tracking.TypeDrop, Status: tracking.StatusCreated,
			Drop: &tracking.Place{Address: address}, Properties: map[string]string{"zone": "north"},
		})
	}
	for i := range 2500 {
		said(fmt.Sprintf("t%04d", i), fmt.Sprint("Street ", i))
	}
	stale := []string{"t0000a", "t0999a", "t1234a", "t2499a"}
	for _, id := range stale {
		said(id, "شارع ٤٥٦٧")
	}
	said("accent", "Müllerstraße 4567")
	commit(t, s, cs)
	cs.Tasks = nil
	said("elsewhere", "شارع ٤٥٦٧")
	if _, err := s.Commit(t.Context(), "other", &cs); err != nil {
		t.Fatal(err)
	}
	const spoil = `UPDATE tracking.tasks SET terms = '{w٤,w٤٥٦٧,n٤٥٦٧}' WHERE id = ANY ($1)`
	c := connect(t, url)
	execute(t, c, spoil, append(slices.Clone(stale), "elsewhere", "t0007"))
	written := func(id string) string {
		return sql(t, url, `SELECT xmin::text FROM tracking.tasks WHERE id = $1`, id)[0]
	}
	accent := written("accent")

	execute(t, c, `BEGIN`)
	execute(t, c, spoil, stale[2:3])
	const change = `UPDATE tracking.tasks SET version = version + 1, drop_address = 'شارع ٨٨٨٨' WHERE id = $1`
	execute(t, c, change, stale[2])
	var renewed *postgres.Store
	var err error
	opened := make(chan struct{})
	go func() {
		renewed, err = postgres.Open(t.Context(), url, nil)
		close(opened)
	}()
	watcher := connect(t, url)
	for waits := false; !waits; {
		const waiting = `SELECT EXISTS (SELECT 1 FROM pg_locks l JOIN pg_stat_activity a USING (pid), pg_sleep(0.005)
			WHERE NOT granted AND a.datname = current_database())`
		if err := watcher.QueryRow(t.Context(), waiting).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	execute(t, c, `COMMIT`)
	if <-opened; err != nil {
		t.Fatal(err)
	}
	defer renewed.Close()

	found := func(app tracking.AppID, query string) (ids []string) {
		list, _, err := renewed.Tasks(t.Context(), app, tracking.TaskFilter{
			Query: query, Properties: map[string]string{"zone": "north"}, Page: tracking.Page{Limit: 10},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range list {
			ids = append(ids, string(task.ID))
		}
		slices.Sort(ids)
		return ids
	}
	if got, want := found("here", "4567"), []string{"accent", stale[0], stale[1], stale[3]}; !slices.Equal(got, want) {
		t.Errorf("found are %q, want %q", got, want)
	}
	if got, want := found("here", "8888"), stale[2:3]; !slices.Equal(got, want) {
		t.Errorf("written meanwhile are %q, want %q", got, want)
	}
	if got := found("other", "٤٥٦٧"); len(got) != 1 {
		t.Errorf("in another application %q are found", got)
	}
	if got := found("here", "street 7"); slices.Contains(got, "t0007") {
		t.Error("a task with nothing but ASCII was renewed")
	}
	if written("accent") != accent {
		t.Error("a task that was right was written")
	}
	if n := sql(t, url, `SELECT count(*)::text FROM pg_indexes WHERE indexname = 'requests_by_trip'`); n[0] != "1" {
		t.Errorf("there are %s indices of requests by trip", n[0])
	}
}

// To renew them takes as long as it needs, whatever is set for calls.
func TestRenewalTakesItsTime(t *testing.T) {
	t.Parallel()
	url := blank.Database(t)
	s := open(t, url, postgres.Options{}.WithMigrations(firstMigrations(t)))
	cs := newTask("t")
	cs.Tasks[0].Drop = &tracking.Place{Address: "شارع ٤٥٦٧"}
	commit(t, s, *cs)
	s.Close()
	c := connect(t, url)
	execute(t, c, `UPDATE tracking.tasks SET terms = '{w٤٥٦٧}'`)
	execute(t, c, `
CREATE FUNCTION tracking.unlimited() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF current_setting('statement_timeout') <> '0' THEN
		RAISE EXCEPTION 'it may take %', current_setting('statement_timeout');
	END IF;
	RETURN NEW;
END $$`)
	execute(t, c, `CREATE TRIGGER unlimited BEFORE UPDATE ON tracking.tasks FOR EACH ROW EXECUTE FUNCTION tracking.unlimited()`)
	open(t, url, nil).Close()
	if got := sql(t, url, `SELECT ('w4567' = ANY (terms))::text FROM tracking.tasks`); got[0] != "true" {
		t.Errorf("that 4567 is among the terms is %s", got[0])
	}
}
