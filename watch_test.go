package tracking_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// teller is a store that tells those who watch the others of what is done through this one.
type teller struct {
	tracking.Store
	mu      sync.Mutex
	changed []func(tracking.AppID, tracking.Subject)
	fails   int // how often to watch fails at once
}

func (s *teller) tell(app tracking.AppID, subjects ...tracking.Subject) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, changed := range s.changed {
		for _, of := range subjects {
			changed(app, of)
		}
	}
}

func (s *teller) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	w, err := s.Store.Commit(ctx, app, cs)
	if err == nil && len(cs.Tasks) > 0 {
		s.tell(app, tracking.Subject{Kind: tracking.KindTask, ID: string(cs.Tasks[0].ID)})
	}
	return w, err
}

func (s *teller) RecordFixes(ctx context.Context, app tracking.AppID, b tracking.FixBatch) (tracking.Recorded, error) {
	r, err := s.Store.RecordFixes(ctx, app, b)
	if err == nil && len(b.Fixes) > 0 {
		s.tell(app, tracking.Subject{Kind: tracking.KindDriver, ID: string(b.DriverID)})
	}
	return r, err
}

// watcher hears of what is done through the other.
type watcher struct {
	tracking.Store
	other *teller
}

func (w watcher) Watch(ctx context.Context, changed func(tracking.AppID, tracking.Subject)) error {
	w.other.mu.Lock()
	if w.other.fails > 0 {
		w.other.fails--
		w.other.mu.Unlock()
		return errors.New("the connection was lost")
	}
	w.other.changed = append(w.other.changed, changed)
	w.other.mu.Unlock()
	<-ctx.Done()
	return ctx.Err()
}

// followed collects when what a link shows has changed.
func followed(t *testing.T, svc *tracking.Service, link string) <-chan time.Time {
	t.Helper()
	at := make(chan time.Time, 100)
	go func() {
		for _, err := range svc.Follow(t.Context(), link) {
			if err != nil {
				return
			}
			at <- time.Now()
		}
	}()
	<-at
	return at
}

// What one Service does is shown by another, which shares its store, within a second; at once where
// the store tells of it.
func TestAnotherServiceShowsWhatOneDoes(t *testing.T) {
	for name, c := range map[string]struct {
		watches bool
		most    time.Duration
	}{"not told": {false, time.Second}, "told": {true, time.Millisecond}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rows := memory.New()
				first := &teller{Store: rows}
				second := tracking.Store(rows)
				if c.watches {
					second = watcher{rows, first}
				}
				one, other := runningOn(t, first, &tracking.Options{}), runningOn(t, second, &tracking.Options{})
				ctx := t.Context()
				must(one.SaveDriver(ctx, tracking.DriverUpdate{ID: "a", Available: new(true), LngLat: east(0)}))(t)
				n := newDrop()
				n.AutoAssign = true
				task := must(one.CreateTask(ctx, n))(t)
				at := followed(t, other, must(one.TaskLink(ctx, task.ID))(t))
				time.Sleep(300 * time.Millisecond)
				within := func(what string) {
					t.Helper()
					began := time.Now()
					if took := (<-at).Sub(began); took > c.most {
						t.Errorf("%s was shown after %v, want %v at most", what, took, c.most)
					}
					time.Sleep(330 * time.Millisecond)
				}
				if _, _, err := one.StartTask(ctx, "a", task.ID, tracking.Step{}); err != nil {
					t.Fatal(err)
				}
				within("the start")
				for i := range 5 {
					must(one.RecordFixes(ctx, "a", []tracking.Fix{{LngLat: *east(float64(20 * i)), Time: time.Now()}}))(t)
					within("a fix")
				}
				must(one.FinishTask(ctx, "a", task.ID, tracking.Completion{}, tracking.Step{}))(t)
				within("the end")
			})
		})
	}
}

// A process that only answers calls leaves what it commits to one that runs, which is told of it.
func TestWatcherWakesWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := memory.New()
		first := &teller{Store: rows, fails: 2}
		r := &receiver{}
		runningOn(t, watcher{rows, first}, &tracking.Options{Notifier: r})
		one := must(tracking.New(first, &tracking.Options{Notifier: r}))(t)
		ctx := t.Context()
		time.Sleep(10*time.Second + 123*time.Millisecond) // to watch has failed twice, and is tried again
		began := time.Now()
		task := must(one.CreateTask(ctx, newDrop()))(t)
		synctest.Wait()
		if got, took := len(r.seqs(string(task.ID))), time.Since(began); got != 1 || took > 0 {
			t.Errorf("%d events were delivered within %v", got, took)
		}
	})
}

// Whoever is told of a path may change it: nobody else sees that, whether he asks or follows.
func TestPathBelongsToWhoIsTold(t *testing.T) {
	now := time.Date(2024, 3, 10, 9, 0, 0, 0, time.UTC)
	svc := must(tracking.New(memory.New(), &tracking.Options{Now: func() time.Time { return now }}))(t)
	ctx := t.Context()
	must(svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "d"}))(t)
	trip := must(svc.StartTrip(ctx, "d", "T", tracking.Step{}))(t)
	link := must(svc.TripLink(ctx, trip.ID))(t)
	var driven []tracking.LngLat
	drive := func() {
		t.Helper()
		now = now.Add(10 * time.Second)
		at := tracking.LngLat{Lng: 11, Lat: 48 + float64(len(driven))/1000}
		driven = append(driven, at)
		must(svc.RecordFixes(ctx, "d", []tracking.Fix{{LngLat: at, Time: now}}))(t)
	}
	drive()
	drive()
	next, stop := iter.Pull2(svc.Follow(ctx, link))
	defer stop()
	for range 3 {
		v, err, _ := next()
		if err != nil || !slices.Equal(v.Path, driven) {
			t.Fatalf("who follows is told of %v, error %v, want %v", v.Path, err, driven)
		}
		clear(v.Path)
		for range 2 {
			v := must(svc.Tracking(ctx, link))(t)
			if !slices.Equal(v.Path, driven) {
				t.Fatalf("who asks is told of %v, want %v", v.Path, driven)
			}
			clear(v.Path)
		}
		drive()
	}
}
