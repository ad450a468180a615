package httpadapter_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
)

// TestWebhook: each event reaches the receiver signed, with its rows as the interface shows them.
func TestWebhook(t *testing.T) {
	secret := webhook.NewSecret()
	var mu sync.Mutex
	var bodies []map[string]any
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if err := httpadapter.VerifyWebhook(r.Header, body, time.Now(), secret); err != nil {
			t.Error(err)
		}
		var v map[string]any
		if err := json.Unmarshal(body, &v); err != nil {
			t.Error(err)
		}
		if id := text(v, "data", "id"); id != r.Header.Get("webhook-id") || id == "" {
			t.Errorf("the event's id is %q and webhook-id is %q", id, r.Header.Get("webhook-id"))
		}
		mu.Lock()
		defer mu.Unlock()
		bodies = append(bodies, v)
	}))
	defer receiver.Close()
	var h *httpadapter.Handler
	hook, err := httpadapter.Webhook(receiver.URL, []string{secret}, &httpadapter.WebhookOptions{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
		Fill:  func(ctx context.Context, n tracking.Notification) (any, error) { return h.Fill(ctx, n) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer hook.Close()
	s := newServer(t, func(so *tracking.Options, _ *httpadapter.Options) { so.Notifier = hook })
	h = s.h
	// told delivers what there is and returns the events by type.
	told := func() map[string]map[string]any {
		t.Helper()
		bodies = nil
		for {
			n, err := s.svc.DeliverEvents(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				break
			}
		}
		events := map[string]map[string]any{}
		for _, b := range bodies {
			events[text(b, "type")] = b["data"].(map[string]any)
		}
		return events
	}
	task := s.newTask(`,"notes":"Ring"`)
	token := s.newDriver("ravi")
	s.fix(token, 80.2628844, 13.0039875)
	s.data(s.assign(task, "ravi"))
	trip := text(s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/start", "")), "trip", "_id")
	s.data(s.app("POST", "/v1/assign_trip",
		`{"tracking_id":"T","user_id":"ravi","message":"Go","dest":[80,13],"desc":"<b>x<img src=a>"}`))

	events := told()
	shownTask := s.data(s.app("GET", "/v1/task/list", ""))["task_list"].([]any)[0]
	shownTrip := s.data(s.app("GET", "/v1/trips/"+trip, ""))["trip"]
	shownDriver := s.data(s.app("GET", "/v1/users/driver?driver_id=ravi", ""))["driver"]
	shownRequest := s.data(s.asDriver(token, "GET", "/v1/driver/requests", ""))["requests"].([]any)[0]
	rows := func(names ...string) map[string]any {
		all := map[string]any{"task": shownTask, "trip": shownTrip, "driver": shownDriver, "request": shownRequest}
		for n := range all {
			if !slices.Contains(names, n) {
				delete(all, n)
			}
		}
		return all
	}
	for typ, want := range map[string]map[string]any{
		"task.created":     rows("task"),
		"task.assigned":    rows("task", "driver"),
		"task.started":     rows("task", "driver"),
		"trip.started":     rows("task", "trip", "driver"),
		"driver.joined":    rows("driver"),
		"driver.available": rows("driver"),
		"trip.requested":   rows("driver", "request"),
	} {
		got := map[string]any{}
		for _, name := range []string{"task", "trip", "driver", "request"} {
			if v, ok := events[typ][name]; ok {
				got[name] = v
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-shown +sent)\n%s", typ, d)
		}
	}
	if len(events) != 7 {
		t.Errorf("%d kinds of events, want 7", len(events))
	}
	if got := text(events["trip.requested"], "request", "desc_html"); got != "<b>x</b>" {
		t.Errorf("desc_html: %q", got)
	}
	// One place everywhere, the right way round.
	if d := cmp.Diff([]any{80.2628844, 13.0039875}, at(events["trip.started"], "driver", "lnglat")); d != "" ||
		text(events["trip.started"], "trip", "starts_at") != "13.0039875,80.2628844" {
		t.Errorf("the trip starts at %v\n%s", at(events["trip.started"], "trip", "starts_at"), d)
	}

	// What is gone is left out; the event still comes.
	s.data(s.app("POST", "/v1/task/complete", `{"task_id":"`+task+`"}`))
	s.data(s.app("POST", "/v1/users/driver/delete", `{"driver_id":"ravi"}`))
	events = told()
	if e := events["task.completed"]; text(e, "task", "outcome") != "succeeded" || e["driver"] != nil ||
		text(e, "data", "driver_id") != "ravi" {
		t.Errorf("after the driver was deleted: %v", e)
	}
}
