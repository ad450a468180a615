package webhook

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed-8aba7b13/tracking"
)

// Fanout tells several notifiers of each event, all at once. It fails when one of them fails, and
// the service then tries again; it tells only those that still lack the event, as far as it
// remembers: it forgets what happened in another process, and the oldest of the events that are
// underway when they are more than 10,000.
//
// An event counts as permanently failed once no notifier is left that would take it later and at
// least one has refused it for good. If tried anew (with Attempt 1), it goes to all.
//
// The notifiers share one outbox: the next event of a subject waits until all have this one, or
// have refused it. That is for receivers that should stand or fall together; those that should not
// hold each other up stand in [tracking.Options].Notifiers, each by its own name.
type Fanout struct {
	to []tracking.Notifier

	mu       sync.Mutex
	underway map[eventKey]*told
	oldest   []eventKey // in order of their first try; may name some that are over
}

type eventKey struct {
	app tracking.AppID
	id  string
}

// told says for each notifier whether it is settled, and why if it refused.
type told struct {
	settled []bool
	refused []error
}

const maxUnderway = 10_000

var _ tracking.Notifier = (*Fanout)(nil)

// NewFanout makes a notifier that tells all of to.
func NewFanout(to ...tracking.Notifier) *Fanout {
	return &Fanout{to: to, underway: map[eventKey]*told{}}
}

// Notify tells all notifiers that lack n, and waits for them.
func (f *Fanout) Notify(ctx context.Context, n tracking.Notification) error {
	key := eventKey{n.App, n.Event.ID}
	state := f.begin(key, n.Attempt)
	errs := make([]error, len(f.to))
	var wg sync.WaitGroup
	for i, to := range f.to {
		if state.settled[i] {
			continue
		}
		wg.Go(func() {
			defer func() { // the service would catch it, but not in this goroutine
				if p := recover(); p != nil {
					errs[i] = fmt.Errorf("webhook: a notifier panicked: %v", p)
				}
			}()
			own := n
			own.Event = n.Event.Clone()
			errs[i] = to.Notify(ctx, own)
		})
	}
	wg.Wait()

	again := &tracking.NotifyError{}
	var later []error
	for i, err := range errs {
		var ne *tracking.NotifyError
		switch {
		case state.settled[i]:
		case err == nil:
			state.settled[i] = true
		case errors.As(err, &ne) && ne.Permanent:
			state.settled[i] = true
			state.refused = append(state.refused, err)
		default:
			later = append(later, err)
			if ne != nil {
				again.RetryAfter = max(again.RetryAfter, ne.RetryAfter)
			}
		}
	}
	if len(later) > 0 {
		f.keep(key, state)
		again.Err = errors.Join(later...)
		return again
	}
	f.forget(key)
	if len(state.refused) > 0 {
		return &tracking.NotifyError{Permanent: true, Err: errors.Join(state.refused...)}
	}
	return nil
}

// begin gives a copy of what is remembered of an event.
func (f *Fanout) begin(key eventKey, attempt int) *told {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := &told{settled: make([]bool, len(f.to))}
	if known, ok := f.underway[key]; ok && attempt > 1 {
		copy(t.settled, known.settled)
		t.refused = append(t.refused, known.refused...)
	}
	return t
}

func (f *Fanout) keep(key eventKey, t *told) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.underway[key]; !ok {
		f.oldest = append(f.oldest, key)
	}
	f.underway[key] = t
	for len(f.underway) > maxUnderway || len(f.oldest) > 2*maxUnderway {
		delete(f.underway, f.oldest[0])
		f.oldest = f.oldest[1:]
	}
}

func (f *Fanout) forget(key eventKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.underway, key)
}
