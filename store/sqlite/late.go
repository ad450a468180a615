package sqlite

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/seed-8aba7b13/tracking"
)

// Rows are behind the journal until they are brought up to date: when it is long, with each purge, so
// once a minute, when a driver is deleted, and when the store is closed. Each row costs what a fix would
// without the journal, and all of them are written in one transaction. So no more than maxLate are
// behind: what comes of other drivers meanwhile is written into their rows.
const (
	maxJournal = 2 << 20 // bytes
	maxLate    = 1024    // drivers
)

// late is what readers need to know beside the rows: the drivers whose rows may be behind, as of the
// last commit. A reader takes for a driver what has the greater place, and so never less than what was
// answered before it began.
type late struct {
	mu    sync.RWMutex
	of    map[driverKey]*driverState // the writer alone changes it
	swept int                        // how often all were brought up to date, and are here no more

	// sweeping is held while that is committed, so that a reader can keep it off.
	sweeping sync.RWMutex
}

func (l *late) get(k driverKey) *driverState {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.of[k]
}

func (l *late) sweeps() int {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.swept
}

// sweep lets readers know that all rows are up to date.
func (l *late) sweep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.swept++
	l.of = nil
}

// publish lets readers know of drivers whose rows may be behind.
func (l *late) publish(list []driven) {
	if len(list) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[driverKey]*driverState{}
	}
	putDriven(l.of, list)
}

// putDriven puts what has become of drivers among those whose rows may be behind.
func putDriven(of map[driverKey]*driverState, list []driven) {
	for _, d := range list {
		switch {
		case d.now == nil:
			delete(of, d.key)
		case d.now.late:
			of[d.key] = d.now
		}
	}
}

// correct brings a driver whose row was read up to date.
func (l *late) correct(r *driverRow, d *tracking.Driver) {
	if is := l.get(driverKey{r.App, r.ID}); is != nil && is.Seq == r.Seq && is.place > r.Place {
		d.Position = is.Position
	}
}

// sweptTries is how often a read is done again because rows were brought up to date meanwhile.
const sweptTries = 3

// readDrivers is read for f that reads drivers' rows and corrects them. It may run f again: rows that
// were read before they were brought up to date are not corrected any more after that.
func (s *Store) readDrivers(ctx context.Context, f func(ctx context.Context) error) error {
	for range sweptTries {
		before := s.late.sweeps()
		if err := s.read(ctx, f); err != nil || s.late.sweeps() == before {
			return err
		}
	}
	s.late.sweeping.RLock()
	defer s.late.sweeping.RUnlock()
	return s.read(ctx, f)
}

// here is the place behind all that the transaction has put in the journal so far. Who writes a row of
// positions notes it there.
func (x *tx) here() place { return placeOf(x.journal.generation, x.journal.end+len(x.recorded)) }

// journals reports whether what fixes change of a driver goes to the journal: not before the index is
// filled, which is filled from the rows. A store in memory has nothing to gain by it.
func (x *tx) journals(d *driverState) bool {
	s := x.store
	return s.index.ready.Load() && (d.late || len(s.late.of)+x.newly < s.opts.maxLate)
}

// endLate writes the journal, or brings all rows up to date, as is due. It is the last thing that a
// transaction writes.
func (x *tx) endLate() error {
	long := x.journal.end+len(x.recorded) > max(x.store.opts.maxJournal, x.sweepAt)
	x.tries = long
	switch {
	case x.sweeps && len(x.store.late.of)+x.newly == 0 && x.journal.empty():
		return nil
	case !long && !x.sweeps:
		return x.journal.append(x, x.recorded)
	}
	all := maps.Clone(x.store.late.of)
	if all == nil {
		all = map[driverKey]*driverState{}
	}
	putDriven(all, x.driven)
	if !x.store.index.ready.Load() {
		for k, d := range all { // the row may have been put in as it was, and putLate finds none of them any more
			x.driven = append(x.driven, driven{k, d, d})
		}
	}
	x.swept = make([]*driverState, 0, len(all)) // not nil
	x.swept = slices.AppendSeq(x.swept, maps.Values(all))
	// Rows that lie side by side.
	slices.SortFunc(x.swept, func(a, b *driverState) int { return int(a.Seq - b.Seq) })
	for _, d := range x.swept {
		if !d.behind {
			continue
		}
		if err := x.writePosition(d); err != nil {
			return err
		}
	}
	return x.journal.restart(x, x.sweeps)
}

// commitLate commits the transaction, and lets readers know what it has made of the rows that are behind.
func (x *tx) commitLate() error {
	l := &x.store.late
	if x.swept == nil {
		if err := x.commitTerms(); err != nil {
			return err
		}
		l.publish(x.driven)
	} else {
		l.sweeping.Lock()
		defer l.sweeping.Unlock()
		if err := x.commitTerms(); err != nil {
			return err
		}
		for _, d := range x.swept {
			d.behind, d.late = false, false
		}
		l.sweep()
		x.sweepAt = 0
	}
	x.writer.journal = x.journal
	return nil
}

// sweepLast brings all rows up to date before the file is closed, for who looks into it. If that cannot
// be, nothing is lost.
func (w *writer) sweepLast() {
	if len(w.store.late.of) == 0 && w.journal.empty() || w.store.health.Load() != nil {
		return
	}
	x := &tx{writer: w, journal: w.journal, sweeps: true}
	if err := w.transact(x, &group{}); err != nil {
		w.store.opts.Logger.Warn("sqlite: the rows of positions are behind the journal until the store is opened again",
			"path", w.store.path, "err", err)
	}
}

const selectLateDriver = `
SELECT` + driverColumns + `, p.open FROM drivers d JOIN positions p ON p.driver = d.seq WHERE d.seq = ?`

// loadLate reads the journal of the process before.
func (s *Store) loadLate(ctx context.Context) error {
	j, changes, err := readJournal(ctx, s.readers)
	if err != nil {
		return err
	}
	s.writer.journal = j
	var all []driven
	for driver, list := range changes {
		var found []driverToWrite
		if err := s.readers.SelectContext(ctx, &found, selectLateDriver, driver); err != nil {
			return err
		}
		for i := range found {
			d, err := found[i].state()
			if err != nil {
				return err
			}
			if d.place > placeOf(j.generation, j.end) { // then it would not get what is written from now on
				return errJournal
			}
			row := d.place
			if d.place, d.open, err = applyMoved(list, row, &d.Position, d.open); err != nil {
				return err
			}
			if d.behind = d.place > row; d.behind {
				d.late = true
				all = append(all, driven{driverKey{found[i].App, d.ID}, nil, d})
			}
		}
	}
	s.late.publish(all)
	return nil
}

// putLate puts those drivers right whose rows were behind when they were read, and lets the journal
// begin.
func (x *index) putLate(s *Store) {
	x.order.Lock()
	defer x.order.Unlock()
	s.late.mu.RLock()
	defer s.late.mu.RUnlock()
	for k, d := range s.late.of {
		x.of(k.app).Put(d.Driver)
	}
	x.ready.Store(true)
}
