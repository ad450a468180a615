// Package apidocs makes a page for people of an OpenAPI document.
package apidocs

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strings"
)

//go:embed page.html
var pageSource string

//go:embed page.css
var style string

var page = template.Must(template.New("page").Funcs(template.FuncMap{"prose": prose}).Parse(pageSource))

// Render returns the page, and the Content-Security-Policy that goes with it. The page needs no
// script and loads nothing; its address is beside that of the document.
func Render(openapi []byte) (html []byte, policy string, err error) {
	var doc document
	if err := json.Unmarshal(openapi, &doc); err != nil {
		return nil, "", fmt.Errorf("apidocs: %w", err)
	}
	var buf bytes.Buffer
	if err := page.Execute(&buf, doc.view()); err != nil {
		return nil, "", fmt.Errorf("apidocs: %w", err)
	}
	sum := sha256.Sum256([]byte(style))
	policy = "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return buf.Bytes(), policy, nil
}

// view is what the template is given.
type view struct {
	Style        template.CSS
	Title, Intro string
	Groups       []group
	Failures     []failure
	Schemas      []shape
}

type group struct {
	ID, Name, Description string
	Calls                 []call
}

type call struct {
	ID, Method, Path, Summary, Description string
	Who                                    string
	Params                                 []field
	Body                                   shape
	Answers                                []answer
	Failures                               []failure // those of its own words
	Usual                                  []string  // the status of the others, which stand in view.Failures
}

// shape is a type with its fields, each at its depth.
type shape struct {
	ID, Name, Description string
	Type                  phrase
	Fields                []field
	Example               string
}

type field struct {
	Name, Description string
	Depth             int
	Required          bool
	Type              phrase
	Limits            string
}

// phrase is a text in which the names of shapes are links.
type phrase []word

type word struct{ Text, Link string }

type answer struct {
	Status, Description, Media string
	Shape                      shape
}

type failure struct{ Status, Description string }

func (d *document) view() view {
	v := view{Style: template.CSS(style), Title: d.Info.Title, Intro: d.Info.Description}
	for _, tag := range d.Tags {
		g := group{ID: slug(tag.Name), Name: tag.Name, Description: tag.Description}
		for _, path := range d.Paths {
			for _, method := range path.value {
				if slices.Contains(method.value.Tags, tag.Name) {
					g.Calls = append(g.Calls, d.call(path.name, method.name, method.value))
				}
			}
		}
		v.Groups = append(v.Groups, g)
	}
	v.Failures = d.failures()
	for _, s := range d.Components.Schemas {
		of := d.shape(s.value, nil)
		of.ID, of.Name = "type-"+s.name, s.name
		v.Schemas = append(v.Schemas, of)
	}
	return v
}

// failures are those that calls have in common, by their status.
func (d *document) failures() []failure {
	var list []failure
	for _, path := range d.Paths {
		for _, method := range path.value {
			for _, r := range method.value.Responses {
				one := failure{r.name, d.Components.Responses.get(last(r.value.Ref)).Description}
				if r.name >= "400" && r.value.Ref != "" && !slices.Contains(list, one) {
					list = append(list, one)
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b failure) int { return strings.Compare(a.Status, b.Status) })
	return list
}

func (d *document) call(path, method string, op operation) call {
	c := call{
		ID: op.OperationID, Method: strings.ToUpper(method), Path: path,
		Summary: op.Summary, Description: op.Description, Who: d.who(op),
	}
	for _, p := range op.Parameters {
		if p.Ref != "" {
			p = d.Components.Parameters.get(last(p.Ref))
		}
		f := field{Name: p.Name, Description: p.Description, Required: p.Required, Type: d.phrase(p.Schema)}
		f.Limits = limits(p.Schema)
		if p.In != "query" {
			f.Limits = join("in the "+p.In, f.Limits)
		}
		c.Params = append(c.Params, f)
	}
	for _, m := range op.RequestBody.Content {
		if c.Body.Type == nil && c.Body.Fields == nil {
			c.Body = d.shape(m.value.Schema, m.value.Example)
		}
		if m.name != "application/json" {
			c.Body.Description = join(c.Body.Description, m.name)
		}
	}
	for _, r := range op.Responses {
		status, of := r.name, r.value
		if status >= "400" {
			if of.Ref != "" {
				c.Usual = append(c.Usual, status)
			} else {
				c.Failures = append(c.Failures, failure{status, of.Description})
			}
			continue
		}
		if of.Ref != "" {
			of = d.Components.Responses.get(last(of.Ref))
		}
		a := answer{Status: status, Description: of.Description}
		for _, m := range of.Content {
			a.Media = join(a.Media, m.name)
			if m.name == "application/json" {
				a.Media, a.Shape = "", d.shape(enveloped(m.value.Schema), m.value.Example)
			} else if text := ""; json.Unmarshal(m.value.Example, &text) == nil {
				a.Shape.Example = text
			}
		}
		c.Answers = append(c.Answers, a)
	}
	return c
}

// enveloped is what an answer has as data. One that stands without the envelope is shown whole.
func enveloped(s *schema) *schema {
	if s != nil && s.Properties.get("success") != nil {
		return s.Properties.get("data")
	}
	return s
}

// who says in words who may call.
func (d *document) who(op operation) string {
	ways := d.Security
	if op.Security != nil {
		ways = *op.Security
	}
	for _, way := range ways {
		for name := range way {
			if name == "driverToken" {
				return "driver's token"
			}
			return "API key"
		}
	}
	return "open"
}

func (d *document) shape(s *schema, example json.RawMessage) shape {
	if s == nil {
		return shape{}
	}
	v := shape{Description: s.Description}
	if example == nil {
		example = s.Example
	}
	if example != nil {
		var b bytes.Buffer
		if json.Indent(&b, example, "", "  ") == nil {
			v.Example = flat.ReplaceAllStringFunc(b.String(), func(list string) string {
				return strings.Join(strings.Fields(list), " ")
			})
		}
	}
	d.fields(&v, s, 0)
	if v.Fields == nil {
		v.Type = d.phrase(s)
		v.Description = join(v.Description, limits(s))
	}
	return v
}

// flat are the short lists of an example that json.Indent has spread over lines.
var flat = regexp.MustCompile(`\[\s+-?[0-9.]+,\s+-?[0-9.]+\s+\]`)

// fields writes down what an object holds, with what the objects in it hold below them.
func (d *document) fields(v *shape, s *schema, depth int) {
	for _, p := range s.Properties {
		of := p.value
		v.Fields = append(v.Fields, field{
			Name: p.name, Description: of.Description, Depth: depth,
			Required: slices.Contains(s.Required, p.name), Type: d.phrase(of), Limits: limits(of),
		})
		if of.Items != nil && of.Items.Ref == "" {
			of = of.Items
		}
		d.fields(v, of, depth+1)
	}
}

// phrase says what values a schema takes.
func (d *document) phrase(s *schema) phrase {
	if s == nil {
		return nil
	}
	if s.Ref != "" {
		return phrase{{last(s.Ref), "#type-" + last(s.Ref)}}
	}
	var p phrase
	for _, one := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
		if p != nil {
			p = append(p, word{Text: " or "})
		}
		p = append(p, d.phrase(one)...)
	}
	if p != nil {
		return p
	}
	if s.Type == "array" {
		return append(phrase{{Text: "list of "}}, d.phrase(s.Items)...)
	}
	if s.Type == "" {
		return phrase{{Text: "anything"}}
	}
	return phrase{{Text: s.Type}}
}

// limits says in words what a value may be.
func limits(s *schema) string {
	if s == nil {
		return ""
	}
	var texts []string
	values := s.Enum
	if s.Items != nil && values == nil {
		values = s.Items.Enum
	}
	var words []string
	for _, v := range values {
		if v == "" {
			v = "empty"
		}
		if v != nil {
			words = append(words, fmt.Sprint(v))
		}
	}
	if words != nil {
		texts = append(texts, strings.Join(words, " | "))
	}
	span := func(from, to, unit string) {
		switch {
		case from != "" && to != "":
			texts = append(texts, from+" to "+to+unit)
		case from != "":
			texts = append(texts, "at least "+from+unit)
		case to != "":
			texts = append(texts, "at most "+to+unit)
		}
	}
	span(number(s.Minimum), number(s.Maximum), "")
	least := s.MinLength
	if least != nil && *least == 1 {
		least = nil // that texts are not empty goes without saying
	}
	span(number(least), number(s.MaxLength), " characters")
	span(number(s.MinItems), number(s.MaxItems), " of them")
	if s.Default != nil && string(s.Default) != "null" {
		texts = append(texts, "default "+strings.Trim(string(s.Default), `"`))
	}
	return strings.Join(texts, ", ")
}

func number[T int | float64](n *T) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

func last(ref string) string { return ref[strings.LastIndex(ref, "/")+1:] }

func slug(name string) string { return strings.ReplaceAll(strings.ToLower(name), " ", "-") }

// join puts texts that are not empty side by side.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}

var marks = regexp.MustCompile("\\*\\*([^*]+)\\*\\*|`([^`]+)`")

// prose makes HTML of a description: paragraphs, **strong** words and `code`.
func prose(text string) template.HTML {
	var b strings.Builder
	for p := range strings.SplitSeq(text, "\n\n") {
		if p == "" {
			continue
		}
		safe := template.HTMLEscapeString(p)
		b.WriteString("<p>" + marks.ReplaceAllStringFunc(safe, func(m string) string {
			if inner, ok := strings.CutPrefix(m, "**"); ok {
				return "<strong>" + strings.TrimSuffix(inner, "**") + "</strong>"
			}
			return "<code>" + strings.Trim(m, "`") + "</code>"
		}) + "</p>\n")
	}
	return template.HTML(b.String())
}
