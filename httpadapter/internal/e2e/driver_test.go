package e2e_test

import (
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

const logo = `data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='120' height='40'><rect width='120' height='40' fill='teal'/></svg>`

// The app has the brand's logo, and does not say that it is the browser that cannot receive what
// the server does not send.
func TestBrandAndPushOff(t *testing.T) {
	server := serve(t, web.Site{Name: "Blue Parcel", Logo: logo}, nil)
	p := newPerson(t, chromium(t), "the driver", server.URL)
	p.open(server.URL + "/driver/")
	p.see("the logo, in place of the mark",
		`document.querySelector('.join-logo')?.naturalWidth === 120 && document.querySelector('.join-logo').alt === 'Blue Parcel' && document.querySelector('.app-mark') === null`)
	p.see("no word of plain http", `!document.body.innerText.includes('plain http')`)
	p.eval(`document.querySelector('input[name=code]').value = '100000'; document.querySelector('form').requestSubmit()`)
	p.see("the app", `document.querySelector('.head') !== null`)
	p.eval(`location.hash = '#phone'`)
	p.see("that the service sends no notices",
		`document.body.innerText.includes('This service sends no notices to locked phones')`)
	p.see("no word of the browser", `!document.body.innerText.includes('This browser cannot receive')`)
}

// Over plain http from another machine, browsers give a page neither a position nor a worker. The
// app says so, and is of use as far as it goes.
func TestPlainHTTP(t *testing.T) {
	server := serve(t, web.Site{PushKey: "B" + strings.Repeat("A", 86)}, nil)
	url := strings.Replace(server.URL, "127.0.0.1", elsewhere, 1)
	p := newPerson(t, chromium(t), "the driver", server.URL)
	p.open(url + "/driver/")
	p.see("where to enter the code, and what is wrong",
		`!isSecureContext && document.querySelector('input[name=code]') !== null && document.querySelector('.join .note.warn')?.textContent.includes('plain http')`)
	p.eval(`document.querySelector('input[name=code]').value = '100001'; document.querySelector('form').requestSubmit()`)
	p.see("the app, and what is wrong",
		`document.querySelector('.switch')?.getAttribute('aria-checked') === 'true' && document.querySelector('.banner.problem')?.textContent.includes('plain http')`)
	p.see("why there is no position",
		`document.querySelector('.fact.bad')?.textContent === 'No position over plain http'`)
	p.eval(`location.hash = '#phone'`)
	p.see("why there are no notices", `document.body.innerText.includes('Over plain http there are no notices')`)
	p.eval(`document.querySelectorAll('details').forEach((d) => d.open = true)`)
	p.see("an address to copy by hand",
		`document.querySelector('.template') !== null && ![...document.querySelectorAll('.phone-app button')].length`)
}

// What tells of a task goes when the driver has come to the task, by whichever way.
func TestBannerOfTask(t *testing.T) {
	s := newService(t, "")
	link, _ := s.invite("dora", "Dora")
	dora := newPerson(t, chromium(t), "the driver", s.origins[1])
	dora.stand(13.37, 52.51)
	dora.open(link)
	dora.click(".join .primary")
	dora.see("the app", `document.querySelector('.head') !== null`)
	// Not by a click at a place: what comes and goes above moves the rest.
	tap := func(selector string) { dora.eval(`document.querySelector('` + selector + `').click()`) }
	for _, way := range []string{".task .card-link", ".banner.news a"} {
		task := s.api("POST", "/v1/task/create", map[string]any{
			"type": 2, "drop": map[string]any{"address": "12 River Street"},
		})["task"].(map[string]any)
		s.api("POST", "/v1/task/assign", map[string]any{"task_id": task["task_id"], "driver_id": "dora"})
		dora.see("the task and its banner",
			`document.querySelector('.task .card-link') !== null && document.querySelector('.banner.news a') !== null`)
		tap(way)
		dora.see("the task", `document.querySelector('.detail .bar') !== null`)
		dora.see("no banner after "+way, `document.querySelector('.banner.news') === null`)
		dora.press(".detail .primary")
		dora.arrive(".detail")
		dora.press(".detail .primary.good")
		dora.see("that it is done", `document.querySelector('.chip.succeeded') !== null`)
		tap(".back")
		dora.see("no open task", `document.querySelector('.empty') !== null`)
	}
}
