package tracking_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// fail creates a task and has it fail.
func (w *world) fail(n tracking.NewTask) tracking.Task {
	w.t.Helper()
	id := must(w.CreateTask(w.ctx, n))(w.t).ID
	return must(w.CompleteTask(w.ctx, id, tracking.Completion{
		Outcome: tracking.OutcomeFailed, Reason: tracking.Reason{Code: tracking.ReasonNotHome, Text: "canary"},
	}))(w.t)
}

// retry tries a task again, with nothing said of when.
func (w *world) retry(id tracking.TaskID) tracking.Task {
	w.t.Helper()
	return must(w.RetryTask(w.ctx, id, tracking.Retry{}))(w.t)
}

// ofRetry says of each field of a task what the one that tries it again has in it: the same, nothing,
// or something of its own.
var ofRetry = map[string]string{
	"ID": "own", "Type": "same", "Status": "own", "Outcome": "none", "Reason": "none", "ReasonCode": "none",
	"Time": "own", "Window": "none", "Promise": "none", "LateFor": "none", "AssignAt": "none", "DueAt": "none",
	"Requires": "same", "Notes": "same", "CustomerNote": "none", "OrderID": "same", "Pickup": "same", "Drop": "same",
	"DriverID": "none", "Person": "none", "AutoAssigned": "none", "Waiting": "own", "WaitsSince": "own",
	"Properties": "same", "Excluded": "none", "Proof": "same", "Proofs": "none", "ReceivedBy": "none", "DriverNote": "none", "PIN": "none",
	"Stuck": "none", "Settled": "none",
	"WrongPINs":     "none",
	"CompletedFrom": "none", "RetryOf": "own", "RetriedBy": "none", "Key": "none", "KeySum": "none",
	"GeocodeAt": "none", "Link": "own", "CreatedAt": "own", "AssignedAt": "none", "StartedAt": "none",
	"PickupArrivedAt": "none", "PickedUpAt": "none", "ArrivedAt": "none", "CompletedAt": "none",
	"PickupArrivingAt": "none", "ArrivingAt": "none", "StepAt": "none", "ErasedAt": "none", "UpdatedAt": "own", "Seq": "own",
	"Version": "own",
}

// TestRetryHasTheContent tries a task again of which every field is set: each is decided on.
func TestRetryHasTheContent(t *testing.T) {
	store := memory.New()
	w := newWorldOn(t, store)
	var first tracking.Task
	v := reflect.ValueOf(&first).Elem()
	for i := range v.NumField() {
		fillField(t, v.Field(i))
	}
	first.Type = tracking.TypePickupAndDrop
	first.Status, first.Outcome = tracking.StatusCompleted, tracking.OutcomeFailed
	first.RetryOf, first.RetriedBy, first.Version, first.ErasedAt = "", "", 0, time.Time{}
	first.GeocodeAt, first.AssignAt, first.DueAt = time.Time{}, time.Time{}, time.Time{} // as of all that have ended
	if _, err := store.Commit(w.ctx, tracking.DefaultApp, &tracking.Changeset{Tasks: []tracking.Task{first}}); err != nil {
		t.Fatal(err)
	}
	first = w.task(first.ID)
	w.advance(time.Hour)
	again := w.retry(first.ID)
	if d := cmp.Diff(again, w.task(again.ID)); d != "" {
		t.Errorf("answered and kept differ (-answered +kept)\n%s", d)
	}
	a, b := reflect.ValueOf(first), reflect.ValueOf(again)
	for i := range a.NumField() {
		name := a.Type().Field(i).Name
		switch want := ofRetry[name]; {
		case want == "same" && (!cmp.Equal(a.Field(i).Interface(), b.Field(i).Interface()) || b.Field(i).IsZero()):
			t.Errorf("%s is %v, was %v", name, b.Field(i), a.Field(i))
		case want == "none" && !b.Field(i).IsZero():
			t.Errorf("%s is %v, want none", name, b.Field(i))
		case want == "":
			t.Errorf("%s: nobody has said what a task that is tried again has in it", name)
		}
	}
	if again.ID == first.ID || again.Status != tracking.StatusCreated || !again.Waiting || again.RetryOf != first.ID ||
		!again.Time.Equal(w.now()) || !again.CreatedAt.Equal(w.now()) || again.Link == first.Link {
		t.Errorf("%+v", again)
	}
	after := w.task(first.ID)
	if after.RetriedBy != again.ID || !after.UpdatedAt.Equal(w.now()) {
		t.Errorf("the first one is retried by %q, updated at %v", after.RetriedBy, after.UpdatedAt)
	}
	after.RetriedBy, after.UpdatedAt, after.Version = first.RetriedBy, first.UpdatedAt, first.Version
	if d := cmp.Diff(first, after); d != "" {
		t.Errorf("what else has changed of the first one (-before +after)\n%s", d)
	}
	again.Pickup.Customer.Name, again.Requires["x"] = "changed", "changed"
	if d := cmp.Diff(w.task(again.ID).Pickup, first.Pickup); d != "" {
		t.Errorf("what a caller got is not his:\n%s", d)
	}
}

// fillField sets all that v holds.
func fillField(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(start))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Uint8:
		v.SetUint(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillField(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillField(t, v.Index(0))
	case reflect.Array:
		for i := range v.Len() {
			fillField(t, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"x": "x"}))
	case reflect.Struct:
		for i := range v.NumField() {
			fillField(t, v.Field(i))
		}
	default:
		t.Fatalf("nobody has said what a %s is filled with", v.Type())
	}
}

// TestRetryOnce: a task is tried again once, however many ask for it; asked again, the answer is the
// task as it is then, and nothing is fired.
func TestRetryOnce(t *testing.T) {
	w := newWorld(t)
	first := w.fail(newDrop())
	two := must(tracking.New(memory.New(), nil))(t) // another store: nothing of this one is there
	if _, err := two.RetryTask(w.ctx, first.ID, tracking.Retry{}); code(err) != tracking.ErrNotFound {
		t.Errorf("in another store: %v", err)
	}
	ids := make([]tracking.TaskID, 20)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			r := tracking.Retry{Promised: start.Add(time.Duration(i) * time.Hour)}
			task, err := w.RetryTask(w.ctx, first.ID, r)
			if err != nil {
				t.Error(err)
			}
			ids[i] = task.ID
		})
	}
	wg.Wait()
	if slices.Sort(ids); ids[0] != ids[len(ids)-1] || ids[0] == "" {
		t.Errorf("it was tried again as %q", slices.Compact(ids))
	}
	if got := w.told(tracking.KindTask, string(first.ID), 2); !slices.Equal(got, []string{"task.retried"}) {
		t.Errorf("events of the first one: %q", got)
	}
	if got := w.told(tracking.KindTask, string(ids[0]), 0); !slices.Equal(got, []string{"task.created"}) {
		t.Errorf("events of the new one: %q", got)
	}
	created, retried := w.events(ids[0])[0], w.events(first.ID)[2]
	if created.Details() != (tracking.TaskCreatedData{RetryOf: first.ID}) ||
		retried.Details() != (tracking.TaskRetriedData{RetriedBy: ids[0]}) {
		t.Errorf("the events tell %v and %v", created.Data, retried.Data)
	}
	w.driver("own", 0)
	must(w.AssignTask(w.ctx, ids[0], "own"))(t)
	w.advance(time.Hour)
	updated := w.task(first.ID)
	if again := w.retry(first.ID); !cmp.Equal(again, w.task(ids[0])) || again.DriverID != "own" {
		t.Errorf("asked again: %+v", again)
	}
	if !cmp.Equal(w.task(first.ID), updated) {
		t.Error("asked again the first one has changed")
	}
	if _, err := w.ForApp("b").RetryTask(w.ctx, first.ID, tracking.Retry{}); code(err) != tracking.ErrNotFound {
		t.Errorf("another application: %v", err)
	}
	for _, id := range []tracking.TaskID{"", "nobody", "\x00"} {
		if _, err := w.RetryTask(w.ctx, id, tracking.Retry{}); code(err) != tracking.ErrNotFound {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// TestRetryWhen: the window and the promise are those that are given, and are checked.
func TestRetryWhen(t *testing.T) {
	w := newWorld(t)
	from, to := start.Add(time.Hour), start.Add(2*time.Hour)
	never := time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		r     tracking.Retry
		field string
	}{
		{tracking.Retry{Window: tracking.Window{From: from, To: to}, Promised: to}, ""},
		{tracking.Retry{Window: tracking.Window{From: from}}, ""},
		{tracking.Retry{Window: tracking.Window{To: to}}, ""},
		{tracking.Retry{Window: tracking.Window{From: to, To: to}}, ""},
		{tracking.Retry{Window: tracking.Window{From: to.Add(time.Microsecond), To: to}}, ""}, // the same millisecond
		{tracking.Retry{Window: tracking.Window{From: start.Add(-time.Hour)}}, ""},            // the past is allowed
		{tracking.Retry{Window: tracking.Window{From: to, To: from}}, "window.to"},
		{tracking.Retry{Window: tracking.Window{From: never}}, "window.from"},
		{tracking.Retry{Window: tracking.Window{To: never}}, "window.to"},
		{tracking.Retry{Promised: never}, "promised"},
	} {
		first := w.fail(newDrop())
		again, err := w.RetryTask(w.ctx, first.ID, c.r)
		var e *tracking.Error
		switch {
		case c.field == "" && err != nil:
			t.Errorf("%v: %v", c.r, err)
		case c.field == "":
			ms := func(at time.Time) time.Time { return at.Truncate(time.Millisecond) }
			kept := w.task(again.ID)
			if !kept.Window.From.Equal(ms(c.r.Window.From)) || !kept.Window.To.Equal(ms(c.r.Window.To)) ||
				!kept.Promise.Equal(ms(c.r.Promised)) {
				t.Errorf("%v: kept %v, %v", c.r, kept.Window, kept.Promise)
			}
		case !errors.As(err, &e) || e.Code != tracking.ErrInvalid || e.Field != c.field:
			t.Errorf("%v: %v, want ErrInvalid of %s", c.r, err, c.field)
		case w.task(first.ID).RetriedBy != "":
			t.Errorf("%v: refused, and done", c.r)
		}
	}
}

// TestRetryIsAssignedAsTheFirst: the new one goes to drivers automatically if the first one did when
// it ended.
func TestRetryIsAssignedAsTheFirst(t *testing.T) {
	for _, c := range []struct {
		name   string
		auto   bool // when it was created
		before func(w *world, id tracking.TaskID)
		want   bool
	}{
		{"it waited", true, func(*world, tracking.TaskID) {}, true},
		{"it had gone to a driver", true, func(w *world, id tracking.TaskID) {
			w.driver("own", 100)
			must(w.AssignWaiting(w.ctx))(w.t)
		}, true},
		{"it had been started", true, func(w *world, id tracking.TaskID) {
			w.driver("own", 100)
			must(w.AssignWaiting(w.ctx))(w.t)
			if err := startOwn(w, id); err != nil {
				w.t.Fatal(err)
			}
		}, true},
		{"it had been declined", true, func(w *world, id tracking.TaskID) {
			w.driver("own", 100)
			must(w.AssignWaiting(w.ctx))(w.t)
			if err := decline(w, id); err != nil {
				w.t.Fatal(err)
			}
		}, true},
		{"it was given by hand in the end", true, func(w *world, id tracking.TaskID) {
			must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "own"}))(w.t)
			must(w.AssignTask(w.ctx, id, "own"))(w.t)
		}, false},
		{"it was taken back", true, func(w *world, id tracking.TaskID) { must(w.UnassignTask(w.ctx, id))(w.t) }, false},
		{"it was for nobody", false, func(*world, tracking.TaskID) {}, false},
		{"it was given by hand", false, func(w *world, id tracking.TaskID) {
			must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "own"}))(w.t)
			must(w.AssignTask(w.ctx, id, "own"))(w.t)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			first := w.create(c.auto)
			c.before(w, first.ID)
			if err := cancel(w, first.ID); err != nil {
				t.Fatal(err)
			}
			w.driver("next", 50)
			again := w.retry(first.ID)
			if got := again.DriverID == "next"; got != c.want || again.Waiting {
				t.Errorf("it went to %q, waits %v; want to a driver: %v", again.DriverID, again.Waiting, c.want)
			}
			want := []string{"task.created"}
			if c.want {
				want = append(want, "task.assigned next:assigned")
			}
			if got := w.told(tracking.KindTask, string(again.ID), 0); !slices.Equal(got, want) {
				t.Errorf("events %q, want %q", got, want)
			}
		})
	}
	t.Run("nobody is excluded", func(t *testing.T) {
		w := newWorld(t)
		w.driver("own", 100)
		first := w.create(true)
		if err := errors.Join(decline(w, first.ID), cancel(w, first.ID)); err != nil {
			t.Fatal(err)
		}
		if again := w.retry(first.ID); again.DriverID != "own" {
			t.Errorf("who declined the first one is not offered the second: %+v", again)
		}
	})
	t.Run("its window is tomorrow", func(t *testing.T) {
		w := newWorld(t)
		first := w.create(true)
		if err := cancel(w, first.ID); err != nil {
			t.Fatal(err)
		}
		w.driver("own", 100)
		from := start.Add(24 * time.Hour)
		again := must(w.RetryTask(w.ctx, first.ID, tracking.Retry{Window: tracking.Window{From: from}}))(t)
		if again.DriverID != "" || !again.AssignAt.Equal(from.Add(-time.Hour)) || !cmp.Equal(again, w.task(again.ID)) {
			t.Errorf("it went to %q, and waits till %v", again.DriverID, again.AssignAt)
		}
	})
	t.Run("nobody is there", func(t *testing.T) {
		w := newWorld(t)
		first := w.create(true)
		if err := cancel(w, first.ID); err != nil {
			t.Fatal(err)
		}
		if again := w.retry(first.ID); !again.Waiting || again.Status != tracking.StatusCreated {
			t.Errorf("it does not wait: %+v", again)
		}
	})
}

// TestLinkShowsTheRetry: the link of a task that is tried again shows the new one, through each try,
// and lives as that one does. So does one that is asked for later.
func TestLinkShowsTheRetry(t *testing.T) {
	w := newWorld(t)
	first := w.fail(newDrop())
	link := must(w.TaskLink(w.ctx, first.ID))(t)
	see := func() tracking.Tracking { t.Helper(); return must(w.Tracking(w.ctx, link))(t) }
	dead := func(token string) bool {
		t.Helper()
		_, err := w.Tracking(w.ctx, token)
		if err != nil && code(err) != tracking.ErrNotFound {
			t.Fatal(err)
		}
		return err != nil
	}
	if v := see(); !v.Ended || v.Outcome != tracking.OutcomeFailed || v.Earlier != nil || v.TaskID != first.ID {
		t.Errorf("before: %+v", v)
	}

	// It had died before somebody tried again, and is there again.
	ended := w.now()
	w.advance(48 * time.Hour)
	if !dead(link) {
		t.Error("the link outlives its time")
	}
	second := w.retry(first.ID)
	want := &tracking.EarlierTry{Outcome: tracking.OutcomeFailed, ReasonCode: tracking.ReasonNotHome, EndedAt: ended}
	if v := see(); v.Ended || v.Status != "created" || v.Outcome != "" || v.ReasonCode != "" ||
		v.TaskID != second.ID || !cmp.Equal(v.Earlier, want) {
		t.Errorf("tried again: %+v, earlier %+v", v, v.Earlier)
	}
	if again := must(w.TaskLink(w.ctx, first.ID))(t); again != link {
		t.Error("asked for again it is another link")
	}
	own := must(w.TaskLink(w.ctx, second.ID))(t)
	if own == link || !cmp.Equal(must(w.Tracking(w.ctx, own))(t), see()) {
		t.Error("the links of both show different things, or are the same")
	}

	// The next try fails, and is tried again too.
	must(w.CancelTask(w.ctx, second.ID, tracking.Reason{Code: tracking.ReasonClosed}))(t)
	if v := see(); !v.Ended || v.Outcome != tracking.OutcomeCancelled || v.ReasonCode != tracking.ReasonClosed {
		t.Errorf("the second was cancelled: %+v", v)
	}
	third := w.retry(second.ID)
	must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "own", Name: new("Asha Rao")}))(t)
	must(w.AssignTask(w.ctx, third.ID, "own"))(t)
	if _, _, err := w.StartTask(w.ctx, "own", third.ID, tracking.Step{LngLat: east(100)}); err != nil {
		t.Fatal(err)
	}
	if v := see(); v.DriverName != "Asha" || v.Position == nil || v.TaskID != third.ID ||
		v.Earlier.Outcome != tracking.OutcomeCancelled || v.Earlier.ReasonCode != tracking.ReasonClosed {
		t.Errorf("the third is under way: %+v, earlier %+v", v, v.Earlier)
	}
	if err := finish(w, third.ID); err != nil {
		t.Fatal(err)
	}

	// It lives as long after the end of the last one as any link.
	w.advance(24*time.Hour - time.Millisecond)
	if v := see(); v.Outcome != tracking.OutcomeSucceeded || v.Position != nil {
		t.Errorf("the third is done: %+v", v)
	}
	w.advance(time.Millisecond)
	if !dead(link) || !dead(own) {
		t.Error("the links outlive the last try")
	}
	fresh := must(w.TaskLink(w.ctx, first.ID))(t)
	if fresh == link || must(w.Tracking(w.ctx, fresh))(t).TaskID != third.ID {
		t.Error("a new link of the first does not show the third")
	}
}

// TestRevokedLinksOfTries: who revokes the link of a task means all that show it, and no others.
func TestRevokedLinksOfTries(t *testing.T) {
	w := newWorld(t)
	first := w.fail(newDrop())
	second := w.retry(first.ID)
	links := func() (list [2]string) {
		return [2]string{must(w.TaskLink(w.ctx, first.ID))(t), must(w.TaskLink(w.ctx, second.ID))(t)}
	}
	live := func(links [2]string) (live [2]bool) {
		for i, l := range links {
			_, err := w.Tracking(w.ctx, l)
			live[i] = err == nil
		}
		return live
	}
	all := links()
	if err := w.RevokeTaskLink(w.ctx, first.ID); err != nil {
		t.Fatal(err)
	}
	if got := live(all); got != [2]bool{false, true} {
		t.Errorf("the first one's revoked: live are %v", got)
	}
	all = links()
	if err := w.RevokeTaskLink(w.ctx, second.ID); err != nil {
		t.Fatal(err)
	}
	if got := live(all); got != [2]bool{false, false} {
		t.Errorf("the second one's revoked: live are %v", got)
	}
	version := w.task(first.ID).Version
	if err := w.RevokeTaskLink(w.ctx, second.ID); err != nil || w.task(first.ID).Version != version {
		t.Errorf("revoked again: %v, and something was written", err)
	}
}

// TestFollowThroughTheRetry: who watches the link of the first task is woken by what becomes of the
// new one, and by the end of the link that is watched.
func TestFollowThroughTheRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		first := w.fail(newDrop())
		link := must(w.TaskLink(w.ctx, first.ID))(t)
		second := w.retry(first.ID)
		w.driver("own", 0)
		ctx, stop := context.WithTimeout(w.ctx, time.Minute)
		defer stop()
		began := time.Now()
		var seen []string
		var ended error
		for v, err := range w.Follow(ctx, link) {
			if ended = err; err != nil {
				break
			}
			seen = append(seen, v.Status+" "+v.CustomerNote)
			switch len(seen) {
			case 1:
				must(w.AssignTask(w.ctx, second.ID, "own"))(t)
			case 2:
				if err := w.NoteFromCustomer(w.ctx, link, "round the back"); err != nil {
					t.Fatal(err)
				}
			case 3:
				if got := w.task(second.ID); got.CustomerNote != "round the back" {
					t.Errorf("the note is not with the second: %+v", got)
				}
				if err := w.RevokeTaskLink(w.ctx, first.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
		want := []string{"created ", "assigned ", "assigned round the back"}
		if !slices.Equal(seen, want) || code(ended) != tracking.ErrNotFound {
			t.Errorf("seen %q, then %v; want %q and the end of the link", seen, ended, want)
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("it waited for %v", took)
		}
	})
}

// TestTriesEnd: links follow every try that there can be, and there can be a hundred.
func TestTriesEnd(t *testing.T) {
	w := newWorld(t)
	task := w.fail(newDrop())
	link := must(w.TaskLink(w.ctx, task.ID))(t)
	for range 99 {
		next := w.retry(task.ID)
		if got := must(w.Tracking(w.ctx, link))(t).TaskID; got != next.ID {
			t.Fatalf("the first link shows %s, the last try is %s", got, next.ID)
		}
		must(w.CancelTask(w.ctx, next.ID, tracking.Reason{}))(t)
		task = next
	}
	if _, err := w.RetryTask(w.ctx, task.ID, tracking.Retry{}); code(err) != tracking.ErrConflict {
		t.Errorf("a try after the last: %v", err)
	}
	if err := w.RevokeTaskLink(w.ctx, task.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Tracking(w.ctx, link); code(err) != tracking.ErrNotFound {
		t.Errorf("the first link lives when the last one's is revoked: %v", err)
	}
}

// TestRetryOfOneThatIsGone: a task that names one that is no longer there is tried again anew, and its
// link shows itself until then.
func TestRetryOfOneThatIsGone(t *testing.T) {
	store := memory.New()
	w := newWorldOn(t, store)
	first := w.fail(newDrop())
	first.RetriedBy, first.RetryOf = "gone", "gone too"
	if _, err := store.Commit(w.ctx, tracking.DefaultApp, &tracking.Changeset{Tasks: []tracking.Task{first}}); err != nil {
		t.Fatal(err)
	}
	if v := w.look(first.ID); v.TaskID != first.ID || v.Earlier != nil {
		t.Errorf("its link shows %+v", v)
	}
	again := w.retry(first.ID)
	if again.RetryOf != first.ID || w.task(first.ID).RetriedBy != again.ID || w.look(first.ID).TaskID != again.ID {
		t.Errorf("tried again: %+v, and the first: %+v", again, w.task(first.ID))
	}
}

// TestRetryLosesNoRace: a task that is changed by another process while it is tried again.
func TestRetryLosesNoRace(t *testing.T) {
	store := &between{Store: memory.New()}
	w := newWorldOn(t, store)
	two := must(tracking.New(store.Store, &tracking.Options{Now: w.now}))(t) // another process
	first := w.fail(newDrop())
	var other tracking.Task
	store.then = func() { other = must(two.RetryTask(w.ctx, first.ID, tracking.Retry{}))(t) }
	if again := w.retry(first.ID); again.ID != other.ID {
		t.Errorf("it is tried again as %s and %s", again.ID, other.ID)
	}
	list, _, err := w.Tasks(w.ctx, tracking.TaskFilter{})
	if err != nil || len(list) != 2 {
		t.Errorf("there are %d tasks, error %v", len(list), err)
	}
}

// TestRetryWaitsForNobody tries many tasks again that go to a driver at once: the locks of a task
// and of a driver may be one and the same.
func TestRetryWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(o *tracking.Options) { o.MaxOpenTasks = -1 })
		w.driver("own", 0)
		ctx, cancel := context.WithTimeout(w.ctx, 20*time.Second)
		defer cancel()
		for range 2000 {
			id := w.create(true).ID
			must(w.CancelTask(ctx, id, tracking.Reason{}))(t)
			next := must(w.RetryTask(ctx, id, tracking.Retry{}))(t)
			must(w.CancelTask(ctx, next.ID, tracking.Reason{}))(t)
		}
	})
}
