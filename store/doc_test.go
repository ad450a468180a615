package store_test

import (
	"os"
	"reflect"
	"regexp"
	"testing"

	"github.com/seed-8aba7b13/tracking"
)

// Whoever adds a method to Store has to tell the authors of stores what it does.
func TestNoMethodIsForgotten(t *testing.T) {
	page, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []reflect.Type{reflect.TypeFor[tracking.Store](), reflect.TypeFor[tracking.Changeset]()} {
		for _, name := range names(typ) {
			if !regexp.MustCompile(`\b` + name + `\b`).Match(page) {
				t.Errorf("doc.go does not tell of %s.%s", typ.Name(), name)
			}
		}
	}
}

// names are those of the methods of an interface, or of the fields of a struct.
func names(typ reflect.Type) (list []string) {
	if typ.Kind() == reflect.Struct {
		for i := range typ.NumField() {
			list = append(list, typ.Field(i).Name)
		}
		return list
	}
	for i := range typ.NumMethod() {
		list = append(list, typ.Method(i).Name)
	}
	return list
}
