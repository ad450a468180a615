package tracking_test

import (
	"errors"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// with makes a driver on duty who has properties, and a limit of his own if there is one.
func (w *world) with(id tracking.DriverID, m float64, most *int, properties map[string]string) {
	w.t.Helper()
	must(w.SaveDriver(w.ctx, tracking.DriverUpdate{
		ID: id, Available: new(true), LngLat: east(m), MaxOpenTasks: most, Properties: properties,
	}))(w.t)
}

func (w *world) requiring(requires map[string]string) tracking.Task {
	w.t.Helper()
	n := newDrop()
	n.AutoAssign, n.Requires = true, requires
	return must(w.CreateTask(w.ctx, n))(w.t)
}

type props = map[string]string

// A task goes to the nearest driver who has all that it requires, exactly; by hand to anyone.
func TestRequires(t *testing.T) {
	for _, c := range []struct {
		name     string
		requires props
		want     tracking.DriverID
	}{
		{"nothing", nil, "bike"},
		{"one thing", props{"vehicle": "van"}, "van"},
		{"two things", props{"vehicle": "van", "fridge": "yes"}, "cold"},
		{"in another case", props{"vehicle": "Van"}, ""},
		{"what is there and empty", props{"lift": ""}, "cold"},
		{"an empty value of what nobody has", props{"crane": ""}, ""},
	} {
		w := newWorld(t)
		w.with("bike", 100, nil, props{"vehicle": "bike"})
		w.with("van", 200, nil, props{"vehicle": "van"})
		w.with("cold", 300, nil, props{"vehicle": "van", "fridge": "yes", "lift": ""})
		task := w.requiring(c.requires)
		if task.DriverID != c.want || task.Waiting != (c.want == "") {
			t.Errorf("%s: it went to %q, want %q", c.name, task.DriverID, c.want)
		}
		if got := must(w.AssignTask(w.ctx, task.ID, "bike"))(t); got.DriverID != "bike" {
			t.Errorf("%s: by hand it went to %q", c.name, got.DriverID)
		}
	}
}

// Who waits for what a driver hasn't is not before whom he can serve, and is served when somebody
// comes who has it, or it requires less.
func TestTheOldestThatADriverCanTake(t *testing.T) {
	w := newWorld(t)
	cold, van := w.requiring(props{"fridge": "yes"}), w.requiring(props{"vehicle": "van"})
	w.advance(time.Second)
	w.with("a", 0, nil, props{"vehicle": "van"})
	plain := w.requiring(nil)
	if !plain.Waiting {
		t.Error("a new task went before one that waits for the same driver")
	}
	w.serve(1)
	if got := w.task(van.ID).DriverID; got != "a" {
		t.Errorf("the oldest that a could take went to %q", got)
	}
	w.with("b", 0, nil, nil)
	w.serve(1)
	if got := w.task(plain.ID).DriverID; got != "b" {
		t.Errorf("the plain one went to %q", got)
	}
	w.with("c", 0, nil, nil)
	w.serve(0)
	must(w.UpdateTask(w.ctx, cold.ID, tracking.TaskUpdate{Requires: props{}}))(t)
	w.serve(1)
	if got := w.task(cold.ID).DriverID; got != "c" {
		t.Errorf("what requires nothing any more went to %q", got)
	}
}

// A driver's limit of open tasks counts more than the option, up and down, and can be taken back.
func TestMaxOpenTasksOfADriver(t *testing.T) {
	for _, c := range []struct {
		name   string
		option int
		most   int
		want   int // open tasks in the end, of 5
	}{
		{"more than the option", 1, 3, 3},
		{"fewer than the option", 4, 2, 2},
		{"none", 2, 0, 0},
		{"no limit", 1, tracking.NoLimit, 5},
		{"as the option", 2, tracking.AsOptions, 2},
		{"a limit where there is none", -1, 2, 2},
	} {
		w := newWorld(t, func(o *tracking.Options) { o.MaxOpenTasks = c.option })
		w.with("own", 0, &c.most, nil)
		for range 5 {
			w.requiring(nil)
		}
		w.serve(0)
		if got := must(w.Driver(w.ctx, "own"))(t).OpenTasks(); got != c.want {
			t.Errorf("%s: %d open tasks, want %d", c.name, got, c.want)
		}
		must(w.AssignTask(w.ctx, w.create(false).ID, "own"))(t) // by hand he may get any
		w.with("own", 0, new(tracking.NoLimit), nil)
		w.serve(5 - c.want)
		d := must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "own", Name: new("Own")}))(t)
		if d.MaxOpenTasks == nil || *d.MaxOpenTasks != tracking.NoLimit {
			t.Errorf("%s: the limit went with the name", c.name)
		}
		w.with("own", 0, new(tracking.AsOptions), nil)
		if d := must(w.Driver(w.ctx, "own"))(t); d.MaxOpenTasks != nil {
			t.Errorf("%s: the limit stays at %d", c.name, *d.MaxOpenTasks)
		}
	}
}

func TestSameLimitIsNoChange(t *testing.T) {
	w := newWorld(t)
	w.with("own", 0, new(3), nil)
	before := must(w.Driver(w.ctx, "own"))(t)
	w.advance(time.Minute)
	after := must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "own", MaxOpenTasks: new(3)}))(t)
	if !after.UpdatedAt.Equal(before.UpdatedAt) || after.Version != before.Version {
		t.Error("the same limit again is a change")
	}
	for _, most := range []int{-3, 1001} {
		_, err := w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "own", MaxOpenTasks: &most})
		var e *tracking.Error
		if !errors.As(err, &e) || e.Code != tracking.ErrInvalid || e.Field != "max_open_tasks" {
			t.Errorf("%d: %v", most, err)
		}
	}
}
