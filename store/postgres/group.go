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
	seat  *seat
	until time.Time     // it waits no longer for a driver who is held
	done  chan struct{} // is sent to when out and err are set: then it is the caller's alone
}

// recordings are what calls have done with: one is large, as a driver is.
var recordings = sync.Pool{New: func() any { return &recording{done: make(chan struct{}, 1)} }}

// driverKey is a driver's id in the store.
type driverKey struct {
	app int32
	id  tracking.DriverID
}

// seat is a driver for whom there are calls, or who is known.
type seat struct {
	calls  int          // not yet answered
	flying int          // of them those in a group
	held   int          // of them those that wait for him, whom somebody else holds
	known  *driverState // as this process has left him; nil: he is not known
	alone  bool         // nobody else has written to him from the time before that on
	judged *fixing      // in the group under way
}

// recorder groups the calls of RecordFixes.
type recorder struct {
	mu     sync.Mutex
	seats  map[driverKey]*seat
	known  int          // of the seats
	line   []*recording // those that wait for a group
	groups int          // under way
	idle   []*group     // are not

	held    []*recording // those that wait for a driver whom somebody else holds
	waiting bool         // somebody looks after them
}

// group is room for the calls that share a transaction, for one group after the other.
type group struct {
	list []*recording
	judged
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
	r := recordings.Get().(*recording)
	r.batch, r.ctx, r.app, r.key = rows.Batch(b), ctx, app, driverKey{n, b.DriverID}
	r.until = time.Now().Add(s.opts.Timeout)
	s.recorder.take(s, r)
	select {
	case <-r.done:
		out, err := r.out, r.err
		out.Driver = out.Driver.Clone() // of what others know
		*r = recording{done: r.done}
		recordings.Put(r)
		return out, err
	case <-ctx.Done():
		return tracking.Recorded{}, ctx.Err()
	}
}

// take puts a call in line, and sees to it that it has its turn.
func (g *recorder) take(s *Store, r *recording) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.seat = g.seats[r.key]; r.seat == nil {
		if g.seats == nil {
			g.seats = map[driverKey]*seat{}
		}
		r.seat = &seat{}
		g.seats[r.key] = r.seat
	}
	r.seat.calls++
	if r.seat.held > 0 { // it would hold up its group as well
		g.hold(s, r)
		return
	}
	g.line = append(g.line, r)
	if g.groups < groupsAtOnce {
		g.groups++
		p := &group{}
		if n := len(g.idle); n > 0 {
			p, g.idle = g.idle[n-1], g.idle[:n-1]
		}
		go g.run(s, p)
	}
}

// leave ends a call. The caller holds g.mu.
func (g *recorder) leave(r *recording) {
	if r.seat.calls--; r.seat.calls == 0 && r.seat.known == nil {
		delete(g.seats, r.key)
	}
}

// queue is how many calls wait for a group, or for a driver.
func (g *recorder) queue() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.line) + len(g.held)
}

// run commits groups until nobody is in line.
func (g *recorder) run(s *Store, p *group) {
	for g.next(p) {
		g.commit(s, p, p.list)
		runtime.Gosched() // who was answered may have more to say: the next group is larger then
	}
}

// next takes those who are in line, without those who have given up. For none it ends the group: whose
// driver is in another one is taken when that has ended.
func (g *recorder) next(p *group) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(p.list)
	p.list = p.list[:0]
	fixes := 0
	rest := g.line[:0]
	for i, r := range g.line {
		if len(p.list) == groupCalls || len(p.list) > 0 && fixes+len(r.batch.Fixes) > groupFixes {
			rest = append(rest, g.line[i:]...)
			break
		}
		switch {
		case r.ctx.Err() != nil:
			g.leave(r)
		case r.seat.flying > 0:
			rest = append(rest, r)
		default:
			p.list = append(p.list, r)
			fixes += len(r.batch.Fixes)
		}
	}
	for _, r := range p.list {
		r.seat.flying++
	}
	clear(g.line[len(rest):])
	if g.line = rest; len(p.list) == 0 {
		g.groups--
		p.judged.clear(0)
		g.idle = append(g.idle, p)
		return false
	}
	return true
}

// commit keeps the batches of a group and answers its calls; those whose driver somebody else holds
// wait for him elsewhere.
func (g *recorder) commit(s *Store, p *group, list []*recording) {
	list, held := g.commitKnown(s, p, list)
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
		for _, r := range slices.Clone(list) {
			g.commit(s, p, []*recording{r})
		}
		return
	}
	done := without(list, left)
	g.mu.Lock()
	g.land(done)
	for _, r := range left {
		r.seat.flying--
		g.hold(s, r)
	}
	g.mu.Unlock()
	s.answer(done, err)
}

// land ends calls of a group. The caller holds g.mu, and answers them then.
func (g *recorder) land(list []*recording) {
	for _, r := range list {
		r.seat.flying--
		g.leave(r)
	}
}

// refused reports whether the server has refused a transaction for what it was told to do.
func refused(err error) bool { return err != nil && !errors.Is(err, tracking.ErrUnavailable) }

// without are the calls of a list but those that are left.
func without(list, left []*recording) []*recording {
	if len(left) == 0 {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(r *recording) bool { return slices.Contains(left, r) })
}

// answer ends the wait of callers. What is kept is told, also for who has gone.
func (s *Store) answer(list []*recording, err error) {
	for _, r := range list {
		if err != nil {
			r.out, r.err = tracking.Recorded{}, failure(r.ctx, err)
		}
		if r.err == nil && len(r.batch.Fixes) > 0 {
			s.teller.tell(r.app, tracking.Subject{Kind: tracking.KindDriver, ID: string(r.key.id)})
		}
		r.done <- struct{}{}
	}
}

// hold puts a call aside until its driver is free. The caller holds g.mu.
func (g *recorder) hold(s *Store, r *recording) {
	g.held = append(g.held, r)
	r.seat.held++
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
	done := without(tried, left)
	g.mu.Lock()
	for _, r := range slices.Concat(over, done) {
		r.seat.held--
		g.leave(r)
	}
	for _, r := range left {
		r.seat.held--
		g.hold(s, r)
	}
	g.mu.Unlock()
	s.answer(done, err)
	s.answer(over, errHeld)
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
