package sqlite_test

import (
	"fmt"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// BenchmarkImport is an import into a file, of a task with ten fixes each time.
func BenchmarkImport(b *testing.B) {
	from := memory.New()
	at := time.Date(2024, 3, 10, 8, 50, 0, 0, time.UTC)
	for begin := 0; begin < b.N; begin += 1000 {
		driver := tracking.DriverRow{}
		driver.ID, driver.Version, driver.CreatedAt = tracking.DriverID(fmt.Sprint("d", begin)), 1, at
		list := []tracking.RowValue{driver}
		for i := range min(1000, b.N-begin) {
			created := at.Add(time.Duration(begin+i) * time.Second)
			list = append(list, tracking.Task{
				ID: tracking.TaskID(fmt.Sprint("t", begin+i)), Version: 1, Type: tracking.TypeDrop,
				Status: tracking.StatusCompleted, Outcome: tracking.OutcomeSucceeded, DriverID: driver.ID,
				Drop:      &tracking.Place{Address: "Marienplatz 1", LngLat: &tracking.LngLat{Lng: 11.5, Lat: 48.1}},
				CreatedAt: created, CompletedAt: created.Add(time.Hour), UpdatedAt: created.Add(time.Hour),
			})
		}
		for i := range 10 * min(1000, b.N-begin) {
			list = append(list, tracking.FixRow{DriverID: driver.ID, KeptFix: tracking.KeptFix{
				Mark: tracking.MarkGood, Fix: tracking.Fix{
					LngLat: tracking.LngLat{Lng: 11.5 + float64(i)/1e6, Lat: 48.1}, Time: at.Add(time.Duration(i) * time.Second),
					Accuracy: tracking.Known(5),
				},
			}})
		}
		var r tracking.Restoring
		for _, v := range list {
			r.Rows = append(r.Rows, tracking.Row{App: "default", Value: v})
		}
		if err := from.Restore(b.Context(), r); err != nil {
			b.Fatal(err)
		}
	}
	to, err := sqlite.Open(filepath.Join(b.TempDir(), "tracking.db"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer to.Close()
	read, write := io.Pipe()
	out, err := tracking.New(from, nil)
	if err != nil {
		b.Fatal(err)
	}
	in, err := tracking.New(to, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	go func() { write.CloseWithError(out.Export(b.Context(), write, tracking.ExportFilter{})) }()
	n, err := in.Import(b.Context(), read)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "rows/s")
}
