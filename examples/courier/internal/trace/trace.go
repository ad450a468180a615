// Package trace reads recorded drives: GPX files, and the JSON samples that the map matcher
// barefoot is tested with.
package trace

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// Point is one recorded position.
type Point struct {
	LngLat  tracking.LngLat
	Time    time.Time        // UTC, whole milliseconds
	Speed   tracking.Reading // m/s
	Bearing tracking.Reading // degrees, clockwise from north
}

// Trace is what a file holds that a phone could have sent.
type Trace struct {
	// Points are the usable ones, in order of time, no two in the same millisecond: of those the
	// file's first is kept.
	Points []Point

	Total      int // points in the file
	NoPosition int // without coordinates, or with impossible ones
	NoTime     int // without a time, or with one that cannot be read
	Repeated   int // with the millisecond of another
	Backward   int // usable, but earlier than the usable one before them in the file
}

// Duration is the time from the first point to the last.
func (t Trace) Duration() time.Duration {
	if len(t.Points) == 0 {
		return 0
	}
	return t.Points[len(t.Points)-1].Time.Sub(t.Points[0].Time)
}

// ReadFile reads a file of either kind; its first character tells which.
func ReadFile(name string) (Trace, error) {
	f, err := os.Open(name)
	if err != nil {
		return Trace{}, err
	}
	defer f.Close()
	t, err := Read(f)
	if err != nil {
		return Trace{}, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// Read reads a trace of either kind; its first character tells which.
func Read(r io.Reader) (Trace, error) {
	b := bufio.NewReader(r)
	for {
		c, _, err := b.ReadRune()
		switch {
		case errors.Is(err, io.EOF):
			return Trace{}, errors.New("the file is empty")
		case err != nil:
			return Trace{}, err
		case c == '\ufeff' || c == ' ' || c == '\t' || c == '\r' || c == '\n':
			continue
		}
		if err := b.UnreadRune(); err != nil {
			return Trace{}, err
		}
		switch c {
		case '<':
			return ReadGPX(b)
		case '[':
			return ReadJSON(b)
		}
		return Trace{}, errors.New("this is neither a GPX file nor a JSON array of samples")
	}
}

// collector sorts points into a Trace as they are read.
type collector struct{ trace Trace }

// add takes the next point of the file; a zero time means that it has none.
func (c *collector) add(p Point, located bool) {
	t := &c.trace
	t.Total++
	switch {
	case !located || !p.LngLat.Valid():
		t.NoPosition++
		return
	case p.Time.IsZero():
		t.NoTime++
		return
	}
	p.Time = time.UnixMilli(p.Time.UnixMilli()).UTC()
	if n := len(t.Points); n > 0 && p.Time.Before(t.Points[n-1].Time) {
		t.Backward++
	}
	t.Points = append(t.Points, p)
}

func (c *collector) finish() Trace {
	t := c.trace
	slices.SortStableFunc(t.Points, func(a, b Point) int { return cmp.Compare(a.Time.UnixMilli(), b.Time.UnixMilli()) })
	n := len(t.Points)
	t.Points = slices.CompactFunc(t.Points, func(a, b Point) bool { return a.Time.Equal(b.Time) })
	t.Repeated = n - len(t.Points)
	return t
}
