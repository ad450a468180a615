package e2e_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking"
)

// An order of stops is kept though something else about the driver has changed; where the order
// itself has, that is what is said, and who did it.
func TestBoardReorderedMeanwhile(t *testing.T) {
	s := newBoardService(t)
	var stops []tracking.Stop
	for i := range 3 {
		id := s.order(fmt.Sprint(6001+i), nil)
		s.give(id, "asha")
		stops = append(stops, tracking.Stop{TaskID: id, Leg: tracking.LegDrop})
	}
	token, err := s.svc.SignIn(context.Background(), "user:eli")
	if err != nil {
		t.Fatal(err)
	}
	eli := newPerson(t, chromium(t), "eli", s.origins[1])
	eli.desk(1280, 800)
	eli.expected = append(eli.expected, "status of 409")
	eli.beforeScripts(deaf)
	eli.open(s.driver + "/board/#signin=" + token)
	eli.see("the board", live)
	eli.eval(row("driver", "asha") + `.click()`)
	eli.see("the stops", `document.querySelectorAll('.stop').length === 3`)
	eli.see("that nothing is on its way", `document.querySelector('.pending') === null`)
	eli.eval(`window.deaf = true`)

	available := false
	if _, err := s.svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: "asha", Available: &available}); err != nil {
		t.Fatal(err)
	}
	eli.eval(`document.querySelectorAll('.stop')[2].querySelector('.move.up').click()`)
	eli.said("Order of Asha saved")
	first := func() tracking.TaskID {
		route, err := s.svc.Route(context.Background(), "asha")
		if err != nil {
			t.Fatal(err)
		}
		return route.Stops[1].TaskID
	}
	if got := first(); got != stops[2].TaskID {
		t.Errorf("the second stop is %s, want %s", got, stops[2].TaskID)
	}
	eli.see("the order as it is", `document.querySelectorAll('.stop')[1].textContent.includes('#6003')`)
	eli.see("that nothing is on its way", `document.querySelector('.pending') === null`)

	stops[0], stops[1], stops[2] = stops[2], stops[0], stops[1]
	if _, err := s.svc.As("user:dana").SetRoute(t.Context(), "asha", stops, 0); err != nil {
		t.Fatal(err)
	}
	eli.eval(`document.querySelectorAll('.stop')[2].querySelector('.move.up').click()`)
	eli.said("Not done: the stops of Asha were put in another order meanwhile, by dana")
}

// A task that cannot be read is not said to be gone: the panel keeps what it shows, or says so, and
// reads it once that goes.
func TestBoardUnread(t *testing.T) {
	s := newBoardService(t)
	task := s.order("7001", nil)
	s.api("POST", "/v1/task/complete", map[string]any{"task_id": task})
	dana := s.dispatcher(chromium(t), "dana")
	dana.expected = append(dana.expected, "status of 503", "status of 404")
	dana.eval(`(() => {
		const send = window.fetch;
		window.mend = () => (window.fetch = send);
		window.fetch = (url, how) => String(url).includes('/v1/task?') || /[/]v1[/]users[/]drivers?[?]/.test(url)
			? Promise.resolve(Response.json({ success: false, message: 'no', error: { code: 'unavailable' } }, { status: 503 }))
			: send(url, how);
	})()`)
	for _, panel := range []string{"task/elsewhere", "edit/elsewhere", "assign/elsewhere", "people", "driver/elsewhere"} {
		dana.eval(`location.hash = '#` + panel + `'`)
		dana.see(panel+" is unread", `document.querySelector('.panel')?.innerText.includes('This could not be read. Trying again')`)
	}
	dana.eval(`mend()`)
	dana.see("that there is none", `document.querySelector('.panel')?.innerText.includes('This driver is not there any more.')`)
}

// What a driver is at is taken back by the key as by the button, once it was asked about; the key is
// about the task that is open.
func TestBoardTakenBackUnderWay(t *testing.T) {
	s := newBoardService(t)
	under, behind := s.order("8001", nil), s.order("8002", nil)
	s.give(under, "asha")
	s.give(behind, "bilal")
	if _, _, err := s.svc.StartTask(t.Context(), "asha", under, tracking.Step{}); err != nil {
		t.Fatal(err)
	}
	dana := s.dispatcher(chromium(t), "dana")
	dana.eval(row("driver", "bilal") + `.click()`)
	dana.eval(`location.hash = '#task/` + string(under) + `'`)
	dana.see("the task", `document.querySelector('.panel-task .task-name')?.textContent === '#8001'`)
	dana.keys("u")
	dana.see("the question, and the focus on what does nothing",
		`document.querySelector('.panel-task .inset')?.innerText.includes('Asha is at it') && document.activeElement?.textContent === 'Leave it with the driver'`)
	dana.keys("\r")
	dana.see("no question", `document.querySelector('.panel-task .inset') === null`)
	s.of("asha", under)
	dana.keys("u")
	dana.see("the focus on what does nothing", `document.activeElement?.textContent === 'Leave it with the driver'`)
	dana.keys("\t\r")
	dana.said("#8001 has no driver now")
	s.of("", under)
	s.of("bilal", behind)
	dana.keys("u")
	dana.said("#8001 cannot be taken back")
}

// Where nothing is yet, the first button is that of the first step.
func TestBoardBeginning(t *testing.T) {
	s := onFile(t)
	dana := s.dispatcher(chromium(t), "dana")
	dana.see("the steps", `document.querySelectorAll('.beginning .steps li').length === 3`)
	dana.eval(`document.querySelector('.beginning .do').click()`)
	dana.see("whom to invite", `document.activeElement?.name === 'driver-name'`)
	dana.do("naming her", chromedp.KeyEvent("Asha\r"))
	dana.see("her code", `/^\d{3}.\d{3}$/.test(document.querySelector('.panel .code')?.textContent)`)
}

// With letters of twice the size, the lists keep their part of a phone, and all buttons of the head can be
// reached.
func TestBoardLargeLettersOnPhones(t *testing.T) {
	s := newBoardService(t)
	task := s.order("9001", nil)
	dana := s.dispatcher(chromium(t), "dana")
	dana.narrow(390, "200%")
	dana.see("the lists, with their part of it", `(() => {
		const list = document.querySelector('.needs').getBoundingClientRect(), tabs = document.querySelector('.tabs').getBoundingClientRect();
		return list.height > innerHeight * 0.4 && list.bottom <= tabs.top + 1 && document.documentElement.scrollWidth <= innerWidth;
	})()`)
	dana.see("the task", row("task", task)+` !== null`)
	dana.eval(`document.querySelectorAll('.tabs button')[1].click()`)
	dana.see("the map, and little of it covered by what its forms mean",
		`(() => { const r = document.querySelector('.legend').getBoundingClientRect(); return r.height > 0 && r.height < innerHeight / 6; })()`)
	dana.eval(`document.querySelector('.tools .tool:last-child').focus()`)
	dana.see("the last button", `(() => {
		const r = document.querySelector('.tools .tool:last-child').getBoundingClientRect();
		return r.left >= 0 && r.right <= innerWidth + 1;
	})()`)
}
