package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Rows in the order of [tracking.RowKinds]. Each walks an index that has that order: none is sorted.
const (
	allApps  = `SELECT n, id, last_version, last_notice FROM apps WHERE ?1 IN ('', id) ORDER BY id`
	allMemos = `SELECT name, value FROM memos ORDER BY name`

	allDrivers = `
SELECT` + driverColumns + `, p.open, d.purged_notice FROM drivers d INDEXED BY drivers_by_age
	LEFT JOIN positions p ON p.driver = d.seq
WHERE d.app = ?1 AND ?2 IN ('', d.id) ORDER BY d.created_at, d.seq`
	allInvites = `
SELECT` + inviteColumns + ` FROM drivers d INDEXED BY drivers_by_age CROSS JOIN invites i ON i.driver = d.seq
WHERE d.app = ?1 AND ?2 IN ('', d.id) ORDER BY d.created_at, d.seq`
	allRequests = `
SELECT` + requestColumns + ` FROM drivers d INDEXED BY drivers_by_age CROSS JOIN requests r ON r.driver = d.seq
WHERE d.app = ?1 AND ?2 IN ('', d.id) ORDER BY d.created_at, d.seq, r.tracking_id`
	allKeys  = `SELECT` + keyColumns + ` FROM keys WHERE app = ? ORDER BY id`
	allTrips = `SELECT` + tripColumns + ` FROM trips t INDEXED BY trips_by_age WHERE t.app = ? ORDER BY t.created_at, t.seq`

	allNotices = `SELECT id, kind, event_id, task_id, tracking_id, time FROM notices WHERE driver = ? ORDER BY id`

	// By kind and id, of which those of tasks stand in two indices.
	subjectsBefore = selectSubjects + ` AND s.kind < 'task'` + countsOn + ` ORDER BY kind, id`
	subjectsOfTask = selectSubjects + ` AND s.kind = 'task'` + countsOn + `
UNION ALL SELECT s.kind, t.id, s.last_seq FROM tasks t INDEXED BY tasks_by_id CROSS JOIN subjects s ON s.n = t.subject
WHERE t.app = ?1` + countsOn + `
ORDER BY id`
	subjectsBehind = selectSubjects + ` AND s.kind > 'task'` + countsOn + ` ORDER BY kind, id`
	selectSubjects = `
SELECT s.kind, s.id, s.last_seq FROM subjects s INDEXED BY subjects_by_name WHERE s.app = ?1 AND s.named = 1`
	countsOn = ` AND s.last_seq > coalesce(
	(SELECT e.seq FROM events e INDEXED BY events_by_subject WHERE e.subject = s.n ORDER BY e.n DESC LIMIT 1), 0)`
	allEvents = `
SELECT` + eventColumns + `, (
	SELECT json_group_array(json_object('outbox', outbox, 'state', state, 'attempts', attempts, 'retry', retry_at)
		ORDER BY outbox)
	FROM deliveries d WHERE d.subject = e.subject AND d.event = e.n) AS deliveries
FROM events e INDEXED BY events_by_app JOIN subjects s ON s.n = e.subject WHERE e.app = ? ORDER BY e.n`
	allFiles = `SELECT id, task, type, put_at, loose, data FROM files INDEXED BY files_by_id WHERE app = ? ORDER BY id`
)

// Rows implements [tracking.Store]: all are of the moment at which it begins. It has a connection of
// its own. What is written meanwhile stays in the log beside the file until it is through. A store in
// memory writes nothing meanwhile.
func (s *Store) Rows(ctx context.Context, q tracking.RowQuery) iter.Seq2[tracking.Row, error] {
	return func(yield func(tracking.Row, error) bool) {
		if err := s.rows(ctx, q, func(r tracking.Row) bool { return yield(r, nil) }); err != nil {
			yield(tracking.Row{}, err)
		}
	}
}

// errEnough ends a walk whose caller wants no more.
var errEnough = &tracking.Error{Code: tracking.ErrInternal, Message: "enough"}

func (s *Store) rows(ctx context.Context, q tracking.RowQuery, yield func(tracking.Row) bool) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.life.RLock()
	defer s.life.RUnlock()
	if s.closed {
		return rows.ErrClosed
	}
	walked, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	if s.gate != nil {
		s.gate.RLock()
		defer s.gate.RUnlock()
	}
	err = s.walk(walked, q, func(r tracking.Row) error {
		if !yield(r) {
			return errEnough
		}
		return nil
	})
	switch {
	case err == errEnough:
		return nil
	case err != nil && ctx.Err() == nil && s.closing.Err() != nil:
		return rows.ErrClosed
	case isDamage(err):
		s.halt(err)
	}
	return failure(ctx, err)
}

// walk sends the rows of one moment.
func (s *Store) walk(ctx context.Context, q tracking.RowQuery, send func(tracking.Row) error) error {
	db := s.readers
	if s.path != "" {
		own, err := s.reading().open(1)
		if err != nil {
			return err
		}
		defer own.Close()
		db = own
	}
	conn, err := db.Connx(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.ExecContext(ctx, `BEGIN DEFERRED`); err != nil {
		return err
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), `ROLLBACK`)
	_, changes, err := readJournal(ctx, conn)
	if err != nil {
		return err
	}
	x := &export{conn, q, send, changes}
	if err := x.store(ctx); err != nil {
		return err
	}
	var apps []exportedApp
	if err := conn.SelectContext(ctx, &apps, allApps, q.App); err != nil {
		return err
	}
	for _, a := range apps {
		if err := x.application(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// export is a walk over rows, by a connection in a transaction.
type export struct {
	conn    *sqlx.Conn
	query   tracking.RowQuery
	send    func(tracking.Row) error
	changes map[int64][]moved // of drivers, in the journal
}

type exportedApp struct {
	N          int64
	ID         tracking.AppID
	LastNotice int64 `db:"last_notice"`
	Version    int64 `db:"last_version"`
}

type exportedDriver struct {
	driverToWrite
	PurgedNotice int64 `db:"purged_notice"`
}

type exportedSubject struct {
	Kind    tracking.SubjectKind
	ID      string
	LastSeq int64 `db:"last_seq"`
}

type exportedEvent struct {
	eventRow
	Deliveries text
}

// deliveryJSON is a delivery in the answer of allEvents.
type deliveryJSON struct {
	Outbox   string
	State    int
	Attempts int
	Retry    *int64
}

func (r *exportedEvent) row() (tracking.RowValue, error) {
	e, err := r.event()
	if err != nil {
		return nil, err
	}
	v := tracking.EventRow{Event: e}
	var list []deliveryJSON
	if err := json.Unmarshal([]byte(r.Deliveries), &list); err != nil {
		return nil, err
	}
	for _, d := range list {
		row := tracking.DeliveryRow{Outbox: d.Outbox, Dead: d.State == stateDead, Attempts: d.Attempts}
		if d.Retry != nil && !row.Dead {
			row.RetryAt = fromMillis(*d.Retry)
		}
		v.Deliveries = append(v.Deliveries, row)
	}
	return v, nil
}

type exportedFile struct {
	ID    string
	Task  tracking.TaskID
	Type  string
	PutAt instant `db:"put_at"`
	Loose bool
	Data  []byte
}

// sendEach sends what a query finds, one row after another.
func sendEach[R any](ctx context.Context, x *export, app tracking.AppID, value func(*R) (tracking.RowValue, error),
	query string, args ...any,
) error {
	found, err := x.conn.QueryxContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer found.Close()
	for found.Next() {
		var r R
		if err := found.StructScan(&r); err != nil {
			return err
		}
		v, err := value(&r)
		if err != nil {
			return err
		}
		if err := x.send(tracking.Row{App: app, Value: v}); err != nil {
			return err
		}
	}
	return found.Err()
}

// store sends what is of no application.
func (x *export) store(ctx context.Context) error {
	if x.query.Wants(tracking.RowSecret) {
		var h hash
		if err := x.conn.GetContext(ctx, &h, selectSecret); err != nil {
			return err
		}
		if err := x.send(tracking.Row{Value: tracking.StoreSecret{Value: h.Hash}}); err != nil {
			return err
		}
	}
	if !x.query.Wants(tracking.RowMemo) {
		return nil
	}
	type memo struct {
		Name  string
		Value []byte
	}
	return sendEach(ctx, x, "", func(r *memo) (tracking.RowValue, error) {
		return tracking.Memo{Name: r.Name, Value: tracking.Secret(r.Value)}, nil
	}, allMemos)
}

// as is a converter of rows as one of values.
func as[R, V any](convert func(*R) (V, error)) func(*R) (tracking.RowValue, error) {
	return func(r *R) (tracking.RowValue, error) {
		v, err := convert(r)
		if err != nil {
			return nil, err
		}
		return any(v).(tracking.RowValue), nil
	}
}

// exportedOwner is a driver whose fixes and notices are to be sent.
type exportedOwner struct {
	seq    int64
	id     tracking.DriverID
	person string
	open   openFixes
}

func (x *export) application(ctx context.Context, a exportedApp) error {
	if x.query.Wants(tracking.RowApplication) {
		marks := tracking.Marks{Version: a.Version, Notice: a.LastNotice}
		if err := x.send(tracking.Row{App: a.ID, Value: marks}); err != nil {
			return err
		}
	}
	var owners []exportedOwner
	steps := []struct {
		kinds []tracking.RowKind
		run   func() error
	}{
		{[]tracking.RowKind{tracking.RowDriver, tracking.RowFix, tracking.RowNotice}, func() (err error) {
			owners, err = x.drivers(ctx, a)
			return err
		}},
		{[]tracking.RowKind{tracking.RowInvite}, func() error {
			return sendEach(ctx, x, a.ID, func(r *inviteRow) (tracking.RowValue, error) { return r.invite(), nil },
				allInvites, a.N, x.query.Driver)
		}},
		{[]tracking.RowKind{tracking.RowRequest}, func() error {
			return sendEach(ctx, x, a.ID, as((*requestRow).request), allRequests, a.N, x.query.Driver)
		}},
		{[]tracking.RowKind{tracking.RowKey}, func() error {
			return sendEach(ctx, x, a.ID, as((*keyRow).key), allKeys, a.N)
		}},
		{[]tracking.RowKind{tracking.RowTask}, func() error {
			query, args := allTasks(a.N)
			return sendEach(ctx, x, a.ID, as((*taskRow).task), query, args...)
		}},
		{[]tracking.RowKind{tracking.RowTrip}, func() error {
			return sendEach(ctx, x, a.ID, as((*tripRow).trip), allTrips, a.N)
		}},
		{[]tracking.RowKind{tracking.RowFix}, func() error {
			return eachOwner(owners, func(o exportedOwner) error {
				return x.fixes(ctx, a, o)
			})
		}},
		{[]tracking.RowKind{tracking.RowNotice}, func() error {
			return eachOwner(owners, func(o exportedOwner) error {
				return x.notices(ctx, a.ID, o)
			})
		}},
		{[]tracking.RowKind{tracking.RowSubject}, func() error {
			for _, query := range []string{subjectsBefore, subjectsOfTask, subjectsBehind} {
				err := sendEach(ctx, x, a.ID, func(r *exportedSubject) (tracking.RowValue, error) {
					return tracking.SubjectRow{Subject: tracking.Subject{Kind: r.Kind, ID: r.ID}, Seq: r.LastSeq}, nil
				}, query, a.N)
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{[]tracking.RowKind{tracking.RowEvent}, func() error {
			return sendEach(ctx, x, a.ID, (*exportedEvent).row, allEvents, a.N)
		}},
		{[]tracking.RowKind{tracking.RowFile}, func() error {
			return sendEach(ctx, x, a.ID, func(r *exportedFile) (tracking.RowValue, error) {
				return tracking.FileRow{ID: r.ID, File: tracking.File{
					TaskID: r.Task, Type: r.Type, At: r.PutAt.Time, Data: r.Data,
				}, Named: !r.Loose}, nil
			}, allFiles, a.N)
		}},
	}
	for _, step := range steps {
		for _, kind := range step.kinds {
			if !x.query.Wants(kind) {
				continue
			}
			if err := step.run(); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

func eachOwner(owners []exportedOwner, f func(exportedOwner) error) error {
	for _, o := range owners {
		if err := f(o); err != nil {
			return err
		}
	}
	return nil
}

// drivers sends them, if they are wanted, and lists them.
func (x *export) drivers(ctx context.Context, a exportedApp) (owners []exportedOwner, err error) {
	found, err := x.conn.QueryxContext(ctx, allDrivers, a.N, x.query.Driver)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var r exportedDriver
		if err := found.StructScan(&r); err != nil {
			return nil, err
		}
		d, err := r.state()
		if err != nil {
			return nil, err
		}
		d.place, d.open, err = applyMoved(x.changes[d.Seq], d.place, &d.Position, d.open)
		if err != nil {
			return nil, err
		}
		owners = append(owners, exportedOwner{r.Seq, r.ID, r.Person, openFixes{d.place, d.open}})
		if !x.query.Wants(tracking.RowDriver) {
			continue
		}
		row := tracking.DriverRow{Driver: d.Driver, LastNotice: r.LastNotice, PurgedNotice: r.PurgedNotice}
		if err := x.send(tracking.Row{App: a.ID, Value: row}); err != nil {
			return nil, err
		}
	}
	return owners, found.Err()
}

func (x *export) fixes(ctx context.Context, a exportedApp, o exportedOwner) error {
	found, err := x.conn.QueryContext(ctx, selectFixes, a.N, o.id, "", atOnce, endless)
	if err != nil {
		return err
	}
	var sent error
	err = readPacked(found, o.open, false, atOnce, endless, func(f tracking.KeptFix) bool {
		sent = x.send(tracking.Row{App: a.ID, Value: tracking.FixRow{DriverID: o.id, KeptFix: f}})
		return sent == nil
	})
	return cmp.Or(sent, err)
}

func (x *export) notices(ctx context.Context, app tracking.AppID, o exportedOwner) error {
	return sendEach(ctx, x, app, func(r *noticeRow) (tracking.RowValue, error) {
		return tracking.Notice{
			ID: r.ID.Int64, DriverID: o.id, Person: o.person, Kind: tracking.NoticeKind(r.Kind), EventID: string(r.EventID),
			TaskID: tracking.TaskID(r.TaskID), TrackingID: tracking.TrackingID(r.TrackingID), Time: r.Time.Time,
		}, nil
	}, allNotices, o.seq)
}
