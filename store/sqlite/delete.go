package sqlite

import (
	"slices"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

const (
	deleteTask  = `DELETE FROM tasks WHERE seq = ?`
	deleteTrip  = `DELETE FROM trips WHERE seq = ?`
	keepVersion = `UPDATE apps SET last_version = max(last_version, ?) WHERE n = ?`

	selectTold              = `SELECT notices FROM events INDEXED BY events_by_subject WHERE subject = ? AND notices IS NOT NULL`
	deleteSubjectQueues     = `DELETE FROM queues WHERE subject = ?`
	deleteSubjectDeliveries = `DELETE FROM deliveries WHERE subject = ?`
	deleteSubjectEvents     = `DELETE FROM events WHERE subject = ?`
	deleteSubject           = `DELETE FROM subjects WHERE n = ?`
)

// erases reports whether a changeset takes away what nobody is to find any more, not in the log
// either.
func erases(cs *tracking.Changeset) bool {
	return len(cs.DeleteDrivers)+len(cs.DeleteTasks)+len(cs.DeleteTrips)+len(cs.DropFiles) > 0 ||
		slices.ContainsFunc(cs.Tasks, func(t tracking.Task) bool { return !t.ErasedAt.IsZero() })
}

// applyDeletions removes the tasks, trips and files that are to go.
func (x *tx) applyDeletions(app int64, cs *tracking.Changeset) error {
	for i := range cs.DeleteTasks {
		if err := x.deleteTask(app, &cs.DeleteTasks[i]); err != nil {
			return err
		}
	}
	for i := range cs.DeleteTrips {
		if err := x.deleteTrip(app, &cs.DeleteTrips[i]); err != nil {
			return err
		}
	}
	for _, id := range cs.DropFiles {
		if err := x.exec(deleteFile, app, id); err != nil {
			return err
		}
	}
	return nil
}

// deleteTask removes a task's row, what it is found by, and what its events are.
func (x *tx) deleteTask(app int64, t *tracking.Task) error {
	var old indexedTask
	found, err := x.find(&old, selectTaskIndexed, app, t.ID)
	if err != nil {
		return err
	}
	if !found || old.Version != t.Version {
		return rows.VersionConflict(tracking.KindTask, t.ID)
	}
	was, err := old.task()
	if err != nil {
		return err
	}
	x.putTerms(app, old.Place, &was, &tracking.Task{})
	if err := x.dropSubject(app, tracking.KindTask, string(t.ID)); err != nil { // while its row says which it is
		return err
	}
	if err := x.exec(deleteTask, old.Seq); err != nil {
		return err
	}
	x.waits(app, &tracking.Task{ID: t.ID}, old.Waiting, old.CreatedAt.Time, old.Seq)
	return x.raise(keepVersion, old.Version, app)
}

func (x *tx) deleteTrip(app int64, t *tracking.Trip) error {
	var old tripRow
	found, err := x.find(&old, selectTripIndexed, app, t.ID)
	if err != nil {
		return err
	}
	if !found || old.Version != t.Version {
		return rows.VersionConflict(tracking.KindTrip, t.ID)
	}
	if err := x.exec(deleteTrip, old.Seq); err != nil {
		return err
	}
	if err := x.raise(keepVersion, old.Version, app); err != nil {
		return err
	}
	return x.dropSubject(app, tracking.KindTrip, string(t.ID))
}

// dropSubject removes all events of a subject, what is to be delivered of them, and the notices that
// they have told.
func (x *tx) dropSubject(app int64, kind tracking.SubjectKind, id string) error {
	var sub subjectRow
	if found, err := x.find(&sub, selectSubject, app, string(kind), id); err != nil || !found {
		return err
	}
	var told []text
	if err := x.list(&told, selectTold, sub.N); err != nil {
		return err
	}
	for _, column := range told {
		notices, err := fromJSON[[]noticeJSON](column)
		if err != nil {
			return err
		}
		for _, n := range notices {
			if err := x.dropNotice(app, n); err != nil {
				return err
			}
		}
	}
	for _, statement := range []string{
		deleteSubjectQueues, deleteSubjectDeliveries, deleteSubjectEvents, deleteSubject,
	} {
		if err := x.exec(statement, sub.N); err != nil {
			return err
		}
	}
	return nil
}

// dropNotice removes a notice, if it is there still.
func (x *tx) dropNotice(app int64, n noticeJSON) error {
	d, err := x.driver(driverKey{app, n.Driver})
	if err != nil || d == nil {
		return err
	}
	gone, err := x.changed(deleteNotice, d.Seq, n.ID)
	if err != nil || gone == 0 {
		return err
	}
	return x.exec(updatePurged, n.ID, d.Seq)
}
