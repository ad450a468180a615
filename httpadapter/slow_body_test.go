package httpadapter_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// seeing is a store that says when a token has been looked up.
type seeing struct {
	tracking.Store
	seen chan struct{}
}

func (s *seeing) DriverByToken(ctx context.Context, kind tracking.TokenKind, hash tracking.Hash) (tracking.AppID,
	tracking.Driver, error) {
	app, d, err := s.Store.DriverByToken(ctx, kind, hash)
	if err == nil && s.seen != nil {
		select {
		case s.seen <- struct{}{}:
		default:
		}
	}
	return app, d, err
}

// TestTokenThatDiesWhileTheBodyComes: a body begins to arrive and its token is good. By the time it
// ends the token is dead, because it was revoked, or its driver was erased and somebody else has
// the id: 401, and nothing is changed.
func TestTokenThatDiesWhileTheBodyComes(t *testing.T) {
	ends := map[string]func(s *server){
		"revoked": func(s *server) { s.data(s.app("POST", "/v1/users/driver/revoke", `{"driver_id":"ravi"}`)) },
		"erased": func(s *server) {
			s.data(s.app("POST", "/v1/users/driver/delete", `{"driver_id":"ravi","force":true}`))
			s.phone("ravi")
		},
	}
	for _, c := range []struct{ target, body string }{
		{"/v1/driver/availability", `{"availability":false}`},
		{"/v1/driver/fixes", `{"fixes":[{"lnglat":[80.1,13],"time":"2026-03-14T09:00:00Z"}]}`},
		{"/v1/driver/trips", `{"tracking_id":"parcel"}`},
		{"/v1/driver/tasks/TASK/start", `{"lnglat":[80.1,13]}`},
		{"/v1/driver/tasks/TASK/decline", ` `},
		{"INGEST", `{"_type":"location","lat":13.5,"lon":80.5,"tst":1773478800}`},
		{"INGEST", `{"_type":"unheard of"}`},
		{"INGEST?lat=13.5&lon=80.5&timestamp=1773478800", ` `},
	} {
		for name, end := range ends {
			t.Run(name+strings.ReplaceAll(c.target, "/", " "), func(t *testing.T) {
				store := &seeing{Store: memory.New()}
				s := newServerOn(t, store)
				token, ingest := s.phone("ravi")
				task := s.newTask("")
				s.data(s.assign(task, "ravi"))
				state := func() (all []string) {
					for _, q := range []string{
						"/v1/users/driver?driver_id=ravi", "/v1/task?task_id=" + task, "/v1/trips?operator_id=ravi",
						"/v1/events",
					} {
						all = append(all, s.app("GET", q, "").body)
					}
					return all
				}
				store.seen = make(chan struct{}, 1)
				body, phone := io.Pipe()
				req, err := http.NewRequestWithContext(t.Context(), "POST",
					s.url+strings.NewReplacer("TASK", task, "INGEST", ingest).Replace(c.target), body)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Authorization", "Bearer "+token)
				answered := make(chan int)
				go func() {
					defer close(answered)
					res, err := http.DefaultClient.Do(req)
					if err != nil {
						t.Error(err)
						return
					}
					res.Body.Close()
					answered <- res.StatusCode
				}()
				<-store.seen
				end(s)
				before := state()
				if _, err := io.WriteString(phone, c.body); err != nil {
					t.Error(err)
				}
				phone.Close()
				if status := <-answered; status != http.StatusUnauthorized {
					t.Errorf("status %d, want 401", status)
				}
				if d := cmp.Diff(before, state()); d != "" {
					t.Errorf("(-before +after)\n%s", d)
				}
			})
		}
	}
}

// TestTokenLookUps: a token is looked up once where the body came with its head, and again where it had
// to be waited for.
func TestTokenLookUps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &seeing{Store: memory.New()}
		svc, err := tracking.New(store, &tracking.Options{Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		defer svc.Close(t.Context())
		h, err := httpadapter.New(svc, &httpadapter.Options{Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		inv, err := svc.InviteDriver(t.Context(), tracking.NewInvite{DriverID: "ravi"})
		if err != nil {
			t.Fatal(err)
		}
		joined, err := svc.Join(t.Context(), tracking.JoinRequest{Token: inv.Token})
		if err != nil {
			t.Fatal(err)
		}
		for _, tt := range []struct {
			wait time.Duration
			want int
		}{{0, 1}, {time.Millisecond, 2}, {time.Second, 2}} {
			for _, target := range []string{"/v1/driver/fixes", "/ingest/" + joined.IngestToken} {
				store.seen = make(chan struct{}, 10)
				body := io.MultiReader(strings.NewReader(`{"fixes":`), waits(tt.wait), strings.NewReader(`[]}`))
				r := httptest.NewRequest("POST", target, body)
				r.Header.Set("Authorization", "Bearer "+joined.Token)
				w := httptest.NewRecorder()
				if h.ServeHTTP(w, r); w.Code != 200 || len(store.seen) != tt.want {
					t.Errorf("%s with a body that takes %v: %d after %d look-ups, want 200 after %d",
						strings.TrimSuffix(target, joined.IngestToken), tt.wait, w.Code, len(store.seen), tt.want)
				}
			}
		}
	})
}

// waits is a part of a body that has nothing in it but takes its time.
type waits time.Duration

func (w waits) Read([]byte) (int, error) {
	time.Sleep(time.Duration(w))
	return 0, io.EOF
}
