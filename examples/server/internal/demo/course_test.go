package demo

import (
	"math"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking"
)

func testCourse(t *testing.T) *course {
	t.Helper()
	c, err := readCourse(courseFile)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCourse(t *testing.T) {
	c := testCourse(t)
	if n := len(c.points); n < 150 || n > 300 {
		t.Errorf("%d points, want 150 to 300", n)
	}
	if c.length < 5000 || c.length > 5500 {
		t.Errorf("it is %.0f m long, want about 5.2 km", c.length)
	}
	if len(c.corners) < 30 || len(c.doors) < 12 {
		t.Errorf("%d corners and %d doors, want 30 and 12 at least", len(c.corners), len(c.doors))
	}
	for i, p := range c.points {
		next := c.points[(i+1)%len(c.points)]
		if d := tracking.Distance(p, next); !p.Valid() || d < 10 || d > 30 {
			t.Errorf("point %d at %v is %.1f m from the next one, want 10 to 30 m", i, p, d)
		}
	}
	for i, d := range c.doors {
		if d.address == "" || i > 0 && c.ahead(c.doors[i-1].at, d.at) < 100 {
			t.Errorf("door %d, %q at %.0f m: it has no address or is too near to the one before it", i, d.address, d.at)
		}
		for _, k := range c.corners {
			if gap := math.Min(c.ahead(d.at, k.at), c.ahead(k.at, d.at)); gap < 10 {
				t.Errorf("door %d is %.0f m from a corner", i, gap)
			}
		}
	}
}

func TestCoursePlaces(t *testing.T) {
	c := testCourse(t)
	for i, p := range c.points {
		if got, _ := c.locate(c.along[i]); tracking.Distance(got, p) > 0.01 {
			t.Errorf("%.1f m along is %v, want point %d, %v", c.along[i], got, i, p)
		}
	}
	for at := 0.0; at < c.length; at += 7 {
		a, heading := c.locate(at)
		b, _ := c.locate(math.Mod(at+1, c.length))
		if d := tracking.Distance(a, b); d < 0.7 || d > 1.01 {
			t.Errorf("a metre from %.0f on is %.3f m", at, d)
		}
		if heading < 0 || heading >= 360 {
			t.Errorf("heading %v at %.0f m", heading, at)
		}
	}
	if got := c.ahead(c.length-1, 2); math.Abs(got-3) > 1e-9 {
		t.Errorf("3 m across the first point are %v", got)
	}
	if got := c.nextDoor(c.doors[len(c.doors)-1].at, 1); got != 0 {
		t.Errorf("after the last door comes door %d, want 0", got)
	}
	for _, tt := range []struct {
		to   tracking.LngLat
		want float64
	}{
		{tracking.LngLat{Lat: 1}, 0}, {tracking.LngLat{Lng: 1}, 90}, {tracking.LngLat{Lat: -1}, 180},
		{tracking.LngLat{Lng: -1}, 270},
	} {
		if got := bearing(tracking.LngLat{}, tt.to); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("bearing to %v is %v, want %v", tt.to, got, tt.want)
		}
	}
}

func TestCourseErrors(t *testing.T) {
	feature := func(s string) string { return `{"features":[{"geometry":` + s + `}]}` }
	for _, tt := range []struct{ file, want string }{
		{`{`, "unexpected end"},
		{`{"features":[]}`, "no line"},
		{feature(`{"type":"LineString","coordinates":[[0,0],[0,1],[1,1],[1,0]]}`), "not closed"},
		{feature(`{"type":"Point","coordinates":[0,0]}`), "before the line"},
		{
			`{"features":[{"geometry":{"type":"LineString","coordinates":[[0,0],[0,1],[1,1],[0,0]]}},{"properties":{"address":"9 Far Street"},"geometry":{"type":"Point","coordinates":[2,2]}}]}`,
			"9 Far Street",
		},
	} {
		if _, err := readCourse([]byte(tt.file)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s gives error %v, want one that says %q", tt.file, err, tt.want)
		}
	}
}

// TestVehicle drives three rounds from door to door, and watches every second of it.
func TestVehicle(t *testing.T) {
	c := testCourse(t)
	v := vehicle{course: c, at: c.doors[0].at}
	seconds, driven, standing, lights := 0, 0.0, 0, 0
	for i := range 3 * len(c.doors) {
		to := c.doors[(i+1)%len(c.doors)].at
		for arrived := false; !arrived; seconds++ {
			at, speed, held := v.at, v.speed, v.held
			arrived = v.drive(to)
			moved := c.ahead(at, v.at)
			driven += moved
			switch {
			case moved > cruise+1e-9:
				t.Fatalf("second %d: %.2f m in a second", seconds, moved)
			case v.speed > speed+acceleration+1e-9:
				t.Fatalf("second %d: from %.2f to %.2f m/s", seconds, speed, v.speed)
			case speed > v.speed+2*braking+1e-9 && moved > 0: // steps of a second brake later than they should
				t.Fatalf("second %d: braked from %.2f to %.2f m/s", seconds, speed, v.speed)
			}
			if moved == 0 {
				standing++
			}
			if held == 0 && v.held > 0 {
				lights++
			}
			if seconds > 10_000 {
				t.Fatal("it does not arrive")
			}
		}
		if v.at != to {
			t.Fatalf("it stands at %v, want %v", v.at, to)
		}
	}
	if want := 3 * c.length; math.Abs(driven-want) > 1 {
		t.Errorf("three rounds are %.0f m, want %.0f", driven, want)
	}
	if mean := driven / float64(seconds); mean < 4 || mean > cruise {
		t.Errorf("it drives %.1f m/s on average, want a town's 4 to 8", mean)
	}
	if want := 3 * ((len(c.corners) + 5) / 6); lights != want || standing < lights*lightTime {
		t.Errorf("it waited at %d lights, %d s in all; want %d lights", lights, standing, want)
	}
	if !v.drive(v.at) || v.speed != 0 {
		t.Error("where it stands it has not arrived")
	}
}
