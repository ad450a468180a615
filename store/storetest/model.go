package storetest

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/seed-8aba7b13/tracking"
)

// long reports whether the random tiers are to play for long.
func long() bool { return os.Getenv("TRACKING_LONG") == "1" && !brief.Load() }

var brief atomic.Bool

// Brief is for a store whose every step is a round trip. It keeps the random tiers short in this process,
// also with TRACKING_LONG=1, and has them play n histories if no flag says how many. A TestMain calls it
// before the tests run, once the flags are parsed.
func Brief(n int) {
	brief.Store(true)
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		_ = checks.Value.Set(strconv.Itoa(n)) // a number is one
	}
}

// briefly is how many of n things will do for a Brief run.
func briefly(n int) int {
	if brief.Load() {
		return n / 3
	}
	return n
}

// play runs a random test once, or five times with TRACKING_LONG=1.
func play(t *testing.T, prop func(t *testing.T) func(*rapid.T)) {
	n := 1
	if long() {
		n = 5
	}
	for i := range n {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) { rapid.Check(t, prop(t)) })
	}
}

// Fewer lets the random tiers of a test play n histories each, unless -rapid.checks says how many or
// TRACKING_LONG=1 asks for all: for a store on which each takes its time.
func Fewer(t testing.TB, n int) {
	checks := flag.Lookup("rapid.checks").Value
	if before := checks.String(); !long() && before == flag.Lookup("rapid.checks").DefValue {
		if err := checks.Set(strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = checks.Set(before) })
	}
}

// repeat plays more steps than -rapid.steps says, as many of those drawn cannot be taken.
func repeat(t *rapid.T, times int, actions map[string]func(*rapid.T)) {
	for range times {
		t.Repeat(actions)
	}
}

// fewer lets only the first n of rapid's checks do their work: some of these take their time. Once
// one has failed it runs them all, as rapid then looks for the shortest history that fails.
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
	direct *Cut                  // the rows without cuts; nil for a store that is not cut off

	now    time.Time
	events int // that were made, for their ids
	leases int // for the names of owners

	floor map[appDriver]time.Time // fixes at or before this are not sent any more, as some around it are purged
	cut   time.Time               // fixes before this may be purged or not
}

func newWorld(t *rapid.T, s tracking.Store) *world {
	return &world{T: t, ctx: context.Background(), s: s, ref: newReference(), now: t0, floor: map[appDriver]time.Time{}}
}

func (w *world) n(limit int, what string) int { return rapid.IntRange(0, limit-1).Draw(w.T, what) }

// odds is true once in n times.
func (w *world) odds(n int, what string) bool { return w.n(n, what) == n-1 }

// modelAddresses share beginnings of words.
var modelAddresses = []string{"Marienplatz 1", "Mariahilfer Straße 10", "", "Plaza Mayor 101"}

// modelOutboxes are those that events go to.
var modelOutboxes = []string{"", "push"}

func (w *world) outbox() string { return modelOutboxes[w.n(len(modelOutboxes), "outbox")] }

func (w *world) app() tracking.AppID { return []tracking.AppID{here, there}[w.n(2, "app")] }

func (w *world) driverID() tracking.DriverID {
	return tracking.DriverID(fmt.Sprint("d", w.n(5, "driver")))
}

// person is one of two who have the same id.
func (w *world) person() string { return []string{"first", "second"}[w.n(2, "person")] }

func (w *world) time() time.Time {
	return w.now.Add(time.Duration(w.n(8, "time")-4) * time.Minute)
}

// secret is the hash of one of four secrets that a row has had, or none. No other row has them:
// nobody keeps a store from being given one secret for two rows, but then it may find either.
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

// actions are what the histories are made of, by name.
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
		"line":        func(t *rapid.T) { w.T = t; w.line() },
		"feeds":       func(t *rapid.T) { w.T = t; w.feeds() },
		"deliver":     func(t *rapid.T) { w.T = t; w.deliver() },
		"purge":       func(t *rapid.T) { w.T = t; w.purge() },
		"files":       func(t *rapid.T) { w.T = t; w.files() },
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
	if d := differs(want, got, givenNumbers); d != "" {
		w.Fatalf("%s (-want +got):\n%s", what, d)
	}
}

// task draws a task that is new, or one that changes a row.
func (w *world) task(app tracking.AppID, id tracking.TaskID) tracking.Task {
	t := newTask(id, w.time())
	t.Status = []tracking.TaskStatus{
		tracking.StatusCreated, tracking.StatusAssigned, tracking.StatusInProgress, tracking.StatusCompleted,
	}[w.n(4, "status")]
	t.DriverID, t.Person = w.driverID(), w.person()
	t.OrderID = []string{"", "#1", "#2"}[w.n(3, "order")]
	if !w.odds(3, "no notes") {
		t.Notes = fmt.Sprint("notes ", w.n(100, "notes"))
	}
	t.Waiting = w.odds(2, "waiting")
	if !w.odds(4, "pointless") {
		t.Drop.LngLat = &tracking.LngLat{Lng: 11 + float64(w.n(50, "lng"))*0.7, Lat: 48}
	}
	if w.odds(2, "keyed") {
		t.Key = fmt.Sprint("k", w.n(6, "key"))
	}
	if w.odds(3, "geocode") {
		t.GeocodeAt = w.time()
	}
	if w.odds(3, "due") {
		t.DueAt = w.time()
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
	t.Drop.Address = modelAddresses[w.n(len(modelAddresses), "address")]
	if w.odds(2, "contact") {
		t.Drop.Customer = &tracking.Contact{Name: "Ana Ünal", Mobile: fmt.Sprint("+49 89 10", w.n(30, "mobile"))}
	}
	if w.odds(2, "window") {
		t.Window.From = w.time()
	}
	if w.odds(2, "promise") {
		t.Promise = w.time()
	}
	if w.odds(4, "told") {
		t.LateFor = t.Promise
	}
	if w.odds(3, "later") {
		t.AssignAt = w.time()
	}
	if w.odds(2, "zone") {
		t.Properties = map[string]string{"zone": fmt.Sprint(w.n(3, "zone"))}
	}
	t.Requires = w.required()
	t.Link = w.link("task", app, string(id))
	for range w.n(3, "proofs") {
		t.Proofs = append(t.Proofs, tracking.Proof{ID: w.fileID(), Kind: tracking.ProofPhoto, At: w.now})
	}
	return t
}

func (w *world) fileID() string { return fmt.Sprint("f", w.n(6, "file")) }

// files puts, deletes and reads a file.
func (w *world) files() {
	app, id := w.app(), w.fileID()
	switch w.n(4, "what") {
	case 0, 1:
		f := tracking.File{
			TaskID: tracking.TaskID(fmt.Sprint("t", w.n(8, "task"))), Type: "image/png", At: w.time(),
			Data: noise(uint64(w.n(1000, "content")), w.n(10_000, "size")),
		}
		agree(w, "put "+id, 0, 0, w.s.Files().Put(w.ctx, app, id, f), w.ref.Files().Put(w.ctx, app, id, f))
	case 2:
		agree(w, "delete "+id, 0, 0, w.s.Files().Delete(w.ctx, app, id), w.ref.Files().Delete(w.ctx, app, id))
	}
	w.compareFile(app, id)
}

func (w *world) compareFile(app tracking.AppID, id string) {
	w.Helper()
	want, wantErr := readFile(w.ctx, w.ref, app, id)
	got, err := readFile(w.ctx, w.s, app, id)
	agree(w, "file "+id, got, want, err, wantErr)
}

// required draws what a driver must have, mostly nothing.
func (w *world) required() map[string]string {
	if !w.odds(3, "required") {
		return nil
	}
	m := map[string]string{"zone": fmt.Sprint(w.n(3, "zone"))}
	if w.odds(5, "of nobody") {
		m["crane"] = "yes"
	}
	return m
}

func (w *world) trip(app tracking.AppID, id tracking.TripID) tracking.Trip {
	t := newTrip(id, w.driverID(), tracking.TrackingID(fmt.Sprint("x", w.n(5, "tracking id"))), w.time())
	t.Person = w.person()
	t.StartedAt = w.time()
	t.TTL = w.time()
	if !w.odds(2, "active") {
		t.Status, t.EndedAt = tracking.TripStatus(2+w.n(2, "ended")),
			t.StartedAt.Add(time.Duration(w.n(5, "length"))*time.Minute)
	}
	if w.odds(3, "geocode") {
		t.GeocodeAt = w.time()
	}
	t.Link = w.link("trip", app, string(id))
	return t
}

func (w *world) driver(app tracking.AppID, id tracking.DriverID) tracking.Driver {
	d := newDriver(id, w.time())
	d.Person = w.person()
	d.Available, d.Silent = !w.odds(3, "off"), w.odds(4, "silent")
	if w.odds(2, "was off") {
		d.OffDutyAt = d.DutyAt.Add(-time.Duration(w.n(4, "off for")) * time.Minute)
	}
	d.Route = stops(w.n(3, "open tasks"))
	d.Properties = map[string]string{"zone": fmt.Sprint(w.n(3, "zone"))}
	if w.odds(3, "no properties") {
		d.Properties = nil
	}
	if w.odds(3, "limit") {
		d.MaxOpenTasks = new(w.n(5, "own limit") - 1)
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
	gone := w.deletions(b, &cs)
	distinct(8, "task", func(i int) {
		id := tracking.TaskID(fmt.Sprint("t", i))
		if gone[string(id)] {
			return
		}
		t := w.task(app, id)
		t.Version = w.version(b.tasks[t.ID].Version)
		cs.Tasks = append(cs.Tasks, t)
	})
	distinct(8, "trip", func(i int) {
		id := tracking.TripID(fmt.Sprint("r", i))
		if gone[string(id)] {
			return
		}
		t := w.trip(app, id)
		t.Version = w.version(b.trips[t.ID].Version)
		cs.Trips = append(cs.Trips, t)
	})
	distinct(5, "driver", func(i int) {
		id := tracking.DriverID(fmt.Sprint("d", i))
		if !deleted[id] {
			d := w.driver(app, id)
			if was, ok := b.drivers[id]; ok {
				d.Person = was.Person // it is made with the row, and stays
			}
			d.Version = w.version(b.drivers[id].Version)
			cs.Drivers = append(cs.Drivers, d)
		}
	})
	distinct(5, "invite", func(i int) {
		id := tracking.DriverID(fmt.Sprint("d", i))
		inv := tracking.Invite{
			DriverID: id, LinkHash: w.secret("invite", app, string(id)), CodeHash: w.code(), CreatedAt: w.time(),
			LinkExpiresAt: w.time(), CodeExpiresAt: w.time(),
		}
		for range w.n(3, "past codes") {
			if c := w.code(); !c.IsZero() && !slices.Contains(inv.PastCodes, c) {
				inv.PastCodes = append(inv.PastCodes, c)
			}
		}
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
		cs.Requests = append(cs.Requests, newRequest(tracking.DriverID(fmt.Sprint("d", i)),
			tracking.TrackingID(fmt.Sprint("x", w.n(5, "tracking id"))), w.time()))
	})
	id := tracking.RequestID{
		DriverID: w.driverID(), TrackingID: tracking.TrackingID(fmt.Sprint("x", w.n(5, "tracking id"))),
	}
	if w.odds(4, "of all drivers") {
		id.DriverID = ""
	}
	if !slices.ContainsFunc(cs.Requests, func(r tracking.Request) bool {
		return r.TrackingID == id.TrackingID && (id.DriverID == "" || r.DriverID == id.DriverID)
	}) {
		cs.CloseRequests = append(cs.CloseRequests, id)
	}
	if w.odds(3, "fixes") {
		cs.Fixes = append(cs.Fixes, w.batch(app))
	}
	for range w.n(4, "events") {
		w.events++
		n := w.n(3, "kind")
		kind := []tracking.SubjectKind{tracking.KindTask, tracking.KindTrip, tracking.KindDriver}[n]
		e := newEvent(fmt.Sprint("e", w.events), kind, fmt.Sprint("trd"[n:n+1], w.n(3, "subject")), w.time())
		for range w.n(3, "told") {
			e.Notices = append(e.Notices, tracking.Notice{
				DriverID: w.driverID(), Kind: tracking.NoticeUpdated, TaskID: "t1",
			})
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

// deletions draws tasks, trips and files that are to go, and returns the ids of the rows.
func (w *world) deletions(b *book, cs *tracking.Changeset) (gone map[string]bool) {
	gone = map[string]bool{}
	if w.odds(4, "delete a task") {
		id := tracking.TaskID(fmt.Sprint("t", w.n(3, "which task")))
		if t, ok := b.tasks[id]; ok || w.odds(15, "that is not there") {
			gone[string(id)] = true
			cs.DeleteTasks = append(cs.DeleteTasks, tracking.Task{ID: id, Version: w.version(t.Version)})
		}
	}
	for range w.n(2, "trips to delete") {
		id := tracking.TripID(fmt.Sprint("r", w.n(3, "which trip")))
		if t, ok := b.trips[id]; ok && !gone[string(id)] {
			gone[string(id)] = true
			cs.DeleteTrips = append(cs.DeleteTrips, tracking.Trip{ID: id, Version: w.version(t.Version)})
		}
	}
	if w.odds(4, "drop files") {
		cs.DropFiles = append(cs.DropFiles, w.fileID(), w.fileID())
	}
	return gone
}

// hasDrivers keeps what belongs to drivers whose row there is, or is about to be: anything else
// would have nearly every changeset refused.
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
	cs.Requests = slices.DeleteFunc(cs.Requests, func(r tracking.Request) bool { return missing(r.DriverID) })
	cs.Fixes = slices.DeleteFunc(cs.Fixes, func(f tracking.FixBatch) bool { return missing(f.DriverID) })
	for i := range cs.Fixes {
		if w.odds(2, "of whoever") {
			cs.Fixes[i].Person = ""
		}
	}
}

func (w *world) commit() {
	app := w.app()
	cs := w.changes(app)
	w.hasDrivers(app, &cs)
	possible := w.ref.conflicts(app, &cs)
	written, err := w.s.Commit(w.ctx, app, &cs)
	done := false
	if w.direct != nil && errors.Is(err, tracking.ErrUnavailable) {
		written, err, done = w.commitAgain(app, &cs, len(possible) == 0)
	}
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
	if _, err := w.ref.Commit(w.ctx, app, &cs); err != nil {
		w.Fatalf("the reference refused what it had allowed: %v", err)
	}
	w.adopt(app, &cs)
	if !done {
		w.written(app, &cs, written)
	}
}

// written compares what Commit says that it gave to the rows with the rows.
func (w *world) written(app tracking.AppID, cs *tracking.Changeset, got tracking.Written) {
	var want tracking.Written
	for _, t := range cs.Tasks {
		kept, err := w.s.Task(w.ctx, app, t.ID)
		w.noError(err)
		want.Tasks = append(want.Tasks, tracking.Given{Seq: kept.Seq, Version: kept.Version})
	}
	for _, t := range cs.Trips {
		kept, err := w.s.Trip(w.ctx, app, t.ID)
		w.noError(err)
		want.Trips = append(want.Trips, tracking.Given{Seq: kept.Seq, Version: kept.Version})
	}
	for _, d := range cs.Drivers {
		kept, err := w.s.Driver(w.ctx, app, d.ID)
		w.noError(err)
		want.Drivers = append(want.Drivers, tracking.Given{Seq: kept.Seq, Version: kept.Version})
	}
	if d := differs(want, got, cmpopts.EquateEmpty()); d != "" {
		w.Fatalf("Commit returns (-rows +returned):\n%s", d)
	}
}

func (w *world) noError(err error) {
	w.Helper()
	if err != nil {
		w.Fatalf("unexpected error: %v", err)
	}
}

// adopt gives the reference the versions with which the store has begun new rows. They must be
// greater than any that a row of the id has had.
func (w *world) adopt(app tracking.AppID, cs *tracking.Changeset) {
	b := w.ref.apps[app]
	begun := func(kind tracking.SubjectKind, id string, got, least int64, err error) int64 {
		if err != nil || got < least {
			w.Fatalf("Commit: the new %s %s has version %d, error %v; rows of that id had versions up to %d", kind, id,
				got, err, least-1)
		}
		b.versions[tracking.Subject{Kind: kind, ID: id}] = got
		return got
	}
	for _, t := range cs.Tasks {
		if kept := b.tasks[t.ID]; t.Version == 0 {
			got, err := w.s.Task(w.ctx, app, t.ID)
			kept.Version = begun(tracking.KindTask, string(t.ID), got.Version, kept.Version, err)
			b.tasks[t.ID] = kept
		}
	}
	for _, t := range cs.Trips {
		if kept := b.trips[t.ID]; t.Version == 0 {
			got, err := w.s.Trip(w.ctx, app, t.ID)
			kept.Version = begun(tracking.KindTrip, string(t.ID), got.Version, kept.Version, err)
			b.trips[t.ID] = kept
		}
	}
	for _, d := range cs.Drivers {
		if kept := b.drivers[d.ID]; d.Version == 0 {
			got, err := w.s.Driver(w.ctx, app, d.ID)
			kept.Version = begun(tracking.KindDriver, string(d.ID), got.Version, kept.Version, err)
			b.drivers[d.ID] = kept
		}
	}
	for _, i := range cs.Invites {
		if kept := b.invites[i.DriverID]; i.Version == 0 {
			got, err := w.s.Invite(w.ctx, app, i.DriverID)
			kept.Version = begun(tracking.KindInvite, string(i.DriverID), got.Version, kept.Version, err)
			b.invites[i.DriverID] = kept
		}
	}
	keys, err := w.s.Keys(w.ctx, app)
	for _, k := range cs.Keys {
		if kept := b.keys[k.ID]; k.Version == 0 {
			i := slices.IndexFunc(keys, func(o tracking.Key) bool { return o.ID == k.ID })
			kept.Version = begun(tracking.KindKey, k.ID, keys[max(i, 0)].Version, kept.Version, err)
			b.keys[k.ID] = kept
		}
	}
}

// batch draws fixes of somebody who mostly moves slowly, in any order, some of them twice.
func (w *world) batch(app tracking.AppID) tracking.FixBatch {
	b := tracking.FixBatch{DriverID: w.driverID(), SeenAt: w.time(), KeepOffDuty: w.odds(3, "keep off duty")}
	if w.odds(3, "skew") {
		b.Skew = tracking.Known(float64(w.n(400, "seconds ahead") - 200))
	}
	if w.odds(10, "of one person") {
		b.Person = w.person()
	}
	if w.odds(5, "unread") {
		b.Unread = 1 + w.n(3, "how much")
	}
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
	before := w.marks(app, b.DriverID)
	got, err := w.s.RecordFixes(w.ctx, app, b)
	if w.direct != nil && errors.Is(err, tracking.ErrUnavailable) {
		w.direct.Settle()
		if after := w.marks(app, b.DriverID); !reflect.DeepEqual(before, after) { // it is done
			agree(w, "where "+string(b.DriverID)+" is", after.Position, want.Driver.Position, nil, wantErr)
			return
		}
		got, err = w.direct.Direct.RecordFixes(w.ctx, app, b)
	}
	agree(w, "RecordFixes of "+string(b.DriverID), got, want, err, wantErr)
}
