package sqlite

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-8aba7b13/tracking"
)

// bitwise tells numbers apart by their bits: 0 from -0, and what is no number is itself.
var bitwise = cmp.Comparer(func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) })

// anyNumber draws numbers as phones send them, and any other.
var anyNumber = rapid.OneOf(
	rapid.Map(rapid.IntRange(-1800000000, 1800000000), func(n int) float64 { return float64(n) / 1e7 }),
	rapid.Map(rapid.IntRange(0, 360000), func(n int) float64 { return float64(n) / 1e3 }),
	rapid.Map(rapid.Float32Range(-180, 180), func(v float32) float64 { return float64(v) }),
	rapid.Map(rapid.Uint64(), math.Float64frombits),
	rapid.SampledFrom([]float64{0, math.Copysign(0, -1), math.Inf(1), math.NaN(), math.MaxFloat64, 1 << 53}),
)

var anyReading = rapid.OneOf(rapid.Just(tracking.Reading{}), rapid.Map(anyNumber, tracking.Known))

// anyKept draws a kept fix of a time.
func anyKept(ms int64) *rapid.Generator[tracking.KeptFix] {
	return rapid.Custom(func(t *rapid.T) tracking.KeptFix {
		return tracking.KeptFix{
			Mark: tracking.FixMark(rapid.IntRange(1, 6).Draw(t, "mark")), Purged: rapid.Bool().Draw(t, "purged"),
			Fix: tracking.Fix{
				Time:     fromMillis(ms),
				LngLat:   tracking.LngLat{Lng: anyNumber.Draw(t, "lng"), Lat: anyNumber.Draw(t, "lat")},
				EventID:  rapid.OneOf(rapid.StringN(0, 3, 40), rapid.StringN(0, 128, 512)).Draw(t, "event"),
				Accuracy: anyReading.Draw(t, "accuracy"), Speed: anyReading.Draw(t, "speed"),
				Bearing: anyReading.Draw(t, "bearing"), Battery: anyReading.Draw(t, "battery"),
				Trusted: rapid.Bool().Draw(t, "trusted"),
			},
		}
	})
}

// TestPacked packs fixes at once, one behind another, and up to a limit: what comes out is what went in.
func TestPacked(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []tracking.KeptFix
		at := rapid.Int64Range(zeroMillis, 4e12).Draw(t, "first")
		for range rapid.IntRange(0, 50).Draw(t, "fixes") {
			list = append(list, anyKept(at).Draw(t, "fix"))
			at += rapid.OneOf(rapid.Just(int64(5000)), rapid.Int64Range(1, 6000), rapid.Int64Range(1, 1e11)).Draw(t, "step")
		}
		packed := pack(list)
		got, err := unpack(packed)
		if d := cmp.Diff(append([]tracking.KeptFix{}, list...), got, bitwise); err != nil || d != "" {
			t.Fatalf("error %v (-want +got):\n%s", err, d)
		}
		part := rapid.IntRange(0, len(list)).Draw(t, "part")
		before := pack(list[:part])
		p, err := packBehind(before, len(list)-part)
		for _, f := range list[part:] {
			p.add(f)
		}
		if err != nil || !bytes.Equal(p.packed, packed) {
			t.Errorf("packed behind %d they are other bytes, error %v", part, err)
		}
		if !bytes.Equal(before, pack(list[:part])) {
			t.Error("packing behind others changes these")
		}
		if len(list) == 0 {
			return
		}
		if first, err := firstPacked(packed); first != list[0].Time.UnixMilli() || err != nil {
			t.Errorf("the first is of %d, error %v", first, err)
		}
		limit := rapid.IntRange(1, len(packed)+1).Draw(t, "limit")
		some, rest := packUpTo(list, limit)
		n := len(list) - len(rest)
		if !bytes.Equal(some, pack(list[:n])) || len(some) > limit && n > 1 || len(rest) > 0 && len(pack(list[:n+1])) <= limit {
			t.Errorf("%d of %d fixes are in %d bytes, the limit is %d", n, len(list), len(some), limit)
		}
	})
}

// TestPackedSize: a fix of a phone that drives takes 14 bytes at most, and one of a phone that stands 6.
func TestPackedSize(t *testing.T) {
	start := time.Date(2024, 3, 10, 8, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		speed float64 // units of a coordinate between two fixes
		most  int
	}{"drives": {4700, 14}, "stands": {0, 6}} {
		const n = 500
		var list []tracking.KeptFix
		for i := range n {
			f := tracking.Fix{
				Time:     start.Add(time.Duration(i) * 5 * time.Second),
				LngLat:   tracking.LngLat{Lng: 80.27 + math.Round(float64(i)*c.speed)/1e7, Lat: 13.08 + math.Round(float64(i)*c.speed/2)/1e7},
				Accuracy: tracking.Known(5),
			}
			if c.speed > 0 {
				f.Time = f.Time.Add(time.Duration(i*37%100) * time.Millisecond)
				f.Accuracy, f.Speed, f.Bearing = tracking.Known(float64(3+i%5)), tracking.Known(8.3+float64(i%9)/10), tracking.Known(float64(i%360))
			}
			f.LngLat.Lng, f.LngLat.Lat = math.Round(f.LngLat.Lng*1e7)/1e7, math.Round(f.LngLat.Lat*1e7)/1e7
			list = append(list, tracking.KeptFix{Fix: f, Mark: tracking.MarkGood})
		}
		if size := len(pack(list)); size > n*c.most+64 {
			t.Errorf("a fix of a phone that %s takes %.1f bytes, want %d at most", name, float64(size)/n, c.most)
		}
	}
}

// FuzzUnpack unpacks any bytes: they are refused, or are fixes that pack and unpack as they are.
func FuzzUnpack(f *testing.F) {
	at := fromMillis(1710057600000)
	f.Add([]byte{})
	f.Add(pack([]tracking.KeptFix{
		{Mark: 1, Fix: tracking.Fix{Time: at, LngLat: tracking.LngLat{Lng: 80.27, Lat: 13.08}, EventID: "e", Accuracy: tracking.Known(5)}},
		{Mark: 2, Purged: true, Fix: tracking.Fix{Time: at.Add(time.Second), LngLat: tracking.LngLat{Lng: math.Pi, Lat: math.NaN()}}},
	}))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := unpack(b)
		if err != nil {
			return
		}
		again, err := unpack(pack(list))
		if d := cmp.Diff(list, again, bitwise); err != nil || d != "" {
			t.Errorf("error %v (-want +got):\n%s", err, d)
		}
		if len(list) > 0 {
			if first, err := firstPacked(b); err != nil || first != list[0].Time.UnixMilli() {
				t.Errorf("the first is of %d, error %v", first, err)
			}
		}
	})
}
