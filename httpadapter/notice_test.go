package httpadapter_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

func (s *server) notices(token, query string) map[string]any {
	s.Helper()
	return s.data(s.asDriver(token, "GET", "/v1/driver/notifications"+query, ""))
}

func TestNotices(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	if r := s.asDriver(token, "GET", "/v1/driver/notifications",
		""); r.body != `{"message":"Notifications","success":true,"data":{"notifications":[],"after":0,"reset":false}}`+
		"\n" {
		t.Errorf("none: %s", r.body)
	}
	task := s.newTask(`,"notes":"Ring twice"`)
	s.data(s.assign(task, "ravi"))
	s.data(s.app("POST", "/v1/assign_trip",
		`{"tracking_id":"T","user_id":"ravi","message":"Go","desc":"<b>x<script>"}`))
	got := s.notices(token, "")
	list := got["notifications"]
	if d := cmp.Diff([]string{"assigned", "trip_request"}, texts(list, "kind")); d != "" {
		t.Fatalf("(-want +got)\n%s", d)
	}
	if text(list, 0, "task_id") != task || text(list, 0, "task", "notes") != "Ring twice" ||
		text(list, 0, "task", "drop", "customer", "mobile") != "+91 98" ||
		text(list, 0, "time") != "2026-03-14T09:00:00.000Z" {
		t.Errorf("assigned: %v", at(list, 0))
	}
	if text(list, 1, "tracking_id") != "T" || text(list, 1, "request", "message") != "Go" ||
		text(list, 1, "request", "desc") != "<b>x<script>" || text(list, 1, "request", "desc_html") != "<b>x</b>" {
		t.Errorf("request: %v", at(list, 1))
	}
	first, last := at(list, 0, "id").(float64), got["after"].(float64)
	if at(list, 1, "id") != last || last <= first {
		t.Errorf("ids %v, %v; after %v", first, at(list, 1, "id"), last)
	}
	if again := s.notices(token,
		fmt.Sprintf("?after=%.0f", first)); !slices.Equal(texts(again["notifications"], "kind"),
		[]string{"trip_request"}) {
		t.Errorf("after the first: %v", again)
	}
	if none := s.notices(token, fmt.Sprintf("?after=%.0f", last)); len(none["notifications"].([]any)) != 0 ||
		none["after"] != last || none["reset"] != false {
		t.Errorf("after the last: %v", none)
	}

	// Moved to another driver, the task is named and not shown.
	s.newDriver("meena")
	s.data(s.assign(task, "meena"))
	got = s.notices(token, "")
	if list := got["notifications"]; at(list, 0, "task") != nil || text(list, 2, "kind") != "unassigned" ||
		at(list, 2, "task") != nil || text(list, 2, "task_id") != task {
		t.Errorf("after it moved: %v", list)
	}

	// A place that there is not: how things stand now, and where to go on.
	lost := s.notices(token, "?after=999999")
	if lost["reset"] != true || lost["after"] != got["after"] || len(lost["notifications"].([]any)) != 0 ||
		text(lost, "requests", 0, "tracking_id") != "T" {
		t.Errorf("lost: %v", lost)
	}
	for _, v := range []string{"-1", "abc", "", "01", "99999999999999999999"} {
		s.check(v, s.asDriver(token, "GET", "/v1/driver/notifications?after="+v, ""), 400, "after")
	}
}

// listen opens a driver's stream.
func (s *server) listen(token, last string) *viewer {
	s.Helper()
	ctx, stop := context.WithTimeout(s.Context(), time.Minute) // only keeps a broken test from hanging
	s.Cleanup(stop)
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+"/v1/driver/notifications", nil)
	if err != nil {
		s.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept", "text/event-stream")
	if last != "" {
		req.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
		s.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	return &viewer{s, res, bufio.NewReader(res.Body), stop, ""}
}

// TestNoticeStream: what is told arrives at once, and a stream resumed with its last id misses and
// repeats nothing.
func TestNoticeStream(t *testing.T) {
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) { ho.Heartbeat = 5 * time.Millisecond })
	token := s.newDriver("ravi")
	task := s.newTask("")
	v := s.listen(token, "")
	s.data(s.assign(task, "ravi"))
	event, data := v.next()
	if event != "notice" || !strings.Contains(data, `"kind":"assigned"`) ||
		!strings.Contains(data, `"mobile":"+91 98"`) {
		t.Fatalf("%s %s", event, data)
	}
	if !strings.HasPrefix(data, `{"id":`+v.id+`,`) {
		t.Errorf("id %s: %s", v.id, data)
	}
	last := v.id
	v.stop()
	v.res.Body.Close()

	s.data(s.app("POST", "/v1/task/update", `{"task_id":"`+task+`","notes":"n"}`))
	s.data(s.app("POST", "/v1/task/cancel", `{"task_id":"`+task+`"}`))
	v = s.listen(token, last)
	for _, kind := range []string{"updated", "cancelled"} {
		if event, data := v.next(); event != "notice" || !strings.Contains(data, `"kind":"`+kind+`"`) {
			t.Errorf("%s %s, want %s", event, data, kind)
		}
	}
	end := v.id

	for _, lost := range []string{"999999", "nonsense"} {
		w := s.listen(token, lost)
		if event, data := w.next(); event != "reset" || w.id != end || !strings.Contains(data, `"task_list":[`) {
			t.Errorf("%s: %s %s, id %s, want %s", lost, event, data, w.id, end)
		}
	}

	s.data(s.app("POST", "/v1/users/driver/revoke", `{"driver_id":"ravi"}`))
	if event, data := v.next(); event != "EOF" {
		t.Errorf("after the token was revoked: %s %s", event, data)
	}
}

// TestManyNotices: more than one answer holds come all, once, and in order.
func TestManyNotices(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	task := s.newTask("")
	s.data(s.assign(task, "ravi"))
	for i := range 149 {
		s.data(s.app("POST", "/v1/task/update", fmt.Sprintf(`{"task_id":%q,"notes":"%d"}`, task, i)))
	}
	v := s.listen(token, "")
	var streamed []string
	for range 150 {
		if event, data := v.next(); event != "notice" {
			t.Fatalf("%s %s", event, data)
		}
		streamed = append(streamed, v.id)
	}
	var listed []string
	for query := ""; ; {
		got := s.notices(token, query)
		list := got["notifications"].([]any)
		if len(list) == 0 {
			break
		}
		for _, n := range list {
			listed = append(listed, fmt.Sprintf("%.0f", at(n, "id")))
		}
		query = fmt.Sprintf("?after=%.0f", got["after"])
	}
	if d := cmp.Diff(listed, streamed); d != "" || len(listed) != 150 {
		t.Errorf("%d listed (-listed +streamed)\n%s", len(listed), d)
	}
}
