package sqlite_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// TestDeleteDriverTouchesNoFix counts what the deletion of a driver leaves in the file: all of his
// fixes, for purges to take away a step at a time.
func TestDeleteDriverTouchesNoFix(t *testing.T) {
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, nil)
	defer closeStore(t, s)
	const fixes, step = 3000, 1000
	cs := &tracking.Changeset{Drivers: []tracking.Driver{{ID: "d", Available: true, CreatedAt: start}}}
	if _, err := s.Commit(t.Context(), app, cs); err != nil {
		t.Fatal(err)
	}
	b := tracking.FixBatch{DriverID: "d", SeenAt: start}
	for i := range fixes {
		b.Fixes = append(b.Fixes, tracking.Fix{
			LngLat: tracking.LngLat{Lng: 11, Lat: 48}, Time: start.Add(time.Duration(i) * time.Second),
		})
	}
	if _, err := s.RecordFixes(t.Context(), app, b); err != nil {
		t.Fatal(err)
	}
	d, err := s.Driver(t.Context(), app, "d")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), app, &tracking.Changeset{DeleteDrivers: []tracking.Driver{d}}); err != nil {
		t.Fatal(err)
	}
	db, err := s.Reader()
	if err != nil {
		t.Fatal(err)
	}
	for left := fixes; ; left -= step {
		kept, err := sqlite.FixesInFile(db)
		if err != nil {
			t.Fatal(err)
		}
		if len(kept[d.Seq]) != left {
			t.Fatalf("%d fixes are in the file, want %d", len(kept[d.Seq]), left)
		}
		if left == 0 {
			break
		}
		var erased int
		if err := db.Get(&erased, "SELECT count(*) FROM erased"); err != nil || erased != 1 {
			t.Errorf("%d drivers are noted as erased, want 1, error %v", erased, err)
		}
		if p, err := s.Purge(t.Context(), tracking.Before{Limit: step}); err != nil || p.Fixes != step {
			t.Fatalf("Purge: %+v, error %v; want %d fixes", p, err, step)
		}
	}
	if _, err := s.Purge(t.Context(), tracking.Before{Limit: step}); err != nil {
		t.Fatal(err)
	}
	var erased int
	if err := db.Get(&erased, "SELECT count(*) FROM erased"); err != nil || erased != 0 {
		t.Errorf("%d drivers are noted as erased in the end, error %v", erased, err)
	}
}

// BenchmarkDeleteDriver deletes a driver with 100,000 fixes.
func BenchmarkDeleteDriver(b *testing.B) {
	s := open(b, filepath.Join(b.TempDir(), "tracking.db"), nil)
	defer closeStore(b, s)
	for b.Loop() {
		b.StopTimer()
		cs := &tracking.Changeset{Drivers: []tracking.Driver{{ID: "d", Available: true, CreatedAt: start}}}
		if _, err := s.Commit(b.Context(), app, cs); err != nil {
			b.Fatal(err)
		}
		for n := range 100 {
			batch := tracking.FixBatch{DriverID: "d", SeenAt: start}
			for i := range 1000 {
				batch.Fixes = append(batch.Fixes, tracking.Fix{
					LngLat: tracking.LngLat{Lng: 11, Lat: 48}, Time: start.Add(time.Duration(1000*n+i) * time.Second),
				})
			}
			if _, err := s.RecordFixes(b.Context(), app, batch); err != nil {
				b.Fatal(err)
			}
		}
		d, err := s.Driver(b.Context(), app, "d")
		if err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if _, err := s.Commit(b.Context(), app, &tracking.Changeset{DeleteDrivers: []tracking.Driver{d}}); err != nil {
			b.Fatal(err)
		}
	}
}

// TestErasedIsInNoByte has a person's deliveries among many others in a file, erases the person, deletes
// a task and a file, and looks for what was said of them in all bytes of the file, its log and a backup.
func TestErasedIsInNoByte(t *testing.T) {
	const name, mobile, street, note, picture = "Canaryname", "+49 170 5550142", "Canary Street", "canary note", "canary of a picture"
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, nil)
	svc, err := tracking.New(s, &tracking.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, yes, here := t.Context(), true, &tracking.LngLat{Lng: 11, Lat: 48}
	if _, err := svc.SaveDriver(ctx, tracking.DriverUpdate{ID: "d", Available: &yes, LngLat: here}); err != nil {
		t.Fatal(err)
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var hers []tracking.TaskID
	for i := range 600 {
		who, number, where := fmt.Sprint("Other", i), fmt.Sprint("+49 89 ", 1000+i), fmt.Sprint("Other Street ", i)
		said := strings.Repeat("other note ", i%40)
		if i%6 == 0 {
			who, number, where, said = name, mobile, fmt.Sprint(street, " ", i), strings.Repeat(note+" ", 1+i%300)
		}
		task, err := svc.CreateTask(ctx, tracking.NewTask{
			Type: tracking.TypeDrop, Notes: said, OrderID: fmt.Sprint("#", i),
			Drop: &tracking.Place{LngLat: here, Address: where, Customer: &tracking.Contact{Name: who, Mobile: number}},
		})
		ok(err)
		if i%6 != 0 {
			continue
		}
		hers = append(hers, task.ID)
		if i%60 != 0 {
			_, err = svc.CancelTask(ctx, task.ID, tracking.Reason{Text: note})
			ok(err)
			continue
		}
		_, err = svc.AssignTask(ctx, task.ID, "d")
		ok(err)
		_, _, err = svc.StartTask(ctx, "d", task.ID, tracking.Step{LngLat: here})
		ok(err)
		data := append([]byte("\xff\xd8\xff"), strings.Repeat(picture+" ", 1+i*40)...)
		_, _, err = svc.AddProof(ctx, "d", task.ID, tracking.NewProof{Kind: tracking.ProofPhoto, Type: "image/jpeg", Data: data})
		ok(err)
		link, err := svc.TaskLink(ctx, task.ID)
		ok(err)
		ok(svc.NoteFromCustomer(ctx, link, note))
		_, err = svc.FinishTask(ctx, "d", task.ID, tracking.Completion{ReceivedBy: name, Note: note}, tracking.Step{})
		ok(err)
	}
	// A search keeps words folded.
	canaries := []string{name, strings.ToLower(name), mobile, "49170555", street, note, picture}
	found := func() (list []string) {
		for _, file := range []string{path, path + "-wal", path + ".backup"} {
			data, err := os.ReadFile(file)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			for _, canary := range canaries {
				if n := bytes.Count(data, []byte(canary)); n > 0 {
					list = append(list, fmt.Sprintf("%q %d times in %s", canary, n, filepath.Base(file)))
				}
			}
		}
		return list
	}
	if len(found()) < len(canaries) {
		t.Fatalf("found only %q, so that nothing is shown", found())
	}
	for _, id := range hers[:3] { // one that was driven, and others
		ok(svc.DeleteTask(ctx, id))
	}
	n, err := svc.EraseContact(ctx, mobile)
	if n != len(hers)-3 || err != nil {
		t.Fatalf("erased from %d tasks, error %v", n, err)
	}
	for {
		p, err := svc.Purge(ctx)
		ok(err)
		if p.Total() == 0 {
			break
		}
	}
	if _, err := svc.Task(ctx, "none"); err == nil { // the log is emptied behind the purge
		t.Fatal("there is no such task")
	}
	ok(s.SetMemo(ctx, "behind", nil))
	ok(s.Backup(ctx, path+".backup"))
	if left := found(); len(left) > 0 {
		t.Errorf("while it is open: %q", left)
	}
	closeStore(t, s)
	if left := found(); len(left) > 0 {
		t.Errorf("after it was closed: %q", left)
	}
}

// TestMergesOverwriteWhereTermsAreDeleted has FTS5 merge its first 16 segments with a commit that only adds
// a task, and with one that replaces what a task is found by. The first leaves the pages of the segments
// as they were, which is fewer writes; the second none of them.
func TestMergesOverwriteWhereTermsAreDeleted(t *testing.T) {
	for _, replaces := range []bool{false, true} {
		t.Run(fmt.Sprintf("replaces %v", replaces), func(t *testing.T) {
			path := filepath.Join(fastDir(t), "tracking.db")
			s := open(t, path, nil)
			for n := range 16 {
				var cs tracking.Changeset
				for i := range 60 {
					cs.Tasks = append(cs.Tasks, created(60*n+i).Tasks...)
				}
				if replaces && n == 15 {
					task, err := s.Task(t.Context(), app, created(3).Tasks[0].ID)
					if err != nil {
						t.Fatal(err)
					}
					task.Drop.Address = "1 Second Avenue"
					cs.Tasks = append(cs.Tasks, task)
				}
				if _, err := s.Commit(t.Context(), app, &cs); err != nil {
					t.Fatal(err)
				}
			}
			if how, err := s.Overwrites(t.Context()); how != 1 || err != nil {
				t.Errorf("what is deleted next: secure_delete is %d, error %v", how, err)
			}
			closeStore(t, s)
			free := freePages(t, path)
			if len(free) < 10 {
				t.Fatalf("%d pages are free, so that nothing is shown", len(free))
			}
			kept := slices.ContainsFunc(free, func(page []byte) bool { return len(bytes.Trim(page, "\x00")) > 0 })
			if kept == replaces {
				t.Errorf("there is something in free pages: %v", kept)
			}
		})
	}
}

// freePages are the leaves of the list of free pages of a file that nobody has open.
func freePages(t testing.TB, path string) (list [][]byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	number := func(at int) int { return int(binary.BigEndian.Uint32(data[at:])) }
	const size = 4096
	for trunk := number(32); trunk != 0; {
		at := (trunk - 1) * size
		for i := range number(at + 4) {
			from := (number(at+8+4*i) - 1) * size
			list = append(list, data[from:from+size])
		}
		trunk = number(at)
	}
	return list
}

// TestErasedFixesAreInNoByte has fixes in chunks of the journal, of this generation and of older ones, and
// their drivers deleted, or them purged by their age: then there is no byte of them.
func TestErasedFixesAreInNoByte(t *testing.T) {
	const canary = "canary-of-a-fix"
	for _, deleted := range []bool{true, false} {
		for _, followed := range []bool{true, false} { // the rows, before
			t.Run(fmt.Sprintf("deleted %v, followed %v", deleted, followed), func(t *testing.T) {
				opts := sqlite.Options{CompactOnRequest: true}
				if followed {
					opts = *opts.WithJournal(20_000, 100)
				}
				path := filepath.Join(fastDir(t), "tracking.db")
				s := open(t, path, &opts)
				defer closeStore(t, s)
				ids := crew(t, s, 10)
				indexed(t, s)
				for n := range 40 {
					for _, id := range ids {
						b := drive(id, start.Add(time.Duration(n)*time.Second), 1)
						b.Fixes[0].EventID = fmt.Sprint(canary, n)
						if _, err := s.RecordFixes(t.Context(), app, b); err != nil {
							t.Fatal(err)
						}
					}
				}
				for n := 40; followed; n++ { // until there is nothing but older generations
					if late, _ := s.Late(); late == 0 {
						break
					}
					b := drive(ids[0], start.Add(time.Duration(n)*time.Second), 1)
					b.Fixes[0].EventID = fmt.Sprint(canary, n)
					if _, err := s.RecordFixes(t.Context(), app, b); err != nil {
						t.Fatal(err)
					}
				}
				if _, sweeps := s.Late(); sweeps > 0 != followed {
					t.Fatalf("rows have followed %d times", sweeps)
				}
				db, err := s.Reader()
				if err != nil {
					t.Fatal(err)
				}
				recorded := func() int {
					var chunks [][]byte
					if err := db.Select(&chunks, `SELECT packed FROM recorded`); err != nil {
						t.Fatal(err)
					}
					return bytes.Count(bytes.Join(chunks, nil), []byte(canary))
				}
				if n := recorded(); n < 100 {
					t.Fatalf("found %d, so that nothing is shown", n)
				}
				before := tracking.Before{Limit: 100}
				if deleted {
					for _, id := range ids {
						d, err := s.Driver(t.Context(), app, id)
						if err != nil {
							t.Fatal(err)
						}
						cs := &tracking.Changeset{DeleteDrivers: []tracking.Driver{d}}
						if _, err := s.Commit(t.Context(), app, cs); err != nil {
							t.Fatal(err)
						}
					}
					if n := recorded(); n > 0 { // what is packed in blocks goes with the purge
						t.Errorf("%d are in the journal when all drivers are deleted", n)
					}
				} else {
					before.Fixes = start.Add(time.Hour)
				}
				for {
					p, err := s.Purge(t.Context(), before)
					if err != nil {
						t.Fatal(err)
					}
					if p.Total() < before.Limit {
						break
					}
				}
				if err := s.Compact(t.Context()); err != nil {
					t.Fatal(err)
				}
				for _, file := range []string{path, path + "-wal"} {
					data, err := os.ReadFile(file)
					if err != nil && !os.IsNotExist(err) {
						t.Fatal(err)
					}
					if n := bytes.Count(data, []byte(canary)); n > 0 {
						t.Errorf("%d are in %s", n, filepath.Base(file))
					}
				}
			})
		}
	}
}
