package storetest

import (
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// personEventChecks are about events and notices that a driver has left, and the one after him with
// his id.
func personEventChecks() []check {
	return []check{
		{"Events/each tells of one person, and its notices say who is told", eventsAreOfAPerson},
		{"LeaseEvents/what tells of a person goes on doing so when another has the id", leasedEventsAreOfAPerson},
	}
}

// toldPersons commits an event of each of three who have had the id "d" one after another, with a
// notice, and one of nobody. The last is there yet.
func toldPersons(t testing.TB, s tracking.Store) (*client, []tracking.Event) {
	c := use(t, s, here)
	var all []tracking.Event
	tell := func(id, person, of string, cs tracking.Changeset) {
		e := newEvent(id, tracking.KindDriver, "d", at(time.Duration(len(all))*time.Second), "d")
		e.Person = of
		cs.Events, cs.Deliver = []tracking.Event{e}, []string{""}
		c.commit(cs)
		e.Seq = int64(len(all) + 1)
		e.Notices[0].Person, e.Notices[0].EventID, e.Notices[0].Time = person, e.ID, e.RecordedAt
		all = append(all, e)
	}
	for _, person := range []string{"first", "second", "third"} {
		d := newDriver("d", t0)
		d.Person = person
		tell("made "+person, person, person, tracking.Changeset{Drivers: []tracking.Driver{d}})
		tell("of nobody, "+person, person, "", tracking.Changeset{})
		if person != "third" {
			c.commit(tracking.Changeset{DeleteDrivers: []tracking.Driver{c.driver("d")}})
		}
	}
	return c, all
}

func eventsAreOfAPerson(t testing.TB, s tracking.Store) {
	c, all := toldPersons(t, s)
	got, _ := c.events(tracking.EventFilter{})
	same(t, "events", got, all, givenNumbers)
	feed, _ := c.notices("d", 0)
	same(t, "the feed of the last", feed, []tracking.Notice{all[4].Notices[0], all[5].Notices[0]}, givenNumbers)
}

func leasedEventsAreOfAPerson(t testing.TB, s tracking.Store) {
	c, all := toldPersons(t, s)
	leased, err := s.LeaseEvents(c.ctx, tracking.Lease{
		Owner: "o", Now: at(time.Hour), For: time.Hour, Limit: 100,
	})
	c.ok(err)
	same(t, "events", each(leased, func(l tracking.Leased) tracking.Event { return l.Event }), all, givenNumbers)
}
