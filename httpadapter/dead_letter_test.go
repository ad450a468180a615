package httpadapter_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

// hook is a receiver that is down until it is up.
type hook struct {
	up bool

	mu   sync.Mutex
	told []string
}

func (h *hook) Notify(_ context.Context, n tracking.Notification) error {
	if !h.up {
		return errors.New("down")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = append(h.told, n.Event.ID)
	return nil
}

// What could not be delivered is listed for each receiver and application by itself, and is delivered
// anew when somebody says so who may.
func TestDeadLetters(t *testing.T) {
	down, other := &hook{}, &hook{up: true}
	s := newServer(t, func(o *tracking.Options, ho *httpadapter.Options) {
		o.Notifiers = map[string]tracking.Notifier{"down": down, "other": other}
		o.RetryWaits = []time.Duration{0}
		ho.Keys["viewer"] = httpadapter.Principal{App: "a", Role: tracking.RoleView}
	})
	s.data(s.app("POST", "/v1/task/create", `{"type":2,"drop":{"address":"x"}}`))
	s.data(s.app("POST", "/v1/task/create", `{"type":2,"drop":{"address":"y"}}`))
	deliver := func() {
		t.Helper()
		if _, err := s.svc.DeliverEvents(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	deliver()
	dead := func(key, query string) (ids []string) {
		t.Helper()
		for _, e := range s.data(s.do("GET", "/v1/events?dead=true"+query, "", "X-Api-Key: "+key))["events"].([]any) {
			ids = append(ids, text(e, "id"))
		}
		return ids
	}
	ids := dead("viewer", "&outbox=down")
	if len(ids) != 2 {
		t.Fatalf("dead: %q", ids)
	}
	for _, c := range []struct{ key, query string }{
		{"viewer", ""}, {"viewer", "&outbox=other"}, {"viewer", "&outbox=nobody"}, {"key-b", "&outbox=down"},
	} {
		if got := dead(c.key, c.query); got != nil {
			t.Errorf("dead by %s%s: %q", c.key, c.query, got)
		}
	}

	down.up = true
	body := `{"outbox":"down","ids":["` + ids[1] + `","none"]}`
	if r := s.do("POST", "/v1/events/replay", body, "X-Api-Key: viewer"); r.status != 403 {
		t.Errorf("a viewer is answered %d", r.status)
	}
	for _, c := range []struct{ key, body string }{
		{"key-b", body}, {"key-a", strings.Replace(body, `"down"`, `"other"`, 1)},
		{"key-a", strings.Replace(body, `"outbox":"down",`, "", 1)},
	} {
		if r := s.do("POST", "/v1/events/replay", c.body, "X-Api-Key: "+c.key); r.status != 200 {
			t.Errorf("%d %s", r.status, r.body)
		}
		deliver()
		if len(down.told) != 0 {
			t.Fatalf("%s replays %s", c.key, c.body)
		}
	}
	for range 2 { // the second time nothing is dead
		if r := s.app("POST", "/v1/events/replay", body); r.status != 200 ||
			r.body != `{"message":"Events replayed","success":true}`+"\n" {
			t.Errorf("%d %s", r.status, r.body)
		}
		deliver()
	}
	if len(down.told) != 1 || down.told[0] != ids[1] || len(other.told) != 2 {
		t.Errorf("replayed: %q; the other receiver was told %d times", down.told, len(other.told))
	}
	if left := dead("viewer", "&outbox=down"); len(left) != 1 || left[0] != ids[0] {
		t.Errorf("dead after the replay: %q", left)
	}
}
