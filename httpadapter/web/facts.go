package web

import (
	"encoding/json"
	"fmt"
	"strconv"
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
	Leg    string `json:"leg"` // pickup, drop
	Time   string `json:"time"`
	Window struct {
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"window"`
	Promised    string `json:"promised"`
	Phase       string `json:"phase"` // as tracking.Phase
	StopsBefore *int   `json:"stops_before"`
	ReasonCode  string `json:"reason_code"`
	Earlier     *struct {
		Outcome    string `json:"outcome"`
		ReasonCode string `json:"reason_code"`
		EndedAt    string `json:"ended_at"`
	} `json:"earlier"`
	PIN        string   `json:"pin"`
	ReceivedBy string   `json:"received_by"`
	Photos     []string `json:"photos"` // ids
	StartedAt  string   `json:"started_at"`
	PickedUpAt string   `json:"picked_up_at"`
	EndedAt    string   `json:"ended_at"`
	Position   *struct {
		Time string `json:"time"`
		Live bool   `json:"live"`
	} `json:"position"`
	ETA *struct {
		Time       string `json:"time"`
		ComputedAt string `json:"computed_at"`
		Source     string `json:"source"`
	} `json:"eta"`
}

// stepState is how far a step has come; the words track.step.<state> say it to those who cannot see
// the colours.
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
		switch {
		case t.atDoor():
			return "trip_there"
		case t.moving():
			return "trip"
		case t.Status == "3" || t.Status == "discarded":
			return "trip_cancelled"
		}
		return "trip_ended"
	}
	switch t.Status {
	case "assigned":
		return "assigned"
	case "in_progress":
		switch {
		case t.atDoor() && t.Type == 1:
			return "at_pickup"
		case t.atDoor():
			return "at_door"
		case t.Phase == "arriving":
			return "arriving"
		case t.Type == 1:
			return "to_pickup"
		case t.fetching() && t.Phase == "at_pickup":
			return "collecting"
		case t.fetching():
			return "fetching"
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

// fetching reports whether the driver goes somewhere else first: to where the goods are.
func (t tracking) fetching() bool { return t.moving() && t.Type == 3 && t.Leg == "pickup" }

// silent reports whether the driver's position is too old to tell anything from.
func (t tracking) silent() bool { return t.moving() && t.Position != nil && !t.Position.Live }

// atDoor reports whether the driver is at the place: by the phase, or by an expected time that is
// the moment at which it was worked out.
func (t tracking) atDoor() bool {
	there := t.Phase == "at_drop" || t.Type == 1 && t.Phase == "at_pickup"
	return t.moving() && (there || !t.silent() && t.ETA != nil && t.ETA.Time != "" && t.ETA.Time == t.ETA.ComputedAt)
}

// ended reports whether nothing more will happen.
func (t tracking) ended() bool {
	return t.Kind == "trip" && t.Status != "1" && t.Status != "active" || t.Kind != "trip" && t.Status == "completed"
}

// moving reports whether the driver is on the way.
func (t tracking) moving() bool {
	return !t.ended() && (t.Kind == "trip" || t.Status == "in_progress")
}

// wantsMap reports whether a map has something to show: the driver, or the place if there are tiles
// around it.
func (t tracking) wantsMap(tiles bool) bool {
	return !t.ended() && (t.moving() && t.Position != nil || tiles && t.Place != nil && len(t.Place.LngLat) == 2)
}

// steps are the way from the order to its end. What is not known to have happened before an early
// end is left out.
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

	on := step{"on_the_way", stepTodo, t.StartedAt}
	all := []step{{"ordered", stepTodo, t.Time}, {"assigned", stepTodo, ""}}
	both := t.Type == 3
	if both {
		all, on.At = append(all, step{"picked_up", stepTodo, t.PickedUpAt}), ""
	}
	all = append(all, on)

	// How far it has come, and how that is shown.
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

	succeeded := phase == "delivered" || phase == "collected"
	if both && reached == 2 && !succeeded {
		all[2] = step{"collecting", stepTodo, t.StartedAt}
	}
	if t.ended() {
		last := step{phase, stepFailed, t.EndedAt}
		if succeeded {
			reached, last.State = len(all)-1, stepDone
		}
		all = append(all[:reached+1], last)
		for i := range reached + 1 {
			all[i].State = stepDone
		}
		return all
	}
	if reached == len(all)-1 {
		switch {
		case phase == "arriving":
			all[reached] = step{Key: phase}
		case t.atDoor():
			all[reached] = step{Key: "at_door"}
		}
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
	case t.Type == 1:
		return "track.place.from"
	}
	return "track.place.to"
}

// detail is the key of the sentence below the headline, or "" when the headline says it all.
func (t tracking) detail() string {
	switch {
	case t.ended() || t.atDoor():
		return ""
	case t.silent():
		return "track.detail.silent"
	case t.fetching():
		return "track.detail.fetching"
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

// etaStep is what the ends of a span are rounded to: a promise to the minute would be false. An
// expected time nearer than etaNear is told to the minute.
const (
	etaStep = 5 * time.Minute
	etaNear = 10 * time.Minute
)

// etaFar is from when on the day is told too, and etaFurthest the most that an estimate is worth
// telling: beyond it is a guess from a straight line, or a position that is wrong.
const (
	etaFar      = 12 * time.Hour
	etaFurthest = 24 * time.Hour
)

// expected is the expected time as the page says it without a script, rounded as the script does
// it, "" when there is none, and when the headline says that the driver is there. One that has
// passed, or is about to, is "soon".
func (t tracking) expected(words map[string]string, now time.Time, zone *time.Location) string {
	if t.ETA == nil || !t.moving() || t.silent() || t.atDoor() {
		return ""
	}
	at, err := time.Parse(time.RFC3339, t.ETA.Time)
	if err != nil {
		return ""
	}
	left := at.Sub(now)
	if left > etaFurthest && t.ETA.Source == "estimate" {
		return ""
	}
	if left < time.Minute/2 {
		return words["track.eta.soon"]
	}
	if left.Round(time.Minute) < etaNear {
		return fill(words["track.eta.clock"], "time", clock(at.Round(time.Minute), zone))
	}
	half := max(left/5, etaStep/2)
	from, to := at.Add(-half).Round(etaStep), at.Add(half).Round(etaStep)
	if !to.After(from) {
		to = from.Add(etaStep)
	}
	if left > etaFar {
		return between(words, from, to, now, zone)
	}
	return fill(fill(words["track.eta.between"], "from", clock(from, zone)), "to", clock(to, zone))
}

// between is a span in words, its day told once.
func between(words map[string]string, from, to, now time.Time, zone *time.Location) string {
	d := day(from, zone)
	if d == day(now, zone) || d != day(to, zone) {
		text := fill(words["track.eta.between"], "from", moment(from, now, zone))
		return fill(text, "to", moment(to, from, zone))
	}
	text := fill(fill(words["track.eta.between"], "from", clock(from, zone)), "to", clock(to, zone))
	return fill(fill(words["track.eta.day"], "day", d), "when", text)
}

// promised is when the driver was to be there at the latest; zero when nobody said so.
func (t tracking) promised() time.Time {
	at, err := time.Parse(time.RFC3339, t.Promised)
	if err != nil {
		at, _ = time.Parse(time.RFC3339, t.Window.To)
	}
	return at
}

// planned is when the driver is to come by what was agreed, "" once that has passed.
func (t tracking) planned(words map[string]string, now time.Time, zone *time.Location) string {
	if t.ended() || t.atDoor() {
		return ""
	}
	from, _ := time.Parse(time.RFC3339, t.Window.From)
	to := t.promised()
	switch {
	case !to.IsZero() && to.Before(now):
		return ""
	case !from.IsZero() && from.Before(to):
		return between(words, from, to, now, zone)
	case !to.IsZero():
		return fill(words["track.eta.by"], "time", moment(to, now, zone))
	case !from.IsZero():
		return fill(words["track.eta.from"], "time", moment(from, now, zone))
	}
	return ""
}

// late says that a promise is broken, and which; nothing once the driver is there.
func (t tracking) late(words map[string]string, now time.Time, zone *time.Location) string {
	to := t.promised()
	if t.ended() || t.atDoor() || to.IsZero() {
		return ""
	}
	latest := now
	if t.ETA != nil {
		if at, err := time.Parse(time.RFC3339, t.ETA.Time); err == nil && at.After(now) {
			latest = at
		}
	}
	if !latest.After(to) {
		return ""
	}
	return fill(words["track.late"], "time", moment(to, now, zone))
}

// stops says how many stops of the driver's come first, "" where the headline says more.
func (t tracking) stops(words map[string]string) string {
	if t.StopsBefore == nil || !t.moving() || t.atDoor() || t.Phase == "arriving" {
		return ""
	}
	switch n := *t.StopsBefore; n {
	case 0:
		return words["track.stops.none"]
	case 1:
		return words["track.stops.one"]
	default:
		return fill(words["track.stops.other"], "n", strconv.Itoa(n))
	}
}

// earlier says how the task ended that this one tries again, "" when it tries none.
func (t tracking) earlier(words, reasons map[string]string, now time.Time, zone *time.Location) string {
	if t.Earlier == nil {
		return ""
	}
	text := words["track.step.not_delivered"]
	if t.Type == 1 {
		text = words["track.step.not_collected"]
	}
	if t.Earlier.Outcome == "cancelled" {
		text = words["track.step.cancelled"]
	}
	if why, ok := reasons[t.Earlier.ReasonCode]; ok {
		text = why
	}
	if at := shown(t.Earlier.EndedAt, now, zone); at != "" {
		text = at + " · " + text
	}
	return text
}

// etaLabel is the key of the text before the expected time. While the driver goes somewhere else
// first, it says where the time is for.
func (t tracking) etaLabel() string {
	if t.fetching() {
		return "track.eta.label.fetching"
	}
	return "track.eta.label"
}

// clock is a time of day, with its zone when nobody chose one.
func clock(t time.Time, zone *time.Location) string {
	if zone == nil {
		return t.UTC().Format("15:04 UTC")
	}
	return t.In(zone).Format("15:04")
}

// shown is an instant as the page says it without a script.
func shown(instant string, now time.Time, zone *time.Location) string {
	t, err := time.Parse(time.RFC3339, instant)
	if err != nil {
		return ""
	}
	return moment(t, now, zone)
}

// moment is a time of day, and the day when it is another than that of from.
func moment(t, from time.Time, zone *time.Location) string {
	if d := day(t, zone); d != day(from, zone) {
		return d + " " + clock(t, zone)
	}
	return clock(t, zone)
}

func day(t time.Time, zone *time.Location) string {
	if zone == nil {
		zone = time.UTC
	}
	return t.In(zone).Format("2006-01-02")
}
