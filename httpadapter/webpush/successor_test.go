package webpush_test

import (
	"testing"

	"github.com/seed-8aba7b13/tracking/httpadapter/webpush"
)

// TestPushTellsWhoItWasFor: a notice that was for a driver who is gone is pushed to nobody, also
// when somebody else has his id; what is for that one is.
func TestPushTellsWhoItWasFor(t *testing.T) {
	w := newWorld(t, webpush.Options{})
	w.driver(w.Service, "d7", 1)
	w.assigned("d7")
	if err := w.ForceDeleteDriver(t.Context(), "d7"); err != nil {
		t.Fatal(err)
	}
	next := w.driver(w.Service, "d7", 1)[0]
	w.deliver()
	if got := next.messages(); len(got) != 0 {
		t.Errorf("the next one's browser was told: %v", got)
	}
	w.assigned("d7")
	w.deliver()
	if got := next.messages(); len(got) != 1 {
		t.Errorf("of his own task he was told %v", got)
	}
}
