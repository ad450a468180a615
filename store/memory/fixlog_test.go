package memory

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8aba7b13/tracking"
)

// The packed log does what a sorted slice does, and gives each fix back whole.
func TestFixLog(t *testing.T) {
	for _, c := range []struct {
		name string
		time func(r *rand.Rand, i int) int64
	}{
		{"in order", func(_ *rand.Rand, i int) int64 { return int64(i) * 1000 }},
		{"backwards", func(_ *rand.Rand, i int) int64 { return -int64(i) }},
		{"anywhere", func(r *rand.Rand, _ int) int64 { return r.Int64N(1 << 44) }},
		{"crowded", func(r *rand.Rand, _ int) int64 { return r.Int64N(1500) }},
		{"the ends of time", func(r *rand.Rand, i int) int64 {
			year := 1 + 9998*r.IntN(2)
			return time.Date(year, 1, 1, 0, 0, 0, i*1e6, time.UTC).UnixMilli()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			var l fixLog
			var ref []tracking.KeptFix
			byTime := func(f tracking.KeptFix, t int64) int { return f.Time.Compare(time.UnixMilli(t)) }
			for i := range 2000 {
				f := randomFix(r, c.time(r, i))
				at, found := slices.BinarySearchFunc(ref, f.Time.UnixMilli(), byTime)
				if found {
					ref[at].Mark = f.Mark
					l.setMark(f.Time.UnixMilli(), f.Mark)
				} else {
					ref = slices.Insert(ref, at, f)
					l.put(f)
				}
				if i%100 == 0 || i < 20 {
					compareLog(t, r, &l, ref)
				}
				if n := len(ref); i%150 == 149 { // some at either end go
					old, young := r.IntN(n/8+2), r.IntN(n/8+2)
					l.drop(min(old, n))
					if ref = ref[min(old, n):]; len(ref) > young {
						ref = ref[:len(ref)-young]
						l.forget(ref[len(ref)-1].Time.UnixMilli())
					} else {
						l.forget(math.MinInt64)
						ref = nil
					}
				}
			}
			compareLog(t, r, &l, ref)
			l.forget(math.MinInt64)
			if l.len() != 0 || l.chunks() != 0 || len(l.older()) != 0 || l.oldest() != never {
				t.Errorf("%d fixes in %d chunks are left of none", l.len(), l.chunks())
			}
		})
	}
}

func randomFix(r *rand.Rand, t int64) tracking.KeptFix {
	f := tracking.KeptFix{Mark: tracking.FixMark(1 + r.IntN(6))}
	f.Time, f.Trusted = time.UnixMilli(t).UTC(), r.IntN(5) == 0
	f.LngLat = tracking.LngLat{Lng: r.Float64()*360 - 180, Lat: r.Float64()*180 - 90}
	if r.IntN(2) == 0 {
		f.LngLat = tracking.LngLat{Lng: math.Round(f.LngLat.Lng*1e6) / 1e6, Lat: float64(r.IntN(181) - 90)}
	}
	if r.IntN(3) == 0 {
		f.EventID = fmt.Sprint("event ", r.IntN(100000), "\x00ü")
	}
	for _, reading := range [...]*tracking.Reading{&f.Accuracy, &f.Speed, &f.Bearing, &f.Battery} {
		if r.IntN(2) == 0 {
			*reading = tracking.Known([]float64{
				0, math.Copysign(0, -1), r.NormFloat64(), math.MaxFloat64, float64(r.IntN(3600)) / 10, float64(r.Float32()),
			}[r.IntN(6)])
		}
	}
	return f
}

// However few bytes a number takes, it is the same to the last bit.
func TestNumbersOfAFix(t *testing.T) {
	numbers := []float64{
		0, math.Copysign(0, -1), 180, -180, math.Nextafter(180, 0), math.Nextafter(180, 200), 80.2571, 80.25710001,
		-13.0102345, 1e-7, -1e-7, 4.9e-8, 0.1, 0.3, 0.1 + 0.2, 359.9, 1<<20 - 0.1, 1 << 20, 1<<20 + 0.1, 7.23,
		float64(float32(7.23)), math.MaxFloat32, 2 * math.MaxFloat32, math.MaxFloat64, math.SmallestNonzeroFloat64,
		math.Inf(1), math.Inf(-1), math.NaN(), -5,
	}
	for _, a := range numbers {
		for _, b := range numbers {
			var c fixChunk
			f := tracking.KeptFix{Fix: tracking.Fix{
				LngLat: tracking.LngLat{Lng: a, Lat: b}, Accuracy: tracking.Known(a), Speed: tracking.Known(b),
				Bearing: tracking.Known(a), EventID: "e",
			}}
			c.insert(0, f)
			got := c.fix(0)
			for i, pair := range [][2]float64{
				{got.LngLat.Lng, a}, {got.LngLat.Lat, b}, {got.Accuracy.Value, a}, {got.Speed.Value, b},
				{got.Bearing.Value, a},
			} {
				if math.Float64bits(pair[0]) != math.Float64bits(pair[1]) {
					t.Errorf("%v and %v: number %d is %v", a, b, i, pair[0])
				}
			}
			if !got.Bearing.Known || got.Battery.Known || got.EventID != "e" {
				t.Errorf("%v and %v: %+v", a, b, got)
			}
		}
	}
}

// compareLog plays the same on a log and on a plain slice, and compares what they answer.
func compareLog(t *testing.T, r *rand.Rand, l *fixLog, ref []tracking.KeptFix) {
	t.Helper()
	from := ref[r.IntN(len(ref))].Time.UnixMilli() + int64(r.IntN(3)) - 1
	to := ref[r.IntN(len(ref))].Time.UnixMilli() + int64(r.IntN(3)) - 1
	var want []tracking.Fix
	var before, after []tracking.KeptFix
	for _, f := range ref {
		at := f.Time.UnixMilli()
		if at >= from && at <= to && f.Mark.Good() {
			want = append(want, f.Fix)
		}
		if at < from {
			before = append(before, f)
		} else {
			after = append(after, f)
		}
	}
	limit := 1 + r.IntN(300)
	got, full := l.read(make([]tracking.Fix, 0, limit), from, to, false)
	if diff := cmp.Diff(want[:min(limit, len(want))], got, emptyIsNil); diff != "" {
		t.Fatalf("ascending (-want +got):\n%s", diff)
	}
	if !full && len(want) > limit {
		t.Fatalf("read %d of %d and took it for all", limit, len(want))
	}
	slices.Reverse(want)
	got, full = l.read(make([]tracking.Fix, 0, limit), from, to, true)
	if diff := cmp.Diff(want[:min(limit, len(want))], got, emptyIsNil); diff != "" {
		t.Fatalf("descending (-want +got):\n%s", diff)
	}
	if !full && len(want) > limit {
		t.Fatalf("read %d of %d backwards and took it for all", limit, len(want))
	}
	slices.Reverse(before)
	if diff := cmp.Diff(before[:min(limit, len(before))], l.before(from, limit), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("before %d (-want +got):\n%s", from, diff)
	}
	if diff := cmp.Diff(after[:min(limit, len(after))], l.from(from, limit), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("from %d (-want +got):\n%s", from, diff)
	}
	if l.len() != len(ref) {
		t.Fatalf("%d fixes, want %d", l.len(), len(ref))
	}
	if last, ok := l.last(); !ok || last != ref[len(ref)-1].Time.UnixMilli() {
		t.Fatalf("the last one is of %d, %v", last, ok)
	}
	for c := range l.chunks() - 1 {
		if l.chunk(c).len() == 0 {
			t.Fatalf("chunk %d of %d is empty", c, l.chunks())
		}
	}
}

var emptyIsNil = cmp.FilterValues(func(a, b []tracking.Fix) bool { return len(a) == 0 && len(b) == 0 }, cmp.Ignore())

// Purging in steps of any size ends where purging at once does, takes what is old and nothing else,
// and keeps few fixes to judge others by.
func TestFixLogPurge(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		var l fixLog
		n := 1 + r.IntN(400)
		for i := range n {
			f := randomFix(r, int64(i))
			if i == 0 || r.IntN(3) > 0 {
				f.Mark = tracking.MarkGood
			}
			l.put(f)
		}
		want := r.IntN(n + 1)
		total := 0
		for {
			limit := 1 + r.IntN(50)
			got := l.purge(int64(want), limit)
			if got > limit {
				t.Fatalf("purged %d, limit %d", got, limit)
			}
			if total += got; got == 0 {
				break
			}
		}
		if total != want {
			t.Fatalf("purged %d of %d, want %d", total, n, want)
		}
		rest, _ := l.read(make([]tracking.Fix, 0, n), math.MinInt64, math.MaxInt64-1, false)
		for _, f := range rest {
			if f.Time.UnixMilli() < int64(want) {
				t.Fatalf("a purged fix is read: %v of %d", f.Time.UnixMilli(), want)
			}
		}
		first := int64(never)
		if want < n {
			first = int64(want)
		}
		if oldest := l.oldest(); oldest != first {
			t.Fatalf("oldest = %d after purging %d of %d", oldest, want, n)
		}
		// Nothing is kept to judge others by before the good fix before the last closed mark.
		closed := 0
		for c := range l.chunks() {
			for i := range l.chunk(c).len() {
				p := l.chunk(c).at(i)
				if m := p.mark(); p.purged() &&
					(m == tracking.MarkGood || m == tracking.MarkLost || m == tracking.MarkForgotten) {
					closed++
				}
			}
		}
		if first := l.chunk(0).at(0).mark(); closed > 2 || first == tracking.MarkOut ||
			first == tracking.MarkCoarse {
			t.Fatalf("%d closed marks are kept, the first of all marks is %d", closed, first)
		}
	}
}
