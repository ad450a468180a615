package e2e_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"strings"
)

func (s *scenario) tasks(as caller) {
	s.Helper()
	task := s.task(`,"customer":{"name":"Shop","mobile":null},"notes":"Ring twice","time":"2026-03-14T10:30Z","unknown":1`)
	id := `{"task_id":"` + task + `"`
	s.app(200, "GET", "/v1/task?task_id="+task, "")
	s.app(404, "GET", "/v1/task?task_id=unknown", "")
	s.app(200, "GET", "/v1/task/list?status=created,assigned&order_id=%231&page=1&limit=1000", "")
	s.app(200, "GET", "/v1/task/list?driver_id=unknown", "")
	s.app(400, "GET", "/v1/task/list?status=assigned,,completed", "")
	body := `{"type":2,"drop":{"address":"x"}}`
	s.app(200, "POST", "/v1/task/create", body, "Idempotency-Key: k1")
	s.app(200, "POST", "/v1/task/create", body, "Idempotency-Key: k1")
	s.app(409, "POST", "/v1/task/create", `{"type":2,"drop":{"address":"y"}}`, "Idempotency-Key: k1")

	// The customer's link, from beginning to end.
	link := strings.TrimPrefix(s.text(s.app(200, "GET", "/v1/task/trackingurl/"+task, ""), "webUrl"),
		"https://track.example")
	s.app(404, "GET", "/v1/task/trackingurl/unknown", "")
	look := func() {
		s.Helper()
		s.call(200, "GET", link, "")
		s.call(200, "GET", link+"/state", "")
		s.call(200, "HEAD", link+"/state", "")
	}
	look()
	s.call(200, "GET", link+"/live", "")

	s.app(404, "POST", "/v1/task/assign", id+`,"driver_id":"unknown"}`)
	s.app(200, "POST", "/v1/task/assign", id+`,"driver_id":"ravi"}`)
	look()
	as(200, "POST", "/v1/driver/tasks/"+task+"/decline", `{"reason":"Flat tyre"}`)
	s.app(200, "POST", "/v1/task/assign", id+`,"driver_id":"ravi"}`)
	s.app(200, "POST", "/v1/task/unassign", id+`}`)
	s.app(404, "POST", "/v1/task/unassign", `{"task_id":"unknown"}`)
	s.app(200, "POST", "/v1/task/assign", id+`,"driver_id":"ravi"}`)
	s.app(200, "POST", "/v1/task/update", id+`,"notes":"Back door","pickup":null,"time":"2026-03-14T12:00:00.5+05:30"}`)
	s.app(400, "POST", "/v1/task/update", id+`,"drop":{}}`)
	as(409, "POST", "/v1/driver/tasks/"+task+"/pickup", "")
	as(409, "POST", "/v1/driver/tasks/"+task+"/complete", "")
	as(404, "POST", "/v1/driver/tasks/unknown/start", "")
	as(200, "POST", "/v1/driver/tasks/"+task+"/start", `{"lnglat":[80.25,13.01],"at":null}`)
	as(409, "POST", "/v1/driver/tasks/"+task+"/decline", "{}")
	stops := `"stops":[{"task_id":"` + task + `","leg":"pickup"},{"task_id":"` + task + `","leg":"drop"}]`
	s.app(200, "GET", "/v1/task/candidates?limit=5&task_id="+task, "")
	s.app(200, "GET", "/v1/task/list?q=be&limit=1&created_from=2020-01-01T00:00Z&properties.zone=north", "")
	s.app(200, "GET", "/v1/task/list?limit=1&sort=window&late=true&waiting=true", "")
	s.app(400, "GET", "/v1/task/list?q=x", "")
	s.app(200, "GET", "/v1/task/counts", "")
	s.app(200, "GET", "/v1/session", "")
	s.call(200, "POST", "/v1/session", `{"key":"`+scenarioKey+`","role":"view"}`, "Content-Type: application/json")
	s.call(400, "POST", "/v1/session", `{}`, "Content-Type: application/json")
	s.call(401, "POST", "/v1/session", `{"token":"none"}`, "Content-Type: application/json")
	s.call(403, "POST", "/v1/session", `{"token":"none"}`, "Content-Type: application/json", "Sec-Fetch-Site: cross-site")
	s.call(403, "DELETE", "/v1/session", "", "Sec-Fetch-Site: cross-site")
	s.call(200, "DELETE", "/v1/session", "")
	s.app(200, "POST", "/v1/task/batch", `{"tasks":[{"type":2,"drop":{"address":"x"},"key":"k"},{"type":2}]}`)
	s.app(409, "POST", "/v1/task/update", id+`,"version":12345678,"notes":"x"}`)
	s.app(400, "GET", "/v1/task/counts?since=now", "")
	s.app(404, "GET", "/v1/task/candidates?task_id=unknown", "")
	s.app(200, "GET", "/v1/users/driver/route?driver_id=ravi", "")
	s.app(404, "GET", "/v1/users/driver/route?driver_id=nobody", "")
	s.app(200, "POST", "/v1/users/driver/route", `{"driver_id":"ravi",`+stops+`}`)
	s.app(409, "POST", "/v1/users/driver/route", `{"driver_id":"ravi","stops":[]}`)
	as(200, "GET", "/v1/driver/route", "")
	as(200, "POST", "/v1/driver/route", `{`+stops+`,"version":null}`)
	as(409, "POST", "/v1/driver/route", `{"stops":[]}`)
	as(404, "POST", "/v1/driver/tasks/unknown/arrive", "")
	as(200, "POST", "/v1/driver/tasks/"+task+"/arrive", "")
	look()
	s.call(200, "GET", link+"/live", "")
	as(200, "POST", "/v1/driver/tasks/"+task+"/pickup", "")
	as(200, "GET", "/v1/driver/tasks", "")
	as(200, "POST", "/v1/driver/tasks/"+task+"/complete", `{"outcome":"succeeded"}`)
	as(200, "GET", "/v1/driver/tasks", "")
	as(409, "POST", "/v1/driver/tasks/"+task+"/start", "")
	look()
	s.call(204, "GET", link+"/live", "")
	s.app(409, "POST", "/v1/task/cancel", id+`}`)
	s.app(409, "POST", "/v1/task/complete", id+`,"outcome":"failed"}`)
	s.app(200, "POST", "/v1/task/cancel", `{"task_id":"`+s.task("")+`","reason":"Ordered twice"}`)
	s.app(200, "POST", "/v1/task/complete", `{"task_id":"`+s.task("")+`","outcome":"failed","reason":"Nobody there"}`)
	s.task(`,"auto_assign":null`)
	s.app(200, "POST", "/v1/task/trackingurl/revoke", id+`}`)
	s.app(404, "POST", "/v1/task/trackingurl/revoke", `{"task_id":"unknown"}`)
	s.call(404, "GET", link, "")
}

// takesBack has steps and ends taken back, and tasks handed over.
func (s *scenario) takesBack(as caller) {
	s.Helper()
	s.app(200, "POST", "/v1/users/driver", `{"driver_id":"relief"}`)
	task := s.task("")
	id, own := `{"task_id":"`+task+`"`, "/v1/driver/tasks/"+task
	s.app(200, "POST", "/v1/task/assign", id+`,"driver_id":"ravi"}`)
	as(200, "POST", own+"/start", "")
	as(200, "POST", own+"/undo", "")
	as(200, "POST", own+"/undo", `{"step":"start","at":null}`)
	as(200, "POST", own+"/start", "")
	as(200, "POST", own+"/complete", "")
	as(200, "POST", own+"/undo", `{"step":"complete","lnglat":[80.25,13.01]}`)
	as(409, "POST", own+"/undo", "")
	as(400, "POST", own+"/undo", `{"step":"arrive"}`)
	as(404, "POST", "/v1/driver/tasks/unknown/undo", "")
	s.app(409, "POST", "/v1/task/assign", id+`,"driver_id":"relief"}`)
	s.app(200, "POST", "/v1/task/assign", id+`,"driver_id":"relief","force":true}`)
	as(200, "POST", own+"/stuck", `{"step":"complete","at":"2026-03-14T09:20:00Z","why":"gone"}`)
	as(200, "POST", own+"/stuck", `{"step":"arrive","why":null}`)
	as(400, "POST", own+"/stuck", `{"step":"sing"}`)
	as(404, "POST", "/v1/driver/tasks/unknown/stuck", `{"step":"complete"}`)
	s.app(200, "GET", "/v1/task?task_id="+task, "")
	as(200, "POST", own+"/settle", `{"step":"arrive"}`)
	as(404, "POST", "/v1/driver/tasks/unknown/settle", "")
	s.app(200, "POST", "/v1/task/settle", id+`}`)
	s.app(200, "POST", "/v1/geocode", `{"address":"Beach Road"}`)
	s.app(404, "POST", "/v1/geocode", `{"address":"12 Elm Street"}`)
	s.app(400, "POST", "/v1/geocode", `{"address":""}`)
	as(200, "POST", own+"/settle", "")
	s.app(400, "POST", "/v1/task/settle", `{}`)
	s.app(404, "POST", "/v1/task/settle", `{"task_id":"unknown"}`)
	s.app(200, "POST", "/v1/task/cancel", id+`}`)
	s.app(200, "POST", "/v1/task/reopen", id+`}`)
	s.app(200, "POST", "/v1/task/reopen", id+`}`)
	s.app(400, "POST", "/v1/task/reopen", `{}`)
	s.app(404, "POST", "/v1/task/reopen", `{"task_id":"unknown"}`)

	const hand = "/v1/users/driver/handover"
	s.app(200, "POST", hand, `{"from":"relief","to":"ravi","task_ids":["`+task+`"]}`)
	as(200, "POST", own+"/start", "")
	s.app(409, "POST", hand, `{"from":"ravi","to":"relief","task_ids":["`+task+`"],"force":false}`)
	s.app(200, "POST", hand, `{"from":"ravi","to":"relief","task_ids":["`+task+`"],"force":true}`)
	s.app(200, "POST", hand, `{"from":"relief","to":"ravi","task_ids":null}`)
	s.app(200, "POST", hand, `{"from":"relief","to":"ravi"}`)
	s.app(400, "POST", hand, `{"from":"ravi","to":"ravi"}`)
	s.app(404, "POST", hand, `{"from":"ravi","to":"unknown"}`)
	as(200, "GET", "/v1/driver/notifications", "")
	s.app(200, "GET", "/v1/events?task_id="+task, "")
	s.app(200, "POST", "/v1/task/cancel", id+`}`)
}

// triesAgain has a customer write, and a task that failed tried again.
func (s *scenario) triesAgain(as caller) {
	s.Helper()
	const isJSON = "Content-Type: application/json"
	first := s.task("")
	id := `{"task_id":"` + first + `"`
	link := strings.TrimPrefix(s.text(s.app(200, "GET", "/v1/task/trackingurl/"+first, ""), "webUrl"),
		"https://track.example")
	s.app(200, "POST", "/v1/task/assign", id+`,"driver_id":"ravi"}`)
	s.call(200, "POST", link+"/note", `{"text":"The bell is broken.\nPlease knock."}`, isJSON)
	s.call(400, "POST", link+"/note", `{"text":""}`, isJSON)
	s.call(413, "POST", link+"/note", `{"text":"`+strings.Repeat("x", 4<<10)+`"}`, isJSON)
	s.call(415, "POST", link+"/note", `text=x`, "Content-Type: application/x-www-form-urlencoded")
	s.call(404, "POST", "/track/unknown/note", `{"text":"x"}`, isJSON)
	for n := range 9 {
		s.call(200, "POST", link+"/note", fmt.Sprintf(`{"text":"%d"}`, n), isJSON)
	}
	s.call(429, "POST", link+"/note", `{"text":"x"}`, isJSON)
	as(200, "GET", "/v1/driver/tasks", "")

	s.app(409, "POST", "/v1/task/retry", id+`}`)
	s.app(200, "POST", "/v1/task/complete", id+`,"outcome":"failed","reason_code":"not_home"}`)
	s.call(409, "POST", link+"/note", `{"text":"y"}`, isJSON)
	s.call(200, "GET", link+"/state", "")
	s.app(200, "POST", "/v1/task/retry", id+`,"window":{"from":"2026-03-15T09:00Z","to":null},"promised":"2026-03-15T10:00Z"}`)
	s.app(200, "POST", "/v1/task/retry", id+`}`)
	s.app(400, "POST", "/v1/task/retry", id+`,"window":{"from":"tomorrow"}}`)
	s.app(404, "POST", "/v1/task/retry", `{"task_id":"unknown"}`)
	s.call(200, "GET", link, "")
	s.call(200, "GET", link+"/state", "")
	s.call(200, "GET", link+"/live", "")
}

// proof is a delivery that asks for everything.
func (s *scenario) proof(as caller) {
	s.Helper()
	task := s.task(`,"proof":["photo","signature","name","pin"]`)
	pin := s.text(s.app(200, "GET", "/v1/task?task_id="+task, ""), "task", "pin")
	link := strings.TrimPrefix(s.text(s.app(200, "GET", "/v1/task/trackingurl/"+task, ""), "webUrl"),
		"https://track.example")
	s.app(200, "POST", "/v1/task/assign", `{"task_id":"`+task+`","driver_id":"ravi"}`)
	s.app(200, "POST", "/v1/task/update", `{"task_id":"`+task+`","proof":["photo","pin","name"]}`)
	s.app(400, "POST", "/v1/task/update", `{"task_id":"`+task+`","proof":["video"]}`)
	own := "/v1/driver/tasks/" + task
	as(200, "POST", own+"/start", `{"lnglat":[80.25,13.01]}`)
	as(200, "POST", own+"/pickup", "")
	as(200, "POST", own+"/arrive", "")
	s.call(200, "GET", link+"/state", "") // with the PIN

	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 2, 2))); err != nil {
		s.Fatal(err)
	}
	photo := s.text(as(200, "PUT", own+"/proof/photo", picture.String(), "Content-Type: image/png"), "proof", "id")
	as(200, "PUT", own+"/proof/signature", picture.String())
	as(400, "PUT", own+"/proof/name", picture.String())
	as(400, "PUT", own+"/proof/photo", picture.String()[:30])
	as(413, "PUT", own+"/proof/photo", strings.Repeat("x", 2<<20+1))
	as(415, "PUT", own+"/proof/photo", "GIF89a", "Content-Type: image/gif")
	as(404, "PUT", "/v1/driver/tasks/unknown/proof/photo", picture.String())
	where := "?task_id=" + task + "&id="
	as(200, "GET", "/v1/driver/proof"+where+photo, "")
	as(404, "GET", "/v1/driver/proof"+where+"unknown", "")
	s.app(200, "GET", "/v1/task/proof"+where+photo, "")
	s.app(404, "GET", "/v1/task/proof"+where+"unknown", "")

	s.call(404, "GET", link+"/proof/"+photo, "")
	as(409, "POST", own+"/complete", `{"received_by":"Priya"}`)
	as(200, "POST", own+"/complete", `{"received_by":"Priya","pin":"`+pin+`","note":"Blue door","lnglat":[80.26,13]}`)
	s.app(200, "GET", "/v1/task?task_id="+task, "")
	s.call(200, "GET", link+"/state", "")
	s.call(200, "GET", link+"/proof/"+photo, "")
}
