package storetest

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// driverChecks are about lists of drivers, offers, and tokens.
func driverChecks() []check {
	return []check{
		{"Drivers/lists oldest first, page by page, by each filter", driversListOldestFirst},
		{"Drivers/with a point: nearest first, each with its distance, those without a position left out",
			driversNearbyListNearestFirst},
		{"Drivers/with a point: follows each move, and each change of availability", driversNearbyFollowMoves},
		{"Offers/picks by duty, silence, load, sign of life, distance and exclusion, nearest first",
			offersPickByAllConditions},
		{"Offers/a limit of the driver's own counts instead of the one asked for", offersGoByOwnLimits},
		{"Offers/only who has all that is required, exactly", offersGoByWhatIsRequired},
		{"Offers/a sign of life and a change of load count at once", offersFollowLifeAndLoad},
		{"DriverByToken/finds by each token, of any application", driverByTokenFindsEach},
	}
}

// driversListOldestFirst lists by duty and properties, page by page, and again after a change of
// both.
func driversListOldestFirst(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	var drivers []tracking.Driver
	for i := range 16 {
		d := newDriver(tracking.DriverID(fmt.Sprint(i)), at(time.Duration(i/3)*time.Minute))
		d.Available = i%2 == 0
		d.Properties = map[string]string{"zone": fmt.Sprint(i % 4), "team": fmt.Sprint(i % 3)}
		switch i {
		case 5:
			d.Properties = nil
		case 6:
			d.Properties["zone"] = ""
		case 7:
			d.Properties = map[string]string{"Zone": "3", "zone ": "3", "team": "zone"}
		}
		drivers = append(drivers, d)
	}
	c.commit(tracking.Changeset{Drivers: drivers[:10]})
	c.commit(tracking.Changeset{Drivers: drivers[10:]})
	moved := c.driver("4")
	moved.Available, moved.Properties = false, map[string]string{"zone": "9"}
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{moved}})
	drivers[4] = moved
	for _, f := range []tracking.DriverFilter{
		{}, {Available: new(true)}, {Available: new(false)}, {Properties: map[string]string{}},
		{Properties: map[string]string{"zone": "3"}}, {Properties: map[string]string{"zone": "0"}},
		{Properties: map[string]string{"zone": "9"}}, {Properties: map[string]string{"zone": ""}},
		{Properties: map[string]string{"Zone": "3"}}, {Properties: map[string]string{"ZONE": "3"}},
		{Properties: map[string]string{"zone": "1", "team": "1"}},
		{Properties: map[string]string{"zone": "1", "team": "7"}}, {Properties: map[string]string{"none": ""}},
		{Available: new(true), Properties: map[string]string{"team": "0"}},
	} {
		var want []tracking.DriverID
		for _, d := range drivers {
			pass := f.Available == nil || *f.Available == d.Available
			for k, v := range f.Properties {
				got, ok := d.Properties[k]
				pass = pass && ok && got == v
			}
			if pass {
				want = append(want, d.ID)
			}
		}
		for _, limit := range []int{1, 5, 1000} {
			pages(t, fmt.Sprintf("drivers by available %v, properties %q", f.Available, f.Properties), want, limit,
				func(p tracking.Page) ([]tracking.DriverID, bool) {
					f.Page = p
					list, more := c.drivers(f)
					return each(list, driverID), more
				})
		}
	}
}

// driversNearbyListNearestFirst compares with a plain sort, page by page, by each filter.
func driversNearbyListNearestFirst(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	var ids []tracking.DriverID
	var places []tracking.LngLat
	for i := range 40 {
		ids = append(ids, tracking.DriverID(fmt.Sprintf("%02d", (i*7)%40)))
		places = append(places, tracking.LngLat{
			Lng: 11.5 + 0.4*math.Sin(float64(i)), Lat: 48.1 + 0.2*math.Cos(float64(3*i)),
		})
	}
	placed(c, ids, places)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("nowhere", t0)}})
	c.record(tracking.FixBatch{DriverID: "nowhere", SeenAt: at(time.Minute)})
	off := c.driver("00")
	off.Available, off.Properties = false, map[string]string{"zone": "1"}
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{off}})

	from := tracking.LngLat{Lng: 11.6, Lat: 48.15}
	want := nearest(from, ids, places)
	for _, limit := range []int{1, 7, 1000} {
		pages(t, "drivers nearby", want, limit, func(p tracking.Page) ([]tracking.DriverID, bool) {
			list, more := c.drivers(tracking.DriverFilter{Page: p, Near: &from})
			for _, d := range list {
				if exact := tracking.Distance(from, d.Position.Fix.LngLat); d.Distance != exact {
					t.Errorf("driver %s: Distance %v, want exactly %v", d.ID, d.Distance, exact)
				}
			}
			return each(list, driverID), more
		})
	}
	available := slices.DeleteFunc(slices.Clone(want), func(id tracking.DriverID) bool { return id == "00" })
	pages(t, "available drivers nearby", available, 6, func(p tracking.Page) ([]tracking.DriverID, bool) {
		list, more := c.drivers(tracking.DriverFilter{Page: p, Near: &from, Available: new(true)})
		return each(list, driverID), more
	})
	list, more := c.drivers(tracking.DriverFilter{Near: &from, Properties: map[string]string{"zone": "1"}})
	same(t, "drivers nearby by property", each(list, driverID), []tracking.DriverID{"00"})
	same(t, "more", more, false)
	list, _ = c.drivers(tracking.DriverFilter{Near: &from, Available: new(false)})
	same(t, "unavailable drivers nearby", each(list, driverID), []tracking.DriverID{"00"})
	list, _ = c.drivers(tracking.DriverFilter{Page: tracking.Page{Limit: 1}})
	same(t, "distance in a list without a point", list[0].Distance, 0)
	same(t, "distance of one driver", c.driver("01").Distance, 0)
}

// driversNearbyFollowMoves moves drivers about, takes one off duty and back, and looks after each
// step.
func driversNearbyFollowMoves(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	ids := []tracking.DriverID{"a", "b", "c"}
	places := []tracking.LngLat{{Lng: 11, Lat: 48}, {Lng: 11.001, Lat: 48}, {Lng: 11.002, Lat: 48}}
	placed(c, ids, places)
	from := tracking.LngLat{Lng: 11, Lat: 48}
	for step := range 12 {
		i := step % 3
		places[i].Lng += 0.0035
		c.record(tracking.FixBatch{
			DriverID: ids[i], SeenAt: at(time.Duration(step+1) * time.Minute),
			Fixes: []tracking.Fix{{LngLat: places[i], Time: at(time.Duration(step+1) * time.Minute)}},
		})
		list, _ := c.drivers(tracking.DriverFilter{Near: &from})
		same(t, "drivers nearby after a move", each(list, driverID), nearest(from, ids, places))
		same(t, "offers after a move", each(c.offers(tracking.Offer{At: from, MaxOpen: -1}), driverID),
			nearest(from, ids, places))
	}
	d := c.driver("b")
	for _, available := range []bool{false, true, false} {
		d.Available = available
		c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
		d.Version++
		list, _ := c.drivers(tracking.DriverFilter{Near: &from, Available: new(true)})
		same(t, "b is among the available nearby", slices.Contains(each(list, driverID), "b"), available)
		same(t, "b is offered", slices.Contains(each(c.offers(tracking.Offer{At: from, MaxOpen: -1}), driverID), "b"),
			available)
		list, _ = c.drivers(tracking.DriverFilter{Near: &from})
		same(t, "b is listed nearby", slices.Contains(each(list, driverID), "b"), true)
	}
}

// offersPickByAllConditions compares with a plain filter and sort.
func offersPickByAllConditions(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	centre := tracking.LngLat{Lng: 11, Lat: 48}
	var ids []tracking.DriverID
	var places []tracking.LngLat
	for i := range 12 {
		ids = append(ids, tracking.DriverID(fmt.Sprintf("%02d", i)))
		places = append(places, tracking.LngLat{Lng: 11 + float64(12-i)*0.001, Lat: 48})
	}
	placed(c, ids, places)
	for i, id := range ids {
		d := c.driver(id)
		d.Route = stops(i % 3)
		d.Available = i != 4
		d.Silent = i == 7
		c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
		c.record(tracking.FixBatch{DriverID: id, SeenAt: at(time.Duration(i) * time.Minute)})
	}
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{newDriver("nowhere", t0)}})
	for _, o := range []tracking.Offer{
		{MaxOpen: -1}, {MaxOpen: 0}, {MaxOpen: 1}, {MaxOpen: 2}, {MaxOpen: 1 << 40},
		{MaxOpen: -1, SeenSince: at(5 * time.Minute)}, {MaxOpen: -1, SeenSince: at(time.Hour)},
		{MaxOpen: -1, Within: 400}, {MaxOpen: -1, Within: 10}, {MaxOpen: -1, Within: 1e9},
		{MaxOpen: -1, Exclude: []tracking.DriverID{"11", "03", "nobody"}}, {MaxOpen: -1, Exclude: ids},
		{MaxOpen: 2, SeenSince: at(2 * time.Minute), Within: 700, Exclude: []tracking.DriverID{"10"}},
	} {
		for _, limit := range []int{1, 3, 1000} {
			o.At, o.Limit = centre, limit
			var want []tracking.DriverID
			for _, id := range nearest(centre, ids, places) {
				i := slices.Index(ids, id)
				if i == 4 || i == 7 || (o.MaxOpen >= 0 && i%3 >= o.MaxOpen) || slices.Contains(o.Exclude, id) ||
					at(time.Duration(i)*time.Minute).Before(o.SeenSince) ||
					(o.Within > 0 && tracking.Distance(centre, places[i]) > o.Within) {
					continue
				}
				if len(want) < limit {
					want = append(want, id)
				}
			}
			got := c.offers(o)
			same(t, fmt.Sprintf("offers by %+v", o), each(got, driverID), want)
			for _, d := range got {
				exact := c.driver(d.ID)
				exact.Distance = tracking.Distance(centre, d.Position.Fix.LngLat)
				same(t, "an offered driver", d, exact)
			}
		}
	}
}

// offersGoByOwnLimits has drivers with each limit and each load, in one spot and in line, and
// changes them.
func offersGoByOwnLimits(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	centre := tracking.LngLat{Lng: 11, Lat: 48}
	var ids []tracking.DriverID
	var places []tracking.LngLat
	for i := range 150 { // so many in one spot that an index has them as one
		ids = append(ids, tracking.DriverID(fmt.Sprintf("%03d", i*61%150)))
		p := centre
		if i >= 100 {
			p.Lng += float64(i) * 0.001
		}
		places = append(places, p)
	}
	placed(c, ids, places)
	limits := []*int{nil, new(-1), new(0), new(1), new(2), new(3), new(9), new(20)}
	for round := range 2 {
		var all []tracking.Driver
		var cs tracking.Changeset
		for i, id := range ids {
			d := c.driver(id)
			d.MaxOpenTasks, d.Route = limits[(i+round*3)%len(limits)], stops([]int{0, 1, 2, 3, 10, 19}[(i+round)%6])
			cs.Drivers = append(cs.Drivers, d)
			d.Distance = tracking.Distance(centre, places[i])
			all = append(all, d)
		}
		c.commit(cs)
		slices.SortFunc(all, offeredFirst)
		for _, most := range []int{-1, 0, 1, 2, 9, 10, 1000} {
			for _, full := range []bool{false, true} {
				want := slices.DeleteFunc(slices.Clone(all), func(d tracking.Driver) bool {
					return !full && !hasRoom(d, most)
				})
				for _, limit := range []int{1, 8, 150} {
					o := tracking.Offer{At: centre, MaxOpen: most, Full: full, Limit: limit}
					same(t, fmt.Sprintf("offers by %+v", o), each(c.offers(o), driverID),
						each(first(want, limit), driverID))
				}
			}
		}
		list, _ := c.drivers(tracking.DriverFilter{Near: &centre, Available: new(true)})
		same(t, "all that are near", each(list, driverID), nearest(centre, ids, places))
	}
}

// offersGoByWhatIsRequired has few with a rare property, and many with a common one.
func offersGoByWhatIsRequired(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	centre := tracking.LngLat{Lng: 11, Lat: 48}
	var ids []tracking.DriverID
	var places []tracking.LngLat
	for i := range 120 {
		ids = append(ids, tracking.DriverID(fmt.Sprintf("%03d", i*61%120)))
		places = append(places, tracking.LngLat{Lng: 11 + float64(i%40)*0.001, Lat: 48})
	}
	placed(c, ids, places)
	for round := range 2 {
		var all []tracking.Driver
		var cs tracking.Changeset
		for i, id := range ids {
			d := c.driver(id)
			d.Properties = map[string]string{"van": []string{"yes", "no"}[(i+round)%2], "zone": fmt.Sprint(i % 3)}
			switch (i + round) % 30 {
			case 7:
				d.Properties["crane"] = ""
			case 8:
				d.Properties = nil
			}
			d.Available, d.Silent = i%11 != 3, i%13 == 4
			cs.Drivers = append(cs.Drivers, d)
			d.Distance = tracking.Distance(centre, places[i])
			if d.Available && !d.Silent {
				all = append(all, d)
			}
		}
		c.commit(cs)
		slices.SortFunc(all, offeredFirst)
		for _, required := range []map[string]string{
			nil, {}, {"van": "yes"}, {"van": "yes", "zone": "2"}, {"crane": ""}, {"crane": "", "van": "no"},
			{"Van": "yes"}, {"van": "Yes"}, {"van": ""}, {"crane": "yes"}, {"zone": "1", "tail lift": "yes"}, {"": ""},
		} {
			want := slices.DeleteFunc(slices.Clone(all), func(d tracking.Driver) bool {
				return !hasAll(d.Properties, required)
			})
			for _, limit := range []int{1, 5, 1000} {
				o := tracking.Offer{At: centre, MaxOpen: 1, Requires: required, Limit: limit}
				same(t, fmt.Sprintf("offers by %+v", o), each(c.offers(o), driverID),
					each(first(want, limit), driverID))
			}
		}
	}
}

func offersFollowLifeAndLoad(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	centre := tracking.LngLat{Lng: 11, Lat: 48}
	placed(c, []tracking.DriverID{"d"}, []tracking.LngLat{centre})
	offered := func(o tracking.Offer) bool { o.At = centre; return len(c.offers(o)) == 1 }
	same(t, "offered before the sign of life", offered(tracking.Offer{MaxOpen: 1, SeenSince: at(time.Minute)}), false)
	c.record(tracking.FixBatch{DriverID: "d", SeenAt: at(time.Minute)})
	same(t, "offered after it", offered(tracking.Offer{MaxOpen: 1, SeenSince: at(time.Minute)}), true)
	d := c.driver("d")
	for _, load := range []int{1, 0, 3} {
		d.Route = stops(load)
		c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
		d.Version++
		same(t, fmt.Sprintf("offered with %d open tasks of at most 1", load), offered(tracking.Offer{MaxOpen: 1}),
			load == 0)
		same(t, fmt.Sprintf("offered with %d open tasks of at most 4", load), offered(tracking.Offer{MaxOpen: 4}), true)
	}
	for _, silent := range []bool{true, false} {
		d.Silent = silent
		c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
		d.Version++
		same(t, "offered", offered(tracking.Offer{MaxOpen: -1}), !silent)
	}
}

// driverByTokenFindsEach looks by both kinds of token, before and after a change.
func driverByTokenFindsEach(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	d := newDriver("d", t0)
	d.TokenGeneration, d.AppToken, d.IngestToken = 1, hash(1), hash(2)
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{d, newDriver("none", t0)}})
	find := func(kind tracking.TokenKind, h tracking.Hash, want bool) {
		t.Helper()
		app, got, err := s.DriverByToken(c.ctx, kind, h)
		if !want {
			missing(t, fmt.Sprintf("DriverByToken(%d, %x)", kind, h[:1]), err)
			return
		}
		c.ok(err)
		same(t, "application", app, here)
		same(t, "driver", got, c.driver("d"))
	}
	c.record(tracking.FixBatch{DriverID: "d", SeenAt: t0, Fixes: []tracking.Fix{newFix(t0, 11, 48)}})
	find(tracking.TokenApp, hash(1), true)
	find(tracking.TokenIngest, hash(2), true)
	find(tracking.TokenApp, hash(2), false)
	find(tracking.TokenIngest, hash(1), false)
	find(tracking.TokenApp, tracking.Hash{}, false)
	find(tracking.TokenIngest, tracking.Hash{}, false)
	d = c.driver("d")
	d.AppToken, d.IngestToken = hash(3), tracking.Hash{}
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
	find(tracking.TokenApp, hash(1), false)
	find(tracking.TokenApp, hash(3), true)
	find(tracking.TokenIngest, hash(2), false)
	find(tracking.TokenIngest, tracking.Hash{}, false)
}

// placed makes drivers with a position each. place[0] belongs to ids[0].
func placed(c *client, ids []tracking.DriverID, places []tracking.LngLat) {
	c.Helper()
	var cs tracking.Changeset
	for i, id := range ids {
		cs.Drivers = append(cs.Drivers, newDriver(id, t0))
		f := tracking.Fix{LngLat: places[i], Time: t0}
		cs.Fixes = append(cs.Fixes, tracking.FixBatch{DriverID: id, SeenAt: t0, Fixes: []tracking.Fix{f}})
	}
	c.commit(cs)
}

// nearest sorts drivers by the contract: by Distance, ties by ID.
func nearest(from tracking.LngLat, ids []tracking.DriverID, places []tracking.LngLat) []tracking.DriverID {
	var list []tracking.Driver
	for i, id := range ids {
		list = append(list, tracking.Driver{ID: id, Distance: tracking.Distance(from, places[i])})
	}
	slices.SortFunc(list, nearer)
	return each(list, driverID)
}
