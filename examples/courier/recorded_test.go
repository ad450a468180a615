package main

import (
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/examples/courier/internal/trace"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// dataDir is the folder of recorded drives. Without it the test is skipped, in its long form it
// fails.
func dataDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TRACKING_DATA")
	if dir == "" {
		if os.Getenv("TRACKING_LONG") == "1" {
			t.Fatal("TRACKING_DATA must name the folder of test data when TRACKING_LONG=1")
		}
		t.Skip("TRACKING_DATA does not name the folder of test data")
	}
	return dir
}

// recordedDrives are the files of all of them.
func recordedDrives(t *testing.T) (names []string) {
	t.Helper()
	for _, pattern := range []string{"barefoot/*.json", "gpxpy/*.gpx", "graphhopper/*.gpx"} {
		found, err := filepath.Glob(filepath.Join(dataDir(t), pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("there are no traces %s: %v", pattern, err)
		}
		names = append(names, found...)
	}
	return names
}

// TestRecordedDrives plays every recorded trace against the service. No rule drops a point of them
// in the end, so that each history is its trace.
func TestRecordedDrives(t *testing.T) {
	names := recordedDrives(t)
	svc, err := tracking.New(memory.New(), &tracking.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := httpadapter.New(svc, &httpadapter.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()

	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			tr, err := trace.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			inv, err := svc.InviteDriver(t.Context(), tracking.NewInvite{})
			if err != nil {
				t.Fatal(err)
			}
			out, log, err := courier(t, "-server", server.URL, "-code", fmt.Sprint(inv.Code), "-fast", name)
			if len(tr.Points) == 0 {
				if err == nil || !strings.Contains(err.Error(), "nothing to send") {
					t.Errorf("a file without usable points ends with %v", err)
				}
				return
			}
			if err != nil || log != "" {
				t.Fatalf("error %v, log %q; output:\n%s", err, log, out)
			}
			trips, _, err := svc.Trips(t.Context(), tracking.TripFilter{DriverID: inv.DriverID})
			if err != nil || len(trips) != 1 || trips[0].Status != tracking.TripStopped {
				t.Fatalf("the trips of the driver are %+v, error %v; want one that has stopped", trips, err)
			}
			if d, err := svc.Driver(t.Context(), inv.DriverID); err != nil || d.Available {
				t.Errorf("afterwards the driver is %+v, error %v; want him off duty", d, err)
			}
			_, path, err := svc.TripPath(t.Context(), trips[0].ID)
			if err != nil {
				t.Fatal(err)
			}
			var got []trace.Point
			for f, err := range path {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, trace.Point{LngLat: f.LngLat, Time: f.Time, Speed: f.Speed, Bearing: f.Bearing})
			}
			if len(got) == 0 {
				t.Fatalf("the history is empty; output:\n%s", out)
			}
			want := shifted(tr.Points, got[0].Time.Sub(tr.Points[0].Time))
			if len(got) != len(want) {
				t.Fatalf("the history has %d points, the trace %d; output:\n%s", len(got), len(want), out)
			}
			for i := range want {
				if diff := cmp.Diff(want[i], got[i]); diff != "" {
					t.Fatalf("point %d of the history is not that of the trace (-trace +history):\n%s", i, diff)
				}
			}
			if ago := time.Since(got[len(got)-1].Time); ago < 0 || ago > time.Minute {
				t.Errorf("the drive ended %v ago, want just now", ago)
			}
			// The tunnel: 470 m in a second, which the next fix confirms.
			jumps := map[string]int{"munich-1hz.json": 1}[filepath.Base(name)]
			said := fmt.Sprintf("Sent %s:\n  live %11d  kept: it was the live position\n",
				plural(len(got), "fix", "fixes"), len(got)-jumps)
			if jumps > 0 {
				said += fmt.Sprintf("  jump %11d  set aside: ", jumps)
			}
			if i := strings.Index(out, said); i < 0 || jumps == 0 && i+len(said) != len(out) {
				t.Errorf("it says\n%swant\n%s", out, said)
			}
		})
	}
}
