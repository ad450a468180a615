package httpadapter_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestWhoAnswers: every request that reaches the handler is answered in the envelope. What net/http
// refuses before is not, and no handler can change that; the package doc lists it.
func TestWhoAnswers(t *testing.T) {
	s := newServer(t)
	ask := func(raw string) reply {
		t.Helper()
		c := s.dial()
		if _, err := io.WriteString(c, raw); err != nil {
			t.Fatal(err)
		}
		r, _ := s.answer(c)
		return r
	}
	const rest = " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
	const list = "GET /v1/task/list?apikey=key-a"
	const create = "POST /v1/task/create?apikey=key-a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"

	for name, c := range map[string]struct {
		raw    string
		status int
		field  string
	}{
		"an escaped slash":             {"GET /v1/trips/%2F?apikey=key-a" + rest, 404, "trip_id"},
		"an escaped percent":           {"GET /v1/trips/%25?apikey=key-a" + rest, 404, "trip_id"},
		"an escaped NUL":               {"GET /v1/trips/%00?apikey=key-a" + rest, 404, "trip_id"},
		"bytes that are no UTF-8":      {"GET /v1/trips/\xff?apikey=key-a" + rest, 404, "trip_id"},
		"a broken escape in the query": {list + "&a=%" + rest, 400, ""},
		"a query over 8 KiB":           {list + "&a=" + strings.Repeat("x", 9000) + rest, 414, ""},
		"a path that is not there":     {"GET /v1/nothing" + rest, 404, ""},
		"a path that is not clean":     {"GET /v1//task/list?apikey=key-a" + rest, 404, ""},
		"a method that is none":        {"BREW /v1/task/list?apikey=key-a" + rest, 405, ""},
		"a method in small letters":    {"get /v1/task/list?apikey=key-a" + rest, 405, ""},
		"CONNECT":                      {"CONNECT x:443" + rest, 404, ""},
		"chunks that are broken":       {create + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 400, ""},
		"a header that is long": {
			list + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Long: " + strings.Repeat("x", 500<<10) + "\r\n\r\n",
			200, "",
		},
		"an upgrade": {
			list + " HTTP/1.1\r\nHost: x\r\nConnection: close, upgrade\r\nUpgrade: websocket\r\n\r\n", 200, "",
		},
		"an encoding that is not known": {create + "Content-Encoding: zstd\r\nContent-Length: 2\r\n\r\n{}", 415, ""},
	} {
		r := ask(c.raw)
		if c.status == 200 {
			s.data(r)
			continue
		}
		s.check(name, r, c.status, c.field) // in the envelope
	}

	for name, c := range map[string]struct {
		raw    string
		status int
	}{
		"a broken escape in the path": {"GET /v1/trips/%" + rest, 400},
		"a header too large": {
			list + " HTTP/1.1\r\nHost: x\r\nX-Long: " + strings.Repeat("x", 1<<20+8<<10) + "\r\n\r\n", 431,
		},
		"no host":                           {list + " HTTP/1.1\r\n\r\n", 400},
		"two hosts":                         {list + " HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400},
		"a host that is none":               {list + " HTTP/1.1\r\nHost: a b\r\n\r\n", 400},
		"a header that is none":             {list + " HTTP/1.1\r\nHost: x\r\nno header\r\n\r\n", 400},
		"no HTTP":                           {"hello\r\n\r\n", 400},
		"another version":                   {list + " HTTP/9.9\r\nHost: x\r\n\r\n", 505},
		"a transfer encoding":               {create + "Transfer-Encoding: gzip\r\n\r\n", 501},
		"a length that is none":             {create + "Content-Length: ten\r\n\r\n", 400},
		"an expectation that cannot be met": {create + "Expect: tea\r\nContent-Length: 2\r\n\r\n{}", 417},
		"OPTIONS of the server":             {"OPTIONS *" + rest, 200},
	} {
		r := ask(c.raw)
		if r.status != c.status || strings.Contains(r.body, "request_id") {
			t.Errorf("%s: %d %q; net/http was thought to answer %d by itself", name, r.status, r.body, c.status)
		}
		if strings.Contains(r.body, "key-a") || r.header.Get("Location") != "" {
			t.Errorf("%s: the answer shows the key: %v %q", name, r.header, r.body)
		}
	}
}

// TestOptionsOfTheServer: a server that leaves OPTIONS * to its handler has that answered in the
// envelope, too.
func TestOptionsOfTheServer(t *testing.T) {
	s := newServer(t)
	srv := httptest.NewUnstartedServer(s.h)
	srv.Config.DisableGeneralOptionsHandler = true
	srv.Start()
	defer srv.Close()
	s.url = srv.URL
	c := s.dial()
	io.WriteString(c, "OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	r, _ := s.answer(c)
	s.check("OPTIONS *", r, http.StatusNotFound, "")
}
