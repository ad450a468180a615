package tracking_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
)

// TestClonesShareNothing: a copy is the same, and no change of one shows in the other.
func TestClonesShareNothing(t *testing.T) {
	cloneSharesNothing(t, tracking.Task.Clone)
	cloneSharesNothing(t, tracking.Driver.Clone)
	cloneSharesNothing(t, tracking.Trip.Clone)
	cloneSharesNothing(t, tracking.Event.Clone)
	cloneSharesNothing(t, tracking.Request.Clone)
	cloneSharesNothing(t, tracking.Invite.Clone)
}

func cloneSharesNothing[T any](t *testing.T, clone func(T) T) {
	t.Helper()
	var v T
	if d := cmp.Diff(v, clone(v)); d != "" {
		t.Errorf("an empty %T (-it +its copy):\n%s", v, d)
	}
	fillField(t, reflect.ValueOf(&v).Elem())
	c := clone(v)
	if d := cmp.Diff(v, c); d != "" {
		t.Errorf("a %T (-it +its copy):\n%s", v, d)
	}
	seen := map[uintptr]string{}
	eachReference(reflect.ValueOf(v), reflect.TypeFor[T]().Name(), func(p uintptr, path string) { seen[p] = path })
	eachReference(reflect.ValueOf(c), reflect.TypeFor[T]().Name(), func(p uintptr, path string) {
		if of, ok := seen[p]; ok {
			t.Errorf("%s of the copy is %s of the other", path, of)
		}
	})
}

// eachReference names each piece of memory that v refers to.
func eachReference(v reflect.Value, path string, of func(p uintptr, path string)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			of(v.Pointer(), path)
			eachReference(v.Elem(), path, of)
		}
	case reflect.Slice:
		if v.Cap() > 0 {
			of(v.Pointer(), path)
		}
		for i := range v.Len() {
			eachReference(v.Index(i), path, of)
		}
	case reflect.Map:
		if !v.IsNil() {
			of(v.Pointer(), path)
		}
	case reflect.Struct:
		if v.Type() != reflect.TypeFor[time.Time]() {
			for i := range v.NumField() {
				eachReference(v.Field(i), path+"."+v.Type().Field(i).Name, of)
			}
		}
	}
}
