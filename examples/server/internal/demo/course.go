package demo

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/seed-8aba7b13/tracking"
)

// A round course of our own making through a grid of streets, 133 m apart and at 45° to north as in
// Barcelona's Eixample, with doors along it.
//
//go:embed course.geojson
var courseFile []byte

// course is a closed line to drive along. A place on it is given in metres from its first point,
// from 0 up to length.
type course struct {
	points  []tracking.LngLat // the last leads back to the first
	along   []float64         // where each point is
	length  float64
	corners []corner // ascending
	doors   []door   // ascending
}

type corner struct {
	at    float64
	light bool // traffic lights, red whenever somebody comes
}

type door struct {
	at      float64
	lngLat  tracking.LngLat
	address string
}

// sharp is the change of heading in degrees that makes a point a corner. The corners are cut off,
// so that each is two points of 45°.
const sharp = 20

// readCourse reads a GeoJSON feature collection (RFC 7946) with one closed line and, on its points,
// the doors.
func readCourse(file []byte) (*course, error) {
	var collection struct {
		Features []struct {
			Properties struct {
				Address string `json:"address"`
			} `json:"properties"`
			Geometry struct {
				Type        string          `json:"type"`
				Coordinates json.RawMessage `json:"coordinates"`
			} `json:"geometry"`
		} `json:"features"`
	}
	if err := json.Unmarshal(file, &collection); err != nil {
		return nil, err
	}
	var c course
	for _, f := range collection.Features {
		switch f.Geometry.Type {
		case "LineString":
			var line [][2]float64
			if err := json.Unmarshal(f.Geometry.Coordinates, &line); err != nil {
				return nil, err
			}
			if len(line) < 4 || line[0] != line[len(line)-1] {
				return nil, errors.New("the line of the course is not closed")
			}
			c.measure(line[:len(line)-1])
		case "Point":
			var p [2]float64
			if err := json.Unmarshal(f.Geometry.Coordinates, &p); err != nil {
				return nil, err
			}
			at := tracking.LngLat{Lng: p[0], Lat: p[1]}
			if c.points == nil {
				return nil, errors.New("a door comes before the line of the course")
			}
			where, off := c.nearest(at)
			if off > 0 {
				return nil, fmt.Errorf("the door %s is not on a point of the course", f.Properties.Address)
			}
			c.doors = append(c.doors, door{where, at, f.Properties.Address})
		}
	}
	if c.points == nil || len(c.doors) == 0 {
		return nil, errors.New("the course has no line or no doors")
	}
	sort.Slice(c.doors, func(i, j int) bool { return c.doors[i].at < c.doors[j].at })
	return &c, nil
}

func (c *course) measure(line [][2]float64) {
	for i, p := range line {
		at := tracking.LngLat{Lng: p[0], Lat: p[1]}
		if i > 0 {
			c.length += tracking.Distance(c.points[i-1], at)
		}
		c.points, c.along = append(c.points, at), append(c.along, c.length)
	}
	c.length += tracking.Distance(c.points[len(c.points)-1], c.points[0])
	for i, p := range c.points {
		before, after := c.points[(i+len(c.points)-1)%len(c.points)], c.points[(i+1)%len(c.points)]
		turn := math.Abs(bearing(p, after) - bearing(before, p))
		if min(turn, 360-turn) > sharp {
			c.corners = append(c.corners, corner{c.along[i], len(c.corners)%6 == 0})
		}
	}
}

// ahead is the way in metres from one place of the course to another, in the direction of travel.
func (c *course) ahead(from, to float64) float64 {
	d := math.Mod(to-from, c.length)
	if d < 0 {
		d += c.length
	}
	return d
}

// locate returns the position of a place on the course, and the direction of travel there in
// degrees.
func (c *course) locate(at float64) (tracking.LngLat, float64) {
	i := sort.SearchFloat64s(c.along, at)
	if i == len(c.along) || c.along[i] > at {
		i--
	}
	a, b := c.points[i], c.points[(i+1)%len(c.points)]
	end := c.length
	if i+1 < len(c.along) {
		end = c.along[i+1]
	}
	f := (at - c.along[i]) / (end - c.along[i])
	return tracking.LngLat{Lng: a.Lng + f*(b.Lng-a.Lng), Lat: a.Lat + f*(b.Lat-a.Lat)}, bearing(a, b)
}

// nearest finds the point of the course next to p, and how many metres it is away.
func (c *course) nearest(p tracking.LngLat) (at, off float64) {
	off = math.Inf(1)
	for i, q := range c.points {
		if d := tracking.Distance(p, q); d < off {
			at, off = c.along[i], d
		}
	}
	return at, off
}

// nextDoor is the index of the first door at least gap metres ahead of a place.
func (c *course) nextDoor(at, gap float64) int {
	best, way := 0, math.Inf(1)
	for i, d := range c.doors {
		if w := c.ahead(at+gap, d.at); w < way {
			best, way = i, w
		}
	}
	return best
}

// bearing is the direction from a to b in degrees from north, on a map small enough to be flat.
func bearing(a, b tracking.LngLat) float64 {
	east := (b.Lng - a.Lng) * math.Cos((a.Lat+b.Lat)/2*math.Pi/180)
	d := math.Atan2(east, b.Lat-a.Lat) * 180 / math.Pi
	if d < 0 {
		d += 360
	}
	return d
}
