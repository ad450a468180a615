package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/claims"
	"github.com/seed-8aba7b13/tracking/store/internal/nearby"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

const taskColumns = `
	t.seq, t.app, t.id, t.version, t.type, t.status, t.outcome, t.reason, t.time, t.notes, t.order_id,
	t.pickup_lng AS "pickup.lng", t.pickup_lat AS "pickup.lat", t.pickup_address AS "pickup.address",
	t.pickup_name AS "pickup.name", t.pickup_mobile AS "pickup.mobile",
	t.drop_lng AS "drop.lng", t.drop_lat AS "drop.lat", t.drop_address AS "drop.address",
	t.drop_name AS "drop.name", t.drop_mobile AS "drop.mobile",
	t.driver_id, t.person, t.auto_assigned, t.waiting, t.excluded, t.key, t.key_sum, t.geocode_at,
	t.link_generation, t.link_hash, t.link_made_at,
	t.created_at, t.updated_at, t.assigned_at, t.started_at, t.picked_up_at, t.completed_at,
	t.window_from, t.window_to, t.window_at, t.due_at, t.more`

type taskRow struct {
	Seq, App       int64
	ID             tracking.TaskID
	Version        int64
	Type           tracking.TaskType
	Status         tracking.TaskStatus
	Outcome        tracking.Outcome
	Reason         string
	Time           instant
	Notes          string
	OrderID        string `db:"order_id"`
	Pickup, Drop   placeRow
	DriverID       tracking.DriverID `db:"driver_id"`
	Person         string
	AutoAssigned   bool `db:"auto_assigned"`
	Waiting        bool
	Excluded       text
	Key            text
	KeySum         hash    `db:"key_sum"`
	GeocodeAt      instant `db:"geocode_at"`
	LinkGeneration int     `db:"link_generation"`
	LinkHash       hash    `db:"link_hash"`
	LinkMadeAt     instant `db:"link_made_at"`
	CreatedAt      instant `db:"created_at"`
	UpdatedAt      instant `db:"updated_at"`
	AssignedAt     instant `db:"assigned_at"`
	StartedAt      instant `db:"started_at"`
	PickedUpAt     instant `db:"picked_up_at"`
	CompletedAt    instant `db:"completed_at"`
	WindowFrom     instant `db:"window_from"`
	WindowTo       instant `db:"window_to"`
	WindowAt       int64   `db:"window_at"`
	DueAt          instant `db:"due_at"`
	More           text
}

func (r *taskRow) task() (tracking.Task, error) {
	excluded, err := fromJSON[[]tracking.DriverID](r.Excluded)
	if err != nil {
		return tracking.Task{}, err
	}
	t := tracking.Task{
		ID: r.ID, Type: r.Type, Status: r.Status, Outcome: r.Outcome, Reason: r.Reason, Time: r.Time.Time,
		Notes: r.Notes, OrderID: r.OrderID, Pickup: r.Pickup.place(), Drop: r.Drop.place(), DriverID: r.DriverID,
		Person: r.Person, AutoAssigned: r.AutoAssigned, Waiting: r.Waiting, Excluded: excluded, Key: string(r.Key),
		KeySum: r.KeySum.Hash, GeocodeAt: r.GeocodeAt.Time,
		Link:      tracking.Link{Generation: r.LinkGeneration, Hash: r.LinkHash.Hash, MadeAt: r.LinkMadeAt.Time},
		CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time, AssignedAt: r.AssignedAt.Time,
		StartedAt: r.StartedAt.Time, PickedUpAt: r.PickedUpAt.Time, CompletedAt: r.CompletedAt.Time, Seq: r.Seq,
		Version: r.Version,
		Window:  tracking.Window{From: r.WindowFrom.Time, To: r.WindowTo.Time}, DueAt: r.DueAt.Time,
	}
	return t, rows.AddMore(&t, string(r.More))
}

// indexedTask is what of a row decides what else has to be changed with it.
type indexedTask struct {
	taskRow
	LateFrom instant `db:"late_from"`
	Seeks    bool
	Personal bool
	Place    int64
}

// insertedColumns are those of a new row.
var insertedColumns = [...]string{
	"type", "outcome", "reason", "time", "notes",
	"pickup_lng", "pickup_lat", "pickup_address", "pickup_name", "pickup_mobile",
	"drop_lng", "drop_lat", "drop_address", "drop_name", "drop_mobile",
	"auto_assigned", "excluded", "key_sum", "link_generation", "link_made_at",
	"updated_at", "assigned_at", "started_at", "picked_up_at", "person", "more",
	"version", "app", "id", "created_at", "status", "order_id", "driver_id", "waiting", "key", "geocode_at", "link_hash",
	"completed_at", "due_at", "window_from", "window_to", "late_from", "seeks", "personal", "place",
	"subject",
}

// insertTask is the statement for a new row of which these are the values, of each of insertedColumns; it
// takes those that are not NULL, half of them as a rule: to bind the others costs as much as to bind these.
// There are a few such statements in all; of more than maxInserts it takes all.
func (w *writer) insertTask(values []any) (query string, given []any) {
	const maxInserts = 64
	var which uint64
	for i, v := range values {
		if v != nil {
			which |= 1 << i
		}
	}
	query, known := w.inserts[which]
	if !known && len(w.inserts) >= maxInserts {
		which = 1<<len(insertedColumns) - 1
		query, known = w.inserts[which]
	}
	if !known {
		var columns []string
		for i, column := range insertedColumns {
			if which&(1<<i) != 0 {
				columns = append(columns, column)
			}
		}
		query = "INSERT INTO tasks (" + strings.Join(columns, ", ") + ") VALUES (?" + strings.Repeat(", ?", len(columns)-1) + ")"
		w.inserts[which] = query
	}
	given = values[:0]
	for i, v := range values {
		if which&(1<<i) != 0 {
			given = append(given, v)
		}
	}
	return query, given
}

const (
	selectTaskIndexed = `
SELECT seq, version, created_at, status, order_id, driver_id, waiting, key, geocode_at, link_hash, completed_at,
	due_at, window_from, window_to, late_from, seeks, personal, place, more,
	pickup_address AS "pickup.address", pickup_name AS "pickup.name", pickup_mobile AS "pickup.mobile",
	drop_address AS "drop.address", drop_name AS "drop.name", drop_mobile AS "drop.mobile"
FROM tasks WHERE app = ? AND id = ?`

	// The columns that stand in no index, in the order of insertedColumns.
	updateTask = `
UPDATE tasks SET type = ?, outcome = ?, reason = ?, time = ?, notes = ?,
	pickup_lng = ?, pickup_lat = ?, pickup_address = ?, pickup_name = ?, pickup_mobile = ?,
	drop_lng = ?, drop_lat = ?, drop_address = ?, drop_name = ?, drop_mobile = ?,
	auto_assigned = ?, excluded = ?, key_sum = ?, link_generation = ?, link_made_at = ?,
	updated_at = ?, assigned_at = ?, started_at = ?, picked_up_at = ?, person = ?, more = ?,
	version = version + 1`
	updateTaskWhere = ` WHERE seq = ?`

	// Of those that are completed later, or go, the table keeps count by itself.
	countCompleted = `INSERT INTO completions VALUES (?, ? >> 19, ?, 1) ON CONFLICT DO UPDATE SET n = n + 1`

	selectTaskExists = `SELECT EXISTS (SELECT 1 FROM tasks WHERE app = ? AND id = ?)`
)

// putTask inserts or replaces a task's row. First is the version of a new one; subjects are those of the
// events that are appended with it.
func (x *tx) putTask(app int64, t *tracking.Task, first int64, subjects counted) (g tracking.Given, err error) {
	excluded, err := jsonValue(t.Excluded, len(t.Excluded))
	if err != nil {
		return g, err
	}
	more, err := rows.MoreOf(t)
	if err != nil {
		return g, err
	}
	pickup, drop := placeValues(t.Pickup), placeValues(t.Drop)
	args := make([]any, 0, len(insertedColumns))
	args = append(args, int64(t.Type), string(t.Outcome), t.Reason, millis(t.Time), t.Notes)
	args = append(args, pickup[:]...)
	args = append(args, drop[:]...)
	args = append(args, t.AutoAssigned, excluded, hashValue(t.KeySum), int64(t.Link.Generation), millis(t.Link.MadeAt),
		millis(t.UpdatedAt), millis(t.AssignedAt), millis(t.StartedAt), millis(t.PickedUpAt), t.Person,
		textValue(more))
	kept := rows.Task(*t)
	lateFrom := kept.LateFrom()

	if t.Version == 0 {
		place, err := x.place(t.CreatedAt.UnixMilli())
		if err != nil {
			return g, err
		}
		subject, err := subjects.ofTask(x, app, t.ID)
		if err != nil {
			return g, err
		}
		query, args := x.insertTask(append(args, first, app, string(t.ID), t.CreatedAt.UnixMilli(), string(t.Status),
			t.OrderID, string(t.DriverID), t.Waiting,
			textValue(t.Key), millis(t.GeocodeAt), hashValue(t.Link.Hash), millis(t.CompletedAt), millis(t.DueAt),
			millis(t.Window.From), millis(t.Window.To), millis(lateFrom), t.Seeks(), t.Personal(), place,
			subject))
		seq, err := x.insert(query, args...)
		if err == nil && t.Status == tracking.StatusCompleted && !kept.CompletedAt.IsZero() {
			err = x.exec(countCompleted, app, kept.CompletedAt.UnixMilli(), string(t.Outcome))
		}
		if err == nil {
			x.waits(app, t, false, t.CreatedAt, seq)
			x.putTerms(app, place, nil, &kept)
		}
		err = x.inserted(err, tracking.KindTask, string(t.ID), "key", selectTaskExists, app)
		return tracking.Given{Seq: seq, Version: first}, err
	}

	var old indexedTask
	if _, err := x.find(&old, selectTaskIndexed, app, t.ID); err != nil {
		return g, err
	}
	if err := rows.Expect(tracking.KindTask, t.ID, t.Version, old.Version); err != nil {
		return g, err
	}
	// One statement, with the indexed columns that have another value: each would cost its index.
	var u update
	u.begin(updateTask, args...)
	u.set(old.Status != t.Status, "status", t.Status)
	u.set(old.OrderID != t.OrderID, "order_id", t.OrderID)
	u.set(old.DriverID != t.DriverID, "driver_id", t.DriverID)
	u.set(old.Waiting != t.Waiting, "waiting", t.Waiting)
	u.set(string(old.Key) != t.Key, "key", textValue(t.Key))
	u.set(!old.GeocodeAt.Equal(rows.Time(t.GeocodeAt)), "geocode_at", millis(t.GeocodeAt))
	u.set(old.LinkHash.Hash != t.Link.Hash, "link_hash", hashValue(t.Link.Hash))
	u.set(!old.CompletedAt.Equal(rows.Time(t.CompletedAt)), "completed_at", millis(t.CompletedAt))
	u.set(!old.DueAt.Equal(rows.Time(t.DueAt)), "due_at", millis(t.DueAt))
	u.set(!old.WindowFrom.Equal(kept.Window.From), "window_from", millis(t.Window.From))
	u.set(!old.WindowTo.Equal(kept.Window.To), "window_to", millis(t.Window.To))
	u.set(!old.LateFrom.Equal(lateFrom), "late_from", millis(lateFrom))
	u.set(old.Seeks != t.Seeks(), "seeks", t.Seeks())
	u.set(old.Personal != t.Personal(), "personal", t.Personal())
	err = u.run(x, updateTaskWhere, old.Seq)
	if isConstraint(err) {
		return g, rows.UniqueConflict(tracking.KindTask, "key")
	}
	if err != nil {
		return g, err
	}
	x.waits(app, t, old.Waiting, old.CreatedAt.Time, old.Seq)
	was, err := old.task()
	if err != nil {
		return g, err
	}
	x.putTerms(app, old.Place, &was, &kept)
	return tracking.Given{Seq: old.Seq, Version: old.Version + 1}, nil
}

const (
	selectTask       = `SELECT` + taskColumns + ` FROM tasks t WHERE t.app = ? AND t.id = ?`
	selectTaskByKey  = `SELECT` + taskColumns + ` FROM tasks t WHERE t.app = ? AND t.key = ?`
	selectTaskByLink = `SELECT` + taskColumns + ` FROM tasks t WHERE t.link_hash = ?`
)

func (s *Store) task(ctx context.Context, query string, args ...any) (tracking.AppID, tracking.Task, error) {
	return one(ctx, s, func(r *taskRow) (int64, tracking.Task, error) {
		v, err := r.task()
		return r.App, v, err
	}, query, args...)
}

// Task implements [tracking.TaskReader].
func (s *Store) Task(ctx context.Context, app tracking.AppID, id tracking.TaskID) (tracking.Task, error) {
	n, _ := s.apps.Number(app)
	_, t, err := s.task(ctx, selectTask, n, id)
	return t, err
}

// TaskByKey implements [tracking.TaskReader].
func (s *Store) TaskByKey(ctx context.Context, app tracking.AppID, key string) (tracking.Task, error) {
	n, _ := s.apps.Number(app)
	_, t, err := s.task(ctx, selectTaskByKey, n, textValue(key))
	return t, err
}

// TaskByLink implements [tracking.TaskReader].
func (s *Store) TaskByLink(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Task, error) {
	return s.task(ctx, selectTaskByLink, hashValue(hash))
}

// cut shortens rows, of which one more than limit was asked for.
func cut[T any](rows []T, limit int) (page []T, more bool) {
	if len(rows) > limit {
		return rows[:limit], true
	}
	return rows, false
}

// convert makes values of rows; nil of none.
func convert[R, T any](rows []R, f func(*R) (T, error)) ([]T, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	list := make([]T, len(rows))
	for i := range rows {
		var err error
		if list[i], err = f(&rows[i]); err != nil {
			return nil, err
		}
	}
	return list, nil
}

const (
	selectTasksByID = `SELECT` + taskColumns + ` FROM json_each(?) j CROSS JOIN tasks t ON t.app = ? AND t.id = j.value`

	// What the index holds of waiting tasks, a chunk at a time.
	selectWaitingForIndex = `
SELECT app, id, created_at, seq, type, excluded, more,
	pickup_lng AS "pickup.lng", pickup_lat AS "pickup.lat", drop_lng AS "drop.lng", drop_lat AS "drop.lat"
FROM tasks INDEXED BY tasks_waiting WHERE waiting = 1 AND (created_at, seq) > (?, ?) ORDER BY created_at, seq LIMIT ?`
)

// WaitingApps implements [tracking.Store].
func (s *Store) WaitingApps(ctx context.Context) ([]tracking.AppID, error) {
	if err := s.indexed(ctx); err != nil {
		return nil, err
	}
	var list []tracking.AppID
	for n, part := range s.index.parts() {
		if part.Tasks() > 0 {
			list = append(list, s.appOf(n))
		}
	}
	slices.Sort(list)
	return list, nil
}

// Waiting implements [tracking.Store].
func (s *Store) Waiting(ctx context.Context, app tracking.AppID, f tracking.WaitingFilter) ([]tracking.Task, error) {
	look := func(part *nearby.Index, limit int) []tracking.TaskID {
		f.Limit = limit
		return part.Waiting(f)
	}
	return s.waiting(ctx, app, f.Limit, look, func(t tracking.Task) bool {
		excluded := f.Driver != "" && (slices.Contains(t.Excluded, f.Driver) ||
			!tracking.Driver{Properties: f.Properties}.Meets(t.Requires))
		return !excluded && (f.Near == nil || f.Within <= 0 || tracking.Distance(*f.Near, *t.Point()) <= f.Within)
	})
}

// Matches implements [tracking.Store].
func (s *Store) Matches(ctx context.Context, app tracking.AppID, q tracking.MatchQuery) ([]tracking.Task, error) {
	by := q.Claim
	q.Claim = tracking.Claim{}
	key := func(t tracking.Task) claimedTask { return claimedTask{app, t.ID} }
	return claims.Take(&s.matches, by, q.Limit, key, func(limit int) ([]tracking.Task, error) {
		look := func(part *nearby.Index, limit int) []tracking.TaskID {
			q.Limit = limit
			return part.Matches(q)
		}
		return s.waiting(ctx, app, limit, look, func(tracking.Task) bool { return true })
	})
}

// claimedTask names a task that was handed out.
type claimedTask struct {
	app tracking.AppID
	id  tracking.TaskID
}

// waiting reads the tasks that look finds in the index, oldest first, at most limit. Those that have
// changed meanwhile, so that they wait or fit no more, are left out; if there are any, it looks again,
// in the end for as many more, as nearest does.
func (s *Store) waiting(
	ctx context.Context, app tracking.AppID, limit int, look func(part *nearby.Index, limit int) []tracking.TaskID,
	fits func(tracking.Task) bool,
) (list []tracking.Task, err error) {
	if err := s.indexed(ctx); err != nil {
		return nil, err
	}
	n, ok := s.apps.Number(app)
	if !ok {
		return nil, nil
	}
	part := s.index.of(n)
	for looks, most := 1, limit; ; looks++ {
		ids := look(part, most)
		if len(ids) == 0 {
			return nil, nil
		}
		if list, err = s.tasksByID(ctx, n, ids); err != nil {
			return nil, err
		}
		list = slices.DeleteFunc(list, func(t tracking.Task) bool { return !t.Waiting || t.Point() == nil || !fits(t) })
		if len(list) == len(ids) || looks >= maxLooks && (len(list) >= limit || len(ids) < most) {
			break
		}
		if looks >= maxLooks {
			most += len(ids) - len(list)
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	slices.SortFunc(list, func(a, b tracking.Task) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Seq, b.Seq))
	})
	return list[:min(len(list), limit)], nil
}

// tasksByID reads tasks, all as of one moment, in no order.
func (s *Store) tasksByID(ctx context.Context, app int64, ids []tracking.TaskID) (list []tracking.Task, err error) {
	b, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	err = s.read(ctx, func(ctx context.Context) error {
		var rows []taskRow
		if err := s.list(ctx, &rows, selectTasksByID, string(b), app); err != nil {
			return err
		}
		list, err = convert(rows, (*taskRow).task)
		return err
	})
	return list, err
}
