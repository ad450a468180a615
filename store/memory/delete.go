package memory

import (
	"slices"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/rows"
)

// checkDeletions looks at the tasks and trips that are to go: each is there as it was read, and named
// once.
func (c *change) checkDeletions() error {
	tasks := rows.SeenOf[tracking.TaskID](len(c.cs.DeleteTasks) + len(c.tasks))
	for _, t := range c.cs.DeleteTasks {
		if r := c.app.tasks.row(t.ID); tasks.Before(t.ID) || r == nil || r.version() != t.Version {
			return rows.VersionConflict(tracking.KindTask, t.ID)
		}
	}
	trips := rows.SeenOf[tracking.TripID](len(c.cs.DeleteTrips) + len(c.trips))
	for _, t := range c.cs.DeleteTrips {
		if r := c.app.trips.byID[t.ID]; trips.Before(t.ID) || r == nil || r.trip.Version != t.Version {
			return rows.VersionConflict(tracking.KindTrip, t.ID)
		}
	}
	if len(c.cs.DeleteTasks)+len(c.cs.DeleteTrips) == 0 {
		return nil
	}
	for i := range c.tasks {
		if id := c.tasks[i].ID; tasks.Before(id) {
			return rows.VersionConflict(tracking.KindTask, id)
		}
	}
	for _, t := range c.trips {
		if trips.Before(t.ID) {
			return rows.VersionConflict(tracking.KindTrip, t.ID)
		}
	}
	return nil
}

// leavesTask reports whether a task goes with the change, and leavesTrip whether a trip does.
func (c *change) leavesTask(id tracking.TaskID) bool {
	return slices.ContainsFunc(c.cs.DeleteTasks, func(t tracking.Task) bool { return t.ID == id })
}

func (c *change) leavesTrip(id tracking.TripID) bool {
	return slices.ContainsFunc(c.cs.DeleteTrips, func(t tracking.Trip) bool { return t.ID == id })
}

// applyDeletions removes the tasks, trips and files that are to go.
func (c *change) applyDeletions() {
	for _, t := range c.cs.DeleteTasks {
		r := c.app.tasks.row(t.ID)
		gone := r.task()
		c.store.secrets.taskLinks.move(owner[tracking.TaskID]{c.app, t.ID}, gone.Link.Hash, tracking.Hash{})
		c.app.lastVersion = max(c.app.lastVersion, gone.Version)
		gone.Waiting = false
		c.app.nearby.PutTask(gone)
		c.app.tasks.remove(r)
		c.app.dropSubject(tracking.Subject{Kind: tracking.KindTask, ID: string(t.ID)})
	}
	for _, t := range c.cs.DeleteTrips {
		r := c.app.trips.byID[t.ID]
		c.store.secrets.tripLinks.move(owner[tracking.TripID]{c.app, t.ID}, r.trip.Link.Hash, tracking.Hash{})
		c.app.lastVersion = max(c.app.lastVersion, r.trip.Version)
		c.app.trips.remove(r)
		c.app.dropSubject(tracking.Subject{Kind: tracking.KindTrip, ID: string(t.ID)})
	}
	for _, id := range c.cs.DropFiles {
		c.app.files.drop(id)
	}
}

// remove takes a task out of all lists.
func (x *tasks) remove(r *taskRow) {
	t := r.task()
	x.unname(r.no, rows.Codes(nil, &t))
	keys := keysOfTask(&t)
	x.leave(r.no, &keys, &taskKeys{})
	x.all.all.remove(r.no, x.rows.byAge)
	x.byID.remove(codeOf(string(t.ID)), r.no, x.rows.byAge)
	if t.Key != "" {
		x.byKey.remove(codeOf(t.Key), r.no, x.rows.byAge)
	}
	x.rows.drop(r.no)
}

// remove takes a trip out of all lists.
func (x *trips) remove(r *tripRow) {
	x.leave(r)
	x.all.remove(r, (*tripRow).compare)
	delete(x.byID, r.trip.ID)
}

// dropSubject removes all events of a subject, what is to be delivered of them, and the notices that
// they have told. The application is locked.
func (a *application) dropSubject(of tracking.Subject) {
	s := a.events.subject(of)
	if s == nil {
		return
	}
	for _, q := range s.queues {
		q.box.mu.Lock()
		q.box.take(q)
		q.events = nil
		q.box.unlock()
	}
	c := s.events.start(0)
	gone, _ := take(c.next, 0, s.events.len(), nil)
	for _, r := range gone {
		for _, n := range r.notices {
			a.dropNotice(n)
		}
		a.events.remove(r)
	}
	a.events.forget(s)
}

// dropNotice removes a notice, if it is there still.
func (a *application) dropNotice(n tracking.Notice) {
	d := a.drivers.row(n.DriverID)
	if d == nil {
		return
	}
	c := d.others().feed.notices.at(func(r *noticeRow) bool { return r.notice.ID >= n.ID })
	if r, ok := c.next(); ok && r.notice.ID == n.ID {
		a.purgeNotice(r)
	}
}
