package storetest

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// queue lists the undelivered events of each subject that may be leased now, the subjects in order of their first one's commit.
func (r *reference) queue(now time.Time) (subjects []owned, events map[owned][]*entry) {
	events = map[owned][]*entry{}
	for _, e := range r.log {
		if e.state != "" {
			continue
		}
		key := owned{e.app, e.event.Subject}
		if events[key] == nil {
			subjects = append(subjects, key)
		}
		events[key] = append(events[key], e)
	}
	subjects = slices.DeleteFunc(subjects, func(s owned) bool {
		l, leased := r.leases[s]
		return events[s][0].retryAt.After(now) || (leased && l.until.After(now))
	})
	return subjects, events
}

func (r *reference) LeaseEvents(ctx context.Context, l tracking.Lease) ([]tracking.Leased, error) {
	if _, err := r.enter(ctx, ""); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	var out []tracking.Leased
	subjects, events := r.queue(l.Now)
	for _, s := range subjects {
		for _, e := range events[s] {
			if slices.Contains(l.Except, e.app) {
				break
			}
			if len(out) == l.Limit {
				return out, nil
			}
			r.leases[s] = lease{l.Owner, l.Until}
			out = append(out, tracking.Leased{App: e.app, Event: kept(e.event), Attempt: e.attempts + 1})
		}
	}
	return out, nil
}

func (r *reference) FinishEvents(ctx context.Context, done []tracking.Delivery) error {
	if _, err := r.enter(ctx, ""); err != nil {
		return err
	}
	defer r.mu.Unlock()
	ended := map[owned]string{}
	for _, d := range done {
		i := slices.IndexFunc(r.log, func(e *entry) bool { return e.app == d.App && e.event.ID == d.EventID })
		if i < 0 {
			continue
		}
		e := r.log[i]
		s := owned{e.app, e.event.Subject}
		l, leased := r.leases[s]
		mine := !leased || l.owner == d.Owner
		if mine {
			ended[s] = d.Owner
		}
		switch {
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
	for s, owner := range ended {
		if r.leases[s].owner == owner {
			delete(r.leases, s)
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
		if e.state == "" || !e.event.RecordedAt.Before(p.Events) || !room() {
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
