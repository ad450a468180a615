package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/seed-8aba7b13/tracking"
)

// What [Open] finds wrong with a file. The file is as it was before: not a byte of it has been
// changed.
var (
	ErrInUse   = errors.New("the file is in use by another process or another Store")
	ErrNewer   = errors.New("the file was written by a newer version of this library")
	ErrForeign = errors.New("the file belongs to something else")
	ErrEmptied = errors.New("the file is empty")
	ErrDamaged = errors.New("the file is damaged") // also when damage is met later, while reading or writing
	ErrPath    = errors.New("there can be no file at this path")
)

// An OpenError says what is wrong with a file and what to do about it. Its Err is one of the values
// above, or the cause.
type OpenError struct {
	Path   string
	Err    error
	Advice string // a sentence for the operator
}

func (e *OpenError) Error() string {
	s := fmt.Sprintf("open %s: %v", e.Path, e.Err)
	if e.Advice != "" {
		s += ". " + e.Advice
	}
	return s
}

func (e *OpenError) Unwrap() error { return e.Err }

// code is the extended result code of an error of SQLite, 0 if it is none.
func code(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// primary is the result code without its extension.
func primary(err error) int { return code(err) & 0xff }

func isConstraint(err error) bool { return primary(err) == codes.SQLITE_CONSTRAINT }

// isDamage reports whether the file does not hold what SQLite wrote, or we did.
func isDamage(err error) bool {
	c := primary(err)
	return c == codes.SQLITE_CORRUPT || c == codes.SQLITE_NOTADB || errors.Is(err, errPacked) || errors.Is(err, errJournal)
}

// stopsWriting reports whether nothing may be written after this error until the store is reopened.
//
// After a failed fsync the kernel may hold pages that it believes to be written, though they never
// reached the disk; a second fsync would succeed and prove nothing. Only a new start, which reads
// the log again from its beginning, is sound. On a damaged file each write may make it worse.
func stopsWriting(err error) bool {
	switch code(err) {
	case codes.SQLITE_IOERR_FSYNC, codes.SQLITE_IOERR_DIR_FSYNC:
		return true
	}
	return isDamage(err)
}

// endsTransaction reports whether SQLite may have rolled the whole transaction back, and not the
// statement alone.
func endsTransaction(err error) bool {
	switch primary(err) {
	case 0:
		return isDamage(err)
	case codes.SQLITE_CONSTRAINT, codes.SQLITE_MISMATCH, codes.SQLITE_TOOBIG, codes.SQLITE_RANGE, codes.SQLITE_ERROR:
		return false
	}
	return true
}

func unavailable(message string, err error) error {
	return &tracking.Error{Code: tracking.ErrUnavailable, Message: message, Err: err}
}

// failure is err, met by a read or a write, as the contract of tracking.Store wants it. ctx is the
// caller's.
func failure(ctx context.Context, err error) error {
	if err == nil { // before errors.As, which has its targets allocated
		return nil
	}
	var known *tracking.Error
	var conflict *tracking.ConflictError
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return tracking.ErrNotFound
	case errors.As(err, &known), errors.As(err, &conflict), errors.Is(err, tracking.ErrNotFound):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case isDamage(err):
		return unavailable("The store is damaged.", fmt.Errorf("%w: %w", ErrDamaged, err))
	}
	switch primary(err) {
	case codes.SQLITE_FULL:
		return unavailable("The disk is full.", err)
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		return unavailable("The store is busy.", err)
	case codes.SQLITE_CONSTRAINT, codes.SQLITE_MISMATCH, codes.SQLITE_TOOBIG, codes.SQLITE_RANGE, codes.SQLITE_ERROR,
		codes.SQLITE_MISUSE:
		return &tracking.Error{Code: tracking.ErrInternal, Message: "The store failed.", Err: err}
	}
	return unavailable("The store cannot answer now.", err)
}
