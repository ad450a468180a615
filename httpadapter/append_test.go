package httpadapter_test

import (
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

// FuzzEncoded compares what is encoded without encoding/json with what that makes of the same: all
// fields of the answers, each of which is there or not as its bit says.
func FuzzEncoded(f *testing.F) {
	for _, text := range []string{
		"Asha", "", "assigned", "in_progress", "completed", `"\/<>&`, "\x00\b\f\n\r\t\x1f\x7f", "\xff\xc3(\xed\xa0\x80", "  \U0001F600é\uFFFD", "a\xe2\x80",
	} {
		for _, number := range []float64{80.27, 0, math.Copysign(0, -1), 1e-7, -1e21, 1e20, 13, -80.2571001, 1e-6, 9999999.9999999, 100.5,
			math.NaN(), math.Inf(1)} {
			for _, fields := range []uint64{0, math.MaxUint64, 0x5555555555555555} {
				f.Add(text, number, int64(len(text))-5, fields)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string, number float64, n int64, fields uint64) {
		x := filler{text, number, n, fields}
		var outcomes []tracking.FixOutcome
		for range fields % 3 {
			outcomes = append(outcomes, tracking.FixOutcome(text))
		}
		same(t)(httpadapter.Outcomes(text, outcomes))
		same(t)(httpadapter.OneTask(text, filledBy[httpadapter.ShownTask](&x), text))
		same(t)(httpadapter.OneTask(text, filledBy[httpadapter.ShownTask](&x), ""))
		same(t)(httpadapter.TaskPage(text, n > 0, text, []httpadapter.ShownTask{
			filledBy[httpadapter.ShownTask](&x), {}, filledBy[httpadapter.ShownTask](&x),
		}))
		same(t)(httpadapter.TaskPage(text, false, "", nil))
	})
}

func same(t *testing.T) func(got, want httpadapter.Text) {
	return func(got, want httpadapter.Text) {
		if (got.Err == nil) != (want.Err == nil) || got.Err == nil && got.JSON != want.JSON {
			t.Errorf("got  %s %v\nwant %s %v", got.JSON, got.Err, want.JSON, want.Err)
		}
	}
}

// filler fills values of any type.
type filler struct {
	text   string
	number float64
	n      int64
	fields uint64
}

func filledBy[T any](x *filler) (v T) {
	x.fill(reflect.ValueOf(&v).Elem())
	return v
}

func (x *filler) fill(v reflect.Value) {
	if at, ok := v.Addr().Interface().(*time.Time); ok {
		x.n++ // so that one is before the other
		*at = time.Unix(x.n, 0)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			there := x.fields&1 == 1
			x.fields = x.fields>>1 | x.fields<<63
			if there {
				x.fill(v.Field(i))
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		x.fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		x.fill(v.Index(0))
		x.fill(v.Index(1))
	case reflect.Array:
		x.fill(v.Index(0))
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{x.text: x.text, "b" + x.text: "", "a": x.text}))
	case reflect.String:
		v.SetString(x.text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(x.n)
	case reflect.Float64:
		v.SetFloat(x.number)
	case reflect.Uint8: // of a hash, which is not shown
	default:
		panic("nobody has said what a " + v.Type().String() + " is filled with")
	}
}

// TestEscapes: wherever a byte stands in a text, it is written as encoding/json writes it.
func TestEscapes(t *testing.T) {
	for c := range 256 {
		for at := range 18 {
			text := []byte(strings.Repeat("a", at) + string([]byte{byte(c)}) + strings.Repeat("~ ", 5))
			same(t)(httpadapter.Outcomes(string(text[:at+1]), nil))
			same(t)(httpadapter.Outcomes(string(text), nil))
		}
	}
}

// FuzzTimeText compares times as they are sent with what package time makes of them.
func FuzzTimeText(f *testing.F) {
	for _, at := range []time.Time{
		{}, time.Unix(0, 0), time.Unix(1773480600, 999_999_999), time.Date(-1, 12, 31, 23, 59, 59, 0, time.UTC),
		time.Date(9999, 12, 31, 23, 59, 59, 999_000_000, time.UTC), time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		f.Add(at.Unix(), int64(at.Nanosecond()))
	}
	f.Fuzz(func(t *testing.T, s, ns int64) {
		at := time.Unix(s, ns)
		want := at.UTC().Format("2006-01-02T15:04:05.000Z")
		if at.IsZero() {
			want = ""
		}
		if got := httpadapter.TimeText(at); got != want {
			t.Errorf("%d s and %d ns: %q, want %q", s, ns, got, want)
		}
	})
}
