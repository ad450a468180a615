package httpadapter_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// narrow is a listener whose connections hold little of what is written and not read yet.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(32 << 10)
	}
	return c, err
}

// 200 boards look on, over sockets, of which a quarter does not read: what happens goes on, what is kept
// for them does not grow with it, and whoever reads ends up with the newest, the others when they go on.
func TestManyBoards(t *testing.T) {
	const boards, drivers, changes, last = 200, 100, 4000, "the very last"
	svc, err := tracking.New(memory.New(), &tracking.Options{Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpadapter.New(svc, &httpadapter.Options{
		Keys: map[string]httpadapter.Principal{"k": {}}, Logger: quiet(),
		WriteTimeout: time.Hour, // else who does not read is cut off, where all of it takes half a minute
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(h)
	server.Listener = narrow{server.Listener}
	server.Start()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
		if err := svc.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	at := tracking.LngLat{Lng: 11, Lat: 48}
	for n := range drivers {
		must(svc.SaveDriver(t.Context(), tracking.DriverUpdate{
			ID: tracking.DriverID(fmt.Sprint(n)), Available: new(true), LngLat: &at,
		}))(t)
	}
	var tasks []tracking.TaskID
	for range 50 {
		task := must(svc.CreateTask(t.Context(), tracking.NewTask{
			Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: &at, Address: "12 Beach Road"},
		}))(t)
		tasks = append(tasks, task.ID)
	}

	// follow reads until something is told, and says of how many tasks it was told till then.
	follow := func(r *bufio.Reader, until string) (told int) {
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				t.Errorf("a board was cut off after %d tasks: %v", told, err)
				return told
			}
			if strings.HasPrefix(line, "event: task") {
				told++
			}
			if strings.Contains(line, until) {
				return told
			}
		}
	}
	open := func() *bufio.Reader {
		c := must((&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String()))(t)
		t.Cleanup(func() { c.Close() })
		if err := c.(*net.TCPConn).SetReadBuffer(32 << 10); err != nil {
			t.Fatal(err)
		}
		req := must(http.NewRequestWithContext(t.Context(), "GET", server.URL+"/v1/live?apikey=k", nil))(t)
		if err := req.Write(c); err != nil {
			t.Fatal(err)
		}
		return bufio.NewReader(c)
	}
	var stuck []*bufio.Reader
	var ready, done sync.WaitGroup
	for n := range boards {
		r := open()
		if n%4 == 3 {
			stuck = append(stuck, r)
			continue
		}
		ready.Add(1)
		done.Go(func() {
			follow(r, "event: ready")
			ready.Done()
			follow(r, last)
		})
	}
	one := open()
	follow(one, "event: ready")
	ready.Wait()

	began := time.Now()
	happen := func(from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			fix := tracking.Fix{LngLat: at, Time: began.Add(time.Duration(n) * 20 * time.Millisecond)}
			if _, err := svc.RecordFixes(t.Context(), tracking.DriverID(fmt.Sprint(n%drivers)), []tracking.Fix{fix}); err != nil {
				t.Fatal(err)
			}
			notes := fmt.Sprint(strings.Repeat("note ", 40), n)
			must(svc.UpdateTask(t.Context(), tasks[n%len(tasks)], tracking.TaskUpdate{Notes: &notes}))(t)
			if n%100 == 99 { // all that read are told of it meanwhile, and not at the end alone
				follow(one, notes)
			}
		}
	}
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	happen(0, changes/4)
	before := heap()
	happen(changes/4, changes)
	// Each change as it is sent, kept for each board that does not read, is 90 MB. The changes
	// themselves, with their events, are a few; boards that read and are behind on a busy machine
	// have up to 20 in hand, at one moment or the other.
	grown := heap() - before
	t.Logf("%.1f MB more are held", float64(grown)/1e6)
	if grown > 45e6 {
		t.Errorf("%d bytes more are held", grown)
	}
	note := last
	must(svc.UpdateTask(t.Context(), tasks[0], tracking.TaskUpdate{Notes: &note}))(t)
	done.Wait()
	for _, r := range stuck[:5] {
		if told := follow(r, last); told > changes/2 {
			t.Errorf("one that read nothing is told of %d tasks afterwards", told)
		}
	}
}

func must[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
