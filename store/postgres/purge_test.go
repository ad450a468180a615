package postgres_test

import (
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// An event that was dead and is tried anew while a purge is at it stays, and is handed out.
func TestPurgeBesideReplay(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s := open(t, url, callersClock)
	defer s.Close()
	commit(t, s, tracking.Changeset{Deliver: []string{"", "push"}, Events: []tracking.Event{{
		ID: "e", Type: tracking.EventTaskCreated, RecordedAt: start,
		Subject: tracking.Subject{Kind: tracking.KindTask, ID: "t"},
	}}})
	for _, outbox := range []string{"", "push"} {
		lease := tracking.Lease{Outbox: outbox, Owner: "w", Now: start, For: time.Minute, Limit: 1}
		if got, err := s.LeaseEvents(t.Context(), lease); err != nil || len(got) != 1 {
			t.Fatalf("leased %v, %v", got, err)
		}
		err := s.FinishEvents(t.Context(), []tracking.Delivery{{
			Outbox: outbox, App: "here", EventID: "e", Owner: "w", State: tracking.DeliveryDead, Now: start,
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	// Somebody else is about to try it anew.
	c := connect(t, url)
	execute(t, c, "BEGIN")
	execute(t, c, "UPDATE tracking.deliveries SET state = 1, attempts = 0 WHERE outbox = 'push'")
	purged := meanwhile(func() (tracking.Purged, error) {
		return s.Purge(t.Context(), tracking.Before{Events: start.Add(time.Hour), Limit: 10})
	})
	awaitLock(t, url, "tracking.deliveries")
	execute(t, c, "COMMIT")
	if got, err := purged(); err != nil || got.Events != 0 {
		t.Errorf("purged %+v, %v; want nothing", got, err)
	}
	if list, _, err := s.Events(t.Context(), "here", tracking.EventFilter{Dead: true, Limit: 10}); len(list) != 1 {
		t.Errorf("dead in the other outbox: %v, %v", list, err)
	}
	list, _, err := s.Events(t.Context(), "here", tracking.EventFilter{Limit: 10})
	if err != nil || len(list) != 1 {
		t.Errorf("the events are %v, %v", list, err)
	}
}

// awaitLock waits until somebody waits for a row or more of a table.
func awaitLock(t testing.TB, url, table string) {
	t.Helper()
	c := connect(t, url)
	const waiting = `SELECT EXISTS (SELECT 1 FROM pg_locks w, pg_sleep(0.005) WHERE NOT w.granted AND EXISTS (
		SELECT 1 FROM pg_locks h WHERE h.pid = w.pid AND h.granted AND h.relation = $1::regclass))`
	for waits := false; !waits; {
		if err := c.QueryRow(t.Context(), waiting, table).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
}
