package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
)

// heard is what a store tells of the others.
type heard struct {
	app     tracking.AppID
	subject tracking.Subject
}

// watch returns what a store hears, and how its Watch has ended. It begins with what may have been
// missed.
func watch(t *testing.T, s *postgres.Store) (<-chan heard, <-chan error) {
	t.Helper()
	changes, end := make(chan heard, 1000), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() {
		end <- s.Watch(ctx, func(app tracking.AppID, subject tracking.Subject) { changes <- heard{app, subject} })
	}()
	if first := next(t, changes); first != (heard{}) {
		t.Fatalf("the first thing heard is %+v, want that anything may have changed", first)
	}
	return changes, end
}

func next(t *testing.T, changes <-chan heard) heard {
	t.Helper()
	select {
	case h := <-changes:
		return h
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was heard in 10 s")
		return heard{}
	}
}

func commit(t *testing.T, s *postgres.Store, cs tracking.Changeset) {
	t.Helper()
	if _, err := s.Commit(t.Context(), "here", &cs); err != nil {
		t.Fatal(err)
	}
}

func driver(id tracking.DriverID) tracking.Driver {
	return tracking.Driver{ID: id, Person: "p", Available: true, CreatedAt: start, UpdatedAt: start}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	one, other := open(t, url, callersClock), open(t, url, callersClock)
	t.Cleanup(func() { one.Close(); other.Close() })
	changes, end := watch(t, other)
	own, _ := watch(t, one)

	commit(t, one, tracking.Changeset{Drivers: []tracking.Driver{driver("d")}})
	d := heard{"here", tracking.Subject{Kind: tracking.KindDriver, ID: "d"}}
	if got := next(t, changes); got != d {
		t.Errorf("after a Commit: heard %+v, want %+v", got, d)
	}
	// A sign of life is not told, a fix is.
	for _, fixes := range [][]tracking.Fix{nil, {{LngLat: tracking.LngLat{Lng: 11, Lat: 48}, Time: start}}} {
		b := tracking.FixBatch{DriverID: "d", SeenAt: start, Fixes: fixes}
		if _, err := one.RecordFixes(t.Context(), "here", b); err != nil {
			t.Fatal(err)
		}
	}
	if got := next(t, changes); got != d {
		t.Errorf("after a fix: heard %+v, want %+v", got, d)
	}

	// Of too much it tells the application.
	var many tracking.Changeset
	for i := range 200 {
		many.Drivers = append(many.Drivers, driver(tracking.DriverID("driver"+strings.Repeat("x", i))))
	}
	commit(t, one, many)
	if got, want := next(t, changes), (heard{app: "here"}); got != want {
		t.Errorf("after a large Commit: heard %+v, want %+v", got, want)
	}
	commit(t, other, tracking.Changeset{Drivers: []tracking.Driver{driver("e")}})
	if got := next(t, own); got.subject.ID != "e" {
		t.Errorf("heard %+v, want the other's driver e alone: a store does not hear of itself", got)
	}
	if len(changes) > 0 {
		t.Errorf("heard %+v besides", <-changes)
	}

	// A connection that is lost ends it.
	c, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	if _, err := c.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE query LIKE 'LISTEN %' AND datname = current_database()`); err != nil {
		t.Fatal(err)
	}
	if err := <-end; !errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("without its connection: got error %v, want ErrUnavailable", err)
	}
}

// Through a pooler nothing is heard, so it says all the time that there may be something.
func TestWatchByLooking(t *testing.T) {
	t.Parallel()
	s := open(t, template.Database(t)+"&default_query_exec_mode=exec", callersClock)
	t.Cleanup(func() { s.Close() })
	changes, _ := watch(t, s)
	if got := next(t, changes); got != (heard{}) {
		t.Errorf("heard %+v, want that anything may have changed", got)
	}
}
