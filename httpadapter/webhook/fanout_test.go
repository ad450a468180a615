package webhook_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
)

// scripted answers with one error after the other, and then with nil.
func scripted(errs ...error) *webhook.Recorder {
	var mu sync.Mutex
	return &webhook.Recorder{Answer: func(context.Context, tracking.Notification) error {
		mu.Lock()
		defer mu.Unlock()
		if len(errs) == 0 {
			return nil
		}
		err := errs[0]
		errs = errs[1:]
		return err
	}}
}

func attempts(r *webhook.Recorder) []int {
	var list []int
	for _, d := range r.Deliveries() {
		list = append(list, d.Attempt)
	}
	return list
}

func TestFanout(t *testing.T) {
	down := errors.New("down")
	wait := func(d time.Duration) error { return &tracking.NotifyError{RetryAfter: d, Err: down} }
	refused := &tracking.NotifyError{Permanent: true, Err: errors.New("refused")}

	good, flaky, picky := scripted(), scripted(down, wait(time.Minute),
		fmt.Errorf("wrapped: %w", wait(time.Hour))), scripted(wait(time.Second), refused)
	f := webhook.NewFanout(good, flaky, picky)
	var got []*tracking.NotifyError
	note := assigned
	for note.Attempt = 1; note.Attempt <= 4; note.Attempt++ {
		var ne *tracking.NotifyError
		if err := f.Notify(t.Context(), note); !errors.As(err, &ne) {
			t.Fatalf("attempt %d: %v", note.Attempt, err)
		}
		got = append(got, ne)
	}
	for i, want := range []tracking.NotifyError{
		{RetryAfter: time.Second}, {RetryAfter: time.Minute}, {RetryAfter: time.Hour}, {Permanent: true},
	} {
		if got[i].Permanent != want.Permanent || got[i].RetryAfter != want.RetryAfter {
			t.Errorf("attempt %d: %+v, want %+v", i+1, got[i], want)
		}
	}
	if !errors.Is(got[3], refused) || errors.Is(got[3], down) {
		t.Errorf("the last error: %v", got[3])
	}
	for name, tt := range map[string]struct {
		r    *webhook.Recorder
		want []int
	}{"good": {good, []int{1}}, "flaky": {flaky, []int{1, 2, 3, 4}}, "picky": {picky, []int{1, 2}}} {
		if d := cmp.Diff(tt.want, attempts(tt.r)); d != "" {
			t.Errorf("%s was told (-want +got):\n%s", name, d)
		}
	}

	// Replayed, it goes to all again.
	if err := f.Notify(t.Context(), assigned); err != nil {
		t.Errorf("replay: %v", err)
	}
	if d := cmp.Diff([]int{1, 1}, attempts(good)); d != "" {
		t.Errorf("replay (-want +got):\n%s", d)
	}
}

// An event of the same id in another application is another event.
func TestFanoutKeepsApplicationsApart(t *testing.T) {
	good, flaky := scripted(), scripted(errors.New("down"))
	f := webhook.NewFanout(good, flaky)
	if err := f.Notify(t.Context(), assigned); err == nil {
		t.Fatal("no error")
	}
	other := assigned
	other.App, other.Attempt = "other", 2
	if err := f.Notify(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if got := len(good.Events()); got != 2 {
		t.Errorf("told %d times, want 2", got)
	}
}

// A slow notifier keeps none of the others waiting, and a cancelled call is tried again.
func TestFanoutIsParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := scripted()
		slow := &webhook.Recorder{Answer: func(ctx context.Context, _ tracking.Notification) error {
			<-ctx.Done()
			return ctx.Err()
		}}
		f := webhook.NewFanout(slow, good)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- f.Notify(ctx, assigned) }()
		synctest.Wait()
		if len(good.Events()) != 1 {
			t.Error("the slow one held it up")
		}
		cancel()
		var ne *tracking.NotifyError
		if err := <-done; !errors.As(err, &ne) || ne.Permanent || !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
}

func TestFanoutSurvivesPanic(t *testing.T) {
	good := scripted()
	f := webhook.NewFanout(&webhook.Recorder{Answer: func(context.Context, tracking.Notification) error {
		panic("oops")
	}}, good)
	if err := f.Notify(t.Context(), assigned); err == nil || len(good.Events()) != 1 {
		t.Errorf("%v, and the other was told %d times", err, len(good.Events()))
	}
}

// What is remembered stays bounded when a notifier is down for a long time.
func TestFanoutForgets(t *testing.T) {
	good, flaky := scripted(), &webhook.Recorder{Answer: func(_ context.Context, n tracking.Notification) error {
		if n.Attempt == 1 {
			return errors.New("down")
		}
		return nil
	}}
	f := webhook.NewFanout(good, flaky)
	const n = 10_005
	for attempt := 1; attempt <= 2; attempt++ {
		for i := range n {
			note := tracking.Notification{Attempt: attempt, Event: tracking.Event{ID: fmt.Sprint(i)}}
			if err := f.Notify(t.Context(), note); (err == nil) != (attempt == 2) {
				t.Fatal(err)
			}
		}
	}
	if got := len(good.Deliveries()); got != n+5 {
		t.Errorf("the good one was told %d times, want %d: the five oldest twice", got, n+5)
	}
}

func TestRecorder(t *testing.T) {
	down := errors.New("down")
	r := scripted(down)
	for note := assigned; note.Attempt <= 2; note.Attempt++ {
		_ = r.Notify(t.Context(), note)
	}
	var got []error
	for _, d := range r.Deliveries() {
		got = append(got, d.Err)
	}
	if len(got) != 2 || got[0] != down || got[1] != nil {
		t.Errorf("%v", got)
	}
	if d := cmp.Diff([]tracking.Event{assigned.Event}, r.Events()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	r.Reset()
	if len(r.Deliveries()) != 0 {
		t.Error("not forgotten")
	}
}
