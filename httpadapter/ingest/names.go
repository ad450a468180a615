package ingest

import "strings"

// record is one position in flat form: what is known of a query, a form, or a JSON object, by name.
// The names are those of the OsmAnd protocol, which Traccar Client speaks, of GPSLogger's %ALL, of
// Colota, and what isField has besides.
type record map[string]string

// isField reports whether a record may have it. Those at the end only tell that an app has spoken.
func isField(name string) bool {
	switch name {
	case "lat", "latitude", "lon", "lng", "longitude", "location",
		"timestamp", "time", "tst", "valid",
		"accuracy", "acc", "hacc", "horizontal_accuracy",
		"bearing", "heading", "dir", "course", "cog", "bear",
		"speed", "speed_unit", "spd", "spd_kph", "vel",
		"batt", "battery", "bat", "battery_level", "bs", "eta",
		"id", "deviceid", "device_id", "notificationToken", "alarm", "altitude", "alt", "hdop", "charge":
		return true
	}
	return false
}

// isMark reports whether a JSON object may have it beside the fields of a record: by these it shows
// what it is.
func isMark(name string) bool {
	switch name {
	case "_type", "t", "topic", "_id", "created_at", "conn", "m", "vac", // OwnTracks
		"coords", "level", // Traccar 9
		"locations", "current", "trip", "action", "type": // Overland

		return true
	}
	return false
}

// timeAliases are other names of the time of a fix, as [plain] writes them, the best first. What
// tells when something was sent or stored (created_at, sent_at …) is none.
var timeAliases = [...]string{
	"fixtime", "gpstime", "locationtime", "measuredat", "capturedat", "recordedat", "locatedat",
	"timestampms", "timems", "unixtimestamp", "unixtime", "epoch", "utctime", "datetime", "devicetime", "ts", "date",
}

// fieldName is what a record calls the field that an app writes so; exact when it is written so,
// too. "" if it is none.
//
// Apps whose names can be chosen are set up by hand, so "Latitude", "horizontalAccuracy" and
// "time-stamp" are read where the spelling of a record is not there.
func fieldName(name string) (known string, exact bool) {
	if isField(name) || isMark(name) {
		return name, true
	}
	if len(name) > 32 {
		return "", false
	}
	switch p := plain(name); p {
	case "long":
		return "lon", false
	case "horizontalaccuracy", "gpsaccuracy":
		return "horizontal_accuracy", false
	case "batterylevel":
		return "battery_level", false
	case "speedunit":
		return "speed_unit", false
	case "lat", "latitude", "lon", "lng", "longitude", "timestamp", "time", "tst",
		"accuracy", "bearing", "heading", "course", "speed", "battery":
		return p, false
	default:
		for _, alias := range timeAliases {
			if p == alias {
				return p, false
			}
		}
	}
	return "", false
}

// plain is a name in small letters and without what joins words in it.
func plain(name string) string {
	return strings.ToLower(strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || c == ' ' {
			return -1
		}
		return c
	}, name))
}

// put notes a value. The first one that is not empty wins.
func (r record) put(name, value string) {
	if r[name] == "" {
		r[name] = value
	}
}

// add notes what another record has and this one has not.
func (r record) add(other record) {
	for name, value := range other { // into other places each, so that their order is nothing
		r.put(name, value)
	}
}

// first is the first of these that is not empty. The order matters: GPSLogger sends both timestamp
// and time, to the second and to the millisecond, and the same record must have the same time
// whenever it is sent.
func (r record) first(names ...string) string {
	for _, n := range names {
		if v := r[n]; v != "" {
			return v
		}
	}
	return ""
}
