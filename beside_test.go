//go:build unix

package tracking_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// BenchmarkBeside is what is done most, over the memory store, beside the bare work on maps. Both
// sides take turns; times are of the CPU, the collector's included, and a ratio is the median of the
// rounds.
func BenchmarkBeside(b *testing.B) {
	const drivers = 10_000
	ids := make([]tracking.DriverID, drivers)
	for i := range ids {
		ids[i] = driverID(i)
	}
	home := func(i int) tracking.LngLat {
		return tracking.LngLat{Lng: 80 + float64(i%100)*5e-3, Lat: 13 + float64(i/100)*5e-3}
	}
	open := func(b *testing.B, now func() time.Time) *tracking.Service {
		store := memory.New()
		svc, err := tracking.New(store, &tracking.Options{Now: now})
		if err != nil {
			b.Fatal(err)
		}
		var cs tracking.Changeset
		for i, id := range ids {
			cs.Drivers = append(cs.Drivers, tracking.Driver{
				ID: id, Available: true, MaxOpenTasks: new(1000), CreatedAt: now(), UpdatedAt: now(),
			})
			cs.Fixes = append(cs.Fixes, tracking.FixBatch{
				DriverID: id, SeenAt: now(), Fixes: []tracking.Fix{{LngLat: home(i), Time: now(), Trusted: true}},
			})
		}
		if _, err := store.Commit(b.Context(), tracking.DefaultApp, &cs); err != nil {
			b.Fatal(err)
		}
		return svc
	}

	b.Run("one fix, an append to a map of slices", func(b *testing.B) {
		at := time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)
		svc := open(b, func() time.Time { return at })
		logs := map[tracking.DriverID][]tracking.Fix{}
		var mu sync.Mutex
		const drivers = 1000 // else a driver's first fixes, which are judged by more, are most of them
		fix := func(i int) tracking.Fix {
			p := home(i % drivers)
			p.Lng += float64(i/drivers%1000) * 1e-4
			return tracking.Fix{LngLat: p, Time: at, Accuracy: tracking.Known(5), Speed: tracking.Known(8)}
		}
		beside(b, func(i int) {
			if i%drivers == 0 {
				at = at.Add(10 * time.Second)
			}
			if _, err := svc.RecordFixes(b.Context(), ids[i%drivers], []tracking.Fix{fix(i)}); err != nil {
				b.Fatal(err)
			}
		}, func(i int) {
			mu.Lock()
			id := ids[i%drivers]
			logs[id] = append(logs[id], fix(i))
			mu.Unlock()
		})
	})

	for _, auto := range []bool{false, true} {
		name := "create plain, two map writes"
		if auto {
			name = "create auto-assigned, two map writes"
		}
		b.Run(name, func(b *testing.B) {
			svc := open(b, time.Now)
			r := rand.New(rand.NewPCG(7, 8))
			tasks, events := map[tracking.TaskID]tracking.Task{}, map[string]tracking.Event{}
			var mu sync.Mutex
			beside(b, func(int) {
				p := inCity(r)
				t, err := svc.CreateTask(b.Context(), tracking.NewTask{
					Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: &p, Address: "12 Beach Road"},
					OrderID: "#1001", AutoAssign: auto,
				})
				if err != nil || auto != (t.DriverID != "") {
					b.Fatal(t, err)
				}
			}, func(i int) {
				p, now := inCity(r), time.Now()
				id := fmt.Sprintf("task-%09d", i)
				t := tracking.Task{
					ID: tracking.TaskID(id), Type: tracking.TypeDrop, Status: tracking.StatusCreated, OrderID: "#1001",
					Drop: &tracking.Place{LngLat: &p, Address: "12 Beach Road"}, CreatedAt: now, UpdatedAt: now,
				}
				e := tracking.Event{
					ID: "event-" + id, Type: tracking.EventTaskCreated, Time: now, RecordedAt: now, Actor: "system",
					Subject: tracking.Subject{Kind: tracking.KindTask, ID: id},
				}
				mu.Lock()
				tasks[t.ID], events[e.ID] = t.Clone(), e.Clone()
				mu.Unlock()
			})
		})
	}
}

// beside measures what we do beside what it could at best cost.
func beside(b *testing.B, ours, raw func(i int)) {
	const rounds = 5
	n := b.N/rounds + 1
	var each, rawEach, ratio []float64
	run := func(round int, f func(i int)) float64 {
		from := processorTime(b)
		for i := range n {
			f(round*n + i)
		}
		return float64(processorTime(b)-from) / float64(n)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for round := range rounds {
		r := run(round, raw)
		o := run(round, ours)
		each, rawEach, ratio = append(each, o), append(rawEach, r), append(ratio, o/r)
	}
	for name, list := range map[string][]float64{"ns/op": each, "ns/raw": rawEach, "×raw": ratio} {
		slices.Sort(list)
		b.ReportMetric(list[rounds/2], name)
	}
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
