package demo_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// TestGuest: a guest on duty gets an order near him, one at a time, and what he does not want is
// not left over.
func TestGuest(t *testing.T) {
	setOff := map[string][]tracking.TaskID{}
	run(t, &tracking.Options{}, func(who string, task tracking.Task) {
		setOff[who] = append(setOff[who], task.ID)
	}, func(t *testing.T, ctx context.Context, svc *tracking.Service) {
		all := func() []tracking.Task { return tasks(t, ctx, svc, tracking.TaskFilter{DriverID: "guest"}) }
		here := tracking.LngLat{Lng: 179.9999, Lat: -16.8} // the next place to the east lies beyond the date line
		duty := func(on bool) {
			t.Helper()
			if _, err := svc.SaveDriver(ctx, tracking.DriverUpdate{
				ID: "guest", Available: &on, LngLat: &here,
			}); err != nil {
				t.Fatal(err)
			}
		}
		duty(false)
		time.Sleep(time.Minute)
		if list := all(); len(list) != 0 {
			t.Fatalf("off duty he has %v", list)
		}
		duty(true)
		time.Sleep(10 * time.Second)
		list := all()
		if len(list) != 1 {
			t.Fatalf("he has %d orders, want 1", len(list))
		}
		first := list[0]
		for _, place := range []*tracking.Place{first.Pickup, first.Drop} {
			if d := tracking.Distance(here, *place.LngLat); d < 50 || d > 400 {
				t.Errorf("%s is %.0f m away", place.Address, d)
			}
		}

		if _, err := svc.DeclineTask(ctx, "guest", first.ID, tracking.Reason{}, tracking.Step{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if task, err := svc.Task(ctx, first.ID); err != nil || task.Outcome != tracking.OutcomeCancelled {
			t.Errorf("the order that he declined is %s %s, error %v; want it cancelled", task.Status, task.Outcome, err)
		}
		if list = all(); len(list) != 0 {
			t.Errorf("he is given %v at once", list)
		}
		time.Sleep(time.Minute)
		if list = all(); len(list) != 1 {
			t.Fatalf("he has %d orders, want another one", len(list))
		}
		second := list[0].ID
		if _, _, err := svc.StartTask(ctx, "guest", second, tracking.Step{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if got := setOff["Guest"]; len(got) != 1 || got[0] != second {
			t.Errorf("he set off with %v, want %s once", got, second)
		}
		if list = all(); len(list) != 1 {
			t.Errorf("he has %d orders, want no more while he carries one out", len(list))
		}
		if _, err := svc.FinishTask(ctx, "guest", second, tracking.Completion{}, tracking.Step{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if list = all(); len(list) != 2 {
			t.Errorf("he has had %d orders, want the next one", len(list))
		}
		duty(false)
		if _, err := svc.UnassignTask(ctx, list[0].ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Minute)
		if open := all(); len(open) != 1 {
			t.Errorf("off duty he has %d orders, want the one he delivered", len(open))
		}
	})
}

// TestGuestNowhere: who does not say where he is gets an order where the couriers are.
func TestGuestNowhere(t *testing.T) {
	run(t, &tracking.Options{}, nil, func(t *testing.T, ctx context.Context, svc *tracking.Service) {
		if _, err := svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "guest", Available: new(true)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if list := tasks(t, ctx, svc, tracking.TaskFilter{DriverID: "guest"}); len(list) != 0 {
			t.Errorf("he has %d orders before he could say where he is", len(list))
		}
		time.Sleep(30 * time.Second)
		list := tasks(t, ctx, svc, tracking.TaskFilter{DriverID: "guest"})
		if len(list) != 1 {
			t.Fatalf("he has %d orders, want 1", len(list))
		}
		courier, err := svc.Driver(ctx, "demo-1")
		if err != nil {
			t.Fatal(err)
		}
		if d := tracking.Distance(*list[0].Pickup.LngLat, courier.Position.Fix.LngLat); d > 5000 {
			t.Errorf("the order is %.0f m away from a courier", d)
		}
	})
}
