package sqlite

import (
	"bytes"
	"cmp"
	"context"
	"io"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// files is the store as [tracking.Files].
type files struct{ s *Store }

// Files implements [tracking.Store]: the files lie in the same one as the rows, and in its backups.
func (s *Store) Files() tracking.Files { return files{s} }

const (
	upsertFile = `
INSERT INTO files (app, id, task, type, put_at, loose, data) VALUES (?, ?, ?, ?, ?, 1, ?)
ON CONFLICT DO UPDATE SET task = excluded.task, type = excluded.type, put_at = excluded.put_at, loose = 1, data = excluded.data`
	selectFile = `SELECT data FROM files WHERE app = ? AND id = ?`
	deleteFile = `DELETE FROM files WHERE app = ? AND id = ?`
)

// bytesARow is how many bytes of a file hold up others like a row does.
const bytesARow = 1 << 10

// Put implements [tracking.Files].
func (f files) Put(ctx context.Context, app tracking.AppID, id string, file tracking.File) error {
	if err := cmp.Or(ctx.Err(), rows.Texts(string(app), id, string(file.TaskID), file.Type)); err != nil {
		return err
	}
	return f.s.write(ctx, change{lane: large, rows: 1 + len(file.Data)/bytesARow, atom: true, apply: func(x *tx) error {
		n, err := x.app(app)
		if err != nil {
			return err
		}
		data := file.Data
		if data == nil {
			data = []byte{} // nil is NULL
		}
		return x.exec(upsertFile, n, id, file.TaskID, file.Type, file.At.UnixMilli(), data)
	}})
}

// Open implements [tracking.Files].
func (f files) Open(ctx context.Context, app tracking.AppID, id string) (io.ReadCloser, error) {
	n, _ := f.s.apps.Number(app)
	var data []byte
	err := f.s.read(ctx, func(ctx context.Context) error { return f.s.get(ctx, &data, selectFile, n, id) })
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// Delete implements [tracking.Files].
func (f files) Delete(ctx context.Context, app tracking.AppID, id string) error {
	n, _ := f.s.apps.Number(app)
	return f.s.write(ctx, change{lane: large, rows: 1, atom: true, apply: func(x *tx) error {
		return x.exec(deleteFile, n, id)
	}})
}

const (
	selectLoose = `SELECT n FROM files INDEXED BY files_loose WHERE loose = 1 AND put_at < ? ORDER BY put_at, n LIMIT ?`
	isNamed     = ` EXISTS (SELECT 1 FROM tasks t, json_each(t.more, '$.proofs') p
		WHERE t.app = files.app AND t.id = files.task AND p.value ->> 'id' = files.id)`
	keepNamed    = `UPDATE files SET loose = 0 WHERE n IN (` + selectLoose + `) AND` + isNamed
	purgeOrphans = `DELETE FROM files WHERE n IN (` + selectLoose + `) AND NOT` + isNamed
)

// purgeFiles removes files that their tasks do not name, of the first limit that no purge has found
// named. Those that are named it will not look at again.
func (x *tx) purgeFiles(before int64, limit int, p *tracking.Purged) (err error) {
	if p.Files, err = x.changed(purgeOrphans, before, limit); err != nil {
		return err
	}
	return x.exec(keepNamed, before, limit)
}
