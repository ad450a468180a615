package httpadapter_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// withDogs gives the service a word of its own.
func withDogs(so *tracking.Options, _ *httpadapter.Options) {
	so.Reasons = []tracking.ReasonCode{"dog_outside"}
}

// saying are the routes that take a reason: a call with members in its body, on a task that allows
// it.
var saying = map[string]func(s *server, token, task, members string) reply{
	"POST /v1/task/cancel": func(s *server, _, task, members string) reply {
		return s.app("POST", "/v1/task/cancel", `{"task_id":"`+task+`",`+members+`}`)
	},
	"POST /v1/task/complete": func(s *server, _, task, members string) reply {
		return s.app("POST", "/v1/task/complete", `{"task_id":"`+task+`","outcome":"failed",`+members+`}`)
	},
	"POST /v1/driver/tasks/{task_id}/decline": func(s *server, token, task, members string) reply {
		return s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/decline", `{`+members+`}`)
	},
	"POST /v1/driver/tasks/{task_id}/complete": func(s *server, token, task, members string) reply {
		s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/start", ""))
		return s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/complete", `{"outcome":"failed",`+members+`}`)
	},
}

// TestReasonsOverHTTP: every route that takes the free reason takes the word beside it, which is in
// its answer, in the task and the event, and on the link where the task has ended so.
func TestReasonsOverHTTP(t *testing.T) {
	for route, say := range saying {
		for _, word := range []string{"not_home", "dog_outside", ""} {
			t.Run(route+" "+word, func(t *testing.T) {
				s := newServer(t, withDogs)
				token, task := s.newDriver("ravi"), s.newTask("")
				s.data(s.assign(task, "ravi"))
				r := say(s, token, task, `"reason":"canary","reason_code":"`+word+`"`)
				if got := s.data(r); text(got, "task", "reason_code") != word || text(got, "task", "reason") != "canary" {
					t.Errorf("the answer has %v", got)
				}
				if got := s.data(s.app("GET", "/v1/task?task_id="+task, "")); text(got, "task", "reason_code") != word {
					t.Errorf("the task has %v", got)
				}
				shown, kind := word, "task.completed"
				if strings.HasSuffix(route, "decline") {
					shown, kind = "", "task.declined"
				}
				link := strings.TrimPrefix(text(s.data(s.app("GET", "/v1/task/trackingurl/"+task, "")), "webUrl"), s.base)
				state := s.do("GET", link+"/state", "")
				if got := s.data(state); text(got, "tracking", "reason_code") != shown {
					t.Errorf("the link shows %v", got)
				}
				if page := s.do("GET", link, "").body; strings.Contains(page+state.body, "canary") {
					t.Error("the customer is shown the free reason")
				}
				events := s.app("GET", "/v1/events?task_id="+task, "")
				told := ""
				for _, e := range s.filled(task) {
					if text(e, "type") == kind && (at(e, "data", "reason_code") == nil) != (word == "") ||
						text(e, "task", "reason_code") != word {
						t.Errorf("a webhook is told %v", e)
					}
				}
				for _, e := range s.data(events)["events"].([]any) {
					if text(e, "type") == kind {
						word, _ := at(e, "data", "reason_code").(string)
						told += "/" + word
					}
				}
				if told != "/"+word || strings.Contains(events.body, "canary") {
					t.Errorf("the events tell %q: %s", told, events.body)
				}
			})
		}
	}
}

// filled are a task's events as a webhook has them.
func (s *server) filled(task string) (list []map[string]any) {
	s.Helper()
	of := tracking.Subject{Kind: tracking.KindTask, ID: task}
	events, _, err := s.svc.Events(s.Context(), tracking.EventFilter{Subject: of})
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range events {
		v, err := s.h.Fill(s.Context(), tracking.Notification{App: "a", Event: e, Attempt: 1})
		if err != nil {
			s.Fatal(err)
		}
		b, err := json.Marshal(v)
		if err != nil {
			s.Fatal(err)
		}
		var body map[string]any
		if err := json.Unmarshal(b, &body); err != nil {
			s.Fatal(err)
		}
		list = append(list, body)
	}
	return list
}

func TestReasonsRefusedOverHTTP(t *testing.T) {
	for route, say := range saying {
		s := newServer(t, withDogs)
		token, task := s.newDriver("ravi"), s.newTask("")
		s.data(s.assign(task, "ravi"))
		for _, c := range []struct{ members, field string }{
			{`"reason_code":"unknown"`, "reason_code"},
			{`"reason_code":"NOT_HOME"`, "reason_code"},
			{`"reason_code":" not_home"`, "reason_code"},
			{`"reason_code":"not_home,refused"`, "reason_code"},
			{`"reason_code":"` + strings.Repeat("x", 33) + `"`, "reason_code"},
			{`"reason_code":"\u0000"`, "reason_code"},
			{`"reason_code":7`, "reason_code"},
			{`"reason_code":["not_home"]`, "reason_code"},
			{`"Reason_Code":"not_home"`, "reason_code"},
			{`"reason_code":"not_home","reason_code":"not_home"`, "reason_code"},
			{`"reason_code":"not_home","reason":"` + strings.Repeat("x", 201) + `"`, "reason"},
		} {
			r := say(s, token, task, c.members)
			if code, field := r.failure(); r.status != 400 || code != "invalid" || field != c.field {
				t.Errorf("%s %.60s: %d %s", route, c.members, r.status, r.body)
			}
			if strings.Contains(r.body, "unknown") {
				t.Errorf("%s: the answer repeats what was sent: %s", route, r.body)
			}
		}
		if r := say(s, token, task, `"reason_code":null`); r.status != 200 {
			t.Errorf("%s: null is absent: %d %s", route, r.status, r.body)
		}
	}
}

// TestDriverKnowsTheReasons: the driver's app is told which words it may send, the embedder's too.
func TestDriverKnowsTheReasons(t *testing.T) {
	s := newServer(t, withDogs)
	token := s.newDriver("ravi")
	me := s.data(s.asDriver(token, "GET", "/v1/driver/me", ""))
	var words []string
	for _, w := range me["reasons"].([]any) {
		words = append(words, fmt.Sprint(w))
	}
	want := []string{"not_home", "refused", "wrong_address", "damaged", "closed", "too_late", "other", "dog_outside"}
	if d := cmp.Diff(want, words); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	for _, word := range slices.Concat(words, []string{""}) {
		task := s.newTask("")
		s.data(s.assign(task, "ravi"))
		s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/decline", `{"reason_code":"`+word+`"}`))
	}
}

// TestSiteReasons: words can only be given for reasons that there are.
func TestSiteReasons(t *testing.T) {
	svc, err := tracking.New(memory.New(), &tracking.Options{Reasons: []tracking.ReasonCode{"dog_outside"}})
	if err != nil {
		t.Fatal(err)
	}
	for code, good := range map[string]bool{"not_home": true, "dog_outside": true, "cat_inside": false, "Dog": false} {
		site := web.Site{Reasons: map[string]string{code: "x"}}
		for name, opts := range map[string]httpadapter.Options{
			"Options.Site: ": {Site: site}, `Options.Sites["a"]: `: {Sites: map[tracking.AppID]web.Site{"a": site}},
		} {
			_, err := httpadapter.New(svc, &opts)
			if (err == nil) != good || err != nil && !(strings.Contains(err.Error(), name) && strings.Contains(err.Error(), "Reasons")) {
				t.Errorf("%s%s: %v", name, code, err)
			}
		}
	}
}

// TestLinksOfAPage: the page of a link has the URLs of its application's Site for the task that it
// shows, and the state has none.
func TestLinksOfAPage(t *testing.T) {
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) {
		ho.Site.HelpURL = "https://other.example/{task_id}"
		ho.Sites = map[tracking.AppID]web.Site{"a": {
			ContactURL: "https://shop.example/{order_id}/{task_id}", FeedbackURL: "mailto:a@shop.example?subject={order_id}",
		}}
	})
	shown := s.failed(`,"order_id":"#1 2"`)
	link := s.link(shown)
	for try := range 2 {
		if try == 1 { // then the link shows another task
			shown = text(s.data(s.app("POST", "/v1/task/retry", `{"task_id":"`+shown+`"}`)), "task", "task_id")
		}
		page := s.do("GET", link, "").body
		for _, want := range []string{
			`"contact":"https://shop.example/%231%202/` + shown + `"`, `"feedback":"mailto:a@shop.example?subject=%231%202"`,
		} {
			if !strings.Contains(page, want) {
				t.Errorf("the page has no %s: %s", want, page)
			}
		}
		if state := s.do("GET", link+"/state", "").body; strings.Contains(page, "other.example") ||
			strings.Contains(state, shown) || strings.Contains(state, "shop.example") {
			t.Errorf("the state is %s", state)
		}
	}
	token := s.newDriver("ravi")
	s.data(s.assign(shown, "ravi"))
	started := s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+shown+"/start", ""))
	url := text(s.data(s.app("GET", "/v1/trips/trackingurl/"+text(started, "trip", "_id"), "")), "webUrl")
	page := s.do("GET", strings.TrimPrefix(url, s.base), "").body
	if !strings.Contains(page, `"contact":"https://shop.example//`+shown+`"`) {
		t.Errorf("the page of the task's trip: %s", page)
	}
}
