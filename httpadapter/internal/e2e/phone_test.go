package e2e_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// twice is a double tap: the second one hits whatever has come under the finger.
func (p *person) twice(x, y float64) {
	p.Helper()
	p.tap(x, y)
	time.Sleep(60 * time.Millisecond) // a finger's, not ours to wait for anything
	p.tap(x, y)
}

// standing waits until an element has been in its place for a second, as long as a person takes to
// look.
func (p *person) standing(selector string) {
	p.Helper()
	p.eval(`window.stoodAt = null`)
	p.see("that "+selector+" stands", `(() => {
		const e = document.querySelector('`+selector+`');
		if (!e) return false;
		const r = e.getBoundingClientRect(), at = r.x + ' ' + r.y;
		if (window.stoodAt !== at) { window.stoodAt = at; window.stoodSince = performance.now(); }
		return performance.now() - window.stoodSince > 1000;
	})()`)
}

// A double tap is one tap, at whichever button: what follows under the finger is not meant.
func TestDoubleTapOfOtherButtons(t *testing.T) {
	s := newService(t, "")
	dora := s.driving()
	dora.phone(844)

	// Signing out asks first, and the answer stands where the question was.
	dora.eval(`location.hash = '#phone'`)
	const out = `.main section:last-child .actions .button`
	const asks = `document.body.innerText.includes('Signs out on this phone only')`
	for _, aside := range []float64{-60, 0, 60} {
		dora.see("no question", `!`+asks)
		dora.standing(out)
		x, y := dora.spot(out)
		dora.twice(x+aside, y)
		dora.see("the question", asks)
		dora.eval(`document.querySelector('` + out + `').click()`) // Back
	}

	// All that is new is one line, and what is below it is not meant when it goes.
	dora.eval(`location.hash = ''`)
	id := s.newTask(2, "#1")
	dora.see("a banner", `document.querySelectorAll('.banner.news').length === 1`)
	s.api("POST", "/v1/task/update", map[string]any{"task_id": string(id), "notes": "Ring twice"})
	dora.see("one line for two",
		`document.querySelectorAll('.banner.news').length === 1 && document.querySelector('.banner.news').textContent.startsWith('2 news: A task has changed')`)
	dora.standing(".banner.news .close")
	x, y := dora.spot(".banner.news .close")
	dora.twice(x, y) // the task comes under the finger
	dora.see("no banner, and no task that was opened",
		`document.querySelector('.banner.news') === null && location.hash === ''`)

	// The question that a tap opens is neither answered nor closed by the next.
	dora.eval(`location.hash = '#task/` + string(id) + `'`)
	dora.standing(".bar .button")
	x, y = dora.spot(".bar .button")
	dora.twice(x, y)
	dora.see("the question", `document.querySelector('dialog[open]') !== null`)
	if now := s.status(id); now.DriverID != "dora" {
		t.Error("a double tap declined the task")
	}
}

// A button that has come under the finger by itself, as when news move the page down, is not tapped
// by a finger that was on its way.
func TestPageMovesUnderTheFinger(t *testing.T) {
	s := newService(t, "")
	dora := s.driving()
	dora.phone(844)
	s.api("POST", "/v1/assign_trip", map[string]any{"user_id": "dora", "tracking_id": "tour"})
	dora.see("news above the request", `document.querySelector('.banner.news') !== null`)
	const start = ".card .primary"
	dora.standing(start)
	x, y := dora.spot(start)
	dora.eval(`document.querySelector('.banner.news .close').click()`)
	dora.see("no news", `document.querySelector('.banner.news') === null`)
	dora.standing(start)
	// News: the button comes to where the finger is just then.
	dora.eval(`window.taps = []; addEventListener('pointerdown', (e) => taps.push(e.target.closest('` + start + `') !== null), { capture: true })`)
	dora.eval(`void (window.news = new Promise((done) => new MutationObserver(() => document.querySelector('.banner.news') && done()).observe(document.querySelector('.banners'), { childList: true })))`)
	s.api("POST", "/v1/assign_trip", map[string]any{"user_id": "dora", "tracking_id": "tour"})
	dora.eval(`news`)
	dora.tap(x, y)
	dora.see("that the finger hit the button", `taps.length === 1 && taps[0]`)
	dora.standing(start)
	dora.see("that the trip is not started", `document.querySelector('`+start+`').textContent === 'Start trip'`)
	dora.tap(x, y)
	dora.see("that a tap that is meant starts it", `document.querySelector('.card.in_progress') !== null`)
}

// A step of a task that is somebody else's by now is told by its order's number as well, though the
// phone knows nothing of the task any more.
func TestRefusedStepOfATaskTakenAway(t *testing.T) {
	s := newService(t, "")
	dora := s.driving()
	dora.expected = append(dora.expected, "status of 404")
	id := s.newTask(2, "#1001")
	dora.see("the task", `document.querySelector('.task .primary`+ready+`') !== null`)
	s.gate.set(true)
	dora.press(".task .primary")
	dora.see("that her word waits", `document.querySelector('.chip.pending') !== null`)
	if _, err := s.svc.UnassignTask(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	// What the phone had heard of the task is gone before the step is sent.
	dora.eval(`new Promise((done, fail) => {
		const r = indexedDB.open('tracking-driver');
		r.onsuccess = () => {
			const tx = r.result.transaction('kept', 'readwrite');
			tx.objectStore('kept').delete('world');
			tx.oncomplete = () => { r.result.close(); done(); };
			tx.onerror = fail;
		};
	})`)
	dora.open(s.driver + "/driver/")
	dora.see("the app", `document.querySelector('.head') !== null`)
	s.gate.set(false)
	dora.eval(`window.dispatchEvent(new Event('online'))`)
	dora.see("which step of which order was refused",
		`document.querySelector('.banner.refused')?.textContent.includes('#1001')`)

	// Who dispatches knows of it, too: with the driver, and what to do about it.
	dana := s.dispatcher(chromium(t), "dana")
	const needed = `document.querySelector('.card.need.stuck')`
	dana.see("what did not get through, and from whose phone", needed+`?.innerText.includes('“Started” did not get through') &&
		`+needed+`.innerText.includes('#1001') && `+needed+`.innerText.includes('from the phone of Dora')`)
	dana.see("that the title counts it", `document.title.startsWith('(1) ')`)
	dana.eval(`[...` + needed + `.querySelectorAll('button')].find((b) => b.textContent === 'Settled').click()`)
	dana.see("that it is settled", needed+` === null`)
	if got := s.status(id).Stuck; got != nil {
		t.Errorf("the server has %v", got)
	}

	// What its driver has seen needs nobody else.
	other := s.newTask(2, "#1002")
	dora.see("the other task", `document.querySelector('.task .primary`+ready+`') !== null`)
	s.gate.set(true)
	dora.press(".task .primary")
	if _, err := s.svc.UnassignTask(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	s.gate.set(false)
	dora.eval(`window.dispatchEvent(new Event('online'))`)
	dana.see("that another did not get through", needed+`?.innerText.includes('#1002')`)
	dora.eval(`document.querySelectorAll('.banner.refused .close').forEach((b) => b.click())`)
	dana.see("that it is settled", needed+` === null`)
}

// A page that closes within the time for an Undo sends what was held.
func TestClosedWhileHeld(t *testing.T) {
	s := newService(t, "")
	dora := s.driving()
	// Browsers give a page that closes half a second, which a machine that is busy may use up; then
	// the end is sent when the app is next opened.
	for try := 1; ; try++ {
		id := s.newTask(2, fmt.Sprint("#100", try))
		dora.press(".task .primary")
		dora.arrive(".task")
		dora.press(".task .primary.good", "document.querySelector('.chip.pending') === null")
		dora.see("an Undo", `document.querySelector('.undo') !== null`)
		dora.open("about:blank") // nothing of the app is left that could send it later
		sent := func() bool { return s.status(id).Outcome == tracking.OutcomeSucceeded }
		for began := time.Now(); !sent() && time.Since(began) < 10*time.Second; {
			dora.eval(`new Promise((done) => setTimeout(done, 50))`)
		}
		closed := sent()
		dora.open(s.driver + "/driver/")
		dora.see("that it is done, and there is nothing to undo",
			`document.querySelector('.empty') !== null && document.querySelector('.undo') === null && document.querySelector('.chip.pending') === null`)
		if !sent() {
			t.Fatal("the end of the task was not sent when the app was opened again")
		}
		if closed {
			return
		}
		if try == 3 {
			t.Fatal("the end of a task was never sent as the app closed")
		}
	}
}

// A phone that is given leave later is watched at once, and the app says so.
func TestPositionAllowedLater(t *testing.T) {
	server := serve(t, web.Site{}, nil)
	p := newPerson(t, chromium(t), "the driver", server.URL)
	leave := func(setting browser.PermissionSetting) {
		t.Helper()
		if _, err := chromedp.CallBrowser(p.ctx, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: "geolocation"}, Setting: setting, Origin: server.URL,
			BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID,
		}); err != nil {
			t.Fatal(err)
		}
	}
	leave(browser.PermissionSettingDenied)
	p.stand(13.37, 52.51)
	p.open(server.URL + "/driver/")
	p.joinScene(100001)
	p.see("that it has no position",
		`document.querySelector('.fact.bad') !== null && document.querySelector('.duty-text').textContent.includes('not sent')`)
	p.eval(`window.began = performance.now()`)
	leave(browser.PermissionSettingGranted)
	p.see("the position",
		`document.querySelector('.fact.good') !== null && document.querySelector('.duty-text').textContent.includes('is sent')`)
	p.see("it at once, and not with the next beat", `performance.now() - began < 55_000`)
}
