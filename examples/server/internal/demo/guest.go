package demo

import (
	"context"
	"errors"
	"math"

	"github.com/seed-8aba7b13/tracking"
)

const (
	offence = 60 // ticks until a guest who did not want an order gets the next one
	asking  = 30 // ticks that the browser may take to say where it is
)

// guest is a person who tries the driver app. On duty with nothing to do, the guest gets an order
// nearby, wherever that is.
type guest struct {
	id tracking.DriverID

	task   tracking.TaskID // the guest's order; "": none
	setOff bool            // with it
	wait   int             // ticks until the next one
}

// step is a second of a dispatcher's care for a guest. It returns the order that the guest has just
// set off with, if any.
func (g *guest) step(ctx context.Context, d *dispatcher) (*tracking.Task, error) {
	if g.task != "" {
		return g.watch(ctx, d)
	}
	who, err := d.svc.Driver(ctx, g.id)
	if errors.Is(err, tracking.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !who.Available || who.OpenTasks() > 0 {
		g.wait = max(g.wait, leisure)
		return nil, nil
	}
	if g.wait--; g.wait > 0 || g.wait > -asking && !who.Position.Located() {
		return nil, nil
	}
	t, err := d.create(ctx, tracking.NewTask{
		Pickup: d.near(who, 120, 60, "The bakery around the corner"),
		Drop:   d.near(who, -180, 250, "The blue door across the park"),
	})
	if err != nil {
		return nil, err
	}
	g.task, g.setOff = t.ID, false
	_, err = d.svc.AssignTask(ctx, t.ID, g.id)
	return nil, err
}

// watch sees to it that an order that the guest does not have any more is not left over.
func (g *guest) watch(ctx context.Context, d *dispatcher) (*tracking.Task, error) {
	t, err := d.svc.Task(ctx, g.task)
	switch {
	case errors.Is(err, tracking.ErrNotFound), err == nil && t.Status == tracking.StatusCompleted:
		g.task, g.wait = "", leisure
		return nil, nil
	case err != nil:
		return nil, err
	case t.DriverID == "":
		if _, err := d.svc.CancelTask(ctx, g.task, tracking.Reason{Text: "Nobody wanted it."}); err != nil &&
			!errors.Is(err, tracking.ErrConflict) {
			return nil, err
		}
		g.task, g.wait = "", offence
		return nil, nil
	case t.DriverID != g.id: // somebody has given it away
		g.task, g.wait = "", leisure
		return nil, nil
	case t.Status == tracking.StatusInProgress && !g.setOff:
		g.setOff = true
		return &t, nil
	}
	return nil, nil
}

// near is a place so many metres north and east of where a driver is; of one who does not say where
// that is, of the beginning of the course.
func (d *dispatcher) near(who tracking.Driver, north, east float64, address string) *tracking.Place {
	from := d.course.points[0]
	if who.Position.Located() {
		from = who.Position.Fix.LngLat
	}
	const degree = 111_195 // metres of latitude
	lat := max(-89, min(89, from.Lat+north/degree))
	lng := math.Remainder(from.Lng+east/degree/math.Cos(lat*math.Pi/180), 360)
	return &tracking.Place{LngLat: &tracking.LngLat{Lng: lng, Lat: lat}, Address: address}
}
