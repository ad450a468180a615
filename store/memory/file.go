package memory

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// files are those of one application.
type files struct {
	byID  map[string]*fileRow
	loose list[*fileRow] // by time: no purge has found them named yet
}

type fileRow struct {
	id    string
	task  tracking.TaskID
	typ   string
	at    time.Time
	data  []byte
	loose bool
}

func (r *fileRow) compare(o *fileRow) int { return cmp.Or(r.at.Compare(o.at), cmp.Compare(r.id, o.id)) }

func (x *files) put(r *fileRow) {
	x.drop(r.id)
	if x.byID == nil {
		x.byID = make(map[string]*fileRow)
	}
	x.byID[r.id] = r
	if r.loose {
		x.loose.insert(r, (*fileRow).compare)
	}
}

func (x *files) drop(id string) {
	r := x.byID[id]
	if r == nil {
		return
	}
	delete(x.byID, id)
	if r.loose {
		x.loose.remove(r, (*fileRow).compare)
	}
}

// fileStore is the store as [tracking.Files].
type fileStore struct{ s *Store }

// Files implements [tracking.Store].
func (s *Store) Files() tracking.Files { return fileStore{s} }

// Put implements [tracking.Files].
func (f fileStore) Put(ctx context.Context, app tracking.AppID, id string, file tracking.File) error {
	if err := f.s.ready(ctx); err != nil {
		return err
	}
	if err := rows.Texts(string(app), id, string(file.TaskID), file.Type); err != nil {
		return err
	}
	a := f.s.application(app)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.files.put(&fileRow{
		id: id, task: file.TaskID, typ: file.Type, at: rows.Time(file.At), data: bytes.Clone(file.Data), loose: true,
	})
	return nil
}

// Open implements [tracking.Files].
func (f fileStore) Open(ctx context.Context, app tracking.AppID, id string) (io.ReadCloser, error) {
	a, err := f.s.read(ctx, app)
	if err != nil {
		return nil, err
	}
	if a == nil {
		return nil, tracking.ErrNotFound
	}
	defer a.mu.RUnlock()
	r := a.files.byID[id]
	if r == nil {
		return nil, tracking.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(r.data)), nil // nobody writes to the bytes of a row
}

// Delete implements [tracking.Files].
func (f fileStore) Delete(ctx context.Context, app tracking.AppID, id string) error {
	if err := f.s.ready(ctx); err != nil {
		return err
	}
	for _, a := range f.s.applications(app, nil) {
		a.mu.Lock()
		a.files.drop(id)
		a.mu.Unlock()
	}
	return nil
}

// purgeFiles removes files put before t that their tasks do not name, and looks at limit of them at
// most. Those that are named it will not look at again.
func (a *application) purgeFiles(t time.Time, limit int) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	looked := 0
	purge(&a.files.loose, limit, &looked, func(r *fileRow) bool { return r.at.Before(t) }, func(r *fileRow) {
		if row := a.tasks.row(r.task); row != nil && names(row.task(), r.id) {
			a.files.loose.remove(r, (*fileRow).compare)
			r.loose = false
			return
		}
		a.files.drop(r.id)
		n++
	})
	return n
}

// names reports whether a file is one of the task's proofs.
func names(t tracking.Task, file string) bool {
	return slices.ContainsFunc(t.Proofs, func(p tracking.Proof) bool { return p.ID == file })
}
