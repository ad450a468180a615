package egress

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
)

func TestTransport(t *testing.T) {
	var reached int
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached++
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer srv.Close()
	// A proxy would be asked to dial in our place.
	t.Setenv("HTTP_PROXY", srv.URL)
	t.Setenv("http_proxy", srv.URL)

	for name, tt := range map[string]struct {
		allow []netip.Prefix
		url   string
		ok    bool
	}{
		"refused":         {nil, srv.URL, false},
		"another allowed": {[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, srv.URL, false},
		"metadata":        {nil, "http://169.254.169.254/latest/meta-data", false},
		"mapped":          {nil, strings.Replace(srv.URL, "127.0.0.1", "[::ffff:127.0.0.1]", 1), false},
		"allowed":         {[]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, srv.URL, true},
	} {
		t.Run(name, func(t *testing.T) {
			reached = 0
			rt := Transport(tt.allow)
			defer rt.CloseIdleConnections()
			res, err := Client(rt).Get(tt.url + "/?token=t0k")
			var ae *AddressError
			switch {
			case !tt.ok && (!errors.As(err, &ae) || public(ae.Addr) || strings.Contains(Cause(err).Error(), "t0k")):
				t.Errorf("%v", err)
			case tt.ok && err != nil:
				t.Errorf("%v", err)
			case tt.ok:
				Discard(res)
				if res.StatusCode != http.StatusTemporaryRedirect {
					t.Errorf("the status is %d, want the redirect itself", res.StatusCode)
				}
			}
			if (reached == 1) != tt.ok || reached > 1 {
				t.Errorf("the server was reached %d times", reached)
			}
		})
	}
}

func TestCause(t *testing.T) {
	down := errors.New("down")
	if err := Cause(&url.Error{Op: "Post", URL: "https://push.example/t0k", Err: down}); err != down {
		t.Errorf("%v", err)
	}
	if err := Cause(down); err != down {
		t.Errorf("%v", err)
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	for v, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, " 7 ": 7 * time.Second, "-5": 0, "soon": 0, "1.5": 0,
		"Mon, 04 May 2026 03:12:01 GMT": 10 * time.Minute, "Mon, 04 May 2026 03:02:00 GMT": 0,
		"Fri, 04 May 2126 01:02:01 GMT": time.Hour,
		"3600":                          time.Hour, "3601": time.Hour, "99999999999999999999999": time.Hour,
	} {
		if got := RetryAfter(http.Header{"Retry-After": {v}}, now, time.Hour); got != want {
			t.Errorf("%q: %v, want %v", v, got, want)
		}
	}
}
