package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// ReadJSON reads an array of samples {"point": "POINT(longitude latitude)", "time": …}, where time
// is either a text such as "2014-09-10 06:54:07+0200" or a counter of seconds, which gives the
// spacing only.
func ReadJSON(r io.Reader) (Trace, error) {
	d := json.NewDecoder(r)
	switch start, err := d.Token(); {
	case err != nil:
		return Trace{}, fmt.Errorf("this is not JSON: %w", err)
	case start != json.Delim('['):
		return Trace{}, errors.New("the samples are not a JSON array")
	}
	var c collector
	for d.More() {
		var s struct {
			Point string          `json:"point"`
			Time  json.RawMessage `json:"time"`
		}
		if err := d.Decode(&s); err != nil {
			return Trace{}, fmt.Errorf("sample %d cannot be read: %w", c.trace.Total, err)
		}
		at, located := wkt(s.Point)
		c.add(Point{LngLat: at, Time: sampleTime(s.Time)}, located)
	}
	if _, err := d.Token(); err != nil {
		return Trace{}, fmt.Errorf("the array of samples has no end: %w", err)
	}
	return c.finish(), nil
}

// wkt reads a point in well-known text (OGC 06-103r4): longitude first.
func wkt(text string) (tracking.LngLat, bool) {
	inner, ok := strings.CutPrefix(strings.TrimSpace(text), "POINT")
	inner = strings.TrimSpace(inner)
	if !ok || !strings.HasPrefix(inner, "(") || !strings.HasSuffix(inner, ")") {
		return tracking.LngLat{}, false
	}
	numbers := strings.Fields(inner[1 : len(inner)-1])
	if len(numbers) != 2 {
		return tracking.LngLat{}, false
	}
	lng, err1 := strconv.ParseFloat(numbers[0], 64)
	lat, err2 := strconv.ParseFloat(numbers[1], 64)
	return tracking.LngLat{Lng: lng, Lat: lat}, err1 == nil && err2 == nil
}

// maxCounter keeps counters within the years that a time can be written in.
const maxCounter = 250e9 // seconds, about 7,900 years

// sampleTime reads the time of a sample; zero when it is none.
func sampleTime(raw json.RawMessage) time.Time {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		for _, layout := range []string{"2006-01-02 15:04:05Z0700", "2006-01-02 15:04:05Z07:00", time.RFC3339} {
			if t, err := time.Parse(layout, text); err == nil {
				return t
			}
		}
		return time.Time{}
	}
	var counter *float64
	if json.Unmarshal(raw, &counter) != nil || counter == nil || !(*counter >= 0 && *counter <= maxCounter) {
		return time.Time{}
	}
	return time.UnixMilli(int64(math.Round(*counter * 1000)))
}
