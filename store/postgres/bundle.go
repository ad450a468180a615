package postgres

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// Commits that are made at once share a transaction, as calls of RecordFixes do: while some groups
// are under way the others wait in a line, and the next group takes of it those that are not about
// the same rows, nor about those of a group that is under way. So each is decided by what it finds,
// as if it were alone. One that is refused leaves nothing behind, and the others of its group
// nothing to know.
//
// What is seldom, and can be refused after it has written, goes by itself.
const (
	bundlesAtOnce = 2
	bundleCalls   = 128
)

// A commit whose group has waited for a row in vain is tried by itself, until the row is free, and so
// are those that are about one of its rows: which of these is the one that is held, nobody knows. They
// wait briefly, so that those behind them do not wait for long.
const (
	lockWaitAlone   = `SET LOCAL lock_timeout = '20ms'`
	lockWaitBriefly = `SET LOCAL lock_timeout = '2ms'`
)

// committing is a call of Commit on its way.
type committing struct {
	ctx   context.Context
	id    tracking.AppID
	app   int32
	cs    *tracking.Changeset
	rows  []rowKey
	fresh bool           // all of it is new
	in    map[rowKey]int // where its rows are counted; nil: nowhere
	out   tracking.Written
	err   error
	done  chan struct{} // is closed when out and err are set
}

// meets reports whether the call is about one of these rows.
func meets(c *committing, rows map[rowKey]int) bool {
	return slices.ContainsFunc(c.rows, func(k rowKey) bool {
		_, ok := rows[k]
		return ok
	})
}

// rowKey names something that two changesets of a transaction cannot both be about: a row, its
// subject, or a unique value.
type rowKey struct {
	app      int32
	kind, id string
}

// committer groups the calls of Commit.
type committer struct {
	mu     sync.Mutex
	line   []*committing  // those that wait for a group, in order
	groups int            // under way
	busy   map[rowKey]int // how many of those under way are about a row

	held     []*committing  // those that wait for a row that somebody else holds
	heldRows map[rowKey]int // how many of them are about a row
	met      []*committing  // those that are about such a row, and were not tried yet
	more     chan struct{}  // tells of them
	waiting  bool           // somebody looks after all of these
}

// queue is how many calls wait for a group, or for a row.
func (g *committer) queue() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.line) + len(g.held) + len(g.met)
}

// joins reports whether a changeset may share a transaction.
func joins(cs *tracking.Changeset) bool {
	return len(cs.DeleteDrivers)+len(cs.Invites)+len(cs.Keys)+len(cs.Fixes) == 0 && !deletes(cs)
}

// rowKeys are what a changeset is about.
func rowKeys(app int32, cs *tracking.Changeset) []rowKey {
	var keys []rowKey
	add := func(kind tracking.SubjectKind, id string) { keys = append(keys, rowKey{app, string(kind), id}) }
	for i := range cs.Tasks {
		t := &cs.Tasks[i]
		add(tracking.KindTask, string(t.ID))
		if t.Key != "" {
			add("key", t.Key)
		}
	}
	for i := range cs.Trips {
		t := &cs.Trips[i]
		add(tracking.KindTrip, string(t.ID))
		add("tracking_id", string(t.TrackingID))
	}
	for _, id := range driverIDs(cs) {
		add(tracking.KindDriver, id)
	}
	for i := range cs.Events {
		add(cs.Events[i].Subject.Kind, cs.Events[i].Subject.ID)
		add("event", cs.Events[i].ID)
	}
	return keys
}

// copyOf is what a group may still read when its caller has gone.
func copyOf(cs *tracking.Changeset) *tracking.Changeset {
	c := &tracking.Changeset{CloseRequests: slices.Clone(cs.CloseRequests), Deliver: slices.Clone(cs.Deliver)}
	for i := range cs.Tasks {
		c.Tasks = append(c.Tasks, cs.Tasks[i].Clone())
	}
	for i := range cs.Trips {
		c.Trips = append(c.Trips, cs.Trips[i].Clone())
	}
	for i := range cs.Drivers {
		c.Drivers = append(c.Drivers, cs.Drivers[i].Clone())
	}
	for i := range cs.Requests {
		c.Requests = append(c.Requests, cs.Requests[i].Clone())
	}
	for i := range cs.Events {
		c.Events = append(c.Events, cs.Events[i].Clone())
	}
	return c
}

// bundled commits a changeset together with others.
func (s *Store) bundled(
	ctx context.Context, id tracking.AppID, app int32, cs *tracking.Changeset,
) (tracking.Written, error) {
	limited, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	c := &committing{
		ctx: limited, id: id, app: app, cs: copyOf(cs), rows: rowKeys(app, cs), fresh: fresh(cs),
		done: make(chan struct{}),
	}
	s.committer.take(s, c)
	select {
	case <-c.done:
		return c.out, c.err
	case <-limited.Done():
		if err := ctx.Err(); err != nil {
			return tracking.Written{}, err
		}
		return tracking.Written{}, errHeld
	}
}

// take puts a call in line, and sees to it that it has its turn.
func (g *committer) take(s *Store, c *committing) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy == nil {
		g.busy, g.heldRows, g.more = map[rowKey]int{}, map[rowKey]int{}, make(chan struct{}, 1)
	}
	g.line = append(g.line, c)
	g.begin(s)
}

// begin begins a group, if there may be one more. The caller holds g.mu.
func (g *committer) begin(s *Store) {
	if len(g.line) > 0 && g.groups < bundlesAtOnce {
		g.groups++
		go g.run(s)
	}
}

// run commits groups until nobody is in line who can be in one.
func (g *committer) run(s *Store) {
	for {
		list := g.next(s)
		if len(list) == 0 {
			return
		}
		g.commit(s, list, lockWaitOfGroup)
		runtime.Gosched() // as for fixes
	}
}

// next takes those who are in line and can go together, without those who have given up: what is all
// new goes with its like. Nobody overtakes who waits in line for the same row. For none it ends the
// group.
func (g *committer) next(s *Store) (list []*committing) {
	g.mu.Lock()
	defer g.mu.Unlock()
	passed := map[rowKey]int{}
	var rest []*committing
	size := 0
	for i, c := range g.line {
		switch {
		case len(list) == bundleCalls, len(list) > 0 && c.fresh && list[0].fresh && size+sizeOf(c.cs) > freshRows:
			rest = append(rest, g.line[i:]...)
		case c.ctx.Err() != nil:
			continue
		case meets(c, g.heldRows):
			g.met = append(g.met, c)
			g.look(s)
			continue
		case meets(c, g.busy), meets(c, passed), len(list) > 0 && c.fresh != list[0].fresh:
			for _, k := range c.rows {
				passed[k]++
			}
			rest = append(rest, c)
			continue
		default:
			list = append(list, c)
			size += sizeOf(c.cs)
			g.occupy(c, g.busy)
			continue
		}
		break
	}
	if g.line = rest; len(list) == 0 {
		g.groups--
	}
	return list
}

// occupy counts what a call is about here, and nowhere else; nil is nowhere at all. The caller holds
// g.mu.
func (g *committer) occupy(c *committing, in map[rowKey]int) {
	for _, k := range c.rows {
		if c.in[k] > 1 {
			c.in[k]--
		} else {
			delete(c.in, k)
		}
	}
	if c.in = in; in != nil {
		for _, k := range c.rows {
			in[k]++
		}
	}
}

// commit commits a group and answers its calls.
func (g *committer) commit(s *Store, list []*committing, wait string) {
	err := s.commitGroup(list, wait)
	held := code(err) == codeLockTimeout
	switch {
	case held && len(list) == 1:
		g.hold(s, list[0])
		return
	case held:
		wait = lockWaitAlone
	case err == nil || !refused(err) && !passes(err) || len(list) == 1:
		g.end(s, list, err)
		return
	}
	// Somebody's call is to blame, and the others need not suffer.
	for _, c := range list {
		g.commit(s, []*committing{c}, wait)
	}
}

// end answers calls, and lets others have their rows. What is written is told, also for who has gone.
func (g *committer) end(s *Store, list []*committing, err error) {
	g.mu.Lock()
	for _, c := range list {
		g.occupy(c, nil)
	}
	g.begin(s)
	g.mu.Unlock()
	for _, c := range list {
		if err != nil && c.err == nil {
			c.out, c.err = tracking.Written{}, err
		}
		if c.err == nil {
			s.committed(c.id, c.app, subjectsOf(c.cs), len(c.cs.Events) > 0)
		}
		close(c.done)
	}
}

// hold puts a call aside until its rows are free. Others may be about them meanwhile.
func (g *committer) hold(s *Store, c *committing) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.occupy(c, g.heldRows)
	g.held = append(g.held, c)
	g.look(s)
}

// look has somebody look after those who wait for a row that is held. The caller holds g.mu.
func (g *committer) look(s *Store) {
	if !g.waiting {
		g.waiting = true
		go g.retry(s)
	}
	if len(g.met) > 0 {
		select {
		case g.more <- struct{}{}:
		default:
		}
	}
}

// retry tries those who are held again and again, and those who are about their rows also as soon as
// they come, until none is left.
func (g *committer) retry(s *Store) {
	pause := heldPauseMin
	timer := time.NewTimer(pause)
	defer timer.Stop()
	for {
		all := true
		select {
		case <-g.more:
			all = false
		case <-timer.C:
		case <-s.closing.Done():
		}
		g.mu.Lock()
		list := g.met
		g.met = nil
		if all {
			list = append(g.held, list...)
			g.held = nil
		}
		g.mu.Unlock()

		g.retryEach(s, list, all)

		g.mu.Lock()
		if all {
			if len(g.held) < len(list) {
				pause = heldPauseMin
			} else {
				pause = min(2*pause, heldPauseMax)
			}
			timer.Reset(pause)
		}
		if g.waiting = len(g.held)+len(g.met) > 0; !g.waiting {
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
	}
}

// retryEach tries calls once more, one by one, and ends those that have waited for long enough. Who is
// about a row of one that has waited in vain just now waits briefly; without all, everybody does.
func (g *committer) retryEach(s *Store, list []*committing, all bool) {
	failed := map[rowKey]int{}
	for _, c := range list {
		if c.ctx.Err() != nil {
			g.end(s, []*committing{c}, errHeld)
			continue
		}
		wait := lockWaitBriefly
		if all && !meets(c, failed) {
			wait = lockWaitAlone
		}
		g.commit(s, []*committing{c}, wait)
		if c.in != nil {
			for _, k := range c.rows {
				failed[k]++
			}
		}
	}
}

// errNothing is of a transaction that has nothing to do.
var errNothing = errors.New("postgres: all are refused")

// commitGroup applies the changesets of a group in one transaction, but those that are refused. An
// error is all the others'; a group of one is tried again where that may help.
func (s *Store) commitGroup(list []*committing, wait string) error {
	return s.call(context.Background(), func(ctx context.Context) error {
		fresh := list[0].fresh
		for try := 1; ; try++ {
			err := s.once(ctx, begin, func(ctx context.Context, x *tx) error {
				x.queue(wait)
				if fresh {
					return x.applyFresh(list)
				}
				return x.applyAll(ctx, list)
			})
			if fresh && len(list) == 1 && code(err) == codeUnique {
				fresh = false // it is to be told which row is there
				continue
			}
			switch {
			case errors.Is(err, errNothing):
				return nil
			case len(list) > 1 || !passes(err) || code(err) == codeLockTimeout || ctx.Err() != nil:
				return uniqueOf(err)
			case try == tries:
				return &tracking.ConflictError{}
			}
			if err := pause(ctx, try); err != nil {
				return err
			}
		}
	})
}

// applyAll is apply for a group.
func (x *tx) applyAll(ctx context.Context, list []*committing) error {
	var apps []*locked // in order
	changes := make([]*change, len(list))
	for i, c := range list {
		at, ok := slices.BinarySearchFunc(apps, c.app, func(l *locked, app int32) int { return int(l.app) - int(app) })
		if !ok {
			apps = slices.Insert(apps, at, newLocked(x, c.app))
		}
		changes[i] = apps[at].add(c.cs)
	}
	tables := ofDrivers | ofTasks
	if slices.ContainsFunc(list, func(c *committing) bool { return len(c.cs.Trips) > 0 }) {
		tables |= ofTrips
	}
	x.plansOf(tables)
	if err := lock(ctx, x, apps...); err != nil {
		return err
	}
	refused := 0
	for i, c := range list {
		own := changes[i]
		if c.out, c.err = own.written, own.check(); c.err == nil {
			continue
		}
		refused++
		c.out = tracking.Written{}
		own.uncountEvents()
		own.changes = slices.DeleteFunc(own.changes, func(o *change) bool { return o == own })
	}
	if refused == len(list) {
		return errNothing
	}
	for _, l := range apps {
		if err := l.write(ctx); err != nil {
			return err
		}
	}
	return nil
}
