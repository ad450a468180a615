package postgres

import (
	"cmp"
	"context"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Purge implements [tracking.Store]. It does one kind after another, each in a transaction of its
// own, until Limit rows are gone: what the erased have left, files, fixes, events, notices, requests,
// invites.
//
// A purged fix may stay in its table, unseen, as long as the fixes after it are judged by it: those
// from the last closed mark before the limit on.
//
// What somebody else holds is passed over, and comes with a later call.
func (s *Store) Purge(ctx context.Context, b tracking.Before) (tracking.Purged, error) {
	p := purge{Store: s, limit: b.Limit}
	steps := []func(context.Context) error{p.erased}
	if !b.Files.IsZero() {
		before := rows.Ceil(b.Files)
		steps = append(steps, func(ctx context.Context) error { return p.files(ctx, before) })
	}
	if !b.Fixes.IsZero() {
		before := rows.Ceil(b.Fixes)
		steps = append(steps, func(ctx context.Context) error { return p.fixes(ctx, before) })
	}
	if !b.Events.IsZero() {
		before := rows.Ceil(b.Events)
		for _, step := range []func(context.Context, int64) error{p.events, p.notices, p.requests, p.invites} {
			steps = append(steps, func(ctx context.Context) error { return step(ctx, before) })
		}
	}
	for _, step := range steps {
		if p.left() <= 0 {
			break
		}
		if err := step(ctx); err != nil {
			return p.Purged, err
		}
	}
	return p.Purged, ctx.Err()
}

// purge is a Purge on its way.
type purge struct {
	*Store
	tracking.Purged
	limit int
}

func (p *purge) left() int { return p.limit - p.Total() }

// numbered is a row by its application's number and one of its own.
type numbered struct {
	app    int32
	number int64
}

func scanNumbered(row pgx.CollectableRow) (n numbered, err error) {
	err = row.Scan(&n.app, &n.number)
	return n, err
}

// driversWhere are drivers in a table for which a condition is true.
func driversWhere(table, condition, order string) lockable[numbered] {
	return lockable[numbered]{
		query: `SELECT app, driver FROM tracking.` + table + ` WHERE ` + condition,
		order: order,
		lock:  ` FOR UPDATE`,
		key:   `app, driver`,
		keyOf: func(n numbered) []any { return []any{n.app, n.number} },
		scan:  scanNumbered,
	}
}

var erasedDrivers = driversWhere(`erased`, `true`, limited)

const (
	deleteErased      = `DELETE FROM tracking.erased WHERE app = $1 AND driver = $2`
	deleteErasedFixes = `DELETE FROM tracking.fixes WHERE app = $1 AND driver = $2 AND time IN (
		SELECT time FROM tracking.fixes WHERE app = $1 AND driver = $2 ORDER BY time LIMIT $3)`
	deleteErasedNotices = `DELETE FROM tracking.notices WHERE app = $1 AND driver = $2 AND id IN (
		SELECT id FROM tracking.notices WHERE app = $1 AND driver = $2 ORDER BY id LIMIT $3)`
)

// erased removes what deleted drivers have left, which nobody can see.
func (p *purge) erased(ctx context.Context) error {
	if err := p.write(ctx, func(ctx context.Context, x *tx) error {
		x.queue(deleteClaims, p.now(time.Time{}))
		x.queue(deleteLimits)
		return nil
	}); err != nil {
		return err
	}
	for p.left() > 0 {
		var found []numbered
		var fixes, notices int
		left := p.left()
		err := p.write(ctx, func(ctx context.Context, x *tx) error {
			fixes, notices = 0, 0
			if err := cmp.Or(erasedDrivers.free(ctx, x, &found, 1), x.flush(ctx)); err != nil || len(found) == 0 {
				return err
			}
			d := found[0]
			x.counted(&fixes, deleteErasedFixes, d.app, d.number, left)
			if err := x.flush(ctx); err != nil {
				return err
			}
			if fixes < left {
				x.counted(&notices, deleteErasedNotices, d.app, d.number, left-fixes)
				if err := x.flush(ctx); err != nil {
					return err
				}
			}
			if fixes+notices < left { // else there may be more
				x.queue(deleteErased, d.app, d.number)
			}
			return nil
		})
		if err != nil || len(found) == 0 {
			return err
		}
		p.Purged.Fixes += fixes
		p.Purged.Notices += notices
	}
	return nil
}

const (
	selectLoose = `SELECT app, id FROM tracking.files WHERE loose AND put_at < $1 ORDER BY put_at, app, id LIMIT $2`
	isNamed     = ` EXISTS (SELECT 1 FROM tracking.tasks t, jsonb_array_elements(t.more -> 'proofs') p
		WHERE t.app = f.app AND t.id = f.task AND p ->> 'id' = f.id)`
	purgeOrphans = `DELETE FROM tracking.files f WHERE (app, id) IN (` + selectLoose + `) AND loose AND NOT` + isNamed
	keepNamed    = `UPDATE tracking.files f SET loose = false WHERE (app, id) IN (` + selectLoose + `) AND` + isNamed
)

// files removes files that their tasks do not name, of the first that no purge has found named. Those
// that are named it will not look at again.
func (p *purge) files(ctx context.Context, before int64) error {
	left := p.left()
	return p.write(ctx, func(ctx context.Context, x *tx) error {
		x.counted(&p.Purged.Files, purgeOrphans, before, left)
		x.queue(keepNamed, before, left)
		return nil
	})
}

var oldestFirst = driversWhere(`positions`, `oldest_at IS NOT NULL AND oldest_at < $1`, ` ORDER BY oldest_at`+limited)

const (
	selectLockedByNumber = selectDrivers + ` WHERE d.app = $1 AND d.n = $2`

	// The fixes after one with a closed mark are judged by it alone, or together with the good one
	// before it.
	selectTurn = `SELECT time, abs(mark) FROM tracking.fixes
		WHERE app = $1 AND driver = $2 AND time < $3 AND abs(mark) IN (1, 5, 6) ORDER BY time DESC LIMIT 1`
	selectGoodBefore = `SELECT time FROM tracking.fixes WHERE app = $1 AND driver = $2 AND time < $3
		AND abs(mark) IN (1, 2, 6) ORDER BY time DESC LIMIT 1`
	deleteUnseen = `DELETE FROM tracking.fixes WHERE app = $1 AND driver = $2 AND time < $3 AND mark < 0`
	deleteOld    = `DELETE FROM tracking.fixes WHERE app = $1 AND driver = $2 AND time IN (SELECT time FROM tracking.fixes
		WHERE app = $1 AND driver = $2 AND time < $3 AND mark > 0 ORDER BY time LIMIT $4)`
	hideOld = `UPDATE tracking.fixes SET mark = -mark WHERE app = $1 AND driver = $2 AND time IN (
		SELECT time FROM tracking.fixes WHERE app = $1 AND driver = $2 AND time < $3 AND mark > 0 ORDER BY time LIMIT $4)`
	deleteAllFixes = `DELETE FROM tracking.fixes WHERE app = $1 AND driver = $2`
	selectNewLast  = `SELECT min(time) FROM tracking.fixes WHERE app = $1 AND driver = $2 AND mark > 0`
)

// fixes goes from driver to driver, the one with the oldest fix first.
func (p *purge) fixes(ctx context.Context, before int64) error {
	for p.left() > 0 {
		var found []numbered
		var gone int
		left := p.left()
		err := p.write(ctx, func(ctx context.Context, x *tx) (err error) {
			if err = cmp.Or(oldestFirst.free(ctx, x, &found, before, 1), x.flush(ctx)); err != nil || len(found) == 0 {
				return err
			}
			gone, err = x.purgeDriver(ctx, found[0], before, left)
			return err
		})
		if err != nil || len(found) == 0 {
			return err
		}
		p.Purged.Fixes += gone
	}
	return nil
}

// purgeDriver removes the oldest fixes of a driver, who is locked, at most limit.
func (x *tx) purgeDriver(ctx context.Context, n numbered, before int64, limit int) (gone int, err error) {
	var found []*driverState
	queueRows(x, &found, scanDriver, selectLockedByNumber, n.app, n.number)
	if err := x.flush(ctx); err != nil || len(found) == 0 {
		return 0, err
	}
	d := found[0]
	turn, err := x.judgedFrom(ctx, d, before)
	if err != nil {
		return 0, err
	}
	x.queue(deleteUnseen, d.app, d.number, turn)
	for _, step := range []struct {
		query string
		until int64
	}{{deleteOld, turn}, {hideOld, before}} {
		var n int
		x.counted(&n, step.query, d.app, d.number, step.until, limit-gone)
		if err := x.flush(ctx); err != nil {
			return 0, err
		}
		if gone += n; gone == limit {
			break
		}
	}
	return gone, x.aged(ctx, d, before)
}

// judgedFrom is the time (UTC ms) of the oldest fix that those from before on are judged by.
func (x *tx) judgedFrom(ctx context.Context, d *driverState, before int64) (int64, error) {
	type turn struct {
		at   int64
		mark tracking.FixMark
	}
	var last []turn
	queueRows(x, &last, func(row pgx.CollectableRow) (t turn, err error) {
		err = row.Scan(&t.at, &t.mark)
		return t, err
	}, selectTurn, d.app, d.number, before)
	if err := x.flush(ctx); err != nil {
		return 0, err
	}
	switch {
	case len(last) == 0:
		return math.MinInt64, nil
	case last[0].mark != tracking.MarkGood:
		return last[0].at, nil
	}
	var good []int64
	queueRows(x, &good, pgx.RowTo[int64], selectGoodBefore, d.app, d.number, last[0].at)
	if err := x.flush(ctx); err != nil || len(good) == 0 {
		return last[0].at, err
	}
	return good[0], nil
}

// aged notes a driver's oldest fix anew, and takes the position away once its fix is gone, of those
// before a time (UTC ms).
func (x *tx) aged(ctx context.Context, d *driverState, before int64) error {
	var oldest []*int64
	queueRows(x, &oldest, pgx.RowTo[*int64], selectNewLast, d.app, d.number)
	if err := x.flush(ctx); err != nil {
		return err
	}
	d.oldest = oldest[0]
	if d.oldest != nil {
		before = min(before, *d.oldest)
	}
	var empty bool
	var err error
	if d.Position, empty, err = x.positionWithout(ctx, d, before); err != nil {
		return err
	}
	if empty {
		x.queue(deleteAllFixes, d.app, d.number)
	}
	x.putPosition(d)
	return nil
}

const (
	selectOldEvents = `
SELECT app, n FROM tracking.events e WHERE recorded_at < $1 AND NOT EXISTS (
	SELECT 1 FROM tracking.deliveries d WHERE d.app = e.app AND d.event = e.n AND d.state = 1)
ORDER BY recorded_at, n LIMIT $2`

	// What is dead may be tried anew at this moment. In a statement of its own, before the one that
	// deletes: that one sees what became of it.
	lockDead = `
SELECT 1 FROM tracking.deliveries d
JOIN unnest($1::int[], $2::bigint[]) old (app, n) ON d.app = old.app AND d.event = old.n
ORDER BY d.app, d.subject, d.outbox, d.event FOR UPDATE OF d`
	purgeEvents = `
WITH old AS (
	SELECT app, n FROM unnest($1::int[], $2::bigint[]) o (app, n) WHERE NOT EXISTS (
		SELECT 1 FROM tracking.deliveries d WHERE d.app = o.app AND d.event = o.n AND d.state = 1)),
dead AS (DELETE FROM tracking.deliveries d USING old WHERE d.app = old.app AND d.event = old.n)
DELETE FROM tracking.events e USING old WHERE e.app = old.app AND e.n = old.n`
)

func (p *purge) events(ctx context.Context, before int64) error {
	left := p.left()
	return p.write(ctx, func(ctx context.Context, x *tx) error {
		var found []numbered
		queueRows(x, &found, scanNumbered, selectOldEvents, before, left)
		if err := x.flush(ctx); err != nil || len(found) == 0 {
			return err
		}
		apps, numbers := make([]int32, len(found)), make([]int64, len(found))
		for i, e := range found {
			apps[i], numbers[i] = e.app, e.number
		}
		x.queue(lockDead, apps, numbers)
		x.counted(&p.Purged.Events, purgeEvents, apps, numbers)
		return nil
	})
}

const (
	selectOldNotices = `SELECT app, driver, id FROM tracking.notices WHERE time < $1 ORDER BY time LIMIT $2`

	purgeNotices = `
WITH gone AS (
	DELETE FROM tracking.notices n USING (` + selectOldNotices + `) o
	WHERE n.app = o.app AND n.driver = o.driver AND n.id = o.id AND (n.app, n.driver) IN (` + ofLocked + `)
	RETURNING n.app, n.driver, n.id),
noted AS (
	UPDATE tracking.positions p SET purged_notice = greatest(purged_notice, g.id)
	FROM (SELECT app, driver, max(id) AS id FROM gone GROUP BY app, driver) g
	WHERE p.app = g.app AND p.driver = g.driver)
SELECT count(*) FROM gone`
)

// Those that are purged are noted under the lock of their driver.
var ofNotices = driversWhere(
	`positions`, `(app, driver) IN (SELECT app, driver FROM (`+selectOldNotices+`) o)`, ` ORDER BY app, driver`)

func (p *purge) notices(ctx context.Context, before int64) error {
	left := p.left()
	var gone []int64
	err := p.write(ctx, func(ctx context.Context, x *tx) error {
		gone = nil
		apps, drivers, err := x.lockOthers(ctx, ofNotices, before, left)
		if err == nil && len(apps) > 0 {
			queueRows(x, &gone, pgx.RowTo[int64], purgeNotices, before, left, apps, drivers)
		}
		return err
	})
	if err == nil && len(gone) > 0 {
		p.Purged.Notices += int(gone[0])
	}
	return err
}

// requestKey names a request.
type requestKey struct {
	numbered
	trackingID string
}

var oldRequests = lockable[requestKey]{
	query: `SELECT app, driver, tracking_id FROM tracking.requests WHERE created_at < $1`,
	order: ` ORDER BY created_at` + limited,
	lock:  ` FOR UPDATE`,
	key:   `app, driver, tracking_id`,
	keyOf: func(k requestKey) []any { return []any{k.app, k.number, k.trackingID} },
	scan: func(row pgx.CollectableRow) (k requestKey, err error) {
		err = row.Scan(&k.app, &k.number, &k.trackingID)
		return k, err
	},
}

const purgeRequests = `
DELETE FROM tracking.requests r USING unnest($1::int[], $2::bigint[], $3::text[]) u (app, driver, tracking_id)
WHERE r.app = u.app AND r.driver = u.driver AND r.tracking_id = u.tracking_id`

func (p *purge) requests(ctx context.Context, before int64) error {
	left := p.left()
	return p.write(ctx, func(ctx context.Context, x *tx) error {
		p.Purged.Requests = 0
		var found []requestKey
		err := cmp.Or(oldRequests.free(ctx, x, &found, before, left), x.flush(ctx))
		if err != nil || len(found) == 0 {
			return err
		}
		var apps []int32
		var drivers []int64
		var ids []string
		for _, k := range found {
			apps, drivers, ids = append(apps, k.app), append(drivers, k.number), append(ids, k.trackingID)
		}
		x.counted(&p.Purged.Requests, purgeRequests, apps, drivers, ids)
		return nil
	})
}

const (
	selectOldInvites = `SELECT app, driver FROM tracking.invites WHERE over_at < $1 ORDER BY over_at LIMIT $2`
	overOfLocked     = `over_at < $1 AND (app, driver) IN (SELECT * FROM unnest($2::int[], $3::bigint[]))`

	keepInviteMarks = `
UPDATE tracking.apps a SET last_version = greatest(last_version, o.version) FROM (
	SELECT app, max(version) AS version FROM tracking.invites WHERE ` + overOfLocked + ` GROUP BY app) o
WHERE a.n = o.app`
	purgeCodes = `
DELETE FROM tracking.codes c USING (SELECT * FROM tracking.invites WHERE ` + overOfLocked + `) i
WHERE c.code_hash = i.code_hash AND c.app = i.app AND c.driver = i.driver`
	// What was renewed meanwhile is over later.
	purgeInvites = `DELETE FROM tracking.invites WHERE ` + overOfLocked
)

var ofInvites = driversWhere(
	`positions`, `(app, driver) IN (SELECT app, driver FROM (`+selectOldInvites+`) o)`, ` ORDER BY app, driver`)

func (p *purge) invites(ctx context.Context, before int64) error {
	left := p.left()
	return p.write(ctx, func(ctx context.Context, x *tx) error {
		p.Purged.Invites = 0
		apps, drivers, err := x.lockOthers(ctx, ofInvites, before, left)
		if err == nil && len(apps) > 0 {
			x.queue(keepInviteMarks, before, apps, drivers)
			x.queue(purgeCodes, before, apps, drivers)
			x.counted(&p.Purged.Invites, purgeInvites, before, apps, drivers)
		}
		return err
	})
}

// ofLocked are the drivers that lockOthers has found.
const ofLocked = `SELECT * FROM unnest($3::int[], $4::bigint[])`

// lockOthers locks those of some drivers that nobody else holds.
func (x *tx) lockOthers(
	ctx context.Context, which lockable[numbered], args ...any,
) (apps []int32, drivers []int64, err error) {
	var found []numbered
	if err := cmp.Or(which.free(ctx, x, &found, args...), x.flush(ctx)); err != nil {
		return nil, nil, err
	}
	for _, n := range found {
		apps, drivers = append(apps, n.app), append(drivers, n.number)
	}
	return apps, drivers, nil
}
