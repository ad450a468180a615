package tracking_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReadme makes a program of the Go code in the README, compiles all of it, and runs what comes
// before it would serve.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllSubmatch(text, -1)
	if len(blocks) != 1 {
		t.Fatalf("the README has %d blocks of Go, want 1", len(blocks))
	}
	body := string(blocks[0][1])
	const serve = `log.Fatal(http.ListenAndServe(":8080", nil))`
	if strings.Count(body, serve) != 1 {
		t.Fatalf("the README does not end by serving:\n%s", body)
	}
	program := `package main

import (
	"context"
	"fmt"
	"log"
	"net/http"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

func main() {
	ctx := context.Background()
` + strings.Replace(body, serve, "_ = func() { "+serve+" }", 1) + "}\n"
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "run", file).CombinedOutput()
	if got := string(out); err != nil || got != "assigned asha\n" {
		t.Errorf("the README's program prints %q, error %v; want what its comment says", got, err)
	}
	if !strings.Contains(body, "// assigned asha\n") {
		t.Error("the README does not say what its program prints")
	}
}

// TestReadmeLinks: what the README links to is there.
func TestReadmeLinks(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`\]\(([^):]+)\)`).FindAllSubmatch(text, -1)
	if len(links) == 0 {
		t.Error("the README links to nothing")
	}
	for _, m := range links {
		if _, err := os.Stat(string(m[1])); err != nil {
			t.Errorf("the README links to %s: %v", m[1], err)
		}
	}
}
