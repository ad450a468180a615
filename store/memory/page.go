package memory

import (
	"slices"

	"github.com/seed-8aba7b13/tracking"
)

// newest returns a page of the union of lists without common elements, the last elements first. With keep, only elements for which it is true count.
func newest[T any](lists []*list[T], p tracking.Page, compare func(a, b T) int, keep func(T) bool) (page []T, more bool) {
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
	return take(merge(lists, compare), skip, p.Limit, keep)
}

// merge walks a union of lists backwards.
func merge[T any](lists []*list[T], compare func(a, b T) int) func() (T, bool) {
	if len(lists) == 1 {
		c := lists[0].end(0)
		return c.prev
	}
	type head struct {
		v T
		c cursor[T]
	}
	var heads []head
	for _, l := range lists {
		c := l.end(0)
		if v, ok := c.prev(); ok {
			heads = append(heads, head{v, c})
		}
	}
	return func() (v T, ok bool) {
		if len(heads) == 0 {
			return v, false
		}
		top := 0
		for i := range heads {
			if compare(heads[i].v, heads[top].v) > 0 {
				top = i
			}
		}
		v = heads[top].v
		if heads[top].v, ok = heads[top].c.prev(); !ok {
			heads = slices.Delete(heads, top, top+1)
		}
		return v, true
	}
}

// take returns up to limit elements of a walk, after skip of them, and whether there are more. With keep, only elements for which it is true count.
func take[T any](walk func() (T, bool), skip, limit int, keep func(T) bool) (page []T, more bool) {
	for v, ok := walk(); ok; v, ok = walk() {
		switch {
		case keep != nil && !keep(v):
		case skip > 0:
			skip--
		case len(page) == limit:
			return page, true
		default:
			page = append(page, v)
		}
	}
	return page, false
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
