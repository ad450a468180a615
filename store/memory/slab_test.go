package memory

import (
	"runtime"
	"testing"
	"time"
	"weak"

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

// Two secrets may have the same code: each finds its own row, which keeps its number for the next one.
func TestHashesOfOneCode(t *testing.T) {
	var x hashes[string]
	one, two := owner[string]{id: "one"}, owner[string]{id: "two"}
	first, second := tracking.Hash{31: 1}, tracking.Hash{31: 2}
	x.move(one, tracking.Hash{}, first)
	x.move(two, tracking.Hash{}, second)
	holds := func(when string, want map[tracking.Hash]string) {
		t.Helper()
		for _, h := range []tracking.Hash{first, second, {31: 3}} {
			if o, ok := x.find(h); o.id != want[h] || ok != (want[h] != "") {
				t.Errorf("%s: the hash %d is that of %q, want %q", when, h[31], o.id, want[h])
			}
		}
	}
	holds("of two", map[tracking.Hash]string{first: "one", second: "two"})
	x.drop(two, first)
	holds("dropped by another", map[tracking.Hash]string{first: "one", second: "two"})
	x.move(two, second, first)
	holds("given to another", map[tracking.Hash]string{first: "two"})
	x.move(one, first, second)
	holds("once the former has let go", map[tracking.Hash]string{first: "two", second: "one"})
	for range 100 {
		x.move(one, second, tracking.Hash{})
		x.move(one, tracking.Hash{}, second)
	}
	if used := x.part(first).rows.used; used != 2 {
		t.Errorf("two hashes have taken %d rows", used)
	}
}

// Of drivers whose ids have the same code each finds his own row.
func TestDriversOfOneCode(t *testing.T) {
	a := newApplication("a", new(rowLocks))
	x := &a.drivers
	one := x.insert(a, &tracking.Driver{ID: "a", Seq: 1})
	two := x.insert(a, &tracking.Driver{ID: "b", Seq: 2})
	x.byID.insert(codeOf("b"), one.no, x.byAge)
	x.byID.insert(codeOf("a"), two.no, x.byAge)
	if x.row("a") != one || x.row("b") != two || x.row("c") != nil {
		t.Error("one is taken for the other")
	}
	x.byID.remove(codeOf("a"), one.no, x.byAge)
	if x.row("a") != nil || x.row("b") != two {
		t.Error("who is gone is found")
	}
}

// The row of a driver who was deleted is another one's in time: what still names it, as the queue of
// those whose fixes are to be purged, that of matches or an export, takes him for nobody else.
func TestARowIsUsedAgain(t *testing.T) {
	ctx, s := t.Context(), New()
	at := time.UnixMilli(1_700_000_000_000).UTC()
	commit := func(cs *tracking.Changeset) {
		t.Helper()
		if _, err := s.Commit(ctx, "a", cs); err != nil {
			t.Fatal(err)
		}
	}
	record := func(id tracking.DriverID, lng float64, at time.Time) {
		t.Helper()
		if _, err := s.RecordFixes(ctx, "a", tracking.FixBatch{
			DriverID: id, SeenAt: at, Fixes: []tracking.Fix{{LngLat: tracking.LngLat{Lng: lng}, Time: at, Trusted: true}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	matches := func(want int) {
		t.Helper()
		list, err := s.Matches(ctx, "a", tracking.MatchQuery{MaxOpen: -1, Within: 1000, Limit: 1})
		if err != nil || len(list) != want {
			t.Fatalf("%d tasks, %v, want %d", len(list), err, want)
		}
	}
	commit(&tracking.Changeset{
		Tasks: []tracking.Task{{
			ID: "t", Type: tracking.TypeDrop, Waiting: true, Drop: &tracking.Place{LngLat: &tracking.LngLat{Lng: 50}},
		}},
		Drivers: []tracking.Driver{
			{ID: "one", Person: "1", Name: "One", Available: true, CreatedAt: at, Properties: map[string]string{"k": "v"}},
		},
	})
	matches(0)
	record("one", 3, at) // which queues him
	first := s.application("a").drivers.row("one").no
	for row, err := range s.Rows(ctx, tracking.RowQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		switch v := row.Value.(type) {
		case tracking.DriverRow:
			commit(&tracking.Changeset{DeleteDrivers: []tracking.Driver{{ID: "one", Version: v.Version}}})
			if _, err := s.Purge(ctx, tracking.Before{Limit: 10}); err != nil {
				t.Fatal(err)
			}
			commit(&tracking.Changeset{
				Drivers: []tracking.Driver{{ID: "two", Available: true, CreatedAt: at}},
				Events: []tracking.Event{{
					ID: "e", Type: tracking.EventTaskCreated, Subject: tracking.Subject{Kind: tracking.KindTask, ID: "t"},
					Notices: []tracking.Notice{{DriverID: "two"}},
				}},
			})
			if no := s.application("a").drivers.row("two").no; no != first {
				t.Fatalf("the row is %d, not %d as before", no, first)
			}
			if d, err := s.Driver(ctx, "a", "two"); err != nil || d.Position != (tracking.Position{}) || d.Person != "" ||
				d.Name != "" || d.Properties != nil {
				t.Errorf("two begins as %+v, %v", d, err)
			}
			record("two", 3, at.Add(time.Minute))
		case tracking.FixRow, tracking.Notice:
			t.Errorf("%+v is said to be of one", v)
		}
	}
	matches(0)
	record("two", 50, at.Add(2*time.Minute))
	matches(1)
	before := tracking.Before{Fixes: at.Add(30 * time.Second), Limit: 10}
	if p, err := s.Purge(ctx, before); err != nil || p.Fixes != 0 {
		t.Errorf("%d fixes were purged, %v", p.Fixes, err)
	}
	before.Fixes = at.Add(time.Hour)
	if p, err := s.Purge(ctx, before); err != nil || p.Fixes != 2 {
		t.Errorf("%d fixes were purged, %v, want 2", p.Fixes, err)
	}
}

// What is undelivered of a subject keeps nothing of what has been delivered of it.
func TestNothingDeliveredIsKept(t *testing.T) {
	ctx, s := t.Context(), New()
	at := time.UnixMilli(1_700_000_000_000).UTC()
	outboxes := []string{"x", "y"}
	add := func(id string) *eventRow {
		if _, err := s.Commit(ctx, "a", &tracking.Changeset{
			Events:  []tracking.Event{{ID: id, Subject: tracking.Subject{Kind: tracking.KindTask, ID: "t"}, RecordedAt: at}},
			Deliver: outboxes,
		}); err != nil {
			t.Fatal(err)
		}
		return s.application("a").events.row(id)
	}
	finish := func(id string) {
		for _, o := range outboxes {
			if _, err := s.LeaseEvents(ctx, tracking.Lease{Outbox: o, Owner: "o", Now: at, For: time.Hour, Limit: 1}); err != nil {
				t.Fatal(err)
			}
			if err := s.FinishEvents(ctx, []tracking.Delivery{
				{App: "a", Outbox: o, EventID: id, Owner: "o", State: tracking.DeliveryDone, Now: at},
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := weak.Make(add("1"))
	add("2")
	sub := s.application("a").events.row("2").subject
	queue := weak.Make(sub.queues[0])
	finish("1")
	if p, err := s.Purge(ctx, tracking.Before{Events: at.Add(time.Hour), Limit: 10}); err != nil || p.Events != 1 {
		t.Fatalf("%d events are purged, %v", p.Events, err)
	}
	runtime.GC()
	if first.Value() != nil {
		t.Error("an event that is gone is held")
	}
	finish("2")
	runtime.GC()
	if queue.Value() != nil {
		t.Error("a queue that is over is held")
	}
	runtime.KeepAlive(s)
}

// Drivers who come and go leave nothing that grows, though fixes are kept for ever.
func TestNothingGrows(t *testing.T) {
	ctx, s := t.Context(), New()
	at := time.UnixMilli(1_700_000_000_000).UTC()
	for i := range 1000 {
		at := at.Add(time.Duration(i) * time.Second)
		w, err := s.Commit(ctx, "a", &tracking.Changeset{
			Drivers: []tracking.Driver{{ID: "d", CreatedAt: at, Properties: map[string]string{"k": at.String()}}},
			Fixes:   []tracking.FixBatch{{DriverID: "d", SeenAt: at, Fixes: []tracking.Fix{{Time: at, Trusted: true}}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(ctx, "a", &tracking.Changeset{
			DeleteDrivers: []tracking.Driver{{ID: "d", Version: w.Drivers[0].Version}},
		}); err != nil {
			t.Fatal(err)
		}
		if p, err := s.Purge(ctx, tracking.Before{Limit: 10}); err != nil || p.Fixes != 1 {
			t.Fatalf("%d fixes are purged, %v", p.Fixes, err)
		}
	}
	a := s.application("a")
	for what, n := range map[string]int{
		"rows": int(a.drivers.rows.used), "entries of those whose fixes age": len(a.aging.heap), "erased": len(a.erased),
		"codes": a.drivers.byID.by.n, "properties": len(a.drivers.byProperty),
	} {
		if n > 100 {
			t.Errorf("there are %d %s", n, what)
		}
	}
}
