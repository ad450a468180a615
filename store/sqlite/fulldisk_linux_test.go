package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// TestFullDiskOfItsOwn fills a small file system, of which root can make one for the test.
func TestFullDiskOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=6m"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "tracking.db")
	s := open(t, path, nil)
	defer func() { closeStore(t, s) }()
	id := crew(t, s, 1)[0]
	indexed(t, s)
	for n := range 2 {
		if _, err := s.RecordFixes(t.Context(), app, drive(id, start.Add(time.Duration(n)*time.Second), 1)); err != nil {
			t.Fatal(err)
		}
	}
	here := func() {
		t.Helper()
		if d, err := s.Driver(t.Context(), app, id); err != nil || !d.Position.Fix.Time.Equal(start.Add(time.Second)) {
			t.Errorf("the driver is where he was at %v, error %v", d.Position.Fix.Time, err)
		}
	}
	here()
	if late, _ := s.Late(); late != 1 {
		t.Errorf("%d drivers are late, want 1", late)
	}
	ballast := filepath.Join(dir, "ballast")
	writeFile(t, ballast, make([]byte, 3<<20))

	changeset := func(i int) *tracking.Changeset {
		cs := pair(i)
		cs.Tasks[0].Notes = strings.Repeat("n", 20000)
		return cs
	}
	acked := 0
	var full error
	for ; full == nil && acked < 1000; acked++ {
		_, full = s.Commit(t.Context(), app, changeset(acked))
	}
	if acked--; !errors.Is(full, tracking.ErrUnavailable) {
		t.Fatalf("after %d changes: %v", acked, full)
	}
	for range 20 { // it stays full
		if _, err := s.Commit(t.Context(), app, changeset(1000)); !errors.Is(err, tracking.ErrUnavailable) {
			t.Fatalf("got error %v, want ErrUnavailable", err)
		}
	}
	for i := range acked {
		if !there(t, s, i) {
			t.Errorf("changeset %d is lost", i)
		}
	}
	if err := s.Health(); err != nil {
		t.Errorf("Health: %v", err)
	}

	// It is opened again while the disk is full.
	if err := s.Close(); err != nil {
		t.Logf("Close: %v", err)
	}
	s = open(t, path, nil)
	here()
	for i := range acked {
		if !there(t, s, i) {
			t.Errorf("changeset %d is lost", i)
		}
	}
	if _, err := s.Commit(t.Context(), app, changeset(1000)); !errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("got error %v, want ErrUnavailable", err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), app, changeset(1000)); err != nil {
		t.Errorf("there is room again: %v", err)
	}
	if there(t, s, acked) {
		t.Error("a refused change is there")
	}
}
