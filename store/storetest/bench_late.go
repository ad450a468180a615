package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// BenchmarkLate measures what late fixes cost beside live ones. Each round has a driver of its own,
// who has driven for a while: a batch comes late, and then a full one live. It reports the time of
// each, and how many times as long the late one took: it should not be more than 3 times.
func BenchmarkLate(b *testing.B, open func(t testing.TB) tracking.Store) {
	drive := func(from, n int, step time.Duration) (list []tracking.Fix) {
		for i := range n {
			list = append(list, newFix(at(time.Duration(from+i)*step), 11+1e-5*float64(from+i), 48))
		}
		return list
	}
	every := func(list []tracking.Fix, rest int) (half []tracking.Fix) { // each second one
		for i, f := range list {
			if i%2 == rest {
				half = append(half, f)
			}
		}
		return half
	}
	const second = time.Second
	var jumps []tracking.Fix
	for i := range 20_000 {
		jumps = append(jumps, newFix(at(3000*second+time.Duration(i)*time.Millisecond), float64(i%300)-150, 10))
	}
	full := tracking.MaxBatch
	for _, c := range []struct {
		name             string
		kept, late, live []tracking.Fix
	}{
		{
			"a full batch into a gap", append(drive(0, full, second), drive(2*full, full, second)...),
			drive(full, full, second), drive(3*full, full, second),
		},
		{
			"a full batch between others", every(drive(0, 4*full, second), 0), every(drive(0, 2*full, second), 1),
			drive(4*full, full, second),
		},
		{
			"100 before 20,000 jumps", append(drive(0, full, second), jumps...), drive(full, 100, second),
			drive(4*full, full, second),
		},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := opened(b, open)
			svc, clock := beginAt(b, s, t0, tracking.Options{KeepOffDuty: true})
			clock.forward(24 * time.Hour)
			var late, live time.Duration
			n := 0
			for b.Loop() {
				b.StopTimer()
				id := tracking.DriverID(fmt.Sprint("d", n))
				n++
				if _, err := svc.SaveDriver(b.Context(),
					tracking.DriverUpdate{ID: id, Available: new(true)}); err != nil {
					b.Fatal(err)
				}
				record := func(fixes []tracking.Fix) time.Duration {
					began := time.Now()
					if _, err := svc.RecordFixes(b.Context(), id, fixes); err != nil {
						b.Fatal(err)
					}
					return time.Since(began)
				}
				for rest := c.kept; len(rest) > 0; rest = rest[min(full, len(rest)):] {
					record(rest[:min(full, len(rest))])
				}
				b.StartTimer()
				late += record(c.late)
				b.StopTimer()
				live += record(c.live)
				b.StartTimer()
			}
			b.ReportMetric(float64(late.Nanoseconds())/float64(n), "late-ns")
			b.ReportMetric(float64(live.Nanoseconds())/float64(n), "live-ns")
			b.ReportMetric(float64(late)/float64(live), "late/live")
		})
	}
}
