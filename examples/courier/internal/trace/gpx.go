package trace

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// ReadGPX reads the track points of a GPX 1.0 or 1.1 file, those of all its tracks and segments as
// one trace. Waypoints and routes are plans, not drives, and are left out. Speed and course are
// read where GPX 1.0 has them, as children of the point.
func ReadGPX(r io.Reader) (Trace, error) {
	d := xml.NewDecoder(r)
	d.CharsetReader = singleByte
	var g gpx
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Trace{}, fmt.Errorf("this is not well-formed XML: %w", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if len(g.path) == 0 && token.Name.Local != "gpx" {
				return Trace{}, errors.New("this is XML, but not GPX: its outermost element is not gpx")
			}
			g.open(token)
		case xml.CharData:
			g.text.Write(token)
		case xml.EndElement:
			g.close()
		}
	}
	if !g.seen {
		return Trace{}, errors.New("this is not GPX: it holds no element")
	}
	return g.finish(), nil
}

// gpx is a GPX file as far as it has been read.
type gpx struct {
	collector
	path []string // local names of the open elements
	text strings.Builder
	seen bool // the outermost element

	inPoint bool
	depth   int // of the point's element
	point   Point
	located bool
}

func (g *gpx) open(e xml.StartElement) {
	g.seen = true
	g.path = append(g.path, e.Name.Local)
	g.text.Reset()
	if n := len(g.path); g.inPoint || n < 2 || g.path[n-1] != "trkpt" || g.path[n-2] != "trkseg" {
		return
	}
	g.inPoint, g.depth, g.point = true, len(g.path), Point{}
	lng, lngOK := attribute(e, "lon")
	lat, latOK := attribute(e, "lat")
	g.point.LngLat, g.located = tracking.LngLat{Lng: lng, Lat: lat}, lngOK && latOK
}

func (g *gpx) close() {
	if g.inPoint && len(g.path) == g.depth {
		g.inPoint = false
		g.add(g.point, g.located)
	}
	if g.inPoint && len(g.path) == g.depth+1 {
		text := strings.TrimSpace(g.text.String())
		switch g.path[len(g.path)-1] {
		case "time":
			g.point.Time = dateTime(text)
		case "speed":
			g.point.Speed = reading(text, math.Inf(1))
		case "course":
			g.point.Bearing = reading(text, 360)
		}
	}
	g.path = g.path[:len(g.path)-1]
	g.text.Reset()
}

func attribute(e xml.StartElement, name string) (float64, bool) {
	for _, a := range e.Attr {
		if a.Name.Local == name && a.Name.Space == "" {
			v, err := strconv.ParseFloat(strings.TrimSpace(a.Value), 64)
			return v, err == nil
		}
	}
	return 0, false
}

// reading is a number from 0 up to limit, or unknown.
func reading(text string, limit float64) tracking.Reading {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= limit) || math.IsInf(v, 0) {
		return tracking.Reading{}
	}
	return tracking.Known(v)
}

// dateTime reads the time of a point; zero when it is none. GPX times are UTC, so one without a
// zone is too.
func dateTime(text string) time.Time {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t
		}
	}
	return time.Time{}
}

// singleByte decodes the single-byte encodings that old devices declare. What a track point says is
// ASCII in all of them, so that it does not matter if a name comes out with a wrong letter.
func singleByte(charset string, input io.Reader) (io.Reader, error) {
	switch strings.ToLower(charset) {
	case "us-ascii", "ascii", "iso-8859-1", "iso-8859-15", "latin1", "windows-1250", "windows-1251", "windows-1252":
		return &latin1{in: bufio.NewReader(input)}, nil
	}
	return nil, fmt.Errorf("the encoding %q is not known here: convert the file to UTF-8", charset)
}

// latin1 turns each byte into the rune of the same number.
type latin1 struct {
	in   *bufio.Reader
	rest []byte // of the last rune
}

func (l *latin1) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(l.rest) == 0 {
			if n > 0 && l.in.Buffered() == 0 {
				break // do not wait for more
			}
			c, err := l.in.ReadByte()
			if err != nil {
				if n > 0 {
					break // it comes again
				}
				return 0, err
			}
			l.rest = []byte(string(rune(c)))
		}
		k := copy(p[n:], l.rest)
		n, l.rest = n+k, l.rest[k:]
	}
	return n, nil
}
