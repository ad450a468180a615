package nearby

import (
	"cmp"
	"math"
	"slices"

	"github.com/tidwall/rtree"
)

// tree holds the drivers of one kind by where they are: an R-tree not of drivers but of pages,
// each of which holds a few dozen who are near each other. So the R-tree is small and seldom
// changes: who moves about within the rectangle of his page changes a number in it, and a search
// reads those of a page one after the other.
type tree struct {
	pages  rtree.RTreeG[*page]
	crowds map[[2]float64]*page // those pages that are a crowd
	len    int                  // drivers
}

// page is drivers who are near each other, or a crowd: many in one spot.
type page struct {
	slots    []slot
	crowd    bool
	left     int32      // so many went since it was last measured
	min, max [2]float64 // longitudes and latitudes: all are within, and by these it is in the R-tree
	members  []*Entry   // of a crowd; see there
}

// slot is a driver in a page.
type slot struct {
	at vector
	*Entry
}

const (
	pageSize = 48           // with so many a page is divided
	sparse   = pageSize / 8 // and with so few left it is given up
	loyal    = pageSize / 4 // with so many it does not reach out for who is far from it
	passed   = 16           // with so many crowds nearer than any page a new one begins
)

// vector is a place as a point of the unit sphere. The straight line between two of them orders
// places by distance, everywhere on the Earth alike, and costs a few products.
type vector [3]float64

func vectorOf(at [2]float64) vector {
	sinφ, cosφ := math.Sincos(at[1] * math.Pi / 180)
	sinλ, cosλ := math.Sincos(at[0] * math.Pi / 180)
	return vector{cosφ * cosλ, cosφ * sinλ, sinφ}
}

// square is the square of the straight line between two places.
func (v *vector) square(o *vector) float64 {
	x, y, z := v[0]-o[0], v[1]-o[1], v[2]-o[2]
	return x*x + y*y + z*z
}

func (p *page) holds(at [2]float64) bool {
	return p.min[0] <= at[0] && at[0] <= p.max[0] && p.min[1] <= at[1] && at[1] <= p.max[1]
}

// add puts e into the tree.
func (t *tree) add(e *Entry) {
	t.len++
	t.insert(e)
}

func (t *tree) insert(e *Entry) {
	if p := t.crowds[e.at]; p != nil {
		p.join(e)
		return
	}
	p := t.pageFor(e.at)
	if p == nil {
		p = &page{min: e.at, max: e.at}
		t.pages.Insert(p.min, p.max, p)
	} else if !p.holds(e.at) {
		t.stretch(p, e.at)
	}
	e.page, e.slot = p, uint8(len(p.slots))
	p.slots = append(p.slots, slot{vectorOf(e.at), e})
	if len(p.slots) >= pageSize {
		t.divide(p)
	}
}

// pageFor finds the page into which who is at a place belongs: one that holds the place, else the
// nearest; nil for a new one.
func (t *tree) pageFor(at [2]float64) (found *page) {
	if found = t.pageThatHolds(at); found != nil {
		return found
	}
	crowds := 0
	t.pages.Nearby(rtree.BoxDist[float64, *page](at, at, nil), func(_, _ [2]float64, p *page, square float64) bool {
		if p.crowd {
			crowds++
			return crowds < passed
		}
		width, height := p.max[0]-p.min[0], p.max[1]-p.min[1]
		if len(p.slots) < loyal || square <= 4*(width*width+height*height) {
			found = p
		}
		return false
	})
	return found
}

// pageThatHolds finds a page, and no crowd, that holds a place, or nil.
func (t *tree) pageThatHolds(at [2]float64) (found *page) {
	t.pages.Search(at, at, func(_, _ [2]float64, p *page) bool {
		if !p.crowd {
			found = p
		}
		return found == nil
	})
	return found
}

// stretch makes a page hold a place.
func (t *tree) stretch(p *page, at [2]float64) {
	t.resize(p, [2]float64{min(p.min[0], at[0]), min(p.min[1], at[1])},
		[2]float64{max(p.max[0], at[0]), max(p.max[1], at[1])})
}

func (t *tree) resize(p *page, min, max [2]float64) {
	t.pages.Replace(p.min, p.max, p, min, max, p)
	p.min, p.max = min, max
}

// remove takes e out of the tree.
func (t *tree) remove(e *Entry) {
	t.len--
	p := e.page
	if p.crowd {
		t.leave(p, e)
		return
	}
	p.drop(e)
	switch p.left++; {
	case len(p.slots) == 0:
		t.pages.Delete(p.min, p.max, p)
	case len(p.slots) == sparse: // the others go to pages near by
		t.pages.Delete(p.min, p.max, p)
		for i := range p.slots {
			t.insert(p.slots[i].Entry)
		}
	case p.left >= pageSize:
		p.left = 0
		if min, max := bounds(p.slots); min != p.min || max != p.max {
			t.resize(p, min, max)
		}
	}
}

// drop takes e out of a page.
func (p *page) drop(e *Entry) {
	last := len(p.slots) - 1
	p.slots[e.slot] = p.slots[last]
	p.slots[e.slot].slot = e.slot
	p.slots[last] = slot{}
	p.slots = p.slots[:last]
	e.page = nil
}

// move takes e to another place.
func (t *tree) move(e *Entry, at [2]float64) {
	if p := e.page; !p.crowd && p.holds(at) && t.crowds[at] == nil {
		e.at = at
		p.slots[e.slot].at = vectorOf(at)
		return
	}
	if p := t.pageThatHolds(at); p == nil && e.page.near(at) && t.crowds[at] == nil { // into a gap
		t.stretch(e.page, at)
		e.at = at
		e.page.slots[e.slot].at = vectorOf(at)
		return
	}
	t.remove(e)
	e.at = at
	t.add(e)
}

// near reports whether a place is so near to a page that a driver of it who goes there may take it
// along.
func (p *page) near(at [2]float64) bool {
	x, y := (p.max[0]-p.min[0])/4, (p.max[1]-p.min[1])/4
	return !p.crowd && p.min[0]-x <= at[0] && at[0] <= p.max[0]+x && p.min[1]-y <= at[1] && at[1] <= p.max[1]+y
}

// divide makes two pages of one, or a crowd of one whose drivers are all in one spot.
func (t *tree) divide(p *page) {
	min, max := bounds(p.slots)
	if min == max {
		t.assemble(p)
		return
	}
	axis := 0
	if max[1]-min[1] >= (max[0]-min[0])*math.Cos((min[1]+max[1])/2*math.Pi/180) && max[1] > min[1] || max[0] == min[0] {
		axis = 1
	}
	slices.SortFunc(p.slots, func(a, b slot) int { return cmp.Compare(a.Entry.at[axis], b.Entry.at[axis]) })
	at := cutAt(p.slots, axis)
	upper := append(make([]slot, 0, pageSize), p.slots[at:]...)
	clear(p.slots[at:])
	p.slots = p.slots[:at]
	for i := range p.slots {
		p.slots[i].slot = uint8(i)
	}
	p.left = 0
	low, high := bounds(p.slots)
	t.resize(p, low, high)
	q := &page{slots: upper}
	q.min, q.max = bounds(upper)
	for i := range q.slots {
		q.slots[i].page, q.slots[i].slot = q, uint8(i)
	}
	t.pages.Insert(q.min, q.max, q)
}

// cutAt says where to divide slots in order: in the widest gap about the middle, and not between
// two in one spot.
func cutAt(slots []slot, axis int) int {
	gap := func(i int) float64 { return slots[i].Entry.at[axis] - slots[i-1].Entry.at[axis] }
	n := len(slots)
	best := n / 2
	for i := n * 2 / 5; i <= n*3/5; i++ {
		if gap(i) > gap(best) {
			best = i
		}
	}
	for away := 1; gap(best) == 0; away++ {
		if i := n/2 - away; i > 0 && gap(i) > 0 {
			best = i
		} else if i := n/2 + away; i < n && gap(i) > 0 {
			best = i
		}
	}
	return best
}

// bounds is the rectangle of those in slots, of which there is one at least.
func bounds(slots []slot) (low, high [2]float64) {
	low, high = slots[0].Entry.at, slots[0].Entry.at
	for i := range slots {
		at := slots[i].Entry.at
		low = [2]float64{min(low[0], at[0]), min(low[1], at[1])}
		high = [2]float64{max(high[0], at[0]), max(high[1], at[1])}
	}
	return low, high
}

// each calls f with all drivers.
func (t *tree) each(f func(*Entry)) {
	t.pages.Scan(func(_, _ [2]float64, p *page) bool {
		for i := range p.slots {
			f(p.slots[i].Entry)
		}
		for _, e := range p.members {
			f(e)
		}
		return true
	})
}
