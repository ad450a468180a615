package tracking_test

import (
	"reflect"
	"testing"

	"github.com/seed-8aba7b13/tracking"
)

// What a verb returns is what is read afterwards, number and version included.
func TestVerbsReturnWhatIsKept(t *testing.T) {
	w := newWorld(t)
	w.driver("asha", 100)
	w.driver("ravi", 200)
	task := func(what string, got tracking.Task, err error) tracking.Task {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if kept := w.task(got.ID); !reflect.DeepEqual(got, kept) {
			t.Errorf("%s returned %+v, kept is %+v", what, got, kept)
		}
		return got
	}
	trip := func(what string, got tracking.Trip, err error) tracking.Trip {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if kept := must(w.Trip(w.ctx, got.ID))(t); got.Seq != kept.Seq || got.Version != kept.Version {
			t.Errorf("%s returned number %d, version %d; kept are %d, %d", what, got.Seq, got.Version, kept.Seq,
				kept.Version)
		}
		return got
	}
	first := task("CreateTask", w.create(false), nil)
	task("CreateTask for a driver", w.create(true), nil)
	got, err := w.AssignTask(w.ctx, first.ID, "asha")
	task("AssignTask", got, err)
	list, err := w.HandOver(w.ctx, tracking.HandOverRequest{From: "asha", To: "ravi", Tasks: []tracking.TaskID{first.ID}})
	for _, got := range list {
		task("HandOver", got, err)
	}
	got, began, err := w.StartTask(w.ctx, "ravi", first.ID, tracking.Step{})
	task("StartTask", got, err)
	trip("StartTask", began, err)
	got, ended, err := w.UndoTask(w.ctx, "ravi", first.ID, "", tracking.Step{})
	task("UndoTask", got, err)
	trip("UndoTask", ended, err)
	if ended.ID != began.ID || ended.Version <= began.Version {
		t.Errorf("the trip taken back is %s at %d, that begun was %s at %d", ended.ID, ended.Version, began.ID,
			began.Version)
	}
	got, err = w.CancelTask(w.ctx, first.ID, tracking.Reason{})
	task("CancelTask", got, err)
	got, err = w.RetryTask(w.ctx, first.ID, tracking.Retry{})
	task("RetryTask", got, err)
	own, err := w.StartTrip(w.ctx, "asha", "by the river", tracking.Step{})
	trip("StartTrip", own, err)
	own, err = w.StopTrip(w.ctx, "asha", own.ID, tracking.Step{})
	trip("StopTrip", own, err)
}
