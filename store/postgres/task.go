package postgres

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

const taskFields = `type, status, outcome, reason, time, notes, order_id,
	pickup_lng, pickup_lat, pickup_address, pickup_name, pickup_mobile,
	drop_lng, drop_lat, drop_address, drop_name, drop_mobile,
	driver_id, person, auto_assigned, waiting, excluded, key, key_sum, geocode_at,
	link_generation, link_hash, link_made_at,
	updated_at, assigned_at, started_at, picked_up_at, completed_at, window_from, window_to, due_at, more`

const taskColumns = ` app, id, seq, version, created_at, ` + taskFields

// taskSet are the columns that a row is given: also those that lists alone go by.
const taskSet = taskFields + `, late_from, seeks, terms, wait_cell, personal`

// allTerms is longer than any term: they are kept whole.
const allTerms = 100

// taskTypes are the types of these columns as parameters, and what is made of some of them on the way:
// there are no arrays of arrays.
const taskTypes = `int, text, text, text, bigint, text, text,
	float8, float8, text, text, text, float8, float8, text, text, text,
	text, text, bool, bool, text>text[], text, bytea, bigint, bigint, bytea, bigint,
	bigint, bigint, bigint, bigint, bigint, bigint, bigint, bigint, text>jsonb, bigint, bool, text>text[], bigint, bool`

const returnGiven = `RETURNING id, seq, version`

// Many tasks are written by one statement. New ones are numbered in their order.
var (
	taskArrays  = orderedArrays(2, `id, created_at, `+taskSet, `text, bigint, `+taskTypes)
	insertTasks = insertTasksAs(`(
		SELECT set_config('fresh.version', (last_version + 1)::text, true)::bigint FROM tracking.apps WHERE n = $1)`)
	// Whoever has a task of the same id and deletes it, or any other row that is to be inserted, is waited
	// for by the insert itself, which has looked by then which version none has had. So it is looked again
	// afterwards, and what may have been had is not given. That is seldom: its plan may be kept, be it for
	// tables that have grown since.
	renumberTasks = `UPDATE tracking.tasks SET version = ` + newVersion + `
		WHERE ` + newVersion + ` > current_setting('fresh.version')::bigint AND app = $1 AND id = ANY ($2)
		` + returnGiven
	// A key that is taken is no error, which would be in the server's log.
	insertTasksWithin = strings.TrimSuffix(insertTasks, returnGiven) +
		`ON CONFLICT (app, key) WHERE key IS NOT NULL DO NOTHING ` + returnGiven
	updateTasks = `UPDATE tracking.tasks t SET version = t.version + 1, (` + taskSet + `) = ROW (` +
		arrayValues(taskSet, taskTypes) + `) FROM ` + taskArrays + ` WHERE t.app = $1 AND t.id = u.id
		RETURNING t.id, t.seq, t.version`
)

func insertTasksAs(version string) string {
	return `INSERT INTO tracking.tasks (app, version, id, created_at, ` + taskSet + `)
		SELECT $1::int, ` + version + `, id, created_at, ` + arrayValues(taskSet, taskTypes) + ` FROM ` + taskArrays + ` ORDER BY o
		` + returnGiven
}

const (
	lockTasks = eachOfIDs + `SELECT id, version FROM tracking.tasks` + lockedByID

	// releaseTask takes the unique value from a row that is to be replaced.
	releaseTask = `UPDATE tracking.tasks SET key = NULL WHERE app = $1 AND id = $2`
)

// taskValueCount is how many columns taskValues are.
var taskValueCount = 3 + strings.Count(taskSet, ",")

// taskValues are the id, the time of creation and the columns of taskSet.
func taskValues(t *tracking.Task) ([]any, error) {
	more, err := rows.MoreOf(t)
	if err != nil {
		return nil, err
	}
	kept := rows.Task(*t)
	args := append(make([]any, 0, taskValueCount),
		string(t.ID), t.CreatedAt.UnixMilli(),
		int(t.Type), string(t.Status), string(t.Outcome), t.Reason, millis(t.Time), t.Notes, t.OrderID)
	args = appendPlace(appendPlace(args, t.Pickup), t.Drop)
	return append(args, string(t.DriverID), t.Person, t.AutoAssigned, t.Waiting, arrayValue(texts(t.Excluded)),
		textValue(t.Key), hashValue(t.KeySum), millis(t.GeocodeAt), t.Link.Generation, hashValue(t.Link.Hash),
		millis(t.Link.MadeAt), millis(t.UpdatedAt), millis(t.AssignedAt), millis(t.StartedAt), millis(t.PickedUpAt),
		millis(t.CompletedAt), millis(t.Window.From), millis(t.Window.To), millis(t.DueAt), textValue(more),
		millis(kept.LateFrom()), kept.Seeks(), arrayValue(rows.Terms(&kept, allTerms)), waitCell(t), kept.Personal()), nil
}

// waitCell is where a driver is looked for, for a task that waits for one.
func waitCell(t *tracking.Task) *int64 {
	if p := t.Point(); t.Waiting && p != nil {
		return new(cellOf(*p))
	}
	return nil
}

// writeTasks queues tasks, all new or all in place of old ones. Given is what that gives to each.
func (x *tx) writeTasks(sql string, app int32, list []*tracking.Task, given []*tracking.Given) error {
	if len(list) == 0 {
		return nil
	}
	values := make([][]any, len(list))
	for i, t := range list {
		v, err := taskValues(t)
		if err != nil {
			return err
		}
		values[i] = v
	}
	x.givingTasks(list, given, sql, append([]any{app}, columns(values)...)...)
	return nil
}

// givingTasks adds a statement that writes some of the tasks and returns what that has given each.
func (x *tx) givingTasks(list []*tracking.Task, given []*tracking.Given, sql string, args ...any) {
	type row struct {
		id string
		tracking.Given
	}
	var of map[string]*tracking.Given
	queueEach(x, func(r row) {
		if of == nil {
			of = make(map[string]*tracking.Given, len(list))
			for i, t := range list {
				of[string(t.ID)] = given[i]
			}
		}
		*of[r.id] = r.Given
	}, func(found pgx.CollectableRow) (r row, err error) {
		err = found.Scan(&r.id, &r.Seq, &r.Version)
		return r, err
	}, sql, args...)
}

// appTask is a task of some application.
type appTask struct {
	tracking.Task
	app int32
}

// scanTask reads taskColumns.
func scanTask(row pgx.CollectableRow) (appTask, error) {
	var (
		v                                             appTask
		t                                             = &v.Task
		created, at, geocode, made, updated, assigned instant
		started, pickedUp, completed, from, to, due   instant
		pickup, drop                                  placeRow
		key                                           text
		sum, link                                     hash
		more                                          *string
	)
	dest := []any{
		&v.app, &t.ID, &t.Seq, &t.Version, &created, &t.Type, &t.Status, &t.Outcome, &t.Reason, &at, &t.Notes, &t.OrderID,
	}
	dest = append(append(dest, pickup.dest()...), drop.dest()...)
	if err := row.Scan(append(dest, &t.DriverID, &t.Person, &t.AutoAssigned, &t.Waiting, &t.Excluded, &key, &sum, &geocode,
		&t.Link.Generation, &link, &made, &updated, &assigned, &started, &pickedUp, &completed, &from, &to, &due,
		&more)...); err != nil {
		return v, err
	}
	t.CreatedAt, t.Time, t.GeocodeAt, t.UpdatedAt = created.Time, at.Time, geocode.Time, updated.Time
	t.AssignedAt, t.StartedAt, t.PickedUpAt, t.CompletedAt = assigned.Time, started.Time, pickedUp.Time, completed.Time
	t.Window.From, t.Window.To, t.DueAt = from.Time, to.Time, due.Time
	t.Pickup, t.Drop, t.Key, t.KeySum = pickup.place(), drop.place(), string(key), sum.Hash
	t.Link.Hash, t.Link.MadeAt = link.Hash, made.Time
	if more == nil {
		return v, nil
	}
	return v, rows.AddMore(t, *more)
}

// plainTask reads taskColumns for who knows the application.
func plainTask(row pgx.CollectableRow) (tracking.Task, error) {
	t, err := scanTask(row)
	return t.Task, err
}

const (
	selectTasks      = `SELECT` + taskColumns + ` FROM tracking.tasks WHERE `
	selectTask       = selectTasks + `app = $1 AND id = $2`
	selectTaskByKey  = selectTasks + `app = $1 AND key = $2`
	selectTaskByLink = selectTasks + `link_hash = $1`
)

// Task implements [tracking.TaskReader].
func (s *Store) Task(ctx context.Context, app tracking.AppID, id tracking.TaskID) (tracking.Task, error) {
	return oneIn(ctx, s, app, plainTask, selectTask, string(id))
}

// TaskByKey implements [tracking.TaskReader].
func (s *Store) TaskByKey(ctx context.Context, app tracking.AppID, key string) (tracking.Task, error) {
	return oneIn(ctx, s, app, plainTask, selectTaskByKey, textValue(key))
}

// TaskByLink implements [tracking.TaskReader].
func (s *Store) TaskByLink(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Task, error) {
	t, err := one(ctx, s, scanTask, selectTaskByLink, hashValue(hash))
	if err != nil {
		return "", tracking.Task{}, err
	}
	app, err := s.appOf(ctx, t.app)
	return app, t.Task, err
}

// Lists of tasks. Each filter has an index that holds its page in order, but for those by completion.
// A few statuses are as many walks of it, which are merged: asked for as one list they would be sorted.
const (
	tasksAndDriver     = ` AND driver_id = %d AND driver_id <> ''`
	tasksAndPerson     = ` AND person = %d`
	tasksAndOrder      = ` AND order_id = %d AND order_id <> ''`
	tasksAndStatus     = ` AND status = %d`
	tasksAndStatuses   = ` AND status = ANY (%d)`
	tasksAndCompletion = ` AND completed_at >= %d`
	newestFirst        = ` ORDER BY created_at DESC, seq DESC`
	tasksWithTerms     = ` AND terms @> %d::text[]`
	tasksCreatedFrom   = ` AND created_at >= %d`
	tasksCreatedTo     = ` AND created_at < %d`
	tasksWindowFrom    = ` AND window_at >= %d`
	tasksWindowTo      = ` AND window_at < %d`
	tasksLate          = ` AND late_from IS NOT NULL AND late_from <= %d`
	tasksSeeking       = ` AND seeks`
	soonestFirst       = ` ORDER BY window_at, created_at, seq`
	walk               = `(` + selectTasks + `app = $1`
	windowWalk         = `(SELECT` + taskColumns + `, window_at FROM tracking.tasks WHERE app = $1`
	windowWalks        = `SELECT` + taskColumns + ` FROM (`
	walkEnd            = ` LIMIT $2::bigint + $3::bigint)`
	tasksUnion         = ` UNION ALL `
	pageEnd            = ` LIMIT $2 OFFSET $3`
)

// maxWalks is as many statuses as there are.
const maxWalks = 4

// tasksQuery is the query for a filter. What is found by its terms may be walked in order, where they
// are common, or looked up and sorted, where they are rare: the server knows how many have them.
func tasksQuery(f tracking.TaskFilter) (string, []any) {
	q := where{args: []any{nil, f.Limit + 1, f.Offset()}}
	statuses := slices.Compact(slices.Sorted(slices.Values(f.Status)))
	few := f.OrderID == "" && f.CompletedSince.IsZero() && 1 < len(statuses) && len(statuses) <= maxWalks
	if f.DriverID != "" {
		q.and(tasksAndDriver, string(f.DriverID))
	}
	if f.Person != "" {
		q.and(tasksAndPerson, f.Person)
	}
	q.finds(f)
	order := newestFirst
	if f.Sort == tracking.SortWindow {
		order = soonestFirst
	}
	if few {
		begin := walk
		if f.Sort == tracking.SortWindow {
			begin = windowWalk
		}
		var sql string
		for i, status := range statuses {
			if i > 0 {
				sql += tasksUnion
			}
			q.args = append(q.args, string(status))
			sql += begin + q.sql + param(tasksAndStatus, len(q.args)) + order + walkEnd
		}
		if f.Sort == tracking.SortWindow {
			sql = windowWalks + sql + `) AS walks`
		}
		return sql + order + pageEnd, q.args[1:]
	}
	if f.OrderID != "" {
		q.and(tasksAndOrder, f.OrderID)
	}
	if !f.CompletedSince.IsZero() {
		q.and(tasksAndCompletion, rows.Ceil(f.CompletedSince))
	}
	switch len(statuses) {
	case 0:
	case 1:
		q.and(tasksAndStatus, string(statuses[0]))
	default:
		q.and(tasksAndStatuses, texts(statuses))
	}
	return selectTasks + `app = $1` + q.sql + order + pageEnd, q.args[1:]
}

// noWindow stands for the time of a task without one.
const noWindow = int64(math.MaxInt64)

// finds adds what a dispatcher looks for.
func (q *where) finds(f tracking.TaskFilter) {
	for i, terms := range wanted(f) {
		if i == 0 {
			q.and(tasksWithTerms, terms)
			continue
		}
		q.args = append(q.args, terms) // instead of the first
		q.sql = strings.Replace(q.sql, ` AND terms @> `, ` AND (terms @> `, 1) +
			param(` OR terms @> %d::text[])`, len(q.args))
	}
	for _, limit := range []struct {
		condition string
		at        time.Time
	}{
		{tasksCreatedFrom, f.CreatedFrom}, {tasksCreatedTo, f.CreatedTo}, {tasksWindowFrom, f.WindowFrom},
		{tasksWindowTo, f.WindowTo},
	} {
		if !limit.at.IsZero() {
			q.and(limit.condition, rows.Ceil(limit.at))
		}
	}
	if !f.WindowFrom.IsZero() || !f.WindowTo.IsZero() {
		q.and(tasksWindowTo, noWindow)
	}
	if f.Late {
		q.and(tasksLate, f.Now.UnixMilli())
	}
	if f.Waiting {
		q.sql += tasksSeeking
	}
	m := f.After
	switch {
	case m == nil:
	case f.Sort == tracking.SortWindow:
		window := noWindow
		if !m.Window.IsZero() {
			window = m.Window.UnixMilli()
		}
		q.and(` AND (window_at, created_at, seq) > (%d::bigint`, window)
		q.and(`, %d::bigint`, m.CreatedAt.UnixMilli())
		q.and(`, %d::bigint)`, m.Seq)
	default:
		q.and(` AND (created_at, seq) < (%d::bigint`, m.CreatedAt.UnixMilli())
		q.and(`, %d::bigint)`, m.Seq)
	}
}

// wanted are the terms that are asked for: all of one of the lists.
func wanted(f tracking.TaskFilter) [][]string {
	lists, _ := rows.Wanted(f, allTerms)
	return lists
}

const countTasks = `
SELECT 'created' AS what, '' AS outcome, count(*) AS n FROM tracking.tasks WHERE app = $1 AND status = 'created'
UNION ALL SELECT 'waiting', '', count(*) FROM tracking.tasks WHERE app = $1 AND seeks
UNION ALL SELECT 'assigned', '', count(*) FROM tracking.tasks WHERE app = $1 AND status = 'assigned'
UNION ALL SELECT 'in_progress', '', count(*) FROM tracking.tasks WHERE app = $1 AND status = 'in_progress'
UNION ALL SELECT 'late', '', count(*) FROM tracking.tasks WHERE app = $1 AND late_from IS NOT NULL AND late_from <= $2
UNION ALL SELECT 'completed', outcome, count(*) FROM tracking.tasks
	WHERE app = $1 AND completed_at IS NOT NULL AND completed_at >= $3 AND status = 'completed' GROUP BY outcome`

func scanCount(row pgx.CollectableRow) (c rows.Count, err error) {
	err = row.Scan(&c.What, &c.Outcome, &c.N)
	return c, err
}

// TaskCounts implements [tracking.TaskReader].
func (s *Store) TaskCounts(
	ctx context.Context, app tracking.AppID, q tracking.CountQuery,
) (n tracking.TaskCounts, err error) {
	counts, err := listIn(ctx, s, app, scanCount, countTasks, q.Now.UnixMilli(), rows.Ceil(q.CompletedSince))
	if err != nil {
		return n, err
	}
	return rows.TaskCounts(counts), nil
}

const (
	// From each application to the next, as the indices begin with it.
	selectStats = `
SELECT 'created' AS what, '' AS name, sum(c.n)::bigint AS n, NULL::bigint AS at
	FROM tracking.apps a, LATERAL (
		SELECT count(*) AS n FROM tracking.tasks t WHERE t.app = a.n AND t.status = 'created') c
UNION ALL SELECT 'assigned', '', sum(c.n)::bigint, NULL FROM tracking.apps a, LATERAL (
	SELECT count(*) AS n FROM tracking.tasks t WHERE t.app = a.n AND t.status = 'assigned') c
UNION ALL SELECT 'in_progress', '', sum(c.n)::bigint, NULL FROM tracking.apps a, LATERAL (
	SELECT count(*) AS n FROM tracking.tasks t WHERE t.app = a.n AND t.status = 'in_progress') c
UNION ALL SELECT 'waiting', '', count(*), NULL FROM tracking.tasks WHERE waiting
UNION ALL SELECT 'oldest', '', 0, min(at) FROM tracking.apps a, LATERAL (
	SELECT coalesce((t.more->>'since')::bigint, t.created_at) AS at FROM tracking.tasks t
	WHERE t.app = a.n AND t.waiting ORDER BY t.created_at, t.seq LIMIT 1000) c
UNION ALL SELECT 'late', '', sum(c.n)::bigint, NULL FROM tracking.apps a, LATERAL (
	SELECT count(*) AS n FROM tracking.tasks t WHERE t.app = a.n AND t.late_from IS NOT NULL AND t.late_from <= $1) c
UNION ALL SELECT 'on_duty', '', sum(c.n)::bigint, NULL FROM tracking.apps a, LATERAL (
	SELECT count(*) AS n FROM tracking.drivers d WHERE d.app = a.n AND d.available) c
UNION ALL SELECT 'silent', '', sum(c.n)::bigint, NULL FROM tracking.apps a, LATERAL (
	SELECT count(*) AS n FROM tracking.drivers d WHERE d.app = a.n AND d.available AND d.silent) c`

	// The table holds nothing but what is counted.
	selectUndelivered = `
SELECT CASE d.state WHEN 2 THEN 'dead' ELSE 'undelivered' END, d.outbox, d.many, e.recorded_at
FROM (SELECT app, outbox, state, count(*) AS many, min(event) AS first
	FROM tracking.deliveries GROUP BY app, outbox, state) d
JOIN tracking.events e ON e.app = d.app AND e.n = d.first`
)

func scanStat(row pgx.CollectableRow) (r rows.Stat, err error) {
	var n, at *int64
	if err = row.Scan(&r.What, &r.Name, &n, &at); err != nil {
		return r, err
	}
	if n != nil {
		r.N = int(*n)
	}
	if at != nil {
		r.At = time.UnixMilli(*at).UTC()
	}
	return r, nil
}

// Stats implements [tracking.Store].
func (s *Store) Stats(ctx context.Context, now time.Time) (tracking.Stats, error) {
	tasks, err := list(ctx, s, scanStat, selectStats, now.UnixMilli())
	if err != nil {
		return tracking.Stats{}, err
	}
	events, err := list(ctx, s, scanStat, selectUndelivered)
	if err != nil {
		return tracking.Stats{}, err
	}
	n := rows.Stats(append(tasks, events...))
	n.Queue = s.recorder.queue() + s.committer.queue()
	return n, nil
}

// Tasks implements [tracking.TaskReader].
func (s *Store) Tasks(
	ctx context.Context, app tracking.AppID, f tracking.TaskFilter,
) (found []tracking.Task, more bool, err error) {
	if _, asks := rows.Wanted(f, allTerms); asks && len(wanted(f)) == 0 {
		return nil, false, ctx.Err()
	}
	query, args := tasksQuery(f)
	found, err = listIn(ctx, s, app, plainTask, query, args...)
	found, more = page(found, f.Limit)
	return found, more, err
}
