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
	first  [2]T   // … and where its elements are, of one that has had no more
	n      int
}

// len is the number of elements.
func (l *list[T]) len() int { return l.n }

// insert adds v, unless it is there.
func (l *list[T]) insert(v T, compare func(a, b T) int) {
	order := -1 // of the last one beside it, mostly: it is the newest
	if len(l.chunks) > 0 {
		last := l.chunks[len(l.chunks)-1]
		order = compare(last[len(last)-1], v)
	}
	switch {
	case order == 0:
		return
	case order < 0:
		l.push(v)
		return
	}
	c, i := l.find(v, compare)
	chunk := l.chunks[c]
	if compare(chunk[i], v) == 0 {
		return
	}
	l.n++
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
	chunk = append(l.room(chunk), zero)
	copy(chunk[i+1:], chunk[i:])
	chunk[i] = v
	l.chunks[c] = chunk
}

// push adds v, which comes after all the others.
func (l *list[T]) push(v T) {
	c := len(l.chunks) - 1
	switch {
	case c < 0:
		l.put(0, append(l.first[:0], v))
	case len(l.chunks[c]) < chunkSize:
		l.chunks[c] = append(l.room(l.chunks[c]), v)
	default:
		// Of many the next is as long as it will be: to grow would take as much again, and a third more.
		l.put(c+1, append(make([]T, 0, min(chunkSize, max(64, l.n/8))), v))
	}
	l.n++
}

// room is a chunk of l's with room for one more.
func (l *list[T]) room(chunk []T) []T {
	if len(chunk) < cap(chunk) {
		return chunk
	}
	chunk = slices.Grow(chunk, 1)
	clear(l.first[:]) // let go of them: they are elsewhere
	return chunk
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

// lists are ordered lists of rows by key. A key with one row, as most of those by which a single one is
// found, has no list of its own: that would take six times as much. All of it is numbers, which the
// garbage collector need not look at. The zero lists are empty and ready.
type lists struct {
	by   numbers // a key's only row, or the number of its list with severals set
	many slab[list[uint32]]
}

// severals is more than there can be rows.
const severals = 1 << 31

// get is what a key has: none, one, or a list of some, to be read only.
func (x *lists) get(key uint64) (one uint32, some *list[uint32], ok bool) {
	n, ok := x.by.of(key)
	if n&severals != 0 {
		return 0, x.many.at(n &^ severals), true
	}
	return n, nil, ok
}

// touch is that of the numbers.
func (x *lists) touch(key uint64) uint32 { return x.by.touch(key) }

// of is the list of a key, to be read only; nil: it has no elements.
func (x *lists) of(key uint64) *list[uint32] {
	one, some, ok := x.get(key)
	if ok && some == nil {
		return &list[uint32]{chunks: [][]uint32{{one}}, n: 1}
	}
	return some
}

// insert adds n to the list of a key, unless it is there.
func (x *lists) insert(key uint64, n uint32, compare func(a, b uint32) int) {
	has, fresh := x.by.at(key)
	switch {
	case fresh:
		*has = n
	case *has&severals != 0:
		x.many.at(*has&^severals).insert(n, compare)
	case *has != n:
		no := x.many.put(list[uint32]{})
		some := x.many.at(no)
		some.insert(*has, compare)
		some.insert(n, compare)
		*has = no | severals
	}
}

// remove takes n out of the list of a key, if it is there.
func (x *lists) remove(key uint64, n uint32, compare func(a, b uint32) int) {
	one, some, ok := x.get(key)
	switch {
	case some != nil:
		if some.remove(n, compare); some.len() == 0 {
			no, _ := x.by.of(key)
			x.many.drop(no &^ severals)
			x.by.drop(key)
		}
	case ok && one == n:
		x.by.drop(key)
	}
}
