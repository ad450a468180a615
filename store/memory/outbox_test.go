package memory_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

const backlog = 50_000

// full is a store with a backlog of an application that has no room, and how to ask for what others
// have.
func full(t testing.TB) (*memory.Store, tracking.Lease) {
	t.Helper()
	s := memory.New()
	for i := 0; i < backlog; i += 1000 {
		cs := &tracking.Changeset{Deliver: []string{""}}
		for j := range 1000 {
			cs.Events = append(cs.Events, newEvent(i+j))
		}
		if _, err := s.Commit(t.Context(), "full", cs); err != nil {
			t.Fatal(err)
		}
	}
	return s, tracking.Lease{
		Owner: "w", Now: epoch, For: time.Minute, Each: 32, Busy: map[tracking.AppID]int{"full": 32},
		Limit: 100,
	}
}

// TestLookBesideFullApplication counts what a look at the outbox compares while an application
// without room has a backlog.
func TestLookBesideFullApplication(t *testing.T) {
	s, l := full(t)
	defer s.Close()
	compared := s.CountLooks("")
	lease := func(want int) {
		t.Helper()
		got, err := s.LeaseEvents(t.Context(), l)
		if err != nil || len(got) != want {
			t.Fatalf("leased %d events, error %v; want %d", len(got), err, want)
		}
	}
	lease(0)
	if _, err := s.Commit(t.Context(), "other",
		&tracking.Changeset{Events: []tracking.Event{newEvent(0)}, Deliver: []string{""}}); err != nil {
		t.Fatal(err)
	}
	lease(1)
	lease(0)
	if *compared > 10 {
		t.Errorf("three looks compared %d times, beside a backlog of %d", *compared, backlog)
	}
}

func BenchmarkLookBesideFullApplication(b *testing.B) {
	s, l := full(b)
	defer s.Close()
	for b.Loop() {
		if got, err := s.LeaseEvents(b.Context(), l); err != nil || got != nil {
			b.Fatal(got, err)
		}
	}
}

// BenchmarkCommitsOfApplications commits tasks with their events and links in as many applications
// at once.
func BenchmarkCommitsOfApplications(b *testing.B) {
	for _, apps := range []int{1, 2, 16} {
		b.Run(fmt.Sprint(apps), func(b *testing.B) {
			s := memory.New()
			defer s.Close()
			var wg sync.WaitGroup
			for a := range apps {
				wg.Go(func() {
					app := tracking.AppID(fmt.Sprint("app-", a))
					for i := a; i < b.N; i += apps {
						task := newTask(i)
						task.Link.Hash = tracking.Hash{byte(i), byte(i >> 8), byte(i >> 16), byte(i >> 24), 1}
						if _, err := s.Commit(b.Context(), app, &tracking.Changeset{
							Tasks: []tracking.Task{task}, Events: []tracking.Event{newEvent(i)}, Deliver: []string{""},
						}); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
		})
	}
}

// TestCommitsOfApplicationsAreIndependent commits, delivers and looks links up in one application
// while a commit of another is under way.
func TestCommitsOfApplicationsAreIndependent(t *testing.T) {
	s := memory.New()
	defer s.Close()
	make := func(i int) *tracking.Changeset {
		task := newTask(i)
		task.Link.Hash = tracking.Hash{byte(i)}
		return &tracking.Changeset{
			Tasks: []tracking.Task{task}, Events: []tracking.Event{newEvent(i)}, Deliver: []string{""},
			Drivers: []tracking.Driver{{
				ID: tracking.DriverID(fmt.Sprint(i)), AppToken: tracking.Hash{byte(i)},
				IngestToken: tracking.Hash{byte(i)}, CreatedAt: epoch,
			}},
		}
	}
	commit(t, s, make(1))
	end := s.HoldCommit(app, "")
	defer end()
	for i := 2; i < 10; i++ { // with hashes in the same parts, too
		if _, err := s.Commit(t.Context(), "other", make(i)); err != nil {
			t.Fatal(err)
		}
		if a, _, err := s.TaskByLink(t.Context(), tracking.Hash{byte(i)}); err != nil || a != "other" {
			t.Fatal(a, err)
		}
	}
}
