package tracking_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	format "go/printer"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var updateAPI = flag.Bool("update", false, "record the exported API as that of the version")

// recordedAPI is the exported API of version 0.1.0, a line for each name, field and method.
const recordedAPI = "testdata/api-0.1.0.txt"

// TestAPI compares what the packages export with what was recorded for the version. What is missing
// breaks programs; what is new belongs into the record, so that it is kept from then on.
func TestAPI(t *testing.T) {
	const how = "if that is meant: go test -run TestAPI . -update"
	now := exportedAPI(t)
	if *updateAPI {
		if err := os.WriteFile(recordedAPI, []byte(strings.Join(now, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	content, err := os.ReadFile(recordedAPI)
	if err != nil {
		t.Fatal(err)
	}
	recorded := strings.Split(strings.TrimSpace(string(content)), "\n")
	for _, line := range recorded {
		if _, there := slices.BinarySearch(now, line); !there {
			t.Errorf("gone or changed: %s (%s)", line, how)
		}
	}
	for _, line := range now {
		if !slices.Contains(recorded, line) {
			t.Errorf("not recorded: %s (%s)", line, how)
		}
	}
}

// exportedAPI is what the packages of the module export, sorted: those that a program can import.
func exportedAPI(t *testing.T) (lines []string) {
	t.Helper()
	linux := build.Default
	linux.GOOS, linux.GOARCH, linux.CgoEnabled = "linux", "amd64", false
	err := filepath.WalkDir(".", func(dir string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); dir != "." && (err == nil || // a module of its own
			slices.Contains([]string{"internal", "testdata", "examples", "node_modules"}, entry.Name()) ||
			strings.HasPrefix(entry.Name(), ".")) {
			return fs.SkipDir
		}
		p, err := linux.ImportDir(dir, 0)
		if _, none := err.(*build.NoGoError); none || err == nil && p.Name == "main" {
			return nil
		}
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(files, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			if ast.FileExports(file) {
				lines = append(lines, declared(files, filepath.ToSlash(dir), file)...)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// declared are the lines of a file that has been trimmed to what it exports.
func declared(files *token.FileSet, dir string, file *ast.File) (lines []string) {
	text := func(n any) string {
		var b bytes.Buffer
		_ = format.Fprint(&b, files, n) // to a buffer
		return strings.Join(strings.Fields(b.String()), " ")
	}
	add := func(how string, args ...any) {
		lines = append(lines, "pkg "+dir+", "+fmt.Sprintf(how, args...))
	}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			d.Body = nil
			add("%s", text(d))
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					for i, name := range s.Names {
						line := d.Tok.String() + " " + name.Name
						if s.Type != nil {
							line += " " + text(s.Type)
						}
						if d.Tok == token.CONST && i < len(s.Values) {
							line += " = " + text(s.Values[i])
						}
						add("%s", line)
					}
				case *ast.TypeSpec:
					of, members := text(s.Type), (*ast.FieldList)(nil)
					switch typ := s.Type.(type) {
					case *ast.StructType:
						of, members = "struct", typ.Fields
					case *ast.InterfaceType:
						of, members = "interface", typ.Methods
					}
					if s.Assign.IsValid() {
						of = "= " + of
					}
					add("type %s %s", s.Name.Name, of)
					if members == nil {
						continue
					}
					for _, m := range members.List {
						m.Tag = nil
						if len(m.Names) == 0 {
							add("type %s %s, %s", s.Name.Name, of, text(m.Type))
						}
						for _, name := range m.Names {
							add("type %s %s, %s %s", s.Name.Name, of, name.Name, strings.TrimPrefix(text(m.Type), "func"))
						}
					}
				}
			}
		}
	}
	return lines
}

// Each package that a program can import says what it is, and teaches by an Example.
func TestEveryPackageTeaches(t *testing.T) {
	var dirs []string
	for _, line := range append(exportedAPI(t), "pkg store,") { // which has only its doc
		dir, _, _ := strings.Cut(strings.TrimPrefix(line, "pkg "), ",")
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range append(dirs, "httpadapter/otel") {
		p, err := build.ImportDir(dir, build.ImportComment)
		if err != nil {
			t.Fatal(err)
		}
		if p.Doc == "" {
			t.Errorf("%s has no doc", dir)
		}
		taught := false
		for _, name := range append(p.TestGoFiles, p.XTestGoFiles...) {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				taught = taught || ok && strings.HasPrefix(f.Name.Name, "Example")
			}
		}
		if !taught {
			t.Errorf("%s has no Example", dir)
		}
	}
}
