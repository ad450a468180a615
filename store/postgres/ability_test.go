package postgres_test

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
	"github.com/seed-8aba7b13/tracking/store/storetest"
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

// withoutSkipLocked are the options of a store whose server has no SKIP LOCKED.
func withoutSkipLocked(o postgres.Options) *postgres.Options {
	return o.Asking("SELECT 1 FOR UPDATE SKIP UNLOCKED")
}

// Where the server has no SKIP LOCKED the store is held to the same, also by stores beside each other.
func TestWithoutSkipLocked(t *testing.T) {
	t.Parallel()
	next := emptied(t)
	url := next(t)
	opened := onPool(t, url, withoutSkipLocked(*callersClock))
	other := onPool(t, url, withoutSkipLocked(*callersClock))
	t.Run("rows", func(t *testing.T) {
		storetest.RunRows(t, func(t testing.TB) tracking.Store {
			next(t)
			return opened(t)
		})
	})
	t.Run("shared", func(t *testing.T) {
		storetest.RunShared(t, func(t testing.TB) (a, b tracking.Store) {
			next(t)
			return opened(t), other(t)
		})
	})
	t.Run("left open", func(t *testing.T) {
		url := next(t)
		leftOpen(t, newShopOn(t, url+"&pool_max_conns=2", url, withoutSkipLocked(postgres.Options{})))
	})
	t.Run("sweeps", func(t *testing.T) {
		url := next(t)
		sweepsPass(t, newShopOn(t, url, url, withoutSkipLocked(postgres.Options{})))
	})
}

// What is held uses up no limit: behind it are those that are handed out.
func TestHeldQueues(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]*postgres.Options{
		"with SKIP LOCKED": callersClock, "without": withoutSkipLocked(*callersClock),
	} {
		t.Run(name, func(t *testing.T) {
			url := template.Database(t)
			s := open(t, url, opts)
			defer s.Close()
			for i := range 9 {
				commit(t, s, *newTask(fmt.Sprint("t", i)))
			}
			c := connect(t, url)
			execute(t, c, "BEGIN")
			execute(t, c, "SELECT 1 FROM tracking.queues ORDER BY head LIMIT 4 FOR UPDATE")
			for _, want := range []string{"t4", "t5", "t6", "t7", "t8", ""} {
				limit := 1
				if want == "t8" || want == "" {
					limit = math.MaxInt
				}
				leased := must(s.LeaseEvents(t.Context(), tracking.Lease{
					Owner: "w", Now: start, For: time.Minute, Limit: limit,
				}))(t)
				got := ""
				if len(leased) > 0 {
					got = leased[0].Event.ID
				}
				if got != want {
					t.Errorf("%q is handed out, want %q", got, want)
				}
			}
			execute(t, c, "COMMIT")
			l := tracking.Lease{Owner: "w", Now: start, For: time.Minute, Limit: 9}
			if leased := must(s.LeaseEvents(t.Context(), l))(t); len(leased) != 4 {
				t.Errorf("then %d are handed out, want 4", len(leased))
			}
		})
	}
}

// Three stores on a server without SKIP LOCKED deliver what they commit as three processes do.
func TestOutboxWithoutSkipLocked(t *testing.T) {
	t.Parallel()
	const rounds = 5
	url := template.Database(t)
	names := []string{"a", "b", "c"}
	r, receives := newReceiver(t, len(names), rounds)
	var all sync.WaitGroup
	for _, name := range names {
		all.Go(func() {
			s := open(t, url, withoutSkipLocked(postgres.Options{}))
			defer s.Close()
			commitAndDeliver(t, s, name, receives, rounds, func() { <-r.all })
		})
	}
	all.Wait()
	r.finish(rounds)
}
