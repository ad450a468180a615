package nearby_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/internal/nearby"
)

// line is the waiting tasks as anyone would keep them first.
type line map[tracking.TaskID]tracking.Task

func (l line) list(f tracking.WaitingFilter) (ids []tracking.TaskID) {
	all := slices.SortedFunc(maps.Values(l), func(a, b tracking.Task) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Seq, b.Seq))
	})
	for _, t := range all {
		if len(ids) < f.Limit && (f.Driver == "" ||
			!slices.Contains(t.Excluded, f.Driver) && hasAll(f.Properties, t.Requires)) &&
			(f.Near == nil || f.Within == 0 || tracking.Distance(*f.Near, *t.Point()) <= f.Within) {
			ids = append(ids, t.ID)
		}
	}
	return ids
}

// couldGet reports whether somebody on offer could get a task.
func (ref reference) couldGet(t tracking.Task, q tracking.MatchQuery) bool {
	return len(ref.offers(tracking.Offer{
		At: *t.Point(), MaxOpen: q.MaxOpen, SeenSince: q.SeenSince, Within: q.Within, Exclude: t.Excluded,
		Requires: t.Requires, Limit: 1,
	})) > 0
}

func randomTask(r *rand.Rand, i, drivers int, at tracking.LngLat) tracking.Task {
	t := tracking.Task{
		ID: tracking.TaskID(fmt.Sprint("t", i)), Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: &at},
		CreatedAt: randomTime(r), Seq: int64(i), Waiting: r.IntN(4) > 0,
	}
	for range r.IntN(4) * r.IntN(4) {
		t.Excluded = append(t.Excluded, driverID(r.IntN(drivers)))
	}
	if r.IntN(3) == 0 {
		t.Requires = randomProperties(r)
	}
	return t
}

// Whoever changed is looked at, and nobody else: what is found agrees with brute force at each step
// of a random history.
func TestWaitingAgainstBruteForce(t *testing.T) {
	all := worlds()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		gen := all[name]
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, 8))
			for _, n := range []int{3, 40, 600} {
				var x nearby.Index
				ref, waiting := reference{}, line{}
				drivers := max(2, n/8)
				usual := tracking.MatchQuery{
					MaxOpen: 1 + r.IntN(2), SeenSince: epoch.Add(5 * time.Second),
					Within: 1 + 2e6*r.Float64()*r.Float64(), Limit: 1 + r.IntN(5),
				}
				if r.IntN(4) == 0 {
					usual.Within = 0
				}
				for step := range rounds(300) {
					for range 1 + r.IntN(4) {
						change(r, &x, ref, drivers, gen)
						tk := randomTask(r, r.IntN(n), drivers, gen(r))
						if was, ok := waiting[tk.ID]; ok && r.IntN(2) == 0 {
							tk.CreatedAt = was.CreatedAt
						}
						x.PutTask(tk)
						delete(waiting, tk.ID)
						if tk.Waiting {
							waiting[tk.ID] = tk
						}
					}
					q := usual
					q.SeenSince = q.SeenSince.Add(time.Duration(step/20) * time.Second)
					if r.IntN(10) == 0 {
						q = tracking.MatchQuery{
							MaxOpen: r.IntN(4) - 1, SeenSince: randomTime(r), Within: 1e6 * r.Float64(),
							Limit: 1 + r.IntN(5),
						}
					}
					compareMatches(t, &x, ref, waiting, q)
					f := tracking.WaitingFilter{Limit: []int{1, 3, n}[r.IntN(3)]}
					if at := gen(r); r.IntN(4) > 0 {
						f.Near, f.Within = &at, 3e6*r.Float64()*r.Float64()
					}
					if r.IntN(2) == 0 {
						f.Driver = driverID(r.IntN(drivers))
						f.Properties = ref[f.Driver].Properties
					}
					if diff := gocmp.Diff(waiting.list(f), x.Waiting(f)); diff != "" {
						t.Fatalf("Waiting(%+v) of %d (-want +got):\n%s", f, len(waiting), diff)
					}
					if x.Tasks() != len(waiting) {
						t.Fatalf("Tasks() = %d, want %d", x.Tasks(), len(waiting))
					}
				}
			}
		})
	}
}

func compareMatches(t *testing.T, x *nearby.Index, ref reference, waiting line, q tracking.MatchQuery) {
	t.Helper()
	got := x.Matches(q)
	for i, id := range got {
		if tk, ok := waiting[id]; !ok || !ref.couldGet(tk, q) || slices.Contains(got[:i], id) || i == q.Limit {
			t.Fatalf("Matches(%+v) = %q, and %q is none, or one too many", q, got, id)
		}
	}
	if len(got) > 0 {
		return
	}
	for _, tk := range waiting {
		if ref.couldGet(tk, q) {
			t.Fatalf("Matches(%+v) finds none, and %q could be got", q, tk.ID)
		}
	}
}

// Tasks that require what nobody has cost a driver who changes nothing, and are found by who has
// it.
func TestHopelessTasksCostNothing(t *testing.T) {
	var x nearby.Index
	here := tracking.LngLat{Lng: 11, Lat: 48}
	put := func(i, open int, properties map[string]string) {
		x.Put(tracking.Driver{
			ID: driverID(i), Available: true, Route: route(open), Properties: properties,
			Position: tracking.Position{SeenAt: epoch, Fix: tracking.Fix{LngLat: here, Time: epoch}},
		})
	}
	wait := func(i int, requires map[string]string) {
		x.PutTask(tracking.Task{
			ID: tracking.TaskID(fmt.Sprint("t", i)), Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: &here},
			Waiting: true, Seq: int64(i), Requires: requires,
		})
	}
	const n = 20_000
	for i := range n {
		wait(i, map[string]string{"crane": "yes"})
	}
	put(0, 0, map[string]string{"crane": "no", "van": "yes"})
	f := tracking.WaitingFilter{Driver: driverID(0), Properties: map[string]string{"van": "yes"}, Limit: 1}
	took := time.Hour
	for range 1000 { // of which a busy machine lets one be
		began := time.Now()
		x.Waiting(f)
		took = min(took, time.Since(began))
	}
	if took > n { // a nanosecond for each task that waits
		t.Errorf("a look for who cannot take any of %d tasks takes %v", n, took)
	}
	q := tracking.MatchQuery{MaxOpen: 1, SeenSince: epoch, Limit: 3}
	look := func(what string, want ...tracking.TaskID) {
		t.Helper()
		if diff := gocmp.Diff(want, x.Matches(q)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	look("nobody has a crane")
	put(0, 0, map[string]string{"crane": "yes"})
	look("somebody has got one", "t0")
	put(0, 0, nil)
	look("he has lost it")
	wait(n, map[string]string{"crane": "yes", "van": "yes"})
	put(1, 0, map[string]string{"crane": "yes", "van": "no"})
	look("another one has one", "t0")
	put(1, 1, map[string]string{"crane": "yes", "van": "no"})
	look("he has work")
	put(1, 1, map[string]string{"crane": "yes", "van": "yes"})
	look("he has work, and more properties")
	wait(0, map[string]string{"van": "yes"})
	put(1, 0, map[string]string{"crane": "yes", "van": "yes"})
	look("he is free, and the oldest requires something else", "t0")
	put(1, 1, map[string]string{"crane": "yes", "van": "yes"})
	wait(0, nil)
	put(2, 0, nil)
	look("the oldest requires nothing any more", "t0")

	for i := range n + 1 {
		x.PutTask(tracking.Task{ID: tracking.TaskID(fmt.Sprint("t", i))})
	}
	for i := range 3 {
		x.Remove(driverID(i))
	}
	if parts, traits := x.Parts(); parts+traits > 0 {
		t.Errorf("nobody is there and nothing waits, and %d requirements and %d properties are known", parts, traits)
	}
}

// Who has a limit of his own is offered what it allows, and not what another's would.
func TestLimitOfHisOwn(t *testing.T) {
	var x nearby.Index
	here := tracking.LngLat{Lng: 11, Lat: 48}
	put := func(i, open int, limit *int) {
		x.Put(tracking.Driver{
			ID: driverID(i), Available: true, Route: route(open), MaxOpenTasks: limit,
			Position: tracking.Position{SeenAt: epoch, Fix: tracking.Fix{LngLat: here, Time: epoch}},
		})
	}
	q := tracking.MatchQuery{MaxOpen: 1, SeenSince: epoch, Limit: 10}
	look := func(what string, want int) {
		t.Helper()
		if got := x.Matches(q); len(got) != want {
			t.Errorf("%s: found %q, want %d", what, got, want)
		}
	}
	look("at first", 0)
	for i := range 20 {
		x.PutTask(tracking.Task{
			ID: tracking.TaskID(fmt.Sprint("t", i)), Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: &here},
			Waiting: true, Seq: int64(i),
		})
	}
	put(0, 1, nil)
	look("who is full by what goes for all", 0)
	put(0, 1, new(3))
	look("who may have two more", 2)
	put(0, 3, new(3))
	look("who has come to his limit", 0)
	put(0, 3, new(-1))
	look("who has none", 10)
	put(0, 0, new(0))
	look("who may have nothing", 0)
	put(0, 0, nil)
	look("who has no limit of his own any more", 1)
}

// What a look costs: the drivers and tasks that have changed since one that found nothing.
func TestMatchesLookAtWhatHasChanged(t *testing.T) {
	const n = 5000
	var x nearby.Index
	at := func(lng float64) tracking.Position {
		return tracking.Position{
			SeenAt: epoch, Fix: tracking.Fix{LngLat: tracking.LngLat{Lng: lng, Lat: 48}, Time: epoch},
		}
	}
	put := func(i int, lng float64, change func(*tracking.Driver)) {
		d := tracking.Driver{ID: driverID(i), Available: true, Position: at(lng)}
		if change != nil {
			change(&d)
		}
		x.Put(d)
	}
	wait := func(i int, lng float64) {
		p := tracking.LngLat{Lng: lng, Lat: 48}
		x.PutTask(tracking.Task{
			ID: tracking.TaskID(fmt.Sprint("t", i)), Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: &p},
			Waiting: true, Seq: int64(i),
		})
	}
	q := tracking.MatchQuery{MaxOpen: 1, SeenSince: epoch, Within: 1000, Limit: 4}
	look := func(what string, want, found int) {
		t.Helper()
		looked := x.Queued()
		if got := x.Matches(q); len(got) != found {
			t.Errorf("%s: found %q, want %d", what, got, found)
		}
		if looked != want {
			t.Errorf("%s: %d drivers and tasks to look at, want %d", what, looked, want)
		}
	}
	for i := range n {
		put(i, 11, nil)
	}
	look("nobody waits", 0, 0)
	for i := range n {
		x.Move(driverID(i), at(11.001))
	}
	look("nobody waits, and all drivers move", 0, 0)
	for i := range n {
		wait(i, 12)
	}
	look("many begin to wait", n, 0)
	look("nothing has changed", 0, 0)
	x.Move(driverID(0), at(11.5))
	look("one driver has moved", 1, 0)
	p := at(11.5)
	p.SeenAt = epoch.Add(time.Minute)
	x.Move(driverID(0), p)
	look("one driver has said that he lives", 0, 0)
	put(1, 11.6, func(d *tracking.Driver) { d.Available = false })
	put(2, 11.6, func(d *tracking.Driver) { d.Route = route(1) })
	put(3, 11.001, func(d *tracking.Driver) { d.Name = "another" })
	look("one is off duty, one has more to do, one has another name", 1, 0)
	put(2, 11.6, nil)
	look("one has become free", 1, 0)
	limited := func(open int) {
		put(2, 11.6, func(d *tracking.Driver) { d.Route, d.MaxOpenTasks = route(open), new(9) })
	}
	limited(3)
	look("one has a limit of his own", 1, 0)
	limited(2)
	look("he has fewer tasks, and had not come to his limit before", 0, 0)
	limited(9)
	limited(8)
	look("he has come to his limit, and has room again", 1, 0)
	put(2, 11.6, nil)
	look("he has no limit of his own any more", 1, 0)
	wait(n, 12)
	look("one task more waits", 1, 0)
	wait(n, 12)
	look("it has changed in nothing that counts", 0, 0)
	x.Move(driverID(0), at(12))
	look("one driver has come within reach", 1, 1)
	look("he has not been given anything", 1, 1)
	put(0, 12, func(d *tracking.Driver) { d.Route = route(1) })
	look("he has been given something", 1, 0)
	look("nothing has changed", 0, 0)
}

// The index does not look at an entry that was taken out, which may be another driver's by then.
func TestAnEntryIsUsedAgain(t *testing.T) {
	var x nearby.Index
	at := func(lng float64) tracking.Position {
		return tracking.Position{SeenAt: epoch, Fix: tracking.Fix{LngLat: tracking.LngLat{Lng: lng, Lat: 48}, Time: epoch}}
	}
	x.PutTask(tracking.Task{
		ID: "t", Type: tracking.TypeDrop, Waiting: true, Drop: &tracking.Place{LngLat: &tracking.LngLat{Lng: 12, Lat: 48}},
	})
	q := tracking.MatchQuery{MaxOpen: 1, SeenSince: epoch, Within: 1000, Limit: 4}
	if found := x.Matches(q); len(found) != 0 {
		t.Fatalf("nobody is there, and %q can be taken", found)
	}
	var entries [3]nearby.Entry
	for i := range entries {
		x.PutEntry(&entries[i], tracking.Driver{
			ID: driverID(i), Available: true, Properties: map[string]string{"a": "b"}, Position: at(12),
		})
	}
	if n := x.Queued(); n != 3 {
		t.Fatalf("%d are queued, want 3", n)
	}
	x.RemoveEntry(&entries[0])
	x.RemoveEntry(&entries[1])
	entries[0], entries[1] = nearby.Entry{}, nearby.Entry{}
	x.PutEntry(&entries[1], tracking.Driver{ID: driverID(7), Available: true, Position: at(11)}) // out of reach
	x.MoveEntry(&entries[2], at(11))
	if found := x.Matches(q); len(found) != 0 {
		t.Errorf("those who could take %q are gone", found)
	}
	x.MoveEntry(&entries[1], at(12))
	if found := x.Matches(q); len(found) != 1 {
		t.Errorf("%q can be taken, want one", found)
	}
	if silent := x.Silent(epoch.Add(time.Hour), 9); len(silent) != 2 {
		t.Errorf("%d may fall silent, want 2: %v", len(silent), silent)
	}
	x.RemoveEntry(&entries[1])
	x.RemoveEntry(&entries[2])
	if err := x.Check(); err != nil {
		t.Error(err)
	}
}
