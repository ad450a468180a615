package storetest

import (
	"reflect"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

func TestMoves(t *testing.T) {
	RunMoves(t, func(testing.TB) tracking.Store { return newReference() },
		func(testing.TB) tracking.Store { return newReference() })
}

// Whoever adds a field to a row has to let it be exported: those of fullRows are all set, but for what a
// store gives anew, and RunMoves compares them.
func TestNoFieldOfARowIsForgotten(t *testing.T) {
	given := map[string]bool{
		"Task.Seq": true, "Trip.Seq": true, "DriverRow.Driver.Seq": true, "DriverRow.Driver.Distance": true,
		// Of several rows one has it.
		"FixRow.KeptFix.Purged": true, "EventRow.Deliveries.Dead": true, "EventRow.Deliveries.RetryAt": true,
		"EventRow.Deliveries.Outbox": true, "EventRow.Deliveries": true,
	}
	for _, row := range fullRows() {
		v := reflect.ValueOf(row.Value)
		eachZero(v, v.Type().Name(), func(path string) {
			if !given[path] {
				t.Errorf("%s is not set in a row of kind %s", path, row.Kind())
			}
		})
	}
}

// eachZero names the fields inside v that have no value.
func eachZero(v reflect.Value, path string, f func(path string)) {
	if v.IsZero() {
		f(path)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			eachZero(v.Field(i), path+"."+v.Type().Field(i).Name, f)
		}
	case reflect.Pointer:
		eachZero(v.Elem(), path, f)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			eachZero(v.Index(i), path, f)
		}
	}
}
