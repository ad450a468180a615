package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
)

// connect opens a connection beside the store's.
func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

func execute(t testing.TB, c *pgx.Conn, sql string, args ...any) {
	t.Helper()
	if _, err := c.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// A driver whom somebody else's transaction holds keeps nobody waiting but those who record for
// him.
func TestHeldDriver(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s := open(t, url, nil)
	defer s.Close()
	const drivers, rounds = 64, 4
	cs := tracking.Changeset{Drivers: someDrivers(drivers)}
	if _, err := s.Commit(t.Context(), app, &cs); err != nil {
		t.Fatal(err)
	}
	c := connect(t, url)
	execute(t, c, "BEGIN")
	execute(t, c, "SELECT 1 FROM tracking.positions WHERE id IN ('driver-0', 'driver-7') FOR UPDATE")

	var held, others sync.WaitGroup
	var mu sync.Mutex
	late := 0
	for round := range rounds {
		for g := range drivers {
			wg := &others
			if g == 0 || g == 7 {
				wg = &held
			}
			wg.Go(func() {
				_, err := s.RecordFixes(t.Context(), app, drive(g, 2, start.Add(time.Duration(round)*time.Minute)))
				if err != nil {
					t.Errorf("driver %d: %v", g, err)
				}
				if wg == &held {
					mu.Lock()
					late++
					mu.Unlock()
				}
			})
		}
		others.Wait() // for ever, if they waited for those held
	}
	mu.Lock()
	if late > 0 {
		t.Errorf("%d calls were answered for drivers who are held", late)
	}
	mu.Unlock()
	execute(t, c, "COMMIT")
	held.Wait()
	for _, id := range []tracking.DriverID{"driver-0", "driver-1", "driver-7"} {
		n := 0
		for _, err := range s.Fixes(t.Context(), app, id, tracking.FixRange{}) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if n != 2*rounds {
			t.Errorf("%s has %d fixes, want %d", id, n, 2*rounds)
		}
	}
}

// A call that waits for a driver who is held ends with its context, and one that may wait no longer
// with ErrUnavailable.
func TestHeldTooLong(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s := open(t, url, nil)
	defer s.Close()
	cs := tracking.Changeset{Drivers: someDrivers(1)}
	if _, err := s.Commit(t.Context(), app, &cs); err != nil {
		t.Fatal(err)
	}
	c := connect(t, url)
	execute(t, c, "BEGIN")
	execute(t, c, "SELECT 1 FROM tracking.positions FOR UPDATE")
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := s.RecordFixes(ctx, app, drive(0, 1, start)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's error", err)
	}
	execute(t, c, "ROLLBACK")
	if _, err := s.RecordFixes(t.Context(), app, drive(0, 1, start)); err != nil {
		t.Errorf("once the driver is free: %v", err)
	}
}

// What the server refuses of one call fails that one, and not the others of its group.
func TestRefusedCall(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s := open(t, url, nil)
	defer s.Close()
	const drivers = 48
	cs := tracking.Changeset{Drivers: someDrivers(drivers)}
	if _, err := s.Commit(t.Context(), app, &cs); err != nil {
		t.Fatal(err)
	}
	execute(t, connect(t, url), "ALTER TABLE tracking.fixes ADD CHECK (event_id <> 'refused')")
	var wg sync.WaitGroup
	errs := make([]error, drivers)
	for g := range drivers {
		wg.Go(func() {
			b := drive(g, 3, start)
			if g == 5 {
				b.Fixes[1].EventID = "refused"
			}
			_, errs[g] = s.RecordFixes(t.Context(), app, b)
		})
	}
	wg.Wait()
	for g, err := range errs {
		if (g == 5) != errors.Is(err, tracking.ErrInternal) || g != 5 && err != nil {
			t.Errorf("driver %d: %v", g, err)
		}
	}
	d, err := s.Driver(t.Context(), app, "driver-5")
	if err != nil {
		t.Fatal(err)
	}
	if d.Position.Located() {
		t.Errorf("a refused batch has moved its driver to %v", d.Position.Fix.LngLat)
	}
}

// Late batches of many drivers at once come out as when each comes alone.
func TestLateInGroups(t *testing.T) {
	t.Parallel()
	s := open(t, template.Database(t), nil)
	defer s.Close()
	const drivers, batches, size = 24, 10, 30
	cs := tracking.Changeset{}
	for _, prefix := range []string{"grouped", "alone"} {
		for g := range drivers {
			cs.Drivers = append(cs.Drivers, tracking.Driver{
				ID: tracking.DriverID(fmt.Sprintf("%s-%d", prefix, g)), Available: true, CreatedAt: start,
			})
		}
	}
	if _, err := s.Commit(t.Context(), app, &cs); err != nil {
		t.Fatal(err)
	}
	// Of each driver's fixes every batch has each batches-th, some of them far away: a batch lies
	// among those of all before.
	batch := func(prefix string, g, n int) tracking.FixBatch {
		driver := tracking.DriverID(fmt.Sprintf("%s-%d", prefix, g))
		b := tracking.FixBatch{DriverID: driver, SeenAt: start.Add(time.Hour)}
		for i := range size {
			k := i*batches + n
			at := tracking.LngLat{Lng: 11 + float64(k)/1e4, Lat: 48}
			if (k+g)%17 < 2 {
				at.Lat += float64(k%5) + 1
			}
			b.Fixes = append(b.Fixes, tracking.Fix{LngLat: at, Time: start.Add(time.Duration(k) * 5 * time.Second)})
		}
		return b
	}
	for n := range batches {
		for g := range drivers {
			if _, err := s.RecordFixes(t.Context(), app, batch("alone", g, (n*7+g)%batches)); err != nil {
				t.Fatal(err)
			}
		}
	}
	var wg sync.WaitGroup
	for n := range batches { // all at once, also those of one driver
		for g := range drivers {
			wg.Go(func() {
				if _, err := s.RecordFixes(t.Context(), app, batch("grouped", g, n)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	for g := range drivers {
		read := func(prefix string) []tracking.KeptFix {
			list, err := s.KeptFixes(t.Context(), app, tracking.DriverID(fmt.Sprintf("%s-%d", prefix, g)),
				tracking.FixRange{Limit: 1000})
			if err != nil {
				t.Fatal(err)
			}
			return list
		}
		grouped, alone := read("grouped"), read("alone")
		if len(grouped) != batches*size || len(alone) != len(grouped) {
			t.Fatalf("driver %d has %d and %d fixes, want %d", g, len(grouped), len(alone), batches*size)
		}
		for i := range grouped {
			if grouped[i] != alone[i] {
				t.Fatalf("driver %d, fix %d: %+v in groups, %+v alone", g, i, grouped[i], alone[i])
			}
		}
	}
}

// What only some fixes of a group have is kept with these and no others, be it the first, the last or
// none; so it is for positions.
func TestReadingsOfSome(t *testing.T) {
	t.Parallel()
	s := open(t, template.Database(t), nil)
	defer s.Close()
	const fixes = 3
	const id = tracking.DriverID("driver-0")
	if _, err := s.Commit(t.Context(), app, &tracking.Changeset{Drivers: someDrivers(1)}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for some := range 1 << fixes { // which have them
		for try := range 2 { // read before, and known
			b := tracking.FixBatch{DriverID: id}
			for i := range fixes {
				n++
				f := tracking.Fix{
					LngLat: tracking.LngLat{Lng: 11 + float64(n)/1e4, Lat: 48}, Time: start.Add(time.Duration(n) * time.Second),
				}
				if some&(1<<i) != 0 {
					f.EventID, f.Accuracy, f.Speed = fmt.Sprint("event ", n), tracking.Known(5), tracking.Known(float64(n))
					f.Bearing, f.Battery = tracking.Known(float64(n)/10), tracking.Known(0.5)
				}
				b.Fixes = append(b.Fixes, f)
			}
			b.SeenAt = b.Fixes[fixes-1].Time
			if _, err := s.RecordFixes(t.Context(), app, b); err != nil {
				t.Fatalf("%03b, try %d: %v", some, try, err)
			}
			kept, err := s.KeptFixes(t.Context(), app, id, tracking.FixRange{Newest: true, Limit: fixes})
			if err != nil || len(kept) != fixes {
				t.Fatalf("%03b, try %d: %d fixes, %v", some, try, len(kept), err)
			}
			for i, want := range b.Fixes {
				if got := kept[fixes-1-i].Fix; got != want {
					t.Errorf("%03b, try %d, fix %d is %+v, want %+v", some, try, i, got, want)
				}
			}
			d, err := s.Driver(t.Context(), app, id)
			if err != nil || d.Position.Fix != b.Fixes[fixes-1] {
				t.Errorf("%03b, try %d: the position is %+v, %v", some, try, d.Position.Fix, err)
			}
		}
	}
}
