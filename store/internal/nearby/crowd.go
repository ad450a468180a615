package nearby

import (
	"cmp"
	"slices"
	"strings"

	"github.com/seed-8aba7b13/tracking"
)

// A crowd is a page of drivers who are all in one spot, as many as are too many for another page.
// Its members stand as they are offered: by open tasks, then by id; those off duty and silent by
// id.

func compareInCrowd(a, b *Entry) int {
	if a.tree >= full && a.open != b.open {
		return cmp.Compare(a.open, b.open)
	}
	return strings.Compare(string(a.id), string(b.id))
}

// assemble makes a crowd of a page whose drivers are all in one spot, or leads them to the one that
// is there.
func (t *tree) assemble(p *page) {
	at := p.slots[0].Entry.at
	c := t.crowds[at]
	if c != nil {
		t.pages.Delete(p.min, p.max, p)
	} else {
		if c = p; p.min != at || p.max != at {
			t.resize(p, at, at)
		}
		if t.crowds == nil {
			t.crowds = map[[2]float64]*page{}
		}
		t.crowds[at], c.crowd = c, true
	}
	slots := p.slots
	p.slots = nil
	for i := range slots {
		c.join(slots[i].Entry)
	}
}

// join makes e a member of a crowd.
func (p *page) join(e *Entry) {
	i, _ := slices.BinarySearchFunc(p.members, e, compareInCrowd)
	p.members = slices.Insert(p.members, i, e)
	e.page = p
}

// leave takes e out of a crowd. The last one takes the crowd along.
func (t *tree) leave(p *page, e *Entry) {
	if i, ok := slices.BinarySearchFunc(p.members, e, compareInCrowd); ok {
		p.members = slices.Delete(p.members, i, i+1)
	}
	e.page = nil
	if len(p.members) == 0 {
		t.pages.Delete(p.min, p.max, p)
		delete(t.crowds, p.min)
	}
}

// lookInto looks at the members of a crowd, for as long as they may count.
func (s *search) lookInto(p *page) {
	v := vectorOf(p.min)
	square := v.square(&s.from)
	if square > s.bound {
		return
	}
	s.seen += len(p.members)
	// the members of the other trees have all as many tasks, or are not offered
	tree := p.members[0].tree
	inOrder := s.byLoad || tree != manyTasks && tree != full && tree != limited
	distance := tracking.Distance(s.at, tracking.LngLat{Lng: p.min[0], Lat: p.min[1]})
	taken := 0
	for _, e := range p.members {
		if s.full && s.compare(hit{distance, p.min, e}, s.worst) > 0 {
			if inOrder {
				break
			}
			continue
		}
		if s.keep != nil && !s.keep(e) {
			continue
		}
		s.add(candidate{square, e, true})
		if taken++; inOrder && taken == s.k {
			break
		}
	}
}
