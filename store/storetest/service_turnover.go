package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// turnoverChecks let drivers come and go while many work with them.
func turnoverChecks() []check {
	return []check{
		{"random verbs while drivers are deleted and their ids used again", verbsWhileDriversTurnOver},
	}
}

func verbsWhileDriversTurnOver(t testing.TB, s tracking.Store) {
	tasks := briefly(600)
	if long() {
		tasks = 20_000
	}
	RunTurnover(t, s, tasks)
}

// RunTurnover makes so many tasks by two Services, as in two processes, and has 12 goroutines do
// random things with them, also delete them and erase their customers, and with a few drivers who are
// deleted and made again. Then the books must balance.
func RunTurnover(t testing.TB, s tracking.Store, tasks int) {
	PlayTurnover(t, s, 7, tasks)
	CheckTurnover(t, s)
}

const turnoverIDs, turnoverMaxOpen = 8, 2

// PlayTurnover is what RunTurnover does before it looks at the books, and returns how many things it
// did: for several processes on one store, each with a seed of its own.
func PlayTurnover(t testing.TB, s tracking.Store, seed uint64, tasks int) (verbs int64) {
	const workers, ids = 12, turnoverIDs
	svcs := several(t, s, 2, tracking.Options{MaxOpenTasks: turnoverMaxOpen})
	var done atomic.Int64
	var mu sync.Mutex
	var made []tracking.TaskID
	some := func(ctx context.Context, r *rand.Rand) (tracking.TaskID, error) { // mostly one of the newest
		if r.IntN(8) == 0 { // whoever has made it
			list, _, err := s.Tasks(ctx, here, tracking.TaskFilter{Page: tracking.Page{Number: 1, Limit: 20}})
			if err != nil || len(list) == 0 {
				return "", err
			}
			return list[r.IntN(len(list))].ID, nil
		}
		mu.Lock()
		defer mu.Unlock()
		if len(made) == 0 {
			return "", nil
		}
		return made[max(len(made)-1-r.IntN(40), 0)], nil
	}
	err := together(t, workers, func(ctx context.Context, i int) error {
		r, svc := rand.New(rand.NewPCG(seed, uint64(i))), svcs[i%2]
		for left := (tasks + workers - 1) / workers; left > 0; {
			d := tracking.DriverID(fmt.Sprint("d", r.IntN(ids)))
			id, err := some(ctx, r)
			if err != nil {
				return err
			}
			verb := r.IntN(23)
			mobile := fmt.Sprint("+49 89 ", 1000+r.IntN(tasks/3+1))
			if id == "" {
				verb = 0
			}
			done.Add(1)
			step := tracking.Step{LngLat: &tracking.LngLat{Lng: 11 + 0.0001*float64(r.IntN(50)), Lat: 48}}
			switch verb {
			case 0, 1, 2:
				var task tracking.Task
				n := dropHere(r.IntN(3) > 0)
				n.Drop.Customer, n.Notes = &tracking.Contact{Name: "Ana", Mobile: mobile}, "ring twice"
				switch r.IntN(4) {
				case 0:
					n.Promised = at(-time.Hour) // it is late, and to be told
				case 1:
					n.Window.From, n.Promised = at(time.Hour), at(time.Hour) // its time has just come
				case 2:
					n.Window.From = at(3 * time.Hour) // it waits for its time
				}
				if r.IntN(3) == 0 {
					n.Requires = map[string]string{"van": fmt.Sprint(r.IntN(3))} // 2: nobody
				}
				if task, err = svc.CreateTask(ctx, n); err == nil {
					left--
					mu.Lock()
					made = append(made, task.ID)
					mu.Unlock()
				}
			case 3:
				yes := r.IntN(5) > 0
				most := []int{tracking.AsOptions, tracking.NoLimit, 0, 4}[int(d[1]-'0')%4]
				_, err = svc.SaveDriver(ctx, tracking.DriverUpdate{
					ID: d, Available: &yes, LngLat: step.LngLat, MaxOpenTasks: &most,
					Properties: map[string]string{"van": fmt.Sprint(int(d[1]) % 2)},
				})
			case 4:
				_, err = svc.AssignTask(ctx, id, d)
			case 5:
				_, err = svc.UnassignTask(ctx, id)
			case 6, 7, 8, 9, 16:
				var task tracking.Task
				if task, err = svc.Task(ctx, id); err != nil || task.DriverID == "" {
					break
				}
				switch verb {
				case 6:
					_, _, err = svc.StartTask(ctx, task.DriverID, id, step)
				case 7:
					_, err = svc.FinishTask(ctx, task.DriverID, id, tracking.Completion{}, step)
				case 8:
					_, err = svc.DeclineTask(ctx, task.DriverID, id, tracking.Reason{}, step)
				case 9:
					_, err = svc.CompleteTask(ctx, id, tracking.Completion{})
				case 16:
					_, _, err = svc.UndoTask(ctx, task.DriverID, id, "", step)
				}
			case 10:
				err = svc.DeleteDriver(ctx, d)
			case 11:
				err = svc.ForceDeleteDriver(ctx, d)
			case 12:
				_, err = svc.RecordFixes(ctx, d, nil)
			case 13:
				switch r.IntN(20) {
				case 0:
					_, err = svc.AssignWaiting(ctx)
				case 1:
					_, err = svc.MarkDueTasks(ctx)
				default:
					_, err = svc.CancelTask(ctx, id, tracking.Reason{})
				}
			case 14:
				_, err = svc.RetryTask(ctx, id, tracking.Retry{})
			case 15:
				var link string
				if link, err = svc.TaskLink(ctx, id); err == nil {
					err = svc.NoteFromCustomer(ctx, link, fmt.Sprint("note ", r.IntN(100)))
				}
			case 17:
				_, err = svc.ReopenTask(ctx, id)
			case 18:
				_, err = svc.ForceAssignTask(ctx, id, d)
			case 19:
				to := tracking.DriverID(fmt.Sprint("d", r.IntN(ids)))
				if to == d || r.IntN(4) > 0 { // or hardly anybody has a task to start
					continue
				}
				_, err = svc.HandOver(ctx, tracking.HandOverRequest{From: d, To: to, Force: r.IntN(2) == 0})
			case 20:
				err = svc.DeleteTask(ctx, id)
			case 21:
				_, err = svc.EraseContact(ctx, mobile)
			case 22:
				var task tracking.Task
				if task, err = svc.Task(ctx, id); err == nil && task.Drop.Customer != nil {
					_, err = svc.EraseContact(ctx, task.Drop.Customer.Mobile)
				}
			}
			if errors.Is(err, tracking.ErrInternal) || errors.Is(err, tracking.ErrUnavailable) ||
				errors.Is(err, tracking.ErrInvalid) {
				return fmt.Errorf("verb %d: %w", verb, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return done.Load()
}

// CheckTurnover looks at the books after those who played have ended, and deletes all drivers.
func CheckTurnover(t testing.TB, s tracking.Store) {
	svc := several(t, s, 1, tracking.Options{MaxOpenTasks: turnoverMaxOpen})[0]
	if err := InvariantsAfterDeletions(t.Context(), s, turnoverMaxOpen, here); err != nil {
		t.Error(err)
	}
	c := use(t, s, here)
	for n := range turnoverIDs { // and everybody can be deleted
		id := tracking.DriverID(fmt.Sprint("d", n))
		d, err := s.Driver(c.ctx, here, id)
		if errors.Is(err, tracking.ErrNotFound) {
			continue
		}
		c.ok(err)
		list, _ := c.tasks(tracking.TaskFilter{
			DriverID: id, Status: []tracking.TaskStatus{tracking.StatusAssigned, tracking.StatusInProgress},
		})
		same(t, "open_tasks of "+string(id), d.OpenTasks(), len(list))
		c.ok(svc.ForceDeleteDriver(c.ctx, id))
	}
	open, _ := c.tasks(tracking.TaskFilter{Status: []tracking.TaskStatus{
		tracking.StatusAssigned, tracking.StatusInProgress,
	}})
	same(t, "open tasks when everybody is gone", len(open), 0)
}
