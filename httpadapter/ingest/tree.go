package ingest

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxDepth is how deep arrays and objects may lie in each other to be looked at. What lies deeper
// is passed over.
const maxDepth = 32

// maxScalars is how many bare values of an array are kept: a place has two or three.
const maxScalars = 3

// value is a JSON value, of which only what can be part of a position is kept.
type value struct {
	kind   byte    // 's' for one with a text, '{', '[', or 'n' for null
	text   string  // of a string, a number or a truth value; a number as it stands there
	object *object // of '{'
	array  []value // of '['
}

// object is a JSON object.
type object struct {
	fields     []field  // those with a name we know, in order
	containers []member // arrays and objects, by whatever name, in order
	others     bool     // it has single values by other names
	degrees    int      // how many of them look like a longitude or latitude
	partial    bool     // it does not end
}

// member is an array or an object in an object.
type member struct {
	name string
	value
}

// field is a single value in an object.
type field struct {
	name  string // one that isField knows
	exact bool   // it stands there in this spelling
	text  string
}

// parse reads the arrays and objects of a body, one after the other, as far as they can be read:
// what is wrong in one place takes nothing from the others. Whole is false where something may be
// lost, since an array, object or text does not end, or not as it began. It takes time and memory
// in proportion to the body, however that nests.
//
// Decoders of the standard library read all of a value or nothing, or token by token at many times
// the cost.
func parse(body []byte) (list []value, whole bool) {
	p := parser{b: body}
	for ; p.i < len(p.b); p.i++ { // what is between them, and is no JSON, is nobody's business
		for p.i < len(p.b) && (p.b[p.i] == '{' || p.b[p.i] == '[') {
			list = append(list, p.value())
		}
	}
	return list, !p.broken
}

// parser reads b from i on. It is lenient by token: one that is no JSON is a text that says so, and
// the reading goes on at the next comma, bracket or quote.
type parser struct {
	b      []byte
	i      int
	open   []byte // what the arrays and objects that are being read began with, from the outside
	broken bool   // one of them, or a text, did not end, or not as it began
}

// next is the first byte that is no white space, and stays the next one; 0 at the end.
func (p *parser) next() byte {
	for ; p.i < len(p.b); p.i++ {
		switch c := p.b[p.i]; c {
		case ' ', '\t', '\n', '\r':
		case 0:
			return ' ' // not the end
		default:
			return c
		}
	}
	return 0
}

// value reads the next value, a member of the innermost that is open; its kind is 0 if there is
// none.
func (p *parser) value() (v value) {
	switch c := p.next(); c {
	case '{', '[':
		p.i++
		if len(p.open) == maxDepth {
			p.skip()
			return value{kind: 'n'}
		}
		p.open = append(p.open, c)
		if c == '[' {
			v = p.array()
		} else {
			v = p.object()
		}
		p.open = p.open[:len(p.open)-1]
		return v
	case '"':
		return value{kind: 's', text: p.text()}
	}
	switch word := p.word(`,[]{}"`); {
	case word == "":
		return value{}
	case word == "null":
		return value{kind: 'n'}
	case strings.EqualFold(word, "true"), strings.EqualFold(word, "false"): // Python has capitals
		return value{kind: 's', text: strings.ToLower(word)}
	default:
		return value{kind: 's', text: word}
	}
}

// word reads up to one of the bytes that end it: a number, a word of JSON, or something that is
// none.
func (p *parser) word(ends string) string {
	rest := p.b[p.i:]
	if n := bytes.IndexAny(rest, ends); n >= 0 {
		rest = rest[:n]
	}
	p.i += len(rest)
	return strings.ToValidUTF8(string(bytes.TrimSpace(rest)), "\ufffd")
}

// text reads a string. What JSON would not have in one is a part of it.
func (p *parser) text() (text string) {
	from, escaped := p.i+1, false
	for p.i++; p.i < len(p.b); p.i++ {
		switch p.b[p.i] {
		case '"':
			raw := p.b[from:p.i]
			p.i++
			if escaped && json.Unmarshal(p.b[from-1:p.i], &text) == nil {
				return text
			}
			return strings.ToValidUTF8(string(raw), "\ufffd")
		case '\\':
			escaped = true
			p.i++
		}
	}
	p.i = len(p.b)
	p.broken = true
	return ""
}

// skip reads to the end of the array or object that has just begun.
func (p *parser) skip() {
	for open := 1; open > 0; {
		switch p.next() {
		case 0:
			p.broken = true
			return
		case '"':
			p.text()
			continue
		case '[', '{':
			open++
		case ']', '}':
			open--
		}
		p.i++
	}
}

// ends reads what may be the end of the innermost array or object, which began with begin. It
// reports whether that is over. The end of one around it ends both; of one that is not open,
// nothing.
func (p *parser) ends(end byte) (over, asItBegan bool) {
	begin := byte('[')
	if end == '}' {
		begin = '{'
	}
	if n := len(p.open) - 1; p.open[n] == begin {
		p.i++
		return true, true
	}
	p.broken = true
	if bytes.IndexByte(p.open, begin) >= 0 {
		return true, false
	}
	p.i++
	return false, false
}

func (p *parser) array() (v value) {
	v.kind = '['
	scalars := 0
	for {
		switch c := p.next(); c {
		case 0:
			p.broken = true
			return v
		case ',':
			p.i++
			continue
		case ']', '}':
			if over, _ := p.ends(c); over {
				return v
			}
			continue
		}
		e := p.value()
		switch {
		case e.kind == 's' || e.kind == 'n':
			if scalars++; scalars <= maxScalars {
				v.array = append(v.array, e)
			}
		case e.kind != 0 && !e.empty():
			v.array = append(v.array, e)
		}
	}
}

// empty reports whether nothing is in an array or object, nor was.
func (v value) empty() bool {
	o := v.object
	return len(v.array) == 0 && (o == nil || len(o.fields) == 0 && len(o.containers) == 0 && !o.others && !o.partial)
}

func (p *parser) object() (v value) {
	o := &object{partial: true}
	v.kind, v.object = '{', o
	for {
		name := ""
		switch c := p.next(); c {
		case 0:
			p.broken = true
			return v
		case ',', ':':
			p.i++
			continue
		case ']', '}':
			if over, whole := p.ends(c); over {
				o.partial = !whole
				return v
			}
			continue
		case '[', '{': // a member without a name
			o.add("", p.value())
			continue
		case '"':
			name = p.text()
		default:
			name = p.word(`,:[]{}"`)
		}
		if p.next() == ':' {
			p.i++
			o.add(name, p.value())
		}
	}
}

// add notes a member of o, if it is of use.
func (o *object) add(name string, v value) {
	switch v.kind {
	case '{', '[':
		o.containers = append(o.containers, member{name, v})
	case 's', 'n':
		if known, exact := fieldName(name); known != "" {
			o.fields = append(o.fields, field{known, exact, v.text})
			return
		}
		o.others = true
		if isDegrees(v.text) {
			o.degrees++
		}
	}
}

// find is the value by that name, of which the last one counts; nil if it is no array or object.
func (o *object) find(name string) *value {
	for i := len(o.containers) - 1; i >= 0; i-- {
		if o.containers[i].name == name {
			return &o.containers[i].value
		}
	}
	return nil
}

// inner is the object by that name, or nil.
func (o *object) inner(name string) *object {
	if v := o.find(name); v != nil {
		return v.object
	}
	return nil
}

// has reports whether there is anything by exactly that name, null included.
func (o *object) has(name string) bool {
	for _, f := range o.fields {
		if f.exact && f.name == name {
			return true
		}
	}
	return o.find(name) != nil
}

// text is the single value by exactly that name, which has to be one that isField knows; "" for
// none.
func (o *object) text(name string) string {
	for i := len(o.fields) - 1; i >= 0; i-- {
		if f := o.fields[i]; f.exact && f.name == name {
			return f.text
		}
	}
	return ""
}
