package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// TestRehiredAreNearAllAlong deletes drivers and hires them again where they are, with one commit: they are near
// before it and behind it, and so for whoever looks meanwhile.
func TestRehiredAreNearAllAlong(t *testing.T) {
	s := open(t, filepath.Join(fastDir(t), "tracking.db"), nil)
	defer closeStore(t, s)
	const drivers = 100
	at := tracking.LngLat{Lng: 80.27, Lat: 13.08}
	hire := func(gone []tracking.Driver) {
		cs := &tracking.Changeset{DeleteDrivers: gone}
		for i := range drivers {
			id := tracking.DriverID(fmt.Sprint("driver-", i))
			cs.Drivers = append(cs.Drivers, tracking.Driver{ID: id, CreatedAt: start, Available: true})
			cs.Fixes = append(cs.Fixes, tracking.FixBatch{
				DriverID: id, SeenAt: start, Fixes: []tracking.Fix{{LngLat: at, Time: start}},
			})
		}
		if _, err := s.Commit(t.Context(), app, cs); err != nil {
			t.Fatal(err)
		}
	}
	near := func() []tracking.Driver {
		list, _, err := s.Drivers(t.Context(), app, tracking.DriverFilter{Near: &at, Page: tracking.Page{Limit: drivers}})
		if err != nil {
			t.Error(err)
		}
		return list
	}
	hire(nil)
	indexed(t, s)
	var done atomic.Bool
	var looking sync.WaitGroup
	looking.Go(func() {
		for !done.Load() {
			if list := near(); len(list) != drivers {
				t.Errorf("%d drivers are near, want %d", len(list), drivers)
				return
			}
		}
	})
	for range 20 {
		hire(near())
	}
	done.Store(true)
	looking.Wait()
}

// behindFixes has changes run behind fixes, in one transaction with them.
type behindFixes struct {
	groups
	store *sqlite.Store
	next  atomic.Pointer[[]func()]
	all   sync.WaitGroup
}

func openBehindFixes(t testing.TB) *behindFixes {
	var b behindFixes
	b.store = open(t, filepath.Join(fastDir(t), "tracking.db"), sqlite.Options{BusyTimeout: time.Minute}.WithGroups(
		func(changes string) {
			b.add(changes)
			next := b.next.Swap(nil)
			if next == nil {
				return
			}
			for n, change := range *next { // the fixes had to stand back, and have their turn before these
				b.all.Go(change)
				waitFor(t, b.store, 2+n)
			}
		}))
	return &b
}

func (b *behindFixes) run(t testing.TB, fixes func(), changes ...func()) {
	t.Helper()
	before := len(b.since(0))
	release := holdLock(t, b.store.Path())
	b.all.Go(func() { commitOne(t, b.store, "one") })
	waitFor(t, b.store, 1)
	b.all.Go(fixes)
	waitFor(t, b.store, 2)
	b.next.Store(&changes)
	release()
	b.all.Wait()
	want := fmt.Sprint([]string{"v", "s" + strings.Repeat("v", len(changes))})
	if got := fmt.Sprint(b.since(before)); got != want {
		t.Fatalf("the transactions were %s, want %s", got, want)
	}
}

func (b *behindFixes) record(t testing.TB, id tracking.DriverID, at time.Time) {
	if _, err := b.store.RecordFixes(t.Context(), app, drive(id, at, 1)); err != nil {
		t.Error(err)
	}
}

func (b *behindFixes) commit(t testing.TB, cs *tracking.Changeset, refused bool) {
	if _, err := b.store.Commit(t.Context(), app, cs); refused != (err != nil) {
		t.Errorf("the error of a commit is %v", err)
	}
}

// same holds that the store and what is opened after a kill have these fixes of a driver.
func (b *behindFixes) same(t testing.TB, id tracking.DriverID, want ...time.Time) {
	t.Helper()
	again := asKilled(t, b.store, nil)
	defer closeStore(t, again)
	for _, s := range []*sqlite.Store{b.store, again} {
		list, err := s.KeptFixes(t.Context(), app, id, tracking.FixRange{Limit: 100})
		var got []time.Time
		for _, f := range list {
			got = append(got, f.Time)
		}
		if d := cmp.Diff(want, got); d != "" || err != nil {
			t.Errorf("error %v, after a kill: %v (-want +got):\n%s", err, s == again, d)
		}
		d, err := s.Driver(t.Context(), app, id)
		if err != nil || !d.Position.Fix.Time.Equal(want[len(want)-1]) {
			t.Errorf("he is where he was at %v, error %v, after a kill: %v", d.Position.Fix.Time, err, s == again)
		}
	}
}

// TestRefusedBehindFixes has in one transaction fixes of a driver, a commit that changes him and is refused, and
// one that changes him and is not. What the fixes have made of him stands in the journal alone, and nobody else
// knows of it yet: it must be known all the same when the refused commit is undone.
func TestRefusedBehindFixes(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("late %v", late), func(t *testing.T) {
			b := openBehindFixes(t)
			defer closeStore(t, b.store)
			id := crew(t, b.store, 1)[0]
			indexed(t, b.store)
			at := []time.Time{start}
			b.record(t, id, start)
			if late {
				at = append(at, start.Add(time.Minute))
				b.record(t, id, at[1])
			}
			d, err := b.store.Driver(t.Context(), app, id)
			if err != nil {
				t.Fatal(err)
			}
			d.Name = "other"
			change := tracking.Changeset{Drivers: []tracking.Driver{d}}
			refused := change
			refused.Fixes = []tracking.FixBatch{{DriverID: "nobody"}}
			at = append(at, start.Add(time.Hour))
			b.run(t, func() { b.record(t, id, at[len(at)-1]) },
				func() { b.commit(t, &refused, true) }, func() { b.commit(t, &change, false) })
			b.same(t, id, at...)
			at = append(at, start.Add(2*time.Hour))
			b.record(t, id, at[len(at)-1])
			b.same(t, id, at...)
		})
	}
}

// TestDeletionBehindFixes deletes a driver in one transaction with the first fixes that go into the journal,
// another driver's, whose row was behind it before or was not: they are not wiped with what is left of him.
func TestDeletionBehindFixes(t *testing.T) {
	for _, swept := range []bool{false, true} {
		t.Run(fmt.Sprintf("swept %v", swept), func(t *testing.T) {
			b := openBehindFixes(t)
			defer closeStore(t, b.store)
			ids := crew(t, b.store, 2)
			indexed(t, b.store)
			at := []time.Time{start}
			b.record(t, ids[0], start)
			if swept {
				at = append(at, start.Add(time.Minute))
				b.record(t, ids[0], at[1])
				if _, err := b.store.Purge(t.Context(), tracking.Before{Limit: 1}); err != nil {
					t.Fatal(err)
				}
			}
			if late, _ := b.store.Late(); late != 0 {
				t.Fatalf("%d drivers are late before", late)
			}
			gone, err := b.store.Driver(t.Context(), app, ids[1])
			if err != nil {
				t.Fatal(err)
			}
			at = append(at, start.Add(time.Hour))
			b.run(t, func() { b.record(t, ids[0], at[len(at)-1]) },
				func() { b.commit(t, &tracking.Changeset{DeleteDrivers: []tracking.Driver{gone}}, false) })
			if late, _ := b.store.Late(); late != 0 {
				t.Errorf("%d drivers are late", late)
			}
			b.same(t, ids[0], at...)
		})
	}
}

// TestFixesBehindADeletion commits fixes of a driver whose row is late, and who is deleted before them in the
// same transaction: there is no driver any more that they could be of.
func TestFixesBehindADeletion(t *testing.T) {
	s := openCopy(t, fastDir(t))
	defer closeStore(t, s)
	id := crew(t, s, 1)[0]
	indexed(t, s)
	for n := range 2 {
		if _, err := s.RecordFixes(t.Context(), app, drive(id, start.Add(time.Duration(n)*time.Minute), 1)); err != nil {
			t.Fatal(err)
		}
	}
	d, err := s.Driver(t.Context(), app, id)
	if err != nil {
		t.Fatal(err)
	}
	if late, _ := s.Late(); late != 1 {
		t.Fatalf("%d drivers are late, want 1", late)
	}
	_, err = s.Commit(t.Context(), app, &tracking.Changeset{
		DeleteDrivers: []tracking.Driver{d}, Fixes: []tracking.FixBatch{drive(id, start.Add(time.Hour), 1)},
	})
	var conflict *tracking.ConflictError
	if !errors.As(err, &conflict) {
		t.Fatalf("got %v, want a conflict about the driver", err)
	}
	if is, err := s.Driver(t.Context(), app, id); err != nil || !is.Position.Fix.Time.Equal(d.Position.Fix.Time) {
		t.Errorf("he is where he was at %v, error %v", is.Position.Fix.Time, err)
	}
}
