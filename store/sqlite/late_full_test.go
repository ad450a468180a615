package sqlite_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	codes "modernc.org/sqlite/lib"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
	"github.com/seed-8aba7b13/tracking/store/sqlite/internal/powervfs"
)

// TestLittleRoom leaves a disk room for a fix, and not for all rows that are behind: fixes are still
// kept, but for one now and then, and the rows follow when there is room.
func TestLittleRoom(t *testing.T) {
	const drivers, room = 400, 100 << 10
	v := registerVFS(t, "little-room")
	opts := sqlite.Options{}.WithVFS(v.Name(), "FULL", 1<<20).WithJournal(100_000, 2*drivers)
	s := open(t, filepath.Join(fastDir(t), "tracking.db"), opts)
	defer closeStore(t, s)
	ids := crew(t, s, drivers)
	indexed(t, s)
	n := 0
	record := func(id tracking.DriverID) error {
		n++
		_, err := s.RecordFixes(t.Context(), app, drive(id, start.Add(time.Duration(n)*time.Second), 1))
		return err
	}
	for range 2 {
		for _, id := range ids {
			if err := record(id); err != nil {
				t.Fatal(err)
			}
		}
	}
	if late, sweeps := s.Late(); late != drivers || sweeps != 0 {
		t.Fatalf("%d drivers are late after %d sweeps", late, sweeps)
	}
	written := 0
	v.SetFault(func(op powervfs.Op) int32 {
		switch {
		case op.Kind == powervfs.Sync:
			written = 0
		case op.Kind == powervfs.Write && strings.HasSuffix(op.File, "-wal"):
			if written += len(op.Data); written > room {
				return codes.SQLITE_FULL
			}
		}
		return 0
	})
	refused := 0
	for range 4000 {
		if err := record(ids[0]); errors.Is(err, tracking.ErrUnavailable) {
			written = 0 // what was begun is gone
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if _, sweeps := s.Late(); sweeps != 0 || refused == 0 || refused > 5 {
		t.Errorf("%d fixes of 4000 were refused, after %d sweeps", refused, sweeps)
	}
	v.SetFault(nil)
	for range 4000 {
		if err := record(ids[0]); err != nil {
			t.Fatal(err)
		}
	}
	if _, sweeps := s.Late(); sweeps == 0 {
		t.Error("there is room again, and the rows do not follow")
	}
}
