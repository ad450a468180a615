package demo

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking"
)

// TestTown: the streets of the map are those that the course drives along, under the names that its
// doors have.
func TestTown(t *testing.T) {
	c, err := readCourse(courseFile)
	if err != nil {
		t.Fatal(err)
	}
	m := newTown(c)
	off := func(p [2]float64) (best float64, name string) {
		best = 1e9
		for axis, list := range m.streets {
			for _, s := range list {
				if d := max(s.at-p[axis], p[axis]-s.at); d < best {
					best, name = d, s.name
				}
			}
		}
		return best, name
	}
	for i, p := range c.points {
		if d, _ := off(m.plane(p)); d > 2 {
			t.Errorf("point %d of the course is %.1f m off the streets", i, d)
		}
		if back := m.place(m.plane(p)[0], m.plane(p)[1]); tracking.Distance(p, back) > 0.1 {
			t.Errorf("point %d is %v in the plane, and %v again", i, p, back)
		}
	}
	for _, d := range c.doors {
		if _, name := off(m.plane(d.lngLat)); !strings.HasSuffix(d.address, " "+name) || name == "" {
			t.Errorf("the door %s stands in %s", d.address, name)
		}
	}
	if len(m.streets[0]) != 13 || len(m.streets[1]) != 12 || m.unit < 130 || m.unit > 136 {
		t.Errorf("there are %d and %d streets, %.1f m apart", len(m.streets[0]), len(m.streets[1]), m.unit)
	}
}

// TestTiles: each tile is a picture in SVG that loads nothing, of the town where that is.
func TestTiles(t *testing.T) {
	h, err := Tiles()
	if err != nil {
		t.Fatal(err)
	}
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		return w
	}
	for _, scheme := range []string{"light", "dark"} {
		for name, tt := range map[string]struct {
			path string
			has  []string // elements
		}{
			"the town":     {"16/33161/24475", []string{"<text", "Street<", "<path"}},
			"from afar":    {"13/4145/3059", []string{"<rect", "<path"}},
			"the world":    {"0/0/0", []string{"<rect"}},
			"far from it":  {"16/0/0", []string{"<rect"}},
			"the smallest": {"22/2122310/1566400", []string{"<rect"}},
		} {
			w := get("/demo/" + scheme + "/" + tt.path + ".svg")
			text := w.Body.String()
			if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "image/svg+xml" || len(text) > 50_000 {
				t.Errorf("%s, %s: %d, %v, %d bytes", scheme, name, w.Code, w.Header(), len(text))
			}
			for _, part := range tt.has {
				if !strings.Contains(text, part) {
					t.Errorf("%s, %s has no %s:\n%.400s", scheme, name, part, text)
				}
			}
			for _, part := range []string{"href", "url(", "script", "NaN", "Inf", "%!"} {
				if strings.Contains(text, part) {
					t.Errorf("%s, %s has %s", scheme, name, part)
				}
			}
			dec := xml.NewDecoder(strings.NewReader(text))
			for {
				if _, err := dec.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Errorf("%s, %s: %v", scheme, name, err)
					break
				}
			}
		}
	}
	for _, path := range []string{
		"/demo/light/1/2/0.svg", "/demo/light/1/0/-1.svg", "/demo/light/99/0/0.svg", "/demo/light/1/0/0.png",
		"/demo/other/1/0/0.svg", "/demo/light/a/0/0.svg",
	} {
		if w := get(path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}
