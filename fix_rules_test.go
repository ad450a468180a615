package tracking

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// fixLog is the plainest FixLog. It counts what it was asked for.
type fixLog struct {
	fixes        []KeptFix
	calls, reads int
	written      int
}

func (l *fixLog) InTrip(time.Time) (bool, error) { return false, nil }

func (l *fixLog) find(t time.Time) (int, bool) {
	return slices.BinarySearchFunc(l.fixes, t, func(f KeptFix, t time.Time) int { return f.Time.Compare(t) })
}

func (l *fixLog) Before(t time.Time, n int) ([]KeptFix, error) {
	end, _ := l.find(t)
	list := slices.Clone(l.fixes[max(end-n, 0):end])
	slices.Reverse(list)
	l.calls, l.reads = l.calls+1, l.reads+len(list)
	return list, nil
}

func (l *fixLog) From(t time.Time, n int) ([]KeptFix, error) {
	i, _ := l.find(t)
	list := slices.Clone(l.fixes[i:min(i+n, len(l.fixes))])
	l.calls, l.reads = l.calls+1, l.reads+len(list)
	return list, nil
}

func (l *fixLog) Put(fixes []KeptFix) error {
	for _, f := range fixes {
		i, found := l.find(f.Time)
		if found || f.Mark == 0 {
			return fmt.Errorf("put %+v, known %v", f, found)
		}
		l.fixes = slices.Insert(l.fixes, i, f)
	}
	l.calls, l.written = l.calls+1, l.written+len(fixes)
	return nil
}

func (l *fixLog) Forget(t time.Time) error {
	i, _ := l.find(t.Add(time.Millisecond))
	l.fixes = l.fixes[:i]
	return nil
}

func (l *fixLog) Mark(fixes []KeptFix) error {
	for _, f := range fixes {
		i, found := l.find(f.Time)
		if !found {
			return fmt.Errorf("mark %+v, which is not there", f)
		}
		l.fixes[i].Mark = f.Mark
	}
	l.calls, l.written = l.calls+1, l.written+len(fixes)
	return nil
}

// scratch is the rule over all kept fixes in order of time, judged from the first to the last.
func scratch(b FixBatch, fixes []Fix) (marks []FixMark, live Fix) {
	fixes = slices.Clone(fixes)
	slices.SortFunc(fixes, func(a, b Fix) int { return a.Time.Compare(b.Time) })
	var t track
	var rows []judged
	var newest Fix
	for _, f := range fixes {
		rows = append(rows, judged{
			KeptFix: KeptFix{Fix: f},
			coarse:  b.MaxAccuracy > 0 && f.Accuracy.Known && f.Accuracy.Value > b.MaxAccuracy,
		})
		t.step(rows, func(at int64, _ FixMark) { panic(at) })
	}
	for _, r := range rows {
		if marks = append(marks, r.Mark); r.Mark.Good() {
			live = r.Fix
		} else if r.coarse {
			newest = r.Fix
		}
	}
	if live.Time.IsZero() || !newest.Time.IsZero() && b.MaxFixAge > 0 && newest.Time.Sub(live.Time) > b.MaxFixAge {
		live = newest
	}
	return marks, live
}

// fixHistory draws fixes of two or three places, each a jump from the others within the time: runs
// of them, single ones, coarse ones and told ones, close together or with long silences.
func fixHistory(t *rapid.T) (fixes []Fix) {
	at := t0
	for range rapid.IntRange(1, 12).Draw(t, "runs") {
		spot := rapid.IntRange(0, 2).Draw(t, "spot")
		step := []time.Duration{
			time.Millisecond, 500 * time.Millisecond, 10 * time.Second, 29 * time.Second, 100 * time.Second,
			4 * time.Minute, time.Hour,
		}[rapid.IntRange(0, 6).Draw(t, "step")]
		for range []int{1, 1, 2, 3, 5, 40, 300}[rapid.IntRange(0, 6).Draw(t, "length")] {
			at = at.Add(step)
			f := Fix{LngLat: LngLat{float64(spot), 50 + float64(rapid.IntRange(0, 9).Draw(t, "noise"))*1e-4}, Time: at}
			switch rapid.IntRange(0, 30).Draw(t, "kind") {
			case 0:
				f.Trusted = true
			case 1, 2:
				f.Accuracy = Known(1000)
			case 3:
				f.LngLat.Lng = -90
			}
			fixes = append(fixes, f)
		}
	}
	return fixes
}

// Any order and any split of the same fixes give the same marks and the same position, also with a
// purge in between.
func TestFixesInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fixes := fixHistory(t)
		order := slices.Clone(fixes)
		if n := len(order); rapid.Bool().Draw(t, "shuffled") {
			for i := range order { // some of them, so that what is late is mostly late by little
				if k := rapid.IntRange(0, 3*n).Draw(t, "swap"); k < n {
					order[i], order[k] = order[k], order[i]
				}
			}
		}
		rule := FixBatch{SeenAt: t0, MaxAccuracy: 250, MaxFixAge: 10 * time.Minute}
		log := &fixLog{}
		d := Driver{Available: true}
		for rest := order; len(rest) > 0; {
			b := rule
			b.Fixes = rest[:rapid.IntRange(1, len(rest)).Draw(t, "batch")]
			rec, err := b.Record(log, d)
			if err != nil || len(rec.Outcomes) != len(b.Fixes) {
				t.Fatal(len(rec.Outcomes), err)
			}
			d, rest = rec.Driver, rest[len(b.Fixes):]
			marks, live := scratch(rule, order[:len(order)-len(rest)])
			for i, f := range log.fixes {
				if f.Mark != marks[i] {
					t.Fatalf("fix %d of %d at %v is marked %d, want %d", i, len(marks), f.Time, f.Mark, marks[i])
				}
			}
			if len(log.fixes) != len(marks) || d.Position.Fix != live {
				t.Fatalf("%d fixes at %v, want %d at %v", len(log.fixes), d.Position.Fix, len(marks), live)
			}
		}
		again := rule
		again.Fixes = fixes
		rec, err := again.Record(log, d)
		if err != nil || rec.Driver.Position != d.Position ||
			slices.ContainsFunc(rec.Outcomes, func(o FixOutcome) bool {
				return o != FixDuplicate
			}) {
			t.Fatalf("sent again: %v %v", rec.Outcomes, err)
		}
		all := rule
		all.Fixes = fixes
		rec, err = all.Record(&fixLog{}, Driver{Available: true})
		rec.Driver.Position.Rewrites = d.Position.Rewrites // the one thing that tells of how they came
		if err != nil || rec.Driver.Position != d.Position {
			t.Fatalf("in one batch the position is %+v, want %+v (%v)", rec.Driver.Position, d.Position, err)
		}
	})
}

// A drive is in the path whole, and nothing else is, wherever it is spoilt: by a first fix from
// elsewhere, by one or two that each are somewhere else, and by islands; with gaps and silences
// between any two fixes of the drive and of an island.
func TestSpoiltDrives(t *testing.T) {
	gaps := []time.Duration{
		time.Second, 10 * time.Second, 30 * time.Second, silence - time.Second, 2 * time.Minute, 4 * time.Minute,
		10 * time.Minute,
	}
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 5))
		var fixes []Fix
		var want []bool
		at, metres, places, said := t0, 0.0, 0, ""
		put := func(p LngLat, good bool) {
			fixes, want = append(fixes, Fix{LngLat: p, Time: at}), append(want, good)
		}
		soon := func() { at = at.Add(time.Duration(1+r.IntN(20)) * time.Second) }
		drive := func(n int) {
			for range n {
				gap := gaps[r.IntN(len(gaps))]
				at, metres = at.Add(gap), metres+10*r.Float64()*min(gap.Seconds(), 60)
				put(eastward(0, metres).LngLat, true)
			}
		}
		elsewhere := func() LngLat { // each place is thousands of kilometres from the drive and from the one before
			places++
			return LngLat{60 + 40*float64(places%7), 20 + 8*float64(places%5)}
		}
		if r.IntN(3) == 0 {
			said += " first"
			put(elsewhere(), false)
			drive(2 + r.IntN(3))
		} else {
			drive(1 + r.IntN(4))
		}
		for range 1 + r.IntN(3) {
			switch n := r.IntN(3); n {
			case 0, 1:
				said += []string{" one", " two"}[n]
				for range n + 1 {
					soon()
					put(elsewhere(), false)
				}
			default:
				said += " island"
				soon()
				begun, p := at, elsewhere()
				put(p, false)
				for range 1 + r.IntN(6) {
					at = at.Add(min(gaps[r.IntN(len(gaps))], max(begun.Add(island).Sub(at)/2, time.Millisecond)))
					p.Lng += 1e-4
					put(p, false)
				}
			}
			soon()
			put(eastward(0, metres).LngLat, true)
			drive(1 + r.IntN(4))
		}
		for i := range fixes { // of 180° west
			if fixes[i].LngLat.Lng > 180 {
				fixes[i].LngLat.Lng -= 360
			}
		}
		marks, _ := scratch(FixBatch{}, fixes)
		for i, m := range marks {
			if m.Good() != want[i] {
				t.Errorf("seed %d,%s: fix %d of %d, at %v after %v, is marked %d", seed, said, i, len(fixes),
					fixes[i].LngLat, fixes[i].Time.Sub(t0), m)
			}
		}
		if t.Failed() && seed > 50 {
			t.FailNow()
		}
	}
}

func TestFixOutcomes(t *testing.T) {
	d := Driver{Available: true}
	log := &fixLog{}
	send := func(s float64, lng float64, want FixOutcome) {
		t.Helper()
		f := Fix{LngLat: LngLat{lng, 10}, Time: t0.Add(time.Duration(s * float64(time.Second)))}
		rec, err := FixBatch{SeenAt: t0, Fixes: []Fix{f}}.Record(log, d)
		if err != nil || rec.Outcomes[0] != want {
			t.Errorf("at %vs: %v %v, want %s", s, rec.Outcomes, err, want)
		}
		d.Position = rec.Driver.Position
	}
	send(10, 1, FixLive)
	send(10, 1, FixDuplicate)
	send(20, 1.001, FixLive)
	send(15, 1.0005, FixLate)
	send(30, -1.001, FixJump) // the sign flipped
	if d.Position.Fix.LngLat.Lng != 1.001 {
		t.Error("a jump is live")
	}
	send(25, 1.0015, FixLive) // older than the jump, newer than the live one
	send(31, 1.002, FixLive)
	send(40, 2, FixJump)
	send(41, 2.001, FixLive) // agrees with the jump
	send(40.5, 1.5, FixJump)
	send(50, 3, FixJump)
	send(60, 1.9, FixJump)
	send(49, 3.0001, FixLate) // far from the one before it, but the one after agrees
	d.Available, d.DutyAt, d.OffDutyAt = false, t0.Add(time.Minute), t0.Add(time.Minute)
	send(70, 2.001, FixOffDuty)
	d.Available, d.DutyAt = true, t0.Add(5*time.Minute)
	send(100, 2.001, FixOffDuty) // off duty then
	send(200, 2.001, FixLive)
}

// A fix after a silence bears a jump out only where it does not agree with the good fix before
// that.
func TestJumpBeforeASilence(t *testing.T) {
	for _, c := range []struct {
		after time.Duration // from the jump to the next fix
		east  float64       // km, of the next fix; the jump is 3 km east
		good  bool
	}{
		{silence, 4, true}, {silence + time.Millisecond, 4, false}, {silence + time.Millisecond, 15, true},
	} {
		marks, _ := scratch(FixBatch{}, []Fix{
			eastward(0, 0), eastward(10*time.Second, 0), eastward(20*time.Second, 3000),
			eastward(20*time.Second+c.after, 1000*c.east),
		})
		if marks[2].Good() != c.good {
			t.Errorf("%v before a fix %v km east the jump is marked %d", c.after, c.east, marks[2])
		}
	}
}

// What a late fix costs is bounded, whatever is kept around it, and a batch is read, judged and
// written once.
func TestLateFixesAreLocal(t *testing.T) {
	late := func(n int, step time.Duration, f Fix) (list []Fix) {
		for i := range n {
			f.Time = t0.Add(-time.Hour + time.Duration(i)*step)
			list = append(list, f)
		}
		return list
	}
	home := Fix{LngLat: LngLat{11, 48}}
	for _, c := range []struct {
		name        string
		kept        int
		next        func(i int) Fix
		late        []Fix
		calls, read int
	}{
		{"100 late ones before 20,000 jumps", 20_000, func(i int) Fix {
			return Fix{LngLat: LngLat{float64(i%300) - 150, 10}, Time: t0.Add(time.Duration(i) * time.Millisecond)}
		}, late(100, time.Second, home), 12, 2 * horizon},
		{"1,000 late ones before 20,000 jumps", 20_000, func(i int) Fix {
			return Fix{LngLat: LngLat{float64(i%300) - 150, 10}, Time: t0.Add(time.Duration(i) * time.Millisecond)}
		}, late(1000, time.Second, home), 12, 2 * horizon},
		{"late ones before a plain drive", 20_000, func(i int) Fix {
			return Fix{LngLat: LngLat{11 + float64(i)*1e-5, 48}, Time: t0.Add(time.Duration(i) * time.Second)}
		}, late(1000, time.Second, home), 4, 20},
		{"late ones before 20,000 that alternate between two places", 20_000, func(i int) Fix {
			return Fix{LngLat: LngLat{11 + float64(i%2), 48}, Time: t0.Add(time.Duration(i) * time.Second)}
		}, late(1000, time.Second, Fix{LngLat: LngLat{12, 48}}), 12, 2 * horizon},
		{"late ones before 20,000 that alternate by twos", 20_000, func(i int) Fix {
			return Fix{LngLat: LngLat{11 + float64(i/2%2), 48}, Time: t0.Add(time.Duration(i) * time.Second)}
		}, late(1000, time.Second, Fix{LngLat: LngLat{12, 48}}), 12, 2 * horizon},
		{"late ones before 20,000 that alternate by tens", 20_000, func(i int) Fix {
			return Fix{LngLat: LngLat{11 + float64(i/10%2), 48}, Time: t0.Add(time.Duration(i) * time.Second)}
		}, late(1000, time.Second, Fix{LngLat: LngLat{12, 48}}), 12, 2 * horizon},
		{"late ones before 20,000 coarse ones", 20_000, func(i int) Fix {
			return Fix{LngLat: LngLat{11, 48}, Time: t0.Add(time.Duration(i) * time.Second), Accuracy: Known(3000)}
		}, late(1000, time.Second, home), 12, 2 * horizon},
	} {
		t.Run(c.name, func(t *testing.T) {
			rule := FixBatch{SeenAt: t0, MaxAccuracy: 250, MaxFixAge: 10 * time.Minute}
			log, d := &fixLog{}, Driver{Available: true}
			var all []Fix
			for i := range c.kept {
				all = append(all, c.next(i))
			}
			for part := range slices.Chunk(all, MaxBatch) {
				b := rule
				b.Fixes = part
				rec, err := b.Record(log, d)
				if err != nil {
					t.Fatal(err)
				}
				d = rec.Driver
			}
			log.calls, log.reads, log.written = 0, 0, 0
			b := rule
			b.Fixes = c.late
			rec, err := b.Record(log, d)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%d calls, %d fixes read, %d written", log.calls, log.reads, log.written)
			if log.calls > c.calls || log.reads > c.read || log.written > len(c.late)+2*horizon {
				t.Errorf("%d calls, %d fixes read, %d written; want at most %d, %d and %d", log.calls, log.reads,
					log.written, c.calls, c.read, len(c.late)+2*horizon)
			}
			marks, live := scratch(rule, slices.Concat(all, c.late))
			if got := rec.Driver.Position.Fix; got != live {
				t.Errorf("the position is at %v, want %v", got, live)
			}
			for i, f := range log.fixes {
				if f.Mark != marks[i] {
					t.Fatalf("fix %d of %d at %v is marked %d, want %d", i, len(marks), f.Time, f.Mark, marks[i])
				}
			}
		})
	}
}

// The usual case, a newer fix that agrees with the one before, reads nothing of the log and leaves
// nothing open; a driver who reports now and then is one too.
func TestLiveFixesReadNothing(t *testing.T) {
	for _, every := range []time.Duration{time.Millisecond, time.Second, time.Minute, time.Hour} {
		log, d := &fixLog{}, Driver{Available: true}
		for i := range 100 {
			f := Fix{LngLat: LngLat{11 + float64(i)*1e-5, 48}, Time: t0.Add(time.Duration(i) * every)}
			rec, err := FixBatch{SeenAt: t0, Fixes: []Fix{f}}.Record(log, d)
			if err != nil {
				t.Fatal(err)
			}
			d = rec.Driver
			if every < silence && i > 0 && d.Position.Tail != "" {
				t.Fatalf("every %v: left open: %s", every, d.Position.Tail)
			}
		}
		if log.reads != 0 || log.calls != 100 {
			t.Errorf("every %v: %d fixes read, %d calls", every, log.reads, log.calls)
		}
	}
}

// A first fix leaves no more than a mark behind, and the next is judged as with all that it stands for.
func TestAFirstFixLeavesAMark(t *testing.T) {
	first, next := eastward(0, 0), eastward(time.Second, 10)
	after := func(tail func(Position) string) Recorded {
		log, d := &fixLog{}, Driver{Available: true}
		for _, f := range []Fix{first, next} {
			rec, err := FixBatch{SeenAt: t0, Fixes: []Fix{f}}.Record(log, d)
			if err != nil {
				t.Fatal(err)
			}
			if d = rec.Driver; f == next {
				return rec
			}
			d.Position.Tail = tail(d.Position)
		}
		panic("there are two")
	}
	var mark string
	short := after(func(p Position) string { mark = p.Tail; return p.Tail })
	long := after(func(p Position) string {
		end, _ := p.tail()
		if !end.First || !end.Good.known() || end.Newest != first.Time.UnixMilli() {
			t.Errorf("the mark stands for %+v", end)
		}
		return end.text()
	})
	if mark != tailFirst || !reflect.DeepEqual(short, long) {
		t.Errorf("%q: %+v, not %+v", mark, short, long)
	}
}

// eastward is a fix metres east of nowhere, after a time.
func eastward(after time.Duration, metres float64) Fix {
	return Fix{LngLat: LngLat{metres / degree, 0}, Time: t0.Add(after)}
}

func milesOf(path []Fix) (float64, time.Duration, int) {
	var o odometer
	for _, f := range path {
		o.add(f)
	}
	metres, moving := o.driven()
	return metres, moving, o.compared
}

func TestOdometer(t *testing.T) {
	at := func(s int, metres float64) Fix { return eastward(time.Duration(s)*time.Second, metres) }
	jitter := func(n int, step time.Duration, metres float64) (list []Fix) {
		for i := range n {
			list = append(list, eastward(time.Duration(i)*step, metres*float64(i%2)))
		}
		return list
	}
	for _, c := range []struct {
		name   string
		path   []Fix
		metres float64
		moving time.Duration
	}{
		{"nothing", nil, 0, 0},
		{"one fix", []Fix{at(0, 0)}, 0, 0},
		{
			"70 s within 10 m are a stay, 20 s are not",
			[]Fix{
				at(0, 0), at(10, 100), at(20, 200), at(50, 205), at(90, 210), at(100, 310), at(120, 315), at(150, 500),
			},
			490, 80 * time.Second,
		},
		{"60 fixes that jitter by 11 m", jitter(60, 10*time.Second, 10.8), 0, 0},
		{"300 fixes within 8 m over 50 min", jitter(300, 10*time.Second, 8), 0, 0},
		{
			"59.999 s within 25 m", []Fix{at(0, 0), eastward(59_999*time.Millisecond, 20), at(70, 200)}, 200,
			70 * time.Second,
		},
		{"60 s within 25 m", []Fix{at(0, 0), at(60, 20), at(70, 200)}, 180, 10 * time.Second},
		{
			"a stay of two fixes far apart in time", []Fix{at(0, 0), at(10, 100), at(4000, 110), at(4010, 200)}, 190,
			20 * time.Second,
		},
		{
			"one stay after another, 30 m on", []Fix{at(0, 0), at(60, 0), at(70, 30), at(130, 30), at(140, 60)}, 60,
			20 * time.Second,
		},
		{"a leg faster than anything", []Fix{at(0, 0), at(10, 100), at(11, 600), at(21, 700)}, 200, 20 * time.Second},
	} {
		if metres, moving, _ := milesOf(c.path); math.Abs(metres-c.metres) > 1e-6 || moving != c.moving {
			t.Errorf("%s: %.3f m, %v on the move; want %.3f m, %v", c.name, metres, moving, c.metres, c.moving)
		}
	}
}

// A stay near a pole is one, on whatever meridians.
func TestOdometerAtThePoles(t *testing.T) {
	for _, c := range []struct {
		lat  float64
		lngs float64 // between each fix and the next
		stay bool
	}{
		{89.9999, 180, true}, {-89.9999, 180, true}, {89.9999, 120, true}, {90, 77, true}, {89.9998, 180, false},
		{89.9998, 60, true}, {89.99, 0.5, true},
		{87, 0.004, true}, {86.9, 0.004, true}, {87, 0.005, false}, {86.9, 0.005, false},
	} {
		var path []Fix
		for i := range 60 {
			lng := math.Remainder(11+float64(i%2)*c.lngs, 360)
			path = append(path, Fix{LngLat: LngLat{lng, c.lat}, Time: t0.Add(time.Duration(i) * 10 * time.Second)})
		}
		apart := Distance(path[0].LngLat, path[1].LngLat)
		if (apart <= stayRadius) != c.stay {
			t.Fatalf("at %v°, %v° apart, it is %.1f m: not what is tested", c.lat, c.lngs, apart)
		}
		if metres, moving, _ := milesOf(path); (metres == 0 && moving == 0) != c.stay {
			t.Errorf("at %v°, %.1f m apart: %.1f m, %v on the move", c.lat, apart, metres, moving)
		}
	}
}

// The odometer does what one would do with the whole path before one's eyes, where the fixes are a
// second apart or more.
func TestOdometerAgainstWholePath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var path []Fix
		at, x := time.Duration(0), 0.0
		for range rapid.IntRange(0, 60).Draw(t, "n") {
			at += time.Duration(rapid.IntRange(1000, 40000).Draw(t, "ms")) * time.Millisecond
			x += 0.97 * float64(rapid.IntRange(-12, 30).Draw(t, "metres")) // never 25 m to the last bit
			path = append(path, eastward(at, x))
		}
		metres, moving := 0.0, time.Duration(0)
		for i := 0; i+1 < len(path); i++ {
			j := i
			for j+1 < len(path) && Distance(path[i].LngLat, path[j+1].LngLat) <= stayRadius {
				j++
			}
			if path[j].Time.Sub(path[i].Time) >= stayTime {
				i = j
			}
			if i+1 < len(path) {
				metres += Distance(path[i].LngLat, path[i+1].LngLat)
				moving += path[i+1].Time.Sub(path[i].Time)
			}
		}
		if gotMetres, gotMoving, _ := milesOf(path); math.Abs(gotMetres-metres) > 1e-6 || gotMoving != moving {
			t.Fatalf("%.3f m, %v on the move; want %.3f m, %v", gotMetres, gotMoving, metres, moving)
		}
	})
}

// shapes are lines of n fixes that were dear once.
func shapes(n int) map[string][]Fix {
	r := rand.New(rand.NewPCG(1, 2))
	line := func(step time.Duration, next func(i int) LngLat) []Fix {
		list := make([]Fix, n)
		for i := range list {
			list[i] = Fix{LngLat: next(i), Time: t0.Add(time.Duration(i) * step)}
		}
		return list
	}
	walk := LngLat{11, 48}
	return map[string][]Fix{
		"zigzag": line(time.Millisecond, func(i int) LngLat {
			return LngLat{11 + float64(i)*1e-6, 48 + 0.001*float64(i%2)}
		}),
		"dense": line(time.Millisecond, func(i int) LngLat { return LngLat{11 + float64(i%7)*1e-6, 48} }),
		"drive": line(time.Second, func(i int) LngLat {
			return LngLat{11 + float64(i)*1e-4, 48 + 0.01*math.Sin(float64(i)/50)}
		}),
		"standing":  line(time.Second, func(i int) LngLat { return LngLat{11 + r.Float64()*1e-4, 48} }),
		"slow walk": line(time.Second, func(i int) LngLat { return LngLat{11 + float64(i)*5e-6, 48} }),
		"random walk": line(time.Second, func(i int) LngLat {
			walk.Lng += r.NormFloat64() * 1e-4
			walk.Lat += r.NormFloat64() * 1e-4
			return walk
		}),
		"to and fro": line(time.Second, func(i int) LngLat {
			return LngLat{11 + 0.001*float64(i%1000)*float64(1-2*(i/1000%2)), 48}
		}),
		"one place": line(time.Second, func(i int) LngLat { return LngLat{11, 48} }),
		"round a tree": line(time.Second, func(i int) LngLat {
			return LngLat{11 + 1e-3*math.Cos(float64(i)/9), 48 + 1e-3*math.Sin(float64(i)/9)}
		}),
	}
}

// However long a line is and whatever its shape, an outline costs a few looks at each point, has at
// most 500 and is hardly off.
func TestOutline(t *testing.T) {
	const n = 20_000
	for name, path := range shapes(n) {
		var o outline
		for _, f := range path {
			o.add(f.LngLat)
		}
		points := o.points()
		if len(points) > pathLimit || points[0] != path[0].LngLat || points[len(points)-1] != path[n-1].LngLat {
			t.Errorf("%s: %d points, from %v to %v", name, len(points), points[0], points[len(points)-1])
		}
		if o.seen > 3*n {
			t.Errorf("%s: %d points were looked at for %d", name, o.seen, n)
		}
		worst := 0.0
		for i := 0; i < n; i += 97 {
			off := math.Inf(1)
			for k := 1; k < len(points); k++ {
				off = min(off, offLine(path[i].LngLat, points[k-1], points[k]))
			}
			if len(points) > 1 {
				worst = max(worst, off)
			}
		}
		t.Logf("%s: %d points, %d looks, tolerance %.0f m, off by %.1f m", name, len(points), o.seen, o.tolerance,
			worst)
		if worst > 4*o.tolerance+0.1 {
			t.Errorf("%s: a point is %.1f m off, the tolerance is %.0f m", name, worst, o.tolerance)
		}
	}
	var o outline
	for i := range 400 {
		o.add(LngLat{float64(i) * 1e-5, 0})
	}
	if got := len(o.points()); got != 400 || o.tolerance != 0 {
		t.Errorf("a short line lost points: %d of 400 left", got)
	}
}

// offLine is the distance in metres of p from the line between a and b, on the plane that touches
// the Earth at p.
func offLine(p, a, b LngLat) float64 {
	cos := math.Cos(p.Lat * math.Pi / 180)
	xy := func(q LngLat) (x, y float64) {
		return math.Remainder(q.Lng-p.Lng, 360) * degree * cos, (q.Lat - p.Lat) * degree
	}
	ax, ay := xy(a)
	bx, by := xy(b)
	dx, dy := bx-ax, by-ay
	t := 0.0
	if l := dx*dx + dy*dy; l > 0 {
		t = min(max(-(ax*dx+ay*dy)/l, 0), 1)
	}
	return math.Hypot(ax+t*dx, ay+t*dy)
}

// However dense a path is, an odometer compares each fix with a bounded number of others.
func TestOdometerIsLinear(t *testing.T) {
	const n = 20_000
	for name, path := range shapes(n) {
		if _, _, compared := milesOf(path); compared > 61*n {
			t.Errorf("%s: %d comparisons for %d fixes", name, compared, n)
		}
	}
}

func BenchmarkOdometer(b *testing.B) {
	for name, path := range shapes(100_000) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				milesOf(path)
			}
		})
	}
}

func BenchmarkOutline(b *testing.B) {
	for name, path := range shapes(100_000) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				var o outline
				for _, f := range path {
					o.add(f.LngLat)
				}
			}
		})
	}
}

// Who has the line that a link shows, and the points that came after, has the line: but for the few
// times at which there was no room left.
func TestDrawnGrowsAtItsEnd(t *testing.T) {
	const n = 20_000
	for name, path := range shapes(n) {
		var d drawn
		var last []LngLat
		anew := 0
		for i, f := range path {
			d.add(f.LngLat)
			line := d.points()
			if len(line) > pathLimit || line[0] != path[0].LngLat || line[len(line)-1] != f.LngLat {
				t.Fatalf("%s: %d points from %v to %v", name, len(line), line[0], line[len(line)-1])
			}
			if len(line) < len(last) || !slices.Equal(line[:len(last)], last) || len(line) > len(last)+1 {
				anew++
			}
			if i == pathLimit-1 && name != "one place" && len(line) < pathLimit/2 {
				t.Errorf("%s: %d points of %d are shown while there is room", name, len(line), pathLimit)
			}
			last = line
		}
		if most := n / (pathLimit - outlineLimit); anew > most {
			t.Errorf("%s: shown anew %d times, want at most %d", name, anew, most)
		}
	}
}

// A limit that is the distance itself, or beside it, or what is known without a sine, decides as the
// distance does.
func TestNoFarther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// The square of what is smaller still has few digits, or none.
		squared := func(x float64) bool { return x == 0 || math.Abs(x) > 1e-100 }
		small := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(-1e-6, 1e-6), rapid.Float64Range(-1, 1)).Filter(squared)
		lng := rapid.OneOf(rapid.Float64Range(-180, 180), rapid.SampledFrom([]float64{-180, -179.9999999, 0, 180}))
		lat := rapid.OneOf(rapid.Float64Range(-89, 89), rapid.SampledFrom([]float64{-89, 0, 89}))
		a := LngLat{lng.Draw(t, "lng"), lat.Draw(t, "lat")}
		b := LngLat{math.Remainder(a.Lng+small.Draw(t, "east"), 360), a.Lat + small.Draw(t, "north")}
		d := Distance(a, b)
		if !noFarther(a, b, d) || !noFarther(b, a, d) {
			t.Fatalf("%v and %v are not within their distance", a, b)
		}
		way := (math.Abs(b.Lat-a.Lat) + between(a.Lng, b.Lng)) * degree
		for _, off := range []float64{-1e-3, -1e-6, -1e-8, -1e-15, 0, 1e-15, 1e-8, 1e-6} {
			for _, m := range []float64{d * (1 + off), way * (1 + off)} {
				if got := noFarther(a, b, m); got != (d <= m) {
					t.Fatalf("%v and %v, %v m apart, within %v m: %v", a, b, d, m, got)
				}
			}
		}
	})
}
