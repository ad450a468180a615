package httpadapter_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// dial opens a connection of its own. Its deadline only keeps a broken test from hanging for ever.
func (s *server) dial() net.Conn {
	s.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(time.Minute))
	s.Cleanup(func() { c.Close() })
	return c
}

// answer reads one answer, and reports whether the connection is closed after it.
func (s *server) answer(c net.Conn) (reply, bool) {
	s.Helper()
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		s.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.Fatal(err)
	}
	_, err = r.ReadByte()
	return reply{res.StatusCode, res.Header, string(b)},
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || isReset(err)
}

func isReset(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && !errors.Is(err, os.ErrDeadlineExceeded)
}

const head = "POST /v1/task/create?apikey=key-a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"

// TestHugeContentLength: refused by the number alone; nothing of the body is waited for.
func TestHugeContentLength(t *testing.T) {
	s := newServer(t)
	c := s.dial()
	io.WriteString(c, head+"Content-Length: 10000000000\r\n\r\n{")
	r, closed := s.answer(c)
	s.check("huge", r, 413, "")
	if !closed {
		t.Error("the connection stays open")
	}
}

// TestEndlessBody: refused at the limit, though more comes and comes.
func TestEndlessBody(t *testing.T) {
	s := newServer(t)
	c := s.dial()
	io.WriteString(c, head+"Transfer-Encoding: chunked\r\n\r\n")
	go func() {
		chunk := "400\r\n" + strings.Repeat(" ", 0x400) + "\r\n"
		for {
			if _, err := io.WriteString(c, chunk); err != nil {
				return
			}
		}
	}()
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 413 || !res.Close {
		t.Errorf("%d, close %v", res.StatusCode, res.Close)
	}
}

// TestSlowBody: a body that stops coming ends at the read time-out, with and without a valid key.
func TestSlowBody(t *testing.T) {
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) { ho.ReadTimeout = 50 * time.Millisecond })
	c := s.dial()
	io.WriteString(c, head+"Content-Length: 50\r\n\r\n{\"type\":2,")
	r, closed := s.answer(c)
	s.check("slow", r, 400, "")
	if !closed || !strings.Contains(r.body, "in time") {
		t.Errorf("closed %v, %s", closed, r.body)
	}

	c = s.dial()
	io.WriteString(c, strings.Replace(head, "key-a", "nobody", 1)+"Content-Length: 50\r\n\r\n{\"type\":2,")
	r, closed = s.answer(c)
	s.check("slow without key", r, 401, "")
	if !closed {
		t.Error("the connection stays open, its body unread")
	}
}

// TestSlowBodyOfADriver: so does each of a driver's that is no batch, once the token is known.
func TestSlowBodyOfADriver(t *testing.T) {
	store := memory.New()
	token, _ := newServerOn(t, store).phone("ravi")
	s := newServerOn(t, store, func(_ *tracking.Options, ho *httpadapter.Options) { ho.ReadTimeout = 50 * time.Millisecond })
	for _, target := range []string{
		"availability", "route", "trips", "trips/t/stop", "trips/t/discard", "push", "push/delete", "tasks/t/start",
		"tasks/t/arrive", "tasks/t/pickup", "tasks/t/complete", "tasks/t/decline", "tasks/t/undo", "tasks/t/stuck",
		"tasks/t/settle",
	} {
		c := s.dial()
		fmt.Fprintf(c, "POST /v1/driver/%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 50\r\n\r\n{", target, token)
		r, closed := s.answer(c)
		s.check(target, r, 400, "")
		if !closed || !strings.Contains(r.body, "in time") {
			t.Errorf("%s: closed %v, %s", target, closed, r.body)
		}
	}
}

// TestSlowPhone: a batch of positions has six times as long, once the token is known.
func TestSlowPhone(t *testing.T) {
	const timeout = 100 * time.Millisecond
	store := memory.New()
	token, _ := newServerOn(t, store).phone("ravi") // whose requests have their time
	s := newServerOn(t, store, func(_ *tracking.Options, ho *httpadapter.Options) { ho.ReadTimeout = timeout })
	start := time.Now()
	c := s.dial()
	io.WriteString(c,
		"POST /v1/driver/fixes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+token+
			"\r\nContent-Length: 50\r\n\r\n{\"fixes\":[")
	r, closed := s.answer(c)
	s.check("slow phone", r, 400, "")
	if took := time.Since(start); !closed || took < 6*timeout {
		t.Errorf("closed %v, after %v", closed, took)
	}
}

// TestBrokenOffBody: nothing is stored when the caller goes away in the middle.
func TestBrokenOffBody(t *testing.T) {
	s := newServer(t)
	c := s.dial()
	io.WriteString(c, head+"Content-Length: 500\r\n\r\n"+`{"type":2,"drop":{"address":"x"}}`)
	c.(*net.TCPConn).CloseWrite()
	r, _ := s.answer(c)
	s.check("broken off", r, 400, "")
	if got := s.data(s.app("GET", "/v1/task/list", "")); len(got["task_list"].([]any)) != 0 {
		t.Errorf("stored: %v", got)
	}
}

// TestRawTargets: what Go's client would clean before sending.
func TestRawTargets(t *testing.T) {
	s := newServer(t)
	for target, status := range map[string]int{
		"//v1/task?apikey=key-a": 404, "/v1/../v1/task?apikey=key-a": 404, "/v1/task/?apikey=key-a": 404,
		"http://x/v1/task/list?apikey=key-a": 200, "/v1/task/list?apikey=key-a#x": 401,
		"/v1/task/list?apikey=key-a&x=\xff": 200,
	} {
		c := s.dial()
		io.WriteString(c, "GET "+target+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
		r, _ := s.answer(c)
		if r.status != status || r.header.Get("Location") != "" || strings.Contains(r.body, "key-a") {
			t.Errorf("%s: %d %v %s", target, r.status, r.header, r.body)
		}
	}
}

// TestNoHost: HTTP/1.0 knows callers who do not say whom they call. Their links lead to where they
// called.
func TestNoHost(t *testing.T) {
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) { ho.BaseURL = "" })
	task := s.newTask("")
	c := s.dial()
	io.WriteString(c, "GET /v1/task/trackingurl/"+task+"?apikey=key-a HTTP/1.0\r\n\r\n")
	r, _ := s.answer(c)
	if link := text(s.data(r), "webUrl"); !strings.HasPrefix(link, s.url+"/track/") {
		t.Errorf("the link is %q", link)
	}
}

// TestEmptyChunks: a body in chunks that turns out to be empty is no body, whatever its type.
func TestEmptyChunks(t *testing.T) {
	s := newServer(t)
	s.newDriver("ravi")
	for _, c := range []struct {
		target, typ, chunks string
		status              int
	}{
		{"/v1/invite_user?apikey=key-a", "text/plain", "", 200},
		{"/v1/invite_user?apikey=key-a", "text/plain", "2\r\n{}\r\n", 415},
		{"/v1/assign_trip?apikey=key-a&tracking_id=T&user_id=ravi", "text/plain", "", 200},
		{"/v1/assign_trip?apikey=key-a&tracking_id=T&user_id=ravi", "multipart/form-data; boundary=b", "", 200},
		{"/v1/assign_trip?apikey=key-a&tracking_id=T&user_id=ravi", "application/json", "", 200},
		{"/v1/assign_trip?apikey=key-a&tracking_id=T&user_id=ravi", "text/plain", "1\r\nx\r\n", 415},
		{"/v1/assign_trip?apikey=key-a&user_id=ravi", "application/json", "13\r\n{\"tracking_id\":\"T\"}\r\n", 200},
		{"/v1/task/create?apikey=key-a", "text/plain", "", 415},
		{"/v1/task/create?apikey=key-a", "application/json", "", 400},
	} {
		conn := s.dial()
		io.WriteString(conn,
			"POST "+c.target+" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: "+c.typ+
				"\r\nTransfer-Encoding: chunked\r\n\r\n"+c.chunks+"0\r\n\r\n")
		if r, _ := s.answer(conn); r.status != c.status {
			t.Errorf("%s as %s, %q: %d, want %d: %s", c.target, c.typ, c.chunks, r.status, c.status, r.body)
		}
	}
}

// TestNilBody: a program that hands a request over by itself may leave its body nil.
func TestNilBody(t *testing.T) {
	s := newServer(t)
	s.newDriver("ravi")
	for target, status := range map[string]int{
		"/v1/invite_user?apikey=key-a": 200, "/v1/assign_trip?apikey=key-a&tracking_id=T&user_id=ravi": 200,
		"/v1/task/create?apikey=key-a": 400,
	} {
		req, err := http.NewRequest("POST", target, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		s.h.ServeHTTP(w, req)
		if w.Code != status {
			t.Errorf("%s: %d, want %d: %s", target, w.Code, status, w.Body)
		}
	}
}

// panicsForTokens is a store that panics when it is asked whose a token is.
type panicsForTokens struct{ tracking.Store }

func (panicsForTokens) DriverByToken(context.Context, tracking.TokenKind, tracking.Hash) (tracking.AppID,
	tracking.Driver, error) {
	panic("store: nil map")
}

// TestUnreadBody: whatever is answered without a look at the body, and whoever looks at it before we
// do, a body that never comes holds the connection no longer than the read time-out.
func TestUnreadBody(t *testing.T) {
	store := memory.New()
	token, _ := newServerOn(t, store).phone("ravi")
	short := func(_ *tracking.Options, ho *httpadapter.Options) { ho.ReadTimeout = 50 * time.Millisecond }
	s := newServerOn(t, store, short)
	broken := newServerOn(t, panicsForTokens{store}, short)
	curious := newServerOn(t, store, short, func(_ *tracking.Options, ho *httpadapter.Options) {
		ho.Authenticate = func(r *http.Request) (httpadapter.Principal, error) {
			_, err := io.ReadAll(r.Body)
			return httpadapter.Principal{}, err
		}
	})
	for _, c := range []struct {
		s      *server
		call   string
		status int
	}{
		{s, "POST /nothing", 404},
		{s, "PUT /v1/task", 405},
		{s, "OPTIONS /v1/task/create", 204},
		{s, "GET /v1/task/list?apikey=key-a", 200},
		{s, "HEAD /v1/task/list?apikey=key-a", 200},
		{s, "GET /v1/driver/me", 200},
		{s, "GET /v1/driver/none", 404},
		{s, "POST /v1/driver/fixes?a&a", 400},
		{s, "PUT /v1/driver/tasks/t/proof/no_kind", 400},
		{s, "DELETE /v1/session", 200},
		{s, "GET /track/none", 404},
		{broken, "POST /v1/driver/fixes", 500},
		{curious, "POST /v1/task/create", 401},
	} {
		t.Run(c.call, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", strings.TrimPrefix(c.s.url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(10 * time.Second))
			fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 50\r\n\r\n{", c.call, token)
			method, _, _ := strings.Cut(c.call, " ")
			r := bufio.NewReader(conn)
			res, err := http.ReadResponse(r, &http.Request{Method: method})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, res.Body); err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != c.status {
				t.Errorf("status %d, want %d", res.StatusCode, c.status)
			}
			if _, err := r.ReadByte(); !errors.Is(err, io.EOF) && !isReset(err) {
				t.Errorf("the connection stays open: %v", err)
			}
		})
	}
}
