package nearby

import (
	"fmt"
	"slices"
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

// Check looks whether the trees are as they should be: every driver in the slot of the page that he
// knows, every page as large as those in it and no larger than it may be, crowds in order.
func (x *Index) Check() error {
	x.lock()
	defer x.mu.Unlock()
	located := 0
	for i := range x.trees {
		t := &x.trees[i]
		n, crowds := 0, 0
		var err error
		t.pages.Scan(func(min, max [2]float64, p *page) bool {
			n += len(p.slots) + len(p.members)
			if p.crowd {
				crowds++
			}
			if err = t.check(p, min, max, uint8(i)); err != nil {
				err = fmt.Errorf("tree %d: %w", i, err)
			}
			return err == nil
		})
		if err != nil {
			return err
		}
		if n != t.len || crowds != len(t.crowds) {
			return fmt.Errorf("tree %d: %d drivers of %d, %d crowds of %d", i, n, t.len, crowds, len(t.crowds))
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

func (t *tree) check(p *page, min, max [2]float64, kind uint8) error {
	switch {
	case min != p.min || max != p.max:
		return fmt.Errorf("a page of %v to %v stands in the tree at %v to %v", p.min, p.max, min, max)
	case p.crowd && (t.crowds[min] != p || min != max || len(p.members) == 0 || len(p.slots) > 0):
		return fmt.Errorf("a crowd at %v with %d members and %d others", min, len(p.members), len(p.slots))
	case !p.crowd && (len(p.slots) == 0 || len(p.slots) >= pageSize || len(p.members) > 0):
		return fmt.Errorf("a page with %d drivers and %d members", len(p.slots), len(p.members))
	case !slices.IsSortedFunc(p.members, compareInCrowd):
		return fmt.Errorf("the members of the crowd at %v are out of order", min)
	}
	for i, s := range p.slots {
		e := s.Entry
		if e.page != p || int(e.slot) != i || e.tree != kind || s.at != vectorOf(e.at) || !p.holds(e.at) {
			return fmt.Errorf("driver %s is elsewhere than he knows", e.id)
		}
	}
	for _, e := range p.members {
		if e.page != p || e.tree != kind || e.at != min {
			return fmt.Errorf("driver %s is in a crowd where he is not", e.id)
		}
	}
	return nil
}

// Pages is how many pages all trees have.
func (x *Index) Pages() (n int) {
	x.lock()
	defer x.mu.Unlock()
	for i := range x.trees {
		n += x.trees[i].pages.Len()
	}
	return n
}

// Pending is how many moves the trees do not show yet.
func (x *Index) Pending() int { return int(x.pending.len.Load()) }
