package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

func onlookersOfBoth(t testing.TB, a, b tracking.Store) {
	bursts := 30
	if long() {
		bursts = 300
	}
	runOnlookers(t, a, b, rand.Uint64(), bursts)
}

// runOnlookers has a Service on each of two stores with the same rows do random things, while two
// look on. They are cut off now and then, in the middle of what they are told, and come again, to
// the same Service or the other. In the end each holds what the stores have, and none was ever shown
// what is older than what it had seen.
func runOnlookers(t testing.TB, a, b tracking.Store, seed uint64, bursts int) {
	c := &clock{at: t0}
	var services []*tracking.Service
	for _, s := range []tracking.Store{a, b} {
		services = append(services, service(t, s, tracking.Options{Now: c.now, MaxOpenTasks: 3}).ForApp(here))
	}
	told := make(chan struct{}, 1)
	ctx, over := context.WithCancel(t.Context())
	defer over()

	var writers, readers sync.WaitGroup
	w := &liveWriter{clock: c}
	for i, svc := range services {
		writers.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for range bursts {
				for range 1 + r.IntN(8) {
					if err := w.something(t.Context(), svc, r); err != nil {
						t.Errorf("seed %d: %v", seed, err)
						return
					}
				}
				select { // until somebody has been told something
				case <-told:
				case <-time.After(time.Duration(r.IntN(60)) * time.Millisecond):
				}
			}
		})
	}
	finished := make(chan struct{})
	for i := range services {
		readers.Go(func() {
			l := onlooker{seen: map[tracking.Subject]int64{}, at: map[string]tracking.Position{}}
			l.forget()
			if err := l.look(ctx, services, rand.New(rand.NewPCG(seed, uint64(10+i))), told, finished); err != nil {
				t.Errorf("seed %d, onlooker %d: %v", seed, i, err)
			}
			t.Logf("onlooker %d: %d events, %d positions, %d gone, %d times cut off, %d times anew", i, l.events,
				l.kinds[tracking.LivePosition], l.kinds[tracking.LiveGone], l.cut, l.kinds[tracking.LiveReset])
		})
	}
	writers.Wait()
	close(finished)
	readers.Wait()
	for _, svc := range services {
		if err := svc.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// onlooker holds what it was told.
type onlooker struct {
	tasks   map[tracking.TaskID]tracking.Task
	drivers map[tracking.DriverID]tracking.Driver
	seen    map[tracking.Subject]int64   // the newest version ever shown
	at      map[string]tracking.Position // and the newest position of each person
	kinds   map[tracking.LiveKind]int

	cursor      string
	events, cut int
}

func (l *onlooker) forget() {
	l.tasks, l.drivers = map[tracking.TaskID]tracking.Task{}, map[tracking.DriverID]tracking.Driver{}
}

// look follows until everything has happened and it holds what there is.
func (l *onlooker) look(ctx context.Context, services []*tracking.Service, r *rand.Rand, told chan<- struct{},
	finished <-chan struct{}) error {
	l.kinds = map[tracking.LiveKind]int{}
	on := services[r.IntN(2)]
	var late <-chan time.Time
	for {
		live, err := on.Live(ctx, l.cursor)
		if err != nil {
			return err
		}
		for left := 1 + r.IntN(8); left > 0; left-- {
			wait, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			list, err := live.Next(wait)
			cancel()
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				live.Close()
				return err
			}
			cut := left == 1
			if cut {
				list = list[:r.IntN(len(list)+1)] // here
			}
			for _, e := range list {
				if err := l.take(e); err != nil {
					live.Close()
					return err
				}
			}
			select {
			case told <- struct{}{}:
			default:
			}
			select {
			case <-finished:
				if cut {
					break
				}
				left = 3 // no more of that
				if late == nil {
					late = time.After(20 * time.Second) // a second is promised, and machines are busy
				}
				there, err := whatThereIs(ctx, on)
				held := l.underWay()
				if err != nil || reflect.DeepEqual(held, there) {
					live.Close()
					return err
				}
				select {
				case <-late:
					live.Close()
					diff := differs(held, there)
					return fmt.Errorf("it does not come to hold what there is (-held +there)\n%s", diff)
				default:
				}
			default:
			}
		}
		live.Close()
		l.cut++
		if r.IntN(4) == 0 {
			on = services[r.IntN(2)]
		}
	}
}

// take holds what it is told, unless that is older than what it has seen.
func (l *onlooker) take(e tracking.LiveEvent) error {
	l.events++
	l.kinds[e.Kind]++
	l.cursor = e.Cursor
	newer := func(of tracking.Subject, version int64) error {
		if version < l.seen[of] {
			return fmt.Errorf("%s %s: version %d after %d", e.Kind, of.ID, version, l.seen[of])
		}
		l.seen[of] = version
		return nil
	}
	switch e.Kind {
	case tracking.LiveReset:
		l.forget()
	case tracking.LiveTask:
		l.tasks[e.Task.ID] = *e.Task
		return newer(ofTask(string(e.Task.ID)), e.Task.Version)
	case tracking.LiveDriver, tracking.LivePosition:
		d := *e.Driver
		if e.Kind == tracking.LivePosition {
			held, ok := l.drivers[d.ID]
			if !ok {
				return fmt.Errorf("the position of %s, of whom nothing was told", d.ID)
			}
			held.Position = d.Position
			d = held
		}
		l.drivers[d.ID] = d
		// A place gives way to one before it only where it was judged anew: by one that was told late,
		// beside which it is no longer credible.
		if was, is := l.at[d.Person], d.Position; is.Located() {
			if is.Fix.Time.Before(was.Fix.Time) && is.Rewrites == was.Rewrites {
				return fmt.Errorf("%s is at a place of %v, after one of %v", d.ID, is.Fix.Time, was.Fix.Time)
			}
			l.at[d.Person] = is
		}
		return newer(tracking.Subject{Kind: tracking.KindDriver, ID: string(d.ID)}, d.Version)
	case tracking.LiveGone:
		delete(l.tasks, tracking.TaskID(e.Subject.ID))
		delete(l.drivers, tracking.DriverID(e.Subject.ID))
	}
	return nil
}

// whatThereIs is what one would hold who has been told everything.
func whatThereIs(ctx context.Context, svc *tracking.Service) (rows []any, err error) {
	there := onlooker{}
	there.forget()
	for f := (tracking.TaskFilter{Page: tracking.Page{Limit: 1000}}); ; {
		list, more, err := svc.Tasks(ctx, f)
		if err != nil {
			return nil, err
		}
		for _, t := range list {
			there.tasks[t.ID] = t
		}
		if !more {
			break
		}
		mark := list[len(list)-1].Mark(tracking.SortCreated)
		f.After = &mark
	}
	drivers, _, err := svc.Drivers(ctx, tracking.DriverFilter{Page: tracking.Page{Limit: 1000}})
	if err != nil {
		return nil, err
	}
	for _, d := range drivers {
		there.drivers[d.ID] = d
	}
	return there.underWay(), nil
}

// underWay is what a board shows: all but how lately drivers were heard of.
func (l *onlooker) underWay() (rows []any) {
	for _, t := range l.tasks {
		if t.Status != tracking.StatusCompleted {
			rows = append(rows, t)
		}
	}
	for _, d := range l.drivers {
		if d.Available || len(d.Route) > 0 {
			d.Position = tracking.Position{Fix: d.Position.Fix}
			rows = append(rows, d)
		}
	}
	name := func(row any) string {
		if t, ok := row.(tracking.Task); ok {
			return "task " + string(t.ID)
		}
		return "driver " + string(row.(tracking.Driver).ID)
	}
	slices.SortFunc(rows, func(a, b any) int { return strings.Compare(name(a), name(b)) })
	return rows
}

// liveWriter does random things.
type liveWriter struct {
	clock *clock
	mu    sync.Mutex
	made  []tracking.TaskID
}

// something does one thing. That it cannot be done now is no error.
func (w *liveWriter) something(ctx context.Context, svc *tracking.Service, r *rand.Rand) (err error) {
	w.clock.forward(100 * time.Millisecond)
	d := tracking.DriverID(fmt.Sprint("d", r.IntN(6)))
	var task tracking.TaskID
	w.mu.Lock()
	if n := len(w.made); n > 0 {
		task = w.made[max(n-1-r.IntN(12), 0)]
	}
	w.mu.Unlock()
	place := &tracking.LngLat{Lng: 11 + 0.0001*float64(r.IntN(50)), Lat: 48}
	switch r.IntN(18) {
	case 0, 1, 2:
		var made tracking.Task
		if made, err = svc.CreateTask(ctx, dropHere(r.IntN(2) == 0)); err == nil {
			w.mu.Lock()
			w.made = append(w.made, made.ID)
			w.mu.Unlock()
		}
	case 3, 4:
		name := fmt.Sprint(r.IntN(1000))
		_, err = svc.SaveDriver(ctx, tracking.DriverUpdate{ID: d, Name: &name, LngLat: place, Available: new(true)})
	case 5:
		_, err = svc.SetAvailability(ctx, d, r.IntN(2) == 0, time.Time{})
	case 6, 7, 8:
		_, err = svc.RecordFixes(ctx, d, []tracking.Fix{newFix(w.clock.now(), place.Lng, place.Lat)})
	case 9:
		_, err = svc.RecordFixes(ctx, d, nil)
	case 10:
		_, err = svc.AssignTask(ctx, task, d)
	case 11:
		_, err = svc.UnassignTask(ctx, task)
	case 12:
		notes := fmt.Sprint(r.IntN(1000))
		_, err = svc.UpdateTask(ctx, task, tracking.TaskUpdate{Notes: &notes})
	case 13:
		_, _, err = svc.StartTask(ctx, d, task, tracking.Step{})
	case 14:
		_, err = svc.CompleteTask(ctx, task, tracking.Completion{})
	case 15:
		_, err = svc.CancelTask(ctx, task, tracking.Reason{})
	case 16:
		_, err = svc.ReopenTask(ctx, task)
	case 17:
		if r.IntN(3) == 0 {
			err = svc.ForceDeleteDriver(ctx, d)
		} else {
			err = svc.RevokeTaskLink(ctx, task)
		}
	}
	for _, usual := range []tracking.ErrorCode{tracking.ErrNotFound, tracking.ErrConflict, tracking.ErrInvalid} {
		if errors.Is(err, usual) {
			return nil
		}
	}
	return err
}
