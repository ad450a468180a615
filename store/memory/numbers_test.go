package memory

import (
	"math/rand/v2"
	"testing"
)

// Numbers do what a map does: while they are few and many, as codes come and go, and where codes are
// much alike.
func TestNumbers(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct {
		name  string
		codes uint64
		shift int
		drops int // of 10
	}{
		{"few", 5, 0, 5}, {"some", 1000, 0, 4}, {"many", 1 << 40, 0, 1}, {"many that come and go", 20_000, 0, 5},
		{"alike at the end", 1 << 20, 40, 2}, {"growing", 1 << 62, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var x numbers
			want := map[uint64]uint32{}
			var known []uint64
			for i := range 60_000 {
				code := r.Uint64N(c.codes) << c.shift
				if len(known) > 0 && r.IntN(3) == 0 {
					code = known[r.IntN(len(known))]
				}
				n, ok := x.of(code)
				was, there := want[code]
				if n != was || ok != there {
					t.Fatalf("%#x has %d, %v; want %d, %v", code, n, ok, was, there)
				}
				if r.IntN(10) < c.drops {
					x.drop(code)
					delete(want, code)
					if _, ok := x.of(code); ok {
						t.Fatalf("%#x is there still", code)
					}
					continue
				}
				at, fresh := x.at(code)
				if fresh == there || *at != was {
					t.Fatalf("%#x is fresh: %v, with %d; want %v, %d", code, fresh, *at, !there, was)
				}
				*at, want[code] = uint32(i), uint32(i)
				known = append(known, code)
			}
			if x.n != len(want) {
				t.Errorf("there are %d, want %d", x.n, len(want))
			}
			for code, n := range want {
				if got, ok := x.of(code); !ok || got != n {
					t.Fatalf("%#x has %d, %v in the end; want %d", code, got, ok, n)
				}
			}
		})
	}
}

// Codes that no bits tell apart are found, too.
func TestNumbersAlike(t *testing.T) {
	p := &numbersPart{bits: mostBits, slots: make([]numbersSlot, manySlots)}
	x := numbers{parts: []*numbersPart{p}}
	for code := range uint64(3 * manySlots) {
		n, fresh := x.at(code)
		if !fresh {
			t.Fatalf("%d is there", code)
		}
		*n = uint32(code)
	}
	for code := range uint64(3 * manySlots) {
		if n, ok := x.of(code); !ok || n != uint32(code) {
			t.Fatalf("%d has %d, %v", code, n, ok)
		}
	}
}
