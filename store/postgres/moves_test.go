package postgres_test

import (
	"path/filepath"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
	"github.com/seed-8aba7b13/tracking/store/storetest"
)

func TestMoves(t *testing.T) {
	next := emptied(t)
	opened := onPool(t, next(t), callersClock)
	inDatabase := func(t testing.TB) tracking.Store {
		next(t)
		return opened(t)
	}
	for name, open := range map[string]func(t testing.TB) tracking.Store{
		"memory": func(testing.TB) tracking.Store { return memory.New() },
		"a file": func(t testing.TB) tracking.Store {
			s, err := sqlite.Open(filepath.Join(t.TempDir(), "tracking.db"), nil)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	} {
		t.Run("from "+name, func(t *testing.T) { storetest.RunMoves(t, open, inDatabase) })
		t.Run("to "+name, func(t *testing.T) { storetest.RunMoves(t, inDatabase, open) })
	}
}
