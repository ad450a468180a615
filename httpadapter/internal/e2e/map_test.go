package e2e_test

import (
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking/httpadapter/internal/maptest"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// streetMap opens a map of a town that the scenes lie in.
func streetMap(t *testing.T) *web.Map {
	t.Helper()
	return openMap(t, maptest.Write)
}

func openMap(t *testing.T, write func(file string, lng, lat float64) error) *web.Map {
	t.Helper()
	file := filepath.Join(t.TempDir(), "town.pmtiles")
	if err := write(file, 13.39, 52.517); err != nil {
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
	return m
}

// colours is an expression for how many there are on the tiles of a map: where nothing is drawn, one.
const colours = `new Set([...document.querySelectorAll('canvas.leaflet-tile')].flatMap((c) =>
	[...new Uint32Array(c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)])).size`

// TestStreetMap: a map of streets from one file is drawn on both fronts, in light and dark, from this
// server alone and in parts.
func TestStreetMap(t *testing.T) {
	axe := readAxe(t)
	m := streetMap(t)
	server := serve(t, web.Site{Map: m}, nil)
	chrome := chromium(t)
	brightness := map[string]float64{}
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			p := newPerson(t, chrome, "the reader", server.URL)
			p.prefers(scheme)
			p.stand(13.39, 52.517)
			p.open(server.URL + "/track/on_the_way")
			p.see("streets below the driver", colours+` > 20 && document.querySelector('.vehicle-icon') !== null`)
			p.see("whose the map is", `document.querySelector('.leaflet-control-attribution a[href="https://www.openstreetmap.org/copyright"]').textContent === '© OpenStreetMap'`)
			p.see("neither ring nor scale", `document.querySelector('.ring, .leaflet-control-scale') === null`)
			p.accessible(axe, "the tracking page")
			var err error
			brightness[scheme], err = chromedp.Run(p.ctx, chromedp.Evaluate[float64](
				`(() => { const c = document.querySelector('canvas.leaflet-tile'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
				let sum = 0; for (let i = 0; i < d.length; i += 4) sum += d[i + 1]; return sum / d.length * 4; })()`))
			if err != nil {
				t.Fatal(err)
			}

			p.open(server.URL + "/driver/")
			p.joinScene(100002)
			p.see("the tasks", `document.querySelector('.task') !== null`)
			p.eval(`location.hash = '#map'`)
			p.see("streets below the stops", colours+` > 20 && document.querySelector('.pin-icon') !== null`)
			p.onlyFrom(server.URL)
			p.mu.Lock()
			defer p.mu.Unlock()
			parts := 0
			for _, r := range p.requests {
				if strings.HasSuffix(r, m.Name()) {
					parts++
				}
			}
			if parts < 2 {
				t.Errorf("the file is asked for %d times, want its directory and tiles apart", parts)
			}
		})
	}
	if brightness["light"] < brightness["dark"]+60 {
		t.Errorf("the map is as dark as %v", brightness)
	}
}

// A file as large as one of a city, whose directory lists further ones, is drawn on the board at each
// zoom, and asked for in small parts.
func TestCityMap(t *testing.T) {
	m := openMap(t, maptest.WriteCity)
	var mu sync.Mutex
	var largest, all int
	server := serve(t, web.Site{Map: m}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r)
			if strings.HasSuffix(r.URL.Path, m.Name()) {
				n, _ := strconv.Atoi(w.Header().Get("Content-Length"))
				mu.Lock()
				largest, all = max(largest, n), all+n
				mu.Unlock()
			}
		})
	})
	p := newPerson(t, chromium(t), "the dispatcher", server.URL)
	p.desk(1280, 800)
	p.open(server.URL + "/board/#signin=busy")
	p.see("the board", live)
	p.see("streets", colours+` > 20`)
	for range 5 {
		p.eval(`document.querySelector('.leaflet-control-zoom-in').click()`)
		p.eval(`new Promise((done) => setTimeout(done, 500))`)
		p.see("streets, nearer", `document.querySelector('.leaflet-zoom-anim.leaflet-zooming') === null && `+colours+` > 10`)
	}
	p.onlyFrom(server.URL)
	mu.Lock()
	defer mu.Unlock()
	t.Logf("%d KB, at most %d KB at once", all>>10, largest>>10)
	if all == 0 || largest > 128<<10 {
		t.Errorf("%d bytes were asked for, up to %d at once", all, largest)
	}
}

// Without any map, a ring and a scale say how far it is, and the code that draws streets is not
// loaded.
func TestPlainGrid(t *testing.T) {
	server := serve(t, web.Site{}, nil)
	p := newPerson(t, chromium(t), "the reader", server.URL)
	p.open(server.URL + "/track/on_the_way")
	p.see("the ring", `document.querySelector('.ring') !== null && document.querySelector('.ring-label').textContent === '300 m'`)
	p.see("the scale", `/^\d+ k?m$/.test(document.querySelector('.leaflet-control-scale-line').textContent)`)
	p.see("that the ring is as wide as the scale says", `(() => {
		const scale = document.querySelector('.leaflet-control-scale-line'), ring = document.querySelector('.ring').getBoundingClientRect();
		const [n, unit] = scale.textContent.split(' ');
		return Math.abs(ring.width / scale.offsetWidth * n * (unit === 'km' ? 1000 : 1) - 600) < 30;
	})()`)
	p.onlyFrom(server.URL)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if strings.Contains(r, "basemap") {
			t.Errorf("it loads %s", r)
		}
	}
}

// TestMapFlag: the example server serves the map that its flag names, and its couriers drive on it.
func TestMapFlag(t *testing.T) {
	file := filepath.Join(t.TempDir(), "city.pmtiles")
	if err := maptest.Write(file, 2.1605, 41.391); err != nil { // around the course of the demo
		t.Fatal(err)
	}
	chrome := chromium(t)
	base, _ := exampleServer(t, "-map", file)
	p := newPerson(t, chrome, "the newcomer", base)
	p.links(base)
	p.click(".links a")
	p.see("streets below the courier", colours+` > 20 && document.querySelector('.vehicle-icon') !== null`)
	p.see("no tiles of the demo's own", `document.querySelector('img.leaflet-tile') === null`)
	p.onlyFrom(base)
}
