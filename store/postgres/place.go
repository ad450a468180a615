package postgres

import (
	"context"
	"sync"
	"time"
)

// The place of an event in the list of its application is given after its commit, to all that have
// none yet. A number that is drawn before the commit would not do: 7 could be seen while 6 is not
// committed, and who goes on after 7 never sees 6.
const (
	// Whoever gives places holds this row, so that they come one after another.
	lockPlaces = `
INSERT INTO tracking.places (app, last) VALUES ($1, 0)
ON CONFLICT (app) DO UPDATE SET last = places.last`

	// Before the server knows how many events there are it would compare all with all. Those that have no
	// place are in one stretch of the key, which is read once and hashed or merged.
	oneStretch = `
SELECT set_config('enable_nestloop', 'off', true), set_config('enable_seqscan', 'off', true),
	set_config('enable_bitmapscan', 'off', true)`

	placeEvents = `
UPDATE tracking.events e SET place = p.last + o.rank
FROM (SELECT n, row_number() OVER (ORDER BY n) AS rank FROM tracking.events
	WHERE app = $1 AND place IS NULL ORDER BY n LIMIT $2) o, tracking.places p
WHERE e.app = $1 AND e.n = o.n AND p.app = $1
	AND e.n >= (SELECT min(n) FROM tracking.events WHERE app = $1 AND place IS NULL)`

	updatePlaces = `
UPDATE tracking.places SET last = greatest(last, (SELECT max(place) FROM tracking.events WHERE app = $1 AND place IS NOT NULL))
WHERE app = $1`

	selectUnplaced = `SELECT EXISTS (SELECT 1 FROM tracking.events WHERE app = $1 AND place IS NULL)`

	placeAtOnce = 5000                  // events in one step
	placePause  = 50 * time.Millisecond // from one step to the next, in the background
)

// place gives all committed events of an application that have none their places.
func (s *Store) place(ctx context.Context, app int32) error {
	for {
		var n int
		err := s.write(ctx, func(ctx context.Context, x *tx) error {
			x.queue(lockPlaces, app)
			x.queue(oneStretch)
			x.counted(&n, placeEvents, app, placeAtOnce)
			x.queue(updatePlaces, app)
			return nil
		})
		if err != nil || n < placeAtOnce {
			return err
		}
	}
}

// placed sees to it that every committed event of an application has its place. So a list misses
// none, though nobody who commits waits for places.
func (s *Store) placed(ctx context.Context, app int32) error {
	var some bool
	err := s.call(ctx, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, s.sql(selectUnplaced), app).Scan(&some)
	})
	if err != nil || !some {
		return err
	}
	return s.place(ctx, app)
}

// placer gives places in the background, so that who reads a list seldom has to.
type placer struct {
	mu     sync.Mutex
	wanted map[int32]struct{} // applications that have committed events
	wake   chan struct{}
	done   chan struct{}
}

// start runs the placer until the store is closed.
func (p *placer) start(s *Store) {
	p.wanted, p.wake, p.done = map[int32]struct{}{}, make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(p.done)
		for {
			select {
			case <-p.wake:
			case <-s.closing.Done():
				return
			}
			for app := range p.take() {
				// What fails now is done with the next event, or by the next list.
				_ = s.place(s.closing, app)
			}
			select {
			case <-time.After(placePause):
			case <-s.closing.Done():
				return
			}
		}
	}()
}

// want asks for places for an application.
func (p *placer) want(app int32) {
	p.mu.Lock()
	p.wanted[app] = struct{}{}
	p.mu.Unlock()
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

func (p *placer) take() map[int32]struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted := p.wanted
	p.wanted = map[int32]struct{}{}
	return wanted
}
