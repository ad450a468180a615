package rows

import (
	"reflect"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// texts looks into maps of texts only, so there must be no others.
func TestChangesetHasMapsOfTextsOnly(t *testing.T) {
	var look func(typ reflect.Type)
	look = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Map:
			if typ != reflect.TypeFor[map[string]string]() {
				t.Errorf("there is a %v", typ)
			}
		case reflect.Pointer, reflect.Slice:
			look(typ.Elem())
		case reflect.Struct:
			for i := range typ.NumField() {
				if typ != reflect.TypeFor[time.Time]() {
					look(typ.Field(i).Type)
				}
			}
		}
	}
	look(reflect.TypeFor[tracking.Changeset]())
}

// A map that is read as another one would be memory read as what it is not.
func TestOtherMapsAreRefused(t *testing.T) {
	for _, typ := range []reflect.Type{
		reflect.TypeFor[map[string]int](), reflect.TypeFor[map[int]string](), reflect.TypeFor[struct{ M map[string][]string }](),
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("a %v is looked into", typ)
				}
			}()
			textsOf(typ)
		}()
	}
}

func BenchmarkChangesetTexts(b *testing.B) {
	place := &tracking.Place{Address: "Marienplatz 1, 80331 München", LngLat: &tracking.LngLat{Lng: 11, Lat: 48}}
	cs := &tracking.Changeset{
		Tasks: []tracking.Task{{ID: "01hv7k2m6q8x", Pickup: place, Drop: place, OrderID: "#1"}},
		Events: []tracking.Event{{
			ID: "01hv7k2m6q8y", Type: tracking.EventTaskCreated, Data: map[string]string{"fields": "a,b"},
		}},
		Deliver: []string{""},
	}
	for b.Loop() {
		if err := ChangesetTexts("default", cs); err != nil {
			b.Fatal(err)
		}
	}
}
