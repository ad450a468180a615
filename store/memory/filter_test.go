package memory_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

var epoch = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

const app tracking.AppID = "shop"

func commit(t testing.TB, s *memory.Store, cs *tracking.Changeset) {
	t.Helper()
	if _, err := s.Commit(context.Background(), app, cs); err != nil {
		t.Fatal(err)
	}
}

func page[T any](list []T, p tracking.Page) ([]T, bool) {
	skip := min(p.Offset(), len(list))
	end := min(skip+p.Limit, len(list))
	return list[skip:end], end < len(list)
}

func randomPage(r *rand.Rand) tracking.Page {
	return tracking.Page{
		Number: []int{0, 1, 1, 2, 5, 40, math.MaxInt}[r.IntN(7)], Limit: []int{1, 5, 10, 100}[r.IntN(4)],
	}
}

// Every mixture of filters gives what going through all tasks gives, whichever list serves it.
func TestTaskFilters(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s := memory.New()
	defer s.Close()
	statuses := []tracking.TaskStatus{
		tracking.StatusCreated, tracking.StatusAssigned, tracking.StatusInProgress, tracking.StatusCompleted,
	}
	tasks := make([]tracking.Task, 1500)
	mutate := func(task *tracking.Task) {
		task.Status = statuses[min(r.IntN(8), 3)] // most are completed
		task.DriverID, task.OrderID, task.CompletedAt = "", "", time.Time{}
		if d := r.IntN(12); d > 0 {
			task.DriverID = tracking.DriverID(fmt.Sprint("d", min(d, 4)))
		}
		if o := r.IntN(30); o < 10 {
			task.OrderID = fmt.Sprint("order ", o)
		}
		if task.Status == tracking.StatusCompleted {
			task.CompletedAt = task.CreatedAt.Add(time.Duration(r.IntN(1e6)) * time.Second)
		}
	}
	for i := range tasks {
		tasks[i] = tracking.Task{
			ID: tracking.TaskID(fmt.Sprint(i)), CreatedAt: epoch.Add(time.Duration(r.IntN(1000)) * time.Second),
		}
		mutate(&tasks[i])
		commit(t, s, &tracking.Changeset{Tasks: tasks[i : i+1]})
		tasks[i].Version, tasks[i].Seq = 1, int64(i+1)
	}
	for range 2 {
		for range 1000 {
			task := &tasks[r.IntN(len(tasks))]
			mutate(task)
			commit(t, s, &tracking.Changeset{Tasks: []tracking.Task{*task}})
			task.Version++
		}
		for range 150 {
			f := tracking.TaskFilter{Page: randomPage(r)}
			if r.IntN(2) == 0 {
				f.DriverID = tracking.DriverID(fmt.Sprint("d", 1+r.IntN(5)))
			}
			for range r.IntN(3) {
				f.Status = append(f.Status, append(statuses, "lost")[r.IntN(5)])
			}
			if r.IntN(4) == 0 {
				f.OrderID = fmt.Sprint("order ", r.IntN(11))
			}
			if r.IntN(3) == 0 {
				f.CompletedSince = epoch.Add(time.Duration(r.IntN(1.1e6)) * time.Second)
			}
			var all []tracking.Task
			for _, task := range tasks {
				if (f.DriverID == "" || task.DriverID == f.DriverID) &&
					(f.OrderID == "" || task.OrderID == f.OrderID) &&
					(len(f.Status) == 0 || slices.Contains(f.Status, task.Status)) &&
					(f.CompletedSince.IsZero() || !task.CompletedAt.Before(f.CompletedSince)) {
					all = append(all, task)
				}
			}
			slices.SortFunc(all, func(a, b tracking.Task) int {
				return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.Seq, a.Seq))
			})
			want, wantMore := page(all, f.Page)
			got, more, err := s.Tasks(t.Context(), app, f)
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(append([]tracking.Task(nil), want...), got); diff != "" || more != wantMore {
				t.Fatalf("%+v: more %v, want %v (-want +got):\n%s", f, more, wantMore, diff)
			}
		}
	}
}

// The same for drivers, with a place and without.
func TestDriverFilters(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := memory.New()
	defer s.Close()
	drivers := make([]tracking.Driver, 1500)
	mutate := func(d *tracking.Driver) {
		d.Available = r.IntN(3) == 0
		// c2 is common, the others are not
		d.Properties = map[string]string{"city": "c" + fmt.Sprint(min(r.IntN(20), 2))}
		if r.IntN(100) == 0 {
			d.Properties["vip"] = "yes"
		}
		if r.IntN(10) == 0 {
			d.Properties = nil
		}
	}
	for i := range drivers {
		d := &drivers[i]
		*d = tracking.Driver{
			ID: tracking.DriverID(fmt.Sprint(i)), CreatedAt: epoch.Add(time.Duration(r.IntN(500)) * time.Second),
		}
		mutate(d)
		commit(t, s, &tracking.Changeset{Drivers: []tracking.Driver{*d}})
		if r.IntN(10) > 0 {
			at := tracking.LngLat{Lng: 179 + float64(r.IntN(40))/20, Lat: float64(r.IntN(40)) / 20}
			if at.Lng > 180 {
				at.Lng -= 360
			}
			_, err := s.RecordFixes(t.Context(), app, tracking.FixBatch{
				DriverID: d.ID, SeenAt: epoch, KeepOffDuty: true, Fixes: []tracking.Fix{{LngLat: at, Time: epoch}},
			})
			if err != nil {
				t.Fatal(err)
			}
			d.Position = tracking.Position{Fix: tracking.Fix{LngLat: at, Time: epoch}, SeenAt: epoch}
		}
		d.Version, d.Seq = 1, int64(i+1)
	}
	yes, no := true, false
	for range 2 {
		for range 500 {
			d := &drivers[r.IntN(len(drivers))]
			mutate(d)
			commit(t, s, &tracking.Changeset{Drivers: []tracking.Driver{*d}})
			d.Version++
		}
		for range 150 {
			f := tracking.DriverFilter{Page: randomPage(r), Available: []*bool{nil, &yes, &no}[r.IntN(3)]}
			if r.IntN(2) == 0 {
				f.Properties = map[string]string{"city": fmt.Sprint("c", r.IntN(4))}
			}
			if r.IntN(4) == 0 {
				f.Properties = map[string]string{"vip": "yes", "city": "c2"}
			}
			if r.IntN(2) == 0 {
				f.Near = &tracking.LngLat{Lng: 180 - r.Float64(), Lat: r.Float64() * 2}
			}
			got, more, err := s.Drivers(t.Context(), app, f)
			if err != nil {
				t.Fatal(err)
			}
			want, wantMore := page(allDrivers(drivers, f), f.Page)
			if diff := gocmp.Diff(append([]tracking.Driver(nil), want...), got,
				cmpopts.IgnoreFields(tracking.Position{}, "Tail")); diff != "" || more != wantMore {
				t.Fatalf("%+v: more %v, want %v (-want +got):\n%s", f, more, wantMore, diff)
			}
		}
	}
}

func allDrivers(drivers []tracking.Driver, f tracking.DriverFilter) (all []tracking.Driver) {
	for _, d := range drivers {
		if f.Available != nil && d.Available != *f.Available || f.Near != nil && !d.Position.Located() {
			continue
		}
		if slices.ContainsFunc(slices.Collect(maps.Keys(f.Properties)), func(k string) bool {
			return d.Properties[k] != f.Properties[k]
		}) {
			continue
		}
		if f.Near != nil {
			d.Distance = tracking.Distance(*f.Near, d.Position.Fix.LngLat)
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b tracking.Driver) int {
		if f.Near != nil {
			return cmp.Or(cmp.Compare(a.Distance, b.Distance), strings.Compare(string(a.ID), string(b.ID)))
		}
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Seq, b.Seq))
	})
	return all
}
