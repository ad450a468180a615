package storetest

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8aba7b13/tracking"
)

// snapshot is all that an application can read.
type snapshot struct {
	Tasks    []tracking.Task
	Trips    []tracking.Trip
	Drivers  []tracking.Driver
	Invites  []tracking.Invite
	Requests []tracking.Request
	Keys     []tracking.Key
	Fixes    map[tracking.DriverID][]tracking.Fix
	Notices  map[tracking.DriverID][]tracking.Notice
	Events   []tracking.Event
}

// snap reads all of an application. The drivers named are looked for as well as those that are
// listed: a deleted one must have left nothing.
func snap(t testing.TB, s tracking.Store, app tracking.AppID, named ...tracking.DriverID) snapshot {
	t.Helper()
	c := use(t, s, app)
	out := snapshot{Fixes: map[tracking.DriverID][]tracking.Fix{}, Notices: map[tracking.DriverID][]tracking.Notice{}}
	out.Tasks, _ = c.tasks(tracking.TaskFilter{})
	out.Trips, _ = c.trips(tracking.TripFilter{})
	out.Drivers, _ = c.drivers(tracking.DriverFilter{})
	out.Keys = c.keys()
	out.Events, _ = c.events(tracking.EventFilter{})
	ids := map[tracking.DriverID]bool{}
	for _, d := range out.Drivers {
		ids[d.ID] = true
	}
	for _, id := range named {
		ids[id] = true
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if i, err := s.Invite(c.ctx, app, id); err == nil {
			out.Invites = append(out.Invites, i)
		} else {
			missing(t, "Invite", err)
		}
		out.Requests = append(out.Requests, c.requests(id)...)
		if f := c.fixes(id, tracking.FixRange{}); f != nil {
			out.Fixes[id] = f
		}
		if n, _ := c.notices(id, 0); n != nil {
			out.Notices[id] = n
		}
	}
	return out
}

// givenNumbers ignores the numbers that two stores may give differently, though each in a growing
// order.
var givenNumbers = cmp.Options{
	cmpopts.IgnoreFields(tracking.Task{}, "Seq"),
	cmpopts.IgnoreFields(tracking.Trip{}, "Seq"),
	cmpopts.IgnoreFields(tracking.Driver{}, "Seq"),
	cmpopts.IgnoreFields(tracking.Notice{}, "ID"),
}
