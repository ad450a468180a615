package memory

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
)

// fill gives v, and all that it holds, values of their own.
func fill(v reflect.Value, n *int) {
	*n++
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.UnixMilli(1_700_000_000_000 + int64(*n)).UTC()))
		return
	case tracking.Hash:
		v.Set(reflect.ValueOf(tracking.Hash{31: byte(*n), 3: 7}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", *n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n) * -1000)
	case reflect.Float64:
		v.SetFloat(float64(*n) / 3)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]string{"a": fmt.Sprint(*n), "b": ""}))
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	default:
		panic(v.Type())
	}
}

// fillings calls check with a value that has no field, with one that has all, which it returns, and with
// each field alone.
func fillings[T any](check func(name string, v T)) (all T) {
	var none T
	check("no field", none)
	n := 0
	fill(reflect.ValueOf(&all).Elem(), &n)
	check("all fields", all)
	for i := range reflect.TypeFor[T]().NumField() {
		var one T
		fill(reflect.ValueOf(&one).Elem().Field(i), &n)
		check(reflect.TypeFor[T]().Field(i).Name, one)
	}
	return all
}

// A task comes back from the store's form with every field that it has, all together and each alone.
func TestPackedTasks(t *testing.T) {
	same := func(name string, task tracking.Task) {
		t.Helper()
		if d := cmp.Diff(task, pack(&task).task()); d != "" {
			t.Errorf("%s (-before +after):\n%s", name, d)
		}
	}
	all := fillings(same)
	for _, at := range []time.Time{
		time.UnixMilli(0).UTC(), time.UnixMilli(-1).UTC(), time.UnixMilli(1).UTC(), time.Unix(-1<<36, 0).UTC(),
	} {
		same(at.String(), tracking.Task{UpdatedAt: at})
	}
	for _, at := range []tracking.LngLat{
		{}, {Lng: -180, Lat: 90}, {Lng: 77.1234567, Lat: -13.7654321}, {Lng: 1.0 / 3, Lat: 2}, {Lng: 500, Lat: -1e300},
	} {
		same(fmt.Sprint(at), tracking.Task{Drop: &tracking.Place{LngLat: &at}})
	}
	if got, want := pack(&all).head(), (taskHead{all.Status, all.Outcome, all.ID, all.Version}); got != want {
		t.Errorf("head: %v, want %v", got, want)
	}
}

// An event comes back from its row with every field that it has, all together and each alone.
func TestEventRows(t *testing.T) {
	fillings(func(name string, e tracking.Event) {
		t.Helper()
		r := newEventRow(nil, &e, 0)
		r.notices = e.Notices
		if d := cmp.Diff(e, r.event()); d != "" {
			t.Errorf("%s (-before +after):\n%s", name, d)
		}
		if got := r.kept.id(); got != e.ID {
			t.Errorf("%s: the id %q is %q", name, e.ID, got)
		}
	})
}

// A driver comes back from the row with every field that a store keeps, all together and each alone.
func TestDriverRows(t *testing.T) {
	same := func(name string, d tracking.Driver) {
		t.Helper()
		a := newApplication("a", new(rowLocks))
		d.ID, d.Distance = "d", 0
		want := d
		got := a.driver(a.drivers.insert(a, &d))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-before +after):\n%s", name, d)
		}
		lat, back := want.Position.Fix.LngLat.Lat, got.Position.Fix.LngLat.Lat
		if math.Float64bits(lat) != math.Float64bits(back) {
			t.Errorf("%s: %v became %v", name, lat, back)
		}
	}
	fillings(same)
	fillings(func(name string, p tracking.Position) { same(name, tracking.Driver{Position: p}) })
	at := time.UnixMilli(1_700_000_000_000).UTC()
	for _, p := range []tracking.Position{
		{Tail: tailAfterOne},
		{Tail: tracking.TailUnknown, SeenAt: at},
		{Fix: tracking.Fix{LngLat: tracking.LngLat{Lng: -180, Lat: math.Copysign(0, -1)}, Time: at}},
		{Fix: tracking.Fix{Time: time.UnixMilli(0).UTC(), Trusted: true}},
		{Fix: tracking.Fix{Time: at, Speed: tracking.Known(1.0 / 3), Battery: tracking.Known(0)}},
		{Skew: tracking.Skew{Least: tracking.Known(-1 << 24), Arrivals: 4}, Rewrites: math.MaxUint32},
		{Skew: tracking.Skew{Least: tracking.Known(1<<24 + 1)}},
		{Unread: 256, Rewrites: 1 << 32, Skew: tracking.Skew{Arrivals: 256}},
		{Unread: -1, Rewrites: -1, Skew: tracking.Skew{Arrivals: -1, Recent: tracking.Known(1e300)}},
	} {
		same(fmt.Sprintf("%+v", p), tracking.Driver{Position: p})
	}
}

// A position that plain numbers can't hold leaves nothing to the next one, nor the other way round.
func TestPositionsFollowEachOther(t *testing.T) {
	a := newApplication("a", new(rowLocks))
	r := a.drivers.insert(a, &tracking.Driver{ID: "d"})
	plain := tracking.Position{SeenAt: time.UnixMilli(5).UTC(), Fix: tracking.Fix{Time: time.UnixMilli(7).UTC()}}
	odd := plain
	odd.Fix.EventID, odd.Tail = "e", "t"
	other := odd
	other.Fix.EventID, other.Fix.LngLat.Lng = "f", 3
	read := plain
	read.Fix.Accuracy, read.Fix.Battery = tracking.Known(4.5), tracking.Known(0.87)
	finely := read
	finely.Fix.Accuracy = tracking.Known(1.0 / 3)
	for i, p := range []tracking.Position{
		plain, odd, other, plain, odd, {}, read, finely, read, finely, plain, finely, odd, read, odd, finely,
	} {
		if a.move(r, &p); a.position(r) != p {
			t.Errorf("%d: %+v, not %+v", i, a.position(r), p)
		}
	}
}

// The zeros that end a hash are left out with those of the fields behind it, and come back.
func TestPackedHashThatEndsInZeros(t *testing.T) {
	task := tracking.Task{Link: tracking.Link{Hash: tracking.Hash{1, 2}}}
	if got := pack(&task); len(got) > 32 || got.task().Link.Hash != task.Link.Hash {
		t.Errorf("%d bytes, %v", len(got), got.task().Link.Hash)
	}
}

// held is how many bytes of the heap are reachable.
func held() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// What is still queued of a driver who is deleted, as the term of a fix that a purge is to look at or a
// match that nobody has asked for, does not keep who it was.
func TestADriverDeletedIsLetGo(t *testing.T) {
	const n, size = 100, 200_000
	ctx, s := context.Background(), New()
	before := held()
	at := time.UnixMilli(1_700_000_000_000).UTC()
	commit := func(cs *tracking.Changeset) {
		t.Helper()
		if _, err := s.Commit(ctx, "a", cs); err != nil {
			t.Fatal(err)
		}
	}
	commit(&tracking.Changeset{Tasks: []tracking.Task{{
		ID: "t", Waiting: true, Drop: &tracking.Place{LngLat: &tracking.LngLat{Lng: 50}},
	}}})
	for i := range n {
		id := tracking.DriverID(fmt.Sprint("driver ", i))
		commit(&tracking.Changeset{Drivers: []tracking.Driver{{
			ID: id, Person: strings.Repeat("p", size/2), Name: strings.Repeat("x", size/2), Available: true,
		}}})
		if i == 0 {
			if _, err := s.Matches(ctx, "a", tracking.MatchQuery{MaxOpen: -1, Within: 1, Limit: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.RecordFixes(ctx, "a", tracking.FixBatch{
			DriverID: id, SeenAt: at, Fixes: []tracking.Fix{{Time: at, EventID: strings.Repeat("e", size/2)}},
		}); err != nil {
			t.Fatal(err)
		}
		d, err := s.Driver(ctx, "a", id)
		if err != nil {
			t.Fatal(err)
		}
		commit(&tracking.Changeset{DeleteDrivers: []tracking.Driver{{ID: id, Version: d.Version}}})
	}
	if _, err := s.Purge(ctx, tracking.Before{Limit: 10 * n}); err != nil {
		t.Fatal(err)
	}
	if got := held() - before; got > n*size/10 {
		t.Errorf("%d bytes are held where %d of drivers are gone", got, n*size)
	}
	runtime.KeepAlive(s)
}

// What goes by a task's id, as its link, an event of it, or the route of its driver, does not keep
// all of the task as it was then.
func TestATaskReplacedIsLetGo(t *testing.T) {
	for name, read := range map[string]func(*Store, string) ([]tracking.Task, error){
		"by itself": func(s *Store, id string) ([]tracking.Task, error) {
			task, err := s.Task(context.Background(), "a", tracking.TaskID(id))
			return []tracking.Task{task}, err
		},
		"of a page": func(s *Store, id string) ([]tracking.Task, error) {
			list, _, err := s.Tasks(context.Background(), "a", tracking.TaskFilter{OrderID: id, Page: tracking.Page{Limit: 2}})
			return list, err
		},
	} {
		t.Run(name, func(t *testing.T) { taskReplacedIsLetGo(t, read) })
	}
}

func taskReplacedIsLetGo(t *testing.T, read func(*Store, string) ([]tracking.Task, error)) {
	const n, size = 100, 200_000
	ctx, s := context.Background(), New()
	before := held()
	commit := func(cs *tracking.Changeset) {
		t.Helper()
		if _, err := s.Commit(ctx, "a", cs); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		id := fmt.Sprint("task ", i)
		commit(&tracking.Changeset{Tasks: []tracking.Task{
			{ID: tracking.TaskID(id), OrderID: id, Notes: strings.Repeat("x", size)},
		}})
		list, err := read(s, id)
		if err != nil || len(list) != 1 {
			t.Fatal(len(list), err)
		}
		task := list[0]
		task.Notes, task.Link.Hash = "", tracking.Hash{1, byte(i)}
		commit(&tracking.Changeset{
			Tasks:   []tracking.Task{task},
			Drivers: []tracking.Driver{{ID: tracking.DriverID(id), Route: []tracking.Stop{{TaskID: task.ID}}}},
			Events:  []tracking.Event{{ID: id, Subject: tracking.Subject{Kind: tracking.KindTask, ID: string(task.ID)}}},
		})
	}
	if got := held() - before; got > n*size/2 {
		t.Errorf("%d bytes are held where %d of notes are gone", got, n*size)
	}
	runtime.KeepAlive(s)
}
