package httpadapter_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

// TestDeleteBusyDriver deletes a driver who has something to do: refused with what to do about it,
// and done with force.
func TestDeleteBusyDriver(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	task := s.newTask("")
	s.data(s.assign(task, "ravi"))
	s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/start", `{}`))

	refused := s.json(s.app("POST", "/v1/users/driver/delete", `{"driver_id":"ravi"}`), 409)
	if why := text(refused, "message"); !strings.Contains(why, "1 open task and 1 active trip") ||
		!strings.Contains(why, "force") {
		t.Errorf("refused with %q, which should say what he has and what to do", why)
	}
	s.json(s.app("POST", "/v1/users/driver/delete", `{"driver_id":"ravi","force":true}`), 200)
	s.json(s.app("GET", "/v1/users/driver?driver_id=ravi", ""), 404)
	got := s.data(s.app("GET", "/v1/task?task_id="+task, ""))
	if text(got, "task", "status") != "created" {
		t.Errorf("his task is %s", text(got, "task", "status"))
	}
	if r := s.asDriver(token, "GET", "/v1/driver/me", ""); r.status != 401 {
		t.Errorf("his token: status %d, want 401", r.status)
	}

	// Somebody else comes under the same id: nothing of the first one is his.
	next := s.newDriver("ravi")
	trips := s.data(s.asDriver(next, "GET", "/v1/driver/trips", ""))["trips"].([]any)
	if len(trips) != 0 {
		t.Errorf("the new driver has %d trips of the first one", len(trips))
	}
	if r := s.asDriver(token, "GET", "/v1/driver/me", ""); r.status != 401 {
		t.Errorf("the first one's token, when the id is used again: status %d, want 401", r.status)
	}
}

func TestDeleteTask(t *testing.T) {
	s := newServer(t)
	s.newDriver("ravi")
	task, idle := s.newTask(""), s.newTask("")
	s.data(s.assign(task, "ravi"))
	link := strings.TrimPrefix(text(s.data(s.app("GET", "/v1/task/trackingurl/"+task, "")), "webUrl"), s.base)
	refused := s.json(s.app("POST", "/v1/task/delete", `{"task_id":"`+task+`"}`), 409)
	if why := text(refused, "message"); !strings.Contains(why, "complete, cancel or unassign it first") {
		t.Errorf("refused with %q, which should say what to do", why)
	}
	s.json(s.app("POST", "/v1/task/delete", `{"task_id":"`+idle+`","version":9}`), 409)
	for _, id := range []string{idle, task} {
		s.app("POST", "/v1/task/cancel", `{"task_id":"`+id+`"}`)
		done := s.json(s.app("POST", "/v1/task/delete", `{"task_id":"`+id+`"}`), 200)
		if text(done, "message") != "Task deleted" || done["data"] != nil {
			t.Errorf("answered %v", done)
		}
		s.json(s.app("POST", "/v1/task/delete", `{"task_id":"`+id+`"}`), 404)
		s.json(s.app("GET", "/v1/task?task_id="+id, ""), 404)
	}
	if r := s.do("GET", link, ""); r.status != 404 {
		t.Errorf("its link: status %d, want 404", r.status)
	}
	if events := s.data(s.app("GET", "/v1/events?task_id="+task, ""))["events"].([]any); len(events) > 0 {
		t.Errorf("its events: %v", events)
	}
}

// told is a notifier.
type told func(context.Context, tracking.Notification) error

func (f told) Notify(ctx context.Context, n tracking.Notification) error { return f(ctx, n) }

// TestErasedPersonIsNowhere erases a customer after a delivery with everything, and then looks through
// all that is answered, told and logged from then on.
func TestErasedPersonIsNowhere(t *testing.T) {
	const name, mobile, address, note = "Canaryname", "+49 (170) 555-0142", "Canary Street 7", "canary note"
	var h *httpadapter.Handler
	var sent syncBuffer
	s := newServer(t, func(so *tracking.Options, ho *httpadapter.Options) {
		so.Notifier = told(func(ctx context.Context, n tracking.Notification) error {
			filled, err := h.Fill(ctx, n)
			if err == nil {
				err = json.NewEncoder(&sent).Encode(filled)
			}
			return err
		})
		ho.Site.ShowProof = true
	})
	h = s.h
	token := s.newDriver("ravi")
	task := text(s.data(s.app("POST", "/v1/task/create", `{"type":3,"order_id":"#1","notes":"`+note+`",
		"pickup":{"lnglat":[80.26,13],"address":"Depot","customer":{"name":"Desk","mobile":"+49 89 1234"}},
		"drop":{"lnglat":[80.27,13.08],"address":"`+address+`","customer":{"name":"`+name+`","mobile":"`+mobile+`"}}}`)),
		"task", "task_id")
	own := "/v1/driver/tasks/" + task
	s.data(s.assign(task, "ravi"))
	s.data(s.app("POST", "/v1/assign_trip", `{"tracking_id":"`+task+`","user_id":"ravi","message":"`+note+`","dest":"`+address+`"}`))
	link := strings.TrimPrefix(text(s.data(s.app("GET", "/v1/task/trackingurl/"+task, "")), "webUrl"), s.base)
	trip := text(s.data(s.asDriver(token, "POST", own+"/start", `{"lnglat":[80.2701,13.0801]}`)), "trip", "_id")
	s.data(s.asDriver(token, "POST", own+"/pickup", ""))
	s.note(link, note)
	photo := text(s.data(s.asDriver(token, "PUT", own+"/proof/photo", pictureOf(1))), "proof", "id")
	s.json(s.app("POST", "/v1/contact/erase", `{"mobile":"`+mobile+`"}`), 409)
	s.data(s.asDriver(token, "POST", own+"/complete",
		`{"outcome":"failed","reason":"`+note+`","received_by":"`+name+`","note":"`+note+`"}`))
	s.json(s.app("POST", "/v1/contact/erase", `{}`), 400)
	s.json(s.app("POST", "/v1/contact/erase", `{"mobile":"12"}`), 400)

	look := func() (all strings.Builder) {
		for _, target := range []string{
			"/v1/task?task_id=" + task, "/v1/task/list", "/v1/task/list?status=completed&driver_id=ravi", "/v1/trips",
			"/v1/trips/" + trip, "/v1/triphistory/" + trip, "/v1/events", "/v1/events?task_id=" + task,
			"/v1/events?trip_id=" + trip, "/v1/users/driver?driver_id=ravi", "/v1/task/counts", "/v1/live",
			"/v1/task/proof?task_id=" + task + "&id=" + photo,
		} {
			all.WriteString(s.app("GET", target, "").body)
		}
		for _, target := range []string{
			"/v1/driver/me", "/v1/driver/tasks", "/v1/driver/trips", "/v1/driver/requests", "/v1/driver/notifications",
			"/v1/driver/route", "/v1/driver/proof?task_id=" + task + "&id=" + photo,
		} {
			all.WriteString(s.asDriver(token, "GET", target, "").body)
		}
		for _, target := range []string{link, link + "/state", link + "/proof/" + photo} {
			all.WriteString(s.do("GET", target, "").body)
		}
		return all
	}
	picture := pictureOf(1)[30:60] // of what is in the picture
	canaries := []string{name, mobile, address, note, picture}
	before := look()
	for _, canary := range canaries {
		if !strings.Contains(before.String(), canary) {
			t.Fatalf("%q is nowhere, so that nothing is shown", canary)
		}
	}
	if len(s.listed("&q=canaryname"))+len(s.listed("&q=5550142")) != 2 {
		t.Fatal("she is not found")
	}

	data := s.data(s.app("POST", "/v1/contact/erase", `{"mobile":"0049170-5550142"}`))
	if at(data, "erased") != 0.0 {
		t.Errorf("another form of the number: %v", data)
	}
	data = s.data(s.app("POST", "/v1/contact/erase", `{"mobile":"+491705550142"}`))
	if at(data, "erased") != 1.0 {
		t.Errorf("erased %v", data)
	}
	for { // all that was still to be told
		n, err := s.svc.DeliverEvents(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	after := look()
	for where, said := range map[string]string{"answers": after.String(), "what is told": sent.String(), "the log": s.log.String()} {
		for _, canary := range canaries {
			if i := strings.Index(said, canary); i >= 0 {
				t.Errorf("%s have %q: %.300s", where, canary, said[max(0, i-200):])
			}
		}
	}
	if !strings.Contains(sent.String(), "task.erased") && !strings.Contains(sent.String(), `"erased_at"`) {
		t.Errorf("told %.300s", sent.String())
	}
	if found := append(s.listed("&q=canaryname"), s.listed("&q=5550142")...); len(found) > 0 {
		t.Errorf("she is found: %v", found)
	}
	shown := s.data(s.app("GET", "/v1/task?task_id="+task, ""))["task"]
	if text(shown, "erased_at") == "" || text(shown, "pickup", "address") != "Depot" || text(shown, "order_id") != "#1" ||
		at(shown, "proofs") != nil {
		t.Errorf("the task: %v", shown)
	}
	for _, target := range []string{link, link + "/state"} {
		if r := s.do("GET", target, ""); r.status != 404 {
			t.Errorf("GET %s: status %d, want 404", target, r.status)
		}
	}
	s.json(s.app("GET", "/v1/task/trackingurl/"+task, ""), 409)
	s.json(s.asDriver(token, "POST", own+"/undo", ""), 409)
}
