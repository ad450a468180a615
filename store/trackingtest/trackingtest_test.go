package trackingtest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/trackingtest"
)

func toHome(auto bool) tracking.NewTask {
	return tracking.NewTask{Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: &home}, AutoAssign: auto}
}

func create(t *testing.T, k *trackingtest.Kit, n tracking.NewTask) tracking.TaskID {
	t.Helper()
	task, err := k.CreateTask(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return task.ID
}

func status(t *testing.T, k *trackingtest.Kit, id tracking.TaskID) tracking.Task {
	t.Helper()
	task, err := k.Task(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// day is a whole day's ids, events and times.
func day(t *testing.T) (list []string) {
	k := trackingtest.New(t, nil)
	asha := k.NewDriver("asha", shop)
	id := create(t, k, toHome(true))
	token, err := k.TaskLink(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	asha.Deliver(id)
	k.Settle()
	list = append(list, string(id), token)
	for _, e := range k.Told() {
		list = append(list, fmt.Sprint(e.ID, e.Type, e.Time))
	}
	for _, n := range k.ToldDriver("asha") {
		list = append(list, fmt.Sprint(n.ID, n.Kind))
	}
	return list
}

func TestEachRunIsTheSame(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	a, b := day(t), day(t)
	if !slices.Equal(a, b) || len(a) < 7 {
		t.Errorf("two days differ:\n%q\n%q", a, b)
	}
}

func TestFaults(t *testing.T) {
	k := trackingtest.New(t, nil)
	count := func() int {
		list, _, err := k.Tasks(t.Context(), tracking.TaskFilter{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	k.Store.FailNextCommit()
	k.Store.LoseNextAnswer()
	for i, want := range []int{0, 1} {
		if _, err := k.CreateTask(t.Context(), toHome(false)); !errors.Is(err, tracking.ErrUnavailable) || count() != want {
			t.Errorf("fault %d: %v, and %d tasks, want %d", i, err, count(), want)
		}
	}
	create(t, k, toHome(false))
	if count() != 2 {
		t.Errorf("%d tasks after the faults", count())
	}
	// What runs by itself, and phones, ask again.
	id := create(t, k, toHome(true))
	k.Store.FailNextCommit()
	asha := k.NewDriver("asha", shop)
	k.Store.LoseNextAnswer()
	k.Settle()
	k.Store.FailNextCommit()
	asha.Deliver(id)
	if now := status(t, k, id); now.Outcome != tracking.OutcomeSucceeded {
		t.Errorf("the task is %s %s", now.Status, now.Outcome)
	}
}

func TestAdvanceStopsWhereSomethingIsDue(t *testing.T) {
	k := trackingtest.New(t, nil)
	k.NewDriver("asha", shop)
	n := toHome(false)
	n.AutoAssign, n.Window.To = true, trackingtest.Start.Add(7*time.Minute)
	n.Requires = map[string]string{"wings": "yes"}
	create(t, k, n)
	trip := trackingtest.Start.Add(90 * time.Second)
	k.Advance(90 * time.Second)
	if err := k.RequestTrip(t.Context(), tracking.NewRequest{DriverID: "asha", TrackingID: "round"}); err != nil {
		t.Fatal(err)
	}
	if _, err := k.StartTrip(t.Context(), "asha", "round", tracking.Step{}); err != nil {
		t.Fatal(err)
	}
	k.Advance(5 * time.Hour)
	want := map[tracking.EventType]time.Time{
		tracking.EventTaskLate:     trackingtest.Start.Add(7 * time.Minute),
		tracking.EventDriverSilent: trip.Add(10 * time.Minute),
	}
	for typ, at := range want {
		list := k.Told(typ)
		if len(list) != 1 {
			t.Errorf("%s is told %d times", typ, len(list))
		} else if off := list[0].RecordedAt.Sub(at); off < 0 || off > time.Second {
			t.Errorf("%s is told at %v, want %v", typ, list[0].RecordedAt, at)
		}
	}
	if k.Clock.Now() != trip.Add(5*time.Hour) {
		t.Errorf("it is %v", k.Clock.Now())
	}
}

type picky struct{ refuse int }

func (p *picky) Notify(context.Context, tracking.Notification) error {
	if p.refuse--; p.refuse >= 0 {
		return errors.New("not now")
	}
	return nil
}

func TestRefusedEventsAreToldLater(t *testing.T) {
	p := &picky{refuse: 3}
	k := trackingtest.New(t, &tracking.Options{Notifier: p})
	create(t, k, toHome(false))
	k.Settle()
	if p.refuse != 2 {
		t.Errorf("%d refusals are left", p.refuse)
	}
	k.Advance(3 * time.Hour)
	if p.refuse != -1 {
		t.Errorf("%d refusals are left, want one that was taken", p.refuse)
	}
	if n := len(k.Told()); n != 1 {
		t.Errorf("the kit was told %d events", n)
	}
}

func TestOfflineAndRefused(t *testing.T) {
	k := trackingtest.New(t, nil)
	asha := k.NewDriver("asha", shop)
	id := create(t, k, toHome(true))
	asha.GoOffline()
	asha.Deliver(id)
	if at := asha.At(); at != home {
		t.Errorf("the driver is at %v", at)
	}
	if _, err := k.CancelTask(t.Context(), id, tracking.Reason{}); err != nil {
		t.Fatal(err)
	}
	asha.GoOnline()
	if len(asha.Refused) != 2 || !errors.Is(asha.Refused[0], tracking.ErrConflict) {
		t.Errorf("refused: %v", asha.Refused)
	}
	d, err := k.Driver(t.Context(), "asha")
	if err != nil || d.Position.Fix.LngLat != home {
		t.Errorf("the driver as the service knows him: %+v, %v", d.Position, err)
	}
	asha.GoOffDuty()
	asha.GoOnDuty()
	if d, _ := k.Driver(t.Context(), "asha"); !d.Available {
		t.Error("the driver is not on duty")
	}
}

func TestOverTheDateLine(t *testing.T) {
	k := trackingtest.New(t, nil)
	far := tracking.LngLat{Lng: -179.999, Lat: 10}
	moana := k.NewDriver("moana", tracking.LngLat{Lng: 179.999, Lat: 10})
	moana.DriveTo(far)
	if took := k.Clock.Now().Sub(trackingtest.Start); took > time.Minute {
		t.Errorf("a way of 219 m takes %v", took)
	}
	d, err := k.Driver(t.Context(), "moana")
	if err != nil || d.Position.Fix.LngLat != far {
		t.Errorf("the driver is at %+v, %v", d.Position, err)
	}
}

// failing is a test that notes that it has failed.
type failing struct {
	testing.TB
	said string
}

func (f *failing) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestFailures(t *testing.T) {
	said := func(do func(f *failing)) string {
		f := &failing{TB: t}
		done := make(chan struct{})
		go func() { defer close(done); do(f) }()
		<-done
		return f.said
	}
	if s := said(func(f *failing) { trackingtest.New(f, &tracking.Options{Secret: []byte("short")}) }); s == "" {
		t.Error("options that are wrong do not fail the test")
	}
	if s := said(func(f *failing) { trackingtest.New(f, nil).NewDriver("asha", shop).Start("none") }); s == "" {
		t.Error("a step that is refused does not fail the test")
	}
	if s := said(func(f *failing) {
		k := trackingtest.New(f, nil)
		for range 20 {
			k.Store.FailNextCommit()
		}
		k.NewDriver("asha", shop)
	}); s == "" {
		t.Error("a store that fails for good does not fail the test")
	}
	defer func() {
		if recover() == nil {
			t.Error("without a test it does not panic")
		}
	}()
	trackingtest.New(nil, &tracking.Options{Secret: []byte("short")})
}
