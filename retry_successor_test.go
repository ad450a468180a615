package tracking_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// TestRetryMeansWhoWasRead: while a verb decides, its driver is erased, and somebody else gets his
// id and his work. Tried again, it does nothing to that one.
func TestRetryMeansWhoWasRead(t *testing.T) {
	for name, verb := range map[string]func(w *world, assigned, started tracking.TaskID, trip tracking.TripID) error{
		"SetAvailability": func(w *world, _, _ tracking.TaskID, _ tracking.TripID) error {
			_, err := w.SetAvailability(w.ctx, "d7", false, time.Time{})
			return err
		},
		"StartTask": func(w *world, a, _ tracking.TaskID, _ tracking.TripID) error {
			_, _, err := w.StartTask(w.ctx, "d7", a, tracking.Step{})
			return err
		},
		"StartTrip, a task's": func(w *world, a, _ tracking.TaskID, _ tracking.TripID) error {
			_, err := w.StartTrip(w.ctx, "d7", tracking.TrackingID(a), tracking.Step{})
			return err
		},
		"StartTrip": func(w *world, _, _ tracking.TaskID, _ tracking.TripID) error {
			_, err := w.StartTrip(w.ctx, "d7", "another", tracking.Step{})
			return err
		},
		"DeclineTask": func(w *world, a, _ tracking.TaskID, _ tracking.TripID) error {
			_, err := w.DeclineTask(w.ctx, "d7", a, tracking.Reason{}, tracking.Step{})
			return err
		},
		"PickUpTask": func(w *world, _, s tracking.TaskID, _ tracking.TripID) error {
			_, err := w.PickUpTask(w.ctx, "d7", s, tracking.Step{})
			return err
		},
		"FinishTask": func(w *world, _, s tracking.TaskID, _ tracking.TripID) error {
			_, err := w.FinishTask(w.ctx, "d7", s, tracking.Completion{}, tracking.Step{})
			return err
		},
		"StopTrip": func(w *world, _, _ tracking.TaskID, trip tracking.TripID) error {
			_, err := w.StopTrip(w.ctx, "d7", trip, tracking.Step{})
			return err
		},
		"DeleteDriver": func(w *world, _, _ tracking.TaskID, _ tracking.TripID) error {
			return w.ForceDeleteDriver(w.ctx, "d7")
		},
		"RevokeTokens": func(w *world, _, _ tracking.TaskID, _ tracking.TripID) error {
			return w.RevokeTokens(w.ctx, "d7")
		},
		"RequestTrip": func(w *world, _, _ tracking.TaskID, _ tracking.TripID) error {
			return w.RequestTrip(w.ctx, tracking.NewRequest{DriverID: "d7", TrackingID: "asked"})
		},
		"AssignTask": func(w *world, _, _ tracking.TaskID, _ tracking.TripID) error {
			_, err := w.AssignTask(w.ctx, w.create(false).ID, "d7")
			return err
		},
		"UndoTask": func(w *world, _, s tracking.TaskID, _ tracking.TripID) error {
			_, _, err := w.UndoTask(w.ctx, "d7", s, "", tracking.Step{})
			return err
		},
		"HandOver": func(w *world, a, _ tracking.TaskID, _ tracking.TripID) error {
			_, err := w.HandOver(w.ctx, tracking.HandOverRequest{From: "d7", To: "other", Tasks: []tracking.TaskID{a}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := &between{Store: memory.New()}
			w := newWorldOn(t, store)
			// another process, which waits for no lock of this one
			two, err := tracking.New(store.Store, &tracking.Options{Now: w.now})
			if err != nil {
				t.Fatal(err)
			}
			both := func() (assigned, started tracking.TaskID) {
				for _, id := range []*tracking.TaskID{&assigned, &started} {
					*id = must(two.CreateTask(w.ctx, tracking.NewTask{
						Type: tracking.TypePickupAndDrop, Pickup: &tracking.Place{LngLat: east(100)},
						Drop: &tracking.Place{LngLat: east(200)},
					}))(t).ID
				}
				return assigned, started
			}
			work := func(assigned, started tracking.TaskID) tracking.TripID {
				must(two.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "d7", Available: new(true), LngLat: east(0)}))(t)
				inv := must(two.InviteDriver(w.ctx, tracking.NewInvite{DriverID: "d7"}))(t)
				must(two.Join(w.ctx, tracking.JoinRequest{Token: inv.Token}))(t)
				must(two.AssignTask(w.ctx, assigned, "d7"))(t)
				must(two.AssignTask(w.ctx, started, "d7"))(t)
				if _, _, err := two.StartTask(w.ctx, "d7", started, tracking.Step{}); err != nil {
					t.Fatal(err)
				}
				return must(two.StartTrip(w.ctx, "d7", "x", tracking.Step{}))(t).ID
			}
			state := func() (all []any) {
				tasks, _, err := two.Tasks(w.ctx, tracking.TaskFilter{DriverID: "d7"})
				trips, _, err2 := two.Trips(w.ctx, tracking.TripFilter{DriverID: "d7"})
				requests, err3 := two.Requests(w.ctx, "d7")
				notices, _, err4 := two.Notices(w.ctx, "d7", 0, 0)
				if err := errors.Join(err, err2, err3, err4); err != nil {
					t.Fatal(err)
				}
				return []any{must(two.Driver(w.ctx, "d7"))(t), tasks, trips, requests, notices}
			}
			must(two.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "other"}))(t)
			assigned, started := both()
			trip := work(assigned, started)
			var before []any
			store.then = func() {
				if err := two.ForceDeleteDriver(w.ctx, "d7"); err != nil {
					t.Fatal(err)
				}
				work(assigned, started)
				before = state()
			}
			if name == "AssignTask" { // its task is created by a commit of its own
				then := store.then
				store.then = func() { store.then = then }
			}
			if err := verb(w, assigned, started, trip); code(err) != tracking.ErrNotFound {
				t.Errorf("%v, want ErrNotFound", err)
			}
			if d := cmp.Diff(before, state()); d != "" {
				t.Errorf("of the next one (-before +after)\n%s", d)
			}
		})
	}
}
