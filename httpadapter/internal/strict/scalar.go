package strict

import (
	"strconv"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

const timeMessage = `must be a time with its zone in ISO 8601, such as 2006-01-02T15:04Z`

// ParseTime reads YYYY-MM-DDTHH:MM, with or without seconds and their fraction after a point, and
// then Z or an offset ±HH:MM. The result is in UTC, cut to whole milliseconds. Dates that no
// calendar has, 24:00, leap seconds and instants outside of the years 1 to 9999 are refused, and so
// is the very first instant of year 1, which is Go's zero time.
//
// time.Parse is not used: it takes a comma before the fraction and a one-digit hour.
func ParseTime(s string) (time.Time, bool) {
	const layout = "0000-00-00T00:00"
	if len(s) < len(layout)+1 {
		return time.Time{}, false
	}
	for i := range len(layout) {
		if layout[i] == '0' && !isDigit(s[i]) || layout[i] != '0' && layout[i] != s[i] {
			return time.Time{}, false
		}
	}
	year, month, day := number(s[0:4]), number(s[5:7]), number(s[8:10])
	hour, minute := number(s[11:13]), number(s[14:16])
	s = s[len(layout):]

	var second, milli int
	if len(s) >= 3 && s[0] == ':' && isDigit(s[1]) && isDigit(s[2]) {
		second = number(s[1:3])
		s = s[3:]
		if strings.HasPrefix(s, ".") {
			n := 1
			for n < len(s) && isDigit(s[n]) {
				n++
			}
			if n == 1 {
				return time.Time{}, false
			}
			milli = number((s[1:n] + "00")[:3])
			s = s[n:]
		}
	}

	var east time.Duration
	switch {
	case s == "Z":
	case len(s) == 6 && (s[0] == '+' || s[0] == '-') && isDigit(s[1]) && isDigit(s[2]) && s[3] == ':' &&
		isDigit(s[4]) && isDigit(s[5]):
		h, m := number(s[1:3]), number(s[4:6])
		if h > 23 || m > 59 {
			return time.Time{}, false
		}
		east = time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
		if s[0] == '-' {
			east = -east
		}
	default:
		return time.Time{}, false
	}

	if month < 1 || month > 12 || day < 1 || hour > 23 || minute > 59 || second > 59 {
		return time.Time{}, false
	}
	t := time.Date(year, time.Month(month), day, hour, minute, second, milli*int(time.Millisecond), time.UTC)
	if t.Day() != day { // time.Date makes 2 March of 30 February
		return time.Time{}, false
	}
	t = t.Add(-east)
	if t.Year() < 1 || t.Year() > 9999 || t.IsZero() {
		return time.Time{}, false
	}
	return t, true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// number reads at most four digits.
func number(digits string) (n int) {
	for _, c := range []byte(digits) {
		n = 10*n + int(c-'0')
	}
	return n
}

// ParsePosition reads "longitude,latitude" in degrees, each a JSON number.
func ParsePosition(s string) (p tracking.LngLat, ok bool) {
	lng, lat, ok := strings.Cut(s, ",")
	if !ok {
		return p, false
	}
	p.Lng, ok = parseFloat(lng)
	if !ok {
		return tracking.LngLat{}, false
	}
	p.Lat, ok = parseFloat(lat)
	if !ok || !p.Valid() {
		return tracking.LngLat{}, false
	}
	return p, true
}

// parseFloat reads a JSON number. strconv alone takes hexadecimals, underscores, infinities and a
// plus sign too.
func parseFloat(s string) (float64, bool) {
	p := parser{b: []byte(s)}
	if c := p.peek(); c != '-' && !isDigit(c) {
		return 0, false
	}
	if p.number() != nil || p.i < len(s) {
		return 0, false
	}
	return (&document{b: p.b}).float(span{0, len(s)})
}

// ParseInt reads plain decimal digits: no sign, no leading zero.
func ParseInt(s string) (int, bool) {
	if s == "" || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	for _, c := range []byte(s) {
		if !isDigit(c) {
			return 0, false
		}
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}
