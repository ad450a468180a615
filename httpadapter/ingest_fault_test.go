package httpadapter_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// failing is a store whose recording of fixes fails when told to: before or after it has happened,
// as when the outcome of a commit is unknown.
type failing struct {
	tracking.Store
	calls  atomic.Int64
	before func(call int64) bool
	after  func(call int64) bool
}

func (f *failing) RecordFixes(ctx context.Context, app tracking.AppID, b tracking.FixBatch) (tracking.Recorded, error) {
	n := f.calls.Add(1)
	away := &tracking.Error{Code: tracking.ErrUnavailable, Err: errors.New("the disk is away")}
	if f.before != nil && f.before(n) {
		return tracking.Recorded{}, away
	}
	rec, err := f.Store.RecordFixes(ctx, app, b)
	if err == nil && f.after != nil && f.after(n) {
		return tracking.Recorded{}, away
	}
	return rec, err
}

// TestPhonesKeepWhatIsNotCommitted: while the store cannot answer, no app is told that its
// positions have been taken, however far it got; sent again, they are all there once.
func TestPhonesKeepWhatIsNotCommitted(t *testing.T) {
	never := func(int64) bool { return false }
	for name, store := range map[string]*failing{
		"at the first part":               {before: func(n int64) bool { return n == 1 }},
		"at the second part":              {before: func(n int64) bool { return n == 2 }},
		"after the last part was written": {after: func(n int64) bool { return n == 3 }},
		"twice":                           {before: func(n int64) bool { return n == 2 || n == 3 }},
	} {
		t.Run(name, func(t *testing.T) {
			store.Store = memory.New()
			svc, err := tracking.New(store, &tracking.Options{Logger: quiet()})
			if err != nil {
				t.Fatal(err)
			}
			h, err := httpadapter.New(svc, &httpadapter.Options{Logger: quiet()})
			if err != nil {
				t.Fatal(err)
			}
			joined := join(t, svc, "ravi")
			const fixes = 2500 // three parts
			begin := time.Now().Add(-fixes * time.Second).Truncate(time.Second)
			trip, err := svc.StartTrip(t.Context(), "ravi", "T", tracking.Step{At: begin})
			if err != nil {
				t.Fatal(err)
			}
			var records []string
			for i := range fixes {
				records = append(records,
					fmt.Sprintf(`{"lat":13,"lon":%.5f,"timestamp":%d}`, 80+float64(i)*1e-5, begin.Unix()+int64(i)))
			}
			store.calls.Store(0)
			send := func() int {
				r := httptest.NewRequest("POST", "/ingest/"+joined.IngestToken,
					strings.NewReader("["+strings.Join(records, ",")+"]"))
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if w.Code == 503 && w.Header().Get("Retry-After") == "" {
					t.Error("503 without Retry-After")
				}
				return w.Code
			}
			tries := 1
			for ; ; tries++ {
				status := send()
				if status == 200 {
					break
				}
				if status != 503 || tries == 5 {
					t.Fatalf("try %d is answered %d", tries, status)
				}
			}
			if tries == 1 {
				t.Error("the first try was answered as if all were well")
			}
			store.before, store.after = never, never
			_, path, err := svc.TripPath(t.Context(), trip.ID)
			if err != nil {
				t.Fatal(err)
			}
			n := 0
			for f, err := range path {
				if err != nil {
					t.Fatal(err)
				}
				if want := begin.Add(time.Duration(n) * time.Second); !f.Time.Equal(want) {
					t.Fatalf("fix %d is of %v, want %v", n, f.Time, want)
				}
				n++
			}
			if n != fixes {
				t.Errorf("%d fixes are in the path, want %d", n, fixes)
			}
		})
	}
}
