package apidocs_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"html"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking/httpadapter/internal/apidocs"
)

// TestRender: the page has every call with its description, parameters and fields, each link on it
// leads somewhere, and it needs no script.
func TestRender(t *testing.T) {
	file, err := os.ReadFile("../../openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	page, policy, err := apidocs.Render(file)
	if err != nil {
		t.Fatal(err)
	}
	text := html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(string(page), ""))
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID, Summary, Description string
			Parameters                        []struct{ Name, Description string }
		}
		Components struct {
			Schemas map[string]struct {
				Description string
				Properties  map[string]struct{ Description string }
			}
			Responses map[string]struct{ Description string }
		}
	}
	if err := json.Unmarshal(file, &doc); err != nil {
		t.Fatal(err)
	}
	has := func(what string) {
		t.Helper()
		for part := range strings.SplitSeq(what, "`") { // which becomes <code>
			if !strings.Contains(text, part) {
				t.Errorf("the page does not say %q", part)
			}
		}
	}
	calls := 0
	for path, methods := range doc.Paths {
		for method, op := range methods {
			calls++
			has(strings.ToUpper(method) + " " + path + " ")
			has(op.Summary)
			has(op.Description)
			for _, p := range op.Parameters {
				has(p.Name)
				has(p.Description)
			}
			if !strings.Contains(string(page), `<article id="`+op.OperationID+`">`) {
				t.Errorf("%s has no place on the page", op.OperationID)
			}
		}
	}
	if calls < 50 {
		t.Errorf("%d calls are described, want 50 at least", calls)
	}
	for name, s := range doc.Components.Schemas {
		has(s.Description)
		for field, of := range s.Properties {
			has(field)
			has(of.Description)
		}
		if !strings.Contains(string(page), `id="type-`+name+`"`) {
			t.Errorf("%s has no place on the page", name)
		}
	}
	for name, r := range doc.Components.Responses {
		if name != "MethodNotAllowed" { // no call has it, as it is the answer to what is none
			has(r.Description)
		}
	}

	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(string(page), -1) {
		if ids[m[1]] {
			t.Errorf("the id %s is there twice", m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(` href="([^"]*)"`).FindAllStringSubmatch(string(page), -1) {
		if m[1] != "openapi.json" && !ids[strings.TrimPrefix(m[1], "#")] {
			t.Errorf("the link %s leads nowhere", m[1])
		}
	}

	sheet := regexp.MustCompile(`(?s)<style>(.*)</style>`).FindSubmatch(page)
	sum := sha256.Sum256(sheet[1])
	if !strings.Contains(policy, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") ||
		!strings.HasPrefix(policy, "default-src 'none'; ") || strings.Contains(string(page), "<script") ||
		strings.Contains(string(page), ` style="`) {
		t.Errorf("the policy %q does not fit the page", policy)
	}
}

// Descriptions are texts and no HTML.
func TestEscapes(t *testing.T) {
	page, _, err := apidocs.Render([]byte(`{"info":{"title":"<b>T</b>","description":"**<i>x</i>** ` + "`<u>`" + `"}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"<title>&lt;b&gt;T", "<strong>&lt;i&gt;x&lt;/i&gt;</strong>", "<code>&lt;u&gt;</code>",
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the page has no %s:\n%s", want, page)
		}
	}
}
