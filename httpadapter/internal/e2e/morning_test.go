package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking"
)

// hand is what a dispatcher works with: the keys alone, or the mouse for all but the texts.
type hand struct {
	*person
	mouse bool
}

// press finds what is called so, on which it is or begins with, and presses it: by Tab and Enter, or
// by a click.
func (h hand) press(name string) {
	h.Helper()
	called := fmt.Sprintf(`((e) => (e.ariaLabel ?? e.textContent).trim().startsWith(%q) && !e.disabled && e.ariaDisabled !== 'true')`, name)
	find := `[...document.querySelectorAll('button, a')].find(` + called + `)`
	h.see("what is called "+name, find+` !== undefined`)
	if h.mouse {
		h.eval(find + `.scrollIntoView({ block: 'center' })`)
		h.person.mouse(h.middle(find))
		return
	}
	for range 300 {
		at, err := chromedp.Run(h.ctx, chromedp.Evaluate[bool](called+`(document.activeElement)`))
		if err != nil {
			h.Fatal(err)
		}
		if at {
			h.keys("\r")
			return
		}
		h.do("pressing Tab", chromedp.KeyEvent("\t"))
	}
	h.Fatalf("Tab does not lead to %s", name)
}

// either presses a key, or what does the same by the mouse.
func (h hand) either(key, name string) {
	h.Helper()
	if h.mouse {
		h.press(name)
		return
	}
	h.keys(key)
}

// find opens the panel of a task by a search.
func (h hand) find(order string) {
	h.Helper()
	h.either("/", "Search")
	h.see("where to search", `document.activeElement?.name === 'q'`)
	h.insert(order)
	h.see("what is found", `document.querySelectorAll('.found a').length === 1`)
	if h.mouse {
		h.person.mouse(h.middle(`document.querySelector('.found a')`))
	} else {
		h.keys("\r")
	}
	h.panel("task")
	h.reads(order)
	h.see("that nothing is written in", `!document.activeElement.matches('input')`)
}

// A dispatcher's morning, by the keys alone and by the mouse: she signs in, pastes 40 rows of which
// three are wrong, invites a driver, gives a task, changes the order of stops, hears that one is late,
// gives it to another, opens again what had failed, and signs out.
func TestBoardMorning(t *testing.T) {
	for _, way := range []string{"by keys", "by mouse"} {
		t.Run(way, func(t *testing.T) { morning(t, way == "by mouse") })
	}
}

func morning(t *testing.T, mouse bool) {
	s := newBoardService(t)
	ctx := context.Background()
	first, second, loose := s.order("B-1001", nil), s.order("B-1002", nil), s.order("B-1003", nil)
	s.give(first, "asha")
	s.give(second, "asha")
	dana := hand{newPerson(t, chromium(t), "dana", s.origins[1]), mouse}
	dana.desk(1280, 800)
	dana.expected = append(dana.expected, "status of 401")
	dana.beforeScripts(`(() => { const real = AudioContext.prototype.createOscillator; window.tones = 0;
		AudioContext.prototype.createOscillator = function () { window.tones++; return real.call(this); }; })()`)
	dana.open(s.driver + "/board/")
	dana.see("where to give a key", `document.activeElement?.id === 'key'`)
	dana.keys(apiKey)
	dana.press("Sign in")
	dana.see("the board", live)

	dana.either("p", "Paste")
	dana.see("where to paste", `document.activeElement?.id === 'paste'`)
	dana.insert(spreadsheet())
	dana.reads("40 rows: 37 can be created, 3 cannot.")
	dana.press("Create 37 tasks")
	dana.see("what became of them", `[...document.querySelectorAll('.toast')].some((e) => e.textContent.includes('37 created · 3 left out'))`)
	dana.close()

	dana.press("Drivers")
	dana.panel("people")
	dana.press("Invite a driver")
	dana.see("the focus in the name", `document.activeElement?.name === 'driver-name'`)
	dana.keys("Carmen\t0151 1234567")
	dana.press("Invite")
	dana.see("the code, to be read out", `/^\d{3}\s\d{3}$/.test(document.querySelector('.code')?.textContent ?? '')`)
	code, err := chromedp.Run(dana.ctx, chromedp.Evaluate[string](`document.querySelector('.code').textContent.replace(/\D/g, '')`))
	if err != nil {
		t.Fatal(err)
	}
	carmen := s.api("POST", "/v1/driver/join", map[string]any{"invite_code": code})["driver"].(map[string]any)["driver_id"]
	s.api("POST", "/v1/users/driver", map[string]any{"driver_id": carmen, "availability": true, "lnglat": []float64{13.45, 52.53}})
	dana.press("Done")
	dana.close()
	dana.see("her on duty", row("driver", carmen)+` !== null`)

	give := func(order, button string) {
		t.Helper()
		dana.find(order)
		dana.either("a", button)
		dana.panel("assign")
		dana.see("whom it may go to", `document.querySelector('.panel .candidate .do') !== null`)
		if mouse {
			dana.person.mouse(dana.middle(`document.querySelector('.panel .candidate .do')`))
		} else {
			dana.keys("1")
		}
		dana.see("that it is given", `document.querySelector('.panel') === null`)
	}
	give("B-1003", "Assign…")
	s.until("given", loose, func(t tracking.Task) bool { return t.DriverID != "" })

	if mouse {
		dana.person.mouse(dana.middle(row("driver", "asha")))
	} else {
		// from the last in the list upwards; the drivers are its end
		for range 10 {
			open, err := chromedp.Run(dana.ctx, chromedp.Evaluate[bool](row("driver", "asha")+`.ariaExpanded === 'true'`))
			if err != nil {
				t.Fatal(err)
			}
			if open {
				break
			}
			dana.keys("k")
			dana.eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))`)
		}
	}
	dana.see("the stops of Asha", `document.querySelectorAll('.stop').length >= 2`)
	dana.see("that nothing is on its way", `document.querySelector('.pending') === null`)
	dana.press("Move down: 1 River Street")
	dana.see("that the order is saved", `[...document.querySelectorAll('.toast')].some((e) => e.textContent.includes('Order of Asha saved'))`)
	route, err := s.svc.Route(ctx, "asha")
	if err != nil || route.Stops[0].TaskID != second || route.Stops[1].TaskID != first {
		t.Errorf("the stops of Asha are %v: %v", route.Stops, err)
	}

	late := s.order("B-1004", map[string]any{"promised": time.Now().Add(2 * time.Second).UTC().Format(time.RFC3339)})
	s.give(late, "asha")
	dana.see("that it is late, and hears it", `window.tones > 0 && document.title.startsWith('(1) ') && `+card("task", late)+`?.matches('.need.late')`)
	give("B-1004", "Give to another…")
	s.until("with another", late, func(t tracking.Task) bool { return t.DriverID != "" && t.DriverID != "asha" })

	if _, err := s.svc.CompleteTask(ctx, first, tracking.Completion{
		Outcome: tracking.OutcomeFailed, Reason: tracking.Reason{Code: tracking.ReasonNotHome},
	}); err != nil {
		t.Fatal(err)
	}
	dana.find("B-1001")
	dana.press("Reopen")
	s.until("reopened", first, func(t tracking.Task) bool { return t.Status == tracking.StatusAssigned })
	dana.close()

	dana.press("Sign out")
	dana.see("where to give a key", `document.querySelector('#key') !== null`)
	if n := len(s.tasks("")); n != 41 {
		t.Errorf("%d tasks, want 41", n)
	}
	dana.onlyFrom(s.origins[1])
}

// close closes the panel.
func (h hand) close() {
	h.Helper()
	if h.mouse {
		h.person.mouse(h.middle(`document.querySelector('.panel .close')`))
	} else {
		h.keys("\x1b")
	}
	h.see("no panel", `document.querySelector('.panel') === null`)
}
