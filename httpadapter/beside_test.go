//go:build unix

package httpadapter_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// BenchmarkBesideBare is calls over the network, over the memory store, beside a handler that does
// nothing but read and write the same bodies by encoding/json. The clients are another process, so
// that the time of the CPU is that of the server. Both sides take turns; a ratio is the median of
// the rounds.
func BenchmarkBesideBare(b *testing.B) {
	b.Run("logging off", func(b *testing.B) { benchmarkBeside(b, false) })
}

// BenchmarkBesideUnlogged is the same calls with requests logged as they are by default, to a file,
// beside those where they are not.
func BenchmarkBesideUnlogged(b *testing.B) {
	f, err := os.Create(b.TempDir() + "/log")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	before := log.Writer()
	log.SetOutput(f)
	defer log.SetOutput(before)
	benchmarkBeside(b, true)
}

const (
	besideClients = 16
	createBody    = `{"type":3,"pickup":{"lnglat":[80.26,13],"address":"Depot"},"drop":{"lnglat":[80.27,13.08],` +
		`"address":"12 Beach Road","customer":{"name":"Asha","mobile":"+91 98"}},"order_id":"#1001","notes":"Ring twice",` +
		`"time":"2026-03-14T15:30:00+05:30"}`
	fixBody = `{"fixes":[{"lnglat":[80.2571,13.0102],"time":"` + loadTime +
		`","accuracy":8,"speed":7.2,"bearing":74,"battery":0.8}]}`
)

// bareCreate and bareFixes are what the bare handler reads.
type (
	barePlace struct {
		LngLat   []float64         `json:"lnglat"`
		Address  string            `json:"address"`
		Customer map[string]string `json:"customer"`
	}
	bareCreate struct {
		Type    int       `json:"type"`
		Pickup  barePlace `json:"pickup"`
		Drop    barePlace `json:"drop"`
		OrderID string    `json:"order_id"`
		Notes   string    `json:"notes"`
		Time    time.Time `json:"time"`
	}
	bareFixes struct {
		Fixes []struct {
			LngLat   []float64 `json:"lnglat"`
			Time     time.Time `json:"time"`
			Accuracy float64   `json:"accuracy"`
			Speed    float64   `json:"speed"`
			Bearing  float64   `json:"bearing"`
			Battery  float64   `json:"battery"`
		} `json:"fixes"`
	}
)

// bareAnswer is the envelope with its data.
type bareAnswer[T any] struct {
	Message string `json:"message"`
	Success bool   `json:"success"`
	Data    T      `json:"data"`
}

// bare answers every call with the same value, encoded each time.
func bare[Body, Data any](b *testing.B, like []byte) http.Handler {
	var answer bareAnswer[Data]
	if err := json.Unmarshal(like, &answer); err != nil {
		b.Fatal(err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			var body Body
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		text, err := json.Marshal(answer)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(text)))
		_, _ = w.Write(text) // the client sees what has not arrived
	})
}

func benchmarkBeside(b *testing.B, logged bool) {
	svc, err := tracking.New(memory.New(), &tracking.Options{Logger: quiet()})
	if err != nil {
		b.Fatal(err)
	}
	handler := func(logger *slog.Logger) http.Handler {
		h, err := httpadapter.New(svc, &httpadapter.Options{
			Keys: map[string]httpadapter.Principal{"k": {}}, Logger: logger,
		})
		if err != nil {
			b.Fatal(err)
		}
		return h
	}
	h := handler(quiet())
	tokens := make([]string, besideClients)
	for i := range tokens {
		inv, err := svc.InviteDriver(b.Context(), tracking.NewInvite{DriverID: tracking.DriverID(fmt.Sprint("d", i))})
		if err != nil {
			b.Fatal(err)
		}
		joined, err := svc.Join(b.Context(), tracking.JoinRequest{Token: inv.Token})
		if err != nil {
			b.Fatal(err)
		}
		tokens[i] = joined.Token
	}
	call := func(method, target, body string) []byte {
		r := httptest.NewRequest(method, target, strings.NewReader(strings.ReplaceAll(body, loadTime,
			time.Now().UTC().Format(time.RFC3339Nano))))
		r.Header.Set("X-Api-Key", "k")
		r.Header.Set("Authorization", "Bearer "+tokens[0])
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != 200 {
			b.Fatalf("%s %s: %d %s", method, target, w.Code, w.Body)
		}
		return w.Body.Bytes()
	}
	var made bareAnswer[struct{ Task httpadapter.WireTask }]
	for range 100 {
		if err := json.Unmarshal(call("POST", "/v1/task/create", createBody), &made); err != nil {
			b.Fatal(err)
		}
	}
	get, list := "/v1/task?task_id="+string(made.Data.Task.ID), "/v1/task/list?limit=10"
	type one = struct {
		Task httpadapter.WireTask `json:"task"`
	}
	for _, c := range []struct {
		name, method, target, body string
		bare                       http.Handler
	}{
		{"create", "POST", "/v1/task/create", createBody, bare[bareCreate, struct {
			Task        httpadapter.WireTask `json:"task"`
			TrackingURL string               `json:"tracking_url"`
		}](b, call("POST", "/v1/task/create", createBody))},
		{"get", "GET", get, "", bare[struct{}, one](b, call("GET", get, ""))},
		{"list of 10", "GET", list, "", bare[struct{}, struct {
			Tasks []httpadapter.WireTask `json:"task_list"`
			More  bool                   `json:"has_more"`
			Next  string                 `json:"next"`
		}](b, call("GET", list, ""))},
		{"fix", "POST", "/v1/driver/fixes", fixBody, bare[bareFixes, struct {
			Outcomes []string `json:"outcomes"`
		}](b, call("POST", "/v1/driver/fixes", fixBody))},
	} {
		load := func(b *testing.B, h http.Handler) *load {
			s := httptest.NewServer(h)
			b.Cleanup(s.Close)
			requests := make([]string, besideClients)
			for i := range requests {
				requests[i] = fmt.Sprintf("%s %s HTTP/1.1\r\nHost: shop.example\r\nX-Api-Key: k\r\n"+
					"Authorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
					c.method, c.target, tokens[i], len(c.body), c.body)
			}
			return startLoad(b, s.Listener.Addr().String(), requests)
		}
		b.Run(c.name, func(b *testing.B) {
			of, ours, other := "bare", h, c.bare
			if logged {
				of, ours, other = "unlogged", handler(nil), h
			}
			benchmarkLoads(b, of, load(b, ours), load(b, other))
		})
		if logged && c.name == "get" {
			b.Run("bare get", func(b *testing.B) { benchmarkLoads(b, "unlogged", load(b, withLine(c.bare)), load(b, c.bare)) })
		}
		if logged {
			continue
		}
		switch c.name {
		case "create":
			b.Run("bare create", func(b *testing.B) { benchmarkLoads(b, "bare", load(b, creating(svc, c.bare)), load(b, c.bare)) })
		case "get":
			id := made.Data.Task.ID
			b.Run("bare get", func(b *testing.B) { benchmarkLoads(b, "bare", load(b, guarding(svc, id, c.bare)), load(b, c.bare)) })
		}
	}
}

// creating is a bare handler that has the Service create a task too: the least that a create takes.
func creating(svc *tracking.Service, bare http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := svc.CreateTask(r.Context(), tracking.NewTask{
			Type:   tracking.TypePickupAndDrop,
			Pickup: &tracking.Place{LngLat: &tracking.LngLat{Lng: 80.26, Lat: 13}, Address: "Depot"},
			Drop: &tracking.Place{
				LngLat: &tracking.LngLat{Lng: 80.27, Lat: 13.08}, Address: "12 Beach Road",
				Customer: &tracking.Contact{Name: "Asha", Mobile: "+91 98"},
			},
			OrderID: "#1001", Notes: "Ring twice", Time: time.Date(2026, 3, 14, 10, 0, 0, 0, time.UTC),
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		bare.ServeHTTP(w, r)
	})
}

// guarding is a bare handler that finds the task too, and whose answers have a time to be written in, and
// the headers that ours have.
func guarding(svc *tracking.Service, id tracking.TaskID, bare http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := svc.Task(r.Context(), id); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("X-Request-Id", "0123456789abcdef")
		// A server without deadlines has none to set, and the client sees nothing of it.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute))
		bare.ServeHTTP(w, r)
	})
}

// withLine is a bare handler with a line for each call like ours.
func withLine(bare http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		bare.ServeHTTP(w, r)
		slog.LogAttrs(r.Context(), slog.LevelInfo, "request",
			slog.String("request_id", "0123456789abcdef"), slog.String("method", r.Method), slog.Int("status", 200),
			slog.Duration("duration", time.Since(began)), slog.Int("bytes", 700), slog.String("client", "127.0.0.1"),
			slog.String("route", r.URL.Path), slog.String("app", "default"), slog.String("actor", "dispatch"))
	})
}

// benchmarkLoads has both sides take turns, and turns at being first.
func benchmarkLoads(b *testing.B, of string, ours, other *load) {
	var cpu, rate, each []float64
	b.ResetTimer()
	const rounds = 15
	sides := [2]*load{ours, other}
	for i := range rounds {
		n := b.N/rounds + 1
		var used, took [2]time.Duration
		for k := range sides {
			side := (k + i) % 2 // who comes second finds more tasks there
			used[side], took[side] = sides[side].run(b, n)
		}
		cpu = append(cpu, float64(used[0])/float64(used[1]))
		rate = append(rate, float64(took[1])/float64(took[0]))
		each = append(each, float64(used[0])/float64(n)/1000)
	}
	b.ReportMetric(median(each), "µs-CPU")
	b.ReportMetric(median(cpu), "×CPU-of-"+of)
	b.ReportMetric(median(rate), "×rate-of-"+of)
	b.ReportMetric(0, "ns/op")
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// load is a process with many clients, each of which sends a request of its own over and over.
type load struct {
	in  io.Writer
	out *bufio.Reader
}

// loadTime stands in a request for a time that is later with each.
const loadTime = "2026-01-01T00:00:00.000Z"

// loadEnv tells the test program to be the clients.
const loadEnv = "TRACKING_TEST_LOAD"

func startLoad(b *testing.B, addr string, requests []string) *load {
	text, err := json.Marshal(requests)
	if err != nil {
		b.Fatal(err)
	}
	in, out := startChild(b, loadEnv, addr)
	if _, err := fmt.Fprintf(in, "%s\n", text); err != nil {
		b.Fatal(err)
	}
	return &load{in, out}
}

// startChild starts this test program once more, told by a variable what it is to be. It ends when its
// input does, at the end of the benchmark at the latest.
func startChild(b *testing.B, variable, value string) (in io.WriteCloser, out *bufio.Reader) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), variable+"="+value)
	cmd.Stderr = os.Stderr
	if in, err = cmd.StdinPipe(); err != nil {
		b.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			b.Error(err)
		}
	})
	return in, bufio.NewReader(stdout)
}

// run has n requests made, and tells the time that this process has had the CPU, and the time that
// went by.
func (l *load) run(b *testing.B, n int) (cpu, passed time.Duration) {
	cpu = -processorTime(b)
	start := time.Now()
	if _, err := fmt.Fprintln(l.in, n); err != nil {
		b.Fatal(err)
	}
	if done, err := l.out.ReadString('\n'); err != nil {
		b.Fatal(done, err)
	}
	return cpu + processorTime(b), time.Since(start)
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func init() {
	addr := os.Getenv(loadEnv)
	if addr == "" {
		return
	}
	if err := runLoad(addr, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runLoad is the process of startLoad.
func runLoad(addr string, in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	text, err := lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	var requests []string
	if err := json.Unmarshal(text, &requests); err != nil {
		return err
	}
	clients := make([]*loadClient, len(requests))
	for i, r := range requests {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		defer conn.Close()
		from := time.Now().Add(-10 * time.Minute)
		clients[i] = &loadClient{conn, bufio.NewReader(conn), []byte(r), strings.Index(r, loadTime), from}
	}
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return nil
		}
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return err
		}
		errs := make([]error, len(clients))
		var working sync.WaitGroup
		for i, c := range clients {
			working.Go(func() {
				for range n/len(clients) + 1 {
					if errs[i] = c.call(); errs[i] != nil {
						return
					}
				}
			})
		}
		working.Wait()
		for _, err := range errs {
			if err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintln(out, "done"); err != nil {
			return err
		}
	}
}

type loadClient struct {
	conn    net.Conn
	answers *bufio.Reader
	request []byte
	timeAt  int
	time    time.Time
}

// call sends the request and reads what comes, with as little work as can be.
func (c *loadClient) call() error {
	if c.timeAt >= 0 {
		c.time = c.time.Add(time.Millisecond)
		copy(c.request[c.timeAt:], c.time.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	status, err := c.answers.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 200")) {
		rest, _ := c.answers.Peek(c.answers.Buffered())
		return fmt.Errorf("%s\nwas answered %s%s", c.request, status, rest)
	}
	var length int
	for {
		line, err := c.answers.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(v))); err != nil {
				return err
			}
		}
	}
	_, err = c.answers.Discard(length)
	return err
}
