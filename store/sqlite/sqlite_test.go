package sqlite_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
	"github.com/seed-8aba7b13/tracking/store/storetest"
)

// TestMain plays fewer random histories under the race detector, which makes SQLite ten times slower and more.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if raceDetector && !given {
		if err := flag.Set("rapid.checks", "5"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(m.Run())
}

func open(t testing.TB, path string, opts *sqlite.Options) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestMemory(t *testing.T) {
	t.Setenv("TRACKING_LONG", "0") // the long histories are played on the file
	storetest.Run(t, func(t testing.TB) tracking.Store { return open(t, sqlite.Memory, nil) })
}

func TestFile(t *testing.T) {
	storetest.Run(t, func(t testing.TB) tracking.Store { return open(t, filepath.Join(fastDir(t), "tracking.db"), nil) })
}

func TestDurable(t *testing.T) {
	storetest.RunDurable(t, func(t testing.TB, dir string) tracking.Store { return open(t, filepath.Join(dir, "tracking.db"), nil) })
}
