package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
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

// hired makes so many drivers.
func hired(b *testing.B, s tracking.Store, n int) (ids []tracking.DriverID) {
	b.Helper()
	var cs tracking.Changeset
	for g := range n {
		ids = append(ids, tracking.DriverID(fmt.Sprintf("driver-%d", g)))
		cs.Drivers = append(cs.Drivers, tracking.Driver{ID: ids[g], Available: true, CreatedAt: start})
	}
	if _, err := s.Commit(context.Background(), app, &cs); err != nil {
		b.Fatal(err)
	}
	return ids
}

// BenchmarkFixes records fixes by so many callers at once.
func BenchmarkFixes(b *testing.B) {
	for _, goroutines := range []int{1, 64, 1000} {
		b.Run(fmt.Sprintf("%d", goroutines), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "tracking.db"), nil)
			defer s.Close()
			ctx := context.Background()
			drivers := hired(b, s, goroutines)
			times := make([]time.Time, goroutines)
			for g := range times {
				times[g] = start
			}
			b.ResetTimer()
			spread(goroutines, b.N, func(g int) {
				times[g] = times[g].Add(5 * time.Second)
				_, err := s.RecordFixes(ctx, app, tracking.FixBatch{
					DriverID: drivers[g], SeenAt: times[g],
					Fixes: []tracking.Fix{{LngLat: tracking.LngLat{
						Lng: 80.27 + float64(g)/1e4, Lat: 13.08 + float64(times[g].Unix()%1000)/1e5,
					}, Time: times[g], Accuracy: tracking.Known(5), Speed: tracking.Known(8.3)}},
				})
				if err != nil {
					b.Error(err)
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "fixes/s")
		})
	}
}

// appender is the least that durable grouped writing costs: the same queue, one append and one
// fdatasync for all that wait.
type appender struct {
	queue chan chan error
	f     *os.File
	done  chan struct{}
}

// newAppender starts what the stores are measured by: a file that many append to, synced once for
// each group.
func newAppender(b *testing.B, size int) *appender {
	f, err := os.Create(filepath.Join(b.TempDir(), "log"))
	if err != nil {
		b.Fatal(err)
	}
	a := &appender{make(chan chan error, 4096), f, make(chan struct{})}
	go func() {
		defer close(a.done)
		record := make([]byte, size)
		var group []chan error
		var buf []byte
		for c := range a.queue {
			group = append(group[:0], c)
			for seen := 0; seen < len(group); {
				seen = len(group)
				runtime.Gosched()
				for len(a.queue) > 0 && len(group) < 1024 {
					group = append(group, <-a.queue)
				}
			}
			buf = buf[:0]
			for range group {
				buf = append(buf, record...)
			}
			_, err := a.f.Write(buf)
			if err == nil {
				err = syscall.Fdatasync(int(a.f.Fd()))
			}
			for _, c := range group {
				c <- err
			}
		}
	}()
	return a
}

func (a *appender) append() error {
	c := make(chan error, 1)
	a.queue <- c
	return <-c
}

func (a *appender) close() error {
	close(a.queue)
	<-a.done
	return a.f.Close()
}

func BenchmarkAppend(b *testing.B) {
	for _, goroutines := range []int{1, 64, 1000} {
		b.Run(fmt.Sprintf("%d", goroutines), func(b *testing.B) {
			a := newAppender(b, 64) // about what a fix takes
			b.ResetTimer()
			spread(goroutines, b.N, func(int) {
				if err := a.append(); err != nil {
					b.Error(err)
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "fixes/s")
			b.StopTimer()
			if err := a.close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

func BenchmarkAssign(b *testing.B) {
	storetest.BenchmarkAssign(b, func(t testing.TB) tracking.Store {
		return open(t, filepath.Join(t.TempDir(), "tracking.db"), nil)
	})
}

func BenchmarkDue(b *testing.B) {
	storetest.BenchmarkDue(b, func(t testing.TB) tracking.Store {
		return open(t, filepath.Join(t.TempDir(), "tracking.db"), nil)
	})
}

func BenchmarkLate(b *testing.B) {
	storetest.BenchmarkLate(b, func(t testing.TB) tracking.Store {
		return open(t, filepath.Join(t.TempDir(), "tracking.db"), nil)
	})
}
