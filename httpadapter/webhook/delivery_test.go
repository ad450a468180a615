package webhook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// pipes is a network of one address in memory, which works by fake time.
type pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Ways in which a receiver goes wrong.
const (
	drops     = iota // the connection, before an answer
	fails            // with 500
	hangs            // until the sender gives up
	late             // it answers 200 after the sender has given up
	redirects        // with 302
	busy             // 429, for a while
	refuses          // 400, twice at most
	kinds
)

// arrival is a request that reached a receiver.
type arrival struct {
	id    string
	seq   int64
	taken bool // answered 200 in time
}

// misbehaving is a receiver that gets a few of each event's requests wrong before it takes it.
type misbehaving struct {
	t        *testing.T
	mu       sync.Mutex
	rand     *rand.Rand
	faults   map[string][]int // of each event's requests, in turn; then it is taken
	arrivals map[string][]arrival
	happened [kinds]int
}

func (m *misbehaving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = webhook.Verify(r.Header, body, time.Now(), secret)
	}
	var v struct {
		Data struct {
			ID      string
			Seq     int64
			Subject struct{ ID string }
		}
	}
	if err == nil {
		err = json.Unmarshal(body, &v)
	}
	id := r.Header.Get("webhook-id")
	if err != nil || id != v.Data.ID {
		m.t.Errorf("request %q with the body %s: %v", id, body, err)
	}
	switch fault := m.arrived(v.Data.Subject.ID, arrival{id: id, seq: v.Data.Seq}); fault {
	case drops:
		panic(http.ErrAbortHandler)
	case fails:
		w.WriteHeader(http.StatusInternalServerError)
	case hangs:
		<-r.Context().Done()
	case late:
		time.Sleep(20 * time.Second)
	case redirects:
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	case busy:
		w.Header().Set("Retry-After", "30")
		w.WriteHeader(http.StatusTooManyRequests)
	case refuses:
		w.WriteHeader(http.StatusBadRequest)
	}
}

// arrived notes a request and says what goes wrong with it; kinds for nothing.
func (m *misbehaving) arrived(subject string, a arrival) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	left, known := m.faults[a.id]
	if !known {
		refused := 0
		for range m.rand.IntN(4) {
			kind := m.rand.IntN(kinds)
			if kind == refuses {
				if refused++; refused > 2 || len(left) > 1 { // the third answer of that kind is final
					continue
				}
			}
			left = append(left, kind)
		}
	}
	fault := kinds
	if len(left) > 0 {
		fault, left = left[0], left[1:]
		m.happened[fault]++
	}
	m.faults[a.id] = left
	a.taken = fault == kinds
	m.arrivals[subject] = append(m.arrivals[subject], a)
	return fault
}

// oneAtATime sees to it that no two workers deliver events of one subject at once.
type oneAtATime struct {
	tracking.Notifier
	t     *testing.T
	mu    *sync.Mutex
	busy  map[string]bool // of all workers, by subject
	count int
}

func (o *oneAtATime) Notify(ctx context.Context, n tracking.Notification) error {
	o.mu.Lock()
	if o.busy[n.Event.Subject.ID] {
		o.t.Errorf("two deliver events of %v at once", n.Event.Subject)
	}
	o.busy[n.Event.Subject.ID] = true
	o.count++
	o.mu.Unlock()
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.busy[n.Event.Subject.ID] = false
	}()
	return o.Notifier.Notify(ctx, n)
}

// TestMisbehavingReceiver: whatever a receiver does wrong, each event arrives until it is taken and
// not once more, always with its id, in order for each entity, by one of the three Services that
// share the work at a time.
func TestMisbehavingReceiver(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { misbehave(t, seed) })
		})
	}
}

func misbehave(t *testing.T, seed uint64) {
	m := &misbehaving{
		t: t, rand: rand.New(rand.NewPCG(seed, 1)), faults: map[string][]int{}, arrivals: map[string][]arrival{},
	}
	network := newPipes()
	quiet := slog.New(slog.DiscardHandler)
	receiver := &http.Server{Handler: m, ErrorLog: slog.NewLogLogger(quiet.Handler(), slog.LevelError)}
	served := make(chan error, 1)
	go func() { served <- receiver.Serve(network) }()
	transport := &http.Transport{DialContext: network.dial}
	defer func() {
		transport.CloseIdleConnections()
		receiver.Close()
		<-served
	}()

	store := memory.New()
	defer store.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	busy := map[string]bool{}
	var services []*tracking.Service
	var workers []*oneAtATime
	var running sync.WaitGroup
	for range 3 {
		hook, err := webhook.New("http://receiver/hook", []string{secret}, &webhook.Options{Transport: transport})
		if err != nil {
			t.Fatal(err)
		}
		worker := &oneAtATime{Notifier: hook, t: t, mu: &mu, busy: busy}
		svc, err := tracking.New(store, &tracking.Options{
			Notifier: worker, Logger: quiet,
			RetryWaits: []time.Duration{0, time.Second, 5 * time.Second, 30 * time.Second, time.Minute},
		})
		if err != nil {
			t.Fatal(err)
		}
		services, workers = append(services, svc), append(workers, worker)
		running.Go(func() {
			if err := svc.Run(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("Run: %v", err)
			}
		})
	}
	const tasks, changes = 60, 3 // and that it was created and cancelled
	for i := range tasks {
		svc := services[i%len(services)]
		task, err := svc.CreateTask(ctx, tracking.NewTask{
			Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "Marienplatz 1"},
		})
		for n := range changes {
			if err == nil {
				_, err = svc.UpdateTask(ctx, task.ID, tracking.TaskUpdate{Notes: new(fmt.Sprint(n))})
			}
		}
		if err == nil {
			_, err = svc.CancelTask(ctx, task.ID, tracking.Reason{})
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
	}
	time.Sleep(20 * time.Minute) // five events, each of which may fail three times and then wait for a minute
	synctest.Wait()
	cancel()
	running.Wait()

	m.mu.Lock()
	defer m.mu.Unlock()
	events, _, err := services[0].Events(t.Context(), tracking.EventFilter{Limit: 1000})
	if err != nil || len(events) != tasks*(changes+2) || len(m.arrivals) != tasks {
		t.Fatalf("%d events of %d tasks, %v", len(events), len(m.arrivals), err)
	}
	for _, e := range events {
		var got []bool
		for _, a := range m.arrivals[e.Subject.ID] {
			if a.id == e.ID {
				got = append(got, a.taken)
				if a.seq != e.Seq {
					t.Errorf("event %s of %v arrived as number %d, want %d", e.ID, e.Subject, a.seq, e.Seq)
				}
			}
		}
		if n := len(got); n == 0 || !got[n-1] || slices.Contains(got[:n-1], true) {
			t.Errorf("event %d of %v was taken %v; want the last time and no other", e.Seq, e.Subject, got)
		}
	}
	for subject, list := range m.arrivals {
		if !slices.IsSortedFunc(list, func(a, b arrival) int { return int(a.seq - b.seq) }) {
			t.Errorf("the events of %s arrived as %v", subject, list)
		}
	}
	for kind, n := range m.happened {
		if n == 0 {
			t.Errorf("no request went wrong in way %d", kind)
		}
	}
	for i, w := range workers {
		if w.count == 0 {
			t.Errorf("Service %d had no share of the work", i)
		}
	}
	dead, _, err := services[0].Events(t.Context(), tracking.EventFilter{Dead: true})
	if err != nil || len(dead) != 0 {
		t.Errorf("given up: %v, %v", dead, err)
	}
}
