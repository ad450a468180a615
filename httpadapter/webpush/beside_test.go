package webpush_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
	"github.com/seed-8aba7b13/tracking/httpadapter/webpush"
)

// TestBesideADeadWebhook: while the receiver of webhooks takes nothing, and each try lasts until
// its time is up, the driver's phone is told of each event of a task within a second.
func TestBesideADeadWebhook(t *testing.T) {
	for name, dead := range map[string]func(r *http.Request) (*http.Response, error){
		"refuses": func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody, Request: r}, nil
		},
		"hangs": func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hook, err := webhook.New("https://example.com/hook", []string{webhook.NewSecret()},
					&webhook.Options{Transport: roundTripper(dead)})
				if err != nil {
					t.Fatal(err)
				}
				defer hook.Close()
				var mu sync.Mutex
				var told []time.Time
				svc, _, p := boundBeside(t, map[string]tracking.Notifier{"webhook": hook}, webpush.Options{},
					func(p *phone, r *http.Request) (*http.Response, error) {
						mu.Lock()
						defer mu.Unlock()
						told = append(told, time.Now())
						return serve(t, p, r), nil
					})
				ctx, cancel := context.WithCancel(t.Context())
				running := make(chan error)
				go func() { running <- svc.Run(ctx) }()
				defer func() {
					cancel()
					if err := <-running; !errors.Is(err, context.Canceled) {
						t.Errorf("Run: %v", err)
					}
				}()
				task, err := svc.CreateTask(t.Context(), tracking.NewTask{
					Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "Marienplatz 1"},
				})
				if err != nil {
					t.Fatal(err)
				}
				const rounds = 30
				for range rounds { // an hour and a half, with four of the webhook's tries
					if _, err := svc.AssignTask(t.Context(), task.ID, "d"); err != nil {
						t.Fatal(err)
					}
					time.Sleep(90 * time.Second)
					if _, err := svc.UnassignTask(t.Context(), task.ID); err != nil {
						t.Fatal(err)
					}
					time.Sleep(90 * time.Second)
				}
				events, _, err := svc.Events(t.Context(), tracking.EventFilter{
					Subject: tracking.Subject{Kind: tracking.KindTask, ID: string(task.ID)},
				})
				if err != nil || len(events) != 1+2*rounds {
					t.Fatalf("%d events, %v", len(events), err)
				}
				if events = events[1:]; len(told) != len(events) || len(p.messages()) != len(events) {
					t.Fatalf("%d pushes of %d events", len(told), len(events))
				}
				for i, e := range events {
					if late := told[i].Sub(e.RecordedAt); late > time.Second {
						t.Errorf("event %d was pushed after %v", e.Seq, late)
					}
				}
			})
		})
	}
}
