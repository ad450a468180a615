package postgres

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// files is the store as [tracking.Files].
type files struct{ s *Store }

// Files implements [tracking.Store]: the files lie in the same schema as the rows.
func (s *Store) Files() tracking.Files { return files{s} }

const (
	upsertFile = `
INSERT INTO tracking.files (app, id, task, type, put_at, loose, data) VALUES ($1, $2, $3, $4, $5, true, $6)
ON CONFLICT (app, id) DO UPDATE SET task = excluded.task, type = excluded.type, put_at = excluded.put_at, loose = true,
	data = excluded.data`
	selectFile = `SELECT data FROM tracking.files WHERE app = $1 AND id = $2`
	deleteFile = `DELETE FROM tracking.files WHERE app = $1 AND id = $2`
)

// Put implements [tracking.Files].
func (f files) Put(ctx context.Context, app tracking.AppID, id string, file tracking.File) error {
	if err := cmp.Or(ctx.Err(), rows.Texts(string(app), id, string(file.TaskID), file.Type)); err != nil {
		return err
	}
	return f.s.call(ctx, func(ctx context.Context) error {
		n, err := f.s.register(ctx, app)
		if err != nil {
			return err
		}
		data := file.Data
		if data == nil {
			data = []byte{} // nil is NULL
		}
		_, err = f.s.pool.Exec(ctx, f.s.sql(upsertFile), n, id, string(file.TaskID), file.Type, file.At.UnixMilli(),
			data)
		return err
	})
}

// Open implements [tracking.Files].
func (f files) Open(ctx context.Context, app tracking.AppID, id string) (io.ReadCloser, error) {
	data, err := oneIn(ctx, f.s, app, pgx.RowTo[[]byte], selectFile, id)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

// Delete implements [tracking.Files].
func (f files) Delete(ctx context.Context, app tracking.AppID, id string) error {
	return f.s.call(ctx, func(ctx context.Context) error {
		n, err := f.s.number(ctx, app)
		if err == nil && rows.Text(id) {
			_, err = f.s.pool.Exec(ctx, f.s.sql(deleteFile), n, id)
		}
		return err
	})
}

const (
	insertSecret = `INSERT INTO tracking.secrets (name, value) VALUES ('store', $1) ON CONFLICT DO NOTHING`
	selectSecret = `SELECT value FROM tracking.secrets WHERE name = 'store'`
)

// Secret implements [tracking.Store]. Of several processes that ask for the first time at once, all
// get that of the one that was first.
func (s *Store) Secret(ctx context.Context) (secret []byte, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		err := s.pool.QueryRow(ctx, s.sql(selectSecret)).Scan(&secret)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		fresh := make([]byte, 32)
		if _, err := rand.Read(fresh); err != nil {
			return err
		}
		if _, err := s.pool.Exec(ctx, s.sql(insertSecret), fresh); err != nil {
			return err
		}
		return s.pool.QueryRow(ctx, s.sql(selectSecret)).Scan(&secret)
	})
	return secret, err
}

const (
	selectMemo = `SELECT value FROM tracking.memos WHERE name = $1`
	upsertMemo = `INSERT INTO tracking.memos (name, value) VALUES ($1, $2)
		ON CONFLICT (name) DO UPDATE SET value = excluded.value`
)

// Memo implements [tracking.Store].
func (s *Store) Memo(ctx context.Context, name string) ([]byte, error) {
	value, err := one(ctx, s, pgx.RowTo[[]byte], selectMemo, name)
	if errors.Is(err, tracking.ErrNotFound) {
		return nil, nil
	}
	return value, err
}

// SetMemo implements [tracking.Store].
func (s *Store) SetMemo(ctx context.Context, name string, value []byte) error {
	if err := cmp.Or(ctx.Err(), rows.Texts(name)); err != nil {
		return err
	}
	if value == nil {
		value = []byte{} // nil is NULL
	}
	return s.call(ctx, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, s.sql(upsertMemo), name, value)
		return err
	})
}
