package web_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking/httpadapter/internal/maptest"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// aMap is a map of a small town, and its file.
func aMap(t *testing.T) (*web.Map, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "town.pmtiles")
	if err := maptest.Write(file, 13.39, 52.52); err != nil {
		t.Fatal(err)
	}
	m, err := web.OpenMap(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m, file
}

func TestMap(t *testing.T) {
	m, file := aMap(t)
	if m.Attribution != "© OpenStreetMap" || m.AttributionURL != "https://www.openstreetmap.org/copyright" {
		t.Errorf("the attribution is %q to %q", m.Attribution, m.AttributionURL)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	get := func(ranges string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "/driver/map/"+m.Name(), nil)
		if ranges != "" {
			r.Header.Set("Range", ranges)
		}
		w := httptest.NewRecorder()
		m.ServeHTTP(w, r)
		return w
	}
	if w := get(""); w.Code != http.StatusOK || w.Body.String() != string(data) {
		t.Errorf("the whole file: %d with %d bytes, want %d", w.Code, w.Body.Len(), len(data))
	}
	w := get("bytes=127-200")
	if w.Code != http.StatusPartialContent || w.Body.String() != string(data[127:201]) ||
		w.Header().Get("ETag") == "" || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
		t.Errorf("a part: %d with %d bytes, %v", w.Code, w.Body.Len(), w.Header())
	}

	// Another file has another name, which browsers keep apart.
	if err := os.WriteFile(file, append(data, 0), 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := web.OpenMap(file)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Name() == m.Name() {
		t.Errorf("both are called %s", m.Name())
	}
}

func TestNoMap(t *testing.T) {
	_, good := aMap(t)
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	change := func(at int, to byte) []byte {
		d := append([]byte(nil), data...)
		d[at] = to
		return d
	}
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"empty":          {nil, "no PMTiles file"},
		"another format": {[]byte(strings.Repeat("SQLite format 3\x00", 20)), "no PMTiles file"},
		"version 2":      {change(7, 2), "no PMTiles file of version 3"},
		"pictures":       {change(99, 2), "no vector tiles"},
		"brotli":         {change(97, 3), "something else than gzip"},
		"cut off":        {data[:140], "not whole"},
		"spoilt":         {change(int(data[24])|int(data[25])<<8, 'x'), "metadata cannot be read"},
		"a far zoom":     {change(101, 200), "zoom over 24"},
	} {
		file := filepath.Join(t.TempDir(), "x.pmtiles")
		if err := os.WriteFile(file, tt.data, 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := web.OpenMap(file)
		if err == nil || m != nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v, want %q and the file's name", name, err, tt.want)
		}
	}
	if _, err := web.OpenMap(filepath.Join(t.TempDir(), "none.pmtiles")); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// A Site has tiles or a map.
func TestMapOrTiles(t *testing.T) {
	m, _ := aMap(t)
	if err := (web.Site{Map: m}).Check(); err != nil {
		t.Error(err)
	}
	if err := (web.Site{Map: m, Tiles: web.Tiles{URL: "/{z}/{x}/{y}"}}).Check(); err == nil {
		t.Error("a Site with both is good")
	}
}
