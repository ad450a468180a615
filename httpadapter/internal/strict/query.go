package strict

import (
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-8aba7b13/tracking"
)

// A Query reads the parameters of a query string or of a form body by name. The first thing found
// wrong sticks, as in an [Object]. It must not be copied.
type Query struct {
	params []param
	err    *tracking.Error
	few    [2]param // room for those of most queries
}

type param struct{ name, value string }

// Parse reads a query string. A semicolon, a bad escape and a parameter that comes twice are
// errors, whether anybody asks for it or not.
func (q *Query) Parse(raw string) error { return q.parse(raw, "query") }

// ParseForm reads a body of application/x-www-form-urlencoded by the same rules.
func (q *Query) ParseForm(body string) error { return q.parse(body, "form") }

func (q *Query) parse(raw, what string) error {
	if raw == "" {
		return nil
	}
	malformed := func() error {
		return &tracking.Error{
			Code:    tracking.ErrInvalid,
			Message: "The " + what + " is malformed: it holds a semicolon or an incomplete % escape.",
		}
	}
	if strings.Contains(raw, ";") {
		return malformed()
	}
	escaped := strings.ContainsAny(raw, "%+")
	var many map[string]bool // the names of very many
	q.params = q.few[:0]
	for part := range strings.SplitSeq(raw, "&") {
		if part == "" {
			continue
		}
		name, value, _ := strings.Cut(part, "=")
		if escaped {
			var err1, err2 error
			name, err1 = url.QueryUnescape(name)
			value, err2 = url.QueryUnescape(value)
			if err1 != nil || err2 != nil {
				return malformed()
			}
		}
		if len(q.params) == 16 && many == nil {
			many = map[string]bool{}
			for _, p := range q.params {
				many[p.name] = true
			}
		}
		twice := many[name]
		if many == nil {
			_, twice = q.Get(name)
		} else {
			many[name] = true
		}
		if twice {
			return &tracking.Error{Code: tracking.ErrInvalid, Message: "The " + what + " gives a parameter twice."}
		}
		q.params = append(q.params, param{name, value})
	}
	return nil
}

// Err returns the first thing found wrong, as a [*tracking.Error], or nil.
func (q *Query) Err() error {
	if q.err != nil {
		return q.err
	}
	return nil
}

// Fail notes that the parameter is wrong. The message follows the parameter's name: "must be …".
func (q *Query) Fail(name, message string) {
	if q.err == nil {
		q.err = &tracking.Error{
			Code: tracking.ErrInvalid, Field: name, Message: "The parameter " + name + " " + message + ".",
		}
	}
}

// Get returns the parameter as it came.
func (q *Query) Get(name string) (string, bool) {
	i := slices.IndexFunc(q.params, func(p param) bool { return p.name == name })
	if i < 0 {
		return "", false
	}
	return q.params[i].value, true
}

// optional finds a parameter that may be left out but not be empty.
func (q *Query) optional(name string) (string, bool) {
	v, ok := q.Get(name)
	if ok && v == "" {
		q.Fail(name, "must not be empty; leave it out instead")
		return "", false
	}
	return v, ok && q.err == nil
}

// ID reads an identifier that something is looked up by. It has to be there and not empty.
func (q *Query) ID(name string) string {
	v, _ := q.Get(name)
	if v == "" {
		q.Fail(name, "is required")
	}
	return v
}

// Filter reads an identifier that a list is narrowed by; "" when it is absent.
func (q *Query) Filter(name string) string {
	v, _ := q.optional(name)
	return v
}

// Text reads a text in UTF-8 without U+0000. Not ok when it is absent.
func (q *Query) Text(name string) (string, bool) {
	v, ok := q.Get(name)
	if ok && !validText(v) {
		q.Fail(name, "must be UTF-8 without the character U+0000")
		return "", false
	}
	return v, ok
}

func validText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// Int reads plain decimal digits, from min to max. Not ok when it is absent.
func (q *Query) Int(name string, min, max int) (int, bool) {
	v, ok := q.optional(name)
	if !ok {
		return 0, false
	}
	n, ok := ParseInt(v)
	if !ok || n < min || n > max {
		to := "to " + strconv.Itoa(max)
		if max == math.MaxInt {
			to = "on"
		}
		q.Fail(name, "must be a number from "+strconv.Itoa(min)+" "+to+", in plain digits")
		return 0, false
	}
	return n, true
}

// Number reads the number of one of the words, which are only for the reader: 0 for the first. It
// is 0, too, when it is absent.
func (q *Query) Number(name string, words []string) int {
	v, ok := q.optional(name)
	if !ok {
		return 0
	}
	n, ok := ParseInt(v)
	if !ok || n >= len(words) {
		var each []string
		for i, w := range words {
			each = append(each, strconv.Itoa(i)+" ("+w+")")
		}
		q.Fail(name, "must be "+listed(each, "or"))
		return 0
	}
	return n
}

// Words reads words out of those allowed, with commas between; nil when it is absent.
func (q *Query) Words(name string, allowed []string) (list []string) {
	v, ok := q.optional(name)
	if !ok {
		return nil
	}
	for word := range strings.SplitSeq(v, ",") {
		if !slices.Contains(allowed, word) {
			q.Fail(name, "must be a list, with commas between, of "+listed(allowed, "and"))
			return nil
		}
		list = append(list, word)
	}
	return list
}

// listed is "a, b and c".
func listed(words []string, last string) string {
	n := len(words) - 1
	if n < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}

// Bool reads true or false. Not ok when it is absent.
func (q *Query) Bool(name string) (v, ok bool) {
	s, ok := q.optional(name)
	if !ok {
		return false, false
	}
	if s != "true" && s != "false" {
		q.Fail(name, "must be true or false")
		return false, false
	}
	return s == "true", true
}

// True reads what is either asked for or not: true, or absent.
func (q *Query) True(name string) bool {
	v, ok := q.Bool(name)
	if ok && !v {
		q.Fail(name, "must be true; leave it out instead")
	}
	return v
}

// Time reads an instant; see [ParseTime]. The zero time when it is absent.
func (q *Query) Time(name string) time.Time {
	s, ok := q.optional(name)
	if !ok {
		return time.Time{}
	}
	at, ok := ParseTime(s)
	if !ok {
		q.Fail(name, "must be a time with its zone, such as 2026-03-14T10:30Z")
	}
	return at
}

// Position reads longitude,latitude; nil when it is absent.
func (q *Query) Position(name string) *tracking.LngLat {
	s, ok := q.optional(name)
	if !ok {
		return nil
	}
	p, ok := ParsePosition(s)
	if !ok {
		q.Fail(name, "must be two numbers, longitude (−180 to 180) and latitude (−90 to 90), with a comma between")
		return nil
	}
	return &p
}

// Prefixed reads all parameters whose name begins with the prefix, by the rest of their names; nil
// when there are none. They may neither be empty nor hold U+0000, and the field to blame is the
// prefix, because the rest is the caller's own word.
func (q *Query) Prefixed(prefix string) map[string]string {
	var m map[string]string
	for _, p := range q.params {
		key, ok := strings.CutPrefix(p.name, prefix)
		if !ok {
			continue
		}
		switch blame := strings.TrimSuffix(prefix, "."); {
		case key == "":
			q.Fail(blame, "needs a key after the point")
		case p.value == "":
			q.Fail(blame, "must not be empty; leave it out instead")
		case !validText(key) || !validText(p.value):
			q.Fail(blame, "must be UTF-8 without the character U+0000")
		}
		if q.err != nil {
			return nil
		}
		if m == nil {
			m = map[string]string{}
		}
		m[key] = p.value
	}
	return m
}
