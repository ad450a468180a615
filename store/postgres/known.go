package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
)

// Most fixes come to a process that has written the driver's last ones as well, and are newer than
// these. What came of them is known, and so is what becomes of the next. They are written in one round
// trip then, on the condition that nobody has written to the driver since: whoever does gives the row
// of the position another stamp. For whom that is so nothing is written, and the row is read.

// knownDrivers bounds what is remembered.
const knownDrivers = 1 << 14

// learn remembers the drivers of a group that was read and committed, but those who were left.
func (g *recorder) learn(list, left []*recording) {
	seen := make(map[*seat]bool, len(list))
	for _, r := range left {
		seen[r.seat] = true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range list {
		if r.driver == nil {
			g.lose(r.seat)
		}
		if r.driver == nil || seen[r.seat] {
			continue
		}
		seen[r.seat] = true
		old := r.seat.known
		// Who has been read was as he is known, or is new here.
		r.seat.alone = old == nil || old.number == r.driver.number && old.stamp == r.driver.stamp-1
		g.know(r.seat, r.driver)
	}
}

// know remembers a driver. The caller holds g.mu.
func (g *recorder) know(s *seat, d *driverState) {
	if s.known == nil {
		g.known++
	}
	for key, other := range g.seats { // any
		if g.known <= knownDrivers {
			break
		}
		if g.lose(other); other.calls == 0 {
			delete(g.seats, key)
		}
	}
	s.known = d
}

// lose forgets a driver. The caller holds g.mu.
func (g *recorder) lose(s *seat) {
	if s.known != nil {
		s.known = nil
		g.known--
	}
}

// forget forgets the drivers of calls of which nobody knows what came.
func (g *recorder) forget(list []*recording) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range list {
		g.lose(r.seat)
	}
}

// commitKnown keeps the batches for drivers who are as they are known, and answers their calls. It
// returns the others, and whether some have been waited for in vain.
func (g *recorder) commitKnown(s *Store, p *group, list []*recording) (rest []*recording, held bool) {
	k := &p.judged
	k.judge(g, list)
	if 2*len(k.calls) < len(list) { // it would be a third round trip for most
		return list, false
	}
	missed, err := s.moveKnown(k)
	done, rest := k.calls, k.rest
	if err != nil {
		g.forget(done)
		if held := code(err) == codeLockTimeout; held || refused(err) {
			return list, held
		}
	} else if len(missed) > 0 {
		done = nil
		for _, r := range k.calls {
			if missed[driverNumber{r.driver.app, r.driver.number}] {
				rest = append(rest, r)
			} else {
				done = append(done, r)
			}
		}
	}
	g.mu.Lock()
	if err == nil {
		k.learn(g, missed)
	}
	g.land(done)
	g.mu.Unlock()
	s.answer(done, err)
	return rest, false
}

// judged are calls whose outcome is known if the drivers are.
type judged struct {
	calls   []*recording
	drivers []*fixing    // as of afterwards, but for the stamp
	rest    []*recording // those about other drivers, or about what is to be read first

	fixings []fixing // of the drivers
	states  []driverState

	at            positionColumns
	stamps, marks ints
	put           newFixColumns
	arrays        []array // those of them that are sent
	args          []any
}

// judge applies the rule for the drivers who are known.
func (k *judged) judge(g *recorder, list []*recording) {
	k.clear(len(list))
	g.mu.Lock()
	for _, r := range list {
		if known := r.seat.known; known != nil && r.seat.alone && r.seat.judged == nil {
			k.states = append(k.states, *known)
			d := &k.states[len(k.states)-1]
			k.fixings = append(k.fixings, fixing{driverState: d, log: newFixLog(), was: d.past()})
			r.seat.judged = &k.fixings[len(k.fixings)-1]
		}
	}
	g.mu.Unlock()
	for _, r := range list {
		f := r.seat.judged
		if f == nil || f.failed {
			continue
		}
		r.driver = f.driverState
		f.failed = r.judge(&f.log) != nil || f.log.forget != endless || len(f.log.marks) > 0
	}
	for _, r := range list {
		f := r.seat.judged
		if f == nil || f.failed {
			k.rest = append(k.rest, r)
			continue
		}
		k.calls = append(k.calls, r)
		if f.seat == nil {
			f.seat = r.seat
			k.drivers = append(k.drivers, f)
		}
	}
	for _, r := range list {
		r.seat.judged = nil
	}
	// By the numbers of drivers in order, as every transaction locks them.
	slices.SortFunc(k.drivers, func(a, b *fixing) int {
		return cmp.Or(cmp.Compare(a.app, b.app), cmp.Compare(a.number, b.number))
	})
}

// clear makes room for so many calls.
func (k *judged) clear(n int) {
	clear(k.calls)
	clear(k.rest)
	clear(k.fixings)
	clear(k.states)
	k.calls, k.rest, k.drivers = k.calls[:0], k.rest[:0], k.drivers[:0]
	k.fixings, k.states = slices.Grow(k.fixings[:0], n), slices.Grow(k.states[:0], n)
}

// learn remembers the drivers as of afterwards, but those who were missed: they are known as of
// before. The caller holds the recorder's lock.
func (k *judged) learn(g *recorder, missed map[driverNumber]bool) {
	for _, f := range k.drivers {
		s := f.seat
		if s.alone = !missed[driverNumber{f.app, f.number}]; !s.alone {
			continue
		}
		if f.stamp++; s.known == nil {
			g.know(s, &driverState{})
		}
		*s.known = *f.driverState
	}
}

// byKeys leaves but one plan for what comes next, if that names rows by their keys: from one to the other
// in the order given. It is as good for small tables as for large ones, and may be kept. In the same
// statement it says how long a driver is waited for whom somebody holds, as lockWaitOfGroup does.
const byKeys = `
SELECT set_config('lock_timeout', '200ms', true), set_config('plan_cache_mode', 'force_generic_plan', true),
	set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
	set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)`

// moveDrivers does all for those who have the stamps, and lists the others. What is true stays a look
// into a table of those, and is no join.
var moveDrivers = `
WITH moved AS (
	UPDATE tracking.positions p SET ` + setPosition + `
	FROM ` + arrays(1, positionFields+`, stamp`, positionTypes+`, bigint`) + `
	WHERE p.app = u.app AND p.driver = u.driver AND p.stamp = u.stamp RETURNING p.app, p.driver),
kept AS (
	INSERT INTO tracking.fixes (` + fixFields + `)
	SELECT * FROM ` + arrays(23, fixFields, fixTypes) + `
	WHERE ((app, driver) IN (SELECT app, driver FROM moved)) IS TRUE)` + selectMoved

// stepDrivers is moveDrivers for drivers each of whom has one new fix, and is there now;
// strideDrivers for those of them of whose past nothing else has changed.
var (
	stepDrivers   = stepping(setPosition, positionFields, positionTypes)
	strideDrivers = stepping(setPlace, placeFields, placeTypes)
)

func stepping(set, fields, types string) string {
	return `
WITH moved AS (
	UPDATE tracking.positions p SET ` + set + `
	FROM ` + arrays(1, fields+`, stamp, mark`, types+`, bigint, smallint`) + `
	WHERE p.app = u.app AND p.driver = u.driver AND p.stamp = u.stamp
	RETURNING p.app, p.driver, u.time, u.mark, u.trusted, u.lng, u.lat, u.event_id, u.accuracy, u.speed, u.bearing,
		u.battery),
kept AS (INSERT INTO tracking.fixes (` + fixFields + `) SELECT * FROM moved)` + selectMoved
}

// selectMoved lists who is moved where these are not all. Mostly they are.
const selectMoved = `
SELECT array_agg(app), array_agg(driver) FROM moved HAVING count(*) < cardinality($1::int[])`

// movedDrivers is the row of selectMoved.
type movedDrivers struct {
	apps    []int32
	numbers []int64
}

func scanMoved(row pgx.CollectableRow) (m movedDrivers, err error) {
	err = row.Scan(&m.apps, &m.numbers)
	return m, err
}

// moveKnown writes what is judged, and tells for whom it is not written. Who is held by somebody else is
// waited for as by any group; then nothing is written.
func (s *Store) moveKnown(k *judged) (missed map[driverNumber]bool, err error) {
	if len(k.calls) == 0 {
		return nil, nil
	}
	move := k.columns()
	k.at.apps.room = len(k.arrays) * (32 + 12*len(k.drivers))
	args := k.args[:0]
	for _, c := range k.arrays {
		if s.prepares {
			args = append(args, c)
		} else {
			args = append(args, c.plain())
		}
	}
	k.args = args
	var moved []movedDrivers
	err = s.call(context.Background(), func(ctx context.Context) error {
		return s.once(ctx, beginGroup, func(_ context.Context, x *tx) error {
			x.queue(byKeys)
			queueRows(x, &moved, scanMoved, move, args...)
			return nil
		})
	})
	if err != nil || len(moved) == 0 {
		return nil, err
	}
	missed = make(map[driverNumber]bool, len(k.drivers))
	for _, d := range k.drivers {
		missed[driverNumber{d.app, d.number}] = true
	}
	for i, app := range moved[0].apps {
		delete(missed, driverNumber{app, moved[0].numbers[i]})
	}
	return missed, nil
}

// columns fills the arrays of what is to be written, and is the statement for them.
func (k *judged) columns() string {
	for _, c := range append(slices.Concat(k.at.list(), k.put.list()), &k.stamps, &k.marks) {
		c.reset()
	}
	k.at.add(k.drivers)
	steps, strides := true, true
	for _, d := range k.drivers {
		k.stamps.add(d.stamp, true)
		fresh := d.log.fresh
		steps = steps && len(fresh) == 1 && fresh[0].Fix == d.Position.Fix
		strides = strides && d.past() == d.was
	}
	if !steps {
		k.put.addFresh(k.drivers)
		k.arrays = append(append(k.at.list(), &k.stamps), k.put.list()...)
		return moveDrivers
	}
	for _, d := range k.drivers {
		k.marks.add(int64(d.log.fresh[0].Mark), true)
	}
	if strides {
		k.arrays = append(k.at.place(), &k.stamps, &k.marks)
		return strideDrivers
	}
	k.arrays = append(k.at.list(), &k.stamps, &k.marks)
	return stepDrivers
}
