package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
	"github.com/seed-8aba7b13/tracking/store/postgres"
)

// Among more drivers than are read at once, the nearest are those that the store in memory finds:
// in cities, in the wild, in crowds on one spot, about the poles and on both sides of ±180°.
func TestNearestOfMany(t *testing.T) {
	t.Parallel()
	url := template.Database(t)
	stores := map[string]*postgres.Store{
		"": open(t, url, nil), "few at once: ": open(t, url, postgres.Options{}.Looking(32)),
	}
	s, m := stores[""], memory.New()
	defer m.Close()
	for _, s := range stores {
		defer s.Close()
	}
	r := rand.New(rand.NewPCG(5, 6))
	middle := tracking.LngLat{Lng: 80.35, Lat: 13.15}
	places := []func() tracking.LngLat{
		func() tracking.LngLat { return tracking.LngLat{Lng: 80.2 + r.Float64()/10, Lat: 13 + r.Float64()/10} },
		func() tracking.LngLat { return tracking.LngLat{Lng: 80.25, Lat: 13.05} },
		func() tracking.LngLat { return tracking.LngLat{Lng: 360*r.Float64() - 180, Lat: 180*r.Float64() - 90} },
		func() tracking.LngLat { return tracking.LngLat{Lng: 360*r.Float64() - 180, Lat: 90 - r.Float64()/10} },
		func() tracking.LngLat { return tracking.LngLat{Lng: 360*r.Float64() - 180, Lat: r.Float64()/10 - 90} },
		func() tracking.LngLat { return tracking.LngLat{Lng: 180 - r.Float64()/10, Lat: r.Float64()} },
		func() tracking.LngLat { return tracking.LngLat{Lng: r.Float64()/10 - 180, Lat: r.Float64()} },
		func() tracking.LngLat { return tracking.LngLat{Lng: -180 + 360*float64(r.IntN(2)), Lat: r.Float64()} },
		func() tracking.LngLat { // on four spots, equally far from the middle but for the last digits
			if r.IntN(2) == 0 {
				return tracking.LngLat{Lng: middle.Lng + 0.001*float64(2*r.IntN(2)-1), Lat: middle.Lat}
			}
			return tracking.LngLat{Lng: middle.Lng, Lat: middle.Lat + 0.000974*float64(2*r.IntN(2)-1)}
		},
	}
	const drivers = 4000
	for made := 0; made < drivers; {
		var cs tracking.Changeset
		for range 500 {
			d := tracking.Driver{
				ID: tracking.DriverID(fmt.Sprintf("d%04d", made)), Available: r.IntN(4) > 0, Silent: r.IntN(6) == 0,
				CreatedAt: start,
			}
			for i := range r.IntN(13) {
				d.Route = append(d.Route, tracking.Stop{TaskID: tracking.TaskID(fmt.Sprint(i)), Leg: tracking.LegDrop})
			}
			if r.IntN(5) == 0 {
				d.MaxOpenTasks = new(r.IntN(15) - 1)
			}
			if r.IntN(2) == 0 {
				d.Properties = map[string]string{"often": "yes"}
			}
			if r.IntN(400) == 0 {
				d.Properties = map[string]string{"rare": "yes", "often": "no"}
			}
			cs.Drivers = append(cs.Drivers, d)
			if r.IntN(20) > 0 {
				at := places[r.IntN(len(places)+4)%len(places)]()
				seen := start.Add(time.Duration(r.IntN(600)) * time.Second)
				cs.Fixes = append(cs.Fixes, tracking.FixBatch{
					DriverID: d.ID, SeenAt: seen, KeepOffDuty: true,
					Fixes: []tracking.Fix{{LngLat: at, Time: seen, Trusted: true}},
				})
			}
			made++
		}
		for _, store := range []tracking.Store{s, m} {
			if _, err := store.Commit(t.Context(), app, &cs); err != nil {
				t.Fatal(err)
			}
		}
	}
	type found struct {
		ID       tracking.DriverID
		Distance float64
		Open     int
	}
	short := func(list []tracking.Driver) (ids []found) {
		for _, d := range list {
			ids = append(ids, found{d.ID, d.Distance, d.OpenTasks()})
		}
		return ids
	}
	requires := []map[string]string{nil, nil, {"often": "yes"}, {"rare": "yes"}, {"none": "yes"}}
	for n := range 300 {
		at := places[n%len(places)]()
		if n%11 == 0 {
			at = middle
		}
		o := tracking.Offer{
			At: at, MaxOpen: r.IntN(16) - 1, Full: r.IntN(4) == 0, Limit: 1 + r.IntN(30),
			Requires:  requires[r.IntN(len(requires))],
			SeenSince: start.Add(time.Duration(r.IntN(700)) * time.Second),
			Within:    []float64{0, 0, 500, 20_000, 3e6}[r.IntN(5)],
			Exclude:   []tracking.DriverID{"d0001", tracking.DriverID(fmt.Sprintf("d%04d", r.IntN(drivers)))},
		}
		want, err := m.Offers(t.Context(), app, o)
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range stores {
			got, err := s.Offers(t.Context(), app, o)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(short(want), short(got)); d != "" {
				t.Fatalf("%sOffers %+v (-want +got):\n%s", name, o, d)
			}
		}
		f := tracking.DriverFilter{
			Page: tracking.Page{Number: 1 + r.IntN(20)*r.IntN(2), Limit: 1 + r.IntN(40)}, Near: &at,
			Properties: requires[r.IntN(len(requires))],
		}
		if r.IntN(2) == 0 {
			f.Available = new(r.IntN(2) == 0)
		}
		want, wantMore, err := m.Drivers(t.Context(), app, f)
		if err != nil {
			t.Fatal(err)
		}
		for name, s := range stores {
			got, more, err := s.Drivers(t.Context(), app, f)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(short(want), short(got)); d != "" || more != wantMore {
				t.Fatalf("%sDrivers %+v, more %v, want %v (-want +got):\n%s", name, f, more, wantMore, d)
			}
		}
	}
}
