package tracking_test

import (
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// TestOptionsNameTheFirstFault: of several bad options it is always the same one that is named, the
// first.
func TestOptionsNameTheFirstFault(t *testing.T) {
	o := tracking.Options{
		MaxFixAge: -1, ReopenFor: -1, UndoFor: time.Microsecond, TripTTL: -1, LinkTTL: time.Microsecond,
		InviteTTL: -1, CodeTTL: time.Nanosecond,
		NotifyTimeout: -1,
		Secret:        []byte("short"), MaxAssignDistance: -1,
	}
	for _, c := range []struct {
		name string
		mend func()
	}{
		{"MaxFixAge", func() { o.MaxFixAge = 0 }},
		{"ReopenFor", func() { o.ReopenFor = 0 }},
		{"UndoFor", func() { o.UndoFor = 0 }},
		{"TripTTL", func() { o.TripTTL = 0 }},
		{"LinkTTL", func() { o.LinkTTL = 0 }},
		{"InviteTTL", func() { o.InviteTTL = 0 }},
		{"CodeTTL", func() { o.CodeTTL = 0 }},
		{"NotifyTimeout", func() { o.NotifyTimeout = 0 }},
		{"Secret", func() { o.Secret = nil }},
		{"MaxAssignDistance", func() { o.MaxAssignDistance = 0 }},
	} {
		for range 20 {
			if _, err := tracking.New(memory.New(), &o); err == nil ||
				!strings.Contains(err.Error(), "Options."+c.name+" ") {
				t.Fatalf("%v, want one of Options.%s", err, c.name)
			}
		}
		c.mend()
	}
	if _, err := tracking.New(memory.New(), &o); err != nil {
		t.Error(err)
	}
}
