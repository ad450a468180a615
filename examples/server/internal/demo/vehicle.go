package demo

import (
	"math"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

const (
	cruise       = 8.0 // m/s, 29 km/h
	turning      = 3.0 // m/s, around a corner
	acceleration = 1.5 // m/s²
	braking      = 2.0 // m/s²
	lightTime    = 6   // s at a red light
)

// vehicle drives along a course, in steps of a second.
type vehicle struct {
	course *course
	at     float64
	speed  float64 // m/s
	held   int     // seconds still to stand
}

// drive drives for a second towards a place and tells whether it stands there.
func (v *vehicle) drive(to float64) (arrived bool) {
	left := v.course.ahead(v.at, to)
	if left == 0 {
		v.speed = 0
		return true
	}
	if v.held > 0 {
		v.held--
		v.speed = 0
		return false
	}
	// Where it stands next, how far that is, and the speed from which everything ahead can still be
	// met.
	stop, way, limit := to, left, math.Min(cruise, within(0, left))
	for _, c := range v.course.corners {
		switch w := v.course.ahead(v.at, c.at); {
		case w == 0: // just waited here
		case !c.light:
			limit = math.Min(limit, within(turning, w))
		case w < way:
			stop, way, limit = c.at, w, math.Min(limit, within(0, w))
		}
	}
	v.speed = math.Min(v.speed+acceleration, limit)
	if v.speed < way {
		v.at = math.Mod(v.at+v.speed, v.course.length)
		return false
	}
	v.at = stop
	if stop != to {
		v.held = lightTime
	}
	return stop == to
}

// within is the speed from which braking over a way of so many metres ends at speed to.
func within(to, way float64) float64 { return math.Sqrt(to*to + 2*braking*way) }

// fix is what a phone in the vehicle measures.
func (v *vehicle) fix(now time.Time) tracking.Fix {
	at, heading := v.course.locate(v.at)
	return tracking.Fix{
		LngLat: at, Time: now,
		Accuracy: tracking.Known(5), Speed: tracking.Known(v.speed), Bearing: tracking.Known(heading),
	}
}
