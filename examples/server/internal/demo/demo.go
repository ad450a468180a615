// Package demo has a small company at work: a few couriers drive rounds along streets of our own
// making, and some of what a dispatcher has to see to has happened already.
package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// Options set up a [Run].
type Options struct {
	// Guest is a driver who gets an order nearby when on duty with nothing to do, for a person who
	// tries the driver app; default none.
	Guest tracking.DriverID

	// SetsOff is called when a courier or the guest sets off with a task; default none.
	SetsOff func(courier string, t tracking.Task)

	// Past makes a Service on the same store whose clock is another one, for a moment; its log is of
	// no use. With it the day has begun before. Default none.
	Past func(now func() time.Time) (*tracking.Service, error)

	Logger *slog.Logger // default slog.Default()
}

const (
	tick    = time.Second
	reach   = 5000.0 // metres from the course; what is farther away a courier declines
	leisure = 5      // ticks that a courier stands idle before an order comes up nearby
	atDoor  = 15     // ticks that handing over takes
	stops   = 3      // orders of a round
)

// names of the couriers.
var names = [...]string{"Anna", "Bilal", "Carmen"}

// driverID is the id of the driver of a number, from 0 on.
func driverID(i int) tracking.DriverID { return tracking.DriverID(fmt.Sprintf("demo-%d", i+1)) }

// Run drives the couriers until ctx ends. They take over the drivers demo-1, demo-2 and so on of
// the service's application, made if need be. They also carry out tasks that others assign to them,
// but for those that lie too far off their streets. What others do to their tasks meanwhile, they
// heed.
func Run(ctx context.Context, svc *tracking.Service, opts *Options) error {
	if opts == nil {
		opts = &Options{}
	}
	o := *opts
	if o.SetsOff == nil {
		o.SetsOff = func(string, tracking.Task) {}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	c, err := readCourse(courseFile)
	if err != nil {
		return fmt.Errorf("the course of the demo: %w", err)
	}
	d := &dispatcher{svc: svc.As("demo"), course: c}
	if o.Past != nil {
		if err := d.morning(ctx, o.Past); err != nil {
			return fmt.Errorf("the morning of the demo: %w", err)
		}
	}
	var couriers []*courier
	for i, name := range names {
		k := &courier{
			svc: svc, id: driverID(i), name: name,
			vehicle: vehicle{course: c, at: c.doors[i*len(c.doors)/len(names)].at},
			setsOff: o.SetsOff, idle: leisure,
		}
		couriers = append(couriers, k)
	}
	visitor := guest{id: o.Guest, wait: leisure}
	every := time.NewTicker(tick)
	defer every.Stop()
	for {
		for _, k := range couriers {
			if err := k.step(ctx, d); err != nil && ctx.Err() == nil {
				o.Logger.WarnContext(ctx, "a courier of the demo is stuck and tries again", "courier", k.name, "err",
					err)
			}
		}
		if o.Guest != "" {
			t, err := visitor.step(ctx, d)
			if err != nil && ctx.Err() == nil {
				o.Logger.WarnContext(ctx, "the guest of the demo has no order", "err", err)
			}
			if t != nil {
				o.SetsOff("Guest", *t)
			}
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// dispatcher makes up orders.
type dispatcher struct {
	svc    *tracking.Service
	course *course
	orders int
	open   []tracking.TaskID // orders not yet delivered
}

var customers = [...]string{
	"Mira Olsen", "Jonas Petit", "Amara Diallo", "Luca Moretti", "Sofia Lind", "Tariq Haddad", "Elena Novak",
}

// round makes up the orders of a courier's round: parcels to fetch at a door ahead, and to bring to
// others by the times agreed. Who gets the first is up to the service; the others are given to the
// courier, as a dispatcher does who plans. While there are as many orders as can be carried, no more
// come up.
func (d *dispatcher) round(ctx context.Context, k *courier) error {
	d.open = slices.DeleteFunc(d.open, func(id tracking.TaskID) bool {
		t, err := d.svc.Task(ctx, id)
		return errors.Is(err, tracking.ErrNotFound) || err == nil && t.Status == tracking.StatusCompleted
	})
	from := d.course.nextDoor(k.vehicle.at, 100)
	for i := range stops {
		if len(d.open) >= stops*len(names) {
			return nil
		}
		now := d.svc.Options().Now()
		window := tracking.Window{From: now, To: now.Add(time.Duration(25+10*i) * time.Minute)}
		if d.orders%5 == 2 {
			window.To = now.Add(8 * time.Minute) // somebody has promised too much
		}
		t, err := d.create(ctx, tracking.NewTask{
			Pickup: d.place(from), Drop: d.place(from + 2 + 2*i), Window: window, AutoAssign: i == 0,
		})
		if err != nil {
			return err
		}
		d.open = append(d.open, t.ID)
		if i == 0 {
			continue
		}
		if _, err := d.svc.AssignTask(ctx, t.ID, k.id); err != nil {
			_, endErr := d.svc.CancelTask(ctx, t.ID, tracking.Reason{Text: "Nobody is there to take it."})
			return errors.Join(err, endErr)
		}
	}
	return d.loadFirst(ctx, k.id)
}

// loadFirst puts what a courier picks up before all that he drops.
func (d *dispatcher) loadFirst(ctx context.Context, id tracking.DriverID) error {
	route, err := d.svc.Route(ctx, id)
	if err != nil {
		return err
	}
	var order []tracking.Stop
	for _, leg := range []tracking.Leg{tracking.LegPickup, tracking.LegDrop} {
		for _, s := range route.Stops {
			if s.Leg == leg {
				order = append(order, s.Stop)
			}
		}
	}
	if _, err := d.svc.SetRoute(ctx, id, order, route.Version); !errors.Is(err, tracking.ErrConflict) {
		return err
	}
	return nil // somebody else has changed it meanwhile
}

// place is a door of the course, counted on and on.
func (d *dispatcher) place(i int) *tracking.Place {
	door := d.course.doors[i%len(d.course.doors)]
	return &tracking.Place{LngLat: &door.lngLat, Address: door.address}
}

// create makes an order of n with its number and a customer.
func (d *dispatcher) create(ctx context.Context, n tracking.NewTask) (tracking.Task, error) {
	n.Type, n.OrderID = tracking.TypePickupAndDrop, fmt.Sprintf("#%d", 1001+d.orders)
	if n.Pickup == nil {
		n.Type = tracking.TypeDrop
	}
	if n.Notes == "" {
		n.Notes = "Ring the bell."
	}
	n.Drop.Customer = &tracking.Contact{
		Name:   customers[d.orders%len(customers)],
		Mobile: fmt.Sprintf("+1 202 555 01%02d", d.orders%100), // 555-0100 to 555-0199 belong to nobody
	}
	t, err := d.svc.CreateTask(ctx, n)
	if err == nil {
		d.orders++
	}
	return t, err
}
