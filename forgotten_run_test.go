package tracking_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// nowhere is a Geocoder that knows no place.
type nowhere struct{}

func (nowhere) Point(context.Context, string) (tracking.LngLat, error) {
	return tracking.LngLat{}, errors.New("no such place")
}

func (nowhere) Address(context.Context, tracking.LngLat) (string, error) { return "", nil }

// TestForgottenRun: when something has waited for a minute and nobody has ever called Run, or one
// of its steps, the log says so, once.
func TestForgottenRun(t *testing.T) {
	waiting := func(t *testing.T, svc *tracking.Service) {
		task := newDrop()
		task.AutoAssign = true
		must(svc.CreateTask(t.Context(), task))(t)
	}
	for name, c := range map[string]struct {
		opts  tracking.Options
		do    func(*testing.T, *tracking.Service)
		after time.Duration // of which the line is there, and a moment before is not; 0: there is none
		says  string
	}{
		"an event for a Notifier": {
			opts:  tracking.Options{Notifier: &receiver{}},
			do:    func(t *testing.T, svc *tracking.Service) { must(svc.CreateTask(t.Context(), newDrop()))(t) },
			after: time.Minute, says: "events to deliver",
		},
		"a waiting task": {do: waiting, after: time.Minute, says: "a task without a driver"},
		"a trip whose time is up": {
			do: func(t *testing.T, svc *tracking.Service) {
				must(svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: "d"}))(t)
				must(svc.StartTrip(t.Context(), "d", "T", tracking.Step{}))(t)
			},
			after: 2 * time.Hour, says: "a trip whose time is up",
		},
		"a task whose time has come": {
			do: func(t *testing.T, svc *tracking.Service) {
				task := newDrop()
				task.AutoAssign, task.Window.From = true, time.Now().Add(3*time.Hour)
				must(svc.CreateTask(t.Context(), task))(t)
			},
			after: 2 * time.Hour, says: "a task whose time has come",
		},
		"an address to look up": {
			opts: tracking.Options{Geocoder: nowhere{}},
			do: func(t *testing.T, svc *tracking.Service) {
				must(svc.CreateTask(t.Context(), tracking.NewTask{
					Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "x"},
				}))(t)
			},
			after: time.Minute, says: "an address or a point to look up",
		},
		"nothing": {do: func(t *testing.T, svc *tracking.Service) { must(svc.CreateTask(t.Context(), newDrop()))(t) }},
		"a waiting task that a person gives to somebody": {do: func(t *testing.T, svc *tracking.Service) {
			waiting(t, svc)
			must(svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: "d"}))(t)
			list, _, err := svc.Tasks(t.Context(), tracking.TaskFilter{})
			if err != nil {
				t.Fatal(err)
			}
			must(svc.AssignTask(t.Context(), list[0].ID, "d"))(t)
		}},
		"a step is called": {
			opts: tracking.Options{Notifier: &receiver{}},
			do: func(t *testing.T, svc *tracking.Service) {
				waiting(t, svc)
				must(svc.DeliverEvents(t.Context()))(t)
			},
		},
		"Run": {
			opts: tracking.Options{Notifier: &receiver{}},
			do: func(t *testing.T, svc *tracking.Service) {
				waiting(t, svc)
				ctx, cancel := context.WithCancel(t.Context())
				go svc.Run(ctx)
				synctest.Wait()
				cancel() // ended, but not forgotten
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				c.opts.Logger = slog.New(slog.NewTextHandler(&log, nil))
				svc := must(tracking.New(memory.New(), &c.opts))(t)
				said := func() int {
					t.Helper()
					// any operation looks
					if _, _, err := svc.ForApp("other").Tasks(t.Context(), tracking.TaskFilter{}); err != nil {
						t.Fatal(err)
					}
					return strings.Count(log.String(), "Service.Run has not been started")
				}
				c.do(t, svc)
				if c.after == 0 {
					for range 300 {
						time.Sleep(time.Minute)
						if said() > 0 {
							t.Fatal(log.String())
						}
					}
					return
				}
				for waited := time.Duration(0); waited < c.after-30*time.Second; waited += 30 * time.Second {
					if said() > 0 {
						t.Fatalf("after %v: %s", waited, &log)
					}
					time.Sleep(30 * time.Second)
				}
				for range 10 {
					time.Sleep(time.Minute)
					said()
				}
				if said() != 1 || !strings.Contains(log.String(), c.says) {
					t.Errorf("the log says\n%s", &log)
				}
			})
		})
	}
}

// TestForgottenRunInTheFuture: something begins to wait while our clock is ahead. Once that is
// right the line that Run was forgotten still comes after a minute.
func TestForgottenRunInTheFuture(t *testing.T) {
	now := time.Date(2034, 3, 10, 9, 0, 0, 0, time.UTC)
	var log strings.Builder
	opts := &tracking.Options{Notifier: &receiver{}, Now: func() time.Time {
		return now
	}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	svc := must(tracking.New(memory.New(), opts))(t)
	must(svc.CreateTask(t.Context(), newDrop()))(t)
	now = now.AddDate(-10, 0, 0)
	for step, want := range []int{0, 0, 1, 1} { // at 0, 30, 60, 90 s
		must(svc.Keys(t.Context()))(t) // any operation looks
		if got := strings.Count(log.String(), "Service.Run has not been started"); got != want {
			t.Errorf("%d s after the clock is right, it was said %d times, want %d", 30*step, got, want)
		}
		now = now.Add(30 * time.Second)
	}
}
