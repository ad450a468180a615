package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

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
