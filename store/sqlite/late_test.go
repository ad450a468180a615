package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	codes "modernc.org/sqlite/lib"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/nearby"
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

// TestLateRows plays histories of fixes, edits, hirings, deletions and purges on a store whose rows
// follow the journal seldom, and on one that lives in memory and has no journal. Both answer the same
// all along, and so does what is opened after a kill.
func TestLateRows(t *testing.T) {
	histories := 6
	if raceDetector {
		histories = 2
	}
	if long() && !raceDetector {
		histories = 60
	}
	for n := range histories {
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

// TestLateReaders reads all along while fixes come and rows follow the journal: what was answered
// before a read began is in it, and of fixes none is missing or there twice.
func TestLateReaders(t *testing.T) {
	opts := sqlite.Options{ReadTimeout: time.Minute}.WithJournal(400, 6)
	s := open(t, filepath.Join(fastDir(t), "tracking.db"), opts)
	defer closeStore(t, s)
	const drivers = 8
	rounds := 300
	if raceDetector {
		rounds = 120
	}
	ids := crew(t, s, drivers)
	indexed(t, s)
	var told [drivers]atomic.Int64 // the last second that was answered
	var writing, reading sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for i, id := range ids {
		writing.Go(func() {
			for n := range rounds {
				if _, err := s.RecordFixes(ctx, app, drive(id, start.Add(time.Duration(n)*time.Second), 1)); err != nil {
					t.Error(err)
					return
				}
				told[i].Store(int64(n))
			}
		})
	}
	since := func(d tracking.Driver) int64 { return int64(d.Position.Fix.Time.Sub(start) / time.Second) }
	readers := []func(i int) (int64, error){
		func(i int) (int64, error) {
			d, err := s.Driver(ctx, app, ids[i])
			return since(d), err
		},
		func(i int) (int64, error) {
			list, _, err := s.Drivers(ctx, app, tracking.DriverFilter{Page: tracking.Page{Limit: 2 * drivers}})
			for _, d := range list {
				if d.ID == ids[i] {
					return since(d), err
				}
			}
			return -1, err
		},
		func(i int) (n int64, err error) {
			for f, err := range s.Fixes(ctx, app, ids[i], tracking.FixRange{}) {
				if err != nil {
					return 0, err
				}
				if !f.Time.Equal(start.Add(time.Duration(n) * time.Second)) {
					return 0, fmt.Errorf("fix %d of %s is of %v", n, ids[i], f.Time)
				}
				n++
			}
			return n - 1, nil
		},
		func(i int) (newest int64, err error) {
			newest = -1
			next := int64(-1)
			for f, err := range s.Fixes(ctx, app, ids[i], tracking.FixRange{Newest: true, Limit: 50}) {
				if err != nil {
					return 0, err
				}
				at := int64(f.Time.Sub(start) / time.Second)
				if newest < 0 {
					newest = at
				} else if at != next {
					return 0, fmt.Errorf("before fix %d of %s is %d", next+1, ids[i], at)
				}
				next = at - 1
			}
			return newest, nil
		},
		func(i int) (n int64, err error) {
			n = -1
			for r, err := range s.Rows(ctx, tracking.RowQuery{Kinds: []tracking.RowKind{tracking.RowFix}, Driver: ids[i]}) {
				if err != nil {
					return 0, err
				}
				n++
				if at := r.Value.(tracking.FixRow).Time; !at.Equal(start.Add(time.Duration(n) * time.Second)) {
					return 0, fmt.Errorf("row %d of %s is of %v", n, ids[i], at)
				}
			}
			return n, nil
		},
	}
	done := make(chan struct{})
	for k, read := range readers {
		reading.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					return
				default:
				}
				i := n % drivers
				least := told[i].Load()
				if got, err := read(i); err != nil || least > 0 && got < least {
					t.Errorf("reader %d: %d was answered, and %d is read, error %v", k, least, got, err)
					return
				}
			}
		})
	}
	writing.Wait()
	close(done)
	reading.Wait()
	if _, sweeps := s.Late(); sweeps < 10 {
		t.Errorf("all rows have followed %d times", sweeps)
	}
}

// TestBlocksGoWithRows looks at the rows alone whenever a block may have been written: no fix that stands in
// a block is still open in the row, though that is behind. So who reads blocks takes what was known of a
// driver before for what it is.
func TestBlocksGoWithRows(t *testing.T) {
	s := openCopy(t, fastDir(t))
	defer closeStore(t, s)
	id := crew(t, s, 1)[0]
	indexed(t, s)
	db, err := s.Reader()
	if err != nil {
		t.Fatal(err)
	}
	behind, blocks := 0, 0
	for n := range 300 {
		b := drive(id, start.Add(time.Duration(n)*time.Second), 1)
		if n%50 == 49 { // it comes late
			b = drive(id, start.Add(time.Duration(n-40)*time.Second+time.Millisecond), 1)
		}
		b.Fixes[0].EventID = fmt.Sprint("an event of some length ", n)
		if _, err := s.RecordFixes(t.Context(), app, b); err != nil {
			t.Fatal(err)
		}
		rows, err := sqlite.FixesInRows(db)
		if err != nil {
			t.Fatal(err)
		}
		all, err := sqlite.FixesInFile(db)
		if err != nil {
			t.Fatal(err)
		}
		for driver, list := range rows {
			behind += len(all[driver]) - len(list)
			for i := range max(len(list), 1) - 1 {
				if !list[i].Time.Before(list[i+1].Time) {
					t.Fatalf("a fix of %v is behind one of %v", list[i+1].Time, list[i].Time)
				}
			}
		}
	}
	if err := db.Get(&blocks, `SELECT count(*) FROM fix_blocks`); err != nil || blocks < 5 || behind < 1000 {
		t.Errorf("%d blocks, and rows that lack %d fixes in all, error %v", blocks, behind, err)
	}
}

// TestRowOfThePlace reads fixes with what was known of their driver just before his row was written, up to the
// same place of the journal: what the row says counts.
func TestRowOfThePlace(t *testing.T) {
	s := openCopy(t, fastDir(t))
	defer closeStore(t, s)
	id := crew(t, s, 1)[0]
	indexed(t, s)
	for n := range 2 { // the second writes blocks, and so the row
		b := drive(id, start.Add(time.Duration(n)*time.Minute), 1+1000*n)
		if _, err := s.RecordFixes(t.Context(), app, b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.AsOfBefore(app, id); err != nil {
		t.Fatal(err)
	}
	for _, newest := range []bool{false, true} {
		list, err := s.KeptFixes(t.Context(), app, id, tracking.FixRange{Newest: newest, Limit: 2000})
		if err != nil || len(list) != 1002 {
			t.Errorf("newest first %v: %d fixes, want 1002, error %v", newest, len(list), err)
		}
	}
}

// TestPlaceOfAnother has a driver deleted and another one have his id, with fixes at once: to who knows of him
// who was before, the new one's row is the newer.
func TestPlaceOfAnother(t *testing.T) {
	s := openCopy(t, fastDir(t))
	defer closeStore(t, s)
	id := crew(t, s, 1)[0]
	indexed(t, s)
	for n := range 5 {
		if _, err := s.RecordFixes(t.Context(), app, drive(id, start.Add(time.Duration(n)*time.Second), 1)); err != nil {
			t.Fatal(err)
		}
	}
	before := s.LatePlace(app, id)
	d, err := s.Driver(t.Context(), app, id)
	if err != nil || before == 0 {
		t.Fatalf("he is known up to %d, error %v", before, err)
	}
	_, err = s.Commit(t.Context(), app, &tracking.Changeset{
		DeleteDrivers: []tracking.Driver{d}, Drivers: []tracking.Driver{{ID: id, Available: true, CreatedAt: start}},
		Fixes: []tracking.FixBatch{drive(id, start.Add(time.Hour), 1)},
	})
	if err != nil {
		t.Fatal(err)
	}
	db, err := s.Reader()
	if err != nil {
		t.Fatal(err)
	}
	var after int64
	if err := db.Get(&after, `SELECT place FROM positions`); err != nil || after < before {
		t.Errorf("the row has place %d, before there was %d, error %v", after, before, err)
	}
}

// TestLateIndex opens a store whose rows are behind: the nearest are those of the journal.
func TestLateIndex(t *testing.T) {
	s := openCopy(t, fastDir(t))
	defer closeStore(t, s)
	ids := crew(t, s, 3)
	indexed(t, s)
	at := func(lat float64, after time.Duration) tracking.FixBatch {
		return tracking.FixBatch{SeenAt: start.Add(after), Fixes: []tracking.Fix{{
			LngLat: tracking.LngLat{Lng: 80.27, Lat: lat}, Time: start.Add(after),
		}}}
	}
	for n, id := range ids {
		for k, lat := range []float64{13, 13.5 + float64(n)/10} {
			b := at(lat, time.Duration(k)*24*time.Hour)
			b.DriverID = id
			if _, err := s.RecordFixes(t.Context(), app, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	again := asKilled(t, s, nil)
	defer closeStore(t, again)
	if late, _ := again.Late(); late != len(ids) {
		t.Fatalf("%d drivers are late, want %d", late, len(ids))
	}
	near := tracking.DriverFilter{Near: &tracking.LngLat{Lng: 80.27, Lat: 13.7}, Page: tracking.Page{Limit: 3}}
	got, _, err := again.Drivers(t.Context(), app, near)
	if err != nil || len(got) != 3 || got[0].ID != ids[2] || got[2].ID != ids[0] {
		t.Errorf("the nearest are %v, error %v", got, err)
	}
	// A list looks at the rows again, and mends what the index says.
	if hits := again.Index(app).Near(*near.Near, nearby.Filter{}, 0, 1, nil); len(hits) != 1 || hits[0].ID != ids[2] {
		t.Errorf("the nearest in the index is %v", hits)
	}
	want, _, err := s.Drivers(t.Context(), app, near)
	if d := cmp.Diff(want, got, cmpopts.EquateApproxTime(0)); err != nil || d != "" {
		t.Errorf("error %v (-want +got):\n%s", err, d)
	}
}

// TestSweepWhileIndexFills has all rows brought up to date when the index has read them as they were and
// is not through: the nearest are as of the journal.
func TestSweepWhileIndexFills(t *testing.T) {
	s := openCopy(t, fastDir(t))
	defer closeStore(t, s)
	ids := crew(t, s, 2)
	indexed(t, s)
	for i, id := range ids {
		for k, lat := range []float64{13 + float64(i), 14 - float64(i)} { // they change places
			at := start.Add(time.Duration(k) * 24 * time.Hour)
			b := tracking.FixBatch{DriverID: id, SeenAt: at, Fixes: []tracking.Fix{{
				LngLat: tracking.LngLat{Lng: 80.27, Lat: lat}, Time: at,
			}}}
			if _, err := s.RecordFixes(t.Context(), app, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	if late, _ := s.Late(); late != len(ids) {
		t.Fatalf("%d drivers are late, want %d", late, len(ids))
	}
	err := s.RefillIndex(func() {
		if _, err := s.Purge(t.Context(), tracking.Before{Limit: 1}); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	got := s.Index(app).Near(tracking.LngLat{Lng: 80.27, Lat: 14}, nearby.Filter{}, 0, 1, nil)
	if len(got) != 1 || got[0].ID != ids[0] {
		t.Errorf("the nearest is %v, want %s", got, ids[0])
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

// TestDamagedJournal opens files whose journal nobody has written: they are refused in a sentence.
func TestDamagedJournal(t *testing.T) {
	s := openCopy(t, fastDir(t))
	defer closeStore(t, s)
	ids := crew(t, s, 20)
	indexed(t, s)
	for n := range 15 {
		for _, id := range ids {
			b := drive(id, start.Add(time.Duration(n)*time.Second), 1)
			if n == 0 {
				b.Fixes[0].EventID = strings.Repeat("e", 100)
			}
			if _, err := s.RecordFixes(t.Context(), app, b); err != nil {
				t.Fatal(err)
			}
		}
	}
	dir := fastDir(t)
	path := filepath.Join(dir, filepath.Base(s.Path()))
	change := func(do func(chunks [][]byte) [][]byte, statement string) {
		t.Helper()
		if err := emptyDir(dir); err != nil {
			t.Fatal(err)
		}
		copyFiles(t, dir, filepath.Dir(s.Path()))
		db := raw(t, path)
		defer db.Close()
		var chunks [][]byte
		if err := db.Select(&chunks, `SELECT packed FROM recorded ORDER BY n`); err != nil || len(chunks) != 3 {
			t.Fatalf("there are %d chunks, want 3, error %v", len(chunks), err)
		}
		db.MustExec(`DELETE FROM recorded`)
		for n, c := range do(chunks) {
			if c != nil {
				db.MustExec(`INSERT INTO recorded VALUES (?, ?)`, n, c)
			}
		}
		if statement != "" {
			db.MustExec(statement)
		}
	}
	refused := func(what string) {
		t.Helper()
		got, err := sqlite.Open(path, nil)
		if err == nil {
			closeStore(t, got)
		}
		var refused *sqlite.OpenError
		if !errors.As(err, &refused) || !errors.Is(err, sqlite.ErrDamaged) || refused.Advice == "" {
			t.Errorf("%s: got error %v, want ErrDamaged", what, err)
		}
	}
	for _, d := range damaged {
		change(d.do, "")
		refused(d.what)
	}
	as := func(c [][]byte) [][]byte { return c }
	change(as, `UPDATE positions SET place = 1 << 40`)
	refused("a row that has more than the journal")
	change(as, `UPDATE positions SET open = NULL`)
	refused("a row that has less than what stays of it")
	r := rand.New(rand.NewPCG(5, 6))
	opened := 0
	for range 40 {
		var made string
		change(func(c [][]byte) [][]byte {
			n, at := r.IntN(len(c)), r.IntN(4000-10)
			for i := range 1 + r.IntN(10) {
				c[n][at+i] = byte(r.Uint32())
			}
			made = fmt.Sprintf("chunk %d, other bytes at %d", n, at)
			return c
		}, "")
		got, err := sqlite.Open(path, &sqlite.Options{Logger: slog.New(slog.DiscardHandler)})
		switch {
		case err == nil:
			opened++
			for range got.Rows(t.Context(), tracking.RowQuery{}) { // an error is none of the journal's
			}
			closeStore(t, got)
		case !errors.Is(err, sqlite.ErrDamaged):
			t.Errorf("%s: got error %v, want ErrDamaged", made, err)
		}
	}
	t.Logf("of 40 with other bytes %d are opened", opened)
}

// TestLateGroups plays histories of which several changes are of one transaction: commits that are refused
// beside others, after their fixes and deletions, some that share a savepoint, some that are undone and
// applied again, and fixes of one driver in a row. What is kept is what a store without a journal has that
// was given one after another.
func TestLateGroups(t *testing.T) {
	histories := 6
	if raceDetector {
		histories = 1
	}
	if long() && !raceDetector {
		histories = 60
	}
	for n := range histories {
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

// TestLateReadersOfAnother reads all along while a driver is deleted and another one has his id: nobody is
// seen with the fixes of who was before, nor with some of his own left out.
func TestLateReadersOfAnother(t *testing.T) {
	s := open(t, filepath.Join(fastDir(t), "tracking.db"), sqlite.Options{ReadTimeout: time.Minute}.WithJournal(1000, 6))
	defer closeStore(t, s)
	indexed(t, s)
	const id = tracking.DriverID("driver-0")
	people := 25
	if raceDetector {
		people = 8
	}
	r := rand.New(rand.NewPCG(9, 9))
	done := make(chan struct{})
	var all sync.WaitGroup
	defer all.Wait()
	defer close(done)
	// The fixes of the person n are n hours and some seconds behind the start, in a row.
	person := func(f tracking.Fix) int { return int(f.Time.Sub(start) / time.Hour) }
	row := func(list []tracking.Fix) error {
		for i, f := range list {
			if want := start.Add(time.Duration(person(list[0]))*time.Hour + time.Duration(i)*time.Second); !f.Time.Equal(want) {
				return fmt.Errorf("fix %d of %d is of %v, want %v", i, len(list), f.Time, want)
			}
		}
		return nil
	}
	fixes := func(newest bool) ([]tracking.Fix, error) {
		var list []tracking.Fix
		for f, err := range s.Fixes(t.Context(), app, id, tracking.FixRange{Newest: newest}) {
			if err != nil {
				return nil, err
			}
			list = append(list, f)
		}
		if newest {
			slices.Reverse(list)
		}
		return list, nil
	}
	for k, read := range []func() error{
		func() error {
			d, err := s.Driver(t.Context(), app, id)
			if errors.Is(err, tracking.ErrNotFound) {
				return nil
			}
			if err == nil && d.Position.Located() && fmt.Sprint(person(d.Position.Fix)) != d.Person {
				err = fmt.Errorf("person %s is at the fix of %v", d.Person, d.Position.Fix.Time)
			}
			return err
		},
		func() error {
			list, err := fixes(false)
			return errors.Join(err, row(list))
		},
		func() error {
			list, err := fixes(true)
			return errors.Join(err, row(list))
		},
		func() error {
			var is string
			var list []tracking.Fix
			for r, err := range s.Rows(t.Context(), tracking.RowQuery{Driver: id}) {
				if err != nil {
					return err
				}
				switch v := r.Value.(type) {
				case tracking.DriverRow:
					if is = v.Person; v.Position.Located() && fmt.Sprint(person(v.Position.Fix)) != is {
						return fmt.Errorf("person %s is at the fix of %v", is, v.Position.Fix.Time)
					}
				case tracking.FixRow:
					list = append(list, v.Fix)
				}
			}
			if len(list) > 0 && fmt.Sprint(person(list[0])) != is {
				return fmt.Errorf("person %s has the fix of %v", is, list[0].Time)
			}
			return row(list)
		},
	} {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if err := read(); err != nil {
					t.Errorf("reader %d: %v", k, err)
					return
				}
			}
		})
	}
	for n := range people {
		var cs tracking.Changeset
		if n > 0 {
			d, err := s.Driver(t.Context(), app, id)
			if err != nil {
				t.Fatal(err)
			}
			cs.DeleteDrivers = []tracking.Driver{d}
		}
		cs.Drivers = []tracking.Driver{{ID: id, Person: fmt.Sprint(n), Available: true, CreatedAt: start}}
		from := start.Add(time.Duration(n) * time.Hour)
		began := r.IntN(3) // fixes in the transaction that makes him
		cs.Fixes = []tracking.FixBatch{drive(id, from, began)}
		if _, err := s.Commit(t.Context(), app, &cs); err != nil {
			t.Fatal(err)
		}
		for k := range r.IntN(90) {
			b := drive(id, from.Add(time.Duration(began+k)*time.Second), 1)
			if _, err := s.RecordFixes(t.Context(), app, b); err != nil {
				t.Fatal(err)
			}
		}
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

// TestReadKeepsSweepsOff has all rows brought up to date in each read of them: after a few the next one is
// kept off, so that a read ends.
func TestReadKeepsSweepsOff(t *testing.T) {
	s := openCopy(t, fastDir(t))
	defer closeStore(t, s)
	id := crew(t, s, 1)[0]
	indexed(t, s)
	n := 0
	fix := func() {
		if _, err := s.RecordFixes(t.Context(), app, drive(id, start.Add(time.Duration(n)*time.Second), 1)); err != nil {
			t.Error(err)
		}
		n++
	}
	fix()
	swept := make(chan error, 1)
	sweep := func() { _, err := s.Purge(t.Context(), tracking.Before{Limit: 1}); swept <- err }
	reads := 0
	err := s.ReadCorrected(t.Context(), func(context.Context) error {
		reads++
		fix()
		go sweep()
		if reads < 4 {
			return <-swept
		}
		select {
		case err := <-swept:
			t.Fatalf("it is not kept off, error %v", err)
		case <-time.After(100 * time.Millisecond):
		}
		return nil
	})
	if err != nil || reads != 4 {
		t.Errorf("error %v, after %d reads, want 4", err, reads)
	}
	select {
	case err := <-swept:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it is kept off for good")
	}
}
