package sqlite

import (
	"context"
	"database/sql"
	"math"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Purge implements [tracking.Store].
//
// A purged fix may stay in its table, unseen, as long as the fixes after it are judged by it: those
// from the last closed mark before the limit on.
//
// When there is nothing left to purge, the log is emptied if it holds what was erased or purged since.
func (s *Store) Purge(ctx context.Context, b tracking.Before) (p tracking.Purged, err error) {
	err = s.write(ctx, change{lane: large, rows: b.Limit, atom: true, apply: func(x *tx) error {
		p = tracking.Purged{}
		err := x.purge(b, &p)
		x.erased = x.erased || p.Total() > 0
		x.wipes = x.erased && p.Total() < b.Limit
		return err
	}})
	if err != nil {
		return tracking.Purged{}, err
	}
	return p, nil
}

const (
	selectOldEvents = `SELECT n FROM events INDEXED BY events_over WHERE undelivered = 0 AND recorded_at < ?
		ORDER BY recorded_at, n LIMIT ?`
	purgeDead = `DELETE FROM deliveries INDEXED BY deliveries_dead_by_event
		WHERE state = 2 AND event IN (` + selectOldEvents + `)`
	purgeEvents = `DELETE FROM events WHERE n IN (` + selectOldEvents + `)`

	selectOldNotices = `SELECT driver, id FROM notices INDEXED BY notices_by_time WHERE time < ? ORDER BY time LIMIT ?`
	deleteNotice     = `DELETE FROM notices WHERE driver = ? AND id = ?`
	updatePurged     = `UPDATE drivers SET purged_notice = max(purged_notice, ?) WHERE seq = ?`

	purgeRequests = `
DELETE FROM requests WHERE (driver, tracking_id) IN (SELECT driver, tracking_id
	FROM requests INDEXED BY requests_by_age WHERE created_at < ? ORDER BY created_at LIMIT ?)`

	selectOldInvites = `SELECT driver FROM invites INDEXED BY invites_over WHERE over_at < ? ORDER BY over_at LIMIT ?`
	purgeInvites     = `DELETE FROM invites WHERE driver IN (` + selectOldInvites + `)`
	keepInviteMarks  = `
UPDATE apps SET last_version = max(last_version, old.version) FROM (
	SELECT d.app, max(i.version) AS version FROM invites i JOIN drivers d ON d.seq = i.driver
		WHERE i.driver IN (` + selectOldInvites + `) GROUP BY d.app
) AS old WHERE apps.n = old.app`
)

// purge removes what b says in this order, until Limit rows are gone: what the erased have left,
// files, fixes, events, notices, requests, invites.
func (x *tx) purge(b tracking.Before, p *tracking.Purged) (err error) {
	left := func() int { return b.Limit - p.Total() }
	if err := x.purgeErased(b.Limit, p); err != nil {
		return err
	}
	if !b.Files.IsZero() && left() > 0 {
		if err := x.purgeFiles(rows.Ceil(b.Files), left(), p); err != nil {
			return err
		}
	}
	if !b.Fixes.IsZero() {
		if err := x.purgeFixes(rows.Ceil(b.Fixes), p.Fixes+left(), p); err != nil {
			return err
		}
	}
	if b.Events.IsZero() {
		return nil
	}
	before := rows.Ceil(b.Events)
	if left() > 0 {
		if err := x.exec(purgeDead, before, left()); err != nil {
			return err
		}
		if p.Events, err = x.changed(purgeEvents, before, left()); err != nil {
			return err
		}
	}
	if left() > 0 {
		if err := x.purgeNotices(before, left(), p); err != nil {
			return err
		}
	}
	if left() > 0 {
		if p.Requests, err = x.changed(purgeRequests, before, left()); err != nil {
			return err
		}
	}
	if left() > 0 {
		if err := x.exec(keepInviteMarks, before, left()); err != nil {
			return err
		}
		if p.Invites, err = x.changed(purgeInvites, before, left()); err != nil {
			return err
		}
	}
	return nil
}

const (
	selectErased      = `SELECT driver FROM erased ORDER BY driver LIMIT 1`
	deleteErased      = `DELETE FROM erased WHERE driver = ?`
	deleteErasedFixes = `DELETE FROM fixes WHERE driver = ? AND time IN (SELECT time FROM fixes WHERE driver = ?
		ORDER BY time LIMIT ?)`
	deleteErasedNotices = `DELETE FROM notices WHERE driver = ? AND id IN (SELECT id FROM notices WHERE driver = ?
		ORDER BY id LIMIT ?)`
)

// purgeErased removes what deleted drivers have left, which nobody can see.
func (x *tx) purgeErased(limit int, p *tracking.Purged) error {
	for p.Total() < limit {
		var driver int64
		if found, err := x.find(&driver, selectErased); err != nil || !found {
			return err
		}
		for _, step := range []struct {
			query string
			count *int
		}{{deleteErasedFixes, &p.Fixes}, {deleteErasedNotices, &p.Notices}} {
			n, err := x.changed(step.query, driver, driver, limit-p.Total())
			if err != nil {
				return err
			}
			*step.count += n
		}
		if p.Total() == limit { // there may be more
			return nil
		}
		if err := x.exec(deleteErased, driver); err != nil {
			return err
		}
	}
	return nil
}

func (x *tx) purgeNotices(before int64, limit int, p *tracking.Purged) error {
	var old []struct{ Driver, ID int64 }
	if err := x.list(&old, selectOldNotices, before, limit); err != nil {
		return err
	}
	last := map[int64]int64{}
	for _, n := range old {
		if err := x.exec(deleteNotice, n.Driver, n.ID); err != nil {
			return err
		}
		last[n.Driver] = max(last[n.Driver], n.ID)
	}
	for driver, id := range last {
		if err := x.exec(updatePurged, id, driver); err != nil {
			return err
		}
	}
	p.Notices += len(old)
	return nil
}

const (
	selectOldest = `
SELECT d.app, d.id, p.driver FROM positions p INDEXED BY positions_by_oldest JOIN drivers d ON d.seq = p.driver
WHERE p.oldest_at IS NOT NULL AND p.oldest_at < ? ORDER BY p.oldest_at LIMIT 1`

	// The fixes after one with a closed mark are judged by it alone, or together with the good one
	// before it.
	selectTurn = `SELECT time, abs(mark) AS mark FROM fixes
		WHERE driver = ? AND time < ? AND abs(mark) IN (1, 5, 6) ORDER BY time DESC LIMIT 1`
	selectGoodBefore = `SELECT time FROM fixes WHERE driver = ? AND time < ? AND abs(mark) IN (1, 2, 6)
		ORDER BY time DESC LIMIT 1`
	deleteUnseen = `DELETE FROM fixes WHERE driver = ? AND time < ? AND mark < 0`
	deleteOld    = `DELETE FROM fixes WHERE driver = ? AND time IN (SELECT time FROM fixes
		WHERE driver = ? AND time < ? AND mark > 0 ORDER BY time LIMIT ?)`
	hideOld = `UPDATE fixes SET mark = -mark WHERE driver = ? AND time IN (SELECT time FROM fixes
		WHERE driver = ? AND time < ? AND mark > 0 ORDER BY time LIMIT ?)`
	deleteAll     = `DELETE FROM fixes WHERE driver = ?`
	selectNewLast = `SELECT min(time) FROM fixes WHERE driver = ? AND mark > 0`
)

// purgeFixes goes from driver to driver, the one with the oldest fix first.
func (x *tx) purgeFixes(before int64, limit int, p *tracking.Purged) error {
	for p.Fixes < limit {
		var r struct {
			App    int64
			ID     tracking.DriverID
			Driver int64
		}
		found, err := x.find(&r, selectOldest, before)
		if err != nil || !found {
			return err
		}
		turn, err := x.judgedFrom(r.Driver, before)
		if err != nil {
			return err
		}
		if err := x.exec(deleteUnseen, r.Driver, turn); err != nil {
			return err
		}
		for _, step := range []struct {
			query string
			until int64
		}{{deleteOld, turn}, {hideOld, before}} {
			n, err := x.changed(step.query, r.Driver, r.Driver, step.until, limit-p.Fixes)
			if err != nil {
				return err
			}
			if p.Fixes += n; p.Fixes == limit {
				break
			}
		}
		if err := x.aged(driverKey{r.App, r.ID}, before); err != nil {
			return err
		}
	}
	return nil
}

// judgedFrom is the time (UTC ms) of the oldest fix that those from before on are judged by.
func (x *tx) judgedFrom(driver, before int64) (int64, error) {
	var last struct {
		Time int64
		Mark tracking.FixMark
	}
	found, err := x.find(&last, selectTurn, driver, before)
	switch {
	case err != nil:
		return 0, err
	case !found:
		return math.MinInt64, nil
	case last.Mark != tracking.MarkGood:
		return last.Time, nil
	}
	turn := last.Time
	_, err = x.find(&turn, selectGoodBefore, driver, last.Time)
	return turn, err
}

// aged notes a driver's oldest fix anew, and takes his position away once its fix is gone, of those
// before a time (UTC ms).
func (x *tx) aged(k driverKey, before int64) error {
	d, err := x.driver(k)
	if err != nil || d == nil {
		return err
	}
	next := *d
	next.oldest = sql.NullInt64{}
	if err := x.get(&next.oldest, selectNewLast, d.Seq); err != nil {
		return err
	}
	if next.oldest.Valid {
		before = min(before, next.oldest.Int64)
	}
	var empty bool
	next.Position, empty, err = d.Position.Purged(&fixLog{tx: x, app: k.app, driver: d}, fromMillis(before))
	if err != nil {
		return err
	}
	if empty {
		if err := x.exec(deleteAll, d.Seq); err != nil {
			return err
		}
	}
	if err := x.putPosition(d, &next); err != nil {
		return err
	}
	x.setDriver(k, &next)
	return nil
}
