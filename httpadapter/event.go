package httpadapter

import "github.com/seed-8aba7b13/tracking"

// events lists events, of one subject if the query names it, or those that could not be delivered.
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
	f.Dead = r.query.True("dead")
	var named bool
	if f.Outbox, named = r.query.Text("outbox"); named && !f.Dead {
		r.query.Fail("outbox", "must be given together with dead")
	}
	f.After = r.query.Filter("after")
	f.Limit = r.limit()
	if err := r.query.Err(); err != nil {
		return nil, err
	}
	events, more, err := r.svc.Events(r.Context(), f)
	if err != nil {
		return nil, err
	}
	return ok("Events", list{"events": mapped(events, eventOf), "has_more": more})
}

// maxReplay is how many events one call may have sent again.
const maxReplay = 1000

type replay struct {
	Outbox string   `json:"outbox" strict:"lookup"`
	IDs    []string `json:"ids" strict:"lookup,required"`
}

func (h *Handler) replayEvents(r *request, b replay) (answer, error) {
	if n := len(b.IDs); n == 0 || n > maxReplay {
		return nil, &tracking.Error{Code: tracking.ErrInvalid, Field: "ids", Message: "ids must hold from 1 to 1000 ids."}
	}
	if err := r.svc.Replay(r.Context(), b.Outbox, b.IDs...); err != nil {
		return nil, err
	}
	return ok("Events replayed", nil)
}
