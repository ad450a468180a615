package tracking_test

import (
	"context"
	"iter"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// endless is a store whose driver has any number of fixes, one a second, which nobody keeps.
type endless struct {
	tracking.Store
	from time.Time
	n    int
	look func() // at each 100,000th
}

func (s *endless) Fixes(ctx context.Context, _ tracking.AppID, _ tracking.DriverID,
	r tracking.FixRange) iter.Seq2[tracking.Fix, error] {
	return func(yield func(tracking.Fix, error) bool) {
		for i := range s.n {
			f := tracking.Fix{
				LngLat: tracking.LngLat{Lng: 11 + 1e-5*float64(i%3600), Lat: 48 + 1e-4*float64(i/3600)},
				Time:   s.from.Add(time.Duration(i) * time.Second),
			}
			if i%600 < 90 { // stays
				f.LngLat.Lng = 11 + 1e-5*float64(i%3600-i%600)
			}
			if f.Time.Before(r.From) || !r.To.IsZero() && f.Time.After(r.To) {
				continue
			}
			if i%100_000 == 99_999 {
				s.look()
			}
			if !yield(f, ctx.Err()) {
				return
			}
		}
	}
}

// TestLongPath: a trip over 1,000,000 fixes (over 200,000 without TRACKING_LONG) is read as a
// stream. All of them would be 100 MB and more; a look at the trip, or at its link, never holds
// more than 1 MB.
func TestLongPath(t *testing.T) {
	now := time.Date(2024, 3, 10, 9, 0, 0, 0, time.UTC)
	store := &endless{Store: memory.New(), from: now}
	svc := must(tracking.New(store, &tracking.Options{Now: func() time.Time {
		return now
	}, TripTTL: 365 * 24 * time.Hour}))(t)
	must(svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: "d"}))(t)
	trip := must(svc.StartTrip(t.Context(), "d", "T", tracking.Step{}))(t)
	token := must(svc.TripLink(t.Context(), trip.ID))(t)
	if store.n = 200_000; os.Getenv("TRACKING_LONG") == "1" {
		store.n = 1_000_000
	}
	now = now.Add(time.Duration(store.n) * time.Second)
	for name, read := range map[string]func(){
		"Trip": func() {
			if d := must(svc.Trip(t.Context(), trip.ID))(t); d.Distance < 100_000 {
				t.Errorf("it is %v m long", d.Distance)
			}
		},
		"Tracking": func() {
			if v := must(svc.Tracking(t.Context(), token))(t); len(v.Path) < 100 || len(v.Path) > 500 {
				t.Errorf("its line has %d points", len(v.Path))
			}
		},
	} {
		begin, most, looks := held(), uint64(0), 0
		store.look = func() { looks++; most = max(most, held()) }
		read()
		if looks != store.n/100_000 || most > begin+1<<20 {
			t.Errorf("%s: at %d looks it held up to %d KiB more than before", name, looks, (most-min(begin, most))>>10)
		}
	}
}

// held is how much is in use of the heap.
func held() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
