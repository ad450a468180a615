package ingest

import "maps"

// An element is what one position of a request is made of.
type element struct {
	record   // its readings
	style    // how they are written
	dialect  Dialect
	lng, lat string // as they are written; "" for none
	at       string
	timed    bool   // at counts, or its being empty, which means now
	part     string // the name of the part that the place is from; "" for none
}

// placed reports whether it says where, if only in part.
func (e element) placed() bool { return e.lng != "" || e.lat != "" }

// take keeps the fix that e is. What says where it was and is no fix was sent to be read, and
// counts as unread.
func (d *decoder) take(e element) {
	if !e.placed() || e.invalid() {
		return
	}
	if !e.timed {
		d.timeless++
		return
	}
	f, ok := d.newFix(parseNumber(e.lng), parseNumber(e.lat), e.at)
	e.readings(&f, e.style)
	d.add(f, ok)
}

// where an object stands, which says whether it may leave out its time, and in what unit its speed
// is.
type where int

const (
	top       where = iota // it is the body, or in the array that the body is
	traccar9               // it is the location of Traccar Client 9, or one of several
	overland               // it is one of the locations of Overland, or the current one
	elsewhere              // no app that we know would put it there
)

// inside is where the members of an object by that name stand.
func (w where) inside(name string) where {
	switch {
	case w == top && name == "location":
		return traccar9
	case w == top && (name == "locations" || name == "current"):
		return overland
	}
	return elsewhere
}

// json reads a JSON body. Positions are looked for in all of it: whatever container an app puts
// them in, they are objects that have a place and a time by names that we know.
func (d *decoder) json(body []byte) {
	values, whole := parse(body)
	if body[0] == '[' {
		d.dialect = Traccar10
	}
	for _, v := range values {
		if v.object != nil {
			d.object(v.object, top)
			d.strange = d.strange || d.dialect == Unknown && len(v.object.containers) > 0
		}
		for _, e := range v.array {
			if e.object != nil {
				d.object(e.object, top)
			} else {
				d.elements(e, elsewhere)
			}
		}
	}
	if !whole {
		d.unread++
	}
}

// elements reads all that v holds.
func (d *decoder) elements(v value, at where) {
	if v.object != nil {
		d.object(v.object, at)
	}
	for _, e := range v.array {
		d.elements(e, at)
	}
}

// object reads o, which may be a position, hold some, or both.
func (d *decoder) object(o *object, at where) {
	before := len(d.fixes)
	if o.has("_type") {
		d.ownTracks(o)
		if at == top || len(d.fixes) > before {
			d.name(OwnTracks, at)
		}
		return // whatever else is in there belongs to the message: waypoints, regions, a configuration
	}
	known := at == top && d.container(o)
	if o.isAction(at) {
		return
	}
	e := d.element(o, at, known)
	if !o.partial { // else what it does not have may be behind the break
		d.take(e)
	}
	isFix := len(d.fixes) > before
	if !known && (isFix || at == top && e.part == "") {
		d.name(e.dialect, at)
	}
	if !isFix && !e.placed() && o.isStrange(e) {
		d.strange = true
	}

	inside := at.inside
	if o.partial {
		inside = func(string) where { return elsewhere }
	}
	newest := ""
	if current := o.find("current"); known && current != nil { // it is only there while a backlog is sent
		newest = "current"
		d.elements(*current, inside(newest))
	}
	for _, m := range o.containers {
		switch {
		case m.name == e.part, m.name == newest:
		case known && m.name == "trip" && (o.has("locations") || newest != ""): // it repeats places of fixes
		case isSide(m.name) && m.object != nil &&
			(isFix || len(m.object.containers) == 0): // as the geofence that was crossed
		default:
			d.elements(m.value, inside(m.name))
		}
	}
}

// isStrange reports whether o has what may well be a position by names that we do not know. It has
// none that we do.
func (o *object) isStrange(e element) bool {
	if part := o.inner(e.part); part != nil && (part.others || len(part.containers) > 0) {
		return true
	}
	return o.degrees > 1 || o.others && len(e.record) == 0 && len(o.containers) == 0
}

// name notes a dialect: of what stands at the top the last word counts, of the rest the first.
func (d *decoder) name(dialect Dialect, at where) {
	if dialect != "" && (at == top || d.dialect == Unknown) {
		d.dialect = dialect
	}
}

// container names the app by the containers of a body, and reports whether it has one that we know.
func (d *decoder) container(o *object) bool {
	switch {
	case o.has("locations"), o.has("current"), o.has("trip"):
		d.dialect = Overland
	case o.has("coords"), o.find("location") != nil:
		d.dialect = Traccar9
	default:
		return false
	}
	return true
}

// isSide reports whether something by that name tells of the phone and not of a place.
func isSide(name string) bool {
	switch name {
	case "battery", "activity", "extras", "provider", "geofence", "properties", "device":
		return true
	}
	return false
}

// isAction reports whether o is a record of Overland's that is no fix: one with an action (paused,
// will_terminate, visit …) and a trip have the last known place, if any, with another time.
func (o *object) isAction(at where) bool {
	p := o.inner("properties")
	if p == nil {
		return false
	}
	typ := p.text("type")
	return p.text("action") != "" || typ != "" && at == overland || typ == "trip" || typ == "visit"
}

// element puts together what o says of one position: by itself, as a GeoJSON feature or point, or
// in a part that has the place. Where no app that we know would put it, and beside containers that
// we know, it needs a time of its own.
func (d *decoder) element(o *object, at where, inKnown bool) (e element) {
	own, side := o.record(), o.inner("properties").record()
	var part record
	var mayBeNow bool
	coords, geometry := o.inner("coords"), o.inner("geometry")
	switch {
	case coords != nil:
		e.dialect, e.style, e.part = Traccar9, nested, "coords"
		part = coords.record()
		e.lng, e.lat = coords.place(part, true)
		e.record = merged(part, own, side)
		mayBeNow = at == top || at == traccar9
	case geometry != nil:
		e.dialect, e.style, e.part = Overland, nested, "geometry"
		part = geometry.record()
		e.lng, e.lat = geometry.place(part, true)
		e.record = merged(side, own, part)
		mayBeNow = at == top || at == overland
	default:
		e.style = metric
		e.lng, e.lat = o.place(own, false)
		if !e.placed() {
			e.part, e.lng, e.lat = o.placeOfPart(own, side)
			part = o.inner(e.part).record()
		}
		if len(own) > 0 {
			if d.speedUnit != "" {
				own.put("speed_unit", d.speedUnit)
			}
			e.dialect = own.dialect(true)
			mayBeNow = at == top && !inKnown && e.part == ""
		}
		if mayBeNow || e.dialect == Colota {
			e.style = styleOf(e.dialect)
		}
		e.record = merged(own, side, part)
	}

	// Its time: beside the place, else in the part that has the place, else now where an app means
	// that.
	for _, r := range []record{side, own} {
		if e.at, e.timed = r.time(); e.timed {
			return e
		}
	}
	e.timed = mayBeNow
	if at, ok := part.time(); ok {
		if _, ok := parseTime(at, d.now); ok {
			e.at, e.timed = at, true
		}
	}
	return e
}

// record is what o says by itself. Of equal names the last one counts; one that is spelled
// otherwise counts last.
func (o *object) record() record {
	if o == nil || len(o.fields) == 0 && len(o.containers) == 0 {
		return nil
	}
	var r record
	put := func(name, text string) {
		if r == nil {
			r = record{}
		}
		r.put(name, text)
	}
	for i := len(o.fields) - 1; i >= 0; i-- {
		if f := o.fields[i]; f.exact && isField(f.name) {
			put(f.name, f.text)
		}
	}
	for _, f := range o.fields {
		if !f.exact {
			put(f.name, f.text)
		}
	}
	if level := o.inner("battery"); level != nil {
		put("battery_level", level.text("level"))
	}
	return r
}

// merged is what the records say, of which the first one that says something counts. It may be one
// of them.
func merged(records ...record) record {
	var all record
	copied := false
	for _, r := range records {
		switch {
		case len(r) == 0:
		case all == nil:
			all = r
		default:
			if !copied {
				all, copied = maps.Clone(all), true
			}
			all.add(r)
		}
	}
	return all
}

// placeNames are the names of parts that say where something was measured whose time is beside
// them.
var placeNames = [...]string{
	"location", "position", "point", "coordinates", "coordinate", "latlng", "lnglat", "gps", "geo", "loc",
}

// place is the longitude and latitude of o, whose record is own: by names, or as GeoJSON. In a part
// that is there for a place, coordinates need not be said to be a point.
func (o *object) place(own record, isPart bool) (lng, lat string) {
	if lng, lat = own.place(); lng != "" || lat != "" {
		return lng, lat
	}
	name := "lnglat" // as this service's own interface has it
	if isPart || o.text("type") == "Point" {
		name = "coordinates"
	}
	if v := o.find(name); v != nil && v.object == nil {
		return v.pair()
	}
	return "", ""
}

// pair is the first two values of an array.
func (v *value) pair() (first, second string) {
	if len(v.array) > 0 {
		first = v.array[0].text
	}
	if len(v.array) > 1 {
		second = v.array[1].text
	}
	return first, second
}

// placeOfPart looks for a part of o that has a place and leaves the time to o.
func (o *object) placeOfPart(own, side record) (name, lng, lat string) {
	if _, timed := own.time(); !timed {
		if _, timed = side.time(); !timed {
			return "", "", ""
		}
	}
	for _, name := range placeNames {
		part := o.inner(name)
		if part == nil {
			continue
		}
		if _, timed := part.record().time(); timed {
			continue // a position of its own
		}
		for _, inner := range []*object{part, part.inner("coords"), part.inner("geometry")} {
			if inner == nil {
				continue
			}
			if lng, lat = inner.place(inner.record(), true); lng != "" || lat != "" {
				return name, lng, lat
			}
		}
	}
	return "", "", ""
}
