package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// Due implements [tracking.Store].
func (s *Store) Due(ctx context.Context, q tracking.DueQuery) ([]tracking.Due, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	var all []dueRow
	for _, a := range s.applications(q.App) {
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
	return list, nil
}

// dueRow is a row that came due at a moment; rank orders those of one application and moment.
type dueRow struct {
	tracking.Due
	at   time.Time
	rank int
}

// due appends what of the application is due, at most q.Limit of each kind of row.
func (a *application) due(all []dueRow, q tracking.DueQuery) []dueRow {
	add := func(kind tracking.SubjectKind, id string, at time.Time) bool {
		if at.After(q.Before) {
			return false
		}
		all = append(all, dueRow{tracking.Due{App: a.id, Subject: tracking.Subject{Kind: kind, ID: id}}, at, len(all)})
		return true
	}
	switch q.Kind {
	case tracking.DueTrips:
		first(&a.trips.due, q.Limit, func(r *tripRow) bool { return add(tracking.KindTrip, string(r.trip.ID), r.trip.TTL) })
	case tracking.DueGeocodes:
		first(&a.tasks.geocode, q.Limit, func(r *taskRow) bool { return add(tracking.KindTask, string(r.task.ID), r.task.GeocodeAt) })
		first(&a.trips.geocode, q.Limit, func(r *tripRow) bool { return add(tracking.KindTrip, string(r.trip.ID), r.trip.GeocodeAt) })
	case tracking.DueSilence:
		for _, d := range a.nearby.Silent(q.Before, q.Limit) {
			add(tracking.KindDriver, string(d.ID), d.Since)
		}
	}
	return all
}

// first hands the first n elements of l to add, until it returns false.
func first[T any](l *list[T], n int, add func(T) bool) {
	c := l.start(0)
	for range n {
		if v, ok := c.next(); !ok || !add(v) {
			return
		}
	}
}
