package rows_test

import (
	"crypto/sha256"
	"encoding/hex"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

func TestTerms(t *testing.T) {
	task := tracking.Task{
		OrderID: "A-12",
		Drop:    &tracking.Place{Address: "Öl", Customer: &tracking.Contact{Mobile: "+49 123"}},
	}
	want := []string{"n123", "n9123", "w1", "w12", "wa", "wo", "wol"}
	if diff := cmp.Diff(want, rows.Terms(&task, 4)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	got, asks := rows.Wanted(tracking.TaskFilter{Query: "Öl 12345"}, 4)
	if diff := cmp.Diff([][]string{{"wol", "w1234"}}, got); diff != "" || !asks {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, asks := rows.Wanted(tracking.TaskFilter{Query: "?"}, 4); got != nil || !asks {
		t.Errorf("nothing that counts: %v, %v", got, asks)
	}
}

// Codes are those of the terms, also where these are cut; of what a filter asks for they are the same.
func TestCodes(t *testing.T) {
	compareCodes(t, tracking.Task{
		OrderID: "INV/2024/0017-12345678901",
		Drop: &tracking.Place{
			Address:  "Ölmühlenstraße 7, கோயம்புத்தூர்",
			Customer: &tracking.Contact{Name: "Zoë Null", Mobile: "+49 (89) 123-4567"},
		},
		Properties: map[string]string{"zone": "1", "": "x"},
	})
	// Texts of ASCII alone, and some with another letter.
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string {
		letters := []rune("aZz@[`{/:09 -\x7f\x01")
		text := make([]rune, r.IntN(30))
		for i := range text {
			text[i] = letters[r.IntN(len(letters))]
			if r.IntN(2) == 0 {
				text[i] = '0' + rune(r.IntN(10))
			}
			if r.IntN(200) == 0 {
				text[i] = 'Ö'
			}
		}
		return string(text)
	}
	for range 2000 {
		task := tracking.Task{OrderID: text()}
		for _, p := range []**tracking.Place{&task.Pickup, &task.Drop} {
			if r.IntN(2) == 0 {
				*p = &tracking.Place{Address: text()}
				if r.IntN(2) == 0 {
					(*p).Customer = &tracking.Contact{Name: text(), Mobile: text()}
				}
			}
		}
		compareCodes(t, task)
	}
}

func compareCodes(t *testing.T, task tracking.Task) {
	t.Helper()
	var want []uint64
	for _, term := range rows.Terms(&task, 8) {
		lists := rows.WantedCodes(tracking.TaskFilter{Query: term[1:]}) // the tail's comes last
		switch term[0] {
		case 'w':
			want = append(want, lists[0][0])
		case 'n':
			want = append(want, lists[len(lists)-1][0])
		}
	}
	for k, v := range task.Properties {
		want = append(want, rows.WantedCodes(tracking.TaskFilter{Properties: map[string]string{k: v}})[0][0])
	}
	slices.Sort(want)
	got := rows.Codes([]uint64{0}, &task)[1:] // behind what is there
	slices.Sort(got)
	if want, got := slices.Compact(want), slices.Compact(got); !slices.Equal(want, got) {
		diff := cmp.Diff(want, got)
		t.Errorf("%+v %+v %+v (-want +got):\n%s", task, task.Pickup, task.Drop, diff)
	}
}

// A text of ASCII alone, which is read another way, has the terms that it has beside other letters.
func TestTermsOfASCII(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		text := make([]byte, r.IntN(40))
		for i := range text {
			text[i] = byte(1 + r.IntN(0x7f))
			if r.IntN(2) == 0 {
				text[i] = '0' + byte(r.IntN(10))
			}
		}
		// Contacts are of texts that may end anyhow; the id of an order has a tail if it ends with a digit.
		terms := func(beside string) []string {
			c := &tracking.Contact{Name: string(text) + beside, Mobile: string(text) + beside}
			return rows.Terms(&tracking.Task{Drop: &tracking.Place{Address: string(text) + beside, Customer: c}}, 100)
		}
		want := slices.DeleteFunc(terms(" \u0436"), func(term string) bool { return term == "w\u0436" })
		if diff := cmp.Diff(want, terms("")); diff != "" {
			t.Fatalf("of %q (-beside +alone):\n%s", text, diff)
		}
	}
}

// TestTermsStay holds what files keep: SQLite's index forgets what it is told again as it was. Whoever
// changes how texts are folded or cut has to build it anew in a migration.
func TestTermsStay(t *testing.T) {
	var letters strings.Builder
	for r := rune(' '); r < 0x2100; r++ {
		letters.WriteRune(r)
		letters.WriteString(" ")
	}
	task := tracking.Task{
		OrderID: "INV/2024/0017",
		Pickup: &tracking.Place{
			Address: letters.String(), Customer: &tracking.Contact{Name: "Ævar Groß", Mobile: "+49 (89) 123-4567"},
		},
		Properties: map[string]string{"zone": "1", "": "x"},
	}
	sum := sha256.Sum256([]byte(strings.Join(rows.Terms(&task, 100), " ")))
	if got := hex.EncodeToString(sum[:8]); got != "abf805201d7681a7" {
		t.Errorf("the terms have the sum %s, it was abf805201d7681a7", got)
	}
}
