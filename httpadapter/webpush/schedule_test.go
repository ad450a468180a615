package webpush_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/webpush"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// bound makes a service with one driver, d, and his phone, all in the bubble of the caller.
func bound(t *testing.T, opts webpush.Options,
	answer func(p *phone, r *http.Request) (*http.Response, error)) (*tracking.Service, *webpush.Notifier, *phone) {
	t.Helper()
	return boundBeside(t, nil, opts, answer)
}

// boundBeside makes the service with other notifiers beside the push notifier.
func boundBeside(t *testing.T, others map[string]tracking.Notifier, opts webpush.Options,
	answer func(p *phone, r *http.Request) (*http.Response, error)) (*tracking.Service, *webpush.Notifier, *phone) {
	t.Helper()
	var p *phone
	opts.Contact = contact
	opts.Transport = roundTripper(func(r *http.Request) (*http.Response, error) { return answer(p, r) })
	push, err := webpush.New(nil, &opts)
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New()
	t.Cleanup(func() { store.Close() })
	svc, err := tracking.New(store, &tracking.Options{
		Notifier: push, Notifiers: others, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	push.Bind(svc)
	key, err := push.PublicKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p = newPhone(t, "https://push.example.com/capability", key)
	if _, err := svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: "d"}); err != nil {
		t.Fatal(err)
	}
	if err := svc.SubscribePush(t.Context(), "d", p.subscription()); err != nil {
		t.Fatal(err)
	}
	return svc, push, p
}

// serve makes a phone's push service answer.
func serve(t *testing.T, p *phone, r *http.Request) *http.Response {
	rec := httptest.NewRecorder()
	p.serve(t, rec, r, "https://push.example.com", time.Now())
	res := rec.Result()
	res.Request = r
	return res
}

// TestSchedule runs a service whose driver's push service is down, and then asks for patience, in a
// bubble of fake time.
func TestSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var tries []string
		start := time.Now()
		svc, _, p := bound(t, webpush.Options{}, func(p *phone, r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			tries = append(tries,
				fmt.Sprintf("%s %v", r.Header.Get("Topic"), time.Since(start).Truncate(10*time.Second)))
			return serve(t, p, r), nil
		})
		p.answers(func(w http.ResponseWriter, nth int) {
			switch {
			case nth <= 3:
				w.WriteHeader(http.StatusBadGateway)
			case nth == 4:
				w.Header().Set("Retry-After", "1200")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		})
		ctx, cancel := context.WithCancel(t.Context())
		running := make(chan error)
		go func() { running <- svc.Run(ctx) }()

		var ids []string
		for _, tracking_id := range []tracking.TrackingID{"x", "y"} {
			if err := svc.RequestTrip(ctx, tracking.NewRequest{DriverID: "d", TrackingID: tracking_id}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Hour) // in the bubble
		synctest.Wait()
		cancel()
		if err := <-running; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}

		events, _, err := svc.Events(t.Context(), tracking.EventFilter{
			Subject: tracking.Subject{Kind: tracking.KindDriver, ID: "d"},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			ids = append(ids, e.ID)
		}
		// The first is given up after the third try, 5 s and 5 min (and up to a tenth) after the
		// one before. The second goes out at once, and again 20 min later, as it was told.
		if len(ids) != 2 || len(tries) != 5 {
			t.Fatalf("%d events, tried %q", len(ids), tries)
		}
		var order []string
		for _, s := range tries {
			id, _, _ := strings.Cut(s, " ")
			order = append(order, id)
		}
		if d := cmp.Diff([]string{ids[0], ids[0], ids[0], ids[1], ids[1]}, order); d != "" {
			t.Errorf("tried (-want +got):\n%s", d)
		}
		var got []time.Duration
		for _, s := range tries {
			_, after, _ := strings.Cut(s, " ")
			d, err := time.ParseDuration(after)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, d)
		}
		if got[0] != 0 || got[1] > 10*time.Second || got[2] < 5*time.Minute || got[2] > 6*time.Minute ||
			got[3]-got[2] > 10*time.Second || got[4]-got[3] < 20*time.Minute ||
			got[4]-got[3] > 20*time.Minute+10*time.Second {
			t.Errorf("tried after %v", got)
		}
		dead, _, err := svc.Events(t.Context(), tracking.EventFilter{Dead: true})
		if err != nil || len(dead) != 1 || dead[0].ID != ids[0] {
			t.Errorf("given up: %v, %v; want the first", dead, err)
		}
		if n := len(p.messages()); n != 1 {
			t.Errorf("the phone got %d messages, want the second event's", n)
		}
	})
}

func TestTimeout(t *testing.T) {
	for name, tt := range map[string]struct{ timeout, want time.Duration }{
		"default": {0, 10 * time.Second}, "as set": {time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, push, _ := bound(t, webpush.Options{Timeout: tt.timeout},
					func(_ *phone, r *http.Request) (*http.Response, error) {
						<-r.Context().Done()
						return nil, r.Context().Err()
					})
				start := time.Now()
				err := push.Notify(t.Context(), note(1, "d"))
				var ne *tracking.NotifyError
				if !errors.As(err, &ne) || ne.Permanent || !errors.Is(err, context.DeadlineExceeded) ||
					time.Since(start) != tt.want {
					t.Errorf("after %v: %v", time.Since(start), err)
				}
			})
		})
	}
}

// A token is renewed long before the push service refuses it.
func TestTokenIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tokens := map[string]bool{}
		_, push, p := bound(t, webpush.Options{}, func(p *phone, r *http.Request) (*http.Response, error) {
			tokens[r.Header.Get("Authorization")] = true
			return serve(t, p, r), nil // which judges it
		})
		const times = 100
		for range times {
			if err := push.Notify(t.Context(), note(1, "d")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Minute) // in the bubble
		}
		if len(p.messages()) != times || len(tokens) != times/2 {
			t.Errorf("%d messages with %d tokens in 50 hours, want %d with %d", len(p.messages()), len(tokens), times,
				times/2)
		}
	})
}

// A panic of the transport is a failure like any other.
func TestPanic(t *testing.T) {
	_, push, _ := bound(t, webpush.Options{}, func(*phone, *http.Request) (*http.Response, error) { panic("oops") })
	var ne *tracking.NotifyError
	if err := push.Notify(t.Context(), note(1, "d")); !errors.As(err, &ne) || ne.Permanent {
		t.Errorf("%v", err)
	}
}

// What is remembered stays bounded when a push service is down for a long time: the oldest events
// are told anew.
func TestMemoryIsBounded(t *testing.T) {
	const limit, more = 20, 5
	var mu sync.Mutex
	asked := map[string]int{}
	svc, push, p := bound(t, webpush.Options{}, func(_ *phone, r *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.Path]++
		if r.URL.Path == "/down" && asked[r.URL.Path] <= limit+more {
			return nil, errors.New("down")
		}
		return &http.Response{StatusCode: http.StatusCreated, Body: http.NoBody, Request: r}, nil
	})
	push.Remember(limit)
	down := p.subscription()
	down.Endpoint = "https://push.example.com/down"
	if err := svc.SubscribePush(t.Context(), "d", down); err != nil {
		t.Fatal(err)
	}
	for attempt := 1; attempt <= 2; attempt++ {
		for i := range limit + more {
			n := note(attempt, "d")
			n.Event.ID = fmt.Sprint(i)
			if err := push.Notify(t.Context(), n); (err == nil) != (attempt == 2) {
				t.Fatalf("attempt %d: %v", attempt, err)
			}
			if got := push.Underway(); got > limit {
				t.Fatalf("%d events are remembered, want at most %d", got, limit)
			}
		}
	}
	if got := push.Underway(); got != 0 {
		t.Errorf("%d events are remembered in the end, want none", got)
	}
	if want := map[string]int{
		"/capability": limit + more + more, "/down": 2 * (limit + more),
	}; !cmp.Equal(asked, want) {
		t.Errorf("asked %v, want %v", asked, want)
	}

	// Those that succeed at their second try leave no trace either.
	for i := range 3 * limit {
		asked["/down"] = limit + more - 1
		for attempt := 1; attempt <= 2; attempt++ {
			n := note(attempt, "d")
			n.Event.ID = fmt.Sprint("again ", i)
			if err := push.Notify(t.Context(), n); (err == nil) != (attempt == 2) {
				t.Fatalf("attempt %d: %v", attempt, err)
			}
		}
		if got := push.Queued(); got > 2*limit {
			t.Fatalf("a list of %d events, want at most %d", got, 2*limit)
		}
	}
}
