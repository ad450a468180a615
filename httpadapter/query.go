package httpadapter

import (
	"math"

	"github.com/seed-8aba7b13/tracking"
)

// What queries of more than one route hold.

// maxList is how many entries of a list one call may ask for.
const maxList = 1000

// page reads which part of a list is asked for.
func (r *request) page() tracking.Page {
	var p tracking.Page
	p.Number, _ = r.query.Int("page", 1, math.MaxInt)
	p.Limit = r.limit()
	return p
}

// limit reads how many entries of a list are asked for; 0: the caller does not say.
func (r *request) limit() int {
	n, _ := r.query.Int("limit", 1, maxList)
	return n
}

// taskStatuses are the words that a list of tasks can be narrowed by.
func taskStatuses() []string {
	return []string{
		string(tracking.StatusCreated), string(tracking.StatusAssigned),
		string(tracking.StatusInProgress), string(tracking.StatusCompleted),
	}
}

// taskStatus reads the states of the tasks that are asked for; none: all.
func (r *request) taskStatus() (list []tracking.TaskStatus) {
	for _, word := range r.query.Words("status", taskStatuses()) {
		list = append(list, tracking.TaskStatus(word))
	}
	return list
}

// tripStatuses are the states of trips, each at its number; 0 stands for all.
func tripStatuses() []string { return []string{"all", "active", "stopped", "discarded"} }

// tripStatus reads the state of the trips that are asked for; 0: all.
func (r *request) tripStatus() tracking.TripStatus {
	return tracking.TripStatus(r.query.Number("status", tripStatuses()))
}

// taskSorts are the orders that tasks can be listed in.
func taskSorts() []string { return []string{string(tracking.SortCreated), string(tracking.SortWindow)} }

// taskSort reads the order that is asked for; "": the usual one.
func (r *request) taskSort() tracking.TaskSort {
	switch words := r.query.Words("sort", taskSorts()); len(words) {
	case 0:
		return ""
	case 1:
		return tracking.TaskSort(words[0])
	}
	r.query.Fail("sort", "must be one word")
	return ""
}

// taskMark reads the place behind which a list goes on; nil: from the start.
func (r *request) taskMark() *tracking.TaskMark {
	text := r.query.Filter("after")
	if text == "" {
		return nil
	}
	mark, ok := tracking.ParseTaskMark(text)
	if !ok {
		r.query.Fail("after", "must be what an answer had as next")
	}
	return &mark
}
