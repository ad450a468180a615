package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// onFile is the whole of it over a SQLite file.
func onFile(t *testing.T, setups ...func(*tracking.Options, *httpadapter.Options)) *service {
	t.Helper()
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "board.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return newServiceOn(t, store, "", setups...)
}

// newBoardService is a service on SQLite, with two drivers on duty near the tasks.
func newBoardService(t *testing.T, setups ...func(*tracking.Options, *httpadapter.Options)) *service {
	t.Helper()
	roomy := func(o *tracking.Options, _ *httpadapter.Options) { o.MaxOpenTasks = 10 }
	s := onFile(t, append(setups, roomy)...)
	for i, name := range []string{"Asha", "Bilal"} {
		s.api("POST", "/v1/users/driver", map[string]any{
			"driver_id": strings.ToLower(name), "name": name, "availability": true,
			"lnglat": []float64{13.38 + 0.01*float64(i), 52.52}, "mobile": "+49 170 1234567",
		})
	}
	return s
}

// order makes a delivery by its order_id, with what is to be different.
func (s *service) order(id string, more map[string]any) tracking.TaskID {
	s.Helper()
	s.made++
	body := map[string]any{"type": 2, "order_id": id, "drop": map[string]any{
		"address": fmt.Sprintf("%d River Street", s.made),
		"lnglat":  []float64{13.381 + 0.001*float64(s.made), 52.521},
	}}
	for k, v := range more {
		body[k] = v
	}
	return tracking.TaskID(s.api("POST", "/v1/task/create", body)["task"].(map[string]any)["task_id"].(string))
}

// give assigns a task.
func (s *service) give(task tracking.TaskID, driver string) {
	s.Helper()
	s.api("POST", "/v1/task/assign", map[string]any{"task_id": task, "driver_id": driver})
}

// of waits until a task is a driver's; "": nobody's.
func (s *service) of(driver string, task tracking.TaskID) {
	s.Helper()
	s.until("with "+driver, task, func(t tracking.Task) bool { return string(t.DriverID) == driver })
}

// dispatcher opens the board at a desk, signed in by a link.
func (s *service) dispatcher(browser context.Context, name string) *person {
	s.Helper()
	token, err := s.svc.SignIn(context.Background(), "user:"+name)
	if err != nil {
		s.Fatal(err)
	}
	p := newPerson(s.T, browser, name, s.origins[1])
	p.desk(1280, 800)
	p.open(s.driver + "/board/#signin=" + token)
	p.see("the board", live)
	return p
}

const live = `document.querySelector('.desk')?.dataset.live === 'live' && document.querySelector('.leaflet-container') !== null`

// desk gives the window the size of a desk's.
func (p *person) desk(width, height int64) {
	p.Helper()
	if _, err := chromedp.Call(p.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: width, Height: height, DeviceScaleFactor: 1,
	}); err != nil {
		p.Fatal(err)
	}
}

// keys presses one key after the other.
func (p *person) keys(list string) {
	p.Helper()
	for _, key := range list {
		p.do(fmt.Sprintf("pressing %q", key), chromedp.KeyEvent(string(key)))
	}
}

// row is a script's expression for a row of the board.
func row(kind string, id any) string {
	return fmt.Sprintf(`document.querySelector('[data-row="%s %v"]')`, kind, id)
}

func card(kind string, id any) string { return row(kind, id) + `?.closest('.card')` }

// middle is where the middle of an element is, given as an expression.
func (p *person) middle(expression string) (x, y float64) {
	p.Helper()
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](
		`(() => { const r = `+expression+`.getBoundingClientRect(); return JSON.stringify([r.x + r.width / 2, r.y + r.height / 2]); })()`))
	if err != nil {
		p.Fatal(err)
	}
	var xy [2]float64
	if err := json.Unmarshal([]byte(text), &xy); err != nil {
		p.Fatal(err)
	}
	return xy[0], xy[1]
}

// leftButton does something with the left button of the mouse: down, move or up.
func (p *person) leftButton(what string, x, y float64) {
	p.Helper()
	if _, err := chromedp.Call(p.ctx, input.DispatchMouseEvent, input.DispatchMouseEventParams{
		Type: map[string]input.DispatchMouseEventType{
			"down": input.DispatchMouseEventTypeMousePressed, "move": input.DispatchMouseEventTypeMouseMoved,
			"up": input.DispatchMouseEventTypeMouseReleased,
		}[what], X: x, Y: y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1,
	}); err != nil {
		p.Fatal(err)
	}
}

// pull drags from the middle of one element to another's, both given as expressions.
func (p *person) pull(from, to string) {
	p.Helper()
	x, y := p.middle(from)
	toX, toY := p.middle(to)
	p.leftButton("down", x, y)
	for i := 1.0; i <= 8; i++ {
		p.leftButton("move", x+(toX-x)*i/8, y+(toY-y)*i/8)
	}
	p.leftButton("up", toX, toY)
}

// What the service marks by itself, such as that a task has become late, holds up nobody who is
// about to change it.
func TestBoardMarkedMeanwhile(t *testing.T) {
	s := newBoardService(t)
	chrome := chromium(t)
	dana := newPerson(t, chrome, "dana", s.origins[1])
	dana.desk(1280, 800)
	dana.expected = append(dana.expected, "status of 401", "status of 409")
	dana.open(s.driver + "/board/")
	dana.see("where to give a key", `document.activeElement?.id === 'key'`)
	dana.keys(apiKey + "\r")
	dana.see("the board", live)
	task := s.order("1001", map[string]any{"promised": time.Now().Add(4 * time.Second).UTC().Format(time.RFC3339)})
	s.give(task, "bilal")
	// What she taps is on its way until the task is late.
	dana.eval(`(() => {
		const send = window.fetch;
		window.calls = 0;
		window.fetch = async (url, how) => {
			if (String(url).endsWith('/v1/task/assign') && window.calls++ === 0) await new Promise((late) => (window.late = late));
			return send(url, how);
		};
	})()`)
	dana.see("the task", row("task", task)+` !== null`)
	dana.eval(row("task", task) + `.click()`)
	dana.keys("a")
	dana.see("whom it may go to", `document.querySelector('.panel .candidate .do') !== null`)
	dana.keys("1")
	dana.see("that it is on its way", `window.calls === 1`)
	dana.see("that it is late", card("task", task)+`?.matches('.need.late')`)
	dana.eval(`window.late()`)
	s.of("asha", task)
	dana.see("that it was given", `[...document.querySelectorAll('.toast')].some((e) => e.textContent.includes('#1001 given to Asha'))`)
}

// A dispatcher signs in, gives, takes back, copies, hears of a late task, gives it another, and signs
// out: by keys alone.
func TestBoardByKeys(t *testing.T) {
	s := newBoardService(t)
	soon := time.Now().Add(3 * time.Second).UTC().Format(time.RFC3339)
	first := s.order("1001", nil)
	late := s.order("1002", map[string]any{"promised": soon})
	s.give(late, "bilal")
	dana := newPerson(t, chromium(t), "dana", s.origins[1])
	dana.desk(1280, 800)
	dana.expected = append(dana.expected, "status of 401", "status of 409")
	dana.open(s.driver + "/board/")
	dana.see("where to give a key", `document.activeElement?.id === 'key'`)
	dana.keys("wrong\r")
	dana.see("that it is not valid", `document.querySelector('#why')?.textContent === 'This key is not valid.'`)
	dana.eval(`document.querySelector('#key').select()`)
	dana.keys(apiKey + "\r")
	dana.see("the board", live)
	dana.see("that one is late, and its title says so",
		`document.title.startsWith('(1) ') && `+card("task", late)+`?.matches('.need.late')`)

	dana.keys("j")
	dana.see("that the late one is chosen, and has the focus",
		`document.activeElement === `+row("task", late)+` && document.activeElement.ariaPressed === 'true'`)
	dana.see("its place on the map", `document.querySelector('.mark.pin') !== null`)
	dana.keys("a")
	dana.see("whom it may go to", `document.querySelector('.panel .candidate .do') !== null && document.activeElement.matches('.panel h2')`)
	dana.keys("1")
	dana.see("that it was given", `[...document.querySelectorAll('.toast')].some((e) => e.textContent.includes('#1002 given to Asha'))`)
	s.of("asha", late)
	dana.see("the focus where it was", `document.querySelector('.panel') === null && document.activeElement === `+row("task", late))

	dana.keys("jk")
	dana.keys("j")
	dana.see("the one that nobody has", row("task", first)+`?.ariaPressed === 'true'`)
	dana.keys("a")
	dana.see("whom it may go to", `document.querySelectorAll('.panel .candidate .do').length === 2`)
	dana.keys("2")
	s.of("bilal", first)
	dana.see("that it is nobody's no more", row("task", first)+` === null`)
	dana.keys("j")
	dana.see("a driver, and his stops", `document.activeElement.ariaExpanded === 'true' && document.querySelector('.stop') !== null`)
	dana.keys("u") // of no task
	dana.keys("g")
	dana.keys("z")
	dana.keys("?")
	dana.see("the keys", `document.querySelector('dialog[open] .keylist') !== null`)
	dana.do("closing it", chromedp.KeyEvent("\x1b"))
	dana.see("no dialog", `document.querySelector('dialog') === null`)

	tabTo := func(selector string) {
		t.Helper()
		for range 80 {
			dana.do("pressing Tab", chromedp.KeyEvent("\t"))
			at, err := chromedp.Run(dana.ctx, chromedp.Evaluate[bool](`document.activeElement.matches('`+selector+`')`))
			if err != nil {
				t.Fatal(err)
			}
			if at {
				return
			}
		}
		t.Fatalf("Tab does not lead to %s", selector)
	}
	dana.eval(`document.activeElement.blur()`)
	tabTo(".tools .tool:last-child")
	dana.keys("\r")
	dana.see("where to give a key", `document.querySelector('#key') !== null`)
	dana.open(s.driver + "/board/")
	dana.see("that she is signed out", `document.querySelector('#key') !== null`)
	dana.onlyFrom(s.origins[1])
}

// The same by mouse: the best next action, a stop dragged within its list and to another driver.
func TestBoardByMouse(t *testing.T) {
	s := newBoardService(t)
	var tasks []tracking.TaskID
	for i := range 3 {
		id := s.order(fmt.Sprint(2001+i), nil)
		s.give(id, "asha")
		tasks = append(tasks, id)
	}
	loose := s.order("2009", nil)
	dana := s.dispatcher(chromium(t), "dana")
	dana.eval(row("task", loose) + `.click()`)
	dana.see("to whom it is best given", card("task", loose)+`.querySelector('button.do')?.textContent.startsWith('Give to ')`)
	dana.eval(card("task", loose) + `.querySelector('button.do').click()`)
	s.until("given", loose, func(t tracking.Task) bool { return t.DriverID != "" })
	dana.see("that it is nobody's no more", row("task", loose)+` === null`)

	dana.eval(row("driver", "asha") + `.click()`)
	const stops = `document.querySelectorAll('.stop')`
	dana.see("the stops", stops+`.length >= 3`)
	dana.see("that nothing is on its way", `document.querySelector('.pending') === null`)
	dana.pull(stops+`[2].querySelector('.stop-number')`, stops+`[0].querySelector('.stop-number')`)
	dana.see("that it is saved, and the order as the server has it",
		`[...document.querySelectorAll('.toast')].some((e) => e.textContent.includes('Order of Asha saved')) && `+stops+`[0].textContent.includes('#2003')`)
	route, err := s.svc.Route(context.Background(), "asha")
	if err != nil || route.Stops[0].TaskID != tasks[2] {
		t.Errorf("the first stop is %v, want %s: %v", route.Stops[0], tasks[2], err)
	}
	dana.see("that nothing is on its way", `document.querySelector('.pending') === null`)
	dana.pull(stops+`[0].querySelector('.stop-number')`, row("driver", "bilal"))
	s.of("bilal", tasks[2])
	dana.see("one stop less", `[...`+stops+`].every((e) => !e.textContent.includes('#2003'))`)
	dana.see("that it was given in one step",
		`[...document.querySelectorAll('.toast')].some((e) => e.textContent.includes('#2003 given to Bilal'))`)
	dana.onlyFrom(s.origins[1])
}

// deaf lets a page's live stream fall silent while window.deaf is set, and break off after it.
const deaf = `(() => {
	const real = window.fetch;
	window.fetch = async (...a) => {
		const r = await real(...a);
		if (!String(a[0]).endsWith('/v1/live') || r.status !== 200) return r;
		let missed = false;
		const ear = new TransformStream({ transform: (piece, out) => {
			if (window.deaf) missed = true;
			else if (missed) out.error(new Error('broken off'));
			else out.enqueue(piece);
		} });
		return new Response(r.body.pipeThrough(ear), { status: r.status, headers: r.headers });
	};
})()`

// Two at once: what one does the other sees by itself, and flashing; who acts on what is no more is
// told who was faster, and with what.
func TestTwoBoards(t *testing.T) {
	s := newBoardService(t)
	task := s.order("3001", nil)
	chrome := chromium(t)
	dana := s.dispatcher(chrome, "dana")
	token, err := s.svc.SignIn(context.Background(), "user:eli")
	if err != nil {
		t.Fatal(err)
	}
	eli := newPerson(t, chrome, "eli", s.origins[1])
	eli.desk(1280, 800)
	eli.expected = append(eli.expected, "status of 409")
	eli.beforeScripts(deaf)
	eli.open(s.driver + "/board/#signin=" + token)
	eli.see("the board", live)

	give := func(p *person) {
		p.eval(`if (` + row("task", task) + `.ariaPressed !== 'true') ` + row("task", task) + `.click()`)
		p.see("to whom to give it", card("task", task)+`.querySelector('button.do')?.textContent.startsWith('Give to ')`)
	}
	give(dana)
	give(eli)
	eli.eval(`window.deaf = true`)
	dana.eval(card("task", task) + `.querySelector('button.do').click()`)
	s.until("given", task, func(t tracking.Task) bool { return t.DriverID != "" })
	dana.see("that it was given, and nothing of hers flashes",
		`document.querySelector('.toast')?.textContent.includes('#3001 given to') && document.querySelector('.fresh') === null`)
	eli.eval(card("task", task) + `.querySelector('button.do').click()`)
	eli.see("who was faster", `(() => { const e = document.querySelector('.toast.problem'); return e?.textContent.startsWith('Not done: ') && e.textContent.includes('assigned, by dana'); })()`)

	eli.eval(`window.deaf = false`)
	other := s.order("3002", nil)
	eli.see("a task of somebody else's, and that it is new", card("task", other)+`?.matches('.fresh')`)
	eli.see("that the first one is nobody's no more", row("task", task)+` === null`)
	s.give(other, "asha")
	eli.see("that it is given, without a reload", row("task", other)+` === null`)
}

// The server goes and comes back: that nothing is live is said over everything, and what happened
// meanwhile is there after it.
func TestBoardWithoutServer(t *testing.T) {
	s := newBoardService(t)
	dana := s.dispatcher(chromium(t), "dana")
	s.gate.set(true)
	dana.eval(`Date.now = ((real) => () => real() + 11_000)(Date.now)`)
	dana.see("that it is not live, and since when",
		`/^Not live since \d/.test(document.querySelector('.stale[role=alert]')?.textContent) && document.querySelector('.desk').dataset.live === 'stale'`)
	task := s.order("4001", nil)
	dana.see("nothing new", row("task", task)+` === null`)
	s.gate.set(false)
	dana.eval(`dispatchEvent(new Event('online'))`)
	dana.see("that it is live, and what is new", live+` && document.querySelector('.stale') === null && `+row("task", task)+` !== null`)
}

// A key that is revoked ends what it was signed in with, in the middle of it.
func TestBoardKeyRevoked(t *testing.T) {
	s := newBoardService(t, func(_ *tracking.Options, o *httpadapter.Options) { o.Heartbeat = 200 * time.Millisecond })
	key, secret, err := s.svc.CreateKey(context.Background(), "desk")
	if err != nil {
		t.Fatal(err)
	}
	dana := newPerson(t, chromium(t), "dana", s.origins[1])
	dana.expected = append(dana.expected, "status of 401")
	dana.desk(1280, 800)
	dana.open(s.driver + "/board/")
	dana.see("where to give a key", `document.activeElement?.id === 'key'`)
	dana.keys(secret + "\r")
	dana.see("the board", live)
	if err := s.svc.RevokeKey(context.Background(), key.ID); err != nil {
		t.Fatal(err)
	}
	dana.see("that she was signed out, and nothing of the tasks",
		`document.querySelector('#why')?.textContent.startsWith('You were signed out') && document.querySelector('.column') === null`)
}

// Who may only look sees all and is offered nothing that changes anything, by key neither.
func TestBoardForViewers(t *testing.T) {
	s := newBoardService(t)
	task, given := s.order("5001", nil), s.order("5002", nil)
	s.give(given, "asha")
	token, err := s.svc.SignInToView(context.Background(), "user:vera")
	if err != nil {
		t.Fatal(err)
	}
	vera := newPerson(t, chromium(t), "vera", s.origins[1])
	vera.desk(1280, 800)
	vera.open(s.driver + "/board/#signin=" + token)
	vera.see("the board, and what she may", live+` && document.querySelector('.chip.viewer')?.textContent === 'View only'`)
	vera.eval(row("task", task) + `.click()`)
	vera.keys("au1")
	vera.eval(row("driver", "asha") + `.click()`)
	vera.see("the stops, and nothing to do about them",
		`document.querySelector('.stop') !== null && document.querySelector('button.do, .move, .grip, .panel, .stop button') === null`)
	vera.open(s.driver + "/board/#assign/" + string(task))
	vera.see("no panel either", `document.querySelector('.desk')?.dataset.live === 'live' && document.querySelector('.panel') === null`)
	s.of("", task)
	vera.onlyFrom(s.origins[1])
}

// What is new among what needs somebody is heard once, unless the alarm is mute, and counted in the
// title.
func TestBoardAlarm(t *testing.T) {
	s := newBoardService(t)
	token, err := s.svc.SignIn(context.Background(), "user:dana")
	if err != nil {
		t.Fatal(err)
	}
	dana := newPerson(t, chromium(t), "dana", s.origins[1])
	dana.desk(1280, 800)
	dana.beforeScripts(`(() => { const real = AudioContext.prototype.createOscillator; window.tones = 0;
		AudioContext.prototype.createOscillator = function () { window.tones++; return real.call(this); }; })()`)
	dana.open(s.driver + "/board/#signin=" + token)
	dana.see("the board", live)
	dana.keys("z") // browsers make no sound before that
	fail := func(order string) {
		t.Helper()
		if _, err := s.svc.CompleteTask(context.Background(), s.order(order, nil), tracking.Completion{
			Outcome: tracking.OutcomeFailed, Reason: tracking.Reason{Code: tracking.ReasonNotHome},
		}); err != nil {
			t.Fatal(err)
		}
	}
	fail("6001")
	dana.see("what failed and why, and hears it", `window.tones === 4 && document.title.startsWith('(1) ') && document.querySelector('.need.failed .why')?.textContent.includes('Nobody was at home')`)
	dana.eval(`document.querySelector('.bell').click()`)
	dana.see("that it is mute", `document.querySelector('.bell').ariaPressed === 'true'`)
	fail("6002")
	dana.see("two, and hears nothing", `document.title.startsWith('(2) ') && window.tones === 4`)
	dana.eval(`document.querySelector('.need.failed .do').click()`)
	dana.see("that the first is tried again", `document.title.startsWith('(1) ') && document.querySelector('.toast')?.textContent.includes('#6001 is tried again')`)
	dana.eval(`document.querySelector('.need.failed .other').click()`)
	dana.see("that the second is left", `document.querySelector('.need') === null && !document.title.startsWith('(')`)
	dana.open(s.driver + "/board/")
	dana.see("that it still is, after a reload", live+` && document.querySelector('.need') === null && document.querySelector('.bell').ariaPressed === 'true'`)
}

// No text of anybody's becomes an element of the board, whichever field it is in.
func TestBoardVectors(t *testing.T) {
	s := newBoardService(t)
	list := vectors(t)
	dana := s.dispatcher(chromium(t), "dana")
	dana.see("that nothing is open", `document.querySelector('.beginning') !== null`)
	const outline = `document.querySelectorAll('script, style, iframe, object, embed, img, form, base, meta, link').length`
	before, err := chromedp.Run(dana.ctx, chromedp.Evaluate[int](outline))
	if err != nil {
		t.Fatal(err)
	}
	var last tracking.TaskID
	made := 0
	for i, v := range list {
		if i%7 != 0 && len(list) > 150 { // each in turn over the runs of the longer list would take minutes
			continue
		}
		c := tracking.Contact{Name: v, Mobile: "+49 170 1"}
		task, err := s.svc.CreateTask(context.Background(), tracking.NewTask{
			Type: tracking.TypeDrop, Notes: v, OrderID: v,
			Drop: &tracking.Place{Address: v, Customer: &c, LngLat: &tracking.LngLat{Lng: 13.38, Lat: 52.52}},
		})
		if err != nil { // some are refused, as those with control characters
			continue
		}
		made++
		last = task.ID
		if made%2 == 0 {
			_, err = s.svc.AssignTask(context.Background(), task.ID, "asha")
		} else if made%3 == 0 {
			_, err = s.svc.CompleteTask(context.Background(), task.ID, tracking.Completion{
				Outcome: tracking.OutcomeFailed, Reason: tracking.Reason{Text: v},
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.svc.SaveDriver(context.Background(), tracking.DriverUpdate{ID: "bilal", Name: &v}); err != nil {
			continue
		}
	}
	if made < 10 {
		t.Fatalf("only %d tasks were made", made)
	}
	end := s.order("the last one", nil)
	dana.see("the last one", row("task", end)+` !== null`)
	dana.eval(row("driver", "asha") + `.click()`)
	dana.see("the stops", `document.querySelectorAll('.stop').length > 3`)
	if now, err := s.svc.Task(context.Background(), last); err == nil && now.Status == tracking.StatusCreated {
		dana.eval(`location.hash = 'assign/` + string(last) + `'`)
		dana.see("a panel", `document.querySelector('.panel .candidate') !== null`)
	}
	after, err := chromedp.Run(dana.ctx, chromedp.Evaluate[int](outline))
	if err != nil || after != before {
		t.Errorf("there were %d elements that can do harm, and are %d: %v", before, after, err)
	}
	dana.onlyFrom(s.origins[1])
}

// Each screen passes the rules of axe, in light and dark.
func TestBoardAccessibility(t *testing.T) {
	axe := readAxe(t)
	server := serve(t, web.Site{Name: "Sunny", Color: "#ffd400"}, nil)
	chrome := chromium(t)
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			p := newPerson(t, chrome, "the dispatcher", server.URL)
			p.expected = append(p.expected, "status of 401")
			p.prefers(scheme)
			p.desk(1280, 800)
			p.open(server.URL + "/board/#signin=nobody")
			p.see("that the link is over", `document.querySelector('#why') !== null`)
			p.accessible(axe, "signing in")
			enter := func(scene string) {
				p.open("about:blank")
				p.open(server.URL + "/board/#signin=" + scene)
				p.see("the board", live)
			}
			enter("empty")
			p.accessible(axe, "empty")
			enter("busy")
			p.see("what to do, and the drivers", `document.querySelector('.need button.do') !== null && document.querySelector('.mark.driver') !== null`)
			p.accessible(axe, "busy")
			p.eval(row("driver", "asha") + `.click()`)
			p.see("the stops", `document.querySelector('.stop') !== null`)
			p.accessible(axe, "a driver")
			p.eval(`location.hash = 'assign/t-10'`)
			p.see("the candidates", `document.querySelector('.candidate') !== null`)
			p.accessible(axe, "assign")
			p.eval(`document.querySelector('.panel .close').click(); document.querySelector('.tool.keys').click()`)
			p.see("the keys", `document.querySelector('dialog[open]') !== null`)
			p.accessible(axe, "keys")
			p.eval(`document.querySelector('dialog .do').click(); Date.now = ((real) => () => real() + 60_000)(Date.now)`)
			p.see("that it is not live", `document.querySelector('.stale') !== null`)
			p.accessible(axe, "not live")
			p.desk(390, 844)
			p.see("one column", `getComputedStyle(document.querySelector('.tabs')).display !== 'none'`)
			p.accessible(axe, "on a phone")
		})
	}
}

// With 500 tasks and 200 drivers in one city, what is drawn stays few.
func TestBoardCrowd(t *testing.T) {
	p := largeBoard(t, 1280, 800)
	p.see("the drivers and tasks, those close together as one",
		`(() => { const n = document.querySelectorAll('.mark').length; return n > 20 && n < 350 && document.querySelector('.mark.many') !== null; })()`)
}

// largeBoard opens the board of a company with 500 tasks and 200 drivers.
func largeBoard(t *testing.T, width, height int64) *person {
	t.Helper()
	server := serve(t, web.Site{}, nil)
	p := newPerson(t, chromium(t), "the dispatcher", server.URL)
	p.desk(width, height)
	p.open(server.URL + "/board/#signin=large")
	p.see("the board", live)
	p.see("all drivers in the list", `document.querySelectorAll('.driver.card').length === 200`)
	return p
}
