package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
)

// as is the URL of a database for a user who may do all there but some things, which denied says.
func as(t *testing.T, database, denied string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	user := strings.TrimPrefix(u.Path, "/") // of whom there is one on the server
	c := connect(t, database)
	execute(t, c, "CREATE USER "+user)
	t.Cleanup(func() { // before the database goes
		c, err := pgx.Connect(context.Background(), database)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(context.Background())
		if _, err := c.Exec(context.Background(), "DROP OWNED BY "+user+"; DROP USER "+user); err != nil {
			t.Error(err)
		}
	})
	execute(t, c, "GRANT ALL ON SCHEMA tracking TO "+user)
	execute(t, c, "GRANT ALL ON ALL TABLES IN SCHEMA tracking TO "+user)
	execute(t, c, "GRANT ALL ON ALL SEQUENCES IN SCHEMA tracking TO "+user)
	execute(t, c, denied)
	u.User = url.User(user)
	return u.String()
}

// Where the server cannot tell others of what is changed, the store looks for it, and all else is as
// ever.
func TestWithoutNotify(t *testing.T) {
	t.Parallel()
	through := as(t, template.Database(t), "REVOKE EXECUTE ON FUNCTION pg_notify FROM PUBLIC")
	s := open(t, through, callersClock)
	defer s.Close()
	changes, end := watch(t, s)
	commit(t, s, tracking.Changeset{Drivers: []tracking.Driver{driver("d")}})
	for range 2 { // twice, and without a change
		if got := next(t, changes); got != (heard{}) {
			t.Errorf("heard %+v, want that anything may have changed", got)
		}
	}
	select {
	case err := <-end:
		t.Errorf("it has ended: %v", err)
	default:
	}
}

// What the store does not do without is asked for when it is opened.
func TestWithoutSkipLocked(t *testing.T) {
	t.Parallel()
	_, err := postgres.Open(t.Context(), template.Database(t),
		postgres.Options{}.Asking("SELECT 1 FOR UPDATE SKIP UNLOCKED"))
	var open *postgres.OpenError
	if !errors.As(err, &open) || !strings.Contains(err.Error(), "SKIP LOCKED") {
		t.Errorf("opened on a server without: %v", err)
	}
}
