package sqlite

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	codes "modernc.org/sqlite/lib"
)

// applicationID marks a file as ours, in the place that SQLite's header has for that: "trak".
const applicationID = 0x7472616b

// oldestSQLite is the first version without a fault in the reset of the log that could damage a
// file.
var oldestSQLite = [3]int{3, 51, 3}

// connect opens a pool on the file. An empty path is the memory of name.
type connect struct {
	path     string
	memory   string // the name of a store in memory
	vfs      string
	readOnly bool // opens no file that is not there, and changes none
	pragmas  []string
}

// uri is the file's name for SQLite.
func (c connect) uri() string {
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(c.path)}
	if !strings.HasPrefix(u.Path, "/") { // C:/…
		u.Path = "/" + u.Path
	}
	return u.String()
}

// dsn is the data source name. In it the path is escaped, so that it may hold every character;
// pragmas run in their order.
func (c connect) dsn() string {
	q := url.Values{"_txlock": {"immediate"}, "_dqs": {"0"}, "_defensive": {"1"}}
	if c.path == "" {
		c.path, c.vfs = "/"+c.memory, "memdb"
	}
	if c.vfs != "" {
		q.Set("vfs", c.vfs)
	}
	if c.readOnly {
		q.Set("mode", "ro")
	}
	q["_pragma"] = c.pragmas
	return c.uri() + "?" + q.Encode()
}

func (c connect) open(conns int) (*sqlx.DB, error) {
	db, err := sqlx.Open("sqlite", c.dsn())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// pragmas of every connection. busy_timeout comes first, since the others may meet a lock already.
func (s *Store) pragmas(more ...string) []string {
	return append([]string{
		fmt.Sprintf("busy_timeout(%d)", s.opts.BusyTimeout.Milliseconds()),
		fmt.Sprintf("cache_size(%d)", -s.opts.CacheSize>>10), // negative: KiB
		"temp_store(MEMORY)",
		"cell_size_check(1)",
		"trusted_schema(0)",
	}, more...)
}

func (s *Store) writing() connect {
	return connect{path: s.path, vfs: s.opts.vfs, pragmas: s.pragmas(
		"journal_mode(WAL)",
		"synchronous("+s.opts.synchronous+")",
		"wal_autocheckpoint(0)", // the writer does it, and looks at the result
		fmt.Sprintf("journal_size_limit(%d)", maxLog),
		"foreign_keys(1)",
		"secure_delete(1)",
	)}
}

func (s *Store) reading() connect {
	return connect{path: s.path, vfs: s.opts.vfs, pragmas: s.pragmas("query_only(1)")}
}

func (s *Store) openMemory() error {
	name := rand.Text()
	w, r := s.writing(), s.reading()
	w.memory, r.memory = name, name
	w.pragmas = s.pragmas("foreign_keys(1)")
	if err := s.writer.connect(w); err != nil {
		return err
	}
	if err := s.prepare(r); err != nil {
		return errors.Join(err, s.disconnect())
	}
	return nil
}

// openFile looks at what is at the path, locks it, and opens it, in the order in which each step is
// safe by those before.
func (s *Store) openFile(path string) (err error) {
	refuse := func(err error, advice string) error { return &OpenError{Path: path, Err: err, Advice: advice} }
	if path == "" || strings.ContainsRune(path, 0) {
		return refuse(ErrPath, "Give the path of a file.")
	}
	s.path, err = realPath(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return refuse(fmt.Errorf("%w: %w", ErrPath, err), "Create its directory first.")
	case err != nil:
		return refuse(err, "")
	}
	if st, err := os.Stat(s.path); err == nil && !st.Mode().IsRegular() {
		return refuse(ErrPath, "It is not a file; give the path of one, or of one to create.")
	}
	const inUse = "Stop the other one, or give each its own file."
	s.unlock, err = lockFile(s.path + "-lock")
	switch {
	case errors.Is(err, ErrInUse):
		return refuse(ErrInUse, inUse)
	case err != nil:
		return refuse(err, "A lock file is kept beside the file; the directory must be writable.")
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.unlock())
		}
	}()

	// Before anything of the file is read: see lockInode. A file that is not there has no other
	// name either.
	locked := s.lockInode()
	if errors.Is(locked, ErrInUse) {
		return refuse(ErrInUse, inUse)
	}
	found, err := s.inspect()
	if err == nil && !found {
		err = s.create()
	}
	if err == nil && locked != nil {
		err = s.lockInode()
	}
	var known *OpenError
	if errors.As(err, &known) {
		return err
	} else if err != nil {
		return refuse(err, "")
	}
	if err := s.writer.connect(s.writing()); err != nil {
		return refuse(err, "")
	}
	if err := s.prepare(s.reading()); err != nil {
		err = errors.Join(err, s.disconnect())
		if errors.As(err, &known) {
			return err
		}
		return refuse(err, "")
	}
	return nil
}

// lockInode takes the lock on the file itself, to be given back with the one beside it.
func (s *Store) lockInode() error {
	release, err := lockInode(s.path)
	if err != nil {
		return err
	}
	beside := s.unlock
	s.unlock = func() error { return errors.Join(release(), beside()) }
	return nil
}

// realPath is where path leads, absolute and without links, so that the lock lies beside the file
// itself.
func realPath(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(abs)
	if !errors.Is(err, fs.ErrNotExist) {
		return real, err
	}
	if st, e := os.Lstat(abs); e == nil && st.Mode()&fs.ModeSymlink != 0 {
		return "", err // a link that leads nowhere
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, filepath.Base(abs)), nil
}

const restoreAdvice = "Restore a backup, or move the file and its companions away to start anew."

// inspect reports whether the file is there, and refuses one that is not ours, without changing a
// byte of it.
func (s *Store) inspect() (found bool, err error) {
	refuse := func(err error, advice string) error { return &OpenError{Path: s.path, Err: err, Advice: advice} }
	const (
		noFile           = "It is no SQLite file. Give another path. If it was ours, it is damaged: restore a backup."
		otherApplication = "Another application made it. Give another path."
	)
	log, err := os.Stat(s.path + "-wal")
	hasLog := err == nil && log.Size() > 0
	f, err := os.Open(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		if hasLog {
			return false, refuse(ErrDamaged, "The file is gone, but its log (-wal) is there. "+restoreAdvice)
		}
		return false, nil
	} else if err != nil {
		return false, err
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return false, err
	}
	h := make([]byte, 100)
	n, err := io.ReadFull(f, h)
	if e := f.Close(); e != nil {
		return false, e
	}
	latest, e := latestVersion(s.opts.migrations)
	if e != nil {
		return false, e
	}
	tooNew := func(v int) error {
		return refuse(ErrNewer,
			fmt.Sprintf("It has version %d, and this program knows %d. "+
				"Use a newer program, or restore the copy made before the update.", v, latest))
	}
	switch {
	case n == 0 && err == io.EOF:
		return false, refuse(ErrEmptied, "Something has emptied it. "+restoreAdvice)
	case err == io.ErrUnexpectedEOF:
		return false, refuse(ErrForeign, noFile)
	case err != nil:
		return false, err
	case hasLog:
		// A power cut may have left the first page half written. It is whole in the log.
	case string(h[:16]) != "SQLite format 3\x00":
		return false, refuse(ErrForeign, noFile)
	case binary.BigEndian.Uint32(h[68:]) != applicationID:
		return false, refuse(ErrForeign, otherApplication)
	case int(binary.BigEndian.Uint32(h[60:])) > latest:
		return false, tooNew(int(binary.BigEndian.Uint32(h[60:])))
	case st.Size() < pagesOf(h):
		return false, refuse(ErrDamaged, "Its end is missing. "+restoreAdvice)
	}

	// A connection that only reads leaves the file and the log as they are.
	db, err := connect{path: s.path, vfs: s.opts.vfs, readOnly: true, pragmas: s.pragmas("query_only(1)")}.open(1)
	if err != nil {
		return false, err
	}
	defer db.Close()
	var id int
	err = db.Get(&id, "PRAGMA application_id")
	if err == nil && id != applicationID {
		return false, refuse(ErrForeign, otherApplication)
	}
	var v int
	if err == nil {
		v, err = checkSchema(db, s.opts.migrations)
	}
	switch {
	case isDamage(err):
		return false, refuse(fmt.Errorf("%w: %w", ErrDamaged, err), restoreAdvice)
	case errors.Is(err, ErrDamaged):
		return false, refuse(err, restoreAdvice)
	case err != nil:
		return false, err
	case v > latest:
		return false, tooNew(v)
	}
	return true, nil
}

// pagesOf is the size of all pages in bytes, by the file's header.
func pagesOf(header []byte) int64 {
	pageSize := int64(binary.BigEndian.Uint16(header[16:]))
	if pageSize == 1 { // 65536 has no room there
		pageSize = 1 << 16
	}
	return int64(binary.BigEndian.Uint32(header[28:])) * pageSize
}

// create makes the file under another name first, so that under its own it is there as a whole or
// not at all.
func (s *Store) create() (err error) {
	temp := s.path + "-new"
	if err := removeFiles(temp); err != nil { // of an attempt that was cut short
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, removeFiles(temp))
		}
	}()
	f, err := os.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	db, err := connect{path: temp, vfs: s.opts.vfs, pragmas: s.pragmas("synchronous(FULL)", "foreign_keys(1)")}.open(1)
	if err != nil {
		return err
	}
	if err := migrate(context.Background(), db, s.opts.migrations, nil); err != nil {
		return errors.Join(err, db.Close())
	}
	if err := db.Close(); err != nil {
		return err
	}
	return publish(temp, s.path)
}

// publish gives a finished file its name, for good.
func publish(temp, path string) error {
	f, err := os.OpenFile(temp, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// removeFiles removes a file that SQLite worked on, and its companions.
func removeFiles(path string) error {
	for _, suffix := range []string{"", "-journal", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// prepare brings the file up to date and reads what is kept in memory. The writer is connected.
func (s *Store) prepare(r connect) error {
	ctx := context.Background()
	if err := checkSQLite(ctx, s.writer.db); err != nil {
		return err
	}
	keep := func(version int) error {
		if s.path == "" {
			return nil
		}
		name := fmt.Sprintf("%s-v%d", s.path, version)
		s.opts.Logger.Info("sqlite: bringing the file up to date", "path", s.path, "from", version, "copy", name)
		return s.copyTo(ctx, name)
	}
	if s.path != "" {
		if err := s.writer.syncLog(s.writer.db.Get); err != nil && primary(err) != codes.SQLITE_FULL {
			return err
		}
	}
	if err := migrate(ctx, s.writer.db, s.opts.migrations, keep); err != nil {
		return err
	}
	var err error
	if s.readers, err = r.open(s.opts.Readers); err != nil {
		return err
	}
	s.readers.SetConnMaxIdleTime(5 * time.Minute)
	var apps []appRow
	if err := s.readers.SelectContext(ctx, &apps, selectApps); err != nil {
		return err
	}
	for _, a := range apps {
		s.apps.Add(a.N, a.ID)
	}
	if s.opts.noJournal {
		return nil
	}
	err = s.loadLate(ctx)
	if isDamage(err) {
		err = &OpenError{Path: s.path, Err: fmt.Errorf("%w: %w", ErrDamaged, err), Advice: restoreAdvice}
	}
	return err
}

func checkSQLite(ctx context.Context, db *sqlx.DB) error {
	var text string
	if err := db.GetContext(ctx, &text, `SELECT sqlite_version()`); err != nil {
		return err
	}
	var v [3]int
	if _, err := fmt.Sscanf(text, "%d.%d.%d", &v[0], &v[1], &v[2]); err != nil {
		return fmt.Errorf("sqlite: version %q does not parse: %w", text, err)
	}
	for i, want := range oldestSQLite {
		if v[i] > want {
			break
		}
		if v[i] < want {
			return fmt.Errorf("sqlite: SQLite %s is linked in; version %d.%d.%d or newer is needed", text,
				oldestSQLite[0], oldestSQLite[1], oldestSQLite[2])
		}
	}
	return nil
}
