package memory

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// A list does what a sorted slice does.
func TestList(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name   string
		next   func(i int) int // the element to insert
		remove float64         // how often an element is removed instead
	}{
		{"appended", func(i int) int { return i }, 0.1},
		{"prepended", func(i int) int { return -i }, 0.1},
		{"anywhere", func(int) int { return r.IntN(1 << 40) }, 0.1},
		{"coming and going", func(i int) int { return i + r.IntN(2000) }, 0.45},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l list[int]
			var ref []int
			for i := range 12_000 {
				if v := c.next(i); r.Float64() >= c.remove {
					if at, found := slices.BinarySearch(ref, v); !found {
						ref = slices.Insert(ref, at, v)
					} // else it is there
					l.insert(v, cmp.Compare[int])
				} else if len(ref) > 0 {
					at := r.IntN(len(ref))
					if !l.remove(ref[at], cmp.Compare[int]) {
						t.Fatalf("remove(%d) = false", ref[at])
					}
					ref = slices.Delete(ref, at, at+1)
				}
				if l.remove(1<<50, cmp.Compare[int]) {
					t.Fatal("removed what was not there")
				}
				if i%1000 == 0 || i < 50 {
					compareList(t, r, &l, ref)
				}
			}
			compareList(t, r, &l, ref)
			if most := len(ref)/(chunkSize/4) + 2; len(l.chunks) > most {
				t.Errorf("%d elements are in %d chunks, want at most %d", len(ref), len(l.chunks), most)
			}
			for _, v := range ref { // to the last
				l.remove(v, cmp.Compare[int])
			}
			compareList(t, r, &l, nil)
		})
	}
}

// compareList plays the same on a list and on a sorted slice, and compares what they answer.
func compareList(t *testing.T, r *rand.Rand, l *list[int], ref []int) {
	t.Helper()
	if l.len() != len(ref) {
		t.Fatalf("len = %d, want %d", l.len(), len(ref))
	}
	collect := func(step func() (int, bool)) (all []int) {
		for v, ok := step(); ok; v, ok = step() {
			all = append(all, v)
		}
		return all
	}
	skip := r.IntN(len(ref) + 2)
	rest := ref[min(skip, len(ref)):]
	if c := l.start(skip); !slices.Equal(collect(c.next), rest) {
		t.Fatalf("start(%d) of %d goes elsewhere", skip, len(ref))
	}
	back := slices.Clone(ref[:max(0, len(ref)-skip)])
	slices.Reverse(back)
	if c := l.end(skip); !slices.Equal(collect(c.prev), back) {
		t.Fatalf("end(%d) of %d goes elsewhere", skip, len(ref))
	}
	v := r.IntN(1 << 40)
	if len(ref) > 0 {
		v = ref[r.IntN(len(ref))] + r.IntN(2)
	}
	rank, _ := slices.BinarySearch(ref, v)
	reached := func(w int) bool { return w >= v }
	if got := l.count(reached); got != rank {
		t.Fatalf("count(%d) = %d, want %d", v, got, rank)
	}
	if c := l.at(reached); !slices.Equal(collect(c.next), ref[rank:]) {
		t.Fatalf("at(%d) goes elsewhere", v)
	}
}

// Lists by key do what a sorted slice for each key does, also as the first element comes and the
// last one goes.
func TestLists(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	x, ref := lists{}, map[uint64][]taskNo{}
	for range 5000 {
		key, v := r.Uint64N(20), taskNo(r.IntN(4))
		if at, found := slices.BinarySearch(ref[key], v); !found {
			ref[key] = slices.Insert(ref[key], at, v)
			x.insert(key, v, cmp.Compare[taskNo])
		} else if r.IntN(3) == 0 {
			x.insert(key, v, cmp.Compare[taskNo]) // which is there
		} else {
			ref[key] = slices.Delete(ref[key], at, at+1)
			x.remove(key, v, cmp.Compare[taskNo])
		}
		x.remove(key, 99, cmp.Compare[taskNo]) // which is not there
		l := x.of(key)
		if (l == nil) != (len(ref[key]) == 0) {
			t.Fatalf("a list of %d: %v, want its elements to be %v", key, l != nil, ref[key])
		}
		if l != nil {
			if got := slices.Concat(l.chunks...); !slices.Equal(got, ref[key]) || l.len() != len(got) {
				t.Fatalf("the list of %d is %v, of length %d; want %v", key, got, l.len(), ref[key])
			}
		}
	}
}
