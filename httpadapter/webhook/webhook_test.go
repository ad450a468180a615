package webhook_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
)

const (
	secret  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	secret2 = "whsec_bm90IHRoZSBzYW1lIHNlY3JldCBhdCBhbGw="
)

var (
	now      = time.Date(2026, 5, 4, 3, 2, 1, 987e6, time.UTC)
	loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	assigned = tracking.Notification{App: "default", Attempt: 1, Event: tracking.Event{
		ID: "01hv", Type: tracking.EventTaskAssigned, Time: now.Add(-time.Hour), RecordedAt: now.Add(-time.Minute),
		Actor: "key:k1",
		Subject: tracking.Subject{
			Kind: tracking.KindTask, ID: "t1",
		}, Seq: 2, Data: map[string]string{"driver_id": "a<b"},
	}}
)

const assignedBody = `{"type":"task.assigned","timestamp":"2026-05-04T02:02:01.987Z","data":{"id":"01hv","type":"task.assigned","time":"2026-05-04T02:02:01.987Z","recorded_at":"2026-05-04T03:01:01.987Z","actor":"key:k1","subject":{"kind":"task","id":"t1"},"seq":2,"data":{"driver_id":"a<b"}}}`

// receiver is a server that answers as h says, and a notifier for it.
func receiver(t *testing.T, opts webhook.Options, h http.HandlerFunc) *webhook.Notifier {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	opts.Allow = loopback
	opts.Now = func() time.Time { return now }
	n, err := webhook.New(srv.URL+"/hook?token=t0k", []string{secret}, &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	return n
}

func TestNotify(t *testing.T) {
	type request struct {
		method, target, contentType, body string
		header                            http.Header
	}
	var got []request
	n := receiver(t, webhook.Options{}, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = append(got, request{r.Method, r.RequestURI, r.Header.Get("Content-Type"), string(b), r.Header})
		w.WriteHeader(http.StatusNoContent)
	})
	for range 2 {
		if err := n.Notify(t.Context(), assigned); err != nil {
			t.Fatal(err)
		}
	}
	if len(got) != 2 {
		t.Fatalf("%d requests", len(got))
	}
	for _, r := range got {
		if r.method != http.MethodPost || r.target != "/hook?token=t0k" || r.contentType != "application/json" {
			t.Errorf("%+v", r)
		}
		if d := cmp.Diff(assignedBody, r.body); d != "" {
			t.Errorf("body (-want +got):\n%s", d)
		}
		if r.header.Get("webhook-id") != "01hv" || r.header.Get("webhook-timestamp") != "1777863721" {
			t.Errorf("headers %v", r.header)
		}
		if err := webhook.Verify(r.header, []byte(r.body), now, secret); err != nil {
			t.Error(err)
		}
	}
}

func TestTwoSecrets(t *testing.T) {
	var header http.Header
	var body []byte
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		header = r.Header
		body, _ = io.ReadAll(r.Body)
	}))
	defer srv.Close()
	n, err := webhook.New(srv.URL, []string{secret, secret2}, &webhook.Options{Allow: loopback})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if err := n.Notify(t.Context(), assigned); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{secret, secret2} {
		if err := webhook.Verify(header, body, time.Now(), s); err != nil {
			t.Errorf("a receiver that knows one of them: %v", err)
		}
	}
	if err := webhook.Verify(header, body, time.Now(), webhook.NewSecret()); err != webhook.ErrSignature {
		t.Errorf("a receiver that knows neither: %v", err)
	}
}

func TestStatus(t *testing.T) {
	const day = 24 * time.Hour
	for _, tt := range []struct {
		status, attempt int
		retryAfter      string
		permanent       bool
		wait            time.Duration
	}{
		{status: 200}, {status: 201}, {status: 204}, {status: 299},
		{status: 301, attempt: 9}, {status: 302, attempt: 9}, {status: 304, attempt: 9}, {status: 307, attempt: 9},
		{status: 308, attempt: 9},
		{status: 400, attempt: 1}, {status: 400, attempt: 2}, {
			status: 400, attempt: 3, permanent: true,
		}, {status: 404, attempt: 4, permanent: true}, {status: 499, attempt: 3, permanent: true},
		{status: 408, attempt: 9}, {status: 425, attempt: 9}, {
			status: 429, attempt: 9, retryAfter: "120", wait: 2 * time.Minute,
		},
		{status: 410, attempt: 1, permanent: true},
		{status: 500, attempt: 9}, {status: 599, attempt: 9},
		{status: 503, attempt: 1, retryAfter: " 7 ", wait: 7 * time.Second},
		{status: 503, attempt: 1, retryAfter: "Mon, 04 May 2026 04:02:01 GMT", wait: time.Hour - 987*time.Millisecond},
		{status: 503, attempt: 1, retryAfter: "Mon, 04 May 2026 01:02:01 GMT"},
		{status: 503, attempt: 1, retryAfter: "Fri, 04 May 2126 01:02:01 GMT", wait: day},
		{status: 503, attempt: 1, retryAfter: "100000", wait: day},
		{status: 503, attempt: 1, retryAfter: "99999999999999999999999", wait: day},
		{status: 503, attempt: 1, retryAfter: "-5"}, {
			status: 503, attempt: 1, retryAfter: "soon",
		}, {status: 503, attempt: 1, retryAfter: "0"},
	} {
		n := receiver(t, webhook.Options{}, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/hook" {
				t.Errorf("%d: a redirect was followed", tt.status)
			}
			w.Header().Set("Retry-After", tt.retryAfter)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(tt.status)
		})
		note := assigned
		note.Attempt = tt.attempt
		err := n.Notify(t.Context(), note)
		if tt.status < 300 {
			if err != nil {
				t.Errorf("%d: %v", tt.status, err)
			}
			continue
		}
		var ne *tracking.NotifyError
		var se *webhook.StatusError
		if !errors.As(err, &ne) || !errors.As(err, &se) || se.Status != tt.status {
			t.Errorf("%d: %v", tt.status, err)
			continue
		}
		if ne.Permanent != tt.permanent || ne.RetryAfter != tt.wait {
			t.Errorf("%d, attempt %d, Retry-After %q: permanent %v after %v, want %v after %v", tt.status, tt.attempt,
				tt.retryAfter, ne.Permanent, ne.RetryAfter, tt.permanent, tt.wait)
		}
	}
}

func TestGone(t *testing.T) {
	var requests, told int
	n := receiver(t, webhook.Options{Disabled: func() { told++ }}, func(w http.ResponseWriter, _ *http.Request) {
		if requests++; requests == 1 {
			w.WriteHeader(http.StatusGone)
		}
	})
	for i := range 3 {
		err := n.Notify(t.Context(), assigned)
		var ne *tracking.NotifyError
		if !errors.As(err, &ne) || !ne.Permanent || (i > 0) != errors.Is(err, webhook.ErrDisabled) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if requests != 1 || told != 1 || !n.Disabled() {
		t.Errorf("%d requests, told %d times, disabled %v", requests, told, n.Disabled())
	}
	n.Enable()
	if err := n.Notify(t.Context(), assigned); err != nil || requests != 2 || n.Disabled() {
		t.Errorf("enabled again: %v, %d requests", err, requests)
	}
}

func TestAddressesRefused(t *testing.T) {
	var reached atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	defer srv.Close()
	port := srv.URL[strings.LastIndex(srv.URL, ":"):]
	for _, host := range []string{
		"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "[::1]", "[::]", "10.0.0.1", "169.254.169.254",
		"100.64.0.1", "[64:ff9b::7f00:1]", "[fd00::1]", "[fe80::1]",
	} {
		for attempt, permanent := range map[int]bool{1: false, 3: true} {
			n, err := webhook.New("http://"+host+port+"/t0k", []string{secret}, nil)
			if err != nil {
				t.Fatal(err)
			}
			note := assigned
			note.Attempt = attempt
			err = n.Notify(t.Context(), note)
			var ne *tracking.NotifyError
			var ae *webhook.AddressError
			if !errors.As(err, &ne) || !errors.As(err, &ae) || ne.Permanent != permanent ||
				strings.Contains(err.Error(), "t0k") {
				t.Errorf("%s, attempt %d: %v", host, attempt, err)
			}
			n.Close()
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("reached %d times", n)
	}
}

// The error of a failed request names neither path nor query.
func TestErrorsHideURL(t *testing.T) {
	srv := httptest.NewServer(nil)
	srv.Close()
	n, err := webhook.New(strings.Replace(srv.URL, "http://", "http://user:pa55@", 1)+"/p4th?token=t0k",
		[]string{secret}, &webhook.Options{Allow: loopback})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	err = n.Notify(t.Context(), assigned)
	var ne *tracking.NotifyError
	if !errors.As(err, &ne) || ne.Permanent {
		t.Fatalf("%v", err)
	}
	for _, s := range []string{"t0k", "p4th", "pa55", secret} {
		if strings.Contains(err.Error(), s) {
			t.Errorf("%v", err)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestTimeout(t *testing.T) {
	for name, tt := range map[string]struct {
		timeout, want time.Duration
		hang          roundTripper
		fails         bool
	}{
		"no answer": {0, 15 * time.Second, func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, true},
		"as set": {time.Second, time.Second, func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, r.Context().Err()
		}, true},
		"answer without an end": {0, 15 * time.Second, func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: hanging{r.Context()}, Request: r}, nil
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, err := webhook.New("https://example.com/", []string{secret}, &webhook.Options{
					Timeout: tt.timeout, Transport: tt.hang,
				})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				err = n.Notify(t.Context(), assigned)
				var ne *tracking.NotifyError
				if tt.fails != errors.As(err, &ne) ||
					tt.fails && (ne.Permanent || !errors.Is(err, context.DeadlineExceeded)) {
					t.Errorf("%v", err)
				}
				if took := time.Since(start); took != tt.want {
					t.Errorf("after %v, want %v", took, tt.want)
				}
			})
		})
	}
}

// hanging is a body that never comes.
type hanging struct{ ctx context.Context }

func (h hanging) Read([]byte) (int, error) { <-h.ctx.Done(); return 0, h.ctx.Err() }
func (h hanging) Close() error             { return nil }

// endless is a body without an end.
type endless struct{ read, closed int }

func (e *endless) Read(p []byte) (int, error) { e.read += len(p); return len(p), nil }
func (e *endless) Close() error               { e.closed++; return nil }

func TestAnswerIsBounded(t *testing.T) {
	body := &endless{}
	n, err := webhook.New("https://example.com/", []string{secret},
		&webhook.Options{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Body: body, Request: r}, nil
		})})
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Notify(t.Context(), assigned); err != nil {
		t.Fatal(err)
	}
	if body.read != 64<<10 || body.closed != 1 {
		t.Errorf("%d bytes read, closed %d times", body.read, body.closed)
	}
}

func TestFill(t *testing.T) {
	type row struct {
		webhook.Data
		Task map[string]string `json:"task,omitempty"`
	}
	var bodies []string
	h := func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(b))
	}
	fill := func(_ context.Context, n tracking.Notification) (any, error) {
		switch n.Attempt {
		case 1:
			return nil, tracking.ErrUnavailable
		case 2:
			return func() {}, nil // no JSON
		}
		return row{webhook.DataOf(n.Event), map[string]string{"task_id": "t1"}}, nil
	}
	n := receiver(t, webhook.Options{Fill: fill}, h)
	note := assigned
	for note.Attempt = 1; note.Attempt <= 2; note.Attempt++ {
		err := n.Notify(t.Context(), note)
		var ne *tracking.NotifyError
		if !errors.As(err, &ne) || ne.Permanent || (note.Attempt == 1) != errors.Is(err, tracking.ErrUnavailable) {
			t.Errorf("attempt %d: %v", note.Attempt, err)
		}
	}
	if err := n.Notify(t.Context(), note); err != nil {
		t.Fatal(err)
	}
	want := []string{strings.TrimSuffix(assignedBody, "}}") + `,"task":{"task_id":"t1"}}}`}
	if d := cmp.Diff(want, bodies); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestDataOf(t *testing.T) {
	if got := webhook.DataOf(tracking.Event{}).Data; got == nil {
		t.Error("data is null")
	}
}

func TestNewRefuses(t *testing.T) {
	good := []string{secret}
	for name, tt := range map[string]struct {
		url     string
		secrets []string
		opts    *webhook.Options
	}{
		"no URL":          {"", good, nil},
		"relative":        {"/t0k", good, nil},
		"another scheme":  {"ftp://h/t0k", good, nil},
		"no host":         {"https:///t0k", good, nil},
		"fragment":        {"https://h/#t0k", good, nil},
		"no URL at all":   {"https://h:t0k", good, nil},
		"no secret":       {"https://h/", nil, nil},
		"no prefix":       {"https://h/", []string{strings.TrimPrefix(secret, "whsec_")}, nil},
		"no base64":       {"https://h/", []string{"whsec_t0k?"}, nil},
		"short":           {"https://h/", []string{"whsec_dDBrdDBrdDBr"}, nil},
		"long":            {"https://h/", []string{"whsec_" + strings.Repeat("dDBr", 22)}, nil},
		"second is wrong": {"https://h/", []string{secret, "t0k"}, nil},
		"timeout":         {"https://h/", good, &webhook.Options{Timeout: -1}},
		"tries":           {"https://h/", good, &webhook.Options{Tries: -1}},
	} {
		if _, err := webhook.New(tt.url, tt.secrets, tt.opts); err == nil || strings.Contains(err.Error(), "t0k") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
