package tracking_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// A delivery from its creation to its end, in process.
func Example() {
	ctx := context.Background()
	svc, err := tracking.New(memory.New(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = svc.SaveDriver(ctx, tracking.SaveDriver{ID: "asha", Available: new(true), LngLat: &tracking.LngLat{Lng: 80.27, Lat: 13.08}})
	if err != nil {
		fmt.Println(err)
		return
	}
	task, err := svc.CreateTask(ctx, tracking.NewTask{
		Type:       tracking.Drop,
		Drop:       &tracking.Place{LngLat: &tracking.LngLat{Lng: 80.25, Lat: 13.06}, Address: "12 Anna Salai"},
		AutoAssign: true,
	})
	fmt.Println(task.Status, task.DriverID, err)
	_, trip, err := svc.StartTask(ctx, "asha", task.ID, tracking.Step{})
	fmt.Println(trip.Status == tracking.Active, err)
	outcomes, err := svc.RecordFixes(ctx, "asha", []tracking.Fix{{LngLat: tracking.LngLat{Lng: 80.26, Lat: 13.07}, Time: time.Now().Add(time.Minute)}})
	fmt.Println(outcomes, err)
	task, err = svc.FinishTask(ctx, "asha", task.ID, tracking.Completion{}, tracking.Step{})
	fmt.Println(task.Status, task.Outcome, err)
	// Output:
	// assigned asha <nil>
	// true <nil>
	// [live] <nil>
	// completed succeeded <nil>
}

// Errors carry a code, which is an error itself, and the field to blame.
func ExampleError() {
	svc, _ := tracking.New(memory.New(), nil)
	_, err := svc.Task(context.Background(), "unknown")
	fmt.Println(errors.Is(err, tracking.ErrNotFound), err)

	_, err = svc.CreateTask(context.Background(), tracking.NewTask{Type: tracking.Drop, Drop: &tracking.Place{LngLat: &tracking.LngLat{Lng: 13, Lat: 95}}})
	var e *tracking.Error
	if errors.As(err, &e) {
		fmt.Println(e.Code, e.Field)
	}
	// Output:
	// true There is no such task.
	// invalid drop.lnglat
}

// Each change is an event; the events of one subject are numbered without gaps.
func ExampleService_Events() {
	ctx := context.Background()
	svc, _ := tracking.New(memory.New(), nil)
	task, _ := svc.CreateTask(ctx, tracking.NewTask{Type: tracking.Pickup, Pickup: &tracking.Place{Address: "The bakery"}})
	svc.As("user:42").CancelTask(ctx, task.ID, "out of bread")
	events, _, _ := svc.Events(ctx, tracking.EventFilter{Subject: tracking.Subject{Kind: tracking.KindTask, ID: string(task.ID)}})
	for _, e := range events {
		fmt.Printf("%d %s by %s\n", e.Seq, e.Type, e.Actor)
	}
	// Output:
	// 1 task.created by system
	// 2 task.completed by user:42
}

// A customer's link shows the driver only while the task is on its way.
func ExampleService_Follow() {
	ctx := context.Background()
	svc, _ := tracking.New(memory.New(), nil)
	svc.SaveDriver(ctx, tracking.SaveDriver{ID: "asha", Name: new("Asha Rao")})
	task, _ := svc.CreateTask(ctx, tracking.NewTask{Type: tracking.Drop, Drop: &tracking.Place{Address: "12 Anna Salai"}})
	token, _ := svc.TaskLink(ctx, task.ID)
	for v, err := range svc.Follow(ctx, token) {
		if err != nil {
			fmt.Println(err)
			break
		}
		fmt.Printf("%s %q\n", v.Status, v.DriverName)
		switch v.Status {
		case "created":
			svc.AssignTask(ctx, task.ID, "asha")
		case "assigned":
			svc.StartTask(ctx, "asha", task.ID, tracking.Step{})
		case "in_progress":
			svc.FinishTask(ctx, "asha", task.ID, tracking.Completion{}, tracking.Step{})
		}
	}
	// Output:
	// created ""
	// assigned ""
	// in_progress "Asha"
	// completed ""
}
