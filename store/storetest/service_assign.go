package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// assignChecks count what an assignment costs where many stand or wait.
func assignChecks() []check {
	return []check{
		{"of a thousand drivers in one spot the right one is found by one look at a few", crowdIsFoundByOneLook},
		{"sixty-four at once for one driver without a limit do not run against each other", manyAtOnceForOneDriver},
		{"a hundred at once spread over the drivers in one spot", manyAtOnceSpreadOverASpot},
		{"a create waits in line and serves nobody else, then all are served by age", createWaitsInLine},
		{"thousands wait out of reach: a create costs no more, a sweep nothing, and who comes within reach is noticed",
			thousandsOutOfReachCostNothing},
		{"applications take turns", applicationsTakeTurns},
		{"who is excluded by all, or full, or silent, keeps nobody waiting", hopelessTasksHoldUpNobody},
		{"who requires what nobody has keeps nobody waiting, and costs nothing", unfitTasksHoldUpNobody},
		{"a hundred at once for drivers with limits of their own keep to them", manyAtOnceKeepToOwnLimits},
		{"a waiting task that somebody's transaction holds goes before nobody", heldTaskHoldsUpNobody},
		{"a limit that is moved while tasks are assigned is never exceeded", limitsMoveWhileTasksAreAssigned},
	}
}

func crowdIsFoundByOneLook(t testing.TB, s tracking.Store) {
	count := &tally{Store: s}
	svc := several(t, count, 1, tracking.Options{MaxOpenTasks: 3})[0]
	crowd(t, s, 1000, *dropHere(true).Drop.LngLat, func(i int, d *tracking.Driver) {
		if i < 990 {
			d.Route = stops(1)
		}
	})
	for i := range 13 { // the ten who are free, then those with one task, each by id
		want := tracking.DriverID(fmt.Sprintf("d%06d", 990+i))
		if i >= 10 {
			want = tracking.DriverID(fmt.Sprintf("d%06d", i-10))
		}
		count.forget()
		task, err := svc.CreateTask(t.Context(), dropHere(true))
		if err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("driver of task %d", i), task.DriverID, want)
		if n, rows := count.offers.Load(), count.offered.Load(); n != 1 || rows > 8 {
			t.Errorf("task %d: %d looks at %d drivers, want 1 at no more than 8", i, n, rows)
		}
	}
}

func manyAtOnceForOneDriver(t testing.TB, s tracking.Store) {
	count := &tally{Store: s}
	svc := several(t, count, 1, tracking.Options{MaxOpenTasks: -1})[0]
	onDuty(t, svc, "d", *dropHere(true).Drop.LngLat)
	count.forget()
	err := together(t, 64, func(ctx context.Context, i int) error {
		_, err := svc.CreateTask(ctx, dropHere(true))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	swept(t, svc)
	same(t, "open tasks of the driver", use(t, s, here).driver("d").OpenTasks(), 64)
	// one may now and then be too fast for another; if all were, there would be 2,000
	if n := count.commits.Load(); n > 128 {
		t.Errorf("%d tries to assign 64 tasks, want at most 128", n)
	}
}

func manyAtOnceSpreadOverASpot(t testing.TB, s tracking.Store) {
	svcs := several(t, s, 2, tracking.Options{MaxOpenTasks: 3})
	crowd(t, s, 50, *dropHere(true).Drop.LngLat, nil)
	err := together(t, 100, func(ctx context.Context, i int) error {
		_, err := svcs[i%2].CreateTask(ctx, dropHere(true))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	c := use(t, s, here)
	drivers, _ := c.drivers(tracking.DriverFilter{})
	all := 0
	for _, d := range drivers {
		// Not 2 exactly: between a commit and the end of its attempt a task counts twice.
		if all += d.OpenTasks(); d.OpenTasks() == 0 || d.OpenTasks() > 3 {
			t.Errorf("%s has %d open tasks, want about 2", d.ID, d.OpenTasks())
		}
	}
	same(t, "open tasks", all, 100)
}

// createWaitsInLine has tasks wait for a driver, and creates one more.
func createWaitsInLine(t testing.TB, s tracking.Store) {
	count := &tally{Store: s}
	svc := several(t, count, 1, tracking.Options{MaxOpenTasks: -1})[0]
	place := *dropHere(true).Drop.LngLat
	waiting := briefly(300)
	want := line(t, s, here, waiting, place)
	onDuty(t, svc, "d", place)
	count.forget()
	last := created(t, svc)
	if !last.Waiting {
		t.Errorf("the new task went to %q, before those that wait", last.DriverID)
	}
	if count.commits.Load() != 1 || count.offers.Load() != 1 || count.lines.Load() != 1 || count.lined.Load() != 1 ||
		count.reads.Load() > 1 {
		t.Errorf("a create: %d commits, %d looks for drivers, %d for %d waiting tasks, %d reads; "+
			"want 1, 1, 1 for 1 and at most 1",
			count.commits.Load(), count.offers.Load(), count.lines.Load(), count.lined.Load(), count.reads.Load())
	}
	same(t, "tasks served", swept(t, svc), waiting+1)
	var got []tracking.TaskID
	events, _ := use(t, s, here).events(tracking.EventFilter{})
	for _, e := range events {
		if e.Type == tracking.EventTaskAssigned {
			got = append(got, tracking.TaskID(e.Subject.ID))
		}
	}
	same(t, "tasks in the order in which they were served", got, append(want, last.ID))
	if next := created(t, svc); next.DriverID != "d" {
		t.Error("nobody waits, and a new task is not served at once")
	}
}

// thousandsOutOfReachCostNothing counts what a create and a sweep ask of the store.
func thousandsOutOfReachCostNothing(t testing.TB, s tracking.Store) {
	count := &tally{Store: s}
	svc := several(t, count, 1, tracking.Options{MaxAssignDistance: 2000, MaxOpenTasks: -1})[0]
	waiting := briefly(300)
	if long() {
		waiting = 3000
	}
	line(t, s, here, waiting, eastOf(90_000))
	crowd(t, s, 100, eastOf(100), nil)
	same(t, "tasks served", swept(t, svc), 0)
	count.forget()
	for range 3 {
		same(t, "tasks served when nothing has changed", swept(t, svc), 0)
	}
	looks := count.offers.Load() + count.lines.Load() + count.lined.Load()
	if n := looks + count.reads.Load() + count.commits.Load(); n > 0 {
		t.Errorf("a sweep with nothing to do: %d looks for drivers, %d for waiting tasks, %d of them seen, "+
			"%d reads, %d commits; want none",
			count.offers.Load(), count.lines.Load(), count.lined.Load(), count.reads.Load(), count.commits.Load())
	}
	if task := created(t, svc); task.DriverID == "" {
		t.Error("a driver is within reach, and the task waits")
	}
	if count.offers.Load() != 1 || count.lines.Load() != 1 || count.lined.Load() != 0 || count.commits.Load() != 1 {
		t.Errorf("a create: %d looks for drivers, %d for waiting tasks, %d seen, %d commits; want 1, 1, 0 and 1",
			count.offers.Load(), count.lines.Load(), count.lined.Load(), count.commits.Load())
	}
	use(t, s, here).record(tracking.FixBatch{
		DriverID: "d000007", SeenAt: at(time.Hour),
		Fixes: []tracking.Fix{{LngLat: eastOf(91_000), Time: at(time.Hour)}},
	})
	same(t, "tasks served when a driver has come within reach", swept(t, svc), min(waiting, tracking.MaxStops))
}

func applicationsTakeTurns(t testing.TB, s tracking.Store) {
	count := &tally{Store: s}
	svc := several(t, count, 1, tracking.Options{MaxOpenTasks: -1})[0]
	place := *dropHere(true).Drop.LngLat
	onDuty(t, svc, "d", place)
	onDuty(t, svc.ForApp(there), "d", place)
	line(t, s, here, 200, place)
	line(t, s, there, 1, place)
	count.forget()
	same(t, "tasks served", swept(t, svc), 201)
	if i := slices.Index(count.apps, there); i < 0 || i > 50 {
		t.Errorf("the other application's one task was served after %d of the first one's", i)
	}
}

// hopelessTasksHoldUpNobody has many wait in vain before one who can be served.
func hopelessTasksHoldUpNobody(t testing.TB, s tracking.Store) {
	svc := several(t, s, 1, tracking.Options{})[0]
	place := *dropHere(true).Drop.LngLat
	crowd(t, s, 300, place, func(i int, d *tracking.Driver) {
		switch i % 3 {
		case 0:
			d.Route = stops(1)
		case 1:
			d.Silent = true
		}
	})
	var declined []tracking.DriverID // by the driver who is nearest, and by the hundred who are free
	for i := range 300 {
		if i%3 == 2 {
			declined = append(declined, tracking.DriverID(fmt.Sprintf("d%06d", i)))
		}
	}
	line(t, s, here, 50, place, declined...)
	same(t, "tasks served by nobody", swept(t, svc), 0)
	if task := created(t, svc); task.DriverID != "d000002" {
		t.Errorf("a task that nobody has declined went to %q, want d000002", task.DriverID)
	}
	onDuty(t, svc, "fresh", eastOf(500))
	same(t, "tasks served by one who has come", swept(t, svc), 1)
	same(t, "who is served", each(use(t, s, here).taskList("fresh"), taskID), []tracking.TaskID{"w000000"})
}

// unfitTasksHoldUpNobody counts what a create and a sweep ask of the store.
func unfitTasksHoldUpNobody(t testing.TB, s tracking.Store) {
	count := &tally{Store: s}
	svc := several(t, count, 1, tracking.Options{})[0]
	place := *dropHere(true).Drop.LngLat
	line(t, s, here, 1000, place)
	c := use(t, s, here)
	list := c.waiting(tracking.WaitingFilter{})
	for i := range list {
		list[i].Requires = map[string]string{"crane": "yes"}
		if i%2 == 0 {
			list[i].Requires["van"] = "yes"
		}
	}
	c.commit(tracking.Changeset{Tasks: list})
	crowd(t, s, 100, place, func(i int, d *tracking.Driver) {
		d.Properties = map[string]string{"van": "yes", "crane": "no"}
	})
	same(t, "tasks served", swept(t, svc), 0)
	count.forget()
	same(t, "tasks served when nothing has changed", swept(t, svc), 0)
	looks := count.offers.Load() + count.lines.Load() + count.lined.Load()
	if n := looks + count.reads.Load() + count.commits.Load(); n > 0 {
		t.Errorf("a sweep with nothing to do costs %d looks, reads and commits", n)
	}
	if task := created(t, svc); task.DriverID != "d000000" {
		t.Errorf("a task that requires nothing went to %q", task.DriverID)
	}
	if count.offers.Load() != 1 || count.lines.Load() != 1 || count.lined.Load() != 0 || count.commits.Load() != 1 {
		t.Errorf("a create: %d looks for drivers, %d for waiting tasks, %d seen, %d commits; want 1, 1, 0 and 1",
			count.offers.Load(), count.lines.Load(), count.lined.Load(), count.commits.Load())
	}
	n := dropHere(true)
	n.Requires = map[string]string{"van": "yes"}
	if task, err := svc.CreateTask(t.Context(), n); err != nil || task.DriverID != "d000001" {
		t.Errorf("a task that requires what they have went to %q, error %v", task.DriverID, err)
	}
	// who comes with a crane gets the oldest that he can take
	oldest := []tracking.TaskID{"w000001", "w000000"}
	for i, properties := range []map[string]string{{"crane": "yes"}, {"crane": "yes", "van": "yes"}} {
		id := tracking.DriverID(fmt.Sprint("crane ", i))
		if _, err := svc.SaveDriver(t.Context(), tracking.DriverUpdate{
			ID: id, Available: new(true), Properties: properties, LngLat: &place,
		}); err != nil {
			t.Fatal(err)
		}
		same(t, "tasks served by one who has a crane", swept(t, svc), 1)
		same(t, "who is served", each(c.taskList(id), taskID), oldest[i:i+1])
	}
}

func manyAtOnceKeepToOwnLimits(t testing.TB, s tracking.Store) {
	svcs := several(t, s, 2, tracking.Options{MaxOpenTasks: 2})
	limits := []*int{nil, new(0), new(1), new(5), nil, new(3)}
	crowd(t, s, len(limits), *dropHere(true).Drop.LngLat, func(i int, d *tracking.Driver) {
		d.MaxOpenTasks = limits[i]
	})
	err := together(t, 40, func(ctx context.Context, i int) error {
		_, err := svcs[i%2].CreateTask(ctx, dropHere(true))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	swept(t, svcs[0])
	c := use(t, s, here)
	drivers, _ := c.drivers(tracking.DriverFilter{})
	for i, d := range drivers {
		want := 2
		if limits[i] != nil {
			want = *limits[i]
		}
		if d.OpenTasks() != want {
			t.Errorf("%s has %d open tasks, want %d", d.ID, d.OpenTasks(), want)
		}
	}
	same(t, "tasks that wait", len(c.waiting(tracking.WaitingFilter{})), 40-2-0-1-5-2-3)
}

// limitsMoveWhileTasksAreAssigned raises the limits of a few drivers step by step while two
// Services assign: each gets all that the last limit allows, and nobody more.
func limitsMoveWhileTasksAreAssigned(t testing.TB, s tracking.Store) {
	const drivers, last, tasks = 4, 5, 60
	svcs := several(t, s, 2, tracking.Options{})
	place := *dropHere(true).Drop.LngLat
	err := together(t, 4, func(ctx context.Context, i int) error {
		for k := range tasks / 2 {
			var err error
			switch {
			case i >= 2:
				_, err = svcs[i%2].CreateTask(ctx, dropHere(true))
			case k <= last:
				for d := range drivers / 2 {
					_, err = svcs[i].SaveDriver(ctx, tracking.DriverUpdate{
						ID: tracking.DriverID(fmt.Sprint("d", i, d)), Available: new(true), LngLat: &place,
						MaxOpenTasks: &k,
					})
				}
			default:
				_, err = svcs[i].AssignWaiting(ctx)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	swept(t, svcs[0])
	list, _ := use(t, s, here).drivers(tracking.DriverFilter{})
	for _, d := range list {
		if d.OpenTasks() != last {
			t.Errorf("%s has %d open tasks, want %d", d.ID, d.OpenTasks(), last)
		}
	}
	if err := Invariants(t.Context(), s, 1, here); err != nil {
		t.Error(err)
	}
}

// heldTaskHoldsUpNobody goes by the real clock, as Services do that wait for a task.
func heldTaskHoldsUpNobody(t testing.TB, s tracking.Store) {
	const all = 30
	place := *dropHere(true).Drop.LngLat
	first := line(t, s, here, all, place)[0]
	crowd(t, s, all+3, place, nil) // with those whom it could not be given to
	c := &clock{at: t0}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	held := &heldTask{patient: &patient{s}, TB: t, id: first, stop: stop}
	if n, err := service(t, held, tracking.Options{Now: c.now}).AssignWaiting(ctx); n != all-1 ||
		!errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("%d of %d others are assigned, error %v", n, all-1, err)
	}
	same(t, "tasks that wait", each(use(t, s, here).waiting(tracking.WaitingFilter{}), taskID), []tracking.TaskID{first})
	c.forward(time.Minute)
	free := service(t, &patient{s}, tracking.Options{Now: c.now})
	same(t, "tasks that are assigned once it is free", swept(t, free), 1)
}

// heldTask is a store where somebody holds a task for as long as anybody waits for it: two attempts at
// it may be made in ten seconds, of three seconds each at most.
type heldTask struct {
	*patient
	testing.TB
	id   tracking.TaskID
	stop func()
	ends []time.Time // of the attempts
}

func (s *heldTask) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	if !slices.ContainsFunc(cs.Tasks, func(t tracking.Task) bool { return t.ID == s.id }) {
		return s.patient.Commit(ctx, app, cs)
	}
	if until, ok := ctx.Deadline(); !ok || time.Until(until) > 3*time.Second {
		s.Errorf("it would be waited for until %v, which is in %v", until, time.Until(until))
		s.stop()
	}
	if n := len(s.ends); n > 1 && time.Since(s.ends[n-2]) < 10*time.Second {
		s.Errorf("others wait for it a third time, %v after the first was over", time.Since(s.ends[n-2]))
		s.stop()
	}
	<-ctx.Done()
	s.ends = append(s.ends, time.Now())
	return tracking.Written{}, ctx.Err()
}

// patient is a store that does what it is asked to, however long that takes: a Service waits no longer
// than three seconds to assign one task of many, and a machine may be busy.
type patient struct{ tracking.Store }

func (s *patient) Task(ctx context.Context, app tracking.AppID, id tracking.TaskID) (tracking.Task, error) {
	return s.Store.Task(context.WithoutCancel(ctx), app, id)
}

func (s *patient) Waiting(ctx context.Context, app tracking.AppID, f tracking.WaitingFilter) ([]tracking.Task, error) {
	return s.Store.Waiting(context.WithoutCancel(ctx), app, f)
}

func (s *patient) Offers(ctx context.Context, app tracking.AppID, o tracking.Offer) ([]tracking.Driver, error) {
	return s.Store.Offers(context.WithoutCancel(ctx), app, o)
}

func (s *patient) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	return s.Store.Commit(context.WithoutCancel(ctx), app, cs)
}

// tally counts what a Service asks of a store to assign tasks.
type tally struct {
	tracking.Store
	offers, offered atomic.Int64 // looks for drivers, and drivers seen
	lines, lined    atomic.Int64 // looks for waiting tasks, and tasks seen
	reads, commits  atomic.Int64 // of single tasks and drivers; of changesets

	mu   sync.Mutex
	apps []tracking.AppID // of the changesets
}

func (s *tally) forget() {
	for _, n := range []*atomic.Int64{&s.offers, &s.offered, &s.lines, &s.lined, &s.reads, &s.commits} {
		n.Store(0)
	}
	s.apps = nil
}

func (s *tally) Task(ctx context.Context, app tracking.AppID, id tracking.TaskID) (tracking.Task, error) {
	s.reads.Add(1)
	return s.Store.Task(ctx, app, id)
}

func (s *tally) Driver(ctx context.Context, app tracking.AppID, id tracking.DriverID) (tracking.Driver, error) {
	s.reads.Add(1)
	return s.Store.Driver(ctx, app, id)
}

func (s *tally) Waiting(ctx context.Context, app tracking.AppID, f tracking.WaitingFilter) ([]tracking.Task, error) {
	list, err := s.Store.Waiting(ctx, app, f)
	s.lines.Add(1)
	s.lined.Add(int64(len(list)))
	return list, err
}

func (s *tally) Matches(ctx context.Context, app tracking.AppID, q tracking.MatchQuery) ([]tracking.Task, error) {
	list, err := s.Store.Matches(ctx, app, q)
	s.lined.Add(int64(len(list)))
	return list, err
}

func (s *tally) Offers(ctx context.Context, app tracking.AppID, o tracking.Offer) ([]tracking.Driver, error) {
	list, err := s.Store.Offers(ctx, app, o)
	s.offers.Add(1)
	s.offered.Add(int64(len(list)))
	return list, err
}

func (s *tally) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	s.commits.Add(1)
	s.mu.Lock()
	s.apps = append(s.apps, app)
	s.mu.Unlock()
	return s.Store.Commit(ctx, app, cs)
}

// crowd makes drivers on duty in one spot, in big commits.
func crowd(t testing.TB, s tracking.Store, n int, at tracking.LngLat, change func(i int, d *tracking.Driver)) {
	t.Helper()
	for i := 0; i < n; {
		var cs tracking.Changeset
		for range min(500, n-i) {
			d := newDriver(tracking.DriverID(fmt.Sprintf("d%06d", i)), t0)
			if change != nil {
				change(i, &d)
			}
			cs.Drivers = append(cs.Drivers, d)
			cs.Fixes = append(cs.Fixes, tracking.FixBatch{
				DriverID: d.ID, SeenAt: t0, Fixes: []tracking.Fix{{LngLat: at, Time: t0}},
			})
			i++
		}
		if _, err := s.Commit(t.Context(), here, &cs); err != nil {
			t.Fatalf("Commit: %v", err)
		}
	}
}

// line makes tasks that wait at a place, the oldest first, in big commits.
func line(
	t testing.TB, s tracking.Store, app tracking.AppID, n int, place tracking.LngLat, excluded ...tracking.DriverID,
) (ids []tracking.TaskID) {
	t.Helper()
	for i := 0; i < n; {
		var cs tracking.Changeset
		for range min(500, n-i) {
			id := tracking.TaskID(fmt.Sprintf("w%06d", i))
			cs.Tasks = append(cs.Tasks, waitingTask(id, at(time.Duration(i-n)*time.Millisecond), place, excluded...))
			ids = append(ids, id)
			i++
		}
		if _, err := s.Commit(t.Context(), app, &cs); err != nil {
			t.Fatalf("Commit: %v", err)
		}
	}
	return ids
}

// onDuty puts a driver on duty at a place.
func onDuty(t testing.TB, svc *tracking.Service, id tracking.DriverID, place tracking.LngLat) {
	t.Helper()
	if _, err := svc.SaveDriver(t.Context(),
		tracking.DriverUpdate{ID: id, Available: new(true), LngLat: &place}); err != nil {
		t.Fatalf("SaveDriver: %v", err)
	}
}

func created(t testing.TB, svc *tracking.Service) tracking.Task {
	t.Helper()
	task, err := svc.CreateTask(t.Context(), dropHere(true))
	if err != nil {
		t.Fatalf("CreateTask: %v", err)
	}
	return task
}

func swept(t testing.TB, svc *tracking.Service) int {
	t.Helper()
	n, err := svc.AssignWaiting(t.Context())
	if err != nil {
		t.Fatalf("AssignWaiting: %v", err)
	}
	return n
}

func (c *client) taskList(d tracking.DriverID) []tracking.Task {
	c.Helper()
	list, _ := c.tasks(tracking.TaskFilter{DriverID: d})
	return list
}
