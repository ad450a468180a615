package sqlite

import (
	"context"
	"encoding/json"
	"math"
	"slices"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

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
// that q.CompletedSince is in; how many there are later is counted as they are written.
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
