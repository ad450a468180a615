package storetest

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// page cuts a page out of list, copies it, and tells whether rows follow.
func page[T any](list []T, p tracking.Page) ([]T, bool) {
	start := min(p.Offset(), len(list))
	end := min(start+p.Limit, len(list))
	return kept(list[start:end]), end < len(list)
}

// first cuts the first n.
func first[T any](list []T, n int) []T { return kept(list[:min(n, len(list))]) }

// pick returns the values that pass, sorted.
func pick[K comparable, V any](m map[K]V, pass func(V) bool, order func(a, b V) int) []V {
	var list []V
	for _, v := range m {
		if pass(v) {
			list = append(list, v)
		}
	}
	slices.SortFunc(list, order)
	return list
}

func (r *reference) Task(ctx context.Context, app tracking.AppID, id tracking.TaskID) (tracking.Task, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return tracking.Task{}, err
	}
	defer r.mu.Unlock()
	if t, ok := b.tasks[id]; ok {
		return kept(t), nil
	}
	return tracking.Task{}, tracking.ErrNotFound
}

func (r *reference) Tasks(ctx context.Context, app tracking.AppID, f tracking.TaskFilter) ([]tracking.Task, bool, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return nil, false, err
	}
	defer r.mu.Unlock()
	list, more := page(pick(b.tasks, func(t tracking.Task) bool {
		return (f.DriverID == "" || t.DriverID == f.DriverID) &&
			(len(f.Status) == 0 || slices.Contains(f.Status, t.Status)) &&
			(f.OrderID == "" || t.OrderID == f.OrderID) &&
			(f.CompletedSince.IsZero() || !t.CompletedAt.Before(f.CompletedSince))
	}, func(a, b tracking.Task) int { return -byAge(a.CreatedAt, b.CreatedAt, a.Seq, b.Seq) }), f.Page)
	return list, more, nil
}

func (r *reference) TaskByKey(ctx context.Context, app tracking.AppID, key string) (tracking.Task, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return tracking.Task{}, err
	}
	defer r.mu.Unlock()
	for _, t := range b.tasks {
		if key != "" && t.Key == key {
			return kept(t), nil
		}
	}
	return tracking.Task{}, tracking.ErrNotFound
}

// anywhere finds the value with that hash in any application.
func anywhere[K comparable, V any](ctx context.Context, r *reference, hash tracking.Hash, table func(*book) map[K]V, hashes func(V) []tracking.Hash) (tracking.AppID, V, error) {
	var none V
	if _, err := r.enter(ctx, ""); err != nil {
		return "", none, err
	}
	defer r.mu.Unlock()
	for app, b := range r.apps {
		for _, v := range table(b) {
			if !hash.IsZero() && slices.Contains(hashes(v), hash) {
				return app, kept(v), nil
			}
		}
	}
	return "", none, tracking.ErrNotFound
}

func (r *reference) TaskByLink(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Task, error) {
	return anywhere(ctx, r, hash, func(b *book) map[tracking.TaskID]tracking.Task { return b.tasks },
		func(t tracking.Task) []tracking.Hash { return []tracking.Hash{t.Link.Hash} })
}

func (r *reference) Trip(ctx context.Context, app tracking.AppID, id tracking.TripID) (tracking.Trip, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return tracking.Trip{}, err
	}
	defer r.mu.Unlock()
	if t, ok := b.trips[id]; ok {
		return kept(t), nil
	}
	return tracking.Trip{}, tracking.ErrNotFound
}

func (r *reference) Trips(ctx context.Context, app tracking.AppID, f tracking.TripFilter) ([]tracking.Trip, bool, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return nil, false, err
	}
	defer r.mu.Unlock()
	list, more := page(pick(b.trips, func(t tracking.Trip) bool {
		return (f.Status == 0 || t.Status == f.Status) &&
			(f.DriverID == "" || t.DriverID == f.DriverID) &&
			(f.TrackingID == "" || t.TrackingID == f.TrackingID)
	}, func(a, b tracking.Trip) int { return -byAge(a.CreatedAt, b.CreatedAt, a.Seq, b.Seq) }), f.Page)
	return list, more, nil
}

func (r *reference) ActiveTrip(ctx context.Context, app tracking.AppID, id tracking.TrackingID) (tracking.Trip, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return tracking.Trip{}, err
	}
	defer r.mu.Unlock()
	for _, t := range b.trips {
		if t.Status == tracking.Active && t.TrackingID == id {
			return kept(t), nil
		}
	}
	return tracking.Trip{}, tracking.ErrNotFound
}

func (r *reference) TripByLink(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Trip, error) {
	return anywhere(ctx, r, hash, func(b *book) map[tracking.TripID]tracking.Trip { return b.trips },
		func(t tracking.Trip) []tracking.Hash { return []tracking.Hash{t.Link.Hash} })
}

func (r *reference) Request(ctx context.Context, app tracking.AppID, id tracking.RequestID) (tracking.Request, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return tracking.Request{}, err
	}
	defer r.mu.Unlock()
	if q, ok := b.requests[id]; ok {
		return kept(q), nil
	}
	return tracking.Request{}, tracking.ErrNotFound
}

func (r *reference) Requests(ctx context.Context, app tracking.AppID, driver tracking.DriverID) ([]tracking.Request, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	return kept(pick(b.requests, func(q tracking.Request) bool { return q.DriverID == driver }, func(a, b tracking.Request) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.TrackingID, b.TrackingID))
	})), nil
}

func (r *reference) Fixes(ctx context.Context, app tracking.AppID, driver tracking.DriverID, rg tracking.FixRange) iter.Seq2[tracking.Fix, error] {
	return func(yield func(tracking.Fix, error) bool) {
		b, err := r.enter(ctx, app)
		if err != nil {
			yield(tracking.Fix{}, err)
			return
		}
		var list []tracking.Fix
		if log := b.fixes[driver]; log != nil {
			for _, k := range log.list[log.purged:] {
				if k.Mark != tracking.FixCandidate && !k.Time.Before(rg.From) && (rg.To.IsZero() || !k.Time.After(rg.To)) {
					list = append(list, k.Fix)
				}
			}
		}
		r.mu.Unlock()
		if rg.Newest {
			slices.Reverse(list)
		}
		for i, f := range list {
			if (rg.Limit != 0 && i == rg.Limit) || !yield(f, nil) {
				return
			}
		}
	}
}

func (r *reference) Driver(ctx context.Context, app tracking.AppID, id tracking.DriverID) (tracking.Driver, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return tracking.Driver{}, err
	}
	defer r.mu.Unlock()
	if d, ok := b.drivers[id]; ok {
		return kept(d), nil
	}
	return tracking.Driver{}, tracking.ErrNotFound
}

func nearer(a, b tracking.Driver) int {
	return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.ID, b.ID))
}

func (r *reference) Drivers(ctx context.Context, app tracking.AppID, f tracking.DriverFilter) ([]tracking.Driver, bool, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return nil, false, err
	}
	defer r.mu.Unlock()
	list := pick(b.drivers, func(d tracking.Driver) bool {
		for k, v := range f.Properties {
			if got, ok := d.Properties[k]; !ok || got != v {
				return false
			}
		}
		return (f.Available == nil || d.Available == *f.Available) && (f.Near == nil || d.Position.Located())
	}, func(a, b tracking.Driver) int { return byAge(a.CreatedAt, b.CreatedAt, a.Seq, b.Seq) })
	if f.Near != nil {
		for i := range list {
			list[i].Distance = tracking.Distance(*f.Near, list[i].Position.Fix.LngLat)
		}
		slices.SortFunc(list, nearer)
	}
	list, more := page(list, f.Page)
	return list, more, nil
}

func (r *reference) Offers(ctx context.Context, app tracking.AppID, o tracking.Offer) ([]tracking.Driver, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	var list []tracking.Driver
	for _, d := range b.drivers {
		d.Distance = tracking.Distance(o.At, d.Position.Fix.LngLat)
		if d.Available && !d.Silent && d.Position.Located() &&
			(o.MaxOpen < 0 || d.OpenTasks < o.MaxOpen) && !d.Position.SeenAt.Before(o.SeenSince) &&
			(o.Within == 0 || d.Distance <= o.Within) && !slices.Contains(o.Exclude, d.ID) {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, nearer)
	return first(list, o.Limit), nil
}

func (r *reference) DriverByToken(ctx context.Context, kind tracking.TokenKind, hash tracking.Hash) (tracking.AppID, tracking.Driver, error) {
	return anywhere(ctx, r, hash, func(b *book) map[tracking.DriverID]tracking.Driver { return b.drivers },
		func(d tracking.Driver) []tracking.Hash {
			if kind == tracking.AppToken {
				return []tracking.Hash{d.AppToken}
			}
			return []tracking.Hash{d.IngestToken}
		})
}

func (r *reference) Invite(ctx context.Context, app tracking.AppID, driver tracking.DriverID) (tracking.Invite, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return tracking.Invite{}, err
	}
	defer r.mu.Unlock()
	if i, ok := b.invites[driver]; ok {
		return i, nil
	}
	return tracking.Invite{}, tracking.ErrNotFound
}

func (r *reference) InviteByHash(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Invite, error) {
	return anywhere(ctx, r, hash, func(b *book) map[tracking.DriverID]tracking.Invite { return b.invites },
		func(i tracking.Invite) []tracking.Hash { return []tracking.Hash{i.LinkHash, i.CodeHash} })
}

func (r *reference) Keys(ctx context.Context, app tracking.AppID) ([]tracking.Key, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	return slices.SortedFunc(maps.Values(b.keys), func(a, b tracking.Key) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	}), nil
}

func (r *reference) KeyByHash(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Key, error) {
	return anywhere(ctx, r, hash, func(b *book) map[string]tracking.Key { return b.keys },
		func(k tracking.Key) []tracking.Hash { return []tracking.Hash{k.Hash} })
}

func (r *reference) Events(ctx context.Context, app tracking.AppID, f tracking.EventFilter) ([]tracking.Event, bool, error) {
	if _, err := r.enter(ctx, app); err != nil {
		return nil, false, err
	}
	defer r.mu.Unlock()
	var list []tracking.Event
	found := f.After == ""
	for _, e := range r.log {
		if e.app != app {
			continue
		}
		if found && (f.Subject == tracking.Subject{} || e.event.Subject == f.Subject) && (!f.Dead || e.in(f.Outbox) == tracking.Dead) {
			list = append(list, e.event)
		}
		found = found || e.event.ID == f.After
	}
	if !found {
		return nil, false, tracking.ErrNotFound
	}
	return first(list, f.Limit), len(list) > f.Limit, nil
}

func (r *reference) Notices(ctx context.Context, app tracking.AppID, driver tracking.DriverID, after int64, limit int) ([]tracking.Notice, bool, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return nil, false, err
	}
	defer r.mu.Unlock()
	f := b.notices[driver]
	if f == nil {
		return nil, after > 0, nil
	}
	i := slices.IndexFunc(f.list, func(n tracking.Notice) bool { return n.ID > after })
	if i < 0 {
		i = len(f.list)
	}
	return first(f.list[i:], limit), f.purged > after || after > f.last, nil
}

func (r *reference) Due(ctx context.Context, q tracking.DueQuery) ([]tracking.Due, error) {
	if _, err := r.enter(ctx, ""); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	type due struct {
		tracking.Due
		at time.Time
	}
	var list []due
	for app, b := range r.apps {
		if q.App != "" && app != q.App {
			continue
		}
		add := func(kind tracking.SubjectKind, id string, at time.Time) {
			if !at.After(q.Before) {
				list = append(list, due{tracking.Due{App: app, Subject: tracking.Subject{Kind: kind, ID: id}}, at})
			}
		}
		switch q.Kind {
		case tracking.DueTrips:
			for _, t := range b.trips {
				if t.Status == tracking.Active {
					add(tracking.KindTrip, string(t.ID), t.TTL)
				}
			}
		case tracking.DueGeocodes:
			for _, t := range b.tasks {
				if !t.GeocodeAt.IsZero() {
					add(tracking.KindTask, string(t.ID), t.GeocodeAt)
				}
			}
			for _, t := range b.trips {
				if !t.GeocodeAt.IsZero() {
					add(tracking.KindTrip, string(t.ID), t.GeocodeAt)
				}
			}
		case tracking.DueSilence:
			for _, d := range b.drivers {
				if d.Available && !d.Silent {
					add(tracking.KindDriver, string(d.ID), later(d.Position.SeenAt, d.DutyAt))
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b due) int { return a.at.Compare(b.at) })
	var out []tracking.Due
	for _, d := range list {
		out = append(out, d.Due)
	}
	return first(out, q.Limit), nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (r *reference) Waiting(ctx context.Context, app tracking.AppID, after tracking.Cursor, n int) ([]tracking.AppTask, error) {
	if _, err := r.enter(ctx, ""); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	var list []tracking.AppTask
	for a, b := range r.apps {
		for _, t := range b.tasks {
			if t.Waiting && (app == "" || a == app) && byAge(t.CreatedAt, after.CreatedAt, t.Seq, after.Seq) > 0 {
				list = append(list, tracking.AppTask{App: a, Task: t})
			}
		}
	}
	slices.SortFunc(list, func(a, b tracking.AppTask) int {
		return byAge(a.Task.CreatedAt, b.Task.CreatedAt, a.Task.Seq, b.Task.Seq)
	})
	return first(list, n), nil
}
