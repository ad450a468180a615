//go:build unix

package httpadapter_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// asWatchers makes this test binary customers in a process of their own: it reads the links, one a line,
// each as often as it is watched, up to an empty line. Its value says whether they take compressed
// answers: gzip or plain.
const asWatchers = "TRACKING_TEST_WATCH"

func init() {
	if os.Getenv(asWatchers) == "" {
		return
	}
	if err := watchAll(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// seen is what they tell when their input ends.
type seen struct {
	Events, Bytes int64
	P99           time.Duration // from the time of a fix to its event
}

// watchAll opens the streams, prints a line when all are open, and tells what they have seen since once
// its input ends.
func watchAll() error {
	in := bufio.NewScanner(os.Stdin)
	var links []string
	for in.Scan() && in.Text() != "" {
		links = append(links, in.Text())
	}
	var size atomic.Int64
	client := &http.Client{Transport: &http.Transport{
		DisableCompression: os.Getenv(asWatchers) == "plain",
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, address)
			return countedConn{conn, &size}, err
		},
	}}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var total seen
	var mu sync.Mutex
	var delays []time.Duration
	var events atomic.Int64
	var open, running sync.WaitGroup
	for _, link := range links {
		open.Add(1)
		running.Go(func() {
			opened := sync.OnceFunc(open.Done)
			defer opened()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, link+"/live", nil)
			if err != nil {
				return
			}
			resp, err := client.Do(req)
			if err != nil {
				return
			}
			defer resp.Body.Close()
			lines := bufio.NewReaderSize(resp.Body, 1<<10)
			name := ""
			var all []byte
			for {
				part, err := lines.ReadSlice('\n')
				all = append(all, part...)
				if err == bufio.ErrBufferFull {
					continue
				}
				if err != nil {
					return
				}
				line := bytes.TrimSuffix(all, []byte("\n"))
				if text, ok := bytes.CutPrefix(line, []byte("event: ")); ok {
					name = string(text)
				} else if text, ok := bytes.CutPrefix(line, []byte("data: ")); ok && name == "move" {
					var move struct {
						Position struct {
							Time time.Time `json:"time"`
						} `json:"position"`
					}
					if json.Unmarshal(text, &move) == nil {
						mu.Lock()
						delays = append(delays, time.Since(move.Position.Time))
						mu.Unlock()
						events.Add(1)
					}
				} else if ok {
					opened() // the first state
				}
				all = all[:0]
			}
		})
	}
	open.Wait()
	size.Store(0)
	fmt.Println("open")
	for in.Scan() { // until it ends
	}
	cancel()
	running.Wait()
	total.Events, total.Bytes = events.Load(), size.Load()
	if slices.Sort(delays); len(delays) > 0 {
		total.P99 = delays[len(delays)*99/100]
	}
	return json.NewEncoder(os.Stdout).Encode(total)
}

// countedConn counts the bytes that come.
type countedConn struct {
	net.Conn
	size *atomic.Int64
}

func (c countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.size.Add(int64(n))
	return n, err
}

// BenchmarkWatchers is 2,000 fixes a second of 1,000 drivers on their way, with ten customers each, in
// another process, on paths of a few points and of 450: the bytes of an event on the wire, the 99th percentile of
// the time from a fix to its event, the processor time here for each event, and the memory here for
// each watcher. Where fewer files may be open there are fewer watchers.
func BenchmarkWatchers(b *testing.B) {
	for _, encoding := range []string{"plain", "gzip"} {
		for _, points := range []int{5, 450} {
			b.Run(fmt.Sprintf("%s, %d points", encoding, points), func(b *testing.B) {
				benchmarkWatchers(b, encoding, points)
			})
		}
	}
}

func benchmarkWatchers(b *testing.B, encoding string, points int) {
	const rate = 2000
	drivers, each := watchersOf(b)
	var behind atomic.Int64 // the clock, until the paths have been driven
	behind.Store(int64(points) * int64(5*time.Second))
	now := func() time.Time { return time.Now().Add(-time.Duration(behind.Load())) }
	svc, err := tracking.New(memory.New(), &tracking.Options{Logger: quiet(), Now: now})
	if err != nil {
		b.Fatal(err)
	}
	h, err := httpadapter.New(svc, &httpadapter.Options{
		Keys: map[string]httpadapter.Principal{"k": {}}, Logger: quiet(),
	})
	if err != nil {
		b.Fatal(err)
	}
	srv := httptest.NewServer(h)
	defer srv.Close()
	defer svc.Close(context.Background())

	began := now()
	where := func(driver, n int) tracking.LngLat { // north, with turns that a path keeps
		return tracking.LngLat{Lng: 11 + float64(driver)*1e-3 + float64(n%3)*4e-4, Lat: 48 + float64(n)*3e-4}
	}
	ids := make([]tracking.DriverID, drivers)
	var links []string
	for d := range drivers {
		ids[d] = tracking.DriverID(fmt.Sprintf("driver-%d", d))
		at, to := where(d, 0), where(d, 10_000)
		if _, err := svc.SaveDriver(b.Context(), tracking.DriverUpdate{
			ID: ids[d], Available: new(true), LngLat: &at,
		}); err != nil {
			b.Fatal(err)
		}
		task, err := svc.CreateTask(b.Context(), tracking.NewTask{
			Type: tracking.TypeDrop, Drop: &tracking.Place{LngLat: &to, Address: "12 Beach Road"},
		})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := svc.AssignTask(b.Context(), task.ID, ids[d]); err != nil {
			b.Fatal(err)
		}
		if _, _, err := svc.StartTask(b.Context(), ids[d], task.ID, tracking.Step{}); err != nil {
			b.Fatal(err)
		}
		link, err := svc.TaskLink(b.Context(), task.ID)
		if err != nil {
			b.Fatal(err)
		}
		for range each {
			links = append(links, srv.URL+"/track/"+link)
		}
	}
	behind.Store(0)
	for d := range drivers {
		var path []tracking.Fix
		for n := range points {
			path = append(path, tracking.Fix{
				LngLat: where(d, n), Time: began.Add(time.Duration(n) * 5 * time.Second), Accuracy: tracking.Known(5),
			})
		}
		if _, err := svc.RecordFixes(b.Context(), ids[d], path); err != nil {
			b.Fatal(err)
		}
	}
	in, told, kept := openWatchers(b, encoding, links)

	var used time.Duration
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	n := 0
	for b.Loop() { // a second of traffic each
		start := processorTime(b)
		for range 200 {
			<-tick.C
			for range rate / 200 {
				d := n % drivers
				fix := tracking.Fix{
					LngLat: where(d, points+n/drivers), Time: time.Now().Truncate(time.Millisecond),
					Accuracy: tracking.Known(5),
				}
				if _, err := svc.RecordFixes(b.Context(), ids[d], []tracking.Fix{fix}); err != nil {
					b.Fatal(err)
				}
				n++
			}
		}
		used += processorTime(b) - start
	}
	in.Close()
	var saw seen
	if err := json.NewDecoder(told).Decode(&saw); err != nil {
		b.Fatal(err)
	}
	if saw.Events == 0 {
		b.Fatal("nobody has seen a move")
	}
	b.ReportMetric(float64(saw.Bytes)/float64(saw.Events), "B/event")
	b.ReportMetric(float64(saw.P99.Microseconds())/1e3, "p99-ms")
	b.ReportMetric(float64(used.Microseconds())/float64(saw.Events), "cpu-µs/event")
	b.ReportMetric(float64(saw.Events)/float64(n*each), "events/fix-and-watcher")
	b.ReportMetric(kept, "KiB/watcher")
}

// watchersOf is how many drivers are watched, and by how many each: by ten, or as many as there may be
// files open for.
func watchersOf(b *testing.B) (drivers, each int) {
	b.Helper()
	drivers, each = 1000, 10
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		b.Fatal(err)
	}
	for each > 1 && uint64(each*drivers+500) > files.Cur {
		each--
	}
	return drivers, each
}

// openWatchers has so many watch from another process, and tells the memory here for each.
func openWatchers(b *testing.B, encoding string, links []string) (in io.Closer, told *bufio.Reader, kept float64) {
	b.Helper()
	before := resident(b)
	to, told := startChild(b, asWatchers, encoding)
	if _, err := io.WriteString(to, strings.Join(links, "\n")+"\n\n"); err != nil {
		b.Fatal(err)
	}
	if line, err := told.ReadString('\n'); err != nil || line != "open\n" {
		b.Fatalf("%q, error %v", line, err)
	}
	return to, told, float64(resident(b)-before) / 1024 / float64(len(links))
}

// BenchmarkBareWatchers is the memory for each watcher of a handler that sends one event and waits.
func BenchmarkBareWatchers(b *testing.B) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if _, err := io.WriteString(w, "event: state\ndata: {}\n\n"); err != nil {
			return
		}
		if http.NewResponseController(w).Flush() == nil {
			<-r.Context().Done()
		}
	}))
	defer srv.Close()
	drivers, each := watchersOf(b)
	in, told, kept := openWatchers(b, "plain", slices.Repeat([]string{srv.URL}, drivers*each))
	for b.Loop() {
	}
	in.Close()
	if _, err := told.ReadString('\n'); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(kept, "KiB/watcher")
}

// resident is the memory of this process, in bytes, without what is only garbage.
func resident(b *testing.B) int64 {
	b.Helper()
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip(err)
	}
	pages, err := strconv.ParseInt(strings.Fields(string(text))[1], 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}
