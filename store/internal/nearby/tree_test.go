package nearby_test

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/nearby"
)

// Pages are given up when their drivers go, be it home, off duty or to another city, and are well
// filled while they stay.
func TestPagesComeAndGo(t *testing.T) {
	const n = 20_000
	all := worlds()
	for _, name := range []string{"city", "sphere", "clusters", "north pole", "one spot", "nearly a dot"} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 7))
			var x nearby.Index
			put := func(i int, available bool, at tracking.LngLat) {
				x.Put(tracking.Driver{
					ID: driverID(i), Available: available,
					Position: tracking.Position{SeenAt: epoch, Fix: tracking.Fix{LngLat: at, Time: epoch}},
				})
			}
			check := func(when string, drivers int) {
				t.Helper()
				if err := x.Check(); err != nil {
					t.Fatalf("%s: %v", when, err)
				}
				if got, most := x.Pages(), 2+drivers/8; got > most {
					t.Errorf("%s: %d pages for %d drivers, want %d at most", when, got, drivers, most)
				}
			}
			for i := range n {
				put(i, true, all[name](r))
			}
			check("all there", n)
			for i := range n { // the shift ends for most
				if i%20 > 0 {
					put(i, false, all[name](r))
				}
			}
			check("most off duty", n)
			for i := range n { // to where everybody is
				x.Move(driverID(i), tracking.Position{SeenAt: epoch, Fix: tracking.Fix{LngLat: all["city"](r), Time: epoch}})
			}
			check("all in the city", n)
			for i := range n {
				if i%100 > 0 {
					x.Remove(driverID(i))
				}
			}
			check("most gone", n/100)
		})
	}
}

// Who comes to where there are but crowds gets a page of his own, which is gone when he is, and who
// comes there next is in that.
func TestAmongCrowds(t *testing.T) {
	var x nearby.Index
	put := func(i int, lng, lat float64) {
		x.Put(tracking.Driver{
			ID: driverID(i), Available: true,
			Position: tracking.Position{Fix: tracking.Fix{LngLat: tracking.LngLat{Lng: lng, Lat: lat}, Time: epoch}},
		})
	}
	put(0, 0, 0)
	const crowds = 30
	for i := range crowds * 48 {
		put(1+i, 10+float64(i/48)/1000, 10)
	}
	before := x.Pages()
	for i := range 50 {
		put(10_000+i, 10.0005+float64(i%5)/1000+float64(i)/1e6, 10)
	}
	if got := x.Pages(); before != 1+crowds || got > before+5 {
		t.Errorf("%d pages, then %d, want %d and 5 more at most", before, got, 1+crowds)
	}
	if err := x.Check(); err != nil {
		t.Error(err)
	}
	for i := range 50 {
		x.Remove(driverID(10_000 + i))
	}
	if got := x.Pages(); got != before {
		t.Errorf("%d pages when they are gone, want %d", got, before)
	}
	if err := x.Check(); err != nil {
		t.Error(err)
	}
}

// Who comes nearer and nearer to a crowd, from any side, shares a page with those who did before.
func TestTowardsCrowd(t *testing.T) {
	for _, side := range []tracking.LngLat{{Lng: 1}, {Lng: -1}, {Lat: 1}, {Lat: -1}, {Lng: 1, Lat: 1}} {
		var x nearby.Index
		put := func(i int, away float64) {
			x.Put(tracking.Driver{ID: driverID(i), Available: true, Position: tracking.Position{
				Fix: tracking.Fix{LngLat: tracking.LngLat{Lng: 13 + away*side.Lng, Lat: 52 + away*side.Lat}, Time: epoch},
			}})
		}
		for i := range 60 {
			put(i, 0)
		}
		for i := range 40 {
			put(60+i, math.Pow(0.7, float64(i)))
		}
		if got := x.Pages(); got > 8 {
			t.Errorf("from %v: %d pages, want one of the crowd, and one or two on each axis", side, got)
		}
		if err := x.Check(); err != nil {
			t.Error(err)
		}
	}
}

// Nobody waits while much of a tree is built anew, and the ways are hardly longer for it.
func TestBuiltAnewInParts(t *testing.T) {
	const n = 250_000
	var x nearby.Index
	for i := range n {
		x.Put(tracking.Driver{ID: driverID(i), Available: true, Position: tracking.Position{
			Fix: tracking.Fix{LngLat: tracking.LngLat{Lng: float64(i)/n*340 - 170, Lat: 30}, Time: epoch},
		}})
	}
	if got := x.Renewed(); got < 200 || got > 1500 {
		t.Errorf("up to %d nodes were built anew at once", got)
	}
	if got, pages := x.Longest(), x.Pages(); got > 2*bits.Len(uint(pages))+4+pages/250 {
		t.Errorf("the way to one of %d pages is %d nodes long", pages, got)
	}
}

// When all who were on a road have left it, the pages are no longer slices of the road.
func TestLeaveTheRoad(t *testing.T) {
	const n = 50_000
	r := rand.New(rand.NewPCG(17, 18))
	var x nearby.Index
	at := make([]tracking.LngLat, n)
	for i, j := range r.Perm(n) {
		at[i].Lng = float64(j)/n*5 - 2.5
		x.Put(tracking.Driver{
			ID: driverID(i), Available: true, Position: tracking.Position{Fix: tracking.Fix{LngLat: at[i], Time: epoch}},
		})
	}
	for i := range n {
		at[i].Lat = r.Float64()*2 - 1
		x.Move(driverID(i), tracking.Position{Fix: tracking.Fix{LngLat: at[i], Time: epoch}})
	}
	if err := x.Check(); err != nil {
		t.Error(err)
	}
	pages := 0
	for i := range 100 {
		pages += x.About(at[i], 4000)
	}
	if pages > 800 {
		t.Errorf("%d pages are within 4 km of 100 places, want 800 at most", pages)
	}
}

// However drivers come, always farther along a road too, the way to none of them is long.
func TestComeInOrder(t *testing.T) {
	const n = 40_000
	for name, at := range map[string]func(i int) tracking.LngLat{
		"east":  func(i int) tracking.LngLat { return tracking.LngLat{Lng: float64(i)/n*340 - 170, Lat: 30} },
		"north": func(i int) tracking.LngLat { return tracking.LngLat{Lng: 20, Lat: float64(i)/n*170 - 85} },
		"together": func(i int) tracking.LngLat {
			return tracking.LngLat{Lng: 20 + 20*math.Pow(0.999, float64(i)), Lat: 50}
		},
		"crowds": func(i int) tracking.LngLat { return tracking.LngLat{Lng: float64(i/60) / 10, Lat: 50} },
	} {
		t.Run(name, func(t *testing.T) {
			var x nearby.Index
			for i := range n {
				x.Put(tracking.Driver{
					ID: driverID(i), Available: true, Position: tracking.Position{Fix: tracking.Fix{LngLat: at(i), Time: epoch}},
				})
			}
			if got, pages := x.Longest(), x.Pages(); got > 2*bits.Len(uint(pages))+4 {
				t.Errorf("the way to one of %d pages is %d nodes long", pages, got)
			}
			if err := x.Check(); err != nil {
				t.Error(err)
			}
			for i := range 20 {
				p := at(i * n / 20)
				if hits := x.Near(p, nearby.Filter{}, 0, 1, nil); len(hits) != 1 || hits[0].Distance != 0 {
					t.Errorf("nearest to %v: %v", p, hits)
				}
			}
		})
	}
}

// A pole is one place by any longitude: however many drivers stand there, and in however many
// pages, a search for some of them comes to an end.
func TestManyPagesInOnePlace(t *testing.T) {
	const n = 2500
	all := worlds()
	for _, name := range []string{"at a pole", "nearly a dot"} {
		r := rand.New(rand.NewPCG(9, 9))
		var x nearby.Index
		ref := reference{}
		for i := range n {
			d := tracking.Driver{
				ID: driverID(i), Available: true,
				Position: tracking.Position{SeenAt: epoch, Fix: tracking.Fix{LngLat: all[name](r), Time: epoch}},
			}
			x.Put(d)
			ref[d.ID] = d
		}
		for _, limit := range []int{1, 20, 30, 100} {
			at := all[name](r)
			want := ref.near(at, nearby.Filter{}, 0, limit, nil)
			if diff := gocmp.Diff(want, x.Near(at, nearby.Filter{}, 0, limit, nil)); diff != "" {
				t.Errorf("%s, %d of them (-want +got):\n%s", name, limit, diff)
			}
		}
	}
}
