package httpadapter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

// openapiDoc is what the test below looks at.
type openapiDoc struct {
	Paths map[string]map[string]struct {
		OperationID string
		Security    *[]map[string][]string
		Parameters  []struct{ Ref, Name, In string }
		Responses   map[string]json.RawMessage
	}
}

// The description has the routes of the table, no other ones, each for the same callers. The files
// of the web front ends are not part of it.
func TestOpenAPIRoutes(t *testing.T) {
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) {
		ho.Health = func(context.Context) error { return nil }
	})
	r := s.do("GET", "/v1/openapi.json", "")
	file, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if r.status != 200 || r.body != string(file) || r.header.Get("Content-Type") != "application/json; charset=utf-8" ||
		r.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("served: %d %v", r.status, r.header)
	}

	var doc openapiDoc
	if err := json.Unmarshal(bytes.ReplaceAll(file, []byte(`"$ref"`), []byte(`"ref"`)), &doc); err != nil {
		t.Fatal(err)
	}
	var described, served []string
	ids := map[string]string{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			route := strings.ToUpper(method) + " " + path
			who := "application" // as the document says for all
			if op.Security != nil {
				who = "public"
				for _, one := range *op.Security {
					if _, ok := one["driverToken"]; ok {
						who = "driver"
					}
				}
			}
			described = append(described, route+" "+who)
			if other, twice := ids[op.OperationID]; twice || op.OperationID == "" {
				t.Errorf("%s: the operationId %q is also that of %q", route, op.OperationID, other)
			}
			ids[op.OperationID] = route
			var named, inPath []string
			for _, p := range op.Parameters {
				if name, ok := pathParameters[p.Ref]; ok {
					named = append(named, name)
				}
			}
			for _, m := range regexp.MustCompile(`\{(\w+)\}`).FindAllStringSubmatch(path, -1) {
				inPath = append(inPath, m[1])
			}
			if d := cmp.Diff(inPath, named); d != "" {
				t.Errorf("%s: parameters of the path (-path +described)\n%s", route, d)
			}
			if _, ok := op.Responses["200"]; !ok {
				t.Errorf("%s: no 200", route)
			}
			if _, ok := op.Responses["401"]; !ok && who != "public" {
				t.Errorf("%s: 401 is not described", route)
			}
		}
	}
	for _, rt := range s.h.Routes() {
		served = append(served, rt.Method+" "+rt.Pattern+" "+rt.Who)
	}
	slices.Sort(described)
	slices.Sort(served)
	if d := cmp.Diff(served, described); d != "" {
		t.Errorf("routes (-served +described)\n%s", d)
	}
}

// pathParameters are those of the document's components that stand in a path.
var pathParameters = map[string]string{
	"#/components/parameters/TaskID":    "task_id",
	"#/components/parameters/TripID":    "trip_id",
	"#/components/parameters/Token":     "token",
	"#/components/parameters/ProofKind": "kind",
	"#/components/parameters/ProofID":   "id",
}

// The description names every code with its status, and no other code.
func TestOpenAPICodes(t *testing.T) {
	file, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas struct {
				Failure struct {
					Properties struct {
						Error struct {
							Properties struct {
								Code struct{ Enum []tracking.ErrorCode }
							}
						}
					}
				}
			}
		}
	}
	if err := json.Unmarshal(file, &doc); err != nil {
		t.Fatal(err)
	}
	described := map[int]string{}
	for _, code := range doc.Components.Schemas.Failure.Properties.Error.Properties.Code.Enum {
		status, ok := httpadapter.StatusOf(code)
		if !ok {
			t.Errorf("%s is described and is no code", code)
		}
		described[status] = string(code)
	}
	if d := cmp.Diff(codes, described); d != "" {
		t.Errorf("codes (-the tests' +described)\n%s", d)
	}
}
