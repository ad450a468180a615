package httpadapter

import (
	"fmt"
	"math"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
)

// maxFixes is how many fixes one call may carry.
const maxFixes = tracking.MaxBatch

type recordFixes struct {
	Fixes strict.Elements[fix] `json:"fixes" strict:"required"`
}

type fix struct {
	LngLat   *tracking.LngLat `json:"lnglat"`
	Time     time.Time        `json:"time"`
	EventID  string           `json:"event_id"`
	Accuracy tracking.Reading `json:"accuracy"` // metres
	Speed    tracking.Reading `json:"speed"`    // metres a second
	Bearing  tracking.Reading `json:"bearing"`  // degrees, clockwise from north
	Battery  tracking.Reading `json:"battery"`  // 0 to 1
}

// driverFixes records a batch. What is wrong with one fix is its outcome and not the batch's: a
// phone sends the head of its queue until that is taken.
func (h *Handler) driverFixes(r *request, b recordFixes) (answer, error) {
	elements, more := b.Fixes.Take(maxFixes)
	if more {
		return nil, &tracking.Error{
			Code: tracking.ErrTooLarge, Field: "fixes",
			Message: fmt.Sprintf("The field fixes has more than %d entries; send them in parts.", maxFixes),
		}
	}
	outcomes, err := r.svc.RecordFixes(r.Context(), r.driver, mapped(elements, fixOf))
	if err != nil {
		return nil, err
	}
	return answerFixes("Fixes recorded", outcomes)
}

// fixOf is one fix. One that cannot be read becomes one that the Service finds invalid, as it does
// those that are wrong in themselves.
func fixOf(e strict.Judged[fix]) tracking.Fix {
	b := e.Value
	if e.Err != nil || b.LngLat == nil {
		return tracking.Fix{LngLat: tracking.LngLat{Lng: math.NaN(), Lat: math.NaN()}}
	}
	return tracking.Fix{
		LngLat: *b.LngLat, Time: b.Time, EventID: b.EventID,
		Accuracy: b.Accuracy, Speed: b.Speed, Bearing: b.Bearing, Battery: b.Battery,
	}
}
