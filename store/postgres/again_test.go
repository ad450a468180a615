package postgres_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
)

// makeAndDelete makes rows of an id and deletes them, and returns the greatest version they had.
func makeAndDelete(t *testing.T, s *shop, id string) (version int64) {
	t.Helper()
	cs := newRows(id)
	given, err := s.store.Commit(t.Context(), app, cs)
	if err != nil {
		t.Fatal(err)
	}
	task, trip, driver := cs.Tasks[0], cs.Trips[0], cs.Drivers[0]
	task.Version, trip.Version = given.Tasks[0].Version, given.Trips[0].Version
	driver.Version = given.Drivers[0].Version
	if _, err := s.store.Commit(t.Context(), app, &tracking.Changeset{
		DeleteTasks: []tracking.Task{task}, DeleteTrips: []tracking.Trip{trip}, DeleteDrivers: []tracking.Driver{driver},
	}); err != nil {
		t.Fatal(err)
	}
	return max(task.Version, trip.Version, driver.Version)
}

// newRows is a task, a trip and a driver of an id.
func newRows(id string) *tracking.Changeset {
	return &tracking.Changeset{
		Tasks: []tracking.Task{{
			ID: tracking.TaskID(id), Type: tracking.TypeDrop, Status: tracking.StatusCreated, CreatedAt: start,
		}},
		Trips: []tracking.Trip{{
			TrackingID: tracking.TrackingID(id), ID: tracking.TripID(id), Status: tracking.TripActive,
			StartedAt: start, CreatedAt: start,
		}},
		Drivers: []tracking.Driver{{ID: tracking.DriverID(id), CreatedAt: start}},
	}
}

// TestNoVersionAgain makes rows anew in a transaction of the shop's, which others have made and deleted
// since it began: none has a version again, though what the shop sees may be of one moment.
func TestNoVersionAgain(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *shop, begin begins) {
		must(s.store.Commit(t.Context(), app, newTask("first")))(t) // so that the application is there
		for _, level := range levels {
			t.Run(string(level), func(t *testing.T) {
				id := "again" + string(level)
				h := begin(t, s, level)
				h.order(t, id)
				in := must(s.store.Within(h))(t)
				had := makeAndDelete(t, s, id)
				given, err := in.Commit(t.Context(), app, newRows(id))
				if level == pgx.RepeatableRead || level == pgx.Serializable {
					if conflict := (*tracking.ConflictError)(nil); !errors.As(err, &conflict) {
						t.Errorf("given %+v, error %v, want a conflict; there was version %d", given, err, had)
					}
					return
				}
				newerThan(t, given, err, had)
			})
		}
	})
}

// TestFirstOfApplicationWithin makes the first row of an application in a transaction of the shop's. The
// application is registered outside of it: where it sees one moment it has to begin anew.
func TestFirstOfApplicationWithin(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *shop, begin begins) {
		for _, level := range levels {
			t.Run(string(level), func(t *testing.T) {
				here := tracking.AppID("new" + level)
				for _, again := range []bool{false, true} {
					h := begin(t, s, level)
					h.order(t, string(here)+fmt.Sprint(again))
					_, err := must(s.store.Within(h))(t).Commit(t.Context(), here, newRows("first"))
					conflict := (*tracking.ConflictError)(nil)
					oneMoment := level == pgx.RepeatableRead || level == pgx.Serializable
					if want := oneMoment && !again; errors.As(err, &conflict) != want || !want && err != nil {
						t.Fatalf("again %v: error %v, want a conflict: %v", again, err, want)
					}
					h.order(t, "goes on "+string(here)+fmt.Sprint(again))
					h.end(t, h.rollback)
				}
			})
		}
	})
}

// TestNoVersionAgainAfterWait has the statement that makes rows wait for somebody else, while others make
// and delete some of the same id.
func TestNoVersionAgainAfterWait(t *testing.T) {
	t.Parallel()
	within(t, func(t *testing.T, s *shop, begin begins) {
		first := begin(t, s, "")
		must(must(s.store.Within(first))(t).Commit(t.Context(), app, newTask("held")))(t)

		h := begin(t, s, "")
		in := must(s.store.Within(h))(t)
		cs := newRows("again")
		cs.Tasks = append(newTask("held").Tasks, cs.Tasks...)
		answer := meanwhile(func() (tracking.Written, error) { return in.Commit(t.Context(), app, cs) })
		waitFor(t, func() bool { return blocked(t, s) == 1 })
		had := makeAndDelete(t, s, "again")
		first.end(t, first.rollback)
		given, err := answer()
		newerThan(t, given, err, had)
	})
}

// newerThan checks that all that is given is newer than a version.
func newerThan(t *testing.T, given tracking.Written, err error, had int64) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for what, list := range map[string][]tracking.Given{
		"task": given.Tasks, "trip": given.Trips, "driver": given.Drivers,
	} {
		for _, g := range list {
			if g.Version <= had {
				t.Errorf("the %s has version %d, and there was %d", what, g.Version, had)
			}
		}
	}
}
