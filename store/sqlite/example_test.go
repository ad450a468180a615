package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// A service on a file finds after a restart what it was told before.
func Example() {
	dir, err := os.MkdirTemp("", "tracking-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()

	var id tracking.TaskID
	for range 2 {
		store, err := sqlite.Open(filepath.Join(dir, "tracking.db"), nil)
		if err != nil {
			log.Fatal(err)
		}
		svc, err := tracking.New(store, nil)
		if err != nil {
			log.Fatal(err)
		}
		if id == "" {
			task, err := svc.CreateTask(ctx, tracking.NewTask{
				Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "45 First Avenue"},
			})
			if err != nil {
				log.Fatal(err)
			}
			id = task.ID
		} else {
			task, err := svc.Task(ctx, id)
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(task.Drop.Address)
		}
		if err := store.Close(); err != nil {
			log.Fatal(err)
		}
	}
	// Output: 45 First Avenue
}
