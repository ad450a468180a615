package tracking

import (
	"encoding/csv"
	"errors"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var t0 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// taskStates are all states that a task can be in, held by driver "own" where anybody holds it.
func taskStates() map[string]Task {
	created := Task{ID: "t", Type: PickupAndDrop, Status: StatusCreated, CreatedAt: t0, UpdatedAt: t0, Pickup: &Place{Address: "p"}, Drop: &Place{Address: "d"}, Version: 1}
	with := func(t Task, change func(*Task)) Task { t = t.Clone(); change(&t); return t }
	assigned := with(created, func(t *Task) { t.Status, t.DriverID, t.AssignedAt = StatusAssigned, "own", t0.Add(time.Minute) })
	started := with(assigned, func(t *Task) { t.Status, t.StartedAt = StatusInProgress, t0.Add(2*time.Minute) })
	done := func(o Outcome) Task {
		return with(started, func(t *Task) { t.Status, t.Outcome, t.CompletedAt = StatusCompleted, o, t0.Add(3*time.Minute) })
	}
	return map[string]Task{
		"created":          created,
		"waiting":          with(created, func(t *Task) { t.Waiting = true }),
		"assigned":         assigned,
		"assigned by auto": with(assigned, func(t *Task) { t.AutoAssigned = true }),
		"in_progress":      started,
		"picked up":        with(started, func(t *Task) { t.PickedUpAt = t0.Add(150 * time.Second) }),
		"succeeded":        done(Succeeded),
		"failed":           done(Failed),
		"cancelled":        done(Cancelled),
	}
}

// The table of what each verb does to each state, by whom: the status it leads to, "nothing", or the code of the error.
func TestTaskTable(t *testing.T) {
	now := t0.Add(time.Hour)
	type verb func(Task) (Task, bool, error)
	update := func(u TaskUpdate) verb {
		return func(t Task) (Task, bool, error) { n, fields, err := t.updated(u, now); return n, fields != nil, err }
	}
	notes, order, when := "new notes", "new order", t0.Add(time.Hour)
	verbs := map[string]verb{
		"assign own":         func(t Task) (Task, bool, error) { return t.assigned("own", false, now) },
		"assign other":       func(t Task) (Task, bool, error) { return t.assigned("other", false, now) },
		"auto other":         func(t Task) (Task, bool, error) { return t.assigned("other", true, now) },
		"unassign":           func(t Task) (Task, bool, error) { return t.unassigned(now) },
		"decline own":        func(t Task) (Task, bool, error) { return t.declined("own", "", now) },
		"decline other":      func(t Task) (Task, bool, error) { return t.declined("other", "", now) },
		"decline nobody":     func(t Task) (Task, bool, error) { return t.declined("", "", now) },
		"update notes":       update(TaskUpdate{Notes: &notes}),
		"update drop":        update(TaskUpdate{Drop: &Place{Address: "new"}}),
		"update pickup":      update(TaskUpdate{Pickup: &Place{Address: "new"}}),
		"update order":       update(TaskUpdate{OrderID: &order}),
		"update time":        update(TaskUpdate{Time: &when}),
		"update same":        update(TaskUpdate{Notes: new(string)}),
		"cancel":             func(t Task) (Task, bool, error) { return t.completed("", Cancelled, "", time.Time{}, now) },
		"start own":          func(t Task) (Task, bool, error) { return t.started("own", time.Time{}, now) },
		"start other":        func(t Task) (Task, bool, error) { return t.started("other", time.Time{}, now) },
		"pickup own":         func(t Task) (Task, bool, error) { return t.pickedUp("own", time.Time{}, now) },
		"pickup other":       func(t Task) (Task, bool, error) { return t.pickedUp("other", time.Time{}, now) },
		"succeed own":        func(t Task) (Task, bool, error) { return t.completed("own", Succeeded, "", time.Time{}, now) },
		"fail own":           func(t Task) (Task, bool, error) { return t.completed("own", Failed, "", time.Time{}, now) },
		"succeed other":      func(t Task) (Task, bool, error) { return t.completed("other", Succeeded, "", time.Time{}, now) },
		"succeed by the app": func(t Task) (Task, bool, error) { return t.completed("", Succeeded, "", time.Time{}, now) },
		"fail by the app":    func(t Task) (Task, bool, error) { return t.completed("", Failed, "", time.Time{}, now) },
	}
	const no, c409, c404 = "nothing", "conflict", "not_found"
	states := []string{"created", "waiting", "assigned", "assigned by auto", "in_progress", "picked up", "succeeded", "failed", "cancelled"}
	table := map[string][]string{
		"assign own":         {"assigned", "assigned", no, no, no, no, c409, c409, c409},
		"assign other":       {"assigned", "assigned", "assigned", "assigned", c409, c409, c409, c409, c409},
		"auto other":         {"assigned", "assigned", "assigned", "assigned", c409, c409, c409, c409, c409},
		"unassign":           {no, "created", "created", "created", "created", "created", c409, c409, c409},
		"decline own":        {c404, c404, "created", "waiting", c409, c409, c409, c409, c409},
		"decline other":      {c404, c404, c404, c404, c404, c404, c404, c404, c404},
		"decline nobody":     {c404, c404, c404, c404, c404, c404, c404, c404, c404},
		"update notes":       {"created", "waiting", "assigned", "assigned by auto", "in_progress", "picked up", c409, c409, c409},
		"update drop":        {"created", "waiting", "assigned", "assigned by auto", "in_progress", "picked up", c409, c409, c409},
		"update pickup":      {"created", "waiting", "assigned", "assigned by auto", c409, c409, c409, c409, c409},
		"update order":       {"created", "waiting", "assigned", "assigned by auto", c409, c409, c409, c409, c409},
		"update time":        {"created", "waiting", "assigned", "assigned by auto", c409, c409, c409, c409, c409},
		"update same":        {no, no, no, no, no, no, c409, c409, c409},
		"cancel":             {"cancelled", "cancelled", "cancelled", "cancelled", "cancelled", "cancelled", c409, c409, no},
		"start own":          {c404, c404, "in_progress", "in_progress", no, no, c409, c409, c409},
		"start other":        {c404, c404, c404, c404, c404, c404, c404, c404, c404},
		"pickup own":         {c404, c404, c409, c409, "picked up", no, c409, c409, c409},
		"pickup other":       {c404, c404, c404, c404, c404, c404, c404, c404, c404},
		"succeed own":        {c404, c404, c409, c409, "succeeded", "succeeded", no, c409, c409},
		"fail own":           {c404, c404, c409, c409, "failed", "failed", c409, no, c409},
		"succeed other":      {c404, c404, c404, c404, c404, c404, c404, c404, c404},
		"succeed by the app": {"succeeded", "succeeded", "succeeded", "succeeded", "succeeded", "succeeded", no, c409, c409},
		"fail by the app":    {"failed", "failed", "failed", "failed", "failed", "failed", c409, no, c409},
	}
	if len(table) != len(verbs) {
		t.Fatalf("the table has %d rows for %d verbs", len(table), len(verbs))
	}
	all := taskStates()
	for name, row := range table {
		for i, state := range states {
			t.Run(name+"/"+state, func(t *testing.T) {
				before := all[state].Clone()
				after, changed, err := verbs[name](before)
				got := describe(after)
				var e *Error
				switch {
				case errors.As(err, &e):
					got = string(e.Code)
				case err != nil:
					t.Fatal(err)
				case !changed:
					got = no
				case name == "unassign" && state == "waiting": // nothing to be seen, but it waits no longer
					if !after.UpdatedAt.Equal(before.UpdatedAt) {
						t.Errorf("nothing to be seen, and UpdatedAt is %v", after.UpdatedAt)
					}
				case !after.UpdatedAt.Equal(now):
					t.Errorf("changed, and UpdatedAt is %v", after.UpdatedAt)
				}
				want := row[i]
				if want == "in_progress" && state == "assigned by auto" || want == "assigned by auto" {
					want = describe(Task{Status: after.Status, AutoAssigned: true, DriverID: "own"})
				}
				if name == "auto other" && want == "assigned" {
					want = "assigned by auto"
				}
				if got != want {
					t.Errorf("leads to %q, want %q", got, want)
				}
				if diff := cmp.Diff(before, after); !changed && diff != "" {
					t.Error("nothing changed, and yet:", diff)
				}
				if diff := cmp.Diff(all[state], before); diff != "" {
					t.Error("the task passed in was altered:", diff)
				}
			})
		}
	}
}

// describe names the state of a task as taskStates does.
func describe(t Task) string {
	switch {
	case t.Status == StatusCompleted:
		return string(t.Outcome)
	case t.Status == StatusInProgress && !t.PickedUpAt.IsZero():
		return "picked up"
	case t.Status == StatusAssigned && t.AutoAssigned:
		return "assigned by auto"
	case t.Waiting:
		return "waiting"
	}
	return string(t.Status)
}

func TestExclusion(t *testing.T) {
	now := t0.Add(time.Hour)
	task := taskStates()["assigned by auto"]
	task, _, _ = task.declined("own", "too far", now)
	if !slices.Equal(task.Excluded, []DriverID{"own"}) || !task.Waiting || task.Reason != "too far" {
		t.Fatalf("after declining: %+v", task)
	}
	task, _, _ = task.assigned("b", true, now)
	task, _, _ = task.unassigned(now)
	if !slices.Equal(task.Excluded, []DriverID{"b", "own"}) || task.Waiting {
		t.Fatalf("after unassigning: excluded %v, waiting %v", task.Excluded, task.Waiting)
	}
	task, _, _ = task.assigned("own", false, now)
	if !slices.Equal(task.Excluded, []DriverID{"b"}) {
		t.Fatalf("a manual assignment does not lift the exclusion: %v", task.Excluded)
	}
}

func TestClampAt(t *testing.T) {
	for _, c := range []struct {
		name                  string
		at, before, now, want time.Time
	}{
		{"not given", time.Time{}, t0, t0.Add(time.Hour), t0.Add(time.Hour)},
		{"between", t0.Add(time.Minute), t0, t0.Add(time.Hour), t0.Add(time.Minute)},
		{"too early", t0.Add(-time.Minute), t0, t0.Add(time.Hour), t0},
		{"ahead", t0.Add(2 * time.Hour), t0, t0.Add(time.Hour), t0.Add(time.Hour)},
		{"no step before", t0.Add(-24 * time.Hour), time.Time{}, t0, t0.Add(-24 * time.Hour)},
		{"below a millisecond", t0.Add(1500 * time.Microsecond), t0, t0.Add(time.Hour), t0.Add(time.Millisecond)},
	} {
		if got := clampAt(c.at, c.before, c.now); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestDistance(t *testing.T) {
	quarter := math.Pi / 2 * EarthRadius
	for _, c := range []struct {
		name string
		a, b LngLat
		want float64
	}{
		{"nothing", LngLat{12, 34}, LngLat{12, 34}, 0},
		{"a quarter of the equator", LngLat{0, 0}, LngLat{90, 0}, quarter},
		{"equator to pole", LngLat{17, 0}, LngLat{-100, 90}, quarter},
		{"pole to pole", LngLat{0, 90}, LngLat{55, -90}, 2 * quarter},
		{"across 180°", LngLat{179.95, 0}, LngLat{-179.9, 0}, 0.15 / 90 * quarter},
		{"both names of the 180th meridian", LngLat{180, 10}, LngLat{-180, 10}, 0},
		{"both names of the pole", LngLat{0, 90}, LngLat{120, 90}, 0},
		{"antipodes", LngLat{10, 20}, LngLat{-170, -20}, 2 * quarter},
	} {
		if got := Distance(c.a, c.b); math.Abs(got-c.want) > 1e-3 || got != Distance(c.b, c.a) {
			t.Errorf("%s: %v there, %v back, want %v", c.name, got, Distance(c.b, c.a), c.want)
		}
	}
}

func TestIDsSortByAge(t *testing.T) {
	s := idSource{rand: rand.NewChaCha8([32]byte{1})}
	last := ""
	for i := range 5000 {
		now := t0.Add(time.Duration(i/700) * time.Millisecond)
		if i%1000 == 999 {
			now = t0.Add(-time.Hour) // a clock that is set back
		}
		id := s.next(now)
		if len(id) != 26 || id <= last {
			t.Fatalf("id %d is %q after %q", i, id, last)
		}
		last = id
	}
}

func TestThin(t *testing.T) {
	var line []LngLat
	for i := range 5000 { // streets at right angles
		line = append(line, LngLat{float64(i/50%2)*0.001 + float64(i/100)*0.001, float64(i%100)*1e-5 + float64(i/100)*0.001})
	}
	thinned := thin(slices.Clone(line), 500)
	if len(thinned) > 500 || thinned[0] != line[0] || thinned[len(thinned)-1] != line[len(line)-1] {
		t.Fatalf("%d points, from %v to %v", len(thinned), thinned[0], thinned[len(thinned)-1])
	}
	if got := thin(line[:400], 500); len(got) != 400 {
		t.Errorf("a short line lost points: %d of 400 left", len(got))
	}
}

func TestMeasurePath(t *testing.T) {
	at := func(s int, metres float64) Fix {
		return Fix{LngLat: LngLat{0, metres / (EarthRadius * math.Pi / 180)}, Time: t0.Add(time.Duration(s) * time.Second)}
	}
	path := []Fix{at(0, 0), at(10, 100), at(20, 200), at(50, 205), at(90, 210), at(100, 310), at(120, 315), at(150, 500)}
	metres, moving := measurePath(path)
	if math.Abs(metres-500) > 1e-6 || moving != 80*time.Second { // 70 s within 10 m are a stay, 20 s are not
		t.Errorf("%.1f m, %v on the move; want 500 m, 1m20s", metres, moving)
	}
}

// fixLog is the plainest FixLog.
type fixLog struct{ fixes []KeptFix }

func (l *fixLog) InTrip(time.Time) (bool, error) { return false, nil }

func (l *fixLog) find(t time.Time) (int, bool) {
	return slices.BinarySearchFunc(l.fixes, t, func(f KeptFix, t time.Time) int { return f.Time.Compare(t) })
}

func (l *fixLog) Has(t time.Time) (bool, error) { _, ok := l.find(t); return ok, nil }

func (l *fixLog) Before(t time.Time, good bool) (KeptFix, bool, error) {
	for i, _ := l.find(t); i > 0; i-- {
		if f := l.fixes[i-1]; !good || f.Mark != FixCandidate {
			return f, true, nil
		}
	}
	return KeptFix{}, false, nil
}

func (l *fixLog) After(t time.Time) iter.Seq2[KeptFix, error] {
	return func(yield func(KeptFix, error) bool) {
		for _, f := range l.fixes {
			if f.Time.After(t) && !yield(f, nil) {
				return
			}
		}
	}
}

func (l *fixLog) Put(f KeptFix) error {
	i, found := l.find(f.Time)
	if found {
		l.fixes[i] = f
	} else {
		l.fixes = slices.Insert(l.fixes, i, f)
	}
	return nil
}

// scratch is the rule said once more, over all kept fixes in order of time.
func scratch(fixes []Fix) (marks []FixMark, pos Position) {
	fixes = slices.Clone(fixes)
	slices.SortFunc(fixes, func(a, b Fix) int { return a.Time.Compare(b.Time) })
	far := func(a, b Fix) bool {
		return Distance(a.LngLat, b.LngLat) > 140*math.Max(b.Time.Sub(a.Time).Seconds(), 1)
	}
	marks = make([]FixMark, len(fixes))
	good, cand := -1, -1
	for i, f := range fixes {
		agrees := cand >= 0 && !far(fixes[cand], f)
		switch {
		case agrees:
			marks[cand], marks[i], good, cand = FixConfirmed, FixGood, i, -1
		case good < 0 || f.Trusted || !far(fixes[good], f):
			marks[i], good, cand = FixGood, i, -1
		default:
			marks[i], cand = FixCandidate, i
		}
	}
	if good >= 0 {
		pos.Fix = fixes[good]
	}
	if cand >= 0 {
		pos.Candidate = fixes[cand]
	}
	return marks, pos
}

// Any order and any split of the same fixes give the same marks and the same position.
func TestFixesInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 25).Draw(t, "n")
		seen := map[time.Time]bool{}
		var fixes []Fix
		for range n {
			at := t0.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "s")) * 500 * time.Millisecond)
			if seen[at] {
				continue
			}
			seen[at] = true
			// three spots, each a jump from the others within the time, with some noise
			spot := rapid.IntRange(0, 2).Draw(t, "spot")
			noise := float64(rapid.IntRange(0, 200).Draw(t, "noise")) * 1e-5
			fixes = append(fixes, Fix{LngLat: LngLat{float64(spot)*0.02 + noise, 50}, Time: at, Trusted: rapid.IntRange(0, 9).Draw(t, "trusted") == 0})
		}
		log := &fixLog{}
		d := Driver{Available: true}
		for rest := fixes; len(rest) > 0; {
			k := rapid.IntRange(1, len(rest)).Draw(t, "batch")
			pos, outcomes, err := FixBatch{SeenAt: t0, Fixes: rest[:k]}.Record(log, d)
			if err != nil || len(outcomes) != k {
				t.Fatal(len(outcomes), err)
			}
			d.Position = pos
			rest = rest[k:]
		}
		marks, pos := scratch(fixes)
		for i, f := range log.fixes {
			if f.Mark != marks[i] {
				t.Fatalf("fix %d of %d at %v is marked %d, want %d", i, len(marks), f.Time, f.Mark, marks[i])
			}
		}
		if len(log.fixes) != len(fixes) || d.Position.Fix != pos.Fix || d.Position.Candidate != pos.Candidate {
			t.Fatalf("position %v, want %v", d.Position, pos)
		}
		again, outcomes, err := FixBatch{SeenAt: t0, Fixes: fixes}.Record(log, d)
		if err != nil || again != d.Position || slices.ContainsFunc(outcomes, func(o FixOutcome) bool { return o != FixDuplicate }) {
			t.Fatalf("sent again: %v %v", outcomes, err)
		}
	})
}

func TestFixOutcomes(t *testing.T) {
	d := Driver{Available: true}
	log := &fixLog{}
	send := func(s float64, lng float64, want FixOutcome) {
		t.Helper()
		f := Fix{LngLat: LngLat{lng, 10}, Time: t0.Add(time.Duration(s * float64(time.Second)))}
		pos, out, err := FixBatch{SeenAt: t0, Fixes: []Fix{f}}.Record(log, d)
		if err != nil || out[0] != want {
			t.Errorf("at %vs: %v %v, want %s", s, out, err, want)
		}
		d.Position = pos
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

func TestCodeGuard(t *testing.T) {
	g := codeGuard{sources: map[string]*codeSource{}}
	now := t0
	looked := 0
	for range 24 * 60 * 60 { // one guess a second, for a day
		if g.look("a", now) == 0 {
			looked++
		}
		now = now.Add(time.Second)
	}
	if looked != 15 {
		t.Errorf("one source got %d codes looked at in a day, want 15", looked)
	}
	g = codeGuard{sources: map[string]*codeSource{}}
	looked = 0
	for i := range 5000 { // many sources within a minute
		if g.look(fmt.Sprint(i), t0.Add(time.Duration(i)*10*time.Millisecond)) == 0 {
			looked++
		}
	}
	if looked != 20 {
		t.Errorf("all sources together got %d looked at in a minute, want 20", looked)
	}
	g = codeGuard{sources: map[string]*codeSource{}}
	for i := range 100 { // right ones cost nothing
		at := t0.Add(time.Duration(i) * time.Millisecond)
		if wait := g.look("a", at); wait != 0 {
			t.Fatalf("the %d. right code has to wait %v", i, wait)
		}
		g.forgive("a", at)
	}
}

// On real taxi trips the estimate, knowing only where they begin and end, is no worse than its formula promises.
func TestEstimateOnTaxiTrips(t *testing.T) {
	dir := os.Getenv("TRACKING_DATA")
	if dir == "" && os.Getenv("TRACKING_LONG") == "" {
		t.Skip("TRACKING_DATA does not name the folder of recorded trips")
	}
	f, err := os.Open(filepath.Join(dir, "barefoot/nyc-taxi-trips-2013.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var off []float64
	for _, row := range rows[1:] {
		var v [5]float64 // seconds, from, to
		for i, column := range []int{3, 5, 6, 7, 8} {
			if v[i], err = strconv.ParseFloat(row[column], 64); err != nil {
				t.Fatal(err)
			}
		}
		took := estimate([]LngLat{{v[1], v[2]}, {v[3], v[4]}}, nil).Seconds()
		off = append(off, math.Abs(took-v[0])/v[0])
	}
	slices.Sort(off)
	if median := off[len(off)/2]; len(off) != 682 || median > 0.275 {
		t.Errorf("median error %.1f %% on %d trips", 100*median, len(off))
	} else {
		t.Logf("median error %.1f %%", 100*median)
	}
}

func TestEstimateHeedsSpeed(t *testing.T) {
	way := []LngLat{{10, 50}, {10.1, 50}}
	drive := func(speed float64) (recent []Fix) {
		for s := 0; s <= 600; s += 10 {
			recent = append(recent, Fix{LngLat: LngLat{10, 50 + speed*float64(s)/111195.08}, Time: t0.Add(time.Duration(s) * time.Second)})
		}
		return recent
	}
	none, fast, slow := estimate(way, nil), estimate(way, drive(20)), estimate(way, drive(1))
	if !(fast < none && none < slow) {
		t.Errorf("fast %v, unknown %v, slow %v", fast, none, slow)
	}
	if more := estimate([]LngLat{way[0], {10.05, 50.02}, way[1]}, nil); more <= none+stopTime {
		t.Errorf("with a stop between %v, without %v", more, none)
	}
}

func TestParseDest(t *testing.T) {
	point := &Place{LngLat: &LngLat{80.25, -13.06}}
	for v, want := range map[string]*Place{
		"": nil, "80.25,-13.06": point, "[80.25,-13.06]": point, " 80.25 , -13.06 ": point, "[ 80.25, -13.06 ]": point,
		"12 Anna Salai": {Address: "12 Anna Salai"}, "80.25,-91": {Address: "80.25,-91"}, "0x1p3,2": {Address: "0x1p3,2"}, "1_0,2": {Address: "1_0,2"},
		"+1,2": {Address: "+1,2"}, "1e1,2": {Address: "1e1,2"}, "NaN,1": {Address: "NaN,1"}, "1,2,3": {Address: "1,2,3"}, ",": {Address: ","}, "[1,2": {Address: "[1,2"},
	} {
		if diff := cmp.Diff(want, parseDest(v)); diff != "" {
			t.Errorf("%q: %s", v, diff)
		}
	}
}
