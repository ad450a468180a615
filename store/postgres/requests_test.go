package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"testing"

	"github.com/seed-8aba7b13/tracking"
)

// Who closes the requests for trips, whoever has them, and who makes and closes requests of several
// drivers meanwhile, wait for each other in one order: nobody is the victim of a deadlock.
func TestRequestsAreLockedInOrder(t *testing.T) {
	t.Parallel()
	const trips, callers, each, rounds = 6, 8, 6, 40
	plain := template.Database(t)
	u, err := url.Parse(plain)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set("deadlock_timeout", "1ms") // before anybody gives up
	u.RawQuery = q.Encode()
	list := someDrivers(callers * each)
	one, other := open(t, u.String(), callersClock), open(t, u.String(), callersClock)
	commit(t, one, tracking.Changeset{Drivers: list})
	var all sync.WaitGroup
	for g := range callers {
		s, r := one, rand.New(rand.NewPCG(1, uint64(g)))
		if g%2 > 0 {
			s = other
		}
		trip := func() tracking.TrackingID { return tracking.TrackingID(fmt.Sprint("x", r.IntN(trips))) }
		request := func() tracking.RequestID {
			return tracking.RequestID{DriverID: list[g*each+r.IntN(each)].ID, TrackingID: trip()}
		}
		all.Go(func() {
			for range rounds {
				var cs tracking.Changeset
				for range 8 {
					switch g % 4 {
					case 0, 1:
						cs.CloseRequests = append(cs.CloseRequests, tracking.RequestID{TrackingID: trip()})
					case 2:
						cs.CloseRequests = append(cs.CloseRequests, request())
						fallthrough
					default:
						cs.Requests = append(cs.Requests, tracking.Request{RequestID: request(), CreatedAt: start})
					}
				}
				if _, err := s.Commit(t.Context(), "here", &cs); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	one.Close()
	other.Close()
	waitFor(t, func() bool { // what they count is known when they have gone
		const there = `SELECT count(*)::text FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid()`
		return sql(t, plain, there)[0] == "0"
	})
	if n := sql(t, plain, `SELECT deadlocks::text FROM pg_stat_database WHERE datname = current_database()`); n[0] != "0" {
		t.Errorf("there were %s deadlocks", n[0])
	}
}
