package postgres

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8aba7b13/tracking"
)

// What is due, and what is further ahead than it can be: each kind by its index, the earliest first.
const (
	dueTrips    = `SELECT app, 'trip' AS kind, id, ttl AS at FROM tracking.trips WHERE status = 1 AND ttl`
	dueTasks    = `SELECT app, 'task' AS kind, id, due_at AS at FROM tracking.tasks WHERE due_at`
	geocodeTask = `SELECT app, 'task' AS kind, id, geocode_at AS at FROM tracking.tasks WHERE geocode_at`
	geocodeTrip = `SELECT app, 'trip' AS kind, id, geocode_at AS at FROM tracking.trips WHERE geocode_at`

	dueContacts  = `SELECT app, 'task' AS kind, id, completed_at AS at FROM tracking.tasks WHERE personal AND completed_at`
	dueDeletions = `SELECT app, 'task' AS kind, id, completed_at AS at FROM tracking.tasks WHERE completed_at`

	by     = ` <= $1`
	beyond = ` > $2`
)

// dueQuery is the union of some selects, all of one application or of all.
func dueQuery(q tracking.DueQuery, selects ...string) string {
	var sql string
	for i, one := range selects {
		if i > 0 {
			sql += ` UNION ALL `
		}
		if q.App != "" {
			one += ` AND app = $4`
		}
		if q.App != "" && q.Kind == tracking.DueTrips {
			w := where{args: make([]any, 4)}
			w.trips(q)
			one += w.sql
		}
		sql += `(` + one + ` ORDER BY at LIMIT $3)`
	}
	return sql + ` ORDER BY at LIMIT $3`
}

type dueRow struct {
	app     int32
	subject tracking.Subject
}

func scanDue(row pgx.CollectableRow) (r dueRow, err error) {
	var at int64
	err = row.Scan(&r.app, &r.subject.Kind, &r.subject.ID, &at)
	return r, err
}

// trips adds whose trips are asked for.
func (w *where) trips(q tracking.DueQuery) {
	if q.Driver != "" {
		w.and(tripsAndDriver, string(q.Driver))
	}
	if q.TrackingID != "" {
		w.and(tripsAndTracking, string(q.TrackingID))
	}
}

// Due implements [tracking.Store].
func (s *Store) Due(ctx context.Context, q tracking.DueQuery) ([]tracking.Due, error) {
	key := func(d tracking.Due) (claimKey, error) {
		n, err := s.numberOf(ctx, d.App)
		return claimKey{n, d.Subject}, err
	}
	return take(ctx, s, int(q.Kind), q.Claim, q.Limit, key, func(limit int) ([]tracking.Due, error) {
		q.Limit = limit
		return s.listDue(ctx, q)
	})
}

func (s *Store) listDue(ctx context.Context, q tracking.DueQuery) ([]tracking.Due, error) {
	ahead := int64(math.MaxInt64)
	if !q.Beyond.IsZero() {
		ahead = q.Beyond.UnixMilli()
	}
	args := []any{q.Before.UnixMilli(), ahead, max(q.Limit, 0)}
	if q.App != "" {
		n, err := s.numberOf(ctx, q.App)
		if err != nil {
			return nil, err
		}
		args = append(args, n)
		if q.Kind == tracking.DueTrips {
			w := where{args: args}
			w.trips(q)
			args = w.args
		}
	}
	var selects []string
	switch q.Kind {
	case tracking.DueTrips:
		selects = []string{dueTrips + by, dueTrips + beyond}
	case tracking.DueTasks:
		selects = []string{dueTasks + by, dueTasks + beyond}
	case tracking.DueContacts:
		selects = []string{dueContacts + by, dueContacts + beyond}
	case tracking.DueDeletions:
		selects = []string{dueDeletions + by, dueDeletions + beyond}
	case tracking.DueGeocodes:
		selects = []string{geocodeTask + by, geocodeTask + beyond, geocodeTrip + by, geocodeTrip + beyond}
	case tracking.DueSilence:
		return s.silent(ctx, q)
	default:
		return nil, errors.New("postgres: unknown kind of what is due")
	}
	return s.due(ctx, dueQuery(q, selects...), args)
}

// due reads what a query finds.
func (s *Store) due(ctx context.Context, query string, args []any) ([]tracking.Due, error) {
	found, err := list(ctx, s, scanDue, query, args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	due := make([]tracking.Due, len(found))
	for i, r := range found {
		app, err := s.appOf(ctx, r.app)
		if err != nil {
			return nil, err
		}
		due[i] = tracking.Due{App: app, Subject: r.subject}
	}
	return due, nil
}

// From each application that has a waiting task to the next.
const selectWaitingApps = `
WITH RECURSIVE a (app) AS (
	SELECT (SELECT min(app) FROM tracking.tasks WHERE wait_cell IS NOT NULL)
	UNION ALL
	SELECT (SELECT min(app) FROM tracking.tasks WHERE wait_cell IS NOT NULL AND app > a.app) FROM a
		WHERE a.app IS NOT NULL)
SELECT app FROM a WHERE app IS NOT NULL`

// WaitingApps implements [tracking.Store].
func (s *Store) WaitingApps(ctx context.Context) ([]tracking.AppID, error) {
	numbers, err := list(ctx, s, pgx.RowTo[int32], selectWaitingApps)
	if err != nil {
		return nil, err
	}
	var apps []tracking.AppID
	for _, n := range numbers {
		app, err := s.appOf(ctx, n)
		if err != nil {
			return nil, err
		}
		apps = append(apps, app)
	}
	slices.Sort(apps)
	return apps, nil
}
