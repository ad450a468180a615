package httpadapter_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// pipes is a listener whose connections are pipes, so that their time is the bubble's.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.closed)
	return nil
}

func (*pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.conns <- far:
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serveHTTP2 serves h in a bubble, by HTTP/2 only.
func serveHTTP2(t *testing.T, h http.Handler) (transport *http.Transport, stop func()) {
	t.Helper()
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	p := &pipes{make(chan net.Conn), make(chan struct{})}
	srv := &http.Server{Handler: h, Protocols: &only}
	done := make(chan error)
	go func() { done <- srv.Serve(p) }()
	transport = &http.Transport{Protocols: &only, DialContext: p.dial}
	return transport, func() {
		transport.CloseIdleConnections()
		srv.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}
}

// TestHTTP2Silence: in HTTP/2 a write's deadline ends the stream even when nothing is being
// written. A stream that is silent for longer than a write may take lives on.
func TestHTTP2Silence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, err := tracking.New(memory.New(), &tracking.Options{Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		defer svc.Close(t.Context())
		created, err := svc.CreateTask(t.Context(), tracking.NewTask{
			Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "12 River Street"},
		})
		if err != nil {
			t.Fatal(err)
		}
		token, err := svc.TaskLink(t.Context(), created.ID)
		if err != nil {
			t.Fatal(err)
		}
		h, err := httpadapter.New(svc, &httpadapter.Options{
			WriteTimeout: time.Second, Heartbeat: time.Minute, Logger: quiet(),
		})
		if err != nil {
			t.Fatal(err)
		}

		transport, stop := serveHTTP2(t, h)
		defer stop()
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://track.example/track/"+token+"/live", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.ProtoMajor != 2 || res.StatusCode != 200 {
			t.Fatalf("%s %s", res.Proto, res.Status)
		}
		beats, lines := 0, bufio.NewScanner(res.Body)
		for beats < 3 && lines.Scan() {
			if lines.Text() == ": still here" {
				beats++
			}
		}
		if beats < 3 {
			t.Errorf("the stream ended after %d heartbeats: %v", beats, lines.Err())
		}
	})
}

// slowPath is a store that reads a path slowly.
type slowPath struct{ tracking.Store }

func (p *slowPath) Fixes(_ context.Context, _ tracking.AppID, _ tracking.DriverID,
	r tracking.FixRange) iter.Seq2[tracking.Fix, error] {
	return func(yield func(tracking.Fix, error) bool) {
		for i := range 2000 {
			if i%500 == 0 {
				time.Sleep(time.Minute) // of the bubble
			}
			if !yield(tracking.Fix{
				LngLat: tracking.LngLat{Lng: 80, Lat: 13}, Time: r.From.Add(time.Duration(i) * time.Second),
			}, nil) {
				return
			}
		}
	}
}

// TestHTTP2SlowStore: a history comes whole, however long the store takes between two writes.
func TestHTTP2SlowStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, err := tracking.New(&slowPath{memory.New()}, &tracking.Options{Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		defer svc.Close(t.Context())
		if _, err := svc.SaveDriver(t.Context(), tracking.DriverUpdate{ID: "ravi"}); err != nil {
			t.Fatal(err)
		}
		trip, err := svc.StartTrip(t.Context(), "ravi", "T", tracking.Step{})
		if err != nil {
			t.Fatal(err)
		}
		h, err := httpadapter.New(svc, &httpadapter.Options{
			Keys: map[string]httpadapter.Principal{"k": {}}, WriteTimeout: time.Second, Logger: quiet(),
		})
		if err != nil {
			t.Fatal(err)
		}
		transport, stop := serveHTTP2(t, h)
		defer stop()
		req, err := http.NewRequestWithContext(t.Context(), "GET",
			"http://track.example/v1/triphistory/"+string(trip.ID)+"?apikey=k", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var v struct{ Data struct{ Loc []any } }
		if err := json.NewDecoder(res.Body).Decode(&v); err != nil || len(v.Data.Loc) != 2000 {
			t.Errorf("%d fixes, %v", len(v.Data.Loc), err)
		}
	})
}

// TestHTTP2BodiesAreTheCallers: of many on one connection, some of whom break off while they send or
// go away before the answer, each gets what he sent, under the headers that his answer has.
func TestHTTP2BodiesAreTheCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		svc, err := tracking.New(memory.New(), &tracking.Options{Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		defer svc.Close(t.Context())
		h, err := httpadapter.New(svc, &httpadapter.Options{
			Keys: map[string]httpadapter.Principal{"k": {}}, Logger: quiet(),
		})
		if err != nil {
			t.Fatal(err)
		}
		transport, stop := serveHTTP2(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h.ServeHTTP(w, r)
			for name, values := range w.Header() { // too late for this answer, and of none other
				values[0] = "changed"
				w.Header()[name] = append(values, "and another")
			}
		}))
		defer stop()
		var calling sync.WaitGroup
		for i := range 8 {
			calling.Go(func() {
				for k := range 30 {
					order := strings.Repeat(fmt.Sprintf("%d.%d ", i, k), 1+k%20)
					text := `{"type":2,"order_id":"` + order + `","drop":{"address":"` + order + `"}}`
					ctx, leave := context.WithCancel(t.Context())
					var body io.Reader = strings.NewReader(text)
					if k%5 == 3 {
						body = io.MultiReader(strings.NewReader(text[:40]), iotest.ErrReader(errors.New("gone")))
					}
					method, target := "POST", "/v1/task/create"
					if k%5 == 4 { // with no body, as who leaves while one is sent races with the client's own reading
						method, target, body = "GET", "/v1/task/list", nil
					}
					req, err := http.NewRequestWithContext(ctx, method, "http://track.example"+target+"?apikey=k", body)
					if err != nil {
						t.Error(err)
						leave()
						return
					}
					if k%5 == 4 {
						go leave()
					}
					res, err := transport.RoundTrip(req)
					if err != nil {
						if k%5 < 3 {
							t.Error(err)
						}
						leave()
						continue
					}
					answer, err := io.ReadAll(res.Body)
					res.Body.Close()
					leave()
					if k%5 > 2 {
						continue
					}
					if err != nil || res.StatusCode != 200 || !strings.Contains(string(answer), `"order_id":"`+order+`"`) ||
						!strings.Contains(string(answer), `"address":"`+order+`"`) || strings.Join(res.Header["Cache-Control"], ",") != "no-store" {
						t.Errorf("sent %s\ngot %s %v %s %v", text, res.Status, res.Header, answer, err)
					}
				}
			})
		}
		calling.Wait()
	})
}
