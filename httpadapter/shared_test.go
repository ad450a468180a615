package httpadapter_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// TestHeadersAreTheAnswers: whoever wraps the handler may change the headers of an answer in place,
// while others are answered, and no other answer has the changes.
func TestHeadersAreTheAnswers(t *testing.T) {
	s := newServer(t)
	task := s.newTask("")
	var calling sync.WaitGroup
	for range 4 {
		calling.Go(func() {
			for range 50 {
				r := httptest.NewRequest("GET", "/v1/task?task_id="+task, nil)
				r.Header.Set("X-Api-Key", "key-a")
				w := httptest.NewRecorder()
				s.h.ServeHTTP(w, r)
				for name, want := range map[string]string{
					"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
					"Content-Type": "application/json; charset=utf-8",
				} {
					if got := w.Header()[name]; len(got) != 1 || got[0] != want {
						t.Errorf("%s: %q, want %q", name, got, want)
						return
					}
				}
				for name, values := range w.Header() {
					values[0] = "changed"
					w.Header()[name] = append(values, "and another")
				}
				for name, values := range w.Header() {
					if values[0] != "changed" || values[1] != "and another" {
						t.Errorf("%s is %q after a change of another header", name, values)
						return
					}
				}
			}
		})
	}
	calling.Wait()
}

// TestLengths: each answer tells its length, whether it is short enough for the server to find that out by
// itself or not, and to HEAD the same.
func TestLengths(t *testing.T) {
	s := newServer(t)
	rest := len(s.app("GET", "/v1/task?task_id="+s.newTask(""), "").body)
	for _, n := range []int{0, 2047 - rest, 2048 - rest, 2049 - rest, 4000} {
		task := s.newTask(`,"notes":"` + strings.Repeat("x", n) + `"`)
		get, head := s.app("GET", "/v1/task?task_id="+task, ""), s.app("HEAD", "/v1/task?task_id="+task, "")
		for method, r := range map[string]reply{"GET": get, "HEAD": head} {
			if got, want := r.header.Get("Content-Length"), fmt.Sprint(len(get.body)); got != want {
				t.Errorf("%d bytes of notes, %s: Content-Length is %q, want %q", n, method, got, want)
			}
		}
	}
}

// TestBodiesAreTheCallers: of many who send at the same time, some of whom break off, each gets what
// he sent.
func TestBodiesAreTheCallers(t *testing.T) {
	s := newServer(t)
	var calling sync.WaitGroup
	for i := range 8 {
		calling.Go(func() {
			for k := range 40 {
				order := strings.Repeat(fmt.Sprintf("%d.%d ", i, k), 1+k%20)
				text := `{"type":2,"drop":{"address":"` + order + `street"},"order_id":"` + order + `","properties":{"p":"` + order + `"}}`
				var body io.Reader = strings.NewReader(text)
				broken := k%5 == 4
				if broken {
					body = io.MultiReader(strings.NewReader(text[:len(text)/2]), iotest.ErrReader(errors.New("gone")))
				}
				r := httptest.NewRequest("POST", "/v1/task/create", body)
				r.Header.Set("X-Api-Key", "key-a")
				w := httptest.NewRecorder()
				s.h.ServeHTTP(w, r)
				if broken {
					if w.Code != 400 {
						t.Errorf("broken off: %d %s", w.Code, w.Body)
					}
					continue
				}
				for _, want := range []string{`"address":"` + order + `street"`, `"order_id":"` + order + `"`, `{"p":"` + order + `"}`} {
					if !strings.Contains(w.Body.String(), want) {
						t.Errorf("sent %s\ngot %d %s", text, w.Code, w.Body)
						return
					}
				}
			}
		})
	}
	calling.Wait()
}

// TestBodyInPieces: in whatever pieces a body comes, with the end in the last one or after it, it is
// read whole, and one byte too many is too much.
func TestBodyInPieces(t *testing.T) {
	s := newServer(t)
	const most = 64 << 10
	send := func(body io.Reader) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/v1/task/create", body)
		r.Header.Set("X-Api-Key", "key-a")
		r.ContentLength = -1
		w := httptest.NewRecorder()
		s.h.ServeHTTP(w, r)
		return w
	}
	for name, pieces := range map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader,
		"halves": iotest.HalfReader, "the end with the last": iotest.DataErrReader,
		"bytes, and the end with the last": func(r io.Reader) io.Reader { return iotest.DataErrReader(iotest.OneByteReader(r)) },
	} {
		for _, size := range []int{100, 511, 512, 513, 4096, most - 1, most, most + 1} {
			text := `{"type":2,"order_id":"` + fmt.Sprint(size) + `","drop":{"address":"x"},"unknown":"`
			text += strings.Repeat("y", size-len(text)-2) + `"}`
			w := send(pieces(strings.NewReader(text)))
			switch {
			case size > most:
				if w.Code != 413 || w.Header().Get("Connection") != "close" {
					t.Errorf("%s, %d bytes: %d %v", name, size, w.Code, w.Header())
				}
			case w.Code != 200 || !strings.Contains(w.Body.String(), `"order_id":"`+fmt.Sprint(size)+`"`):
				t.Errorf("%s, %d bytes: %d %s", name, size, w.Code, w.Body)
			}
		}
	}
	// a program's own limit, which is less
	r := httptest.NewRequest("POST", "/v1/task/create", strings.NewReader(`{"type":2,"drop":{"address":"x"}}`))
	r.Header.Set("X-Api-Key", "key-a")
	w := httptest.NewRecorder()
	http.MaxBytesHandler(s.h, 10).ServeHTTP(w, r)
	if w.Code != 413 {
		t.Errorf("over the program's own limit: %d %s", w.Code, w.Body)
	}
}
