package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/nearby"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// fleetSize is how many drivers the large benchmarks have; each has ten fixes. TRACKING_BENCH=full
// makes it a million.
func fleetSize() int {
	if os.Getenv("TRACKING_BENCH") == "full" {
		return 1_000_000
	}
	return 50_000
}

// A city of drivers, written past the store: as rows they are the same, and there soon.
const (
	makeDrivers = `
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
INSERT INTO drivers (seq, app, id, version, name, mobile, email, available, properties, push, route, silent,
	token_generation, created_at)
SELECT i, 1, printf('driver-%07d', i), 1, 'Ravi Kumar', '+919876543210', '', 1, NULL, NULL,
	iif(i % 4 = 0, NULL, '[' || substr('{"TaskID":"a","Leg":"drop"},{"TaskID":"b","Leg":"drop"},{"TaskID":"c","Leg":"drop"}', 1, i % 4 * 28 - 1) || ']'),
	0, 0, 1710057600000 + i FROM n`
	makePositions = `
INSERT INTO positions (driver, seen_at, oldest_at, fix_time, fix_lng, fix_lat, fix_event_id, fix_accuracy, fix_trusted)
SELECT seq, 1710057600000, 1710057600000, 1710057645000, 80 + abs(seq * 7919 % 1000003) / 1000003.0,
	13 + abs(seq * 104729 % 1000033) / 1000033.0, '', 5.0, 0 FROM drivers`
)

// makeFixes gives each driver ten fixes, the last of them where he is.
func makeFixes(b *testing.B, db *sqlx.DB) {
	b.Helper()
	var at []struct {
		Driver   int64
		Lng, Lat float64
	}
	if err := db.Select(&at, "SELECT driver, fix_lng AS lng, fix_lat AS lat FROM positions"); err != nil {
		b.Fatal(err)
	}
	put, err := db.Prepare("UPDATE positions SET open = ? WHERE driver = ?")
	if err != nil {
		b.Fatal(err)
	}
	defer put.Close()
	for _, p := range at {
		var list []tracking.KeptFix
		for i := range 10 {
			list = append(list, tracking.KeptFix{Mark: tracking.MarkGood, Fix: tracking.Fix{
				LngLat: tracking.LngLat{Lng: p.Lng + float64(9-i)/1e4, Lat: p.Lat}, Accuracy: tracking.Known(5),
				Time: start.Add(time.Duration(i) * 5 * time.Second),
			}})
		}
		if _, err := put.Exec(sqlite.PackFixes(list), p.Driver); err != nil {
			b.Fatal(err)
		}
	}
}

// fleet is a file with that many drivers and ten times as many fixes.
func fleet(b *testing.B, drivers int) (path string) {
	b.Helper()
	path = filepath.Join(b.TempDir(), "tracking.db")
	s := open(b, path, nil)
	commitTask(b, s, "a") // makes the application number 1
	closeStore(b, s)
	db := raw(b, path)
	db.SetMaxOpenConns(1)
	for _, q := range []string{"PRAGMA synchronous = OFF", "PRAGMA cache_size = -200000", "BEGIN"} {
		if _, err := db.Exec(q); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := db.Exec(makeDrivers, drivers); err != nil {
		b.Fatal(err)
	}
	if _, err := db.Exec(makePositions); err != nil {
		b.Fatal(err)
	}
	makeFixes(b, db)
	for _, q := range []string{"COMMIT", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if _, err := db.Exec(q); err != nil {
			b.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	return path
}

// BenchmarkOpen opens a file with many drivers: how long until it serves, and until it knows who is
// near.
func BenchmarkOpen(b *testing.B) {
	path := fleet(b, fleetSize())
	ctx := context.Background()
	var serves, knows time.Duration
	for b.Loop() {
		began := time.Now()
		s := open(b, path, nil)
		if _, err := s.Task(ctx, app, "a"); err != nil {
			b.Fatal(err)
		}
		serves += time.Since(began)
		list, _, err := s.Drivers(ctx, app, tracking.DriverFilter{
			Near: &tracking.LngLat{Lng: 80.5, Lat: 13.5}, Page: tracking.Page{Limit: 10},
		})
		if err != nil || len(list) != 10 {
			b.Fatal(len(list), err)
		}
		knows += time.Since(began)
		closeStore(b, s)
	}
	b.ReportMetric(float64(serves.Milliseconds())/float64(b.N), "ms-to-serve")
	b.ReportMetric(float64(knows.Milliseconds())/float64(b.N), "ms-to-nearest")
	b.ReportMetric(float64(fleetSize()), "drivers")
}

// BenchmarkNearest asks for the ten nearest with their records, beside what it is made of: the look
// at the index, and a read of ten rows.
func BenchmarkNearest(b *testing.B) {
	path := fleet(b, fleetSize())
	s := open(b, path, nil)
	defer s.Close()
	ctx := context.Background()
	at := func(i int) tracking.LngLat {
		return tracking.LngLat{Lng: 80 + float64(i*7919%10007)/10007, Lat: 13 + float64(i*104729%10009)/10009}
	}
	near := func(i int) []tracking.Driver {
		p := at(i)
		list, _, err := s.Drivers(ctx, app, tracking.DriverFilter{Near: &p, Page: tracking.Page{Limit: 10}})
		if err != nil || len(list) != 10 {
			b.Fatal(len(list), err)
		}
		return list
	}
	near(0)             // waits for the index
	const places = 1000 // the same rows for both, and more than fit a cache by chance
	rows := make([][]tracking.DriverID, places)
	for i := range rows {
		for _, d := range near(i) {
			rows[i] = append(rows[i], d.ID)
		}
	}
	index := s.Index(app)
	b.Run("records", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			near(i % places)
		}
	})
	b.Run("index", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			index.Near(at(i%places), nearby.Filter{}, 0, 11, nil)
		}
	})
	b.Run("ten rows", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if err := s.ReadDrivers(ctx, app, rows[i%places]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkCreate commits new tasks with an event each, beside bare rows of as many bytes as the task's
// has, in the same groups, and beside bare statements that write what a create leaves: the same rows of
// the same tables, with their indexes and what is found of them.
func BenchmarkCreate(b *testing.B) {
	const taskBytes = 163
	for _, goroutines := range []int{1, 64, 1000} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			s := open(b, filepath.Join(b.TempDir(), "tracking.db"), nil)
			ctx := context.Background()
			var last atomic.Int64
			cpu, written := spent(b)
			b.ResetTimer()
			spread(goroutines, b.N, func(int) {
				if _, err := s.Commit(ctx, app, created(int(last.Add(1)))); err != nil {
					b.Error(err)
				}
			})
			reportSpent(b, b.N, "task", "tasks", cpu, written)
			b.StopTimer()
			closeStore(b, s)
		})
		bare := func(name string, start func() *grouper) {
			b.Run(fmt.Sprintf("%d %s", goroutines, name), func(b *testing.B) {
				a := start()
				cpu, written := spent(b)
				b.ResetTimer()
				spread(goroutines, b.N, func(int) {
					if err := a.one(); err != nil {
						b.Error(err)
					}
				})
				reportSpent(b, b.N, "task", "tasks", cpu, written)
				b.StopTimer()
				a.close()
			})
		}
		bare("bare rows", func() *grouper { return newRows(b, taskBytes, false) })
		bare("bare statements", func() *grouper { return newStatements(b) })
	}
}

// What the store writes for a task of created. A column that is not named is NULL, or as in a new row.
const (
	bareTask = `INSERT INTO tasks (app, id, version, type, status, outcome, reason, time, notes, order_id, drop_lng, drop_lat,
	drop_address, drop_name, drop_mobile, driver_id, auto_assigned, waiting, link_generation, created_at, updated_at,
	personal, place, subject) VALUES (1, ?, 1, 2, 'created', '', '', ?, '', ?, ?, ?, ?, ?, ?, '', FALSE, FALSE, 0, ?, ?, TRUE,
	?, ?)`
	bareSubject = `INSERT INTO subjects (app, kind, id, last_seq, named) VALUES (1, 'task', ?, 1, 0)`
	bareEvent   = `INSERT INTO events (app, id, type, time, recorded_at, actor, subject, seq, undelivered)
	VALUES (1, ?, ?, ?, ?, ?, ?, 1, 0)`
	bareTerms = `INSERT INTO task_terms (rowid, terms) VALUES (?, ?)`
)

// newStatements starts what is left of creates without the store: its file, and nothing but the
// statements that write what it writes.
func newStatements(b *testing.B) *grouper {
	b.Helper()
	path := filepath.Join(b.TempDir(), "tracking.db")
	s := open(b, path, nil)
	if _, err := s.Commit(context.Background(), app, created(1)); err != nil {
		b.Fatal(err)
	}
	closeStore(b, s)
	conn := bareConn(b, path)
	if _, err := conn.ExecContext(context.Background(), "PRAGMA secure_delete = FAST"); err != nil { // as the store does
		b.Fatal(err)
	}
	begin, commit := prepare(b, conn, "BEGIN IMMEDIATE"), prepare(b, conn, "COMMIT")
	task, subject, event := prepare(b, conn, bareTask), prepare(b, conn, bareSubject), prepare(b, conn, bareEvent)
	terms := prepare(b, conn, bareTerms)
	var told []string
	n := 1 // of the last task
	return newGrouper(func(more int) error {
		if _, err := begin.Exec(); err != nil {
			return err
		}
		first := n + 1
		told = told[:0]
		for range more {
			n++
			cs := created(n)
			t, e := &cs.Tasks[0], &cs.Events[0]
			at, c := t.CreatedAt.UnixMilli(), t.Drop.Customer
			r, err := subject.Exec(e.Subject.ID)
			if err != nil {
				return err
			}
			about, err := r.LastInsertId()
			if err != nil {
				return err
			}
			_, err = task.Exec(t.ID, at, t.OrderID, t.Drop.LngLat.Lng, t.Drop.LngLat.Lat, t.Drop.Address, c.Name, c.Mobile,
				at, at, at<<15, about)
			if err != nil {
				return err
			}
			if _, err := event.Exec(e.ID, e.Type, at, at, e.Actor, about); err != nil {
				return err
			}
			told = append(told, sqlite.Terms(t))
		}
		for i, list := range told {
			if _, err := terms.Exec((start.UnixMilli()+int64(first+i))<<15, list); err != nil {
				return err
			}
		}
		_, err := commit.Exec()
		return err
	})
}

// created is the n-th task that somebody creates, with its event: with ids in order of time, as the
// Service makes them, and an order number as a shop gives them.
func created(n int) *tracking.Changeset {
	id := fmt.Sprintf("01j8x3k9q2v7m4n6p8r0%06d", n)
	at := start.Add(time.Duration(n) * time.Millisecond)
	return &tracking.Changeset{
		Tasks: []tracking.Task{{
			ID: tracking.TaskID(id), Type: tracking.TypeDrop, Status: tracking.StatusCreated,
			OrderID: fmt.Sprintf("R-%08d", n), CreatedAt: at, UpdatedAt: at, Time: at,
			Drop: &tracking.Place{
				LngLat: &tracking.LngLat{Lng: 80.27, Lat: 13.08}, Address: "45 First Avenue, Chennai",
				Customer: &tracking.Contact{Name: "Asha", Mobile: "+919876543210"},
			},
		}},
		Events: []tracking.Event{{
			ID: id, Type: tracking.EventTaskCreated, Time: at, RecordedAt: at, Actor: "key:1",
			Subject: tracking.Subject{Kind: tracking.KindTask, ID: id},
		}},
	}
}

// BenchmarkFixSize reports what a fix takes in the file, when a fleet sends one after the other.
func BenchmarkFixSize(b *testing.B) {
	const drivers, rounds = 200, 100
	for b.Loop() {
		path := filepath.Join(fastDir(b), "tracking.db")
		s := open(b, path, nil)
		ctx := context.Background()
		var cs tracking.Changeset
		for d := range drivers {
			cs.Drivers = append(cs.Drivers, tracking.Driver{
				ID: tracking.DriverID(fmt.Sprint(d)), Available: true, CreatedAt: start,
			})
		}
		if _, err := s.Commit(ctx, app, &cs); err != nil {
			b.Fatal(err)
		}
		for n := range rounds {
			cs := &tracking.Changeset{}
			at := start.Add(time.Duration(n) * 5 * time.Second)
			for d := range drivers {
				cs.Fixes = append(cs.Fixes, tracking.FixBatch{
					DriverID: tracking.DriverID(fmt.Sprint(d)), SeenAt: at, Fixes: []tracking.Fix{{
						LngLat: tracking.LngLat{
							Lng: 80 + float64(d)/1000.1 + float64(n)/1e5, Lat: 13.0827391 + float64(n)/1e5,
						}, Time: at,
						Accuracy: tracking.Known(4.8), Speed: tracking.Known(8.3), Bearing: tracking.Known(271.5),
					}},
				})
			}
			if _, err := s.Commit(ctx, app, cs); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := s.Purge(ctx, tracking.Before{Limit: 1}); err != nil { // the rows follow the journal
			b.Fatal(err)
		}
		db, err := s.Reader()
		if err != nil {
			b.Fatal(err)
		}
		var size int64
		if err := db.Get(&size, `SELECT
			(SELECT sum(pgsize) FROM dbstat WHERE name GLOB 'fix_blocks*') + (SELECT sum(length(open)) FROM positions)`); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(size)/(drivers*rounds), "bytes/fix")
		closeStore(b, s)
	}
}
