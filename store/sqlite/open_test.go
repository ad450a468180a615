package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// commitTask commits one task.
func commitTask(t testing.TB, s tracking.Store, id tracking.TaskID) {
	t.Helper()
	cs := &tracking.Changeset{Tasks: []tracking.Task{{
		ID: id, Type: tracking.TypeDrop, Status: tracking.StatusCreated, CreatedAt: start,
	}}}
	if _, err := s.Commit(t.Context(), app, cs); err != nil {
		t.Fatal(err)
	}
}

func hasTask(t testing.TB, s tracking.Store, id tracking.TaskID) {
	t.Helper()
	if _, err := s.Task(t.Context(), app, id); err != nil {
		t.Errorf("task %s: %v", id, err)
	}
}

func closeStore(t testing.TB, s *sqlite.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// raw opens a file as it is.
func raw(t testing.TB, path string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// files reads what lies in a directory.
func files(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	m := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			m[name], err = os.ReadFile(filepath.Join(dir, name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracking.db")
	s := open(t, path, nil)
	commitTask(t, s, "a")
	secret, err := s.Secret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	s = open(t, path, nil)
	defer closeStore(t, s)
	hasTask(t, s, "a")
	again, err := s.Secret(t.Context())
	if err != nil || !bytes.Equal(secret, again) || len(secret) != 32 {
		t.Errorf("Secret: %x, then %x, error %v", secret, again, err)
	}
	if err := s.Health(); err != nil {
		t.Error(err)
	}
}

// TestPaths opens files whose names mean something to a URI, a shell or SQLite.
func TestPaths(t *testing.T) {
	for _, name := range []string{
		"plain", "with space.db", "question?mark=1&mode=ro", "per%20cent%", "hash#tag", "plus+and;semicolon",
		"Ünïcödé-配送", "e\u0301", "-dash", "quote'\"", ":memory:x", "file:x",
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, name)
			s := open(t, path, nil)
			commitTask(t, s, "a")
			if _, err := os.Stat(path); err != nil {
				t.Errorf("the file is not at its path: %v", err)
			}
			for name := range files(t, dir) {
				if !strings.HasPrefix(name, filepath.Base(path)) {
					t.Errorf("a stray file %q", name)
				}
			}
			closeStore(t, s)
			s = open(t, path, nil)
			hasTask(t, s, "a")
			if err := s.Backup(t.Context(), path+" copy?"); err != nil {
				t.Error(err)
			}
			closeStore(t, s)
			s = open(t, path+" copy?", nil)
			hasTask(t, s, "a")
			closeStore(t, s)
		})
	}
	t.Run("relative", func(t *testing.T) {
		t.Chdir(t.TempDir())
		s := open(t, "tracking.db", nil)
		commitTask(t, s, "a")
		closeStore(t, s)
		if _, err := os.Stat("tracking.db"); err != nil {
			t.Error(err)
		}
	})
}

// TestFileModes expects that nobody but the owner may read the file and its companions.
func TestFileModes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no such modes")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "tracking.db")
	s := open(t, path, nil)
	defer closeStore(t, s)
	commitTask(t, s, "a")
	if err := s.Backup(t.Context(), filepath.Join(dir, "copy")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		st, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", e.Name(), st.Mode().Perm())
		}
		names = append(names, e.Name())
	}
	if d := cmp.Diff([]string{"copy", "tracking.db", "tracking.db-lock", "tracking.db-shm", "tracking.db-wal"},
		names); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
}

func TestInUse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tracking.db")
	s := open(t, path, nil)
	link := filepath.Join(dir, "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, link, filepath.Join(dir, ".", "x", "..", "tracking.db")} {
		if _, err := sqlite.Open(p, nil); !errors.Is(err, sqlite.ErrInUse) {
			t.Errorf("Open %s: got error %v, want ErrInUse", p, err)
		}
	}
	commitTask(t, s, "a")
	closeStore(t, s)
	s = open(t, link, nil)
	hasTask(t, s, "a")
	closeStore(t, s)
}

// TestInUseByAnotherName opens a file that has two names, in two directories, by both.
func TestInUseByAnotherName(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the lock is beside the file only")
	}
	path, second := filepath.Join(t.TempDir(), "tracking.db"), filepath.Join(t.TempDir(), "second.db")
	closeStore(t, open(t, path, nil))
	link := func() {
		t.Helper()
		if err := os.Link(path, second); err != nil {
			t.Skipf("no hard links here: %v", err)
		}
	}
	for _, late := range []bool{false, true} {
		if !late {
			link()
		}
		s := open(t, path, nil)
		if late { // a file that has got its second name since it was opened
			link()
		}
		for range 2 {
			if _, err := sqlite.Open(second, nil); !errors.Is(err, sqlite.ErrInUse) {
				t.Errorf("Open by the second name: got error %v, want ErrInUse", err)
			}
		}
		commitTask(t, s, tracking.TaskID(fmt.Sprint("a", late)))
		closeStore(t, s)
		s = open(t, second, nil)
		hasTask(t, s, tracking.TaskID(fmt.Sprint("a", late)))
		if _, err := sqlite.Open(path, nil); !errors.Is(err, sqlite.ErrInUse) {
			t.Errorf("Open by the first name: got error %v, want ErrInUse", err)
		}
		closeStore(t, s)
		if err := os.Remove(second); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, filepath.Join(t.TempDir(), "another.db"), nil) // made anew, it is locked as well
	defer closeStore(t, s)
}

// good makes a file with a task in it.
func good(t testing.TB, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "tracking.db")
	s := open(t, path, nil)
	commitTask(t, s, "a")
	closeStore(t, s)
	return path
}

// TestRefused opens what cannot be used: the error says which kind it is and what to do, and no
// byte has changed.
func TestRefused(t *testing.T) {
	overwrite := func(t testing.TB, path string, off int64, b []byte) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt(b, off); err != nil {
			t.Fatal(err)
		}
	}
	exec := func(t testing.TB, path, query string) {
		t.Helper()
		db := raw(t, path)
		if _, err := db.Exec(query); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name string
		make func(t testing.TB, dir string) (path string)
		want error
	}{
		{"a directory", func(t testing.TB, dir string) string { return dir }, sqlite.ErrPath},
		{
			"no parent", func(t testing.TB, dir string) string { return filepath.Join(dir, "none", "tracking.db") },
			sqlite.ErrPath,
		},
		{"no path", func(t testing.TB, dir string) string { return "" }, sqlite.ErrPath},
		{
			"a path with NUL", func(t testing.TB, dir string) string { return filepath.Join(dir, "a\x00b") },
			sqlite.ErrPath,
		},
		{"a link that leads nowhere", func(t testing.TB, dir string) string {
			path := filepath.Join(dir, "link")
			if err := os.Symlink(filepath.Join(dir, "none"), path); err != nil {
				t.Fatal(err)
			}
			return path
		}, sqlite.ErrPath},
		{"an emptied file", func(t testing.TB, dir string) string {
			path := good(t, dir)
			if err := os.Truncate(path, 0); err != nil {
				t.Fatal(err)
			}
			return path
		}, sqlite.ErrEmptied},
		{"a text", func(t testing.TB, dir string) string {
			path := filepath.Join(dir, "notes.txt")
			if err := os.WriteFile(path, []byte(strings.Repeat("not a database\n", 100)), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, sqlite.ErrForeign},
		{"a short file", func(t testing.TB, dir string) string {
			path := filepath.Join(dir, "short")
			if err := os.WriteFile(path, []byte("SQLite format 3\x00"), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, sqlite.ErrForeign},
		{"another application's", func(t testing.TB, dir string) string {
			path := filepath.Join(dir, "other.db")
			exec(t, path, "CREATE TABLE bookmarks (url TEXT); PRAGMA application_id = 1; PRAGMA user_version = 1")
			return path
		}, sqlite.ErrForeign},
		{"a newer version's", func(t testing.TB, dir string) string {
			path := good(t, dir)
			exec(t, path, "PRAGMA user_version = 1000")
			return path
		}, sqlite.ErrNewer},
		{"a newer version's, with the news in the log", func(t testing.TB, dir string) string {
			path := good(t, dir)
			db := raw(t, path)
			if _, err := db.Exec("PRAGMA wal_autocheckpoint = 0; PRAGMA user_version = 1000"); err != nil {
				t.Fatal(err)
			}
			// The files as they are now, as after a kill.
			to := filepath.Join(dir, "copy.db")
			for _, suffix := range []string{"", "-wal"} {
				b, err := os.ReadFile(path + suffix)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(to+suffix, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			return to
		}, sqlite.ErrNewer},
		{"a file cut short", func(t testing.TB, dir string) string {
			path := good(t, dir)
			if err := os.Truncate(path, 16<<10); err != nil {
				t.Fatal(err)
			}
			return path
		}, sqlite.ErrDamaged},
		{"a file whose first page is damaged", func(t testing.TB, dir string) string {
			path := good(t, dir)
			overwrite(t, path, 100, bytes.Repeat([]byte{0xa5}, 3000))
			return path
		}, sqlite.ErrDamaged},
		{"a file without a table", func(t testing.TB, dir string) string {
			path := good(t, dir)
			exec(t, path, "DROP TABLE notices")
			return path
		}, sqlite.ErrDamaged},
		{"a log without its file", func(t testing.TB, dir string) string {
			path := filepath.Join(dir, "tracking.db")
			if err := os.WriteFile(path+"-wal", make([]byte, 4096), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, sqlite.ErrDamaged},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := tt.make(t, dir)
			before := files(t, dir)
			_, err := sqlite.Open(path, nil)
			if !errors.Is(err, tt.want) {
				t.Fatalf("got error %v, want %v", err, tt.want)
			}
			var oe *sqlite.OpenError
			if !errors.As(err, &oe) || oe.Advice == "" {
				t.Errorf("the error gives no advice: %v", err)
			}
			after := files(t, dir)
			for name, b := range before {
				if strings.HasSuffix(name, "-shm") {
					continue // SQLite's scratch space; it is made anew from the log
				}
				if !bytes.Equal(after[name], b) {
					t.Errorf("%s has changed", name)
				}
			}
		})
	}
}

// TestExtraIndex opens a file to which an operator has added an index of his own.
func TestExtraIndex(t *testing.T) {
	path := good(t, t.TempDir())
	db := raw(t, path)
	if _, err := db.Exec("CREATE INDEX mine ON tasks (notes)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, nil)
	hasTask(t, s, "a")
	closeStore(t, s)
}

func TestOptions(t *testing.T) {
	for _, o := range []sqlite.Options{
		{Queue: -1}, {Readers: -1}, {ReadTimeout: -1}, {BusyTimeout: -1}, {CacheSize: -1},
	} {
		if s, err := sqlite.Open(sqlite.Memory, &o); err == nil {
			s.Close()
			t.Errorf("Open takes %+v", o)
		}
	}
}

// TestCreationCutShort opens a file whose making was cut short: nothing is there under its name,
// and what is left under another is no obstacle.
func TestCreationCutShort(t *testing.T) {
	for _, left := range []string{"", "SQLite format 3\x00 and no more"} {
		path := filepath.Join(t.TempDir(), "tracking.db")
		writeFile(t, path+"-new", []byte(left))
		writeFile(t, path+"-new-journal", []byte("half"))
		s := open(t, path, nil)
		commitTask(t, s, "a")
		closeStore(t, s)
		if _, err := os.Stat(path + "-new"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("what was left is there: %v", err)
		}
	}
}

// migrated is the embedded migrations and some more.
func migrated(t testing.TB, more ...string) fs.FS {
	t.Helper()
	dir := fstest.MapFS{}
	names, err := filepath.Glob("migrations/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		script, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		dir[filepath.ToSlash(name)] = &fstest.MapFile{Data: script}
	}
	for i, script := range more {
		dir[fmt.Sprintf("migrations/%04d_more.sql", len(names)+i+1)] = &fstest.MapFile{Data: []byte(script)}
	}
	return dir
}

// migratedUntil is the embedded migrations that lead to a version.
func migratedUntil(t testing.TB, version int) fs.FS {
	t.Helper()
	dir := migrated(t).(fstest.MapFS)
	for name := range dir {
		if path.Base(name) > fmt.Sprintf("%04d_~", version) {
			delete(dir, name)
		}
	}
	return dir
}

const (
	moreColumn = "ALTER TABLE tasks ADD COLUMN colour TEXT; UPDATE tasks SET colour = 'red'; " +
		"CREATE INDEX tasks_by_colour ON tasks (colour)"
	moreTable = "CREATE TABLE colours (name TEXT PRIMARY KEY) STRICT; " +
		"INSERT INTO colours SELECT DISTINCT colour FROM tasks"
)

// TestMigration updates a file by two steps, and opens it again.
func TestMigration(t *testing.T) {
	path := good(t, t.TempDir())
	version := schemaVersion(t, path)
	s := open(t, path, sqlite.Options{}.WithMigrations(migrated(t, moreColumn, moreTable)))
	hasTask(t, s, "a")
	commitTask(t, s, "b")
	closeStore(t, s)

	db := raw(t, path)
	var got struct {
		Version int
		Colour  string
		Colours int
	}
	if err := db.Get(&got,
		"SELECT (SELECT user_version FROM pragma_user_version) AS version, "+
			"(SELECT colour FROM tasks WHERE id = 'a') AS colour, "+
			"(SELECT count(*) FROM colours) AS colours"); err != nil {
		t.Fatal(err)
	}
	if got.Version != version+2 || got.Colour != "red" || got.Colours != 1 {
		t.Errorf("after the update: %+v", got)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	if _, err := sqlite.Open(path, nil); !errors.Is(err, sqlite.ErrNewer) {
		t.Errorf("an older program opens it: %v", err)
	}
	old := open(t, fmt.Sprintf("%s-v%d", path, version), nil) // the copy from before
	hasTask(t, old, "a")
	if _, err := old.Task(t.Context(), app, "b"); !errors.Is(err, tracking.ErrNotFound) {
		t.Errorf("the copy holds what came later: %v", err)
	}
	closeStore(t, old)
}

// TestFailedMigration stops in the second of two updates: the first stays, and of the second there
// is nothing.
func TestFailedMigration(t *testing.T) {
	path := good(t, t.TempDir())
	version := schemaVersion(t, path)
	broken := moreTable + "; INSERT INTO colours VALUES ('red')"
	_, err := sqlite.Open(path, sqlite.Options{}.WithMigrations(migrated(t, moreColumn, broken)))
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint("version ", version+2)) {
		t.Fatalf("got error %v, want one about version %d", err, version+2)
	}
	s := open(t, path, sqlite.Options{}.WithMigrations(migrated(t, moreColumn)))
	hasTask(t, s, "a")
	closeStore(t, s)
	s = open(t, path, sqlite.Options{}.WithMigrations(migrated(t, moreColumn, moreTable)))
	hasTask(t, s, "a")
	closeStore(t, s)
}

// schemaVersion is the version that a closed file is at.
func schemaVersion(t testing.TB, path string) (version int) {
	t.Helper()
	db := raw(t, path)
	defer db.Close()
	if err := db.Get(&version, "PRAGMA user_version"); err != nil {
		t.Fatal(err)
	}
	return version
}

func TestMemoryEnds(t *testing.T) {
	a, b := open(t, sqlite.Memory, nil), open(t, sqlite.Memory, nil)
	commitTask(t, a, "a")
	if _, err := b.Task(t.Context(), app, "a"); !errors.Is(err, tracking.ErrNotFound) {
		t.Errorf("two stores in memory share rows: %v", err)
	}
	closeStore(t, a)
	closeStore(t, b)
	if _, err := a.Commit(context.Background(), app, &tracking.Changeset{}); !errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("Commit after Close: %v", err)
	}
}

func writeFile(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

// damagePages overwrites the leaves of the table of tasks in a closed file.
func damagePages(t testing.TB, path string) {
	t.Helper()
	db := raw(t, path)
	var pages []int64
	if err := db.Select(&pages, "SELECT pageno FROM dbstat WHERE name = 'tasks' AND pagetype = 'leaf'"); err != nil {
		t.Skipf("the pages of a table cannot be found: %v", err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range pages {
		if _, err := f.WriteAt(bytes.Repeat([]byte{0xff}, 4096), (p-1)*4096); err != nil {
			t.Fatal(err)
		}
	}
}
