package sqlite_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// BenchmarkFind reads a page of each kind from a file of 100,000 tasks, with TRACKING_LONG=1 of a
// million: the first one is what the others are measured by. Of a million none takes 10 times as long:
// the dearest, a rare word, 7 times (2.0 ms), common words 3 times.
func BenchmarkFind(b *testing.B) {
	n := 100_000
	if os.Getenv("TRACKING_LONG") == "1" {
		n = 1_000_000
	}
	s := open(b, filepath.Join(b.TempDir(), "tracking.db"), nil)
	defer closeStore(b, s)
	began := time.Now()
	for i := 0; i < n; i += 1000 {
		cs := &tracking.Changeset{}
		for k := i; k < i+1000; k++ {
			cs.Tasks = append(cs.Tasks, findableTask(k, n))
		}
		if _, err := s.Commit(b.Context(), app, cs); err != nil {
			b.Fatal(err)
		}
	}
	b.Logf("%d tasks in %v", n, time.Since(began))
	page := tracking.Page{Limit: 10}
	now := start.Add(time.Duration(n) * time.Minute)
	mark := tracking.TaskMark{
		Sort: tracking.SortCreated, CreatedAt: start.Add(time.Duration(n/2) * time.Minute), Seq: 1,
	}
	for _, c := range []struct {
		name string
		f    tracking.TaskFilter
	}{
		{"driver", tracking.TaskFilter{DriverID: "d7"}},
		{"common word", tracking.TaskFilter{Query: "strasse"}},
		{"two letters", tracking.TaskFilter{Query: "st"}},
		{"common words", tracking.TaskFilter{Query: "anna strasse 12"}},
		{"rare word", tracking.TaskFilter{Query: fmt.Sprint("ORD-", n/3)}},
		{"number", tracking.TaskFilter{Query: fmt.Sprintf("%07d", n/3)}},
		{"three digits", tracking.TaskFilter{Query: "123"}},
		{"nothing", tracking.TaskFilter{Query: "xyzzy"}},
		{"word behind a mark", tracking.TaskFilter{Query: "strasse", After: &mark}},
		{"property", tracking.TaskFilter{Properties: map[string]string{"zone": "3"}}},
		{"late", tracking.TaskFilter{Late: true, Now: now}},
		{"waiting", tracking.TaskFilter{Waiting: true}},
		{"created before", tracking.TaskFilter{CreatedTo: mark.CreatedAt}},
		{"window", tracking.TaskFilter{Sort: tracking.SortWindow, WindowFrom: mark.CreatedAt}},
		{"created by window", tracking.TaskFilter{
			Sort: tracking.SortWindow, Status: []tracking.TaskStatus{tracking.StatusCreated},
		}},
	} {
		c.f.Page = page
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				list, _, err := s.Tasks(b.Context(), app, c.f)
				if err != nil || len(list) == 0 && c.name != "nothing" {
					b.Fatalf("%d tasks, error %v", len(list), err)
				}
			}
		})
	}
	b.Run("counts", func(b *testing.B) {
		for b.Loop() {
			q := tracking.CountQuery{Now: now, CompletedSince: now.Add(-24 * time.Hour)}
			if n, err := s.TaskCounts(b.Context(), app, q); err != nil || n.Late == 0 {
				b.Fatalf("%+v, error %v", n, err)
			}
		}
	})
	stats := func(b *testing.B) {
		for b.Loop() {
			if n, err := s.Stats(b.Context(), now); err != nil || n.Late == 0 {
				b.Fatalf("%+v, error %v", n, err)
			}
		}
	}
	b.Run("stats", stats)
	for i := 0; i < n/10; i += 1000 { // the receiver is down since long
		cs := &tracking.Changeset{Deliver: []string{""}}
		for k := range 1000 {
			id := fmt.Sprint(i + k)
			cs.Events = append(cs.Events, tracking.Event{
				ID: id, Type: tracking.EventTaskNoted, RecordedAt: start,
				Subject: tracking.Subject{Kind: tracking.KindTask, ID: "t" + id},
			})
		}
		if _, err := s.Commit(b.Context(), app, cs); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("stats where a tenth as many events are undelivered", stats)
}

// findableTask is one of n as a company has them: all but the last 500 are completed.
func findableTask(i, n int) tracking.Task {
	at := start.Add(time.Duration(i) * time.Minute)
	t := tracking.Task{
		ID: tracking.TaskID(fmt.Sprint("t", i)), Type: tracking.TypeDrop, Status: tracking.StatusCompleted,
		Outcome: tracking.OutcomeSucceeded, OrderID: fmt.Sprint("ORD-", i),
		DriverID: tracking.DriverID(fmt.Sprint("d", i%50)),
		Drop: &tracking.Place{
			LngLat: &tracking.LngLat{Lng: 11, Lat: 48},
			Address: fmt.Sprintf("%sstraße %d, %05d München", []string{"Haupt ", "Leopold", "Goethe"}[i%3],
				i*7919%200, 80000+i%700),
			Customer: &tracking.Contact{
				Name:   []string{"Anna", "Bilal", "Chloé", "Dörte"}[i%4] + fmt.Sprint(" Familie", i*31%5000),
				Mobile: fmt.Sprintf("+49 89 %07d", i),
			},
		},
		Properties: map[string]string{"zone": fmt.Sprint(i % 10)},
		Window:     tracking.Window{From: at, To: at.Add(time.Hour)},
		Time:       at, CreatedAt: at, UpdatedAt: at, CompletedAt: at.Add(time.Hour),
	}
	if i >= n-500 {
		t.Status, t.Outcome, t.CompletedAt = tracking.StatusCreated, "", time.Time{}
		t.Waiting = i%2 == 0
		if i%3 == 0 {
			t.Status = tracking.StatusAssigned
		}
	}
	return t
}
