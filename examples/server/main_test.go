package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/examples/internal/commandline"
	"github.com/seed-8aba7b13/tracking/httpadapter/webhook"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// output collects what the program prints and lets a test wait for a text.
type output struct {
	mu    sync.Mutex
	text  []byte
	added chan struct{} // closed with each addition, and made anew
}

func newOutput() *output { return &output{added: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	close(o.added)
	o.added = make(chan struct{})
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

func noEnv(string) (string, bool) { return "", false }

// quiet are the streams of a command of which nobody reads anything.
var quiet = streams{in: strings.NewReader(""), out: io.Discard, log: io.Discard, env: noEnv}

// server is the program, running.
type server struct {
	t         *testing.T
	base, key string
	out, log  *output
	stop      func() error // shuts it down and returns what run returned
	ended     chan struct{}
}

// start runs the program on a free port until the test ends.
func start(t *testing.T, args ...string) *server { t.Helper(); return startWith(t, nil, args...) }

// startWith runs it with an environment.
func startWith(t *testing.T, env variables, args ...string) *server {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s := &server{t: t, out: newOutput(), log: newOutput(), ended: make(chan struct{})}
	var err error
	go func() {
		defer close(s.ended)
		err = run(ctx, append([]string{"-addr", "127.0.0.1:0", "-demo=false"}, args...), streams{out: s.out, log: s.log, env: env.lookUp})
	}()
	s.stop = func() error { cancel(); <-s.ended; return err }
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Errorf("the server ended with %v; its log:\n%s", err, s.log)
		}
	})
	s.base = s.wait(`Serving at (\S+) with`)
	if i := slices.Index(args, "-key"); i >= 0 {
		s.key = args[i+1]
	} else if m := printedKey.FindStringSubmatch(s.wait(`(?s)(.*)All calls: `)); m != nil {
		s.key = m[1]
	}
	return s
}

// printedKey is a key that was made at this start.
var printedKey = regexp.MustCompile(`API key[^:]*: ([A-Za-z0-9_-]+)\n`)

// wait waits until the program has printed a match, and returns its first group.
func (s *server) wait(pattern string) string {
	s.t.Helper()
	return s.await(s.out, regexp.MustCompile(pattern))[1]
}

// await waits until there is a match in o.
func (s *server) await(o *output, re *regexp.Regexp) []string {
	s.t.Helper()
	for {
		o.mu.Lock()
		m, added := re.FindStringSubmatch(string(o.text)), o.added
		o.mu.Unlock()
		if m != nil {
			return m
		}
		select {
		case <-added:
		case <-s.ended:
			s.t.Fatalf("the server has ended without printing %s; it printed:\n%s\nits log:\n%s", re, s.out, s.log)
		}
	}
}

// object is a JSON object of an answer; at looks a path up in it.
type object map[string]any

func (o object) at(path string) any {
	var v any = map[string]any(o)
	for name := range strings.SplitSeq(path, ".") {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func (o object) text(t *testing.T, path string) string {
	t.Helper()
	s, ok := o.at(path).(string)
	if !ok || s == "" {
		t.Fatalf("the answer has no %s: %v", path, o)
	}
	return s
}

// call makes a call with the API key or, if there is one, with a driver's token. A body makes it a
// POST. The answer must be 200; its data is returned.
func (s *server) call(token, path, body string) object {
	s.t.Helper()
	method, address := http.MethodGet, s.base+path
	if body != "" {
		method = http.MethodPost
	}
	if token == "" {
		sep := "?"
		if strings.Contains(path, "?") {
			sep = "&"
		}
		address += sep + "apikey=" + url.QueryEscape(s.key)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	status, answer := do(s.t, req)
	data, _ := answer["data"].(map[string]any)
	if status != http.StatusOK || answer["success"] != true {
		s.t.Fatalf("%s %s answers %d %v", method, path, status, answer)
	}
	return data
}

func do(t *testing.T, req *http.Request) (int, object) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer object
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%s answers %s and no JSON: %v\n%s", req.URL.Path, resp.Status, err, text)
	}
	return resp.StatusCode, answer
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func TestDelivery(t *testing.T) {
	s := start(t)
	inv := s.call("", "/v1/invite_user", `{"user_id":"dora","name":"Dora Maar"}`)
	joined := s.call("none", "/v1/driver/join", fmt.Sprintf(`{"invite_code":%v,"nonce":"n"}`, inv["invite_code"]))
	token := joined.text(t, "token")
	s.call(token, "/v1/driver/availability", `{"availability":true}`)
	s.call(token, "/v1/driver/fixes",
		fmt.Sprintf(`{"fixes":[{"lnglat":[2.16,41.386],"time":%q}]}`, stamp(time.Now().Add(-time.Minute))))

	created := s.call("", "/v1/task/create",
		`{"type":2,"drop":{"lnglat":[2.17,41.39],"address":"45 First Avenue"},"order_id":"#1","auto_assign":true}`)
	id := created.text(t, "task.task_id")
	if got, want := created.at("task.status"), "assigned"; got != want {
		t.Fatalf("the task is %v, want %v: the driver is there", got, want)
	}
	if list, _ := s.call(token, "/v1/driver/tasks", "").at("task_list").([]any); len(list) != 1 {
		t.Fatalf("the driver sees %v, want his task", list)
	}
	started := s.call(token, "/v1/driver/tasks/"+id+"/start", `{}`)
	trip := started.text(t, "trip._id")
	fixes := s.call(token, "/v1/driver/fixes",
		fmt.Sprintf(`{"fixes":[{"lnglat":[2.161,41.3861],"time":%q}]}`, stamp(time.Now())))
	if got := fmt.Sprint(fixes["outcomes"]); got != "[live]" {
		t.Errorf("a fix of now is %s, want [live]", got)
	}

	link := s.call("", "/v1/task/trackingurl/"+id, "").text(t, "webUrl")
	if !strings.HasPrefix(link, s.base+"/track/") {
		t.Errorf("the customer's link is %s, want one below %s/track/", link, s.base)
	}
	live := s.stream(link + "/live")
	if state := live.next(); state.at("status") != "in_progress" || state.at("position.lnglat") == nil ||
		state.at("driver.name") != "Dora" {
		t.Errorf("the customer sees %v, want the task under way, Dora and where she is", state)
	}
	if got := s.call(token, "/v1/driver/tasks/"+id+"/complete", `{}`).at("task.outcome"); got != "succeeded" {
		t.Errorf("the outcome is %v, want succeeded", got)
	}
	last := live.next()
	for next := live.next(); next != nil; next = live.next() {
		last = next
	}
	if last.at("outcome") != "succeeded" || last.at("position") != nil {
		t.Errorf("the customer sees %v in the end, want the outcome and no position", last)
	}
	path, _ := s.call("", "/v1/triphistory/"+trip, "").at("loc").([]any)
	if len(path) != 1 {
		t.Errorf("the path of the trip is %v, want its one fix", path)
	}
}

// stream is an open live stream.
type stream struct {
	t     *testing.T
	lines *bufio.Scanner
}

func (s *server) stream(address string) *stream {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		s.t.Fatalf("the stream answers %s, %s", resp.Status, resp.Header.Get("Content-Type"))
	}
	return &stream{s.t, bufio.NewScanner(resp.Body)}
}

// next returns the data of the next state, or nil when the stream has ended.
func (s *stream) next() object {
	s.t.Helper()
	event := ""
	for s.lines.Scan() {
		name, value, _ := bytes.Cut(s.lines.Bytes(), []byte(": "))
		switch string(name) {
		case "event":
			event = string(value)
		case "data":
			var data object
			if event != "state" {
				continue
			}
			if err := json.Unmarshal(value, &data); err != nil {
				s.t.Fatal(err)
			}
			return data
		}
	}
	if err := s.lines.Err(); err != nil {
		s.t.Fatalf("the stream broke off: %v", err)
	}
	return nil
}

// A stream that is open when the server is told to end must not hold it up.
func TestShutdownEndsStreams(t *testing.T) {
	s := start(t)
	task := s.call("", "/v1/task/create", `{"type":2,"drop":{"address":"45 First Avenue"}}`).text(t, "task.task_id")
	live := s.stream(s.call("", "/v1/task/trackingurl/"+task, "").text(t, "webUrl") + "/live")
	if live.next() == nil {
		t.Fatal("the stream of an open task has no state")
	}
	if err := s.stop(); err != nil {
		t.Errorf("shutting down failed: %v", err)
	}
	for live.next() != nil {
	}
}

// TestPrintedLines: the lines that are printed work as they are, or with the key that was given in
// place of KEY, since that is not printed.
func TestPrintedLines(t *testing.T) {
	const key = `it's an "odd" key & 100 % ✓`
	for _, args := range [][]string{nil, {"-key", "other", "-key", key}} {
		s := start(t, args...)
		printed := s.out.String()
		if args != nil {
			if strings.Contains(printed, "odd") || strings.Contains(printed, "other\n") {
				t.Errorf("the keys that were given are printed:\n%s", printed)
			}
			printed = strings.ReplaceAll(printed, "apikey=KEY", "apikey="+url.QueryEscape(key))
		}
		s.tryLines(printed)
	}
}

var word = regexp.MustCompile(`'([^']*)'`)

// tryLines makes the calls of the curl lines.
func (s *server) tryLines(printed string) {
	t := s.t
	t.Helper()
	n := 0
	for line := range strings.Lines(printed) {
		if !strings.HasPrefix(line, "  curl ") {
			continue
		}
		n++
		var words []string
		for _, m := range word.FindAllStringSubmatch(line, -1) {
			words = append(words, m[1])
		}
		method, body := http.MethodGet, ""
		if len(words) == 3 {
			method, body = http.MethodPost, words[1]
		}
		req, err := http.NewRequestWithContext(t.Context(), method, words[len(words)-1], strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" {
			name, value, _ := strings.Cut(words[0], ": ")
			req.Header.Set(name, value)
		}
		status, answer := do(t, req)
		if status != http.StatusOK {
			t.Errorf("%s answers %d %v", line, status, answer)
		}
		if strings.Contains(line, "/task/create") {
			link, _ := answer.at("data.tracking_url").(string)
			if answer.at("data.task.status") != "assigned" {
				t.Errorf("the task of the printed line is %v, want it assigned", answer)
			}
			if status, _ := s.get(link); status != http.StatusOK {
				t.Errorf("the customer's link answers %d", status)
			}
		}
	}
	if n < 5 {
		t.Errorf("%d curl lines are printed, want 5 at least", n)
	}
}

func TestDemo(t *testing.T) {
	s := start(t, "-demo")
	if status, _ := s.get(s.wait(`Be a driver: (\S+) `)); status != http.StatusOK {
		t.Errorf("the driver's link answers %d", status)
	}
	link := s.wait(`sets off with order #\d+; the customer's link: (\S+)\n`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link+"/state", nil)
	if err != nil {
		t.Fatal(err)
	}
	status, state := do(t, req)
	if status != http.StatusOK || state.at("data.tracking.status") != "in_progress" ||
		state.at("data.tracking.position.lnglat") == nil {
		t.Errorf("the customer's link answers %d %v, want a courier on the way", status, state)
	}
	if strings.Contains(s.log.String(), "msg=request") {
		t.Errorf("the links are lost among the requests:\n%s", s.log)
	}
}

func (s *server) get(address string) (int, string) {
	s.t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func TestHealth(t *testing.T) {
	s := start(t)
	if status, text := s.get(s.base + "/healthz"); status != http.StatusOK {
		t.Errorf("/healthz answers %d %s", status, text)
	}
}

func TestBaseURL(t *testing.T) {
	base := "https://tracking.example/delivery"
	s := start(t, "-base-url", base+"/", "-key", "k")
	if s.base != base {
		t.Errorf("it prints the address %s, want %s", s.base, base)
	}
	if got := s.out.String(); !strings.Contains(got, "'"+base+"/v1/task/list?apikey=KEY'") {
		t.Errorf("the curl lines do not go to %s:\n%s", base, got)
	}
}

// What was in the file when a server ended is there for the next one, and only one at a time may
// have it.
func TestFileStore(t *testing.T) {
	dir := t.TempDir()
	store := "sqlite:" + filepath.Join(dir, "a store.db")
	first := start(t, "-store", store, "-key", "k")
	id := first.call("", "/v1/task/create", `{"type":2,"drop":{"address":"45 First Avenue"}}`).text(t, "task.task_id")
	link := first.call("", "/v1/task/trackingurl/"+id, "").text(t, "webUrl")
	if status, text := first.get(first.base + "/healthz"); status != http.StatusOK {
		t.Errorf("/healthz answers %d %s", status, text)
	}
	if err := run(t.Context(), []string{
		"-addr", "127.0.0.1:0", "-store", store,
	}, quiet); !errors.Is(err, sqlite.ErrInUse) {
		t.Errorf("a second server on the file ends with %v, want %v", err, sqlite.ErrInUse)
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}

	second := start(t, "-store", store, "-key", "k")
	if got := second.call("", "/v1/task?task_id="+id, "").text(t, "task.task_id"); got != id {
		t.Errorf("the task is %s, want %s", got, id)
	}
	if again := second.call("", "/v1/task/trackingurl/"+id, "").text(t, "webUrl"); strings.TrimPrefix(again,
		second.base) != strings.TrimPrefix(link, first.base) {
		t.Errorf("the customer's link was %s and is now %s", link, again)
	}
	if err := run(t.Context(), []string{
		"-store", "sqlite:" + filepath.Join(dir, "none", "a.db"),
	}, quiet); !errors.Is(err, sqlite.ErrPath) {
		t.Errorf("a file in a folder that is not there ends with %v, want %v", err, sqlite.ErrPath)
	}
}

func TestBackup(t *testing.T) {
	dir := t.TempDir()
	backup := filepath.Join(dir, "copy.db")
	first := start(t, "-store", "sqlite:"+filepath.Join(dir, "a.db"), "-backup", backup, "-backup-every", "20ms")
	id := first.call("", "/v1/task/create", `{"type":2,"drop":{"address":"45 First Avenue"}}`).text(t, "task.task_id")
	// The backup after the next one began after the task was there.
	made := regexp.MustCompile("the store is backed up")
	n := len(made.FindAllString(first.log.String(), -1))
	first.await(first.log, regexp.MustCompile(fmt.Sprintf(`(?s)(?:the store is backed up.*){%d}`, n+2)))
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	second := start(t, "-store", "sqlite:"+backup)
	second.key = first.key
	if got := second.call("", "/v1/task?task_id="+id, "").text(t, "task.task_id"); got != id {
		t.Errorf("the task in the backup is %s, want %s", got, id)
	}
}

func TestAddressInUse(t *testing.T) {
	s := start(t)
	err := run(t.Context(), []string{"-addr", strings.TrimPrefix(s.base, "http://")}, quiet)
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("a second server on the address ends with %v", err)
	}
}

func TestFlags(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-name", "n", "x"}, "only flags"},
		{[]string{"-key", ""}, "empty"},
		{[]string{"-store", "postgres"}, "-store must be"},
		{[]string{"-store", "sqlite:"}, "names no file"},
		{[]string{"-store", "postgres://a b/"}, "-store is no URL"},
		{[]string{"-store", "postgres://h/d", "-backup", "copy.db"}, "-backup needs a store in a file"},
		{[]string{"-backup", "copy.db"}, "-backup needs a store in a file"},
		{[]string{"-backup-every", "0s"}, "must be positive"},
		{[]string{"-base-url", "example.com"}, "-base-url must be"},
		{[]string{"-base-url", "https://example.com?x=1"}, "-base-url must be"},
		{[]string{"-webhook", "example.com"}, "-webhook must be"},
		{[]string{"-webhook", "https://example.com", "-webhook-secret", "secret"}, "whsec_ and the base64"},
		{[]string{"-webhook-allow-private"}, "need a -webhook"},
		{[]string{"-webhook-secret", webhook.NewSecret()}, "need a -webhook"},
		{[]string{"-push-contact", "ops@example.com"}, "-push-contact must be"},
		{[]string{"-push-contact", "https://localhost"}, "-push-contact must be"},
		{[]string{"-tiles", "https://tiles.example.com/{z}/{x}.png"}, "-tiles must be"},
		{[]string{"-tiles", "tiles/{z}/{x}/{y}.png"}, "-tiles must be"},
		{[]string{"-tiles-attribution", "somebody"}, "-tiles-attribution needs -tiles"},
		{[]string{"-map", "city.pmtiles", "-tiles", "/{z}/{x}/{y}.png"}, "-map and -tiles cannot both"},
		{[]string{"-logo", "logo.png"}, "-logo must be"},
		{[]string{"-logo", "javascript:alert(1)"}, "-logo must be"},
		{[]string{"-max-open-tasks", "0"}, "-max-open-tasks cannot be 0"},
		{[]string{"-max-assign-distance", "-1"}, "-max-assign-distance must be"},
		{[]string{"-max-assign-distance", "NaN"}, "-max-assign-distance must be"},
		{[]string{"-trip-ttl", "0s"}, "must be positive"},
		{[]string{"-link-ttl", "-1h"}, "must be positive"},
		{[]string{"-code-ttl", "1 day"}, "no duration"},
		{[]string{"-contact-url", "javascript:alert(1)"}, "-contact-url must be"},
		{[]string{"-help-url", "help.html"}, "-help-url must be"},
		{[]string{"-feedback-url", "feedback"}, "-feedback-url must be"},
		{[]string{"-reason", "no_lift"}, "it must be a code"},
		{[]string{"-reason", "No lift=The lift is broken"}, "it must be a code"},
		{[]string{"-reason", "no_lift=x", "-reason", "no_lift=y"}, "given before"},
		{[]string{"-undo-for", "0s"}, "must be positive"},
		{[]string{"-color", "red"}, "-color must have the form #rrggbb"},
		{[]string{"-time-zone", "Middle/Earth"}, "no time zone"},
		{[]string{"-trusted-proxies", "10.0.0.0/8,proxy"}, "addresses or ranges"},
		{[]string{"-forwarded-header", "X-Real-IP"}, "-forwarded-header must be"},
		{[]string{"-secret", "short"}, "-secret must have 32"},
		{[]string{"-nonsense"}, "flag provided but not defined"},
	} {
		var log strings.Builder
		err := run(t.Context(), tt.args, streams{out: io.Discard, log: &log, env: noEnv})
		hint, sentence, _ := strings.Cut(log.String(), "\n")
		if !errors.Is(err, commandline.ErrWrong) || !strings.HasPrefix(sentence, "server: ") ||
			!strings.Contains(sentence, tt.want) {
			t.Errorf("server %q ends with %v and says %q, want %q", tt.args, err, log.String(), tt.want)
		}
		if !strings.Contains(hint, "server -h") || strings.Count(log.String(), "\n") != 2 {
			t.Errorf("server %q says more than how to see the help and one sentence, which comes last:\n%s", tt.args,
				&log)
		}
	}

	var help strings.Builder
	if err := run(t.Context(), []string{"-h"}, streams{out: io.Discard, log: &help, env: noEnv}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("-h ends with %v", err)
	}
	for _, name := range []string{
		"addr", "store", "key", "base-url", "max-open-tasks", "max-fix-age", "max-assign-distance", "trip-ttl",
		"link-ttl", "invite-ttl", "code-ttl", "webhook", "webhook-secret", "webhook-allow-private", "push-contact",
		"name", "logo", "tiles", "tiles-attribution", "map", "demo", "contact-url", "help-url", "feedback-url", "show-proof",
		"reason", "stop-time", "assign-lead", "reopen-for", "undo-for",
		"migrate", "secret", "backup", "backup-every", "color", "time-zone", "trusted-proxies", "forwarded-header",
	} {
		if !strings.Contains(help.String(), "  -"+name) {
			t.Errorf("-h does not document -%s:\n%s", name, help.String())
		}
	}

	parse := func(args ...string) config {
		t.Helper()
		c, err := parseFlags(args, quiet)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	c := parse()
	if !c.demo || c.addr != "127.0.0.1:8080" || c.store.spec != "memory" || c.keys != nil {
		t.Errorf("without flags it is %+v", c)
	}
	for _, tt := range []struct {
		args []string
		demo bool
	}{
		{[]string{"-addr", ":0"}, true},
		{[]string{"-key", "k", "-name", "Shop", "-base-url", "https://shop.example"}, true},
		{[]string{"-demo=false"}, false},
		{[]string{"-addr", ":0", "-demo=false"}, false},
		{[]string{"-store", "sqlite:a.db"}, false},
		{[]string{"-store", "memory"}, false},
		{[]string{"-store", "sqlite:a.db", "-demo"}, true},
	} {
		if got := parse(tt.args...).demo; got != tt.demo {
			t.Errorf("%q: the demo is on: %v, want %v; only -store and -demo=false switch it off", tt.args, got,
				tt.demo)
		}
	}
	c = parse("-max-open-tasks", "-1", "-max-fix-age", "1ns", "-max-assign-distance", "2500.5", "-trip-ttl", "1h30m",
		"-link-ttl", "1s", "-invite-ttl", "2s", "-code-ttl", "3s", "-stop-time", "4s", "-assign-lead", "5s",
		"-reopen-for", "6s", "-undo-for", "7s", "-reason", "no_lift=The lift is broken", "-reason", "closed=Shut")
	o := c.options
	if o.MaxOpenTasks != -1 || o.MaxFixAge != time.Millisecond || o.MaxAssignDistance != 2500.5 ||
		o.TripTTL != 90*time.Minute ||
		o.LinkTTL != time.Second || o.InviteTTL != 2*time.Second || o.CodeTTL != 3*time.Second || o.StopTime != 4*time.Second ||
		o.AssignLead != 5*time.Second || o.ReopenFor != 6*time.Second || o.UndoFor != 7*time.Second ||
		!slices.Equal(o.Reasons, []tracking.ReasonCode{"no_lift"}) {
		t.Errorf("the flags give %+v", o)
	}
}
