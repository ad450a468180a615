package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The traffic of a city.
const (
	cityDrivers  = 500
	cityTick     = 4 * time.Second // of each driver: two fixes, and the next step
	cityTasks    = 20              // a second, each given to whoever is near
	cityLists    = 50              // a second
	cityWatchers = 2000            // of tasks that are open
	cityBoards   = 5
	cityPoor     = 0.3 // of the receivers of positions, and of the calls of the webhook
)

// city plays the traffic against a server in another process, and keeps what it saw of it.
type city struct {
	*testing.T
	ctx    context.Context
	base   string
	client *http.Client
	stream *http.Client

	mu    sync.Mutex
	took  map[string][]time.Duration // in this minute, by kind of call
	done  map[string]int             // in all
	wrong map[string]int             // answers that there should not be
	links []string                   // of the open tasks
	place map[string]int             // of a task in links

	watching, boards, heard atomic.Int64
	busy                    atomic.Int64 // answers that the server is too busy
}

// TestCity plays a city on SQLite: 500 drivers, of whose phones three in ten measure poorly, 20 tasks
// and 50 lists a second, 2,000 customers who watch, five boards, and a webhook that fails three times in
// ten. TRACKING_CITY is for how long. It fails when less than 80 % of that was done; when it is played
// for 10 minutes or more, it also holds the last minutes against the fifth and those after it: memory
// grows by less than 1 MiB a minute, goroutines and descriptors stay, and the 99th percentiles and the
// processor time of the server are within 1.2 times, or within 1.2 times what a bare server's have
// become meanwhile (see bareServer).
func TestCity(t *testing.T) {
	text := os.Getenv("TRACKING_CITY")
	if text == "" {
		t.Skip("plays for as long as TRACKING_CITY says, such as 3m or 30m")
	}
	length, err := time.ParseDuration(text)
	if err != nil || length < 2*time.Minute {
		t.Fatalf("TRACKING_CITY is %q; it must be 2m or more", text)
	}
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("there is no /proc to read of the server's memory and descriptors")
	}
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rand.Float64() < cityPoor {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer hook.Close()
	t.Setenv(withProfiles, "1")
	p := startProcess(t, "-key", "k", "-store", "sqlite:"+filepath.Join(t.TempDir(), "tracking.db"),
		"-webhook", hook.URL, "-webhook-allow-private")
	bare := startBare(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	c := &city{
		T: t, ctx: ctx, base: p.base, took: map[string][]time.Duration{}, done: map[string]int{},
		wrong: map[string]int{}, place: map[string]int{},
		// It ends idle connections before the server does, which may be just when a request is on its way.
		client: &http.Client{Transport: &http.Transport{
			DialContext: dialer.DialContext, MaxIdleConnsPerHost: 1000, IdleConnTimeout: time.Minute,
		}},
		stream: &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 1000}},
	}
	tokens := make([]string, cityDrivers)
	for i := range tokens {
		tokens[i] = c.hire(fmt.Sprintf("d%d", i))
	}
	c.done, c.took = map[string]int{}, map[string][]time.Duration{} // what comes before is not counted

	var running sync.WaitGroup
	for i, token := range tokens {
		running.Go(func() { c.drive(i, token) })
	}
	for range cityTasks {
		running.Go(func() { c.each(time.Second, c.create) })
	}
	for i := range cityLists {
		running.Go(func() { c.each(time.Second, func() { c.list(i) }) })
	}
	for range cityWatchers {
		running.Go(c.watch)
	}
	for range cityBoards {
		running.Go(c.look)
	}
	for range cityBare {
		running.Go(func() { c.each(time.Second, func() { c.callBare(bare.base) }) })
	}

	var minutes []cityMinute
	spent, bareSpent := p.spent(t), bare.spent(t)
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	end := time.After(length)
	for playing := true; playing; {
		select {
		case <-tick.C:
			m := c.minute(p)
			m.cpu, spent = m.spent-spent, m.spent
			now := bare.spent(t)
			m.bareCPU, bareSpent = now-bareSpent, now
			minutes = append(minutes, m)
			t.Logf("minute %2d: %s", len(minutes), minutes[len(minutes)-1])
		case <-end:
			playing = false
		case <-p.ended:
			t.Fatal("the server has ended")
		}
	}
	watching, boards := c.watching.Load(), c.boards.Load()
	cancel()
	running.Wait()

	c.mu.Lock()
	defer c.mu.Unlock()
	seconds := length.Seconds()
	for kind, planned := range map[string]float64{
		"fixes": cityDrivers / cityTick.Seconds() * seconds, "create": cityTasks * seconds,
		"list": cityLists * seconds, "complete": cityTasks * (seconds - 60), // which follow by a minute
	} {
		t.Logf("%s: %d of %.0f", kind, c.done[kind], planned)
		if float64(c.done[kind]) < 0.8*planned {
			t.Errorf("%s: %d of %.0f that were planned", kind, c.done[kind], planned)
		}
	}
	t.Logf("%d watchers and %d boards were there at the end; they heard %d events", watching, boards, c.heard.Load())
	if watching < cityWatchers*8/10 || boards < cityBoards {
		t.Errorf("%d of %d watchers and %d of %d boards were there at the end", watching, cityWatchers, boards, cityBoards)
	}
	all := 0
	for kind, n := range c.done {
		if kind != bareKind {
			all += n
		}
	}
	busy := c.busy.Load()
	t.Logf("%d calls were answered, %d found the server too busy", all, busy)
	if busy*100 > int64(all) {
		t.Errorf("%d of %d calls found the server too busy", busy, all)
	}
	for what, n := range c.wrong {
		t.Errorf("%d × %s", n, what)
	}
	if length >= 10*time.Minute && len(minutes) >= 10 {
		c.compare(minutes[4:])
	}
}

// each calls do once in each interval, from a random moment of it on, until the city ends. What comes
// while do is at work is left out.
func (c *city) each(interval time.Duration, do func()) {
	select {
	case <-time.After(rand.N(interval)):
	case <-c.ctx.Done():
		return
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		do()
		select {
		case <-tick.C:
		case <-c.ctx.Done():
			return
		}
	}
}

// ask makes a call and counts it as one of a kind. Any other answer than 200, or 503 now and then, is
// noted.
func (c *city) ask(kind, token, method, path string, body any) (data object, ok bool) {
	var b []byte
	if body != nil {
		b, _ = json.Marshal(body)
	}
	req, err := http.NewRequestWithContext(c.ctx, method, c.base+path, bytes.NewReader(b))
	if err != nil {
		c.note(kind, err)
		return nil, false
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token == "" {
		req.Header.Set("X-Api-Key", "k")
	} else {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return c.send(kind, req)
}

// send makes a call, and counts how long it takes until its answer is read.
func (c *city) send(kind string, req *http.Request) (data object, ok bool) {
	began := time.Now()
	resp, err := c.client.Do(req)
	if err != nil {
		c.note(kind, err)
		return nil, false
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	took := time.Since(began)
	if err != nil {
		c.note(kind, err)
		return nil, false
	}
	if resp.StatusCode == http.StatusServiceUnavailable {
		c.busy.Add(1)
		return nil, false
	}
	if resp.StatusCode != http.StatusOK {
		c.note(kind, fmt.Errorf("%s %.200s", resp.Status, text))
		return nil, false
	}
	var answer object
	if err := json.Unmarshal(text, &answer); err != nil {
		c.note(kind, err)
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.took[kind] = append(c.took[kind], took)
	c.done[kind]++
	data, _ = answer["data"].(map[string]any)
	return data, true
}

// note keeps what went wrong, unless the city has ended.
func (c *city) note(kind string, err error) {
	if c.ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong[kind+": "+err.Error()]++
}

// hire has a driver join and go on duty, and returns his token.
func (c *city) hire(id string) string {
	c.Helper()
	must := func(data object, ok bool) object {
		c.Helper()
		if !ok {
			c.Fatalf("%s cannot be hired: %v", id, c.wrong)
		}
		return data
	}
	invited := must(c.ask("hire", "", "POST", "/v1/invite_user", object{"user_id": id, "name": "Driver " + id}))
	link := invited.text(c.T, "url")
	joined := must(c.ask("hire", "", "POST", "/v1/driver/join", object{"invite": link[strings.LastIndex(link, "/")+1:]}))
	token := joined.text(c.T, "token")
	must(c.ask("hire", token, "POST", "/v1/driver/availability", object{"availability": true}))
	return token
}

// somewhere is a place in the city, metres from its middle.
func somewhere() [2]float64 {
	return [2]float64{rand.Float64()*10_000 - 5000, rand.Float64()*10_000 - 5000}
}

// drive is a driver: at each tick two fixes of where he has got to, and the next step of his first task.
// Some of what his phone measures, three in ten measure poorly.
func (c *city) drive(i int, token string) {
	const speed = 10
	at, to := somewhere(), somewhere()
	poor := float64(i%10) < cityPoor*10
	task, leg, ticks := "", "", 0
	c.each(cityTick, func() {
		var fixes []object
		for _, ago := range []time.Duration{cityTick / 2, 0} {
			way := [2]float64{to[0] - at[0], to[1] - at[1]}
			step := speed * cityTick.Seconds() / 2 / max(1, math.Hypot(way[0], way[1]))
			if step >= 1 {
				to = somewhere()
				step = 0
			}
			at = [2]float64{at[0] + way[0]*step, at[1] + way[1]*step}
			fix := object{"lnglat": lnglat(at[0], at[1]), "time": stamp(time.Now().Add(-ago)), "accuracy": 8}
			if poor {
				fixes = append(fixes, spoil(fix, at)...)
			} else {
				fixes = append(fixes, fix)
			}
		}
		c.ask("fixes", token, "POST", "/v1/driver/fixes", object{"fixes": fixes})
		if task == "" {
			data, _ := c.ask("route", token, "GET", "/v1/driver/route", nil)
			if stops, _ := data["stops"].([]any); len(stops) > 0 {
				first := object(stops[0].(map[string]any))
				task, _ = first["task_id"].(string)
				leg, _ = first["leg"].(string)
				ticks = 0
				if _, ok := c.ask("start", token, "POST", "/v1/driver/tasks/"+task+"/start", object{}); !ok {
					task = "" // at the next tick again
				}
			}
			return
		}
		if ticks++; ticks < 2 {
			return
		}
		if leg == "pickup" {
			if _, ok := c.ask("pickup", token, "POST", "/v1/driver/tasks/"+task+"/pickup", object{}); ok {
				leg, ticks = "drop", 0
			}
			return
		}
		if _, ok := c.ask("complete", token, "POST", "/v1/driver/tasks/"+task+"/complete", object{}); ok {
			c.forget(task)
			task = ""
		}
	})
}

// spoil is what a poor receiver makes of a fix.
func spoil(fix object, at [2]float64) []object {
	other := object{"lnglat": fix["lnglat"], "time": fix["time"], "accuracy": fix["accuracy"]}
	switch rand.N(6) {
	case 0: // measured by masts
		other["accuracy"] = 600
		other["lnglat"] = lnglat(at[0]+rand.Float64()*800, at[1])
		return []object{other}
	case 1: // a reflection, and then where he is
		other["lnglat"] = lnglat(at[0]+3000, at[1]-2000)
		return []object{other, fix}
	case 2: // told twice
		return []object{fix, other}
	case 3: // an old one comes late
		other["time"] = stamp(time.Now().Add(-2 * time.Minute))
		return []object{fix, other}
	case 4: // by a clock that is wrong
		other["time"] = stamp(time.Now().Add(10 * time.Minute))
		return []object{other}
	default: // none
		return []object{fix}
	}
}

func (c *city) create() {
	to := somewhere()
	body := object{
		"type": 2, "auto_assign": true, "order_id": fmt.Sprintf("A-%06d", rand.N(1_000_000)), "notes": "ring twice",
		"drop": object{
			"lnglat": lnglat(to[0], to[1]), "address": fmt.Sprintf("%d Home Street", rand.N(200)),
			"customer": object{"name": "Noor", "mobile": fmt.Sprintf("+49 89 %07d", rand.N(10_000_000))},
		},
	}
	if rand.N(3) == 0 {
		from := somewhere()
		body["type"] = 3
		body["pickup"] = object{"lnglat": lnglat(from[0], from[1]), "address": "The shop"}
	}
	data, ok := c.ask("create", "", "POST", "/v1/task/create", body)
	if !ok {
		return
	}
	id, _ := data.at("task.task_id").(string)
	link, _ := data["tracking_url"].(string)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.place[id] = len(c.links)
	c.links = append(c.links, link+" "+id)
}

// forget takes a task out of those that can be watched.
func (c *city) forget(task string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i, ok := c.place[task]
	if !ok {
		return
	}
	last := len(c.links) - 1
	c.links[i] = c.links[last]
	_, id, _ := strings.Cut(c.links[i], " ")
	c.place[id] = i
	c.links = c.links[:last]
	delete(c.place, task)
}

// list asks what dispatchers and their programs ask.
func (c *city) list(i int) {
	paths := []string{
		"/v1/task/list?limit=10", "/v1/task/list?limit=10&status=assigned", "/v1/task/list?limit=10&status=completed",
		fmt.Sprintf("/v1/task/list?limit=10&driver_id=d%d", rand.N(cityDrivers)),
		fmt.Sprintf("/v1/task/list?limit=10&q=A-%03d", rand.N(1000)), "/v1/task/list?limit=10&late=true",
		"/v1/trips?limit=10", "/v1/users/drivers?limit=10&position=11.57,48.13", "/v1/events?limit=10",
		"/v1/task/counts",
	}
	c.ask("list", "", "GET", paths[i%len(paths)], nil)
}

// watch is a customer with the page of a task open until it has ended, then of another one.
func (c *city) watch() {
	c.each(time.Second, func() {
		c.mu.Lock()
		link := ""
		if len(c.links) > 0 {
			link, _, _ = strings.Cut(c.links[rand.N(len(c.links))], " ")
		}
		c.mu.Unlock()
		if link != "" {
			c.listen("watch", link+"/live", nil, &c.watching)
		}
	})
}

// look is a board.
func (c *city) look() {
	c.each(time.Second, func() {
		c.listen("board", c.base+"/v1/live", http.Header{"X-Api-Key": {"k"}}, &c.boards)
	})
}

// listen reads a stream to its end.
func (c *city) listen(kind, address string, header http.Header, open *atomic.Int64) {
	req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, address, nil)
	if err != nil {
		c.note(kind, err)
		return
	}
	for name, values := range header {
		req.Header[name] = values
	}
	resp, err := c.stream.Do(req)
	if err != nil {
		c.note(kind, err)
		return
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusTooManyRequests, http.StatusNoContent: // a link with many watchers; a task that has just ended
		return
	case http.StatusServiceUnavailable:
		c.busy.Add(1)
		return
	default:
		c.note(kind, errors.New(resp.Status))
		return
	}
	open.Add(1)
	defer open.Add(-1)
	lines := bufio.NewReaderSize(resp.Body, 1<<12)
	for {
		line, err := lines.ReadSlice('\n')
		if bytes.HasPrefix(line, []byte("data:")) {
			c.heard.Add(1)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// cityMinute is what was seen in a minute, and at its end.
type cityMinute struct {
	calls            int
	p50, p99         map[string]time.Duration
	memory           int // resident, bytes
	goroutines, open int
	spent            time.Duration // of the server's processor time, from its start on
	cpu              time.Duration // of that in this minute
	bareCPU          time.Duration // of the bare server
	watching         int64
}

func (m cityMinute) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%5d calls, %4.1f s of CPU, %6.1f MiB resident, %d goroutines, %d descriptors, %d watchers; "+
		"median and 99th percentile:", m.calls, m.cpu.Seconds(), float64(m.memory)/(1<<20), m.goroutines, m.open, m.watching)
	for _, kind := range []string{"fixes", "create", "list", "start", "complete", bareKind} {
		fmt.Fprintf(&b, " %s %.1f %.1f ms", kind, m.p50[kind].Seconds()*1e3, m.p99[kind].Seconds()*1e3)
	}
	fmt.Fprintf(&b, ", %.2f s of CPU", m.bareCPU.Seconds())
	return b.String()
}

// minute ends a minute.
func (c *city) minute(p *process) cityMinute {
	c.Helper()
	c.mu.Lock()
	took := c.took
	c.took = map[string][]time.Duration{}
	c.mu.Unlock()
	m := cityMinute{p50: map[string]time.Duration{}, p99: map[string]time.Duration{}, watching: c.watching.Load()}
	for kind, all := range took {
		slices.Sort(all)
		if kind != bareKind {
			m.calls += len(all)
		}
		m.p50[kind], m.p99[kind] = all[len(all)/2], all[len(all)*99/100]
	}
	m.memory, m.open = p.resident(c.T), p.descriptors(c.T)
	m.goroutines, m.spent = p.goroutines(c.T), p.spent(c.T)
	return m
}

// compare holds the last of these minutes against the first, by percentiles and processor time the last five
// against the first five, and the growth of memory over all.
func (c *city) compare(minutes []cityMinute) {
	first, last := minutes[0], minutes[len(minutes)-1]
	var sumX, sumY, sumXX, sumXY float64
	for i, m := range minutes {
		x, y := float64(i), float64(m.memory)/(1<<20)
		sumX, sumY, sumXX, sumXY = sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
	}
	n := float64(len(minutes))
	slope := (n*sumXY - sumX*sumY) / (n*sumXX - sumX*sumX)
	c.Logf("memory grows by %.2f MiB a minute", slope)
	if slope >= 1 {
		c.Errorf("memory grows by %.2f MiB a minute", slope)
	}
	for what, of := range map[string][2]int{
		"goroutines": {first.goroutines, last.goroutines}, "descriptors": {first.open, last.open},
	} {
		if float64(of[1]) > 1.1*float64(of[0]) {
			c.Errorf("%d %s in the fifth minute, %d in the last", of[0], what, of[1])
		}
	}
	// From one minute to the next a percentile may be half as long again.
	five := min(5, len(minutes)/2)
	grown := func(of func(cityMinute) time.Duration) (before, now time.Duration, ratio float64) {
		var at [2]time.Duration
		for i, some := range [2][]cityMinute{minutes[:five], minutes[len(minutes)-five:]} {
			var all []time.Duration
			for _, m := range some {
				all = append(all, of(m))
			}
			slices.Sort(all)
			at[i] = all[len(all)/2]
		}
		return at[0], at[1], float64(at[1]) / float64(at[0])
	}
	hold := func(what string, of, beside func(cityMinute) time.Duration) {
		before, now, ratio := grown(of)
		bareBefore, bareNow, machine := grown(beside)
		text := fmt.Sprintf("%s: %v at first, %v at last (%.2f); of the bare server %v and %v (%.2f)",
			what, before, now, ratio, bareBefore, bareNow, machine)
		if ratio > 1.2*max(1, machine) {
			c.Error(text)
			return
		}
		c.Log(text)
	}
	hold("processor time of a minute", func(m cityMinute) time.Duration { return m.cpu },
		func(m cityMinute) time.Duration { return m.bareCPU })
	percentile := func(kind string) func(cityMinute) time.Duration {
		return func(m cityMinute) time.Duration { return m.p99[kind] }
	}
	for kind := range first.p99 {
		if kind != bareKind {
			hold(kind+", 99th percentile", percentile(kind), percentile(bareKind))
		}
	}
}

var (
	residentLine  = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)
	goroutineLine = regexp.MustCompile(`^goroutine profile: total (\d+)`)
	profilesAt    = regexp.MustCompile(`profiles at (\S+)`)
)

// resident is the memory of the process, in bytes.
func (p *process) resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return number(t, residentLine, string(text)) * 1024
}

// spent is the processor time that the process has taken.
func (p *process) spent(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	const tick = time.Second / 100 // of Linux, on all that Go runs on
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] { // of the program, and of the kernel for it
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * tick
}

// descriptors is how many files and sockets it has open.
func (p *process) descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// goroutines is how many it has, of a process that was started with profiles.
func (p *process) goroutines(t *testing.T) int {
	t.Helper()
	m := profilesAt.FindStringSubmatch(p.out.String())
	if m == nil {
		t.Fatal("the process has no profiles")
	}
	_, text := page(t, m[1]+"/debug/pprof/goroutine?debug=1")
	return number(t, goroutineLine, text)
}

func number(t *testing.T, re *regexp.Regexp, text string) int {
	t.Helper()
	m := re.FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("there is no %s in %.300s", re, text)
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		t.Fatal(err)
	}
	return n
}
