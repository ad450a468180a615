package tracking

import (
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type taxiTrip struct {
	seconds  float64
	from, to LngLat
}

// taxiTrips are 682 real ones.
func taxiTrips(t *testing.T) (trips []taxiTrip) {
	t.Helper()
	dir := os.Getenv("TRACKING_DATA")
	if dir == "" && os.Getenv("TRACKING_LONG") == "" {
		t.Skip("TRACKING_DATA does not name the folder of recorded trips")
	}
	f, err := os.Open(filepath.Join(dir, "barefoot/nyc-taxi-trips-2013.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		var v [5]float64 // seconds, from, to
		for i, column := range []int{3, 5, 6, 7, 8} {
			if v[i], err = strconv.ParseFloat(row[column], 64); err != nil {
				t.Fatal(err)
			}
		}
		trips = append(trips, taxiTrip{v[0], LngLat{v[1], v[2]}, LngLat{v[3], v[4]}})
	}
	return trips
}

// On real taxi trips the estimate, knowing only where they begin and end, is no worse than its
// formula promises.
func TestEstimateOnTaxiTrips(t *testing.T) {
	var off []float64
	for _, trip := range taxiTrips(t) {
		took := estimate([]LngLat{trip.from, trip.to}, recents{}, 0).Seconds()
		off = append(off, math.Abs(took-trip.seconds)/trip.seconds)
	}
	slices.Sort(off)
	if median := off[len(off)/2]; len(off) != 682 || median > 0.275 {
		t.Errorf("median error %.1f %% on %d trips", 100*median, len(off))
	} else {
		t.Logf("median error %.1f %%", 100*median)
	}
}

// Routes of six of the same trips, one after the other, with 2 minutes at each stop: an error of one
// leg makes up for that of another.
func TestEstimateOnTaxiRoutes(t *testing.T) {
	trips := taxiTrips(t)
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(trips), func(i, j int) { trips[i], trips[j] = trips[j], trips[i] })
	const stop = 2 * time.Minute
	var off []float64
	for route := range slices.Chunk(trips, 6) {
		if len(route) < 6 {
			break
		}
		points, seconds := []LngLat{route[0].from}, -stop.Seconds()
		for _, trip := range route { // each begins where the one before ended
			last := points[len(points)-1]
			points = append(points, LngLat{
				last.Lng + trip.to.Lng - trip.from.Lng, last.Lat + trip.to.Lat - trip.from.Lat,
			})
			seconds += trip.seconds + stop.Seconds()
		}
		off = append(off, math.Abs(estimate(points, recents{}, stop).Seconds()-seconds)/seconds)
	}
	slices.Sort(off)
	if median := off[len(off)/2]; len(off) != 113 || median > 0.275 {
		t.Errorf("median error %.1f %% on %d routes", 100*median, len(off))
	} else {
		t.Logf("median error %.1f %%", 100*median)
	}
}

func TestEstimateHeedsSpeed(t *testing.T) {
	way := []LngLat{{10, 50}, {10.1, 50}}
	drive := func(speed float64) (list recents) {
		for s := 0; s <= 600; s += 10 {
			list = list.with(Fix{
				LngLat: LngLat{10, 50 + speed*float64(s)/111195.08}, Time: t0.Add(time.Duration(s) * time.Second),
			})
		}
		return list
	}
	none, fast, slow := estimate(way, recents{}, 0), estimate(way, drive(20), 0), estimate(way, drive(1), 0)
	if !(fast < none && none < slow) {
		t.Errorf("fast %v, unknown %v, slow %v", fast, none, slow)
	}
	if more := estimate([]LngLat{way[0], {10.05, 50.02}, way[1]}, recents{}, time.Hour); more <= none+legStart+time.Hour {
		t.Errorf("with a stop between %v, without %v", more, none)
	}
}

// The speed is that of the last ten minutes, whatever came before.
func TestRecentSpeed(t *testing.T) {
	var list recents
	want := map[int]float64{0: citySpeed, 59: citySpeed, 600: 0.5*citySpeed + 0.5*15, 900: 0.5*citySpeed + 0.5*10, 1200: 0.5*citySpeed + 0.5*5}
	lat := 0.0
	for s := 0; s <= 1200; s++ {
		if s > 0 {
			lat += map[bool]float64{true: 15, false: 5}[s <= 600] / 111195.08
		}
		list = list.with(Fix{LngLat: LngLat{10, lat}, Time: t0.Add(time.Duration(s) * time.Second)})
		list = list.with(Fix{LngLat: LngLat{11, lat}, Time: t0.Add(time.Duration(s)*time.Second + time.Millisecond)})
		if w, ok := want[s]; ok && math.Abs(list.speed()-w) > 0.001 {
			t.Errorf("after %d s the speed is %.3f m/s, want %.3f", s, list.speed(), w)
		}
	}
	if len(list.fixes) != 601 {
		t.Errorf("%d fixes are kept", len(list.fixes))
	}
}

func TestParseDest(t *testing.T) {
	point := &Place{LngLat: &LngLat{80.25, -13.06}}
	for v, want := range map[string]*Place{
		"": nil, "80.25,-13.06": point, "[80.25,-13.06]": point, " 80.25 , -13.06 ": point, "[ 80.25, -13.06 ]": point,
		"12 Anna Salai": {Address: "12 Anna Salai"}, "80.25,-91": {Address: "80.25,-91"},
		"0x1p3,2": {Address: "0x1p3,2"}, "1_0,2": {Address: "1_0,2"},
		"+1,2": {Address: "+1,2"}, "1e1,2": {Address: "1e1,2"}, "NaN,1": {Address: "NaN,1"},
		"1,2,3": {Address: "1,2,3"}, ",": {Address: ","}, "[1,2": {Address: "[1,2"},
	} {
		if diff := cmp.Diff(want, parseDest(v)); diff != "" {
			t.Errorf("%q: %s", v, diff)
		}
	}
}
