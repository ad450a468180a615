package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// deliveryChecks are about one outbox: who gets which events, and what becomes of them.
func deliveryChecks() []check {
	return []check{
		{"LeaseEvents/hands out undelivered events of any application, oldest subject first",
			leaseTakesOldestSubjectFirst},
		{"LeaseEvents/of each application as many subjects as there is room for", leaseSharesRoomAmongApps},
		{"LeaseEvents/a lease or a retry further ahead than it can be counts no more", farLeasesAndRetriesCountNoMore},
		{"LeaseEvents/a lease may have more to go than a retry can", leasesOutlastRetries},
		{"LeaseEvents/leases the whole queue of a subject, in order of Seq", leaseTakesWholeQueue},
		{"LeaseEvents/what a limit cuts off stays leased", eventsBeyondLimitStayLeased},
		{"LeaseEvents/a lease ends after For", leaseEndsInTime},
		{"FinishEvents/delivered events do not come again, and end the lease", deliveredEventsDoNotComeAgain},
		{"FinishEvents/a retry holds its subject for RetryIn, and counts as an attempt", retryHoldsItsSubject},
		{"FinishEvents/a released event comes again at once, and no attempt is counted",
			releasedEventComesAgainUncounted},
		{"FinishEvents/a dead event frees the next of its subject, is listed, and can be tried anew",
			deadEventFreesTheNext},
		{"FinishEvents/whose lease has gone to another is ignored, but for what was delivered", formerOwnerIsIgnored},
		{"FinishEvents/an owner whose lease is over, and nobody else's, is heard", ownerPastItsLeaseIsHeard},
		{"FinishEvents/an unknown event is ignored", unknownDeliveryIsIgnored},
	}
}

func leaseTakesOldestSubjectFirst(t testing.TB, s tracking.Store) {
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
	expectLease(c, "w", t0, 10)
}

func leaseSharesRoomAmongApps(t testing.TB, s tracking.Store) {
	c, o := use(t, s, here), use(t, s, there)
	outbox(c, "a1", "b1", "a2", "d1", "e1")
	outbox(o, "f1", "g1")
	lease := func(most int, busy map[tracking.AppID]int, want ...string) {
		t.Helper()
		got, err := s.LeaseEvents(c.ctx, tracking.Lease{
			Owner: "w", Now: t0, For: time.Minute, Each: most, Busy: busy, Limit: 10,
		})
		c.ok(err)
		same(t, fmt.Sprintf("leased with %v of %d under way", busy, most), each(got, leasedID), want)
	}
	lease(2, map[tracking.AppID]int{here: 2, there: 3})
	lease(2, map[tracking.AppID]int{here: 1, there: 2}, "a1", "a2")
	lease(1, map[tracking.AppID]int{here: 1}, "f1")
	lease(2, nil, "b1", "d1", "g1")
	expectLease(c, "other", t0, 10, "e1") // it has left no lease behind
}

// farLeasesAndRetriesCountNoMore leases and retries by a clock that is years ahead, and then by one
// that is right.
func farLeasesAndRetriesCountNoMore(t testing.TB, s tracking.Store) {
	const years = 10 * 365 * 24 * time.Hour
	c := use(t, s, here)
	outbox(c, "a1", "a2", "b1", "d1", "e1", "f1")
	lease := func(owner string, ahead time.Duration, limit int, want ...string) []tracking.Leased {
		t.Helper()
		now := at(ahead)
		got, err := s.LeaseEvents(c.ctx, tracking.Lease{
			Owner: owner, Now: now, For: time.Minute, MaxLease: time.Minute,
			MaxRetry: time.Hour, Limit: limit,
		})
		c.ok(err)
		same(t, fmt.Sprintf("leased by %s, %v ahead", owner, ahead), each(got, leasedID), want)
		return got
	}
	lease("wrong", years, 4, "a1", "a2", "b1", "d1")
	late, fair := done("wrong", "b1", tracking.DeliveryRetry), done("right", "e1", tracking.DeliveryRetry)
	late.RetryIn, fair.RetryIn = years+time.Minute, 30*time.Minute
	c.finish(late)                         // a is with wrong still, d too
	lease("right", 0, 3, "a1", "a2", "b1") // d waits for room
	lease("right", time.Second, 2, "d1", "e1")
	c.finish(fair)
	// the others are leased, or to be tried again later, as they can be
	lease("other", 2*time.Second, 10, "f1")
	c.finish(done("wrong", "d1", tracking.DeliveryDead)) // its lease has gone to another
	dead, _ := c.events(tracking.EventFilter{Dead: true})
	same(t, "dead events", dead, nil)
	got := lease("other", 30*time.Minute, 10, "a1", "a2", "b1", "d1", "e1", "f1")
	same(t, "attempts", each(got, func(l tracking.Leased) int { return l.Attempt }), []int{1, 1, 2, 1, 2, 1})
}

// leasesOutlastRetries asks while a lease has more to go than the longest retry can.
func leasesOutlastRetries(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	outbox(c, "a1")
	lease := func(owner string, after time.Duration, want ...string) {
		t.Helper()
		got, err := s.LeaseEvents(c.ctx, tracking.Lease{
			Owner: owner, Now: at(after), For: time.Hour, MaxLease: time.Hour, MaxRetry: time.Minute, Limit: 10,
		})
		c.ok(err)
		same(t, fmt.Sprintf("leased by %s after %v", owner, after), each(got, leasedID), want)
	}
	lease("one", 0, "a1")
	lease("other", time.Second)
	lease("other", time.Hour, "a1")
	late := done("other", "a1", tracking.DeliveryRetry)
	late.RetryIn = 10 * time.Hour
	c.finish(late)
	lease("third", time.Hour, "a1") // by a wrong clock
}

func leaseTakesWholeQueue(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	outbox(c, "a1", "b1", "a2", "a3", "b2")
	got := c.lease("w", t0, 10)
	seqs := map[string][]string{}
	for _, l := range got {
		seqs[l.Event.Subject.ID] = append(seqs[l.Event.Subject.ID], l.Event.ID)
	}
	same(t, "leased, by subject", seqs, map[string][]string{"a": {"a1", "a2", "a3"}, "b": {"b1", "b2"}})
	outbox(c, "a4")
	expectLease(c, "other", t0, 10) // neither what was there nor what has come since
	expectLease(c, "other", at(59*time.Second), 10)
}

func eventsBeyondLimitStayLeased(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	outbox(c, "a1", "a2", "a3", "b1")
	expectLease(c, "w", t0, 2, "a1", "a2")
	expectLease(c, "other", t0, 10, "b1")
	c.finish(done("w", "a1", tracking.DeliveryDone), done("w", "a2", tracking.DeliveryDone))
	expectLease(c, "third", t0, 10, "a3")
}

func leaseEndsInTime(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	outbox(c, "a1", "a2")
	expectLease(c, "w", t0, 10, "a1", "a2")
	expectLease(c, "other", at(59*time.Second+999*time.Millisecond), 10)
	expectLease(c, "other", at(time.Minute+time.Millisecond), 10, "a1", "a2")
	got := use(t, s, here).lease("third", at(3*time.Minute), 10)
	for _, l := range got {
		same(t, "attempt, as nobody has said that one failed", l.Attempt, 1)
	}
}

func deliveredEventsDoNotComeAgain(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	outbox(c, "a1", "a2", "b1")
	c.lease("w", t0, 10)
	c.finish(done("w", "a1", tracking.DeliveryDone))
	expectLease(c, "other", t0, 10, "a2")
	c.finish(done("other", "a2", tracking.DeliveryDone), done("w", "b1", tracking.DeliveryDone))
	expectLease(c, "third", at(time.Hour), 10)
	events, _ := c.events(tracking.EventFilter{})
	same(t, "events stay readable", each(events, eventID), []string{"a1", "a2", "b1"})
	outbox(c, "a3")
	expectLease(c, "third", t0, 10, "a3")
}

func retryHoldsItsSubject(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	outbox(c, "a1", "a2", "b1")
	c.lease("w", t0, 10)
	again := done("w", "a1", tracking.DeliveryRetry)
	again.RetryIn = 10 * time.Second
	c.finish(again, done("w", "b1", tracking.DeliveryReleased))
	expectLease(c, "other", at(10*time.Second-time.Millisecond), 10, "b1")
	got := c.lease("third", at(10*time.Second), 10)
	same(t, "leased", each(got, leasedID), []string{"a1", "a2"})
	same(t, "attempts", each(got, func(l tracking.Leased) int { return l.Attempt }), []int{2, 1})
	again = done("third", "a1", tracking.DeliveryRetry)
	again.Now, again.RetryIn = at(10*time.Second), 10*time.Second
	c.finish(again)
	got = c.lease("fourth", at(time.Hour), 1)
	same(t, "leased", each(got, leasedID), []string{"a1"})
	same(t, "attempt", got[0].Attempt, 3)
}

func releasedEventComesAgainUncounted(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	outbox(c, "a1")
	c.lease("w", t0, 10)
	back := done("w", "a1", tracking.DeliveryReleased)
	back.RetryIn = time.Hour
	c.finish(back)
	got := c.lease("other", t0, 10)
	same(t, "leased", each(got, leasedID), []string{"a1"})
	same(t, "attempt", got[0].Attempt, 1)
}

func deadEventFreesTheNext(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	outbox(c, "a1", "a2", "b1")
	c.lease("w", t0, 10)
	again := done("w", "a1", tracking.DeliveryRetry)
	c.finish(again, done("w", "b1", tracking.DeliveryDone))
	c.lease("w", t0, 10)
	c.finish(done("w", "a1", tracking.DeliveryDead))
	dead, more := c.events(tracking.EventFilter{Dead: true})
	same(t, "dead events", each(dead, eventID), []string{"a1"})
	same(t, "more", more, false)
	dead, _ = c.events(tracking.EventFilter{Dead: true, Subject: tracking.Subject{Kind: tracking.KindTask, ID: "b"}})
	same(t, "dead events of another subject", dead, nil)
	expectLease(c, "other", t0, 10, "a2")
	c.finish(done("nobody", "a1", tracking.DeliveryReleased)) // while other has a lease
	c.finish(done("other", "a2", tracking.DeliveryDone))
	dead, _ = c.events(tracking.EventFilter{Dead: true})
	same(t, "dead events after the replay", dead, nil)
	got := c.lease("third", at(time.Hour), 10)
	same(t, "leased", each(got, leasedID), []string{"a1"})
	same(t, "attempt", got[0].Attempt, 1)
}

func formerOwnerIsIgnored(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	outbox(c, "a1", "b1", "c1", "d1")
	c.lease("w", t0, 10)
	expectLease(c, "other", at(2*time.Minute), 10, "a1", "b1", "c1", "d1")
	again := done("w", "b1", tracking.DeliveryRetry)
	again.RetryIn = time.Hour
	c.finish(done("w", "a1", tracking.DeliveryDone), again, done("w", "c1", tracking.DeliveryDead),
		done("w", "d1", tracking.DeliveryReleased))
	expectLease(c, "third", at(2*time.Minute), 10) // all still leased by other
	dead, _ := c.events(tracking.EventFilter{Dead: true})
	same(t, "dead events", dead, nil)
	got := c.lease("third", at(4*time.Minute), 10)
	same(t, "leased when that lease is over", each(got, leasedID), []string{"b1", "c1", "d1"})
	same(t, "attempts", each(got, func(l tracking.Leased) int { return l.Attempt }), []int{1, 1, 1})
}

func ownerPastItsLeaseIsHeard(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	outbox(c, "a1")
	c.lease("w", t0, 10)
	again := done("w", "a1", tracking.DeliveryRetry)
	again.RetryIn = time.Hour
	c.finish(again)
	expectLease(c, "other", at(30*time.Minute), 10)
	got := c.lease("other", at(time.Hour), 10)
	same(t, "leased", each(got, leasedID), []string{"a1"})
	same(t, "attempt", got[0].Attempt, 2)
}

func unknownDeliveryIsIgnored(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	outbox(c, "a1")
	c.lease("w", t0, 10)
	foreign := done("w", "a1", tracking.DeliveryDone)
	foreign.App = there
	c.finish(done("w", "none", tracking.DeliveryDone), foreign)
	expectLease(c, "other", at(time.Hour), 10, "a1")
}

// expectLease leases, and expects these events.
func expectLease(c *client, owner string, now time.Time, limit int, want ...string) {
	c.Helper()
	same(c, fmt.Sprintf("leased by %s", owner), each(c.lease(owner, now, limit), leasedID), want)
}

// outbox commits events to deliver from the outbox named "": "a1" is the first of task a.
func outbox(c *client, ids ...string) {
	c.Helper()
	outboxes(c, []string{""}, ids...)
}

// outboxes commits events to deliver from several outboxes.
func outboxes(c *client, names []string, ids ...string) {
	c.Helper()
	for _, id := range ids {
		c.commit(tracking.Changeset{
			Events: []tracking.Event{newEvent(id, tracking.KindTask, id[:1], t0)}, Deliver: names,
		})
	}
}

// done says what became of an event that owner had.
func done(owner, id string, state tracking.DeliveryState) tracking.Delivery {
	return tracking.Delivery{App: here, EventID: id, Owner: owner, State: state, Now: t0}
}
