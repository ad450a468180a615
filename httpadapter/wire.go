package httpadapter

import (
	"strconv"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// The shapes of the interface, apart from the types of package tracking: a change there never changes an answer by itself.

// timeText is a time as it is sent: UTC, always with milliseconds. The zero time is left out.
type timeText string

const timeLayout = "2006-01-02T15:04:05.000Z"

func timeOf(t time.Time) timeText {
	if t.IsZero() {
		return ""
	}
	return timeText(t.UTC().Format(timeLayout))
}

// point is [longitude, latitude].
type point [2]float64

func pointOf(p *tracking.LngLat) *point {
	if p == nil {
		return nil
	}
	return &point{p.Lng, p.Lat}
}

// latLng is "latitude,longitude", as trips have it, in shortest decimals without exponent; "" for none.
func latLng(p *tracking.LngLat) string {
	if p == nil {
		return ""
	}
	return decimal(p.Lat) + "," + decimal(p.Lng)
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

type contact struct {
	Name   string `json:"name"`
	Mobile string `json:"mobile"`
}

type place struct {
	LngLat   *point   `json:"lnglat,omitempty"`
	Address  string   `json:"address"`
	Customer *contact `json:"customer,omitempty"`
}

func placeOf(p *tracking.Place) *place {
	if p == nil {
		return nil
	}
	w := &place{LngLat: pointOf(p.LngLat), Address: p.Address}
	if p.Customer != nil {
		w.Customer = &contact{p.Customer.Name, p.Customer.Mobile}
	}
	return w
}

type task struct {
	ID          tracking.TaskID     `json:"task_id"`
	Type        tracking.TaskType   `json:"type"`
	Time        timeText            `json:"time"`
	Notes       string              `json:"notes"`
	Status      tracking.TaskStatus `json:"status"`
	Outcome     tracking.Outcome    `json:"outcome"`
	Reason      string              `json:"reason"`
	Pickup      *place              `json:"pickup,omitempty"`
	Drop        *place              `json:"drop,omitempty"`
	OrderID     string              `json:"order_id"`
	DriverID    tracking.DriverID   `json:"driver_id"`
	CreatedAt   timeText            `json:"created_at"`
	UpdatedAt   timeText            `json:"updated_at"`
	AssignedAt  timeText            `json:"assigned_at,omitempty"`
	StartedAt   timeText            `json:"started_at,omitempty"`
	PickedUpAt  timeText            `json:"picked_up_at,omitempty"`
	CompletedAt timeText            `json:"completed_at,omitempty"`
}

func taskOf(t tracking.Task) task {
	return task{
		ID: t.ID, Type: t.Type, Time: timeOf(t.Time), Notes: t.Notes, Status: t.Status, Outcome: t.Outcome, Reason: t.Reason,
		Pickup: placeOf(t.Pickup), Drop: placeOf(t.Drop), OrderID: t.OrderID, DriverID: t.DriverID,
		CreatedAt: timeOf(t.CreatedAt), UpdatedAt: timeOf(t.UpdatedAt), AssignedAt: timeOf(t.AssignedAt), StartedAt: timeOf(t.StartedAt),
		PickedUpAt: timeOf(t.PickedUpAt), CompletedAt: timeOf(t.CompletedAt),
	}
}

// withoutContacts leaves out whom to meet.
func (t task) withoutContacts() task {
	for _, p := range []**place{&t.Pickup, &t.Drop} {
		if *p != nil {
			*p = &place{LngLat: (*p).LngLat, Address: (*p).Address}
		}
	}
	return t
}

type trip struct {
	ID            tracking.TripID     `json:"_id"`
	CreatedAt     timeText            `json:"created_at"`
	TTL           timeText            `json:"ttl"`
	TrackingID    tracking.TrackingID `json:"tracking_id"`
	Status        string              `json:"status"`
	StartsAt      string              `json:"starts_at"`
	EndsAt        string              `json:"ends_at"`
	StartLocation string              `json:"start_location"`
	EndLocation   string              `json:"end_location"`
	DriverID      tracking.DriverID   `json:"agent_id"`
	StartedAt     timeText            `json:"started_at"`
	EndedAt       timeText            `json:"ended_at,omitempty"`
}

func tripOf(t tracking.Trip) trip {
	return trip{
		ID: t.ID, CreatedAt: timeOf(t.CreatedAt), TTL: timeOf(t.TTL), TrackingID: t.TrackingID, Status: strconv.Itoa(int(t.Status)),
		StartsAt: latLng(t.StartsAt), EndsAt: latLng(t.EndsAt), StartLocation: t.StartLocation, EndLocation: t.EndLocation, DriverID: t.DriverID,
		StartedAt: timeOf(t.StartedAt), EndedAt: timeOf(t.EndedAt),
	}
}

type tripDetail struct {
	trip
	Distance      float64 `json:"distance"`       // metres
	MovingSeconds float64 `json:"moving_seconds"` // whole milliseconds
}

func tripDetailOf(t tracking.TripDetail) tripDetail {
	return tripDetail{tripOf(t.Trip), t.Distance, float64(t.Moving.Milliseconds()) / 1000}
}

type tripRequest struct {
	TrackingID tracking.TrackingID `json:"tracking_id"`
	Message    string              `json:"message"`
	Dest       *place              `json:"dest,omitempty"`
	Desc       string              `json:"desc"`
	DescHTML   string              `json:"desc_html"`
	CreatedAt  timeText            `json:"created_at"`
}

type operator struct {
	ID         tracking.DriverID `json:"driver_id"`
	Name       string            `json:"name"`
	Mobile     string            `json:"mobile"`
	Email      string            `json:"email"`
	Available  bool              `json:"availability"`
	LngLat     *point            `json:"lnglat,omitempty"`
	LocatedAt  timeText          `json:"located_at,omitempty"`
	LastSeenAt timeText          `json:"last_seen_at,omitempty"`
	Properties map[string]string `json:"properties"`
	OpenTasks  int               `json:"open_tasks"`
	Distance   *float64          `json:"distance,omitempty"` // metres
	CreatedAt  timeText          `json:"created_at"`
	UpdatedAt  timeText          `json:"updated_at"`
}

func operatorOf(d tracking.Driver) operator {
	w := operator{
		ID: d.ID, Name: d.Name, Mobile: d.Mobile, Email: d.Email, Available: d.Available, LastSeenAt: timeOf(d.Position.SeenAt),
		Properties: d.Properties, OpenTasks: d.OpenTasks, CreatedAt: timeOf(d.CreatedAt), UpdatedAt: timeOf(d.UpdatedAt),
	}
	if w.Properties == nil {
		w.Properties = map[string]string{}
	}
	if d.Position.Located() {
		w.LngLat, w.LocatedAt = pointOf(&d.Position.Fix.LngLat), timeOf(d.Position.Fix.Time)
	}
	return w
}

type event struct {
	ID         string             `json:"id"`
	Type       tracking.EventType `json:"type"`
	Time       timeText           `json:"time"`
	RecordedAt timeText           `json:"recorded_at"`
	Actor      string             `json:"actor"`
	Subject    subject            `json:"subject"`
	Seq        int64              `json:"seq"`
	Data       map[string]string  `json:"data"`
}

type subject struct {
	Kind tracking.SubjectKind `json:"kind"`
	ID   string               `json:"id"`
}

func eventOf(e tracking.Event) event {
	w := event{e.ID, e.Type, timeOf(e.Time), timeOf(e.RecordedAt), e.Actor, subject{e.Subject.Kind, e.Subject.ID}, e.Seq, e.Data}
	if w.Data == nil {
		w.Data = map[string]string{}
	}
	return w
}

// view is what the holder of a tracking link sees.
type view struct {
	Kind       tracking.SubjectKind `json:"kind"`
	Type       tracking.TaskType    `json:"type,omitempty"`
	Status     string               `json:"status"`
	Outcome    tracking.Outcome     `json:"outcome"`
	OrderID    string               `json:"order_id"`
	Driver     *viewDriver          `json:"driver,omitempty"`
	Place      *place               `json:"place,omitempty"`
	Time       timeText             `json:"time,omitempty"`
	StartedAt  timeText             `json:"started_at,omitempty"`
	PickedUpAt timeText             `json:"picked_up_at,omitempty"`
	EndedAt    timeText             `json:"ended_at,omitempty"`
	Position   *viewPosition        `json:"position,omitempty"`
	Path       []point              `json:"path"`
	ETA        *viewETA             `json:"eta,omitempty"`
}

type viewETA struct {
	Time       timeText `json:"time"`
	ComputedAt timeText `json:"computed_at"`
	Source     string   `json:"source"` // router or estimate
}

type viewDriver struct {
	Name string `json:"name"`
}

type viewPosition struct {
	LngLat  point    `json:"lnglat"`
	Time    timeText `json:"time"`
	Bearing *float64 `json:"bearing,omitempty"` // degrees, clockwise from north
	Live    bool     `json:"live"`
}

func viewOf(v tracking.Tracking) view {
	w := view{
		Kind: v.Kind, Type: v.Type, Status: v.Status, Outcome: v.Outcome, OrderID: v.OrderID, Time: timeOf(v.Time),
		StartedAt: timeOf(v.StartedAt), PickedUpAt: timeOf(v.PickedUpAt), EndedAt: timeOf(v.EndedAt), Path: make([]point, 0, len(v.Path)),
	}
	if v.DriverName != "" {
		w.Driver = &viewDriver{v.DriverName}
	}
	if v.Place != nil {
		w.Place = &place{LngLat: pointOf(v.Place.LngLat), Address: v.Place.Address}
	}
	if p := v.Position; p != nil {
		w.Position = &viewPosition{LngLat: *pointOf(&p.LngLat), Time: timeOf(p.Time), Live: p.Live}
		if p.Bearing.Known {
			w.Position.Bearing = &p.Bearing.Value
		}
	}
	if e := v.ETA; e != nil {
		w.ETA = &viewETA{timeOf(e.Time), timeOf(e.ComputedAt), e.Source}
	}
	for _, p := range v.Path {
		w.Path = append(w.Path, *pointOf(&p))
	}
	return w
}

// mapped applies a conversion to a list; an empty list is [] in JSON, never null.
func mapped[T, W any](in []T, convert func(T) W) []W {
	out := make([]W, len(in))
	for i, v := range in {
		out[i] = convert(v)
	}
	return out
}
