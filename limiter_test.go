package tracking_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// limiting is a store that counts for all who share it.
type limiting struct {
	tracking.Store
	mu     sync.Mutex
	values map[string][]byte
	away   bool
}

func (s *limiting) Limit(_ context.Context, name string, _ time.Duration, count func([]byte) []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return tracking.ErrUnavailable
	}
	count(nil) // somebody else was faster
	if s.values[name] = count(s.values[name]); s.values[name] == nil {
		delete(s.values, name)
	}
	return nil
}

// two are two Services on one store.
func two(t *testing.T, store tracking.Store) (*world, []*tracking.Service) {
	t.Helper()
	w := newWorldOn(t, store)
	return w, []*tracking.Service{w.Service, must(tracking.New(store, &tracking.Options{Now: w.now}))(t)}
}

func TestWrongCodesCountForAllProcesses(t *testing.T) {
	for name, c := range map[string]struct {
		store tracking.Store
		looks int // at codes of one source, by two processes
		all   int // of all sources in a minute
	}{
		"each by itself":   {memory.New(), 10, 40},
		"all of them once": {&limiting{Store: memory.New(), values: map[string][]byte{}}, 5, 20},
	} {
		t.Run(name, func(t *testing.T) {
			w, services := two(t, c.store)
			guess := func(n int, source, digits string) tracking.ErrorCode {
				_, err := services[n%2].Join(w.ctx, tracking.JoinRequest{Code: digits, Source: source})
				return code(err)
			}
			looked := 0
			for n := range 20 {
				if guess(n, "one source", "000001") == tracking.ErrNotFound {
					looked++
				}
			}
			if looked != c.looks {
				t.Errorf("%d codes of one source were looked at, want %d", looked, c.looks)
			}
			w.advance(2 * time.Minute)
			looked = 0
			for n := range 100 {
				if guess(n, fmt.Sprint("source ", n/4), "000001") == tracking.ErrNotFound {
					looked++
				}
			}
			if looked != c.all {
				t.Errorf("%d codes of all sources were looked at within a minute, want %d", looked, c.all)
			}

			// A right one is none of them, and neither is what was not looked at.
			w.advance(2 * time.Minute)
			must(w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: "asha"}))(t)
			for n := range 30 {
				inv := must(w.InviteDriver(w.ctx, tracking.NewInvite{DriverID: "asha"}))(t)
				if got := guess(n, "source 24", fmt.Sprint(inv.Code)); got != "" {
					t.Fatalf("right code %d: %q", n, got)
				}
			}
			w.advance(20 * time.Minute)
			if got := guess(0, "one source", "000001"); got != tracking.ErrNotFound {
				t.Errorf("after its wait the source gets %q", got)
			}
		})
	}
}

func TestNotesCountForAllProcesses(t *testing.T) {
	store := &limiting{Store: memory.New(), values: map[string][]byte{}}
	w, services := two(t, store)
	task := w.create(false)
	link := must(w.TaskLink(w.ctx, task.ID))(t)
	note := func(n int) tracking.ErrorCode {
		return code(services[n%2].NoteFromCustomer(w.ctx, link, fmt.Sprint("note ", n)))
	}
	for n := range 10 {
		if got := note(n); got != "" {
			t.Fatalf("note %d: %q", n, got)
		}
		if err := services[n%2].NoteFromCustomer(w.ctx, link, fmt.Sprint("note ", n)); err != nil {
			t.Fatalf("the same note again: %v", err) // it changes nothing, and does not count
		}
	}
	if got := note(10); got != tracking.ErrRateLimited {
		t.Errorf("the 11th note: %q", got)
	}
	w.advance(24 * time.Hour)
	if got := note(11); got != "" {
		t.Errorf("a day later: %q", got)
	}

	// Where it cannot be counted nothing is done.
	store.away = true
	if got := note(12); got != tracking.ErrUnavailable {
		t.Errorf("while the store cannot count: %q", got)
	}
	_, err := services[0].Join(w.ctx, tracking.JoinRequest{Code: "000001", Source: "one"})
	if !errors.Is(err, tracking.ErrUnavailable) {
		t.Errorf("a code while the store cannot count: %v", err)
	}
}
