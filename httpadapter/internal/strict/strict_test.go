package strict_test

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
)

// task is what the tests decode: a field of each kind.
type task struct {
	Type    int
	Notes   string
	Auto    bool
	Time    time.Time
	Pickup  *tracking.LngLat
	Address string
	Ratio   float64
	Props   map[string]string
}

func decode(body string) (task, error) {
	v, err := taskShape.Decode([]byte(body))
	return task{v.Type, v.Notes, v.Auto, v.Time, v.Pickup.LngLat, v.Pickup.Address, v.Ratio, v.Props}, err
}

var taskShape = strict.ShapeOf[struct {
	Type   int               `json:"type"`
	Notes  string            `json:"notes"`
	Auto   bool              `json:"auto_assign"`
	Time   time.Time         `json:"time"`
	Ratio  float64           `json:"ratio"`
	Props  map[string]string `json:"properties"`
	Pickup struct {
		LngLat  *tracking.LngLat `json:"lnglat"`
		Address string           `json:"address"`
	} `json:"pickup"`
}]()

func TestDecode(t *testing.T) {
	at := time.Date(2024, 3, 10, 8, 50, 0, 0, time.UTC)
	for _, tt := range []struct {
		body string
		want task
	}{
		{`{}`, task{}},
		{" \t\r\n{ } \n", task{}},
		{`{"type":1,"notes":"n","auto_assign":true,"time":"2024-03-10T08:50Z","ratio":1.5e1}`,
			task{Type: 1, Notes: "n", Auto: true, Time: at, Ratio: 15}},
		{
			`{"pickup":{"lnglat":[180,-90],"address":"a"}}`,
			task{Pickup: &tracking.LngLat{Lng: 180, Lat: -90}, Address: "a"},
		},
		{`{"pickup":{"lnglat":[-0,-0.0e9]}}`, task{Pickup: &tracking.LngLat{}}},
		{
			`{"type":null,"notes":null,"auto_assign":null,"time":null,"ratio":null,"properties":null,"pickup":null}`,
			task{},
		},
		{`{"pickup":{"lnglat":null,"address":null}}`, task{}},
		{`{"properties":{}}`, task{Props: map[string]string{}}},
		{
			`{"properties":{"a":"1","A":"2","":"3","n":null}}`,
			task{Props: map[string]string{"a": "1", "A": "2", "": "3"}},
		},
		{`{"notes":"\"\\\/\b\f\n\r\t\u00e9\ud83d\uDE00é😀\u2028"}`, task{Notes: "\"\\/\b\f\n\r\té😀é😀\u2028"}},
		{`{"notes":"\ufffe\uffff` + "\u007f" + `"}`, task{Notes: "\ufffe\uffff\u007f"}},
		{`{"\u0074ype":2}`, task{Type: 2}},
		{`{"type":-0}`, task{}},
		{
			`{"task_id":"x","status":"completed","tenant_id":2,"__proto__":{},"x":[1e999,"\u0000",[],{"Type":1}]}`,
			task{},
		},
		{`{"x":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}`, task{}},
	} {
		got, err := decode(tt.body)
		if err != nil {
			t.Errorf("%s: %v", tt.body, err)
			continue
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.body, d)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, tt := range []struct{ body, field string }{
		// Not one JSON object.
		{``, ""}, {` `, ""}, {`[]`, ""}, {`"x"`, ""}, {`1`, ""}, {`true`, ""}, {`null`, ""}, {`{`, ""}, {`}`, ""},
		{"\xef\xbb\xbf{}", ""}, {"\xff\xfe{\x00}\x00", ""}, {"\x00{\x00}", ""},
		{`{} x`, ""}, {`{}{}`, ""}, {`{}//c`, ""}, {`{}/**/`, ""}, {"{}\x00", ""}, {"{}\v", ""}, {"{}\u00a0", ""},
		{`{"x":1,}`, ""}, {`{,}`, ""}, {`{'x':1}`, ""}, {`{x:1}`, ""}, {`{"x":01}`, ""}, {`{"x":+1}`, ""},
		{`{"x":.5}`, ""}, {`{"x":1.}`, ""}, {`{"x":-}`, ""},
		{`{"x":0x1}`, ""}, {`{"x":1e}`, ""}, {`{"x":NaN}`, ""}, {`{"x":Infinity}`, ""}, {`{"x":TRUE}`, ""},
		{`{"x":tru}`, ""}, {`{"x":nullx}`, ""}, {`{"x" 1}`, ""}, {`{"x":}`, ""}, {`{"x"}`, ""},
		{`{"x":[1,]}`, ""}, {`{"x":[1 2]}`, ""}, {`{"x":[,1]}`, ""}, {`{"x":[}`, ""}, {`{"x":{]}`, ""},
		{"{\"x\":\"\n\"}", ""}, {"{\"x\":\"\x1f\"}", ""}, {`{"x":"\x"}`, ""}, {`{"x":"\u12"}`, ""},
		{`{"x":"\u12g4"}`, ""}, {`{"x":"\U0041"}`, ""}, {`{"x":"`, ""}, {`{"x":"\`, ""}, {`{"x":"\"}`, ""},
		{"{\"x\":\"\xff\"}", ""}, {"{\"x\":\"\xc0\x80\"}", ""}, {"{\"x\":\"\xed\xa0\x80\"}", ""}, {"{\"\xff\":1}", ""},
		{`{"x":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`, ""},
		{strings.Repeat(`{"x":`, 33) + `1` + strings.Repeat(`}`, 33), ""},

		// Half of a surrogate pair.
		{`{"x":"\ud800"}`, ""}, {`{"x":"\udc00"}`, ""}, {
			`{"x":"\ud800\ud800\udc00"}`, "",
		}, {`{"x":"\udc00\ud800"}`, ""}, {`{"x":"\ud800\u0041"}`, ""}, {`{"\ud800":1}`, ""},
		{`{"notes":"\ud800x"}`, "notes"}, {`{"pickup":{"address":"\ud800\u"}}`, ""}, {
			`{"pickup":{"address":"\ud800"}}`, "pickup.address",
		},
		{`{"x":[{"y":"\ud800"}]}`, ""},

		// Keys.
		{`{"type":1,"type":2}`, "type"}, {`{"type":1,"\u0074ype":1}`, "type"}, {`{"type":null,"type":1}`, "type"},
		{`{"x":1,"x":1}`, ""}, {`{"x":{"y":1,"y":2}}`, ""}, {`{"x":[{"y":1,"y":2}]}`, ""}, {
			`{"pickup":{"y":1,"y":2}}`, "",
		},
		{
			`{"pickup":{"address":"a","address":"a"}}`, "pickup.address",
		}, {`{"properties":{"a":"1","a":"1"}}`, "properties"},
		{`{"Type":1}`, "type"}, {`{"TYPE":null}`, "type"}, {`{"type":1,"tYpe":1}`, "type"},
		{`{"note\u017f":""}`, "notes"}, {
			`{"pickup":{"lngLat":[1,2]}}`, "pickup.lnglat",
		},

		// Types.
		{`{"type":"1"}`, "type"}, {`{"type":true}`, "type"}, {`{"type":1.0}`, "type"}, {`{"type":1e0}`, "type"}, {
			`{"type":99999999999999999999}`, "type",
		}, {`{"type":[]}`, "type"}, {`{"type":{}}`, "type"},
		{`{"notes":1}`, "notes"}, {`{"notes":[]}`, "notes"}, {`{"notes":{}}`, "notes"}, {`{"notes":false}`, "notes"}, {
			`{"notes":"a\u0000"}`, "notes",
		},
		{`{"auto_assign":"true"}`, "auto_assign"}, {`{"auto_assign":1}`, "auto_assign"}, {
			`{"auto_assign":[]}`, "auto_assign",
		},
		{`{"ratio":"1"}`, "ratio"}, {`{"ratio":1e999}`, "ratio"}, {`{"ratio":true}`, "ratio"},
		{`{"pickup":[]}`, "pickup"}, {`{"pickup":"street"}`, "pickup"}, {`{"pickup":7}`, "pickup"},
		{`{"properties":[]}`, "properties"}, {`{"properties":{"a":1}}`, "properties"}, {
			`{"properties":{"a":{}}}`, "properties",
		}, {
			`{"properties":{"a":"\u0000"}}`, "properties",
		}, {`{"properties":{"\u0000":"a"}}`, "properties"}, {`{"properties":{"a":"\ud800"}}`, "properties"},
		{`{"time":1}`, "time"}, {`{"time":""}`, "time"}, {`{"time":"2026-02-30T10:00Z"}`, "time"},

		// Points.
		{`{"pickup":{"lnglat":[]}}`, "pickup.lnglat"}, {`{"pickup":{"lnglat":[1]}}`, "pickup.lnglat"}, {
			`{"pickup":{"lnglat":[1,2,3]}}`, "pickup.lnglat",
		}, {`{"pickup":{"lnglat":{}}}`, "pickup.lnglat"},
		{`{"pickup":{"lnglat":"77,28"}}`, "pickup.lnglat"}, {
			`{"pickup":{"lnglat":["77","28"]}}`, "pickup.lnglat",
		}, {`{"pickup":{"lnglat":[null,13]}}`, "pickup.lnglat"}, {`{"pickup":{"lnglat":[[1],2]}}`, "pickup.lnglat"},
		{`{"pickup":{"lnglat":[180.0001,0]}}`, "pickup.lnglat"}, {
			`{"pickup":{"lnglat":[0,90.0001]}}`, "pickup.lnglat",
		}, {`{"pickup":{"lnglat":[-181,0]}}`, "pickup.lnglat"}, {
			`{"pickup":{"lnglat":[1e999,0]}}`, "pickup.lnglat",
		}, {`{"pickup":{"lnglat":[true,0]}}`, "pickup.lnglat"},
	} {
		got, err := decode(tt.body)
		var e *tracking.Error
		if !errors.As(err, &e) || e.Code != tracking.ErrInvalid {
			t.Errorf("%q: %+v, %v; want it refused", tt.body, got, err)
			continue
		}
		if e.Field != tt.field {
			t.Errorf("%q: blames %q, want %q (%v)", tt.body, e.Field, tt.field, err)
		}
	}
}

func TestErrorsKeepValues(t *testing.T) {
	const canary = "c4n4ry"
	for _, body := range []string{
		`{"type":"` + canary + `"}`, `{"time":"` + canary + `"}`, `{"notes":"` + canary + `\u0000"}`,
		`{"` + canary + `":1,"` + canary + `":2}`, `{"properties":{"` + canary + `":1}}`,
		`{"pickup":{"lnglat":"` + canary + `"}}`, `{"x":` + canary + `}`, `{"pickup":"` + canary + `"}`,
		`{"` + canary + `":"\ud800"}`,
	} {
		_, err := decode(body)
		if err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, raw := range []string{
		"x=" + canary + "&x=1", canary + "=%zz", canary + "=1&" + canary + "=2", "page=" + canary,
		"availability=" + canary, "position=" + canary, "properties." + canary + "=",
	} {
		if err := decodeQuery(raw); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

func TestLargeObject(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"type":1`)
	for i := range 1000 {
		b.WriteString(`,"k` + strconv.Itoa(i) + `":{}`)
	}
	if _, err := decode(b.String() + "}"); err != nil {
		t.Error(err)
	}
	if _, err := decode(b.String() + `,"k500":1}`); err == nil {
		t.Error("a repeated key among 1,000 was accepted")
	}
}

func TestID(t *testing.T) {
	for _, tt := range []struct {
		body, want string
		ok         bool
	}{
		{`{"task_id":"a b"}`, "a b", true},
		{`{"task_id":"\u0000"}`, "\x00", true},
		{`{"task_id":""}`, "", false},
		{`{"task_id":null}`, "", false},
		{`{"task_id":7}`, "", false},
		{`{"task_id":"\ud800"}`, "", false},
		{`{}`, "", false},
	} {
		o, err := strict.ParseObject([]byte(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		got := o.ID("task_id")
		if ok := o.Err() == nil; got != tt.want || ok != tt.ok {
			t.Errorf("%s: %q, %v", tt.body, got, o.Err())
		}
	}
}

func TestElements(t *testing.T) {
	o, err := strict.ParseObject([]byte(`{"fixes":[{"time":1},{"time":"2024-03-10T08:50Z"},7,{"a":1,"a":2},{"x":"\ud800"},{"Time":null},[],{"x":{"y":1,"y":1}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	all, ok := o.List("fixes")
	list, more := all.Take(8)
	if err := o.Err(); err != nil || more || !ok || len(list) != 8 {
		t.Fatalf("%d elements, more %v, ok %v, %v", len(list), more, ok, err)
	}
	var good []int
	for i, e := range list {
		in, ok := e.Object("")
		if !ok {
			continue
		}
		in.Time("time")
		if in.Err() == nil {
			good = append(good, i)
		}
	}
	if d := cmp.Diff([]int{1}, good); d != "" {
		t.Errorf("good elements (-want +got)\n%s", d)
	}

	if list, more := all.Take(7); len(list) != 7 || !more {
		t.Errorf("%d elements, more %v", len(list), more)
	}
	for _, body := range []string{
		`{"fixes":{}}`, `{"fixes":[],"a":1,"a":1}`, `{"fixes":[],"fixes":[]}`, `{"a":[{"b":1,"b":1}],"fixes":[]}`,
		`{"fixes":[],"z":{"b":1,"b":1}}`,
	} {
		o, err := strict.ParseObject([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		o.List("fixes")
		if o.Err() == nil {
			t.Errorf("%s: accepted", body)
		}
	}
}

func TestParseTime(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"2024-03-10T08:50Z", "2024-03-10T08:50:00.000Z"},
		{"2024-03-10T08:50+05:30", "2024-03-10T03:20:00.000Z"},
		{"2024-03-10T08:50:05-00:00", "2024-03-10T08:50:05.000Z"},
		{"2024-03-10T08:50:05.123Z", "2024-03-10T08:50:05.123Z"},
		{"2024-03-10T08:50:05.1Z", "2024-03-10T08:50:05.100Z"},
		{"2024-03-10T08:50:05.999999999999Z", "2024-03-10T08:50:05.999Z"},
		{"1969-12-31T23:59:59.9999Z", "1969-12-31T23:59:59.999Z"},
		{"2024-02-29T23:59-23:59", "2024-03-01T23:58:00.000Z"},
		{"0001-01-01T00:00:00.001Z", "0001-01-01T00:00:00.001Z"},
		{"0000-12-31T23:59-00:02", "0001-01-01T00:01:00.000Z"},
		{"9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"},
		{"2024-03-31T00:59Z", "2024-03-31T00:59:00.000Z"},
		{"2024-10-27T01:30Z", "2024-10-27T01:30:00.000Z"},
	} {
		got, ok := strict.ParseTime(tt.in)
		if s := got.Format("2006-01-02T15:04:05.000Z07:00"); !ok || s != tt.want {
			t.Errorf("%s: %s, %v; want %s", tt.in, s, ok, tt.want)
		}
	}
	for _, in := range []string{
		"", "2026-02-30T10:00Z", "2026-02-29T10:00Z", "2026-04-31T10:00Z", "2026-00-10T10:00Z", "2026-13-10T10:00Z",
		"2026-01-00T10:00Z", "2026-01-32T10:00Z",
		"2026-01-10T24:00Z", "2026-01-10T10:60Z", "2026-01-10T10:00:60Z", "2026-01-10T10:00z", "2026-01-10t10:00Z",
		"2026-01-10 10:00Z", "2026-01-10T10:00Z ", " 2026-01-10T10:00Z", "2026-1-1T1:00Z",
		"2026-01-10T10:00", "2026-01-10", "2026-01-10Z", "2026-01-10T10:00:05,123Z", "2026-01-10T10:00:05.Z",
		"2026-01-10T10:00.5Z", "2026-01-10T10:00:5Z", "2026-01-10T10Z",
		"2026-01-10T10:00+05", "2026-01-10T10:00+0530", "2026-01-10T10:00+24:00", "2026-01-10T10:00+05:60",
		"2026-01-10T10:00+5:30", "2026-01-10T10:00+05:30Z", "2026-01-10T10:00ZZ", "2026-01-10T10:00\u221205:30",
		"0001-01-01T00:00Z", "0001-01-01T00:00:00.0005Z", "0001-01-01T05:30+05:30", "0000-12-31T23:59Z",
		"0001-01-01T00:00+00:01", "9999-12-31T23:59-00:01", "10000-01-01T00:00Z", "+2026-01-10T10:00Z",
		"-001-01-10T10:00Z",
		"２０２６-01-10T10:00Z", "2026-01-10T10:00:00.\u0661Z",
	} {
		if got, ok := strict.ParseTime(in); ok {
			t.Errorf("%q: accepted as %v", in, got)
		}
	}
}

func TestParsePosition(t *testing.T) {
	for in, want := range map[string]tracking.LngLat{
		"80.27,13.08": {Lng: 80.27, Lat: 13.08}, "-180,-90": {Lng: -180, Lat: -90}, "180,90": {Lng: 180, Lat: 90},
		"1e1,-2.5E-1": {Lng: 10, Lat: -.25}, "-0,0": {},
	} {
		if got, ok := strict.ParsePosition(in); !ok || got != want {
			t.Errorf("%s: %v, %v", in, got, ok)
		}
	}
	for _, in := range []string{
		"", ",", "1", "1,", ",1", "1,2,3", "181,0", "0,91", "NaN,0", "Inf,0", "0x1,0", "1_0,0", "+1,0", "01,0", "1 ,0",
		"1, 0", "[1,0]", ".5,0", "1.,0", "1e999,0", "-,0", "１,0", "1;0",
	} {
		if got, ok := strict.ParsePosition(in); ok {
			t.Errorf("%q: accepted as %v", in, got)
		}
	}
}

func decodeQuery(raw string) error {
	var q strict.Query
	if err := q.Parse(raw); err != nil {
		return err
	}
	q.Int("page", 1, 1<<31)
	q.Bool("availability")
	q.Position("position")
	q.Filter("driver_id")
	q.Prefixed("properties.")
	q.Text("message")
	return q.Err()
}

func TestQuery(t *testing.T) {
	for _, raw := range []string{
		"", "&", "a&b=&c=1", "page=1", "page=99999999", "availability=true&availability2=x", "position=80.1,13",
		"position=80.1%2C13", "driver_id=%00%FF", "properties.zip=600001&properties.a.b=c",
		"properties.a=1&properties.A=1",
		"message=&x=", "%61=1&b=+", "PAGE=0", "properties=1", "message=" + "%F0%9F%98%80",
	} {
		if err := decodeQuery(raw); err != nil {
			t.Errorf("%q: %v", raw, err)
		}
	}
	for raw, field := range map[string]string{
		"a=1;b=2": "", ";": "", "a=%zz": "", "%zz=1": "", "a=%": "", "a=%4": "", "a=1&a=1": "", "a&a": "",
		"a=1&%61=2": "", "page=1&page=1": "", "=1&=2": "",
		"page=": "page", "page": "page", "page=0": "page", "page=-1": "page", "page=abc": "page", "page=1.5": "page",
		"page=%2B1": "page", "page=+1": "page", "page=01": "page", "page=1e3": "page", "page=１": "page",
		"page=%EF%BC%91":            "page",
		"page=99999999999999999999": "page", "page=2147483649": "page", "page= 1": "page", "page=1_0": "page",
		"page=0x1":       "page",
		"availability=1": "availability", "availability=t": "availability", "availability=TRUE": "availability",
		"availability=yes": "availability", "availability=": "availability",
		"position=": "position", "position=13": "position", "driver_id=": "driver_id",
		"properties.=x": "properties", "properties.a=": "properties", "properties.%00=1": "properties",
		"properties.a=%00": "properties", "properties.%FF=1": "properties",
		"message=%00": "message", "message=%FF": "message",
	} {
		err := decodeQuery(raw)
		var e *tracking.Error
		if !errors.As(err, &e) || e.Code != tracking.ErrInvalid || e.Field != field {
			t.Errorf("%q: %v; want %q blamed", raw, err, field)
		}
	}
}

func TestQueryID(t *testing.T) {
	for raw, want := range map[string]string{
		"task_id=a": "a", "task_id=%00": "\x00", "task_id=%27+OR+1%3D1--": "' OR 1=1--",
	} {
		var q strict.Query
		err := q.Parse(raw)
		if got := q.ID("task_id"); err != nil || q.Err() != nil || got != want {
			t.Errorf("%s: %q, %v, %v", raw, got, err, q.Err())
		}
	}
	for _, raw := range []string{"", "task_id=", "task_id", "TASK_ID=a"} {
		var q strict.Query
		err := q.Parse(raw)
		if q.ID("task_id"); err != nil || q.Err() == nil {
			t.Errorf("%q: accepted", raw)
		}
	}
}

// TestManyNames: an object and a query of more names than are looked through one by one.
func TestManyNames(t *testing.T) {
	var members, params []string
	for i := range 40 {
		members = append(members, `"k`+strconv.Itoa(i)+`":0`)
		params = append(params, "k"+strconv.Itoa(i)+"=0")
		object, query := strings.Join(members, ","), strings.Join(params, "&")
		if o, err := strict.ParseObject([]byte("{" + object + "}")); err != nil || o.Err() != nil {
			t.Errorf("%d members: %v %v", i+1, err, o.Err())
		}
		if err := new(strict.Query).Parse(query); err != nil {
			t.Errorf("%d parameters: %v", i+1, err)
		}
		for _, twice := range []int{0, i} {
			again := strconv.Itoa(twice)
			for _, key := range []string{`"k` + again + `"`, `"\u006b` + again + `"`} {
				if o, err := strict.ParseObject([]byte("{" + object + "," + key + ":1}")); err != nil || o.Err() == nil {
					t.Errorf("%d members and %s again: %v", i+1, key, err)
				}
			}
			if err := new(strict.Query).Parse(query + "&%6b" + again + "=1"); err == nil {
				t.Errorf("%d parameters and k%s again: no error", i+1, again)
			}
		}
	}
}
