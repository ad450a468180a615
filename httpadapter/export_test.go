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

// WireTask is a task as it is sent.
type WireTask = task

// FixOutcomes are encoded without encoding/json.
type FixOutcomes = fixOutcomes

// ShownTask is a task, and what of it is shown.
type ShownTask struct {
	Task     tracking.Task
	Now      time.Time
	Driver   bool // it is shown to its driver
	NoPeople bool
	Stop     int
	Waits    *tracking.Waits
}

func (s ShownTask) shown() shownTask {
	return shownTask{&s.Task, s.Now, !s.Driver, s.NoPeople, s.Stop, s.Waits}
}

func (s ShownTask) wire() task {
	w := taskAt(s.Task, s.Now)
	if !s.Driver {
		w = wholeTaskAt(s.Task, s.Now)
		w.Waiting = waitingOf(s.Waits)
	}
	if s.NoPeople {
		w = w.withoutContacts()
	}
	w.Stop = s.Stop
	return w
}

// OneTask is the data of an answer with one task, and what encoding/json makes the same of.
func OneTask(s ShownTask, trackingURL string) (data, wire any) {
	return taskAnswer{s.shown(), trackingURL}, struct {
		Task        task   `json:"task"`
		TrackingURL string `json:"tracking_url,omitempty"`
	}{s.wire(), trackingURL}
}

// TaskPage is the data of an answer with a page of tasks, and what encoding/json makes the same of.
func TaskPage(more bool, next string, tasks []ShownTask) (data, wire any) {
	return taskList{more, next, len(tasks), func(i int) shownTask { return tasks[i].shown() }}, struct {
		HasMore bool   `json:"has_more"`
		Next    string `json:"next,omitempty"`
		Tasks   []task `json:"task_list"`
	}{more, next, mapped(tasks, ShownTask.wire)}
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
