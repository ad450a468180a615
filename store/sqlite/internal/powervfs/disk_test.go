package powervfs_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking/store/sqlite/internal/powervfs"
)

func write(file string, offset int64, text string) powervfs.Op {
	return powervfs.Op{Kind: powervfs.Write, File: file, Offset: offset, Data: []byte(text)}
}

// image is what is left when the power is cut after ops, on a disk that held a file "old".
func image(t *testing.T, s powervfs.Survival, seed uint64, ops ...powervfs.Op) map[string]string {
	t.Helper()
	base, dir := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(base, "old"), []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	disk, err := powervfs.LoadDisk(base)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range ops {
		disk.Step(op)
	}
	if err := disk.Image(dir, s, rand.New(rand.NewPCG(seed, 0))); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(b)
	}
	return files
}

// TestNothingSurvivesUnsynced looks at what a power cut leaves of each way to write a file.
func TestNothingSurvivesUnsynced(t *testing.T) {
	sync := func(file string) powervfs.Op { return powervfs.Op{Kind: powervfs.Sync, File: file} }
	for _, tt := range []struct {
		name string
		ops  []powervfs.Op
		want map[string]string
	}{
		{"nothing done", nil, map[string]string{"old": "before"}},
		{"a write", []powervfs.Op{write("old", 0, "after!")}, map[string]string{"old": "before"}},
		{"a synced write", []powervfs.Op{write("old", 3, "XYZ+"), sync("old")}, map[string]string{"old": "befXYZ+"}},
		{
			"a write after the sync", []powervfs.Op{write("old", 0, "X"), sync("old"), write("old", 1, "Y")},
			map[string]string{"old": "Xefore"},
		},
		{
			"a sync of another file", []powervfs.Op{write("old", 0, "X"), sync("new")},
			map[string]string{"old": "before", "new": ""},
		},
		{"a new file", []powervfs.Op{write("new", 0, "X")}, map[string]string{"old": "before"}},
		{
			"a new file, synced", []powervfs.Op{write("new", 2, "X"), sync("new")},
			map[string]string{"old": "before", "new": "\x00\x00X"},
		},
		{
			"a truncation", []powervfs.Op{{Kind: powervfs.Truncate, File: "old", Offset: 2}},
			map[string]string{"old": "before"},
		},
		{
			"a synced truncation", []powervfs.Op{{Kind: powervfs.Truncate, File: "old", Offset: 2}, sync("old")},
			map[string]string{"old": "be"},
		},
		{"a deletion", []powervfs.Op{{Kind: powervfs.Delete, File: "old"}}, map[string]string{"old": "before"}},
		{
			"a deletion with its directory", []powervfs.Op{{Kind: powervfs.Delete, File: "old", SyncDir: true}},
			map[string]string{},
		},
		{"shared memory", []powervfs.Op{write("x-shm", 0, "X"), sync("x-shm")}, map[string]string{"old": "before"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if d := cmp.Diff(tt.want, image(t, powervfs.None, 0, tt.ops...)); d != "" {
				t.Errorf("left (-want +got):\n%s", d)
			}
		})
	}
}

// TestSomeSurvives looks at what chance leaves of a write of several sectors: each is there or not,
// and garbage only where it may be torn.
func TestSomeSurvives(t *testing.T) {
	const sectors = 4
	fresh := string(bytes.Repeat([]byte("n"), 512))
	for _, s := range powervfs.Survivals() {
		kept, dropped, torn := 0, 0, 0
		for seed := range uint64(100) {
			was := string(bytes.Repeat([]byte("o"), sectors*512))
			left := image(t, s, seed, write("old", 0, was), powervfs.Op{Kind: powervfs.Sync, File: "old"},
				write("old", 0, string(bytes.Repeat([]byte("n"), sectors*512))))["old"]
			for i := range sectors {
				switch left[i*512 : (i+1)*512] {
				case fresh:
					kept++
				case was[:512]:
					dropped++
				default:
					torn++
				}
			}
		}
		if (kept > 0) != (s != powervfs.None) || dropped == 0 || (torn > 0) != (s == powervfs.Torn) {
			t.Errorf("survival %d: %d sectors kept, %d dropped, %d torn", s, kept, dropped, torn)
		}
	}
}
