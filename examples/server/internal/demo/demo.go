// Package demo makes something move: a few couriers drive along streets of our own making, and deliver what comes up there.
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
	// Guest is a driver who gets an order nearby when on duty with nothing to do, for a person who tries the driver app; default none.
	Guest tracking.DriverID

	// SetsOff is called when a courier or the guest sets off with a task; default none.
	SetsOff func(courier string, t tracking.Task)

	Logger *slog.Logger // default slog.Default()
}

const (
	tick    = time.Second
	reach   = 5000.0 // metres from the course; what is farther away a courier declines
	leisure = 5      // ticks that a courier stands idle before an order comes up nearby
	atDoor  = 15     // ticks that handing over takes
)

// names of the couriers.
var names = [...]string{"Anna", "Bilal", "Carmen"}

// Run drives the couriers until ctx ends. They take over the drivers demo-1, demo-2 and so on of the service's application, made if need be. They also carry out
// tasks that others assign to them, but for those that lie too far off their streets. What others do to their tasks meanwhile, they heed.
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
	var couriers []*courier
	for i, name := range names {
		k := &courier{
			svc: svc, id: tracking.DriverID(fmt.Sprintf("demo-%d", i+1)), name: name,
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
				o.Logger.WarnContext(ctx, "a courier of the demo is stuck and tries again", "courier", k.name, "err", err)
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

var customers = [...]string{"Mira Olsen", "Jonas Petit", "Amara Diallo", "Luca Moretti", "Sofia Lind", "Tariq Haddad", "Elena Novak"}

// order makes up an order ahead of a place on the course: a parcel to fetch at one door and to bring to another.
// Who gets it is up to the service. While there are two orders for each courier, no more come up.
func (d *dispatcher) order(ctx context.Context, at float64) error {
	d.open = slices.DeleteFunc(d.open, func(id tracking.TaskID) bool {
		t, err := d.svc.Task(ctx, id)
		return errors.Is(err, tracking.ErrNotFound) || err == nil && t.Status == tracking.StatusCompleted
	})
	if len(d.open) >= 2*len(names) {
		return nil
	}
	from := d.course.nextDoor(at, 100)
	to := (from + 2 + d.orders%3) % len(d.course.doors)
	place := func(i int) *tracking.Place {
		door := d.course.doors[i]
		return &tracking.Place{LngLat: &door.lngLat, Address: door.address}
	}
	t, err := d.create(ctx, tracking.NewTask{Pickup: place(from), Drop: place(to), AutoAssign: true})
	if err == nil {
		d.open = append(d.open, t.ID)
	}
	return err
}

// create makes an order of n with its number and a customer.
func (d *dispatcher) create(ctx context.Context, n tracking.NewTask) (tracking.Task, error) {
	n.Type, n.OrderID, n.Notes = tracking.PickupAndDrop, fmt.Sprintf("#%d", 1001+d.orders), "Ring the bell."
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
