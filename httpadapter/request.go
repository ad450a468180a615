package httpadapter

import "github.com/seed-8aba7b13/tracking"

// requestTrip asks a driver for a trip. The user is looked up, and so the form of that id is not
// judged.
type requestTrip struct {
	TrackingID tracking.TrackingID `json:"tracking_id" strict:"required"`
	UserID     tracking.DriverID   `json:"user_id" strict:"lookup,required"`
	Message    string              `json:"message"`
	Dest       string              `json:"dest" strict:"place"`
	Desc       string              `json:"desc"`
}

func (h *Handler) requestTrip(r *request, b requestTrip) (answer, error) {
	err := r.svc.RequestTrip(r.Context(), tracking.NewRequest{
		DriverID: b.UserID, TrackingID: b.TrackingID, Message: b.Message, Dest: b.Dest, Desc: b.Desc,
	})
	if err != nil {
		return nil, err
	}
	return ok("Request sent to Operator", nil)
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
