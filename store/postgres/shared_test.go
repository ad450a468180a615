package postgres_test

import (
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/storetest"
)

// TestShared has two stores on one database, as two processes would.
func TestShared(t *testing.T) {
	t.Parallel()
	next := emptied(t)
	url := next(t)
	one, other := onPool(t, url, callersClock), onPool(t, url, callersClock)
	storetest.RunShared(t, func(t testing.TB) (a, b tracking.Store) {
		next(t)
		return one(t), other(t)
	})
}
