package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// The drivers besides the couriers: one whose phone has gone silent on the way, and one who is off
// duty.
const (
	silent  = len(names)
	offDuty = len(names) + 1
)

var others = map[int]string{silent: "Diego", offDuty: "Elif"}

// morning lays down what has happened before the demo is looked at, once for a store: deliveries done,
// one that failed and one cancelled, one that waits for a driver with a cargo bike, two for later, and
// Diego, of whom nothing is heard, with a route of which the first stop is late.
func (d *dispatcher) morning(ctx context.Context, service func(func() time.Time) (*tracking.Service, error)) error {
	switch _, err := d.svc.Driver(ctx, driverID(silent)); {
	case err == nil:
		return nil
	case !errors.Is(err, tracking.ErrNotFound):
		return err
	}
	var ago time.Duration
	now := d.svc.Options().Now
	svc, err := service(func() time.Time { return now().Add(-ago) })
	if err != nil {
		return err
	}
	// The same dispatcher, at another time.
	m := &morning{dispatcher: dispatcher{svc: svc.As("demo"), course: d.course}, now: now(), ago: &ago}
	if err := m.lay(ctx); err != nil {
		return err
	}
	d.orders = m.orders
	return nil
}

type morning struct {
	dispatcher
	now time.Time      // of those who look at it
	ago *time.Duration // how far the clock is behind
}

// at moves the clock to so many minutes before now.
func (m *morning) at(minutes int) { *m.ago = time.Duration(minutes) * time.Minute }

// window is one from so many minutes after now to so many.
func (m *morning) window(from, to int) tracking.Window {
	minute := func(n int) time.Time { return m.now.Add(time.Duration(n) * time.Minute) }
	return tracking.Window{From: minute(from), To: minute(to)}
}

func (m *morning) lay(ctx context.Context) error {
	lost := int(m.svc.Options().MaxFixAge/time.Minute) + 14 // minutes for which nothing has been heard
	m.at(lost + 95)
	for i := range len(names) + len(others) {
		name, on := others[i], i != offDuty
		if i < len(names) {
			name = names[i]
		}
		at, mobile := m.place(2+3*i).LngLat, fmt.Sprintf("+1 202 555 01%02d", 80+i)
		if _, err := m.svc.SaveDriver(ctx, tracking.DriverUpdate{
			ID: driverID(i), Name: &name, Mobile: &mobile, Available: &on, LngLat: at,
		}); err != nil {
			return err
		}
	}
	for i, end := range []tracking.Completion{
		{ReceivedBy: "Mira Olsen"}, {ReceivedBy: "A neighbour"}, {ReceivedBy: "Amara Diallo"}, {},
		{Outcome: tracking.OutcomeFailed, Reason: tracking.Reason{Code: tracking.ReasonNotHome, Text: "Rang three times."}},
		{ReceivedBy: "Sofia Lind"},
	} {
		since := lost + 90 - 12*i
		if err := m.given(ctx, since, i%len(names), tracking.NewTask{
			Drop: m.place(5 * i), Window: m.window(-since, 60-since),
		}, func(t tracking.TaskID) error {
			m.at(since - 10)
			_, err := m.svc.CompleteTask(ctx, t, end)
			return err
		}); err != nil {
			return err
		}
	}
	if err := m.given(ctx, lost+15, 0, tracking.NewTask{Drop: m.place(7)}, func(t tracking.TaskID) error {
		_, err := m.svc.CancelTask(ctx, t, tracking.Reason{Text: "The customer has called."})
		return err
	}); err != nil {
		return err
	}
	m.at(lost + 12)
	for i := range 2 {
		if _, err := m.create(ctx, tracking.NewTask{
			Pickup: m.place(3), Drop: m.place(11 + 3*i), Window: m.window(120+30*i, 180+30*i), AutoAssign: true,
		}); err != nil {
			return err
		}
	}
	if err := m.lose(ctx, lost); err != nil {
		return err
	}
	m.at(11)
	_, err := m.create(ctx, tracking.NewTask{
		Pickup: m.place(6), Drop: m.place(12), Window: m.window(-11, 45), AutoAssign: true,
		Requires: map[string]string{"vehicle": "cargo bike"}, Notes: "Two boxes, 40 kg.",
	})
	return err
}

// given makes an order so many minutes before now, gives it to a driver, and goes on with it.
func (m *morning) given(ctx context.Context, ago, driver int, n tracking.NewTask, then func(tracking.TaskID) error) error {
	m.at(ago)
	t, err := m.create(ctx, n)
	if err != nil {
		return err
	}
	if _, err := m.svc.AssignTask(ctx, t.ID, driverID(driver)); err != nil {
		return err
	}
	return then(t.ID)
}

// lose sends one off with a round, and hears of him no more.
func (m *morning) lose(ctx context.Context, lost int) error {
	const drive = 2 // minutes
	v := vehicle{course: m.course, at: m.course.doors[8].at}
	var first tracking.TaskID
	for i, w := range []tracking.Window{m.window(-lost-20, -12), m.window(-10, 25), m.window(5, 50)} {
		if err := m.given(ctx, lost+drive+3, silent, tracking.NewTask{Drop: m.place(11 + i), Window: w},
			func(t tracking.TaskID) error {
				if i == 0 {
					first = t
				}
				return nil
			}); err != nil {
			return err
		}
	}
	m.at(lost + drive)
	if _, _, err := m.svc.StartTask(ctx, driverID(silent), first, tracking.Step{}); err != nil {
		return err
	}
	var fixes []tracking.Fix
	for second := range drive * 60 {
		fixes = append(fixes, v.fix(m.now.Add(time.Duration(second-(lost+drive)*60)*time.Second)))
		v.drive(m.course.doors[11].at)
	}
	m.at(lost)
	_, err := m.svc.RecordFixes(ctx, driverID(silent), fixes)
	return err
}
