package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// ledger is what a caller was told is done, each as a check that must hold from then on, whatever
// happens after it.
type ledger struct {
	mu    sync.Mutex
	facts []fact
	note  func(n int) // told of how many there are
}

type fact struct {
	what  string
	holds func(ctx context.Context, s tracking.Store) error
}

func (l *ledger) add(what string, holds func(ctx context.Context, s tracking.Store) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.facts = append(l.facts, fact{what, holds})
	if l.note != nil {
		l.note(len(l.facts))
	}
}

// check counts those of the first n facts that do not hold, and describes the first.
func (l *ledger) check(ctx context.Context, s tracking.Store, n int) (lost int, first error) {
	for _, f := range l.facts[:n] {
		if err := f.holds(ctx, s); err != nil {
			if lost++; first == nil {
				first = fmt.Errorf("%s: %w", f.what, err)
			}
		}
	}
	return lost, first
}

// notifier takes every event.
type notifier struct {
	mu    sync.Mutex
	taken []string
}

func (n *notifier) Notify(_ context.Context, e tracking.Notification) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.taken = append(n.taken, e.Event.ID)
	return nil
}

func (n *notifier) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]string(nil), n.taken...)
}

// errorCount counts what the Service logs: a delivery that could not be noted has no caller to be
// told.
type errorCount struct{ atomic.Int64 }

func (c *errorCount) Write(p []byte) (int, error) { c.Add(1); return len(p), nil }

// workload drives a Service as an application and its drivers do, by a clock of its own and with
// the same chance each time. After an error it goes on with the next thing.
type workload struct {
	svc    *tracking.Service
	notes  *notifier
	ledger *ledger
	rand   *rand.Rand
	now    time.Time
	failed int // operations that were not acknowledged
	logged errorCount
	failf  func(err error)
}

func newWorkload(t testing.TB, s tracking.Store, l *ledger) *workload {
	t.Helper()
	w := &workload{notes: new(notifier), ledger: l, rand: rand.New(rand.NewPCG(1, 2)), now: start}
	svc, err := tracking.New(s, &tracking.Options{
		Notifier: w.notes, Notifiers: map[string]tracking.Notifier{"other": new(notifier)},
		Now: func() time.Time { return w.now }, Rand: rand.NewChaCha8([32]byte{1}), MaxOpenTasks: 3,
		Secret: make([]byte, 32),
		Logger: slog.New(slog.NewTextHandler(&w.logged, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		t.Fatal(err)
	}
	w.svc = svc
	return w
}

// told notes a failed operation.
func (w *workload) told(err error) bool {
	w.now = w.now.Add(time.Second)
	if err == nil {
		return true
	}
	w.failed++
	if w.failf != nil {
		w.failf(err)
	}
	return false
}

// rank orders the states of a task, which only goes forward here.
func rank(s tracking.TaskStatus) int {
	for i, v := range []tracking.TaskStatus{
		tracking.StatusCreated, tracking.StatusAssigned, tracking.StatusInProgress, tracking.StatusCompleted,
	} {
		if v == s {
			return i
		}
	}
	return -1
}

func (w *workload) reached(id tracking.TaskID, status tracking.TaskStatus, driver tracking.DriverID) {
	w.ledger.add(fmt.Sprintf("task %s is %s", id, status), func(ctx context.Context, s tracking.Store) error {
		t, err := s.Task(ctx, tracking.DefaultApp, id)
		if err != nil {
			return err
		}
		if rank(t.Status) < rank(status) || driver != "" && t.DriverID != driver {
			return fmt.Errorf("it is %s, with %q", t.Status, t.DriverID)
		}
		return nil
	})
}

func (w *workload) kept(driver tracking.DriverID, f tracking.Fix) {
	w.ledger.add(fmt.Sprintf("fix of %s at %v", driver, f.Time), func(ctx context.Context, s tracking.Store) error {
		for got, err := range s.Fixes(ctx, tracking.DefaultApp, driver, tracking.FixRange{From: f.Time, To: f.Time}) {
			if err == nil && got != f {
				err = fmt.Errorf("it is %+v", got)
			}
			return err
		}
		return errors.New("it is not there")
	})
}

// round is one task from its creation to its end, with what happens beside it.
func (w *workload) round(ctx context.Context, i int) {
	driver := tracking.DriverID(fmt.Sprintf("driver-%d", i%3))
	at := tracking.LngLat{Lng: 80 + float64(i%3)/100, Lat: 13}
	if i < 3 {
		w.welcome(ctx, driver, at)
	}
	task, err := w.svc.CreateTask(ctx, tracking.NewTask{
		Type: tracking.TypePickupAndDrop, Pickup: &tracking.Place{LngLat: &at, Address: "1 Beach Road"},
		Drop: &tracking.Place{
			LngLat:   &tracking.LngLat{Lng: at.Lng, Lat: at.Lat + .01},
			Customer: &tracking.Contact{Name: "Asha", Mobile: "1"},
		},
		OrderID: fmt.Sprintf("order/%d", i), Notes: strings.Repeat("note ", w.rand.IntN(60)),
		Key: fmt.Sprintf("key-%d", i), AutoAssign: i%4 == 0,
	})
	if !w.told(err) {
		return
	}
	w.reached(task.ID, tracking.StatusCreated, "")
	if task.Status == tracking.StatusCreated {
		if task, err = w.svc.AssignTask(ctx, task.ID, driver); !w.told(err) {
			return
		}
	}
	driver = task.DriverID
	w.reached(task.ID, tracking.StatusAssigned, driver)
	w.fixes(ctx, driver, at)
	if i%5 == 4 {
		if _, err := w.svc.CancelTask(ctx, task.ID, tracking.Reason{Text: "changed her mind"}); w.told(err) {
			w.reached(task.ID, tracking.StatusCompleted, driver)
		}
		return
	}
	if _, _, err := w.svc.StartTask(ctx, driver, task.ID, tracking.Step{}); w.told(err) {
		w.reached(task.ID, tracking.StatusInProgress, driver)
	}
	w.fixes(ctx, driver, at)
	_, err = w.svc.PickUpTask(ctx, driver, task.ID, tracking.Step{})
	w.told(err)
	w.fixes(ctx, driver, at)
	if _, err := w.svc.FinishTask(ctx, driver, task.ID, tracking.Completion{}, tracking.Step{}); w.told(err) {
		w.reached(task.ID, tracking.StatusCompleted, driver)
	}
	w.deliver(ctx)
}

// welcome invites a driver, who joins and goes on duty.
func (w *workload) welcome(ctx context.Context, driver tracking.DriverID, at tracking.LngLat) {
	name := "Ravi"
	inv, err := w.svc.InviteDriver(ctx, tracking.NewInvite{DriverID: driver, Name: &name})
	if !w.told(err) {
		return
	}
	if _, err := w.svc.Join(ctx, tracking.JoinRequest{
		Token: inv.Token, Nonce: "nonce-" + string(driver),
	}); w.told(err) {
		w.ledger.add(fmt.Sprintf("%s has joined", driver), func(ctx context.Context, s tracking.Store) error {
			v, err := s.Invite(ctx, tracking.DefaultApp, driver)
			if err == nil && v.JoinedAt.IsZero() {
				err = errors.New("his invite is unused")
			}
			return err
		})
	}
	yes := true
	_, err = w.svc.SaveDriver(ctx, tracking.DriverUpdate{
		ID: driver, Available: &yes, LngLat: &at, Properties: map[string]string{"zip": "600001"},
	})
	w.told(err)
}

// blocksSoon is an event id so long that a few fixes fill a block.
var blocksSoon = strings.Repeat("e", 150)

func (w *workload) fixes(ctx context.Context, driver tracking.DriverID, at tracking.LngLat) {
	var batch []tracking.Fix
	for n := range 1 + w.rand.IntN(3) {
		p := tracking.LngLat{Lng: at.Lng + w.rand.Float64()/1000, Lat: at.Lat + w.rand.Float64()/1000}
		batch = append(batch, tracking.Fix{
			LngLat: p, Time: w.now.Add(time.Duration(n-3) * 100 * time.Millisecond), Accuracy: tracking.Known(5),
			EventID: blocksSoon,
		})
	}
	w.rand.Shuffle(len(batch), func(i, j int) { batch[i], batch[j] = batch[j], batch[i] })
	outcomes, err := w.svc.RecordFixes(ctx, driver, batch)
	if w.told(err) {
		for i, o := range outcomes {
			if o == tracking.FixLive || o == tracking.FixLate {
				w.kept(driver, batch[i])
			}
		}
	}
}

// deliver has events delivered. One whose delivery was noted is not delivered again.
func (w *workload) deliver(ctx context.Context) {
	before := len(w.notes.all())
	_, err := w.svc.DeliverEvents(ctx)
	if !w.told(err) {
		return
	}
	for _, id := range w.notes.all()[before:] {
		w.ledger.add("event "+id, func(ctx context.Context, s tracking.Store) error {
			_, _, err := s.Events(ctx, tracking.DefaultApp, tracking.EventFilter{After: id, Limit: 1})
			return err
		})
	}
}
