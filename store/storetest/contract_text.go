package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed-8aba7b13/tracking"
)

// oddTextChecks are about texts that not every store can keep.
func oddTextChecks() []check {
	return []check{
		{"Store/a text that is not valid UTF-8, or holds U+0000, is refused with all that is written with it",
			oddTextsAreRefused},
		{"Store/no look-up by such a text finds anything", oddTextsFindNothing},
		{"Store/an application has no such name", oddAppIsNone},
	}
}

// odd are such texts, beside those that are there.
func odd(text string) []string {
	return []string{text + "\x00", "\x00" + text, text + "\xff", text + "\xed\xa0\x80"}
}

// sound reports whether a store keeps v.
func sound(v string) bool { return utf8.ValidString(v) && !strings.Contains(v, "\x00") }

// withTexts has a text in each field that is written.
func withTexts() tracking.Changeset {
	event := fullEvent("e", 6, tracking.Subject{Kind: tracking.KindTask, ID: "t"})
	event.Notices = []tracking.Notice{{
		DriverID: "d", Kind: tracking.NoticeUpdated, TaskID: "t", TrackingID: "x",
	}}
	fix := newFix(t0, 11, 48)
	fix.EventID = "fix"
	driver := fullDriver("d", 3)
	driver.Available, driver.DutyAt, driver.OffDutyAt = true, t0, time.Time{}
	return tracking.Changeset{
		Tasks: []tracking.Task{fullTask("t", 1)}, Trips: []tracking.Trip{fullTrip("r", 2)},
		Drivers: []tracking.Driver{driver}, Invites: []tracking.Invite{fullInvite("d", 4)},
		Keys:     []tracking.Key{fullKey("k", 5)},
		Requests: []tracking.Request{fullRequest(tracking.RequestID{DriverID: "d", TrackingID: "x"}, 7)},
		Fixes:    []tracking.FixBatch{{SeenAt: t0, Fixes: []tracking.Fix{fix}, KeepOffDuty: true}},
		Events:   []tracking.Event{event}, Deliver: []string{"outbox"},
	}
}

// eachText calls f with every text inside v that is not empty, and what sets it.
func eachText(v reflect.Value, path string, f func(path, text string, set func(string))) {
	switch v.Kind() {
	case reflect.String:
		if v.Len() > 0 {
			f(path, v.String(), v.SetString)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			eachText(v.Elem(), path, f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachText(v.Index(i), fmt.Sprint(path, i), f)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			e := v.MapIndex(k)
			f(path+" key", k.String(), func(text string) {
				v.SetMapIndex(k, reflect.Value{})
				v.SetMapIndex(reflect.ValueOf(text).Convert(k.Type()), e)
			})
			f(path+" value", e.String(), func(text string) {
				v.SetMapIndex(k, reflect.ValueOf(text).Convert(e.Type()))
			})
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			eachText(v.Field(i), path+" "+v.Type().Field(i).Name, f)
		}
	}
}

func oddTextsAreRefused(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	n := 0
	first := withTexts()
	eachText(reflect.ValueOf(&first).Elem(), "", func(string, string, func(string)) { n++ })
	for i := range n {
		for variant := range odd("") {
			cs, at := withTexts(), 0
			var where string
			eachText(reflect.ValueOf(&cs).Elem(), "", func(path, text string, set func(string)) {
				if at == i {
					where = path
					set(odd(text)[variant])
				}
				at++
			})
			cs.Fixes[0].DriverID = "d"
			if _, err := s.Commit(c.ctx, here, &cs); !errors.Is(err, tracking.ErrInvalid) {
				t.Errorf("Commit with an odd text in%s: got error %v, want ErrInvalid", where, err)
			}
		}
	}
	same(t, "rows", snap(t, s, here, "d"), snap(t, s, "nobody", "d"))
	expectLeaseFrom(c, "outbox", "w", at(time.Hour))

	cs := withTexts()
	cs.Fixes[0].DriverID = "d"
	c.commit(cs)
	before := snap(t, s, here)
	for _, text := range odd("a") {
		bad, good := newFix(at(time.Second), 11, 48), newFix(at(2*time.Second), 11, 48)
		bad.EventID = text
		put := func(id string, f tracking.File) error { f.At = t0; return s.Files().Put(c.ctx, here, id, f) }
		for what, err := range map[string]error{
			"Files.Put under an odd id": put(text, tracking.File{TaskID: "t"}),
			"Files.Put of an odd task":  put("f", tracking.File{TaskID: tracking.TaskID(text)}),
			"Files.Put of an odd type":  put("f", tracking.File{TaskID: "t", Type: text}),
			"SetMemo":                   s.SetMemo(c.ctx, text, []byte("value")),
			"RecordFixes of an odd fix": second(s.RecordFixes(c.ctx, here, tracking.FixBatch{
				DriverID: "d", SeenAt: at(time.Minute), KeepOffDuty: true, Fixes: []tracking.Fix{good, bad},
			})),
		} {
			if !errors.Is(err, tracking.ErrInvalid) {
				t.Errorf("%s: got error %v, want ErrInvalid", what, err)
			}
		}
		c.file("f", nil)
		c.file(text, nil)
	}
	same(t, "rows", snap(t, s, here), before)
}

func second[T any](_ T, err error) error { return err }

func oddTextsFindNothing(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	cs := seed()
	cs.Tasks[0].OrderID, cs.Tasks[0].DriverID = "#1", "d"
	cs.Tasks[1].Requires, cs.Tasks[1].Excluded = map[string]string{"zone": "1"}, []tracking.DriverID{"e"}
	c.commit(cs)
	c.putFile("f", tracking.File{TaskID: "t", At: t0, Data: []byte("f")})
	page := tracking.Page{Limit: 10}
	before := snap(t, s, here)
	for _, bad := range []func(string) string{
		func(v string) string { return odd(v)[0] }, func(v string) string { return odd(v)[2] },
	} {
		d, x := tracking.DriverID(bad("d")), tracking.TrackingID(bad("x"))
		zone, ofStatus := map[string]string{"zone": bad("1")}, []tracking.TaskStatus{tracking.TaskStatus(bad("created"))}
		for what, err := range map[string]error{
			"Task":       second(s.Task(c.ctx, here, tracking.TaskID(bad("t")))),
			"TaskByKey":  second(s.TaskByKey(c.ctx, here, bad("k"))),
			"Trip":       second(s.Trip(c.ctx, here, tracking.TripID(bad("r")))),
			"ActiveTrip": second(s.ActiveTrip(c.ctx, here, x)),
			"Request":    second(s.Request(c.ctx, here, tracking.RequestID{DriverID: "d", TrackingID: x})),
			"Driver":     second(s.Driver(c.ctx, here, d)),
			"Invite":     second(s.Invite(c.ctx, here, d)),
			"file":       second(s.Files().Open(c.ctx, here, bad("f"))),
			"RecordFixes": second(s.RecordFixes(c.ctx, here, tracking.FixBatch{
				DriverID: d, SeenAt: at(time.Hour), Fixes: []tracking.Fix{newFix(at(time.Hour), 11, 48)},
			})),
			"RecordFixes of a person": second(s.RecordFixes(c.ctx, here, tracking.FixBatch{
				DriverID: "d", Person: bad(""), SeenAt: at(time.Hour),
			})),
		} {
			missing(t, what, err)
		}
		_, _, err := s.Events(c.ctx, here, tracking.EventFilter{After: bad("e"), Limit: 10})
		missing(t, "Events after one", err)

		tasks := func(f tracking.TaskFilter) any { f.Page = page; l, _ := c.tasks(f); return l }
		trips := func(f tracking.TripFilter) any { f.Page = page; l, _ := c.trips(f); return l }
		near, ofZone := tracking.DriverFilter{Page: page}, tracking.DriverFilter{Page: page, Properties: zone}
		near.Near, near.Properties = &tracking.LngLat{Lng: 11, Lat: 48}, zone
		drivers := func(f tracking.DriverFilter) any { l, _ := c.drivers(f); return l }
		events := func(f tracking.EventFilter) any { l, _ := c.events(f); return l }
		notices, lost := c.notices(d, 0)
		offer := tracking.Offer{At: *near.Near, MaxOpen: 10, Requires: zone}
		kept, err := s.KeptFixes(c.ctx, here, d, tracking.FixRange{Limit: 10})
		c.ok(err)
		memo, err := s.Memo(c.ctx, bad("memo"))
		c.ok(err)
		for what, got := range map[string]any{
			"Tasks of a driver":      tasks(tracking.TaskFilter{DriverID: d}),
			"Tasks of a person":      tasks(tracking.TaskFilter{DriverID: "d", Person: bad("")}),
			"Tasks of an order":      tasks(tracking.TaskFilter{OrderID: bad("#1")}),
			"Tasks of a status":      tasks(tracking.TaskFilter{Status: ofStatus}),
			"Trips of a driver":      trips(tracking.TripFilter{DriverID: d}),
			"Trips of a tracking id": trips(tracking.TripFilter{TrackingID: x}),
			"Requests":               c.requests(d),
			"Fixes":                  c.fixes(d, tracking.FixRange{}),
			"Fixes of a person":      c.fixes("d", tracking.FixRange{Person: bad("")}),
			"KeptFixes":              kept,
			"Drivers of a property":  drivers(ofZone),
			"Drivers nearby":         drivers(near),
			"Offers":                 c.offers(offer),
			"Events of a subject":    events(tracking.EventFilter{Subject: ofTask(bad("t"))}),
			"Events dead":            events(tracking.EventFilter{Dead: true, Outbox: bad("")}),
			"Notices":                notices,
			"lost notices":           lost,
			"Memo":                   memo,
			"events of an outbox":    c.leaseFrom(bad(""), "w", at(time.Hour), 10),
			"Due trips of a driver":  c.due(tracking.DueQuery{Kind: tracking.DueTrips, App: here, Driver: d, Before: at(1)}),
			"Due trips of an app":    c.due(tracking.DueQuery{Kind: tracking.DueTrips, App: tracking.AppID(bad("here"))}),
			"Waiting for a property": c.waiting(tracking.WaitingFilter{Driver: "d", Properties: zone}),
		} {
			if !empty(got) {
				t.Errorf("%s: got %+v, want nothing", what, got)
			}
		}
		offer = tracking.Offer{At: *near.Near, MaxOpen: 10, Exclude: []tracking.DriverID{d}}
		waiting := tracking.WaitingFilter{Driver: d, Properties: map[string]string{"zone": "1"}}
		same(t, "waiting for nobody", each(c.waiting(waiting), taskID), []tracking.TaskID{"waits"})
		same(t, "offers without nobody", each(c.offers(offer), driverID), []tracking.DriverID{"d"})

		// What names nothing changes nothing.
		c.finish(done("w", bad("e"), tracking.DeliveryDead), from(bad(""), done("w", "e", tracking.DeliveryDead)))
		c.ok(s.Files().Delete(c.ctx, here, bad("f")))
		c.file("f", []byte("f"))
		c.commit(tracking.Changeset{CloseRequests: []tracking.RequestID{{DriverID: "d", TrackingID: x}}})
		c.commit(tracking.Changeset{CloseRequests: []tracking.RequestID{{TrackingID: x}}})
		gone := tracking.Driver{ID: d, Version: 1}
		c.refused(tracking.Changeset{DeleteDrivers: []tracking.Driver{gone}},
			tracking.ConflictError{Kind: tracking.KindDriver, ID: string(d)})
		c.refused(tracking.Changeset{Fixes: []tracking.FixBatch{{DriverID: d, SeenAt: t0}}},
			tracking.ConflictError{Kind: tracking.KindDriver, ID: string(d)})
	}
	same(t, "rows", snap(t, s, here), before)
}

func oddAppIsNone(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(seed())
	before := snap(t, s, here)
	for _, name := range odd("here") {
		for _, call := range calls() {
			if call.any {
				continue
			}
			got, err := call.do(t.Context(), s, tracking.AppID(name))
			switch {
			case call.method == "Commit", call.method == "Restore", call.name == "Files.Put", call.name == "Files.Open of what was put":
				if !errors.Is(err, tracking.ErrInvalid) && (call.found != nothing || err != nil) {
					t.Errorf("%s in an application of an odd name: got error %v, want ErrInvalid", call.name, err)
				}
			case call.found == notFound:
				missing(t, call.name+" in an application of an odd name", err)
			case err != nil || !empty(got):
				t.Errorf("%s in an application of an odd name: got %+v, error %v; want nothing", call.name, got, err)
			}
		}
	}
	same(t, "rows", snap(t, s, here), before)
}
