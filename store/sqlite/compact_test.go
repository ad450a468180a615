package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	codes "modernc.org/sqlite/lib"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
	"github.com/seed-8aba7b13/tracking/store/sqlite/internal/powervfs"
)

// canaries are what is said of those who are to be erased, also as a search keeps it.
var canaries = []string{
	"Canaryname", "canaryname", hers, "491705550142", "49170555", "5550142", "2410555", "Canary Street",
	"canary street", "canary note", "canary of a driver", "canary@example.com", "+49 171 5550143", "491715550143",
}

// canariesIn are those found in any file of a directory, with its log and all that lies beside it.
func canariesIn(t testing.TB, dir string) (list []string) {
	t.Helper()
	all := files(t, dir)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		for _, canary := range canaries {
			if n := bytes.Count(all[name], []byte(canary)); n > 0 {
				list = append(list, fmt.Sprintf("%q %d times in %s", canary, n, name))
			}
		}
	}
	return list
}

// noted is a service on a store, with what its tests do.
type noted struct {
	testing.TB
	*tracking.Service
	s     *sqlite.Store
	tasks []notedTask
}

// notedTask is a task and the number of whom it is for.
type notedTask struct {
	id tracking.TaskID
	of string
}

const hers = "+49 170 5550142"

// note is what the notes of a task are made of.
func (t notedTask) note() string {
	if t.of == hers {
		return "canary note"
	}
	return "other note"
}

func (n noted) ok(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// withCanaries has some tasks among others name a person, at random, with notes that are changed now
// and then, and drivers who are said something of. In the end nothing is left to do.
func withCanaries(t testing.TB, s *sqlite.Store, r *rand.Rand, opts tracking.Options) *noted {
	t.Helper()
	opts.Logger = slog.New(slog.DiscardHandler)
	svc, err := tracking.New(s, &opts)
	if err != nil {
		t.Fatal(err)
	}
	n := &noted{TB: t, Service: svc, s: s}
	ctx, here := t.Context(), &tracking.LngLat{Lng: 11, Lat: 48}
	most := 300
	if raceDetector {
		most = 30
	}
	for i := range 50 + r.IntN(most) {
		who, number, where := fmt.Sprint("Other", i), fmt.Sprint("+49 89 ", 1000+i), fmt.Sprint("Other Street ", i)
		said := strings.Repeat("other note ", r.IntN(40))
		if i%3 == 0 {
			who, number, where = "Canaryname", hers, fmt.Sprint("Canary Street ", i)
			said = strings.Repeat("canary note ", 1+r.IntN(300))
		}
		task, err := svc.CreateTask(ctx, tracking.NewTask{
			Type: tracking.TypeDrop, Notes: said, OrderID: fmt.Sprint("#", i),
			Drop: &tracking.Place{LngLat: here, Address: where, Customer: &tracking.Contact{Name: who, Mobile: number}},
		})
		n.ok(err)
		n.tasks = append(n.tasks, notedTask{task.ID, number})
		for range r.IntN(4) {
			task := n.tasks[r.IntN(len(n.tasks))]
			said := strings.Repeat(task.note()+" ", r.IntN(r.IntN(300)+1))
			_, err := svc.UpdateTask(ctx, task.id, tracking.TaskUpdate{Notes: &said})
			n.ok(err)
		}
		if r.IntN(8) == 0 {
			said := strings.Repeat("canary of a driver ", 1+r.IntN(13))
			name, mobile, mail := "Canaryname", "+49 171 5550143", "canary@example.com"
			_, err := svc.SaveDriver(ctx, tracking.DriverUpdate{
				ID: tracking.DriverID(fmt.Sprint("d", r.IntN(20))), Name: &name, Mobile: &mobile, Email: &mail,
				Properties: map[string]string{"said": said}, LngLat: here,
			})
			n.ok(err)
		}
	}
	none := ""
	for _, task := range n.tasks {
		_, err := svc.UpdateTask(ctx, task.id, tracking.TaskUpdate{Notes: &none})
		n.ok(err)
		_, err = svc.CancelTask(ctx, task.id, tracking.Reason{Text: task.note()})
		n.ok(err)
	}
	if len(canariesIn(t, filepath.Dir(s.Path()))) == 0 {
		t.Fatal("nothing is said of the person, so that nothing is shown")
	}
	return n
}

// forgetDrivers deletes all drivers.
func (n noted) forgetDrivers() {
	n.Helper()
	for i := range 20 {
		err := n.ForceDeleteDriver(n.Context(), tracking.DriverID(fmt.Sprint("d", i)))
		if !errors.Is(err, tracking.ErrNotFound) {
			n.ok(err)
		}
	}
}

// purge purges until nothing is left, and waits until what follows that in the store is done too.
func (n noted) purge() {
	n.Helper()
	for {
		p, err := n.Purge(n.Context())
		n.ok(err)
		if p.Total() == 0 {
			break
		}
	}
	n.ok(n.s.SetMemo(n.Context(), "behind", nil))
}

// TestErasedIsInNoByteAtRandom erases a person, drivers and tasks in each of the ways there are, from files
// whose pages were much rewritten, and looks for them in all bytes that there are: of the file, of what
// lies beside it, and of a backup.
func TestErasedIsInNoByteAtRandom(t *testing.T) {
	seeds := 8
	switch {
	case raceDetector:
		seeds = 4
	case long():
		seeds = 24
	}
	for seed := range seeds {
		ways := []string{"contact", "task", "KeepContacts", "KeepTasks"}
		way := ways[seed%len(ways)]
		t.Run(fmt.Sprint(seed, " ", way), func(t *testing.T) {
			dir := fastDir(t)
			path := filepath.Join(dir, "tracking.db")
			now := start
			opts := tracking.Options{Now: func() time.Time { return now }}
			switch way {
			case "KeepContacts":
				opts.KeepContacts = time.Hour
			case "KeepTasks":
				opts.KeepTasks = time.Hour
			}
			s := openCopy(t, dir)
			n := withCanaries(t, s, rand.New(rand.NewPCG(uint64(seed), 12)), opts)
			n.forgetDrivers()
			if n.eraseBy(way, &now); now.Equal(start) { // erased already; the file has remains still
				n.ok(s.Backup(t.Context(), path+".early"))
			}
			n.purge()
			n.ok(s.Backup(t.Context(), path+".backup"))
			if left := canariesIn(t, dir); len(left) > 0 {
				t.Errorf("while it is open: %q", left)
			}
			closeStore(t, s)
			if left := canariesIn(t, dir); len(left) > 0 {
				t.Errorf("after it was closed: %q", left)
			}
		})
	}
}

// eraseBy takes away what tasks say of the person.
func (n noted) eraseBy(way string, now *time.Time) {
	n.Helper()
	switch way {
	case "contact":
		erased, err := n.EraseContact(n.Context(), hers)
		if err != nil || erased == 0 {
			n.Fatalf("erased from %d tasks, error %v", erased, err)
		}
	case "task":
		for _, t := range n.tasks {
			if t.of == hers {
				n.ok(n.DeleteTask(n.Context(), t.id))
			}
		}
	default:
		*now = start.Add(2 * time.Hour)
	}
}

// remains reports whether a store knows of remains of what was erased.
func remains(t testing.TB, s *sqlite.Store) (there bool) {
	t.Helper()
	db, err := s.Reader()
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Get(&there, `SELECT EXISTS (SELECT 1 FROM remains)`); err != nil {
		t.Fatal(err)
	}
	return there
}

// eraseOne makes a task and deletes it.
func eraseOne(t testing.TB, s *sqlite.Store) {
	t.Helper()
	task := tracking.Task{ID: "erased", CreatedAt: start}
	w, err := s.Commit(t.Context(), app, &tracking.Changeset{Tasks: []tracking.Task{task}})
	if err == nil {
		task.Version = w.Tasks[0].Version
		_, err = s.Commit(t.Context(), app, &tracking.Changeset{DeleteTasks: []tracking.Task{task}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// purgeAll purges until nothing is left, and waits for what the writer does behind it.
func purgeAll(t testing.TB, s *sqlite.Store) {
	t.Helper()
	for left := true; left; {
		p, err := s.Purge(t.Context(), tracking.Before{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		left = p.Total() > 0
	}
	if err := s.SetMemo(t.Context(), "behind", nil); err != nil {
		t.Fatal(err)
	}
}

// A number that an edit has replaced stands in no row, and its bytes may lie in the file: who it
// belonged to is erased there as well.
func TestErasedAfterEdit(t *testing.T) {
	s := open(t, filepath.Join(fastDir(t), "tracking.db"), nil)
	defer closeStore(t, s)
	svc, err := tracking.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	to := func(mobile string) *tracking.Place {
		return &tracking.Place{
			LngLat: &tracking.LngLat{Lng: 13.4, Lat: 52.5}, Customer: &tracking.Contact{Name: "A", Mobile: mobile},
		}
	}
	task, err := svc.CreateTask(t.Context(), tracking.NewTask{Type: tracking.TypeDrop, Drop: to(hers)})
	if err == nil {
		_, err = svc.UpdateTask(t.Context(), task.ID, tracking.TaskUpdate{Drop: to("+49 89 1000")})
	}
	if err != nil {
		t.Fatal(err)
	}
	if remains(t, s) {
		t.Error("there are remains before an erasure")
	}
	if n, err := svc.EraseContact(t.Context(), hers); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	if !remains(t, s) {
		t.Error("an erasure of somebody whom no row names any more leaves no remains")
	}
	purgeAll(t, s)
	if remains(t, s) {
		t.Error("the purge after it leaves remains")
	}
}

// TestCompactsByItself follows the clock: a file is written anew after an erasure, but not all the time,
// and later after it has failed.
func TestCompactsByItself(t *testing.T) {
	v := registerVFS(t, "compacts")
	now := start
	s := open(t, filepath.Join(fastDir(t), "tracking.db"),
		sqlite.Options{}.WithVFS(v.Name(), "FULL", 1000).WithClock(func() time.Time { return now }))
	defer closeStore(t, s)
	if remains(t, s) {
		t.Error("there are remains in a new file")
	}
	step := func(what string, later time.Duration, want bool) {
		t.Helper()
		now = now.Add(later)
		purgeAll(t, s)
		if got := remains(t, s); got != want {
			t.Errorf("%s: remains %v, want %v", what, got, want)
		}
	}
	eraseOne(t, s)
	if !remains(t, s) {
		t.Error("an erasure leaves no remains")
	}
	step("the first", 0, false)
	eraseOne(t, s)
	step("at once after another", 0, true)
	step("nearly a minute later", time.Minute-1, true)
	step("a minute later", 1, false)

	eraseOne(t, s)
	v.SetFault(func(op powervfs.Op) int32 {
		if op.Kind == powervfs.Write && strings.HasSuffix(op.File, "-wal") && op.Offset > 50_000 {
			return codes.SQLITE_FULL
		}
		return 0
	})
	step("on a full disk", time.Minute, true)
	v.SetFault(nil)
	step("nearly an hour after that", time.Hour-1, true)
	step("an hour after that", 1, false)
}

// TestCompactAfterFailure asks for a compaction in a group whose commit fails: the caller is told so, and
// nothing is written anew behind his back.
func TestCompactAfterFailure(t *testing.T) {
	v := registerVFS(t, "compact-failed")
	s := open(t, filepath.Join(fastDir(t), "tracking.db"), sqlite.Options{}.WithVFS(v.Name(), "FULL", 1000))
	defer closeStore(t, s)
	commitTask(t, s, "a")
	v.SetFault(once(powervfs.Write, "-wal", codes.SQLITE_FULL))
	v.Record(true)
	if err := s.Compact(t.Context()); !errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("got error %v, want ErrUnavailable", err)
	}
	commitTask(t, s, "b") // behind it
	v.Record(false)
	for _, op := range v.Log() {
		if op.Kind == powervfs.Truncate {
			t.Errorf("%s was cut: the file has been compacted", op.File)
		}
	}
}

// TestCompactsThoughFixesAge has each purge find something, as where fixes of many drivers come of
// age all the time: what was erased is removed all the same.
func TestCompactsThoughFixesAge(t *testing.T) {
	s := open(t, filepath.Join(fastDir(t), "tracking.db"), nil)
	defer closeStore(t, s)
	now := start
	svc, err := tracking.New(s, &tracking.Options{Now: func() time.Time { return now }, KeepFixes: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	n, on, fixes := noted{TB: t}, true, make([]tracking.Fix, 10)
	for i := range fixes {
		fixes[i] = tracking.Fix{LngLat: tracking.LngLat{Lng: 11, Lat: 48}, Time: start.Add(time.Duration(i-10) * time.Second)}
	}
	_, err = svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: "d", Available: &on})
	n.ok(err)
	_, err = svc.RecordFixes(t.Context(), "d", fixes)
	n.ok(err)
	eraseOne(t, s)
	for i := range 5 {
		now = fixes[i+1].Time.Add(time.Hour + 1)
		if p, err := svc.Purge(t.Context()); p.Total() == 0 || err != nil {
			t.Fatalf("a purge that is to find something: %+v, error %v", p, err)
		}
	}
	n.ok(s.SetMemo(t.Context(), "behind", nil))
	if remains(t, s) {
		t.Error("there are remains as long as purges find something")
	}
}

// TestCompact compacts on request alone, also when there is no room at first.
func TestCompact(t *testing.T) {
	v := registerVFS(t, "compact")
	path := filepath.Join(fastDir(t), "tracking.db")
	opts := sqlite.Options{CompactOnRequest: true}.WithVFS(v.Name(), "FULL", 1000)
	s := open(t, path, opts)
	commitTask(t, s, "a")
	eraseOne(t, s)
	purgeAll(t, s)
	if !remains(t, s) {
		t.Error("it was compacted without a request")
	}
	closeStore(t, s)
	s = open(t, path, opts)
	v.SetFault(func(op powervfs.Op) int32 {
		if op.Kind == powervfs.Write && strings.HasSuffix(op.File, "-wal") && op.Offset > 50_000 {
			return codes.SQLITE_FULL
		}
		return 0
	})
	if err := s.Compact(t.Context()); !errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("on a full disk: got error %v, want ErrUnavailable", err)
	}
	v.SetFault(nil)
	if n := logSize(t, path); n > 0 {
		t.Errorf("the attempt has left %d bytes in the log", n)
	}
	if hasTask(t, s, "a"); !remains(t, s) {
		t.Error("the remains are forgotten")
	}
	if err := s.Compact(t.Context()); err != nil || remains(t, s) {
		t.Errorf("remains %v, error %v", remains(t, s), err)
	}
	hasTask(t, s, "a")
	commitTask(t, s, "b")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Compact(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	closeStore(t, s)
	if err := s.Compact(t.Context()); !errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("of a closed store: %v", err)
	}
	m := open(t, sqlite.Memory, nil)
	defer closeStore(t, m)
	if err := m.Compact(t.Context()); err != nil {
		t.Errorf("in memory: %v", err)
	}
}

// Whoever waits for a Backup or Compact that runs already waits no longer than he wants to, and than
// the store is open.
func TestCompactAndBackupInLine(t *testing.T) {
	s := open(t, filepath.Join(fastDir(t), "tracking.db"), nil)
	defer s.HoldTurn()()
	calls := []func(context.Context) error{
		s.Compact, func(ctx context.Context) error { return s.Backup(ctx, s.Path()+".backup") },
	}
	for i, call := range calls {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("call %d until its context ends: %v", i, err)
		}
	}
	answers := make(chan error)
	for _, call := range calls {
		go func() { answers <- call(t.Context()) }()
	}
	closeStore(t, s)
	for range calls {
		if err := <-answers; !errors.Is(err, tracking.ErrUnavailable) {
			t.Errorf("until the store is closed: %v", err)
		}
	}
}

// TestCloseEndsCompaction closes a store that is about to compact its file: Close does not wait for
// that, which may take minutes, and the next process does it.
func TestCloseEndsCompaction(t *testing.T) {
	for _, way := range []string{"due", "asked"} {
		t.Run(way, func(t *testing.T) {
			path := filepath.Join(fastDir(t), "tracking.db")
			var log strings.Builder
			var s *sqlite.Store
			armed, closed := false, make(chan error, 1)
			opts := sqlite.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}.WithGroups(func(string) {
				if armed { // the change is written, and the compaction behind it comes next
					armed = false
					go func() { closed <- s.Close() }()
					for !errors.Is(s.Health(), tracking.ErrUnavailable) {
						runtime.Gosched()
					}
				}
			})
			s = open(t, path, opts)
			eraseOne(t, s)
			armed = true
			if way == "due" {
				if _, err := s.Purge(t.Context(), tracking.Before{Limit: 10}); err != nil {
					t.Error(err)
				}
			} else if err := s.Compact(t.Context()); !errors.Is(err, tracking.ErrUnavailable) {
				t.Errorf("Compact that Close has ended: %v", err)
			}
			if err := <-closed; err != nil || log.Len() > 0 {
				t.Errorf("Close: error %v; the log says %q", err, &log)
			}
			s = open(t, path, nil)
			defer closeStore(t, s)
			if !remains(t, s) {
				t.Error("Close has waited for the compaction")
			}
			purgeAll(t, s)
			if remains(t, s) {
				t.Error("the next process has not compacted the file")
			}
		})
	}
}

// TestCompactWithReader has somebody read from the log while it is to be emptied: the writer goes on at
// once each time, and empties it when it can.
func TestCompactWithReader(t *testing.T) {
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, &sqlite.Options{BusyTimeout: time.Hour}) // which nobody is to wait for
	defer closeStore(t, s)
	commitTask(t, s, "a")
	eraseOne(t, s)
	reader, err := raw(t, path).Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	var n int
	if _, err := reader.ExecContext(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	if err := reader.GetContext(t.Context(), &n, "SELECT count(*) FROM tasks"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		purgeAll(t, s)
		if !remains(t, s) {
			t.Error("remains are in the log, and forgotten")
		}
	}
	if _, err := reader.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	purgeAll(t, s)
	if remains(t, s) {
		t.Error("the log was not emptied when it could be")
	}
}

// TestCompactWhileOthersWork compacts a store again and again that is written to, read from and copied.
func TestCompactWhileOthersWork(t *testing.T) {
	dir := fastDir(t)
	s := open(t, filepath.Join(dir, "tracking.db"), nil)
	l := &ledger{}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		w := newWorkload(t, s, l)
		w.failf = func(err error) { t.Error(err) }
		for i := 0; ctx.Err() == nil; i++ {
			w.round(t.Context(), i)
		}
	})
	for range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if _, err := s.Stats(t.Context(), start); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Go(func() {
		for ctx.Err() == nil {
			if err := s.Backup(t.Context(), filepath.Join(dir, "copy.db")); err != nil {
				t.Error(err)
			}
		}
	})
	for range 10 {
		if err := s.Compact(t.Context()); err != nil {
			t.Error(err)
		}
	}
	cancel()
	wg.Wait()
	if err := s.Compact(t.Context()); err != nil || remains(t, s) {
		t.Errorf("in the end: remains %v, error %v", remains(t, s), err)
	}
	for _, path := range []string{filepath.Join(dir, "tracking.db"), filepath.Join(dir, "copy.db")} {
		n := len(l.facts)
		if path != s.Path() {
			n = 0 // it is whole, whenever it was made
		} else {
			closeStore(t, s)
		}
		if missing, err := checkImage(t.Context(), path, l, n); err != nil {
			t.Errorf("%d of %d are missing from %s: %v", missing, n, filepath.Base(path), err)
		}
	}
}

// TestWordsAreCompacted erases tasks whose words fill pages of what tasks are found by, so that some of
// these begin with one: no word is left in the file, neither where all of it is one segment already.
func TestWordsAreCompacted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracking.db")
	s := open(t, path, &sqlite.Options{CompactOnRequest: true})
	const erased, stay = 600, 600
	task := func(i int, word string) tracking.Task {
		return tracking.Task{
			ID: tracking.TaskID(fmt.Sprintf("task-%d", i)), Type: tracking.TypeDrop, Status: tracking.StatusCreated,
			CreatedAt: start.Add(time.Duration(i) * time.Second), UpdatedAt: start,
			Drop: &tracking.Place{Address: fmt.Sprintf("%s%05d", word, i)},
		}
	}
	for round := range 2 { // in the second there is what the first has left
		var made, gone tracking.Changeset
		for i := range erased {
			made.Tasks = append(made.Tasks, task(i, "heron"))
			gone.DeleteTasks = append(gone.DeleteTasks, tracking.Task{ID: made.Tasks[i].ID})
		}
		for i := range stay {
			made.Tasks = append(made.Tasks, task(erased+1000*round+stay*round+i, "stork"))
		}
		w, err := s.Commit(t.Context(), app, &made)
		if err != nil {
			t.Fatal(err)
		}
		if round == 1 {
			if err := s.Compact(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i := range gone.DeleteTasks {
			gone.DeleteTasks[i].Version = w.Tasks[i].Version
		}
		if _, err := s.Commit(t.Context(), app, &gone); err != nil {
			t.Fatal(err)
		}
		if err := s.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		for name, b := range files(t, filepath.Dir(path)) {
			if n := bytes.Count(b, []byte("heron")); n > 0 {
				t.Errorf("round %d: a word of what is erased is in %s %d times", round, name, n)
			}
		}
		list, _, err := s.Tasks(t.Context(), app, tracking.TaskFilter{
			Query: "stork00700", Page: tracking.Page{Number: 1, Limit: 10},
		})
		if err != nil || len(list) != 1 {
			t.Errorf("round %d: %d tasks are found by a word that stays, error %v", round, len(list), err)
		}
	}
	closeStore(t, s)
}

// TestPowerCutInCompact cuts the power while the file is written anew: it is whole, and the next process
// does so again.
func TestPowerCutInCompact(t *testing.T) {
	before := fastDir(t)
	path := filepath.Join(before, "tracking.db")
	s := open(t, path, &sqlite.Options{CompactOnRequest: true})
	n := withCanaries(t, s, rand.New(rand.NewPCG(10, 12)), tracking.Options{})
	n.forgetDrivers()
	n.eraseBy("contact", nil)
	closeStore(t, s)
	base := fastDir(t)
	copyFiles(t, base, before)

	v := registerVFS(t, "power-compact")
	v.Record(true)
	s = open(t, path, sqlite.Options{}.WithVFS(v.Name(), "FULL", 60))
	if err := s.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	v.Record(false)
	images := 40
	if long() {
		images = 1 << 20
	}
	again := 0
	r := recorded{base, v.Log()}
	r.images(t, 0, images, func(dir string, _ int, way powervfs.Survival) {
		s := open(t, filepath.Join(dir, "tracking.db"), nil)
		if remains(t, s) {
			again++
		}
		db, err := s.Reader()
		if err != nil {
			t.Fatal(err)
		}
		var fault string
		if err := db.Get(&fault, "PRAGMA integrity_check(1)"); err != nil || fault != "ok" {
			t.Errorf("way %v: %s, error %v", way, fault, err)
		}
		var tasks int
		if err := db.Get(&tasks, "SELECT count(*) FROM tasks"); err != nil || tasks != len(n.tasks) {
			t.Errorf("way %v: %d of %d tasks are there, error %v", way, tasks, len(n.tasks), err)
		}
		purgeAll(t, s)
		if remains(t, s) {
			t.Errorf("way %v: it has remains still", way)
		}
		closeStore(t, s)
		if left := canariesIn(t, dir); len(left) > 0 {
			t.Errorf("way %v: %q", way, left)
		}
	})
	if again == 0 {
		t.Error("no cut was before the end, so that nothing is shown")
	}
}
