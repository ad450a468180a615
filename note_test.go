package tracking_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// note writes by a task's link.
func (w *world) note(id tracking.TaskID, text string) error {
	w.t.Helper()
	return w.NoteFromCustomer(w.ctx, must(w.TaskLink(w.ctx, id))(w.t), text)
}

// TestNoteFromCustomer: in each state that a task can be in.
func TestNoteFromCustomer(t *testing.T) {
	for _, c := range []struct {
		state  string
		to     func(w *world, id tracking.TaskID) error
		events []string
		err    tracking.ErrorCode
	}{
		{"created", func(*world, tracking.TaskID) error { return nil }, []string{"task.noted"}, ""},
		{"assigned", assign("own"), []string{"task.noted own:noted"}, ""},
		{"in_progress", func(w *world, id tracking.TaskID) error {
			return errors.Join(assign("own")(w, id), startOwn(w, id))
		}, []string{"task.noted own:noted"}, ""},
		{"completed", complete, nil, tracking.ErrConflict},
		{"cancelled", cancel, nil, tracking.ErrConflict},
	} {
		t.Run(c.state, func(t *testing.T) {
			w := newWorld(t)
			w.driver("own", 0)
			id := w.create(false).ID
			if err := c.to(w, id); err != nil {
				t.Fatal(err)
			}
			w.advance(time.Minute)
			before, n := w.task(id), len(w.events(id))
			if err := w.note(id, "canary\nring twice"); code(err) != c.err {
				t.Fatalf("%v, want %q", err, c.err)
			}
			if got := w.told(tracking.KindTask, string(id), n); !slices.Equal(got, c.events) {
				t.Errorf("events %q, want %q", got, c.events)
			}
			after := w.task(id)
			if c.err != "" {
				if after.CustomerNote != "" || after.Version != before.Version {
					t.Errorf("refused, and kept: %+v", after)
				}
				return
			}
			if after.CustomerNote != "canary\nring twice" || !after.UpdatedAt.Equal(w.now()) {
				t.Errorf("kept %q, updated at %v", after.CustomerNote, after.UpdatedAt)
			}
			e := w.events(id)[n]
			if e.Actor != "customer" || e.Data != nil || e.Details() != (tracking.TaskNotedData{}) {
				t.Errorf("the event is by %q and tells %v", e.Actor, e.Data)
			}
			if got := w.look(id).CustomerNote; got != after.CustomerNote {
				t.Errorf("the link shows %q", got)
			}

			// The same again is nothing; another one stands instead.
			w.advance(time.Minute)
			if err := w.note(id, "canary\nring twice"); err != nil || w.task(id).Version != after.Version {
				t.Errorf("the same again: %v, and something was written", err)
			}
			if err := w.note(id, "ring once"); err != nil || w.task(id).CustomerNote != "ring once" {
				t.Errorf("another one: %v, %q", err, w.task(id).CustomerNote)
			}
			if got := len(w.events(id)); got != n+2 {
				t.Errorf("%d events, want %d", got, n+2)
			}
		})
	}
}

// TestNoteIsChecked: 1 to 280 characters, plain.
func TestNoteIsChecked(t *testing.T) {
	w := newWorld(t)
	id := w.create(false).ID
	for _, c := range []struct {
		text string
		ok   bool
	}{
		{"x", true},
		{strings.Repeat("ü", 280), true},
		{strings.Repeat("👍", 280), true},
		{"<b>&\"'</b> {order_id}\nzwei Zeilen", true},
		{" kept as it is \n", true},
		{strings.Repeat("ü", 281), false},
		{"", false},
		{" ", false},
		{"\n\n \n", false},
		{"\u00a0\u2003", false},
		{"a\tb", false},
		{"a\r\nb", false},
		{"a\x00", false},
		{"a\x1b[31m", false},
		{"a\x7f", false},
		{"a\u0085", false},
		{"a\xff", false},
		{"\xed\xa0\x80", false},
	} {
		before := w.task(id).CustomerNote
		err := w.note(id, c.text)
		var e *tracking.Error
		switch {
		case c.ok && (err != nil || w.task(id).CustomerNote != c.text):
			t.Errorf("%.20q: %v, kept %.20q", c.text, err, w.task(id).CustomerNote)
		case !c.ok && (!errors.As(err, &e) || e.Code != tracking.ErrInvalid || e.Field != "text"):
			t.Errorf("%.20q: %v, want ErrInvalid of text", c.text, err)
		case !c.ok && w.task(id).CustomerNote != before:
			t.Errorf("%.20q: refused, and kept", c.text)
		}
	}
}

// TestNoteNeedsALinkOfATask: unknown, expired and revoked links, and those of trips, are one and the
// same error.
func TestNoteNeedsALinkOfATask(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	trip := must(w.StartTrip(w.ctx, "own", "x", tracking.Step{}))(t)
	id := w.give(tracking.TypeDrop, 0, 100)
	if err := startOwn(w, id); err != nil {
		t.Fatal(err)
	}
	trips, _, err := w.Trips(w.ctx, tracking.TripFilter{TrackingID: tracking.TrackingID(id)})
	if err != nil {
		t.Fatal(err)
	}
	revoked := must(w.TaskLink(w.ctx, id))(t)
	if err := w.RevokeTaskLink(w.ctx, id); err != nil {
		t.Fatal(err)
	}
	over := w.create(false).ID
	expired := must(w.TaskLink(w.ctx, over))(t)
	if err := cancel(w, over); err != nil {
		t.Fatal(err)
	}
	w.advance(24 * time.Hour)
	_, want := w.Tracking(w.ctx, "nobody")
	for name, token := range map[string]string{
		"unknown": "nobody", "empty": "", "revoked": revoked, "expired": expired,
		"of a trip": must(w.TripLink(w.ctx, trip.ID))(t), "of a task's trip": must(w.TripLink(w.ctx, trips[0].ID))(t),
	} {
		if err := w.NoteFromCustomer(w.ctx, token, "hello"); code(err) != tracking.ErrNotFound ||
			err.Error() != want.Error() {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
	}
	if got := w.task(id).CustomerNote; got != "" {
		t.Errorf("kept %q", got)
	}
}

// TestNoteCrossesApplications: the link says whose task it is, as everywhere.
func TestNoteCrossesApplications(t *testing.T) {
	w := newWorld(t)
	b := w.ForApp("b")
	task := must(b.CreateTask(w.ctx, newDrop()))(t)
	if err := w.NoteFromCustomer(w.ctx, must(b.TaskLink(w.ctx, task.ID))(t), "hello"); err != nil {
		t.Fatal(err)
	}
	if got := must(b.Task(w.ctx, task.ID))(t); got.CustomerNote != "hello" {
		t.Errorf("kept %q", got.CustomerNote)
	}
	events, _, err := b.Events(w.ctx, tracking.EventFilter{})
	if err != nil || len(events) != 2 {
		t.Errorf("%d events of its application, error %v", len(events), err)
	}
}

// TestNotesADay: a link takes ten notes in any 24 hours. What is refused, or changes nothing, does
// not count, and other links have their own.
func TestNotesADay(t *testing.T) {
	w := newWorld(t)
	id, other := w.create(false).ID, w.create(false).ID
	wait := func(err error) time.Duration {
		t.Helper()
		var e *tracking.Error
		if !errors.As(err, &e) || e.Code != tracking.ErrRateLimited {
			t.Fatalf("%v, want ErrRateLimited", err)
		}
		return e.RetryAfter
	}
	text := func(n int) string { return strings.Repeat("x", n) }
	for n := 1; n <= 10; n++ {
		if err := w.note(id, text(n)); err != nil {
			t.Fatalf("note %d: %v", n, err)
		}
		for range 3 {
			if err := w.note(id, text(n)); err != nil {
				t.Fatalf("note %d again: %v", n, err)
			}
			if err := w.note(id, ""); code(err) != tracking.ErrInvalid {
				t.Fatal(err)
			}
		}
		w.advance(time.Hour)
	}
	if got := wait(w.note(id, text(11))); got != 14*time.Hour {
		t.Errorf("is to wait %v, want 14 h", got)
	}
	if got := w.task(id).CustomerNote; got != text(10) {
		t.Errorf("refused, and kept %q", got)
	}
	if err := w.note(other, "hello"); err != nil {
		t.Errorf("another link: %v", err)
	}
	if err := w.note(id, text(10)); err != nil {
		t.Errorf("what stands already changes nothing: %v", err)
	}
	w.advance(14*time.Hour - time.Millisecond)
	wait(w.note(id, text(11)))
	w.advance(time.Millisecond)
	if err := w.note(id, text(11)); err != nil {
		t.Errorf("when the first is a day old: %v", err)
	}
	if got := wait(w.note(id, text(12))); got != time.Hour {
		t.Errorf("is to wait %v, want 1 h", got)
	}
	w.advance(-30 * 24 * time.Hour) // the clock was wrong
	if got := wait(w.note(id, text(12))); got > 24*time.Hour {
		t.Errorf("is to wait %v", got)
	}
	w.advance(24 * time.Hour)
	if err := w.note(id, text(12)); err != nil {
		t.Errorf("a day after the clock was put back: %v", err)
	}
}

// TestNotesAtOnce: many at the same moment gain nothing.
func TestNotesAtOnce(t *testing.T) {
	w := newWorld(t)
	id := w.create(false).ID
	link := must(w.TaskLink(w.ctx, id))(t)
	var mu sync.Mutex
	got := map[tracking.ErrorCode]int{}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			err := w.NoteFromCustomer(w.ctx, link, strings.Repeat("x", i+1))
			mu.Lock()
			defer mu.Unlock()
			got[code(err)]++
		})
	}
	wg.Wait()
	if got[""] != 10 || got[tracking.ErrRateLimited] != 30 || len(w.events(id)) != 11 {
		t.Errorf("answers %v, %d events", got, len(w.events(id)))
	}
}

// TestNoteLosesNoRace: what ends the task, or kills the link, while a note is on its way.
func TestNoteLosesNoRace(t *testing.T) {
	for name, c := range map[string]struct {
		then func(two *tracking.Service, w *world, id tracking.TaskID) error
		want tracking.ErrorCode
	}{
		"cancelled": {func(two *tracking.Service, w *world, id tracking.TaskID) error {
			_, err := two.CancelTask(w.ctx, id, tracking.Reason{})
			return err
		}, tracking.ErrConflict},
		"revoked": {func(two *tracking.Service, w *world, id tracking.TaskID) error {
			return two.RevokeTaskLink(w.ctx, id)
		}, tracking.ErrNotFound},
		"changed": {func(two *tracking.Service, w *world, id tracking.TaskID) error {
			_, err := two.UpdateTask(w.ctx, id, tracking.TaskUpdate{Notes: new("n")})
			return err
		}, ""},
	} {
		store := &between{Store: memory.New()}
		w := newWorldOn(t, store)
		two := must(tracking.New(store.Store, &tracking.Options{Now: w.now}))(t)
		id := w.create(false).ID
		link := must(w.TaskLink(w.ctx, id))(t)
		store.then = func() {
			if err := c.then(two, w, id); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.NoteFromCustomer(w.ctx, link, "hello"); code(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		want := ""
		if c.want == "" {
			want = "hello"
		}
		if got := w.task(id).CustomerNote; got != want {
			t.Errorf("%s: kept %q", name, got)
		}
	}
}

// failing is a Store whose commits fail.
type failing struct {
	tracking.Store
	with error
}

func (f *failing) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	if f.with != nil {
		return tracking.Written{}, f.with
	}
	return f.Store.Commit(ctx, app, cs)
}

// TestNotesThatWereNotKept: a note that is known not to have been kept does not count; one of which
// that is not known does.
func TestNotesThatWereNotKept(t *testing.T) {
	for _, c := range []struct {
		err  error
		left int // of ten
	}{{errors.New("a fault"), 10}, {tracking.ErrUnavailable, 7}} {
		store := &failing{Store: memory.New()}
		w := newWorldOn(t, store)
		link := must(w.TaskLink(w.ctx, w.create(false).ID))(t)
		store.with = c.err
		for range 3 {
			if err := w.NoteFromCustomer(w.ctx, link, "x"); err == nil {
				t.Fatal("no error")
			}
		}
		store.with = nil
		n := 0
		for code(w.NoteFromCustomer(w.ctx, link, strings.Repeat("y", n+1))) == "" {
			n++
		}
		if n != c.left {
			t.Errorf("after three times %v there are %d notes left, want %d", c.err, n, c.left)
		}
	}
}
