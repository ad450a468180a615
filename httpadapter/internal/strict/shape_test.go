package strict_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
)

type word string

func (word) Words() []string { return []string{"yes", "no", "perhaps"} }

type inner struct {
	Name string `json:"name"`
}

type when struct {
	At time.Time `json:"at"`
}

// everything has a field of each kind, plain and by pointer.
type everything struct {
	ID tracking.TaskID `json:"id" strict:"id"`
	when
	Text     string             `json:"text"`
	TextP    *string            `json:"text_p"`
	NamedP   *tracking.DriverID `json:"named_p"`
	Looked   string             `json:"looked" strict:"lookup"`
	Code     *string            `json:"code" strict:"digits"`
	Dest     string             `json:"dest" strict:"place"`
	Word     word               `json:"word"`
	WordP    *word              `json:"word_p"`
	Int      int                `json:"int"`
	Bool     bool               `json:"bool"`
	BoolP    *bool              `json:"bool_p"`
	Float    float64            `json:"float"`
	FloatP   *float64           `json:"float_p"`
	Reading  tracking.Reading   `json:"reading"`
	Point    tracking.LngLat    `json:"point"`
	PointP   *tracking.LngLat   `json:"point_p"`
	TimeP    *time.Time         `json:"time_p"`
	None     *strict.TimeOrNone `json:"none"`
	Some     *strict.TimeOrNone `json:"some"`
	Map      map[string]string  `json:"map"`
	Inner    inner              `json:"inner"`
	InnerP   *inner             `json:"inner_p"`
	Required bool               `json:"required" strict:"required"`
}

func (e *everything) Check(o strict.Object) {
	if e.Text == "forbidden" {
		o.Fail("text", "must be something else")
	}
}

func TestShape(t *testing.T) {
	shape := strict.ShapeOf[everything]()
	at := time.Date(2026, 3, 14, 9, 0, 0, 0, time.UTC)
	yes, no, half, text, code, named, w := true, false, 0.5, "", "007", tracking.DriverID("d"), word("perhaps")
	for _, tt := range []struct {
		body string
		want everything
	}{
		{`{"id":"t","required":false}`, everything{ID: "t"}},
		{`{"id":"t","required":true,"text":null,"inner":null,"inner_p":null,"map":null,"word":null,"word_p":null,"text_p":null,"point_p":null}`,
			everything{ID: "t", Required: true}},
		{`{"id":"t","required":true,"at":"2026-03-14T09:00Z","text":"a","text_p":"","named_p":"d","looked":"\u0000","code":"007","dest":[1.50,-2],"word":"no",
			"word_p":"perhaps","int":-3,"bool":true,"bool_p":false,"float":0.5,"float_p":0.5,"reading":0,"point":[1,2],"point_p":[3,4],"time_p":"2026-03-14T09:00Z",
			"none":"","some":"2026-03-14T09:00Z",
			"map":{"k":"v"},"inner":{"name":"n"},"inner_p":{},"more":[]}`,
			everything{
				ID: "t", Required: true, when: when{at}, Text: "a", TextP: &text, NamedP: &named, Looked: "\x00",
				Code: &code, Dest: "1.5,-2",
				Word: "no", WordP: &w, Int: -3, Bool: yes, BoolP: &no, Float: half, FloatP: &half, Reading: tracking.Known(0),
				Point:  tracking.LngLat{Lng: 1, Lat: 2},
				PointP: &tracking.LngLat{Lng: 3, Lat: 4}, TimeP: &at, Map: map[string]string{"k": "v"},
				None: &strict.TimeOrNone{}, Some: &strict.TimeOrNone{Time: at},
				Inner: inner{"n"}, InnerP: &inner{},
			}},
		{`{"id":"t","required":true,"dest":"4 Pond Lane"}`, everything{ID: "t", Required: true, Dest: "4 Pond Lane"}},
	} {
		got, err := shape.Decode([]byte(tt.body))
		if err != nil {
			t.Errorf("%s: %v", tt.body, err)
			continue
		}
		if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(everything{}, when{})); d != "" {
			t.Errorf("%s (-want +got)\n%s", tt.body, d)
		}
	}

	// The first field that is wrong is told, whatever comes first in the body.
	for _, tt := range []struct{ body, field, message string }{
		{`[]`, "", "The body must be a JSON object."},
		{`{"required":1,"text":1,"id":1}`, "id", "The field id must be a text."},
		{`{"required":1,"text":1,"id":""}`, "id", "The field id is required."},
		{`{"text":1,"at":1,"id":"t"}`, "at", "The field at must be a text."},
		{`{"id":"t","text":"forbidden"}`, "required", "The field required is required."},
		{`{"id":"t","required":null}`, "required", "The field required is required."},
		{`{"id":"t","required":true,"ſome":null}`, "some", "The field some is given with its name in another case."},
		{`{"id":"t","required":true,"\u017fome":null}`, "some", "The field some is given with its name in another case."},
		{`{"id":"t","Required":true}`, "required", "The field required is given with its name in another case."},
		{`{"id":"t","required":true,"text":"forbidden"}`, "text", "The field text must be something else."},
		{`{"id":"t","required":true,"word":"maybe"}`, "word", "The field word must be yes, no or perhaps."},
		{`{"id":"t","required":true,"word":""}`, "word", "The field word must be yes, no or perhaps."},
		{`{"id":"t","required":true,"word":1}`, "word", "The field word must be a text."},
		{`{"id":"t","required":true,"reading":"1"}`, "reading", "The field reading must be a number."},
		{`{"id":"t","required":true,"int":1.0}`, "int", "The field int must be an integer."},
		{`{"id":"t","required":true,"inner_p":{"name":1}}`, "inner_p.name", "The field inner_p.name must be a text."},
		{`{"id":"t","required":true,"inner":[]}`, "inner", "The field inner must be an object."},
		{
			`{"id":"t","required":true,"more":"\ud800"}`, "",
			`The body holds half of a surrogate pair (\ud800 to \udfff) in a text.`,
		},
	} {
		_, err := shape.Decode([]byte(tt.body))
		var e *tracking.Error
		if !errors.As(err, &e) || e.Field != tt.field || e.Message != tt.message {
			t.Errorf("%s: got %v, want %q of %q", tt.body, err, tt.message, tt.field)
		}
	}
}

// What is wrong within an element is its own affair.
func TestShapeElements(t *testing.T) {
	shape := strict.ShapeOf[struct {
		List strict.Elements[struct {
			N int `json:"n" strict:"required"`
		}] `json:"list"`
	}]()
	v, err := shape.Decode([]byte(`{"list":[{"n":1},{"n":"x"},7,{},{"n":2,"more":"\ud800"},{"n":3,"n":3},{"n":4}]}`))
	if err != nil {
		t.Fatal(err)
	}
	list, more := v.List.Take(7)
	var good []int
	for _, e := range list {
		if e.Err == nil {
			good = append(good, e.Value.N)
		}
	}
	if len(list) != 7 || more || !cmp.Equal(good, []int{1, 4}) {
		t.Errorf("%d elements, more: %v, good: %v", len(list), more, good)
	}
	if list, more := v.List.Take(6); len(list) != 6 || !more {
		t.Errorf("%d elements, more: %v", len(list), more)
	}
	if v, err := shape.Decode([]byte(`{}`)); err != nil {
		t.Error(err)
	} else if list, more := v.List.Take(1); len(list) > 0 || more {
		t.Errorf("of none: %v, %v", list, more)
	}
	if _, err := shape.Decode([]byte(`{"list":{}}`)); err == nil {
		t.Error("an object was taken for a list")
	}
}

// A list of texts is nil where it is absent, and not where it is empty.
func TestShapeTexts(t *testing.T) {
	type lists struct {
		Any   []string `json:"any"`
		Words []word   `json:"words"`
		IDs   []string `json:"ids" strict:"lookup"`
	}
	shape := strict.ShapeOf[lists]()
	for _, tt := range []struct {
		body string
		want lists
	}{
		{`{}`, lists{}}, {`{"any":null,"words":null}`, lists{}}, {`{"any":[],"words":[ ]}`, lists{Any: []string{}, Words: []word{}}},
		{`{"any":["a","","a"],"words":["no","yes"]}`, lists{Any: []string{"a", "", "a"}, Words: []word{"no", "yes"}}},
		{`{"ids":["a","\u0000"]}`, lists{IDs: []string{"a", "\x00"}}},
		{`{"any":[` + strings.Repeat(`"",`, 999) + `""]}`, lists{Any: make([]string, 1000)}},
	} {
		got, err := shape.Decode([]byte(tt.body))
		if d := cmp.Diff(tt.want, got); err != nil || d != "" {
			t.Errorf("%.60s: error %v (-want +got)\n%s", tt.body, err, d)
		}
	}
	for body, message := range map[string]string{
		`{"words":"no"}`:              "The field words must be an array.",
		`{"words":{"a":"no"}}`:        "The field words must be an array.",
		`{"words":["no",1]}`:          "The field words must hold texts only.",
		`{"words":[null]}`:            "The field words must hold texts only.",
		`{"words":["no","maybe"]}`:    "The field words must hold nothing but yes, no and perhaps.",
		`{"words":["No"]}`:            "The field words must hold nothing but yes, no and perhaps.",
		`{"words":["no\u0000"]}`:      "The field words must not hold the character U+0000.",
		`{"words":["\ud800"]}`:        "The field words holds half of a surrogate pair.",
		`{"words":["no"],"words":[]}`: "The field words is given twice.",
		`{"words":[` + strings.Repeat(`"no",`, 1000) + `"no"]}`: "The field words has more than 1000 elements.",
	} {
		got, err := shape.Decode([]byte(body))
		var e *tracking.Error
		if !errors.As(err, &e) || e.Field != "words" || e.Message != message {
			t.Errorf("%.60s: %+v, error %v, want %q", body, got, err, message)
		}
	}
}

// A type that cannot be read is found when the program starts.
func TestShapePanics(t *testing.T) {
	for what, make := range map[string]func(){
		"needs a name in the tag json": func() { strict.ShapeOf[struct{ A string }]() },
		"a type that Shape can read": func() {
			strict.ShapeOf[struct {
				A []int `json:"a"`
			}]()
		},
		"which is unknown": func() {
			strict.ShapeOf[struct {
				A string `json:"a" strict:"optional"`
			}]()
		},
		"twice": func() {
			strict.ShapeOf[struct {
				when
				A string `json:"at"`
			}]()
		},
	} {
		t.Run(what, func(t *testing.T) {
			defer func() {
				if s, _ := recover().(string); !strings.Contains(s, what) {
					t.Errorf("got %q", s)
				}
			}()
			make()
		})
	}
}

// TestMembersOfTheirObject: a member is one of the object that it stands in, and of none before,
// behind, around or within that one.
func TestMembersOfTheirObject(t *testing.T) {
	type leaf struct {
		ID string `json:"id"`
		N  *inner `json:"n"`
	}
	type tree struct {
		Empty *inner                `json:"empty"`
		One   *leaf                 `json:"one"`
		List  strict.Elements[leaf] `json:"list"`
		Name  string                `json:"name"`
		Last  map[string]string     `json:"last"`
	}
	got, err := strict.ShapeOf[tree]().Decode([]byte(`{"skipped":[{"name":"a"},[{"id":{"name":"b"}}]],"empty":{},` +
		`"one":{"n":{},"id":"1"},"list":[{},{"id":"2","n":{"name":"c","id":"d"}},{"n":{"id":"e"}},{"\u0069d":"3"}],` +
		`"other":{"name":"f","last":{"g":"h"}},"name":"i","last":{"name":"j","list":"k"}}`))
	if err != nil {
		t.Fatal(err)
	}
	list, err := got.List.All("list", 9)
	want := []leaf{{}, {"2", &inner{"c"}}, {"", &inner{}}, {ID: "3"}}
	if d := cmp.Diff(want, list); err != nil || d != "" {
		t.Errorf("%v (-want +got)\n%s", err, d)
	}
	rest := tree{Empty: &inner{}, One: &leaf{"1", &inner{}}, Name: "i", Last: map[string]string{"name": "j", "list": "k"}}
	if d := cmp.Diff(rest, got, cmpopts.IgnoreFields(tree{}, "List")); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestListWithin: what is wrong in an element is that one's alone, also of a list in an object.
func TestListWithin(t *testing.T) {
	type outer struct {
		In batch `json:"in"`
	}
	got, err := strict.ShapeOf[outer]().Decode([]byte(`{"in":{"list":[{"name":"a","name":"b"},{"x":"\ud800"},{"name":"c"}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	list, _ := got.In.List.Take(9)
	if len(list) != 3 || list[0].Err == nil || list[1].Err == nil || list[2].Err != nil || list[2].Value.Name != "c" {
		t.Errorf("%+v", list)
	}
	_, err = strict.ShapeOf[outer]().Decode([]byte(`{"in":{"list":[{"name":"a"}],"last":{"x":1,"x":1}}}`))
	if err == nil {
		t.Error("a key that is given twice beside the list")
	}
}

// TestRoomIsUsedAgain: nothing of a body, good or bad, is found in the next one that is read in the
// same room.
func TestRoomIsUsedAgain(t *testing.T) {
	type both struct {
		Name string                 `json:"name"`
		Map  map[string]string      `json:"map"`
		List strict.Elements[inner] `json:"list"`
	}
	shape := strict.ShapeOf[both]()
	long := `{"name":"a","map":{` + strings.Repeat(`"k":"v",`, 40) + `"z":""}}`
	bodies := []string{
		`{}`, `{"name":"a"}`, long, `{"name":1}`, `{"name":"b","name":"c"}`, `{"list":[{"name":"\ud800"},{"name":"d"}]}`,
		`{"map":{"k":"v"},"x":"\ud800"}`, `[`, `{"name":"e"`, `{"Name":"f"}`, "{\"name\":\"\xff\"}", `{"list":[{"name":"g"}]}`,
	}
	tell := func(v both, err error) string {
		list, _ := v.List.Take(9)
		return fmt.Sprint(v.Name, v.Map, list, err)
	}
	var room strict.Room
	for _, first := range bodies {
		for _, second := range bodies {
			shape.DecodeIn(&room, []byte(first))
			if got, want := tell(shape.DecodeIn(&room, []byte(second))), tell(shape.Decode([]byte(second))); got != want {
				t.Errorf("%s after %s: %s, want %s", second, first, got, want)
			}
		}
	}
}

// batchOf is a body with so many elements.
func batchOf(n int) []byte {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,{"name":"%d","lnglat":[80.12345,13.12345],"time":"2026-03-14T09:00:00Z","speed":3.25,"battery":0.5}`, i)
	}
	return []byte(`{"list":[` + strings.TrimPrefix(b.String(), ",") + `],"last":{"name":"z"}}`)
}

type batch struct {
	List strict.Elements[inner] `json:"list"`
	Last inner                  `json:"last"`
}

// TestBatches: however many members a body has, each is found.
func TestBatches(t *testing.T) {
	shape := strict.ShapeOf[batch]()
	for n := range 300 {
		got, err := shape.Decode(batchOf(n))
		if err != nil || got.Last.Name != "z" {
			t.Fatalf("%d elements: %+v %v", n, got.Last, err)
		}
		list, more := got.List.Take(n)
		if len(list) != n || more {
			t.Fatalf("%d of %d elements, more %v", len(list), n, more)
		}
		for i, e := range list {
			if e.Err != nil || e.Value.Name != fmt.Sprint(i) {
				t.Fatalf("element %d of %d: %+v", i, n, e)
			}
		}
	}
}

func BenchmarkBatch(b *testing.B) {
	shape := strict.ShapeOf[batch]()
	for _, n := range []int{1, 10, 100, 1000} {
		body := batchOf(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got, err := shape.Decode(body); err != nil || !got.List.Given() {
					b.Fatal(err)
				}
			}
		})
	}
}
