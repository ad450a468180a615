package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// In is a transaction of pgx, or of its pool, for [tracking.Service.Within]. A savepoint of it, which
// pgx calls a transaction too, is one as well.
func In(tx pgx.Tx) tracking.Tx { return pgxTx{tx} }

// InSQL is a transaction of database/sql, of pgx's driver for it (github.com/jackc/pgx/v5/stdlib),
// also where another driver is wrapped around that.
func InSQL(tx *sql.Tx) tracking.Tx { return sqlTx{tx} }

// borrowed is a transaction of the embedder's.
type borrowed interface {
	// use has f send statements in it.
	use(ctx context.Context, f func(ctx context.Context, c conn) error) error
}

type pgxTx struct{ tx pgx.Tx }

// Unwrap implements [tracking.Tx].
func (t pgxTx) Unwrap() any { return t.tx }

func (t pgxTx) use(ctx context.Context, f func(ctx context.Context, c conn) error) error {
	return f(ctx, t.tx)
}

type sqlTx struct{ tx *sql.Tx }

// Unwrap implements [tracking.Tx].
func (t sqlTx) Unwrap() any { return t.tx }

// use has database/sql execute a statement. Pgx hands the connection to who rewrites it, which is
// kept from everybody else meanwhile.
func (t sqlTx) use(ctx context.Context, f func(ctx context.Context, c conn) error) error {
	l := &lender{f: f}
	_, err := t.tx.ExecContext(ctx, `SELECT 1`, l)
	switch {
	case l.lent:
		return cmp.Or(l.err, err)
	case errors.Is(err, sql.ErrTxDone), errors.Is(err, driver.ErrBadConn), ctx.Err() != nil:
		return err
	}
	return &tracking.Error{
		Code: tracking.ErrInvalid, Field: "tx", Err: err,
		Message: "A transaction of database/sql must be of pgx's driver, github.com/jackc/pgx/v5/stdlib.",
	}
}

// lender lends the connection of a statement to f before the statement is sent.
type lender struct {
	f    func(ctx context.Context, c conn) error
	lent bool
	err  error
}

// RewriteQuery implements [pgx.QueryRewriter].
func (l *lender) RewriteQuery(ctx context.Context, c *pgx.Conn, sql string, _ []any) (string, []any, error) {
	l.lent = true
	l.err = l.f(ctx, c)
	return sql, nil, l.err
}

var _ tracking.Transactor = (*Store)(nil)

// Within implements [tracking.Transactor].
func (s *Store) Within(tx tracking.Tx) (tracking.TxStore, error) {
	var its borrowed
	switch t := tx.Unwrap().(type) {
	case *sql.Tx:
		if t != nil {
			its = sqlTx{t}
		}
	case pgx.Tx:
		its = pgxTx{t}
	}
	if its == nil {
		return nil, &tracking.Error{
			Code: tracking.ErrInvalid, Field: "tx",
			Message: "There must be a transaction in tx, of pgx by postgres.In, or of database/sql by postgres.InSQL.",
		}
	}
	return &within{Store: &Store{base: s.base, tx: its}}, nil
}

// within is the store in a transaction of the embedder's. The promoted methods work in it.
type within struct {
	*Store
	id string // of the transaction, once something is written in it
}

var _ tracking.TxStore = (*within)(nil)

// callWithin runs f, which reads or writes in the embedder's transaction. How long it may take is for
// its owner to say.
func (s *Store) callWithin(ctx context.Context, f func(ctx context.Context) error) error {
	s.life.RLock()
	closed := s.closed
	s.life.RUnlock()
	if closed {
		return rows.ErrClosed
	}
	err := f(ctx)
	ended := func(message string) error {
		return &tracking.Error{Code: tracking.ErrConflict, Field: "tx", Message: message, Err: err}
	}
	switch {
	case errors.Is(err, pgx.ErrTxClosed), errors.Is(err, sql.ErrTxDone):
		return ended("The transaction has ended.")
	case code(err) == codeFailed:
		return ended("The transaction has failed before; roll it back.")
	case code(err) == codeReadOnly:
		return ended("The transaction can only read.")
	case code(err) == codeNull: // it sees one moment, and the application's first call came later
		return &tracking.ConflictError{}
	}
	if err = uniqueOf(err); passes(err) {
		return &tracking.ConflictError{}
	}
	return failure(ctx, err)
}

// A savepoint keeps the transaction usable when a call fails, and lets go of the locks.
const (
	beginWithin = `SAVEPOINT tracking_call`
	endWithin   = `RELEASE SAVEPOINT tracking_call`
	undoWithin  = `ROLLBACK TO SAVEPOINT tracking_call; RELEASE SAVEPOINT tracking_call`
	selectXact  = `SELECT pg_current_xact_id()::text`
)

// Commit implements [tracking.Store].
func (w *within) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	if err := cmp.Or(ctx.Err(), rows.ChangesetTexts(app, cs)); err != nil {
		return tracking.Written{}, err
	}
	n, err := w.registered(ctx, app)
	if err != nil {
		return tracking.Written{}, err
	}
	var written tracking.Written
	err = w.call(ctx, func(ctx context.Context) error {
		return w.tx.use(ctx, func(ctx context.Context, c conn) error {
			for try := 1; ; try++ {
				err := w.attempt(ctx, c, func(x *tx) error {
					change := newChange(x, n, cs)
					written = change.written
					return change.applyWithin(ctx)
				})
				if !errors.Is(err, errMoved) || try == tries {
					return err
				}
			}
		})
	})
	if err != nil {
		return tracking.Written{}, err
	}
	changed, events := subjectsOf(cs), len(cs.Events) > 0
	w.AfterCommit(func() { w.committed(app, n, changed, events) })
	return written, nil
}

// A transaction that sees one moment cannot see which versions were had since. But PostgreSQL refuses there
// to leave out what is not inserted for a row that is newer than that moment, and locks nothing.
const sameMarks = `INSERT INTO tracking.apps (n, id) OVERRIDING SYSTEM VALUE SELECT n, id FROM tracking.apps
	WHERE n = $1 AND current_setting('transaction_isolation') <> 'read committed' ON CONFLICT DO NOTHING`

// applyWithin is apply in the embedder's transaction.
func (c *change) applyWithin(ctx context.Context) error {
	if err := c.apply(ctx); err != nil {
		return err
	}
	if c.makes() {
		c.queue(sameMarks, c.app)
	}
	if !keyed(c.cs) {
		return nil
	}
	if err := c.flush(ctx); err != nil {
		return err
	}
	if slices.ContainsFunc(c.written.Tasks, func(g tracking.Given) bool { return g.Version == 0 }) {
		return rows.UniqueConflict(tracking.KindTask, "key")
	}
	return nil
}

// makes reports whether the change makes rows that are given versions which none of their ids has had.
func (c *change) makes() bool {
	return c.marked || slices.ContainsFunc(c.cs.Tasks, func(t tracking.Task) bool { return t.Version == 0 }) ||
		slices.ContainsFunc(c.cs.Trips, func(t tracking.Trip) bool { return t.Version == 0 })
}

// keyed reports whether a changeset makes tasks with keys, which may be taken.
func keyed(cs *tracking.Changeset) bool {
	return slices.ContainsFunc(cs.Tasks, func(t tracking.Task) bool { return t.Version == 0 && t.Key != "" })
}

// registered is the number of an application. It is given outside of the transaction: who else comes
// to the application for the first time is not to wait for its end.
func (w *within) registered(ctx context.Context, app tracking.AppID) (n int32, err error) {
	if n, err = w.numberOf(ctx, app); n != 0 || err != nil {
		return n, err
	}
	outside := &Store{base: w.base}
	err = outside.call(ctx, func(ctx context.Context) error {
		n, err = outside.register(ctx, app)
		return err
	})
	return n, err
}

// attempt runs f behind a savepoint.
func (w *within) attempt(ctx context.Context, c conn, f func(x *tx) error) error {
	x := &tx{store: w.Store, conn: c, batch: &pgx.Batch{}}
	begun := false
	x.batch.Queue(beginWithin)
	x.read = append(x.read, func(r pgx.BatchResults) error {
		_, err := r.Exec()
		begun = err == nil
		return err
	})
	err := f(x)
	if err == nil {
		var ids []string
		queueRows(x, &ids, pgx.RowTo[string], selectXact)
		x.queue(endWithin)
		if err = x.flush(ctx); err == nil {
			w.id = ids[0]
			return nil
		}
	}
	if begun {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackWait)
		defer cancel()
		_, failed := c.Exec(undo, undoWithin, pgx.QueryExecModeSimpleProtocol) // the next statement will tell
		if failed == nil && ctx.Err() == nil {
			return ourFault(err)
		}
	}
	return err
}

// Secret implements [tracking.Store]. It is read in the transaction, as there may be no other
// connection to be had, and made outside of it.
func (w *within) Secret(ctx context.Context) ([]byte, error) {
	secret, err := one(ctx, w.Store, pgx.RowTo[[]byte], selectSecret)
	if errors.Is(err, tracking.ErrNotFound) {
		return (&Store{base: w.base}).Secret(ctx)
	}
	return secret, err
}

// AfterCommit implements [tracking.TxStore].
func (w *within) AfterCommit(f func()) {
	if w.id != "" {
		w.commits.add(w.id, f)
	}
}
