package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
)

// walk is a fix of somebody who goes east at about 7 m/s, after sec seconds.
func walk(sec float64) tracking.Fix {
	return newFix(at(time.Duration(sec*float64(time.Second))), 11+sec*0.0001, 48)
}

// far is a fix that no walker can have made.
func far(sec, lng float64) tracking.Fix {
	return newFix(at(time.Duration(sec*float64(time.Second))), lng, 48)
}

func fixChecks() []check {
	type words = []tracking.FixOutcome
	const live, late, jump, duplicate, off = tracking.FixLive, tracking.FixLate, tracking.FixJump, tracking.FixDuplicate, tracking.FixOffDuty
	one := func(t testing.TB, s tracking.Store) *client {
		c := use(t, s, here)
		c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0), newDriver("e", t0)}})
		return c
	}
	send := func(c *client, want words, fixes ...tracking.Fix) tracking.Recorded {
		c.Helper()
		r := c.record(tracking.FixBatch{DriverID: "d", SeenAt: at(time.Hour), Fixes: fixes})
		same(c, "outcomes", r.Outcomes, want)
		return r
	}
	return []check{
		{"RecordFixes/keeps every field of a fix, and returns the driver as of afterwards", func(t testing.TB, s tracking.Store) {
			c := one(t, s)
			f := filled[tracking.Fix](2)
			f.Trusted = false
			r := c.record(tracking.FixBatch{DriverID: "d", SeenAt: at(time.Second), Fixes: []tracking.Fix{f}})
			want := c.driver("d")
			want.Position = tracking.Position{Fix: f, SeenAt: at(time.Second)}
			same(t, "recorded", r, tracking.Recorded{Outcomes: words{live}, Driver: want, Moved: true})
			same(t, "driver", c.driver("d"), want)
			same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{f})
			trusted := filled[tracking.Fix](3)
			c.record(tracking.FixBatch{DriverID: "d", SeenAt: at(time.Second), Fixes: []tracking.Fix{trusted}})
			same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{f, trusted})
		}},
		{"RecordFixes/touches neither the version nor UpdatedAt", func(t testing.TB, s tracking.Store) {
			c := one(t, s)
			before := c.driver("d")
			send(c, words{live, live}, walk(1), walk(2))
			after := c.driver("d")
			same(t, "version", after.Version, before.Version)
			same(t, "UpdatedAt", after.UpdatedAt, before.UpdatedAt)
			before.Name = "renamed"
			c.commit(tracking.Changeset{Drivers: []tracking.Driver{before}}) // a version read before the fixes still holds
			same(t, "position", c.driver("d").Position, after.Position)
		}},
		{"RecordFixes/no fixes is a sign of life only, and never goes back", func(t testing.TB, s tracking.Store) {
			c := one(t, s)
			for _, step := range []struct{ seen, want time.Duration }{{5, 5}, {3, 5}, {5, 5}, {9, 9}} {
				r := c.record(tracking.FixBatch{DriverID: "d", SeenAt: at(step.seen * time.Second)})
				same(t, "recorded", r, tracking.Recorded{Driver: c.driver("d")})
				same(t, "position", r.Driver.Position, tracking.Position{SeenAt: at(step.want * time.Second)})
			}
			same(t, "the other driver", c.driver("e").Position, tracking.Position{})
		}},
		{"RecordFixes/of an unknown driver is ErrNotFound", func(t testing.TB, s tracking.Store) {
			c := one(t, s)
			for _, fixes := range [][]tracking.Fix{nil, {walk(1)}} {
				_, err := s.RecordFixes(c.ctx, here, tracking.FixBatch{DriverID: "nobody", SeenAt: t0, Fixes: fixes})
				missing(t, "RecordFixes", err)
			}
			same(t, "fixes", c.fixes("nobody", tracking.FixRange{}), nil)
		}},
		{"RecordFixes/the live position is the newest good fix by its own time", func(t testing.TB, s tracking.Store) {
			c := one(t, s)
			r := send(c, words{live, late, live}, walk(10), walk(5), walk(20))
			same(t, "live position", r.Driver.Position.Fix, walk(20))
			same(t, "moved", r.Moved, true)
			r = send(c, words{late, duplicate}, walk(15), far(10, 12))
			same(t, "live position", r.Driver.Position.Fix, walk(20))
			same(t, "moved", r.Moved, false)
			same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{walk(5), walk(10), walk(15), walk(20)})
		}},
		{"RecordFixes/a jump is a candidate until the next fix in time agrees with it", func(t testing.TB, s tracking.Store) {
			c := one(t, s)
			r := send(c, words{live, jump}, walk(1), far(2, 12))
			same(t, "position", r.Driver.Position, tracking.Position{Fix: walk(1), Candidate: far(2, 12), SeenAt: at(time.Hour)})
			same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{walk(1)})
			r = send(c, words{jump}, far(3, 13)) // another place
			same(t, "position", r.Driver.Position, tracking.Position{Fix: walk(1), Candidate: far(3, 13), SeenAt: at(time.Hour)})
			same(t, "moved", r.Moved, false)
			r = send(c, words{live}, far(4, 13.0001))
			same(t, "position", r.Driver.Position, tracking.Position{Fix: far(4, 13.0001), SeenAt: at(time.Hour)})
			same(t, "moved", r.Moved, true)
			same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{walk(1), far(3, 13), far(4, 13.0001)})
		}},
		{"RecordFixes/a late fix can show the newest to be a jump", func(t testing.TB, s tracking.Store) {
			c := one(t, s)
			send(c, words{live}, far(60, 12)) // the first of all: nothing speaks against it
			r := send(c, words{live}, walk(59))
			same(t, "position", r.Driver.Position, tracking.Position{Fix: walk(59), Candidate: far(60, 12), SeenAt: at(time.Hour)})
			same(t, "moved", r.Moved, true)
			same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{walk(59)})
			r = send(c, words{late, live}, walk(40), walk(61))
			same(t, "live position", r.Driver.Position.Fix, walk(61))
			same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{walk(40), walk(59), walk(61)})
		}},
		{"RecordFixes/a trusted fix is no jump, and needs no duty", func(t testing.TB, s tracking.Store) {
			c := one(t, s)
			told := far(2, 12)
			told.Trusted = true
			r := send(c, words{live, live}, walk(1), told)
			same(t, "live position", r.Driver.Position.Fix, told)
			d := c.driver("d")
			d.Available, d.OffDutyAt = false, at(time.Minute)
			c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
			told = far(120, 13)
			told.Trusted = true
			send(c, words{off, live}, far(110, 12), told)
		}},
		{"RecordFixes/off duty and outside every trip nothing is kept", func(t testing.TB, s tracking.Store) {
			c := one(t, s)
			d := c.driver("d")
			d.Available, d.OffDutyAt = false, at(100*time.Second)
			over, open := newTrip("over", "d", "x", at(10*time.Second)), newTrip("open", "d", "y", at(50*time.Second))
			over.Status, over.EndedAt = tracking.Discarded, at(20*time.Second)
			foreign := newTrip("other", "e", "z", t0)
			c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}, Trips: []tracking.Trip{over, open, foreign}})
			send(c, words{off, live, live, off, off, live, live}, walk(9), walk(10), walk(20), walk(21), walk(49), walk(50), walk(5000))
			same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{walk(10), walk(20), walk(50), walk(5000)})
			r := c.record(tracking.FixBatch{DriverID: "d", SeenAt: at(2 * time.Hour), Fixes: []tracking.Fix{walk(9)}})
			same(t, "outcomes", r.Outcomes, words{off})
			same(t, "last sign of life", r.Driver.Position.SeenAt, at(2*time.Hour))
			r = c.record(tracking.FixBatch{DriverID: "d", SeenAt: at(time.Hour), KeepOffDuty: true, Fixes: []tracking.Fix{walk(9), walk(30)}})
			same(t, "outcomes with KeepOffDuty", r.Outcomes, words{late, late})

			d = c.driver("d")                                 // on duty again, after a gap
			d.Available, d.DutyAt = true, at(320*time.Second) // the last two minutes of the gap do not count
			trip := c.trip("open")
			trip.Status, trip.EndedAt = tracking.Stopped, at(60*time.Second)
			c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}, Trips: []tracking.Trip{trip}})
			send(c, words{late, off, off, late}, walk(99), walk(100), walk(199), walk(200))
		}},
		{"RecordFixes/each fix is kept once, whatever the batches", func(t testing.TB, s tracking.Store) {
			c := one(t, s)
			send(c, words{live, duplicate, live}, walk(1), walk(1), walk(2))
			send(c, words{duplicate, duplicate, late}, walk(2), walk(1), walk(1.5))
			r := c.record(tracking.FixBatch{DriverID: "e", SeenAt: t0, Fixes: []tracking.Fix{walk(1)}})
			same(t, "outcomes of another driver", r.Outcomes, words{live})
			same(t, "fixes", c.fixes("d", tracking.FixRange{}), []tracking.Fix{walk(1), walk(1.5), walk(2)})
		}},
		{"RecordFixes/which fixes are good does not depend on order and batches", func(t testing.TB, s tracking.Store) {
			c := one(t, s)
			all := []tracking.Fix{walk(1), walk(2), far(3, 20), walk(4), far(5, 20), far(6, 20.0001), far(7, 20.0002), walk(8), walk(9), far(10, -50), far(11, 60), walk(12), far(13, 90)}
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
						[]tracking.Fix{walk(1), walk(2), walk(4), far(5, 20), far(6, 20.0001), far(7, 20.0002), walk(8), walk(9), walk(12)})
					same(t, "position", c.driver(id).Position, tracking.Position{Fix: walk(12), Candidate: far(13, 90), SeenAt: at(time.Hour)})
				}
			}
		}},
		{"Commit/fixes are recorded in the same step, after the rows", func(t testing.TB, s tracking.Store) {
			c := one(t, s)
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
			same(t, "position", c.driver("d").Position, tracking.Position{Fix: walk(2), SeenAt: at(3 * time.Second)})
			same(t, "position of the other", c.driver("e").Position, tracking.Position{SeenAt: at(time.Second)})
			same(t, "version", c.driver("d").Version, 2)
		}},
		{"Fixes/yields a range, both ends included, ascending or descending", func(t testing.TB, s tracking.Store) {
			c := one(t, s)
			var all []tracking.Fix
			for i := range 20 {
				all = append(all, walk(float64(i)))
			}
			c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: all})
			sec := func(n int) time.Time { return at(time.Duration(n) * time.Second) }
			for _, r := range []tracking.FixRange{
				{}, {From: sec(3)}, {To: sec(3)}, {From: sec(3), To: sec(7)}, {From: sec(3), To: sec(3)}, {From: sec(7), To: sec(3)},
				{From: sec(3).Add(time.Millisecond), To: sec(7).Add(-time.Millisecond)}, {From: sec(100)}, {To: sec(-1)},
				{Limit: 5}, {Limit: 100}, {From: sec(3), Limit: 1}, {From: sec(3), To: sec(5), Limit: 3},
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
		}},
		{"Fixes/an iteration can stop, and the store be used within it", func(t testing.TB, s tracking.Store) {
			c := one(t, s)
			send(c, words{live, live, live}, walk(1), walk(2), walk(3))
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
		}},
	}
}

// emptyIsNil takes an empty slice for nil in what a test computed itself.
var emptyIsNil = cmp.FilterValues(func(a, b []time.Time) bool { return len(a) == 0 && len(b) == 0 }, cmp.Comparer(func(a, b []time.Time) bool { return true }))
