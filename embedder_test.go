package tracking_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Who embeds the library with a store in memory or in a file lists, compiles and checks nothing of
// PostgreSQL: a program outside looks the same before and after the library has a store for it.
func TestEmbedderWithoutPostgres(t *testing.T) {
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	before := withoutPostgres(t, root)
	was, is := outside(t, before, "memory", "sqlite"), outside(t, root, "memory", "sqlite")
	for what, text := range is {
		if what != "go.sum" && text != was[what] { // there it has what the library's tests need, too
			t.Errorf("%s\nbefore:\n%s\nafter:\n%s", what, was[what], text)
		}
		if strings.Contains(text, "jackc") {
			t.Errorf("%s lists something of pgx:\n%s", what, text)
		}
	}
	for what, text := range outside(t, root, "postgres") { // else the test cannot see it
		if !strings.Contains(text, "github.com/jackc/pgx/v5") {
			t.Errorf("%s of a program with PostgreSQL does not list pgx:\n%s", what, text)
		}
	}
}

// withoutPostgres is a copy of the library as it would be without package store/postgres.
func withoutPostgres(t *testing.T, root string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, from := range []string{".", "store/memory", "store/sqlite", "store/internal/*"} {
		for _, pattern := range []string{"*.go", "go.*", "*.sql", "*/*.sql"} {
			files, err := filepath.Glob(filepath.Join(root, from, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if name, err := filepath.Rel(root, file); err == nil && !strings.HasSuffix(name, "_test.go") {
					copyFile(t, file, filepath.Join(dir, name))
				}
			}
		}
	}
	goCommand(t, dir, "mod", "edit", "-droprequire=github.com/jackc/pgx/v5", "-droprequire=github.com/jackc/pgpassfile",
		"-droprequire=github.com/jackc/pgservicefile", "-droprequire=github.com/jackc/puddle/v2")
	return dir
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err == nil {
		err = os.WriteFile(to, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// outside is what a program of another module with some stores needs: its go.mod and go.sum, tidied,
// and the packages that are compiled.
func outside(t *testing.T, library string, stores ...string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	const name = "github.com/seed-8aba7b13/tracking"
	main := fmt.Sprintf("package main\n\nimport (\n\t_ %q\n", name)
	for _, store := range stores {
		main += fmt.Sprintf("\t_ %q\n", name+"/store/"+store)
	}
	for name, text := range map[string]string{
		"go.mod":  "module example.com/outside\n\ngo 1.26\n",
		"main.go": main + ")\n\nfunc main() {}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	goCommand(t, dir, "mod", "edit", "-require="+name+"@v0.0.0", "-replace="+name+"="+library)
	goCommand(t, dir, "mod", "tidy")
	found := map[string]string{"the packages": goCommand(t, dir, "list", "-deps", ".")}
	for _, file := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		found[file] = strings.ReplaceAll(string(text), library, "…")
	}
	return found
}

// goCommand runs the go command, and skips the test where modules are needed that cannot be had.
func goCommand(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(slices.Clone(os.Environ()), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.CombinedOutput()
	if err == nil {
		return string(out)
	}
	for _, sign := range []string{"module lookup disabled", "dial tcp", "no such host", "i/o timeout", "proxyconnect"} {
		if strings.Contains(string(out), sign) && os.Getenv("TRACKING_LONG") != "1" {
			t.Skipf("go %s needs modules that are not there, and there is no proxy: %s", args[0], out)
		}
	}
	t.Fatalf("go %s: %v: %s", strings.Join(args, " "), err, out)
	return ""
}
