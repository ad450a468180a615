package rows_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// Whoever adds a time to a row has to cut it off here.
func TestEveryTimeIsWholeMilliseconds(t *testing.T) {
	exact := time.Date(2024, 3, 10, 8, 50, 0, 735e6, time.UTC)
	odd := exact.Add(999_999).In(time.FixedZone("IST", 5*3600+1800))
	check(t, rows.Task, odd, exact)
	check(t, rows.Trip, odd, exact)
	check(t, rows.Driver, odd, exact)
	check(t, rows.Invite, odd, exact)
	check(t, rows.Key, odd, exact)
	check(t, rows.Request, odd, exact)
	check(t, rows.Event, odd, exact)
	check(t, rows.Batch, odd, exact)
}

func check[T any](t *testing.T, kept func(T) T, odd, exact time.Time) {
	t.Helper()
	var given, want T
	setTimes(reflect.ValueOf(&given).Elem(), odd)
	setTimes(reflect.ValueOf(&want).Elem(), exact)
	if d, ok := any(&want).(*tracking.Driver); ok {
		d.Position = tracking.Position{}
	}
	if d := cmp.Diff(want, kept(given)); d != "" {
		t.Errorf("%T (-want +got):\n%s", given, d)
	}
	var none T
	if d := cmp.Diff(none, kept(none), emptyIsNil); d != "" {
		t.Errorf("the zero %T (-want +got):\n%s", none, d)
	}
}

var emptyIsNil = cmp.FilterValues(func(a, b []tracking.Fix) bool { return len(a)+len(b) == 0 }, cmp.Ignore())

// setTimes sets every time inside v, with one element in each slice of fixes.
func setTimes(v reflect.Value, at time.Time) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(at))
			return
		}
		for i := range v.NumField() {
			setTimes(v.Field(i), at)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[[]tracking.Fix]() {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			setTimes(v.Index(0), at)
		}
	}
}

func TestUnknownReadingHasNoValue(t *testing.T) {
	odd := tracking.Reading{Value: 5}
	b := rows.Batch(tracking.FixBatch{Skew: odd, Fixes: []tracking.Fix{
		{Accuracy: odd, Speed: odd, Bearing: odd, Battery: odd},
		{Accuracy: tracking.Known(5)},
	}})
	want := tracking.FixBatch{Fixes: []tracking.Fix{{}, {Accuracy: tracking.Known(5)}}}
	want.SeenAt, want.Latest = b.SeenAt, b.Latest
	for i := range want.Fixes {
		want.Fixes[i].Time = b.Fixes[i].Time
	}
	if d := cmp.Diff(want, b); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestExpect(t *testing.T) {
	for _, c := range []struct {
		named, present int64
		ok             bool
	}{{0, 0, true}, {0, 1, false}, {3, 3, true}, {3, 2, false}, {3, 4, false}, {3, 0, false}, {-1, 0, false}} {
		err := rows.Expect(tracking.KindTask, tracking.TaskID("t"), c.named, c.present)
		var conflict *tracking.ConflictError
		switch {
		case c.ok && err != nil:
			t.Errorf("%+v: %v", c, err)
		case !c.ok &&
			(!errors.As(err, &conflict) || *conflict != tracking.ConflictError{Kind: tracking.KindTask, ID: "t"}):
			t.Errorf("%+v: got %v, want a conflict of the task t", c, err)
		}
	}
}

func TestSeen(t *testing.T) {
	many := rows.SeenOf[string](3)
	if many.Before("a") || many.Before("b") || !many.Before("a") {
		t.Error("of a, b, a the last one alone was seen before")
	}
	one := rows.SeenOf[string](1)
	if n := testing.AllocsPerRun(10, func() { one.Before("a") }); n != 0 {
		t.Errorf("one row allocates %v times", n)
	}
}

func TestCeil(t *testing.T) {
	at := time.UnixMilli(1000)
	for part, want := range map[time.Duration]int64{0: 1000, 1: 1001, 999_999: 1001, time.Millisecond: 1001, -1: 1000} {
		if got := rows.Ceil(at.Add(part)); got != want {
			t.Errorf("1 s and %v: %d ms, want %d", part, got, want)
		}
	}
}
