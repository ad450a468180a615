package tracking_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking"
)

// rows are what a program holds of the service, and may print or encode by accident.
var rows = []any{
	tracking.Task{}, tracking.Trip{}, tracking.TripDetail{}, tracking.Request{}, tracking.Driver{},
	tracking.PushSubscription{}, tracking.Invite{}, tracking.Key{}, tracking.Link{}, tracking.Proof{}, tracking.Event{},
	tracking.TaskFilter{}, tracking.Notice{}, tracking.Notification{}, tracking.Fix{}, tracking.KeptFix{},
	tracking.NewTask{},
	tracking.Completion{}, tracking.Recorded{}, tracking.FixBatch{}, tracking.Changeset{}, tracking.Candidate{},
	tracking.Route{}, tracking.Leased{}, tracking.LiveEvent{}, tracking.TaskResult{}, tracking.Joined{},
	tracking.StoreSecret{}, tracking.Memo{}, tracking.DriverRow{},
}

// hidden are the fields that give somebody access, by their names in whatever struct.
var hidden = map[string]bool{
	"PIN": true, "Endpoint": true, "Auth": true, "Hash": true, "LinkHash": true, "CodeHash": true, "PastCodes": true,
	"NonceHash": true, "AppToken": true, "IngestToken": true, "KeySum": true, "Sum": true,
}

// told are those whose purpose is to take a secret or to hand it out: joining and inviting, and what a
// link shows to whom it belongs.
var told = map[string]bool{
	"Tracking.PIN": true, "Invitation.Token": true, "JoinRequest.Token": true, "Joined.Token": true,
	"Joined.IngestToken": true,
}

const canary = "cafe5ecret0123456789"

// plant fills everything in v that can be filled, secrets with the canary.
func plant(v reflect.Value, depth int) {
	if depth > 8 || !v.CanSet() {
		return
	}
	switch v.Interface().(type) {
	case tracking.Secret:
		v.SetString(canary)
		return
	case tracking.Hash:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(0xA0 + i))
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		plant(v.Elem(), depth+1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		plant(v.Index(0), depth+1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		plant(key, depth+1)
		plant(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		for i := range v.NumField() {
			plant(v.Field(i), depth+1)
		}
	}
}

// secrets are the ways in which the canary and a planted hash may be written.
func secrets() []string {
	var h tracking.Hash
	plant(reflect.ValueOf(&h).Elem(), 0)
	numbers := strings.Trim(fmt.Sprint([32]byte(h)), "[]")
	return []string{
		canary, fmt.Sprintf("%x", canary), numbers, strings.ReplaceAll(numbers, " ", ","), fmt.Sprintf("%x", h[:]),
		fmt.Sprintf("%X", h[:]), fmt.Sprintf("%#v", [32]byte(h))[8:40],
	}
}

// What embedders print, log or encode by accident does no harm.
func TestNothingSecretIsEncoded(t *testing.T) {
	for _, row := range rows {
		p := reflect.New(reflect.TypeOf(row))
		plant(p.Elem(), 0)
		v := p.Elem().Interface()
		var logged bytes.Buffer
		slog.New(slog.NewTextHandler(&logged, nil)).Info("a row", "row", v)
		slog.New(slog.NewJSONHandler(&logged, nil)).Info("a row", "row", v)
		asJSON, err := json.Marshal(v)
		if err != nil {
			t.Errorf("%T: %v", v, err)
		}
		asXML, _ := xml.Marshal(v) // what has a map cannot
		for how, text := range map[string]string{
			"%v": fmt.Sprint(v), "%+v": fmt.Sprintf("%+v", v), "%#v": fmt.Sprintf("%#v", v),
			"%s": fmt.Sprintf("%s", v), "%x": fmt.Sprintf("%x", v), "%+v of a pointer": fmt.Sprintf("%+v", p.Interface()),
			"JSON": string(asJSON), "XML": string(asXML), "slog": logged.String(),
		} {
			for _, secret := range secrets() {
				if strings.Contains(text, secret) {
					t.Errorf("%s of a %T tells %q: %s", how, v, secret, text)
				}
			}
		}
		again := reflect.New(reflect.TypeOf(row))
		if err := json.Unmarshal(asJSON, again.Interface()); err != nil {
			t.Errorf("%T does not come back from JSON: %v", v, err)
		}
	}
	got := fmt.Sprintf("%q %v|%s|%v|", tracking.Secret("1234"), tracking.Hash{1}, tracking.Secret(""), tracking.Hash{})
	if got != "[secret] [hash]|||" {
		t.Errorf("they are printed as %s", got)
	}
}

// Every exported struct of the package that holds a secret, in whatever it is made of, is encoded
// above.
func TestEveryRowIsEncoded(t *testing.T) {
	encoded, within := map[string]bool{"Options": true}, map[string][]string{} // Options is no row
	for _, row := range rows {
		encoded[reflect.TypeOf(row).Name()] = true
	}
	eachStruct(t, func(name string, fields []*ast.Field) {
		for _, f := range fields {
			if len(f.Names) > 0 && !f.Names[0].IsExported() {
				continue
			}
			ast.Inspect(f.Type, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					within[name] = append(within[name], id.Name)
				}
				return true
			})
		}
	})
	var holds func(name string, seen map[string]bool) bool
	holds = func(name string, seen map[string]bool) bool {
		if name == "Secret" || name == "Hash" {
			return true
		}
		if seen[name] {
			return false
		}
		seen[name] = true
		return slices.ContainsFunc(within[name], func(part string) bool { return holds(part, seen) })
	}
	for _, name := range slices.Sorted(maps.Keys(within)) {
		if holds(name, map[string]bool{}) && !encoded[name] {
			t.Errorf("a %s holds a secret: put it into rows", name)
		}
	}
}

// A field that gives somebody access has a type that hides it, in every struct of the package.
func TestSecretFieldsHide(t *testing.T) {
	encoded, seen := map[string]bool{}, map[string]bool{}
	for _, row := range rows {
		encoded[reflect.TypeOf(row).Name()] = true
	}
	eachStruct(t, func(name string, fields []*ast.Field) {
		for _, f := range fields {
			for _, field := range f.Names {
				full := name + "." + field.Name
				if !hidden[field.Name] && field.Name != "Token" || told[full] {
					continue
				}
				seen[field.Name] = true
				var text strings.Builder
				_ = ast.Fprint(&text, nil, f.Type, nil)
				if !strings.Contains(text.String(), `"Secret"`) && !strings.Contains(text.String(), `"Hash"`) {
					t.Errorf("%s is neither a Secret nor a Hash", full)
				}
				if !encoded[name] {
					t.Errorf("no %s is encoded by TestNothingSecretIsEncoded", name)
				}
			}
		}
	})
	for _, name := range slices.Sorted(maps.Keys(hidden)) {
		if !seen[name] {
			t.Errorf("no struct has a field %s any more", name)
		}
	}
}

// eachStruct calls f with each exported struct of the package's source.
func eachStruct(t *testing.T, f func(name string, fields []*ast.Field)) {
	t.Helper()
	for _, name := range []string{"tracking.go", "task.go", "trip.go", "driver.go", "invite.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			typ, ok := n.(*ast.TypeSpec)
			if !ok || !typ.Name.IsExported() {
				return true
			}
			if s, ok := typ.Type.(*ast.StructType); ok {
				f(typ.Name.Name, s.Fields.List)
			}
			return true
		})
	}
}
