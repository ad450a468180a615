package ingest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/ingest"
)

// TestSpoilt: a value that cannot be read is unknown, and the reading goes on after it: what else
// is in its element, and the elements behind, are there.
func TestSpoilt(t *testing.T) {
	t0 := time.Unix(1377177267, 0).UTC()
	first, second := at(30, 60, t0), at(31, 61, t0.Add(time.Minute))
	both := []tracking.Fix{first, second}
	const later = `{"lat":61,"lon":31,"timestamp":1377177327}`
	for name, tt := range map[string]struct {
		body   string
		want   []tracking.Fix
		unread int
	}{
		"NaN": {
			`{"locations":[{"lat":60,"lon":30,"time":1377177267,"speed":NaN},` + later + `]}`, both, 0,
		},
		"Infinity": {
			`[{"lat":60,"lon":30,"accuracy":Infinity,"timestamp":1377177267},` + later + `]`, both, 0,
		},
		"-Infinity": {
			`[{"lat":60,"lon":30,"accuracy":-Infinity,"timestamp":1377177267},` + later + `]`, both, 0,
		},
		"undefined": {
			`[{"lat":60,"lon":30,"speed":undefined,"timestamp":1377177267},` + later + `]`, both, 0,
		},
		"True": {
			`[{"lat":60,"lon":30,"mock":True,"timestamp":1377177267},` + later + `]`, both, 0,
		},
		"words": {
			`[{"lat":60,"lon":30,"speed":12 km/h,"timestamp":1377177267},` + later + `]`, both, 0,
		},
		"a bad escape": {
			`[{"lat":60,"lon":30,"wifi":"a\xb","timestamp":1377177267},` + later + `]`, both, 0,
		},
		"a bad escape in a name": {
			`[{"lat":60,"lon":30,"wi\fi":"\u12","timestamp":1377177267},` + later + `]`, both, 0,
		},
		"a control character": {
			"[{\"lat\":60,\"lon\":30,\"wifi\":\"a\x01\n\",\"timestamp\":1377177267}," + later + `]`, both, 0,
		},
		"quotes in a text": {
			`[{"lat":60,"lon":30,"wifi":"my "home" net","timestamp":1377177267},` + later + `]`, both, 0,
		},
		"no value":                {`[{"lat":60,"lon":30,"speed":,"timestamp":1377177267},` + later + `]`, both, 0},
		"names without quotes":    {`[{lat:60,lon:30,timestamp:1377177267},` + later + `]`, both, 0},
		"no commas":               {`[{"lat":60 "lon":30 "timestamp":1377177267} ` + later + `]`, both, 0},
		"commas too many":         {`[,{"lat":60,,"lon":30,"timestamp":1377177267,},,` + later + `,]`, both, 0},
		"commas between lines":    {`{"lat":60,"lon":30,"timestamp":1377177267},` + "\n" + later, both, 0},
		"nonsense between lines":  {`{"lat":60,"lon":30,"timestamp":1377177267}` + "\n<br>\n" + later, both, 0},
		"nonsense behind":         {later + ` ok`, both[1:], 0},
		"an element that is none": {`[{"lat":60,"lon":30,"timestamp":1377177267},nonsense,` + later + `]`, both, 0},
		"a place of NaN":          {`[{"lat":NaN,"lon":30,"timestamp":1377177267},` + later + `]`, both[1:], 1},
		"a time of nonsense":      {`[{"lat":60,"lon":30,"timestamp":@},` + later + `]`, both[1:], 1},
		"not valid, in Python": {
			`[{"lat":60,"lon":30,"timestamp":1377177267,"valid":False},` + later + `]`, both[1:], 0,
		},
		"an array that does not end": {
			`{"locations":[{"geometry":{"coordinates":[30,60},"properties":{"timestamp":1377177267}},` + later + `]}`,
			both, 1,
		},
		"an object that ends twice": {`{"locations":[{"lat":60,"lon":30,"time":1377177267}},` + later + `]}`, both, 1},
		"an object that does not": {
			`{"locations":[{"lat":60,"lon":30,"time":1377177267],"current":` + later + `}`, both[1:], 1,
		},
	} {
		m := ingest.Decode(request("", js, tt.body), now)
		if d := cmp.Diff(tt.want, m.Fixes, approx, cmpopts.EquateEmpty()); d != "" || m.Unread != tt.unread {
			t.Errorf("%s: %d unread, want %d (-want +got)\n%s", name, m.Unread, tt.unread, d)
		}
	}
}

// TestSpoiltLosesNoOther: whatever one value of one element is replaced by, all other elements are
// read as they were.
func TestSpoiltLosesNoOther(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(rt, "elements")
		spoilt := rapid.IntRange(0, n-1).Draw(rt, "spoilt")
		shape := rapid.SampledFrom([]func(i int, field func(text string) string) string{
			func(i int, v func(string) string) string {
				return fmt.Sprintf(`{"lat":%s,"lon":%s,"timestamp":%s,"speed":%s,"id":%s}`, v("60"),
					v(fmt.Sprint(30+i)), v(fmt.Sprint(1377177267+i)), v("1.5"), v(`"x"`))
			},
			func(i int, v func(string) string) string {
				return fmt.Sprintf(`{"coords":{"latitude":%s,"longitude":%s,"accuracy":%s},"timestamp":%s,"extras":%s,"battery":{"level":%s}}`,
					v("60"), v(fmt.Sprint(30+i)), v("5"), v(fmt.Sprintf(`"2013-08-22T13:14:%02dZ"`, 27+i)), v("{}"),
					v("0.5"))
			},
			func(i int, v func(string) string) string {
				return fmt.Sprintf(`{"type":%s,"geometry":{"type":%s,"coordinates":[%s,%s]},"properties":{"timestamp":%s,"wifi":%s,"motion":%s}}`,
					v(`"Feature"`), v(`"Point"`), v(fmt.Sprint(30+i)), v("60"), v(fmt.Sprint(1377177267+i)), v(`"net"`),
					v(`["driving"]`))
			},
		}).Draw(rt, "shape")
		root := rapid.SampledFrom([]string{
			`{"locations":[%s]}`, `[%s]`, `{"data":{"list":[[%s]]}}`, `{"location":[%s],"device_id":"1"}`,
		}).Draw(rt, "root")
		bad := rapid.OneOf(
			rapid.SampledFrom([]string{
				"NaN", "Infinity", "-inf", "undefined", "True", "nil", "", "12 km/h", "'a'", "0x1p3", "1e999", "--",
				"null", `"a\xb"`, `"\ud800"`, "\"\x00\x1f\n\"", "[]", "{}", "{a}", "[x]", `[[{"a":@}]]`, "\xff",
			}),
			rapid.StringMatching(`[^,:\[\]{}"\\]{0,8}`), rapid.StringMatching(`"[^"\\]{0,8}"`),
			rapid.StringMatching(`"(\\[a-zA-Z0-9"\\/]){0,4}"`),
		).Draw(rt, "bad")
		at := rapid.IntRange(0, 6).Draw(rt, "value")
		keep := func(text string) string { return text }
		elements := make([]string, n)
		for i := range elements {
			elements[i] = shape(i, keep)
		}
		whole := ingest.Decode(request("", js, fmt.Sprintf(root, strings.Join(elements, ","))), now)
		if len(whole.Fixes) != n || whole.Unread != 0 {
			rt.Fatalf("%d fixes and %d unread of %s", len(whole.Fixes), whole.Unread, elements)
		}
		nth := 0
		elements[spoilt] = shape(spoilt, func(text string) string {
			if nth++; nth-1 == at {
				return bad
			}
			return text
		})
		body := fmt.Sprintf(root, strings.Join(elements, ","))
		got := ingest.Decode(request("", js, body), now)
		left := got.Fixes
		others := 0
		for i, f := range whole.Fixes {
			if i == spoilt {
				continue
			}
			for len(left) > 0 && !cmp.Equal(left[0], f) {
				left = left[1:]
			}
			if len(left) > 0 {
				left, others = left[1:], others+1
			}
		}
		if others != n-1 || len(got.Fixes) > n {
			rt.Errorf("%s: %d fixes, and %d of the %d others as they were", body, len(got.Fixes), others, n-1)
		}
	})
}
