package httpadapter

import "github.com/seed-8aba7b13/tracking"

func (h *Handler) events(r *request) (answer, error) {
	var f tracking.EventFilter
	for _, by := range []struct {
		name string
		kind tracking.SubjectKind
	}{{"task_id", tracking.KindTask}, {"driver_id", tracking.KindDriver}, {"trip_id", tracking.KindTrip}} {
		id := r.query.Filter(by.name)
		if id == "" {
			continue
		}
		if f.Subject.ID != "" {
			r.query.Fail(by.name, "must not be given together with another id")
		}
		f.Subject = tracking.Subject{Kind: by.kind, ID: id}
	}
	f.After = r.query.Filter("after")
	f.Limit, _ = r.query.Int("limit", 1, 1000, "must be a number from 1 to 1000, in plain digits")
	if err := r.query.Err(); err != nil {
		return nil, err
	}
	events, more, err := r.svc.Events(r.Context(), f)
	if err != nil {
		return nil, err
	}
	return ok("Events", list{"events": mapped(events, eventOf), "has_more": more})
}
