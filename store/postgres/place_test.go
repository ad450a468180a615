package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
)

// Where the server does not know yet how many events there are, those that get their places are taken by
// their keys: it does not compare all with all.
func TestPlanOfPlaces(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s := open(t, url, nil)
	defer s.Close()
	c := connect(t, url)
	execute(t, c, "ALTER TABLE tracking.events SET (autovacuum_enabled = false)")
	n := 0
	for _, many := range []int{100, 300, 2000, 1} {
		var all tracking.Changeset
		for range many {
			n++
			cs := newTask(fmt.Sprint("t", n))
			all.Tasks, all.Events = append(all.Tasks, cs.Tasks...), append(all.Events, cs.Events...)
		}
		if many == 1 {
			execute(t, c, "ANALYZE tracking.events")
		}
		if _, err := s.Commit(t.Context(), app, &all); err != nil {
			t.Fatal(err)
		}
		execute(t, c, "BEGIN")
		execute(t, c, postgres.OneStretch)
		plan := explain(t, c, postgres.PlaceEvents, 1, 5000)
		execute(t, c, "ROLLBACK")
		p := strings.Join(plan, "\n")
		if !strings.Contains(p, "Index Cond: ((app = 1) AND (n >= ") || strings.Contains(p, "Join Filter") {
			t.Errorf("of %d events in %d:\n%s", many, n, p)
		}
	}
}
