package nearby

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/seed-8aba7b13/tracking"
)

// Parts is by how many different requirements tasks wait, and traits how many properties drivers
// have.
func (x *Index) Parts() (parts, traits int) {
	x.lock()
	defer x.mu.Unlock()
	return len(x.waiting.others), len(x.traits)
}

// Queued is how many drivers and tasks the next look of Matches, by the same query, goes through.
func (x *Index) Queued() int {
	x.lock()
	defer x.mu.Unlock()
	return x.matches.drivers.len() + x.matches.tasks.len()
}

// Check looks whether the trees are as they should be: every page in its part of space and as large
// as those in it, every driver in the slot of the page that he knows, crowds in order.
func (x *Index) Check() error {
	x.lock()
	defer x.mu.Unlock()
	located := 0
	for i := range x.trees {
		n, err := x.trees[i].check(uint8(i))
		if err != nil {
			return fmt.Errorf("tree %d: %w", i, err)
		}
		located += n
	}
	for _, e := range x.drivers {
		if e.located() {
			located--
		}
	}
	if located != 0 {
		return fmt.Errorf("%d drivers more in the trees than have a position", located)
	}
	return nil
}

// check returns how many drivers are in a tree.
func (t *tree) check(kind uint8) (drivers int, err error) {
	nodes, pages := 0, 0
	var part func(l link, low, high vector) error
	part = func(l link, low, high vector) error {
		if l < 0 {
			p := t.pages[^l]
			pages++
			drivers += int(p.n)
			if p.number != l || !within(&p.low, low, high) || !within(&p.high, low, high) {
				return fmt.Errorf("page %d, known as %d, of %v to %v, is not within %v to %v",
					p.number, l, p.low, p.high, low, high)
			}
			return p.check(kind)
		}
		nodes++
		n := t.nodes[l]
		lows, highs := [2]vector{low, low}, [2]vector{high, high}
		lows[0][n.axis], highs[0][n.axis] = n.low[0], n.low[1]
		lows[1][n.axis], highs[1][n.axis] = n.high[0], n.high[1]
		if n.low[1] >= n.cut || n.cut > n.high[0] {
			return fmt.Errorf("the parts of node %d overlap: %v, %d, %v", l, n.low, n.cut, n.high)
		}
		return cmp.Or(part(n.parts[0], lows[0], highs[0]), part(n.parts[1], lows[1], highs[1]))
	}
	if t.leaves() > 0 {
		err = part(t.root, vector{-unit, -unit, -unit}, vector{unit, unit, unit})
	}
	if err == nil && (drivers != t.len || pages != t.leaves() || nodes != max(pages-1, 0) ||
		nodes+len(t.freeNodes) != len(t.nodes)) {
		err = fmt.Errorf("%d drivers of %d, %d pages of %d, %d nodes of %d with %d free",
			drivers, t.len, pages, t.leaves(), nodes, len(t.nodes), len(t.freeNodes))
	}
	return drivers, err
}

func within(v *vector, low, high vector) bool {
	return (&page{low: low, high: high}).holds(v)
}

func (p *page) check(kind uint8) error {
	known := func(e *Entry) bool {
		return e.page == p && e.tree == kind && within(new(vectorOf(e.at)), p.low, p.high)
	}
	if p.spot == nil {
		if p.n <= 0 || p.n >= pageSize {
			return fmt.Errorf("a page with %d drivers", p.n)
		}
		for i, e := range p.drivers[:p.n] {
			if !known(e) || int(e.slot) != i || p.at[i] != vectorOf(e.at) {
				return fmt.Errorf("driver %s is elsewhere than he knows", e.id)
			}
		}
		return nil
	}
	members := p.spot.members
	if p.low != p.high || len(members) != int(p.n) || !slices.IsSortedFunc(members, compareInSpot) {
		return fmt.Errorf("the %d members of the spot at %v, of %d, are out of order", len(members), p.low, p.n)
	}
	for _, e := range members {
		if !known(e) {
			return fmt.Errorf("driver %s is in a spot where he is not", e.id)
		}
	}
	return nil
}

// Pages is how many pages all trees have.
func (x *Index) Pages() (n int) {
	x.lock()
	defer x.mu.Unlock()
	for i := range x.trees {
		n += x.trees[i].leaves()
	}
	return n
}

// About is in how many pages somebody may be within so many metres of a place.
func (x *Index) About(at tracking.LngLat, metres float64) (n int) {
	x.lock()
	defer x.mu.Unlock()
	s := search{from: vectorOf([2]float64{at.Lng, at.Lat}), bound: straight(metres)}
	for i := range x.trees {
		for _, p := range x.trees[i].pages {
			if p != nil && !s.beyond(p) {
				n++
			}
		}
	}
	return n
}

// Renewed is about how many nodes at most were built anew at once, and a half more.
func (x *Index) Renewed() (most int) {
	x.lock()
	defer x.mu.Unlock()
	for i := range x.trees {
		most = max(most, cap(x.trees[i].freeNodes))
	}
	return most
}

// Longest is the longest way from the root of a tree to a page of it.
func (x *Index) Longest() (most int) {
	x.lock()
	defer x.mu.Unlock()
	for i := range x.trees {
		for _, p := range x.trees[i].pages {
			if p != nil {
				most = max(most, len(x.trees[i].wayTo(p)))
			}
		}
	}
	return most
}

// Entries are those of the drivers for whom keep is true.
func (x *Index) Entries(keep func(tracking.DriverID) bool) (list []*Entry) {
	for id, e := range x.drivers {
		if keep(id) {
			list = append(list, e)
		}
	}
	return list
}

// Distance is the distance between two places as a search computes it.
func Distance(a, b tracking.LngLat) float64 {
	s := search{query: query{at: a}, cos: math.Cos(a.Lat * rad)}
	return arc(s.haversine(b))
}

// Wrong is by how much the straight line between two places as vectors is another than it is, in the
// units of those, and how much a search reckons with.
func Wrong(a, b [2]float64) (wrong, reckoned float64) {
	v, w := vectorOf(a), vectorOf(b)
	distance := tracking.Distance(tracking.LngLat{Lng: a[0], Lat: a[1]}, tracking.LngLat{Lng: b[0], Lat: b[1]})
	line := 2 * unit * math.Sin(distance/tracking.EarthRadius/2)
	return math.Abs(math.Sqrt(float64(v.square(&w))) - line), loose
}

// Pending is how many moves the trees do not show yet.
func (x *Index) Pending() int { return int(x.pending.len.Load()) }
