package sqlite_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/nearby"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

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
