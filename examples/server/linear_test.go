package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
)

// taskInput is a call about one task.
type taskInput struct {
	verb   string
	driver string
}

// taskOutput is what the client was told: nothing, that the state forbids it, or the task as it is
// then.
type taskOutput struct {
	unknown bool
	refused bool
	state   taskState
}

type taskState struct{ status, driver, outcome string }

// taskModel is a task of which a dispatcher disposes.
func taskModel() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return taskState{status: "created"} },
		Step: func(state, input, output any) (bool, any) {
			s, in, out := state.(taskState), input.(taskInput), output.(taskOutput)
			next, refused := s, s.status == "completed"
			switch in.verb {
			case "read":
				refused = false
			case "assign":
				next = taskState{status: "assigned", driver: in.driver}
			case "unassign":
				next = taskState{status: "created"}
			case "cancel":
				refused = false
				if s.status != "completed" {
					next.status, next.outcome = "completed", "cancelled"
				}
			}
			if refused {
				next = s
			}
			return out.unknown || out.refused == refused && (refused || out.state == next), next
		},
	}
}

// ask makes a call about a task. A call that gets no answer, as the program is killed, may have
// been done or may be done yet.
func ask(base, task string, in taskInput) (taskOutput, error) {
	var req *http.Request
	var err error
	if in.verb == "read" {
		req, err = http.NewRequest(http.MethodGet, base+"/v1/task?task_id="+task, nil)
	} else {
		body := fmt.Sprintf(`{"task_id":%q,"driver_id":%q}`, task, in.driver)
		req, err = http.NewRequest(http.MethodPost, base+"/v1/task/"+in.verb, strings.NewReader(body))
	}
	if err != nil {
		return taskOutput{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", "k")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return taskOutput{unknown: true}, nil
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return taskOutput{unknown: true}, nil
	}
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusConflict:
		return taskOutput{refused: true}, nil
	default:
		return taskOutput{}, fmt.Errorf("%s answers %d %s", in.verb, resp.StatusCode, b)
	}
	var answer object
	if err := json.Unmarshal(b, &answer); err != nil {
		return taskOutput{}, err
	}
	var s taskState
	s.status, _ = answer.at("data.task.status").(string)
	s.driver, _ = answer.at("data.task.driver_id").(string)
	s.outcome, _ = answer.at("data.task.outcome").(string)
	return taskOutput{state: s}, nil
}

// TestLinearizable has clients dispose of one task at once, over HTTP: what they see could have
// come about one after the other, also when the program is killed and started again in between.
func TestLinearizable(t *testing.T) {
	file := "sqlite:" + filepath.Join(t.TempDir(), "tracking.db")
	disposeAtOnce(t, 1, "-store", file, "-key", "k")
}

// TestLinearizableWithTwo has half of them ask one and half another of two programs on one database.
func TestLinearizableWithTwo(t *testing.T) {
	disposeAtOnce(t, 2, "-store", blank.Database(t), "-key", "k")
}

// disposeAtOnce lets clients ask n programs, of which one is killed in every second round.
func disposeAtOnce(t *testing.T, n int, args ...string) {
	rounds := 6
	if os.Getenv("TRACKING_LONG") == "1" {
		rounds = 60
	}
	const clients, calls, drivers = 6, 8, 3
	programs := make([]*process, n)
	for i := range programs {
		programs[i] = startProcess(t, args...)
	}
	r := &rider{}
	for d := range drivers {
		r.call(t, programs[0].base, "", "/v1/users/driver", fmt.Sprintf(`{"driver_id":"driver-%d"}`, d))
	}
	chance := rand.New(rand.NewPCG(5, 6))
	for round := range rounds {
		data, _ := r.call(t, programs[0].base, "", "/v1/task/create", `{"type":2,"drop":{"address":"45 First Avenue"}}`)
		task, _ := data.at("task.task_id").(string)
		killAt := int64(math.MaxInt64)
		if round%2 == 1 {
			killAt = 5 + chance.Int64N(20)
		}
		var tick atomic.Int64
		history := make([][]porcupine.Operation, clients)
		victim := round / 2 % n
		// run has each client make calls until all are made or one gets no answer.
		run := func() {
			var once sync.Once
			var wg sync.WaitGroup
			for c := range clients {
				plan := rand.New(rand.NewPCG(uint64(round), uint64(c)))
				wg.Go(func() {
					for len(history[c]) < calls {
						in := taskInput{verb: []string{"read", "assign", "assign", "unassign"}[plan.IntN(4)]}
						if in.verb == "assign" {
							in.driver = fmt.Sprintf("driver-%d", plan.IntN(drivers))
						}
						if c == 0 && len(history[c]) == calls-2 {
							in = taskInput{verb: "cancel"}
						}
						began := tick.Add(1)
						out, err := ask(programs[c%n].base, task, in)
						if err != nil {
							t.Error(err)
							return
						}
						ended := tick.Add(1)
						if out.unknown {
							ended = math.MaxInt64
						}
						history[c] = append(history[c], porcupine.Operation{
							ClientId: c, Input: in, Output: out, Call: began, Return: ended,
						})
						if out.unknown {
							return
						}
						if ended > killAt {
							once.Do(func() { programs[victim].kill(t) })
						}
					}
				})
			}
			wg.Wait()
		}
		run()
		if killAt < math.MaxInt64 {
			<-programs[victim].ended
			http.DefaultClient.CloseIdleConnections()
			programs[victim] = startProcess(t, args...)
			killAt = math.MaxInt64
			run()
		}
		var all []porcupine.Operation
		unanswered := 0
		for _, ops := range history {
			for _, op := range ops {
				if op.Output.(taskOutput).unknown {
					unanswered++
				}
			}
			all = append(all, ops...)
		}
		if !porcupine.CheckOperations(taskModel(), all) {
			t.Fatalf("round %d, %d calls unanswered: no order of these calls explains their answers: %+v", round,
				unanswered, history)
		}
	}
}
