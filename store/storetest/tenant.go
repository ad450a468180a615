package storetest

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// tenantChecks call everything for a foreign application.
func tenantChecks() []check {
	list := []check{
		{"every method and every part of a Changeset is tried", everyCallIsTried},
	}
	for _, call := range calls() {
		list = append(list, check{call.name, func(t testing.TB, s tracking.Store) { callIsOfOneApp(t, s, call) }})
	}
	return list
}

func everyCallIsTried(t testing.TB, s tracking.Store) {
	tried := map[string]bool{"Close": true, "Changeset.Deliver": true}
	for _, c := range calls() {
		tried[c.method] = true
		if c.part != "" {
			tried["Changeset."+c.part] = true
		}
	}
	for i := range reflect.TypeFor[tracking.Store]().NumMethod() {
		if name := reflect.TypeFor[tracking.Store]().Method(i).Name; !tried[name] {
			t.Errorf("Store.%s is in no call of this package's table", name)
		}
	}
	for i := range reflect.TypeFor[tracking.Changeset]().NumField() {
		if name := "Changeset." + reflect.TypeFor[tracking.Changeset]().Field(i).Name; !tried[name] {
			t.Errorf("%s is in no call of this package's table", name)
		}
	}
}

// callIsOfOneApp makes one call for an application that has nothing, for the one that has the rows,
// and for one that has the same ids, and looks each time at what the call was not for.
func callIsOfOneApp(t testing.TB, s tracking.Store, call call) {
	use(t, s, here).commit(seed())
	before := snap(t, s, here)

	// For an application that has nothing.
	got, err := call.do(t.Context(), s, there)
	switch {
	case call.any:
		if err != nil {
			t.Errorf("got error %v, want none", err)
		}
		eachApp(reflect.ValueOf(&got).Elem(), func(app tracking.AppID) {
			if app != here {
				t.Errorf("got something of application %q, want it of %q", app, here)
			}
		})
	case call.found == notFound:
		missing(t, "for a foreign application", err)
	case call.found == conflict:
		if c := new(tracking.ConflictError); !errors.As(err, &c) {
			t.Errorf("for a foreign application: got error %v, want a conflict", err)
		}
	case err != nil:
		t.Errorf("for a foreign application: got error %v, want none", err)
	}
	if call.found == nothing && !call.any && !empty(got) {
		t.Errorf("for a foreign application: got %+v, want nothing", got)
	}
	same(t, "rows of the application that was not meant", snap(t, s, here), before)

	// For the one that has it.
	if !call.write {
		got, err = call.do(t.Context(), s, here)
		if err != nil {
			t.Errorf("for its own application: %v", err)
		}
		if call.name != "Events after one" && call.method != "Purge" && empty(got) { // these two have nothing to find
			t.Errorf("for its own application: got nothing")
		}
	}

	// For one that has the same ids.
	other := uniqueFor(seed(), 1)
	for i := range other.Tasks {
		other.Tasks[i].Link.Hash[7] = 1
		other.Tasks[i].Notes = "of another"
	}
	other.Trips[0].Link.Hash[7], other.Invites[0].LinkHash[7] = 1, 1
	other.Drivers[0].AppToken[7], other.Drivers[0].IngestToken[7] = 1, 1
	const another tracking.AppID = "another"
	use(t, s, another).commit(other)
	if _, err = call.do(t.Context(), s, another); err != nil {
		t.Errorf("for an application with the same ids: %v", err)
	}
	same(t, "rows of the application that was not meant", snap(t, s, here), before)
	c := use(t, s, here)
	same(t, "due trips of the application that was not meant", c.due(tracking.DueQuery{
		Kind: tracking.DueTrips, App: here, Before: at(time.Hour),
	}),
		[]tracking.Due{{App: here, Subject: tracking.Subject{Kind: tracking.KindTrip, ID: "r"}}})
	leased := slices.DeleteFunc(c.lease("w", at(time.Hour), 100), func(l tracking.Leased) bool { return l.App != here })
	same(t, "undelivered events of the application that was not meant", each(leased, leasedID), []string{"e"})
}

// eachApp calls f with every application inside v.
func eachApp(v reflect.Value, f func(tracking.AppID)) {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer:
		if !v.IsNil() {
			eachApp(v.Elem(), f)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachApp(v.Index(i), f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			eachApp(v.Field(i), f)
		}
	case reflect.String:
		if app, ok := v.Interface().(tracking.AppID); ok {
			f(app)
		}
	}
}
