package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking"
)

// routeIs says which of the tasks are where in the driver's route, by the server.
func (s *service) routeIs(ids []tracking.TaskID, want string) {
	s.Helper()
	var got strings.Builder
	for began := time.Now(); got.String() != want; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > patience {
			s.Fatalf("the route is %s, want %s", got.String(), want)
		}
		route, err := s.svc.Route(s.Context(), "dora")
		if err != nil {
			s.Fatal(err)
		}
		got.Reset()
		for _, stop := range route.Stops {
			for i, id := range ids {
				if stop.TaskID == id {
					fmt.Fprint(&got, i+1)
				}
			}
		}
	}
}

// said are the houses in the order of the list on the screen.
const said = `[...document.querySelectorAll('.order-row .address, .next .address, .later .address')].map((e) => parseInt(e.textContent) - 11).join('')`

// The driver puts the stops in another order, by dragging and by key, and also without a network;
// where somebody else has changed it meanwhile, that stands and is said.
func TestReorder(t *testing.T) {
	s := newService(t, "")
	dora := s.driving()
	dora.phone(844)
	var ids []tracking.TaskID
	for range 3 {
		ids = append(ids, s.newTask(2, ""))
	}
	open := func() {
		t.Helper()
		dora.eval(`location.hash = '#order'`)
		dora.see("the stops in order", `document.querySelectorAll('.order-row').length === 3`)
		dora.standing(".order-row:last-child")
	}
	save := func() {
		t.Helper()
		dora.press(".order .primary")
		dora.see("the list", `document.querySelector('.next') !== null`)
	}
	dora.see("all stops", `document.querySelectorAll('.task').length === 3`)

	// A finger takes the first one to the end.
	open()
	x, y := dora.spot(".order-row:first-child .grip")
	_, end := dora.spot(".order-row:last-child .grip")
	dora.touch(input.DispatchTouchEventTypeTouchStart, &input.TouchPoint{X: x, Y: y})
	for i := range 10 {
		at := y + (end+10-y)*float64(i+1)/10
		dora.touch(input.DispatchTouchEventTypeTouchMove, &input.TouchPoint{X: x, Y: at})
	}
	dora.see("it on its way", `document.querySelector('.order-row.dragged') !== null`)
	dora.see("that the others make room", `document.querySelector('.order-row:last-child').style.transform !== ''`)
	dora.touch(input.DispatchTouchEventTypeTouchEnd)
	dora.see("the new order", said+` === '231'`)
	dora.see("that it is told",
		`document.querySelector('.order [role=status]').textContent === '12 River Street is now stop 3 of 3'`)
	s.routeIs(ids, "123") // not before it is saved
	save()
	s.routeIs(ids, "231")
	dora.see("it in the list", said+` === '231'`)

	// By key; the focus goes with the stop.
	open()
	dora.eval(`document.querySelector('.order-row:last-child .up').focus()`)
	for range 2 {
		dora.do("up", chromedp.KeyEvent("\r"))
	}
	dora.see("it at the top, and the focus there",
		said+` === '123' && document.activeElement.closest('.order-row') === document.querySelector('.order-row')`)
	s.gate.set(true)
	save()
	dora.see("it in the list, though it is not sent", said+` === '123'`)
	dora.open(s.driver + "/driver/")
	dora.see("the same after opening the app anew", said+` === '123'`)
	s.routeIs(ids, "231")
	s.gate.set(false)
	dora.eval(`window.dispatchEvent(new Event('online'))`)
	s.routeIs(ids, "123")

	// The dispatcher changes it while she is offline and does so too.
	dora.expected = append(dora.expected, "status of 409")
	s.gate.set(true)
	open()
	dora.eval(`document.querySelector('.order-row .down').click()`)
	dora.see("her order", said+` === '213'`)
	save()
	stops := []any{}
	for _, i := range []int{2, 1, 0} {
		stops = append(stops, map[string]any{"task_id": string(ids[i]), "leg": "drop"})
	}
	s.api("POST", "/v1/users/driver/route", map[string]any{"driver_id": "dora", "stops": stops})
	s.gate.set(false)
	dora.eval(`window.dispatchEvent(new Event('online'))`)
	dora.see("that hers was not taken, and why",
		`document.querySelector('.banner.refused')?.textContent.includes('The route was changed meanwhile')`)
	dora.see("the dispatcher's order", said+` === '321'`)
	s.routeIs(ids, "321")
}

// Several parcels for one house are one stop: started with one tap, delivered together but for
// those that are left out.
func TestParcelsOfOneHouse(t *testing.T) {
	s := newService(t, "")
	dora := s.driving()
	var ids []tracking.TaskID
	for i, address := range []string{"Mill Lane 3", "mill lane  3", "Mill Lane 3", "Elsewhere 1"} {
		task := s.api("POST", "/v1/task/create", map[string]any{
			"type": 2, "order_id": fmt.Sprint("#", i), "drop": map[string]any{"address": address},
		})["task"].(map[string]any)
		ids = append(ids, tracking.TaskID(task["task_id"].(string)))
		s.api("POST", "/v1/task/assign", map[string]any{"task_id": ids[i], "driver_id": "dora"})
	}
	are := func(what string, want ...tracking.TaskStatus) {
		t.Helper()
		for i, id := range ids {
			if now := s.status(id); now.Status != want[i] {
				t.Errorf("%s: %d is %s, want %s", what, i, now.Status, want[i])
			}
		}
	}
	sent := `document.querySelector('.chip.pending') === null && document.querySelector('.fact.warn:not(.sound)') === null`
	dora.see("two stops, three parcels at the first",
		`document.querySelectorAll('.task').length === 2 && document.querySelectorAll('.next .parcel').length === 3`)
	step := func(words string) {
		t.Helper()
		dora.pressWords(".next .primary", words)
	}
	const open, done, new = tracking.StatusInProgress, tracking.StatusCompleted, tracking.StatusAssigned
	step("Start (3)")
	dora.see("that all are started", sent+` && document.querySelector('.next .primary')?.textContent === 'Arrived (3)'`)
	are("after one tap", open, open, open, new)
	step("Arrived (3)")
	dora.see("that she can deliver them", `document.querySelector('.next .primary.good`+ready+`') !== null`)
	dora.eval(`document.querySelectorAll('.parcel input')[1].click()`)
	step("Delivered (2)")
	dora.see("one that is left", `document.querySelectorAll('.next .parcel').length === 0 && document.querySelector('.next .address')?.textContent.startsWith('mill') && `+sent)
	are("after two of them", done, open, done, new)
	step("Delivered")
	dora.see("the next stop by itself", `document.querySelector('.next .address')?.textContent === 'Elsewhere 1'`)
	dora.see("how much is done", `document.querySelector('.today').textContent === '3 of 4 done today'`)
	are("at the end", done, done, done, new)
}

// The last step can be taken back after it was sent, also when the app is opened anew.
func TestTakeBack(t *testing.T) {
	s := newService(t, "")
	dora := s.driving()
	id := s.newTask(2, "#1001")
	dora.press(".task .primary")
	dora.arrive(".task")
	dora.press(".task .primary.good")
	dora.see("that it is done, and can be taken back",
		`document.querySelector('.next') === null && document.querySelector('.last')?.textContent.startsWith('#1001: Delivered')`)
	if now := s.status(id); now.Outcome != tracking.OutcomeSucceeded {
		t.Errorf("the task is %s %s", now.Status, now.Outcome)
	}
	dora.open(s.driver + "/driver/")
	dora.press(".last button")
	dora.see("the task as the next stop again, and nothing more to take back",
		`document.querySelector('.next .primary.good') !== null && document.querySelector('.last') === null`)
	dora.see("that nothing waits", `document.querySelector('.chip.pending') === null`)
	for began := time.Now(); s.status(id).Status != tracking.StatusInProgress; time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > patience {
			t.Fatal("the end of the task was never taken back")
		}
	}
}

// A break is off duty to the server; the phone keeps the word for it.
func TestBreak(t *testing.T) {
	s := newService(t, "")
	dora := s.driving()
	duty := func(want bool) {
		t.Helper()
		for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
			d, err := s.svc.Driver(t.Context(), "dora")
			if err == nil && d.Available == want {
				return
			}
			if time.Since(began) > patience {
				t.Fatalf("on duty: %v, want %v: %v", d.Available, want, err)
			}
		}
	}
	word := func(want string) {
		t.Helper()
		dora.see(want, `document.querySelector('.duty-words strong')?.textContent === '`+want+`'`)
	}
	word("Off duty")
	dora.press(".switch")
	word("On duty")
	duty(true)
	dora.press(".rest")
	word("On a break")
	duty(false)
	dora.open(s.driver + "/driver/")
	word("On a break")
	dora.see("since when", `document.querySelector('.duty-text').textContent.startsWith('Since ')`)
	dora.press(".switch")
	word("On duty")
	duty(true)
}

// Who is at the stop by the position need not say so.
func TestArrivedByItself(t *testing.T) {
	s := newService(t, "")
	dora := s.driving()
	task := s.api("POST", "/v1/task/create", map[string]any{
		"type": 2, "drop": map[string]any{"address": "Here", "lnglat": []float64{13.37, 52.51}},
	})["task"].(map[string]any)
	s.api("POST", "/v1/task/assign", map[string]any{"task_id": task["task_id"], "driver_id": "dora"})
	dora.press(".task .primary")
	dora.see("that she is on her way", `document.querySelector('.task .primary`+ready+`')?.textContent === 'Arrived'`)
	for began, i := time.Now(), 0; s.status(tracking.TaskID(task["task_id"].(string))).ArrivedAt.IsZero(); i++ {
		if time.Since(began) > patience {
			t.Fatal("the server never saw that she has arrived")
		}
		dora.stand(13.37+float64(i%2)*0.0001, 52.51) // 7 m
		dora.eval(`new Promise((done) => setTimeout(done, 500))`)
	}
	dora.see("what comes after that", `document.querySelector('.task .primary.good') !== null`)
}

// The way is shown by the app that the driver has chosen once.
func TestMapApp(t *testing.T) {
	s := newService(t, "")
	dora := s.driving()
	s.newTask(2, "")
	dora.press(".next .reach button.button")
	dora.see("the question", `document.querySelectorAll('dialog[open] a.choice').length === 3`)
	const waze = `https://waze.com/ul?q=12%20River%20Street&navigate=yes`
	dora.see("where each leads", `document.querySelectorAll('dialog a.choice')[1].href === '`+waze+`'`)
	dora.eval(`{ const a = document.querySelectorAll('dialog a.choice')[1]; a.addEventListener('click', (e) => e.preventDefault()); a.click(); }`)
	dora.see("no question, and a link instead",
		`document.querySelector('dialog') === null && document.querySelector('.next .reach a.button')?.href === '`+waze+`'`)
	dora.open(s.driver + "/driver/")
	dora.see("the same, after opening the app anew", `document.querySelector('.next .reach a.button')?.href === '`+waze+`'`)
	dora.eval(`location.hash = '#phone'`)
	dora.see("where it can be changed", `document.querySelectorAll('[name=maps]')[1].checked`)
}
