package sqlite_test

import (
	sqldriver "database/sql/driver"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	driver "modernc.org/sqlite"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// seen counts the rows that a query looks at, by a function that its conditions ask.
var seen struct {
	once sync.Once
	rows atomic.Int64
}

// countRows makes seen() known to the connections that are opened from now on.
func countRows() {
	seen.once.Do(func() {
		driver.MustRegisterScalarFunction("seen", 0,
			func(*driver.FunctionContext, []sqldriver.Value) (sqldriver.Value, error) {
				return seen.rows.Add(1), nil
			})
	})
}

// full is a store with a backlog of an application that has no room, and how to ask for what others
// have.
func full(t testing.TB, backlog int) (*sqlite.Store, tracking.Lease) {
	t.Helper()
	s := open(t, filepath.Join(fastDir(t), "tracking.db"), nil)
	for i := 0; i < backlog; i += 1000 {
		cs := &tracking.Changeset{Deliver: []string{""}}
		for j := range 1000 {
			id := fmt.Sprint(i + j)
			cs.Events = append(cs.Events, tracking.Event{
				ID: id, RecordedAt: start, Subject: tracking.Subject{Kind: tracking.KindTask, ID: id},
			})
		}
		if _, err := s.Commit(t.Context(), "full", cs); err != nil {
			t.Fatal(err)
		}
	}
	return s, tracking.Lease{
		Owner: "w", Now: start, For: time.Minute, Each: 32, Busy: map[tracking.AppID]int{"full": 32},
		Limit: 100,
	}
}

// TestLookBesideFullApplication counts the rows that a look at the outbox visits while an
// application without room has a backlog.
func TestLookBesideFullApplication(t *testing.T) {
	countRows()
	s, l := full(t, 5000)
	defer closeStore(t, s)
	if _, err := s.Commit(t.Context(), "other", &tracking.Changeset{
		Events:  []tracking.Event{{ID: "a", RecordedAt: start, Subject: tracking.Subject{ID: "a"}}},
		Deliver: []string{""},
	}); err != nil {
		t.Fatal(err)
	}
	db, err := s.Reader()
	if err != nil {
		t.Fatal(err)
	}
	looks := sqlite.Lookups()
	for name, args := range map[string][]any{
		"LeaseEvents due": {"", 1, 2, 3}, "LeaseEvents apps": {""}, "LeaseEvents": {"", 2, 32},
	} {
		before := seen.rows.Load()
		query := strings.ReplaceAll(looks[name].SQL, "0x8000000000000000", "0x8000000000000000 AND seen() > 0")
		rows, err := db.Query(query, args...)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for rows.Next() {
			n++
		}
		if err := rows.Close(); err != nil || n == 0 {
			t.Errorf("%s: %d rows, error %v", name, n, err)
		}
		if n := seen.rows.Load() - before; n > 8 {
			t.Errorf("%s visits %d rows", name, n)
		}
	}
	got, err := s.LeaseEvents(t.Context(), l)
	if err != nil || len(got) != 1 || got[0].App != "other" {
		t.Errorf("leased %v, error %v", got, err)
	}
}

func BenchmarkLookBesideFullApplication(b *testing.B) {
	s, l := full(b, 50_000)
	defer closeStore(b, s)
	for b.Loop() {
		if got, err := s.LeaseEvents(b.Context(), l); err != nil || got != nil {
			b.Fatal(got, err)
		}
	}
}
