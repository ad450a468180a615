package tracking_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// clock is the time of the million's Service, which goes on with the fixes.
type clock struct {
	start time.Time
	ahead atomic.Int64
}

func (c *clock) now() time.Time { return c.start.Add(time.Duration(c.ahead.Load())) }

const drivers = 1_000_000

// million is a Service with a million drivers in a city, one in a hundred of them on duty; built
// once.
var million = sync.OnceValues(func() (*tracking.Service, *clock) {
	store, c := memory.New(), &clock{start: time.Now().Truncate(time.Millisecond)}
	svc, err := tracking.New(store, &tracking.Options{MaxFixAge: 1000 * time.Hour, Now: c.now})
	if err != nil {
		panic(err)
	}
	now := c.now()
	for at := 0; at < drivers; at += 200 {
		cs := &tracking.Changeset{}
		for i := at; i < at+200; i++ {
			id := driverID(i)
			cs.Drivers = append(cs.Drivers, tracking.Driver{
				ID: id, Available: i%100 == 0, CreatedAt: now, UpdatedAt: now,
			})
			cs.Fixes = append(cs.Fixes, tracking.FixBatch{
				DriverID: id, SeenAt: now, Fixes: []tracking.Fix{{LngLat: home(i), Time: now, Trusted: true}},
			})
		}
		if _, err := store.Commit(context.Background(), tracking.DefaultApp, cs); err != nil {
			panic(err)
		}
	}
	return svc, c
})

// home is where a driver begins.
func home(i int) tracking.LngLat { return inCity(rand.New(rand.NewPCG(1, uint64(i)))) }

func driverID(i int) tracking.DriverID { return tracking.DriverID(fmt.Sprintf("driver-%07d", i)) }

func inCity(r *rand.Rand) tracking.LngLat {
	return tracking.LngLat{Lng: 80 + r.Float64()/2, Lat: 13 + r.Float64()/2}
}

// One fix after another of ten thousand of a million drivers, each of whom drives on a little, beside
// appending the same to a bare map of slices of as many drivers under a mutex.
func BenchmarkFix(b *testing.B) {
	const onDuty = drivers / 100
	ids, homes := make([]tracking.DriverID, onDuty), make([]tracking.LngLat, onDuty)
	for i := range ids {
		ids[i], homes[i] = driverID(i*100), home(i*100)
	}
	drive := func(b *testing.B, c *clock, record func(tracking.DriverID, tracking.Fix)) {
		r := rand.New(rand.NewPCG(3, 4))
		for b.Loop() {
			i := r.IntN(onDuty)
			homes[i].Lng += 1e-6
			at := c.start.Add(time.Duration(c.ahead.Add(int64(time.Millisecond))))
			record(ids[i], tracking.Fix{LngLat: homes[i], Time: at, Accuracy: tracking.Known(5)})
		}
	}
	svc, c := million()
	b.Run("RecordFixes", func(b *testing.B) {
		drive(b, c, func(id tracking.DriverID, f tracking.Fix) {
			if said, err := svc.RecordFixes(b.Context(), id, []tracking.Fix{f}); err != nil || said[0] != tracking.FixLive {
				b.Fatal(said, err)
			}
		})
	})
	b.Run("append to a map of slices", func(b *testing.B) {
		m := make(map[tracking.DriverID][]tracking.Fix, drivers)
		for i := range drivers {
			m[driverID(i)] = nil
		}
		var mu sync.Mutex
		drive(b, c, func(id tracking.DriverID, f tracking.Fix) {
			mu.Lock()
			m[id] = append(m[id], f)
			mu.Unlock()
		})
	})
}

// The 10 nearest of a million drivers, with their records.
func BenchmarkDriversNear(b *testing.B) {
	svc, _ := million()
	r := rand.New(rand.NewPCG(5, 6))
	for name, available := range map[string]*bool{"all": nil, "1 % on duty": new(true)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p := inCity(r)
				list, _, err := svc.Drivers(b.Context(), tracking.DriverFilter{
					Page: tracking.Page{Limit: 10}, Near: &p, Available: available,
				})
				if err != nil || len(list) != 10 {
					b.Fatal(len(list), err)
				}
			}
		})
	}
}

// BenchmarkFixerAndReader is one who records fixes and one who looks for the 10 nearest of a million
// drivers, in turn alone and both at once: what each keeps of the rate that it has alone.
func BenchmarkFixerAndReader(b *testing.B) {
	const window = 50 * time.Millisecond
	svc, c := million()
	r, q := rand.New(rand.NewPCG(9, 10)), rand.New(rand.NewPCG(11, 12))
	homes := map[int]tracking.LngLat{}
	fix := func() {
		i := r.IntN(drivers/100) * 100
		if _, ok := homes[i]; !ok {
			homes[i] = home(i)
		}
		p := homes[i]
		p.Lng += 1e-6
		homes[i] = p
		at := c.start.Add(time.Duration(c.ahead.Add(int64(time.Millisecond))))
		if _, err := svc.RecordFixes(b.Context(), driverID(i), []tracking.Fix{{LngLat: p, Time: at}}); err != nil {
			b.Error(err)
		}
	}
	read := func() {
		p := inCity(q)
		list, _, err := svc.Drivers(b.Context(), tracking.DriverFilter{Page: tracking.Page{Limit: 10}, Near: &p})
		if err != nil || len(list) != 10 {
			b.Error(len(list), err)
		}
	}
	times := func(f func()) (n float64) {
		for end := time.Now().Add(window); n == 0 || time.Now().Before(end); n++ {
			f()
		}
		return n
	}
	var fixes, reads, fixesToo, readsToo float64
	for b.Loop() {
		fixes += times(fix)
		reads += times(read)
		var both sync.WaitGroup
		both.Go(func() { fixesToo += times(fix) })
		both.Go(func() { readsToo += times(read) })
		both.Wait()
	}
	b.ReportMetric(fixesToo/fixes, "×fixer-alone")
	b.ReportMetric(readsToo/reads, "×reader-alone")
}

// A task created, given to the nearest of ten thousand drivers on duty among a million, and
// cancelled again; beside creating and cancelling alone.
func BenchmarkCreate(b *testing.B) {
	svc, _ := million()
	r := rand.New(rand.NewPCG(7, 8))
	for name, auto := range map[string]bool{"auto-assigned": true, "plain": false} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				p := inCity(r)
				t, err := svc.CreateTask(b.Context(), tracking.NewTask{
					Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: &p}, AutoAssign: auto,
				})
				if err != nil || auto != (t.DriverID != "") {
					b.Fatal(t, err)
				}
				if _, err := svc.CancelTask(b.Context(), t.ID, tracking.Reason{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFixOnTheWay is a fix of a driver who has nothing to do, who has ten stops but has started
// none, who is on a trip without a task, and who is under way to a stop, far from it and near. What
// the stop costs is the difference to the trip, which each task under way has as well.
func BenchmarkFixOnTheWay(b *testing.B) {
	for _, c := range []struct {
		name       string
		tasks      int
		under, far bool
	}{{"nothing to do", 0, false, false}, {"nothing under way", 10, false, false}, {"on a trip", 0, true, false},
		{"under way", 10, true, true}, {"under way, near", 10, true, false}} {
		b.Run(c.name, func(b *testing.B) {
			w := newWorld(b)
			w.driver("own", 0)
			drop := 700.0
			if c.far {
				drop = 20_000
			}
			for i := range c.tasks {
				id := w.give(tracking.TypeDrop, 0, drop+float64(i))
				if c.under && i == 0 {
					if err := startOwn(w, id); err != nil {
						b.Fatal(err)
					}
				}
			}
			if c.under && c.tasks == 0 {
				if _, err := w.StartTrip(w.ctx, "own", "other", tracking.Step{}); err != nil {
					b.Fatal(err)
				}
			}
			i := 0
			for b.Loop() {
				i++
				w.advance(time.Second)
				w.fix(float64(i % 100))
			}
		})
	}
}

// racing counts the commits that somebody else was faster than.
type racing struct {
	tracking.Store
	commits, lost atomic.Int64
}

func (r *racing) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	w, err := r.Store.Commit(ctx, app, cs)
	r.commits.Add(1)
	if moved := (*tracking.ConflictError)(nil); errors.As(err, &moved) {
		r.lost.Add(1)
	}
	return w, err
}

// BenchmarkCreateAtOnce is 8 goroutines that create tasks for the nearest of 100,000 drivers on duty,
// each of whom takes one: at places all over the city, there too but each cancelled at once so that its
// driver is free again, and all at one place.
func BenchmarkCreateAtOnce(b *testing.B) {
	const callers = 8
	for _, name := range []string{"spread", "freed again", "at one place"} {
		b.Run(name, func(b *testing.B) {
			store := &racing{Store: memory.New()}
			svc, err := tracking.New(store, nil)
			if err != nil {
				b.Fatal(err)
			}
			r := rand.New(rand.NewPCG(1, 2))
			now := time.Now()
			for at := 0; at < 100_000; at += 500 {
				cs := &tracking.Changeset{}
				for i := at; i < at+500; i++ {
					id := driverID(i)
					cs.Drivers = append(cs.Drivers, tracking.Driver{ID: id, Available: true, CreatedAt: now, UpdatedAt: now})
					cs.Fixes = append(cs.Fixes, tracking.FixBatch{
						DriverID: id, SeenAt: now, Fixes: []tracking.Fix{{LngLat: inCity(r), Time: now, Trusted: true}},
					})
				}
				if _, err := store.Commit(b.Context(), tracking.DefaultApp, cs); err != nil {
					b.Fatal(err)
				}
			}
			store.commits.Store(0)
			var worst [callers]time.Duration
			var working sync.WaitGroup
			b.ResetTimer()
			for g := range callers {
				working.Go(func() {
					r := rand.New(rand.NewPCG(3, uint64(g)))
					for range b.N/callers + 1 {
						p := tracking.LngLat{Lng: 80.25, Lat: 13.25}
						if name != "at one place" {
							p = inCity(r)
						}
						began := time.Now()
						t, err := svc.CreateTask(b.Context(), tracking.NewTask{
							Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: &p}, AutoAssign: true,
						})
						worst[g] = max(worst[g], time.Since(began))
						if err != nil || t.DriverID == "" {
							b.Error(t.ID, err)
							return
						}
						if name == "freed again" {
							if _, err := svc.CancelTask(b.Context(), t.ID, tracking.Reason{}); err != nil {
								b.Error(err)
								return
							}
						}
					}
				})
			}
			working.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "creates/s")
			b.ReportMetric(float64(slices.Max(worst[:]).Microseconds())/1000, "worst-ms")
			b.ReportMetric(100*float64(store.lost.Load())/float64(store.commits.Load()), "%lost")
			b.ReportMetric(0, "ns/op")
		})
	}
}
