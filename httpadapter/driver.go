package httpadapter

import (
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
)

func oneDriver(message string) func(tracking.Driver, error) (answer, error) {
	return func(d tracking.Driver, err error) (answer, error) {
		if err != nil {
			return nil, err
		}
		return ok(message, list{"driver": operatorOf(d)})
	}
}

func (h *Handler) listDrivers(r *request) (answer, error) {
	f := tracking.DriverFilter{Page: r.page(), Near: r.query.Position("position"), Properties: r.query.Prefixed("properties.")}
	if v, ok := r.query.Bool("availability"); ok {
		f.Available = &v
	}
	if err := r.query.Err(); err != nil {
		return nil, err
	}
	drivers, more, err := r.svc.Drivers(r.Context(), f)
	if err != nil {
		return nil, err
	}
	operators := mapped(drivers, operatorOf)
	if f.Near != nil {
		for i := range operators {
			operators[i].Distance = &drivers[i].Distance
		}
	}
	return ok("Drivers", list{"drivers": operators, "has_more": more})
}

func (h *Handler) getDriver(r *request) (answer, error) {
	id := r.query.ID("driver_id")
	if err := r.query.Err(); err != nil {
		return nil, err
	}
	return oneDriver("Driver")(r.svc.Driver(r.Context(), tracking.DriverID(id)))
}

// optionalText is nil when the member is absent.
func optionalText(o strict.Object, name string) *string {
	if v, ok := o.Text(name); ok {
		return &v
	}
	return nil
}

func (h *Handler) saveDriver(r *request) (answer, error) {
	o, err := r.json()
	if err != nil {
		return nil, err
	}
	n := tracking.SaveDriver{
		Name: optionalText(o, "name"), Mobile: optionalText(o, "mobile"), Email: optionalText(o, "email"),
		Properties: o.TextMap("properties"), LngLat: o.LngLat("lnglat"),
	}
	if id, ok := o.Text("driver_id"); ok {
		n.ID = tracking.DriverID(id)
	}
	if v, ok := o.Bool("availability"); ok {
		n.Available = &v
	}
	if err := o.Err(); err != nil {
		return nil, err
	}
	return oneDriver("Driver saved")(r.svc.SaveDriver(r.Context(), n))
}

// driverIDOf reads a body that names a driver and nothing else.
func (r *request) driverIDOf() (tracking.DriverID, error) {
	o, err := r.json()
	if err != nil {
		return "", err
	}
	id := o.ID("driver_id")
	return tracking.DriverID(id), o.Err()
}

func (h *Handler) revokeDriver(r *request) (answer, error) {
	id, err := r.driverIDOf()
	if err != nil {
		return nil, err
	}
	if err := r.svc.RevokeTokens(r.Context(), id); err != nil {
		return nil, err
	}
	return ok("Driver revoked", nil)
}

func (h *Handler) deleteDriver(r *request) (answer, error) {
	id, err := r.driverIDOf()
	if err != nil {
		return nil, err
	}
	if err := r.svc.DeleteDriver(r.Context(), id); err != nil {
		return nil, err
	}
	return ok("Driver deleted", nil)
}

// What a driver does with the app token.

func (h *Handler) driverMe(r *request) (answer, error) {
	return oneDriver("Driver")(r.svc.Driver(r.Context(), r.driver))
}

func (h *Handler) driverAvailability(r *request) (answer, error) {
	o, err := r.json()
	if err != nil {
		return nil, err
	}
	v, given := o.Bool("availability")
	if !given {
		o.Fail("availability", "is required")
	}
	at, _ := o.Time("at")
	if err := o.Err(); err != nil {
		return nil, err
	}
	message := "Driver unavailable"
	if v {
		message = "Driver available"
	}
	return oneDriver(message)(r.svc.SetAvailability(r.Context(), r.driver, v, at))
}

func readStep(o strict.Object) tracking.Step {
	at, _ := o.Time("at")
	return tracking.Step{At: at, LngLat: o.LngLat("lnglat")}
}

// ownTasks is how many open and how many completed tasks a driver is shown.
const ownTasks = 1000

// driverTasks lists the open tasks, and those completed within the last 24 hours, which is today wherever the driver is, without their contacts.
func (h *Handler) driverTasks(r *request) (answer, error) {
	tasks, err := h.tasksOf(r)
	if err != nil {
		return nil, err
	}
	return ok("Task List", list{"task_list": tasks})
}

func (h *Handler) tasksOf(r *request) ([]task, error) {
	f := tracking.TaskFilter{Page: tracking.Page{Limit: ownTasks}, DriverID: r.driver, Status: []tracking.TaskStatus{tracking.StatusAssigned, tracking.StatusInProgress}}
	open, _, err := r.svc.Tasks(r.Context(), f)
	if err != nil {
		return nil, err
	}
	f.Status, f.CompletedSince = []tracking.TaskStatus{tracking.StatusCompleted}, h.now().Add(-24*time.Hour)
	done, _, err := r.svc.Tasks(r.Context(), f)
	if err != nil {
		return nil, err
	}
	tasks := mapped(open, taskOf)
	for _, t := range done {
		tasks = append(tasks, taskOf(t).withoutContacts())
	}
	return tasks, nil
}

// now is the time by the Service's clock.
func (h *Handler) now() time.Time { return h.svc.Options().Now() }

func (h *Handler) driverStartTask(r *request) (answer, error) {
	o, err := r.optionalJSON()
	if err != nil {
		return nil, err
	}
	step := readStep(o)
	if err := o.Err(); err != nil {
		return nil, err
	}
	t, trip, err := r.svc.StartTask(r.Context(), r.driver, tracking.TaskID(r.path["task_id"]), step)
	if err != nil {
		return nil, err
	}
	return ok("Task started", list{"task": taskOf(t), "trip": tripOf(trip)})
}

func (h *Handler) driverPickUpTask(r *request) (answer, error) {
	o, err := r.optionalJSON()
	if err != nil {
		return nil, err
	}
	step := readStep(o)
	if err := o.Err(); err != nil {
		return nil, err
	}
	return oneTask("Task picked up")(r.svc.PickUpTask(r.Context(), r.driver, tracking.TaskID(r.path["task_id"]), step))
}

func (h *Handler) driverFinishTask(r *request) (answer, error) {
	o, err := r.optionalJSON()
	if err != nil {
		return nil, err
	}
	step, c := readStep(o), readCompletion(o)
	if err := o.Err(); err != nil {
		return nil, err
	}
	t, err := r.svc.FinishTask(r.Context(), r.driver, tracking.TaskID(r.path["task_id"]), c, step)
	if err != nil {
		return nil, err
	}
	data := list{"task": taskOf(t)}
	trips, _, err := r.svc.Trips(r.Context(), tracking.TripFilter{Page: tracking.Page{Limit: 1}, TrackingID: tracking.TrackingID(t.ID)})
	if err == nil && len(trips) > 0 && trips[0].DriverID == r.driver { // the task is completed, whatever becomes of reading its trip
		data["trip"] = tripOf(trips[0])
	}
	return ok("Task completed", data)
}

func (h *Handler) driverDeclineTask(r *request) (answer, error) {
	o, err := r.optionalJSON()
	if err != nil {
		return nil, err
	}
	step := readStep(o)
	reason, _ := o.Text("reason")
	if err := o.Err(); err != nil {
		return nil, err
	}
	t, err := r.svc.DeclineTask(r.Context(), r.driver, tracking.TaskID(r.path["task_id"]), reason, step)
	if err != nil {
		return nil, err
	}
	return ok("Task declined", list{"task": taskOf(t)})
}

func (h *Handler) driverTrips(r *request) (answer, error) {
	f := tracking.TripFilter{Page: r.page(), DriverID: r.driver, TrackingID: tracking.TrackingID(r.query.Filter("tracking_id"))}
	status, _ := r.query.Int("status", 0, 3, statusMessage)
	f.Status = tracking.TripStatus(status)
	if err := r.query.Err(); err != nil {
		return nil, err
	}
	trips, more, err := r.svc.Trips(r.Context(), f)
	if err != nil {
		return nil, err
	}
	return ok("Trips", list{"trips": mapped(trips, tripOf), "has_more": more})
}

func oneTrip(message string) func(tracking.Trip, error) (answer, error) {
	return func(t tracking.Trip, err error) (answer, error) {
		if err != nil {
			return nil, err
		}
		return ok(message, list{"trip": tripOf(t)})
	}
}

func (h *Handler) driverStartTrip(r *request) (answer, error) {
	o, err := r.json()
	if err != nil {
		return nil, err
	}
	id, _ := o.Text("tracking_id")
	step := readStep(o)
	if err := o.Err(); err != nil {
		return nil, err
	}
	return oneTrip("Trip started")(r.svc.StartTrip(r.Context(), r.driver, tracking.TrackingID(id), step))
}

func (h *Handler) driverStopTrip(r *request) (answer, error) {
	o, err := r.optionalJSON()
	if err != nil {
		return nil, err
	}
	step := readStep(o)
	if err := o.Err(); err != nil {
		return nil, err
	}
	return oneTrip("Trip stopped")(r.svc.StopTrip(r.Context(), r.driver, tracking.TripID(r.path["trip_id"]), step))
}

func (h *Handler) driverDiscardTrip(r *request) (answer, error) {
	o, err := r.optionalJSON()
	if err != nil {
		return nil, err
	}
	step := readStep(o)
	if err := o.Err(); err != nil {
		return nil, err
	}
	return oneTrip("Trip discarded")(r.svc.DiscardTrip(r.Context(), r.driver, tracking.TripID(r.path["trip_id"]), step))
}

func (h *Handler) driverRequests(r *request) (answer, error) {
	requests, err := r.svc.Requests(r.Context(), r.driver)
	if err != nil {
		return nil, err
	}
	return ok("Requests", list{"requests": mapped(requests, h.requestOf)})
}

func (h *Handler) requestOf(q tracking.Request) tripRequest {
	return tripRequest{q.TrackingID, q.Message, placeOf(q.Dest), q.Desc, h.cleanHTML(q.Desc), timeOf(q.CreatedAt)}
}
