package strict_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
)

// corpus adds the seeds of one folder of the archive, when the archive is at hand. As tests they
// all run; fuzzing begins with every eighth of them, or a short run would be over before it has
// gone through its seeds.
func corpus(f *testing.F, folder string, add func([]byte)) {
	f.Helper()
	if os.Getenv("TRACKING_DATA") == "" {
		return
	}
	files := archive(f, "go-fuzz-corpus-json-url.tgz")
	fuzzing := flag.Lookup("test.fuzz").Value.String() != ""
	for i, name := range slices.Sorted(maps.Keys(files)) {
		if strings.Contains("/"+name, "/"+folder+"/") && (!fuzzing || i%8 == 0) {
			add(files[name])
		}
	}
}

// FuzzObject: whatever is accepted, encoding/json accepts too, and reads the same.
func FuzzObject(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"type":1,"notes":"\ud83d\ude00","pickup":{"lnglat":[1,2]}}`, `{"a":[{},[],null,true,-1.5e+3]}`,
		`{"fixes":[{"time":1,"time":2}]}`, `{"notes":"\ud800"}`,
	} {
		f.Add([]byte(s))
	}
	corpus(f, "json", func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := strict.ParseObject(body)
		if err != nil {
			return
		}
		var want map[string]any
		if err := json.Unmarshal(body, &want); err != nil && !strings.Contains(err.Error(), "cannot unmarshal number") {
			t.Fatalf("accepted what encoding/json refuses: %v", err)
		}
		if o.Err() != nil {
			return
		}
		for key, v := range want {
			switch v := v.(type) {
			case string:
				if got, ok := o.Lookup(key); ok != (o.Err() == nil) || ok && got != v {
					t.Fatalf("%q: %q, want %q", key, got, v)
				}
			case float64:
				if got, ok := o.Float(key); ok != (o.Err() == nil) || ok && got != v {
					t.Fatalf("%q: %v, want %v", key, got, v)
				}
			case bool:
				if got, ok := o.Bool(key); ok != (o.Err() == nil) || ok && got != v {
					t.Fatalf("%q: %v, want %v", key, got, v)
				}
			case []any:
				all, ok := o.List(key)
				if list, more := all.Take(len(v)); ok != (o.Err() == nil) || ok && (len(list) != len(v) || more) {
					t.Fatalf("%q: %d elements, want %d", key, len(list), len(v))
				}
			case map[string]any:
				if _, ok := o.Object(key); ok != (o.Err() == nil) {
					t.Fatalf("%q is no object", key)
				}
			}
			if o.Err() != nil {
				return // given in another case, too
			}
		}
	})
}

// FuzzQuery: whatever is accepted, net/url accepts too, and reads the same.
func FuzzQuery(f *testing.F) {
	for _, s := range []string{"", "a=1&b=%20", "a=1;b", "a=%zz", "a&a", "properties.x=1&page=1&position=1,2"} {
		f.Add(s)
	}
	corpus(f, "url", func(b []byte) {
		f.Add(string(b))
		if _, q, ok := bytes.Cut(b, []byte("?")); ok {
			f.Add(string(q))
		}
	})
	f.Fuzz(func(t *testing.T, raw string) {
		var q strict.Query
		if q.Parse(raw) != nil {
			return
		}
		want, err := url.ParseQuery(raw)
		if err != nil {
			t.Fatalf("accepted what net/url refuses: %v", err)
		}
		for name, v := range want {
			if got, ok := q.Get(name); len(v) != 1 || !ok || got != v[0] {
				t.Fatalf("%q: %q, want %q", name, got, v)
			}
		}
	})
}

// FuzzTime: whatever is accepted, time.Parse reads as the same instant, and the millisecond form
// round-trips.
func FuzzTime(f *testing.F) {
	for _, s := range []string{
		"2024-03-10T08:50Z", "2024-03-10T08:50:05.1234+05:30", "0001-01-01T00:00Z", "2024-02-30T00:00Z",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := strict.ParseTime(s)
		if !ok {
			return
		}
		want, err := time.Parse("2006-01-02T15:04Z07:00", s)
		if err != nil {
			if want, err = time.Parse("2006-01-02T15:04:05Z07:00", s); err != nil {
				t.Fatalf("accepted what time.Parse refuses: %v", err)
			}
		}
		if diff := want.Sub(got); diff < 0 || diff >= time.Millisecond {
			t.Fatalf("%v, want %v", got, want)
		}
		if again, ok := strict.ParseTime(got.Format("2006-01-02T15:04:05.000Z07:00")); !ok || !again.Equal(got) {
			t.Fatalf("%v comes back as %v", got, again)
		}
	})
}

// FuzzPosition: whatever is accepted is on the Earth, and JSON has the same numbers.
func FuzzPosition(f *testing.F) {
	for _, s := range []string{"80.27,13.08", "-180,90", "1e2,-0", "NaN,0", "0x1p3,1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := strict.ParsePosition(s)
		if !ok {
			return
		}
		var want [2]float64
		if err := json.Unmarshal([]byte("["+s+"]"), &want); err != nil || !got.Valid() || got.Lng != want[0] ||
			got.Lat != want[1] {
			t.Fatalf("%v, want %v, %v", got, want, err)
		}
	})
}
