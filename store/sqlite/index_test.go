package sqlite_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// A list is short only where there is nobody else: not where the index, a moment behind the rows, has
// some first who fit no more.
func TestNearestGoOnBehindThoseWhoFitNoMore(t *testing.T) {
	const app = "a"
	s := open(t, sqlite.Memory, nil)
	defer s.Close()
	at := tracking.LngLat{Lng: 13, Lat: 52}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var cs tracking.Changeset
	for i := range 6 {
		id := tracking.DriverID(fmt.Sprint("d", i))
		cs.Drivers = append(cs.Drivers, tracking.Driver{ID: id, Available: true, CreatedAt: now})
		fix := tracking.Fix{LngLat: tracking.LngLat{Lng: at.Lng + float64(i)/1000, Lat: at.Lat}, Time: now}
		cs.Fixes = append(cs.Fixes, tracking.FixBatch{
			DriverID: id, SeenAt: now, Latest: now.Add(time.Hour), Fixes: []tracking.Fix{fix},
		})
	}
	if _, err := s.Commit(t.Context(), app, &cs); err != nil {
		t.Fatal(err)
	}
	for _, id := range []tracking.DriverID{"d0", "d1", "d2"} {
		d, err := s.Driver(t.Context(), app, id)
		if err != nil {
			t.Fatal(err)
		}
		stale := d
		d.Available = false
		if _, err := s.Commit(t.Context(), app, &tracking.Changeset{Drivers: []tracking.Driver{d}}); err != nil {
			t.Fatal(err)
		}
		s.Index(app).Put(stale)
	}
	for limit, want := range map[int]string{1: "[d3]", 2: "[d3 d4]", 9: "[d3 d4 d5]"} {
		list, err := s.Offers(t.Context(), app, tracking.Offer{At: at, MaxOpen: 1, SeenSince: now, Limit: limit})
		if got := fmt.Sprint(ids(list)); err != nil || got != want {
			t.Errorf("%d offers: %s, %v, want %s", limit, got, err, want)
		}
		f := tracking.DriverFilter{Near: &at, Available: new(true), Page: tracking.Page{Limit: limit}}
		list, more, err := s.Drivers(t.Context(), app, f)
		if got := fmt.Sprint(ids(list)); err != nil || got != want || more != (limit < 3) {
			t.Errorf("%d nearest: %s, more: %t, %v, want %s", limit, got, more, err, want)
		}
	}
}

// So it is with the tasks that wait.
func TestWaitingGoOnBehindThoseThatWaitNoMore(t *testing.T) {
	const app = "a"
	s := open(t, sqlite.Memory, nil)
	defer s.Close()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var cs tracking.Changeset
	for i := range 6 {
		cs.Tasks = append(cs.Tasks, tracking.Task{
			ID: tracking.TaskID(fmt.Sprint("t", i)), Type: tracking.TypeDrop, Status: tracking.StatusCreated, Waiting: true,
			Drop: &tracking.Place{LngLat: &tracking.LngLat{Lng: 13, Lat: 52}}, CreatedAt: now.Add(time.Duration(i) * time.Second),
		})
	}
	cs.Drivers = []tracking.Driver{{ID: "d", Available: true, CreatedAt: now}}
	cs.Fixes = []tracking.FixBatch{{
		DriverID: "d", SeenAt: now, Latest: now.Add(time.Hour),
		Fixes: []tracking.Fix{{LngLat: tracking.LngLat{Lng: 13, Lat: 52}, Time: now}},
	}}
	if _, err := s.Commit(t.Context(), app, &cs); err != nil {
		t.Fatal(err)
	}
	for _, id := range []tracking.TaskID{"t0", "t1", "t2"} {
		task, err := s.Task(t.Context(), app, id)
		if err != nil {
			t.Fatal(err)
		}
		stale := task.Clone()
		task.Waiting = false
		if _, err := s.Commit(t.Context(), app, &tracking.Changeset{Tasks: []tracking.Task{task}}); err != nil {
			t.Fatal(err)
		}
		s.Index(app).PutTask(stale)
	}
	for limit, want := range map[int]string{1: "[t3]", 2: "[t3 t4]", 9: "[t3 t4 t5]"} {
		list, err := s.Waiting(t.Context(), app, tracking.WaitingFilter{Driver: "d", Limit: limit})
		if got := fmt.Sprint(tasksOf(list)); err != nil || got != want {
			t.Errorf("%d waiting: %s, %v, want %s", limit, got, err, want)
		}
		q := tracking.MatchQuery{MaxOpen: -1, SeenSince: now, Limit: limit}
		list, err = s.Matches(t.Context(), app, q)
		if got := fmt.Sprint(tasksOf(list)); err != nil || got != want {
			t.Errorf("%d matches: %s, %v, want %s", limit, got, err, want)
		}
	}
}

func tasksOf(list []tracking.Task) (ids []tracking.TaskID) {
	for _, t := range list {
		ids = append(ids, t.ID)
	}
	return ids
}

func ids(list []tracking.Driver) (ids []tracking.DriverID) {
	for _, d := range list {
		ids = append(ids, d.ID)
	}
	return ids
}
