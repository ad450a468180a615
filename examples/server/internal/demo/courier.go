package demo

import (
	"context"
	"errors"

	"github.com/seed-8aba7b13/tracking"
)

// courier drives around and carries out the tasks that are assigned.
type courier struct {
	svc     *tracking.Service
	id      tracking.DriverID
	name    string
	vehicle vehicle
	setsOff func(string, tracking.Task)

	onDuty bool
	task   tracking.TaskID // "": none
	idle   int             // ticks without a task
	busy   int             // ticks at the door
}

// step is a second of a courier's life.
func (k *courier) step(ctx context.Context, d *dispatcher) error {
	if !k.onDuty {
		if err := k.appear(ctx); err != nil {
			return err
		}
	}
	before := k.task
	err := errors.Join(k.act(ctx, d), k.report(ctx))
	if k.task != before && k.task != "" {
		t, taskErr := k.svc.Task(ctx, k.task)
		if taskErr != nil {
			return errors.Join(err, taskErr)
		}
		k.setsOff(k.name, t)
	}
	return err
}

// act carries on with the task, takes up the next one, or waits for an order to come up.
func (k *courier) act(ctx context.Context, d *dispatcher) error {
	err := k.attend(ctx)
	if errors.Is(err, tracking.ErrNotFound) || errors.Is(err, tracking.ErrConflict) {
		k.drop() // somebody has taken or ended the task
		return nil
	}
	if err != nil || k.task != "" {
		return err
	}
	if k.idle++; k.idle < leisure {
		return nil
	}
	k.idle = 0
	return d.order(ctx, k.vehicle.at)
}

func (k *courier) attend(ctx context.Context) error {
	if k.task == "" {
		if err := k.look(ctx); err != nil || k.task == "" {
			return err
		}
	}
	return k.work(ctx)
}

func (k *courier) drop() { k.task, k.idle, k.busy = "", 0, 0 }

// appear makes the courier known, and on duty.
func (k *courier) appear(ctx context.Context) error {
	at, _ := k.vehicle.course.locate(k.vehicle.at)
	available := true
	_, err := k.svc.SaveDriver(ctx, tracking.SaveDriver{ID: k.id, Name: &k.name, Available: &available, LngLat: &at})
	k.onDuty = err == nil
	return err
}

// report sends where the courier is. A courier whom somebody has deleted appears again next time.
func (k *courier) report(ctx context.Context) error {
	at, heading := k.vehicle.course.locate(k.vehicle.at)
	_, err := k.svc.RecordFixes(ctx, k.id, []tracking.Fix{{
		LngLat: at, Time: k.svc.Options().Now(),
		Accuracy: tracking.Known(5), Speed: tracking.Known(k.vehicle.speed), Bearing: tracking.Known(heading),
	}})
	if errors.Is(err, tracking.ErrNotFound) {
		k.onDuty = false
		k.drop()
		return nil
	}
	return err
}

// look takes up the oldest task that is the courier's, if there is one.
func (k *courier) look(ctx context.Context) error {
	list, _, err := k.svc.Tasks(ctx, tracking.TaskFilter{DriverID: k.id, Status: []tracking.TaskStatus{tracking.StatusAssigned, tracking.StatusInProgress}})
	if err != nil || len(list) == 0 {
		return err
	}
	t := list[len(list)-1]
	if _, off, known := k.goal(t); t.Status == tracking.StatusAssigned && (!known || off > reach) {
		_, err := k.svc.DeclineTask(ctx, k.id, t.ID, "It is too far away.", tracking.Step{})
		return err
	}
	if _, _, err := k.svc.StartTask(ctx, k.id, t.ID, tracking.Step{}); err != nil {
		return err
	}
	k.drop()
	k.task = t.ID
	return nil
}

// goal is where on the course the next place of a task is, and how many metres off it. A place without a point is not known.
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

// work drives on to the next place of the task, and does there what is to be done.
func (k *courier) work(ctx context.Context) error {
	t, err := k.svc.Task(ctx, k.task)
	if err != nil {
		return err
	}
	if t.DriverID != k.id || t.Status != tracking.StatusInProgress {
		k.drop()
		return nil
	}
	to, _, _ := k.goal(t)
	if !k.vehicle.drive(to) {
		k.busy = 0
		return nil
	}
	if k.busy++; k.busy < atDoor {
		return nil
	}
	k.busy = 0
	if t.Type == tracking.PickupAndDrop && t.PickedUpAt.IsZero() {
		_, err := k.svc.PickUpTask(ctx, k.id, k.task, tracking.Step{})
		return err
	}
	if _, err := k.svc.FinishTask(ctx, k.id, k.task, tracking.Completion{}, tracking.Step{}); err != nil {
		return err
	}
	k.drop()
	return nil
}
