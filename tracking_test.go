package tracking_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

func TestApplicationsDoNotMeet(t *testing.T) {
	w := newWorld(t)
	w.driver("own", 0)
	task := w.create(false)
	other := w.ForApp("other")
	if _, err := other.Task(w.ctx, task.ID); code(err) != tracking.ErrNotFound {
		t.Error(err)
	}
	if _, err := w.AssignTask(w.ctx, task.ID, "own"); err != nil {
		t.Error(err)
	}
	if _, err := other.AssignTask(w.ctx, task.ID, "own"); code(err) != tracking.ErrNotFound {
		t.Error(err)
	}
	mine := must(other.CreateTask(w.ctx, tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: east(0)}, AutoAssign: true,
	}))(t)
	if mine.DriverID != "" {
		t.Error("a foreign driver got the task")
	}
	if _, err := other.AssignTask(w.ctx, mine.ID, "own"); code(err) != tracking.ErrNotFound {
		t.Error("assigned to a foreign driver:", err)
	}
}

func TestInputIsChecked(t *testing.T) {
	w := newWorld(t)
	long := func(n int) string { return strings.Repeat("é", n) }
	drop := func(change func(*tracking.NewTask)) tracking.NewTask {
		n := tracking.NewTask{Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: east(0), Address: "x"}}
		change(&n)
		return n
	}
	for field, n := range map[string]tracking.NewTask{
		"type":         {},
		"pickup":       {Type: tracking.TypePickup},
		"drop":         {Type: tracking.TypePickupAndDrop, Pickup: &tracking.Place{Address: "x"}},
		"drop.lnglat":  drop(func(n *tracking.NewTask) { n.Drop.LngLat = lnglat(181, 0) }),
		"drop.address": drop(func(n *tracking.NewTask) { n.Drop.Address = long(1001) }),
		"drop.customer.mobile": drop(func(n *tracking.NewTask) {
			n.Drop.Customer = &tracking.Contact{Mobile: long(33)}
		}),
		"customer.name": drop(func(n *tracking.NewTask) { n.Customer = &tracking.Contact{Name: "a\x00b"} }),
		"order_id":      drop(func(n *tracking.NewTask) { n.OrderID = "a\tb" }),
		"notes":         drop(func(n *tracking.NewTask) { n.Notes = long(4001) }),
		"time":          drop(func(n *tracking.NewTask) { n.Time = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) }),
	} {
		_, err := w.CreateTask(w.ctx, n)
		var e *tracking.Error
		if errors.As(err, &e); e == nil || e.Code != tracking.ErrInvalid ||
			e.Field != field && !(field == "customer.name" && e.Field == "drop.customer.name") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if list, _, _ := w.Tasks(w.ctx, tracking.TaskFilter{}); len(list) != 0 {
		t.Errorf("%d tasks were made all the same", len(list))
	}
	must(w.CreateTask(w.ctx, drop(func(n *tracking.NewTask) { n.Notes, n.OrderID = long(4000), "INV/2024/17" })))(t)
	for _, id := range []tracking.DriverID{"", " a", "a ", "a,b", "a\nb", tracking.DriverID(long(129))} {
		if _, err := w.SaveDriver(w.ctx, tracking.DriverUpdate{ID: id}); code(err) != tracking.ErrInvalid {
			t.Errorf("driver %q: %v", id, err)
		}
	}
	for _, email := range []string{"a@b@c", "a", "@b", "a@", "a @b", "a@b\r\nBcc: x", strings.Repeat("a", 300) + "@b"} {
		if _, err := w.InviteDriver(w.ctx, tracking.NewInvite{Email: &email}); code(err) != tracking.ErrInvalid {
			t.Errorf("email %q: %v", email, err)
		}
	}
}
