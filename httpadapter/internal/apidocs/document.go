package apidocs

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// members are those of a JSON object, in the order of the file.
type members[T any] []member[T]

type member[T any] struct {
	name  string
	value T
}

// UnmarshalJSON reads an object.
func (m *members[T]) UnmarshalJSON(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return fmt.Errorf("no JSON object begins with %v: %w", open, err)
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return err
		}
		var v T
		if err := dec.Decode(&v); err != nil {
			return fmt.Errorf("%v: %w", name, err)
		}
		*m = append(*m, member[T]{name.(string), v})
	}
	return nil
}

// get is the member of a name, or the zero value.
func (m members[T]) get(name string) T {
	for _, one := range m {
		if one.name == name {
			return one.value
		}
	}
	var none T
	return none
}

// document is as much of OpenAPI 3.0 as the page shows.
type document struct {
	Info       struct{ Title, Description string }
	Tags       []struct{ Name, Description string }
	Paths      members[members[operation]]
	Components struct {
		Parameters members[parameter]
		Responses  members[response]
		Schemas    members[*schema]
	}
	Security []map[string][]string
}

type operation struct {
	Tags                              []string
	OperationID, Summary, Description string
	Parameters                        []parameter
	RequestBody                       struct {
		Required bool
		Content  members[media]
	}
	Responses members[response]
	Security  *[]map[string][]string
}

type parameter struct {
	Ref                   string `json:"$ref"`
	Name, In, Description string
	Required              bool
	Schema                *schema
}

type response struct {
	Ref         string `json:"$ref"`
	Description string
	Content     members[media]
}

type media struct {
	Schema  *schema
	Example json.RawMessage
}

type schema struct {
	Ref                                      string `json:"$ref"`
	Type, Format, Description                string
	Required                                 []string
	Properties                               members[*schema]
	Items                                    *schema
	AllOf, AnyOf, OneOf                      []*schema
	Enum                                     []any
	Default, Example                         json.RawMessage
	Minimum, Maximum                         *float64
	MinLength, MaxLength, MinItems, MaxItems *int
}
