package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// rewriteChecks are about what a position says of changes of the past.
func rewriteChecks() []check {
	return []check{
		{"RecordFixes/what changes before the newest good fix raises Rewrites", rewritesAreCounted},
	}
}

// elsewhereChecks are about what one Service has done, and another over the same store shows.
func elsewhereChecks() []check {
	return []check{
		{"a link shows at once what another process recorded late, or left out", linkShowsRewritesOfAnother},
	}
}

func rewritesAreCounted(t testing.TB, s tracking.Store) {
	c := twoDrivers(t, s)
	for i, step := range []struct {
		fixes []tracking.Fix
		want  int
	}{
		{[]tracking.Fix{walk(10)}, 0}, {[]tracking.Fix{walk(20), walk(30)}, 0}, {nil, 0}, {[]tracking.Fix{walk(30)}, 0},
		{[]tracking.Fix{walk(15)}, 1}, {[]tracking.Fix{walk(40)}, 1}, {[]tracking.Fix{far(50, 15)}, 1},
		{[]tracking.Fix{walk(60)}, 1}, {[]tracking.Fix{walk(70), walk(5)}, 2},
	} {
		r := c.record(tracking.FixBatch{DriverID: "d", SeenAt: at(time.Hour), Fixes: step.fixes})
		same(t, fmt.Sprintf("rewrites after batch %d", i+1), r.Driver.Position.Rewrites, step.want)
		same(t, "driver", c.driver("d"), r.Driver)
	}
	same(t, "of the other driver", c.driver("e").Position.Rewrites, 0)
	d := c.driver("d")
	c.commit(tracking.Changeset{Drivers: []tracking.Driver{d}, Fixes: []tracking.FixBatch{
		{DriverID: "d", SeenAt: at(time.Hour), Fixes: []tracking.Fix{walk(65)}},
	}})
	same(t, "with a commit", c.driver("d").Position.Rewrites, 3)
}

func linkShowsRewritesOfAnother(t testing.TB, s tracking.Store) {
	now := at(time.Hour)
	opts := tracking.Options{Now: func() time.Time { return now }}
	one, two := service(t, s, opts), service(t, s, opts)
	ctx := t.Context()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err := one.SaveDriver(ctx, tracking.DriverUpdate{ID: "d", Available: new(true)})
	ok(err)
	trip, err := one.StartTrip(ctx, "d", "x", tracking.Step{})
	ok(err)
	link, err := two.TripLink(ctx, trip.ID)
	ok(err)
	metres := func(sec float64) tracking.Fix {
		return newFix(at(time.Hour+time.Duration(sec)*time.Second), 11+sec*0.0001, 48)
	}
	for i, fixes := range [][]tracking.Fix{
		{metres(10)}, {metres(20), metres(30)}, {metres(15)}, {metres(40), metres(35), metres(12)},
		{newFix(at(time.Hour+50*time.Second), 15, 48)}, {metres(60)}, {metres(55)},
		{newFix(at(time.Hour+5*time.Minute), 15, 48)}, {metres(310), metres(320)}, // the first of the silence is out
	} {
		now = at(2 * time.Hour)
		_, err := one.RecordFixes(ctx, "d", fixes)
		ok(err)
		var shown [2]tracking.Tracking
		for n, svc := range []*tracking.Service{one, two} {
			shown[n], err = svc.Tracking(ctx, link)
			ok(err)
		}
		want := each(slices.Collect(goodFixes(t, s)), func(f tracking.Fix) tracking.LngLat { return f.LngLat })
		same(t, fmt.Sprintf("the path after batch %d, there", i+1), shown[0].Path, want)
		same(t, fmt.Sprintf("the path after batch %d, elsewhere", i+1), shown[1].Path, want)
	}
}

// goodFixes are the driver "d"'s.
func goodFixes(t testing.TB, s tracking.Store) func(yield func(tracking.Fix) bool) {
	return func(yield func(tracking.Fix) bool) {
		for f, err := range s.Fixes(t.Context(), tracking.DefaultApp, "d", tracking.FixRange{}) {
			if err != nil {
				t.Fatal(err)
			}
			if !yield(f) {
				return
			}
		}
	}
}
