package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// RunShared tests stores that several processes open at once: open gives two on the same rows, empty
// at first, as two processes would have them; a store of one process is given twice. It closes what
// it opened.
//
// What one of the two has committed the other reads; both race for the same rows; who follows the
// events misses none while both commit; no driver is given two tasks by two Services; and a link
// held by one shows within a second what came to the other. Those that are a [tracking.Watcher] or a
// [tracking.Limiter] are held to that too.
func RunShared(t *testing.T, open func(t testing.TB) (a, b tracking.Store)) {
	for _, c := range sharedChecks() {
		t.Run(c.name, func(t *testing.T) {
			a, b := open(t)
			t.Cleanup(func() { a.Close(); b.Close() })
			c.run(t, a, b)
		})
	}
	for _, c := range slices.Concat(concurrentChecks(), outboxChecks(), claimChecks()) {
		t.Run("in turns/"+c.name, func(t *testing.T) {
			a, b := open(t)
			s := &inTurns{Store: a, other: b}
			t.Cleanup(func() { a.Close(); b.Close() })
			c.run(t, s)
		})
	}
}

type sharedCheck struct {
	name string
	run  func(t testing.TB, a, b tracking.Store)
}

func sharedChecks() []sharedCheck {
	return []sharedCheck{
		{"what one commits and records the other reads at once", otherReadsWhatOneWrote},
		{"a version that one has moved is a conflict for the other", otherIsRefusedAnOldVersion},
		{"who follows the events while both commit misses none", eventsOfBothAreFollowed},
		{"two Services give nobody two tasks", twoServicesAssignOnce},
		{"Watch/one is told of what the other commits and records, and not of a sign of life", watchTellsOfTheOther},
		{"Limit/what both count adds up, and nil leaves nothing", limitsAddUp},
		{"a link of one Service shows within a second what came to the other", linkShowsWhatCameToAnother},
		{"who looks on, cut off or not, holds in the end what there is", onlookersOfBoth},
	}
}

// inTurns asks two stores in turns.
type inTurns struct {
	tracking.Store
	other tracking.Store
	n     atomic.Int64
}

func (s *inTurns) next() tracking.Store {
	if s.n.Add(1)%2 == 0 {
		return s.other
	}
	return s.Store
}

func (s *inTurns) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	return s.next().Commit(ctx, app, cs)
}

func (s *inTurns) RecordFixes(ctx context.Context, app tracking.AppID, b tracking.FixBatch) (tracking.Recorded,
	error) {
	return s.next().RecordFixes(ctx, app, b)
}

func (s *inTurns) LeaseEvents(ctx context.Context, l tracking.Lease) ([]tracking.Leased, error) {
	return s.next().LeaseEvents(ctx, l)
}

func (s *inTurns) FinishEvents(ctx context.Context, done []tracking.Delivery) error {
	return s.next().FinishEvents(ctx, done)
}

func (s *inTurns) Task(ctx context.Context, app tracking.AppID, id tracking.TaskID) (tracking.Task, error) {
	return s.next().Task(ctx, app, id)
}

func (s *inTurns) Driver(ctx context.Context, app tracking.AppID, id tracking.DriverID) (tracking.Driver, error) {
	return s.next().Driver(ctx, app, id)
}

func (s *inTurns) Events(ctx context.Context, app tracking.AppID, f tracking.EventFilter) ([]tracking.Event, bool,
	error) {
	return s.next().Events(ctx, app, f)
}

func (s *inTurns) Due(ctx context.Context, q tracking.DueQuery) ([]tracking.Due, error) {
	return s.next().Due(ctx, q)
}

func (s *inTurns) Matches(ctx context.Context, app tracking.AppID, q tracking.MatchQuery) ([]tracking.Task, error) {
	return s.next().Matches(ctx, app, q)
}

func otherReadsWhatOneWrote(t testing.TB, a, b tracking.Store) {
	one, other := use(t, a, here), use(t, b, here)
	cs := seed()
	one.commit(cs)
	same(t, "what the other reads", snap(t, b, here), snap(t, a, here))
	leased := other.lease("w", at(time.Hour), 10)
	same(t, "what the other is given to deliver", each(leased, leasedID), []string{"e"})
	same(t, "drivers nearby, for the other", each(other.offers(tracking.Offer{
		At: tracking.LngLat{Lng: 11, Lat: 48}, MaxOpen: 1,
	}), driverID), []tracking.DriverID{"d"})
	same(t, "waiting, for the other", each(other.waiting(tracking.WaitingFilter{}), taskID), []tracking.TaskID{"waits"})

	// Moves and new rows, the other way round.
	other.record(tracking.FixBatch{
		DriverID: "d", SeenAt: at(time.Minute), Fixes: []tracking.Fix{newFix(at(time.Minute), 11.01, 48)},
	})
	other.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("e", t0)}, Fixes: []tracking.FixBatch{{
		DriverID: "e", SeenAt: at(time.Minute), Fixes: []tracking.Fix{newFix(at(time.Minute), 11.02, 48)},
	}}})
	same(t, "what one reads", snap(t, a, here), snap(t, b, here))
	same(t, "drivers nearby, for one", each(one.offers(tracking.Offer{
		At: tracking.LngLat{Lng: 11.03, Lat: 48}, MaxOpen: 1,
	}), driverID), []tracking.DriverID{"e", "d"})
	waits := one.task("waits")
	waits.Waiting = false
	one.commit(tracking.Changeset{Tasks: []tracking.Task{waits}})
	same(t, "waiting in the end, for the other", other.waiting(tracking.WaitingFilter{}), nil)

	first, err := a.Secret(t.Context())
	one.ok(err)
	second, err := b.Secret(t.Context())
	one.ok(err)
	same(t, "the secret, for the other", second, first)
	one.ok(a.SetMemo(t.Context(), "memo", []byte("kept")))
	memo, err := b.Memo(t.Context(), "memo")
	one.ok(err)
	same(t, "memo, for the other", memo, []byte("kept"))
	one.putFile("f", tracking.File{TaskID: "t", At: t0, Data: []byte("file")})
	other.file("f", []byte("file"))
}

func otherIsRefusedAnOldVersion(t testing.TB, a, b tracking.Store) {
	one, other := use(t, a, here), use(t, b, here)
	one.commit(seed())
	task, driver := other.task("t"), other.driver("d")
	changed := task
	changed.Notes = "changed"
	one.commit(tracking.Changeset{Tasks: []tracking.Task{changed}, Drivers: []tracking.Driver{driver}})
	other.refused(tracking.Changeset{Tasks: []tracking.Task{task}},
		tracking.ConflictError{Kind: tracking.KindTask, ID: "t"})
	other.refused(tracking.Changeset{Drivers: []tracking.Driver{driver}},
		tracking.ConflictError{Kind: tracking.KindDriver, ID: "d"})
	again := newTask("again", t0)
	again.Key = "k"
	other.refused(tracking.Changeset{Tasks: []tracking.Task{again}},
		tracking.ConflictError{Kind: tracking.KindTask, Unique: "key"})
	one.commit(tracking.Changeset{DeleteDrivers: []tracking.Driver{one.driver("d")}})
	_, err := b.Driver(t.Context(), here, "d")
	missing(t, "a driver whom one has deleted, for the other", err)
	_, err = b.RecordFixes(t.Context(), here, tracking.FixBatch{DriverID: "d", SeenAt: at(time.Minute)})
	missing(t, "fixes of a driver whom one has deleted", err)
	other.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0)}})
	if v := one.driver("d").Version; v <= driver.Version+1 {
		t.Errorf("who is made with the id again has version %d, the one before had %d", v, driver.Version+1)
	}
}

// eventsOfBothAreFollowed has four writers at each store, and a reader who asks both in turns for
// what comes after the last that he knows.
func eventsOfBothAreFollowed(t testing.TB, a, b tracking.Store) {
	const writers, commits = 4, 25
	stores := []tracking.Store{a, b}
	var all sync.WaitGroup
	var written sync.Map
	for n := range 2 * writers {
		all.Go(func() {
			for i := range commits {
				id := fmt.Sprintf("%d-%d", n, i)
				subject := fmt.Sprint(i % 3) // all of them write to the same ones
				cs := tracking.Changeset{Events: []tracking.Event{
					newEvent(id, tracking.KindTask, subject, t0), newEvent(id+"b", tracking.KindTask, subject, t0),
				}}
				_, err := stores[n%2].Commit(t.Context(), here, &cs)
				for c := new(tracking.ConflictError); errors.As(err, &c) && c.Kind == ""; {
					_, err = stores[n%2].Commit(t.Context(), here, &cs)
				}
				if err != nil {
					t.Errorf("Commit: %v", err)
					return
				}
				written.Store(id, true)
				written.Store(id+"b", true)
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()

	seen, seqs, last := map[string]bool{}, map[string]int64{}, ""
	read := func(s tracking.Store) int {
		list, _, err := s.Events(t.Context(), here, tracking.EventFilter{After: last, Limit: 7})
		if err != nil {
			t.Fatalf("Events after %q: %v", last, err)
		}
		for _, e := range list {
			if seen[e.ID] {
				t.Fatalf("event %s comes twice", e.ID)
			}
			if seqs[e.Subject.ID]++; e.Seq != seqs[e.Subject.ID] {
				t.Fatalf("event %s of %s has Seq %d after %d", e.ID, e.Subject.ID, e.Seq, seqs[e.Subject.ID]-1)
			}
			seen[e.ID], last = true, e.ID
		}
		return len(list)
	}
	for n, over := 0, false; ; n++ {
		if got := read(stores[n%2]); got == 0 && over {
			break
		}
		select {
		case <-done:
			over = true
		default:
		}
	}
	if want := 2 * 2 * writers * commits; len(seen) != want {
		t.Errorf("%d events were seen, %d written", len(seen), want)
	}
	written.Range(func(id, _ any) bool {
		if !seen[id.(string)] {
			t.Errorf("event %s was not seen", id)
		}
		return true
	})
}

// twoServicesAssignOnce creates 36 tasks for 24 drivers, from two Services at once.
func twoServicesAssignOnce(t testing.TB, a, b tracking.Store) {
	var services []*tracking.Service
	for _, s := range []tracking.Store{a, b} {
		services = append(services, several(t, s, 1, tracking.Options{})...)
	}
	drivers := standBy(t, services[0], 24)
	var all sync.WaitGroup
	for n := range 36 {
		all.Go(func() {
			if _, err := services[n%2].CreateTask(t.Context(), dropHere(true)); err != nil {
				t.Errorf("CreateTask: %v", err)
			}
		})
	}
	for _, svc := range services {
		all.Go(func() {
			if _, err := svc.AssignWaiting(t.Context()); err != nil {
				t.Errorf("AssignWaiting: %v", err)
			}
		})
	}
	all.Wait()
	if _, err := services[1].AssignWaiting(t.Context()); err != nil {
		t.Fatal(err)
	}
	has := map[tracking.DriverID]int{}
	tasks, _ := use(t, a, here).tasks(tracking.TaskFilter{Status: []tracking.TaskStatus{tracking.StatusAssigned}})
	for _, task := range tasks {
		has[task.DriverID]++
	}
	for _, d := range drivers {
		if has[d] != 1 {
			t.Errorf("driver %s has %d tasks, want 1", d, has[d])
		}
	}
	same(t, "tasks that wait", len(use(t, b, here).waiting(tracking.WaitingFilter{})), 36-24)
}

// linkShowsWhatCameToAnother goes by the real clock, since a store may have one of its own.
func linkShowsWhatCameToAnother(t testing.TB, a, b tracking.Store) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := &clock{at: t0}
	one := service(t, a, tracking.Options{Now: c.now}).ForApp(here)
	other := service(t, b, tracking.Options{Now: c.now}).ForApp(here)
	d := standBy(t, one, 1)[0]
	task, err := one.CreateTask(ctx, dropHere(true))
	if err != nil {
		t.Fatal(err)
	}
	link, err := one.TaskLink(ctx, task.ID)
	if err != nil {
		t.Fatal(err)
	}
	shown := make(chan tracking.Tracking, 100)
	go func() {
		defer close(shown)
		for v, err := range other.Follow(ctx, link) {
			if err != nil {
				return
			}
			shown <- v
		}
	}()
	<-shown
	within := func(what string, is func(tracking.Tracking) bool) {
		t.Helper()
		began, late := time.Now(), time.After(5*time.Second) // seconds for a machine that is busy
		for {
			select {
			case v, ok := <-shown:
				if !ok {
					t.Fatalf("%s: the link ended", what)
				}
				if is(v) {
					t.Logf("%s: after %v", what, time.Since(began))
					return
				}
			case <-late:
				t.Fatalf("%s was not shown for 5 s", what)
			}
		}
	}
	if _, _, err := one.StartTask(ctx, d, task.ID, tracking.Step{}); err != nil {
		t.Fatal(err)
	}
	within("the start", func(v tracking.Tracking) bool { return v.Status == string(tracking.StatusInProgress) })
	c.forward(time.Minute)
	if _, err := one.RecordFixes(ctx, d, []tracking.Fix{newFix(c.now(), 11.001, 48)}); err != nil {
		t.Fatal(err)
	}
	within("a fix", func(v tracking.Tracking) bool { return v.Position != nil && v.Position.LngLat.Lng == 11.001 })
	if _, err := one.FinishTask(ctx, d, task.ID, tracking.Completion{}, tracking.Step{}); err != nil {
		t.Fatal(err)
	}
	within("the end", func(v tracking.Tracking) bool { return v.Ended })
}

func watchTellsOfTheOther(t testing.TB, a, b tracking.Store) {
	w, ok := b.(tracking.Watcher)
	if !ok {
		t.Skip("the store is no tracking.Watcher")
	}
	ctx, stop := context.WithCancel(t.Context())
	type told struct {
		app     tracking.AppID
		subject tracking.Subject
	}
	heard, over := make(chan told, 1000), make(chan error, 1)
	go func() {
		over <- w.Watch(ctx, func(app tracking.AppID, subject tracking.Subject) { heard <- told{app, subject} })
	}()
	defer func() {
		stop()
		if err := <-over; err == nil {
			t.Error("Watch returned nil")
		}
	}()
	one := use(t, a, here)
	one.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0), newDriver("quiet", t0)}})

	// The first may be too early for who is only beginning to watch.
	until := func(subject tracking.Subject, do func(n int)) (list []told) {
		t.Helper()
		again, late := time.NewTicker(200*time.Millisecond), time.After(10*time.Second)
		defer again.Stop()
		for n := 0; ; n++ {
			do(n)
			for waits := true; waits; {
				select {
				case h := <-heard:
					list = append(list, h)
					if (h.app == here || h.app == "") && (h.subject == subject || h.subject == tracking.Subject{}) {
						return list
					}
				case <-again.C:
					waits = false
				case <-late:
					t.Fatalf("nothing was told of %+v for 10 s", subject)
				}
			}
		}
	}
	for _, id := range []tracking.TaskID{"t", "u"} { // the first may end with that anything has changed
		until(ofTask(string(id)), func(n int) {
			task := newTask(id, t0)
			if n > 0 {
				task = one.task(id)
			}
			one.commit(tracking.Changeset{Tasks: []tracking.Task{task}, Events: []tracking.Event{
				newEvent(fmt.Sprint(id, n), tracking.KindTask, string(id), t0),
			}})
		})
	}
	one.record(tracking.FixBatch{DriverID: "quiet", SeenAt: at(time.Minute)})
	list := until(tracking.Subject{Kind: tracking.KindDriver, ID: "d"}, func(n int) {
		when := at(time.Duration(n+1) * time.Second)
		one.record(tracking.FixBatch{DriverID: "d", SeenAt: when, Fixes: []tracking.Fix{newFix(when, 11, 48)}})
	})
	for _, h := range list {
		if h.subject == (tracking.Subject{Kind: tracking.KindDriver, ID: "quiet"}) {
			t.Error("a sign of life was told of")
		}
	}
}

func limitsAddUp(t testing.TB, a, b tracking.Store) {
	one, ok := a.(tracking.Limiter)
	if !ok {
		t.Skip("the store is no tracking.Limiter")
	}
	limiters := []tracking.Limiter{one, b.(tracking.Limiter)}
	ctx := t.Context()
	var all sync.WaitGroup
	for n := range 40 {
		all.Go(func() {
			err := limiters[n%2].Limit(ctx, "many", time.Hour, func(v []byte) []byte { return append(v, 'x') })
			if err != nil {
				t.Errorf("Limit: %v", err)
			}
		})
	}
	all.Wait()
	read := func(l tracking.Limiter, name string) (value []byte) {
		t.Helper()
		if err := l.Limit(ctx, name, time.Hour, func(v []byte) []byte { value = v; return v }); err != nil {
			t.Fatalf("Limit: %v", err)
		}
		return value
	}
	same(t, "times counted", len(read(limiters[1], "many")), 40)
	same(t, "another value", read(limiters[0], "Many"), nil)
	if err := limiters[0].Limit(ctx, "many", time.Hour, func([]byte) []byte { return nil }); err != nil {
		t.Fatal(err)
	}
	same(t, "after nil", read(limiters[1], "many"), nil)
}
