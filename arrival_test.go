package tracking_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
)

// approaches lists what the events of a task say of its driver's coming, with the seconds since the
// start of the tests.
func (w *world) approaches(id tracking.TaskID) (list []string) {
	w.t.Helper()
	events, _, err := w.Events(w.ctx, tracking.EventFilter{
		Subject: tracking.Subject{Kind: tracking.KindTask, ID: string(id)}, Limit: 1000,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range events {
		word, leg := "", tracking.Leg("")
		switch d := e.Details().(type) {
		case tracking.TaskArrivingData:
			word, leg = "arriving", d.Leg
		case tracking.TaskArrivedData:
			word, leg = "arrived", d.Leg
		default:
			continue
		}
		list = append(list, fmt.Sprintf("%s %s %.0f", word, leg, e.Time.Sub(start).Seconds()))
	}
	return list
}

// at is a fix so many seconds after the start, at so many metres east and north.
func at(seconds, east, north float64, more ...func(*tracking.Fix)) tracking.Fix {
	f := tracking.Fix{
		LngLat: tracking.LngLat{Lng: 10 + east/111195.08, Lat: north / 111195.08},
		Time:   start.Add(time.Duration(seconds * float64(time.Second))),
	}
	for _, change := range more {
		change(&f)
	}
	return f
}

func accuracy(m float64) func(*tracking.Fix) {
	return func(f *tracking.Fix) { f.Accuracy = tracking.Known(m) }
}

// along drives from one place to another, both metres east, with a fix every few seconds, and ends
// when it is there.
func along(from, to, north, speed, every, began float64) (fixes []tracking.Fix) {
	took := math.Abs(to-from) / speed
	for s := 0.0; s <= took; s += every {
		fixes = append(fixes, at(began+s, from+(to-from)*s/took, north))
	}
	return fixes
}

// stand has fixes at one place.
func stand(east, north, from, to, every float64) (fixes []tracking.Fix) {
	for s := from; s <= to; s += every {
		fixes = append(fixes, at(s, east, north))
	}
	return fixes
}

// Each is told once, at the time of its fix, in whatever pieces and order the fixes come. The place
// is 5,000 m east.
func TestArrival(t *testing.T) {
	edge := func(n int) (fixes []tracking.Fix) {
		r := rand.New(rand.NewPCG(1, 2))
		for i := range n {
			fixes = append(fixes, at(400+float64(5*i), 5100+20*(r.Float64()-0.5), 0))
		}
		return fixes
	}
	for _, c := range []struct {
		name  string
		fixes []tracking.Fix
		want  []string
	}{
		{"he comes and stays", append(along(0, 5000, 0, 10, 5, 0), stand(5000, 0, 505, 600, 5)...),
			[]string{"arriving drop 400", "arrived drop 495"}},
		{"he comes and stays, a fix a minute", append(along(0, 5000, 0, 10, 60, 0), stand(5000, 0, 540, 700, 60)...),
			[]string{"arriving drop 420", "arrived drop 540"}},
		{"he passes at 15 m/s, 60 m away", along(4000, 6000, 60, 15, 1, 0), []string{"arriving drop 10"}},
		{"he passes at 8 m/s, through the place", along(4000, 6000, 0, 8, 1, 0), []string{"arriving drop 10"}},
		{"he walks past, far enough away", along(4000, 6000, 120, 1.5, 5, 0), []string{"arriving drop 40"}},
		{"he is there at the first fix", stand(5000, 0, 10, 60, 5), []string{"arriving drop 10", "arrived drop 10"}},
		{"he jitters at the edge", edge(60), []string{"arriving drop 400", "arrived drop *"}},
		{"he stays for 15 s", append(stand(5000, 0, 10, 25, 5), along(5200, 9000, 0, 20, 5, 30)...),
			[]string{"arriving drop 10"}},
		{"he leaves and comes back", slices.Concat(stand(5000, 0, 10, 60, 5), along(5200, 9000, 0, 20, 5, 65),
			along(9000, 5000, 0, 20, 5, 300), stand(5000, 0, 520, 600, 5)), []string{"arriving drop 10", "arrived drop 10"}},
		{"he never comes near", along(0, 1000, 0, 5, 5, 0), nil},
	} {
		for order, batches := range map[string]func(fixes []tracking.Fix) [][]tracking.Fix{
			"one by one": func(fixes []tracking.Fix) (list [][]tracking.Fix) {
				for _, f := range fixes {
					list = append(list, []tracking.Fix{f})
				}
				return list
			},
			"at once": func(fixes []tracking.Fix) [][]tracking.Fix { return [][]tracking.Fix{fixes} },
			"late, in pieces": func(fixes []tracking.Fix) (list [][]tracking.Fix) {
				fixes = slices.Clone(fixes)
				for part := range slices.Chunk(fixes, 7) {
					slices.Reverse(part)
					list = append(list, part)
				}
				return list
			},
		} {
			t.Run(c.name+"/"+order, func(t *testing.T) {
				w := newWorld(t)
				w.advance(-time.Minute) // the drive begins with the tests
				w.driver("own", 0)
				w.advance(59 * time.Second)
				id := w.give(tracking.TypeDrop, 0, 5000)
				if err := startOwn(w, id); err != nil {
					t.Fatal(err)
				}
				last := time.Time{}
				for _, b := range batches(c.fixes) {
					for _, f := range b {
						if f.Time.After(last) {
							last = f.Time
						}
					}
					if w.at = last; order == "late, in pieces" {
						w.advance(20 * time.Minute)
					}
					must(w.RecordFixes(w.ctx, "own", b))(t)
				}
				got := w.approaches(id)
				if len(got) == 2 && len(c.want) == 2 && c.want[1] == "arrived drop *" {
					got[1] = c.want[1]
				}
				if d := cmp.Diff(c.want, got); d != "" {
					t.Errorf("(-want +got):\n%s", d)
				}
			})
		}
	}
	t.Run("coarse fixes tell nothing", func(t *testing.T) {
		w := newWorld(t)
		w.driver("own", 100)
		id := w.give(tracking.TypeDrop, 0, 5000)
		if err := startOwn(w, id); err != nil {
			t.Fatal(err)
		}
		for s := range 20 {
			w.at = start.Add(time.Duration(100+5*s) * time.Second)
			must(w.RecordFixes(w.ctx, "own", []tracking.Fix{at(float64(100+5*s), 5000, 0, accuracy(120))}))(t)
		}
		if d := cmp.Diff([]string{"arriving drop 100"}, w.approaches(id)); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

// The stay at one stop says nothing of the next one beside it, and each leg has its own.
func TestArrivalLegByLeg(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	first := w.give(tracking.TypePickupAndDrop, 1000, 1040)
	second := w.give(tracking.TypeDrop, 0, 1080)
	for _, id := range []tracking.TaskID{first, second} {
		if err := startOwn(w, id); err != nil {
			t.Fatal(err)
		}
	}
	stay := func(m float64) {
		t.Helper()
		for range 10 {
			w.advance(5 * time.Second)
			w.fix(m)
		}
	}
	expect := func(when string, id tracking.TaskID, phase tracking.Phase, want ...string) {
		t.Helper()
		if d := cmp.Diff(want, w.approaches(id)); d != "" {
			t.Errorf("%s (-want +got):\n%s", when, d)
		}
		if got := w.look(id).Phase; got != phase {
			t.Errorf("%s: phase %s, want %s", when, got, phase)
		}
	}
	w.advance(10 * time.Second)
	w.fix(100)
	expect("under way", first, tracking.PhaseToPickup, "arriving pickup 10")
	stay(1000)
	shop := []string{"arriving pickup 10", "arrived pickup 15"}
	expect("at the shop", first, tracking.PhaseAtPickup, shop...)
	expect("at the shop", second, tracking.PhaseToDrop)
	if err := pickUp(w, first); err != nil {
		t.Fatal(err)
	}
	expect("goods on board", first, tracking.PhaseToDrop, shop...)
	stay(1040)
	expect("at the first door", first, tracking.PhaseAtDrop, append(shop, "arriving drop 60", "arrived drop 60")...)
	expect("at the first door", second, tracking.PhaseToDrop)
	if err := finish(w, first); err != nil {
		t.Fatal(err)
	}
	w.advance(5 * time.Second)
	w.fix(1060)
	expect("on to the second", second, tracking.PhaseArriving, "arriving drop 110")
	stay(1080)
	expect("at the second door", second, tracking.PhaseAtDrop, "arriving drop 110", "arrived drop 110")
	must(w.UnassignTask(w.ctx, second))(t)
	if task := w.task(second); !task.ArrivedAt.IsZero() || !task.ArrivingAt.IsZero() {
		t.Errorf("taken away it is as if nobody had been there: %+v", task)
	}
}

// What the driver says counts like what the fixes show, once.
func TestArriveByWord(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	id := w.give(tracking.TypeDrop, 0, 1000)
	if _, err := w.ArriveTask(w.ctx, "own", id, tracking.Step{}); code(err) != tracking.ErrConflict {
		t.Errorf("before the start: %v", err)
	}
	if err := startOwn(w, id); err != nil {
		t.Fatal(err)
	}
	w.advance(time.Minute)
	if _, err := w.ArriveTask(w.ctx, "other", id, tracking.Step{}); code(err) != tracking.ErrNotFound {
		t.Errorf("by another driver: %v", err)
	}
	got := must(w.ArriveTask(w.ctx, "own", id, tracking.Step{At: start.Add(50 * time.Second)}))(t)
	w.advance(time.Minute)
	again := must(w.ArriveTask(w.ctx, "own", id, tracking.Step{}))(t)
	if !again.ArrivedAt.Equal(got.ArrivedAt) || !again.UpdatedAt.Equal(got.UpdatedAt) {
		t.Error("said again it is another arrival")
	}
	for range 10 {
		w.advance(5 * time.Second)
		w.fix(1000)
	}
	if d := cmp.Diff([]string{"arrived drop 50"}, w.approaches(id)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	must(w.CompleteTask(w.ctx, id, tracking.Completion{}))(t)
	if _, err := w.ArriveTask(w.ctx, "own", id, tracking.Step{}); code(err) != tracking.ErrConflict {
		t.Errorf("after the end: %v", err)
	}
}

// On the recorded drives to where they end, each is told once, whatever pieces the fixes come in.
func TestArrivalOnRecordedDrives(t *testing.T) {
	for _, name := range []string{"munich-1hz.json", "munich-15s.json"} {
		fixes := drive(t, name)
		end := fixes[len(fixes)-1]
		for s := 1; s <= 40; s++ { // he stays
			f := end
			f.Time = f.Time.Add(time.Duration(s) * time.Second)
			fixes = append(fixes, f)
		}
		var all [][]string
		for _, size := range []int{1, 10, 500} {
			w := newWorld(t)
			w.at = fixes[0].Time.Add(-time.Minute)
			must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "own", Available: new(true)}))(t)
			task := must(w.CreateTask(w.ctx, tracking.NewTask{
				Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: &end.LngLat},
			}))(t)
			must(w.AssignTask(w.ctx, task.ID, "own"))(t)
			if err := startOwn(w, task.ID); err != nil {
				t.Fatal(err)
			}
			for part := range slices.Chunk(fixes, size) {
				w.at = part[len(part)-1].Time
				must(w.RecordFixes(w.ctx, "own", part))(t)
			}
			got := w.approaches(task.ID)
			done := w.task(task.ID)
			if len(got) != 2 || done.ArrivedAt.Before(end.Time.Add(-2*time.Minute)) || done.ArrivedAt.After(end.Time) ||
				!done.ArrivingAt.Before(done.ArrivedAt) {
				t.Errorf("%s in parts of %d: %q; the drive ended at %v, he arrived at %v", name, size, got, end.Time,
					done.ArrivedAt)
			}
			all = append(all, got)
		}
		if !slices.Equal(all[0], all[1]) || !slices.Equal(all[0], all[2]) {
			t.Errorf("%s: by the size of the parts %q", name, all)
		}
	}
}

// A task is late as soon as its driver is expected after what was promised, once, and through all
// the stops before it.
func TestLateByExpectation(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	promise := func(id tracking.TaskID, in time.Duration) {
		t.Helper()
		must(w.UpdateTask(w.ctx, id, tracking.TaskUpdate{Promised: new(w.now().Add(in))}))(t)
	}
	first, second := w.give(tracking.TypeDrop, 0, 2000), w.give(tracking.TypeDrop, 0, 4000)
	if err := startOwn(w, first); err != nil {
		t.Fatal(err)
	}
	promise(first, in(2000)+time.Minute)
	promise(second, in(2000, 2000)-time.Minute)
	late := func(id tracking.TaskID) (n int) {
		t.Helper()
		for _, e := range w.told(tracking.KindTask, string(id), 0) {
			if strings.HasPrefix(e, "task.late") {
				n++
			}
		}
		return n
	}
	for range 20 {
		w.advance(5 * time.Second)
		w.fix(10)
	}
	// at the lights for 100 s: the first one will be late too
	if late(first) != 1 || late(second) != 1 || !w.task(first).Late(w.now()) || !w.task(second).Late(w.now()) {
		t.Errorf("told %d and %d times", late(first), late(second))
	}
	promise(second, time.Hour)
	for range 20 {
		w.advance(5 * time.Second)
		w.fix(10)
	}
	if late(second) != 1 || w.task(second).Late(w.now()) {
		t.Errorf("with a later promise: told %d times", late(second))
	}
}
