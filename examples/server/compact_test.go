package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// A command removes what the erased have left from a file, keeps what is kept, and gives space back.
func TestCompactCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tracking.db")
	store, err := sqlite.Open(file, &sqlite.Options{CompactOnRequest: true})
	if err != nil {
		t.Fatal(err)
	}
	old := time.Now().AddDate(-1, 0, 0)
	svc, err := tracking.New(store, &tracking.Options{Now: func() time.Time { return old }})
	if err != nil {
		t.Fatal(err)
	}
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	yes, said := true, map[string]string{"said": strings.Repeat("canary ", 30)}
	for _, id := range []tracking.DriverID{"kept", "erased"} {
		_, err = svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: id, Available: &yes, Properties: said})
		ok(err)
		for i := range 20 {
			var fixes []tracking.Fix
			for k := range 500 {
				fixes = append(fixes, tracking.Fix{
					LngLat: tracking.LngLat{Lng: 11, Lat: 48}, Time: old.Add(time.Duration(k-500*(i+1)) * time.Second),
				})
			}
			_, err = svc.RecordFixes(t.Context(), id, fixes)
			ok(err)
		}
		said = map[string]string{}
	}
	_, err = svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: "kept", Properties: said})
	ok(err)
	ok(svc.ForceDeleteDriver(t.Context(), "erased"))
	ok(store.Close())
	before, err := os.ReadFile(file)
	ok(err)

	runCommand(t, "compact", "-store", "sqlite:"+file)
	after, err := os.ReadFile(file)
	ok(err)
	if len(after) >= len(before) || bytes.Contains(after, []byte("canary")) {
		t.Errorf("of %d bytes %d are left; the canary is there: %v", len(before), len(after),
			bytes.Contains(after, []byte("canary")))
	}
	const cookie = 40 // where the header of a file counts what a VACUUM raises, too
	was, is := binary.BigEndian.Uint32(before[cookie:]), binary.BigEndian.Uint32(after[cookie:])
	if is-was != 1 {
		t.Errorf("the file was written anew %d times, want once", is-was)
	}
	store, err = sqlite.Open(file, nil)
	ok(err)
	defer store.Close()
	d, err := store.Driver(t.Context(), tracking.DefaultApp, "kept")
	ok(err)
	if d.Position.Fix.Time.IsZero() {
		t.Error("fixes that are kept are gone")
	}

	var log strings.Builder
	err = run(t.Context(), []string{"compact", "-store", "postgres:///none"}, streams{log: &log, env: noEnv})
	if err == nil || !strings.Contains(log.String(), "store/postgres") {
		t.Errorf("of a database: error %v, and\n%s", err, &log)
	}
}
