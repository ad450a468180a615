package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// concurrentChecks let many goroutines race.
func concurrentChecks() []check {
	return slices.Concat(raceChecks(), streamChecks())
}

// raceChecks race for rows and unique values.
func raceChecks() []check {
	return []check{
		{"no update is lost", noUpdateIsLost},
		{"what rows share with others is only read", sharedPartsAreOnlyRead},
		{"of those who claim a version, one gets it", oneClaimsAVersion},
		{"of those who take a unique value or an id, one gets it", oneTakesAUniqueValue},
		{"nobody sees half a Changeset, or an older row than before", nobodySeesHalfAChangeset},
		{"a secret is made once", secretIsMadeOnce},
		{"fixes from many at once make the same path as in order", fixesAtOnceMakeOnePath},
		{"who is nearby is right while drivers move and change", nearbyIsRightWhileDriversMove},
	}
}

// noUpdateIsLost has many raise one number, each reading it first.
func noUpdateIsLost(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{
		Drivers: []tracking.Driver{newDriver("d", t0)}, Tasks: []tracking.Task{newTask("t", t0)},
	})
	err := together(t, racers, func(ctx context.Context, i int) error {
		for n := 0; n < raceRounds; {
			d, err := s.Driver(ctx, here, "d")
			if err != nil {
				return err
			}
			d.TokenGeneration++
			_, err = s.Commit(ctx, here, &tracking.Changeset{
				Drivers: []tracking.Driver{d},
				Events:  []tracking.Event{newEvent(fmt.Sprintf("%d-%d", i, n), tracking.KindDriver, "d", t0)},
			})
			switch {
			case err == nil:
				n++
			case !errors.Is(err, tracking.ErrConflict):
				return err
			}
		}
		return nil
	})
	c.ok(err)
	d := c.driver("d")
	same(t, "the sum of all updates", d.TokenGeneration, racers*raceRounds)
	same(t, "version", d.Version, 1+racers*raceRounds)
	events, _ := c.events(tracking.EventFilter{})
	same(t, "events", len(events), racers*raceRounds)
}

// sharedPartsAreOnlyRead has many write rows whose parts are the same memory, which each looks at
// again: under the race detector a store that writes there, even what stands there already, is seen.
func sharedPartsAreOnlyRead(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	task, trip, driver := fullTask("", 1), fullTrip("", 1), fullDriver("", 1)
	task.Link, trip.Link = tracking.Link{}, tracking.Link{}
	driver.AppToken, driver.IngestToken = tracking.Hash{}, tracking.Hash{}
	err := together(t, racers, func(ctx context.Context, i int) error {
		task, trip, driver := task, trip, driver
		id := fmt.Sprint(i)
		task.ID, task.Key, trip.ID, driver.ID = tracking.TaskID(id), id, tracking.TripID(id), tracking.DriverID(id)
		cs := tracking.Changeset{
			Tasks: []tracking.Task{task}, Trips: []tracking.Trip{trip}, Drivers: []tracking.Driver{driver},
		}
		if _, err := s.Commit(ctx, here, &cs); err != nil {
			return err
		}
		if d := differs(fullTask("", 1).Drop, task.Drop); d != "" {
			t.Errorf("a place after Commit (-before +after):\n%s", d)
		}
		return nil
	})
	c.ok(err)
	for i := range racers {
		same(t, "what a row shares", c.task(tracking.TaskID(fmt.Sprint(i))).Drop, task.Drop)
	}
}

// oneClaimsAVersion has many replace one version of a task; the events tell who did.
func oneClaimsAVersion(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	var drivers []tracking.Driver
	for i := range racers {
		drivers = append(drivers, newDriver(tracking.DriverID(fmt.Sprint(i)), t0))
	}
	c.commit(tracking.Changeset{Drivers: drivers, Tasks: []tracking.Task{newTask("t", t0)}})
	for range raceRounds {
		task := c.task("t")
		contest(t, s, "claims", tracking.ConflictError{
			Kind: tracking.KindTask, ID: "t",
		}, func(i int) (tracking.AppID, tracking.Changeset) {
			mine := task.Clone()
			mine.DriverID = tracking.DriverID(fmt.Sprint(i))
			return here, tracking.Changeset{Tasks: []tracking.Task{mine}, Events: []tracking.Event{
				newEvent(fmt.Sprint(task.Version, "-", i), tracking.KindTask, "t", t0, mine.DriverID),
			}}
		})
		after := c.task("t")
		events, _ := c.events(tracking.EventFilter{})
		last := events[len(events)-1]
		same(t, "version", after.Version, task.Version+1)
		same(t, "the driver who is told", last.Notices[0].DriverID, after.DriverID)
		same(t, "seq", last.Seq, task.Version)
	}
}

// oneTakesAUniqueValue has many take each kind of unique value, of one application or of two.
func oneTakesAUniqueValue(t testing.TB, s tracking.Store) {
	apps := []tracking.AppID{here, there}
	for _, app := range apps {
		var cs tracking.Changeset
		for i := range racers {
			cs.Drivers = append(cs.Drivers, newDriver(tracking.DriverID(fmt.Sprint(i)), t0))
		}
		use(t, s, app).commit(cs)
	}
	for n := range raceRounds {
		own := func(i int) string { return fmt.Sprintf("%d-%d", n, i) }
		contest(t, s, "the same task id", tracking.ConflictError{Kind: tracking.KindTask, ID: own(0)},
			func(i int) (tracking.AppID, tracking.Changeset) {
				return here, tracking.Changeset{Tasks: []tracking.Task{newTask(tracking.TaskID(own(0)), t0)}}
			})
		contest(t, s, "the same idempotency key", tracking.ConflictError{Kind: tracking.KindTask, Unique: "key"},
			func(i int) (tracking.AppID, tracking.Changeset) {
				task := newTask(tracking.TaskID("k"+own(i)), t0)
				task.Key = own(0)
				return here, tracking.Changeset{Tasks: []tracking.Task{task}}
			})
		contest(t, s, "the same tracking id", tracking.ConflictError{
			Kind: tracking.KindTrip, Unique: "tracking_id",
		}, func(i int) (tracking.AppID, tracking.Changeset) {
			return here, tracking.Changeset{Trips: []tracking.Trip{
				newTrip(tracking.TripID(own(i)), tracking.DriverID(fmt.Sprint(i)), tracking.TrackingID(own(0)), t0),
			}}
		})
		contest(t, s, "the same code", tracking.ConflictError{Kind: tracking.KindInvite, Unique: "code"},
			func(i int) (tracking.AppID, tracking.Changeset) {
				invite := newInvite(tracking.DriverID(fmt.Sprint(i)), byte(i), byte(n))
				invite.LinkHash[5] = byte(n)
				return apps[i%2], tracking.Changeset{Invites: []tracking.Invite{invite}}
			})
		contest(t, s, "the same API key", tracking.ConflictError{Kind: tracking.KindKey, Unique: "hash"},
			func(i int) (tracking.AppID, tracking.Changeset) {
				return apps[i%2], tracking.Changeset{Keys: []tracking.Key{newKey(own(i), byte(n), t0)}}
			})
	}
}

// nobodySeesHalfAChangeset raises two rows together, while readers look at one and then at the
// other.
func nobodySeesHalfAChangeset(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	c.commit(tracking.Changeset{Tasks: []tracking.Task{newTask("a", t0), newTask("b", t0)}})
	stop := make(chan struct{})
	err := together(t, 5, func(ctx context.Context, i int) error {
		if i == 0 {
			defer close(stop)
			for range 60 {
				a, err := s.Task(ctx, here, "a")
				if err != nil {
					return err
				}
				b, err := s.Task(ctx, here, "b")
				if err != nil {
					return err
				}
				if _, err := s.Commit(ctx, here, &tracking.Changeset{Tasks: []tracking.Task{b, a}}); err != nil {
					return err
				}
				now, err := s.Task(ctx, here, "b")
				if err != nil || now.Version != b.Version+1 {
					return fmt.Errorf("after a commit: version %d, error %v; want %d", now.Version, err, b.Version+1)
				}
			}
			return nil
		}
		var seen int64
		first, second := tracking.TaskID("a"), tracking.TaskID("b")
		if i%2 == 0 {
			first, second = second, first
		}
		return untilDone(ctx, stop, func() error {
			x, err := s.Task(ctx, here, first)
			if err != nil {
				return err
			}
			y, err := s.Task(ctx, here, second)
			if err != nil {
				return err
			}
			if x.Version < seen || y.Version < x.Version {
				return fmt.Errorf("read version %d of one row, then %d of the other, which is committed with it; "+
					"before it was %d", x.Version, y.Version, seen)
			}
			seen = y.Version
			list, _, err := s.Tasks(ctx, here, tracking.TaskFilter{Page: tracking.Page{Limit: 10}})
			if err == nil && (len(list) != 2 || list[0].Version != list[1].Version) {
				err = fmt.Errorf("a list shows half a Changeset: %+v", list)
			}
			return err
		})
	})
	c.ok(err)
}

func secretIsMadeOnce(t testing.TB, s tracking.Store) {
	secrets := make([][]byte, racers)
	err := together(t, racers, func(ctx context.Context, i int) (err error) {
		secrets[i], err = s.Secret(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range secrets {
		if string(secret) != string(secrets[0]) {
			t.Fatalf("two callers got different secrets")
		}
	}
}

// fixesAtOnceMakeOnePath sends the same fixes in order to one driver, and in disorder by many to
// another.
func fixesAtOnceMakeOnePath(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	var all []tracking.Fix
	for i := range 160 {
		f := walk(float64(i))
		if i%7 == 3 || i%31 > 28 {
			f = far(float64(i), 20)
		}
		all = append(all, f)
	}
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("in order", t0), newDriver("at once", t0)}})
	c.record(tracking.FixBatch{DriverID: "in order", SeenAt: at(time.Hour), Fixes: all})
	outcomes := make([][]tracking.FixOutcome, racers)
	err := together(t, racers, func(ctx context.Context, i int) error {
		// Each sends every fix but a few, in batches of five and an order of its own; each fix is
		// sent by several.
		for n := 0; n < len(all); n += 5 {
			var b []tracking.Fix
			for k := range 5 {
				if k%racers != i {
					b = append(b, all[((n+k)*(2*i+1)*7+13*i)%len(all)])
				}
			}
			r, err := s.RecordFixes(ctx, here, tracking.FixBatch{DriverID: "at once", SeenAt: at(time.Hour), Fixes: b})
			if err != nil {
				return err
			}
			outcomes[i] = append(outcomes[i], r.Outcomes...)
		}
		return nil
	})
	c.ok(err)
	r := c.record(tracking.FixBatch{DriverID: "at once", SeenAt: at(time.Hour), Fixes: all}) // whatever nobody has sent
	kept := 0
	for _, o := range append(slices.Concat(outcomes...), r.Outcomes...) {
		if o != tracking.FixDuplicate {
			kept++
		}
	}
	same(t, "fixes that were kept, by their outcomes", kept, len(all))
	same(t, "path", c.fixes("at once", tracking.FixRange{}), c.fixes("in order", tracking.FixRange{}))
	same(t, "position", c.driver("at once").Position, c.driver("in order").Position, orderless)
}

// nearbyIsRightWhileDriversMove looks at each list for what cannot be true of any moment, and in
// the end for what is true.
func nearbyIsRightWhileDriversMove(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	var cs tracking.Changeset
	for i := range 24 {
		id := tracking.DriverID(fmt.Sprintf("%02d", i))
		cs.Drivers = append(cs.Drivers, newDriver(id, t0))
		cs.Fixes = append(cs.Fixes, tracking.FixBatch{
			DriverID: id, SeenAt: t0, Fixes: []tracking.Fix{newFix(t0, 11+float64(i)*0.01, 48)},
		})
	}
	c.commit(cs)
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writing.Add(4)
	go func() { writing.Wait(); close(stop) }()
	centre, yes := tracking.LngLat{Lng: 11.1, Lat: 48}, true
	err := together(t, 8, func(ctx context.Context, i int) error {
		if i < 4 {
			defer writing.Done()
			for n := range 40 {
				id := tracking.DriverID(fmt.Sprintf("%02d", (n*4+i)%24))
				f := newFix(at(time.Duration(n+1)*10*time.Minute), 11+float64((n*5+i)%24)*0.01, 48)
				if _, err := s.RecordFixes(ctx, here,
					tracking.FixBatch{DriverID: id, SeenAt: t0, Fixes: []tracking.Fix{f}}); err != nil {
					return err
				}
				if n%4 != 0 {
					continue
				}
				d, err := s.Driver(ctx, here, id)
				if err != nil {
					return err
				}
				d.Available = !d.Available
				if _, err := s.Commit(ctx, here, &tracking.Changeset{Drivers: []tracking.Driver{d}}); err != nil &&
					!errors.Is(err, tracking.ErrConflict) {
					return err
				}
			}
			return nil
		}
		return untilDone(ctx, stop, func() error {
			all, _, err := s.Drivers(ctx, here, tracking.DriverFilter{Page: tracking.Page{Limit: 100}, Near: &centre})
			if err != nil {
				return err
			}
			offers, err := s.Offers(ctx, here, tracking.Offer{At: centre, MaxOpen: -1, Limit: 100})
			if err != nil {
				return err
			}
			available, _, err := s.Drivers(ctx, here, tracking.DriverFilter{
				Page: tracking.Page{Limit: 100}, Near: &centre, Available: &yes,
			})
			if err != nil {
				return err
			}
			if len(all) != 24 {
				return fmt.Errorf("%d drivers nearby, want 24", len(all))
			}
			for i, list := range [][]tracking.Driver{all, available, offers} {
				order := nearer
				if i == 2 {
					order = offeredFirst
				}
				seen := map[tracking.DriverID]bool{}
				for _, d := range list {
					if seen[d.ID] {
						return fmt.Errorf("driver %s is in one page twice", d.ID)
					}
					seen[d.ID] = true
					if want := tracking.Distance(centre, d.Position.Fix.LngLat); d.Distance != want {
						return fmt.Errorf("driver %s: distance %v, by the position %v", d.ID, d.Distance, want)
					}
				}
				if !slices.IsSortedFunc(list, order) {
					return fmt.Errorf("drivers nearby are not in order of distance")
				}
			}
			for _, d := range append(offers, available...) {
				if !d.Available {
					return fmt.Errorf("driver %s is offered, unavailable", d.ID)
				}
			}
			return nil
		})
	})
	c.ok(err)
	drivers, _ := c.drivers(tracking.DriverFilter{})
	var ids []tracking.DriverID
	var places []tracking.LngLat
	for _, d := range drivers {
		if d.Available {
			ids, places = append(ids, d.ID), append(places, d.Position.Fix.LngLat)
		}
	}
	same(t, "offers in the end", each(c.offers(tracking.Offer{At: centre, MaxOpen: -1}), driverID),
		nearest(centre, ids, places))
}

const racers, raceRounds = 8, 12

// contest lets racers commit at once, and expects that exactly one of them is not refused.
func contest(
	t testing.TB, s tracking.Store, what string, want tracking.ConflictError,
	cs func(i int) (tracking.AppID, tracking.Changeset),
) {
	t.Helper()
	won := make([]bool, racers)
	err := together(t, racers, func(ctx context.Context, i int) error {
		app, change := cs(i)
		_, err := s.Commit(ctx, app, &change)
		var c *tracking.ConflictError
		switch {
		case err == nil:
			won[i] = true
		case !errors.As(err, &c):
			return err
		case c.Kind != want.Kind || c.Unique != want.Unique || (want.Unique == "" && c.ID != want.ID):
			return fmt.Errorf("the conflict is %+v, want %+v", *c, want)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	n := 0
	for _, w := range won {
		if w {
			n++
		}
	}
	if n != 1 {
		t.Fatalf("%s: %d of %d won, want 1", what, n, racers)
	}
}

// together runs f for 0 … n−1 at once, begun as closely as can be, and returns their errors joined.
// The first error ends the context of the others, so that nobody waits for what will not come. f
// must not end the test: that is for the test's own goroutine.
func together(t testing.TB, n int, f func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			if errs[i] = f(ctx, i); errs[i] != nil {
				cancel()
			}
		})
	}
	close(start)
	wg.Wait()
	return errors.Join(errs...)
}

// untilDone repeats f until stop is closed, ctx ends or f fails.
func untilDone(ctx context.Context, stop <-chan struct{}, f func() error) error {
	for ctx.Err() == nil {
		select {
		case <-stop:
			return nil
		default:
			if err := f(); err != nil {
				return err
			}
			runtime.Gosched()
		}
	}
	return ctx.Err()
}
