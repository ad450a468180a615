package sqlite_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// cloneDriver copies a driver of a file of version 1 under another id, with position and fixes.
var cloneDriver = []string{
	`CREATE TEMP TABLE d AS SELECT * FROM drivers WHERE app = 1 AND id = ?1`,
	`UPDATE d SET seq = (SELECT max(seq) FROM drivers) + 1, id = ?2, app_token = NULL, ingest_token = NULL`,
	`INSERT INTO drivers SELECT * FROM d`,
	`CREATE TEMP TABLE p AS SELECT * FROM positions WHERE driver = (SELECT seq FROM drivers WHERE app = 1 AND id = ?1)`,
	`CREATE TEMP TABLE f AS SELECT * FROM fixes WHERE driver = (SELECT seq FROM drivers WHERE app = 1 AND id = ?1)`,
	`UPDATE p SET driver = (SELECT max(seq) FROM drivers)`,
	`UPDATE f SET driver = (SELECT max(seq) FROM drivers)`,
	`INSERT INTO positions SELECT * FROM p`,
	`INSERT INTO fixes SELECT * FROM f`,
	`DROP TABLE d`, `DROP TABLE p`, `DROP TABLE f`,
}

// TestUpgradedFixes goes on with drivers of a file of version 1: d1, whose fixes ended well, and
// d2, whose last fix was a jump that nothing had confirmed yet. What comes next, in each of many
// ways, is judged as if all of it had been recorded by this version.
func TestUpgradedFixes(t *testing.T) {
	path, _ := version1(t)
	type move struct {
		name  string
		place float64 // longitude; 0: that of the last good fix
		after time.Duration
	}
	moves := []move{
		{"stay", 0, 10 * time.Second}, {"to where the jump was", -60, 10 * time.Second},
		{"elsewhere", 25, 10 * time.Second},
		{"stay after a silence", 0, 2 * time.Minute}, {"late", 0, -500 * time.Millisecond},
	}
	old := []tracking.DriverID{"d1", "d2"}
	clone := func(of tracking.DriverID, i int) tracking.DriverID { return tracking.DriverID(fmt.Sprint(of, " ", i)) }

	db := raw(t, path)
	db.SetMaxOpenConns(1) // temporary tables are a connection's own
	kept := map[tracking.DriverID][]tracking.Fix{}
	ways := len(moves) * len(moves) * len(moves)
	for _, id := range old {
		var rows []struct {
			Time     int64
			Lng, Lat float64
			Trusted  bool
		}
		if err := db.Select(&rows,
			`SELECT time, lng, lat, trusted FROM fixes WHERE driver = (SELECT seq FROM drivers
		WHERE app = 1 AND id = ?) ORDER BY time`, id); err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			kept[id] = append(kept[id], tracking.Fix{
				LngLat: tracking.LngLat{Lng: r.Lng, Lat: r.Lat}, Time: time.UnixMilli(r.Time).UTC(), Trusted: r.Trusted,
			})
		}
		if _, err := db.Exec(`BEGIN`); err != nil {
			t.Fatal(err)
		}
		for i := range ways {
			for _, step := range cloneDriver {
				if _, err := db.Exec(step, id, clone(id, i)); err != nil {
					t.Fatalf("%s: %v", step, err)
				}
			}
		}
		if _, err := db.Exec(`COMMIT`); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	s := open(t, path, nil)
	defer closeStore(t, s)
	record := func(id tracking.DriverID, fixes ...tracking.Fix) tracking.Recorded {
		t.Helper()
		r, err := s.RecordFixes(t.Context(), app, tracking.FixBatch{
			DriverID: id, SeenAt: fixes[0].Time, KeepOffDuty: true, Fixes: fixes,
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	paths := func(id tracking.DriverID) (list []tracking.Fix) {
		t.Helper()
		for f, err := range s.Fixes(t.Context(), app, id, tracking.FixRange{}) {
			if err != nil {
				t.Fatal(err)
			}
			f.EventID, f.Accuracy, f.Speed, f.Bearing, f.Battery = "", tracking.Reading{}, tracking.Reading{},
				tracking.Reading{}, tracking.Reading{}
			list = append(list, f)
		}
		return list
	}
	for _, id := range old {
		for i := range ways {
			upgraded, fresh := clone(id, i), "new "+clone(id, i)
			cs := &tracking.Changeset{Drivers: []tracking.Driver{{ID: fresh, Person: "p", CreatedAt: start}}}
			if _, err := s.Commit(t.Context(), app, cs); err != nil {
				t.Fatal(err)
			}
			record(fresh, kept[id]...)
			d, err := s.Driver(t.Context(), app, upgraded)
			if err != nil {
				t.Fatal(err)
			}
			if pending := d.Position.Tail == tracking.TailUnknown; pending != (id == "d2") {
				t.Fatalf("%s has the tail %q: the file does not hold what is tested", upgraded, d.Position.Tail)
			}
			now, way := kept[id][len(kept[id])-1].Time, ""
			for n, rest := 0, i; n < 3; n, rest = n+1, rest/len(moves) {
				m := moves[rest%len(moves)]
				f := tracking.Fix{
					LngLat: tracking.LngLat{Lng: m.place, Lat: 48},
					Time:   now.Add(m.after + time.Duration(n)*time.Millisecond),
				}
				if m.place == 0 {
					f.LngLat.Lng = d.Position.Fix.LngLat.Lng
				}
				if m.after > 0 {
					now = f.Time
				}
				way += m.name + "; "
				got, want := record(upgraded, f), record(fresh, f)
				if !cmp.Equal(got.Outcomes, want.Outcomes) {
					t.Errorf("%s, %s: outcome %v, want %v", id, way, got.Outcomes, want.Outcomes)
				}
				a, b := got.Driver.Position.Fix, want.Driver.Position.Fix
				if !a.Time.Equal(b.Time) || a.LngLat != b.LngLat {
					t.Errorf("%s, %s: the position is %v at %v, want %v at %v", id, way, a.LngLat, a.Time, b.LngLat,
						b.Time)
				}
			}
			if d := cmp.Diff(paths(fresh), paths(upgraded)); d != "" {
				t.Errorf("%s, %s: path (-want +got)\n%s", id, way, d)
			}
		}
	}
}

// The first version purged fixes and left the last position. It goes with the next purge, even if
// there is nothing else to purge.
func TestUpgradedPositionIsPurged(t *testing.T) {
	path, held := version1(t)
	db := raw(t, path)
	if _, err := db.Exec(`UPDATE fixes SET mark = -abs(mark); UPDATE positions SET oldest_at = NULL`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, path, nil)
	defer closeStore(t, s)
	located := func() (n int) {
		for _, d := range readApp(t, s, tracking.DefaultApp).Drivers {
			if d.Position.Located() {
				n++
			}
		}
		return n
	}
	if located() == 0 {
		t.Fatal("the file does not hold what is tested")
	}
	if _, err := s.Purge(t.Context(), tracking.Before{Fixes: held.Now.Add(time.Hour), Limit: 1000}); err != nil {
		t.Fatal(err)
	}
	if n := located(); n > 0 {
		t.Errorf("%d drivers have a position still", n)
	}
	byPlace := tracking.DriverFilter{Page: tracking.Page{Limit: 1}, Near: &tracking.LngLat{Lng: 11, Lat: 48}}
	near, _, err := s.Drivers(t.Context(), tracking.DefaultApp, byPlace)
	if err != nil || len(near) > 0 {
		t.Errorf("found by position: %v, %v", near, err)
	}
}

// TestUpgradePacksFixes brings a file of version 10 over, in which each fix is a row: of one driver with
// many and some purged, one with a single one, one without a position whose fixes are all purged, and
// one who is deleted. All of it is there, in order, and purges go on.
func TestUpgradePacksFixes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tracking.db")
	s := open(t, path, sqlite.Options{}.WithMigrations(migratedUntil(t, 10)))
	commitTask(t, s, "a") // makes the application number 1
	closeStore(t, s)
	db := raw(t, path)
	for _, q := range []string{
		`INSERT INTO drivers (seq, app, id, version, name, mobile, email, available, silent, token_generation, created_at)
			SELECT value, 1, 'd' || value, 1, '', '', '', 1, 0, 0, 1710057600000 FROM json_each('[1, 2, 3]')`,
		`INSERT INTO erased (driver) VALUES (4)`,
		`WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 3499)
			INSERT INTO fixes (driver, time, mark, lng, lat, event_id, accuracy, speed, bearing, battery, trusted)
			SELECT driver, 1710057600000 + 4999 * i, iif(i < 40 AND driver <> 2 OR driver = 3, -1, 1) * (1 + i % 6), 80.1 + i / 7e4, i / 1e4,
				iif(i % 9, '', 'event ' || i), iif(i % 3, 5.0, NULL), iif(i % 5, i / 10.0, NULL), NULL, 0.5, i % 7 = 0
			FROM n, (SELECT value AS driver, value % 2 * 50 + iif(value = 1, 3400, 0) AS last FROM json_each('[1, 2, 3, 4]'))
			WHERE i <= last OR driver = 4 AND i < 1200`,
		`INSERT INTO positions (driver, seen_at, oldest_at, fix_time, fix_lng, fix_lat, fix_event_id, fix_trusted)
			SELECT driver, max(time), min(iif(mark > 0, time, NULL)), max(time), lng, lat, event_id, trusted
			FROM fixes WHERE driver < 3 GROUP BY driver HAVING count(*) > 0`,
		`UPDATE positions SET tail = '?'`,
	} {
		if _, err := db.Exec(q); err != nil {
			t.Fatalf("%v\n%s", err, q)
		}
	}
	var rows []struct {
		Driver, Time, Mark                int64
		Lng, Lat                          float64
		EventID                           string `db:"event_id"`
		Accuracy, Speed, Bearing, Battery *float64
		Trusted                           bool
	}
	if err := db.Select(&rows, `SELECT * FROM fixes ORDER BY driver, time`); err != nil {
		t.Fatal(err)
	}
	reading := func(v *float64) tracking.Reading {
		if v == nil {
			return tracking.Reading{}
		}
		return tracking.Known(*v)
	}
	want, seen := map[int64][]tracking.KeptFix{}, 0
	for _, r := range rows {
		if r.Mark > 0 {
			seen++
		}
		want[r.Driver] = append(want[r.Driver], tracking.KeptFix{
			Mark: tracking.FixMark(max(r.Mark, -r.Mark)), Purged: r.Mark < 0, Fix: tracking.Fix{
				LngLat: tracking.LngLat{Lng: r.Lng, Lat: r.Lat}, Time: time.UnixMilli(r.Time).UTC(), EventID: r.EventID,
				Accuracy: reading(r.Accuracy), Speed: reading(r.Speed), Bearing: reading(r.Bearing), Battery: reading(r.Battery),
				Trusted: r.Trusted,
			},
		})
	}
	if len(want[1]) < 3000 || len(want[2]) != 1 || len(want[3]) < 2 || len(want[4]) < 1001 {
		t.Fatal("the file does not hold what is tested")
	}
	db.Close()

	s = open(t, path, nil)
	defer closeStore(t, s)
	reader, err := s.Reader()
	if err != nil {
		t.Fatal(err)
	}
	got, err := sqlite.FixesInFile(reader)
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Fatalf("error %v (-want +got):\n%s", err, d)
	}
	for i, id := range []tracking.DriverID{"d1", "d2", "d3"} {
		list, err := s.KeptFixes(t.Context(), app, id, tracking.FixRange{Limit: 10000})
		if d := cmp.Diff(want[int64(i+1)], list); err != nil || d != "" {
			t.Errorf("%s: error %v (-want +got):\n%s", id, err, d)
		}
	}
	p, err := s.Purge(t.Context(), tracking.Before{Fixes: start.AddDate(1, 0, 0), Limit: 100000})
	if err != nil || p.Fixes != seen {
		t.Errorf("purged %d, want %d; error %v", p.Fixes, seen, err)
	}
	if got, err = sqlite.FixesInFile(reader); err != nil || len(got[1])+len(got[2])+len(got[4]) > 0 {
		t.Errorf("%d, %d and %d fixes are left, error %v", len(got[1]), len(got[2]), len(got[4]), err)
	}
}
