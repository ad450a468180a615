package httpadapter

import (
	"fmt"
	"math"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
)

// maxFixes is how many fixes one call may carry.
const maxFixes = 1000

// driverFixes records a batch. What is wrong with one fix is its outcome and not the batch's: a phone sends the head of its queue until that is taken.
func (h *Handler) driverFixes(r *request) (answer, error) {
	h.allowSlowBody(r)
	o, err := r.object(maxFixesBody, false)
	if err != nil {
		return nil, err
	}
	elements, more, given := o.Elements("fixes", maxFixes)
	if !given {
		o.Fail("fixes", "is required")
	}
	if err := o.Err(); err != nil {
		return nil, err
	}
	if more {
		return nil, &tracking.Error{Code: tracking.ErrTooLarge, Field: "fixes", Message: fmt.Sprintf("The field fixes has more than %d entries; send them in parts.", maxFixes)}
	}
	fixes := make([]tracking.Fix, len(elements))
	for i, e := range elements {
		fixes[i] = readFix(e)
	}
	outcomes, err := r.svc.RecordFixes(r.Context(), r.driver, fixes)
	if err != nil {
		return nil, err
	}
	return ok("Fixes recorded", list{"outcomes": outcomes})
}

// readFix reads one fix. One that cannot be read becomes one that the Service finds invalid, as it does those that are wrong in themselves.
func readFix(e strict.Element) tracking.Fix {
	invalid := tracking.Fix{LngLat: tracking.LngLat{Lng: math.NaN(), Lat: math.NaN()}}
	o, isObject := e.Object()
	if !isObject {
		return invalid
	}
	var f tracking.Fix
	if p := o.LngLat("lnglat"); p != nil {
		f.LngLat = *p
	} else {
		f.LngLat = invalid.LngLat
	}
	f.Time, _ = o.Time("time")
	f.EventID, _ = o.Text("event_id")
	for name, to := range map[string]*tracking.Reading{"accuracy": &f.Accuracy, "speed": &f.Speed, "bearing": &f.Bearing, "battery": &f.Battery} {
		if v, ok := o.Float(name); ok {
			*to = tracking.Known(v)
		}
	}
	if o.Err() != nil {
		return invalid
	}
	return f
}
