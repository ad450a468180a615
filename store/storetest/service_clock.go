package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// clockChecks are about a clock of ours that was wrong for a while, and about times in which nobody
// could be heard.
func clockChecks() []check {
	return []check{
		{"clock/signs of life, duty and places from the future thaw when the clock is right", futureSignsThaw},
		{"clock/a position goes back to the newest fix that is not from the future", positionComesBackFromTheFuture},
		{"clock/a trip begun in the future ends when it would have", futureTripEndsInTime},
		{"clock/a step after one from the future happens now", stepAfterAFutureOneIsNow},
		{"clock/a delivery that was put off in the future is tried again", futureRetryIsTriedAgain},
		{"clock/invites and links from the future do not live longer", futureInvitesAndLinksEnd},
		{"outage/after one nobody is silent before phones could report", outageLeavesTimeToReport},
		{"outage/a store that was away is one", absentStoreIsAnOutage},
		{"outage/a process that starts does not hold up silences, nor does one that starts again and again",
			startIsNoOutage},
	}
}

func futureSignsThaw(t testing.TB, s tracking.Store) {
	svc, c := beginAt(t, s, at(years), tracking.Options{})
	putOnDuty(t, svc, &tracking.LngLat{Lng: 11, Lat: 48})
	c.forward(-years)
	expectSilent(t, svc, false)
	outcomes, err := svc.RecordFixes(t.Context(), "d", []tracking.Fix{newFix(t0, 12, 49)})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "outcomes", outcomes, []tracking.FixOutcome{tracking.FixLive})
	d, err := svc.Driver(t.Context(), "d")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "position", d.Position.Fix, newFix(t0, 12, 49))
	same(t, "last seen", d.Position.SeenAt, t0)
	same(t, "on duty since", d.DutyAt, t0)
	passMinutes(t, c, 10, svc)
	expectSilent(t, svc, false)
	passMinutes(t, c, 1, svc)
	expectSilent(t, svc, true)
}

func positionComesBackFromTheFuture(t testing.TB, s tracking.Store) {
	svc, c := beginAt(t, s, t0, tracking.Options{})
	putOnDuty(t, svc, nil)
	fix := func(f tracking.Fix) {
		t.Helper()
		if _, err := svc.RecordFixes(t.Context(), "d", []tracking.Fix{f}); err != nil {
			t.Fatal(err)
		}
	}
	fix(newFix(t0, 11, 48))
	c.forward(years)
	fix(newFix(at(years), 11.0001, 48))
	fix(newFix(at(years+time.Second), 11.0002, 48))
	c.forward(time.Minute - years)
	fix(newFix(at(time.Minute), 11.0003, 48))
	c.forward(time.Second)
	fix(newFix(at(time.Minute+time.Second), 11.0004, 48))
	c2 := use(t, s, here)
	same(t, "fixes", each(c2.fixes("d", tracking.FixRange{}), fixTime), []time.Time{
		t0, at(time.Minute), at(time.Minute + time.Second),
	})
	same(t, "position", c2.driver("d").Position.Fix, newFix(at(time.Minute+time.Second), 11.0004, 48))
}

func futureTripEndsInTime(t testing.TB, s tracking.Store) {
	svc, c := beginAt(t, s, at(years), tracking.Options{})
	putOnDuty(t, svc, nil)
	tr, err := svc.StartTrip(t.Context(), "d", "x", tracking.Step{})
	if err != nil {
		t.Fatal(err)
	}
	c.forward(-years)
	sweep := func() {
		t.Helper()
		if _, err := svc.EndDueTrips(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	same(t, "ttl", use(t, s, here).trip(tr.ID).TTL, at(2*time.Hour))
	same(t, "start", use(t, s, here).trip(tr.ID).StartedAt, t0)
	c.forward(2 * time.Hour)
	sweep()
	same(t, "status", use(t, s, here).trip(tr.ID).Status, tracking.TripDiscarded)
}

func stepAfterAFutureOneIsNow(t testing.TB, s tracking.Store) {
	svc, c := beginAt(t, s, at(years), tracking.Options{})
	putOnDuty(t, svc, nil)
	task, err := svc.CreateTask(t.Context(), dropHere(false))
	if err == nil {
		_, err = svc.AssignTask(t.Context(), task.ID, "d")
	}
	if err != nil {
		t.Fatal(err)
	}
	c.forward(-years)
	task, trip, err := svc.StartTask(t.Context(), "d", task.ID, tracking.Step{At: at(-time.Minute)})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "start of the task", task.StartedAt, t0)
	same(t, "start of the trip", trip.StartedAt, t0)
}

func futureRetryIsTriedAgain(t testing.TB, s tracking.Store) {
	var tries atomic.Int64
	svc, c := beginAt(t, s, at(years), tracking.Options{Notifier: failing(func() error {
		tries.Add(1)
		return errors.New("down")
	})})
	if _, err := svc.CreateTask(t.Context(), dropHere(false)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int64{1, 2, 2} {
		if _, err := svc.DeliverEvents(t.Context()); err != nil {
			t.Fatal(err)
		}
		same(t, "tries", tries.Load(), want)
		if want == 1 {
			c.forward(-years)
		}
	}
}

// futureInvitesAndLinksEnd makes an invite and a link years ahead, and goes back.
func futureInvitesAndLinksEnd(t testing.TB, s tracking.Store) {
	svc, c := beginAt(t, s, at(years), tracking.Options{})
	inv, err := svc.InviteDriver(t.Context(), tracking.NewInvite{DriverID: "d"})
	if err != nil {
		t.Fatal(err)
	}
	task, err := svc.CreateTask(t.Context(), dropHere(false))
	if err != nil {
		t.Fatal(err)
	}
	token, err := svc.TaskLink(t.Context(), task.ID)
	if err == nil {
		_, err = svc.CancelTask(t.Context(), task.ID, tracking.Reason{})
	}
	if err != nil {
		t.Fatal(err)
	}
	c.forward(-years)
	for _, j := range []tracking.JoinRequest{{Token: inv.Token}, {Code: fmt.Sprint(inv.Code)}} {
		_, err = svc.Join(t.Context(), j)
		missing(t, "joining by an invite from the future", err)
	}
	_, err = svc.Tracking(t.Context(), token)
	missing(t, "a link from the future", err)
	again, err := svc.TaskLink(t.Context(), task.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = svc.Tracking(t.Context(), again); err != nil {
		t.Errorf("the link that was made anew: %v", err)
	}
}

func outageLeavesTimeToReport(t testing.TB, s tracking.Store) {
	svc, c := beginAt(t, s, t0, tracking.Options{})
	putOnDuty(t, svc, nil)
	passMinutes(t, c, 2, svc)
	c.forward(3 * time.Hour) // nothing runs
	svc = service(t, s, tracking.Options{Now: c.now}).ForApp(here)
	expectSilent(t, svc, false)
	passMinutes(t, c, 8, svc) // 10 minutes of hearing in all
	expectSilent(t, svc, false)
	passMinutes(t, c, 1, svc)
	expectSilent(t, svc, true)
}

func absentStoreIsAnOutage(t testing.TB, s tracking.Store) {
	store := &away{Store: s}
	svc, c := beginAt(t, store, t0, tracking.Options{})
	putOnDuty(t, svc, nil)
	passMinutes(t, c, 2, svc)
	store.gone.Store(true)
	for range 60 {
		c.forward(time.Minute)
		if _, err := svc.MarkSilent(t.Context()); !errors.Is(err, tracking.ErrUnavailable) {
			t.Fatalf("MarkSilent: %v, want ErrUnavailable", err)
		}
	}
	store.gone.Store(false)
	expectSilent(t, svc, false)
	passMinutes(t, c, 8, svc)
	expectSilent(t, svc, false)
	passMinutes(t, c, 1, svc)
	expectSilent(t, svc, true)
}

func startIsNoOutage(t testing.TB, s tracking.Store) {
	svc, c := beginAt(t, s, t0, tracking.Options{})
	putOnDuty(t, svc, nil)
	passMinutes(t, c, 9, svc)
	other := service(t, s, tracking.Options{Now: c.now}).ForApp(here)
	passMinutes(t, c, 2, other)
	expectSilent(t, other, true)
	putOnDuty(t, svc, &tracking.LngLat{Lng: 11, Lat: 48}) // heard of
	for range 5 {                                         // 2 minutes up, 3 minutes down
		svc = service(t, s, tracking.Options{Now: c.now}).ForApp(here)
		expectSilent(t, svc, false)
		passMinutes(t, c, 2, svc)
		c.forward(3 * time.Minute)
	}
	svc = service(t, s, tracking.Options{Now: c.now}).ForApp(here)
	passMinutes(t, c, 1, svc)
	expectSilent(t, svc, true)
}

const years = 10 * 365 * 24 * time.Hour

// expectSilent looks for the silent, and expects that d is one, or not.
func expectSilent(t testing.TB, svc *tracking.Service, want bool) {
	t.Helper()
	if _, err := svc.MarkSilent(t.Context()); err != nil {
		t.Fatal(err)
	}
	d, err := svc.Driver(t.Context(), "d")
	if err != nil {
		t.Fatal(err)
	}
	if d.Silent != want {
		t.Errorf("the driver is silent: %v, want %v", d.Silent, want)
	}
}

// putOnDuty makes d, or says that d is on duty, at a place.
func putOnDuty(t testing.TB, svc *tracking.Service, at *tracking.LngLat) {
	t.Helper()
	if _, err := svc.SaveDriver(t.Context(),
		tracking.DriverUpdate{ID: "d", Available: new(true), LngLat: at}); err != nil {
		t.Fatal(err)
	}
}

// passMinutes has minutes pass, with a look for the silent in each.
func passMinutes(t testing.TB, c *clock, minutes int, svcs ...*tracking.Service) {
	t.Helper()
	for range minutes {
		c.forward(time.Minute)
		for _, svc := range svcs {
			if _, err := svc.MarkSilent(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// beginAt makes a Service whose clock shows that time.
func beginAt(t testing.TB, s tracking.Store, now time.Time, opts tracking.Options) (*tracking.Service, *clock) {
	c := &clock{at: now}
	opts.Now = c.now
	return service(t, s, opts).ForApp(here), c
}

// away is a store that cannot be reached while it is told so.
type away struct {
	tracking.Store
	gone atomic.Bool
}

func (s *away) RecordFixes(ctx context.Context, app tracking.AppID, b tracking.FixBatch) (tracking.Recorded, error) {
	if s.gone.Load() {
		return tracking.Recorded{}, tracking.ErrUnavailable
	}
	return s.Store.RecordFixes(ctx, app, b)
}

func (s *away) Memo(ctx context.Context, name string) ([]byte, error) {
	if s.gone.Load() {
		return nil, tracking.ErrUnavailable
	}
	return s.Store.Memo(ctx, name)
}

// failing is a Notifier.
type failing func() error

func (f failing) Notify(context.Context, tracking.Notification) error { return f() }
