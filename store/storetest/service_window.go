package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// windowChecks are about tasks whose time comes: that a driver is looked for from then on, and that
// who is late is told of once.
func windowChecks() []check {
	return []check{
		{"a task for later is no waiting task until its time has come", taskForLaterDoesNotWait},
		{"many whose time comes at once are marked in few changesets", manyAreMarkedInFewChangesets},
		{"sweeps at once tell of each late task once", sweepsAtOnceTellOnce},
		{"tasks whose time comes are assigned, moved and cancelled at once", dueTasksUnderManyHands},
	}
}

func taskForLaterDoesNotWait(t testing.TB, s tracking.Store) {
	svc, c := beginAt(t, s, t0, tracking.Options{})
	putOnDuty(t, svc, nil)
	n := dropHere(true)
	n.Window.From = at(3 * time.Hour)
	task, err := svc.CreateTask(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	store := use(t, s, here)
	due := tracking.DueQuery{Kind: tracking.DueTasks, Before: at(2*time.Hour - time.Millisecond)}
	same(t, "due before its time", store.due(due), nil)
	due.Before = at(2 * time.Hour)
	same(t, "due at its time", store.due(due), []tracking.Due{{App: here, Subject: tracking.Subject{
		Kind: tracking.KindTask, ID: string(task.ID),
	}}})
	same(t, "waiting before its time", len(store.waiting(tracking.WaitingFilter{})), 0)
	c.forward(2 * time.Hour)
	if n, err := svc.MarkDueTasks(t.Context()); n != 1 || err != nil {
		t.Errorf("%d tasks were marked, error %v; want 1", n, err)
	}
	same(t, "waiting at its time", taskIDs(store.waiting(tracking.WaitingFilter{})), []tracking.TaskID{task.ID})
	same(t, "due afterwards", store.due(due), nil)
	if err := Invariants(t.Context(), s, 1, here); err != nil {
		t.Error(err)
	}
}

// comingDue makes n tasks of which half wait for a driver from an hour on, and all are promised by
// then.
func comingDue(t testing.TB, svc *tracking.Service, n int) (ids []tracking.TaskID) {
	t.Helper()
	for i := range n {
		create := dropHere(true)
		create.Promised = at(time.Hour)
		if i%2 == 0 {
			create.Window.From = at(2 * time.Hour)
		}
		task, err := svc.CreateTask(t.Context(), create)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, task.ID)
	}
	return ids
}

func manyAreMarkedInFewChangesets(t testing.TB, s tracking.Store) {
	const n = 200
	count := &tally{Store: s}
	svc, c := beginAt(t, count, t0, tracking.Options{})
	comingDue(t, svc, n)
	c.forward(time.Hour)
	count.forget()
	marked := 0
	for {
		some, err := svc.MarkDueTasks(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if marked += some; some == 0 {
			break
		}
	}
	if marked != n || count.commits.Load() > n/50 {
		t.Errorf("%d tasks were marked by %d commits, want %d by %d", marked, count.commits.Load(), n, n/50)
	}
	same(t, "waiting afterwards", len(use(t, s, here).waiting(tracking.WaitingFilter{})), n)
}

func sweepsAtOnceTellOnce(t testing.TB, s tracking.Store) {
	const n = 120
	svc, c := beginAt(t, s, t0, tracking.Options{})
	other := service(t, s, tracking.Options{Now: c.now}).ForApp(here)
	ids := comingDue(t, svc, n)
	c.forward(time.Hour)
	err := together(t, 6, func(ctx context.Context, i int) error {
		for {
			n, err := []*tracking.Service{svc, other}[i%2].MarkDueTasks(ctx)
			if err != nil || n == 0 {
				return err
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]int{}
	events, _ := use(t, s, here).events(tracking.EventFilter{})
	for _, e := range events {
		if e.Type == tracking.EventTaskLate {
			told[e.Subject.ID]++
		}
	}
	for _, id := range ids {
		if told[string(id)] != 1 {
			t.Errorf("of task %s was told %d times", id, told[string(id)])
		}
	}
	if err := Invariants(t.Context(), s, 1, here); err != nil {
		t.Error(err)
	}
}

func dueTasksUnderManyHands(t testing.TB, s tracking.Store) {
	const n = 60
	c := &clock{at: t0}
	var svcs []*tracking.Service
	for range 2 {
		svcs = append(svcs, service(t, &patient{s}, tracking.Options{Now: c.now, MaxOpenTasks: 2}).ForApp(here))
	}
	drivers := standBy(t, svcs[0], 10)
	ids := comingDue(t, svcs[0], n)
	c.forward(time.Hour)
	for _, d := range drivers { // they are still there
		if _, err := svcs[0].RecordFixes(t.Context(), d, nil); err != nil {
			t.Fatal(err)
		}
	}
	err := together(t, 8, func(ctx context.Context, i int) error {
		svc := svcs[i%2]
		for k, id := range ids {
			var err error
			switch (i + k) % 6 {
			case 0:
				_, err = svc.MarkDueTasks(ctx)
			case 1:
				_, err = svc.AssignWaiting(ctx)
			case 2:
				_, err = svc.AssignTask(ctx, id, drivers[k%len(drivers)])
			case 3:
				_, err = svc.CancelTask(ctx, id, tracking.Reason{})
			case 4:
				_, err = svc.UpdateTask(ctx, id, tracking.TaskUpdate{
					Window: &tracking.Window{From: at(time.Duration(i) * time.Hour), To: at(10 * time.Hour)},
				})
			case 5:
				_, err = svc.UnassignTask(ctx, id)
			}
			if err != nil && !errors.Is(err, tracking.ErrConflict) {
				return fmt.Errorf("hand %d: %w", i, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := Invariants(t.Context(), s, 2, here); err != nil {
		t.Error(err)
	}
}
