package httpadapter_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"html"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
)

// dataDir is where the public test corpora are, which are not part of this repository.
func dataDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TRACKING_DATA")
	if dir == "" {
		if os.Getenv("TRACKING_LONG") == "1" {
			t.Fatal("TRACKING_DATA is not set")
		}
		t.Skip("TRACKING_DATA is not set")
	}
	return dir
}

// TestJSONTestSuite sends each file as a body, and as the value of a field.
func TestJSONTestSuite(t *testing.T) {
	f, err := os.Open(filepath.Join(dataDir(t), "JSONTestSuite-parsing.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t)
	var files int
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name := path.Base(h.Name)
		if h.Typeflag != tar.TypeReg || len(name) < 2 || name[1] != '_' {
			continue
		}
		files++
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		refused := 400
		if len(b) > 64<<10 {
			refused = 413
		}
		if got := s.app("POST", "/v1/invite_user", string(b)); len(b) > 0 {
			object := strings.HasPrefix(strings.TrimLeft(string(b), " \t\r\n"), "{") &&
				!strings.Contains(name, "duplicated_key")
			switch {
			case name[0] == 'n', name[0] == 'y' && !object:
				s.check(name, got, refused, "")
			case name[0] == 'y':
				s.check(name, got, 200, "")
			}
		}
		value := s.app("POST", "/v1/task/create", `{"type":2,"drop":{"address":"x"},"unknown":`+string(b)+`}`)
		switch {
		case name[0] == 'n':
			s.check(name+" as a value", value, refused, "")
		case name[0] == 'y' && !strings.Contains(name, "duplicated_key"):
			s.check(name+" as a value", value, 200, "")
		}
	}
	if files != 318 {
		t.Errorf("%d files, want 318", files)
	}
}

// TestNaughtyStrings stores each string in every field that takes it, reads it back, and looks at
// the page.
func TestNaughtyStrings(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(dataDir(t), "blns", "blns.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 515 {
		t.Errorf("%d strings, want 515", len(list))
	}
	s := newServer(t)
	plain := strings.Count(s.do("GET", s.link(s.newTask("")), "").body, "<")
	for _, str := range list {
		line := len([]rune(str)) <= 200 && !strings.ContainsFunc(str, unicode.IsControl)
		order := ""
		if line {
			order = str
		}
		address := str
		if address == "" {
			address = "x"
		}
		contact := ""
		if len([]rune(str)) <= 32 {
			contact = str
		}
		body, err := json.Marshal(map[string]any{
			"type": 2, "notes": str, "order_id": order,
			"drop": map[string]any{"address": address, "customer": map[string]any{"name": contact, "mobile": contact}},
		})
		if err != nil {
			t.Fatal(err)
		}
		r := s.app("POST", "/v1/task/create", string(body))
		if r.status != 200 {
			t.Errorf("%q: %d %s", str, r.status, r.body)
			continue
		}
		id := text(s.data(r), "task", "task_id")
		got := s.data(s.app("GET", "/v1/task/list?limit=1", ""))
		for field, want := range map[string]string{"notes": str, "order_id": order} {
			if text(got, "task_list", 0, field) != want {
				t.Errorf("%s is %q, want %q", field, text(got, "task_list", 0, field), want)
			}
		}
		if text(got, "task_list", 0, "drop", "address") != address ||
			text(got, "task_list", 0, "drop", "customer", "name") != contact {
			t.Errorf("drop is %v, want %q", at(got, "task_list", 0, "drop"), str)
		}
		page := s.do("GET", s.link(id), "").body
		if order != "" && strings.TrimSpace(order) == order && !strings.Contains(html.UnescapeString(page), order) {
			t.Errorf("the page does not show %q", order)
		}
		if n := strings.Count(page, "<"); n != plain {
			t.Errorf("%q adds elements to the page: %d, want %d", str, n, plain)
		}
		if order != "" {
			found := s.data(s.app("GET", "/v1/task/list?order_id="+escape(order), ""))
			if text(found, "task_list", 0, "order_id") != order {
				t.Errorf("order_id %q is not found", order)
			}
		}
	}
}
