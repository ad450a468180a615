package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/jmoiron/sqlx"
)

// migrations are numbered files: migrations/0001_initial.sql leads from nothing to version 1, the
// next to version 2. One that was released is never changed.
//
//go:embed migrations/*.sql
var migrations embed.FS

// migrationFiles lists them in order; the first leads to version 1.
func migrationFiles(dir fs.FS) ([]string, error) {
	names, err := fs.Glob(dir, "migrations/*.sql") // sorted
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		number, _, _ := strings.Cut(path.Base(name), "_")
		if n, err := strconv.Atoi(number); err != nil || n != i+1 {
			return nil, fmt.Errorf("sqlite: %s: its number should be %d", name, i+1)
		}
	}
	return names, nil
}

func latestVersion(dir fs.FS) (int, error) {
	names, err := migrationFiles(dir)
	return len(names), err
}

const (
	selectVersion = `PRAGMA user_version`
	insertSecret  = `INSERT INTO secrets (name, value) VALUES ('store', ?)`
)

func newSecret() ([]byte, error) {
	secret := make([]byte, 32)
	_, err := rand.Read(secret)
	return secret, err
}

// migrate brings a file up to date, each step in a transaction that holds its version too. Before
// it changes a file that is in use, it calls keep.
func migrate(ctx context.Context, db *sqlx.DB, dir fs.FS, keep func(version int) error) error {
	names, err := migrationFiles(dir)
	if err != nil {
		return err
	}
	var version int
	if err := db.GetContext(ctx, &version, selectVersion); err != nil {
		return err
	}
	if version > 0 && version < len(names) && keep != nil {
		if err := keep(version); err != nil {
			return fmt.Errorf("the copy before the update: %w", err)
		}
	}
	for ; version < len(names); version++ {
		script, err := fs.ReadFile(dir, names[version])
		if err != nil {
			return err
		}
		if err := step(ctx, db, string(script), version+1); err != nil {
			return fmt.Errorf("update to version %d: %w", version+1, err)
		}
	}
	return nil
}

// step runs one migration.
func step(ctx context.Context, db *sqlx.DB, script string, version int) (err error) {
	tx, err := db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			if e := tx.Rollback(); e != nil && !errors.Is(e, sql.ErrTxDone) {
				err = errors.Join(err, e)
			}
		}
	}()
	if _, err := tx.ExecContext(ctx, script); err != nil {
		return err
	}
	if version == 1 {
		secret, err := newSecret()
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, insertSecret, secret); err != nil {
			return err
		}
	}
	if redo := (map[int]func(context.Context, *sqlx.Tx) error{7: listAll, 10: findAll, 11: packAll})[version]; redo != nil {
		if err := redo(ctx, tx); err != nil {
			return err
		}
	}
	// A pragma takes no parameters.
	if _, err := tx.ExecContext(ctx,
		fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, version)); err != nil {
		return err
	}
	return tx.Commit()
}

// The tables behind an FTS5 table are of SQLite's own making, which may change.
const selectSchema = `SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT GLOB 'task_terms_*'`

type schemaRow struct{ Type, Name, SQL string }

// checkSchema reads the file's version, and checks that what that version has is there. Tables and
// indices that somebody added are no harm.
func checkSchema(db *sqlx.DB, dir fs.FS) (version int, err error) {
	if err := db.Get(&version, selectVersion); err != nil {
		return 0, err
	}
	names, err := migrationFiles(dir)
	if err != nil || version > len(names) {
		return version, err
	}
	want, err := schemaOf(dir, names[:version])
	if err != nil {
		return 0, err
	}
	var got []schemaRow
	if err := db.Select(&got, selectSchema); err != nil {
		return 0, err
	}
	there := map[schemaRow]bool{}
	for _, r := range got {
		there[r] = true
	}
	for _, r := range want {
		if !there[r] {
			return version, fmt.Errorf("%w: the %s %s is not as version %d has it", ErrDamaged, r.Type, r.Name, version)
		}
	}
	return version, nil
}

// schemas keeps what migrations make, by their text: to make it takes longer than to open a small file.
var schemas sync.Map // of []schemaRow

// schemaOf is what a file has after the named migrations.
func schemaOf(dir fs.FS, names []string) (rows []schemaRow, err error) {
	scripts := make([]string, len(names))
	for i, name := range names {
		script, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		scripts[i] = string(script)
	}
	key := strings.Join(scripts, "\x00")
	if rows, ok := schemas.Load(key); ok {
		return rows.([]schemaRow), nil
	}
	plain, err := sqlx.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	plain.SetMaxOpenConns(1) // each connection would have a memory of its own
	for i, script := range scripts {
		if _, err := plain.Exec(script); err != nil {
			return nil, fmt.Errorf("%s: %w", names[i], err)
		}
	}
	if err := plain.Select(&rows, selectSchema); err != nil {
		return nil, err
	}
	schemas.Store(key, rows)
	return rows, nil
}
