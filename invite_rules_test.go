package tracking

import (
	"fmt"
	"testing"
	"time"
)

func TestCodeGuard(t *testing.T) {
	g := codeGuard{sources: map[string]*codeSource{}}
	now := t0
	looked := 0
	for range 24 * 60 * 60 { // one guess a second, for a day
		if g.look("a", now) == 0 {
			looked++
		}
		now = now.Add(time.Second)
	}
	if looked != 15 {
		t.Errorf("one source got %d codes looked at in a day, want 15", looked)
	}
	g = codeGuard{sources: map[string]*codeSource{}}
	looked = 0
	for i := range 5000 { // many sources within a minute
		if g.look(fmt.Sprint(i), t0.Add(time.Duration(i)*10*time.Millisecond)) == 0 {
			looked++
		}
	}
	if looked != 20 {
		t.Errorf("all sources together got %d looked at in a minute, want 20", looked)
	}
	g = codeGuard{sources: map[string]*codeSource{}}
	// wrong ones with the clock right, then it is put back: they count for a minute, and a source's
	// wait for as long as it had been
	for i := range 20 {
		g.look(fmt.Sprint(i/5), t0)
	}
	back := t0.Add(-6 * time.Hour)
	for _, c := range []struct {
		source string
		at     time.Time
		want   time.Duration
	}{
		{"other", back, time.Minute}, {"0", back, 15 * time.Minute}, {"other", back.Add(time.Minute), 0},
		{"0", back.Add(15*time.Minute - 1), 1}, {"0", back.Add(15 * time.Minute), 0},
	} {
		if wait := g.look(c.source, c.at); wait != c.want {
			t.Errorf("source %s at %v has to wait %v, want %v", c.source, c.at, wait, c.want)
		}
	}
	g = codeGuard{sources: map[string]*codeSource{}}
	for i := range 100 { // right ones cost nothing
		at := t0.Add(time.Duration(i) * time.Millisecond)
		if wait := g.look("a", at); wait != 0 {
			t.Fatalf("the %d. right code has to wait %v", i, wait)
		}
		g.forgive("a", at)
	}
}
