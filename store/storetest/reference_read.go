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

func (r *reference) Tasks(
	ctx context.Context, app tracking.AppID, f tracking.TaskFilter,
) ([]tracking.Task, bool, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return nil, false, err
	}
	defer r.mu.Unlock()
	list, more := page(pick(b.tasks, f.Holds, func(a, b tracking.Task) int {
		return a.Mark(f.Sort).Compare(b.Mark(f.Sort))
	}), f.Page)
	return list, more, nil
}

func (r *reference) TaskCounts(
	ctx context.Context, app tracking.AppID, q tracking.CountQuery,
) (n tracking.TaskCounts, err error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return n, err
	}
	defer r.mu.Unlock()
	for _, t := range b.tasks {
		switch {
		case t.Status == tracking.StatusCreated:
			n.Created++
		case t.Status == tracking.StatusAssigned:
			n.Assigned++
		case t.Status == tracking.StatusInProgress:
			n.InProgress++
		case t.Status == tracking.StatusCompleted && !t.CompletedAt.IsZero() && !t.CompletedAt.Before(q.CompletedSince):
			if n.Completed == nil {
				n.Completed = map[tracking.Outcome]int{}
			}
			n.Completed[t.Outcome]++
		}
		if t.Seeks() {
			n.Waiting++
		}
		if t.Late(q.Now) {
			n.Late++
		}
	}
	return n, nil
}

func (r *reference) Stats(ctx context.Context, now time.Time) (n tracking.Stats, err error) {
	if _, err := r.enter(ctx, ""); err != nil {
		return n, err
	}
	defer r.mu.Unlock()
	sooner := func(a, b time.Time) time.Time {
		if a.IsZero() || b.Before(a) {
			return b
		}
		return a
	}
	for _, b := range r.apps {
		for _, t := range b.tasks {
			switch t.Status {
			case tracking.StatusCreated:
				n.Created++
			case tracking.StatusAssigned:
				n.Assigned++
			case tracking.StatusInProgress:
				n.InProgress++
			}
			if t.Waiting {
				n.Waiting++
				since := t.WaitsSince
				if since.IsZero() {
					since = t.CreatedAt
				}
				n.OldestWaiting = sooner(n.OldestWaiting, since)
			}
			if t.Late(now) {
				n.Late++
			}
		}
		for _, d := range b.drivers {
			if d.Available {
				n.OnDuty++
				if d.Silent {
					n.Silent++
				}
			}
		}
	}
	found := map[string]*tracking.OutboxStats{}
	began := map[queue]bool{} // the first event of an application in an outbox was met
	for _, e := range r.log {
		for name, d := range e.delivery {
			if d.state == tracking.DeliveryDone {
				continue
			}
			if found[name] == nil {
				found[name] = &tracking.OutboxStats{Name: name}
			}
			o := found[name]
			if d.state == tracking.DeliveryDead {
				o.Dead++
				continue
			}
			o.Undelivered++
			if of := (queue{name, owned{app: e.app}}); !began[of] {
				began[of] = true
				o.Oldest = sooner(o.Oldest, e.event.RecordedAt)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		n.Outboxes = append(n.Outboxes, *found[name])
	}
	return n, nil
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
func anywhere[K comparable, V any](
	ctx context.Context, r *reference, hash tracking.Hash, table func(*book) map[K]V, hashes func(V) []tracking.Hash,
) (tracking.AppID, V, error) {
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

func (r *reference) Trips(
	ctx context.Context, app tracking.AppID, f tracking.TripFilter,
) ([]tracking.Trip, bool, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return nil, false, err
	}
	defer r.mu.Unlock()
	list, more := page(pick(b.trips, func(t tracking.Trip) bool {
		return (f.Status == 0 || t.Status == f.Status) &&
			(f.DriverID == "" || t.DriverID == f.DriverID) && (f.Person == "" || t.Person == f.Person) &&
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
		if t.Status == tracking.TripActive && t.TrackingID == id {
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

func (r *reference) Requests(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID,
) ([]tracking.Request, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	return kept(pick(b.requests, func(q tracking.Request) bool { return q.DriverID == driver },
		func(a, b tracking.Request) int {
			return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.TrackingID, b.TrackingID))
		})), nil
}

// Fixes implements [tracking.Store].
func (r *reference) Fixes(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID, rg tracking.FixRange,
) iter.Seq2[tracking.Fix, error] {
	return func(yield func(tracking.Fix, error) bool) {
		b, err := r.enter(ctx, app)
		if err != nil {
			yield(tracking.Fix{}, err)
			return
		}
		var list []tracking.Fix
		if log := b.fixes[driver]; log != nil && (rg.Person == "" || rg.Person == b.drivers[driver].Person) {
			for _, k := range log.list[log.purged:] {
				if k.Mark.Good() && !k.Time.Before(rg.From) && (rg.To.IsZero() || !k.Time.After(rg.To)) {
					list = append(list, k.Fix)
				}
			}
		}
		r.mu.Unlock()
		if rg.Newest {
			slices.Reverse(list)
		}
		for i, f := range list {
			if err := ctx.Err(); err != nil {
				yield(tracking.Fix{}, err)
				return
			}
			if (rg.Limit != 0 && i == rg.Limit) || !yield(f, nil) {
				return
			}
		}
	}
}

func (r *reference) KeptFixes(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID, rg tracking.FixRange,
) ([]tracking.KeptFix, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	var list []tracking.KeptFix
	if log := b.fixes[driver]; log != nil && (rg.Person == "" || rg.Person == b.drivers[driver].Person) {
		for _, k := range log.kept(0, len(log.list)) {
			if !k.Time.Before(rg.From) && (rg.To.IsZero() || !k.Time.After(rg.To)) {
				list = append(list, kept(k))
			}
		}
	}
	if rg.Newest {
		slices.Reverse(list)
	}
	return first(list, rg.Limit), nil
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

// offeredFirst is the order of offers.
func offeredFirst(a, b tracking.Driver) int {
	return cmp.Or(cmp.Compare(a.Distance, b.Distance), cmp.Compare(a.OpenTasks(), b.OpenTasks()), cmp.Compare(a.ID, b.ID))
}

func (r *reference) Drivers(
	ctx context.Context, app tracking.AppID, f tracking.DriverFilter,
) ([]tracking.Driver, bool, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return nil, false, err
	}
	defer r.mu.Unlock()
	list := pick(b.drivers, func(d tracking.Driver) bool {
		return hasAll(d.Properties, f.Properties) &&
			(f.Available == nil || d.Available == *f.Available) && (f.Near == nil || d.Position.Located())
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
	return b.offers(o), nil
}

// hasRoom reports whether a driver has fewer open tasks than his own limit, or else this one.
func hasRoom(d tracking.Driver, limit int) bool {
	if d.MaxOpenTasks != nil {
		limit = *d.MaxOpenTasks
	}
	return limit < 0 || d.OpenTasks() < limit
}

// hasAll reports whether properties hold all that are required.
func hasAll(properties, required map[string]string) bool {
	for k, v := range required {
		if got, ok := properties[k]; !ok || got != v {
			return false
		}
	}
	return true
}

func (b *book) offers(o tracking.Offer) []tracking.Driver {
	var list []tracking.Driver
	for _, d := range b.drivers {
		d.Distance = tracking.Distance(o.At, d.Position.Fix.LngLat)
		if d.Available && !d.Silent && d.Position.Located() &&
			(o.Full || hasRoom(d, o.MaxOpen)) && hasAll(d.Properties, o.Requires) &&
			!d.Position.SeenAt.Before(o.SeenSince) &&
			(o.Within == 0 || d.Distance <= o.Within) && !slices.Contains(o.Exclude, d.ID) {
			list = append(list, d)
		}
	}
	slices.SortFunc(list, offeredFirst)
	return first(list, o.Limit)
}

func (r *reference) DriverByToken(
	ctx context.Context, kind tracking.TokenKind, hash tracking.Hash,
) (tracking.AppID, tracking.Driver, error) {
	return anywhere(ctx, r, hash, func(b *book) map[tracking.DriverID]tracking.Driver { return b.drivers },
		func(d tracking.Driver) []tracking.Hash {
			if kind == tracking.TokenApp {
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

// InviteByHash implements [tracking.Store].
func (r *reference) InviteByHash(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Invite, error) {
	if _, err := r.enter(ctx, ""); err != nil {
		return "", tracking.Invite{}, err
	}
	defer r.mu.Unlock()
	if hash.IsZero() {
		return "", tracking.Invite{}, tracking.ErrNotFound
	}
	var app tracking.AppID
	var best tracking.Invite
	for _, has := range []func(tracking.Invite) bool{
		func(i tracking.Invite) bool { return i.LinkHash == hash },
		func(i tracking.Invite) bool { return i.CodeHash == hash },
		func(i tracking.Invite) bool { return slices.Contains(i.PastCodes, hash) },
	} {
		for a, b := range r.apps {
			for _, i := range b.invites {
				if has(i) && (best.Version == 0 || i.CodeExpiresAt.After(best.CodeExpiresAt)) {
					app, best = a, kept(i)
				}
			}
		}
		if best.Version != 0 {
			return app, best, nil
		}
	}
	return "", tracking.Invite{}, tracking.ErrNotFound
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

func (r *reference) Events(
	ctx context.Context, app tracking.AppID, f tracking.EventFilter,
) ([]tracking.Event, bool, error) {
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
		if found && (f.Subject == tracking.Subject{} || e.event.Subject == f.Subject) &&
			(!f.Dead || e.in(f.Outbox) == tracking.DeliveryDead) {
			list = append(list, e.event)
		}
		found = found || e.event.ID == f.After
	}
	if !found {
		return nil, false, tracking.ErrNotFound
	}
	return first(list, f.Limit), len(list) > f.Limit, nil
}

func (r *reference) Notices(
	ctx context.Context, app tracking.AppID, driver tracking.DriverID, after int64, limit int,
) ([]tracking.Notice, bool, error) {
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

// Due implements [tracking.Store].
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
			if !at.After(q.Before) || !q.Beyond.IsZero() && at.After(q.Beyond) {
				list = append(list, due{tracking.Due{App: app, Subject: tracking.Subject{Kind: kind, ID: id}}, at})
			}
		}
		switch q.Kind {
		case tracking.DueTrips:
			for _, t := range b.trips {
				if t.Status == tracking.TripActive && (q.Driver == "" || t.DriverID == q.Driver) &&
					(q.TrackingID == "" || t.TrackingID == q.TrackingID) {
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
		case tracking.DueTasks:
			for _, t := range b.tasks {
				if !t.DueAt.IsZero() {
					add(tracking.KindTask, string(t.ID), t.DueAt)
				}
			}
		case tracking.DueContacts, tracking.DueDeletions:
			for _, t := range b.tasks {
				if !t.CompletedAt.IsZero() && (q.Kind == tracking.DueDeletions || personal(t)) {
					add(tracking.KindTask, string(t.ID), t.CompletedAt)
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
		if len(out) < q.Limit && r.claim(q.Claim, claimed{q.Kind, owned{d.App, d.Subject}}) {
			out = append(out, d.Due)
		}
	}
	return out, nil
}

// personal reports whether a task says anything of a person.
func personal(t tracking.Task) bool {
	texts := t.Notes + t.CustomerNote + t.Reason + t.ReceivedBy + t.DriverNote
	for _, p := range []*tracking.Place{t.Pickup, t.Drop} {
		if p != nil && p.Customer != nil {
			return true
		}
		if p != nil {
			texts += p.Address
		}
	}
	return texts != "" || len(t.Proofs) > 0
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (r *reference) WaitingApps(ctx context.Context) ([]tracking.AppID, error) {
	if _, err := r.enter(ctx, ""); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	var list []tracking.AppID
	for a, b := range r.apps {
		for _, t := range b.tasks {
			if t.Waiting && t.Point() != nil && !slices.Contains(list, a) {
				list = append(list, a)
			}
		}
	}
	slices.Sort(list)
	return list, nil
}

// waiting lists those for which fits returns true, oldest first.
func (b *book) waiting(limit int, fits func(tracking.Task, tracking.LngLat) bool) (list []tracking.Task) {
	list = pick(b.tasks, func(t tracking.Task) bool { return t.Waiting && t.Point() != nil && fits(t, *t.Point()) },
		func(a, b tracking.Task) int { return byAge(a.CreatedAt, b.CreatedAt, a.Seq, b.Seq) })
	return first(list, limit)
}

func (r *reference) Waiting(
	ctx context.Context, app tracking.AppID, f tracking.WaitingFilter,
) ([]tracking.Task, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	return b.waiting(f.Limit, func(t tracking.Task, at tracking.LngLat) bool {
		return (f.Near == nil || f.Within == 0 || tracking.Distance(*f.Near, at) <= f.Within) &&
			(f.Driver == "" || !slices.Contains(t.Excluded, f.Driver) && hasAll(f.Properties, t.Requires))
	}), nil
}

func (r *reference) Matches(ctx context.Context, app tracking.AppID, q tracking.MatchQuery) ([]tracking.Task, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	all := b.waiting(len(b.tasks), func(t tracking.Task, at tracking.LngLat) bool {
		o := tracking.Offer{
			At: at, MaxOpen: q.MaxOpen, SeenSince: q.SeenSince, Within: q.Within, Exclude: t.Excluded,
			Requires: t.Requires, Limit: 1,
		}
		return len(b.offers(o)) > 0
	})
	var list []tracking.Task
	for _, t := range all {
		of := claimed{"Matches", owned{app, tracking.Subject{Kind: tracking.KindTask, ID: string(t.ID)}}}
		if len(list) < q.Limit && r.claim(q.Claim, of) {
			list = append(list, t)
		}
	}
	return list, nil
}
