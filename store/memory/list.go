package memory

import (
	"slices"
	"sort"
)

// chunkSize is the most elements that a chunk of a list holds.
const chunkSize = 512

// list is an ordered list in chunks: inserting, removing and finding a rank cost about the square
// root of its length, and appending next to nothing. A plain slice would move a million pointers to
// take one out of the middle. The zero list is empty and ready.
//
// The order is a function given with each call; it must always be the same one, and what it looks
// at must not change while an element is in the list.
type list[T any] struct {
	chunks [][]T  // none is empty
	one    [1][]T // where chunks is kept of a list that has had no more: most are short, and many
	n      int
}

// len is the number of elements.
func (l *list[T]) len() int { return l.n }

// insert adds v, which must not be there.
func (l *list[T]) insert(v T, compare func(a, b T) int) {
	l.n++
	if len(l.chunks) == 0 {
		l.put(0, []T{v})
		return
	}
	c := len(l.chunks) - 1
	if last := l.chunks[c]; compare(last[len(last)-1], v) < 0 { // the usual case: it is the newest
		if len(last) < chunkSize {
			l.chunks[c] = append(last, v)
			return
		}
		// Of many the next is as long as it will be: to grow would take as much again, and a third more.
		l.put(c+1, append(make([]T, 0, min(chunkSize, max(64, l.n/8))), v))
		return
	}
	c, i := l.find(v, compare)
	chunk := l.chunks[c]
	if len(chunk) == chunkSize {
		left, right := chunk[:chunkSize/2:chunkSize/2], append([]T(nil), chunk[chunkSize/2:]...)
		l.chunks[c] = append([]T(nil), left...)
		l.put(c+1, right)
		if i > chunkSize/2 {
			c, i = c+1, i-chunkSize/2
		}
		chunk = l.chunks[c]
	}
	var zero T
	chunk = append(chunk, zero)
	copy(chunk[i+1:], chunk[i:])
	chunk[i] = v
	l.chunks[c] = chunk
}

// put inserts a chunk.
func (l *list[T]) put(c int, chunk []T) {
	if cap(l.chunks) == 0 {
		l.chunks = l.one[:0]
	}
	l.chunks = slices.Insert(l.chunks, c, chunk)
	if len(l.chunks) > 1 {
		l.one[0] = nil // let go of it: they are elsewhere
	}
}

// remove takes out the element that is equal to v in order, and reports whether there was one.
func (l *list[T]) remove(v T, compare func(a, b T) int) bool {
	if l.n == 0 {
		return false
	}
	c, i := l.find(v, compare)
	chunk := l.chunks[c]
	if i == len(chunk) || compare(chunk[i], v) != 0 {
		return false
	}
	l.n--
	copy(chunk[i:], chunk[i+1:])
	var zero T
	chunk[len(chunk)-1] = zero // let go of it
	l.chunks[c] = chunk[:len(chunk)-1]
	l.mend(c)
	return true
}

// mend drops the chunk c if it is empty, and joins it with a neighbour if both are small.
func (l *list[T]) mend(c int) {
	switch n := len(l.chunks[c]); {
	case n == 0:
		l.drop(c)
	case c+1 < len(l.chunks) && n+len(l.chunks[c+1]) <= chunkSize/2:
		l.chunks[c] = append(l.chunks[c], l.chunks[c+1]...)
		l.drop(c + 1)
	case c > 0 && n+len(l.chunks[c-1]) <= chunkSize/2:
		l.chunks[c-1] = append(l.chunks[c-1], l.chunks[c]...)
		l.drop(c)
	}
}

func (l *list[T]) drop(c int) {
	copy(l.chunks[c:], l.chunks[c+1:])
	l.chunks[len(l.chunks)-1] = nil
	l.chunks = l.chunks[:len(l.chunks)-1]
}

// find returns the chunk and the place in it where v is, or belongs.
func (l *list[T]) find(v T, compare func(a, b T) int) (c, i int) {
	return l.search(func(w T) bool { return compare(w, v) >= 0 })
}

// search returns the chunk and the place in it of the first element for which reached is true; it
// must be false, then true, along the list. When it is false for all, the place is just after the
// last element. The list must not be empty.
func (l *list[T]) search(reached func(T) bool) (c, i int) {
	c = sort.Search(len(l.chunks)-1, func(c int) bool { chunk := l.chunks[c]; return reached(chunk[len(chunk)-1]) })
	i = sort.Search(len(l.chunks[c]), func(i int) bool { return reached(l.chunks[c][i]) })
	return c, i
}

// count returns how many elements come before the first for which reached is true.
func (l *list[T]) count(reached func(T) bool) int {
	if l.n == 0 {
		return 0
	}
	c, i := l.search(reached)
	for _, chunk := range l.chunks[:c] {
		i += len(chunk)
	}
	return i
}

// cursor is a place between two elements of a list. It is of no use once the list has changed.
type cursor[T any] struct {
	l    *list[T]
	c, i int // the next element forwards
}

// start returns a cursor with skip elements before it.
func (l *list[T]) start(skip int) cursor[T] {
	if skip >= l.n {
		return l.end(0)
	}
	c := 0
	for skip >= len(l.chunks[c]) {
		skip -= len(l.chunks[c])
		c++
	}
	return cursor[T]{l, c, skip}
}

// end returns a cursor with skip elements after it.
func (l *list[T]) end(skip int) cursor[T] {
	if skip >= l.n {
		return cursor[T]{l, 0, 0}
	}
	c := len(l.chunks) - 1
	for skip >= len(l.chunks[c]) {
		skip -= len(l.chunks[c])
		c--
	}
	return cursor[T]{l, c, len(l.chunks[c]) - skip}
}

// at returns a cursor before the first element for which reached is true; see search.
func (l *list[T]) at(reached func(T) bool) cursor[T] {
	if l.n == 0 {
		return cursor[T]{l, 0, 0}
	}
	c, i := l.search(reached)
	return cursor[T]{l, c, i}
}

// next moves on over one element and returns it, or false at the end.
func (p *cursor[T]) next() (v T, ok bool) {
	for p.c < len(p.l.chunks) {
		if chunk := p.l.chunks[p.c]; p.i < len(chunk) {
			p.i++
			return chunk[p.i-1], true
		}
		p.c, p.i = p.c+1, 0
	}
	return v, false
}

// prev moves back over one element and returns it, or false at the start.
func (p *cursor[T]) prev() (v T, ok bool) {
	for p.i == 0 {
		if p.c == 0 {
			return v, false
		}
		p.c--
		p.i = len(p.l.chunks[p.c])
	}
	p.i--
	return p.l.chunks[p.c][p.i], true
}

// lists are ordered lists by key. A key with one element, as most of those by which a single row is
// found, has no list of its own: that would take three times as much as the element's place in the map.
type lists[T any] struct {
	ones  map[uint64]T
	lists map[uint64]*list[T]
}

func newLists[T any]() lists[T] {
	return lists[T]{ones: make(map[uint64]T), lists: make(map[uint64]*list[T])}
}

// of is the list of a key, to be read only; nil: it has no elements.
func (x *lists[T]) of(key uint64) *list[T] {
	if l := x.lists[key]; l != nil {
		return l
	}
	if v, ok := x.ones[key]; ok {
		return &list[T]{chunks: [][]T{{v}}, n: 1}
	}
	return nil
}

// insert adds v to the list of a key.
func (x *lists[T]) insert(key uint64, v T, compare func(a, b T) int) {
	l := x.lists[key]
	if l == nil {
		first, ok := x.ones[key]
		if !ok {
			x.ones[key] = v
			return
		}
		delete(x.ones, key)
		l = new(list[T])
		l.insert(first, compare)
		x.lists[key] = l
	}
	l.insert(v, compare)
}

// remove takes v out of the list of a key.
func (x *lists[T]) remove(key uint64, v T, compare func(a, b T) int) {
	if x.lists[key] != nil {
		removeFrom(x.lists, key, v, compare)
	} else if one, ok := x.ones[key]; ok && compare(one, v) == 0 {
		delete(x.ones, key)
	}
}
