package declared_test

import (
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/storetest/declared"
)

// A list of all reasons fails as soon as the root package has one more.
func ExampleValues() {
	var t *testing.T // that of the test

	words := map[string]string{string(tracking.ReasonNotHome): "Nobody was home"}
	for _, code := range declared.Values(t, "../../..", "ReasonCode") {
		if words[code] == "" {
			t.Errorf("there are no words for %s", code)
		}
	}
}
