package httpadapter_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// Each call is one line that says what it was, what it cost and who called, as far as that is nobody's
// name.
func TestRequestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		svc, err := tracking.New(memory.New(), &tracking.Options{Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		defer svc.Close(t.Context())
		h, err := httpadapter.New(svc, &httpadapter.Options{
			Keys: map[string]httpadapter.Principal{
				"k": {Actor: "user:ravi@shop.example"}, "v": {App: "shop", Role: tracking.RoleView},
			},
			Heartbeat: time.Second,
			ClientIP:  func(*http.Request) netip.Addr { return netip.MustParseAddr("198.51.100.7") },
			Logger:    slog.New(slog.NewJSONHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		type line struct {
			RequestID string `json:"request_id"`
			Method    string
			Route     string
			Status    int
			Duration  time.Duration
			Bytes     int
			App       string
			Actor     string
			Client    string
			Code      string
		}
		call := func(method, target, body string, headers ...string) (line, *httptest.ResponseRecorder) {
			t.Helper()
			log.Reset()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			r := httptest.NewRequestWithContext(ctx, method, target, strings.NewReader(body))
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			var l line
			if err := json.NewDecoder(strings.NewReader(log.String())).Decode(&l); err != nil {
				t.Fatalf("%v in %q", err, &log)
			}
			if l.RequestID == "" || w.Header().Get("X-Request-Id") != l.RequestID {
				t.Errorf("the call is %q in the log, and %q in its answer", l.RequestID, w.Header().Get("X-Request-Id"))
			}
			if want := w.Body.Len(); l.Bytes != want || l.Client != "198.51.100.7" || l.Status != w.Code {
				t.Errorf("%s %s: %+v, with %d bytes", method, target, l, want)
			}
			return l, w
		}
		for _, c := range []struct {
			method, target, body, key string
			want                      line
		}{
			{"GET", "/v1/task/list?driver_id=ravi", "", "k", line{Route: "/v1/task/list", App: "default", Actor: "dispatch"}},
			{"GET", "/v1/trips/ravi", "", "v", line{Route: "/v1/trips/{trip_id}", App: "shop", Actor: "view", Code: "not_found"}},
			{"POST", "/v1/task/create", "{}", "v", line{Route: "/v1/task/create", App: "shop", Actor: "view", Code: "forbidden"}},
			{"GET", "/v1/task/list", "", "x", line{Route: "/v1/task/list", Code: "unauthorized"}},
			{"GET", "/track/ravi/state", "", "", line{Route: "/track/{token}/state", Code: "not_found"}},
			{"GET", "/ravi", "", "k", line{Code: "not_found"}},
		} {
			l, _ := call(c.method, c.target, c.body, "X-Api-Key", c.key, "Content-Type", "application/json")
			c.want.Method, c.want.Client, c.want.Status, c.want.Bytes = c.method, l.Client, l.Status, l.Bytes
			c.want.RequestID, c.want.Duration = l.RequestID, l.Duration
			if l != c.want {
				t.Errorf("%s %s:\n\t%+v, want\n\t%+v", c.method, c.target, l, c.want)
			}
			if strings.Contains(log.String(), "ravi") {
				t.Errorf("the log names somebody: %s", &log)
			}
		}

		// A stream is a line when it is over.
		l, w := call("GET", "/v1/live", "", "X-Api-Key", "k")
		if l.Duration < 10*time.Second || l.Duration > 12*time.Second || l.Status != 200 || w.Body.Len() == 0 {
			t.Errorf("a stream of 10 s: %+v", l)
		}
	})
}

// Each line says where it comes from, to a logger that tells.
func TestSourceOfRequestLog(t *testing.T) {
	var log strings.Builder
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) {
		ho.Logger = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{AddSource: true}))
	})
	for range 2 {
		log.Reset()
		s.h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/nothing", nil))
		var line struct{ Source slog.Source }
		if err := json.Unmarshal([]byte(log.String()), &line); err != nil {
			t.Fatal(err)
		}
		if of := line.Source; path.Base(of.File) != "handler.go" || !strings.HasSuffix(of.Function, ".(*Handler).log") ||
			of.Line == 0 {
			t.Errorf("the line comes from %+v", of)
		}
	}
}

// A call keeps the name that the proxy in front gave it, if that can stand in a log and a header.
func TestRequestID(t *testing.T) {
	s := newServer(t)
	for _, good := range []string{"0123abcd", "c0ffee00-0000-4000-8000-00000000dead", "A.b_c-9x", strings.Repeat("x", 64)} {
		r := s.do("GET", "/v1/task/list", "", "X-Request-Id: "+good)
		if got := r.header.Get("X-Request-Id"); got != good || !strings.Contains(r.body, `"request_id":"`+good+`"`) {
			t.Errorf("%q becomes %q: %s", good, got, r.body)
		}
	}
	var made []string
	for _, bad := range []string{"", "short", strings.Repeat("x", 65), "with space", "a=b&key=value", "ümlaut-id", `"quoted"`} {
		got := s.do("GET", "/v1/openapi.json", "", "X-Request-Id: "+bad).header.Get("X-Request-Id")
		if len(got) != 16 || got == bad || slices.Contains(made, got) {
			t.Errorf("%q becomes %q", bad, got)
		}
		made = append(made, got)
	}
}

// Whoever wraps the handler learns the route of a call, and nothing that it was called with.
func TestPattern(t *testing.T) {
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) { ho.Prefix = "/delivery" })
	for target, want := range map[string]string{
		"/delivery/v1/trips/secret":    "GET /delivery/v1/trips/{trip_id}",
		"/delivery/track/secret/state": "GET /delivery/track/{token}/state",
		"/delivery/secret":             "",
	} {
		r := httptest.NewRequest(http.MethodGet, target, nil)
		w := httptest.NewRecorder()
		s.h.ServeHTTP(w, r)
		if _, err := io.Copy(io.Discard, w.Body); err != nil || r.Pattern != want {
			t.Errorf("%s has the pattern %q, want %q", target, r.Pattern, want)
		}
	}
}
