package sqlite

import (
	"context"
	"database/sql"

	"github.com/seed-8aba7b13/tracking"
)

// Purge implements [tracking.Store].
//
// A purged fix may stay in its table, unseen, as long as the fixes after it are judged by it: the last good one before the limit, and what lies between.
func (s *Store) Purge(ctx context.Context, b tracking.Before) (p tracking.Purged, err error) {
	err = s.write(ctx, true, func(x *tx) error {
		p = tracking.Purged{}
		return x.purge(b, &p)
	})
	if err != nil {
		return tracking.Purged{}, err
	}
	return p, nil
}

const (
	selectOldEvents = `SELECT n FROM events INDEXED BY events_over WHERE undelivered = 0 AND recorded_at < ? ORDER BY recorded_at, n LIMIT ?`
	purgeDead       = `DELETE FROM deliveries INDEXED BY deliveries_dead_by_event WHERE state = 2 AND event IN (` + selectOldEvents + `)`
	purgeEvents     = `DELETE FROM events WHERE n IN (` + selectOldEvents + `)`

	selectOldNotices = `SELECT driver, id FROM notices INDEXED BY notices_by_time WHERE time < ? ORDER BY time LIMIT ?`
	deleteNotice     = `DELETE FROM notices WHERE driver = ? AND id = ?`
	updatePurged     = `UPDATE drivers SET purged_notice = max(purged_notice, ?) WHERE seq = ?`

	purgeRequests = `
DELETE FROM requests WHERE (driver, tracking_id) IN (SELECT driver, tracking_id FROM requests INDEXED BY requests_by_age WHERE created_at < ? ORDER BY created_at LIMIT ?)`
	purgeInvites = `
DELETE FROM invites WHERE driver IN (SELECT driver FROM invites INDEXED BY invites_over WHERE over_at < ? ORDER BY over_at LIMIT ?)`
)

func (x *tx) purge(b tracking.Before, p *tracking.Purged) (err error) {
	left := func() int { return b.Limit - p.Total() }
	if !b.Fixes.IsZero() {
		if err := x.purgeFixes(ceilMillis(b.Fixes), b.Limit, p); err != nil {
			return err
		}
	}
	if b.Events.IsZero() {
		return nil
	}
	before := ceilMillis(b.Events)
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
		if p.Invites, err = x.changed(purgeInvites, before, left()); err != nil {
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
	p.Notices = len(old)
	return nil
}

const (
	selectOldest = `
SELECT d.app, d.id, p.driver FROM positions p INDEXED BY positions_by_oldest JOIN drivers d ON d.seq = p.driver
WHERE p.oldest_at IS NOT NULL AND p.oldest_at < ? ORDER BY p.oldest_at LIMIT 1`

	// The fixes after this one are judged as if those before it had never been.
	selectTurn    = `SELECT time FROM fixes WHERE driver = ? AND time < ? AND abs(mark) = 1 ORDER BY time DESC LIMIT 1`
	deleteUnseen  = `DELETE FROM fixes WHERE driver = ? AND time < ? AND mark < 0`
	deleteOld     = `DELETE FROM fixes WHERE driver = ? AND time IN (SELECT time FROM fixes WHERE driver = ? AND time < ? AND mark > 0 ORDER BY time LIMIT ?)`
	hideOld       = `UPDATE fixes SET mark = -mark WHERE driver = ? AND time IN (SELECT time FROM fixes WHERE driver = ? AND time < ? AND mark > 0 ORDER BY time LIMIT ?)`
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
		turn := before
		if _, err := x.find(&turn, selectTurn, r.Driver, before); err != nil {
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
		if err := x.aged(driverKey{r.App, r.ID}); err != nil {
			return err
		}
	}
	return nil
}

// aged notes a driver's oldest fix anew.
func (x *tx) aged(k driverKey) error {
	d, err := x.driver(k)
	if err != nil || d == nil {
		return err
	}
	next := *d
	next.oldest = sql.NullInt64{}
	if err := x.get(&next.oldest, selectNewLast, d.Seq); err != nil {
		return err
	}
	x.setDriver(k, &next)
	return x.exec(updateOldest, next.oldest, d.Seq)
}
