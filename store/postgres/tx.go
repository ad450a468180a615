package postgres

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// conn is what statements are sent by: the pool, a connection, or a transaction of the embedder's.
type conn interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// on has f send statements by what the store works on.
func (s *Store) on(ctx context.Context, f func(ctx context.Context, c conn) error) error {
	if s.tx != nil {
		return s.tx.use(ctx, f)
	}
	return f(ctx, s.pool)
}

// tx is a transaction that talks in pipelines: what is queued goes with the next flush, all in one
// round trip. Also its beginning and its end are queued.
type tx struct {
	store *Store
	conn  conn
	batch *pgx.Batch
	read  []func(pgx.BatchResults) error // what to do with each answer

	grouped      bool // several calls share it, and nobody else's statements are in it
	large, keeps bool // the tables that it began with are; plans are kept now: see plans
}

// queue adds a statement.
func (x *tx) queue(sql string, args ...any) {
	x.batch.Queue(x.store.sql(sql), args...)
	x.read = append(x.read, func(r pgx.BatchResults) error {
		_, err := r.Exec()
		return err
	})
}

// counted adds a statement; n is set to how many rows it has changed.
func (x *tx) counted(n *int, sql string, args ...any) {
	x.batch.Queue(x.store.sql(sql), args...)
	x.read = append(x.read, func(r pgx.BatchResults) error {
		tag, err := r.Exec()
		*n = int(tag.RowsAffected())
		return err
	})
}

// queueEach adds a query; each is called with what scan makes of every row.
func queueEach[T any](x *tx, each func(T), scan pgx.RowToFunc[T], sql string, args ...any) {
	x.batch.Queue(x.store.sql(sql), args...)
	x.read = append(x.read, func(r pgx.BatchResults) error {
		found, err := r.Query()
		if err != nil {
			return err
		}
		list, err := pgx.CollectRows(found, scan)
		for _, v := range list {
			each(v)
		}
		return err
	})
}

// giving adds a statement that writes one row and returns what that has given it.
func (x *tx) giving(given *tracking.Given, sql string, args ...any) {
	x.batch.Queue(x.store.sql(sql), args...)
	x.read = append(x.read, func(r pgx.BatchResults) error {
		return r.QueryRow().Scan(&given.Seq, &given.Version)
	})
}

// queueRows adds a query; list is set to what scan makes of its rows.
func queueRows[T any](x *tx, list *[]T, scan pgx.RowToFunc[T], sql string, args ...any) {
	x.batch.Queue(x.store.sql(sql), args...)
	x.read = append(x.read, func(r pgx.BatchResults) error {
		found, err := r.Query()
		if err != nil {
			return err
		}
		*list, err = pgx.CollectRows(found, scan)
		return err
	})
}

// flush sends what is queued and takes the answers. After an error the transaction can only be rolled
// back.
func (x *tx) flush(ctx context.Context) error {
	if x.batch.Len() == 0 {
		return nil
	}
	answers, read := x.conn.SendBatch(ctx, x.batch), x.read
	x.batch, x.read = &pgx.Batch{}, nil
	for _, f := range read {
		if err := f(answers); err != nil {
			_ = answers.Close() // repeats err
			return err
		}
	}
	return answers.Close()
}

const (
	begin     = `BEGIN ISOLATION LEVEL READ COMMITTED`
	beginLook = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`
)

// once runs f in a transaction. What f has queued last goes with the commit.
func (s *Store) once(ctx context.Context, begin string, f func(ctx context.Context, x *tx) error) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release() // rolls back what is not committed, by closing the connection
	x := &tx{store: s, conn: conn, batch: &pgx.Batch{}}
	x.queue(begin)
	committing := false
	if err = f(ctx, x); err == nil {
		committing = true
		x.queue(`COMMIT`)
		if err = x.flush(ctx); err == nil {
			return nil
		}
	}
	// What fails on this side, as a value that cannot be sent, is not the server's doing.
	c := conn.Conn()
	if !c.IsClosed() && ctx.Err() == nil && (!committing || c.PgConn().TxStatus() != idle) {
		err = ourFault(err)
	}
	rollback(ctx, conn)
	return err
}

// idle is the state of a connection without a transaction.
const idle = 'I'

// rollbackWait is how long a transaction that failed may take to say so.
const rollbackWait = 5 * time.Second

// rollback keeps the connection, if it is good for anything.
func rollback(ctx context.Context, conn *pgxpool.Conn) {
	if c := conn.Conn(); c.IsClosed() || c.PgConn().TxStatus() == idle {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackWait)
	defer cancel()
	_, _ = conn.Exec(ctx, `ROLLBACK`) // else the pool closes the connection
}

// tries is how often a transaction is run that others stand in the way of.
const tries = 10

// write runs f in a transaction, and again when others were at work on the same rows. So f begins
// anew each time. What is left after the last try is a conflict that names no row; who waits for a
// row that somebody holds tries until the time is over.
func (s *Store) write(ctx context.Context, f func(ctx context.Context, x *tx) error) error {
	return s.call(ctx, func(ctx context.Context) error {
		for try := 1; ; try++ {
			err := s.once(ctx, begin, f)
			switch {
			case !passes(err) || ctx.Err() != nil:
				return uniqueOf(err)
			case code(err) == codeLockTimeout:
				try = min(try, tries-1) // for as long as there is time
			case try == tries:
				return &tracking.ConflictError{}
			}
			if err := pause(ctx, try); err != nil {
				return err
			}
		}
	})
}

// pause lets others go first, before another try.
func pause(ctx context.Context, try int) error {
	select {
	case <-time.After(rand.N(time.Duration(try) * 2 * time.Millisecond)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// look runs f, which only reads, in a transaction that sees one moment.
func (s *Store) look(ctx context.Context, f func(ctx context.Context, x *tx) error) error {
	return s.call(ctx, func(ctx context.Context) error { return s.once(ctx, beginLook, f) })
}

// one reads the row that a query finds.
func one[T any](ctx context.Context, s *Store, scan pgx.RowToFunc[T], sql string, args ...any) (v T, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		if odd(args) {
			return tracking.ErrNotFound
		}
		return s.on(ctx, func(ctx context.Context, c conn) error {
			found, err := c.Query(ctx, s.sql(sql), args...)
			if err == nil {
				v, err = pgx.CollectOneRow(found, scan)
			}
			return err
		})
	})
	return v, err
}

// list reads the rows that a query finds; nil for none.
func list[T any](ctx context.Context, s *Store, scan pgx.RowToFunc[T], sql string, args ...any) (v []T, err error) {
	err = s.call(ctx, func(ctx context.Context) error {
		if odd(args) {
			return nil
		}
		return s.on(ctx, func(ctx context.Context, c conn) error {
			found, err := c.Query(ctx, s.sql(sql), args...)
			if err == nil {
				v, err = pgx.CollectRows(found, scan)
			}
			return err
		})
	})
	if len(v) == 0 {
		return nil, err
	}
	return v, err
}

// odd reports whether something is looked up by a text that nothing can have. The server must not see
// one: what it answers depends on how it is sent.
func odd(args []any) bool {
	return slices.ContainsFunc(args, func(arg any) bool {
		switch v := arg.(type) {
		case string:
			return !rows.Text(v)
		case *string:
			return v != nil && !rows.Text(*v)
		case []string:
			return slices.ContainsFunc(v, func(s string) bool { return !rows.Text(s) })
		}
		return false
	})
}

// page cuts a list of which one more than limit was asked for.
func page[T any](v []T, limit int) ([]T, bool) {
	if len(v) > limit {
		return v[:limit:limit], true
	}
	return v, false
}

// oneIn reads a row of an application, whose number is the first parameter.
func oneIn[T any](
	ctx context.Context, s *Store, app tracking.AppID, scan pgx.RowToFunc[T], sql string, args ...any,
) (v T, err error) {
	n, err := s.numberOf(ctx, app)
	if err != nil {
		return v, err
	}
	return one(ctx, s, scan, sql, append([]any{n}, args...)...)
}

// listIn reads rows of an application, whose number is the first parameter.
func listIn[T any](
	ctx context.Context, s *Store, app tracking.AppID, scan pgx.RowToFunc[T], sql string, args ...any,
) ([]T, error) {
	n, err := s.numberOf(ctx, app)
	if err != nil {
		return nil, err
	}
	return list(ctx, s, scan, sql, append([]any{n}, args...)...)
}
