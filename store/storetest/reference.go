package storetest

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// reference is the plainest store that keeps the contract: maps, sorts and one mutex, no index,
// everything computed anew when asked. The model tier compares other stores with it.
type reference struct {
	mu     sync.Mutex
	closed bool
	secret []byte
	seq    int64 // of rows, over all applications, as the cursor of Waiting wants it
	feed   int64 // of notices
	apps   map[tracking.AppID]*book
	log    []*entry // every event, in order of commit
	leases map[queue]lease
	claims map[claimed]lease
	memos  map[string][]byte
}

// book is one application.
type book struct {
	tasks    map[tracking.TaskID]tracking.Task
	trips    map[tracking.TripID]tracking.Trip
	drivers  map[tracking.DriverID]tracking.Driver
	invites  map[tracking.DriverID]tracking.Invite
	keys     map[string]tracking.Key
	requests map[tracking.RequestID]tracking.Request
	fixes    map[tracking.DriverID]*fixes
	notices  map[tracking.DriverID]*feed
	files    map[string]*file
	seqs     map[tracking.Subject]int64
	versions map[tracking.Subject]int64 // the greatest that a row of that kind and id has had, also one that is gone
	gone     tracking.Marks             // of rows that are gone; a version only if that was in another store
}

func newBook() *book {
	return &book{
		tasks:    map[tracking.TaskID]tracking.Task{},
		trips:    map[tracking.TripID]tracking.Trip{},
		drivers:  map[tracking.DriverID]tracking.Driver{},
		invites:  map[tracking.DriverID]tracking.Invite{},
		keys:     map[string]tracking.Key{},
		requests: map[tracking.RequestID]tracking.Request{},
		fixes:    map[tracking.DriverID]*fixes{},
		notices:  map[tracking.DriverID]*feed{},
		files:    map[string]*file{},
		seqs:     map[tracking.Subject]int64{},
		versions: map[tracking.Subject]int64{},
	}
}

// raise is the version of a row that follows one of that version; of a new one, which follows none,
// a version that no row of its id has had.
func (b *book) raise(kind tracking.SubjectKind, id string, version int64) int64 {
	row := tracking.Subject{Kind: kind, ID: id}
	if version == 0 {
		version = max(b.versions[row], b.gone.Version)
	}
	b.versions[row] = version + 1
	return version + 1
}

// clone copies the maps, not what the pointers in them lead to.
func (b *book) clone() *book {
	c := *b
	c.tasks, c.trips, c.drivers, c.invites = maps.Clone(b.tasks), maps.Clone(b.trips), maps.Clone(b.drivers),
		maps.Clone(b.invites)
	c.keys, c.requests, c.versions = maps.Clone(b.keys), maps.Clone(b.requests), maps.Clone(b.versions)
	return &c
}

// feed is a driver's notices.
type feed struct {
	list   []tracking.Notice
	last   int64 // the greatest ID that was given
	purged int64 // the greatest ID that was purged
}

// entry is an event and its deliveries, by outbox.
type entry struct {
	app      tracking.AppID
	event    tracking.Event
	delivery map[string]*delivery
}

type delivery struct {
	state    tracking.DeliveryState // "": not delivered yet
	attempts int
	retryAt  time.Time
}

// in is the state of an event in an outbox.
func (e *entry) in(outbox string) tracking.DeliveryState {
	if d := e.delivery[outbox]; d != nil {
		return d.state
	}
	return tracking.DeliveryDone
}

// over reports whether the event is undelivered nowhere.
func (e *entry) over() bool {
	for _, d := range e.delivery {
		if d.state == "" {
			return false
		}
	}
	return true
}

type owned struct {
	app     tracking.AppID
	subject tracking.Subject
}

// queue names a subject's queue in an outbox.
type queue struct {
	outbox string
	owned
}

type lease struct {
	owner string
	until time.Time
}

func newReference() *reference {
	r := &reference{
		apps: map[tracking.AppID]*book{}, leases: map[queue]lease{}, claims: map[claimed]lease{}, memos: map[string][]byte{},
		secret: make([]byte, 32),
	}
	rand.Read(r.secret)
	return r
}

// enter locks the store and returns the application's rows; the caller unlocks r.mu unless there is
// an error.
func (r *reference) enter(ctx context.Context, app tracking.AppID) (*book, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return nil, tracking.ErrUnavailable
	}
	b := r.apps[app]
	if b == nil {
		b = newBook()
	}
	return b, nil
}

func (r *reference) Secret(ctx context.Context) ([]byte, error) {
	if _, err := r.enter(ctx, ""); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	return slices.Clone(r.secret), nil
}

func (r *reference) Memo(ctx context.Context, name string) ([]byte, error) {
	if _, err := r.enter(ctx, ""); err != nil {
		return nil, err
	}
	defer r.mu.Unlock()
	return slices.Clone(r.memos[name]), nil
}

func (r *reference) SetMemo(ctx context.Context, name string, value []byte) error {
	if _, err := r.enter(ctx, ""); err != nil {
		return err
	}
	defer r.mu.Unlock()
	if !sound(name) {
		return tracking.ErrInvalid
	}
	r.memos[name] = slices.Clone(value)
	return nil
}

func (r *reference) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return tracking.ErrUnavailable
	}
	r.closed = true
	return nil
}

// kept is v as a store keeps it: a deep copy with times as whole milliseconds in UTC and empty
// slices and maps as nil.
func kept[T any](v T) T {
	if k, ok := keep(reflect.ValueOf(&v).Elem()).Interface().(T); ok {
		return k
	}
	var none T // a nil interface
	return none
}

// keep is kept, by reflection.
func keep(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Struct:
		if t, ok := v.Interface().(time.Time); ok {
			return reflect.ValueOf(millis(t))
		}
		c := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			c.Field(i).Set(keep(v.Field(i)))
		}
		return c
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		c := reflect.New(v.Type().Elem())
		c.Elem().Set(keep(v.Elem()))
		return c
	case reflect.Slice:
		if v.Len() == 0 {
			return reflect.Zero(v.Type())
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			c.Index(i).Set(keep(v.Index(i)))
		}
		return c
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		return keep(v.Elem())
	case reflect.Map:
		if v.Len() == 0 {
			return reflect.Zero(v.Type())
		}
		c := reflect.MakeMap(v.Type())
		for it := v.MapRange(); it.Next(); {
			c.SetMapIndex(it.Key(), keep(it.Value()))
		}
		return c
	}
	return v
}

// millis is t as a store keeps it.
func millis(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC().Truncate(time.Millisecond)
}

func (r *reference) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (w tracking.Written,
	err error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return w, err
	}
	defer r.mu.Unlock()
	c := kept(*cs)
	if !soundTexts(app, c) {
		return w, tracking.ErrInvalid
	}
	after, conflicts := r.apply(app, b, c)
	if len(conflicts) > 0 {
		return w, conflicts[0]
	}
	r.apps[app] = after
	for _, t := range c.DeleteTasks {
		r.forget(app, after, tracking.Subject{Kind: tracking.KindTask, ID: string(t.ID)})
	}
	for _, t := range c.DeleteTrips {
		r.forget(app, after, tracking.Subject{Kind: tracking.KindTrip, ID: string(t.ID)})
	}
	for _, id := range c.DropFiles {
		delete(after.files, id)
	}
	for _, f := range c.Fixes {
		if _, err := after.record(f); err != nil {
			return w, err
		}
	}
	for _, e := range c.Events {
		r.append(app, after, e, c.Deliver)
	}
	for _, t := range c.Tasks {
		w.Tasks = append(w.Tasks, tracking.Given{Seq: after.tasks[t.ID].Seq, Version: after.tasks[t.ID].Version})
	}
	for _, t := range c.Trips {
		w.Trips = append(w.Trips, tracking.Given{Seq: after.trips[t.ID].Seq, Version: after.trips[t.ID].Version})
	}
	for _, d := range c.Drivers {
		w.Drivers = append(w.Drivers, tracking.Given{Seq: after.drivers[d.ID].Seq, Version: after.drivers[d.ID].Version})
	}
	return w, nil
}

// soundTexts reports whether the texts that c writes can be kept.
func soundTexts(app tracking.AppID, c tracking.Changeset) bool {
	ok := sound(string(app))
	c = kept(c)
	c.DeleteDrivers, c.DeleteTasks, c.DeleteTrips, c.DropFiles, c.CloseRequests = nil, nil, nil, nil, nil
	for i := range c.Fixes {
		c.Fixes[i].DriverID, c.Fixes[i].Person = "", ""
	}
	eachText(reflect.ValueOf(&c).Elem(), "", func(_, text string, _ func(string)) { ok = ok && sound(text) })
	return ok
}

// conflicts lists all that would make Commit refuse cs; which of them a store names is its own
// affair.
func (r *reference) conflicts(app tracking.AppID, cs *tracking.Changeset) []*tracking.ConflictError {
	b, err := r.enter(context.Background(), app)
	if err != nil {
		return nil
	}
	defer r.mu.Unlock()
	seq := r.seq
	_, conflicts := r.apply(app, b, kept(*cs))
	r.seq = seq
	return conflicts
}

// apply returns the application's rows with those of c in them, and what forbids it. A row at
// another version stays as it was.
func (r *reference) apply(app tracking.AppID, b *book, c tracking.Changeset) (*book, []*tracking.ConflictError) {
	var conflicts []*tracking.ConflictError
	refuse := func(kind tracking.SubjectKind, id, unique string) {
		conflicts = append(conflicts, &tracking.ConflictError{Kind: kind, ID: id, Unique: unique})
	}
	next := func() int64 { r.seq++; return r.seq }
	n := b.clone()

	for _, d := range c.DeleteDrivers {
		if old, ok := b.drivers[d.ID]; !ok || old.Version != d.Version {
			refuse(tracking.KindDriver, string(d.ID), "")
			continue
		}
		n.delete(d.ID)
	}
	for _, t := range c.DeleteTasks {
		if old, ok := b.tasks[t.ID]; !ok || old.Version != t.Version {
			refuse(tracking.KindTask, string(t.ID), "")
			continue
		}
		delete(n.tasks, t.ID)
	}
	for _, t := range c.DeleteTrips {
		if old, ok := b.trips[t.ID]; !ok || old.Version != t.Version {
			refuse(tracking.KindTrip, string(t.ID), "")
			continue
		}
		delete(n.trips, t.ID)
	}
	for _, t := range c.Tasks {
		old, ok := b.tasks[t.ID]
		switch {
		case t.Version != old.Version || (t.Version != 0 && !ok):
			refuse(tracking.KindTask, string(t.ID), "")
			continue
		case ok:
			t.Seq, t.CreatedAt = old.Seq, old.CreatedAt
		default:
			t.Seq = next()
		}
		t.Version = n.raise(tracking.KindTask, string(t.ID), t.Version)
		n.tasks[t.ID] = t
	}
	for _, t := range c.Trips {
		old, ok := b.trips[t.ID]
		switch {
		case t.Version != old.Version || (t.Version != 0 && !ok):
			refuse(tracking.KindTrip, string(t.ID), "")
			continue
		case ok:
			t.Seq, t.CreatedAt = old.Seq, old.CreatedAt
		default:
			t.Seq = next()
		}
		t.Version = n.raise(tracking.KindTrip, string(t.ID), t.Version)
		n.trips[t.ID] = t
	}
	for _, d := range c.Drivers {
		old, ok := b.drivers[d.ID]
		switch {
		case d.Version != old.Version || (d.Version != 0 && !ok):
			refuse(tracking.KindDriver, string(d.ID), "")
			continue
		case ok:
			d.Seq, d.CreatedAt = old.Seq, old.CreatedAt
		default:
			d.Seq = next()
		}
		d.Version = n.raise(tracking.KindDriver, string(d.ID), d.Version)
		d.Position, d.Distance = old.Position, 0
		n.drivers[d.ID] = d
	}
	for _, i := range c.Invites {
		if _, ok := n.drivers[i.DriverID]; !ok {
			refuse(tracking.KindDriver, string(i.DriverID), "")
		}
		old, ok := b.invites[i.DriverID]
		if i.Version != 0 {
			if !ok || old.Version != i.Version {
				refuse(tracking.KindInvite, string(i.DriverID), "")
				continue
			}
			i.CreatedAt = old.CreatedAt
		}
		if i.Version == 0 {
			i.Version = old.Version // goes on: else who has read the older one could replace the newer
		}
		i.Version = n.raise(tracking.KindInvite, string(i.DriverID), i.Version)
		n.invites[i.DriverID] = i
	}
	for _, k := range c.Keys {
		old, ok := b.keys[k.ID]
		switch {
		case k.Version != old.Version || (k.Version != 0 && !ok):
			refuse(tracking.KindKey, k.ID, "")
			continue
		case ok:
			k.CreatedAt = old.CreatedAt
		}
		k.Version = n.raise(tracking.KindKey, k.ID, k.Version)
		n.keys[k.ID] = k
	}
	for _, q := range c.Requests {
		n.requests[q.RequestID] = q
		if _, ok := n.drivers[q.DriverID]; !ok {
			refuse(tracking.KindDriver, string(q.DriverID), "")
		}
	}
	for _, id := range c.CloseRequests {
		maps.DeleteFunc(n.requests, func(of tracking.RequestID, _ tracking.Request) bool {
			return of.TrackingID == id.TrackingID && (id.DriverID == "" || of.DriverID == id.DriverID)
		})
	}
	for _, f := range c.Fixes {
		if d, ok := n.drivers[f.DriverID]; !ok || f.Person != "" && f.Person != d.Person {
			refuse(tracking.KindDriver, string(f.DriverID), "")
		}
	}
	r.checkUnique(app, n, c, refuse)
	return n, conflicts
}

// checkUnique looks for values that n, the application's rows after c, has twice. A row of c that
// is refused, and so is not in n, counts too: a store may find its value before its version.
func (r *reference) checkUnique(
	app tracking.AppID, n *book, c tracking.Changeset, refuse func(tracking.SubjectKind, string, string),
) {
	all := maps.Clone(r.apps)
	all[app] = n
	for _, t := range c.Tasks {
		for _, o := range slices.AppendSeq(slices.Clone(c.Tasks), maps.Values(n.tasks)) {
			if t.Key != "" && o.Key == t.Key && o.ID != t.ID {
				refuse(tracking.KindTask, "", "key")
			}
		}
	}
	for _, t := range c.Trips {
		for _, o := range slices.AppendSeq(slices.Clone(c.Trips), maps.Values(n.trips)) {
			if t.Status == tracking.TripActive && o.Status == tracking.TripActive && o.TrackingID == t.TrackingID &&
				o.ID != t.ID {
				refuse(tracking.KindTrip, "", "tracking_id")
			}
		}
	}
	for a, b := range all {
		invites, keys := slices.Collect(maps.Values(b.invites)), slices.Collect(maps.Values(b.keys))
		if a == app {
			invites, keys = append(invites, c.Invites...), append(keys, c.Keys...)
		}
		for _, i := range c.Invites {
			for _, o := range invites {
				if r.newCode(app, i) && o.CodeHash == i.CodeHash && o.CodeExpiresAt.After(i.CreatedAt) &&
					(a != app || o.DriverID != i.DriverID) {
					refuse(tracking.KindInvite, "", "code")
				}
			}
		}
		for _, k := range c.Keys {
			for _, o := range keys {
				if !k.Hash.IsZero() && o.Hash == k.Hash && (a != app || o.ID != k.ID) {
					refuse(tracking.KindKey, "", "hash")
				}
			}
		}
	}
}

// newCode reports whether the driver's invite has not had that code so far.
func (r *reference) newCode(app tracking.AppID, i tracking.Invite) bool {
	if b := r.apps[app]; b != nil && b.invites[i.DriverID].CodeHash == i.CodeHash {
		return false
	}
	return !i.CodeHash.IsZero()
}

// delete removes a driver and what belongs to it. The maps that clone shares are copied first.
func (b *book) delete(id tracking.DriverID) {
	b.fixes, b.notices = maps.Clone(b.fixes), maps.Clone(b.notices)
	if f := b.notices[id]; f != nil {
		b.gone.Notice = max(b.gone.Notice, f.last)
	}
	delete(b.drivers, id)
	delete(b.invites, id)
	delete(b.fixes, id)
	delete(b.notices, id)
	maps.DeleteFunc(b.requests, func(r tracking.RequestID, _ tracking.Request) bool { return r.DriverID == id })
}

// forget removes what there is about a subject: its events, and the notices that they have told.
func (r *reference) forget(app tracking.AppID, b *book, of tracking.Subject) {
	r.log = slices.DeleteFunc(r.log, func(e *entry) bool {
		if e.app != app || e.event.Subject != of {
			return false
		}
		for _, n := range e.event.Notices {
			f := b.notices[n.DriverID]
			if f == nil {
				continue
			}
			f.list = slices.DeleteFunc(f.list, func(o tracking.Notice) bool {
				if o.ID == n.ID {
					f.purged = max(f.purged, n.ID)
				}
				return o.ID == n.ID
			})
		}
		return true
	})
	delete(b.seqs, of)
	maps.DeleteFunc(r.leases, func(q queue, _ lease) bool { return q.owned == owned{app, of} })
}

// append writes an event into the log and its notices into the feeds.
func (r *reference) append(app tracking.AppID, b *book, e tracking.Event, deliver []string) {
	b.seqs[e.Subject]++
	e.Seq = b.seqs[e.Subject]
	var told []tracking.Notice
	for _, n := range e.Notices {
		d, ok := b.drivers[n.DriverID]
		if !ok {
			continue
		}
		r.feed++
		n.ID, n.Person, n.EventID, n.Time = r.feed, d.Person, e.ID, e.RecordedAt
		told = append(told, n)
		f := b.notices[n.DriverID]
		if f == nil {
			f = &feed{}
			b.notices[n.DriverID] = f
		}
		f.list, f.last = append(f.list, n), n.ID
	}
	e.Notices = told
	en := &entry{app: app, event: e, delivery: map[string]*delivery{}}
	for _, outbox := range deliver {
		en.delivery[outbox] = &delivery{}
	}
	r.log = append(r.log, en)
}

// fixes are one driver's kept fixes in order of time.
type fixes struct {
	list []tracking.KeptFix
	// Purged ones are remembered, as they still bear on which of the others are good.
	purged int
}

func (r *reference) RecordFixes(
	ctx context.Context, app tracking.AppID, batch tracking.FixBatch,
) (tracking.Recorded, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return tracking.Recorded{}, err
	}
	defer r.mu.Unlock()
	if _, ok := b.drivers[batch.DriverID]; !ok {
		return tracking.Recorded{}, tracking.ErrNotFound
	}
	if !soundTexts(app, tracking.Changeset{Fixes: []tracking.FixBatch{batch}}) {
		return tracking.Recorded{}, tracking.ErrInvalid
	}
	rec, err := b.record(kept(batch))
	return kept(rec), err
}

// record applies the rules of fixes, which are [tracking.FixBatch.Record]'s, to all that was ever
// kept.
func (b *book) record(batch tracking.FixBatch) (tracking.Recorded, error) {
	log := b.fixes[batch.DriverID]
	if log == nil {
		log = &fixes{}
		b.fixes[batch.DriverID] = log
	}
	rec, err := batch.Record(fixLog{log, b, batch.DriverID}, b.drivers[batch.DriverID])
	if err == nil {
		b.drivers[batch.DriverID] = rec.Driver
	}
	return rec, err
}

// fixLog is a driver's [tracking.FixLog].
type fixLog struct {
	*fixes
	b      *book
	driver tracking.DriverID
}

func (l fixLog) InTrip(t time.Time) (bool, error) { return l.b.inTrip(l.driver, t), nil }

// at is the rank of the oldest fix at or after t.
func (l *fixes) at(t time.Time) int {
	n, _ := slices.BinarySearchFunc(l.list, t, func(k tracking.KeptFix, t time.Time) int { return k.Time.Compare(t) })
	return n
}

// kept lists those from one rank to another.
func (l *fixes) kept(from, to int) []tracking.KeptFix {
	list := slices.Clone(l.list[from:to])
	for i := range list {
		list[i].Purged = from+i < l.purged
	}
	return list
}

func (l fixLog) Before(t time.Time, n int) ([]tracking.KeptFix, error) {
	end := l.at(t)
	list := l.kept(max(end-n, 0), end)
	slices.Reverse(list)
	return list, nil
}

func (l fixLog) From(t time.Time, n int) ([]tracking.KeptFix, error) {
	i := l.at(t)
	return l.kept(i, min(i+n, len(l.list))), nil
}

func (l fixLog) Put(fixes []tracking.KeptFix) error {
	for _, f := range fixes {
		l.list = slices.Insert(l.list, l.at(f.Time), f)
	}
	return nil
}

func (l fixLog) Forget(t time.Time) error {
	l.list = l.list[:l.at(t.Add(time.Millisecond))]
	return nil
}

func (l fixLog) Mark(fixes []tracking.KeptFix) error {
	for _, f := range fixes {
		l.list[l.at(f.Time)].Mark = f.Mark
	}
	return nil
}

func (b *book) inTrip(driver tracking.DriverID, t time.Time) bool {
	for _, tr := range b.trips {
		if tr.DriverID == driver && tr.Person == b.drivers[driver].Person && !t.Before(tr.StartedAt) &&
			(tr.Status == tracking.TripActive || !t.After(tr.EndedAt)) {
			return true
		}
	}
	return false
}

// byAge orders by creation and then insertion.
func byAge(at, bt time.Time, as, bs int64) int {
	return cmp.Or(at.Compare(bt), cmp.Compare(as, bs))
}
