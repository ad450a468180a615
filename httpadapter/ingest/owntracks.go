package ingest

import (
	"strings"

	"github.com/seed-8aba7b13/tracking"
)

// ownTracks reads a message of OwnTracks, or of Colota in its shape. Those that are no location
// tell only that the phone is alive, and so does a ping: it repeats the last position with the
// present time.
func (d *decoder) ownTracks(o *object) {
	placed := o.text("lat") != "" || o.text("lon") != ""
	switch typ := o.text("_type"); {
	case o.partial:
		return
	case typ == "encrypted":
		d.encrypted = true
		d.unread++
		return
	case typ != "location":
		if placed && !isOwnTracksType(typ) {
			d.unread++
		}
		return
	case o.text("t") == "p" || !placed:
		return
	}
	at := o.text("tst")
	if at == "" {
		at = o.text("created_at")
	}
	f, ok := d.newFix(parseNumber(o.text("lon")), parseNumber(o.text("lat")), at)
	f.Accuracy = scaled(parseNumber(o.text("acc")), 1)
	f.Battery = percent(parseNumber(o.text("batt")))
	unit, bearing := kmPerHour, o.text("cog")
	if o.isColota() {
		unit = 1
		f.Accuracy = nonzero(f.Accuracy)
		if bearing == "" {
			bearing = o.text("bear")
		}
	}
	f.Speed = scaled(parseNumber(o.text("vel")), unit)
	f.Bearing = direction(parseNumber(bearing))
	d.add(f, ok)
}

// isOwnTracksType reports whether it is a type of message that holds no position of the phone's
// own, though some have a place.
func isOwnTracksType(typ string) bool {
	switch typ {
	case "transition", "waypoint", "waypoints", "lwt", "status", "steps", "dump", "beacon", "card", "configuration",
		"encrypted", "request", "cmd":
		return true
	}
	return false
}

// isColota tells a location of Colota, whose speed is in m/s, from one of OwnTracks, where it is a
// whole number of km/h. Colota calls the bearing bear, if it was not set up otherwise, and always
// sends bs; OwnTracks has at least one of its own names beside that.
func (o *object) isColota() bool {
	if o.text("bear") != "" {
		return true
	}
	for _, name := range []string{"topic", "_id", "created_at", "conn", "t", "m", "vac"} {
		if o.text(name) != "" {
			return false
		}
	}
	return o.text("bs") != "" || isFractional(o.text("vel")) || isFractional(o.text("cog"))
}

func isFractional(number string) bool {
	return parseNumber(number) != tracking.Reading{} && strings.ContainsAny(number, ".,")
}
