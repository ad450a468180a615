package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8aba7b13/tracking"
)

func sweepChecks() []check {
	type due = tracking.Due
	trip := func(a tracking.AppID, id string) due {
		return due{App: a, Subject: tracking.Subject{Kind: tracking.KindTrip, ID: id}}
	}
	task := func(a tracking.AppID, id string) due {
		return due{App: a, Subject: tracking.Subject{Kind: tracking.KindTask, ID: id}}
	}
	min := func(n int) time.Time { return at(time.Duration(n) * time.Minute) }
	return []check{
		{"Due/trips: the active ones whose TTL has come, longest due first", func(t testing.TB, s tracking.Store) {
			c, o := use(t, s, here), use(t, s, there)
			make := func(c *client, ttl int, status tracking.TripStatus) {
				id := fmt.Sprint(ttl)
				tr := newTrip(tracking.TripID(id), "d", tracking.TrackingID(id), t0)
				tr.TTL, tr.Status = min(ttl), status
				c.commit(tracking.Changeset{Trips: []tracking.Trip{tr}})
			}
			make(c, 5, tracking.Active)
			make(c, 3, tracking.Active)
			make(o, 4, tracking.Active)
			make(c, 1, tracking.Stopped)
			make(c, 2, tracking.Discarded)
			make(c, 7, tracking.Active)
			q := tracking.DueQuery{Kind: tracking.DueTrips, Before: min(5)}
			same(t, "due", c.due(q), []due{trip(here, "3"), trip(there, "4"), trip(here, "5")})
			q.Limit = 2
			same(t, "due, at most 2", c.due(q), []due{trip(here, "3"), trip(there, "4")})
			q.App, q.Limit = here, 0
			same(t, "due of one application", c.due(q), []due{trip(here, "3"), trip(here, "5")})
			q.Before = min(3).Add(-time.Millisecond)
			same(t, "due a millisecond before", c.due(q), nil)

			moved := c.trip("3")
			moved.TTL = min(6)
			c.commit(tracking.Changeset{Trips: []tracking.Trip{moved}})
			ended := c.trip("5")
			ended.Status, ended.EndedAt = tracking.Stopped, min(5)
			c.commit(tracking.Changeset{Trips: []tracking.Trip{ended}})
			q.Before = min(5)
			same(t, "due after one was moved and one ended", c.due(q), nil)
			q.Before = min(6)
			same(t, "due a minute later", c.due(q), []due{trip(here, "3")})
		}},
		{"Due/geocodes: tasks and trips whose GeocodeAt is set and has come", func(t testing.TB, s tracking.Store) {
			c, o := use(t, s, here), use(t, s, there)
			tr := newTrip("x", "d", "x", t0)
			tr.GeocodeAt, tr.Status = min(2), tracking.Stopped
			a, b, none := newTask("x", t0), newTask("b", t0), newTask("none", t0)
			a.GeocodeAt, b.GeocodeAt = min(1), min(4)
			c.commit(tracking.Changeset{Tasks: []tracking.Task{b, a, none}, Trips: []tracking.Trip{tr, newTrip("none", "d", "y", t0)}})
			f := newTask("f", t0)
			f.GeocodeAt = min(3)
			o.commit(tracking.Changeset{Tasks: []tracking.Task{f}})
			q := tracking.DueQuery{Kind: tracking.DueGeocodes, Before: min(4)}
			same(t, "due", c.due(q), []due{task(here, "x"), trip(here, "x"), task(there, "f"), task(here, "b")})
			q.Limit = 2
			same(t, "due, at most 2", c.due(q), []due{task(here, "x"), trip(here, "x")})
			q.App, q.Limit, q.Before = here, 0, min(3)
			same(t, "due of one application", c.due(q), []due{task(here, "x"), trip(here, "x")})
			found := c.task("x")
			found.GeocodeAt = time.Time{}
			c.commit(tracking.Changeset{Tasks: []tracking.Task{found}})
			same(t, "due after one was cleared", c.due(q), []due{trip(here, "x")})
		}},
		{"Due/silence: the available, not silent, long not heard of", func(t testing.TB, s tracking.Store) {
			c, o := use(t, s, here), use(t, s, there)
			driver := func(a tracking.AppID, id string) due {
				return due{App: a, Subject: tracking.Subject{Kind: tracking.KindDriver, ID: id}}
			}
			make := func(c *client, id tracking.DriverID, duty, seen int, change func(*tracking.Driver)) {
				d := newDriver(id, t0)
				d.DutyAt = min(duty)
				if change != nil {
					change(&d)
				}
				c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
				if seen > 0 {
					c.record(tracking.FixBatch{DriverID: id, SeenAt: min(seen)})
				}
			}
			make(c, "seen 3", 1, 3, nil)
			make(c, "seen 2", 2, 2, nil)
			make(c, "never seen", 1, 0, nil)
			make(c, "duty 9", 9, 1, nil)
			make(c, "seen 9", 1, 9, nil)
			make(c, "off", 1, 1, func(d *tracking.Driver) { d.Available = false })
			make(c, "silent", 1, 1, func(d *tracking.Driver) { d.Silent = true })
			make(o, "seen 4", 1, 4, nil)
			q := tracking.DueQuery{Kind: tracking.DueSilence, Before: min(4)}
			same(t, "due", c.due(q), []due{driver(here, "never seen"), driver(here, "seen 2"), driver(here, "seen 3"), driver(there, "seen 4")})
			q.Limit = 1
			same(t, "due, at most 1", c.due(q), []due{driver(here, "never seen")})
			q.App, q.Limit, q.Before = here, 0, min(2)
			same(t, "due of one application", c.due(q), []due{driver(here, "never seen"), driver(here, "seen 2")})
			c.record(tracking.FixBatch{DriverID: "seen 2", SeenAt: min(5), Fixes: []tracking.Fix{newFix(t0, 11, 48)}}) // an old fix is a sign of life all the same
			d := c.driver("never seen")
			d.Silent = true
			c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
			same(t, "due after a sign of life and after it was noted", c.due(q), nil)
		}},
		{"Waiting/lists the waiting tasks, oldest first, after the cursor", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			var want, mine []tracking.AppTask
			for i := range 12 {
				id := tracking.TaskID(fmt.Sprint(i))
				tk := newTask(id, min(i/4))
				tk.Waiting = i != 5
				app := here
				if i%3 == 0 {
					app = there
				}
				o := use(t, s, app)
				o.commit(tracking.Changeset{Tasks: []tracking.Task{tk}})
				if tk.Waiting {
					want = append(want, tracking.AppTask{App: app, Task: o.task(id)})
					if app == here {
						mine = append(mine, want[len(want)-1])
					}
				}
			}
			for app, list := range map[tracking.AppID][]tracking.AppTask{"": want, here: mine, "nobody": nil} {
				for _, n := range []int{1, 3, 100} {
					var got []tracking.AppTask
					var after tracking.Cursor
					for {
						part, err := s.Waiting(c.ctx, app, after, n)
						c.ok(err)
						if len(part) > n || len(got) > len(list) {
							t.Fatalf("Waiting: %d tasks of at most %d, after %d", len(part), n, len(got))
						}
						if part == nil {
							break
						}
						got = append(got, part...)
						last := part[len(part)-1].Task
						after = tracking.Cursor{CreatedAt: last.CreatedAt, Seq: last.Seq}
					}
					same(t, fmt.Sprintf("waiting in %q, %d at a time", app, n), got, list)
				}
			}
			served := c.task("1")
			served.Waiting = false
			c.commit(tracking.Changeset{Tasks: []tracking.Task{served}})
			got, err := s.Waiting(c.ctx, here, tracking.Cursor{}, 1)
			c.ok(err)
			same(t, "the first waiting one", got[0].Task.ID, "2")
			served.Waiting, served.Version = true, 2
			c.commit(tracking.Changeset{Tasks: []tracking.Task{served}})
			got, err = s.Waiting(c.ctx, here, tracking.Cursor{}, 1)
			c.ok(err)
			same(t, "the first waiting one, when it waits again", got[0].Task.ID, "1")
		}},
		{"Purge/removes old fixes, finished events and notices, and nothing else", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			c.commit(tracking.Changeset{
				Tasks: []tracking.Task{newTask("a", t0)}, Drivers: []tracking.Driver{newDriver("d", t0)},
				Trips: []tracking.Trip{newTrip("r", "d", "x", t0)}, Keys: []tracking.Key{newKey("k", 1, t0)},
				Invites: []tracking.Invite{newInvite("d", 2, 3)}, Push: []tracking.Request{newRequest("d", "y", min(60))},
			})
			for i := range 6 {
				c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{walk(float64(60 * i))}})
				c.commit(tracking.Changeset{Events: []tracking.Event{newEvent(fmt.Sprint("done", i), tracking.KindTask, "a", min(i), "d")}})
				c.commit(tracking.Changeset{Events: []tracking.Event{newEvent(fmt.Sprint("open", i), tracking.KindTask, "b", min(i))}, Deliver: []string{""}})
			}
			before := snap(t, s, here)
			same(t, "purged with no times", c.purge(tracking.Before{Limit: 100}), tracking.Purged{})
			same(t, "rows", snap(t, s, here), before)
			got := c.purge(tracking.Before{Fixes: min(2), Limit: 100})
			same(t, "purged fixes", got, tracking.Purged{Fixes: 2})
			got = c.purge(tracking.Before{Events: min(3), Limit: 100})
			same(t, "purged events and notices", got, tracking.Purged{Events: 3, Notices: 3})
			want := before
			want.Fixes["d"] = want.Fixes["d"][2:]
			want.Notices["d"] = want.Notices["d"][3:]
			want.Events = slices.DeleteFunc(want.Events, func(e tracking.Event) bool { return e.Subject.ID == "a" && e.RecordedAt.Before(min(3)) })
			same(t, "rows", snap(t, s, here), want)
			same(t, "purged the second time", c.purge(tracking.Before{Fixes: min(2), Events: min(3), Limit: 100}), tracking.Purged{})

			c.lease("w", t0, 1)
			c.finish(done("w", "open0", tracking.Dead))
			same(t, "purged when one was given up", c.purge(tracking.Before{Events: min(3), Limit: 100}), tracking.Purged{Events: 1})
		}},
		{"Purge/removes at most Limit rows, and all of them in the end", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0), newDriver("e", t0)}})
			for i := range 7 {
				c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{walk(float64(i))}})
				c.record(tracking.FixBatch{DriverID: "e", SeenAt: t0, Fixes: []tracking.Fix{walk(float64(i))}})
				c.commit(tracking.Changeset{Events: []tracking.Event{newEvent(fmt.Sprint(i), tracking.KindTask, "a", t0, "d")}})
			}
			var sum tracking.Purged
			for range 100 {
				p := c.purge(tracking.Before{Fixes: at(time.Hour), Events: at(time.Hour), Limit: 4})
				if p.Total() > 4 {
					t.Fatalf("Purge removed %d rows, of at most 4", p.Total())
				}
				if p.Total() == 0 {
					break
				}
				sum.Fixes, sum.Events, sum.Notices = sum.Fixes+p.Fixes, sum.Events+p.Events, sum.Notices+p.Notices
			}
			// A store may keep the newest fixes of a driver, who is still there.
			if sum.Fixes < 12 || sum.Fixes > 14 {
				t.Errorf("purged %d fixes, want 14, or up to a driver's last less", sum.Fixes)
			}
			same(t, "purged in all", sum, tracking.Purged{Events: 7, Notices: 7}, cmpopts.IgnoreFields(tracking.Purged{}, "Fixes"))
			events, _ := c.events(tracking.EventFilter{})
			same(t, "events", events, nil)
			notices, _ := c.notices("d", 0)
			same(t, "notices", notices, nil)
		}},
		{"Purge/counts the requests and invites that it removes, and keeps those that live", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			const year = 365 * 24 * time.Hour
			old, live := newInvite("old", 1, 2), newInvite("d", 3, 4)
			old.CreatedAt, old.LinkExpiresAt, old.CodeExpiresAt = at(-3*year), at(-3*year+time.Hour), at(-3*year+time.Hour)
			c.commit(tracking.Changeset{
				Drivers: []tracking.Driver{newDriver("old", t0), newDriver("d", t0)},
				Invites: []tracking.Invite{old, live},
				Push:    []tracking.Request{newRequest("old", "x", at(-3*year)), newRequest("d", "x", t0)},
			})
			before := snap(t, s, here)
			p := c.purge(tracking.Before{Events: at(-year), Limit: 100})
			after := snap(t, s, here)
			same(t, "purged", p, tracking.Purged{Requests: len(before.Requests) - len(after.Requests), Invites: len(before.Invites) - len(after.Invites)})
			same(t, "invite that lives", c.invite("d"), before.Invites[0])
			same(t, "requests that live", c.requests("d"), []tracking.Request{newRequest("d", "x", t0)})
			same(t, "invites and requests removed", p, tracking.Purged{Requests: 1, Invites: 1})
		}},
		{"Purge/never changes which of the remaining fixes are good", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0)}})
			c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{walk(1), walk(2), far(3, 20), walk(4), walk(5), far(6, 20), far(7, 20.0001), walk(8)}})
			before := c.driver("d").Position
			for cut := 2; cut <= 7; cut++ {
				// A store may keep more than it must: an older fix that a later one was judged by.
				from := at(time.Duration(cut) * time.Second)
				want := c.fixes("d", tracking.FixRange{From: from})
				c.purge(tracking.Before{Fixes: from, Limit: 100})
				same(t, fmt.Sprintf("fixes purged before %d s", cut), c.fixes("d", tracking.FixRange{From: from}), want)
				same(t, "position", c.driver("d").Position, before)
			}
			// walk(8) is a candidate still, and what comes next confirms it.
			r := c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{walk(9)}})
			same(t, "outcomes", r.Outcomes, []tracking.FixOutcome{tracking.FixLive})
			same(t, "fixes", c.fixes("d", tracking.FixRange{From: at(7 * time.Second)}), []tracking.Fix{far(7, 20.0001), walk(8), walk(9)})
		}},
	}
}
