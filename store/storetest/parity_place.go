package storetest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking"
)

// placeChecks are about the edges of the map, ties, and the bits of coordinates.
func placeChecks() []check {
	return []check{
		{"place/nearest first at ±180°, at the poles and at high latitude", nearestFirstAtTheEdges},
		{"place/equal distances are equal: ±180° is one meridian, at a pole the longitude means nothing",
			equalDistancesAreEqual},
		{"place/of drivers in one spot who has fewer open tasks is offered first, then by ID",
			spotOffersFewestTasksFirst},
		{"place/ties go by ID, on every page", tiesGoByID},
		{"place/coordinates keep every bit", coordinatesKeepEveryBit},
	}
}

// nearestFirstAtTheEdges asks from each edge and from places beside it, and compares with a plain
// sort.
func nearestFirstAtTheEdges(t testing.TB, s tracking.Store) {
	var ids []tracking.DriverID
	for i := range edges {
		ids = append(ids, tracking.DriverID(fmt.Sprintf("%02d", i*23%len(edges))))
	}
	from := append(slices.Clone(edges), tracking.LngLat{Lng: 179.95, Lat: 0}, tracking.LngLat{Lng: -179.95, Lat: 1},
		tracking.LngLat{Lng: 77, Lat: 89.95}, tracking.LngLat{Lng: -77, Lat: -89.95}, tracking.LngLat{
			Lng: 26, Lat: 66.6,
		})
	c := use(t, s, here)
	placed(c, ids, edges)
	for _, p := range from {
		want := nearest(p, ids, edges)
		for _, limit := range []int{5, len(edges)} {
			pages(t, fmt.Sprintf("drivers near %v", p), want, limit,
				func(pg tracking.Page) ([]tracking.DriverID, bool) {
					list, more := c.drivers(tracking.DriverFilter{Page: pg, Near: &p})
					return each(list, driverID), more
				})
			same(t, fmt.Sprintf("offers near %v", p),
				each(c.offers(tracking.Offer{At: p, MaxOpen: -1, Limit: limit}), driverID), want[:limit])
		}
		for _, within := range []float64{50, 20_000, 700_000, 1e7, 3e7} {
			var reach []tracking.DriverID
			for _, id := range want {
				if tracking.Distance(p, edges[slices.Index(ids, id)]) <= within {
					reach = append(reach, id)
				}
			}
			same(t, fmt.Sprintf("offers within %v m of %v", within, p),
				each(c.offers(tracking.Offer{At: p, MaxOpen: -1, Within: within}), driverID), reach)
		}
	}
}

// equalDistancesAreEqual puts drivers at places that are one, and expects them in order of their
// ids.
func equalDistancesAreEqual(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	ids, places := []tracking.DriverID{}, []tracking.LngLat{}
	put := func(id tracking.DriverID, lng, lat float64) {
		ids, places = append(ids, id), append(places, tracking.LngLat{Lng: lng, Lat: lat})
	}
	for i, sign := range []float64{1, -1} { // the later id in the place where the subtraction of longitudes rounds less
		put(tracking.DriverID(fmt.Sprint("seam ", i)), 180*sign, -40)
		put(tracking.DriverID(fmt.Sprint("beside it ", i)), 179.9*sign, -40)
		put(tracking.DriverID(fmt.Sprint("farther ", i)), 179.1*sign, -40.3)
	}
	for i, lng := range []float64{-180, 77, 0, 123.4, 180, -0.1} {
		put(tracking.DriverID(fmt.Sprint("pole ", i)), lng, 90)
		put(tracking.DriverID(fmt.Sprint("round it ", i)), lng, 89)
		put(tracking.DriverID(fmt.Sprint("other pole ", i)), lng, -90)
	}
	placed(c, ids, places)
	for _, from := range []tracking.LngLat{
		{Lng: -180, Lat: -40}, {Lng: 180, Lat: -40}, {Lng: 31, Lat: 90}, {Lng: -180, Lat: 90}, {Lng: -99, Lat: -90},
	} {
		want := nearest(from, ids, places)
		list, _ := c.drivers(tracking.DriverFilter{Near: &from})
		same(t, fmt.Sprintf("drivers near %v", from), each(list, driverID), want)
		same(t, fmt.Sprintf("offers near %v", from), each(c.offers(tracking.Offer{At: from, MaxOpen: -1}), driverID),
			want)
		for i := range list[1:] { // names differ in their last digit where places or distances are the same
			a, b := list[i], list[i+1]
			twins := a.ID[:len(a.ID)-1] == b.ID[:len(b.ID)-1] &&
				(math.Abs(from.Lat) == 90 || !strings.HasPrefix(string(a.ID), "round"))
			if twins && (a.Distance != b.Distance || a.ID > b.ID) {
				t.Errorf("from %v, %s at %v m comes before %s at %v m", from, a.ID, a.Distance, b.ID, b.Distance)
			}
		}
		if tracking.Distance(from, list[0].Position.Fix.LngLat) != 0 || list[1].Distance != 0 {
			t.Errorf("from %v the two nearest, %s and %s, are %v and %v m away, want 0", from, list[0].ID, list[1].ID,
				list[0].Distance, list[1].Distance)
		}
	}
}

// spotOffersFewestTasksFirst has more drivers in one spot than an index would look at one by one.
func spotOffersFewestTasksFirst(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	var ids []tracking.DriverID
	var places []tracking.LngLat
	for i := range 60 { // in two spots; the one on the seam by two names
		ids = append(ids, tracking.DriverID(fmt.Sprintf("%02d", i*23%60)))
		places = append(places, []tracking.LngLat{{Lng: 180, Lat: 7}, {Lng: 179.99, Lat: 7}, {Lng: -180, Lat: 7}}[i%3])
	}
	placed(c, ids, places)
	var all []tracking.Driver
	at := tracking.LngLat{Lng: -180, Lat: 7}
	for i, id := range ids {
		d := c.driver(id)
		d.Route = stops([]int{3, 0, 9, 1, 20, 8}[i/2%6])
		c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}})
		d.Distance = tracking.Distance(at, places[i])
		all = append(all, d)
	}
	slices.SortFunc(all, offeredFirst)
	for _, limit := range []int{1, 8, 25, 60} {
		for _, most := range []int{-1, 1, 2, 9, 10, 21} {
			want := slices.DeleteFunc(slices.Clone(all), func(d tracking.Driver) bool {
				return most >= 0 && d.OpenTasks() >= most
			})
			got := c.offers(tracking.Offer{At: at, MaxOpen: most, Limit: limit})
			same(t, fmt.Sprintf("%d offers with fewer than %d open tasks", limit, most), each(got, driverID),
				each(first(want, limit), driverID))
		}
	}
}

func tiesGoByID(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	var ids []tracking.DriverID
	var places []tracking.LngLat
	for i := range 30 { // three to a place, on two mirrored sides
		ids = append(ids, tracking.DriverID(fmt.Sprintf("%c%02d", "Za"[i%2], i*11%30)))
		places = append(places, tracking.LngLat{Lng: float64(i%2*2-1) * float64(i/6+1), Lat: 0})
	}
	placed(c, ids, places)
	centre := tracking.LngLat{}
	for _, limit := range []int{1, 2, 4, 30} {
		pages(t, "drivers", nearest(centre, ids, places), limit, func(p tracking.Page) ([]tracking.DriverID, bool) {
			list, more := c.drivers(tracking.DriverFilter{Page: p, Near: &centre})
			return each(list, driverID), more
		})
		same(t, "offers", each(c.offers(tracking.Offer{At: centre, MaxOpen: -1, Limit: limit}), driverID),
			nearest(centre, ids, places)[:limit])
	}
}

func coordinatesKeepEveryBit(t testing.TB, s tracking.Store) {
	c := use(t, s, here)
	for i, p := range []tracking.LngLat{
		{Lng: 80.2628844, Lat: 13.0039875}, {Lng: math.Nextafter(180, 0), Lat: math.Nextafter(-90, 0)},
		{Lng: 1.0 / 3, Lat: -1.0 / 7}, {Lng: 5e-324, Lat: -1e-300}, {Lng: 0.1 + 0.2, Lat: 0}, {Lng: -180, Lat: 90},
	} {
		id := fmt.Sprint(i)
		task, trip := newTask(tracking.TaskID(id), t0), newTrip(tracking.TripID(id), "d", tracking.TrackingID(id), t0)
		task.Drop.LngLat, trip.StartsAt = &p, &p
		fix := tracking.Fix{
			LngLat: p, Time: t0, Accuracy: tracking.Known(1.0 / 3), Speed: tracking.Known(0),
			Bearing: tracking.Reading{}, Battery: tracking.Known(math.SmallestNonzeroFloat64),
		}
		c.commit(tracking.Changeset{
			Tasks: []tracking.Task{task}, Trips: []tracking.Trip{trip},
			Drivers: []tracking.Driver{newDriver(tracking.DriverID(id), t0)},
			Fixes:   []tracking.FixBatch{{DriverID: tracking.DriverID(id), SeenAt: t0, Fixes: []tracking.Fix{fix}}},
		})
		same(t, "the task's point", *c.task(tracking.TaskID(id)).Drop.LngLat, p)
		same(t, "the trip's start", *c.trip(tracking.TripID(id)).StartsAt, p)
		same(t, "the live position", c.driver(tracking.DriverID(id)).Position.Fix, fix)
		same(t, "fixes", c.fixes(tracking.DriverID(id), tracking.FixRange{}), []tracking.Fix{fix})
	}
}

// edges are where boxes of degrees mislead.
var edges = []tracking.LngLat{
	{Lng: 179.9, Lat: 0}, {Lng: -179.9, Lat: 0}, {Lng: 180, Lat: 0}, {Lng: -180, Lat: 0}, {Lng: 179.95, Lat: 0.05},
	{Lng: -179.99, Lat: -0.05}, {Lng: 0, Lat: 0}, {Lng: 90, Lat: 0}, {Lng: 0, Lat: 90}, {Lng: 123, Lat: 90},
	{Lng: -45, Lat: 89.9}, {Lng: 135, Lat: 89.9}, {Lng: 10, Lat: 89.99}, {Lng: -170, Lat: 89.99}, {Lng: 0, Lat: 85},
	{Lng: 180, Lat: 85}, {Lng: 60, Lat: 84}, {Lng: 0, Lat: -90}, {Lng: 20, Lat: -89.9}, {Lng: -160, Lat: -89.9},
	{Lng: 20, Lat: -80}, {Lng: 25.7, Lat: 66.5}, {Lng: 26.7, Lat: 66.5}, {Lng: 25.7, Lat: 66.9}, {Lng: 15.6, Lat: 78.2},
	{Lng: 17, Lat: 78.2}, {Lng: 15.6, Lat: 78.5}, {Lng: 11.5, Lat: 48.1}, {Lng: 11.5007, Lat: 48.1},
	{Lng: 11.5, Lat: 48.1005}, {Lng: 11.5, Lat: 48.0992}, {Lng: 11.4988, Lat: 48.1}, {Lng: -74, Lat: 40.7},
	{Lng: 151.2, Lat: -33.9},
}
