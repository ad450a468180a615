package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
	"github.com/seed-8aba7b13/tracking/store/postgres/pgtest"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// senderEnv makes the test program a sender that is there to be killed; it holds the JSON of a
// senderConfig.
const senderEnv = "TRACKING_TEST_SENDER"

type senderConfig struct {
	File, URL, Secret string
	Ahead             time.Duration // of the sender's clock; a killed sender's leases last for minutes
	Events            int           // to have in all
}

// TestMain makes the test program one of the programs that tests kill, if its environment says so.
func TestMain(m *testing.M) {
	var err error
	if text, ok := os.LookupEnv(senderEnv); ok {
		var cfg senderConfig
		if err = json.Unmarshal([]byte(text), &cfg); err == nil {
			err = sendEvents(cfg)
		}
	} else if path, ok := os.LookupEnv(asBare); ok {
		err = serveBare(path)
	} else if args, ok := os.LookupEnv(asProgram); ok {
		if os.Getenv(withProfiles) != "" {
			if err = serveProfiles(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
		err = run(context.Background(), strings.Split(args, "\n"),
			streams{in: os.Stdin, out: os.Stdout, log: os.Stderr, env: os.LookupEnv})
	} else {
		os.Exit(pgtest.Main(m))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func (cfg senderConfig) now() time.Time { return time.Now().Add(cfg.Ahead) }

// service opens the file and makes a Service on it that tells a notifier.
func (cfg senderConfig) service(n tracking.Notifier) (*tracking.Service, tracking.Store, error) {
	store, err := sqlite.Open(cfg.File, &sqlite.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, nil, err
	}
	svc, err := cfg.on(store, n)
	return svc, store, err
}

func (cfg senderConfig) on(store tracking.Store, n tracking.Notifier) (*tracking.Service, error) {
	return tracking.New(store, &tracking.Options{Notifier: n, Now: cfg.now, Logger: slog.New(slog.DiscardHandler)})
}

// sendEvents makes events and has two Services deliver them, half of them while others are made,
// until its input ends. It prints how many there are, once there are enough.
func sendEvents(cfg senderConfig) error {
	hook, err := webhook.New(cfg.URL, []string{cfg.Secret}, &webhook.Options{
		Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Now: cfg.now,
	})
	if err != nil {
		return err
	}
	svc, store, err := cfg.service(hook)
	if err != nil {
		return err
	}
	defer store.Close()
	second, err := cfg.on(store, hook)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var running sync.WaitGroup

	there, err := allEvents(ctx, svc)
	if err != nil {
		return err
	}
	half := len(there) + max(0, cfg.Events-len(there))/2
	for n, runs := len(there), false; n < cfg.Events || !runs; n += 5 {
		if !runs && n >= half { // so that it finds long queues, and comes upon growing ones
			runs = true
			running.Go(func() { _ = svc.Run(ctx) })
			running.Go(func() { _ = second.Run(ctx) })
		}
		task, err := svc.CreateTask(ctx, tracking.NewTask{
			Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "45 First Avenue"},
		})
		for i := range 3 {
			if err == nil {
				_, err = svc.UpdateTask(ctx, task.ID, tracking.TaskUpdate{Notes: new(fmt.Sprint(i))})
			}
		}
		if err == nil {
			_, err = svc.CancelTask(ctx, task.ID, tracking.Reason{})
		}
		if err != nil {
			return err
		}
	}
	if there, err = allEvents(ctx, svc); err != nil {
		return err
	}
	fmt.Println(len(there))
	_, _ = io.Copy(io.Discard, os.Stdin)
	cancel()
	running.Wait()
	return nil
}

func allEvents(ctx context.Context, svc *tracking.Service) (all []tracking.Event, err error) {
	for f := (tracking.EventFilter{Limit: 1000}); ; f.After = all[len(all)-1].ID {
		list, more, err := svc.Events(ctx, f)
		if all = append(all, list...); err != nil || !more {
			return all, err
		}
	}
}

// killer is a receiver that has its sender killed at some of the requests, after they came and
// before the sender can note that they did.
type killer struct {
	t      *testing.T
	secret string

	mu       sync.Mutex
	ahead    time.Duration // of the sender's clock
	kill     func()        // kills the sender
	until    int           // requests until then
	answers  bool          // the one at which it is killed is answered first
	arrivals []arrival
	known    map[string]bool
	added    chan struct{} // gets something with each new event
}

type arrival struct {
	id, subject string
	seq         int64
}

func (k *killer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sender was killed in the middle of it
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := webhook.Verify(r.Header, body, time.Now().Add(k.ahead), k.secret); err != nil {
		k.t.Error(err)
	}
	var v struct {
		Data struct {
			ID      string
			Seq     int64
			Subject struct{ ID string }
		}
	}
	if err := json.Unmarshal(body, &v); err != nil || v.Data.ID != r.Header.Get("webhook-id") {
		k.t.Errorf("%q has the body %s: %v", r.Header.Get("webhook-id"), body, err)
	}
	k.arrivals = append(k.arrivals, arrival{v.Data.ID, v.Data.Subject.ID, v.Data.Seq})
	if !k.known[v.Data.ID] {
		k.known[v.Data.ID] = true
		select {
		case k.added <- struct{}{}:
		default:
		}
	}
	if k.until--; k.until == 0 {
		if k.answers {
			w.WriteHeader(http.StatusNoContent)
			_ = http.NewResponseController(w).Flush()
		}
		k.kill()
	}
}

// generation runs a sender. With kill it is killed at its nth request; else it runs until all its
// events have arrived.
func (k *killer) generation(cfg senderConfig, kill bool, nth int, answers bool) {
	k.t.Helper()
	text, err := json.Marshal(cfg)
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(k.t.Context(), 2*time.Minute) // only keeps a broken test from hanging
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), senderEnv+"="+string(text))
	var errors strings.Builder
	cmd.Stderr = &errors
	stdin, err := cmd.StdinPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		k.t.Fatal(err)
	}
	killed := false
	k.mu.Lock()
	k.ahead, k.until, k.answers = cfg.Ahead, 0, answers
	if kill {
		k.until = nth
	}
	k.kill = func() { killed = true; _ = cmd.Process.Kill() }
	err = cmd.Start()
	k.mu.Unlock()
	if err != nil {
		k.t.Fatal(err)
	}
	said, readErr := bufio.NewReader(stdout).ReadString('\n')
	if kill {
		_ = cmd.Wait()
		k.mu.Lock()
		defer k.mu.Unlock()
		if !killed {
			k.t.Fatalf("the sender ended before it was killed; it says %q", &errors)
		}
		return
	}
	total, err := strconv.Atoi(strings.TrimSpace(said))
	if err != nil {
		k.t.Fatalf("the sender says %q and %q: %v", said, &errors, readErr)
	}
	for have := 0; have < total; {
		select {
		case <-k.added:
			k.mu.Lock()
			have = len(k.known)
			k.mu.Unlock()
		case <-ctx.Done():
			k.t.Fatalf("%d of %d events arrived", have, total)
		}
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		k.t.Errorf("the sender ended with %v and says %q", err, &errors)
	}
}

// TestKilledSender kills a sender again and again when a request has arrived and the sender has not
// noted it. In the end every event has arrived, always with the same id, and for each entity in
// order.
func TestKilledSender(t *testing.T) {
	kills, events := 2, 100
	if os.Getenv("TRACKING_LONG") == "1" {
		kills, events = 20, 1000
	}
	k := &killer{t: t, secret: webhook.NewSecret(), known: map[string]bool{}, added: make(chan struct{}, 1)}
	receiver := httptest.NewServer(k)
	defer receiver.Close()
	cfg := senderConfig{File: filepath.Join(t.TempDir(), "events.db"), URL: receiver.URL, Secret: k.secret}
	random := rand.New(rand.NewPCG(4, 2))
	for i := range kills + 1 {
		cfg.Ahead = time.Duration(i) * 3 * time.Minute
		cfg.Events = events * (i + 1) / (kills + 1)
		k.generation(cfg, i < kills, 1+random.IntN(events/(kills+1)), i%2 == 1)
	}

	// What the file holds is the truth. What had arrived when the last sender was stopped, but was
	// not noted, comes once more.
	recorder := &webhook.Recorder{}
	cfg.Ahead += 3 * time.Minute
	svc, store, err := cfg.service(recorder)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	all, err := allEvents(t.Context(), svc)
	if err != nil || len(all) < events {
		t.Fatalf("%d events, want %d at least; %v", len(all), events, err)
	}
	for n := 1; n > 0; {
		if n, err = svc.DeliverEvents(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range recorder.Events() {
		if !k.known[e.ID] {
			t.Errorf("event %s had not arrived before", e.ID)
		}
		k.arrivals = append(k.arrivals, arrival{e.ID, e.Subject.ID, e.Seq})
	}
	want := map[string]arrival{}
	for _, e := range all {
		want[e.ID] = arrival{e.ID, e.Subject.ID, e.Seq}
	}
	first := map[string]bool{}
	next := map[string]int64{}
	for _, a := range k.arrivals {
		if want[a.id] != a {
			t.Errorf("%+v arrived; the file has %+v", a, want[a.id])
		}
		if first[a.id] {
			continue // a receiver knows it by its id
		}
		first[a.id] = true
		if next[a.subject]++; a.seq != next[a.subject] {
			t.Errorf("event %d of %s arrived when %d was due", a.seq, a.subject, next[a.subject])
		}
	}
	if len(first) != len(want) {
		t.Errorf("%d of %d events arrived", len(first), len(want))
	}
	if len(k.arrivals) <= len(want) {
		t.Errorf("%d events arrived %d times: no kill fell between sending and noting", len(want), len(k.arrivals))
	}
	t.Logf("%d kills, %d events, %d requests", kills, len(want), len(k.arrivals))
}
