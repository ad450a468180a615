package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking"
)

// signIn has the board, by a key. A viewer may look only.
func (p *person) signIn(s *service, role tracking.Role) {
	p.Helper()
	p.expected = append(p.expected, "status of 401", "status of 403") // the browser tells of each answer
	p.open(s.url + "/board/")
	p.see("where to sign in", `document.querySelector('input[name=key]') !== null`)
	p.eval(fmt.Sprintf(`fetch('/v1/session', {
		method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ key: %q, role: %q }),
	}).then((r) => { if (!r.ok) throw new Error(r.status); })`, apiKey, role))
	p.open(s.url + "/board/")
	p.see("the board, live", `document.querySelector('.desk[data-live=live]') !== null`)
}

// atPanels is somebody at the board, on a SQLite file.
func (s *service) atPanels() *person {
	s.Helper()
	p := newPerson(s.T, chromium(s.T), "the dispatcher", s.origins[0])
	p.desk(1280, 900)
	p.signIn(s, tracking.RoleDispatch)
	return p
}

// insert writes a text where the cursor is, at once, as a paste does.
func (p *person) insert(text string) {
	p.Helper()
	if _, err := chromedp.Call(p.ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		p.Fatal(err)
	}
}

// mouse clicks at a place on the screen.
func (p *person) mouse(x, y float64) {
	p.Helper()
	for _, typ := range []input.DispatchMouseEventType{
		input.DispatchMouseEventTypeMousePressed, input.DispatchMouseEventTypeMouseReleased,
	} {
		if _, err := chromedp.Call(p.ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{
			Type: typ, X: x, Y: y, Button: input.MouseButtonLeft, ClickCount: 1,
		}); err != nil {
			p.Fatal(err)
		}
	}
}

// hit presses the button or link of a panel that says so.
func (p *person) hit(words string) {
	p.Helper()
	find := fmt.Sprintf(`[...document.querySelectorAll('.panel button, .panel a')].find((b) => b.textContent.trim() === %q && !b.disabled)`, words)
	p.see("that "+words+" can be pressed", find+` !== undefined`)
	p.eval(find + `.click()`)
}

// panel waits for a panel to be open.
func (p *person) panel(name string) {
	p.Helper()
	p.see("the panel "+name, `document.querySelector('.panel-`+name+`') !== null`)
}

func (p *person) reads(words string) {
	p.Helper()
	p.see(words, fmt.Sprintf(`(document.querySelector('.panel')?.innerText ?? '').includes(%q)`, words))
}

// said waits for a line that tells what was done, and takes it away.
func (p *person) said(words string) {
	p.Helper()
	p.see("the line: "+words, fmt.Sprintf(`[...document.querySelectorAll('.toast')].some((x) => x.textContent.includes(%q))`, words))
	p.eval(`document.querySelectorAll('.toast button').forEach((b) => b.click())`)
}

// choose takes a value in the nth list of a form that is open.
func (p *person) choose(n int, value string) {
	p.Helper()
	p.see("the list to choose from", fmt.Sprintf(`document.querySelectorAll('.inset select').length > %d`, n))
	p.eval(fmt.Sprintf(`(() => {
		const s = document.querySelectorAll('.inset select')[%d];
		s.value = %q;
		s.dispatchEvent(new Event('change', { bubbles: true }));
	})()`, n, value))
}

// day opens the list of the day on which agreed begins.
func (p *person) day() {
	p.Helper()
	p.eval(`location.hash = '#day'`)
	p.see("the day to choose", `document.querySelector('#day') !== null`)
	p.eval(`(() => {
		const d = document.querySelector('#day');
		d.value = '2026-03-01';
		d.dispatchEvent(new Event('change', { bubbles: true }));
	})()`)
}

// agreed is a window of a day that is the same in all of Europe, Africa and America.
func agreed() map[string]any { return map[string]any{"from": "2026-03-01T12:00:00Z"} }

func (s *service) tasks(query string) []map[string]any {
	s.Helper()
	var tasks []map[string]any
	for _, t := range s.api("GET", "/v1/task/list?limit=1000"+query, nil)["task_list"].([]any) {
		tasks = append(tasks, t.(map[string]any))
	}
	return tasks
}

// A task from its panel: changed, given, its link shared and revoked, completed for the driver,
// reopened, cancelled; what happened is listed with who did it.
func TestBoardTask(t *testing.T) {
	s := onFile(t)
	s.invite("dora", "Dora Example")
	id := s.api("POST", "/v1/task/create", map[string]any{
		"type": 2, "order_id": "#1001", "drop": map[string]any{
			"address": "12 River Street", "customer": map[string]any{"name": "Anna", "mobile": "+49 151 1"},
		},
	})["task"].(map[string]any)["task_id"].(string)
	task := func() tracking.Task { return s.status(tracking.TaskID(id)) }
	p := s.atPanels()
	p.expected = append(p.expected, "status of 409")
	p.eval(`location.hash = '#task/` + id + `'`)
	p.panel("task")
	p.reads("12 River Street")

	// Changed meanwhile by somebody else: refused, and who it was is told.
	p.hit("Edit")
	p.panel("edit")
	p.see("the form", `document.querySelector('[name=notes]') !== null`)
	s.api("POST", "/v1/task/update", map[string]any{"task_id": id, "notes": "Of another"})
	p.reads("Somebody has changed this task meanwhile.")
	p.eval(`document.querySelector('[name=notes]').focus()`)
	p.keys("Ring twice")
	p.hit("Save")
	p.said("Meanwhile: changed, by")
	if n := task().Notes; n != "Of another" {
		t.Errorf("the notes are %q", n)
	}
	p.hit("Back")
	p.panel("task")
	// Who writes at once, before the form has given its first field the focus, goes on where he is.
	p.eval(`new MutationObserver((_, o) => {
		const notes = document.querySelector('[name=notes]');
		if (notes) o.disconnect(), notes.focus();
	}).observe(document.body, { childList: true, subtree: true })`)
	p.hit("Edit")
	p.panel("edit")
	p.eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 100))))`)
	p.see("that the notes still have the focus", `document.activeElement?.name === 'notes'`)
	p.see("the other's notes", `document.querySelector('[name=notes]')?.value === 'Of another'`)
	p.eval(`document.querySelector('[name=notes]').select()`)
	p.keys("Ring twice")
	p.eval(`document.querySelector('[name=when]').focus()`)
	p.keys("2026-03-01 14:00-16:00")
	p.hit("Save")
	p.panel("task")
	p.reads("Ring twice")
	got := task()
	if got.Notes != "Ring twice" || got.Window.To.Sub(got.Window.From) != 2*time.Hour ||
		got.Drop.Customer.Mobile != "+49 151 1" {
		t.Errorf("after the change: %+v", got)
	}

	// Given to a driver by a key.
	p.hit("Assign…")
	p.panel("assign")
	p.see("Dora", `document.querySelector('.candidate') !== null`)
	p.keys("1")
	p.see("that it is hers", `document.querySelector('.panel') === null`)
	if got := task(); got.DriverID != "dora" {
		t.Errorf("the task is %q's", got.DriverID)
	}
	p.eval(`location.hash = '#task/` + id + `'`)
	p.panel("task")

	// The link.
	p.hit("Show the link")
	p.see("the link", `/\/track\/[^/]+$/.test(document.querySelector('.share input')?.value ?? '')`)
	p.hit("QR code")
	p.see("a code to scan", `document.querySelector('.share svg.qr path') !== null`)
	p.hit("Revoke the link")
	p.see("the focus on what does nothing", `document.activeElement?.textContent === 'Back'`)
	p.hit("Revoke the link")
	p.said("The link was revoked")

	// Ended for the driver, and reopened.
	p.hit("Complete for the driver…")
	p.choose(0, "failed")
	p.choose(1, "not_home")
	p.hit("Complete")
	p.see("that it failed", `document.querySelector('.chip.failed') !== null`)
	if got := task(); got.Outcome != tracking.OutcomeFailed || got.ReasonCode != tracking.ReasonNotHome {
		t.Errorf("after the end: %q, %q", got.Outcome, got.ReasonCode)
	}
	p.hit("Reopen")
	p.see("that it is Dora's again", `document.querySelector('.chip.assigned') !== null`)

	// Cancelling is asked for twice, far from what closes the panel.
	p.see("that it is far from Close", `(() => {
		const cancel = [...document.querySelectorAll('.panel button')].find((b) => b.textContent === 'Cancel delivery');
		cancel.scrollIntoView();
		const a = cancel.getBoundingClientRect(), b = document.querySelector('.panel .close').getBoundingClientRect();
		return Math.hypot(a.x - b.x, a.y - b.y) > 200;
	})()`)
	p.hit("Cancel delivery")
	p.see("the focus on what does nothing", `document.activeElement?.textContent === 'Keep it'`)
	if got := task(); got.Status == tracking.StatusCompleted {
		t.Error("it was cancelled without being asked")
	}
	p.hit("Cancel delivery")
	p.see("that it is cancelled", `document.querySelector('.chip.cancelled') !== null`)
	p.see("what has happened, and by whom", `(() => {
		const said = [...document.querySelectorAll('.history li')].map((li) => li.querySelector('.what').textContent.trim());
		const who = [...document.querySelectorAll('.history .who')].map((x) => x.textContent);
		return ['created', 'changed (notes)', 'assigned to Dora Example', 'ended · failed', 'reopened to Dora Example', 'ended · cancelled'].every((x) => said.some((s) => s.startsWith(x))) && who.every((w) => w !== '') && who.includes('you');
	})()`)

	// Tried again: another task, which knows this one.
	p.hit("Try again")
	p.said("#1001 is tried again")
	p.reads("Tried again")
	if got := task(); got.RetriedBy == "" {
		t.Error("it is not tried again")
	}
	p.onlyFrom(s.origins[0])
}

// A driver is invited from the board by name, joins with the code that is shown, is taken off duty
// and signed out.
func TestBoardDrivers(t *testing.T) {
	s := onFile(t)
	p := s.atPanels()
	p.eval(`[...document.querySelectorAll('.tool')].find((b) => b.textContent.startsWith('Drivers')).click()`)
	p.panel("people")
	p.hit("Invite a driver")
	p.see("the focus in the name", `document.activeElement?.name === 'driver-name'`)
	p.keys("\r")
	p.reads("Enter a name.")
	p.keys("Bilal\t0151 1234567\r")
	p.see("the code, to be read out", `/^\d{3}\s\d{3}$/.test(document.querySelector('.code')?.textContent ?? '')`)
	p.see("the link", `/\/join\/[^/]+$/.test(document.querySelector('.share input').value)`)
	code, err := chromedp.Run(p.ctx,
		chromedp.Evaluate[string](`document.querySelector('.code').textContent.replace(/\D/g, '')`))
	if err != nil {
		t.Fatal(err)
	}
	joined := s.api("POST", "/v1/driver/join", map[string]any{"invite_code": code})
	token := joined["token"].(string)
	if name := joined["driver"].(map[string]any)["name"]; name != "Bilal" {
		t.Errorf("%v has joined", name)
	}
	p.hit("Done")
	p.eval(fmt.Sprintf(`location.hash = '#driver/' + encodeURIComponent(%q)`, joined["driver"].(map[string]any)["driver_id"]))
	p.panel("driver")
	p.hit("Put on duty")
	p.said("Bilal is on duty")
	p.see("him on the board", `document.querySelector('.drivers .driver')?.textContent.includes('Bilal')`)
	p.hit("Sign out the phone")
	p.eval(`document.querySelector('.inset .do.bad').click()`)
	p.said("The phone of Bilal was signed out")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/v1/driver/me", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the phone is answered with %s", res.Status)
	}
	p.hit("Take off duty")
	p.said("Bilal is off duty")
	p.onlyFrom(s.origins[0])
}

// What is over long ago is found, with its contacts; a day's list goes to a spreadsheet without
// formulas; a trip is looked at again.
func TestBoardLookingBack(t *testing.T) {
	s := onFile(t)
	link, _ := s.invite("dora", "Dora Example")
	dora := s.joined(link)
	create := func(order, address, name string) tracking.TaskID {
		t.Helper()
		return tracking.TaskID(s.api("POST", "/v1/task/create", map[string]any{
			"type": 2, "order_id": order, "window": agreed(), "drop": map[string]any{
				"address": address, "customer": map[string]any{"name": name, "mobile": "+49 151 7654321"},
			},
		})["task"].(map[string]any)["task_id"].(string))
	}
	id := create("#2001", "Große Straße 5", "=HYPERLINK(\"http://foreign.invalid\")")
	create("#2002", "Weg 9", "Bo")
	s.api("POST", "/v1/task/assign", map[string]any{"task_id": id, "driver_id": "dora"})
	s.as(dora, "POST", "/v1/driver/availability", map[string]any{"availability": true})
	s.as(dora, "POST", "/v1/driver/tasks/"+string(id)+"/start", nil)
	var fixes []map[string]any
	for i := range 30 {
		fixes = append(fixes, map[string]any{
			"lnglat": []float64{13.4 + float64(i)*0.0005, 52.5},
			"time":   time.Now().Add(time.Duration(i) * 100 * time.Millisecond).UTC().Format(time.RFC3339Nano),
		})
	}
	s.as(dora, "POST", "/v1/driver/fixes", map[string]any{"fixes": fixes})
	s.as(dora, "POST", "/v1/driver/tasks/"+string(id)+"/complete", nil)

	p := s.atPanels()
	p.keys("/")
	p.see("where to search", `document.activeElement?.name === 'q'`)
	p.keys("grosse str")
	p.see("what is found", `document.querySelectorAll('.found a').length === 1 && document.querySelector('.found').textContent.includes('#2001')`)
	p.eval(`document.activeElement.select()`)
	p.keys("dora")
	p.see("the driver", `document.querySelector('.found a')?.getAttribute('href') === '#driver/dora'`)
	p.eval(`document.activeElement.select()`)
	p.keys("654321")
	p.see("both of that number", `document.querySelectorAll('.found a').length === 2 && document.querySelector('.found').textContent.includes('#2002')`)
	p.eval(`document.activeElement.select()`)
	p.keys("nothing of that")
	p.reads("Nothing found.")
	p.eval(`document.activeElement.select()`)
	p.keys("2001")
	p.see("the task", `document.querySelectorAll('.found a').length === 1`)
	p.keys("\r")
	p.panel("task")
	p.reads("+49 151 7654321")

	p.see("its trip", `document.querySelector('.trips a') !== null`)
	p.eval(`document.querySelector('.trips a').click()`)
	p.panel("replay")
	p.see("the map and the slider", `document.querySelector('.player .vehicle-icon') !== null && document.querySelector('.player input[type=range]') !== null`)
	p.eval(`(() => { const r = document.querySelector('.player input'); r.value = r.max; r.dispatchEvent(new Event('input', { bubbles: true })); })()`)
	p.see("the end", `Number(document.querySelector('.player input').max) - Date.parse(document.querySelector('.player time').dateTime) < 1000`)
	p.eval(`document.querySelector('.player-map .map').id = 'by-day'`)
	p.prefers("dark")
	p.see("another map by night, and the vehicle on it", `document.querySelector('#by-day') === null && document.querySelector('.player .vehicle-icon') !== null`)
	p.prefers("light")
	p.hit("Play")
	p.hit("Pause")

	p.eval(`window.saved = []; URL.createObjectURL = (b) => { b.text().then((x) => saved.push(x)); return '#'; }; HTMLAnchorElement.prototype.click = function () { saved.push(this.download); }`)
	p.day()
	p.see("both tasks", `document.querySelectorAll('.found a').length === 2`)
	p.eval(`[...document.querySelectorAll('.panel button')].find((b) => b.textContent === 'Download as CSV').dispatchEvent(new MouseEvent('click', { bubbles: true }))`)
	p.see("a file without a formula", `saved.length === 2 && /^\d{4}-\d\d-\d\d\.csv$/.test(saved[0]) && saved[1].startsWith('Order number,Address,') && saved[1].includes("\"'=HYPERLINK(") && !saved[1].includes('"=HYPERLINK(') && saved[1].includes('Dora Example')`)
	p.onlyFrom(s.origins[0])
}

// joined takes an invite, as a phone does, and returns its token.
func (s *service) joined(link string) (token string) {
	s.Helper()
	invite := link[strings.LastIndex(link, "/")+1:]
	return s.api("POST", "/v1/driver/join", map[string]any{"invite": invite})["token"].(string)
}

// as calls a route of a driver's.
func (s *service) as(token, method, path string, body any) {
	s.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		s.Fatal(err)
	}
	if body == nil {
		b = nil
	}
	req, err := http.NewRequestWithContext(context.Background(), method, s.url+path, bytes.NewReader(b))
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		s.Fatalf("%s %s: %s", method, path, res.Status)
	}
}

// Who may only look has nothing to press that changes something, wherever he looks.
func TestBoardViewer(t *testing.T) {
	s := onFile(t)
	s.invite("dora", "Dora")
	open := s.newTask(2, "#1")
	ended := s.newTask(2, "#2")
	s.api("POST", "/v1/task/complete", map[string]any{"task_id": string(ended), "outcome": "failed"})
	p := newPerson(t, chromium(t), "the viewer", s.origins[0])
	p.desk(1280, 900)
	p.signIn(s, tracking.RoleView)
	allowed := `['×', 'Close', 'Show the link', 'Copy', 'QR code', 'Show more', 'Download as CSV', '+', '−', '?', 'Sign out', 'Search/', 'Drivers', 'Day', '']`
	look := func(where, ready string) {
		t.Helper()
		p.see(where, ready)
		p.see("only what changes nothing at "+where, `(() => {
			const bad = [...document.querySelectorAll('.head button, .panel button, .panel input:not([type=search], [type=date], [readonly]), .panel textarea, .panel select')].filter((e) => !`+allowed+`.includes(e.textContent.trim()));
			if (bad.length) throw new Error(bad.map((e) => e.outerHTML).join(' '));
			return true;
		})()`)
	}
	look("the board", `document.querySelector('.chip.viewer') !== null`)
	for _, id := range []tracking.TaskID{open, ended} {
		p.eval(`location.hash = '#task/` + string(id) + `'`)
		look("a task", `document.querySelector('.panel-task .history li') !== null`)
	}
	p.eval(`location.hash = '#driver/dora'`)
	look("a driver", `document.querySelector('.panel-driver .facts-list') !== null`)
	p.eval(`location.hash = '#people'`)
	look("the drivers", `document.querySelector('.panel-people .people a') !== null`)
	p.eval(`location.hash = '#day'`)
	look("a day", `document.querySelector('.panel-day')?.innerText.includes(' tasks')`)
	p.keys("\x1b")
	p.see("no panel", `document.querySelector('.panel') === null`)
	for _, name := range []string{"new", "paste", "edit/" + string(open), "assign/" + string(open)} {
		p.eval(`location.hash = '#` + name + `'`)
		p.eval(`new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)))`)
		p.see("no panel for what changes something", `document.querySelector('.panel') === null`)
	}
}
