package ingest

import (
	"strings"

	"github.com/seed-8aba7b13/tracking"
)

// form reads a form body and the query as one record; of two values, the body's counts. An app's
// body may come with a query that was set up with its URL.
func (d *decoder) form(body []byte) {
	r := d.parameters(string(body))
	inBody := len(r) > 0
	d.strange = d.strange || len(body) > 0 && !inBody
	r.add(d.parameters(d.query))
	if len(r) == 0 {
		return
	}
	d.dialect = r.dialect(inBody)
	e := element{record: r, style: styleOf(d.dialect), timed: true}
	e.lng, e.lat = r.place()
	e.at, _ = r.time()
	d.take(e)
}

// parameters is the record in a query or form. Those of its parameters that cannot be read are not
// there.
func (d *decoder) parameters(s string) record {
	r, others := record{}, record{}
	degrees := 0
	eachParameter(s, func(name, value string) {
		switch known, exact := fieldName(name); {
		case known == "" || isMark(known):
			if isDegrees(value) {
				degrees++
			}
		case exact:
			r.put(known, value)
		default:
			others.put(known, value)
		}
	})
	r.add(others)
	if lng, lat := r.place(); degrees > 1 && lng == "" && lat == "" {
		d.strange = true
	}
	return r
}

// dialect names the app. Only our templates have a speed_unit; Traccar Client up to 8 leaves its
// body empty.
func (r record) dialect(inBody bool) Dialect {
	_, eta := r["eta"]
	switch {
	case eta:
		return OsmAnd
	case r.first("vel", "bear", "bs") != "" || isBatteryState(r["charge"]):
		return Colota
	case r.first("speed_unit", "spd", "spd_kph", "dir", "acc") != "":
		return GPSLogger
	case inBody:
		return Traccar10
	}
	return Traccar8
}

// isBatteryState reports whether Colota says so how the battery is. In Traccar's template it calls
// this charge, which is true or false in Traccar's own apps.
func isBatteryState(charge string) bool {
	return len(charge) == 1 && charge[0] >= '0' && charge[0] <= '3'
}

// style is how an app writes the readings of a record.
type style struct {
	speed        float64 // the unit of speed in m/s, where the record has no speed_unit
	zeroUnknown  bool    // 0 stands for an unknown accuracy, bearing or speed
	zeroAccuracy bool    // … for an unknown accuracy only
	level        bool    // the battery is a level of 0 … 1, and battery an object that has it
}

// What the location services of phones give, and apps pass on: in nested objects, and flat.
var (
	nested = style{speed: 1, level: true}
	metric = style{speed: 1}
)

func styleOf(d Dialect) style {
	switch d {
	case Traccar10:
		return style{speed: knot}
	case Colota:
		return style{speed: 1, zeroAccuracy: true}
	}
	return style{speed: knot, zeroUnknown: true}
}

// place is the longitude and the latitude.
func (r record) place() (lng, lat string) {
	lng, lat = r.first("lon", "lng", "longitude"), r.first("lat", "latitude")
	if lng == "" && lat == "" {
		at := r["location"]
		lat, lng, _ = strings.Cut(at, ",")
		switch {
		case parseNumber(lat).Known && parseNumber(lng).Known:
		case strings.Trim(at, "+-.,;0123456789 ") == "": // more numbers than two: which are meant is not known
			return "", at
		default: // the name of a place
			return "", ""
		}
	}
	return lng, lat
}

// time is when it was measured; not known if nothing says so. By other names than those of a record
// a time counts only if it can be read: they are too common to be sure.
func (r record) time() (at string, known bool) {
	if at = r.first("timestamp", "time", "tst"); at != "" {
		return at, true
	}
	for _, name := range timeAliases {
		if at = r[name]; at != "" {
			if _, ok := parseTime(at, tracking.Fix{}.Time); ok {
				return at, true
			}
		}
	}
	return "", false
}

// invalid reports whether the app itself says that it is no position.
func (r record) invalid() bool { return r["valid"] == "false" || r["valid"] == "0" }

func (r record) number(names ...string) tracking.Reading { return parseNumber(r.first(names...)) }

// readings fills in what was measured beside the place.
func (r record) readings(f *tracking.Fix, s style) {
	f.Accuracy = scaled(r.number("accuracy", "acc", "hacc", "horizontal_accuracy"), 1)
	f.Bearing = direction(r.number("bearing", "heading", "dir", "course", "cog", "bear"))
	f.Speed = r.speed(s.speed)
	if !s.level {
		f.Battery = percent(r.number("batt", "battery", "bat"))
	}
	if !f.Battery.Known {
		f.Battery = fraction(r.number("battery_level"))
	}
	if s.zeroUnknown {
		f.Accuracy, f.Bearing, f.Speed = nonzero(f.Accuracy), nonzero(f.Bearing), nonzero(f.Speed)
	}
	if s.zeroAccuracy {
		f.Accuracy = nonzero(f.Accuracy)
	}
}

// speed is in m/s.
func (r record) speed(unit float64) tracking.Reading {
	for _, u := range []struct {
		name string
		unit float64
	}{{"spd", 1}, {"spd_kph", kmPerHour}, {"vel", 1}} {
		if v := r[u.name]; v != "" {
			return scaled(parseNumber(v), u.unit)
		}
	}
	switch strings.ToLower(r["speed_unit"]) {
	case "":
	case "kn":
		unit = knot
	case "ms":
		unit = 1
	case "kmh":
		unit = kmPerHour
	default:
		return tracking.Reading{}
	}
	return scaled(r.number("speed"), unit)
}
