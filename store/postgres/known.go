package postgres

import (
	"cmp"
	"context"
	"slices"
)

// Most fixes come to a process that has written the driver's last ones as well, and are newer than
// these. What came of them is known, and so is what becomes of the next. They are written in one round
// trip then, on the condition that nobody has written to the driver since: whoever does gives the row
// of the position another stamp. For whom that is so nothing is written, and the row is read.

// knownDrivers bounds what is remembered.
const knownDrivers = 1 << 14

// knownDriver is a driver as this process has left him.
type knownDriver struct {
	state *driverState
	alone bool // nobody else has written to him from the time before that on
}

// learn remembers the drivers of a group that was read and committed, but those who were left.
func (g *recorder) learn(list, left []*recording) {
	waits := make(map[*recording]bool, len(left))
	for _, r := range left {
		waits[r] = true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	seen := make(map[driverKey]bool, len(list))
	for _, r := range list {
		if r.driver == nil {
			delete(g.known, r.key)
		}
		if waits[r] || r.driver == nil || seen[r.key] {
			continue
		}
		seen[r.key] = true
		old, ok := g.known[r.key]
		// Who has been read was as he is known, or is new here.
		alone := !ok || old.state.number == r.driver.number && old.state.stamp == r.driver.stamp-1
		g.know(r.key, knownDriver{r.driver, alone})
	}
}

// know remembers a driver. The caller holds g.mu.
func (g *recorder) know(key driverKey, k knownDriver) {
	if g.known == nil {
		g.known = map[driverKey]knownDriver{}
	}
	if _, ok := g.known[key]; !ok && len(g.known) >= knownDrivers {
		for other := range g.known { // any
			delete(g.known, other)
			break
		}
	}
	g.known[key] = k
}

// forget forgets the drivers of calls of which nobody knows what came.
func (g *recorder) forget(list []*recording) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range list {
		delete(g.known, r.key)
	}
}

// commitKnown keeps the batches for drivers who are as they are known, and answers their calls. It
// returns the others, and whether some have been waited for in vain.
func (g *recorder) commitKnown(s *Store, list []*recording) (rest []*recording, held bool) {
	k := g.judgeKnown(list)
	if 2*len(k.calls) < len(list) { // it would be a third round trip for most
		return list, false
	}
	missed, err := s.moveKnown(k)
	if err != nil {
		g.forget(k.calls)
		if held := code(err) == codeLockTimeout; held || refused(err) {
			return list, held
		}
		s.answer(k.calls, nil, err)
		return k.rest, false
	}
	done, rest := k.calls, k.rest
	if len(missed) > 0 {
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
	for _, d := range k.drivers {
		alone := !missed[driverNumber{d.app, d.number}]
		if alone {
			d.stamp++
		} // else it is known with the old stamp
		g.know(driverKey{d.app, d.ID}, knownDriver{d, alone})
	}
	g.mu.Unlock()
	s.answer(done, nil, nil)
	return rest, false
}

// judged are calls whose outcome is known if the drivers are.
type judged struct {
	calls   []*recording
	drivers []*driverState // as of afterwards, but for the stamp
	logs    map[*driverState]*fixLog
	rest    []*recording // those about other drivers, or about what is to be read first
}

// judgeKnown applies the rule for the drivers who are known.
func (g *recorder) judgeKnown(list []*recording) judged {
	k := judged{logs: map[*driverState]*fixLog{}}
	of := make(map[driverKey]*driverState, len(list))
	failed := map[driverKey]bool{}
	g.mu.Lock()
	for _, r := range list {
		if k, ok := g.known[r.key]; ok && k.alone && of[r.key] == nil {
			d := *k.state
			of[r.key] = &d
		}
	}
	g.mu.Unlock()
	for _, r := range list {
		d := of[r.key]
		if d == nil || failed[r.key] {
			continue
		}
		if k.logs[d] == nil {
			k.logs[d] = newFixLog()
		}
		r.driver = d
		next, err := r.judge(k.logs[d])
		if err != nil || next.forget != endless || len(next.marks) > 0 {
			failed[r.key] = true
			continue
		}
		k.logs[d] = next
	}
	for _, r := range list {
		d := of[r.key]
		if d == nil || failed[r.key] {
			k.rest = append(k.rest, r)
			continue
		}
		k.calls = append(k.calls, r)
		if !slices.Contains(k.drivers, d) {
			k.drivers = append(k.drivers, d)
		}
	}
	// By the numbers of drivers in order, as every transaction locks them.
	slices.SortFunc(k.drivers, func(a, b *driverState) int {
		return cmp.Or(cmp.Compare(a.app, b.app), cmp.Compare(a.number, b.number))
	})
	return k
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
	WHERE ((app, driver) IN (SELECT app, driver FROM moved)) IS TRUE)` + selectMissed

// stepDrivers is moveDrivers for drivers each of whom has one new fix, and is there now.
var stepDrivers = `
WITH moved AS (
	UPDATE tracking.positions p SET ` + setPosition + `
	FROM ` + arrays(1, positionFields+`, stamp, mark`, positionTypes+`, bigint, smallint`) + `
	WHERE p.app = u.app AND p.driver = u.driver AND p.stamp = u.stamp
	RETURNING p.app, p.driver, u.time, u.mark, u.trusted, u.lng, u.lat, u.event_id, u.accuracy, u.speed, u.bearing,
		u.battery),
kept AS (INSERT INTO tracking.fixes (` + fixFields + `) SELECT * FROM moved)` + selectMissed

// selectMissed lists those who are not moved. Mostly all are, which needs no look at any.
const selectMissed = `
SELECT app, driver FROM (SELECT unnest($1::int[]) AS app, unnest($2::bigint[]) AS driver) u
WHERE (SELECT count(*) FROM moved) < cardinality($1::int[]) AND ((app, driver) IN (SELECT app, driver FROM moved)) IS NOT TRUE`

// moveKnown writes what is judged, and tells for whom it is not written. Who is held by somebody else is
// waited for as by any group; then nothing is written.
func (s *Store) moveKnown(k judged) (missed map[driverNumber]bool, err error) {
	if len(k.calls) == 0 {
		return nil, nil
	}
	stamps := make([]int64, len(k.drivers))
	for i, d := range k.drivers {
		stamps[i] = d.stamp
	}
	move, args := stepDrivers, append(positionValues(k.drivers), stamps)
	if marks := k.steps(); marks != nil {
		args = append(args, marks)
	} else {
		_, fresh := freshValues(k.drivers, k.logs)
		move, args = moveDrivers, append(args, fresh...)
	}
	err = s.call(context.Background(), func(ctx context.Context) error {
		return s.once(ctx, beginGroup, func(_ context.Context, x *tx) error {
			missed = nil
			x.queue(byKeys)
			queueEach(x, func(n driverNumber) {
				if missed == nil {
					missed = map[driverNumber]bool{}
				}
				missed[n] = true
			}, scanNumber, move, args...)
			return nil
		})
	})
	return missed, err
}

// steps are the marks of the drivers' fixes, if each driver has one new fix and is there now; else nil.
func (k *judged) steps() []int16 {
	marks := make([]int16, len(k.drivers))
	for i, d := range k.drivers {
		fresh := k.logs[d].fresh
		if len(fresh) != 1 || fresh[0].Fix != d.Position.Fix {
			return nil
		}
		marks[i] = int16(fresh[0].Mark)
	}
	return marks
}
