package ingest

import (
	"strings"

	"github.com/seed-8aba7b13/tracking"
)

// record is one position in flat form: what is known of a query, a form, or a JSON object, by name.
// The names are those of the OsmAnd protocol, which Traccar Client speaks, and of GPSLogger's %ALL.
type record map[string]string

// isField reports whether a record may have it. Those at the end only tell that an app has spoken.
func isField(name string) bool {
	switch name {
	case "lat", "latitude", "lon", "lng", "longitude", "location",
		"timestamp", "time", "tst", "valid",
		"accuracy", "acc", "hacc", "bearing", "heading", "dir",
		"speed", "speed_unit", "spd", "spd_kph",
		"batt", "battery", "eta",
		"id", "deviceid", "device_id", "notificationToken", "alarm", "altitude", "alt", "hdop", "charge":
		return true
	}
	return false
}

// put notes a value. The first one that is not empty wins.
func (r record) put(name, value string) {
	if isField(name) && r[name] == "" {
		r[name] = value
	}
}

// first is the first of these that is not empty. The order matters: GPSLogger sends both timestamp and time, to the second and to the millisecond, and the
// same record must have the same time whenever it is sent.
func (r record) first(names ...string) string {
	for _, n := range names {
		if v := r[n]; v != "" {
			return v
		}
	}
	return ""
}

func (r record) number(names ...string) tracking.Reading { return parseNumber(r.first(names...)) }

// form reads a form body and the query as one record; of two values, the body's counts. An app's body may come with a query that was set up with its URL.
func (d *decoder) form(body []byte) {
	r := record{}
	parameters(string(body), r.put)
	inBody := len(r) > 0
	parameters(d.query, r.put)
	if len(r) == 0 {
		return
	}
	d.dialect = r.dialect(inBody)
	d.add(d.flat(r, d.dialect != Traccar10))
}

// dialect names the app. Only our templates have a speed_unit; Traccar Client up to 8 leaves its body empty.
func (r record) dialect(inBody bool) Dialect {
	_, eta := r["eta"]
	switch {
	case eta:
		return OsmAnd
	case r.first("speed_unit", "spd", "spd_kph", "dir", "acc") != "":
		return GPSLogger
	case inBody:
		return Traccar10
	}
	return Traccar8
}

// flat makes a fix of a record.
func (d *decoder) flat(r record, zeroUnknown bool) (tracking.Fix, bool) {
	if v := r["valid"]; v == "false" || v == "0" {
		return tracking.Fix{}, false
	}
	lat, lng := r.number("lat", "latitude"), r.number("lon", "lng", "longitude")
	if !lat.Known && !lng.Known {
		a, b, _ := strings.Cut(r["location"], ",")
		lat, lng = parseNumber(a), parseNumber(b)
	}
	f, ok := d.newFix(lng, lat, r.first("timestamp", "time", "tst"))
	f.Accuracy = scaled(r.number("accuracy", "acc", "hacc"), 1)
	f.Bearing = direction(r.number("bearing", "heading", "dir"))
	f.Battery = percent(r.number("batt", "battery"))
	f.Speed = r.speed()
	if zeroUnknown {
		f.Accuracy, f.Bearing, f.Speed = nonzero(f.Accuracy), nonzero(f.Bearing), nonzero(f.Speed)
	}
	return f, ok
}

// speed is in m/s.
func (r record) speed() tracking.Reading {
	if v := r["spd"]; v != "" {
		return scaled(parseNumber(v), 1)
	}
	if v := r["spd_kph"]; v != "" {
		return scaled(parseNumber(v), kmPerHour)
	}
	unit := 0.0
	switch strings.ToLower(r["speed_unit"]) {
	case "", "kn":
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
