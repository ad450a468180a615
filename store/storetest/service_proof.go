package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// proofChecks are about evidence of many at once, and of what fails in the middle.
func proofChecks() []check {
	return []check{
		{"wrong PINs at once are counted, each once, and then none is taken", wrongPINsAreCounted},
		{"a file sent many times at once is kept once", filesSentAtOnce},
		{"of more files at once than a task may have the rest leave nothing", tooManyFilesAtOnce},
		{"a file whose task could not be told of it is purged", orphansArePurged},
		{"storage that fails keeps nothing", failingStorageKeepsNothing},
	}
}

// picture is a file that looks like an image to the Service, another one for each n.
func picture(kind tracking.ProofKind, n int) tracking.NewProof {
	return tracking.NewProof{Kind: kind, Type: "image/jpeg", Data: fmt.Appendf(nil, "\xff\xd8\xff picture %d", n)}
}

// underWay makes a task that its driver has started, by the first of the Services.
func underWay(t testing.TB, svc *tracking.Service, proof ...tracking.ProofKind) (tracking.Task, tracking.DriverID) {
	t.Helper()
	d := standBy(t, svc, 1)[0]
	n := dropHere(false)
	n.Proof = proof
	task, err := svc.CreateTask(t.Context(), n)
	if err == nil {
		_, err = svc.AssignTask(t.Context(), task.ID, d)
	}
	if err == nil {
		_, _, err = svc.StartTask(t.Context(), d, task.ID, tracking.Step{})
	}
	if err == nil {
		task, err = svc.Task(t.Context(), task.ID)
	}
	if err != nil {
		t.Fatal(err)
	}
	return task, d
}

func wrongPINsAreCounted(t testing.TB, s tracking.Store) {
	svcs := several(t, s, 4, tracking.Options{})
	task, d := underWay(t, svcs[0], tracking.ProofPIN)
	pin, err := strconv.Atoi(string(task.PIN))
	if err != nil {
		t.Fatal(err)
	}
	wrong := func(n int) tracking.Secret { return tracking.Secret(fmt.Sprintf("%04d", (pin+1+n)%10_000)) }
	try := func(i int, pin tracking.Secret) error {
		_, err := svcs[i%len(svcs)].FinishTask(t.Context(), d, task.ID, tracking.Completion{PIN: pin}, tracking.Step{})
		if errors.Is(err, tracking.ErrConflict) {
			return nil
		}
		return fmt.Errorf("a wrong PIN: got error %w, want a conflict", err)
	}
	count := func(want int) {
		t.Helper()
		now, err := svcs[0].Task(t.Context(), task.ID)
		if err != nil || now.WrongPINs != want || now.Status != tracking.StatusInProgress ||
			!now.UpdatedAt.Equal(task.UpdatedAt) {
			t.Fatalf("after so many wrong PINs: %+v, error %v; want %d counted, and nothing else changed", now, err, want)
		}
	}
	if err := together(t, 7, func(_ context.Context, i int) error { return try(i, wrong(i)) }); err != nil {
		t.Fatal(err)
	}
	count(7)
	if err := together(t, 20, func(_ context.Context, i int) error { return try(i, wrong(7+i)) }); err != nil {
		t.Fatal(err)
	}
	count(10)
	if err := try(0, task.PIN); err != nil {
		t.Fatalf("the right PIN, after too many wrong ones: %v", err)
	}
	done, err := svcs[1].CompleteTask(t.Context(), task.ID, tracking.Completion{})
	if err != nil || done.Outcome != tracking.OutcomeSucceeded || done.WrongPINs != 0 {
		t.Fatalf("completed by the application: %+v, error %v", done, err)
	}
	if err := Invariants(t.Context(), s, -1, here); err != nil {
		t.Error(err)
	}
}

// countedFiles counts what is kept, and lets calls fail.
type countedFiles struct {
	tracking.Files
	mu   sync.Mutex
	kept map[string]bool
	puts atomic.Int32
	fail atomic.Bool // puts keep the file, and then say that they could not
}

var errStorage = errors.New("no room")

func countFiles(s tracking.Store) *countedFiles {
	return &countedFiles{Files: s.Files(), kept: map[string]bool{}}
}

func (f *countedFiles) Put(ctx context.Context, app tracking.AppID, id string, file tracking.File) error {
	f.puts.Add(1)
	f.mu.Lock()
	f.kept[id] = true
	f.mu.Unlock()
	if err := f.Files.Put(ctx, app, id, file); err != nil || !f.fail.Load() {
		return err
	}
	return errStorage
}

func (f *countedFiles) Delete(ctx context.Context, app tracking.AppID, id string) error {
	f.mu.Lock()
	delete(f.kept, id)
	f.mu.Unlock()
	return f.Files.Delete(ctx, app, id)
}

func (f *countedFiles) number() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.kept)
}

func filesSentAtOnce(t testing.TB, s tracking.Store) {
	files := countFiles(s)
	svcs := several(t, s, 4, tracking.Options{Files: files})
	task, d := underWay(t, svcs[0], tracking.ProofPhoto)
	ids := make([]string, 12)
	err := together(t, len(ids), func(ctx context.Context, i int) error {
		_, p, err := svcs[i%4].AddProof(ctx, d, task.ID, picture(tracking.ProofPhoto, 1))
		ids[i] = p.ID
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, id := range ids {
		if id == "" || id != ids[0] {
			t.Errorf("call %d was told of the proof %q, another one of %q", i, id, ids[0])
		}
	}
	same(t, "files that are kept", files.number(), 1)
	if err := Invariants(t.Context(), s, -1, here); err != nil { // one event, and all bytes
		t.Error(err)
	}
	puts := files.puts.Load()
	if _, p, err := svcs[1].AddProof(t.Context(), d, task.ID, picture(tracking.ProofPhoto, 1)); err != nil ||
		p.ID != ids[0] || files.puts.Load() != puts {
		t.Errorf("once more: the proof %q, error %v, put %d times", p.ID, err, files.puts.Load()-puts)
	}
	_, p, err := svcs[1].AddProof(t.Context(), d, task.ID, picture(tracking.ProofSignature, 1))
	if err != nil || p.ID == ids[0] {
		t.Errorf("the same as a signature: the proof %q, error %v", p.ID, err)
	}
}

func tooManyFilesAtOnce(t testing.TB, s tracking.Store) {
	files := countFiles(s)
	svcs := several(t, s, 4, tracking.Options{Files: files})
	task, d := underWay(t, svcs[0])
	var kept, refused atomic.Int32
	err := together(t, 20, func(ctx context.Context, i int) error {
		_, _, err := svcs[i%4].AddProof(ctx, d, task.ID, picture(tracking.ProofPhoto, i))
		switch {
		case err == nil:
			kept.Add(1)
		case errors.Is(err, tracking.ErrConflict):
			refused.Add(1)
		default:
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "kept, refused, files", []int{int(kept.Load()), int(refused.Load()), files.number()}, []int{10, 10, 10})
	if err := Invariants(t.Context(), s, -1, here); err != nil {
		t.Error(err)
	}
}

// deafStore is a store whose commits do not come about, or are said not to have.
type deafStore struct {
	tracking.Store
	lose, hide atomic.Bool
}

func (s *deafStore) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	if s.lose.Load() {
		return tracking.Written{}, tracking.ErrUnavailable
	}
	_, err := s.Store.Commit(ctx, app, cs)
	if s.hide.Load() {
		return tracking.Written{}, tracking.ErrUnavailable
	}
	return tracking.Written{}, err
}

// orphansArePurged has a commit fail after the bytes were put, once without and once with its
// effect: the file of the first is removed in the end, that of the second is not.
func orphansArePurged(t testing.TB, s tracking.Store) {
	deaf := &deafStore{Store: s}
	files := countFiles(s)
	c := &clock{at: t0}
	svc := service(t, deaf, tracking.Options{Files: files, Now: c.now}).ForApp(here)
	task, d := underWay(t, svc)
	send := func(n int, want error) {
		t.Helper()
		if _, _, err := svc.AddProof(t.Context(), d, task.ID, picture(tracking.ProofPhoto, n)); !errors.Is(err, want) {
			t.Fatalf("AddProof: got error %v, want %v", err, want)
		}
	}
	purge := func(want int) {
		t.Helper()
		p, err := svc.Purge(t.Context())
		if err != nil || p.Files != want {
			t.Errorf("Purge: %+v, error %v; want %d files", p, err, want)
		}
	}
	deaf.lose.Store(true)
	send(1, tracking.ErrUnavailable)
	deaf.lose.Store(false)
	deaf.hide.Store(true)
	send(2, tracking.ErrUnavailable)
	deaf.hide.Store(false)
	same(t, "files while the outcome is not known", files.number(), 2)
	send(2, nil) // the phone asks again
	same(t, "files after the same was sent again", files.number(), 2)
	purge(0)
	c.forward(time.Hour)
	purge(0)
	c.forward(time.Millisecond)
	purge(1)
	c.forward(20 * 24 * time.Hour)
	purge(0)
	if err := Invariants(t.Context(), s, -1, here); err != nil {
		t.Error(err)
	}
}

// brokenFiles is storage that cannot be read.
type brokenFiles struct{ tracking.Files }

func (brokenFiles) Open(context.Context, tracking.AppID, string) (io.ReadCloser, error) {
	return nil, errStorage
}

func failingStorageKeepsNothing(t testing.TB, s tracking.Store) {
	files := countFiles(s)
	svc := several(t, s, 1, tracking.Options{Files: files})[0]
	task, d := underWay(t, svc, tracking.ProofPhoto)
	files.fail.Store(true)
	for range 2 {
		_, _, err := svc.AddProof(t.Context(), d, task.ID, picture(tracking.ProofPhoto, 1))
		if !errors.Is(err, tracking.ErrUnavailable) {
			t.Fatalf("AddProof: got error %v, want ErrUnavailable", err)
		}
	}
	now, err := svc.Task(t.Context(), task.ID)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the task", now, task)
	same(t, "files", files.number(), 0)
	files.fail.Store(false)
	_, p, err := svc.AddProof(t.Context(), d, task.ID, picture(tracking.ProofPhoto, 1))
	if err != nil {
		t.Fatal(err)
	}
	_, data, err := svc.ReadProof(t.Context(), task.ID, p.ID)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the bytes", data, picture(tracking.ProofPhoto, 1).Data)

	broken := several(t, s, 1, tracking.Options{Files: brokenFiles{s.Files()}})[0]
	if _, _, err = broken.ReadProof(t.Context(), task.ID, p.ID); !errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("ReadProof: got error %v, want ErrUnavailable", err)
	}
}
