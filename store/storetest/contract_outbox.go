package storetest

import (
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// leaseFrom asks an outbox for what can be delivered, for a minute.
func (c *client) leaseFrom(outbox, owner string, now time.Time, limit int) []tracking.Leased {
	c.Helper()
	v, err := c.s.LeaseEvents(c.ctx, tracking.Lease{Outbox: outbox, Owner: owner, Now: now, Until: now.Add(time.Minute), Limit: limit})
	c.ok(err)
	return v
}

// from says what became of a delivery from an outbox.
func from(outbox string, d tracking.Delivery) tracking.Delivery {
	d.Outbox = outbox
	return d
}

// outboxChecks are about several outboxes that have the same events.
func outboxChecks() []check {
	const hook, push = "hook", "push"
	both := []string{hook, push}
	leased := func(c *client, outbox, owner string, now time.Time, want ...string) {
		c.Helper()
		got := c.leaseFrom(outbox, owner, now, 10)
		same(c, "leased from "+outbox+" by "+owner, each(got, leasedID), want)
		for _, l := range got {
			same(c, "outbox of "+l.Event.ID, l.Outbox, outbox)
		}
	}
	dead := func(c *client, outbox string, want ...string) {
		c.Helper()
		for what, f := range map[string]tracking.EventFilter{
			"dead events":              {Dead: true, Outbox: outbox},
			"dead events of a subject": {Dead: true, Outbox: outbox, Subject: tracking.Subject{Kind: tracking.KindTask, ID: "a"}},
		} {
			events, _ := c.events(f)
			same(c, what+" in "+outbox, each(events, eventID), want)
		}
	}
	return []check{
		{"LeaseEvents/each outbox hands out the events that went to it", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			outboxes(c, both, "a1")
			outboxes(c, []string{push}, "a2")
			outbox(c, "a3")
			outboxes(c, both, "a4")
			leased(c, hook, "w", t0, "a1", "a4")
			leased(c, push, "w", t0, "a1", "a2", "a4")
			leased(c, "", "w", t0, "a3")
			leased(c, "none", "w", t0)
		}},
		{"LeaseEvents/names of outboxes are compared byte for byte", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			names := []string{"", "a", "A", "a ", "ä", "a\u0308"}
			for i, name := range names {
				outboxes(c, []string{name}, string(rune('a'+i)))
			}
			for i, name := range names {
				leased(c, name, "w", t0, string(rune('a'+i)))
			}
		}},
		{"LeaseEvents/a lease, its end, and a retry in one outbox are nothing to another", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			outboxes(c, both, "a1", "a2")
			leased(c, hook, "w", t0, "a1", "a2")
			leased(c, push, "other", t0, "a1", "a2")
			c.finish(from(push, done("other", "a1", tracking.Delivered)), from(push, done("other", "a2", tracking.Delivered)))
			leased(c, hook, "third", t0) // with w still
			outboxes(c, both, "a3")
			leased(c, push, "w", t0, "a3") // by the one who has the other lease
			again := from(hook, done("w", "a1", tracking.Retry))
			again.RetryAt = at(time.Hour)
			c.finish(again)
			leased(c, push, "third", t0) // with w still
			c.finish(from(push, done("w", "a3", tracking.Released)))
			got := c.leaseFrom(push, "third", t0, 10)
			same(t, "leased from push", each(got, leasedID), []string{"a3"})
			same(t, "attempt at push", got[0].Attempt, 1)
			leased(c, hook, "third", at(59*time.Minute))
			got = c.leaseFrom(hook, "third", at(time.Hour), 10)
			same(t, "leased from hook", each(got, leasedID), []string{"a1", "a2", "a3"})
			same(t, "attempts at hook", each(got, func(l tracking.Leased) int { return l.Attempt }), []int{2, 1, 1})
		}},
		{"FinishEvents/one call may name several outboxes", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			outboxes(c, both, "a1", "b1")
			c.leaseFrom(hook, "w", t0, 10)
			c.leaseFrom(push, "w", t0, 10)
			c.finish(from(hook, done("w", "a1", tracking.Delivered)), from(push, done("w", "b1", tracking.Delivered)),
				from(hook, done("w", "b1", tracking.Released)), from(push, done("w", "a1", tracking.Dead)))
			leased(c, hook, "other", t0, "b1")
			leased(c, push, "other", t0)
			dead(c, push, "a1")
			dead(c, hook)
		}},
		{"FinishEvents/an event is dead in one outbox, delivered from another, and tried anew where it was dead", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			outboxes(c, both, "a1", "a2")
			c.leaseFrom(hook, "w", t0, 10)
			c.leaseFrom(push, "w", t0, 10)
			c.finish(from(hook, done("w", "a1", tracking.Dead)), from(push, done("w", "a1", tracking.Delivered)))
			dead(c, hook, "a1")
			dead(c, push)
			dead(c, "")
			leased(c, hook, "other", t0, "a2") // a1 holds it up no longer
			leased(c, push, "other", t0, "a2")
			c.finish(from(push, done("nobody", "a1", tracking.Released)), from("", done("nobody", "a1", tracking.Released)))
			dead(c, hook, "a1")
			c.finish(from(hook, done("nobody", "a1", tracking.Released)))
			dead(c, hook)
			leased(c, hook, "third", at(2*time.Minute), "a1", "a2")
			leased(c, push, "third", at(2*time.Minute), "a2")
		}},
		{"FinishEvents/an event that is dead in two outboxes is dead in each by itself", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			outboxes(c, both, "a1")
			c.leaseFrom(hook, "w", t0, 10)
			c.leaseFrom(push, "w", t0, 10)
			c.finish(from(hook, done("w", "a1", tracking.Dead)), from(push, done("w", "a1", tracking.Dead)))
			dead(c, hook, "a1")
			dead(c, push, "a1")
			c.finish(from(push, done("nobody", "a1", tracking.Released)))
			dead(c, hook, "a1")
			dead(c, push)
			leased(c, push, "w", t0, "a1")
			leased(c, hook, "w", t0)
			c.finish(from(hook, done("nobody", "a1", tracking.Delivered))) // the receiver has it after all
			dead(c, hook)
			leased(c, hook, "w", t0)
		}},
		{"FinishEvents/nothing becomes of an event in an outbox that it never went to", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			outboxes(c, []string{push}, "a1")
			c.commit(tracking.Changeset{Events: []tracking.Event{newEvent("a2", tracking.KindTask, "a", t0)}})
			for _, state := range []tracking.DeliveryState{tracking.Dead, tracking.Released, tracking.Retry, tracking.Delivered} {
				c.finish(from(hook, done("w", "a1", state)), from(push, done("w", "a2", state)))
			}
			dead(c, hook)
			dead(c, push)
			leased(c, hook, "w", at(time.Hour))
			leased(c, push, "w", t0, "a1")
		}},
		{"Purge/what is undelivered in any outbox stays", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			outboxes(c, both, "a1", "b1", "c1")
			purge := tracking.Before{Events: at(time.Hour), Limit: 100}
			c.leaseFrom(hook, "w", t0, 10)
			c.finish(from(hook, done("w", "a1", tracking.Delivered)), from(hook, done("w", "b1", tracking.Dead)), from(hook, done("w", "c1", tracking.Dead)))
			same(t, "purged while none is delivered from push", c.purge(purge), tracking.Purged{})
			c.leaseFrom(push, "w", t0, 10)
			c.finish(from(push, done("w", "a1", tracking.Dead)), from(push, done("w", "b1", tracking.Delivered)), from(push, done("w", "c1", tracking.Delivered)),
				from(hook, done("w", "c1", tracking.Released)))
			same(t, "purged while one is to be tried anew from hook", c.purge(purge), tracking.Purged{Events: 2})
			events, _ := c.events(tracking.EventFilter{})
			same(t, "events", each(events, eventID), []string{"c1"})
			for _, name := range both {
				dead(c, name)
				events, _ = c.events(tracking.EventFilter{Dead: true, Outbox: name})
				same(t, "dead events after the purge", events, nil)
			}
			c.finish(from(hook, done("nobody", "b1", tracking.Released))) // gone
			leased(c, hook, "w", at(time.Hour), "c1")
			c.finish(from(hook, done("w", "c1", tracking.Delivered)))
			same(t, "purged in the end", c.purge(purge), tracking.Purged{Events: 1})
		}},
	}
}
