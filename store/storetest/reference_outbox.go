package storetest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// ready lists an outbox's undelivered events of each subject that may be leased now, the subjects in order of their first one's commit.
func (r *reference) ready(outbox string, now time.Time) (queues []queue, events map[queue][]*entry) {
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
		return events[q][0].delivery[outbox].retryAt.After(now) || (leased && l.until.After(now))
	})
	return queues, events
}

func (r *reference) LeaseEvents(ctx context.Context, l tracking.Lease) ([]tracking.Leased, error) {
	if _, err := r.enter(ctx, ""); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	var out []tracking.Leased
	queues, events := r.ready(l.Outbox, l.Now)
	for _, q := range queues {
		for _, e := range events[q] {
			if slices.Contains(l.Except, e.app) {
				break
			}
			if len(out) == l.Limit {
				return out, nil
			}
			r.leases[q] = lease{l.Owner, l.Until}
			out = append(out, tracking.Leased{Outbox: l.Outbox, App: e.app, Event: kept(e.event), Attempt: e.delivery[l.Outbox].attempts + 1})
		}
	}
	return out, nil
}

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
		case d.State == tracking.Delivered:
			e.state = tracking.Delivered
		case d.State == tracking.Released && e.state == tracking.Dead:
			e.state, e.attempts, e.retryAt = "", 0, time.Time{}
		case !mine || e.state != "":
		case d.State == tracking.Retry:
			e.attempts++
			e.retryAt = millis(d.RetryAt)
		case d.State == tracking.Dead:
			e.attempts++
			e.state = tracking.Dead
		}
	}
	for q, owner := range ended {
		if r.leases[q].owner == owner {
			delete(r.leases, q)
		}
	}
	return nil
}

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
		for _, log := range b.fixes {
			for log.purged < len(log.list) && log.list[log.purged].Time.Before(p.Fixes) && room() {
				log.purged++
				n.Fixes++
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
