package e2e_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// ready is what a button is that takes a step: for a moment after another step none does.
const ready = `:not([aria-disabled])`

// spot is the middle of an element on the screen.
func (p *person) spot(selector string) (x, y float64) {
	p.Helper()
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`(() => {
		const e = document.querySelector('`+selector+`');
		e.scrollIntoView({ block: 'center' });
		const r = e.getBoundingClientRect();
		return JSON.stringify([r.x + r.width / 2, r.y + r.height / 2]);
	})()`))
	if err != nil {
		p.Fatalf("%s: where is %s: %v", p.name, selector, err)
	}
	var at [2]float64
	if err := json.Unmarshal([]byte(text), &at); err != nil {
		p.Fatal(err)
	}
	return at[0], at[1]
}

// tap touches the screen at a place, whatever is there by then.
func (p *person) tap(x, y float64) {
	p.Helper()
	for _, typ := range []input.DispatchTouchEventType{
		input.DispatchTouchEventTypeTouchStart, input.DispatchTouchEventTypeTouchEnd,
	} {
		var points []*input.TouchPoint
		if typ == input.DispatchTouchEventTypeTouchStart {
			points = []*input.TouchPoint{{X: x, Y: y}}
		}
		if _, err := chromedp.Call(p.ctx, input.DispatchTouchEvent, input.DispatchTouchEventParams{
			Type: typ, TouchPoints: points,
		}); err != nil {
			p.Fatal(err)
		}
	}
}

// joinScene joins as the driver of a scene.
func (p *person) joinScene(code int) {
	p.Helper()
	p.see("where to enter the code", `document.querySelector('input[name=code]') !== null`)
	p.eval(fmt.Sprintf(`document.querySelector('input[name=code]').value = '%d'; document.querySelector('form').requestSubmit()`, code))
}

// press clicks a button that takes a step, once it does and what else is asked for holds. It looks and
// clicks in one go: the screen may settle anew at any time, and the app takes no tap while it does.
func (p *person) press(selector string, and ...string) {
	p.Helper()
	p.see("that "+selector+" takes a tap "+strings.Join(and, " "), fmt.Sprintf(`(() => {
		const b = document.querySelector(%q);
		if (b === null || !(%s)) return false;
		b.click();
		return true;
	})()`, selector+ready, strings.Join(append(and, "true"), " && ")))
}

// pressWords is press of a button with these words on it.
func (p *person) pressWords(selector, words string) {
	p.Helper()
	p.press(selector, fmt.Sprintf("b.textContent === %q", words))
}

// arrive taps Arrived, as soon as it can be tapped.
func (p *person) arrive(row string) {
	p.Helper()
	p.pressWords(row+" .primary", "Arrived")
}

// newTask makes a task for a house of its own, gives it to dora, and returns its id.
func (s *service) newTask(typ int, order string, proof ...string) tracking.TaskID {
	s.Helper()
	s.made++
	drop := map[string]any{"address": fmt.Sprintf("%d River Street", 11+s.made)}
	body := map[string]any{"type": typ, "order_id": order, "drop": drop}
	if proof != nil {
		body["proof"] = proof
	}
	if typ == 3 {
		body["pickup"] = map[string]any{"address": "Bakery, Mill Lane 3"}
	}
	id := s.api("POST", "/v1/task/create", body)["task"].(map[string]any)["task_id"].(string)
	s.api("POST", "/v1/task/assign", map[string]any{"task_id": id, "driver_id": "dora"})
	return tracking.TaskID(id)
}

func (s *service) status(id tracking.TaskID) tracking.Task {
	s.Helper()
	t, err := s.svc.Task(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return t
}

// driving is dora, who has joined and is on duty.
func (s *service) driving() *person {
	s.Helper()
	link, _ := s.invite("dora", "Dora")
	dora := newPerson(s.T, chromium(s.T), "the driver", s.origins[1])
	dora.stand(13.37, 52.51)
	dora.open(link)
	dora.click(".join .primary")
	dora.see("the app", `document.querySelector('.head') !== null`)
	return dora
}

// However fast or often one taps, a tap takes one step: what follows is never under the same
// finger.
func TestTapsOfOneFinger(t *testing.T) {
	for _, view := range []string{"list", "task"} {
		t.Run(view, func(t *testing.T) {
			s := newService(t, "")
			dora := s.driving()
			for _, typ := range []int{2, 3} {
				id := s.newTask(typ, "")
				s.newTask(2, "") // one more, which must not come under the finger either
				row := ".task .actions"
				want := "2" // stops
				if typ == 3 {
					want = "3"
				}
				if view == "task" {
					want = "0"
					dora.eval(`location.hash = '#task/` + string(id) + `'`)
					row = ".detail .bar"
				}
				dora.see("the stops of both tasks", `document.querySelectorAll('.task').length === `+want)
				dora.see("the step", `document.querySelector('`+row+` .primary`+ready+`') !== null`)
				x, y := dora.spot(row + " .primary")
				// 60 ms apart, and slower, long after a double tap; for as long as the place is
				// kept clear, less a second.
				for began := time.Now(); time.Since(began) < 4*time.Second; {
					dora.tap(x, y)
					time.Sleep(60 * time.Millisecond) // a finger's, not ours to wait for anything
					dora.tap(x, y)
					dora.see("a button that takes a step", `document.querySelector('`+row+` button`+ready+`') !== null`)
				}
				dora.see("that nothing waits to be sent", `document.querySelector('.chip.pending') === null`)
				if now := s.status(id); now.Status != tracking.StatusInProgress || !now.PickedUpAt.IsZero() {
					t.Errorf("type %d: the task is %s, picked up at %v, after taps on Start", typ, now.Status,
						now.PickedUpAt)
				}
				list, _, err := s.svc.Tasks(t.Context(), tracking.TaskFilter{
					Status: []tracking.TaskStatus{tracking.StatusInProgress},
				})
				if err != nil || len(list) != 1 {
					t.Errorf("%d tasks are under way: %v", len(list), err)
				}
				dora.eval(`location.hash = ''`)
				if _, err := s.svc.CompleteTask(t.Context(), id, tracking.Completion{}); err != nil {
					t.Fatal(err)
				}
				list, _, _ = s.svc.Tasks(t.Context(), tracking.TaskFilter{
					Status: []tracking.TaskStatus{tracking.StatusAssigned},
				})
				for _, other := range list {
					if _, err := s.svc.CancelTask(t.Context(), other.ID, tracking.Reason{}); err != nil {
						t.Fatal(err)
					}
				}
				dora.see("an empty list", `document.querySelector('.empty') !== null`)
			}
		})
	}
}

// The end of a task can be taken back before it is sent; what is not is sent, at once when the
// phone is put away.
func TestUndoBeforeSending(t *testing.T) {
	s := newService(t, "")
	dora := s.driving()
	id := s.newTask(2, "#1001")
	dora.press(".task .primary")
	dora.arrive(".task")
	end := func() {
		dora.press(".task .primary.good")
		dora.see("an Undo, once the taps are over",
			`document.querySelector('.undo`+ready+`') !== null && document.querySelector('.chip.succeeded') !== null`)
	}
	end()
	dora.press(".undo")
	dora.see("the task under way again",
		`document.querySelector('.chip.succeeded') === null && document.querySelector('.chip.in_progress') !== null`)
	if now := s.status(id); now.Status != tracking.StatusInProgress {
		t.Errorf("the task is %s, though its end was taken back", now.Status)
	}
	end()
	dora.see("that it is done and gone from the list",
		`document.querySelector('.empty') !== null && document.querySelector('.chip.pending') === null`)
	if now := s.status(id); now.Outcome != tracking.OutcomeSucceeded {
		t.Errorf("the task is %s %s", now.Status, now.Outcome)
	}

	id = s.newTask(2, "#1002")
	dora.press(".task .primary")
	dora.arrive(".task")
	end()
	dora.eval(`Object.defineProperty(document, 'hidden', { value: true, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))`)
	dora.see("that it can be taken back no more",
		`document.querySelector('.undo') === null && document.querySelector('.chip.pending') === null`)
	if now := s.status(id); now.Outcome != tracking.OutcomeSucceeded {
		t.Errorf("the task is %s %s after the phone was put away", now.Status, now.Outcome)
	}
}

// A step that was made offline and refused later stays in sight, by the order's number, until the
// driver has seen it; also when the app is opened anew.
func TestRefusedStepIsKept(t *testing.T) {
	s := newService(t, "")
	dora := s.driving()
	dora.expected = append(dora.expected, "status of 409")
	id := s.newTask(2, "#1001")
	dora.see("the task", `document.querySelector('.task .primary`+ready+`') !== null`)
	s.gate.set(true)
	dora.press(".task .primary")
	dora.see("that her word waits", `document.querySelector('.chip.pending') !== null`)
	if _, err := s.svc.CancelTask(t.Context(), id, tracking.Reason{}); err != nil {
		t.Fatal(err)
	}
	s.gate.set(false)
	dora.eval(`window.dispatchEvent(new Event('online'))`)
	const banner = `document.querySelector('.banner.refused')?.textContent`
	said := banner + `?.includes('#1001') && ` + banner + `.includes('Started')`
	dora.see("which step of which order was refused", said)
	dora.open(s.driver + "/driver/")
	dora.see("the same after opening the app anew", said)
	dora.eval(`document.querySelector('.banner.refused .close').click()`)
	dora.see("no banner", `document.querySelector('.banner.refused') === null`)
	dora.open(s.driver + "/driver/")
	dora.see("the app without it",
		`document.querySelector('.head') !== null && document.querySelector('.banner.refused') === null`)
}

// The link that a phone has joined by opens the app when its driver comes by it again.
func TestOwnLinkAgain(t *testing.T) {
	s := newService(t, "")
	link, _ := s.invite("dora", "Dora Example")
	dora := newPerson(t, chromium(t), "the driver", s.origins[1])
	dora.stand(13.37, 52.51)
	dora.open(link)
	dora.click(".join .primary")
	dora.see("the app", `location.pathname === '/driver/' && document.querySelector('.head') !== null`)
	dora.open(link)
	dora.see("the app at once", `location.pathname === '/driver/' && document.querySelector('.head') !== null`)
}

// Every other invite that is used up is not valid: that of another driver, and one of the driver's
// own that this phone has not joined by.
func TestUsedLinkOfAnother(t *testing.T) {
	s := newService(t, "")
	chrome := chromium(t)
	link, _ := s.invite("erik", "Erik")
	erik := newPerson(t, chrome, "another driver", s.origins[1])
	erik.open(link)
	erik.click(".join .primary")
	erik.see("the app", `document.querySelector('.head') !== null`)

	dora := s.driving()
	dora.expected = append(dora.expected, "status of 404")
	dora.open(link)
	dora.see("who is signed in, before she joins anew",
		`document.querySelector('.join .note')?.textContent.includes('as Dora')`)
	dora.click(".join form .primary")
	dora.see("that the invite is not valid",
		`document.querySelector('#join-problem')?.textContent === 'This invite is not valid any more. Ask your dispatcher for a new one.'`)
	dora.click(".join .primary")
	dora.see("the app, as before", `location.pathname === '/driver/' && document.querySelector('.head') !== null`)
}

// With the position refused, the app says nowhere that it is sent.
func TestPositionRefused(t *testing.T) {
	s := newService(t, "")
	link, _ := s.invite("dora", "Dora")
	dora := newPerson(t, chromium(t), "the driver", s.origins[1])
	if _, err := chromedp.CallBrowser(dora.ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "geolocation"}, Setting: browser.PermissionSettingDenied,
		Origin:           s.origins[1],
		BrowserContextID: chromedp.FromContext(dora.ctx).BrowserContextID,
	}); err != nil {
		t.Fatal(err)
	}
	dora.open(link)
	dora.click(".join .primary")
	dora.see("the app", `document.querySelector('.head') !== null`)
	dora.click(".switch")
	dora.see("that the position is not sent",
		`document.querySelector('.fact.bad') !== null && document.querySelector('.duty-text').textContent.includes('not sent')`)
}

// The sound that the app promises is there, or the app says what it takes: after each loading a
// touch.
func TestSoundAfterReload(t *testing.T) {
	server := serve(t, web.Site{}, nil)
	p := newPerson(t, chromium(t), "the driver", server.URL)
	p.stand(13.37, 52.51)
	p.open(server.URL + "/driver/")
	p.joinScene(100001)
	p.see("the app", `document.querySelector('.head') !== null`)
	for range 2 {
		p.open(server.URL + "/driver/")
		p.see("that it is silent until touched",
			`document.querySelector('.fact.sound') !== null && document.querySelector('.empty').textContent.includes('Touch')`)
		p.tap(200, 600)
		p.see("that tasks come with a sound",
			`document.querySelector('.fact.sound') === null && document.querySelector('.empty').textContent.includes('with a sound')`)
	}
}

// The phone's clock and what could not be read are said where the driver looks.
func TestPhoneFaults(t *testing.T) {
	server := serve(t, web.Site{}, nil)
	p := newPerson(t, chromium(t), "the driver", server.URL)
	p.open(server.URL + "/driver/")
	p.joinScene(100007)
	p.see("both",
		`document.querySelector('.fact.clock')?.textContent.includes('95 seconds fast') && document.querySelector('.fact.unread')?.textContent.includes('12')`)
}

// Fifteen stops and the shop are a list, not a tour of the screen, and large letters leave room for
// them.
func TestRoomForTheWork(t *testing.T) {
	server := serve(t, web.Site{}, nil)
	p := newPerson(t, chromium(t), "the driver", server.URL)
	p.stand(13.37, 52.51)
	p.open(server.URL + "/driver/")
	p.joinScene(100006)
	p.see("all stops", `document.querySelectorAll('.task').length === 16`)
	p.see("all within two screens", `document.querySelector('.main').scrollHeight <= 2 * 844`)
	p.see("a step only at the next one", `document.querySelectorAll('.task .primary').length === 1`)
	p.eval(`document.documentElement.style.fontSize = '200%'; scrollTo(0, 600)`)
	p.see("that what stays in sight leaves most of the screen", fmt.Sprintf(`(() => {
		let free = 0;
		for (let y = 0; y < innerHeight; y += 4) {
			const e = document.elementFromPoint(innerWidth / 2, y);
			if (e && !e.closest('.head') && !e.closest('.tabs')) free += 4;
		}
		return free >= %v * innerHeight;
	})()`, 0.6))
	p.phone(700)
	p.eval(`location.hash = '#task/s-01'`)
	p.see("what can be done with a task, in no more than a quarter of the screen", `(() => {
		const bar = document.querySelector('.bar');
		return bar !== null && bar.getBoundingClientRect().height <= 180 && getComputedStyle(bar).position === 'fixed';
	})()`)
	p.narrow(390, "400%")
	p.see("it at the end of the page, where it would take more", `(() => {
		const bar = document.querySelector('.bar');
		return bar.getBoundingClientRect().height > 180 && getComputedStyle(bar).position === 'static';
	})()`)
}

// narrow makes the window as wide as a phone, and the letters as large as the reader's.
func (p *person) narrow(width int64, font string) {
	p.Helper()
	if _, err := chromedp.Call(p.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: 700, DeviceScaleFactor: 1,
	}); err != nil {
		p.Fatal(err)
	}
	p.eval(`document.documentElement.style.fontSize = '` + font + `'`)
}

// appViews are what to do in the driver app to see each view, and by what it is known.
var appViews = []struct{ name, do, ready string }{
	{"tasks", `location.hash = ''`, ".task"},
	{"order", `location.hash = '#order'`, ".order-row"},
	{"task", `location.hash = '#task/t-1'`, ".bar"},
	{"question", `document.querySelector('.halves .button').click()`, "dialog[open]"},
	{"map", `document.querySelector('dialog').close(); location.hash = '#map'`, ".leaflet-container"},
	{"phone", `location.hash = '#phone'`, ".phone-app"},
}

// With letters of twice the size nothing is wider than the smallest phone, in either language.
func TestLargeLetters(t *testing.T) {
	server := serve(t, web.Site{}, nil)
	chrome := chromium(t)
	const wide = `[...document.querySelectorAll('body *')].filter((e) => e.getClientRects().length > 0 && !e.closest('.sr, .leaflet-container, svg') && (e.getBoundingClientRect().right > innerWidth + 1 || e.getBoundingClientRect().left < -1))
		.map((e) => e.tagName + '.' + e.className + ': ' + e.textContent.slice(0, 40)).join('; ')`
	for _, lang := range []string{"en", "de"} {
		t.Run(lang, func(t *testing.T) {
			p := newPerson(t, chrome, "the driver", server.URL)
			p.expected = append(p.expected, "status of 404")
			p.stand(13.37, 52.51)
			if _, err := chromedp.Call(p.ctx, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{
				UserAgent: "Mozilla/5.0 Chrome", AcceptLanguage: lang,
			}); err != nil {
				t.Fatal(err)
			}
			fits := func(view string) {
				t.Helper()
				for _, width := range []int64{320, 390} {
					p.narrow(width, "200%")
					found, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](wide))
					if err != nil {
						t.Fatal(err)
					}
					if found != "" {
						t.Errorf("%s, %d px: %s", view, width, found)
					}
				}
			}
			p.open(server.URL + "/join/nothing")
			p.see("the invite", `document.querySelector('.join form') !== null`)
			fits("invite")
			p.open(server.URL + "/driver/")
			p.see("where to enter the code", `document.querySelector('input[name=code]') !== null`)
			fits("code")
			p.joinScene(100002)
			for _, view := range appViews {
				p.see("the app", `document.querySelector('.head') !== null`)
				p.eval(view.do)
				p.see(view.name, `document.querySelector('`+view.ready+`') !== null`)
				fits(view.name)
			}
		})
	}
}

// What can be tapped is as large as a finger: 44 px. Links within a text are not meant, nor those
// on the map's edge.
func TestSizeOfWhatIsTapped(t *testing.T) {
	server := serve(t, web.Site{HelpURL: "https://example.com/help"}, nil)
	p := newPerson(t, chromium(t), "the driver", server.URL)
	p.stand(13.37, 52.51)
	const small = `[...document.querySelectorAll('a[href], button, summary, label, input[name=code]')].filter((e) => {
		const r = e.getBoundingClientRect();
		return r.width > 0 && !e.closest('.sr, .desc, .leaflet-control-attribution') && (r.width < 43.9 || r.height < 43.9);
	}).map((e) => e.tagName + '.' + e.className + ' ' + e.getBoundingClientRect().width + ' × ' + e.getBoundingClientRect().height).join('; ')`
	large := func(view string) {
		t.Helper()
		p.narrow(320, "100%")
		found, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](small))
		if err != nil {
			t.Fatal(err)
		}
		if found != "" {
			t.Errorf("%s: %s", view, found)
		}
	}
	p.open(server.URL + "/track/on_the_way")
	p.see("the map", `document.querySelector('.vehicle-icon') !== null`)
	large("tracking page")
	p.open(server.URL + "/join/nothing")
	p.see("the invite", `document.querySelector('.join form') !== null`)
	large("invite")
	p.open(server.URL + "/driver/")
	p.joinScene(100008)
	p.see("the app", `document.querySelector('.head') !== null`)
	for _, view := range appViews {
		p.eval(view.do)
		p.see(view.name, `document.querySelector('`+view.ready+`') !== null`)
		large(view.name)
	}
	p.eval(`location.hash = ''`)
	p.see("the tasks", `document.querySelector('.task .primary`+ready+`') !== null`)
	p.expected = append(p.expected, "status of 409")
	p.press(".task .primary")
	p.see("an Undo", `document.querySelector('.undo') !== null`)
	p.eval(`dispatchEvent(new Event('pagehide'))`)
	p.see("that the step was refused, at its place too",
		`document.querySelector('.banner.refused') !== null && document.querySelector('.step-done.refused')?.textContent === 'Not taken'`)
	large("a refused step")
}
