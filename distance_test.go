package tracking_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/seed-8aba7b13/tracking"
)

// places draws points with a liking for ±180°, the poles and what lies beside them.
func places(t *rapid.T, name string) tracking.LngLat {
	edge := func(limit float64) *rapid.Generator[float64] {
		beside := rapid.Custom(func(t *rapid.T) float64 {
			v := limit - rapid.SampledFrom([]float64{0, 5e-324, 1e-15, 1e-9, 1e-7, 1e-5, 0.1, 0.3, 1}).Draw(t, "beside")
			return v * rapid.SampledFrom([]float64{-1, 1}).Draw(t, "side")
		})
		return rapid.OneOf(rapid.Float64Range(-limit, limit), beside,
			rapid.SampledFrom([]float64{0, math.Copysign(0, -1)}))
	}
	return tracking.LngLat{Lng: edge(180).Draw(t, name+" lng"), Lat: edge(90).Draw(t, name+" lat")}
}

// names are the coordinates by which one place goes.
func names(t *rapid.T, p tracking.LngLat) []tracking.LngLat {
	list := []tracking.LngLat{p}
	if math.Abs(p.Lng) == 180 {
		list = append(list, tracking.LngLat{Lng: -p.Lng, Lat: p.Lat})
	}
	if math.Abs(p.Lat) == 90 {
		list = append(list, tracking.LngLat{Lng: places(t, "any").Lng, Lat: p.Lat})
	}
	for _, q := range list {
		if q.Lng == 0 {
			list = append(list, tracking.LngLat{Lng: -q.Lng, Lat: q.Lat})
		}
		if q.Lat == 0 {
			list = append(list, tracking.LngLat{Lng: q.Lng, Lat: -q.Lat})
		}
	}
	return list
}

func TestEqualDistancesAreEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := places(t, "a"), places(t, "b")
		want := tracking.Distance(a, b)
		mirrored := func(p tracking.LngLat, lng, lat float64) tracking.LngLat {
			return tracking.LngLat{Lng: lng * p.Lng, Lat: lat * p.Lat}
		}
		for _, p := range names(t, a) {
			if d := tracking.Distance(a, p); d != 0 {
				t.Fatalf("%v and %v are one place, and %v m apart", a, p, d)
			}
			for _, q := range names(t, b) {
				for name, d := range map[string]float64{
					"there": tracking.Distance(p, q), "back": tracking.Distance(q, p),
					"mirrored at the equator":  tracking.Distance(mirrored(p, 1, -1), mirrored(q, 1, -1)),
					"mirrored at the meridian": tracking.Distance(mirrored(p, -1, 1), mirrored(q, -1, 1)),
				} {
					if d != want {
						t.Fatalf("%s, %v to %v: %v m, want %v", name, p, q, d, want)
					}
				}
			}
		}
		pole := tracking.LngLat{Lng: a.Lng, Lat: 90}
		if d, e := tracking.Distance(pole, b), tracking.Distance(pole,
			tracking.LngLat{Lng: a.Lat, Lat: b.Lat}); d != e {
			t.Fatalf("from the pole to the latitude of %v: %v m and %v m", b, d, e)
		}
	})
}

// The nearer of two places on either side of ±180°, equally far from it, is not told by rounding.
func TestEqualDistancesOverTheSeam(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := tracking.LngLat{Lng: 180, Lat: places(t, "from").Lat}
		p := places(t, "p")
		if d, e := tracking.Distance(from, p), tracking.Distance(from,
			tracking.LngLat{Lng: -p.Lng, Lat: p.Lat}); d != e {
			t.Fatalf("from %v to %v and its mirror image: %v m and %v m", from, p, d, e)
		}
	})
}

// Ties at ±180° go by the id, in lists and for tasks.
func TestTieOverTheSeam(t *testing.T) {
	w := newWorld(t)
	for _, d := range []struct {
		id  tracking.DriverID
		lng float64
	}{{"q1", 180}, {"q2", -180}} {
		must(w.SaveDriver(w.ctx, tracking.DriverUpdate{
			ID: d.id, Available: new(true), LngLat: &tracking.LngLat{Lng: d.lng, Lat: -40},
		}))(t)
	}
	for _, lng := range []float64{-180, 180} {
		at := tracking.LngLat{Lng: lng, Lat: -40}
		list, _, err := w.Drivers(w.ctx, tracking.DriverFilter{Near: &at})
		if err != nil || len(list) != 2 || list[0].ID != "q1" || list[0].Distance != 0 || list[1].Distance != 0 {
			t.Errorf("from %v: %v, error %v; want q1 and q2, each 0 m away", at, list, err)
		}
	}
	place := &tracking.Place{LngLat: &tracking.LngLat{Lng: -180, Lat: -40}}
	if got := must(w.CreateTask(w.ctx, tracking.NewTask{
		Type: tracking.TypeDrop, Drop: place, AutoAssign: true,
	}))(t).DriverID; got != "q1" {
		t.Errorf("the task went to %q, want q1", got)
	}
}
