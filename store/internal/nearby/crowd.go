package nearby

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/seed-8aba7b13/tracking"
)

// spot is a place in one of the trees.
type spot struct {
	tree int
	at   [2]float64
}

// crowd is the drivers in one spot, where they are many: one entry stands for all of them in the
// R-tree.
type crowd struct {
	spot
	sign    entry
	members []*entry // as they are offered: by open tasks, then by id; those off duty and silent by id
}

const (
	crowded = 64 // so many drivers in one spot are a crowd
	sampled = 64 // once in so many times a driver is put into a tree, it is looked whether there is one
)

// bounds is where the sign of a crowd is in the R-tree: not a point, by which a search knows it
// from a driver without a look at its entry.
func (c *crowd) bounds() (min, max [2]float64) {
	return c.at, [2]float64{math.Nextafter(c.at[0], math.Inf(1)), c.at[1]}
}

func (c *crowd) compare(a, b *entry) int {
	if c.tree >= full && a.open != b.open {
		return cmp.Compare(a.open, b.open)
	}
	return strings.Compare(string(a.id), string(b.id))
}

func (c *crowd) add(e *entry) {
	i, _ := slices.BinarySearchFunc(c.members, e, c.compare)
	c.members = slices.Insert(c.members, i, e)
	e.crowd = c
}

// leaveCrowd takes e out of its crowd. The last one takes the crowd along.
func (x *Index) leaveCrowd(e *entry) {
	c := e.crowd
	if i, ok := slices.BinarySearchFunc(c.members, e, c.compare); ok {
		c.members = slices.Delete(c.members, i, i+1)
	}
	e.crowd = nil
	if len(c.members) == 0 {
		min, max := c.bounds()
		x.trees[c.tree].Delete(min, max, &c.sign)
		delete(x.crowds, c.spot)
	}
}

// mayCrowd looks now and then whether e, just put into its tree, is one of many in its spot, and
// makes a crowd of them. To look each time would cost more than the crowds; so a crowd has about
// twice crowded members when it is noticed.
func (x *Index) mayCrowd(e *entry) {
	if x.placed++; x.placed%sampled != 0 {
		return
	}
	var members []*entry
	x.trees[e.tree].Search(e.at, e.at, func(_, _ [2]float64, o *entry) bool {
		if o.at == e.at && o.stands == nil {
			members = append(members, o)
		}
		return len(members) < 4*crowded // if there are more, they follow one by one when they are put in anew
	})
	if len(members) < crowded {
		return
	}
	c := &crowd{spot: spot{e.tree, e.at}}
	c.sign = entry{at: e.at, tree: e.tree, stands: c}
	for _, m := range members {
		x.trees[c.tree].Delete(c.at, c.at, m)
		m.crowd = c
	}
	slices.SortFunc(members, c.compare)
	c.members = members
	min, max := c.bounds()
	x.trees[c.tree].Insert(min, max, &c.sign)
	if x.crowds == nil {
		x.crowds = map[spot]*crowd{}
	}
	x.crowds[c.spot] = c
}

// each calls f with the drivers in a tree.
func (x *Index) each(tree int, f func(*entry)) {
	x.trees[tree].Scan(func(_, _ [2]float64, e *entry) bool {
		if e.stands == nil {
			f(e)
			return true
		}
		for _, m := range e.stands.members {
			f(m)
		}
		return true
	})
}

// lookInto looks at the members of a crowd, for as long as they may count.
func (s *search) lookInto(c *crowd, estimate float64) (goOn bool) {
	// the members of the other trees have all as many tasks, or are not offered
	inOrder := s.byLoad || c.tree != manyTasks && c.tree != full && c.tree != limited
	distance := tracking.Distance(s.at, tracking.LngLat{Lng: c.at[0], Lat: c.at[1]})
	taken := 0
	for _, e := range c.members {
		if s.full && s.compare(hit{distance, e}, s.worst) > 0 {
			if inOrder {
				break
			}
			continue
		}
		if s.keep != nil && !s.keep(e) {
			continue
		}
		if !s.add(candidate{estimate, c.at, e}) {
			return false
		}
		if taken++; inOrder && taken == s.k {
			break
		}
	}
	return true
}
