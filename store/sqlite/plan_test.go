package sqlite_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// checkPlan sees to it that no table is read as a whole and, but for what sorts says, nothing is sorted: a page costs its length.
func checkPlan(t testing.TB, db *sqlx.DB, q sqlite.Query, sorts bool) {
	t.Helper()
	p := plan(t, db, q)
	for _, line := range p {
		scan := strings.HasPrefix(line, "SCAN") && !strings.Contains(line, "VIRTUAL TABLE") && !strings.Contains(line, "CONSTANT ROW")
		if scan || !sorts && strings.Contains(line, "USE TEMP B-TREE") {
			t.Errorf("%s:\n\t%s\nof\n\t%s", line, q.SQL, strings.Join(p, "\n\t"))
		}
	}
}

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
	for name, q := range map[string]sqlite.Query{
		"tasks":                                  sqlite.TasksQuery(tracking.TaskFilter{Page: page}),
		"tasks of a driver":                      sqlite.TasksQuery(tracking.TaskFilter{Page: page, DriverID: "a"}),
		"tasks of a status":                      sqlite.TasksQuery(tracking.TaskFilter{Page: page, Status: one}),
		"tasks of two statuses":                  sqlite.TasksQuery(tracking.TaskFilter{Page: page, Status: two}),
		"tasks of a driver and a status":         sqlite.TasksQuery(tracking.TaskFilter{Page: page, DriverID: "a", Status: one}),
		"tasks of a driver and two statuses":     sqlite.TasksQuery(tracking.TaskFilter{Page: page, DriverID: "a", Status: two}),
		"tasks of an order":                      sqlite.TasksQuery(tracking.TaskFilter{Page: page, OrderID: "a"}),
		"tasks of an order, a driver and status": sqlite.TasksQuery(tracking.TaskFilter{Page: page, OrderID: "a", DriverID: "a", Status: two}),
		"trips":                                  sqlite.TripsQuery(tracking.TripFilter{Page: page}),
		"trips of a status":                      sqlite.TripsQuery(tracking.TripFilter{Page: page, Status: tracking.Active}),
		"trips of a driver":                      sqlite.TripsQuery(tracking.TripFilter{Page: page, DriverID: "a"}),
		"trips of a tracking id":                 sqlite.TripsQuery(tracking.TripFilter{Page: page, TrackingID: "a"}),
		"trips of everything":                    sqlite.TripsQuery(tracking.TripFilter{Page: page, TrackingID: "a", DriverID: "a", Status: tracking.Active}),
		"drivers":                                sqlite.DriversQuery(tracking.DriverFilter{Page: page}),
		"drivers on duty":                        sqlite.DriversQuery(tracking.DriverFilter{Page: page, Available: &yes}),
		"drivers of a property":                  sqlite.DriversQuery(tracking.DriverFilter{Page: page, Properties: map[string]string{"a": "b"}}),
		"drivers of two properties":              sqlite.DriversQuery(tracking.DriverFilter{Page: page, Available: &yes, Properties: map[string]string{"a": "b", "c": "d"}}),
		"events":                                 sqlite.EventsQuery(tracking.EventFilter{Limit: 10}),
		"events of a subject":                    sqlite.EventsQuery(tracking.EventFilter{Subject: subject, Limit: 10}),
		"dead events":                            sqlite.EventsQuery(tracking.EventFilter{Dead: true, Limit: 10}),
		"dead events of a subject":               sqlite.EventsQuery(tracking.EventFilter{Subject: subject, Dead: true, Limit: 10}),
	} {
		t.Run(name, func(t *testing.T) { checkPlan(t, db, q, false) })
	}

	// What was completed lately lies together, but in the order of completion.
	for name, q := range map[string]sqlite.Query{
		"completed tasks":             sqlite.TasksQuery(tracking.TaskFilter{Page: page, CompletedSince: start.Add(time.Hour)}),
		"completed tasks of a driver": sqlite.TasksQuery(tracking.TaskFilter{Page: page, DriverID: "a", CompletedSince: start.Add(time.Hour), Status: one}),
	} {
		t.Run(name, func(t *testing.T) { checkPlan(t, db, q, true) })
	}

	// A driver's requests and an application's keys are few, and sorted when read.
	few := []string{"Requests", "Keys"}
	lookups := sqlite.Lookups()
	for _, name := range slices.Sorted(maps.Keys(lookups)) {
		t.Run(name, func(t *testing.T) { checkPlan(t, db, lookups[name], slices.Contains(few, name)) })
	}
}
