package sqlite

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/seed-8aba7b13/tracking"
)

const taskColumns = `
	t.seq, t.app, t.id, t.version, t.type, t.status, t.outcome, t.reason, t.time, t.notes, t.order_id,
	t.pickup_lng AS "pickup.lng", t.pickup_lat AS "pickup.lat", t.pickup_address AS "pickup.address",
	t.pickup_name AS "pickup.name", t.pickup_mobile AS "pickup.mobile",
	t.drop_lng AS "drop.lng", t.drop_lat AS "drop.lat", t.drop_address AS "drop.address",
	t.drop_name AS "drop.name", t.drop_mobile AS "drop.mobile",
	t.driver_id, t.auto_assigned, t.waiting, t.excluded, t.key, t.key_sum, t.geocode_at,
	t.link_generation, t.link_hash, t.link_made_at,
	t.created_at, t.updated_at, t.assigned_at, t.started_at, t.picked_up_at, t.completed_at`

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
	AutoAssigned   bool              `db:"auto_assigned"`
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
}

func (r *taskRow) task() (tracking.Task, error) {
	excluded, err := fromJSON[[]tracking.DriverID](r.Excluded)
	return tracking.Task{
		ID: r.ID, Type: r.Type, Status: r.Status, Outcome: r.Outcome, Reason: r.Reason, Time: r.Time.Time, Notes: r.Notes, OrderID: r.OrderID,
		Pickup: r.Pickup.place(), Drop: r.Drop.place(),
		DriverID: r.DriverID, AutoAssigned: r.AutoAssigned, Waiting: r.Waiting, Excluded: excluded,
		Key: string(r.Key), KeySum: r.KeySum.Hash, GeocodeAt: r.GeocodeAt.Time,
		Link:      tracking.Link{Generation: r.LinkGeneration, Hash: r.LinkHash.Hash, MadeAt: r.LinkMadeAt.Time},
		CreatedAt: r.CreatedAt.Time, UpdatedAt: r.UpdatedAt.Time, AssignedAt: r.AssignedAt.Time, StartedAt: r.StartedAt.Time,
		PickedUpAt: r.PickedUpAt.Time, CompletedAt: r.CompletedAt.Time,
		Seq: r.Seq, Version: r.Version,
	}, err
}

const (
	insertTask = `
INSERT INTO tasks (type, outcome, reason, time, notes,
	pickup_lng, pickup_lat, pickup_address, pickup_name, pickup_mobile,
	drop_lng, drop_lat, drop_address, drop_name, drop_mobile,
	auto_assigned, excluded, key_sum, link_generation, link_made_at,
	updated_at, assigned_at, started_at, picked_up_at,
	app, id, version, created_at, status, order_id, driver_id, waiting, key, geocode_at, link_hash, completed_at)
VALUES (?, ?, ?, ?, ?,  ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?,  ?, ?, ?, ?,  ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

	selectTaskIndexed = `
SELECT seq, version, status, order_id, driver_id, waiting, key, geocode_at, link_hash, completed_at FROM tasks WHERE app = ? AND id = ?`

	// The columns that stand in no index, in the order of insertTask.
	updateTask = `
UPDATE tasks SET type = ?, outcome = ?, reason = ?, time = ?, notes = ?,
	pickup_lng = ?, pickup_lat = ?, pickup_address = ?, pickup_name = ?, pickup_mobile = ?,
	drop_lng = ?, drop_lat = ?, drop_address = ?, drop_name = ?, drop_mobile = ?,
	auto_assigned = ?, excluded = ?, key_sum = ?, link_generation = ?, link_made_at = ?,
	updated_at = ?, assigned_at = ?, started_at = ?, picked_up_at = ?, version = version + 1`
	updateTaskWhere = ` WHERE seq = ?`

	selectTaskExists = `SELECT EXISTS (SELECT 1 FROM tasks WHERE app = ? AND id = ?)`
)

func (x *tx) putTask(app int64, t *tracking.Task) error {
	excluded, err := jsonValue(t.Excluded, len(t.Excluded), func(yield func(string) bool) {
		for _, d := range t.Excluded {
			if !yield(string(d)) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	pickup, drop := placeValues(t.Pickup), placeValues(t.Drop)
	args := make([]any, 0, 40)
	args = append(args, t.Type, t.Outcome, t.Reason, millis(t.Time), t.Notes)
	args = append(args, pickup[:]...)
	args = append(args, drop[:]...)
	args = append(args, t.AutoAssigned, excluded, hashValue(t.KeySum), t.Link.Generation, millis(t.Link.MadeAt),
		millis(t.UpdatedAt), millis(t.AssignedAt), millis(t.StartedAt), millis(t.PickedUpAt))

	if t.Version == 0 {
		_, err := x.insert(insertTask, append(args, app, t.ID, t.CreatedAt.UnixMilli(), t.Status, t.OrderID, t.DriverID, t.Waiting,
			textValue(t.Key), millis(t.GeocodeAt), hashValue(t.Link.Hash), millis(t.CompletedAt))...)
		if !isConstraint(err) {
			return err
		}
		var exists bool
		if err := x.get(&exists, selectTaskExists, app, t.ID); err != nil {
			return err
		}
		if exists {
			return conflict(tracking.KindTask, string(t.ID))
		}
		return taken(tracking.KindTask, "key")
	}

	var old taskRow
	found, err := x.find(&old, selectTaskIndexed, app, t.ID)
	if err != nil {
		return err
	}
	if !found || old.Version != t.Version {
		return conflict(tracking.KindTask, string(t.ID))
	}
	var u update
	u.begin(updateTask, args...)
	u.set(old.Status != t.Status, "status", t.Status)
	u.set(old.OrderID != t.OrderID, "order_id", t.OrderID)
	u.set(old.DriverID != t.DriverID, "driver_id", t.DriverID)
	u.set(old.Waiting != t.Waiting, "waiting", t.Waiting)
	u.set(string(old.Key) != t.Key, "key", textValue(t.Key))
	u.set(!old.GeocodeAt.Equal(whole(t.GeocodeAt)), "geocode_at", millis(t.GeocodeAt))
	u.set(old.LinkHash.Hash != t.Link.Hash, "link_hash", hashValue(t.Link.Hash))
	u.set(!old.CompletedAt.Equal(whole(t.CompletedAt)), "completed_at", millis(t.CompletedAt))
	err = u.run(x, updateTaskWhere, old.Seq)
	if isConstraint(err) {
		return taken(tracking.KindTask, "key")
	}
	return err
}

const (
	selectTask       = `SELECT` + taskColumns + ` FROM tasks t WHERE t.app = ? AND t.id = ?`
	selectTaskByKey  = `SELECT` + taskColumns + ` FROM tasks t WHERE t.app = ? AND t.key = ?`
	selectTaskByLink = `SELECT` + taskColumns + ` FROM tasks t WHERE t.link_hash = ?`
)

func (s *Store) task(ctx context.Context, query string, args ...any) (app tracking.AppID, t tracking.Task, err error) {
	err = s.read(ctx, func(ctx context.Context) error {
		var r taskRow
		if err := s.get(ctx, &r, query, args...); err != nil {
			return err
		}
		app = s.apps.id(r.App)
		t, err = r.task()
		return err
	})
	if err != nil {
		return "", tracking.Task{}, err
	}
	return app, t, nil
}

// Task implements [tracking.TaskReader].
func (s *Store) Task(ctx context.Context, app tracking.AppID, id tracking.TaskID) (tracking.Task, error) {
	n, _ := s.apps.number(app)
	_, t, err := s.task(ctx, selectTask, n, id)
	return t, err
}

// TaskByKey implements [tracking.TaskReader].
func (s *Store) TaskByKey(ctx context.Context, app tracking.AppID, key string) (tracking.Task, error) {
	n, _ := s.apps.number(app)
	_, t, err := s.task(ctx, selectTaskByKey, n, textValue(key))
	return t, err
}

// TaskByLink implements [tracking.TaskReader].
func (s *Store) TaskByLink(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Task, error) {
	return s.task(ctx, selectTaskByLink, hashValue(hash))
}

// Lists of tasks. Each reads by one index, which INDEXED BY names: a page must not depend on what the planner believes of the table.
// Where a few statuses are asked for, SQLite merges one ordered walk for each of them.
const (
	selectTasks             = `SELECT` + taskColumns + ` FROM tasks t INDEXED BY `
	tasksByAge              = `tasks_by_age WHERE t.app = ?`
	tasksByOrder            = `tasks_by_order WHERE t.app = ? AND t.order_id = ? AND t.order_id <> ''`
	tasksByDriver           = `tasks_by_driver WHERE t.app = ? AND t.driver_id = ? AND t.driver_id <> ''`
	tasksByStatus           = `tasks_by_status WHERE t.app = ? AND t.status = ?`
	tasksByDriverStatus     = `tasks_by_driver_status WHERE t.app = ? AND t.driver_id = ? AND t.driver_id <> '' AND t.status = ?`
	tasksByCompletion       = `tasks_by_completion WHERE t.app = ? AND t.completed_at IS NOT NULL AND t.completed_at >= ?`
	tasksByDriverCompletion = `tasks_by_driver_completion WHERE t.app = ? AND t.driver_id = ? AND t.driver_id <> '' AND t.completed_at IS NOT NULL AND t.completed_at >= ?`
	tasksAndDriver          = ` AND t.driver_id = ?`
	tasksAndCompleted       = ` AND t.completed_at >= ?`
	tasksAndStatus          = ` AND t.status IN (SELECT value FROM json_each(?))`
	tasksUnion              = ` UNION ALL `
	tasksNewestFirst        = ` ORDER BY created_at DESC, seq DESC LIMIT ? OFFSET ?`

	maxWalks = 4 // as many as there are statuses
)

// tasksQuery is the query for a filter: the narrowest index, and the rest as conditions.
func tasksQuery(app int64, f tracking.TaskFilter) (query string, args []any) {
	statuses := slices.Compact(slices.Sorted(slices.Values(f.Status)))
	since := ceilMillis(f.CompletedSince)
	completed := !f.CompletedSince.IsZero()

	if f.OrderID == "" && !completed && 0 < len(statuses) && len(statuses) <= maxWalks {
		for i, status := range statuses {
			if i > 0 {
				query += tasksUnion
			}
			if f.DriverID != "" {
				query, args = query+selectTasks+tasksByDriverStatus, append(args, app, f.DriverID, status)
			} else {
				query, args = query+selectTasks+tasksByStatus, append(args, app, status)
			}
		}
		return query + tasksNewestFirst, append(args, f.Limit+1, f.Offset())
	}

	switch {
	case f.OrderID != "":
		query, args = selectTasks+tasksByOrder, []any{app, f.OrderID}
		if f.DriverID != "" {
			query, args = query+tasksAndDriver, append(args, f.DriverID)
		}
		if completed {
			query, args = query+tasksAndCompleted, append(args, since)
		}
	case completed && f.DriverID != "":
		query, args = selectTasks+tasksByDriverCompletion, []any{app, f.DriverID, since}
	case completed:
		query, args = selectTasks+tasksByCompletion, []any{app, since}
	case f.DriverID != "":
		query, args = selectTasks+tasksByDriver, []any{app, f.DriverID}
	default:
		query, args = selectTasks+tasksByAge, []any{app}
	}
	if len(statuses) > 0 {
		b, _ := json.Marshal(statuses) // of texts: cannot fail
		query, args = query+tasksAndStatus, append(args, string(b))
	}
	return query + tasksNewestFirst, append(args, f.Limit+1, f.Offset())
}

// Tasks implements [tracking.TaskReader].
func (s *Store) Tasks(ctx context.Context, app tracking.AppID, f tracking.TaskFilter) (list []tracking.Task, more bool, err error) {
	n, _ := s.apps.number(app)
	query, args := tasksQuery(n, f)
	err = s.read(ctx, func(ctx context.Context) error {
		var rows []taskRow
		if err := s.list(ctx, &rows, query, args...); err != nil {
			return err
		}
		rows, more = cut(rows, f.Limit)
		list, err = convert(rows, (*taskRow).task)
		return err
	})
	if err != nil {
		return nil, false, err
	}
	return list, more, nil
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
	selectWaiting      = `SELECT` + taskColumns + ` FROM tasks t INDEXED BY tasks_waiting WHERE t.waiting = 1 AND (t.created_at, t.seq) > (?, ?) ORDER BY t.created_at, t.seq LIMIT ?`
	selectWaitingInApp = `SELECT` + taskColumns + ` FROM tasks t INDEXED BY tasks_waiting_by_app WHERE t.app = ? AND t.waiting = 1 AND (t.created_at, t.seq) > (?, ?) ORDER BY t.created_at, t.seq LIMIT ?`
)

// Waiting implements [tracking.Store].
func (s *Store) Waiting(ctx context.Context, app tracking.AppID, after tracking.Cursor, n int) (list []tracking.AppTask, err error) {
	query, args := selectWaiting, []any{after.CreatedAt.UnixMilli(), after.Seq, n}
	if app != "" {
		number, _ := s.apps.number(app)
		query, args = selectWaitingInApp, append([]any{number}, args...)
	}
	err = s.read(ctx, func(ctx context.Context) error {
		var rows []taskRow
		if err := s.list(ctx, &rows, query, args...); err != nil {
			return err
		}
		list, err = convert(rows, func(r *taskRow) (tracking.AppTask, error) {
			t, err := r.task()
			return tracking.AppTask{App: s.apps.id(r.App), Task: t}, err
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}
