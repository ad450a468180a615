package postgres

import (
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
)

// noticeJSON is a notice in its event's row. What the event says already is not repeated.
type noticeJSON struct {
	ID         int64               `json:"id"`
	Driver     tracking.DriverID   `json:"driver"`
	Person     string              `json:"person,omitempty"`
	Kind       tracking.NoticeKind `json:"kind"`
	Task       tracking.TaskID     `json:"task,omitempty"`
	TrackingID tracking.TrackingID `json:"tracking_id,omitempty"`
}

// subjectState is a subject's number, and the Seq of its last event.
type subjectState struct {
	tracking.Subject
	number, last int64
}

const countEvents = `
INSERT INTO tracking.subjects AS s (app, kind, id, last_seq)
SELECT $1::int, u.kind, u.id, u.n FROM unnest($2::text[], $3::text[], $4::bigint[]) WITH ORDINALITY u (kind, id, n, o)
ORDER BY o
ON CONFLICT (app, kind, id) DO UPDATE SET last_seq = s.last_seq + excluded.last_seq
RETURNING s.kind, s.id, s.n, s.last_seq`

const selectEventNumbers = `
SELECT nextval(pg_get_serial_sequence('tracking.events', 'n')) FROM generate_series(1, $1::int)`

// countEvents queues that the events of the changes are counted, for each subject. Its row is locked
// by that to the end of the commit, so that no number is left out or comes late.
func (l *locked) countEvents() {
	var events []*tracking.Event
	for _, c := range l.changes {
		for i := range c.cs.Events {
			events = append(events, &c.cs.Events[i])
		}
	}
	if len(events) == 0 {
		return
	}
	kinds, ids, n := countOf(events)
	count := make(map[tracking.Subject]int64, len(ids))
	for i, id := range ids {
		count[tracking.Subject{Kind: tracking.SubjectKind(kinds[i]), ID: id}] = n[i]
	}
	queueEach(l.tx, func(s *subjectState) { l.subjects[s.Subject] = s },
		func(row pgx.CollectableRow) (*subjectState, error) {
			var s subjectState
			err := row.Scan(&s.Kind, &s.ID, &s.number, &s.last)
			s.last -= count[s.Subject] // as of before
			return &s, err
		}, countEvents, l.app, kinds, ids, n)
	queueRows(l.tx, &l.eventNumbers, pgx.RowTo[int64], selectEventNumbers, len(events))
}

// countOf is how many events there are of each subject, in order.
func countOf(events []*tracking.Event) (kinds, ids []string, n []int64) {
	count := make(map[tracking.Subject]int64, len(events))
	for _, e := range events {
		count[e.Subject]++
	}
	for _, s := range slices.SortedFunc(maps.Keys(count), bySubject) {
		kinds, ids, n = append(kinds, string(s.Kind)), append(ids, s.ID), append(n, count[s])
	}
	return kinds, ids, n
}

const (
	uncountEvents = `
UPDATE tracking.subjects s SET last_seq = s.last_seq - u.n FROM unnest($2::bigint[], $3::bigint[]) u (subject, n)
WHERE s.app = $1 AND s.n = u.subject`
	forgetSubjects = `DELETE FROM tracking.subjects WHERE app = $1 AND n = ANY ($2) AND last_seq = 0`
)

// uncountEvents queues that the events of a change that is refused were never counted.
func (c *change) uncountEvents() {
	count := map[int64]int64{}
	for i := range c.cs.Events {
		count[c.subjects[c.cs.Events[i].Subject].number]++
	}
	if len(count) == 0 {
		return
	}
	numbers := slices.Sorted(maps.Keys(count))
	n := make([]int64, len(numbers))
	for i, number := range numbers {
		n[i] = count[number]
	}
	c.queue(uncountEvents, c.app, numbers, n)
	c.queue(forgetSubjects, c.app, numbers)
}

const (
	eventFields = `n, id, type, time, recorded_at, actor, subject, kind, subject_id, person, seq, data, notices`
	eventTypes  = `bigint, text, text, bigint, bigint, text, bigint, text, text, text, bigint, text>jsonb, text>jsonb`

	insertDeliveries = `
INSERT INTO tracking.deliveries (app, subject, outbox, event, state, attempts)
SELECT $1::int, e.subject, o.outbox, e.n, 1, 0
FROM unnest($2::bigint[], $3::bigint[]) e (subject, n), unnest($4::text::text[]) o (outbox)`

	// A queue that is there without a head is leased.
	enqueue = `
INSERT INTO tracking.queues AS q (app, subject, outbox, head)
SELECT $1::int, e.subject, o.outbox, min(e.n)
FROM unnest($2::bigint[], $3::bigint[]) e (subject, n), unnest($4::text::text[]) o (outbox)
GROUP BY e.subject, o.outbox ORDER BY e.subject, o.outbox
ON CONFLICT (app, subject, outbox) DO UPDATE SET head = excluded.head WHERE q.head IS NULL`

	updateLastNotices = `
UPDATE tracking.positions p SET last_notice = u.last FROM unnest($2::bigint[], $3::bigint[]) u (driver, last)
WHERE p.app = $1 AND p.driver = u.driver`

	noticeFields = `driver, id, kind, event_id, task_id, tracking_id, time`
)

var (
	insertEvents  = eventsInsert(eventFields, eventTypes)
	insertNotices = `INSERT INTO tracking.notices (app, ` + noticeFields + `)
SELECT $1::int, * FROM ` + arrays(2, noticeFields, `bigint, bigint, text, text, text, text, bigint`)
)

// eventsInsert writes events with these columns.
func eventsInsert(fields, types string) string {
	return `INSERT INTO tracking.events (app, ` + fields + `) OVERRIDING SYSTEM VALUE
SELECT $1::int, ` + arrayValues(fields, types) + ` FROM ` + arrays(2, fields, types)
}

// appendEvents queues the events of the changes, and their notices.
func (l *locked) appendEvents() error {
	var events, noticed [][]any
	told := map[int64]int64{} // the last notices of drivers whose feeds go on
	type queued struct{ subjects, numbers []int64 }
	deliver := map[string]*queued{} // what goes to some outboxes
	for _, c := range l.changes {
		for i := range c.cs.Events {
			e := &c.cs.Events[i]
			sub := l.subjects[e.Subject]
			sub.last++
			data, err := jsonValue(e.Data, len(e.Data))
			if err != nil {
				return err
			}
			list, values := l.notices(e, told)
			notices, err := jsonValue(list, len(list))
			if err != nil {
				return err
			}
			noticed = append(noticed, values...)
			n := l.eventNumbers[0]
			l.eventNumbers = l.eventNumbers[1:]
			events = append(events, []any{
				n, e.ID, string(e.Type), millis(e.Time), e.RecordedAt.UnixMilli(), e.Actor, sub.number, string(e.Subject.Kind),
				e.Subject.ID, e.Person, sub.last, data, notices,
			})
			if len(c.cs.Deliver) > 0 {
				outboxes := *arrayValue(c.cs.Deliver)
				q := deliver[outboxes]
				if q == nil {
					q = &queued{}
					deliver[outboxes] = q
				}
				q.subjects, q.numbers = append(q.subjects, sub.number), append(q.numbers, n)
			}
		}
	}
	if len(events) == 0 {
		return nil
	}
	l.inserts()
	l.queue(insertEvents, append([]any{l.app}, columns(events)...)...)
	for _, outboxes := range slices.Sorted(maps.Keys(deliver)) {
		q := deliver[outboxes]
		l.queue(insertDeliveries, l.app, q.subjects, q.numbers, outboxes)
		l.queue(enqueue, l.app, q.subjects, q.numbers, outboxes)
	}
	if len(noticed) > 0 {
		l.queue(insertNotices, append([]any{l.app}, columns(noticed)...)...)
		drivers := slices.Sorted(maps.Keys(told))
		last := make([]int64, len(drivers))
		for i, d := range drivers {
			last[i] = told[d]
		}
		l.updates()
		l.queue(updateLastNotices, l.app, drivers, last)
	}
	return nil
}

// notices are those of an event for drivers who have a row, and their columns; told is set to the
// last of each driver.
func (l *locked) notices(e *tracking.Event, told map[int64]int64) (list []noticeJSON, values [][]any) {
	for _, n := range e.Notices {
		d := l.drivers[n.DriverID]
		if d == nil {
			continue
		}
		d.lastNotice++
		told[d.number] = d.lastNotice
		values = append(values, []any{
			d.number, d.lastNotice, string(n.Kind), e.ID, string(n.TaskID), string(n.TrackingID), e.RecordedAt.UnixMilli(),
		})
		list = append(list, noticeJSON{d.lastNotice, n.DriverID, d.Person, n.Kind, n.TaskID, n.TrackingID})
	}
	return list, values
}

const eventColumns = ` e.app, e.n, e.id, e.type, e.time, e.recorded_at, e.actor, e.subject, e.kind, e.subject_id,
	e.person, e.seq, e.data, e.notices`

// eventRow is an event and what else is known of it.
type eventRow struct {
	tracking.Event
	app             int32
	number, subject int64
	attempts        int // in a queue only
}

// scanEvent reads eventColumns, and what more there is of a row.
func scanEvent(row pgx.CollectableRow, more ...any) (r eventRow, err error) {
	var at, recorded instant
	var notices []noticeJSON
	err = row.Scan(append([]any{
		&r.app, &r.number, &r.ID, &r.Type, &at, &recorded, &r.Actor, &r.subject, &r.Subject.Kind, &r.Subject.ID,
		&r.Person, &r.Seq, &r.Data, &notices,
	}, more...)...)
	r.Time, r.RecordedAt = at.Time, recorded.Time
	for _, n := range notices {
		r.Notices = append(r.Notices, tracking.Notice{
			ID: n.ID, DriverID: n.Driver, Person: n.Person, Kind: n.Kind, EventID: r.ID, TaskID: n.Task,
			TrackingID: n.TrackingID, Time: r.RecordedAt,
		})
	}
	return r, err
}

func plainEvent(row pgx.CollectableRow) (tracking.Event, error) {
	r, err := scanEvent(row)
	return r.Event, err
}

// Lists of events, by their places.
const (
	selectEvents    = `SELECT` + eventColumns + ` FROM tracking.events e`
	eventsOf        = ` WHERE e.app = $1 AND e.place IS NOT NULL AND e.place > $2`
	eventsOfSubject = ` AND e.subject = (SELECT n FROM tracking.subjects WHERE app = $1 AND kind = $4 AND id = $5)`
	eventsDead      = ` AND EXISTS (SELECT 1 FROM tracking.deliveries d WHERE d.app = e.app AND d.subject = e.subject
		AND d.event = e.n AND d.state = 2 AND d.outbox = %d)`
	eventsInOrder = ` ORDER BY e.place LIMIT $3`

	selectPlace = `SELECT place FROM tracking.events WHERE app = $1 AND id = $2 AND place IS NOT NULL`
)

// Events implements [tracking.EventReader].
func (s *Store) Events(
	ctx context.Context, app tracking.AppID, f tracking.EventFilter,
) (found []tracking.Event, more bool, err error) {
	n, err := s.numberOf(ctx, app)
	if err != nil {
		return nil, false, err
	}
	if err := s.placed(ctx, n); err != nil {
		return nil, false, err
	}
	var after int64
	if f.After != "" {
		after, err = one(ctx, s, pgx.RowTo[int64], selectPlace, n, f.After)
		if err != nil {
			return nil, false, err
		}
	}
	query, args := eventsQuery(n, f, after)
	found, err = list(ctx, s, plainEvent, query, args...)
	found, more = page(found, f.Limit)
	return found, more, err
}

// eventsQuery is the query for a filter, of what comes after a place.
func eventsQuery(app int32, f tracking.EventFilter, after int64) (string, []any) {
	q := where{args: []any{app, after, f.Limit + 1}, sql: selectEvents + eventsOf}
	if f.Subject != (tracking.Subject{}) {
		q.sql += eventsOfSubject
		q.args = append(q.args, string(f.Subject.Kind), f.Subject.ID)
	}
	if f.Dead {
		q.and(eventsDead, f.Outbox)
	}
	return q.sql + eventsInOrder, q.args
}

// The feed's marks and its notices come from one statement, so that they fit each other. A feed
// without notices gives one row without an id.
const selectNotices = `
SELECT d.person, p.last_notice, p.purged_notice, n.id, n.kind, n.event_id, n.task_id, n.tracking_id, n.time` +
	fromDrivers + `
	LEFT JOIN tracking.notices n ON n.app = d.app AND n.driver = d.n AND n.id > $3
WHERE d.app = $1 AND d.id = $2 ORDER BY n.id LIMIT $4`

type noticeRow struct {
	person       string
	last, purged int64
	id           *int64
	kind, event  text
	task, trip   text
	at           instant
}

func scanNotice(row pgx.CollectableRow) (r noticeRow, err error) {
	err = row.Scan(&r.person, &r.last, &r.purged, &r.id, &r.kind, &r.event, &r.task, &r.trip, &r.at)
	return r, err
}

// Notices implements [tracking.EventReader].
func (s *Store) Notices(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID, after int64, limit int,
) (found []tracking.Notice, lost bool, err error) {
	feed, err := listIn(ctx, s, app, scanNotice, selectNotices, string(driver), after, max(limit, 1))
	if err != nil {
		return nil, false, err
	}
	if len(feed) == 0 { // no such driver: nothing was ever given
		return nil, after > 0, nil
	}
	for _, r := range feed[:min(len(feed), limit)] {
		if r.id != nil {
			found = append(found, tracking.Notice{
				ID: *r.id, DriverID: driver, Person: r.person, Kind: tracking.NoticeKind(r.kind),
				EventID: string(r.event), TaskID: tracking.TaskID(r.task), TrackingID: tracking.TrackingID(r.trip), Time: r.at.Time,
			})
		}
	}
	return found, feed[0].purged > after || after > feed[0].last, nil
}
