package storetest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// streamChecks race on what has an order: events, notices, and the outbox.
func streamChecks() []check {
	return []check{
		{"events are numbered without gaps, and those who follow miss none", followersMissNoEvent},
		{"each event is with one owner at a time, and in order of its subject", eachEventHasOneOwner},
		{"the word of a former owner does nothing to the next one's lease", formerOwnerRacesTheNext},
	}
}

// followersMissNoEvent has one follow the events and one a feed, while many write.
func followersMissNoEvent(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0)}})
	const shared = 2 * writers * writerRounds
	err := together(t, writers+2, func(ctx context.Context, i int) error {
		switch i {
		case writers: // follows the events
			var after string
			seq := map[tracking.Subject]int64{}
			for n := 0; n < 3*writers*writerRounds && ctx.Err() == nil; {
				list, _, err := s.Events(ctx, here, tracking.EventFilter{After: after, Limit: 7})
				if err != nil {
					return err
				}
				for _, e := range list {
					seq[e.Subject]++
					if e.Seq != seq[e.Subject] {
						return fmt.Errorf("after event %d of %v came %d", seq[e.Subject]-1, e.Subject, e.Seq)
					}
					after = e.ID
				}
				n += len(list)
				runtime.Gosched()
			}
			return nil
		case writers + 1: // follows the driver's notices
			var after int64
			seen := map[string]bool{}
			for len(seen) < shared && ctx.Err() == nil {
				list, lost, err := s.Notices(ctx, here, "d", after, 7)
				if err != nil || lost {
					return fmt.Errorf("notices after %d: lost %v, error %v", after, lost, err)
				}
				for _, n := range list {
					if n.ID <= after || seen[n.EventID] {
						return fmt.Errorf("after notice %d came %d, of an event seen before: %v", after, n.ID,
							seen[n.EventID])
					}
					after, seen[n.EventID] = n.ID, true
				}
				runtime.Gosched()
			}
			return nil
		}
		return writeEvents(ctx, s, i)
	})
	c.ok(err)
	events, _ := c.events(tracking.EventFilter{Subject: tracking.Subject{Kind: tracking.KindTask, ID: "shared"}})
	same(t, "events", len(events), shared)
	for i, e := range events {
		if e.Seq != int64(i)+1 {
			t.Fatalf("event %d has seq %d", i+1, e.Seq)
		}
		if i%2 == 1 && (events[i-1].ID[:len(e.ID)-1] != e.ID[:len(e.ID)-1] || e.ID[len(e.ID)-1] != 'b') {
			t.Fatalf("events %s and %s of two changesets are mixed up", events[i-1].ID, e.ID)
		}
	}
}

// eachEventHasOneOwner has several owners deliver, while many write; they note who has which event.
func eachEventHasOneOwner(t testing.TB, s tracking.Store) {
	const owners, total = 4, 3 * writers * writerRounds
	var mu sync.Mutex
	holder := map[tracking.Subject]string{}
	last := map[tracking.Subject]int64{}
	var delivered atomic.Int64
	err := together(t, owners+writers, func(ctx context.Context, i int) error {
		if i >= owners {
			return writeEvents(ctx, s, i-owners)
		}
		for n := 0; delivered.Load() < total && ctx.Err() == nil; n++ {
			owner := fmt.Sprintf("owner %d-%d", i, n)
			got, err := s.LeaseEvents(ctx, tracking.Lease{
				Owner: owner, Now: t0, For: time.Hour, Limit: 1 + (i+n)%5,
			})
			if err != nil {
				return err
			}
			var done []tracking.Delivery
			mu.Lock()
			for _, l := range got {
				subject := l.Event.Subject
				if h := holder[subject]; h != "" && h != owner {
					mu.Unlock()
					return fmt.Errorf("event %d of %v is leased by %s and by %s", l.Event.Seq, subject, owner, h)
				}
				holder[subject] = owner
			}
			mu.Unlock()
			for k, l := range got {
				d := tracking.Delivery{App: l.App, EventID: l.Event.ID, Owner: owner, State: tracking.DeliveryDone}
				if (k+n)%4 == 3 { // give back this one and those after it
					for _, rest := range got[k:] {
						done = append(done, tracking.Delivery{
							App: rest.App, EventID: rest.Event.ID, Owner: owner, State: tracking.DeliveryReleased,
						})
					}
					break
				}
				mu.Lock()
				before := last[l.Event.Subject]
				if l.Event.Seq != before+1 {
					mu.Unlock()
					return fmt.Errorf("event %d of %v was handed out after %d", l.Event.Seq, l.Event.Subject, before)
				}
				last[l.Event.Subject]++
				mu.Unlock()
				done = append(done, d)
				delivered.Add(1)
			}
			mu.Lock() // given up in our book before the store may give them to others
			for _, l := range got {
				delete(holder, l.Event.Subject)
			}
			mu.Unlock()
			if err := s.FinishEvents(ctx, done); err != nil {
				return err
			}
			runtime.Gosched()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	got := use(t, s, here).lease("last", at(2*time.Hour), 10)
	same(t, "undelivered in the end", each(got, leasedID), nil)
}

// formerOwnerRacesTheNext has an owner whose lease is over say what became of events, while another one
// leases them. Either is first, for each subject.
func formerOwnerRacesTheNext(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	const subjects = 8
	for n := range 2 * raceRounds {
		var all []tracking.Delivery
		cs := tracking.Changeset{Deliver: []string{""}}
		former, state := fmt.Sprint("former ", n), []tracking.DeliveryState{
			tracking.DeliveryRetry, tracking.DeliveryReleased, tracking.DeliveryDead,
		}[n%3]
		for i := range subjects {
			id := fmt.Sprint(n, "-", i)
			cs.Events = append(cs.Events, newEvent(id, tracking.KindTask, id, t0))
			all = append(all, tracking.Delivery{
				App: here, EventID: id, Owner: former, State: state, Now: t0, RetryIn: 10 * time.Hour,
			})
		}
		c.commit(cs)
		same(t, "leased at first", len(c.lease(former, t0, subjects)), subjects)
		var got []tracking.Leased
		c.ok(together(t, 2, func(ctx context.Context, i int) (err error) {
			if i == 0 {
				return s.FinishEvents(ctx, all)
			}
			got, err = s.LeaseEvents(ctx, tracking.Lease{
				Owner: "next", Now: at(2 * time.Minute), For: time.Hour, Limit: subjects,
			})
			return err
		}))
		next := map[string]bool{}
		var release []tracking.Delivery
		for _, l := range got {
			next[l.Event.ID] = true
			release = append(release, done("next", l.Event.ID, tracking.DeliveryReleased))
		}
		third := c.lease("third", at(2*time.Minute), subjects)
		for _, l := range third {
			if next[l.Event.ID] || state != tracking.DeliveryReleased {
				t.Fatalf("%s, which the former owner gave as %s, is leased to a third one; to the next: %v",
					l.Event.ID, state, next[l.Event.ID])
			}
		}
		c.finish(release...)
		same(t, "leased after the next one", each(c.lease("fourth", at(2*time.Minute), subjects), leasedID),
			each(got, leasedID))
		for i := range all { // it is over for this round
			all[i].State = tracking.DeliveryDone
		}
		c.finish(all...)
	}
}

const writers, writerRounds = 6, 15

// writeEvents commits writerRounds changesets from each of writers: two events of one subject that
// all share, and one of the writer's own.
func writeEvents(ctx context.Context, s tracking.Store, i int) error {
	for n := range writerRounds {
		_, err := s.Commit(ctx, here, &tracking.Changeset{
			Events: []tracking.Event{
				newEvent(fmt.Sprintf("%d-%d a", i, n), tracking.KindTask, "shared", t0, "d"),
				newEvent(fmt.Sprintf("%d-%d own", i, n), tracking.KindTask, fmt.Sprint("own ", i), t0),
				newEvent(fmt.Sprintf("%d-%d b", i, n), tracking.KindTask, "shared", t0, "d"),
			},
			Deliver: []string{""},
		})
		if err != nil {
			return err
		}
	}
	return nil
}
