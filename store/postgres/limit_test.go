package postgres_test

import (
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// What was counted is forgotten by the server's clock, and taken away by the purge.
func TestLimitIsForgotten(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s := open(t, url, nil)
	t.Cleanup(func() { s.Close() })
	var before []byte
	add := func(keep time.Duration) {
		t.Helper()
		err := s.Limit(t.Context(), "codes", keep, func(value []byte) []byte {
			before = value
			return append(value, 'x')
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	add(time.Hour)
	add(time.Hour)
	if string(before) != "x" {
		t.Errorf("the second time it was %q, want x", before)
	}
	add(-time.Second)
	add(-time.Second)
	if before != nil {
		t.Errorf("once it is over it is %q, want nothing", before)
	}
	if _, err := s.Purge(t.Context(), tracking.Before{Limit: 10}); err != nil {
		t.Fatal(err)
	}
	if got := sql(t, url, `SELECT name FROM tracking.limits`); len(got) > 0 {
		t.Errorf("after a purge there is %q still", got)
	}
}
