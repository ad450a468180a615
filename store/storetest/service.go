package storetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-8aba7b13/tracking"
)

// RunService tests a [tracking.Service] over the stores that open returns: random histories by
// several drivers in two applications, with [Invariants] after each step, what becomes of poor
// measurements and wrong clocks, races for one task and for drivers, and whether what several
// clients see at once could have happened one after the other. [Run] calls it.
func RunService(t *testing.T, open func(t testing.TB) tracking.Store) {
	t.Run("history", func(t *testing.T) {
		play(t, func(t *testing.T) func(*rapid.T) {
			return fewer(50, func(rt *rapid.T) {
				s := open(t)
				defer s.Close()
				h := newHistory(rt, s)
				repeat(rt, 3, h.actions())
				h.check()
			})
		})
	})
	for _, c := range slices.Concat(measureChecks(), crowdChecks(), successorChecks(), inviteEndChecks(),
		turnoverChecks(), assignChecks(), dueChecks(), windowChecks(), clockChecks(), aheadChecks(), pathChecks(),
		linearChecks(), signedInChecks(), elsewhereChecks(), proofChecks()) {
		t.Run(c.name, func(t *testing.T) { c.run(t, opened(t, open)) })
	}
}

// clock is a time that goes on when it is told to.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// service makes a Service over s. What it logs is an error of the test's.
func service(t interface{ Fatalf(string, ...any) }, s tracking.Store, opts tracking.Options) *tracking.Service {
	opts.Logger = slog.New(slog.DiscardHandler)
	svc, err := tracking.New(s, &opts)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return svc
}

const (
	maxOpen   = 2 // of drivers in histories
	maxFixAge = 10 * time.Minute
)

// history is a random one of Service operations.
type history struct {
	*rapid.T
	ctx   context.Context
	s     tracking.Store
	clock *clock
	opts  tracking.Options
	svc   map[tracking.AppID]*tracking.Service
	links map[string]bool // tokens of tracking links

	invites map[tracking.AppID][]tracking.Invitation
	joined  map[string]bool // by the token of the invite

	before map[tracking.AppID]*audit // before the step

	settle func() // nil where no connection is cut: waits for what may be under way still
}

var historyApps = []tracking.AppID{here, there}

// newHistory makes a Service over s with four drivers in each application, and a few tasks.
func newHistory(t *rapid.T, s tracking.Store) *history {
	h := &history{
		T: t, ctx: context.Background(), s: s, clock: &clock{at: t0}, svc: map[tracking.AppID]*tracking.Service{},
		links: map[string]bool{}, invites: map[tracking.AppID][]tracking.Invitation{}, joined: map[string]bool{},
	}
	var seed [32]byte
	for i := range 4 {
		seed[i] = byte(h.n(256, "seed"))
	}
	h.opts = tracking.Options{
		Now: h.clock.now, MaxOpenTasks: maxOpen, MaxFixAge: maxFixAge, TripTTL: 2 * time.Hour,
		Rand: rand.NewChaCha8(seed),
	}
	svc := service(t, s, h.opts)
	for _, app := range historyApps {
		h.svc[app] = svc.ForApp(app)
		for i := range 4 {
			available := i > 0
			_, err := h.svc[app].SaveDriver(h.ctx, tracking.DriverUpdate{
				ID: h.driverOf(app, i), Available: &available, MaxOpenTasks: []*int{nil, nil, new(1), new(3)}[i],
				Properties: []map[string]string{nil, {"van": "yes"}, {"van": "no"}, {"van": "yes", "crane": ""}}[i],
				LngLat:     &tracking.LngLat{Lng: 11 + 0.01*float64(i), Lat: 48},
			})
			if err != nil {
				t.Fatalf("SaveDriver: %v", err)
			}
		}
	}
	h.check()
	for range h.n(4, "tasks at first") {
		h.actions()["create"](t)
	}
	return h
}

func (h *history) n(limit int, what string) int { return rapid.IntRange(0, limit-1).Draw(h.T, what) }

func (h *history) driverOf(app tracking.AppID, i int) tracking.DriverID {
	return tracking.DriverID(fmt.Sprintf("%s-%d", app, i))
}

// a picks an application and one of its drivers, now and then one of the other's.
func (h *history) pick() (*tracking.Service, tracking.DriverID) {
	app := historyApps[h.n(2, "app")]
	of := app
	if h.n(15, "foreign driver") == 14 {
		of = historyApps[h.n(2, "whose")]
	}
	return h.svc[app], h.driverOf(of, h.n(4, "driver"))
}

// task picks a task, mostly one of the Service's application that is not completed.
func (h *history) task(svc *tracking.Service) tracking.TaskID {
	var near, all []tracking.TaskID
	for _, app := range historyApps {
		for id, t := range h.before[app].tasks {
			all = append(all, id)
			if app == svc.App() && t.Status != tracking.StatusCompleted {
				near = append(near, id)
			}
		}
	}
	if len(near) > 0 && h.n(5, "any task") < 4 {
		all = near
	}
	if len(all) == 0 {
		h.Skip("no task yet")
	}
	slices.Sort(all)
	return all[h.n(len(all), "task")]
}

// held picks a task that a driver has, mostly one in one of these states if there is any, and mostly
// that driver.
func (h *history) held(svc *tracking.Service, states ...tracking.TaskStatus) (tracking.TaskID, tracking.DriverID) {
	var ids, near []tracking.TaskID
	for id, t := range h.before[svc.App()].tasks {
		if t.Open() {
			ids = append(ids, id)
		}
		if t.DriverID != "" && slices.Contains(states, t.Status) {
			near = append(near, id)
		}
	}
	if len(near) > 0 && h.n(4, "another state") < 3 {
		ids = near
	}
	if len(ids) == 0 || h.n(10, "any task, any driver") == 9 {
		return h.task(svc), h.driverOf(svc.App(), h.n(4, "driver"))
	}
	slices.Sort(ids)
	id := ids[h.n(len(ids), "task")]
	return id, h.before[svc.App()].tasks[id].DriverID
}

// ended picks a task of the Service's application that is completed, if there is one.
func (h *history) ended(svc *tracking.Service) tracking.TaskID {
	var ids []tracking.TaskID
	for id, t := range h.before[svc.App()].tasks {
		if t.Status == tracking.StatusCompleted {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return h.task(svc)
	}
	slices.Sort(ids)
	return ids[h.n(len(ids), "ended task")]
}

func (h *history) trip(svc *tracking.Service) (tracking.TripID, tracking.DriverID) {
	var ids []tracking.TripID
	for _, app := range historyApps {
		ids = slices.AppendSeq(ids, maps.Keys(h.before[app].trips))
	}
	if len(ids) == 0 {
		h.Skip("no trip yet")
	}
	slices.Sort(ids)
	id := ids[h.n(len(ids), "trip")]
	driver := h.before[svc.App()].trips[id].DriverID
	if driver == "" || h.n(10, "another driver") == 9 {
		driver = h.driverOf(svc.App(), h.n(4, "driver"))
	}
	return id, driver
}

// give gives the files that a task asks for.
func (h *history) give(svc *tracking.Service, t tracking.Task) {
	for _, kind := range t.Proof {
		if kind != tracking.ProofPhoto && kind != tracking.ProofSignature {
			continue
		}
		_, _, err := svc.AddProof(h.ctx, t.DriverID, t.ID, picture(kind, h.n(3, "picture")))
		if err != nil && !errors.Is(err, tracking.ErrConflict) && !errors.Is(err, tracking.ErrNotFound) && !h.unknown(err) {
			h.Fatalf("AddProof: %v", err)
		}
	}
	h.check() // whatever becomes of the step that they are given for, which comes a second later
	h.clock.forward(time.Second)
}

// proof draws kinds of evidence.
func (h *history) proof() (kinds []tracking.ProofKind) {
	for _, kind := range []tracking.ProofKind{
		tracking.ProofPhoto, tracking.ProofSignature, tracking.ProofName, tracking.ProofPIN,
	} {
		if h.n(3, string(kind)) == 2 {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

func (h *history) point() *tracking.LngLat {
	return &tracking.LngLat{Lng: 11 + 0.001*float64(h.n(40, "lng")), Lat: 48}
}

// required draws what a driver must have; one driver has all of it, or nobody.
func (h *history) required() map[string]string {
	return []map[string]string{
		{}, {}, {"van": "yes"}, {"van": "yes", "crane": ""}, {"fridge": "yes"},
	}[h.n(5, "required")]
}

// moment draws a time around now, or none.
func (h *history) moment() time.Time {
	if h.n(2, "a time") == 0 {
		return time.Time{}
	}
	return h.clock.now().Add(time.Duration(h.n(300, "minutes ahead")-60) * time.Minute)
}

// window draws one whose ends are around now, or some of it.
func (h *history) window() (w tracking.Window) {
	if w.From, w.To = h.moment(), h.moment(); !w.To.IsZero() && w.To.Before(w.From) {
		w.From, w.To = w.To, w.From
	}
	return w
}

// step draws when and where something was done, by the phone.
func (h *history) step() tracking.Step {
	var st tracking.Step
	if h.n(3, "at") == 2 {
		st.At = h.clock.now().Add(time.Duration(h.n(30, "minutes")-25) * time.Minute)
	}
	if h.n(3, "where") == 2 {
		st.LngLat = h.point()
	}
	return st
}

// why draws a reason.
func (h *history) why() tracking.Reason {
	return tracking.Reason{Text: "no more", Code: []tracking.ReasonCode{"", tracking.ReasonRefused}[h.n(2, "why")]}
}

// actions are what the histories are made of, by name. Each is checked by after.
func (h *history) actions() map[string]func(*rapid.T) {
	acts := map[string]func() error{
		"create": func() error {
			svc, _ := h.pick()
			n := tracking.NewTask{Type: tracking.TaskType(1 + h.n(3, "type")), AutoAssign: h.n(2, "auto") == 1}
			if n.Type != tracking.TypeDrop {
				n.Pickup = &tracking.Place{LngLat: h.point(), Address: "from"}
			}
			if n.Type != tracking.TypePickup {
				n.Drop = &tracking.Place{LngLat: h.point(), Address: "to"}
			}
			if h.n(3, "proof") == 2 {
				n.Proof = h.proof()
			}
			if h.n(4, "keyed") == 3 {
				n.Key = fmt.Sprint("key", h.n(3, "key"))
			}
			n.Window, n.Promised, n.Requires = h.window(), h.moment(), h.required()
			t, err := svc.CreateTask(h.ctx, n)
			if err == nil {
				h.keepLink(svc.TaskLink(h.ctx, t.ID))
			}
			return err
		},
		"assign": func() error {
			svc, d := h.pick()
			_, err := svc.AssignTask(h.ctx, h.task(svc), d)
			return err
		},
		"assign with force": func() error {
			svc, d := h.pick()
			_, err := svc.ForceAssignTask(h.ctx, h.task(svc), d)
			return err
		},
		"assign among stops": func() error {
			svc, d := h.pick()
			a := tracking.Assignment{Task: h.task(svc), Driver: d, Force: h.n(2, "force") == 1}
			t := h.before[svc.App()].tasks[a.Task]
			for _, stop := range h.before[svc.App()].drivers[d].Route {
				if stop.TaskID != a.Task {
					a.Stops = append(a.Stops, stop)
				}
			}
			at := h.n(len(a.Stops)+1, "at")
			if t.Type != tracking.TypeDrop && h.n(4, "pickup lacks") > 0 {
				a.Stops = slices.Insert(a.Stops, at, tracking.Stop{TaskID: a.Task, Leg: tracking.LegPickup})
				at++
			}
			if t.Type != tracking.TypePickup {
				a.Stops = slices.Insert(a.Stops, at, tracking.Stop{TaskID: a.Task, Leg: tracking.LegDrop})
			}
			got, err := svc.Assign(h.ctx, a)
			if err != nil {
				return err
			}
			if got.DriverID != d || !got.Open() {
				h.Errorf("assigned to %s: %+v", d, got)
			}
			if t.DriverID == d && t.Open() && got.Version != t.Version {
				h.Errorf("%s had task %s already, and its version went from %d to %d", d, t.ID, t.Version, got.Version)
			}
			route, err := svc.Route(h.ctx, d)
			if err != nil {
				return err
			}
			if a.Stops != nil && !slices.EqualFunc(route.Stops, a.Stops, func(a tracking.RouteStop, b tracking.Stop) bool { return a.Stop == b }) {
				h.Errorf("the stops of %s are %v, want %v", d, route.Stops, a.Stops)
			}
			return nil
		},
		"hand over": func() error {
			svc, from := h.pick()
			r := tracking.HandOverRequest{
				From: from, To: h.driverOf(svc.App(), h.n(4, "to")), Force: h.n(2, "force") == 1,
			}
			if r.From == r.To {
				return nil
			}
			for range h.n(3, "named") {
				r.Tasks = append(r.Tasks, h.task(svc))
			}
			list, err := svc.HandOver(h.ctx, r)
			for _, t := range list {
				if t.DriverID != r.To || t.Status == tracking.StatusCreated {
					h.Errorf("handed over to %s: %+v", r.To, t)
				}
			}
			return err
		},
		"unassign": func() error { svc, _ := h.pick(); _, err := svc.UnassignTask(h.ctx, h.task(svc)); return err },
		"update": func() error {
			svc, _ := h.pick()
			notes := fmt.Sprint("notes ", h.n(3, "notes"))
			u := tracking.TaskUpdate{Notes: &notes}
			if h.n(3, "order too") == 2 {
				u.OrderID = &notes
			}
			if h.n(3, "window too") == 2 {
				w, promised := h.window(), h.moment()
				u.Window, u.Promised = &w, &promised
			}
			if h.n(4, "proof too") == 3 {
				u.Proof = append([]tracking.ProofKind{}, h.proof()...)
			}
			if h.n(5, "requirements too") == 4 {
				u.Requires = h.required()
			}
			_, err := svc.UpdateTask(h.ctx, h.task(svc), u)
			return err
		},
		"give a file": func() error {
			svc, _ := h.pick()
			id, d := h.held(svc)
			kind := []tracking.ProofKind{tracking.ProofPhoto, tracking.ProofSignature}[h.n(2, "kind")]
			_, _, err := svc.AddProof(h.ctx, d, id, picture(kind, h.n(3, "picture")))
			return err
		},
		"cancel": func() error {
			svc, _ := h.pick()
			_, err := svc.CancelTask(h.ctx, h.task(svc), h.why())
			return err
		},
		"complete": func() error {
			svc, _ := h.pick()
			_, err := svc.CompleteTask(h.ctx, h.task(svc), tracking.Completion{
				Outcome: []tracking.Outcome{"", tracking.OutcomeFailed}[h.n(2, "outcome")], Reason: h.why(),
			})
			return err
		},
		"retry": func() error {
			svc, _ := h.pick()
			var r tracking.Retry
			if h.n(2, "window") == 1 {
				r.Window.To = h.clock.now().Add(time.Hour)
			}
			t, err := svc.RetryTask(h.ctx, h.ended(svc), r)
			if err == nil {
				h.keepLink(svc.TaskLink(h.ctx, t.ID))
			}
			return err
		},
		"note": func() error {
			svc, _ := h.pick()
			if len(h.links) == 0 {
				h.Skip("no link yet")
			}
			token := slices.Sorted(maps.Keys(h.links))[h.n(len(h.links), "link")]
			return svc.NoteFromCustomer(h.ctx, token, fmt.Sprint("note ", h.n(3, "note")))
		},
		"decline": func() error {
			svc, _ := h.pick()
			id, d := h.held(svc)
			_, err := svc.DeclineTask(h.ctx, d, id, h.why(), h.step())
			return err
		},
		"start": func() error {
			svc, _ := h.pick()
			id, d := h.held(svc, tracking.StatusAssigned)
			_, trip, err := svc.StartTask(h.ctx, d, id, h.step())
			if err == nil {
				h.keepLink(svc.TripLink(h.ctx, trip.ID))
			}
			return err
		},
		"pick up": func() error {
			svc, _ := h.pick()
			id, d := h.held(svc, tracking.StatusInProgress)
			_, err := svc.PickUpTask(h.ctx, d, id, h.step())
			return err
		},
		"arrive": func() error {
			svc, _ := h.pick()
			id, d := h.held(svc)
			_, err := svc.ArriveTask(h.ctx, d, id, h.step())
			return err
		},
		"route": func() error {
			svc, d := h.pick()
			route, err := svc.Route(h.ctx, d)
			if err != nil || len(route.Stops) == 0 {
				return err
			}
			var stops []tracking.Stop
			for _, stop := range route.Stops {
				stops = append(stops, stop.Stop)
			}
			i, j := h.n(len(stops), "stop"), h.n(len(stops), "other stop")
			stops[i], stops[j] = stops[j], stops[i] // a drop may come before its pickup, and is refused
			version := []int64{0, route.Version, route.Version - 1}[h.n(3, "version")]
			if h.n(2, "by himself") == 1 {
				_, err = svc.ReorderRoute(h.ctx, d, stops, version)
			} else {
				_, err = svc.SetRoute(h.ctx, d, stops, version)
			}
			return err
		},
		"finish": func() error {
			svc, _ := h.pick()
			id, d := h.held(svc, tracking.StatusInProgress)
			how := tracking.Completion{
				Outcome: []tracking.Outcome{"", tracking.OutcomeFailed}[h.n(2, "outcome")], Reason: h.why(),
			}
			if h.n(2, "named") == 1 {
				how.ReceivedBy = "Priya"
			}
			task := h.before[svc.App()].tasks[id]
			if task.PIN != "" && h.n(4, "PIN") > 0 {
				how.PIN = []tracking.Secret{task.PIN, task.PIN, "0000"}[h.n(3, "which PIN")]
			}
			if task.Proof != nil && h.n(2, "all that it asks for") == 1 {
				h.give(svc, task)
				how.ReceivedBy, how.PIN = "Priya", task.PIN
			}
			_, err := svc.FinishTask(h.ctx, d, id, how, h.step())
			return err
		},
		// Those that sort first are drawn most: without these two hardly a task would come far.
		"a driver goes on": func() error {
			svc, _ := h.pick()
			id, d := h.held(svc)
			steps := 0
			for range 1 + h.n(3, "steps") {
				t, err := svc.Task(h.ctx, id)
				switch {
				case err != nil:
				case t.Status != tracking.StatusInProgress:
					_, _, err = svc.StartTask(h.ctx, d, id, h.step())
				case t.Type == tracking.TypePickupAndDrop && t.PickedUpAt.IsZero():
					_, err = svc.PickUpTask(h.ctx, d, id, h.step())
				default:
					how := tracking.Completion{ReceivedBy: "Priya", PIN: t.PIN}
					_, err = svc.FinishTask(h.ctx, d, id, how, h.step())
				}
				if err != nil && steps == 0 {
					return err
				}
				steps++
			}
			return nil
		},
		"a driver undoes": func() error {
			svc, _ := h.pick()
			id, d := h.held(svc, tracking.StatusInProgress, tracking.StatusCompleted)
			meant := []tracking.TaskStep{
				"", "", tracking.StepStart, tracking.StepPickup, tracking.StepComplete,
			}[h.n(5, "step")]
			_, trip, err := svc.UndoTask(h.ctx, d, id, meant, h.step())
			if err == nil && trip.ID != "" {
				h.keepLink(svc.TripLink(h.ctx, trip.ID))
			}
			return err
		},
		"a phone could not deliver": func() error {
			svc, _ := h.pick()
			id, d := h.held(svc)
			_, err := svc.ReportStuck(h.ctx, d, id, tracking.StuckStep{
				Step: []string{"start", "complete"}[h.n(2, "step")], At: h.step().At, Why: "changed",
			})
			return err
		},
		"settle": func() error {
			svc, _ := h.pick()
			id, d := h.held(svc)
			if h.n(2, "by its driver") == 1 {
				_, err := svc.SettleStep(h.ctx, d, id, []string{"", "start"}[h.n(2, "step")])
				return err
			}
			_, err := svc.SettleTask(h.ctx, id)
			return err
		},
		"reopen": func() error {
			svc, _ := h.pick()
			id, _ := h.held(svc, tracking.StatusCompleted)
			_, err := svc.ReopenTask(h.ctx, id)
			return err
		},
		"start a trip": func() error {
			svc, d := h.pick()
			trip, err := svc.StartTrip(h.ctx, d, tracking.TrackingID(fmt.Sprint("x", h.n(3, "tracking id"))), h.step())
			if err == nil {
				h.keepLink(svc.TripLink(h.ctx, trip.ID))
			}
			return err
		},
		"stop a trip": func() error {
			svc, _ := h.pick()
			id, d := h.trip(svc)
			_, err := svc.StopTrip(h.ctx, d, id, h.step())
			return err
		},
		"discard a trip": func() error {
			svc, _ := h.pick()
			id, d := h.trip(svc)
			_, err := svc.DiscardTrip(h.ctx, d, id, h.step())
			return err
		},
		"request a trip": func() error {
			svc, d := h.pick()
			return svc.RequestTrip(h.ctx, tracking.NewRequest{
				DriverID: d, TrackingID: tracking.TrackingID(fmt.Sprint("x", h.n(3, "tracking id"))),
			})
		},
		"duty": func() error {
			svc, d := h.pick()
			_, err := svc.SetAvailability(h.ctx, d, h.n(3, "available") > 0, h.step().At)
			return err
		},
		"fixes": func() error {
			svc, d := h.pick()
			var fixes []tracking.Fix
			for range h.n(5, "fixes") {
				f := tracking.Fix{
					LngLat: *h.point(), Time: h.clock.now().Add(-time.Duration(h.n(600, "seconds ago")) * time.Second),
				}
				if h.n(6, "far") == 5 {
					f.LngLat.Lng = -60
				}
				fixes = append(fixes, f)
			}
			_, err := svc.RecordFixes(h.ctx, d, fixes)
			return err
		},
		"invite": func() error {
			svc, d := h.pick()
			if !h.own(svc, d) {
				return nil
			}
			i, err := svc.InviteDriver(h.ctx, tracking.NewInvite{DriverID: d})
			if err == nil {
				h.invites[svc.App()] = append(h.invites[svc.App()], i)
			}
			return err
		},
		"join": func() error {
			svc, _ := h.pick()
			all := h.invites[historyApps[h.n(2, "whose")]]
			if len(all) == 0 {
				h.Skip("no invite yet")
			}
			i := all[h.n(len(all), "invite")]
			_, err := svc.Join(h.ctx, tracking.JoinRequest{Token: i.Token})
			if err == nil && h.joined[i.Token] {
				h.Fatalf("an invite was joined twice")
			}
			h.joined[i.Token] = h.joined[i.Token] || err == nil
			return err
		},
		"candidates":         h.candidates,
		"assign the waiting": func() error { svc, _ := h.pick(); _, err := svc.AssignWaiting(h.ctx); return err },
		"mark the due":       func() error { svc, _ := h.pick(); _, err := svc.MarkDueTasks(h.ctx); return err },
		"mark the silent":    func() error { svc, _ := h.pick(); _, err := svc.MarkSilent(h.ctx); return err },
		"end due trips":      func() error { svc, _ := h.pick(); _, err := svc.EndDueTrips(h.ctx); return err },
		"time": func() error {
			h.clock.forward(time.Duration(h.n([]int{5, 5, 90}[h.n(3, "long")], "minutes")) * time.Minute)
			return nil
		},
	}
	maps.Copy(acts, h.access())
	out := map[string]func(*rapid.T){}
	for name, act := range acts {
		out[name] = func(t *rapid.T) {
			h.T = t
			h.clock.forward(time.Second)
			err := act()
			for _, unexpected := range []error{tracking.ErrInternal, tracking.ErrUnavailable, tracking.ErrInvalid} {
				if errors.Is(err, unexpected) && !h.unknown(err) {
					t.Fatalf("%s: %v", name, err)
				}
			}
			h.after(name, err)
		}
	}
	return out
}

func (h *history) keepLink(token string, err error) {
	switch {
	case h.unknown(err):
	case err != nil:
		h.Fatalf("a tracking link: %v", err)
	default:
		h.links[token] = true
	}
}

// unknown reports whether a connection was cut, so that something has been done, or not.
func (h *history) unknown(err error) bool {
	return h.settle != nil && errors.Is(err, tracking.ErrUnavailable)
}

// check reads everything, and looks at the invariants.
func (h *history) check() {
	if h.settle != nil {
		h.settle()
	}
	var err error
	if h.before, err = inspect(h.ctx, h.s, maxOpen, false, historyApps...); err != nil {
		h.Fatalf("%v", err)
	}
}

// after looks at what a step has changed.
func (h *history) after(name string, failed error) {
	if h.unknown(failed) {
		failed = nil // it may be done
	}
	was := h.before
	h.check()
	for _, app := range historyApps {
		old, now := was[app], h.before[app]
		news := now.events[len(old.events):]
		about := map[tracking.Subject]bool{}
		for _, e := range news {
			about[e.Subject] = true
			// the end of a trip whose time was up is committed whatever comes then
			if failed != nil && e.Subject.Kind != tracking.KindTrip {
				h.Errorf("%s failed (%v), and there is an event %s", name, failed, e.Type)
			}
			if e.Type == tracking.EventTaskAssigned && e.Data["auto"] == "true" {
				d := old.drivers[tracking.DriverID(e.Data["driver_id"])]
				if d.Silent || !d.Position.Located() || d.Position.SeenAt.Before(h.clock.now().Add(-maxFixAge)) {
					h.Errorf("%s: task %s went automatically to %s, silent: %v, last heard of %v, at %v", name,
						e.Subject.ID, d.ID, d.Silent, d.Position.SeenAt, h.clock.now())
				}
				task := now.tasks[tracking.TaskID(e.Subject.ID)]
				if !hasAll(d.Properties, task.Requires) {
					h.Errorf("%s: task %s, which requires %q, went automatically to %s, who has %q", name, task.ID,
						task.Requires, d.ID, d.Properties)
				}
				from := task.Window.From
				if !from.IsZero() && h.clock.now().Before(from.Add(-time.Hour)) {
					h.Errorf("%s: task %s, whose window begins at %v, went to a driver at %v", name, e.Subject.ID, from,
						h.clock.now())
				}
			}
		}
		for id, t := range now.tasks {
			o, told := old.tasks[id], about[tracking.Subject{Kind: tracking.KindTask, ID: string(id)}]
			if t.UpdatedAt.Equal(o.UpdatedAt) == told {
				h.Errorf("%s: task %s was updated at %v, before at %v; there is an event of it: %v", name, id,
					t.UpdatedAt, o.UpdatedAt, told)
			}
			visible := func(t tracking.Task) tracking.Task {
				t.Version, t.Waiting, t.Link, t.GeocodeAt = 0, false, tracking.Link{}, time.Time{}
				t.WaitsSince, t.AssignAt, t.DueAt, t.WrongPINs = time.Time{}, time.Time{}, time.Time{}, 0
				return t
			}
			if d := differs(visible(o), visible(t)); d != "" && !told {
				h.Errorf("%s: task %s has changed without an event (-before +after):\n%s", name, id, d)
			}
		}
	}
	h.look()
}

// look opens one of the tracking links, which must show the driver within the window only.
func (h *history) look() {
	if len(h.links) == 0 {
		return
	}
	token := slices.Sorted(maps.Keys(h.links))[h.n(len(h.links), "link")]
	v, err := h.svc[historyApps[h.n(2, "app")]].Tracking(h.ctx, token)
	if errors.Is(err, tracking.ErrNotFound) || h.unknown(err) {
		return // expired
	}
	if err != nil {
		h.Fatalf("Tracking: %v", err)
	}
	onTheWay := v.Status == string(tracking.StatusInProgress) || v.Status == fmt.Sprint(int(tracking.TripActive))
	if (!onTheWay || v.Ended) && (v.Position != nil || v.Path != nil || v.DriverName != "") {
		h.Errorf("a link to what is %s, ended: %v, shows the driver: %+v", v.Status, v.Ended, v)
	}
	if v.Position != nil && v.Position.Time.Before(v.StartedAt) {
		h.Errorf("a link shows a position of %v, before the start at %v", v.Position.Time, v.StartedAt)
	}
}
