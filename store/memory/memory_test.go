package memory_test

import (
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
	"github.com/seed-8aba7b13/tracking/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(t testing.TB) tracking.Store {
		s := memory.New()
		t.Cleanup(func() { s.Close() })
		return s
	})
}
