// Package cover finds rectangles of the map that hold a circle on the Earth, for stores that look
// for what is near.
package cover

import (
	"math"

	"github.com/seed-8aba7b13/tracking"
)

// Box is a rectangle of longitudes and latitudes, its edges included.
type Box struct{ Min, Max [2]float64 }

// Holds reports whether a longitude and latitude are in it.
func (b Box) Holds(at [2]float64) bool {
	return b.Min[0] <= at[0] && at[0] <= b.Max[0] && b.Min[1] <= at[1] && at[1] <= b.Max[1]
}

// Meets reports whether it has a place in common with another.
func (b Box) Meets(min, max [2]float64) bool {
	return b.Min[0] <= max[0] && min[0] <= b.Max[0] && b.Min[1] <= max[1] && min[1] <= b.Max[1]
}

const (
	degree = math.Pi / 180

	// Boxes are a little larger than the circles they cover, so that rounding loses nobody: 1e-9 of
	// the radius of the Earth is 6 mm.
	marginAngle = 1e-9 // radians
	marginLng   = 1e-7 // degrees
	// Near a pole the width of a circle is so sensitive to rounding that a circle reaching this
	// close to it counts as holding it.
	polar = 1e-6 // degrees
)

// Circle returns boxes, one or two, that hold every place p for which tracking.Distance(at, p) ≤ r
// metres: two where the circle crosses ±180°.
func Circle(at tracking.LngLat, r float64) (boxes [2]Box, n int) {
	angle := r/tracking.EarthRadius + marginAngle
	south, north := at.Lat-angle/degree, at.Lat+angle/degree
	if angle > 3 { // nearly the whole Earth; haversine is at its least exact for places opposite each other
		south, north = -90, 90
	}
	if south <= -90+polar || north >= 90-polar {
		return [2]Box{{[2]float64{-180, south}, [2]float64{180, north}}}, 1
	}
	// The circle is widest not at its centre but where a meridian touches it.
	width := math.Asin(min(1, math.Sin(angle)/math.Cos(at.Lat*degree)))/degree + marginLng
	west, east := at.Lng-width, at.Lng+width
	boxes[0] = Box{[2]float64{west, south}, [2]float64{east, north}}
	switch {
	case west <= -180:
		boxes[1] = Box{[2]float64{west + 360, south}, [2]float64{180, north}}
		return boxes, 2
	case east >= 180:
		boxes[1] = Box{[2]float64{-180, south}, [2]float64{east - 360, north}}
		return boxes, 2
	}
	return boxes, 1
}
