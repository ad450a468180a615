package tracking_test

import (
	"slices"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

func TestTripLife(t *testing.T) {
	fix := func(w *world, d time.Duration, m float64) {
		w.t.Helper()
		w.advance(d)
		out := must(w.RecordFixes(w.ctx, "a", []tracking.Fix{{LngLat: *east(m), Time: w.now()}}))(w.t)
		if out[0] != tracking.FixLive {
			w.t.Fatalf("the fix is %s", out[0])
		}
	}
	begin := func(w *world) tracking.TripID {
		must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "a", Available: new(true)}))(w.t)
		return must(w.StartTrip(w.ctx, "a", "order-7", tracking.Step{}))(w.t).ID
	}
	t.Run("one fix and silence", func(t *testing.T) {
		w := newWorld(t)
		id := begin(w)
		fix(w, time.Second, 0)
		w.advance(2*time.Hour + time.Millisecond)
		list, _, err := w.Trips(w.ctx, tracking.TripFilter{Status: tracking.TripActive})
		got := must(w.Trip(w.ctx, id))(t)
		if err != nil || len(list) != 0 || got.Status != tracking.TripStopped || *got.EndsAt != *east(0) ||
			!got.EndedAt.Equal(start.Add(2*time.Hour+time.Second)) {
			t.Errorf("%d active; %+v", len(list), got)
		}
		if events := w.told(tracking.KindTrip, string(id), 0); !slices.Equal(events, []string{
			"trip.started", "trip.stopped",
		}) {
			t.Error(events)
		}
	})
	t.Run("no fix at all", func(t *testing.T) {
		w := newWorld(t)
		id := begin(w)
		w.advance(2 * time.Hour)
		if got := must(w.Trip(w.ctx, id))(t); got.Status != tracking.TripDiscarded || got.EndsAt != nil ||
			!got.EndedAt.Equal(got.TTL) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("fixes carry it on", func(t *testing.T) {
		w := newWorld(t)
		id := begin(w)
		for range 10 {
			fix(w, 90*time.Minute, 0)
		}
		if got := must(w.Trip(w.ctx, id))(t); got.Status != tracking.TripActive || !got.TTL.After(w.now()) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a fix after a gap does not bring it back", func(t *testing.T) {
		w := newWorld(t)
		id := begin(w)
		fix(w, time.Minute, 0)
		fix(w, 3*time.Hour, 100)
		got := must(w.Trip(w.ctx, id))(t)
		if got.Status != tracking.TripStopped || !got.EndedAt.Equal(start.Add(time.Minute+2*time.Hour)) ||
			*got.EndsAt != *east(0) {
			t.Errorf("%+v", got)
		}
	})
	t.Run("late fixes join, fixes after the end do not", func(t *testing.T) {
		w := newWorld(t)
		id := begin(w)
		fix(w, time.Minute, 0)
		fix(w, time.Minute, 1000)
		must(w.StopTrip(w.ctx, "a", id, tracking.Step{}))(t)
		fix(w, time.Second, 1010)
		fix(w, time.Hour, 1500)
		out := must(w.RecordFixes(w.ctx, "a", []tracking.Fix{
			{LngLat: *east(500), Time: start.Add(90 * time.Second)},
		}))(t)
		if out[0] != tracking.FixLate {
			t.Error(out)
		}
		got := must(w.Trip(w.ctx, id))(t)
		if path := w.path(id); !slices.Equal(path, []float64{0, 500, 1000}) || *got.EndsAt != *east(1000) {
			t.Errorf("path %v, ends at %v", path, got.EndsAt)
		}
		if d := got.Distance; d < 999 || d > 1001 || got.Moving != time.Minute {
			t.Errorf("%v m, %v on the move", d, got.Moving)
		}
	})
	t.Run("off duty, a late fix of the trip is kept and others are not", func(t *testing.T) {
		w := newWorld(t)
		id := begin(w)
		fix(w, time.Minute, 0)
		w.advance(10 * time.Minute)
		must(w.StopTrip(w.ctx, "a", id, tracking.Step{}))(t)
		must(w.SetAvailability(w.ctx, "a", false, time.Time{}))(t)
		w.advance(time.Millisecond)
		out := must(w.RecordFixes(w.ctx, "a", []tracking.Fix{
			{LngLat: *east(9), Time: start.Add(2 * time.Minute)}, {LngLat: *east(10), Time: w.now()},
		}))(t)
		if !slices.Equal(out, []tracking.FixOutcome{tracking.FixLive, tracking.FixOffDuty}) {
			t.Error(out)
		}
	})
	t.Run("stopped in the past by an offline phone", func(t *testing.T) {
		w := newWorld(t)
		id := begin(w)
		fix(w, time.Minute, 0)
		fix(w, 28*time.Minute, 2000)
		got := must(w.StopTrip(w.ctx, "a", id, tracking.Step{At: start.Add(2 * time.Minute)}))(t)
		if path := w.path(id); !slices.Equal(path, []float64{0}) || !got.EndedAt.Equal(start.Add(2*time.Minute)) ||
			*got.EndsAt != *east(0) {
			t.Errorf("path %v, %+v", path, got)
		}
	})
	t.Run("the table", func(t *testing.T) {
		w := newWorld(t)
		id := begin(w)
		must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "b"}))(t)
		if again := must(w.StartTrip(w.ctx, "a", "order-7", tracking.Step{}))(t); again.ID != id {
			t.Error("started again it is another trip")
		}
		_, err := w.StartTrip(w.ctx, "b", "order-7", tracking.Step{})
		if code(err) != tracking.ErrConflict {
			t.Error("another driver:", err)
		}
		if _, err := w.StopTrip(w.ctx, "b", id, tracking.Step{}); code(err) != tracking.ErrNotFound {
			t.Error("another driver stops it:", err)
		}
		must(w.DiscardTrip(w.ctx, "a", id, tracking.Step{}))(t)
		must(w.DiscardTrip(w.ctx, "a", id, tracking.Step{}))(t)
		if _, err := w.StopTrip(w.ctx, "a", id, tracking.Step{}); code(err) != tracking.ErrConflict {
			t.Error("stopped after it was discarded:", err)
		}
		next := must(w.StartTrip(w.ctx, "b", "order-7", tracking.Step{}))(t)
		if next.ID == id {
			t.Error("the ended trip came back")
		}
		if got := w.told(tracking.KindTrip, string(id), 0); !slices.Equal(got, []string{
			"trip.started", "trip.discarded",
		}) {
			t.Error(got)
		}
	})
	t.Run("a task's trip", func(t *testing.T) {
		w := newWorld(t)
		w.driver("own", 20)
		w.driver("b", 5000)
		task := w.create(true)
		if _, err := w.StartTrip(w.ctx, "b", tracking.TrackingID(task.ID),
			tracking.Step{}); code(err) != tracking.ErrConflict {
			t.Error("another driver starts it:", err)
		}
		trip := must(w.StartTrip(w.ctx, "own", tracking.TrackingID(task.ID), tracking.Step{}))(t)
		if w.task(task.ID).Status != tracking.StatusInProgress || trip.TaskID != task.ID ||
			trip.StartLocation != "Here 1" {
			t.Errorf("%+v", trip)
		}
		w.advance(time.Minute)
		must(w.StopTrip(w.ctx, "own", trip.ID, tracking.Step{}))(t)
		if w.task(task.ID).Status != tracking.StatusInProgress {
			t.Error("the end of its trip ended the task")
		}
		_, second, err := w.StartTask(w.ctx, "own", task.ID, tracking.Step{})
		if err != nil || second.ID == trip.ID || second.Status != tracking.TripActive {
			t.Errorf("started again: %+v %v", second, err)
		}
		if got := w.told(tracking.KindTask, string(task.ID), 2); !slices.Equal(got, []string{"task.started"}) {
			t.Error(got)
		}
	})
}

// Where a trip ends is the last good fix of its window, also when that came with the stop.
func TestEndsAtTheLastGoodFix(t *testing.T) {
	for _, c := range []struct {
		name  string
		fixes []tracking.Fix
		stop  float64
		path  []float64
	}{
		{
			"agrees with a candidate", []tracking.Fix{{LngLat: *east(50_000), Time: start.Add(10 * time.Second)}},
			50_010, []float64{0, 50_000, 50_010},
		},
		{"is a jump", nil, 60_000, []float64{0}},
		{"is no jump", nil, 100, []float64{0, 100}},
		{
			"has the time of a fix", []tracking.Fix{{LngLat: *east(30), Time: start.Add(12 * time.Second)}}, 100,
			[]float64{0, 30},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "a", Available: new(true)}))(t)
			id := must(w.StartTrip(w.ctx, "a", "x", tracking.Step{LngLat: east(0)}))(t).ID
			w.advance(12 * time.Second)
			must(w.RecordFixes(w.ctx, "a", c.fixes))(t)
			got := must(w.StopTrip(w.ctx, "a", id, tracking.Step{LngLat: east(c.stop)}))(t)
			path := w.path(id)
			if !slices.Equal(path, c.path) {
				t.Fatalf("path %v, want %v", path, c.path)
			}
			if *got.EndsAt != *east(path[len(path)-1]) {
				t.Errorf("ends at %.0f m, want %.0f", tracking.Distance(*east(0), *got.EndsAt), path[len(path)-1])
			}
		})
	}
}

// A request is answered by starting the trip, also when that is on its way already.
func TestRequestForAnActiveTrip(t *testing.T) {
	w := newWorld(t)
	w.driver("a", 0)
	trip := must(w.StartTrip(w.ctx, "a", "x", tracking.Step{}))(t)
	if err := w.RequestTrip(w.ctx, tracking.NewRequest{DriverID: "a", TrackingID: "x"}); err != nil {
		t.Fatal(err)
	}
	again := must(w.StartTrip(w.ctx, "a", "x", tracking.Step{}))(t)
	if list := must(w.Requests(w.ctx, "a"))(t); len(list) != 0 || again.ID != trip.ID {
		t.Errorf("still open: %v", list)
	}
	if got := w.told(tracking.KindTrip, string(trip.ID), 0); !slices.Equal(got, []string{"trip.started"}) {
		t.Error(got)
	}
}
