package storetest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed-8aba7b13/tracking"
)

// RunDurable tests stores that outlive their process: what was committed is there after Close and
// another open of the same directory. Each call of open gives the store that dir holds, a new one
// if it is empty. It does not repeat what [Run] tests.
func RunDurable(t *testing.T, open func(t testing.TB, dir string) tracking.Store) {
	reopened := func(t testing.TB, s tracking.Store, dir string) tracking.Store {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
		return opened(t, func(t testing.TB) tracking.Store { return open(t, dir) })
	}
	t.Run("all rows are there again", func(t *testing.T) {
		dir := t.TempDir()
		s := opened(t, func(t testing.TB) tracking.Store { return open(t, dir) })
		use(t, s, here).commit(seed())
		full := uniqueFor(everyRow(1), 3)
		full.Drivers[0].Available = true
		full.Fixes = []tracking.FixBatch{{
			DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{walk(1), walk(2), far(3, 20)},
		}}
		full.Events = []tracking.Event{fullEvent("full", 1, tracking.Subject{Kind: tracking.KindTask, ID: "t"})}
		full.Events[0].Notices = []tracking.Notice{{DriverID: "d", Kind: tracking.NoticeUpdated, TaskID: "t"}}
		use(t, s, there).commit(full)
		secret, err := s.Secret(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.SetMemo(t.Context(), "memo", []byte("kept")); err != nil {
			t.Fatal(err)
		}
		use(t, s, here).putFile("f", tracking.File{TaskID: "t", At: t0, Data: noise(1, tracking.MaxProofSize)})
		use(t, s, here).putFile("deleted", tracking.File{TaskID: "t", At: t0, Data: []byte("f")})
		if err := s.Files().Delete(t.Context(), here, "deleted"); err != nil {
			t.Fatal(err)
		}
		before := []snapshot{snap(t, s, here), snap(t, s, there)}
		for range 2 {
			s = reopened(t, s, dir)
			use(t, s, here).file("f", noise(1, tracking.MaxProofSize))
			use(t, s, here).file("deleted", nil)
			use(t, s, there).file("f", nil)
			same(t, "rows", []snapshot{snap(t, s, here), snap(t, s, there)}, before)
			again, err := s.Secret(t.Context())
			if err != nil || !bytes.Equal(again, secret) {
				t.Errorf("Secret: another one after opening again (error %v)", err)
			}
			if memo, err := s.Memo(t.Context(), "memo"); err != nil || string(memo) != "kept" {
				t.Errorf("Memo: %q after opening again, error %v", memo, err)
			}
		}
	})
	t.Run("numbers go on", func(t *testing.T) {
		dir := t.TempDir()
		s := opened(t, func(t testing.TB) tracking.Store { return open(t, dir) })
		use(t, s, here).commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("d", t0)}})
		for i := range 4 {
			c := use(t, s, here)
			c.commit(tracking.Changeset{
				Tasks:  []tracking.Task{newTask(tracking.TaskID(fmt.Sprint(i)), t0)},
				Events: []tracking.Event{newEvent(fmt.Sprint(i), tracking.KindTask, "a", t0, "d")},
			})
			if i == 1 {
				c.purge(tracking.Before{Events: at(time.Hour), Limit: 100})
			}
			s = reopened(t, s, dir)
		}
		c := use(t, s, here)
		tasks, _ := c.tasks(tracking.TaskFilter{})
		same(t, "tasks, newest first", each(tasks, taskID), []tracking.TaskID{"3", "2", "1", "0"})
		events, _ := c.events(tracking.EventFilter{})
		same(t, "seq", each(events, eventSeq), []int64{3, 4})
		notices, lost := c.notices("d", 0)
		if len(notices) != 2 || notices[0].ID <= 0 || notices[1].ID <= notices[0].ID || !lost {
			t.Errorf("notices: got %+v, lost %v; want two that grow, and two lost", notices, lost)
		}
		_, lost = c.notices("d", notices[0].ID-1)
		same(t, "lost after the last purged one", lost, false)
	})
	t.Run("unique values stay taken", func(t *testing.T) {
		dir := t.TempDir()
		s := opened(t, func(t testing.TB) tracking.Store { return open(t, dir) })
		use(t, s, here).commit(seed())
		s = reopened(t, s, dir)
		c := use(t, s, here)
		task := newTask("other", t0)
		task.Key = "k"
		c.refused(tracking.Changeset{Tasks: []tracking.Task{task}}, tracking.ConflictError{
			Kind: tracking.KindTask, Unique: "key",
		})
		c.refused(tracking.Changeset{Trips: []tracking.Trip{newTrip("other", "d", "x", t0)}}, tracking.ConflictError{
			Kind: tracking.KindTrip, Unique: "tracking_id",
		})
		c.refused(tracking.Changeset{
			Drivers: []tracking.Driver{newDriver("e", t0)}, Invites: []tracking.Invite{newInvite("e", 90, 6)},
		}, tracking.ConflictError{Kind: tracking.KindInvite, Unique: "code"})
		c.refused(tracking.Changeset{Keys: []tracking.Key{newKey("other", 7, t0)}}, tracking.ConflictError{
			Kind: tracking.KindKey, Unique: "hash",
		})
	})
	t.Run("who is nearby is known again", func(t *testing.T) {
		dir := t.TempDir()
		s := opened(t, func(t testing.TB) tracking.Store { return open(t, dir) })
		c := use(t, s, here)
		var ids []tracking.DriverID
		var places []tracking.LngLat
		for i := range 60 {
			ids = append(ids, tracking.DriverID(fmt.Sprintf("%02d", i*7%60)))
			places = append(places, tracking.LngLat{Lng: 11 + float64(i*13%60)*0.01, Lat: 48})
		}
		placed(c, ids, places)
		off := c.driver("00")
		off.Available = false
		c.commit(tracking.Changeset{Drivers: []tracking.Driver{off}})
		s = reopened(t, s, dir)
		c = use(t, s, here)
		from := tracking.LngLat{Lng: 11.2, Lat: 48.1}
		list, _ := c.drivers(tracking.DriverFilter{Near: &from})
		want := nearest(from, ids, places)
		same(t, "drivers nearby", each(list, driverID), want)
		var offers []tracking.DriverID
		for _, id := range want {
			if id != "00" {
				offers = append(offers, id)
			}
		}
		same(t, "offers", each(c.offers(tracking.Offer{At: from, MaxOpen: 1}), driverID), offers)
		r := c.record(tracking.FixBatch{
			DriverID: "01", SeenAt: t0, Fixes: []tracking.Fix{newFix(t0, 11, 48), newFix(at(-time.Minute), 11, 48)},
		})
		if r.Outcomes[0] != tracking.FixDuplicate {
			t.Errorf("a fix sent again after opening: got %q, want %q", r.Outcomes[0], tracking.FixDuplicate)
		}
	})
	t.Run("the outbox goes on", func(t *testing.T) {
		dir := t.TempDir()
		s := opened(t, func(t testing.TB) tracking.Store { return open(t, dir) })
		c := use(t, s, here)
		outbox(c, "a1", "a2", "b1", "c1", "d1", "e1")
		outboxes(c, []string{"push"}, "a3", "a4")
		c.lease("w", t0, 10)
		c.leaseFrom("push", "w", t0, 10)
		c.finish(from("push", done("w", "a3", tracking.DeliveryDead)))
		again := done("w", "b1", tracking.DeliveryRetry)
		again.RetryIn = time.Hour
		c.finish(done("w", "a1", tracking.DeliveryDone), again, done("w", "c1", tracking.DeliveryDead),
			done("w", "d1", tracking.DeliveryReleased))
		s = reopened(t, s, dir)
		c = use(t, s, here)
		dead, _ := c.events(tracking.EventFilter{Dead: true})
		same(t, "dead events", each(dead, eventID), []string{"c1"})
		dead, _ = c.events(tracking.EventFilter{Dead: true, Outbox: "push"})
		same(t, "dead events in another outbox", each(dead, eventID), []string{"a3"})
		same(t, "leased from it", each(c.leaseFrom("push", "other", at(2*time.Minute), 10), leasedID), []string{"a4"})
		// e1 is with w for a minute; whether a lease outlives the process is open, as its owner
		// may.
		got := c.lease("other", at(2*time.Minute), 10)
		same(t, "leased", each(got, leasedID), []string{"a2", "d1", "e1"})
		got = c.lease("third", at(time.Hour), 10)
		for _, l := range got {
			if l.Event.ID == "b1" && l.Attempt != 2 {
				t.Errorf("event b1: attempt %d, want 2", l.Attempt)
			}
		}
	})
	t.Run("model", func(t *testing.T) {
		play(t, func(t *testing.T) func(*rapid.T) {
			return fewer(25, func(rt *rapid.T) {
				dir := t.TempDir()
				w := newWorld(rt, open(t, dir))
				defer func() { w.s.Close() }()
				w.reopen = func() tracking.Store { return open(t, dir) }
				repeat(rt, 2, w.actions())
				w.compareAll()
			})
		})
	})
}
