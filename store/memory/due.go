package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/claims"
)

// Due implements [tracking.Store].
func (s *Store) Due(ctx context.Context, q tracking.DueQuery) ([]tracking.Due, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	key := func(d tracking.Due) claimedDue { return claimedDue{q.Kind, d} }
	return claims.Take(&s.due, q.Claim, q.Limit, key, func(limit int) ([]tracking.Due, error) {
		q.Limit = limit
		return s.listDue(q), nil
	})
}

// claimedDue names what was handed out.
type claimedDue struct {
	kind tracking.DueKind
	tracking.Due
}

func (s *Store) listDue(q tracking.DueQuery) []tracking.Due {
	var all []dueRow
	var one [1]*application
	for _, a := range s.applications(q.App, one[:0]) {
		a.mu.RLock()
		all = a.due(all, q)
		a.mu.RUnlock()
	}
	slices.SortFunc(all, func(a, b dueRow) int {
		return cmp.Or(a.at.Compare(b.at), strings.Compare(string(a.App), string(b.App)), cmp.Compare(a.rank, b.rank))
	})
	var list []tracking.Due
	for _, d := range all[:min(max(q.Limit, 0), len(all))] {
		list = append(list, d.Due)
	}
	return list
}

// dueRow is a row that came due at a moment; rank orders those of one application and moment.
type dueRow struct {
	tracking.Due
	at   time.Time
	rank int
}

// due appends what of the application is due, at most q.Limit of each kind of row, and of each that
// is further ahead than it can be.
func (a *application) due(all []dueRow, q tracking.DueQuery) []dueRow {
	switch q.Kind {
	case tracking.DueTrips:
		trip := func(r *tripRow) dueRow { return a.dueRow(tracking.KindTrip, string(r.trip.ID), r.trip.TTL) }
		if q.TrackingID != "" {
			var mine list[*tripRow]
			if r := a.trips.active[q.TrackingID]; r != nil && (q.Driver == "" || r.trip.DriverID == q.Driver) {
				mine.insert(r, byTTL)
			}
			return dueOf(&mine, q, all, trip)
		}
		if q.Driver == "" {
			return dueOf(&a.trips.due, q, all, trip)
		}
		if d := a.trips.byDriver[q.Driver]; d != nil && d.byStatus[tracking.TripActive] != nil { // they are few
			var mine list[*tripRow]
			c := d.byStatus[tracking.TripActive].start(0)
			for r, ok := c.next(); ok; r, ok = c.next() {
				mine.insert(r, byTTL)
			}
			return dueOf(&mine, q, all, trip)
		}
	case tracking.DueGeocodes:
		all = dueOf(&a.tasks.geocode, q, all, func(n taskNo) dueRow {
			r := a.tasks.rows.at(n)
			return a.dueTask(r, r.task().GeocodeAt.UnixMilli())
		})
		return dueOf(&a.trips.geocode, q, all, func(r *tripRow) dueRow {
			return a.dueRow(tracking.KindTrip, string(r.trip.ID), r.trip.GeocodeAt)
		})
	case tracking.DueTasks:
		return dueOf(&a.tasks.due, q, all, func(n taskNo) dueRow {
			r := a.tasks.rows.at(n)
			return a.dueTask(r, r.due)
		})
	case tracking.DueContacts, tracking.DueDeletions:
		ended := &a.tasks.all.completed
		if q.Kind == tracking.DueContacts {
			ended = &a.tasks.personal
		}
		return dueOf(ended, q, all, func(n taskNo) dueRow {
			r := a.tasks.rows.at(n)
			return a.dueTask(r, r.completed)
		})
	case tracking.DueSilence:
		found := a.nearby.Silent(q.Before, q.Limit)
		if !q.Beyond.IsZero() {
			found = append(found, a.nearby.Ahead(q.Beyond, q.Limit)...)
		}
		for _, d := range found {
			all = append(all, a.dueRow(tracking.KindDriver, string(d.ID), d.Since))
			all[len(all)-1].rank = len(all)
		}
	}
	return all
}

func (a *application) dueRow(kind tracking.SubjectKind, id string, at time.Time) dueRow {
	return dueRow{Due: tracking.Due{App: a.id, Subject: tracking.Subject{Kind: kind, ID: id}}, at: at}
}

func (a *application) dueTask(r *taskRow, at int64) dueRow {
	return a.dueRow(tracking.KindTask, string(r.kept.head().id), time.UnixMilli(at).UTC())
}

// dueOf appends from both ends of a list that is in order of time.
func dueOf[T any](l *list[T], q tracking.DueQuery, all []dueRow, row func(T) dueRow) []dueRow {
	add := func(walk func() (T, bool), due func(time.Time) bool) {
		for range q.Limit {
			v, ok := walk()
			if !ok {
				return
			}
			d := row(v)
			if !due(d.at) {
				return
			}
			d.rank = len(all)
			all = append(all, d)
		}
	}
	first, last := l.start(0), l.end(0)
	add(first.next, func(at time.Time) bool { return !at.After(q.Before) })
	if !q.Beyond.IsZero() {
		add(last.prev, func(at time.Time) bool { return at.After(q.Beyond) })
	}
	return all
}
