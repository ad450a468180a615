package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// invites lists an application's invites and trip requests by age. The rows themselves are with
// their drivers; they are never changed but replaced.
type invites struct {
	invites  list[*tracking.Invite]
	requests list[*tracking.Request]
	ofTrip   map[tracking.TrackingID]map[tracking.DriverID]*tracking.Request
}

func byInviteEnd(a, b *tracking.Invite) int {
	return cmp.Or(rows.Over(a).Compare(rows.Over(b)), strings.Compare(string(a.DriverID), string(b.DriverID)))
}

func byRequest(a, b *tracking.Request) int {
	return cmp.Or(byRequestAge(*a, *b), strings.Compare(string(a.DriverID), string(b.DriverID)))
}

// setInvite gives a driver an invite instead of the former one.
func (s *Store) setInvite(a *application, d *driverRow, inv *tracking.Invite) {
	s.dropInvite(a, d)
	d.more().invite = inv
	a.invites.invites.insert(inv, byInviteEnd)
	o := owner[tracking.DriverID]{a, d.ID()}
	s.secrets.inviteLinks.move(o, tracking.Hash{}, inv.LinkHash)
	s.secrets.codes.add(o, inv)
}

// dropInvite takes a driver's invite away, if there is one.
func (s *Store) dropInvite(a *application, d *driverRow) {
	i := d.others().invite
	if i == nil {
		return
	}
	o := owner[tracking.DriverID]{a, d.ID()}
	s.secrets.inviteLinks.move(o, i.LinkHash, tracking.Hash{})
	s.secrets.codes.drop(o, i)
	a.invites.invites.remove(i, byInviteEnd)
	d.apart.invite = nil
}

// setRequest keeps a request instead of the one with its id.
func (a *application) setRequest(r *tracking.Request) {
	d := a.drivers.row(r.DriverID).more()
	if old := d.requests[r.TrackingID]; old != nil {
		a.dropRequest(old)
	}
	if d.requests == nil {
		d.requests = make(map[tracking.TrackingID]*tracking.Request)
	}
	d.requests[r.TrackingID] = r
	a.invites.requests.insert(r, byRequest)
	if a.invites.ofTrip == nil {
		a.invites.ofTrip = make(map[tracking.TrackingID]map[tracking.DriverID]*tracking.Request)
	}
	of := a.invites.ofTrip[r.TrackingID]
	if of == nil {
		of = make(map[tracking.DriverID]*tracking.Request)
		a.invites.ofTrip[r.TrackingID] = of
	}
	of[r.DriverID] = r
}

// dropRequest removes a request.
func (a *application) dropRequest(r *tracking.Request) {
	delete(a.drivers.row(r.DriverID).others().requests, r.TrackingID)
	a.invites.requests.remove(r, byRequest)
	of := a.invites.ofTrip[r.TrackingID]
	if delete(of, r.DriverID); len(of) == 0 {
		delete(a.invites.ofTrip, r.TrackingID)
	}
}

// closeRequest removes a request, or those of all drivers.
func (a *application) closeRequest(id tracking.RequestID) {
	for driver, r := range a.invites.ofTrip[id.TrackingID] {
		if id.DriverID == "" || id.DriverID == driver {
			a.dropRequest(r)
		}
	}
}

// Invite implements [tracking.InviteReader].
func (s *Store) Invite(ctx context.Context, app tracking.AppID, driver tracking.DriverID) (tracking.Invite, error) {
	a, err := s.read(ctx, app)
	if err != nil {
		return tracking.Invite{}, err
	}
	if a == nil {
		return tracking.Invite{}, tracking.ErrNotFound
	}
	defer a.mu.RUnlock()
	if d := a.drivers.row(driver); d != nil && d.others().invite != nil {
		return d.others().invite.Clone(), nil
	}
	return tracking.Invite{}, tracking.ErrNotFound
}

// InviteByHash implements [tracking.InviteReader].
func (s *Store) InviteByHash(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Invite, error) {
	a, inv, err := findSecret(ctx, s, &s.secrets.inviteLinks, hash,
		func(a *application, id tracking.DriverID) *tracking.Invite {
			if d := a.drivers.row(id); d != nil {
				if i := d.others().invite; i != nil && i.LinkHash == hash {
					return i
				}
			}
			return nil
		})
	switch {
	case err == tracking.ErrNotFound && !hash.IsZero():
		return s.inviteByCode(hash)
	case err != nil:
		return "", tracking.Invite{}, err
	}
	defer a.mu.RUnlock()
	return a.id, inv.Clone(), nil
}

// Keys implements [tracking.KeyReader].
func (s *Store) Keys(ctx context.Context, app tracking.AppID) ([]tracking.Key, error) {
	a, err := s.read(ctx, app)
	if a == nil || err != nil {
		return nil, err
	}
	defer a.mu.RUnlock()
	var list []tracking.Key
	for _, k := range a.keys {
		list = append(list, *k)
	}
	slices.SortFunc(list, func(a, b tracking.Key) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
	return list, nil
}

// KeyByHash implements [tracking.KeyReader].
func (s *Store) KeyByHash(ctx context.Context, hash tracking.Hash) (tracking.AppID, tracking.Key, error) {
	a, k, err := findSecret(ctx, s, &s.secrets.keys, hash, func(a *application, id string) *tracking.Key {
		if k := a.keys[id]; k != nil && k.Hash == hash {
			return k
		}
		return nil
	})
	if err != nil {
		return "", tracking.Key{}, err
	}
	defer a.mu.RUnlock()
	return a.id, *k, nil
}
