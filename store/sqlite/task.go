package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
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

// Lists of tasks. Each reads by one index, which INDEXED BY names: a page must not depend on what
// the planner believes of the table. Where several statuses are asked for, or any, SQLite merges ordered
// walks: one for each status in the order of windows, and two in that of creation, as tasks without a
// window lie in another index than those with one.
const (
	selectTasks         = `SELECT` + taskColumns + ` FROM tasks t INDEXED BY `
	tasksByOrder        = `tasks_by_order WHERE t.app = ? AND t.order_id = ? AND t.order_id <> ''`
	tasksByDriver       = `tasks_by_driver WHERE t.app = ? AND t.driver_id = ? AND t.driver_id <> ''`
	tasksByDriverStatus = `tasks_by_driver_status
		WHERE t.app = ? AND t.driver_id = ? AND t.driver_id <> '' AND t.status = ?`
	tasksByCompletion = `tasks_by_completion
		WHERE t.app = ? AND t.completed_at IS NOT NULL AND t.completed_at >= ?`
	tasksByDriverCompletion = `tasks_by_driver_completion
		WHERE t.app = ? AND t.driver_id = ? AND t.driver_id <> '' AND t.completed_at IS NOT NULL
		AND t.completed_at >= ?`
	tasksOwed    = `tasks_owed WHERE t.app = ? AND t.late_from IS NOT NULL`
	tasksSeeking = `tasks_seeking WHERE t.app = ? AND t.seeks = 1`

	// The greatest number stands for the window of a task without one: see noWindow.
	tasksUnwindowed     = `tasks_by_status_window WHERE t.app = ? AND t.status = ? AND t.window_at = 9223372036854775807`
	tasksWindowed       = `tasks_windowed WHERE t.app = ? AND t.status = ? AND t.window_at < 9223372036854775807`
	tasksOther          = `tasks_other WHERE t.app = ? AND t.status NOT IN ('created', 'assigned', 'in_progress', 'completed')`
	tasksByStatusWindow = `tasks_by_status_window WHERE t.app = ? AND t.status = ?`
	tasksOtherByWindow  = `tasks_other_by_window
		WHERE t.app = ? AND t.status NOT IN ('created', 'assigned', 'in_progress', 'completed')`

	selectTasksByTerm = `SELECT` + taskColumns +
		` FROM task_terms w CROSS JOIN tasks t INDEXED BY tasks_by_place ON t.place = w.rowid`

	// What walks merge are numbers alone, and rows are read of the page. They come in its order.
	selectTasksOf     = `SELECT` + taskColumns + ` FROM (`
	walkTasks         = `SELECT t.seq, t.created_at FROM tasks t INDEXED BY `
	walkTasksByWindow = `SELECT t.seq, t.window_at, t.created_at FROM tasks t INDEXED BY `
	tasksOfWalks      = `) w CROSS JOIN tasks t ON t.seq = w.seq`

	tasksUnion        = ` UNION ALL `
	tasksIn           = ` AND t.status IN (SELECT value FROM json_each(?))`
	tasksNewestFirst  = ` ORDER BY created_at DESC, seq DESC LIMIT ? OFFSET ?`
	tasksOldestFirst  = ` ORDER BY created_at, seq LIMIT -1` // without a limit SQLite would leave out the order
	tasksAsFound      = ` ORDER BY w.rowid DESC LIMIT ? OFFSET ?`
	tasksByWindowTime = ` ORDER BY window_at, created_at, seq LIMIT ? OFFSET ?`
)

// maxWalks is how many statuses have a walk each. Of more most are none that tasks have, and those are
// found together.
const maxWalks = 8

// statuses are those that tasks have; what else a store is given is found too.
var statuses = []tracking.TaskStatus{
	tracking.StatusCreated, tracking.StatusAssigned, tracking.StatusInProgress, tracking.StatusCompleted,
}

// walks reports whether a filter is answered by merged walks: those that ask for nothing that has an
// index of its own.
func walks(f tracking.TaskFilter) bool {
	return f.OrderID == "" && f.CompletedSince.IsZero() && !f.Late && !f.Waiting && f.Query == "" &&
		len(f.Properties) == 0 && (f.DriverID == "" || len(f.Status) > 0)
}

// walksQuery is the query for such a filter, in an order whose values are given too.
func walksQuery(app int64, f tracking.TaskFilter, order string, in ...any) (query string, args []any) {
	byWindow := f.Sort == tracking.SortWindow
	windowed := !f.WindowFrom.IsZero() || !f.WindowTo.IsZero()
	begin, other := walkTasks, tasksOther
	if byWindow {
		begin, other = walkTasksByWindow, tasksOtherByWindow
	}
	rest, values := tasksAnd(f, false, false)
	between := selectTasksOf
	walk := func(part string, more ...any) {
		query += between + begin + part + rest
		args = append(append(append(args, app), more...), values...)
		between = tasksUnion
	}
	list := statuses
	if len(f.Status) == 0 {
		walk(other)
	} else {
		list = slices.Compact(slices.Sorted(slices.Values(f.Status)))
	}
	if len(list) > maxWalks {
		known := func(s tracking.TaskStatus) bool { return slices.Contains(statuses, s) }
		rare := inStatuses(slices.DeleteFunc(slices.Clone(list), known))
		list = slices.DeleteFunc(list, func(s tracking.TaskStatus) bool { return !known(s) })
		if f.DriverID != "" {
			walk(tasksByDriver+tasksIn, f.DriverID, rare)
		} else {
			walk(other+tasksIn, rare)
		}
	}
	for _, status := range list {
		switch {
		case f.DriverID != "":
			walk(tasksByDriverStatus, f.DriverID, status)
		case byWindow:
			walk(tasksByStatusWindow, status)
		default:
			walk(tasksWindowed, status)
			if !windowed {
				walk(tasksUnwindowed, status)
			}
		}
	}
	return query + order + tasksOfWalks, append(args, in...)
}

// allTasks is the query for all tasks of an application, the oldest first.
func allTasks(app int64) (query string, args []any) {
	return walksQuery(app, tracking.TaskFilter{}, tasksOldestFirst)
}

func inStatuses(list []tracking.TaskStatus) string {
	b, _ := json.Marshal(list) // of texts: cannot fail
	return string(b)
}

// tasksQuery is the query for a filter: the narrowest index, and the rest as conditions.
func tasksQuery(app int64, f tracking.TaskFilter) (query string, args []any) {
	byWindow := f.Sort == tracking.SortWindow
	named := f.Query != "" || len(f.Properties) > 0
	order := tasksNewestFirst
	switch {
	case byWindow:
		order = tasksByWindowTime
	case named:
		order = tasksAsFound
	}
	if walks(f) {
		return walksQuery(app, f, order, f.Limit+1, f.Offset())
	}
	from := func(part string, values ...any) { query, args = query+part, append(args, values...) }

	since := rows.Ceil(f.CompletedSince)
	completed, driver := !f.CompletedSince.IsZero(), f.DriverID != ""
	switch {
	case f.OrderID != "" && !named:
		from(selectTasks+tasksByOrder, app, f.OrderID)
	case named:
		low, high := int64(math.MinInt64), int64(math.MaxInt64)
		if !f.CreatedFrom.IsZero() {
			low = rows.Ceil(f.CreatedFrom) << termBits
		}
		if !f.CreatedTo.IsZero() {
			high = lastPlace(rows.Ceil(f.CreatedTo))
		}
		if f.After != nil && !byWindow {
			high = min(high, lastPlace(f.After.CreatedAt.UnixMilli()))
		}
		from(selectTasksByTerm+` WHERE w.task_terms MATCH ? AND w.rowid <= ? AND w.rowid >= ? AND t.app = ?`,
			match(app, f), high, low, app)
	case completed && driver:
		from(selectTasks+tasksByDriverCompletion, app, f.DriverID, since)
		completed, driver = false, false
	case completed:
		from(selectTasks+tasksByCompletion, app, since)
		completed = false
	case f.Late:
		from(selectTasks+tasksOwed, app)
	case f.Waiting:
		from(selectTasks+tasksSeeking, app)
	default:
		from(selectTasks+tasksByDriver, app, f.DriverID)
		driver = false
	}
	rest, values := tasksAnd(f, driver, completed)
	from(rest, values...)
	if named && f.OrderID != "" {
		from(` AND t.order_id = ?`, f.OrderID)
	}
	if len(f.Status) > 0 {
		from(tasksIn, inStatuses(f.Status))
	}
	return query + order, append(args, f.Limit+1, f.Offset())
}

// tasksAnd are the conditions that an index does not keep; driver and completed tell whether those
// of that kind are among them. What an order id leads to has all others too.
func tasksAnd(f tracking.TaskFilter, driver, completed bool) (query string, args []any) {
	and := func(given bool, part string, values ...any) {
		if given {
			query, args = query+" AND "+part, append(args, values...)
		}
	}
	and(driver, `t.driver_id = ?`, f.DriverID)
	and(completed, `t.completed_at >= ?`, rows.Ceil(f.CompletedSince))
	and(f.Person != "", `t.person = ?`, f.Person)
	and(!f.CreatedFrom.IsZero(), `t.created_at >= ?`, rows.Ceil(f.CreatedFrom))
	byWindow, byMark := f.Sort == tracking.SortWindow, markIsCloser(f)
	and(!f.CreatedTo.IsZero() && (byWindow || !byMark), `t.created_at < ?`, rows.Ceil(f.CreatedTo))
	and(!f.WindowFrom.IsZero() && !(byWindow && byMark), `t.window_at >= ?`, rows.Ceil(f.WindowFrom))
	and(!f.WindowTo.IsZero(), `t.window_at < ?`, rows.Ceil(f.WindowTo))
	and(!(f.WindowFrom.IsZero() && f.WindowTo.IsZero()), `t.window_at < ?`, int64(noWindow))
	and(f.Late, `t.late_from <= ?`, f.Now.UnixMilli())
	and(f.Waiting, `t.seeks = 1`)
	if m := f.After; byMark {
		at, seq := m.CreatedAt.UnixMilli(), m.Seq
		window := int64(noWindow)
		if !m.Window.IsZero() {
			window = m.Window.UnixMilli()
		}
		and(byWindow, `(t.window_at, t.created_at, t.seq) > (?, ?, ?)`, window, at, seq)
		and(!byWindow, `(t.created_at, t.seq) < (?, ?)`, at, seq)
	}
	return query, args
}

// markIsCloser reports whether a filter's mark leaves out all that CreatedTo does, or WindowFrom where the
// order is that of the windows. Else these leave out all that the mark does. Told of both, SQLite may go
// by the wider one, and pass all that lies between on the way to each page.
func markIsCloser(f tracking.TaskFilter) bool {
	switch m := f.After; {
	case m == nil:
		return false
	case f.Sort == tracking.SortWindow:
		return f.WindowFrom.IsZero() || m.Window.IsZero() || m.Window.UnixMilli() >= rows.Ceil(f.WindowFrom)
	default:
		return f.CreatedTo.IsZero() || m.CreatedAt.UnixMilli() < rows.Ceil(f.CreatedTo)
	}
}

// noWindow stands for the time of a task without one.
const noWindow = math.MaxInt64

// Tasks implements [tracking.TaskReader].
func (s *Store) Tasks(
	ctx context.Context, app tracking.AppID, f tracking.TaskFilter,
) (list []tracking.Task, more bool, err error) {
	n, _ := s.apps.Number(app)
	if (f.Query != "" || len(f.Properties) > 0) && match(n, f) == "" {
		return nil, false, nil
	}
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

const countTasks = `
SELECT 'created' AS what, '' AS outcome, count(*) AS n
	FROM tasks INDEXED BY tasks_by_status_window WHERE app = ?1 AND status = 'created'
UNION ALL SELECT 'waiting', '', count(*) FROM tasks INDEXED BY tasks_seeking WHERE app = ?1 AND seeks = 1
UNION ALL SELECT 'assigned', '', count(*)
	FROM tasks INDEXED BY tasks_by_status_window WHERE app = ?1 AND status = 'assigned'
UNION ALL SELECT 'in_progress', '', count(*)
	FROM tasks INDEXED BY tasks_by_status_window WHERE app = ?1 AND status = 'in_progress'
UNION ALL SELECT 'late', '', count(*)
	FROM tasks INDEXED BY tasks_late WHERE app = ?1 AND late_from IS NOT NULL AND late_from <= ?2
UNION ALL SELECT 'completed', outcome, sum(n) FROM (
	SELECT outcome, n FROM completions WHERE app = ?1 AND span > ?3 >> 19
	UNION ALL SELECT outcome, 1 FROM tasks INDEXED BY tasks_by_completion
		WHERE app = ?1 AND completed_at IS NOT NULL AND completed_at >= ?3 AND completed_at < ((?3 >> 19) + 1) << 19
			AND status = 'completed') GROUP BY outcome`

// TaskCounts implements [tracking.TaskReader]. Of the completed ones it reads those of the nine minutes
// that q.CompletedSince is in; how many there are later is kept by triggers.
func (s *Store) TaskCounts(
	ctx context.Context, app tracking.AppID, q tracking.CountQuery,
) (n tracking.TaskCounts, err error) {
	number, _ := s.apps.Number(app)
	var counts []rows.Count
	err = s.read(ctx, func(ctx context.Context) error {
		return s.list(ctx, &counts, countTasks, number, q.Now.UnixMilli(), rows.Ceil(q.CompletedSince))
	})
	if err != nil {
		return n, err
	}
	return rows.TaskCounts(counts), nil
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
