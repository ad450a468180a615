package nearby_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/nearby"
)

var epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

// worlds are ways to spread drivers over the Earth.
func worlds() map[string]func(*rand.Rand) tracking.LngLat {
	at := func(lng, lat float64) tracking.LngLat { return tracking.LngLat{Lng: lng, Lat: lat} }
	return map[string]func(*rand.Rand) tracking.LngLat{
		"city":      func(r *rand.Rand) tracking.LngLat { return at(77.4+r.Float64()/2, 12.8+r.Float64()/2) },
		"far north": func(r *rand.Rand) tracking.LngLat { return at(10+r.Float64()*20, 55+r.Float64()*25) },
		"sphere": func(r *rand.Rand) tracking.LngLat {
			return at(r.Float64()*360-180, math.Asin(2*r.Float64()-1)*180/math.Pi)
		},
		"north pole": func(r *rand.Rand) tracking.LngLat {
			return at(r.Float64()*360-180, 90-r.Float64()*r.Float64()*3)
		},
		"south pole": func(r *rand.Rand) tracking.LngLat {
			return at(r.Float64()*360-180, -90+r.Float64()*r.Float64()*3)
		},
		"at a pole": func(r *rand.Rand) tracking.LngLat { return at(r.Float64()*360-180, float64(r.IntN(2)*180-90)) },
		"seam": func(r *rand.Rand) tracking.LngLat {
			lng := 179 + r.Float64()*2
			if lng > 180 {
				lng -= 360
			}
			return at(lng, r.Float64()*4-2)
		},
		"on the seam": func(r *rand.Rand) tracking.LngLat { return at(float64(r.IntN(2)*360-180), r.Float64()*10-5) },
		"clusters": func(r *rand.Rand) tracking.LngLat {
			lng, lat := float64(r.IntN(30))*11-170, float64(r.IntN(12))*10-55
			s := math.Pow(10, -1-3*r.Float64())
			return at(lng+r.NormFloat64()*s, lat+r.NormFloat64()*s)
		},
		"seam ties": func(r *rand.Rand) tracking.LngLat {
			return at([]float64{180, -180, 179.9, -179.9, 179.99999, -179.99999}[r.IntN(6)], float64(r.IntN(3)-1))
		},
		"pole ties": func(r *rand.Rand) tracking.LngLat {
			return at(float64(r.IntN(24)*15-180), []float64{90, -90, 89, -89, 89.999999}[r.IntN(5)])
		},
		"one spot":     func(r *rand.Rand) tracking.LngLat { return at(13.4, 52.5) },
		"three spots":  func(r *rand.Rand) tracking.LngLat { return at(13.4+float64(r.IntN(3))*1e-4, 52.5) },
		"grid":         func(r *rand.Rand) tracking.LngLat { return at(float64(r.IntN(20)), float64(r.IntN(20))) },
		"nearly a dot": func(r *rand.Rand) tracking.LngLat { return at(13.4+r.Float64()*1e-9, 52.5+r.Float64()*1e-9) },
		"two names":    func(r *rand.Rand) tracking.LngLat { return at(float64(r.IntN(2)*360-180), 7) },
		"antipodes": func(r *rand.Rand) tracking.LngLat {
			return at(float64(r.IntN(2)*180)-90+r.NormFloat64()*1e-6, r.NormFloat64()*1e-6)
		},
	}
}

// reference is the index as anyone would write it first.
type reference map[tracking.DriverID]tracking.Driver

func (ref reference) list(at tracking.LngLat, keep func(tracking.Driver) bool) []nearby.Hit {
	var hits []nearby.Hit
	for _, d := range ref {
		if p := d.Position.Fix.LngLat; d.Position.Located() && keep(d) {
			hits = append(hits, nearby.Hit{ID: d.ID, Distance: tracking.Distance(at, p), At: p, OpenTasks: d.OpenTasks()})
		}
	}
	slices.SortFunc(hits, func(a, b nearby.Hit) int {
		return cmp.Or(cmp.Compare(a.Distance, b.Distance), strings.Compare(string(a.ID), string(b.ID)))
	})
	return hits
}

// byLoad puts those equally near in order of their open tasks, and leaves the order otherwise.
func byLoad(hits []nearby.Hit) []nearby.Hit {
	slices.SortStableFunc(hits, func(a, b nearby.Hit) int {
		return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.OpenTasks, b.OpenTasks))
	})
	return hits
}

func (ref reference) near(
	at tracking.LngLat, f nearby.Filter, offset, limit int, keep func(tracking.DriverID) bool,
) []nearby.Hit {
	hits := ref.list(at, func(d tracking.Driver) bool {
		return (f.Available == nil || *f.Available == d.Available) && (keep == nil || keep(d.ID))
	})
	return cut(hits, offset, limit)
}

func (ref reference) offers(o tracking.Offer) []nearby.Hit {
	hits := ref.list(o.At, func(d tracking.Driver) bool {
		limit := o.MaxOpen
		if d.MaxOpenTasks != nil {
			limit = *d.MaxOpenTasks
		}
		return d.Available && !d.Silent && (o.Full || limit < 0 || d.OpenTasks() < limit) &&
			hasAll(d.Properties, o.Requires) &&
			!d.Position.SeenAt.Before(o.SeenSince) &&
			!slices.Contains(o.Exclude, d.ID) &&
			(o.Within == 0 || tracking.Distance(o.At, d.Position.Fix.LngLat) <= o.Within)
	})
	return cut(byLoad(hits), 0, o.Limit)
}

func hasAll(properties, required map[string]string) bool {
	for k, v := range required {
		if got, ok := properties[k]; !ok || got != v {
			return false
		}
	}
	return true
}

func (ref reference) silent(before time.Time, limit int) []nearby.Silence {
	var list []nearby.Silence
	for _, d := range ref {
		since := d.DutyAt
		if d.Position.SeenAt.After(since) {
			since = d.Position.SeenAt
		}
		if d.Available && !d.Silent && !since.After(before) {
			list = append(list, nearby.Silence{ID: d.ID, Since: since})
		}
	}
	slices.SortFunc(list, func(a, b nearby.Silence) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(string(a.ID), string(b.ID)))
	})
	return cut(list, 0, limit)
}

func cut[T any](list []T, offset, limit int) []T {
	list = list[min(offset, len(list)):]
	if list = list[:min(max(limit, 0), len(list))]; len(list) == 0 {
		return nil
	}
	return list
}

// randomDriver makes a driver in some state. Few distinct times and counts, so that ties are
// common.
func randomDriver(r *rand.Rand, id tracking.DriverID, at tracking.LngLat) tracking.Driver {
	d := tracking.Driver{ID: id, Available: r.IntN(4) > 0, Route: route([]int{0, 0, 0, 1, 1, 2, 7, 8, 9, 30}[r.IntN(10)])}
	d.Silent = d.Available && r.IntN(5) == 0
	if r.IntN(8) > 0 {
		d.DutyAt = randomTime(r)
	}
	d.Position = randomPosition(r, at)
	if r.IntN(4) == 0 {
		d.MaxOpenTasks = new([]int{-1, 0, 1, 2, 8, 30, 31}[r.IntN(7)])
	}
	if r.IntN(3) == 0 {
		d.Properties = randomProperties(r)
	}
	return d
}

// randomProperties are of few kinds, some of them rare.
func randomProperties(r *rand.Rand) map[string]string {
	m := map[string]string{}
	for range r.IntN(4) {
		m[[]string{"a", "b", "ab", ""}[r.IntN(4)]] = []string{"", "b", "x", fmt.Sprint(r.IntN(30))}[r.IntN(4)]
	}
	return m
}

// route is a route of n tasks.
func route(n int) (stops []tracking.Stop) {
	for i := range n {
		stops = append(stops, tracking.Stop{TaskID: tracking.TaskID(fmt.Sprint(i)), Leg: tracking.LegDrop})
	}
	return stops
}

func randomPosition(r *rand.Rand, at tracking.LngLat) tracking.Position {
	var p tracking.Position
	if r.IntN(10) > 0 {
		p.SeenAt = randomTime(r)
	}
	if r.IntN(10) > 0 {
		p.Fix = tracking.Fix{LngLat: at, Time: epoch}
	}
	return p
}

func randomTime(r *rand.Rand) time.Time { return epoch.Add(time.Duration(r.IntN(50)) * time.Second) }

func driverID(i int) tracking.DriverID { return tracking.DriverID(fmt.Sprint("d", i)) }

// TestAgainstBruteForce plays random changes and asks an index and a plain list the same.
func TestAgainstBruteForce(t *testing.T) {
	all := worlds()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		gen := all[name]
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			for _, n := range []int{1, 7, 150, 1500} {
				var x nearby.Index
				ref := reference{}
				for i := range n {
					d := randomDriver(r, driverID(i), gen(r))
					x.Put(d)
					ref[d.ID] = d
				}
				for range rounds(80) {
					change(r, &x, ref, n, gen)
					at := gen(r)
					if r.IntN(8) == 0 {
						at = all["sphere"](r)
					}
					compare(t, r, &x, ref, at, n)
				}
			}
		})
	}
}

// rounds is n with TRACKING_LONG=1, and a part of it without.
func rounds(n int) int {
	if os.Getenv("TRACKING_LONG") == "1" {
		return n
	}
	return n * 2 / 5
}

// change does one random thing to both.
func change(r *rand.Rand, x *nearby.Index, ref reference, n int, gen func(*rand.Rand) tracking.LngLat) {
	id := driverID(r.IntN(n + n/10 + 1))
	switch r.IntN(6) {
	case 0:
		x.Remove(id)
		delete(ref, id)
	case 1, 2:
		d := randomDriver(r, id, gen(r))
		x.Put(d)
		ref[id] = d
	default:
		p := randomPosition(r, gen(r))
		x.Move(id, p)
		if d, ok := ref[id]; ok {
			d.Position = p
			ref[id] = d
		}
	}
}

// compare asks both everything.
func compare(t *testing.T, r *rand.Rand, x *nearby.Index, ref reference, at tracking.LngLat, n int) {
	t.Helper()
	yes, no := true, false
	f := nearby.Filter{Available: []*bool{nil, nil, &yes, &no}[r.IntN(4)]}
	offset, limit := []int{0, 0, 0, 5, n / 2, n + 3, math.MaxInt}[r.IntN(7)],
		[]int{0, 1, 3, 10, 50, 2 * n, math.MaxInt}[r.IntN(7)]
	var keep func(tracking.DriverID) bool
	if r.IntN(4) == 0 {
		digit := fmt.Sprint(r.IntN(10))
		keep = func(id tracking.DriverID) bool { return strings.HasSuffix(string(id), digit) }
	}
	if diff := gocmp.Diff(ref.near(at, f, offset, limit, keep), x.Near(at, f, offset, limit, keep)); diff != "" {
		t.Fatalf("Near(%v, offset %d, limit %d) of %d (-want +got):\n%s", at, offset, limit, n, diff)
	}
	if keep != nil {
		got := x.Among(x.Entries(keep), at, offset, limit)
		if diff := gocmp.Diff(ref.near(at, nearby.Filter{}, offset, limit, keep), got); diff != "" {
			t.Fatalf("Among(%v, offset %d, limit %d) of %d (-want +got):\n%s", at, offset, limit, n, diff)
		}
	}
	page, more := x.Page(at, f, offset, limit, make([]nearby.Hit, r.IntN(8)))
	if diff := gocmp.Diff(ref.near(at, f, offset, limit, nil), page); diff != "" {
		t.Fatalf("Page(%v, offset %d, limit %d) of %d (-want +got):\n%s", at, offset, limit, n, diff)
	}
	if all := len(ref.near(at, f, 0, math.MaxInt, nil)); more != (all > offset && all-offset > limit) {
		t.Fatalf("Page(%v, offset %d, limit %d) says %v of more, of %d", at, offset, limit, more, all)
	}

	o := tracking.Offer{
		At: at, MaxOpen: []int{-1, 0, 1, 2, 8, 9, 10, 1000}[r.IntN(8)], Limit: []int{0, 1, 4, 16, n}[r.IntN(5)],
		Full: r.IntN(6) == 0,
	}
	if r.IntN(3) == 0 {
		o.Requires = randomProperties(r)
	}
	if r.IntN(2) == 0 {
		o.SeenSince = randomTime(r)
	}
	if hits := ref.list(at, func(tracking.Driver) bool { return true }); r.IntN(2) == 0 && len(hits) > 0 {
		o.Within = hits[r.IntN(len(hits))].Distance // exactly on the edge: it counts
	}
	for range []int{0, 1, 20}[r.IntN(3)] {
		o.Exclude = append(o.Exclude, driverID(r.IntN(n)))
	}
	into := slices.Repeat([]nearby.Hit{{ID: "an earlier one"}}, r.IntN(5))
	if diff := gocmp.Diff(ref.offers(o), x.Offers(o, into)); diff != "" {
		t.Fatalf("Offers(%+v) of %d (-want +got):\n%s", o, n, diff)
	}

	before := randomTime(r)
	if diff := gocmp.Diff(ref.silent(before, limit), x.Silent(before, limit)); diff != "" {
		t.Fatalf("Silent(%v, %d) of %d (-want +got):\n%s", before, limit, n, diff)
	}
	if x.Len() != len(ref) {
		t.Fatalf("Len() = %d, want %d", x.Len(), len(ref))
	}
	if err := x.Check(); err != nil {
		t.Fatal(err)
	}
}

// Drivers with limits of their own, so many in one spot that they stand in the tree as one, come in
// the right order: those on offer by their open tasks, all by their ids.
func TestCrowdWithLimits(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	var x nearby.Index
	ref := reference{}
	spot := tracking.LngLat{Lng: 13.4, Lat: 52.5}
	for range 3 {
		for i := range 700 {
			d := tracking.Driver{
				ID: driverID(r.IntN(1000)), Available: true, MaxOpenTasks: new(10 * r.IntN(3)),
				Route:    route(r.IntN(15)),
				Position: tracking.Position{SeenAt: epoch, Fix: tracking.Fix{LngLat: spot, Time: epoch}},
			}
			if i%9 == 0 {
				d.MaxOpenTasks = nil
			}
			x.Put(d)
			ref[d.ID] = d
		}
		for _, o := range []tracking.Offer{{MaxOpen: -1}, {MaxOpen: 3}, {Full: true}} {
			for _, o.Limit = range []int{1, 5, 30, 1000} {
				o.At = spot
				if diff := gocmp.Diff(ref.offers(o), x.Offers(o, nil)); diff != "" {
					t.Fatalf("Offers(%+v) (-want +got):\n%s", o, diff)
				}
			}
		}
		for _, limit := range []int{1, 5, 30, 1000} {
			want := ref.near(spot, nearby.Filter{}, 0, limit, nil)
			if diff := gocmp.Diff(want, x.Near(spot, nearby.Filter{}, 0, limit, nil)); diff != "" {
				t.Fatalf("Near, %d of them (-want +got):\n%s", limit, diff)
			}
		}
	}
}

// Drivers who are nearer to each other than the bounds of a search are exact are found all the same,
// and a circle that is too wide is not begun again for ever.
func TestNearerThanBounds(t *testing.T) {
	const n = 4000
	for _, width := range []float64{1e-7, 1e-9, 1e-11, 1e-13} { // degrees
		r := rand.New(rand.NewPCG(13, 14))
		gen := func() tracking.LngLat {
			return tracking.LngLat{Lng: 13.4 + r.Float64()*width, Lat: 52.5 + r.Float64()*width}
		}
		var x nearby.Index
		ref := reference{}
		for i := range n {
			d := randomDriver(r, driverID(i), gen())
			x.Put(d)
			ref[d.ID] = d
		}
		for i := range 50 {
			at, limit := gen(), 1+i%30
			want := ref.near(at, nearby.Filter{}, 0, limit, nil)
			if diff := gocmp.Diff(want, x.Near(at, nearby.Filter{}, 0, limit, nil)); diff != "" {
				t.Fatalf("Near(%v, limit %d) of %d within %g° (-want +got):\n%s", at, limit, n, width, diff)
			}
		}
	}
}

// A search for more drivers than count asks for each of them a few times, and not anew with each
// wider circle when all have been asked for already.
func TestTooFewCount(t *testing.T) {
	const n = 5000
	r := rand.New(rand.NewPCG(3, 3))
	count := []tracking.DriverID{driverID(0), driverID(1), driverID(2), driverID(3)}
	var x nearby.Index
	for i := range n {
		at := tracking.LngLat{Lng: 13 + r.Float64()/2, Lat: 52 + r.Float64()/2}
		x.Put(tracking.Driver{
			ID: driverID(i), Available: true, Position: tracking.Position{Fix: tracking.Fix{LngLat: at, Time: epoch}},
		})
	}
	for range 10 {
		asked := 0
		at := tracking.LngLat{Lng: 13.2, Lat: 52.3}
		hits := x.Near(at, nearby.Filter{}, 0, len(count)+1, func(id tracking.DriverID) bool {
			asked++
			return slices.Contains(count, id)
		})
		if len(hits) != len(count) || asked > 8*n {
			t.Errorf("%d hits, and %d times it was asked for one of %d", len(hits), asked, n)
		}
	}
}

// A search reckons with more than a straight line between vectors can be wrong, and its distances are
// those of all others to the last bit.
func TestStraightLines(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	all := worlds()
	worst := 0.0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for range 20_000 {
			a, b := all[name](r), all[name](r)
			if r.IntN(2) == 0 {
				b = all["sphere"](r)
			}
			if got, want := nearby.Distance(a, b), tracking.Distance(a, b); got != want {
				t.Fatalf("from %v to %v a search reckons with %v m, want %v", a, b, got, want)
			}
			wrong, reckoned := nearby.Wrong([2]float64{a.Lng, a.Lat}, [2]float64{b.Lng, b.Lat})
			if worst = max(worst, wrong); wrong > reckoned {
				t.Fatalf("the line from %v to %v is %v wrong, reckoned with %v", a, b, wrong, reckoned)
			}
		}
	}
	if worst < 0.9 {
		t.Errorf("no line is more than %v wrong", worst)
	}
}

// Where all tasks are at one place, those who are nearest there are taken one after the other, and some
// come back: the hole that grows and fills costs no answer its exactness, near a pole and at the seam
// either.
func TestTakenOneByOne(t *testing.T) {
	const n = 1200
	for _, at := range []tracking.LngLat{
		{Lng: 80.25, Lat: 13.25}, {Lng: 25, Lat: 78}, {Lng: 179.98, Lat: -17}, {Lng: 5, Lat: 89.9},
	} {
		r := rand.New(rand.NewPCG(4, 4))
		var x nearby.Index
		ref := reference{}
		put := func(id tracking.DriverID, p tracking.LngLat, taken bool) {
			d := tracking.Driver{
				ID: id, Available: true, Position: tracking.Position{SeenAt: epoch, Fix: tracking.Fix{LngLat: p, Time: epoch}},
			}
			if taken {
				d.Route = route(1)
			}
			x.Put(d)
			ref[id] = d
		}
		for i := range n {
			put(driverID(i), tracking.LngLat{
				Lng: math.Remainder(at.Lng+r.Float64()-0.5, 360), Lat: min(90, at.Lat+(r.Float64()-0.5)/4),
			}, false)
		}
		var taken []tracking.DriverID
		for i := range 700 {
			o := tracking.Offer{At: at, MaxOpen: 1, Limit: []int{3, 12, 1, 3}[r.IntN(4)]}
			if r.IntN(20) == 0 {
				o.Within = 100 * math.Pow(300, r.Float64())
			}
			want := ref.offers(o)
			if diff := gocmp.Diff(want, x.Offers(o, nil)); diff != "" {
				t.Fatalf("about %v, after %d (-want +got):\n%s", at, i, diff)
			}
			if len(want) == 0 {
				continue
			}
			put(want[0].ID, want[0].At, true)
			taken = append(taken, want[0].ID)
			if back := i % 300; back >= 280 { // mostly the first, who are nearest
				put(taken[0], ref[taken[0]].Position.Fix.LngLat, false)
				taken = taken[1:]
			}
		}
	}
}

// A circle that touches the seam, a pole, or half the Earth must not lose the driver on its edge.
func TestOnTheEdge(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 1500 {
		at := tracking.LngLat{
			Lng: []float64{-180, 180, -179.9999999, 0, 45}[r.IntN(5)],
			Lat: []float64{0, 90, -90, 89.9999999, -60, 12}[r.IntN(6)],
		}
		far := tracking.LngLat{Lng: r.Float64()*360 - 180, Lat: math.Asin(2*r.Float64()-1) * 180 / math.Pi}
		if r.IntN(2) == 0 { // close by, at any scale
			s := math.Pow(10, -r.Float64()*12)
			far = tracking.LngLat{
				Lng: math.Remainder(at.Lng+r.NormFloat64()*s, 360), Lat: max(-90, min(90, at.Lat+r.NormFloat64()*s)),
			}
		}
		var x nearby.Index
		for i := range 80 { // enough of others that the index searches
			p := tracking.LngLat{Lng: math.Remainder(at.Lng+180, 360), Lat: -at.Lat}
			x.Put(tracking.Driver{
				ID: driverID(i), Available: true,
				Position: tracking.Position{Fix: tracking.Fix{LngLat: p, Time: epoch}},
			})
		}
		x.Put(tracking.Driver{
			ID: "far", Available: true, Position: tracking.Position{Fix: tracking.Fix{LngLat: far, Time: epoch}},
		})
		d := tracking.Distance(at, far)
		if d == 0 {
			continue // Within: 0 means no limit
		}
		hits := x.Offers(tracking.Offer{At: at, MaxOpen: -1, Within: d, Limit: 1}, nil)
		if len(hits) != 1 || hits[0].ID != "far" {
			t.Fatalf("from %v within %v m of %v: got %v", at, d, far, hits)
		}
	}
}

// TestConcurrent changes and asks an index from many goroutines.
func TestConcurrent(t *testing.T) {
	const n = 500
	var x nearby.Index
	gen := worlds()["seam"]
	seed := rand.New(rand.NewPCG(3, 4))
	for i := range n {
		x.Put(tracking.Driver{
			ID: driverID(i), Available: true,
			Position: tracking.Position{Fix: tracking.Fix{LngLat: gen(seed), Time: epoch}},
		})
	}
	var wg sync.WaitGroup
	for w := range uint64(4) {
		wg.Go(func() { // a writer for every fourth driver
			r := rand.New(rand.NewPCG(w, 0))
			for range 500 {
				id := driverID(r.IntN(n/4)*4 + int(w))
				x.Move(id, tracking.Position{SeenAt: randomTime(r), Fix: tracking.Fix{LngLat: gen(r), Time: epoch}})
				if r.IntN(4) == 0 {
					x.Put(tracking.Driver{
						ID: id, Available: true, Route: route(r.IntN(3)),
						Position: tracking.Position{Fix: tracking.Fix{LngLat: gen(r), Time: epoch}},
					})
				}
			}
		})
		wg.Go(func() {
			r := rand.New(rand.NewPCG(w, 1))
			for range 500 {
				at := gen(r)
				hits := x.Near(at, nearby.Filter{}, 0, 10, nil)
				if len(hits) != 10 {
					t.Errorf("%d hits, want 10", len(hits))
				}
				for i, h := range hits {
					if i > 0 && hits[i-1].Distance > h.Distance || h.Distance != tracking.Distance(at, h.At) {
						t.Errorf("hit %d is out of order: %v", i, hits)
					}
				}
				if hits := x.Near(at, nearby.Filter{}, 0, n+1, nil); len(hits) != n {
					t.Errorf("%d of %d drivers while they move", len(hits), n)
				}
				x.Offers(tracking.Offer{At: at, MaxOpen: 1, Limit: 5}, nil)
				x.Silent(randomTime(r), 5)
			}
		})
	}
	wg.Wait()
}
