package webhook_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// try is one request that a receiver got.
type try struct {
	id string
	at time.Time
}

// TestSchedule runs a service for as long as it takes to give an event up, in a bubble of fake
// time.
func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var tries []try
		first := "" // the id of the first event, which the receiver never takes
		receive := func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			if err := webhook.Verify(r.Header, body, time.Now(), secret); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			id := r.Header.Get("webhook-id")
			if first == "" {
				first = id
			}
			tries = append(tries, try{id, time.Now()})
			status := http.StatusOK
			if id == first {
				status = http.StatusServiceUnavailable
			}
			return &http.Response{StatusCode: status, Body: http.NoBody, Request: r}, nil
		}
		hook, err := webhook.New("https://example.com/hook", []string{secret}, &webhook.Options{
			Transport: roundTripper(receive),
		})
		if err != nil {
			t.Fatal(err)
		}
		store := memory.New()
		defer store.Close()
		svc, err := tracking.New(store, &tracking.Options{Notifier: hook, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		running := make(chan error)
		go func() { running <- svc.Run(ctx) }()

		task, err := svc.CreateTask(ctx, tracking.NewTask{
			Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "Marienplatz 1"},
		})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := svc.CancelTask(ctx, task.ID, tracking.Reason{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(85 * time.Hour) // in the bubble: the schedule's 75 h 35 min, its jitter, and some more
		synctest.Wait()
		cancel()
		if err := <-running; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}

		waits := []time.Duration{
			0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
			14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
		}
		if len(tries) != len(waits)+1 {
			t.Fatalf("%d tries, want %d of the first event and 1 of the second", len(tries), len(waits))
		}
		last := start
		for i, wait := range waits {
			took := tries[i].at.Sub(last)
			last = tries[i].at
			// A tenth of jitter, and the second within which what has come due is looked for.
			if took < wait || took > wait+wait/10+time.Second || tries[i].id != first {
				t.Errorf("try %d of %s after %v, want %v", i+1, tries[i].id, took, wait)
			}
		}
		if next := tries[len(waits)]; next.id == first || next.at.Sub(last) > 2*time.Second {
			t.Errorf("the next event %v after the last try", next.at.Sub(last))
		}
		dead, _, err := svc.Events(t.Context(), tracking.EventFilter{Dead: true})
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, e := range dead {
			ids = append(ids, e.ID)
		}
		if d := cmp.Diff([]string{first}, ids); d != "" {
			t.Errorf("given up (-want +got):\n%s", d)
		}
	})
}
