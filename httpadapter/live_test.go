package httpadapter_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

// viewer is an open stream.
type viewer struct {
	*server
	res  *http.Response
	r    *bufio.Reader
	stop context.CancelFunc
	id   string // of the last event
}

func (s *server) watch(link string) *viewer {
	s.Helper()
	ctx, stop := context.WithTimeout(s.Context(), time.Minute) // only keeps a broken test from hanging
	s.Cleanup(stop)
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+link+"/live", nil)
	if err != nil {
		s.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { res.Body.Close() })
	return &viewer{s, res, bufio.NewReader(res.Body), stop, ""}
}

// next reads one event, heartbeats left out; an end of the stream is "EOF".
func (v *viewer) next() (event, data string) {
	v.Helper()
	for {
		line, err := v.r.ReadString('\n')
		if err != nil {
			return "EOF", err.Error()
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" && event != "":
			return event, data
		case strings.HasPrefix(line, "id: "):
			v.id = line[4:]
		case strings.HasPrefix(line, "event: "):
			event = line[7:]
		case strings.HasPrefix(line, "data: "):
			data += line[6:]
		}
	}
}

// link is the path of a task's tracking link.
func (s *server) link(task string) string {
	s.Helper()
	return strings.TrimPrefix(text(s.data(s.app("GET", "/v1/task/trackingurl/"+task, "")), "webUrl"), s.base)
}

func TestLive(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	s.fix(token, 80.26, 13)
	task := s.newTask("")
	link := s.link(task)
	v := s.watch(link)
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store",
		"X-Content-Type-Options": "nosniff", "X-Robots-Tag": "noindex, nofollow",
	} {
		if v.res.Header.Get(name) != want {
			t.Errorf("%s is %q", name, v.res.Header.Get(name))
		}
	}
	expect := func(want string, name ...string) string {
		t.Helper()
		event, data := v.next()
		if event != append(name, "state")[0] || !strings.Contains(data, want) {
			t.Fatalf("event %s: %s, want %s", event, data, want)
		}
		return data
	}
	if data := expect(`"status":"created"`); `{"message":"Tracking","success":true,"data":{"tracking":`+data+
		"}}\n" != s.do("GET", link+"/state", "").body {
		t.Errorf("the stream says something else than the state: %s", data)
	}
	s.data(s.app("POST", "/v1/task/assign", `{"task_id":"`+task+`","driver_id":"ravi"}`))
	expect(`"status":"assigned"`)
	s.clock.Advance(time.Minute)
	s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/start", `{"lnglat":[80.26,13]}`))
	expect(`"status":"in_progress"`)
	s.clock.Advance(time.Minute)
	s.fix(token, 80.261, 13)
	expect(`{"position":{"lnglat":[80.261,13],"time":"2026-03-14T09:02:00.000Z","live":true},"path_add":[[80.261,13]],"eta":{`, "move")
	s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/complete", ""))
	if data := expect(`"status":"completed"`); strings.Contains(data, "80.26") && strings.Contains(data, "position") {
		t.Errorf("the final state has a position: %s", data)
	}
	if event, _ := v.next(); event != "end" {
		t.Errorf("event %s, want end", event)
	}
	if event, _ := v.next(); event != "EOF" {
		t.Errorf("event %s after the end", event)
	}
	if r := s.do("GET", link+"/live", ""); r.status != 204 || r.body != "" {
		t.Errorf("when all is over: %d %s", r.status, r.body)
	}
	if r := s.do("HEAD", link+"/live", ""); r.status != 204 {
		t.Errorf("HEAD when all is over: %d", r.status)
	}
	if r := s.do("GET", "/track/nobody/live", ""); r.status != 404 {
		t.Errorf("unknown link: %d", r.status)
	}
}

// TestLiveLimit: 200 streams a link, and one reader for all of them.
func TestLiveLimit(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	task := s.newTask("")
	link, other := s.link(task), s.link(s.newTask(""))
	viewers := make([]*viewer, 200)
	for i := range viewers {
		viewers[i] = s.watch(link)
		if event, _ := viewers[i].next(); event != "state" {
			t.Fatalf("stream %d: %d", i, viewers[i].res.StatusCode)
		}
	}
	if v := s.watch(link); v.res.StatusCode != 429 || v.res.Header.Get("Retry-After") == "" {
		t.Fatalf("201st: %d %v", v.res.StatusCode, v.res.Header)
	}
	if n := s.h.Watching(); n != 1 {
		t.Errorf("%d links followed, want 1", n)
	}
	v := s.watch(other)
	if event, _ := v.next(); event != "state" {
		t.Errorf("another link: %s", event)
	}
	v.stop()

	s.data(s.app("POST", "/v1/task/assign", `{"task_id":"`+task+`","driver_id":"ravi"}`))
	var first string
	for i, v := range viewers {
		_, data := v.next()
		if first == "" {
			first = data
		}
		if data != first || !strings.Contains(data, `"assigned"`) {
			t.Errorf("stream %d: %s", i, data)
		}
	}
	viewers[7].stop()
	viewers[7].res.Body.Close()
	for s.do("HEAD", link+"/live", ""); ; { // a place is free once the server has noticed
		v := s.watch(link)
		if v.res.StatusCode == 200 {
			break
		}
		v.res.Body.Close()
	}
	s.data(s.asDriver(token, "POST", "/v1/driver/tasks/"+task+"/start", ""))
	s.data(s.app("POST", "/v1/task/cancel", `{"task_id":"`+task+`"}`))
	for i, v := range viewers {
		if i == 7 {
			continue
		}
		last := ""
		for event, data := v.next(); event == "state"; event, data = v.next() { // a slow viewer may skip
			last = data
		}
		if !strings.Contains(last, `"cancelled"`) {
			t.Errorf("stream %d: %s", i, last)
		}
	}
}

// TestLiveEndsWithTheService: closing the Service ends streams, without an end that would keep
// viewers from coming again.
func TestLiveEndsWithTheService(t *testing.T) {
	s := newServer(t)
	v := s.watch(s.link(s.newTask("")))
	v.next()
	s.svc.Close(t.Context())
	if event, data := v.next(); event != "EOF" {
		t.Errorf("%s %s", event, data)
	}
}

// TestLiveHeartbeat: something comes when nothing changes.
func TestLiveHeartbeat(t *testing.T) {
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) { ho.Heartbeat = time.Millisecond })
	v := s.watch(s.link(s.newTask("")))
	v.next()
	for range 3 {
		line, err := v.r.ReadString('\n')
		if err != nil || line != ": still here\n" {
			t.Fatalf("%q, %v", line, err)
		}
		v.r.ReadString('\n')
	}
}

// TestLiveManyLinks: viewers come and go on many links at once.
func TestLiveManyLinks(t *testing.T) {
	s := newServer(t)
	links := make([]string, 8)
	for i := range links {
		links[i] = s.link(s.newTask(fmt.Sprintf(`,"order_id":"%d"`, i)))
	}
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			v := s.watch(links[i%8])
			if event, data := v.next(); event != "state" ||
				!strings.Contains(data, fmt.Sprintf(`"order_id":"%d"`, i%8)) {
				t.Errorf("%s %s", event, data)
			}
			v.stop()
			v.res.Body.Close()
		})
	}
	wg.Wait()
	for range 10_000 { // the server notices that a viewer has gone when it gets to it
		if s.h.Watching() == 0 {
			return
		}
		s.do("GET", "/v1/nothing", "")
	}
	t.Errorf("%d links are still followed, with nobody watching", s.h.Watching())
}
