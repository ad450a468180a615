package postgres_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
)

// at is a batch of one fix, or of one for each of several seconds, so many after the start.
func at(driver tracking.DriverID, seconds ...int) tracking.FixBatch {
	b := tracking.FixBatch{DriverID: driver}
	for _, second := range seconds {
		b.SeenAt = start.Add(time.Duration(second) * time.Second)
		b.Fixes = append(b.Fixes, tracking.Fix{
			LngLat: tracking.LngLat{Lng: 11 + float64(second)/1e4, Lat: 48}, Time: b.SeenAt,
		})
	}
	return b
}

// What a process knows of a driver spares it to read him, until somebody else has written to him: then
// nothing counts but what is there.
func TestKnownDrivers(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s, _, l := lone(t, url)
	other := open(t, url, nil)
	defer other.Close()
	const id = tracking.DriverID("driver-0")
	if _, err := s.Commit(t.Context(), app, &tracking.Changeset{Drivers: someDrivers(1)}); err != nil {
		t.Fatal(err)
	}
	// record records a fix, which tells whether the driver was written as known, and whether read.
	record := func(seconds int, want tracking.FixOutcome) (asKnown, read bool, r tracking.Recorded) {
		t.Helper()
		for _, q := range l.of(t, func() (err error) {
			r, err = s.RecordFixes(t.Context(), app, at(id, seconds))
			return err
		}) {
			asKnown = asKnown || strings.Contains(q.SQL, "p.stamp = u.stamp")
			read = read || strings.Contains(q.SQL, "d.person")
		}
		if len(r.Outcomes) != 1 || r.Outcomes[0] != want {
			t.Errorf("the fix of second %d is %v, want %v", seconds, r.Outcomes, want)
		}
		return asKnown, read, r
	}
	expect := func(what string, asKnown, read, wantKnown, wantRead bool) {
		t.Helper()
		if asKnown != wantKnown || read != wantRead {
			t.Errorf("%s: written as known %v, read %v; want %v, %v", what, asKnown, read, wantKnown, wantRead)
		}
	}
	change := func(f func(d *tracking.Driver)) {
		t.Helper()
		d, err := other.Driver(t.Context(), app, id)
		if err != nil {
			t.Fatal(err)
		}
		f(&d)
		if _, err := other.Commit(t.Context(), app, &tracking.Changeset{Drivers: []tracking.Driver{d}}); err != nil {
			t.Fatal(err)
		}
	}

	known, read, _ := record(1, tracking.FixLive)
	expect("the first fix", known, read, false, true)
	for n := range 3 {
		known, read, _ = record(2+n, tracking.FixLive)
		expect("the next", known, read, true, false)
	}
	known, read, _ = record(4, tracking.FixDuplicate)
	expect("one that is there", known, read, false, true)

	change(func(d *tracking.Driver) { d.Name = "Asha" })
	known, read, r := record(10, tracking.FixLive)
	expect("after a change elsewhere", known, read, true, true)
	if r.Driver.Name != "Asha" {
		t.Errorf("after a change elsewhere the driver is called %q", r.Driver.Name)
	}
	if _, err := other.RecordFixes(t.Context(), app, at(id, 20)); err != nil {
		t.Fatal(err)
	}
	known, read, _ = record(15, tracking.FixLate)
	expect("when another process has got the last fixes", known, read, false, true)
	known, read, _ = record(30, tracking.FixLive)
	expect("the next, when nobody knows whether it goes on so", known, read, false, true)
	known, read, _ = record(31, tracking.FixLive)
	expect("when nobody else has written", known, read, true, false)

	change(func(d *tracking.Driver) { d.Available, d.OffDutyAt = false, start.Add(32*time.Second) })
	record(40, tracking.FixOffDuty)
	change(func(d *tracking.Driver) { d.Available, d.DutyAt = true, start.Add(50*time.Second) })
	record(60, tracking.FixLive)
	record(61, tracking.FixLive)

	d, err := other.Driver(t.Context(), app, id)
	if err != nil {
		t.Fatal(err)
	}
	gone := tracking.Changeset{DeleteDrivers: []tracking.Driver{d}}
	if _, err := other.Commit(t.Context(), app, &gone); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RecordFixes(t.Context(), app, at(id, 62)); !errors.Is(err, tracking.ErrNotFound) {
		t.Errorf("a fix of a driver who is gone: %v", err)
	}
	again := someDrivers(1)
	again[0].Person = "another"
	if _, err := other.Commit(t.Context(), app, &tracking.Changeset{Drivers: again}); err != nil {
		t.Fatal(err)
	}
	if _, _, r := record(3, tracking.FixLive); r.Driver.Person != "another" {
		t.Errorf("the fix is of %q", r.Driver.Person)
	}
	kept, err := s.KeptFixes(t.Context(), app, id, tracking.FixRange{Limit: 100})
	if err != nil || len(kept) != 1 {
		t.Errorf("the new driver has %d fixes, %v", len(kept), err)
	}
}

// A driver who is known, and whom somebody else holds for longer than a group waits, is waited for.
func TestKnownAndHeld(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s := open(t, url, nil)
	defer s.Close()
	if _, err := s.Commit(t.Context(), app, &tracking.Changeset{Drivers: someDrivers(1)}); err != nil {
		t.Fatal(err)
	}
	const id = tracking.DriverID("driver-0")
	for second := range 3 {
		if _, err := s.RecordFixes(t.Context(), app, at(id, second)); err != nil {
			t.Fatal(err)
		}
	}
	holder := connect(t, url)
	execute(t, holder, "BEGIN")
	execute(t, holder, "SELECT 1 FROM tracking.positions FOR UPDATE")
	recorded := make(chan error, 1)
	go func() {
		_, err := s.RecordFixes(t.Context(), app, at(id, 3))
		recorded <- err
	}()
	waitFor(t, func() bool {
		stats, err := s.Stats(t.Context(), start)
		return err != nil || stats.Queue > 0 || len(recorded) > 0
	})
	execute(t, holder, "COMMIT")
	if err := <-recorded; err != nil {
		t.Errorf("a fix for a driver who was held: %v", err)
	}
}

// Fixes that come to two processes at once, in any order, are kept as when each comes alone.
func TestKnownInTwoStores(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	stores := []*postgres.Store{open(t, url, nil), open(t, url, nil)}
	for _, s := range stores {
		defer s.Close()
	}
	const drivers, fixes = 6, 150
	var cs tracking.Changeset
	for _, prefix := range []string{"both", "alone"} {
		for g := range drivers {
			id := tracking.DriverID(fmt.Sprint(prefix, g))
			cs.Drivers = append(cs.Drivers, tracking.Driver{ID: id, Available: true, CreatedAt: start})
		}
	}
	if _, err := stores[0].Commit(t.Context(), app, &cs); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range drivers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(7, uint64(g)))
			var two sync.WaitGroup
			for second := 0; second < fixes; {
				// Some for one store, then some for the other one, which does not wait for the end of these.
				n := min(1+r.IntN(5), fixes-second)
				s, first := stores[r.IntN(2)], second
				two.Wait()
				two.Go(func() {
					for i := first; i < first+n; i++ {
						b := at(tracking.DriverID(fmt.Sprint("both", g)), i)
						if i%3 == 0 && i+1 < first+n {
							b = at(b.DriverID, i, i+1)
							i++
						}
						if _, err := s.RecordFixes(t.Context(), app, b); err != nil {
							t.Error(err)
						}
					}
				})
				if r.IntN(2) == 0 {
					two.Wait()
				}
				second += n
			}
			two.Wait()
			for second := range fixes {
				if _, err := stores[0].RecordFixes(t.Context(), app, at(tracking.DriverID(fmt.Sprint("alone", g)), second)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for g := range drivers {
		read := func(prefix string) []tracking.KeptFix {
			list, err := stores[1].KeptFixes(t.Context(), app, tracking.DriverID(fmt.Sprint(prefix, g)),
				tracking.FixRange{Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		both, alone := read("both"), read("alone")
		if len(both) != fixes || len(alone) != fixes {
			t.Fatalf("driver %d has %d and %d fixes, want %d", g, len(both), len(alone), fixes)
		}
		for i := range both {
			if both[i] != alone[i] {
				t.Fatalf("driver %d, fix %d: %+v in two stores, %+v alone", g, i, both[i], alone[i])
			}
		}
	}
}

// Drivers who are known are written by one plan, be they few or many: from one to the next, by their
// keys.
func TestPlanOfKnown(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s, _, l := lone(t, url)
	if _, err := s.Commit(t.Context(), app, &tracking.Changeset{Drivers: someDrivers(3)}); err != nil {
		t.Fatal(err)
	}
	c := connect(t, url)
	seconds := 0
	look := func(size string, fixes int) {
		t.Helper()
		size = fmt.Sprint(size, ", fixes at once: ", fixes)
		seconds++
		if _, err := s.RecordFixes(t.Context(), app, at("driver-1", seconds)); err != nil {
			t.Fatal(err)
		}
		b := at("driver-1")
		for range fixes {
			seconds++
			next := at("driver-1", seconds)
			b.SeenAt, b.Fixes = next.SeenAt, append(b.Fixes, next.Fixes...)
		}
		execute(t, c, "BEGIN")
		defer execute(t, c, "ROLLBACK")
		seen := false
		for _, q := range l.of(t, func() error {
			_, err := s.RecordFixes(t.Context(), app, b)
			return err
		}) {
			if strings.Contains(q.SQL, "enable_hashjoin") {
				execute(t, c, q.SQL)
			}
			if !strings.Contains(q.SQL, "p.stamp = u.stamp") {
				continue
			}
			seen = true
			plan := strings.Join(explain(t, c, q.SQL, q.Args...), "\n\t")
			u, p := strings.Index(plan, "Subquery Scan on u"), strings.Index(plan, "using positions_pkey on positions p")
			if u < 0 || p < u || strings.Contains(plan, "Seq Scan") || !strings.Contains(plan, "Nested Loop") {
				t.Errorf("with %s:\n\t%s", size, plan)
			}
		}
		if !seen {
			t.Errorf("with %s: the driver is not known", size)
		}
	}
	both := func(size string) {
		t.Helper()
		look(size, 1)
		look(size, 2)
	}
	both("three drivers")
	execute(t, c, fillDrivers, 3000)
	ids, cells, lng, lat := postgres.Places(3000)
	execute(t, c, fillPositions, ids, cells, lng, lat)
	both("three thousand that the server does not know of")
	execute(t, c, "ANALYZE")
	both("three thousand")
}

// Whatever a batch changes of a driver who is known, another process reads him as he was told to be.
func TestKnownDriversAreWritten(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s, other := open(t, url, nil), open(t, url, nil)
	defer s.Close()
	defer other.Close()
	const drivers = 3
	cs := tracking.Changeset{Drivers: someDrivers(drivers)}
	for i := range cs.Drivers {
		cs.Drivers[i].Properties = map[string]string{"a": "b"}
	}
	if _, err := s.Commit(t.Context(), app, &cs); err != nil {
		t.Fatal(err)
	}
	changes := []func(b *tracking.FixBatch){
		func(b *tracking.FixBatch) {},
		func(b *tracking.FixBatch) { b.Skew = tracking.Known(2) },
		func(b *tracking.FixBatch) { b.Unread = 3 },
		func(b *tracking.FixBatch) { b.Fixes[0].Trusted = true },
		func(b *tracking.FixBatch) { b.Fixes = append(b.Fixes, at("", 1000).Fixes...) },
		func(b *tracking.FixBatch) { b.Fixes[0].Time = b.Fixes[0].Time.Add(-10 * time.Minute) },
		func(b *tracking.FixBatch) { b.Fixes[0].LngLat.Lng += 20 },
		func(b *tracking.FixBatch) { b.Fixes[0].EventID, b.Fixes[0].Battery = "e", tracking.Known(0.5) },
		func(b *tracking.FixBatch) { b.Fixes = nil },
		func(b *tracking.FixBatch) { b.Latest = b.SeenAt.Add(-5 * time.Second) },
	}
	r := rand.New(rand.NewPCG(5, 6))
	for round := range 60 {
		var wg sync.WaitGroup
		for g := range drivers {
			b := at(someDrivers(drivers)[g].ID, 2000+20*round)
			b.Fixes[0].LngLat.Lng = 11 + float64(round)/1e4
			changes[r.IntN(len(changes))](&b)
			wg.Go(func() {
				told, err := s.RecordFixes(t.Context(), app, b)
				if err != nil {
					t.Error(err)
					return
				}
				read, err := other.Driver(t.Context(), app, b.DriverID)
				if err != nil || !reflect.DeepEqual(told.Driver, read) {
					t.Errorf("round %d, %+v: told %+v, read %+v, %v", round, b, told.Driver, read, err)
				}
				told.Driver.Properties["a"] = "what the caller does with the answer is not known to the store"
			})
		}
		wg.Wait()
	}
}
