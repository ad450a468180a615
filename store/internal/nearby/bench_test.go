package nearby_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"github.com/tidwall/rtree"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/nearby"
)

const million = 1_000_000

var copied []tracking.Driver // so that a copy is made

// crowd is a million drivers in a city, in an index and in a bare R-tree.
type crowd struct {
	ids  []tracking.DriverID
	at   []tracking.LngLat
	all  nearby.Index // all on duty, all of them free
	few  nearby.Index // 1 % on offer
	tree rtree.RTreeG[int]
}

func newCrowd() *crowd {
	r := rand.New(rand.NewPCG(3, 4))
	c := &crowd{ids: make([]tracking.DriverID, million), at: make([]tracking.LngLat, million)}
	for i := range million {
		c.ids[i], c.at[i] = driverID(i), city(r)
		d := tracking.Driver{
			ID: c.ids[i], Available: true,
			Position: tracking.Position{SeenAt: epoch, Fix: tracking.Fix{LngLat: c.at[i], Time: epoch}},
		}
		c.all.Put(d)
		switch i % 100 {
		case 0:
		case 1:
			d.Silent = true
		default:
			d.Available = i%2 == 0
			d.Route = route(1 + i%3)
		}
		c.few.Put(d)
		p := [2]float64{c.at[i].Lng, c.at[i].Lat}
		c.tree.Insert(p, p, i)
	}
	runtime.GC() // lest what the crowd left behind counts against who is measured first
	return c
}

func city(r *rand.Rand) tracking.LngLat {
	return tracking.LngLat{Lng: 77.4 + r.Float64()/2, Lat: 12.8 + r.Float64()/2}
}

// step is how far a driver comes between two fixes: up to 30 m or so.
func step(r *rand.Rand, p tracking.LngLat) tracking.LngLat {
	return tracking.LngLat{Lng: p.Lng + (r.Float64()-0.5)*5e-4, Lat: p.Lat + (r.Float64()-0.5)*5e-4}
}

// BenchmarkNearest looks for 10 of a million drivers, and moves one, beside the same with a bare
// R-tree.
func BenchmarkNearest(b *testing.B) {
	c := sync.OnceValue(newCrowd)
	offer := tracking.Offer{MaxOpen: 1, SeenSince: epoch, Limit: 10}

	b.Run("10 of a million", func(b *testing.B) {
		x, r := &c().all, rand.New(rand.NewPCG(5, 6))
		for b.Loop() {
			if hits := x.Near(city(r), nearby.Filter{}, 0, 10, nil); len(hits) != 10 {
				b.Fatal(hits)
			}
		}
	})
	b.Run("10 of a million, and a bare copy of their records", func(b *testing.B) {
		x, r, records := &c().all, rand.New(rand.NewPCG(5, 6)), make([]tracking.Driver, million)
		for i := range records {
			records[i].ID = c().ids[i]
		}
		runtime.GC() // which the records have begun
		for b.Loop() {
			hits := x.Near(city(r), nearby.Filter{}, 0, 10, nil)
			list := make([]tracking.Driver, len(hits))
			for i, h := range hits {
				n, _ := strconv.Atoi(string(h.ID[1:]))
				list[i] = records[n]
			}
			if copied = list; len(list) != 10 || list[9].ID != hits[9].ID {
				b.Fatal(list)
			}
		}
	})
	b.Run("10 of a million in ten trees", func(b *testing.B) {
		x, r := &c().few, rand.New(rand.NewPCG(5, 6))
		for b.Loop() {
			if hits := x.Near(city(r), nearby.Filter{}, 0, 10, nil); len(hits) != 10 {
				b.Fatal(hits)
			}
		}
	})
	b.Run("10 to offer of a million", func(b *testing.B) {
		x, r := &c().all, rand.New(rand.NewPCG(5, 6))
		for b.Loop() {
			offer.At = city(r)
			if hits := x.Offers(offer, nil); len(hits) != 10 {
				b.Fatal(hits)
			}
		}
	})
	b.Run("10 to offer, 1 in 100 on offer", func(b *testing.B) {
		x, r := &c().few, rand.New(rand.NewPCG(5, 6))
		for b.Loop() {
			offer.At = city(r)
			if hits := x.Offers(offer, nil); len(hits) != 10 {
				b.Fatal(hits)
			}
		}
	})
	b.Run("raw: rtree Nearby, plane degrees", func(b *testing.B) {
		t, r := &c().tree, rand.New(rand.NewPCG(5, 6))
		for b.Loop() {
			p := city(r)
			q := [2]float64{p.Lng, p.Lat}
			n := 0
			t.Nearby(rtree.BoxDist[float64, int](q, q, nil), func(_, _ [2]float64, _ int, _ float64) bool {
				n++
				return n < 10
			})
		}
	})
	b.Run("raw: rtree Search of a box with 20", func(b *testing.B) {
		t, r := &c().tree, rand.New(rand.NewPCG(5, 6))
		const half = 0.00112 // degrees
		for b.Loop() {
			p := city(r)
			n := 0
			t.Search([2]float64{p.Lng - half, p.Lat - half}, [2]float64{p.Lng + half, p.Lat + half},
				func(_, _ [2]float64, _ int) bool { n++; return true })
		}
	})
	b.Run("move", func(b *testing.B) {
		x, r := &c().all, rand.New(rand.NewPCG(7, 8))
		at := append([]tracking.LngLat(nil), c().at...)
		for b.Loop() {
			i := r.IntN(million)
			at[i] = step(r, at[i])
			x.Move(c().ids[i], tracking.Position{SeenAt: epoch, Fix: tracking.Fix{LngLat: at[i], Time: epoch}})
		}
		b.StopTimer()
		for i, p := range c().at { // as it was, for the next run
			x.Move(c().ids[i], tracking.Position{SeenAt: epoch, Fix: tracking.Fix{LngLat: p, Time: epoch}})
		}
	})
	b.Run("raw: rtree Replace", func(b *testing.B) {
		t, r := &c().tree, rand.New(rand.NewPCG(7, 8))
		at := append([]tracking.LngLat(nil), c().at...)
		for b.Loop() {
			i := r.IntN(million)
			from := [2]float64{at[i].Lng, at[i].Lat}
			at[i] = step(r, at[i])
			to := [2]float64{at[i].Lng, at[i].Lat}
			t.Replace(from, from, i, to, to, i)
		}
	})
	b.Run("move, then look, from both cores", func(b *testing.B) {
		x := &c().few
		b.RunParallel(func(pb *testing.PB) {
			r := rand.New(rand.NewPCG(9, uint64(b.N)))
			for pb.Next() {
				i := r.IntN(million)
				x.Move(c().ids[i], tracking.Position{
					SeenAt: epoch, Fix: tracking.Fix{LngLat: step(r, c().at[i]), Time: epoch},
				})
				x.Near(city(r), nearby.Filter{}, 0, 10, nil)
			}
		})
	})
}

// BenchmarkSpread looks for 10 of 100,000 drivers who are spread less evenly than a city.
func BenchmarkSpread(b *testing.B) {
	for _, name := range []string{"sphere", "clusters", "north pole"} {
		gen := worlds()[name]
		b.Run(name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 2))
			var x nearby.Index
			for i := range 100_000 {
				x.Put(tracking.Driver{
					ID:       tracking.DriverID(fmt.Sprint(i)),
					Position: tracking.Position{Fix: tracking.Fix{LngLat: gen(r), Time: epoch}},
				})
			}
			for b.Loop() {
				x.Near(gen(r), nearby.Filter{}, 0, 10, nil)
			}
		})
	}
}
