package ingest

import (
	"bytes"
	"encoding/json"
	"iter"

	"github.com/seed-8aba7b13/tracking"
)

// object is a JSON object whose values are read when asked for, so that a wrong one spoils only itself.
type object map[string]json.RawMessage

// parseObject reads raw, which is one JSON value; nil if it is no object.
func parseObject(raw json.RawMessage) object {
	var o object
	if !startsWith(raw, '{') || json.Unmarshal(raw, &o) != nil {
		return nil
	}
	return o
}

func (o object) has(name string) bool             { _, ok := o[name]; return ok }
func (o object) object(name string) object        { return parseObject(o[name]) }
func (o object) text(name string) string          { return scalar(o[name]) }
func (o object) number(n string) tracking.Reading { return parseNumber(o.text(n)) }

// scalar is the text of a string, a number or a truth value; "" for anything else.
func scalar(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	switch raw[0] {
	case '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return ""
		}
		return s
	case '{', '[', 'n':
		return ""
	}
	return string(raw)
}

// elements yields the elements of the array that raw begins with, up to the first one that is no JSON. Nothing, if it begins with no array.
func elements(raw []byte) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		dec := json.NewDecoder(bytes.NewReader(raw))
		if t, err := dec.Token(); err != nil || t != json.Delim('[') {
			return
		}
		for dec.More() {
			var e json.RawMessage
			if dec.Decode(&e) != nil || !yield(e) {
				return
			}
		}
	}
}

// json reads a JSON body: an object of any dialect, or an array of them. What follows it is not looked at.
func (d *decoder) json(body []byte) {
	if body[0] == '{' {
		var o object
		if json.NewDecoder(bytes.NewReader(body)).Decode(&o) == nil {
			d.object(o)
		}
		return
	}
	d.dialect = Traccar10
	for e := range elements(body) {
		d.object(parseObject(e))
		if len(d.fixes) == MaxFixes {
			return
		}
	}
}

func (d *decoder) object(o object) {
	switch {
	case o.has("_type"):
		d.dialect = OwnTracks
		d.ownTracks(o)
	case o.has("locations"), o.has("current"), o.has("trip"):
		d.dialect = Overland
		d.overland(o)
	case o.has("coords"):
		d.dialect = Traccar9
		d.add(d.traccar9(o))
	case startsWith(o["location"], '{'):
		d.dialect = Traccar9
		d.add(d.traccar9(o.object("location")))
	case startsWith(o["location"], '['):
		d.dialect = Traccar9
		for e := range elements(o["location"]) {
			d.add(d.traccar9(parseObject(e)))
		}
	default:
		d.flatObject(o)
	}
}

func startsWith(raw json.RawMessage, c byte) bool { return len(raw) > 0 && raw[0] == c }

// flatObject reads what is otherwise a form. The URL may say the unit of the speed.
func (d *decoder) flatObject(o object) {
	r := record{}
	for name, raw := range o {
		if isField(name) {
			r[name] = scalar(raw)
		}
	}
	if len(r) == 0 {
		return
	}
	parameters(d.query, func(name, value string) {
		if name == "speed_unit" {
			r.put(name, value)
		}
	})
	d.dialect = r.dialect(true)
	d.add(d.flat(r, d.dialect != Traccar10))
}

// traccar9 reads a location as Traccar Client 9 has it from its location library, where −1 stands for unknown.
func (d *decoder) traccar9(location object) (tracking.Fix, bool) {
	c := location.object("coords")
	f, ok := d.newFix(c.number("longitude"), c.number("latitude"), location.text("timestamp"))
	f.Accuracy = scaled(c.number("accuracy"), 1)
	f.Speed = scaled(c.number("speed"), 1)
	f.Bearing = direction(c.number("heading"))
	f.Battery = within(location.object("battery").number("level"), 0, 1)
	return f, ok
}

// ownTracks reads a message of OwnTracks. Those that are no location tell only that the phone is alive, and so does a ping: it repeats the last position with
// the present time.
func (d *decoder) ownTracks(o object) {
	switch o.text("_type") {
	case "encrypted":
		d.encrypted = true
		return
	case "location":
	default:
		return
	}
	if o.text("t") == "p" {
		return
	}
	at := o.text("tst")
	if at == "" {
		at = o.text("created_at")
	}
	f, ok := d.newFix(o.number("lon"), o.number("lat"), at)
	f.Accuracy = scaled(o.number("acc"), 1)
	f.Speed = scaled(o.number("vel"), kmPerHour)
	f.Bearing = direction(o.number("cog"))
	f.Battery = percent(o.number("batt"))
	d.add(f, ok)
}

// overland reads a batch of Overland. The current position is only there while a backlog is sent; it comes again in a later batch.
func (d *decoder) overland(o object) {
	d.add(d.feature(o.object("current")))
	for e := range elements(o["locations"]) {
		d.add(d.feature(parseObject(e)))
		if len(d.fixes) == MaxFixes {
			return
		}
	}
}

// feature reads one GeoJSON feature. One with an action (paused, will_terminate, visit …) and a trip have the last known place, if any, with another time.
func (d *decoder) feature(o object) (tracking.Fix, bool) {
	p := o.object("properties")
	if p.text("action") != "" || p.text("type") != "" {
		return tracking.Fix{}, false
	}
	var at [2]tracking.Reading
	n := 0
	for e := range elements(o.object("geometry")["coordinates"]) {
		at[n] = parseNumber(scalar(e))
		if n++; n == len(at) {
			break
		}
	}
	f, ok := d.newFix(at[0], at[1], p.text("timestamp"))
	f.Accuracy = scaled(p.number("horizontal_accuracy"), 1)
	f.Speed = scaled(p.number("speed"), 1)
	f.Bearing = direction(p.number("course"))
	f.Battery = within(p.number("battery_level"), 0, 1)
	return f, ok
}
