package demo

import (
	"context"
	"errors"

	"github.com/seed-8aba7b13/tracking"
)

// courier drives around and carries out the stops of a route, in whatever order others put them.
type courier struct {
	svc     *tracking.Service
	id      tracking.DriverID
	name    string
	vehicle vehicle
	setsOff func(string, tracking.Task)

	onDuty bool
	stop   tracking.Stop // where the courier goes; zero: nowhere
	idle   int           // ticks without a stop
	busy   int           // ticks at the door
}

// step is a second of a courier's life.
func (k *courier) step(ctx context.Context, d *dispatcher) error {
	if !k.onDuty {
		if err := k.appear(ctx); err != nil {
			return err
		}
	}
	return errors.Join(k.act(ctx, d), k.report(ctx))
}

// act carries on with the route, or waits for orders to come up.
func (k *courier) act(ctx context.Context, d *dispatcher) error {
	err := k.attend(ctx)
	if errors.Is(err, tracking.ErrNotFound) || errors.Is(err, tracking.ErrConflict) {
		k.rest() // somebody has taken or ended the task
		return nil
	}
	if err != nil || k.stop != (tracking.Stop{}) {
		return err
	}
	if k.idle++; k.idle < leisure {
		return nil
	}
	k.idle = 0
	return d.round(ctx, k)
}

func (k *courier) rest() { k.stop, k.idle, k.busy = tracking.Stop{}, 0, 0 }

// appear makes the courier known, and on duty.
func (k *courier) appear(ctx context.Context) error {
	at, _ := k.vehicle.course.locate(k.vehicle.at)
	available := true
	_, err := k.svc.SaveDriver(ctx, tracking.DriverUpdate{ID: k.id, Name: &k.name, Available: &available, LngLat: &at})
	k.onDuty = err == nil
	return err
}

// report sends where the courier is. A courier whom somebody has deleted appears again next time.
func (k *courier) report(ctx context.Context) error {
	_, err := k.svc.RecordFixes(ctx, k.id, []tracking.Fix{k.vehicle.fix(k.svc.Options().Now())})
	if errors.Is(err, tracking.ErrNotFound) {
		k.onDuty = false
		k.rest()
		return nil
	}
	return err
}

// attend drives on to the first stop of the route, and does there what is to be done.
func (k *courier) attend(ctx context.Context) error {
	me, err := k.svc.Driver(ctx, k.id)
	if err != nil {
		return err
	}
	if len(me.Route) == 0 {
		k.stop, k.busy = tracking.Stop{}, 0
		return nil
	}
	t, err := k.svc.Task(ctx, me.Route[0].TaskID)
	if err != nil {
		return err
	}
	to, off, known := k.goal(t)
	if t.Status == tracking.StatusAssigned {
		if !known || off > reach {
			_, err := k.svc.DeclineTask(ctx, k.id, t.ID, tracking.Reason{Text: "It is too far away."}, tracking.Step{})
			return err
		}
		if _, _, err := k.svc.StartTask(ctx, k.id, t.ID, tracking.Step{}); err != nil {
			return err
		}
		// The customer sees the way from the start on, and what was reported a millisecond before is not of it.
		if err := k.report(ctx); err != nil {
			return err
		}
		k.setsOff(k.name, t)
	}
	if k.stop != me.Route[0] {
		k.rest()
		k.stop = me.Route[0]
	}
	if !k.vehicle.drive(to) {
		k.busy = 0
		return nil
	}
	if k.busy++; k.busy < atDoor {
		return nil
	}
	k.busy = 0
	if t.Type == tracking.TypePickupAndDrop && t.PickedUpAt.IsZero() {
		_, err := k.svc.PickUpTask(ctx, k.id, t.ID, tracking.Step{})
		return err
	}
	_, err = k.svc.FinishTask(ctx, k.id, t.ID, tracking.Completion{}, tracking.Step{})
	return err
}

// goal is where on the course the next place of a task is, and how many metres off it. A place
// without a point is not known.
func (k *courier) goal(t tracking.Task) (at, off float64, known bool) {
	p := t.Drop
	if t.Pickup != nil && t.PickedUpAt.IsZero() {
		p = t.Pickup
	}
	if p == nil || p.LngLat == nil {
		return k.vehicle.at, 0, false
	}
	at, off = k.vehicle.course.nearest(*p.LngLat)
	return at, off, true
}
