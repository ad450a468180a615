package tracking_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
)

// stuck lists what could not be delivered of a task, each as driver:step:why.
func (w *world) stuck(id tracking.TaskID) (list []string) {
	w.t.Helper()
	for _, s := range w.task(id).Stuck {
		list = append(list, strings.TrimSuffix(string(s.DriverID)+":"+s.Step+":"+s.Why, ":"))
	}
	return list
}

// TestStuckSteps: what a phone could not deliver is known until somebody has seen to it, or the task
// ends; only who has or had the task may say so.
func TestStuckSteps(t *testing.T) {
	w := newWorld(t)
	for i, id := range []tracking.DriverID{"own", "next", "other"} {
		w.driver(id, float64(100*i))
	}
	id := w.create(false).ID
	must(w.AssignTask(w.ctx, id, "own"))(t)
	if _, _, err := w.StartTask(w.ctx, "own", id, tracking.Step{}); err != nil {
		t.Fatal(err)
	}
	must(w.ForceAssignTask(w.ctx, id, "next"))(t)
	before := len(w.told(tracking.KindTask, string(id), 0))

	report := func(driver tracking.DriverID, step, why string) error {
		_, err := w.ReportStuck(w.ctx, driver, id, tracking.StuckStep{Step: step, Why: why, At: start.Add(30 * time.Second)})
		return err
	}
	w.advance(time.Minute)
	for _, c := range []struct {
		driver    tracking.DriverID
		step, why string
		code      tracking.ErrorCode
		want      []string
	}{
		{"own", "complete", "gone", "", []string{"own:complete:gone"}},
		{"own", "complete", "gone", "", []string{"own:complete:gone"}},
		{"next", "start", "", "", []string{"own:complete:gone", "next:start"}},
		{"own", "complete", "changed", "", []string{"next:start", "own:complete:changed"}},
		{"other", "complete", "", tracking.ErrNotFound, nil},
		{"own", "sing", "", tracking.ErrInvalid, nil},
		{"own", "complete", "No word", tracking.ErrInvalid, nil},
	} {
		err := report(c.driver, c.step, c.why)
		if c.code != "" && !errors.Is(err, c.code) || c.code == "" && err != nil {
			t.Errorf("%s, %s, %q: %v, want %q", c.driver, c.step, c.why, err, c.code)
		}
		if got := w.stuck(id); c.want != nil && !slices.Equal(got, c.want) {
			t.Errorf("%s, %s, %q: %v, want %v", c.driver, c.step, c.why, got, c.want)
		}
	}
	if got := w.task(id).Stuck[1].At; !got.Equal(start.Add(30 * time.Second)) {
		t.Errorf("it was done at %v", got)
	}

	if _, err := w.SettleStep(w.ctx, "other", id, ""); !errors.Is(err, tracking.ErrNotFound) {
		t.Errorf("another driver settles it: %v", err)
	}
	must(w.SettleStep(w.ctx, "own", id, "start"))(t) // of which there is none
	must(w.SettleStep(w.ctx, "own", id, "complete"))(t)
	if got := w.stuck(id); !slices.Equal(got, []string{"next:start"}) {
		t.Errorf("after its driver has seen to it: %v", got)
	}
	for range 2 {
		must(w.SettleTask(w.ctx, id))(t)
	}
	if got := w.stuck(id); got != nil {
		t.Errorf("after the application has seen to it: %v", got)
	}
	if err := report("own", "fail", ""); err != nil {
		t.Fatal(err)
	}
	must(w.CompleteTask(w.ctx, id, tracking.Completion{Outcome: tracking.OutcomeFailed}))(t)
	if got := w.stuck(id); got != nil {
		t.Errorf("after its end: %v", got)
	}
	want := []string{
		"task.stuck", "task.stuck", "task.stuck", "task.settled", "task.settled", "task.stuck",
		"task.completed next:updated",
	}
	if d := cmp.Diff(want, w.told(tracking.KindTask, string(id), before)); d != "" {
		t.Errorf("events (-want +got)\n%s", d)
	}
}

// TestStuckStepsAreFew: of what could not be delivered the newest are kept.
func TestStuckStepsAreFew(t *testing.T) {
	w := newWorld(t)
	id := w.create(false).ID
	for i := range 12 {
		d := tracking.DriverID("d" + string(rune('a'+i)))
		w.driver(d, 0)
		must(w.ForceAssignTask(w.ctx, id, d))(t)
		must(w.ReportStuck(w.ctx, d, id, tracking.StuckStep{Step: "start"}))(t)
	}
	if got := w.stuck(id); len(got) != 10 || got[0] != "dc:start" || got[9] != "dl:start" {
		t.Errorf("kept %v", got)
	}
}

// A phone whose clock is ahead, or that says no time, says the same again: nobody is told twice.
func TestStuckSaidAgain(t *testing.T) {
	for name, at := range map[string]time.Time{"ahead": start.Add(10 * time.Hour), "no time": {}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.delivery("")
			for range 3 {
				must(w.ReportStuck(w.ctx, "own", id, tracking.StuckStep{Step: "complete", At: at}))(t)
				w.advance(time.Second)
			}
			n := 0
			for _, s := range w.told(tracking.KindTask, string(id), 0) {
				if strings.HasPrefix(s, "task.stuck") {
					n++
				}
			}
			if n != 1 {
				t.Errorf("told %d times", n)
			}
		})
	}
}

// TestStuckSaidAgainAfterItWasSettled: a phone that had no answer says the same again, be it after
// somebody has seen to it or after the end: nobody is told twice. The same done again later is new.
func TestStuckSaidAgainAfterItWasSettled(t *testing.T) {
	for name, at := range map[string]time.Time{"with its time": start.Add(30 * time.Second), "no time": {}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.delivery("")
			w.advance(time.Minute)
			report := func(step tracking.StuckStep) {
				t.Helper()
				must(w.ReportStuck(w.ctx, "own", id, step))(t)
			}
			said := tracking.StuckStep{Step: "pickup", Why: "changed", At: at}
			for what, seen := range map[string]func() (tracking.Task, error){
				"its driver":      func() (tracking.Task, error) { return w.SettleStep(w.ctx, "own", id, said.Step) },
				"the application": func() (tracking.Task, error) { return w.SettleTask(w.ctx, id) },
				"the end": func() (tracking.Task, error) {
					return w.CompleteTask(w.ctx, id, tracking.Completion{Outcome: tracking.OutcomeFailed})
				},
				"the end that was taken back": func() (tracking.Task, error) {
					must(w.CompleteTask(w.ctx, id, tracking.Completion{Outcome: tracking.OutcomeFailed}))(t)
					return w.ReopenTask(w.ctx, id)
				},
			} {
				w.advance(time.Minute)
				said.Why = strings.ReplaceAll(what, " ", "_")
				must(w.ReopenTask(w.ctx, id))(t)
				report(said)
				if w.stuck(id) == nil {
					t.Fatalf("%s: it is not stuck", what)
				}
				must(seen())(t)
				before := w.task(id)
				w.advance(time.Minute)
				report(said)
				if d := cmp.Diff(before, w.task(id)); d != "" {
					t.Errorf("said again after %s had seen to it (-before +after)\n%s", what, d)
				}
			}
			must(w.ReopenTask(w.ctx, id))(t)
			for _, c := range []tracking.StuckStep{
				{Step: "pickup", Why: "the_end", At: start.Add(90 * time.Second)},
				{Step: "pickup", Why: "gone", At: at},
				{Step: "start", Why: "gone", At: at},
			} {
				must(w.SettleTask(w.ctx, id))(t)
				report(c)
				if got := w.stuck(id); len(got) != 1 {
					t.Errorf("%+v was not said before: %v", c, got)
				}
			}
		})
	}
}
