package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// personFixChecks are about batches that are of one person and nobody else who has the id.
func personFixChecks() []check {
	return []check{
		{"RecordFixes/those of another person are ErrNotFound and no sign of life", recordFixesOfAnotherPerson},
		{"Commit/fixes of another person are a conflict on that driver", commitFixesOfAnotherPerson},
		{"Commit/of many drivers the fixes of each are of his person", commitFixesOfMany},
	}
}

// secondPerson makes the driver "d", who is the person "second".
func secondPerson(t testing.TB, s tracking.Store) *client {
	c := use(t, s, here)
	d := newDriver("d", t0)
	d.Person = "second"
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
	return c
}

func fixOfPerson(person string) tracking.FixBatch {
	return tracking.FixBatch{DriverID: "d", Person: person, SeenAt: t0, Fixes: []tracking.Fix{newFix(t0, 11, 48)}}
}

func recordFixesOfAnotherPerson(t testing.TB, s tracking.Store) {
	c := secondPerson(t, s)
	for _, b := range []tracking.FixBatch{fixOfPerson("first"), {DriverID: "d", Person: "first", SeenAt: t0}} {
		_, err := s.RecordFixes(c.ctx, here, b)
		missing(t, "RecordFixes", err)
		same(t, "the driver's position", c.driver("d").Position, tracking.Position{})
	}
	same(t, "his own", c.record(fixOfPerson("second")).Outcomes, []tracking.FixOutcome{tracking.FixLive})
	same(t, "whoever's", c.record(fixOfPerson("")).Outcomes, []tracking.FixOutcome{tracking.FixDuplicate})
}

func commitFixesOfAnotherPerson(t testing.TB, s tracking.Store) {
	c := secondPerson(t, s)
	task := newTask("t", t0)
	c.refused(tracking.Changeset{Tasks: []tracking.Task{task}, Fixes: []tracking.FixBatch{fixOfPerson("first")}},
		tracking.ConflictError{Kind: tracking.KindDriver, ID: "d"})
	_, err := s.Task(c.ctx, here, "t")
	missing(t, "Task", err)
	same(t, "the driver's position", c.driver("d").Position, tracking.Position{})
	c.commit(tracking.Changeset{Tasks: []tracking.Task{task}, Fixes: []tracking.FixBatch{fixOfPerson("second")}})
	same(t, "the time of the fix", c.driver("d").Position.Fix.Time, t0)

	fresh := newDriver("e", t0)
	fresh.Person = "second"
	of := func(person string) tracking.Changeset {
		return tracking.Changeset{
			Drivers: []tracking.Driver{fresh}, Fixes: []tracking.FixBatch{{DriverID: "e", Person: person, SeenAt: t0}},
		}
	}
	c.refused(of("first"), tracking.ConflictError{Kind: tracking.KindDriver, ID: "e"})
	c.commit(of("second"))
}

func commitFixesOfMany(t testing.TB, s tracking.Store) {
	const n = 40
	c := use(t, s, here)
	many := func(odd int) (cs tracking.Changeset) {
		for i := range n {
			d := newDriver(tracking.DriverID(fmt.Sprint("d", i)), t0)
			d.Person = fmt.Sprint("person ", i)
			cs.Drivers = append(cs.Drivers, d)
			f := newFix(at(time.Duration(i)*time.Second), 11, 48)
			b := tracking.FixBatch{DriverID: d.ID, Person: d.Person, SeenAt: t0, Fixes: []tracking.Fix{f}}
			if i == odd {
				b.Person = "person 0"
			}
			cs.Fixes = append(cs.Fixes, b)
		}
		return cs
	}
	for _, odd := range []int{1, n / 2, n - 1} {
		c.refused(many(odd), tracking.ConflictError{Kind: tracking.KindDriver, ID: fmt.Sprint("d", odd)})
	}
	nobody := many(-1)
	nobody.Fixes[n/2].DriverID = "nobody"
	c.refused(nobody, tracking.ConflictError{Kind: tracking.KindDriver, ID: "nobody"})
	all := many(-1)
	c.commit(all)
	for i, d := range all.Drivers {
		same(t, "the time of the fix", c.driver(d.ID).Position.Fix.Time, at(time.Duration(i)*time.Second))
	}
}
