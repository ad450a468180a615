package httpadapter_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// sluggish is a store that takes its time to commit.
type sluggish struct {
	tracking.Store
	takes time.Duration
}

func (s *sluggish) Commit(ctx context.Context, app tracking.AppID, cs *tracking.Changeset) (tracking.Written, error) {
	time.Sleep(s.takes)
	return s.Store.Commit(ctx, app, cs)
}

// serverEnd is the server's end of a connection.
type serverEnd struct {
	net.Conn
	closed func() // it is called when the server closes it
}

func (e serverEnd) Close() error {
	e.closed()
	return e.Conn.Close()
}

// slowClient is one who is in no hurry.
type slowClient struct {
	*testing.T
	net.Conn
	in     *bufio.Reader
	closed chan struct{} // by the server
	began  time.Time
	svc    *tracking.Service
	h      *httpadapter.Handler
	server *pipes
	store  *sluggish
	token  string // a driver's
	link   string // of task
	task   tracking.TaskID
}

func (c *slowClient) send(text string) {
	c.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.Fatal(err)
	}
}

// wants reads an answer.
func (c *slowClient) wants(status int) (body string) {
	c.Helper()
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		c.Fatal(err)
	}
	b, err := io.ReadAll(res.Body)
	if err != nil {
		c.Fatal(err)
	}
	if res.StatusCode != status {
		c.Errorf("%s %s, want %d", res.Status, b, status)
	}
	return string(b)
}

// after checks how long it has been since the last time, or the beginning.
func (c *slowClient) after(want time.Duration) {
	c.Helper()
	if took := time.Since(c.began); took != want {
		c.Errorf("it took %v, want %v", took, want)
	}
	c.began = time.Now()
}

// TestTimeOfCalls: a body has its time to arrive, and each write of an answer its time to be taken,
// however the rest of the call goes, and nothing of that is left to the next one.
func TestTimeOfCalls(t *testing.T) {
	const (
		list   = "GET /v1/task/list?apikey=k HTTP/1.1\r\nHost: x\r\n\r\n"
		post   = " HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
		create = "POST /v1/task/create?apikey=k" + post
		body   = `{"type":2,"drop":{"address":"x"}}`
		whole  = create + "33\r\n\r\n" + body
	)
	for name, call := range map[string]func(*slowClient){
		"a body that stops": func(c *slowClient) {
			c.send(create + "33\r\n\r\n{")
			if body := c.wants(400); !strings.Contains(body, "in time") {
				c.Error(body)
			}
			c.after(8 * time.Second)
		},
		"a body that nobody reads, and that stops": func(c *slowClient) {
			c.send("POST /v1/nothing" + post + "33\r\n\r\n{")
			c.wants(404)
			c.after(8 * time.Second)
			<-c.closed
		},
		"a body of a caller whom nobody knows": func(c *slowClient) {
			c.send("POST /v1/task/create" + post + "33\r\n\r\n{")
			c.wants(401)
			c.after(8 * time.Second)
			<-c.closed
		},
		"a batch has six times as long": func(c *slowClient) {
			c.send("POST /v1/driver/fixes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + c.token +
				"\r\nContent-Length: 100\r\n\r\n{")
			c.wants(400)
			c.after(48 * time.Second)
		},
		"an answer that nobody takes": func(c *slowClient) {
			c.send(list)
			<-c.closed
			c.after(30 * time.Second)
		},
		"an answer to a body that nobody takes": func(c *slowClient) {
			c.send(whole)
			<-c.closed
			c.after(30 * time.Second)
		},
		"an error that nobody takes": func(c *slowClient) {
			c.send("GET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n")
			<-c.closed
			c.after(30 * time.Second)
		},
		"an answer to HEAD that nobody takes": func(c *slowClient) {
			c.send(strings.Replace(list, "GET", "HEAD", 1))
			<-c.closed
			c.after(30 * time.Second)
		},
		"a page that nobody takes": func(c *slowClient) {
			c.send("GET " + c.link + " HTTP/1.1\r\nHost: x\r\n\r\n")
			<-c.closed
			c.after(30 * time.Second)
		},
		"one after another, with long silence between": func(c *slowClient) {
			for _, text := range []string{list, whole, list, whole, whole, list} {
				c.send(text)
				c.wants(200)
				c.after(0)
				time.Sleep(time.Hour)
				c.began = time.Now()
			}
		},
		"all takes as long as it may": func(c *slowClient) {
			for range 3 {
				c.send(create + "33\r\n\r\n{")
				time.Sleep(8*time.Second - 1)
				c.store.takes = time.Minute
				c.send(body[1:])
				time.Sleep(90*time.Second - 1) // of the store, and of the answer
				c.wants(200)
				time.Sleep(time.Minute)
			}
		},
		"a stream that is silent for long, and then is not read": func(c *slowClient) {
			c.send("GET " + c.link + "/live HTTP/1.1\r\nHost: x\r\n\r\n")
			res, err := http.ReadResponse(c.in, nil)
			if err != nil {
				c.Fatal(err)
			}
			lines := bufio.NewScanner(res.Body)
			until := func(line string) {
				c.Helper()
				for lines.Scan() && !strings.HasPrefix(lines.Text(), line) {
				}
				if lines.Err() != nil || lines.Text() == "" {
					c.Fatalf("no %s: %v", line, lines.Err())
				}
			}
			until("event: state")
			until("data: ")
			for range 3 {
				until(": still here")
			}
			c.after(3 * time.Hour)
			time.Sleep(time.Hour + 30*time.Second - 1) // nobody takes the next
			until(": still here")
			time.Sleep(time.Hour - 30*time.Second + 1)
			c.began = time.Now()
			<-c.closed
			c.after(30 * time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newSlowClient(t)
				call(c)
			})
		})
	}
}

// newSlowClient connects to a server by HTTP/1, in a bubble.
func newSlowClient(t *testing.T) *slowClient {
	c := &slowClient{T: t, closed: make(chan struct{}), store: &sluggish{Store: memory.New()}}
	svc, err := tracking.New(c.store, &tracking.Options{Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	joined := join(t, svc, "ravi")
	task, err := svc.CreateTask(t.Context(), tracking.NewTask{
		Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "12 River Street"},
	})
	if err != nil {
		t.Fatal(err)
	}
	link, err := svc.TaskLink(t.Context(), task.ID)
	if err != nil {
		t.Fatal(err)
	}
	c.h, err = httpadapter.New(svc, &httpadapter.Options{
		Keys: map[string]httpadapter.Principal{"k": {}}, Logger: quiet(), Heartbeat: time.Hour,
		ReadTimeout: 8 * time.Second, WriteTimeout: 30 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.token, c.link = joined.Token, c.h.TrackingURL(link)
	c.svc, c.task, c.server = svc, task.ID, &pipes{make(chan net.Conn), make(chan struct{})}
	srv := &http.Server{Handler: c.h}
	done := make(chan error)
	go func() { done <- srv.Serve(c.server) }()
	t.Cleanup(func() {
		svc.Close(t.Context())
		srv.Close()
		<-done
	})
	c.connect()
	return c
}

// connect opens a connection, the first one or a new one.
func (c *slowClient) connect() {
	near, far := net.Pipe()
	closed := make(chan struct{})
	c.closed = closed
	c.server.conns <- serverEnd{far, sync.OnceFunc(func() { close(closed) })}
	c.Conn, c.in, c.began = near, bufio.NewReader(near), time.Now()
	c.Cleanup(func() { near.Close() })
}

// TestHeartbeats: all who watch a link hear that it is there when they have heard nothing for so long,
// whenever they came; what is not sent does not put that off.
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSlowClient(t) // with a heartbeat an hour
		began := time.Now()
		at := func(when time.Duration) { time.Sleep(time.Until(began.Add(when))) }
		var mu sync.Mutex
		heard := map[string][]string{}
		watch := func(who string) {
			c.connect()
			c.send("GET " + c.link + "/live HTTP/1.1\r\nHost: x\r\n\r\n")
			res, err := http.ReadResponse(c.in, nil)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				for lines := bufio.NewScanner(res.Body); lines.Scan(); {
					if text := lines.Text(); strings.HasPrefix(text, ":") || strings.HasPrefix(text, "event: ") {
						mu.Lock()
						heard[who] = append(heard[who], fmt.Sprint(text, " ", time.Since(began)))
						mu.Unlock()
					}
				}
			}()
		}
		update := func(u tracking.TaskUpdate) {
			if _, err := c.svc.UpdateTask(t.Context(), c.task, u); err != nil {
				t.Fatal(err)
			}
		}
		watch("first")
		at(30 * time.Minute)
		watch("second")
		at(90 * time.Minute)
		order := "A1"
		update(tracking.TaskUpdate{OrderID: &order})
		at(120 * time.Minute)
		notes := "for the driver"
		update(tracking.TaskUpdate{Notes: &notes})
		update(tracking.TaskUpdate{Drop: &tracking.Place{LngLat: &tracking.LngLat{Lng: 80.25, Lat: 13}}})
		at(150 * time.Minute)
		update(tracking.TaskUpdate{Drop: &tracking.Place{LngLat: &tracking.LngLat{Lng: 80.25 + 1e-9, Lat: 13}}})
		at(190 * time.Minute)
		want := []string{": still here 1h0m0s", "event: state 1h30m0s", "event: state 2h0m0s", ": still here 3h0m0s"}
		mu.Lock()
		defer mu.Unlock()
		if d := cmp.Diff(map[string][]string{
			"first": append([]string{"event: state 0s"}, want...), "second": append([]string{"event: state 30m0s"}, want...),
		}, heard); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	})
}

// TestStateOfALongWatchedLink: who comes later is sent the same, also where it is not kept so long.
func TestStateOfALongWatchedLink(t *testing.T) {
	s := newServer(t)
	link := s.link(s.newTask(""))
	_, first := s.watch(link).next()
	for range 3 {
		runtime.GC()
		if event, data := s.watch(link).next(); event != "state" || data != first {
			t.Errorf("%s %s, want %s", event, data, first)
		}
	}
}
