package postgres_test

import (
	"context"
	dbsql "database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
)

// shop is an embedder's program: a table of orders beside the schema, and a service that tells it of
// events.
type shop struct {
	svc   *tracking.Service
	store *postgres.Store
	pool  *pgxpool.Pool // its own
	db    *dbsql.DB     // the same
	told  chan tracking.Event
}

// Notify implements [tracking.Notifier].
func (s *shop) Notify(_ context.Context, n tracking.Notification) error {
	s.told <- n.Event
	return nil
}

// hears is the next event that the shop is told of.
func (s *shop) hears(t testing.TB) tracking.Event {
	t.Helper()
	select {
	case e := <-s.told:
		return e
	case <-time.After(time.Minute):
		t.Fatal("the shop is told of nothing")
		return tracking.Event{}
	}
}

// newShop opens a shop in an empty database, whose own pool goes there by the other URL.
func newShop(t testing.TB, url, hers string) *shop {
	t.Helper()
	return newShopOn(t, url, hers, nil)
}

func newShopOn(t testing.TB, url, hers string, opts *postgres.Options) *shop {
	t.Helper()
	s := &shop{store: open(t, url, opts), told: make(chan tracking.Event, 100)}
	t.Cleanup(func() { _ = s.store.Close() })
	var err error
	if s.svc, err = tracking.New(s.store, &tracking.Options{Notifier: s}); err != nil {
		t.Fatal(err)
	}
	if s.pool, err = pgxpool.New(t.Context(), hers); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.pool.Close)
	s.db = stdlib.OpenDBFromPool(s.pool)
	t.Cleanup(func() { _ = s.db.Close() })
	for _, q := range []string{`DROP TABLE IF EXISTS orders`, `CREATE TABLE orders (id text PRIMARY KEY, task text)`} {
		if _, err := s.pool.Exec(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// run runs the service until the test is over.
func (s *shop) run(t testing.TB) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.svc.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// orders counts those that are committed.
func (s *shop) orders(t testing.TB) (n int) {
	t.Helper()
	if err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM orders`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// her is a transaction of the shop's.
type her struct {
	tracking.Tx
	exec             func(sql string) error
	commit, rollback func() error
}

// begins begins a transaction at a level; "" is the default.
type begins func(t testing.TB, s *shop, level pgx.TxIsoLevel) her

func byPgx(t testing.TB, s *shop, level pgx.TxIsoLevel) her {
	t.Helper()
	tx, err := s.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return her{
		Tx: postgres.In(tx),
		exec: func(q string) error {
			_, err := tx.Exec(t.Context(), q)
			return err
		},
		commit:   func() error { return tx.Commit(t.Context()) },
		rollback: func() error { return tx.Rollback(t.Context()) },
	}
}

func bySQL(t testing.TB, s *shop, level pgx.TxIsoLevel) her {
	t.Helper()
	levels := map[pgx.TxIsoLevel]dbsql.IsolationLevel{
		pgx.ReadCommitted: dbsql.LevelReadCommitted, pgx.RepeatableRead: dbsql.LevelRepeatableRead,
		pgx.Serializable: dbsql.LevelSerializable,
	}
	tx, err := s.db.BeginTx(t.Context(), &dbsql.TxOptions{Isolation: levels[level]})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return her{
		Tx: postgres.InSQL(tx),
		exec: func(q string) error {
			_, err := tx.ExecContext(t.Context(), q)
			return err
		},
		commit: tx.Commit, rollback: tx.Rollback,
	}
}

// order writes an order in a transaction of the shop's.
func (h her) order(t testing.TB, id string) {
	t.Helper()
	if err := h.exec(`INSERT INTO orders (id) VALUES ('` + id + `')`); err != nil {
		t.Fatalf("the shop's own statement: %v", err)
	}
}

func (h her) end(t testing.TB, end func() error) {
	t.Helper()
	if err := end(); err != nil {
		t.Fatalf("the end of the shop's transaction: %v", err)
	}
}

var (
	annaSalai = &tracking.LngLat{Lng: 80.25, Lat: 13.06}
	parcel    = tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: annaSalai, Address: "12 Anna Salai"}, AutoAssign: true,
	}
)

// must is what a call returns that does not fail.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// refusedAs checks that a call was refused with a code and a sentence.
func refusedAs(t testing.TB, err error, want tracking.ErrorCode, says string) {
	t.Helper()
	var e *tracking.Error
	if !errors.As(err, &e) || e.Code != want || !strings.Contains(e.Message, says) {
		t.Errorf("the answer is %v, want %s and a sentence that says %q", err, want, says)
	}
}

func keyed(n tracking.NewTask, key string) tracking.NewTask { n.Key = key; return n }

// within runs a test with either kind of transaction.
func within(t *testing.T, test func(t *testing.T, s *shop, begin begins)) {
	next := emptied(t)
	for name, begin := range map[string]begins{"pgx": byPgx, "sql": bySQL} {
		t.Run(name, func(t *testing.T) {
			url := next(t)
			test(t, newShop(t, url, url), begin)
		})
	}
}

var levels = []pgx.TxIsoLevel{"", pgx.ReadCommitted, pgx.RepeatableRead, pgx.Serializable}

// waitFor waits for what others do.
func waitFor(t testing.TB, done func() bool) {
	t.Helper()
	for range 3000 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("it does not come to that")
}

// meanwhile does something beside the test; answer waits for what comes of it.
func meanwhile[T any](do func() (T, error)) (answer func() (T, error)) {
	var got T
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		got, err = do()
	}()
	return func() (T, error) {
		<-done
		return got, err
	}
}

// blocked counts the connections that wait for a lock.
func blocked(t testing.TB, s *shop) (n int) {
	t.Helper()
	err := s.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
