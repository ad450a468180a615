package trackingtest

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/seed-8aba7b13/tracking"
)

// outbox is the name of the Kit's own Notifier, besides those of the program under test.
const outbox = "trackingtest"

// recorder keeps what it is told.
type recorder struct {
	mu   sync.Mutex
	list []tracking.Notification
}

func (r *recorder) Notify(_ context.Context, n tracking.Notification) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, n)
	return nil
}

// Told lists the events that a Notifier has been told by now, the oldest first: all, or those of the
// types given. What has happened since the last Settle is not told yet.
func (k *Kit) Told(types ...tracking.EventType) []tracking.Event {
	k.told.mu.Lock()
	defer k.told.mu.Unlock()
	var list []tracking.Event
	for _, n := range k.told.list {
		if len(types) == 0 || slices.Contains(types, n.Event.Type) {
			list = append(list, n.Event.Clone())
		}
	}
	// Subjects are told side by side; ids sort by age.
	slices.SortFunc(list, func(a, b tracking.Event) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

// ToldDriver lists what a driver's phone has been told since he was made, the oldest first.
func (k *Kit) ToldDriver(id tracking.DriverID) []tracking.Notice {
	k.t.Helper()
	var list []tracking.Notice
	for after := int64(0); ; {
		page, lost, err := k.Notices(k.ctx, id, after, 0)
		if err != nil {
			k.t.Fatalf("trackingtest: the notices of %s: %v", id, err)
		}
		if lost { // what is older was purged
			k.t.Fatalf("trackingtest: the notices of %s are kept no longer", id)
		}
		if len(page) == 0 {
			return list
		}
		list = append(list, page...)
		after = page[len(page)-1].ID
	}
}
