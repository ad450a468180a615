// Command screenshots takes pictures of each state of the tracking page, the driver app and the board, at
// the widths of phones and of a desktop, light and dark:
//
//	go run ./screenshots -out /tmp/shots
//	go run ./screenshots -out /tmp/shots -only driver-task -lang de -font 2 -widths 320,360,430
//
// It needs Chromium.
package main

import (
	"cmp"
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
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking/httpadapter/internal/e2e/webmock"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

func main() {
	log.SetFlags(0)
	out := flag.String("out", "screenshots", "folder for the pictures")
	only := flag.String("only", "", "regular expression: only pictures whose name matches")
	lang := flag.String("lang", "en", "language of pictures that are not of a certain one")
	font := flag.Float64("font", 1, "the reader's letters, as a factor, where a picture has none of its own")
	widths := flag.String("widths", "320,390,1280", "widths of the window")
	list := flag.Bool("list", false, "print the names and take none")
	flag.Parse()
	pattern, err := regexp.Compile(*only)
	if err != nil {
		log.Fatalf("-only: %v", err)
	}
	var sizes []size
	for _, w := range strings.Split(*widths, ",") {
		width, err := strconv.ParseInt(w, 10, 64)
		if err != nil {
			log.Fatalf("-widths: %v", err)
		}
		sizes = append(sizes, size{width, heightOf(width)})
	}
	if err := run(*out, pattern, sizes, shot{lang: *lang, font: *font}, *list); err != nil {
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
	font   float64 // the reader's letters, as a factor
	denied bool    // no leave to know the position
	next   string  // a path to go to after the script
	after  string  // run there
}

type size struct{ width, height int64 }

// heightOf is the height of a usual window of that width.
func heightOf(width int64) int64 {
	switch {
	case width >= 800:
		return 800
	case width >= 390:
		return 844
	}
	return 640
}

func sites() map[string]web.Site {
	words := map[string]map[string]string{"ar": {
		"lang.dir": "rtl", "track.headline.on_the_way": "طلبك في الطريق", "track.step.ordered": "تم الطلب",
		"track.step.assigned":   "تم التعيين",
		"track.step.on_the_way": "في الطريق", "track.step.delivered": "تم التسليم", "track.driver": "السائق",
		"track.place.to": "التوصيل إلى", "track.order": "الطلب",
		"track.eta.label": "الوصول", "track.eta.minutes.other": "خلال حوالي {n} دقائق",
		"track.eta.clock": "حوالي {time}", "track.distance": "على بعد {distance}",
		"track.position.now": "تم تحديث الموقع الآن", "track.help": "مساعدة", "track.km": "{n} كم", "track.m": "{n} م",
	}}
	plain := web.Site{Name: "Blue Parcel", HelpURL: "https://example.com/help", Words: words, ContactURL: "tel:+49301234567",
		FeedbackURL: "https://example.com/feedback"}
	tiles := plain
	tiles.Prefix, tiles.Color = "/tiled", "#0a7d4f"
	tiles.Tiles = web.Tiles{
		URL: "/tiled/tiles/{z}/{x}/{y}.svg", Attribution: "Streets of no city", AttributionURL: "https://example.com/",
	}
	yellow := plain
	yellow.Prefix, yellow.Name, yellow.Color = "/yellow", "Sunny Bakery", "#ffd400"
	return map[string]web.Site{"": plain, "tiled": tiles, "yellow": yellow}
}

// shots are all the pictures: the pages, and what is to happen on each before it is taken.
func shots() []shot {
	var all []shot
	for _, name := range []string{
		"ordered", "assigned", "on_the_way", "to_pickup", "fetching", "picked_up", "at_door", "vague", "last_seen",
		"no_position", "delivered", "collected", "not_delivered", "cancelled", "trip", "trip_ended", "address_only",
		"window", "window_tomorrow", "promised", "overdue", "stops", "next", "late", "arriving", "collecting", "not_home",
		"pin", "received", "retry",
	} {
		all = append(all, shot{name: "track-" + name, path: "/track/" + name})
	}
	const wait = `const wait = (f) => new Promise((r) => { const id = setInterval(() => { const v = f(); if (v) { clearInterval(id); r(v); } }, 20); });`
	form := `(async () => { ` + wait + ` await wait(() => document.querySelector('.join form')); })()`
	join := func(code int, then string) string {
		return fmt.Sprintf(`(async () => {
			`+wait+`
			const set = (el, v) => { el.value = v; el.dispatchEvent(new Event('input', { bubbles: true })); };
			set(await wait(() => document.querySelector('input[name=code]')), '%06d');
			document.querySelector('form').requestSubmit();
			await wait(() => document.querySelector('.head') || document.querySelector('[role=alert]').textContent);
			const click = async (sel, i = 0) => { (await wait(() => { const e = document.querySelectorAll(sel)[i]; return e?.ariaDisabled !== 'true' && e; })).click(); };
			const taps = '.primary:not([aria-disabled])';
			%s
		})()`, 100000+code, then)
	}
	// A photo that was taken, a signature, a name and a PIN.
	const given = `
		const camera = Object.assign(document.createElement('canvas'), { width: 900, height: 1200 }), c = camera.getContext('2d');
		c.fillStyle = '#8d99a6'; c.fillRect(0, 0, 900, 1200); c.fillStyle = '#41586b'; c.fillRect(250, 150, 400, 900);
		c.fillStyle = '#b98b52'; c.fillRect(330, 820, 240, 230);
		const jpeg = await new Promise((r) => camera.toBlob(r, 'image/jpeg'));
		const files = new DataTransfer();
		files.items.add(new File([jpeg], 'photo.jpg', { type: 'image/jpeg' }));
		const input = document.querySelector('.sheet input[type=file]');
		input.files = files.files;
		input.dispatchEvent(new Event('change', { bubbles: true }));
		await wait(() => document.querySelector('.sheet .thumb.photo'));
		const pad = document.querySelector('.pad canvas'), at = pad.getBoundingClientRect();
		pad.setPointerCapture = () => {};
		const pen = (type, x, y) => pad.dispatchEvent(new PointerEvent(type, { bubbles: true, pointerId: 1, button: 0, clientX: at.left + x * at.width, clientY: at.top + y * at.height }));
		pen('pointerdown', 0.15, 0.6);
		for (let i = 0; i < 60; i++) pen('pointermove', 0.15 + i / 85, 0.5 + 0.25 * Math.sin(i / 3) * Math.cos(i / 11));
		pen('pointerup', 0.85, 0.5);
		const [name, digits] = document.querySelectorAll('.sheet .field > input');
		set(name, 'Ada Lovelace'); set(digits, '0412');
		document.querySelector('.sheet').scrollTop = 0;`
	// What was given is sent, and its PIN refused.
	const refused = `
		await new Promise((r) => setTimeout(r, 900));
		await click('.sheet .primary:not([aria-disabled])');
		await wait(() => document.querySelector('.undo'));
		dispatchEvent(new Event('pagehide'));
		await wait(() => document.querySelector('.banner.refused .small'));
		await new Promise((r) => setTimeout(r, 900));`
	driver := func(name string, code int, then string) shot {
		return shot{name: "driver-" + name, path: "/driver/", script: join(code, then)}
	}
	board := func(name, scene, then string) shot {
		return shot{name: "board-" + name, path: "/board/#signin=" + scene, script: `(async () => { ` + wait + `
			const click = async (sel, i = 0) => (await wait(() => document.querySelectorAll(sel)[i])).click();
			` + then + ` })()`}
	}
	const desk = `await wait(() => document.querySelector('.column')); `
	all = append(all,
		shot{name: "board-signin", path: "/board/", script: `(async () => { ` + wait + ` await wait(() => document.querySelector('#key')); })()`},
		board("signin-wrong", "nothing", `await wait(() => document.querySelector('#why'))`),
		board("busy", "busy", desk+`await wait(() => document.querySelectorAll('.need').length > 5 && document.querySelector('.need .do:not(.waiting)') && (!document.querySelector('.map-box').offsetWidth || document.querySelector('.mark.driver')))`),
		board("view", "view", desk+`await wait(() => document.querySelector('.need'))`),
		board("calm", "calm", desk),
		board("empty", "empty", desk),
		board("large", "large", desk+`await wait(() => !document.querySelector('.map-box').offsetWidth || document.querySelector('.mark'))`),
		board("driver", "busy", desk+`await click('.tabs button', 2); await click('[data-row="driver asha"]'); await wait(() => document.querySelector('.stop') && (!document.querySelector('.map-box').offsetWidth || document.querySelector('.mark.pin')))`),
		board("task", "busy", desk+`await click('.tabs button', 1); await click('.mark.nobody'); await wait(() => document.querySelector('.mark.pin'))`),
		board("map", "busy", desk+`await click('.tabs button', 1); await wait(() => document.querySelector('.mark.driver'))`),
		board("assign", "busy", desk+`await click('.need.waiting .other'); await wait(() => document.querySelector('.candidate'))`),
		board("several", "busy", desk+`await click('.mark-box input'); await click('.mark-box input', 3); await wait(() => document.querySelector('.marked')); await click('.marked .do'); await wait(() => document.querySelectorAll('.panel .candidate').length > 3)`),
		board("marked", "busy", desk+`await click('.mark-box input'); await click('.mark-box input', 3); await wait(() => document.querySelector('.marked'))`),
		board("keys", "busy", desk+`await click('.tool.keys'); await wait(() => document.querySelector('dialog[open]'))`),
		board("stale", "busy", desk+`await wait(() => document.querySelector('.need')); const late = Date.now() + 60_000; Date.now = () => late; await wait(() => document.querySelector('.stale'))`),
	)
	return append(all,
		shot{name: "track-long", path: "/track/long", full: true},
		shot{name: "track-german", path: "/track/picked_up", lang: "de", full: true},
		shot{name: "track-arabic", path: "/track/long", lang: "ar", full: true},
		shot{name: "track-large", path: "/track/on_the_way", font: 2, full: true},
		shot{name: "track-noscript", path: "/track/on_the_way", noJS: true},
		shot{name: "track-gone", path: "/track/nothing"},
		shot{name: "track-tiles", path: "/track/on_the_way", site: "tiled"},
		shot{name: "track-yellow", path: "/track/on_the_way", site: "yellow"},
		shot{name: "driver-join-code", path: "/driver/", script: form},
		shot{name: "driver-join-link", path: "/join/busy", script: form},
		shot{name: "driver-join-wrong", path: "/driver/", script: join(99, "")},
		driver("off", 0, `await wait(() => document.querySelector('.empty'))`),
		shot{name: "driver-join-other", path: "/driver/", script: join(1, ""), next: "/join/nothing",
			after: `(async () => { ` + wait +
				` (await wait(() => document.querySelector('.join form'))).requestSubmit(); await wait(() => document.querySelector('[role=alert]').textContent); })()`},
		shot{
			name: "driver-denied", path: "/driver/",
			script: join(2, `await wait(() => document.querySelector('.fact.bad'))`), denied: true,
		},
		driver("refused", 8,
			`await click('.task ' + taps); await wait(() => document.querySelector('.undo')); dispatchEvent(new Event('pagehide')); await wait(() => document.querySelector('.banner.refused'))`),
		driver("on", 1, `await wait(() => document.querySelector('.empty'))`),
		driver("tasks", 2, `await wait(() => document.querySelector('.task'))`),
		driver("shift", 6, `await wait(() => document.querySelectorAll('.task').length === 16)`),
		driver("shift-list", 6, `(await wait(() => document.querySelector('.group-top'))).scrollIntoView()`),
		driver("order", 6, `location.hash = '#order'; await wait(() => document.querySelectorAll('.order-row').length === 16)`),
		driver("driving", 10, `await wait(() => document.querySelector('.task'))`),
		driver("house", 11, `await wait(() => document.querySelector('.parcel'))`),
		driver("house-some", 11, `(await wait(() => document.querySelector('.parcel input'))).click()`),
		driver("maps", 10, `await wait(() => document.querySelector('.task')); await click('.reach button.button'); await wait(() => document.querySelector('dialog[open]'))`),
		driver("break", 1, `await click('.rest'); await wait(() => document.querySelector('.rest') === null)`),
		driver("takeback", 3, `await wait(() => document.querySelector('.task')); window.fetch = () => Promise.reject(new TypeError('offline')); await click('.task ' + taps); await wait(() => document.querySelector('.last'))`),
		driver("map-shift", 6, `await click('.tab-map'); await wait(() => document.querySelector('.leaflet-marker-icon'))`),
		driver("phone-wrong", 7, `await wait(() => document.querySelector('.fact.unread'))`),
		driver("started", 2, `await click('.task ' + taps); await wait(() => document.querySelector('.step-done'))`),
		driver("undo", 3, `await click('.task ' + taps); await wait(() => document.querySelector('.undo'))`),
		driver("running", 3, `await wait(() => document.querySelector('.task'))`),
		driver("task", 2, `await click('.task .card-link'); await wait(() => document.querySelector('.bar'))`),
		driver("task-running", 3, `await click('.task .card-link'); await wait(() => document.querySelector('.bar'))`),
		driver("fail", 3, `await click('.task .card-link'); await click('.bar .button'); await click('.choice', 1)`),
		driver("decline", 2, `await click('.task .card-link'); await click('.bar .button')`),
		driver("proof", 9, `await click('.task ' + taps); await wait(() => document.querySelector('.sheet canvas'))`),
		driver("proof-lacks", 9, `await click('.task ' + taps); await wait(() => document.querySelector('.sheet canvas')); `+
			`await new Promise((r) => setTimeout(r, 900)); await click('.sheet .primary'); `+
			`await wait(() => document.querySelector('.sheet .problem').textContent)`),
		driver("proof-card", 9, `await click('.task .card-link'); await wait(() => document.querySelector('.proof-card')); `+
			`document.querySelector('.proof-card').scrollIntoView({ block: 'center' })`),
		driver("proof-given", 9, `await click('.task ' + taps); await wait(() => document.querySelector('.sheet canvas')); `+given),
		driver("proof-refused", 9, `await click('.task ' + taps); await wait(() => document.querySelector('.sheet canvas')); `+
			given+refused),
		driver("proof-mend", 9, `await click('.task ' + taps); await wait(() => document.querySelector('.sheet canvas')); `+
			given+refused+` await click('.banner.refused .small'); await wait(() => document.querySelector('.sheet .warn'))`),
		driver("trips", 4, `await wait(() => document.querySelector('.desc'))`),
		driver("map", 3, `await click('.tab-map'); await wait(() => document.querySelector('.leaflet-marker-icon'))`),
		driver("phone", 1,
			`await click('.tab-phone'); await click('.phone-app summary'); await wait(() => document.querySelector('.qr'))`),
		driver("revoked", 5, `await wait(() => document.querySelector('.note.warn'))`),
		driver("offline", 2,
			`await wait(() => document.querySelector('.task')); window.fetch = () => Promise.reject(new TypeError('offline')); dispatchEvent(new Event('offline')); await click('.task ' + taps); await wait(() => document.querySelector('.chip.pending'))`),
	)
}

// run takes the pictures whose names match, in each size and scheme, into a folder.
func run(out string, pattern *regexp.Regexp, sizes []size, usual shot, list bool) error {
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
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancel()
	ctx, cancel = chromedp.NewContext(ctx)
	defer cancel()
	if err := chromedp.Do(ctx); err != nil {
		return fmt.Errorf("starting Chromium: %w", err)
	}

	taken := 0
	for _, s := range shots() {
		s.lang, s.font = cmp.Or(s.lang, usual.lang), cmp.Or(s.font, usual.font)
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
				picture, err := take(ctx, s, "http://"+listener.Addr().String()+site.Prefix, size.width, size.height,
					scheme)
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

// take opens a page in a browser of its own, does what the shot says, and takes the picture.
func take(parent context.Context, s shot, site string, width, height int64, scheme string) (picture []byte, err error) {
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
			if m.IsException() ||
				m.Type == "error" && !strings.Contains(m.Text, "404") && !strings.Contains(m.Text, "401") &&
					!strings.Contains(m.Text, "409") {
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
	leave := browser.PermissionSettingGranted
	if s.denied {
		leave = browser.PermissionSettingDenied
	}
	if _, err := chromedp.CallBrowser(ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "geolocation"}, Setting: leave,
		BrowserContextID: chromedp.FromContext(ctx).BrowserContextID,
	}); err != nil {
		return nil, call(err, "permission")
	}
	if _, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1, Mobile: width < 800,
	}); err != nil {
		return nil, call(err, "size")
	}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia,
		emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		}}); err != nil {
		return nil, call(err, "media")
	}
	if _, err := chromedp.Call(ctx, emulation.SetGeolocationOverride, emulation.SetGeolocationOverrideParams{
		Latitude: &lat, Longitude: &lng, Accuracy: &accuracy,
	}); err != nil {
		return nil, call(err, "position")
	}
	if _, err := chromedp.Call(ctx, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{
		UserAgent: "Mozilla/5.0 Chrome", AcceptLanguage: s.lang,
	}); err != nil {
		return nil, call(err, "language")
	}
	if s.noJS {
		if _, err := chromedp.Call(ctx, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
			return nil, call(err, "no script")
		}
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(site+s.path)); err != nil {
		return nil, err
	}
	stand := func(code string) error {
		// A finger has been there: the sound is on.
		for _, typ := range []input.DispatchMouseEventType{
			input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased,
		} {
			params := input.DispatchMouseEventParams{
				Type: typ, X: 1, Y: 1, Button: input.MouseButtonLeft, ClickCount: 1,
			}
			if _, err := chromedp.Call(ctx, input.DispatchMouseEvent, params); err != nil {
				return err
			}
		}
		if err := chromedp.Do(ctx,
			chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.documentElement.style.fontSize = '%.0f%%'",
				100*s.font))); err != nil {
			return err
		}
		if code == "" {
			return nil
		}
		script, cancel := context.WithTimeout(ctx, 15*time.Second)
		defer cancel()
		if err := chromedp.Do(script, chromedp.Evaluate[chromedp.Void](code, chromedp.EvalAwaitPromise)); err != nil {
			html, _ := chromedp.Run(ctx, chromedp.OuterHTML(chromedp.CSS("body")))
			return call(err, "script, at the page "+html)
		}
		return nil
	}
	if err := stand(s.script); err != nil {
		return nil, err
	}
	if s.next != "" {
		if err := chromedp.Do(ctx, chromedp.Navigate(site+s.next)); err != nil {
			return nil, err
		}
		if err := stand(s.after); err != nil {
			return nil, err
		}
	}
	if !s.noJS {
		if err := chromedp.Do(ctx,
			chromedp.Poll[chromedp.Void](settled, chromedp.WithPollingTimeout(10*time.Second))); err != nil {
			return nil, call(err, "settling")
		}
		// Two frames, so that what was drawn last is in the picture.
		if err := chromedp.Do(ctx,
			chromedp.Evaluate[chromedp.Void]("new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))", chromedp.EvalAwaitPromise)); err != nil {
			return nil, err
		}
	}
	if s.full {
		return chromedp.Run(ctx, chromedp.FullScreenshot(100))
	}
	return chromedp.Run(ctx, chromedp.CaptureScreenshot())
}
