package storetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// dueChecks are about trips whose time is up: that everybody sees it at once, and who pays for it.
func dueChecks() []check {
	return []check{
		{"lists of trips are true before a sweep has run, and it changes none of them", tripListsAreTrueBeforeASweep},
		{"an operation ends the trips that it needs, and no others", operationEndsOnlyItsTrips},
		{"a late fix does not carry on a trip whose time was up, whether or not a sweep has run",
			lateFixCarriesNothingOn},
		{"a sweep ends many trips in one changeset", sweepEndsManyInOneChangeset},
		{"sweeps at once end each trip once", sweepsAtOnceEndEachOnce},
	}
}

// tripListsAreTrueBeforeASweep reads every list before and after a sweep, and compares them.
func tripListsAreTrueBeforeASweep(t testing.TB, s tracking.Store) {
	const n = 30
	count, svc := beginDue(t, s, n)
	read := func() map[string][]tracking.Trip {
		t.Helper()
		pages := map[string][]tracking.Trip{}
		for _, status := range []tracking.TripStatus{
			0, tracking.TripActive, tracking.TripStopped, tracking.TripDiscarded,
		} {
			for _, f := range []tracking.TripFilter{
				{}, {DriverID: "d000003"}, {DriverID: "d000005"}, {TrackingID: "t000004"},
			} {
				for _, limit := range []int{1, 4, 7, 100} {
					f.Status, f.Limit = status, limit
					for f.Number = 1; ; f.Number++ {
						list, more, err := svc.Trips(t.Context(), f)
						if err != nil {
							t.Fatal(err)
						}
						pages[fmt.Sprintf("%+v, more %v", f, more)] = list
						if !more {
							break
						}
					}
				}
			}
		}
		return pages
	}
	before := read()
	if n := count.commits.Load(); n != 0 {
		t.Errorf("lists have committed %d times", n)
	}
	if n := len(before[fmt.Sprintf("%+v, more false",
		tracking.TripFilter{Page: tracking.Page{Number: 1, Limit: 100}, Status: tracking.TripStopped})]); n != 10 {
		t.Errorf("%d trips are stopped, want 10", n)
	}
	for {
		if n, err := svc.EndDueTrips(t.Context()); err != nil || n == 0 {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	after := read()
	for _, list := range []map[string][]tracking.Trip{before, after} {
		for _, page := range list {
			for i := range page { // what only a written end has
				page[i].Version, page[i].UpdatedAt = 0, time.Time{}
			}
		}
	}
	same(t, "pages after the sweep", after, before)
}

// operationEndsOnlyItsTrips counts the commits that each operation makes for trips whose time is
// up.
func operationEndsOnlyItsTrips(t testing.TB, s tracking.Store) {
	count, svc := beginDue(t, s, 200)
	costs := func(what string, want int64, do func() error) {
		t.Helper()
		count.commits.Store(0)
		if err := do(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n := count.commits.Load(); n > want {
			t.Errorf("%s commits %d times, want at most %d", what, n, want)
		}
	}
	fix := []tracking.Fix{newFix(at(2*time.Hour), 11, 48)}
	costs("recording fixes", 1, func() error { _, err := svc.RecordFixes(t.Context(), "d000000", fix); return err })
	costs("recording fixes again", 0, func() error {
		_, err := svc.RecordFixes(t.Context(), "d000000", fix)
		return err
	})
	costs("reading a trip", 1, func() error {
		tr, err := svc.Trip(t.Context(), "t000003")
		same(t, "status", tr.Status, tracking.TripStopped)
		return err
	})
	costs("starting a trip under the same tracking id", 2, func() error {
		_, err := svc.StartTrip(t.Context(), "d000009", "t000006", tracking.Step{})
		return err
	})
	costs("stopping one", 1, func() error {
		tr, err := svc.StopTrip(t.Context(), "d000012", "t000012", tracking.Step{})
		same(t, "end", tr.EndedAt, at(2*time.Hour))
		return err
	})
	costs("deleting a driver", 2, func() error { return svc.DeleteDriver(t.Context(), "d000015") })
	due, err := s.Due(t.Context(), tracking.DueQuery{Kind: tracking.DueTrips, Before: at(2 * time.Hour), Limit: 1000})
	if err != nil || len(due) < 190 {
		t.Errorf("%d trips are left to the sweep, error %v", len(due), err)
	}
}

func lateFixCarriesNothingOn(t testing.TB, s tracking.Store) {
	_, svc := beginDue(t, s, 6)
	late := []tracking.Fix{newFix(at(2*time.Hour-time.Second), 11, 48)}
	if _, err := svc.RecordFixes(t.Context(), "d000002", late); err != nil {
		t.Fatal(err)
	}
	tr, err := svc.Trip(t.Context(), "t000002")
	if err != nil || tr.Status != tracking.TripDiscarded || !tr.EndedAt.Equal(at(2*time.Hour)) {
		t.Errorf("it is %+v, error %v; want it discarded at its ttl", tr.Trip, err)
	}
}

func sweepEndsManyInOneChangeset(t testing.TB, s tracking.Store) {
	const n = 200
	count, svc := beginDue(t, s, n)
	ended := 0
	for {
		part, err := svc.EndDueTrips(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if ended += part; part == 0 {
			break
		}
	}
	if ended != n || count.commits.Load() > n/50 {
		t.Errorf("%d trips were settled by %d commits, want %d by %d", ended, count.commits.Load(), n, n/50)
	}
	events, _ := use(t, s, here).events(tracking.EventFilter{Limit: 1000})
	if len(events) != n-n/6-n%6/5 { // those that fixes carry on have none
		t.Errorf("%d events, want %d", len(events), n-n/6-n%6/5)
	}
}

// sweepsAtOnceEndEachOnce counts the events of each trip.
func sweepsAtOnceEndEachOnce(t testing.TB, s tracking.Store) {
	const n = 120
	_, svc := beginDue(t, s, n)
	_, other := &tally{},
		service(t, s, tracking.Options{Now: func() time.Time { return at(2 * time.Hour) }}).ForApp(here)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for {
				if ended, err := []*tracking.Service{svc, other}[i%2].EndDueTrips(t.Context()); err != nil ||
					ended == 0 {
					if err != nil {
						t.Error(err)
					}
					return
				}
			}
		})
	}
	wg.Wait()
	for _, status := range []tracking.TripStatus{tracking.TripStopped, tracking.TripDiscarded} {
		list, _, err := svc.Trips(t.Context(), tracking.TripFilter{Page: tracking.Page{Limit: 1000}, Status: status})
		if err != nil {
			t.Fatal(err)
		}
		for _, tr := range list {
			events, _ := use(t, s, here).events(tracking.EventFilter{Subject: tracking.Subject{
				Kind: tracking.KindTrip, ID: string(tr.ID),
			}})
			if len(events) != 1 || tr.Version != 2 {
				t.Errorf("trip %s has %d events and version %d", tr.ID, len(events), tr.Version)
			}
		}
	}
}

// beginDue makes a crowd, and a Service that counts what it asks of the store, at the time when the
// trips are due.
func beginDue(t testing.TB, s tracking.Store, n int) (*tally, *tracking.Service) {
	t.Helper()
	dueCrowd(t, s, n)
	count, c := &tally{Store: s}, &clock{at: at(2 * time.Hour)}
	return count, service(t, count, tracking.Options{Now: c.now}).ForApp(here)
}

// dueCrowd makes n drivers with a trip each, whose time is up at t0 + 2 h: every third has sent a
// fix at the start, and every third of the others one a minute ago, which carries the trip on.
func dueCrowd(t testing.TB, s tracking.Store, n int) {
	t.Helper()
	for i := 0; i < n; {
		var cs tracking.Changeset
		for range min(500, n-i) {
			d, tr := newDriver(tracking.DriverID(fmt.Sprintf("d%06d", i)), t0),
				newTrip(tracking.TripID(fmt.Sprintf("t%06d", i)), "", "", t0)
			tr.DriverID, tr.TrackingID, tr.CreatedAt = d.ID, tracking.TrackingID(tr.ID),
				at(time.Duration(i)*time.Millisecond)
			cs.Drivers, cs.Trips = append(cs.Drivers, d), append(cs.Trips, tr)
			switch b := (tracking.FixBatch{DriverID: d.ID, SeenAt: t0}); i % 3 {
			case 0:
				b.Fixes = []tracking.Fix{newFix(t0, 11, 48)}
				cs.Fixes = append(cs.Fixes, b)
			case 1:
				if i%2 == 0 {
					b.Fixes = []tracking.Fix{newFix(at(2*time.Hour-time.Minute), 11, 48)}
					cs.Fixes = append(cs.Fixes, b)
				}
			}
			i++
		}
		if _, err := s.Commit(t.Context(), here, &cs); err != nil {
			t.Fatalf("Commit: %v", err)
		}
	}
}

// BenchmarkDue measures what a phone waits for when it sends a fix while as many trips are due, and
// a sweep ends them.
func BenchmarkDue(b *testing.B, open func(t testing.TB) tracking.Store) {
	for _, n := range []int{50, 2000} {
		b.Run(fmt.Sprintf("first answers, %d trips due", n), func(b *testing.B) {
			var answers, first time.Duration
			const phones = 50
			for b.Loop() {
				s := opened(b, open)
				dueCrowd(b, s, n)
				svc := service(b, s, tracking.Options{Now: func() time.Time { return at(2 * time.Hour) }}).ForApp(here)
				var mu sync.Mutex
				var wg sync.WaitGroup
				began := time.Now()
				soonest := time.Hour
				wg.Go(func() {
					for {
						if n, err := svc.EndDueTrips(b.Context()); err != nil || n == 0 {
							return
						}
					}
				})
				for i := range phones {
					wg.Go(func() {
						if _, err := svc.RecordFixes(b.Context(), tracking.DriverID(fmt.Sprintf("d%06d", i)),
							[]tracking.Fix{newFix(at(2*time.Hour), 11, 48)}); err != nil {
							b.Error(err)
						}
						mu.Lock()
						defer mu.Unlock()
						answers += time.Since(began)
						soonest = min(soonest, time.Since(began))
					})
				}
				wg.Wait()
				first += soonest
				s.Close()
			}
			b.ReportMetric(float64(first.Microseconds())/1e3/float64(b.N), "ms/first")
			b.ReportMetric(float64(answers.Microseconds())/1e3/float64(b.N)/phones, "ms/answer")
		})
	}
}
