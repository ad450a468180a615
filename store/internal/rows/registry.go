package rows

import (
	"sync"

	"github.com/seed-8aba7b13/tracking"
)

// Registry knows the numbers that stand for applications in the tables of a store. They are never
// changed or removed, so that what is known once holds. The zero Registry knows none.
type Registry[N comparable] struct {
	mu      sync.RWMutex
	numbers map[tracking.AppID]N
	ids     map[N]tracking.AppID
}

// Number finds an application that has committed something.
func (r *Registry[N]) Number(app tracking.AppID) (N, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	n, ok := r.numbers[app]
	return n, ok
}

// ID finds the application with a number.
func (r *Registry[N]) ID(n N) (tracking.AppID, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	app, ok := r.ids[n]
	return app, ok
}

// Add makes an application known. Only what is committed may be added.
func (r *Registry[N]) Add(n N, app tracking.AppID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.numbers == nil {
		r.numbers, r.ids = map[tracking.AppID]N{}, map[N]tracking.AppID{}
	}
	r.numbers[app], r.ids[n] = n, app
}
