package sqlite_test

import (
	"fmt"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8aba7b13/tracking"
)

// filled is a value none of whose fields is zero, n apart from others of its type: a field that is
// added to a row is kept, or missed here.
func filled[T any](n int) T {
	var v T
	fill(reflect.ValueOf(&v).Elem(), &n)
	return v
}

// fill sets every field inside v to a value of its own.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(start.Add(time.Duration(*n) * time.Millisecond)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(*n + i))
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) / 7)
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic("a field of type " + v.Type().String())
	}
}

// TestEveryField writes rows with every field set, changes every field, and reads them back from
// the reopened file.
func TestEveryField(t *testing.T) {
	path := filepath.Join(fastDir(t), "tracking.db")
	s := open(t, path, nil)
	// What the store gives, and what comes from elsewhere.
	given := cmp.Options{
		cmpopts.IgnoreFields(tracking.Task{}, "Seq"), cmpopts.IgnoreFields(tracking.Trip{}, "Seq"),
		cmpopts.IgnoreFields(tracking.Driver{}, "Seq", "Position", "Distance"),
		cmpopts.IgnoreFields(tracking.Event{}, "Seq"), cmpopts.IgnoreFields(tracking.Notice{}, "ID"),
	}
	var created [4]time.Time
	for version := range int64(2) {
		n := int(version) * 1000
		task, trip, driver, invite := filled[tracking.Task](n), filled[tracking.Trip](n), filled[tracking.Driver](n),
			filled[tracking.Invite](n)
		key, request, event, fix := filled[tracking.Key](n), filled[tracking.Request](n), filled[tracking.Event](n),
			filled[tracking.Fix](n)
		task.ID, trip.ID, driver.ID, invite.DriverID, key.ID = "task", "trip", "driver", "driver", "key"
		request.RequestID = tracking.RequestID{DriverID: "driver", TrackingID: "x"}
		task.Version, trip.Version, driver.Version, invite.Version, key.Version = version, version, version, version,
			version
		event.ID = fmt.Sprint("event ", version)
		event.Notices = event.Notices[:1]
		event.Notices[0].DriverID = "driver"
		cs := &tracking.Changeset{
			Tasks: []tracking.Task{task}, Trips: []tracking.Trip{trip}, Drivers: []tracking.Driver{driver},
			Invites: []tracking.Invite{invite}, Keys: []tracking.Key{key}, Requests: []tracking.Request{request},
			Events: []tracking.Event{event},
			Fixes:  []tracking.FixBatch{{DriverID: "driver", SeenAt: start.Add(time.Hour), Fixes: []tracking.Fix{fix}}},
		}
		if _, err := s.Commit(t.Context(), app, cs); err != nil {
			t.Fatal(err)
		}
		closeStore(t, s)
		s = open(t, path, nil)

		task.Version, trip.Version, driver.Version, invite.Version, key.Version = version+1, version+1, version+1,
			version+1, version+1
		event.Notices[0].Person, event.Notices[0].EventID = driver.Person, event.ID
		event.Notices[0].Time = event.RecordedAt
		if version == 0 {
			created = [4]time.Time{task.CreatedAt, trip.CreatedAt, driver.CreatedAt, invite.CreatedAt}
		}
		task.CreatedAt, trip.CreatedAt, driver.CreatedAt, invite.CreatedAt = created[0], created[1], created[2],
			created[3]
		compare := func(what string, got, want any, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("%s: %v", what, err)
			} else if d := cmp.Diff(want, got, given...); d != "" {
				t.Errorf("%s, version %d (-want +got):\n%s", what, version+1, d)
			}
		}
		gotTask, err := s.Task(t.Context(), app, "task")
		compare("task", gotTask, task, err)
		gotTrip, err := s.Trip(t.Context(), app, "trip")
		compare("trip", gotTrip, trip, err)
		gotDriver, err := s.Driver(t.Context(), app, "driver")
		compare("driver", gotDriver, driver, err)
		gotInvite, err := s.Invite(t.Context(), app, "driver")
		compare("invite", gotInvite, invite, err)
		gotKeys, err := s.Keys(t.Context(), app)
		key.CreatedAt = gotKeys[0].CreatedAt
		compare("keys", gotKeys, []tracking.Key{key}, err)
		gotRequest, err := s.Request(t.Context(), app, request.RequestID)
		compare("request", gotRequest, request, err)
		events, _, err := s.Events(t.Context(), app, tracking.EventFilter{Subject: event.Subject, Limit: 1})
		compare("events", events, []tracking.Event{event}, err)
		compare("position", gotDriver.Position.Fix, fix, nil)
		var fixes []tracking.Fix
		for f, err := range s.Fixes(t.Context(), app, "driver", tracking.FixRange{Newest: true, Limit: 1}) {
			if err != nil {
				t.Fatal(err)
			}
			fixes = append(fixes, f)
		}
		compare("fixes", fixes, []tracking.Fix{fix}, nil)
	}
	closeStore(t, s)
}
