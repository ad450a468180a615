package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/seed-8aba7b13/tracking"
)

// several makes Services of their own over one store, as in several processes: what one of them locks does not bind the others.
func several(t testing.TB, s tracking.Store, n int, opts tracking.Options) []*tracking.Service {
	c := &clock{at: t0}
	opts.Now = c.now
	var list []*tracking.Service
	for range n {
		list = append(list, service(t, s, opts).ForApp(here))
	}
	return list
}

// standBy makes drivers who are available at one place.
func standBy(t testing.TB, svc *tracking.Service, n int) []tracking.DriverID {
	t.Helper()
	yes := true
	var ids []tracking.DriverID
	for i := range n {
		id := tracking.DriverID(fmt.Sprintf("driver %03d", i))
		if _, err := svc.SaveDriver(t.Context(), tracking.SaveDriver{ID: id, Available: &yes, LngLat: &tracking.LngLat{Lng: 11 + float64(i)*0.0001, Lat: 48}}); err != nil {
			t.Fatalf("SaveDriver: %v", err)
		}
		ids = append(ids, id)
	}
	return ids
}

func dropHere(auto bool) tracking.NewTask {
	return tracking.NewTask{Type: tracking.Drop, Drop: &tracking.Place{LngLat: &tracking.LngLat{Lng: 11, Lat: 48}}, AutoAssign: auto}
}

// crowdChecks let many want the same.
func crowdChecks() []check {
	return []check{
		{"50 assign one task to 50 drivers", func(t testing.TB, s tracking.Store) {
			svcs := several(t, s, 2, tracking.Options{})
			drivers := standBy(t, svcs[0], 50)
			task, err := svcs[0].CreateTask(t.Context(), dropHere(false))
			if err != nil {
				t.Fatal(err)
			}
			err = together(t, len(drivers), func(ctx context.Context, i int) error {
				_, err := svcs[i%2].AssignTask(ctx, task.ID, drivers[i])
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := Invariants(t.Context(), s, 1, here); err != nil {
				t.Fatal(err)
			}
			task, err = svcs[0].Task(t.Context(), task.ID)
			if err != nil || task.Status != tracking.StatusAssigned {
				t.Fatalf("the task is %s, error %v", task.Status, err)
			}
			for _, id := range drivers {
				list, _, err := s.Notices(t.Context(), here, id, 0, math.MaxInt32)
				if err != nil {
					t.Fatal(err)
				}
				want := []tracking.NoticeKind{tracking.NoticeAssigned, tracking.NoticeUnassigned}
				if id == task.DriverID {
					want = want[:1]
				}
				same(t, fmt.Sprintf("what %s was told", id), each(list, func(n tracking.Notice) tracking.NoticeKind { return n.Kind }), want)
			}
		}},
		{"150 tasks at once for 100 drivers who take one each", func(t testing.TB, s tracking.Store) {
			svcs := several(t, s, 2, tracking.Options{MaxOpenTasks: 1})
			standBy(t, svcs[0], 100)
			err := together(t, 150, func(ctx context.Context, i int) error {
				_, err := svcs[i%2].CreateTask(ctx, dropHere(true))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := svcs[0].AssignWaiting(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := Invariants(t.Context(), s, 1, here); err != nil {
				t.Fatal(err)
			}
			c := use(t, s, here)
			assigned, _ := c.tasks(tracking.TaskFilter{Status: []tracking.TaskStatus{tracking.StatusAssigned}})
			waiting, err := s.Waiting(c.ctx, here, tracking.Cursor{}, 1000)
			c.ok(err)
			busy := map[tracking.DriverID]bool{}
			for _, task := range assigned {
				busy[task.DriverID] = true
			}
			events, _ := c.events(tracking.EventFilter{})
			told := 0
			for _, e := range events {
				if e.Type == tracking.TaskAssigned {
					told++
				}
			}
			same(t, "assigned, their drivers, events of it, waiting", []int{len(assigned), len(busy), told, len(waiting)}, []int{100, 100, 100, 50})
		}},
	}
}

// linearChecks ask whether what clients saw at once could have come about one after the other.
func linearChecks() []check {
	rounds := 12
	if long() {
		rounds *= 20
	}
	return []check{
		{"assign, unassign, complete and cancel are linearizable", func(t testing.TB, s tracking.Store) {
			if n, err := racedTask(t, s, rounds); n >= 0 || err != nil {
				t.Fatalf("round %d: no order of these calls explains their answers (error %v)", n, err)
			}
		}},
		{"a new invite is not undone by who joins by the older one", func(t testing.TB, s tracking.Store) {
			between := &interleaved{Store: s}
			svcs := []*tracking.Service{service(t, between, tracking.Options{}).ForApp(here), service(t, s, tracking.Options{}).ForApp(here)}
			standBy(t, svcs[1], 1)
			older, err := svcs[1].InviteDriver(t.Context(), tracking.NewInvite{DriverID: "driver 000"})
			if err != nil {
				t.Fatal(err)
			}
			var newer tracking.Invitation
			between.first = func() { // the older invite has been read, and is about to be noted as used
				if newer, err = svcs[1].InviteDriver(t.Context(), tracking.NewInvite{DriverID: "driver 000"}); err != nil {
					t.Errorf("InviteDriver: %v", err)
				}
			}
			if _, err := svcs[0].Join(t.Context(), tracking.Join{Token: older.Token}); !errors.Is(err, tracking.ErrNotFound) {
				t.Errorf("Join by the older invite, after the newer one was made: got error %v, want ErrNotFound", err)
			}
			if _, err := svcs[0].Join(t.Context(), tracking.Join{Token: newer.Token}); err != nil {
				t.Errorf("Join by the newer invite: %v", err)
			}
		}},
		{"invite and join are linearizable", func(t testing.TB, s tracking.Store) {
			svcs := several(t, s, clients, tracking.Options{})
			standBy(t, svcs[0], 1)
			for n := range rounds {
				r := &recorder{}
				first, err := svcs[0].InviteDriver(t.Context(), tracking.NewInvite{DriverID: "driver 000"})
				if err != nil {
					t.Fatal(err)
				}
				err = together(t, clients, func(ctx context.Context, i int) error {
					token := first.Token
					for k := range 3 {
						if (i+k+n)%5 == 4 { // a new one, which this client joins next
							err := r.do(i, joinInput{}, func() (any, error) {
								made, err := svcs[i].InviteDriver(ctx, tracking.NewInvite{DriverID: "driver 000"})
								token = made.Token
								return joinOutput{made.Token, err == nil}, err
							})
							if err != nil {
								return err
							}
							continue
						}
						err := r.do(i, joinInput{token}, func() (any, error) {
							_, err := svcs[i].Join(ctx, tracking.Join{Token: token})
							ok := err == nil
							if errors.Is(err, tracking.ErrNotFound) {
								err = nil
							}
							return joinOutput{token, ok}, err
						})
						if err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				if !r.linearizable(joinModel(first.Token)) {
					t.Fatalf("round %d: no order of these calls explains their answers: %+v", n, r.history)
				}
			}
		}},
	}
}

// interleaved is a store that lets something else happen just before its first commit.
type interleaved struct {
	tracking.Store
	first func()
}

func (s *interleaved) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) error {
	if f := s.first; f != nil {
		s.first = nil
		f()
	}
	return s.Store.Commit(ctx, app, cs)
}

// clients is how many take part in a history; more would take the checker long.
const clients = 8

// recorder is what clients saw, with a clock that only counts.
type recorder struct {
	tick    atomic.Int64
	history [clients][]porcupine.Operation
}

func (r *recorder) do(client int, input any, call func() (any, error)) error {
	op := porcupine.Operation{ClientId: client, Input: input, Call: r.tick.Add(1)}
	output, err := call()
	op.Output, op.Return = output, r.tick.Add(1)
	r.history[client] = append(r.history[client], op)
	return err
}

func (r *recorder) linearizable(m porcupine.Model) bool {
	var all []porcupine.Operation
	for _, ops := range r.history {
		all = append(all, ops...)
	}
	return porcupine.CheckOperations(m, all)
}

type joinInput struct{ token string } // "": make a new invite

type joinOutput struct {
	token string
	ok    bool
}

type joinState struct {
	token string
	used  bool
}

// joinModel is one driver's invite: the newest can be joined once, any other cannot.
func joinModel(token string) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return joinState{token: token} },
		Step: func(state, input, output any) (bool, any) {
			s, in, out := state.(joinState), input.(joinInput), output.(joinOutput)
			if in.token == "" {
				return out.ok, joinState{token: out.token}
			}
			can := s.token == in.token && !s.used
			s.used = s.used || can
			return out.ok == can, s
		},
	}
}

type taskInput struct {
	verb   string
	driver tracking.DriverID
}

// taskOutput is what a client was told: that the state forbids it, or the task as it is then.
type taskOutput struct {
	refused bool
	state   linearTask
}

type linearTask struct {
	status  tracking.TaskStatus
	driver  tracking.DriverID
	outcome tracking.Outcome
}

// taskModel is the table of contract 3, for a task that nobody starts.
func taskModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return linearTask{status: tracking.StatusCreated} },
		Step: func(state, input, output any) (bool, any) {
			s, in, out := state.(linearTask), input.(taskInput), output.(taskOutput)
			next, refused := s, s.status == tracking.StatusCompleted
			end := func(o tracking.Outcome) {
				refused = refused && s.outcome != o
				next.status, next.outcome = tracking.StatusCompleted, o
			}
			switch in.verb {
			case "read":
				refused = false
			case "assign":
				next = linearTask{status: tracking.StatusAssigned, driver: in.driver}
			case "unassign":
				next = linearTask{status: tracking.StatusCreated}
			case "cancel":
				end(tracking.Cancelled)
			case "complete":
				end(tracking.Succeeded)
			}
			if refused {
				return out.refused, s
			}
			return !out.refused && out.state == next, next
		},
	}
}

// racedTask lets clients, each with a Service of its own, race for a task in each round. It returns the first round whose answers no order
// of the calls explains, −1 if there is none.
func racedTask(t testing.TB, s tracking.Store, rounds int) (int, error) {
	svcs := several(t, s, clients, tracking.Options{})
	drivers := standBy(t, svcs[0], clients)
	for n := range rounds {
		task, err := svcs[0].CreateTask(t.Context(), dropHere(false))
		if err != nil {
			return n, err
		}
		r := &recorder{}
		err = together(t, clients, func(ctx context.Context, i int) error {
			svc := svcs[i]
			for k := range 4 {
				in := taskInput{verb: []string{"assign", "read", "assign", "unassign", "assign", "complete", "cancel"}[(i*3+k*2+n)%7], driver: drivers[(i+k)%clients]}
				if k == 0 && in.verb != "read" { // else the task ends too soon
					in.verb = "assign"
				}
				err := r.do(i, in, func() (any, error) {
					var got tracking.Task
					var err error
					switch in.verb {
					case "read":
						got, err = svc.Task(ctx, task.ID)
					case "assign":
						got, err = svc.AssignTask(ctx, task.ID, in.driver)
					case "unassign":
						got, err = svc.UnassignTask(ctx, task.ID)
					case "cancel":
						got, err = svc.CancelTask(ctx, task.ID, "")
					case "complete":
						got, err = svc.CompleteTask(ctx, task.ID, tracking.Completion{})
					}
					out := taskOutput{errors.Is(err, tracking.ErrConflict), linearTask{got.Status, got.DriverID, got.Outcome}}
					if out.refused {
						err = nil
					}
					return out, err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return n, err
		}
		if !r.linearizable(taskModel()) {
			return n, nil
		}
	}
	return -1, nil
}
