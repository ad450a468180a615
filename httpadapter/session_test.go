package httpadapter_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// signIn opens a session and returns its cookie, as a header.
func (s *server) signIn(body string) (cookie string) {
	s.Helper()
	r := s.do("POST", "/v1/session", body, isJSON)
	s.check("sign in", r, 200, "")
	c, err := http.ParseSetCookie(r.header.Get("Set-Cookie"))
	if err != nil {
		s.Fatal(err)
	}
	return "Cookie: " + c.Name + "=" + c.Value
}

// A person signs in with a key, and is signed out by time, by revoking the key, and by signing out.
func TestSession(t *testing.T) {
	s := newServer(t)
	key, secret, err := s.svc.CreateKey(t.Context(), "board")
	if err != nil {
		t.Fatal(err)
	}
	r := s.do("POST", "/v1/session", `{"key":"`+secret+`"}`, isJSON)
	want := map[string]any{"session": map[string]any{
		"actor": "key:" + key.ID, "role": "dispatch", "expires_at": "2026-03-14T21:00:00.000Z",
	}}
	if diff := cmp.Diff(want, s.data(r)); diff != "" {
		t.Errorf("signed in (-want +got):\n%s", diff)
	}
	c, err := http.ParseSetCookie(r.header.Get("Set-Cookie"))
	if err != nil {
		t.Fatal(err)
	}
	if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.MaxAge != 12*60*60 ||
		strings.Contains(c.Value, secret) {
		t.Errorf("the cookie is %s", r.header.Get("Set-Cookie"))
	}
	cookie := "Cookie: " + c.Name + "=" + c.Value
	static := s.signIn(`{"key":"key-a"}`)
	for name, cookie := range map[string]string{"stored": cookie, "fixed": static} {
		s.check(name, s.do("GET", "/v1/task/list", "", cookie), 200, "")
		s.check(name, s.do("POST", "/v1/task/create", `{"type":2,"drop":{"address":"x"}}`, cookie), 200, "")
		s.check(name+", changed", s.do("GET", "/v1/task/list", "", cookie+"x"), 401, "")
		s.check(name+", changed", s.do("GET", "/v1/task/list", "", strings.Replace(cookie, "=", "=x", 1)), 401, "")
		s.check(name+", as another", s.do("GET", "/v1/task/list", "", "Cookie: other="+cookie), 401, "")
		s.check(name+", with a wrong key", s.do("GET", "/v1/task/list?apikey=wrong", "", cookie), 401, "")
		s.check(name+", of a driver", s.do("GET", "/v1/driver/me", "", cookie), 401, "")
	}
	actors := map[any]bool{}
	for _, e := range s.data(s.do("GET", "/v1/events", "", cookie))["events"].([]any) {
		actors[e.(map[string]any)["actor"]] = true
	}
	if diff := cmp.Diff(map[any]bool{"key:" + key.ID: true, "key:a": true}, actors); diff != "" {
		t.Errorf("the events name (-want +got):\n%s", diff)
	}

	r = s.do("DELETE", "/v1/session", "", cookie)
	s.check("sign out", r, 200, "")
	if c, err := http.ParseSetCookie(r.header.Get("Set-Cookie")); err != nil || c.MaxAge >= 0 || c.Value != "" {
		t.Errorf("signed out with %q", r.header.Get("Set-Cookie"))
	}
	if err := s.svc.RevokeKey(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	s.check("the key is revoked", s.do("GET", "/v1/task/list", "", cookie), 401, "")
	s.check("sign in again", s.do("POST", "/v1/session", `{"key":"`+secret+`"}`, isJSON), 401, "")
	s.clock.Advance(12*time.Hour - time.Millisecond)
	s.check("before its end", s.do("GET", "/v1/session", "", static), 200, "")
	s.clock.Advance(time.Millisecond)
	s.check("at its end", s.do("GET", "/v1/session", "", static), 401, "")

	for _, c := range []struct {
		body   string
		status int
		field  string
	}{
		{`{}`, 400, "key"}, {`{"key":""}`, 400, "key"}, {`{"key":"wrong"}`, 401, ""}, {`{"token":"wrong"}`, 401, ""},
		{`{"key":"key-a","token":"x"}`, 400, "token"}, {`{"key":"key-a","role":"admin"}`, 400, "role"},
	} {
		r := s.do("POST", "/v1/session", c.body, isJSON)
		s.check(c.body, r, c.status, c.field)
		if r.header.Get("Set-Cookie") != "" {
			t.Errorf("%s: a cookie is set", c.body)
		}
	}
	s.check("a form", s.do("POST", "/v1/session", "key=key-a", "Content-Type: text/plain"), 415, "")

	plain := newServer(t, func(_ *tracking.Options, o *httpadapter.Options) {
		o.BaseURL, o.Prefix = "", "/delivery"
		delete(o.Keys, "key-a")
	})
	set := plain.do("POST", "/delivery/v1/session", `{"key":"key-b"}`, isJSON).header.Get("Set-Cookie")
	if c, err := http.ParseSetCookie(set); err != nil || c.Secure || c.Path != "/delivery/" {
		t.Errorf("over http, below a prefix: %q", set)
	}
	plain.check("in a program without that key", plain.do("GET", "/delivery/v1/session", "", static), 401, "")
}

// A token signs in once, within 10 minutes, for its application; on every store.
func TestSignIn(t *testing.T) {
	for name, store := range map[string]tracking.Store{"memory": memory.New(), "sqlite": file(t)} {
		t.Run(name, func(t *testing.T) {
			s := newServerOn(t, store)
			token := func(sign func() (string, error)) string {
				t.Helper()
				v, err := sign()
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
			first := token(func() (string, error) { return s.svc.SignIn(t.Context(), "user:42") })
			cookie := s.signIn(`{"token":"` + first + `"}`)
			s.check("the token is no key", s.do("GET", "/v1/task/list?apikey="+first, ""), 401, "")
			s.check("twice", s.do("POST", "/v1/session", `{"token":"`+first+`"}`, isJSON), 401, "")
			s.check("create", s.do("POST", "/v1/task/create", `{"type":2,"drop":{"address":"x"}}`, cookie), 200, "")
			events := s.data(s.do("GET", "/v1/events", "", cookie))["events"].([]any)
			if got := events[0].(map[string]any)["actor"]; got != "user:42" {
				t.Errorf("the events name %v", got)
			}
			if n := len(s.data(s.do("GET", "/v1/task/list", "", cookie))["task_list"].([]any)); n != 1 {
				t.Errorf("%d tasks, want that of the application", n)
			}

			late := token(func() (string, error) { return s.svc.SignIn(t.Context(), "late") })
			view := token(func() (string, error) { return s.svc.SignInToView(t.Context(), "user:7") })
			viewer := s.signIn(`{"token":"` + view + `","role":"dispatch"}`)
			s.check("a viewer looks", s.do("GET", "/v1/task/list", "", viewer), 200, "")
			s.check("a viewer changes", s.do("POST", "/v1/task/create", `{"type":2,"drop":{"address":"x"}}`, viewer), 403, "")
			s.clock.Advance(10 * time.Minute)
			s.check("too late", s.do("POST", "/v1/session", `{"token":"`+late+`"}`, isJSON), 401, "")

			keys, err := s.svc.Keys(t.Context())
			if err != nil || keys != nil {
				t.Errorf("tokens are among the keys: %v, error %v", keys, err)
			}
			for range 5 {
				token(func() (string, error) { return s.svc.SignIn(t.Context(), "again") })
				s.clock.Advance(time.Hour)
			}
			if rows, err := store.Keys(t.Context(), "a"); err != nil || len(rows) != 2 {
				t.Errorf("%d rows are kept, want as many as there were at once; error %v", len(rows), err)
			}
			for _, actor := range []string{"", strings.Repeat("x", 201), "a\nb"} {
				if _, err := s.svc.SignIn(t.Context(), actor); err == nil {
					t.Errorf("signed in as %q", actor)
				}
			}
		})
	}
}

func file(t *testing.T) tracking.Store {
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "tracking.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

// A viewer gets 403 for every route that changes something, and for no other.
func TestViewer(t *testing.T) {
	own := func(_ *tracking.Options, o *httpadapter.Options) {
		o.Authenticate = func(r *http.Request) (httpadapter.Principal, error) {
			c, err := r.Cookie("login")
			if err != nil {
				return httpadapter.Principal{}, err
			}
			return httpadapter.Principal{App: "a", Actor: "user:1", Role: tracking.Role(c.Value)}, nil
		}
	}
	s := newServer(t, own)
	for _, rt := range s.h.Routes() {
		if rt.Who != "application" {
			continue
		}
		path := strings.NewReplacer("{task_id}", "x", "{trip_id}", "x").Replace(rt.Pattern)
		reads := rt.Method == "GET"
		for role, may := range map[string]bool{"": true, "dispatch": true, "view": reads, "admin": reads} {
			r := s.do(rt.Method, path, "", "Cookie: login="+role)
			if refused := r.status == 403; refused == may {
				t.Errorf("%s %s as %q: %d", rt.Method, rt.Pattern, role, r.status)
			}
		}
	}
	s.check("a key where there is another login", s.do("POST", "/v1/session", `{"key":"key-a"}`, isJSON), 400, "key")
	token, err := s.svc.SignIn(t.Context(), "user:2")
	if err != nil {
		t.Fatal(err)
	}
	cookie := s.signIn(`{"token":"` + token + `","role":"view"}`)
	got := s.data(s.do("GET", "/v1/session", "", cookie))["session"].(map[string]any)
	if got["actor"] != "user:2" || got["role"] != "view" {
		t.Errorf("signed in as %v", got)
	}
}

// What a browser says of where a call comes from, in every combination: what it sends by itself, a
// cookie, ours or the program's own, or a login that it has asked for, does nothing for pages of other
// sites. A key it does not send, nor a token.
func TestCrossSite(t *testing.T) {
	ours := newServer(t)
	theirs := newServer(t, func(_ *tracking.Options, o *httpadapter.Options) {
		o.Authenticate = func(r *http.Request) (httpadapter.Principal, error) {
			_, err := r.Cookie("login")
			if err != nil && r.Header.Get("Authorization") == "" {
				return httpadapter.Principal{}, err
			}
			return httpadapter.Principal{App: "a", Actor: "user:1"}, nil
		}
	})
	session := ours.signIn(`{"key":"key-a"}`)
	for _, who := range []struct {
		name, target string
		s            *server
		headers      []string
		byBrowser    bool
	}{
		{"session", "", ours, []string{session}, true},
		{"login of the program", "", theirs, []string{"Cookie: login=1"}, true},
		{"login by HTTP Basic", "", theirs, []string{"Authorization: Basic b3duZXI6cHc="}, true},
		{"login by HTTP Basic in small letters", "", theirs, []string{"Authorization: basic b3duZXI6cHc="}, true},
		{"token of the program", "", theirs, []string{"Authorization: bearer x"}, false},
		{"key", "?apikey=key-a", ours, nil, false},
		{"key and session", "?apikey=key-a", ours, []string{session}, false},
		{"key in a header and session", "", ours, []string{session, "X-Api-Key: key-a"}, false},
	} {
		own := strings.TrimPrefix(who.s.url, "http://")
		for _, site := range []string{"", "same-origin", "none", "same-site", "cross-site"} {
			for _, origin := range []string{"", "http://" + own, "https://track.example", "https://evil.example", "null"} {
				headers := who.headers
				if site != "" {
					headers = append(headers[:len(headers):len(headers)], "Sec-Fetch-Site: "+site)
				}
				if origin != "" {
					headers = append(headers[:len(headers):len(headers)], "Origin: "+origin)
				}
				// The program's own page may be served under the name that the proxy has.
				foreign := site == "same-site" || site == "cross-site" ||
					site == "" && origin != "" && origin != "http://"+own
				foreign = foreign && origin != "https://track.example"
				name := fmt.Sprintf("%s, Sec-Fetch-Site %q, Origin %q", who.name, site, origin)
				status := 200
				if foreign && who.byBrowser {
					status = 403
				}
				r := who.s.do("POST", "/v1/task/create"+who.target, `{"type":2,"drop":{"address":"x"}}`, headers...)
				who.s.check(name, r, status, "")
				who.s.check(name+", reading", who.s.do("GET", "/v1/task/list"+who.target, "", headers...), 200, "")

				// Nor does a page of another site sign anybody in or out.
				status = 200
				if foreign {
					status = 403
				}
				out := who.s.do("DELETE", "/v1/session", "", headers...)
				who.s.check(name+", signing out", out, status, "")
				if who.s == ours {
					in := who.s.do("POST", "/v1/session", `{"key":"key-a"}`, append(headers, isJSON)...)
					who.s.check(name+", signing in", in, status, "")
				}
			}
		}
	}
}
