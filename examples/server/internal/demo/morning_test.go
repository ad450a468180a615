package demo_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// TestMorning: what a dispatcher has to see to is there at once, and not twice.
func TestMorning(t *testing.T) {
	run(t, &tracking.Options{}, nil, func(t *testing.T, ctx context.Context, svc *tracking.Service) {
		time.Sleep(5 * time.Second)
		diego, err := svc.Driver(ctx, "demo-4")
		if err != nil {
			t.Fatal(err)
		}
		if silence := time.Since(diego.Position.SeenAt); silence < 20*time.Minute || len(diego.Route) != 3 {
			t.Errorf("Diego has been silent for %v with %d stops", silence, len(diego.Route))
		}
		late := map[tracking.DriverID]int{}
		for _, task := range tasks(t, ctx, svc, tracking.TaskFilter{Late: true}) {
			late[task.DriverID]++
		}
		if others := late["demo-1"] + late["demo-2"] + late["demo-3"]; late["demo-4"] != 1 || others < 1 || others > 3 {
			t.Errorf("of whom tasks are late: %v, want one of Diego's and some of the couriers'", late)
		}
		reasons := map[tracking.WaitReason]int{}
		for _, task := range tasks(t, ctx, svc, tracking.TaskFilter{Waiting: true}) {
			_, waits, err := svc.Candidates(ctx, task.ID, 1)
			if err != nil {
				t.Fatal(err)
			}
			reasons[waits.Reason]++
		}
		if reasons[tracking.WaitUnfit] != 1 || reasons[tracking.WaitWindow] != 2 {
			t.Errorf("they wait for %v", reasons)
		}
		ended := map[tracking.Outcome]int{}
		for _, task := range tasks(t, ctx, svc, tracking.TaskFilter{
			Status: []tracking.TaskStatus{tracking.StatusCompleted},
		}) {
			ended[task.Outcome]++
			if task.Outcome == tracking.OutcomeFailed && task.ReasonCode != tracking.ReasonNotHome {
				t.Errorf("one has failed for %q", task.ReasonCode)
			}
		}
		if ended[tracking.OutcomeSucceeded] != 5 || ended[tracking.OutcomeFailed] != 1 ||
			ended[tracking.OutcomeCancelled] != 1 {
			t.Errorf("those that have ended are %v", ended)
		}
		if d, err := svc.Driver(ctx, "demo-5"); err != nil || d.Available {
			t.Errorf("Elif is on duty: %v, error %v", d.Available, err)
		}
		anna, err := svc.Driver(ctx, "demo-1")
		if err != nil {
			t.Fatal(err)
		}
		var legs []tracking.Leg
		for _, s := range anna.Route {
			legs = append(legs, s.Leg)
		}
		if want := slices.Repeat([]tracking.Leg{tracking.LegPickup}, 3); len(legs) != 6 || !slices.Equal(legs[:3], want) {
			t.Errorf("Anna's round is %v, want three pickups and then three drops", legs)
		}
	})
}

// A courier keeps to the order of the route, whoever changes it.
func TestRouteIsHeeded(t *testing.T) {
	run(t, &tracking.Options{}, nil, func(t *testing.T, ctx context.Context, svc *tracking.Service) {
		time.Sleep(10 * time.Second)
		route, err := svc.Route(ctx, "demo-1")
		if err != nil || len(route.Stops) != 6 {
			t.Fatalf("demo-1 has %d stops, error %v", len(route.Stops), err)
		}
		var order []tracking.Stop
		for _, s := range route.Stops {
			order = append(order, s.Stop)
		}
		slices.Reverse(order[3:])
		if _, err := svc.SetRoute(ctx, "demo-1", order, route.Version); err != nil {
			t.Fatal(err)
		}
		time.Sleep(40 * time.Minute) // the course is driven in one direction
		var last time.Time
		for _, s := range order[3:] {
			task, err := svc.Task(ctx, s.TaskID)
			if err != nil || task.Status != tracking.StatusCompleted || !task.CompletedAt.After(last) {
				t.Errorf("task %s is %s since %v, after %v; error %v", task.ID, task.Status, task.CompletedAt, last, err)
			}
			last = task.CompletedAt
		}
	})
}
