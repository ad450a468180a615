package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// holdLock keeps everybody else from writing to a file until the returned function is called.
func holdLock(t testing.TB, path string) (release func()) {
	t.Helper()
	conn, err := raw(t, path).Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// The store may be looking after its log still.
	if _, err := conn.ExecContext(t.Context(), "PRAGMA busy_timeout = 10000; BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if _, err := conn.ExecContext(t.Context(), "ROLLBACK"); err != nil {
			t.Error(err)
		}
		conn.Close()
	}
}

// pair is two tasks that are there together or not at all.
func pair(i int) *tracking.Changeset {
	return &tracking.Changeset{Tasks: []tracking.Task{
		{ID: tracking.TaskID(fmt.Sprintf("a%d", i)), CreatedAt: start},
		{ID: tracking.TaskID(fmt.Sprintf("b%d", i)), CreatedAt: start},
	}}
}

// there reports whether pair i is there, and fails if half of it is.
func there(t testing.TB, s tracking.Store, i int) bool {
	t.Helper()
	cs := pair(i)
	_, errA := s.Task(t.Context(), app, cs.Tasks[0].ID)
	_, errB := s.Task(t.Context(), app, cs.Tasks[1].ID)
	if (errA == nil) != (errB == nil) {
		t.Errorf("half of changeset %d is there: %v, %v", i, errA, errB)
	}
	return errA == nil
}

// TestQueueIsBounded has more changes wait than there is room for: the rest are refused at once,
// and those that were accepted are done later.
func TestQueueIsBounded(t *testing.T) {
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, &sqlite.Options{Queue: 2})
	defer closeStore(t, s)
	release := holdLock(t, path)
	const n = 2000 // more than one transaction takes, and the queue besides
	errs := make([]error, n)
	refused := make(chan struct{}, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if _, errs[i] = s.Commit(t.Context(), app, pair(i)); errs[i] != nil {
				refused <- struct{}{}
			}
		})
	}
	<-refused
	release()
	wg.Wait()
	accepted := 0
	for i, err := range errs {
		if err != nil && !errors.Is(err, tracking.ErrUnavailable) {
			t.Errorf("Commit %d: %v", i, err)
		}
		if there(t, s, i) != (err == nil) {
			t.Errorf("Commit %d: %v, and it is there: %v", i, err, err != nil)
		}
		if err == nil {
			accepted++
		}
	}
	if accepted == 0 || accepted == n {
		t.Errorf("%d of %d were accepted", accepted, n)
	}
}

// TestCancelledWhileWaiting ends the context of a change that waits: it is never done.
func TestCancelledWhileWaiting(t *testing.T) {
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, nil)
	defer closeStore(t, s)
	release := holdLock(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error)
	go func() {
		_, err := s.Commit(ctx, app, pair(1))
		errs <- err
	}()
	cancel()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want context.Canceled", err)
	}
	release()
	commitTask(t, s, "next")
	if there(t, s, 1) {
		t.Error("a change that was called off has been done")
	}
}

// TestCancelledAnyTime ends contexts at any time: each change is there as a whole or not at all,
// and those that were answered with success are there.
func TestCancelledAnyTime(t *testing.T) {
	s := open(t, filepath.Join(fastDir(t), "tracking.db"), nil)
	defer closeStore(t, s)
	const n = 400
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		cs := pair(i)
		wg.Go(func() {
			defer close(done)
			_, errs[i] = s.Commit(ctx, app, cs)
			cs.Tasks[0].ID, cs.Tasks[1].ID = "changed", "changed too" // it is the caller's again
		})
		wg.Go(func() {
			if i%3 == 0 {
				<-done
			}
			cancel()
		})
	}
	wg.Wait()
	commitTask(t, s, "next") // what was on its way is done
	count := map[bool]int{}
	for i, err := range errs {
		is := there(t, s, i)
		if err == nil && !is {
			t.Errorf("changeset %d was acknowledged, and is not there", i)
		}
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("changeset %d: %v", i, err)
		}
		count[is]++
	}
	if count[true] == 0 {
		t.Error("nothing was done")
	}
}

// TestRefusedAmongOthers commits changes together, every other of which is in conflict: it takes
// nothing with it that is written in the same transaction, and leaves nothing of itself.
func TestRefusedAmongOthers(t *testing.T) {
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, nil)
	defer closeStore(t, s)
	commitTask(t, s, "taken")
	release := holdLock(t, path) // so that they wait together
	const n = 200
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		cs := pair(i)
		cs.Drivers = []tracking.Driver{{ID: tracking.DriverID(fmt.Sprintf("driver-%d", i)), CreatedAt: start}}
		cs.Fixes = []tracking.FixBatch{{
			DriverID: cs.Drivers[0].ID, SeenAt: start, KeepOffDuty: true, Fixes: []tracking.Fix{{Time: start}},
		}}
		cs.Events = []tracking.Event{{
			ID: fmt.Sprint(i), Subject: tracking.Subject{Kind: tracking.KindTask, ID: "all"},
			Notices: []tracking.Notice{{DriverID: cs.Drivers[0].ID}},
		}}
		if i%2 == 1 {
			// the last to be written is refused
			cs.Events = append(cs.Events, tracking.Event{ID: fmt.Sprint(i), Subject: cs.Events[0].Subject})
		}
		wg.Go(func() { _, errs[i] = s.Commit(t.Context(), app, cs) })
	}
	release()
	wg.Wait()
	for i, err := range errs {
		if done := there(t, s, i); done != (err == nil) || done != (i%2 == 0) {
			t.Errorf("changeset %d: error %v, and it is there: %v", i, err, done)
		}
		_, err := s.Driver(t.Context(), app, tracking.DriverID(fmt.Sprintf("driver-%d", i)))
		if (err == nil) != (i%2 == 0) {
			t.Errorf("driver %d: %v", i, err)
		}
	}
	near, _, err := s.Drivers(t.Context(), app, tracking.DriverFilter{
		Near: new(tracking.LngLat), Page: tracking.Page{Limit: 1000},
	})
	if err != nil || len(near) != n/2 {
		t.Errorf("%d drivers are near, error %v", len(near), err)
	}
	events, _, err := s.Events(t.Context(), app, tracking.EventFilter{
		Subject: tracking.Subject{Kind: tracking.KindTask, ID: "all"}, Limit: 1000,
	})
	if err != nil || len(events) != n/2 || events[n/2-1].Seq != n/2 {
		t.Errorf("%d events, error %v", len(events), err)
	}
}

// TestBusy waits for somebody else's lock.
func TestBusy(t *testing.T) {
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, nil)
	defer closeStore(t, s)
	release := holdLock(t, path)
	errs := make(chan error)
	go func() {
		_, err := s.Commit(t.Context(), app, pair(1))
		errs <- err
	}()
	release()
	if err := <-errs; err != nil {
		t.Error(err)
	}
	s2 := open(t, filepath.Join(fastDir(t), "tracking.db"), &sqlite.Options{BusyTimeout: 1})
	defer closeStore(t, s2)
	var file string
	db, err := s2.Reader()
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Get(&file, "SELECT file FROM pragma_database_list WHERE name = 'main'"); err != nil {
		t.Fatal(err)
	}
	release = holdLock(t, file)
	if _, err := s2.Commit(t.Context(), app, pair(1)); !errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("got error %v, want ErrUnavailable", err)
	}
	release()
	if _, err := s2.Commit(t.Context(), app, pair(1)); err != nil {
		t.Error(err)
	}
}
