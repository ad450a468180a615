package httpadapter_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// fakeClock moves only when told.
type fakeClock struct {
	mu sync.Mutex
	t  time.Time
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *fakeClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

// syncBuffer is a log that can be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// server is the service behind a real HTTP server, with two applications whose keys are key-a and
// key-b.
type server struct {
	*testing.T
	clock *fakeClock
	svc   *tracking.Service // of application a
	h     *httpadapter.Handler
	url   string
	log   *syncBuffer
	base  string // what links begin with
}

// setup changes the options before the server starts.
type setup func(*tracking.Options, *httpadapter.Options)

func newServer(t *testing.T, setups ...setup) *server {
	t.Helper()
	return newServerOn(t, memory.New(), setups...)
}

func newServerOn(t *testing.T, store tracking.Store, setups ...setup) *server {
	t.Helper()
	s := &server{
		T: t, clock: &fakeClock{t: time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)}, log: &syncBuffer{},
		base: "https://track.example",
	}
	logger := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	so := &tracking.Options{
		Now: s.clock.Now, Logger: logger, MaxFixAge: 5 * time.Minute, Secret: bytes.Repeat([]byte("s"), 32),
	}
	ho := &httpadapter.Options{
		Keys: map[string]httpadapter.Principal{
			"key-a": {App: "a", Actor: "key:a"}, "key-b": {App: "b", Actor: "key:b"},
		},
		BaseURL: s.base, Logger: logger,
	}
	for _, f := range setups {
		f(so, ho)
	}
	svc, err := tracking.New(store, so)
	if err != nil {
		t.Fatal(err)
	}
	s.svc = svc.ForApp("a")
	if s.h, err = httpadapter.New(s.svc, ho); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(recorded(t, s.h))
	srv.Config.ErrorLog = slog.NewLogLogger(logger.Handler(), slog.LevelError)
	srv.Start()
	t.Cleanup(func() {
		svc.Close(t.Context())
		srv.Close()
	})
	s.url = srv.URL
	return s
}

// reply is an answer, read whole.
type reply struct {
	status int
	header http.Header
	body   string
}

// do makes one call. Target is a path with its query; headers are "Name: value".
func (s *server) do(method, target, body string, headers ...string) reply {
	s.Helper()
	var rd io.Reader
	if body != "" {
		rd = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, s.url+target, rd)
	if err != nil {
		s.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Add(name, value)
	}
	if len(body) > 256<<10 { // else who is refused may find the connection reset while still sending, and not see why
		req.Header.Set("Expect", "100-continue")
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		s.Fatalf("%s %s: %v", method, target, err)
	}
	defer res.Body.Close()
	read := io.ReadAll
	if method == "GET" && res.StatusCode == 200 && strings.HasPrefix(target, "/v1/live") { // it has no end
		read = untilReady
	}
	b, err := read(res.Body)
	if err != nil {
		s.Fatalf("%s %s: %v", method, target, err)
	}
	return reply{res.StatusCode, res.Header, string(b)}
}

// untilReady reads the stream of an application up to where it has told all that there is.
func untilReady(r io.Reader) (all []byte, err error) {
	for lines := bufio.NewReader(r); ; {
		line, err := lines.ReadString('\n')
		all = append(all, line...)
		if err != nil || line == "\n" && bytes.Contains(all, []byte("event: ready\n")) {
			return all, err
		}
	}
}

// app calls as application a.
func (s *server) app(method, target, body string, headers ...string) reply {
	s.Helper()
	return s.do(method, withKey(target, "key-a"), body, headers...)
}

func withKey(target, key string) string {
	sep := "?"
	if strings.Contains(target, "?") {
		sep = "&"
	}
	return target + sep + "apikey=" + key
}

// json decodes an answer that has to have this status.
func (s *server) json(r reply, status int) map[string]any {
	s.Helper()
	if r.status != status {
		s.Fatalf("status %d, want %d: %s", r.status, status, r.body)
	}
	var v map[string]any
	if err := json.Unmarshal([]byte(r.body), &v); err != nil {
		s.Fatalf("%v: %s", err, r.body)
	}
	return v
}

// data is the data of a success.
func (s *server) data(r reply) map[string]any {
	s.Helper()
	v := s.json(r, 200)
	if v["success"] != true {
		s.Fatalf("no success: %s", r.body)
	}
	d, _ := v["data"].(map[string]any)
	return d
}

// at walks into decoded JSON: keys of objects and indices of arrays.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func text(v any, path ...any) string {
	s, _ := at(v, path...).(string)
	return s
}

// failure is the error part of an answer.
func (r reply) failure() (code, field string) {
	var v struct {
		Success *bool
		Error   struct{ Code, Field string }
	}
	if json.Unmarshal([]byte(r.body), &v) != nil || v.Success == nil || *v.Success {
		return "", ""
	}
	return v.Error.Code, v.Error.Field
}

// sameButID is the body without its request id.
func (r reply) sameButID() string {
	const mark = `"request_id":"`
	i := strings.Index(r.body, mark)
	if i < 0 {
		return r.body
	}
	i += len(mark)
	return r.body[:i] + r.body[i+16:]
}

// newTask creates a task at a point and returns its id.
func (s *server) newTask(extra string) string {
	s.Helper()
	return text(s.data(s.app("POST", "/v1/task/create",
		`{"type":2,"drop":{"lnglat":[80.27,13.08],"address":"12 Beach Road","customer":{"name":"Asha","mobile":"+91 98"}}`+extra+`}`)), "task", "task_id")
}

// newDriver invites a driver of application a and lets him join; on duty unless off.
func (s *server) newDriver(id string) (token string) {
	s.Helper()
	inv := s.data(s.app("POST", "/v1/invite_user",
		fmt.Sprintf(`{"user_id":%q,"name":"Ravi Kumar","mobile":"+91 44"}`, id)))
	link := text(inv, "url")
	token = text(s.data(s.do("POST", "/v1/driver/join",
		fmt.Sprintf(`{"invite":%q}`, link[strings.LastIndex(link, "/")+1:]))), "token")
	s.data(s.asDriver(token, "POST", "/v1/driver/availability", `{"availability":true}`))
	return token
}

func (s *server) asDriver(token, method, target, body string) reply {
	s.Helper()
	return s.do(method, target, body, "Authorization: Bearer "+token)
}

// fix sends one position, taken now.
func (s *server) fix(token string, lng, lat float64) {
	s.Helper()
	body := fmt.Sprintf(`{"fixes":[{"lnglat":[%v,%v],"time":%q}]}`, lng, lat,
		s.clock.Now().Format("2006-01-02T15:04:05.000Z"))
	s.data(s.asDriver(token, "POST", "/v1/driver/fixes", body))
}

// forwarded is an Options.ClientIP for tests: the caller says where he is.
func forwarded(r *http.Request) netip.Addr {
	a, _ := netip.ParseAddr(r.Header.Get("X-Forwarded-For"))
	return a
}

type routeInfo = httpadapter.RouteInfo

func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
