package tracking_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// sluggish is a Geocoder that answers at once, but for addresses that begin with "slow": for those
// it waits until nobody waits for it any more.
type sluggish struct{ asked, now, most atomic.Int64 }

func (g *sluggish) Point(ctx context.Context, address string) (tracking.LngLat, error) {
	g.asked.Add(1)
	if !strings.HasPrefix(address, "slow") {
		return *east(0), nil
	}
	n := g.now.Add(1)
	defer g.now.Add(-1)
	for m := g.most.Load(); n > m && !g.most.CompareAndSwap(m, n); m = g.most.Load() {
	}
	<-ctx.Done()
	return tracking.LngLat{}, ctx.Err()
}

func (*sluggish) Address(context.Context, tracking.LngLat) (string, error) { return "", nil }

// TestSlowAddress: an address that the Geocoder is slow with holds up no other, be it asked for
// before or after; nor do several.
func TestSlowAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &sluggish{}
		svc := running(t, &tracking.Options{Geocoder: g})
		create := func(address string) tracking.TaskID {
			t.Helper()
			return must(svc.CreateTask(t.Context(), tracking.NewTask{
				Type: tracking.TypeDrop, Drop: &tracking.Place{Address: address},
			}))(t).ID
		}
		found := func(when string, ids ...tracking.TaskID) {
			t.Helper()
			for _, id := range ids {
				if must(svc.Task(t.Context(), id))(t).Drop.LngLat == nil {
					t.Errorf("task %s has no point %s", id, when)
				}
			}
		}
		var before, after []tracking.TaskID
		for i := range 5 {
			create(fmt.Sprint("slow ", i))
			before = append(before, create(fmt.Sprint("quick ", i)))
		}
		time.Sleep(2 * time.Second)
		found("after 2 s, beside slow ones", before...)
		for i := range 30 {
			after = append(after, create(fmt.Sprint("later ", i)))
		}
		time.Sleep(3 * time.Second)
		found("after 3 s, behind slow ones", after...)
		if got := g.asked.Load(); got != 40 {
			t.Errorf("%d questions for 40 addresses", got)
		}
	})
}

// TestSlowAddresses: however many are slow, not more than eight are asked for at once, and each has
// its turn.
func TestSlowAddresses(t *testing.T) {
	for name, step := range map[string]bool{"Run": false, "Geocode": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &sluggish{}
				var svc *tracking.Service
				if step {
					svc = newWorld(t, func(o *tracking.Options) { o.Geocoder = g }).Service
				} else {
					svc = running(t, &tracking.Options{Geocoder: g})
				}
				for i := range 20 {
					must(svc.CreateTask(t.Context(), tracking.NewTask{
						Type: tracking.TypeDrop, Drop: &tracking.Place{Address: fmt.Sprint("slow ", i)},
					}))(t)
				}
				if step {
					if n := must(svc.Geocode(t.Context()))(t); n != 0 {
						t.Errorf("%d were found", n)
					}
				} else {
					time.Sleep(50 * time.Second) // three rounds of 15 s
				}
				if asked, most := g.asked.Load(), g.most.Load(); asked != 20 || most != 8 {
					t.Errorf("%d questions, at most %d at once; want 20, 8", asked, most)
				}
			})
		})
	}
}
