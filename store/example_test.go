package store_test

import (
	"context"
	"fmt"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// audited is a store that tells of each commit, and leaves the rest to another one. A store of one's
// own that is not made of another has all methods of [tracking.Store] itself.
type audited struct{ tracking.Store }

// Commit tells of what is written once it is.
func (s audited) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	written, err := s.Store.Commit(ctx, app, cs)
	if err != nil {
		return written, err // as it came: the service reads again after a conflict
	}
	for _, e := range cs.Events {
		fmt.Println(app, e.Type)
	}
	return written, nil
}

// What a step of the service changes comes to the store in one Commit, with the events of it.
func Example() {
	svc, err := tracking.New(audited{memory.New()}, nil)
	if err != nil {
		panic(err)
	}
	at := tracking.LngLat{Lng: 80.27, Lat: 13.08}
	duty := true
	_, err = svc.SaveDriver(context.Background(), tracking.DriverUpdate{ID: "asha", Available: &duty, LngLat: &at})
	if err != nil {
		panic(err)
	}
	_, err = svc.CreateTask(context.Background(), tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: &at}, AutoAssign: true,
	})
	if err != nil {
		panic(err)
	}
	// Output:
	// default driver.available
	// default task.created
	// default task.assigned
}
