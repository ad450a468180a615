package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// What [Open] and [New] find wrong with a database. Nothing in it has been changed then.
var (
	ErrNewer    = errors.New("the schema was made by a newer version of this library")
	ErrOlder    = errors.New("the schema is not up to date")
	ErrTooOld   = errors.New("the server is older than PostgreSQL 15")
	ErrEncoding = errors.New("the database is not in UTF-8")
)

// An OpenError says what is wrong with a database and what to do about it. Its Err is one of the
// values above, or the cause.
type OpenError struct {
	Schema string
	Err    error
	Advice string // a sentence for the operator
}

func (e *OpenError) Error() string {
	s := fmt.Sprintf("open schema %s: %v", e.Schema, e.Err)
	if e.Advice != "" {
		s += ". " + e.Advice
	}
	return s
}

func (e *OpenError) Unwrap() error { return e.Err }

// Codes of PostgreSQL, which calls them SQLSTATE.
const (
	codeNull          = "23502" // nothing where there must be something
	codeUnique        = "23505"
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codeLockTimeout   = "55P03"
	codeNotInEncoding = "22021"
	codeNotInJSON     = "22P05"
	codeReadOnly      = "25006"
	codeFailed        = "25P02" // a transaction that an error has ended
)

// code is the code of an error of the server, "" if it is none.
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// class is the first two characters of the code, which it shares with those of its kind.
func class(err error) string {
	if c := code(err); len(c) > 2 {
		return c[:2]
	}
	return ""
}

// constraint is the name of the index that an error is about.
func constraint(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.ConstraintName
	}
	return ""
}

// notText reports whether a text was refused: one that is not UTF-8, or holds a NUL.
func notText(err error) bool {
	c := code(err)
	return c == codeNotInEncoding || c == codeNotInJSON
}

// errMoved is of a transaction whose new rows go on from marks that were raised meanwhile.
var errMoved = errors.New("postgres: the marks were raised meanwhile")

// passes reports whether the transaction may well succeed when it is run again: it met another one
// that was at work on the same rows, or inserted the same row and was faster.
func passes(err error) bool {
	if errors.Is(err, errMoved) {
		return true
	}
	switch code(err) {
	case codeSerialization, codeDeadlock, codeLockTimeout:
		return true
	case codeUnique:
		switch constraint(err) {
		case "tasks_pkey", "trips_pkey", "drivers_pkey", "keys_pkey", "subjects_pkey", "invites_pkey", "apps_id_key":
			return true // the next try sees the row
		}
	}
	return false
}

// uniqueOf makes a conflict of a unique value that is taken.
func uniqueOf(err error) error {
	if code(err) != codeUnique {
		return err
	}
	switch constraint(err) {
	case "tasks_by_key":
		return rows.UniqueConflict(tracking.KindTask, "key")
	case "trips_active":
		return rows.UniqueConflict(tracking.KindTrip, "tracking_id")
	case "keys_by_hash":
		return rows.UniqueConflict(tracking.KindKey, "hash")
	case "events_by_id":
		return &tracking.Error{Code: tracking.ErrInternal, Message: "An event of this id exists.", Err: err}
	}
	return err
}

// ourFault is err, of a transaction that was not committed for certain, as an error that says so if
// the server has not made it.
func ourFault(err error) error {
	var known *tracking.Error
	var conflict *tracking.ConflictError
	switch {
	case code(err) != "", errors.As(err, &known), errors.As(err, &conflict):
		return err
	case errors.Is(err, tracking.ErrNotFound), errors.Is(err, pgx.ErrNoRows), errors.Is(err, errNothing),
		errors.Is(err, errMoved):
		return err
	}
	return &tracking.Error{Code: tracking.ErrInternal, Message: "The store failed.", Err: err}
}

// failure is err, met by a read or a write, as the contract of tracking.Store wants it. ctx is the
// caller's.
func failure(ctx context.Context, err error) error {
	var known *tracking.Error
	var conflict *tracking.ConflictError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrNoRows):
		return tracking.ErrNotFound
	case errors.As(err, &known), errors.As(err, &conflict), errors.Is(err, tracking.ErrNotFound):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case notText(err):
		return &tracking.Error{Code: tracking.ErrInvalid, Message: "A text cannot be kept.", Err: err}
	}
	switch class(err) {
	// Connection, resources, operator, system, and a server that only reads.
	case "", "08", "53", "57", "58", "25", "40", "55":
		return &tracking.Error{
			Code: tracking.ErrUnavailable, Message: "The store cannot answer now.", Err: err,
		}
	}
	return &tracking.Error{Code: tracking.ErrInternal, Message: "The store failed.", Err: err}
}
