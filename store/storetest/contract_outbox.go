package storetest

import (
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// outboxChecks are about several outboxes that have the same events.
func outboxChecks() []check {
	return []check{
		{"LeaseEvents/each outbox hands out the events that went to it", outboxHandsOutItsOwn},
		{"LeaseEvents/names of outboxes are compared byte for byte", outboxNamesCompareByBytes},
		{"LeaseEvents/a lease, its end, and a retry in one outbox are nothing to another", outboxesLeaseApart},
		{"FinishEvents/one call may name several outboxes", oneFinishNamesSeveralOutboxes},
		{"FinishEvents/an event is dead in one outbox, delivered from another, and tried anew where it was dead",
			deadInOneOutboxOnly},
		{"FinishEvents/an event that is dead in two outboxes is dead in each by itself", deadInTwoOutboxesApart},
		{"FinishEvents/nothing becomes of an event in an outbox that it never went to", eventElsewhereIsIgnored},
		{"Purge/what is undelivered in any outbox stays", undeliveredAnywhereStays},
	}
}

func outboxHandsOutItsOwn(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	outboxes(c, bothOutboxes(), "a1")
	outboxes(c, []string{push}, "a2")
	outbox(c, "a3")
	outboxes(c, bothOutboxes(), "a4")
	expectLeaseFrom(c, hook, "w", t0, "a1", "a4")
	expectLeaseFrom(c, push, "w", t0, "a1", "a2", "a4")
	expectLeaseFrom(c, "", "w", t0, "a3")
	expectLeaseFrom(c, "none", "w", t0)
}

func outboxNamesCompareByBytes(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	names := []string{"", "a", "A", "a ", "ä", "a\u0308"}
	for i, name := range names {
		outboxes(c, []string{name}, string(rune('a'+i)))
	}
	for i, name := range names {
		expectLeaseFrom(c, name, "w", t0, string(rune('a'+i)))
	}
}

func outboxesLeaseApart(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	outboxes(c, bothOutboxes(), "a1", "a2")
	expectLeaseFrom(c, hook, "w", t0, "a1", "a2")
	expectLeaseFrom(c, push, "other", t0, "a1", "a2")
	c.finish(from(push, done("other", "a1", tracking.DeliveryDone)),
		from(push, done("other", "a2", tracking.DeliveryDone)))
	expectLeaseFrom(c, hook, "third", t0) // with w still
	outboxes(c, bothOutboxes(), "a3")
	expectLeaseFrom(c, push, "w", t0, "a3") // by the one who has the other lease
	again := from(hook, done("w", "a1", tracking.DeliveryRetry))
	again.RetryIn = time.Hour
	c.finish(again)
	expectLeaseFrom(c, push, "third", t0) // with w still
	c.finish(from(push, done("w", "a3", tracking.DeliveryReleased)))
	got := c.leaseFrom(push, "third", t0, 10)
	same(t, "leased from push", each(got, leasedID), []string{"a3"})
	same(t, "attempt at push", got[0].Attempt, 1)
	expectLeaseFrom(c, hook, "third", at(59*time.Minute))
	got = c.leaseFrom(hook, "third", at(time.Hour), 10)
	same(t, "leased from hook", each(got, leasedID), []string{"a1", "a2", "a3"})
	same(t, "attempts at hook", each(got, func(l tracking.Leased) int { return l.Attempt }), []int{2, 1, 1})
}

func oneFinishNamesSeveralOutboxes(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	outboxes(c, bothOutboxes(), "a1", "b1")
	c.leaseFrom(hook, "w", t0, 10)
	c.leaseFrom(push, "w", t0, 10)
	c.finish(from(hook, done("w", "a1", tracking.DeliveryDone)), from(push, done("w", "b1", tracking.DeliveryDone)),
		from(hook, done("w", "b1", tracking.DeliveryReleased)), from(push, done("w", "a1", tracking.DeliveryDead)))
	expectLeaseFrom(c, hook, "other", t0, "b1")
	expectLeaseFrom(c, push, "other", t0)
	expectDead(c, push, "a1")
	expectDead(c, hook)
}

func deadInOneOutboxOnly(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	outboxes(c, bothOutboxes(), "a1", "a2")
	c.leaseFrom(hook, "w", t0, 10)
	c.leaseFrom(push, "w", t0, 10)
	c.finish(from(hook, done("w", "a1", tracking.DeliveryDead)), from(push, done("w", "a1", tracking.DeliveryDone)))
	expectDead(c, hook, "a1")
	expectDead(c, push)
	expectDead(c, "")
	expectLeaseFrom(c, hook, "other", t0, "a2") // a1 holds it up no longer
	expectLeaseFrom(c, push, "other", t0, "a2")
	c.finish(from(push, done("nobody", "a1", tracking.DeliveryReleased)),
		from("", done("nobody", "a1", tracking.DeliveryReleased)))
	expectDead(c, hook, "a1")
	c.finish(from(hook, done("nobody", "a1", tracking.DeliveryReleased)))
	expectDead(c, hook)
	expectLeaseFrom(c, hook, "third", at(2*time.Minute), "a1", "a2")
	expectLeaseFrom(c, push, "third", at(2*time.Minute), "a2")
}

func deadInTwoOutboxesApart(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	outboxes(c, bothOutboxes(), "a1")
	c.leaseFrom(hook, "w", t0, 10)
	c.leaseFrom(push, "w", t0, 10)
	c.finish(from(hook, done("w", "a1", tracking.DeliveryDead)), from(push, done("w", "a1", tracking.DeliveryDead)))
	expectDead(c, hook, "a1")
	expectDead(c, push, "a1")
	c.finish(from(push, done("nobody", "a1", tracking.DeliveryReleased)))
	expectDead(c, hook, "a1")
	expectDead(c, push)
	expectLeaseFrom(c, push, "w", t0, "a1")
	expectLeaseFrom(c, hook, "w", t0)
	c.finish(from(hook, done("nobody", "a1", tracking.DeliveryDone))) // the receiver has it after all
	expectDead(c, hook)
	expectLeaseFrom(c, hook, "w", t0)
}

func eventElsewhereIsIgnored(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	outboxes(c, []string{push}, "a1")
	c.commit(tracking.Changeset{Events: []tracking.Event{newEvent("a2", tracking.KindTask, "a", t0)}})
	for _, state := range []tracking.DeliveryState{
		tracking.DeliveryDead, tracking.DeliveryReleased, tracking.DeliveryRetry, tracking.DeliveryDone,
	} {
		c.finish(from(hook, done("w", "a1", state)), from(push, done("w", "a2", state)))
	}
	expectDead(c, hook)
	expectDead(c, push)
	expectLeaseFrom(c, hook, "w", at(time.Hour))
	expectLeaseFrom(c, push, "w", t0, "a1")
}

func undeliveredAnywhereStays(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	outboxes(c, bothOutboxes(), "a1", "b1", "c1")
	purge := tracking.Before{Events: at(time.Hour), Limit: 100}
	c.leaseFrom(hook, "w", t0, 10)
	c.finish(from(hook, done("w", "a1", tracking.DeliveryDone)), from(hook, done("w", "b1", tracking.DeliveryDead)),
		from(hook, done("w", "c1", tracking.DeliveryDead)))
	same(t, "purged while none is delivered from push", c.purge(purge), tracking.Purged{})
	c.leaseFrom(push, "w", t0, 10)
	c.finish(from(push, done("w", "a1", tracking.DeliveryDead)), from(push, done("w", "b1", tracking.DeliveryDone)),
		from(push, done("w", "c1", tracking.DeliveryDone)),
		from(hook, done("w", "c1", tracking.DeliveryReleased)))
	same(t, "purged while one is to be tried anew from hook", c.purge(purge), tracking.Purged{Events: 2})
	events, _ := c.events(tracking.EventFilter{})
	same(t, "events", each(events, eventID), []string{"c1"})
	for _, name := range bothOutboxes() {
		expectDead(c, name)
		events, _ = c.events(tracking.EventFilter{Dead: true, Outbox: name})
		same(t, "dead events after the purge", events, nil)
	}
	c.finish(from(hook, done("nobody", "b1", tracking.DeliveryReleased))) // gone
	expectLeaseFrom(c, hook, "w", at(time.Hour), "c1")
	c.finish(from(hook, done("w", "c1", tracking.DeliveryDone)))
	same(t, "purged in the end", c.purge(purge), tracking.Purged{Events: 1})
}

const hook, push = "hook", "push"

// expectLeaseFrom leases from an outbox, and expects these events.
func expectLeaseFrom(c *client, outbox, owner string, now time.Time, want ...string) {
	c.Helper()
	got := c.leaseFrom(outbox, owner, now, 10)
	same(c, "leased from "+outbox+" by "+owner, each(got, leasedID), want)
	for _, l := range got {
		same(c, "outbox of "+l.Event.ID, l.Outbox, outbox)
	}
}

// expectDead expects these dead events in an outbox.
func expectDead(c *client, outbox string, want ...string) {
	c.Helper()
	for what, f := range map[string]tracking.EventFilter{
		"dead events": {Dead: true, Outbox: outbox},
		"dead events of a subject": {
			Dead: true, Outbox: outbox, Subject: tracking.Subject{Kind: tracking.KindTask, ID: "a"},
		},
	} {
		events, _ := c.events(f)
		same(c, what+" in "+outbox, each(events, eventID), want)
	}
}

// leaseFrom asks an outbox for what can be delivered, for a minute.
func (c *client) leaseFrom(outbox, owner string, now time.Time, limit int) []tracking.Leased {
	c.Helper()
	v, err := c.s.LeaseEvents(c.ctx, tracking.Lease{
		Outbox: outbox, Owner: owner, Now: now, For: time.Minute, Limit: limit,
	})
	c.ok(err)
	return v
}

// from says what became of a delivery from an outbox.
func from(outbox string, d tracking.Delivery) tracking.Delivery {
	d.Outbox = outbox
	return d
}

func bothOutboxes() []string { return []string{hook, push} }
