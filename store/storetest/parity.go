package storetest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
)

// parityChecks look where stores tend to differ.
func parityChecks() []check {
	return slices.Concat(timeChecks(), textChecks(), placeChecks(), valueChecks())
}

// uniqueFor gives cs other unique values, which depend on n, so that it can be committed in several applications.
func uniqueFor(cs tracking.Changeset, n byte) tracking.Changeset {
	for i := range cs.Invites {
		cs.Invites[i].CodeHash[7] = n
	}
	for i := range cs.Keys {
		cs.Keys[i].Hash[7] = n
	}
	return cs
}

var (
	// anyHash takes all hashes for equal.
	anyHash = cmp.Comparer(func(a, b tracking.Hash) bool { return true })
	// ignoreDriver leaves "driver" out of a list of ids.
	ignoreDriver = cmp.Transformer("others", func(ids []string) map[int]string {
		m := map[int]string{}
		for _, id := range ids {
			if id != "driver" {
				m[len(m)] = id
			}
		}
		return m
	})
)

// similar are ids that a careless comparison takes for the same, in byte order.
var similar = []string{
	" a", "%", "*", "-1", "0", "00", "01", "1", "1.0", "10", "1e0", "2", "?", "A", "Aa", "NULL", "STRASSE", "_", "a", "a ", "aA", "aa", "a\u0301", "e", "e\u0301",
	"i", "null", "strasse", "stra\u00dfe", "z", "\u00a0a", "\u00c9", "\u00df", "\u00e1", "\u00e9", "\u0130", "\u0131", "\u0430", "\u200ba", "\ufb01", "\uff21", "\U0001f469", "\U0001f469\u200d\U0001f680", "\U0001f69a",
}

// awkward are texts that must come back byte for byte.
var awkward = []string{
	" ", "  two  spaces  ", "\ttab\r\nline\n", "\ufeffbom", "007", "1e3", "true", "null", "NULL", "{}", "[1,2]", `"quoted"`, `back\slash`, `\u0041`, "it's", "'; DROP TABLE tasks;--",
	"<script>alert(1)</script>&amp;", "\u2028\u2029", "\u202eright to left", "e\u0301 is not \u00e9", "\U0001f469\u200d\U0001f680 \U0001f1e9\U0001f1ea", "Ｆｕｌｌ", "%s %d %!", "$1 ?1 :a @b", "\x01\x1b\x7f", "\ufffd\uffff",
	strings.Repeat("long ", 800),
}

func textChecks() []check {
	return []check{
		{"text/ids compare byte for byte", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			if !slices.IsSorted(similar) {
				t.Fatal("the ids of this case are not in byte order")
			}
			var cs tracking.Changeset
			cs.Drivers = append(cs.Drivers, newDriver("driver", t0))
			shuffled := slices.Clone(similar)
			for i := range shuffled {
				shuffled[i] = similar[(i*17+5)%len(similar)]
			}
			for i, id := range shuffled {
				task := newTask(tracking.TaskID(id), t0)
				task.Key, task.OrderID, task.DriverID = id, id, tracking.DriverID(id)
				cs.Tasks = append(cs.Tasks, task)
				cs.Trips = append(cs.Trips, newTrip(tracking.TripID(id), tracking.DriverID(id), tracking.TrackingID(id), t0))
				d := newDriver(tracking.DriverID(id), t0)
				d.Properties = map[string]string{id: "v", "zone": id}
				cs.Drivers = append(cs.Drivers, d)
				cs.Keys = append(cs.Keys, newKey(id, byte(i), t0))
				cs.Push = append(cs.Push, newRequest("driver", tracking.TrackingID(id), t0))
				cs.Fixes = append(cs.Fixes, tracking.FixBatch{DriverID: tracking.DriverID(id), SeenAt: t0, Fixes: []tracking.Fix{newFix(t0, 11, 48)}})
				cs.Events = append(cs.Events, newEvent(id, tracking.KindTask, id, t0, tracking.DriverID(id)))
			}
			c.commit(cs)
			for _, id := range similar {
				what := fmt.Sprintf("%+q", id)
				same(t, "Task "+what, c.task(tracking.TaskID(id)).ID, tracking.TaskID(id))
				same(t, "Trip "+what, c.trip(tracking.TripID(id)).ID, tracking.TripID(id))
				same(t, "Driver "+what, c.driver(tracking.DriverID(id)).ID, tracking.DriverID(id))
				key, err := s.TaskByKey(c.ctx, here, id)
				c.ok(err)
				same(t, "TaskByKey "+what, key.Key, id)
				active, err := s.ActiveTrip(c.ctx, here, tracking.TrackingID(id))
				c.ok(err)
				same(t, "ActiveTrip "+what, active.TrackingID, tracking.TrackingID(id))
				for _, f := range []tracking.TaskFilter{{DriverID: tracking.DriverID(id)}, {OrderID: id}} {
					list, _ := c.tasks(f)
					same(t, "tasks by "+what, each(list, taskID), []tracking.TaskID{tracking.TaskID(id)})
				}
				for _, f := range []tracking.TripFilter{{DriverID: tracking.DriverID(id)}, {TrackingID: tracking.TrackingID(id)}} {
					list, _ := c.trips(f)
					same(t, "trips by "+what, each(list, tripID), []tracking.TripID{tracking.TripID(id)})
				}
				for _, f := range []map[string]string{{id: "v"}, {"zone": id}} {
					list, _ := c.drivers(tracking.DriverFilter{Properties: f})
					same(t, "drivers by "+what, each(list, driverID), []tracking.DriverID{tracking.DriverID(id)})
				}
				events, _ := c.events(tracking.EventFilter{Subject: tracking.Subject{Kind: tracking.KindTask, ID: id}})
				same(t, "events of "+what, each(events, eventID), []string{id})
				same(t, "seq", events[0].Seq, 1)
				notices, _ := c.notices(tracking.DriverID(id), 0)
				same(t, "notices of "+what, each(notices, func(n tracking.Notice) string { return n.EventID }), []string{id})
				same(t, "fixes of "+what, len(c.fixes(tracking.DriverID(id), tracking.FixRange{})), 1)
			}
			same(t, "keys", each(c.keys(), func(k tracking.Key) string { return k.ID }), similar)
			same(t, "requests", each(c.requests("driver"), func(r tracking.Request) string { return string(r.TrackingID) }), similar)
			name := func(d tracking.Driver) string { return string(d.ID) }
			for _, limit := range []int{3, 1000} { // all at one place: ties go by ID
				pages(t, "drivers at one place", similar, limit, func(p tracking.Page) ([]string, bool) {
					list, more := c.drivers(tracking.DriverFilter{Page: p, Near: &tracking.LngLat{Lng: 11, Lat: 48}})
					return each(list, name), more
				})
				got := c.offers(tracking.Offer{At: tracking.LngLat{Lng: 11.1, Lat: 48}, MaxOpen: -1, Limit: limit, Exclude: []tracking.DriverID{"a", "E", "zz"}})
				want := slices.DeleteFunc(slices.Clone(similar), func(id string) bool { return id == "a" })
				same(t, "offers at one place", each(got, name), want[:min(limit, len(want))])
			}
			_, err := s.Task(c.ctx, here, "n")
			missing(t, "Task", err)
		}},
		{"text/applications compare byte for byte", func(t testing.TB, s tracking.Store) {
			for _, id := range similar {
				use(t, s, tracking.AppID(id)).commit(tracking.Changeset{
					Tasks:   []tracking.Task{{ID: "t", Type: tracking.Drop, Status: tracking.StatusCreated, Notes: id, CreatedAt: t0}},
					Drivers: []tracking.Driver{newDriver("d", t0)},
					Fixes:   []tracking.FixBatch{{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{newFix(t0, 11, 48)}}},
				})
			}
			for _, id := range similar {
				c := use(t, s, tracking.AppID(id))
				same(t, fmt.Sprintf("task of %+q", id), c.task("t").Notes, id)
				list, _ := c.drivers(tracking.DriverFilter{Near: &tracking.LngLat{Lng: 11, Lat: 48}})
				same(t, "drivers nearby", len(list), 1)
			}
		}},
		{"text/comes back byte for byte", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			for i, text := range awkward {
				cs := everyRow(1)
				cs.Tasks[0].Key = ""
				cs.Events = []tracking.Event{fullEvent(fmt.Sprint("e", i), 1, tracking.Subject{Kind: tracking.KindTask, ID: "t"})}
				cs.Events[0].Data = map[string]string{text: text}
				cs.Fixes = []tracking.FixBatch{{DriverID: "d", SeenAt: t0, KeepOffDuty: true, Fixes: []tracking.Fix{newFix(at(time.Duration(i)*time.Second), 11, 48)}}}
				cs.Fixes[0].Fixes[0].EventID = text
				cs.Drivers[0].Properties = map[string]string{text: text}
				for _, field := range []*string{
					&cs.Tasks[0].Reason, &cs.Tasks[0].Notes, &cs.Tasks[0].OrderID, &cs.Tasks[0].Pickup.Address, &cs.Tasks[0].Pickup.Customer.Name, &cs.Tasks[0].Drop.Customer.Mobile,
					&cs.Trips[0].StartLocation, &cs.Trips[0].EndLocation, &cs.Trips[0].Dest.Address,
					&cs.Drivers[0].Name, &cs.Drivers[0].Mobile, &cs.Drivers[0].Email, &cs.Keys[0].Name, &cs.Push[0].Message, &cs.Push[0].Desc, &cs.Push[0].Dest.Address, &cs.Events[0].Actor,
				} {
					*field = text
				}
				want := kept(cs)
				v := int64(i)
				cs.Tasks[0].Version, cs.Trips[0].Version, cs.Drivers[0].Version, cs.Keys[0].Version = v, v, v, v
				c.commit(cs)
				what := fmt.Sprintf("%.40q", text)
				same(t, "task with "+what, c.task("t"), want.Tasks[0], givenNumbers, anyVersion)
				same(t, "trip with "+what, c.trip("r"), want.Trips[0], givenNumbers, anyVersion)
				d := c.driver("d")
				same(t, "event id of the fix", d.Position.Fix.EventID, text)
				d.Position = tracking.Position{}
				same(t, "driver with "+what, d, want.Drivers[0], givenNumbers, anyVersion)
				same(t, "keys with "+what, c.keys(), want.Keys, anyVersion)
				same(t, "requests with "+what, c.requests("d"), want.Push)
				events, _ := c.events(tracking.EventFilter{})
				want.Events[0].Seq = v + 1
				same(t, "event with "+what, events[i], want.Events[0])
				list, _ := c.drivers(tracking.DriverFilter{Properties: map[string]string{text: text}})
				same(t, "drivers by the property "+what, len(list), 1)
				byOrder, _ := c.tasks(tracking.TaskFilter{OrderID: text})
				same(t, "tasks by the order "+what, len(byOrder), 1)
			}
		}},
	}
}

// anyVersion takes all versions for equal.
var anyVersion = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Version" }, cmp.Ignore())

func placeChecks() []check {
	// edges are where boxes of degrees mislead.
	edges := []tracking.LngLat{
		{Lng: 179.9, Lat: 0}, {Lng: -179.9, Lat: 0}, {Lng: 180, Lat: 0}, {Lng: -180, Lat: 0}, {Lng: 179.95, Lat: 0.05}, {Lng: -179.99, Lat: -0.05}, {Lng: 0, Lat: 0}, {Lng: 90, Lat: 0},
		{Lng: 0, Lat: 90}, {Lng: 123, Lat: 90}, {Lng: -45, Lat: 89.9}, {Lng: 135, Lat: 89.9}, {Lng: 10, Lat: 89.99}, {Lng: -170, Lat: 89.99}, {Lng: 0, Lat: 85}, {Lng: 180, Lat: 85}, {Lng: 60, Lat: 84},
		{Lng: 0, Lat: -90}, {Lng: 20, Lat: -89.9}, {Lng: -160, Lat: -89.9}, {Lng: 20, Lat: -80}, {Lng: 25.7, Lat: 66.5}, {Lng: 26.7, Lat: 66.5}, {Lng: 25.7, Lat: 66.9}, {Lng: 15.6, Lat: 78.2}, {Lng: 17, Lat: 78.2}, {Lng: 15.6, Lat: 78.5},
		{Lng: 11.5, Lat: 48.1}, {Lng: 11.5007, Lat: 48.1}, {Lng: 11.5, Lat: 48.1005}, {Lng: 11.5, Lat: 48.0992}, {Lng: 11.4988, Lat: 48.1}, {Lng: -74, Lat: 40.7}, {Lng: 151.2, Lat: -33.9},
	}
	var ids []tracking.DriverID
	for i := range edges {
		ids = append(ids, tracking.DriverID(fmt.Sprintf("%02d", i*23%len(edges))))
	}
	from := append(slices.Clone(edges), tracking.LngLat{Lng: 179.95, Lat: 0}, tracking.LngLat{Lng: -179.95, Lat: 1}, tracking.LngLat{Lng: 77, Lat: 89.95}, tracking.LngLat{Lng: -77, Lat: -89.95}, tracking.LngLat{Lng: 26, Lat: 66.6})
	return []check{
		{"place/nearest first at ±180°, at the poles and at high latitude", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			placed(c, ids, edges)
			for _, p := range from {
				want := nearest(p, ids, edges)
				for _, limit := range []int{5, len(edges)} {
					pages(t, fmt.Sprintf("drivers near %v", p), want, limit, func(pg tracking.Page) ([]tracking.DriverID, bool) {
						list, more := c.drivers(tracking.DriverFilter{Page: pg, Near: &p})
						return each(list, driverID), more
					})
					same(t, fmt.Sprintf("offers near %v", p), each(c.offers(tracking.Offer{At: p, MaxOpen: -1, Limit: limit}), driverID), want[:limit])
				}
				for _, within := range []float64{50, 20_000, 700_000, 1e7, 3e7} {
					var reach []tracking.DriverID
					for _, id := range want {
						if tracking.Distance(p, edges[slices.Index(ids, id)]) <= within {
							reach = append(reach, id)
						}
					}
					same(t, fmt.Sprintf("offers within %v m of %v", within, p), each(c.offers(tracking.Offer{At: p, MaxOpen: -1, Within: within}), driverID), reach)
				}
			}
		}},
		{"place/ties go by ID, on every page", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			var ids []tracking.DriverID
			var places []tracking.LngLat
			for i := range 30 { // three to a place, on two mirrored sides
				ids = append(ids, tracking.DriverID(fmt.Sprintf("%c%02d", "Za"[i%2], i*11%30)))
				places = append(places, tracking.LngLat{Lng: float64(i%2*2-1) * float64(i/6+1), Lat: 0})
			}
			placed(c, ids, places)
			centre := tracking.LngLat{}
			for _, limit := range []int{1, 2, 4, 30} {
				pages(t, "drivers", nearest(centre, ids, places), limit, func(p tracking.Page) ([]tracking.DriverID, bool) {
					list, more := c.drivers(tracking.DriverFilter{Page: p, Near: &centre})
					return each(list, driverID), more
				})
				same(t, "offers", each(c.offers(tracking.Offer{At: centre, MaxOpen: -1, Limit: limit}), driverID), nearest(centre, ids, places)[:limit])
			}
		}},
		{"place/coordinates keep every bit", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			for i, p := range []tracking.LngLat{
				{Lng: 80.2628844, Lat: 13.0039875}, {Lng: math.Nextafter(180, 0), Lat: math.Nextafter(-90, 0)}, {Lng: 1.0 / 3, Lat: -1.0 / 7}, {Lng: 5e-324, Lat: -1e-300}, {Lng: 0.1 + 0.2, Lat: 0}, {Lng: -180, Lat: 90},
			} {
				id := fmt.Sprint(i)
				task, trip := newTask(tracking.TaskID(id), t0), newTrip(tracking.TripID(id), "d", tracking.TrackingID(id), t0)
				task.Drop.LngLat, trip.StartsAt = &p, &p
				fix := tracking.Fix{LngLat: p, Time: t0, Accuracy: tracking.Known(1.0 / 3), Speed: tracking.Known(0), Bearing: tracking.Reading{}, Battery: tracking.Known(math.SmallestNonzeroFloat64)}
				c.commit(tracking.Changeset{
					Tasks: []tracking.Task{task}, Trips: []tracking.Trip{trip}, Drivers: []tracking.Driver{newDriver(tracking.DriverID(id), t0)},
					Fixes: []tracking.FixBatch{{DriverID: tracking.DriverID(id), SeenAt: t0, Fixes: []tracking.Fix{fix}}},
				})
				same(t, "the task's point", *c.task(tracking.TaskID(id)).Drop.LngLat, p)
				same(t, "the trip's start", *c.trip(tracking.TripID(id)).StartsAt, p)
				same(t, "the live position", c.driver(tracking.DriverID(id)).Position.Fix, fix)
				same(t, "fixes", c.fixes(tracking.DriverID(id), tracking.FixRange{}), []tracking.Fix{fix})
			}
		}},
	}
}

func valueChecks() []check {
	return []check{
		{"value/what is empty comes back as nil, and an empty place as one", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			task := newTask("t", t0)
			task.Excluded = []tracking.DriverID{}
			task.Pickup, task.Drop = &tracking.Place{}, &tracking.Place{LngLat: &tracking.LngLat{}, Customer: &tracking.Contact{}}
			trip := newTrip("r", "d", "x", t0)
			trip.StartsAt, trip.Dest = &tracking.LngLat{}, &tracking.Place{}
			d := newDriver("d", t0)
			d.Properties = map[string]string{}
			request := newRequest("d", "x", t0)
			request.Dest = &tracking.Place{Customer: &tracking.Contact{}}
			e := newEvent("e", tracking.KindTask, "t", t0)
			e.Data, e.Notices = map[string]string{}, []tracking.Notice{}
			c.commit(tracking.Changeset{
				Tasks: []tracking.Task{task}, Trips: []tracking.Trip{trip}, Drivers: []tracking.Driver{d}, Push: []tracking.Request{request}, Events: []tracking.Event{e},
				Invites: []tracking.Invite{}, Keys: []tracking.Key{}, Fixes: []tracking.FixBatch{}, CloseRequests: []tracking.RequestID{}, DeleteDrivers: []tracking.Driver{},
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
		}},
		{"value/a property may be empty, and is not one that is missing", func(t testing.TB, s tracking.Store) {
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
		}},
		{"value/numbers keep 64 bits", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			task, trip, d, i := newTask("t", t0), newTrip("r", "d", "x", t0), newDriver("d", t0), newInvite("d", 1, 2)
			task.Link, trip.Link = tracking.Link{Generation: math.MaxInt, Hash: hash(1)}, tracking.Link{Generation: math.MaxInt - 1, Hash: hash(2)}
			d.OpenTasks, d.TokenGeneration, i.Generation = math.MaxInt, 1<<53+1, math.MaxInt
			c.commit(tracking.Changeset{Tasks: []tracking.Task{task}, Trips: []tracking.Trip{trip}, Drivers: []tracking.Driver{d}, Invites: []tracking.Invite{i}})
			same(t, "the task's link", c.task("t").Link, task.Link)
			same(t, "the trip's link", c.trip("r").Link, trip.Link)
			same(t, "the driver's token generation", c.driver("d").TokenGeneration, 1<<53+1)
			same(t, "the driver's open tasks", c.driver("d").OpenTasks, math.MaxInt)
			same(t, "the invite's generation", c.invite("d").Generation, math.MaxInt)
			got, lost := c.notices("d", math.MaxInt64)
			if got != nil || !lost {
				t.Errorf("notices after the greatest number: got %d, lost %v", len(got), lost)
			}
		}},
		{"value/pages beyond everything are empty", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			placed(c, []tracking.DriverID{"a", "b"}, []tracking.LngLat{{}, {}})
			c.commit(tracking.Changeset{Tasks: []tracking.Task{newTask("a", t0), newTask("b", t0)}, Trips: []tracking.Trip{newTrip("a", "a", "x", t0), newTrip("b", "b", "y", t0)}})
			for _, p := range []tracking.Page{{Number: math.MaxInt, Limit: 1}, {Number: math.MaxInt, Limit: 1000}, {Number: math.MaxInt/1000 + 2, Limit: 1000}, {Number: 1<<32 + 1, Limit: 1 << 32}, {Number: 3, Limit: 1}, {Number: 2, Limit: 2}} {
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
		}},
		{"value/what a caller passed in, it may change", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			cs, want := everyRow(1), everyRow(1)
			cs.Drivers[0].Available, want.Drivers[0].Available = true, true
			for _, part := range []*tracking.Changeset{&cs, &want} {
				part.Events = []tracking.Event{fullEvent("e", 1, tracking.Subject{Kind: tracking.KindTask, ID: "t"})}
				part.Events[0].Notices = []tracking.Notice{{DriverID: "d", Kind: tracking.NoticeUpdated, TaskID: "t"}}
				part.Fixes = []tracking.FixBatch{{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{walk(1), walk(2)}}}
			}
			c.ok(s.Commit(c.ctx, here, &cs))
			use(t, s, there).commit(uniqueFor(want, 9))
			batch := []tracking.Fix{walk(3), walk(4)}
			c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: batch})
			use(t, s, there).record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{walk(3), walk(4)}})
			scramble(reflect.ValueOf(&cs).Elem())
			scramble(reflect.ValueOf(&batch).Elem())
			same(t, "rows", snap(t, s, here), snap(t, s, there), givenNumbers, anyHash)
		}},
		{"value/what a caller got back, it may change", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			cs := seed()
			full := everyRow(1)
			full.Tasks[0].ID, full.Trips[0].ID, full.Drivers[0].ID = "full", "full", "full"
			full.Push[0].DriverID = "full"
			cs.Tasks, cs.Trips, cs.Drivers, cs.Push = append(full.Tasks, cs.Tasks...), append(full.Trips, cs.Trips...), append(full.Drivers, cs.Drivers...), append(cs.Push, full.Push...)
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
		}},
	}
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
