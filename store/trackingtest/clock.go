package trackingtest

import (
	"sync"
	"time"
)

// Clock is a clock that stands until it is moved, by [Kit.Advance] or by a driver who drives.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// Now is what the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Skip moves the clock and does nothing else, as when a program was not running for a while.
func (c *Clock) Skip(d time.Duration) { c.set(c.Now().Add(d)) }

func (c *Clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}
