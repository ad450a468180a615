package e2e_test

import (
	"testing"

	"github.com/seed-8aba7b13/tracking"
)

// A task is deleted by the keyboard alone, after a question that names what goes; one that a driver
// has is not. A customer is erased from the tasks of the number, once none of them is open.
func TestBoardRemoval(t *testing.T) {
	s := onFile(t)
	s.invite("dora", "Dora Example")
	create := func(order, mobile string) tracking.TaskID {
		t.Helper()
		return tracking.TaskID(s.api("POST", "/v1/task/create", map[string]any{
			"type": 2, "order_id": order, "drop": map[string]any{
				"address": "12 River Street", "lnglat": []float64{13.4, 52.5},
				"customer": map[string]any{"name": "Anna", "mobile": mobile},
			},
		})["task"].(map[string]any)["task_id"].(string))
	}
	gone, kept := create("#1", "+49 151 1234567"), create("#2", "+49 (151) 123-4567")
	other, given := create("#3", "0151 1234567"), create("#4", "+49 151 7654321")
	ended := create("#5", "+491511234567")
	s.api("POST", "/v1/task/assign", map[string]any{"task_id": given, "driver_id": "dora"})
	for _, id := range []tracking.TaskID{ended, other} {
		s.api("POST", "/v1/task/complete", map[string]any{"task_id": id, "outcome": "failed", "reason": "not there"})
	}
	p := s.atPanels()
	p.see("the tasks", `document.querySelectorAll('.needs [data-row^="task "]').length >= 3`)
	there := func(id tracking.TaskID) bool {
		_, err := s.svc.Task(t.Context(), id)
		return err == nil
	}

	// Of a task that somebody has, Del says what to do first.
	p.eval(`location.hash = '#task/` + string(given) + `'`)
	p.panel("task")
	p.see("the task", `document.querySelector('.panel-task .history li') !== null`)
	p.keys("\x7f")
	p.said("#4 cannot be deleted yet")
	p.see("no question", `document.querySelector('.removal form') === null`)

	// Del asks, with the focus on what does nothing; Tab and Enter do it.
	p.eval(`location.hash = '#task/` + string(gone) + `'`)
	p.see("the task", `document.querySelector('.panel-task .task-name')?.textContent === '#1'`)
	p.keys("\x7f")
	p.reads("#1 is deleted for ever")
	p.see("the focus on what does nothing", `document.activeElement?.textContent === 'Keep it'`)
	p.keys("\r")
	p.see("that it asks no more", `document.querySelector('.removal form') === null`)
	if !there(gone) {
		t.Error("it was deleted though it was to be kept")
	}
	p.keys("\x7f")
	p.see("the focus on what does nothing", `document.activeElement?.textContent === 'Keep it'`)
	p.keys("\t\r")
	p.said("#1 was deleted")
	p.see("no panel, and no row", `document.querySelector('.panel') === null && document.querySelector('[data-row="task `+string(gone)+`"]') === null`)
	if there(gone) {
		t.Error("it is still there")
	}

	// A customer with an open task is not erased, and that task is named.
	p.eval(`location.hash = '#task/` + string(ended) + `'`)
	p.see("the task", `document.querySelector('.panel-task .task-name')?.textContent === '#5'`)
	p.hit("Erase Anna")
	p.reads("Anna, +491511234567 is erased for ever")
	p.see("the task in the way, and no other", `(() => {
		const open = [...document.querySelectorAll('.removal [role=alert] a')].map((a) => a.textContent);
		return open.join() === '#2' && document.querySelector('.removal .do.bad').disabled;
	})()`)
	s.api("POST", "/v1/task/complete", map[string]any{"task_id": kept})
	p.eval(`(() => {
		const send = window.fetch;
		let broken = false;
		window.mend = () => (window.fetch = send);
		window.fetch = (url, how) => {
			const erase = String(url).endsWith('/contact/erase');
			broken ||= erase;
			if (!broken) return send(url, how);
			return erase ? Promise.resolve(Response.json({ success: false, message: 'no', error: { code: 'conflict' } }, { status: 409 })) : Promise.reject(new TypeError('gone'));
		};
	})()`)
	p.hit("Erase from 2 tasks")
	p.reads("This could not be read.")
	p.see("nothing that says it is still being read", `!document.querySelector('.removal').innerText.includes('Loading')`)
	p.eval(`mend()`)
	p.hit("Keep it")
	p.hit("Erase Anna")
	p.see("that nothing is in the way", `document.querySelector('.removal [role=alert]') === null && !document.querySelector('.removal .do.bad').disabled`)
	p.hit("Erase from 2 tasks")
	p.said("Anna was erased from 2 tasks")
	p.see("that she is gone, and what stays", `(() => {
		const text = document.querySelector('.panel').innerText;
		return document.querySelector('.task-name').textContent === '#5' && !/Anna|River|1234567|not there/.test(text) && text.includes('Customer erased') && !text.includes('Reopen') && !text.includes('Try again');
	})()`)
	for id, name := range map[tracking.TaskID]string{ended: "", kept: "", other: "Anna"} {
		got := s.status(id)
		if c := got.Drop.Customer; c == nil && name != "" || c != nil && c.Name != name {
			t.Errorf("the customer of %s is %+v", got.OrderID, c)
		}
	}
	p.onlyFrom(s.origins[0])
}

// Del in the panel of a task that is gone asks about no other one.
func TestBoardRemovalOfWhatIsGone(t *testing.T) {
	s := onFile(t)
	create := func(order string) string {
		return s.api("POST", "/v1/task/create", map[string]any{
			"type": 2, "order_id": order, "drop": map[string]any{"address": "12 River Street", "lnglat": []float64{13.4, 52.5}},
		})["task"].(map[string]any)["task_id"].(string)
	}
	gone, other := create("#1"), create("#2")
	p := s.atPanels()
	p.expected = append(p.expected, "status of 404")
	p.see("the tasks", `document.querySelectorAll('.needs [data-row^="task "]').length === 2`)
	p.eval(`location.hash = '#task/` + gone + `'`)
	p.see("the task", `document.querySelector('.panel-task .task-name')?.textContent === '#1'`)
	s.api("POST", "/v1/task/delete", map[string]any{"task_id": gone})
	p.reads("It is not there any more.")
	p.keys("\x7f\x1b")
	p.see("no panel", `document.querySelector('.panel') === null`)
	p.eval(`location.hash = '#task/` + other + `'`)
	p.see("the task", `document.querySelector('.panel-task .history li') !== null`)
	p.eval(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 100))))`) // what would ask
	p.see("no question", `document.querySelector('.removal button') !== null && document.querySelector('.removal form') === null`)
}
