package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// BenchmarkAssign measures assignment where many stand or wait, each case in two sizes: the larger
// should cost little more.
func BenchmarkAssign(b *testing.B, open func(t testing.TB) tracking.Store) {
	for _, n := range []int{20, 20_000} {
		b.Run(fmt.Sprintf("create, %d drivers in one spot", n), func(b *testing.B) {
			s := opened(b, open)
			svc := several(b, s, 1, tracking.Options{MaxOpenTasks: -1})[0]
			crowd(b, s, n, *dropHere(true).Drop.LngLat, nil)
			for b.Loop() {
				task, err := svc.CreateTask(b.Context(), dropHere(true))
				if err != nil || task.DriverID == "" {
					b.Fatal(task, err)
				}
			}
		})
	}
	for _, n := range []int{10, 10_000} {
		far := tracking.Options{MaxAssignDistance: 2000, MaxOpenTasks: -1}
		b.Run(fmt.Sprintf("sweep, %d waiting out of reach", n), func(b *testing.B) {
			s := opened(b, open)
			svc := several(b, s, 1, far)[0]
			line(b, s, here, n, eastOf(90_000))
			crowd(b, s, 100, eastOf(100), nil)
			for b.Loop() {
				swept(b, svc)
			}
		})
		b.Run(fmt.Sprintf("create, %d waiting out of reach", n), func(b *testing.B) {
			s := opened(b, open)
			svc := several(b, s, 1, far)[0]
			line(b, s, here, n, eastOf(90_000))
			crowd(b, s, 100, eastOf(100), nil)
			for b.Loop() {
				if task := created(b, svc); task.DriverID == "" {
					b.Fatal("not served")
				}
			}
		})
		b.Run(fmt.Sprintf("fix and sweep, %d waiting out of reach", n), func(b *testing.B) {
			s := opened(b, open)
			svc := several(b, s, 1, far)[0]
			line(b, s, here, n, eastOf(90_000))
			crowd(b, s, 100, eastOf(100), nil)
			swept(b, svc)
			when := t0
			for b.Loop() {
				when = when.Add(time.Second)
				f := tracking.Fix{LngLat: eastOf(float64(when.Unix() % 500)), Time: when}
				use(b, s, here).record(tracking.FixBatch{DriverID: "d000042", SeenAt: when, Fixes: []tracking.Fix{f}})
				swept(b, svc)
			}
		})
	}
	for _, n := range []int{3, 300} {
		b.Run(fmt.Sprintf("create, %d waiting for the driver who has come", n), func(b *testing.B) {
			s := opened(b, open)
			svc := several(b, s, 1, tracking.Options{MaxOpenTasks: -1})[0]
			place := *dropHere(true).Drop.LngLat
			line(b, s, here, n, place)
			onDuty(b, svc, "d", place)
			for b.Loop() {
				if task := created(b, svc); !task.Waiting {
					b.Fatal("served before those who wait")
				}
			}
		})
	}
}
