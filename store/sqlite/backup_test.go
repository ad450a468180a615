package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// TestBackup copies a store that is being written to, 20 times: each copy holds what was
// acknowledged when the copy began, and nothing half.
func TestBackup(t *testing.T) {
	dir := fastDir(t)
	s := open(t, filepath.Join(dir, "tracking.db"), nil)
	l := &ledger{}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		w := newWorkload(t, s, l)
		for i := 0; ctx.Err() == nil; i++ {
			w.round(t.Context(), i)
		}
		if w.failed > 0 {
			t.Errorf("%d operations failed", w.failed)
		}
	})
	path := filepath.Join(dir, "copy.db") // each replaces the one before
	for range 20 {
		l.mu.Lock()
		acked := len(l.facts)
		l.mu.Unlock()
		if err := s.Backup(t.Context(), path); err != nil {
			t.Fatal(err)
		}
		l.mu.Lock()
		missing, err := checkImage(t.Context(), path, l, acked)
		l.mu.Unlock()
		if err != nil {
			t.Errorf("%d of %d are missing from the copy: %v", missing, acked, err)
		}
	}
	cancel()
	wg.Wait()
	closeStore(t, s)
	for name := range files(t, dir) {
		if strings.Contains(name, "partial") {
			t.Errorf("%s was left behind", name)
		}
	}
}

// TestBackupCutShort leaves what was there before under the name.
func TestBackupCutShort(t *testing.T) {
	dir := fastDir(t)
	path := filepath.Join(dir, "tracking.db")
	s := open(t, path, nil)
	defer closeStore(t, s)
	commitTask(t, s, "a")
	copied := filepath.Join(dir, "copy.db")
	if err := s.Backup(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	before := string(files(t, dir)["copy.db"])
	commitTask(t, s, "b")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Backup(ctx, copied); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want context.Canceled", err)
	}
	writeFile(t, copied+".partial", []byte("what a killed process has left")) // is no obstacle
	if string(files(t, dir)["copy.db"]) != before {
		t.Error("the copy has changed")
	}
	if err := s.Backup(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	c := open(t, copied, nil)
	defer closeStore(t, c)
	hasTask(t, c, "b")
}

func TestBackupRefused(t *testing.T) {
	dir := fastDir(t)
	path := filepath.Join(dir, "tracking.db")
	s := open(t, path, nil)
	commitTask(t, s, "a")
	for _, to := range []string{path, path + "-wal", path + "-lock", dir, filepath.Join(dir, "none", "copy.db")} {
		if err := s.Backup(t.Context(), to); err == nil {
			t.Errorf("a backup to %s is taken", to)
		}
	}
	hasTask(t, s, "a")
	closeStore(t, s)
	if err := s.Backup(t.Context(), filepath.Join(dir, "copy.db")); !errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("a backup of a closed store: %v", err)
	}
	m := open(t, sqlite.Memory, nil)
	defer closeStore(t, m)
	if err := m.Backup(t.Context(), filepath.Join(dir, "copy.db")); err == nil {
		t.Error("a backup of a store in memory is taken")
	}
}

// logSize is the length of a store's log in bytes.
func logSize(t testing.TB, path string) int64 {
	t.Helper()
	st, err := os.Stat(path + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	return st.Size()
}

// TestLogIsBounded writes much while a reader stays in the middle of a path and others read all the
// time: the log does not grow without end.
func TestLogIsBounded(t *testing.T) {
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, nil)
	defer closeStore(t, s)
	if _, err := s.Commit(t.Context(), app,
		&tracking.Changeset{Drivers: []tracking.Driver{{ID: "a", Available: true, CreatedAt: start}}}); err != nil {
		t.Fatal(err)
	}
	fixes := func(n int) {
		t.Helper()
		b := tracking.FixBatch{DriverID: "a", SeenAt: start}
		for i := range 1000 {
			b.Fixes = append(b.Fixes, tracking.Fix{
				Time: start.Add(time.Duration(1000*n+i) * time.Second), EventID: strings.Repeat("e", 300),
			})
		}
		if _, err := s.RecordFixes(t.Context(), app, b); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 3 {
		fixes(n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var reads atomic.Int64
	for range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, err := s.Driver(ctx, app, "a"); err == nil {
					reads.Add(1)
				}
			}
		})
	}
	rounds := 100
	switch {
	case long():
		rounds = 1000
	case raceDetector:
		rounds = 10
	}
	const most = 64 << 20
	n, at, largest := 0, 0, int64(0)
	for _, err := range s.Fixes(t.Context(), app, "a", tracking.FixRange{Limit: 2500}) {
		if err != nil {
			t.Fatal(err)
		}
		if at++; at != 1 && at != 1500 {
			continue
		}
		for range rounds / 2 { // the loop's body takes long
			n++
			fixes(10 + n)
			largest = max(largest, logSize(t, path))
		}
	}
	if at != 2500 {
		t.Errorf("the path has %d fixes", at)
	}
	cancel()
	wg.Wait()
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the file has %d MiB, the log had %d MiB at most, during %d reads", st.Size()>>20, largest>>20, reads.Load())
	if largest > most {
		t.Errorf("the log grew to %d bytes", largest)
	}
}

// TestFullDisk fills a file up to a number of pages: changes are refused, reads go on, and writing
// resumes by itself when there is room again.
func TestFullDisk(t *testing.T) {
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, nil)
	defer closeStore(t, s)
	commitTask(t, s, "before")
	if err := s.LimitPages(200); err != nil {
		t.Fatal(err)
	}
	var full error
	acked := 0
	for i := 0; full == nil && i < 100000; i++ {
		if _, full = s.Commit(t.Context(), app, pair(i)); full == nil {
			acked++
		}
	}
	var e *tracking.Error
	if !errors.As(full, &e) || e.Code != tracking.ErrUnavailable || !strings.Contains(e.Message, "full") {
		t.Fatalf("after %d changes: %v", acked, full)
	}
	if err := s.Health(); err != nil {
		t.Errorf("Health: %v", err)
	}
	for i := range acked {
		if !there(t, s, i) {
			t.Errorf("changeset %d is lost", i)
		}
	}
	if there(t, s, acked) {
		t.Error("the refused change is there")
	}
	if err := s.LimitPages(1 << 20); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if _, err := s.Commit(t.Context(), app, pair(acked+i)); err != nil {
			t.Fatal(fmt.Errorf("there is room again: %w", err))
		}
	}
}
