package postgres

import (
	"context"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Rows in the order of [tracking.RowKinds].
const (
	// A walk takes as long as whoever reads it.
	walkOn = `SET LOCAL statement_timeout = 0`

	allApps   = `SELECT n, id, last_version, last_notice FROM tracking.apps WHERE $1::text IN ('', id) ORDER BY id`
	allMemos  = `SELECT name, value FROM tracking.memos ORDER BY name`
	allSecret = selectSecret

	allDrivers = `SELECT` + driverColumns + `, p.purged_notice` + fromDrivers + `
WHERE d.app = $1 AND $2::text IN ('', d.id) ORDER BY d.created_at, d.n`
	allInvites = `SELECT` + inviteColumns + fromInvites + ` WHERE d.app = $1 AND $2::text IN ('', d.id)
	ORDER BY d.created_at, d.n`
	allRequests = `SELECT` + requestColumns + ` FROM tracking.drivers d
	JOIN tracking.requests r ON r.app = d.app AND r.driver = d.n WHERE d.app = $1 AND $2::text IN ('', d.id)
	ORDER BY d.created_at, d.n, r.tracking_id`
	allKeys  = `SELECT` + keyColumns + ` FROM tracking.keys WHERE app = $1 ORDER BY id`
	allTasks = selectTasks + `app = $1 ORDER BY created_at, seq`
	allTrips = selectTrips + `app = $1 ORDER BY created_at, seq`
	allFixes = `SELECT time, lng, lat, event_id, accuracy, speed, bearing, battery, trusted, mark FROM tracking.fixes
	WHERE app = $1 AND driver = $2 ORDER BY time`
	allNotices = `SELECT id, kind, event_id, task_id, tracking_id, time FROM tracking.notices
	WHERE app = $1 AND driver = $2 ORDER BY id`

	allSubjects = `
SELECT s.kind, s.id, s.last_seq FROM tracking.subjects s
WHERE s.app = $1 AND s.last_seq > coalesce(
	(SELECT max(e.seq) FROM tracking.events e WHERE e.app = s.app AND e.subject = s.n), 0)
ORDER BY s.kind, s.id`

	// First those that have a place, and then those that are to have one after all of them.
	allEvents = `
SELECT` + eventColumns + `, d.outboxes, d.states, d.attempts, d.retries
FROM tracking.events e LEFT JOIN LATERAL (
	SELECT array_agg(outbox ORDER BY outbox) AS outboxes, array_agg(state ORDER BY outbox) AS states,
		array_agg(attempts ORDER BY outbox) AS attempts, array_agg(retry_at ORDER BY outbox) AS retries
	FROM tracking.deliveries WHERE app = e.app AND event = e.n) d ON true
WHERE e.app = $1 AND `
	allPlaced   = allEvents + `e.place IS NOT NULL ORDER BY e.place`
	allUnplaced = allEvents + `e.place IS NULL ORDER BY e.n`

	allFiles = `SELECT id, task, type, put_at, NOT loose, data FROM tracking.files WHERE app = $1 ORDER BY id`
)

// Rows implements [tracking.Store]: all are of the moment at which it begins, in a transaction that
// holds up nobody who writes.
func (s *Store) Rows(ctx context.Context, q tracking.RowQuery) iter.Seq2[tracking.Row, error] {
	return func(yield func(tracking.Row, error) bool) {
		enough := false
		err := s.walk(ctx, q, func(r tracking.Row) error {
			if enough = !yield(r, nil); enough {
				return errNothing
			}
			return nil
		})
		if err != nil && !enough {
			yield(tracking.Row{}, err)
		}
	}
}

func (s *Store) walk(ctx context.Context, q tracking.RowQuery, send func(tracking.Row) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return rows.ErrClosed
	}
	if !rows.Text(q.App) {
		return nil
	}
	walked, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	err := s.once(walked, beginLook, func(ctx context.Context, x *tx) error {
		x.queue(walkOn)
		var apps []exportedApp
		queueRows(x, &apps, func(row pgx.CollectableRow) (a exportedApp, err error) {
			err = row.Scan(&a.n, &a.id, &a.marks.Version, &a.marks.Notice)
			return a, err
		}, allApps, string(q.App))
		if err := x.flush(ctx); err != nil {
			return err
		}
		e := &export{x, q, send}
		if err := e.store(ctx); err != nil {
			return err
		}
		for _, a := range apps {
			if err := e.application(ctx, a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil && s.closing.Err() != nil {
		return rows.ErrClosed
	}
	return failure(ctx, err)
}

// export is a walk over rows, in a transaction.
type export struct {
	*tx
	query tracking.RowQuery
	send  func(tracking.Row) error
}

type exportedApp struct {
	n     int32
	id    tracking.AppID
	marks tracking.Marks
}

// each sends what a query finds, one row after another.
func (e *export) each(ctx context.Context, app tracking.AppID, value func(pgx.CollectableRow) (tracking.RowValue, error),
	sql string, args ...any,
) error {
	found, err := e.conn.Query(ctx, e.tx.store.sql(sql), args...)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		v, err := value(found)
		if err != nil {
			return err
		}
		if err := e.send(tracking.Row{App: app, Value: v}); err != nil {
			return err
		}
	}
	return found.Err()
}

// store sends what is of no application.
func (e *export) store(ctx context.Context) error {
	if e.query.Wants(tracking.RowSecret) {
		if err := e.each(ctx, "", func(row pgx.CollectableRow) (tracking.RowValue, error) {
			var h hash
			err := row.Scan(&h)
			return tracking.StoreSecret{Value: h.Hash}, err
		}, allSecret); err != nil {
			return err
		}
	}
	if !e.query.Wants(tracking.RowMemo) {
		return nil
	}
	return e.each(ctx, "", func(row pgx.CollectableRow) (tracking.RowValue, error) {
		var m tracking.Memo
		var value []byte
		err := row.Scan(&m.Name, &value)
		m.Value = tracking.Secret(value)
		return m, err
	}, allMemos)
}

func (e *export) application(ctx context.Context, a exportedApp) error {
	var owners []*driverState
	driver := string(e.query.Driver)
	steps := []struct {
		kinds []tracking.RowKind
		run   func() error
	}{
		{[]tracking.RowKind{tracking.RowApplication}, func() error {
			return e.send(tracking.Row{App: a.id, Value: a.marks})
		}},
		{[]tracking.RowKind{tracking.RowDriver, tracking.RowFix, tracking.RowNotice}, func() (err error) {
			owners, err = e.drivers(ctx, a)
			return err
		}},
		{[]tracking.RowKind{tracking.RowInvite}, func() error {
			return e.each(ctx, a.id, func(row pgx.CollectableRow) (tracking.RowValue, error) {
				v, err := scanInvite(row)
				return v.Invite, err
			}, allInvites, a.n, driver)
		}},
		{[]tracking.RowKind{tracking.RowRequest}, func() error {
			return e.each(ctx, a.id, func(row pgx.CollectableRow) (tracking.RowValue, error) {
				return scanRequest(row)
			}, allRequests, a.n, driver)
		}},
		{[]tracking.RowKind{tracking.RowKey}, func() error {
			return e.each(ctx, a.id, func(row pgx.CollectableRow) (tracking.RowValue, error) {
				v, err := scanKey(row)
				return v.Key, err
			}, allKeys, a.n)
		}},
		{[]tracking.RowKind{tracking.RowTask}, func() error {
			return e.each(ctx, a.id, func(row pgx.CollectableRow) (tracking.RowValue, error) {
				return plainTask(row)
			}, allTasks, a.n)
		}},
		{[]tracking.RowKind{tracking.RowTrip}, func() error {
			return e.each(ctx, a.id, func(row pgx.CollectableRow) (tracking.RowValue, error) {
				return plainTrip(row)
			}, allTrips, a.n)
		}},
		{[]tracking.RowKind{tracking.RowFix}, func() error { return e.fixes(ctx, a, owners) }},
		{[]tracking.RowKind{tracking.RowNotice}, func() error { return e.notices(ctx, a, owners) }},
		{[]tracking.RowKind{tracking.RowSubject}, func() error {
			return e.each(ctx, a.id, func(row pgx.CollectableRow) (tracking.RowValue, error) {
				var v tracking.SubjectRow
				err := row.Scan(&v.Kind, &v.ID, &v.Seq)
				return v, err
			}, allSubjects, a.n)
		}},
		{[]tracking.RowKind{tracking.RowEvent}, func() error {
			if err := e.each(ctx, a.id, scanEventRow, allPlaced, a.n); err != nil {
				return err
			}
			return e.each(ctx, a.id, scanEventRow, allUnplaced, a.n)
		}},
		{[]tracking.RowKind{tracking.RowFile}, func() error {
			return e.each(ctx, a.id, func(row pgx.CollectableRow) (tracking.RowValue, error) {
				var v tracking.FileRow
				var at instant
				err := row.Scan(&v.ID, &v.TaskID, &v.Type, &at, &v.Named, &v.Data)
				v.At = at.Time
				return v, err
			}, allFiles, a.n)
		}},
	}
	for _, step := range steps {
		if !slices.ContainsFunc(step.kinds, e.query.Wants) {
			continue
		}
		if err := step.run(); err != nil {
			return err
		}
	}
	return nil
}

// drivers sends them, if they are wanted, and lists what their fixes and notices are found by.
func (e *export) drivers(ctx context.Context, a exportedApp) (owners []*driverState, err error) {
	send := e.send
	if !e.query.Wants(tracking.RowDriver) {
		send = func(tracking.Row) error { return nil }
	}
	x := &export{e.tx, e.query, send}
	err = x.each(ctx, a.id, func(row pgx.CollectableRow) (tracking.RowValue, error) {
		var purged int64
		d, err := scanDriverAnd(row, &purged)
		if err != nil {
			return nil, err
		}
		owner := &driverState{number: d.number}
		owner.ID, owner.Person = d.ID, d.Person
		owners = append(owners, owner)
		return tracking.DriverRow{Driver: d.Driver, LastNotice: d.lastNotice, PurgedNotice: purged}, nil
	}, allDrivers, a.n, string(e.query.Driver))
	return owners, err
}

func (e *export) fixes(ctx context.Context, a exportedApp, owners []*driverState) error {
	for _, d := range owners {
		if err := e.each(ctx, a.id, func(row pgx.CollectableRow) (tracking.RowValue, error) {
			var r fixRow
			var mark int16
			err := row.Scan(append(r.dest(), &mark)...)
			return tracking.FixRow{DriverID: d.ID, KeptFix: tracking.KeptFix{
				Fix: r.fix(), Mark: tracking.FixMark(max(mark, -mark)), Purged: mark < 0,
			}}, err
		}, allFixes, a.n, d.number); err != nil {
			return err
		}
	}
	return nil
}

func (e *export) notices(ctx context.Context, a exportedApp, owners []*driverState) error {
	for _, d := range owners {
		if err := e.each(ctx, a.id, func(row pgx.CollectableRow) (tracking.RowValue, error) {
			n := tracking.Notice{DriverID: d.ID, Person: d.Person}
			var at instant
			err := row.Scan(&n.ID, &n.Kind, &n.EventID, &n.TaskID, &n.TrackingID, &at)
			n.Time = at.Time
			return n, err
		}, allNotices, a.n, d.number); err != nil {
			return err
		}
	}
	return nil
}

func scanEventRow(row pgx.CollectableRow) (tracking.RowValue, error) {
	var outboxes []string
	var states []int16
	var attempts []int32
	var retries []*int64
	r, err := scanEvent(row, &outboxes, &states, &attempts, &retries)
	v := tracking.EventRow{Event: r.Event}
	for i, outbox := range outboxes {
		d := tracking.DeliveryRow{Outbox: outbox, Dead: states[i] == stateDead, Attempts: int(attempts[i])}
		if at := retries[i]; at != nil && !d.Dead {
			d.RetryAt = fromMillis(*at)
		}
		v.Deliveries = append(v.Deliveries, d)
	}
	return v, err
}
