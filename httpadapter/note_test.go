package httpadapter_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

const isJSON = "Content-Type: application/json"

// note writes by a link.
func (s *server) note(link, text string, headers ...string) reply {
	s.Helper()
	b, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		s.Fatal(err)
	}
	if headers == nil {
		headers = []string{isJSON}
	}
	return s.do("POST", link+"/note", string(b), headers...)
}

// TestNoteOverHTTP: what the holder of a link writes reaches the driver and the application, and is
// repeated nowhere else; the last note stands.
func TestNoteOverHTTP(t *testing.T) {
	s := newServer(t)
	token, task := s.newDriver("ravi"), s.newTask("")
	s.data(s.assign(task, "ravi"))
	link := s.link(task)
	v := s.watch(link)
	v.next()
	const text1, text2 = "canary <b>1</b>\nzweite Zeile 👍", "canary 2"
	for i, note := range []string{text1, text1, text2} {
		r := s.note(link, note)
		if r.status != 200 || r.body != `{"message":"Note sent","success":true}`+"\n" ||
			r.header.Get("Cache-Control") != "no-store" || r.header.Get("X-Robots-Tag") != "noindex, nofollow" {
			t.Errorf("note %d: %d %v %s", i, r.status, r.header, r.body)
		}
		if got := s.state(link)["customer_note"]; got != note {
			t.Errorf("note %d: the link shows %q", i, got)
		}
	}
	if event, data := v.next(); event != "state" || !strings.Contains(data, "canary") {
		t.Errorf("who watches is told %s %s", event, data)
	}
	events := s.app("GET", "/v1/events?task_id="+task, "")
	var noted int
	for _, e := range s.data(events)["events"].([]any) {
		if text(e, "type") == "task.noted" {
			if noted++; text(e, "actor") != "customer" || len(at(e, "data").(map[string]any)) != 0 {
				t.Errorf("the event: %v", e)
			}
		}
	}
	if noted != 2 || strings.Contains(events.body, "canary") {
		t.Errorf("%d events; with the text: %v", noted, strings.Contains(events.body, "canary"))
	}
	for what, r := range map[string]reply{
		"the task": s.app("GET", "/v1/task?task_id="+task, ""), "the list": s.app("GET", "/v1/task/list", ""),
		"the driver's tasks": s.asDriver(token, "GET", "/v1/driver/tasks", ""),
	} {
		if !strings.Contains(r.body, `"customer_note":"canary 2"`) {
			t.Errorf("%s: %s", what, r.body)
		}
	}
	if got := s.told("ravi"); !slices.Equal(got, []string{"assigned", "noted", "noted"}) {
		t.Errorf("the driver is told %q", got)
	}
	feed := s.asDriver(token, "GET", "/v1/driver/notifications", "").body
	if strings.Count(feed, `"kind":"noted"`) != 2 || !strings.Contains(feed, `"customer_note":"canary 2"`) {
		t.Errorf("the driver's feed: %s", feed)
	}
	for _, e := range s.filled(task) { // as a webhook has it: beside the event
		if data := at(e, "data").(map[string]any); text(e, "type") == "task.noted" && (len(data) > 0 ||
			text(e, "task", "customer_note") != text2) {
			t.Errorf("a webhook is told %v", e)
		}
	}
	if strings.Contains(s.log.String(), "canary") {
		t.Error("the log has the note")
	}

	// Afterwards the driver has no more to do with it.
	s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/start", ""))
	s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/complete", ""))
	for _, target := range []string{"/v1/driver/tasks", "/v1/driver/notifications"} {
		if r := s.asDriver(token, "GET", target, ""); strings.Contains(r.body, "canary") {
			t.Errorf("%s of one that is done: %s", target, r.body)
		}
	}
	if got := s.data(s.app("GET", "/v1/task?task_id="+task, "")); text(got, "task", "customer_note") != text2 {
		t.Errorf("the application: %v", got)
	}
	if r := s.note(link, "too late"); r.status != 409 || s.state(link)["customer_note"] != text2 {
		t.Errorf("after the end: %d %s", r.status, r.body)
	}
}

// TestNoteRefuses: each limit by its name, and nothing that a form of another site's can send.
func TestNoteRefuses(t *testing.T) {
	s := newServer(t)
	task := s.newTask("")
	link := s.link(task)
	trip := func() string {
		token := s.newDriver("ravi")
		started := s.data(s.asDriver(token, "POST", "/v1/driver/trips", `{"tracking_id":"x","lnglat":[80,13]}`))
		id := text(started, "trip", "_id")
		url := text(s.data(s.app("GET", "/v1/trips/trackingurl/"+id, "")), "webUrl")
		return strings.TrimPrefix(url, s.base)
	}()
	gone := s.do("GET", "/track/nobody/state", "").sameButID()
	for _, c := range []struct {
		link, body, header string
		status             int
		field              string
	}{
		{link, `{"text":""}`, isJSON, 400, "text"},
		{link, `{"text":" \n"}`, isJSON, 400, "text"},
		{link, `{}`, isJSON, 400, "text"},
		{link, `{"text":null}`, isJSON, 400, "text"},
		{link, `{"text":7}`, isJSON, 400, "text"},
		{link, `{"text":["canary"]}`, isJSON, 400, "text"},
		{link, `{"text":"a","text":"b"}`, isJSON, 400, "text"},
		{link, `{"Text":"canary"}`, isJSON, 400, "text"},
		{link, `{"text":"canary\u0000"}`, isJSON, 400, "text"},
		{link, `{"text":"canary\t"}`, isJSON, 400, "text"},
		{link, `{"text":"canary\r\n"}`, isJSON, 400, "text"},
		{link, `{"text":"canary\u0085"}`, isJSON, 400, "text"},
		{link, `{"text":"` + strings.Repeat("ü", 281) + `"}`, isJSON, 400, "text"},
		{link, `{"text":"\ud800"}`, isJSON, 400, "text"},
		{link, `"canary"`, isJSON, 400, ""},
		{link, `text=canary`, isJSON, 400, ""},
		{link, ``, isJSON, 400, ""},
		{link, `{"text":"x","pad":"` + strings.Repeat("x", 4<<10) + `"}`, isJSON, 413, ""},
		{link, `{"text":"canary"}`, "X-None: x", 415, ""}, // as a page elsewhere can send without asking
		{link, `{"text":"canary"}`, "Content-Type: text/plain", 415, ""},
		{link, `{"text":"canary"}`, "Content-Type: text/plain; x=application/json", 415, ""},
		{link, `text=canary`, "Content-Type: application/x-www-form-urlencoded", 415, ""},
		{link, `{"text":"canary"}`, "Content-Type: multipart/form-data; boundary=x", 415, ""},
		{link, `{"text":"canary"}`, "Content-Type: application/json; charset=latin1", 415, ""},
		{trip, `{"text":"canary"}`, isJSON, 404, ""},
		{"/track/nobody", `{"text":"canary"}`, isJSON, 404, ""},
	} {
		r := s.do("POST", c.link+"/note", c.body, c.header)
		code, field := r.failure()
		if r.status != c.status || code != codes[c.status] || field != c.field {
			t.Errorf("%.60s with %s: %d %s", c.body, c.header, r.status, r.body)
		}
		if c.status == 404 && r.sameButID() != gone {
			t.Errorf("%s: %s, an unknown link's state is %s", c.link, r.body, gone)
		}
		if strings.Contains(r.body, "canary") || s.state(link)["customer_note"] != "" {
			t.Errorf("%.60s: it is repeated, or kept: %s", c.body, r.body)
		}
	}
	if r := s.do("GET", link+"/note", ""); r.status != 405 || r.header.Get("Allow") != "OPTIONS, POST" {
		t.Errorf("GET: %d, Allow %q", r.status, r.header.Get("Allow"))
	}
	whole := strings.Repeat(`\ud83d\udc4d`, 280) // as long as a note can be on the wire
	r := s.do("POST", link+"/note?x=1&x=%zz", `{"text":"`+whole+`","other":1}`, isJSON+"; charset=utf-8")
	if r.status != 200 {
		t.Errorf("280 characters, escaped: %d %s", r.status, r.body)
	}
	s.data(s.app("POST", "/v1/task/trackingurl/revoke", `{"task_id":"`+task+`"}`))
	if r := s.note(link, "canary"); r.status != 404 || r.sameButID() != gone {
		t.Errorf("revoked: %d %s", r.status, r.body)
	}
}

// TestNotesADayOverHTTP: the eleventh is told when to come again.
func TestNotesADayOverHTTP(t *testing.T) {
	s := newServer(t)
	link, other := s.link(s.newTask("")), s.link(s.newTask(""))
	for n := range 10 {
		s.clock.Advance(time.Minute)
		if r := s.note(link, strconv.Itoa(n)); r.status != 200 {
			t.Fatalf("note %d: %d %s", n, r.status, r.body)
		}
	}
	r := s.note(link, "canary")
	if code, field := r.failure(); r.status != 429 || code != "rate_limited" || field != "" ||
		r.header.Get("Retry-After") != strconv.Itoa(24*3600-9*60) {
		t.Errorf("the eleventh: %d, Retry-After %q: %s", r.status, r.header.Get("Retry-After"), r.body)
	}
	if r := s.note(other, "hello"); r.status != 200 {
		t.Errorf("another link: %d %s", r.status, r.body)
	}
	s.clock.Advance(24*time.Hour - 9*time.Minute)
	if r := s.note(link, "again"); r.status != 200 {
		t.Errorf("when it was told to come: %d %s", r.status, r.body)
	}
}

// TestNoteFromOtherOrigins: a page of an origin that is configured may write, and no other one can
// without a preflight that it is not granted.
func TestNoteFromOtherOrigins(t *testing.T) {
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) {
		ho.CORSOrigins = []string{"https://shop.example"}
	})
	link := s.link(s.newTask(""))
	for origin, granted := range map[string]string{
		"https://shop.example": "https://shop.example", "https://evil.example": "",
	} {
		r := s.do("OPTIONS", link+"/note", "", "Origin: "+origin, "Access-Control-Request-Method: POST",
			"Access-Control-Request-Headers: content-type")
		if r.status != http.StatusNoContent || r.header.Get("Access-Control-Allow-Origin") != granted {
			t.Errorf("%s: %d %v", origin, r.status, r.header)
		}
		r = s.note(link, "from "+origin, isJSON, "Origin: "+origin)
		if r.status != 200 || r.header.Get("Access-Control-Allow-Origin") != granted {
			t.Errorf("%s: %d %v", origin, r.status, r.header)
		}
	}
}
