package postgres_test

import (
	"net/url"
	"os"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres/pgtest"
	"github.com/seed-8aba7b13/tracking/store/storetest"
)

// TestBouncer plays the contract through a pooler that hands out connections by transaction, in
// each mode of statements that works there: all of them with TRACKING_LONG=1.
func TestBouncer(t *testing.T) {
	t.Parallel()
	next := emptied(t)
	base, err := url.Parse(pgtest.NewBouncer(t, next(t)))
	if err != nil {
		t.Fatal(err)
	}
	modes := []string{"exec"}
	if os.Getenv("TRACKING_LONG") == "1" {
		modes = append(modes, "cache_describe", "simple_protocol")
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			through := *base
			query := through.Query()
			query.Set("default_query_exec_mode", mode)
			through.RawQuery = query.Encode()
			opened := onPool(t, through.String(), callersClock)
			storetest.RunContract(t, func(t testing.TB) tracking.Store {
				next(t)
				return opened(t)
			})
		})
	}
}
