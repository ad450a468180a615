// Command screenshots takes pictures of each state of the tracking page and of the driver app, at the widths of phones and of a desktop, light and dark:
//
//	go run ./screenshots -out /tmp/shots
//
// It needs Chromium.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking/httpadapter/internal/e2e/webmock"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", "screenshots", "folder for the pictures")
	only := flag.String("only", "", "regular expression: only pictures whose name matches")
	list := flag.Bool("list", false, "print the names and take none")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	if err != nil {
		log.Fatalf("-only: %v", err)
	}
	if err := run(*out, pattern, *list); err != nil {
		log.Fatal(err)
	}
}

// shot is one picture, before its width and scheme.
type shot struct {
	name   string
	path   string
	script string // run when the page stands
	lang   string
	site   string // a key of sites
	noJS   bool
	full   bool    // the whole page, not only the window
	font   float64 // the reader's letters, as a factor; 0 is 1
}

var sizes = []struct{ width, height int64 }{{320, 640}, {390, 844}, {1280, 800}}

func sites() map[string]web.Site {
	words := map[string]map[string]string{"ar": {
		"lang.dir": "rtl", "track.headline.on_the_way": "طلبك في الطريق", "track.step.ordered": "تم الطلب", "track.step.assigned": "تم التعيين",
		"track.step.on_the_way": "في الطريق", "track.step.delivered": "تم التسليم", "track.driver": "السائق", "track.place.to": "التوصيل إلى", "track.order": "الطلب",
		"track.eta.label": "الوصول", "track.eta.minutes.other": "خلال حوالي {n} دقائق", "track.eta.clock": "حوالي {time}", "track.distance": "على بعد {distance}",
		"track.position.now": "تم تحديث الموقع الآن", "track.help": "مساعدة", "track.km": "{n} كم", "track.m": "{n} م",
	}}
	plain := web.Site{Name: "Blue Parcel", Help: "https://example.com/help", Words: words}
	tiles := plain
	tiles.Prefix, tiles.Color = "/tiled", "#0a7d4f"
	tiles.Tiles = web.Tiles{URL: "/tiled/tiles/{z}/{x}/{y}.svg", Attribution: "Streets of no city", AttributionURL: "https://example.com/"}
	yellow := plain
	yellow.Prefix, yellow.Name, yellow.Color = "/yellow", "Sunny Bakery", "#ffd400"
	return map[string]web.Site{"": plain, "tiled": tiles, "yellow": yellow}
}

func shots() []shot {
	var all []shot
	for _, name := range []string{"ordered", "assigned", "on_the_way", "to_pickup", "picked_up", "last_seen", "no_position", "delivered", "collected", "not_delivered", "cancelled", "trip", "trip_ended", "address_only"} {
		all = append(all, shot{name: "track-" + name, path: "/track/" + name})
	}
	join := func(code int, then string) string {
		return fmt.Sprintf(`(async () => {
			const wait = (f) => new Promise((r) => { const id = setInterval(() => { const v = f(); if (v) { clearInterval(id); r(v); } }, 20); });
			const set = (el, v) => { el.value = v; el.dispatchEvent(new Event('input', { bubbles: true })); };
			set(await wait(() => document.querySelector('input[name=code]')), '%06d');
			document.querySelector('form').requestSubmit();
			await wait(() => document.querySelector('.head') || document.querySelector('[role=alert]').textContent);
			const click = async (sel, i = 0) => { (await wait(() => document.querySelectorAll(sel)[i])).click(); };
			%s
		})()`, 100000+code, then)
	}
	driver := func(name string, code int, then string) shot {
		return shot{name: "driver-" + name, path: "/driver/", script: join(code, then)}
	}
	return append(all,
		shot{name: "track-long", path: "/track/long", full: true},
		shot{name: "track-german", path: "/track/picked_up", lang: "de", full: true},
		shot{name: "track-arabic", path: "/track/long", lang: "ar", full: true},
		shot{name: "track-large", path: "/track/on_the_way", font: 2, full: true},
		shot{name: "track-noscript", path: "/track/on_the_way", noJS: true},
		shot{name: "track-gone", path: "/track/nothing"},
		shot{name: "track-tiles", path: "/track/on_the_way", site: "tiled"},
		shot{name: "track-yellow", path: "/track/on_the_way", site: "yellow"},
		shot{name: "driver-join-code", path: "/driver/"},
		shot{name: "driver-join-link", path: "/join/busy"},
		shot{name: "driver-join-wrong", path: "/driver/", script: join(99, "")},
		driver("off", 0, `await wait(() => document.querySelector('.empty'))`),
		driver("on", 1, `await wait(() => document.querySelector('.empty'))`),
		driver("tasks", 2, `await wait(() => document.querySelector('.task'))`),
		driver("running", 3, `await wait(() => document.querySelector('.task'))`),
		driver("task", 2, `await click('.task .card-link'); await wait(() => document.querySelector('.bar'))`),
		driver("task-running", 3, `await click('.task .card-link'); await wait(() => document.querySelector('.bar'))`),
		driver("fail", 3, `await click('.task .card-link'); await click('.bar .button'); await click('.choice', 1)`),
		driver("decline", 2, `await click('.task .card-link'); await click('.bar .button')`),
		driver("trips", 4, `await wait(() => document.querySelector('.desc'))`),
		driver("map", 3, `await click('.tab-map'); await wait(() => document.querySelector('.leaflet-marker-icon'))`),
		driver("phone", 1, `await click('.tab-phone'); await click('.phone-app summary'); await wait(() => document.querySelector('.qr'))`),
		driver("revoked", 5, `await wait(() => document.querySelector('.note.warn'))`),
		driver("offline", 2, `await wait(() => document.querySelector('.task')); window.fetch = () => Promise.reject(new TypeError('offline')); dispatchEvent(new Event('offline')); await click('.task .primary'); await wait(() => document.querySelector('.chip.pending'))`),
	)
}

func run(out string, pattern *regexp.Regexp, list bool) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	mux := http.NewServeMux()
	for _, site := range sites() {
		s, err := webmock.New(site, time.Now)
		if err != nil {
			return err
		}
		mux.Handle(site.Prefix+"/", s.Handler())
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go server.Serve(listener) // until main returns
	defer server.Close()

	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("hide-scrollbars", true))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil {
		return fmt.Errorf("starting Chromium: %w", err)
	}

	taken := 0
	for _, s := range shots() {
		for _, size := range sizes {
			for _, scheme := range []string{"light", "dark"} {
				name := fmt.Sprintf("%s-%d-%s", s.name, size.width, scheme)
				if !pattern.MatchString(name) {
					continue
				}
				taken++
				if list {
					fmt.Println(name)
					continue
				}
				site := sites()[s.site]
				picture, err := take(ctx, s, "http://"+listener.Addr().String()+site.Prefix+s.path, size.width, size.height, scheme)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				if err := os.WriteFile(filepath.Join(out, name+".png"), picture, 0o644); err != nil {
					return err
				}
			}
		}
	}
	fmt.Printf("%d pictures\n", taken)
	return nil
}

// settled is true when nothing of the page is still loading or moving.
const settled = `document.readyState === 'complete' && document.getAnimations().every((a) => a.effect.getTiming().iterations === Infinity || a.playState !== 'running') &&
	(!document.body.hasAttribute('data-map') || document.querySelector('.leaflet-container') !== null) &&
	[...document.querySelectorAll('.leaflet-tile')].every((t) => t.classList.contains('leaflet-tile-loaded')) && !document.querySelector('.leaflet-zoom-anim .leaflet-marker-icon.leaflet-zoom-hide')`

func take(parent context.Context, s shot, url string, width, height int64, scheme string) (picture []byte, err error) {
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	defer cancel()
	ctx, cancel = context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil {
		return nil, err
	}
	// A page that complains is not fit for a picture.
	var mu sync.Mutex
	var complaints []error
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			if m.IsException() || m.Type == "error" && !strings.Contains(m.Text, "404") && !strings.Contains(m.Text, "401") {
				mu.Lock()
				complaints = append(complaints, errors.New(m.String()))
				mu.Unlock()
			}
		}
	}()
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		err = errors.Join(append([]error{err}, complaints...)...)
	}()
	lat, lng, accuracy := 52.5148, 13.3752, 8.0
	call := func(err error, what string) error {
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		return nil
	}
	if _, err := chromedp.CallBrowser(ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "geolocation"}, Setting: browser.PermissionSettingGranted,
		BrowserContextID: chromedp.FromContext(ctx).BrowserContextID,
	}); err != nil {
		return nil, call(err, "permission")
	}
	if _, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 800}); err != nil {
		return nil, call(err, "size")
	}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}}); err != nil {
		return nil, call(err, "media")
	}
	if _, err := chromedp.Call(ctx, emulation.SetGeolocationOverride, emulation.SetGeolocationOverrideParams{Latitude: &lat, Longitude: &lng, Accuracy: &accuracy}); err != nil {
		return nil, call(err, "position")
	}
	lang := s.lang
	if lang == "" {
		lang = "en"
	}
	if _, err := chromedp.Call(ctx, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{UserAgent: "Mozilla/5.0 Chrome", AcceptLanguage: lang}); err != nil {
		return nil, call(err, "language")
	}
	if s.noJS {
		if _, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
			return nil, call(err, "no script")
		}
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(url)); err != nil {
		return nil, err
	}
	if s.font != 0 {
		if err := chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.documentElement.style.fontSize = '%.0f%%'", 100*s.font))); err != nil {
			return nil, err
		}
	}
	if s.script != "" {
		script, cancel := context.WithTimeout(ctx, 15*time.Second)
		err := chromedp.Do(script, chromedp.Evaluate[chromedp.Void](s.script, chromedp.EvalAwaitPromise))
		cancel()
		if err != nil {
			html, _ := chromedp.Run(ctx, chromedp.OuterHTML(chromedp.CSS("body")))
			return nil, call(err, "script, at the page "+html)
		}
	}
	if !s.noJS {
		if err := chromedp.Do(ctx, chromedp.Poll[chromedp.Void](settled, chromedp.WithPollingTimeout(10*time.Second))); err != nil {
			return nil, call(err, "settling")
		}
		// Two frames, so that what was drawn last is in the picture.
		if err := chromedp.Do(ctx, chromedp.Evaluate[chromedp.Void]("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))", chromedp.EvalAwaitPromise)); err != nil {
			return nil, err
		}
	}
	if s.full {
		return chromedp.Run(ctx, chromedp.FullScreenshot(100))
	}
	return chromedp.Run(ctx, chromedp.CaptureScreenshot())
}
