package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// What servers that speak PostgreSQL's language may lack is asked for when a store is opened.
//
// Without notifications nobody is told, and who follows something looks for it, as behind a pooler.
// Without SKIP LOCKED a sweep asks for each row whether it is held: see free.go. Partitions are not
// used.
type abilities struct {
	notify, skip bool
}

const (
	// Listening begins with the commit, and so does telling.
	tryNotify = `BEGIN; LISTEN tracking; SELECT pg_notify('tracking', ''); ROLLBACK`
	trySkip   = `BEGIN; SELECT 1 FROM tracking.apps WHERE false FOR UPDATE SKIP LOCKED; ROLLBACK`
)

// ask asks the server what it can do.
func (s *Store) ask(ctx context.Context) (err error) {
	if s.able.notify, err = s.can(ctx, tryNotify); err != nil {
		return err
	}
	s.able.skip, err = s.can(ctx, s.opts.trySkip)
	return err
}

// can reports whether the server does what statements say. One that only reads now may do so later.
func (s *Store) can(ctx context.Context, statements string) (bool, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	_, err = conn.Exec(ctx, s.sql(statements), pgx.QueryExecModeSimpleProtocol)
	rollback(ctx, conn)
	switch class(err) {
	case "42", "0A": // a name or a text that it does not know, or may not use; a feature that it has not
		return false, nil
	case "25":
		return true, nil
	}
	return err == nil, err
}
