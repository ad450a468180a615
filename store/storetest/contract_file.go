package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// fileChecks are about the files that the store keeps, and what Purge does to them.
func fileChecks() []check {
	return []check{
		{"Files/what was put comes back byte for byte, 2 MiB of it too", filesComeBackWhole},
		{"Files/Put keeps the bytes instead of those before, apart from the caller's", filesAreReplaced},
		{"Files/one that is not there is ErrNotFound, and no error to delete", missingFilesAreNotFound},
		{"Files/another application's is like one that is not there", filesAreOfOneApp},
		{"Files/many at once", filesAtOnce},
		{"Purge/removes old files that their task does not name, and no others", purgeRemovesOrphans},
		{"Purge/keeps a file that it has found named, until it is put anew", purgeKeepsWhatWasNamed},
		{"Purge/removes at most Limit files, and all of them in the end", purgeOfFilesKeepsToItsLimit},
	}
}

func (c *client) putFile(id string, f tracking.File) {
	c.Helper()
	c.ok(c.s.Files().Put(c.ctx, c.app, id, f))
}

// readFile reads a file whole; nil when there is none.
func readFile(ctx context.Context, s tracking.Store, app tracking.AppID, id string) ([]byte, error) {
	r, err := s.Files().Open(ctx, app, id)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if data == nil {
		data = []byte{}
	}
	return data, err
}

// file expects what a file holds; nil: that there is none.
func (c *client) file(id string, want []byte) {
	c.Helper()
	got, err := readFile(c.ctx, c.s, c.app, id)
	switch {
	case want == nil:
		missing(c, "file "+id, err)
	case err != nil:
		c.Errorf("file %s: %v", id, err)
	case !bytes.Equal(got, want):
		c.Errorf("file %s: got %d bytes, want %d others", id, len(got), len(want))
	}
}

// noise is n bytes that depend on seed.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
	r.Read(b)
	return b
}

func filesComeBackWhole(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	for i, n := range []int{0, 1, 511, 4096, tracking.MaxProofSize} {
		id := fmt.Sprint("f", i)
		c.putFile(id, tracking.File{TaskID: "t", Type: "image/png", At: t0, Data: noise(uint64(i), n)})
		c.file(id, noise(uint64(i), n))
	}
	c.file("f1", noise(1, 1)) // the others have left it alone
	c.file("F1", nil)
}

func filesAreReplaced(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	data := []byte("first")
	c.putFile("a", tracking.File{TaskID: "t", At: t0, Data: data})
	copy(data, "xxxxx") // it is the caller's again
	c.file("a", []byte("first"))
	got, err := readFile(c.ctx, s, here, "a")
	c.ok(err)
	copy(got, "xxxxx")
	c.file("a", []byte("first"))
	c.putFile("a", tracking.File{TaskID: "u", At: t0, Data: []byte("2nd")})
	c.file("a", []byte("2nd"))
}

func missingFilesAreNotFound(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.file("a", nil)
	c.ok(s.Files().Delete(c.ctx, here, "a"))
	c.putFile("a", tracking.File{TaskID: "t", At: t0, Data: []byte("a")})
	c.putFile("b", tracking.File{TaskID: "t", At: t0, Data: []byte("b")})
	for range 2 {
		c.ok(s.Files().Delete(c.ctx, here, "a"))
		c.file("a", nil)
		c.file("b", []byte("b"))
	}
	c.putFile("a", tracking.File{TaskID: "t", At: t0, Data: []byte("again")})
	c.file("a", []byte("again"))
}

func filesAreOfOneApp(t testing.TB, s tracking.Store) {
	c, o := use(t, s, here), use(t, s, there)
	c.putFile("a", tracking.File{TaskID: "t", At: t0, Data: []byte("here")})
	o.file("a", nil)
	o.ok(s.Files().Delete(o.ctx, there, "a"))
	c.file("a", []byte("here"))
	o.putFile("a", tracking.File{TaskID: "t", At: t0, Data: []byte("there")})
	c.file("a", []byte("here"))
	o.file("a", []byte("there"))
	c.ok(s.Files().Delete(c.ctx, here, "a"))
	c.file("a", nil)
	o.file("a", []byte("there"))
}

// filesAtOnce has many put, read and delete files of their own, and one that all of them have: of
// that nobody may see a part.
func filesAtOnce(t testing.TB, s tracking.Store) {
	const size = 64 << 10
	use(t, s, here).putFile("all", tracking.File{TaskID: "t", At: t0, Data: bytes.Repeat([]byte{0}, size)})
	err := together(t, 8, func(ctx context.Context, i int) error {
		own := fmt.Sprint("own ", i)
		for n := range 5 {
			mine := noise(uint64(10*i+n), size+n)
			err := errors.Join(
				s.Files().Put(ctx, here, own, tracking.File{TaskID: "t", At: t0, Data: mine}),
				s.Files().Put(ctx, here, "all", tracking.File{TaskID: "t", At: t0, Data: bytes.Repeat([]byte{byte(i)}, size)}),
			)
			if err != nil {
				return err
			}
			got, err := readFile(ctx, s, here, own)
			if err != nil || !bytes.Equal(got, mine) {
				return fmt.Errorf("the own file: %d bytes, error %w", len(got), err)
			}
			got, err = readFile(ctx, s, here, "all")
			if err != nil || len(got) != size || !bytes.Equal(got, bytes.Repeat(got[:1], size)) {
				return fmt.Errorf("the file of all: %d bytes of several, error %w", len(got), err)
			}
			if err := s.Files().Delete(ctx, here, own); err != nil {
				return err
			}
			if _, err = readFile(ctx, s, here, own); !errors.Is(err, tracking.ErrNotFound) {
				return fmt.Errorf("the own file, deleted: error %w", err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// proving is a task that names these files.
func proving(id tracking.TaskID, files ...string) tracking.Task {
	t := newTask(id, t0)
	for _, f := range files {
		t.Proofs = append(t.Proofs, tracking.Proof{ID: f, Kind: tracking.ProofPhoto, At: t0, Type: "image/png", Size: 1})
	}
	return t
}

func purgeRemovesOrphans(t testing.TB, s tracking.Store) {
	c, o := use(t, s, here), use(t, s, there)
	c.commit(tracking.Changeset{Tasks: []tracking.Task{proving("t", "named", "also named", "of u"), newTask("u", t0)}})
	o.commit(tracking.Changeset{Tasks: []tracking.Task{proving("t", "orphan")}})
	put := func(c *client, id string, task tracking.TaskID, at time.Time) {
		c.putFile(id, tracking.File{TaskID: task, Type: "image/png", At: at, Data: []byte(id)})
	}
	put(c, "named", "t", t0)
	put(c, "also named", "t", t0)
	put(c, "orphan", "t", t0) // the task of the other application names one of this id
	put(c, "of u", "u", t0)
	put(c, "of none", "none", t0)
	put(c, "young", "t", minute(2))
	put(o, "orphan", "t", t0)
	put(o, "named", "t", t0)

	same(t, "purged when nothing is said of files", c.purge(tracking.Before{Limit: 100}), tracking.Purged{})
	same(t, "purged before any was put", c.purge(tracking.Before{Files: t0, Limit: 100}), tracking.Purged{})
	got := c.purge(tracking.Before{Files: t0.Add(time.Millisecond), Limit: 100})
	same(t, "purged", got, tracking.Purged{Files: 4})
	same(t, "their number", got.Total(), 4)
	for _, id := range []string{"named", "also named", "young"} {
		c.file(id, []byte(id))
	}
	for _, id := range []string{"orphan", "of u", "of none"} {
		c.file(id, nil)
	}
	o.file("orphan", []byte("orphan"))
	o.file("named", nil)
	same(t, "purged again", c.purge(tracking.Before{Files: minute(2), Limit: 100}), tracking.Purged{})
	same(t, "purged later", c.purge(tracking.Before{Files: minute(3), Limit: 100}), tracking.Purged{Files: 1})
	c.file("young", nil)
}

func purgeKeepsWhatWasNamed(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{Tasks: []tracking.Task{proving("t", "a", "b")}})
	for _, id := range []string{"a", "b"} {
		c.putFile(id, tracking.File{TaskID: "t", At: t0, Data: []byte(id)})
	}
	before := tracking.Before{Files: minute(1), Limit: 100}
	same(t, "purged while they are named", c.purge(before), tracking.Purged{})
	task := c.task("t")
	task.Proofs = nil
	c.commit(tracking.Changeset{Tasks: []tracking.Task{task}})
	same(t, "purged when they are named no more", c.purge(before), tracking.Purged{})
	c.putFile("a", tracking.File{TaskID: "t", At: t0, Data: []byte("anew")})
	same(t, "purged after one was put anew", c.purge(before), tracking.Purged{Files: 1})
	c.file("a", nil)
	c.file("b", []byte("b"))

	c.commit(tracking.Changeset{Tasks: []tracking.Task{proving("u", "moved")}})
	for _, of := range []tracking.TaskID{"t", "u"} { // the last one says whose it is
		c.putFile("moved", tracking.File{TaskID: of, At: t0, Data: []byte("moved")})
	}
	same(t, "purged after one was put for another task", c.purge(before), tracking.Purged{})
	c.file("moved", []byte("moved"))
}

func purgeOfFilesKeepsToItsLimit(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	var named []string
	for i := range 20 {
		id := fmt.Sprintf("%02d", i)
		if i%3 == 0 {
			named = append(named, id)
		}
		c.putFile(id, tracking.File{TaskID: "t", At: t0, Data: []byte(id)})
	}
	c.commit(tracking.Changeset{Tasks: []tracking.Task{proving("t", named...)}})
	gone := 0
	for range 20 {
		n := c.purge(tracking.Before{Files: minute(1), Limit: 3}).Files
		if n > 3 {
			t.Fatalf("Purge of at most 3 removed %d", n)
		}
		gone += n
	}
	same(t, "purged in all", gone, 13)
	for _, id := range named {
		c.file(id, []byte(id))
	}
}
