package webpush

import (
	"sync"

	"github.com/seed-8aba7b13/tracking"
)

const maxUnderway = 10_000

// told remembers, for events that are to be tried again, which browsers are done with.
type told struct {
	limit int // of events

	mu       sync.Mutex
	underway map[eventKey]map[target]bool // true: the browser's push service has refused the message for good
	oldest   []eventKey                   // in order of their first try; may name some that are over
}

type eventKey struct {
	app tracking.AppID
	id  string
}

// target is one notice for one browser.
type target struct {
	driver          tracking.DriverID
	endpoint, topic string
}

func (m *message) target() target { return target{m.driver.ID, string(m.sub.Endpoint), m.topic} }

// without leaves out the messages that are done with.
func (t *told) without(key eventKey, messages []*message) []*message {
	t.mu.Lock()
	defer t.mu.Unlock()
	var rest []*message
	for _, m := range messages {
		if _, done := t.underway[key][m.target()]; !done {
			rest = append(rest, m)
		}
	}
	return rest
}

// refused reports whether a push service has refused a message of the event for good.
func (t *told) refused(key eventKey) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, refused := range t.underway[key] {
		if refused {
			return true
		}
	}
	return false
}

// keep adds the messages that are done with.
func (t *told) keep(key eventKey, messages []*message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	done := t.underway[key]
	if done == nil {
		done = map[target]bool{}
		t.underway[key] = done
		t.oldest = append(t.oldest, key)
	}
	for _, m := range messages {
		if m.settled || m.finally {
			done[m.target()] = m.finally
		}
	}
	for len(t.underway) > t.limit || len(t.oldest) > 2*t.limit {
		delete(t.underway, t.oldest[0])
		t.oldest = t.oldest[1:]
	}
}

func (t *told) forget(key eventKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.underway, key)
}
