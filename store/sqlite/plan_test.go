package sqlite_test

import (
	"database/sql"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jmoiron/sqlx"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// plan is how SQLite means to answer a query.
func plan(t testing.TB, db *sqlx.DB, q sqlite.Query) []string {
	t.Helper()
	rows, err := db.Query("EXPLAIN QUERY PLAN "+q.SQL, q.Args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, q.SQL)
	}
	defer rows.Close()
	var list []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		list = append(list, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// checkPlan sees to it that no table is read as a whole (a is the applications that a query goes
// through, ready and later the outboxes, heads the oldest of each application; deliveries holds
// nothing but what is counted of it, w what walks lead to one by one) and, but for what sorts says,
// nothing is sorted: a page costs its length.
func checkPlan(t testing.TB, db *sqlx.DB, q sqlite.Query, sorts bool) {
	t.Helper()
	p := plan(t, db, q)
	for _, line := range p {
		scan := strings.HasPrefix(line, "SCAN") && !strings.HasPrefix(line+" ", "SCAN a ") &&
			!slices.Contains([]string{"SCAN ready", "SCAN later", "SCAN heads", "SCAN CONSTANT ROW"}, line) &&
			!slices.Contains([]string{"SCAN deliveries", "SCAN deliveries USING COVERING INDEX deliveries_dead"}, line) &&
			!(line == "SCAN w" && slices.Contains(p, "CO-ROUTINE w")) &&
			!strings.HasPrefix(line, "SCAN (subquery") && // what it reads stands in lines of its own
			!strings.Contains(line, "VIRTUAL TABLE")
		if scan || !sorts && strings.Contains(line, "USE TEMP B-TREE") {
			t.Errorf("%s:\n\t%s\nof\n\t%s", line, q.SQL, strings.Join(p, "\n\t"))
		}
	}
}

// seeks tells for each index that a query goes along by what is given last of the place where it begins:
// the number of a parameter, or 0 for anything else.
func seeks(t testing.TB, db *sqlx.DB, q sqlite.Query) (list []int) {
	t.Helper()
	type operation struct {
		Opcode     string
		P1, P2, P3 int
		P4         sql.NullString
	}
	var program []operation
	if err := db.Unsafe().Select(&program, "EXPLAIN "+q.SQL, q.Args...); err != nil {
		t.Fatalf("%v\n%s", err, q.SQL)
	}
	holds := map[int]int{} // parameters by register; what stands at the end is done first
	for range 2 {
		list = nil
		for _, o := range program {
			switch o.Opcode {
			case "Variable":
				holds[o.P2] = o.P1
			case "Integer", "Int64":
				holds[o.P2] = 0
			case "SeekGT", "SeekGE", "SeekLT", "SeekLE":
				if n, err := strconv.Atoi(o.P4.String); err == nil {
					list = append(list, holds[o.P3+n-1])
				}
			}
		}
	}
	return list
}

// TestBoundsAreWalkedTo sees to it that of two bounds on one side a query begins at the closer one, and
// does not pass all that lies between: SQLite goes by the first that is written.
func TestBoundsAreWalkedTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracking.db")
	closeStore(t, open(t, path, nil))
	db := raw(t, path)
	const latest, longest = 3, 4 // parameters of what is due: what a retry and a lease can be
	for name, want := range map[string][]int{"LeaseEvents due": {0, latest, longest}, "LeaseEvents late": {latest}} {
		if got := seeks(t, db, sqlite.Lookups()[name]); !slices.Equal(got, want) {
			t.Errorf("%s begins at parameters %d, want %d", name, got, want)
		}
	}

	page := tracking.Page{Number: 1, Limit: 10}
	created := tracking.TaskFilter{Page: page, CreatedFrom: start.Add(-time.Hour)}
	window := tracking.TaskFilter{Page: page, Sort: tracking.SortWindow, WindowTo: start.Add(time.Hour)}
	behind := func(f tracking.TaskFilter, by time.Duration) tracking.TaskFilter {
		f.After = &tracking.TaskMark{Sort: f.Sort, CreatedAt: start.Add(by), Seq: 7}
		if f.Sort == tracking.SortWindow {
			f.After.Window = f.After.CreatedAt
		}
		return f
	}
	until := func(f tracking.TaskFilter) tracking.TaskFilter { f.CreatedTo = start; return f }
	from := func(f tracking.TaskFilter) tracking.TaskFilter { f.WindowFrom = start; return f }
	for name, q := range map[string][2]tracking.TaskFilter{
		"a mark before the last creation": {until(behind(created, -1)), behind(created, -1)},
		"a mark at the last creation":     {until(behind(created, 0)), until(created)},
		"a mark after the first window":   {from(behind(window, 1)), behind(window, 1)},
		"a mark before the first window":  {from(behind(window, -time.Millisecond)), from(window)},
	} {
		if got, want := sqlite.TasksQuery(q[0]), sqlite.TasksQuery(q[1]); !cmp.Equal(got, want) {
			t.Errorf("%s: (-want +got)\n%s", name, cmp.Diff(want, got))
		}
	}
}

// TestMarkIsCloser goes through all places of a mark and a bound beside a task's: the closer one of both
// leaves out what both leave out.
func TestMarkIsCloser(t *testing.T) {
	at := func(n int) time.Time {
		if n < 0 {
			return time.Time{}
		}
		return time.UnixMilli(int64(1000 + n))
	}
	const places = 4
	for mark := range places {
		for bound := -1; bound < places; bound++ {
			created := tracking.TaskFilter{After: &tracking.TaskMark{CreatedAt: at(mark), Seq: 7}, CreatedTo: at(bound)}
			window := tracking.TaskFilter{
				Sort:       tracking.SortWindow,
				After:      &tracking.TaskMark{Sort: tracking.SortWindow, Window: at(mark), CreatedAt: at(0), Seq: 7},
				WindowFrom: at(bound),
			}
			for task := range places {
				for _, seq := range []int64{6, 7, 8} {
					behind := task < mark || task == mark && seq < 7
					within := bound < 0 || task < bound
					one := within
					if sqlite.MarkIsCloser(created) {
						one = behind
					}
					if one != (behind && within) {
						t.Errorf("created at %d, number %d: %t by one of mark %d and bound %d", task, seq, one, mark, bound)
					}
					behind = task > mark || task == mark && seq > 7
					within = bound < 0 || task >= bound
					if one = within; sqlite.MarkIsCloser(window) {
						one = behind
					}
					if one != (behind && within) {
						t.Errorf("window at %d, number %d: %t by one of mark %d and bound %d", task, seq, one, mark, bound)
					}
				}
			}
		}
	}
	if sqlite.MarkIsCloser(tracking.TaskFilter{CreatedTo: at(1)}) {
		t.Error("a mark that is not there is closer")
	}
	none := &tracking.TaskMark{Sort: tracking.SortWindow, CreatedAt: at(0), Seq: 7} // tasks without a window come last
	if !sqlite.MarkIsCloser(tracking.TaskFilter{Sort: tracking.SortWindow, After: none, WindowFrom: at(3)}) {
		t.Error("the mark of a task without a window is not closer than the beginning of one")
	}
}

// TestQueryPlans asks SQLite which index each query goes by.
func TestQueryPlans(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "tracking.db"), nil)
	defer closeStore(t, s)
	path := filepath.Join(t.TempDir(), "copy.db")
	if err := s.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	db := raw(t, path)

	page := tracking.Page{Number: 2, Limit: 10}
	yes := true
	subject := tracking.Subject{Kind: tracking.KindTask, ID: "a"}
	one := []tracking.TaskStatus{tracking.StatusAssigned}
	two := []tracking.TaskStatus{tracking.StatusAssigned, tracking.StatusInProgress}
	mark := tracking.TaskMark{Sort: tracking.SortCreated, CreatedAt: start, Seq: 7}
	windowMark := tracking.TaskMark{Sort: tracking.SortWindow, Window: start, CreatedAt: start, Seq: 7}
	for name, q := range map[string]sqlite.Query{
		"tasks":                 sqlite.TasksQuery(tracking.TaskFilter{Page: page}),
		"tasks of a driver":     sqlite.TasksQuery(tracking.TaskFilter{Page: page, DriverID: "a"}),
		"tasks of a status":     sqlite.TasksQuery(tracking.TaskFilter{Page: page, Status: one}),
		"tasks of two statuses": sqlite.TasksQuery(tracking.TaskFilter{Page: page, Status: two}),
		"tasks of a driver and a status": sqlite.TasksQuery(tracking.TaskFilter{
			Page: page, DriverID: "a", Status: one,
		}),
		"tasks of a driver and two statuses": sqlite.TasksQuery(tracking.TaskFilter{
			Page: page, DriverID: "a", Status: two,
		}),
		"tasks of a status that there is not": sqlite.TasksQuery(tracking.TaskFilter{
			Page: page, Status: []tracking.TaskStatus{tracking.StatusAssigned, "lost"},
		}),
		"tasks of a driver and of such a status": sqlite.TasksQuery(tracking.TaskFilter{
			Page: page, DriverID: "a", Status: []tracking.TaskStatus{tracking.StatusAssigned, "lost"},
		}),
		"tasks with a window": sqlite.TasksQuery(tracking.TaskFilter{Page: page, WindowFrom: start, Status: two}),
		"tasks of an order":   sqlite.TasksQuery(tracking.TaskFilter{Page: page, OrderID: "a"}),
		"tasks of an order, a driver and status": sqlite.TasksQuery(tracking.TaskFilter{
			Page: page, OrderID: "a", DriverID: "a", Status: two,
		}),
		"tasks by words":                sqlite.TasksQuery(tracking.TaskFilter{Page: page, Query: "an de"}),
		"tasks by a number":             sqlite.TasksQuery(tracking.TaskFilter{Page: page, Query: "1234"}),
		"tasks by words, behind a mark": sqlite.TasksQuery(tracking.TaskFilter{Page: page, Query: "an", After: &mark}),
		"tasks by properties and a driver": sqlite.TasksQuery(tracking.TaskFilter{
			Page: page, DriverID: "a", Properties: map[string]string{"a": "b", "c": "d"},
		}),
		"late tasks":               sqlite.TasksQuery(tracking.TaskFilter{Page: page, Late: true, Now: start}),
		"waiting tasks":            sqlite.TasksQuery(tracking.TaskFilter{Page: page, Waiting: true}),
		"tasks behind a mark":      sqlite.TasksQuery(tracking.TaskFilter{Page: page, After: &mark}),
		"tasks created in between": sqlite.TasksQuery(tracking.TaskFilter{Page: page, CreatedFrom: start, CreatedTo: start}),
		"tasks of a driver and two statuses behind a mark": sqlite.TasksQuery(tracking.TaskFilter{
			Page: page, DriverID: "a", Status: two, After: &mark,
		}),
		"tasks by window": sqlite.TasksQuery(tracking.TaskFilter{Page: page, Sort: tracking.SortWindow}),
		"tasks by window, behind a mark": sqlite.TasksQuery(tracking.TaskFilter{
			Page: page, Sort: tracking.SortWindow, After: &windowMark,
		}),
		"tasks of two statuses between two windows": sqlite.TasksQuery(tracking.TaskFilter{
			Page: page, Sort: tracking.SortWindow, Status: two, WindowFrom: start, WindowTo: start, After: &windowMark,
		}),
		"trips":                  sqlite.TripsQuery(tracking.TripFilter{Page: page}),
		"trips of a status":      sqlite.TripsQuery(tracking.TripFilter{Page: page, Status: tracking.TripActive}),
		"trips of a driver":      sqlite.TripsQuery(tracking.TripFilter{Page: page, DriverID: "a"}),
		"trips of a tracking id": sqlite.TripsQuery(tracking.TripFilter{Page: page, TrackingID: "a"}),
		"trips of everything": sqlite.TripsQuery(tracking.TripFilter{
			Page: page, TrackingID: "a", DriverID: "a", Status: tracking.TripActive,
		}),
		"drivers":         sqlite.DriversQuery(tracking.DriverFilter{Page: page}),
		"drivers on duty": sqlite.DriversQuery(tracking.DriverFilter{Page: page, Available: &yes}),
		"drivers of a property": sqlite.DriversQuery(tracking.DriverFilter{
			Page: page, Properties: map[string]string{"a": "b"},
		}),
		"drivers of two properties": sqlite.DriversQuery(tracking.DriverFilter{
			Page: page, Available: &yes, Properties: map[string]string{"a": "b", "c": "d"},
		}),
		"events":                   sqlite.EventsQuery(tracking.EventFilter{Limit: 10}),
		"events of a subject":      sqlite.EventsQuery(tracking.EventFilter{Subject: subject, Limit: 10}),
		"dead events":              sqlite.EventsQuery(tracking.EventFilter{Dead: true, Limit: 10}),
		"dead events of a subject": sqlite.EventsQuery(tracking.EventFilter{Subject: subject, Dead: true, Limit: 10}),
	} {
		t.Run(name, func(t *testing.T) { checkPlan(t, db, q, false) })
	}

	// What was completed lately lies together, but in the order of completion.
	for name, q := range map[string]sqlite.Query{
		"completed tasks": sqlite.TasksQuery(tracking.TaskFilter{
			Page: page, CompletedSince: start.Add(time.Hour),
		}),
		"completed tasks of a driver": sqlite.TasksQuery(tracking.TaskFilter{
			Page: page, DriverID: "a", CompletedSince: start.Add(time.Hour), Status: one,
		}),
	} {
		t.Run(name, func(t *testing.T) { checkPlan(t, db, q, true) })
	}

	// A driver's requests, an application's keys, outboxes and the words for how tasks end are few, and
	// sorted when read.
	few := []string{"Requests", "Keys", "TaskCounts", "Stats, outboxes", "Stats of an outbox"}
	lookups := sqlite.Lookups()
	for _, name := range slices.Sorted(maps.Keys(lookups)) {
		t.Run(name, func(t *testing.T) { checkPlan(t, db, lookups[name], slices.Contains(few, name)) })
	}
}

// A status that tasks do not have as a rule costs no more than those that they have: what else a driver
// has, or is of such a status, is not passed on the way.
func TestRareStatusPlan(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "tracking.db"), nil)
	defer closeStore(t, s)
	db, err := s.Reader()
	if err != nil {
		t.Fatal(err)
	}
	f := tracking.TaskFilter{Page: tracking.Page{Limit: 10}, Status: []tracking.TaskStatus{tracking.StatusCompleted, "lost"}}
	for _, f.DriverID = range []tracking.DriverID{"", "a"} {
		for _, line := range plan(t, db, sqlite.TasksQuery(f)) {
			if strings.HasPrefix(line, "SEARCH t ") && !strings.Contains(line, "rowid=?") && !strings.Contains(line, "status=?") {
				t.Errorf("of driver %q: %s", f.DriverID, line)
			}
		}
	}
}
