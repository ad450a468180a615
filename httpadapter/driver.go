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
	f := tracking.DriverFilter{
		Page: r.page(), Near: r.query.Position("position"), Properties: r.query.Prefixed("properties."),
	}
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

// ifVersion is the version that the caller has seen of what is to be changed; 0: whatever it is.
type ifVersion struct {
	Version int `json:"version"`
}

// seen has the call change what the caller has seen, and nothing newer.
func (r *request) seen(b ifVersion) *request {
	r.svc = r.svc.IfVersion(int64(b.Version))
	return r
}

// saveDriver leaves as it is what is absent.
type saveDriver struct {
	Name       *string           `json:"name"`
	Mobile     *string           `json:"mobile"`
	Email      *string           `json:"email"`
	Properties map[string]string `json:"properties"`
	LngLat     *tracking.LngLat  `json:"lnglat"`
	ID         tracking.DriverID `json:"driver_id"`
	Available  *bool             `json:"availability"`
	MaxOpen    *int              `json:"max_open_tasks"`
	ifVersion
}

func (h *Handler) saveDriver(r *request, b saveDriver) (answer, error) {
	return oneDriver("Driver saved")(r.seen(b.ifVersion).svc.SaveDriver(r.Context(), tracking.DriverUpdate{
		ID: b.ID, Name: b.Name, Mobile: b.Mobile, Email: b.Email,
		Available: b.Available, MaxOpenTasks: b.MaxOpen, Properties: b.Properties, LngLat: b.LngLat,
	}))
}

type revokeDriver struct {
	DriverID tracking.DriverID `json:"driver_id" strict:"id"`
	ifVersion
}

func (h *Handler) revokeDriver(r *request, b revokeDriver) (answer, error) {
	if err := r.seen(b.ifVersion).svc.RevokeTokens(r.Context(), b.DriverID); err != nil {
		return nil, err
	}
	return ok("Driver revoked", nil)
}

type deleteDriver struct {
	DriverID tracking.DriverID `json:"driver_id" strict:"id"`
	Force    bool              `json:"force"`
	ifVersion
}

func (h *Handler) deleteDriver(r *request, b deleteDriver) (answer, error) {
	svc := r.seen(b.ifVersion).svc
	erase := svc.DeleteDriver
	if b.Force {
		erase = svc.ForceDeleteDriver
	}
	if err := erase(r.Context(), b.DriverID); err != nil {
		return nil, err
	}
	return ok("Driver deleted", nil)
}

func oneRoute(message string) func(tracking.Route, error) (answer, error) {
	return func(r tracking.Route, err error) (answer, error) {
		if err != nil {
			return nil, err
		}
		return ok(message, routeOf(r))
	}
}

func (h *Handler) getRoute(r *request) (answer, error) {
	id := r.query.ID("driver_id")
	if err := r.query.Err(); err != nil {
		return nil, err
	}
	return oneRoute("Route")(r.svc.Route(r.Context(), tracking.DriverID(id)))
}

// routeOrder is an order of stops, and the version of the route that it was made from.
type routeOrder struct {
	Stops   strict.Elements[stopBody] `json:"stops" strict:"required"`
	Version int                       `json:"version"`
}

type stopBody struct {
	TaskID tracking.TaskID `json:"task_id" strict:"id"`
	Leg    leg             `json:"leg" strict:"required"`
}

// leg is one of the two that a task can have.
type leg string

// Words are the two.
func (leg) Words() []string { return []string{string(tracking.LegPickup), string(tracking.LegDrop)} }

// toStops reads one stop more than there can be, so that the service says that there are too many. Nil
// is none given.
func toStops(e strict.Elements[stopBody]) (stops []tracking.Stop, err error) {
	list, err := e.All("stops", tracking.MaxStops+1)
	if e.Given() {
		stops = []tracking.Stop{}
	}
	for _, s := range list {
		stops = append(stops, tracking.Stop{TaskID: s.TaskID, Leg: tracking.Leg(s.Leg)})
	}
	return stops, err
}

type setRoute struct {
	DriverID tracking.DriverID `json:"driver_id" strict:"id"`
	routeOrder
}

func (h *Handler) setRoute(r *request, b setRoute) (answer, error) {
	stops, err := toStops(b.Stops)
	if err != nil {
		return nil, err
	}
	return oneRoute("Route saved")(r.svc.SetRoute(r.Context(), b.DriverID, stops, int64(b.Version)))
}

type handOver struct {
	From    tracking.DriverID `json:"from" strict:"id"`
	To      tracking.DriverID `json:"to" strict:"id"`
	TaskIDs []tracking.TaskID `json:"task_ids" strict:"lookup"`
	Force   bool              `json:"force"`
}

func (h *Handler) handOver(r *request, b handOver) (answer, error) {
	tasks, err := r.svc.HandOver(r.Context(), tracking.HandOverRequest{
		From: b.From, To: b.To, Tasks: b.TaskIDs, Force: b.Force,
	})
	if err != nil {
		return nil, err
	}
	return ok("Tasks handed over", list{"task_list": mapped(tasks, h.taskOf)})
}

// What a driver does with the app token.

func (h *Handler) driverRoute(r *request) (answer, error) {
	return oneRoute("Route")(r.svc.Route(r.Context(), r.driver))
}

func (h *Handler) driverReorder(r *request, b routeOrder) (answer, error) {
	stops, err := toStops(b.Stops)
	if err != nil {
		return nil, err
	}
	return oneRoute("Route saved")(r.svc.ReorderRoute(r.Context(), r.driver, stops, int64(b.Version)))
}

// driverMe shows the driver, and what the service lets one do: the words that say why a task failed
// or is declined, of which an app has to know the embedder's own, whether the order of the stops can
// be changed, and for how long a step can be taken back, in seconds.
func (h *Handler) driverMe(r *request) (answer, error) {
	d, err := r.svc.Driver(r.Context(), r.driver)
	if err != nil {
		return nil, err
	}
	o := r.svc.Options()
	return ok("Driver", list{
		"driver": operatorOf(d), "reasons": r.svc.Reasons(),
		"reorder": *o.DriversReorder, "undo_for": int64(o.UndoFor / time.Second),
	})
}

type setAvailability struct {
	Available bool      `json:"availability" strict:"required"`
	At        time.Time `json:"at"`
}

func (h *Handler) driverAvailability(r *request, b setAvailability) (answer, error) {
	message := "Driver unavailable"
	if b.Available {
		message = "Driver available"
	}
	return oneDriver(message)(r.svc.SetAvailability(r.Context(), r.driver, b.Available, b.At))
}
