package storetest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// ready lists an outbox's undelivered events of each subject that may be leased now, the subjects
// in order of their first one's commit.
func (r *reference) ready(ask tracking.Lease) (queues []queue, events map[queue][]*entry) {
	outbox, now := ask.Outbox, ask.Now
	wrong := func(at time.Time, longest time.Duration) bool { return longest > 0 && at.After(now.Add(longest)) }
	events = map[queue][]*entry{}
	for _, e := range r.log {
		if e.in(outbox) != "" {
			continue
		}
		key := queue{outbox, owned{e.app, e.event.Subject}}
		if events[key] == nil {
			queues = append(queues, key)
		}
		events[key] = append(events[key], e)
	}
	queues = slices.DeleteFunc(queues, func(q queue) bool {
		l, leased := r.leases[q]
		retryAt := events[q][0].delivery[outbox].retryAt
		return retryAt.After(now) && !wrong(retryAt, ask.MaxRetry) ||
			leased && l.until.After(now) && !wrong(l.until, ask.MaxLease)
	})
	return queues, events
}

// claimed names what a sweep has handed out.
type claimed struct {
	sweep any // the kind of what is due, or a call's name
	owned
}

// claim reports whether by may have what a sweep finds, and notes that it has.
func (r *reference) claim(by tracking.Claim, of claimed) bool {
	if by.Owner == "" {
		return true
	}
	until := by.Now.Add(by.For)
	had, ok := r.claims[of]
	if ok && had.owner != by.Owner && had.until.After(by.Now) && !had.until.After(until) {
		return false
	}
	r.claims[of] = lease{by.Owner, until}
	return true
}

// LeaseEvents implements [tracking.Store].
func (r *reference) LeaseEvents(ctx context.Context, l tracking.Lease) ([]tracking.Leased, error) {
	if _, err := r.enter(ctx, ""); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	var out []tracking.Leased
	queues, events := r.ready(l)
	busy := maps.Clone(l.Busy)
	if busy == nil {
		busy = map[tracking.AppID]int{}
	}
	for _, q := range queues {
		if l.Each > 0 && busy[q.app] >= l.Each {
			continue
		}
		busy[q.app]++
		for _, e := range events[q] {
			if len(out) == l.Limit {
				return out, nil
			}
			r.leases[q] = lease{l.Owner, l.Now.Add(l.For)}
			out = append(out, tracking.Leased{
				Outbox: l.Outbox, App: e.app, Event: kept(e.event), Attempt: e.delivery[l.Outbox].attempts + 1,
			})
		}
	}
	return out, nil
}

// FinishEvents implements [tracking.Store].
func (r *reference) FinishEvents(ctx context.Context, done []tracking.Delivery) error {
	if _, err := r.enter(ctx, ""); err != nil {
		return err
	}
	defer r.mu.Unlock()
	ended := map[queue]string{}
	for _, d := range done {
		i := slices.IndexFunc(r.log, func(e *entry) bool { return e.app == d.App && e.event.ID == d.EventID })
		if i < 0 {
			continue
		}
		e := r.log[i].delivery[d.Outbox]
		q := queue{d.Outbox, owned{d.App, r.log[i].event.Subject}}
		l, leased := r.leases[q]
		mine := !leased || l.owner == d.Owner
		if mine {
			ended[q] = d.Owner
		}
		switch {
		case e == nil:
		case d.State == tracking.DeliveryDone:
			e.state = tracking.DeliveryDone
		case d.State == tracking.DeliveryReleased && e.state == tracking.DeliveryDead:
			e.state, e.attempts, e.retryAt = "", 0, time.Time{}
		case !mine || e.state != "":
		case d.State == tracking.DeliveryRetry:
			e.attempts++
			e.retryAt = millis(d.Now.Add(d.RetryIn))
		case d.State == tracking.DeliveryDead:
			e.attempts++
			e.state = tracking.DeliveryDead
		}
	}
	for q, owner := range ended {
		if r.leases[q].owner == owner {
			delete(r.leases, q)
		}
	}
	return nil
}

// Purge implements [tracking.Store].
func (r *reference) Purge(ctx context.Context, p tracking.Before) (tracking.Purged, error) {
	var n tracking.Purged
	if _, err := r.enter(ctx, ""); err != nil {
		return n, err
	}
	defer r.mu.Unlock()
	room := func() bool { return n.Total() < p.Limit }
	r.log = slices.DeleteFunc(r.log, func(e *entry) bool {
		if !e.over() || !e.event.RecordedAt.Before(p.Events) || !room() {
			return false
		}
		n.Events++
		return true
	})
	for _, b := range r.apps {
		maps.DeleteFunc(b.files, func(id string, f *file) bool {
			if !f.At.Before(p.Files) || !room() || !b.orphan(id, f) {
				return false
			}
			n.Files++
			return true
		})
		for id, log := range b.fixes {
			for log.purged < len(log.list) && log.list[log.purged].Time.Before(p.Fixes) && room() {
				log.purged++
				n.Fixes++
			}
			if d, ok := b.drivers[id]; ok && log.purged > 0 {
				cut := p.Fixes
				if log.purged < len(log.list) && log.list[log.purged].Time.Before(cut) {
					cut = log.list[log.purged].Time
				}
				var empty bool
				d.Position, empty, _ = d.Position.Purged(fixLog{log, b, id}, cut)
				if b.drivers[id] = d; empty {
					*log = fixes{}
				}
			}
		}
		for _, f := range b.notices {
			f.list = slices.DeleteFunc(f.list, func(nt tracking.Notice) bool {
				if !nt.Time.Before(p.Events) || !room() {
					return false
				}
				f.purged = max(f.purged, nt.ID)
				n.Notices++
				return true
			})
		}
		maps.DeleteFunc(b.requests, func(_ tracking.RequestID, q tracking.Request) bool {
			if !q.CreatedAt.Before(p.Events) || !room() {
				return false
			}
			n.Requests++
			return true
		})
		maps.DeleteFunc(b.invites, func(_ tracking.DriverID, i tracking.Invite) bool {
			if !later(later(i.LinkExpiresAt, i.CodeExpiresAt), i.JoinedAt).Before(p.Events) || !room() {
				return false
			}
			n.Invites++
			return true
		})
	}
	return n, nil
}
