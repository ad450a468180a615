package postgres_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
)

// listener notes the statements that a store sends.
type listener struct {
	mu   sync.Mutex
	sent []pgx.TraceQueryStartData
}

func (l *listener) note(sql string, args []any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent = append(l.sent, pgx.TraceQueryStartData{SQL: sql, Args: args})
}

func (l *listener) TraceQueryStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceQueryStartData) context.Context {
	l.note(d.SQL, d.Args)
	return ctx
}

func (l *listener) TraceBatchStart(ctx context.Context, _ *pgx.Conn, d pgx.TraceBatchStartData) context.Context {
	for _, q := range d.Batch.QueuedQueries {
		l.note(q.SQL, q.Arguments)
	}
	return ctx
}

func (*listener) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData)     {}
func (*listener) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (*listener) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

// of is what call sends.
func (l *listener) of(t *testing.T, call func() error) []pgx.TraceQueryStartData {
	t.Helper()
	l.mu.Lock()
	l.sent = nil
	l.mu.Unlock()
	if err := call(); err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent
}

// The rows of a company after a while.
const (
	fillDrivers = `
INSERT INTO tracking.drivers (app, id, person, version, name, mobile, email, available, properties, silent,
	token_generation, created_at)
SELECT 1, 'd' || i, '', 1, '', '', '', i % 2 = 0, CASE WHEN i % 5000 = 0 THEN '{"crane": "yes"}'::jsonb END,
	false, 0, 1710000000000 + i * 1000 FROM generate_series(1, $1::int) i`
	fillPositions = `
INSERT INTO tracking.positions (app, driver, id, class, open_tasks, cell, heard, seen_at, fix_time, fix_lng, fix_lat,
	fix_trusted, last_notice)
SELECT d.app, d.n, d.id, CASE WHEN available THEN 2 + d.n % 9 ELSE 0 END, CASE WHEN available THEN d.n % 9 ELSE 0 END,
	c.cell, 1710000000000 >> 18, 1710000000000, 1710000000000, c.lng, c.lat, false, 0
FROM tracking.drivers d
JOIN unnest($1::text[], $2::bigint[], $3::float8[], $4::float8[]) c (id, cell, lng, lat) USING (id)
WHERE d.app = 1`
	fillTasks = `
INSERT INTO tracking.tasks (app, id, version, type, status, outcome, reason, notes, order_id, driver_id, person,
	auto_assigned, waiting, link_generation, created_at, completed_at, window_from, terms, wait_cell, drop_lng, drop_lat, drop_address)
SELECT 1, 't' || i, 1, 2, (ARRAY['created', 'assigned', 'in_progress', 'completed'])[1 + i % 4], '', '', '',
	'o' || i % 20000, 'd' || i % 1000, '', false, i % 100 = 0, 1, 1710000000000 + i * 1000,
	CASE WHEN i % 4 = 3 THEN 1710000000000 + i * 1000 END, 1710000000000 + i::bigint * 7919 % 86400000,
	($2::text[])[CASE WHEN i % 20000 = 0 THEN 1 ELSE 2 + i % 1000 END]::text[],
	CASE WHEN i % 100 = 0 THEN ($3::bigint[])[i] END, ($4::float8[])[i], ($5::float8[])[i], ''
FROM generate_series(1, $1::int) i`
	fillTrips = `
INSERT INTO tracking.trips (app, id, version, tracking_id, driver_id, person, task_id, status, start_location,
	end_location, covers_until, link_generation, created_at)
SELECT 1, 'r' || i, 1, 'k' || i, 'd' || i % 1000, '', '', 1 + i % 3, '', '', 1710000000000 + i * 1000, 1,
	1710000000000 + i * 1000 FROM generate_series(1, $1::int) i`
)

// addresses are the terms of addresses: of one that few tasks have, and of a thousand others that
// have a word in common.
func addresses() []string {
	terms := func(address string) string {
		return postgres.Terms(&tracking.Task{Drop: &tracking.Place{Address: address}})
	}
	list := []string{terms("Zeppelin Common 1")}
	for i := range 1000 {
		list = append(list, terms(fmt.Sprintf("Lane%d Common", i)))
	}
	return list
}

// fill puts so many of each into a database that has an application.
func fill(t testing.TB, url string, n int) {
	t.Helper()
	c := connect(t, url)
	execute(t, c, fillDrivers, n)
	ids, cells, lng, lat := postgres.Places(n)
	execute(t, c, fillPositions, ids, cells, lng, lat)
	execute(t, c, "DROP INDEX tracking.tasks_by_terms") // which takes less time to make for all
	execute(t, c, fillTasks, n, addresses(), cells, lng, lat)
	execute(t, c, "CREATE INDEX tasks_by_terms ON tracking.tasks USING gin (terms)")
	execute(t, c, fillTrips, n)
	execute(t, c, "ANALYZE")
}

// TestStatsPlans asks the server which index each number of Stats goes by, where most tasks are long
// completed and most drivers off duty: of tasks and drivers none reads a table.
func TestStatsPlans(t *testing.T) {
	url := template.Database(t)
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{}
	config.ConnConfig.Tracer = l
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := postgres.New(t.Context(), pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Commit(t.Context(), app, &tracking.Changeset{Drivers: someDrivers(1)}); err != nil {
		t.Fatal(err)
	}
	many := 40_000
	if os.Getenv("TRACKING_LONG") == "1" {
		many = 100_000
	}
	fill(t, url, many)
	c := connect(t, url)
	execute(t, c, `UPDATE tracking.tasks SET status = CASE WHEN seq % 100 < 3 THEN status ELSE 'completed' END,
		waiting = waiting AND seq % 100 < 3, late_from = CASE WHEN seq % 100 < 3 THEN created_at END`)
	execute(t, c, "UPDATE tracking.drivers SET available = n % 50 = 0")
	execute(t, c, "VACUUM ANALYZE")

	sent := l.of(t, func() error { _, err := s.Stats(t.Context(), start); return err })
	var plans strings.Builder
	for _, q := range sent {
		for _, line := range explain(t, c, q.SQL, q.Args...) {
			plans.WriteString(line + "\n")
			node := strings.TrimLeft(line, " ->")
			if strings.HasPrefix(node, "Seq Scan on tasks") || strings.HasPrefix(node, "Seq Scan on drivers") {
				t.Error(node)
			}
		}
	}
	for _, index := range []string{"tasks_by_status", "tasks_waiting", "tasks_late", "drivers_by_availability"} {
		if !strings.Contains(plans.String(), "using "+index) {
			t.Errorf("nothing goes by %s", index)
		}
	}
	if t.Failed() {
		t.Log(plans.String())
	}
}

// explain is the plan of a statement, line by line.
func explain(t testing.TB, c *pgx.Conn, sql string, args ...any) []string {
	t.Helper()
	return texts(t, c, "EXPLAIN (COSTS off) "+sql, args...)
}

// TestPlans asks the server which index each near page goes by, where there are many rows: none
// reads a table or sorts.
func TestPlans(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{}
	config.ConnConfig.Tracer = l
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s, err := postgres.New(t.Context(), pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Commit(t.Context(), app, &tracking.Changeset{Drivers: someDrivers(1)}); err != nil {
		t.Fatal(err)
	}
	fill(t, url, 40_000)

	page := tracking.Page{Number: 2, Limit: 20}
	tasks := func(f tracking.TaskFilter) func() error {
		f.Page = page
		return func() error { _, _, err := s.Tasks(t.Context(), app, f); return err }
	}
	trips := func(f tracking.TripFilter) func() error {
		f.Page = page
		return func() error { _, _, err := s.Trips(t.Context(), app, f); return err }
	}
	drivers := func(f tracking.DriverFilter) func() error {
		f.Page = page
		return func() error { _, _, err := s.Drivers(t.Context(), app, f); return err }
	}
	one := []tracking.TaskStatus{tracking.StatusAssigned}
	two := []tracking.TaskStatus{tracking.StatusAssigned, tracking.StatusInProgress}
	here := tracking.LngLat{Lng: 80.25, Lat: 13.05}
	mark := &tracking.TaskMark{CreatedAt: start.Add(40_000 * time.Second), Seq: 1 << 40}
	c := connect(t, url)
	matches := func() error {
		_, err := s.Matches(t.Context(), app, tracking.MatchQuery{MaxOpen: 1, Within: 300, Limit: 3})
		return err
	}
	for _, q := range []struct {
		name, index string
		call        func() error
	}{
		{"tasks", "tasks_by_age", tasks(tracking.TaskFilter{})},
		{"tasks of a driver", "tasks_by_driver", tasks(tracking.TaskFilter{DriverID: "d7"})},
		{"tasks of a status", "tasks_by_status", tasks(tracking.TaskFilter{Status: one})},
		{"tasks of two statuses", "tasks_by_status", tasks(tracking.TaskFilter{Status: two})},
		{"tasks of both", "tasks_by_driver_status", tasks(tracking.TaskFilter{DriverID: "d7", Status: one})},
		{"tasks of an order", "tasks_by_order", tasks(tracking.TaskFilter{OrderID: "o7"})},
		{"tasks from a mark on", "tasks_by_age", tasks(tracking.TaskFilter{After: mark})},
		{"tasks of a driver from a mark on", "tasks_by_driver", tasks(tracking.TaskFilter{DriverID: "d7", After: mark})},
		{"tasks created from then on", "tasks_by_age", tasks(tracking.TaskFilter{CreatedFrom: mark.CreatedAt})},
		{"tasks by window", "tasks_by_window", tasks(tracking.TaskFilter{Sort: tracking.SortWindow})},
		{"tasks of a status by window", "tasks_by_status_window", tasks(tracking.TaskFilter{
			Sort: tracking.SortWindow, Status: one,
		})},
		{"tasks of windows", "tasks_by_window", tasks(tracking.TaskFilter{
			Sort: tracking.SortWindow, WindowFrom: mark.CreatedAt, WindowTo: mark.CreatedAt.Add(time.Hour),
		})},
		{"tasks by a rare word", "tasks_by_terms", tasks(tracking.TaskFilter{Query: "zepp"})},
		{"tasks by a common word", "tasks_by_age", tasks(tracking.TaskFilter{Query: "common"})},
		{"tasks of a driver by a common word", "tasks_by_driver", tasks(tracking.TaskFilter{
			Query: "common", DriverID: "d7",
		})},
		{"trips", "trips_by_age", trips(tracking.TripFilter{})},
		{"trips of a status", "trips_by_status", trips(tracking.TripFilter{Status: tracking.TripActive})},
		{"trips of a driver", "trips_by_driver", trips(tracking.TripFilter{DriverID: "d7"})},
		{"trips of a tracking id", "trips_by_tracking", trips(tracking.TripFilter{TrackingID: "k7"})},
		{"drivers", "drivers_by_age", drivers(tracking.DriverFilter{})},
		{"drivers on duty", "drivers_by_availability", drivers(tracking.DriverFilter{Available: new(true)})},
		{"drivers near", "positions_near", drivers(tracking.DriverFilter{Near: &here})},
		{"waiting tasks near", "tasks_waiting_near", func() error {
			_, err := s.Waiting(t.Context(), app, tracking.WaitingFilter{Near: &here, Within: 500, Limit: 3})
			return err
		}},
		{"offers", "positions_near", func() error {
			_, err := s.Offers(t.Context(), app, tracking.Offer{At: here, MaxOpen: 2, Limit: 3})
			return err
		}},
		{"matches of many drivers", "tasks_waiting", matches},
		{"matches of few drivers", "tasks_waiting_near", func() error {
			execute(t, c, "UPDATE tracking.positions SET class = 0 WHERE driver > 500")
			return matches()
		}},
		{"drivers on offer, for matches, with old statistics", "positions_near", matches},
		{"drivers on offer, for matches, with new statistics", "positions_near", func() error {
			execute(t, c, "UPDATE tracking.positions SET class = 2 WHERE class > 2")
			execute(t, c, "VACUUM ANALYZE tracking.positions")
			return matches()
		}},
		{"drivers on offer, for matches, with no statistics", "positions_near", func() error {
			execute(t, c, "DELETE FROM pg_statistic WHERE starelid = 'tracking.positions'::regclass")
			return matches()
		}},
	} {
		t.Run(q.name, func(t *testing.T) {
			var plans []string
			found := false
			for _, sent := range l.of(t, q.call) {
				if !strings.Contains(sent.SQL, "SELECT") {
					continue
				}
				lines := explain(t, c, sent.SQL, sent.Args...)
				plan := strings.Join(lines, "\n\t")
				plans = append(plans, plan)
				found = found || strings.Contains(plan+"\n", q.index+" ") || strings.Contains(plan+"\n", q.index+"\n")
				// The first look of a search, which is for the few drivers of a small company, ends
				// after so many rows whatever it goes by.
				if first := strings.Contains(sent.SQL, "p.class = ANY") && strings.Contains(sent.SQL, "LIMIT"); first {
					continue
				}
				rare := strings.Contains(plan, "Bitmap Index Scan on tasks_by_terms") // the few that are found are sorted
				for _, line := range lines {
					node := strings.TrimLeft(line, " ->")
					if strings.HasPrefix(node, "Seq Scan on") || node == "Sort" && !rare || node == "Incremental Sort" {
						t.Errorf("%s, in\n\t%s", node, plan)
					}
				}
			}
			if !found {
				t.Errorf("nothing goes by %s:\n\t%s", q.index, strings.Join(plans, "\n\t--\n\t"))
			}
		})
	}
}

// Tasks and trips are locked by their keys also where the server does not know yet how many there are.
func TestPlansOfLocks(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s, _, l := lone(t, url)
	if _, err := s.Commit(t.Context(), app, newTask("one")); err != nil {
		t.Fatal(err)
	}
	c := connect(t, url)
	const many = 3000
	look := func(what string) {
		t.Helper()
		var changes tracking.Changeset
		for i := range 64 {
			id := fmt.Sprint(what, i)
			changes.Tasks = append(changes.Tasks, newTask(id).Tasks...)
			changes.Trips = append(changes.Trips, tracking.Trip{
				ID: tracking.TripID(id), TrackingID: tracking.TrackingID(id), Status: tracking.TripActive, CreatedAt: start,
			})
		}
		asked := 0
		for _, q := range l.of(t, func() error { _, err := s.Commit(t.Context(), app, &changes); return err }) {
			if !strings.Contains(q.SQL, "FOR UPDATE") {
				continue
			}
			asked++
			if plan := strings.Join(explain(t, c, q.SQL, q.Args...), "\n\t"); !strings.Contains(plan, "Index Cond: ((app = 1) AND (id = ") {
				t.Errorf("with %s:\n\t%s", what, plan)
			}
		}
		if asked != 2 {
			t.Errorf("with %s %d locks were asked for, want 2", what, asked)
		}
	}
	_, cells, lng, lat := postgres.Places(many)
	for _, table := range []string{"tasks", "trips"} {
		execute(t, c, "ALTER TABLE tracking."+table+" SET (autovacuum_enabled = false)")
	}
	execute(t, c, fillTasks, many, addresses(), cells, lng, lat)
	execute(t, c, fillTrips, many)
	look("many that the server does not know of")
	execute(t, c, "ANALYZE")
	look("many")
}
