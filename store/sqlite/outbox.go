package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/seed-8aba7b13/tracking"
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

const (
	// Of a long queue most subjects are ready, and the walk by head ends early; if none is, the index by ready_at says so at once.
	selectAnyReady = `SELECT EXISTS (SELECT 1 FROM queues INDEXED BY queues_ready WHERE outbox = ? AND head IS NOT NULL AND ready_at <= ?)`
	selectReady    = `
SELECT subject FROM queues INDEXED BY queues_by_head
WHERE outbox = ? AND head IS NOT NULL AND ready_at <= ? AND app NOT IN (SELECT value FROM json_each(?)) ORDER BY head LIMIT ?`
	leaseQueue  = `UPDATE queues SET owner = ?, leased_until = ?, ready_at = ? WHERE subject = ? AND outbox = ? AND head IS NOT NULL AND ready_at <= ?`
	selectQueue = `
SELECT` + eventColumns + `, d.attempts FROM deliveries d JOIN events e ON e.n = d.event JOIN subjects s ON s.n = e.subject
WHERE d.subject = ? AND d.outbox = ? AND d.state = 1 ORDER BY d.event LIMIT ?`
)

// LeaseEvents implements [tracking.Store].
func (s *Store) LeaseEvents(ctx context.Context, l tracking.Lease) ([]tracking.Leased, error) {
	for {
		// Asking in vain, as happens all the time, must not write; and the walk over those that are not ready must not hold up the writer.
		ready, err := s.readyQueues(ctx, l)
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
				return tracking.Leased{Outbox: l.Outbox, App: s.apps.id(r.App), Event: e, Attempt: r.Attempts + 1}, err
			})
		}
	}
}

// readyQueues lists subjects whose queue may be handed out.
func (s *Store) readyQueues(ctx context.Context, l tracking.Lease) (ready []int64, err error) {
	now := l.Now.UnixMilli()
	except := make([]int64, 0, len(l.Except))
	for _, app := range l.Except {
		if n, ok := s.apps.number(app); ok {
			except = append(except, n)
		}
	}
	b, err := json.Marshal(except)
	if err != nil {
		return nil, err
	}
	err = s.read(ctx, func(ctx context.Context) error {
		var any bool
		if err := s.get(ctx, &any, selectAnyReady, l.Outbox, now); err != nil || !any || l.Limit <= 0 {
			return err
		}
		return s.list(ctx, &ready, selectReady, l.Outbox, now, string(b), l.Limit)
	})
	return ready, err
}

// lease takes the queues that are ready still.
func (s *Store) lease(ctx context.Context, l tracking.Lease, ready []int64) (rows []eventRow, err error) {
	now, until := l.Now.UnixMilli(), l.Until.UnixMilli()
	err = s.write(ctx, true, func(x *tx) error {
		rows = nil
		for _, n := range ready {
			left := l.Limit - len(rows)
			if left == 0 {
				break
			}
			taken, err := x.changed(leaseQueue, l.Owner, until, until, n, l.Outbox, now)
			if err != nil {
				return err
			}
			if taken == 0 {
				continue
			}
			var queue []eventRow
			if err := x.list(&queue, selectQueue, n, l.Outbox, left); err != nil {
				return err
			}
			rows = append(rows, queue...)
		}
		return nil
	})
	return rows, err
}

const (
	// An event that was delivered, or never went to that outbox, has no delivery; a queue that is empty and not leased is not there.
	selectDelivery = `
SELECT e.n, e.subject, e.app, coalesce(d.state, 0) AS state, q.owner, q.leased_until
FROM events e
LEFT JOIN deliveries d ON d.subject = e.subject AND d.outbox = ?1 AND d.state IN (1, 2) AND d.event = e.n
LEFT JOIN queues q ON q.subject = e.subject AND q.outbox = ?1
WHERE e.app = ?2 AND e.id = ?3`
	deleteDelivery = `DELETE FROM deliveries WHERE subject = ? AND outbox = ? AND state = ? AND event = ?`
	retryDelivery  = `UPDATE deliveries SET attempts = attempts + 1, retry_at = ? WHERE subject = ? AND outbox = ? AND state = 1 AND event = ?`
	buryDelivery   = `UPDATE deliveries SET attempts = attempts + 1, state = 2 WHERE subject = ? AND outbox = ? AND state = 1 AND event = ?`
	reviveDelivery = `UPDATE deliveries SET attempts = 0, state = 1, retry_at = NULL WHERE subject = ? AND outbox = ? AND state = 2 AND event = ?`
	settleEvent    = `UPDATE events SET undelivered = undelivered - 1 WHERE n = ?`
	unsettleEvent  = `UPDATE events SET undelivered = undelivered + 1 WHERE n = ?`

	selectHead  = `SELECT event, retry_at FROM deliveries WHERE subject = ? AND outbox = ? AND state = 1 ORDER BY event LIMIT 1`
	deleteQueue = `DELETE FROM queues WHERE subject = ? AND outbox = ?`
	putQueue    = `
INSERT INTO queues (subject, outbox, app, head, ready_at, owner, leased_until) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET head = excluded.head, ready_at = excluded.ready_at, owner = excluded.owner, leased_until = excluded.leased_until`
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

// readyAt is when the queue may be handed out: after the lease, and when the head may be tried again.
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
	return s.write(ctx, true, func(x *tx) error {
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
	})
}

// finish notes what became of one event, and in queues what is to become of its queue.
func (x *tx) finish(d tracking.Delivery, queues map[queueKey]*queueRow) error {
	app, ok := x.store.apps.number(d.App)
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
	case d.State == tracking.Delivered:
		change(deleteDelivery, k.subject, k.outbox, r.State, r.N)
		if r.State == stateWait {
			change(settleEvent, r.N)
		}
	case d.State == tracking.Released && r.State == stateDead:
		change(reviveDelivery, k.subject, k.outbox, r.N)
		change(unsettleEvent, r.N)
	case !mine || r.State != stateWait:
	case d.State == tracking.Retry:
		change(retryDelivery, millis(d.RetryAt), k.subject, k.outbox, r.N)
	case d.State == tracking.Dead:
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
