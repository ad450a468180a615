package sqlite

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Commit implements [tracking.Store].
func (s *Store) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (w tracking.Written,
	err error) {
	if err := cmp.Or(ctx.Err(), rows.ChangesetTexts(app, cs)); err != nil {
		return w, err
	}
	err = s.write(ctx, change{lane: verbs, rows: rowsOf(cs), atom: true, adds: adds(cs), apply: func(x *tx) error {
		n, err := x.app(app)
		if err != nil {
			return err
		}
		w, err = x.apply(n, cs)
		var conflict *tracking.ConflictError
		if errors.As(err, &conflict) && conflict.Unique != "" && mayPassOn(cs) {
			// A unique value counts where it is afterwards. One row of cs may have had it before
			// another one wanted it.
			if err := x.undo(); err != nil {
				return err
			}
			if n, err = x.app(app); err != nil {
				return err
			}
			if err := x.release(n, cs); err != nil {
				return err
			}
			w, err = x.apply(n, cs)
		}
		return err
	}})
	if err != nil {
		return tracking.Written{}, err
	}
	return w, nil
}

// rowsADeletion is about how many rows go with one.
const rowsADeletion = 10

// rowsOf is about how many rows a changeset writes.
func rowsOf(cs *tracking.Changeset) int {
	n := len(cs.Tasks) + len(cs.Trips) + len(cs.Drivers) + len(cs.DeleteDrivers)
	n += len(cs.Invites) + len(cs.Keys) + len(cs.Requests)
	n += rowsADeletion*(len(cs.DeleteTasks)+len(cs.DeleteTrips)) + len(cs.DropFiles)
	for _, b := range cs.Fixes {
		n += 1 + len(b.Fixes)
	}
	return n + len(cs.Events)*(1+len(cs.Deliver))
}

// inserted is nil when an INSERT succeeded, and else says what forbade it: exists asks whether the
// row is there.
func (x *tx) inserted(err error, kind tracking.SubjectKind, id, unique, exists string, app int64) error {
	if !isConstraint(err) {
		return err
	}
	var there bool
	if err := x.get(&there, exists, app, id); err != nil {
		return err
	}
	return rows.Refused(kind, id, there, unique)
}

// apply writes all of cs: what makes room first, then updates, inserts, and what belongs to the
// rows.
func (x *tx) apply(app int64, cs *tracking.Changeset) (w tracking.Written, err error) {
	for i := range cs.DeleteDrivers {
		if err := x.deleteDriver(app, &cs.DeleteDrivers[i]); err != nil {
			return w, err
		}
	}
	if erases(cs) {
		if err := x.leavesRemains(); err != nil {
			return w, err
		}
	}
	if err := x.applyDeletions(app, cs); err != nil {
		return w, err
	}
	w = tracking.Written{
		Tasks: make([]tracking.Given, len(cs.Tasks)), Trips: make([]tracking.Given, len(cs.Trips)),
		Drivers: make([]tracking.Given, len(cs.Drivers)),
	}
	marks, err := x.marks(app)
	if err != nil {
		return w, err
	}
	first := marks.LastVersion + 1 // of what is new
	subjects := countedOf(cs.Events)
	for _, insert := range []bool{false, true} {
		for i := range cs.Tasks {
			if t := &cs.Tasks[i]; t.Version == 0 == insert {
				if w.Tasks[i], err = x.putTask(app, t, first, subjects); err != nil {
					return w, err
				}
			}
		}
		for i := range cs.Trips {
			if t := &cs.Trips[i]; t.Version == 0 == insert {
				if w.Trips[i], err = x.putTrip(app, t, first); err != nil {
					return w, err
				}
			}
		}
		for i := range cs.Drivers {
			if d := &cs.Drivers[i]; d.Version == 0 == insert {
				if w.Drivers[i], err = x.putDriver(app, d); err != nil {
					return w, err
				}
			}
		}
		for i := range cs.Keys {
			if k := &cs.Keys[i]; k.Version == 0 == insert {
				if err := x.putKey(app, k); err != nil {
					return w, err
				}
			}
		}
	}
	var coded []*tracking.Invite
	for i := range cs.Invites {
		v := &cs.Invites[i]
		newCode, err := x.putInvite(app, v)
		if err != nil {
			return w, err
		}
		if newCode {
			coded = append(coded, v)
		}
	}
	for _, v := range coded { // now that all are written: one may have left its code to another
		if err := x.checkCode(app, v); err != nil {
			return w, err
		}
	}
	for i := range cs.Requests {
		if err := x.putRequest(app, &cs.Requests[i]); err != nil {
			return w, err
		}
	}
	for _, id := range cs.CloseRequests {
		if err := x.closeRequest(app, id); err != nil {
			return w, err
		}
	}
	for _, b := range cs.Fixes {
		_, err := x.record(app, rows.Batch(b), true)
		if errors.Is(err, tracking.ErrNotFound) {
			err = rows.VersionConflict(tracking.KindDriver, b.DriverID)
		}
		if err != nil {
			return w, err
		}
	}
	return w, x.appendEvents(app, cs.Events, subjects, cs.Deliver)
}

// adds reports whether a changeset is of new tasks alone, with what tells of them.
func adds(cs *tracking.Changeset) bool {
	others := len(cs.Trips) + len(cs.Drivers) + len(cs.Invites) + len(cs.Keys) + len(cs.Requests) + len(cs.CloseRequests) +
		len(cs.Fixes) + len(cs.DeleteTasks) + len(cs.DeleteTrips) + len(cs.DeleteDrivers) + len(cs.DropFiles)
	return others == 0 && !slices.ContainsFunc(cs.Tasks, func(t tracking.Task) bool { return t.Version != 0 })
}

// mayPassOn reports whether one row of cs may leave a unique value to another.
func mayPassOn(cs *tracking.Changeset) bool {
	return !adds(cs) && len(cs.Tasks) > 1 || len(cs.Trips) > 1 || len(cs.Keys) > 1
}

const (
	releaseTask = `UPDATE tasks SET key = NULL WHERE app = ? AND id = ? AND version = ?`
	releaseTrip = `UPDATE trips SET status = 0 WHERE app = ? AND id = ? AND version = ?`
	releaseKey  = `UPDATE keys SET hash = NULL WHERE app = ? AND id = ? AND version = ?`
)

// release takes the unique values from the rows that cs replaces; apply then writes what they have
// afterwards.
func (x *tx) release(app int64, cs *tracking.Changeset) error {
	for _, t := range cs.Tasks {
		if err := x.exec(releaseTask, app, t.ID, t.Version); err != nil {
			return err
		}
	}
	for _, t := range cs.Trips {
		if err := x.exec(releaseTrip, app, t.ID, t.Version); err != nil {
			return err
		}
	}
	for _, k := range cs.Keys {
		if err := x.exec(releaseKey, app, k.ID, k.Version); err != nil {
			return err
		}
	}
	return nil
}

// update builds an UPDATE that leaves alone the indexed columns that stay as they are: SQLite would
// write each of their indices anew. The parts are constants, so there are few texts in all.
type update struct {
	sql  strings.Builder
	args []any
}

func (u *update) begin(sql string, args ...any) {
	u.sql.WriteString(sql)
	u.args = append(u.args, args...)
}

// set adds a column if it differs from what the row has.
func (u *update) set(differs bool, column string, value any) {
	if differs {
		u.sql.WriteString(", " + column + " = ?")
		u.args = append(u.args, value)
	}
}

func (u *update) run(x *tx, where string, args ...any) error {
	u.sql.WriteString(where)
	return x.exec(u.sql.String(), append(u.args, args...)...)
}
