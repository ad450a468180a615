package tracking

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

func TestClampAt(t *testing.T) {
	for _, c := range []struct {
		name                  string
		at, before, now, want time.Time
	}{
		{"not given", time.Time{}, t0, t0.Add(time.Hour), t0.Add(time.Hour)},
		{"between", t0.Add(time.Minute), t0, t0.Add(time.Hour), t0.Add(time.Minute)},
		{"too early", t0.Add(-time.Minute), t0, t0.Add(time.Hour), t0},
		{"ahead", t0.Add(2 * time.Hour), t0, t0.Add(time.Hour), t0.Add(time.Hour)},
		{"the step before in the future", t0, t0.Add(24 * time.Hour), t0.Add(time.Hour), t0.Add(time.Hour)},
		{"the step before a little ahead", t0, t0.Add(time.Minute), t0, t0},
		{"the step before a little ahead of one said to be earlier", t0.Add(-time.Second), t0.Add(time.Minute), t0, t0},
		{"no step before", t0.Add(-24 * time.Hour), time.Time{}, t0, t0.Add(-24 * time.Hour)},
		{"below a millisecond", t0.Add(1500 * time.Microsecond), t0, t0.Add(time.Hour), t0.Add(time.Millisecond)},
	} {
		if got := clampAt(c.at, c.before, c.now); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestClampAtAbsurdTimes(t *testing.T) {
	now := time.Date(2024, 3, 10, 8, 50, 0, 0, time.UTC)
	year := func(y int) time.Time { return time.Date(y, 1, 2, 0, 0, 0, 0, time.UTC) }
	for name, tt := range map[string]struct{ at, before, want time.Time }{
		"not said":                      {time.Time{}, time.Time{}, now},
		"a week ago":                    {now.Add(-7 * day), time.Time{}, now.Add(-7 * day)},
		"at the limit":                  {now.Add(-oldestStep), time.Time{}, now.Add(-oldestStep)},
		"just beyond it":                {now.Add(-oldestStep - time.Millisecond), time.Time{}, now},
		"1970":                          {year(1970), time.Time{}, now},
		"19.6 years ago, as GPS counts": {now.Add(-1024 * 7 * day), time.Time{}, now},
		"year 0":                        {year(0), time.Time{}, now},
		"year -5000":                    {year(-5000), time.Time{}, now},
		"year 1":                        {time.Time{}.Add(time.Millisecond), time.Time{}, now},
		"year 300000":                   {year(300000), time.Time{}, now},
		"year 0 after a step":           {year(0), now.Add(-time.Hour), now.Add(-time.Hour)},
		"1970 after a step":             {year(1970), now.Add(-time.Hour), now.Add(-time.Hour)},
		"year 0 after an old step":      {year(0), year(2000), year(2000)},
		"between":                       {now.Add(-time.Minute), now.Add(-time.Hour), now.Add(-time.Minute)},
		"ahead":                         {now.Add(time.Minute), now.Add(-time.Hour), now},
	} {
		if got := clampAt(tt.at, tt.before, now); !got.Equal(tt.want) {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}

func TestIDsSortByAge(t *testing.T) {
	s := idSource{rand: rand.NewChaCha8([32]byte{1})}
	last := ""
	for i := range 5000 {
		now := t0.Add(time.Duration(i/700) * time.Millisecond)
		if i%1000 == 999 {
			now = t0.Add(-time.Hour) // a clock that is set back
		}
		id := s.next(now)
		if len(id) != 26 || id <= last {
			t.Fatalf("id %d is %q after %q", i, id, last)
		}
		last = id
	}
}

func TestDistance(t *testing.T) {
	quarter := math.Pi / 2 * EarthRadius
	for _, c := range []struct {
		name string
		a, b LngLat
		want float64
	}{
		{"nothing", LngLat{12, 34}, LngLat{12, 34}, 0},
		{"a quarter of the equator", LngLat{0, 0}, LngLat{90, 0}, quarter},
		{"equator to pole", LngLat{17, 0}, LngLat{-100, 90}, quarter},
		{"pole to pole", LngLat{0, 90}, LngLat{55, -90}, 2 * quarter},
		{"across 180°", LngLat{179.95, 0}, LngLat{-179.9, 0}, 0.15 / 90 * quarter},
		{"both names of the 180th meridian", LngLat{180, 10}, LngLat{-180, 10}, 0},
		{"both names of the pole", LngLat{0, 90}, LngLat{120, 90}, 0},
		{"antipodes", LngLat{10, 20}, LngLat{-170, -20}, 2 * quarter},
	} {
		if got := Distance(c.a, c.b); math.Abs(got-c.want) > 1e-3 || got != Distance(c.b, c.a) {
			t.Errorf("%s: %v there, %v back, want %v", c.name, got, Distance(c.b, c.a), c.want)
		}
	}
}
