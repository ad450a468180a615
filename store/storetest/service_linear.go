package storetest

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/seed-8aba7b13/tracking"
)

// linearChecks ask whether what clients saw at once could have come about one after the other.
func linearChecks() []check {
	return []check{
		{"what is done to a task is linearizable", taskVerbsAreLinearizable},
		{"a new invite is not undone by who joins by the older one", newInviteOutlivesAnOlderJoin},
		{"invite and join are linearizable", joiningIsLinearizable},
	}
}

func taskVerbsAreLinearizable(t testing.TB, s tracking.Store) {
	if n, err := racedTask(t, s, linearRounds()); n >= 0 || err != nil {
		t.Fatalf("round %d: no order of these calls explains their answers (error %v)", n, err)
	}
}

func newInviteOutlivesAnOlderJoin(t testing.TB, s tracking.Store) {
	between := &interleaved{Store: s}
	svcs := []*tracking.Service{
		service(t, between, tracking.Options{}).ForApp(here), service(t, s, tracking.Options{}).ForApp(here),
	}
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
	if _, err := svcs[0].Join(t.Context(), tracking.JoinRequest{Token: older.Token}); !errors.Is(err,
		tracking.ErrNotFound) {
		t.Errorf("Join by the older invite, after the newer one was made: got error %v, want ErrNotFound", err)
	}
	if _, err := svcs[0].Join(t.Context(), tracking.JoinRequest{Token: newer.Token}); err != nil {
		t.Errorf("Join by the newer invite: %v", err)
	}
}

// joiningIsLinearizable has clients invite and join at once, and looks for an order that explains
// what each was told.
func joiningIsLinearizable(t testing.TB, s tracking.Store) {
	svcs := several(t, s, clients, tracking.Options{})
	standBy(t, svcs[0], 1)
	for n := range linearRounds() {
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
					_, err := svcs[i].Join(ctx, tracking.JoinRequest{Token: token})
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
}

// linearRounds is how often clients race.
func linearRounds() int {
	if long() {
		return 240
	}
	return 12
}

// racedTask lets clients, each with a Service of its own, race for a task in each round. It returns
// the first round whose answers no order of the calls explains, −1 if there is none.
func racedTask(t testing.TB, s tracking.Store, rounds int) (int, error) {
	svcs := several(t, s, clients, tracking.Options{})
	drivers := standBy(t, svcs[0], 3)
	for n := range rounds {
		task, err := svcs[0].CreateTask(t.Context(), dropHere(false))
		if err != nil {
			return n, err
		}
		r := &recorder{}
		err = together(t, clients, func(ctx context.Context, i int) error {
			svc := svcs[i]
			for k := range 4 {
				in := taskInput{
					verb:   linearVerbs[(i*3+k*5+n*7)%len(linearVerbs)],
					driver: drivers[(i+k+n)%3], from: drivers[(i+k+n+1)%3],
				}
				if k == 0 && in.verb != "read" { // else there is nothing yet that could be done to it
					in.verb = "assign"
				}
				err := r.do(i, in, func() (any, error) {
					got, err := in.call(ctx, svc, task.ID)
					switch {
					case errors.Is(err, tracking.ErrConflict):
						return taskOutput{failed: tracking.ErrConflict}, nil
					case errors.Is(err, tracking.ErrNotFound):
						return taskOutput{failed: tracking.ErrNotFound}, nil
					}
					return taskOutput{state: linearTask{
						status: got.Status, driver: got.DriverID, outcome: got.Outcome, retried: got.RetriedBy,
					}}, err
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

// interleaved is a store that lets something else happen just before its first commit.
type interleaved struct {
	tracking.Store
	first func()
}

func (s *interleaved) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written,
	error) {
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

// linearVerbs are what clients do to a task.
var linearVerbs = []string{
	"assign", "start", "read", "undo", "force", "finish", "unassign", "reopen", "hand over", "start", "complete",
	"undo", "hand over with force", "finish", "cancel", "retry", "reopen", "start", "cancel", "retry",
}

type taskInput struct {
	verb   string
	driver tracking.DriverID // who gets it, or does it
	from   tracking.DriverID // of a hand-over
}

func (in taskInput) call(ctx context.Context, svc *tracking.Service, id tracking.TaskID) (t tracking.Task, err error) {
	switch in.verb {
	case "read":
		return svc.Task(ctx, id)
	case "assign":
		return svc.AssignTask(ctx, id, in.driver)
	case "force":
		return svc.ForceAssignTask(ctx, id, in.driver)
	case "unassign":
		return svc.UnassignTask(ctx, id)
	case "cancel":
		return svc.CancelTask(ctx, id, tracking.Reason{})
	case "complete":
		return svc.CompleteTask(ctx, id, tracking.Completion{})
	case "reopen":
		return svc.ReopenTask(ctx, id)
	case "retry":
		next, err := svc.RetryTask(ctx, id, tracking.Retry{})
		return tracking.Task{RetriedBy: next.ID}, err
	case "start":
		t, _, err = svc.StartTask(ctx, in.driver, id, tracking.Step{})
	case "finish":
		return svc.FinishTask(ctx, in.driver, id, tracking.Completion{}, tracking.Step{})
	case "undo":
		t, _, err = svc.UndoTask(ctx, in.driver, id, "", tracking.Step{})
	case "hand over", "hand over with force":
		list, err := svc.HandOver(ctx, tracking.HandOverRequest{
			From: in.from, To: in.driver, Tasks: []tracking.TaskID{id}, Force: in.verb != "hand over",
		})
		if err == nil {
			t = list[0]
		}
		return t, err
	}
	return t, err
}

// taskOutput is what a client was told: that it cannot be, or the task as it is then.
type taskOutput struct {
	failed tracking.ErrorCode
	state  linearTask
}

type linearTask struct {
	status  tracking.TaskStatus
	driver  tracking.DriverID
	outcome tracking.Outcome
	retried tracking.TaskID
	step    bool // its driver has taken one that can be taken back; not told
}

// taskModel is the table of contract 3, for a drop.
func taskModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return linearTask{status: tracking.StatusCreated} },
		Step: func(state, input, output any) (bool, any) {
			s, in, out := state.(linearTask), input.(taskInput), output.(taskOutput)
			if in.verb == "retry" { // the answer is the other task, which is the same for all
				if s.outcome != tracking.OutcomeCancelled {
					return out.failed == tracking.ErrConflict, s
				}
				s.retried = cmp.Or(s.retried, out.state.retried)
				return s.retried != "" && out == taskOutput{state: linearTask{retried: s.retried}}, s
			}
			next, failed := s.after(in)
			if failed != "" {
				return out.failed == failed, s
			}
			told := next
			told.step = false
			return out == taskOutput{state: told}, next
		},
	}
}

// after is the task as a verb leaves it, or why it does not.
func (s linearTask) after(in taskInput) (next linearTask, failed tracking.ErrorCode) {
	created := linearTask{status: tracking.StatusCreated}
	given := linearTask{status: tracking.StatusAssigned, driver: in.driver}
	done := s.status == tracking.StatusCompleted
	open := s.status == tracking.StatusAssigned || s.status == tracking.StatusInProgress
	started := s.status == tracking.StatusInProgress
	end := func(o tracking.Outcome, step bool) (linearTask, tracking.ErrorCode) {
		switch {
		case done && s.outcome == o:
			return s, ""
		case done:
			return s, tracking.ErrConflict
		}
		return linearTask{status: tracking.StatusCompleted, driver: s.driver, outcome: o, step: step}, ""
	}
	switch in.verb {
	case "start", "finish", "undo":
		if s.driver != in.driver {
			return s, tracking.ErrNotFound
		}
	}
	switch in.verb {
	case "assign", "force":
		switch {
		case done, in.verb == "assign" && started && s.driver != in.driver:
			return s, tracking.ErrConflict
		case open && s.driver == in.driver:
			return s, ""
		}
		return given, ""
	case "hand over", "hand over with force":
		switch {
		case open && s.driver == in.driver:
			return s, ""
		case !open, s.driver != in.from, started && in.verb == "hand over":
			return s, tracking.ErrConflict
		}
		return given, ""
	case "unassign":
		if done {
			return s, tracking.ErrConflict
		}
		return created, ""
	case "cancel":
		return end(tracking.OutcomeCancelled, false)
	case "complete":
		return end(tracking.OutcomeSucceeded, false)
	case "reopen":
		switch {
		case !done:
			return s, ""
		case s.retried != "":
			return s, tracking.ErrConflict
		case s.driver == "":
			return created, ""
		}
		return linearTask{status: tracking.StatusAssigned, driver: s.driver}, ""
	case "start":
		switch {
		case done:
			return s, tracking.ErrConflict
		case started:
			return s, ""
		}
		return linearTask{status: tracking.StatusInProgress, driver: s.driver, step: true}, ""
	case "finish":
		if s.status == tracking.StatusAssigned {
			return s, tracking.ErrConflict
		}
		return end(tracking.OutcomeSucceeded, true)
	case "undo":
		switch {
		case s.status == tracking.StatusAssigned:
			return s, ""
		case !s.step:
			return s, tracking.ErrConflict
		case started:
			return linearTask{status: tracking.StatusAssigned, driver: s.driver}, ""
		}
		return linearTask{status: tracking.StatusInProgress, driver: s.driver}, ""
	}
	return s, ""
}
