package storetest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/seed-8aba7b13/tracking"
)

// crowdChecks let many want the same.
func crowdChecks() []check {
	return []check{
		{"50 assign one task to 50 drivers", fiftyAssignOneTask},
		{"150 tasks at once for 100 drivers who take one each", moreTasksThanDrivers},
		{"a full van goes over in one changeset, though all want it", fullVanGoesOver},
	}
}

// fiftyAssignOneTask reads afterwards what each driver was told: one has the task, and the others
// had and lost it.
func fiftyAssignOneTask(t testing.TB, s tracking.Store) {
	svcs := several(t, s, 2, tracking.Options{})
	drivers := standBy(t, svcs[0], 50)
	task, err := svcs[0].CreateTask(t.Context(), dropHere(false))
	if err != nil {
		t.Fatal(err)
	}
	err = together(t, len(drivers), func(ctx context.Context, i int) error {
		_, err := svcs[i%2].AssignTask(ctx, task.ID, drivers[i])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := Invariants(t.Context(), s, 1, here); err != nil {
		t.Fatal(err)
	}
	task, err = svcs[0].Task(t.Context(), task.ID)
	if err != nil || task.Status != tracking.StatusAssigned {
		t.Fatalf("the task is %s, error %v", task.Status, err)
	}
	for _, id := range drivers {
		list, _, err := s.Notices(t.Context(), here, id, 0, math.MaxInt32)
		if err != nil {
			t.Fatal(err)
		}
		want := []tracking.NoticeKind{tracking.NoticeAssigned, tracking.NoticeUnassigned}
		if id == task.DriverID {
			want = want[:1]
		}
		same(t, fmt.Sprintf("what %s was told", id),
			each(list, func(n tracking.Notice) tracking.NoticeKind { return n.Kind }), want)
	}
}

// moreTasksThanDrivers creates tasks from two Services at once.
func moreTasksThanDrivers(t testing.TB, s tracking.Store) {
	svcs := several(t, s, 2, tracking.Options{MaxOpenTasks: 1})
	standBy(t, svcs[0], 100)
	err := together(t, 150, func(ctx context.Context, i int) error {
		_, err := svcs[i%2].CreateTask(ctx, dropHere(true))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := svcs[0].AssignWaiting(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := Invariants(t.Context(), s, 1, here); err != nil {
		t.Fatal(err)
	}
	c := use(t, s, here)
	assigned, _ := c.tasks(tracking.TaskFilter{Status: []tracking.TaskStatus{tracking.StatusAssigned}})
	waiting := c.waiting(tracking.WaitingFilter{})
	busy := map[tracking.DriverID]bool{}
	for _, task := range assigned {
		busy[task.DriverID] = true
	}
	events, _ := c.events(tracking.EventFilter{})
	told := 0
	for _, e := range events {
		if e.Type == tracking.EventTaskAssigned {
			told++
		}
	}
	same(t, "assigned, their drivers, events of it, waiting", []int{len(assigned), len(busy), told, len(waiting)},
		[]int{100, 100, 100, 50})
}

// fullVanGoesOver hands over what a driver has with a full route, half of it under way, to one who
// others want to have it too.
func fullVanGoesOver(t testing.TB, s tracking.Store) {
	count := &tally{Store: s}
	svcs := several(t, count, 4, tracking.Options{MaxOpenTasks: -1})
	drivers := standBy(t, svcs[0], 4)
	pickups := tracking.MaxStops
	if !long() {
		pickups = briefly(200)
	}
	for i := range pickups {
		task, err := svcs[0].CreateTask(t.Context(), dropHere(false))
		if err == nil {
			_, err = svcs[0].AssignTask(t.Context(), task.ID, drivers[0])
		}
		if err == nil && i%2 == 1 {
			_, _, err = svcs[0].StartTask(t.Context(), drivers[0], task.ID, tracking.Step{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	before := use(t, s, here).driver(drivers[0]).Route
	var moved [4]int
	err := together(t, 3, func(ctx context.Context, i int) error {
		list, err := svcs[i].HandOver(ctx, tracking.HandOverRequest{From: drivers[0], To: drivers[i+1], Force: true})
		moved[i+1] = len(list)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := Invariants(t.Context(), s, -1, here); err != nil {
		t.Fatal(err)
	}
	for i, d := range drivers {
		route := use(t, s, here).driver(d).Route
		same(t, "stops of "+string(d), len(route), moved[i])
		if len(route) > 0 {
			same(t, "the stops of who has the van", route, before)
		}
	}
	last := slices.Index(moved[:], pickups)
	if last < 0 {
		t.Fatalf("nobody has all of it: %v", moved)
	}
	to := drivers[1+last%3]
	count.forget()
	list, err := svcs[0].HandOver(t.Context(), tracking.HandOverRequest{From: drivers[last], To: to})
	same(t, "tasks handed over again", len(list), pickups)
	same(t, "changesets", count.commits.Load(), 1)
	if err != nil {
		t.Error(err)
	}
}

// several makes Services of their own over one store, as in several processes: what one of them
// locks does not bind the others.
func several(t testing.TB, s tracking.Store, n int, opts tracking.Options) []*tracking.Service {
	c := &clock{at: t0}
	opts.Now = c.now
	var list []*tracking.Service
	for range n {
		list = append(list, service(t, &patient{s}, opts).ForApp(here))
	}
	return list
}

// standBy makes drivers who are available at one place.
func standBy(t testing.TB, svc *tracking.Service, n int) []tracking.DriverID {
	t.Helper()
	yes := true
	var ids []tracking.DriverID
	for i := range n {
		id := tracking.DriverID(fmt.Sprintf("driver %03d", i))
		if _, err := svc.SaveDriver(t.Context(), tracking.DriverUpdate{
			ID: id, Available: &yes, LngLat: &tracking.LngLat{Lng: 11 + float64(i)*0.0001, Lat: 48},
		}); err != nil {
			t.Fatalf("SaveDriver: %v", err)
		}
		ids = append(ids, id)
	}
	return ids
}

func dropHere(auto bool) tracking.NewTask {
	return tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: &tracking.LngLat{Lng: 11, Lat: 48}}, AutoAssign: auto,
	}
}
