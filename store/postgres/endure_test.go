package postgres_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
	"github.com/seed-8aba7b13/tracking/store/storetest"
)

// endured is how often a test of endurance does what it does: short, or in full with
// TRACKING_ENDURE=1, which takes many minutes.
func endured(short, full int) int {
	if os.Getenv("TRACKING_ENDURE") == "1" {
		return full
	}
	return short
}

// maxOpen is how many tasks a driver may get automatically here.
const maxOpen = 3

// lanes are the goroutines of a worker, each with a driver of its own.
const lanes = 4

// A fleet is several processes that work on one database, and what they were told is done.
type fleet struct {
	*testing.T
	url string

	mu      sync.Mutex
	news    *sync.Cond
	rank    map[tracking.TaskID]int // in ranks
	fixes   map[tracking.DriverID][]time.Time
	unknown int
}

// ranks are what a worker has a task come to, one after another.
var ranks = []string{"created", "assigned", "in_progress", "completed"}

// worker is one of the processes.
type worker struct {
	fleet *fleet
	cmd   *exec.Cmd
	stdin io.Closer
	acked int // guarded by the fleet's mu
	ended bool
	done  chan struct{}
}

func newFleet(t *testing.T, url string) *fleet {
	f := &fleet{T: t, url: url, rank: map[tracking.TaskID]int{}, fixes: map[tracking.DriverID][]time.Time{}}
	f.news = sync.NewCond(&f.mu)
	return f
}

// isWorker reports whether this is the process of a worker, and has it do its work then.
func isWorker(t *testing.T) bool {
	url := os.Getenv("PROCESS_URL")
	if url != "" {
		opts := &postgres.Options{CheckOnly: os.Getenv("PROCESS_CHECKS") != ""}
		if os.Getenv("PROCESS_NEXT") != "" {
			opts = opts.WithMigrations(nextMigrations(t))
		}
		opts.Logger = slog.New(slog.DiscardHandler)
		beWorker(t, url, os.Getenv("PROCESS_NAME"), opts)
	}
	return url != ""
}

// start starts a worker, which is told its name and more of what the environment says.
func (f *fleet) start(name string, env ...string) *worker {
	f.Helper()
	test, _, _ := strings.Cut(f.Name(), "/")
	w := &worker{fleet: f, cmd: inProcess(f.T, test, f.url, name), done: make(chan struct{})}
	w.cmd.Env = append(w.cmd.Env, env...)
	var errs bytes.Buffer
	w.cmd.Stderr = &errs
	out, err := w.cmd.StdoutPipe()
	if err == nil {
		w.stdin, err = w.cmd.StdinPipe()
	}
	if err == nil {
		err = w.cmd.Start()
	}
	if err != nil {
		f.Fatal(err)
	}
	go func() {
		defer close(w.done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			f.hear(w, lines.Text())
		}
		_ = w.cmd.Wait() // it will say that it was killed
		f.mu.Lock()
		w.ended = true
		f.mu.Unlock()
		f.news.Broadcast()
		if errs.Len() > 0 {
			f.Errorf("%s says: %s", name, &errs)
		}
	}()
	f.Cleanup(w.kill)
	return w
}

// hear takes a line of a worker's.
func (f *fleet) hear(w *worker, line string) {
	word := strings.Fields(line)
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case len(word) == 3 && word[0] == "task":
		f.rank[tracking.TaskID(word[1])] = slices.Index(ranks, word[2])
	case len(word) == 3 && word[0] == "fix":
		ms, err := strconv.ParseInt(word[2], 10, 64)
		if err != nil {
			f.Error(err)
		}
		d := tracking.DriverID(word[1])
		f.fixes[d] = append(f.fixes[d], time.UnixMilli(ms).UTC())
	case line == "unknown":
		f.unknown++
		return
	case line == "PASS":
		return
	default:
		f.Error(line)
		return
	}
	w.acked++
	f.news.Broadcast()
}

// await waits until a worker was told of n more things that are done.
func (f *fleet) await(n int, workers ...*worker) {
	f.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range workers {
		for until := w.acked + n; w.acked < until; f.news.Wait() {
			if w.ended {
				f.Fatalf("%s has ended", w.cmd.Env[len(w.cmd.Env)-1])
			}
		}
	}
}

// kill ends a worker as kill -9 does.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill()
	<-w.done
}

// finish lets workers end what they are at.
func (f *fleet) finish(workers ...*worker) {
	for _, w := range workers {
		w.stdin.Close()
	}
	for _, w := range workers {
		<-w.done
	}
}

// newService is one as the workers have it.
func newService(t testing.TB, s tracking.Store) *tracking.Service {
	t.Helper()
	svc, err := tracking.New(s, &tracking.Options{MaxOpenTasks: maxOpen, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return svc
}

func laneOf(who string, lane int) tracking.DriverID {
	return tracking.DriverID(fmt.Sprintf("%s-%d", who, lane))
}

// hire makes the drivers of workers.
func (f *fleet) hire(s tracking.Store, names ...string) {
	f.Helper()
	svc := newService(f, s)
	for i, name := range names {
		for lane := range lanes {
			_, err := svc.SaveDriver(f.Context(), tracking.DriverUpdate{
				ID: laneOf(name, lane), Available: new(true),
				LngLat: &tracking.LngLat{Lng: 80.2 + float64(i)/100, Lat: 13 + float64(lane)/100},
			})
			if err != nil {
				f.Fatal(err)
			}
		}
	}
}

// check looks for all that was acknowledged, and for anything that was done by half.
func (f *fleet) check(s tracking.Store) {
	f.Helper()
	lost := 0
	for id, rank := range f.rank {
		task, err := s.Task(f.Context(), app, id)
		if err != nil || slices.Index(ranks, string(task.Status)) < rank {
			lost++
			f.Errorf("task %s is %s (%v), and was acknowledged to be %s", id, task.Status, err, ranks[rank])
		}
	}
	fixes := 0
	for d, times := range f.fixes {
		there := map[time.Time]bool{}
		kept, err := s.KeptFixes(f.Context(), app, d, tracking.FixRange{Limit: 1 << 20})
		if err != nil {
			f.Fatal(err)
		}
		for _, fix := range kept {
			there[fix.Time] = true
		}
		for _, at := range times {
			if fixes++; !there[at] {
				lost++
				f.Errorf("the fix of %s at %v was acknowledged, and is not there", d, at)
			}
		}
	}
	if err := storetest.Invariants(f.Context(), s, maxOpen, app); err != nil {
		f.Error(err)
	}
	f.Logf("%d tasks and %d fixes were acknowledged, %d lost; %d calls had an unknown outcome",
		len(f.rank), fixes, lost, f.unknown)
}

// beWorker carries out tasks until nothing more is said on the standard input, and tells on the
// standard output what it was told is done.
func beWorker(t *testing.T, url, who string, opts *postgres.Options) {
	s := open(t, url, opts)
	defer s.Close()
	svc := newService(t, s)
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	running := make(chan struct{})
	go func() { defer close(running); _ = svc.Run(ctx) }()
	var mu sync.Mutex
	say := func(text string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf(text+"\n", args...)
	}
	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() {
			l := workerLane{
				svc: svc, ctx: t.Context(), driver: laneOf(who, lane), say: say,
				again: time.NewTicker(20 * time.Millisecond),
			}
			defer l.again.Stop()
			for n := lane; ctx.Err() == nil; n++ {
				l.task(n%3 == 0)
			}
		})
	}
	wg.Wait()
	<-running
}

// workerLane carries out one task after another.
type workerLane struct {
	svc    *tracking.Service
	ctx    context.Context
	driver tracking.DriverID
	say    func(text string, args ...any)
	last   time.Time // of the last fix
	again  *time.Ticker
}

// done reports whether something was done. Only that the store cannot be reached is no error.
func (l *workerLane) done(err error) bool {
	if errors.Is(err, tracking.ErrUnavailable) {
		l.say("unknown")
		<-l.again.C // nobody calls as fast as he is refused
	} else if err != nil {
		l.say("%s: %v", l.driver, err)
	}
	return err == nil
}

// task makes one and carries it out.
func (l *workerLane) task(auto bool) {
	task, err := l.svc.CreateTask(l.ctx, tracking.NewTask{
		Type: tracking.TypeDrop, AutoAssign: auto,
		Drop: &tracking.Place{LngLat: &tracking.LngLat{Lng: 80.25, Lat: 13.05}},
	})
	if !l.done(err) {
		return
	}
	l.say("task %s created", task.ID)
	if auto {
		if _, err = l.svc.CompleteTask(l.ctx, task.ID, tracking.Completion{}); l.done(err) {
			l.say("task %s completed", task.ID)
		}
		return
	}
	if _, err = l.svc.AssignTask(l.ctx, task.ID, l.driver); !l.done(err) {
		return
	}
	l.say("task %s assigned", task.ID)
	if _, _, err = l.svc.StartTask(l.ctx, l.driver, task.ID, tracking.Step{}); !l.done(err) {
		return
	}
	l.say("task %s in_progress", task.ID)
	at := time.Now().UTC().Truncate(time.Millisecond)
	if !at.After(l.last) {
		at = l.last.Add(time.Millisecond)
	}
	l.last = at
	fix := tracking.Fix{LngLat: tracking.LngLat{Lng: 80.25, Lat: 13.05}, Time: at, Accuracy: tracking.Known(5)}
	if _, err = l.svc.RecordFixes(l.ctx, l.driver, []tracking.Fix{fix}); !l.done(err) {
		return
	}
	l.say("fix %s %d", l.driver, at.UnixMilli())
	if _, err = l.svc.FinishTask(l.ctx, l.driver, task.ID, tracking.Completion{}, tracking.Step{}); l.done(err) {
		l.say("task %s completed", task.ID)
	}
}
