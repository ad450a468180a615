package httpadapter_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// board takes what it is sent, as a browser without end would. A slow one stops at the first event.
type board struct {
	header http.Header
	slow   <-chan struct{}
	ready  func()
}

func (b *board) Header() http.Header { return b.header }
func (b *board) WriteHeader(int)     {}
func (b *board) Flush()              {}

func (b *board) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("event: ready")) {
		b.ready()
	}
	if b.slow != nil && bytes.Contains(p, []byte("event: ")) {
		b.ready()
		<-b.slow
	}
	return len(p), nil
}

// BenchmarkFixWithBoards is what a fix costs where so many boards are open on the application, of
// which a quarter is stuck, at 500 fixes a second of 200 drivers with 500 open tasks. Beside it: how
// much memory the boards hold in the end.
func BenchmarkFixWithBoards(b *testing.B) {
	for _, boards := range []int{0, 1, 200} {
		b.Run(fmt.Sprint(boards), func(b *testing.B) { benchmarkBoards(b, boards) })
	}
}

func benchmarkBoards(b *testing.B, boards int) {
	svc, err := tracking.New(memory.New(), &tracking.Options{Logger: quiet(), MaxOpenTasks: tracking.NoLimit})
	if err != nil {
		b.Fatal(err)
	}
	h, err := httpadapter.New(svc, &httpadapter.Options{
		Keys: map[string]httpadapter.Principal{"k": {}}, Logger: quiet(),
	})
	if err != nil {
		b.Fatal(err)
	}
	place := func(n int) tracking.LngLat { return tracking.LngLat{Lng: 11 + float64(n%1000)*1e-5, Lat: 48} }
	const drivers = 200
	for n := range drivers {
		at := place(n)
		_, err := svc.SaveDriver(b.Context(), tracking.DriverUpdate{
			ID: tracking.DriverID(fmt.Sprint(n)), Available: new(true), LngLat: &at,
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	for n := range 500 {
		at := place(n)
		_, err := svc.CreateTask(b.Context(), tracking.NewTask{
			Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: &at, Address: "12 Beach Road"}, AutoAssign: true,
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	ctx, over := context.WithCancel(b.Context())
	stuck := make(chan struct{})
	var open, ready sync.WaitGroup
	for n := range boards {
		w := &board{header: http.Header{}}
		ready.Add(1)
		w.ready = sync.OnceFunc(ready.Done)
		if n%4 == 3 {
			w.slow = stuck
		}
		open.Go(func() {
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/v1/live?apikey=k", nil))
		})
	}
	ready.Wait()
	every := time.NewTicker(2 * time.Millisecond)
	defer every.Stop()
	var took []time.Duration
	for n := 0; b.Loop(); n++ {
		<-every.C
		fix := tracking.Fix{LngLat: place(n), Time: time.Now()}
		began := time.Now()
		if _, err := svc.RecordFixes(b.Context(), tracking.DriverID(fmt.Sprint(n%drivers)), []tracking.Fix{fix}); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "ns/fix") // the median
	b.ReportMetric(float64(int64(heap())-int64(before))/1e6, "MB")
	over()
	close(stuck)
	open.Wait()
	svc.Close(context.Background())
}
