package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
	"github.com/seed-8aba7b13/tracking/store/storetest"
)

// inProcess runs a test of this binary in a process of its own, with what it is to know.
func inProcess(t *testing.T, name, url, who string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^"+name+"$")
	cmd.Env = append(os.Environ(), "PROCESS_URL="+url, "PROCESS_NAME="+who)
	return cmd
}

// inThree runs the test in three processes more, a, b and c, and returns the sum of what each prints
// after a word.
func inThree(t *testing.T, url, word string) (sum int) {
	t.Helper()
	var processes []*exec.Cmd
	for _, who := range []string{"a", "b", "c"} {
		cmd := inProcess(t, t.Name(), url, who)
		cmd.Stdout, cmd.Stderr = new(bytes.Buffer), os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, cmd)
	}
	for _, cmd := range processes {
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v: %s", err, cmd.Stdout)
		}
		_, after, _ := strings.Cut(cmd.Stdout.(*bytes.Buffer).String(), word+" ")
		n := 0
		if _, err := fmt.Sscan(after, &n); err != nil {
			t.Fatalf("%v: %s", err, cmd.Stdout)
		}
		sum += n
	}
	return sum
}

// counting counts the Commits that were refused since somebody else was faster.
type counting struct {
	*postgres.Store
	lost atomic.Int64
}

func (c *counting) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	w, err := c.Store.Commit(ctx, app, cs)
	if errors.Is(err, tracking.ErrConflict) {
		c.lost.Add(1)
	}
	return w, err
}

// Three processes give 150 tasks to 100 drivers: nobody has two, and as many wait as must.
func TestAssignInThreeProcesses(t *testing.T) {
	t.Parallel()
	const drivers, tasks = 100, 150
	if url := os.Getenv("PROCESS_URL"); url != "" {
		assignTasks(t, url, os.Getenv("PROCESS_NAME"), tasks/3)
		return
	}
	url := template.Database(t)
	s := open(t, url, nil)
	defer s.Close()
	svc, err := tracking.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range drivers {
		_, err := svc.SaveDriver(t.Context(), tracking.DriverUpdate{
			ID: tracking.DriverID(fmt.Sprintf("driver-%d", i)), Available: new(true),
			LngLat: &tracking.LngLat{Lng: 80.2 + float64(i%10)/100, Lat: 13 + float64(i/10)/100},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	lost := inThree(t, url, "lost")
	list, _, err := svc.Tasks(t.Context(), tracking.TaskFilter{Page: tracking.Page{Limit: 1000}})
	if err != nil {
		t.Fatal(err)
	}
	had := map[tracking.DriverID]tracking.TaskID{}
	for _, task := range list {
		if task.Status != tracking.StatusAssigned {
			continue
		}
		if other, twice := had[task.DriverID]; twice {
			t.Errorf("%s has %s and %s", task.DriverID, other, task.ID)
		}
		had[task.DriverID] = task.ID
	}
	if len(list) != tasks || len(had) != drivers {
		t.Errorf("of %d tasks %d are assigned; want %d of %d", len(list), len(had), drivers, tasks)
	}
	if err := storetest.Invariants(t.Context(), s, 1, app); err != nil {
		t.Error(err)
	}
	t.Logf("%d races were lost", lost)
}

// assignTasks makes tasks, from ten goroutines.
func assignTasks(t *testing.T, url, who string, n int) {
	s := &counting{Store: open(t, url, nil)}
	defer s.Close()
	svc, err := tracking.New(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { fmt.Println("lost", s.lost.Load()) }()
	spread(10, n, func(int) {
		_, err := svc.CreateTask(t.Context(), tracking.NewTask{
			Type: tracking.TypeDrop, AutoAssign: true,
			Drop: &tracking.Place{LngLat: &tracking.LngLat{Lng: 80.25, Lat: 13.05}, Address: who},
		})
		if err != nil {
			t.Error(err)
		}
	})
	for range 2 * n { // who waits in line behind others is served by these calls
		n, err := svc.AssignWaiting(t.Context())
		switch {
		case errors.Is(err, context.DeadlineExceeded): // of one that others were faster with for too long
		case err != nil:
			t.Error(err)
			return
		case n == 0:
			return
		}
	}
}

// Three processes do random things with tasks, and with drivers who are deleted and whose ids are used
// again: the books balance.
func TestTurnoverInThreeProcesses(t *testing.T) {
	t.Parallel()
	tasks := endured(60, 3200) // the third part of them all; to make one takes six or seven other verbs
	if url := os.Getenv("PROCESS_URL"); url != "" {
		s := &counting{Store: open(t, url, callersClock)}
		defer s.Close()
		verbs := storetest.PlayTurnover(t, s, uint64(os.Getenv("PROCESS_NAME")[0]), tasks)
		fmt.Printf("verbs %d; lost %d\n", verbs, s.lost.Load())
		return
	}
	url := template.Database(t)
	verbs := inThree(t, url, "verbs")
	s := open(t, url, callersClock)
	defer s.Close()
	storetest.CheckTurnover(t, s)
	t.Logf("%d verbs", verbs)
}
