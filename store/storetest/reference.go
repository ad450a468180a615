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

// reference is the plainest store that keeps the contract: maps, sorts and one mutex, no index, everything computed anew when asked.
// The model tier compares other stores with it.
type reference struct {
	mu     sync.Mutex
	closed bool
	secret []byte
	seq    int64 // of rows, over all applications, as the cursor of Waiting wants it
	feed   int64 // of notices
	apps   map[tracking.AppID]*book
	log    []*entry // every event, in order of commit
	leases map[queue]lease
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
	seqs     map[tracking.Subject]int64
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
		seqs:     map[tracking.Subject]int64{},
	}
}

// clone copies the maps, not what the pointers in them lead to.
func (b *book) clone() *book {
	c := *b
	c.tasks, c.trips, c.drivers, c.invites = maps.Clone(b.tasks), maps.Clone(b.trips), maps.Clone(b.drivers), maps.Clone(b.invites)
	c.keys, c.requests = maps.Clone(b.keys), maps.Clone(b.requests)
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
	return tracking.Delivered
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
	r := &reference{apps: map[tracking.AppID]*book{}, leases: map[queue]lease{}, secret: make([]byte, 32)}
	rand.Read(r.secret)
	return r
}

// enter locks the store and returns the application's rows; the caller unlocks r.mu unless there is an error.
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

func (r *reference) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return tracking.ErrUnavailable
	}
	r.closed = true
	return nil
}

// kept is v as a store keeps it: a deep copy with times as whole milliseconds in UTC and empty slices and maps as nil.
func kept[T any](v T) T {
	if k, ok := keep(reflect.ValueOf(&v).Elem()).Interface().(T); ok {
		return k
	}
	var none T // a nil interface
	return none
}

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

func (r *reference) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) error {
	b, err := r.enter(ctx, app)
	if err != nil {
		return err
	}
	defer r.mu.Unlock()
	c := kept(*cs)
	after, conflicts := r.apply(app, b, c)
	if len(conflicts) > 0 {
		return conflicts[0]
	}
	r.apps[app] = after
	for _, f := range c.Fixes {
		after.record(f)
	}
	for _, e := range c.Events {
		r.append(app, after, e, c.Deliver)
	}
	return nil
}

// conflicts lists all that would make Commit refuse cs; which of them a store names is its own affair.
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

// apply returns the application's rows with those of c in them, and what forbids it. A row at another version stays as it was.
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
		t.Version++
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
		t.Version++
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
		d.Version++
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
		i.Version++
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
		k.Version++
		n.keys[k.ID] = k
	}
	for _, q := range c.Push {
		n.requests[q.RequestID] = q
		if _, ok := n.drivers[q.DriverID]; !ok {
			refuse(tracking.KindDriver, string(q.DriverID), "")
		}
	}
	for _, id := range c.CloseRequests {
		delete(n.requests, id)
	}
	for _, f := range c.Fixes {
		if _, ok := n.drivers[f.DriverID]; !ok {
			refuse(tracking.KindDriver, string(f.DriverID), "")
		}
	}
	r.checkUnique(app, n, c, refuse)
	return n, conflicts
}

// checkUnique looks for values that n, the application's rows after c, has twice.
func (r *reference) checkUnique(app tracking.AppID, n *book, c tracking.Changeset, refuse func(tracking.SubjectKind, string, string)) {
	all := maps.Clone(r.apps)
	all[app] = n
	for _, t := range c.Tasks {
		for _, o := range n.tasks {
			if t.Key != "" && o.Key == t.Key && o.ID != t.ID {
				refuse(tracking.KindTask, "", "key")
			}
		}
	}
	for _, t := range c.Trips {
		for _, o := range n.trips {
			if t.Status == tracking.Active && o.Status == tracking.Active && o.TrackingID == t.TrackingID && o.ID != t.ID {
				refuse(tracking.KindTrip, "", "tracking_id")
			}
		}
	}
	for a, b := range all {
		for _, i := range c.Invites {
			for _, o := range b.invites {
				if !i.CodeHash.IsZero() && o.CodeHash == i.CodeHash && (a != app || o.DriverID != i.DriverID) {
					refuse(tracking.KindInvite, "", "code")
				}
			}
		}
		for _, k := range c.Keys {
			for _, o := range b.keys {
				if !k.Hash.IsZero() && o.Hash == k.Hash && (a != app || o.ID != k.ID) {
					refuse(tracking.KindKey, "", "hash")
				}
			}
		}
	}
}

// delete removes a driver and what belongs to it. The maps that clone shares are copied first.
func (b *book) delete(id tracking.DriverID) {
	b.fixes, b.notices = maps.Clone(b.fixes), maps.Clone(b.notices)
	delete(b.drivers, id)
	delete(b.invites, id)
	delete(b.fixes, id)
	delete(b.notices, id)
	maps.DeleteFunc(b.requests, func(r tracking.RequestID, _ tracking.Request) bool { return r.DriverID == id })
}

// append writes an event into the log and its notices into the feeds.
func (r *reference) append(app tracking.AppID, b *book, e tracking.Event, deliver []string) {
	b.seqs[e.Subject]++
	e.Seq = b.seqs[e.Subject]
	var told []tracking.Notice
	for _, n := range e.Notices {
		if _, ok := b.drivers[n.DriverID]; !ok {
			continue
		}
		r.feed++
		n.ID, n.EventID, n.Time = r.feed, e.ID, e.RecordedAt
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

func (r *reference) RecordFixes(ctx context.Context, app tracking.AppID, batch tracking.FixBatch) (tracking.Recorded, error) {
	b, err := r.enter(ctx, app)
	if err != nil {
		return tracking.Recorded{}, err
	}
	defer r.mu.Unlock()
	if _, ok := b.drivers[batch.DriverID]; !ok {
		return tracking.Recorded{}, tracking.ErrNotFound
	}
	before := b.drivers[batch.DriverID].Position.Fix
	outcomes := b.record(kept(batch))
	d := b.drivers[batch.DriverID]
	return kept(tracking.Recorded{Outcomes: outcomes, Driver: d, Moved: d.Position.Fix != before}), nil
}

// record applies the rules of fixes one fix at a time, judging all kept fixes anew after each.
func (b *book) record(batch tracking.FixBatch) []tracking.FixOutcome {
	d := b.drivers[batch.DriverID]
	defer func() { b.drivers[batch.DriverID] = d }()
	if batch.SeenAt.After(d.Position.SeenAt) {
		d.Position.SeenAt = batch.SeenAt
	}
	var outcomes []tracking.FixOutcome
	for _, f := range batch.Fixes {
		if !batch.KeepOffDuty && !f.Trusted && wasOffDuty(d, f.Time) && !b.inTrip(batch.DriverID, f.Time) {
			outcomes = append(outcomes, tracking.FixOffDuty)
			continue
		}
		log := b.fixes[batch.DriverID]
		if log == nil {
			log = &fixes{}
			b.fixes[batch.DriverID] = log
		}
		if slices.ContainsFunc(log.list[log.purged:], func(k tracking.KeptFix) bool { return k.Time.Equal(f.Time) }) {
			outcomes = append(outcomes, tracking.FixDuplicate)
			continue
		}
		log.list = append(log.list, tracking.KeptFix{Fix: f})
		var jumped bool
		d.Position.Fix, d.Position.Candidate, jumped = log.judge(f.Time)
		switch {
		case jumped:
			outcomes = append(outcomes, tracking.FixJump)
		case d.Position.Fix.Time.Equal(f.Time):
			outcomes = append(outcomes, tracking.FixLive)
		default:
			outcomes = append(outcomes, tracking.FixLate)
		}
	}
	return outcomes
}

// judge marks all fixes. It returns the newest good one, the newest of all if that is a candidate, and whether the one of time at is a candidate.
func (l *fixes) judge(at time.Time) (good, candidate tracking.Fix, jumped bool) {
	slices.SortFunc(l.list, func(a, b tracking.KeptFix) int { return a.Time.Compare(b.Time) })
	open := -1 // the index of the candidate
	for i := range l.list {
		f := &l.list[i]
		confirms := open >= 0 && !isJump(l.list[open].Fix, f.Fix)
		if !good.Time.IsZero() && !f.Trusted && isJump(good, f.Fix) && !confirms {
			f.Mark, open = tracking.FixCandidate, i
			continue
		}
		if confirms {
			l.list[open].Mark = tracking.FixConfirmed
		}
		f.Mark, good, open = tracking.FixGood, f.Fix, -1
	}
	if open >= 0 {
		candidate = l.list[open].Fix
	}
	for _, f := range l.list {
		jumped = jumped || f.Time.Equal(at) && f.Mark == tracking.FixCandidate
	}
	return good, candidate, jumped
}

// isJump reports whether b is farther from a than anything drives in the time between, or in a second if that is longer.
func isJump(a, b tracking.Fix) bool {
	dt := b.Time.Sub(a.Time).Abs().Seconds()
	return tracking.Distance(a.LngLat, b.LngLat) > tracking.MaxSpeed*max(dt, 1)
}

func wasOffDuty(d tracking.Driver, t time.Time) bool {
	between := !d.OffDutyAt.IsZero() && !t.Before(d.OffDutyAt) && t.Before(d.DutyAt.Add(-2*time.Minute))
	return !d.Available || between
}

func (b *book) inTrip(driver tracking.DriverID, t time.Time) bool {
	for _, tr := range b.trips {
		if tr.DriverID == driver && !t.Before(tr.StartedAt) && (tr.Status == tracking.Active || !t.After(tr.EndedAt)) {
			return true
		}
	}
	return false
}

// byAge orders by creation and then insertion.
func byAge(at, bt time.Time, as, bs int64) int {
	return cmp.Or(at.Compare(bt), cmp.Compare(as, bs))
}
