package storetest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/seed-8aba7b13/tracking"
)

// RunService tests a [tracking.Service] over the stores that open returns: random histories by several drivers in two applications, with
// [Invariants] after each step, races for one task and for drivers, and whether what several clients see at once could have happened one after the other.
// [Run] calls it.
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
	for _, c := range slices.Concat(crowdChecks(), linearChecks()) {
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
	svc   map[tracking.AppID]*tracking.Service
	links map[string]bool // tokens of tracking links

	invites map[tracking.AppID][]tracking.Invitation
	joined  map[string]bool // by the token of the invite

	before map[tracking.AppID]*audit // before the step
}

var historyApps = []tracking.AppID{here, there}

func newHistory(t *rapid.T, s tracking.Store) *history {
	h := &history{
		T: t, ctx: context.Background(), s: s, clock: &clock{at: t0}, svc: map[tracking.AppID]*tracking.Service{},
		links: map[string]bool{}, invites: map[tracking.AppID][]tracking.Invitation{}, joined: map[string]bool{},
	}
	var seed [32]byte
	for i := range 4 {
		seed[i] = byte(h.n(256, "seed"))
	}
	svc := service(t, s, tracking.Options{Now: h.clock.now, MaxOpenTasks: maxOpen, MaxFixAge: maxFixAge, TripTTL: 2 * time.Hour, Rand: rand.NewChaCha8(seed)})
	for _, app := range historyApps {
		h.svc[app] = svc.ForApp(app)
		for i := range 4 {
			available := i > 0
			_, err := h.svc[app].SaveDriver(h.ctx, tracking.SaveDriver{ID: h.driverOf(app, i), Available: &available, LngLat: &tracking.LngLat{Lng: 11 + 0.01*float64(i), Lat: 48}})
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

// held picks a task that a driver has, and mostly that driver.
func (h *history) held(svc *tracking.Service) (tracking.TaskID, tracking.DriverID) {
	var ids []tracking.TaskID
	for id, t := range h.before[svc.App()].tasks {
		if t.Open() {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 || h.n(10, "any task, any driver") == 9 {
		return h.task(svc), h.driverOf(svc.App(), h.n(4, "driver"))
	}
	slices.Sort(ids)
	id := ids[h.n(len(ids), "task")]
	return id, h.before[svc.App()].tasks[id].DriverID
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

func (h *history) point() *tracking.LngLat {
	return &tracking.LngLat{Lng: 11 + 0.001*float64(h.n(40, "lng")), Lat: 48}
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

func (h *history) actions() map[string]func(*rapid.T) {
	acts := map[string]func() error{
		"create": func() error {
			svc, _ := h.pick()
			n := tracking.NewTask{Type: tracking.TaskType(1 + h.n(3, "type")), AutoAssign: h.n(2, "auto") == 1}
			if n.Type != tracking.Drop {
				n.Pickup = &tracking.Place{LngLat: h.point(), Address: "from"}
			}
			if n.Type != tracking.Pickup {
				n.Drop = &tracking.Place{LngLat: h.point(), Address: "to"}
			}
			if h.n(4, "keyed") == 3 {
				n.Key = fmt.Sprint("key", h.n(3, "key"))
			}
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
		"unassign": func() error { svc, _ := h.pick(); _, err := svc.UnassignTask(h.ctx, h.task(svc)); return err },
		"update": func() error {
			svc, _ := h.pick()
			notes := fmt.Sprint("notes ", h.n(3, "notes"))
			u := tracking.TaskUpdate{Notes: &notes}
			if h.n(3, "order too") == 2 {
				u.OrderID = &notes
			}
			_, err := svc.UpdateTask(h.ctx, h.task(svc), u)
			return err
		},
		"cancel": func() error {
			svc, _ := h.pick()
			_, err := svc.CancelTask(h.ctx, h.task(svc), "no more")
			return err
		},
		"complete": func() error {
			svc, _ := h.pick()
			_, err := svc.CompleteTask(h.ctx, h.task(svc), tracking.Completion{Outcome: []tracking.Outcome{"", tracking.Failed}[h.n(2, "outcome")]})
			return err
		},
		"decline": func() error {
			svc, _ := h.pick()
			id, d := h.held(svc)
			_, err := svc.DeclineTask(h.ctx, d, id, "no", h.step())
			return err
		},
		"start": func() error {
			svc, _ := h.pick()
			id, d := h.held(svc)
			_, trip, err := svc.StartTask(h.ctx, d, id, h.step())
			if err == nil {
				h.keepLink(svc.TripLink(h.ctx, trip.ID))
			}
			return err
		},
		"pick up": func() error {
			svc, _ := h.pick()
			id, d := h.held(svc)
			_, err := svc.PickUpTask(h.ctx, d, id, h.step())
			return err
		},
		"finish": func() error {
			svc, _ := h.pick()
			id, d := h.held(svc)
			_, err := svc.FinishTask(h.ctx, d, id, tracking.Completion{Outcome: []tracking.Outcome{"", tracking.Failed}[h.n(2, "outcome")]}, h.step())
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
			return svc.RequestTrip(h.ctx, tracking.NewRequest{DriverID: d, TrackingID: tracking.TrackingID(fmt.Sprint("x", h.n(3, "tracking id")))})
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
				f := tracking.Fix{LngLat: *h.point(), Time: h.clock.now().Add(-time.Duration(h.n(600, "seconds ago")) * time.Second)}
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
			if !strings.HasPrefix(string(d), string(svc.App())) { // an invite would make a driver of that id here
				return nil
			}
			i, err := svc.InviteDriver(h.ctx, tracking.NewInvite{DriverID: d})
			h.invites[svc.App()] = append(h.invites[svc.App()], i)
			return err
		},
		"join": func() error {
			svc, _ := h.pick()
			all := h.invites[historyApps[h.n(2, "whose")]]
			if len(all) == 0 {
				h.Skip("no invite yet")
			}
			i := all[h.n(len(all), "invite")]
			_, err := svc.Join(h.ctx, tracking.Join{Token: i.Token})
			if err == nil && h.joined[i.Token] {
				h.Fatalf("an invite was joined twice")
			}
			h.joined[i.Token] = h.joined[i.Token] || err == nil
			return err
		},
		"assign the waiting": func() error { svc, _ := h.pick(); _, err := svc.AssignWaiting(h.ctx); return err },
		"mark the silent":    func() error { svc, _ := h.pick(); _, err := svc.MarkSilent(h.ctx); return err },
		"end due trips":      func() error { svc, _ := h.pick(); _, err := svc.EndDueTrips(h.ctx); return err },
		"time": func() error {
			h.clock.forward(time.Duration(h.n([]int{5, 5, 90}[h.n(3, "long")], "minutes")) * time.Minute)
			return nil
		},
	}
	out := map[string]func(*rapid.T){}
	for name, act := range acts {
		out[name] = func(t *rapid.T) {
			h.T = t
			h.clock.forward(time.Second)
			err := act()
			for _, unexpected := range []error{tracking.ErrInternal, tracking.ErrUnavailable, tracking.ErrInvalid} {
				if errors.Is(err, unexpected) {
					t.Fatalf("%s: %v", name, err)
				}
			}
			h.after(name, err)
		}
	}
	return out
}

func (h *history) keepLink(token string, err error) {
	if err != nil {
		h.Fatalf("a tracking link: %v", err)
	}
	h.links[token] = true
}

// check reads everything, and looks at the invariants.
func (h *history) check() {
	var err error
	if h.before, err = inspect(h.ctx, h.s, maxOpen, historyApps...); err != nil {
		h.Fatalf("%v", err)
	}
}

// after looks at what a step has changed.
func (h *history) after(name string, failed error) {
	was := h.before
	h.check()
	for _, app := range historyApps {
		old, now := was[app], h.before[app]
		news := now.events[len(old.events):]
		about := map[tracking.Subject]bool{}
		for _, e := range news {
			about[e.Subject] = true
			if failed != nil && e.Subject.Kind != tracking.KindTrip { // the end of a trip whose time was up is committed whatever comes then
				h.Errorf("%s failed (%v), and there is an event %s", name, failed, e.Type)
			}
			if e.Type == tracking.TaskAssigned && e.Data["auto"] == "true" {
				d := old.drivers[tracking.DriverID(e.Data["driver_id"])]
				if d.Silent || !d.Position.Located() || d.Position.SeenAt.Before(h.clock.now().Add(-maxFixAge)) {
					h.Errorf("%s: task %s went automatically to %s, silent: %v, last heard of %v, at %v", name, e.Subject.ID, d.ID, d.Silent, d.Position.SeenAt, h.clock.now())
				}
			}
		}
		for id, t := range now.tasks {
			o, told := old.tasks[id], about[tracking.Subject{Kind: tracking.KindTask, ID: string(id)}]
			if t.UpdatedAt.Equal(o.UpdatedAt) == told {
				h.Errorf("%s: task %s was updated at %v, before at %v; there is an event of it: %v", name, id, t.UpdatedAt, o.UpdatedAt, told)
			}
			visible := func(t tracking.Task) tracking.Task {
				t.Version, t.Waiting, t.Link, t.GeocodeAt = 0, false, tracking.Link{}, time.Time{}
				return t
			}
			if d := cmp.Diff(visible(o), visible(t)); d != "" && !told {
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
	if errors.Is(err, tracking.ErrNotFound) {
		return // expired
	}
	if err != nil {
		h.Fatalf("Tracking: %v", err)
	}
	onTheWay := v.Status == string(tracking.StatusInProgress) || v.Status == fmt.Sprint(int(tracking.Active))
	if (!onTheWay || v.Ended) && (v.Position != nil || v.Path != nil || v.DriverName != "") {
		h.Errorf("a link to what is %s, ended: %v, shows the driver: %+v", v.Status, v.Ended, v)
	}
	if v.Position != nil && v.Position.Time.Before(v.StartedAt) {
		h.Errorf("a link shows a position of %v, before the start at %v", v.Position.Time, v.StartedAt)
	}
}
