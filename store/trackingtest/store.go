package trackingtest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed-8aba7b13/tracking"
)

// Store is a memory store whose commits fail when told to.
type Store struct {
	tracking.Store

	mu   sync.Mutex
	next []fault
}

type fault int

const (
	fails fault = iota // nothing is done
	lost               // it is done, and the answer is lost
)

// FailNextCommit has the next commit fail: nothing of it is done. Called twice, the next two do. The
// Service says [tracking.ErrUnavailable] then.
func (s *Store) FailNextCommit() { s.add(fails) }

// LoseNextAnswer has the next commit done, and says that it may be or not: the worst case of a store
// over a network. The Service says [tracking.ErrUnavailable]; whoever asks again finds it done.
func (s *Store) LoseNextAnswer() { s.add(lost) }

func (s *Store) add(f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = append(s.next, f)
}

func (s *Store) take() (f fault, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.next) == 0 {
		return 0, false
	}
	f, s.next = s.next[0], s.next[1:]
	return f, true
}

// Commit is that of the memory store, or fails.
func (s *Store) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	f, ok := s.take()
	if ok && f == fails {
		return tracking.Written{}, fmt.Errorf("trackingtest: a commit that was to fail: %w", tracking.ErrUnavailable)
	}
	w, err := s.Store.Commit(ctx, app, cs)
	if ok && err == nil {
		return tracking.Written{}, fmt.Errorf("trackingtest: an answer that was to be lost: %w", tracking.ErrUnavailable)
	}
	return w, err
}

func unavailable(err error) bool { return errors.Is(err, tracking.ErrUnavailable) }
