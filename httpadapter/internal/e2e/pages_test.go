package e2e_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking/httpadapter/internal/e2e/webmock"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

func serve(t *testing.T, site web.Site, wrap func(http.Handler) http.Handler) *httptest.Server {
	t.Helper()
	mock, err := webmock.New(site, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	h := mock.Handler()
	if wrap != nil {
		h = wrap(h)
	}
	server := httptest.NewServer(h)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server
}

// A page with its map costs at most 70 KB over the wire.
func TestTransfer(t *testing.T) {
	server := serve(t, web.Site{Name: "Blue Parcel"}, nil)
	p := newPerson(t, chromium(t), "the customer", server.URL)
	var mu sync.Mutex
	sizes := map[string]float64{}
	names := map[network.RequestID]string{}
	if err := chromedp.Listen(p.ctx, func(ev any) {
		mu.Lock()
		defer mu.Unlock()
		switch ev := ev.(type) {
		case *network.EventResponseReceived:
			names[ev.RequestID] = path.Base(ev.Response.URL)
		case *network.EventLoadingFinished:
			sizes[names[ev.RequestID]] += ev.EncodedDataLength
		}
	}); err != nil {
		t.Fatal(err)
	}
	p.open(server.URL + "/track/on_the_way")
	p.see("the map", `document.querySelector('.vehicle-icon') !== null`)
	mu.Lock()
	defer mu.Unlock()
	total := 0.0
	for name, size := range sizes {
		t.Logf("%7.0f bytes: %s", size, name)
		total += size
	}
	t.Logf("%7.0f bytes in all", total)
	if total > 70_000 || len(sizes) < 4 {
		t.Errorf("%d files with %.0f bytes, want at least 4 with at most 70,000", len(sizes), total)
	}
}

// The facts do not wait for the map: here the map library never comes.
func TestFactsBeforeTheMap(t *testing.T) {
	held := make(chan struct{})
	server := serve(t, web.Site{}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasPrefix(path.Base(r.URL.Path), "map-") {
				select {
				case <-held:
				case <-r.Context().Done():
				}
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	defer close(held)
	p := newPerson(t, chromium(t), "the customer", server.URL)
	if _, err := chromedp.Call(p.ctx, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	// Not by Navigate, which waits until everything is loaded.
	p.eval(`void setTimeout(() => { location.href = '` + server.URL + `/track/on_the_way' })`)
	p.see("the facts, kept up to date by the script",
		`document.querySelector('#eta-sub')?.textContent.startsWith('about') && document.querySelector('#driver-name').textContent === 'Maria' && document.querySelector('.vehicle-icon') === null`)
	p.see("that something was painted", `performance.getEntriesByName('first-contentful-paint').length === 1`)
}

// In a frame that is hardly larger than its map, driver and place stand where they can be seen.
func TestSmallFrame(t *testing.T) {
	mock, err := webmock.New(web.Site{}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for name, driver := range map[string][2]float64{
		"south": {13.3958, 52.5122}, "north": {13.3958, 52.5322}, "east": {13.4158, 52.5222},
		"west": {13.3758, 52.5222}, "near": {13.3958, 52.5212},
	} {
		scene := maps.Clone(mock.Track["on_the_way"])
		scene["position"] = map[string]any{
			"lnglat": driver, "time": time.Now().UTC().Format(time.RFC3339), "live": true,
		}
		mock.Track[name] = scene
	}
	server := httptest.NewServer(mock.Handler())
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	p := newPerson(t, chromium(t), "the customer", server.URL)
	if _, err := chromedp.Call(p.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: 320, Height: 400, DeviceScaleFactor: 1,
	}); err != nil {
		t.Fatal(err)
	}
	for _, scene := range []string{"south", "north", "east", "west", "near"} {
		p.open(server.URL + "/track/" + scene)
		p.see(scene+": driver and place, whole and above the sheet", `(() => {
			const sheet = document.querySelector('.sheet').getBoundingClientRect().top;
			const signs = [...document.querySelectorAll('.vehicle-icon .disc, .pin-icon .pin')].map((e) => e.getBoundingClientRect());
			return signs.length === 2 && signs.every((r) => r.top >= 0 && r.left >= 0 && r.right <= innerWidth && r.bottom <= sheet);
		})()`)
	}
}

// Where no stream is to be had, the page asks.
func TestPolling(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	server := serve(t, web.Site{}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch path.Base(r.URL.Path) {
			case "live":
				w.Header().Set("Content-Type", "text/html") // such as a proxy's error page
				_, _ = w.Write([]byte("<h1>Bad gateway</h1>"))
				return
			case "state":
				mu.Lock()
				asked++
				second := asked == 2
				mu.Unlock()
				if second {
					r = r.Clone(r.Context())
					r.URL.Path = "/track/delivered/state"
				}
			}
			next.ServeHTTP(w, r)
		})
	})
	p := newPerson(t, chromium(t), "the customer", server.URL)
	p.open(server.URL + "/track/on_the_way")
	p.see("that it is on the way", `document.body.dataset.phase === 'on_the_way'`)
	p.see("that it was delivered",
		`document.body.dataset.phase === 'delivered' && document.querySelector('.vehicle-icon') === null`)
}

// readAxe reads axe, or skips the test where it is not installed.
func readAxe(t *testing.T) string {
	t.Helper()
	axe, err := os.ReadFile("../../web/node_modules/axe-core/axe.min.js")
	if err != nil {
		if os.Getenv("TRACKING_LONG") == "1" {
			t.Fatalf("run npm ci in httpadapter/web first: %v", err)
		}
		t.Skip("axe-core is not installed: npm ci in httpadapter/web")
	}
	return string(axe)
}

// prefers sets the scheme of colours, and that nothing moves.
func (p *person) prefers(scheme string) {
	p.Helper()
	if _, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}}); err != nil {
		p.Fatal(err)
	}
}

// accessible holds the page as it is to the rules of axe.
func (p *person) accessible(axe, name string) {
	p.Helper()
	p.do("loading axe", chromedp.Evaluate[chromedp.Void](axe))
	found, err := chromedp.Run(p.ctx,
		chromedp.Evaluate[string](`axe.run().then((r) => r.passes.length === 0 ? 'nothing was checked' : r.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html).join(' ')).join('; '))`, chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatal(err)
	}
	if found != "" {
		p.Errorf("%s: %s", name, found)
	}
}

// Each page in light and dark passes the rules of axe that can be checked by a machine. It takes
// axe from the packages of the web fronts.
func TestAccessibility(t *testing.T) {
	axe := readAxe(t)
	server := serve(t, web.Site{Name: "Sunny", HelpURL: "https://example.com/help", Color: "#ffd400"}, nil)
	chrome := chromium(t)
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			p := newPerson(t, chrome, "the reader", server.URL)
			p.expected = append(p.expected, "status of 404")
			p.stand(13.37, 52.51)
			p.prefers(scheme)
			check := func(name string) {
				t.Helper()
				p.accessible(axe, name)
			}
			for _, scene := range []string{
				"on_the_way", "ordered", "delivered", "not_delivered", "long", "unknown",
				"window", "overdue", "stops", "late", "arriving", "collecting", "not_home",
				"pin", "received", "retry",
			} {
				p.open(server.URL + "/track/" + scene)
				if scene == "on_the_way" {
					p.see("the map", `document.querySelector('.vehicle-icon') !== null`)
				}
				check("tracking page, " + scene)
			}
			p.open(server.URL + "/driver/")
			p.see("where to enter the code", `document.querySelector('input[name=code]') !== null`)
			check("driver app, joining")
			p.eval(`document.querySelector('input[name=code]').value = '100003'; document.querySelector('form').requestSubmit()`)
			p.see("the tasks", `document.querySelector('.task') !== null`)
			check("driver app, tasks")
			for _, view := range []struct{ hash, ready string }{
				{"#phone", ".phone-app"}, {"#map", ".leaflet-container"}, {"#order", ".order-row"},
				{"#task/t-1", ".bar"},
			} {
				p.eval(`location.hash = '` + view.hash + `'`)
				p.see(view.hash, `document.querySelector('`+view.ready+`') !== null`)
				p.eval(`document.querySelectorAll('details').forEach((d) => d.open = true)`)
				check("driver app, " + view.hash)
			}
			p.eval(`document.querySelectorAll('.bar .button')[0].click()`)
			p.see("the dialog", `document.querySelector('dialog[open]') !== null`)
			check("driver app, dialog")
			p = newPerson(t, p.ctx, "another driver", server.URL)
			p.open(server.URL + "/driver/")
			p.joinScene(100011)
			p.see("several parcels for one house", `document.querySelectorAll('.parcel').length === 3`)
			check("driver app, several parcels")
		})
	}
}

// A driver can do it all with a keyboard: join, go on duty, open a task, take it.
func TestKeyboard(t *testing.T) {
	server := serve(t, web.Site{}, nil)
	p := newPerson(t, chromium(t), "the driver", server.URL)
	p.stand(13.37, 52.51)
	p.open(server.URL + "/driver/")
	p.see("where to enter the code", `document.querySelector('input[name=code]') !== null`)
	tabTo := func(selector string) {
		t.Helper()
		for range 40 {
			p.do("pressing Tab", chromedp.KeyEvent("\t"))
			at, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](`document.activeElement.matches('`+selector+`')`))
			if err != nil {
				t.Fatal(err)
			}
			if at {
				return
			}
		}
		t.Fatalf("Tab does not lead to %s", selector)
	}
	tabTo("input[name=code]")
	p.do("typing the code", chromedp.KeyEvent("100002\r"))
	p.see("the tasks", `document.querySelector('.task') !== null`)
	tabTo(".switch")
	p.do("going off duty", chromedp.KeyEvent(" "))
	tabTo(".task .card-link")
	p.do("opening the task", chromedp.KeyEvent("\r"))
	p.see("the task", `document.querySelector('.bar') !== null`)
	tabTo(".bar .primary")
	p.see("a button that takes a step", `document.querySelector('.bar .primary`+ready+`') !== null`)
	p.do("starting", chromedp.KeyEvent("\r"))
	p.see("what was done, and the focus there", `document.activeElement.matches('.step-done')`)
	p.see("that nothing waits", `document.querySelector('.chip.pending') === null`)
}
