package httpadapter_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// schema is a JSON schema of openapi.json, as far as the tests look at it.
type schema struct {
	Ref                  string `json:"$ref"`
	Type, Pattern        string
	Format               string
	Nullable             bool
	Enum                 []any
	Properties           map[string]*schema
	Required             []string
	AdditionalProperties any
	Items                *schema
	AllOf, AnyOf, OneOf  []*schema
	MinItems, MaxItems   int
	Minimum, Maximum     float64
}

// parameter is one of a query or a path.
type parameter struct {
	Ref      string `json:"$ref"`
	Name, In string
	Required bool
	Schema   *schema
}

type content map[string]struct{ Schema *schema }

// operation is what can be called.
type operation struct {
	Parameters  []parameter
	RequestBody *struct {
		Required bool
		Content  content
	}
	Responses map[string]struct{ Content content }
}

// description is openapi.json.
type description struct {
	t          testing.TB
	Paths      map[string]map[string]operation
	Components struct {
		Schemas    map[string]*schema
		Parameters map[string]parameter
	}
}

func readDescription(t testing.TB) description {
	t.Helper()
	b, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	d := description{t: t}
	if err := json.Unmarshal(b, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// resolved follows references. Of several schemas that must all be met the first is looked at: the
// others are words beside it.
func (d description) resolved(s *schema) *schema {
	d.t.Helper()
	for {
		switch {
		case s == nil:
			d.t.Fatal("there is no such schema in openapi.json")
		case s.Ref != "":
			s = d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
		case len(s.AllOf) > 0:
			s = s.AllOf[0]
		default:
			return s
		}
	}
}

// at is the schema of a member within a component, such as "Event", "subject", "kind".
func (d description) at(component string, path ...string) *schema {
	d.t.Helper()
	s := d.resolved(d.Components.Schemas[component])
	for _, p := range path {
		s = d.resolved(s.Properties[p])
	}
	return s
}

// query are the parameters that an operation takes in the query, by name.
func (d description) query(op operation) map[string]parameter {
	found := map[string]parameter{}
	for _, p := range op.Parameters {
		if p.Ref != "" {
			p = d.Components.Parameters[strings.TrimPrefix(p.Ref, "#/components/parameters/")]
		}
		if p.In == "query" {
			found[p.Name] = p
		}
	}
	return found
}

// words are what an enum allows, sorted, without null.
func (s *schema) words() (list []string) {
	for _, v := range s.Enum {
		if v != nil {
			list = append(list, fmt.Sprint(v))
		}
	}
	slices.Sort(list)
	return list
}

// names are the members that an object may have, sorted.
func (s *schema) names() []string { return slices.Sorted(maps.Keys(s.Properties)) }
