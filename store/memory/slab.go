package memory

// slab holds rows that lists name by their numbers: half as long as a pointer, and nothing to the
// garbage collector, for which a million rows with forty pointers to each are most of its work.
type slab[T any] struct {
	chunks []*[slabChunk]T
	used   uint32   // numbers that have been given
	free   []uint32 // of these, the ones whose rows are gone
}

const slabChunk = 64 // rows, so that a small application's take little

// put keeps a row and returns its number.
func (s *slab[T]) put(row T) (n uint32) {
	if last := len(s.free) - 1; last >= 0 {
		n, s.free = s.free[last], s.free[:last]
	} else {
		if n = s.used; n%slabChunk == 0 {
			s.chunks = append(s.chunks, new([slabChunk]T))
		}
		s.used++
	}
	*s.at(n) = row
	return n
}

// at is the row of a number, in its place until it is dropped.
func (s *slab[T]) at(n uint32) *T { return &s.chunks[n/slabChunk][n%slabChunk] }

// drop lets go of a row, which no list may name any more.
func (s *slab[T]) drop(n uint32) {
	var none T
	*s.at(n) = none
	s.free = append(s.free, n)
}
