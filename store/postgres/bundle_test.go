package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
)

// taskOf reads a task that is there.
func taskOf(t *testing.T, s tracking.Store, id string) tracking.Task {
	t.Helper()
	task, err := s.Task(t.Context(), app, tracking.TaskID(id))
	if err != nil {
		t.Fatalf("task %s: %v", id, err)
	}
	return task
}

// noted is a change of a task's notes, with its event.
func noted(task tracking.Task, event, notes string) *tracking.Changeset {
	task.Notes = notes
	return &tracking.Changeset{
		Tasks: []tracking.Task{task},
		Events: []tracking.Event{{
			ID: event, Type: tracking.EventTaskUpdated, RecordedAt: start,
			Subject: tracking.Subject{Kind: tracking.KindTask, ID: string(task.ID)},
		}},
		Deliver: []string{""},
	}
}

// A row that somebody else's transaction holds keeps nobody waiting but those who write it.
func TestHeldRow(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s := open(t, url, nil)
	defer s.Close()
	for _, id := range []string{"held-1", "held-2"} {
		if _, err := s.Commit(t.Context(), app, newTask(id)); err != nil {
			t.Fatal(err)
		}
	}
	c := connect(t, url)
	execute(t, c, "BEGIN")
	execute(t, c, "SELECT 1 FROM tracking.tasks FOR UPDATE")

	var held, others sync.WaitGroup
	var mu sync.Mutex
	late := 0
	for n := range 64 {
		if n%32 > 0 {
			others.Go(func() {
				if _, err := s.Commit(t.Context(), app, newTask(fmt.Sprint("t", n))); err != nil {
					t.Errorf("task %d: %v", n, err)
				}
			})
			continue
		}
		task := taskOf(t, s, fmt.Sprint("held-", 1+n/32))
		held.Go(func() {
			if _, err := s.Commit(t.Context(), app, noted(task, fmt.Sprint("e", n), "held")); err != nil {
				t.Errorf("%s: %v", task.ID, err)
			}
			mu.Lock()
			defer mu.Unlock()
			late++
		})
	}
	others.Wait() // for ever, if they waited for those held

	// Who gives up while he waits is not tried any more. What is under way then may still be written:
	// the row is let go only when nothing is.
	waitFor(t, func() bool { return s.IsHeld("e0") && s.IsHeld("e32") })
	ctx, cancel := context.WithCancel(t.Context())
	last := noted(taskOf(t, s, "held-1"), "e-late", "in vain")
	answer := meanwhile(func() (tracking.Written, error) { return s.Commit(ctx, app, last) })
	waitFor(t, func() bool { return s.IsHeld("e-late") })
	cancel()
	if _, err := answer(); !errors.Is(err, context.Canceled) {
		t.Errorf("a commit that waits for a held row until its context ends: %v", err)
	}
	waitFor(t, func() bool { return !s.IsHeld("e-late") })
	mu.Lock()
	if late > 0 {
		t.Errorf("%d calls were answered for tasks that are held", late)
	}
	mu.Unlock()
	execute(t, c, "COMMIT")
	held.Wait()
	for _, id := range []string{"held-1", "held-2"} {
		if task := taskOf(t, s, id); task.Notes != "held" || task.Version != 2 {
			t.Errorf("%s is at version %d, with notes %q", id, task.Version, task.Notes)
		}
	}
}

// A call that waits for a row that is held keeps nobody from the other rows that it is about.
func TestHeldRowBeside(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s := open(t, url, nil)
	defer s.Close()
	for _, id := range []string{"t1", "t2"} {
		if _, err := s.Commit(t.Context(), app, newTask(id)); err != nil {
			t.Fatal(err)
		}
	}
	c := connect(t, url)
	execute(t, c, "BEGIN")
	execute(t, c, "SELECT 1 FROM tracking.tasks WHERE id = 't1' FOR UPDATE")
	both := noted(taskOf(t, s, "t1"), "e-both", "both")
	both.Tasks = append(both.Tasks, taskOf(t, s, "t2"))
	answer := make(chan error)
	go func() {
		_, err := s.Commit(t.Context(), app, both)
		answer <- err
	}()
	waitFor(t, func() bool { _, held, _ := s.Commits(); return held == 1 })
	for n := range 3 {
		if _, err := s.Commit(t.Context(), app, noted(taskOf(t, s, "t2"), fmt.Sprint("e", n), "alone")); err != nil {
			t.Errorf("a commit about t2, which nobody holds: %v", err)
		}
	}
	execute(t, c, "COMMIT")
	var conflict *tracking.ConflictError
	if err := <-answer; !errors.As(err, &conflict) || conflict.ID != "t2" {
		t.Errorf("who has waited gets %v, want a conflict about t2", err)
	}
	waitFor(t, func() bool { line, held, busy := s.Commits(); return line+held+busy == 0 })
	if _, err := s.Commit(t.Context(), app, noted(taskOf(t, s, "t1"), "e-last", "last")); err != nil {
		t.Error(err)
	}
}

// A commit that goes by itself and waits for a driver keeps no other one meanwhile.
func TestHeldDriverBeside(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s := open(t, url, nil)
	defer s.Close()
	if _, err := s.Commit(t.Context(), app, &tracking.Changeset{Drivers: someDrivers(2)}); err != nil {
		t.Fatal(err)
	}
	c := connect(t, url)
	execute(t, c, "BEGIN")
	execute(t, c, "SELECT 1 FROM tracking.positions WHERE id = 'driver-1' FOR UPDATE")
	answer := make(chan error)
	go func() {
		_, err := s.Commit(t.Context(), app, &tracking.Changeset{
			Fixes: []tracking.FixBatch{drive(0, 1, start), drive(1, 1, start)},
		})
		answer <- err
	}()
	waiting := connect(t, url)
	waitFor(t, func() bool {
		var n int
		err := waiting.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
		return err == nil && n > 0
	})
	for n := range 3 {
		if _, err := s.RecordFixes(t.Context(), app, drive(0, 1, start.Add(time.Duration(1+n)*time.Minute))); err != nil {
			t.Errorf("a fix of a driver whom nobody holds: %v", err)
		}
	}
	execute(t, c, "COMMIT")
	if err := <-answer; err != nil {
		t.Errorf("once the driver is free: %v", err)
	}
}

// lone opens a store on a pool of one connection, and what listens to it.
func lone(t *testing.T, url string) (*postgres.Store, *pgxpool.Pool, *listener) {
	t.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{}
	config.MaxConns, config.ConnConfig.Tracer = 1, l
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s, err := postgres.New(t.Context(), pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, pool, l
}

// What is written for a caller who has gone is told like all else.
func TestGoneCommit(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s, pool, _ := lone(t, url)
	if _, err := s.Commit(t.Context(), app, newTask("t1")); err != nil {
		t.Fatal(err)
	}
	cs := noted(taskOf(t, s, "t1"), "e1", "gone")
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error)
	go func() {
		_, err := s.Commit(ctx, app, cs)
		answer <- err
	}()
	waitFor(t, func() bool { line, _, busy := s.Commits(); return line == 0 && busy > 0 })
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("who goes gets %v", err)
	}
	conn.Release()
	c := connect(t, url)
	waitFor(t, func() bool { // nobody asks for the list
		var n int
		err := c.QueryRow(t.Context(), "SELECT count(*) FROM tracking.events WHERE id = 'e1' AND place > 0").Scan(&n)
		return err == nil && n == 1
	})
}

// So are fixes that are kept for one who has gone.
func TestGoneFix(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s, pool, _ := lone(t, url)
	other := open(t, url, nil)
	defer other.Close()
	changes, _ := watch(t, other)
	if _, err := s.Commit(t.Context(), app, &tracking.Changeset{Drivers: someDrivers(1)}); err != nil {
		t.Fatal(err)
	}
	d := heard{app, tracking.Subject{Kind: tracking.KindDriver, ID: "driver-0"}}
	if got := next(t, changes); got != d {
		t.Fatalf("heard %+v, want %+v", got, d)
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error)
	go func() {
		_, err := s.RecordFixes(ctx, app, drive(0, 1, start))
		answer <- err
	}()
	waitFor(t, func() bool { line, groups := s.Recordings(); return line == 0 && groups > 0 })
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("who goes gets %v", err)
	}
	conn.Release()
	if got := next(t, changes); got != d {
		t.Errorf("heard %+v, want %+v", got, d)
	}
}

// Of a group of two applications nothing that goes by the keys of a table is planned for good while
// that is small.
func TestPlansOfGroup(t *testing.T) {
	t.Parallel()
	s, pool, l := lone(t, template.Database(t))
	apps := []tracking.AppID{"a1", "a2"}
	for _, id := range apps {
		for _, task := range []string{"x", "y"} {
			if _, err := s.Commit(t.Context(), id, newTask(task)); err != nil {
				t.Fatal(err)
			}
		}
	}
	type commit struct {
		app tracking.AppID
		cs  *tracking.Changeset
	}
	var list []commit
	for _, id := range apps {
		for _, task := range []string{"x", "y"} {
			old, err := s.Task(t.Context(), id, tracking.TaskID(task))
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, commit{id, noted(old, "e-"+task, "")}, commit{id, newTask("new-" + task)})
		}
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	send := func(c commit) {
		wg.Go(func() {
			if _, err := s.Commit(t.Context(), c.app, c.cs); err != nil {
				t.Error(err)
			}
		})
	}
	for n := range 2 { // groups of one, which wait for the connection
		send(commit{"a1", newTask(fmt.Sprint("first-", n))})
		waitFor(t, func() bool { line, _, busy := s.Commits(); return line == 0 && busy > 2*n })
	}
	for _, c := range list {
		send(c)
	}
	waitFor(t, func() bool { line, _, _ := s.Commits(); return line == len(list) })
	sent := l.of(t, func() error {
		conn.Release()
		wg.Wait()
		return nil
	})
	updates := 0
	for _, q := range plannedForGood(sent, "UPDATE tracking.tasks t") {
		if updates++; q {
			t.Error("tasks are updated by a plan that is kept")
		}
	}
	if updates != len(apps) {
		t.Errorf("there are %d statements that update tasks, want one of each application", updates)
	}
}

// plannedForGood tells, of each statement that has a text, whether its plan is kept.
func plannedForGood(sent []pgx.TraceQueryStartData, text string) (list []bool) {
	keeps := false
	for _, q := range sent {
		switch {
		case strings.HasPrefix(q.SQL, "BEGIN"):
			keeps = false
		case strings.Contains(q.SQL, "plan_cache_mode"):
			keeps = strings.Contains(q.SQL, "generic")
		case strings.Contains(q.SQL, text):
			list = append(list, keeps)
		}
	}
	return list
}

// Among drivers who are many, fixes are found by plans that are not kept while there are few.
func TestPlansOfFixes(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	{
		s := open(t, url, nil)
		if _, err := s.Commit(t.Context(), app, &tracking.Changeset{Drivers: someDrivers(2)}); err != nil {
			t.Fatal(err)
		}
		_ = s.Close()
	}
	c := connect(t, url)
	execute(t, c, fillDrivers, 1500)
	ids, cells, lng, lat := postgres.Places(1500)
	execute(t, c, fillPositions, ids, cells, lng, lat)
	execute(t, c, "ANALYZE tracking.drivers, tracking.positions, tracking.fixes")
	s, _, l := lone(t, url)
	record := func(g int, at time.Duration) []pgx.TraceQueryStartData {
		return l.of(t, func() error {
			_, err := s.RecordFixes(t.Context(), app, drive(g, 1, start.Add(at)))
			return err
		})
	}
	record(0, 0) // asks how large the tables are
	if kept := plannedForGood(record(1, 2*time.Hour), "UPDATE tracking.positions"); len(kept) != 1 || !kept[0] {
		t.Errorf("of updates of drivers, who are many, plans are kept: %v", kept)
	}
	if kept := plannedForGood(record(1, time.Hour), "tracking.fixes k"); len(kept) != 2 || kept[0] || kept[1] {
		t.Errorf("of looks for fixes, which are few, plans are kept: %v", kept)
	}
}

// Who waits for a row may wait no longer than Options.Timeout.
func TestHeldRowTooLong(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	patient, s := open(t, url, nil), open(t, url, &postgres.Options{Timeout: 500 * time.Millisecond})
	defer patient.Close()
	defer s.Close()
	if _, err := patient.Commit(t.Context(), app, newTask("t1")); err != nil {
		t.Fatal(err)
	}
	c := connect(t, url)
	execute(t, c, "BEGIN")
	execute(t, c, "SELECT 1 FROM tracking.tasks FOR UPDATE")
	if _, err := s.Commit(t.Context(), app, noted(taskOf(t, patient, "t1"), "e1", "")); !errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable", err)
	}
	waitFor(t, func() bool { line, held, busy := s.Commits(); return line+held+busy == 0 }) // nor tries it any more
	waitFor(t, func() (over bool) {                                                         // in the server neither, which is told to stop beside the connection
		const waits = `SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
		if err := c.QueryRow(t.Context(), waits).Scan(&over); err != nil {
			t.Fatal(err)
		}
		return over
	})
	execute(t, c, "ROLLBACK")
	tries := 0
	waitFor(t, func() bool { // on a busy machine what was over may yet be done, or what waits for nobody be late
		tries++
		_, err := s.Commit(t.Context(), app, noted(taskOf(t, patient, "t1"), fmt.Sprint("free", tries), ""))
		return err == nil
	})
}

// Of commits that are made at once each is decided by itself, and one that is refused leaves nothing
// behind, also no number of an event.
func TestRefusedCommit(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s := open(t, url, nil)
	defer s.Close()
	for _, cs := range []*tracking.Changeset{newTask("known"), newTask("keyed")} {
		cs.Tasks[0].Key = string(cs.Tasks[0].ID)
		if _, err := s.Commit(t.Context(), app, cs); err != nil {
			t.Fatal(err)
		}
	}
	stale := taskOf(t, s, "known")
	if _, err := s.Commit(t.Context(), app, noted(stale, "first", "")); err != nil {
		t.Fatal(err)
	}
	execute(t, connect(t, url), "ALTER TABLE tracking.tasks ADD CHECK (notes <> 'refused')")

	const rounds, each = 6, 24
	for round := range rounds {
		failing := round%2 == 1 // else a group is not tried one by one
		var wg sync.WaitGroup
		errs := make([]error, each)
		given := make([]tracking.Written, each)
		for n := range each {
			id := fmt.Sprintf("t%d-%d", round, n)
			cs := newTask(id)
			switch {
			case n == 20: // of a version that is gone
				cs = noted(stale, id, "stale")
			case n == 9 && failing: // whose key is taken
				cs.Tasks[0].Key = "keyed"
			case n == 15 && failing: // that the server refuses
				cs.Tasks[0].Notes = "refused"
			case n == 3 && failing: // that cannot be sent to the server
				cs.Tasks[0].CompletedFrom = &tracking.Whereabouts{OffBy: math.NaN()}
			}
			wg.Go(func() { given[n], errs[n] = s.Commit(t.Context(), app, cs) })
		}
		wg.Wait()
		for n, err := range errs {
			var conflict *tracking.ConflictError
			errors.As(err, &conflict)
			switch {
			case n == 20:
				if conflict == nil || conflict.Kind != tracking.KindTask || conflict.ID != "known" {
					t.Errorf("of a version that is gone: %v", err)
				}
			case n == 9 && failing:
				if conflict == nil || conflict.Unique != "key" {
					t.Errorf("of a key that is taken: %v", err)
				}
			case (n == 15 || n == 3) && failing:
				if !errors.Is(err, tracking.ErrInternal) {
					t.Errorf("what the server refuses, or cannot be sent: %v", err)
				}
			default:
				id := fmt.Sprintf("t%d-%d", round, n)
				if err != nil {
					t.Errorf("task %s: %v", id, err)
				} else if task := taskOf(t, s, id); given[n].Tasks[0] != (tracking.Given{Seq: task.Seq, Version: 1}) {
					t.Errorf("task %s was given %+v, and has %d", id, given[n].Tasks[0], task.Seq)
				}
			}
		}
	}

	if _, err := s.Commit(t.Context(), app, noted(taskOf(t, s, "known"), "last", "")); err != nil {
		t.Fatal(err)
	}
	list, _, err := s.Events(t.Context(), app, tracking.EventFilter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if want := 2 + 1 + rounds*(each-1) - rounds/2*3 + 1; len(list) != want {
		t.Errorf("there are %d events, want %d", len(list), want)
	}
	if last := list[len(list)-1]; last.ID != "last" || last.Seq != 3 {
		t.Errorf("the last event is %s with Seq %d; want 3, of \"last\"", last.ID, last.Seq)
	}
	var alone int
	c := connect(t, url)
	if err := c.QueryRow(t.Context(), "SELECT count(*) FROM tracking.subjects s WHERE NOT EXISTS ("+
		"SELECT 1 FROM tracking.events e WHERE e.app = s.app AND e.subject = s.n)").Scan(&alone); err != nil || alone > 0 {
		t.Errorf("%d subjects have no event; %v", alone, err)
	}
}

// Commits about the same rows that are made at once come one after another, each on what the one
// before has left.
func TestSameRowAtOnce(t *testing.T) {
	t.Parallel()
	s := open(t, template.Database(t), nil)
	defer s.Close()
	if _, err := s.Commit(t.Context(), app, newTask("t")); err != nil {
		t.Fatal(err)
	}
	task := taskOf(t, s, "t")
	const callers = 40
	var wg sync.WaitGroup
	var mu sync.Mutex
	done := 0
	for g := range callers {
		wg.Go(func() {
			_, err := s.Commit(t.Context(), app, noted(task, fmt.Sprint("e", g), fmt.Sprint(g)))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				done++
			} else if !errors.Is(err, tracking.ErrConflict) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if now := taskOf(t, s, "t"); done != 1 || now.Version != 2 {
		t.Errorf("%d of %d callers replaced version 1; it is at %d", done, callers, now.Version)
	}
}
