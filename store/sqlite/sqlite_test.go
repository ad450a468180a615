package sqlite_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
	"github.com/seed-8aba7b13/tracking/store/storetest"
)

// TestMain plays fewer random histories under the race detector, which makes SQLite ten times
// slower and more.
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
	if raceDetector && opts == nil { // under which a hundred readers at once may take longer than the default
		opts = &sqlite.Options{ReadTimeout: time.Minute}
	}
	s, err := sqlite.Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMemory holds a store without a file to the contract, and to the whole of storetest in CI.
func TestMemory(t *testing.T) {
	if raceDetector {
		t.Skip("under the race detector, which takes its time, a file stands for both")
	}
	opened := func(t testing.TB) tracking.Store { return open(t, sqlite.Memory, nil) }
	if !long() {
		storetest.RunContract(t, opened)
		return
	}
	t.Setenv("TRACKING_LONG", "0") // the long histories are played on the file, and most of the others
	storetest.Fewer(t, 10)
	storetest.Run(t, opened)
}

// empty is the file of a store in which nothing is yet.
var empty = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "sqlite-test-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := sqlite.Open(filepath.Join(dir, "tracking.db"), nil)
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "tracking.db"))
})

// openCopy opens the store in a directory. If there is none it begins with a copy of the empty one:
// to make the tables takes longer than most cases do.
func openCopy(t testing.TB, dir string) *sqlite.Store {
	t.Helper()
	path := filepath.Join(dir, "tracking.db")
	if _, err := os.Stat(path); os.IsNotExist(err) {
		file, err := empty()
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, path, file)
	}
	return open(t, path, nil)
}

func TestFile(t *testing.T) {
	storetest.Fewer(t, 30)
	storetest.Run(t, func(t testing.TB) tracking.Store { return openCopy(t, fastDir(t)) })
}

// A file is open once, so that two Services of a process have the same Store.
func TestShared(t *testing.T) {
	storetest.RunShared(t, func(t testing.TB) (a, b tracking.Store) {
		s := openCopy(t, fastDir(t))
		return s, s
	})
}

func TestDurable(t *testing.T) {
	storetest.Fewer(t, 15)
	storetest.RunDurable(t, func(t testing.TB, dir string) tracking.Store { return openCopy(t, dir) })
}
