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
	_, err = svc.SaveDriver(ctx, tracking.DriverUpdate{
		ID: "asha", Available: new(true), LngLat: &tracking.LngLat{Lng: 80.27, Lat: 13.08},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	task, err := svc.CreateTask(ctx, tracking.NewTask{
		Type:       tracking.TypeDrop,
		Drop:       &tracking.Place{LngLat: &tracking.LngLat{Lng: 80.25, Lat: 13.06}, Address: "12 Anna Salai"},
		AutoAssign: true,
	})
	fmt.Println(task.Status, task.DriverID, err)
	_, trip, err := svc.StartTask(ctx, "asha", task.ID, tracking.Step{})
	fmt.Println(trip.Status == tracking.TripActive, err)
	outcomes, err := svc.RecordFixes(ctx, "asha", []tracking.Fix{
		{LngLat: tracking.LngLat{Lng: 80.26, Lat: 13.07}, Time: time.Now().Add(time.Minute)},
	})
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

	_, err = svc.CreateTask(context.Background(), tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: &tracking.LngLat{Lng: 13, Lat: 95}},
	})
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
	task, _ := svc.CreateTask(ctx, tracking.NewTask{
		Type: tracking.TypePickup, Pickup: &tracking.Place{Address: "The bakery"},
	})
	svc.As("user:42").CancelTask(ctx, task.ID, tracking.Reason{Text: "out of bread"})
	events, _, _ := svc.Events(ctx, tracking.EventFilter{
		Subject: tracking.Subject{Kind: tracking.KindTask, ID: string(task.ID)},
	})
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
	svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "asha", Name: new("Asha Rao")})
	task, _ := svc.CreateTask(ctx, tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "12 Anna Salai"},
	})
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

// The verbs of a task, each by whom it is. What happened already changes nothing; what the present
// state forbids is a conflict.
func Example_tasks() {
	ctx := context.Background()
	svc, _ := tracking.New(memory.New(), nil)
	svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "asha"})
	task, _ := svc.CreateTask(ctx, tracking.NewTask{
		Type:   tracking.TypePickupAndDrop,
		Pickup: &tracking.Place{Address: "The bakery"},
		Drop:   &tracking.Place{Address: "12 Anna Salai", Customer: &tracking.Contact{Name: "Ravi"}},
		Key:    "order-17", // asked again, this gives the same task
	})
	svc.AssignTask(ctx, task.ID, "asha")
	svc.StartTask(ctx, "asha", task.ID, tracking.Step{})
	svc.PickUpTask(ctx, "asha", task.ID, tracking.Step{})
	task, _ = svc.FinishTask(ctx, "asha", task.ID, tracking.Completion{
		Outcome: tracking.OutcomeFailed, Reason: tracking.Reason{Code: tracking.ReasonNotHome, Text: "nobody opened"},
	}, tracking.Step{})
	fmt.Println(task.Status, task.Outcome, task.ReasonCode)
	_, err := svc.CancelTask(ctx, task.ID, tracking.Reason{})
	fmt.Println(errors.Is(err, tracking.ErrConflict), err)
	// Output:
	// completed failed not_home
	// true The task is completed already, with another outcome.
}

// A trip is a window over its driver's fixes. They may come late and in any order.
func Example_trips() {
	ctx := context.Background()
	now := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	svc, _ := tracking.New(memory.New(), &tracking.Options{Now: func() time.Time { return now }})
	svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "asha", Available: new(true)})
	trip, _ := svc.StartTrip(ctx, "asha", "order-17", tracking.Step{})

	now = now.Add(time.Minute)
	fix := func(seconds int, lng float64) tracking.Fix {
		return tracking.Fix{
			LngLat: tracking.LngLat{Lng: lng, Lat: 13.08},
			Time:   trip.StartedAt.Add(time.Duration(seconds) * time.Second),
		}
	}
	outcomes, _ := svc.RecordFixes(ctx, "asha", []tracking.Fix{
		fix(30, 80.274), fix(10, 80.270), fix(20, 80.272), fix(40, 114.06),
	})
	fmt.Println(outcomes)
	svc.StopTrip(ctx, "asha", trip.ID, tracking.Step{})
	detail, _ := svc.Trip(ctx, trip.ID)
	fmt.Printf("%.0f m in %v\n", detail.Distance, detail.Moving)
	// Output:
	// [live late late jump]
	// 433 m in 20s
}

// A driver joins once, by the link or by the code, and gets a token to act with.
func Example_invites() {
	ctx := context.Background()
	svc, _ := tracking.New(memory.New(), nil)
	invite, _ := svc.InviteDriver(ctx, tracking.NewInvite{DriverID: "asha", Name: new("Asha Rao")})
	joined, err := svc.Join(ctx, tracking.JoinRequest{Code: fmt.Sprint(invite.Code)})
	fmt.Println(joined.Driver.Name, err)
	_, driver, err := svc.AuthenticateDriver(ctx, tracking.TokenApp, joined.Token)
	fmt.Println(driver, err)
	_, err = svc.Join(ctx, tracking.JoinRequest{Token: invite.Token})
	fmt.Println(err)
	// Output:
	// Asha Rao <nil>
	// asha <nil>
	// This invite or code is not valid, or no longer.
}

// A Notifier is told of every event, at least once and in order for each subject. Event.Details has
// the struct of its type.
func Example_events() {
	ctx := context.Background()
	svc, _ := tracking.New(memory.New(), &tracking.Options{Notifier: printer{}})
	svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "asha"})
	task, _ := svc.CreateTask(ctx, tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "12 Anna Salai"},
	})
	svc.AssignTask(ctx, task.ID, "asha")
	for n := 1; n > 0; { // Run does this all the time
		n, _ = svc.DeliverEvents(ctx)
	}
	// Output:
	// task.created
	// task.assigned to asha
}

type printer struct{}

func (printer) Notify(_ context.Context, n tracking.Notification) error {
	switch d := n.Event.Details().(type) {
	case tracking.TaskAssignedData:
		fmt.Println(n.Event.Type, "to", d.DriverID)
	default:
		fmt.Println(n.Event.Type)
	}
	return nil
}

// Each application sees its own rows alone.
func Example_applications() {
	ctx := context.Background()
	svc, _ := tracking.New(memory.New(), nil)
	north, south := svc.ForApp("north"), svc.ForApp("south")
	task, _ := north.CreateTask(ctx, tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "12 Anna Salai"},
	})
	_, err := south.Task(ctx, task.ID)
	fmt.Println(errors.Is(err, tracking.ErrNotFound))
	// Output:
	// true
}
