package storetest_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/storetest/declared"
)

// reads are the methods of Service that change nothing that is kept.
var reads = []string{
	"App", "As", "AsDriver", "AuthenticateDriver", "AuthenticateKey", "Close", "DeriveKey", "Driver", "DriverByToken",
	"DriverProof", "Drivers", "Events", "Export", "FindPlace", "Follow", "ForApp", "IngestToken", "Keys", "Notices",
	"Options", "ReadProof",
	"IfVersion", "LinkToken", "Live", "OpenSession", "Reasons", "Requests", "Route", "SealSession", "Stats", "Task",
	"TaskCounts", "Tasks",
	"Tracking", "TrackingPhoto", "Trip", "TripPath", "Trips",
	"Wakeups",
}

// notPlayed are the methods that change something and are no action of the random histories, each
// with the reason.
var notPlayed = map[string]string{
	"DeleteDriver":      takesAway,
	"ForceDeleteDriver": takesAway,
	"DeleteTask":        takesAway,
	"EraseContact":      "it ends what could go on; the histories in which drivers and tasks are deleted play it",
	"Purge":             takesAway,
	"DeliverEvents":     "it changes nothing that Invariants reads; the model of stores plays it",
	"Replay":            "it changes nothing that Invariants reads; the model of stores plays it",
	"Geocode":           "it asks somebody outside, whom histories have not",
	"SignIn":            signsIn,
	"SignInToView":      signsIn,
	"UseSignIn":         signsIn,
	"CreateTasks":       "it does what CreateTask does, one after the other",
	"Run":               "it calls the others by the clock",
	"Import":            "it begins with nothing; RunMoves has its own histories",
	"Within":            "its verbs are those of the Service, in a transaction that most stores have not",
}

const signsIn = "it changes nothing that Invariants reads"

const takesAway = "Invariants reads all that was ever done, and this takes a part of it away"

// Whoever adds to Service what changes something has to let the random histories do it.
func TestNoOperationIsForgotten(t *testing.T) {
	played := declared.Selected(t, "service*.go", "history", "svc")
	service := reflect.TypeFor[*tracking.Service]()
	for i := range service.NumMethod() {
		name := service.Method(i).Name
		reason, excused := notPlayed[name]
		switch read := slices.Contains(reads, name); {
		case read && excused:
			t.Errorf("Service.%s is listed both as a read and as a change", name)
		case excused && played[name]:
			t.Errorf("Service.%s is an action of the histories, and is listed as none: %s", name, reason)
		case !read && !excused && !played[name]:
			t.Errorf("Service.%s is no action of the random histories: make it one, or list it with the reason", name)
		}
	}
	for _, name := range reads {
		if _, ok := service.MethodByName(name); !ok {
			t.Errorf("%s is listed, and Service has no such method", name)
		}
	}
	for name := range notPlayed {
		if _, ok := service.MethodByName(name); !ok {
			t.Errorf("%s is listed, and Service has no such method", name)
		}
	}
}

// Whoever adds a word has to tell Invariants what it means.
func TestNoWordIsForgotten(t *testing.T) {
	known := declared.Selected(t, "invariants*.go", "audit", "tracking")
	for _, typ := range []string{"EventType", "NoticeKind", "Outcome"} {
		for name := range declared.Constants(t, "../..", typ) {
			if !known[name] {
				t.Errorf("Invariants does not know the %s tracking.%s", typ, name)
			}
		}
	}
}
