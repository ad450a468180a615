package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-8aba7b13/tracking"
)

// long reports whether the random tiers are to play for long.
func long() bool { return os.Getenv("TRACKING_LONG") == "1" }

// play runs a random test once, or twenty times with TRACKING_LONG=1.
func play(t *testing.T, prop func(t *testing.T) func(*rapid.T)) {
	n := 1
	if long() {
		n = 20
	}
	for i := range n {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) { rapid.Check(t, prop(t)) })
	}
}

// repeat plays more steps than -rapid.steps says, as many of those drawn cannot be taken.
func repeat(t *rapid.T, times int, actions map[string]func(*rapid.T)) {
	for range times {
		t.Repeat(actions)
	}
}

// fewer lets only the first n of rapid's checks do their work: some of these take their time. Once one has failed
// it runs them all, as rapid then looks for the shortest history that fails.
func fewer(n int, prop func(*rapid.T)) func(*rapid.T) {
	failed := false
	return func(rt *rapid.T) {
		if n--; n < 0 && !failed {
			return
		}
		done := false
		defer func() { failed = failed || !done }()
		prop(rt)
		done = true
	}
}

// runModel plays random histories on a store and on the reference, which must answer alike.
func runModel(t *testing.T, open func(t testing.TB) tracking.Store) {
	play(t, func(t *testing.T) func(*rapid.T) {
		return func(rt *rapid.T) {
			s := open(t)
			defer s.Close()
			w := newWorld(rt, s)
			repeat(rt, 2, w.actions())
			w.compareAll()
		}
	})
}

type appDriver struct {
	app tracking.AppID
	id  tracking.DriverID
}

// world is a store and the reference after the same history.
type world struct {
	*rapid.T
	ctx    context.Context
	s      tracking.Store
	ref    *reference
	reopen func() tracking.Store // nil for a store that does not outlive its process

	now    time.Time
	events int // that were made, for their ids
	leases int // for the names of owners

	lost  map[appDriver]bool      // drivers who were deleted: what becomes of their notices in old events is a store's affair
	floor map[appDriver]time.Time // fixes at or before this are not sent any more, as some around it are purged
	cut   time.Time               // fixes before this may be purged or not
}

func newWorld(t *rapid.T, s tracking.Store) *world {
	return &world{T: t, ctx: context.Background(), s: s, ref: newReference(), now: t0, lost: map[appDriver]bool{}, floor: map[appDriver]time.Time{}}
}

func (w *world) n(limit int, what string) int { return rapid.IntRange(0, limit-1).Draw(w.T, what) }

// odds is true once in n times.
func (w *world) odds(n int, what string) bool { return w.n(n, what) == n-1 }

// modelOutboxes are those that events go to.
var modelOutboxes = []string{"", "push"}

func (w *world) outbox() string { return modelOutboxes[w.n(len(modelOutboxes), "outbox")] }

func (w *world) app() tracking.AppID { return []tracking.AppID{here, there}[w.n(2, "app")] }

func (w *world) driverID() tracking.DriverID {
	return tracking.DriverID(fmt.Sprint("d", w.n(5, "driver")))
}

func (w *world) time() time.Time {
	return w.now.Add(time.Duration(w.n(8, "time")-4) * time.Minute)
}

// secret is the hash of one of four secrets that a row has had, or none. No other row has them: nobody keeps a store from being
// given one secret for two rows, but then it may find either.
func (w *world) secret(kind string, app tracking.AppID, id string) tracking.Hash {
	n := w.n(5, "secret")
	if n == 0 {
		return tracking.Hash{}
	}
	return sha256.Sum256(fmt.Append(nil, kind, app, id, n))
}

func (w *world) link(kind string, app tracking.AppID, id string) tracking.Link {
	return tracking.Link{Generation: w.n(3, "generation"), Hash: w.secret(kind, app, id), MadeAt: w.now}
}

// code is a hash that others may have too.
func (w *world) code() tracking.Hash {
	n := w.n(20, "code")
	if n == 0 {
		return tracking.Hash{}
	}
	return hash(byte(n))
}

// version is the row's, or now and then another.
func (w *world) version(v int64) int64 {
	if w.odds(15, "wrong version") {
		return v + int64(w.n(3, "version")) - 1
	}
	return v
}

func (w *world) actions() map[string]func(*rapid.T) {
	acts := map[string]func(*rapid.T){
		"commit":      func(t *rapid.T) { w.T = t; w.commit() },
		"commit more": func(t *rapid.T) { w.T = t; w.commit() },
		"record":      func(t *rapid.T) { w.T = t; w.record() },
		"record more": func(t *rapid.T) { w.T = t; w.record() },
		"lists":       func(t *rapid.T) { w.T = t; w.lists() },
		"nearby":      func(t *rapid.T) { w.T = t; w.nearby() },
		"single rows": func(t *rapid.T) { w.T = t; w.rows() },
		"due":         func(t *rapid.T) { w.T = t; w.dues() },
		"feeds":       func(t *rapid.T) { w.T = t; w.feeds() },
		"deliver":     func(t *rapid.T) { w.T = t; w.deliver() },
		"purge":       func(t *rapid.T) { w.T = t; w.purge() },
		"time":        func(t *rapid.T) { w.T = t; w.now = w.now.Add(time.Duration(w.n(5, "minutes")) * time.Minute) },
		"all":         func(t *rapid.T) { w.T = t; w.compareAll() },
	}
	if w.reopen != nil {
		acts["reopen"] = func(t *rapid.T) {
			w.T = t
			if err := w.s.Close(); err != nil {
				t.Fatalf("Close: %v", err)
			}
			w.s = w.reopen()
			w.now = w.now.Add(2 * time.Minute) // whether a lease outlives the process is open
		}
	}
	return acts
}

// agree compares two answers.
func agree[T any](w *world, what string, got, want T, err, wantErr error) {
	w.Helper()
	for _, kind := range []error{tracking.ErrNotFound, tracking.ErrConflict} {
		if errors.Is(err, kind) != errors.Is(wantErr, kind) {
			w.Fatalf("%s: got error %v, want %v", what, err, wantErr)
		}
	}
	if (err == nil) != (wantErr == nil) {
		w.Fatalf("%s: got error %v, want %v", what, err, wantErr)
	}
	if err != nil {
		return
	}
	if d := cmp.Diff(want, got, givenNumbers); d != "" {
		w.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

func (w *world) task(app tracking.AppID, id tracking.TaskID) tracking.Task {
	t := newTask(id, w.time())
	t.Status = []tracking.TaskStatus{tracking.StatusCreated, tracking.StatusAssigned, tracking.StatusInProgress, tracking.StatusCompleted}[w.n(4, "status")]
	t.DriverID = w.driverID()
	t.OrderID = []string{"", "#1", "#2"}[w.n(3, "order")]
	t.Notes = fmt.Sprint("notes ", w.n(100, "notes"))
	t.Waiting = w.odds(2, "waiting")
	if w.odds(2, "keyed") {
		t.Key = fmt.Sprint("k", w.n(6, "key"))
	}
	if w.odds(3, "geocode") {
		t.GeocodeAt = w.time()
	}
	if t.Status == tracking.StatusCompleted {
		t.CompletedAt = w.time()
	}
	for range w.n(3, "excluded") {
		if d := w.driverID(); !slices.Contains(t.Excluded, d) {
			t.Excluded = append(t.Excluded, d)
		}
	}
	slices.Sort(t.Excluded)
	t.Link = w.link("task", app, string(id))
	return t
}

func (w *world) trip(app tracking.AppID, id tracking.TripID) tracking.Trip {
	t := newTrip(id, w.driverID(), tracking.TrackingID(fmt.Sprint("x", w.n(5, "tracking id"))), w.time())
	t.StartedAt = w.time()
	t.TTL = w.time()
	if !w.odds(2, "active") {
		t.Status, t.EndedAt = tracking.TripStatus(2+w.n(2, "ended")), t.StartedAt.Add(time.Duration(w.n(5, "length"))*time.Minute)
	}
	if w.odds(3, "geocode") {
		t.GeocodeAt = w.time()
	}
	t.Link = w.link("trip", app, string(id))
	return t
}

func (w *world) driver(app tracking.AppID, id tracking.DriverID) tracking.Driver {
	d := newDriver(id, w.time())
	d.Available, d.Silent = !w.odds(3, "off"), w.odds(4, "silent")
	if w.odds(2, "was off") {
		d.OffDutyAt = d.DutyAt.Add(-time.Duration(w.n(4, "off for")) * time.Minute)
	}
	d.OpenTasks = w.n(3, "open tasks")
	d.Properties = map[string]string{"zone": fmt.Sprint(w.n(3, "zone"))}
	if w.odds(3, "no properties") {
		d.Properties = nil
	}
	d.AppToken, d.IngestToken = w.secret("app token", app, string(id)), w.secret("ingest token", app, string(id))
	return d
}

// changes draws a changeset that would mostly be taken.
func (w *world) changes(app tracking.AppID) tracking.Changeset {
	b := w.ref.apps[app]
	if b == nil {
		b = newBook()
	}
	var cs tracking.Changeset
	distinct := func(n int, what string, f func(i int)) { // f for some of 0 … n−1, each once
		seen := map[int]bool{}
		for range w.n(3, what+"s") {
			if i := w.n(n, what); !seen[i] {
				seen[i] = true
				f(i)
			}
		}
	}
	deleted := map[tracking.DriverID]bool{}
	if w.odds(12, "delete") {
		if d, ok := b.drivers[w.driverID()]; ok {
			deleted[d.ID] = true
			cs.DeleteDrivers = append(cs.DeleteDrivers, tracking.Driver{ID: d.ID, Version: w.version(d.Version)})
		}
	}
	distinct(8, "task", func(i int) {
		t := w.task(app, tracking.TaskID(fmt.Sprint("t", i)))
		t.Version = w.version(b.tasks[t.ID].Version)
		cs.Tasks = append(cs.Tasks, t)
	})
	distinct(8, "trip", func(i int) {
		t := w.trip(app, tracking.TripID(fmt.Sprint("r", i)))
		t.Version = w.version(b.trips[t.ID].Version)
		cs.Trips = append(cs.Trips, t)
	})
	distinct(5, "driver", func(i int) {
		id := tracking.DriverID(fmt.Sprint("d", i))
		if !deleted[id] && !w.lost[appDriver{app, id}] {
			d := w.driver(app, id)
			d.Version = w.version(b.drivers[id].Version)
			cs.Drivers = append(cs.Drivers, d)
		}
	})
	distinct(5, "invite", func(i int) {
		id := tracking.DriverID(fmt.Sprint("d", i))
		inv := tracking.Invite{DriverID: id, LinkHash: w.secret("invite", app, string(id)), CodeHash: w.code(), CreatedAt: w.time(), LinkExpiresAt: w.time(), CodeExpiresAt: w.time()}
		if !w.odds(2, "anew") {
			inv.Version = w.version(b.invites[id].Version)
		}
		cs.Invites = append(cs.Invites, inv)
	})
	distinct(4, "key", func(i int) {
		k := newKey(fmt.Sprint("k", i), byte(w.n(10, "key hash")), w.time())
		k.Version = w.version(b.keys[k.ID].Version)
		cs.Keys = append(cs.Keys, k)
	})
	distinct(5, "request", func(i int) {
		cs.Push = append(cs.Push, newRequest(tracking.DriverID(fmt.Sprint("d", i)), tracking.TrackingID(fmt.Sprint("x", w.n(5, "tracking id"))), w.time()))
	})
	if id := (tracking.RequestID{DriverID: w.driverID(), TrackingID: tracking.TrackingID(fmt.Sprint("x", w.n(5, "tracking id")))}); !slices.ContainsFunc(cs.Push, func(r tracking.Request) bool { return r.RequestID == id }) {
		cs.CloseRequests = append(cs.CloseRequests, id)
	}
	if w.odds(3, "fixes") {
		cs.Fixes = append(cs.Fixes, w.batch(app))
	}
	for range w.n(4, "events") {
		w.events++
		kind := []tracking.SubjectKind{tracking.KindTask, tracking.KindTrip, tracking.KindDriver}[w.n(3, "kind")]
		e := newEvent(fmt.Sprint("e", w.events), kind, fmt.Sprint(w.n(3, "subject")), w.time())
		for range w.n(3, "told") {
			e.Notices = append(e.Notices, tracking.Notice{DriverID: w.driverID(), Kind: tracking.NoticeUpdated, TaskID: "t1"})
		}
		cs.Events = append(cs.Events, e)
	}
	for _, outbox := range modelOutboxes {
		if w.odds(2, "deliver") {
			cs.Deliver = append(cs.Deliver, outbox)
		}
	}
	return cs
}

// hasDrivers keeps what belongs to drivers whose row there is, or is about to be: anything else would have nearly every changeset refused.
func (w *world) hasDrivers(app tracking.AppID, cs *tracking.Changeset) {
	if w.odds(10, "let it fail") {
		return
	}
	missing := func(id tracking.DriverID) bool {
		gone := slices.ContainsFunc(cs.DeleteDrivers, func(d tracking.Driver) bool { return d.ID == id })
		added := slices.ContainsFunc(cs.Drivers, func(d tracking.Driver) bool { return d.ID == id })
		there := w.ref.apps[app] != nil && w.ref.apps[app].drivers[id].Version > 0
		return gone || (!added && !there)
	}
	cs.Invites = slices.DeleteFunc(cs.Invites, func(i tracking.Invite) bool { return missing(i.DriverID) })
	cs.Push = slices.DeleteFunc(cs.Push, func(r tracking.Request) bool { return missing(r.DriverID) })
	cs.Fixes = slices.DeleteFunc(cs.Fixes, func(f tracking.FixBatch) bool { return missing(f.DriverID) })
}

func (w *world) commit() {
	app := w.app()
	cs := w.changes(app)
	w.hasDrivers(app, &cs)
	possible := w.ref.conflicts(app, &cs)
	err := w.s.Commit(w.ctx, app, &cs)
	var got *tracking.ConflictError
	switch {
	case len(possible) == 0 && err != nil:
		w.Fatalf("Commit: %v", err)
	case len(possible) > 0 && !errors.As(err, &got):
		w.Fatalf("Commit: got error %v, want a conflict such as %+v", err, *possible[0])
	case len(possible) > 0:
		if !slices.ContainsFunc(possible, func(c *tracking.ConflictError) bool {
			return c.Kind == got.Kind && c.Unique == got.Unique && (c.Unique != "" || c.ID == got.ID)
		}) {
			w.Fatalf("Commit: got conflict %+v, want one such as %+v", *got, *possible[0])
		}
		return
	}
	if err := w.ref.Commit(w.ctx, app, &cs); err != nil {
		w.Fatalf("the reference refused what it had allowed: %v", err)
	}
	for _, d := range cs.DeleteDrivers {
		w.lost[appDriver{app, d.ID}] = true
	}
}

// batch draws fixes of somebody who mostly moves slowly, in any order, some of them twice.
func (w *world) batch(app tracking.AppID) tracking.FixBatch {
	b := tracking.FixBatch{DriverID: w.driverID(), SeenAt: w.time(), KeepOffDuty: w.odds(3, "keep off duty")}
	for range w.n(7, "fixes") {
		sec := w.n(60, "second") - 30
		f := newFix(w.now.Add(time.Duration(sec)*time.Second), 11+float64(sec)*0.0001, 48)
		if w.odds(4, "far") {
			f.LngLat.Lng = float64(20 + 20*w.n(3, "where"))
		}
		f.Trusted = w.odds(15, "trusted")
		if f.Time.After(w.floor[appDriver{app, b.DriverID}]) {
			b.Fixes = append(b.Fixes, f)
		}
	}
	return b
}

func (w *world) record() {
	app := w.app()
	b := w.batch(app)
	want, wantErr := w.ref.RecordFixes(w.ctx, app, b)
	got, err := w.s.RecordFixes(w.ctx, app, b)
	agree(w, "RecordFixes of "+string(b.DriverID), got, want, err, wantErr)
}
