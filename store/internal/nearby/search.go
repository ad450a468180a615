package nearby

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/cover"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Hit is a driver who was found, with the place and the open tasks that the index knew of then. A
// store that reads others from the row afterwards knows that they have changed meanwhile.
type Hit struct {
	Entry     *Entry // nil unless it is the store's own
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
		q.keep = func(e *Entry) bool { return keep(e.id) }
	}
	return x.search(q)
}

// Offers lists the drivers that tracking.DriverReader.Offers promises, but for the rows: candidates
// whose rows the store reads again. With keep, only drivers for whom it returns true count; see
// [Index.Near].
func (x *Index) Offers(o tracking.Offer, keep func(tracking.DriverID) bool) []Hit {
	x.rlock()
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
	q.keep = func(e *Entry) bool {
		return e.seen >= since && (o.MaxOpen < 0 || int(e.open) < o.MaxOpen || e.tree == limited) && !excluded(e.id) &&
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
	keep          func(*Entry) bool
	among         []*Entry // only these count; nil: all
	byLoad        bool     // of drivers equally near those with fewer open tasks first
}

const (
	world     = math.Pi * tracking.EarthRadius // metres: no two places are farther apart
	firstTry  = 1000.0                         // metres, for an index that has not been asked yet
	fewEnough = 64                             // so many drivers are simply all looked at
	manyPages = 32                             // with so many looked at a circle may be begun again, narrower

	largeScratch = 8 * fewEnough // candidates; what a query with more has used is not kept
)

// search answers q.
func (x *Index) search(q query) []Hit {
	x.rlock()
	defer x.mu.RUnlock()
	return x.answer(q)
}

// answer answers q. The lock is held.
func (x *Index) answer(q query) []Hit {
	total := 0
	for i := q.first; i <= q.last; i++ {
		total += x.trees[i].len
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
		s.home, s.worst, s.query = nil, hit{}, query{}
		x.scratch.Put(s)
	}()
	s.query, s.k, s.from, s.trees = q, k, vectorOf([2]float64{q.at.Lng, q.at.Lat}), x.trees[q.first:q.last+1]

	farthest := world
	if q.within > 0 {
		farthest = min(q.within, world)
	}
	if q.among != nil {
		s.scanAmong(farthest)
	} else if k >= total || total <= fewEnough {
		s.scan(farthest)
	} else {
		x.circles(s, farthest, total)
	}
	s.sift()
	s.pick()
	return s.hits()
}

// circles looks into one circle if the page about the place tells how wide it must be, else into
// wider ones until one holds k drivers, is the farthest, or all drivers have been looked at.
func (x *Index) circles(s *search, farthest float64, total int) {
	if r, ok := s.aroundHome(farthest); ok {
		for !s.circle(r) {
			r = radius(s.bound)
			s.begin(r)
		}
		return
	}
	aim := max(8*s.k/5, 8)
	one := math.Float64frombits(x.hints[s.hint].Load())
	if one == 0 {
		one = firstTry
	}
	hollow, r := 0.0, min(one*math.Sqrt(float64(aim)), farthest)
	asked := x.askedAbout(s)
	if was := asked.Load(); was != nil && was.at == s.at && was.hint == s.hint {
		hollow = was.nearest
		r = min(wider(hollow, was.last, math.Sqrt(float64(aim)/float64(was.n))), farthest)
	}
	for {
		s.begin(r)
		all := s.circle(r)
		n := len(s.found)
		switch {
		case !all:
			r = radius(s.bound)
		case n < s.k && r < farthest && s.seen < total:
			r, hollow = min(farthest, wider(hollow, r, growth(aim, n))), hollow/2 // it may have been wrong
		default:
			if n >= s.k {
				last := radius(s.found[n-1].square)
				// halfway from the last one, as k drivers tell a density only roughly
				x.hints[s.hint].Store(math.Float64bits(max((one+last/math.Sqrt(float64(n)))/2, 1e-3)))
				asked.Store(&asking{s.at, s.hint, n, math.Sqrt(s.found[0].square) * tracking.EarthRadius, last})
			}
			return
		}
	}
}

// asking is what a query found at a place without a page. Whoever asks there again, as a depot does
// all the time, mostly finds those who are nearest farther and farther away, as they are taken, and
// all about as far: so the next radius is reckoned from the nearest one on, not from the place.
type asking struct {
	at            tracking.LngLat
	hint, n       int
	nearest, last float64 // metres to the first and to the n-th, the first not too far
}

// askedAbout is where the last query like s about its place is kept, or about another one.
func (x *Index) askedAbout(s *search) *atomic.Pointer[asking] {
	sum := math.Float64bits(s.at.Lng)*0x9e3779b97f4a7c15 ^ math.Float64bits(s.at.Lat)*0xc2b2ae3d27d4eb4f ^ uint64(s.hint)
	return &x.asked[(sum^sum>>32)%uint64(len(x.asked))]
}

// wider is a radius larger than r, which is grown by a factor beyond the hollow radius.
func wider(hollow, r, factor float64) float64 {
	hollow = min(hollow, r)
	return max(math.Sqrt(hollow*hollow+(r*r-hollow*hollow)*factor*factor), r*(1+1e-6)+1e-3)
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
// Who counts is first judged by the straight line; the distance itself is asked only of those who
// may be among the k nearest.
type search struct {
	query
	k     int
	trees []tree
	from  vector
	bound float64 // square of a straight line: who is farther does not count

	home  *page // has been looked at
	pages int   // looked at in this circle
	seen  int   // drivers in them no farther than the bound
	wide  float64
	aside cover.Box // pages there have been looked at …
	twice bool      // … if this is set
	flat  flat
	over  bool // the circle was much too wide, and the search was broken off

	found   []candidate
	sorted  int // so many of found stand in order, all of them kept
	next    int // with so many found those that do not count are let go
	nearest []hit
	full    bool // k were found …
	worst   hit  // … and this is the last of them: who comes after does not count

	touched int64 // so that the compiler leaves a read where it stands

	visit func(min, max [2]float64, p *page) bool // s.look, bound once
	order func(a, b hit) int                      // s.compare, bound once
}

// candidate is a driver who may be among the nearest.
type candidate struct {
	square float64 // of the straight line
	driver *Entry
	kept   bool // keep has let the driver pass
}

// hit is a driver whose distance is known.
type hit struct {
	distance float64 // metres
	at       [2]float64
	*Entry
}

// line is the square of the straight line that is r metres as an arc. What straight and radius, the
// way back, return is a little larger than what it stands for.
func line(r float64) float64 {
	return math.Pow(2*math.Sin(min(r/tracking.EarthRadius, math.Pi)/2), 2)
}

func straight(r float64) float64 { return surely(line(r)) }

func radius(square float64) float64 {
	return 2*tracking.EarthRadius*math.Asin(min(1, math.Sqrt(square)/2))*(1+1e-12) + 1e-6
}

// surely is the square of a line so much longer than another that whoever is beyond it is farther
// by [tracking.Distance] too, however either was rounded: vectors are right to about 2e-16 of the
// Earth's radius, and lines to as much of themselves.
func surely(square float64) float64 {
	line := math.Sqrt(square)*(1+1e-12) + 1e-13
	return line * line
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

// begin forgets what was found, and who is farther than r metres.
func (s *search) begin(r float64) {
	s.bound = straight(r)
	s.home, s.found, s.sorted, s.next, s.full = nil, s.found[:0], 0, s.k+s.step(), false
	s.flat = flat{}
}

// step is how many candidates more are found before those that do not count are let go.
func (s *search) step() int { return max(s.k/4, 4) }

// aroundHome looks at the page about the place, and says how wide a circle holds k drivers if that
// has as many.
func (s *search) aroundHome(farthest float64) (r float64, ok bool) {
	if s.k > pageSize/2 {
		return 0, false
	}
	most := &s.trees[0]
	for i := range s.trees {
		if s.trees[i].len > most.len {
			most = &s.trees[i]
		}
	}
	s.begin(farthest)
	s.twice, s.wide = false, 0
	at := [2]float64{s.at.Lng, s.at.Lat}
	most.pages.Search(at, at, func(_, _ [2]float64, p *page) bool {
		s.home = p
		return false
	})
	if s.home == nil {
		return 0, false
	}
	home := s.home
	s.home = nil
	s.look(home.min, home.max, home)
	s.home = home
	s.sift()
	return min(radius(s.bound), farthest), len(s.found) >= s.k
}

// circle finds the drivers within r metres, or at least the k nearest of them. It gives up when a
// much narrower one, by the bound, would do as well.
func (s *search) circle(r float64) (all bool) {
	boxes, n := cover.Circle(s.at, r)
	s.pages, s.seen, s.over = 0, 0, false
	s.wide = line(max(r/2-1e-6, 0)) // so that the next radius is at most half
	s.flat = flatOf(boxes[:n])
	for i, b := range boxes[:n] {
		s.twice, s.aside = i > 0, boxes[0]
		for j := range s.trees {
			s.trees[j].pages.Search(b.Min, b.Max, s.visit)
			if s.over {
				return false
			}
		}
	}
	s.sift()
	return true
}

// scan finds the k nearest within r metres by looking at all.
func (s *search) scan(r float64) {
	s.begin(r)
	s.twice, s.wide = false, 0
	for i := range s.trees {
		s.trees[i].pages.Scan(s.visit)
	}
}

// scanAmong finds the k nearest of those that count.
func (s *search) scanAmong(r float64) {
	s.begin(r)
	for _, e := range s.among {
		if tree := int(e.tree); s.first <= tree && tree <= s.last {
			v := vectorOf(e.at)
			if square := v.square(&s.from); square <= s.bound {
				s.add(candidate{square, e, false})
			}
		}
	}
}

// look looks at a page, and reports whether the search goes on.
func (s *search) look(min, max [2]float64, p *page) bool {
	if p == s.home || s.twice && s.aside.Meets(min, max) || s.beyond(min, max) {
		return true
	}
	if p.crowd {
		s.lookInto(p)
	}
	for i := range p.slots {
		slot := &p.slots[i]
		if square := slot.at.square(&s.from); square <= s.bound {
			s.seen++
			s.add(candidate{square, slot.Entry, false})
		}
	}
	s.pages++
	s.over = s.pages > manyPages && s.bound < s.wide
	return !s.over
}

// flat tells how long a degree of longitude and one of latitude are at least, each as the square of a
// straight line, where a circle is. The zero flat knows nothing.
type flat struct{ lng, lat float64 }

// flatOf is for a circle that these boxes hold. It leaves out those that cross ±180°, where a page may
// be near by its other end, and wide ones.
func flatOf(boxes []cover.Box) flat {
	const (
		degree = math.Pi / 180
		wide   = 11 // degrees; on half of it the square of an arc and of its chord differ by a thousandth
	)
	box := boxes[0]
	if len(boxes) > 1 || box.Max[0]-box.Min[0] > wide {
		return flat{}
	}
	lat := degree * degree * 0.999
	narrow := math.Cos(max(-box.Min[1], box.Max[1]) * degree) // no parallel in the box is shorter
	return flat{lat * narrow * narrow, lat}
}

// beyond reports whether nobody in a rectangle is within the bound: so most pages in the corners of a
// circle's box are passed, and many within the circle once there is somebody near.
func (s *search) beyond(min, max [2]float64) bool {
	var x, y float64
	if at := s.at.Lng; at < min[0] {
		x = min[0] - at
	} else if at > max[0] {
		x = at - max[0]
	}
	if at := s.at.Lat; at < min[1] {
		y = min[1] - at
	} else if at > max[1] {
		y = at - max[1]
	}
	return x*x*s.flat.lng+y*y*s.flat.lat > s.bound
}

func (s *search) add(c candidate) {
	s.found = append(s.found, c)
	if len(s.found) >= s.next {
		s.sift()
	}
}

// sift puts what was found in order, and lets go of those that do not count. It asks keep, for which
// an entry is a cache miss away, only of who may be among the k nearest.
func (s *search) sift() {
	inOrder(s.found, s.sorted)
	if s.keep != nil { // so that those misses come all at once
		for _, c := range s.found[:min(s.k, len(s.found))] {
			s.touched += c.driver.seen
		}
	}
	n := 0
	for _, c := range s.found {
		if n >= s.k && c.square > s.bound {
			break
		}
		if !c.kept && s.keep != nil && !s.keep(c.driver) {
			continue
		}
		c.kept = true
		s.found[n] = c
		if n++; n == s.k {
			s.bound = min(s.bound, surely(c.square))
		}
	}
	s.found = s.found[:n]
	if n >= 2*s.k+16 { // many are as far as the last one
		s.pick()
		s.found = s.found[:0]
		for _, h := range s.nearest {
			v := vectorOf(h.at)
			s.found = append(s.found, candidate{v.square(&s.from), h.Entry, true})
		}
		inOrder(s.found, 0)
		if len(s.found) == s.k {
			s.full, s.worst = true, s.nearest[s.k-1]
		}
	}
	s.sorted = len(s.found)
	s.next = s.sorted + s.step()
}

// inOrder sorts candidates of which the first few are in order: by insertion where the others are
// few, which takes half as long as slices.SortFunc does.
func inOrder(list []candidate, sorted int) {
	if len(list) > fewEnough {
		slices.SortFunc(list, func(a, b candidate) int { return cmp.Compare(a.square, b.square) })
		return
	}
	for i := max(sorted, 1); i < len(list); i++ {
		c, j := list[i], i
		for ; j > 0 && list[j-1].square > c.square; j-- {
			list[j] = list[j-1]
		}
		list[j] = c
	}
}

// pick finds the k nearest of those found, all of them kept.
func (s *search) pick() {
	s.nearest = s.nearest[:0]
	for _, c := range s.found { // their entries, each a cache miss, come all at once
		s.nearest = append(s.nearest, hit{at: c.driver.at, Entry: c.driver})
	}
	n := 0
	for _, h := range s.nearest {
		h.distance = tracking.Distance(s.at, tracking.LngLat{Lng: h.at[0], Lat: h.at[1]})
		if s.within <= 0 || h.distance <= s.within {
			s.nearest[n] = h
			n++
		}
	}
	s.nearest = s.nearest[:n]
	slices.SortFunc(s.nearest, s.order)
	s.nearest = s.nearest[:min(s.k, len(s.nearest))]
}

// hits returns the nearest, from the offset to the k-th.
func (s *search) hits() []Hit {
	if s.offset >= len(s.nearest) {
		return nil
	}
	list := make([]Hit, 0, len(s.nearest)-s.offset)
	for _, h := range s.nearest[s.offset:] {
		hit := Hit{
			ID: h.id, Distance: h.distance, At: tracking.LngLat{Lng: h.at[0], Lat: h.at[1]}, OpenTasks: int(h.open),
		}
		if h.own {
			hit.Entry = h.Entry
		}
		list = append(list, hit)
	}
	return list
}
