package storetest

import (
	"sync"
	"testing"

	"github.com/seed-8aba7b13/tracking"
)

func TestReference(t *testing.T) {
	Run(t, func(testing.TB) tracking.Store { return newReference() })
}

// TestDurableReference opens a directory's store again by handing out the same rows.
func TestDurableReference(t *testing.T) {
	var mu sync.Mutex
	stores := map[string]*reference{}
	RunDurable(t, func(t testing.TB, dir string) tracking.Store {
		mu.Lock()
		defer mu.Unlock()
		if stores[dir] == nil {
			stores[dir] = newReference()
		}
		stores[dir].closed = false
		return stores[dir]
	})
}
