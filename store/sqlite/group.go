package sqlite

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// lane is where a change waits: with those that hold up others as little, or as much, as it does.
type lane int

const (
	verbs lane = iota // commits: somebody waits for what he has just done
	small             // fixes as phones send them one by one, and what is noted of deliveries
	large             // batches of fixes, and purges
	numLanes
)

// smallBatch is how many fixes a batch in the small lane has at most.
const smallBatch = 16

// A transaction ends with the first change that fills it up.
const (
	groupJobs = 1024
	groupRows = 4096
	groupTime = 20 * time.Millisecond

	// laneRows is what a lane may write before the next one has its turn.
	laneRows = 64
)

// group is the changes of one transaction, with the answers to those who wait for them.
type group struct {
	jobs    []*job
	answers []error
	rows    int
	in      [numLanes]int // changes by lane
	began   time.Time
}

func (g *group) full() bool {
	return len(g.jobs) >= groupJobs || g.rows >= groupRows || time.Since(g.began) >= groupTime
}

// commit writes a group in one transaction and answers each of its changes.
func (w *writer) commit() {
	if g := w.store.gate; g != nil {
		g.Lock()
		defer g.Unlock()
	}
	x := &tx{writer: w, journal: w.journal, driven: w.driven, recorded: w.recorded}
	g := &group{began: time.Now()}
	if err := w.transact(x, g); err != nil {
		w.drivers.forget()
		if x.tries { // perhaps the disk has room for less
			w.sweepAt = w.journal.end + w.store.opts.maxJournal
		}
		w.compaction.due, w.compaction.asked = false, nil // who asked is told of the error
		if stopsWriting(err) {
			w.store.halt(err)
		}
		if len(g.jobs) == 0 { // it did not come to any: then none that waits can be written now
			w.takeAll(g)
		}
		for i := range g.answers {
			g.answers[i] = err
		}
	}
	if tell := w.store.opts.grouped; tell != nil { // first: whoever has an answer may ask what there was
		tell(g.jobs)
	}
	for i, j := range g.jobs {
		j.err <- g.answers[i]
	}
	clear(x.driven)
	w.driven, w.recorded = x.driven[:0], x.recorded[:0]
}

// transact fills a group and commits it. An error is the whole group's.
func (w *writer) transact(x *tx, g *group) (err error) {
	if why := w.store.health.Load(); why != nil {
		return unavailable("The store does not write any more.", *why)
	}
	if w.conn == nil {
		if w.conn, err = w.db.Connx(context.Background()); err != nil {
			return err
		}
	}
	if w.logUnsynced {
		if err := w.syncLog(x.get); err != nil {
			return err
		}
	}
	w.drivers.begin()
	if err := x.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		x.unshare(g)
		if err != nil {
			x.exec("ROLLBACK") // fails when SQLite has rolled back by itself
		}
	}()
	if err := x.fill(g); err != nil {
		return err
	}
	if err := x.endShared(g); err != nil {
		return err
	}
	if err := x.writeTerms(); err != nil {
		return err
	}
	if err := x.endLate(); err != nil {
		return err
	}
	if err := x.commitLate(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	for app, n := range x.newApps {
		w.store.apps.Add(n, app)
	}
	// Of each driver the last: who looks into the index meets nobody as he was within the transaction.
	last := slices.DeleteFunc(x.driven, func(d driven) bool {
		now, known := w.drivers.known[d.key]
		return known && now != d.now
	})
	w.store.index.apply(last, x.waiting)
	return nil
}

// fill runs the changes that go into one transaction.
//
// Verbs go first, and nothing is run behind them in the same transaction: that would hold up their
// answers. While none waits, the other lanes take turns, and as soon as one comes it is the last
// thing that the transaction does. A lane that had to stand back has its turn in the next
// transaction whatever waits, so that no crowd of verbs can starve it.
func (x *tx) fill(g *group) error {
	x.letIn()
	for l := small; l < numLanes; l++ {
		if x.owed[l] {
			if err := x.turn(g, l); err != nil {
				return err
			}
		}
	}
	next := small
	for {
		if err := x.verbs(g); err != nil {
			return err
		}
		if g.in[verbs] > 0 || g.full() || len(x.lanes[small])+len(x.lanes[large]) == 0 {
			break
		}
		if err := x.turn(g, next); err != nil {
			return err
		}
		if next++; next == numLanes {
			next = small
		}
	}
	for l := small; l < numLanes; l++ {
		x.owed[l] = g.in[l] == 0 && len(x.lanes[l]) > 0
	}
	return nil
}

// letIn gives those just answered a turn, as they often come right back.
func (w *writer) letIn() {
	for seen := -1; seen < w.waiting(); {
		seen = w.waiting()
		runtime.Gosched()
	}
}

// verbs runs the verbs that wait.
func (x *tx) verbs(g *group) error {
	for n := len(x.lanes[verbs]); n > 0 && len(g.jobs) < groupJobs; n-- {
		if err := x.next(g, verbs); err != nil {
			return err
		}
	}
	return nil
}

// turn runs what waits in a lane until it has written its rows.
func (x *tx) turn(g *group, l lane) error {
	for until := g.rows + laneRows; g.rows < until && len(x.lanes[l]) > 0; {
		if err := x.next(g, l); err != nil {
			return err
		}
	}
	return nil
}

// next runs the next change of a lane that has one. An error is the whole group's.
func (x *tx) next(g *group, l lane) error {
	j := g.take(<-x.lanes[l])
	if j.adds {
		if err := x.runShared(g, len(g.jobs)-1); err != nil || g.rows < x.sharesUntil {
			return err
		}
		return x.endShared(g)
	}
	if err := x.endShared(g); err != nil {
		return err
	}
	err, fatal := x.runJob(j)
	if fatal {
		return err
	}
	g.answers[len(g.answers)-1] = err
	return nil
}

func (g *group) take(j *job) *job {
	g.jobs, g.answers = append(g.jobs, j), append(g.answers, nil)
	g.rows += max(j.rows, 1)
	g.in[j.lane]++
	return j
}

// takeAll takes all that waits.
func (w *writer) takeAll(g *group) {
	for _, l := range w.lanes {
		for n := len(l); n > 0; n-- {
			g.take(<-l)
		}
	}
}
