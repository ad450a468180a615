package postgres_test

import (
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// Whatever others do to a driver meanwhile, one who is known fares as one who is read at each call.
func TestKnownDriversAmongOthers(t *testing.T) {
	t.Parallel()
	const drivers, rounds = 4, 50
	url, readURL := template.Database(t), template.Database(t)
	s, other, read := open(t, url, nil), open(t, url, nil), open(t, readURL, nil)
	defer s.Close()
	defer other.Close()
	defer read.Close()
	stamps := connect(t, readURL)
	both := func(f func(s tracking.Store) error) {
		t.Helper()
		for _, s := range []tracking.Store{other, read} {
			if err := f(s); err != nil {
				t.Fatal(err)
			}
		}
	}
	commit := func(cs tracking.Changeset) {
		t.Helper()
		both(func(s tracking.Store) error {
			_, err := s.Commit(t.Context(), app, &cs)
			return err
		})
	}
	commit(tracking.Changeset{Drivers: someDrivers(drivers)})
	r := rand.New(rand.NewPCG(8, 9))
	random := func(most time.Duration) time.Duration {
		return time.Duration(r.IntN(int(most/time.Second))) * time.Second
	}
	meanwhile := func(d tracking.Driver, second int, now time.Time) {
		t.Helper()
		switch r.IntN(5) {
		case 0:
			d.Available, d.DutyAt = r.IntN(2) == 0, now.Add(-random(2*time.Minute))
			commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
		case 1:
			b := at(d.ID, second-r.IntN(20))
			both(func(s tracking.Store) error {
				_, err := s.RecordFixes(t.Context(), app, b)
				return err
			})
		case 2:
			before := tracking.Before{Fixes: now.Add(-random(5 * time.Minute)), Limit: 1000}
			both(func(s tracking.Store) error {
				_, err := s.Purge(t.Context(), before)
				return err
			})
		case 3:
			commit(tracking.Changeset{DeleteDrivers: []tracking.Driver{d}})
			commit(tracking.Changeset{Drivers: []tracking.Driver{{ID: d.ID, Available: true, CreatedAt: now}}})
		}
	}
	changes := []func(b *tracking.FixBatch){
		func(b *tracking.FixBatch) { b.Skew = tracking.Known(float64(r.IntN(9) - 4)) },
		func(b *tracking.FixBatch) { b.Unread = r.IntN(4) },
		func(b *tracking.FixBatch) { b.Fixes[0].Trusted = true },
		func(b *tracking.FixBatch) { b.Fixes[0].Time = b.Fixes[0].Time.Add(-random(15 * time.Minute)) },
		func(b *tracking.FixBatch) { b.Fixes[0].LngLat.Lng += 20 },
		func(b *tracking.FixBatch) { b.Fixes[0].EventID, b.Fixes[0].Battery = "e", tracking.Known(0.5) },
		func(b *tracking.FixBatch) {
			b.Fixes[0].Accuracy, b.MaxAccuracy, b.MaxFixAge = tracking.Known(1000), 100, time.Minute
		},
		func(b *tracking.FixBatch) { b.Latest = b.SeenAt.Add(random(time.Minute) - 30*time.Second) },
		func(b *tracking.FixBatch) { b.KeepOffDuty = true },
		func(b *tracking.FixBatch) {
			ahead := b.Fixes[0]
			ahead.Time = ahead.Time.Add(random(15*time.Minute) - 5*time.Minute)
			b.Fixes = append(b.Fixes, ahead)
		},
	}
	for round := range rounds {
		second := 2000 + 7*round
		ids := someDrivers(drivers)
		d, err := other.Driver(t.Context(), app, ids[r.IntN(drivers)].ID)
		if err != nil {
			t.Fatal(err)
		}
		meanwhile(d, second, start.Add(time.Duration(second)*time.Second))

		var told [drivers]tracking.Recorded
		var batches [drivers]tracking.FixBatch
		var wg sync.WaitGroup
		for g := range drivers {
			b := at(ids[g].ID, second)
			b.Fixes[0].LngLat.Lng = 11 + float64(round)/1e4
			for r.IntN(3) == 0 {
				changes[r.IntN(len(changes))](&b)
			}
			batches[g] = b
			wg.Go(func() {
				var err error
				if told[g], err = s.RecordFixes(t.Context(), app, b); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		execute(t, stamps, "UPDATE tracking.positions SET stamp = stamp + 1")
		for g, b := range batches {
			want, err := read.RecordFixes(t.Context(), app, b)
			if err != nil {
				t.Fatal(err)
			}
			kept, err := other.Driver(t.Context(), app, b.DriverID)
			if err != nil || !reflect.DeepEqual(told[g], want) || !reflect.DeepEqual(kept, want.Driver) {
				t.Fatalf("round %d, %+v: told %+v, kept %+v, %v; want %+v", round, b, told[g], kept, err, want)
			}
		}
	}
	for _, d := range someDrivers(drivers) {
		all := tracking.FixRange{Limit: 1000}
		got, err := other.KeptFixes(t.Context(), app, d.ID, all)
		if err != nil {
			t.Fatal(err)
		}
		if want, err := read.KeptFixes(t.Context(), app, d.ID, all); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("of %s are kept %+v, want %+v, %v", d.ID, got, want, err)
		}
	}
}
