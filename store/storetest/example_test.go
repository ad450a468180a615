package storetest_test

import (
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
	"github.com/seed-8aba7b13/tracking/store/storetest"
)

// openAt opens the store under test, here SQLite's, in a folder.
func openAt(t testing.TB, dir string) tracking.Store {
	s, err := sqlite.Open(dir+"/deliveries.db", nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The test of a store: Run is given empty ones, RunDurable opens the same folder again and again. To
// see one rule at work: go test -run 'TestStore/contract/TaskByKey'.
func ExampleRun() {
	var t *testing.T // that of func TestStore(t *testing.T)

	storetest.Run(t, func(t testing.TB) tracking.Store { return openAt(t, t.TempDir()) })
	storetest.RunDurable(t, openAt)
}
