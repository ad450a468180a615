package postgres_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/store/postgres"
)

const outboxWriters, outboxSubjects = 4, 10 // of each process; of each writer

// receiver is told of events by several processes.
type receiver struct {
	*testing.T

	mu           sync.Mutex
	here         map[string]bool  // subjects of which one is being told
	last         map[string]int64 // the Seq that a subject has come to
	got, again   int
	began, ended time.Time
	all          chan struct{}
	want         int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var subject string
	var seq int64
	if _, err := fmt.Fscan(req.Body, &subject, &seq); err != nil {
		r.Error(err)
		return
	}
	r.mu.Lock()
	if r.here[subject] {
		r.Errorf("event %d of %s comes while another one is here", seq, subject)
	}
	r.here[subject] = true
	all := false
	switch next := r.last[subject] + 1; {
	case seq == next:
		r.last[subject] = seq
		if r.got == 0 {
			r.began = time.Now()
		}
		r.got++
		if all = r.got == r.want; all {
			r.ended = time.Now()
		}
	case seq < next:
		r.again++
	default:
		r.Errorf("event %d of %s comes when %d is due", seq, subject, next)
	}
	r.mu.Unlock()
	for range 20 { // it takes its time
		runtime.Gosched()
	}
	r.mu.Lock()
	delete(r.here, subject)
	r.mu.Unlock()
	w.WriteHeader(http.StatusNoContent)
	if all {
		close(r.all)
	}
}

// newReceiver is told of so many rounds of so many writers' processes, at a URL.
func newReceiver(t *testing.T, processes, rounds int) (*receiver, string) {
	r := &receiver{
		T: t, here: map[string]bool{}, last: map[string]int64{}, all: make(chan struct{}),
		want: processes * outboxWriters * outboxSubjects * rounds,
	}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return r, server.URL
}

// finish checks that all have come.
func (r *receiver) finish(rounds int) {
	r.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	took := r.ended.Sub(r.began)
	r.Logf("%d events in %v, %.0f a second; %d came again", r.got, took, float64(r.got)/took.Seconds(), r.again)
	for subject, seq := range r.last {
		if seq != int64(rounds) {
			r.Errorf("of %s %d events came, want %d", subject, seq, rounds)
		}
	}
}

// Three processes commit events and deliver whatever is there: each event comes, those of a subject in
// order, and never two of one at once.
func TestOutboxOfThreeProcesses(t *testing.T) {
	t.Parallel()
	rounds := endured(5, 500)
	if url := os.Getenv("PROCESS_URL"); url != "" {
		s := open(t, url, nil)
		defer s.Close()
		commitAndDeliver(t, s, os.Getenv("PROCESS_NAME"), os.Getenv("PROCESS_RECEIVER"), rounds, func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
		})
		return
	}
	url := template.Database(t)
	names := []string{"a", "b", "c"}
	r, receives := newReceiver(t, len(names), rounds)
	type process struct {
		*exec.Cmd
		stdin io.Closer
	}
	var processes []process
	for _, name := range names {
		cmd := inProcess(t, t.Name(), url, name)
		cmd.Env = append(cmd.Env, "PROCESS_RECEIVER="+receives)
		cmd.Stderr = os.Stderr
		stdin, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		processes = append(processes, process{cmd, stdin})
	}
	<-r.all
	for _, p := range processes {
		p.stdin.Close()
		if err := p.Wait(); err != nil {
			t.Error(err)
		}
	}
	r.finish(rounds)
}

// commitAndDeliver commits events and delivers those of anybody, until wait returns.
func commitAndDeliver(t *testing.T, s *postgres.Store, who, receiver string, rounds int, wait func()) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	defer client.CloseIdleConnections()
	tell := func(ctx context.Context, n tracking.Notification) error {
		body := strings.NewReader(fmt.Sprint(n.Event.Subject.ID, " ", n.Event.Seq))
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, receiver, body)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	svc, err := tracking.New(s, &tracking.Options{Notifier: notify(tell), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	running := make(chan struct{})
	go func() { defer close(running); _ = svc.Run(ctx) }()
	var wg sync.WaitGroup
	for writer := range outboxWriters {
		wg.Go(func() {
			for round := range rounds {
				cs := tracking.Changeset{Deliver: []string{""}}
				for n := range outboxSubjects {
					subject := fmt.Sprintf("%s-%d-%d", who, writer, n)
					cs.Events = append(cs.Events, tracking.Event{
						ID: fmt.Sprintf("%s-%d", subject, round), Type: tracking.EventTaskUpdated, RecordedAt: time.Now(),
						Subject: tracking.Subject{Kind: tracking.KindTask, ID: subject},
					})
				}
				if _, err := s.Commit(t.Context(), app, &cs); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	wait()
	stop()
	<-running
}

type notify func(ctx context.Context, n tracking.Notification) error

func (f notify) Notify(ctx context.Context, n tracking.Notification) error { return f(ctx, n) }

// A plan of FinishEvents that was made while there were few events is not kept until it reads all of
// many: then noting what became of some takes longer than a statement may.
func TestFinishEventsAsTheyGrow(t *testing.T) {
	s := open(t, template.Database(t), nil)
	defer s.Close()
	now := time.Now().UTC().Truncate(time.Millisecond)
	n := 0
	add := func() (done []tracking.Delivery) {
		cs := &tracking.Changeset{Deliver: []string{"w"}}
		for range 200 {
			n++
			id := fmt.Sprint("e", n)
			cs.Events = append(cs.Events, tracking.Event{
				ID: id, Type: tracking.EventTaskCreated, Time: now, RecordedAt: now, Actor: "system",
				Subject: tracking.Subject{Kind: tracking.KindTask, ID: "t" + id},
			})
			done = append(done, tracking.Delivery{Outbox: "w", App: "a", EventID: id, State: tracking.DeliveryDone})
		}
		if _, err := s.Commit(t.Context(), "a", cs); err != nil {
			t.Fatal(err)
		}
		return done
	}
	few := add()
	for i := range 8 { // each connection that may plan does
		if err := s.FinishEvents(t.Context(), few[i*5:i*5+5]); err != nil {
			t.Fatal(err)
		}
	}
	var many []tracking.Delivery
	for n < 10_000 {
		many = add()
	}
	if err := s.FinishEvents(t.Context(), many[:99]); err != nil {
		t.Errorf("of %d events: %v", n, err)
	}
}
