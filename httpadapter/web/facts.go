package web

import (
	"encoding/json"
	"fmt"
	"time"
)

// tracking is what the page reads of the state that /track/{token}/state sends.
type tracking struct {
	Kind    string `json:"kind"` // task, trip
	Type    int    `json:"type"`
	Status  string `json:"status"`
	Outcome string `json:"outcome"`
	OrderID string `json:"order_id"`
	Driver  *struct {
		Name string `json:"name"`
	} `json:"driver"`
	Place *struct {
		Address string    `json:"address"`
		LngLat  []float64 `json:"lnglat"`
	} `json:"place"`
	Time       string `json:"time"`
	StartedAt  string `json:"started_at"`
	PickedUpAt string `json:"picked_up_at"`
	EndedAt    string `json:"ended_at"`
	Position   *struct {
		Time string `json:"time"`
		Live bool   `json:"live"`
	} `json:"position"`
	ETA *struct {
		Time string `json:"time"`
	} `json:"eta"`
}

// stepState is how far a step has come; the words track.step.<state> say it to those who cannot see the colours.
type stepState string

const (
	stepDone    stepState = "done"
	stepCurrent stepState = "current"
	stepTodo    stepState = "todo"
	stepFailed  stepState = "failed"
)

// step is one of the steps on the way; its label is the text track.step.<Key>.
type step struct {
	Key   string
	State stepState
	At    string // an instant, or ""
}

// phase is the state of the whole in one word; its headline is the text track.headline.<phase>.
func (t tracking) phase() string {
	if t.Kind == "trip" {
		switch t.Status {
		case "1", "active":
			return "trip"
		case "3", "discarded":
			return "trip_cancelled"
		}
		return "trip_ended"
	}
	switch t.Status {
	case "assigned":
		return "assigned"
	case "in_progress":
		if t.toPickup() {
			return "to_pickup"
		}
		return "on_the_way"
	case "completed":
		switch {
		case t.Outcome == "cancelled":
			return "cancelled"
		case t.Outcome == "failed" && t.Type == 1:
			return "not_collected"
		case t.Outcome == "failed":
			return "not_delivered"
		case t.Type == 1:
			return "collected"
		}
		return "delivered"
	}
	return "ordered"
}

func (t tracking) toPickup() bool { return t.Type == 1 || t.Type == 3 && t.PickedUpAt == "" }

// ended reports whether nothing more will happen.
func (t tracking) ended() bool {
	return t.Kind == "trip" && t.Status != "1" && t.Status != "active" || t.Kind != "trip" && t.Status == "completed"
}

// moving reports whether the driver is on the way.
func (t tracking) moving() bool {
	return !t.ended() && (t.Kind == "trip" || t.Status == "in_progress")
}

// wantsMap reports whether a map has something to show: the driver, or the place if there are tiles around it.
func (t tracking) wantsMap(tiles bool) bool {
	return !t.ended() && (t.moving() && t.Position != nil || tiles && t.Place != nil && len(t.Place.LngLat) == 2)
}

// steps are the way from the order to its end. What is not known to have happened before an early end is left out.
func (t tracking) steps() []step {
	phase := t.phase()
	if t.Kind == "trip" {
		on := step{"on_the_way", stepCurrent, t.StartedAt}
		end := step{"trip_ended", stepTodo, t.EndedAt}
		switch phase {
		case "trip_ended":
			on.State, end.State = stepDone, stepDone
		case "trip_cancelled":
			on.State, end = stepDone, step{"cancelled", stepFailed, t.EndedAt}
		}
		return []step{on, end}
	}

	all := []step{
		{"ordered", stepTodo, t.Time},
		{"assigned", stepTodo, ""},
		{"on_the_way", stepTodo, t.StartedAt},
	}
	if t.Type == 3 {
		all = append(all, step{"picked_up", stepTodo, t.PickedUpAt})
	}
	reached := 0
	switch {
	case t.PickedUpAt != "":
		reached = 3
	case t.StartedAt != "" || t.Status == "in_progress":
		reached = 2
	case t.Status == "assigned" || t.Driver != nil && t.Driver.Name != "":
		reached = 1
	}
	reached = min(reached, len(all)-1)

	if t.ended() {
		last := step{phase, stepFailed, t.EndedAt}
		if phase == "delivered" || phase == "collected" {
			reached, last.State = len(all)-1, stepDone
		}
		all = append(all[:reached+1], last)
		for i := range reached + 1 {
			all[i].State = stepDone
		}
		return all
	}
	for i := range reached {
		all[i].State = stepDone
	}
	all[reached].State = stepCurrent
	last := "delivered"
	if t.Type == 1 {
		last = "collected"
	}
	return append(all, step{last, stepTodo, ""})
}

// placeLabel is the key of the text that says what the place is.
func (t tracking) placeLabel() string {
	switch {
	case t.Kind == "trip":
		return "track.place.trip"
	case t.toPickup():
		return "track.place.from"
	}
	return "track.place.to"
}

// detail is the key of the sentence below the headline, or "" when the end says it all.
func (t tracking) detail() string {
	switch {
	case t.ended():
		return ""
	case t.moving():
		return "track.detail.on_the_way"
	}
	return "track.detail." + t.phase()
}

func parseTracking(state []byte) (tracking, error) {
	var t tracking
	if err := json.Unmarshal(state, &t); err != nil {
		return tracking{}, fmt.Errorf("the tracking state: %w", err)
	}
	return t, nil
}

// etaRounding is what an expected time is rounded up to: a promise to the minute would be false. One nearer than etaNear is rounded to the minute.
const (
	etaRounding = 5 * time.Minute
	etaNear     = 15 * time.Minute
)

// expected is the expected time as the page says it without a script, rounded as the script does it, "" when there is none.
// One that has passed, or is about to, is "soon".
func (t tracking) expected(words map[string]string, now time.Time, zone *time.Location) string {
	if t.ETA == nil || !t.moving() {
		return ""
	}
	at, err := time.Parse(time.RFC3339, t.ETA.Time)
	if err != nil {
		return ""
	}
	left := at.Sub(now)
	if left < time.Minute/2 {
		return words["track.eta.soon"]
	}
	if left.Round(time.Minute) < etaNear {
		at = at.Round(time.Minute)
	} else if r := at.Truncate(etaRounding); r.Before(at) {
		at = r.Add(etaRounding)
	}
	return fill(words["track.eta.clock"], "time", clock(at, zone))
}

// clock is a time of day, with its zone when nobody chose one.
func clock(t time.Time, zone *time.Location) string {
	if zone == nil {
		return t.UTC().Format("15:04 UTC")
	}
	return t.In(zone).Format("15:04")
}

// shown is an instant as the page says it without a script: the time, and the day when it is not today.
func shown(instant string, now time.Time, zone *time.Location) string {
	t, err := time.Parse(time.RFC3339, instant)
	if err != nil {
		return ""
	}
	z := zone
	if z == nil {
		z = time.UTC
	}
	if ty, tm, td := t.In(z).Date(); (now.In(z).Year() != ty) || now.In(z).Month() != tm || now.In(z).Day() != td {
		return t.In(z).Format("2006-01-02 ") + clock(t, zone)
	}
	return clock(t, zone)
}
