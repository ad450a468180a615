package httpadapter_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// join invites a driver, who joins.
func join(t testing.TB, svc *tracking.Service, id tracking.DriverID) tracking.Joined {
	t.Helper()
	inv, err := svc.InviteDriver(t.Context(), tracking.NewInvite{DriverID: id})
	if err != nil {
		t.Fatal(err)
	}
	joined, err := svc.Join(t.Context(), tracking.JoinRequest{Token: inv.Token})
	if err != nil {
		t.Fatal(err)
	}
	return joined
}

func loggerTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

func newHTTPServer(t *testing.T, h http.Handler) (url string) {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL
}

func TestEveryCodeHasAStatus(t *testing.T) {
	for _, code := range []tracking.ErrorCode{
		tracking.ErrInvalid, tracking.ErrUnauthorized, tracking.ErrNotFound, tracking.ErrConflict,
		tracking.ErrTooLarge, tracking.ErrRateLimited, tracking.ErrUnavailable, tracking.ErrInternal,
		"method_not_allowed", "uri_too_long", "unsupported_media_type",
	} {
		status, ok := httpadapter.StatusOf(code)
		if !ok || codes[status] != string(code) {
			t.Errorf("%s: %d", code, status)
		}
	}
	if _, ok := httpadapter.StatusOf("other"); ok {
		t.Error("a code that there is not has a status")
	}
}

func TestOptions(t *testing.T) {
	svc, err := tracking.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := httpadapter.New(svc, nil); err != nil {
		t.Errorf("nil options: %v", err)
	}
	if _, err := httpadapter.New(nil, nil); err == nil {
		t.Error("no Service: no error")
	}
	for name, o := range map[string]httpadapter.Options{
		"empty key":      {Keys: map[string]httpadapter.Principal{"": {}}},
		"BaseURL":        {BaseURL: "track.example"},
		"BaseURL query":  {BaseURL: "https://track.example/?a"},
		"BaseURL user":   {BaseURL: "https://u:p@track.example"},
		"Prefix":         {Prefix: "delivery"},
		"BaseURL path":   {BaseURL: "https://track.example/a b"},
		"BaseURL dots":   {BaseURL: "https://track.example/a/../b"},
		"BaseURL ?":      {BaseURL: "https://track.example/?"},
		"BaseURL #":      {BaseURL: "https://track.example/#"},
		"Prefix braces":  {Prefix: "/{x}"},
		"Prefix letters": {Prefix: "/доставка"},
		"Prefix dots":    {Prefix: "/a/../b"},
		"CORSOrigins":    {CORSOrigins: []string{"https://shop.example/"}},
		"CORS case":      {CORSOrigins: []string{"https://Shop.example"}},
		"CORS letters":   {CORSOrigins: []string{"https://bücher.example"}},
		"CORS port":      {CORSOrigins: []string{"https://shop.example:443"}},
		"CORS http port": {CORSOrigins: []string{"http://shop.example:80"}},
		"FrameAncestors": {FrameAncestors: []string{"https://a.example; script-src *"}},
		"ReadTimeout":    {ReadTimeout: -1},
		"Heartbeat":      {Heartbeat: -1},
		"MaxStreams":     {MaxStreams: -1},
	} {
		if _, err := httpadapter.New(svc, &o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestOptionsNameTheFirstFault: of several bad options it is always the same one that is named.
func TestOptionsNameTheFirstFault(t *testing.T) {
	svc, err := tracking.New(memory.New(), nil)
	if err != nil {
		t.Fatal(err)
	}
	bad := web.Site{Color: "red"}
	o := httpadapter.Options{Sites: map[tracking.AppID]web.Site{"d": bad, "a": bad, "c": {}, "b": bad, "e": bad}}
	for range 30 {
		if _, err := httpadapter.New(svc, &o); err == nil || !strings.Contains(err.Error(), `Options.Sites["a"]`) {
			t.Fatal(err)
		}
	}
}

func TestPrefixAndMount(t *testing.T) {
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) {
		ho.Prefix, ho.BaseURL = "/delivery/", "https://track.example/"
		ho.Health = func(context.Context) error { return nil }
	})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "home") })
	s.h.Mount(mux)
	s.url = newHTTPServer(t, mux)
	s.check("list", s.app("GET", "/delivery/v1/task/list", ""), 200, "")
	s.check("health", s.do("GET", "/delivery/healthz", ""), 200, "")
	if r := s.app("GET", "/v1/task/list", ""); r.status != 404 {
		t.Errorf("without the prefix: %d", r.status)
	}
	for _, path := range []string{"/delivery/v1", "/delivery/track", "/delivery/join"} {
		if r := s.app("GET", path, ""); r.status != 404 || r.header.Get("Location") != "" {
			t.Errorf("%s: %d %s", path, r.status, r.header.Get("Location"))
		}
	}
	task := text(s.data(s.app("POST", "/delivery/v1/task/create", `{"type":2,"drop":{"address":"x"}}`)), "task",
		"task_id")
	if url := text(s.data(s.app("GET", "/delivery/v1/task/trackingurl/"+task, "")), "webUrl"); !strings.HasPrefix(url,
		"https://track.example/delivery/track/") {
		t.Errorf("webUrl: %s", url)
	}
}

func TestLinksFromTheRequest(t *testing.T) {
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) { ho.BaseURL = "" })
	if url := text(s.data(s.app("GET", "/v1/task/trackingurl/"+s.newTask(""), "")), "webUrl"); !strings.HasPrefix(url,
		s.url+"/track/") {
		t.Errorf("webUrl: %s", url)
	}
	tls := httptest.NewTLSServer(s.h)
	defer tls.Close()
	res, err := tls.Client().Post(tls.URL+"/v1/invite_user?apikey=key-a", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(b), `"url":"`+tls.URL+"/join/") {
		t.Errorf("%s, %v", b, err)
	}
}

func TestHealth(t *testing.T) {
	var sick error
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) {
		ho.Health = func(context.Context) error { return sick }
	})
	s.check("well", s.do("GET", "/healthz", ""), 200, "")
	sick = errors.New("fsync failed")
	r := s.do("GET", "/healthz", "")
	s.check("sick", r, 503, "")
	if strings.Contains(r.body, "fsync") || !strings.Contains(s.log.String(), "fsync failed") ||
		r.header.Get("Retry-After") != "5" {
		t.Errorf("%s %v", r.body, r.header)
	}
}

func TestCORS(t *testing.T) {
	const shop = "https://shop.example"
	allowed := func(s *server, method, target, origin string) string {
		r := s.do(method, target, "", "Origin: "+origin, "Access-Control-Request-Method: POST")
		if r.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: credentials are allowed", target)
		}
		return r.header.Get("Access-Control-Allow-Origin")
	}
	for _, c := range []struct {
		name                       string
		origins                    []string
		key, keyOther, public, pre string
	}{
		{"none", nil, "", "", "", ""},
		{"one", []string{shop}, shop, "", shop, shop},
		{"all", []string{"*"}, "", "", "*", ""},
		{"all and one", []string{"*", shop}, shop, "", "*", shop},
	} {
		s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) { ho.CORSOrigins = c.origins })
		state := s.link(s.newTask("")) + "/state"
		got := []string{
			allowed(s, "GET", "/v1/task/list?apikey=key-a", shop),
			allowed(s, "GET", "/v1/task/list?apikey=key-a", "https://evil.example"),
			allowed(s, "GET", state, shop), allowed(s, "OPTIONS", "/v1/task/create", shop),
		}
		if d := cmp.Diff([]string{c.key, c.keyOther, c.public, c.pre}, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", c.name, d)
		}
		if len(c.origins) > 0 {
			if v := s.app("GET", "/v1/task/list", "").header.Get("Vary"); v != "Origin" {
				t.Errorf("%s: Vary is %q", c.name, v)
			}
			if a := allowed(s, "OPTIONS", state, shop); a != c.public {
				t.Errorf("%s: preflight of the state: %q, want %q", c.name, a, c.public)
			}
		}
	}
}

func TestAuthenticate(t *testing.T) {
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) {
		ho.Authenticate = func(r *http.Request) (httpadapter.Principal, error) {
			switch r.Header.Get("Cookie") {
			case "user=42":
				return httpadapter.Principal{App: "a", Actor: "user:42"}, nil
			case "user=slow":
				return httpadapter.Principal{}, &tracking.Error{Code: tracking.ErrRateLimited, Message: "Slow down."}
			case "user=default":
				return httpadapter.Principal{}, nil
			}
			return httpadapter.Principal{}, errors.New("who is s3cret?")
		}
	})
	r := s.do("GET", "/v1/task/list?apikey=key-a", "")
	s.check("nobody", r, 401, "")
	if strings.Contains(r.body, "s3cret") {
		t.Error(r.body)
	}
	s.check("slow", s.do("GET", "/v1/task/list", "", "Cookie: user=slow"), 429, "")
	s.check("default application", s.do("GET", "/v1/task/list", "", "Cookie: user=default"), 200, "")
	s.data(s.do("POST", "/v1/task/create", `{"type":2,"drop":{"address":"x"}}`, "Cookie: user=42"))
	if e := s.data(s.do("GET", "/v1/events", "", "Cookie: user=42")); text(e, "events", 0, "actor") != "user:42" {
		t.Errorf("events: %v", e)
	}
}

// TestOwnLoginRefuses: the caller reads what a login of the embedder's has to say, and never that a
// key is missing.
func TestOwnLoginRefuses(t *testing.T) {
	const neutral = "You are not signed in, or what you signed in with is not valid here."
	for name, c := range map[string]struct {
		err     error
		status  int
		message string
	}{
		"the code":          {tracking.ErrUnauthorized, 401, neutral},
		"the code, wrapped": {fmt.Errorf("session s3cret: %w", tracking.ErrUnauthorized), 401, neutral},
		"any error":         {errors.New("who is s3cret?"), 401, neutral},
		"an own message": {
			&tracking.Error{Code: tracking.ErrUnauthorized, Message: "Sign in at /login.", Err: errors.New("s3cret")},
			401, "Sign in at /login.",
		},
		"an own message, wrapped": {
			fmt.Errorf("s3cret: %w", &tracking.Error{Code: tracking.ErrUnauthorized, Message: "Sign in at /login."}),
			401, "Sign in at /login.",
		},
		"no message": {
			&tracking.Error{Code: tracking.ErrUnauthorized, Err: errors.New("s3cret")}, 401, neutral,
		},
		"it is away": {fmt.Errorf("s3cret: %w", tracking.ErrUnavailable), 503, "Service Unavailable."},
		"it does not answer": {
			fmt.Errorf("s3cret: %w", context.DeadlineExceeded), 503, "The call was ended before it was answered.",
		},
		"a code that nobody knows": {tracking.ErrorCode("s3cret"), 500, "Something went wrong on our side."},
		"no code":                  {&tracking.Error{Message: "s3cret"}, 500, "Something went wrong on our side."},
		"a nil error":              {(*tracking.Error)(nil), 500, "Something went wrong on our side."},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) {
				ho.Authenticate = func(*http.Request) (httpadapter.Principal, error) {
					return httpadapter.Principal{}, c.err
				}
			})
			r := s.do("GET", "/v1/task/list", "")
			s.check(name, r, c.status, "")
			if !strings.Contains(r.body, fmt.Sprintf("%q", c.message)) || strings.Contains(r.body, "s3cret") {
				t.Errorf("%d %s", r.status, r.body)
			}
		})
	}
}

// TestMistakenLogin: what is wrong with a login of the embedder's stands in the log, without the text
// of its errors.
func TestMistakenLogin(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a code that nobody knows": {tracking.ErrorCode("s3cret"), "Options.Authenticate returned an ErrorCode that is none"},
		"no code": {
			&tracking.Error{Message: "s3cret"}, "Options.Authenticate returned a *tracking.Error without a Code",
		},
		"a nil error": {(*tracking.Error)(nil), "Options.Authenticate returned a nil *tracking.Error"},
		"a database that is away": {
			fmt.Errorf("s3cret: %w", &net.OpError{Op: "dial", Err: errors.New("s3cret")}),
			`login_error="*fmt.wrapError: *net.OpError: *errors.errorString"`,
		},
	} {
		s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) {
			ho.Authenticate = func(*http.Request) (httpadapter.Principal, error) { return httpadapter.Principal{}, c.err }
		})
		s.do("GET", "/v1/task/list", "")
		if log := s.log.String(); !strings.Contains(log, c.want) || strings.Contains(log, "s3cret") {
			t.Errorf("%s: the log is %s, want %s", name, log, c.want)
		}
	}
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) {
		ho.Authenticate = func(*http.Request) (httpadapter.Principal, error) {
			return httpadapter.Principal{}, tracking.ErrUnauthorized
		}
	})
	s.do("GET", "/v1/task/list", "")
	if log := s.log.String(); !strings.Contains(log, "status=401") || strings.Contains(log, "login_error") {
		t.Errorf("a login that says no by the code is logged as %s", log)
	}
}

// TestURLs: what Go gives is what the API gives, and create has it already.
func TestURLs(t *testing.T) {
	for _, base := range []string{"https://shop.example/here", ""} {
		s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) { ho.BaseURL, ho.Prefix = base, "/delivery" })
		create := func() (id, url string) {
			data := s.data(s.app("POST", "/delivery/v1/task/create", `{"type":2,"drop":{"address":"x"}}`, "Idempotency-Key: k"))
			url, _ = data["tracking_url"].(string)
			return text(data, "task", "task_id"), url
		}
		id, made := create()
		if again, url := create(); again != id || url != made {
			t.Errorf("asked for again it is %s %s, want %s %s", again, url, id, made)
		}
		row := `{"tasks":[{"type":2,"drop":{"address":"x"},"key":"k"}]}`
		if url := text(s.data(s.app("POST", "/delivery/v1/task/batch", row)), "results", 0, "tracking_url"); url != made {
			t.Errorf("in a batch it is %s, want %s", url, made)
		}
		token, err := s.svc.TaskLink(t.Context(), tracking.TaskID(id))
		if err != nil {
			t.Fatal(err)
		}
		invited := text(s.data(s.app("POST", "/delivery/v1/invite_user", `{"user_id":"ravi"}`)), "url")
		host := ""
		if base == "" {
			host = s.url
		}
		if got := host + s.h.TrackingURL(token); got != made || got != text(s.data(s.app("GET",
			"/delivery/v1/task/trackingurl/"+id, "")), "webUrl") {
			t.Errorf("with BaseURL %q the page is %s, want %s", base, got, made)
		}
		if got := host + s.h.JoinURL(path.Base(invited)); got != invited {
			t.Errorf("with BaseURL %q the invite is %s, want %s", base, got, invited)
		}
		if got, want := s.h.SignInURL("t"), base+"/delivery/board/#signin=t"; got != want {
			t.Errorf("with BaseURL %q the board is %s, want %s", base, got, want)
		}
		s.data(s.app("POST", "/delivery/v1/task/trackingurl/revoke", `{"task_id":"`+id+`"}`))
		if _, url := create(); url != "" {
			t.Errorf("the link was revoked, and create answers %s", url)
		}
	}
}

func TestPublicPages(t *testing.T) {
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) {
		ho.FrameAncestors = []string{"https://shop.example", "'self'"}
	})
	task := s.newTask(`,"order_id":"<b>\"1\"</b>","notes":"secret note"`)
	link := s.link(task)
	page := s.do("GET", link, "")
	for name, want := range map[string]string{
		"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store",
		"Referrer-Policy": "strict-origin-when-cross-origin", "X-Robots-Tag": "noindex, nofollow",
		"X-Content-Type-Options": "nosniff", "X-Frame-Options": "",
	} {
		if got := page.header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	csp := page.header.Get("Content-Security-Policy")
	if !strings.HasPrefix(csp, "default-src 'none'; ") ||
		!strings.HasSuffix(csp, "frame-ancestors https://shop.example 'self'") || strings.Contains(csp, "unsafe") {
		t.Errorf("CSP: %s", csp)
	}
	for _, no := range []string{"<b>", "secret note", "Asha", "+91", task} {
		if strings.Contains(page.body, no) {
			t.Errorf("the page has %q: %s", no, page.body)
		}
	}
	if !strings.Contains(page.body, "12 Beach Road") || !strings.Contains(page.body, "&lt;b&gt;") {
		t.Errorf("page: %s", page.body)
	}

	unknown := s.do("GET", "/track/nobody", "")
	state := s.do("GET", "/track/nobody/state", "")
	for _, r := range []reply{unknown, state, s.do("GET", link+"/state", "")} {
		if r.header.Get("X-Robots-Tag") != "noindex, nofollow" || r.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%d %v", r.status, r.header)
		}
	}
	s.data(s.app("POST", "/v1/task/trackingurl/revoke", `{"task_id":"`+task+`"}`))
	revoked := s.do("GET", link, "")
	if unknown.status != 404 || revoked.status != 404 || unknown.body != revoked.body ||
		unknown.header.Get("Content-Security-Policy") != revoked.header.Get("Content-Security-Policy") {
		t.Errorf("unknown: %d %s\nrevoked: %d %s", unknown.status, unknown.body, revoked.status, revoked.body)
	}
	if r := s.do("GET", link+"/state", ""); r.status != 404 || r.sameButID() != state.sameButID() {
		t.Errorf("state of a revoked link: %s", r.body)
	}
	if again := s.link(task); again == link {
		t.Error("asked for again, a revoked link is the same")
	}

	expiring := s.link(s.newTask(""))
	s.data(s.app("POST", "/v1/task/complete",
		`{"task_id":"`+text(s.data(s.app("GET", "/v1/task/list?limit=1", "")), "task_list", 0, "task_id")+`"}`))
	if r := s.do("GET", expiring, ""); r.status != 200 || !strings.Contains(r.body, "Delivered") {
		t.Errorf("after the end: %d %s", r.status, r.body)
	}
	s.clock.Advance(25 * 3600e9)
	if r := s.do("GET", expiring, ""); r.status != 404 || r.body != unknown.body {
		t.Errorf("expired: %d %s", r.status, r.body)
	}

	join, driver := s.do("GET", "/join/t0ken", ""), s.do("GET", "/driver/", "")
	if join.status != 200 || !strings.Contains(join.header.Get("Content-Security-Policy"), "frame-ancestors 'none'") ||
		strings.Contains(join.body, "t0ken") || join.body != driver.body {
		t.Errorf("join: %d %v %s", join.status, join.header, join.body)
	}
	if r := s.do("GET", "/driver?apikey=key-a", ""); r.status != 308 || r.header.Get("Location") != "/driver/" {
		t.Errorf("/driver: %d %v", r.status, r.header)
	}
	for _, page := range []string{s.do("GET", s.link(s.newTask("")), "").body, driver.body} {
		links := regexp.MustCompile(`(?:href|src)="(/[^"]*)"`).FindAllStringSubmatch(page, -1)
		if len(links) < 3 {
			t.Errorf("a page with %d links: %s", len(links), page)
		}
		for _, l := range links {
			if r := s.do("GET", l[1], ""); r.status != 200 || r.header.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %d %v", l[1], r.status, r.header)
			}
		}
	}
	if r := s.do("GET", "/driver/sw.js", ""); r.status != 200 ||
		!strings.HasPrefix(r.header.Get("Content-Type"), "text/javascript") {
		t.Errorf("service worker: %d %v", r.status, r.header)
	}
	if r := s.do("GET", "/track/assets/nothing.js", ""); r.status != 404 {
		t.Errorf("unknown file: %d", r.status)
	}
}

// TestCallerGone: whoever hangs up before the answer is no error of the server's, and cannot fill
// its log with them.
func TestCallerGone(t *testing.T) {
	s := newServer(t)
	gone, hangUp := context.WithCancel(t.Context())
	hangUp()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for _, c := range []struct {
		ctx   context.Context
		level string
	}{{gone, "level=INFO"}, {late, "level=ERROR"}} {
		before := len(s.log.String())
		w := httptest.NewRecorder()
		s.h.ServeHTTP(w, httptest.NewRequestWithContext(c.ctx, "GET", "/v1/task/list?apikey=key-a", nil))
		if line := s.log.String()[before:]; w.Code != 503 || !strings.Contains(line, c.level) ||
			!strings.Contains(line, "status=503") {
			t.Errorf("%v: %d, %s", c.ctx.Err(), w.Code, line)
		}
	}

	// Nor is he who hangs up while he is being answered.
	before := len(s.log.String())
	s.h.ServeHTTP(deafWriter{httptest.NewRecorder()}, httptest.NewRequest("GET", "/v1/task/list?apikey=key-a", nil))
	if line := s.log.String()[before:]; !strings.Contains(line, "level=INFO") ||
		!strings.Contains(line, "status=200") || !strings.Contains(line, "broken_off=true") ||
		strings.Contains(line, "code=") {
		t.Errorf("broken off: %s", line)
	}
}

// deafWriter is a connection that nobody listens on any more.
type deafWriter struct{ http.ResponseWriter }

func (deafWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }
