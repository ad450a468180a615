package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// trial is a test whose failure is what is wanted.
type trial struct {
	testing.TB
	failed bool
}

func (t *trial) Helper()               {}
func (t *trial) Error(...any)          { t.failed = true }
func (t *trial) Errorf(string, ...any) { t.failed = true }
func (t *trial) Fatal(args ...any)     { t.FailNow() }
func (t *trial) Fatalf(string, ...any) { t.FailNow() }
func (t *trial) FailNow()              { t.failed = true; runtime.Goexit() }
func (t *trial) Log(...any)            {}
func (t *trial) Logf(string, ...any)   {}

// try runs f, and takes a panic for a failure.
func (t *trial) try(f func(t testing.TB)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { t.failed = recover() != nil || t.failed }()
		f(t)
	}()
	<-done
}

// findings lists the cases that find something wrong with the stores of s: the first one, or all with
// TRACKING_LONG=1.
func findings(t *testing.T, s func() tracking.Store) (by []string) {
	for _, tr := range tiers() {
		for _, c := range tr.checks() {
			tt := &trial{TB: t}
			tt.try(func(t testing.TB) { c.run(t, s()) })
			if tt.failed {
				if by = append(by, tr.name+"/"+c.name); !long() {
					return by
				}
			}
		}
	}
	return by
}

// The faulty stores. Each keeps all of the contract but one thing.
type (
	anyApp    struct{ *reference } // reads a task of whichever application
	local     struct{ *reference } // returns times in another zone
	shares    struct{ *reference } // hands out its own rows
	steps     struct{ *reference } // applies a changeset in two steps
	flatEarth struct{ *reference } // ends at ±180°
	fullPage  struct{ *reference } // takes a full page for a sign that more follow
	noLease   struct{ *reference } // forgets leases
	neverLost struct{ *reference } // says that no place in a feed is lost
	notNil    struct{ *reference } // returns empty lists
	folds     struct{ *reference } // ignores case
	early     struct{ *reference } // takes what is due for due a moment later only
	anyOrder  struct{ *reference } // lists waiting tasks by id
	allOver   struct{ *reference } // lists waiting tasks wherever they are
	dull      struct{ *reference } // takes drivers for matches however far they are
	newest    struct{ *reference } // lists requests newest first
	rounds    struct{ *reference } // rounds times up
	forgets   struct{ *reference } // does not keep a trip's destination
	spends    struct{ *reference } // a fix spends the driver's version
	eager     struct{ *reference } // offers drivers without looking at their load
	deaf      struct{ *reference } // does not hear that an event is dead
	oneLease  struct{ *reference } // leases a subject in all outboxes at once
	oneFate   struct{ *reference } // what becomes of an event in one outbox becomes of it in all
	oneDead   struct{ *reference } // lists what is dead in whichever outbox
	hasty     struct{ *reference } // purges what one outbox has delivered
	shared    struct{ *reference } // has one set of files for all applications
	thrifty   struct{ *reference } // purges files by their age alone

	sleepy struct { // does not hear of fixes when it looks for matches
		*reference
		asleep *sync.Map // their ids
	}
	borrows struct { // keeps a batch's fixes where the caller has them
		*reference
		lent *sync.Map
	}
)

func (s anyApp) Task(ctx context.Context, app tracking.AppID, id tracking.TaskID) (tracking.Task, error) {
	t, err := s.reference.Task(ctx, app, id)
	s.mu.Lock()
	others := slices.Collect(maps.Keys(s.apps))
	s.mu.Unlock()
	for _, other := range others {
		if errors.Is(err, tracking.ErrNotFound) {
			t, err = s.reference.Task(ctx, other, id)
		}
	}
	return t, err
}

func (s local) Trip(ctx context.Context, app tracking.AppID, id tracking.TripID) (tracking.Trip, error) {
	t, err := s.reference.Trip(ctx, app, id)
	t.CreatedAt = t.CreatedAt.In(time.FixedZone("CET", 3600))
	return t, err
}

func (s shares) Driver(ctx context.Context, app tracking.AppID, id tracking.DriverID) (tracking.Driver, error) {
	d, err := s.reference.Driver(ctx, app, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && s.apps[app] != nil {
		d.Properties = s.apps[app].drivers[id].Properties
	}
	return d, err
}

func (s steps) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	rest := *cs
	rest.Drivers = nil
	if _, err := s.reference.Commit(ctx, app, &tracking.Changeset{Drivers: cs.Drivers}); err != nil {
		return tracking.Written{}, err
	}
	return s.reference.Commit(ctx, app, &rest)
}

func (s flatEarth) Offers(ctx context.Context, app tracking.AppID, o tracking.Offer) ([]tracking.Driver, error) {
	list, err := s.reference.Offers(ctx, app, o)
	list = slices.DeleteFunc(list, func(d tracking.Driver) bool {
		return math.Abs(d.Position.Fix.LngLat.Lng-o.At.Lng) > 180
	})
	if len(list) == 0 {
		list = nil
	}
	return list, err
}

func (s fullPage) Trips(ctx context.Context, app tracking.AppID, f tracking.TripFilter) ([]tracking.Trip, bool, error) {
	list, _, err := s.reference.Trips(ctx, app, f)
	return list, len(list) == f.Limit, err
}

func (s noLease) LeaseEvents(ctx context.Context, l tracking.Lease) ([]tracking.Leased, error) {
	s.mu.Lock()
	clear(s.leases)
	s.mu.Unlock()
	return s.reference.LeaseEvents(ctx, l)
}

func (s neverLost) Notices(
	ctx context.Context, app tracking.AppID, d tracking.DriverID, after int64, limit int,
) ([]tracking.Notice, bool, error) {
	list, _, err := s.reference.Notices(ctx, app, d, after, limit)
	return list, false, err
}

func (s notNil) Keys(ctx context.Context, app tracking.AppID) ([]tracking.Key, error) {
	list, err := s.reference.Keys(ctx, app)
	return append([]tracking.Key{}, list...), err
}

func (s folds) ActiveTrip(ctx context.Context, app tracking.AppID, id tracking.TrackingID) (tracking.Trip, error) {
	list, _, err := s.reference.Trips(ctx, app, tracking.TripFilter{
		Page: tracking.Page{Limit: 1000}, Status: tracking.TripActive,
	})
	for _, t := range list {
		if strings.EqualFold(string(t.TrackingID), string(id)) {
			return t, nil
		}
	}
	return tracking.Trip{}, errors.Join(err, tracking.ErrNotFound)
}

func (s early) Due(ctx context.Context, q tracking.DueQuery) ([]tracking.Due, error) {
	q.Before = q.Before.Add(-time.Millisecond)
	return s.reference.Due(ctx, q)
}

func (s anyOrder) Waiting(ctx context.Context, app tracking.AppID, f tracking.WaitingFilter) ([]tracking.Task, error) {
	list, err := s.reference.Waiting(ctx, app, f)
	slices.SortFunc(list, func(a, b tracking.Task) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return list, err
}

func (s allOver) Waiting(ctx context.Context, app tracking.AppID, f tracking.WaitingFilter) ([]tracking.Task, error) {
	f.Near = nil
	return s.reference.Waiting(ctx, app, f)
}

func (s dull) Matches(ctx context.Context, app tracking.AppID, q tracking.MatchQuery) ([]tracking.Task, error) {
	q.Within = 0
	return s.reference.Matches(ctx, app, q)
}

// RecordFixes notes that the driver is to be passed over.
func (s sleepy) RecordFixes(ctx context.Context, app tracking.AppID, b tracking.FixBatch) (tracking.Recorded, error) {
	s.asleep.Store(b.DriverID, true)
	return s.reference.RecordFixes(ctx, app, b)
}

func (s sleepy) Matches(ctx context.Context, app tracking.AppID, q tracking.MatchQuery) ([]tracking.Task, error) {
	list, err := s.reference.Matches(ctx, app, q)
	for id := range s.asleep.Range {
		list = slices.DeleteFunc(list, func(t tracking.Task) bool {
			o := tracking.Offer{
				At: *t.Point(), MaxOpen: q.MaxOpen, SeenSince: q.SeenSince, Within: q.Within,
				Exclude: append([]tracking.DriverID{id.(tracking.DriverID)}, t.Excluded...), Limit: 1,
			}
			others, _ := s.reference.Offers(ctx, app, o)
			return len(others) == 0
		})
	}
	if len(list) == 0 {
		list = nil
	}
	return list, err
}

// lentFix is a fix by its driver and its time.
type lentFix struct {
	app    tracking.AppID
	driver tracking.DriverID
	at     int64
}

func (s borrows) RecordFixes(ctx context.Context, app tracking.AppID, b tracking.FixBatch) (tracking.Recorded, error) {
	r, err := s.reference.RecordFixes(ctx, app, b)
	if d := r.Driver; err == nil {
		for i := range b.Fixes {
			if f := &b.Fixes[i]; *f == d.Position.Fix {
				s.lent.Store(lentFix{app, d.ID, f.Time.UnixMilli()}, f)
			}
		}
	}
	return r, err
}

func (s borrows) Driver(ctx context.Context, app tracking.AppID, id tracking.DriverID) (tracking.Driver, error) {
	d, err := s.reference.Driver(ctx, app, id)
	if f, ok := s.lent.Load(lentFix{app, id, d.Position.Fix.Time.UnixMilli()}); ok && err == nil {
		d.Position.Fix = *f.(*tracking.Fix)
	}
	return d, err
}

func (s newest) Requests(ctx context.Context, app tracking.AppID, d tracking.DriverID) ([]tracking.Request, error) {
	list, err := s.reference.Requests(ctx, app, d)
	slices.Reverse(list)
	return list, err
}

func (s rounds) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	c := *cs
	c.Tasks = slices.Clone(cs.Tasks)
	for i := range c.Tasks {
		if !c.Tasks[i].CompletedAt.IsZero() {
			c.Tasks[i].CompletedAt = c.Tasks[i].CompletedAt.Round(time.Millisecond)
		}
	}
	return s.reference.Commit(ctx, app, &c)
}

func (s forgets) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	c := *cs
	c.Trips = slices.Clone(cs.Trips)
	for i := range c.Trips {
		c.Trips[i].Dest = nil
	}
	return s.reference.Commit(ctx, app, &c)
}

func (s spends) RecordFixes(ctx context.Context, app tracking.AppID, b tracking.FixBatch) (tracking.Recorded, error) {
	r, err := s.reference.RecordFixes(ctx, app, b)
	if err == nil {
		s.mu.Lock()
		d := s.apps[app].drivers[b.DriverID]
		d.Version++
		s.apps[app].drivers[b.DriverID] = d
		s.mu.Unlock()
	}
	return r, err
}

func (s eager) Offers(ctx context.Context, app tracking.AppID, o tracking.Offer) ([]tracking.Driver, error) {
	o.MaxOpen = -1
	return s.reference.Offers(ctx, app, o)
}

func (s deaf) FinishEvents(ctx context.Context, done []tracking.Delivery) error {
	for _, d := range done {
		if d.State == tracking.DeliveryDead {
			d.State = tracking.DeliveryDone
		}
		if err := s.reference.FinishEvents(ctx, []tracking.Delivery{d}); err != nil {
			return err
		}
	}
	return nil
}

func (s oneLease) LeaseEvents(ctx context.Context, l tracking.Lease) ([]tracking.Leased, error) {
	list, err := s.reference.LeaseEvents(ctx, l)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range list {
		for _, other := range s.log {
			for name := range other.delivery {
				s.leases[queue{name, owned{e.App, e.Event.Subject}}] = lease{l.Owner, l.Now.Add(l.For)}
			}
		}
	}
	return list, err
}

func (s oneFate) FinishEvents(ctx context.Context, done []tracking.Delivery) error {
	var all []tracking.Delivery
	s.mu.Lock()
	for _, d := range done {
		for _, e := range s.log {
			for name := range e.delivery {
				if e.app == d.App && e.event.ID == d.EventID {
					d.Outbox = name
					all = append(all, d)
				}
			}
		}
	}
	s.mu.Unlock()
	return s.reference.FinishEvents(ctx, all)
}

func (s oneDead) Events(
	ctx context.Context, app tracking.AppID, f tracking.EventFilter,
) ([]tracking.Event, bool, error) {
	s.mu.Lock()
	for _, e := range s.log {
		for name, d := range e.delivery {
			if d.state == tracking.DeliveryDead {
				f.Outbox = name
			}
		}
	}
	s.mu.Unlock()
	return s.reference.Events(ctx, app, f)
}

func (s hasty) Purge(ctx context.Context, b tracking.Before) (tracking.Purged, error) {
	s.mu.Lock()
	for _, e := range s.log {
		for _, d := range e.delivery {
			if d.state != "" {
				e.delivery = nil
				break
			}
		}
	}
	s.mu.Unlock()
	return s.reference.Purge(ctx, b)
}

// sharedFiles are those of one application, whoever asks.
type sharedFiles struct{ tracking.Files }

func (s shared) Files() tracking.Files { return sharedFiles{s.reference.Files()} }

func (f sharedFiles) Put(ctx context.Context, _ tracking.AppID, id string, file tracking.File) error {
	return f.Files.Put(ctx, here, id, file)
}

func (f sharedFiles) Open(ctx context.Context, _ tracking.AppID, id string) (io.ReadCloser, error) {
	return f.Files.Open(ctx, here, id)
}

func (s thrifty) Purge(ctx context.Context, b tracking.Before) (tracking.Purged, error) {
	s.mu.Lock()
	var n tracking.Purged
	for _, book := range s.apps {
		maps.DeleteFunc(book.files, func(_ string, f *file) bool {
			old := f.At.Before(b.Files) && n.Files < b.Limit
			if old {
				n.Files++
			}
			return old
		})
	}
	s.mu.Unlock()
	b.Limit -= n.Files
	p, err := s.reference.Purge(ctx, b)
	p.Files += n.Files
	return p, err
}

// TestFaultsAreFound runs the suite over stores with a fault each: it must find all of them.
func TestFaultsAreFound(t *testing.T) {
	r := newReference
	for _, f := range []func() tracking.Store{
		func() tracking.Store { return anyApp{r()} }, func() tracking.Store { return local{r()} },
		func() tracking.Store { return shares{r()} }, func() tracking.Store { return steps{r()} },
		func() tracking.Store { return flatEarth{r()} }, func() tracking.Store { return fullPage{r()} },
		func() tracking.Store { return noLease{r()} }, func() tracking.Store { return neverLost{r()} },
		func() tracking.Store { return notNil{r()} }, func() tracking.Store { return folds{r()} },
		func() tracking.Store { return early{r()} }, func() tracking.Store { return anyOrder{r()} },
		func() tracking.Store { return newest{r()} }, func() tracking.Store { return rounds{r()} },
		func() tracking.Store { return forgets{r()} }, func() tracking.Store { return spends{r()} },
		func() tracking.Store { return eager{r()} }, func() tracking.Store { return deaf{r()} },
		func() tracking.Store { return blind{r()} }, func() tracking.Store { return oneLease{r()} },
		func() tracking.Store { return oneFate{r()} }, func() tracking.Store { return allOver{r()} },
		func() tracking.Store { return dull{r()} }, func() tracking.Store { return sleepy{r(), new(sync.Map)} },
		func() tracking.Store { return oneDead{r()} }, func() tracking.Store { return hasty{r()} },
		func() tracking.Store { return shared{r()} }, func() tracking.Store { return thrifty{r()} },
		func() tracking.Store { return borrows{r(), new(sync.Map)} },
	} {
		t.Run(strings.TrimPrefix(fmt.Sprintf("%T", f()), "storetest."), func(t *testing.T) {
			if by := findings(t, f); len(by) == 0 {
				t.Error("no case has found the fault")
			} else {
				t.Logf("found by %q", by)
			}
		})
	}
}

// mute drops the events of some types, stingy the notices, slack the drivers' rows that come with a
// task's.
type (
	mute   struct{ *reference }
	stingy struct{ *reference }
	slack  struct{ *reference }
)

func (s mute) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	c := kept(*cs)
	c.Events = slices.DeleteFunc(c.Events, func(e tracking.Event) bool {
		return e.Type == tracking.EventTaskUnassigned
	})
	return s.reference.Commit(ctx, app, &c)
}

func (s stingy) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	c := kept(*cs)
	for i := range c.Events {
		c.Events[i].Notices = nil
	}
	return s.reference.Commit(ctx, app, &c)
}

func (s slack) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	c := kept(*cs)
	if len(c.Tasks) > 0 {
		c.Drivers = nil
	}
	return s.reference.Commit(ctx, app, &c)
}

// undue keeps no DueAt.
type undue struct{ *reference }

func (s undue) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	c := kept(*cs)
	for i := range c.Tasks {
		c.Tasks[i].DueAt = time.Time{}
	}
	return s.reference.Commit(ctx, app, &c)
}

// TestInvariants spoils what a Service has written, and expects that the audit names it.
func TestInvariants(t *testing.T) {
	for _, c := range []struct {
		name string
		s    tracking.Store
		want string // part of the error; "" for none
	}{
		{"sound", newReference(), ""},
		{"an event is missing", mute{newReference()}, "by its events"},
		{"a notice is missing", stingy{newReference()}, "was told"},
		{"a route is missing", slack{newReference()}, "the route of driver"},
		{"what comes due is not kept", undue{newReference()}, "is due at"},
	} {
		t.Run(c.name, func(t *testing.T) {
			svc := several(t, c.s, 1, tracking.Options{})[0]
			drivers := standBy(t, svc, 2)
			n := dropHere(true)
			n.Promised = at(time.Hour)
			task, err := svc.CreateTask(t.Context(), n)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = svc.AssignTask(t.Context(), task.ID, drivers[1]); err != nil {
				t.Fatal(err)
			}
			if c.want == "by its events" {
				if _, err = svc.UnassignTask(t.Context(), task.ID); err != nil {
					t.Fatal(err)
				}
			}
			err = Invariants(t.Context(), c.s, 1, here)
			if (err == nil) != (c.want == "") || (err != nil && !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got error %v, want one with %q", err, c.want)
			}
		})
	}
}

// blind ignores versions: the last one to write wins.
type blind struct{ *reference }

func (b blind) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (w tracking.Written, err error) {
	runtime.Gosched()
	for range 100 { // a conflict of another kind stays one
		c := kept(*cs)
		for i, t := range c.Tasks {
			if now, err := b.Task(ctx, app, t.ID); err == nil && t.Version != 0 {
				c.Tasks[i].Version = now.Version
			}
		}
		for i, d := range c.Drivers {
			if now, err := b.Driver(ctx, app, d.ID); err == nil && d.Version != 0 {
				c.Drivers[i].Version = now.Version
			}
		}
		if w, err = b.reference.Commit(ctx, app, &c); !errors.Is(err, tracking.ErrConflict) {
			return w, err
		}
	}
	return w, err
}

func (b blind) Task(ctx context.Context, app tracking.AppID, id tracking.TaskID) (tracking.Task, error) {
	t, err := b.reference.Task(ctx, app, id)
	runtime.Gosched() // others come in between
	return t, err
}

func TestPlantedRaceIsFound(t *testing.T) {
	n, err := racedTask(t, blind{newReference()}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if n < 0 {
		t.Fatal("a store that ignores versions was taken for linearizable")
	}
	t.Logf("found in round %d", n)
}
