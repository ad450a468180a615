package httpadapter_test

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

func behind(t testing.TB, header string) func(*http.Request) netip.Addr {
	t.Helper()
	from, err := httpadapter.BehindProxies(header, netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8"))
	if err != nil {
		t.Fatal(err)
	}
	return from
}

func TestBehindProxies(t *testing.T) {
	for _, tt := range []struct{ header, peer, lines, want string }{
		{"X-Forwarded-For", "203.0.113.9:80", "198.51.100.1", "203.0.113.9"}, // nobody's proxy
		{"X-Forwarded-For", "10.0.0.1:80", "", "10.0.0.1"},
		{"X-Forwarded-For", "10.0.0.1:80", "198.51.100.1", "198.51.100.1"},
		{"X-Forwarded-For", "[::ffff:10.0.0.1]:80", "198.51.100.1", "198.51.100.1"},
		{"X-Forwarded-For", "[fd00::1%eth0]:80", "2001:db8::1", "2001:db8::1"},
		{"X-Forwarded-For", "10.0.0.1:80", "192.0.2.66, 198.51.100.1", "198.51.100.1"},
		{"X-Forwarded-For", "10.0.0.1:80", "192.0.2.66,198.51.100.1 , 10.2.3.4", "198.51.100.1"},
		{"X-Forwarded-For", "10.0.0.1:80", "192.0.2.66|198.51.100.1|10.2.3.4", "198.51.100.1"},
		{"X-Forwarded-For", "10.0.0.1:80", "10.5.5.5, 10.2.3.4", "10.5.5.5"},
		{"X-Forwarded-For", "10.0.0.1:80", "198.51.100.1:4711", "198.51.100.1"},
		{"X-Forwarded-For", "10.0.0.1:80", "[2001:db8::1]:4711", "2001:db8::1"},
		{"X-Forwarded-For", "10.0.0.1:80", "[2001:db8::1]", "2001:db8::1"},
		{"X-Forwarded-For", "10.0.0.1:80", "::ffff:198.51.100.1", "198.51.100.1"},
		{"X-Forwarded-For", "10.0.0.1:80", "198.51.100.1, unknown", "10.0.0.1"},
		{"X-Forwarded-For", "10.0.0.1:80", "198.51.100.1, unknown, 10.2.3.4", "10.2.3.4"},
		{"X-Forwarded-For", "10.0.0.1:80", "198.51.100.1, ", "10.0.0.1"},
		{"X-Forwarded-For", "@", "198.51.100.1", "invalid IP"},
		{"Forwarded", "10.0.0.1:80", "for=198.51.100.1", "198.51.100.1"},
		{"Forwarded", "10.0.0.1:80", `for=192.0.2.66, For="[2001:db8::1]:4711";proto=https;by=10.0.0.1`, "2001:db8::1"},
		{"Forwarded", "10.0.0.1:80", `proto=https ; for="198.51.100.1:80", for=10.2.3.4`, "198.51.100.1"},
		{"Forwarded", "10.0.0.1:80", `for=198.51.100.1, for=_hidden`, "10.0.0.1"},
		{"Forwarded", "10.0.0.1:80", `for="x, for=198.51.100.1`, "198.51.100.1"},
		{"Forwarded", "10.0.0.1:80", `proto=https`, "10.0.0.1"},
	} {
		r := &http.Request{RemoteAddr: tt.peer, Header: http.Header{}}
		other := "Forwarded"
		if tt.header == other {
			other = "X-Forwarded-For"
		}
		r.Header.Set(other, "for=192.0.2.99") // the client's word: nobody has read it
		if tt.lines != "" {
			r.Header[tt.header] = strings.Split(tt.lines, "|")
		}
		if got := behind(t, tt.header)(r).String(); got != tt.want {
			t.Errorf("%s from %s with %s: %s, want %s", tt.header, tt.peer, tt.lines, got, tt.want)
		}
	}
	if _, err := httpadapter.BehindProxies("X-Real-IP"); err == nil {
		t.Error("X-Real-IP is read")
	}
	if _, err := httpadapter.BehindProxies("Forwarded", netip.Prefix{}); err == nil {
		t.Error("a range that is none is taken")
	}
	mapped, err := httpadapter.BehindProxies("X-Forwarded-For", netip.MustParsePrefix("::ffff:10.0.0.0/104"))
	if err != nil {
		t.Fatal(err)
	}
	r := &http.Request{RemoteAddr: "10.0.0.1:80", Header: http.Header{"X-Forwarded-For": {"198.51.100.1"}}}
	if got := mapped(r).String(); got != "198.51.100.1" {
		t.Errorf("a range of mapped addresses: %s", got)
	}
}

// Whatever a client has written, what the proxies add counts.
func FuzzBehindProxies(f *testing.F) {
	for _, seed := range []string{"", "198.51.100.1", `for="`, "for=[", "10.0.0.1, 10.0.0.1", ",,,", ";;=", "\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, written string) {
		for header, added := range map[string]string{
			"X-Forwarded-For": "203.0.113.7, 10.9.9.9",
			"Forwarded":       `for=203.0.113.7;proto=https, for="10.9.9.9:80"`,
		} {
			from := behind(t, header)
			for _, lines := range [][]string{{written + ", " + added}, {written, added}} {
				r := &http.Request{RemoteAddr: "10.0.0.1:80", Header: http.Header{header: lines}}
				if got := from(r).String(); got != "203.0.113.7" {
					t.Errorf("%s %q is from %s", header, lines, got)
				}
			}
			from(&http.Request{RemoteAddr: "10.0.0.1:80", Header: http.Header{header: {written}}})
		}
	})
}

// TestCodesAreCountedByClient: behind a proxy the one who guesses waits, and nobody else.
func TestCodesAreCountedByClient(t *testing.T) {
	from, err := httpadapter.BehindProxies("X-Forwarded-For", netip.MustParsePrefix("127.0.0.0/8"))
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) { ho.ClientIP = from })
	guess := func(client string) int {
		return s.do("POST", "/v1/driver/join", `{"invite_code":"999999"}`, "X-Forwarded-For: "+client).status
	}
	status := 0
	for range 6 {
		status = guess("192.0.2.66, 198.51.100.1")
	}
	if other, again := guess("198.51.100.2"), guess("192.0.2.67, 198.51.100.1"); status != 429 || other != 404 || again != 429 {
		t.Errorf("the sixth guess is answered %d, another client %d, and the first with another lie %d", status, other, again)
	}
}
