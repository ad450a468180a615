// Package claims keeps, for a store of one process, what sweeps have handed out and to whom: see
// [tracking.Claim]. Nothing of it outlives the process, as nobody who had a claim does either.
package claims

import (
	"sync"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// Claims are those of one kind of sweep, by what names a row. The zero Claims is ready.
type Claims[K comparable] struct {
	mu sync.Mutex
	of map[K]claim
}

type claim struct {
	owner string
	until time.Time
}

// Take asks for rows, and hands out at most limit that nobody else has a claim on, which the owner
// has from now on. Without an owner it hands out whatever there is.
func Take[K comparable, V any](
	c *Claims[K], by tracking.Claim, limit int, key func(V) K, ask func(limit int) ([]V, error),
) (free []V, err error) {
	if by.Owner == "" {
		return ask(limit)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	others := 0
	for k, v := range c.of {
		if !v.until.After(by.Now) {
			delete(c.of, k)
		} else if v.owner != by.Owner {
			others++
		}
	}
	list, err := ask(limit + others)
	if err != nil {
		return nil, err
	}
	if c.of == nil {
		c.of = map[K]claim{}
	}
	until := by.Now.Add(by.For)
	for _, v := range list {
		if len(free) == limit {
			break
		}
		k := key(v)
		if had, ok := c.of[k]; ok && had.owner != by.Owner && !had.until.After(until) { // later: by a wrong clock
			continue
		}
		c.of[k] = claim{by.Owner, until}
		free = append(free, v)
	}
	return free, nil
}
