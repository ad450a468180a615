package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	codes "modernc.org/sqlite/lib"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
	"github.com/seed-8aba7b13/tracking/store/sqlite/internal/powervfs"
)

// failing is the code with which an operation of a kind fails.
var failing = map[powervfs.Kind]int32{
	powervfs.Open:      codes.SQLITE_CANTOPEN,
	powervfs.Read:      codes.SQLITE_IOERR_READ,
	powervfs.Write:     codes.SQLITE_IOERR_WRITE,
	powervfs.Truncate:  codes.SQLITE_IOERR_TRUNCATE,
	powervfs.Sync:      codes.SQLITE_IOERR_FSYNC,
	powervfs.Delete:    codes.SQLITE_IOERR_DELETE,
	powervfs.Size:      codes.SQLITE_IOERR_FSTAT,
	powervfs.MapShared: codes.SQLITE_IOERR_SHMMAP,
}

// faultyRun is a workload on a disk that fails.
type faultyRun struct {
	ops    int          // operations on the disk
	hit    *powervfs.Op // the first that failed
	during string       // open, work or close
	told   bool         // an error reached the caller
	halted bool         // the store has stopped writing
	ledger ledger
}

// runFaulty opens a store, works and closes it. The n-th operation on the disk fails, and with
// forever all after it.
func runFaulty(t testing.TB, v *powervfs.VFS, path string, n int, forever bool) *faultyRun {
	t.Helper()
	r := &faultyRun{during: "open"}
	var phase atomic.Value // what is under way; the store's own goroutines work on the disk too
	phase.Store(r.during)
	v.SetFault(func(op powervfs.Op) int32 {
		r.ops++
		if n == 0 || r.ops < n || r.ops > n && !forever {
			return 0
		}
		if r.hit == nil {
			r.hit, r.during = &op, phase.Load().(string)
		}
		return failing[op.Kind]
	})
	defer v.SetFault(nil)
	s, err := sqlite.Open(path, sqlite.Options{}.WithVFS(v.Name(), "FULL", 60))
	if err != nil {
		r.told = true
		return r
	}
	phase.Store("work")
	w := newWorkload(t, s, &r.ledger)
	w.failf = func(err error) {
		if !errors.Is(err, tracking.ErrUnavailable) && !errors.Is(err, tracking.ErrNotFound) &&
			!errors.Is(err, tracking.ErrConflict) {
			t.Errorf("operation %d (%v): the caller got %v", n, r.hit, err)
		}
	}
	for i := range 3 {
		w.round(context.Background(), i)
	}
	r.told = w.failed > 0 || w.logged.Load() > 0
	r.halted = s.Health() != nil
	phase.Store("close")
	if err := s.Close(); err != nil {
		r.told = true
	}
	return r
}

// TestFaults fails each operation on the disk in turn, once and for ever.
func TestFaults(t *testing.T) {
	v := registerVFS(t, "faults")
	dir := fastDir(t)
	base := filepath.Join(dir, "base.db")
	closeStore(t, open(t, base, nil))
	whole := files(t, dir)["base.db"]
	prepare := func() string {
		t.Helper()
		if err := emptyDir(dir); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "tracking.db")
		writeFile(t, path, whole)
		return path
	}
	total := runFaulty(t, v, prepare(), 0, false).ops
	every := total / 40
	switch {
	case raceDetector:
		every = total / 10
	case long():
		every = 5
	}
	ignore := goleak.IgnoreCurrent()

	runs, told, quiet := 0, 0, map[string]int{}
	for _, forever := range []bool{false, true} {
		for n := 1; n <= total; n += every {
			path := prepare()
			r := runFaulty(t, v, path, n, forever)
			runs++
			if r.hit == nil {
				continue // the workload has taken another course
			}
			where := fmt.Sprintf("%v of %q during %s", r.hit.Kind, strings.TrimPrefix(r.hit.File, "tracking.db"),
				r.during)
			if r.told {
				told++
			} else {
				quiet[where]++
			}
			commits := strings.HasSuffix(r.hit.File, "-wal") &&
				(r.hit.Kind == powervfs.Write || r.hit.Kind == powervfs.Sync)
			if commits && r.during == "work" && !r.told && !r.halted {
				t.Errorf("operation %d failed, %s, and nobody was told", n, where)
			}
			if open := v.Files(); open > 0 {
				t.Fatalf("operation %d failed, %s, and %d files are open", n, where, open)
			}
			missing, err := checkImage(t.Context(), path, &r.ledger, len(r.ledger.facts))
			if err != nil {
				t.Errorf("operation %d failed (for ever: %v), %s: %d of %d acknowledged are lost: %v", n, forever,
					where, missing, len(r.ledger.facts), err)
			}
			if err := goleak.Find(ignore); err != nil {
				t.Fatalf("operation %d failed, %s: %v", n, where, err)
			}
		}
	}
	t.Logf("%d operations, %d runs, in %d the caller was told; not told: %v", total, runs, told, quiet)
}

// once fails the first operation that fits.
func once(kind powervfs.Kind, suffix string, code int32) powervfs.Fault {
	done := false
	return func(op powervfs.Op) int32 {
		if done || op.Kind != kind || !strings.HasSuffix(op.File, suffix) {
			return 0
		}
		done = true
		return code
	}
}

// TestFailedSync has one sync fail, and no other: nothing more is written until the store is opened
// again.
func TestFailedSync(t *testing.T) {
	v := registerVFS(t, "failed-sync")
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, sqlite.Options{}.WithVFS(v.Name(), "FULL", 1000))
	commitTask(t, s, "before")
	if err := s.Health(); err != nil {
		t.Fatal(err)
	}
	v.SetFault(once(powervfs.Sync, "-wal", codes.SQLITE_IOERR_FSYNC))
	cs := func(id tracking.TaskID) *tracking.Changeset {
		return &tracking.Changeset{Tasks: []tracking.Task{{ID: id, CreatedAt: start}}}
	}
	for _, id := range []tracking.TaskID{"unknown", "refused"} {
		if _, err := s.Commit(t.Context(), app, cs(id)); !errors.Is(err, tracking.ErrUnavailable) {
			t.Errorf("Commit %s: got error %v, want ErrUnavailable", id, err)
		}
	}
	if s.Health() == nil {
		t.Error("Health knows nothing of it")
	}
	hasTask(t, s, "before")
	if _, err := s.Task(t.Context(), app, "refused"); !errors.Is(err, tracking.ErrNotFound) {
		t.Errorf("a change after the failed sync: %v", err)
	}
	s.Close()
	s = open(t, path, nil)
	defer closeStore(t, s)
	hasTask(t, s, "before")
	commitTask(t, s, "after")
	if err := s.Health(); err != nil {
		t.Error(err)
	}
}

// TestFailedWrite has the disk fail and be full for a while: the change is refused, reads go on,
// and writing resumes by itself.
func TestFailedWrite(t *testing.T) {
	for name, code := range map[string]int32{"error": codes.SQLITE_IOERR_WRITE, "full": codes.SQLITE_FULL} {
		t.Run(name, func(t *testing.T) {
			v := registerVFS(t, "failed-write-"+name)
			s := open(t, filepath.Join(fastDir(t), "tracking.db"), sqlite.Options{}.WithVFS(v.Name(), "FULL", 1000))
			defer closeStore(t, s)
			commitTask(t, s, "before")
			v.SetFault(func(op powervfs.Op) int32 {
				if op.Kind == powervfs.Write {
					return code
				}
				return 0
			})
			for range 3 {
				_, err := s.Commit(t.Context(), app, &tracking.Changeset{Tasks: []tracking.Task{{
					ID: "refused", CreatedAt: start,
				}}})
				if !errors.Is(err, tracking.ErrUnavailable) {
					t.Errorf("got error %v, want ErrUnavailable", err)
				}
				hasTask(t, s, "before")
			}
			v.SetFault(nil)
			if err := s.Health(); err != nil {
				t.Errorf("Health: %v", err)
			}
			commitTask(t, s, "after")
			if _, err := s.Task(t.Context(), app, "refused"); !errors.Is(err, tracking.ErrNotFound) {
				t.Errorf("the refused change: %v", err)
			}
		})
	}
}

// TestDamageMet damages a page of a running store's file: who reads it is told, Health says so, and
// nothing more is written.
func TestDamageMet(t *testing.T) {
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, nil)
	var cs tracking.Changeset
	for i := range 2000 {
		cs.Tasks = append(cs.Tasks, tracking.Task{
			ID: tracking.TaskID(fmt.Sprintf("task-%04d", i)), Notes: strings.Repeat("n", 200), CreatedAt: start,
		})
	}
	if _, err := s.Commit(t.Context(), app, &cs); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	damagePages(t, path)

	s = open(t, path, nil)
	defer s.Close()
	var met error
	for _, task := range cs.Tasks {
		if _, err := s.Task(t.Context(), app, task.ID); err != nil {
			met = err
		}
	}
	if !errors.Is(met, sqlite.ErrDamaged) || !errors.Is(met, tracking.ErrUnavailable) {
		t.Errorf("reading met %v, want ErrDamaged and ErrUnavailable", met)
	}
	if err := s.Health(); !errors.Is(err, sqlite.ErrDamaged) {
		t.Errorf("Health: %v", err)
	}
	if _, err := s.Commit(t.Context(), app, &tracking.Changeset{}); !errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("Commit: %v", err)
	}
}

// TestIndexCannotBeFilled has the drivers' rows unreadable for a while: everything else is served,
// and who is near is known once they can be read.
func TestIndexCannotBeFilled(t *testing.T) {
	v := registerVFS(t, "index")
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, nil)
	cs := &tracking.Changeset{}
	for i := range 3000 {
		id := tracking.DriverID(fmt.Sprintf("driver-%04d", i))
		cs.Drivers = append(cs.Drivers, tracking.Driver{ID: id, Name: strings.Repeat("n", 200), CreatedAt: start})
		cs.Fixes = append(cs.Fixes, tracking.FixBatch{
			DriverID: id, SeenAt: start, KeepOffDuty: true, Fixes: []tracking.Fix{{Time: start}},
		})
	}
	if _, err := s.Commit(t.Context(), app, cs); err != nil {
		t.Fatal(err)
	}
	commitTask(t, s, "a")
	closeStore(t, s)

	const schema = 500 << 10 // bytes; the tables' first pages are before it
	v.SetFault(func(op powervfs.Op) int32 {
		if op.Kind == powervfs.Read && op.File == "tracking.db" && op.Offset > schema {
			return codes.SQLITE_IOERR_READ
		}
		return 0
	})
	s = open(t, path, sqlite.Options{}.WithVFS(v.Name(), "FULL", 1000))
	defer func() { closeStore(t, s) }()
	near := func() (int, error) {
		list, _, err := s.Drivers(t.Context(), app, tracking.DriverFilter{
			Near: new(tracking.LngLat), Page: tracking.Page{Limit: 5},
		})
		return len(list), err
	}
	if n, err := near(); !errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("%d are near, error %v, want ErrUnavailable", n, err)
	}
	if _, err := s.Keys(t.Context(), app); err != nil {
		t.Errorf("Keys: %v", err)
	}
	if s.Health() == nil {
		t.Error("Health knows nothing of it")
	}
	v.SetFault(nil)
	if n, err := near(); n != 5 || err != nil {
		t.Errorf("%d are near, error %v", n, err)
	}
	if err := s.Health(); err != nil {
		t.Errorf("Health: %v", err)
	}
}

// Packed fixes that do not unpack, that begin at another time than their block, or that are none, are a
// damaged file.
func TestDamagedFixes(t *testing.T) {
	damages := map[string]string{
		"open fixes": `UPDATE positions SET open = x'ff'`, "a block": `UPDATE fix_blocks SET fixes = x'ff'`,
		"an empty block":      `UPDATE fix_blocks SET fixes = x''`,
		"a block's beginning": `UPDATE fix_blocks SET first = first - 1`,
	}
	meets := map[string]func(s *sqlite.Store) error{
		"read": func(s *sqlite.Store) error {
			_, err := s.KeptFixes(t.Context(), app, "d", tracking.FixRange{Limit: 1000})
			return err
		},
		"written": func(s *sqlite.Store) error { return recordAt(t, s, "d", -time.Second, "") },
		"purged": func(s *sqlite.Store) error {
			_, err := s.Purge(t.Context(), tracking.Before{Fixes: start.Add(time.Hour), Limit: 1000})
			return err
		},
	}
	for damage, statement := range damages {
		for name, meet := range meets {
			t.Run(damage+" "+name, func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "tracking.db")
				s := open(t, path, nil)
				cs := &tracking.Changeset{Drivers: []tracking.Driver{{ID: "d", Available: true, CreatedAt: start}}}
				if _, err := s.Commit(t.Context(), app, cs); err != nil {
					t.Fatal(err)
				}
				for n := range 20 {
					if err := recordAt(t, s, "d", time.Duration(n)*time.Second, strings.Repeat("e", 100)); err != nil {
						t.Fatal(err)
					}
				}
				closeStore(t, s)
				db := raw(t, path)
				if n, err := db.MustExec(statement).RowsAffected(); err != nil || n == 0 {
					t.Fatal(n, err)
				}
				db.Close()
				s = open(t, path, &sqlite.Options{Logger: slog.New(slog.DiscardHandler)})
				defer s.Close()
				if err := meet(s); !errors.Is(err, tracking.ErrUnavailable) || !errors.Is(err, sqlite.ErrDamaged) {
					t.Errorf("got error %v", err)
				}
				if err := s.Health(); !errors.Is(err, sqlite.ErrDamaged) {
					t.Errorf("Health: %v", err)
				}
			})
		}
	}
}

// recordAt records a fix so long after start.
func recordAt(t testing.TB, s *sqlite.Store, driver tracking.DriverID, after time.Duration, event string) error {
	t.Helper()
	_, err := s.RecordFixes(t.Context(), app, tracking.FixBatch{
		DriverID: driver, SeenAt: start, KeepOffDuty: true, Fixes: []tracking.Fix{{
			Time: start.Add(after), LngLat: tracking.LngLat{Lng: 11, Lat: 48}, EventID: event,
		}},
	})
	return err
}

// A fix whose event id alone is longer than what stays open of a driver's, is one like another.
func TestLongestEventID(t *testing.T) {
	for name, next := range map[string]time.Duration{"a newer one follows": time.Second, "an older one follows": -time.Second} {
		t.Run(name, func(t *testing.T) {
			s := open(t, filepath.Join(t.TempDir(), "tracking.db"), nil)
			defer s.Close()
			cs := &tracking.Changeset{Drivers: []tracking.Driver{{ID: "d", Available: true, CreatedAt: start}}}
			if _, err := s.Commit(t.Context(), app, cs); err != nil {
				t.Fatal(err)
			}
			for _, after := range []time.Duration{0, next, 2 * next} {
				if err := recordAt(t, s, "d", after, strings.Repeat("😀", 128)); err != nil {
					t.Fatal(err)
				}
			}
			kept, err := s.KeptFixes(t.Context(), app, "d", tracking.FixRange{Limit: 10})
			if err != nil || len(kept) != 3 {
				t.Errorf("%d are kept, error %v", len(kept), err)
			}
		})
	}
}
