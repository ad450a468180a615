package httpadapter

import "github.com/seed-8aba7b13/tracking"

func oneTrip(message string) func(tracking.Trip, error) (answer, error) {
	return func(t tracking.Trip, err error) (answer, error) {
		if err != nil {
			return nil, err
		}
		return ok(message, list{"trip": tripOf(t)})
	}
}

func (h *Handler) listTrips(r *request) (answer, error) {
	return trips(r, tracking.TripFilter{Page: r.page(), DriverID: tracking.DriverID(r.query.Filter("operator_id"))})
}

// trips lists those that the filter and the rest of the query ask for.
func trips(r *request, f tracking.TripFilter) (answer, error) {
	f.TrackingID, f.Status = tracking.TrackingID(r.query.Filter("tracking_id")), r.tripStatus()
	if err := r.query.Err(); err != nil {
		return nil, err
	}
	trips, more, err := r.svc.Trips(r.Context(), f)
	if err != nil {
		return nil, err
	}
	return ok("Trips", list{"trips": mapped(trips, tripOf), "has_more": more})
}

func (h *Handler) getTrip(r *request) (answer, error) {
	t, err := r.svc.Trip(r.Context(), r.tripID())
	if err != nil {
		return nil, err
	}
	return ok("Trip", list{"trip": tripDetailOf(t)})
}

func (h *Handler) tripLink(r *request) (answer, error) {
	token, err := r.svc.TripLink(r.Context(), r.tripID())
	if err != nil {
		return nil, err
	}
	return ok("Trip - Web Url Generated", list{"webUrl": trackingURL(h.base(r), token)})
}

type revokeTripLink struct {
	TripID tracking.TripID `json:"trip_id" strict:"id"`
}

func (h *Handler) revokeTripLink(r *request, b revokeTripLink) (answer, error) {
	if err := r.svc.RevokeTripLink(r.Context(), b.TripID); err != nil {
		return nil, err
	}
	return ok("Trip - Web Url Revoked", nil)
}

// What a driver does with the app token.

func (h *Handler) driverTrips(r *request) (answer, error) {
	return trips(r, tracking.TripFilter{Page: r.page(), DriverID: r.driver, Person: r.person})
}

type startTrip struct {
	TrackingID tracking.TrackingID `json:"tracking_id"`
	step
}

func (h *Handler) driverStartTrip(r *request, b startTrip) (answer, error) {
	return oneTrip("Trip started")(r.svc.StartTrip(r.Context(), r.driver, b.TrackingID, b.toStep()))
}

func (h *Handler) driverStopTrip(r *request, b step) (answer, error) {
	return oneTrip("Trip stopped")(r.svc.StopTrip(r.Context(), r.driver, r.tripID(), b.toStep()))
}

func (h *Handler) driverDiscardTrip(r *request, b step) (answer, error) {
	return oneTrip("Trip discarded")(r.svc.DiscardTrip(r.Context(), r.driver, r.tripID(), b.toStep()))
}
