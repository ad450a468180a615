package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// outbox commits events to deliver from the outbox named "": "a1" is the first of task a.
func outbox(c *client, ids ...string) {
	c.Helper()
	outboxes(c, []string{""}, ids...)
}

// outboxes commits events to deliver from several outboxes.
func outboxes(c *client, names []string, ids ...string) {
	c.Helper()
	for _, id := range ids {
		c.commit(tracking.Changeset{Events: []tracking.Event{newEvent(id, tracking.KindTask, id[:1], t0)}, Deliver: names})
	}
}

// done says what became of an event that owner had.
func done(owner, id string, state tracking.DeliveryState) tracking.Delivery {
	return tracking.Delivery{App: here, EventID: id, Owner: owner, State: state}
}

func deliveryChecks() []check {
	leased := func(c *client, owner string, now time.Time, limit int, want ...string) {
		c.Helper()
		same(c, fmt.Sprintf("leased by %s", owner), each(c.lease(owner, now, limit), leasedID), want)
	}
	return []check{
		{"LeaseEvents/hands out undelivered events of any application, oldest subject first", func(t testing.TB, s tracking.Store) {
			c, o := use(t, s, here), use(t, s, there)
			outbox(c, "b1")
			outbox(o, "a1")
			outbox(c, "a1x")
			c.commit(tracking.Changeset{Events: []tracking.Event{newEvent("not to deliver", tracking.KindTask, "z", t0)}})
			for _, want := range []struct {
				app tracking.AppID
				id  string
			}{{here, "b1"}, {there, "a1"}, {here, "a1x"}} {
				got := c.lease("w"+want.id, t0, 1)
				if len(got) != 1 || got[0].App != want.app || got[0].Event.ID != want.id {
					t.Fatalf("LeaseEvents: got %+v, want event %s of %s", got, want.id, want.app)
				}
				events, _ := use(t, s, want.app).events(tracking.EventFilter{Subject: got[0].Event.Subject})
				same(t, "leased", got, []tracking.Leased{{App: want.app, Event: events[0], Attempt: 1}})
			}
			leased(c, "w", t0, 10)
		}},
		{"LeaseEvents/passes over the applications in Except", func(t testing.TB, s tracking.Store) {
			c, o := use(t, s, here), use(t, s, there)
			outbox(c, "a1", "b1")
			outbox(o, "c1")
			got, err := s.LeaseEvents(c.ctx, tracking.Lease{Owner: "w", Now: t0, Until: at(time.Minute), Except: []tracking.AppID{here}, Limit: 10})
			if err != nil {
				t.Fatal(err)
			}
			same(t, "leased", each(got, leasedID), []string{"c1"})
			leased(c, "other", t0, 10, "a1", "b1") // it has left no lease behind
		}},
		{"LeaseEvents/leases the whole queue of a subject, in order of Seq", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			outbox(c, "a1", "b1", "a2", "a3", "b2")
			got := c.lease("w", t0, 10)
			seqs := map[string][]string{}
			for _, l := range got {
				seqs[l.Event.Subject.ID] = append(seqs[l.Event.Subject.ID], l.Event.ID)
			}
			same(t, "leased, by subject", seqs, map[string][]string{"a": {"a1", "a2", "a3"}, "b": {"b1", "b2"}})
			outbox(c, "a4")
			leased(c, "other", t0, 10) // neither what was there nor what has come since
			leased(c, "other", at(59*time.Second), 10)
		}},
		{"LeaseEvents/what a limit cuts off stays leased", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			outbox(c, "a1", "a2", "a3", "b1")
			leased(c, "w", t0, 2, "a1", "a2")
			leased(c, "other", t0, 10, "b1")
			c.finish(done("w", "a1", tracking.Delivered), done("w", "a2", tracking.Delivered))
			leased(c, "third", t0, 10, "a3")
		}},
		{"LeaseEvents/a lease ends at Until", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			outbox(c, "a1", "a2")
			leased(c, "w", t0, 10, "a1", "a2")
			leased(c, "other", at(59*time.Second+999*time.Millisecond), 10)
			leased(c, "other", at(time.Minute+time.Millisecond), 10, "a1", "a2")
			got := use(t, s, here).lease("third", at(3*time.Minute), 10)
			for _, l := range got {
				same(t, "attempt, as nobody has said that one failed", l.Attempt, 1)
			}
		}},
		{"FinishEvents/delivered events do not come again, and end the lease", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			outbox(c, "a1", "a2", "b1")
			c.lease("w", t0, 10)
			c.finish(done("w", "a1", tracking.Delivered))
			leased(c, "other", t0, 10, "a2")
			c.finish(done("other", "a2", tracking.Delivered), done("w", "b1", tracking.Delivered))
			leased(c, "third", at(time.Hour), 10)
			events, _ := c.events(tracking.EventFilter{})
			same(t, "events stay readable", each(events, eventID), []string{"a1", "a2", "b1"})
			outbox(c, "a3")
			leased(c, "third", t0, 10, "a3")
		}},
		{"FinishEvents/a retry holds its subject until RetryAt, and counts as an attempt", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			outbox(c, "a1", "a2", "b1")
			c.lease("w", t0, 10)
			again := done("w", "a1", tracking.Retry)
			again.RetryAt = at(10 * time.Second)
			c.finish(again, done("w", "b1", tracking.Released))
			leased(c, "other", at(10*time.Second-time.Millisecond), 10, "b1")
			got := c.lease("third", at(10*time.Second), 10)
			same(t, "leased", each(got, leasedID), []string{"a1", "a2"})
			same(t, "attempts", each(got, func(l tracking.Leased) int { return l.Attempt }), []int{2, 1})
			again = done("third", "a1", tracking.Retry)
			again.RetryAt = at(20 * time.Second)
			c.finish(again)
			got = c.lease("fourth", at(time.Hour), 1)
			same(t, "leased", each(got, leasedID), []string{"a1"})
			same(t, "attempt", got[0].Attempt, 3)
		}},
		{"FinishEvents/a released event comes again at once, and no attempt is counted", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			outbox(c, "a1")
			c.lease("w", t0, 10)
			back := done("w", "a1", tracking.Released)
			back.RetryAt = at(time.Hour)
			c.finish(back)
			got := c.lease("other", t0, 10)
			same(t, "leased", each(got, leasedID), []string{"a1"})
			same(t, "attempt", got[0].Attempt, 1)
		}},
		{"FinishEvents/a dead event frees the next of its subject, is listed, and can be tried anew", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			outbox(c, "a1", "a2", "b1")
			c.lease("w", t0, 10)
			again := done("w", "a1", tracking.Retry)
			again.RetryAt = t0
			c.finish(again, done("w", "b1", tracking.Delivered))
			c.lease("w", t0, 10)
			c.finish(done("w", "a1", tracking.Dead))
			dead, more := c.events(tracking.EventFilter{Dead: true})
			same(t, "dead events", each(dead, eventID), []string{"a1"})
			same(t, "more", more, false)
			dead, _ = c.events(tracking.EventFilter{Dead: true, Subject: tracking.Subject{Kind: tracking.KindTask, ID: "b"}})
			same(t, "dead events of another subject", dead, nil)
			leased(c, "other", t0, 10, "a2")
			c.finish(done("nobody", "a1", tracking.Released)) // while other has a lease
			c.finish(done("other", "a2", tracking.Delivered))
			dead, _ = c.events(tracking.EventFilter{Dead: true})
			same(t, "dead events after the replay", dead, nil)
			got := c.lease("third", at(time.Hour), 10)
			same(t, "leased", each(got, leasedID), []string{"a1"})
			same(t, "attempt", got[0].Attempt, 1)
		}},
		{"FinishEvents/whose lease has gone to another is ignored, but for what was delivered", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			outbox(c, "a1", "b1", "c1", "d1")
			c.lease("w", t0, 10)
			leased(c, "other", at(2*time.Minute), 10, "a1", "b1", "c1", "d1")
			again := done("w", "b1", tracking.Retry)
			again.RetryAt = at(time.Hour)
			c.finish(done("w", "a1", tracking.Delivered), again, done("w", "c1", tracking.Dead), done("w", "d1", tracking.Released))
			leased(c, "third", at(2*time.Minute), 10) // all still leased by other
			dead, _ := c.events(tracking.EventFilter{Dead: true})
			same(t, "dead events", dead, nil)
			got := c.lease("third", at(4*time.Minute), 10)
			same(t, "leased when that lease is over", each(got, leasedID), []string{"b1", "c1", "d1"})
			same(t, "attempts", each(got, func(l tracking.Leased) int { return l.Attempt }), []int{1, 1, 1})
		}},
		{"FinishEvents/an owner whose lease is over, and nobody else's, is heard", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			outbox(c, "a1")
			c.lease("w", t0, 10)
			again := done("w", "a1", tracking.Retry)
			again.RetryAt = at(time.Hour)
			c.finish(again)
			leased(c, "other", at(30*time.Minute), 10)
			got := c.lease("other", at(time.Hour), 10)
			same(t, "leased", each(got, leasedID), []string{"a1"})
			same(t, "attempt", got[0].Attempt, 2)
		}},
		{"FinishEvents/an unknown event is ignored", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			outbox(c, "a1")
			c.lease("w", t0, 10)
			foreign := done("w", "a1", tracking.Delivered)
			foreign.App = there
			c.finish(done("w", "none", tracking.Delivered), foreign)
			leased(c, "other", at(time.Hour), 10, "a1")
		}},
	}
}
