package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
	"github.com/seed-8aba7b13/tracking/store/storetest"
)

const app = tracking.DefaultApp

var start = time.Date(2024, 3, 10, 8, 0, 0, 0, time.UTC)

// spread runs work n times from that many goroutines.
func spread(goroutines, n int, work func(g int)) {
	var left atomic.Int64
	left.Store(int64(n))
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				work(g)
			}
		})
	}
	wg.Wait()
}

// someDrivers are so many on duty.
func someDrivers(n int) (list []tracking.Driver) {
	for i := range n {
		list = append(list, tracking.Driver{
			ID: tracking.DriverID(fmt.Sprintf("driver-%d", i)), Available: true, CreatedAt: start,
		})
	}
	return list
}

// drive is a driver's next batch of n fixes, up a street and down again.
func drive(g, n int, from time.Time) tracking.FixBatch {
	b := tracking.FixBatch{
		DriverID: tracking.DriverID(fmt.Sprintf("driver-%d", g)), SeenAt: from.Add(time.Duration(n) * time.Second),
	}
	for i := range n {
		at := from.Add(time.Duration(i+1) * time.Second)
		way := at.Unix() % 2000
		b.Fixes = append(b.Fixes, tracking.Fix{
			LngLat: tracking.LngLat{Lng: 80.27 + float64(g)/1e4, Lat: 13.08 + float64(min(way, 2000-way))/1e5}, Time: at,
			Accuracy: tracking.Known(5), Speed: tracking.Known(8.3),
		})
	}
	return b
}

// beside does the same by turns with the store and with bare statements, each n times from so many
// callers, and reports what either does a second, and the ratio.
func beside(b *testing.B, callers, n int, what string, store, raw func(g int) error) {
	var took [2]time.Duration
	turns := 0
	for b.Loop() {
		for i, do := range []func(int) error{store, raw} {
			began := time.Now()
			spread(callers, n, func(g int) {
				if err := do(g); err != nil {
					b.Error(err)
				}
			})
			took[i] += time.Since(began)
		}
		turns++
	}
	done := float64(turns * n)
	b.ReportMetric(done/took[0].Seconds(), what+"/s")
	b.ReportMetric(done/took[1].Seconds(), "raw-"+what+"/s")
	b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "of-raw")
	b.ReportMetric(0, "ns/op")
}

// each is a turn's length for so many callers.
func each(callers int) int { return min(max(64, 8*callers), 1000) }

// BenchmarkFixes records batches by so many callers at once, each for a driver of his own, with the
// store and with bare inserts that are grouped in the same way.
func BenchmarkFixes(b *testing.B) {
	for _, callers := range []int{1, 64, 1000} {
		for _, batch := range []int{1, 10, 100} {
			b.Run(fmt.Sprintf("callers=%d/batch=%d", callers, batch), func(b *testing.B) {
				url := template.Database(b)
				manyDrivers(b, url, 2000)
				s := open(b, url, nil)
				defer s.Close()
				raw := newRaw(b, insertFixes)
				times, rawTimes := make([]time.Time, callers), make([]time.Time, callers)
				for g := range callers {
					times[g], rawTimes[g] = start, start
				}
				store := func(g int) error {
					f := drive(g, batch, times[g])
					times[g] = f.SeenAt
					_, err := s.RecordFixes(b.Context(), app, f)
					return err
				}
				for g := range callers { // then each is known, as nearly all are in the long run
					if err := store(g); err != nil {
						b.Fatal(err)
					}
				}
				beside(b, callers, each(callers), "calls", store, func(g int) error {
					f := drive(g, batch, rawTimes[g])
					rawTimes[g] = f.SeenAt
					return raw.do(f)
				})
			})
		}
	}
}

// manyDrivers puts so many drivers into a database, and tells the server of them.
func manyDrivers(b *testing.B, url string, n int) {
	s := open(b, url, nil)
	defer s.Close()
	cs := tracking.Changeset{Drivers: someDrivers(n)}
	if _, err := s.Commit(b.Context(), app, &cs); err != nil {
		b.Fatal(err)
	}
	execute(b, connect(b, url), "ANALYZE tracking.drivers, tracking.positions")
}

// raw is the least that durable grouped statements cost: as many groups at once and as many calls in one
// as the store has, of the same rows on the same disk. There is no lock, no rule, no position, no event
// and no place in the list.
type raw[T any] struct {
	pool   *pgxpool.Pool
	commit func(pool *pgxpool.Pool, list []T) error

	mu     sync.Mutex
	line   []rawCall[T]
	groups int
}

type rawCall[T any] struct {
	value T
	done  chan error
}

func newRaw[T any](b *testing.B, commit func(pool *pgxpool.Pool, list []T) error) *raw[T] {
	pool, err := pgxpool.New(b.Context(), template.Database(b))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	return &raw[T]{pool: pool, commit: commit}
}

func (r *raw[T]) do(v T) error {
	c := rawCall[T]{v, make(chan error, 1)}
	r.mu.Lock()
	r.line = append(r.line, c)
	if r.groups < 2 {
		r.groups++
		go r.run()
	}
	r.mu.Unlock()
	return <-c.done
}

func (r *raw[T]) run() {
	for {
		r.mu.Lock()
		list := r.line[:min(len(r.line), 256)]
		r.line = append([]rawCall[T](nil), r.line[len(list):]...)
		if len(list) == 0 {
			r.groups--
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
		values := make([]T, len(list))
		for i, c := range list {
			values[i] = c.value
		}
		err := r.commit(r.pool, values)
		for _, c := range list {
			c.done <- err
		}
		runtime.Gosched() // as the store does
	}
}

func insertFixes(pool *pgxpool.Pool, list []tracking.FixBatch) error {
	var drivers []string
	var times []int64
	var lng, lat, accuracy, speed []float64
	for _, b := range list {
		for _, f := range b.Fixes {
			drivers, times = append(drivers, string(b.DriverID[len("driver-"):])), append(times, f.Time.UnixMilli())
			lng, lat = append(lng, f.LngLat.Lng), append(lat, f.LngLat.Lat)
			accuracy, speed = append(accuracy, f.Accuracy.Value), append(speed, f.Speed.Value)
		}
	}
	_, err := pool.Exec(context.Background(), `
INSERT INTO tracking.fixes (app, driver, time, mark, trusted, lng, lat, accuracy, speed)
SELECT 1, driver::bigint, time, 1, false, lng, lat, accuracy, speed
FROM unnest($1::text[], $2::bigint[], $3::float8[], $4::float8[], $5::float8[], $6::float8[])
	u (driver, time, lng, lat, accuracy, speed)`, drivers, times, lng, lat, accuracy, speed)
	return err
}

func BenchmarkLate(b *testing.B) {
	storetest.BenchmarkLate(b, func(t testing.TB) tracking.Store { return open(t, template.Database(t), nil) })
}

// large is how many rows the benchmarks of lists go by.
func large() int {
	if os.Getenv("TRACKING_LONG") == "1" {
		return 1_000_000
	}
	return 20_000
}

// filled is a store with so many drivers, tasks and trips, and a pool beside it.
func filled(b *testing.B, n int) (*postgres.Store, *pgxpool.Pool) {
	url := template.Database(b)
	s := open(b, url, nil)
	b.Cleanup(func() { s.Close() })
	if _, err := s.Commit(b.Context(), app, &tracking.Changeset{Drivers: someDrivers(1)}); err != nil {
		b.Fatal(err)
	}
	fill(b, url, n)
	pool, err := pgxpool.New(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	return s, pool
}

// BenchmarkCrowd asks for the nearest where 10,000 drivers stand on one spot, or within a stone's
// throw of it, beside a count of their rows by the server.
func BenchmarkCrowd(b *testing.B) {
	s, pool := filled(b, 20_000)
	spot := tracking.LngLat{Lng: 80.2707, Lat: 13.0827}
	for name, apart := range map[string]float64{"on one spot": 0, "within 100 m": 0.0009} {
		b.Run(name, func(b *testing.B) {
			if _, err := pool.Exec(b.Context(), `
UPDATE tracking.positions SET class = 2, cell = $1, fix_lng = $2::float8 + $4 * random(), fix_lat = $3::float8 + $4 * random()
WHERE driver <= 10000`, postgres.CellOf(spot), spot.Lng, spot.Lat, apart); err != nil {
				b.Fatal(err)
			}
			if _, err := pool.Exec(b.Context(), `VACUUM ANALYZE tracking.positions`); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			beside(b, 1, 20, "calls", func(int) error {
				list, err := s.Offers(b.Context(), app, tracking.Offer{At: spot, MaxOpen: 1, Limit: 1})
				if err == nil && len(list) == 0 {
					err = errors.New("nobody is on offer")
				}
				return err
			}, func(int) error {
				return drain(b.Context(), pool, `
SELECT count(fix_lng) FROM tracking.positions WHERE app = 1 AND class = 2 AND cell = $1`, postgres.CellOf(spot))
			})
		})
	}
}

// drain sends a query and lets its rows pass by.
func drain(ctx context.Context, pool *pgxpool.Pool, sql string, args ...any) error {
	rows, err := pool.Query(ctx, sql, args...)
	if err != nil {
		return err
	}
	rows.Close()
	return rows.Err()
}

// BenchmarkMany reads where there are many drivers and tasks.
func BenchmarkMany(b *testing.B) {
	s, pool := filled(b, large())
	b.Run("near", func(b *testing.B) { benchmarkNear(b, s, pool) })
	b.Run("pages", func(b *testing.B) { benchmarkPages(b, s, pool) })
	b.Run("matches", func(b *testing.B) { benchmarkMatches(b, s, pool) }) // leaves most drivers off duty
}

// benchmarkNear asks for the nearest among many drivers, beside the nearest points of an index of
// PostgreSQL's own, which go by degrees on a plane, and are no drivers yet.
func benchmarkNear(b *testing.B, s *postgres.Store, pool *pgxpool.Pool) {
	if _, err := pool.Exec(b.Context(), `
CREATE INDEX raw ON tracking.positions USING gist (point(fix_lng, fix_lat)) WHERE class BETWEEN 2 AND 10`); err != nil {
		b.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	somewhere := func() tracking.LngLat { return tracking.LngLat{Lng: 80 + r.Float64(), Lat: 12.5 + r.Float64()} }
	raw := func(limit int) func(int) error {
		return func(int) error {
			at := somewhere()
			return drain(b.Context(), pool, `
SELECT driver, fix_lng, fix_lat FROM tracking.positions WHERE class BETWEEN 2 AND 10
ORDER BY point(fix_lng, fix_lat) <-> point($1::float8, $2::float8) LIMIT $3`, at.Lng, at.Lat, limit)
		}
	}
	b.Run("offers", func(b *testing.B) {
		beside(b, 1, 50, "calls", func(int) error {
			list, err := s.Offers(b.Context(), app, tracking.Offer{At: somewhere(), MaxOpen: 1, Limit: 1})
			if err == nil && len(list) == 0 {
				err = errors.New("nobody is on offer")
			}
			return err
		}, raw(1))
	})
	b.Run("drivers", func(b *testing.B) {
		beside(b, 1, 50, "calls", func(int) error {
			_, _, err := s.Drivers(b.Context(), app, tracking.DriverFilter{
				Page: tracking.Page{Limit: 20}, Near: new(somewhere()),
			})
			return err
		}, raw(20))
	})
	b.Run("of a rare property", func(b *testing.B) {
		beside(b, 1, 50, "calls", func(int) error {
			_, err := s.Offers(b.Context(), app, tracking.Offer{
				At: somewhere(), MaxOpen: -1, Limit: 1, Requires: map[string]string{"crane": "yes"},
			})
			return err
		}, raw(1))
	})
}

// benchmarkPages reads pages of many tasks, beside the same rows read without a look at them; those
// that are found by words beside a driver's page.
func benchmarkPages(b *testing.B, s *postgres.Store, pool *pgxpool.Pool) {
	page := func(f tracking.TaskFilter) func(int) error {
		f.Limit = 20
		return func(int) error {
			_, _, err := s.Tasks(b.Context(), app, f)
			return err
		}
	}
	raw := func(where, order string, args ...any) func(int) error {
		return func(int) error {
			return drain(b.Context(), pool, `
SELECT * FROM tracking.tasks WHERE app = 1 AND `+where+` ORDER BY `+order+` LIMIT 21`, args...)
		}
	}
	const newest = "created_at DESC, seq DESC"
	middle := &tracking.TaskMark{CreatedAt: start.Add(time.Duration(large()/2) * time.Second), Seq: 1 << 40}
	assigned := []tracking.TaskStatus{tracking.StatusAssigned}
	ofDriver := page(tracking.TaskFilter{DriverID: "d7"})
	for _, c := range []struct {
		name       string
		store, raw func(int) error
	}{
		{"first", page(tracking.TaskFilter{}), raw("true", newest)},
		{"in the middle", page(tracking.TaskFilter{After: middle}),
			raw("(created_at, seq) < ($1, $2)", newest, middle.CreatedAt.UnixMilli(), middle.Seq)},
		{"of a driver and a status", page(tracking.TaskFilter{DriverID: "d7", Status: assigned}),
			raw("driver_id = 'd7' AND driver_id <> '' AND status = 'assigned'", newest)},
		{"by window", page(tracking.TaskFilter{Sort: tracking.SortWindow}), raw("true", "window_at, created_at, seq")},
		{"by a rare word beside a driver's", page(tracking.TaskFilter{Query: "zepp"}), ofDriver},
		{"by a common word beside a driver's", page(tracking.TaskFilter{Query: "common"}), ofDriver},
		{"by one word of a thousand beside a driver's", page(tracking.TaskFilter{Query: "lane77"}), ofDriver},
	} {
		b.Run(c.name, func(b *testing.B) { beside(b, 1, 50, "calls", c.store, c.raw) })
	}
}

// benchmarkMatches looks for waiting tasks that somebody could get where all drivers on offer are too
// far away, beside a read of these drivers.
func benchmarkMatches(b *testing.B, s *postgres.Store, pool *pgxpool.Pool) {
	if _, err := pool.Exec(b.Context(), `UPDATE tracking.positions SET class = 0 WHERE driver > 400`); err != nil {
		b.Fatal(err)
	}
	far := tracking.LngLat{Lng: 11, Lat: 48}
	if _, err := pool.Exec(b.Context(), `UPDATE tracking.positions SET class = 2, fix_lng = $1, fix_lat = $2, cell = $3
WHERE driver <= 400`, far.Lng, far.Lat, postgres.CellOf(far)); err != nil {
		b.Fatal(err)
	}
	if _, err := pool.Exec(b.Context(), `VACUUM ANALYZE tracking.positions`); err != nil { // all of them have changed
		b.Fatal(err)
	}
	beside(b, 1, 20, "calls", func(int) error {
		list, err := s.Matches(b.Context(), app, tracking.MatchQuery{MaxOpen: 1, Within: 10_000, Limit: 16})
		if err == nil && len(list) > 0 {
			err = errors.New("somebody is near")
		}
		return err
	}, func(int) error {
		return drain(b.Context(), pool, `
SELECT id, cell, fix_lng, fix_lat FROM tracking.positions WHERE app = 1 AND class = 2 AND cell IS NOT NULL`)
	})
}

// BenchmarkHeard is from a commit to when another process has heard of it, beside a bare NOTIFY.
func BenchmarkHeard(b *testing.B) {
	url := template.Database(b)
	s, other := open(b, url, nil), open(b, url, nil)
	defer s.Close()
	defer other.Close()
	heard := make(chan string, 16)
	ctx, cancel := context.WithCancel(b.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	wg.Go(func() {
		_ = other.Watch(ctx, func(_ tracking.AppID, subject tracking.Subject) { heard <- subject.ID })
	})
	<-heard // it listens
	listens, tells := connect(b, url), connect(b, url)
	execute(b, listens, "LISTEN raw")
	var took [2][]time.Duration
	n := 0
	for b.Loop() {
		for range 50 {
			n++
			id := fmt.Sprint("t", n)
			if _, err := s.Commit(b.Context(), app, newTask(id)); err != nil {
				b.Fatal(err)
			}
			began := time.Now()
			for <-heard != id {
			}
			took[0] = append(took[0], time.Since(began))
			began = time.Now()
			execute(b, tells, "NOTIFY raw")
			if _, err := listens.WaitForNotification(b.Context()); err != nil {
				b.Fatal(err)
			}
			took[1] = append(took[1], time.Since(began))
		}
	}
	p99 := func(list []time.Duration) float64 {
		slices.Sort(list)
		return list[len(list)*99/100].Seconds() * 1000
	}
	b.ReportMetric(p99(took[0]), "p99-ms")
	b.ReportMetric(p99(took[1]), "raw-p99-ms")
	b.ReportMetric(p99(took[0])/p99(took[1]), "of-raw")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkTwoServers makes tasks in two stores of one database, beside as many callers of one.
func BenchmarkTwoServers(b *testing.B) {
	const callers = 64
	url := template.Database(b)
	var stores [2]*postgres.Store
	for i := range stores {
		stores[i] = open(b, url, nil)
		defer stores[i].Close()
	}
	var last atomic.Int64
	create := func(s *postgres.Store) error {
		_, err := s.Commit(b.Context(), app, newTask(fmt.Sprint("t", last.Add(1))))
		return err
	}
	beside(b, callers, each(callers), "creates",
		func(g int) error { return create(stores[g%2]) }, func(int) error { return create(stores[0]) })
}

// BenchmarkCreate commits a new task with its event for an outbox, by so many callers at once, beside
// bare inserts of such a task that are grouped in the same way.
func BenchmarkCreate(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			s := open(b, template.Database(b), nil)
			defer s.Close()
			raw := newRaw(b, insertTasks)
			var last, rawLast atomic.Int64
			beside(b, callers, each(callers), "creates", func(int) error {
				_, err := s.Commit(b.Context(), app, newTask(fmt.Sprint("t", last.Add(1))))
				return err
			}, func(int) error { return raw.do(fmt.Sprint("t", rawLast.Add(1))) })
		})
	}
}

// newTask makes a task.
func newTask(id string) *tracking.Changeset {
	return &tracking.Changeset{
		Tasks: []tracking.Task{{
			ID: tracking.TaskID(id), Type: tracking.TypeDrop, Status: tracking.StatusCreated, CreatedAt: start,
		}},
		Events: []tracking.Event{{
			ID: id, Type: tracking.EventTaskCreated, RecordedAt: start,
			Subject: tracking.Subject{Kind: tracking.KindTask, ID: id},
		}},
		Deliver: []string{""},
	}
}

// insertTasks commits a row for each, all in one transaction and one round trip.
func insertTasks(pool *pgxpool.Pool, ids []string) error {
	batch := &pgx.Batch{}
	batch.Queue("BEGIN")
	for _, id := range ids {
		batch.Queue(`
INSERT INTO tracking.tasks (app, id, version, type, status, outcome, reason, notes, order_id, driver_id, person,
	auto_assigned, waiting, link_generation, created_at)
VALUES (1, $1, 1, 2, 'created', '', '', '', '', '', '', false, false, 1, 0)`, id)
	}
	batch.Queue("COMMIT")
	return pool.SendBatch(context.Background(), batch).Close()
}
