package storetest

import (
	"bytes"
	"context"
	"io"
	"slices"

	"github.com/seed-8aba7b13/tracking"
)

// file is a file of the reference.
type file struct {
	tracking.File
	named bool // a purge has found that its task names it
}

// referenceFiles is the reference as tracking.Files.
type referenceFiles struct{ r *reference }

func (r *reference) Files() tracking.Files { return referenceFiles{r} }

func (f referenceFiles) Put(ctx context.Context, app tracking.AppID, id string, v tracking.File) error {
	b, err := f.r.enter(ctx, app)
	if err != nil {
		return err
	}
	defer f.r.mu.Unlock()
	if !sound(string(app)) || !sound(id) || !sound(string(v.TaskID)) || !sound(v.Type) {
		return tracking.ErrInvalid
	}
	f.r.apps[app] = b
	b.files[id] = &file{File: tracking.File{TaskID: v.TaskID, Type: v.Type, At: millis(v.At), Data: bytes.Clone(v.Data)}}
	return nil
}

func (f referenceFiles) Open(ctx context.Context, app tracking.AppID, id string) (io.ReadCloser, error) {
	b, err := f.r.enter(ctx, app)
	if err != nil {
		return nil, err
	}
	defer f.r.mu.Unlock()
	if b.files[id] == nil {
		return nil, tracking.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(b.files[id].Data)), nil
}

func (f referenceFiles) Delete(ctx context.Context, app tracking.AppID, id string) error {
	b, err := f.r.enter(ctx, app)
	if err != nil {
		return err
	}
	defer f.r.mu.Unlock()
	delete(b.files, id)
	return nil
}

// orphan reports whether a file is none of its task's.
func (b *book) orphan(id string, f *file) bool {
	f.named = f.named || slices.ContainsFunc(b.tasks[f.TaskID].Proofs, func(p tracking.Proof) bool { return p.ID == id })
	return !f.named
}
