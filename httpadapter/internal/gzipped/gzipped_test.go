package gzipped_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/seed-8aba7b13/tracking/httpadapter/internal/gzipped"
)

func unzip(t *testing.T, b []byte) string {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWhole(t *testing.T) {
	for _, text := range []string{"", "x", strings.Repeat("position", 10_000)} {
		if got := unzip(t, gzipped.Whole([]byte(text))); got != text {
			t.Errorf("%d bytes became %d", len(text), len(got))
		}
		if got := unzip(t, gzipped.Smallest([]byte(text))); got != text {
			t.Errorf("%d bytes became %d at the smallest", len(text), len(got))
		}
	}
}

func event(i int) []byte {
	return fmt.Appendf(nil, "event: move\ndata: {\"position\":{\"lnglat\":[11.%06d,48.%06d],\"live\":true}}\n\n",
		575123+i*117, 137123+i*71)
}

// Two watchers come at different times and share the parts; each event has gone out before the next
// one is made.
func TestStreamsShareTheirParts(t *testing.T) {
	var outs [2]bytes.Buffer
	var want [2]string
	var readers [2]*gzip.Reader
	var streams [2]*gzipped.Stream
	for i := range streams {
		streams[i] = gzipped.NewStream(&outs[i])
	}
	long := bytes.Repeat([]byte("0123456789abcdef"), 5000) // more than a window
	var last []byte
	alone := 0
	for n := range 300 {
		text := event(n)
		if n%100 == 99 {
			text = long
		}
		onto, any := gzipped.Deflate(last, text), gzipped.Deflate(nil, text)
		alone += len(any)
		for i, s := range streams {
			if n < 50*i {
				continue
			}
			part := onto
			if n == 50*i || n%7 == i { // the first, or something came in between
				if n%7 == i {
					if err := s.Write(gzipped.Deflate(nil, []byte(": still here\n\n")),
						[]byte(": still here\n\n")); err != nil {
						t.Fatal(err)
					}
					want[i] += ": still here\n\n"
				}
				part = any
			}
			if err := s.Write(part, text); err != nil {
				t.Fatal(err)
			}
			want[i] += string(text)
			if readers[i] == nil {
				var err error
				if readers[i], err = gzip.NewReader(&outs[i]); err != nil {
					t.Fatal(err)
				}
			}
			got := make([]byte, len(want[i])) // nothing of it is held back
			if _, err := io.ReadFull(readers[i], got); err != nil || string(got) != want[i] {
				t.Fatalf("stream %d, event %d: %q, %v", i, n, got, err)
			}
			want[i] = ""
		}
		last = text
	}
	for i, s := range streams {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if rest, err := io.ReadAll(readers[i]); err != nil || len(rest) > 0 { // length and checksum are right, too
			t.Errorf("stream %d ends with %q, %v", i, rest, err)
		}
	}
}

func TestWhatWasThereBeforeShortensWhatFollows(t *testing.T) {
	if onto, alone := gzipped.Deflate(event(7), event(8)), gzipped.Deflate(nil, event(8)); 2*len(onto) > len(alone) {
		t.Errorf("%d bytes after one of its kind, %d alone", len(onto), len(alone))
	}
}

func TestDeflateAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				text := make([]byte, rand.IntN(3000))
				for i := range text {
					text[i] = "abcdef"[rand.IntN(6)]
				}
				if unzip(t, gzipped.Whole(text)) != string(text) {
					t.Error("the text is not what it was")
				}
			}
		})
	}
	wg.Wait()
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWatcherGone(t *testing.T) {
	s := gzipped.NewStream(broken{})
	if s.Write(gzipped.Deflate(nil, []byte("x")), []byte("x")) == nil || s.Close() == nil ||
		gzipped.NewStream(broken{}).Close() == nil {
		t.Error("no error")
	}
}

func TestAccepts(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "gzip": true, "br, GZIP;q=0.5": true, "gzip;q=0": false, "gzip; q=0.000": false,
		"gzip;q=0.001": true, "identity": false, "x-gzip": false,
	} {
		if gzipped.Accepts(http.Header{"Accept-Encoding": {value}}) != want {
			t.Errorf("%q: not %v", value, want)
		}
	}
	if !gzipped.Accepts(http.Header{"Accept-Encoding": {"br", "gzip"}}) {
		t.Error("the second line")
	}
}

func BenchmarkDeflate(b *testing.B) {
	b.ReportAllocs()
	before, text := event(7), event(8)
	for b.Loop() {
		gzipped.Deflate(before, text)
	}
}
