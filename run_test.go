package tracking_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// receiver is a Notifier that fails as told and records what it gets.
type receiver struct {
	mu   sync.Mutex
	fail func(n tracking.Notification) error
	got  []tracking.Notification
}

func (r *receiver) Notify(ctx context.Context, n tracking.Notification) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.fail != nil {
		if err := r.fail(n); err != nil {
			return err
		}
	}
	r.got = append(r.got, n)
	return nil
}

func (r *receiver) seqs(subject string) (list []int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range r.got {
		if n.Event.Subject.ID == subject {
			list = append(list, n.Event.Seq)
		}
	}
	return list
}

// running starts a Service under synctest's clock, with Run, and stops it at the end.
func running(t *testing.T, opts *tracking.Options) *tracking.Service {
	return runningOn(t, memory.New(), opts)
}

func runningOn(t *testing.T, store tracking.Store, opts *tracking.Options) *tracking.Service {
	opts.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	svc, err := tracking.New(store, opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- svc.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
		store.Close()
	})
	return svc
}

func newDrop() tracking.NewTask {
	return tracking.NewTask{Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: east(0), Address: "x"}}
}

func TestRunDeliversInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := map[string]int{}
		r := &receiver{}
		r.fail = func(n tracking.Notification) error { // each event fails once
			if tries[n.Event.ID]++; tries[n.Event.ID] == 1 {
				return errors.New("not now")
			}
			if n.Attempt != tries[n.Event.ID] {
				return fmt.Errorf("attempt %d at the %d. try", n.Attempt, tries[n.Event.ID])
			}
			return nil
		}
		svc := running(t, &tracking.Options{Notifier: r})
		var ids []string
		for range 20 {
			task := must(svc.CreateTask(t.Context(), newDrop()))(t)
			must(svc.UpdateTask(t.Context(), task.ID, tracking.TaskUpdate{Notes: new("a")}))(t)
			must(svc.CancelTask(t.Context(), task.ID, tracking.Reason{}))(t)
			ids = append(ids, string(task.ID))
		}
		time.Sleep(time.Minute)
		for _, id := range ids {
			if got := r.seqs(id); !slices.Equal(got, []int64{1, 2, 3}) {
				t.Errorf("%s: %v", id, got)
			}
		}
	})
}

func TestRunGivesUpAndReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := true
		var at []time.Time
		r := &receiver{}
		r.fail = func(n tracking.Notification) error {
			if broken && n.Event.Type == tracking.EventTaskCreated {
				at = append(at, time.Now())
				return errors.New("down")
			}
			return nil
		}
		svc := running(t, &tracking.Options{Notifier: r, KeepEvents: -1})
		begin := time.Now()
		task := must(svc.CreateTask(t.Context(), newDrop()))(t)
		must(svc.CancelTask(t.Context(), task.ID, tracking.Reason{}))(t)
		time.Sleep(90 * time.Hour)
		waits := []time.Duration{
			0, 5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour,
			14 * time.Hour, 20 * time.Hour, 24 * time.Hour,
		}
		if len(at) != len(waits) {
			t.Fatalf("%d tries, want %d", len(at), len(waits))
		}
		for i, last := 0, begin; i < len(at); i, last = i+1, at[i] {
			if got := at[i].Sub(last); got < waits[i] || got > waits[i]+waits[i]/10+2*time.Second {
				t.Errorf("try %d came after %v, want %v", i+1, got, waits[i])
			}
		}
		if got := r.seqs(string(task.ID)); !slices.Equal(got, []int64{2}) {
			t.Errorf("after the first was given up: %v", got)
		}
		dead, _, err := svc.Events(t.Context(), tracking.EventFilter{Dead: true})
		if err != nil || len(dead) != 1 || dead[0].Type != tracking.EventTaskCreated {
			t.Fatalf("dead: %v %v", dead, err)
		}
		broken = false
		if err := svc.Replay(t.Context(), "", dead[0].ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if got := r.seqs(string(task.ID)); !slices.Equal(got, []int64{2, 1}) {
			t.Errorf("after the replay: %v", got)
		}
	})
}

// An application whose receiver hangs holds up nobody else's events.
func TestRunPassesAHangingReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []tracking.AppID
		svc := running(t,
			&tracking.Options{Notifier: notifierFunc(func(ctx context.Context, n tracking.Notification) error {
				if n.App == "hangs" {
					<-ctx.Done()
					return ctx.Err()
				}
				mu.Lock()
				defer mu.Unlock()
				got = append(got, n.App)
				return nil
			})})
		for range 500 {
			must(svc.ForApp("hangs").CreateTask(t.Context(), newDrop()))(t)
		}
		time.Sleep(time.Second)
		for range 500 {
			must(svc.ForApp("works").CreateTask(t.Context(), newDrop()))(t)
		}
		time.Sleep(2 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if len(got) != 500 {
			t.Errorf("%d of 500 events arrived", len(got))
		}
	})
}

type notifierFunc func(context.Context, tracking.Notification) error

func (f notifierFunc) Notify(ctx context.Context, n tracking.Notification) error { return f(ctx, n) }

// counted counts how often drivers are looked for.
type counted struct {
	tracking.Store
	offers atomic.Int64
}

func (c *counted) Offers(ctx context.Context, app tracking.AppID, o tracking.Offer) ([]tracking.Driver, error) {
	c.offers.Add(1)
	return c.Store.Offers(ctx, app, o)
}

// A thousand tasks wait; drivers come one by one; each task goes to one driver, in the order they
// came, within a second, and nobody looks for drivers all the time.
func TestRunServesTheWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &counted{Store: memory.New()}
		svc := runningOn(t, store, &tracking.Options{})
		ctx := t.Context()
		n := newDrop()
		n.AutoAssign = true
		var ids []tracking.TaskID
		for range 1000 {
			ids = append(ids, must(svc.CreateTask(ctx, n))(t).ID)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Second)
		store.offers.Store(0)
		time.Sleep(time.Minute)
		if got := store.offers.Load(); got > 3*60 {
			t.Errorf("with nobody on duty, drivers were looked for %d times in a minute", got)
		}
		for i, id := range ids {
			d := tracking.DriverID(fmt.Sprint("d", i))
			must(svc.SaveDriver(ctx, tracking.DriverUpdate{ID: d, LngLat: east(float64(i))}))(t)
			must(svc.SetAvailability(ctx, d, true, time.Time{}))(t)
			time.Sleep(time.Second)
			if got := must(svc.Task(ctx, id))(t); got.DriverID != d {
				t.Fatalf("task %d went to %q, want %q", i, got.DriverID, d)
			}
		}
	})
}

// What makes a waiting task somebody's is noticed within a second, whoever of several Services on
// the store did it.
func TestRunNoticesWhoCouldServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		runningOn(t, store, &tracking.Options{MaxAssignDistance: 1000, MaxOpenTasks: -1})
		// does not Run
		other := must(tracking.New(store, &tracking.Options{MaxAssignDistance: 1000, MaxOpenTasks: -1}))(t)
		ctx := t.Context()
		n := newDrop()
		n.AutoAssign = true
		served := func(what string, task tracking.Task) {
			t.Helper()
			if !task.Waiting {
				t.Errorf("%s: it did not wait", what)
			}
			time.Sleep(time.Second)
			if got := must(other.Task(ctx, task.ID))(t); got.DriverID == "" {
				t.Errorf("%s: it waits still", what)
			}
		}
		task := must(other.CreateTask(ctx, n))(t)
		must(other.SaveDriver(ctx, tracking.DriverUpdate{ID: "a", Available: new(true), LngLat: east(0)}))(t)
		served("a driver came on duty", task)

		must(other.SetAvailability(ctx, "a", false, time.Time{}))(t)
		for range 50 {
			must(other.CreateTask(ctx, n))(t)
		}
		must(other.SetAvailability(ctx, "a", true, time.Time{}))(t)
		served("the driver is there, and others wait for him", must(other.CreateTask(ctx, n))(t))

		time.Sleep(time.Minute)
		must(other.RecordFixes(ctx, "a", []tracking.Fix{{LngLat: *east(2000), Time: time.Now()}}))(t)
		task = must(other.CreateTask(ctx, n))(t)
		time.Sleep(time.Minute)
		must(other.RecordFixes(ctx, "a", []tracking.Fix{{LngLat: *east(900), Time: time.Now()}}))(t)
		served("the driver came within reach", task)

		time.Sleep(time.Hour) // silent
		task = must(other.CreateTask(ctx, n))(t)
		must(other.RecordFixes(ctx, "a", nil))(t)
		served("the driver was heard of", task)
	})
}

func TestRunEndsTripsAndNotesSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{}
		svc := running(t, &tracking.Options{Notifier: r})
		ctx := t.Context()
		must(svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "a", Available: new(true), LngLat: east(0)}))(t)
		trip := must(svc.StartTrip(ctx, "a", "x", tracking.Step{}))(t)
		time.Sleep(3 * time.Hour)
		if got := r.seqs(string(trip.ID)); !slices.Equal(got, []int64{1, 2}) {
			t.Errorf("of the trip: %v", got)
		}
		if got := r.seqs("a"); !slices.Equal(got, []int64{1, 2}) { // available, silent
			t.Errorf("of the driver: %v", got)
		}
	})
}

func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc := running(t, &tracking.Options{})
		ctx := t.Context()
		must(svc.SaveDriver(ctx, tracking.DriverUpdate{
			ID: "a", Name: new("Ann Other"), Available: new(true), LngLat: east(0),
		}))(t)
		n := newDrop()
		n.AutoAssign = true
		task := must(svc.CreateTask(ctx, n))(t)
		link := must(svc.TaskLink(ctx, task.ID))(t)
		var seen []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			for v, err := range svc.Follow(ctx, link) {
				if err != nil {
					t.Error(err)
					return
				}
				s := v.Status
				if v.Position != nil {
					s += fmt.Sprintf("@%.0f", tracking.Distance(*east(0), v.Position.LngLat))
					if !v.Position.Live {
						s += " last seen"
					}
				}
				if len(seen) == 0 || seen[len(seen)-1] != s { // only the expected time changed
					seen = append(seen, s)
				}
			}
		}()
		step := func() { synctest.Wait(); time.Sleep(10 * time.Millisecond) }
		step()
		if _, _, err := svc.StartTask(ctx, "a", task.ID, tracking.Step{LngLat: east(1)}); err != nil {
			t.Fatal(err)
		}
		step()
		must(svc.RecordFixes(ctx, "a", []tracking.Fix{{LngLat: *east(20), Time: time.Now()}}))(t)
		step()
		time.Sleep(6 * time.Minute)
		step()
		must(svc.FinishTask(ctx, "a", task.ID, tracking.Completion{}, tracking.Step{}))(t)
		<-done
		if want := []string{
			"assigned", "in_progress@1", "in_progress@20", "in_progress@20 last seen", "completed",
		}; !slices.Equal(seen, want) {
			t.Errorf("saw %q, want %q", seen, want)
		}
	})
}

func TestCloseEndsFollowers(t *testing.T) {
	defer goleak.VerifyNone(t)
	w := newWorld(t)
	link := must(w.TaskLink(w.ctx, w.create(false).ID))(t)
	var wg sync.WaitGroup
	for range 10 {
		first := make(chan struct{})
		wg.Go(func() {
			for range w.Follow(w.ctx, link) {
				close(first)
			}
		})
		<-first
	}
	if err := w.Close(w.ctx); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
}

// The fix rule of time and the geocoder: a task without a point waits for one, a trip gets its
// addresses afterwards.
type geocoder struct{ down, panics bool }

func (g *geocoder) Point(_ context.Context, address string) (tracking.LngLat, error) {
	switch {
	case g.panics:
		panic("no map")
	case g.down:
		return tracking.LngLat{}, errors.New("down")
	case address == "12 Anna Salai":
		return *east(300), nil
	}
	return tracking.LngLat{}, tracking.ErrNotFound
}

// TravelTime makes a Router of it, too.
func (g *geocoder) TravelTime(context.Context, []tracking.LngLat) (time.Duration, error) {
	if g.panics {
		panic("no map")
	}
	return 7 * time.Minute, nil
}

// What the embedder's parts do wrong harms no operation.
func TestPanicsOfTheEmbedder(t *testing.T) {
	g := &geocoder{panics: true}
	w := newWorld(t, func(o *tracking.Options) { o.Geocoder, o.Router = g, g })
	w.driver("own", 0)
	task := must(w.CreateTask(w.ctx, tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: east(500)},
	}))(t)
	must(w.CreateTask(w.ctx, tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "12 Anna Salai"},
	}))(t)
	if n, err := w.Geocode(w.ctx); n != 0 || err != nil {
		t.Error(n, err)
	}
	must(w.AssignTask(w.ctx, task.ID, "own"))(t)
	if err := startOwn(w, task.ID); err != nil {
		t.Fatal(err)
	}
	link := must(w.TaskLink(w.ctx, task.ID))(t)
	if got := must(w.Tracking(w.ctx, link))(t).ETA; got == nil || got.Source != "estimate" {
		t.Errorf("%+v", got)
	}
	g.panics = false
	w.advance(time.Minute)
	if got := must(w.Tracking(w.ctx, link))(t).ETA; got.Source != "router" || got.Time.Sub(got.ComputedAt) != 7*time.Minute {
		t.Errorf("%+v", got)
	}
}

func (g *geocoder) Address(_ context.Context, p tracking.LngLat) (string, error) {
	return fmt.Sprintf("%.0f m Road", tracking.Distance(*east(0), p)), nil
}

func TestGeocoding(t *testing.T) {
	g := &geocoder{down: true}
	w := newWorld(t, func(o *tracking.Options) { o.Geocoder = g })
	n := tracking.NewTask{Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "12 Anna Salai"}, AutoAssign: true}
	task := must(w.CreateTask(w.ctx, n))(t)
	w.driver("own", 0)
	if !task.Waiting || must(w.AssignWaiting(w.ctx))(t) != 0 {
		t.Error("assigned without a point")
	}
	must(w.Geocode(w.ctx))(t)
	g.down = false
	if must(w.Geocode(w.ctx))(t) != 0 {
		t.Error("asked again at once")
	}
	w.advance(time.Minute)
	if must(w.Geocode(w.ctx))(t) != 1 || must(w.AssignWaiting(w.ctx))(t) != 1 {
		t.Error("no point, or nobody assigned")
	}
	got := w.task(task.ID)
	if got.DriverID != "own" || *got.Drop.LngLat != *east(300) {
		t.Errorf("%+v", got)
	}
	trip := must(w.StartTrip(w.ctx, "own", "other", tracking.Step{LngLat: east(40)}))(t)
	w.advance(time.Minute)
	must(w.StopTrip(w.ctx, "own", trip.ID, tracking.Step{LngLat: east(90)}))(t)
	must(w.Geocode(w.ctx))(t)
	if got := must(w.Trip(w.ctx, trip.ID))(t); got.StartLocation != "40 m Road" || got.EndLocation != "90 m Road" {
		t.Errorf("%q to %q", got.StartLocation, got.EndLocation)
	}

	plain := newWorld(t)
	_, err := plain.CreateTask(plain.ctx, n)
	var e *tracking.Error
	if !errors.As(err, &e) || e.Code != tracking.ErrInvalid || e.Field != "drop.lnglat" {
		t.Errorf("without a geocoder: %v", err)
	}
}

func TestSlowReceiversMayHaveLong(t *testing.T) {
	r := &receiver{}
	w := newWorld(t, func(o *tracking.Options) { o.Notifier, o.NotifyTimeout = r, 5*time.Minute })
	id := w.create(false).ID
	must(w.DeliverEvents(w.ctx))(t)
	if got := r.seqs(string(id)); !slices.Equal(got, []int64{1}) {
		t.Errorf("delivered %v", got)
	}
}

func TestNotifyErrorWithoutCause(t *testing.T) {
	if got := (&tracking.NotifyError{Permanent: true}).Error(); got == "" {
		t.Error("says nothing")
	}
}

// After an update the Geocoder's patience begins anew.
func TestGeocodingAgainAfterAnUpdate(t *testing.T) {
	g := &geocoder{}
	w := newWorld(t, func(o *tracking.Options) { o.Geocoder = g })
	task := w.create(false)
	w.advance(5 * time.Hour)
	g.down = true
	must(w.UpdateTask(w.ctx, task.ID, tracking.TaskUpdate{Drop: &tracking.Place{Address: "12 Anna Salai"}}))(t)
	must(w.Geocode(w.ctx))(t)
	g.down = false
	w.advance(2 * time.Minute)
	if n := must(w.Geocode(w.ctx))(t); n != 1 {
		t.Error("a short failure leaves the task without a point for hours")
	}
}

// Whoever follows a link that is revoked is told so at once.
func TestRevokingEndsFollowers(t *testing.T) {
	for _, kind := range []tracking.SubjectKind{tracking.KindTask, tracking.KindTrip} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				svc := running(t, &tracking.Options{})
				must(svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "a"}))(t)
				task := must(svc.CreateTask(ctx, newDrop()))(t)
				must(svc.AssignTask(ctx, task.ID, "a"))(t)
				_, trip, err := svc.StartTask(ctx, "a", task.ID, tracking.Step{})
				if err != nil {
					t.Fatal(err)
				}
				link, revoke := must(svc.TaskLink(ctx, task.ID))(t), func() error {
					return svc.RevokeTaskLink(ctx, task.ID)
				}
				if kind == tracking.KindTrip {
					link, revoke = must(svc.TripLink(ctx, trip.ID))(t), func() error {
						return svc.RevokeTripLink(ctx, trip.ID)
					}
				}
				before := time.Now()
				for _, err := range svc.Follow(ctx, link) {
					if errors.Is(err, tracking.ErrNotFound) {
						break
					}
					if err := errors.Join(err, revoke()); err != nil {
						t.Fatal(err)
					}
				}
				if waited := time.Since(before); waited > 0 {
					t.Errorf("after %v", waited)
				}
			})
		})
	}
}

// finishes counts the deliveries that are given back untried.
type finishes struct {
	tracking.Store
	mu             sync.Mutex
	released, said int
}

func (f *finishes) FinishEvents(ctx context.Context, done []tracking.Delivery) error {
	f.mu.Lock()
	for _, d := range done {
		f.said++
		if d.State == tracking.DeliveryReleased {
			f.released++
		}
	}
	f.mu.Unlock()
	return f.Store.FinishEvents(ctx, done)
}

// A slow receiver has as many events under way as there is room for, and gives none back.
func TestRunLeasesWhatThereIsRoomFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &finishes{Store: memory.New()}
		var under, most atomic.Int64
		var got atomic.Int64
		slow := notifierFunc(func(context.Context, tracking.Notification) error {
			most.Store(max(most.Load(), under.Add(1)))
			time.Sleep(20 * time.Millisecond)
			under.Add(-1)
			got.Add(1)
			return nil
		})
		svc := runningOn(t, store, &tracking.Options{Notifier: slow})
		const n = 2000
		for range n {
			must(svc.CreateTask(t.Context(), newDrop()))(t)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got.Load() != n || store.said != n {
			t.Errorf("%d events were told, and %d noted, want %d", got.Load(), store.said, n)
		}
		if store.released > n/100 {
			t.Errorf("%d of %d deliveries were given back untried", store.released, n)
		}
		if most.Load() != 32 {
			t.Errorf("at most %d were under way at once, want 32", most.Load())
		}
	})
}

// lateStore keeps the first word of what became of events back until it is let go.
type lateStore struct {
	tracking.Store
	first sync.Once
	gate  chan struct{}
}

func (s *lateStore) FinishEvents(ctx context.Context, done []tracking.Delivery) error {
	s.first.Do(func() { <-s.gate })
	return s.Store.FinishEvents(context.WithoutCancel(ctx), done)
}

// What a process says too late does not end a lease that it has been given since.
func TestLateWordEndsNoLaterLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lateStore{Store: memory.New(), gate: make(chan struct{})}
		told, gate := 0, make(chan struct{})
		svc, err := tracking.New(s, &tracking.Options{
			Logger: slog.New(slog.DiscardHandler),
			Notifier: notifierFunc(func(context.Context, tracking.Notification) error {
				switch told++; told {
				case 1:
					return errors.New("not now")
				case 2:
					<-gate
				}
				return nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		must(svc.CreateTask(t.Context(), newDrop()))(t)
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { must(svc.DeliverEvents(t.Context()))(t) })
			synctest.Wait()
			if told == 1 {
				time.Sleep(time.Hour) // the lease is over
			}
		}
		close(s.gate)
		synctest.Wait()
		if n := must(svc.DeliverEvents(t.Context()))(t); n != 0 || told != 2 {
			t.Errorf("%d events are handed out while they are told, and %d were told in all; want 0 and 2", n, told)
		}
		close(gate)
		all.Wait()
	})
}

// holdingStore is a store where a transaction of an embedder's holds a driver.
type holdingStore struct {
	tracking.Store
	held tracking.DriverID
}

func (s *holdingStore) Commit(
	ctx context.Context, app tracking.AppID, cs *tracking.Changeset,
) (tracking.Written, error) {
	if slices.ContainsFunc(cs.Drivers, func(d tracking.Driver) bool { return d.ID == s.held }) {
		<-ctx.Done()
		return tracking.Written{}, ctx.Err()
	}
	return s.Store.Commit(ctx, app, cs)
}

// A waiting task that somebody's transaction holds has the others wait for it no longer than its own
// two attempts take, though it comes before all of them.
func TestHeldTaskHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := &heldTask{Store: memory.New()}
		svc := must(tracking.New(s, &tracking.Options{Logger: slog.New(slog.DiscardHandler)}))(t)
		const all = 60
		var ids []tracking.TaskID
		for range all {
			task := newDrop()
			task.AutoAssign = true
			ids = append(ids, must(svc.CreateTask(ctx, task))(t).ID)
			time.Sleep(time.Millisecond)
		}
		for i := range all + 2 { // with those whom it could not be given to
			must(svc.SaveDriver(ctx, tracking.DriverUpdate{
				ID: tracking.DriverID(fmt.Sprint("d", i)), LngLat: east(float64(i)), Available: new(true),
			}))(t)
		}
		s.held = ids[0]
		began := time.Now()
		if n, err := svc.AssignWaiting(ctx); n != all-1 || !errors.Is(err, tracking.ErrUnavailable) {
			t.Errorf("%d of %d others are assigned, error %v", n, all-1, err)
		}
		if took := time.Since(began); took != 6*time.Second {
			t.Errorf("it waited for %v", took)
		}
		s.held = ""
		time.Sleep(20 * time.Second)
		if n := must(svc.AssignWaiting(ctx))(t); n != 1 {
			t.Errorf("then %d are assigned", n)
		}
	})
}

// heldTask is a store in which somebody holds a task.
type heldTask struct {
	tracking.Store
	held tracking.TaskID
}

func (s *heldTask) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	if slices.ContainsFunc(cs.Tasks, func(t tracking.Task) bool { return t.ID == s.held }) {
		<-ctx.Done()
		return tracking.Written{}, ctx.Err()
	}
	return s.Store.Commit(ctx, app, cs)
}

// A step that is called by itself waits no longer than Run for a row that is held, does the rest, and
// comes to what is left when it is called again.
func TestStepsWaitBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		s := &holdingStore{Store: memory.New()}
		svc := must(tracking.New(s, &tracking.Options{Logger: slog.New(slog.DiscardHandler)}))(t)
		for i, id := range []tracking.DriverID{"near", "far"} {
			must(svc.SaveDriver(ctx, tracking.DriverUpdate{ID: id, LngLat: east(float64(100 * i))}))(t)
		}
		task := newDrop()
		task.AutoAssign = true
		id := must(svc.CreateTask(ctx, task))(t).ID
		for _, d := range []tracking.DriverID{"near", "far"} {
			must(svc.SaveDriver(ctx, tracking.DriverUpdate{ID: d, Available: new(true)}))(t)
		}
		s.held = "near"

		began := time.Now()
		if n, err := svc.AssignWaiting(ctx); n != 0 || !errors.Is(err, tracking.ErrUnavailable) {
			t.Errorf("with the nearest driver held %d are assigned, error %v", n, err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("it waited for %v", took)
		}
		if n := must(svc.AssignWaiting(ctx))(t); n != 1 {
			t.Errorf("then %d are assigned", n)
		}
		if got := must(svc.Task(ctx, id))(t); got.DriverID != "far" {
			t.Errorf("the task is with %q", got.DriverID)
		}

		time.Sleep(24 * time.Hour)
		began = time.Now()
		if n, err := svc.MarkSilent(ctx); n != 1 || !errors.Is(err, tracking.ErrUnavailable) {
			t.Errorf("of two silent drivers, one of them held, %d are marked, error %v", n, err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("it waited for %v", took)
		}
		s.held = ""
		if n := must(svc.MarkSilent(ctx))(t); n != 1 {
			t.Errorf("then %d are marked", n)
		}
	})
}
