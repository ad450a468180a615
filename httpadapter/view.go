package httpadapter

import (
	"math"
	"reflect"
	"slices"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// view is what the holder of a tracking link sees.
type view struct {
	Kind       tracking.SubjectKind `json:"kind"`
	Type       tracking.TaskType    `json:"type,omitempty"`
	Status     string               `json:"status"`
	Outcome    tracking.Outcome     `json:"outcome"`
	ReasonCode tracking.ReasonCode  `json:"reason_code"`
	OrderID    string               `json:"order_id"`
	Note       string               `json:"customer_note"`
	Earlier    *earlierTry          `json:"earlier,omitempty"`
	Driver     *viewDriver          `json:"driver,omitempty"`
	Place      *place               `json:"place,omitempty"`
	Leg        tracking.Leg         `json:"leg,omitempty"`
	Time       timeText             `json:"time,omitempty"`
	Window     *window              `json:"window,omitempty"`
	Promised   timeText             `json:"promised,omitempty"`
	Phase      tracking.Phase       `json:"phase,omitempty"`
	// how many stops of the driver's come first
	StopsBefore *int          `json:"stops_before,omitempty"`
	StartedAt   timeText      `json:"started_at,omitempty"`
	PickedUpAt  timeText      `json:"picked_up_at,omitempty"`
	EndedAt     timeText      `json:"ended_at,omitempty"`
	Position    *viewPosition `json:"position,omitempty"`
	Path        []point       `json:"path"`
	ETA         *viewETA      `json:"eta,omitempty"`
	PIN         string        `json:"pin,omitempty"`
	ReceivedBy  string        `json:"received_by,omitempty"`
	Photos      []string      `json:"photos,omitempty"`
}

// move is the step from one view to the next while the driver does nothing but move: position, eta,
// stops_before and phase replace the former ones (none is none now), and path_add lengthens the path.
type move struct {
	Position    *viewPosition  `json:"position"`
	PathAdd     []point        `json:"path_add"`
	ETA         *viewETA       `json:"eta,omitempty"`
	StopsBefore *int           `json:"stops_before,omitempty"`
	Phase       tracking.Phase `json:"phase,omitempty"`
}

// earlierTry is how a task ended that is tried again.
type earlierTry struct {
	Outcome    tracking.Outcome    `json:"outcome"`
	ReasonCode tracking.ReasonCode `json:"reason_code"`
	EndedAt    timeText            `json:"ended_at"`
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
	LngLat   point    `json:"lnglat"`
	Time     timeText `json:"time"`
	Accuracy *float64 `json:"accuracy,omitempty"` // metres
	Bearing  *float64 `json:"bearing,omitempty"`  // degrees, clockwise from north
	Live     bool     `json:"live"`
}

// site is the look of an application's tracking pages.
func (h *Handler) site(app tracking.AppID) web.Site {
	if site, own := h.opts.Sites[app]; own {
		return site
	}
	return h.opts.Site
}

// view is the state of a link as its site allows it to be shown.
func (h *Handler) view(v tracking.Tracking) view {
	if !h.site(v.App).ShowProof {
		v.ReceivedBy, v.Photos = "", nil
	}
	return viewOf(v)
}

// viewOf is the state of a link as it goes over the wire.
func viewOf(v tracking.Tracking) view {
	w := view{
		Kind: v.Kind, Type: v.Type, Status: v.Status, Outcome: v.Outcome, ReasonCode: v.ReasonCode,
		OrderID: v.OrderID, Note: v.CustomerNote, Leg: v.Leg,
		Time: timeOf(v.Time), Window: windowOf(v.Window), Promised: timeOf(v.Promised), Phase: v.Phase,
		StopsBefore: v.StopsBefore, PIN: v.PIN, ReceivedBy: v.ReceivedBy, Photos: v.Photos,
		StartedAt: timeOf(v.StartedAt), PickedUpAt: timeOf(v.PickedUpAt), EndedAt: timeOf(v.EndedAt),
		Path: make([]point, 0, len(v.Path)),
	}
	if e := v.Earlier; e != nil {
		w.Earlier = &earlierTry{e.Outcome, e.ReasonCode, timeOf(e.EndedAt)}
	}
	if v.DriverName != "" {
		w.Driver = &viewDriver{v.DriverName}
	}
	if v.Place != nil {
		w.Place = &place{Address: v.Place.Address}
		if v.Place.LngLat != nil {
			at := viewPoint(*v.Place.LngLat)
			w.Place.LngLat = &at
		}
	}
	if p := v.Position; p != nil {
		w.Position = &viewPosition{
			LngLat: viewPoint(p.LngLat), Time: timeOf(p.Time), Accuracy: known(p.Accuracy), Bearing: known(p.Bearing),
			Live: p.Live,
		}
	}
	w.ETA = etaOf(v.ETA)
	for _, p := range v.Path {
		w.Path = append(w.Path, viewPoint(p))
	}
	w.Path = slices.Compact(w.Path)
	return w
}

func etaOf(e *tracking.ETA) *viewETA {
	if e == nil {
		return nil
	}
	return &viewETA{timeOf(e.Time), timeOf(e.ComputedAt), e.Source}
}

// viewPoint is a point to 6 decimals, a tenth of a metre: no phone knows more, and digits are most
// of what a watcher is sent.
func viewPoint(p tracking.LngLat) point {
	round := func(degrees float64) float64 { return math.Round(degrees*1e6)/1e6 + 0 } // + 0: there is no -0
	return point{round(p.Lng), round(p.Lat)}
}

func known(r tracking.Reading) *float64 {
	if !r.Known {
		return nil
	}
	return &r.Value
}

// moveTo is the step to the next view, if it is one: the driver is still shown, the path goes on
// from where it was, and nothing else is different.
func (w view) moveTo(next view) (move, bool) {
	n := len(w.Path)
	if w.Position == nil || next.Position == nil || len(next.Path) < n || !slices.Equal(w.Path, next.Path[:n]) {
		return move{}, false
	}
	still := next
	still.Position, still.Path, still.ETA = w.Position, w.Path, w.ETA
	still.StopsBefore, still.Phase = w.StopsBefore, w.Phase
	if !reflect.DeepEqual(w, still) {
		return move{}, false
	}
	return move{next.Position, next.Path[n:], next.ETA, next.StopsBefore, next.Phase}, true
}
