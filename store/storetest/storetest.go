// Package storetest holds the contract of [tracking.Store] as tests, for everybody who writes a
// store.
//
// A store's own test hands it a function that opens an empty one:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t testing.TB) tracking.Store {
//			s, err := mystore.Open(t.TempDir())
//			if err != nil {
//				t.Fatal(err)
//			}
//			return s
//		})
//	}
//
// [Run] closes each store that it opened. A store that outlives its process is given to
// [RunDurable] too, one that several processes may have open to [RunShared], and one that is reached
// by connections to [RunCut].
//
// The tests come in tiers. "contract" has a case for each sentence of the comments on
// [tracking.Store] and its parts; "parity" looks at what stores tend to do differently:
// milliseconds, case, Unicode, the edges of the map, ties, empty against nil, large numbers, shared
// memory; "tenant" calls everything for a foreign application; "concurrent" lets many goroutines
// race; "model" plays random histories against a plain reference and prints the seed of one that
// differs; "service" does so a level higher, with a [tracking.Service] over the store, and holds
// its rules as [Invariants].
//
// A store that has a clock of its own is opened so that it goes by the Now that comes with a call
// instead: the tests play at a time of their own.
//
// No test sleeps or reads the clock. With TRACKING_LONG=1 the random tiers play many times as much.
// The flags of pgregory.net/rapid apply: -rapid.seed repeats a history, -rapid.checks and
// -rapid.steps set how many there are and how long.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
)

// check is one named case, run on a store of its own.
type check struct {
	name string
	run  func(t testing.TB, s tracking.Store)
}

// tier is a group of checks.
type tier struct {
	name   string
	checks func() []check
}

func tiers() []tier {
	return []tier{
		{"contract", contractChecks},
		{"parity", parityChecks},
		{"tenant", tenantChecks},
		{"concurrent", concurrentChecks},
	}
}

// Run tests the stores that open returns. Each call of open gives a new, empty store.
func Run(t *testing.T, open func(t testing.TB) tracking.Store) {
	RunRows(t, open)
	t.Run("service", func(t *testing.T) { RunService(t, open) })
}

// RunRows is [Run] without the tier of the service.
func RunRows(t *testing.T, open func(t testing.TB) tracking.Store) {
	for _, tr := range tiers() {
		t.Run(tr.name, func(t *testing.T) {
			for _, c := range tr.checks() {
				t.Run(c.name, func(t *testing.T) { c.run(t, opened(t, open)) })
			}
		})
	}
	t.Run("model", func(t *testing.T) { runModel(t, open) })
}

// RunContract plays the first tier of [Run] alone, for a store that is set up in one more way.
func RunContract(t *testing.T, open func(t testing.TB) tracking.Store) {
	for _, c := range contractChecks() {
		t.Run(c.name, func(t *testing.T) { c.run(t, opened(t, open)) })
	}
}

// opened opens a store that is closed when the test ends.
func opened(t testing.TB, open func(testing.TB) tracking.Store) tracking.Store {
	t.Helper()
	s := open(t)
	t.Cleanup(func() { s.Close() }) // some cases have closed it themselves
	return s
}

// t0 is when the tests play.
var t0 = time.Date(2024, 3, 10, 8, 50, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return t0.Add(d) }

const (
	here  tracking.AppID = "here"
	there tracking.AppID = "there"
)

// client is a store seen by one application's test: what it does not expect ends the test.
type client struct {
	testing.TB
	s   tracking.Store
	app tracking.AppID
	ctx context.Context
}

func use(t testing.TB, s tracking.Store, app tracking.AppID) *client {
	return &client{t, s, app, t.Context()}
}

func (c *client) ok(err error) {
	c.Helper()
	if err != nil {
		c.Fatalf("unexpected error: %v", err)
	}
}

func (c *client) commit(cs tracking.Changeset) {
	c.Helper()
	if _, err := c.s.Commit(c.ctx, c.app, &cs); err != nil {
		c.Fatalf("Commit: %v", err)
	}
}

// refused commits what must not be committed. With want.Unique, the ID is the store's affair.
func (c *client) refused(cs tracking.Changeset, want tracking.ConflictError) {
	c.Helper()
	_, err := c.s.Commit(c.ctx, c.app, &cs)
	var got *tracking.ConflictError
	if !errors.As(err, &got) {
		c.Fatalf("Commit: got error %v, want %T %+v", err, &want, want)
	}
	if want.Unique != "" {
		want.ID = got.ID
	}
	if *got != want {
		c.Errorf("Commit: got conflict %+v, want %+v", *got, want)
	}
}

func (c *client) record(b tracking.FixBatch) tracking.Recorded {
	c.Helper()
	b.Fixes = slices.Clone(b.Fixes)
	r, err := c.s.RecordFixes(c.ctx, c.app, b)
	if err != nil {
		c.Fatalf("RecordFixes: %v", err)
	}
	clear(b.Fixes) // they are the caller's again
	return r
}

func (c *client) task(id tracking.TaskID) tracking.Task {
	c.Helper()
	v, err := c.s.Task(c.ctx, c.app, id)
	c.ok(err)
	return v
}

func (c *client) trip(id tracking.TripID) tracking.Trip {
	c.Helper()
	v, err := c.s.Trip(c.ctx, c.app, id)
	c.ok(err)
	return v
}

func (c *client) driver(id tracking.DriverID) tracking.Driver {
	c.Helper()
	v, err := c.s.Driver(c.ctx, c.app, id)
	c.ok(err)
	return v
}

func (c *client) invite(id tracking.DriverID) tracking.Invite {
	c.Helper()
	v, err := c.s.Invite(c.ctx, c.app, id)
	c.ok(err)
	return v
}

func (c *client) keys() []tracking.Key {
	c.Helper()
	v, err := c.s.Keys(c.ctx, c.app)
	c.ok(err)
	return v
}

func (c *client) tasks(f tracking.TaskFilter) ([]tracking.Task, bool) {
	c.Helper()
	if f.Limit == 0 {
		f.Limit = 1000
	}
	v, more, err := c.s.Tasks(c.ctx, c.app, f)
	c.ok(err)
	return v, more
}

func (c *client) trips(f tracking.TripFilter) ([]tracking.Trip, bool) {
	c.Helper()
	if f.Limit == 0 {
		f.Limit = 1000
	}
	v, more, err := c.s.Trips(c.ctx, c.app, f)
	c.ok(err)
	return v, more
}

func (c *client) drivers(f tracking.DriverFilter) ([]tracking.Driver, bool) {
	c.Helper()
	if f.Limit == 0 {
		f.Limit = 1000
	}
	v, more, err := c.s.Drivers(c.ctx, c.app, f)
	c.ok(err)
	return v, more
}

func (c *client) offers(o tracking.Offer) []tracking.Driver {
	c.Helper()
	if o.Limit == 0 {
		o.Limit = 1000
	}
	v, err := c.s.Offers(c.ctx, c.app, o)
	c.ok(err)
	return v
}

func (c *client) waiting(f tracking.WaitingFilter) []tracking.Task {
	c.Helper()
	if f.Limit == 0 {
		f.Limit = 1000
	}
	v, err := c.s.Waiting(c.ctx, c.app, f)
	c.ok(err)
	return v
}

func (c *client) matches(q tracking.MatchQuery) []tracking.Task {
	c.Helper()
	if q.Limit == 0 {
		q.Limit = 1000
	}
	v, err := c.s.Matches(c.ctx, c.app, q)
	c.ok(err)
	return v
}

func (c *client) requests(d tracking.DriverID) []tracking.Request {
	c.Helper()
	v, err := c.s.Requests(c.ctx, c.app, d)
	c.ok(err)
	return v
}

func (c *client) fixes(d tracking.DriverID, r tracking.FixRange) []tracking.Fix {
	c.Helper()
	var list []tracking.Fix
	for f, err := range c.s.Fixes(c.ctx, c.app, d, r) {
		c.ok(err)
		list = append(list, f)
	}
	return list
}

func (c *client) events(f tracking.EventFilter) ([]tracking.Event, bool) {
	c.Helper()
	if f.Limit == 0 {
		f.Limit = 1 << 20
	}
	v, more, err := c.s.Events(c.ctx, c.app, f)
	c.ok(err)
	return v, more
}

func (c *client) notices(d tracking.DriverID, after int64) ([]tracking.Notice, bool) {
	c.Helper()
	v, lost, err := c.s.Notices(c.ctx, c.app, d, after, 1<<20)
	c.ok(err)
	return v, lost
}

// lease asks the outbox named "" for what can be delivered, for a minute.
func (c *client) lease(owner string, now time.Time, limit int) []tracking.Leased {
	c.Helper()
	return c.leaseFrom("", owner, now, limit)
}

func (c *client) finish(done ...tracking.Delivery) {
	c.Helper()
	c.ok(c.s.FinishEvents(c.ctx, done))
}

func (c *client) due(q tracking.DueQuery) []tracking.Due {
	c.Helper()
	if q.Limit == 0 {
		q.Limit = 1000
	}
	v, err := c.s.Due(c.ctx, q)
	c.ok(err)
	return v
}

func (c *client) purge(b tracking.Before) tracking.Purged {
	c.Helper()
	v, err := c.s.Purge(c.ctx, b)
	c.ok(err)
	return v
}

// missing expects that a read finds nothing.
func missing(t testing.TB, what string, err error) {
	t.Helper()
	if !errors.Is(err, tracking.ErrNotFound) {
		t.Errorf("%s: got error %v, want ErrNotFound", what, err)
	}
}

// same compares, and checks that all times in got are whole milliseconds in UTC.
func same[T any](t testing.TB, what string, got, want T, opts ...cmp.Option) {
	t.Helper()
	if d := differs(want, got, opts...); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
	eachTime(reflect.ValueOf(&got).Elem(), func(at time.Time) {
		if at.Location() != time.UTC || at.Nanosecond()%1e6 != 0 {
			t.Errorf("%s: the time %v is not in whole milliseconds of UTC", what, at)
		}
	})
}

// differs is cmp.Diff, which takes its time, of what is not equal at once.
func differs(want, got any, opts ...cmp.Option) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got, opts...)
}

// eachTime calls f with every time.Time inside v.
func eachTime(v reflect.Value, f func(time.Time)) {
	switch v.Kind() {
	case reflect.Struct:
		if at, ok := v.Interface().(time.Time); ok {
			f(at)
			return
		}
		for i := range v.NumField() {
			eachTime(v.Field(i), f)
		}
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			eachTime(v.Elem(), f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachTime(v.Index(i), f)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			eachTime(it.Value(), f)
		}
	}
}

// each lists what f makes of each element.
func each[T, U any](list []T, f func(T) U) []U {
	var out []U
	for _, v := range list {
		out = append(out, f(v))
	}
	return out
}

func taskID(t tracking.Task) tracking.TaskID       { return t.ID }
func tripID(t tracking.Trip) tracking.TripID       { return t.ID }
func driverID(d tracking.Driver) tracking.DriverID { return d.ID }
func eventID(e tracking.Event) string              { return e.ID }
func leasedID(l tracking.Leased) string            { return l.Event.ID }
func fixTime(f tracking.Fix) time.Time             { return f.Time }

// pages reads a list page by page and expects want, and more on every page but the last.
func pages[T any](t testing.TB, what string, want []T, limit int, read func(tracking.Page) ([]T, bool)) {
	t.Helper()
	var got []T
	for n := 1; ; n++ {
		list, more := read(tracking.Page{Number: n, Limit: limit})
		got = append(got, list...)
		if wantMore := n*limit < len(want); more != wantMore {
			t.Errorf("%s, page %d of %d a page: more is %v, want %v", what, n, limit, more, wantMore)
		}
		if !more || n > len(want) {
			break
		}
	}
	same(t, fmt.Sprintf("%s, %d a page", what, limit), got, want)
	list, more := read(tracking.Page{Number: len(want)/limit + 2, Limit: limit})
	if list != nil || more {
		t.Errorf("%s, past the end: got %d rows (nil: %v), more %v; want nil", what, len(list), list == nil, more)
	}
}
