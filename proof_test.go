package tracking_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// photo looks like one to the Service, another one for each n.
func photo(n int) tracking.NewProof {
	return tracking.NewProof{
		Kind: tracking.ProofPhoto, Type: "image/jpeg", Data: fmt.Appendf(nil, "\xff\xd8\xff photo %d", n),
	}
}

func signature() tracking.NewProof {
	return tracking.NewProof{Kind: tracking.ProofSignature, Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n signed")}
}

// started makes a task that own has started.
func (w *world) started(proof ...tracking.ProofKind) tracking.TaskID {
	w.t.Helper()
	w.driver("own", 0)
	id := must(w.CreateTask(w.ctx, tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: east(0), Address: "Here 1"}, Proof: proof,
	}))(w.t).ID
	must(w.AssignTask(w.ctx, id, "own"))(w.t)
	if _, _, err := w.StartTask(w.ctx, "own", id, tracking.Step{}); err != nil {
		w.t.Fatal(err)
	}
	return id
}

func (w *world) prove(id tracking.TaskID, n tracking.NewProof) tracking.Proof {
	w.t.Helper()
	_, p, err := w.AddProof(w.ctx, "own", id, n)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func TestAddProof(t *testing.T) {
	w := newWorld(t)
	id := w.started()
	since := len(w.told(tracking.KindTask, string(id), 0))
	w.advance(time.Minute)
	p := w.prove(id, photo(1))
	want := tracking.Proof{
		ID: p.ID, Kind: tracking.ProofPhoto, At: start.Add(time.Minute), Type: "image/jpeg",
		Size: len(photo(1).Data), Sum: p.Sum,
	}
	if d := cmp.Diff(want, p); d != "" || p.ID == "" {
		t.Error(d)
	}
	w.advance(time.Minute)
	if again := w.prove(id, photo(1)); again != p {
		t.Errorf("the same again is %+v", again)
	}
	s := w.prove(id, signature())
	task := w.task(id)
	if d := cmp.Diff([]tracking.Proof{p, s}, task.Proofs); d != "" || !task.UpdatedAt.Equal(start.Add(2*time.Minute)) {
		t.Errorf("updated at %v %s", task.UpdatedAt, d)
	}
	// The driver, whose word it was, is not told of it.
	told := w.told(tracking.KindTask, string(id), since)
	if !slices.Equal(told, []string{"task.updated", "task.updated"}) {
		t.Errorf("events %q", told)
	}
	subject := tracking.Subject{Kind: tracking.KindTask, ID: string(id)}
	events, _, err := w.Events(w.ctx, tracking.EventFilter{Subject: subject})
	if err != nil {
		t.Fatal(err)
	}
	last := events[len(events)-1]
	if d, ok := last.Details().(tracking.TaskUpdatedData); !ok || !slices.Equal(d.Fields, []string{"proofs"}) ||
		last.Actor != "driver:own" {
		t.Errorf("the event %+v", last)
	}
	if d := must(w.Driver(w.ctx, "own"))(t); !d.Position.SeenAt.Equal(start.Add(2 * time.Minute)) {
		t.Errorf("the driver was heard of at %v", d.Position.SeenAt)
	}

	for what, read := range map[string]func(string) (tracking.Proof, []byte, error){
		"the application": func(p string) (tracking.Proof, []byte, error) { return w.ReadProof(w.ctx, id, p) },
		"the driver":      func(p string) (tracking.Proof, []byte, error) { return w.DriverProof(w.ctx, "own", id, p) },
	} {
		got, data, err := read(s.ID)
		if err != nil || got != s || !bytes.Equal(data, signature().Data) {
			t.Errorf("%s reads %+v, %q, error %v", what, got, data, err)
		}
		for _, other := range []string{"", "nothing", strings.ToUpper(p.ID)} {
			if _, _, err := read(other); code(err) != tracking.ErrNotFound {
				t.Errorf("%s reads %q: %v", what, other, err)
			}
		}
	}
	if _, _, err := w.DriverProof(w.ctx, "other", id, p.ID); code(err) != tracking.ErrNotFound {
		t.Errorf("another driver: %v", err)
	}
	other := w.started()
	if _, _, err := w.ReadProof(w.ctx, other, p.ID); code(err) != tracking.ErrNotFound {
		t.Errorf("as another task's: %v", err)
	}
	foreign := w.ForApp("foreign")
	if _, _, err := foreign.ReadProof(w.ctx, id, p.ID); code(err) != tracking.ErrNotFound {
		t.Errorf("another application: %v", err)
	}
	if _, _, err := foreign.AddProof(w.ctx, "own", id, photo(2)); code(err) != tracking.ErrNotFound {
		t.Errorf("given for another application's task: %v", err)
	}
	if mine := w.prove(other, photo(1)); mine.ID == p.ID {
		t.Error("one file is two tasks'")
	}
}

// A photo that was taken in time and comes late, from a phone that was offline, arrives: also where
// the task's end has come late with it. How long it may, counts from when that has come, whatever
// else came afterwards.
func TestProofAfterTheEnd(t *testing.T) {
	w := newWorld(t)
	id := w.started()
	w.advance(30 * time.Hour)
	must(w.FinishTask(w.ctx, "own", id, tracking.Completion{}, tracking.Step{At: start.Add(time.Hour)}))(t)
	w.prove(id, photo(1))
	w.advance(23 * time.Hour)
	w.prove(id, photo(2))
	must(w.ReportStuck(w.ctx, "own", id, tracking.StuckStep{Step: "proof"}))(t)
	w.advance(time.Hour - time.Millisecond)
	w.prove(id, photo(4))
	w.advance(time.Millisecond)
	if _, _, err := w.AddProof(w.ctx, "own", id, photo(3)); code(err) != tracking.ErrConflict {
		t.Errorf("a day later: %v", err)
	}
	if _, p, err := w.AddProof(w.ctx, "own", id, photo(2)); err != nil || p.ID != w.task(id).Proofs[1].ID {
		t.Errorf("what is there already: %v", err)
	}
	// Who is given the driver's id afterwards is somebody else.
	if err := w.DeleteDriver(w.ctx, "own"); err != nil {
		t.Fatal(err)
	}
	w.driver("own", 0)
	if _, _, err := w.AddProof(w.ctx, "own", id, photo(2)); code(err) != tracking.ErrNotFound {
		t.Errorf("a successor: %v", err)
	}
	if _, _, err := w.DriverProof(w.ctx, "own", id, w.task(id).Proofs[0].ID); code(err) != tracking.ErrNotFound {
		t.Errorf("a successor reads: %v", err)
	}
}

// The time for late files counts from the end that the dispatcher has given it, too.
func TestProofAfterTheDispatchersEnd(t *testing.T) {
	w := newWorld(t)
	id := w.started()
	w.advance(30 * time.Hour)
	must(w.CompleteTask(w.ctx, id, tracking.Completion{}))(t)
	w.advance(23 * time.Hour)
	w.prove(id, photo(1))
	w.advance(time.Hour)
	if _, _, err := w.AddProof(w.ctx, "own", id, photo(2)); code(err) != tracking.ErrConflict {
		t.Errorf("a day later: %v", err)
	}
}

func TestFinishWithProof(t *testing.T) {
	w := newWorld(t, func(o *tracking.Options) { o.Rand = rand.NewChaCha8([32]byte{1}) })
	id := w.started(tracking.ProofPhoto, tracking.ProofName, tracking.ProofPIN)
	pin := w.task(id).PIN
	if len(pin) != 4 || strings.Trim(string(pin), "0123456789") != "" {
		t.Fatalf("the PIN is %q", string(pin))
	}
	finish := func(c tracking.Completion) (string, error) {
		_, err := w.FinishTask(w.ctx, "own", id, c, tracking.Step{})
		var e *tracking.Error
		if errors.As(err, &e); e == nil {
			return "", err
		}
		return e.Field, err
	}
	wrong := tracking.Secret("0000")
	if pin == wrong {
		wrong = "0001"
	}
	for _, c := range []struct {
		how   tracking.Completion
		field string
		wrong int
	}{
		{tracking.Completion{}, "proof", 0},
		{tracking.Completion{ReceivedBy: "Priya", PIN: wrong}, "proof", 0},
		{tracking.Completion{PIN: "12"}, "pin", 0},
	} {
		if field, err := finish(c.how); field != c.field || w.task(id).WrongPINs != c.wrong {
			t.Errorf("%+v: %v of %q, %d wrong PINs", c.how, err, field, w.task(id).WrongPINs)
		}
	}
	w.prove(id, photo(1))
	before := w.task(id)
	for _, c := range []struct {
		how   tracking.Completion
		field string
		wrong int
	}{
		{tracking.Completion{PIN: pin}, "received_by", 0},
		{tracking.Completion{ReceivedBy: "Priya"}, "pin", 0},
		{tracking.Completion{ReceivedBy: "Priya", PIN: wrong}, "pin", 1},
		{tracking.Completion{ReceivedBy: "Priya", PIN: wrong}, "pin", 2},
	} {
		if field, err := finish(c.how); field != c.field || code(err) != tracking.ErrConflict ||
			w.task(id).WrongPINs != c.wrong {
			t.Errorf("%+v: %v of %q, %d wrong PINs", c.how, err, field, w.task(id).WrongPINs)
		}
	}
	if after := w.task(id); !after.UpdatedAt.Equal(before.UpdatedAt) || after.ReceivedBy != "" ||
		after.Status != before.Status {
		t.Errorf("after what was refused: %+v", after)
	}
	if field, err := finish(tracking.Completion{ReceivedBy: "Priya", Note: "blue door", PIN: pin}); err != nil {
		t.Fatal(field, err)
	}
	if got := w.task(id); got.ReceivedBy != "Priya" || got.DriverNote != "blue door" ||
		got.Outcome != tracking.OutcomeSucceeded {
		t.Errorf("%+v", got)
	}
	if _, err := finish(tracking.Completion{PIN: wrong}); err != nil {
		t.Errorf("repeated: %v", err)
	}
}

// Where a PIN comes from, and where it does not go.
func TestPIN(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	pins := map[tracking.Secret]bool{}
	for i := range 50 {
		n := tracking.NewTask{
			Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "x"}, Key: fmt.Sprint("k", i),
			Proof: []tracking.ProofKind{tracking.ProofPIN},
		}
		task := must(w.CreateTask(w.ctx, n))(t)
		pins[task.PIN] = true
		if again := must(w.CreateTask(w.ctx, n))(t); again.ID != task.ID || again.PIN != task.PIN {
			t.Errorf("created again by its key: %+v", again)
		}
	}
	if len(pins) < 45 {
		t.Errorf("50 tasks have %d PINs", len(pins))
	}
	id := w.create(false).ID
	if w.task(id).PIN != "" {
		t.Error("a PIN that nobody has asked for")
	}
	update := func(kinds ...tracking.ProofKind) tracking.Task {
		return must(w.UpdateTask(w.ctx, id, tracking.TaskUpdate{Proof: append([]tracking.ProofKind{}, kinds...)}))(t)
	}
	first := update(tracking.ProofPIN)
	if len(first.PIN) != 4 || w.task(id).PIN != first.PIN {
		t.Errorf("asked for later, it is %q", string(first.PIN))
	}
	if kept := update(tracking.ProofPIN, tracking.ProofName); kept.PIN != first.PIN {
		t.Errorf("it was %q and is %q", string(first.PIN), string(kept.PIN))
	}
	if none := update(); none.PIN != "" || none.Proof != nil {
		t.Errorf("not asked for any more: %+v", none)
	}
	pin := update(tracking.ProofPIN).PIN
	must(w.AssignTask(w.ctx, id, "own"))(t)
	link := must(w.TaskLink(w.ctx, id))(t)
	shown := func() string { return must(w.Tracking(w.ctx, link))(t).PIN }
	if shown() != "" {
		t.Error("the link shows it before the start")
	}
	if _, _, err := w.StartTask(w.ctx, "own", id, tracking.Step{}); err != nil {
		t.Fatal(err)
	}
	if shown() != "" {
		t.Error("the link shows it before the driver is near")
	}
	must(w.PickUpTask(w.ctx, "own", id, tracking.Step{}))(t)
	must(w.ArriveTask(w.ctx, "own", id, tracking.Step{}))(t)
	if shown() != string(pin) {
		t.Errorf("at the door the link shows %q", shown())
	}
	must(w.FinishTask(w.ctx, "own", id, tracking.Completion{PIN: pin}, tracking.Step{}))(t)
	if shown() != "" {
		t.Error("the link shows it after the end")
	}
	subject := tracking.Subject{Kind: tracking.KindTask, ID: string(id)}
	events, _, err := w.Events(w.ctx, tracking.EventFilter{Subject: subject})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		for key, word := range e.Data {
			if word == string(pin) {
				t.Errorf("%s has the PIN in its data: %s", e.Type, key)
			}
		}
	}
}

// Where a task was completed.
func TestCompletedFrom(t *testing.T) {
	end := tracking.Completion{}
	for _, c := range []struct {
		name string
		do   func(w *world, id tracking.TaskID) (tracking.Task, error)
		want *tracking.Whereabouts
	}{
		{"the step says it", func(w *world, id tracking.TaskID) (tracking.Task, error) {
			return w.FinishTask(w.ctx, "own", id, end, tracking.Step{LngLat: east(30)})
		}, &tracking.Whereabouts{LngLat: *east(30), Source: "driver", OffBy: 30}},
		{"the last fix", func(w *world, id tracking.TaskID) (tracking.Task, error) {
			w.advance(10 * time.Minute)
			return w.FinishTask(w.ctx, "own", id, end, tracking.Step{})
		}, &tracking.Whereabouts{LngLat: *east(0), Source: "last_fix"}},
		{"failed too", func(w *world, id tracking.TaskID) (tracking.Task, error) {
			return w.FinishTask(w.ctx, "own", id, tracking.Completion{Outcome: tracking.OutcomeFailed}, tracking.Step{})
		}, &tracking.Whereabouts{LngLat: *east(0), Source: "last_fix"}},
		{"the last fix is too old", func(w *world, id tracking.TaskID) (tracking.Task, error) {
			w.advance(10*time.Minute + time.Millisecond)
			return w.FinishTask(w.ctx, "own", id, end, tracking.Step{})
		}, nil},
		{"done offline, where the driver was then", func(w *world, id tracking.TaskID) (tracking.Task, error) {
			w.advance(time.Hour)
			must(w.RecordFixes(w.ctx, "own", []tracking.Fix{
				{LngLat: *east(700), Time: start.Add(20 * time.Minute)},
				{LngLat: *east(710), Time: start.Add(21 * time.Minute)},
				{LngLat: *east(9000), Time: start.Add(50 * time.Minute)},
			}))(w.t)
			return w.FinishTask(w.ctx, "own", id, end, tracking.Step{At: start.Add(22 * time.Minute)})
		}, &tracking.Whereabouts{LngLat: *east(710), Source: "last_fix", OffBy: 710}},
		{"a phone's clock that is ahead", func(w *world, id tracking.TaskID) (tracking.Task, error) {
			must(w.RecordFixes(w.ctx, "own", []tracking.Fix{{LngLat: *east(40), Time: start.Add(time.Minute)}}))(w.t)
			return w.FinishTask(w.ctx, "own", id, end, tracking.Step{})
		}, &tracking.Whereabouts{LngLat: *east(40), Source: "last_fix", OffBy: 40}},
		{"by the application", func(w *world, id tracking.TaskID) (tracking.Task, error) {
			return w.CompleteTask(w.ctx, id, end)
		}, &tracking.Whereabouts{LngLat: *east(0), Source: "last_fix"}},
		{"cancelled", func(w *world, id tracking.TaskID) (tracking.Task, error) {
			return w.CancelTask(w.ctx, id, tracking.Reason{})
		}, nil},
		{"not under way", func(w *world, id tracking.TaskID) (tracking.Task, error) {
			must(w.UnassignTask(w.ctx, id))(w.t)
			must(w.AssignTask(w.ctx, id, "own"))(w.t)
			return w.CompleteTask(w.ctx, id, end)
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			id := w.started()
			got := must(c.do(w, id))(t).CompletedFrom
			near := cmp.Comparer(func(a, b float64) bool { return a-b < 0.01 && b-a < 0.01 })
			if d := cmp.Diff(c.want, got, near); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(got, w.task(id).CompletedFrom); d != "" {
				t.Error("as kept:", d)
			}
		})
	}
}

// What the holder of a link may see of the evidence.
func TestTrackingProof(t *testing.T) {
	w := newWorld(t)
	id := w.started()
	link := must(w.TaskLink(w.ctx, id))(t)
	p, s := w.prove(id, photo(1)), w.prove(id, signature())
	nothing := func(when string) {
		t.Helper()
		v := must(w.Tracking(w.ctx, link))(t)
		_, _, err := w.TrackingPhoto(w.ctx, link, p.ID)
		if v.ReceivedBy != "" || v.Photos != nil || code(err) != tracking.ErrNotFound {
			t.Errorf("%s: by %q, photos %q, read: %v", when, v.ReceivedBy, v.Photos, err)
		}
	}
	nothing("under way")
	must(w.FinishTask(w.ctx, "own", id, tracking.Completion{ReceivedBy: "Priya", Note: "secret"}, tracking.Step{}))(t)
	v := must(w.Tracking(w.ctx, link))(t)
	if v.ReceivedBy != "Priya" || !slices.Equal(v.Photos, []string{p.ID}) {
		t.Errorf("at the end: by %q, photos %q", v.ReceivedBy, v.Photos)
	}
	got, data, err := w.TrackingPhoto(w.ctx, link, p.ID)
	if err != nil || got != p || !bytes.Equal(data, photo(1).Data) {
		t.Errorf("%+v %q, error %v", got, data, err)
	}
	other := w.started()
	foreign := w.prove(other, photo(2))
	trip, _, err := w.Trips(w.ctx, tracking.TripFilter{TrackingID: tracking.TrackingID(id)})
	if err != nil || len(trip) == 0 {
		t.Fatal(err)
	}
	ofTrip := must(w.TripLink(w.ctx, trip[0].ID))(t)
	for what, c := range map[string][2]string{
		"a signature": {link, s.ID}, "another task's photo": {link, foreign.ID}, "nothing": {link, ""},
		"no link": {"nobody", p.ID}, "the trip's link": {ofTrip, p.ID},
	} {
		if _, _, err := w.TrackingPhoto(w.ctx, c[0], c[1]); code(err) != tracking.ErrNotFound {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := w.RevokeTaskLink(w.ctx, id); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.TrackingPhoto(w.ctx, link, p.ID); code(err) != tracking.ErrNotFound {
		t.Errorf("a revoked link: %v", err)
	}

	id = w.started()
	link, p = must(w.TaskLink(w.ctx, id))(t), w.prove(id, photo(1))
	must(w.CancelTask(w.ctx, id, tracking.Reason{}))(t)
	nothing("cancelled")
}

// files are the embedder's, with faults.
type files struct {
	tracking.Files
	put, open func() error
	spoil     func([]byte) []byte
	deleted   []string
}

func (f *files) Put(ctx context.Context, app tracking.AppID, id string, file tracking.File) error {
	if f.put != nil {
		if err := f.put(); err != nil {
			return err
		}
	}
	return f.Files.Put(ctx, app, id, file)
}

func (f *files) Open(ctx context.Context, app tracking.AppID, id string) (io.ReadCloser, error) {
	if f.open != nil {
		if err := f.open(); err != nil {
			return nil, err
		}
	}
	r, err := f.Files.Open(ctx, app, id)
	if err != nil || f.spoil == nil {
		return r, err
	}
	b, err := io.ReadAll(r)
	return io.NopCloser(bytes.NewReader(f.spoil(b))), err
}

func (f *files) Delete(ctx context.Context, app tracking.AppID, id string) error {
	f.deleted = append(f.deleted, id)
	return f.Files.Delete(ctx, app, id)
}

func TestFilesFail(t *testing.T) {
	f := &files{Files: memory.New().Files()}
	w := newWorld(t, func(o *tracking.Options) { o.Files = f })
	id := w.started()
	failure := errors.New("no room")
	for what, put := range map[string]func() error{
		"fails": func() error { return failure }, "panics": func() error { panic("no room") },
		"says so with a code": func() error { return tracking.ErrUnavailable },
	} {
		f.put, f.deleted = put, nil
		_, _, err := w.AddProof(w.ctx, "own", id, photo(1))
		if code(err) != tracking.ErrUnavailable || strings.Contains(err.(*tracking.Error).Message, "room") ||
			w.task(id).Proofs != nil || len(f.deleted) != 1 {
			t.Errorf("Put %s: %v, proofs %v, deleted %q", what, err, w.task(id).Proofs, f.deleted)
		}
	}
	f.put = nil

	// While the bytes are on their way the task is taken from the driver.
	f.deleted = nil
	f.put = func() error { _, err := w.UnassignTask(w.ctx, id); return err }
	if _, _, err := w.AddProof(w.ctx, "own", id, photo(1)); code(err) != tracking.ErrNotFound || len(f.deleted) != 1 {
		t.Errorf("unassigned meanwhile: %v, deleted %q", err, f.deleted)
	}
	if _, err := f.Files.Open(w.ctx, w.App(), f.deleted[0]); !errors.Is(err, tracking.ErrNotFound) {
		t.Errorf("the file is there: %v", err)
	}
	f.put = nil

	// While they are on their way the phone sends the same again, and that is faster.
	id = w.started()
	f.deleted = nil
	f.put = func() error {
		f.put = nil
		w.prove(id, photo(1))
		return nil
	}
	twice := w.prove(id, photo(1))
	if kept := w.task(id).Proofs; len(kept) != 1 || kept[0] != twice || len(f.deleted) != 1 ||
		f.deleted[0] == twice.ID {
		t.Errorf("sent twice: %+v, kept %+v, deleted %q", twice, kept, f.deleted)
	}

	id = w.started()
	p := w.prove(id, photo(1))
	for what, c := range map[string]struct {
		open  func() error
		spoil func([]byte) []byte
		want  tracking.ErrorCode
	}{
		"fails":         {func() error { return failure }, nil, tracking.ErrUnavailable},
		"panics":        {func() error { panic("no room") }, nil, tracking.ErrUnavailable},
		"has it not":    {func() error { return tracking.ErrNotFound }, nil, tracking.ErrNotFound},
		"has a part":    {nil, func(b []byte) []byte { return b[:3] }, tracking.ErrNotFound},
		"has others":    {nil, func(b []byte) []byte { b[5] ^= 1; return b }, tracking.ErrNotFound},
		"has no end":    {nil, func([]byte) []byte { return make([]byte, 3<<20) }, tracking.ErrNotFound},
		"has them":      {nil, nil, ""},
		"has them anew": {nil, bytes.Clone, ""},
	} {
		f.open, f.spoil = c.open, c.spoil
		if _, data, err := w.ReadProof(w.ctx, id, p.ID); code(err) != c.want || (err == nil) != (data != nil) {
			t.Errorf("Open %s: %v, %d bytes", what, err, len(data))
		}
	}
}

// without is a store that keeps no files.
type without struct{ tracking.Store }

func (without) Files() tracking.Files { return nil }

func TestNoFiles(t *testing.T) {
	w := newWorldOn(t, without{memory.New()})
	id := w.started()
	if _, _, err := w.AddProof(w.ctx, "own", id, photo(1)); code(err) != tracking.ErrConflict {
		t.Errorf("AddProof: %v", err)
	}
	if _, _, err := w.ReadProof(w.ctx, id, "x"); code(err) != tracking.ErrNotFound {
		t.Errorf("ReadProof: %v", err)
	}
}

// A task that is tried again asks for the same, has a PIN of its own, and nothing was given for it.
func TestRetryAsksForProof(t *testing.T) {
	w := newWorld(t)
	id := w.started(tracking.ProofPhoto, tracking.ProofPIN)
	w.prove(id, photo(1))
	must(w.UnassignTask(w.ctx, id))(t)
	must(w.CompleteTask(w.ctx, id, tracking.Completion{Outcome: tracking.OutcomeFailed, ReceivedBy: "Noor"}))(t)
	again := must(w.RetryTask(w.ctx, id, tracking.Retry{}))(t)
	if first := w.task(id); !slices.Equal(again.Proof, first.Proof) || len(again.PIN) != 4 || again.Proofs != nil ||
		again.ReceivedBy != "" || len(first.Proofs) != 1 {
		t.Errorf("%+v", again)
	}
	if kept := w.task(again.ID); kept.PIN != again.PIN {
		t.Errorf("the PIN is %q, answered %q", string(kept.PIN), string(again.PIN))
	}
}
