package postgres

import (
	"errors"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
)

// What has become of transactions: NULL if they ended too long ago.
const selectEnded = `SELECT x, pg_xact_status(x::xid8) FROM unnest($1::text[]) x`

// How soon it is noticed that an embedder's transaction has ended: by the first while they are short,
// later and later, up to the last, the longer nothing happens.
const (
	noticeFirst = 20 * time.Millisecond
	noticeLast  = 400 * time.Millisecond
)

// commits waits for the ends of the embedder's transactions. Nobody tells of them, so it asks the
// server; while there are none it asks nothing.
type commits struct {
	mu      sync.Mutex
	waiting map[string][]func() // by the transaction's id: what is to be done when it is committed
	wake    chan struct{}
	done    chan struct{}
}

// start runs it until the store is closed.
func (c *commits) start(s *Store) {
	c.waiting, c.wake, c.done = map[string][]func(){}, make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(c.done)
		for {
			select {
			case <-c.wake:
			case <-s.closing.Done():
				return
			}
			c.watch(s)
		}
	}()
}

// add has f called when the transaction is committed.
func (c *commits) add(id string, f func()) {
	c.mu.Lock()
	c.waiting[id] = append(c.waiting[id], f)
	c.mu.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// watch asks until all have ended.
func (c *commits) watch(s *Store) {
	for pause := noticeFirst; ; pause = min(pause*3/2, noticeLast) {
		select {
		case <-time.After(pause):
		case <-s.closing.Done():
			return
		}
		ids := c.ids()
		if len(ids) == 0 {
			return
		}
		ended, err := list(s.closing, s, scanEnd, selectEnded, ids)
		switch {
		case errors.Is(err, tracking.ErrUnavailable) || s.closing.Err() != nil:
			continue
		case err != nil: // by a server that does not know them: what they wrote is looked for then
			c.drop(ids)
			continue
		}
		for _, e := range ended {
			if e.committed || e.aborted {
				pause = noticeFirst
				for _, f := range c.take(e.id) {
					if e.committed {
						f()
					}
				}
			}
		}
		select {
		case <-c.wake: // another one, which may be short
			pause = noticeFirst
		default:
		}
	}
}

// ids are those of the transactions that have not ended.
func (c *commits) ids() (list []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.waiting {
		list = append(list, id)
	}
	return list
}

func (c *commits) take(id string) []func() {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.waiting[id]
	delete(c.waiting, id)
	return list
}

func (c *commits) drop(ids []string) {
	for _, id := range ids {
		c.take(id)
	}
}

// end is what has become of a transaction.
type end struct {
	id                 string
	committed, aborted bool
}

func scanEnd(row pgx.CollectableRow) (e end, err error) {
	var status *string
	err = row.Scan(&e.id, &status)
	e.committed = status == nil || *status == "committed"
	e.aborted = status != nil && *status == "aborted"
	return e, err
}
