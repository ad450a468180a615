package tracking_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
)

// Stats tell of all applications, and of every Notifier, also of one that has nothing to be told.
func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := notifierFunc(func(context.Context, tracking.Notification) error { return errors.New("down") })
		svc := running(t, &tracking.Options{
			Notifiers:  map[string]tracking.Notifier{"down": down, "idle": &receiver{}},
			RetryWaits: []time.Duration{0, time.Hour},
		})
		expect := func(want tracking.Stats) {
			t.Helper()
			got, err := svc.Stats(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		}
		idle := tracking.OutboxStats{Name: "idle"}
		expect(tracking.Stats{Outboxes: []tracking.OutboxStats{{Name: "down"}, idle}})

		began := time.Now().UTC()
		waits := newDrop()
		waits.AutoAssign = true
		waits.Window.From = began.Add(3 * time.Hour) // a driver is looked for 1 h before
		must(svc.CreateTask(t.Context(), waits))(t)
		must(svc.ForApp("other").CreateTask(t.Context(), newDrop()))(t)
		time.Sleep(2 * time.Second)
		undelivered := tracking.OutboxStats{Name: "down", Undelivered: 2, Oldest: began}
		expect(tracking.Stats{Created: 2, Outboxes: []tracking.OutboxStats{undelivered, idle}})

		time.Sleep(150 * time.Minute)
		n := must(svc.Stats(t.Context()))(t)
		if n.Open() != 2 || n.Waiting != 1 || !n.OldestWaiting.Equal(began.Add(2*time.Hour)) {
			t.Errorf("%d open, %d wait since %v; want 2, 1, %v", n.Open(), n.Waiting, n.OldestWaiting, began.Add(2*time.Hour))
		}
		if n.Outboxes[0] != (tracking.OutboxStats{Name: "down", Dead: 2}) {
			t.Errorf("after the last try: %+v", n.Outboxes[0])
		}
	})
}
