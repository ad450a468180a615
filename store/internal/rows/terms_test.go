package rows_test

import (
	"crypto/sha256"
	"encoding/hex"
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
