package httpadapter_test

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestDelivery goes through one delivery from the invite to the final state, and looks at every
// answer whole.
func TestDelivery(t *testing.T) {
	s := newServer(t)
	check := func(what string, r reply, want string) {
		t.Helper()
		if r.status != 200 {
			t.Fatalf("%s: %d %s", what, r.status, r.body)
		}
		got := regexp.MustCompile(`,"version":[1-9][0-9]*`).ReplaceAllString(r.body, "") // by its number
		if d := cmp.Diff(want+"\n", got); d != "" {
			t.Fatalf("%s: (-want +got)\n%s", what, d)
		}
	}

	invited := s.app("POST", "/v1/invite_user",
		`{"user_id":"ravi","name":"Ravi Kumar","mobile":"+91 44","email":"r@example.com"}`)
	link, code := text(s.data(invited), "url"), at(s.data(invited), "invite_code").(float64)
	if msg := text(s.json(invited, 200),
		"message"); msg != "Invite Created" || !strings.HasPrefix(link, s.base+"/join/") || code < 100000 ||
		code > 999999 {
		t.Fatalf("invite: %s", invited.body)
	}
	joined := s.data(s.do("POST", "/v1/driver/join", `{"invite_code":`+strconv.Itoa(int(code))+`,"nonce":"n1"}`))
	token := text(joined, "token")
	if !strings.HasPrefix(text(joined, "ingest_url"), s.base+"/ingest/") ||
		text(joined, "driver", "driver_id") != "ravi" {
		t.Fatalf("join: %v", joined)
	}

	check("me", s.asDriver(token, "GET", "/v1/driver/me", ""),
		`{"message":"Driver","success":true,"data":{"driver":{"driver_id":"ravi","name":"Ravi Kumar","mobile":"+91 44","email":"r@example.com","availability":false,"last_seen_at":"2026-03-14T09:00:00.000Z","properties":{},"open_tasks":0,"created_at":"2026-03-14T09:00:00.000Z","updated_at":"2026-03-14T09:00:00.000Z"},"reasons":["not_home","refused","wrong_address","damaged","closed","too_late","other"],"reorder":true,"undo_for":600}}`)
	s.data(s.asDriver(token, "POST", "/v1/driver/availability", `{"availability":true}`))
	s.fix(token, 80.2628844, 13.0039875)

	created := s.app("POST", "/v1/task/create",
		`{"type":3,"pickup":{"lnglat":[80.26,13],"address":"Depot"},"drop":{"lnglat":[80.27,13.08],"address":"12 Beach Road","customer":{"name":"Asha","mobile":"+91 98"}},"customer":{"name":"Depot desk","mobile":"1"},"order_id":"#1001","notes":"Ring twice","time":"2026-03-14T15:30+05:30"}`)
	id := text(s.data(created), "task", "task_id")
	full := func(status, outcome, reason, driver, updated, steps string) string {
		phase := map[string]string{"in_progress": "to_pickup", "completed": "done"}[status]
		if strings.Contains(steps, "picked_up_at") && status == "in_progress" {
			phase = "to_drop"
		}
		if phase == "" {
			phase = status
		}
		return `{"task_id":"` + id + `","type":3,"time":"2026-03-14T10:00:00.000Z","notes":"Ring twice","status":"` +
			status + `","outcome":"` + outcome + `","reason":"` + reason +
			`","reason_code":"","pickup":{"lnglat":[80.26,13],"address":"Depot","customer":{"name":"Depot desk","mobile":"1"}},"drop":{"lnglat":[80.27,13.08],"address":"12 Beach Road","customer":{"name":"Asha","mobile":"+91 98"}},"order_id":"#1001","driver_id":"` + driver + `","customer_note":"","retry_of":"","retried_by":"","created_at":"2026-03-14T09:00:00.000Z","updated_at":"` + updated + `"` + steps + `,"phase":"` + phase + `"}`
	}
	check("create", created,
		`{"message":"Task created","success":true,"data":{"task":`+
			full("created", "", "", "", "2026-03-14T09:00:00.000Z", "")+`,"tracking_url":"`+
			text(s.data(s.app("GET", "/v1/task/trackingurl/"+id, "")), "webUrl")+`"}}`)
	check("list", s.app("GET", "/v1/task/list?order_id=%231001&status=created", ""),
		`{"message":"Task List","success":true,"data":{"has_more":false,"task_list":[`+
			full("created", "", "", "", "2026-03-14T09:00:00.000Z", "")+`]}}`)

	s.clock.Advance(time.Minute)
	check("assign", s.app("POST", "/v1/task/assign", `{"task_id":"`+id+`","driver_id":"ravi"}`),
		`{"message":"Task assigned","success":true,"data":{"task":`+
			full("assigned", "", "", "ravi", "2026-03-14T09:01:00.000Z", `,"assigned_at":"2026-03-14T09:01:00.000Z"`)+
			`}}`)
	alone := strings.NewReplacer(`,"customer":{"name":"Depot desk","mobile":"1"}`, "",
		`,"customer":{"name":"Asha","mobile":"+91 98"}`, "", `"phase":"assigned"`, `"phase":"assigned","stop":1`)
	check("task", s.app("GET", "/v1/task?task_id="+id, ""), `{"message":"Task","success":true,"data":{"task":`+
		alone.Replace(full("assigned", "", "", "ravi", "2026-03-14T09:01:00.000Z",
			`,"assigned_at":"2026-03-14T09:01:00.000Z"`))+`}}`)
	if got := s.data(s.asDriver(token, "GET", "/v1/driver/tasks", "")); text(got, "task_list", 0, "drop", "customer",
		"mobile") != "+91 98" {
		t.Errorf("the driver's tasks: %v", got)
	}

	url := s.data(s.app("GET", "/v1/task/trackingurl/"+id, ""))
	track := strings.TrimPrefix(text(url, "webUrl"), s.base)
	if !strings.HasPrefix(track, "/track/") {
		t.Fatalf("webUrl: %v", url)
	}
	check("state before", s.do("GET", track+"/state", ""),
		`{"message":"Tracking","success":true,"data":{"tracking":{"kind":"task","type":3,"status":"assigned","outcome":"","reason_code":"","order_id":"#1001","customer_note":"","place":{"lnglat":[80.27,13.08],"address":"12 Beach Road"},"time":"2026-03-14T10:00:00.000Z","phase":"assigned","path":[]}}}`)

	s.clock.Advance(time.Minute)
	started := s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+id+"/start", `{"lnglat":[80.2628844,13.0039875]}`))
	tripID := text(started, "trip", "_id")
	if text(started, "task", "status") != "in_progress" ||
		text(started, "trip", "starts_at") != "13.0039875,80.2628844" || text(started, "trip", "tracking_id") != id ||
		text(started, "trip", "status") != "1" {
		t.Fatalf("start: %v", started)
	}
	s.clock.Advance(time.Minute)
	s.fix(token, 80.264, 13.01)
	eta := regexp.MustCompile(`,"eta":\{"time":"2026-03-14T09:[^"]*","computed_at":"2026-03-14T09:03:00.000Z","source":"estimate"\}`)
	state := s.do("GET", track+"/state", "")
	if !eta.MatchString(state.body) {
		t.Errorf("no expected time: %s", state.body)
	}
	state.body = eta.ReplaceAllString(state.body, "")
	check("state under way", state,
		`{"message":"Tracking","success":true,"data":{"tracking":{"kind":"task","type":3,"status":"in_progress","outcome":"","reason_code":"","order_id":"#1001","customer_note":"","driver":{"name":"Ravi"},"place":{"lnglat":[80.27,13.08],"address":"12 Beach Road"},"leg":"pickup","time":"2026-03-14T10:00:00.000Z","phase":"to_pickup","stops_before":1,"started_at":"2026-03-14T09:02:00.000Z","position":{"lnglat":[80.264,13.01],"time":"2026-03-14T09:03:00.000Z","live":true},"path":[[80.262884,13.003988],[80.264,13.01]]}}}`)
	s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+id+"/pickup", ""))
	if got := s.data(s.do("GET", track+"/state", "")); text(got, "tracking", "place", "address") != "12 Beach Road" ||
		text(got, "tracking", "leg") != "drop" {
		t.Errorf("after the pickup: %v", got)
	}
	if page := s.do("GET", track, "").body; !strings.Contains(page, "On the way") || !strings.Contains(page, "Ravi") ||
		strings.Contains(page, "Kumar") || strings.Contains(page, "+91") {
		t.Errorf("page under way: %s", page)
	}

	check("history", s.app("GET", "/v1/triphistory/"+tripID, ""),
		`{"message":"Trip History","success":true,"data":{"loc":[{"lnglat":[80.2628844,13.0039875],"event_id":"","time":"2026-03-14T09:02:00.000Z"},{"lnglat":[80.264,13.01],"event_id":"","time":"2026-03-14T09:03:00.000Z"}],"tracking_id":"`+id+`","trip_id":"`+tripID+`"}}`)

	s.clock.Advance(time.Minute)
	done := s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+id+"/complete", `{"at":"2026-03-14T09:03:30Z"}`))
	if text(done, "task", "outcome") != "succeeded" ||
		text(done, "task", "completed_at") != "2026-03-14T09:03:30.000Z" || text(done, "trip", "status") != "2" {
		t.Fatalf("complete: %v", done)
	}
	check("state after", s.do("GET", track+"/state", ""),
		`{"message":"Tracking","success":true,"data":{"tracking":{"kind":"task","type":3,"status":"completed","outcome":"succeeded","reason_code":"","order_id":"#1001","customer_note":"","place":{"lnglat":[80.27,13.08],"address":"12 Beach Road"},"time":"2026-03-14T10:00:00.000Z","phase":"done","started_at":"2026-03-14T09:02:00.000Z","picked_up_at":"2026-03-14T09:03:00.000Z","ended_at":"2026-03-14T09:03:30.000Z","path":[]}}}`)
	if page := s.do("GET", track, "").body; !strings.Contains(page, "Delivered") || strings.Contains(page, "13.01") ||
		strings.Contains(page, "Ravi") {
		t.Errorf("page after the end: %s", page)
	}

	trip := s.data(s.app("GET", "/v1/trips/"+tripID, ""))
	if text(trip, "trip", "ends_at") != "13.01,80.264" || at(trip, "trip", "distance").(float64) < 600 ||
		at(trip, "trip", "moving_seconds") != 60.0 {
		t.Errorf("trip: %v", trip)
	}
	trips := s.json(s.app("GET", "/v1/trips?operator_id=ravi&status=2&tracking_id="+id, ""), 200)
	if trips["message"] != "Trips" || text(trips, "data", "trips", 0, "_id") != tripID ||
		text(trips, "data", "trips", 0, "agent_id") != "ravi" {
		t.Errorf("trips: %v", trips)
	}
	tripURL := s.json(s.app("GET", "/v1/trips/trackingurl/"+tripID, ""), 200)
	if tripURL["message"] != "Trip - Web Url Generated" || text(tripURL, "data", "webUrl") == text(url, "webUrl") {
		t.Errorf("trip's url: %v", tripURL)
	}

	if got := s.data(s.asDriver(token, "GET", "/v1/driver/tasks", "")); text(got, "task_list", 0, "task_id") != id ||
		at(got, "task_list", 0, "drop", "customer") != nil {
		t.Errorf("the driver's completed tasks: %v", got)
	}
	s.clock.Advance(24 * time.Hour)
	if got := s.data(s.asDriver(token, "GET", "/v1/driver/tasks", "")); len(at(got, "task_list").([]any)) != 0 {
		t.Errorf("the driver's tasks a day later: %v", got)
	}

	var types []string
	for _, e := range s.data(s.app("GET", "/v1/events?task_id="+id, ""))["events"].([]any) {
		types = append(types, text(e, "type"))
	}
	if d := cmp.Diff([]string{
		"task.created", "task.assigned", "task.started", "task.arriving", "task.picked_up", "task.completed",
	}, types); d != "" {
		t.Errorf("events (-want +got)\n%s", d)
	}
	first := s.data(s.app("GET", "/v1/events?limit=1", ""))
	if at(first, "has_more") != true || len(at(first, "events").([]any)) != 1 {
		t.Errorf("first event: %v", first)
	}
	second := s.data(s.app("GET", "/v1/events?limit=1&after="+text(first, "events", 0, "id"), ""))
	if text(second, "events", 0, "id") == text(first, "events", 0, "id") {
		t.Errorf("second event: %v", second)
	}
}

// TestTripRequest goes from the request of a trip to its end.
func TestTripRequest(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	for _, r := range []reply{
		s.app("POST",
			"/v1/assign_trip?tracking_id=T1&user_id=ravi&message=Go&dest=80.27,13.08&desc=%3Cb%3Ehi%3C/b%3E%3Cscript%3Ex%3C/script%3E", ""),
		s.app("POST", "/v1/assign_trip", `{"tracking_id":"T2","user_id":"ravi","dest":[80.27,13.08]}`),
		s.app("POST", "/v1/assign_trip", "tracking_id=T3&user_id=ravi&dest=12+Beach+Road",
			"Content-Type: application/x-www-form-urlencoded"),
		s.app("POST", "/v1/assign_trip?user_id=ravi", `{"tracking_id":"T4","user_id":"ravi","dest":"[80.27,13.08]"}`,
			"Content-Type: application/json; charset=UTF-8"),
		s.app("POST", "/v1/assign_trip?tracking_id=T5",
			"--b\r\nContent-Disposition: form-data; name=\"user_id\"\r\n\r\nravi\r\n--b--\r\n",
			"Content-Type: multipart/form-data; boundary=b"),
	} {
		if r.status != 200 || r.body != `{"message":"Request sent to Operator","success":true}`+"\n" {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
	got := s.data(s.asDriver(token, "GET", "/v1/driver/requests", ""))
	for i, want := range []map[string]any{
		{
			"tracking_id": "T1", "message": "Go", "dest": map[string]any{"lnglat": []any{80.27, 13.08}, "address": ""},
			"desc": "<b>hi</b><script>x</script>", "desc_html": "<b>hi</b>", "created_at": "2026-03-14T09:00:00.000Z",
		},
		{
			"tracking_id": "T2", "message": "", "dest": map[string]any{"lnglat": []any{80.27, 13.08}, "address": ""},
			"desc": "", "desc_html": "", "created_at": "2026-03-14T09:00:00.000Z",
		},
		{
			"tracking_id": "T3", "message": "", "dest": map[string]any{"address": "12 Beach Road"}, "desc": "",
			"desc_html": "", "created_at": "2026-03-14T09:00:00.000Z",
		},
		{
			"tracking_id": "T4", "message": "", "dest": map[string]any{"lnglat": []any{80.27, 13.08}, "address": ""},
			"desc": "", "desc_html": "", "created_at": "2026-03-14T09:00:00.000Z",
		},
		{"tracking_id": "T5", "message": "", "desc": "", "desc_html": "", "created_at": "2026-03-14T09:00:00.000Z"},
	} {
		if d := cmp.Diff(want, at(got, "requests", i)); d != "" {
			t.Errorf("request %d (-want +got)\n%s", i, d)
		}
	}

	trip := s.data(s.asDriver(token, "POST", "/v1/driver/trips", `{"tracking_id":"T1","lnglat":[80.26,13]}`))
	id := text(trip, "trip", "_id")
	if again := s.data(s.asDriver(token, "POST", "/v1/driver/trips", `{"tracking_id":"T1"}`)); text(again, "trip",
		"_id") != id {
		t.Errorf("started again: %v", again)
	}
	if own := s.data(s.asDriver(token, "GET", "/v1/driver/trips?status=1", "")); text(own, "trips", 0, "_id") != id {
		t.Errorf("own trips: %v", own)
	}
	if left := s.data(s.asDriver(token, "GET", "/v1/driver/requests", "")); text(left, "requests", 0,
		"tracking_id") != "T2" {
		t.Errorf("requests left: %v", left)
	}
	url := strings.TrimPrefix(text(s.data(s.app("GET", "/v1/trips/trackingurl/"+id, "")), "webUrl"), s.base)
	if got := s.data(s.do("GET", url+"/state", "")); text(got, "tracking", "kind") != "trip" ||
		text(got, "tracking", "status") != "1" || at(got, "tracking", "place", "lnglat", 0) != 80.27 {
		t.Errorf("trip's state: %v", got)
	}
	stopped := s.data(s.asDriver(token, "POST", "/v1/driver/trips/"+id+"/stop", ""))
	if text(stopped, "trip", "status") != "2" || text(stopped, "trip", "ends_at") != "13,80.26" {
		t.Errorf("stop: %v", stopped)
	}
	if code, _ := s.asDriver(token, "POST", "/v1/driver/trips/"+id+"/discard", "").failure(); code != "conflict" {
		t.Errorf("discard after stop: %s", code)
	}
}
