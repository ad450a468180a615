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

// OneTask is an answer with one task, and what encoding/json makes of the same.
func OneTask(message string, s ShownTask, trackingURL string) (got, want Text) {
	shown := s.shown()
	return textOf(answerTask(message, &shown, trackingURL)), standard(message, struct {
		Task        task   `json:"task"`
		TrackingURL string `json:"tracking_url,omitempty"`
	}{s.wire(), trackingURL})
}

// TaskPage is the same of a page of tasks.
func TaskPage(message string, more bool, next string, tasks []ShownTask) (got, want Text) {
	shown := func(i int) shownTask { return tasks[i].shown() }
	return textOf(answerTasks(message, more, next, len(tasks), shown)), standard(message, struct {
		HasMore bool   `json:"has_more"`
		Next    string `json:"next,omitempty"`
		Tasks   []task `json:"task_list"`
	}{more, next, mapped(tasks, ShownTask.wire)})
}

// Outcomes is the same of what became of fixes.
func Outcomes(message string, outcomes []tracking.FixOutcome) (got, want Text) {
	return textOf(answerFixes(message, outcomes)), standard(message, struct {
		Outcomes []tracking.FixOutcome `json:"outcomes"`
	}{outcomes})
}

// Text is an answer as it is sent.
type Text struct {
	JSON string
	Err  error
}

func textOf(a answer, err error) Text {
	j := a.(*jsonText)
	return Text{string(j.b), firstError(err, j.err)}
}

func standard(message string, data any) Text {
	b, err := encode(success{message, true, data})
	return Text{string(b), err}
}

// TimeText is a time as it is sent.
func TimeText(t time.Time) string { return string(timeOf(t)) }
