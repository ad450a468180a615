package rows

import (
	"reflect"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

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

// ChangesetTexts is ErrInvalid where a row, fix or event that is to be written holds a text that
// cannot be kept. What only names a row may do so: there is none of that name.
func ChangesetTexts(app tracking.AppID, cs *tracking.Changeset) error {
	written := *cs
	written.DeleteDrivers, written.CloseRequests, written.Fixes = nil, nil, nil
	written.DeleteTasks, written.DeleteTrips, written.DropFiles = nil, nil, nil
	if !Text(app) || !texts(reflect.ValueOf(&written).Elem()) {
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

// texts reports whether every text inside v can be kept.
func texts(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.String:
		return Text(v.String())
	case reflect.Pointer:
		return v.IsNil() || texts(v.Elem())
	case reflect.Slice:
		if v.Len() == 0 || !hasText(v.Type().Elem()) {
			return true
		}
		for i := range v.Len() {
			if !texts(v.Index(i)) {
				return false
			}
		}
	case reflect.Map: // there are none of other kinds
		for k, e := range v.Interface().(map[string]string) {
			if !Text(k) || !Text(e) {
				return false
			}
		}
	case reflect.Struct:
		for _, i := range textFields(v.Type()) {
			if !texts(v.Field(i)) {
				return false
			}
		}
	}
	return true
}

// withText are the fields of a struct that may hold a text, by its type.
var withText sync.Map

func textFields(t reflect.Type) []int {
	if fields, ok := withText.Load(t); ok {
		return fields.([]int)
	}
	var fields []int
	for i := range t.NumField() {
		if hasText(t.Field(i).Type) {
			fields = append(fields, i)
		}
	}
	withText.Store(t, fields)
	return fields
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
		return t != reflect.TypeFor[time.Time]() && len(textFields(t)) > 0
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
			ok = ok && texts(reflect.ValueOf(row.Value))
		}
		if !ok {
			return errText
		}
	}
	return nil
}
