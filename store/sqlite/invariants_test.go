package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// invariants lists what does not fit together in a store: half of a step that should be whole.
func invariants(ctx context.Context, s tracking.Store) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	tasks, _, err := s.Tasks(ctx, tracking.DefaultApp, tracking.TaskFilter{Page: tracking.Page{Limit: 1000}})
	if err != nil {
		return err
	}
	open := map[tracking.DriverID]int{}
	for _, t := range tasks {
		if t.Open() {
			open[t.DriverID]++
		}
		status, err := statusByEvents(ctx, s, t.ID)
		if err != nil {
			return err
		}
		if status != t.Status {
			bad("task %s is %s, and by its events %s", t.ID, t.Status, status)
		}
		trips, _, err := s.Trips(ctx, tracking.DefaultApp, tracking.TripFilter{
			TrackingID: tracking.TrackingID(t.ID), Page: tracking.Page{Limit: 10},
		})
		if err != nil {
			return err
		}
		active := 0
		for _, trip := range trips {
			if trip.Status == tracking.TripActive {
				active++
			}
		}
		if (active == 1) != (t.Status == tracking.StatusInProgress) {
			bad("task %s is %s, with %d active trips", t.ID, t.Status, active)
		}
	}

	drivers, _, err := s.Drivers(ctx, tracking.DefaultApp, tracking.DriverFilter{Page: tracking.Page{Limit: 1000}})
	if err != nil {
		return err
	}
	for _, d := range drivers {
		if d.OpenTasks() != open[d.ID] {
			bad("driver %s has %d open tasks, and counts %d", d.ID, open[d.ID], d.OpenTasks())
		}
		var newest tracking.Fix
		for f, err := range s.Fixes(ctx, tracking.DefaultApp, d.ID, tracking.FixRange{Newest: true, Limit: 1}) {
			if err != nil {
				return err
			}
			newest = f
		}
		if d.Position.Fix != newest {
			bad("driver %s is at %+v, and his newest fix is %+v", d.ID, d.Position.Fix, newest)
		}
	}

	near, _, err := s.Drivers(ctx, tracking.DefaultApp, tracking.DriverFilter{
		Near: &tracking.LngLat{Lng: 80, Lat: 13}, Page: tracking.Page{Limit: 1000},
	})
	if err != nil {
		return err
	}
	located := 0
	for _, d := range drivers {
		if d.Position.Located() {
			located++
		}
	}
	if len(near) != located {
		bad("%d drivers have a position, and %d are near", located, len(near))
	}
	return errors.Join(errs...)
}

// statusByEvents follows a task's events, which must be there one after the other.
func statusByEvents(ctx context.Context, s tracking.Store, id tracking.TaskID) (tracking.TaskStatus, error) {
	events, _, err := s.Events(ctx, tracking.DefaultApp, tracking.EventFilter{
		Subject: tracking.Subject{Kind: tracking.KindTask, ID: string(id)}, Limit: 1000,
	})
	if err != nil {
		return "", err
	}
	var status tracking.TaskStatus
	for i, e := range events {
		if e.Seq != int64(i+1) {
			return "", fmt.Errorf("event %d of task %s has seq %d", i+1, id, e.Seq)
		}
		switch e.Type {
		case tracking.EventTaskCreated, tracking.EventTaskUnassigned:
			status = tracking.StatusCreated
		case tracking.EventTaskAssigned:
			status = tracking.StatusAssigned
			if len(e.Notices) == 0 {
				return "", fmt.Errorf("nobody was told of event %s", e.ID)
			}
		case tracking.EventTaskStarted:
			status = tracking.StatusInProgress
		case tracking.EventTaskCompleted:
			status = tracking.StatusCompleted
		}
	}
	return status, nil
}

// Tables that say the same twice, and must agree. Each query finds rows that do not.
var agreements = map[string]string{
	"a queue's head": `SELECT q.outbox FROM queues q WHERE q.head IS NOT (SELECT min(event) FROM deliveries d
		WHERE d.subject = q.subject AND d.outbox = q.outbox AND d.state = 1)`,
	"a queue's application": `SELECT q.outbox FROM queues q JOIN subjects s ON s.n = q.subject
		WHERE q.app <> s.app OR q.head IS NULL AND q.owner IS NULL`,
	"a delivery's queue": `SELECT d.event FROM deliveries d WHERE d.state = 1 AND NOT EXISTS (SELECT 1
		FROM queues q WHERE q.subject = d.subject AND q.outbox = d.outbox)`,
	"a delivery's event": `SELECT d.event FROM deliveries d LEFT JOIN events e ON e.n = d.event
		WHERE e.app IS NOT d.app OR e.subject IS NOT d.subject`,
	"undelivered events": `SELECT e.id FROM events e WHERE e.undelivered <> (SELECT count(*) FROM deliveries d
		WHERE d.subject = e.subject AND d.event = e.n AND d.state = 1)`,
	"a subject's counter": `SELECT s.id FROM subjects s WHERE s.last_seq <> (SELECT count(*) FROM events e
		WHERE e.subject = s.n)`,
	"a task's subject": `SELECT t.id FROM tasks t LEFT JOIN subjects s ON s.n = t.subject WHERE t.subject IS NOT NULL
		AND (s.app, s.kind, s.id, s.named) IS NOT (t.app, 'task', t.id, 0)`,
	"a subject's task": `SELECT s.id FROM subjects s WHERE s.named = 0 AND s.n NOT IN (SELECT subject FROM tasks
		WHERE subject IS NOT NULL)`,
	"a subject's name": `SELECT s.id FROM subjects s WHERE s.named = 1 AND EXISTS (SELECT 1 FROM tasks t
		WHERE t.app = s.app AND t.id = s.id AND s.kind = 'task' AND t.subject IS NOT NULL)`,
	"a driver's properties": `SELECT d.id FROM drivers d WHERE (SELECT count(*)
		FROM json_each(d.properties)) <> (SELECT count(*) FROM driver_properties p WHERE p.driver = d.seq)`,
	"a driver's feed": `SELECT d.id FROM drivers d WHERE d.last_notice <> (SELECT count(*) FROM notices n
		WHERE n.driver = d.seq)`,
	"fixes without driver": `SELECT driver FROM fix_blocks WHERE driver NOT IN (SELECT seq FROM drivers)`,
	"fixes without a newest one": `SELECT driver FROM fix_blocks
		WHERE driver NOT IN (SELECT driver FROM positions WHERE open IS NOT NULL)`,
	"completions": `SELECT app FROM (SELECT app, span, outcome, n FROM completions UNION ALL
		SELECT app, completed_at >> 19, outcome, count(*) FROM tasks
			WHERE completed_at IS NOT NULL AND status = 'completed' GROUP BY 1, 2, 3)
		GROUP BY app, span, outcome HAVING count(*) <> 2 OR min(n) <> max(n)`,
	"a trip's window": `SELECT id FROM trips
		WHERE covers_until <> CASE WHEN status = 1 THEN 9223372036854775807 ELSE ended_at END`,
}

// agree checks the file itself.
func agree(db *sqlx.DB) error {
	var faults []string
	if err := db.Select(&faults, `PRAGMA integrity_check`); err != nil {
		return err
	}
	if len(faults) != 1 || faults[0] != "ok" {
		return fmt.Errorf("integrity_check: %q", faults)
	}
	faults = nil
	if err := db.Select(&faults, `SELECT "table" FROM pragma_foreign_key_check`); err != nil || len(faults) > 0 {
		return fmt.Errorf("rows of %q refer to what is not there (%v)", faults, err)
	}
	for what, query := range agreements {
		var ids []string
		if err := db.Select(&ids, query); err != nil || len(ids) > 0 {
			return fmt.Errorf("%s disagrees for %q (%v)", what, ids, err)
		}
	}
	return fixesAgree(db)
}

// fixesAgree checks that the fixes of each driver lie in order of time, and that the oldest is noted.
func fixesAgree(db *sqlx.DB) error {
	all, err := sqlite.FixesInFile(db)
	if err != nil {
		return err
	}
	var placed []struct {
		Driver int64
		Oldest sql.NullInt64 `db:"oldest_at"`
	}
	if err := db.Select(&placed, `SELECT driver, oldest_at FROM positions`); err != nil {
		return err
	}
	for _, p := range placed {
		var oldest sql.NullInt64
		for i, f := range all[p.Driver] {
			if i > 0 && !f.Time.After(all[p.Driver][i-1].Time) {
				return fmt.Errorf("the fix of driver %d at %v is out of order", p.Driver, f.Time)
			}
			if !f.Purged && !oldest.Valid {
				oldest = sql.NullInt64{Int64: f.Time.UnixMilli(), Valid: true}
			}
		}
		if p.Oldest != oldest {
			return fmt.Errorf("the oldest fix of driver %d is of %v, and is noted as of %v", p.Driver, oldest, p.Oldest)
		}
	}
	return nil
}

// TestCompletedAtNoTime adds a task that was completed at a time of which nothing is kept: it is not counted
// as one of that time either, as nothing would take it from the count again.
func TestCompletedAtNoTime(t *testing.T) {
	s := open(t, filepath.Join(fastDir(t), "tracking.db"), nil)
	defer closeStore(t, s)
	if _, err := s.Commit(t.Context(), app, &tracking.Changeset{Tasks: []tracking.Task{{
		ID: "a", Status: tracking.StatusCompleted, CreatedAt: start, CompletedAt: time.Time{}.Add(time.Microsecond),
	}}}); err != nil {
		t.Fatal(err)
	}
	db, err := s.Reader()
	if err != nil {
		t.Fatal(err)
	}
	if err := agree(db); err != nil {
		t.Error(err)
	}
}
