package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// States of a delivery. One that was made has no row.
const (
	stateWait = 1
	stateDead = 2
)

// The conditions of the indices of queues.
const (
	isReady = `head IS NOT NULL AND ready_at IS NULL`
	isLater = `head IS NOT NULL AND ready_at IS NOT NULL`
)

// isWrongRetry is true of a retry that is more than longest ahead. A queue that is leased is ready when
// the lease is over, which may be later: its retry is judged then.
func isWrongRetry(longest string) string {
	return isLater + ` AND ready_at > ` + nowOr("$2") + ` + ` + longest + `::bigint
	AND (leased_until IS NULL OR leased_until <= ` + nowOr("$2") + `)`
}

// Whether there is something whose time has come, or that is further ahead than it can be.
var selectAnyDue = `
SELECT EXISTS (SELECT 1 FROM tracking.queues WHERE outbox = $1 AND ` + isLater + ` AND ready_at <= ` + nowOr("$2") + `)
	OR EXISTS (SELECT 1 FROM tracking.queues WHERE outbox = $1 AND ` + isWrongRetry("$3") + `)
	OR EXISTS (SELECT 1 FROM tracking.queues WHERE outbox = $1 AND leased_until IS NOT NULL
		AND leased_until > ` + nowOr("$2") + ` + $4::bigint)`

var leaseQueue = `
UPDATE tracking.queues SET owner = $4, leased_until = ` + nowOr("$5") + ` + $6::bigint,
	ready_at = ` + nowOr("$5") + ` + $6::bigint
WHERE app = $1 AND subject = $2 AND outbox = $3`

const (
	// From each application that has something ready to the next.
	selectReadyApps = `
WITH RECURSIVE a (app) AS (
	SELECT (SELECT min(app) FROM tracking.queues WHERE outbox = $1 AND ` + isReady + `)
	UNION ALL
	SELECT (SELECT min(app) FROM tracking.queues WHERE outbox = $1 AND ` + isReady + ` AND app > a.app)
	FROM a WHERE a.app IS NOT NULL)
SELECT app, (SELECT min(head) FROM tracking.queues WHERE outbox = $1 AND app = a.app AND ` + isReady + `)
FROM a WHERE app IS NOT NULL`

	// In a statement of its own, after the lock: one with it may see what was before.
	selectQueue = `
SELECT` + eventColumns + `, d.attempts
FROM tracking.deliveries d JOIN tracking.events e ON e.app = d.app AND e.n = d.event
WHERE d.app = $1 AND d.subject = $2 AND d.outbox = $3 AND d.state = 1 ORDER BY d.event LIMIT $4`
)

// readyQueue is a queue that may be handed out.
type readyQueue struct {
	queueKey
	head int64
}

func byAge(a, b readyQueue) int { return cmp.Compare(a.head, b.head) }

const queueColumns = `app, subject, outbox`

// readyQueues are those of an outbox and an application. Those that somebody is at work on are passed
// over.
var readyQueues = lockable[readyQueue]{
	query: `SELECT ` + queueColumns + `, head FROM tracking.queues WHERE outbox = $1 AND app = $2 AND ` + isReady,
	order: ` ORDER BY head` + limited,
	lock:  ` FOR UPDATE`,
	key:   queueColumns,
	keyOf: func(q readyQueue) []any { return q.values() },
	scan: func(row pgx.CollectableRow) (q readyQueue, err error) {
		err = row.Scan(append(q.dest(), &q.head)...)
		return q, err
	},
}

// LeaseEvents implements [tracking.Store].
func (s *Store) LeaseEvents(ctx context.Context, l tracking.Lease) ([]tracking.Leased, error) {
	for {
		// Asking in vain, as happens all the time, must not write.
		due, apps, err := s.readyApps(ctx, l)
		if err == nil && due {
			var woken bool
			if woken, err = s.wakeQueues(ctx, l); err == nil && woken {
				continue // else others are at it
			}
		}
		if err != nil || len(apps) == 0 {
			return nil, err
		}
		found, err := s.lease(ctx, l, apps)
		if err != nil || len(found) == 0 { // others were faster, or are at work
			return nil, err
		}
		leased := make([]tracking.Leased, len(found))
		for i, r := range found {
			app, err := s.appOf(ctx, r.app)
			if err != nil {
				return nil, err
			}
			leased[i] = tracking.Leased{Outbox: l.Outbox, App: app, Event: r.Event, Attempt: r.attempts + 1}
		}
		return leased, nil
	}
}

// readyApp is an application that has something ready, and how many queues of it there is room for.
type readyApp struct {
	app  int32
	head int64
	room int
}

// readyApps lists applications that have something ready and room for it, by age. Due tells that
// queues are to be woken first.
func (s *Store) readyApps(ctx context.Context, l tracking.Lease) (due bool, ready []readyApp, err error) {
	if l.Limit <= 0 || !rows.Text(l.Outbox) {
		return false, nil, ctx.Err()
	}
	maxLease, maxRetry := leaseBounds(l)
	var all []readyApp
	err = s.call(ctx, func(ctx context.Context) error {
		err := s.pool.QueryRow(ctx, s.sql(selectAnyDue), l.Outbox, s.now(l.Now), maxRetry, maxLease).Scan(&due)
		if err != nil {
			return err
		}
		found, err := s.pool.Query(ctx, s.sql(selectReadyApps), l.Outbox)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(found, func(row pgx.CollectableRow) (a readyApp, err error) {
			err = row.Scan(&a.app, &a.head)
			return a, err
		})
		return err
	})
	if err != nil {
		return false, nil, err
	}
	slices.SortFunc(all, func(a, b readyApp) int { return cmp.Compare(a.head, b.head) })
	for _, a := range all {
		a.room = l.Limit
		if l.Each > 0 {
			app, err := s.appOf(ctx, a.app)
			if err != nil {
				return false, nil, err
			}
			a.room = min(a.room, l.Each-l.Busy[app])
		}
		if a.room > 0 && len(ready) < l.Limit { // of more applications than events the first will do
			ready = append(ready, a)
		}
	}
	return due, ready, nil
}

// lease takes queues of the applications, the oldest of all first.
func (s *Store) lease(ctx context.Context, l tracking.Lease, apps []readyApp) (leased []eventRow, err error) {
	err = s.write(ctx, func(ctx context.Context, x *tx) error {
		leased = nil
		found := make([][]readyQueue, len(apps))
		for i, a := range apps {
			if err := readyQueues.free(ctx, x, &found[i], l.Outbox, a.app, a.room); err != nil {
				return err
			}
		}
		if err := x.flush(ctx); err != nil {
			return err
		}
		ready := slices.Concat(found...)
		slices.SortFunc(ready, byAge)
		ready = ready[:min(len(ready), l.Limit)]

		queues := make([][]eventRow, len(ready))
		for i, q := range ready {
			queueRows(x, &queues[i], func(row pgx.CollectableRow) (r eventRow, err error) {
				var attempts int
				r, err = scanEvent(row, &attempts)
				r.attempts = attempts
				return r, err
			}, selectQueue, q.app, q.subject, l.Outbox, l.Limit)
		}
		if err := x.flush(ctx); err != nil {
			return err
		}
		for i, q := range ready {
			left := l.Limit - len(leased)
			if left == 0 {
				break
			}
			leased = append(leased, queues[i][:min(left, len(queues[i]))]...)
			x.queue(leaseQueue, q.app, q.subject, l.Outbox, l.Owner, s.now(l.Now), l.For.Milliseconds())
		}
		return nil
	})
	return leased, err
}

// queuesWhere are those of an outbox for which a condition is true of $2, now, and $3, a time.
func queuesWhere(condition, order string) lockable[queueKey] {
	return lockable[queueKey]{
		query: `SELECT ` + queueColumns + ` FROM tracking.queues WHERE outbox = $1 AND ` + condition,
		order: ` ORDER BY ` + order + limited,
		lock:  ` FOR UPDATE`,
		key:   queueColumns,
		keyOf: queueKey.values,
		scan: func(row pgx.CollectableRow) (k queueKey, err error) {
			err = row.Scan(k.dest()...)
			return k, err
		},
	}
}

// What a wrong clock has set is more than $3 ahead.
var (
	wrongLeases  = queuesWhere(`leased_until IS NOT NULL AND leased_until > `+nowOr("$2")+` + $3::bigint`, `leased_until`)
	wrongRetries = queuesWhere(isWrongRetry("$3"), `ready_at`)
	dueQueues    = queuesWhere(isLater+` AND ready_at <= `+nowOr("$2")+` + $3::bigint`, `ready_at`)
)

const (
	forgetRetries = `
UPDATE tracking.deliveries d SET retry_at = NULL
FROM ` + someQueues + `u (app, subject, outbox) JOIN tracking.queues q USING (app, subject, outbox)
WHERE d.app = q.app AND d.subject = q.subject AND d.outbox = q.outbox AND d.event = q.head`
	wakeSome = `UPDATE tracking.queues q SET ready_at = NULL FROM ` + someQueues + `u (app, subject, outbox)
		WHERE q.app = u.app AND q.subject = u.subject AND q.outbox = u.outbox`
)

const wakeAtOnce = 1000 // queues in one step

// wakeQueues makes ready what has come due, and what a wrong clock has put further ahead than it can
// be. It reports whether there was any.
func (s *Store) wakeQueues(ctx context.Context, l tracking.Lease) (woken bool, err error) {
	maxLease, maxRetry := leaseBounds(l)
	now := s.now(l.Now)
	var wrong, retries, due []queueKey
	err = s.write(ctx, func(ctx context.Context, x *tx) error {
		for _, f := range []struct {
			which lockable[queueKey]
			found *[]queueKey
			ahead int64
		}{{wrongLeases, &wrong, maxLease}, {wrongRetries, &retries, maxRetry}, {dueQueues, &due, 0}} {
			if err := f.which.free(ctx, x, f.found, l.Outbox, now, f.ahead, wakeAtOnce); err != nil {
				return err
			}
		}
		if err := x.flush(ctx); err != nil {
			return err
		}
		if len(wrong) > 0 { // what is wrong with the retries, if anything, is seen after that
			retries, due = nil, nil
			x.queue(endLeases, columnsOf(wrong)...)
			x.requeue(wrong)
		}
		if len(retries) > 0 {
			x.queue(forgetRetries, columnsOf(retries)...)
		}
		if ready := append(retries, due...); len(ready) > 0 {
			x.queue(wakeSome, columnsOf(ready)...)
		}
		return nil
	})
	return len(wrong)+len(retries)+len(due) > 0, err
}

const (
	// Whoever says what became of events holds their subjects, as a Commit does that adds some: so
	// that what is made of a queue has all that is in it.
	lockSubjects = `
SELECT s.n FROM tracking.subjects s WHERE s.app = $1 AND s.n IN (
	SELECT subject FROM tracking.events WHERE app = $1 AND id = ANY ($2)) ORDER BY s.kind, s.id FOR UPDATE`

	// Whose lease it is is proved by the lock: nobody is given it until all that is said of it is written.
	lockQueues = `
SELECT q.subject FROM tracking.queues q WHERE (q.app, q.subject, q.outbox) IN (
	SELECT e.app, e.subject, u.outbox FROM unnest($1::int[], $2::text[], $3::text[]) u (app, outbox, id)
	JOIN tracking.events e ON e.app = u.app AND e.id = u.id)
ORDER BY q.app, q.subject, q.outbox FOR UPDATE`

	// An event that was delivered, or never went to that outbox, has no delivery; a queue that is
	// empty and not leased is not there.
	selectDeliveries = `
SELECT u.i, e.n, e.subject, coalesce(d.state, 0), q.owner
FROM unnest($1::int[], $2::text[], $3::text[]) WITH ORDINALITY u (app, outbox, id, i)
JOIN tracking.events e ON e.app = u.app AND e.id = u.id
LEFT JOIN tracking.deliveries d ON d.app = e.app AND d.subject = e.subject AND d.outbox = u.outbox AND d.event = e.n
LEFT JOIN tracking.queues q ON q.app = e.app AND q.subject = e.subject AND q.outbox = u.outbox
ORDER BY u.i`

	deleteDeliveries = `
DELETE FROM tracking.deliveries d
USING unnest($1::int[], $2::bigint[], $3::text[], $4::bigint[]) u (app, subject, outbox, event)
WHERE d.app = u.app AND d.subject = u.subject AND d.outbox = u.outbox AND d.event = u.event`
	buryDelivery = `UPDATE tracking.deliveries SET attempts = attempts + 1, state = 2
		WHERE app = $1 AND subject = $2 AND outbox = $3 AND event = $4`
	reviveDelivery = `UPDATE tracking.deliveries SET attempts = 0, state = 1, retry_at = NULL
		WHERE app = $1 AND subject = $2 AND outbox = $3 AND event = $4`

	someQueues = `unnest($1::int[], $2::bigint[], $3::text[]) `
	endLeases  = `UPDATE tracking.queues q SET owner = NULL, leased_until = NULL
		FROM ` + someQueues + `u (app, subject, outbox)
		WHERE q.app = u.app AND q.subject = u.subject AND q.outbox = u.outbox`

	// The heads of queues anew. Where the lease was ended one is ready when the head is.
	requeue = `
INSERT INTO tracking.queues AS q (app, subject, outbox, head, ready_at)
SELECT u.app, u.subject, u.outbox, h.event, h.retry_at
FROM ` + someQueues + `WITH ORDINALITY u (app, subject, outbox, i) LEFT JOIN LATERAL (
	SELECT event, retry_at FROM tracking.deliveries d
	WHERE d.app = u.app AND d.subject = u.subject AND d.outbox = u.outbox AND d.state = 1
	ORDER BY event LIMIT 1) h ON true
ORDER BY u.i
ON CONFLICT (app, subject, outbox) DO UPDATE SET head = excluded.head,
	ready_at = CASE WHEN q.leased_until IS NULL THEN excluded.ready_at ELSE greatest(q.leased_until, excluded.ready_at) END`
	deleteQueues = `DELETE FROM tracking.queues q USING ` + someQueues + `u (app, subject, outbox)
		WHERE q.app = u.app AND q.subject = u.subject AND q.outbox = u.outbox AND q.head IS NULL AND q.owner IS NULL`
)

var retryDelivery = `
UPDATE tracking.deliveries SET attempts = attempts + 1, retry_at = ` + nowOr("$5") + ` + $6::bigint
WHERE app = $1 AND subject = $2 AND outbox = $3 AND event = $4`

// queueKey names a queue.
type queueKey struct {
	app     int32
	subject int64
	outbox  string
}

func (k queueKey) values() []any { return []any{k.app, k.subject, k.outbox} }
func (k *queueKey) dest() []any  { return []any{&k.app, &k.subject, &k.outbox} }

func byQueue(a, b queueKey) int {
	return cmp.Or(cmp.Compare(a.app, b.app), cmp.Compare(a.subject, b.subject), cmp.Compare(a.outbox, b.outbox))
}

// columnsOf are queues as the arrays of someQueues.
func columnsOf(queues []queueKey) []any {
	apps, subjects, outboxes := make([]int32, len(queues)), make([]int64, len(queues)), make([]string, len(queues))
	for i, k := range queues {
		apps[i], subjects[i], outboxes[i] = k.app, k.subject, k.outbox
	}
	return []any{apps, subjects, outboxes}
}

// requeue queues that the heads of queues are found again. An empty queue goes.
func (x *tx) requeue(queues []queueKey) {
	if len(queues) == 0 {
		return
	}
	slices.SortFunc(queues, byQueue)
	columns := columnsOf(slices.Compact(queues))
	x.queue(requeue, columns...)
	x.queue(deleteQueues, columns...)
}

// deliveryState is what is known of a delivery.
type deliveryState struct {
	of             int // which one was asked for, from 1 on
	event, subject int64
	state          int // 0: delivered
	owner          *string
}

// FinishEvents implements [tracking.Store].
func (s *Store) FinishEvents(ctx context.Context, done []tracking.Delivery) error {
	if len(done) == 0 {
		return ctx.Err()
	}
	numbers := map[tracking.AppID]int32{}
	events := map[int32][]string{}
	var asked []int32
	var outboxes, ids []string
	done = slices.Clone(done)
	done = slices.DeleteFunc(done, func(d tracking.Delivery) bool { return !rows.Text(d.Outbox) || !rows.Text(d.EventID) })
	for _, d := range done {
		n, err := s.numberOf(ctx, d.App)
		if err != nil {
			return err
		}
		numbers[d.App] = n
		events[n] = append(events[n], d.EventID)
		asked, outboxes, ids = append(asked, n), append(outboxes, d.Outbox), append(ids, d.EventID)
	}
	return s.write(ctx, func(ctx context.Context, x *tx) error {
		apps := make([]int32, 0, len(events))
		for n := range events {
			apps = append(apps, n)
		}
		slices.Sort(apps)
		x.queue(dropPlans) // one made while there were few events would read them all for ever
		for _, n := range apps {
			x.queue(lockSubjects, n, events[n])
		}
		x.queue(lockQueues, asked, outboxes, ids)
		var states []deliveryState
		queueRows(x, &states, func(row pgx.CollectableRow) (r deliveryState, err error) {
			err = row.Scan(&r.of, &r.event, &r.subject, &r.state, &r.owner)
			return r, err
		}, selectDeliveries, asked, outboxes, ids)
		if err := x.flush(ctx); err != nil {
			return err
		}
		f := finishing{tx: x, seen: map[deliveryKey]int{}}
		for _, r := range states {
			d := done[r.of-1]
			f.finish(d, queueKey{numbers[d.App], r.subject, d.Outbox}, r)
		}
		f.end()
		return nil
	})
}

// deliveryKey names a delivery.
type deliveryKey struct {
	queueKey
	event int64
}

// finishing is what became of events on its way.
type finishing struct {
	*tx
	seen   map[deliveryKey]int // the states of those that were finished before in the same call
	queues []queueKey
	over   []queueKey // whose leases end
	made   []deliveryKey
}

// finish notes what became of one event.
func (f *finishing) finish(d tracking.Delivery, k queueKey, r deliveryState) {
	key := deliveryKey{k, r.event}
	if state, ok := f.seen[key]; ok {
		r.state = state
	}
	f.queues = append(f.queues, k)
	leased := r.owner != nil
	mine := !leased || *r.owner == d.Owner
	if leased && mine {
		f.over = append(f.over, k)
	}
	switch {
	case r.state == 0:
	case d.State == tracking.DeliveryDone:
		f.made = append(f.made, key)
		r.state = 0
	case d.State == tracking.DeliveryReleased && r.state == stateDead:
		f.queue(reviveDelivery, k.app, k.subject, k.outbox, r.event)
		r.state = stateWait
	case !mine || r.state != stateWait:
	case d.State == tracking.DeliveryRetry:
		f.queue(retryDelivery, k.app, k.subject, k.outbox, r.event, f.store.now(d.Now), d.RetryIn.Milliseconds())
	case d.State == tracking.DeliveryDead:
		f.queue(buryDelivery, k.app, k.subject, k.outbox, r.event)
		r.state = stateDead
	}
	f.seen[key] = r.state
}

// end queues the rest.
func (f *finishing) end() {
	if len(f.over) > 0 {
		f.queue(endLeases, columnsOf(f.over)...)
	}
	if len(f.made) > 0 {
		queues, events := make([]queueKey, len(f.made)), make([]int64, len(f.made))
		for i, m := range f.made {
			queues[i], events[i] = m.queueKey, m.event
		}
		f.queue(deleteDeliveries, append(columnsOf(queues), events)...)
	}
	f.requeue(f.queues)
}
