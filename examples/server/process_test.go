package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	_ "net/http/pprof" // of the program, where a test asks for it
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
	"github.com/seed-8aba7b13/tracking/store/storetest"
)

// asProgram makes this test binary the program itself, for tests that kill it: its value is the
// arguments, one a line.
const asProgram = "TRACKING_TEST_SERVER_ARGS"

// withProfiles has that program serve its profiles too.
const withProfiles = "TRACKING_TEST_PROFILES"

// serveProfiles serves them at an address that it prints.
func serveProfiles() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "profiles at http://%s\n", l.Addr())
	go func() { _ = http.Serve(l, http.DefaultServeMux) }() // until the program ends
	return nil
}

// process is the program in a process of its own.
type process struct {
	cmd   *exec.Cmd
	base  string
	out   *output
	ready time.Duration // from its start to the first answer of /healthz
	ended chan struct{}
}

var serving = regexp.MustCompile(`Serving at (\S+) with`)

func startProcess(t *testing.T, args ...string) *process {
	t.Helper()
	return startAs(t, asProgram+"="+strings.Join(append([]string{"-addr", "127.0.0.1:0"}, args...), "\n"))
}

// startAs starts this test binary as what the environment says, and waits until it serves.
func startAs(t *testing.T, as string) *process {
	t.Helper()
	began := time.Now()
	p := &process{cmd: exec.Command(os.Args[0])}
	p.cmd.Env = append(os.Environ(), as)
	p.out = newOutput()
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.ended = make(chan struct{})
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait() // it will say that it was killed
	}()
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-p.ended })
	s := &server{t: t, out: p.out, log: p.out, ended: p.ended}
	p.base = s.await(p.out, serving)[1]
	for {
		resp, err := http.Get(p.base + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			p.ready = time.Since(began)
			return p
		}
	}
}

// kill ends it as kill -9 does.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
}

// rider is a client of the service: an application that creates tasks, and the driver who carries
// them out.
type rider struct {
	id    string
	token string
	made  int

	// What is to be tried again after a kill, with the same key.
	pending string

	acked []ack
}

// ack is something that the server said is done.
type ack struct {
	task   string
	status string // at least
	trip   string
	fix    string // the time of a fix in the trip's path
}

// call makes a call. ok is false when the server was killed meanwhile.
func (r *rider) call(t *testing.T, base, token, path, body string) (data object, ok bool) {
	req, err := http.NewRequest(http.MethodPost, base+path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return nil, false
	}
	if body == "" {
		req.Method = http.MethodGet
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	} else {
		req.Header.Set("X-Api-Key", "k")
	}
	if r.pending != "" && path == "/v1/task/create" {
		req.Header.Set("Idempotency-Key", r.pending)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, false
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, false
	}
	var answer object
	if err := json.Unmarshal(b, &answer); err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("%s: %d %s", path, resp.StatusCode, b)
		return nil, false
	}
	data, _ = answer["data"].(map[string]any)
	return data, true
}

// work creates a task and carries it out, until something fails; done is called with each answer.
func (r *rider) work(t *testing.T, base string, done func()) (alive bool) {
	if r.pending == "" {
		r.made++
		r.pending = fmt.Sprintf("%s/%d", r.id, r.made)
	}
	data, ok := r.call(t, base, "", "/v1/task/create",
		fmt.Sprintf(`{"type":2,"drop":{"lnglat":[80.27,13.08]},"order_id":%q}`, r.pending))
	if !ok {
		return false
	}
	r.pending = ""
	task, _ := data.at("task.task_id").(string)
	note := func(a ack) { r.acked = append(r.acked, a); done() }
	note(ack{task: task, status: "created"})
	if _, ok = r.call(t, base, "", "/v1/task/assign", fmt.Sprintf(`{"task_id":%q,"driver_id":%q}`, task, r.id)); !ok {
		return false
	}
	note(ack{task: task, status: "assigned"})
	if data, ok = r.call(t, base, r.token, "/v1/driver/tasks/"+task+"/start", "{}"); !ok {
		return false
	}
	trip, _ := data.at("trip._id").(string)
	note(ack{task: task, status: "in_progress"})
	for n := range 3 {
		at := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
		data, ok = r.call(t, base, r.token, "/v1/driver/fixes",
			fmt.Sprintf(`{"fixes":[{"lnglat":[80.27000%d,13.08],"time":%q}]}`, n, at))
		if !ok {
			return false
		}
		if words, _ := data["outcomes"].([]any); len(words) == 1 && words[0] == "live" {
			note(ack{trip: trip, fix: at})
		}
	}
	if _, ok = r.call(t, base, r.token, "/v1/driver/tasks/"+task+"/complete", "{}"); !ok {
		return false
	}
	note(ack{task: task, status: "completed"})
	return true
}

// check looks for what was acknowledged from the n-th on.
func (r *rider) check(t *testing.T, base string, from int) {
	t.Helper()
	ranks := []string{"created", "assigned", "in_progress", "completed"}
	paths := map[string]string{}
	for _, a := range r.acked[from:] {
		if a.task != "" {
			data, ok := r.call(t, base, "", "/v1/task?task_id="+a.task, "")
			if status, _ := data.at("task.status").(string); !ok ||
				slices.Index(ranks, status) < slices.Index(ranks, a.status) {
				t.Errorf("task %s was %s, and is %q after the kill", a.task, a.status, status)
			}
			continue
		}
		if paths[a.trip] == "" {
			data, _ := r.call(t, base, "", "/v1/triphistory/"+a.trip, "")
			b, _ := json.Marshal(data["loc"])
			paths[a.trip] = string(b)
		}
		if !strings.Contains(paths[a.trip], a.fix) {
			t.Errorf("the fix of %s is not in trip %s after the kill", a.fix, a.trip)
		}
	}
}

// TestKilledServer kills the program again and again while several clients use it: what they were
// told is done is there afterwards, and done once. TRACKING_KILLS is how often; by default 5 times,
// with TRACKING_LONG=1 200 times.
func TestKilledServer(t *testing.T) {
	kills := 5
	if os.Getenv("TRACKING_LONG") == "1" {
		kills = 200
	}
	if n, err := strconv.Atoi(os.Getenv("TRACKING_KILLS")); err == nil {
		kills = n
	}
	path := filepath.Join(t.TempDir(), "tracking.db")
	args := []string{"-store", "sqlite:" + path, "-key", "k"}
	p := startProcess(t, args...)
	riders := make([]*rider, 4)
	for i := range riders {
		r := &rider{id: fmt.Sprintf("rider-%d", i)}
		data, _ := r.call(t, p.base, "", "/v1/invite_user", fmt.Sprintf(`{"user_id":%q}`, r.id))
		data, _ = r.call(t, p.base, "", "/v1/driver/join",
			fmt.Sprintf(`{"invite_code":%v}`, json.Number(fmt.Sprintf("%.0f", data["invite_code"]))))
		r.token, _ = data["token"].(string)
		r.call(t, p.base, "", "/v1/users/driver",
			fmt.Sprintf(`{"driver_id":%q,"availability":true,"lnglat":[80.27,13.08]}`, r.id))
		riders[i] = r
	}
	if t.Failed() {
		t.FailNow()
	}

	chance := rand.New(rand.NewPCG(1, 2))
	var ready []time.Duration
	for range kills {
		from := make([]int, len(riders))
		killAt := int64(10 + chance.IntN(60))
		var acks atomic.Int64
		var once sync.Once
		var wg sync.WaitGroup
		for i, r := range riders {
			from[i] = len(r.acked)
			wg.Go(func() {
				for r.work(t, p.base, func() {
					if acks.Add(1) >= killAt {
						once.Do(func() { p.kill(t) })
					}
				}) {
				}
			})
		}
		wg.Wait()
		<-p.ended
		http.DefaultClient.CloseIdleConnections()
		p = startProcess(t, args...)
		ready = append(ready, p.ready)
		for i, r := range riders {
			r.check(t, p.base, from[i])
		}
		if t.Failed() {
			break
		}
	}
	total := 0
	for _, r := range riders {
		r.check(t, p.base, 0)
		total += len(r.acked)
		for n := range r.made {
			data, _ := r.call(t, p.base, "", fmt.Sprintf("/v1/task/list?order_id=%s/%d", r.id, n+1), "")
			list, _ := data["task_list"].([]any)
			if len(list) > 1 || len(list) == 0 && n+1 < r.made {
				t.Errorf("order %s/%d has %d tasks", r.id, n+1, len(list))
			}
		}
	}
	p.kill(t)
	<-p.ended
	http.DefaultClient.CloseIdleConnections()

	slices.Sort(ready)
	t.Logf("%d kills, %d things acknowledged; ready after %v, at most %v", kills, total, ready[len(ready)/2],
		ready[len(ready)-1])
	s, err := sqlite.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := storetest.Invariants(t.Context(), s, 1, tracking.DefaultApp); err != nil {
		t.Error(err)
	}
}
