package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// others does what others do while a transaction of the shop's is open: each verb and each step of
// Run, as a store of two connections can.
func others(t *testing.T, s *shop) {
	t.Helper()
	ctx := t.Context() // who waits until a row is free is told ErrUnavailable by the store
	task := must(s.svc.CreateTask(ctx, parcel))(t)
	must(s.svc.CreateTask(ctx, keyed(parcel, string(task.ID))))(t)
	must(s.svc.UpdateTask(ctx, task.ID, tracking.TaskUpdate{Notes: new("by others")}))(t)
	free := tracking.DriverID("free-" + string(task.ID))
	must(s.svc.SaveDriver(ctx, tracking.DriverUpdate{ID: free, Available: new(true), LngLat: annaSalai}))(t)
	must(s.svc.InviteDriver(ctx, tracking.NewInvite{DriverID: free}))(t)
	now := time.Now()
	must(s.svc.RecordFixes(ctx, free, []tracking.Fix{{LngLat: *annaSalai, Time: now}}))(t)
	if err := s.svc.RequestTrip(ctx, tracking.NewRequest{DriverID: free, TrackingID: "t1"}); err != nil {
		t.Fatal(err)
	}
	waits := must(s.svc.CreateTask(ctx, parcel))(t)
	list, _, err := s.svc.Events(ctx, tracking.EventFilter{
		Subject: tracking.Subject{Kind: tracking.KindTask, ID: string(waits.ID)},
	})
	if err != nil || len(list) == 0 {
		t.Errorf("of the task that was created beside it there are %d events, error %v", len(list), err)
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) (int, error)
	}{
		{"AssignWaiting", s.svc.AssignWaiting}, {"DeliverEvents", s.svc.DeliverEvents},
		{"EndDueTrips", s.svc.EndDueTrips}, {"MarkDueTasks", s.svc.MarkDueTasks}, {"MarkSilent", s.svc.MarkSilent},
	} {
		if _, err := step.do(ctx); err != nil {
			t.Errorf("%s: %v", step.name, err)
		}
	}
	if _, err := s.store.Purge(ctx, tracking.Before{
		Fixes: now.Add(time.Hour), Events: now.Add(time.Hour), Files: now.Add(time.Hour), Limit: 1000,
	}); err != nil {
		t.Errorf("Purge: %v", err)
	}
	for len(s.told) > 0 {
		<-s.told
	}
}

// TestWithinLeftOpen: a transaction that stays open holds up nobody but who wants what it has
// changed.
func TestWithinLeftOpen(t *testing.T) {
	t.Parallel()
	next := emptied(t)
	url := next(t)
	leftOpen(t, newShop(t, url+"&pool_max_conns=2", url))
}

// leftOpen has the shop leave transactions open while others go on.
func leftOpen(t *testing.T, s *shop) {
	ctx := t.Context()

	// What is created is nobody's yet, and nobody waits for it.
	h := byPgx(t, s, "")
	in := s.svc.Within(h)
	must(in.CreateTask(ctx, keyed(parcel, "order-1")))(t)
	must(in.SaveDriver(ctx, tracking.DriverUpdate{ID: "ravi", Available: new(true), LngLat: annaSalai}))(t)
	must(in.InviteDriver(ctx, tracking.NewInvite{DriverID: "meena"}))(t)
	others(t, s)
	if n := blocked(t, s); n > 0 {
		t.Errorf("%d connections wait for a lock", n)
	}
	// It is there as soon as it is committed, behind what was listed before.
	must(s.svc.CreateTask(ctx, parcel))(t)
	listed, _, err := s.svc.Events(ctx, tracking.EventFilter{Limit: 1000})
	if err != nil || len(listed) == 0 {
		t.Fatalf("there are %d events, error %v", len(listed), err)
	}
	h.end(t, h.commit)
	later, _, err := s.svc.Events(ctx, tracking.EventFilter{After: listed[len(listed)-1].ID, Limit: 1000})
	if err != nil || len(later) != 2 {
		t.Errorf("after the commit there are %d more events, error %v; want 2", len(later), err)
	}

	// What is changed is waited for, by those alone who want it, however many they are.
	busy := must(s.svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "asha", Available: new(true), LngLat: annaSalai}))(t)
	task := must(s.svc.CreateTask(ctx, tracking.NewTask{Type: tracking.TypeDrop, Drop: parcel.Drop}))(t)
	must(s.svc.AssignTask(ctx, task.ID, busy.ID))(t)
	h = byPgx(t, s, "")
	in = s.svc.Within(h)
	must(in.UpdateTask(ctx, task.ID, tracking.TaskUpdate{Notes: new("hers")}))(t)
	must(in.CancelTask(ctx, task.ID, tracking.Reason{}))(t)
	if err := in.RequestTrip(ctx, tracking.NewRequest{DriverID: busy.ID, TrackingID: "t1"}); err != nil {
		t.Fatal(err)
	}
	const many = 5
	ends := make(chan error)
	for i := range many {
		go func() {
			_, err := s.svc.UpdateTask(ctx, task.ID, tracking.TaskUpdate{Notes: new(fmt.Sprint(i))})
			ends <- err
		}()
		go func() {
			_, err := s.svc.SaveDriver(ctx, tracking.DriverUpdate{ID: busy.ID, Name: new(fmt.Sprint(i))})
			ends <- err
		}()
		go func() {
			_, err := s.svc.RecordFixes(ctx, busy.ID, []tracking.Fix{{LngLat: *annaSalai, Time: time.Now()}})
			ends <- err
		}()
	}
	waitFor(t, func() bool { return blocked(t, s) > 0 })
	others(t, s)
	// The shop itself goes on, though others wait for the same.
	must(in.CancelTask(ctx, task.ID, tracking.Reason{}))(t)
	select {
	case err := <-ends:
		t.Errorf("somebody who wants what is held does not wait: %v", err)
	default:
	}
	h.end(t, h.rollback)
	for range 3 * many {
		if err := <-ends; err != nil {
			t.Errorf("after its end, who has waited gets: %v", err)
		}
	}
}

// TestWithinHolds: Run finds another driver for a task that waits, where the nearest one is held.
func TestWithinHolds(t *testing.T) {
	t.Parallel()
	url := emptied(t)(t)
	s := newShop(t, url, url)
	ctx := t.Context()
	far := &tracking.LngLat{Lng: annaSalai.Lng, Lat: annaSalai.Lat + 0.1}
	must(s.svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "near", Available: new(true), LngLat: annaSalai}))(t)
	must(s.svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "far", Available: new(true), LngLat: far}))(t)

	h := byPgx(t, s, "")
	if err := s.svc.Within(h).RequestTrip(ctx, tracking.NewRequest{DriverID: "near", TrackingID: "t1"}); err != nil {
		t.Fatal(err)
	}
	other := byPgx(t, s, "")
	task := must(s.svc.Within(other).CreateTask(ctx, parcel))(t)
	other.end(t, other.commit)
	s.run(t)
	var got tracking.Task
	waitFor(t, func() bool {
		got = must(s.svc.Task(ctx, task.ID))(t)
		return got.DriverID != ""
	})
	if got.DriverID != "far" {
		t.Errorf("the task has gone to %s, who is held", got.DriverID)
	}
	h.end(t, h.rollback)
}

// TestWithinHoldsTask: a waiting task that is held has the others wait for two tries of its own at most,
// though it comes before them, and is assigned once it is free.
func TestWithinHoldsTask(t *testing.T) {
	t.Parallel()
	url := emptied(t)(t)
	s := newShop(t, url, url)
	ctx := t.Context()
	const all = 20
	var ids []tracking.TaskID
	for range all {
		ids = append(ids, must(s.svc.CreateTask(ctx, parcel))(t).ID)
	}
	h := byPgx(t, s, "")
	must(s.svc.Within(h).UpdateTask(ctx, ids[0], tracking.TaskUpdate{Notes: new("hers")}))(t)
	for i := range all + 3 { // with those whom it could not be given to
		must(s.svc.SaveDriver(ctx, tracking.DriverUpdate{
			ID: tracking.DriverID(fmt.Sprint("d", i)), Available: new(true), LngLat: annaSalai,
		}))(t)
	}
	if _, err := s.svc.AssignWaiting(ctx); !errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("AssignWaiting: %v, and a task is held", err)
	}
	s.run(t) // for who was waited for as long, on a busy machine
	waiting := func() (list []tracking.TaskID) {
		for _, task := range must(s.store.Waiting(ctx, tracking.DefaultApp, tracking.WaitingFilter{Limit: all}))(t) {
			list = append(list, task.ID)
		}
		return list
	}
	waitFor(t, func() bool { return slices.Equal(waiting(), ids[:1]) })
	h.end(t, h.commit)
	waitFor(t, func() bool { return len(waiting()) == 0 })
}

// TestWithinSweeps: what comes due of a task that is held waits, and nothing else does.
func TestWithinSweeps(t *testing.T) {
	t.Parallel()
	url := emptied(t)(t)
	sweepsPass(t, newShop(t, url, url))
}

// sweepsPass has the shop hold one of two tasks that come due.
func sweepsPass(t *testing.T, s *shop) {
	ctx := t.Context()
	late := parcel
	late.Promised = time.Now()
	hers := must(s.svc.CreateTask(ctx, late))(t)
	h := byPgx(t, s, "")
	must(s.svc.Within(h).UpdateTask(ctx, hers.ID, tracking.TaskUpdate{Notes: new("hers")}))(t)
	theirs := must(s.svc.CreateTask(ctx, late))(t)
	due := must(s.store.Due(ctx, tracking.DueQuery{
		Kind: tracking.DueTasks, Before: time.Now(), Limit: 10, Claim: tracking.Claim{Owner: "another process", For: 1},
	}))(t)
	if len(due) != 1 || due[0].Subject != subjectOf(theirs) {
		t.Errorf("a sweep is given %+v, want what nobody holds", due)
	}

	s.run(t)
	hearsLate := func(id tracking.TaskID) {
		t.Helper()
		for {
			if e := s.hears(t); e.Type == tracking.EventTaskLate {
				if e.Subject.ID != string(id) {
					t.Errorf("the task that is told to be late is %s, want %s", e.Subject.ID, id)
				}
				return
			}
		}
	}
	hearsLate(theirs.ID)
	h.end(t, h.commit)
	hearsLate(hers.ID)
}

// A task is made anew while somebody deletes the one that had its id: it waits for him, and gets a version
// that none of the id has had.
func TestFreshTaskWaitsForDeletion(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	s := open(t, url, nil)
	defer s.Close()
	for _, id := range []string{"old", "other"} {
		if _, err := s.Commit(t.Context(), app, newTask(id)); err != nil {
			t.Fatal(err)
		}
	}
	deletes := connect(t, url)
	execute(t, deletes, "BEGIN")
	execute(t, deletes, "DELETE FROM tracking.tasks WHERE id = 'old'")
	execute(t, deletes, "UPDATE tracking.apps SET last_version = 7")
	cs := newTask("old")
	cs.Tasks = append(newTask("new").Tasks, cs.Tasks...)
	cs.Events = nil
	answer := meanwhile(func() (tracking.Written, error) { return s.Commit(t.Context(), app, cs) })
	awaitLock(t, url, "tracking.tasks")
	execute(t, deletes, "COMMIT")
	given, err := answer()
	if err != nil {
		t.Fatal(err)
	}
	for i, g := range given.Tasks {
		task, err := s.Task(t.Context(), app, cs.Tasks[i].ID)
		if err != nil || g.Version != 8 || task.Version != 8 || task.Seq != g.Seq {
			t.Errorf("%s: given %+v, kept version %d, seq %d, error %v", cs.Tasks[i].ID, g, task.Version, task.Seq, err)
		}
	}
}
