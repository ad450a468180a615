package nearby

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tidwall/rtree"

	"github.com/seed-8aba7b13/tracking"
)

// Hit is a driver who was found, and where the index had the driver then. A store that reads another position from the row afterwards
// knows that the driver has moved meanwhile.
type Hit struct {
	ID       tracking.DriverID
	Distance float64 // metres
	At       tracking.LngLat
}

// Filter picks drivers for [Index.Near]. The zero Filter picks all that have a position.
type Filter struct {
	Available *bool
}

// Near lists drivers with a position, nearest to at first, ties by id, leaving out the first offset and returning at most limit.
// With keep, only drivers for whom it returns true count; it is called under the index's lock, perhaps more than once for a driver, and must not call the index.
// An offset beyond the end costs nothing.
func (x *Index) Near(at tracking.LngLat, f Filter, offset, limit int, keep func(tracking.DriverID) bool) []Hit {
	q := query{at: at, first: offDuty, last: numTrees - 1, hint: hintAll, offset: max(offset, 0), limit: limit}
	if f.Available != nil && *f.Available {
		q.first, q.hint = silent, hintAvailable
	} else if f.Available != nil {
		q.last, q.hint = offDuty, hintUnavailable
	}
	if keep != nil {
		q.keep = func(e *entry) bool { return keep(e.id) }
	}
	return x.search(q)
}

// Offers lists the drivers that tracking.DriverReader.Offers promises, but for the rows: candidates whose rows the store reads again.
// With keep, only drivers for whom it returns true count; see [Index.Near].
func (x *Index) Offers(o tracking.Offer, keep func(tracking.DriverID) bool) []Hit {
	q := query{at: o.At, first: onOffer, last: manyTasks, hint: hintOffers, limit: o.Limit, within: o.Within}
	if o.MaxOpen >= 0 {
		q.last = min(onOffer+o.MaxOpen-1, manyTasks)
		q.hint = hintOffers + 1 + q.last - onOffer
		if q.last < q.first {
			return nil
		}
	}
	since := o.SeenSince.UnixMilli()
	excluded := exclusion(o.Exclude)
	q.keep = func(e *entry) bool {
		return e.seen >= since && (o.MaxOpen < 0 || e.open < o.MaxOpen) && !excluded(e.id) && (keep == nil || keep(e.id))
	}
	return x.search(q)
}

// exclusion returns a fast test for being among ids.
func exclusion(ids []tracking.DriverID) func(tracking.DriverID) bool {
	if len(ids) <= 8 {
		return func(id tracking.DriverID) bool { return slices.Contains(ids, id) }
	}
	set := make(map[tracking.DriverID]struct{}, len(ids))
	for _, id := range ids {
		set[id] = struct{}{}
	}
	return func(id tracking.DriverID) bool { _, ok := set[id]; return ok }
}

// query asks for the nearest drivers in some of the trees.
type query struct {
	at            tracking.LngLat
	first, last   int // trees, both included
	hint          int
	offset, limit int
	within        float64 // metres; 0: anywhere
	keep          func(*entry) bool
}

const (
	world     = math.Pi * tracking.EarthRadius // metres: no two places are farther apart
	firstTry  = 1000.0                         // metres, for an index that has not been asked yet
	fewEnough = 64                             // so many drivers are simply all looked at
	tight     = 1.2                            // the bracket of a radius this narrow is not narrowed further
)

// search answers q.
func (x *Index) search(q query) []Hit {
	x.mu.RLock()
	defer x.mu.RUnlock()
	total := 0
	for i := q.first; i <= q.last; i++ {
		total += x.trees[i].Len()
	}
	if q.limit <= 0 || q.offset >= total {
		return nil
	}
	k := q.offset + min(q.limit, total-q.offset)

	s, _ := x.scratch.Get().(*search)
	if s == nil {
		s = new(search)
		s.visit = s.look
	}
	defer func() {
		clear(s.found)
		s.found, s.query = s.found[:0], query{}
		x.scratch.Put(s)
	}()
	s.query, s.k, s.trees = q, k, x.trees[q.first:q.last+1]

	farthest := world
	if q.within > 0 {
		farthest = min(q.within, world)
	}
	if k >= total || total <= fewEnough {
		s.scan(farthest)
	} else {
		x.bracket(s, farthest)
	}
	return s.hits(q.offset)
}

// bracket looks into wider and narrower circles until one holds k drivers and not many more, or the farthest holds fewer.
func (x *Index) bracket(s *search, farthest float64) {
	aim := max(2*s.k, 8)
	one := math.Float64frombits(x.hints[s.hint].Load())
	if one == 0 {
		one = firstTry
	}
	r := min(one*math.Sqrt(float64(aim)), farthest)
	small, large := 0.0, math.Inf(1) // a radius known to hold fewer than k, and one known to hold k
	for {
		tooMany := 8*s.k + fewEnough
		if r >= large {
			tooMany = math.MaxInt // there is no telling them apart by radius: ties, or nearly
		}
		over := s.circle(r, tooMany)
		switch {
		case over:
			if large = r; small == 0 {
				r /= 4
			} else {
				r = math.Sqrt(small * large)
			}
		case len(s.found) < s.k && r < farthest:
			if small = r; math.IsInf(large, 1) {
				r = min(farthest, r*growth(aim, len(s.found)))
				continue
			}
			r = math.Sqrt(small * large)
		default:
			if n := len(s.found); n >= s.k && tooMany != math.MaxInt {
				x.hints[s.hint].Store(math.Float64bits(r / math.Sqrt(float64(n))))
			}
			return
		}
		if large < small*tight || large < 1e-3 {
			r = large
		}
	}
}

// growth says by how much a radius that held only n drivers must grow to hold aim, if they are spread evenly.
func growth(aim, n int) float64 {
	if n == 0 {
		return 4
	}
	return max(1.3, min(4, math.Sqrt(float64(aim)/float64(n))))
}

// search is one query at work.
type search struct {
	query
	k     int
	trees []rtree.RTreeG[*entry]
	r     float64 // metres; who is farther does not count

	tooMany int
	over    bool // tooMany were found, and the search was broken off
	found   []candidate
	visit   func(min, max [2]float64, e *entry) bool // s.look, bound once
}

type candidate struct {
	distance float64
	*entry
}

func nearer(a, b candidate) int {
	if c := cmp.Compare(a.distance, b.distance); c != 0 {
		return c
	}
	return strings.Compare(string(a.id), string(b.id))
}

// circle finds the drivers within r metres, or at least the k nearest of them. It tells whether it gave up because there are tooMany.
func (s *search) circle(r float64, tooMany int) (over bool) {
	s.r, s.tooMany, s.over, s.found = r, tooMany, false, s.found[:0]
	boxes, n := cover(s.at, r)
	for _, b := range boxes[:n] {
		for i := range s.trees {
			s.trees[i].Search(b.min, b.max, s.visit)
			if s.over {
				return true
			}
		}
	}
	return false
}

// scan finds the k nearest within r metres by looking at all.
func (s *search) scan(r float64) {
	s.r, s.tooMany, s.over, s.found = r, math.MaxInt, false, s.found[:0]
	for i := range s.trees {
		s.trees[i].Scan(s.visit)
	}
}

func (s *search) look(at, _ [2]float64, e *entry) bool {
	d := tracking.Distance(s.at, tracking.LngLat{Lng: at[0], Lat: at[1]})
	if d > s.r || s.keep != nil && !s.keep(e) {
		return true
	}
	s.found = append(s.found, candidate{d, e})
	switch n := len(s.found); {
	case n > s.tooMany:
		s.over = true
		return false
	case n >= 16*s.k+4*fewEnough: // keep the nearest only, and nobody farther than them from now on
		slices.SortFunc(s.found, nearer)
		s.found = s.found[:s.k]
		s.r = s.found[s.k-1].distance
	}
	return true
}

// hits returns what was found, from the offset to the k-th.
func (s *search) hits(offset int) []Hit {
	slices.SortFunc(s.found, nearer)
	found := s.found[:min(s.k, len(s.found))]
	if offset >= len(found) {
		return nil
	}
	list := make([]Hit, 0, len(found)-offset)
	for _, c := range found[offset:] {
		list = append(list, Hit{c.id, c.distance, tracking.LngLat{Lng: c.at[0], Lat: c.at[1]}})
	}
	return list
}
