package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// groups are the transactions of a store, a letter for each change; see WithGroups.
type groups struct {
	mu   sync.Mutex
	list []string
}

func (g *groups) add(changes string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list = append(g.list, changes)
}

// since are those after the first n.
func (g *groups) since(n int) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.list[n:]...)
}

// crew makes drivers on duty, who have driven for an hour.
func crew(t testing.TB, s tracking.Store, n int) (ids []tracking.DriverID) {
	t.Helper()
	var cs tracking.Changeset
	for i := range n {
		id := tracking.DriverID(fmt.Sprintf("driver-%d", i))
		ids = append(ids, id)
		cs.Drivers = append(cs.Drivers, tracking.Driver{ID: id, Available: true, CreatedAt: start})
	}
	if _, err := s.Commit(t.Context(), app, &cs); err != nil {
		t.Fatal(err)
	}
	return ids
}

// drive is n fixes of a driver, a second apart.
func drive(id tracking.DriverID, from time.Time, n int) tracking.FixBatch {
	b := tracking.FixBatch{DriverID: id, SeenAt: from}
	for i := range n {
		at := from.Add(time.Duration(i) * time.Second)
		b.Fixes = append(b.Fixes, tracking.Fix{
			LngLat: tracking.LngLat{Lng: 80.27, Lat: 13.08 + float64(at.Unix()%3600)/1e5}, Time: at,
		})
	}
	return b
}

// waitFor returns when n changes wait for the writer.
func waitFor(t testing.TB, s *sqlite.Store, n int) {
	t.Helper()
	for s.Queued() < n {
		if t.Context().Err() != nil {
			t.Fatalf("%d changes wait, want %d", s.Queued(), n)
		}
		runtime.Gosched()
	}
}

// commitOne commits a task; unlike commitTask, from any goroutine.
func commitOne(t testing.TB, s tracking.Store, id string) {
	t.Helper()
	if _, err := s.Commit(t.Context(), app,
		&tracking.Changeset{Tasks: []tracking.Task{{ID: tracking.TaskID(id), CreatedAt: start}}}); err != nil {
		t.Error(err)
	}
}

// TestVerbsBeforeFixes has batches of fixes wait, small and large ones, when a commit comes:
// nothing of theirs is written before it, nor behind it in its transaction. Then all are.
func TestVerbsBeforeFixes(t *testing.T) {
	var g groups
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, sqlite.Options{}.WithGroups(g.add))
	defer closeStore(t, s)
	ids := crew(t, s, 16)
	before := len(g.since(0))
	release := holdLock(t, path)
	var wg sync.WaitGroup
	record := func(b tracking.FixBatch) {
		wg.Go(func() {
			if _, err := s.RecordFixes(t.Context(), app, b); err != nil {
				t.Error(err)
			}
		})
	}
	for i, id := range ids {
		n := 1
		if i%2 == 0 {
			n = 1000
		}
		record(drive(id, start, n))
	}
	waitFor(t, s, len(ids))
	wg.Go(func() { commitOne(t, s, "urgent") })
	waitFor(t, s, len(ids)+1)
	release()
	wg.Wait()
	got := g.since(before)
	if got[0] != "v" {
		t.Errorf("the first transaction is %q, want the commit alone", got[0])
	}
	if all := strings.Join(got, ""); strings.Count(all, "s") != 8 || strings.Count(all, "l") != 8 || len(all) != 17 {
		t.Errorf("the transactions are %q, want 8 small and 8 large batches in all", got)
	}
	for _, changes := range got[1:] {
		if n := strings.Count(changes, "l"); n > 5 { // 4,096 rows, and the one that fills it up
			t.Errorf("a transaction of %d large batches: %q", n, changes)
		}
	}
}

// TestFixesAreNotStarved commits without a pause beside batches of fixes: no lane stands back
// twice.
func TestFixesAreNotStarved(t *testing.T) {
	var g groups
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, sqlite.Options{}.WithGroups(g.add))
	defer closeStore(t, s)
	ids := crew(t, s, 8)
	before := len(g.since(0))
	release := holdLock(t, path)
	stop := make(chan struct{})
	var crowd, fixes sync.WaitGroup
	for i := range 8 {
		crowd.Go(func() {
			for n := 0; ; n++ {
				commitOne(t, s, fmt.Sprintf("task-%d-%d", i, n))
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for i, id := range ids {
		fixes.Go(func() {
			if _, err := s.RecordFixes(t.Context(), app, drive(id, start, 1+i%2*99)); err != nil {
				t.Error(err)
			}
		})
	}
	waitFor(t, s, 16)
	release()
	fixes.Wait()
	close(stop)
	crowd.Wait()
	small, large := 0, 0
	last := "sl"
	for i, changes := range g.since(before) {
		for lane, written := range map[string]int{"s": small, "l": large} {
			if written < 4 && !strings.Contains(last, lane) && !strings.Contains(changes, lane) {
				t.Errorf("transactions %d and %d are %q and %q, while batches of lane %s wait: %d are written", i-1, i,
					last, changes, lane, written)
			}
		}
		last, small, large = changes, small+strings.Count(changes, "s"), large+strings.Count(changes, "l")
	}
	if small != 4 || large != 4 {
		t.Errorf("%d small and %d large batches are written, want 4 each", small, large)
	}
}

// BenchmarkCommitBesideBatches commits a task at a time beside 64 phones that send 1,000 old fixes
// each, without a pause.
func BenchmarkCommitBesideBatches(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "tracking.db"), nil)
	defer s.Close()
	ids := crew(b, s, 64)
	for _, id := range ids { // what follows is older
		if _, err := s.RecordFixes(b.Context(), app, drive(id, start.Add(1000*time.Hour), 1)); err != nil {
			b.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var phones sync.WaitGroup
	for _, id := range ids {
		phones.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := s.RecordFixes(b.Context(), app,
					drive(id, start.Add(time.Duration(n%900)*time.Hour+time.Duration(n/900)*time.Millisecond),
						1000)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	i := 0
	for b.Loop() {
		commitOne(b, s, fmt.Sprintf("bench-%d", i))
		i++
	}
	close(stop)
	phones.Wait()
}

// attempt is a commit that is made, or refused.
type attempt struct {
	app     tracking.AppID
	cs      *tracking.Changeset
	refused bool
}

// commitAtOnce makes commits in one transaction, in this order.
func commitAtOnce(t *testing.T, s *sqlite.Store, path string, g *groups, list []attempt) {
	t.Helper()
	before := len(g.since(0))
	release := holdLock(t, path)
	var wg sync.WaitGroup
	for i, a := range list {
		wg.Go(func() {
			if _, err := s.Commit(t.Context(), a.app, a.cs); (err != nil) != a.refused {
				t.Errorf("change %d: %v", i, err)
			}
		})
		waitFor(t, s, i+1)
	}
	release()
	wg.Wait()
	if got := g.since(before); len(got) != 1 {
		t.Fatalf("the transactions are %q, want one", got)
	}
}

// TestFoundAfterGroup makes, changes and deletes tasks in one transaction, where one takes the place of
// another in the order of creation: each is found by what it is in the end, and by nothing else.
func TestFoundAfterGroup(t *testing.T) {
	var g groups
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, sqlite.Options{}.WithGroups(g.add))
	defer closeStore(t, s)
	commitOne(t, s, "first") // so that the application is there
	task := func(id tracking.TaskID, version int64, order string) tracking.Task {
		return tracking.Task{ID: id, Version: version, OrderID: order, CreatedAt: start}
	}
	made := []tracking.Event{{
		ID: "once", Type: tracking.EventTaskCreated, RecordedAt: start,
		Subject: tracking.Subject{Kind: tracking.KindTask, ID: "a"},
	}}
	commitAtOnce(t, s, path, &g, []attempt{
		{app: app, cs: &tracking.Changeset{Tasks: []tracking.Task{task("a", 0, "alpha")}, Events: made}},
		{app: app, cs: &tracking.Changeset{Tasks: []tracking.Task{task("b", 0, "beta")}, Events: made}, refused: true},
		{app: app, cs: &tracking.Changeset{Tasks: []tracking.Task{task("c", 0, "gamma")}}},
		{app: app, cs: &tracking.Changeset{Tasks: []tracking.Task{task("a", 1, "delta")}}},
		{app: app, cs: &tracking.Changeset{DeleteTasks: []tracking.Task{task("c", 1, "")}}},
		{app: app, cs: &tracking.Changeset{Tasks: []tracking.Task{task("d", 0, "epsilon")}}},
		{app: app, cs: &tracking.Changeset{Tasks: []tracking.Task{task("a", 2, "zeta")}}},
	})
	for order, want := range map[string]tracking.TaskID{
		"alpha": "", "beta": "", "gamma": "", "delta": "", "epsilon": "d", "zeta": "a",
	} {
		list, _, err := s.Tasks(t.Context(), app, tracking.TaskFilter{Query: order, Page: tracking.Page{Limit: 10}})
		if err != nil {
			t.Fatal(err)
		}
		var got tracking.TaskID
		for _, task := range list {
			got += task.ID
		}
		if got != want {
			t.Errorf("%s finds %q, want %q", order, got, want)
		}
	}
}

// TestAddsShareASavepoint adds tasks in one transaction, of which some are refused when they have written
// something already: the others are there as if those had never been.
func TestAddsShareASavepoint(t *testing.T) {
	var g groups
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, sqlite.Options{}.WithGroups(g.add))
	defer closeStore(t, s)
	const fresh = "fresh" // an application that is made by the first of them
	if _, err := s.Commit(t.Context(), app, &tracking.Changeset{
		Drivers: []tracking.Driver{{ID: "d", CreatedAt: start}}, Tasks: []tracking.Task{{ID: "old", CreatedAt: start}},
	}); err != nil {
		t.Fatal(err)
	}
	add := func(id tracking.TaskID, order, event string) *tracking.Changeset {
		return &tracking.Changeset{
			Tasks: []tracking.Task{{ID: id, OrderID: order, CreatedAt: start}}, Deliver: []string{"out"},
			Events: []tracking.Event{{
				ID: event, Type: tracking.EventTaskCreated, RecordedAt: start,
				Subject: tracking.Subject{Kind: tracking.KindTask, ID: string(id)},
				Notices: []tracking.Notice{{DriverID: "d", Kind: tracking.NoticeAssigned, TaskID: id}},
			}},
		}
	}
	commitAtOnce(t, s, path, &g, []attempt{
		{fresh, add("a", "alpha", "1"), false},
		{app, add("b", "beta", "2"), false},
		{app, add("c", "gamma", "2"), true}, // an event of this id is there
		{app, add("d", "delta", "3"), false},
		{app, add("old", "epsilon", "4"), true},
		{fresh, add("e", "zeta", "5"), false},
		{fresh, add("f", "eta", "5"), true},
		{app, add("g", "theta", "6"), false},
	})
	for of, want := range map[tracking.AppID]string{app: "2:b 3:d 6:g ", fresh: "1:a 5:e "} {
		list, _, err := s.Events(t.Context(), of, tracking.EventFilter{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for _, e := range list {
			got += e.ID + ":" + e.Subject.ID + " "
			if e.Seq != 1 {
				t.Errorf("event %s has the number %d", e.ID, e.Seq)
			}
		}
		if got != want {
			t.Errorf("the events of %s are %s, want %s", of, got, want)
		}
	}
	for order, want := range map[string]int{"beta": 1, "gamma": 0, "delta": 1, "epsilon": 0, "theta": 1} {
		list, _, err := s.Tasks(t.Context(), app, tracking.TaskFilter{Query: order, Page: tracking.Page{Limit: 10}})
		if err != nil || len(list) != want {
			t.Errorf("%s finds %d tasks, want %d; error %v", order, len(list), want, err)
		}
	}
	notices, _, err := s.Notices(t.Context(), app, "d", 0, 10)
	if err != nil || len(notices) != 3 || notices[2].ID != 3 {
		t.Errorf("the driver is told %+v, error %v", notices, err)
	}
	leased, err := s.LeaseEvents(t.Context(), tracking.Lease{Outbox: "out", Owner: "o", Now: start, For: time.Minute, Limit: 10})
	if err != nil || len(leased) != 5 {
		t.Errorf("%d events to deliver, want 5; error %v", len(leased), err)
	}
}

// TestAgainInGroup adds a task, deletes it, and adds one of its id in one transaction: it goes on from the
// version that the one before had.
func TestAgainInGroup(t *testing.T) {
	var g groups
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, sqlite.Options{}.WithGroups(g.add))
	defer closeStore(t, s)
	commitOne(t, s, "first")
	before := len(g.since(0))
	release := holdLock(t, path)
	task := []tracking.Task{{ID: "a", CreatedAt: start}}
	gone := []tracking.Task{{ID: "a", Version: 1}}
	var versions [3]int64
	var wg sync.WaitGroup
	for i, cs := range []*tracking.Changeset{{Tasks: task}, {DeleteTasks: gone}, {Tasks: task}} {
		wg.Go(func() {
			w, err := s.Commit(t.Context(), app, cs)
			if err != nil {
				t.Errorf("change %d: %v", i, err)
			}
			for _, given := range w.Tasks {
				versions[i] = given.Version
			}
		})
		waitFor(t, s, i+1)
	}
	release()
	wg.Wait()
	if got := g.since(before); len(got) != 1 || versions != [3]int64{1, 0, 2} {
		t.Errorf("the transactions are %q, want one; the versions are %d", got, versions)
	}
}

// TestAddsAfterCancel has a caller go while what he has asked for shares a savepoint with what is refused
// later. It is run again then, and may not be once he is told that he has gone: by then he may have made
// something else of his changeset.
func TestAddsAfterCancel(t *testing.T) {
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, nil)
	defer closeStore(t, s)
	commitOne(t, s, "first")
	ctx, cancel := context.WithCancel(t.Context())
	release := holdLock(t, path)
	var wg sync.WaitGroup
	var gone atomic.Bool
	runs := 0
	wg.Go(func() {
		s.Add(ctx, func(write func() error) error {
			if runs++; gone.Load() {
				t.Error("it is run when its caller has gone")
			}
			return write()
		})
		gone.Store(true)
	})
	waitFor(t, s, 1)
	wg.Go(func() {
		err := s.Add(t.Context(), func(write func() error) error {
			cancel()
			for range 50 {
				time.Sleep(time.Millisecond) // he would go now
			}
			return errors.Join(write(), tracking.ErrConflict)
		})
		if !errors.Is(err, tracking.ErrConflict) {
			t.Errorf("what is refused: %v", err)
		}
	})
	waitFor(t, s, 2)
	release()
	wg.Wait()
	if runs != 2 {
		t.Errorf("it was run %d times, want 2", runs)
	}
}

// TestAddsShareWithFew adds far more than share a savepoint in one transaction. A caller who goes meanwhile
// has not to wait for all of them, and of those that come late, one that is refused has few run again.
func TestAddsShareWithFew(t *testing.T) {
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, nil)
	defer closeStore(t, s)
	commitOne(t, s, "first")
	const adds, few = 300, 80
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	release := holdLock(t, path)
	var wg sync.WaitGroup
	var gone atomic.Bool
	var runs atomic.Int32
	for i := range adds {
		of := t.Context()
		if i == 0 {
			of = ctx
		}
		wg.Go(func() {
			s.Add(of, func(write func() error) error {
				runs.Add(1)
				switch i {
				case 1:
					cancel()
				case adds - 1:
					for n := 0; n < 1000 && !gone.Load(); n++ {
						time.Sleep(time.Millisecond)
					}
					if !gone.Load() {
						t.Error("who has gone waits for all that are added with what was his")
					}
					return errors.Join(write(), tracking.ErrConflict)
				}
				return write()
			})
			if i == 0 {
				gone.Store(true)
			}
		})
		waitFor(t, s, i+1)
	}
	release()
	wg.Wait()
	if again := int(runs.Load()) - adds; again > few {
		t.Errorf("%d were run again, want %d at most", again, few)
	}
}
