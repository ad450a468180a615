package ingest

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// m/s in one of each.
const (
	knot      = 1852.0 / 3600
	kmPerHour = 1000.0 / 3600
)

// parseNumber reads a finite decimal number, with a point or, as phones in many languages write it,
// a comma. strconv alone would also take "NaN", "inf" and hexadecimal.
func parseNumber(s string) tracking.Reading {
	s = strings.TrimSpace(s)
	if !strings.Contains(s, ".") {
		s = strings.Replace(s, ",", ".", 1)
	}
	if s == "" || strings.Trim(s, "+-.0123456789eE") != "" {
		return tracking.Reading{}
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(v, 0) || math.IsNaN(v) {
		return tracking.Reading{}
	}
	return tracking.Known(v)
}

// within is r, or unknown if it is not within the two, both included.
func within(r tracking.Reading, low, high float64) tracking.Reading {
	if !r.Known || !(r.Value >= low && r.Value <= high) {
		return tracking.Reading{}
	}
	return r
}

// scaled is r times unit, or unknown if r is below 0.
func scaled(r tracking.Reading, unit float64) tracking.Reading {
	return within(tracking.Reading{Value: r.Value * unit, Known: r.Known}, 0, math.MaxFloat64)
}

// direction is r in 0 … 360, where 360 is 0.
func direction(r tracking.Reading) tracking.Reading {
	if r = within(r, 0, 360); r.Value == 360 {
		r.Value = 0
	}
	return r
}

// percent is a battery of 0 … 100 as 0 … 1.
func percent(r tracking.Reading) tracking.Reading {
	r = within(r, 0, 100)
	r.Value /= 100
	return r
}

// fraction is a battery that some apps write as 0 … 1 and some as 0 … 100.
func fraction(r tracking.Reading) tracking.Reading {
	if r.Value > 1 {
		return percent(r)
	}
	return within(r, 0, 1)
}

// isDegrees reports whether s looks like a longitude or latitude: a number of at least four
// decimals within ±180.
func isDegrees(s string) bool {
	point := strings.LastIndexAny(s, ".,")
	if point < 0 || len(s)-point < 5 || len(s) > 32 {
		return false
	}
	return within(parseNumber(s), -180, 180).Known
}

// nonzero is r, or unknown if it is 0.
func nonzero(r tracking.Reading) tracking.Reading {
	if r.Value == 0 {
		return tracking.Reading{}
	}
	return r
}

// millis is t in whole milliseconds, UTC.
func millis(t time.Time) time.Time { return t.UTC().Round(time.Millisecond) }

// parseTime reads a time as an app writes it; the empty text is now.
func parseTime(s string, now time.Time) (t time.Time, ok bool) {
	s = strings.TrimSpace(s)
	if s == "" {
		return now, true
	}
	if n := parseNumber(s); n.Known {
		return unixTime(n.Value)
	}
	if len(s) < len("2006-01-02T15:04:05") {
		return time.Time{}, false
	}
	date, clock := s[:10], s[11:]
	if sep := s[10]; sep != 'T' && sep != ' ' {
		return time.Time{}, false
	}
	// A "+" that stood unescaped in a query has become a blank.
	s = date + "T" + strings.Replace(clock, " ", "+", 1)
	for _, layout := range []string{
		"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05Z07", "2006-01-02T15:04:05",
	} {
		if t, err := time.Parse(layout, s); err == nil {
			return checkYear(millis(t))
		}
	}
	return time.Time{}, false
}

// unixTime is the time so many seconds after 1970; milliseconds from 2³¹ on, which no phone of
// today means as seconds (2038); and microseconds or nanoseconds where that makes a time of the
// years 2001 to 2286. What is not after 1970 is a clock that was never set.
func unixTime(v float64) (t time.Time, ok bool) {
	const year10000 = 253402300800000 // ms
	switch {
	case v < 1<<31:
		v *= 1e3
	case v >= 1e15 && v < 1e16:
		v /= 1e3
	case v >= 1e18 && v < 1e19:
		v /= 1e6
	}
	if !(v > 0 && v < year10000-1) {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(math.Round(v))).UTC(), true
}

// checkYear refuses years that have not four digits in UTC, and the one instant that means "no
// time" in Go.
func checkYear(t time.Time) (time.Time, bool) {
	if y := t.Year(); y < 1 || y > 9999 || t.IsZero() {
		return time.Time{}, false
	}
	return t, true
}

// newFix is the fix at a place and time, if both are valid.
func (d *decoder) newFix(lng, lat tracking.Reading, at string) (f tracking.Fix, ok bool) {
	f.LngLat = tracking.LngLat{Lng: lng.Value, Lat: lat.Value}
	if !lng.Known || !lat.Known || !f.LngLat.Valid() {
		return f, false
	}
	f.Time, ok = parseTime(at, d.now)
	return f, ok
}
