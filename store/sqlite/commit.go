package sqlite

import (
	"context"
	"errors"
	"strings"

	"github.com/seed-8aba7b13/tracking"
)

// Commit implements [tracking.Store].
func (s *Store) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) error {
	return s.write(ctx, true, func(x *tx) error {
		n, err := x.app(app)
		if err != nil {
			return err
		}
		err = x.apply(n, cs)
		var conflict *tracking.ConflictError
		if errors.As(err, &conflict) && conflict.Unique != "" && mayPassOn(cs) {
			// A unique value counts where it is afterwards. One row of cs may have had it before another one wanted it.
			if err := x.undo(); err != nil {
				return err
			}
			if n, err = x.app(app); err != nil {
				return err
			}
			if err := x.release(n, cs); err != nil {
				return err
			}
			return x.apply(n, cs)
		}
		return err
	})
}

func conflict(kind tracking.SubjectKind, id string) error {
	return &tracking.ConflictError{Kind: kind, ID: id}
}

func taken(kind tracking.SubjectKind, unique string) error {
	return &tracking.ConflictError{Kind: kind, Unique: unique}
}

// apply writes all of cs: what makes room first, then updates, inserts, and what belongs to the rows.
func (x *tx) apply(app int64, cs *tracking.Changeset) error {
	for i := range cs.DeleteDrivers {
		if err := x.deleteDriver(app, &cs.DeleteDrivers[i]); err != nil {
			return err
		}
	}
	for _, insert := range []bool{false, true} {
		for i := range cs.Tasks {
			if t := &cs.Tasks[i]; t.Version == 0 == insert {
				if err := x.putTask(app, t); err != nil {
					return err
				}
			}
		}
		for i := range cs.Trips {
			if t := &cs.Trips[i]; t.Version == 0 == insert {
				if err := x.putTrip(app, t); err != nil {
					return err
				}
			}
		}
		for i := range cs.Drivers {
			if d := &cs.Drivers[i]; d.Version == 0 == insert {
				if err := x.putDriver(app, d); err != nil {
					return err
				}
			}
		}
		for i := range cs.Keys {
			if k := &cs.Keys[i]; k.Version == 0 == insert {
				if err := x.putKey(app, k); err != nil {
					return err
				}
			}
		}
	}
	for _, insert := range []bool{false, true} {
		for i := range cs.Invites {
			if v := &cs.Invites[i]; v.Version == 0 == insert {
				if err := x.putInvite(app, v); err != nil {
					return err
				}
			}
		}
	}
	for i := range cs.Push {
		if err := x.putRequest(app, &cs.Push[i]); err != nil {
			return err
		}
	}
	for _, id := range cs.CloseRequests {
		if err := x.closeRequest(app, id); err != nil {
			return err
		}
	}
	for _, b := range cs.Fixes {
		_, err := x.record(app, wholeBatch(b))
		if errors.Is(err, tracking.ErrNotFound) {
			err = conflict(tracking.KindDriver, string(b.DriverID))
		}
		if err != nil {
			return err
		}
	}
	return x.appendEvents(app, cs.Events, cs.Deliver)
}

// mayPassOn reports whether one row of cs may leave a unique value to another.
func mayPassOn(cs *tracking.Changeset) bool {
	return len(cs.Tasks) > 1 || len(cs.Trips) > 1 || len(cs.Invites) > 1 || len(cs.Keys) > 1
}

const (
	releaseTask   = `UPDATE tasks SET key = NULL WHERE app = ? AND id = ? AND version = ?`
	releaseTrip   = `UPDATE trips SET status = 0 WHERE app = ? AND id = ? AND version = ?`
	releaseInvite = `UPDATE invites SET code_hash = NULL WHERE driver = (SELECT seq FROM drivers WHERE app = ? AND id = ?)`
	releaseKey    = `UPDATE keys SET hash = NULL WHERE app = ? AND id = ? AND version = ?`
)

// release takes the unique values from the rows that cs replaces; apply then writes what they have afterwards.
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
	for _, v := range cs.Invites {
		if err := x.exec(releaseInvite, app, v.DriverID); err != nil {
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

// update builds an UPDATE that leaves alone the indexed columns that stay as they are: SQLite would write each of their indices anew.
// The parts are constants, so there are few texts in all.
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
