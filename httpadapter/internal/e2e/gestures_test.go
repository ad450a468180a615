package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// pane is where the map has been moved to.
const pane = `document.querySelector('.leaflet-map-pane').style.transform + document.querySelector('.leaflet-proxy').style.transform`

// touch says where fingers are, one point each; none ends it.
func (p *person) touch(kind input.DispatchTouchEventType, points ...*input.TouchPoint) {
	p.Helper()
	if points == nil {
		points = []*input.TouchPoint{}
	}
	if _, err := chromedp.Call(p.ctx, input.DispatchTouchEvent, input.DispatchTouchEventParams{
		Type: kind, TouchPoints: points,
	}); err != nil {
		p.Fatal(err)
	}
}

// phone makes the browser one with a touch screen, of that height.
func (p *person) phone(height int64) {
	p.Helper()
	if _, err := chromedp.Call(p.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: 390, Height: height, DeviceScaleFactor: 1, Mobile: true,
	}); err != nil {
		p.Fatal(err)
	}
	if _, err := chromedp.Call(p.ctx, emulation.SetTouchEmulationEnabled, emulation.SetTouchEmulationEnabledParams{
		Enabled: true, MaxTouchPoints: 2,
	}); err != nil {
		p.Fatal(err)
	}
}

// One finger on the map scrolls the page, and a hint says how to move the map; two fingers do that.
func TestSwipeOverTheMap(t *testing.T) {
	server := serve(t, web.Site{}, nil)
	p := newPerson(t, chromium(t), "the customer", server.URL)
	p.phone(600)
	p.open(server.URL + "/track/on_the_way")
	p.see("the map", `document.querySelector('.vehicle-icon') !== null`)
	// The map comes to rest by itself first.
	p.eval(`new Promise((done) => { let last = '', same = 0; const look = () => { same = ` + pane +
		` === last ? same + 1 : 0; last = ` + pane + `; if (same > 60) done(); else requestAnimationFrame(look); }; look(); })`)
	p.eval(`window.before = ` + pane +
		`; window.hints = new Set(); new MutationObserver(() => { const on = document.querySelector('.map-hint.on'); if (on) hints.add(on.textContent); }).observe(document.querySelector('.map-hint'), { attributes: true, childList: true })`)
	p.touch(input.DispatchTouchEventTypeTouchStart, &input.TouchPoint{X: 195, Y: 240})
	for y := 230.0; y >= 60; y -= 10 {
		p.touch(input.DispatchTouchEventTypeTouchMove, &input.TouchPoint{X: 195, Y: y})
	}
	p.touch(input.DispatchTouchEventTypeTouchEnd)
	p.see("that the page has scrolled, and not the map", `scrollY > 100 && before === `+pane)
	p.see("how to move the map", `hints.has('Use two fingers to move the map')`)
	p.see("that nobody has moved the map", `document.querySelector('#recenter').hidden`)

	// What the finger set going comes to rest.
	p.eval(`new Promise((done) => { let last = -1, same = 0; const look = () => { same = scrollY === last ? same + 1 : 0; last = scrollY; if (same > 20) done(); else requestAnimationFrame(look); }; look(); })`)
	p.eval(`scrollTo(0, 0)`)
	two := func(y float64) []*input.TouchPoint { return []*input.TouchPoint{{X: 150, Y: y}, {X: 240, Y: y}} }
	p.touch(input.DispatchTouchEventTypeTouchStart, two(120)...)
	for y := 125.0; y <= 200; y += 5 {
		p.touch(input.DispatchTouchEventTypeTouchMove, two(y)...)
	}
	p.touch(input.DispatchTouchEventTypeTouchEnd)
	p.see("that the map has moved, and not the page", `scrollY === 0 && before !== `+pane)
	p.see("the way back", `!document.querySelector('#recenter').hidden`)
}

// In a frame the wheel scrolls the page around it; it zooms the map while Ctrl is held, and after a
// click.
func TestWheelInAFrame(t *testing.T) {
	server := serve(t, web.Site{}, nil)
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w,
			`<!doctype html><title>Shop</title><body style="margin:0;height:3000px"><iframe src="%s/track/on_the_way" style="width:1000px;height:500px;border:0"></iframe>`, server.URL)
	}))
	t.Cleanup(func() { shop.CloseClientConnections(); shop.Close() })
	p := newPerson(t, chromium(t), "the customer", server.URL)
	if _, err := chromedp.Call(p.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: 1100, Height: 800, DeviceScaleFactor: 1,
	}); err != nil {
		t.Fatal(err)
	}
	mouse := func(params input.DispatchMouseEventParams) {
		t.Helper()
		params.X, params.Y = 700, 250
		if _, err := chromedp.Call(p.ctx, input.DispatchMouseEvent, params); err != nil {
			t.Fatal(err)
		}
	}
	wheel := func(deltaY float64, modifiers int64) {
		t.Helper()
		mouse(input.DispatchMouseEventParams{
			Type: input.DispatchMouseEventTypeMouseWheel, DeltaX: 0.01, DeltaY: deltaY, Modifiers: modifiers,
		})
	}
	p.open(shop.URL)
	p.seeFramed("the map", `document.querySelector('.vehicle-icon') !== null`)
	if err := p.framed(`(window.before = `+pane+`) !== ''`, patience); err != nil {
		t.Fatal(err)
	}
	wheel(120, 0)
	p.see("that the shop's page has scrolled", `scrollY > 50`)
	p.seeFramed("that the map has not moved, and how to zoom it",
		`before === `+pane+` && /^Hold (Ctrl|⌘) and scroll/.test(document.querySelector('.map-hint').textContent)`)
	p.eval(`scrollTo(0, 0)`)
	const ctrl = 2
	// The browser may take a turn of the wheel for where the page was before it was scrolled back.
	zoomed := `before !== ` + pane +
		` && !document.querySelector('#recenter').hidden && document.querySelector('.leaflet-zoom-anim') === null`
	for try := 1; ; try++ {
		wheel(-240, ctrl)
		if try == 5 {
			p.seeFramed("that the map is zoomed", zoomed)
		} else if p.framed(zoomed, patience/6) != nil {
			continue
		}
		break
	}
	if err := p.framed(`(window.before = `+pane+`) !== ''`, patience); err != nil {
		t.Fatal(err)
	}
	mouse(input.DispatchMouseEventParams{
		Type: input.DispatchMouseEventTypeMousePressed, Button: input.MouseButtonLeft, ClickCount: 1,
	})
	mouse(input.DispatchMouseEventParams{
		Type: input.DispatchMouseEventTypeMouseReleased, Button: input.MouseButtonLeft, ClickCount: 1,
	})
	wheel(240, 0)
	p.seeFramed("that the map is zoomed after a click", `before !== `+pane)
	p.see("that the shop's page stays", `scrollY === 0`)
}

// Keys move the map as ever.
func TestMapByKeyboard(t *testing.T) {
	server := serve(t, web.Site{}, nil)
	p := newPerson(t, chromium(t), "the customer", server.URL)
	p.open(server.URL + "/track/on_the_way")
	p.see("the map", `document.querySelector('.vehicle-icon') !== null`)
	p.eval(`window.before = ` + pane + `; document.querySelector('.leaflet-container').focus()`)
	p.do("an arrow", chromedp.KeyEvent("\u0303")) // ArrowRight
	p.see("that the map has moved", `before !== `+pane+` && !document.querySelector('#recenter').hidden`)
}

// Times of day are written as the reader's country does, and not as the language's largest.
func TestClockOfTheReader(t *testing.T) {
	server := serve(t, web.Site{TimeZone: time.UTC}, nil)
	chrome := chromium(t)
	for _, c := range []struct {
		accept, lang string
		halves       bool
	}{{"en-GB,en-US,en", "en", false}, {"en-US,en", "en", true}, {"sv-SE,sv", "en", false}, {"de-AT,de", "de", false}} {
		t.Run(c.accept, func(t *testing.T) {
			p := newPerson(t, chrome, "the customer", server.URL)
			if _, err := chromedp.Call(p.ctx, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{
				UserAgent: "Mozilla/5.0 Chrome", AcceptLanguage: c.accept,
			}); err != nil {
				t.Fatal(err)
			}
			p.open(server.URL + "/track/on_the_way")
			p.see("the expected time",
				fmt.Sprintf(`document.documentElement.lang === %q && /\d\d?[:.]\d\d/.test(document.querySelector('#eta-sub').textContent)`, c.lang))
			p.see("hours as at home",
				fmt.Sprintf(`/[AP]M/i.test(document.querySelector('#eta-sub').textContent) === %v`, c.halves))
			p.see("them at the steps, too",
				fmt.Sprintf(`[...document.querySelectorAll('#steps time')].every((e) => /[AP]M/i.test(e.textContent) === %v)`, c.halves))
		})
	}
}

// A page whose connection is gone says by itself that the driver is silent, and stops promising a
// time.
func TestSilenceIsSeenWithoutAConnection(t *testing.T) {
	server := serve(t, web.Site{}, nil)
	p := newPerson(t, chromium(t), "the customer", server.URL)
	p.expected = append(p.expected, "ERR_")
	p.open(server.URL + "/track/on_the_way")
	p.see("the expected time", `!document.querySelector('#eta').hidden && document.querySelector('#detail').hidden`)
	server.CloseClientConnections()
	server.Close()
	p.eval(`{ const was = Date.now.bind(Date); Date.now = () => was() + 6 * 60_000; }`)
	p.see("that there is no time, and when the driver was last seen",
		`document.querySelector('#eta').hidden && !document.querySelector('#detail').hidden && document.querySelector('#position').textContent.startsWith('Last seen')`)
}
