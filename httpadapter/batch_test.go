package httpadapter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Many tasks are created at once: the good ones, whatever the others are, and each once.
func TestCreateBatch(t *testing.T) {
	s := newServer(t)
	good := `{"type":2,"drop":{"address":"x"},"order_id":"%s","key":"%s"}`
	body := `{"tasks":[` + strings.Join([]string{
		fmt.Sprintf(good, "1", "a"), `{"type":9}`, `{"type":2,"drop":{"address":"x","lnglat":[200,1]}}`, `7`,
		fmt.Sprintf(good, "2", "b"), fmt.Sprintf(good, "1", "a"), fmt.Sprintf(good, "other", "a"),
		fmt.Sprintf(good, "3", strings.Repeat("k", 129)), `{"type":2,"drop":{"address":"y"},"Type":2}`,
	}, ",") + `]}`
	read := func() (ids []string) {
		t.Helper()
		var got []string
		for _, r := range s.data(s.app("POST", "/v1/task/batch", body))["results"].([]any) {
			row := r.(map[string]any)
			if task, ok := row["task"]; ok == (row["error"] != nil) {
				t.Fatalf("a task or an error: %v", row)
			} else if ok {
				got, ids = append(got, text(task, "order_id")), append(ids, text(task, "task_id"))
				continue
			}
			e := row["error"].(map[string]any)
			field, _ := e["field"].(string)
			got = append(got, e["code"].(string)+" "+field)
			if m := e["message"].(string); m == "" || strings.Contains(m, "Idempotency") {
				t.Errorf("the message is %q", m)
			}
		}
		want := []string{
			"1", "invalid type", "invalid drop.lnglat", "invalid ", "2", "1", "conflict key", "invalid key", "invalid type",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("results (-want +got):\n%s", diff)
		}
		return ids
	}
	first := read()
	if first[0] != first[2] || first[0] == first[1] {
		t.Errorf("the same key in one batch: %v", first)
	}
	if diff := cmp.Diff(first, read()); diff != "" {
		t.Errorf("sent again (-first +again):\n%s", diff)
	}
	if n := len(s.data(s.app("GET", "/v1/task/list?limit=100", ""))["task_list"].([]any)); n != 2 {
		t.Errorf("%d tasks were made, want 2", n)
	}
	row := `{"type":2,"drop":{"address":"x"}},`
	s.check("none", s.app("POST", "/v1/task/batch", `{}`), 400, "tasks")
	s.check("501", s.app("POST", "/v1/task/batch", `{"tasks":[`+strings.Repeat(row, 500)+`{}]}`), 413, "tasks")
	s.check("empty", s.app("POST", "/v1/task/batch", `{"tasks":[]}`), 200, "")
	s.check("a large one", s.app("POST", "/v1/task/batch",
		`{"tasks":[{"type":2,"drop":{"address":"`+strings.Repeat("x", 1<<20)+`"}}]}`), 200, "")
	s.check("too large", s.app("POST", "/v1/task/batch", `{"tasks":[],"x":"`+strings.Repeat("x", 2<<20)+`"}`), 413, "")
}

// A batch may have as many tasks as there can be, each with all that there can be; not so many members
// that they are all there is of a body.
func TestLargestBatch(t *testing.T) {
	s := newServer(t)
	var words []string
	for i := range 50 {
		words = append(words, fmt.Sprintf(`"k%d":"v"`, i))
	}
	all := "{" + strings.Join(words, ",") + "}"
	place := `{"lnglat":[80,13],"address":"x","customer":{"name":"n","mobile":"1"}}`
	row := `{"type":3,"pickup":` + place + `,"drop":` + place + `,"customer":{"name":"n","mobile":"1"},"order_id":"o","notes":"n",` +
		`"time":"2026-03-14T09:00Z","auto_assign":false,"window":{"from":"2026-03-14T09:00Z","to":"2026-03-14T10:00Z"},` +
		`"promised":"2026-03-14T10:00Z","proof":["name"],"requires":` + all + `,"properties":` + all + `},`
	body := `{"tasks":[` + strings.TrimSuffix(strings.Repeat(row, 500), ",") + `]}`
	n := 0
	for _, r := range s.data(s.app("POST", "/v1/task/batch", body))["results"].([]any) {
		if r.(map[string]any)["task"] != nil {
			n++
		}
	}
	if n != 500 {
		t.Errorf("%d of 500 tasks were made", n)
	}
	r := s.app("POST", "/v1/task/batch", `{"tasks":[],"x":{`+strings.Repeat(`"":0,`, 400000)+`"y":0}}`)
	s.check("tiny members", r, 400, "")
	if !strings.Contains(r.body, `"The body has more than 131072 members."`) {
		t.Errorf("tiny members: %s", r.body)
	}
}

// Of two people who change the same, the second one gets 409 where he names the version that he saw.
func TestVersions(t *testing.T) {
	s := newServer(t)
	s.newDriver("ravi")
	id := s.newTask("")
	version := func() string {
		return fmt.Sprint(s.data(s.app("GET", "/v1/task?task_id="+id, ""))["task"].(map[string]any)["version"])
	}
	seen := version()
	answered := func(r reply) {
		t.Helper()
		if got := fmt.Sprint(s.data(r)["task"].(map[string]any)["version"]); got != version() {
			t.Errorf("answered with version %s, and it is %s", got, version())
		}
	}
	for _, step := range []struct{ path, body string }{
		{"update", `"notes":"first"`}, {"assign", `"driver_id":"ravi"`}, {"unassign", ``},
		{"assign", `"driver_id":"ravi","force":true`}, {"complete", `"outcome":"failed"`}, {"reopen", ``},
		{"cancel", ``}, {"trackingurl/revoke", ``}, {"retry", ``},
	} {
		body := `{"task_id":"` + id + `","version":%s`
		if step.body != "" {
			body += "," + step.body
		}
		body += "}"
		before := version()
		if before != seen {
			s.check("stale "+step.path, s.app("POST", "/v1/task/"+step.path, fmt.Sprintf(body, seen)), 409, "version")
		}
		if got := version(); got != before {
			t.Errorf("%s was done with an old version", step.path)
		}
		r := s.app("POST", "/v1/task/"+step.path, fmt.Sprintf(body, before))
		s.check(step.path, r, 200, "")
		if step.path != "trackingurl/revoke" && step.path != "retry" {
			answered(r)
		}
		s.check("repeated "+step.path, s.app("POST", "/v1/task/"+step.path, fmt.Sprintf(body, before)), 409, "version")
	}
	s.check("any", s.app("POST", "/v1/task/retry", `{"task_id":"`+id+`","version":0}`), 200, "")
	s.check("text", s.app("POST", "/v1/task/retry", `{"task_id":"`+id+`","version":"1"}`), 400, "version")

	driver := func() string {
		return fmt.Sprint(s.data(s.app("GET", "/v1/users/driver?driver_id=ravi", ""))["driver"].(map[string]any)["version"])
	}
	for _, step := range []struct{ path, body string }{{"", `"name":"R"`}, {"/revoke", ``}, {"/delete", `"force":true`}} {
		body := `{"driver_id":"ravi","version":%s`
		if step.body != "" {
			body += "," + step.body
		}
		body += "}"
		s.check("stale"+step.path, s.app("POST", "/v1/users/driver"+step.path, fmt.Sprintf(body, "1234567")), 409, "version")
		r := s.app("POST", "/v1/users/driver"+step.path, fmt.Sprintf(body, driver()))
		s.check("driver"+step.path, r, 200, "")
	}
	s.check("of nobody", s.app("POST", "/v1/users/driver", `{"driver_id":"ravi","version":3}`), 409, "version")
}
