package httpadapter_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

// TestNoticeHoldsAll: a notice has what the driver needs to act on it, whole.
func TestNoticeHoldsAll(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	id := text(s.data(s.app("POST", "/v1/task/create",
		`{"type":3,"pickup":{"lnglat":[80.26,13],"address":"Depot"},"drop":{"lnglat":[80.27,13.08],"address":"12 Beach Road","customer":{"name":"Asha","mobile":"+91 98"}},"customer":{"name":"Desk","mobile":"1"},"notes":"Ring twice","order_id":"#1"}`)), "task", "task_id")
	s.data(s.assign(id, "ravi"))
	const desc = `<p onclick=x()>Gate <b>4</b></p><img src=https://a.example/p.png><script>y()</script><a href=javascript:z()>no</a><a href=https://b.example/map>map</a><iframe src=/></iframe>`
	s.data(s.app("POST", "/v1/assign_trip",
		`{"tracking_id":"T","user_id":"ravi","message":"Go","dest":"12 Beach Road","desc":`+quote(desc)+`}`))
	r := s.asDriver(token, "GET", "/v1/driver/notifications", "")
	list := s.data(r)["notifications"].([]any)
	want := []any{
		map[string]any{
			"id": at(list, 0, "id"), "kind": "assigned", "time": "2026-03-14T09:00:00.000Z", "task_id": id,
			"task": map[string]any{
				"task_id": id, "type": 3.0, "time": "2026-03-14T09:00:00.000Z", "notes": "Ring twice",
				"status": "assigned", "outcome": "", "reason": "", "reason_code": "", "order_id": "#1", "driver_id": "ravi",
				"customer_note": "", "retry_of": "", "retried_by": "",
				"pickup": map[string]any{
					"lnglat": []any{80.26, 13.0}, "address": "Depot",
					"customer": map[string]any{"name": "Desk", "mobile": "1"},
				},
				"drop": map[string]any{
					"lnglat": []any{80.27, 13.08}, "address": "12 Beach Road",
					"customer": map[string]any{"name": "Asha", "mobile": "+91 98"},
				},
				"created_at": "2026-03-14T09:00:00.000Z", "updated_at": "2026-03-14T09:00:00.000Z", "version": 2.0,
				"assigned_at": "2026-03-14T09:00:00.000Z", "phase": "assigned",
			},
		},
		map[string]any{
			"id": at(list, 1, "id"), "kind": "trip_request", "time": "2026-03-14T09:00:00.000Z", "tracking_id": "T",
			"request": map[string]any{
				"tracking_id": "T", "message": "Go", "dest": map[string]any{"address": "12 Beach Road"}, "desc": desc,
				"desc_html":  `<p>Gate <b>4</b></p>no<a href="https://b.example/map" rel="nofollow noreferrer noopener" target="_blank">map</a>`,
				"created_at": "2026-03-14T09:00:00.000Z",
			},
		},
	}
	if d := cmp.Diff(want, list); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	// The stream sends the same.
	v := s.listen(token, "")
	for i := range want {
		if event, data := v.next(); event != "notice" || !strings.Contains(r.body, data) {
			t.Errorf("notice %d is streamed as %s %s", i, event, data)
		}
	}
}

// TestNoticesResumed: while notices are written from several sides, a reader whose stream breaks at
// any point and is resumed with its last id, and one who polls, each see every notice once and in
// order.
func TestNoticesResumed(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	const writers, rounds = 4, 25 // each with an assignment, an update, a cancellation and a request
	const total = writers * rounds * 4
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range rounds {
				id := s.newTask("")
				s.data(s.assign(id, "ravi"))
				s.data(s.app("POST", "/v1/task/update", `{"task_id":"`+id+`","notes":"n"}`))
				s.data(s.app("POST", "/v1/assign_trip", fmt.Sprintf(`{"tracking_id":"T%d-%d","user_id":"ravi"}`, w, i)))
				s.data(s.app("POST", "/v1/task/cancel", `{"task_id":"`+id+`"}`))
			}
		})
	}
	const readers = 3
	streamed := make([][]string, readers)
	for i := range readers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 7))
			last := ""
			for len(streamed[i]) < total {
				v := s.listen(token, last)
				for range 1 + random.IntN(20) {
					event, data := v.next()
					if event != "notice" || !strings.HasPrefix(data, `{"id":`+v.id+`,`) {
						t.Errorf("id %s: %s %s", v.id, event, data)
						return
					}
					streamed[i] = append(streamed[i], v.id)
					if last = v.id; len(streamed[i]) == total {
						break
					}
				}
				v.stop() // what is under way is lost, in the middle of an event too
				v.res.Body.Close()
			}
		})
	}
	var polled []string
	wg.Go(func() {
		for after := 0.0; len(polled) < total; {
			got := s.notices(token, fmt.Sprintf("?after=%.0f", after))
			if got["reset"] != false {
				t.Errorf("after %.0f: %v", after, got)
				return
			}
			for _, n := range got["notifications"].([]any) {
				polled = append(polled, fmt.Sprintf("%.0f", at(n, "id")))
			}
			after = got["after"].(float64)
		}
	})
	wg.Wait()
	for i, ids := range streamed {
		if d := cmp.Diff(polled, ids); d != "" {
			t.Errorf("stream %d (-polled +streamed)\n%s", i, d)
		}
	}
	for i := 1; i < len(polled); i++ {
		if a, b := number(t, polled[i-1]), number(t, polled[i]); a >= b {
			t.Errorf("%d comes before %d", a, b)
		}
	}
	if end := s.notices(token, "?after="+polled[len(polled)-1]); len(end["notifications"].([]any)) != 0 ||
		len(polled) != total {
		t.Errorf("%d notices, and then %v", len(polled), end)
	}
}

func number(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestNoticesPurged: a place older than what is kept begins anew, once, with what is so now; then
// things go on.
func TestNoticesPurged(t *testing.T) {
	for _, kept := range []bool{true, false} {
		t.Run(fmt.Sprint("some kept ", kept), func(t *testing.T) {
			s := newServer(t, func(so *tracking.Options, ho *httpadapter.Options) {
				so.Notifier = taker{} // what is undelivered is not purged
				ho.Heartbeat = time.Millisecond
			})
			token := s.newDriver("ravi")
			task := s.newTask("")
			s.data(s.assign(task, "ravi"))
			for i := range 3 {
				s.data(s.app("POST", "/v1/task/update", fmt.Sprintf(`{"task_id":%q,"notes":"%d"}`, task, i)))
			}
			all := s.notices(token, "")["notifications"].([]any)
			second := fmt.Sprintf("%.0f", at(all, 1, "id"))
			if _, err := s.svc.DeliverEvents(t.Context()); err != nil {
				t.Fatal(err)
			}
			s.clock.Advance(31 * 24 * time.Hour)
			if kept {
				s.data(s.app("POST", "/v1/task/update", `{"task_id":"`+task+`","notes":"kept"}`))
			}
			for {
				p, err := s.svc.Purge(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if p.Total() == 0 {
					break
				}
			}

			got := s.notices(token, "?after="+second)
			if got["reset"] != true || len(got["notifications"].([]any)) != 0 ||
				text(got, "task_list", 0, "task_id") != task ||
				text(got, "task_list", 0, "drop", "customer", "mobile") != "+91 98" {
				t.Errorf("after a purge: %v", got)
			}
			if again := s.notices(token, fmt.Sprintf("?after=%.0f", got["after"])); kept && again["reset"] != false {
				t.Errorf("after the reset: %v", again)
			}
			if fresh := s.notices(token, ""); fresh["reset"] != false {
				t.Errorf("a new reader: %v", fresh)
			}

			v := s.listen(token, second)
			event, data := v.next()
			if event != "reset" || !strings.Contains(data, `"reset":true`) ||
				!strings.Contains(data, `"task_id":"`+task+`"`) {
				t.Errorf("%s %s", event, data)
			}
			for range 3 { // silence, and signs that the stream lives
				line, err := v.r.ReadString('\n')
				if err != nil || line != ": still here\n" {
					t.Fatalf("%q, %v", line, err)
				}
				if _, err := v.r.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			s.data(s.app("POST", "/v1/task/update", `{"task_id":"`+task+`","notes":"new"}`))
			if event, data := v.next(); event != "notice" || !strings.Contains(data, `"notes":"new"`) {
				t.Errorf("then %s %s", event, data)
			}
			v.stop()
			_, _ = io.Copy(io.Discard, v.res.Body)
			s.data(s.app("POST", "/v1/task/update", `{"task_id":"`+task+`","notes":"newer"}`))
			w := s.listen(token, v.id)
			if event, data := w.next(); event != "notice" || !strings.Contains(data, `"notes":"newer"`) {
				t.Errorf("resumed: %s %s", event, data)
			}
		})
	}
}

// taker is a notifier that takes everything.
type taker struct{}

func (taker) Notify(context.Context, tracking.Notification) error { return nil }
