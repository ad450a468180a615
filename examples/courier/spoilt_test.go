package main

import (
	"log/slog"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/examples/courier/internal/trace"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// TestSpoiltDrives spoils each recorded trace: the path stays what it was, in order and in any
// other.
func TestSpoiltDrives(t *testing.T) {
	elsewhere := func(f tracking.Fix, after time.Duration) tracking.Fix {
		return tracking.Fix{
			LngLat: tracking.LngLat{Lng: math.Remainder(f.LngLat.Lng+150, 360), Lat: -f.LngLat.Lat},
			Time:   f.Time.Add(after),
		}
	}
	for _, name := range recordedDrives(t) {
		tr, err := trace.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var fixes []tracking.Fix
		for _, p := range tr.Points {
			fixes = append(fixes, tracking.Fix{LngLat: p.LngLat, Time: p.Time})
		}
		if len(fixes) < 20 {
			continue
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			n := len(fixes)
			middle := n / 2
			gap := fixes[middle+1].Time.Sub(fixes[middle].Time)
			silent := slices.DeleteFunc(slices.Clone(fixes), func(f tracking.Fix) bool {
				d := f.Time.Sub(fixes[middle].Time)
				return d > 0 && d < 2*time.Minute
			})
			coarse := func(f tracking.Fix, after time.Duration) tracking.Fix {
				f = elsewhere(f, after)
				f.Accuracy = tracking.Known(2500)
				return f
			}
			for _, c := range []struct {
				name  string
				drive []tracking.Fix
				more  []tracking.Fix
			}{
				{"as it is", fixes, nil},
				{"a fix from elsewhere first", fixes, []tracking.Fix{elsewhere(fixes[0], -time.Second)}},
				{"a fix from elsewhere last", fixes, []tracking.Fix{elsewhere(fixes[n-1], time.Second)}},
				{"a fix from elsewhere in the middle", fixes, []tracking.Fix{elsewhere(fixes[middle], gap/2)}},
				{
					"coarse fixes", fixes,
					[]tracking.Fix{
						coarse(fixes[0], -time.Second), coarse(fixes[middle], gap/2), coarse(fixes[n-1], time.Second),
					},
				},
				{
					"an island", fixes,
					[]tracking.Fix{
						elsewhere(fixes[middle], gap/4), elsewhere(fixes[middle], gap/2),
						elsewhere(fixes[middle], gap*3/4),
					},
				},
				{"two minutes' silence", silent, nil},
				{
					"two minutes' silence, and a fix from elsewhere", silent,
					[]tracking.Fix{elsewhere(fixes[middle], 119*time.Second+time.Millisecond)},
				},
			} {
				sent := slices.Concat(c.drive, c.more)
				slices.SortFunc(sent, func(a, b tracking.Fix) int { return a.Time.Compare(b.Time) })
				want := pathOf(t, c.drive, c.drive)
				if d := cmp.Diff(c.drive, want); d != "" {
					t.Errorf("%s: the path is not the drive (-want +got):\n%.600s", c.name, d)
				}
				if d := cmp.Diff(want, pathOf(t, c.drive, sent)); d != "" {
					t.Errorf("%s (-want +got):\n%.600s", c.name, d)
				}
				r := rand.New(rand.NewPCG(1, 2))
				r.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
				if d := cmp.Diff(want, pathOf(t, c.drive, sent)); d != "" {
					t.Errorf("%s, in another order (-want +got):\n%.600s", c.name, d)
				}
			}
		})
	}
}

// pathOf is the path of a trip around a drive, of which these fixes were sent.
func pathOf(t *testing.T, drive, sent []tracking.Fix) (path []tracking.Fix) {
	t.Helper()
	first, last := drive[0].Time.Add(-time.Minute), drive[len(drive)-1].Time.Add(time.Minute)
	now := last.Add(time.Hour)
	svc, err := tracking.New(memory.New(),
		&tracking.Options{Logger: slog.New(slog.DiscardHandler), KeepOffDuty: true, Now: func() time.Time {
			return now
		}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: "a"}); err != nil {
		t.Fatal(err)
	}
	for part := range slices.Chunk(sent, 997) {
		if _, err := svc.RecordFixes(t.Context(), "a", part); err != nil {
			t.Fatal(err)
		}
	}
	trip, err := svc.StartTrip(t.Context(), "a", "drive", tracking.Step{At: first})
	if err != nil {
		t.Fatal(err)
	}
	_, fixes, err := svc.TripPath(t.Context(), trip.ID)
	if err != nil {
		t.Fatal(err)
	}
	for f, err := range fixes {
		if err != nil {
			t.Fatal(err)
		}
		path = append(path, f)
	}
	return path
}
