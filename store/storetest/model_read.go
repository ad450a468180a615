package storetest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
)

func (w *world) page() tracking.Page {
	return tracking.Page{Number: w.n(4, "page"), Limit: 1 + w.n(6, "limit")}
}

// lists compares a page of each list, by a filter that is drawn.
func (w *world) lists() {
	app := w.app()
	tf := tracking.TaskFilter{Page: w.page()}
	if w.odds(2, "by driver") {
		tf.DriverID = w.driverID()
		if w.odds(3, "of a person") {
			tf.Person = w.person()
		}
	}
	if w.odds(2, "by status") {
		tf.Status = []tracking.TaskStatus{tracking.StatusAssigned, tracking.StatusCompleted}[:1+w.n(2, "statuses")]
	}
	if w.odds(3, "by order") {
		tf.OrderID = "#1"
	}
	if w.odds(3, "since") {
		tf.CompletedSince = w.time()
	}
	w.narrow(&tf)
	stf := tf
	w.behind(app, &tf, &stf)
	wantTasks, wantMore, wantErr := w.ref.Tasks(w.ctx, app, tf)
	tasks, more, err := w.s.Tasks(w.ctx, app, stf)
	agree(w, fmt.Sprintf("Tasks by %+v", tf), tasks, wantTasks, err, wantErr)
	agree(w, fmt.Sprintf("more of Tasks by %+v", tf), more, wantMore, nil, nil)
	q := tracking.CountQuery{Now: w.time(), CompletedSince: w.time()}
	wantCounts, wantErr := w.ref.TaskCounts(w.ctx, app, q)
	counts, err := w.s.TaskCounts(w.ctx, app, q)
	agree(w, fmt.Sprintf("TaskCounts by %+v", q), counts, wantCounts, err, wantErr)

	now := w.time()
	wantStats, wantErr := w.ref.Stats(w.ctx, now)
	stats, err := w.s.Stats(w.ctx, now)
	agree(w, fmt.Sprintf("Stats at %v", now), stats, wantStats, err, wantErr)

	rf := tracking.TripFilter{Page: w.page(), Status: tracking.TripStatus(w.n(4, "trip status"))}
	if w.odds(2, "by driver") {
		rf.DriverID = w.driverID()
		if w.odds(3, "of a person") {
			rf.Person = w.person()
		}
	}
	if w.odds(3, "by tracking id") {
		rf.TrackingID = tracking.TrackingID(fmt.Sprint("x", w.n(5, "tracking id")))
	}
	wantTrips, wantMore, wantErr := w.ref.Trips(w.ctx, app, rf)
	trips, more, err := w.s.Trips(w.ctx, app, rf)
	agree(w, fmt.Sprintf("Trips by %+v", rf), trips, wantTrips, err, wantErr)
	agree(w, fmt.Sprintf("more of Trips by %+v", rf), more, wantMore, nil, nil)

	wantKeys, wantErr := w.ref.Keys(w.ctx, app)
	keys, err := w.s.Keys(w.ctx, app)
	agree(w, "Keys", keys, wantKeys, err, wantErr)

	d := w.driverID()
	wantRequests, wantErr := w.ref.Requests(w.ctx, app, d)
	requests, err := w.s.Requests(w.ctx, app, d)
	agree(w, "Requests", requests, wantRequests, err, wantErr)
}

// narrow adds to a filter what a dispatcher looks for.
func (w *world) narrow(f *tracking.TaskFilter) {
	if w.odds(3, "search") {
		f.Query = []string{"mar", "marienplatz 1", "10", "101", "strasse", "unal ma", "plaza"}[w.n(7, "query")]
	}
	if w.odds(4, "by zone") {
		f.Properties = map[string]string{"zone": fmt.Sprint(w.n(3, "zone"))}
	}
	if w.odds(4, "late") {
		f.Late, f.Now = true, w.time()
	}
	f.Waiting = w.odds(4, "waiting")
	for _, at := range []*time.Time{&f.CreatedFrom, &f.CreatedTo, &f.WindowFrom, &f.WindowTo} {
		if w.odds(6, "between") {
			*at = w.time()
		}
	}
	if w.odds(3, "by window") {
		f.Sort = tracking.SortWindow
	}
	if w.odds(3, "mark") { // where no task is: which number a task has is the store's affair
		mark := tracking.Task{
			Window: tracking.Window{To: w.time()}, CreatedAt: w.time(), Seq: []int64{0, math.MaxInt64}[w.n(2, "seq")],
		}.Mark(f.Sort)
		f.After = &mark
	}
}

// behind asks the reference and the store for what comes after the same task.
func (w *world) behind(app tracking.AppID, ref, s *tracking.TaskFilter) {
	if !w.odds(3, "behind a task") {
		return
	}
	all, _, err := w.ref.Tasks(w.ctx, app, tracking.TaskFilter{Page: tracking.Page{Number: 1, Limit: 100}})
	if err != nil || len(all) == 0 {
		return
	}
	t := all[w.n(len(all), "which task")]
	same, err := w.s.Task(w.ctx, app, t.ID)
	agree(w, fmt.Sprintf("the task %s", t.ID), same.ID, t.ID, err, nil)
	mark, own := t.Mark(ref.Sort), same.Mark(ref.Sort)
	ref.After, s.After = &mark, &own
}

// nearby compares who is near a place, and who is on offer there.
func (w *world) nearby() {
	app := w.app()
	at := tracking.LngLat{Lng: 11 + float64(w.n(50, "lng"))*0.7, Lat: 48}
	f := tracking.DriverFilter{Page: w.page()}
	if w.odds(2, "near") {
		f.Near = &at
	}
	if w.odds(2, "by availability") {
		available := w.odds(2, "available")
		f.Available = &available
	}
	if w.odds(3, "by property") {
		f.Properties = map[string]string{"zone": fmt.Sprint(w.n(3, "zone"))}
	}
	want, wantMore, wantErr := w.ref.Drivers(w.ctx, app, f)
	got, more, err := w.s.Drivers(w.ctx, app, f)
	agree(w, fmt.Sprintf("Drivers by %+v", f), got, want, err, wantErr)
	agree(w, fmt.Sprintf("more of Drivers by %+v", f), more, wantMore, nil, nil)

	o := tracking.Offer{
		At: at, MaxOpen: w.n(4, "max open") - 1, Full: w.odds(5, "full"), Requires: w.required(),
		Limit: 1 + w.n(6, "limit"),
	}
	if w.odds(2, "seen since") {
		o.SeenSince = w.time()
	}
	if w.odds(3, "within") {
		o.Within = float64(1 + w.n(2_000_000, "metres"))
	}
	for range w.n(3, "excluded") {
		o.Exclude = append(o.Exclude, w.driverID())
	}
	want, wantErr = w.ref.Offers(w.ctx, app, o)
	got, err = w.s.Offers(w.ctx, app, o)
	agree(w, fmt.Sprintf("Offers by %+v", o), got, want, err, wantErr)

	d := w.driverID()
	r := tracking.FixRange{From: w.time(), To: w.time(), Newest: w.odds(2, "newest"), Limit: w.n(4, "limit")}
	if w.odds(3, "of a person") {
		r.Person = w.person()
	}
	if r.From.Before(w.cut) {
		r.From = w.cut
	}
	agree(w, fmt.Sprintf("Fixes of %s in %+v", d, r), w.path(w.s, app, d, r), w.path(w.ref, app, d, r), nil, nil)
	r.Limit++
	wantKept, wantErr := w.ref.KeptFixes(w.ctx, app, d, r)
	gotKept, err := w.s.KeptFixes(w.ctx, app, d, r)
	agree(w, fmt.Sprintf("KeptFixes of %s in %+v", d, r), gotKept, wantKept, err, wantErr)
}

func (w *world) path(s tracking.Store, app tracking.AppID, d tracking.DriverID, r tracking.FixRange) []tracking.Fix {
	var list []tracking.Fix
	for f, err := range s.Fixes(w.ctx, app, d, r) {
		if err != nil {
			w.Fatalf("Fixes: %v", err)
		}
		list = append(list, f)
	}
	return list
}

// found is a row of any application.
type found[T any] struct {
	App tracking.AppID
	Row T
}

// rows compares single rows, by their ids and by their secrets.
func (w *world) rows() {
	app, d := w.app(), w.driverID()
	i := w.n(8, "row")
	task, err := w.s.Task(w.ctx, app, tracking.TaskID(fmt.Sprint("t", i)))
	wantTask, wantErr := w.ref.Task(w.ctx, app, tracking.TaskID(fmt.Sprint("t", i)))
	agree(w, "Task", task, wantTask, err, wantErr)
	key := fmt.Sprint("k", i)
	task, err = w.s.TaskByKey(w.ctx, app, key)
	wantTask, wantErr = w.ref.TaskByKey(w.ctx, app, key)
	agree(w, "TaskByKey", task, wantTask, err, wantErr)
	trip, err := w.s.Trip(w.ctx, app, tracking.TripID(fmt.Sprint("r", i)))
	wantTrip, wantErr := w.ref.Trip(w.ctx, app, tracking.TripID(fmt.Sprint("r", i)))
	agree(w, "Trip", trip, wantTrip, err, wantErr)
	x := tracking.TrackingID(fmt.Sprint("x", i%5))
	trip, err = w.s.ActiveTrip(w.ctx, app, x)
	wantTrip, wantErr = w.ref.ActiveTrip(w.ctx, app, x)
	agree(w, "ActiveTrip", trip, wantTrip, err, wantErr)
	driver, err := w.s.Driver(w.ctx, app, d)
	wantDriver, wantErr := w.ref.Driver(w.ctx, app, d)
	agree(w, "Driver", driver, wantDriver, err, wantErr)
	invite, err := w.s.Invite(w.ctx, app, d)
	wantInvite, wantErr := w.ref.Invite(w.ctx, app, d)
	agree(w, "Invite", invite, wantInvite, err, wantErr)
	request, err := w.s.Request(w.ctx, app, tracking.RequestID{DriverID: d, TrackingID: x})
	wantRequest, wantErr := w.ref.Request(w.ctx, app, tracking.RequestID{DriverID: d, TrackingID: x})
	agree(w, "Request", request, wantRequest, err, wantErr)

	k := hash(byte(w.n(10, "key hash")))
	a, keyRow, err := w.s.KeyByHash(w.ctx, k)
	wantApp, wantKey, wantErr := w.ref.KeyByHash(w.ctx, k)
	agree(w, "KeyByHash", found[tracking.Key]{a, keyRow}, found[tracking.Key]{wantApp, wantKey}, err, wantErr)
	for _, h := range []tracking.Hash{w.code(), w.secret("invite", app, string(d))} {
		a, invite, err = w.s.InviteByHash(w.ctx, h)
		wantApp, wantInvite, wantErr = w.ref.InviteByHash(w.ctx, h)
		if err == nil && wantErr == nil && sameClaim(h, invite, wantInvite) {
			continue // either will do
		}
		agree(w, "InviteByHash", found[tracking.Invite]{a, invite}, found[tracking.Invite]{wantApp, wantInvite}, err,
			wantErr)
	}
	for i, name := range []string{"app token", "ingest token"} {
		kind, h := tracking.TokenKind(i+1), w.secret(name, app, string(d))
		a, driver, err = w.s.DriverByToken(w.ctx, kind, h)
		wantApp, wantDriver, wantErr = w.ref.DriverByToken(w.ctx, kind, h)
		agree(w, "DriverByToken", found[tracking.Driver]{a, driver}, found[tracking.Driver]{wantApp, wantDriver}, err,
			wantErr)
	}
	h := w.secret("task", app, fmt.Sprint("t", i))
	a, task, err = w.s.TaskByLink(w.ctx, h)
	wantApp, wantTask, wantErr = w.ref.TaskByLink(w.ctx, h)
	agree(w, "TaskByLink", found[tracking.Task]{a, task}, found[tracking.Task]{wantApp, wantTask}, err, wantErr)
	h = w.secret("trip", app, fmt.Sprint("r", i))
	a, trip, err = w.s.TripByLink(w.ctx, h)
	wantApp, wantTrip, wantErr = w.ref.TripByLink(w.ctx, h)
	agree(w, "TripByLink", found[tracking.Trip]{a, trip}, found[tracking.Trip]{wantApp, wantTrip}, err, wantErr)
}

// sameClaim reports whether two invites have a code equally long, or both have had it.
func sameClaim(code tracking.Hash, a, b tracking.Invite) bool {
	has := func(i tracking.Invite) bool { return i.CodeHash == code }
	had := func(i tracking.Invite) bool { return !has(i) && slices.Contains(i.PastCodes, code) }
	return has(a) && has(b) && a.CodeExpiresAt.Equal(b.CodeExpiresAt) || had(a) && had(b)
}

// dues compares what has come due.
func (w *world) dues() {
	q := tracking.DueQuery{Kind: tracking.DueKind(1 + w.n(6, "due")), Before: w.time(), Limit: 1000}
	if w.odds(2, "of one application") {
		q.App = w.app()
		if q.Kind == tracking.DueTrips && w.odds(2, "of one driver") {
			q.Driver = w.driverID()
		}
	}
	if beyond := w.time(); w.odds(4, "what is too far ahead, too") && beyond.After(q.Before) {
		q.Beyond = beyond
	}
	want, wantErr := w.ref.Due(w.ctx, q)
	got, err := w.s.Due(w.ctx, q)
	if q.Kind == tracking.DueSilence && len(got) > len(want) { // others may follow
		got = got[:len(want)]
	}
	inOrder := func(list []tracking.Due) []tracking.Due { // which of two of the same time comes first is open
		slices.SortFunc(list, func(a, b tracking.Due) int {
			return slices.Compare([]string{string(a.App), string(a.Subject.Kind), a.Subject.ID}, []string{
				string(b.App), string(b.Subject.Kind), b.Subject.ID,
			})
		})
		return list
	}
	agree(w, fmt.Sprintf("Due by %+v", q), inOrder(got), inOrder(want), err, wantErr)

	wantApps, wantErr := w.ref.WaitingApps(w.ctx)
	gotApps, err := w.s.WaitingApps(w.ctx)
	agree(w, "WaitingApps", gotApps, wantApps, err, wantErr)
}

// line asks for the tasks that wait, and those of them that somebody could get.
func (w *world) line() {
	app := w.app()
	f := tracking.WaitingFilter{Limit: 1 + w.n(5, "limit")}
	if w.odds(2, "near") {
		f.Near = &tracking.LngLat{Lng: 11 + float64(w.n(50, "lng"))*0.7, Lat: 48}
		f.Within = float64(w.n(2_000_000, "metres"))
	}
	if w.odds(2, "for a driver") {
		f.Driver = w.driverID()
		if b := w.ref.apps[app]; b != nil {
			f.Properties = b.drivers[f.Driver].Properties
		}
	}
	want, wantErr := w.ref.Waiting(w.ctx, app, f)
	got, err := w.s.Waiting(w.ctx, app, f)
	agree(w, fmt.Sprintf("Waiting by %+v", f), got, want, err, wantErr)

	// Mostly the same is asked, as a Service does: then only what has changed since is looked at.
	q := tracking.MatchQuery{MaxOpen: 2, SeenSince: w.now.Add(-2 * time.Minute), Within: 700_000, Limit: 3}
	if w.odds(6, "another query") {
		q.MaxOpen, q.SeenSince, q.Within, q.Limit = w.n(4, "max open")-1, w.time(), float64(w.n(2_000_000, "metres")),
			1+w.n(3, "limit")
	}
	limit := q.Limit
	q.Limit = 1000
	all, wantErr := w.ref.Matches(w.ctx, app, q)
	q.Limit = limit
	got, err = w.s.Matches(w.ctx, app, q)
	if len(got) > limit || (len(got) == 0) != (len(all) == 0) {
		w.Fatalf("Matches by %+v: %d, of %d that there are", q, len(got), len(all))
	}
	all = slices.DeleteFunc(all, func(t tracking.Task) bool {
		return !slices.ContainsFunc(got, func(g tracking.Task) bool { return g.ID == t.ID })
	})
	slices.SortFunc(got, func(a, b tracking.Task) int { return byAge(a.CreatedAt, b.CreatedAt, a.Seq, b.Seq) })
	if len(all) == 0 {
		all = nil
	}
	agree(w, fmt.Sprintf("Matches by %+v", q), got, all, err, wantErr)
}

// quiet leaves out the notices of an event: those of deleted drivers and purged ones may be gone or
// not.
var quiet = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Notices" }, cmp.Ignore())

// feeds compares events and notices from places that are drawn.
func (w *world) feeds() {
	app, d := w.app(), w.driverID()
	f := tracking.EventFilter{Limit: 1 + w.n(5, "limit"), Dead: w.odds(3, "dead"), Outbox: w.outbox()}
	if w.odds(2, "of a subject") {
		f.Subject = tracking.Subject{Kind: tracking.KindTask, ID: fmt.Sprint("t", w.n(3, "subject"))}
	}
	if w.events > 0 && w.odds(2, "after") {
		f.After = fmt.Sprint("e", 1+w.n(w.events, "event"))
	}
	want, wantMore, wantErr := w.ref.Events(w.ctx, app, f)
	got, more, err := w.s.Events(w.ctx, app, f)
	if d := differs(want, got, givenNumbers, quiet); d != "" || (err == nil && more != wantMore) {
		w.Fatalf("Events by %+v: more is %v, want %v (-want +got):\n%s", f, more, wantMore, d)
	}
	agree(w, fmt.Sprintf("error of Events by %+v", f), true, true, err, wantErr)

	all, lost, err := w.s.Notices(w.ctx, app, d, 0, math.MaxInt32)
	wantAll, wantLost, wantErr := w.ref.Notices(w.ctx, app, d, 0, math.MaxInt32)
	agree(w, "Notices", all, wantAll, err, wantErr)
	agree(w, "lost of Notices", lost, wantLost, nil, nil)
	if len(all) > 0 {
		i := w.n(len(all), "notice")
		limit := 1 + w.n(3, "limit")
		part, lost, err := w.s.Notices(w.ctx, app, d, all[i].ID, limit)
		wantPart, wantLost, wantErr := w.ref.Notices(w.ctx, app, d, wantAll[i].ID, limit)
		agree(w, "Notices after one", part, wantPart, err, wantErr)
		agree(w, "lost of Notices after one", lost, wantLost, nil, nil)
	}
}

// deliver leases what there is, compares, and says at random what became of it.
func (w *world) deliver() {
	w.leases++
	l := tracking.Lease{
		Outbox: w.outbox(), Owner: fmt.Sprint("w", w.leases), Now: w.now, For: time.Minute, Limit: 1000,
	}
	want, wantErr := w.ref.LeaseEvents(w.ctx, l)
	got, err := w.s.LeaseEvents(w.ctx, l)
	// In which order the events of different subjects come is open; the subjects come by age.
	queues := func(list []tracking.Leased) (subjects []owned, m map[owned][]tracking.Leased) {
		m = map[owned][]tracking.Leased{}
		for _, e := range list {
			key := owned{e.App, e.Event.Subject}
			if m[key] == nil {
				subjects = append(subjects, key)
			}
			m[key] = append(m[key], e)
		}
		return subjects, m
	}
	subjects, events := queues(got)
	wantSubjects, wantEvents := queues(want)
	if d := differs(wantEvents, events, givenNumbers, quiet, cmp.AllowUnexported(owned{})); d != "" {
		w.Fatalf("LeaseEvents (-want +got):\n%s", d)
	}
	agree(w, "error of LeaseEvents", true, true, err, wantErr)
	if !slices.Equal(subjects, wantSubjects) {
		w.Fatalf("LeaseEvents: the subjects come as %v, want them by age: %v", subjects, wantSubjects)
	}
	var done []tracking.Delivery
	for _, s := range subjects {
		n := w.n(len(events[s])+1, "tried")
		for i, e := range events[s][:n] {
			d := tracking.Delivery{
				Outbox: l.Outbox, App: e.App, EventID: e.Event.ID, Owner: l.Owner, State: tracking.DeliveryDone,
			}
			if i == n-1 {
				d.State = []tracking.DeliveryState{
					tracking.DeliveryDone, tracking.DeliveryRetry, tracking.DeliveryDead, tracking.DeliveryReleased,
				}[w.n(4, "state")]
				d.Now, d.RetryIn = w.now, time.Duration(w.n(8, "retry"))*time.Minute
			}
			done = append(done, d)
		}
	}
	agree(w, "FinishEvents", true, true, w.s.FinishEvents(w.ctx, done), w.ref.FinishEvents(w.ctx, done))
}

func (w *world) purge() {
	b := tracking.Before{Limit: 1 << 20}
	if w.odds(2, "fixes") {
		b.Fixes = w.now.Add(-time.Duration(w.n(20, "minutes")) * time.Minute)
		w.cut = later(w.cut, b.Fixes)
		// a late fix before the ones that are left would be judged without those that are gone
		for app, book := range w.ref.apps {
			for d, log := range book.fixes {
				if n := len(log.list); n > log.purged && log.list[log.purged].Time.Before(b.Fixes) {
					w.floor[appDriver{app, d}] = log.list[n-1].Time
				}
			}
		}
	}
	if w.odds(2, "events") {
		b.Events = w.now.Add(-time.Duration(w.n(20, "minutes")) * time.Minute)
	}
	if w.odds(2, "files") {
		b.Files = w.now.Add(-time.Duration(w.n(20, "minutes")-3) * time.Minute)
	}
	want, wantErr := w.ref.Purge(w.ctx, b)
	got, err := w.s.Purge(w.ctx, b)
	// A store may keep older fixes that others are judged by, and purge them later; and it purges
	// what deleted drivers have left.
	got.Fixes, got.Notices = want.Fixes, want.Notices
	agree(w, fmt.Sprintf("Purge of %+v", b), got, want, err, wantErr)
}

// compareAll compares all rows of both applications.
func (w *world) compareAll() {
	for _, app := range []tracking.AppID{here, there} {
		wantTasks, _, wantErr := w.ref.Tasks(w.ctx, app, tracking.TaskFilter{Page: tracking.Page{Limit: 1000}})
		tasks, _, err := w.s.Tasks(w.ctx, app, tracking.TaskFilter{Page: tracking.Page{Limit: 1000}})
		agree(w, "all tasks", tasks, wantTasks, err, wantErr)
		wantTrips, _, wantErr := w.ref.Trips(w.ctx, app, tracking.TripFilter{Page: tracking.Page{Limit: 1000}})
		trips, _, err := w.s.Trips(w.ctx, app, tracking.TripFilter{Page: tracking.Page{Limit: 1000}})
		agree(w, "all trips", trips, wantTrips, err, wantErr)
		wantDrivers, _, wantErr := w.ref.Drivers(w.ctx, app, tracking.DriverFilter{Page: tracking.Page{Limit: 1000}})
		drivers, _, err := w.s.Drivers(w.ctx, app, tracking.DriverFilter{Page: tracking.Page{Limit: 1000}})
		agree(w, "all drivers", drivers, wantDrivers, err, wantErr)
		wantEvents, _, _ := w.ref.Events(w.ctx, app, tracking.EventFilter{Limit: math.MaxInt32})
		events, _, err := w.s.Events(w.ctx, app, tracking.EventFilter{Limit: math.MaxInt32})
		if d := differs(wantEvents, events, quiet); d != "" || err != nil {
			w.Fatalf("all events: error %v (-want +got):\n%s", err, d)
		}
		for i := range 6 {
			w.compareFile(app, fmt.Sprint("f", i))
		}
		for i := range 5 {
			d := tracking.DriverID(fmt.Sprint("d", i))
			r := tracking.FixRange{From: w.cut}
			agree(w, fmt.Sprintf("all fixes of %s", d), w.path(w.s, app, d, r), w.path(w.ref, app, d, r), nil, nil)
			wantInvite, wantErr := w.ref.Invite(w.ctx, app, d)
			invite, err := w.s.Invite(w.ctx, app, d)
			agree(w, "invite", invite, wantInvite, err, wantErr)
			wantNotices, _, wantErr := w.ref.Notices(w.ctx, app, d, 0, math.MaxInt32)
			notices, _, err := w.s.Notices(w.ctx, app, d, 0, math.MaxInt32)
			agree(w, "all notices", notices, wantNotices, err, wantErr)
		}
	}
}
