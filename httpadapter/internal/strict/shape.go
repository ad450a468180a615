package strict

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// A Shape reads bodies into values of the struct type T, by the rules of [Object]. It is made once
// for each type.
//
//	type cancelTask struct {
//		TaskID string `json:"task_id" strict:"id"`
//		Reason string `json:"reason"`
//	}
//
// The tag json names the member. Members are read in the order of the fields, so that of several
// that are wrong the first field's is told. The fields of an embedded struct stand among the
// others.
//
// A field is a string, int, bool, float64, [tracking.Reading] for a float64, [time.Time],
// [TimeOrNone], [tracking.LngLat], map[string]string, an [Elements], a struct of such fields, a
// string type with [Words], a slice of strings or of such a type, or a pointer to one of them. Where
// the member is absent a pointer and a slice stay nil, and anything else has its zero value; a slice
// that is given, and empty, is not nil.
//
// The tag strict says more, with commas between:
//   - required: the member has to be there
//   - id: it is looked up by and has to be there, not empty; see [Object.ID]
//   - lookup: it is looked up by, or each of a slice; see [Object.Lookup]
//   - digits: an integer or a text, as it is written; see [Object.Digits]
//   - place: a text, or a point, which is read as the text "lng,lat"; see [Object.TextOrPoint]
//
// What no tag can say is said by a method Check of *T, which is called after the last field.
type Shape[T any] struct{ plan *plan }

// TimeOrNone is a time that can be taken back: an empty text is the zero time.
type TimeOrNone struct{ time.Time }

// Words is implemented by string types of which only some words are taken.
type Words interface{ Words() []string }

// Checker is implemented by what has something to say of its fields together. It tells by
// [Object.Fail].
type Checker interface{ Check(o Object) }

// Field is one member that a Shape reads.
type Field struct {
	Name     string
	Type     reflect.Type // without a pointer
	Form     string       // of a text: "", id, lookup, digits, place
	Required bool
	Words    []string // all that may be given, of a slice in it; nil: not limited
	Fields   []Field  // of an object, or of each element of Elements

	index []int
	read  reading
}

// reading reads a member into a field. It is false when the member is absent, or wrong.
type reading func(o Object, name string, to reflect.Value) bool

// plan is a Shape without its type.
type plan struct {
	fields []Field
	checks bool
}

// ShapeOf makes the Shape of T. It panics on a field that cannot be read, which is a fault of the
// program.
func ShapeOf[T any]() Shape[T] { return Shape[T]{planOf(reflect.TypeFor[T]())} }

// Fields are the members, in the order in which they are read.
func (s Shape[T]) Fields() []Field { return s.plan.fields }

// Decode reads a body, which has to be one JSON object.
func (s Shape[T]) Decode(body []byte) (v T, err error) { return s.DecodeIn(new(Room), body) }

// DecodeIn is Decode in memory that is there already.
func (s Shape[T]) DecodeIn(room *Room, body []byte) (v T, err error) {
	o, err := room.parse(body)
	if err != nil {
		return v, err
	}
	s.plan.read(o, reflect.ValueOf(&v).Elem())
	return v, o.Err()
}

// Texts are members that are texts, by their names, from wherever they come.
type Texts map[string]string

// TextsOf reads the members of a Shape of texts from a JSON object. That one is required is not
// looked at: it may be given elsewhere.
func (s Shape[T]) TextsOf(o Object) (Texts, error) {
	return s.texts(func(f *Field) (string, bool) { return f.text()(o, f.Name) }), o.Err()
}

// TextsIn reads them from a form or a query.
func (s Shape[T]) TextsIn(q *Query) (Texts, error) {
	return s.texts(func(f *Field) (string, bool) { return f.In(q) }), q.Err()
}

func (s Shape[T]) texts(read func(*Field) (string, bool)) Texts {
	list := Texts{}
	for i := range s.plan.fields {
		f := &s.plan.fields[i]
		if v, ok := read(f); ok {
			list[f.Name] = v
		}
	}
	return list
}

// In reads the member as a parameter of a form or a query.
func (f *Field) In(q *Query) (string, bool) {
	if f.Form == "lookup" {
		return q.Get(f.Name)
	}
	return q.Text(f.Name)
}

// Of makes a value out of texts.
func (s Shape[T]) Of(texts Texts) (v T) {
	to := reflect.ValueOf(&v).Elem()
	for _, f := range s.plan.fields {
		to.FieldByIndex(f.index).SetString(texts[f.Name])
	}
	return v
}

func (p *plan) read(o Object, to reflect.Value) {
	for i := range p.fields {
		f := &p.fields[i]
		if !f.read(o, f.Name, to.FieldByIndex(f.index)) && f.Required {
			o.Fail(f.Name, "is required")
		}
	}
	if p.checks {
		to.Addr().Interface().(Checker).Check(o)
	}
}

// planOf looks at a struct type and all that it holds.
func planOf(t reflect.Type) *plan {
	p := &plan{checks: reflect.PointerTo(t).Implements(reflect.TypeFor[Checker]())}
	for i := range t.NumField() {
		sf := t.Field(i)
		if sf.Anonymous {
			for _, f := range planOf(sf.Type).fields {
				f.index = slices.Concat(sf.Index, f.index)
				p.fields = append(p.fields, f)
			}
			continue
		}
		p.fields = append(p.fields, fieldOf(t, sf))
	}
	for i, f := range p.fields {
		if slices.ContainsFunc(p.fields[:i], func(o Field) bool { return o.Name == f.Name }) {
			panic(fmt.Sprintf("strict: %v has the member %q twice", t, f.Name))
		}
	}
	return p
}

// fieldOf reads the tags of a struct's field.
func fieldOf(t reflect.Type, sf reflect.StructField) Field {
	f := Field{Name: sf.Tag.Get("json"), Type: sf.Type, index: sf.Index}
	for word := range strings.SplitSeq(sf.Tag.Get("strict"), ",") {
		switch word {
		case "":
		case "required":
			f.Required = true
		case "id":
			f.Form, f.Required = word, true
		case "lookup", "digits", "place":
			f.Form = word
		default:
			panic(fmt.Sprintf("strict: %v.%s has the tag %q, which is unknown", t, sf.Name, word))
		}
	}
	pointer := sf.Type.Kind() == reflect.Pointer
	if pointer {
		f.Type = sf.Type.Elem()
	}
	word := f.Type
	if f.isTextList() {
		word = f.Type.Elem()
	}
	if w, ok := reflect.Zero(word).Interface().(Words); ok {
		f.Words = w.Words()
	}
	if f.read = f.reader(pointer); f.read == nil || f.Name == "" || !sf.IsExported() {
		panic(fmt.Sprintf("strict: %v.%s needs a name in the tag json and a type that Shape can read", t, sf.Name))
	}
	return f
}

// reader is how the field is read; nil when there is no way.
func (f *Field) reader(pointer bool) reading {
	if f.Form != "" && f.Type.Kind() != reflect.String && !(f.Form == "lookup" && f.isTextList()) {
		return nil
	}
	switch f.Type {
	case reflect.TypeFor[int]():
		return scalar(Object.Int, pointer)
	case reflect.TypeFor[bool]():
		return scalar(Object.Bool, pointer)
	case reflect.TypeFor[float64]():
		return scalar(Object.Float, pointer)
	case reflect.TypeFor[tracking.Reading]():
		f.Type = reflect.TypeFor[float64]()
		return scalar(Object.Reading, pointer)
	case reflect.TypeFor[time.Time]():
		return scalar(Object.Time, pointer)
	case reflect.TypeFor[TimeOrNone]():
		return scalar(Object.TimeOrNone, pointer)
	case reflect.TypeFor[tracking.LngLat]():
		return scalar(Object.LngLat, pointer)
	case reflect.TypeFor[map[string]string]():
		return scalar(func(o Object, name string) (map[string]string, bool) {
			m := o.TextMap(name)
			return m, m != nil
		}, pointer)
	}
	if f.Type.Kind() == reflect.String {
		return texts(f.text(), f.Words, pointer)
	}
	if f.isTextList() && !pointer {
		read := Object.Texts
		if f.Form == "lookup" {
			read = Object.Lookups
		}
		return textList(read, f.Words)
	}
	return f.objects(pointer)
}

func (f *Field) isTextList() bool {
	return f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.String
}

// maxTexts is the longest list of texts.
const maxTexts = 1000

// textList reads an array of texts, each of which has to be one of the words if there are any.
func textList(read func(Object, string, int) ([]string, bool), words []string) reading {
	message := "must hold nothing but " + listed(words, "and")
	return func(o Object, name string, to reflect.Value) bool {
		list, ok := read(o, name, maxTexts)
		if !ok {
			return false
		}
		v := reflect.MakeSlice(to.Type(), len(list), len(list))
		for i, text := range list {
			if words != nil && !slices.Contains(words, text) {
				o.Fail(name, message)
				return false
			}
			v.Index(i).SetString(text)
		}
		to.Set(v)
		return true
	}
}

// objects is how an object, or a list of them, is read; nil when the field is neither.
func (f *Field) objects(pointer bool) reading {
	var read reading
	if list, ok := reflect.Zero(f.Type).Interface().(elements); ok {
		p := planOf(list.element())
		f.Fields = p.fields
		read = func(o Object, name string, to reflect.Value) bool {
			l, ok := o.List(name)
			if ok {
				if pointer {
					to.Set(reflect.New(to.Type().Elem()))
					to = to.Elem()
				}
				to.Addr().Interface().(settable).set(l, p)
			}
			return ok
		}
	} else if f.Type.Kind() == reflect.Struct {
		p := planOf(f.Type)
		f.Fields = p.fields
		read = func(o Object, name string, to reflect.Value) bool {
			in, ok := o.Object(name)
			if !ok {
				return false
			}
			if pointer {
				to.Set(reflect.New(to.Type().Elem()))
				to = to.Elem()
			}
			p.read(in, to)
			return true
		}
	}
	return read
}

// text is how a text is read.
func (f *Field) text() func(Object, string) (string, bool) {
	switch f.Form {
	case "id":
		return func(o Object, name string) (string, bool) { v := o.ID(name); return v, v != "" }
	case "lookup":
		return Object.Lookup
	case "digits":
		return Object.Digits
	case "place":
		return Object.TextOrPoint
	}
	return Object.Text
}

// scalar reads a value of a type that is known here.
func scalar[V any](read func(Object, string) (V, bool), pointer bool) reading {
	if pointer {
		return func(o Object, name string, to reflect.Value) bool {
			v, ok := read(o, name)
			if ok {
				given := v // apart from v, so that what is absent costs no memory
				*pointerTo[*V](to) = &given
			}
			return ok
		}
	}
	return func(o Object, name string, to reflect.Value) bool {
		v, ok := read(o, name)
		if ok {
			*pointerTo[V](to) = v
		}
		return ok
	}
}

func pointerTo[V any](v reflect.Value) *V {
	p, _ := reflect.TypeAssert[*V](v.Addr())
	return p
}

// texts reads a text of whatever string type, which has to be one of the words if there are any.
func texts(read func(Object, string) (string, bool), words []string, pointer bool) reading {
	message := "must be " + listed(words, "or")
	return func(o Object, name string, to reflect.Value) bool {
		v, ok := read(o, name)
		if ok && words != nil && !slices.Contains(words, v) {
			o.Fail(name, message)
			ok = false
		}
		if !ok {
			return false
		}
		if pointer {
			to.Set(reflect.New(to.Type().Elem()))
			to = to.Elem()
		}
		to.SetString(v)
		return true
	}
}

// Elements is an array of objects that are judged one by one, as in a [List].
type Elements[T any] struct {
	list List
	plan *plan
}

// elements and settable are how a Shape meets an Elements of whatever type.
type (
	elements interface{ element() reflect.Type }
	settable interface{ set(List, *plan) }
)

func (Elements[T]) element() reflect.Type  { return reflect.TypeFor[T]() }
func (e *Elements[T]) set(l List, p *plan) { e.list, e.plan = l, p }

// Given reports whether there is an array, which may be empty.
func (e Elements[T]) Given() bool { return e.list.doc != nil }

// Judged is one element, or what is wrong with it.
type Judged[T any] struct {
	Value T
	Err   error
}

// Take reads at most max elements; more tells whether there are further ones.
func (e Elements[T]) Take(max int) (list []Judged[T], more bool) {
	elements, more := e.list.Take(max)
	list = make([]Judged[T], len(elements))
	for i := range elements {
		o, ok := elements[i].Object("")
		if !ok {
			list[i].Err = &tracking.Error{Code: tracking.ErrInvalid, Message: "The element must be an object."}
			continue
		}
		e.plan.read(o, reflect.ValueOf(&list[i].Value).Elem())
		list[i].Err = o.Err()
	}
	return list, more
}

// All reads at most max elements of the list of that name, of which the first that is wrong makes
// all of it wrong.
func (e Elements[T]) All(name string, max int) ([]T, error) {
	elements, _ := e.list.Take(max)
	list := make([]T, len(elements))
	for i := range elements {
		path := fmt.Sprintf("%s[%d]", name, i)
		o, ok := elements[i].Object(path)
		if !ok {
			return nil, &tracking.Error{
				Code: tracking.ErrInvalid, Field: path, Message: "The field " + path + " must be an object.",
			}
		}
		e.plan.read(o, reflect.ValueOf(&list[i]).Elem())
		if err := o.Err(); err != nil {
			return nil, err
		}
	}
	return list, nil
}
