package nearby

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed-8aba7b13/tracking"
)

// A spot is drivers whose vectors are all the same, as many as are too many for another page: of one
// crowd, or, at a pole or within a few millimetres, of several.
//
// A crowd is drivers who are all at one place. They stand as they are offered: by open tasks, then by
// id; those off duty and silent by id.
type spot struct{ members []*Entry } // one crowd after the other

func compareInSpot(a, b *Entry) int {
	if c := comparePlaces(a.at, b.at); c != 0 {
		return c
	}
	if a.tree >= full && a.open != b.open {
		return cmp.Compare(a.open, b.open)
	}
	return strings.Compare(string(a.id), string(b.id))
}

func comparePlaces(a, b [2]float64) int {
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
}

// crowds calls yield with each of them.
func (s *spot) crowds(yield func([]*Entry) bool) {
	for rest := s.members; len(rest) > 0; {
		n := len(rest)
		if rest[0].at != rest[n-1].at {
			n, _ = slices.BinarySearchFunc(rest, rest[0].at, func(e *Entry, at [2]float64) int {
				return 2*comparePlaces(e.at, at) - 1 // the first beyond
			})
		}
		if !yield(rest[:n]) {
			return
		}
		rest = rest[n:]
	}
}

// assemble makes a spot of a page whose drivers are all in one.
func (p *page) assemble() {
	drivers := p.drivers
	clear(p.drivers[:])
	p.spot, p.n = new(spot), 0
	for _, e := range drivers {
		p.join(e)
	}
}

// join makes e, who is in a spot, a member of a crowd there.
func (p *page) join(e *Entry) {
	i, _ := slices.BinarySearchFunc(p.spot.members, e, compareInSpot)
	p.spot.members = slices.Insert(p.spot.members, i, e)
	e.page = p
	p.n++
}

// leave takes e out of a spot.
func (p *page) leave(e *Entry) {
	if i, ok := slices.BinarySearchFunc(p.spot.members, e, compareInSpot); ok {
		p.spot.members = slices.Delete(p.spot.members, i, i+1)
	}
	e.page = nil
	p.n--
}

// lookInto looks at the members of a crowd, for as long as they may count.
func (s *search) lookInto(crowd []*Entry, square int64) {
	// the members of the other trees have all as many tasks, or are not offered
	tree := crowd[0].tree
	inOrder := s.byLoad || tree != manyTasks && tree != full && tree != limited
	var h hit // as if of each of them
	taken := 0
	for _, e := range crowd {
		if s.full {
			if h.Entry == nil {
				h.distance = arc(s.haversine(tracking.LngLat{Lng: e.at[0], Lat: e.at[1]}))
			}
			if h.Entry = e; s.compare(&h, &s.worst) > 0 {
				if inOrder {
					break
				}
				continue
			}
		}
		if s.tests && !s.pass(e) {
			continue
		}
		s.add(candidate{square, e, true})
		if taken++; inOrder && taken == s.k {
			break
		}
	}
}
