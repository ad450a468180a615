package ingest_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking/httpadapter/ingest"
)

// packed is text as a writer of a kind packs it.
func packed(t *testing.T, text string, kind func(io.Writer) io.WriteCloser) []byte {
	t.Helper()
	var b bytes.Buffer
	w := kind(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func asGzip(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }
func asZlib(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) }
func asFlate(w io.Writer) io.WriteCloser {
	f, err := flate.NewWriter(w, flate.BestCompression)
	if err != nil {
		panic(err)
	}
	return f
}

func read(body []byte, encoding ...string) (ingest.Request, error) {
	r := httptest.NewRequest(http.MethodPost, "/ingest/token", bytes.NewReader(body))
	r.Header["Content-Encoding"] = encoding
	return ingest.Read(httptest.NewRecorder(), r)
}

// TestPacked: a packed body is unpacked whatever its encoding is called, and one that is only said
// to be packed stays.
func TestPacked(t *testing.T) {
	const text = `{"locations":[{"lat":60,"lon":30,"time":1377177267}]}`
	gz := packed(t, text, asGzip)
	for name, tt := range map[string]struct {
		body     []byte
		encoding []string
		want     string
	}{
		"gzip":                      {gz, []string{"gzip"}, text},
		"GZIP":                      {gz, []string{"GZIP"}, text},
		"x-gzip":                    {gz, []string{"x-gzip"}, text},
		"gzip beside another":       {gz, []string{"identity, gzip"}, text},
		"gzip that nobody mentions": {gz, nil, text},
		"gzip in two parts":         {append(bytes.Clone(gz), gz...), []string{"gzip"}, text + text},
		"deflate":                   {packed(t, text, asZlib), []string{" Deflate"}, text},
		"deflate without a frame":   {packed(t, text, asFlate), []string{"deflate"}, text},
		"already unpacked":          {[]byte(text), []string{"gzip"}, text},
		"already inflated":          {[]byte(text), []string{"deflate"}, text},
		"broken off":                {gz[:len(gz)-9], []string{"gzip"}, string(gz[:len(gz)-9])},
		"a wrong sum": {
			append(bytes.Clone(gz[:len(gz)-8]), make([]byte, 8)...), []string{"gzip"},
			string(gz[:len(gz)-8]) + "\x00\x00\x00\x00\x00\x00\x00\x00",
		},
		"another encoding": {[]byte("\x28\xb5\x2f\xfd"), []string{"zstd"}, "\x28\xb5\x2f\xfd"},
		"nothing":          {nil, []string{"gzip"}, ""},
	} {
		got, err := read(tt.body, tt.encoding...)
		if err != nil || string(got.Body) != tt.want {
			t.Errorf("%s: %q, %v; want %q", name, got.Body, err, tt.want)
		}
	}
}

// TestBomb: what unpacks to more than a body may have is refused, and hardly more than that is
// unpacked.
func TestBomb(t *testing.T) {
	for name, kind := range map[string]func(io.Writer) io.WriteCloser{
		"gzip": asGzip, "zlib": asZlib, "flate": asFlate,
	} {
		bomb := packed(t, strings.Repeat(" ", 32<<20), kind)
		if len(bomb) > ingest.MaxBody {
			t.Fatalf("%s: the bomb itself has %d bytes", name, len(bomb))
		}
		var tooLarge *http.MaxBytesError
		allocated := testing.AllocsPerRun(1, func() {
			if _, err := read(bomb, "deflate"); !errors.As(err, &tooLarge) || tooLarge.Limit != ingest.MaxBody {
				t.Errorf("%s: %v, want *http.MaxBytesError", name, err)
			}
		})
		if allocated > 1000 {
			t.Errorf("%s: %v allocations", name, allocated)
		}
		if got, err := read(packed(t, strings.Repeat(" ", ingest.MaxBody), kind), "deflate"); err != nil ||
			len(got.Body) != ingest.MaxBody {
			t.Errorf("%s: %d bytes, %v", name, len(got.Body), err)
		}
	}
}
