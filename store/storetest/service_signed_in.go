package storetest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// ofDriver is what a driver has.
type ofDriver struct {
	Driver   tracking.Driver
	Tasks    []tracking.Task
	Trips    []tracking.Trip
	Requests []tracking.Request
	Notices  []tracking.Notice
	Events   []tracking.Event
}

func (c *client) ofDriver(id tracking.DriverID) ofDriver {
	c.Helper()
	o := ofDriver{Driver: c.driver(id)}
	o.Tasks, _ = c.tasks(tracking.TaskFilter{DriverID: id})
	o.Trips, _ = c.trips(tracking.TripFilter{DriverID: id})
	o.Notices, _ = c.notices(id, 0)
	o.Events, _ = c.events(tracking.EventFilter{})
	var err error
	o.Requests, err = c.s.Requests(c.ctx, c.app, id)
	c.ok(err)
	return o
}

// signedInChecks are about calls that were authenticated for a driver who is erased before they are
// carried out, and whose id somebody else has by then: with a task assigned, one in progress, a
// trip and a request of his own.
func signedInChecks() []check {
	type next struct {
		id                tracking.DriverID
		assigned, started tracking.TaskID
		trip              tracking.TripID
	}
	step := tracking.Step{LngLat: &tracking.LngLat{Lng: 11.001, Lat: 48}}
	verbs := map[string]func(t testing.TB, svc *tracking.Service, n next) error{
		"Driver": func(t testing.TB, svc *tracking.Service, n next) error {
			_, err := svc.Driver(t.Context(), n.id)
			return err
		},
		"SetAvailability": func(t testing.TB, svc *tracking.Service, n next) error {
			_, err := svc.SetAvailability(t.Context(), n.id, false, time.Time{})
			return err
		},
		"SetAvailability/as it is": func(t testing.TB, svc *tracking.Service, n next) error {
			_, err := svc.SetAvailability(t.Context(), n.id, true, time.Time{})
			return err
		},
		"RecordFixes": func(t testing.TB, svc *tracking.Service, n next) error {
			_, err := svc.RecordFixes(t.Context(), n.id, []tracking.Fix{{LngLat: *step.LngLat, Time: at(maxFixAge)}})
			return err
		},
		"RecordFixes/none": func(t testing.TB, svc *tracking.Service, n next) error {
			_, err := svc.RecordFixes(t.Context(), n.id, nil)
			return err
		},
		"NoteUnread": func(t testing.TB, svc *tracking.Service, n next) error {
			return svc.NoteUnread(t.Context(), n.id, 1)
		},
		"StartTask": func(t testing.TB, svc *tracking.Service, n next) error {
			_, _, err := svc.StartTask(t.Context(), n.id, n.assigned, step)
			return err
		},
		"StartTask/again": func(t testing.TB, svc *tracking.Service, n next) error {
			_, _, err := svc.StartTask(t.Context(), n.id, n.started, step)
			return err
		},
		"DeclineTask": func(t testing.TB, svc *tracking.Service, n next) error {
			_, err := svc.DeclineTask(t.Context(), n.id, n.assigned, tracking.Reason{}, step)
			return err
		},
		"PickUpTask": func(t testing.TB, svc *tracking.Service, n next) error {
			_, err := svc.PickUpTask(t.Context(), n.id, n.started, step)
			return err
		},
		"ArriveTask": func(t testing.TB, svc *tracking.Service, n next) error {
			_, err := svc.ArriveTask(t.Context(), n.id, n.started, step)
			return err
		},
		"ReorderRoute": func(t testing.TB, svc *tracking.Service, n next) error {
			_, err := svc.ReorderRoute(t.Context(), n.id, []tracking.Stop{
				{TaskID: n.started, Leg: tracking.LegPickup}, {TaskID: n.started, Leg: tracking.LegDrop},
				{TaskID: n.assigned, Leg: tracking.LegPickup}, {TaskID: n.assigned, Leg: tracking.LegDrop},
			}, 0)
			return err
		},
		"Route": func(t testing.TB, svc *tracking.Service, n next) error {
			r, err := svc.Route(t.Context(), n.id)
			if err != nil && r.Stops != nil {
				t.Errorf("Route: %d stops", len(r.Stops))
			}
			return err
		},
		"UndoTask": func(t testing.TB, svc *tracking.Service, n next) error {
			_, _, err := svc.UndoTask(t.Context(), n.id, n.started, "", step)
			return err
		},
		"ReportStuck": func(t testing.TB, svc *tracking.Service, n next) error {
			_, err := svc.ReportStuck(t.Context(), n.id, n.started, tracking.StuckStep{Step: "pickup"})
			return err
		},
		"SettleStep": func(t testing.TB, svc *tracking.Service, n next) error {
			_, err := svc.SettleStep(t.Context(), n.id, n.started, "")
			return err
		},
		"UndoTask/as it is": func(t testing.TB, svc *tracking.Service, n next) error {
			_, _, err := svc.UndoTask(t.Context(), n.id, n.assigned, tracking.StepStart, step)
			return err
		},
		"FinishTask": func(t testing.TB, svc *tracking.Service, n next) error {
			_, err := svc.FinishTask(t.Context(), n.id, n.started, tracking.Completion{}, step)
			return err
		},
		"StartTrip": func(t testing.TB, svc *tracking.Service, n next) error {
			_, err := svc.StartTrip(t.Context(), n.id, tracking.TrackingID("requested by "+n.id), step)
			return err
		},
		"StartTrip/of a task": func(t testing.TB, svc *tracking.Service, n next) error {
			_, err := svc.StartTrip(t.Context(), n.id, tracking.TrackingID(n.assigned), step)
			return err
		},
		"StopTrip": func(t testing.TB, svc *tracking.Service, n next) error {
			_, err := svc.StopTrip(t.Context(), n.id, n.trip, step)
			return err
		},
		"DiscardTrip": func(t testing.TB, svc *tracking.Service, n next) error {
			_, err := svc.DiscardTrip(t.Context(), n.id, n.trip, step)
			return err
		},
		"Requests": func(t testing.TB, svc *tracking.Service, n next) error {
			list, err := svc.Requests(t.Context(), n.id)
			if err != nil && list != nil {
				t.Errorf("Requests: %d", len(list))
			}
			return err
		},
		"Notices": func(t testing.TB, svc *tracking.Service, n next) error {
			list, _, err := svc.Notices(t.Context(), n.id, 0, 0)
			if err != nil && list != nil {
				t.Errorf("Notices: %d", len(list))
			}
			return err
		},
		"IngestToken": func(t testing.TB, svc *tracking.Service, n next) error {
			token, err := svc.IngestToken(t.Context(), n.id)
			if err != nil && token != "" {
				t.Error("IngestToken gave one")
			}
			return err
		},
		"SubscribePush": func(t testing.TB, svc *tracking.Service, n next) error {
			return svc.SubscribePush(t.Context(), n.id, browser(2))
		},
		"UnsubscribePush": func(t testing.TB, svc *tracking.Service, n next) error {
			return svc.UnsubscribePush(t.Context(), n.id, browser(1).Endpoint)
		},
	}
	// world is a driver, and how somebody else gets his id.
	world := func(n *successor, id tracking.DriverID) (old tracking.Driver, who *next, replace func()) {
		yes := true
		made := func() tracking.Driver {
			n.Helper()
			d, err := n.svc.SaveDriver(n.Context(), tracking.DriverUpdate{
				ID: id, Available: &yes, LngLat: &tracking.LngLat{Lng: 11, Lat: 48},
			})
			n.must(err)
			return d
		}
		old, who = made(), &next{id: id}
		var tasks [2]tracking.TaskID
		for i := range tasks {
			task, err := n.svc.CreateTask(n.Context(), tracking.NewTask{
				Type: tracking.TypePickupAndDrop, Pickup: &tracking.Place{Address: "from"},
				Drop: &tracking.Place{Address: "to"},
			})
			n.must(err)
			tasks[i] = task.ID
			_, err = n.svc.AssignTask(n.Context(), task.ID, id)
			n.must(err)
		}
		who.assigned, who.started = tasks[0], tasks[1]
		return old, who, func() {
			n.Helper()
			n.must(n.svc.ForceDeleteDriver(n.Context(), id))
			made()
			for _, task := range tasks {
				_, err := n.svc.AssignTask(n.Context(), task, id)
				n.must(err)
			}
			_, _, err := n.svc.StartTask(n.Context(), id, who.started, tracking.Step{})
			n.must(err)
			trip, err := n.svc.StartTrip(n.Context(), id, tracking.TrackingID("trip of "+id), tracking.Step{})
			n.must(err)
			who.trip = trip.ID
			n.must(n.svc.RequestTrip(n.Context(), tracking.NewRequest{
				DriverID: id, TrackingID: tracking.TrackingID("requested by " + id),
			}))
			inv, err := n.svc.InviteDriver(n.Context(), tracking.NewInvite{DriverID: id})
			n.must(err)
			_, err = n.svc.Join(n.Context(), tracking.JoinRequest{Token: inv.Token})
			n.must(err)
			n.must(n.svc.SubscribePush(n.Context(), id, browser(1)))
			n.clock.forward(maxFixAge)
		}
	}
	var list []check
	for _, name := range slices.Sorted(maps.Keys(verbs)) {
		verb := verbs[name]
		list = append(list, check{"signed in as somebody erased/" + name, func(t testing.TB, s tracking.Store) {
			n := newSuccessor(t, s)
			old, who, replace := world(n, "d7")
			replace()
			before := use(t, s, here).ofDriver("d7")
			if err := verb(t, n.svc.AsDriver(old), *who); !errors.Is(err, tracking.ErrNotFound) {
				t.Errorf("got error %v, want ErrNotFound", err)
			}
			same(t, "what the new driver has", use(t, s, here).ofDriver("d7"), before)
			if err := verb(t, n.svc.AsDriver(before.Driver), *who); err != nil {
				t.Errorf("by himself: %v", err)
			}
		}})
	}
	for _, name := range []string{
		"SetAvailability", "SetAvailability/as it is", "DeclineTask", "StartTask", "StartTrip", "SubscribePush",
	} {
		list = append(list, check{"erased on the way/" + name, func(t testing.TB, s tracking.Store) {
			n := newSuccessor(t, s)
			old, who, replace := world(n, "d7")
			var before ofDriver
			n.hook.first = func() { replace(); before = use(t, s, here).ofDriver("d7") }
			if err := verbs[name](t, n.slow.AsDriver(old), *who); !errors.Is(err, tracking.ErrNotFound) {
				t.Errorf("got error %v, want ErrNotFound", err)
			}
			if n.hook.first != nil {
				t.Fatal("nothing was committed: the test tests nothing")
			}
			same(t, "what the new driver has", use(t, s, here).ofDriver("d7"), before)
		}})
	}
	return append(list, check{"a copy for another application acts for nobody", func(t testing.TB, s tracking.Store) {
		n := newSuccessor(t, s)
		old := n.save("Asha", true, 0)
		name := fmt.Sprint("the other ", old.ID)
		_, err := n.svc.ForApp(there).SaveDriver(t.Context(), tracking.DriverUpdate{ID: old.ID, Name: &name})
		n.must(err)
		d, err := n.svc.AsDriver(old).ForApp(there).Driver(t.Context(), old.ID)
		n.must(err)
		same(t, "the name there", d.Name, name)
	}})
}
