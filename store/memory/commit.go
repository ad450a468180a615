package memory

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Commit implements [tracking.Store]. It first looks whether all of cs can be applied, then applies
// it: there is nothing to undo.
func (s *Store) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (w tracking.Written,
	err error) {
	if err := s.ready(ctx); err != nil {
		return w, err
	}
	if err := rows.ChangesetTexts(app, cs); err != nil {
		return w, err
	}
	c := s.change(app, cs)
	yields, committing := false, &c.app.committing
	committing.Add(1)
	defer func() {
		c.release()
		if yields && committing.Load() > 1 {
			runtime.Gosched()
		}
		committing.Add(-1)
	}()
	c.app.mu.Lock()
	defer c.app.mu.Unlock()
	// Now and then who has committed lets others who are about to have the core: of eight who create
	// without a pause on two cores one waited up to 70 ms for the time slices of the rest, and now 10. For
	// nobody it would take a tenth of a commit.
	c.app.commits++
	yields = c.app.commits%8 == 0
	if len(c.invites)+len(c.keys) > 0 {
		s.secrets.unique.Lock()
		defer s.secrets.unique.Unlock()
	}
	c.touch()
	if err := c.check(); err != nil {
		return w, err
	}
	c.apply()
	return c.given(), nil
}

// given is what the rows have been given, all of it in one piece of memory.
func (c *change) given() (w tracking.Written) {
	all := make([]tracking.Given, 0, len(c.tasks)+len(c.trips)+len(c.drivers))
	for i := range c.tasks {
		all = append(all, tracking.Given{Seq: c.tasks[i].Seq, Version: c.tasks[i].Version})
	}
	w.Tasks, all = all[:len(all):len(all)], all[len(all):]
	for _, t := range c.trips {
		all = append(all, tracking.Given{Seq: t.Seq, Version: t.Version})
	}
	w.Trips, all = all[:len(all):len(all)], all[len(all):]
	for i := range c.drivers {
		all = append(all, tracking.Given{Seq: c.drivers[i].Seq, Version: c.drivers[i].Version})
	}
	w.Drivers = all
	return w
}

// change is a changeset on its way into an application: its rows, with their times as a store keeps
// them. Tasks and drivers are packed when they are put, so that these are as they were given; the rest
// are copies.
type change struct {
	store   *Store
	app     *application
	cs      *tracking.Changeset
	tasks   []tracking.Task
	codes   []uint64 // of the new tasks, one after the other: to find these takes longer than much else
	ends    []int    // … of each task's there
	trips   []*tracking.Trip
	drivers []tracking.Driver
	byID    map[tracking.DriverID]*tracking.Driver // of these, once somebody is looked for among many
	deleted []tracking.Driver                      // ids and versions only
	invites []*tracking.Invite
	keys    []*tracking.Key
	push    []*tracking.Request
	closed  []tracking.RequestID
	fixes   []tracking.FixBatch
	events  []*eventRow
	deliver []*outbox
}

// fewRows are looked through one by one.
const fewRows = 16

// changes are used again, for the room that tasks and drivers take in them.
var changes = sync.Pool{New: func() any { return new(change) }}

// release gives a change back, of which nothing is kept.
func (c *change) release() {
	next := change{}
	if cap(c.tasks) <= fewRows && cap(c.drivers) <= fewRows { // of a longer one the room is let go

		clear(c.tasks)
		clear(c.drivers)
		clear(c.events)
		clear(c.deliver)
		next = change{
			tasks: c.tasks[:0], codes: c.codes[:0], ends: c.ends[:0], drivers: c.drivers[:0], events: c.events[:0],
			deliver: c.deliver[:0],
		}
	}
	*c = next
	changes.Put(c)
}

// change copies a changeset.
func (s *Store) change(app tracking.AppID, cs *tracking.Changeset) *change {
	c := changes.Get().(*change)
	c.store, c.app, c.cs, c.deleted, c.closed = s, s.application(app), cs, cs.DeleteDrivers, cs.CloseRequests
	c.deliver = s.boxes.open(c.deliver, cs.Deliver...)
	c.tasks = append(c.tasks, cs.Tasks...)
	for i := range c.tasks {
		t := &c.tasks[i]
		if rows.TaskTimes(t); t.Version == 0 {
			c.codes = rows.Codes(c.codes, t)
		}
		c.ends = append(c.ends, len(c.codes))
	}
	for _, t := range cs.Trips {
		t = rows.Trip(t)
		c.trips = append(c.trips, &t)
	}
	c.drivers = append(c.drivers, cs.Drivers...)
	for i := range c.drivers {
		rows.DriverTimes(&c.drivers[i])
	}
	for _, i := range cs.Invites {
		i = rows.Invite(i)
		c.invites = append(c.invites, &i)
	}
	for _, k := range cs.Keys {
		k = rows.Key(k)
		c.keys = append(c.keys, &k)
	}
	for _, r := range cs.Requests {
		r = rows.Request(r)
		c.push = append(c.push, &r)
	}
	for _, b := range cs.Fixes {
		c.fixes = append(c.fixes, rows.Batch(b))
	}
	for i := range cs.Events {
		r := newEventRow(c.app, &cs.Events[i], len(c.deliver))
		for j, o := range c.deliver {
			r.deliveries[j] = delivery{row: r, outbox: o, state: pending}
		}
		c.events = append(c.events, r)
	}
	return c
}

// check returns the reason why the change cannot be applied.
func (c *change) check() error {
	for _, check := range [...]func() error{
		c.checkDeletions, c.checkTasks, c.checkTrips, c.checkDrivers, c.checkInvites, c.checkKeys, c.checkEvents,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// touch reads from where the new tasks and the events will stand among the codes: most of what these are
// looked for takes is to wait for memory, and so it is waited for once.
//
//go:noinline
func (c *change) touch() (sum uint32) {
	x := &c.app.tasks
	for i := range c.tasks {
		if t := &c.tasks[i]; t.Version == 0 {
			sum += x.byID.touch(codeOf(string(t.ID)))
			if t.OrderID != "" {
				sum += x.byOrder.touch(codeOf(t.OrderID))
			}
			for _, code := range c.codesOf(i) {
				sum += x.byTerm.touch(code)
			}
		}
	}
	for i, r := range c.events {
		sum += c.app.events.byID.touch(codeOf(r.kept.id()))
		sum += c.app.events.bySubject.touch(codeOfSubject(c.cs.Events[i].Subject))
	}
	return sum
}

func (c *change) checkTasks() error {
	x := &c.app.tasks
	ids, keys := rows.SeenOf[tracking.TaskID](len(c.tasks)), rows.SeenOf[string](len(c.tasks))
	for i := range c.tasks {
		t := &c.tasks[i]
		r := x.row(t.ID)
		if ids.Before(t.ID) {
			return rows.VersionConflict(tracking.KindTask, t.ID)
		}
		if err := rows.Expect(tracking.KindTask, t.ID, t.Version, r.version()); err != nil {
			return err
		}
		if t.Key == "" {
			continue
		}
		holder := x.withKey(t.Key)
		if keys.Before(t.Key) ||
			holder != nil && holder != r && !c.leavesTask(holder.kept.head().id) && !c.givesUpKey(holder.kept.head().id, t.Key) {
			return rows.UniqueConflict(tracking.KindTask, "key")
		}
	}
	return nil
}

// givesUpKey reports whether the task with that id, which is there, has another key in the change.
func (c *change) givesUpKey(id tracking.TaskID, key string) bool {
	for i := range c.tasks {
		if t := &c.tasks[i]; t.ID == id && t.Version != 0 && t.Key != key {
			return true
		}
	}
	return false
}

func (c *change) checkTrips() error {
	x := &c.app.trips
	ids, active := rows.SeenOf[tracking.TripID](len(c.trips)), rows.SeenOf[tracking.TrackingID](len(c.trips))
	for _, t := range c.trips {
		r := x.byID[t.ID]
		if ids.Before(t.ID) {
			return rows.VersionConflict(tracking.KindTrip, t.ID)
		}
		if err := rows.Expect(tracking.KindTrip, t.ID, t.Version, r.version()); err != nil {
			return err
		}
		if t.Status != tracking.TripActive {
			continue
		}
		holder := x.active[t.TrackingID]
		if active.Before(t.TrackingID) ||
			holder != nil && holder != r && !c.leavesTrip(holder.trip.ID) && !slices.ContainsFunc(c.trips, func(o *tracking.Trip) bool {
				return o.ID == holder.trip.ID && o.Version != 0 &&
					(o.Status != tracking.TripActive || o.TrackingID != t.TrackingID)
			}) {
			return rows.UniqueConflict(tracking.KindTrip, "tracking_id")
		}
	}
	return nil
}

// checkDrivers looks at the drivers, and whether those are there whom requests and fixes name.
func (c *change) checkDrivers() error {
	x := &c.app.drivers
	ids := rows.SeenOf[tracking.DriverID](len(c.drivers) + len(c.deleted))
	for i := range c.drivers {
		d := &c.drivers[i]
		if ids.Before(d.ID) {
			return rows.VersionConflict(tracking.KindDriver, d.ID)
		}
		if err := rows.Expect(tracking.KindDriver, d.ID, d.Version, x.row(d.ID).version()); err != nil {
			return err
		}
	}
	for _, d := range c.deleted {
		if r := x.row(d.ID); ids.Before(d.ID) || r == nil || r.version() != d.Version {
			return rows.VersionConflict(tracking.KindDriver, d.ID)
		}
	}
	for _, r := range c.push {
		if !c.hasDriver(r.DriverID) {
			return rows.VersionConflict(tracking.KindDriver, r.DriverID)
		}
	}
	for _, b := range c.fixes {
		if !c.hasDriver(b.DriverID) || b.Person != "" && b.Person != c.personOf(b.DriverID) {
			return rows.VersionConflict(tracking.KindDriver, b.DriverID)
		}
	}
	return nil
}

// personOf is who has an id once the change is applied.
func (c *change) personOf(id tracking.DriverID) string {
	if d := c.driver(id); d != nil {
		return d.Person
	}
	return c.app.drivers.row(id).person()
}

// hasDriver reports whether a driver has a row once the change is applied.
func (c *change) hasDriver(id tracking.DriverID) bool {
	if c.app.drivers.row(id) != nil {
		return !slices.ContainsFunc(c.deleted, func(d tracking.Driver) bool { return d.ID == id })
	}
	return c.driver(id) != nil
}

// driver is a driver whom the change writes, or nil.
func (c *change) driver(id tracking.DriverID) *tracking.Driver {
	if len(c.drivers) > fewRows {
		if c.byID == nil {
			c.byID = make(map[tracking.DriverID]*tracking.Driver, len(c.drivers))
			for i := range c.drivers {
				c.byID[c.drivers[i].ID] = &c.drivers[i]
			}
		}
		return c.byID[id]
	}
	for i := range c.drivers { // without copying each, as functions of slices do
		if c.drivers[i].ID == id {
			return &c.drivers[i]
		}
	}
	return nil
}

func (c *change) checkInvites() error {
	ids := rows.SeenOf[tracking.DriverID](len(c.invites))
	for _, i := range c.invites {
		if !c.hasDriver(i.DriverID) {
			return rows.VersionConflict(tracking.KindDriver, i.DriverID)
		}
		var old *tracking.Invite
		if d := c.app.drivers.row(i.DriverID); d != nil {
			old = d.others().invite
		}
		if ids.Before(i.DriverID) || i.Version != 0 && (old == nil || old.Version != i.Version) {
			return rows.VersionConflict(tracking.KindInvite, i.DriverID)
		}
		if (old == nil || old.CodeHash != i.CodeHash) && c.codeTaken(i) {
			return rows.UniqueConflict(tracking.KindInvite, "code")
		}
	}
	return nil
}

// codeTaken reports whether another invite has the new code of i when i is made.
func (c *change) codeTaken(i *tracking.Invite) bool {
	if i.CodeHash.IsZero() {
		return false
	}
	if slices.ContainsFunc(c.invites, func(o *tracking.Invite) bool {
		return o != i && o.CodeHash == i.CodeHash && o.CodeExpiresAt.After(i.CreatedAt)
	}) {
		return true
	}
	has, _ := c.store.secrets.codes.of(i.CodeHash)
	return slices.ContainsFunc(has, func(o codeOwner) bool {
		return o.until.After(i.CreatedAt) &&
			!(o.app == c.app && (slices.ContainsFunc(c.deleted, func(d tracking.Driver) bool { return d.ID == o.id }) ||
				slices.ContainsFunc(c.invites, func(v *tracking.Invite) bool { return v.DriverID == o.id })))
	})
}

// checkKeys looks at the API keys, whose hashes are unique over the whole store.
func (c *change) checkKeys() error {
	ids, hashes := rows.SeenOf[string](len(c.keys)), rows.SeenOf[tracking.Hash](len(c.keys))
	for _, k := range c.keys {
		var present int64
		if old := c.app.keys[k.ID]; old != nil {
			present = old.Version
		}
		if ids.Before(k.ID) {
			return rows.VersionConflict(tracking.KindKey, k.ID)
		}
		if err := rows.Expect(tracking.KindKey, k.ID, k.Version, present); err != nil {
			return err
		}
		if k.Hash.IsZero() {
			continue
		}
		holder, ok := c.store.secrets.keys.find(k.Hash)
		if hashes.Before(k.Hash) ||
			ok && holder != (owner[string]{c.app, k.ID}) &&
				!(holder.app == c.app && slices.ContainsFunc(c.keys, func(o *tracking.Key) bool {
					return o.ID == holder.id && o.Version != 0 && o.Hash != k.Hash
				})) {
			return rows.UniqueConflict(tracking.KindKey, "hash")
		}
	}
	return nil
}

func (c *change) checkEvents() error {
	ids := rows.SeenOf[string](len(c.events))
	for _, r := range c.events {
		if id := r.kept.id(); ids.Before(id) || c.app.events.row(id) != nil {
			return &tracking.Error{Code: tracking.ErrInternal, Message: "An event with this id is there already."}
		}
	}
	return nil
}

// apply writes the change, whose check has passed. What was updated is written before what is new,
// so that a unique value can pass from one to the other.
func (c *change) apply() {
	c.applyDeletions()
	for _, d := range c.deleted {
		c.deleteDriver(c.app.drivers.row(d.ID))
	}
	for _, inserts := range [...]bool{false, true} {
		for i := range c.tasks {
			if t := &c.tasks[i]; (t.Version == 0) == inserts {
				c.putTask(t, c.codesOf(i))
			}
		}
		for _, t := range c.trips {
			if (t.Version == 0) == inserts {
				c.putTrip(t)
			}
		}
		for i := range c.drivers {
			if d := &c.drivers[i]; (d.Version == 0) == inserts {
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
	for _, r := range c.push {
		c.app.setRequest(r)
	}
	for _, id := range c.closed {
		c.app.closeRequest(id)
	}
	for _, b := range c.fixes {
		// The log of a memory store never fails.
		_, _ = c.app.record(c.app.drivers.row(b.DriverID), b)
	}
	c.addEvents()
}

// codesOf are the codes of the i-th task, if it is new.
func (c *change) codesOf(i int) []uint64 {
	from := 0
	if i > 0 {
		from = c.ends[i-1]
	}
	return c.codes[from:c.ends[i]]
}

func (c *change) putTask(t *tracking.Task, codes []uint64) {
	o := owner[tracking.TaskID]{c.app, t.ID}
	if t.Version == 0 {
		t.Version, t.Seq = c.app.lastVersion+1, c.store.taskSeq.Add(1)
		c.app.tasks.insert(t, codes)
		if t.Waiting { // else the index is not asked to look for what it never had
			c.app.nearby.PutTask(*t)
		}
		c.store.secrets.taskLinks.move(o, tracking.Hash{}, t.Link.Hash)
		return
	}
	r := c.app.tasks.row(t.ID)
	old := r.task()
	t.Version, t.Seq, t.CreatedAt = old.Version+1, old.Seq, old.CreatedAt
	waits := old.Waiting || t.Waiting
	c.app.tasks.replace(r, t, &old)
	if waits {
		c.app.nearby.PutTask(*t)
	}
	c.store.secrets.taskLinks.move(o, old.Link.Hash, t.Link.Hash)
}

func (c *change) putTrip(t *tracking.Trip) {
	o := owner[tracking.TripID]{c.app, t.ID}
	if t.Version == 0 {
		t.Version, t.Seq = c.app.lastVersion+1, c.store.tripSeq.Add(1)
		c.app.trips.insert(t)
		c.store.secrets.tripLinks.move(o, tracking.Hash{}, t.Link.Hash)
		return
	}
	r := c.app.trips.byID[t.ID]
	old := r.trip
	t.Version, t.Seq, t.CreatedAt = old.Version+1, old.Seq, old.CreatedAt
	c.app.trips.replace(r, t)
	c.store.secrets.tripLinks.move(o, old.Link.Hash, t.Link.Hash)
}

func (c *change) putDriver(d *tracking.Driver) {
	var old tracking.Driver
	r := c.app.drivers.row(d.ID)
	if d.Version == 0 {
		d.Version, d.Seq = c.app.lastVersion+1, c.store.driverSeq.Add(1)
		r = c.app.drivers.insert(c.app, d)
		if c.app.lastNotice > 0 {
			r.more().feed.last = c.app.lastNotice
		}
	} else {
		r.kept.look(&old)
		d.Version, d.Seq, d.CreatedAt = old.Version+1, r.seq, time.UnixMilli(r.created).UTC()
		d.Position = c.app.position(r)
		c.app.drivers.replace(c.app, r, d, &old)
	}
	o := owner[tracking.DriverID]{c.app, r.ID()}
	c.store.secrets.appTokens.move(o, old.AppToken, d.AppToken)
	c.store.secrets.ingestTokens.move(o, old.IngestToken, d.IngestToken)
}

// deleteDriver removes a driver with everything that belongs to one. Fixes and notices, of which
// there may be many, nobody finds any more; they are taken away by purges.
func (c *change) deleteDriver(r *driverRow) {
	d := c.app.driver(r)
	o := owner[tracking.DriverID]{c.app, d.ID}
	c.store.secrets.appTokens.move(o, d.AppToken, tracking.Hash{})
	c.store.secrets.ingestTokens.move(o, d.IngestToken, tracking.Hash{})
	if i := r.others().invite; i != nil {
		c.app.lastVersion = max(c.app.lastVersion, i.Version)
	}
	c.store.dropInvite(c.app, r)
	for _, req := range r.others().requests {
		c.app.dropRequest(req)
	}
	c.app.lastVersion = max(c.app.lastVersion, d.Version)
	c.app.lastNotice = max(c.app.lastNotice, r.others().feed.last)
	c.app.drivers.remove(c.app, r, &d)
	r.kept = "" // the row stays until its fixes are purged, but not who it was
	r.moved.put(&tracking.Position{}, &r.log)
	c.app.erased = append(c.app.erased, r)
}

// putInvites takes all the old ones away before it gives any new one: a code may pass between them.
func (c *change) putInvites() {
	for _, i := range c.invites {
		d := c.app.drivers.row(i.DriverID)
		switch {
		case i.Version != 0:
			i.CreatedAt = d.others().invite.CreatedAt
		case d.others().invite != nil:
			i.Version = d.others().invite.Version
		default:
			i.Version = c.app.lastVersion
		}
		i.Version++
		c.store.dropInvite(c.app, d)
	}
	for _, i := range c.invites {
		c.store.setInvite(c.app, c.app.drivers.row(i.DriverID), i)
	}
}

func (c *change) putKey(k *tracking.Key) {
	var old tracking.Hash
	if was := c.app.keys[k.ID]; was != nil {
		old = was.Hash
		k.CreatedAt = was.CreatedAt
	} else {
		k.Version = c.app.lastVersion
	}
	k.Version++
	c.app.keys[k.ID] = k
	c.store.secrets.keys.move(owner[string]{c.app, k.ID}, old, k.Hash)
}

// addEvents appends the events, the notices in them, and what is to be delivered.
func (c *change) addEvents() {
	for i, r := range c.events {
		e := &c.cs.Events[i]
		if len(e.Notices) > 0 {
			r.notices = make([]tracking.Notice, 0, len(e.Notices)) // which the rows share
		}
		for _, n := range e.Notices {
			d := c.app.drivers.row(n.DriverID)
			if d == nil {
				continue
			}
			n.Person, n.EventID, n.Time = strings.Clone(d.person()), r.kept.id(), time.UnixMilli(r.recorded).UTC()
			r.notices = append(r.notices, n)
			own := &r.notices[len(r.notices)-1]
			c.app.addNotice(&noticeRow{notice: own, driver: d, order: c.store.noticeSeq.Add(1)})
		}
		r.order = c.store.eventSeq.Add(1)
		c.app.events.add(r, e.Subject)
	}
	for _, o := range c.deliver {
		if len(c.events) > 0 {
			o.add(c.app, c.events)
		}
	}
}
