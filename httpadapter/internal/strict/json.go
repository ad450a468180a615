// Package strict reads JSON bodies and query strings without guessing.
//
// encoding/json and net/url accept a good deal that a caller cannot have meant: a key given twice,
// a key in another case, data after the value, broken UTF-8, half of a surrogate pair, a parameter
// given twice, a signed page number. All of that is an error here. Members and parameters that
// nobody asks for are ignored, whatever they hold, as long as they are well formed.
//
// Errors are [tracking.Error] values with code [tracking.ErrInvalid]. They name the field by its
// JSON path and never repeat what was sent.
package strict

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/seed-8aba7b13/tracking"
)

// MaxDepth is how deep arrays and objects may nest; the outermost object counts as 1.
const MaxDepth = 32

// MaxMembers is how many members all objects of a body may have together: twice as many as 500 tasks
// with all fields, 50 properties and 50 that they require. The members of a hostile body would take
// many times its size. Faults take as much, but no body of any use has many.
const (
	MaxMembers = 1 << 17
	maxFaults  = 1 << 15
)

// member is one member of an object: where in the document its key is, in its quotes, and its value,
// without space around it. No body is so long that 32 bits would not do.
type member struct {
	keyFrom, keyTo, from, to int32
	next                     int32 // of all members, the first behind those that the value holds
	plain                    bool  // the key has no escapes
}

func (m *member) raw() span { return span{int(m.from), int(m.to)} }

// span is a part of the document.
type span struct{ from, to int }

// fault is something wrong that does not keep the rest of the document from being read.
type fault struct {
	at      int
	message string
}

const (
	repeatedKey   = "The body gives a key twice."
	loneSurrogate = `The body holds half of a surrogate pair (\ud800 to \udfff) in a text.`
)

// document is a JSON text that was found to be well formed.
type document struct {
	b       []byte
	faults  []fault  // in order of their place
	members []member // of all objects, in order of their keys' place
	few     [16]member
	own     own // of the body itself
}

// syntaxError says that the text is no JSON at all. Its place tells the caller where to look
// without repeating what is there.
func syntaxError(at int, what string) *tracking.Error {
	return &tracking.Error{
		Code:    tracking.ErrInvalid,
		Message: "The body is not valid JSON: " + what + " at byte " + strconv.Itoa(at+1) + ".",
	}
}

// parse checks the whole of b by the grammar of RFC 8259.
func (d *document) parse(b []byte) *tracking.Error {
	if !utf8.Valid(b) {
		return &tracking.Error{Code: tracking.ErrInvalid, Message: "The body is not valid UTF-8."}
	}
	d.b, d.own = b, own{}
	p := parser{b: b, members: d.few[:0]}
	p.space()
	if err := p.value(0); err != nil {
		return err
	}
	p.space()
	if p.i < len(b) {
		return syntaxError(p.i, "there is something after the end of the value")
	}
	slices.SortStableFunc(p.faults, func(a, b fault) int { return a.at - b.at })
	d.faults, d.members = p.faults, p.members
	return nil
}

type parser struct {
	b       []byte
	i       int
	members []member
	faults  []fault
}

// peek is the next byte, or 0 at the end. A NUL byte is wrong wherever peek is asked.
func (p *parser) peek() byte {
	if p.i < len(p.b) {
		return p.b[p.i]
	}
	return 0
}

func (p *parser) space() {
	for p.i < len(p.b) {
		switch p.b[p.i] {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return
		}
	}
}

func (p *parser) unexpected() *tracking.Error {
	if p.i >= len(p.b) {
		return syntaxError(p.i, "it ends too early")
	}
	return syntaxError(p.i, "there is an unexpected character")
}

// value checks one value; depth is the number of arrays and objects around it.
func (p *parser) value(depth int) *tracking.Error {
	switch c := p.peek(); {
	case c == '{' || c == '[':
		if depth == MaxDepth {
			return &tracking.Error{
				Code:    tracking.ErrInvalid,
				Message: "The body nests deeper than " + strconv.Itoa(MaxDepth) + " levels.",
			}
		}
		if c == '{' {
			return p.object(depth + 1)
		}
		return p.array(depth + 1)
	case c == '"':
		_, err := p.text()
		return err
	case c == '-' || '0' <= c && c <= '9':
		return p.number()
	case c == 't':
		return p.word("true")
	case c == 'f':
		return p.word("false")
	case c == 'n':
		return p.word("null")
	}
	return p.unexpected()
}

// object reads an object from its opening brace, and refuses a key given twice.
func (p *parser) object(depth int) *tracking.Error {
	start := p.i
	keys := keySet{first: len(p.members)}
	for first := true; ; first = false {
		p.i++ // past { or ,
		p.space()
		if first && p.peek() == '}' {
			p.i++
			return nil
		}
		if p.peek() != '"' {
			return p.unexpected()
		}
		m := member{keyFrom: int32(p.i)}
		var err *tracking.Error
		if m.plain, err = p.text(); err != nil {
			return err
		}
		m.keyTo = int32(p.i)
		if keys.add(p, &m) {
			if err := p.fault(start, repeatedKey); err != nil {
				return err
			}
		}
		p.space()
		if p.peek() != ':' {
			return p.unexpected()
		}
		p.i++
		p.space()
		m.from = int32(p.i)
		at := len(p.members)
		if at == MaxMembers {
			return &tracking.Error{
				Code: tracking.ErrInvalid, Message: "The body has more than " + strconv.Itoa(MaxMembers) + " members.",
			}
		}
		if at == cap(p.members) {
			p.makeRoom()
		}
		p.members = append(p.members, m)
		if err := p.value(depth); err != nil {
			return err
		}
		p.members[at].to, p.members[at].next = int32(p.i), int32(len(p.members))
		p.space()
		switch p.peek() {
		case ',':
		case '}':
			p.i++
			return nil
		default:
			return p.unexpected()
		}
	}
}

// makeRoom makes it for as many more members as come if the rest is like what has been read, but for
// eight times as many at most: a batch would leave three times as much behind if it grew by halves.
func (p *parser) makeRoom() {
	n := len(p.members)
	more := (len(p.b) - p.i) / (p.i / n) // none is shorter than a byte
	p.members = slices.Grow(p.members, min(more, 7*n, MaxMembers-n)+1)
}

// fault notes one, once for each place. With too many the whole body is refused.
func (p *parser) fault(at int, message string) *tracking.Error {
	if n := len(p.faults); n > 0 && p.faults[n-1].at == at {
		return nil
	} else if n == maxFaults {
		return &tracking.Error{Code: tracking.ErrInvalid, Message: message}
	}
	p.faults = append(p.faults, fault{at, message})
	return nil
}

func (p *parser) array(depth int) *tracking.Error {
	for first := true; ; first = false {
		p.i++ // past [ or ,
		p.space()
		if first && p.peek() == ']' {
			p.i++
			return nil
		}
		if err := p.value(depth); err != nil {
			return err
		}
		p.space()
		switch p.peek() {
		case ',':
		case ']':
			p.i++
			return nil
		default:
			return p.unexpected()
		}
	}
}

func (p *parser) word(w string) *tracking.Error {
	for k := range len(w) {
		if p.peek() != w[k] {
			return p.unexpected()
		}
		p.i++
	}
	return nil
}

func (p *parser) digits() bool {
	start := p.i
	for c := p.peek(); '0' <= c && c <= '9'; c = p.peek() {
		p.i++
	}
	return p.i > start
}

// number reads a number by the grammar of RFC 8259.
func (p *parser) number() *tracking.Error {
	if p.peek() == '-' {
		p.i++
	}
	if p.peek() == '0' {
		p.i++
	} else if !p.digits() {
		return p.unexpected()
	}
	if p.peek() == '.' {
		p.i++
		if !p.digits() {
			return p.unexpected()
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.i++
		if c := p.peek(); c == '+' || c == '-' {
			p.i++
		}
		if !p.digits() {
			return p.unexpected()
		}
	}
	return nil
}

// text checks a string, and tells whether it is plain, without escapes. A lone surrogate is noted as
// a fault.
func (p *parser) text() (plain bool, err *tracking.Error) {
	start := p.i
	plain = true
	for p.i++; p.i < len(p.b); {
		switch c := p.b[p.i]; {
		case c == '"':
			p.i++
			return plain, nil
		case c < ' ':
			return false, syntaxError(p.i, "there is an unescaped control character in a text")
		case c == '\\':
			plain = false
			p.i++
			r, ok := p.character()
			if !ok {
				return false, p.unexpected()
			}
			if r == loneRune {
				if err := p.fault(start, loneSurrogate); err != nil {
					return false, err
				}
			}
		default:
			p.i++
		}
	}
	return false, p.unexpected()
}

// unescaped is what a string stands for that is known to be well formed, without its quotes. A lone
// surrogate is read as U+FFFD.
func unescaped(b []byte) []byte {
	if bytes.IndexByte(b, '\\') < 0 {
		return b
	}
	var out []byte
	p := parser{b: b}
	for p.i < len(b) {
		if c := b[p.i]; c != '\\' {
			out = append(out, c)
			p.i++
			continue
		}
		p.i++
		r, _ := p.character()
		out = utf8.AppendRune(out, r) // U+FFFD of a loneRune
	}
	return out
}

// loneRune stands for half of a surrogate pair.
const loneRune rune = -1

// character reads what follows a backslash, both halves of a surrogate pair together.
func (p *parser) character() (rune, bool) {
	r, ok := p.escape()
	if ok && utf16.IsSurrogate(r) {
		r = p.lowSurrogate(r)
	}
	return r, ok
}

// escape reads what follows a backslash. A surrogate is returned as it is.
func (p *parser) escape() (rune, bool) {
	c := p.peek()
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		p.i++
		return p.hex4()
	default:
		return 0, false
	}
	p.i++
	return rune(c), true
}

func (p *parser) hex4() (rune, bool) {
	var r rune
	for range 4 {
		c := p.peek()
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
		p.i++
	}
	return r, true
}

// lowSurrogate joins a high surrogate with the low one after it. Anything else stays where it is,
// and the result is loneRune.
func (p *parser) lowSurrogate(high rune) rune {
	if p.i+1 < len(p.b) && p.b[p.i] == '\\' && p.b[p.i+1] == 'u' {
		ahead := parser{b: p.b, i: p.i + 2}
		if low, ok := ahead.hex4(); ok {
			if r := utf16.DecodeRune(high, low); r != utf8.RuneError {
				p.i = ahead.i
				return r
			}
		}
	}
	return loneRune
}

// keySet finds repeated keys of an object. Objects are small and their keys plain as a rule, so that a
// map is made only for others.
type keySet struct {
	first int // of all members, the object's first
	n     int
	many  map[string]struct{}
}

// add reports whether the key was there already.
func (s *keySet) add(p *parser, m *member) bool {
	const few = 16
	key := p.b[m.keyFrom+1 : m.keyTo-1]
	if s.many == nil && m.plain && s.n < few {
		s.n++
		for i := s.first; i < len(p.members); i = int(p.members[i].next) {
			if o := &p.members[i]; bytes.Equal(p.b[o.keyFrom+1:o.keyTo-1], key) {
				return true
			}
		}
		return false
	}
	if s.many == nil {
		s.many = make(map[string]struct{}, 2*s.n)
		for i := s.first; i < len(p.members); i = int(p.members[i].next) {
			o := &p.members[i]
			s.many[string(p.b[o.keyFrom+1:o.keyTo-1])] = struct{}{}
		}
	}
	key = unescaped(key)
	if _, ok := s.many[string(key)]; ok {
		return true
	}
	s.many[string(key)] = struct{}{}
	return false
}

// skip finds the end of the value at i. The document is known to be well formed.
func (d *document) skip(i int) int {
	depth := 0
	for ; ; i++ {
		switch d.b[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			for i++; d.b[i] != '"'; i++ {
				if d.b[i] == '\\' {
					i++
				}
			}
		case ' ', '\t', '\n', '\r', ',', ':':
			continue
		default:
			for i+1 < len(d.b) && !delimiter(d.b[i+1]) {
				i++
			}
		}
		if depth == 0 {
			return i + 1
		}
	}
}

func delimiter(c byte) bool {
	switch c {
	case ' ', '\t', '\n', '\r', ',', ':', '{', '}', '[', ']', '"':
		return true
	}
	return false
}

// next is the first place from i on that is neither space nor a comma or colon.
func (d *document) next(i int) int {
	for {
		switch d.b[i] {
		case ' ', '\t', '\n', '\r', ',', ':':
			i++
		default:
			return i
		}
	}
}

// key is a member's key without its escapes.
func (d *document) key(m *member) []byte {
	key := d.b[m.keyFrom+1 : m.keyTo-1]
	if !m.plain {
		key = unescaped(key)
	}
	return key
}

// elements appends an array's elements to list, at most max of them; more tells whether there are
// further ones.
func (d *document) elements(list []span, s span, max int) (_ []span, more bool) {
	for i := d.next(s.from + 1); d.b[i] != ']'; i = d.next(i) {
		if len(list) == max {
			return list, true
		}
		e := span{i, d.skip(i)}
		list = append(list, e)
		i = e.to
	}
	return list, false
}

// text decodes a string, bytes without a copy where it has no escapes.
func (d *document) text(s span) string  { return string(d.bytes(s)) }
func (d *document) bytes(s span) []byte { return unescaped(d.b[s.from+1 : s.to-1]) }

// float decodes a number; not ok when float64 cannot hold it.
func (d *document) float(s span) (float64, bool) {
	f, err := strconv.ParseFloat(string(d.b[s.from:s.to]), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return 0, false
	}
	if f == 0 {
		return 0, true // without the sign of −0
	}
	return f, true
}

// faultsFrom are the faults at and after a place.
func (d *document) faultsFrom(at int) []fault {
	k, _ := slices.BinarySearchFunc(d.faults, at, func(f fault, at int) int { return f.at - at })
	return d.faults[k:]
}

// faulty reports whether there is a fault within s.
func (d *document) faulty(s span) bool {
	f := d.faultsFrom(s.from)
	return len(f) > 0 && f[0].at < s.to
}
