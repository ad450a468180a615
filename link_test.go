package tracking_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

func TestLinks(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 100)
	must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "own", Name: new("Asha Rao")}))(t)
	task := w.create(true)
	link := must(w.TaskLink(w.ctx, task.ID))(t)
	if again := must(w.TaskLink(w.ctx, task.ID))(t); again != link || w.task(task.ID).Version != task.Version {
		t.Error("asked again it is another link, or something was written")
	}
	see := func(token string) tracking.Tracking { t.Helper(); return must(w.Tracking(w.ctx, token))(t) }
	if v := see(link); v.DriverName != "" || v.Position != nil || v.Place.Address != "There 2" {
		t.Errorf("before the start: %+v", v)
	}
	_, trip, err := w.StartTask(w.ctx, "own", task.ID, tracking.Step{LngLat: east(100)})
	if err != nil {
		t.Fatal(err)
	}
	w.advance(time.Minute)
	must(w.RecordFixes(w.ctx, "own", []tracking.Fix{
		{LngLat: *east(50), Time: w.now(), Bearing: tracking.Known(270)},
	}))(t)
	v := see(link)
	if v.DriverName != "Asha" || v.Position == nil || v.Position.LngLat != *east(50) || !v.Position.Live ||
		len(v.Path) != 2 {
		t.Errorf("on the way: %+v", v)
	}
	w.advance(5*time.Minute + time.Millisecond)
	if v := see(link); v.Position.Live {
		t.Error("a position of 5 minutes ago is live")
	}
	if err := pickUp(w, task.ID); err != nil {
		t.Fatal(err)
	}
	if v := see(link); v.Place.Address != "There 2" {
		t.Errorf("after the pickup: %+v", v.Place)
	}
	tripLink := must(w.TripLink(w.ctx, trip.ID))(t)
	if err := finish(w, task.ID); err != nil {
		t.Fatal(err)
	}
	w.advance(time.Second)
	must(w.RecordFixes(w.ctx, "own", []tracking.Fix{{LngLat: *east(60), Time: w.now()}}))(t)
	for _, token := range []string{link, tripLink} {
		if v := see(token); !v.Ended || v.Position != nil || v.Path != nil || v.DriverName != "" {
			t.Errorf("after the end: %+v", v)
		}
	}
	w.advance(24 * time.Hour)
	if _, err := w.Tracking(w.ctx, link); code(err) != tracking.ErrNotFound {
		t.Error("expired:", err)
	}
	fresh := must(w.TaskLink(w.ctx, task.ID))(t)
	w.advance(24*time.Hour - time.Millisecond)
	if fresh == link || !see(fresh).Ended {
		t.Error("asked for after expiry it does not work for its full time")
	}
	if err := w.RevokeTaskLink(w.ctx, task.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Tracking(w.ctx, fresh); code(err) != tracking.ErrNotFound {
		t.Error("revoked:", err)
	}
	if got := must(w.LinkToken(w.ctx, w.task(task.ID)))(t); got != "" {
		t.Error("a task whose link was revoked has the token of it")
	}
	newest := must(w.TaskLink(w.ctx, task.ID))(t)
	if newest == fresh || newest == link {
		t.Error("a revoked link came back")
	}
	if first, now := must(w.LinkToken(w.ctx, task))(t), must(w.LinkToken(w.ctx, w.task(task.ID)))(t); first != link ||
		now != newest {
		t.Error("the row of a task gives another token than its link")
	}
}

// The token of a new task's link is the same whoever is asked: who has made it, who has made many others
// since, or who has only read the row; and another application is not told it.
func TestLinkTokens(t *testing.T) {
	store := memory.New()
	w := newWorldOn(t, store)
	other := newWorldOn(t, store)
	var tasks []tracking.Task
	var first []string
	for range 200 {
		task := w.create(false)
		tasks, first = append(tasks, task), append(first, must(w.LinkToken(w.ctx, task))(t))
	}
	for i, task := range tasks {
		link := must(other.TaskLink(w.ctx, task.ID))(t)
		for name, got := range map[string]string{
			"at once": first[i], "later": must(w.LinkToken(w.ctx, task))(t), "of another": must(other.LinkToken(w.ctx, task))(t),
		} {
			if got != link {
				t.Errorf("%d: asked %s the token is %q, want %q", i, name, got, link)
			}
		}
		if got := must(w.ForApp("another").LinkToken(w.ctx, task))(t); got != "" {
			t.Errorf("%d: another application gets the token %q", i, got)
		}
	}
	over, end := context.WithCancel(w.ctx)
	end()
	for _, task := range []tracking.Task{tasks[0], tasks[len(tasks)-1]} {
		if _, err := w.LinkToken(over, task); !errors.Is(err, context.Canceled) {
			t.Errorf("in a call that has ended: %v", err)
		}
	}
}

// What a link shows of the path is the trip's path, also when fixes come late or turn out good
// afterwards.
func TestLinkFollowsThePath(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	task := w.create(true)
	link := must(w.TaskLink(w.ctx, task.ID))(t)
	_, trip, err := w.StartTask(w.ctx, "own", task.ID, tracking.Step{LngLat: east(0)})
	if err != nil {
		t.Fatal(err)
	}
	send := func(after time.Duration, m float64) {
		t.Helper()
		must(w.RecordFixes(w.ctx, "own", []tracking.Fix{{LngLat: *east(m), Time: start.Add(after)}}))(t)
		var got []float64
		for _, p := range must(w.Tracking(w.ctx, link))(t).Path {
			got = append(got, float64(int(tracking.Distance(*east(0), p)+0.5)))
		}
		if want := w.path(trip.ID); !slices.Equal(got, want) {
			t.Errorf("after %v m the link shows %v, the path is %v", m, got, want)
		}
	}
	w.advance(time.Minute)
	send(10*time.Second, 100)
	send(20*time.Second, 200)
	send(15*time.Second, 150)
	send(30*time.Second, 90_000) // a jump
	send(31*time.Second, 90_010) // which was right
	send(25*time.Second, 45_000)
	w.advance(2 * time.Minute)
	send(170*time.Second, 90_100)
	for i := range 700 {
		w.advance(time.Second)
		must(w.RecordFixes(w.ctx, "own", []tracking.Fix{{LngLat: *east(90_100 + float64(i*i%97)), Time: w.now()}}))(t)
		if n := len(must(w.Tracking(w.ctx, link))(t).Path); n > 500 {
			t.Fatalf("%d points", n)
		}
	}
}

func TestLinkSeesWhatComesLate(t *testing.T) {
	begin := func(t *testing.T, step tracking.Step) (w *world, link string, trip tracking.TripID) {
		w = newWorld(t)
		must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "own", Available: new(true)}))(t)
		id := w.create(false).ID
		must(w.AssignTask(w.ctx, id, "own"))(t)
		_, got, err := w.StartTask(w.ctx, "own", id, step)
		if err != nil {
			t.Fatal(err)
		}
		return w, must(w.TaskLink(w.ctx, id))(t), got.ID
	}
	same := func(w *world, link string, trip tracking.TripID) {
		w.t.Helper()
		var got []float64
		for _, p := range must(w.Tracking(w.ctx, link))(w.t).Path {
			got = append(got, float64(int(tracking.Distance(*east(0), p)+0.5)))
		}
		if want := w.path(trip); !slices.Equal(got, want) {
			w.t.Errorf("the link shows %v, the path is %v", got, want)
		}
	}
	send := func(w *world, at time.Duration, m float64) {
		w.t.Helper()
		must(w.RecordFixes(w.ctx, "own", []tracking.Fix{{LngLat: *east(m), Time: start.Add(at)}}))(w.t)
	}
	t.Run("a fix of the very start", func(t *testing.T) {
		w, link, trip := begin(t, tracking.Step{})
		same(w, link, trip)
		send(w, 0, 10)
		same(w, link, trip)
	})
	t.Run("a fix with a step", func(t *testing.T) {
		w, link, trip := begin(t, tracking.Step{LngLat: east(0)})
		w.advance(30 * time.Second)
		send(w, 30*time.Second, 300)
		same(w, link, trip)
		must(w.StartTrip(w.ctx, "own", "other", tracking.Step{At: start.Add(15 * time.Second), LngLat: east(150)}))(t)
		same(w, link, trip)
	})
	t.Run("an older one shows the newest to be a jump", func(t *testing.T) {
		w, link, trip := begin(t, tracking.Step{})
		w.advance(30 * time.Second)
		send(w, 20*time.Second, 90_000)
		same(w, link, trip)
		send(w, 10*time.Second, 0)
		same(w, link, trip)
	})
	t.Run("what a caller got is his", func(t *testing.T) {
		w, link, trip := begin(t, tracking.Step{LngLat: east(0)})
		must(w.Tracking(w.ctx, link))(t).Path[0] = *east(77)
		same(w, link, trip)
	})
}

// An expected time stands as long as the position it came from, but not for another way or another
// driver.
func TestExpectedTime(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 100)
	w.driver("far", 9000)
	id := w.create(true).ID
	begin := func(d tracking.DriverID, m float64) {
		t.Helper()
		if _, _, err := w.StartTask(w.ctx, d, id, tracking.Step{LngLat: east(m)}); err != nil {
			t.Fatal(err)
		}
	}
	begin("own", 100)
	w.expects("through the pickup", id, in(100, 5000))
	w.advance(20 * time.Second)
	w.expects("20 s later at the lights it is the same moment", id, in(100, 5000)-20*time.Second)
	if err := pickUp(w, id); err != nil {
		t.Fatal(err)
	}
	w.expects("to the drop", id, in(4900))
	must(w.UnassignTask(w.ctx, id))(t)
	must(w.AssignTask(w.ctx, id, "far"))(t)
	begin("far", 9000)
	w.expects("another driver, through the pickup", id, in(9000, 5000))
	w.advance(time.Hour)
	if v := w.look(id); v.ETA != nil {
		t.Errorf("an hour later the driver is expected in %v", v.ETA.Time.Sub(w.now()))
	}
}

// look is what somebody sees behind a task's link.
func (w *world) look(id tracking.TaskID) tracking.Tracking {
	w.t.Helper()
	return must(w.Tracking(w.ctx, must(w.TaskLink(w.ctx, id))(w.t)))(w.t)
}

// give creates a task of that type between pickup and drop, so many metres east, and gives it to
// own.
func (w *world) give(typ tracking.TaskType, pickup, drop float64) tracking.TaskID {
	w.t.Helper()
	n := tracking.NewTask{Type: typ}
	if typ != tracking.TypeDrop {
		n.Pickup = &tracking.Place{LngLat: east(pickup), Address: "The shop"}
	}
	if typ != tracking.TypePickup {
		n.Drop = &tracking.Place{LngLat: east(drop), Address: "The customer"}
	}
	id := must(w.CreateTask(w.ctx, n))(w.t).ID
	must(w.AssignTask(w.ctx, id, "own"))(w.t)
	return id
}

// fix has own at so many metres now.
func (w *world) fix(metres float64, more ...func(*tracking.Fix)) {
	w.t.Helper()
	f := tracking.Fix{LngLat: *east(metres), Time: w.now()}
	for _, change := range more {
		change(&f)
	}
	must(w.RecordFixes(w.ctx, "own", []tracking.Fix{f}))(w.t)
}

// in is the expected time from now, without what a driver's own speed makes of it: 120 s and 1.3
// times the straight line at 25 km/h, each leg, and 2 min at each stop between.
func in(legs ...float64) (sum time.Duration) {
	for i, metres := range legs {
		if i > 0 {
			sum += 2 * time.Minute
		}
		sum += time.Duration((120 + 1.3*metres/(25/3.6)) * float64(time.Second))
	}
	return sum
}

func (w *world) expects(what string, id tracking.TaskID, want time.Duration) {
	w.t.Helper()
	v := w.look(id)
	if v.ETA == nil {
		w.t.Errorf("%s: no expected time: %+v", what, v)
	} else if got := v.ETA.Time.Sub(w.now()); (got - want).Abs() > 2*time.Second {
		w.t.Errorf("%s: expected in %v, want %v", what, got, want)
	}
}

// The link shows the place of the person who watches; where the driver is heading is another
// matter.
func TestPlaceOfTheWatcher(t *testing.T) {
	for _, c := range []struct {
		name            string
		typ             tracking.TaskType
		place           string
		leg, afterwards tracking.Leg
	}{
		{"pickup", tracking.TypePickup, "The shop", tracking.LegPickup, tracking.LegPickup},
		{"drop", tracking.TypeDrop, "The customer", tracking.LegDrop, tracking.LegDrop},
		{"pickup and drop", tracking.TypePickupAndDrop, "The customer", tracking.LegPickup, tracking.LegDrop},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.driver("own", 300)
			id := w.give(c.typ, 0, 5000)
			check := func(when string, leg tracking.Leg) {
				t.Helper()
				if v := w.look(id); v.Place == nil || v.Place.Address != c.place || v.Leg != leg {
					t.Errorf("%s: place %+v, leg %q; want %s, %q", when, v.Place, v.Leg, c.place, leg)
				}
			}
			check("assigned", "")
			if err := startOwn(w, id); err != nil {
				t.Fatal(err)
			}
			check("started", c.leg)
			if c.typ == tracking.TypePickupAndDrop {
				if err := pickUp(w, id); err != nil {
					t.Fatal(err)
				}
				check("picked up", c.afterwards)
			}
			if err := finish(w, id); err != nil {
				t.Fatal(err)
			}
			check("done", "")
		})
	}
	t.Run("trip", func(t *testing.T) {
		w := newWorld(t)
		w.driver("own", 300)
		for _, r := range []tracking.NewRequest{
			{DriverID: "own", TrackingID: "to-a-place", Dest: "10.05,0"}, {DriverID: "own", TrackingID: "anywhere"},
		} {
			if err := w.RequestTrip(w.ctx, r); err != nil {
				t.Fatal(err)
			}
			trip := must(w.StartTrip(w.ctx, "own", r.TrackingID, tracking.Step{LngLat: east(300)}))(t)
			v := must(w.Tracking(w.ctx, must(w.TripLink(w.ctx, trip.ID))(t)))(t)
			if named := r.Dest != ""; (v.Place != nil) != named || (v.ETA != nil) != named || v.Leg != "" {
				t.Errorf("%s: %+v", r.TrackingID, v)
			}
		}
	})
}

// An expected time leads through all that comes before the watcher's place.
func TestExpectedTimeThroughTheStopsBefore(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	begin := func(id tracking.TaskID) {
		t.Helper()
		w.advance(time.Second)
		w.fix(0)
		if err := startOwn(w, id); err != nil {
			t.Fatal(err)
		}
	}
	first, second, third := w.give(tracking.TypePickupAndDrop, 1000, 3000), w.give(tracking.TypePickupAndDrop, 4000,
		6000), w.give(tracking.TypeDrop, 0, 500)
	begin(first)
	w.expects("through the own pickup", first, in(1000, 2000))
	begin(second)
	w.expects("one started later is after it", first, in(1000, 2000))
	w.expects("both stops of the one before", second, in(1000, 2000, 1000, 2000))
	begin(third)
	w.expects("four stops before", third, in(1000, 2000, 1000, 2000, 5500))
	if err := pickUp(w, second); err != nil {
		t.Fatal(err)
	}
	w.expects("goods on board", second, in(1000, 2000, 3000))
	if err := finish(w, first); err != nil {
		t.Fatal(err)
	}
	w.expects("the one before is done", second, in(6000))
	if err := finish(w, second); err != nil {
		t.Fatal(err)
	}
	w.expects("nothing before", third, in(500))
}

func TestExpectedTimeWithPlacesUnknown(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	make := func(n tracking.NewTask) tracking.TaskID {
		t.Helper()
		id := must(w.CreateTask(w.ctx, n))(t).ID
		must(w.AssignTask(w.ctx, id, "own"))(t)
		w.advance(time.Second)
		w.fix(0)
		if err := startOwn(w, id); err != nil {
			t.Fatal(err)
		}
		return id
	}
	shop := make(tracking.NewTask{
		Type: tracking.TypePickupAndDrop, Pickup: &tracking.Place{Address: "Somewhere"},
		Drop: &tracking.Place{LngLat: east(900)},
	})
	if eta := w.look(shop).ETA; eta != nil {
		t.Errorf("the pickup is nobody knows where, and the time is known: %+v", eta)
	}
	drop := make(tracking.NewTask{Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: east(1900)}})
	w.expects("a stop of another task nobody knows where", drop, in(0, 900, 1000))
}

// No fix for 110 minutes: the expected time gets nearer, and goes with the position that it came
// from.
func TestExpectedTimeOfASilentDriver(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	id := w.give(tracking.TypeDrop, 0, 2000)
	if err := startOwn(w, id); err != nil {
		t.Fatal(err)
	}
	w.fix(0)
	first := w.look(id).ETA
	w.advance(4 * time.Minute)
	if eta := w.look(id).ETA; eta == nil || !eta.Time.Equal(first.Time) || !eta.ComputedAt.Equal(first.ComputedAt) {
		t.Errorf("4 min later it is %+v, was %+v", eta, first)
	}
	w.advance(time.Minute)
	if v := w.look(id); v.ETA == nil || !v.Position.Live {
		t.Errorf("after 5 min: %+v", v)
	}
	w.advance(time.Millisecond)
	for _, silence := range []time.Duration{0, 105 * time.Minute} {
		w.advance(silence)
		if v := w.look(id); v.ETA != nil || v.Position == nil || v.Position.Live {
			t.Errorf("silent for 5 min and %v: %+v, %+v", silence, v.Position, v.ETA)
		}
	}
	w.fix(1000)
	w.expects("heard of again", id, in(1000))
}

// A new position has an expected time of its own, however soon it comes.
func TestExpectedTimeComesFromThePosition(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	id := w.give(tracking.TypeDrop, 0, 4000)
	if err := startOwn(w, id); err != nil {
		t.Fatal(err)
	}
	w.advance(40 * time.Second)
	w.fix(0)
	w.expects("from the depot", id, in(4000))
	w.advance(time.Second)
	w.fix(100)
	w.expects("a second later, 100 m nearer", id, in(3900))
	if v := w.look(id); v.ETA.ComputedAt.Before(v.Position.Time) {
		t.Errorf("a time of %v beside a position of %v", v.ETA.ComputedAt, v.Position.Time)
	}
}

// At the door is what the expected time says, and nothing else says it.
func TestAtTheDoor(t *testing.T) {
	for _, c := range []struct {
		name   string
		typ    tracking.TaskType
		metres float64
		change func(*tracking.Fix)
		door   bool
	}{
		{"on the doorstep", tracking.TypeDrop, 5000, nil, true},
		{"49 m off", tracking.TypeDrop, 4951, nil, true},
		{"51 m off", tracking.TypeDrop, 4949, nil, false},
		{"a fix of 100 m", tracking.TypeDrop, 5000, func(f *tracking.Fix) { f.Accuracy = tracking.Known(100) }, true},
		{"a fix of 150 m", tracking.TypeDrop, 5000, func(f *tracking.Fix) { f.Accuracy = tracking.Known(150) }, false},
		{"passing by on the way to the shop", tracking.TypePickupAndDrop, 5000, nil, false},
		{"at the shop, for the customer", tracking.TypePickupAndDrop, 0, nil, false},
		{"at the shop, for the shop", tracking.TypePickup, 0, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.driver("own", c.metres)
			id := w.give(c.typ, 0, 5000)
			if err := startOwn(w, id); err != nil {
				t.Fatal(err)
			}
			w.advance(time.Minute)
			if c.change == nil {
				c.change = func(*tracking.Fix) {}
			}
			w.fix(c.metres, c.change)
			eta := w.look(id).ETA
			if eta == nil || eta.Time.Equal(eta.ComputedAt) != c.door {
				t.Fatalf("expected at %v, computed at %v; want at the door: %v", eta.Time, eta.ComputedAt, c.door)
			}
			if c.door && !eta.Time.Equal(w.now()) {
				t.Errorf("expected at %v, it is %v", eta.Time, w.now())
			}
			if !c.door && eta.Time.Sub(eta.ComputedAt) < time.Minute-time.Second {
				t.Errorf("not at the door, and expected in %v", eta.Time.Sub(eta.ComputedAt))
			}
		})
	}
}

// roads is a Router that counts how often it is asked.
type roads struct {
	asked int
	took  time.Duration
	err   error
}

func (r *roads) TravelTime(context.Context, []tracking.LngLat) (time.Duration, error) {
	r.asked++
	return r.took, r.err
}

// The Router is asked now and then; what it said is carried on with the positions in between.
func TestRouterNowAndThen(t *testing.T) {
	r := &roads{took: 20 * time.Minute}
	w := newWorld(t, func(o *tracking.Options) { o.Router = r })
	w.driver("own", 0)
	id := w.give(tracking.TypeDrop, 0, 4000)
	if err := startOwn(w, id); err != nil {
		t.Fatal(err)
	}
	w.advance(30 * time.Second)
	w.fix(0)
	w.expects("from the depot", id, 20*time.Minute)
	for i := range 5 {
		w.advance(5 * time.Second)
		w.fix(float64(40 * (i + 1)))
		v := w.look(id)
		if left := v.ETA.Time.Sub(w.now()); v.ETA.Source != "router" || left >= 20*time.Minute ||
			left < 18*time.Minute {
			t.Errorf("after %d s: %v by %s", 5*(i+1), left, v.ETA.Source)
		}
	}
	if r.asked != 1 {
		t.Errorf("asked %d times in 25 s", r.asked)
	}
	w.advance(5 * time.Second)
	w.fix(240)
	w.expects("asked again", id, 20*time.Minute)
	if r.asked != 2 {
		t.Errorf("asked %d times in 30 s", r.asked)
	}
	r.err = context.DeadlineExceeded
	w.advance(30 * time.Second)
	for range 3 {
		w.advance(time.Second)
		w.fix(240)
		if v := w.look(id); v.ETA.Source != "estimate" {
			t.Errorf("by %s, which is down", v.ETA.Source)
		}
	}
	if r.asked != 3 {
		t.Errorf("one that is down was asked %d times within 3 s", r.asked-2)
	}
}
