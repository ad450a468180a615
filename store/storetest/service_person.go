package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// successorChecks use the id of an erased driver again.
func successorChecks() []check {
	return []check{
		{"a driver chosen for a task is erased and made again", chosenDriverIsErased},
		{"an invite is joined whose driver is erased, made and invited again", joinedDriverIsErased},
		{"a task is started that is completed meanwhile, its driver erased and made again",
			startedTaskIsCompletedMeanwhile},
		{"a task is started anew while it is completed", startMeetsACompletion},
		{"tokens of an erased driver stay dead", erasedTokensStayDead},
		{"trips and tasks of an erased driver are not the next one's", erasedTripsAndTasksStayApart},
		{"a request that another person is to get stays open", requestForTheNextStaysOpen},
		{"ForceDeleteDriver unassigns tasks and stops trips in one step", forcedDeletionIsOneStep},
	}
}

func chosenDriverIsErased(t testing.TB, s tracking.Store) {
	n := newSuccessor(t, s)
	old := n.save("Asha", true, 0)
	n.hook.first = func() {
		n.must(n.svc.DeleteDriver(t.Context(), "d7"))
		n.save("Ravi", false, old.Version)
	}
	task, err := n.slow.CreateTask(t.Context(), dropHere(true))
	n.must(err)
	if d := n.driver(); d.Name != "Ravi" || d.Available || len(d.Route) != 0 || task.Status != tracking.StatusCreated {
		t.Errorf("the new driver is %q, available %v, with %d open tasks; the task is %s", d.Name, d.Available,
			d.OpenTasks(), task.Status)
	}
}

func joinedDriverIsErased(t testing.TB, s tracking.Store) {
	n := newSuccessor(t, s)
	old := n.save("Asha", true, 0)
	invitation, err := n.svc.InviteDriver(t.Context(), tracking.NewInvite{DriverID: "d7"})
	n.must(err)
	n.hook.first = func() {
		n.must(n.svc.DeleteDriver(t.Context(), "d7"))
		n.save("Ravi", false, old.Version)
		_, err := n.svc.InviteDriver(t.Context(), tracking.NewInvite{DriverID: "d7"})
		n.must(err)
	}
	if _, err := n.slow.Join(t.Context(),
		tracking.JoinRequest{Token: invitation.Token}); !errors.Is(err, tracking.ErrNotFound) {
		t.Errorf("Join by the old invite: got error %v, want ErrNotFound", err)
	}
	if d := n.driver(); d.Name != "Ravi" || !d.AppToken.IsZero() || !d.IngestToken.IsZero() {
		t.Errorf("the new driver is %q, has joined: %v", d.Name, !d.AppToken.IsZero())
	}
}

func startedTaskIsCompletedMeanwhile(t testing.TB, s tracking.Store) {
	n := newSuccessor(t, s)
	n.save("Asha", true, 0)
	task, err := n.svc.CreateTask(t.Context(), dropHere(true))
	n.must(err)
	_, trip, err := n.svc.StartTask(t.Context(), "d7", task.ID, tracking.Step{})
	n.must(err)
	_, err = n.svc.StopTrip(t.Context(), "d7", trip.ID, tracking.Step{})
	n.must(err)
	old := n.driver()
	n.hook.first = func() { // a new trip of the started task is on its way
		_, err := n.svc.CompleteTask(t.Context(), task.ID, tracking.Completion{})
		n.must(err)
		n.must(n.svc.DeleteDriver(t.Context(), "d7"))
		n.save("Ravi", true, old.Version)
	}
	if _, _, err := n.slow.StartTask(t.Context(), "d7", task.ID,
		tracking.Step{}); !errors.Is(err, tracking.ErrNotFound) {
		t.Errorf("StartTask of what another person has had: got error %v, want ErrNotFound", err)
	}
	if err := InvariantsAfterDeletions(t.Context(), s, 1, here); err != nil {
		t.Error(err)
	}
}

func startMeetsACompletion(t testing.TB, s tracking.Store) {
	n := newSuccessor(t, s)
	n.save("Asha", true, 0)
	task, err := n.svc.CreateTask(t.Context(), dropHere(true))
	n.must(err)
	_, trip, err := n.svc.StartTask(t.Context(), "d7", task.ID, tracking.Step{})
	n.must(err)
	_, err = n.svc.StopTrip(t.Context(), "d7", trip.ID, tracking.Step{})
	n.must(err)
	n.hook.first = func() {
		_, err := n.svc.CompleteTask(t.Context(), task.ID, tracking.Completion{})
		n.must(err)
	}
	if _, _, err := n.slow.StartTask(t.Context(), "d7", task.ID,
		tracking.Step{}); !errors.Is(err, tracking.ErrConflict) {
		t.Errorf("StartTask of a completed task: got error %v, want ErrConflict", err)
	}
	if err := Invariants(t.Context(), s, 1, here); err != nil {
		t.Error(err)
	}
}

// erasedTokensStayDead tries all tokens of a driver whose id another has now.
func erasedTokensStayDead(t testing.TB, s tracking.Store) {
	n := newSuccessor(t, s)
	dead := map[string]tracking.TokenKind{}
	for round := range 3 {
		n.save(fmt.Sprint("driver ", round), true, 0)
		invitation, err := n.svc.InviteDriver(t.Context(), tracking.NewInvite{DriverID: "d7"})
		n.must(err)
		joined, err := n.svc.Join(t.Context(), tracking.JoinRequest{Token: invitation.Token, Nonce: "nonce"})
		n.must(err)
		ingest, err := n.svc.IngestToken(t.Context(), "d7")
		n.must(err)
		same(t, "the token for fixes, asked for again", ingest, joined.IngestToken)
		again, err := n.svc.Join(t.Context(), tracking.JoinRequest{Token: invitation.Token, Nonce: "nonce"})
		n.must(err)
		same(t, "tokens, asked for again", []string{again.Token, again.IngestToken}, []string{
			joined.Token, joined.IngestToken,
		})
		for token, kind := range dead {
			if _, _, err := n.svc.AuthenticateDriver(t.Context(), kind,
				token); !errors.Is(err, tracking.ErrUnauthorized) {
				t.Errorf("round %d: a token of kind %d of an erased driver: got error %v, want ErrUnauthorized", round,
					kind, err)
			}
		}
		dead[joined.Token], dead[joined.IngestToken] = tracking.TokenApp, tracking.TokenIngest
		n.must(n.svc.DeleteDriver(t.Context(), "d7"))
	}
}

// erasedTripsAndTasksStayApart lists and changes, as the next driver with the id, what the former
// one had.
func erasedTripsAndTasksStayApart(t testing.TB, s tracking.Store) {
	n := newSuccessor(t, s)
	old := n.save("Asha", true, 0)
	task, err := n.svc.CreateTask(t.Context(), dropHere(true))
	n.must(err)
	_, _, err = n.svc.StartTask(t.Context(), "d7", task.ID, tracking.Step{})
	n.must(err)
	trip, err := n.svc.StartTrip(t.Context(), "d7", "parcel", tracking.Step{})
	n.must(err)
	n.clock.forward(10 * time.Minute)
	_, err = n.svc.FinishTask(t.Context(), "d7", task.ID, tracking.Completion{}, tracking.Step{})
	n.must(err)
	_, err = n.svc.StopTrip(t.Context(), "d7", trip.ID, tracking.Step{})
	n.must(err)
	n.must(n.svc.DeleteDriver(t.Context(), "d7"))
	n.clock.forward(time.Minute)
	d := n.save("Ravi", true, 0)
	if d.Person == old.Person {
		t.Errorf("both are the person %q", d.Person)
	}

	late := []tracking.Fix{
		{LngLat: tracking.LngLat{Lng: 11.001, Lat: 48}, Time: t0.Add(5 * time.Minute)},
		{LngLat: tracking.LngLat{Lng: 11.002, Lat: 48}, Time: t0.Add(6 * time.Minute)},
	}
	_, err = n.svc.RecordFixes(t.Context(), "d7", late)
	n.must(err)
	trips, _, err := n.svc.Trips(t.Context(), tracking.TripFilter{DriverID: "d7"})
	n.must(err)
	same(t, "trips by the bare id", len(trips), 2)
	for _, trip := range trips {
		_, path, err := n.svc.TripPath(t.Context(), trip.ID)
		n.must(err)
		for f := range path {
			t.Errorf("the path of the erased driver's trip has a fix of %v", f.Time)
		}
		if detail, err := n.svc.Trip(t.Context(), trip.ID); err != nil || detail.Distance != 0 {
			t.Errorf("the erased driver's trip is %v m long, error %v", detail.Distance, err)
		}
		if _, err := n.svc.StopTrip(t.Context(), "d7", trip.ID,
			tracking.Step{}); !errors.Is(err, tracking.ErrNotFound) {
			t.Errorf("StopTrip of the erased driver's trip: got error %v, want ErrNotFound", err)
		}
	}
	if _, err := n.svc.FinishTask(t.Context(), "d7", task.ID, tracking.Completion{},
		tracking.Step{}); !errors.Is(err, tracking.ErrNotFound) {
		t.Errorf("FinishTask of the erased driver's task: got error %v, want ErrNotFound", err)
	}
	if own, _, err := n.svc.Trips(t.Context(), tracking.TripFilter{DriverID: "d7", Person: d.Person}); err != nil ||
		len(own) != 0 {
		t.Errorf("the new driver has %d trips of his own, error %v", len(own), err)
	}
}

func requestForTheNextStaysOpen(t testing.TB, s tracking.Store) {
	n := newSuccessor(t, s)
	n.save("Asha", true, 0)
	trip, err := n.svc.StartTrip(t.Context(), "d7", "parcel", tracking.Step{})
	n.must(err)
	request := tracking.NewRequest{DriverID: "d7", TrackingID: "parcel"}
	n.must(n.svc.RequestTrip(t.Context(), request))
	n.hook.first = func() { // the trip is active already, and the request about to be closed
		_, err := n.svc.StopTrip(t.Context(), "d7", trip.ID, tracking.Step{})
		n.must(err)
		n.must(n.svc.DeleteDriver(t.Context(), "d7"))
		n.save("Ravi", true, 0)
		n.must(n.svc.RequestTrip(t.Context(), request))
	}
	// Decided anew, it is still the start of the driver who is gone.
	_, err = n.slow.StartTrip(t.Context(), "d7", "parcel", tracking.Step{})
	missing(t, "StartTrip", err)
	trips, _, err := n.svc.Trips(t.Context(), tracking.TripFilter{DriverID: "d7", Status: tracking.TripActive})
	n.must(err)
	requests, err := n.svc.Requests(t.Context(), "d7")
	n.must(err)
	same(t, "active trips of the new driver, and open requests", []int{len(trips), len(requests)}, []int{0, 1})
}

// forcedDeletionIsOneStep deletes a driver with tasks and trips of each state, and reads the one
// changeset's events.
func forcedDeletionIsOneStep(t testing.TB, s tracking.Store) {
	n := newSuccessor(t, s)
	n.save("Asha", true, 0)
	var ids []tracking.TaskID
	for range 3 {
		task, err := n.svc.CreateTask(t.Context(), dropHere(false))
		n.must(err)
		_, err = n.svc.AssignTask(t.Context(), task.ID, "d7")
		n.must(err)
		ids = append(ids, task.ID)
	}
	_, _, err := n.svc.StartTask(t.Context(), "d7", ids[2], tracking.Step{})
	n.must(err)
	_, err = n.svc.StartTrip(t.Context(), "d7", "parcel", tracking.Step{})
	n.must(err)
	var busy *tracking.Error
	if err := n.svc.DeleteDriver(t.Context(), "d7"); !errors.As(err, &busy) || busy.Code != tracking.ErrConflict ||
		busy.Message != "The driver has 3 open tasks and 2 active trips; "+
			"unassign or complete the tasks and stop the trips first, or delete with force." {
		t.Errorf("DeleteDriver of one who is busy: %v", err)
	}
	var more tracking.TaskID
	n.hook.first = func() { // a task that comes while he is being deleted goes with the others
		task, err := n.svc.CreateTask(t.Context(), dropHere(false))
		n.must(err)
		_, err = n.svc.AssignTask(t.Context(), task.ID, "d7")
		n.must(err)
		more = task.ID
	}
	n.must(n.slow.As("user:1").ForceDeleteDriver(t.Context(), "d7"))
	for _, id := range append(ids, more) {
		task, err := n.svc.Task(t.Context(), id)
		n.must(err)
		if task.Status != tracking.StatusCreated || task.DriverID != "" || task.Waiting || task.Excluded != nil {
			t.Errorf("task %s is %s with %q, waits: %v, excludes %q", id, task.Status, task.DriverID, task.Waiting,
				task.Excluded)
		}
	}
	c := use(t, s, here)
	events, _ := c.events(tracking.EventFilter{})
	told := map[tracking.EventType]int{}
	for _, e := range events {
		if e.Actor == "user:1" {
			told[e.Type]++
		}
	}
	same(t, "events", told, map[tracking.EventType]int{tracking.EventTaskUnassigned: 4, tracking.EventTripStopped: 2})
	if err := n.svc.ForceDeleteDriver(t.Context(), "d7"); !errors.Is(err, tracking.ErrNotFound) {
		t.Errorf("ForceDeleteDriver again: got error %v, want ErrNotFound", err)
	}
	if err := InvariantsAfterDeletions(t.Context(), s, -1, here); err != nil {
		t.Error(err)
	}
}

// successor is a driver who was erased while an operation had read him, and somebody else who has
// his id since then.
type successor struct {
	testing.TB
	clock *clock
	slow  *tracking.Service // decides on what it has read before
	svc   *tracking.Service
	hook  *interleaved
}

func newSuccessor(t testing.TB, s tracking.Store) *successor {
	n := &successor{TB: t, clock: &clock{at: t0}, hook: &interleaved{Store: s}}
	n.slow = service(t, n.hook, tracking.Options{Now: n.clock.now, UndoFor: time.Hour}).ForApp(here)
	n.svc = service(t, s, tracking.Options{Now: n.clock.now, UndoFor: time.Hour}).ForApp(here)
	return n
}

// save makes d7, or changes him, until he is at the version wanted; 0: once.
func (n *successor) save(name string, available bool, version int64) tracking.Driver {
	n.Helper()
	d, err := n.svc.SaveDriver(n.Context(), tracking.DriverUpdate{
		ID: "d7", Name: &name, Available: &available, LngLat: &tracking.LngLat{Lng: 11, Lat: 48},
	})
	for k := 0; err == nil && d.Version < version; k++ {
		mobile := fmt.Sprint(k)
		d, err = n.svc.SaveDriver(n.Context(), tracking.DriverUpdate{ID: "d7", Mobile: &mobile})
	}
	n.must(err)
	return d
}

func (n *successor) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

func (n *successor) driver() tracking.Driver {
	n.Helper()
	d, err := n.svc.Driver(n.Context(), "d7")
	n.must(err)
	return d
}
