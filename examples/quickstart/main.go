// Quickstart is the delivery-tracking service in a program, with nothing around it: a driver, a task
// that finds its driver, and what happened. Rows are in memory, nothing listens, and it ends by
// itself. What it is like with a login, a database and pages is in examples/shop.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

func main() {
	if err := deliver(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// deliver takes one delivery from its creation to its end.
func deliver(ctx context.Context) error {
	fmt.Println("One delivery, from its creation to its end: in this process, in memory, without a server.")
	svc, err := tracking.New(memory.New(), nil)
	if err != nil {
		return err
	}
	name, onDuty := "Dora", true
	if _, err := svc.SaveDriver(ctx, tracking.DriverUpdate{
		ID: "dora", Name: &name, Available: &onDuty, LngLat: &tracking.LngLat{Lng: -0.1276, Lat: 51.5072},
	}); err != nil {
		return err
	}
	task, err := svc.CreateTask(ctx, tracking.NewTask{
		Type:       tracking.TypeDrop,
		Drop:       &tracking.Place{LngLat: &tracking.LngLat{Lng: -0.1195, Lat: 51.5033}, Address: "12 River Street"},
		AutoAssign: true,
	})
	if err != nil {
		return err
	}
	fmt.Printf("The task is %s to %s.\n", task.Status, task.DriverID)

	if _, _, err := svc.StartTask(ctx, task.DriverID, task.ID, tracking.Step{}); err != nil {
		return err
	}
	if task, err = svc.FinishTask(ctx, task.DriverID, task.ID, tracking.Completion{}, tracking.Step{}); err != nil {
		return err
	}
	fmt.Printf("The task is %s: %s.\n", task.Status, task.Outcome)

	events, _, err := svc.Events(ctx, tracking.EventFilter{})
	for _, e := range events {
		fmt.Printf("%s by %s\n", e.Type, e.Actor)
	}
	return err
}
