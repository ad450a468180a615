package storetest

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

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

func driverChecks() []check {
	yes, no := true, false
	return []check{
		{"Drivers/lists oldest first, page by page, by each filter", func(t testing.TB, s tracking.Store) {
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
				{}, {Available: &yes}, {Available: &no},
				{Properties: map[string]string{}},
				{Properties: map[string]string{"zone": "3"}}, {Properties: map[string]string{"zone": "0"}}, {Properties: map[string]string{"zone": "9"}},
				{Properties: map[string]string{"zone": ""}}, {Properties: map[string]string{"Zone": "3"}}, {Properties: map[string]string{"ZONE": "3"}},
				{Properties: map[string]string{"zone": "1", "team": "1"}}, {Properties: map[string]string{"zone": "1", "team": "7"}},
				{Properties: map[string]string{"none": ""}},
				{Available: &yes, Properties: map[string]string{"team": "0"}},
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
					pages(t, fmt.Sprintf("drivers by available %v, properties %q", f.Available, f.Properties), want, limit, func(p tracking.Page) ([]tracking.DriverID, bool) {
						f.Page = p
						list, more := c.drivers(f)
						return each(list, driverID), more
					})
				}
			}
		}},
		{"Drivers/with a point: nearest first, each with its distance, those without a position left out", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			var ids []tracking.DriverID
			var places []tracking.LngLat
			for i := range 40 {
				ids = append(ids, tracking.DriverID(fmt.Sprintf("%02d", (i*7)%40)))
				places = append(places, tracking.LngLat{Lng: 11.5 + 0.4*math.Sin(float64(i)), Lat: 48.1 + 0.2*math.Cos(float64(3*i))})
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
				list, more := c.drivers(tracking.DriverFilter{Page: p, Near: &from, Available: &yes})
				return each(list, driverID), more
			})
			list, more := c.drivers(tracking.DriverFilter{Near: &from, Properties: map[string]string{"zone": "1"}})
			same(t, "drivers nearby by property", each(list, driverID), []tracking.DriverID{"00"})
			same(t, "more", more, false)
			list, _ = c.drivers(tracking.DriverFilter{Near: &from, Available: &no})
			same(t, "unavailable drivers nearby", each(list, driverID), []tracking.DriverID{"00"})
			list, _ = c.drivers(tracking.DriverFilter{Page: tracking.Page{Limit: 1}})
			same(t, "distance in a list without a point", list[0].Distance, 0)
			same(t, "distance of one driver", c.driver("01").Distance, 0)
		}},
		{"Drivers/with a point: follows each move, and each change of availability", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			ids := []tracking.DriverID{"a", "b", "c"}
			places := []tracking.LngLat{{Lng: 11, Lat: 48}, {Lng: 11.001, Lat: 48}, {Lng: 11.002, Lat: 48}}
			placed(c, ids, places)
			from := tracking.LngLat{Lng: 11, Lat: 48}
			for step := range 12 {
				i := step % 3
				places[i].Lng += 0.0035
				c.record(tracking.FixBatch{DriverID: ids[i], SeenAt: at(time.Duration(step+1) * time.Minute), Fixes: []tracking.Fix{{LngLat: places[i], Time: at(time.Duration(step+1) * time.Minute)}}})
				list, _ := c.drivers(tracking.DriverFilter{Near: &from})
				same(t, "drivers nearby after a move", each(list, driverID), nearest(from, ids, places))
				same(t, "offers after a move", each(c.offers(tracking.Offer{At: from, MaxOpen: -1}), driverID), nearest(from, ids, places))
			}
			d := c.driver("b")
			for _, available := range []bool{false, true, false} {
				d.Available = available
				c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
				d.Version++
				list, _ := c.drivers(tracking.DriverFilter{Near: &from, Available: &yes})
				same(t, "b is among the available nearby", slices.Contains(each(list, driverID), "b"), available)
				same(t, "b is offered", slices.Contains(each(c.offers(tracking.Offer{At: from, MaxOpen: -1}), driverID), "b"), available)
				list, _ = c.drivers(tracking.DriverFilter{Near: &from})
				same(t, "b is listed nearby", slices.Contains(each(list, driverID), "b"), true)
			}
		}},
		{"Offers/picks by duty, silence, load, sign of life, distance and exclusion, nearest first", func(t testing.TB, s tracking.Store) {
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
				d.OpenTasks = i % 3
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
							at(time.Duration(i)*time.Minute).Before(o.SeenSince) || (o.Within > 0 && tracking.Distance(centre, places[i]) > o.Within) {
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
		}},
		{"Offers/a sign of life and a change of load count at once", func(t testing.TB, s tracking.Store) {
			c := use(t, s, here)
			centre := tracking.LngLat{Lng: 11, Lat: 48}
			placed(c, []tracking.DriverID{"d"}, []tracking.LngLat{centre})
			offered := func(o tracking.Offer) bool { o.At = centre; return len(c.offers(o)) == 1 }
			same(t, "offered before the sign of life", offered(tracking.Offer{MaxOpen: 1, SeenSince: at(time.Minute)}), false)
			c.record(tracking.FixBatch{DriverID: "d", SeenAt: at(time.Minute)})
			same(t, "offered after it", offered(tracking.Offer{MaxOpen: 1, SeenSince: at(time.Minute)}), true)
			d := c.driver("d")
			for _, load := range []int{1, 0, 3} {
				d.OpenTasks = load
				c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
				d.Version++
				same(t, fmt.Sprintf("offered with %d open tasks of at most 1", load), offered(tracking.Offer{MaxOpen: 1}), load == 0)
				same(t, fmt.Sprintf("offered with %d open tasks of at most 4", load), offered(tracking.Offer{MaxOpen: 4}), true)
			}
			for _, silent := range []bool{true, false} {
				d.Silent = silent
				c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
				d.Version++
				same(t, "offered", offered(tracking.Offer{MaxOpen: -1}), !silent)
			}
		}},
		{"DriverByToken/finds by each token, of any application", func(t testing.TB, s tracking.Store) {
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
			find(tracking.AppToken, hash(1), true)
			find(tracking.IngestToken, hash(2), true)
			find(tracking.AppToken, hash(2), false)
			find(tracking.IngestToken, hash(1), false)
			find(tracking.AppToken, tracking.Hash{}, false)
			find(tracking.IngestToken, tracking.Hash{}, false)
			d = c.driver("d")
			d.AppToken, d.IngestToken = hash(3), tracking.Hash{}
			c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
			find(tracking.AppToken, hash(1), false)
			find(tracking.AppToken, hash(3), true)
			find(tracking.IngestToken, hash(2), false)
			find(tracking.IngestToken, tracking.Hash{}, false)
		}},
	}
}
