package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	codes "modernc.org/sqlite/lib"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
	"github.com/seed-8aba7b13/tracking/store/sqlite/internal/powervfs"
)

// everything is all rows of a store, but its secret.
func everything(t testing.TB, s tracking.Store) (list []tracking.Row) {
	t.Helper()
	for r, err := range s.Rows(t.Context(), tracking.RowQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := r.Value.(tracking.StoreSecret); !ok {
			list = append(list, r)
		}
	}
	return list
}

// asKilled is the store as it is after the process has ended at this moment.
func asKilled(t testing.TB, s *sqlite.Store, opts *sqlite.Options) *sqlite.Store {
	t.Helper()
	// While files are copied the store must not look after its log, as it does behind a purge: what is asked of
	// it next is answered when it is through.
	_, err := s.RecordFixes(t.Context(), app, tracking.FixBatch{DriverID: "nobody"})
	if !errors.Is(err, tracking.ErrNotFound) {
		t.Fatal(err)
	}
	dir := fastDir(t)
	copyFiles(t, dir, filepath.Dir(s.Path()))
	return open(t, filepath.Join(dir, filepath.Base(s.Path())), opts)
}

// indexed waits until the index is filled: until then fixes go into their drivers' rows.
func indexed(t testing.TB, s *sqlite.Store) {
	t.Helper()
	if _, _, err := s.Drivers(t.Context(), app, tracking.DriverFilter{Near: new(tracking.LngLat)}); err != nil {
		t.Fatal(err)
	}
}

const lateDrivers = 5

func lateID(i int) tracking.DriverID { return tracking.DriverID(fmt.Sprintf("driver-%d", i)) }

// history draws what happens to some drivers.
type history struct {
	*rand.Rand
	now [lateDrivers]time.Time
}

func newHistory(r *rand.Rand) *history {
	h := &history{Rand: r}
	for i := range h.now {
		h.now[i] = start
	}
	return h
}

// fixes draws n of a driver.
func (h *history) fixes(i, n int) tracking.FixBatch {
	b := tracking.FixBatch{DriverID: lateID(i), MaxAccuracy: .8, MaxFixAge: time.Minute}
	for range n {
		step := time.Duration(1+h.IntN(9000)) * time.Millisecond
		if h.IntN(9) == 0 {
			step = -time.Duration(h.IntN(120_000)) * time.Millisecond
		}
		h.now[i] = h.now[i].Add(step)
		f := tracking.Fix{
			LngLat: tracking.LngLat{Lng: 80.27 + h.Float64()/1e3, Lat: 13.08 + float64(i)/100}, Time: h.now[i],
		}
		switch h.IntN(8) {
		case 0:
			f.LngLat.Lng++ // a jump
		case 1:
			f.EventID = fmt.Sprint("event ", h.IntN(1000))
		case 2:
			f.Accuracy, f.Battery = tracking.Known(h.Float64()), tracking.Known(50)
		}
		b.Fixes = append(b.Fixes, f)
	}
	b.SeenAt = h.now[i].Add(time.Second)
	if h.IntN(3) == 0 {
		b.Skew = tracking.Known(h.Float64())
	}
	if h.IntN(20) == 0 { // what was kept beyond is forgotten
		h.now[i] = h.now[i].Add(-time.Duration(h.IntN(60)) * time.Second)
		b.Fixes, b.Latest = nil, h.now[i]
	}
	b.Unread = h.IntN(2)
	return b
}

// histories is how many are played, fewer under the race detector.
func histories(raced int) int {
	switch {
	case raceDetector:
		return raced
	case long():
		return 60
	}
	return 6
}

// TestLateRows plays histories of fixes, edits, hirings, deletions and purges on a store whose rows
// follow the journal seldom, and on one that lives in memory and has no journal. Both answer the same
// all along, and so does what is opened after a kill.
func TestLateRows(t *testing.T) {
	for n := range histories(2) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(n), 7))
			sizes := []int{1, 300, 3000, 30000, 1 << 20}
			opts := sqlite.Options{}.WithJournal(sizes[n%len(sizes)], 1+n%7)
			path := filepath.Join(fastDir(t), "tracking.db")
			s, plain := open(t, path, opts), open(t, sqlite.Memory, nil)
			defer func() { closeStore(t, s) }()
			defer closeStore(t, plain)
			both := func(what string, do func(s tracking.Store) (any, error)) {
				t.Helper()
				got, err := do(s)
				want, wanted := do(plain)
				if fmt.Sprint(err) != fmt.Sprint(wanted) {
					t.Fatalf("%s: error %v, want %v", what, err, wanted)
				}
				if d := cmp.Diff(want, got); d != "" {
					t.Fatalf("%s (-want +got):\n%s", what, d)
				}
			}
			h := newHistory(r)
			if n%2 == 0 { // else some fixes come before
				indexed(t, s)
			}
			for step := range 400 {
				i := r.IntN(lateDrivers)
				switch kind := r.IntN(20); {
				case kind < 13:
					sizes := []int{0, 1, 1, 1, 1, 2, 5, 40}
					b := h.fixes(i, sizes[r.IntN(len(sizes))])
					both("fixes", func(s tracking.Store) (any, error) { return s.RecordFixes(t.Context(), app, b) })
				case kind < 15: // a commit of fixes, which may be refused after them
					version := int64(0)
					if d, err := plain.Driver(t.Context(), app, lateID(i)); err == nil {
						version = d.Version
					}
					cs := &tracking.Changeset{
						Drivers: []tracking.Driver{{
							ID: lateID(i), Name: fmt.Sprint(step), Available: r.IntN(2) == 0, CreatedAt: start, Version: version,
						}},
						Fixes: []tracking.FixBatch{h.fixes(i, 1+r.IntN(3))},
					}
					if r.IntN(2) == 0 {
						other := h.fixes(i, 1)
						if other.DriverID = lateID(r.IntN(lateDrivers)); r.IntN(2) == 0 {
							other.DriverID = "nobody"
						}
						cs.Fixes = append(cs.Fixes, other)
					}
					both("a commit", func(s tracking.Store) (any, error) { return s.Commit(t.Context(), app, cs) })
				case kind == 15 && r.IntN(4) == 0:
					d, err := plain.Driver(t.Context(), app, lateID(i))
					if err != nil {
						continue
					}
					cs := &tracking.Changeset{DeleteDrivers: []tracking.Driver{d}}
					if r.IntN(2) == 0 { // and hired again at once
						cs.Drivers = []tracking.Driver{{ID: lateID(i), CreatedAt: start, Person: fmt.Sprint(step)}}
						cs.Fixes = []tracking.FixBatch{h.fixes(i, 1)}
					}
					both("a deletion", func(s tracking.Store) (any, error) { return s.Commit(t.Context(), app, cs) })
				case kind == 15 && r.IntN(3) == 0: // fixes as an import puts them
					f := h.fixes(i, 1)
					var rows []tracking.Row
					for k, f := range f.Fixes {
						f.Time = h.now[i].Add(time.Duration(1+k) * time.Minute)
						rows = append(rows, tracking.Row{App: app, Value: tracking.FixRow{
							DriverID: lateID(i), KeptFix: tracking.KeptFix{Fix: f, Mark: tracking.MarkGood},
						}})
					}
					both("an import", func(s tracking.Store) (any, error) {
						return nil, s.Restore(t.Context(), tracking.Restoring{Rows: rows})
					})
				case kind == 16:
					before := tracking.Before{Fixes: h.now[i].Add(-time.Duration(r.IntN(600)) * time.Second), Limit: 1 + r.IntN(60)}
					both("a purge", func(s tracking.Store) (any, error) { return s.Purge(t.Context(), before) })
				case kind == 17:
					at := tracking.LngLat{Lng: 80.27, Lat: 13.08 + float64(r.IntN(lateDrivers))/100}
					both("the nearest", func(s tracking.Store) (any, error) {
						list, _, err := s.Drivers(t.Context(), app, tracking.DriverFilter{Near: &at, Page: tracking.Page{Limit: 3}})
						return list, err
					})
				case kind == 18:
					both("fixes of a window", func(s tracking.Store) (any, error) {
						var list []tracking.Fix
						window := tracking.FixRange{From: h.now[i].Add(-90 * time.Second), Newest: step%2 == 0}
						for f, err := range s.Fixes(t.Context(), app, lateID(i), window) {
							if err != nil {
								return nil, err
							}
							list = append(list, f)
						}
						return list, nil
					})
				case kind == 19:
					if d := cmp.Diff(everything(t, plain), everything(t, s)); d != "" {
						t.Fatalf("step %d (-want +got):\n%s", step, d)
					}
					again := asKilled(t, s, opts)
					if d := cmp.Diff(everything(t, plain), everything(t, again)); d != "" {
						t.Fatalf("step %d, after a kill (-want +got):\n%s", step, d)
					}
					switch r.IntN(4) {
					case 0: // it goes on from there
						closeStore(t, s)
						s = again
					case 1:
						closeStore(t, again)
						closeStore(t, s)
						s = open(t, s.Path(), opts)
						if drivers, _ := s.Late(); drivers > 0 {
							t.Errorf("step %d: %d drivers are late after Close", step, drivers)
						}
					case 2: // or from a backup
						path := filepath.Join(fastDir(t), "backup.db")
						if err := again.Backup(t.Context(), path); err != nil {
							t.Fatal(err)
						}
						closeStore(t, again)
						closeStore(t, s)
						s = open(t, path, opts)
					default:
						closeStore(t, again)
					}
				}
			}
			if d := cmp.Diff(everything(t, plain), everything(t, s)); d != "" {
				t.Fatalf("in the end (-want +got):\n%s", d)
			}
		})
	}
}

// TestRefusedFixesLeaveNothing has a commit refused after its fixes were judged, beside others of its
// group: the driver is as he was, in the store and in what is opened after a kill.
func TestRefusedFixesLeaveNothing(t *testing.T) {
	s := openCopy(t, fastDir(t))
	defer closeStore(t, s)
	ids := crew(t, s, 2)
	indexed(t, s)
	for _, id := range ids {
		if _, err := s.RecordFixes(t.Context(), app, drive(id, start, 3)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.RecordFixes(t.Context(), app, drive(id, start.Add(time.Minute), 1)); err != nil {
			t.Fatal(err)
		}
	}
	if late, _ := s.Late(); late != len(ids) {
		t.Fatalf("%d drivers are late, want %d", late, len(ids))
	}
	want := everything(t, s)
	cs := &tracking.Changeset{Fixes: []tracking.FixBatch{
		drive(ids[0], start.Add(time.Hour), 1), drive("nobody", start, 1),
	}}
	var conflict *tracking.ConflictError
	if _, err := s.Commit(t.Context(), app, cs); !errors.As(err, &conflict) {
		t.Fatalf("got %v, want a conflict about nobody", err)
	}
	if d := cmp.Diff(want, everything(t, s)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	got, err := s.Driver(t.Context(), app, ids[0])
	if err != nil || !got.Position.Fix.Time.Equal(start.Add(time.Minute)) {
		t.Errorf("he is where he was at %v, error %v", got.Position.Fix.Time, err)
	}
	if _, err := s.RecordFixes(t.Context(), app, drive(ids[0], start.Add(2*time.Minute), 1)); err != nil {
		t.Fatal(err)
	}
	again := asKilled(t, s, nil)
	defer closeStore(t, again)
	if d := cmp.Diff(everything(t, s), everything(t, again)); d != "" {
		t.Errorf("after a kill (-want +got):\n%s", d)
	}
}

// damaged are journals that nobody has written, made of one of three chunks of generation 1.
var damaged = []struct {
	what string
	do   func(chunks [][]byte) [][]byte
}{
	{"a chunk is missing", func(c [][]byte) [][]byte { return append(c[:1], nil, c[2]) }},
	{"the first chunk is missing", func(c [][]byte) [][]byte { return append([][]byte{nil}, c[1:]...) }},
	{"a chunk is short", func(c [][]byte) [][]byte { c[1] = c[1][:3999]; return c }},
	{"a chunk is empty", func(c [][]byte) [][]byte { c[0] = []byte{}; return c }},
	{"a chunk is long", func(c [][]byte) [][]byte { c[2] = append(c[2], make([]byte, 1e7)...); return c }},
	{"a chunk uses more than it has", func(c [][]byte) [][]byte { c[0][4] = 0xff; return c }},
	{"a chunk before the last has room", func(c [][]byte) [][]byte { c[1][5]--; return c }},
	{"a chunk has room where a change ends", func(c [][]byte) [][]byte {
		copy(c[1][4:], []byte{0, 0})
		copy(c[0][4:], []byte{0, 0})
		return c
	}},
	{"a chunk is newer than the first", func(c [][]byte) [][]byte { c[1][3] = 2; return c }},
	{"an older one before the last", func(c [][]byte) [][]byte { c[0][3], c[2][3] = 2, 2; return c }},
	{"there is no generation 0", func(c [][]byte) [][]byte { c[0][3], c[1][3], c[2][3] = 0, 0, 0; return c }},
	{"a generation that no place can have", func(c [][]byte) [][]byte {
		c[0][0], c[1][0], c[2][0] = 0x80, 0x80, 0x80
		return c
	}},
	{"no numbers", func(c [][]byte) [][]byte { copy(c[0][6:], bytes.Repeat([]byte{0xff}, 3994)); return c }},
	{"it ends within a change", func(c [][]byte) [][]byte { c[2][5]--; return c }},
	{"it ends behind a change", func(c [][]byte) [][]byte { c[2][5]++; return c }},
}

// TestLateGroups plays histories of which several changes are of one transaction: commits that are refused
// beside others, after their fixes and deletions, some that share a savepoint, some that are undone and
// applied again, and fixes of one driver in a row. What is kept is what a store without a journal has that
// was given one after another.
func TestLateGroups(t *testing.T) {
	for n := range histories(1) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(n), 8))
			h := newHistory(r)
			sizes := []int{1 << 20, 3000, 300}
			var g groups
			v := registerVFS(t, fmt.Sprint("late-", n))
			opts := sqlite.Options{BusyTimeout: time.Minute}.WithJournal(sizes[n%len(sizes)], 2+n%5)
			opts = (*(*opts).WithGroups(g.add)).WithVFS(v.Name(), "FULL", 1000)
			s, plain := open(t, filepath.Join(fastDir(t), "tracking.db"), opts), open(t, sqlite.Memory, nil)
			defer func() { closeStore(t, s) }()
			defer closeStore(t, plain)
			indexed(t, s)
			driver := func(i int) (d tracking.Driver) {
				d, err := plain.Driver(t.Context(), app, lateID(i))
				if err != nil {
					d = tracking.Driver{ID: lateID(i), CreatedAt: start, Available: true}
				}
				return d
			}
			tasks := [2]tracking.Task{
				{ID: "one", CreatedAt: start, Key: "1"}, {ID: "two", CreatedAt: start, Key: "2"},
			}
			change := func(step int) *tracking.Changeset {
				i := r.IntN(lateDrivers)
				cs := &tracking.Changeset{}
				switch r.IntN(8) {
				case 0: // of new tasks alone; half of them are refused
					return &tracking.Changeset{Tasks: []tracking.Task{
						{ID: tracking.TaskID(fmt.Sprint("task ", step)), CreatedAt: start},
						{ID: tracking.TaskID(fmt.Sprint("task ", step-r.IntN(2))), CreatedAt: start, Key: fmt.Sprint(step)},
					}}
				case 1, 2:
					d := driver(i)
					d.Name, d.Available = fmt.Sprint(step), r.IntN(4) > 0
					cs.Drivers = []tracking.Driver{d}
				case 3:
					if d := driver(i); d.Version > 0 {
						cs.DeleteDrivers = []tracking.Driver{d}
						if d.Version = 0; r.IntN(2) == 0 {
							cs.Drivers = []tracking.Driver{d}
						}
					}
				}
				for range r.IntN(4) {
					cs.Fixes = append(cs.Fixes, h.fixes(i, r.IntN(4)))
				}
				if r.IntN(4) == 0 {
					cs.Fixes = append(cs.Fixes, h.fixes(r.IntN(lateDrivers), 1))
				}
				if r.IntN(5) == 0 {
					cs.Fixes = append(cs.Fixes, tracking.FixBatch{DriverID: "nobody"})
				}
				if r.IntN(5) == 0 { // each takes the other's key
					for k, t := range tasks {
						if is, err := plain.Task(context.Background(), app, t.ID); err == nil {
							t = is
							t.Key = tasks[1-k].Key
						}
						cs.Tasks = append(cs.Tasks, t)
					}
				}
				return cs
			}
			type answer struct {
				value any
				err   error
			}
			same := func(what string, s tracking.Store) {
				t.Helper()
				if d := cmp.Diff(everything(t, plain), everything(t, s)); d != "" {
					t.Fatalf("%s (-want +got):\n%s", what, d)
				}
			}
			purge := func(s tracking.Store) error {
				_, err := s.Purge(context.Background(), tracking.Before{Limit: 1})
				return err
			}
			busiest := 0
			for step := range 60 {
				if r.IntN(3) == 0 { // the disk is full: nothing comes of all this
					v.SetFault(func(op powervfs.Op) int32 {
						if op.Kind == powervfs.Write {
							return codes.SQLITE_FULL
						}
						return 0
					})
					var all sync.WaitGroup
					for range 3 {
						cs := change(10 * step)
						all.Go(func() { s.Commit(context.Background(), app, cs) })
					}
					all.Wait()
					purge(s)
					v.SetFault(nil)
					same(fmt.Sprintf("step %d, when the disk was full", step), s)
				}
				if r.IntN(8) == 0 {
					if err := errors.Join(purge(s), purge(plain)); err != nil {
						t.Fatal(err)
					}
				}
				var changes []func(s tracking.Store) answer
				var want []answer
				verbs := r.IntN(3) > 0
				for k := range 1 + r.IntN(8) {
					var do func(s tracking.Store) answer
					if verbs {
						cs := change(10*step + k)
						do = func(s tracking.Store) answer {
							w, err := s.Commit(context.Background(), app, cs)
							return answer{w, err}
						}
					} else {
						b := h.fixes(r.IntN(2), r.IntN(5))
						do = func(s tracking.Store) answer {
							rec, err := s.RecordFixes(context.Background(), app, b)
							return answer{rec, err}
						}
					}
					changes, want = append(changes, do), append(want, do(plain))
					for k := range tasks {
						if is, err := plain.Task(t.Context(), app, tasks[k].ID); err == nil {
							tasks[k].Key = is.Key
						}
					}
				}
				release := holdLock(t, s.Path())
				before := len(g.since(0))
				got := make([]answer, len(changes))
				var all sync.WaitGroup
				for k, do := range changes {
					all.Go(func() { got[k] = do(s) })
					waitFor(t, s, k+1)
				}
				release()
				all.Wait()
				for _, group := range g.since(before) {
					busiest = max(busiest, len(group))
				}
				for k := range got {
					if fmt.Sprint(got[k].err) != fmt.Sprint(want[k].err) {
						t.Fatalf("step %d, change %d: error %v, want %v", step, k, got[k].err, want[k].err)
					}
					if d := cmp.Diff(want[k].value, got[k].value); d != "" {
						t.Fatalf("step %d, change %d (-want +got):\n%s", step, k, d)
					}
				}
				same(fmt.Sprintf("step %d", step), s)
				if r.IntN(4) == 0 {
					again := asKilled(t, s, opts)
					same(fmt.Sprintf("step %d, after a kill", step), again)
					closeStore(t, s)
					s = again
					indexed(t, s)
				}
			}
			if busiest < 6 {
				t.Errorf("no transaction is of more than %d changes", busiest)
			}
		})
	}
}

// TestMostLate has fixes of more drivers than may be late: those of the others are in their rows.
func TestMostLate(t *testing.T) {
	s := open(t, filepath.Join(fastDir(t), "tracking.db"), sqlite.Options{}.WithJournal(1<<20, 3))
	defer closeStore(t, s)
	ids := crew(t, s, 8)
	indexed(t, s)
	for n := range 3 {
		for _, id := range ids {
			if _, err := s.RecordFixes(t.Context(), app, drive(id, start.Add(time.Duration(n)*time.Second), 1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if late, sweeps := s.Late(); late != 3 || sweeps != 0 {
		t.Errorf("%d drivers are late after %d sweeps, want 3 and none", late, sweeps)
	}
	db, err := s.Reader()
	if err != nil {
		t.Fatal(err)
	}
	var current int
	newest := start.Add(2 * time.Second).UnixMilli()
	if err := db.Get(&current, `SELECT count(*) FROM positions WHERE fix_time = ?`, newest); err != nil || current != 5 {
		t.Errorf("%d rows have the newest fix, want 5, error %v", current, err)
	}
	if _, err := s.Purge(t.Context(), tracking.Before{Limit: 1}); err != nil {
		t.Fatal(err)
	}
	d, err := s.Driver(t.Context(), app, ids[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), app, &tracking.Changeset{Drivers: []tracking.Driver{d}}); err != nil {
		t.Fatal(err)
	}
	if late, _ := s.Late(); late != 0 {
		t.Errorf("%d drivers are late when their rows have followed, and one is edited", late)
	}
}

// TestFixesOfCommits records a fix by itself and with a commit: the one is in the journal, the other in
// the driver's row, which is seen with the other rows.
func TestFixesOfCommits(t *testing.T) {
	s := openCopy(t, fastDir(t))
	defer closeStore(t, s)
	id := crew(t, s, 1)[0]
	indexed(t, s)
	db := raw(t, s.Path())
	is := func(want time.Duration) {
		t.Helper()
		var at int64
		if err := db.Get(&at, `SELECT fix_time FROM positions`); err != nil || at != start.Add(want).UnixMilli() {
			t.Errorf("the row is as of %d, want %v after the start, error %v", at, want, err)
		}
	}
	for n, ofCommit := range []bool{false, false, true, false} {
		b := drive(id, start.Add(time.Duration(n)*time.Second), 1)
		var err error
		if ofCommit {
			_, err = s.Commit(t.Context(), app, &tracking.Changeset{Fixes: []tracking.FixBatch{b}})
		} else {
			_, err = s.RecordFixes(t.Context(), app, b)
		}
		if err != nil {
			t.Fatal(err)
		}
		is([]time.Duration{0, 0, 2 * time.Second, 2 * time.Second}[n])
	}
}

// TestRecordedIsTheCallers changes the driver that fixes have come back with: it is a copy of what the writer knows.
func TestRecordedIsTheCallers(t *testing.T) {
	s := open(t, filepath.Join(fastDir(t), "tracking.db"), nil)
	defer closeStore(t, s)
	id := tracking.DriverID("d")
	if _, err := s.Commit(t.Context(), app, &tracking.Changeset{Drivers: []tracking.Driver{{
		ID: id, CreatedAt: start, Properties: map[string]string{"bike": "yes"}, Route: []tracking.Stop{{TaskID: "one"}},
	}}}); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		r, err := s.RecordFixes(t.Context(), app, drive(id, start.Add(time.Duration(n)*time.Minute), 1))
		if err != nil {
			t.Fatal(err)
		}
		if r.Driver.Properties["bike"] != "yes" || r.Driver.Route[0].TaskID != "one" {
			t.Fatalf("fixes %d: he has the properties %v and the route %v", n, r.Driver.Properties, r.Driver.Route)
		}
		r.Driver.Properties["bike"], r.Driver.Route[0].TaskID = "no", "other"
	}
}
