package storetest

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// valueChecks are about what is empty, what is large, and whose memory it is.
func valueChecks() []check {
	return []check{
		{"value/what is empty comes back as nil, and an empty place as one", emptyComesBackAsNil},
		{"value/a property may be empty, and is not one that is missing", propertyMayBeEmpty},
		{"value/numbers keep 64 bits", numbersKeep64Bits},
		{"value/pages beyond everything are empty", pagesBeyondAreEmpty},
		{"value/what a caller passed in, it may change", argumentsAreTheCallers},
		{"value/what a caller got back, it may change", resultsAreTheCallers},
	}
}

// emptyComesBackAsNil commits empty lists and places.
func emptyComesBackAsNil(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	task := newTask("t", t0)
	task.Excluded = []tracking.DriverID{}
	task.Pickup, task.Drop = &tracking.Place{},
		&tracking.Place{LngLat: &tracking.LngLat{}, Customer: &tracking.Contact{}}
	trip := newTrip("r", "d", "x", t0)
	trip.StartsAt, trip.Dest = &tracking.LngLat{}, &tracking.Place{}
	d := newDriver("d", t0)
	d.Properties = map[string]string{}
	request := newRequest("d", "x", t0)
	request.Dest = &tracking.Place{Customer: &tracking.Contact{}}
	e := newEvent("e", tracking.KindTask, "t", t0)
	e.Data, e.Notices = map[string]string{}, []tracking.Notice{}
	c.commit(tracking.Changeset{
		Tasks: []tracking.Task{task}, Trips: []tracking.Trip{trip}, Drivers: []tracking.Driver{d},
		Requests: []tracking.Request{request}, Events: []tracking.Event{e}, Invites: []tracking.Invite{},
		Keys: []tracking.Key{}, Fixes: []tracking.FixBatch{}, CloseRequests: []tracking.RequestID{},
		DeleteDrivers: []tracking.Driver{},
	})
	task.Excluded, task.Version = nil, 1
	same(t, "task", c.task("t"), task, givenNumbers)
	trip.Version = 1
	same(t, "trip", c.trip("r"), trip, givenNumbers)
	d.Properties, d.Version = nil, 1
	same(t, "driver", c.driver("d"), d, givenNumbers)
	same(t, "requests", c.requests("d"), []tracking.Request{request})
	e.Data, e.Notices, e.Seq = nil, nil, 1
	events, _ := c.events(tracking.EventFilter{})
	same(t, "events", events, []tracking.Event{e})
	r := c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{}})
	same(t, "outcomes of no fixes", r.Outcomes, nil)
}

func propertyMayBeEmpty(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	d := newDriver("d", t0)
	d.Properties = map[string]string{"": "x", "empty": ""}
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{d, newDriver("e", t0)}})
	same(t, "properties", c.driver("d").Properties, map[string]string{"": "x", "empty": ""})
	for _, f := range []map[string]string{{"": "x"}, {"empty": ""}} {
		list, _ := c.drivers(tracking.DriverFilter{Properties: f})
		same(t, fmt.Sprintf("drivers by %q", f), each(list, driverID), []tracking.DriverID{"d"})
	}
	list, _ := c.drivers(tracking.DriverFilter{Properties: map[string]string{"none": ""}})
	same(t, "drivers by a property nobody has", list, nil)
}

func numbersKeep64Bits(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	task, trip, d, i := newTask("t", t0), newTrip("r", "d", "x", t0), newDriver("d", t0), newInvite("d", 1, 2)
	task.Link, trip.Link = tracking.Link{Generation: math.MaxInt, Hash: hash(1)},
		tracking.Link{Generation: math.MaxInt - 1, Hash: hash(2)}
	d.TokenGeneration, i.Generation = 1<<53+1, math.MaxInt
	c.commit(tracking.Changeset{
		Tasks: []tracking.Task{task}, Trips: []tracking.Trip{trip}, Drivers: []tracking.Driver{d},
		Invites: []tracking.Invite{i},
	})
	same(t, "the task's link", c.task("t").Link, task.Link)
	same(t, "the trip's link", c.trip("r").Link, trip.Link)
	same(t, "the driver's token generation", c.driver("d").TokenGeneration, 1<<53+1)
	same(t, "the invite's generation", c.invite("d").Generation, math.MaxInt)
	got, lost := c.notices("d", math.MaxInt64)
	if got != nil || !lost {
		t.Errorf("notices after the greatest number: got %d, lost %v", len(got), lost)
	}
}

// pagesBeyondAreEmpty asks for pages whose offset does not fit into an int.
func pagesBeyondAreEmpty(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	placed(c, []tracking.DriverID{"a", "b"}, []tracking.LngLat{{}, {}})
	c.commit(tracking.Changeset{
		Tasks: []tracking.Task{newTask("a", t0), newTask("b", t0)},
		Trips: []tracking.Trip{newTrip("a", "a", "x", t0), newTrip("b", "b", "y", t0)},
	})
	for _, p := range []tracking.Page{
		{Number: math.MaxInt, Limit: 1}, {Number: math.MaxInt, Limit: 1000},
		{Number: math.MaxInt/1000 + 2, Limit: 1000}, {Number: 1<<32 + 1, Limit: 1 << 32}, {Number: 3, Limit: 1},
		{Number: 2, Limit: 2},
	} {
		for what, read := range lists(c) {
			n, more := read(p)
			if n != 0 || more {
				t.Errorf("%s, page %+v: got %d rows, more %v; want none", what, p, n, more)
			}
		}
	}
	for what, read := range lists(c) {
		for _, number := range []int{0, 1} {
			n, more := read(tracking.Page{Number: number, Limit: 1})
			if n != 1 || !more {
				t.Errorf("%s, page %d: got %d rows, more %v; want one and more", what, number, n, more)
			}
		}
		n, more := read(tracking.Page{Number: 1, Limit: 2})
		if n != 2 || more {
			t.Errorf("%s, all: got %d rows, more %v; want two and no more", what, n, more)
		}
	}
}

func argumentsAreTheCallers(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	cs, want := everyRow(1), everyRow(1)
	cs.Drivers[0].Available, want.Drivers[0].Available = true, true
	for _, part := range []*tracking.Changeset{&cs, &want} {
		part.Events = []tracking.Event{fullEvent("e", 1, tracking.Subject{Kind: tracking.KindTask, ID: "t"})}
		part.Events[0].Notices = []tracking.Notice{{DriverID: "d", Kind: tracking.NoticeUpdated, TaskID: "t"}}
		part.Fixes = []tracking.FixBatch{{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{walk(1), walk(2)}}}
	}
	c.ok(second(s.Commit(c.ctx, here, &cs)))
	use(t, s, there).commit(uniqueFor(want, 9))
	for _, batch := range [][]tracking.Fix{{walk(3), walk(4)}, {walk(5)}} {
		c.ok(second(s.RecordFixes(c.ctx, here, tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: batch})))
		scramble(reflect.ValueOf(&batch).Elem())
	}
	use(t, s, there).record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{walk(3), walk(4), walk(5)}})
	scramble(reflect.ValueOf(&cs).Elem())
	same(t, "rows", snap(t, s, here), snap(t, s, there), givenNumbers, anyHash)
}

// resultsAreTheCallers overwrites all that every read returned.
func resultsAreTheCallers(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	cs := seed()
	full := everyRow(1)
	full.Tasks[0].ID, full.Trips[0].ID, full.Drivers[0].ID = "full", "full", "full"
	full.Requests[0].DriverID = "full"
	cs.Tasks, cs.Trips, cs.Drivers, cs.Requests = append(full.Tasks, cs.Tasks...), append(full.Trips, cs.Trips...),
		append(full.Drivers, cs.Drivers...), append(cs.Requests, full.Requests...)
	cs.Events[0].Data = map[string]string{"a": "b"}
	c.commit(cs)
	before := snap(t, s, here)
	results := []any{c.task("full"), c.trip("full"), c.driver("full"), c.requests("full"), snap(t, s, here)}
	for _, call := range calls() {
		if !call.write {
			got, err := call.do(c.ctx, s, here)
			c.ok(err)
			results = append(results, got)
		}
	}
	for _, got := range results {
		v := reflect.New(reflect.TypeOf(&got).Elem())
		v.Elem().Set(reflect.ValueOf(got))
		scramble(v.Elem())
	}
	same(t, "rows", snap(t, s, here), before)
	list, _ := c.drivers(tracking.DriverFilter{Properties: map[string]string{"zone": "1"}})
	same(t, "drivers by property", each(list, driverID), []tracking.DriverID{"d"})
}

// lists reads a page of each list, and tells how many rows it has.
func lists(c *client) map[string]func(tracking.Page) (int, bool) {
	return map[string]func(tracking.Page) (int, bool){
		"tasks": func(p tracking.Page) (int, bool) {
			l, more := c.tasks(tracking.TaskFilter{Page: p})
			return len(l), more
		},
		"trips": func(p tracking.Page) (int, bool) {
			l, more := c.trips(tracking.TripFilter{Page: p})
			return len(l), more
		},
		"drivers": func(p tracking.Page) (int, bool) {
			l, more := c.drivers(tracking.DriverFilter{Page: p})
			return len(l), more
		},
		"drivers nearby": func(p tracking.Page) (int, bool) {
			l, more := c.drivers(tracking.DriverFilter{Page: p, Near: &tracking.LngLat{}})
			return len(l), more
		},
	}
}

// scramble overwrites all that v shares with others: what its pointers, slices and maps lead to.
func scramble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Interface:
		if !v.IsNil() {
			c := reflect.New(v.Elem().Type()).Elem()
			c.Set(v.Elem())
			scramble(c)
		}
	case reflect.Struct:
		if v.Type() != reflect.TypeFor[time.Time]() {
			for i := range v.NumField() {
				scramble(v.Field(i))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			scramble(v.Elem())
			v.Elem().SetZero()
		}
	case reflect.Slice:
		for i := range v.Len() {
			scramble(v.Index(i))
			v.Index(i).SetZero()
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			c := reflect.New(v.Type().Elem()).Elem()
			c.Set(v.MapIndex(k))
			scramble(c)
			v.SetMapIndex(k, reflect.Value{})
		}
	}
}
