package sqlite_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// spent is what the process has used: CPU time, and bytes given to write calls, which are those of the
// log and of the file.
func spent(b *testing.B) (cpu time.Duration, written int64) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	if io, err := os.ReadFile("/proc/self/io"); err == nil {
		_, rest, _ := strings.Cut(string(io), "wchar: ")
		line, _, _ := strings.Cut(rest, "\n")
		if written, err = strconv.ParseInt(line, 10, 64); err != nil {
			b.Fatal(err)
		}
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), written
}

// reportSpent reports what n of something took, since spent was cpu and written.
func reportSpent(b *testing.B, n int, one, many string, cpu time.Duration, written int64) {
	b.Helper()
	c, w := spent(b)
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), many+"/s")
	b.ReportMetric(float64((c-cpu).Nanoseconds())/float64(n)/1e3, "cpu-µs/"+one)
	b.ReportMetric(float64(w-written)/float64(n), "written-B/"+one)
}

// drivenFix is the n-th fix of a phone that sends one every five seconds or so, with seven decimals.
func drivenFix(g, n int) tracking.Fix {
	round := func(x, scale float64) float64 { return math.Round(x*scale) / scale }
	way := float64(n) / 20
	return tracking.Fix{
		LngLat: tracking.LngLat{
			Lng: round(80.27+float64(g)/1e4+0.01*math.Sin(way), 1e7), Lat: round(13.08+0.01*math.Sin(way*1.3), 1e7),
		},
		Time:     start.Add(time.Duration(n)*5*time.Second + time.Duration(n*7919%40)*time.Millisecond),
		Accuracy: tracking.Known(float64(4 + n*31%9)), Speed: tracking.Known(round(8+4*math.Sin(way*3), 10)),
		Bearing: tracking.Known(float64(n * 13 % 360)),
	}
}

// BenchmarkFixBatches records fixes of 64 drivers at once, so many in a call, beside a file to which as
// many bytes as a packed fix takes are appended, synced for the same groups.
func BenchmarkFixBatches(b *testing.B) {
	const goroutines = 64
	for _, size := range []int{1, 10, 100} {
		report := func(b *testing.B, cpu time.Duration, written int64) {
			reportSpent(b, b.N*size, "fix", "fixes", cpu, written)
		}
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "tracking.db"), nil)
			ctx := context.Background()
			drivers := hired(b, s, goroutines)
			var sent [goroutines]int
			cpu, written := spent(b)
			b.ResetTimer()
			spread(goroutines, b.N, func(g int) {
				batch := tracking.FixBatch{DriverID: drivers[g], Fixes: make([]tracking.Fix, size)}
				for i := range batch.Fixes {
					batch.Fixes[i] = drivenFix(g, sent[g])
					sent[g]++
				}
				batch.SeenAt = batch.Fixes[size-1].Time
				if _, err := s.RecordFixes(ctx, app, batch); err != nil {
					b.Error(err)
				}
			})
			report(b, cpu, written)
			b.StopTimer()
			closeStore(b, s)
		})
		b.Run(fmt.Sprintf("%d append", size), func(b *testing.B) {
			a := newAppender(b, 14*size)
			cpu, written := spent(b)
			b.ResetTimer()
			spread(goroutines, b.N, func(int) {
				if err := a.one(); err != nil {
					b.Error(err)
				}
			})
			report(b, cpu, written)
			b.StopTimer()
			a.close()
		})
	}
}
