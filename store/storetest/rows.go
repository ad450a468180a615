package storetest

import (
	"fmt"
	"reflect"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// fill sets every field inside v to a value of its own, none of them zero, so that a field that a
// store forgets is noticed whenever it was added. Different n give different values.
func fill(v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(t0.Add(time.Duration(n) * 1001 * time.Millisecond)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n*100+i+1)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n*2+i)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for i := range 2 {
			k, e := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(k, n*2+i)
			fill(e, n*3+i)
			v.SetMapIndex(k, e)
		}
	case reflect.Array:
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(n+i)%255 + 1)
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("text-%07d", n))
	case reflect.Uint8:
		v.SetUint(uint64(n)%255 + 1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Float64:
		v.SetFloat(float64(n%89) + 0.1)
	default:
		panic("storetest: cannot fill a " + v.Type().String())
	}
}

func filled[T any](n int) T {
	var v T
	fill(reflect.ValueOf(&v).Elem(), n)
	return v
}

// The full rows have every field set, those that the store gives as a new row has them.

func fullTask(id tracking.TaskID, n int) tracking.Task {
	t := filled[tracking.Task](n)
	t.ID, t.Type, t.Status, t.Outcome = id, tracking.TypePickupAndDrop, tracking.StatusCompleted, tracking.OutcomeFailed
	t.Seq, t.Version = 0, 0
	return t
}

func fullTrip(id tracking.TripID, n int) tracking.Trip {
	t := filled[tracking.Trip](n)
	t.ID, t.Status, t.Seq, t.Version = id, tracking.TripStopped, 0, 0
	return t
}

func fullDriver(id tracking.DriverID, n int) tracking.Driver {
	d := filled[tracking.Driver](n)
	d.ID, d.Seq, d.Version, d.Position, d.Distance = id, 0, 0, tracking.Position{}, 0
	return d
}

func fullInvite(driver tracking.DriverID, n int) tracking.Invite {
	i := filled[tracking.Invite](n)
	i.DriverID, i.Version = driver, 0
	return i
}

func fullKey(id string, n int) tracking.Key {
	k := filled[tracking.Key](n)
	k.ID, k.Version = id, 0
	return k
}

func fullRequest(id tracking.RequestID, n int) tracking.Request {
	r := filled[tracking.Request](n)
	r.RequestID = id
	return r
}

func fullEvent(id string, n int, subject tracking.Subject) tracking.Event {
	e := filled[tracking.Event](n)
	e.ID, e.Type, e.Subject, e.Seq, e.Notices = id, tracking.EventTaskUpdated, subject, 0, nil
	return e
}

// The short rows have what makes them sound, and no more.

func newTask(id tracking.TaskID, created time.Time) tracking.Task {
	return tracking.Task{
		ID: id, Type: tracking.TypeDrop, Status: tracking.StatusCreated,
		Drop: &tracking.Place{Address: "Marienplatz 1"},
		Time: created, CreatedAt: created, UpdatedAt: created,
	}
}

func newTrip(
	id tracking.TripID, driver tracking.DriverID, tracked tracking.TrackingID, created time.Time,
) tracking.Trip {
	return tracking.Trip{
		ID: id, DriverID: driver, TrackingID: tracked, Status: tracking.TripActive,
		StartedAt: created, TTL: created.Add(2 * time.Hour), CreatedAt: created, UpdatedAt: created,
	}
}

func newDriver(id tracking.DriverID, created time.Time) tracking.Driver {
	return tracking.Driver{ID: id, Available: true, DutyAt: created, CreatedAt: created, UpdatedAt: created}
}

// stops is a route of n tasks.
func stops(n int) (route []tracking.Stop) {
	for i := range n {
		route = append(route, tracking.Stop{TaskID: tracking.TaskID(fmt.Sprint("stop ", i)), Leg: tracking.LegDrop})
	}
	return route
}

func newInvite(driver tracking.DriverID, link, code byte) tracking.Invite {
	return tracking.Invite{
		DriverID: driver, LinkHash: hash(link), CodeHash: hash(code),
		CreatedAt: t0, LinkExpiresAt: at(24 * time.Hour), CodeExpiresAt: at(time.Hour),
	}
}

func newKey(id string, h byte, created time.Time) tracking.Key {
	return tracking.Key{ID: id, Name: "till", Hash: hash(h), CreatedAt: created}
}

func newRequest(driver tracking.DriverID, tracked tracking.TrackingID, created time.Time) tracking.Request {
	return tracking.Request{RequestID: tracking.RequestID{DriverID: driver, TrackingID: tracked}, CreatedAt: created}
}

func newEvent(
	id string, kind tracking.SubjectKind, subject string, recorded time.Time, told ...tracking.DriverID,
) tracking.Event {
	e := tracking.Event{
		ID: id, Type: tracking.EventTaskUpdated, Time: recorded, RecordedAt: recorded, Actor: "system",
		Subject: tracking.Subject{Kind: kind, ID: subject},
	}
	for _, d := range told {
		e.Notices = append(e.Notices, tracking.Notice{
			DriverID: d, Kind: tracking.NoticeUpdated, TaskID: tracking.TaskID(subject),
		})
	}
	return e
}

func newFix(t time.Time, lng, lat float64) tracking.Fix {
	return tracking.Fix{LngLat: tracking.LngLat{Lng: lng, Lat: lat}, Time: t}
}

// hash is a hash that is not zero.
func hash(b byte) (h tracking.Hash) {
	h[0], h[31] = b, 1
	return h
}
