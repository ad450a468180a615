package main

import (
	"os"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	got := results{}
	read(got, "./a", strings.NewReader(`goos: linux
BenchmarkLook/ten_of_them-2   	  100000	     12345 ns/op	      56 B/op
BenchmarkLook/raw:_ten-2      	  200000	      5000 ns/op
BenchmarkRate/64-16 	       1	      1740 calls/s	         0.7004 of-raw	      2485 raw-calls/s
BenchmarkBare-2 	       1	      2649 µs-CPU	         1.984 ×CPU-of-bare
BenchmarkSize 	       1	  73 bytes/fix
PASS
`))
	for _, tt := range []struct {
		of   line
		want string
	}{
		{
			line{"look", "a raw look", side{"./a BenchmarkLook/ten_of_them", "ns/op"}, side{"./a BenchmarkLook/raw:_ten", "ns/op"}, "≤ 3"},
			"| look | 12.3 µs | a raw look | 5.00 µs | 2.47 | ≤ 3 |",
		},
		{
			line{"rate", "raw", side{"./a BenchmarkRate/64", "calls/s"}, side{"./a BenchmarkRate/64", "raw-calls/s"}, "≥ 0.6"},
			"| rate | 1740 /s | raw | 2485 /s | 0.70 | ≥ 0.6 |",
		},
		{line{"bare", "it", side{"./a BenchmarkBare", "×CPU-of-bare"}, side{}, "≤ 1"}, "| bare |  | it |  | 1.98 | ≤ 1 |"},
		{line{"size", "", side{"./a BenchmarkSize", "bytes/fix"}, side{}, ""}, "| size | 73.0 B |  |  |  |  |"},
	} {
		if text, err := tt.of.text(got); err != nil || text != tt.want {
			t.Errorf("got %s, error %v, want %s", text, err, tt.want)
		}
	}
	if _, err := (line{ours: side{"./a BenchmarkLook/ten_of_them", "fixes/s"}}).text(got); err == nil {
		t.Error("a number that nobody has reported is printed")
	}
}

// TestLines looks for each benchmark of the table where it is said to be.
func TestLines(t *testing.T) {
	for _, l := range lines {
		for _, s := range []side{l.ours, l.other} {
			if s == (side{}) {
				continue
			}
			top, _, _ := strings.Cut(s.name(), "/")
			dir := "../../../" + strings.TrimPrefix(s.pkg(), "./")
			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, f := range files {
				if strings.HasSuffix(f.Name(), "_test.go") {
					text, err := os.ReadFile(dir + "/" + f.Name())
					if err != nil {
						t.Fatal(err)
					}
					found = found || strings.Contains(string(text), "func "+top+"(b *testing.B)")
				}
			}
			if !found {
				t.Errorf("%s: there is no %s in %s", l.what, top, s.pkg())
			}
		}
	}
}
