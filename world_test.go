package tracking_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

var start = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// world is a Service on the memory store with a clock that the test moves.
type world struct {
	*tracking.Service
	t   testing.TB
	ctx context.Context
	mu  sync.Mutex
	at  time.Time
}

func (w *world) now() time.Time { w.mu.Lock(); defer w.mu.Unlock(); return w.at }

func (w *world) advance(d time.Duration) { w.mu.Lock(); defer w.mu.Unlock(); w.at = w.at.Add(d) }

func newWorld(t testing.TB, change ...func(*tracking.Options)) *world {
	t.Helper()
	return newWorldOn(t, memory.New(), change...)
}

func newWorldOn(t testing.TB, store tracking.Store, change ...func(*tracking.Options)) *world {
	t.Helper()
	w := &world{t: t, ctx: t.Context(), at: start}
	opts := &tracking.Options{Now: w.now, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, c := range change {
		c(opts)
	}
	t.Cleanup(func() { store.Close() })
	var err error
	if w.Service, err = tracking.New(store, opts); err != nil {
		t.Fatal(err)
	}
	return w
}

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func lnglat(lng, lat float64) *tracking.LngLat { return &tracking.LngLat{Lng: lng, Lat: lat} }

// metres east of the origin of these tests, on the equator.
func east(m float64) *tracking.LngLat { return lnglat(10+m/111195.08, 0) }

// driver makes one who is on duty at that many metres.
func (w *world) driver(id tracking.DriverID, m float64) {
	w.t.Helper()
	must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: id, Available: new(true), LngLat: east(m)}))(w.t)
}

func (w *world) create(auto bool) tracking.Task {
	w.t.Helper()
	return must(w.CreateTask(w.ctx, tracking.NewTask{
		Type: tracking.TypePickupAndDrop, Pickup: &tracking.Place{
			LngLat: east(0), Address: "Here 1",
		}, Drop: &tracking.Place{
			LngLat: east(5000), Address: "There 2",
		}, AutoAssign: auto,
	}))(w.t)
}

func (w *world) task(id tracking.TaskID) tracking.Task {
	w.t.Helper()
	return must(w.Task(w.ctx, id))(w.t)
}

// told lists what the events of a subject since the n-th say, each with its notices: "task.assigned
// a+assigned b-unassigned".
func (w *world) told(kind tracking.SubjectKind, id string, since int) []string {
	w.t.Helper()
	events, _, err := w.Events(w.ctx, tracking.EventFilter{Subject: tracking.Subject{Kind: kind, ID: id}, Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	var list []string
	for i, e := range events {
		if e.Seq != int64(i+1) {
			w.t.Errorf("event %d of %s has seq %d", i+1, id, e.Seq)
		}
		if i < since {
			continue
		}
		s := string(e.Type)
		for _, n := range e.Notices {
			s += fmt.Sprintf(" %s:%s", n.DriverID, n.Kind)
		}
		list = append(list, s)
	}
	return list
}

// path lists a trip's points in metres.
func (w *world) path(id tracking.TripID) (list []float64) {
	w.t.Helper()
	_, points, err := w.TripPath(w.ctx, id)
	if err != nil {
		w.t.Fatal(err)
	}
	for f, err := range points {
		if err != nil {
			w.t.Fatal(err)
		}
		list = append(list, float64(int(tracking.Distance(*east(0), f.LngLat)+0.5)))
	}
	return list
}

func code(err error) tracking.ErrorCode {
	var e *tracking.Error
	if errors.As(err, &e) {
		return e.Code
	}
	if err != nil {
		return tracking.ErrorCode("not an *Error: " + err.Error())
	}
	return ""
}

func asError(err error, e **tracking.Error) bool { return errors.As(err, e) }
