package postgres_test

import (
	"context"
	"flag"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
	"github.com/seed-8aba7b13/tracking/store/postgres/pgtest"
	"github.com/seed-8aba7b13/tracking/store/storetest"
)

// Most tests go on beside each other, as they wait for the server most of the time. Each step is a round
// trip or two: long sizes are left to stores that have none, and histories to TRACKING_ENDURE=1, unless a
// number is given.
func TestMain(m *testing.M) {
	flag.Parse()
	if beside := flag.Lookup("test.parallel").Value; beside.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = beside.Set(strconv.Itoa(max(4, runtime.GOMAXPROCS(0)))) // a number is one
	}
	if endured(0, 1) == 0 {
		storetest.Brief(4)
	}
	os.Exit(pgtest.Main(m))
}

var template = pgtest.NewTemplate(func(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	return postgres.Migrate(ctx, pool, nil)
})

// open opens a store in the database at a URL.
func open(t testing.TB, url string, opts *postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const selectTables = `SELECT tablename FROM pg_tables WHERE schemaname = 'tracking' AND tablename <> 'migrations'`

// emptied is a database of the test's own for stores one after another, each of which finds it empty:
// that takes a tenth of the time of making another one.
func emptied(t testing.TB) (next func(t testing.TB) string) {
	url := template.Database(t)
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	found, err := pool.Query(t.Context(), selectTables)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	empty := "DELETE FROM tracking." + strings.Join(tables, "; DELETE FROM tracking.")
	return func(t testing.TB) string {
		t.Helper()
		if _, err := pool.Exec(context.Background(), empty, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
		return url
	}
}

var callersClock = &postgres.Options{CallersClock: true}

// onPool opens stores one after another on one pool: a connection takes longer to make than most
// cases take.
func onPool(t testing.TB, url string, opts *postgres.Options) func(t testing.TB) *postgres.Store {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	if config.ConnConfig.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
		config.ConnConfig.RuntimeParams["jit"] = "off"
		config.ConnConfig.RuntimeParams["plan_cache_mode"] = "force_custom_plan"
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return func(t testing.TB) *postgres.Store {
		t.Helper()
		s, err := postgres.New(t.Context(), pool, opts)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

func TestStore(t *testing.T) {
	t.Parallel()
	eachEmpty(t, storetest.RunRows)
}

func TestService(t *testing.T) {
	t.Parallel()
	eachEmpty(t, storetest.RunService)
}

// eachEmpty runs tests each of which has an empty store.
func eachEmpty(t *testing.T, run func(t *testing.T, open func(t testing.TB) tracking.Store)) {
	next := emptied(t)
	opened := onPool(t, next(t), callersClock)
	run(t, func(t testing.TB) tracking.Store {
		next(t)
		return opened(t)
	})
}
