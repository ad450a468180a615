package memory

import (
	"context"
	"slices"

	"github.com/seed-8aba7b13/tracking"
)

// Commit implements [tracking.Store]. It first looks whether all of cs can be applied, then applies it: there is nothing to undo.
func (s *Store) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	c := s.change(app, cs)
	c.app.mu.Lock()
	defer c.app.mu.Unlock()
	s.secrets.mu.Lock()
	defer s.secrets.mu.Unlock()
	if err := c.check(); err != nil {
		return err
	}
	c.apply()
	return nil
}

// change is a changeset on its way into an application: copies of its rows, with their times as a store keeps them.
type change struct {
	store   *Store
	app     *application
	tasks   []*tracking.Task
	trips   []*tracking.Trip
	drivers []tracking.Driver
	deleted []tracking.Driver // ids and versions only
	invites []*tracking.Invite
	keys    []*tracking.Key
	push    []*tracking.Request
	closed  []tracking.RequestID
	fixes   []tracking.FixBatch
	events  []*tracking.Event
	deliver []*outbox
}

// change copies a changeset.
func (s *Store) change(app tracking.AppID, cs *tracking.Changeset) *change {
	c := &change{store: s, app: s.application(app), deleted: cs.DeleteDrivers, closed: cs.CloseRequests, deliver: s.boxes.open(cs.Deliver)}
	for _, t := range cs.Tasks {
		t = t.Clone()
		t.Time, t.GeocodeAt, t.Link.MadeAt = ms(t.Time), ms(t.GeocodeAt), ms(t.Link.MadeAt)
		t.CreatedAt, t.UpdatedAt, t.AssignedAt = ms(t.CreatedAt), ms(t.UpdatedAt), ms(t.AssignedAt)
		t.StartedAt, t.PickedUpAt, t.CompletedAt = ms(t.StartedAt), ms(t.PickedUpAt), ms(t.CompletedAt)
		c.tasks = append(c.tasks, &t)
	}
	for _, t := range cs.Trips {
		t = t.Clone()
		t.StartedAt, t.EndedAt, t.TTL = ms(t.StartedAt), ms(t.EndedAt), ms(t.TTL)
		t.GeocodeAt, t.Link.MadeAt = ms(t.GeocodeAt), ms(t.Link.MadeAt)
		t.CreatedAt, t.UpdatedAt = ms(t.CreatedAt), ms(t.UpdatedAt)
		c.trips = append(c.trips, &t)
	}
	for _, d := range cs.Drivers {
		d = d.Clone()
		d.DutyAt, d.OffDutyAt, d.CreatedAt, d.UpdatedAt = ms(d.DutyAt), ms(d.OffDutyAt), ms(d.CreatedAt), ms(d.UpdatedAt)
		d.Position, d.Distance = tracking.Position{}, 0
		c.drivers = append(c.drivers, d)
	}
	for _, i := range cs.Invites {
		i.CreatedAt, i.LinkExpiresAt, i.CodeExpiresAt, i.JoinedAt = ms(i.CreatedAt), ms(i.LinkExpiresAt), ms(i.CodeExpiresAt), ms(i.JoinedAt)
		c.invites = append(c.invites, &i)
	}
	for _, k := range cs.Keys {
		k.CreatedAt, k.RevokedAt = ms(k.CreatedAt), ms(k.RevokedAt)
		c.keys = append(c.keys, &k)
	}
	for _, r := range cs.Push {
		r = r.Clone()
		r.CreatedAt = ms(r.CreatedAt)
		c.push = append(c.push, &r)
	}
	for _, b := range cs.Fixes {
		c.fixes = append(c.fixes, keptBatch(b))
	}
	for _, e := range cs.Events {
		e = e.Clone()
		e.Time, e.RecordedAt = ms(e.Time), ms(e.RecordedAt)
		c.events = append(c.events, &e)
	}
	return c
}

// check returns the reason why the change cannot be applied.
func (c *change) check() error {
	for _, check := range [...]func() error{c.checkTasks, c.checkTrips, c.checkDrivers, c.checkInvites, c.checkKeys, c.checkEvents} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// moved is the conflict of a row that is not at the version that was named.
func moved[ID ~string](kind tracking.SubjectKind, id ID) error {
	return &tracking.ConflictError{Kind: kind, ID: string(id)}
}

// taken is the conflict of a unique value.
func taken(kind tracking.SubjectKind, unique string) error {
	return &tracking.ConflictError{Kind: kind, Unique: unique}
}

// names is a set of ids seen in a changeset, for changesets with more than one row of a kind.
type names[ID comparable] map[ID]struct{}

// again reports whether id was seen before, of n rows in all.
func (s *names[ID]) again(id ID, n int) bool {
	if n < 2 {
		return false
	}
	if *s == nil {
		*s = make(names[ID], n)
	}
	_, ok := (*s)[id]
	(*s)[id] = struct{}{}
	return ok
}

func (c *change) checkTasks() error {
	x := &c.app.tasks
	var ids names[tracking.TaskID]
	var keys names[string]
	for _, t := range c.tasks {
		r := x.byID[t.ID]
		if ids.again(t.ID, len(c.tasks)) || !matchesVersion(t.Version, r != nil, func() int64 { return r.task.Version }) {
			return moved(tracking.KindTask, t.ID)
		}
		if t.Key == "" {
			continue
		}
		holder := x.byKey[t.Key]
		if keys.again(t.Key, len(c.tasks)) || holder != nil && holder != r && !slices.ContainsFunc(c.tasks, func(o *tracking.Task) bool {
			return o.ID == holder.task.ID && o.Version != 0 && o.Key != t.Key
		}) {
			return taken(tracking.KindTask, "key")
		}
	}
	return nil
}

// matchesVersion reports whether a row that names a version may be written: 0 if there is none yet, else exactly the present one.
func matchesVersion(named int64, exists bool, present func() int64) bool {
	if named == 0 {
		return !exists
	}
	return exists && present() == named
}

func (c *change) checkTrips() error {
	x := &c.app.trips
	var ids names[tracking.TripID]
	var active names[tracking.TrackingID]
	for _, t := range c.trips {
		r := x.byID[t.ID]
		if ids.again(t.ID, len(c.trips)) || !matchesVersion(t.Version, r != nil, func() int64 { return r.trip.Version }) {
			return moved(tracking.KindTrip, t.ID)
		}
		if t.Status != tracking.Active {
			continue
		}
		holder := x.active[t.TrackingID]
		if active.again(t.TrackingID, len(c.trips)) || holder != nil && holder != r && !slices.ContainsFunc(c.trips, func(o *tracking.Trip) bool {
			return o.ID == holder.trip.ID && o.Version != 0 && (o.Status != tracking.Active || o.TrackingID != t.TrackingID)
		}) {
			return taken(tracking.KindTrip, "tracking_id")
		}
	}
	return nil
}

func (c *change) checkDrivers() error {
	x := &c.app.drivers
	var ids names[tracking.DriverID]
	total := len(c.drivers) + len(c.deleted)
	for _, d := range c.drivers {
		r := x.byID[d.ID]
		if ids.again(d.ID, total) || !matchesVersion(d.Version, r != nil, func() int64 { return r.driver.Version }) {
			return moved(tracking.KindDriver, d.ID)
		}
	}
	for _, d := range c.deleted {
		r := x.byID[d.ID]
		if ids.again(d.ID, total) || r == nil || r.driver.Version != d.Version {
			return moved(tracking.KindDriver, d.ID)
		}
	}
	for _, r := range c.push {
		if !c.hasDriver(r.DriverID) {
			return moved(tracking.KindDriver, r.DriverID)
		}
	}
	for _, b := range c.fixes {
		if !c.hasDriver(b.DriverID) {
			return moved(tracking.KindDriver, b.DriverID)
		}
	}
	return nil
}

// hasDriver reports whether a driver has a row once the change is applied.
func (c *change) hasDriver(id tracking.DriverID) bool {
	if c.app.drivers.byID[id] != nil {
		return !slices.ContainsFunc(c.deleted, func(d tracking.Driver) bool { return d.ID == id })
	}
	return slices.ContainsFunc(c.drivers, func(d tracking.Driver) bool { return d.ID == id })
}

func (c *change) checkInvites() error {
	var ids names[tracking.DriverID]
	var codes names[tracking.Hash]
	for _, i := range c.invites {
		if !c.hasDriver(i.DriverID) {
			return moved(tracking.KindDriver, i.DriverID)
		}
		var old *tracking.Invite
		if d := c.app.drivers.byID[i.DriverID]; d != nil {
			old = d.invite
		}
		if ids.again(i.DriverID, len(c.invites)) || i.Version != 0 && (old == nil || old.Version != i.Version) {
			return moved(tracking.KindInvite, i.DriverID)
		}
		if i.CodeHash.IsZero() {
			continue
		}
		holder, ok := c.store.secrets.inviteCodes[i.CodeHash]
		if codes.again(i.CodeHash, len(c.invites)) || ok && holder != (owner[tracking.DriverID]{c.app, i.DriverID}) && !c.givesUpCode(holder, i.CodeHash) {
			return taken(tracking.KindInvite, "code")
		}
	}
	return nil
}

// givesUpCode reports whether a driver's invite will not have that code any more.
func (c *change) givesUpCode(o owner[tracking.DriverID], code tracking.Hash) bool {
	return o.app == c.app && (slices.ContainsFunc(c.deleted, func(d tracking.Driver) bool { return d.ID == o.id }) ||
		slices.ContainsFunc(c.invites, func(i *tracking.Invite) bool { return i.DriverID == o.id && i.CodeHash != code }))
}

func (c *change) checkKeys() error {
	var ids names[string]
	var hashes names[tracking.Hash]
	for _, k := range c.keys {
		old := c.app.keys[k.ID]
		if ids.again(k.ID, len(c.keys)) || !matchesVersion(k.Version, old != nil, func() int64 { return old.Version }) {
			return moved(tracking.KindKey, k.ID)
		}
		if k.Hash.IsZero() {
			continue
		}
		holder, ok := c.store.secrets.keys[k.Hash]
		if hashes.again(k.Hash, len(c.keys)) || ok && holder != (owner[string]{c.app, k.ID}) && !(holder.app == c.app && slices.ContainsFunc(c.keys, func(o *tracking.Key) bool {
			return o.ID == holder.id && o.Version != 0 && o.Hash != k.Hash
		})) {
			return taken(tracking.KindKey, "hash")
		}
	}
	return nil
}

func (c *change) checkEvents() error {
	var ids names[string]
	for _, e := range c.events {
		if ids.again(e.ID, len(c.events)) || c.app.events.byID[e.ID] != nil {
			return &tracking.Error{Code: tracking.ErrInternal, Message: "An event with this id is there already."}
		}
	}
	return nil
}

// apply writes the change, whose check has passed. What was updated is written before what is new, so that a unique value can pass from one to the other.
func (c *change) apply() {
	for _, d := range c.deleted {
		c.deleteDriver(c.app.drivers.byID[d.ID])
	}
	for _, inserts := range [...]bool{false, true} {
		for _, t := range c.tasks {
			if (t.Version == 0) == inserts {
				c.putTask(t)
			}
		}
		for _, t := range c.trips {
			if (t.Version == 0) == inserts {
				c.putTrip(t)
			}
		}
		for _, d := range c.drivers {
			if (d.Version == 0) == inserts {
				c.putDriver(d)
			}
		}
		for _, k := range c.keys {
			if (k.Version == 0) == inserts {
				c.putKey(k)
			}
		}
	}
	c.putInvites()
	for _, id := range c.closed {
		if d := c.app.drivers.byID[id.DriverID]; d != nil && d.requests[id.TrackingID] != nil {
			c.app.dropRequest(d.requests[id.TrackingID])
		}
	}
	for _, r := range c.push {
		c.app.setRequest(r)
	}
	for _, b := range c.fixes {
		// The log of a memory store never fails.
		_, _ = c.app.record(c.app.drivers.byID[b.DriverID], b)
	}
	c.addEvents()
}

func (c *change) putTask(t *tracking.Task) {
	o := owner[tracking.TaskID]{c.app, t.ID}
	if t.Version == 0 {
		t.Version, t.Seq = 1, c.store.taskSeq.Add(1)
		c.app.tasks.insert(t)
		moveSecret(c.store.secrets.taskLinks, o, tracking.Hash{}, t.Link.Hash)
		return
	}
	r := c.app.tasks.byID[t.ID]
	old := r.task
	t.Version, t.Seq, t.CreatedAt = old.Version+1, old.Seq, old.CreatedAt
	c.app.tasks.replace(r, t)
	moveSecret(c.store.secrets.taskLinks, o, old.Link.Hash, t.Link.Hash)
}

func (c *change) putTrip(t *tracking.Trip) {
	o := owner[tracking.TripID]{c.app, t.ID}
	if t.Version == 0 {
		t.Version, t.Seq = 1, c.store.tripSeq.Add(1)
		c.app.trips.insert(t)
		moveSecret(c.store.secrets.tripLinks, o, tracking.Hash{}, t.Link.Hash)
		return
	}
	r := c.app.trips.byID[t.ID]
	old := r.trip
	t.Version, t.Seq, t.CreatedAt = old.Version+1, old.Seq, old.CreatedAt
	c.app.trips.replace(r, t)
	moveSecret(c.store.secrets.tripLinks, o, old.Link.Hash, t.Link.Hash)
}

func (c *change) putDriver(d tracking.Driver) {
	o := owner[tracking.DriverID]{c.app, d.ID}
	var old tracking.Driver
	r := c.app.drivers.byID[d.ID]
	if d.Version == 0 {
		d.Version, d.Seq = 1, c.store.driverSeq.Add(1)
		r = c.app.drivers.insert(d)
	} else {
		old = r.driver
		d.Version, d.Seq, d.CreatedAt = old.Version+1, old.Seq, old.CreatedAt
		c.app.drivers.replace(r, d)
	}
	moveSecret(c.store.secrets.appTokens, o, old.AppToken, d.AppToken)
	moveSecret(c.store.secrets.ingestTokens, o, old.IngestToken, d.IngestToken)
	c.app.nearby.Put(r.driver)
}

// deleteDriver removes a driver with everything that belongs to one.
func (c *change) deleteDriver(r *driverRow) {
	d := &r.driver
	o := owner[tracking.DriverID]{c.app, d.ID}
	moveSecret(c.store.secrets.appTokens, o, d.AppToken, tracking.Hash{})
	moveSecret(c.store.secrets.ingestTokens, o, d.IngestToken, tracking.Hash{})
	c.store.dropInvite(c.app, r)
	for _, req := range r.requests {
		c.app.dropRequest(req)
	}
	c.app.feeds.removeAll(d.ID)
	c.app.nearby.Remove(d.ID)
	c.app.drivers.remove(r)
	r.log, r.aged = fixLog{}, false // the aging queue may hold the row for a while
}

// putInvites takes all the old ones away before it gives any new one: a code may pass between them.
func (c *change) putInvites() {
	for _, i := range c.invites {
		d := c.app.drivers.byID[i.DriverID]
		switch {
		case i.Version != 0:
			i.CreatedAt = d.invite.CreatedAt
		case d.invite != nil:
			i.Version = d.invite.Version
		}
		i.Version++
		c.store.dropInvite(c.app, d)
	}
	for _, i := range c.invites {
		c.store.setInvite(c.app, c.app.drivers.byID[i.DriverID], i)
	}
}

func (c *change) putKey(k *tracking.Key) {
	var old tracking.Hash
	if was := c.app.keys[k.ID]; was != nil {
		old = was.Hash
		k.CreatedAt = was.CreatedAt
	}
	k.Version++
	c.app.keys[k.ID] = k
	moveSecret(c.store.secrets.keys, owner[string]{c.app, k.ID}, old, k.Hash)
}

// addEvents appends the events, the notices in them, and what is to be delivered.
func (c *change) addEvents() {
	if len(c.events) == 0 {
		return
	}
	rows := make([]*eventRow, 0, len(c.events))
	for _, e := range c.events {
		notices := e.Notices[:0]
		for _, n := range e.Notices {
			if c.app.drivers.byID[n.DriverID] == nil {
				continue
			}
			n.EventID, n.Time = e.ID, e.RecordedAt
			r := &noticeRow{notice: n, order: c.store.noticeSeq.Add(1)}
			c.app.feeds.add(r)
			notices = append(notices, r.notice)
		}
		e.Notices = slices.Clip(notices)
		if len(notices) == 0 {
			e.Notices = nil
		}
		r := &eventRow{app: c.app, event: e, order: c.store.eventSeq.Add(1)}
		for _, o := range c.deliver {
			r.deliveries = append(r.deliveries, &delivery{row: r, outbox: o, state: pending})
		}
		c.app.events.add(r)
		rows = append(rows, r)
	}
	for _, o := range c.deliver {
		o.add(c.app, rows)
	}
}
