package tracking_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

func TestFixOutcomesOfTheService(t *testing.T) {
	w := newWorld(t)
	w.driver("a", 0)
	w.advance(time.Minute)
	at := func(d time.Duration) time.Time { return w.now().Add(d) }
	fixes := []tracking.Fix{
		{LngLat: *east(1), Time: at(0)},
		{LngLat: *east(1), Time: at(0)},
		{LngLat: tracking.LngLat{}, Time: at(time.Second)},
		{LngLat: *lnglat(181, 0), Time: at(time.Second)},
		{LngLat: *east(2)},
		{LngLat: *east(2), Time: at(time.Second), Accuracy: tracking.Known(-1)},
		{LngLat: *east(2), Time: at(2*time.Minute + time.Millisecond)},
		{LngLat: *east(2), Time: at(3 * 365 * 24 * time.Hour)},
		{LngLat: *east(2), Time: at(2 * time.Minute)},
		{LngLat: *east(900_000), Time: at(time.Second)},
		{LngLat: *east(3), Time: at(-time.Second)},
	}
	out := must(w.RecordFixes(w.ctx, "a", fixes))(t)
	want := "live duplicate invalid invalid invalid invalid future future live jump late"
	if got := strings.Join(strings.Fields(fmt.Sprint(out)), " "); got != "["+want+"]" {
		t.Errorf("\n%s, want\n%s", got, want)
	}
	d := must(w.Driver(w.ctx, "a"))(t)
	if d.Position.Fix.LngLat != *east(2) || !d.Position.SeenAt.Equal(w.now()) || d.Version != 1 {
		t.Errorf("%+v", d)
	}
	_, err := w.RecordFixes(w.ctx, "a", make([]tracking.Fix, 1001))
	if code(err) != tracking.ErrTooLarge {
		t.Error(err)
	}
	if _, err := w.RecordFixes(w.ctx, "nobody", nil); code(err) != tracking.ErrNotFound {
		t.Error(err)
	}
}

// A store that is still at a fix when the call has ended keeps that fix, whatever the next call sends.
func TestFixesOfALostCallStay(t *testing.T) {
	s := &slowToKeep{Store: memory.New()}
	w := newWorldOn(t, s)
	w.driver("a", 0)
	w.driver("b", 0)
	fix := func(m float64) []tracking.Fix { return []tracking.Fix{{LngLat: *east(m), Time: w.now()}} }
	w.advance(time.Minute)
	s.loses = true
	if _, err := w.RecordFixes(w.ctx, "a", fix(1)); err == nil {
		t.Fatal("no error")
	}
	s.loses = false
	must(w.RecordFixes(w.ctx, "b", fix(2)))(t)
	must(s.Store.RecordFixes(w.ctx, w.App(), s.lost))(t)
	if got := must(w.Driver(w.ctx, "a"))(t).Position.Fix.LngLat; got != *east(1) {
		t.Errorf("the driver is at %v", got)
	}
}

// slowToKeep is a store that may go on with fixes when their call has ended.
type slowToKeep struct {
	tracking.Store
	loses bool
	lost  tracking.FixBatch
}

func (s *slowToKeep) RecordFixes(
	ctx context.Context, app tracking.AppID, b tracking.FixBatch,
) (tracking.Recorded, error) {
	if s.loses {
		s.lost = b
		return tracking.Recorded{}, context.DeadlineExceeded
	}
	return s.Store.RecordFixes(ctx, app, b)
}

func TestSilence(t *testing.T) {
	w := newWorld(t)
	w.driver("a", 0)
	w.advance(10 * time.Minute)
	if n := must(w.MarkSilent(w.ctx))(t); n != 0 {
		t.Error("silent too early")
	}
	w.advance(time.Millisecond)
	for range 3 {
		must(w.MarkSilent(w.ctx))(t)
	}
	if got := w.told(tracking.KindDriver, "a", 0); !slices.Equal(got, []string{"driver.available", "driver.silent"}) {
		t.Error(got)
	}
	if task := w.create(true); task.DriverID != "" {
		t.Error("a silent driver got a task")
	}
	must(w.RecordFixes(w.ctx, "a", nil))(t)
	if n := must(w.AssignWaiting(w.ctx))(t); n != 1 {
		t.Error("heard of again, the driver gets nothing")
	}
	w.advance(time.Hour)
	must(w.MarkSilent(w.ctx))(t)
	if got := w.told(tracking.KindDriver, "a", 2); !slices.Equal(got, []string{"driver.silent"}) {
		t.Error(got)
	}
}

// Whatever a driver does is a sign of life, and ends a silence.
func TestStepsEndSilence(t *testing.T) {
	for name, do := range map[string]func(w *world, task tracking.TaskID, trip tracking.TripID) error{
		"finish": func(w *world, task tracking.TaskID, _ tracking.TripID) error { return finish(w, task) },
		"pickup": func(w *world, task tracking.TaskID, _ tracking.TripID) error { return pickUp(w, task) },
		"stop": func(w *world, _ tracking.TaskID, trip tracking.TripID) error {
			_, err := w.StopTrip(w.ctx, "own", trip, tracking.Step{})
			return err
		},
		"start a trip": func(w *world, _ tracking.TaskID, _ tracking.TripID) error {
			_, err := w.StartTrip(w.ctx, "own", "other", tracking.Step{})
			return err
		},
		"decline": func(w *world, _ tracking.TaskID, _ tracking.TripID) error {
			id := w.create(false).ID
			must(w.AssignTask(w.ctx, id, "own"))(w.t)
			return decline(w, id)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, func(o *tracking.Options) { o.MaxOpenTasks = 5 })
			w.driver("own", 100)
			id := w.create(true).ID
			_, trip, err := w.StartTask(w.ctx, "own", id, tracking.Step{})
			if err != nil {
				t.Fatal(err)
			}
			w.advance(11 * time.Minute)
			if n := must(w.MarkSilent(w.ctx))(t); n != 1 {
				t.Fatal("not silent")
			}
			if err := do(w, id, trip.ID); err != nil {
				t.Fatal(err)
			}
			if next := w.create(true); next.DriverID != "own" {
				t.Error("heard of by what he does, the driver is not offered anything")
			}
			w.advance(11 * time.Minute)
			if n := must(w.MarkSilent(w.ctx))(t); n != 1 {
				t.Error("silent again, nobody is told")
			}
		})
	}
}

// Where steps off duty happened is kept as fixes off duty are.
func TestStepOffDuty(t *testing.T) {
	for _, keep := range []bool{false, true} {
		w := newWorld(t, func(o *tracking.Options) { o.KeepOffDuty = keep })
		must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "own"}))(t)
		id := w.create(false).ID
		must(w.AssignTask(w.ctx, id, "own"))(t)
		must(w.DeclineTask(w.ctx, "own", id, tracking.Reason{}, tracking.Step{LngLat: east(10)}))(t)
		if got := must(w.Driver(w.ctx, "own"))(t).Position.Located(); got != keep {
			t.Errorf("with KeepOffDuty %v: kept %v", keep, got)
		}
	}
}

// Who was made off duty was off duty until the first coming on.
func TestOffDutyFromTheInviteOn(t *testing.T) {
	for name, make := range map[string]func(w *world){
		"invited": func(w *world) { must(w.InviteDriver(w.ctx, tracking.NewInvite{DriverID: "a"}))(w.t) },
		"saved":   func(w *world) { must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "a"}))(w.t) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			make(w)
			w.advance(10 * time.Minute)
			must(w.SetAvailability(w.ctx, "a", true, time.Time{}))(t)
			out := must(w.RecordFixes(w.ctx, "a", []tracking.Fix{
				{LngLat: *east(0), Time: start.Add(5 * time.Minute)}, {LngLat: *east(1), Time: w.now()},
			}))(t)
			if want := []tracking.FixOutcome{tracking.FixOffDuty, tracking.FixLive}; !slices.Equal(out, want) {
				t.Errorf("%v, want %v", out, want)
			}
		})
	}
}

func TestPushSubscriptions(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	sub := func(n int) tracking.PushSubscription {
		return tracking.PushSubscription{
			Endpoint: tracking.Secret(fmt.Sprintf("https://push.example/%d", n)),
			P256dh:   "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
			Auth:     tracking.Secret(strings.Repeat("A", 22)),
		}
	}
	for n := range 12 {
		if err := w.SubscribePush(w.ctx, "own", sub(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.SubscribePush(w.ctx, "own", sub(5)); err != nil {
		t.Fatal(err)
	}
	if err := w.UnsubscribePush(w.ctx, "own", sub(7).Endpoint); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range must(w.Driver(w.ctx, "own"))(t).Push {
		got = append(got, strings.TrimPrefix(string(p.Endpoint), "https://push.example/"))
	}
	if want := []string{"2", "3", "4", "6", "8", "9", "10", "11", "5"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for field, bad := range map[string]func(*tracking.PushSubscription){
		"endpoint": func(p *tracking.PushSubscription) { p.Endpoint = "http://push.example/1" },
		"p256dh":   func(p *tracking.PushSubscription) { p.P256dh = "B" + strings.Repeat("A", 86) },
		"auth":     func(p *tracking.PushSubscription) { p.Auth = "!" },
	} {
		p := sub(1)
		bad(&p)
		var e *tracking.Error
		if err := w.SubscribePush(w.ctx, "own", p); !errors.As(err, &e) || e.Code != tracking.ErrInvalid ||
			e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := w.RevokeTokens(w.ctx, "own"); err != nil {
		t.Fatal(err)
	}
	inv := must(w.InviteDriver(w.ctx, tracking.NewInvite{DriverID: "own"}))(t)
	must(w.Join(w.ctx, tracking.JoinRequest{Token: inv.Token}))(t)
	if got := must(w.Driver(w.ctx, "own"))(t).Push; got != nil {
		t.Errorf("after joining anew: %v", got)
	}
}

func TestDeleteDriver(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	task := w.create(true)
	if err := w.DeleteDriver(w.ctx, "own"); code(err) != tracking.ErrConflict {
		t.Error("with an open task:", err)
	}
	startOwn(w, task.ID)
	finish(w, task.ID)
	if err := w.DeleteDriver(w.ctx, "own"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Driver(w.ctx, "own"); code(err) != tracking.ErrNotFound {
		t.Error(err)
	}
	trips, _, err := w.Trips(w.ctx, tracking.TripFilter{})
	if err != nil || len(trips) != 1 || trips[0].DriverID != "own" || len(w.path(trips[0].ID)) != 0 {
		t.Errorf("%+v %v", trips, err)
	}
	w.driver("own", 0)
	if got := must(w.Driver(w.ctx, "own"))(t); got.OpenTasks() != 0 {
		t.Errorf("%+v", got)
	}
}
