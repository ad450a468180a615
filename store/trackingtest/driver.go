package trackingtest

import (
	"context"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// Driver is a driver with a phone.
type Driver struct {
	ID tracking.DriverID

	Speed float64       // metres per second; 10 until it is changed
	Every time.Duration // between two fixes; 5 s until it is changed

	// Refused is what the service has said to steps that were done offline, once they were sent: as
	// when the task had gone to somebody else meanwhile.
	Refused []error

	k       *Kit
	at      tracking.LngLat
	offline bool
	fixes   []tracking.Fix // measured while offline
	steps   []func() error // done while offline
	begun   map[tracking.TaskID]bool
	loaded  map[tracking.TaskID]bool
}

// NewDriver makes a driver who is on duty at a place; of one who is there already it is a new phone.
func (k *Kit) NewDriver(id tracking.DriverID, at tracking.LngLat) *Driver {
	k.t.Helper()
	u := tracking.DriverUpdate{ID: id, Available: new(true), LngLat: &at}
	if _, err := again(func() (tracking.Driver, error) { return k.SaveDriver(k.ctx, u) }); err != nil {
		k.t.Fatalf("trackingtest: driver %s cannot be made: %v", id, err)
	}
	return &Driver{
		ID: id, Speed: 10, Every: 5 * time.Second, k: k, at: at,
		begun: map[tracking.TaskID]bool{}, loaded: map[tracking.TaskID]bool{},
	}
}

// At is where the driver is.
func (d *Driver) At() tracking.LngLat { return d.at }

// DriveTo drives straight to a place at Speed, with a fix Every so often, while the Kit's clock goes
// on.
func (d *Driver) DriveTo(to tracking.LngLat) {
	d.k.t.Helper()
	from, began := d.at, d.k.Clock.Now()
	takes := time.Duration(tracking.Distance(from, to) / d.Speed * float64(time.Second))
	for took := time.Duration(0); took < takes; {
		took = min(took+d.Every, takes)
		d.k.Advance(began.Add(took).Sub(d.k.Clock.Now()))
		d.at = between(from, to, float64(took)/float64(takes))
		d.measure(d.Speed)
	}
}

// Stay stands still for a while, with a fix Every so often.
func (d *Driver) Stay(long time.Duration) {
	d.k.t.Helper()
	for left := long; left > 0; left -= d.Every {
		d.k.Advance(min(left, d.Every))
		d.measure(0)
	}
}

// between is the point at a share of the way, also over the date line.
func between(from, to tracking.LngLat, share float64) tracking.LngLat {
	if share >= 1 {
		return to
	}
	east := to.Lng - from.Lng
	switch {
	case east > 180:
		east -= 360
	case east < -180:
		east += 360
	}
	p := tracking.LngLat{Lng: from.Lng + share*east, Lat: from.Lat + share*(to.Lat-from.Lat)}
	switch {
	case p.Lng > 180:
		p.Lng -= 360
	case p.Lng < -180:
		p.Lng += 360
	}
	return p
}

// measure takes a fix, and sends it.
func (d *Driver) measure(speed float64) {
	d.k.t.Helper()
	d.fixes = append(d.fixes, tracking.Fix{
		LngLat: d.at, Time: d.k.Clock.Now(), Accuracy: tracking.Known(5), Speed: tracking.Known(speed),
	})
	if !d.offline {
		d.send()
	}
}

// send sends what was measured and done, in pieces as phones do.
func (d *Driver) send() {
	d.k.t.Helper()
	for len(d.fixes) > 0 {
		n := min(len(d.fixes), tracking.MaxBatch)
		_, err := again(func() ([]tracking.FixOutcome, error) {
			return d.k.RecordFixes(d.k.ctx, d.ID, d.fixes[:n])
		})
		if err != nil {
			d.k.t.Fatalf("trackingtest: the fixes of %s: %v", d.ID, err)
		}
		d.fixes = d.fixes[n:]
	}
	for _, step := range d.steps {
		if err := step(); err != nil {
			d.Refused = append(d.Refused, err)
		}
	}
	d.steps = nil
}

// GoOffline has the phone lose the network: what the driver does and measures from now on waits.
func (d *Driver) GoOffline() { d.offline = true }

// GoOnline has the phone find the network again, and send what has waited: what was done with the
// time when it was done.
func (d *Driver) GoOnline() {
	d.k.t.Helper()
	d.offline = false
	d.send()
}

// GoOffDuty ends the driver's day, and GoOnDuty begins one.
func (d *Driver) GoOffDuty() { d.k.t.Helper(); d.duty(false) }

// GoOnDuty begins the driver's day.
func (d *Driver) GoOnDuty() { d.k.t.Helper(); d.duty(true) }

func (d *Driver) duty(on bool) {
	d.k.t.Helper()
	d.step("going on or off duty", func(ctx context.Context, s tracking.Step) error {
		_, err := d.k.SetAvailability(ctx, d.ID, on, s.At)
		return err
	})
}

// step does a step now, or once the phone is online again. Refused at once it fails the test: it is
// the test that is wrong then.
func (d *Driver) step(name string, do func(context.Context, tracking.Step) error) {
	d.k.t.Helper()
	at := d.at
	s := tracking.Step{At: d.k.Clock.Now(), LngLat: &at}
	call := func() error {
		_, err := again(func() (struct{}, error) { return struct{}{}, do(d.k.ctx, s) })
		return err
	}
	if d.offline {
		d.steps = append(d.steps, call)
		return
	}
	if err := call(); err != nil {
		d.k.t.Fatalf("trackingtest: %s: %s: %v", d.ID, name, err)
	}
}

// Start begins a task.
func (d *Driver) Start(id tracking.TaskID) {
	d.k.t.Helper()
	d.begun[id] = true
	d.step("Start", func(ctx context.Context, s tracking.Step) error {
		_, _, err := d.k.StartTask(ctx, d.ID, id, s)
		return err
	})
}

// PickUp notes that the goods are on board.
func (d *Driver) PickUp(id tracking.TaskID) {
	d.k.t.Helper()
	d.loaded[id] = true
	d.step("PickUp", func(ctx context.Context, s tracking.Step) error {
		_, err := d.k.PickUpTask(ctx, d.ID, id, s)
		return err
	})
}

// Decline gives a task back.
func (d *Driver) Decline(id tracking.TaskID, why tracking.Reason) {
	d.k.t.Helper()
	d.step("Decline", func(ctx context.Context, s tracking.Step) error {
		_, err := d.k.DeclineTask(ctx, d.ID, id, why, s)
		return err
	})
}

// Finish ends a task where the driver stands.
func (d *Driver) Finish(id tracking.TaskID, c tracking.Completion) {
	d.k.t.Helper()
	d.step("Finish", func(ctx context.Context, s tracking.Step) error {
		_, err := d.k.FinishTask(ctx, d.ID, id, c, s)
		return err
	})
	delete(d.begun, id)
	delete(d.loaded, id)
}

// Deliver does all that is left of a task: starts it, drives to where it is picked up, drives to where
// it is wanted, and ends it there as succeeded.
func (d *Driver) Deliver(id tracking.TaskID) {
	d.k.t.Helper()
	d.way(id)
	d.Finish(id, tracking.Completion{})
}

// Fail does as Deliver, and ends the task as failed.
func (d *Driver) Fail(id tracking.TaskID, why tracking.Reason) {
	d.k.t.Helper()
	d.way(id)
	d.Finish(id, tracking.Completion{Outcome: tracking.OutcomeFailed, Reason: why})
}

// moment is how long the driver stands at a stop before the next step.
const moment = 30 * time.Second

// way goes to the last stop of a task. What the phone did offline it knows itself.
func (d *Driver) way(id tracking.TaskID) {
	d.k.t.Helper()
	t, err := d.k.Task(d.k.ctx, id)
	if err != nil {
		d.k.t.Fatalf("trackingtest: the task of %s: %v", d.ID, err)
	}
	if t.Status == tracking.StatusAssigned && !d.begun[id] {
		d.Start(id)
	}
	if t.Pickup != nil && t.PickedUpAt.IsZero() && !d.loaded[id] {
		d.goTo(t.Pickup)
		if t.Drop != nil {
			d.PickUp(id)
		}
	}
	if t.Drop != nil {
		d.goTo(t.Drop)
	}
}

// goTo drives to a place and stands there. Of one that nobody has found on a map it is where the
// driver is.
func (d *Driver) goTo(p *tracking.Place) {
	d.k.t.Helper()
	if p.LngLat != nil {
		d.DriveTo(*p.LngLat)
	}
	d.Stay(moment)
}
