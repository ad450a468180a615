package strict_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
)

// dataDir is where the public test corpora are, which are not part of this repository.
func dataDir(t testing.TB) string {
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

// archive reads the regular files of a .tar.gz, by name.
func archive(t testing.TB, name string) map[string][]byte {
	t.Helper()
	f, err := os.Open(filepath.Join(dataDir(t), name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
}

// read parses a body and reads one text of it.
func read(body []byte) error {
	o, err := strict.ParseObject(body)
	if err != nil {
		return err
	}
	o.Text("known")
	return o.Err()
}

func TestJSONTestSuite(t *testing.T) {
	files := archive(t, "JSONTestSuite-parsing.tgz")
	var bodies, values int
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := files[name]
		base := path.Base(name)
		if len(base) < 2 || base[1] != '_' || path.Ext(base) != ".json" {
			continue
		}
		bodies++

		// As the body.
		err := read(file)
		object := strings.HasPrefix(strings.TrimLeft(string(file), " \t\r\n"), "{")
		twice := strings.Contains(base, "duplicated_key") // the grammar allows it, we do not
		switch {
		case base[0] == 'n' && err == nil:
			t.Errorf("%s: accepted as a body", base)
		case base[0] == 'y' && object && !twice && err != nil:
			t.Errorf("%s: refused as a body: %v", base, err)
		case base[0] == 'y' && (!object || twice) && err == nil:
			t.Errorf("%s: accepted as a body", base)
		}

		// As the value of an unknown field and of a known one.
		value := slices.Concat([]byte(`{"unknown":`), file, []byte(`,"known":"x"}`))
		err = read(value)
		switch {
		case base[0] == 'n' && err == nil:
			t.Errorf("%s: accepted as a value", base)
		case base[0] == 'y' && !twice && err != nil:
			t.Errorf("%s: refused as a value: %v", base, err)
		}
		value = slices.Concat([]byte(`{"known":`), file, []byte(`}`))
		err = read(value)
		var text string
		isText := json.Unmarshal(file, &text) == nil
		nul := strings.Contains(text, "\x00")
		switch {
		case base[0] == 'n' && err == nil:
			t.Errorf("%s: accepted as the value of a text", base)
		case base[0] == 'y' && isText && !nul && err != nil:
			t.Errorf("%s: refused as the value of a text: %v", base, err)
		case base[0] == 'y' && nul && err == nil:
			t.Errorf("%s: U+0000 accepted as the value of a text", base)
		}
		values++
	}
	if bodies != 318 {
		t.Errorf("the suite has %d files, want 318", bodies)
	}
}

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
		t.Errorf("the list has %d strings, want 515", len(list))
	}
	for _, s := range list {
		lit, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		o, err := strict.ParseObject(slices.Concat([]byte(`{"known":`), lit, []byte(`}`)))
		if err != nil {
			t.Errorf("%q: %v", s, err)
			continue
		}
		got, ok := o.Text("known")
		if strings.Contains(s, "\x00") {
			if ok {
				t.Errorf("%q: accepted", s)
			}
			continue
		}
		if got != s || !ok || o.Err() != nil {
			t.Errorf("got %q, %v, %v; want %q", got, ok, o.Err(), s)
		}
	}
}
