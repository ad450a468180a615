package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// States of a delivery. One that was made has no row.
const (
	stateWait = 1
	stateDead = 2
)

const (
	insertDelivery = `INSERT INTO deliveries (subject, outbox, state, event, app, attempts) VALUES (?, ?, 1, ?, ?, 0)`

	// A queue that is there without a head is leased.
	enqueue = `
INSERT INTO queues (subject, outbox, app, head, ready_at) VALUES (?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET head = excluded.head WHERE head IS NULL`
)

// The conditions of the indices of queues. The number is atOnce.
const (
	isReady = `head IS NOT NULL AND ready_at = 0x8000000000000000`
	isLater = `head IS NOT NULL AND ready_at > 0x8000000000000000`

	// Of a queue that is leased ready_at is when the lease is over, which may be later than a retry can
	// be: its retry is judged then. The parameters are now and the latest that a retry can be. That comes
	// first, as of two bounds on one side SQLite goes by the first: with isLater before it each look
	// passed all queues that are to be tried again.
	isWrongRetry = `ready_at > ?3 AND ` + isLater + ` AND (leased_until IS NULL OR leased_until <= ?2)`
)

const (
	// Whether there is something whose time has come, or that is further ahead than it can be.
	selectAnyDue = `
SELECT EXISTS (SELECT 1 FROM queues INDEXED BY queues_later WHERE outbox = ?1 AND ` + isLater + ` AND ready_at <= ?2)
	OR EXISTS (SELECT 1 FROM queues INDEXED BY queues_later WHERE outbox = ?1 AND ` + isWrongRetry + `)
	OR EXISTS (SELECT 1 FROM queues INDEXED BY queues_leased
		WHERE outbox = ?1 AND leased_until IS NOT NULL AND leased_until > ?4)`

	// From each application that has something ready to the next.
	selectReadyApps = `
WITH RECURSIVE a (app) AS (
	SELECT (SELECT app FROM queues INDEXED BY queues_ready WHERE outbox = ?1 AND ` + isReady + ` ORDER BY app LIMIT 1)
	UNION ALL
	SELECT (SELECT app FROM queues INDEXED BY queues_ready WHERE outbox = ?1 AND ` + isReady + ` AND app > a.app
		ORDER BY app LIMIT 1)
	FROM a WHERE app IS NOT NULL)
SELECT app, (SELECT head FROM queues INDEXED BY queues_ready WHERE outbox = ?1 AND app = a.app AND ` + isReady + `
	ORDER BY head LIMIT 1) AS head
FROM a WHERE app IS NOT NULL`

	selectReady = `
SELECT subject, head FROM queues INDEXED BY queues_ready WHERE outbox = ? AND app = ? AND ` + isReady + `
	ORDER BY head LIMIT ?`

	leaseQueue = `UPDATE queues SET owner = ?, leased_until = ?, ready_at = ?
		WHERE subject = ? AND outbox = ? AND ` + isReady
	selectQueue = `
SELECT` + eventColumns + `, d.attempts FROM deliveries d JOIN events e ON e.n = d.event
	JOIN subjects s ON s.n = e.subject
WHERE d.subject = ? AND d.outbox = ? AND d.state = 1 ORDER BY d.event LIMIT ?`
)

// LeaseEvents implements [tracking.Store].
func (s *Store) LeaseEvents(ctx context.Context, l tracking.Lease) ([]tracking.Leased, error) {
	for {
		// Asking in vain, as happens all the time, must not write.
		due, ready, err := s.readyQueues(ctx, l)
		if err == nil && due {
			if err = s.wakeQueues(ctx, l); err == nil {
				continue
			}
		}
		if err != nil || len(ready) == 0 {
			return nil, err
		}
		rows, err := s.lease(ctx, l, ready)
		if err != nil {
			return nil, err
		}
		if len(rows) > 0 { // else another owner was faster with all of them
			return convert(rows, func(r *eventRow) (tracking.Leased, error) {
				e, err := r.event()
				return tracking.Leased{Outbox: l.Outbox, App: s.appOf(r.App), Event: e, Attempt: r.Attempts + 1}, err
			})
		}
	}
}

// readyRow is a queue that may be handed out.
type readyRow struct {
	App, Subject, Head int64
}

// readyQueues lists queues that may be handed out, by age. Due tells that others are to be woken
// first.
func (s *Store) readyQueues(ctx context.Context, l tracking.Lease) (due bool, ready []readyRow, err error) {
	if l.Limit <= 0 {
		return false, nil, ctx.Err()
	}
	maxLease, maxRetry := rows.Bounds(l)
	err = s.read(ctx, func(ctx context.Context) error {
		if err := s.get(ctx, &due, selectAnyDue, l.Outbox, l.Now.UnixMilli(), maxRetry, maxLease); err != nil || due {
			return err
		}
		var apps []readyRow
		if err := s.list(ctx, &apps, selectReadyApps, l.Outbox); err != nil {
			return err
		}
		byAge := func(a, b readyRow) int { return cmp.Compare(a.Head, b.Head) }
		slices.SortFunc(apps, byAge)
		asked := 0 // of more applications than events are wanted the first ones will do
		for _, a := range apps {
			room := l.Limit
			if l.Each > 0 {
				room = min(room, l.Each-l.Busy[s.appOf(a.App)])
			}
			if room <= 0 || asked == l.Limit {
				continue
			}
			asked++
			var some []readyRow
			if err := s.list(ctx, &some, selectReady, l.Outbox, a.App, room); err != nil {
				return err
			}
			ready = append(ready, some...)
		}
		slices.SortFunc(ready, byAge)
		ready = ready[:min(len(ready), l.Limit)]
		return nil
	})
	return due, ready, err
}

const (
	selectDueQueues = `SELECT subject FROM queues INDEXED BY queues_later
		WHERE outbox = ? AND ` + isLater + ` AND ready_at <= ? ORDER BY ready_at LIMIT ?`
	wakeQueue         = `UPDATE queues SET ready_at = 0x8000000000000000 WHERE subject = ? AND outbox = ?`
	selectWrongLeases = `
SELECT subject, app FROM queues INDEXED BY queues_leased
	WHERE outbox = ? AND leased_until IS NOT NULL AND leased_until > ? ORDER BY leased_until LIMIT ?`
	selectWrongRetries = `
SELECT subject, head FROM queues INDEXED BY queues_later WHERE outbox = ?1 AND ` + isWrongRetry + `
	ORDER BY ready_at LIMIT ?4`
	forgetRetry = `UPDATE deliveries SET retry_at = NULL WHERE subject = ? AND outbox = ? AND state = 1 AND event = ?`

	wakeAtOnce = 1000 // queues in one step
)

// wakeQueues makes ready what has come due, and what a wrong clock has put further ahead than it
// can be.
func (s *Store) wakeQueues(ctx context.Context, l tracking.Lease) error {
	maxLease, maxRetry := rows.Bounds(l)
	return s.write(ctx, change{lane: small, rows: laneRows, atom: true, apply: func(x *tx) error {
		var list []readyRow
		if err := x.list(&list, selectWrongLeases, l.Outbox, maxLease, wakeAtOnce); err != nil {
			return err
		}
		for _, r := range list {
			if err := x.requeue(queueKey{r.Subject, l.Outbox}, &queueRow{App: r.App}); err != nil {
				return err
			}
		}
		list = nil
		if err := x.list(&list, selectWrongRetries, l.Outbox, l.Now.UnixMilli(), maxRetry, wakeAtOnce); err != nil {
			return err
		}
		for _, r := range list {
			if err := x.exec(forgetRetry, r.Subject, l.Outbox, r.Head); err != nil {
				return err
			}
			if err := x.exec(wakeQueue, r.Subject, l.Outbox); err != nil {
				return err
			}
		}
		var due []int64
		if err := x.list(&due, selectDueQueues, l.Outbox, l.Now.UnixMilli(), wakeAtOnce); err != nil {
			return err
		}
		for _, subject := range due {
			if err := x.exec(wakeQueue, subject, l.Outbox); err != nil {
				return err
			}
		}
		return nil
	}})
}

// lease takes the queues that are ready still.
func (s *Store) lease(ctx context.Context, l tracking.Lease, ready []readyRow) (rows []eventRow, err error) {
	until := l.Now.Add(l.For).UnixMilli()
	err = s.write(ctx, change{lane: small, rows: len(ready), atom: true, apply: func(x *tx) error {
		rows = nil
		for _, r := range ready {
			left := l.Limit - len(rows)
			if left == 0 {
				break
			}
			taken, err := x.changed(leaseQueue, l.Owner, until, until, r.Subject, l.Outbox)
			if err != nil {
				return err
			}
			if taken == 0 {
				continue
			}
			var queue []eventRow
			if err := x.list(&queue, selectQueue, r.Subject, l.Outbox, left); err != nil {
				return err
			}
			rows = append(rows, queue...)
		}
		return nil
	}})
	return rows, err
}

const (
	// An event that was delivered, or never went to that outbox, has no delivery; a queue that is
	// empty and not leased is not there.
	selectDelivery = `
SELECT e.n, e.subject, e.app, coalesce(d.state, 0) AS state, q.owner, q.leased_until
FROM events e
LEFT JOIN deliveries d ON d.subject = e.subject AND d.outbox = ?1 AND d.state IN (1, 2) AND d.event = e.n
LEFT JOIN queues q ON q.subject = e.subject AND q.outbox = ?1
WHERE e.app = ?2 AND e.id = ?3`
	deleteDelivery = `DELETE FROM deliveries WHERE subject = ? AND outbox = ? AND state = ? AND event = ?`
	retryDelivery  = `UPDATE deliveries SET attempts = attempts + 1, retry_at = ?
		WHERE subject = ? AND outbox = ? AND state = 1 AND event = ?`
	buryDelivery = `UPDATE deliveries SET attempts = attempts + 1, state = 2
		WHERE subject = ? AND outbox = ? AND state = 1 AND event = ?`
	reviveDelivery = `UPDATE deliveries SET attempts = 0, state = 1, retry_at = NULL
		WHERE subject = ? AND outbox = ? AND state = 2 AND event = ?`
	settleEvent   = `UPDATE events SET undelivered = undelivered - 1 WHERE n = ?`
	unsettleEvent = `UPDATE events SET undelivered = undelivered + 1 WHERE n = ?`

	selectHead = `SELECT event, retry_at FROM deliveries WHERE subject = ? AND outbox = ? AND state = 1
		ORDER BY event LIMIT 1`
	deleteQueue = `DELETE FROM queues WHERE subject = ? AND outbox = ?`
	putQueue    = `
INSERT INTO queues (subject, outbox, app, head, ready_at, owner, leased_until) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET head = excluded.head, ready_at = excluded.ready_at, owner = excluded.owner,
	leased_until = excluded.leased_until`
)

// queueKey names a queue.
type queueKey struct {
	subject int64
	outbox  string
}

// queueRow is a queue's application and lease.
type queueRow struct {
	App         int64
	Owner       sql.NullString
	LeasedUntil sql.NullInt64 `db:"leased_until"`
}

// readyAt is when the queue may be handed out: after the lease, and when the head may be tried
// again.
func (r *queueRow) readyAt(retryAt sql.NullInt64) int64 {
	at := int64(atOnce)
	if r.LeasedUntil.Valid {
		at = r.LeasedUntil.Int64
	}
	if retryAt.Valid {
		at = max(at, retryAt.Int64)
	}
	return at
}

type deliveryRow struct {
	N       int64
	Subject int64
	State   int // 0: delivered
	queueRow
}

// FinishEvents implements [tracking.Store].
func (s *Store) FinishEvents(ctx context.Context, done []tracking.Delivery) error {
	if len(done) == 0 {
		return ctx.Err()
	}
	done = append([]tracking.Delivery(nil), done...)
	return s.write(ctx, change{lane: small, rows: len(done), atom: true, apply: func(x *tx) error {
		queues := map[queueKey]*queueRow{}
		for _, d := range done {
			if err := x.finish(d, queues); err != nil {
				return err
			}
		}
		for k, q := range queues {
			if err := x.requeue(k, q); err != nil {
				return err
			}
		}
		return nil
	}})
}

// finish notes what became of one event, and in queues what is to become of its queue.
func (x *tx) finish(d tracking.Delivery, queues map[queueKey]*queueRow) error {
	app, ok := x.store.apps.Number(d.App)
	if !ok {
		return nil
	}
	var r deliveryRow
	found, err := x.find(&r, selectDelivery, d.Outbox, app, d.EventID)
	if err != nil || !found {
		return err
	}
	k := queueKey{r.Subject, d.Outbox}
	q := queues[k]
	if q == nil {
		q = new(r.queueRow)
		queues[k] = q
	}
	leased := r.Owner.Valid
	mine := !leased || r.Owner.String == d.Owner
	if leased && mine {
		q.Owner, q.LeasedUntil = sql.NullString{}, sql.NullInt64{}
	}
	change := func(query string, args ...any) {
		if err == nil {
			err = x.exec(query, args...)
		}
	}
	switch {
	case r.State == 0:
	case d.State == tracking.DeliveryDone:
		change(deleteDelivery, k.subject, k.outbox, r.State, r.N)
		if r.State == stateWait {
			change(settleEvent, r.N)
		}
	case d.State == tracking.DeliveryReleased && r.State == stateDead:
		change(reviveDelivery, k.subject, k.outbox, r.N)
		change(unsettleEvent, r.N)
	case !mine || r.State != stateWait:
	case d.State == tracking.DeliveryRetry:
		change(retryDelivery, millis(d.Now.Add(d.RetryIn)), k.subject, k.outbox, r.N)
	case d.State == tracking.DeliveryDead:
		change(buryDelivery, k.subject, k.outbox, r.N)
		change(settleEvent, r.N)
	}
	return err
}

// requeue finds the head of a queue again.
func (x *tx) requeue(k queueKey, q *queueRow) error {
	var head struct {
		Event   sql.NullInt64
		RetryAt sql.NullInt64 `db:"retry_at"`
	}
	if _, err := x.find(&head, selectHead, k.subject, k.outbox); err != nil {
		return err
	}
	if !head.Event.Valid && !q.Owner.Valid {
		return x.exec(deleteQueue, k.subject, k.outbox)
	}
	return x.exec(putQueue, k.subject, k.outbox, q.App, head.Event, q.readyAt(head.RetryAt), q.Owner, q.LeasedUntil)
}
