package strict

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-8aba7b13/tracking"
)

// An Object reads the members of a JSON object by name. The first thing found wrong sticks: every
// later read gives a zero value, and [Object.Err] tells what it was. A member that is null counts
// as absent.
//
// Names must be asked for even when their value is of no use, because asking is what finds a name
// written in another case.
type Object struct {
	doc   *document
	at    span
	path  string // of what it is in; "" for the body itself and what is in that
	name  string // its own; "" for the body itself
	first int    // of all members, the first that may be its own
	*own
}

// own is what has been found out about an object and those within it.
type own struct {
	err   *tracking.Error
	apart []span // arrays of elements that are judged one by one
	one   [1]span
}

// ParseObject reads a body that has to be one JSON object.
func ParseObject(body []byte) (Object, error) { return new(Room).parse(body) }

// Room is memory for what is found out about a body. Another one may be read in it as soon as nothing
// more is asked of the objects and lists of the one before.
type Room struct{ doc document }

func (r *Room) parse(body []byte) (Object, error) {
	doc := &r.doc
	if err := doc.parse(body); err != nil {
		return Object{}, err
	}
	at := span{doc.start(), len(doc.b)}
	if doc.b[at.from] != '{' {
		return Object{}, &tracking.Error{Code: tracking.ErrInvalid, Message: "The body must be a JSON object."}
	}
	return doc.object(at, "", "", &doc.own), nil
}

func (d *document) start() int { return d.next(0) }

func (d *document) object(at span, path, name string, own *own) Object {
	first, _ := slices.BinarySearchFunc(d.members, at.from, func(m member, at int) int { return int(m.keyFrom) - at })
	return Object{doc: d, at: at, path: path, name: name, first: first, own: own}
}

// members yields the members in the order they came.
func (o Object) members(yield func(*member) bool) {
	all := o.doc.members
	for i := o.first; i < len(all) && int(all[i].keyFrom) < o.at.to && yield(&all[i]); {
		i = int(all[i].next)
	}
}

// Err returns the first thing found wrong, as a [*tracking.Error], or nil.
func (o Object) Err() error {
	if o.err != nil {
		return o.err
	}
	for _, f := range o.doc.faultsFrom(o.at.from) {
		if f.at >= o.at.to {
			break
		}
		if !o.isApart(f.at) {
			return &tracking.Error{Code: tracking.ErrInvalid, Message: f.message}
		}
	}
	return nil
}

func (o Object) isApart(at int) bool {
	for _, s := range o.apart {
		if s.from < at && at < s.to {
			return true
		}
	}
	return false
}

// Path is the JSON path of a member.
func (o Object) Path(name string) string { return join(join(o.path, o.name), name) }

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// Fail notes that the member is wrong. The message follows the member's path: "must be …".
func (o Object) Fail(name, message string) {
	if o.err == nil {
		path := o.Path(name)
		o.err = &tracking.Error{
			Code: tracking.ErrInvalid, Field: path, Message: "The field " + path + " " + message + ".",
		}
	}
}

// find returns the member's value; not ok when it is absent or null, or when something is wrong. Like
// bytes and text it takes a pointer: to copy an Object for each takes 3 % of reading a task.
func (o *Object) find(name string) (s span, ok bool) {
	if o.err != nil {
		return span{}, false
	}
	all := o.doc.members
	for i := o.first; i < len(all) && int(all[i].keyFrom) < o.at.to; i = int(all[i].next) {
		m := &all[i]
		if m.plain && !begin(o.doc.b[m.keyFrom+1], name) {
			continue
		}
		switch key := o.doc.key(m); {
		case string(key) == name && ok:
			o.Fail(name, "is given twice")
			return span{}, false
		case string(key) == name:
			s, ok = m.raw(), true
		case strings.EqualFold(string(key), name):
			o.Fail(name, "is given with its name in another case")
			return span{}, false
		}
	}
	if ok && o.doc.b[s.from] == 'n' {
		return span{}, false
	}
	return s, ok
}

// begin reports whether a key that begins with c, or ends there, may be the name, whatever the case of
// its letters: it is seen faster than that the whole of them is the same.
func begin(c byte, name string) bool {
	const small = 'a' - 'A'
	return name == "" || c >= utf8.RuneSelf || name[0] >= utf8.RuneSelf || c|small == name[0]|small
}

// text finds a string.
func (o *Object) text(name string) (string, bool) {
	b, ok := o.bytes(name)
	return string(b), ok
}

// bytes finds a string, which may be a part of the document.
func (o *Object) bytes(name string) ([]byte, bool) {
	s, ok := o.find(name)
	if !ok {
		return nil, false
	}
	if o.doc.b[s.from] != '"' {
		o.Fail(name, "must be a text")
		return nil, false
	}
	if o.doc.faulty(s) {
		o.Fail(name, "holds half of a surrogate pair")
		return nil, false
	}
	return o.doc.bytes(s), true
}

// Text reads a string, which may hold anything but U+0000. Not ok when it is absent.
func (o Object) Text(name string) (string, bool) {
	t, ok := o.text(name)
	if ok && strings.Contains(t, "\x00") {
		o.Fail(name, "must not hold the character U+0000")
		return "", false
	}
	return t, ok
}

// Lookup reads an identifier that something is looked up by, so that its form is nobody's business.
// Not ok when it is absent.
func (o Object) Lookup(name string) (string, bool) { return o.text(name) }

// ID is a Lookup that has to be there and not empty.
func (o Object) ID(name string) string {
	t, ok := o.text(name)
	if o.err == nil && (!ok || t == "") {
		o.Fail(name, "is required")
	}
	return t
}

// Bool reads true or false. Not ok when it is absent.
func (o Object) Bool(name string) (v, ok bool) {
	s, ok := o.find(name)
	if !ok {
		return false, false
	}
	switch o.doc.b[s.from] {
	case 't':
		return true, true
	case 'f':
		return false, true
	}
	o.Fail(name, "must be true or false")
	return false, false
}

// Int reads a number written without fraction and exponent. Not ok when it is absent.
func (o Object) Int(name string) (int, bool) {
	s, ok := o.find(name)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(string(o.doc.b[s.from:s.to])) // the grammar has refused a plus sign and leading zeros
	if err != nil {
		o.Fail(name, "must be an integer")
		return 0, false
	}
	return n, true
}

// Digits reads an integer, or a text of any kind that may stand for one, as it is written. Not ok
// when it is absent.
func (o Object) Digits(name string) (string, bool) {
	s, ok := o.find(name)
	if !ok {
		return "", false
	}
	if o.doc.b[s.from] == '"' {
		return o.text(name)
	}
	if lit := string(o.doc.b[s.from:s.to]); strings.Trim(lit, "-0123456789") == "" {
		return lit, true
	}
	o.Fail(name, "must be an integer or a text of digits")
	return "", false
}

// Float reads a number that float64 can hold. Not ok when it is absent.
func (o Object) Float(name string) (float64, bool) {
	s, ok := o.find(name)
	if !ok {
		return 0, false
	}
	f, ok := o.doc.number(s)
	if !ok {
		o.Fail(name, "must be a number")
	}
	return f, ok
}

// Reading reads a Float.
func (o Object) Reading(name string) (tracking.Reading, bool) {
	f, ok := o.Float(name)
	return tracking.Reading{Value: f, Known: ok}, ok
}

// number decodes the value if it is a number that float64 can hold.
func (d *document) number(s span) (float64, bool) {
	if c := d.b[s.from]; c != '-' && (c < '0' || c > '9') {
		return 0, false
	}
	return d.float(s)
}

// Time reads a point in time, see [ParseTime]. Not ok when it is absent.
func (o Object) Time(name string) (time.Time, bool) {
	b, ok := o.bytes(name)
	if !ok {
		return time.Time{}, false
	}
	t, ok := ParseTime(string(b))
	if !ok {
		o.Fail(name, timeMessage)
	}
	return t, ok
}

// TimeOrNone reads a Time, or an empty text for none. Not ok when it is absent.
func (o Object) TimeOrNone(name string) (TimeOrNone, bool) {
	if s, ok := o.text(name); ok && s == "" {
		return TimeOrNone{}, true
	}
	t, ok := o.Time(name)
	return TimeOrNone{t}, ok
}

// LngLat reads [longitude, latitude] in degrees. Not ok when it is absent.
func (o Object) LngLat(name string) (p tracking.LngLat, ok bool) {
	s, ok := o.find(name)
	if !ok {
		return p, false
	}
	if p, ok = o.doc.lngLat(s); !ok {
		o.Fail(name, "must be an array of two numbers, longitude (−180 to 180) and latitude (−90 to 90)")
	}
	return p, ok
}

func (d *document) lngLat(s span) (p tracking.LngLat, ok bool) {
	if d.b[s.from] != '[' {
		return p, false
	}
	i := d.next(s.from + 1)
	if d.b[i] == ']' {
		return p, false
	}
	first := span{i, d.skip(i)}
	if i = d.next(first.to); d.b[i] == ']' {
		return p, false
	}
	second := span{i, d.skip(i)}
	if d.b[d.next(second.to)] != ']' {
		return p, false
	}
	lng, ok1 := d.number(first)
	lat, ok2 := d.number(second)
	p = tracking.LngLat{Lng: lng, Lat: lat}
	return p, ok1 && ok2 && p.Valid()
}

// TextOrPoint reads a text, or [longitude, latitude], which becomes the text "longitude,latitude".
// Not ok when it is absent.
func (o Object) TextOrPoint(name string) (string, bool) {
	s, ok := o.find(name)
	if !ok {
		return "", false
	}
	if o.doc.b[s.from] != '[' {
		return o.Text(name)
	}
	p, ok := o.LngLat(name)
	if !ok {
		return "", false
	}
	return decimal(p.Lng) + "," + decimal(p.Lat), true
}

// decimal writes a number in shortest decimals without exponent.
func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Object reads an object within this one. Not ok when it is absent. What is wrong in it shows in
// the Err of both.
func (o Object) Object(name string) (Object, bool) {
	s, ok := o.find(name)
	if !ok {
		return Object{}, false
	}
	if o.doc.b[s.from] != '{' {
		o.Fail(name, "must be an object")
		return Object{}, false
	}
	return o.doc.object(s, join(o.path, o.name), name, o.own), true
}

// TextMap reads an object of strings, in which a null counts as absent; nil when it is absent, not
// nil when it is there.
func (o Object) TextMap(name string) map[string]string {
	in, ok := o.Object(name)
	if !ok {
		return nil
	}
	m := map[string]string{}
	for e := range in.members {
		key, raw := string(o.doc.key(e)), e.raw()
		if _, twice := m[key]; twice {
			o.Fail(name, "gives a key twice")
			return nil
		}
		if o.doc.b[raw.from] == 'n' {
			continue
		}
		// The key is the caller's own word, so the field to blame is the map.
		if o.doc.b[raw.from] != '"' {
			o.Fail(name, "must hold texts only")
			return nil
		}
		if o.doc.faulty(raw) {
			o.Fail(name, "holds half of a surrogate pair")
			return nil
		}
		v := o.doc.text(raw)
		if strings.Contains(v, "\x00") || strings.Contains(key, "\x00") {
			o.Fail(name, "must not hold the character U+0000")
			return nil
		}
		m[key] = v
	}
	return m
}

// Texts reads an array of at most max strings. Not ok when it is absent.
func (o Object) Texts(name string, max int) (list []string, ok bool) {
	list, ok = o.Lookups(name, max)
	if slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, "\x00") }) {
		o.Fail(name, "must not hold the character U+0000")
		return nil, false
	}
	return list, ok
}

// Lookups reads Texts that are looked up by, each of which may hold anything.
func (o Object) Lookups(name string, max int) (list []string, ok bool) {
	s, ok := o.find(name)
	if !ok {
		return nil, false
	}
	if o.doc.b[s.from] != '[' {
		o.Fail(name, "must be an array")
		return nil, false
	}
	elements, more := o.doc.elements(nil, s, max)
	if more {
		o.Fail(name, "has more than "+strconv.Itoa(max)+" elements")
		return nil, false
	}
	for _, e := range elements {
		switch {
		case o.doc.b[e.from] != '"':
			o.Fail(name, "must hold texts only")
			return nil, false
		case o.doc.faulty(e):
			o.Fail(name, "holds half of a surrogate pair")
			return nil, false
		}
		list = append(list, o.doc.text(e))
	}
	return list, true
}

// List is an array whose elements are judged one by one.
type List struct {
	doc *document
	at  span
}

// Element is one element of a List. Its error is its own.
type Element struct {
	doc *document
	at  span
	own own
}

// List reads an array. Not ok when it is absent. What is wrong within an element is not an error of
// o, except that the whole body has to be JSON.
func (o Object) List(name string) (List, bool) {
	s, ok := o.find(name)
	if !ok {
		return List{}, false
	}
	if o.doc.b[s.from] != '[' {
		o.Fail(name, "must be an array")
		return List{}, false
	}
	if o.apart == nil {
		o.apart = o.one[:0]
	}
	o.apart = append(o.apart, s)
	return List{o.doc, s}, true
}

// Take gives at most max elements; more tells whether there are further ones.
func (l List) Take(max int) (elements []Element, more bool) {
	if l.doc == nil {
		return nil, false
	}
	var few [4]span
	spans, more := l.doc.elements(few[:0], l.at, max)
	elements = make([]Element, len(spans))
	for i, s := range spans {
		elements[i] = Element{doc: l.doc, at: s}
	}
	return elements, more
}

// Object reads the element as an object whose members are told of under path; "" for their bare
// names. Not ok when it is something else.
func (e *Element) Object(path string) (Object, bool) {
	if e.doc.b[e.at.from] != '{' {
		return Object{}, false
	}
	return e.doc.object(e.at, "", path, &e.own), true
}
