package tracking

import (
	"encoding/binary"
	"testing"
	"time"
)

// TestNoteGuardIsBounded: of any number of links the guard remembers no more than it may, and those
// that have been quiet the longest go first.
func TestNoteGuardIsBounded(t *testing.T) {
	var g noteGuard
	link := func(n int) (h Hash) { binary.BigEndian.PutUint64(h[:], uint64(n+1)); return h }
	now := t0
	for n := range notesKept {
		g.take(link(n), now)
		now = now.Add(time.Millisecond)
	}
	g.take(link(0), now) // it is not the quietest any more
	for n := range 50 {
		now = now.Add(time.Millisecond)
		g.take(link(notesKept+n), now)
		if len(g.sent) > notesKept {
			t.Fatalf("%d links are remembered", len(g.sent))
		}
	}
	for n, want := range map[int]int{0: 2, 1: 0, 50: 0, 51: 1, notesKept: 1} {
		if got := len(g.sent[link(n)]); got != want {
			t.Errorf("of link %d it remembers %d notes, want %d", n, got, want)
		}
	}
	g.take(link(-1), now.Add(day))
	if len(g.sent) != 1 {
		t.Errorf("a day later %d links are remembered, want 1", len(g.sent))
	}
}
