package tracking_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// counting is a Geocoder that takes 5 s for an answer, and counts how often it is asked for what.
type counting struct {
	mu    sync.Mutex
	asked map[string]int
}

func (g *counting) Point(ctx context.Context, address string) (tracking.LngLat, error) {
	g.mu.Lock()
	g.asked[address]++
	g.mu.Unlock()
	select {
	case <-ctx.Done():
		return tracking.LngLat{}, ctx.Err()
	case <-time.After(5 * time.Second):
		return *east(0), nil
	}
}

func (*counting) Address(context.Context, tracking.LngLat) (string, error) { return "", nil }

// Of several processes that run, one does what has come due, and another takes over what it leaves.
func TestSeveralRunsShareWhatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, g := memory.New(), &counting{asked: map[string]int{}}
		one := runningOn(t, store, &tracking.Options{Geocoder: g})
		runningOn(t, store, &tracking.Options{Geocoder: g})
		var ids []tracking.TaskID
		for i := range 10 {
			ids = append(ids, must(one.CreateTask(t.Context(), tracking.NewTask{
				Type: tracking.TypeDrop, Drop: &tracking.Place{Address: fmt.Sprint("street ", i)},
			}))(t).ID)
		}
		time.Sleep(20 * time.Second)
		for i, id := range ids {
			if must(one.Task(t.Context(), id))(t).Drop.LngLat == nil {
				t.Errorf("task %d has no point", i)
			}
			if n := g.asked[fmt.Sprint("street ", i)]; n != 1 {
				t.Errorf("street %d was asked for %d times", i, n)
			}
		}
	})
}

func TestAnotherRunTakesOverWhatOneLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		svc := runningOn(t, store, &tracking.Options{})
		n := newDrop()
		n.AutoAssign, n.Window.From = true, time.Now().Add(2*time.Hour) // looked for an hour before
		due := must(svc.CreateTask(t.Context(), n))(t)
		// Somebody claims it at the moment that it comes due, and dies.
		time.Sleep(time.Hour - time.Millisecond)
		q := tracking.DueQuery{
			Kind: tracking.DueTasks, Before: time.Now().Add(time.Hour),
			Claim: tracking.Claim{Owner: "dead", Now: time.Now(), For: 5 * time.Second}, Limit: 10,
		}
		if list := must(store.Due(t.Context(), q))(t); len(list) != 1 {
			t.Fatalf("%d were claimed", len(list))
		}
		time.Sleep(4 * time.Second)
		if task := must(svc.Task(t.Context(), due.ID))(t); task.Waiting {
			t.Error("it was begun with while another had a claim on it")
		}
		time.Sleep(3 * time.Second)
		if task := must(svc.Task(t.Context(), due.ID))(t); !task.Waiting {
			t.Error("it was not begun with when that claim was over")
		}
	})
}
