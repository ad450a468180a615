package webhook

import (
	"context"
	"slices"
	"sync"

	"github.com/seed-8aba7b13/tracking"
)

// Recorder keeps what it is told, for tests. The zero Recorder is ready, and takes everything.
type Recorder struct {
	// Answer, if set, decides what Notify returns. It is to be set before the first Notify, and may
	// be called by several goroutines at once.
	Answer func(ctx context.Context, n tracking.Notification) error

	mu   sync.Mutex
	told []Delivery
}

// Delivery is one call of a [Recorder].
type Delivery struct {
	tracking.Notification
	Err error // what was answered
}

var _ tracking.Notifier = (*Recorder)(nil)

// Notify keeps n and answers.
func (r *Recorder) Notify(ctx context.Context, n tracking.Notification) error {
	n.Event = n.Event.Clone()
	var err error
	if r.Answer != nil {
		err = r.Answer(ctx, n)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, Delivery{n, err})
	return err
}

// Deliveries returns all calls, in the order they ended.
func (r *Recorder) Deliveries() []Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.told)
}

// Events returns the events that were taken, in order, as often as they were.
func (r *Recorder) Events() []tracking.Event {
	var list []tracking.Event
	for _, d := range r.Deliveries() {
		if d.Err == nil {
			list = append(list, d.Event)
		}
	}
	return list
}

// Reset forgets what was kept.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = nil
}
