package postgres

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Calls of RecordFixes that are made at once share a transaction, which takes two round trips: one
// locks the drivers and reads them, the other one writes and commits; or one alone, for drivers that
// nobody else has written to since this process has: see known.go. While some groups are under way
// the calls wait in a line, and the next group takes all of it, but those about a driver of a group
// that is under way. A call that comes alone is a group of its own at once.
const (
	groupsAtOnce = 2 // one computes while the other one waits for the disk
	groupCalls   = 256
	groupFixes   = 4096
)

// A driver whom somebody else holds for long stands in the way of the others of his group. So a
// group waits for lockWaitOfGroup, and then goes on without those held: they are tried by
// themselves until they are free.
const (
	beginGroup      = `BEGIN ISOLATION LEVEL READ COMMITTED`
	lockWaitOfGroup = `SET LOCAL lock_timeout = '200ms'`
	heldPauseMin    = 10 * time.Millisecond
	heldPauseMax    = 200 * time.Millisecond
)

// recording is a call of RecordFixes on its way.
type recording struct {
	arrival
	ctx   context.Context
	app   tracking.AppID
	key   driverKey
	until time.Time     // it waits no longer for a driver who is held
	done  chan struct{} // is closed when out and err are set
}

// driverKey is a driver's id in the store.
type driverKey struct {
	app int32
	id  tracking.DriverID
}

// recorder groups the calls of RecordFixes.
type recorder struct {
	mu     sync.Mutex
	line   []*recording       // those that wait for a group
	groups int                // under way
	flying map[driverKey]bool // whose they are
	known  map[driverKey]knownDriver

	held    []*recording      // those that wait for a driver whom somebody else holds
	busy    map[driverKey]int // whose they are
	waiting bool              // somebody looks after them
}

// RecordFixes implements [tracking.Store].
func (s *Store) RecordFixes(ctx context.Context, app tracking.AppID, b tracking.FixBatch) (tracking.Recorded, error) {
	if err := cmp.Or(ctx.Err(), rows.FixTexts(b.Fixes)); err != nil {
		return tracking.Recorded{}, err
	}
	if !rows.Text(b.DriverID) {
		return tracking.Recorded{}, tracking.ErrNotFound
	}
	n, err := s.numberOf(ctx, app)
	if err != nil {
		return tracking.Recorded{}, err
	}
	r := &recording{
		arrival: arrival{batch: rows.Batch(b)}, ctx: ctx, app: app, key: driverKey{n, b.DriverID},
		until: time.Now().Add(s.opts.Timeout), done: make(chan struct{}),
	}
	s.recorder.take(s, r)
	select {
	case <-r.done:
		return r.out, r.err
	case <-ctx.Done():
		return tracking.Recorded{}, ctx.Err()
	}
}

// take puts a call in line, and sees to it that it has its turn.
func (g *recorder) take(s *Store, r *recording) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy[r.key] > 0 { // it would hold up its group as well
		g.hold(s, r)
		return
	}
	g.line = append(g.line, r)
	if g.groups < groupsAtOnce {
		g.groups++
		go g.run(s)
	}
}

// queue is how many calls wait for a group, or for a driver.
func (g *recorder) queue() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.line) + len(g.held)
}

// run commits groups until nobody is in line.
func (g *recorder) run(s *Store) {
	for {
		list := g.next()
		if len(list) == 0 {
			return
		}
		g.commit(s, list)
		g.mu.Lock()
		for _, r := range list {
			delete(g.flying, r.key)
		}
		g.mu.Unlock()
		runtime.Gosched() // who was answered may have more to say: the next group is larger then
	}
}

// next takes those who are in line, without those who have given up. For none it ends the group: whose
// driver is in another one is taken when that has ended.
func (g *recorder) next() (list []*recording) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.flying == nil {
		g.flying = map[driverKey]bool{}
	}
	fixes := 0
	rest := g.line[:0]
	for i, r := range g.line {
		if len(list) == groupCalls || len(list) > 0 && fixes+len(r.batch.Fixes) > groupFixes {
			rest = append(rest, g.line[i:]...)
			break
		}
		switch {
		case r.ctx.Err() != nil:
		case g.flying[r.key]:
			rest = append(rest, r)
		default:
			list = append(list, r)
			fixes += len(r.batch.Fixes)
		}
	}
	for _, r := range list {
		g.flying[r.key] = true
	}
	clear(g.line[len(rest):])
	if g.line = rest; len(list) == 0 {
		g.groups--
	}
	return list
}

// commit keeps the batches of a group and answers its calls; those whose driver somebody else holds
// wait for him elsewhere.
func (g *recorder) commit(s *Store, list []*recording) {
	list, held := g.commitKnown(s, list)
	if len(list) == 0 {
		return
	}
	var left []*recording
	var err error
	if !held {
		left, err = s.recordGroup(list, lockWaitOfGroup)
		held = code(err) == codeLockTimeout
	}
	if held {
		left, err = s.recordGroup(list, "")
	}
	if refused(err) && len(list) > 1 { // somebody's call is to blame, and the others need not suffer
		for _, r := range list {
			g.commit(s, []*recording{r})
		}
		return
	}
	if len(left) > 0 {
		g.mu.Lock()
		for _, r := range left {
			g.hold(s, r)
		}
		g.mu.Unlock()
	}
	s.answer(list, left, err)
}

// refused reports whether the server has refused a transaction for what it was told to do.
func refused(err error) bool { return err != nil && !errors.Is(err, tracking.ErrUnavailable) }

// answer ends the calls of a group but those that are left. What is kept is told, also for who has
// gone.
func (s *Store) answer(list, left []*recording, err error) {
	waits := make(map[*recording]bool, len(left))
	for _, r := range left {
		waits[r] = true
	}
	for _, r := range list {
		if waits[r] {
			continue
		}
		if err != nil {
			r.out, r.err = tracking.Recorded{}, failure(r.ctx, err)
		}
		if r.err == nil && len(r.batch.Fixes) > 0 {
			s.teller.tell(r.app, tracking.Subject{Kind: tracking.KindDriver, ID: string(r.key.id)})
		}
		close(r.done)
	}
}

// hold puts a call aside until its driver is free. The caller holds g.mu.
func (g *recorder) hold(s *Store, r *recording) {
	if g.busy == nil {
		g.busy = map[driverKey]int{}
	}
	g.held = append(g.held, r)
	g.busy[r.key]++
	if !g.waiting {
		g.waiting = true
		go g.retry(s)
	}
}

// retry tries those who are held until none is left.
func (g *recorder) retry(s *Store) {
	pause := heldPauseMin
	for {
		select {
		case <-time.After(pause):
		case <-s.closing.Done():
		}
		g.mu.Lock()
		list := g.held
		g.held = nil
		g.mu.Unlock()

		for rest := list; len(rest) > 0; {
			n := min(len(rest), groupCalls)
			g.retrySome(s, rest[:n])
			rest = rest[n:]
		}

		g.mu.Lock()
		if len(g.held) < len(list) {
			pause = heldPauseMin
		} else {
			pause = min(2*pause, heldPauseMax)
		}
		if len(g.held) == 0 {
			g.waiting = false
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
	}
}

// retrySome tries calls once more, and ends those that have waited for long enough.
func (g *recorder) retrySome(s *Store, list []*recording) {
	var tried, over []*recording
	for _, r := range list {
		if r.ctx.Err() != nil || time.Now().After(r.until) {
			over = append(over, r)
		} else {
			tried = append(tried, r)
		}
	}
	left, err := s.recordGroup(tried, "")
	if refused(err) && len(tried) > 1 {
		for _, r := range tried {
			g.retrySome(s, []*recording{r})
		}
		tried, left, err = nil, nil, nil
	}
	g.mu.Lock()
	for _, r := range slices.Concat(over, tried) {
		if g.busy[r.key]--; g.busy[r.key] == 0 {
			delete(g.busy, r.key)
		}
	}
	for _, r := range left {
		g.hold(s, r)
	}
	g.mu.Unlock()
	s.answer(tried, left, err)
	s.answer(over, nil, errHeld)
}

// errHeld is of a call that has waited for a row for too long.
var errHeld = &tracking.Error{
	Code: tracking.ErrUnavailable, Message: "A row is held by another transaction.",
}

const (
	selectNumbersOf = `
SELECT p.app, p.driver FROM unnest($1::int[], $2::text[]) u (app, id)
JOIN tracking.drivers d ON d.app = u.app AND d.id = u.id
JOIN tracking.positions p ON p.app = d.app AND p.driver = d.n
WHERE true`

	selectGroup = `SELECT` + driverColumns + ` FROM unnest($1::int[], $2::text[]) u (app, id)
JOIN tracking.drivers d ON d.app = u.app AND d.id = u.id
JOIN tracking.positions p ON p.app = d.app AND p.driver = d.n`
)

// driversOf are the drivers of a group: by their numbers in order, as every transaction locks them.
var driversOf = lockable[driverNumber]{
	query: selectNumbersOf,
	order: ` ORDER BY p.app, p.driver`,
	lock:  ` FOR UPDATE OF p`,
	key:   `p.app, p.driver`,
	keyOf: func(n driverNumber) []any { return []any{n.app, n.number} },
	scan:  scanNumber,
}

// driverNumber is a driver's number in the store.
type driverNumber struct {
	app    int32
	number int64
}

func scanNumber(row pgx.CollectableRow) (n driverNumber, err error) {
	err = row.Scan(&n.app, &n.number)
	return n, err
}

// recordGroup keeps batches in one transaction, which waits for drivers held by others as limit
// says. Without a limit it waits for none: it leaves the calls for these.
func (s *Store) recordGroup(list []*recording, limit string) (left []*recording, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	var apps []int32
	var ids []string
	seen := make(map[driverKey]bool, len(list))
	for _, r := range list {
		if !seen[r.key] {
			seen[r.key] = true
			apps, ids = append(apps, r.key.app), append(ids, string(r.key.id))
		}
	}
	err = s.call(context.Background(), func(ctx context.Context) error {
		for try := 1; ; try++ {
			left = nil
			err := s.once(ctx, beginGroup, func(ctx context.Context, x *tx) error {
				if limit != "" {
					x.queue(limit)
				}
				x.plansOf(ofDrivers)
				var locked []driverNumber
				var found []*driverState
				if limit != "" {
					queueRows(x, &locked, scanNumber, driversOf.all(2)+driversOf.lock, apps, ids)
				} else if err := driversOf.free(ctx, x, &locked, apps, ids); err != nil {
					return err
				}
				queueRows(x, &found, scanDriver, selectGroup, apps, ids)
				if err := x.flush(ctx); err != nil {
					return err
				}
				mine := make(map[driverNumber]bool, len(locked))
				for _, n := range locked {
					mine[n] = true
				}
				drivers := make(map[driverKey]*driverState, len(found))
				for _, d := range found {
					drivers[driverKey{d.app, d.ID}] = d
				}
				arrivals := make([]*arrival, 0, len(list))
				for _, r := range list {
					r.out, r.err, r.driver = tracking.Recorded{}, nil, drivers[r.key]
					if d := r.driver; d != nil && !mine[driverNumber{d.app, d.number}] {
						left = append(left, r) // held, or made after the locks were taken
						continue
					}
					arrivals = append(arrivals, &r.arrival)
				}
				return x.record(ctx, arrivals)
			})
			if c := code(err); c != codeDeadlock && c != codeSerialization || try == tries {
				return err
			}
		}
	})
	if err != nil {
		s.recorder.forget(list)
		return nil, err
	}
	s.recorder.learn(list, left)
	return left, nil
}
