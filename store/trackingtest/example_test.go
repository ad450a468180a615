package trackingtest_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/trackingtest"
)

var (
	shop = tracking.LngLat{Lng: 80.270, Lat: 13.080}
	home = tracking.LngLat{Lng: 80.250, Lat: 13.060}
)

// refunds is the program under test: it pays back what could not be delivered.
type refunds struct {
	svc    *tracking.Service
	orders []string
}

func (r *refunds) Notify(ctx context.Context, n tracking.Notification) error {
	e, ok := n.Event.Details().(tracking.TaskCompletedData)
	if !ok || e.ReasonCode != tracking.ReasonNotHome {
		return nil
	}
	task, err := r.svc.Task(ctx, tracking.TaskID(n.Event.Subject.ID))
	if err == nil {
		r.orders = append(r.orders, task.OrderID)
	}
	return err
}

// A refund when nobody was at home.
func Example_refund() {
	ctx, r := context.Background(), &refunds{}
	k := trackingtest.New(nil, &tracking.Options{Notifier: r}) // in a test: New(t, …)
	r.svc = k.Service
	asha := k.NewDriver("asha", shop)
	task, err := k.CreateTask(ctx, tracking.NewTask{
		Type: tracking.TypePickupAndDrop, OrderID: "#1001",
		Pickup:     &tracking.Place{LngLat: &shop},
		Drop:       &tracking.Place{LngLat: &home, Address: "12 Anna Salai"},
		AutoAssign: true,
	})
	if err != nil {
		panic(err)
	}
	asha.Fail(task.ID, tracking.Reason{Code: tracking.ReasonNotHome, Text: "rang twice"})
	k.Settle()

	fmt.Println("refunded:", r.orders)
	for _, e := range k.Told() {
		if e.Subject.ID == string(task.ID) {
			fmt.Println(e.Time.Format("15:04:05"), e.Type)
		}
	}
	// Output:
	// refunded: [#1001]
	// 09:00:00 task.created
	// 09:00:00 task.assigned
	// 09:00:00 task.started
	// 09:00:00 task.arriving
	// 09:00:00 task.arrived
	// 09:00:30 task.picked_up
	// 09:04:00 task.arriving
	// 09:05:35 task.arrived
	// 09:06:10 task.completed
}

// A driver whose phone has no network for an hour. What he did is put where it belongs.
func Example_offline() {
	ctx := context.Background()
	k := trackingtest.New(nil, nil)
	ravi := k.NewDriver("ravi", shop)
	task, err := k.CreateTask(ctx, tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: &home}, AutoAssign: true,
	})
	if err != nil {
		panic(err)
	}
	ravi.Start(task.ID)
	ravi.GoOffline()
	ravi.Deliver(task.ID)
	k.Advance(time.Hour)
	task, _ = k.Task(ctx, task.ID)
	d, _ := k.Driver(ctx, "ravi")
	fmt.Println(k.Clock.Now().Format("15:04"), task.Status, "silent:", d.Silent)

	ravi.GoOnline()
	task, _ = k.Task(ctx, task.ID)
	d, _ = k.Driver(ctx, "ravi")
	fmt.Println(k.Clock.Now().Format("15:04"), task.Status, "at", task.CompletedAt.Format("15:04"), "silent:", d.Silent)
	// Output:
	// 10:05 in_progress silent: true
	// 10:05 completed at 09:05 silent: false
}

// A commit of which nobody knows whether it was done. With a Key, asking again is safe.
func Example_unknown() {
	ctx := context.Background()
	k := trackingtest.New(nil, nil)
	n := tracking.NewTask{Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: &home}, Key: "order-1001"}

	k.Store.LoseNextAnswer()
	_, err := k.CreateTask(ctx, n)
	var e *tracking.Error
	errors.As(err, &e)
	fmt.Println(e.Code)
	_, err = k.CreateTask(ctx, n)
	list, _, _ := k.Tasks(ctx, tracking.TaskFilter{})
	fmt.Println(err, "tasks:", len(list))
	// Output:
	// unavailable
	// <nil> tasks: 1
}

// Three days of a task that waits for a driver, in milliseconds.
func Example_waiting() {
	ctx := context.Background()
	k := trackingtest.New(nil, nil)
	task, err := k.CreateTask(ctx, tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: &home}, AutoAssign: true,
		Window: tracking.Window{To: trackingtest.Start.Add(time.Hour)},
	})
	if err != nil {
		panic(err)
	}
	k.Advance(72 * time.Hour)
	for _, e := range k.Told() {
		fmt.Println(e.Time.Format("Mon 15:04"), e.Type)
	}
	k.NewDriver("asha", shop)
	k.Settle()
	task, _ = k.Task(ctx, task.ID)
	fmt.Println(task.Status, task.DriverID)
	// Output:
	// Mon 09:00 task.created
	// Mon 10:00 task.late
	// assigned asha
}
