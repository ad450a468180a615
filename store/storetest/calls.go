package storetest

import (
	"context"
	"reflect"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// finding is what a call answers where its application has nothing.
type finding int

const (
	notFound finding = iota // ErrNotFound
	nothing                 // no error, and nil
	conflict                // a *ConflictError
	applied                 // no error: it does something of its own
)

// call is one method of tracking.Store, called for what seed made. The table is held against the
// interface by the tenant tier, so that a method added there is asked for here.
type call struct {
	method string // of tracking.Store
	name   string
	part   string  // the field of Changeset that a Commit is about
	found  finding // for an application that has nothing
	any    bool    // looks through all applications, by a secret or as a sweep
	write  bool
	do     func(ctx context.Context, s tracking.Store, app tracking.AppID) (any, error)
}

// seed is what the calls are about.
func seed() tracking.Changeset {
	task, waits := newTask("t", t0), newTask("waits", t0)
	task.Key, task.Link, task.GeocodeAt, task.DueAt = "k", tracking.Link{Generation: 1, Hash: hash(1)}, t0, t0
	task.CompletedAt = t0
	waits.Waiting, waits.Drop.LngLat = true, &tracking.LngLat{Lng: 11, Lat: 48}
	trip := newTrip("r", "d", "x", t0)
	trip.TTL, trip.Link = t0, tracking.Link{Generation: 1, Hash: hash(2)}
	driver := newDriver("d", t0)
	driver.AppToken, driver.IngestToken, driver.Properties = hash(3), hash(4), map[string]string{"zone": "1"}
	return tracking.Changeset{
		Tasks:    []tracking.Task{task, waits},
		Trips:    []tracking.Trip{trip},
		Drivers:  []tracking.Driver{driver},
		Invites:  []tracking.Invite{newInvite("d", 5, 6)},
		Keys:     []tracking.Key{newKey("key", 7, t0)},
		Requests: []tracking.Request{newRequest("d", "x", t0)},
		Fixes:    []tracking.FixBatch{{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{newFix(t0, 11, 48)}}},
		Events:   []tracking.Event{newEvent("e", tracking.KindTask, "t", t0, "d")},
		Deliver:  []string{""},
	}
}

// empty reports whether v, or everything in it, is the zero value.
func empty(v any) bool {
	if list, ok := v.([]any); ok {
		for _, e := range list {
			if !empty(e) {
				return false
			}
		}
		return true
	}
	return v == nil || reflect.ValueOf(v).IsZero()
}

// calls are all methods of a store and all parts of a Changeset, each with rows that [seed] makes.
func calls() []call {
	type ctx = context.Context
	type store = tracking.Store
	type app = tracking.AppID
	list := []call{
		{method: "Task", do: func(c ctx, s store, a app) (any, error) { return s.Task(c, a, "t") }},
		{method: "Tasks", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			l, more, err := s.Tasks(c, a, tracking.TaskFilter{Page: tracking.Page{Limit: 1}})
			return []any{l, more}, err
		}},
		{method: "TaskCounts", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			return s.TaskCounts(c, a, tracking.CountQuery{Now: t0})
		}},
		{method: "Stats", any: true, found: nothing, do: func(c ctx, s store, _ app) (any, error) { return s.Stats(c, t0) }},
		{method: "TaskByKey", do: func(c ctx, s store, a app) (any, error) { return s.TaskByKey(c, a, "k") }},
		{method: "TaskByLink", any: true, do: func(c ctx, s store, _ app) (any, error) {
			a, v, err := s.TaskByLink(c, hash(1))
			return []any{a, v}, err
		}},
		{method: "Trip", do: func(c ctx, s store, a app) (any, error) { return s.Trip(c, a, "r") }},
		{method: "Trips", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			l, more, err := s.Trips(c, a, tracking.TripFilter{Page: tracking.Page{Limit: 1}})
			return []any{l, more}, err
		}},
		{method: "ActiveTrip", do: func(c ctx, s store, a app) (any, error) { return s.ActiveTrip(c, a, "x") }},
		{method: "TripByLink", any: true, do: func(c ctx, s store, _ app) (any, error) {
			a, v, err := s.TripByLink(c, hash(2))
			return []any{a, v}, err
		}},
		{method: "Request", do: func(c ctx, s store, a app) (any, error) {
			return s.Request(c, a, tracking.RequestID{DriverID: "d", TrackingID: "x"})
		}},
		{
			method: "Requests", found: nothing,
			do: func(c ctx, s store, a app) (any, error) { return s.Requests(c, a, "d") },
		},
		{method: "Fixes", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			var l []tracking.Fix
			for f, err := range s.Fixes(c, a, "d", tracking.FixRange{}) {
				if err != nil {
					return l, err
				}
				l = append(l, f)
			}
			return l, nil
		}},
		{method: "KeptFixes", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			return s.KeptFixes(c, a, "d", tracking.FixRange{Limit: 1})
		}},
		{method: "Driver", do: func(c ctx, s store, a app) (any, error) { return s.Driver(c, a, "d") }},
		{method: "Drivers", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			l, more, err := s.Drivers(c, a, tracking.DriverFilter{Page: tracking.Page{Limit: 1}})
			return []any{l, more}, err
		}},
		{method: "Drivers", name: "Drivers by property", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			l, more, err := s.Drivers(c, a, tracking.DriverFilter{
				Page: tracking.Page{Limit: 1}, Properties: map[string]string{"zone": "1"},
			})
			return []any{l, more}, err
		}},
		{method: "Drivers", name: "Drivers nearby", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			l, more, err := s.Drivers(c, a, tracking.DriverFilter{
				Page: tracking.Page{Limit: 1}, Near: &tracking.LngLat{Lng: 11, Lat: 48},
			})
			return []any{l, more}, err
		}},
		{method: "Offers", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			return s.Offers(c, a, tracking.Offer{At: tracking.LngLat{Lng: 11, Lat: 48}, MaxOpen: 1, Limit: 1})
		}},
		{method: "DriverByToken", any: true, do: func(c ctx, s store, _ app) (any, error) {
			a, v, err := s.DriverByToken(c, tracking.TokenApp, hash(3))
			return []any{a, v}, err
		}},
		{method: "Invite", do: func(c ctx, s store, a app) (any, error) { return s.Invite(c, a, "d") }},
		{method: "InviteByHash", any: true, do: func(c ctx, s store, _ app) (any, error) {
			a, v, err := s.InviteByHash(c, hash(5))
			return []any{a, v}, err
		}},
		{method: "Keys", found: nothing, do: func(c ctx, s store, a app) (any, error) { return s.Keys(c, a) }},
		{method: "KeyByHash", any: true, do: func(c ctx, s store, _ app) (any, error) {
			a, v, err := s.KeyByHash(c, hash(7))
			return []any{a, v}, err
		}},
		{method: "Events", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			l, more, err := s.Events(c, a, tracking.EventFilter{Limit: 10})
			return []any{l, more}, err
		}},
		{method: "Events", name: "Events of a subject", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			l, more, err := s.Events(c, a, tracking.EventFilter{
				Subject: tracking.Subject{Kind: tracking.KindTask, ID: "t"}, Limit: 10,
			})
			return []any{l, more}, err
		}},
		{method: "Events", name: "Events after one", do: func(c ctx, s store, a app) (any, error) {
			l, more, err := s.Events(c, a, tracking.EventFilter{After: "e", Limit: 10})
			return []any{l, more}, err
		}},
		{method: "Notices", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			l, lost, err := s.Notices(c, a, "d", 0, 10)
			return []any{l, lost}, err
		}},
		{method: "Due", name: "Due trips", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			return s.Due(c, tracking.DueQuery{Kind: tracking.DueTrips, App: a, Before: at(time.Hour), Limit: 10})
		}},
		{method: "Due", name: "Due geocodes", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			return s.Due(c, tracking.DueQuery{Kind: tracking.DueGeocodes, App: a, Before: at(time.Hour), Limit: 10})
		}},
		{method: "Due", name: "Due silence", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			return s.Due(c, tracking.DueQuery{Kind: tracking.DueSilence, App: a, Before: at(time.Hour), Limit: 10})
		}},
		{method: "Due", name: "Due tasks", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			return s.Due(c, tracking.DueQuery{Kind: tracking.DueTasks, App: a, Before: at(time.Hour), Limit: 10})
		}},
		{
			method: "Due", name: "Due deletions", found: nothing, do: func(c ctx, s store, a app) (any, error) {
				return s.Due(c, tracking.DueQuery{Kind: tracking.DueDeletions, App: a, Before: at(time.Hour), Limit: 10})
			},
		},
		{
			method: "Due", name: "Due trips of all applications", any: true, found: nothing,
			do: func(c ctx, s store, _ app) (any, error) {
				return s.Due(c, tracking.DueQuery{Kind: tracking.DueTrips, Before: at(time.Hour), Limit: 10})
			},
		},
		{
			method: "WaitingApps", any: true, found: nothing,
			do: func(c ctx, s store, _ app) (any, error) { return s.WaitingApps(c) },
		},
		{method: "Waiting", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			return s.Waiting(c, a, tracking.WaitingFilter{Limit: 10})
		}},
		{method: "Matches", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			return s.Matches(c, a, tracking.MatchQuery{MaxOpen: -1, Limit: 10})
		}},
		{
			method: "SetMemo", any: true, write: true, found: applied,
			do: func(c ctx, s store, _ app) (any, error) { return nil, s.SetMemo(c, "memo", []byte("a")) },
		},
		{method: "Memo", any: true, found: applied, do: func(c ctx, s store, _ app) (any, error) {
			if err := s.SetMemo(c, "memo", []byte("a")); err != nil {
				return nil, err
			}
			return s.Memo(c, "memo")
		}},
		{method: "Rows", found: nothing, do: func(c ctx, s store, a app) (any, error) {
			var l []tracking.Row
			for r, err := range s.Rows(c, tracking.RowQuery{App: a, Kinds: []tracking.RowKind{tracking.RowTask}}) {
				if err != nil {
					return l, err
				}
				l = append(l, r)
			}
			return l, nil
		}},
		{method: "Restore", write: true, found: applied, do: func(c ctx, s store, a app) (any, error) {
			return nil, s.Restore(c, tracking.Restoring{Rows: []tracking.Row{{App: a, Value: tracking.SubjectRow{
				Subject: tracking.Subject{Kind: tracking.KindTask, ID: "restored"}, Seq: 1,
			}}}})
		}},
		{
			method: "Secret", any: true, found: applied,
			do: func(c ctx, s store, _ app) (any, error) { return s.Secret(c) },
		},
		{
			method: "Files", name: "Files.Put", write: true, found: applied,
			do: func(c ctx, s store, a app) (any, error) {
				return nil, s.Files().Put(c, a, "f", tracking.File{TaskID: "t", At: t0, Data: []byte("f")})
			},
		},
		{
			method: "Files", name: "Files.Open of what was put", found: applied,
			do: func(c ctx, s store, a app) (any, error) {
				if err := s.Files().Put(c, a, "f", tracking.File{TaskID: "t", At: t0, Data: []byte("f")}); err != nil {
					return nil, err
				}
				return readFile(c, s, a, "f")
			},
		},
		{
			method: "Files", name: "Files.Delete", write: true, found: applied,
			do: func(c ctx, s store, a app) (any, error) { return nil, s.Files().Delete(c, a, "f") },
		},

		{method: "RecordFixes", write: true, do: func(c ctx, s store, a app) (any, error) {
			return s.RecordFixes(c, a, tracking.FixBatch{
				DriverID: "d", SeenAt: at(time.Hour), Fixes: []tracking.Fix{newFix(at(time.Hour), 11, 48)},
			})
		}},
		// The sweeps that write are called with what takes or removes nothing: what they do across
		// applications is in the contract tier.
		{method: "LeaseEvents", any: true, found: nothing, do: func(c ctx, s store, _ app) (any, error) {
			return s.LeaseEvents(c, tracking.Lease{Owner: "tenant", Now: t0, Limit: 10})
		}},
		{method: "FinishEvents", write: true, found: nothing, do: func(c ctx, s store, a app) (any, error) {
			return nil, s.FinishEvents(c, []tracking.Delivery{
				{App: a, EventID: "e", Owner: "w", State: tracking.DeliveryDead},
			})
		}},
		{method: "Purge", any: true, found: nothing, do: func(c ctx, s store, _ app) (any, error) {
			return s.Purge(c, tracking.Before{Limit: 10})
		}},
	}
	commit := func(part, name string, found finding, cs func() tracking.Changeset) {
		list = append(list, call{
			method: "Commit", part: part, name: "Commit of " + name, found: found, write: true,
			do: func(c ctx, s store, a app) (any, error) {
				change := cs()
				_, err := s.Commit(c, a, &change)
				return nil, err
			},
		})
	}
	change := func(f func(cs, seed *tracking.Changeset)) func() tracking.Changeset {
		return func() tracking.Changeset {
			var cs tracking.Changeset
			all := seed()
			for i := range all.Tasks {
				all.Tasks[i].Version, all.Tasks[i].Notes = 1, "changed"
			}
			all.Trips[0].Version, all.Trips[0].StartLocation = 1, "changed"
			all.Drivers[0].Version, all.Drivers[0].Name = 1, "changed"
			all.Invites[0].Version, all.Invites[0].Generation = 1, 9
			all.Keys[0].Version, all.Keys[0].RevokedAt = 1, t0
			all.Requests[0].Message = "changed"
			f(&cs, &all)
			return cs
		}
	}
	commit("Tasks", "a task", conflict, change(func(cs, all *tracking.Changeset) { cs.Tasks = all.Tasks }))
	commit("Trips", "a trip", conflict, change(func(cs, all *tracking.Changeset) { cs.Trips = all.Trips }))
	commit("Drivers", "a driver", conflict, change(func(cs, all *tracking.Changeset) { cs.Drivers = all.Drivers }))
	commit("DeleteDrivers", "a driver's end", conflict, change(func(cs, all *tracking.Changeset) {
		cs.DeleteDrivers = all.Drivers
	}))
	commit("DeleteTasks", "a task's end", conflict, change(func(cs, all *tracking.Changeset) { cs.DeleteTasks = all.Tasks }))
	commit("DeleteTrips", "a trip's end", conflict, change(func(cs, all *tracking.Changeset) { cs.DeleteTrips = all.Trips }))
	commit("DropFiles", "a file's end", nothing, change(func(cs, all *tracking.Changeset) { cs.DropFiles = []string{"f"} }))
	commit("Invites", "an invite", conflict, change(func(cs, all *tracking.Changeset) {
		cs.Invites = all.Invites
		cs.Invites[0].CodeHash = hash(98)
	}))
	commit("Invites", "an invite anew", conflict, change(func(cs, all *tracking.Changeset) {
		cs.Invites = all.Invites
		cs.Invites[0].Version, cs.Invites[0].CodeHash = 0, hash(99)
	}))
	commit("Keys", "a key", conflict, change(func(cs, all *tracking.Changeset) {
		cs.Keys = all.Keys
		cs.Keys[0].Hash = hash(97)
	}))
	commit("Requests", "a request", conflict, change(func(cs, all *tracking.Changeset) { cs.Requests = all.Requests }))
	commit("CloseRequests", "a request's end", nothing, change(func(cs, all *tracking.Changeset) {
		cs.CloseRequests = []tracking.RequestID{all.Requests[0].RequestID}
	}))
	commit("Fixes", "a fix", conflict, change(func(cs, all *tracking.Changeset) {
		cs.Fixes = []tracking.FixBatch{{
			DriverID: "d", SeenAt: at(time.Minute), Fixes: []tracking.Fix{newFix(at(time.Minute), 11, 48)},
		}}
	}))
	commit("Events", "an event", applied, change(func(cs, all *tracking.Changeset) {
		cs.Events = []tracking.Event{newEvent("other", tracking.KindTask, "t", t0, "d")}
	}))
	commit("Deliver", "an event to deliver", applied, change(func(cs, all *tracking.Changeset) {
		cs.Events, cs.Deliver = []tracking.Event{newEvent("another", tracking.KindTask, "t", t0, "d")}, []string{""}
	}))
	for i := range list {
		if list[i].name == "" {
			list[i].name = list[i].method
		}
	}
	return list
}
