package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8aba7b13/tracking"
)

// fixChecks are about the log of fixes and the position that comes of it.
func fixChecks() []check {
	return []check{
		{"RecordFixes/keeps every field of a fix, and returns the driver as of afterwards", fixKeepsEveryField},
		{"RecordFixes/touches neither the version nor UpdatedAt", fixesLeaveTheVersion},
		{"RecordFixes/no fixes is a sign of life only, and never goes back", noFixesIsASignOfLife},
		{"RecordFixes/keeps what the last arrivals say of the phone's clock", fixesTellOfThePhonesClock},
		{"RecordFixes/counts what could not be read until a fix is read", unreadCountsUntilRead},
		{"RecordFixes/of an unknown driver is ErrNotFound", fixesOfUnknownDriverNotFound},
		{"RecordFixes/the live position is the newest good fix by its own time", livePositionIsNewestGood},
		{"RecordFixes/a jump is a candidate until the next fix in time agrees with it", jumpIsACandidate},
		{"RecordFixes/a late fix can show the newest to be a jump", lateFixCanUnmaskAJump},
		{"RecordFixes/a trusted fix is no jump, and needs no duty", trustedFixIsNoJump},
		{"RecordFixes/off duty and outside every trip nothing is kept", offDutyKeepsNothing},
		{"RecordFixes/each fix is kept once, whatever the batches", fixIsKeptOnce},
		{"RecordFixes/which fixes are good does not depend on order and batches", goodFixesKnowNoOrder},
		{"Commit/fixes are recorded in the same step, after the rows", committedFixesAreRecorded},
		{"Fixes/yields a range, both ends included, ascending or descending", fixesYieldARange},
		{"KeptFixes/lists a range of the fixes that are good and of those that are not", keptFixesAreListed},
		{"Fixes/an iteration can stop, and the store be used within it", fixIterationCanStop},
	}
}

func fixKeepsEveryField(t testing.TB, s tracking.Store) {
	c := twoDrivers(t, s)
	f := filled[tracking.Fix](2)
	f.Trusted = false
	r := c.record(tracking.FixBatch{DriverID: "d", SeenAt: at(time.Second), Fixes: []tracking.Fix{f}})
	want := c.driver("d")
	want.Position = tracking.Position{Fix: f, SeenAt: at(time.Second)}
	same(t, "recorded", r, tracking.Recorded{Outcomes: words{live}, Driver: want, Moved: true}, apart)
	same(t, "driver", c.driver("d"), r.Driver)
	same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{f})
	trusted := filled[tracking.Fix](3)
	c.record(tracking.FixBatch{DriverID: "d", SeenAt: at(time.Second), Fixes: []tracking.Fix{trusted}})
	same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{f, trusted})
}

func fixesLeaveTheVersion(t testing.TB, s tracking.Store) {
	c := twoDrivers(t, s)
	before := c.driver("d")
	sendFixes(c, words{live, live}, walk(1), walk(2))
	after := c.driver("d")
	same(t, "version", after.Version, before.Version)
	same(t, "UpdatedAt", after.UpdatedAt, before.UpdatedAt)
	before.Name = "renamed"
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{before}}) // a version read before the fixes still holds
	same(t, "position", c.driver("d").Position, after.Position)
}

func noFixesIsASignOfLife(t testing.TB, s tracking.Store) {
	c := twoDrivers(t, s)
	for _, step := range []struct{ seen, want time.Duration }{{5, 5}, {3, 5}, {5, 5}, {9, 9}} {
		r := c.record(tracking.FixBatch{DriverID: "d", SeenAt: at(step.seen * time.Second)})
		same(t, "recorded", r, tracking.Recorded{Driver: c.driver("d")})
		same(t, "position", r.Driver.Position, tracking.Position{SeenAt: at(step.want * time.Second)})
	}
	same(t, "the other driver", c.driver("e").Position, tracking.Position{})
}

// fixesTellOfThePhonesClock keeps the smallest difference of the last arrivals.
func fixesTellOfThePhonesClock(t testing.TB, s tracking.Store) {
	c := twoDrivers(t, s)
	skew := func(least, recent float64, arrivals int) tracking.Skew {
		k := tracking.Skew{Least: tracking.Known(least), Arrivals: arrivals}
		if arrivals > 0 {
			k.Recent = tracking.Known(recent)
		}
		return k
	}
	for i, step := range []struct {
		sent float64
		want tracking.Skew
	}{
		{-3600.5, skew(-3600, -3600, 1)}, {121.25, skew(121, 121, 2)}, {300, skew(121, 121, 3)},
		{-90, skew(-90, -90, 4)}, {200, skew(-90, 0, 0)}, {500, skew(-90, 500, 1)}, {400, skew(-90, 400, 2)},
		{600, skew(-90, 400, 3)}, {-500, skew(-90, 400, 4)}, {700, skew(400, 0, 0)}, {0.4, skew(0, 0, 1)},
	} {
		r := c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Skew: tracking.Known(step.sent)})
		same(t, fmt.Sprintf("skew after arrival %d", i+1), r.Driver.Position.Skew, step.want)
		same(t, "driver", c.driver("d"), r.Driver)
	}
	// says nothing of the clock
	r := c.record(tracking.FixBatch{DriverID: "d", SeenAt: at(time.Second), Fixes: []tracking.Fix{walk(1)}})
	same(t, "skew", r.Driver.Position.Skew, skew(0, 0, 1))
	same(t, "the other driver", c.driver("e").Position, tracking.Position{})
}

func unreadCountsUntilRead(t testing.TB, s tracking.Store) {
	c := twoDrivers(t, s)
	told := walk(1)
	told.Trusted = true
	for i, step := range []struct {
		batch tracking.FixBatch
		want  int
	}{
		{tracking.FixBatch{Unread: 3}, 3}, {tracking.FixBatch{Unread: 2}, 5}, {tracking.FixBatch{}, 5},
		{tracking.FixBatch{Fixes: []tracking.Fix{told}}, 5}, {tracking.FixBatch{Fixes: []tracking.Fix{walk(2)}}, 0},
		{tracking.FixBatch{Unread: 1}, 1}, {tracking.FixBatch{Fixes: []tracking.Fix{walk(3)}, Unread: 4}, 4},
		{tracking.FixBatch{Skew: tracking.Known(121)}, 0}, // of a fix that is not kept
	} {
		step.batch.DriverID, step.batch.SeenAt = "d", t0
		r := c.record(step.batch)
		same(t, fmt.Sprintf("unread after batch %d", i+1), r.Driver.Position.Unread, step.want)
		same(t, "driver", c.driver("d"), r.Driver)
	}
}

func fixesOfUnknownDriverNotFound(t testing.TB, s tracking.Store) {
	c := twoDrivers(t, s)
	for _, fixes := range [][]tracking.Fix{nil, {walk(1)}} {
		_, err := s.RecordFixes(c.ctx, here, tracking.FixBatch{DriverID: "nobody", SeenAt: t0, Fixes: fixes})
		missing(t, "RecordFixes", err)
	}
	same(t, "fixes", c.fixes("nobody", tracking.FixRange{}), nil)
}

func livePositionIsNewestGood(t testing.TB, s tracking.Store) {
	c := twoDrivers(t, s)
	r := sendFixes(c, words{live, late, live}, walk(10), walk(5), walk(20))
	same(t, "live position", r.Driver.Position.Fix, walk(20))
	same(t, "moved", r.Moved, true)
	r = sendFixes(c, words{late, duplicate}, walk(15), far(10, 12))
	same(t, "live position", r.Driver.Position.Fix, walk(20))
	same(t, "moved", r.Moved, false)
	same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{walk(5), walk(10), walk(15), walk(20)})
}

func jumpIsACandidate(t testing.TB, s tracking.Store) {
	c := twoDrivers(t, s)
	r := sendFixes(c, words{live, live, jump}, walk(0), walk(1), far(2, 12))
	same(t, "live position", r.Driver.Position.Fix, walk(1))
	same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{walk(0), walk(1)})
	r = sendFixes(c, words{jump}, far(3, 13)) // another place
	same(t, "live position", r.Driver.Position.Fix, walk(1))
	same(t, "moved", r.Moved, false)
	r = sendFixes(c, words{live}, far(4, 13.0001))
	same(t, "live position", r.Driver.Position.Fix, far(4, 13.0001))
	same(t, "moved", r.Moved, true)
	same(t, "rewritten", r.Rewritten, true)
	same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{walk(0), walk(1), far(3, 13), far(4, 13.0001)})
}

func lateFixCanUnmaskAJump(t testing.TB, s tracking.Store) {
	c := twoDrivers(t, s)
	sendFixes(c, words{live}, far(60, 12)) // the first of all: nothing speaks against it
	r := sendFixes(c, words{live}, walk(59))
	same(t, "live position", r.Driver.Position.Fix, walk(59))
	same(t, "moved", r.Moved, true)
	same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{walk(59)})
	r = sendFixes(c, words{late, live}, walk(40), walk(61))
	same(t, "live position", r.Driver.Position.Fix, walk(61))
	same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{walk(40), walk(59), walk(61)})
}

func trustedFixIsNoJump(t testing.TB, s tracking.Store) {
	c := twoDrivers(t, s)
	told := far(2, 12)
	told.Trusted = true
	r := sendFixes(c, words{live, live}, walk(1), told)
	same(t, "live position", r.Driver.Position.Fix, told)
	d := c.driver("d")
	d.Available, d.OffDutyAt = false, at(time.Minute)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
	told = far(120, 13)
	told.Trusted = true
	sendFixes(c, words{off, live}, far(110, 12), told)
}

// offDutyKeepsNothing sends fixes around and within two trips of a driver who is off duty.
func offDutyKeepsNothing(t testing.TB, s tracking.Store) {
	c := twoDrivers(t, s)
	d := c.driver("d")
	d.Available, d.OffDutyAt = false, at(100*time.Second)
	over, open := newTrip("over", "d", "x", at(10*time.Second)), newTrip("open", "d", "y", at(50*time.Second))
	over.Status, over.EndedAt = tracking.TripDiscarded, at(20*time.Second)
	foreign := newTrip("other", "e", "z", t0)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}, Trips: []tracking.Trip{over, open, foreign}})
	sendFixes(c, words{off, live, live, off, off, live, live}, walk(9), walk(10), walk(20), walk(21), walk(49),
		walk(50), walk(5000))
	same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{walk(10), walk(20), walk(50), walk(5000)})
	r := c.record(tracking.FixBatch{DriverID: "d", SeenAt: at(2 * time.Hour), Fixes: []tracking.Fix{walk(9)}})
	same(t, "outcomes", r.Outcomes, words{off})
	same(t, "last sign of life", r.Driver.Position.SeenAt, at(2*time.Hour))
	r = c.record(tracking.FixBatch{
		DriverID: "d", SeenAt: at(time.Hour), KeepOffDuty: true, Fixes: []tracking.Fix{walk(9), walk(30)},
	})
	same(t, "outcomes with KeepOffDuty", r.Outcomes, words{late, late})

	d = c.driver("d")                                 // on duty again, after a gap
	d.Available, d.DutyAt = true, at(320*time.Second) // the last two minutes of the gap do not count
	trip := c.trip("open")
	trip.Status, trip.EndedAt = tracking.TripStopped, at(60*time.Second)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}, Trips: []tracking.Trip{trip}})
	sendFixes(c, words{late, off, off, late}, walk(99), walk(100), walk(199), walk(200))
}

func fixIsKeptOnce(t testing.TB, s tracking.Store) {
	c := twoDrivers(t, s)
	sendFixes(c, words{live, duplicate, live}, walk(1), walk(1), walk(2))
	sendFixes(c, words{duplicate, duplicate, late}, walk(2), walk(1), walk(1.5))
	r := c.record(tracking.FixBatch{DriverID: "e", SeenAt: t0, Fixes: []tracking.Fix{walk(1)}})
	same(t, "outcomes of another driver", r.Outcomes, words{live})
	same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{walk(1), walk(1.5), walk(2)})
}

// goodFixesKnowNoOrder sends the same fixes in many orders and batches.
func goodFixesKnowNoOrder(t testing.TB, s tracking.Store) {
	c := twoDrivers(t, s)
	all := []tracking.Fix{
		walk(1), walk(2), far(3, 20), walk(4), far(5, 20), far(6, 20.0001), far(7, 20.0002), walk(8), walk(9),
		far(10, -50), far(11, 60), walk(12), far(13, 90),
	}
	orders := [][]tracking.Fix{all, slices.Clone(all), nil, nil}
	slices.Reverse(orders[1])
	for i := range all {
		orders[2] = append(orders[2], all[i*5%len(all)])
		orders[3] = append(orders[3], all[(i*8+3)%len(all)])
	}
	for n, order := range orders {
		for _, batch := range []int{1, 3, len(all)} {
			id := tracking.DriverID(fmt.Sprintf("%d-%d", n, batch))
			c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver(id, t0)}})
			for part := range slices.Chunk(order, batch) {
				c.record(tracking.FixBatch{DriverID: id, SeenAt: at(time.Hour), Fixes: part})
			}
			same(t, fmt.Sprintf("fixes in order %d, %d a batch", n, batch), c.fixes(id, tracking.FixRange{}),
				[]tracking.Fix{walk(1), walk(2), walk(4), walk(8), walk(9), walk(12)})
			same(t, "live position", c.driver(id).Position.Fix, walk(12))
			same(t, "position", c.driver(id).Position, c.driver("0-1").Position, orderless)
		}
	}
}

func committedFixesAreRecorded(t testing.TB, s tracking.Store) {
	c := twoDrivers(t, s)
	d := c.driver("d")
	d.Available, d.OffDutyAt = false, t0
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
	c.commit(tracking.Changeset{
		Trips: []tracking.Trip{newTrip("r", "d", "x", at(time.Second))},
		Fixes: []tracking.FixBatch{
			{DriverID: "d", SeenAt: at(3 * time.Second), Fixes: []tracking.Fix{walk(0.5), walk(1), walk(2)}},
			{DriverID: "d", SeenAt: at(2 * time.Second), Fixes: []tracking.Fix{walk(1.5)}},
			{DriverID: "e", SeenAt: at(time.Second)},
		},
	})
	same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{walk(1), walk(1.5), walk(2)})
	same(t, "position", c.driver("d").Position, tracking.Position{Fix: walk(2), SeenAt: at(3 * time.Second)}, apart)
	same(t, "position of the other", c.driver("e").Position, tracking.Position{SeenAt: at(time.Second)})
	same(t, "version", c.driver("d").Version, 2)
}

// fixesYieldARange compares each range, both ways and with each limit, with a part of all.
func fixesYieldARange(t testing.TB, s tracking.Store) {
	c := twoDrivers(t, s)
	var all []tracking.Fix
	for i := range 20 {
		all = append(all, walk(float64(i)))
	}
	c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: all})
	sec := func(n int) time.Time { return at(time.Duration(n) * time.Second) }
	for _, r := range []tracking.FixRange{
		{}, {From: sec(3)}, {To: sec(3)}, {From: sec(3), To: sec(7)}, {From: sec(3), To: sec(3)},
		{From: sec(7), To: sec(3)}, {From: sec(3).Add(time.Millisecond), To: sec(7).Add(-time.Millisecond)},
		{From: sec(100)}, {To: sec(-1)}, {Limit: 5}, {Limit: 100}, {From: sec(3), Limit: 1},
		{From: sec(3), To: sec(5), Limit: 3},
	} {
		for _, newest := range []bool{false, true} {
			r.Newest = newest
			var want []time.Time
			for _, f := range all {
				if !f.Time.Before(r.From) && (r.To.IsZero() || !f.Time.After(r.To)) {
					want = append(want, f.Time)
				}
			}
			if newest {
				slices.Reverse(want)
			}
			if r.Limit > 0 {
				want = want[:min(r.Limit, len(want))]
			}
			same(t, fmt.Sprintf("fixes in %+v", r), each(c.fixes("d", r), fixTime), want, emptyIsNil)
		}
	}
	same(t, "fixes of an unknown driver", c.fixes("nobody", tracking.FixRange{}), nil)
}

// keptFixesAreListed has one fix of each mark, and asks for parts of them.
func keptFixesAreListed(t testing.TB, s tracking.Store) {
	c := twoDrivers(t, s)
	coarse := walk(40)
	coarse.Accuracy = tracking.Known(2500)
	all := []tracking.KeptFix{
		{Fix: walk(1), Mark: tracking.MarkGood}, {Fix: walk(2), Mark: tracking.MarkGood},
		{Fix: far(3, 12), Mark: tracking.MarkOut}, {Fix: walk(4), Mark: tracking.MarkOpen},
		{Fix: coarse, Mark: tracking.MarkCoarse},
	}
	for _, k := range all {
		c.record(tracking.FixBatch{
			DriverID: "d", SeenAt: at(time.Hour), Fixes: []tracking.Fix{k.Fix}, MaxAccuracy: 250,
		})
	}
	person := c.driver("d").Person
	for name, w := range map[string]struct {
		r    tracking.FixRange
		want []tracking.KeptFix
	}{
		"all":           {tracking.FixRange{}, all},
		"the first two": {tracking.FixRange{Limit: 2}, all[:2]},
		"the last":      {tracking.FixRange{Newest: true, Limit: 1}, all[4:]},
		"both ends":     {tracking.FixRange{From: at(2 * time.Second), To: at(4 * time.Second)}, all[1:4]},
		"nothing between": {
			tracking.FixRange{From: at(2001 * time.Millisecond), To: at(2999 * time.Millisecond), Newest: true}, nil,
		},
		"the person's": {tracking.FixRange{Person: person, From: at(40 * time.Second)}, all[4:]},
		"another's":    {tracking.FixRange{Person: person + "2"}, nil},
	} {
		if w.r.Limit == 0 {
			w.r.Limit = 100
		}
		got, err := s.KeptFixes(c.ctx, here, "d", w.r)
		c.ok(err)
		same(t, name, got, w.want, cmpopts.EquateEmpty())
	}
	got, err := s.KeptFixes(c.ctx, here, "d", tracking.FixRange{To: at(4 * time.Second), Newest: true, Limit: 100})
	c.ok(err)
	want := slices.Clone(all[:4])
	slices.Reverse(want)
	same(t, "newest first", got, want)
}

func fixIterationCanStop(t testing.TB, s tracking.Store) {
	c := twoDrivers(t, s)
	sendFixes(c, words{live, live, live}, walk(1), walk(2), walk(3))
	n := 0
	for f, err := range s.Fixes(c.ctx, here, "d", tracking.FixRange{}) {
		c.ok(err)
		if n++; n == 2 {
			same(t, "fix", f, walk(2))
			break
		}
		c.driver("d")
		c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{walk(4)}})
		c.commit(tracking.Changeset{Tasks: []tracking.Task{newTask("t", t0)}})
	}
	seq := s.Fixes(c.ctx, here, "d", tracking.FixRange{})
	for range 2 { // it can be ranged over again
		got := 0
		for _, err := range seq {
			c.ok(err)
			got++
		}
		same(t, "fixes", got, 4)
	}
}

// words are what becomes of several fixes.
type words = []tracking.FixOutcome

const (
	live      = tracking.FixLive
	late      = tracking.FixLate
	jump      = tracking.FixJump
	duplicate = tracking.FixDuplicate
	off       = tracking.FixOffDuty
	future    = tracking.FixFuture
)

// twoDrivers makes the drivers d and e.
func twoDrivers(t testing.TB, s tracking.Store) *client {
	c := use(t, s, here)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0), newDriver("e", t0)}})
	return c
}

// sendFixes records fixes of d, and expects these outcomes.
func sendFixes(c *client, want words, fixes ...tracking.Fix) tracking.Recorded {
	c.Helper()
	r := c.record(tracking.FixBatch{DriverID: "d", SeenAt: at(time.Hour), Fixes: fixes})
	same(c, "outcomes", r.Outcomes, want)
	return r
}

// walk is a fix of somebody who goes east at about 7 m/s, after sec seconds.
func walk(sec float64) tracking.Fix {
	return newFix(at(time.Duration(sec*float64(time.Second))), 11+sec*0.0001, 48)
}

// far is a fix that no walker can have made.
func far(sec, lng float64) tracking.Fix {
	return newFix(at(time.Duration(sec*float64(time.Second))), lng, 48)
}

// apart takes what a fix of a driver is judged by out of a comparison: it is opaque; and what tells
// of the order in which they came.
var apart = cmpopts.IgnoreFields(tracking.Position{}, "Tail", "Rewrites")

// orderless takes what tells of the order in which fixes came out of a comparison.
var orderless = cmpopts.IgnoreFields(tracking.Position{}, "Rewrites")

// emptyIsNil takes an empty slice for nil in what a test computed itself.
var emptyIsNil = cmp.FilterValues(func(a, b []time.Time) bool {
	return len(a) == 0 &&
		len(b) == 0
}, cmp.Comparer(func(a, b []time.Time) bool { return true }))
