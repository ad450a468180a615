package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

func storeChecks() []check {
	return []check{
		{"Store/reads of one row that is not there are ErrNotFound, lists are nil", func(t testing.TB, s tracking.Store) {
			for _, call := range calls() {
				got, err := call.do(t.Context(), s, here)
				if err != nil && !errors.Is(err, tracking.ErrNotFound) && !errors.Is(err, tracking.ErrConflict) {
					t.Errorf("%s on an empty store: %v", call.name, err)
				}
				if call.found == nothing && err != nil {
					t.Errorf("%s on an empty store: got error %v, want none", call.name, err)
				}
				if call.found == notFound {
					missing(t, call.name+" on an empty store", err)
				}
				if call.found == nothing && !empty(got) {
					t.Errorf("%s on an empty store: got %+v, want nothing", call.name, got)
				}
			}
		}},
		{"Store/calls with a context that has ended return its error", func(t testing.TB, s tracking.Store) {
			use(t, s, here).commit(seed())
			before := snap(t, s, here)
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			for _, call := range calls() {
				if _, err := call.do(ctx, s, here); !errors.Is(err, context.Canceled) {
					t.Errorf("%s: got error %v, want %v", call.name, err, context.Canceled)
				}
			}
			same(t, "rows", snap(t, s, here), before)
		}},
		{"Store/calls after Close return ErrUnavailable", func(t testing.TB, s tracking.Store) {
			use(t, s, here).commit(seed())
			if err := s.Close(); err != nil {
				t.Fatalf("Close: %v", err)
			}
			for _, call := range calls() {
				if _, err := call.do(t.Context(), s, here); !errors.Is(err, tracking.ErrUnavailable) {
					t.Errorf("%s: got error %v, want ErrUnavailable", call.name, err)
				}
			}
		}},
		{"Secret/has 32 bytes and stays the same", func(t testing.TB, s tracking.Store) {
			first, err := s.Secret(t.Context())
			if err != nil || len(first) != 32 || bytes.Equal(first, make([]byte, 32)) {
				t.Fatalf("Secret: got %d bytes, error %v; want 32 random ones", len(first), err)
			}
			was := bytes.Clone(first)
			clear(first)
			again, err := s.Secret(t.Context())
			if err != nil || !bytes.Equal(again, was) {
				t.Errorf("Secret: got another one the second time (error %v)", err)
			}
		}},
	}
}

// pages reads a list page by page and expects want, and more on every page but the last.
func pages[T any](t testing.TB, what string, want []T, limit int, read func(tracking.Page) ([]T, bool)) {
	t.Helper()
	var got []T
	for n := 1; ; n++ {
		list, more := read(tracking.Page{Number: n, Limit: limit})
		got = append(got, list...)
		if wantMore := n*limit < len(want); more != wantMore {
			t.Errorf("%s, page %d of %d a page: more is %v, want %v", what, n, limit, more, wantMore)
		}
		if !more || n > len(want) {
			break
		}
	}
	same(t, fmt.Sprintf("%s, %d a page", what, limit), got, want)
	list, more := read(tracking.Page{Number: len(want)/limit + 2, Limit: limit})
	if list != nil || more {
		t.Errorf("%s, past the end: got %d rows (nil: %v), more %v; want nil", what, len(list), list == nil, more)
	}
}

func taskChecks() []check {
	// seed makes 24 tasks: two drivers and none, four states, three orders; every fourth has the CreatedAt of the one before.
	seed := func(t testing.TB, s tracking.Store) (*client, []tracking.Task) {
		c := use(t, s, here)
		var tasks []tracking.Task
		for i := range 24 {
			task := newTask(tracking.TaskID(fmt.Sprint(i)), at(time.Duration(i-i%4/3)*time.Minute))
			task.DriverID = []tracking.DriverID{"", "d", "e"}[i%3]
			task.Status = []tracking.TaskStatus{tracking.StatusCreated, tracking.StatusAssigned, tracking.StatusInProgress, tracking.StatusCompleted}[i%4]
			task.OrderID = []string{"", "#1", "#1 ", "#2", "#01"}[i%5]
			if task.Status == tracking.StatusCompleted {
				task.CompletedAt = at(time.Duration(100-i) * time.Minute)
			}
			tasks = append(tasks, task)
		}
		for i := 0; i < len(tasks); i += 6 { // in four changesets
			c.commit(tracking.Changeset{Tasks: tasks[i : i+6]})
		}
		return c, tasks
	}
	return []check{
		{"Tasks/lists newest first, page by page, by each filter", func(t testing.TB, s tracking.Store) {
			c, tasks := seed(t, s)
			for _, f := range []tracking.TaskFilter{
				{},
				{DriverID: "d"}, {DriverID: "nobody"},
				{Status: []tracking.TaskStatus{tracking.StatusAssigned}},
				{Status: []tracking.TaskStatus{tracking.StatusInProgress, tracking.StatusCreated}},
				{Status: []tracking.TaskStatus{tracking.StatusCreated, tracking.StatusCreated}},
				{Status: []tracking.TaskStatus{"none"}},
				{Status: []tracking.TaskStatus{}},
				{OrderID: "#1"}, {OrderID: "#3"},
				{CompletedSince: at(89 * time.Minute)},
				{CompletedSince: at(24 * time.Hour)},
				{DriverID: "e", Status: []tracking.TaskStatus{tracking.StatusCompleted, tracking.StatusAssigned}},
				{DriverID: "d", Status: []tracking.TaskStatus{tracking.StatusCompleted}, CompletedSince: at(85 * time.Minute), OrderID: "#2"},
				{DriverID: "d", OrderID: "#1"},
			} {
				var want []tracking.TaskID
				for i := len(tasks) - 1; i >= 0; i-- {
					task := tasks[i]
					status := len(f.Status) == 0
					for _, st := range f.Status {
						status = status || task.Status == st
					}
					if status && (f.DriverID == "" || f.DriverID == task.DriverID) && (f.OrderID == "" || f.OrderID == task.OrderID) &&
						(f.CompletedSince.IsZero() || !task.CompletedAt.Before(f.CompletedSince)) {
						want = append(want, task.ID)
					}
				}
				for _, limit := range []int{1, 4, 24, 1000} {
					pages(t, fmt.Sprintf("tasks by %+v", f), want, limit, func(p tracking.Page) ([]tracking.TaskID, bool) {
						f.Page = p
						list, more := c.tasks(f)
						return each(list, taskID), more
					})
				}
			}
		}},
		{"Tasks/a changed task is found by its new values only", func(t testing.TB, s tracking.Store) {
			c, _ := seed(t, s)
			task := c.task("4") // of d, created
			task.DriverID, task.Status, task.OrderID, task.CompletedAt = "f", "other", "#9", at(200*time.Minute)
			c.commit(tracking.Changeset{Tasks: []tracking.Task{task}})
			task.Version++
			for _, f := range []tracking.TaskFilter{
				{DriverID: "f"}, {Status: []tracking.TaskStatus{"other"}}, {OrderID: "#9"}, {CompletedSince: at(200 * time.Minute)},
				{DriverID: "f", Status: []tracking.TaskStatus{"other"}},
			} {
				list, more := c.tasks(f)
				same(t, fmt.Sprintf("tasks by %+v", f), list, []tracking.Task{task})
				same(t, "more", more, false)
			}
			for _, f := range []tracking.TaskFilter{
				{DriverID: "d"}, {Status: []tracking.TaskStatus{tracking.StatusCreated}}, {OrderID: "#01"},
				{DriverID: "d", Status: []tracking.TaskStatus{tracking.StatusCreated}}, {DriverID: "f", Status: []tracking.TaskStatus{tracking.StatusCreated}},
			} {
				list, _ := c.tasks(f)
				for _, got := range list {
					if got.ID == "4" {
						t.Errorf("tasks by %+v: still found by what it was", f)
					}
				}
			}
		}},
		{"TaskByKey/finds the task of that key", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			task := newTask("a", t0)
			task.Key, task.KeySum = "k", hash(1)
			c.commit(tracking.Changeset{Tasks: []tracking.Task{task, newTask("b", t0)}})
			got, err := s.TaskByKey(c.ctx, here, "k")
			c.ok(err)
			same(t, "task", got, c.task("a"))
			for _, key := range []string{"", "K", "k "} {
				_, err := s.TaskByKey(c.ctx, here, key)
				missing(t, fmt.Sprintf("TaskByKey(%q)", key), err)
			}
		}},
		{"TaskByLink/finds the task of any application, until the link is revoked", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			task := newTask("a", t0)
			task.Link = tracking.Link{Generation: 1, Hash: hash(1), MadeAt: t0}
			c.commit(tracking.Changeset{Tasks: []tracking.Task{task, newTask("no link", t0)}})
			app, got, err := s.TaskByLink(c.ctx, hash(1))
			c.ok(err)
			same(t, "application", app, here)
			same(t, "task", got, c.task("a"))
			_, _, err = s.TaskByLink(c.ctx, hash(2))
			missing(t, "TaskByLink of an unknown hash", err)
			_, _, err = s.TaskByLink(c.ctx, tracking.Hash{})
			missing(t, "TaskByLink of the zero hash", err)
			_, _, err = s.TripByLink(c.ctx, hash(1))
			missing(t, "TripByLink of a task's hash", err)
			got.Link = tracking.Link{Generation: 2}
			c.commit(tracking.Changeset{Tasks: []tracking.Task{got}})
			_, _, err = s.TaskByLink(c.ctx, hash(1))
			missing(t, "TaskByLink of a revoked link", err)
			_, _, err = s.TaskByLink(c.ctx, tracking.Hash{})
			missing(t, "TaskByLink of the zero hash", err)
		}},
	}
}

func tripChecks() []check {
	return []check{
		{"Trips/lists newest first, page by page, by each filter", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			var trips []tracking.Trip
			for i := range 18 {
				trip := newTrip(tracking.TripID(fmt.Sprint(i)), tracking.DriverID(fmt.Sprint("d", i%2)), tracking.TrackingID(fmt.Sprint("x", i%6)), at(time.Duration(i/2)*time.Minute))
				if trip.Status = tracking.TripStatus(i%3 + 1); trip.Status == tracking.Active && i > 5 {
					trip.Status = tracking.Stopped
				}
				trips = append(trips, trip)
			}
			c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d0", t0), newDriver("d1", t0)}, Trips: trips[:9]})
			c.commit(tracking.Changeset{Trips: trips[9:]})
			moved := c.trip("3") // active till now
			moved.Status, moved.DriverID, moved.TrackingID = tracking.Discarded, "d7", "x7"
			c.commit(tracking.Changeset{Trips: []tracking.Trip{moved}})
			trips[3] = moved
			for _, f := range []tracking.TripFilter{
				{}, {Status: tracking.Active}, {Status: tracking.Stopped}, {Status: tracking.Discarded}, {Status: 4},
				{DriverID: "d0"}, {DriverID: "d7"}, {DriverID: "nobody"}, {TrackingID: "x3"}, {TrackingID: "x7"}, {TrackingID: "X1"},
				{DriverID: "d1", Status: tracking.Stopped}, {DriverID: "d1", TrackingID: "x1", Status: tracking.Stopped},
			} {
				var want []tracking.TripID
				for i := len(trips) - 1; i >= 0; i-- {
					if tr := trips[i]; (f.Status == 0 || f.Status == tr.Status) && (f.DriverID == "" || f.DriverID == tr.DriverID) && (f.TrackingID == "" || f.TrackingID == tr.TrackingID) {
						want = append(want, tr.ID)
					}
				}
				for _, limit := range []int{1, 5, 1000} {
					pages(t, fmt.Sprintf("trips by %+v", f), want, limit, func(p tracking.Page) ([]tracking.TripID, bool) {
						f.Page = p
						list, more := c.trips(f)
						return each(list, tripID), more
					})
				}
			}
		}},
		{"ActiveTrip/finds the active one among those of the tracking id", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			var trips []tracking.Trip
			for i := range 5 {
				trip := newTrip(tracking.TripID(fmt.Sprint(i)), "d", "x", at(time.Duration(i)*time.Minute))
				if i != 2 {
					trip.Status, trip.EndedAt = tracking.Stopped, trip.StartedAt
				}
				trips = append(trips, trip)
			}
			c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0)}, Trips: trips})
			got, err := s.ActiveTrip(c.ctx, here, "x")
			c.ok(err)
			same(t, "trip", got, c.trip("2"))
			for _, id := range []tracking.TrackingID{"X", "x ", "y"} {
				_, err = s.ActiveTrip(c.ctx, here, id)
				missing(t, fmt.Sprintf("ActiveTrip(%q)", id), err)
			}
		}},
		{"TripByLink/finds the trip of any application, until the link is revoked", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			trip := newTrip("a", "d", "x", t0)
			trip.Link = tracking.Link{Generation: 1, Hash: hash(1), MadeAt: t0}
			c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0)}, Trips: []tracking.Trip{trip, newTrip("no link", "d", "y", t0)}})
			app, got, err := s.TripByLink(c.ctx, hash(1))
			c.ok(err)
			same(t, "application", app, here)
			same(t, "trip", got, c.trip("a"))
			_, _, err = s.TripByLink(c.ctx, tracking.Hash{})
			missing(t, "TripByLink of the zero hash", err)
			_, _, err = s.TaskByLink(c.ctx, hash(1))
			missing(t, "TaskByLink of a trip's hash", err)
			got.Link = tracking.Link{Generation: 2, Hash: hash(2), MadeAt: at(time.Hour)}
			c.commit(tracking.Changeset{Trips: []tracking.Trip{got}})
			_, _, err = s.TripByLink(c.ctx, hash(1))
			missing(t, "TripByLink of the older generation", err)
			_, again, err := s.TripByLink(c.ctx, hash(2))
			c.ok(err)
			same(t, "trip", again, c.trip("a"))
		}},
		{"Requests/lists a driver's, oldest first and then by tracking id", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0), newDriver("e", t0)}, Push: []tracking.Request{
				newRequest("d", "c", t0), newRequest("d", "B", t0), newRequest("e", "a", t0), newRequest("d", "a", t0), newRequest("d", "0", at(time.Second)), newRequest("d", "z", at(-time.Second)),
			}})
			same(t, "requests", each(c.requests("d"), func(r tracking.Request) tracking.TrackingID { return r.TrackingID }), []tracking.TrackingID{"z", "B", "a", "c", "0"})
			same(t, "requests of another", c.requests("e"), []tracking.Request{newRequest("e", "a", t0)})
			got, err := s.Request(c.ctx, here, tracking.RequestID{DriverID: "e", TrackingID: "a"})
			c.ok(err)
			same(t, "request", got, newRequest("e", "a", t0))
			_, err = s.Request(c.ctx, here, tracking.RequestID{DriverID: "e", TrackingID: "b"})
			missing(t, "Request", err)
		}},
	}
}

func inviteChecks() []check {
	return []check{
		{"InviteByHash/finds by the link's and the code's hash, used ones too", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			i := newInvite("d", 1, 2)
			i.JoinedAt, i.NonceHash, i.Generation = at(time.Minute), hash(3), 4
			bare := tracking.Invite{DriverID: "e", CreatedAt: t0}
			c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0), newDriver("e", t0)}, Invites: []tracking.Invite{i, bare}})
			for _, h := range []tracking.Hash{i.LinkHash, i.CodeHash} {
				app, got, err := s.InviteByHash(c.ctx, h)
				c.ok(err)
				same(t, "application", app, here)
				same(t, "invite", got, c.invite("d"))
			}
			for _, h := range []tracking.Hash{{}, hash(3), hash(9)} {
				_, _, err := s.InviteByHash(c.ctx, h)
				missing(t, "InviteByHash", err)
			}
		}},
		{"Keys/lists oldest first and then by ID, revoked ones included", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			revoked := newKey("c", 1, t0)
			revoked.RevokedAt = at(time.Hour)
			c.commit(tracking.Changeset{Keys: []tracking.Key{revoked, newKey("B", 2, t0), newKey("a", 3, t0), newKey("z", 4, at(-time.Hour)), newKey("0", 5, at(time.Hour))}})
			same(t, "keys", each(c.keys(), func(k tracking.Key) string { return k.ID }), []string{"z", "B", "a", "c", "0"})
			app, got, err := s.KeyByHash(c.ctx, hash(1))
			c.ok(err)
			same(t, "application", app, here)
			revoked.Version = 1
			same(t, "key", got, revoked)
			for _, h := range []tracking.Hash{{}, hash(9)} {
				_, _, err = s.KeyByHash(c.ctx, h)
				missing(t, "KeyByHash", err)
			}
		}},
		{"KeyByHash/follows a changed hash", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			c.commit(tracking.Changeset{Keys: []tracking.Key{newKey("a", 1, t0)}})
			k := c.keys()[0]
			k.Hash = hash(2)
			c.commit(tracking.Changeset{Keys: []tracking.Key{k}})
			_, _, err := s.KeyByHash(c.ctx, hash(1))
			missing(t, "KeyByHash of the old hash", err)
			_, got, err := s.KeyByHash(c.ctx, hash(2))
			c.ok(err)
			same(t, "key", got.ID, "a")
			c.commit(tracking.Changeset{Keys: []tracking.Key{newKey("b", 1, t0)}})
		}},
	}
}
