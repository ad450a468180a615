package storetest

import (
	"reflect"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// timeChecks are about milliseconds, zones, and far years.
func timeChecks() []check {
	return []check{
		{"time/is kept in whole milliseconds, in UTC", timesAreMillisecondsUTC},
		{"time/the zero time stays the zero time, whatever its zone", zeroTimeStaysZero},
		{"time/of the years 1 and 9999 and around 1970", timesOfAllYears},
		{"time/orders .700, .735, .7351 and .000 of one second", timesOrderWithinASecond},
		{"time/fixes of one millisecond are one fix", fixesOfOneMillisecondAreOne},
		{"time/a limit between two milliseconds divides them", limitsFallBetweenMilliseconds},
	}
}

func timesAreMillisecondsUTC(t testing.TB, s tracking.Store) {
	for _, part := range []time.Duration{1, 999, 1000, 999_999} { // all below a millisecond: cut off, not rounded
		exact := tracking.AppID("exact " + part.String())
		use(t, s, exact).commit(uniqueFor(timedChangeset(), byte(10*part%251)))
		cut := uniqueFor(timedChangeset(), byte(10*part%251+1))
		changeTimes(reflect.ValueOf(&cut).Elem(), func(at time.Time) time.Time { return at.Add(part).In(delhi) })
		app := tracking.AppID("cut " + part.String())
		use(t, s, app).commit(cut)
		want, got := snap(t, s, exact), snap(t, s, app)
		same(t, "rows of times with "+part.String(), got, want, givenNumbers, anyHash)
	}
}

func zeroTimeStaysZero(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	cs := everyRow(1)
	changeTimes(reflect.ValueOf(&cs).Elem(), func(time.Time) time.Time { return time.Time{}.In(delhi) })
	c.commit(cs)
	got := snap(t, s, here)
	n := 0
	eachTime(reflect.ValueOf(&got).Elem(), func(at time.Time) {
		n++
		if !at.IsZero() {
			t.Errorf("a zero time has become %v", at)
		}
	})
	if n < 20 {
		t.Errorf("looked at %d times only", n)
	}
}

// timesOfAllYears has tasks of the first and the last moment, and around those where numbers turn.
func timesOfAllYears(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	for i, when := range []time.Time{
		time.Time{}.Add(time.Millisecond), time.Date(1, 12, 31, 23, 59, 59, 999e6, time.UTC), time.Unix(0, -1e6).UTC(),
		time.Unix(0, 0).UTC(), time.Unix(0, 1e6).UTC(),
		time.Date(2262, 4, 12, 0, 0, 0, 0, time.UTC), // int64 nanoseconds end the day before
		time.Date(9999, 12, 31, 23, 59, 59, 999e6, time.UTC),
	} {
		id := tracking.TaskID(rune('a' + i))
		task := newTask(id, when)
		task.AssignedAt, task.GeocodeAt, task.CompletedAt, task.Waiting, task.Drop.LngLat = when, when, when, true,
			&tracking.LngLat{}
		c.commit(tracking.Changeset{Tasks: []tracking.Task{task}})
		got := c.task(id)
		task.Version, task.Seq = 1, got.Seq
		same(t, "task of "+when.String(), got, task)
		due := c.due(tracking.DueQuery{Kind: tracking.DueGeocodes, Before: when})
		same(t, "due at "+when.String(), len(due), i+1)
		same(t, "due a millisecond before "+when.String(),
			len(c.due(tracking.DueQuery{Kind: tracking.DueGeocodes, Before: when.Add(-time.Millisecond)})), i)
	}
	list, _ := c.tasks(tracking.TaskFilter{})
	same(t, "newest first", each(list, taskID), []tracking.TaskID{"g", "f", "e", "d", "c", "b", "a"})
	list, _ = c.tasks(tracking.TaskFilter{CompletedSince: time.Unix(0, 0)})
	same(t, "completed since 1970", each(list, taskID), []tracking.TaskID{"g", "f", "e", "d"})
	same(t, "waiting", each(c.waiting(tracking.WaitingFilter{}), taskID), []tracking.TaskID{
		"a", "b", "c", "d", "e", "f", "g",
	})
}

// timesOrderWithinASecond has rows of all kinds within one second, whose order by text would be
// another.
func timesOrderWithinASecond(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("driver", t0)}})
	for _, p := range []struct {
		id   string
		part time.Duration
	}{
		{"700", 700 * time.Millisecond}, {"735", 735 * time.Millisecond},
		{"7351", 735*time.Millisecond + 100*time.Microsecond}, {"000", 0}, {"100", 100 * time.Millisecond},
		{"1", time.Millisecond},
	} {
		when := at(p.part)
		trip := newTrip(tracking.TripID(p.id), "driver", tracking.TrackingID(p.id), when)
		trip.TTL = when
		task := newTask(tracking.TaskID(p.id), when)
		task.Waiting, task.Drop.LngLat = true, &tracking.LngLat{}
		key := newKey(p.id, byte(p.part/time.Millisecond%250)+byte(len(p.id)), when)
		d := newDriver(tracking.DriverID(p.id), when)
		fix := newFix(when, 11, 48)
		c.commit(tracking.Changeset{
			Trips: []tracking.Trip{trip}, Tasks: []tracking.Task{task}, Keys: []tracking.Key{key},
			Drivers:  []tracking.Driver{d},
			Requests: []tracking.Request{newRequest("driver", tracking.TrackingID(p.id), when)},
			Fixes:    []tracking.FixBatch{{DriverID: "driver", SeenAt: when, Fixes: []tracking.Fix{fix}}},
		})
	}
	oldest := []string{"000", "1", "100", "700", "735", "7351"}
	newest := []string{"7351", "735", "700", "100", "1", "000"}
	tasks, _ := c.tasks(tracking.TaskFilter{})
	same(t, "tasks", each(tasks, func(v tracking.Task) string { return string(v.ID) }), newest)
	trips, _ := c.trips(tracking.TripFilter{})
	same(t, "trips", each(trips, func(v tracking.Trip) string { return string(v.ID) }), newest)
	drivers, _ := c.drivers(tracking.DriverFilter{})
	same(t, "drivers", each(drivers, func(v tracking.Driver) string { return string(v.ID) }),
		append(oldest, "driver")[:6:6], ignoreDriver)
	same(t, "keys", each(c.keys(), func(v tracking.Key) string { return v.ID }), oldest)
	same(t, "requests", each(c.requests("driver"), func(v tracking.Request) string { return string(v.TrackingID) }),
		oldest)
	same(t, "waiting", each(c.waiting(tracking.WaitingFilter{}), func(v tracking.Task) string { return string(v.ID) }),
		oldest)
	for i, part := range []time.Duration{0, 1, 100, 700, 735} {
		due := c.due(tracking.DueQuery{Kind: tracking.DueTrips, Before: at(part * time.Millisecond)})
		want := i + 1
		if part == 735 {
			want = 6
		}
		same(t, "trips due at ."+part.String(), len(due), want)
	}
	same(t, "fixes", each(c.fixes("driver", tracking.FixRange{}), fixTime), []time.Time{
		at(0), at(time.Millisecond), at(100 * time.Millisecond), at(700 * time.Millisecond), at(735 * time.Millisecond),
	})
}

func fixesOfOneMillisecondAreOne(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0)}})
	a, b, next := newFix(at(735*time.Millisecond), 11, 48), newFix(at(735100*time.Microsecond).In(delhi), 12, 48),
		newFix(at(736*time.Millisecond), 11, 48)
	r := c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{a, b, next}})
	same(t, "outcomes", r.Outcomes, []tracking.FixOutcome{tracking.FixLive, tracking.FixDuplicate, tracking.FixLive})
	r = c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{b}})
	same(t, "outcomes", r.Outcomes, []tracking.FixOutcome{tracking.FixDuplicate})
	same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{a, next})
}

// limitsFallBetweenMilliseconds asks and purges by moments that no row can have.
func limitsFallBetweenMilliseconds(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	const between = 700*time.Millisecond + 500*time.Microsecond
	earlier, later := newFix(at(700*time.Millisecond), 11, 48), newFix(at(701*time.Millisecond), 11, 48)
	event := newEvent("e", tracking.KindTask, "t", at(700*time.Millisecond))
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0)}, Events: []tracking.Event{event}})
	c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{earlier, later}})
	same(t, "fixes from there on", c.fixes("d", tracking.FixRange{From: at(between)}), []tracking.Fix{later})
	same(t, "fixes up to there", c.fixes("d", tracking.FixRange{To: at(between)}), []tracking.Fix{earlier})

	seen := tracking.FixBatch{DriverID: "d", SeenAt: at(702 * time.Millisecond)}
	c.record(seen)
	c.commit(tracking.Changeset{Tasks: []tracking.Task{waitingTask("t", t0, tracking.LngLat{Lng: 11, Lat: 48})}})
	for _, since := range []struct {
		at    time.Duration
		found int
	}{{702 * time.Millisecond, 1}, {702*time.Millisecond + 1, 0}} {
		offers := c.offers(tracking.Offer{At: later.LngLat, MaxOpen: -1, SeenSince: at(since.at)})
		same(t, "offers of who was seen since "+since.at.String(), len(offers), since.found)
		matches := c.matches(tracking.MatchQuery{MaxOpen: -1, SeenSince: at(since.at)})
		same(t, "matches of who was seen since "+since.at.String(), len(matches), since.found)
	}

	purged := c.purge(tracking.Before{Fixes: at(between), Events: at(between), Limit: 100})
	same(t, "purged before", purged, tracking.Purged{Fixes: 1, Events: 1})
}

// timedChangeset has something of everything that holds a time.
func timedChangeset() tracking.Changeset {
	cs := everyRow(1)
	cs.Fixes = []tracking.FixBatch{{
		DriverID: "d", SeenAt: t0, KeepOffDuty: true, Fixes: []tracking.Fix{walk(1), walk(2), far(3, 20)},
	}}
	cs.Events = []tracking.Event{newEvent("e", tracking.KindTask, "t", t0, "d")}
	cs.Events[0].Time = at(-time.Second)
	return cs
}

// changeTimes replaces every time inside v, an addressable value.
func changeTimes(v reflect.Value, f func(time.Time) time.Time) {
	switch v.Kind() {
	case reflect.Struct:
		if at, ok := v.Interface().(time.Time); ok {
			v.Set(reflect.ValueOf(f(at)))
			return
		}
		for i := range v.NumField() {
			changeTimes(v.Field(i), f)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			changeTimes(v.Elem(), f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			changeTimes(v.Index(i), f)
		}
	}
}

var delhi = time.FixedZone("IST", 5*3600+1800)
