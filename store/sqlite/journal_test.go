package sqlite

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-8aba7b13/tracking"
)

// anyPosition draws what fixes can make of a driver after was.
func anyPosition(was tracking.Position) *rapid.Generator[tracking.Position] {
	return rapid.Custom(func(t *rapid.T) tracking.Position {
		p := was
		switch rapid.IntRange(0, 3).Draw(t, "fix") {
		case 0:
			p.Fix = anyKept(rapid.Int64Range(zeroMillis+1, 4e12).Draw(t, "at")).Draw(t, "other").Fix
		case 1:
			p.Fix = tracking.Fix{}
		}
		if rapid.Bool().Draw(t, "tailed") {
			p.Tail = rapid.StringN(0, 20, 80).Draw(t, "tail")
		}
		p.SeenAt = fromMillis(rapid.OneOf(rapid.Just(int64(zeroMillis)), rapid.Int64Range(0, 4e12)).Draw(t, "seen"))
		p.Skew = tracking.Skew{
			Least: anyReading.Draw(t, "least"), Recent: anyReading.Draw(t, "recent"),
			Arrivals: rapid.IntRange(0, 1e6).Draw(t, "arrivals"),
		}
		p.Unread, p.Rewrites = rapid.IntRange(0, 1e6).Draw(t, "unread"), rapid.IntRange(0, 1e6).Draw(t, "rewrites")
		return p
	})
}

// TestMoved puts what happens to several drivers behind one another: read and applied from any place on
// it makes of each what he was at the end.
func TestMoved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var stream []byte
		drivers := []*driverState{{}, {}, {}}
		for i, d := range drivers {
			d.Seq = 3*rapid.Int64Range(0, math.MaxInt64/4).Draw(t, "driver") + int64(i)
			d.open = rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "open")
		}
		from := rapid.IntRange(0, 20).Draw(t, "from") // the rows have what came before
		rows := make([]driverState, len(drivers))
		var places []place
		for n := range rapid.IntRange(0, 20).Draw(t, "changes") {
			if n <= from {
				for i, d := range drivers {
					rows[i] = *d
				}
			}
			i := rapid.IntRange(0, len(drivers)-1).Draw(t, "which")
			next := *drivers[i]
			next.Position = anyPosition(next.Position).Draw(t, "position")
			switch rapid.IntRange(0, 2).Draw(t, "open") {
			case 0:
				more := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "more")
				next.open = append(next.open[:len(next.open):len(next.open)], more...)
			case 1:
				next.open = rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "other")
			}
			stream = appendMoved(stream, drivers[i], &next)
			places = append(places, placeOf(3, len(stream)))
			next.place = places[n]
			drivers[i] = &next
		}
		if from >= len(places) {
			for i, d := range drivers {
				rows[i] = *d
			}
		}
		changes := map[int64][]moved{}
		for n, r := 0, (movedReader{left: stream}); len(r.left) > 0; n++ {
			m, err := r.next()
			if err != nil {
				t.Fatal(err)
			}
			m.place = places[n]
			changes[m.driver] = append(changes[m.driver], m)
		}
		for i, d := range drivers {
			got := rows[i]
			var err error
			got.place, got.open, err = applyMoved(changes[d.Seq], got.place, &got.Position, got.open)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(d.Position, got.Position, bitwise); d != "" {
				t.Errorf("the position (-want +got):\n%s", d)
			}
			if string(got.open) != string(d.open) || got.place != d.place {
				t.Errorf("open fixes %x up to %d, want %x up to %d", got.open, got.place, d.open, d.place)
			}
		}
	})
}

// FuzzMoved reads any bytes: they are refused, or are changes that are written as they are, and are
// refused or applied to whatever is open.
func FuzzMoved(f *testing.F) {
	was := &driverState{fixesState: fixesState{open: []byte("open")}}
	is := &driverState{fixesState: fixesState{open: []byte("open and more")}}
	is.Seq = 7
	is.Position = tracking.Position{
		Fix: tracking.Fix{
			Time: fromMillis(1710057600000), LngLat: tracking.LngLat{Lng: 80.27, Lat: math.NaN()}, EventID: "e",
		},
		Tail: "tail", SeenAt: fromMillis(1710057600000), Unread: 3, Rewrites: 1,
		Skew: tracking.Skew{Least: tracking.Known(-1), Recent: tracking.Known(2), Arrivals: 4},
	}
	f.Add([]byte{}, []byte{})
	f.Add(appendMoved(nil, was, is), was.open)
	f.Add(appendMoved(nil, is, was), is.open)
	f.Fuzz(func(t *testing.T, b, open []byte) {
		for r := (movedReader{left: b}); len(r.left) > 0; {
			m, err := r.next()
			if err != nil {
				return
			}
			p := is.Position
			after, err := m.apply(&p, open)
			if err != nil {
				continue
			}
			old := &driverState{fixesState: fixesState{open: open}}
			old.Seq, old.Position = m.driver, is.Position
			next := &driverState{fixesState: fixesState{open: after}}
			next.Seq, next.Position = m.driver, p
			again := movedReader{left: appendMoved(nil, old, next)}
			n, err := again.next()
			if err != nil || len(again.left) > 0 {
				t.Fatalf("error %v, and %d bytes left", err, len(again.left))
			}
			got := is.Position
			opened, err := n.apply(&got, open)
			if d := cmp.Diff(p, got, bitwise); err != nil || d != "" || string(opened) != string(after) {
				t.Errorf("error %v, open fixes %x, want %x (-want +got):\n%s", err, opened, after, d)
			}
		}
	})
}

// TestCorrect corrects rows by what is known of a driver whose row is behind: not by what is known of
// another driver of that id, nor by what the row has already.
func TestCorrect(t *testing.T) {
	is := &driverState{fixesState: fixesState{place: placeOf(2, 10), late: true}}
	is.Seq, is.Position.Unread = 7, 1
	var l late
	l.publish([]driven{{driverKey{1, "d"}, nil, is}})
	for _, c := range []struct {
		row       driverRow
		corrected bool
	}{
		{driverRow{App: 1, ID: "d", Seq: 7, Place: placeOf(2, 9)}, true},
		{driverRow{App: 1, ID: "d", Seq: 7, Place: placeOf(1, 99)}, true},
		{driverRow{App: 1, ID: "d", Seq: 7, Place: placeOf(2, 10)}, false},
		{driverRow{App: 1, ID: "d", Seq: 7, Place: placeOf(3, 0)}, false},
		{driverRow{App: 1, ID: "d", Seq: 6, Place: placeOf(2, 9)}, false},
		{driverRow{App: 2, ID: "d", Seq: 7, Place: placeOf(2, 9)}, false},
		{driverRow{App: 1, ID: "e", Seq: 7, Place: placeOf(2, 9)}, false},
	} {
		var d tracking.Driver
		if l.correct(&c.row, &d); (d.Position.Unread == 1) != c.corrected {
			t.Errorf("driver %d of %q up to %d: corrected %v", c.row.Seq, c.row.ID, c.row.Place, !c.corrected)
		}
	}
}
