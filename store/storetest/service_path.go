package storetest

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// pathChecks are about paths that are long.
func pathChecks() []check {
	return []check{
		{"path/whoever has gone has the reading of a path end", pathEndsWithItsReader},
		{"path/a part of a path reads no more than that", pathIsReadInParts},
	}
}

// counted is a store that counts the fixes it yields, and does something at one of them.
type counted struct {
	tracking.Store
	n, at int
	do    func()
}

func (s *counted) Fixes(
	ctx context.Context, app tracking.AppID, d tracking.DriverID, r tracking.FixRange,
) iter.Seq2[tracking.Fix, error] {
	return func(yield func(tracking.Fix, error) bool) {
		for f, err := range s.Store.Fixes(ctx, app, d, r) {
			if err == nil {
				if s.n++; s.n == s.at {
					s.do()
				}
			}
			if !yield(f, err) {
				return
			}
		}
	}
}

// fixesAhead is how many fixes a store may read, or hand out, that nobody wants any more.
const fixesAhead = 1024

// longTrip has d drive for an hour and a half: 5,000 fixes on one trip, with a link.
func longTrip(
	t testing.TB, s tracking.Store,
) (store *counted, svc *tracking.Service, trip tracking.TripID, token string) {
	store = &counted{Store: s, do: func() {}}
	const n = 5000
	svc, c := beginAt(t, store, t0, tracking.Options{})
	putOnDuty(t, svc, nil)
	began, err := svc.StartTrip(t.Context(), "d", "x", tracking.Step{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n / tracking.MaxBatch {
		fixes := make([]tracking.Fix, tracking.MaxBatch)
		for j := range fixes {
			sec := i*tracking.MaxBatch + j
			fixes[j] = newFix(at(time.Duration(sec)*time.Second), 11+1e-4*float64(sec), 48)
		}
		c.forward(tracking.MaxBatch * time.Second)
		if _, err := svc.RecordFixes(t.Context(), "d", fixes); err != nil {
			t.Fatal(err)
		}
	}
	if token, err = svc.TripLink(t.Context(), began.ID); err != nil {
		t.Fatal(err)
	}
	return store, svc, began.ID, token
}

// pathEndsWithItsReader stops reading in the middle of a long path.
func pathEndsWithItsReader(t testing.TB, s tracking.Store) {
	store, svc, trip, token := longTrip(t, s)
	for name, read := range map[string]func(context.Context) error{
		"Trip":     func(ctx context.Context) error { _, err := svc.Trip(ctx, trip); return err },
		"Tracking": func(ctx context.Context) error { _, err := svc.Tracking(ctx, token); return err },
		"TripPath": func(ctx context.Context) error {
			_, path, err := svc.TripPath(ctx, trip)
			if err != nil {
				return err
			}
			for _, err = range path {
			}
			return err
		},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		store.n, store.at, store.do = 0, 1500, cancel
		err := read(ctx)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, tracking.ErrUnavailable) {
			t.Errorf("%s: got error %v, want ErrUnavailable with context.Canceled in it", name, err)
		}
		if store.n < store.at || store.n > store.at+fixesAhead {
			t.Errorf("%s: %d fixes were read, the reader has gone after %d", name, store.n, store.at)
		}
		cancel()
		store.n, store.at = 0, 0
		if err := read(t.Context()); err != nil || store.n < 5000 || store.n > 5001 { // one for the start of the trip
			t.Errorf("%s, to its end: %d fixes, error %v", name, store.n, err)
		}
	}
}

func pathIsReadInParts(t testing.TB, s tracking.Store) {
	store, svc, trip, token := longTrip(t, s)
	_, path, err := svc.TripPath(t.Context(), trip)
	if err != nil {
		t.Fatal(err)
	}
	store.n = 0
	for range path {
		if store.n == 10 {
			break
		}
	}
	same(t, "fixes read for the first ten", store.n, 10)
	if _, err := svc.Tracking(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	store.n = 0
	if _, err := svc.Tracking(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	if store.n > 1 { // the start of the trip
		t.Errorf("%d fixes were read for a look at a path that is known", store.n)
	}
}
