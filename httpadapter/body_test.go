package httpadapter_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
)

// refusedByService are the members that a body needs and the Service, not the adapter, refuses it
// without.
var refusedByService = map[string]bool{
	"POST /v1/task/create type":            true,
	"POST /v1/task/batch tasks[].type":     true, // that makes this one fail, and not the call
	"POST /v1/users/driver driver_id":      true,
	"POST /v1/driver/trips tracking_id":    true,
	"POST /v1/driver/fixes fixes[].lnglat": true, // that makes this fix invalid, and not the call
	"POST /v1/driver/fixes fixes[].time":   true,
}

// The description has for each route the body that its handler is given: each field of the type,
// with its type, and nothing else.
func TestBodiesAreDescribed(t *testing.T) {
	d := readDescription(t)
	unused := map[string]bool{}
	for name := range refusedByService {
		unused[name] = true
	}
	for _, b := range newServer(t).h.Bodies() {
		route := b.Method + " " + b.Pattern
		op, ok := d.Paths[b.Pattern][strings.ToLower(b.Method)]
		if !ok {
			t.Errorf("%s is not described", route)
			continue
		}
		if described := op.RequestBody != nil; described != b.Taken {
			t.Errorf("%s: takes a body: %v, described: %v", route, b.Taken, described)
			continue
		}
		if !b.Taken {
			continue
		}
		if b.Picture {
			for _, typ := range []string{"image/*", "application/octet-stream"} {
				s, ok := op.RequestBody.Content[typ]
				if !ok || len(op.RequestBody.Content) != 2 || !op.RequestBody.Required || s.Schema.Type != "string" ||
					s.Schema.Format != "binary" {
					t.Errorf("%s takes a picture, and is not described so as %s", route, typ)
				}
			}
			continue
		}
		if op.RequestBody.Required == b.Optional {
			t.Errorf("%s: the body may be left out: %v, described as required: %v", route, b.Optional,
				op.RequestBody.Required)
		}
		types := []string{"application/json"}
		if b.Texts {
			types = []string{"application/json", "application/x-www-form-urlencoded", "multipart/form-data"}
		}
		if len(op.RequestBody.Content) != len(types) {
			t.Errorf("%s: %d types are described, want %q", route, len(op.RequestBody.Content), types)
		}
		for _, typ := range types {
			c := bodyCheck{d, b.Texts, typ == "application/json", unused}
			c.object(t, route+" ", d.resolved(op.RequestBody.Content[typ].Schema), b.Fields)
		}
		if b.Texts {
			inQuery := d.query(op)
			for _, f := range b.Fields {
				p, ok := inQuery[f.Name]
				if !ok || p.Required || p.Schema.Type != "string" {
					t.Errorf("%s: the parameter %s of the query is described as %+v", route, f.Name, p)
				}
				delete(inQuery, f.Name)
			}
			for name := range inQuery {
				t.Errorf("%s: the parameter %s is described and not read", route, name)
			}
		}
	}
	for name := range unused {
		t.Errorf("%s is in the list of what the Service refuses, and there is no such member", name)
	}
}

// bodyCheck compares one body's fields with its schema.
type bodyCheck struct {
	d      description
	texts  bool // what is required may be in the query instead
	json   bool
	unused map[string]bool
}

func (c bodyCheck) object(t *testing.T, at string, s *schema, fields []strict.Field) {
	t.Helper()
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
		member, ok := s.Properties[f.Name]
		if !ok {
			continue // told below
		}
		c.member(t, at+f.Name, c.d.resolved(member), f)
		required := slices.Contains(s.Required, f.Name)
		switch {
		case c.texts:
			if required {
				t.Errorf("%s is described as required in the body, and may be in the query", at+f.Name)
			}
		case required && !f.Required && !refusedByService[at+f.Name]:
			t.Errorf("%s is described as required, and may be absent", at+f.Name)
		case !required && f.Required:
			t.Errorf("%s is required, and not described so", at+f.Name)
		}
		if refusedByService[at+f.Name] {
			delete(c.unused, at+f.Name)
			continue
		}
		nullable, may := c.d.resolved(member).Nullable || member.Nullable, c.json && (c.texts || !f.Required)
		if nullable != may {
			t.Errorf("%s may be null: %v, described: %v", at+f.Name, may, nullable)
		}
	}
	slices.Sort(names)
	if d := cmp.Diff(names, s.names()); d != "" {
		t.Errorf("%s(-read +described)\n%s", at, d)
	}
}

func (c bodyCheck) member(t *testing.T, at string, s *schema, f strict.Field) {
	t.Helper()
	if got, want := c.kind(s), c.kindOf(f); got != want {
		t.Errorf("%s is %s, described as %s", at, want, got)
		return
	}
	words, described := slices.Sorted(slices.Values(f.Words)), s
	if f.Type.Kind() == reflect.Slice {
		described = c.d.resolved(s.Items)
	}
	if described.Type == "string" && !cmp.Equal(words, described.words()) {
		t.Errorf("%s takes the words %q, described: %q", at, words, described.words())
	}
	switch {
	case f.Fields != nil && s.Type == "array":
		c.object(t, at+"[].", c.d.resolved(s.Items), f.Fields)
	case f.Fields != nil:
		c.object(t, at+".", s, f.Fields)
	}
}

// kindOf is what a field reads, in the words of kind.
func (c bodyCheck) kindOf(f strict.Field) string {
	switch {
	case f.Type == reflect.TypeFor[time.Time](), f.Type == reflect.TypeFor[strict.TimeOrNone]():
		return "time"
	case f.Type == reflect.TypeFor[tracking.LngLat]():
		return "point"
	case f.Type == reflect.TypeFor[map[string]string]():
		return "map of text"
	case f.Form == "digits":
		return "integer or text"
	case f.Form == "place" && c.json:
		return "text or point"
	case f.Type.Kind() == reflect.String:
		return "text"
	case f.Type.Kind() == reflect.Slice:
		return "array of text"
	case f.Type.Kind() == reflect.Struct && strings.HasPrefix(f.Type.Name(), "Elements["):
		return "array of object"
	case f.Type.Kind() == reflect.Struct:
		return "object"
	}
	numbers := map[reflect.Kind]string{reflect.Int: "integer", reflect.Bool: "boolean", reflect.Float64: "number"}
	return numbers[f.Type.Kind()]
}

// kind is what a schema describes.
func (c bodyCheck) kind(s *schema) string {
	for _, list := range [][]*schema{s.AnyOf, s.OneOf} {
		var kinds []string
		for _, one := range list {
			kinds = append(kinds, c.kind(c.d.resolved(one)))
		}
		if kinds != nil {
			slices.Sort(kinds)
			if kinds[0] == "point" {
				slices.Reverse(kinds)
			}
			return strings.Join(kinds, " or ")
		}
	}
	switch {
	case s.Type == "string" && strings.Contains(s.Pattern, "T[0-9]"):
		return "time"
	case s.Type == "string":
		return "text"
	case s.Type == "array" && s.Items != nil && s.Items.Type == "number" && s.MinItems == 2 && s.MaxItems == 2:
		return "point"
	case s.Type == "array":
		return "array of " + c.kind(c.d.resolved(s.Items))
	case s.Type == "object" && s.Properties == nil:
		if m, ok := s.AdditionalProperties.(map[string]any); ok && m["type"] == "string" {
			return "map of text"
		}
	}
	return s.Type
}

// What a query can be narrowed by is described as it is read.
func TestQueryWordsAreDescribed(t *testing.T) {
	d := readDescription(t)
	var lists int
	for path, methods := range d.Paths {
		for method, op := range methods {
			for name, p := range d.query(op) {
				switch {
				case name == "limit":
					lists++
					if p.Schema.Minimum != 1 || p.Schema.Maximum != httpadapter.MaxList {
						t.Errorf("%s %s: limit is described as %v to %v", method, path, p.Schema.Minimum,
							p.Schema.Maximum)
					}
				case name == "status" && p.Schema.Type == "array":
					if got := p.Schema.Items.words(); !cmp.Equal(got,
						slices.Sorted(slices.Values(httpadapter.TaskStatuses()))) {
						t.Errorf("%s %s: status is described as %q", method, path, got)
					}
				case name == "status":
					var want []string
					for i := range httpadapter.TripStatuses() {
						want = append(want, fmt.Sprint(i))
					}
					if got := p.Schema.words(); !cmp.Equal(got, want) {
						t.Errorf("%s %s: status is described as %q", method, path, got)
					}
				}
			}
		}
	}
	if lists == 0 {
		t.Error("no list is described")
	}
}
