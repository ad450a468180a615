package nearby

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// tree holds the drivers of one kind by where they are: a k-d tree not of drivers but of pages,
// each of which holds a few dozen who are near each other. So the tree is small and seldom changes:
// who moves about within his page changes three numbers in it, and a search reads those of a page
// one after the other.
//
// Its space is that of vectors, in which there is no pole and no edge at ±180°.
type tree struct {
	root  link
	nodes []node
	pages []*page // nil where there is none
	len   int     // drivers

	freeNodes, freePages []link
	way                  []link // of wayTo
}

// link leads to a node, or to a page if it is negative: then its complement is the number.
type link int32

// node cuts a part of space in two, where the coordinate on an axis is less than cut, and where it is
// not. All drivers are from low[0] to low[1] or from high[0] to high[1], so that who asks from outside
// knows how far they are.
type node struct {
	low, high [2]int32
	parts     [2]link
	axis, cut int32
}

// page is drivers who are near each other, or the many of one spot. It is alone in its part of space.
// Their places are together, as most of those who are looked at are not near enough.
type page struct {
	low, high vector // all are within
	spot      *spot  // instead of what follows n
	n         int32  // drivers
	number    link   // the tree's own for it
	width     int32  // on the widest axis, when it was last measured
	left      int32  // so many went, or made it larger, since it was last measured
	at        [pageSize]vector
	drivers   [pageSize]*Entry
}

const (
	pageSize = 48               // with so many a page is divided
	built    = pageSize * 3 / 4 // and so many it has at most when its part of the tree is built anew
	sparse   = pageSize / 8     // and with so few left it is given up
	renewed  = 512              // pages; a part of a tree with more is not built anew
	stirred  = pageSize / 8     // after so many changes of its size one that is twice as wide is looked at
)

// vector is a place as a point of a sphere. The straight line between two of them orders places by
// distance, everywhere on the Earth alike, and costs a few products. In whole numbers, which are 6 mm,
// it takes half the memory, and no sum is rounded.
type vector [3]int32

// unit is the radius of the sphere. The difference of two coordinates, and one more, is an int32, and
// the square of any straight line an int64.
const unit = 1<<30 - 8

func vectorOf(at [2]float64) vector {
	sinφ, cosφ := math.Sincos(at[1] * math.Pi / 180)
	sinλ, cosλ := math.Sincos(at[0] * math.Pi / 180)
	return vector{whole(cosφ * cosλ), whole(cosφ * sinλ), whole(sinφ)}
}

func whole(x float64) int32 { return int32(math.RoundToEven(x * unit)) }

// square is the square of the straight line between two places.
func (v *vector) square(o *vector) int64 {
	x, y, z := int64(v[0]-o[0]), int64(v[1]-o[1]), int64(v[2]-o[2])
	return x*x + y*y + z*z
}

func (n *node) side(v *vector) int {
	if v[n.axis] < n.cut {
		return 0
	}
	return 1
}

// leaves is how many pages there are.
func (t *tree) leaves() int { return len(t.pages) - len(t.freePages) }

// enter returns the page into which who is at a place belongs, for one who is there from now on. There
// is one page at least.
func (t *tree) enter(v *vector) *page {
	l := t.root
	for l >= 0 {
		n := &t.nodes[l]
		if c := v[n.axis]; c < n.cut {
			n.low[0], n.low[1] = min(n.low[0], c), max(n.low[1], c)
			l = n.parts[0]
		} else {
			n.high[0], n.high[1] = min(n.high[0], c), max(n.high[1], c)
			l = n.parts[1]
		}
	}
	return t.pages[^l]
}

// wayTo lists the nodes from the root to a page, until it is called again.
func (t *tree) wayTo(p *page) []link {
	t.way = t.way[:0]
	for l := t.root; l >= 0; {
		t.way = append(t.way, l)
		n := &t.nodes[l]
		l = n.parts[n.side(&p.low)]
	}
	return t.way
}

// end is the link behind a part of the way to a page.
func (t *tree) end(way []link, p *page) *link {
	if len(way) == 0 {
		return &t.root
	}
	n := &t.nodes[way[len(way)-1]]
	return &n.parts[n.side(&p.low)]
}

// newNode makes a node of all but where it cuts. Who comes into the gap between its parts belongs to the
// lower one, unless that is a spot, beside which he would need a page of his own.
func (t *tree) newNode(n node) link {
	n.cut = n.high[0]
	if l := n.parts[0]; l < 0 && t.pages[^l].spot != nil {
		n.cut = n.low[1] + 1
	}
	if last := len(t.freeNodes) - 1; last >= 0 {
		l := t.freeNodes[last]
		t.freeNodes = t.freeNodes[:last]
		t.nodes[l] = n
		return l
	}
	t.nodes = append(t.nodes, n)
	return link(len(t.nodes) - 1)
}

func (t *tree) newPage() *page {
	p := new(page)
	if last := len(t.freePages) - 1; last >= 0 {
		p.number = t.freePages[last]
		t.freePages = t.freePages[:last]
		t.pages[^p.number] = p
		return p
	}
	t.pages = append(t.pages, p)
	p.number = ^link(len(t.pages) - 1)
	return p
}

func (t *tree) freePage(p *page) {
	t.pages[^p.number] = nil
	t.freePages = append(t.freePages, p.number)
}

// add puts e into the tree.
func (t *tree) add(e *Entry) {
	t.len++
	t.insert(e)
}

func (t *tree) insert(e *Entry) {
	v := vectorOf(e.at)
	if t.leaves() == 0 {
		p := t.newPage()
		t.root = p.number
		p.put(v, e)
		return
	}
	p := t.enter(&v)
	if p.spot == nil {
		p.put(v, e)
		if p.n == pageSize {
			t.divide(p)
		}
		return
	}
	if v == p.low {
		p.join(e)
		return
	}
	q := t.newPage()
	q.put(v, e)
	if axis := widest(&p.low, &v); p.low[axis] < v[axis] {
		t.cut(p, axis, p, q)
	} else {
		t.cut(p, axis, q, p)
	}
}

// put puts who is at a place into a page, which has room.
func (p *page) put(v vector, e *Entry) {
	if p.n == 0 {
		p.low, p.high = v, v
	}
	p.stretch(&v)
	e.page, e.slot = p, uint8(p.n)
	p.at[p.n], p.drivers[p.n] = v, e
	p.n++
}

// holds reports whether a place is within the page, and so in its part of space.
func (p *page) holds(v *vector) bool {
	return p.low[0] <= v[0] && v[0] <= p.high[0] && p.low[1] <= v[1] && v[1] <= p.high[1] &&
		p.low[2] <= v[2] && v[2] <= p.high[2]
}

func (p *page) stretch(v *vector) {
	for i, c := range v {
		p.low[i], p.high[i] = min(p.low[i], c), max(p.high[i], c)
	}
}

// measure makes a page, which is not empty, no larger than it needs to be.
func (p *page) measure() {
	p.left = 0
	p.low, p.high = p.at[0], p.at[0]
	for i := range p.at[:p.n] {
		p.stretch(&p.at[i])
	}
	p.width = p.widest()
}

// widest is how wide a page is on its widest axis.
func (p *page) widest() int32 {
	axis := widest(&p.low, &p.high)
	return p.high[axis] - p.low[axis]
}

// remove takes e out of the tree.
func (t *tree) remove(e *Entry) {
	t.len--
	p := e.page
	if p.spot != nil {
		p.leave(e)
	} else {
		p.drop(e)
	}
	switch {
	case p.n == 0:
		t.giveUp(p)
	case p.n == sparse && t.leaves() > 1: // the others go to pages near by
		t.giveUp(p)
		p.each(t.insert)
	case p.left >= pageSize:
		p.measure()
	}
}

// drop takes e out of a page.
func (p *page) drop(e *Entry) {
	p.n--
	p.left++
	last := p.drivers[p.n]
	p.at[e.slot], p.drivers[e.slot], last.slot = p.at[p.n], last, e.slot
	p.drivers[p.n] = nil
	e.page = nil
}

// giveUp takes a page out of the tree: what is beside it gets its part of space.
func (t *tree) giveUp(p *page) {
	if way := t.wayTo(p); len(way) > 0 {
		last := len(way) - 1
		n := &t.nodes[way[last]]
		*t.end(way[:last], p) = n.parts[1-n.side(&p.low)]
		t.freeNodes = append(t.freeNodes, way[last])
	}
	t.freePage(p)
}

// move takes e to another place.
func (t *tree) move(e *Entry, at [2]float64) {
	switch v, p := vectorOf(at), e.page; {
	case p.spot == nil && p.holds(&v):
		p.at[e.slot], e.at = v, at
	case p.spot == nil && t.enter(&v) == p:
		p.stretch(&v)
		p.at[e.slot], e.at = v, at
		if p.left++; p.left >= stirred && p.widest()/2 > p.width {
			p.measure()
			t.reshape(p)
		}
	default:
		t.remove(e)
		e.at = at
		t.add(e)
	}
}

// slot is a driver in a page, or all of a spot.
type slot struct {
	at     vector
	driver *Entry
	spot   *page
}

// divide makes two pages of one, or a spot of one whose drivers are all in one.
func (t *tree) divide(p *page) {
	p.measure()
	if p.low == p.high {
		p.assemble()
		return
	}
	var slots [pageSize]slot
	for i := range slots {
		slots[i] = slot{at: p.at[i], driver: p.drivers[i]}
	}
	axis := widest(&p.low, &p.high)
	slices.SortFunc(slots[:], func(a, b slot) int { return cmp.Compare(a.at[axis], b.at[axis]) })
	at := middle(slots[:], axis)
	q := t.newPage()
	p.n, p.left = 0, 0
	clear(p.drivers[:])
	for _, s := range slots[:at] {
		p.put(s.at, s.driver)
	}
	for _, s := range slots[at:] {
		q.put(s.at, s.driver)
	}
	p.measure()
	q.measure()
	t.cut(p, axis, p, q)
}

// widest is the axis on which two places are farthest from each other.
func widest(a, b *vector) int {
	axis, most := 0, int32(-1)
	for i := range a {
		if d := max(a[i], b[i]) - min(a[i], b[i]); d > most {
			axis, most = i, d
		}
	}
	return axis
}

// middle says where to divide slots in order: in the widest gap about the middle, and not between
// two that are equal.
func middle(slots []slot, axis int) int {
	gap := func(i int) int32 { return slots[i].at[axis] - slots[i-1].at[axis] }
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

// cut divides p's part of space between two pages: p and a new one, which are apart on that axis.
func (t *tree) cut(p *page, axis int, low, high *page) {
	way := t.wayTo(p)
	l := t.newNode(node{
		low: [2]int32{low.low[axis], low.high[axis]}, high: [2]int32{high.low[axis], high.high[axis]},
		parts: [2]link{low.number, high.number}, axis: int32(axis),
	})
	*t.end(way, p) = l
	if len(way) >= 2*bits.Len(uint(t.leaves()))+4 {
		t.balance(append(way, l), p)
	}
}

// balance builds a part of the tree anew, because the way to p has become twice as long as it need be:
// whoever comes always at the same side, as who drives on a road to nowhere, lets the way grow with
// each page. It is the smallest part in which the way is much too long, and none so large that others
// would wait for it: a way of a few hundred nodes costs less.
func (t *tree) balance(way []link, p *page) {
	for i, size := len(way)-1, 1; i >= 0; i-- {
		n := &t.nodes[way[i]]
		if size += t.size(n.parts[1-n.side(&p.low)], renewed); size > renewed {
			return
		}
		if len(way)-i > 3*bits.Len(uint(size))/2+2 {
			t.renew(way[:i+1], p)
			return
		}
	}
}

// renew builds the part of the tree anew that is at the end of a way to p.
func (t *tree) renew(way []link, p *page) {
	last := len(way) - 1
	l := t.build(t.takeApart(way[last], nil))
	*t.end(way[:last], p) = l
}

// size is how many pages are behind a link, or, if they are more than that, at least most.
func (t *tree) size(l link, most int) int {
	if l < 0 || most <= 1 {
		return 1
	}
	n := t.size(t.nodes[l].parts[0], most)
	if n < most {
		n += t.size(t.nodes[l].parts[1], most-n)
	}
	return n
}

// reshape builds the few dozen pages about p anew if p reaches through most of what they take up, where
// they are longest: as when all who were on a road have left it for the land on both sides.
func (t *tree) reshape(p *page) {
	way, size := t.wayTo(p), 1
	i := len(way)
	for ; i > 0; i-- {
		n := &t.nodes[way[i-1]]
		if size += t.size(n.parts[1-n.side(&p.low)], pageSize); size > pageSize {
			break
		}
	}
	if i == len(way) {
		return
	}
	low, high := p.low, p.high
	t.bounds(way[i], &low, &high)
	if axis := widest(&low, &high); p.high[axis]-p.low[axis] > (high[axis]-low[axis])/2 {
		t.renew(way[:i+1], p)
	}
}

// bounds makes low and high take in the pages behind a link.
func (t *tree) bounds(l link, low, high *vector) {
	if l >= 0 {
		t.bounds(t.nodes[l].parts[0], low, high)
		t.bounds(t.nodes[l].parts[1], low, high)
		return
	}
	p := t.pages[^l]
	for axis := range low {
		low[axis], high[axis] = min(low[axis], p.low[axis]), max(high[axis], p.high[axis])
	}
}

// takeApart adds to slots what is behind a link, of which the spots alone stay.
func (t *tree) takeApart(l link, slots []slot) []slot {
	if l >= 0 {
		for _, part := range t.nodes[l].parts {
			slots = t.takeApart(part, slots)
		}
		t.freeNodes = append(t.freeNodes, l)
		return slots
	}
	p := t.pages[^l]
	if p.spot != nil {
		return append(slots, slot{at: p.low, spot: p})
	}
	for i := range p.at[:p.n] {
		slots = append(slots, slot{at: p.at[i], driver: p.drivers[i]})
	}
	t.freePage(p)
	return slots
}

// build makes nodes and pages of slots, which it puts into another order.
func (t *tree) build(slots []slot) link {
	low, high, spots := slots[0].at, slots[0].at, 0
	for i := range slots {
		for axis, c := range slots[i].at {
			low[axis], high[axis] = min(low[axis], c), max(high[axis], c)
		}
		if slots[i].spot != nil {
			spots++
		}
	}
	if spots == 1 && len(slots) == 1 {
		return slots[0].spot.number
	}
	if spots == 0 && len(slots) <= built || low == high { // then they are fewer than would be a spot
		p := t.newPage()
		for _, s := range slots {
			p.put(s.at, s.driver)
		}
		p.measure()
		return p.number
	}
	axis := widest(&low, &high)
	cut := max(sampled(slots, axis), low[axis]+1)
	at, lowHigh, highLow := 0, low[axis], high[axis]
	for i := range slots {
		if c := slots[i].at[axis]; c < cut {
			lowHigh = max(lowHigh, c)
			slots[i], slots[at] = slots[at], slots[i]
			at++
		} else {
			highLow = min(highLow, c)
		}
	}
	return t.newNode(node{
		low: [2]int32{low[axis], lowHigh}, high: [2]int32{highLow, high[axis]},
		parts: [2]link{t.build(slots[:at]), t.build(slots[at:])}, axis: int32(axis),
	})
}

// sampled is about the middle coordinate of slots.
func sampled(slots []slot, axis int) int32 {
	var some [101]int32
	n := min(len(some), len(slots))
	for i := range n {
		some[i] = slots[i*len(slots)/n].at[axis]
	}
	slices.Sort(some[:n])
	return some[n/2]
}

// each calls f with all drivers.
func (t *tree) each(f func(*Entry)) {
	for _, p := range t.pages {
		if p != nil {
			p.each(f)
		}
	}
}

func (p *page) each(f func(*Entry)) {
	drivers := p.drivers[:]
	if p.spot != nil {
		drivers = p.spot.members
	}
	for _, e := range drivers[:p.n] {
		f(e)
	}
}
