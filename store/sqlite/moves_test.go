package sqlite_test

import (
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
	"github.com/seed-8aba7b13/tracking/store/storetest"
)

func inMemory(testing.TB) tracking.Store { return memory.New() }

func TestMoves(t *testing.T) {
	inFile := func(t testing.TB) tracking.Store { return openCopy(t, fastDir(t)) }
	t.Run("to a file", func(t *testing.T) { storetest.RunMoves(t, inMemory, inFile) })
	t.Run("out of a file", func(t *testing.T) { storetest.RunMoves(t, inFile, inMemory) })
}
