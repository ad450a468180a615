package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking"
)

// stops are the tasks of a driver, in order.
func (s *service) stops(driver tracking.DriverID) (list []tracking.TaskID) {
	s.Helper()
	r, err := s.svc.Route(context.Background(), driver)
	if err != nil {
		s.Fatal(err)
	}
	for _, stop := range r.Stops {
		list = append(list, stop.TaskID)
	}
	return list
}

// Several tasks are marked and given together, by keys: those of one driver in one call; which of them
// could not be given is told by name.
func TestBoardSeveralByKeys(t *testing.T) {
	s := newBoardService(t)
	loose, free, under := s.order("2001", nil), s.order("2002", nil), s.order("2003", nil)
	for _, id := range []tracking.TaskID{free, under} {
		s.give(id, "asha")
	}
	dana := s.dispatcher(chromium(t), "dana")
	dana.expected = append(dana.expected, "status of 409")
	dana.keys("h")
	dana.see("that nothing is marked", `document.querySelector('.panel')?.textContent.includes('Mark tasks first')`)
	dana.do("closing it", chromedp.KeyEvent("\x1b"))
	dana.keys("jx")
	dana.see("that one is marked", `document.querySelector('.marked')?.textContent.includes('1 task marked') &&
		`+card("task", loose)+`.querySelector('.mark-box input').checked`)
	dana.keys("h")
	dana.see("to whom", `document.querySelectorAll('.panel .candidate').length === 2 && document.querySelector('.panel').textContent.includes('Give 1 task to')`)
	dana.eval(`window.first = document.querySelector('.panel .candidate bdi').textContent`)
	dana.keys("1")
	s.until("given", loose, func(t tracking.Task) bool { return t.DriverID != "" })
	dana.see("that it is marked no more", `document.querySelector('.marked') === null && document.querySelector('.panel') === null`)

	// All of a driver's, of which one is under way: asked about first.
	s.give(loose, "asha")
	if _, _, err := s.svc.StartTask(context.Background(), "asha", under, tracking.Step{}); err != nil {
		t.Fatal(err)
	}
	dana.see("that it is under way", `[...document.querySelectorAll('.facts li')].some((e) => e.textContent.includes('3 with drivers'))`)
	dana.eval(row("driver", "asha") + `.click()`)
	dana.see("his stops", `document.querySelectorAll('.stop').length === 3`)
	dana.keys("h")
	dana.see("all that he has", `document.querySelectorAll('.panel .several input:checked').length === 3 && document.querySelector('.panel').textContent.includes('Under way: 1')`)
	dana.keys("1")
	dana.see("that it is asked", `document.querySelector('.panel .candidate .do.warn')?.textContent.startsWith('Take it away and give')`)
	dana.eval(`document.querySelector('.panel .candidate .do.warn').click()`)
	for _, id := range []tracking.TaskID{loose, free, under} {
		s.of("bilal", id)
	}
	dana.see("how many", `[...document.querySelectorAll('.toast')].some((e) => e.textContent.includes('3 tasks given to Bilal'))`)

	// Refused by name.
	dana.eval(`(() => { const send = window.fetch; window.fetch = (url, how) => {
		if (!String(url).endsWith('/handover') && !(String(url).endsWith('/assign') && how.body.includes('` + string(free) + `'))) return send(url, how);
		return Promise.resolve(Response.json({ success: false, message: 'The task is with somebody else.', error: { code: 'conflict' } }, { status: 409 }));
	}; })()`)
	dana.eval(row("driver", "bilal") + `.ariaExpanded === 'true' || ` + row("driver", "bilal") + `.click()`)
	dana.see("his stops", `document.querySelectorAll('.stop').length === 3`)
	dana.keys("h")
	dana.see("all that he has", `document.querySelectorAll('.panel .several input:checked').length === 3`)
	dana.keys("1")
	for _, id := range []tracking.TaskID{loose, under} {
		s.of("asha", id)
	}
	dana.see("which one he did not get, and why",
		`document.querySelector('.panel [role=alert]')?.textContent.includes('#2002: The task is with somebody else.') && !document.querySelector('.panel [role=alert]').textContent.includes('#2001')`)
	s.of("bilal", free)
}

// What has changed about the stops of a driver while a task was put among them is told, and by whom.
func TestBoardOtherStops(t *testing.T) {
	s := newBoardService(t)
	gone, loose := s.order("3001", nil), s.order("3009", nil)
	s.give(gone, "asha")
	dana := s.dispatcher(chromium(t), "dana")
	dana.expected = append(dana.expected, "status of 409")
	dana.eval(`(() => { const send = window.fetch; window.fetch = async (url, how) => {
		if (String(url).endsWith('/assign')) { window.held = true; await new Promise((go) => (window.go = go)); }
		return send(url, how);
	}; })()`)
	dana.eval(`location.hash = '#assign/` + string(loose) + `'`)
	dana.see("to whom", `document.querySelector('.panel input[name=at]') !== null`)
	dana.eval(`document.querySelector('.panel input[name=at]').focus()`)
	dana.keys("1")
	dana.eval(`[...document.querySelectorAll('.panel .candidate')].find((e) => e.textContent.includes('Asha')).querySelector('button').click()`)
	dana.see("that it is being sent", `window.held === true`)
	if _, err := s.svc.As("user:erin").UnassignTask(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	dana.eval(`go()`)
	dana.said("the stops of Asha have changed meanwhile. #3001: taken back, by erin")
}

// Several tasks that are dropped on somebody who is off duty are offered to him first.
func TestBoardSeveralOffDuty(t *testing.T) {
	s := newBoardService(t)
	s.order("2001", nil)
	s.order("2002", nil)
	his := s.order("2003", nil)
	over := s.order("2004", nil)
	dana := s.dispatcher(chromium(t), "dana")
	dana.expected = append(dana.expected, "status of 409")
	s.api("POST", "/v1/users/driver", map[string]any{"driver_id": "bilal", "availability": false})
	dana.see("the tasks", `document.querySelectorAll('.mark-box input').length === 4`)
	dana.eval(`document.querySelectorAll('.mark-box input').forEach((e) => e.click())`)
	s.give(his, "bilal")
	dana.eval(row("driver", "bilal") + `.click()`)
	dana.see("what he has", `document.querySelectorAll('.stop').length === 1`)
	dana.eval(`location.hash = '#several/to:bilal'`)
	dana.see("him first", `document.querySelectorAll('.panel .candidate').length === 2 && document.querySelector('.panel .candidate').textContent.includes('Bilal')`)
	dana.see("that he is off duty, and nobody else", `[...document.querySelectorAll('.panel .candidate')].map((e) => e.textContent.includes('off duty')).join() === 'true,false'`)
	dana.see("the tasks", `document.querySelectorAll('.panel .several input:checked').length === 4`)

	// One of them ends just before it is sent, and the answer about another is lost.
	dana.eval(`(() => { const send = window.fetch; let n = 0; window.fetch = async (url, how) => {
		if (!String(url).endsWith('/assign')) return send(url, how);
		if (n++ === 0) {
			window.held = true;
			await new Promise((go) => (window.go = go));
			await send(url, how);
			throw new TypeError('gone');
		}
		return send(url, how);
	}; })()`)
	dana.keys("1")
	dana.see("that it is being sent", `window.held === true`)
	s.api("POST", "/v1/task/complete", map[string]any{"task_id": over, "outcome": "failed"})
	dana.eval(`go()`)
	dana.see("which one he did not get, and no other", `(() => {
		const left = [...document.querySelectorAll('.panel [role=alert] li')].map((e) => e.textContent);
		return left.length === 1 && left[0] === '#2004: It has ended already.';
	})()`)
	for _, order := range []string{"2001", "2002", "2003"} {
		list, _, err := s.svc.Tasks(t.Context(), tracking.TaskFilter{OrderID: order})
		if err != nil || len(list) != 1 || list[0].DriverID != "bilal" {
			t.Errorf("%s is %+v, %v", order, list, err)
		}
	}
}

// A stop that is dropped among another driver's stops lands where it was dropped; so does a task from
// the list of those that nobody has, and by the number of the stop.
func TestBoardLanding(t *testing.T) {
	s := newBoardService(t)
	var of [2][]tracking.TaskID
	for i := range 6 {
		id := s.order(fmt.Sprint(3001+i), nil)
		s.give(id, []string{"asha", "bilal"}[i%2])
		of[i%2] = append(of[i%2], id)
	}
	loose := s.order("3009", nil)
	dana := s.dispatcher(chromium(t), "dana")
	dana.desk(1280, 1300) // at the ends of a column it scrolls
	dana.eval(row("driver", "asha") + `.click()`)
	stops := func(driver string) string { return card("driver", driver) + `.querySelectorAll('.stop')` }
	dana.see("the stops", stops("asha")+`.length === 3`)
	want := func(driver tracking.DriverID, list ...tracking.TaskID) {
		t.Helper()
		s.until("there", list[0], func(tracking.Task) bool { return slices.Equal(s.stops(driver), list) })
	}
	mouse := dana.leftButton
	x, y := dana.middle(stops("asha") + `[0].querySelector('.stop-number')`)
	mouse("down", x, y)
	mouse("move", x, y+20)
	toX, toY := dana.middle(row("driver", "bilal"))
	mouse("move", toX, toY)
	dana.see("the other's stops, while it is held over him", stops("bilal")+`.length === 3`)
	toX, toY = dana.middle(stops("bilal") + `[1]`)
	mouse("move", toX, toY-12)
	dana.see("where it would come", stops("bilal")+`[1].matches('.before')`)
	mouse("up", toX, toY-12)
	want("bilal", of[1][0], of[0][0], of[1][1], of[1][2])
	told := func(n int) {
		t.Helper()
		list, _, err := s.svc.Notices(t.Context(), "bilal", 0, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) != n || slices.ContainsFunc(list, func(n tracking.Notice) bool { return n.Kind != tracking.NoticeAssigned }) {
			t.Errorf("he was told %+v, want of %d tasks, once each", list, n)
		}
	}
	told(4)
	dana.see("nothing held any more", stops("bilal")+`.length === 0 && document.querySelector('.before, .after, .dragged') === null`)

	x, y = dana.middle(row("task", loose))
	mouse("down", x, y)
	mouse("move", x+20, y+20)
	dana.see("what is dragged", `document.querySelector('.dragged-task')?.textContent === '#3009'`)
	toX, toY = dana.middle(row("driver", "bilal"))
	mouse("move", toX, toY)
	dana.see("his stops", stops("bilal")+`.length === 4`)
	toX, toY = dana.middle(stops("bilal") + `[0]`)
	mouse("move", toX, toY-12)
	dana.see("where it would come", stops("bilal")+`[0].matches('.before')`)
	mouse("up", toX, toY-12)
	want("bilal", loose, of[1][0], of[0][0], of[1][1], of[1][2])
	told(5)
	dana.see("that nothing is selected by that", row("task", loose)+` === null && document.querySelector('.dragged-task') === null`)

	dana.open(s.driver + "/board/#assign/" + string(loose))
	dana.see("to whom", `document.querySelector('.panel input[name=at]') !== null`)
	dana.eval(`document.querySelector('.panel input[name=at]').focus()`)
	dana.keys("2")
	dana.eval(`document.querySelector('.panel h2').focus()`)
	dana.keys("1")
	want("asha", of[0][1], loose, of[0][2])
}
