package memory

import (
	"math"
	"slices"

	"github.com/seed-8aba7b13/tracking"
)

// newest returns a page of the union of lists without common elements, the last elements first.
// With keep, only elements for which it is true count.
func newest[T any](
	lists []*list[T], p tracking.Page, compare func(a, b T) int, keep func(T) bool,
) (page []T, more bool) {
	total := 0
	for _, l := range lists {
		total += l.len()
	}
	skip := p.Offset()
	if skip >= total {
		return nil, false
	}
	if len(lists) == 1 && keep == nil { // nothing to look at on the way
		c := lists[0].end(skip)
		return take(c.prev, 0, p.Limit, nil)
	}
	return take(merge(lists, compare, nil, false), skip, p.Limit, keep)
}

// merge walks a union of lists: backwards from the end, or from before the first element of each for
// which reached is true; see [list.search]. Forwards it begins at the start, or where reached is true
// no more. An element that is in several comes once.
func merge[T any](
	lists []*list[T], compare func(a, b T) int, reached func(T) bool, forwards bool,
) func() (T, bool) {
	begin := func(l *list[T]) func() (T, bool) {
		switch {
		case forwards && reached != nil:
			c := l.at(func(v T) bool { return !reached(v) })
			return c.next
		case forwards:
			c := l.start(0)
			return c.next
		case reached != nil:
			c := l.at(reached)
			return c.prev
		}
		c := l.end(0)
		return c.prev
	}
	if len(lists) == 1 {
		return begin(lists[0])
	}
	type head struct {
		v    T
		step func() (T, bool)
	}
	var heads []head
	for _, l := range lists {
		step := begin(l)
		if v, ok := step(); ok {
			heads = append(heads, head{v, step})
		}
	}
	return func() (v T, ok bool) {
		if len(heads) == 0 {
			return v, false
		}
		top := 0
		for i := range heads {
			if n := compare(heads[i].v, heads[top].v); n > 0 && !forwards || n < 0 && forwards {
				top = i
			}
		}
		v = heads[top].v
		for i := len(heads) - 1; i >= 0; i-- {
			if i != top && compare(heads[i].v, v) != 0 {
				continue
			}
			if heads[i].v, ok = heads[i].step(); !ok {
				heads = slices.Delete(heads, i, i+1)
			}
		}
		return v, true
	}
}

// take returns up to limit elements of a walk, after skip of them, and whether there are more. With
// keep, only elements for which it is true count.
func take[T any](walk func() (T, bool), skip, limit int, keep func(T) bool) (page []T, more bool) {
	for v, ok := walk(); ok; v, ok = walk() {
		switch {
		case keep != nil && !keep(v):
		case skip > 0:
			skip--
		case len(page) == limit:
			return page, true
		default:
			if page == nil {
				page = make([]T, 0, min(limit, 16))
			}
			page = append(page, v)
		}
	}
	return page, false
}

// until is a walk that ends before the first element for which over is true; nil: for none.
func until[T any](walk func() (T, bool), over func(T) bool) func() (T, bool) {
	if over == nil {
		return walk
	}
	return func() (v T, ok bool) {
		if v, ok = walk(); ok && over(v) {
			return v, false
		}
		return v, ok
	}
}

// ordered is a list of all that a walk meets.
func ordered[T any](walk func() (T, bool), compare func(a, b T) int) *list[T] {
	all, _ := take(walk, 0, math.MaxInt, nil)
	if len(all) == 0 {
		return new(list[T])
	}
	slices.SortFunc(all, compare)
	return &list[T]{chunks: [][]T{all}, n: len(all)}
}

// copies returns a copy of each row; nil when there are none.
func copies[R, T any](rows []R, copy func(R) T) []T {
	if len(rows) == 0 {
		return nil
	}
	list := make([]T, 0, len(rows))
	for _, r := range rows {
		list = append(list, copy(r))
	}
	return list
}
