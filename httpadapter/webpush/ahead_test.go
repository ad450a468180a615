package webpush_test

import (
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking/httpadapter/webpush"
)

// A notice that a wrong clock has recorded ten years ahead is pushed as one of now, and no longer
// kept by the push service than that.
func TestRecordedAhead(t *testing.T) {
	w := newWorld(t, webpush.Options{TTL: time.Minute})
	phones := w.driver(w.Service, "d", 1)
	n := note(1, "d")
	n.Event.RecordedAt = time.Now().AddDate(10, 0, 0)
	if err := w.push.Notify(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	got := phones[0].messages()
	if len(got) != 1 || got[0].TTL != 60 {
		t.Errorf("got %+v, want one message with a TTL of 60 s", got)
	}
}
