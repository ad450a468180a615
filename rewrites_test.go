package tracking_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// TestRewritesGuardThePath: whatever comes in whatever order, a path that was read is the beginning
// of the present one as long as Rewrites stays; and what comes in order leaves it.
func TestRewritesGuardThePath(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 13))
		s := memory.New()
		ctx := t.Context()
		if _, err := s.Commit(ctx, tracking.DefaultApp, &tracking.Changeset{
			Drivers: []tracking.Driver{{ID: "d", Available: true, CreatedAt: start}},
		}); err != nil {
			t.Fatal(err)
		}
		path := func() (list []tracking.Fix) {
			for f, err := range s.Fixes(ctx, tracking.DefaultApp, "d", tracking.FixRange{}) {
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, f)
			}
			return list
		}
		var was []tracking.Fix
		rewrites, last := 0, 0
		for range 60 {
			b := tracking.FixBatch{
				DriverID: "d", SeenAt: start.Add(time.Hour), MaxAccuracy: 250, MaxFixAge: 10 * time.Minute,
				Latest: start.Add(10 * time.Hour),
			}
			inOrder := true
			for range 1 + r.IntN(3) {
				sec := last + 1 + r.IntN(40)
				switch r.IntN(6) {
				case 0:
					sec = r.IntN(last + 1)
				case 1:
					sec += 100 * r.IntN(3)
				}
				f := tracking.Fix{
					LngLat: tracking.LngLat{Lng: 11 + float64(sec)*0.0001, Lat: 48},
					Time:   start.Add(time.Duration(sec) * time.Second),
				}
				if r.IntN(5) == 0 {
					f.LngLat.Lng, inOrder = 15+float64(r.IntN(2)), false
				}
				if r.IntN(9) == 0 {
					f.Accuracy, inOrder = tracking.Known(900), false
				}
				f.Trusted = r.IntN(15) == 0
				inOrder = inOrder && sec > last && !f.Trusted
				last = max(last, sec)
				b.Fixes = append(b.Fixes, f)
			}
			rec, err := s.RecordFixes(ctx, tracking.DefaultApp, b)
			if err != nil {
				t.Fatal(err)
			}
			now := path()
			if got := rec.Driver.Position.Rewrites; got == rewrites {
				if len(now) < len(was) || !slices.Equal(now[:len(was)], was) {
					t.Fatalf("seed %d: Rewrites stays at %d, and the path of %d fixes changes", seed, got, len(was))
				}
			} else if inOrder && !rec.Rewritten {
				t.Fatalf("seed %d: what came in order raised Rewrites", seed)
			}
			was, rewrites = now, rec.Driver.Position.Rewrites
		}
	}
}
