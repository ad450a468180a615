package storetest

import (
	"slices"

	"github.com/seed-8aba7b13/tracking"
)

// replay plays the events, and notes those that the rules do not allow.
func (a *audit) replay() {
	a.seqs, a.moved, a.ended = map[tracking.Subject]int64{}, map[tracking.TaskID]*taskState{},
		map[tracking.TripID]tracking.TripStatus{}
	a.available, a.open, a.joined = map[tracking.DriverID]bool{}, map[tracking.DriverID]int{},
		map[tracking.DriverID]int{}
	a.told, a.handovers = map[tracking.DriverID][]tracking.Notice{}, map[string]bool{}
	ids := map[string]bool{}
	for _, e := range a.events {
		if a.seqs[e.Subject]++; e.Seq != a.seqs[e.Subject] {
			a.fail("event %d of %v comes in place %d", e.Seq, e.Subject, a.seqs[e.Subject])
		}
		if ids[e.ID] {
			a.fail("two events have the id %s", e.ID)
		}
		ids[e.ID] = true
		allowed := true
		switch e.Subject.Kind {
		case tracking.KindTask:
			allowed = a.taskEvent(e)
		case tracking.KindTrip:
			allowed = a.tripEvent(e)
		case tracking.KindDriver:
			allowed = a.driverEvent(e)
		default:
			allowed = false
		}
		if !allowed {
			a.fail("the event %s of %v, number %d, is not allowed after what was before: %v", e.Type, e.Subject, e.Seq,
				e.Data)
		}
	}
}

func (a *audit) tell(e tracking.Event, d tracking.DriverID, kind tracking.NoticeKind) {
	a.told[d] = append(a.told[d], tracking.Notice{EventID: e.ID, Kind: kind})
}

// taskEvent moves a task along the table of contract 3.
func (a *audit) taskEvent(e tracking.Event) bool {
	t := a.moved[tracking.TaskID(e.Subject.ID)]
	if (t == nil) != (e.Type == tracking.EventTaskCreated) {
		return false
	}
	d := tracking.DriverID(e.Data["driver_id"])
	byDriver := e.Actor == "driver:"+string(d)
	free := func() {
		a.open[t.driver]--
		t.excluded[t.driver] = true
		t.status, t.driver, t.auto = tracking.StatusCreated, "", false
		t.unstarted()
	}
	if t != nil && t.resumes {
		a.fail("task %s goes on without a trip", e.Subject.ID)
	}
	switch e.Type {
	case tracking.EventTaskCreated:
		a.moved[tracking.TaskID(e.Subject.ID)] = &taskState{
			status: tracking.StatusCreated, excluded: map[tracking.DriverID]bool{},
			retryOf: tracking.TaskID(e.Data["retry_of"]),
		}
	case tracking.EventTaskErased:
		t.erased, t.noted, t.proofs, t.step = true, false, 0, ""
		return t.status == tracking.StatusCompleted
	case tracking.EventTaskRetried:
		if t.erased || t.retriedBy != "" && !a.deletions {
			return false
		}
		if t.outcome != tracking.OutcomeFailed && t.outcome != tracking.OutcomeCancelled {
			return false
		}
		t.retriedBy = tracking.TaskID(e.Data["retried_by"])
		return t.retriedBy != ""
	case tracking.EventTaskNoted:
		if t.isOpen() {
			a.tell(e, t.driver, tracking.NoticeNoted)
		}
		t.noted = true
		return t.status != tracking.StatusCompleted && e.Actor == "customer"
	case tracking.EventTaskStuck:
		t.stuck = true
		return e.Actor == "driver:"+string(d) && (d == t.driver || t.excluded[d])
	case tracking.EventTaskSettled:
		was := t.stuck
		t.stuck = was && d != "" // else nothing is left
		return was && (d == "" || byDriver)
	case tracking.EventTaskUpdated:
		if e.Data["fields"] == "proofs" {
			t.proofs++
			return e.Actor == "driver:"+string(t.driver) &&
				(t.status == tracking.StatusInProgress || t.status == tracking.StatusCompleted)
		}
		if t.isOpen() {
			a.tell(e, t.driver, tracking.NoticeUpdated)
		}
		return t.status != tracking.StatusCompleted
	case tracking.EventTaskAssigned:
		handover := e.Data["handover"]
		if d == "" || d == t.driver || tracking.DriverID(e.Data["previous_driver_id"]) != t.driver ||
			t.status == tracking.StatusCompleted || handover != "" && (t.driver == "" || e.Data["auto"] == "true") {
			return false
		}
		if e.Data["auto"] == "true" {
			switch {
			case !a.available[d] && !a.deletions:
				a.fail("task %s went automatically to %s, who is not available", e.Subject.ID, d)
			case t.excluded[d] && !a.deletions:
				a.fail("task %s went automatically to %s, who is excluded from it", e.Subject.ID, d)
			case a.full(d):
				a.fail("task %s went automatically to %s, who has %d open tasks", e.Subject.ID, d, a.open[d])
			case t.driver != "":
				a.fail("task %s was taken from %s automatically", e.Subject.ID, t.driver)
			}
		}
		if t.driver != "" {
			a.tell(e, t.driver, tracking.NoticeUnassigned)
			free()
		}
		if e.Data["auto"] != "true" {
			delete(t.excluded, d)
		}
		switch {
		case handover == "":
			a.tell(e, d, tracking.NoticeAssigned)
		case !a.handovers[handover]:
			a.handovers[handover] = true
			a.tell(e, d, tracking.NoticeHandedOver)
		}
		t.status, t.driver, t.auto, t.why = tracking.StatusAssigned, d, e.Data["auto"] == "true", ""
		a.open[d]++
	case tracking.EventTaskUnassigned:
		if !t.isOpen() || d != t.driver {
			return false
		}
		a.tell(e, d, tracking.NoticeUnassigned)
		free()
	case tracking.EventTaskDeclined:
		if t.status != tracking.StatusAssigned || d != t.driver || !byDriver {
			return false
		}
		free()
		t.why = e.Data["reason_code"]
	case tracking.EventTaskStarted:
		if t.status != tracking.StatusAssigned || d != t.driver || !byDriver {
			return false
		}
		t.status, t.step = tracking.StatusInProgress, tracking.StepStart
	case tracking.EventTaskPickedUp:
		if t.status != tracking.StatusInProgress || t.picked || d != t.driver || !byDriver {
			return false
		}
		t.picked, t.step = true, tracking.StepPickup
	case tracking.EventTaskLate:
		promised := e.Data["promised"]
		if t.status == tracking.StatusCompleted || promised == "" || promised == t.late || d != t.driver {
			return false
		}
		t.late = promised
	case tracking.EventTaskArriving, tracking.EventTaskArrived:
		// Once a leg: a leg is begun anew with the task.
		done := &t.arriving
		if e.Type == tracking.EventTaskArrived {
			done = &t.arrived
		}
		leg := tracking.Leg(e.Data["leg"])
		if t.status != tracking.StatusInProgress || (*done)[leg] || leg == tracking.LegPickup && t.picked {
			return false
		}
		if *done == nil {
			*done = map[tracking.Leg]bool{}
		}
		(*done)[leg] = true
	case tracking.EventTaskCompleted:
		if t.status == tracking.StatusCompleted || d != t.driver ||
			(d != "" && byDriver && t.status != tracking.StatusInProgress) {
			return false
		}
		outcome := tracking.Outcome(e.Data["outcome"])
		if t.isOpen() {
			a.open[t.driver]--
			if !byDriver {
				kind := tracking.NoticeUpdated
				if outcome == tracking.OutcomeCancelled {
					kind = tracking.NoticeCancelled
				}
				a.tell(e, d, kind)
			}
		}
		t.status, t.outcome, t.why, t.stuck = tracking.StatusCompleted, outcome, e.Data["reason_code"], false
		t.byDriver = d != "" && byDriver
		if t.step = ""; d != "" && byDriver {
			t.step = tracking.StepComplete
		}
		return slices.Contains([]tracking.Outcome{
			tracking.OutcomeSucceeded, tracking.OutcomeFailed, tracking.OutcomeCancelled,
		}, outcome)
	case tracking.EventTaskReopened:
		if t.erased || t.status != tracking.StatusCompleted || d != t.driver && (d != "" || !a.deletions) {
			return false
		}
		t.status, t.outcome = tracking.StatusCreated, ""
		t.unstarted()
		if t.driver = d; d != "" {
			t.status = tracking.StatusAssigned
			a.open[d]++
			a.tell(e, d, tracking.NoticeReopened)
		}
	case tracking.EventTaskUndone:
		if t.step == "" || t.step != tracking.TaskStep(e.Data["step"]) || d != t.driver || !byDriver {
			return false
		}
		switch t.step {
		case tracking.StepStart:
			t.status = tracking.StatusAssigned
			t.unstarted()
		case tracking.StepPickup:
			t.picked = false
			delete(t.arriving, tracking.LegDrop)
			delete(t.arrived, tracking.LegDrop)
		case tracking.StepComplete:
			t.status, t.outcome, t.why, t.resumes = tracking.StatusInProgress, "", "", true
			a.open[d]++
		}
		t.step = ""
	default:
		return false
	}
	return true
}

// full reports whether a driver has as many open tasks as may come automatically. Of one who is
// gone nobody knows.
func (a *audit) full(d tracking.DriverID) bool {
	most := a.maxOpen
	row, ok := a.drivers[d]
	if !ok && a.deletions {
		return false
	}
	if row.MaxOpenTasks != nil {
		most = *row.MaxOpenTasks
	}
	return most >= 0 && a.open[d] >= most
}

func (a *audit) tripEvent(e tracking.Event) bool {
	id := tracking.TripID(e.Subject.ID)
	was, started := a.ended[id]
	switch e.Type {
	case tracking.EventTripStarted:
		if t := a.moved[tracking.TaskID(e.Data["task_id"])]; t != nil {
			t.resumes = false
		}
		a.ended[id] = tracking.TripActive
		return !started
	case tracking.EventTripStopped:
		a.ended[id] = tracking.TripStopped
	case tracking.EventTripDiscarded:
		a.ended[id] = tracking.TripDiscarded
	default:
		return false
	}
	return started && was == tracking.TripActive
}

func (a *audit) driverEvent(e tracking.Event) bool {
	id := tracking.DriverID(e.Subject.ID)
	was := a.available[id]
	switch e.Type {
	case tracking.EventDriverAvailable:
		a.available[id] = true
		return !was || a.deletions
	case tracking.EventDriverUnavailable:
		a.available[id] = false
		return was || a.deletions
	case tracking.EventDriverSilent:
		return was || a.deletions
	case tracking.EventDriverJoined:
		a.joined[id]++
	case tracking.EventTripRequested:
		a.tell(e, id, tracking.NoticeRequest)
	case tracking.EventDriverRouted:
		if e.Actor != "driver:"+string(id) {
			a.tell(e, id, tracking.NoticeRoute)
		}
	default:
		return false
	}
	return true
}
