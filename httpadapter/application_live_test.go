package httpadapter_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
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

// look opens the stream of an application. Headers are "Name: value".
func (s *server) look(headers ...string) *viewer {
	s.Helper()
	ctx, stop := context.WithTimeout(s.Context(), time.Minute) // only keeps a broken test from hanging
	s.Cleanup(stop)
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+"/v1/live", nil)
	if err != nil {
		s.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
		s.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	return &viewer{s, res, bufio.NewReader(res.Body), stop, ""}
}

const withKeyA = "X-Api-Key: key-a"

// until reads up to an event of that kind, and returns the data of each as "kind data".
func (v *viewer) until(kind string) (all []string) {
	v.Helper()
	for {
		event, data := v.next()
		if all = append(all, event+" "+data); event == kind {
			return all
		} else if event == "EOF" {
			v.Fatalf("the stream ended: %q", all)
		}
	}
}

// beats reads so many heartbeats.
func (v *viewer) beats(n int) {
	v.Helper()
	for n > 0 {
		line, err := v.r.ReadString('\n')
		if err != nil {
			v.Fatalf("the stream ended: %v", err)
		}
		if strings.HasPrefix(line, ":") {
			n--
		}
	}
}

// element is one of a list, as it is written there.
func (s *server) element(target, list string, n int) string {
	s.Helper()
	var v struct{ Data map[string]json.RawMessage }
	var elements []json.RawMessage
	if err := json.Unmarshal([]byte(s.app("GET", target, "").body), &v); err != nil {
		s.Fatal(err)
	}
	if err := json.Unmarshal(v.Data[list], &elements); err != nil || len(elements) <= n {
		s.Fatalf("%s: %v, %d elements", target, err, len(elements))
	}
	return string(elements[n])
}

// What comes is what the lists have: all that is under way, then each change.
func TestLiveOfAnApplication(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	s.newDriver("meena")
	s.data(s.app("POST", "/v1/users/driver", `{"driver_id":"meena","availability":false}`))
	task, over := s.newTask(""), s.newTask("")
	s.data(s.app("POST", "/v1/task/cancel", `{"task_id":"`+over+`"}`))

	v := s.look(withKeyA)
	drivers, tasks := "/v1/users/drivers?availability=true", "/v1/task/list?status=created,assigned,in_progress"
	want := []string{
		"driver " + s.element(drivers, "drivers", 0), "task " + s.element(tasks, "task_list", 0),
		`ready {"at":"2026-03-14T09:00:00.000Z"}`,
	}
	if d := cmp.Diff(want, v.until("ready")); d != "" {
		t.Errorf("at first (-want +got)\n%s", d)
	}
	first := v.id

	s.clock.Advance(time.Minute)
	s.data(s.asDriver(token, "POST", "/v1/driver/fixes",
		`{"fixes":[{"lnglat":[80.2612345678,13],"time":"2026-03-14T09:01:00Z","accuracy":8,"bearing":90,"speed":5.5,"battery":0.25}]}`))
	want = []string{
		`position {"driver_id":"ravi","lnglat":[80.2612345678,13],"accuracy":8,"heading":90,"speed":5.5,"battery":0.25,"at":"2026-03-14T09:01:00.000Z"}`,
	}
	if d := cmp.Diff(want, v.until("position")); d != "" {
		t.Errorf("a fix (-want +got)\n%s", d)
	}
	s.data(s.app("POST", "/v1/task/cancel", `{"task_id":"`+task+`"}`))
	ended := v.until("task")
	if d := cmp.Diff([]string{"task " + s.element("/v1/task/list?status=completed", "task_list", 1)}, ended); d != "" {
		t.Errorf("the end of a task (-want +got)\n%s", d)
	}
	s.data(s.app("POST", "/v1/users/driver", `{"driver_id":"ravi","availability":false}`))
	if d := cmp.Diff([]string{"driver " + s.element("/v1/users/drivers", "drivers", 0)}, v.until("driver")); d != "" {
		t.Errorf("who goes off duty (-want +got)\n%s", d)
	}
	s.data(s.app("POST", "/v1/users/driver/delete", `{"driver_id":"ravi"}`))
	if d := cmp.Diff([]string{`gone {"driver_id":"ravi"}`}, v.until("gone")); d != "" {
		t.Errorf("who is erased (-want +got)\n%s", d)
	}

	// Who comes again goes on from there.
	v.stop()
	v = s.look(withKeyA, "Last-Event-ID: "+first)
	if d := cmp.Diff([]string{ended[0], `gone {"driver_id":"ravi"}`}, v.until("gone")); d != "" {
		t.Errorf("since the first (-want +got)\n%s", d)
	}
	for _, lost := range []string{"unknown", "0", first + "9", "x" + first} {
		v := s.look(withKeyA, "Last-Event-ID: "+lost)
		want := []string{"reset {}", `ready {"at":"2026-03-14T09:01:00.000Z"}`}
		if d := cmp.Diff(want, v.until("ready")); d != "" {
			t.Errorf("after %s (-want +got)\n%s", lost, d)
		}
	}
	if r := s.do("HEAD", withKey("/v1/live", "key-a"), ""); r.status != 200 || r.body != "" {
		t.Errorf("HEAD: %d %s", r.status, r.body)
	}
	if err := s.svc.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if event, data := v.next(); event != "EOF" {
		t.Errorf("after Close: %s %s", event, data)
	}
}

// A stream ends with the right of whoever reads it, and not before.
func TestLiveEndsWithTheRight(t *testing.T) {
	var login struct {
		httpadapter.Principal
		err error
	}
	s := newServer(t, func(_ *tracking.Options, o *httpadapter.Options) { o.Heartbeat = 5 * time.Millisecond })
	key, secret, err := s.svc.CreateKey(t.Context(), "board")
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := s.svc.CreateKey(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	gate := make(chan struct{}, 1)
	gate <- struct{}{}
	hosted := newServer(t, func(_ *tracking.Options, o *httpadapter.Options) {
		o.Heartbeat = 5 * time.Millisecond
		o.Authenticate = func(*http.Request) (httpadapter.Principal, error) {
			<-gate
			defer func() { gate <- struct{}{} }()
			return login.Principal, login.err
		}
	})
	var open *viewer
	change := func(to func()) func() {
		return func() { <-gate; to(); gate <- struct{}{} }
	}
	for _, c := range []struct {
		name    string
		s       *server
		headers []string
		before  func()
		ends    func()
	}{
		{
			"the key is revoked", s, []string{"X-Api-Key: " + secret}, func() {},
			func() {
				if err := s.svc.RevokeKey(t.Context(), key.ID); err != nil {
					t.Fatal(err)
				}
			},
		},
		{
			"the session is over", s, []string{s.signIn(fmt.Sprintf(`{"key":%q,"role":"view"}`, other))}, func() {},
			func() { s.clock.Advance(tracking.SessionTTL) },
		},
		{
			"the login is over", hosted, nil, change(func() { login.Principal.App = "a" }),
			change(func() { login.err = tracking.ErrUnauthorized }),
		},
		{
			"the login is for another application", hosted, nil, change(func() { login.App, login.err = "a", nil }),
			change(func() { login.App = "b" }),
		},
		{
			"the login cannot answer, and then refuses", hosted, nil, change(func() { login.App, login.err = "a", nil }),
			func() {
				change(func() { login.err = tracking.ErrUnavailable })()
				open.beats(3)
				change(func() { login.err = tracking.ErrForbidden })()
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.before()
			v := c.s.look(c.headers...)
			open = v
			v.until("ready")
			if _, err := c.s.svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: "d", Available: new(true)}); err != nil {
				t.Fatal(err)
			}
			if event, data := v.next(); event != "driver" {
				t.Fatalf("before: %s %s", event, data)
			}
			if err := c.s.svc.DeleteDriver(t.Context(), "d"); err != nil {
				t.Fatal(err)
			}
			v.until("gone")
			c.ends()
			if event, data := v.next(); event != "EOF" {
				t.Errorf("afterwards: %s %s", event, data)
			}
		})
	}
}

// However long the heartbeat of other streams, and however much happens, a comment comes every 5 s.
func TestLiveBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, err := tracking.New(memory.New(), nil)
		if err != nil {
			t.Fatal(err)
		}
		h, err := httpadapter.New(svc, &httpadapter.Options{
			Keys: map[string]httpadapter.Principal{"k": {}}, Heartbeat: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, busy := range []bool{false, true} {
			ctx, cancel := context.WithTimeout(t.Context(), 16*time.Second)
			r := httptest.NewRequestWithContext(ctx, "GET", "/v1/live?apikey=k", nil)
			w := httptest.NewRecorder()
			done := make(chan struct{})
			go func() { h.ServeHTTP(w, r); close(done) }()
			for n := 0; busy && ctx.Err() == nil; n++ {
				name := fmt.Sprint(n)
				if _, err := svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: "d", Name: &name}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
			}
			<-done
			cancel()
			if n := strings.Count(w.Body.String(), "\n: "); n != 3 {
				t.Errorf("busy: %t: %d comments in 16 s, want 3", busy, n)
			}
			if n := strings.Count(w.Body.String(), "event: driver\n"); busy && n < 100 {
				t.Errorf("%d changes were told", n)
			}
		}
		if err := svc.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
