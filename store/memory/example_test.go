package memory_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// A service without a file or a server. Who has closed its store is told so, and all rows are gone.
func Example() {
	ctx, store := context.Background(), memory.New()
	svc, err := tracking.New(store, nil)
	if err != nil {
		panic(err)
	}
	drop := tracking.NewTask{Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "12 Anna Salai"}}
	task, err := svc.CreateTask(ctx, drop)
	if err != nil {
		panic(err)
	}
	fmt.Println(task.Status, task.Drop.Address)

	if err := store.Close(); err != nil {
		panic(err)
	}
	_, err = svc.Task(ctx, task.ID)
	fmt.Println(errors.Is(err, tracking.ErrUnavailable))
	// Output:
	// created 12 Anna Salai
	// true
}
