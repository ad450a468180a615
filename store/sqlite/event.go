package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"math"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/claims"
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

const eventColumns = `
	e.n, e.app, e.id, e.type, e.time, e.recorded_at, e.actor, s.kind, s.id AS subject_id, e.person, e.seq, e.data, e.notices`

type eventRow struct {
	N, App     int64
	ID         string
	Type       tracking.EventType
	Time       instant
	RecordedAt instant `db:"recorded_at"`
	Actor      string
	Kind       tracking.SubjectKind
	SubjectID  string `db:"subject_id"`
	Person     string
	Seq        int64
	Data       text
	Notices    text
	Attempts   int // in the queue only
}

func (r *eventRow) event() (tracking.Event, error) {
	e := tracking.Event{
		ID: r.ID, Type: r.Type, Time: r.Time.Time, RecordedAt: r.RecordedAt.Time, Actor: r.Actor,
		Subject: tracking.Subject{Kind: r.Kind, ID: r.SubjectID}, Person: r.Person, Seq: r.Seq,
	}
	var err error
	if e.Data, err = fromJSON[map[string]string](r.Data); err != nil {
		return e, err
	}
	told, err := fromJSON[[]noticeJSON](r.Notices)
	for _, n := range told {
		e.Notices = append(e.Notices, tracking.Notice{
			ID: n.ID, DriverID: n.Driver, Person: n.Person, Kind: n.Kind, EventID: r.ID, TaskID: n.Task,
			TrackingID: n.TrackingID, Time: r.RecordedAt.Time,
		})
	}
	return e, err
}

// subjectRow is a subject's counter.
type subjectRow struct {
	N       int64
	LastSeq int64 `db:"last_seq"`

	more  int64 // events of it that are being appended
	first int64 // the first of them
}

const (
	// A task's subject is the one that its row says, or else, as of all other things, the one of its name.
	subjectOfTask = `SELECT subject FROM tasks WHERE ?2 = 'task' AND app = ?1 AND id = ?3`
	hasName       = `app = ?1 AND kind = ?2 AND id = ?3 AND named = 1`
	subjectOf     = `coalesce((` + subjectOfTask + `), (SELECT n FROM subjects INDEXED BY subjects_by_name WHERE ` + hasName + `))`
	selectSubject = `SELECT n, last_seq FROM subjects WHERE n = ` + subjectOf

	insertSubject = `INSERT INTO subjects (app, kind, id, last_seq) VALUES (?, ?, ?, ?)`
	updateSeq     = `UPDATE subjects SET last_seq = ? WHERE n = ?`

	// Where there have been events of the name before the task, their subject goes on to be the task's.
	insertTaskSubject = `
INSERT INTO subjects (app, kind, id, last_seq, named)
	VALUES (?1, ?2, ?3, ?4, EXISTS (SELECT 1 FROM subjects INDEXED BY subjects_by_name WHERE ` + hasName + `))
ON CONFLICT DO NOTHING`

	insertEvent = `
INSERT INTO events (app, id, type, time, recorded_at, actor, subject, person, seq, data, notices, undelivered)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	insertNotice = `INSERT INTO notices (driver, id, kind, event_id, task_id, tracking_id, time)
		VALUES (?, ?, ?, ?, ?, ?, ?)`
	updateLastNotice = `UPDATE drivers SET last_notice = ? WHERE seq = ?`
)

// counted are the subjects of events that are being appended, each once.
type counted map[tracking.Subject]*subjectRow

func countedOf(events []tracking.Event) counted {
	subjects := counted{}
	for i := range events {
		sub := subjects[events[i].Subject]
		if sub == nil {
			sub = new(subjectRow)
			subjects[events[i].Subject] = sub
		}
		sub.more++
	}
	return subjects
}

// ofTask makes the subject of a task that is new, and returns its number for the task's row: nil where
// it is to be found by its name.
func (c counted) ofTask(x *tx, app int64, id tracking.TaskID) (n any, err error) {
	sub := c[tracking.Subject{Kind: tracking.KindTask, ID: string(id)}]
	if sub == nil || sub.N != 0 {
		return nil, nil
	}
	r, err := x.run(insertTaskSubject, app, string(tracking.KindTask), string(id), sub.more)
	if err != nil {
		return nil, err
	}
	if made, err := r.RowsAffected(); err != nil || made == 0 {
		return nil, err
	}
	sub.N, err = r.LastInsertId()
	return sub.N, err
}

// appendEvents writes events and notices. Events of one subject find its row once.
func (x *tx) appendEvents(app int64, events []tracking.Event, subjects counted, deliver []string) error {
	for i := range events {
		e := &events[i]
		sub := subjects[e.Subject]
		if sub.N == 0 {
			if err := x.countEvents(app, e.Subject, sub); err != nil {
				return err
			}
		}
		sub.LastSeq++
		n, err := x.appendEvent(app, e, sub, len(deliver))
		if err != nil {
			return err
		}
		if sub.first == 0 {
			sub.first = n
		}
		for _, outbox := range deliver {
			if err := x.exec(insertDelivery, sub.N, outbox, n, app); err != nil {
				return err
			}
		}
	}
	for _, sub := range subjects {
		for _, outbox := range deliver {
			if err := x.exec(enqueue, sub.N, outbox, app, sub.first, int64(atOnce)); err != nil {
				return err
			}
		}
	}
	return nil
}

// countEvents finds or makes a subject's row, and counts there what is appended.
func (x *tx) countEvents(app int64, of tracking.Subject, sub *subjectRow) error {
	found, err := x.find(sub, selectSubject, app, string(of.Kind), of.ID)
	if err != nil {
		return err
	}
	if found {
		return x.exec(updateSeq, sub.LastSeq+sub.more, sub.N)
	}
	sub.N, err = x.insert(insertSubject, app, string(of.Kind), of.ID, sub.more)
	return err
}

// appendEvent writes an event with its notices, and returns its number.
func (x *tx) appendEvent(app int64, e *tracking.Event, sub *subjectRow, undelivered int) (n int64, err error) {
	data, err := jsonValue(e.Data, len(e.Data))
	if err != nil {
		return 0, err
	}
	told, err := x.appendNotices(app, e)
	if err != nil {
		return 0, err
	}
	notices, err := jsonValue(told, len(told))
	if err != nil {
		return 0, err
	}
	n, err = x.insert(insertEvent, app, e.ID, string(e.Type), millis(e.Time), e.RecordedAt.UnixMilli(), e.Actor, sub.N,
		e.Person, sub.LastSeq, data, notices, int64(undelivered))
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
		x.setDriver(k, d, &next)
		if err := x.exec(updateLastNotice, next.lastNotice, next.Seq); err != nil {
			return nil, err
		}
		if err := x.exec(insertNotice, next.Seq, next.lastNotice, n.Kind, e.ID, n.TaskID, n.TrackingID,
			e.RecordedAt.UnixMilli()); err != nil {
			return nil, err
		}
		told = append(told, noticeJSON{next.lastNotice, n.DriverID, next.Person, n.Kind, n.TaskID, n.TrackingID})
	}
	return told, nil
}

// Lists of events. The rowid, n, ends each index and is the order of commit.
const (
	selectEvents    = `SELECT` + eventColumns + ` FROM events e INDEXED BY `
	eventsByApp     = `events_by_app JOIN subjects s ON s.n = e.subject WHERE e.app = ?`
	eventsBySubject = `events_by_subject JOIN subjects s ON s.n = e.subject WHERE e.subject = ` + subjectOf
	eventsInOrder   = ` AND e.n > ? ORDER BY e.n LIMIT ?`

	selectDead    = `SELECT` + eventColumns + ` FROM deliveries d`
	deadByApp     = ` INDEXED BY deliveries_dead` + deadEvents + ` WHERE d.app = ? AND d.outbox = ? AND d.state = 2`
	deadBySubject = deadEvents + ` WHERE d.subject = ` + subjectOf + ` AND d.outbox = ? AND d.state = 2`
	deadEvents    = ` JOIN events e ON e.n = d.event JOIN subjects s ON s.n = e.subject`
	deadInOrder   = ` AND d.event > ? ORDER BY d.event LIMIT ?`

	selectEventNumber = `SELECT n FROM events WHERE app = ? AND id = ?`
)

func eventsQuery(app int64, f tracking.EventFilter, after int64) (query string, args []any) {
	switch ofSubject := f.Subject != (tracking.Subject{}); {
	case ofSubject && f.Dead:
		query, args = selectDead+deadBySubject+deadInOrder, []any{app, f.Subject.Kind, f.Subject.ID, f.Outbox}
	case ofSubject:
		query, args = selectEvents+eventsBySubject+eventsInOrder, []any{app, f.Subject.Kind, f.Subject.ID}
	case f.Dead:
		query, args = selectDead+deadByApp+deadInOrder, []any{app, f.Outbox}
	default:
		query, args = selectEvents+eventsByApp+eventsInOrder, []any{app}
	}
	return query, append(args, after, f.Limit+1)
}

// Events implements [tracking.EventReader].
func (s *Store) Events(
	ctx context.Context, app tracking.AppID, f tracking.EventFilter,
) (list []tracking.Event, more bool, err error) {
	n, _ := s.apps.Number(app)
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
	// The feed's marks and its notices come from one statement, so that they fit each other. A feed
	// without notices gives one row without an id.
	selectNotices = `
SELECT d.person, d.last_notice, d.purged_notice, n.id, n.kind, n.event_id, n.task_id, n.tracking_id, n.time
FROM drivers d LEFT JOIN notices n ON n.driver = d.seq AND n.id > ?
WHERE d.app = ? AND d.id = ? ORDER BY n.id LIMIT ?`
)

type noticeRow struct {
	Person       text
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
func (s *Store) Notices(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID, after int64, limit int,
) (list []tracking.Notice, lost bool, err error) {
	n, _ := s.apps.Number(app)
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
				ID: r.ID.Int64, DriverID: driver, Person: string(r.Person), Kind: tracking.NoticeKind(r.Kind),
				EventID: string(r.EventID),
				TaskID:  tracking.TaskID(r.TaskID), TrackingID: tracking.TrackingID(r.TrackingID), Time: r.Time.Time,
			})
		}
	}
	return list, lost, nil
}

// What is due, and what is further ahead than it can be.
const (
	tripsDue       = `SELECT app, 'trip' AS kind, id, ttl AS at FROM trips INDEXED BY `
	selectDueTrips = tripsDue + `trips_due WHERE status = 1 AND ttl <= ?1 UNION ALL ` + tripsDue + `trips_due
		WHERE status = 1 AND ttl > ?2 ORDER BY at LIMIT ?3`

	selectDueTripsInApp = tripsDue + `trips_due_by_app WHERE app = ?4 AND status = 1 AND ttl <= ?1 UNION ALL ` +
		tripsDue + `trips_due_by_app WHERE app = ?4 AND status = 1 AND ttl > ?2 ORDER BY at LIMIT ?3`
	selectDueTripsOfDriver = tripsDue + `trips_due_by_driver
		WHERE app = ?4 AND driver_id = ?5 AND status = 1 AND ttl <= ?1 UNION ALL ` +
		tripsDue + `trips_due_by_driver WHERE app = ?4 AND driver_id = ?5 AND status = 1 AND ttl > ?2
		ORDER BY at LIMIT ?3`

	// There is one at most.
	selectDueTripTracked = tripsDue + `trips_active WHERE app = ?4 AND tracking_id = ?5 AND status = 1
		AND (ttl <= ?1 OR ttl > ?2) AND (driver_id = ?6 OR ?6 = '') LIMIT ?3`

	tasksToGeocode = `SELECT app, 'task' AS kind, id, geocode_at AS at FROM tasks INDEXED BY tasks_to_geocode
		WHERE geocode_at IS NOT NULL AND `
	tripsToGeocode = `SELECT app, 'trip' AS kind, id, geocode_at AS at FROM trips INDEXED BY trips_to_geocode
		WHERE geocode_at IS NOT NULL AND `

	selectDueGeocodes = tasksToGeocode + `geocode_at <= ?1 UNION ALL ` + tasksToGeocode + `geocode_at > ?2 UNION ALL ` +
		tripsToGeocode + `geocode_at <= ?1 UNION ALL ` + tripsToGeocode + `geocode_at > ?2 ORDER BY at LIMIT ?3`
	selectDueGeocodesInApp = tasksToGeocode + `app = ?4 AND geocode_at <= ?1
		UNION ALL ` + tasksToGeocode + `app = ?4 AND geocode_at > ?2 UNION ALL ` +
		tripsToGeocode + `app = ?4 AND geocode_at <= ?1 UNION ALL ` + tripsToGeocode + `app = ?4 AND geocode_at > ?2
		ORDER BY at LIMIT ?3`
)

const (
	tasksDue            = `SELECT app, 'task' AS kind, id, due_at AS at FROM tasks INDEXED BY tasks_due WHERE due_at IS NOT NULL AND `
	selectDueTasks      = tasksDue + `due_at <= ?1 UNION ALL ` + tasksDue + `due_at > ?2 ORDER BY at LIMIT ?3`
	selectDueTasksInApp = tasksDue + `app = ?4 AND due_at <= ?1 UNION ALL ` + tasksDue + `app = ?4 AND due_at > ?2
		ORDER BY at LIMIT ?3`
)

// What ended by then, of all applications or of one.
const (
	ended                  = `SELECT app, 'task' AS kind, id, completed_at AS at FROM tasks INDEXED BY `
	personalEnded          = ended + `tasks_personal WHERE completed_at IS NOT NULL AND personal = 1 AND `
	allEnded               = ended + `tasks_ended WHERE completed_at IS NOT NULL AND `
	endedInApp             = ended + `tasks_by_completion WHERE completed_at IS NOT NULL AND `
	selectDueContacts      = personalEnded + `completed_at <= ?1 UNION ALL ` + personalEnded + `completed_at > ?2 ORDER BY at LIMIT ?3`
	selectDueContactsInApp = personalEnded + `app = ?4 AND completed_at <= ?1
		UNION ALL ` + personalEnded + `app = ?4 AND completed_at > ?2 ORDER BY at LIMIT ?3`
	selectDueDeletions      = allEnded + `completed_at <= ?1 UNION ALL ` + allEnded + `completed_at > ?2 ORDER BY at LIMIT ?3`
	selectDueDeletionsInApp = endedInApp + `app = ?4 AND completed_at <= ?1
		UNION ALL ` + endedInApp + `app = ?4 AND completed_at > ?2 ORDER BY at LIMIT ?3`
)

type dueRow struct {
	App  int64
	Kind tracking.SubjectKind
	ID   string
	At   instant
}

// Due implements [tracking.Store].
func (s *Store) Due(ctx context.Context, q tracking.DueQuery) ([]tracking.Due, error) {
	key := func(d tracking.Due) claimedDue { return claimedDue{q.Kind, d} }
	return claims.Take(&s.due, q.Claim, q.Limit, key, func(limit int) ([]tracking.Due, error) {
		q.Limit = limit
		return s.listDue(ctx, q)
	})
}

// claimedDue names what was handed out.
type claimedDue struct {
	kind tracking.DueKind
	tracking.Due
}

func (s *Store) listDue(ctx context.Context, q tracking.DueQuery) (list []tracking.Due, err error) {
	beyond := int64(math.MaxInt64)
	if !q.Beyond.IsZero() {
		beyond = q.Beyond.UnixMilli()
	}
	app, _ := s.apps.Number(q.App)
	var query string
	args := []any{q.Before.UnixMilli(), beyond, q.Limit}
	switch {
	case q.Kind == tracking.DueSilence:
		return s.silent(ctx, q)
	case q.Kind == tracking.DueTrips && q.App == "":
		query = selectDueTrips
	case q.Kind == tracking.DueTrips && q.TrackingID != "":
		query, args = selectDueTripTracked, append(args, app, q.TrackingID, q.Driver)
	case q.Kind == tracking.DueTrips && q.Driver == "":
		query, args = selectDueTripsInApp, append(args, app)
	case q.Kind == tracking.DueTrips:
		query, args = selectDueTripsOfDriver, append(args, app, q.Driver)
	case q.Kind == tracking.DueGeocodes && q.App == "":
		query = selectDueGeocodes
	case q.Kind == tracking.DueGeocodes:
		query, args = selectDueGeocodesInApp, append(args, app)
	case q.Kind == tracking.DueTasks && q.App == "":
		query = selectDueTasks
	case q.Kind == tracking.DueTasks:
		query, args = selectDueTasksInApp, append(args, app)
	case q.Kind == tracking.DueContacts && q.App == "":
		query = selectDueContacts
	case q.Kind == tracking.DueContacts:
		query, args = selectDueContactsInApp, append(args, app)
	case q.Kind == tracking.DueDeletions && q.App == "":
		query = selectDueDeletions
	case q.Kind == tracking.DueDeletions:
		query, args = selectDueDeletionsInApp, append(args, app)
	default:
		return nil, errors.New("sqlite: unknown kind of what is due")
	}
	err = s.read(ctx, func(ctx context.Context) error {
		var rows []dueRow
		if err := s.list(ctx, &rows, query, args...); err != nil {
			return err
		}
		list, err = convert(rows, func(r *dueRow) (tracking.Due, error) {
			return tracking.Due{App: s.appOf(r.App), Subject: tracking.Subject{Kind: r.Kind, ID: r.ID}}, nil
		})
		return err
	})
	return list, err
}
