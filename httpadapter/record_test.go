package httpadapter_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
)

// exchange is one call and its answer, as internal/e2e reads it.
type exchange struct {
	Test          string
	Method, URL   string // the path and its query
	RequestHeader http.Header
	RequestBody   []byte
	Status        int
	Header        http.Header
	Body          []byte
	Cut           bool // a body was longer than what is kept of it
}

// keptBody is how many bytes of a body are kept.
const keptBody = 1 << 20

// recorded notes what h answers under the paths that openapi.json describes, a line of JSON each,
// in the folder that TRACKING_EXCHANGES names. What is broken off is not noted.
func recorded(t *testing.T, h http.Handler) http.Handler {
	t.Helper()
	dir := os.Getenv("TRACKING_EXCHANGES")
	if dir == "" {
		return h
	}
	file, err := os.CreateTemp(dir, "*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	var mu sync.Mutex
	out := json.NewEncoder(file)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !described(r.URL.EscapedPath()) {
			h.ServeHTTP(w, r)
			return
		}
		e := exchange{Test: t.Name(), Method: r.Method, URL: r.URL.RequestURI(), RequestHeader: r.Header.Clone()}
		sent, got := &keeper{}, &noting{ResponseWriter: w}
		if r.Body != nil && r.Body != http.NoBody {
			r.Body = teeBody{io.TeeReader(r.Body, sent), r.Body}
		}
		h.ServeHTTP(got, r)
		e.Status, e.Header, e.RequestBody, e.Body, e.Cut = got.status, got.header, sent.b, got.body.b, sent.cut ||
			got.body.cut
		if e.Header.Get("Content-Encoding") == "gzip" && len(e.Body) > 0 {
			z, err := gzip.NewReader(bytes.NewReader(e.Body))
			if err != nil {
				t.Errorf("%s %s: %v", e.Method, e.URL, err)
				return
			}
			e.Body, _ = io.ReadAll(z) // of a stream that was left, as far as it came
		}
		mu.Lock()
		defer mu.Unlock()
		if err := out.Encode(e); err != nil {
			t.Errorf("%s %s: %v", e.Method, e.URL, err)
		}
	})
}

// described leaves out the files of the web front ends.
func described(path string) bool {
	for _, root := range []string{"/v1", "/track", "/join", "/ingest", "/healthz"} {
		if path == root || strings.HasPrefix(path, root+"/") {
			return !strings.HasPrefix(path, "/track/assets/")
		}
	}
	return false
}

// keeper keeps the beginning of what is written to it.
type keeper struct {
	b   []byte
	cut bool
}

func (k *keeper) Write(b []byte) (int, error) {
	n := min(len(b), keptBody-len(k.b))
	k.b, k.cut = append(k.b, b[:n]...), k.cut || n < len(b)
	return len(b), nil
}

type teeBody struct {
	io.Reader
	io.Closer
}

// noting notes an answer on its way.
type noting struct {
	http.ResponseWriter
	status int
	header http.Header
	body   keeper
}

func (w *noting) WriteHeader(status int) {
	if w.status == 0 {
		w.status, w.header = status, w.Header().Clone()
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *noting) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status, w.header = http.StatusOK, w.Header().Clone()
	}
	w.body.Write(b)
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (w *noting) Unwrap() http.ResponseWriter { return w.ResponseWriter }
