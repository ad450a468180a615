package httpadapter_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

// TestSecretsStayWhereTheyBelong goes through a delivery and through many refused calls with marked
// secrets, and then looks for the marks.
func TestSecretsStayWhereTheyBelong(t *testing.T) {
	const key, mobile, note, name = "canary-key-7f3a", "+canary-mobile", "canary-note", "Canaryname"
	const written = "canary-of-the-customer"
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) {
		ho.Keys[key] = httpadapter.Principal{App: "a", Actor: "key:canary"}
	})
	type seen struct {
		what string
		r    reply
	}
	var all []seen
	call := func(method, target, body string, headers ...string) reply {
		t.Helper()
		r := s.do(method, target, body, headers...)
		all = append(all, seen{method + " " + target + " " + body, r})
		return r
	}
	withKey := func(method, target, body string, headers ...string) reply {
		t.Helper()
		return call(method, withKey(target, key), body, headers...)
	}

	inv := s.data(withKey("POST", "/v1/invite_user",
		`{"user_id":"ravi","name":"Ravi `+name+`","mobile":"`+mobile+`","email":"canary@mail.example"}`))
	invite, code := strings.TrimPrefix(text(inv, "url"), s.base+"/join/"), fmt.Sprintf("%.0f", at(inv, "invite_code"))
	call("GET", "/join/"+invite, "")
	joined := s.data(call("POST", "/v1/driver/join", `{"invite_code":"`+code+`","nonce":"canary-nonce"}`))
	token, ingest := text(joined, "token"), strings.TrimPrefix(text(joined, "ingest_url"), s.base+"/ingest/")
	asDriver := func(method, target, body string) reply {
		t.Helper()
		return call(method, target, body, "Authorization: Bearer "+token)
	}
	s.data(asDriver("POST", "/v1/driver/availability", `{"availability":true}`))
	task := text(s.data(withKey("POST", "/v1/task/create",
		`{"type":2,"drop":{"lnglat":[80.27,13.08],"address":"x","customer":{"name":"`+name+`","mobile":"`+mobile+
			`"}},"notes":"`+note+`","proof":["photo","pin"]}`)), "task", "task_id")
	s.data(withKey("POST", "/v1/task/assign", `{"task_id":"`+task+`","driver_id":"ravi"}`))
	s.data(withKey("POST", "/v1/assign_trip?tracking_id=T&user_id=ravi&message="+note, ""))
	link := strings.TrimPrefix(text(s.data(withKey("GET", "/v1/task/trackingurl/"+task, "")), "webUrl"), s.base)
	track := strings.TrimPrefix(link, "/track/")
	s.data(asDriver("POST", "/v1/driver/tasks/"+task+"/start", `{"lnglat":[80.26,13]}`))
	for range 2 {
		call("POST", link+"/note", `{"text":"`+written+`"}`, "Content-Type: application/json")
		call("GET", link, "")
		call("GET", link+"/state", "")
		call("GET", link+"?apikey="+key, "", "X-Api-Key: "+key, "Authorization: Bearer "+token)
		s.clock.Advance(time.Minute)
		if asDriver("POST", "/v1/driver/tasks/"+task+"/complete",
			`{"outcome":"failed","reason":"`+note+`","received_by":"`+name+`","note":"`+note+`"}`).status != 200 {
			t.Fatal("not completed")
		}
	}
	v := s.watch(link) // over: no content
	v.res.Body.Close()
	again := text(s.data(withKey("POST", "/v1/task/retry", `{"task_id":"`+task+`"}`)), "task", "task_id")
	s.data(withKey("POST", "/v1/task/cancel", `{"task_id":"`+again+`","reason":"`+note+`","reason_code":"closed"}`))
	asDriver("PUT", "/v1/driver/tasks/"+task+"/proof/photo", pictureOf(1))
	asDriver("PUT", "/v1/driver/tasks/"+task+"/proof/photo", "GIF89a "+name)
	asDriver("PUT", "/v1/driver/tasks/"+task+"/proof/"+mobile, pictureOf(1))
	asDriver("POST", "/v1/driver/tasks/"+task+"/complete", `{"received_by":"`+name+`","note":"`+note+`"}`)
	asDriver("POST", "/v1/driver/tasks/"+task+"/complete", `{"received_by":"`+name+strings.Repeat("x", 200)+`"}`)
	asDriver("POST", "/v1/driver/tasks/"+task+"/complete", `{"pin":"`+mobile+`"}`)
	for range 2 {
		call("GET", link, "")
		call("GET", link+"/state", "")
		call("POST", link+"/note", `{"text":"`+written+`"}`, "Content-Type: application/json")
	}
	withKey("GET", "/v1/events", "")

	// Everything that is refused, with the secrets in every place.
	for _, target := range []string{"/v1/nothing", "//v1/task", "/v1/task/", "/v1/task?page=%zz",
		"/v1/task?a=" + key + "&a=" + key, "/v1/task/list?page=" + key, "/v1/task/list?status=" + key,
		"/v1/users/drivers?position=" + key + "&properties." + key + "=",
		"/v1/task?task_id=" + key, "/v1/trips/" + key, "/v1/events?after=" + key,
		"/v1/task/list?" + strings.Repeat(key, 600), "/v1/task/create", "/track/" + key + "/x", "/track/" + track + "x",
		"/join/" + key + "/x/y", "/v1/driver/me", "/ingest/" + ingest + "/x/y", "/" + track, "/v1/" + invite} {
		withKey("GET", target, "")
		withKey("POST", target, `{"`+key+`":1,"`+key+`":2}`)
		withKey("POST", target, `{"type":"`+key+`","task_id":7,"email":"`+mobile+`@@"}`)
		withKey("OPTIONS", target, "", "Origin: https://shop.example")
		call("GET", target, "", "X-Api-Key: "+key+"x", "Authorization: Bearer "+token+"x")
		call(strings.ToUpper(strings.ReplaceAll(key, "-", "")), target, "")
	}
	for _, body := range []string{
		`{"type":2,"drop":{"address":"x","customer":{"mobile":"` + mobile + strings.Repeat("x", 40) + `"}}}`,
		`{"type":2,"drop":{"lnglat":"` + mobile + `"}}`, `{"type":2,"drop":{"address":"x"},"time":"` + mobile + `"}`,
		`{"type":2,"drop":{"address":"x"},"notes":"` + note + `\u0000"}`, `{"` + mobile + `"`,
	} {
		withKey("POST", "/v1/task/create", body)
		withKey("POST", "/v1/task/create", `{"type":2,"drop":{"address":"x"}}`,
			"Idempotency-Key: "+strings.Repeat(mobile, 20))
	}
	for range 7 {
		call("POST", "/v1/driver/join", `{"invite_code":"`+code+`"}`)
		call("POST", "/v1/driver/join", `{"invite":"`+invite+`"}`)
	}

	secrets := map[string]string{
		"key": key, "app token": token, "ingest token": ingest, "invite": invite, "code": code,
		"tracking token": track, "mobile": mobile, "note": note, "nonce": "canary-nonce", "name": name,
		"customer's note": written,
		"e-mail":          "canary@mail",
	}
	log := s.log.String()
	for what, secret := range secrets {
		if i := strings.Index(log, secret); i >= 0 {
			t.Errorf("the log has the %s: %s", what, log[max(0, i-200):i+len(secret)])
		}
	}
	if !strings.Contains(log, "request_id=") || strings.Count(log, "request_id=") < len(all) {
		t.Errorf("the log has %d lines for %d calls", strings.Count(log, "request_id="), len(all))
	}
	for _, c := range all {
		var headers strings.Builder
		c.r.header.Write(&headers)
		for what, secret := range secrets {
			if strings.Contains(headers.String(), secret) {
				t.Errorf("%.80s: the %s is in a header: %s", c.what, what, headers.String())
			}
			if strings.Contains(c.r.body, secret) && !belongs(what, c.what, c.r) {
				t.Errorf("%.80s: the %s is in the body: %.300s", c.what, what, c.r.body)
			}
		}
	}
}

// belongs tells where a secret may be.
func belongs(secret, call string, r reply) bool {
	if r.status != http.StatusOK {
		return false
	}
	created, invited, joined := strings.HasPrefix(call, "POST /v1/task/"), strings.HasPrefix(call,
		"POST /v1/invite_user"), strings.HasPrefix(call, "POST /v1/driver/join")
	own := strings.Contains(call, " /v1/driver/")
	switch secret {
	case "invite", "code":
		return invited
	case "app token", "ingest token":
		return joined
	case "tracking token":
		// its own page asks for its state
		return strings.Contains(call, "/trackingurl/") || strings.HasPrefix(call, "POST /v1/task/create") ||
			strings.HasPrefix(call, "GET /track/") && strings.Contains(r.header.Get("Content-Type"), "html")
	case "customer's note":
		return created || own || strings.HasPrefix(call, "GET /track/") // who has the link has written it
	case "mobile", "note", "name", "e-mail":
		return created || own
	}
	return false
}
