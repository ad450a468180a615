package memory_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
	"github.com/seed-8aba7b13/tracking/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Fewer(t, 40)
	storetest.Run(t, func(testing.TB) tracking.Store { return memory.New() })
}

// Where many ids, keys, orders and subjects share each code, everything is found as well.
func TestFewCodes(t *testing.T) {
	memory.SetCodeBits(t, 0b11)
	storetest.Fewer(t, 20)
	storetest.Run(t, func(testing.TB) tracking.Store { return memory.New() })
}

// The body of a loop over fixes may call the store, and take its time: it would deadlock if the
// iteration held a lock.
func TestFixesHoldsNoLock(t *testing.T) {
	s := memory.New()
	defer s.Close()
	d := tracking.Driver{ID: "d", Available: true, CreatedAt: epoch}
	commit(t, s, &tracking.Changeset{Drivers: []tracking.Driver{d}})
	record := func(n int) {
		var fixes []tracking.Fix
		for i := range n {
			fixes = append(fixes, tracking.Fix{
				LngLat: tracking.LngLat{Lng: 13, Lat: 52}, Time: epoch.Add(time.Duration(i) * time.Second),
			})
		}
		if _, err := s.RecordFixes(t.Context(), app,
			tracking.FixBatch{DriverID: "d", SeenAt: epoch, Fixes: fixes}); err != nil {
			t.Fatal(err)
		}
	}
	record(1000)
	for _, newest := range []bool{false, true} {
		n := 0
		for f, err := range s.Fixes(t.Context(), app, "d", tracking.FixRange{Newest: newest}) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; n == 500 {
				record(1000)
				d.Version++
				commit(t, s, &tracking.Changeset{Drivers: []tracking.Driver{d}})
			}
			if want := epoch.Add(time.Duration(n-1) * time.Second); !newest && !f.Time.Equal(want) {
				t.Fatalf("fix %d is of %v, want %v", n, f.Time, want)
			}
		}
		if n != 1000 {
			t.Errorf("%d fixes, want 1000", n)
		}
	}
}

// A driver who is listed by distance is where the list says, however fast all of them move.
func TestDistanceFitsPosition(t *testing.T) {
	s := memory.New()
	defer s.Close()
	const n = 60
	var cs tracking.Changeset
	for i := range n {
		cs.Drivers = append(cs.Drivers, tracking.Driver{
			ID: tracking.DriverID(rune('A' + i)), Available: true, CreatedAt: epoch,
		})
	}
	commit(t, s, &cs)
	here := tracking.LngLat{Lng: 13, Lat: 52}
	move := func(r *rand.Rand, i, seq int) {
		_, err := s.RecordFixes(context.Background(), app, tracking.FixBatch{
			DriverID: cs.Drivers[i].ID, SeenAt: epoch, Fixes: []tracking.Fix{{
				LngLat:  tracking.LngLat{Lng: 13 + r.Float64(), Lat: 52 + r.Float64()},
				Time:    epoch.Add(time.Duration(seq) * time.Second),
				Trusted: true,
			}},
		})
		if err != nil {
			t.Error(err)
		}
	}
	for i := range n {
		move(rand.New(rand.NewPCG(0, uint64(i))), i, 0)
	}
	var movers sync.WaitGroup
	defer movers.Wait()
	var moving atomic.Int32
	for w := range 2 {
		moving.Add(1)
		movers.Go(func() {
			defer moving.Add(-1)
			r := rand.New(rand.NewPCG(1, uint64(w)))
			for i := range 10_000 {
				move(r, r.IntN(n/2)*2+w, i+1)
			}
		})
	}
	for i := 0; moving.Load() > 0; i++ {
		var list []tracking.Driver
		var err error
		if i%2 == 0 {
			list, _, err = s.Drivers(t.Context(), app, tracking.DriverFilter{
				Near: &here, Page: tracking.Page{Limit: n},
			})
		} else {
			list, err = s.Offers(t.Context(), app, tracking.Offer{At: here, MaxOpen: 1, Limit: n})
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != n {
			t.Fatalf("%d drivers, want %d", len(list), n)
		}
		for j, d := range list {
			if d.Distance != tracking.Distance(here, d.Position.Fix.LngLat) ||
				j > 0 && list[j-1].Distance > d.Distance {
				t.Fatalf("place %d: %v m, but at %v", j, d.Distance, d.Position.Fix.LngLat)
			}
		}
	}
}

// A page of the nearest tells of a next one as it was when its drivers were listed: here the second is
// known from his first fix on, as the nearest.
func TestMoreFitsPage(t *testing.T) {
	s := memory.New()
	defer s.Close()
	record := func(id tracking.DriverID, lng float64) {
		if _, err := s.RecordFixes(context.Background(), app, tracking.FixBatch{
			DriverID: id, SeenAt: epoch, Fixes: []tracking.Fix{{LngLat: tracking.LngLat{Lng: lng}, Time: epoch, Trusted: true}},
		}); err != nil {
			t.Error(err)
		}
	}
	commit(t, s, &tracking.Changeset{Drivers: []tracking.Driver{{ID: "far", CreatedAt: epoch}}})
	record("far", 10)
	var over atomic.Bool
	var others sync.WaitGroup
	others.Go(func() {
		defer over.Store(true)
		for range 5000 {
			w, err := s.Commit(context.Background(), app, &tracking.Changeset{
				Drivers: []tracking.Driver{{ID: "near", CreatedAt: epoch}},
			})
			if err != nil {
				t.Error(err)
				return
			}
			record("near", 1)
			gone := tracking.Driver{ID: "near", Version: w.Drivers[0].Version}
			if _, err := s.Commit(context.Background(), app, &tracking.Changeset{
				DeleteDrivers: []tracking.Driver{gone},
			}); err != nil {
				t.Error(err)
			}
		}
	})
	defer others.Wait()
	for !over.Load() {
		list, more, err := s.Drivers(t.Context(), app, tracking.DriverFilter{
			Near: &tracking.LngLat{}, Page: tracking.Page{Limit: 1},
		})
		if err != nil || len(list) != 1 || more != (list[0].ID == "near") {
			t.Fatalf("%d drivers, with more: %v, %v", len(list), more, err)
		}
	}
}

// The nearest of the few who have a property are those of one moment: here the first is always nearer
// than the last, though each comes nearer in turn.
func TestNearestOfFewAreOfOneMoment(t *testing.T) {
	s := memory.New()
	defer s.Close()
	const few, others = 100, 6000
	var cs tracking.Changeset
	for i := range few + others {
		d := tracking.Driver{ID: tracking.DriverID(fmt.Sprintf("%04d", i)), CreatedAt: epoch}
		if i < few {
			d.Properties = map[string]string{"few": "yes"}
		}
		cs.Drivers = append(cs.Drivers, d)
	}
	commit(t, s, &cs)
	seq := 0
	record := func(i int, lng float64) {
		seq++
		if _, err := s.RecordFixes(context.Background(), app, tracking.FixBatch{
			DriverID: cs.Drivers[i].ID, SeenAt: epoch, Fixes: []tracking.Fix{{
				LngLat: tracking.LngLat{Lng: lng}, Time: epoch.Add(time.Duration(seq) * time.Second), Trusted: true,
			}},
		}); err != nil {
			t.Error(err)
		}
	}
	for i := range few {
		record(i, 50)
	}
	const first, last = 0, few - 1
	record(first, 5)
	var over atomic.Bool
	var movers sync.WaitGroup
	defer movers.Wait()
	movers.Go(func() {
		defer over.Store(true)
		for range 5000 {
			record(first, 1)
			record(last, 3)
			record(last, 50)
			record(first, 5)
		}
	})
	for !over.Load() {
		list, _, err := s.Drivers(t.Context(), app, tracking.DriverFilter{
			Near: &tracking.LngLat{}, Properties: map[string]string{"few": "yes"}, Page: tracking.Page{Limit: 1},
		})
		if err != nil || len(list) != 1 || list[0].ID != cs.Drivers[first].ID {
			t.Fatalf("found %d, %v: %v, who is at %v", len(list), err, list[0].ID, list[0].Position.Fix.LngLat)
		}
	}
}

func TestShared(t *testing.T) {
	storetest.RunShared(t, func(testing.TB) (a, b tracking.Store) { s := memory.New(); return s, s })
}

// TestTurnover is storetest's tier of random verbs with deletions, at its full size.
func TestTurnover(t *testing.T) {
	if os.Getenv("TRACKING_LONG") != "1" {
		t.Skip("it takes its time; storetest plays a short one")
	}
	storetest.RunTurnover(t, memory.New(), 200_000)
}
