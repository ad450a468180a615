package tracking_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// sayers are the verbs that take a reason, each on a task that allows it, with the type of the event
// that tells of it.
var sayers = map[string]struct {
	event tracking.EventType
	do    func(w *world, why tracking.Reason) (tracking.Task, error)
}{
	"CancelTask": {tracking.EventTaskCompleted, func(w *world, why tracking.Reason) (tracking.Task, error) {
		return w.CancelTask(w.ctx, w.create(false).ID, why)
	}},
	"CompleteTask": {tracking.EventTaskCompleted, func(w *world, why tracking.Reason) (tracking.Task, error) {
		return w.CompleteTask(w.ctx, w.create(false).ID, tracking.Completion{Outcome: tracking.OutcomeFailed, Reason: why})
	}},
	"FinishTask": {tracking.EventTaskCompleted, func(w *world, why tracking.Reason) (tracking.Task, error) {
		id := w.give(tracking.TypeDrop, 0, 100)
		if err := startOwn(w, id); err != nil {
			return tracking.Task{}, err
		}
		c := tracking.Completion{Outcome: tracking.OutcomeFailed, Reason: why}
		return w.FinishTask(w.ctx, "own", id, c, tracking.Step{})
	}},
	"FinishTask, succeeded": {tracking.EventTaskCompleted, func(w *world, why tracking.Reason) (tracking.Task, error) {
		id := w.give(tracking.TypeDrop, 0, 100)
		if err := startOwn(w, id); err != nil {
			return tracking.Task{}, err
		}
		return w.FinishTask(w.ctx, "own", id, tracking.Completion{Reason: why}, tracking.Step{})
	}},
	"DeclineTask": {tracking.EventTaskDeclined, func(w *world, why tracking.Reason) (tracking.Task, error) {
		return w.DeclineTask(w.ctx, "own", w.give(tracking.TypeDrop, 0, 100), why, tracking.Step{})
	}},
}

// TestReasons: each verb that takes a reason keeps its word and its text, its event has the word and
// not the text, and a link tells the word where the task failed or was cancelled.
func TestReasons(t *testing.T) {
	for name, verb := range sayers {
		for _, code := range []tracking.ReasonCode{"", tracking.ReasonNotHome, tracking.ReasonOther, "dog_outside"} {
			t.Run(name+" "+string(code), func(t *testing.T) {
				w := newWorld(t, func(o *tracking.Options) { o.Reasons = []tracking.ReasonCode{"dog_outside"} })
				w.driver("own", 0)
				task := must(verb.do(w, tracking.Reason{Code: code, Text: "canary"}))(t)
				if kept := w.task(task.ID); kept.ReasonCode != code || kept.Reason != "canary" ||
					!cmp.Equal(kept, task) {
					t.Errorf("kept %q, %q (-kept +answered)\n%s", kept.ReasonCode, kept.Reason, cmp.Diff(kept, task))
				}
				var told []string
				for _, e := range w.events(task.ID) {
					if e.Type == verb.event {
						told = append(told, e.Data["reason_code"])
					}
					for k, v := range e.Data {
						if strings.Contains(v, "canary") {
							t.Errorf("%s tells the text under %s", e.Type, k)
						}
					}
				}
				if !slices.Equal(told, []string{string(code)}) {
					t.Errorf("events tell %q", told)
				}
				shown := code
				if task.Outcome != tracking.OutcomeFailed && task.Outcome != tracking.OutcomeCancelled {
					shown = ""
				}
				if got := w.look(task.ID).ReasonCode; got != shown {
					t.Errorf("the link tells %q, want %q", got, shown)
				}
			})
		}
	}
}

// events lists a task's events.
func (w *world) events(id tracking.TaskID) []tracking.Event {
	w.t.Helper()
	of := tracking.Subject{Kind: tracking.KindTask, ID: string(id)}
	list, _, err := w.Events(w.ctx, tracking.EventFilter{Subject: of})
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// TestReasonsRefused: what is no word that may be given is refused by its name, and changes nothing.
func TestReasonsRefused(t *testing.T) {
	for name, verb := range sayers {
		for _, c := range []struct {
			why   tracking.Reason
			field string
		}{
			{tracking.Reason{Code: "unknown"}, "reason_code"},
			{tracking.Reason{Code: "Not_Home"}, "reason_code"},
			{tracking.Reason{Code: "not_home "}, "reason_code"},
			{tracking.Reason{Code: "not home"}, "reason_code"},
			{tracking.Reason{Code: "dog_outside"}, "reason_code"}, // of another program
			{tracking.Reason{Code: "\x00"}, "reason_code"},
			{tracking.Reason{Code: tracking.ReasonCode(strings.Repeat("x", 33))}, "reason_code"},
			{tracking.Reason{Code: tracking.ReasonOther, Text: strings.Repeat("x", 201)}, "reason"},
			{tracking.Reason{Text: "\x00"}, "reason"},
			{tracking.Reason{Text: "\xff"}, "reason"},
		} {
			w := newWorld(t)
			w.driver("own", 0)
			_, err := verb.do(w, c.why)
			var e *tracking.Error
			if !errors.As(err, &e) || e.Code != tracking.ErrInvalid || e.Field != c.field ||
				!strings.HasPrefix(e.Message, c.field+" ") {
				t.Errorf("%s with %+.40q: %v, want ErrInvalid of %s", name, c.why, err, c.field)
				continue
			}
			if c.why.Code == "unknown" && (strings.Contains(e.Message, "unknown") ||
				!strings.Contains(e.Message, "not_home, refused, wrong_address, damaged, closed, too_late, other")) {
				t.Errorf("%s: %q", name, e.Message)
			}
			list, _, err := w.Tasks(w.ctx, tracking.TaskFilter{})
			if err != nil || list[0].Status == tracking.StatusCompleted || list[0].Reason != "" {
				t.Errorf("%s with %+.40q was done: %+v, %v", name, c.why, list[0], err)
			}
		}
	}
}

// TestReasonGoesWithTheNextDriver: why somebody declined is told until somebody else has the task.
func TestReasonGoesWithTheNextDriver(t *testing.T) {
	for name, next := range map[string]func(*world, tracking.TaskID) error{
		"assigned": assign("own"), "cancelled": cancel, "completed": complete,
	} {
		w := newWorld(t)
		w.driver("own", 0)
		id := w.give(tracking.TypeDrop, 0, 100)
		must(w.DeclineTask(w.ctx, "own", id, tracking.Reason{Code: tracking.ReasonClosed, Text: "no"}, tracking.Step{}))(t)
		if got := w.task(id); got.ReasonCode != tracking.ReasonClosed || got.Reason != "no" {
			t.Errorf("%s: before it is %q, %q", name, got.ReasonCode, got.Reason)
		}
		if err := next(w, id); err != nil {
			t.Fatal(err)
		}
		if got := w.task(id); got.ReasonCode != "" || got.Reason != "" {
			t.Errorf("%s: afterwards it is %q, %q", name, got.ReasonCode, got.Reason)
		}
	}
}

// TestOptionsReasons: words of the embedder's are checked when the Service is made.
func TestOptionsReasons(t *testing.T) {
	for _, c := range []struct {
		words []tracking.ReasonCode
		ok    bool
	}{
		{nil, true},
		{[]tracking.ReasonCode{"dog_outside", "x", "0", "_", tracking.ReasonCode(strings.Repeat("x", 32))}, true},
		{[]tracking.ReasonCode{""}, false},
		{[]tracking.ReasonCode{tracking.ReasonCode(strings.Repeat("x", 33))}, false},
		{[]tracking.ReasonCode{"Dog"}, false},
		{[]tracking.ReasonCode{"dog outside"}, false},
		{[]tracking.ReasonCode{"dog-outside"}, false},
		{[]tracking.ReasonCode{"größe"}, false},
		{[]tracking.ReasonCode{"dog,cat"}, false},
		{[]tracking.ReasonCode{"dog\n"}, false},
		{[]tracking.ReasonCode{"dog", "cat", "dog"}, false},
		{[]tracking.ReasonCode{"not_home"}, false},
	} {
		svc, err := tracking.New(memory.New(), &tracking.Options{Reasons: c.words})
		if (err == nil) != c.ok || err != nil && !strings.Contains(err.Error(), "Options.Reasons") {
			t.Errorf("%q: %v", c.words, err)
		}
		if err != nil {
			continue
		}
		usual := []tracking.ReasonCode{"not_home", "refused", "wrong_address", "damaged", "closed", "too_late", "other"}
		if got := svc.Reasons(); !slices.Equal(got, slices.Concat(usual, c.words)) {
			t.Errorf("%q: Reasons are %q", c.words, got)
		}
	}
	own := []tracking.ReasonCode{"dog"}
	svc := must(tracking.New(memory.New(), &tracking.Options{Reasons: own}))(t)
	own[0] = "cat"
	svc.Reasons()[0], svc.Options().Reasons[0] = "x", "y"
	if got := svc.Reasons(); got[0] != tracking.ReasonNotHome || got[7] != "dog" {
		t.Errorf("the words were changed from outside: %q", got)
	}
}
