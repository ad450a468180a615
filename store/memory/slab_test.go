package memory

import (
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// A slab gives each row a number of its own, and the number of one that is gone to the next.
func TestSlab(t *testing.T) {
	var s slab[*int]
	const many = 3*slabChunk + 1
	for i := range many {
		if n := s.put(&i); int(n) != i {
			t.Fatalf("row %d has the number %d", i, n)
		}
	}
	first := s.at(0)
	s.drop(7)
	s.drop(slabChunk)
	if *s.at(7) != nil {
		t.Error("a row that is gone is held")
	}
	left := many
	for want := range map[uint32]bool{7: true, slabChunk: true} {
		n := s.put(&left)
		if n != 7 && n != slabChunk || *s.at(n) != &left {
			t.Errorf("the number %d is not one of those that are free, as %d is", n, want)
		}
	}
	if n := s.put(nil); n != many {
		t.Errorf("the next number is %d, not %d", n, many)
	}
	if s.at(0) != first || **first != 0 {
		t.Error("a row has moved")
	}
}

// Two ids, or keys, may have the same code: each finds its own task.
func TestSameCode(t *testing.T) {
	x := newTasks()
	at := time.UnixMilli(1_700_000_000_000).UTC()
	for i, id := range []tracking.TaskID{"a", "b", "c"} {
		x.insert(&tracking.Task{
			ID: id, Key: "key " + string(id), Status: tracking.StatusCreated, CreatedAt: at, Seq: int64(i + 1), Version: 1,
		}, nil)
	}
	a, b := x.row("a"), x.row("b")
	// As if b, and its key, had the codes of a and of its key.
	for in, texts := range map[*lists][2]string{&x.byID: {"a", "b"}, &x.byKey: {"key a", "key b"}} {
		in.remove(codeOf(texts[1]), b.no, x.rows.byAge)
		in.insert(codeOf(texts[0]), b.no, x.rows.byAge)
	}
	if x.row("a") != a || x.withKey("key a") != a {
		t.Error("a is not found beside b")
	}
	if x.row("b") != nil || x.withKey("key b") != nil {
		t.Error("b is found where it is not")
	}
	x.byID.remove(codeOf("a"), a.no, x.rows.byAge)
	x.byKey.remove(codeOf("key a"), a.no, x.rows.byAge)
	if x.row("a") != nil || x.withKey("key a") != nil {
		t.Error("a is taken for b, whose code is the same")
	}
}
