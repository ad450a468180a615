package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Backup writes a copy of the store as it is now to path, while it goes on working. The copy is
// checked and synced before it gets its name: whatever is at path when Backup returns nil is
// complete, and a Backup that is cut short leaves what was there before. It can be opened with
// [Open].
//
// One Backup runs at a time. Until it has ended the log cannot start again from its beginning, and
// grows by what is written meanwhile.
func (s *Store) Backup(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.backupBegins(ctx); err != nil {
		return err
	}
	defer s.backupEnds()
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return rows.ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	target, err := realPath(path)
	if err != nil {
		return err
	}
	if target == s.path || s.path != "" && strings.HasPrefix(target, s.path+"-") {
		return fmt.Errorf("sqlite: a backup to %s would overwrite the store; give another path", path)
	}
	return s.copyTo(ctx, target)
}

// backupBegins waits until no Backup or compaction runs, and keeps others waiting until backupEnds.
func (s *Store) backupBegins(ctx context.Context) error {
	select {
	case s.backup <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing.Done():
		return rows.ErrClosed
	}
}

// tryBackup is backupBegins for who does not wait.
func (s *Store) tryBackup() bool {
	select {
	case s.backup <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s *Store) backupEnds() { <-s.backup }

func (s *Store) backingUp() bool { return len(s.backup) > 0 }

// copyTo writes the file as it is now to path.
func (s *Store) copyTo(ctx context.Context, path string) (err error) {
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		return fmt.Errorf("sqlite: %s is not a file", path)
	}
	temp := path + ".partial"
	if err := removeFiles(temp); err != nil { // of a copy that was cut short
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeFiles(temp))
		}
	}()
	// VACUUM INTO takes an empty file, and leaves its mode
	f, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := s.vacuumInto(ctx, temp); err != nil {
		return err
	}
	if err := verify(ctx, temp); err != nil {
		return err
	}
	return publish(temp, path)
}

// vacuumInto uses a connection of its own. On one of the readers' it would be refused, since it
// writes.
func (s *Store) vacuumInto(ctx context.Context, path string) error {
	c := s.reading()
	c.pragmas = s.pragmas()
	if s.path == "" {
		return errors.New("sqlite: a store in memory has no backup")
	}
	db, err := c.open(1)
	if err != nil {
		return err
	}
	defer db.Close()
	u := connect{path: path, vfs: s.opts.vfs}
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, u.uri())
	return err
}

// verify reads a copy from end to end.
func verify(ctx context.Context, path string) error {
	db, err := connect{path: filepath.Clean(path), readOnly: true}.open(1)
	if err != nil {
		return err
	}
	defer db.Close()
	var faults []string
	if err := db.SelectContext(ctx, &faults, `PRAGMA integrity_check(10)`); err != nil {
		return err
	}
	if len(faults) != 1 || faults[0] != "ok" {
		return fmt.Errorf("%w: the copy failed its check: %s", ErrDamaged, strings.Join(faults, "; "))
	}
	return nil
}
