package tracking_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// data is a file of the recorded traces; without the folder the test is skipped, in its long form
// it fails.
func data(t testing.TB, name string) []byte {
	t.Helper()
	dir := os.Getenv("TRACKING_DATA")
	if dir == "" && os.Getenv("TRACKING_LONG") == "" {
		t.Skip("TRACKING_DATA does not name the folder of recorded traces")
	}
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// drive reads one of barefoot's recordings of a car in Munich.
func drive(t testing.TB, name string) []tracking.Fix {
	t.Helper()
	var samples []struct{ Point, Time string }
	if err := json.Unmarshal(data(t, "barefoot/"+name), &samples); err != nil {
		t.Fatal(err)
	}
	fixes := make([]tracking.Fix, 0, len(samples))
	for _, s := range samples {
		at, err := time.Parse("2006-01-02 15:04:05-0700", s.Time)
		if err != nil {
			t.Fatal(err)
		}
		f := tracking.Fix{Time: at}
		if _, err := fmt.Sscanf(s.Point, "POINT(%g %g)", &f.LngLat.Lng, &f.LngLat.Lat); err != nil {
			t.Fatal(err)
		}
		fixes = append(fixes, f)
	}
	return fixes
}

// played is a finished trip that was driven like that, its fixes sent in these batches.
func played(t testing.TB, fixes []tracking.Fix, batches ...[]tracking.Fix) (*world, tracking.TripDetail,
	[]tracking.FixOutcome) {
	t.Helper()
	w := newWorld(t)
	w.at = fixes[len(fixes)-1].Time.Add(time.Hour)
	must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "a"}))(t)
	trip := must(w.StartTrip(w.ctx, "a", "drive", tracking.Step{At: fixes[0].Time}))(t)
	var outcomes []tracking.FixOutcome
	for _, b := range batches {
		for part := range slices.Chunk(b, 1000) {
			outcomes = append(outcomes, must(w.RecordFixes(w.ctx, "a", part))(t)...)
		}
	}
	must(w.StopTrip(w.ctx, "a", trip.ID, tracking.Step{At: fixes[len(fixes)-1].Time}))(t)
	return w, must(w.Trip(w.ctx, trip.ID))(t), outcomes
}

// The drive goes through a tunnel, where the receiver stands still for 33 s and then jumps 470 m.
func TestTunnelKeepsEveryGoodFix(t *testing.T) {
	fixes := drive(t, "munich-1hz.json")
	w, trip, outcomes := played(t, fixes, fixes)
	n := 0
	_, path, err := w.TripPath(w.ctx, trip.ID)
	if err != nil {
		t.Fatal(err)
	}
	for f, err := range path {
		if err != nil || !f.Time.Equal(fixes[n].Time) || f.LngLat != fixes[n].LngLat {
			t.Fatalf("point %d is %v (%v), want %v", n, f, err, fixes[n])
		}
		n++
	}
	if n != len(fixes) {
		t.Errorf("%d of %d fixes are in the path", n, len(fixes))
	}
	if jumps := len(slices.DeleteFunc(outcomes, func(o tracking.FixOutcome) bool {
		return o != tracking.FixJump
	})); jumps != 1 {
		t.Errorf("%d looked like jumps, want the one at the end of the tunnel", jumps)
	}
}

func TestSamplingHardlyMatters(t *testing.T) {
	every := drive(t, "munich-1hz.json")
	thin := drive(t, "munich-15s.json")
	_, fine, _ := played(t, every, every)
	_, coarse, _ := played(t, thin, thin)
	t.Logf("1 Hz: %.0f m, %v on the move; every 15 s: %.0f m, %v", fine.Distance, fine.Moving, coarse.Distance,
		coarse.Moving)
	if d := math.Abs(coarse.Distance/fine.Distance - 1); d >= 0.03 {
		t.Errorf("the distance changes by %.1f %%", 100*d)
	}
	if d := math.Abs(coarse.Moving.Seconds()/fine.Moving.Seconds() - 1); d >= 0.03 {
		t.Errorf("the time on the move changes by %.1f %%", 100*d)
	}
}

// In whatever order and batches the drive comes, with a fix whose sign flipped and one that is
// doubled, it is the same trip.
func TestDriveInAnyOrder(t *testing.T) {
	fixes := drive(t, "munich-1hz.json")
	flipped := fixes[300]
	flipped.LngLat.Lng, flipped.Time = -flipped.LngLat.Lng, flipped.Time.Add(500*time.Millisecond)
	sent := append(slices.Clone(fixes), flipped, fixes[7])
	_, want, _ := played(t, fixes, fixes)
	for seed := range uint64(10) {
		r := rand.New(rand.NewPCG(seed, 1))
		r.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
		var batches [][]tracking.Fix
		for rest := sent; len(rest) > 0; {
			k := min(1+r.IntN(300), len(rest))
			batches, rest = append(batches, rest[:k]), rest[k:]
		}
		w, got, _ := played(t, fixes, batches...)
		d := must(w.Driver(w.ctx, "a"))(t)
		if got.Distance != want.Distance || got.Moving != want.Moving || *got.EndsAt != *want.EndsAt ||
			d.Position.Fix.LngLat != fixes[len(fixes)-1].LngLat {
			t.Errorf("seed %d: %.3f m to %v, want %.3f m to %v", seed, got.Distance, got.EndsAt, want.Distance,
				want.EndsAt)
		}
	}
}
