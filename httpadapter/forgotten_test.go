package httpadapter_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/ingest"
	"github.com/seed-8aba7b13/tracking/store/storetest/declared"
)

// unsent are the exported fields of rows that no answer shows, each with the reason. A field that
// holds others stands for all of them.
var unsent = map[string]string{
	"Task.AutoAssigned": "the event that assigned it says so",
	"Task.Waiting":      "waiting is there, as where AssignAt is in the past",
	"Task.Excluded":     "for the Service's own use",
	"Task.Key":          "only who made it up may know it",
	"Task.KeySum":       "for the Service's own use",
	"Task.GeocodeAt":    "for the Service's own use",
	"Task.Link":         "a secret's hash",
	"Task.Seq":          "for the store's own use",
	"Task.Promise":      "promised says it, where the window has no end",
	"Task.LateFor":      "for the Service's own use",
	"Task.DueAt":        "for the Service's own use",
	"Task.WaitsSince":   "waiting.since says it, where AssignAt does not",
	"Task.Person":       "for the Service's own use",
	"Task.Settled":      "for the Service's own use",

	"Task.PickupArrivingAt": "phase says so",
	"Task.ArrivingAt":       "phase says so",
	"Task.StepAt":           "for the Service's own use",

	"TripDetail.Trip.TaskID":    "a task's trip has the task's id as tracking_id",
	"TripDetail.Trip.Dest":      "the request shows it, and the link",
	"TripDetail.Trip.GeocodeAt": "for the Service's own use",
	"TripDetail.Trip.Link":      "a secret's hash",
	"TripDetail.Trip.UpdatedAt": "the interface has none",
	"TripDetail.Trip.Seq":       "for the store's own use",
	"TripDetail.Trip.Version":   "for the Service's own use",
	"TripDetail.Trip.Person":    "for the Service's own use",

	"Driver.Route":                "an answer of its own; see Route",
	"Driver.LegAt":                "for the Service's own use",
	"Driver.Silent":               "last_seen_at says more",
	"Driver.DutyAt":               "for the Service's own use",
	"Driver.OffDutyAt":            "for the Service's own use",
	"Driver.TokenGeneration":      "for the Service's own use",
	"Driver.AppToken":             "a secret's hash",
	"Driver.IngestToken":          "a secret's hash",
	"Driver.Push":                 "the driver's browsers are nobody's business",
	"Driver.Seq":                  "for the store's own use",
	"Driver.Person":               "for the Service's own use",
	"Event.Person":                "for those who tell of an event late",
	"Driver.Distance":             "only lists by position have it: see ListedDriver",
	"Driver.Position.Fix.EventID": "trip history shows it",
	"Driver.Position.Fix.Trusted": "for the Service's own use",

	// The interface shows of a position where and when it was.
	"Driver.Position.Fix.Speed":     "not in the interface",
	"Driver.Position.Fix.Bearing":   "not in the interface",
	"Driver.Position.Tail":          "for the Service's own use",
	"Driver.Position.Rewrites":      "for the Service's own use",
	"Driver.Position.Skew.Recent":   "clock_skew is what comes of it",
	"Driver.Position.Skew.Arrivals": "clock_skew is what comes of it",

	"Event.Notices": "each driver's own feed shows them",

	"Tracking.App":   "who holds the link need not know it",
	"Tracking.Ended": "the stream ends",

	"Tracking.TaskID": "only links of the Site's may hold it",

	"Request.RequestID.DriverID": "the driver asks",
}

// Every exported field of a row is on the wire, or in the list above; and what is on the wire is in
// openapi.json, which has nothing else.
func TestNoFieldIsForgotten(t *testing.T) {
	stale := maps.Clone(unsent)
	d := readDescription(t)
	for _, row := range []struct {
		typ     reflect.Type
		schemas []string
	}{
		{reflect.TypeFor[tracking.Task](), []string{"Task", "BareTask"}},
		{reflect.TypeFor[tracking.TripDetail](), []string{"TripDetail", "Trip"}},
		{reflect.TypeFor[tracking.Driver](), []string{"Driver", "ListedDriver"}},
		{reflect.TypeFor[tracking.Event](), []string{"Event"}},
		{reflect.TypeFor[tracking.Tracking](), []string{"Tracking"}},
		{reflect.TypeFor[tracking.Request](), []string{"TripRequest"}},
	} {
		full, other := reflect.New(row.typ).Elem(), reflect.New(row.typ).Elem()
		fill(t, full, 1)
		fill(t, other, 2)
		sent := wire(t, full)
		for path := range leaves(row.typ, row.typ.Name(), nil) {
			changed := reflect.New(row.typ).Elem()
			fill(t, changed, 1)
			copyField(changed, other, path.index)
			shown := !cmp.Equal(sent, wire(t, changed))
			name, listed := listedAs(path.name)
			switch {
			case !shown && !listed:
				t.Errorf("%s is on no wire: send it, or say in the list unsent why not", path.name)
			case shown && listed:
				t.Errorf("%s is in the list unsent, and is sent", path.name)
			}
			delete(stale, name)
		}
		for _, name := range row.schemas {
			hasSchema(t, d, name, sent, d.at(name))
		}
	}
	for name := range stale {
		t.Errorf("%s is in the list unsent, and there is no such field", name)
	}
}

// listedAs finds a field, or one that holds it, in the list unsent.
func listedAs(path string) (name string, ok bool) {
	for name = path; ; name = name[:strings.LastIndex(name, ".")] {
		if _, ok := unsent[name]; ok {
			return name, true
		}
		if !strings.Contains(name, ".") {
			return "", false
		}
	}
}

// leftOut are members that one of several schemas of a row does not have.
var leftOut = map[string]bool{
	"Task.stop": true, "BareTask.stop": true, // which the driver's row says
	"BareTask.pickup.customer": true, "BareTask.drop.customer": true,
	"Task.waiting.reason": true, "BareTask.waiting.reason": true, // not of each, which would be a search
	"Trip.distance": true, "Trip.moving_seconds": true,
	"TripRequest.dest.customer": true, // a destination has none
	"ListedDriver.distance":     true, // which the row alone does not have
	"Driver.distance":           true,
}

// hasSchema compares what is sent with its schema.
func hasSchema(t *testing.T, d description, at string, sent any, s *schema) {
	t.Helper()
	switch sent := sent.(type) {
	case map[string]any:
		if len(s.Properties) == 0 || strings.HasSuffix(at, ".data") {
			return // a map, whose keys are not the type's
		}
		var want, got []string
		for _, name := range slices.Sorted(maps.Keys(sent)) {
			if leftOut[at+"."+name] {
				continue
			}
			want = append(want, name)
			if member := s.Properties[name]; member != nil {
				hasSchema(t, d, at+"."+name, sent[name], d.resolved(member))
			}
		}
		for _, name := range s.names() {
			if !leftOut[at+"."+name] {
				got = append(got, name)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-sent +described)\n%s", at, diff)
		}
	case []any:
		if s.Type != "array" || len(sent) == 0 {
			t.Errorf("%s: %v is described as %s", at, sent, s.Type)
			return
		}
		hasSchema(t, d, at+"[]", sent[0], d.resolved(s.Items))
	case string:
		if s.Type != "string" {
			t.Errorf("%s is a text, described as %s", at, s.Type)
		}
	case float64:
		if s.Type != "number" && s.Type != "integer" {
			t.Errorf("%s is a number, described as %s", at, s.Type)
		}
	case bool:
		if s.Type != "boolean" {
			t.Errorf("%s is true or false, described as %s", at, s.Type)
		}
	}
}

// wire is what is sent of a row, as a reader has it.
func wire(t *testing.T, row reflect.Value) (v any) {
	t.Helper()
	b, err := json.Marshal(httpadapter.Wire(row.Interface()))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// whole are types that are looked at as one value.
var whole = []reflect.Type{
	reflect.TypeFor[time.Time](), reflect.TypeFor[tracking.LngLat](), reflect.TypeFor[tracking.Reading](),
}

type leaf struct {
	name  string
	index []int
}

// leaves yields the fields of a struct type, and of those within it, that hold no further ones.
func leaves(t reflect.Type, name string, index []int) func(yield func(leaf) bool) {
	return func(yield func(leaf) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			if !f.IsExported() {
				continue
			}
			typ, at := f.Type, leaf{name + "." + f.Name, append(slices.Clone(index), i)}
			if typ.Kind() == reflect.Pointer {
				typ = typ.Elem()
			}
			if typ.Kind() != reflect.Struct || slices.Contains(whole, typ) {
				if !yield(at) {
					return
				}
				continue
			}
			for l := range leaves(typ, at.name, at.index) {
				if !yield(l) {
					return
				}
			}
		}
	}
}

// copyField sets a field of to as it is in from.
func copyField(to, from reflect.Value, index []int) {
	for _, i := range index {
		to, from = reflect.Indirect(to).Field(i), reflect.Indirect(from).Field(i)
	}
	to.Set(from)
}

// fill sets all that v holds to values that n makes different.
func fill(t *testing.T, v reflect.Value, n int) {
	t.Helper()
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Date(2026, 3, 14, n, 0, 0, 0, time.UTC)))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprint("text ", n))
	case reflect.Bool:
		v.SetBool(n == 1)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n) * int64(time.Second))
	case reflect.Uint8:
		v.SetUint(uint64(n))
	case reflect.Float64:
		v.SetFloat(float64(40 * n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), n)
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, n)
		fill(t, value, n)
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if r, ok := v.Addr().Interface().(*tracking.Reading); ok {
			*r = tracking.Known(float64(40 * n))
			return
		}
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i), n)
			}
		}
	default:
		t.Fatalf("nobody has said what a %s of a row is filled with", v.Type())
	}
}

// Every word that the Service may answer is in openapi.json, which has no other.
func TestNoWordIsForgotten(t *testing.T) {
	d := readDescription(t)
	same := func(what string, described, declared []string) {
		t.Helper()
		if diff := cmp.Diff(slices.Sorted(slices.Values(declared)), described); diff != "" {
			t.Errorf("%s (-declared +described)\n%s", what, diff)
		}
	}
	events, notices := declared.Values(t, "..", "EventType"), declared.Values(t, "..", "NoticeKind")
	same("the types of events", d.at("Event", "type").words(), events)
	same("the kinds of notices", d.at("Notice", "kind").words(), notices)

	outcomes := declared.Values(t, "..", "Outcome")
	for _, at := range []string{"Task", "BareTask", "Tracking"} {
		same("the outcomes of "+at, d.at(at, "outcome").words(), append([]string{""}, outcomes...))
	}
	same("the outcomes of events", d.at("Event", "data", "outcome").words(), outcomes)

	same("how drivers fit", d.at("Candidate", "fit").words(), declared.Values(t, "..", "Fit"))
	same("why tasks wait", d.at("Waiting", "reason").words(), declared.Values(t, "..", "WaitReason"))

	tasks, trips := declared.Values(t, "..", "TaskStatus"), declared.Values(t, "..", "TripStatus")
	same("the states of tasks", d.at("Task", "status").words(), tasks)
	same("the states of tasks that a list is narrowed by", slices.Sorted(slices.Values(httpadapter.TaskStatuses())),
		tasks)
	same("the states of trips", d.at("Trip", "status").words(), trips)
	if got := len(httpadapter.TripStatuses()) - 1; got != len(trips) {
		t.Errorf("a list is narrowed by %d states of trips, there are %d", got, len(trips))
	}
	same("the states on links", d.at("Tracking", "status").words(), slices.Concat(tasks, trips))

	proof := declared.Values(t, "..", "ProofKind")
	for _, at := range []string{"Task", "BareTask"} {
		same("the proof that "+at+" asks for", d.resolved(d.at(at, "proof").Items).words(), proof)
	}
	same("the proof that a body asks for", slices.Sorted(slices.Values(httpadapter.ProofKinds())), proof)

	kinds := slices.DeleteFunc(declared.Values(t, "..", "SubjectKind"), func(k string) bool {
		return k == "invite" || k == "key" // no event is about them
	})
	same("what events are about", d.at("Event", "subject", "kind").words(), kinds)

	recorded := d.Paths["/v1/driver/fixes"]["post"].Responses["200"].Content["application/json"].Schema
	outcomesOf := d.resolved(d.resolved(d.resolved(recorded).Properties["data"]).Properties["outcomes"])
	same("the outcomes of fixes", d.resolved(outcomesOf.Items).words(), declared.Values(t, "..", "FixOutcome"))
}

// Every word that the driver app shows has a text in each language. The tracking page has phases of
// its own, which package web holds to its texts.
func TestNoTextIsForgotten(t *testing.T) {
	for _, language := range []string{"en", "de"} {
		b, err := os.ReadFile("web/texts/" + language + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var texts map[string]string
		if err := json.Unmarshal(b, &texts); err != nil {
			t.Fatal(err)
		}
		for prefix, words := range map[string][]string{
			"driver.notice.":           declared.Values(t, "..", "NoticeKind"),
			"driver.status.completed.": declared.Values(t, "..", "Outcome"),
			"driver.type.":             declared.Values(t, "..", "TaskType"),
			"driver.status.": slices.DeleteFunc(declared.Values(t, "..", "TaskStatus"), func(s string) bool {
				return s == "created" || s == "completed" // no driver's yet; shown by its outcome
			}),
		} {
			for _, word := range words {
				if texts[prefix+word] == "" {
					t.Errorf("%s.json has no text %s%s", language, prefix, word)
				}
			}
		}
	}
}

// notServed are the operations of the Service that no call reaches, each with the reason.
var notServed = map[string]string{
	"AssignWaiting": byRun, "DeliverEvents": byRun, "EndDueTrips": byRun,
	"Export": byProgram, "Import": byProgram,
	"Geocode": byRun, "MarkDueTasks": byRun, "MarkSilent": byRun, "Purge": byRun,
	"CreateKey": byProgram, "Keys": byProgram, "RevokeKey": byProgram,
	"AssignTask": "Assign does the same, and more", "ForceAssignTask": "Assign does the same, and more",
	"As":     "authorize says so of each call, behind ForApp",
	"Stats":  "it is of all applications, and a caller belongs to one",
	"SignIn": byProgram, "SignInToView": byProgram, "Within": byProgram,
}

const (
	byRun     = "Service.Run does it"
	byProgram = "the program that embeds does it"
)

// Every operation of the Service is reached by a call, or is in the list above.
func TestNoOperationIsForgotten(t *testing.T) {
	called := declared.Selected(t, "*.go", "", "svc")
	service := reflect.TypeFor[*tracking.Service]()
	for i := range service.NumMethod() {
		name := service.Method(i).Name
		reason, listed := notServed[name]
		switch {
		case !called[name] && !listed:
			t.Errorf("no call reaches Service.%s: give it a route, or say in the list notServed why not", name)
		case called[name] && listed:
			t.Errorf("Service.%s is reached by a call, and is in the list notServed: %s", name, reason)
		}
	}
	for name := range notServed {
		if _, ok := service.MethodByName(name); !ok {
			t.Errorf("%s is in the list notServed, and Service has no such method", name)
		}
	}
}

// Every text of the set-up of phone apps is given to the driver.
func TestNoSetupIsForgotten(t *testing.T) {
	s := newServer(t)
	answer := s.data(s.asDriver(s.newDriver("ravi"), "GET", "/v1/driver/phone", ""))
	links, err := ingest.Links(text(answer, "ingest_url"))
	if err != nil {
		t.Fatal(err)
	}
	var given []string
	for _, v := range answer {
		if s, ok := v.(string); ok {
			given = append(given, s)
		}
	}
	apps, _ := answer["apps"].([]any)
	for _, app := range apps {
		given = append(given, text(app, "link"), text(app, "template"))
	}
	v := reflect.ValueOf(links)
	for i := range v.NumField() {
		if !slices.Contains(given, v.Field(i).String()) {
			t.Errorf("GET /v1/driver/phone does not give ingest.Setup.%s", v.Type().Field(i).Name)
		}
	}
}
