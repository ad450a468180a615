package ingest_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/ingest"
)

func TestBatches(t *testing.T) {
	m := ingest.Message{Fixes: make([]tracking.Fix, 2500)}
	var got []int
	for b := range m.Batches(1000) {
		got = append(got, len(b))
	}
	if d := cmp.Diff([]int{1000, 1000, 500}, got); d != "" {
		t.Error(d)
	}
	got = nil
	for b := range (ingest.Message{SignOfLife: true}).Batches(1000) {
		got = append(got, len(b))
	}
	if d := cmp.Diff([]int{0}, got); d != "" {
		t.Errorf("sign of life: %s", d)
	}
}

// A thousand points of Overland are the largest batch that any app sends, and all of them count.
func TestLargestBatches(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(`{"locations":[`)
	for i := range 1000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b,
			`{"type":"Feature","geometry":{"type":"Point","coordinates":[30,60]},"properties":{"timestamp":"2013-08-22T13:%02d:%02dZ","speed":4,"wifi":"%0400d"}}`, i/60, i%60, 0)
	}
	b.WriteString(`],"current":{"geometry":{"coordinates":[30,60]},"properties":{"timestamp":"2013-08-22T14:00:00Z"}}}`)
	if n := len(ingest.Decode(request("", js, b.String()), now).Fixes); n != 1001 || b.Len() > ingest.MaxBody {
		t.Errorf("%d fixes of %d bytes, want 1001", n, b.Len())
	}
	for _, body := range []string{
		"[" + strings.Repeat(`{"lat":1,"lon":2},`, ingest.MaxBody/18),
		`{"locations":[` + strings.Repeat(`{"geometry":{"coordinates":[1,2]}},`, ingest.MaxBody/35) + `{}]}`,
		`{"location":[` + strings.Repeat(`{"coords":{"latitude":1,"longitude":2}},`, ingest.MaxBody/40) + `{}]}`,
	} {
		if n := len(ingest.Decode(request("", js, body), now).Fixes); n != ingest.MaxFixes {
			t.Errorf("%.30s…: %d fixes, want %d", body, n, ingest.MaxFixes)
		}
	}
}

// Whatever a megabyte holds, reading it allocates a small multiple of that, and most of it is
// short-lived.
func TestMemory(t *testing.T) {
	for name, tt := range map[string][2]string{
		"parameters":     {"", "lat=1&"},
		"no parameters":  {"", "&"},
		"escapes":        {"", "%41=&"},
		"deep arrays":    {"", "["},
		"deep objects":   {"", `{"location":`},
		"deep coords":    {"", `{"coords":{"latitude":`},
		"numbers":        {"[", "0,"},
		"strings":        {"[", `"",`},
		"half points":    {"[", `{"lat":1},`},
		"points":         {"[", `{"lat":1,"lon":2},`},
		"keys":           {"{", `"":1,`},
		"empty features": {`{"locations":[`, "{},"},
		"features":       {`{"locations":[`, `{"geometry":{"coordinates":[1,2]}},`},
		"coordinates":    {`{"locations":[{"geometry":{"coordinates":[`, "1,"},
		"locations":      {`{"location":[`, `{"coords":{}},`},
		"types":          {"[", `{"_type":"location"},`},
	} {
		t.Run(name, func(t *testing.T) {
			r := request("", js, tt[0]+strings.Repeat(tt[1], (ingest.MaxBody-len(tt[0]))/len(tt[1])))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			m := ingest.Decode(r, now)
			runtime.ReadMemStats(&after)
			if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 160 {
				t.Errorf("%d MiB allocated in all", got)
			}
			if len(m.Fixes) > ingest.MaxFixes {
				t.Errorf("%d fixes", len(m.Fixes))
			}
		})
	}
}

func TestRead(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/ingest/token?lat=1&lon=%zz", strings.NewReader("id=1"))
	r.Header.Set("Content-Type", form)
	got, err := ingest.Read(httptest.NewRecorder(), r)
	if err != nil {
		t.Fatal(err)
	}
	want := ingest.Request{
		Method: http.MethodPost, Query: "lat=1&lon=%zz", Header: http.Header{"Content-Type": {form}},
		Body: []byte("id=1"),
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	r = httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(make([]byte, ingest.MaxBody+1)))
	var tooLarge *http.MaxBytesError
	if _, err := ingest.Read(httptest.NewRecorder(), r); !errors.As(err, &tooLarge) {
		t.Errorf("%v, want *http.MaxBytesError", err)
	}
	r = httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(make([]byte, ingest.MaxBody)))
	if got, err := ingest.Read(httptest.NewRecorder(), r); err != nil || len(got.Body) != ingest.MaxBody {
		t.Errorf("%d bytes, %v", len(got.Body), err)
	}
}
