package httpadapter_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// eraser is a store that does something once a token has been found to be a driver's.
type eraser struct {
	tracking.Store
	erase func()
}

func (s *eraser) DriverByToken(ctx context.Context, kind tracking.TokenKind, hash tracking.Hash) (tracking.AppID,
	tracking.Driver, error) {
	app, d, err := s.Store.DriverByToken(ctx, kind, hash)
	if f := s.erase; f != nil && err == nil {
		s.erase = nil
		f()
	}
	return app, d, err
}

// TestErasedAfterAuthentication: a driver is erased, and somebody else gets his id and his work,
// while a request of his is on its way. It does nothing to the new one, and shows him nothing.
func TestErasedAfterAuthentication(t *testing.T) {
	for _, c := range []struct{ method, target, body string }{
		{"GET", "/v1/driver/me", ""},
		{"POST", "/v1/driver/availability", `{"availability":false}`},
		{"POST", "/v1/driver/fixes", `{"fixes":[{"lnglat":[80.1,13],"time":"2026-03-14T09:00:00Z"}]}`},
		{"POST", "/v1/driver/tasks/TASK/start", ""},
		{"POST", "/v1/driver/tasks/TASK/decline", ""},
		{"POST", "/v1/driver/trips", `{"tracking_id":"parcel"}`},
		{"GET", "/v1/driver/requests", ""},
		{"GET", "/v1/driver/notifications", ""},
		{"GET", "/v1/driver/phone", ""},
		{"GET", "/v1/driver/tasks", ""},
		{"GET", "/v1/driver/trips", ""},
		{"POST", "INGEST?lat=13&lon=80.1&timestamp=1773478800", ""},
		{"POST", "INGEST", `{"_type":"unheard of"}`},
		{"POST", "INGEST", `{"_type":"status"}`},
	} {
		t.Run(c.method+" "+strings.ReplaceAll(c.target, "/", " "), func(t *testing.T) {
			store := &eraser{Store: memory.New()}
			s := newServerOn(t, store)
			token, ingest := s.phone("ravi")
			task := s.newTask("")
			var before []string
			state := func() (all []string) {
				for _, q := range []string{
					"/v1/users/driver?driver_id=ravi", "/v1/task?task_id=" + task, "/v1/trips?operator_id=ravi",
					"/v1/events",
				} {
					all = append(all, s.app("GET", q, "").body)
				}
				return all
			}
			store.erase = func() {
				s.data(s.app("POST", "/v1/users/driver/delete", `{"driver_id":"ravi","force":true}`))
				s.phone("ravi")
				s.data(s.assign(task, "ravi"))
				s.data(s.app("POST", "/v1/assign_trip", `{"user_id":"ravi","tracking_id":"parcel"}`))
				s.clock.Advance(time.Minute)
				before = state()
			}
			target := strings.NewReplacer("TASK", task, "INGEST", ingest).Replace(c.target)
			r := s.asDriver(token, c.method, target, c.body)
			list := strings.HasSuffix(c.target, "/tasks") ||
				strings.HasSuffix(c.target, "/driver/trips") && c.method == "GET"
			want := map[bool]string{true: "200", false: "404"}[list]
			// whose token is looked at again when the body has come
			if strings.HasPrefix(c.target, "INGEST") || c.body != "" {
				want = "401"
			}
			if got := fmt.Sprint(r.status); got != want || strings.Contains(r.body, "parcel") ||
				strings.Contains(r.body, task) {
				t.Errorf("status %s, want %s: %s", got, want, r.body)
			}
			if d := cmp.Diff(before, state()); d != "" {
				t.Errorf("of the new driver (-before +after)\n%s", d)
			}
		})
	}
}
