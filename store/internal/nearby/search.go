package nearby

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/tidwall/rtree"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/cover"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Hit is a driver who was found, with the place and the open tasks that the index knew of then. A
// store that reads others from the row afterwards knows that they have changed meanwhile.
type Hit struct {
	ID        tracking.DriverID
	Distance  float64 // metres
	At        tracking.LngLat
	OpenTasks int
}

// Filter picks drivers for [Index.Near]. The zero Filter picks all that have a position.
type Filter struct {
	Available *bool
}

// Near lists drivers with a position, nearest to at first, ties by id, leaving out the first offset
// and returning at most limit. With keep, only drivers for whom it returns true count; it is called
// under the index's lock, perhaps more than once for a driver, and must not call the index. An
// offset beyond the end costs nothing.
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

// Offers lists the drivers that tracking.DriverReader.Offers promises, but for the rows: candidates
// whose rows the store reads again. With keep, only drivers for whom it returns true count; see
// [Index.Near].
func (x *Index) Offers(o tracking.Offer, keep func(tracking.DriverID) bool) []Hit {
	x.mu.RLock()
	defer x.mu.RUnlock()
	q, ok := x.offers(o, keep)
	if !ok {
		return nil
	}
	return x.answer(q)
}

// offers is the query for an offer; not ok when nobody can pass it. The lock is held.
func (x *Index) offers(o tracking.Offer, keep func(tracking.DriverID) bool) (q query, ok bool) {
	q = query{
		at: o.At, first: limited, last: manyTasks, hint: hintOffers, limit: o.Limit, within: o.Within, byLoad: true,
	}
	switch {
	case o.Full:
		q.first, o.MaxOpen = full, -1
	case o.MaxOpen >= 0:
		q.last = min(onOffer+o.MaxOpen-1, manyTasks)
		q.hint = hintOffers + 1 + q.last - limited
	}
	var required []property
	if len(o.Requires) > 0 {
		required = propertiesOf(o.Requires)
		none := false
		if q.among, none = x.among(required); none {
			return q, false
		}
	}
	since := rows.Ceil(o.SeenSince)
	excluded := exclusion(o.Exclude)
	q.keep = func(e *entry) bool {
		return e.seen >= since && (o.MaxOpen < 0 || e.open < o.MaxOpen || e.tree == limited) && !excluded(e.id) &&
			(required == nil || e.has(required)) && (keep == nil || keep(e.id))
	}
	return q, true
}

// exclusion returns a fast test for being among ids.
func exclusion(ids []tracking.DriverID) func(tracking.DriverID) bool {
	if len(ids) <= 8 {
		return func(id tracking.DriverID) bool { return slices.Contains(ids, id) }
	}
	if slices.IsSorted(ids) { // as those of a task are
		return func(id tracking.DriverID) bool { _, found := slices.BinarySearch(ids, id); return found }
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
	among         []*entry // only these count; nil: all
	byLoad        bool     // of drivers equally near those with fewer open tasks first
}

const (
	world     = math.Pi * tracking.EarthRadius // metres: no two places are farther apart
	firstTry  = 1000.0                         // metres, for an index that has not been asked yet
	fewEnough = 64                             // so many drivers are simply all looked at
	tight     = 1.2                            // the bracket of a radius this narrow is not narrowed further

	largeScratch = 4 * fewEnough // candidates; what a query with more has used is not kept
)

// search answers q.
func (x *Index) search(q query) []Hit {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.answer(q)
}

// answer answers q. The lock is held.
func (x *Index) answer(q query) []Hit {
	total := 0
	for i := q.first; i <= q.last; i++ {
		total += x.located[i]
	}
	if q.limit <= 0 || q.offset >= total {
		return nil
	}
	k := q.offset + min(q.limit, total-q.offset)

	s, _ := x.scratch.Get().(*search)
	if s == nil {
		s = new(search)
		s.visit, s.order = s.look, s.compare
	}
	defer func() {
		if cap(s.found) > largeScratch || cap(s.nearest) > largeScratch {
			return
		}
		clear(s.found[:cap(s.found)])
		clear(s.nearest[:cap(s.nearest)])
		s.worst, s.query = hit{}, query{}
		x.scratch.Put(s)
	}()
	s.query, s.k, s.trees = q, k, x.trees[q.first:q.last+1]

	farthest := world
	if q.within > 0 {
		farthest = min(q.within, world)
	}
	if q.among != nil {
		s.scanAmong(farthest)
	} else if k >= total || total <= fewEnough {
		s.scan(farthest)
	} else {
		x.bracket(s, farthest)
	}
	return s.hits()
}

// bracket looks into wider and narrower circles until one holds k drivers and not many more, or the
// farthest holds fewer.
func (x *Index) bracket(s *search, farthest float64) {
	aim := max(8*s.k/5, 8)
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
		case len(s.nearest) < s.k && r < farthest:
			if small = r; math.IsInf(large, 1) {
				r = min(farthest, r*growth(aim, len(s.nearest)))
				continue
			}
			r = math.Sqrt(small * large)
		default:
			if n := len(s.nearest); n >= s.k && tooMany != math.MaxInt {
				// halfway from the last one, as k drivers tell a density only roughly
				now := s.nearest[n-1].distance / math.Sqrt(float64(n))
				x.hints[s.hint].Store(math.Float64bits(max((one+now)/2, 1e-3)))
			}
			return
		}
		if large < small*tight || large < 1e-3 {
			r = large
		}
	}
}

// growth says by how much a radius that held only n drivers must grow to hold aim, if they are
// spread evenly.
func growth(aim, n int) float64 {
	if n == 0 {
		return 4
	}
	return max(1.3, min(4, math.Sqrt(float64(aim)/float64(n))))
}

// search is one query at work.
//
// What a circle holds is first judged by an estimate of the distance that costs a few products; the
// distance itself, and what keep says, is asked only of those who may be among the k nearest.
type search struct {
	query
	estimate
	k     int
	trees []rtree.RTreeG[*entry]
	r     float64 // metres; who is farther does not count

	tooMany int
	over    bool // tooMany were found, and the search was broken off
	found   []candidate
	sifted  int // so many of found were let pass by keep
	next    int // with so many found they are sifted
	nearest []hit
	full    bool // k were found …
	worst   hit  // … and this is the last of them: who comes after does not count

	visit func(min, max [2]float64, e *entry) bool // s.look, bound once
	order func(a, b hit) int                       // s.compare, bound once
}

// candidate is a driver who may be among the nearest.
type candidate struct {
	estimate float64    // metres
	at       [2]float64 // as in the entry, which is a cache miss away
	driver   *entry
}

// hit is a driver whose distance is known.
type hit struct {
	distance float64 // metres
	*entry
}

// estimate tells distances from a place to others nearby.
type estimate struct {
	from   tracking.LngLat
	scale  float64 // metres in a degree of longitude there; 0: the estimate is the distance itself
	margin float64 // by which part the distance may differ
}

const metresPerDegree = math.Pi / 180 * tracking.EarthRadius

// around prepares e for places no more than r metres north or south of from, on the same side of
// ±180° unless across.
//
// The estimate takes the Earth for flat there. A step of d radians to the north changes the cosine
// of a latitude φ by no more than d·tan φ + d² of itself, and a distance by half as much at most;
// that an arc is longer than its chord is far less. Where that is too much, the estimate is the
// distance.
func (e *estimate) around(from tracking.LngLat, r float64, across bool) {
	d := r/tracking.EarthRadius + 1e-8 // a box is a little larger than its circle
	φ := from.Lat * math.Pi / 180
	*e = estimate{from: from, scale: metresPerDegree * math.Cos(φ), margin: d*math.Abs(math.Tan(φ)) + d*d + 1e-9}
	if across || e.margin > 0.05 {
		e.scale, e.margin = 0, 0
	}
}

// to estimates how far it is to a place.
func (e *estimate) to(at [2]float64) float64 {
	if e.scale == 0 {
		return tracking.Distance(e.from, tracking.LngLat{Lng: at[0], Lat: at[1]})
	}
	x, y := (at[0]-e.from.Lng)*e.scale, (at[1]-e.from.Lat)*metresPerDegree
	return math.Sqrt(x*x + y*y)
}

// compare orders hits: by distance, those equally near by open tasks where the query asks for it,
// then by id.
func (s *search) compare(a, b hit) int {
	if c := cmp.Compare(a.distance, b.distance); c != 0 {
		return c
	}
	if s.byLoad && a.open != b.open {
		return cmp.Compare(a.open, b.open)
	}
	return strings.Compare(string(a.id), string(b.id))
}

// begin forgets what was found.
func (s *search) begin(r float64, tooMany int, across bool) {
	s.around(s.at, r, across)
	s.r, s.tooMany, s.over, s.found, s.sifted = r, tooMany, false, s.found[:0], 0
	s.next = min(tooMany, s.prunes()) + 1
	s.nearest, s.full, s.worst = s.nearest[:0], false, hit{}
}

// prunes is how many candidates are cut down to the k nearest.
func (s *search) prunes() int { return 16*s.k + 4*fewEnough }

// circle finds the drivers within r metres, or at least the k nearest of them. It tells whether it
// gave up because there are tooMany.
func (s *search) circle(r float64, tooMany int) (over bool) {
	boxes, n := cover.Circle(s.at, r)
	s.begin(r, tooMany, n > 1)
	for _, b := range boxes[:n] {
		for i := range s.trees {
			s.trees[i].Search(b.Min, b.Max, s.visit)
			if s.over {
				return true
			}
		}
	}
	s.pick()
	return false
}

// scan finds the k nearest within r metres by looking at all.
func (s *search) scan(r float64) {
	s.begin(r, math.MaxInt, true)
	for i := range s.trees {
		s.trees[i].Scan(s.visit)
	}
	s.pick()
}

// scanAmong finds the k nearest of those that count.
func (s *search) scanAmong(r float64) {
	s.begin(r, math.MaxInt, true)
	for _, e := range s.among {
		if s.first <= e.tree && e.tree <= s.last {
			s.look(e.at, e.at, e)
		}
	}
	s.pick()
}

func (s *search) look(at, to [2]float64, e *entry) bool {
	estimate := s.to(at)
	if estimate*(1-s.margin) > s.r {
		return true
	}
	if at != to {
		return s.lookInto(e.stands, estimate)
	}
	return s.add(candidate{estimate, at, e})
}

// add keeps a candidate, and reports whether the search goes on.
func (s *search) add(c candidate) bool {
	s.found = append(s.found, c)
	return len(s.found) < s.next || s.sift()
}

// sift lets go of the candidates that do not count, and reports whether the search goes on.
func (s *search) sift() bool {
	if s.keep != nil {
		rest := slices.DeleteFunc(s.found[s.sifted:], func(c candidate) bool { return !s.keep(c.driver) })
		s.found = s.found[:s.sifted+len(rest)]
	}
	s.sifted = len(s.found)
	if s.sifted > s.tooMany {
		inside := 0
		for _, c := range s.found {
			if c.estimate*(1+s.margin) <= s.r {
				inside++
			}
		}
		if s.over = inside > s.tooMany; s.over {
			return false
		}
	}
	if s.sifted >= s.prunes() { // the nearest only, and nobody who comes after them from now on
		s.pick()
		s.found = s.found[:0]
		for _, h := range s.nearest {
			s.found = append(s.found, candidate{s.to(h.at), h.at, h.entry})
		}
		if s.sifted = len(s.found); s.sifted == s.k {
			s.full, s.worst = true, s.nearest[s.k-1]
			s.r = s.worst.distance
		}
	}
	s.next = min(2*s.sifted, s.prunes()) + 1
	return true
}

// pick finds the k nearest of those found.
func (s *search) pick() {
	sortByEstimate(s.found)
	s.nearest = s.nearest[:0]
	enough := math.Inf(1) // k are within so many metres
	for _, c := range s.found {
		if c.estimate*(1-s.margin) > enough {
			break
		}
		if s.keep != nil && s.sifted < len(s.found) && !s.keep(c.driver) {
			continue
		}
		d := c.estimate
		if s.scale != 0 {
			d = tracking.Distance(s.at, tracking.LngLat{Lng: c.at[0], Lat: c.at[1]})
		}
		if d > s.r {
			continue
		}
		s.nearest = append(s.nearest, hit{d, c.driver})
		if len(s.nearest) == s.k {
			enough = 0
			for _, h := range s.nearest {
				enough = max(enough, h.distance)
			}
		}
	}
	slices.SortFunc(s.nearest, s.order)
	s.nearest = s.nearest[:min(s.k, len(s.nearest))]
}

// sortByEstimate sorts few candidates by insertion, which takes half as long as slices.SortFunc does.
func sortByEstimate(list []candidate) {
	if len(list) > fewEnough {
		slices.SortFunc(list, func(a, b candidate) int { return cmp.Compare(a.estimate, b.estimate) })
		return
	}
	for i := 1; i < len(list); i++ {
		c, j := list[i], i
		for ; j > 0 && list[j-1].estimate > c.estimate; j-- {
			list[j] = list[j-1]
		}
		list[j] = c
	}
}

// hits returns the nearest, from the offset to the k-th.
func (s *search) hits() []Hit {
	if s.offset >= len(s.nearest) {
		return nil
	}
	list := make([]Hit, 0, len(s.nearest)-s.offset)
	for _, h := range s.nearest[s.offset:] {
		list = append(list, Hit{h.id, h.distance, tracking.LngLat{Lng: h.at[0], Lat: h.at[1]}, h.open})
	}
	return list
}
