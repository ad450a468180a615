package sqlite_test

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/seed-8aba7b13/tracking"
)

// A file for which there is no room leaves nothing, and what was there before stays; with room
// again it is kept, and a backup has it.
func TestFilesOnFullDisk(t *testing.T) {
	s := open(t, filepath.Join(fastDir(t), "tracking.db"), nil)
	defer closeStore(t, s)
	put := func(id string, size int, fill byte) error {
		return s.Files().Put(t.Context(), app, id, tracking.File{
			TaskID: "t", Type: "image/png", At: start, Data: bytes.Repeat([]byte{fill}, size),
		})
	}
	check := func(s tracking.Store, id string, size int, fill byte) {
		t.Helper()
		r, err := s.Files().Open(t.Context(), app, id)
		if size == 0 {
			if !errors.Is(err, tracking.ErrNotFound) {
				t.Errorf("%s is there: error %v", id, err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, bytes.Repeat([]byte{fill}, size)) {
			t.Errorf("%s has %d bytes, want %d, error %v", id, len(got), size, err)
		}
	}
	if err := put("a", 1000, 'a'); err != nil {
		t.Fatal(err)
	}
	if err := s.LimitPages(200); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if err := put(id, tracking.MaxProofSize, 'b'); !errors.Is(err, tracking.ErrUnavailable) {
			t.Errorf("%s on a full disk: error %v", id, err)
		}
	}
	check(s, "a", 1000, 'a')
	check(s, "b", 0, 0)
	if err := s.Health(); err != nil {
		t.Errorf("Health: %v", err)
	}
	if err := s.LimitPages(1 << 20); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if err := put(id, tracking.MaxProofSize, 'c'); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := s.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	copied := open(t, path, nil)
	defer closeStore(t, copied)
	for _, store := range []tracking.Store{s, copied} {
		check(store, "a", tracking.MaxProofSize, 'c')
		check(store, "b", tracking.MaxProofSize, 'c')
	}
}
