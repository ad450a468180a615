package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// waitingChecks are about tasks that wait for a driver, and who could serve them.
func waitingChecks() []check {
	return []check{
		{"Waiting/lists the waiting tasks with a point, oldest first", waitingListsOldestFirst},
		{"Waiting/the point is the drop's of a drop, else the pickup's", waitingPointIsDropOrPickup},
		{"Waiting/by distance, and for a driver who is not excluded", waitingByDistanceAndDriver},
		{"Waiting/for a driver who has what they require", waitingByWhatIsRequired},
		{"WaitingApps/lists the applications with a task that waits and has a point", waitingAppsListsThoseWhoWait},
		{"Matches/finds the tasks that somebody on offer could get, asked again and again",
			matchesFindsWhatCouldBeServed},
		{"Matches/by what tasks require and drivers have, and by their own limits", matchesGoByRequirementsAndLimits},
		{"Matches/none only if there is none, of many at most the limit", matchesNoneOnlyIfThereIsNone},
	}
}

// waitingListsOldestFirst lists in two applications, and follows a task that waits, does not, and
// waits again.
func waitingListsOldestFirst(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	want := map[tracking.AppID][]tracking.Task{}
	for i := range 14 {
		tk := waitingTask(tracking.TaskID(fmt.Sprint((i*5)%14)), at(time.Duration((13-i)/4)*time.Minute),
			eastOf(float64(i)))
		app := here
		switch {
		case i%3 == 0:
			app = there
		case i == 5:
			tk.Waiting = false
		case i == 8:
			tk.Drop.LngLat = nil
		}
		o := use(t, s, app)
		o.commit(tracking.Changeset{Tasks: []tracking.Task{tk}})
		if tk.Waiting && tk.Drop.LngLat != nil {
			want[app] = append(want[app], o.task(tk.ID))
		}
	}
	for app, list := range want {
		slices.SortFunc(list, func(a, b tracking.Task) int { return byAge(a.CreatedAt, b.CreatedAt, a.Seq, b.Seq) })
		for _, n := range []int{1, 3, 100} {
			same(t, fmt.Sprintf("the first %d waiting in %s", n, app),
				use(t, s, app).waiting(tracking.WaitingFilter{Limit: n}), list[:min(n, len(list))])
		}
	}
	same(t, "waiting in an application that has none", use(t, s, "nobody").waiting(tracking.WaitingFilter{}), nil)

	served := want[here][0]
	served.Waiting = false
	c.commit(tracking.Changeset{Tasks: []tracking.Task{served}})
	same(t, "the first waiting one", c.waiting(tracking.WaitingFilter{Limit: 1}), want[here][1:2])
	served.Waiting, served.Version = true, 2
	c.commit(tracking.Changeset{Tasks: []tracking.Task{served}})
	same(t, "the first waiting one, when it waits again", c.waiting(tracking.WaitingFilter{Limit: 1}),
		[]tracking.Task{c.task(served.ID)})
	served.Drop.LngLat, served.Version = nil, 3
	c.commit(tracking.Changeset{Tasks: []tracking.Task{served}})
	same(t, "the first waiting one, when it has lost its point", c.waiting(tracking.WaitingFilter{Limit: 1}),
		want[here][1:2])
}

func waitingPointIsDropOrPickup(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	a, b := eastOf(0), eastOf(5000)
	for _, typ := range []tracking.TaskType{tracking.TypePickup, tracking.TypeDrop, tracking.TypePickupAndDrop} {
		tk := waitingTask(tracking.TaskID(fmt.Sprint(typ)), at(time.Duration(typ)*time.Minute), b)
		tk.Type, tk.Pickup = typ, &tracking.Place{LngLat: &a}
		c.commit(tracking.Changeset{Tasks: []tracking.Task{tk}})
	}
	same(t, "waiting at the pickup", taskIDs(c.waiting(tracking.WaitingFilter{Near: &a, Within: 10})),
		[]tracking.TaskID{"1", "3"})
	same(t, "waiting at the drop", taskIDs(c.waiting(tracking.WaitingFilter{Near: &b, Within: 10})),
		[]tracking.TaskID{"2"})
}

// waitingByDistanceAndDriver compares with a plain filter among many who wait.
func waitingByDistanceAndDriver(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	var all []tracking.Task
	for i := range 400 { // more than one look by age takes in, most of them far off
		metres := float64(i)
		if i%20 != 7 {
			metres += 50_000
		}
		var excluded []tracking.DriverID
		if i%3 == 0 {
			excluded = []tracking.DriverID{"a", "d", "z"}
		}
		all = append(all,
			waitingTask(tracking.TaskID(fmt.Sprint(i)), at(time.Duration((i*7)%400)*time.Second),
				eastOf(metres), excluded...))
	}
	c.commit(tracking.Changeset{Tasks: all})
	slices.SortFunc(all, func(a, b tracking.Task) int { return a.CreatedAt.Compare(b.CreatedAt) })
	from := eastOf(0)
	edge := tracking.Distance(from,
		*all[slices.IndexFunc(all, func(t tracking.Task) bool { return t.ID == "127" })].Drop.LngLat)
	for _, f := range []tracking.WaitingFilter{
		{Near: &from}, {Near: &from, Within: edge}, {Near: &from, Within: 1}, {Near: &from, Within: 50_020},
		{Driver: "d"}, {Driver: "b"}, {Near: &from, Within: edge, Driver: "d"}, {Near: &from, Within: 1e9, Driver: "d"},
	} {
		for _, limit := range []int{1, 6, 1000} {
			f.Limit = limit
			var want []tracking.TaskID
			for _, tk := range all {
				near := f.Near == nil || f.Within == 0 || tracking.Distance(from, *tk.Drop.LngLat) <= f.Within
				if near && !slices.Contains(tk.Excluded, f.Driver) && len(want) < limit {
					want = append(want, tk.ID)
				}
			}
			same(t, fmt.Sprintf("waiting by %+v", f), taskIDs(c.waiting(f)), want)
		}
	}
}

// waitingByWhatIsRequired follows tasks whose requirements change.
func waitingByWhatIsRequired(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	needs := []map[string]string{
		nil, {"van": "yes"}, {"van": "no"}, {"van": "yes", "crane": ""}, {"crane": ""}, {"vanyes": ""}, {"": "x"},
	}
	has := []map[string]string{
		nil, {"van": "yes"}, {"van": "yes", "crane": "", "zone": "1"}, {"crane": ""}, {"": "x", "van": "no"},
	}
	var all []tracking.Task
	for i := range 60 {
		tk := waitingTask(tracking.TaskID(fmt.Sprint(i)), at(time.Duration(i*7%60)*time.Second), eastOf(float64(i*100)))
		tk.Requires = needs[i%len(needs)]
		if i%4 == 0 {
			tk.Excluded = []tracking.DriverID{"d"}
		}
		all = append(all, tk)
	}
	c.commit(tracking.Changeset{Tasks: all})
	near := eastOf(0)
	expect := func(what string) {
		t.Helper()
		slices.SortFunc(all, func(a, b tracking.Task) int { return a.CreatedAt.Compare(b.CreatedAt) })
		for _, properties := range has {
			for _, within := range []float64{0, 2000} {
				for _, f := range []tracking.WaitingFilter{
					{Driver: "d", Properties: properties}, {Driver: "e", Properties: properties},
					{Properties: properties},
				} {
					f.Near, f.Within = &near, within
					for _, f.Limit = range []int{1, 4, 1000} {
						var want []tracking.TaskID
						for _, tk := range all {
							mayTake := f.Driver == "" ||
								!slices.Contains(tk.Excluded, f.Driver) && hasAll(f.Properties, tk.Requires)
							reach := within == 0 || tracking.Distance(near, *tk.Drop.LngLat) <= within
							if mayTake && reach && tk.Waiting && len(want) < f.Limit {
								want = append(want, tk.ID)
							}
						}
						same(t, fmt.Sprintf("%s, waiting by %+v", what, f), taskIDs(c.waiting(f)), want)
					}
				}
			}
		}
	}
	expect("at first")
	for i := range all {
		all[i].Version = 1
		if i%3 == 0 {
			all[i].Requires = needs[(i+1)%len(needs)]
		}
		all[i].Waiting = i%10 != 9
	}
	c.commit(tracking.Changeset{Tasks: all})
	expect("when some have changed")
}

// matchesGoByRequirementsAndLimits changes one thing at a time.
func matchesGoByRequirementsAndLimits(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	q := tracking.MatchQuery{MaxOpen: 1, SeenSince: t0, Within: 1000}
	expect := func(what string, want ...tracking.TaskID) {
		t.Helper()
		for range 2 {
			got := taskIDs(c.matches(q))
			stranger := slices.ContainsFunc(got, func(id tracking.TaskID) bool { return !slices.Contains(want, id) })
			if stranger || (len(got) == 0) != (len(want) == 0) {
				t.Errorf("matches %s: %q, want some of %q", what, got, want)
			}
		}
	}
	placed(c, []tracking.DriverID{"d"}, []tracking.LngLat{eastOf(0)})
	d := c.driver("d")
	put := func(change func()) {
		t.Helper()
		change()
		c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
		d.Version++
	}
	expect("of nothing")
	tk := waitingTask("van", t0, eastOf(0))
	tk.Requires = map[string]string{"van": "yes"}
	c.commit(tracking.Changeset{Tasks: []tracking.Task{tk}})
	expect("when he has nothing")
	put(func() { d.Properties = map[string]string{"van": "no"} })
	expect("when he has another value")
	put(func() { d.Properties = map[string]string{"van": "yes", "crane": "yes"} })
	expect("when he has it", "van")
	tk.Version, tk.Requires = 1, map[string]string{"van": "yes", "fridge": "yes"}
	c.commit(tracking.Changeset{Tasks: []tracking.Task{tk}})
	expect("when it requires more")
	tk.Version, tk.Requires = 2, nil
	c.commit(tracking.Changeset{Tasks: []tracking.Task{tk}})
	expect("when it requires nothing", "van")

	put(func() { d.Route = stops(1) })
	expect("when he is full by what is asked for")
	put(func() { d.MaxOpenTasks = new(2) })
	expect("when he may have two", "van")
	put(func() { d.Route = stops(2) })
	expect("when he has two")
	put(func() { d.MaxOpenTasks = new(-1) })
	expect("when he has no limit", "van")
	put(func() { d.Route, d.MaxOpenTasks = nil, new(0) })
	expect("when he may have none")
	put(func() { d.Properties = map[string]string{"a": "b"} })
	expect("when he may have none, and has other properties")
	put(func() { d.MaxOpenTasks = nil })
	expect("when he has no limit of his own", "van")
	put(func() { d.Route = stops(1) })
	expect("when he is full again")
	q.MaxOpen = 2
	expect("when two are asked for", "van")
}

// waitingAppsListsThoseWhoWait has an application whose task has no point, and one whose task does
// not wait.
func waitingAppsListsThoseWhoWait(t testing.TB, s tracking.Store) {
	apps := func() []tracking.AppID {
		list, err := s.WaitingApps(t.Context())
		use(t, s, here).ok(err)
		return list
	}
	same(t, "applications", apps(), nil)
	var last tracking.Task
	for _, app := range []tracking.AppID{"c", "a", "b", "pointless", "done"} {
		c := use(t, s, app)
		tk := waitingTask("t", t0, eastOf(0))
		switch app {
		case "pointless":
			tk.Drop.LngLat = nil
		case "done":
			tk.Waiting = false
		}
		c.commit(tracking.Changeset{Tasks: []tracking.Task{tk}})
		if app == "a" {
			last = c.task("t")
		}
	}
	same(t, "applications", apps(), []tracking.AppID{"a", "b", "c"})
	last.Waiting = false
	use(t, s, "a").commit(tracking.Changeset{Tasks: []tracking.Task{last}})
	same(t, "applications when one task waits no longer", apps(), []tracking.AppID{"b", "c"})
}

// matchesFindsWhatCouldBeServed changes one thing at a time that decides whether somebody could get
// a task.
func matchesFindsWhatCouldBeServed(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	q := tracking.MatchQuery{MaxOpen: 2, SeenSince: t0, Within: 1000}
	expect := func(what string, want ...tracking.TaskID) {
		t.Helper()
		for range 2 { // found is not served: it is found again
			got := taskIDs(c.matches(q))
			stranger := slices.ContainsFunc(got, func(id tracking.TaskID) bool { return !slices.Contains(want, id) })
			if stranger || (len(got) == 0) != (len(want) == 0) {
				t.Errorf("matches %s: %q, want some of %q", what, got, want)
			}
		}
	}
	put := func(d tracking.Driver) {
		t.Helper()
		c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
	}
	ride := func(id tracking.DriverID, hour int, metres float64) {
		t.Helper()
		when := at(time.Duration(hour) * time.Hour)
		c.record(tracking.FixBatch{
			DriverID: id, SeenAt: when, Fixes: []tracking.Fix{{LngLat: eastOf(metres), Time: when}},
		})
	}
	expect("of nothing")
	c.commit(tracking.Changeset{Tasks: []tracking.Task{
		waitingTask("near", t0, eastOf(0), "x"), waitingTask("far", t0, eastOf(20_000)),
	}})
	expect("with no driver")
	put(newDriver("d", t0))
	expect("with a driver who is nowhere")
	ride("d", 1, 5000)
	expect("with a driver out of reach")
	ride("d", 2, 900)
	expect("when the driver has come within reach", "near")
	ride("d", 3, 5000)
	expect("when the driver has gone on")
	ride("d", 4, 19_100)
	expect("when the driver has come to another", "far")

	d := c.driver("d")
	d.Available = false
	put(d)
	expect("when the driver is off duty")
	d.Available, d.Version = true, 2
	put(d)
	expect("when he is back", "far")
	d.Route, d.Version = stops(2), 3
	put(d)
	expect("when he is full")
	d.Route, d.Version = stops(1), 4
	put(d)
	expect("when he has become free", "far")
	d.Silent, d.Version = true, 5
	put(d)
	expect("when he is silent")
	d.Silent, d.Version = false, 6
	put(d)
	expect("when he is heard of", "far")
	q.SeenSince = at(6 * time.Hour)
	expect("when his last sign of life is too old")
	c.record(tracking.FixBatch{DriverID: "d", SeenAt: at(6 * time.Hour)})
	expect("after a sign of life", "far")

	tk := c.task("far")
	tk.Excluded = []tracking.DriverID{"a", "d"}
	c.commit(tracking.Changeset{Tasks: []tracking.Task{tk}})
	expect("when the driver is excluded")
	tk.Excluded, tk.Version = []tracking.DriverID{"a"}, 2
	c.commit(tracking.Changeset{Tasks: []tracking.Task{tk}})
	expect("when he is excluded no longer", "far")
	tk.Drop.LngLat, tk.Version = new(eastOf(60_000)), 3
	c.commit(tracking.Changeset{Tasks: []tracking.Task{tk}})
	expect("when the task has moved away")
	c.commit(tracking.Changeset{Tasks: []tracking.Task{waitingTask("new", at(time.Hour), eastOf(19_500))}})
	expect("when another one has begun to wait", "new")

	q.Within = 0
	expect("at any distance", "far", "near", "new")
	q.Within = 1000
	expect("nearby only, again", "new")
	q.MaxOpen = 1
	expect("with a lower limit of tasks")
	q.MaxOpen = -1
	expect("with no limit of tasks", "new")
	q.SeenSince = at(7 * time.Hour)
	expect("a minute later")
	q.SeenSince = at(5 * time.Hour)
	expect("when the clock was put back", "new")
	put(newDriver("x", t0))
	ride("x", 6, 10)
	expect("when another driver is excluded", "new")
	c.commit(tracking.Changeset{DeleteDrivers: []tracking.Driver{c.driver("d")}})
	expect("when the driver is gone")
}

// matchesNoneOnlyIfThereIsNone serves what is found until nothing is: then every driver has a task.
func matchesNoneOnlyIfThereIsNone(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	var cs tracking.Changeset
	for i := range 60 {
		cs.Tasks = append(cs.Tasks,
			waitingTask(tracking.TaskID(fmt.Sprintf("%02d", i)), t0, eastOf(float64(i%3*10_000))))
	}
	c.commit(cs)
	var drivers []tracking.DriverID
	var places []tracking.LngLat
	for i := range 30 {
		drivers, places = append(drivers, tracking.DriverID(fmt.Sprint(i))),
			append(places, eastOf(float64(i%3*10_000+300)))
	}
	placed(c, drivers, places)
	q := tracking.MatchQuery{MaxOpen: 1, SeenSince: t0, Within: 1000, Limit: 7}
	left := map[tracking.TaskID]bool{}
	for range 1000 {
		list := c.matches(q)
		if len(list) > 7 {
			t.Fatalf("%d matches, of at most 7", len(list))
		}
		if len(list) == 0 {
			break
		}
		for _, tk := range list {
			got := c.offers(tracking.Offer{At: *tk.Point(), MaxOpen: 1, SeenSince: t0, Within: 1000, Limit: 1})
			if len(got) == 0 && tk.ID == list[0].ID {
				t.Fatalf("%s matches, and there is nobody for it", tk.ID)
			}
			if len(got) == 0 { // one before it in this list got its driver
				continue
			}
			tk.Waiting, got[0].Route = false, stops(1)
			c.commit(tracking.Changeset{Tasks: []tracking.Task{tk}, Drivers: []tracking.Driver{got[0]}})
			left[tk.ID] = true
		}
	}
	same(t, "tasks served by 30 drivers", len(left), 30)
}

func taskIDs(list []tracking.Task) []tracking.TaskID { return each(list, taskID) }

// waitingTask is one that waits for a driver at a place.
func waitingTask(
	id tracking.TaskID, created time.Time, at tracking.LngLat, excluded ...tracking.DriverID,
) tracking.Task {
	t := newTask(id, created)
	t.Waiting, t.Excluded = true, excluded
	t.Drop.LngLat = &at
	return t
}

// eastOf is a place so many metres east of a corner of Munich.
func eastOf(metres float64) tracking.LngLat {
	return tracking.LngLat{Lng: 11 + metres/74_500, Lat: 48}
}
