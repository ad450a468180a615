package memory

import (
	"context"
	"sync"

	"github.com/seed-8aba7b13/tracking"
)

// secrets finds rows of any application by the hash of a secret. A commit that touches one changes it while it holds both the application's lock and mu.
type secrets struct {
	mu           sync.RWMutex
	taskLinks    map[tracking.Hash]owner[tracking.TaskID]
	tripLinks    map[tracking.Hash]owner[tracking.TripID]
	appTokens    map[tracking.Hash]owner[tracking.DriverID]
	ingestTokens map[tracking.Hash]owner[tracking.DriverID]
	inviteLinks  map[tracking.Hash]owner[tracking.DriverID]
	inviteCodes  map[tracking.Hash]owner[tracking.DriverID]
	keys         map[tracking.Hash]owner[string]
}

// owner is a row that a secret belongs to.
type owner[ID comparable] struct {
	app *application
	id  ID
}

func newSecrets() secrets {
	return secrets{
		taskLinks:    make(map[tracking.Hash]owner[tracking.TaskID]),
		tripLinks:    make(map[tracking.Hash]owner[tracking.TripID]),
		appTokens:    make(map[tracking.Hash]owner[tracking.DriverID]),
		ingestTokens: make(map[tracking.Hash]owner[tracking.DriverID]),
		inviteLinks:  make(map[tracking.Hash]owner[tracking.DriverID]),
		inviteCodes:  make(map[tracking.Hash]owner[tracking.DriverID]),
		keys:         make(map[tracking.Hash]owner[string]),
	}
}

// moveSecret notes that a row's hash has changed from old to now; either may be zero.
func moveSecret[ID comparable](m map[tracking.Hash]owner[ID], o owner[ID], old, now tracking.Hash) {
	if old == now {
		return
	}
	if !old.IsZero() && m[old] == o {
		delete(m, old)
	}
	if !now.IsZero() {
		m[now] = o
	}
}

// findSecret finds the row with a hash and its application, which it leaves locked for reading. The function row returns the row with that id
// if it still has the hash, or nil.
func findSecret[ID comparable, R any](ctx context.Context, s *Store, m map[tracking.Hash]owner[ID], hash tracking.Hash, row func(*application, ID) *R) (*application, *R, error) {
	if err := s.ready(ctx); err != nil {
		return nil, nil, err
	}
	if hash.IsZero() {
		return nil, nil, tracking.ErrNotFound
	}
	for {
		s.secrets.mu.RLock()
		o, ok := m[hash]
		s.secrets.mu.RUnlock()
		if !ok {
			return nil, nil, tracking.ErrNotFound
		}
		o.app.mu.RLock()
		if r := row(o.app, o.id); r != nil {
			return o.app, r, nil
		}
		o.app.mu.RUnlock() // it changed hands in between: look again
	}
}
