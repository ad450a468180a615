package memory_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
	"github.com/seed-8aba7b13/tracking/store/storetest"
)

// newTask makes the i-th task of a shop with a thousand drivers, most of its tasks done.
func newTask(i int) tracking.Task {
	at := epoch.Add(time.Duration(i) * time.Second)
	task := tracking.Task{
		ID:        tracking.TaskID(fmt.Sprintf("task-%09d", i)),
		Type:      tracking.TypeDrop,
		Status:    tracking.StatusCompleted,
		Outcome:   tracking.OutcomeSucceeded,
		DriverID:  tracking.DriverID(fmt.Sprint("driver-", i%1000)),
		OrderID:   fmt.Sprint("#", i),
		Drop:      &tracking.Place{LngLat: &tracking.LngLat{Lng: 77.5, Lat: 13}, Address: "12 Anna Salai"},
		CreatedAt: at,
		UpdatedAt: at,
	}
	if i%100 == 0 {
		task.Status, task.Outcome = tracking.StatusAssigned, ""
	} else {
		task.CompletedAt = at.Add(time.Hour)
	}
	return task
}

func newEvent(i int) tracking.Event {
	id := fmt.Sprintf("task-%09d", i)
	return tracking.Event{
		ID: "event-" + id, Type: tracking.EventTaskCreated, Time: epoch, RecordedAt: epoch, Actor: "system",
		Subject: tracking.Subject{Kind: tracking.KindTask, ID: id},
	}
}

// shop is a store with n tasks.
func shop(b *testing.B, n int) *memory.Store {
	s := memory.New()
	for i := 0; i < n; i += 1000 {
		var cs tracking.Changeset
		for j := i; j < min(i+1000, n); j++ {
			cs.Tasks = append(cs.Tasks, newTask(j))
		}
		commit(b, s, &cs)
	}
	runtime.GC()
	return s
}

func BenchmarkCreate(b *testing.B) {
	b.Run("task and event", func(b *testing.B) {
		s := memory.New()
		cs := &tracking.Changeset{ // used again, as a Service does
			Tasks: make([]tracking.Task, 1), Events: make([]tracking.Event, 1), Deliver: []string{""},
		}
		for i := 0; b.Loop(); i++ {
			cs.Tasks[0], cs.Events[0] = newTask(i), newEvent(i)
			commit(b, s, cs)
		}
	})
	b.Run("raw: two maps", func(b *testing.B) {
		tasks, events := map[tracking.TaskID]tracking.Task{}, map[string]tracking.Event{}
		for i := 0; b.Loop(); i++ {
			task, event := newTask(i).Clone(), newEvent(i).Clone()
			tasks[task.ID], events[event.ID] = task, event
		}
	})
}

// BenchmarkList reads pages of each list among many rows.
func BenchmarkList(b *testing.B) {
	filters := []struct {
		name string
		f    tracking.TaskFilter
	}{
		{"all", tracking.TaskFilter{}},
		{"driver", tracking.TaskFilter{DriverID: "driver-700"}},
		{"two statuses",
			tracking.TaskFilter{Status: []tracking.TaskStatus{tracking.StatusAssigned, tracking.StatusCompleted}}},
		{"driver and status",
			tracking.TaskFilter{DriverID: "driver-700", Status: []tracking.TaskStatus{tracking.StatusAssigned}}},
		{"order", tracking.TaskFilter{OrderID: "#4711"}},
		{"completed since", tracking.TaskFilter{CompletedSince: epoch.Add(time.Hour)}},
	}
	for _, n := range []int{10_000, 1_000_000} {
		s := sync.OnceValue(func() *memory.Store { return shop(b, n) })
		for _, c := range filters {
			c.f.Page = tracking.Page{Number: 1, Limit: 10}
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				s()
				for b.Loop() {
					if list, _, err := s().Tasks(b.Context(), app, c.f); err != nil || len(list) == 0 {
						b.Fatal(len(list), err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("page 99999999/%d", n), func(b *testing.B) {
			s()
			for b.Loop() {
				if list, _, err := s().Tasks(b.Context(), app, tracking.TaskFilter{
					Page: tracking.Page{Number: 99999999, Limit: 10},
				}); err != nil || len(list) != 0 {
					b.Fatal(len(list), err)
				}
			}
		})
		b.Run(fmt.Sprintf("raw: last 10 of a slice/%d", n), func(b *testing.B) {
			all := make([]tracking.Task, min(n, 10_000))
			for i := range all {
				all[i] = newTask(i)
			}
			var page []tracking.Task
			for b.Loop() {
				page = make([]tracking.Task, 0, 10)
				for i := range 10 {
					page = append(page, all[len(all)-1-i].Clone())
				}
			}
			if len(page) != 10 {
				b.Fatal(len(page))
			}
		})
	}
}

// BenchmarkFix records fixes one by one, of one driver and of many at once, beside what a plain map
// would cost.
func BenchmarkFix(b *testing.B) {
	const drivers = 1000
	fix := func(i int) tracking.Fix {
		return tracking.Fix{
			LngLat:   tracking.LngLat{Lng: 77.5 + float64(i/drivers%1000)*1e-4, Lat: 13 + float64(i%drivers)*1e-4},
			Time:     epoch.Add(time.Duration(i/drivers) * time.Second),
			Accuracy: tracking.Known(5), Speed: tracking.Known(8),
		}
	}
	ids := make([]tracking.DriverID, drivers)
	for i := range ids {
		ids[i] = tracking.DriverID(fmt.Sprint("driver-", i))
	}
	open := func(b *testing.B) *memory.Store {
		s := memory.New()
		var cs tracking.Changeset
		for _, id := range ids {
			cs.Drivers = append(cs.Drivers, tracking.Driver{
				ID: id, Available: true, CreatedAt: epoch, Properties: map[string]string{"zipcode": "600002"},
			})
		}
		commit(b, s, &cs)
		return s
	}
	record := func(b *testing.B, s *memory.Store, i int) {
		if _, err := s.RecordFixes(b.Context(), app,
			tracking.FixBatch{DriverID: ids[i%drivers], SeenAt: epoch, Fixes: []tracking.Fix{fix(i)}}); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("one after another", func(b *testing.B) {
		s := open(b)
		for i := 0; b.Loop(); i++ {
			record(b, s, i)
		}
	})
	b.Run("of all drivers at once", func(b *testing.B) {
		s := open(b)
		var mu sync.Mutex
		next := 0
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				if i%drivers == 0 {
					mu.Lock()
					i, next = next*drivers, next+1
					mu.Unlock()
				}
				record(b, s, i)
			}
		})
	})
	b.Run("raw: append to a map of slices", func(b *testing.B) {
		logs := map[tracking.DriverID][]tracking.Fix{}
		var mu sync.Mutex
		for i := 0; b.Loop(); i++ {
			mu.Lock()
			logs[ids[i%drivers]] = append(logs[ids[i%drivers]], fix(i))
			mu.Unlock()
		}
	})
}

// BenchmarkKept reports what a row takes in memory, with its place in the lists.
func BenchmarkKept(b *testing.B) {
	const each = 500
	for _, c := range []struct {
		name string
		n    int
		put  func(s *memory.Store, from int)
	}{
		{"drivers", 20_000, func(s *memory.Store, from int) {
			var cs tracking.Changeset
			for i := from; i < from+each; i++ {
				id := tracking.DriverID(fmt.Sprintf("driver-%09d", i))
				at := tracking.LngLat{Lng: 77.5 + float64(i%1000)*1e-4, Lat: 13 + float64(i/1000)*1e-4}
				cs.Drivers = append(cs.Drivers, tracking.Driver{ID: id, Available: true, CreatedAt: epoch})
				cs.Fixes = append(cs.Fixes, tracking.FixBatch{
					DriverID: id, SeenAt: epoch, Fixes: []tracking.Fix{{LngLat: at, Time: epoch, Trusted: true}},
				})
			}
			commit(b, s, &cs)
		}},
		{"tasks", 20_000, func(s *memory.Store, from int) {
			var cs tracking.Changeset
			for i := from; i < from+each; i++ {
				cs.Tasks = append(cs.Tasks, newTask(i))
			}
			commit(b, s, &cs)
		}},
		{"fixes", 200_000, func(s *memory.Store, from int) {
			batch := tracking.FixBatch{DriverID: "d", SeenAt: epoch}
			for i := from; i < from+each; i++ {
				batch.Fixes = append(batch.Fixes, tracking.Fix{
					LngLat: tracking.LngLat{Lng: 77.5, Lat: 13}, Time: epoch.Add(time.Duration(i) * time.Second),
					Accuracy: tracking.Known(5),
				})
			}
			if _, err := s.RecordFixes(b.Context(), app, batch); err != nil {
				b.Fatal(err)
			}
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var before, after runtime.MemStats
			for b.Loop() {
				s := memory.New()
				commit(b, s, &tracking.Changeset{Drivers: []tracking.Driver{{ID: "d", Available: true, CreatedAt: epoch}}})
				runtime.GC()
				runtime.ReadMemStats(&before)
				for i := 0; i < c.n; i += each {
					c.put(s, i)
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				s.Close()
			}
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(c.n), "B/row")
		})
	}
}

func BenchmarkAssign(b *testing.B) {
	storetest.BenchmarkAssign(b, func(testing.TB) tracking.Store { return memory.New() })
}

func BenchmarkDue(b *testing.B) {
	storetest.BenchmarkDue(b, func(testing.TB) tracking.Store { return memory.New() })
}

func BenchmarkLate(b *testing.B) {
	storetest.BenchmarkLate(b, func(testing.TB) tracking.Store { return memory.New() })
}

// BenchmarkImport commits that many drivers with a fix each at once.
func BenchmarkImport(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var cs tracking.Changeset
			for i := range n {
				id := tracking.DriverID(fmt.Sprint("driver-", i))
				cs.Drivers = append(cs.Drivers, tracking.Driver{ID: id, CreatedAt: epoch, UpdatedAt: epoch})
				cs.Fixes = append(cs.Fixes, tracking.FixBatch{
					DriverID: id, SeenAt: epoch, Fixes: []tracking.Fix{{LngLat: tracking.LngLat{Lng: 80}, Time: epoch}},
				})
			}
			for b.Loop() {
				commit(b, memory.New(), &cs)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/driver")
		})
	}
}
