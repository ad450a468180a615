package tracking_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// onlooker is one who follows an application.
type onlooker struct {
	*tracking.LiveReader
	t testing.TB
}

func lookOn(t testing.TB, svc *tracking.Service, after string) onlooker {
	t.Helper()
	r := must(svc.Live(t.Context(), after))(t)
	t.Cleanup(r.Close)
	return onlooker{r, t}
}

// within is what is told within d.
func (l onlooker) within(d time.Duration) (all []tracking.LiveEvent) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	for {
		list, err := l.Next(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			return all
		}
		all = append(all, must(list, err)(l.t)...)
	}
}

// words are events, each as "kind id version".
func words(events []tracking.LiveEvent) (list []string) {
	for _, e := range events {
		switch {
		case e.Task != nil:
			list = append(list, fmt.Sprintf("%s %s %d", e.Kind, e.Task.ID, e.Task.Version))
		case e.Driver != nil:
			list = append(list, fmt.Sprintf("%s %s %d", e.Kind, e.Driver.ID, e.Driver.Version))
		case e.Kind == tracking.LiveGone:
			list = append(list, fmt.Sprintf("%s %s", e.Kind, e.Subject.ID))
		default:
			list = append(list, string(e.Kind))
		}
	}
	return list
}

func (l onlooker) tells(what string, d time.Duration, want ...string) (cursor string) {
	l.t.Helper()
	got := l.within(d)
	if d := cmp.Diff(want, words(got)); d != "" {
		l.t.Errorf("%s (-want +got)\n%s", what, d)
	}
	if len(got) == 0 {
		return ""
	}
	return got[len(got)-1].Cursor
}

// Everything under way comes first, and nothing else; then what changes, until it is over.
func TestLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.driver("asha", 10)
		w.driver("off", 20)
		w.driver("busy", 9000)
		one, over := w.create(true), w.create(false)
		must(w.CancelTask(w.ctx, over.ID, tracking.Reason{}))(t)
		waits := w.create(false)
		must(w.AssignTask(w.ctx, waits.ID, "busy"))(t)
		for _, id := range []tracking.DriverID{"off", "busy"} {
			must(w.SetAvailability(w.ctx, id, false, time.Time{}))(t)
		}

		l := lookOn(t, w.Service, "")
		began := l.tells("at first", time.Minute, "driver asha 2", "driver busy 3", "task "+string(one.ID)+" 1",
			"task "+string(waits.ID)+" 2", "ready")
		part := must(lookOn(t, w.Service, "").Next(w.ctx))(t)[0].Cursor // who goes before he knows all
		_, _, err := w.StartTask(w.ctx, "asha", one.ID, tracking.Step{})
		if err != nil {
			t.Fatal(err)
		}
		l.tells("a start", 100*time.Millisecond, "driver asha 3", "task "+string(one.ID)+" 2")
		must(w.CompleteTask(w.ctx, one.ID, tracking.Completion{}))(t)
		l.tells("an end", 100*time.Millisecond, "driver asha 4", "task "+string(one.ID)+" 3")
		must(w.CompleteTask(w.ctx, waits.ID, tracking.Completion{}))(t)
		l.within(100 * time.Millisecond)
		must(w.SetAvailability(w.ctx, "asha", false, time.Time{}))(t)
		l.tells("going off duty", 100*time.Millisecond, "driver asha 5")
		name := "Asha"
		must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "asha", Name: &name}))(t)
		l.tells("a name of who is off duty", 100*time.Millisecond, "driver asha 6")
		if err := w.DeleteDriver(w.ctx, "asha"); err != nil {
			t.Fatal(err)
		}
		now := l.tells("an erased driver", 100*time.Millisecond, "gone asha")
		l.tells("and then", time.Minute)

		again := lookOn(t, w.Service, began)
		if got := words(again.within(time.Minute)); len(got) != 4 || got[3] != "gone asha" {
			t.Errorf("who knows the beginning is told %v", got)
		}
		lookOn(t, w.Service, now).tells("who knows all", time.Minute)
		lookOn(t, w.Service, "").tells("who knows nothing", time.Minute, "ready")
		for _, lost := range []string{"x", now + "0", "x" + now, part} {
			lookOn(t, w.Service, lost).tells("who was elsewhere", time.Minute, "reset", "ready")
		}
		if err := w.Close(w.ctx); err != nil {
			t.Fatal(err)
		}
		if list, err := l.Next(w.ctx); !errors.Is(err, tracking.ErrUnavailable) {
			t.Errorf("after Close: %v, %v", words(list), err)
		}
	})
}

// Positions come at most once a second for each driver, the newest, and who is slow is told no more.
func TestLivePositions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *tracking.Options) { o.Now = time.Now })
		w.driver("asha", 0)
		l, slow := lookOn(t, w.Service, ""), lookOn(t, w.Service, "")
		l.within(time.Second / 2)
		slow.within(0)
		var told []time.Time
		for n := range 100 {
			must(w.RecordFixes(w.ctx, "asha", []tracking.Fix{{LngLat: *east(float64(n)), Time: time.Now()}}))(t)
			for _, e := range l.within(100 * time.Millisecond) {
				if e.Kind != tracking.LivePosition || time.Since(e.Driver.Position.Fix.Time) > 200*time.Millisecond {
					t.Errorf("%s of %v ago", e.Kind, time.Since(e.Driver.Position.Fix.Time))
				}
				told = append(told, time.Now())
			}
		}
		if len(told) != 10 {
			t.Errorf("%d positions were told in 10 s", len(told))
		}
		list := slow.within(2 * time.Second)
		if len(list) == 0 || len(list) > 3 || list[len(list)-1].Driver.Position.Fix.LngLat != *east(99) {
			t.Errorf("who is slow was told %v", words(list))
		}
		w.Close(w.ctx)
	})
}

// Who is slow is told the newest of each, and where too much is over meanwhile all of it anew.
func TestLiveSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		a, b := w.create(false), w.create(false)
		l := lookOn(t, w.Service, "")
		l.within(time.Second)
		for n := range 300 {
			notes := fmt.Sprint(n)
			must(w.UpdateTask(w.ctx, []tracking.Task{a, b}[n%2].ID, tracking.TaskUpdate{Notes: &notes}))(t)
			time.Sleep(70 * time.Millisecond)
		}
		l.tells("after 300 changes", time.Second, "task "+string(a.ID)+" 151", "task "+string(b.ID)+" 151")
		for range 1001 {
			task := w.create(false)
			must(w.CancelTask(w.ctx, task.ID, tracking.Reason{}))(t)
		}
		time.Sleep(time.Second)
		l.tells("after 1001 ends", time.Second, "reset", "task "+string(a.ID)+" 151", "task "+string(b.ID)+" 151", "ready")
		w.Close(w.ctx)
	})
}

// What another Service does on the same store is told within a second, and so is a sign of life.
func TestLiveOfAnotherService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New()
		now := func(o *tracking.Options) { o.Now = time.Now }
		one, other := newWorldOn(t, store, now), newWorldOn(t, store, now)
		one.driver("asha", 0)
		l := lookOn(t, other.Service, "")
		l.within(time.Second / 2)
		const soon = time.Second + time.Millisecond
		task := one.create(true)
		if got := words(l.within(soon)); len(got) != 2 {
			t.Errorf("a new task: %v", got)
		}
		if err := one.RevokeTaskLink(one.ctx, task.ID); err != nil { // has no event
			t.Fatal(err)
		}
		l.tells("a link", soon, "task "+string(task.ID)+" 2")
		must(one.CancelTask(one.ctx, task.ID, tracking.Reason{}))(t)
		if got := words(l.within(soon)); len(got) != 2 {
			t.Errorf("an end: %v", got)
		}
		must(one.RecordFixes(one.ctx, "asha", []tracking.Fix{{LngLat: *east(5), Time: time.Now()}}))(t)
		l.tells("a fix", soon, "position asha 3")
		time.Sleep(10 * time.Second)
		must(one.RecordFixes(one.ctx, "asha", nil))(t)
		l.tells("a sign of life", soon, "driver asha 3")
		if err := one.DeleteDriver(one.ctx, "asha"); err != nil {
			t.Fatal(err)
		}
		l.tells("who is erased", soon, "gone asha")
		other.Close(other.ctx)
	})
}

// shut is a store that can be away.
type shut struct {
	tracking.Store
	away atomic.Bool
}

func (s *shut) Tasks(ctx context.Context, app tracking.AppID, f tracking.TaskFilter) ([]tracking.Task, bool, error) {
	if s.away.Load() {
		return nil, false, tracking.ErrUnavailable
	}
	return s.Store.Tasks(ctx, app, f)
}

func (s *shut) Task(ctx context.Context, app tracking.AppID, id tracking.TaskID) (tracking.Task, error) {
	if s.away.Load() {
		return tracking.Task{}, tracking.ErrUnavailable
	}
	return s.Store.Task(ctx, app, id)
}

// A store that is away for a moment is no matter, and what changed meanwhile is told; where it is
// away for longer nobody is made to believe that nothing happens.
func TestLiveStoreAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shut{Store: memory.New()}
		w := newWorldOn(t, s)
		task := w.create(false)
		l := lookOn(t, w.Service, "")
		l.within(time.Second / 2)
		notes := "changed"
		must(w.UpdateTask(w.ctx, task.ID, tracking.TaskUpdate{Notes: &notes}))(t)
		s.away.Store(true)
		l.tells("while it is away", 3*time.Second)
		s.away.Store(false)
		cursor := l.tells("when it is back", time.Second+time.Millisecond, "task "+string(task.ID)+" 2")
		s.away.Store(true)
		began := time.Now()
		if list, err := l.Next(w.ctx); !errors.Is(err, tracking.ErrUnavailable) {
			t.Errorf("away for long: %v, %v", words(list), err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("it took %v", took)
		}
		if _, err := w.Live(w.ctx, cursor); !errors.Is(err, tracking.ErrUnavailable) {
			t.Errorf("Live: %v", err)
		}
		s.away.Store(false)
		lookOn(t, w.Service, cursor).tells("who comes again", time.Second, "reset", "task "+string(task.ID)+" 2", "ready")
		w.Close(w.ctx)
	})
}
