package storetest

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/seed-8aba7b13/tracking"
)

// blind ignores versions: the last one to write wins.
type blind struct{ *reference }

func (b blind) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) error {
	runtime.Gosched()
	for {
		c := kept(*cs)
		for i, t := range c.Tasks {
			if now, err := b.Task(ctx, app, t.ID); err == nil && t.Version != 0 {
				c.Tasks[i].Version = now.Version
			}
		}
		for i, d := range c.Drivers {
			if now, err := b.Driver(ctx, app, d.ID); err == nil && d.Version != 0 {
				c.Drivers[i].Version = now.Version
			}
		}
		if err := b.reference.Commit(ctx, app, &c); !errors.Is(err, tracking.ErrConflict) {
			return err
		}
	}
}

func (b blind) Task(ctx context.Context, app tracking.AppID, id tracking.TaskID) (tracking.Task, error) {
	t, err := b.reference.Task(ctx, app, id)
	runtime.Gosched() // others come in between
	return t, err
}

func TestPlantedRaceIsFound(t *testing.T) {
	n, err := racedTask(t, blind{newReference()}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if n < 0 {
		t.Fatal("a store that ignores versions was taken for linearizable")
	}
	t.Logf("found in round %d", n)
}
