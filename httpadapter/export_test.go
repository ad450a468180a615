package httpadapter

import (
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
)

// RouteInfo is what tests see of a route.
type RouteInfo struct {
	Method, Pattern string
	Who             string // "public", "application", "driver"
}

// Routes is the route table, without the files of the web front ends.
func (h *Handler) Routes() []RouteInfo {
	var list []RouteInfo
	for _, rt := range h.routes() {
		if rt.front {
			continue
		}
		list = append(list, RouteInfo{rt.method, rt.pattern, []string{"public", "application", "driver"}[rt.who]})
	}
	return list
}

// StatusOf is the status of an error code.
func StatusOf(code tracking.ErrorCode) (int, bool) { return statusOf(code) }

// Watching is the number of links that are being followed.
func (h *Handler) Watching() int {
	h.feeds.mu.Lock()
	defer h.feeds.mu.Unlock()
	return len(h.feeds.open)
}

// BodyInfo is what tests see of the body that a route takes.
type BodyInfo struct {
	Method, Pattern string
	Taken           bool // it takes one
	Fields          []strict.Field
	Optional, Texts bool
	Picture         bool
}

// Bodies are those of the routes under /v1, also of those that take none, and of others that take one.
func (h *Handler) Bodies() (list []BodyInfo) {
	for _, rt := range h.routes() {
		if rt.front || !strings.HasPrefix(rt.pattern, "/v1/") && rt.takes == nil {
			continue
		}
		b := BodyInfo{Method: rt.method, Pattern: rt.pattern}
		if e := rt.takes; e != nil {
			b.Taken, b.Fields, b.Optional, b.Texts, b.Picture = true, e.fields, e.optional, e.texts, e.picture
		}
		list = append(list, b)
	}
	return list
}

// Wire is what is sent of a value.
func Wire(v any) any {
	switch v := v.(type) {
	case tracking.Task:
		// when whatever was promised is late
		return wholeTaskAt(v, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
	case tracking.TripDetail:
		return tripDetailOf(v)
	case tracking.Driver:
		return operatorOf(v)
	case tracking.Event:
		return eventOf(v)
	case tracking.Tracking:
		return viewOf(v)
	case tracking.Request:
		return (&Handler{clean: descPolicy()}).requestOf(v)
	}
	panic("nothing is sent of it")
}

// TaskStatuses and TripStatuses are what lists can be narrowed by.
func TaskStatuses() []string { return taskStatuses() }

// TripStatuses are the words beside the numbers from 0 on.
func TripStatuses() []string { return tripStatuses() }

// ProofKinds are the words for what a task can ask for.
func ProofKinds() []string { return proofKind("").Words() }

// MaxList is the longest part of a list.
const MaxList = maxList

// WireTask is a task as it is sent, and the others what is encoded without encoding/json.
type (
	WireTask    = task
	TaskAnswer  = taskAnswer
	FixOutcomes = fixOutcomes
)

// TaskList is what encoding/json makes the same of as of TaskPage.
type TaskList struct {
	HasMore bool   `json:"has_more"`
	Next    string `json:"next,omitempty"`
	Tasks   []task `json:"task_list"`
}

// TaskPage is the data of an answer with a page of tasks.
func TaskPage(l TaskList) any {
	return taskList{l.HasMore, l.Next, len(l.Tasks), func(i int) task { return l.Tasks[i] }}
}

// Encoded is an answer with these data.
func Encoded(message string, data any) ([]byte, error) {
	var j jsonText
	success{message, true, data}.appendTo(&j, data.(appender))
	return j.b, j.err
}

// EncodedByStandard is the same by encoding/json.
func EncodedByStandard(message string, data any) ([]byte, error) {
	return encode(success{message, true, data})
}

// TimeText is a time as it is sent.
func TimeText(t time.Time) string { return string(timeOf(t)) }
