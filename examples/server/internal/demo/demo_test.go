package demo_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/examples/server/internal/demo"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// run runs body beside the demo, in a bubble with a clock of its own. Nothing may be logged.
func run(t *testing.T, opts *tracking.Options, setsOff func(string, tracking.Task),
	body func(t *testing.T, ctx context.Context, svc *tracking.Service)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var logged strings.Builder
		logger := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
		o := *opts
		o.Logger = logger
		store := memory.New()
		svc, err := tracking.New(store, &o)
		if err != nil {
			t.Fatal(err)
		}
		past := func(now func() time.Time) (*tracking.Service, error) {
			o := o
			o.Now, o.Logger = now, slog.New(slog.DiscardHandler) // it has no Run
			return tracking.New(store, &o)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		go func() { ended <- svc.Run(ctx) }()
		go func() {
			ended <- demo.Run(ctx, svc, &demo.Options{Logger: logger, Guest: "guest", SetsOff: setsOff, Past: past})
		}()
		body(t, ctx, svc)
		stop()
		for range 2 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("it ended with %v", err)
			}
		}
		if logged.Len() > 0 {
			t.Errorf("it complains:\n%s", logged.String())
		}
	})
}

func tasks(t *testing.T, ctx context.Context, svc *tracking.Service, f tracking.TaskFilter) []tracking.Task {
	t.Helper()
	f.Limit = 1000
	list, _, err := svc.Tasks(ctx, f)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// orders are those that come up while the demo runs, not in its morning: a bubble begins with 2000.
func orders(t *testing.T, ctx context.Context, svc *tracking.Service, f tracking.TaskFilter) []tracking.Task {
	t.Helper()
	f.CreatedFrom = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	return tasks(t, ctx, svc, f)
}

func TestDeliveries(t *testing.T) {
	setOff := map[tracking.TaskID]int{}
	run(t, &tracking.Options{}, func(_ string, task tracking.Task) {
		setOff[task.ID]++
	}, func(t *testing.T, ctx context.Context, svc *tracking.Service) {
		time.Sleep(3 * time.Second)
		if n := len(orders(t, ctx, svc, tracking.TaskFilter{
			Status: []tracking.TaskStatus{tracking.StatusInProgress},
		})); n != 3 {
			t.Errorf("after 3 s %d couriers are on their way, want 3", n)
		}
		time.Sleep(30 * time.Minute)
		list := orders(t, ctx, svc, tracking.TaskFilter{})
		done := map[tracking.DriverID]int{}
		for _, task := range list {
			if task.Status == tracking.StatusCompleted {
				done[task.DriverID]++
				if task.Outcome != tracking.OutcomeSucceeded || task.PickedUpAt.IsZero() || setOff[task.ID] != 1 {
					t.Errorf("task %s ended %s, picked up at %v, set off %d times", task.ID, task.Outcome,
						task.PickedUpAt, setOff[task.ID])
				}
			}
		}
		for _, id := range []tracking.DriverID{"demo-1", "demo-2", "demo-3"} {
			if done[id] < 4 {
				t.Errorf("%s has delivered %d tasks in 30 minutes, want 4 at least", id, done[id])
			}
		}
		if open := len(list) - done["demo-1"] - done["demo-2"] - done["demo-3"]; open > 9 {
			t.Errorf("%d tasks are open", open)
		}
		checkPaths(t, ctx, svc)
	})
}

// checkPaths looks at every second of every trip that has ended.
func checkPaths(t *testing.T, ctx context.Context, svc *tracking.Service) {
	t.Helper()
	trips, _, err := svc.Trips(ctx, tracking.TripFilter{Page: tracking.Page{Limit: 1000}, Status: tracking.TripStopped})
	if err != nil {
		t.Fatal(err)
	}
	for _, trip := range trips {
		_, path, err := svc.TripPath(ctx, trip.ID)
		if err != nil {
			t.Fatal(err)
		}
		var last tracking.Fix
		n, length := 0, 0.0
		for f, err := range path {
			if err != nil {
				t.Fatal(err)
			}
			if n > 0 {
				if d, gap := tracking.Distance(last.LngLat, f.LngLat), f.Time.Sub(last.Time); d > 8.1 ||
					gap > 1100*time.Millisecond {
					t.Errorf("trip %s, fix %d: %.1f m in %v", trip.ID, n, d, gap)
				} else {
					length += d
				}
			}
			last = f
			n++
		}
		if n < 60 || length < 300 {
			t.Errorf("trip %s has %d fixes over %.0f m; that is no delivery", trip.ID, n, length)
		}
	}
	if len(trips) < 12 {
		t.Errorf("%d trips have ended, want 12 at least", len(trips))
	}
}

func TestNoFloodWithoutLimit(t *testing.T) {
	run(t, &tracking.Options{MaxOpenTasks: -1}, nil, func(t *testing.T, ctx context.Context, svc *tracking.Service) {
		for range 60 {
			time.Sleep(time.Minute)
			open := orders(t, ctx, svc, tracking.TaskFilter{
				Status: []tracking.TaskStatus{
					tracking.StatusCreated, tracking.StatusAssigned, tracking.StatusInProgress,
				},
			})
			if len(open) > 9 {
				t.Fatalf("%d orders are open", len(open))
			}
		}
	})
}

// TestOthersActs has a dispatcher meddle with the tasks of the couriers.
func TestOthersActs(t *testing.T) {
	run(t, &tracking.Options{}, nil, func(t *testing.T, ctx context.Context, svc *tracking.Service) {
		time.Sleep(10*time.Second + 500*time.Millisecond)
		open := tracking.TaskFilter{
			DriverID: "demo-1", Status: []tracking.TaskStatus{tracking.StatusAssigned, tracking.StatusInProgress},
		}
		round := tasks(t, ctx, svc, open)
		if len(round) != 3 {
			t.Fatalf("demo-1 has %d tasks, want 3", len(round))
		}
		for _, task := range round {
			if _, err := svc.CancelTask(ctx, task.ID, tracking.Reason{Text: "Changed my mind."}); err != nil {
				t.Fatal(err)
			}
		}
		if err := svc.DeleteDriver(ctx, "demo-1"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if d, err := svc.Driver(ctx, "demo-1"); err != nil || !d.Available || d.OpenTasks() != 3 {
			t.Errorf("the deleted courier is %+v, error %v; want him back at work", d, err)
		}

		give := func(n tracking.NewTask) tracking.TaskID {
			t.Helper()
			task, err := svc.CreateTask(ctx, n)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := svc.AssignTask(ctx, task.ID, "demo-2"); err != nil {
				t.Fatal(err)
			}
			return task.ID
		}
		near := &tracking.Place{LngLat: &tracking.LngLat{Lng: 2.162, Lat: 41.389}, Address: "Near by"}
		far := &tracking.Place{LngLat: &tracking.LngLat{Lng: 13.4, Lat: 52.5}, Address: "Far away"}
		fetch, bring := give(tracking.NewTask{
			Type: tracking.TypePickup, Pickup: near,
		}), give(tracking.NewTask{Type: tracking.TypeDrop, Drop: near})
		distant, nowhere := give(tracking.NewTask{Type: tracking.TypeDrop, Drop: far}), give(tracking.NewTask{
			Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "Somewhere"},
		})
		time.Sleep(40 * time.Minute)
		for id, want := range map[tracking.TaskID]tracking.TaskStatus{
			fetch: tracking.StatusCompleted, bring: tracking.StatusCompleted, distant: tracking.StatusCreated,
			nowhere: tracking.StatusCreated,
		} {
			if task, err := svc.Task(ctx, id); err != nil || task.Status != want {
				t.Errorf("a task given by hand is %s, error %v; want %s", task.Status, err, want)
			}
		}
	})
}
