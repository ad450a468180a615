package pgtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
	"github.com/seed-8aba7b13/tracking/store/postgres/pgtest"
)

// Each test has a database of its own, with the schema in it. TestMain ends the server:
//
//	func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }
func ExampleTemplate() {
	migrated := pgtest.NewTemplate(func(ctx context.Context, url string) error { // once for all tests
		pool, err := pgxpool.New(ctx, url)
		if err != nil {
			return err
		}
		defer pool.Close()
		return postgres.Migrate(ctx, pool, nil)
	})

	var t *testing.T // that of the test
	store, err := postgres.Open(t.Context(), migrated.Database(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	svc, err := tracking.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = svc.CreateTask(t.Context(), tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "12 Anna Salai"},
	})
	if err != nil {
		t.Fatal(err)
	}
}
