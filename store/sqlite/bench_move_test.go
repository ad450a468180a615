package sqlite_test

import (
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/storetest"
)

// BenchmarkMove exports from memory, and imports into a file.
func BenchmarkMove(b *testing.B) {
	storetest.BenchmarkMove(b, inMemory, func(t testing.TB) tracking.Store { return openCopy(t, t.TempDir()) })
}
