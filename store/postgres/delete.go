package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

const (
	ofSubjects = `(SELECT n FROM tracking.subjects WHERE app = $1
	AND (kind, id) IN (SELECT * FROM unnest($2::text[], $3::text[])))`

	// Whom the events of subjects have told. Those that have their place yet and those that have not
	// stand in different indices.
	toldBy = `SELECT t ->> 'driver', (t ->> 'id')::bigint FROM tracking.events e, jsonb_array_elements(e.notices) t
WHERE e.app = $1 AND e.subject IN ` + ofSubjects + ` AND e.place IS `
	selectTold = toldBy + `NOT NULL UNION ALL ` + toldBy + `NULL`

	lockSubjectsByID = `SELECT n FROM tracking.subjects WHERE app = $1
	AND (kind, id) IN (SELECT * FROM unnest($2::text[], $3::text[])) ORDER BY kind, id FOR UPDATE`

	deleteTasks = `DELETE FROM tracking.tasks WHERE app = $1 AND id = ANY ($2)`
	deleteTrips = `DELETE FROM tracking.trips WHERE app = $1 AND id = ANY ($2)`
	deleteFiles = `DELETE FROM tracking.files WHERE app = $1 AND id = ANY ($2)`

	dropNotices = `
WITH gone AS (
	DELETE FROM tracking.notices n USING unnest($2::bigint[], $3::bigint[]) u (driver, id)
	WHERE n.app = $1 AND n.driver = u.driver AND n.id = u.id RETURNING n.driver, n.id)
UPDATE tracking.positions p SET purged_notice = greatest(purged_notice, g.id)
FROM (SELECT driver, max(id) AS id FROM gone GROUP BY driver) g WHERE p.app = $1 AND p.driver = g.driver`

	dropQueues         = `DELETE FROM tracking.queues WHERE app = $1 AND subject = ANY ($2)`
	dropDeliveries     = `DELETE FROM tracking.deliveries WHERE app = $1 AND subject = ANY ($2)`
	dropPlacedEvents   = `DELETE FROM tracking.events WHERE app = $1 AND subject = ANY ($2) AND place IS NOT NULL`
	dropUnplacedEvents = `DELETE FROM tracking.events WHERE app = $1 AND subject = ANY ($2) AND place IS NULL`
	dropSubjects       = `DELETE FROM tracking.subjects WHERE app = $1 AND n = ANY ($2)`
)

// deletes reports whether a changeset takes tasks, trips or files away.
func deletes(cs *tracking.Changeset) bool {
	return len(cs.DeleteTasks)+len(cs.DeleteTrips)+len(cs.DropFiles) > 0
}

// toldOne is a notice of a driver.
type toldOne struct {
	driver string
	id     int64
}

func scanTold(row pgx.CollectableRow) (t toldOne, err error) {
	err = row.Scan(&t.driver, &t.id)
	return t, err
}

// lockAndDelete is lock of a changeset that takes something away, which it does: before the events
// of the changeset are counted, as one that is deleted may come again with it.
//
// Drivers are locked first. So whose notices go is read once before, to know whom to lock, and once
// after; who was told in between makes it a conflict.
func (c *change) lockAndDelete(ctx context.Context) error {
	taskIDs := idsOf(c.cs.DeleteTasks, func(t *tracking.Task) string { return string(t.ID) })
	tripIDs := idsOf(c.cs.DeleteTrips, func(t *tracking.Trip) string { return string(t.ID) })
	var kinds, ids []string
	for _, id := range taskIDs {
		kinds, ids = append(kinds, string(tracking.KindTask)), append(ids, id)
	}
	for _, id := range tripIDs {
		kinds, ids = append(kinds, string(tracking.KindTrip)), append(ids, id)
	}
	var before, after []toldOne
	queueRows(c.tx, &before, scanTold, selectTold, c.app, kinds, ids)
	if err := c.flush(ctx); err != nil {
		return err
	}
	for _, t := range before {
		c.also = append(c.also, t.driver)
	}
	var subjects []int64
	c.lockOwners()
	c.lockTasks()
	c.lockTrips()
	c.lockKeys()
	queueRows(c.tx, &subjects, pgx.RowTo[int64], lockSubjectsByID, c.app, kinds, ids)
	queueRows(c.tx, &after, scanTold, selectTold, c.app, kinds, ids)
	if err := c.flush(ctx); err != nil {
		return err
	}
	version, err := c.checkDeletions()
	if err != nil {
		return err
	}
	var drivers, notices []int64
	for _, t := range after {
		if d := c.drivers[tracking.DriverID(t.driver)]; d != nil {
			drivers, notices = append(drivers, d.number), append(notices, t.id)
		} else if !slices.Contains(c.also, t.driver) {
			return &tracking.ConflictError{}
		}
	}
	if version > 0 {
		c.queue(keepMarks, c.app, version, int64(0))
		c.marks = c.marks.after(version, 0)
	}
	c.queue(dropNotices, c.app, drivers, notices)
	c.queue(dropQueues, c.app, subjects)
	c.queue(dropDeliveries, c.app, subjects)
	c.queue(lockPlaces, c.app) // else who gives places to these events and this would wait for each other
	c.queue(dropPlacedEvents, c.app, subjects)
	c.queue(dropUnplacedEvents, c.app, subjects)
	c.queue(dropSubjects, c.app, subjects)
	c.queue(deleteTasks, c.app, taskIDs)
	c.queue(deleteTrips, c.app, tripIDs)
	c.queue(deleteFiles, c.app, sorted(slices.Clone(c.cs.DropFiles)))
	c.countEvents()
	c.lockRequests()
	return c.flush(ctx)
}

// checkDeletions compares the versions of what is to go, and returns the greatest of them. For what
// comes after, these rows are not there.
func (c *change) checkDeletions() (version int64, err error) {
	for i := range c.cs.DeleteTasks {
		t := &c.cs.DeleteTasks[i]
		if present, ok := c.tasks[string(t.ID)]; !ok || present != t.Version {
			return 0, rows.VersionConflict(tracking.KindTask, t.ID)
		}
		delete(c.tasks, string(t.ID))
		version = max(version, t.Version)
	}
	for i := range c.cs.DeleteTrips {
		t := &c.cs.DeleteTrips[i]
		if present, ok := c.trips[string(t.ID)]; !ok || present != t.Version {
			return 0, rows.VersionConflict(tracking.KindTrip, t.ID)
		}
		delete(c.trips, string(t.ID))
		version = max(version, t.Version)
	}
	return version, nil
}
