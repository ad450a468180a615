package tracking

import (
	"crypto/rand"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestEventData: each type of event has its struct, every field of it has a name of its own in
// Event.Data, and what is put in is read again.
func TestEventData(t *testing.T) {
	types := constantsOf(t, "tracking.go", "EventType")
	if len(types) != len(dataTypes) {
		t.Errorf("%d types of events, %d structs of data", len(types), len(dataTypes))
	}
	for name, typ := range dataTypes {
		full := reflect.New(typ.Type).Elem()
		keys := map[string]bool{}
		for i := range typ.NumField() {
			key := typ.Field(i).Tag.Get("data")
			if key == "" || keys[key] {
				t.Errorf("%v.%s: the name %q is none, or twice there", typ, typ.Field(i).Name, key)
			}
			keys[key] = true
			switch f := full.Field(i); f.Kind() {
			case reflect.String:
				f.SetString("x" + key)
			case reflect.Bool:
				f.SetBool(true)
			case reflect.Slice:
				f.Set(reflect.ValueOf([]string{"a", "b"}))
			case reflect.Struct:
				f.Set(reflect.ValueOf(time.Date(2026, 3, 1, 12, 0, 0, 5e6, time.UTC)))
			default:
				t.Errorf("%v.%s: nothing reads a %v", typ, typ.Field(i).Name, f.Kind())
			}
		}
		for _, d := range []EventData{full.Interface().(EventData), reflect.Zero(typ.Type).Interface().(EventData)} {
			e := Event{Type: d.eventType(), Data: words(d, nil)}
			if e.Type != name {
				t.Errorf("%v is of %s, and stands under %s", typ, e.Type, name)
			}
			if diff := cmp.Diff(d, e.Details()); diff != "" {
				t.Errorf("%s, put in and read again (-want +got):\n%s", name, diff)
			}
		}
		if n := len(words(full.Interface().(EventData), nil)); n != typ.NumField() {
			t.Errorf("%s: %d fields, %d words", name, typ.NumField(), n)
		}
	}
	if got := (Event{Type: "of tomorrow", Data: map[string]string{"a": "b"}}).Details(); got != nil {
		t.Errorf("a type that is not known: %v", got)
	}
	want := map[string]string{"driver_id": "d", "auto": "true"}
	if diff := cmp.Diff(want, words(TaskAssignedData{DriverID: "d", Auto: true}, nil)); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"fields": "drop,notes"},
		words(TaskUpdatedData{[]string{"drop", "notes"}}, nil)); diff != "" {
		t.Errorf("words (-want +got):\n%s", diff)
	}
	if words(TaskCreatedData{}, map[string]string{}) != nil {
		t.Error("nothing to say is not nil")
	}
}

// TestEventsInRoomUsedAgain: what the events of a change were goes into no other's, though these have their
// room.
func TestEventsInRoomUsedAgain(t *testing.T) {
	c := &change{Service: &Service{core: &core{ids: idSource{rand: rand.Reader}}}}
	put := func() *Event {
		c.event(Subject{KindTask, "t"}, "", c.now, TaskAssignedData{DriverID: "d", Auto: true})
		c.tell(Notice{DriverID: "d", Kind: NoticeAssigned, TaskID: "t"})
		return &c.cs.Events[len(c.cs.Events)-1]
	}
	first := put()
	words, told := first.Data, &first.Notices[0]
	c.cs = c.cs.room()
	if len(words) > 0 || *told != (Notice{}) {
		t.Errorf("afterwards the room holds %v and %+v", words, *told)
	}
	c.event(Subject{KindTask, "u"}, "", c.now, TaskCreatedData{})
	if e := c.cs.Events[0]; e.Data != nil || len(e.Notices) > 0 {
		t.Errorf("without words and notices: %+v", e)
	}
	c.cs = c.cs.room()
	if e := put(); !maps.Equal(e.Data, map[string]string{"driver_id": "d", "auto": "true"}) || len(e.Notices) != 1 {
		t.Errorf("with both: %+v", e)
	}
}

// constantsOf names the constants of a type in a file.
func constantsOf(t *testing.T, file, typ string) (names []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			if id, ok := v.Type.(*ast.Ident); ok && id.Name == typ {
				for _, n := range v.Names {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}
