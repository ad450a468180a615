package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// textChecks are about text that stores tend to fold, trim or reorder.
func textChecks() []check {
	return []check{
		{"text/ids compare byte for byte", idsCompareByBytes},
		{"text/applications compare byte for byte", appsCompareByBytes},
		{"text/comes back byte for byte", textComesBackByBytes},
	}
}

// idsCompareByBytes has rows of all kinds whose ids differ in what some databases take for equal.
func idsCompareByBytes(t testing.TB, s tracking.Store) {
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
		cs.Requests = append(cs.Requests, newRequest("driver", tracking.TrackingID(id), t0))
		cs.Fixes = append(cs.Fixes, tracking.FixBatch{
			DriverID: tracking.DriverID(id), SeenAt: t0, Fixes: []tracking.Fix{newFix(t0, 11, 48)},
		})
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
		for _, f := range []tracking.TripFilter{
			{DriverID: tracking.DriverID(id)}, {TrackingID: tracking.TrackingID(id)},
		} {
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
	same(t, "requests", each(c.requests("driver"), func(r tracking.Request) string { return string(r.TrackingID) }),
		similar)
	name := func(d tracking.Driver) string { return string(d.ID) }
	for _, limit := range []int{3, 1000} { // all at one place: ties go by ID
		pages(t, "drivers at one place", similar, limit, func(p tracking.Page) ([]string, bool) {
			list, more := c.drivers(tracking.DriverFilter{Page: p, Near: &tracking.LngLat{Lng: 11, Lat: 48}})
			return each(list, name), more
		})
		got := c.offers(tracking.Offer{
			At: tracking.LngLat{Lng: 11.1, Lat: 48}, MaxOpen: -1, Limit: limit,
			Exclude: []tracking.DriverID{"a", "E", "zz"},
		})
		want := slices.DeleteFunc(slices.Clone(similar), func(id string) bool { return id == "a" })
		same(t, "offers at one place", each(got, name), want[:min(limit, len(want))])
	}
	_, err := s.Task(c.ctx, here, "n")
	missing(t, "Task", err)
}

func appsCompareByBytes(t testing.TB, s tracking.Store) {
	for _, id := range similar {
		use(t, s, tracking.AppID(id)).commit(tracking.Changeset{
			Tasks: []tracking.Task{{
				ID: "t", Type: tracking.TypeDrop, Status: tracking.StatusCreated, Notes: id, CreatedAt: t0,
			}},
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
}

// textComesBackByBytes puts every awkward text into every field that holds one.
func textComesBackByBytes(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	for i, text := range awkward {
		cs := everyRow(1)
		cs.Tasks[0].Key = ""
		cs.Events = []tracking.Event{fullEvent(fmt.Sprint("e", i), 1, tracking.Subject{
			Kind: tracking.KindTask, ID: "t",
		})}
		cs.Events[0].Data = map[string]string{text: text}
		cs.Fixes = []tracking.FixBatch{{
			DriverID: "d", SeenAt: t0, KeepOffDuty: true,
			Fixes: []tracking.Fix{newFix(at(time.Duration(i)*time.Second), 11, 48)},
		}}
		cs.Fixes[0].Fixes[0].EventID = text
		cs.Drivers[0].Properties = map[string]string{text: text}
		for _, field := range []*string{
			&cs.Tasks[0].Reason, &cs.Tasks[0].Notes, &cs.Tasks[0].OrderID, &cs.Tasks[0].Pickup.Address,
			&cs.Tasks[0].Pickup.Customer.Name, &cs.Tasks[0].Drop.Customer.Mobile, &cs.Trips[0].StartLocation,
			&cs.Trips[0].EndLocation, &cs.Trips[0].Dest.Address, &cs.Drivers[0].Name, &cs.Drivers[0].Mobile,
			&cs.Drivers[0].Email, &cs.Keys[0].Name, &cs.Requests[0].Message, &cs.Requests[0].Desc,
			&cs.Requests[0].Dest.Address,
			&cs.Events[0].Actor,
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
		same(t, "requests with "+what, c.requests("d"), want.Requests)
		events, _ := c.events(tracking.EventFilter{})
		want.Events[0].Seq = v + 1
		same(t, "event with "+what, events[i], want.Events[0])
		list, _ := c.drivers(tracking.DriverFilter{Properties: map[string]string{text: text}})
		same(t, "drivers by the property "+what, len(list), 1)
		byOrder, _ := c.tasks(tracking.TaskFilter{OrderID: text})
		same(t, "tasks by the order "+what, len(byOrder), 1)
	}
}

// similar are ids that a careless comparison takes for the same, in byte order.
var similar = []string{
	" a", "%", "*", "-1", "0", "00", "01", "1", "1.0", "10", "1e0", "2", "?", "A", "Aa", "NULL", "STRASSE", "_", "a",
	"a ", "aA", "aa", "a\u0301", "e", "e\u0301", "i", "null", "strasse", "stra\u00dfe", "z", "\u00a0a", "\u00c9",
	"\u00df", "\u00e1", "\u00e9", "\u0130", "\u0131", "\u0430", "\u200ba", "\ufb01", "\uff21", "\U0001f469",
	"\U0001f469\u200d\U0001f680", "\U0001f69a",
}

// awkward are texts that must come back byte for byte.
var awkward = []string{
	" ", "  two  spaces  ", "\ttab\r\nline\n", "\ufeffbom", "007", "1e3", "true", "null", "NULL", "{}", "[1,2]",
	`"quoted"`, `back\slash`, `\u0041`, "it's", "'; DROP TABLE tasks;--", "<script>alert(1)</script>&amp;",
	"\u2028\u2029", "\u202eright to left", "e\u0301 is not \u00e9", "\U0001f469\u200d\U0001f680 \U0001f1e9\U0001f1ea",
	"Ｆｕｌｌ", "%s %d %!", "$1 ?1 :a @b", "\x01\x1b\x7f", "\ufffd\uffff", strings.Repeat("long ", 800),
}
