package rows

import (
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/seed-8aba7b13/tracking"
)

// errText is what a text is refused with that not every store could keep.
var errText = &tracking.Error{
	Code: tracking.ErrInvalid, Message: "A text is not valid UTF-8, or holds the character U+0000.",
}

// Text reports whether a store keeps, or finds, such a text: valid UTF-8 without U+0000.
func Text[S ~string](v S) bool {
	return utf8.ValidString(string(v)) && strings.IndexByte(string(v), 0) < 0
}

// Texts is ErrInvalid where one of these cannot be kept.
func Texts(texts ...string) error {
	for _, v := range texts {
		if !Text(v) {
			return errText
		}
	}
	return nil
}

// written is what a changeset writes. What only names a row may hold any text: there is none of that
// name; the fixes, of which there may be many, are looked at apart.
var written = textsOf(reflect.TypeFor[tracking.Changeset](),
	"DeleteDrivers", "CloseRequests", "Fixes", "DeleteTasks", "DeleteTrips", "DropFiles")

// ChangesetTexts is ErrInvalid where a row, fix or event that is to be written holds a text that
// cannot be kept.
func ChangesetTexts(app tracking.AppID, cs *tracking.Changeset) error {
	if !Text(app) || !written.kept(unsafe.Pointer(cs)) {
		return errText
	}
	for _, b := range cs.Fixes {
		if err := FixTexts(b.Fixes); err != nil {
			return err
		}
	}
	return nil
}

// FixTexts is ErrInvalid where a fix holds a text that cannot be kept.
func FixTexts(fixes []tracking.Fix) error {
	for i := range fixes {
		if !Text(fixes[i].EventID) {
			return errText
		}
	}
	return nil
}

// texts are the places of the texts in a value of a type. To go through every field of every row by
// reflection takes four times as long.
type texts []textAt

// textAt is a text, or what holds texts, so many bytes into the value.
type textAt struct {
	offset uintptr
	kind   reflect.Kind // String, Map, Pointer or Slice
	inside texts        // of what the pointer leads to, or of each element
	size   uintptr      // of an element
}

// textsOf are those of a type, but for some fields of it.
func textsOf(t reflect.Type, but ...string) (all texts) {
	switch t.Kind() {
	case reflect.String:
		return texts{{kind: t.Kind()}}
	case reflect.Map:
		if t != reflect.TypeFor[map[string]string]() {
			panic(t) // it would be read as one of those
		}
		return texts{{kind: t.Kind()}}
	case reflect.Pointer, reflect.Slice:
		return texts{{kind: t.Kind(), inside: textsOf(t.Elem()), size: t.Elem().Size()}}
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if !hasText(f.Type) || slices.Contains(but, f.Name) {
				continue
			}
			for _, at := range textsOf(f.Type) {
				at.offset += f.Offset
				all = append(all, at)
			}
		}
	default:
		panic(t) // nobody has thought of such a one
	}
	return all
}

// kept reports whether every text inside the value that v points to can be kept.
func (x texts) kept(v unsafe.Pointer) bool {
	for i := range x {
		at := &x[i]
		p := unsafe.Add(v, at.offset)
		switch at.kind {
		case reflect.String:
			if s := *(*string)(p); s != "" && !Text(s) {
				return false
			}
		case reflect.Map:
			for k, v := range *(*map[string]string)(p) {
				if !Text(k) || !Text(v) {
					return false
				}
			}
		case reflect.Pointer:
			if to := *(*unsafe.Pointer)(p); to != nil && !at.inside.kept(to) {
				return false
			}
		case reflect.Slice:
			list := *(*[]byte)(p) // of elements of another size: only its beginning and length are read
			for j := range uintptr(len(list)) {
				if !at.inside.kept(unsafe.Add(unsafe.Pointer(unsafe.SliceData(list)), j*at.size)) {
					return false
				}
			}
		}
	}
	return true
}

func hasText(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.String:
		return true
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return hasText(t.Elem())
	case reflect.Map:
		return hasText(t.Key()) || hasText(t.Elem())
	case reflect.Struct:
		return t != reflect.TypeFor[time.Time]() &&
			slices.ContainsFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return hasText(f.Type) })
	}
	return false
}

// RestoringTexts is ErrInvalid where a row that is to be written holds a text that cannot be kept.
// The values of memos are no texts.
func RestoringTexts(r tracking.Restoring) error {
	for _, row := range r.Rows {
		ok := Text(row.App)
		switch v := row.Value.(type) {
		case tracking.Memo:
			ok = ok && Text(v.Name)
		case tracking.FixRow: // of which there are many
			ok = ok && Text(v.DriverID) && Text(v.EventID)
		default:
			ok = ok && valueTexts(row.Value)
		}
		if !ok {
			return errText
		}
	}
	return nil
}

// textsOfRows are those of the types of rows.
var textsOfRows sync.Map

func valueTexts(v any) bool {
	t := reflect.TypeOf(v)
	all, known := textsOfRows.Load(t)
	if !known {
		all, _ = textsOfRows.LoadOrStore(t, textsOf(t))
	}
	at := reflect.New(t)
	at.Elem().Set(reflect.ValueOf(v))
	return all.(texts).kept(at.UnsafePointer())
}
