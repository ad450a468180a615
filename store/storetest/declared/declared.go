// Package declared reads what a package's source declares and calls. Tests hold their lists to it,
// so that nobody can add a word, or an operation, and forget the places that have to know of it.
// It can be imported, as such lists are in several packages of this module, and whoever wraps the
// service or translates its words has some too. A folder is named as from that of the test.
package declared

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Constants are those of the named type that the package in a folder declares: their names, each
// with its value, a text without its quotes.
func Constants(t testing.TB, dir, typ string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, file := range parse(t, filepath.Join(dir, "*.go")) {
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, s := range g.Specs {
				spec := s.(*ast.ValueSpec)
				if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != typ {
					continue
				}
				for i, name := range spec.Names {
					found[name.Name] = value(t, name.Name, spec.Values[i])
				}
			}
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s declares no constant of type %s", dir, typ)
	}
	return found
}

func value(t testing.TB, name string, e ast.Expr) string {
	t.Helper()
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		t.Fatalf("the value of %s is not written out", name)
	}
	if lit.Kind != token.STRING {
		return lit.Value
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return s
}

// Values are the values of [Constants], sorted.
func Values(t testing.TB, dir, typ string) []string {
	t.Helper()
	var list []string
	for _, v := range Constants(t, dir, typ) {
		list = append(list, v)
	}
	slices.Sort(list)
	return list
}

// Selected are the names behind a point that follows a package or a variable, as X in tracking.X,
// svc.X and h.svc.X, within the methods of a type; "" for within all functions. The files are those
// that a pattern names.
func Selected(t testing.TB, pattern, receiver, of string) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, file := range parse(t, pattern) {
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || receiver != "" && receiverOf(f) != receiver {
				continue
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && lastOf(s.X) == of {
					found[s.Sel.Name] = true
				}
				return true
			})
		}
	}
	if len(found) == 0 {
		t.Fatalf("%s has nothing of %s, within the methods of %q", pattern, of, receiver)
	}
	return found
}

// receiverOf is the type that a method is of; "" for a function.
func receiverOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	return lastOf(f.Recv.List[0].Type)
}

// lastOf is the last name in x, *x and y.x; "" for anything else.
func lastOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return lastOf(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// parse reads the files that a pattern names, but for tests.
func parse(t testing.TB, pattern string) (list []*ast.File) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, file)
	}
	if len(list) == 0 {
		t.Fatalf("%s: %v", pattern, fs.ErrNotExist)
	}
	return list
}
