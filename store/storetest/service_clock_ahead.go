package storetest

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// aheadChecks are about what was noted, or is remembered, from a time in which our clock was ahead:
// once it is right, that counts no longer than it could have.
func aheadChecks() []check {
	return []check{
		{"clock/a joining in the future is answered again no longer", futureJoiningIsOver},
		{"clock/a task's address and a trip's places are looked up again", futureQuestionIsAskedAgain},
		{"clock/a path read in the future is read again", futurePathIsReadAgain},
		{"clock/an expected time counts from its position, whatever our clock said meanwhile", expectationCountsFromPosition},
		{"clock/a step counts from the last one that is not in the future", futureStepIsPassedOver},
		{"clock/steps in the future come back to the one that follows", futureStepsComeBack},
	}
}

func futureJoiningIsOver(t testing.TB, s tracking.Store) {
	svc, c := beginAt(t, s, at(years), tracking.Options{})
	inv, err := svc.InviteDriver(t.Context(), tracking.NewInvite{DriverID: "d"})
	if err != nil {
		t.Fatal(err)
	}
	join := tracking.JoinRequest{Token: inv.Token, Nonce: "nonce"}
	for range 2 {
		if _, err := svc.Join(t.Context(), join); err != nil {
			t.Fatal(err)
		}
	}
	c.forward(-years)
	_, err = svc.Join(t.Context(), join)
	missing(t, "a joining in the future, asked for again", err)
}

// lost is a Geocoder that never knows, and counts what it was asked.
type lost struct{ points, addresses atomic.Int64 }

var errLost = errors.New("no way to know")

func (g *lost) Point(context.Context, string) (tracking.LngLat, error) {
	g.points.Add(1)
	return tracking.LngLat{}, errLost
}

func (g *lost) Address(context.Context, tracking.LngLat) (string, error) {
	g.addresses.Add(1)
	return "", errLost
}

// futureQuestionIsAskedAgain asks for addresses years ahead, and goes back.
func futureQuestionIsAskedAgain(t testing.TB, s tracking.Store) {
	g := &lost{}
	svc, c := beginAt(t, s, at(years), tracking.Options{Geocoder: g})
	putOnDuty(t, svc, nil)
	if _, err := svc.CreateTask(t.Context(), dropHere(false)); err != nil {
		t.Fatal(err)
	}
	task := tracking.NewTask{Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "somewhere"}}
	if _, err := svc.CreateTask(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.StartTrip(t.Context(), "d", "x",
		tracking.Step{LngLat: &tracking.LngLat{Lng: 11, Lat: 48}}); err != nil {
		t.Fatal(err)
	}
	asked := func(when string, want int64) {
		t.Helper()
		if _, err := svc.Geocode(t.Context()); err != nil {
			t.Fatal(err)
		}
		same(t, "questions for a point and for an address "+when, []int64{g.points.Load(), g.addresses.Load()}, []int64{
			want, want,
		})
	}
	asked("in the future", 1)
	c.forward(-years)
	asked("when the clock is right", 2)
	asked("at once again", 2)
	c.forward(time.Minute)
	asked("a minute later", 3)
}

// futurePathIsReadAgain reads a path years ahead, and goes back.
func futurePathIsReadAgain(t testing.TB, s tracking.Store) {
	svc, c := beginAt(t, s, t0, tracking.Options{})
	other := service(t, s, tracking.Options{Now: c.now}).ForApp(here)
	putOnDuty(t, svc, nil)
	trip, err := svc.StartTrip(t.Context(), "d", "x", tracking.Step{})
	if err != nil {
		t.Fatal(err)
	}
	token, err := svc.TripLink(t.Context(), trip.ID)
	if err != nil {
		t.Fatal(err)
	}
	record := func(svc *tracking.Service, f tracking.Fix) {
		t.Helper()
		if _, err := svc.RecordFixes(t.Context(), "d", []tracking.Fix{f}); err != nil {
			t.Fatal(err)
		}
	}
	path := func(when string, want int) {
		t.Helper()
		v, err := svc.Tracking(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "points of the path "+when, len(v.Path), want)
	}
	record(svc, newFix(t0, 11, 48))
	c.forward(time.Minute)
	record(svc, newFix(at(time.Minute), 11.002, 48))
	c.forward(time.Hour)
	path("in the future", 2)
	c.forward(-time.Hour)
	record(other, newFix(at(30*time.Second), 11.001, 48)) // svc does not hear of it
	path("when the clock is right", 3)
}

// expectationCountsFromPosition works out an expected time minutes ahead, and goes back.
func expectationCountsFromPosition(t testing.TB, s tracking.Store) {
	svc, c := beginAt(t, s, t0, tracking.Options{})
	putOnDuty(t, svc, nil)
	task, err := svc.CreateTask(t.Context(), dropHere(false))
	if err == nil {
		_, err = svc.AssignTask(t.Context(), task.ID, "d")
	}
	if err == nil {
		_, _, err = svc.StartTask(t.Context(), "d", task.ID, tracking.Step{})
	}
	if err != nil {
		t.Fatal(err)
	}
	token, err := svc.TaskLink(t.Context(), task.ID)
	if err == nil {
		_, err = svc.RecordFixes(t.Context(), "d",
			[]tracking.Fix{newFix(t0, task.Drop.LngLat.Lng, task.Drop.LngLat.Lat+0.02)})
	}
	if err != nil {
		t.Fatal(err)
	}
	computed := func() time.Time {
		t.Helper()
		v, err := svc.Tracking(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		if v.ETA == nil {
			t.Fatal("there is no expected time")
		}
		return v.ETA.ComputedAt
	}
	c.forward(4 * time.Minute)
	same(t, "in the future, worked out", computed(), t0)
	c.forward(-3 * time.Minute)
	same(t, "when the clock is right, worked out", computed(), t0)
	c.forward(time.Second)
	same(t, "a second later, worked out", computed(), t0)
}

// futureStepIsPassedOver takes steps years ahead, goes back, and takes the next.
func futureStepIsPassedOver(t testing.TB, s tracking.Store) {
	svc, c := beginAt(t, s, at(years), tracking.Options{})
	putOnDuty(t, svc, nil)
	pickup := dropHere(false)
	pickup.Type, pickup.Pickup = tracking.TypePickupAndDrop, pickup.Drop
	task, err := svc.CreateTask(t.Context(), pickup)
	if err != nil {
		t.Fatal(err)
	}
	c.forward(-years)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = svc.AssignTask(t.Context(), task.ID, "d")
	must(err)
	c.forward(time.Hour)
	_, trip, err := svc.StartTask(t.Context(), "d", task.ID, tracking.Step{At: at(10 * time.Minute)})
	must(err)
	same(t, "start of the trip", trip.StartedAt, at(10*time.Minute))
	_, err = svc.PickUpTask(t.Context(), "d", task.ID, tracking.Step{At: at(20 * time.Minute)})
	must(err)
	task, err = svc.FinishTask(t.Context(), "d", task.ID, tracking.Completion{},
		tracking.Step{At: at(30 * time.Minute)})
	must(err)
	same(t, "started, picked up, completed", []time.Time{task.StartedAt, task.PickedUpAt, task.CompletedAt},
		[]time.Time{at(10 * time.Minute), at(20 * time.Minute), at(30 * time.Minute)})
	trip, _, err = svc.TripPath(t.Context(), trip.ID)
	must(err)
	same(t, "end of the trip", trip.EndedAt, at(30*time.Minute))
}

// futureStepsComeBack has the clock put right after each of a task's steps, by an hour or by little.
func futureStepsComeBack(t testing.TB, s tracking.Store) {
	svc, c := beginAt(t, s, t0, tracking.Options{MaxOpenTasks: -1})
	putOnDuty(t, svc, nil)
	ctx := t.Context()
	for _, off := range []time.Duration{time.Hour, time.Minute} {
		for right := range 4 { // the first step that is taken by the right clock
			pickup := dropHere(false)
			pickup.Type, pickup.Pickup = tracking.TypePickupAndDrop, pickup.Drop
			task, err := svc.CreateTask(ctx, pickup)
			c.forward(off)
			for i, step := range []func() (tracking.Task, error){
				func() (tracking.Task, error) { return svc.AssignTask(ctx, task.ID, "d") },
				func() (tracking.Task, error) {
					task, _, err := svc.StartTask(ctx, "d", task.ID, tracking.Step{})
					return task, err
				},
				func() (tracking.Task, error) { return svc.PickUpTask(ctx, "d", task.ID, tracking.Step{}) },
				func() (tracking.Task, error) {
					return svc.FinishTask(ctx, "d", task.ID, tracking.Completion{}, tracking.Step{})
				},
			} {
				if i == right {
					c.forward(-off)
				}
				c.forward(time.Second)
				if err == nil {
					task, err = step()
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			steps := []time.Time{task.AssignedAt, task.StartedAt, task.PickedUpAt, task.CompletedAt}
			if !slices.IsSortedFunc(steps, time.Time.Compare) || task.CompletedAt.After(c.now()) {
				t.Errorf("right from step %d on, by %v: the steps are at %v, now %v", right, off, steps, c.now())
			}
		}
	}
}
