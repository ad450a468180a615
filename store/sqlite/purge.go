package sqlite

import (
	"context"
	"database/sql"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Purge implements [tracking.Store].
//
// A purged fix may stay in its table, unseen, as long as the fixes after it are judged by it: those
// from the last closed mark before the limit on.
//
// When all that there was has been purged, the log is emptied if it holds what was erased or purged
// since, and remains of what was erased are removed (compact.go).
func (s *Store) Purge(ctx context.Context, b tracking.Before) (p tracking.Purged, err error) {
	err = s.write(ctx, change{lane: large, rows: b.Limit, atom: true, apply: func(x *tx) error {
		p = tracking.Purged{}
		err := x.purge(b, &p)
		x.erased = x.erased || p.Total() > 0
		x.wipes = x.erased && p.Total() < b.Limit
		if err == nil && p.Total() < b.Limit {
			x.sweeps = true
			err = x.compactDue()
		}
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
	if p.Total() > 0 {
		if err := x.leavesRemains(); err != nil {
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
		if err := x.raise(keepInviteMarks, before, left()); err != nil {
			return err
		}
		if p.Invites, err = x.changed(purgeInvites, before, left()); err != nil {
			return err
		}
	}
	return nil
}

const (
	selectErased        = `SELECT driver FROM erased ORDER BY driver LIMIT 1`
	deleteErased        = `DELETE FROM erased WHERE driver = ?`
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
		n, err := x.dropFixes(driver, limit-p.Total())
		if err != nil {
			return err
		}
		p.Fixes += n
		if n, err = x.changed(deleteErasedNotices, driver, driver, limit-p.Total()); err != nil {
			return err
		}
		p.Notices += n
		if p.Total() == limit { // there may be more
			return nil
		}
		if err := x.exec(deleteErased, driver); err != nil {
			return err
		}
	}
	return nil
}

// dropFixes removes the oldest fixes of a driver who is deleted, and tells how many.
func (x *tx) dropFixes(driver int64, limit int) (n int, err error) {
	l := x.fixLog(0, &driverState{Driver: tracking.Driver{Seq: driver}})
	return l.purge(endless, endless, limit)
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
SELECT d.app, d.id FROM positions p INDEXED BY positions_by_oldest JOIN drivers d ON d.seq = p.driver
WHERE p.oldest_at IS NOT NULL AND p.oldest_at < ? ORDER BY p.oldest_at LIMIT 1`
)

// purgeFixes goes from driver to driver, the one with the oldest fix first.
func (x *tx) purgeFixes(before int64, limit int, p *tracking.Purged) error {
	for p.Fixes < limit {
		var r struct {
			App int64
			ID  tracking.DriverID
		}
		found, err := x.find(&r, selectOldest, before)
		if err != nil || !found {
			return err
		}
		k := driverKey{r.App, r.ID}
		d, err := x.driver(k)
		if err != nil {
			return err
		}
		log := x.fixLog(r.App, d)
		turn, err := log.judgedFrom(before)
		if err != nil {
			return err
		}
		n, err := log.purge(turn, before, limit-p.Fixes)
		if err != nil {
			return err
		}
		p.Fixes += n
		if err := log.aged(k, before); err != nil {
			return err
		}
	}
	return nil
}

// judgedFrom is the time (UTC ms) of the oldest fix that those from before on are judged by: those after
// one with a closed mark are judged by it alone, or together with the good one before it.
func (l *fixLog) judgedFrom(before int64) (turn int64, err error) {
	turn = atOnce
	closed := false
	err = l.back(before, func(f tracking.KeptFix) bool {
		good := f.Mark.Good() || f.Mark == tracking.MarkForgotten
		switch {
		case closed && good:
			turn = f.Time.UnixMilli()
			return false
		case closed:
			return true
		case f.Mark == tracking.MarkGood, f.Mark == tracking.MarkLost, f.Mark == tracking.MarkForgotten:
			turn, closed = f.Time.UnixMilli(), true
			return f.Mark == tracking.MarkGood
		}
		return true
	})
	return turn, err
}

// aged notes a driver's oldest fix anew, and takes his position away once its fix is gone, of those
// before a time (UTC ms).
func (l *fixLog) aged(k driverKey, before int64) error {
	next := *l.driver
	next.oldest = sql.NullInt64{}
	err := l.ahead(atOnce, func(f tracking.KeptFix) bool {
		next.oldest = sql.NullInt64{Int64: f.Time.UnixMilli(), Valid: !f.Purged}
		return f.Purged
	})
	if err != nil {
		return err
	}
	if next.oldest.Valid {
		before = min(before, next.oldest.Int64)
	} else {
		next.oldest = sql.NullInt64{}
	}
	var empty bool
	next.Position, empty, err = l.driver.Position.Purged(l, fromMillis(before))
	if err != nil {
		return err
	}
	if empty {
		if err := l.clear(); err != nil {
			return err
		}
	}
	next.open = l.open
	return l.putPosition(k, l.driver, &next)
}
