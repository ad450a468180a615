package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/seed-8aba7b13/tracking/store/sqlite"
	"github.com/seed-8aba7b13/tracking/store/sqlite/internal/powervfs"
)

// long reports whether tests are to run at full size.
func long() bool { return os.Getenv("TRACKING_LONG") == "1" }

// fastDir is an empty directory in memory where there is one: what the disk is supposed to do is
// told by powervfs, not by the disk.
func fastDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "sqlite-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func registerVFS(t testing.TB, name string) *powervfs.VFS {
	t.Helper()
	v, err := powervfs.Register(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Unregister)
	return v
}

// recorded is a history of a disk.
type recorded struct {
	base string // a directory with the files as they were before
	ops  []powervfs.Op
}

// record runs work on a store whose disk is recorded, from Open to Close.
func record(t testing.TB, v *powervfs.VFS, synchronous string, work func(s *sqlite.Store)) recorded {
	t.Helper()
	dir := fastDir(t)
	path := filepath.Join(dir, "tracking.db")
	closeStore(t, open(t, path, nil))
	base := fastDir(t)
	copyFiles(t, base, dir)
	v.Record(true)
	s := open(t, path, sqlite.Options{}.WithVFS(v.Name(), synchronous, 60))
	work(s)
	closeStore(t, s)
	v.Record(false)
	return recorded{base, v.Log()}
}

func copyFiles(t testing.TB, to, from string) {
	t.Helper()
	for name, b := range files(t, from) {
		if err := os.WriteFile(filepath.Join(to, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// images rebuilds the disk after every operation from one on, in each of the ways a power cut may
// leave it, and calls check with the directory. With at most n images it leaves out operations
// evenly, but never the last.
func (r recorded) images(
	t testing.TB, from, n int, check func(dir string, acked int, s powervfs.Survival),
) (images int) {
	t.Helper()
	disk, err := powervfs.LoadDisk(r.base)
	if err != nil {
		t.Fatal(err)
	}
	dir := fastDir(t)
	ways := powervfs.Survivals()
	every := max(1, (len(r.ops)-from)*len(ways)/n)
	chance := rand.New(rand.NewPCG(3, 4))
	last := len(r.ops) - 1
	for last > from && r.ops[last].Kind == powervfs.Mark {
		last--
	}
	for i, op := range r.ops {
		disk.Step(op)
		if i < from || op.Kind == powervfs.Mark || (i-from)%every != 0 && i != last {
			continue
		}
		for _, s := range ways {
			if err := emptyDir(dir); err != nil {
				t.Fatal(err)
			}
			if err := disk.Image(dir, s, chance); err != nil {
				t.Fatal(err)
			}
			check(dir, disk.Acked, s)
			images++
		}
	}
	return images
}

func emptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
	}
	return err
}

// TestPowerCut cuts the power after every operation on the disk: what was acknowledged is there,
// and no step is half done.
func TestPowerCut(t *testing.T) {
	rounds, images := 12, 100
	switch {
	case long():
		rounds, images = 13, 5000
	case raceDetector:
		rounds, images = 4, 30
	}
	for _, synchronous := range []string{"FULL", "NORMAL"} {
		t.Run(synchronous, func(t *testing.T) {
			images := images
			if synchronous == "NORMAL" {
				images = min(images, 300) // it has only to show that a loss is seen
			}
			v := registerVFS(t, "power-"+synchronous)
			l := &ledger{note: v.Mark}
			r := record(t, v, synchronous, func(s *sqlite.Store) {
				w := newWorkload(t, s, l)
				w.failf = func(err error) { t.Error(err) }
				for i := range rounds {
					w.round(t.Context(), i)
				}
			})
			lost, half := 0, 0
			n := r.images(t, 0, images, func(dir string, acked int, way powervfs.Survival) {
				missing, err := checkImage(t.Context(), filepath.Join(dir, "tracking.db"), l, acked)
				if missing > 0 {
					if lost++; synchronous == "FULL" {
						t.Errorf("%d of %d acknowledged are lost (way %d): %v", missing, acked, way, err)
					}
				} else if err != nil {
					half++
					t.Errorf("after %d acknowledged (way %d): %v", acked, way, err)
				}
				if t.Failed() && lost+half > 5 && synchronous == "FULL" {
					t.FailNow()
				}
			})
			t.Logf("%d operations, %d acknowledged, %d images: %d lost something, %d hold a half step", len(r.ops),
				len(l.facts), n, lost, half)
			switch {
			case long() && synchronous == "FULL" && n < 4000:
				t.Errorf("%d images are too few", n)
			case synchronous == "NORMAL" && lost == 0:
				t.Error("nothing is lost without a sync at each commit: this test could not see a loss")
			}
		})
	}
}

// checkImage opens a store after a power cut and counts what is missing of the first acked facts.
func checkImage(ctx context.Context, path string, l *ledger, acked int) (missing int, err error) {
	s, err := sqlite.Open(path, nil)
	if err != nil {
		return 0, err
	}
	defer func() {
		if e := s.Close(); err == nil {
			err = e
		}
	}()
	if missing, err = l.check(ctx, s, acked); err != nil {
		return missing, err
	}
	if err := invariants(ctx, s); err != nil {
		return 0, err
	}
	db, err := s.Reader()
	if err != nil {
		return 0, err
	}
	return 0, agree(db)
}

// TestPowerCutInMigration cuts the power during an update of the file: it is whole, of one version
// or another, and can be updated again.
func TestPowerCutInMigration(t *testing.T) {
	v := registerVFS(t, "power-migration")
	l := &ledger{}
	r := record(t, v, "FULL", func(s *sqlite.Store) {
		w := newWorkload(t, s, l)
		w.failf = func(err error) { t.Error(err) }
		for i := range 4 {
			w.round(t.Context(), i)
		}
	})
	disk, err := powervfs.LoadDisk(r.base)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range r.ops {
		disk.Step(op)
	}
	dir := fastDir(t)
	if err := disk.Image(dir, powervfs.None, nil); err != nil {
		t.Fatal(err)
	}
	updated := migrated(t, moreColumn, moreTable)
	base := fastDir(t)
	copyFiles(t, base, dir)
	v2 := registerVFS(t, "power-migration-2")
	v2.Record(true)
	o := *sqlite.Options{}.WithVFS(v2.Name(), "FULL", 60)
	closeStore(t, open(t, filepath.Join(dir, "tracking.db"), o.WithMigrations(updated)))
	v2.Record(false)

	versions := map[string]int{}
	update := recorded{base, v2.Log()}
	most := 60
	switch {
	case raceDetector:
		most = 30
	case long():
		most = 1 << 20
	}
	n := update.images(t, 0, most, func(dir string, _ int, way powervfs.Survival) {
		path := filepath.Join(dir, "tracking.db")
		version := "unknown"
		for i, m := range []fs.FS{migrated(t), migrated(t, moreColumn), updated} {
			s, err := sqlite.Open(path, sqlite.Options{}.WithMigrations(m))
			if errors.Is(err, sqlite.ErrNewer) {
				continue
			}
			if err != nil {
				t.Errorf("way %d: %v", way, err)
				return
			}
			if version == "unknown" {
				version = fmt.Sprint("version ", i+1)
			}
			missing, err := l.check(t.Context(), s, len(l.facts))
			if missing > 0 {
				t.Errorf("way %d: %d rows are lost: %v", way, missing, err)
			}
			closeStore(t, s)
		}
		versions[version]++
	})
	t.Logf("%d images: %v", n, versions)
	if versions["version 1"] == 0 || versions["version 3"] == 0 || versions["unknown"] > 0 {
		t.Errorf("the images are of these versions: %v", versions)
	}
}
