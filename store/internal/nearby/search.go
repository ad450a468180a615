package nearby

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/seed-8aba7b13/tracking"
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
	q := near(at, f, offset, limit)
	if keep != nil {
		q.tests, q.test = true, test{since: math.MinInt64, maxOpen: -1, keep: keep}
	}
	x.rlock()
	defer x.mu.RUnlock()
	return x.answer(q)
}

// Page is Near without keep, and tells whether there were more at that moment. It may use the memory of
// into.
func (x *Index) Page(at tracking.LngLat, f Filter, offset, limit int, into []Hit) (page []Hit, more bool) {
	q := near(at, f, offset, limit)
	x.rlock()
	defer x.mu.RUnlock()
	return x.answerInto(into, q), x.total(q)-q.offset > limit
}

// Among is Near without keep, of those entries alone that have a position.
func (x *Index) Among(entries []*Entry, at tracking.LngLat, offset, limit int) []Hit {
	if len(entries) == 0 {
		return nil
	}
	q := near(at, Filter{}, offset, limit)
	q.among = entries
	x.rlock()
	defer x.mu.RUnlock()
	return x.answer(q)
}

func near(at tracking.LngLat, f Filter, offset, limit int) query {
	q := query{at: at, first: offDuty, last: numTrees - 1, offset: max(offset, 0), limit: limit}
	if f.Available != nil && *f.Available {
		q.first = silent
	} else if f.Available != nil {
		q.last = offDuty
	}
	return q
}

// Offers lists the drivers that tracking.DriverReader.Offers promises, but for the rows: candidates
// whose rows the store reads again. It may use the memory of into.
func (x *Index) Offers(o tracking.Offer, into []Hit) []Hit {
	x.rlock()
	defer x.mu.RUnlock()
	q, ok := x.offers(o)
	if !ok {
		return nil
	}
	return x.answerInto(into, q)
}

// offers is the query for an offer; not ok when nobody can pass it. The lock is held.
func (x *Index) offers(o tracking.Offer) (q query, ok bool) {
	q = query{at: o.At, first: limited, last: manyTasks, limit: o.Limit, within: o.Within, byLoad: true}
	switch {
	case o.Full:
		q.first, o.MaxOpen = full, -1
	case o.MaxOpen >= 0:
		q.last = min(onOffer+o.MaxOpen-1, manyTasks)
	}
	q.tests = true
	q.test = test{since: rows.Ceil(o.SeenSince), maxOpen: o.MaxOpen, excluded: o.Exclude}
	if len(q.excluded) > fewExcluded && !slices.IsSorted(q.excluded) { // as those of a task are
		q.excluded = slices.Sorted(slices.Values(q.excluded))
	}
	if len(o.Requires) > 0 {
		q.required = propertiesOf(o.Requires)
		none := false
		if q.among, none = x.among(q.required); none {
			return q, false
		}
	}
	return q, true
}

// test is what a driver has to pass where not all count.
type test struct {
	since    int64               // UTC ms of the last sign of life, at least
	maxOpen  int                 // fewer open tasks, unless he has a limit of his own; negative: any number
	excluded []tracking.DriverID // not one of these; in order if they are not few
	required []property
	keep     func(tracking.DriverID) bool // nil: all pass
}

// fewExcluded are looked through one by one.
const fewExcluded = 8

// pass asks in plain code, not by a function of the query's own: so a query needs no memory, and takes
// less time.
func (t *test) pass(e *Entry) bool {
	return e.seen >= t.since && (t.maxOpen < 0 || int(e.open) < t.maxOpen || e.tree == limited) &&
		(len(t.excluded) == 0 || !t.excludes(e.id)) && (len(t.required) == 0 || e.has(t.required)) &&
		(t.keep == nil || t.keep(e.id))
}

func (t *test) excludes(id tracking.DriverID) bool {
	if len(t.excluded) <= fewExcluded {
		return slices.Contains(t.excluded, id)
	}
	_, found := slices.BinarySearch(t.excluded, id)
	return found
}

// query asks for the nearest drivers in some of the trees.
type query struct {
	at            tracking.LngLat
	first, last   int // trees, both included
	offset, limit int
	within        float64  // metres; 0: anywhere
	tests         bool     // only those count who pass the test
	among         []*Entry // only these count; nil: all
	byLoad        bool     // of drivers equally near those with fewer open tasks first
	test
}

const (
	fewEnough    = 64            // so many are sorted by insertion
	many         = 2 * pageSize  // who asks for more goes through a tree from the nearest on
	largeScratch = 8 * fewEnough // candidates; what a query with more has used is not kept
)

// total is how many drivers with a position are in the trees that q asks. The lock is held.
func (x *Index) total(q query) (n int) {
	for i := q.first; i <= q.last; i++ {
		n += x.trees[i].len
	}
	return n
}

// answer answers q. The lock is held.
func (x *Index) answer(q query) []Hit { return x.answerInto(nil, q) }

func (x *Index) answerInto(into []Hit, q query) []Hit {
	total := x.total(q)
	if q.limit <= 0 || q.offset >= total {
		return nil
	}
	s, _ := x.scratch.Get().(*search)
	if s == nil {
		s = new(search)
	}
	s.query, s.k, s.from = q, q.offset+min(q.limit, total-q.offset), vectorOf([2]float64{q.at.Lng, q.at.Lat})
	s.cos, s.bound = math.Cos(q.at.Lat*rad), math.MaxInt64
	if q.within > 0 {
		s.bound = straight(q.within)
	}
	s.next = s.k + s.step()
	if q.among != nil {
		s.scanAmong()
	} else {
		s.walk(x.trees[q.first : q.last+1])
	}
	s.sift()
	s.pick()
	list := s.hits(into)
	if s.forget() {
		x.scratch.Put(s)
	}
	return list
}

// search is one query at work.
//
// Who counts is first judged by the straight line; the distance itself is asked only of those who
// may be among the k nearest.
type search struct {
	query
	k     int
	from  vector
	cos   float64 // of the place's latitude; see distance
	bound int64   // square of a straight line: who is farther does not count

	stack []branch
	ahead [8]leaf // pages to be looked at
	pages int     // so many of them
	begun bool    // one has been looked at

	found   []candidate
	sorted  int // so many of found stand in order, all of them kept
	next    int // with so many found those that do not count are let go
	most    int // so many of found have been used
	nearest []hit
	picked  int  // so many of nearest have been used
	full    bool // k were found …
	worst   hit  // … and this is the last of them: who comes after does not count

	touched int64 // so that the compiler leaves a read where it stands
}

// branch is a part of a tree that a walk has still to go to.
type branch struct {
	square int64    // of the straight line to the part, at least
	away   [3]int32 // how far the part is on each axis
	link   link
}

// leaf is a page, and the square of the straight line to its part of the tree.
type leaf struct {
	square int64
	page   *page
}

// candidate is a driver who may be among the nearest.
type candidate struct {
	square int64 // of the straight line
	driver *Entry
	kept   bool // the driver has passed the test
}

// hit is a driver whose distance is known.
type hit struct {
	distance float64 // metres
	at       tracking.LngLat
	square   int64
	*Entry
}

// loose is by how much a straight line between two vectors may be wrong, as each of their coordinates
// is rounded to the half: the square root of 3, and more.
const loose = 1.75

// straight is the square of a line so long that whoever is beyond it is farther than r metres, by
// [tracking.Distance], which is wrong by much less.
func straight(r float64) int64 {
	return surely(2*unit*math.Sin(min(r/tracking.EarthRadius, math.Pi)/2), loose)
}

// surely is the square of a line that is longer by what may be wrong, by [tracking.Distance] too,
// which is right to much less than this part of a line.
func surely(line, wrong float64) int64 {
	line = line*(1+1e-12) + wrong
	return int64(line*line) + 1
}

// compare orders hits: by distance, those equally near by open tasks where the query asks for it,
// then by id.
func (s *search) compare(a, b *hit) int {
	if c := cmp.Compare(a.distance, b.distance); c != 0 {
		return c
	}
	if s.byLoad && a.open != b.open {
		return cmp.Compare(a.open, b.open)
	}
	return strings.Compare(string(a.id), string(b.id))
}

// forget leaves nothing of a query behind, and reports whether the search is worth keeping.
func (s *search) forget() bool {
	if cap(s.found) > largeScratch || cap(s.nearest) > largeScratch {
		return false
	}
	clear(s.found[:s.most])
	clear(s.nearest[:s.picked])
	*s = search{found: s.found[:0], nearest: s.nearest[:0], stack: s.stack[:0]}
	return true
}

// step is how many candidates more are found before those that do not count are let go.
func (s *search) step() int { return max(s.k/4, 4) }

// walk looks at all pages in which somebody may count, from the nearest on, as well as a tree allows:
// at once at that which holds the place in the largest of the trees, from which the bound follows.
func (s *search) walk(trees []tree) {
	largest := 0
	for i := range trees {
		if trees[i].len > trees[largest].len {
			largest = i
		}
	}
	s.climb(&trees[largest])
	for i := range trees {
		if i != largest && trees[i].len > 0 {
			s.climb(&trees[i])
		}
	}
	s.lookAhead()
}

// climb walks through a tree. At each node it goes to the nearer part, and puts the other one aside.
func (s *search) climb(t *tree) {
	s.stack = append(s.stack[:0], branch{link: t.root})
	for len(s.stack) > 0 {
		b := s.takeUp()
		for b.link >= 0 && b.square <= s.bound {
			n := &t.nodes[b.link]
			c := s.from[n.axis]
			away := [2]int32{max(n.low[0]-c, c-n.low[1], 0), max(n.high[0]-c, c-n.high[1], 0)}
			near := uint32(away[1]-away[0]) >> 31 // the second if that is nearer
			b.square -= int64(b.away[n.axis]) * int64(b.away[n.axis])
			other := b
			other.enter(n, away[near^1], n.parts[near^1])
			if other.square <= s.bound {
				s.putAside(other)
			}
			b.enter(n, away[near], n.parts[near])
		}
		if b.square <= s.bound {
			s.meet(leaf{b.square, t.pages[^b.link]})
		}
	}
}

// putAside puts a branch on the stack, which is a heap where many are asked for.
func (s *search) putAside(b branch) {
	s.stack = append(s.stack, b)
	if s.k <= many {
		return
	}
	for i := len(s.stack) - 1; i > 0 && s.stack[i].square < s.stack[(i-1)/2].square; i = (i - 1) / 2 {
		s.stack[i], s.stack[(i-1)/2] = s.stack[(i-1)/2], s.stack[i]
	}
}

// takeUp takes a branch to go on with: the last one, which is mostly the nearest, and where many are asked
// for that which surely is. Else most of those found were too far in the end, and sorted in vain.
func (s *search) takeUp() branch {
	last := len(s.stack) - 1
	if s.k <= many {
		b := s.stack[last]
		s.stack = s.stack[:last]
		return b
	}
	b := s.stack[0]
	s.stack[0] = s.stack[last]
	s.stack = s.stack[:last]
	for i := 0; ; {
		least := i
		for part := 2*i + 1; part <= 2*i+2 && part < last; part++ {
			if s.stack[part].square < s.stack[least].square {
				least = part
			}
		}
		if least == i {
			return b
		}
		s.stack[i], s.stack[least] = s.stack[least], s.stack[i]
		i = least
	}
}

// enter goes to a part that is so far away on the axis of its node.
func (b *branch) enter(n *node, away int32, part link) {
	b.square += int64(away) * int64(away)
	b.away[n.axis], b.link = away, part
}

// meet looks at a page: at the first one now, at others when there are several, so that they come from
// memory all at once.
func (s *search) meet(l leaf) {
	if !s.begun {
		s.begun = true
		s.look(l.page)
		s.sift()
		return
	}
	s.ahead[s.pages] = l
	if s.pages++; s.pages == len(s.ahead) {
		s.lookAhead()
	}
}

func (s *search) lookAhead() {
	for _, l := range s.ahead[:s.pages] {
		s.touched += int64(l.page.n + l.page.at[pageSize/4][0] + l.page.at[pageSize/2][0])
	}
	if s.k <= pageSize { // the entries of those found are wanted soon, too
		for _, c := range s.found[:min(s.k, len(s.found))] {
			s.touched += c.driver.seen
		}
	}
	for _, l := range s.ahead[:s.pages] {
		if l.square <= s.bound {
			s.look(l.page)
		}
	}
	s.pages = 0
}

// look looks at a page.
func (s *search) look(p *page) {
	if s.beyond(p) {
		return
	}
	if p.spot != nil {
		square := p.low.square(&s.from)
		for crowd := range p.spot.crowds {
			if square <= s.bound {
				s.lookInto(crowd, square)
			}
		}
		return
	}
	if len(s.found) == 0 && s.k < int(p.n) {
		s.lookFirst(p)
		return
	}
	for i := range p.at[:p.n] {
		if square := p.at[i].square(&s.from); square <= s.bound {
			s.add(candidate{square, p.drivers[i], false})
		}
	}
}

// lookFirst looks at a page with more than k drivers while nobody has been found, and first at about
// the k nearest of them: mostly the others do not count then, and need not be put in order.
func (s *search) lookFirst(p *page) {
	var array [pageSize]int64
	squares, most := array[:p.n], int64(0)
	for i := range squares {
		squares[i] = p.at[i].square(&s.from)
		most = max(most, squares[i])
	}
	some := min(enough(squares, s.k, most), s.bound)
	for i, square := range squares {
		if square <= some {
			s.found = append(s.found, candidate{square, p.drivers[i], false})
		}
	}
	s.sift()
	for i, square := range squares {
		if square > some && square <= s.bound {
			s.add(candidate{square, p.drivers[i], false})
		}
	}
}

// enough is a number that k of the squares, or a few more, do not exceed; most is the largest.
func enough(squares []int64, k int, most int64) int64 {
	few, square := int64(0), most/int64(len(squares))*int64(k)
	for range 6 {
		n := 0
		for _, q := range squares {
			n += int(uint64(q-square-1) >> 63) // 1 for q <= square: no branch, which would be guesswork
		}
		if n < k {
			few = square
		} else if most = square; n <= k+k/4 {
			break
		}
		square = few + (most-few)/2
	}
	return most
}

// beyond reports whether nobody in a page is within the bound.
func (s *search) beyond(p *page) bool {
	var square int64
	for i, c := range s.from {
		d := int64(max(p.low[i]-c, c-p.high[i], 0))
		square += d * d
	}
	return square > s.bound
}

// scanAmong finds the k nearest of those that count.
func (s *search) scanAmong() {
	for _, e := range s.among {
		if tree := int(e.tree); s.first <= tree && tree <= s.last && e.located() {
			v := vectorOf(e.at)
			if square := v.square(&s.from); square <= s.bound {
				s.add(candidate{square, e, false})
			}
		}
	}
}

func (s *search) add(c candidate) {
	s.found = append(s.found, c)
	if len(s.found) >= s.next {
		s.sift()
	}
}

// sift puts what was found in order, and lets go of those that do not count. It tests, for which an
// entry is a cache miss away, only those who may be among the k nearest.
func (s *search) sift() {
	s.most = max(s.most, len(s.found))
	inOrder(s.found, s.sorted)
	if s.tests {
		s.found = s.found[:s.ask()]
	}
	n := len(s.found)
	if n >= s.k {
		s.bound = min(s.bound, surely(math.Sqrt(float64(s.found[s.k-1].square)), 2*loose))
		for n > s.k && s.found[n-1].square > s.bound {
			n--
		}
		s.found = s.found[:n]
	}
	if n >= 2*s.k+16 { // many are as far as the last one
		s.pick()
		s.found = s.found[:0]
		for _, h := range s.nearest {
			s.found = append(s.found, candidate{h.square, h.Entry, true})
		}
		inOrder(s.found, 0)
		if len(s.found) == s.k {
			s.full, s.worst = true, s.nearest[s.k-1]
		}
	}
	s.sorted = len(s.found)
	s.next = s.sorted + s.step()
}

// ask leaves at the beginning of found, in order, those who pass the test, and says how many they are. Of
// who is farther than the first k of them it asks those alone who may be as near.
func (s *search) ask() (n int) {
	for _, c := range s.found[:min(s.k, len(s.found))] { // so that the misses come all at once
		s.touched += c.driver.seen
	}
	bound := s.bound
	for _, c := range s.found {
		if n >= s.k && c.square > bound {
			break
		}
		if !c.kept && !s.pass(c.driver) {
			continue
		}
		c.kept = true
		s.found[n] = c
		if n++; n == s.k {
			bound = min(bound, surely(math.Sqrt(float64(c.square)), 2*loose))
		}
	}
	return n
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
		e := c.driver
		s.nearest = append(s.nearest, hit{at: tracking.LngLat{Lng: e.at[0], Lat: e.at[1]}, square: c.square, Entry: e})
		s.touched += int64(e.open) // perhaps one more
	}
	s.picked = max(s.picked, len(s.nearest))
	for i := range s.nearest {
		h := &s.nearest[i]
		h.distance = s.haversine(h.at)
	}
	n := 0
	for i := range s.nearest {
		h := &s.nearest[i]
		h.distance = arc(h.distance)
		if s.within <= 0 || h.distance <= s.within {
			if n != i {
				s.nearest[n] = *h
			}
			n++
		}
	}
	s.nearest = s.nearest[:n]
	s.sortNearest()
	s.nearest = s.nearest[:min(s.k, len(s.nearest))]
}

const rad = math.Pi / 180

// haversine and arc make up [tracking.Distance] from the place of the search, to the last bit. One
// cosine is computed once for all, and for several drivers first the one and then the other, so that a
// processor is at work at more than one of them: so it takes half as long.
func (s *search) haversine(p tracking.LngLat) float64 {
	sy := math.Sin((p.Lat - s.at.Lat) * rad / 2)
	h := float64(sy * sy)
	if math.Abs(s.at.Lat) != 90 && math.Abs(p.Lat) != 90 {
		sx := math.Sin(between(s.at.Lng, p.Lng) * rad / 2)
		h += float64(s.cos * math.Cos(p.Lat*rad) * sx * sx)
	}
	return h
}

func arc(h float64) float64 { return 2 * tracking.EarthRadius * math.Asin(math.Min(1, math.Sqrt(h))) }

// between is that of [tracking.Distance].
func between(a, b float64) float64 {
	if (a < 0) == (b < 0) {
		return math.Abs(b - a)
	}
	a, b = math.Abs(a), math.Abs(b)
	return math.Min(a+b, (180-a)+(180-b))
}

// sortNearest sorts those whose distance is known, who are nearly in order.
func (s *search) sortNearest() {
	if len(s.nearest) > fewEnough {
		slices.SortFunc(s.nearest, func(a, b hit) int { return s.compare(&a, &b) })
		return
	}
	for i := 1; i < len(s.nearest); i++ {
		for j := i; j > 0 && s.compare(&s.nearest[j-1], &s.nearest[j]) > 0; j-- {
			s.nearest[j-1], s.nearest[j] = s.nearest[j], s.nearest[j-1]
		}
	}
}

// hits returns the nearest, from the offset to the k-th.
func (s *search) hits(into []Hit) []Hit {
	if s.offset >= len(s.nearest) {
		return nil
	}
	list := slices.Grow(into[:0], len(s.nearest)-s.offset)
	for i := range s.nearest[s.offset:] {
		h := &s.nearest[s.offset+i]
		list = append(list, Hit{ID: h.id, Distance: h.distance, At: h.at, OpenTasks: int(h.open)})
		if h.own {
			list[i].Entry = h.Entry
		}
	}
	return list
}
