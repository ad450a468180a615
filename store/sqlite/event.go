package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"github.com/seed-8aba7b13/tracking"
)

// States of an event in the outbox.
const (
	stateDone = 0
	stateWait = 1
	stateDead = 2
)

// noticeJSON is a notice in its event's row. What the event says already is not repeated.
type noticeJSON struct {
	ID         int64               `json:"id"`
	Driver     tracking.DriverID   `json:"driver"`
	Kind       tracking.NoticeKind `json:"kind"`
	Task       tracking.TaskID     `json:"task,omitempty"`
	TrackingID tracking.TrackingID `json:"tracking_id,omitempty"`
}

const eventColumns = `
	e.n, e.app, e.id, e.type, e.time, e.recorded_at, e.actor, s.kind, s.id AS subject_id, e.seq, e.data, e.notices, e.attempts`

type eventRow struct {
	N, App     int64
	ID         string
	Type       tracking.EventType
	Time       instant
	RecordedAt instant `db:"recorded_at"`
	Actor      string
	Kind       tracking.SubjectKind
	SubjectID  string `db:"subject_id"`
	Seq        int64
	Data       text
	Notices    text
	Attempts   int
}

func (r *eventRow) event() (tracking.Event, error) {
	e := tracking.Event{
		ID: r.ID, Type: r.Type, Time: r.Time.Time, RecordedAt: r.RecordedAt.Time, Actor: r.Actor,
		Subject: tracking.Subject{Kind: r.Kind, ID: r.SubjectID}, Seq: r.Seq,
	}
	var err error
	if e.Data, err = fromJSON[map[string]string](r.Data); err != nil {
		return e, err
	}
	told, err := fromJSON[[]noticeJSON](r.Notices)
	for _, n := range told {
		e.Notices = append(e.Notices, tracking.Notice{
			ID: n.ID, DriverID: n.Driver, Kind: n.Kind, EventID: r.ID, TaskID: n.Task, TrackingID: n.TrackingID, Time: r.RecordedAt.Time,
		})
	}
	return e, err
}

// subjectRow is a subject's counter and queue.
type subjectRow struct {
	N           int64
	LastSeq     int64         `db:"last_seq"`
	Head        sql.NullInt64 // the first undelivered event
	ReadyAt     int64         `db:"ready_at"`
	Owner       sql.NullString
	LeasedUntil sql.NullInt64 `db:"leased_until"`
}

const (
	selectSubject = `SELECT n, last_seq, head, ready_at, owner, leased_until FROM subjects WHERE app = ? AND kind = ? AND id = ?`
	insertSubject = `INSERT INTO subjects (app, kind, id, last_seq, ready_at) VALUES (?, ?, ?, 0, ?)`
	updateSeq     = `UPDATE subjects SET last_seq = ? WHERE n = ?`
	updateHead    = `UPDATE subjects SET head = ?, ready_at = ?, last_seq = ? WHERE n = ?`

	insertEvent = `
INSERT INTO events (app, id, type, time, recorded_at, actor, subject, seq, data, notices, state, attempts)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)`

	insertNotice     = `INSERT INTO notices (driver, id, kind, event_id, task_id, tracking_id, time) VALUES (?, ?, ?, ?, ?, ?, ?)`
	updateLastNotice = `UPDATE drivers SET last_notice = ? WHERE seq = ?`
)

// appendEvents writes events and notices. Events of one subject find its row once.
func (x *tx) appendEvents(app int64, events []tracking.Event, deliver bool) error {
	subjects := map[tracking.Subject]*subjectRow{}
	heads := map[tracking.Subject]sql.NullInt64{}
	for i := range events {
		e := &events[i]
		sub := subjects[e.Subject]
		if sub == nil {
			sub = new(subjectRow)
			found, err := x.find(sub, selectSubject, app, e.Subject.Kind, e.Subject.ID)
			if err != nil {
				return err
			}
			if !found {
				if sub.N, err = x.insert(insertSubject, app, e.Subject.Kind, e.Subject.ID, int64(atOnce)); err != nil {
					return err
				}
			}
			subjects[e.Subject], heads[e.Subject] = sub, sub.Head
		}
		sub.LastSeq++
		n, err := x.appendEvent(app, e, sub, deliver)
		if err != nil {
			return err
		}
		if deliver && !sub.Head.Valid {
			sub.Head = sql.NullInt64{Int64: n, Valid: true}
		}
	}
	for subject, sub := range subjects {
		var err error
		if sub.Head == heads[subject] {
			err = x.exec(updateSeq, sub.LastSeq, sub.N)
		} else {
			err = x.exec(updateHead, sub.Head.Int64, sub.readyAt(sql.NullInt64{}), sub.LastSeq, sub.N)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readyAt is when the queue may be handed out: after the lease, and when the head may be tried again.
func (r *subjectRow) readyAt(retryAt sql.NullInt64) int64 {
	at := int64(atOnce)
	if r.LeasedUntil.Valid {
		at = r.LeasedUntil.Int64
	}
	if retryAt.Valid {
		at = max(at, retryAt.Int64)
	}
	return at
}

func (x *tx) appendEvent(app int64, e *tracking.Event, sub *subjectRow, deliver bool) (n int64, err error) {
	data, err := mapValue(e.Data)
	if err != nil {
		return 0, err
	}
	told, err := x.appendNotices(app, e)
	if err != nil {
		return 0, err
	}
	notices, err := jsonValue(told, len(told), func(yield func(string) bool) {
		for _, t := range told {
			if !yield(string(t.Driver)) || !yield(string(t.Kind)) || !yield(string(t.Task)) || !yield(string(t.TrackingID)) {
				return
			}
		}
	})
	if err != nil {
		return 0, err
	}
	state := stateDone
	if deliver {
		state = stateWait
	}
	n, err = x.insert(insertEvent, app, e.ID, e.Type, millis(e.Time), e.RecordedAt.UnixMilli(), e.Actor, sub.N, sub.LastSeq, data, notices, state)
	if isConstraint(err) {
		return 0, &tracking.Error{Code: tracking.ErrInternal, Message: "An event of this id exists.", Err: err}
	}
	return n, err
}

// appendNotices writes the notices of drivers who have a row, and lists them.
func (x *tx) appendNotices(app int64, e *tracking.Event) (told []noticeJSON, err error) {
	for _, n := range e.Notices {
		k := driverKey{app, n.DriverID}
		d, err := x.driver(k)
		if err != nil {
			return nil, err
		}
		if d == nil {
			continue
		}
		next := *d
		next.lastNotice++
		x.setDriver(k, &next)
		if err := x.exec(updateLastNotice, next.lastNotice, next.Seq); err != nil {
			return nil, err
		}
		if err := x.exec(insertNotice, next.Seq, next.lastNotice, n.Kind, e.ID, n.TaskID, n.TrackingID, e.RecordedAt.UnixMilli()); err != nil {
			return nil, err
		}
		told = append(told, noticeJSON{next.lastNotice, n.DriverID, n.Kind, n.TaskID, n.TrackingID})
	}
	return told, nil
}

// Lists of events. The rowid, n, ends each index and is the order of commit.
const (
	selectEvents    = `SELECT` + eventColumns + ` FROM events e INDEXED BY `
	eventsByApp     = `events_by_app JOIN subjects s ON s.n = e.subject WHERE e.app = ?`
	eventsDead      = `events_dead JOIN subjects s ON s.n = e.subject WHERE e.app = ? AND e.state = 2`
	eventsBySubject = `events_by_subject JOIN subjects s ON s.n = e.subject WHERE e.subject = (SELECT n FROM subjects WHERE app = ? AND kind = ? AND id = ?)`
	eventsAndDead   = ` AND e.state = 2`
	eventsInOrder   = ` AND e.n > ? ORDER BY e.n LIMIT ?`

	selectEventNumber = `SELECT n FROM events WHERE app = ? AND id = ?`
)

func eventsQuery(app int64, f tracking.EventFilter, after int64) (query string, args []any) {
	switch {
	case f.Subject != tracking.Subject{}:
		query, args = selectEvents+eventsBySubject, []any{app, f.Subject.Kind, f.Subject.ID}
		if f.Dead {
			query += eventsAndDead
		}
	case f.Dead:
		query, args = selectEvents+eventsDead, []any{app}
	default:
		query, args = selectEvents+eventsByApp, []any{app}
	}
	return query + eventsInOrder, append(args, after, f.Limit+1)
}

// Events implements [tracking.EventReader].
func (s *Store) Events(ctx context.Context, app tracking.AppID, f tracking.EventFilter) (list []tracking.Event, more bool, err error) {
	n, _ := s.apps.number(app)
	err = s.read(ctx, func(ctx context.Context) error {
		var after int64
		if f.After != "" {
			if err := s.get(ctx, &after, selectEventNumber, n, f.After); err != nil {
				return err
			}
		}
		query, args := eventsQuery(n, f, after)
		var rows []eventRow
		if err := s.list(ctx, &rows, query, args...); err != nil {
			return err
		}
		rows, more = cut(rows, f.Limit)
		list, err = convert(rows, (*eventRow).event)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return list, more, nil
}

const (
	// The feed's marks and its notices come from one statement, so that they fit each other. A feed without notices gives one row without an id.
	selectNotices = `
SELECT d.last_notice, d.purged_notice, n.id, n.kind, n.event_id, n.task_id, n.tracking_id, n.time
FROM drivers d LEFT JOIN notices n ON n.driver = d.seq AND n.id > ?
WHERE d.app = ? AND d.id = ? ORDER BY n.id LIMIT ?`
)

type noticeRow struct {
	LastNotice   int64 `db:"last_notice"`
	PurgedNotice int64 `db:"purged_notice"`
	ID           sql.NullInt64
	Kind         text
	EventID      text `db:"event_id"`
	TaskID       text `db:"task_id"`
	TrackingID   text `db:"tracking_id"`
	Time         instant
}

// Notices implements [tracking.EventReader].
func (s *Store) Notices(ctx context.Context, app tracking.AppID, driver tracking.DriverID, after int64, limit int) (list []tracking.Notice, lost bool, err error) {
	n, _ := s.apps.number(app)
	var rows []noticeRow
	err = s.read(ctx, func(ctx context.Context) error {
		return s.list(ctx, &rows, selectNotices, after, n, driver, max(limit, 1))
	})
	if err != nil {
		return nil, false, err
	}
	if len(rows) == 0 { // no such driver: nothing was ever given
		return nil, after > 0, nil
	}
	lost = rows[0].PurgedNotice > after || after > rows[0].LastNotice
	for _, r := range rows[:min(len(rows), limit)] {
		if r.ID.Valid {
			list = append(list, tracking.Notice{
				ID: r.ID.Int64, DriverID: driver, Kind: tracking.NoticeKind(r.Kind), EventID: string(r.EventID),
				TaskID: tracking.TaskID(r.TaskID), TrackingID: tracking.TrackingID(r.TrackingID), Time: r.Time.Time,
			})
		}
	}
	return list, lost, nil
}

const (
	// Of a long queue most subjects are ready, and the walk by head ends early; if none is, the index by ready_at says so at once.
	selectAnyReady = `SELECT EXISTS (SELECT 1 FROM subjects INDEXED BY subjects_ready WHERE head IS NOT NULL AND ready_at <= ?)`
	selectReady    = `
SELECT n FROM subjects INDEXED BY subjects_queued
WHERE head IS NOT NULL AND ready_at <= ? AND app NOT IN (SELECT value FROM json_each(?)) ORDER BY head LIMIT ?`
	leaseSubject = `UPDATE subjects SET owner = ?, leased_until = ?, ready_at = ? WHERE n = ? AND head IS NOT NULL AND ready_at <= ?`
	selectQueue  = `
SELECT` + eventColumns + ` FROM events e INDEXED BY events_queued JOIN subjects s ON s.n = e.subject
WHERE e.subject = ? AND e.state = 1 ORDER BY e.n LIMIT ?`
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
				return tracking.Leased{App: s.apps.id(r.App), Event: e, Attempt: r.Attempts + 1}, err
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
		if err := s.get(ctx, &any, selectAnyReady, now); err != nil || !any || l.Limit <= 0 {
			return err
		}
		return s.list(ctx, &ready, selectReady, now, string(b), l.Limit)
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
			taken, err := x.changed(leaseSubject, l.Owner, until, until, n, now)
			if err != nil {
				return err
			}
			if taken == 0 {
				continue
			}
			var queue []eventRow
			if err := x.list(&queue, selectQueue, n, left); err != nil {
				return err
			}
			rows = append(rows, queue...)
		}
		return nil
	})
	return rows, err
}

const (
	selectDelivery = `
SELECT e.n, e.subject, e.state, s.n AS "queue.n", s.last_seq AS "queue.last_seq", s.head AS "queue.head", s.ready_at AS "queue.ready_at",
	s.owner AS "queue.owner", s.leased_until AS "queue.leased_until"
FROM events e JOIN subjects s ON s.n = e.subject WHERE e.app = ? AND e.id = ?`
	finishEvent = `UPDATE events SET state = ? WHERE n = ?`
	retryEvent  = `UPDATE events SET attempts = attempts + 1, retry_at = ? WHERE n = ?`
	buryEvent   = `UPDATE events SET attempts = attempts + 1, state = 2 WHERE n = ?`
	reviveEvent = `UPDATE events SET attempts = 0, state = 1, retry_at = NULL WHERE n = ?`
	selectHead  = `SELECT n, retry_at FROM events INDEXED BY events_queued WHERE subject = ? AND state = 1 ORDER BY n LIMIT 1`
	updateQueue = `UPDATE subjects SET head = ?, ready_at = ?, owner = ?, leased_until = ? WHERE n = ?`
)

type deliveryRow struct {
	N       int64
	Subject int64
	State   int
	Queue   subjectRow
}

// finish is a queue that deliveries have changed.
type finish struct {
	queue subjectRow
	ended bool // the owner's lease is over
}

// FinishEvents implements [tracking.Store].
func (s *Store) FinishEvents(ctx context.Context, done []tracking.Delivery) error {
	if len(done) == 0 {
		return ctx.Err()
	}
	done = append([]tracking.Delivery(nil), done...)
	return s.write(ctx, true, func(x *tx) error {
		queues := map[int64]*finish{}
		for _, d := range done {
			if err := x.finish(d, queues); err != nil {
				return err
			}
		}
		for n, q := range queues {
			if err := x.requeue(n, q); err != nil {
				return err
			}
		}
		return nil
	})
}

// finish notes what became of one event.
func (x *tx) finish(d tracking.Delivery, queues map[int64]*finish) error {
	app, ok := x.store.apps.number(d.App)
	if !ok {
		return nil
	}
	var r deliveryRow
	found, err := x.find(&r, selectDelivery, app, d.EventID)
	if err != nil || !found {
		return err
	}
	q := queues[r.Subject]
	if q == nil {
		q = &finish{queue: r.Queue}
		queues[r.Subject] = q
	}
	leased := r.Queue.Owner.Valid
	mine := !leased || r.Queue.Owner.String == d.Owner
	q.ended = q.ended || leased && mine
	switch {
	case d.State == tracking.Delivered:
		return x.exec(finishEvent, stateDone, r.N)
	case d.State == tracking.Released && r.State == stateDead:
		return x.exec(reviveEvent, r.N)
	case !mine || r.State != stateWait:
		return nil
	case d.State == tracking.Retry:
		return x.exec(retryEvent, millis(d.RetryAt), r.N)
	case d.State == tracking.Dead:
		return x.exec(buryEvent, r.N)
	}
	return nil
}

// requeue finds the head of a queue again.
func (x *tx) requeue(n int64, q *finish) error {
	if q.ended {
		q.queue.Owner, q.queue.LeasedUntil = sql.NullString{}, sql.NullInt64{}
	}
	var head struct {
		N       sql.NullInt64
		RetryAt sql.NullInt64 `db:"retry_at"`
	}
	if _, err := x.find(&head, selectHead, n); err != nil {
		return err
	}
	return x.exec(updateQueue, head.N, q.queue.readyAt(head.RetryAt), q.queue.Owner, q.queue.LeasedUntil, n)
}

const (
	selectDueTrips      = `SELECT app, 'trip' AS kind, id, ttl AS at FROM trips INDEXED BY trips_due WHERE status = 1 AND ttl <= ? ORDER BY ttl LIMIT ?`
	selectDueTripsInApp = `SELECT app, 'trip' AS kind, id, ttl AS at FROM trips INDEXED BY trips_due_by_app WHERE app = ? AND status = 1 AND ttl <= ? ORDER BY ttl LIMIT ?`

	selectDueGeocodes = `
SELECT app, 'task' AS kind, id, geocode_at AS at FROM tasks INDEXED BY tasks_to_geocode WHERE geocode_at IS NOT NULL AND geocode_at <= ?1
UNION ALL
SELECT app, 'trip', id, geocode_at FROM trips INDEXED BY trips_to_geocode WHERE geocode_at IS NOT NULL AND geocode_at <= ?1
ORDER BY at LIMIT ?2`
	selectDueGeocodesInApp = `
SELECT app, 'task' AS kind, id, geocode_at AS at FROM tasks INDEXED BY tasks_to_geocode WHERE app = ?3 AND geocode_at IS NOT NULL AND geocode_at <= ?1
UNION ALL
SELECT app, 'trip', id, geocode_at FROM trips INDEXED BY trips_to_geocode WHERE app = ?3 AND geocode_at IS NOT NULL AND geocode_at <= ?1
ORDER BY at LIMIT ?2`
)

type dueRow struct {
	App  int64
	Kind tracking.SubjectKind
	ID   string
	At   instant
}

// Due implements [tracking.Store].
func (s *Store) Due(ctx context.Context, q tracking.DueQuery) (list []tracking.Due, err error) {
	before := q.Before.UnixMilli()
	app, _ := s.apps.number(q.App)
	var query string
	var args []any
	switch {
	case q.Kind == tracking.DueSilence:
		return s.silent(ctx, q)
	case q.Kind == tracking.DueTrips && q.App == "":
		query, args = selectDueTrips, []any{before, q.Limit}
	case q.Kind == tracking.DueTrips:
		query, args = selectDueTripsInApp, []any{app, before, q.Limit}
	case q.Kind == tracking.DueGeocodes && q.App == "":
		query, args = selectDueGeocodes, []any{before, q.Limit}
	case q.Kind == tracking.DueGeocodes:
		query, args = selectDueGeocodesInApp, []any{before, q.Limit, app}
	default:
		return nil, errors.New("sqlite: unknown kind of what is due")
	}
	err = s.read(ctx, func(ctx context.Context) error {
		var rows []dueRow
		if err := s.list(ctx, &rows, query, args...); err != nil {
			return err
		}
		list, err = convert(rows, func(r *dueRow) (tracking.Due, error) {
			return tracking.Due{App: s.apps.id(r.App), Subject: tracking.Subject{Kind: r.Kind, ID: r.ID}}, nil
		})
		return err
	})
	return list, err
}
