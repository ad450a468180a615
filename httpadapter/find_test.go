package httpadapter_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// listed are the order ids of the tasks that a list by these parameters holds, page by page through
// next.
func (s *server) listed(params string) (ids []string) {
	s.Helper()
	after := ""
	for {
		data := s.data(s.app("GET", "/v1/task/list?limit=2"+params+after, ""))
		for _, task := range data["task_list"].([]any) {
			ids = append(ids, text(task, "order_id"))
		}
		more := data["has_more"].(bool)
		next, given := data["next"].(string)
		if given != more {
			s.Fatalf("next is given: %v, more: %v", given, more)
		}
		if !more {
			return ids
		}
		after = "&after=" + url.QueryEscape(next)
	}
}

// A dispatcher's filters, each over HTTP.
func TestFindTasks(t *testing.T) {
	s := newServer(t)
	at := func(d time.Duration) string { return s.clock.Now().Add(d).UTC().Format(time.RFC3339) }
	begin := at(0)
	for _, body := range []string{
		fmt.Sprintf(`"order_id":"A","properties":{"zone":"1"},"promised":%q,"auto_assign":true`, at(time.Minute)),
		fmt.Sprintf(`"order_id":"B","window":{"from":%q}`, at(3*time.Hour)),
		fmt.Sprintf(`"order_id":"C","window":{"from":%q,"to":%q},"properties":{"zone":"1","vip":"yes"}`,
			at(time.Hour), at(2*time.Hour)),
		`"order_id":"D 4711","customer":{"name":"Zoë Groß","mobile":"+49 89 555-0199"}`,
	} {
		s.data(s.app("POST", "/v1/task/create", `{"type":2,"drop":{"lnglat":[80.2,13],"address":"12 Beach Road"},`+body+`}`))
		s.clock.Advance(time.Minute)
	}
	for params, want := range map[string][]string{
		"": {"D 4711", "C", "B", "A"}, "&q=beach+12": {"D 4711", "C", "B", "A"}, "&q=zoe+GROSS": {"D 4711"},
		"&q=0199": {"D 4711"}, "&q=711": {"D 4711"}, "&q=zz": nil, "&q=%3F%3F": nil,
		"&late=true": {"A"}, "&waiting=true": {"A"}, "&properties.zone=1": {"C", "A"},
		"&properties.zone=1&properties.vip=yes": {"C"},
		"&sort=window":                          {"C", "B", "A", "D 4711"},
		"&window_from=" + at(0):                 {"C", "B"}, "&window_to=" + at(2*time.Hour): {"C"},
		"&window_from=" + at(0) + "&sort=created":                                       {"C", "B"},
		"&created_from=" + begin + "&created_to=" + url.QueryEscape(at(-2*time.Minute)): {"B", "A"},
	} {
		if diff := cmp.Diff(want, s.listed(params)); diff != "" {
			t.Errorf("by %s (-want +got):\n%s", params, diff)
		}
	}
	page := s.data(s.app("GET", "/v1/task/list?limit=1&sort=window", ""))
	next := url.QueryEscape(page["next"].(string))
	for query, field := range map[string]string{
		"q=x": "q", "q=": "q", "late=false": "late", "late=yes": "late", "waiting=false": "waiting",
		"created_from=2026-03-14T10:30": "created_from", "created_to=": "created_to", "window_from=x": "window_from",
		"window_to=0": "window_to", "sort=name": "sort", "sort=created,window": "sort", "after=x": "after",
		"after=": "after", "after=" + next: "after", "sort=window&page=2&after=" + next: "page",
		"properties.=1": "properties",
	} {
		s.check(query, s.app("GET", "/v1/task/list?"+query, ""), 400, field)
	}

	counted := s.data(s.app("GET", "/v1/task/counts", ""))["counts"]
	want := map[string]any{
		"created": 4.0, "waiting": 1.0, "assigned": 0.0, "in_progress": 0.0, "late": 1.0,
		"completed": map[string]any{"succeeded": 0.0, "failed": 0.0, "cancelled": 0.0},
	}
	if diff := cmp.Diff(want, counted); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	id := text(s.data(s.app("GET", "/v1/task/list?q=zoe", ""))["task_list"].([]any)[0], "task_id")
	s.data(s.app("POST", "/v1/task/cancel", `{"task_id":"`+id+`"}`))
	for since, want := range map[string]float64{"": 1, "?since=" + at(0): 1, "?since=" + at(time.Second): 0} {
		counted := s.data(s.app("GET", "/v1/task/counts"+since, ""))["counts"].(map[string]any)
		if got := counted["completed"].(map[string]any)["cancelled"]; got != want {
			t.Errorf("since %q %v are cancelled, want %v", since, got, want)
		}
	}
	s.check("since", s.app("GET", "/v1/task/counts?since=now", ""), 400, "since")
}

// Properties come with a task, are replaced as a whole, and count as content for its key.
func TestTaskProperties(t *testing.T) {
	s := newServer(t)
	id := s.newTask(`,"properties":{"zone":"1","vip":""}`)
	shown := func() any {
		return s.data(s.app("GET", "/v1/task?task_id="+id, ""))["task"].(map[string]any)["properties"]
	}
	if diff := cmp.Diff(map[string]any{"zone": "1", "vip": ""}, shown()); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
	for change, want := range map[string]any{
		`"properties":null`: map[string]any{"zone": "1", "vip": ""}, `"notes":"x"`: map[string]any{"zone": "1", "vip": ""},
	} {
		s.data(s.app("POST", "/v1/task/update", `{"task_id":"`+id+`",`+change+`}`))
		if diff := cmp.Diff(want, shown()); diff != "" {
			t.Errorf("after %s (-want +got):\n%s", change, diff)
		}
	}
	s.data(s.app("POST", "/v1/task/update", `{"task_id":"`+id+`","properties":{"zone":"2"}}`))
	if diff := cmp.Diff(any(map[string]any{"zone": "2"}), shown()); diff != "" {
		t.Errorf("replaced (-want +got):\n%s", diff)
	}
	s.data(s.app("POST", "/v1/task/update", `{"task_id":"`+id+`","properties":{}}`))
	if got := shown(); got != nil {
		t.Errorf("removed: %v", got)
	}
	for _, bad := range []string{`{"":"x"}`, `{"a":1}`, `["a"]`} {
		r := s.app("POST", "/v1/task/update", `{"task_id":"`+id+`","properties":`+bad+`}`)
		s.check(bad, r, 400, "properties")
	}
}
