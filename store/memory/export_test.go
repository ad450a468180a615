package memory

import (
	"testing"

	"github.com/seed-8aba7b13/tracking"
)

// SetCodeBits has what is found by a code have one of these bits alone, until the test ends.
func SetCodeBits(t testing.TB, bits uint64) {
	was := codeBits
	codeBits = bits
	t.Cleanup(func() { codeBits = was })
}

// CountLooks counts how often two queues, or two boxes, of an outbox are compared from now on.
func (s *Store) CountLooks(outbox string) *int {
	o := s.boxes.find(outbox)
	o.mu.Lock()
	defer o.mu.Unlock()
	n := new(int)
	counted(&o.ready, n)
	counted(&o.later, n)
	for _, b := range o.boxes {
		b.mu.Lock()
		counted(&b.ready, n)
		counted(&b.later, n)
		b.mu.Unlock()
	}
	return n
}

func counted[T any](h *heaped[T], n *int) {
	less := h.less
	h.less = func(a, b T) bool { *n++; return less(a, b) }
}

// HoldCommit takes the locks that a commit of an application to an outbox holds for long, until the
// returned function is called.
func (s *Store) HoldCommit(app tracking.AppID, outbox string) (end func()) {
	a := s.application(app)
	a.mu.Lock()
	b := s.boxes.find(outbox).box(a)
	b.mu.Lock()
	return func() {
		b.mu.Unlock()
		a.mu.Unlock()
	}
}
