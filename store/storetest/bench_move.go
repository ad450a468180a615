package storetest

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// BenchmarkMove exports from a store, and imports what is exported into another one: 2,000 tasks and
// ten fixes for each, with TRACKING_ENDURE=1 a million tasks. It reports the rows in a second, and
// how many MiB more of the heap are in use on the way than before: both should not depend on how
// many rows there are.
func BenchmarkMove(b *testing.B, from, to func(t testing.TB) tracking.Store) {
	tasks := 2_000
	if os.Getenv("TRACKING_ENDURE") == "1" {
		tasks = 1_000_000
	}
	a := opened(b, from)
	fillForMove(b, a, tasks)
	out := moving(b, a)
	b.Run("export", func(b *testing.B) {
		rows := 0
		for b.Loop() {
			h := newHeapGauge(b, tasks)
			if err := out.Export(b.Context(), h, tracking.ExportFilter{}); err != nil {
				b.Fatal(err)
			}
			h.report()
			rows += h.lines - 2
		}
		b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
	})
	b.Run("import", func(b *testing.B) {
		rows := 0
		for b.Loop() {
			b.StopTimer()
			in := moving(b, opened(b, to))
			read, write := io.Pipe()
			h := newHeapGauge(b, tasks)
			go func() { write.CloseWithError(out.Export(b.Context(), write, tracking.ExportFilter{})) }()
			b.StartTimer()
			n, err := in.Import(b.Context(), io.TeeReader(read, h))
			if err != nil {
				b.Fatal(err)
			}
			h.report()
			rows += n
		}
		b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
	})
	runtime.KeepAlive(a)
}

// heapGauge counts lines that are written to it, and looks sixteen times on the way what is in use
// of the heap.
type heapGauge struct {
	b            *testing.B
	lines, every int
	before, most uint64
}

func newHeapGauge(b *testing.B, tasks int) *heapGauge {
	b.StopTimer()
	defer b.StartTimer()
	return &heapGauge{b: b, every: 11 * tasks / 16, before: heapInUse()}
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func (h *heapGauge) Write(p []byte) (int, error) {
	before := h.lines / h.every
	for _, c := range p {
		if c == '\n' {
			h.lines++
		}
	}
	if h.lines/h.every > before {
		h.b.StopTimer()
		h.most = max(h.most, heapInUse())
		h.b.StartTimer()
	}
	return len(p), nil
}

func (h *heapGauge) report() {
	h.b.ReportMetric((float64(h.most)-float64(h.before))/(1<<20), "more-MiB")
}

// fillForMove keeps tasks, a driver for each thousand, and ten fixes for each task.
func fillForMove(t testing.TB, s tracking.Store, tasks int) {
	for begin := 0; begin < tasks; begin += 1000 {
		id := tracking.DriverID(fmt.Sprint("d", begin))
		driver := tracking.DriverRow{Driver: newDriver(id, t0)}
		driver.Version = 1
		list := []tracking.Row{{App: tracking.DefaultApp, Value: driver}}
		for i := range 1000 {
			task := newTask(tracking.TaskID(fmt.Sprint("t", begin+i)), at(time.Duration(begin+i)*time.Second))
			task.Version, task.DriverID, task.Status = 1, id, tracking.StatusCompleted
			task.Outcome, task.CompletedAt = tracking.OutcomeSucceeded, task.CreatedAt.Add(time.Hour)
			list = append(list, tracking.Row{App: tracking.DefaultApp, Value: task})
		}
		for i := range 10_000 {
			fix := newFix(at(time.Duration(i)*time.Second), 11.5+float64(i)/1e6, 48.1)
			list = append(list, tracking.Row{App: tracking.DefaultApp, Value: tracking.FixRow{
				DriverID: id, KeptFix: tracking.KeptFix{Mark: tracking.MarkGood, Fix: fix},
			}})
		}
		restoreAll(t, s, list)
	}
}
