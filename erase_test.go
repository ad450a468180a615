package tracking_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// The person whom these tests erase, in every place where a person can be.
const (
	herName, hisNote, herMobile, herStreet = "Canaryname", "canary note", "+49 (170) 555-0142", "Canary Street 7"
)

// delivery makes a task for her, with a shop to fetch it from, which own has driven and ended, with
// files, notes and addresses. Outcome "" leaves it in progress.
func (w *world) delivery(outcome tracking.Outcome) tracking.TaskID {
	w.t.Helper()
	w.driver("own", 0)
	task := must(w.CreateTask(w.ctx, tracking.NewTask{
		Type: tracking.TypePickupAndDrop, OrderID: "#1", Notes: hisNote, Key: fmt.Sprint("key ", w.now()),
		Pickup: &tracking.Place{
			LngLat: east(0), Address: "Market 1", Customer: &tracking.Contact{Name: "Shop", Mobile: "+49 89 1234"},
		},
		Drop: &tracking.Place{
			LngLat: east(50), Address: herStreet, Customer: &tracking.Contact{Name: herName, Mobile: herMobile},
		},
	}))(w.t)
	must(w.AssignTask(w.ctx, task.ID, "own"))(w.t)
	if _, err := w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "asked"}); err != nil { // who never had it
		w.t.Fatal(err)
	}
	for _, id := range []tracking.DriverID{"own", "asked"} {
		if err := w.RequestTrip(w.ctx, tracking.NewRequest{
			DriverID: id, TrackingID: tracking.TrackingID(task.ID), Message: hisNote, Dest: herStreet,
		}); err != nil {
			w.t.Fatal(err)
		}
	}
	if _, _, err := w.StartTask(w.ctx, "own", task.ID, tracking.Step{LngLat: east(0)}); err != nil {
		w.t.Fatal(err)
	}
	if err := w.NoteFromCustomer(w.ctx, must(w.TaskLink(w.ctx, task.ID))(w.t), hisNote); err != nil {
		w.t.Fatal(err)
	}
	w.advance(time.Minute)
	must(w.PickUpTask(w.ctx, "own", task.ID, tracking.Step{LngLat: east(50)}))(w.t)
	must(w.RecordFixes(w.ctx, "own", []tracking.Fix{{LngLat: *east(50), Time: w.now()}}))(w.t)
	w.prove(task.ID, photo(1))
	if outcome != "" {
		must(w.FinishTask(w.ctx, "own", task.ID, tracking.Completion{
			Outcome: outcome, Reason: tracking.Reason{Text: hisNote}, ReceivedBy: herName, Note: hisNote,
		}, tracking.Step{}))(w.t)
	}
	return task.ID
}

// tripsOf lists the trips of a task.
func (w *world) tripsOf(id tracking.TaskID) []tracking.Trip {
	w.t.Helper()
	list, _, err := w.Trips(w.ctx, tracking.TripFilter{TrackingID: tracking.TrackingID(id)})
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

func TestDeleteTaskOnlyWhatIsOver(t *testing.T) {
	w := newWorld(t, func(o *tracking.Options) { o.MaxOpenTasks = -1 })
	idle := w.create(false)
	waits := w.create(true)
	later := must(w.CreateTask(w.ctx, tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: east(0)}, AutoAssign: true,
		Window: tracking.Window{From: w.now().Add(5 * time.Hour)},
	}))(t)
	begun := w.delivery("")
	given := w.create(false)
	must(w.AssignTask(w.ctx, given.ID, "own"))(t)
	for name, id := range map[string]tracking.TaskID{
		"waiting": waits.ID, "waiting for its time": later.ID, "assigned": given.ID, "in progress": begun,
	} {
		before := w.task(id)
		if err := w.DeleteTask(w.ctx, id); code(err) != tracking.ErrConflict {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(before, w.task(id)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
	if err := w.IfVersion(idle.Version+1).DeleteTask(w.ctx, idle.ID); code(err) != tracking.ErrConflict {
		t.Errorf("another version: %v", err)
	}
	if err := w.ForApp("foreign").DeleteTask(w.ctx, idle.ID); code(err) != tracking.ErrNotFound {
		t.Errorf("another application's: %v", err)
	}
	over := must(w.CancelTask(w.ctx, waits.ID, tracking.Reason{}))(t)
	for _, task := range []tracking.Task{idle, over} {
		if err := w.IfVersion(task.Version).DeleteTask(w.ctx, task.ID); err != nil {
			t.Errorf("%s: %v", task.Status, err)
		}
		for range 2 {
			if err := w.DeleteTask(w.ctx, task.ID); code(err) != tracking.ErrNotFound {
				t.Errorf("%s, again: %v", task.Status, err)
			}
		}
	}
}

// TestDeleteTask deletes a task that has everything, and looks for it everywhere.
func TestDeleteTask(t *testing.T) {
	store := memory.New()
	w := newWorldOn(t, store, func(o *tracking.Options) {
		o.Notifier = notifierFunc(func(context.Context, tracking.Notification) error { return errors.New("down") })
	})
	id := w.delivery(tracking.OutcomeFailed)
	again := w.retry(id)
	link, file, trip := must(w.TaskLink(w.ctx, id))(t), w.task(id).Proofs[0].ID, w.tripsOf(id)[0]
	tripLink := must(w.TripLink(w.ctx, trip.ID))(t)
	if _, err := w.DeliverEvents(w.ctx); err != nil {
		t.Fatal(err)
	}
	if err := w.DeleteTask(w.ctx, id); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Task(w.ctx, id); code(err) != tracking.ErrNotFound {
		t.Errorf("the task: %v", err)
	}
	if list := w.tripsOf(id); len(list) > 0 {
		t.Errorf("its trips %v", list)
	}
	for _, token := range []string{link, tripLink} {
		if _, err := w.Tracking(w.ctx, token); code(err) != tracking.ErrNotFound {
			t.Errorf("a link: %v", err)
		}
	}
	if r, err := store.Files().Open(w.ctx, tracking.DefaultApp, file); !errors.Is(err, tracking.ErrNotFound) {
		t.Errorf("the file: %v, %v", r, err)
	}
	events, _, err := w.Events(w.ctx, tracking.EventFilter{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Subject.ID == string(id) || e.Subject.ID == string(trip.ID) {
			t.Errorf("the event %+v", e)
		}
	}
	notices, _, err := w.Notices(w.ctx, "own", 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range notices {
		if n.TaskID == id {
			t.Errorf("the notice %+v", n)
		}
	}
	w.advance(time.Hour)
	leased, err := store.LeaseEvents(w.ctx, tracking.Lease{Owner: "x", Now: w.now(), For: time.Hour, Limit: 1000})
	for _, l := range leased {
		if l.Event.Subject.ID == string(id) {
			t.Errorf("to be told: %+v", l.Event)
		}
	}
	if err != nil || len(leased) == 0 {
		t.Errorf("%d events are to be told, error %v", len(leased), err)
	}
	for _, driver := range []tracking.DriverID{"own", "asked"} {
		if reqs := must(w.Requests(w.ctx, driver))(t); len(reqs) > 0 {
			t.Errorf("requests of %s: %v", driver, reqs)
		}
	}
	// What tries it again goes on, and its link shows it alone.
	v := must(w.Tracking(w.ctx, must(w.TaskLink(w.ctx, again.ID))(t)))(t)
	if v.TaskID != again.ID || v.Earlier != nil || w.task(again.ID).RetryOf != id {
		t.Errorf("%+v", v)
	}
	if err := w.DeleteTask(w.ctx, must(w.CancelTask(w.ctx, again.ID, tracking.Reason{}))(t).ID); err != nil {
		t.Error(err)
	}
}

// TestDeletedTaskIsGoneLive has a board look on while tasks are deleted.
func TestDeletedTaskIsGoneLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorldOn(t, memory.New(), func(o *tracking.Options) { o.Now = nil })
		w.driver("own", 0)
		gone, ends := w.create(false), w.create(false)
		l := lookOn(t, w.Service, "")
		l.within(time.Second)
		for what, do := range map[string]func() error{
			"gone " + string(gone.ID): func() error { return w.DeleteTask(w.ctx, gone.ID) },
			"task " + string(ends.ID) + " 2": func() error {
				_, err := w.CancelTask(w.ctx, ends.ID, tracking.Reason{})
				return err
			},
		} {
			if err := do(); err != nil {
				t.Fatal(err)
			}
			l.tells(what, 2*time.Second, what)
		}
		if err := w.DeleteTask(w.ctx, ends.ID); err != nil {
			t.Fatal(err)
		}
		l.tells("a task that had ended", 2*time.Second, "gone "+string(ends.ID))
		w.Close(w.ctx)
	})
}

// said is what can be read of the application, as one text.
func (w *world) said(store tracking.Store) string {
	w.t.Helper()
	var all []any
	tasks, _, err := w.Tasks(w.ctx, tracking.TaskFilter{Page: tracking.Page{Limit: 1000}})
	all = append(all, tasks, err)
	trips, _, err := w.Trips(w.ctx, tracking.TripFilter{Page: tracking.Page{Limit: 1000}})
	all = append(all, trips, err)
	events, _, err := w.Events(w.ctx, tracking.EventFilter{Limit: 1000})
	all = append(all, events, err)
	for _, driver := range []tracking.DriverID{"own", "asked"} {
		requests, err := w.Requests(w.ctx, driver)
		all = append(all, requests, err)
	}
	text := must(json.Marshal(all))(w.t)
	for _, task := range tasks {
		for _, p := range task.Proofs {
			r := must(store.Files().Open(w.ctx, tracking.DefaultApp, p.ID))(w.t)
			text = append(text, must(io.ReadAll(r))(w.t)...)
		}
	}
	return string(text)
}

func TestEraseContact(t *testing.T) {
	store := memory.New()
	w := newWorldOn(t, store, func(o *tracking.Options) { o.MaxOpenTasks = -1 })
	id := w.delivery(tracking.OutcomeFailed)
	w.advance(time.Second)
	open := w.delivery("")
	longer := must(w.CreateTask(w.ctx, tracking.NewTask{Type: tracking.TypeDrop, Drop: &tracking.Place{
		Address: "Elsewhere 1", LngLat: east(0), Customer: &tracking.Contact{Name: "Other", Mobile: "+1 " + herMobile},
	}}))(t)
	link, file := must(w.TaskLink(w.ctx, id))(t), w.task(id).Proofs[0].ID
	before := w.said(store)
	for _, canary := range []string{herName, hisNote, herMobile, herStreet} {
		if !strings.Contains(before, canary) {
			t.Fatalf("%q is nowhere, so that nothing is shown", canary)
		}
	}

	// While something is open, nothing is erased.
	_, err := w.EraseContact(w.ctx, "+49 170 5550142")
	if code(err) != tracking.ErrConflict || !strings.Contains(err.Error(), string(open)) ||
		strings.Contains(err.Error(), string(id)) {
		t.Errorf("with an open task: %v", err)
	}
	if d := cmp.Diff(before, w.said(store)); d != "" {
		t.Errorf("that has changed something: %s", d)
	}
	must(w.CancelTask(w.ctx, open, tracking.Reason{Text: hisNote}))(t)
	w.advance(time.Minute)

	// By its digits, in whichever script and whatever is between them.
	n, err := w.EraseContact(w.ctx, "49 ١٧٠-555 ०१４２")
	if n != 2 || err != nil {
		t.Fatalf("erased from %d tasks, error %v", n, err)
	}
	after := w.said(store)
	for _, canary := range []string{herName, hisNote, herStreet, "photo 1"} {
		if i := strings.Index(after, canary); i >= 0 {
			t.Errorf("%q is there still: %s", canary, after[max(0, i-200):i+20])
		}
	}
	if got := strings.Count(after, herMobile); got != 1 { // of another, whose number is longer
		t.Errorf("the number is there %d times", got)
	}
	task := w.task(id)
	if !task.ErasedAt.Equal(w.now()) || task.Drop == nil || task.Drop.Customer != nil || task.Pickup.Address != "Market 1" ||
		task.Pickup.Customer.Name != "Shop" || task.Outcome != tracking.OutcomeFailed || task.OrderID != "#1" ||
		task.DriverID != "own" || task.Drop.LngLat == nil || task.Version == 0 {
		t.Errorf("what stays is %+v", task)
	}
	if _, err := store.Files().Open(w.ctx, tracking.DefaultApp, file); !errors.Is(err, tracking.ErrNotFound) {
		t.Errorf("the file: %v", err)
	}
	if d := cmp.Diff(longer, w.task(longer.ID)); d != "" {
		t.Error(d)
	}
	found, _, err := w.Tasks(w.ctx, tracking.TaskFilter{Query: "canaryname"})
	if err != nil || len(found) > 0 {
		t.Errorf("found by her name: %v, %v", found, err)
	}
	if told := w.told(tracking.KindTask, string(id), 0); told[len(told)-1] != "task.erased" {
		t.Errorf("told %q", told)
	}

	// It is over, for good.
	if _, err := w.Tracking(w.ctx, link); code(err) != tracking.ErrNotFound {
		t.Errorf("the link: %v", err)
	}
	for name, call := range map[string]func() error{
		"link":   func() error { _, err := w.TaskLink(w.ctx, id); return err },
		"retry":  func() error { _, err := w.RetryTask(w.ctx, id, tracking.Retry{}); return err },
		"reopen": func() error { _, err := w.ReopenTask(w.ctx, id); return err },
		"undo":   func() error { _, _, err := w.UndoTask(w.ctx, "own", id, "", tracking.Step{}); return err },
		"proof":  func() error { _, _, err := w.AddProof(w.ctx, "own", id, photo(2)); return err },
	} {
		if err := call(); code(err) != tracking.ErrConflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	same := w.task(id)
	if n, err := w.EraseContact(w.ctx, herMobile); n != 0 || err != nil {
		t.Errorf("again: %d, %v", n, err)
	}
	if d := cmp.Diff(same, w.task(id)); d != "" {
		t.Error(d)
	}
	if n, err := w.EraseContact(w.ctx, "49891234"); n != 2 || err != nil || w.task(id).Pickup.Customer != nil {
		t.Errorf("the shop: %d, %v, %+v", n, err, w.task(id).Pickup)
	}
	if n, err := w.ForApp("foreign").EraseContact(w.ctx, "+1"+herMobile); n != 0 || err != nil {
		t.Errorf("of another application: %d, %v", n, err)
	}
	for _, mobile := range []string{"", "12", "call me", strings.Repeat("1", 33), "123\x00"} {
		_, err := w.EraseContact(w.ctx, mobile)
		if code(err) != tracking.ErrInvalid {
			t.Errorf("%q: %v", mobile, err)
		}
	}
}

// TestEraseContactGoesOn erases somebody of many tasks, and is broken off in between.
func TestEraseContactGoesOn(t *testing.T) {
	const tasks = 330
	store := &cutOff{Store: memory.New(), after: 3}
	w := newWorldOn(t, store)
	for range tasks {
		task := must(w.CreateTask(w.ctx, tracking.NewTask{Type: tracking.TypeDrop, Drop: &tracking.Place{
			Address: herStreet, LngLat: east(0), Customer: &tracking.Contact{Name: herName, Mobile: herMobile},
		}}))(t)
		must(w.CancelTask(w.ctx, task.ID, tracking.Reason{}))(t)
	}
	store.counts = true
	n, err := w.EraseContact(w.ctx, herMobile)
	if code(err) != tracking.ErrUnavailable || n == 0 || n >= tasks {
		t.Fatalf("broken off after %d tasks, error %v", n, err)
	}
	store.counts = false
	rest, err := w.EraseContact(w.ctx, herMobile)
	if n+rest != tasks || err != nil {
		t.Errorf("%d and then %d of %d tasks, error %v", n, rest, tasks, err)
	}
}

// cutOff is a store that commits nothing any more after some changesets.
type cutOff struct {
	tracking.Store
	counts bool
	after  int
}

func (s *cutOff) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	if s.counts {
		if s.after--; s.after < 0 {
			return tracking.Written{}, &tracking.Error{Code: tracking.ErrUnavailable}
		}
	}
	return s.Store.Commit(ctx, app, cs)
}

// TestEraseFilesElsewhere keeps the files in a place of the embedder's that fails once: the row goes
// only when they have.
func TestEraseFilesElsewhere(t *testing.T) {
	files := &bucket{has: map[string][]byte{}}
	w := newWorld(t, func(o *tracking.Options) { o.Files = files })
	erase := map[string]func(tracking.TaskID) error{
		"erase":  func(tracking.TaskID) error { _, err := w.EraseContact(w.ctx, herMobile); return err },
		"delete": func(id tracking.TaskID) error { return w.DeleteTask(w.ctx, id) },
	}
	for _, name := range []string{"erase", "delete"} {
		id := w.delivery(tracking.OutcomeSucceeded)
		before := w.task(id)
		files.fails = true
		if err := erase[name](id); code(err) != tracking.ErrUnavailable {
			t.Errorf("%s while files fail: %v", name, err)
		}
		if d := cmp.Diff(before, w.task(id)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		files.fails = false
		if err := erase[name](id); err != nil || len(files.has) > 0 {
			t.Errorf("%s: error %v, %d files are left", name, err, len(files.has))
		}
		w.advance(time.Second)
	}
}

// bucket keeps files.
type bucket struct {
	has   map[string][]byte
	fails bool
}

func (b *bucket) Put(_ context.Context, _ tracking.AppID, id string, f tracking.File) error {
	b.has[id] = f.Data
	return nil
}

func (b *bucket) Open(_ context.Context, _ tracking.AppID, id string) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(b.has[id])), nil
}

func (b *bucket) Delete(_ context.Context, _ tracking.AppID, id string) error {
	if b.fails {
		return errors.New("down")
	}
	delete(b.has, id)
	return nil
}

// TestKeepTasks lets a task lose what it says of people, and then go, by the time of its end.
func TestKeepTasks(t *testing.T) {
	const contacts, tasks = 30 * 24 * time.Hour, 90 * 24 * time.Hour
	store := memory.New()
	w := newWorldOn(t, store, func(o *tracking.Options) { o.KeepContacts, o.KeepTasks = contacts, tasks })
	id := w.delivery(tracking.OutcomeSucceeded)
	open := w.create(false)
	if n, err := w.EraseContact(w.ctx, "49891234"); n != 1 || err != nil { // the shop alone
		t.Fatal(n, err)
	}
	purge := func() (p tracking.Purged) {
		t.Helper()
		for {
			some := must(w.Purge(w.ctx))(t)
			if some.Total() == 0 {
				return p
			}
			p.Tasks, p.Contacts = p.Tasks+some.Tasks, p.Contacts+some.Contacts
		}
	}
	w.advance(contacts - time.Millisecond)
	if p := purge(); p.Tasks+p.Contacts > 0 || w.task(id).Drop.Customer == nil {
		t.Errorf("before its time: %+v", p)
	}
	w.advance(time.Millisecond)
	if p := purge(); p.Contacts != 1 || p.Tasks > 0 || w.task(id).Personal() {
		t.Errorf("contacts: %+v, %+v", p, w.task(id))
	}
	if said := w.said(store); strings.Contains(said, herName) || strings.Contains(said, "photo 1") {
		t.Error("she is there still")
	}
	w.advance(tasks - contacts - time.Millisecond)
	if p := purge(); p.Tasks+p.Contacts > 0 {
		t.Errorf("before its end: %+v", p)
	}
	w.advance(time.Millisecond)
	if p := purge(); p.Tasks != 1 {
		t.Errorf("tasks: %+v", p)
	}
	if _, err := w.Task(w.ctx, id); code(err) != tracking.ErrNotFound {
		t.Errorf("the task: %v", err)
	}
	if d := cmp.Diff(open, w.task(open.ID)); d != "" {
		t.Error(d)
	}
}

// TestKeepForEver has options that keep everything.
func TestKeepForEver(t *testing.T) {
	for _, keep := range []time.Duration{0, -1} {
		w := newWorld(t, func(o *tracking.Options) { o.KeepContacts, o.KeepTasks = keep, keep })
		task := must(w.CancelTask(w.ctx, w.create(false).ID, tracking.Reason{}))(t)
		w.advance(100 * 365 * 24 * time.Hour)
		must(w.Purge(w.ctx))(t)
		if d := cmp.Diff(task, w.task(task.ID)); d != "" {
			t.Errorf("KeepTasks %v: %s", keep, d)
		}
	}
}

// closed is a place for files that one application cannot delete from.
type closed struct {
	tracking.Files
	to tracking.AppID
}

func (f closed) Delete(ctx context.Context, app tracking.AppID, id string) error {
	if app == f.to {
		return errors.New("403")
	}
	return f.Files.Delete(ctx, app, id)
}

// What one application cannot delete holds up neither another nor the other kind of purge.
func TestPurgeGoesOnBesideWhatFails(t *testing.T) {
	for name, keep := range map[string]func(*tracking.Options){
		"contacts alone": func(o *tracking.Options) { o.KeepContacts = 24 * time.Hour },
		"tasks, too": func(o *tracking.Options) {
			o.KeepContacts, o.KeepTasks = 24*time.Hour, 100*24*time.Hour
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, keep, func(o *tracking.Options) { o.Files = closed{memory.New().Files(), "a"} })
			all := w.Service
			w.Service = all.ForApp("a")
			w.delivery(tracking.OutcomeSucceeded)
			w.advance(100 * 24 * time.Hour)
			w.Service = all.ForApp("b")
			id := w.delivery(tracking.OutcomeSucceeded)
			w.advance(48 * time.Hour)
			if _, err := all.Purge(w.ctx); err == nil {
				t.Error("no error tells of what could not be deleted")
			}
			if w.task(id).ErasedAt.IsZero() {
				t.Error("the other application's contact is there still")
			}
		})
	}
}

// Files that the store kept before Options.Files was set go with their task.
func TestEraseFilesFromBefore(t *testing.T) {
	store := memory.New()
	w := newWorldOn(t, store)
	id := w.delivery(tracking.OutcomeSucceeded)
	w.advance(2 * time.Hour)
	must(w.Purge(w.ctx))(t)
	if !strings.Contains(w.said(store), `"kind":"file"`) && len(w.task(id).Proofs) == 0 {
		t.Fatal("there is no file to go")
	}
	w.Service = must(tracking.New(store, &tracking.Options{Now: w.now, Files: memory.New().Files()}))(t)
	must(w.EraseContact(w.ctx, herMobile))(t)
	var b bytes.Buffer
	if err := w.Export(w.ctx, &b, tracking.ExportFilter{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), `"kind":"file"`) {
		t.Error("the photo is there still")
	}
}

// A purge whose store answers too late has done something all the same: it does not say that nothing is
// left.
func TestPurgeAnsweredLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := answersLate{memory.New()}
		w := newWorldOn(t, store, func(o *tracking.Options) { o.Now, o.KeepTasks = nil, 24*time.Hour })
		const tasks = 150 // more than one purge takes
		for range tasks {
			w.delivery(tracking.OutcomeSucceeded)
		}
		time.Sleep(48 * time.Hour)
		for must(w.Purge(w.ctx))(t).Total() > 0 {
		}
		list, _, err := w.Tasks(w.ctx, tracking.TaskFilter{})
		if len(list) > 0 || err != nil {
			t.Errorf("a purge found nothing to do, and there are %d tasks left, error %v", len(list), err)
		}
	})
}

// answersLate is a store that deletes several tasks in one step, but answers when nobody waits any more.
type answersLate struct{ tracking.Store }

func (s answersLate) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	w, err := s.Store.Commit(ctx, app, cs)
	if len(cs.DeleteTasks) > 1 {
		<-ctx.Done()
		return tracking.Written{}, ctx.Err()
	}
	return w, err
}

// A task stays for as long as its next try goes on: its link is the one that the customer has.
func TestKeepTasksOfANextTry(t *testing.T) {
	w := newWorld(t, func(o *tracking.Options) { o.KeepTasks = 24 * time.Hour })
	failed := w.delivery(tracking.OutcomeFailed)
	token := must(w.TaskLink(w.ctx, failed))(t)
	from := w.now().Add(48 * time.Hour)
	again := must(w.RetryTask(w.ctx, failed, tracking.Retry{
		Window: tracking.Window{From: from, To: from.Add(time.Hour)},
	}))(t)
	w.advance(25 * time.Hour)
	must(w.Purge(w.ctx))(t)
	if _, err := w.Tracking(w.ctx, token); err != nil {
		t.Errorf("the link, while the next try is open: %v", err)
	}
	must(w.CancelTask(w.ctx, again.ID, tracking.Reason{}))(t)
	w.advance(25 * time.Hour)
	must(w.Purge(w.ctx))(t)
	for _, id := range []tracking.TaskID{failed, again.ID} {
		if _, err := w.Task(w.ctx, id); !errors.Is(err, tracking.ErrNotFound) {
			t.Errorf("%s: %v, want it gone", id, err)
		}
	}
}
