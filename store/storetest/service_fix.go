package storetest

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// measureChecks has what poor measurements and wrong clocks must come to.
func measureChecks() []check {
	return []check{
		{"a phone whose clock is wrong does not go unseen", wrongClockIsSeen},
		{"a phone whose clock is ahead has its path", clockAheadKeepsItsPath},
		{"a first fix from elsewhere is left out", firstFixFromElsewhereIsLeftOut},
		{"a coarse fix is in no path", coarseFixIsInNoPath},
		{"a parked phone that bounces to a cell tower stands still", bouncingPhoneStandsStill},
		{"an island is left out", islandIsLeftOut},
		{"an island with silences in it is left out", silentIslandIsLeftOut},
		{"a first fix after a silence is good again where an island follows", firstFixBeforeIslandIsRestored},
		{"a trip ends at the last good fix of its path, whatever its stop shows of those before",
			tripEndsWhereItsPathDoes},
		{"no trip begins in the future, wherever the one before has ended", noTripBeginsInTheFuture},
		{"any fix that was kept carries a trip on, by whatever clock", keptFixesCarryATripOn},
		{"whatever stops a trip now, it ends with the live fix of a clock that is ahead", anyStopEndsAtTheLiveFix},
		{"a trip does not start at a fix that is left out in the end", wrongStartIsLeftOut},
		{"a standing phone drives no distance", standingPhoneDrivesNothing},
		{"what phone apps send in an unknown form is counted", unknownFormIsCounted},
	}
}

func wrongClockIsSeen(t testing.TB, s tracking.Store) {
	p := newPhone(t, s, tracking.Options{})
	skew := func(want tracking.Reading) {
		t.Helper()
		if got := p.driver().Position.ClockSkew(); got != want {
			t.Errorf("clock skew %v, want %v", got, want)
		}
	}
	skew(tracking.Reading{})
	p.send(words{future}, fixAhead(p, 121*time.Second))
	skew(tracking.Known(121))
	p.send(words{tracking.FixInvalid}, tracking.Fix{LngLat: tracking.LngLat{Lng: 181}, Time: p.clock.now()})
	skew(tracking.Known(121))
	p.clock.forward(time.Second)
	p.send(words{future, live}, fixAhead(p, 121*time.Second), fixAhead(p, 29*time.Second)) // the smallest counts
	skew(tracking.Reading{})
	for range 9 {
		p.clock.forward(time.Minute)
		_, err := p.svc.RecordFixes(t.Context(), p.id, []tracking.Fix{fixAhead(p, -1024*7*24*time.Hour)})
		p.ok(err)
	}
	skew(tracking.Known(-1024 * 7 * 24 * 60 * 60))
}

func clockAheadKeepsItsPath(t testing.TB, s tracking.Store) {
	p := newPhone(t, s, tracking.Options{})
	trip := p.start(t0)
	var fixes []tracking.Fix
	for i := range 10 {
		fixes = append(fixes, newFix(at(time.Duration(60+5*i)*time.Second), 80.27+0.0005*float64(i), 13.08))
		p.send(words{live}, fixes[i])
	}
	p.drove(trip, 487.4, fixes...)
}

func firstFixFromElsewhereIsLeftOut(t testing.TB, s tracking.Store) {
	p := newPhone(t, s, tracking.Options{})
	trip := p.start(t0)
	p.clock.forward(time.Hour)
	a, b, c := fixAfter(10, 114.06, 22.54), fixAfter(40, 80.27, 13.08), fixAfter(70, 80.2705, 13.08)
	p.send(words{live}, a)
	p.send(words{tracking.FixJump}, b)
	p.send(words{live}, c)
	if got := p.drove(trip, 54.2, b, c); got.StartsAt == nil || *got.StartsAt != b.LngLat {
		t.Errorf("the trip starts at %v, want %v", got.StartsAt, b.LngLat)
	}
}

func coarseFixIsInNoPath(t testing.TB, s tracking.Store) {
	p := newPhone(t, s, tracking.Options{})
	trip := p.start(t0)
	p.clock.forward(time.Hour)
	a, b, c := fixAfter(10, 80.27, 13.08), fixAfter(60, 80.30, 13.08), fixAfter(110, 80.27, 13.08)
	a.Accuracy, b.Accuracy, c.Accuracy = tracking.Known(8), tracking.Known(2500), tracking.Known(8)
	p.send(words{live, tracking.FixCoarse, live}, a, b, c)
	p.drove(trip, 0, a, c)
}

func bouncingPhoneStandsStill(t testing.TB, s tracking.Store) {
	p := newPhone(t, s, tracking.Options{})
	trip := p.start(t0)
	p.clock.forward(time.Hour)
	var fine []tracking.Fix
	for i := range 60 {
		f := fixAfter(10*i, 80.27, 13.08)
		if f.Accuracy = tracking.Known(8); i%2 == 1 {
			f.LngLat.Lng, f.Accuracy = 80.30, tracking.Known(2500)
			p.send(words{tracking.FixCoarse}, f)
			continue
		}
		p.send(words{live}, f)
		fine = append(fine, f)
	}
	if got := p.driver().Position.Fix; got != fine[29] {
		t.Errorf("the live position is %v, want the fine one", got)
	}
	p.drove(trip, 0, fine...)
}

func islandIsLeftOut(t testing.TB, s tracking.Store) {
	p := newPhone(t, s, tracking.Options{})
	trip := p.start(t0)
	p.clock.forward(time.Hour)
	good := []tracking.Fix{
		fixAfter(10, 80.27, 13.08), fixAfter(40, 80.2705, 13.08), fixAfter(90, 80.2705, 13.08),
		fixAfter(100, 80.271, 13.08),
	}
	for _, f := range []tracking.Fix{
		good[0], good[1], fixAfter(70, -80.2705, 13.08), fixAfter(80, -80.2706, 13.08), good[2], good[3],
	} {
		_, err := p.svc.RecordFixes(t.Context(), p.id, []tracking.Fix{f})
		p.ok(err)
	}
	p.drove(trip, 108.3, good...)
}

func silentIslandIsLeftOut(t testing.TB, s tracking.Store) {
	p := newPhone(t, s, tracking.Options{})
	trip := p.start(t0)
	p.clock.forward(time.Hour)
	good := []tracking.Fix{
		fixAfter(10, 80.27, 13.08), fixAfter(40, 80.2705, 13.08),
		fixAfter(310, 80.271, 13.08), fixAfter(320, 80.2711, 13.08), fixAfter(330, 80.2712, 13.08),
	}
	island := []tracking.Fix{
		fixAfter(50, 114.06, 13.08), fixAfter(175, 114.0601, 13.08), fixAfter(300, 114.0602, 13.08),
	}
	for _, f := range slices.Concat(good[:2], island, good[2:]) {
		_, err := p.svc.RecordFixes(t.Context(), p.id, []tracking.Fix{f})
		p.ok(err)
	}
	p.drove(trip, 130.0, good...)
}

func firstFixBeforeIslandIsRestored(t testing.TB, s tracking.Store) {
	p := newPhone(t, s, tracking.Options{})
	trip := p.start(t0)
	p.clock.forward(time.Hour)
	good := []tracking.Fix{
		fixAfter(10, 80.27, 13.08), fixAfter(20, 80.2701, 13.08), fixAfter(140, 80.28, 13.08),
		fixAfter(170, 80.2801, 13.08), fixAfter(180, 80.2802, 13.08),
	}
	p.send(words{live, live, live}, good[:3]...)
	// two against one
	p.send(words{tracking.FixJump, live}, fixAfter(150, 114.06, 13.08), fixAfter(160, 114.0601, 13.08))
	// and yet it was an island
	p.send(words{tracking.FixJump, live}, good[3:]...)
	p.drove(trip, 1104.8, good...)
}

// tripEndsWhereItsPathDoes stops a trip in the middle of what the rule has not decided yet.
func tripEndsWhereItsPathDoes(t testing.TB, s tracking.Store) {
	p := newPhone(t, s, tracking.Options{})
	at := func(sec int, lng float64) *tracking.Fix {
		f := fixAfter(sec, lng, 13.08)
		return &f
	}
	for name, c := range map[string]struct {
		fixes  []*tracking.Fix
		stop   *tracking.Fix
		last   *tracking.Fix
		length int
	}{
		"the stop is not at the first fix after a silence and where it was before": {
			[]*tracking.Fix{at(10, 80.27), at(20, 80.27), at(620, 80.37)}, at(630, 80.27), at(630, 80.27), 3},
		"the stop bears a candidate out": {
			[]*tracking.Fix{at(10, 80.27), at(20, 80.37)}, at(30, 80.3701), at(30, 80.3701), 2,
		},
		"the stop is a jump": {
			[]*tracking.Fix{at(10, 80.27), at(20, 80.2701)}, at(30, 82), at(20, 80.2701), 2,
		},
		"a later candidate bears a backdated stop out": {
			[]*tracking.Fix{at(10, 80.27), at(20, 80.2701), at(40, 82)}, at(30, 81.9999), at(30, 81.9999), 3,
		},
		"a backdated stop takes a candidate's place": {
			[]*tracking.Fix{at(10, 80.27), at(20, 82), at(40, 82.0001)}, at(30, 90), at(10, 80.27), 1,
		},
		"the stop is doubled by a fix that is left out": {
			[]*tracking.Fix{at(10, 80.27), at(20, 80.2701), at(30, 82)}, at(30, 80.2702), at(20, 80.2701), 2,
		},
		"the stop is the end of an island": {
			[]*tracking.Fix{at(10, 80.27), at(20, 82), at(30, 82.0001), at(40, 80.27)}, at(50, 80.2701),
			at(50, 80.2701), 3,
		},
	} {
		p.id = tracking.DriverID(name)
		available := true
		_, err := p.svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: p.id, Available: &available})
		p.ok(err)
		begin := p.clock.now()
		trip := p.start(time.Time{})
		since := func(f tracking.Fix) tracking.Fix {
			f.Time = begin.Add(f.Time.Sub(t0))
			return f
		}
		p.clock.forward(time.Hour)
		for _, f := range c.fixes {
			_, err := p.svc.RecordFixes(t.Context(), p.id, []tracking.Fix{since(*f)})
			p.ok(err)
		}
		got, err := p.svc.StopTrip(t.Context(), p.id, trip, tracking.Step{
			At: since(*c.stop).Time, LngLat: &c.stop.LngLat,
		})
		p.ok(err)
		_, path, err := p.svc.TripPath(t.Context(), trip)
		p.ok(err)
		n, last := 0, tracking.LngLat{}
		for f, err := range path {
			p.ok(err)
			n, last = n+1, f.LngLat
		}
		if n != c.length || last != c.last.LngLat || got.EndsAt == nil || *got.EndsAt != last {
			t.Errorf("%s: ends at %v after a path of %d to %v, want %d to %v", name, got.EndsAt, n, last, c.length,
				c.last.LngLat)
		}
	}
}

// The phone of d is 90 s ahead, and his trip ends with his last fix. Whoever has the task next
// begins now, and is followed.
func noTripBeginsInTheFuture(t testing.TB, s tracking.Store) {
	p := newPhone(t, s, tracking.Options{})
	_, err := p.svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: "next"}) // off duty
	p.ok(err)
	for i, step := range []tracking.Step{
		{}, {At: at(-time.Second), LngLat: &tracking.LngLat{Lng: 11, Lat: 48}}, {At: at(90 * time.Second)},
		{At: at(-time.Hour)},
	} {
		task, err := p.svc.CreateTask(t.Context(), dropHere(false))
		p.ok(err)
		begin := func(d tracking.DriverID, step tracking.Step) tracking.Trip {
			_, err := p.svc.AssignTask(t.Context(), task.ID, d)
			p.ok(err)
			_, trip, err := p.svc.StartTask(t.Context(), d, task.ID, step)
			p.ok(err)
			return trip
		}
		first := begin(p.id, tracking.Step{})
		p.clock.forward(10 * time.Second)
		p.send(words{live}, fixAhead(p, 90*time.Second))
		_, err = p.svc.UnassignTask(t.Context(), task.ID)
		p.ok(err)
		ended, err := p.svc.Trip(t.Context(), first.ID)
		p.ok(err)
		p.clock.forward(time.Second)
		same(t, "where the first trip has ended", ended.EndedAt, p.clock.now().Add(89*time.Second))
		if !step.At.IsZero() {
			step.At = p.clock.now().Add(step.At.Sub(t0))
		}
		second := begin("next", step)
		same(t, fmt.Sprint("beginning of the second trip, ", i), second.StartedAt, p.clock.now())
		for k := range 3 {
			p.clock.forward(10 * time.Second)
			got, err := p.svc.RecordFixes(t.Context(), "next",
				[]tracking.Fix{newFix(p.clock.now(), 11+0.0001*float64(k), 48)})
			p.ok(err)
			same(t, "outcomes of the second driver's", got, words{live})
		}
		_, err = p.svc.FinishTask(t.Context(), "next", task.ID, tracking.Completion{}, tracking.Step{})
		p.ok(err)
		p.clock.forward(10 * time.Minute)
	}
}

// keptFixesCarryATripOn asks of trips whose time is up, by fixes of each kind.
func keptFixesCarryATripOn(t testing.TB, s tracking.Store) {
	const ttl = 2 * time.Hour
	coarse := func(f tracking.Fix) tracking.Fix { f.Accuracy = tracking.Known(2500); return f }
	for name, c := range map[string]struct {
		sent  time.Duration // after the start, but for 0
		ahead time.Duration // the phone's clock
		fix   func(tracking.Fix) tracking.Fix
		word  tracking.FixOutcome
		ends  tracking.TripStatus
	}{
		"none":         {0, 0, nil, "", tracking.TripDiscarded},
		"a coarse one": {ttl - time.Second, 0, coarse, tracking.FixCoarse, tracking.TripStopped},
		"a jump": {
			ttl - time.Second, 0, func(f tracking.Fix) tracking.Fix { f.LngLat.Lng = 99; return f }, jump,
			tracking.TripStopped,
		},
		"one by a clock that is ahead":   {ttl - 30*time.Second, 90 * time.Second, nil, live, tracking.TripStopped},
		"a coarse one at the very start": {time.Millisecond, 0, coarse, tracking.FixCoarse, tracking.TripStopped},
	} {
		p := newPhone(t, s, tracking.Options{TripTTL: ttl})
		p.id = tracking.DriverID(name)
		available := true
		_, err := p.svc.SaveDriver(t.Context(), tracking.DriverUpdate{
			ID: p.id, Available: &available, LngLat: &tracking.LngLat{Lng: 11, Lat: 48},
		})
		p.ok(err)
		p.clock.forward(time.Hour)
		trip := p.start(time.Time{})
		status := func(when string, want tracking.TripStatus) tracking.TripDetail {
			t.Helper()
			got, err := p.svc.Trip(t.Context(), trip)
			p.ok(err)
			same(t, "status after "+name+", "+when, got.Status, want)
			return got
		}
		begin := p.clock.now()
		if c.sent > 0 {
			p.clock.forward(c.sent)
			f := fixAhead(p, c.ahead)
			if c.fix != nil {
				f = c.fix(f)
			}
			if c.word == jump { // after a fix that it is a jump from
				p.send(words{live}, newFix(p.clock.now().Add(-time.Millisecond), 11, 48))
			}
			p.send(words{c.word}, f)
			p.clock.forward(begin.Add(ttl).Sub(p.clock.now()))
			status("at its ttl", tracking.TripActive)
			p.clock.forward(f.Time.Add(ttl - time.Millisecond).Sub(p.clock.now()))
			status("just before its new ttl", tracking.TripActive)
			p.clock.forward(time.Millisecond)
			got := status("at its new ttl", c.ends)
			same(t, "end", got.EndedAt, f.Time.Add(ttl))
			continue
		}
		p.clock.forward(ttl)
		status("at its ttl", c.ends)
	}
}

// anyStopEndsAtTheLiveFix stops a trip by each verb that stops one.
func anyStopEndsAtTheLiveFix(t testing.TB, s tracking.Store) {
	p := newPhone(t, s, tracking.Options{})
	for name, stop := range map[string]func(tracking.TripID, tracking.TaskID) error{
		"its driver": func(id tracking.TripID, _ tracking.TaskID) error {
			_, err := p.svc.StopTrip(t.Context(), p.id, id, tracking.Step{})
			return err
		},
		"unassigning": func(_ tracking.TripID, id tracking.TaskID) error {
			_, err := p.svc.UnassignTask(t.Context(), id)
			return err
		},
		"cancelling": func(_ tracking.TripID, id tracking.TaskID) error {
			_, err := p.svc.CancelTask(t.Context(), id, tracking.Reason{})
			return err
		},
		"completing": func(_ tracking.TripID, id tracking.TaskID) error {
			_, err := p.svc.CompleteTask(t.Context(), id, tracking.Completion{})
			return err
		},
		"finishing": func(_ tracking.TripID, id tracking.TaskID) error {
			_, err := p.svc.FinishTask(t.Context(), p.id, id, tracking.Completion{}, tracking.Step{})
			return err
		},
		"force delete": func(tracking.TripID, tracking.TaskID) error {
			return p.svc.ForceDeleteDriver(t.Context(), p.id)
		},
	} {
		p.id = tracking.DriverID(name)
		available := true
		_, err := p.svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: p.id, Available: &available})
		p.ok(err)
		task, err := p.svc.CreateTask(t.Context(), dropHere(false))
		p.ok(err)
		_, err = p.svc.AssignTask(t.Context(), task.ID, p.id)
		p.ok(err)
		_, trip, err := p.svc.StartTask(t.Context(), p.id, task.ID, tracking.Step{LngLat: &tracking.LngLat{
			Lng: 11, Lat: 47.995,
		}})
		p.ok(err)
		p.clock.forward(10 * time.Second)
		f := fixAhead(p, time.Minute)
		p.send(words{live}, f)
		p.ok(stop(trip.ID, task.ID))
		got, err := p.svc.Trip(t.Context(), trip.ID)
		p.ok(err)
		if got.Status != tracking.TripStopped || !got.EndedAt.Equal(f.Time) || got.EndsAt == nil ||
			*got.EndsAt != f.LngLat {
			t.Errorf("%s: the trip has status %d, and ended %v at %v; want %v at %v", name, got.Status, got.EndedAt,
				got.EndsAt, f.Time, f.LngLat)
		}
		p.clock.forward(5 * time.Minute)
	}
}

func wrongStartIsLeftOut(t testing.TB, s tracking.Store) {
	there := tracking.LngLat{Lng: 114.06, Lat: 22.54}
	lng := func(x float64) tracking.LngLat { return tracking.LngLat{Lng: x, Lat: 13.08} }
	for name, c := range map[string]struct {
		before []tracking.Fix // the start
		told   *tracking.LngLat
		want   tracking.LngLat
	}{
		"the only fix before the start": {[]tracking.Fix{newFix(t0, there.Lng, there.Lat)}, nil, lng(80.27)},
		"the last after a silence": {
			[]tracking.Fix{
				fixAfter(-190, 80.26, 13.08), fixAfter(-180, 80.26, 13.08), newFix(t0, 80.3, 13.08),
			}, nil, lng(80.26)},
		"a good one": {
			[]tracking.Fix{fixAfter(-10, 80.269, 13.08), fixAfter(0, 80.2695, 13.08)}, nil, lng(80.2695),
		},
		"one that the start tells": {[]tracking.Fix{newFix(t0, there.Lng, there.Lat)}, &there, there},
	} {
		p := newPhone(t, s, tracking.Options{})
		p.id = tracking.DriverID(name)
		available := true
		_, err := p.svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: p.id, Available: &available})
		p.ok(err)
		for _, f := range c.before {
			p.send(words{live}, f)
		}
		p.clock.forward(10 * time.Second)
		trip, err := p.svc.StartTrip(t.Context(), p.id, tracking.TrackingID(name), tracking.Step{LngLat: c.told})
		p.ok(err)
		at := c.before[len(c.before)-1].LngLat
		same(t, name+", at the start", trip.StartsAt, &at)
		for _, f := range []tracking.Fix{fixAfter(20, 80.27, 13.08), fixAfter(50, 80.2705, 13.08)} {
			p.clock.forward(30 * time.Second)
			_, err := p.svc.RecordFixes(t.Context(), p.id, []tracking.Fix{f})
			p.ok(err)
		}
		got, err := p.svc.StopTrip(t.Context(), p.id, trip.ID, tracking.Step{})
		p.ok(err)
		same(t, name+", in the end", got.StartsAt, &c.want)
	}
}

func standingPhoneDrivesNothing(t testing.TB, s tracking.Store) {
	for _, c := range []struct {
		n    int
		wide float64 // degrees
	}{{60, 0.0001}, {300, 0.00007}} {
		p := newPhone(t, s, tracking.Options{})
		p.id = tracking.DriverID(fmt.Sprint("standing ", c.n))
		available := true
		_, err := p.svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: p.id, Available: &available})
		p.ok(err)
		trip := p.start(t0)
		p.clock.forward(time.Hour)
		var fixes []tracking.Fix
		for i := range c.n {
			f := fixAfter(10*i, 80.27+c.wide*float64(i%2), 13.08)
			f.Accuracy = tracking.Known(15)
			fixes = append(fixes, f)
		}
		_, err = p.svc.RecordFixes(t.Context(), p.id, fixes)
		p.ok(err)
		if got := p.drove(trip, 0, fixes...); got.Moving != 0 {
			t.Errorf("%v on the move", got.Moving)
		}
	}
}

func unknownFormIsCounted(t testing.TB, s tracking.Store) {
	p := newPhone(t, s, tracking.Options{})
	p.clock.forward(time.Hour)
	p.ok(p.svc.NoteUnread(t.Context(), p.id, 2))
	p.ok(p.svc.NoteUnread(t.Context(), p.id, 3))
	if got := p.driver().Position; got.Unread != 5 || !got.SeenAt.Equal(at(time.Hour)) {
		t.Errorf("%d unread, last seen at %v; want 5, seen now", got.Unread, got.SeenAt)
	}
	p.send(words{live}, fixAhead(p, 0))
	if got := p.driver().Position.Unread; got != 0 {
		t.Errorf("%d unread after a fix that was read", got)
	}
	missing(t, "NoteUnread", p.svc.NoteUnread(t.Context(), "nobody", 1))
}

func fixAfter(s int, lng, lat float64) tracking.Fix {
	return newFix(at(time.Duration(s)*time.Second), lng, lat)
}

func fixAhead(p *phone, d time.Duration) tracking.Fix { return newFix(p.clock.now().Add(d), 11, 48) }

// phone is a driver's phone, through a Service.
type phone struct {
	testing.TB
	svc   *tracking.Service
	clock *clock
	id    tracking.DriverID
}

// newPhone makes a driver on duty.
func newPhone(t testing.TB, s tracking.Store, opts tracking.Options) *phone {
	p := &phone{TB: t, clock: &clock{at: t0}, id: "d"}
	opts.Now = p.clock.now
	p.svc = service(t, s, opts).ForApp(here)
	available := true
	_, err := p.svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: p.id, Available: &available})
	p.ok(err)
	return p
}

func (p *phone) ok(err error) {
	p.Helper()
	if err != nil {
		p.Fatalf("unexpected error: %v", err)
	}
}

// send records fixes, and expects these outcomes.
func (p *phone) send(want []tracking.FixOutcome, fixes ...tracking.Fix) {
	p.Helper()
	got, err := p.svc.RecordFixes(p.Context(), p.id, fixes)
	p.ok(err)
	if d := differs(want, got); d != "" {
		p.Errorf("outcomes (-want +got):\n%s", d)
	}
}

func (p *phone) driver() tracking.Driver {
	p.Helper()
	d, err := p.svc.Driver(p.Context(), p.id)
	p.ok(err)
	return d
}

func (p *phone) start(at time.Time) tracking.TripID {
	p.Helper()
	t, err := p.svc.StartTrip(p.Context(), p.id, tracking.TrackingID(p.id), tracking.Step{At: at})
	p.ok(err)
	return t.ID
}

// drove stops the trip, and expects that path of it, of that length.
func (p *phone) drove(id tracking.TripID, metres float64, path ...tracking.Fix) tracking.TripDetail {
	p.Helper()
	_, err := p.svc.StopTrip(p.Context(), p.id, id, tracking.Step{})
	p.ok(err)
	t, err := p.svc.Trip(p.Context(), id)
	p.ok(err)
	if math.Abs(t.Distance-metres) > 0.06 {
		p.Errorf("%.1f m, want %.1f m", t.Distance, metres)
	}
	_, fixes, err := p.svc.TripPath(p.Context(), id)
	p.ok(err)
	var got []tracking.Fix
	for f, err := range fixes {
		p.ok(err)
		got = append(got, f)
	}
	if d := differs(path, got); d != "" {
		p.Errorf("the path (-want +got):\n%s", d)
	}
	if last := path[len(path)-1].LngLat; t.EndsAt == nil || *t.EndsAt != last {
		p.Errorf("the trip ends at %v, want %v", t.EndsAt, last)
	}
	return t
}
