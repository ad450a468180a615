package sqlite

import (
	"sync"

	"github.com/seed-8aba7b13/tracking"
)

// registry knows the numbers that stand for applications in the tables. There are few of them and they are never removed, so all are in memory.
type registry struct {
	mu      sync.RWMutex
	numbers map[tracking.AppID]int64
	ids     map[int64]tracking.AppID
}

// number finds an application that has committed something.
func (r *registry) number(app tracking.AppID) (int64, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	n, ok := r.numbers[app]
	return n, ok
}

func (r *registry) id(n int64) tracking.AppID {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.ids[n]
}

// add makes an application known. Only what is committed may be added.
func (r *registry) add(n int64, app tracking.AppID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.numbers == nil {
		r.numbers, r.ids = map[tracking.AppID]int64{}, map[int64]tracking.AppID{}
	}
	r.numbers[app], r.ids[n] = n, app
}

const (
	selectApps = `SELECT n, id FROM apps`
	insertApp  = `INSERT INTO apps (id) VALUES (?)`
)

type appRow struct {
	N  int64
	ID tracking.AppID
}
