package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	picture "image"
	"image/color"
	"image/jpeg"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/sqlite"
)

// day is a company's day over HTTP, on a SQLite file, by a clock that the test moves.
type day struct {
	*testing.T
	base string
	mu   sync.Mutex
	at   time.Time

	token map[string]string     // of each driver
	where map[string][2]float64 // each driver, metres east and north of the depot
	links map[string]string     // of each task
	tasks []string
}

func (d *day) now() time.Time { d.mu.Lock(); defer d.mu.Unlock(); return d.at }

func (d *day) wait(t time.Duration) { d.mu.Lock(); defer d.mu.Unlock(); d.at = d.at.Add(t) }

func newDay(t *testing.T) *day {
	d := &day{
		T: t, at: time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC), token: map[string]string{},
		where: map[string][2]float64{}, links: map[string]string{},
	}
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "tracking.db"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	quiet := slog.New(slog.DiscardHandler)
	svc, err := tracking.New(store, &tracking.Options{
		Now: d.now, Logger: quiet, MaxOpenTasks: -1, LinkTTL: 48 * time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := httpadapter.New(svc, &httpadapter.Options{
		Keys: map[string]httpadapter.Principal{"key": {Actor: "key:desk"}}, BaseURL: "https://track.example",
		Logger: quiet,
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(func() { svc.Close(t.Context()); srv.Close() })
	d.base = srv.URL
	return d
}

// ask makes a call: of the desk, or of a driver, or with neither of a customer.
func (d *day) ask(who, method, path string, body any) (int, object) {
	d.Helper()
	var b []byte
	kind := "application/json"
	switch body := body.(type) {
	case nil:
	case []byte:
		b, kind = body, "image/jpeg"
	default:
		var err error
		if b, err = json.Marshal(body); err != nil {
			d.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(d.Context(), method, d.base+path, bytes.NewReader(b))
	if err != nil {
		d.Fatal(err)
	}
	if b != nil {
		req.Header.Set("Content-Type", kind)
	}
	if who == "desk" {
		req.Header.Set("X-Api-Key", "key")
	} else if who != "" {
		req.Header.Set("Authorization", "Bearer "+d.token[who])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.Fatal(err)
	}
	var answer object
	if err := json.Unmarshal(text, &answer); err != nil {
		d.Fatalf("%s %s: %s %s", method, path, resp.Status, text)
	}
	data, _ := answer["data"].(map[string]any)
	if resp.StatusCode != http.StatusOK {
		data = answer
	}
	return resp.StatusCode, data
}

func (d *day) do(who, method, path string, body any) object {
	d.Helper()
	status, data := d.ask(who, method, path, body)
	if status != http.StatusOK {
		d.Fatalf("%s %s by %s: %d %v", method, path, who, status, data)
	}
	return data
}

func (d *day) refused(status int, who, method, path string, body any) {
	d.Helper()
	if got, data := d.ask(who, method, path, body); got != status {
		d.Errorf("%s %s by %s: %d, want %d: %v", method, path, who, got, status, data)
	}
}

// say writes a line of the transcript.
func (d *day) say(format string, args ...any) {
	d.Helper()
	d.Logf("%s  %s", d.now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

// lnglat is a place by metres from the depot.
func lnglat(east, north float64) []float64 {
	return []float64{math.Round((11.57+east/74_600)*1e6) / 1e6, math.Round((48.13+north/111_195)*1e6) / 1e6}
}

// drives moves a driver straight to a place at 8 m/s, with a fix every 30 s, and lets him stand
// there for 40 s.
func (d *day) drives(who string, east, north float64) {
	d.Helper()
	from := d.where[who]
	dist := math.Hypot(east-from[0], north-from[1])
	var fixes []map[string]any
	send := func(e, n float64) {
		fixes = append(fixes, map[string]any{"lnglat": lnglat(e, n), "time": stamp(d.now()), "accuracy": 8})
		d.do(who, "POST", "/v1/driver/fixes", map[string]any{"fixes": fixes[len(fixes)-1:]})
	}
	for s := 30.0; s*8 < dist; s += 30 {
		d.wait(30 * time.Second)
		f := s * 8 / dist
		send(from[0]+(east-from[0])*f, from[1]+(north-from[1])*f)
	}
	for range 3 {
		d.wait(20 * time.Second)
		send(east, north)
	}
	d.where[who] = [2]float64{east, north}
}

// sees is what the customer of a task sees.
func (d *day) sees(task string) object {
	d.Helper()
	return d.do("", "GET", d.links[task]+"/state", nil)["tracking"].(map[string]any)
}

func (d *day) task(id string) object {
	d.Helper()
	return d.do("desk", "GET", "/v1/task?task_id="+id, nil)["task"].(map[string]any)
}

func (d *day) route(who string) (ids []string) {
	d.Helper()
	for _, s := range d.do("desk", "GET", "/v1/users/driver/route?driver_id="+who, nil)["stops"].([]any) {
		stop := object(s.(map[string]any))
		ids = append(ids, stop.text(d.T, "task_id")+" "+stop.text(d.T, "leg"))
	}
	return ids
}

// places are where a task is fetched and brought, metres from the depot.
type places struct{ pickup, drop [2]float64 }

// photo is a picture as a phone takes it.
func photo(t *testing.T) []byte {
	t.Helper()
	img := picture.NewRGBA(picture.Rect(0, 0, 320, 240))
	for i := range 320 {
		img.Set(i, i%240, color.RGBA{200, 60, 20, 255})
	}
	var b bytes.Buffer
	if err := jpeg.Encode(&b, img, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestWorkingDay plays a day of three drivers and 24 tasks: a route changed at noon, a van that
// breaks down with a task under way, steps taken back by the driver and by the desk, a failure tried
// again, proofs, two that are late, and what the customers see of it all.
func TestWorkingDay(t *testing.T) {
	d := newDay(t)
	for i, who := range []string{"asha", "bilal", "chen"} {
		name := strings.ToUpper(who[:1]) + who[1:]
		inv := d.do("desk", "POST", "/v1/invite_user", map[string]any{"user_id": who, "name": name})
		url := inv.text(t, "url")
		invite := map[string]any{"invite": url[strings.LastIndex(url, "/")+1:]}
		d.token[who] = d.do("", "POST", "/v1/driver/join", invite).text(t, "token")
		d.do(who, "POST", "/v1/driver/availability", map[string]any{"availability": true})
		d.drives(who, float64(50*i), 0)
	}
	d.say("three drivers have joined, and stand at the depot")

	// 24 tasks, eight for each, every other one with a pickup of its own.
	at := map[string]places{}
	for i := range 24 {
		who := []string{"asha", "bilal", "chen"}[i/8]
		side := float64(i/8-1) * 3000
		p := places{drop: [2]float64{side + float64(i%8)*350, 900 + float64(i%8)*250}}
		p.pickup = [2]float64{p.drop[0] - 250, p.drop[1] - 300}
		body := map[string]any{
			"type": 2, "order_id": fmt.Sprintf("#%d", 1001+i), "notes": "ring twice",
			"drop": map[string]any{
				"lnglat": lnglat(p.drop[0], p.drop[1]), "address": fmt.Sprintf("%d Home Street", i+1),
				"customer": map[string]any{
					"name": fmt.Sprintf("Customer %d", i+1), "mobile": fmt.Sprintf("+49 89 %04d", i),
				},
			},
			"window": map[string]any{"from": "2026-03-02T08:00Z", "to": "2026-03-02T18:00Z"},
		}
		if i%2 == 1 {
			body["type"] = 3
			body["pickup"] = map[string]any{
				"lnglat": lnglat(p.pickup[0], p.pickup[1]), "address": fmt.Sprintf("Shop %d", i+1),
			}
		}
		switch i {
		case 2:
			body["proof"] = []string{"photo", "pin", "name"}
		case 12:
			body["proof"] = []string{"signature"}
		case 7, 15: // nobody can be there by then
			body["window"] = map[string]any{"to": "2026-03-02T08:20Z"}
		}
		id := d.do("desk", "POST", "/v1/task/create", body).text(t, "task.task_id")
		d.do("desk", "POST", "/v1/task/assign", map[string]any{"task_id": id, "driver_id": who})
		link := d.do("desk", "GET", "/v1/task/trackingurl/"+id, nil).text(t, "webUrl")
		d.links[id] = strings.TrimPrefix(link, "https://track.example")
		d.tasks = append(d.tasks, id)
		at[id] = p
	}
	d.say("24 tasks are created and assigned, eight for each driver")
	if v := d.sees(d.tasks[0]); v.text(t, "phase") != "assigned" ||
		v.text(t, "window.to") != "2026-03-02T18:00:00.000Z" {
		t.Errorf("before the start the customer sees %v", v)
	}

	// next does the driver's next task, as the app has him do.
	phases := map[string][]string{}
	watch := func(id string) object {
		v := d.sees(id)
		if seen := phases[id]; len(seen) == 0 || seen[len(seen)-1] != v.text(t, "phase") {
			phases[id] = append(phases[id], v.text(t, "phase"))
		}
		return v
	}
	verb := func(who, id, verb string, body map[string]any) object {
		t.Helper()
		if body == nil {
			body = map[string]any{}
		}
		return d.do(who, "POST", "/v1/driver/tasks/"+id+"/"+verb, body)
	}
	next := func(who string, body map[string]any) (id string) {
		t.Helper()
		id, leg, _ := strings.Cut(d.route(who)[0], " ")
		watch(id)
		verb(who, id, "start", nil)
		watch(id)
		if leg == "pickup" {
			d.drives(who, at[id].pickup[0], at[id].pickup[1])
			watch(id)
			verb(who, id, "pickup", nil)
			watch(id)
		}
		d.drives(who, at[id].drop[0], at[id].drop[1])
		watch(id)
		verb(who, id, "complete", body)
		watch(id)
		return id
	}

	// The morning.
	for i := range 2 {
		for _, who := range []string{"asha", "bilal", "chen"} {
			id := next(who, nil)
			if i == 0 {
				d.say("%s has done the first task, %s", who, d.task(id).text(t, "order_id"))
			}
		}
	}
	all := []string{"assigned", "to_pickup", "at_pickup", "to_drop", "at_drop", "done"}
	if got := phases[d.tasks[1]]; !slices.Equal(got, all) {
		t.Errorf("the customer of a task with pickup saw %q", got)
	}

	// Proofs.
	proved := d.tasks[2]
	verb("asha", proved, "start", nil)
	d.drives("asha", at[proved].drop[0], at[proved].drop[1])
	pin := d.sees(proved).text(t, "pin")
	d.refused(409, "asha", "POST", "/v1/driver/tasks/"+proved+"/complete", map[string]any{"received_by": "Mr Stone"})
	d.do("asha", "PUT", "/v1/driver/tasks/"+proved+"/proof/photo", photo(t))
	wrong := "0000"
	if pin == wrong {
		wrong = "0001"
	}
	d.refused(409, "asha", "POST", "/v1/driver/tasks/"+proved+"/complete",
		map[string]any{"received_by": "Mr Stone", "pin": wrong})
	verb("asha", proved, "complete", map[string]any{"received_by": "Mr Stone", "pin": pin})
	d.say("asha has delivered %s with photo, name and the customer's PIN", d.task(proved).text(t, "order_id"))

	// A mistake, and taken back.
	undone := next("asha", nil)
	d.wait(time.Minute)
	verb("asha", undone, "undo", nil)
	if got := d.route("asha")[0]; got != undone+" drop" {
		t.Errorf("after the undo the next stop is %s", got)
	}
	verb("asha", undone, "complete", map[string]any{"outcome": "failed", "reason_code": "not_home"})
	if v := watch(undone); v.text(t, "reason_code") != "not_home" {
		t.Errorf("the customer who was not home sees %v", v)
	}
	again := d.do("desk", "POST", "/v1/task/retry", map[string]any{
		"task_id": undone, "window": map[string]any{"from": "2026-03-02T15:00Z", "to": "2026-03-02T18:00Z"},
	}).text(t, "task.task_id")
	at[again] = at[undone]
	d.links[again] = d.links[undone]
	d.do("desk", "POST", "/v1/task/assign", map[string]any{"task_id": again, "driver_id": "asha"})
	if v := d.sees(undone); v.text(t, "phase") != "assigned" || v.text(t, "window.from") != "2026-03-02T15:00:00.000Z" {
		t.Errorf("behind the old link is %v", v)
	}
	d.say("asha took a completion back, nobody was home at %s; it is tried again at 15:00",
		d.task(undone).text(t, "order_id"))

	// Noon: another order.
	if noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC); d.now().Before(noon) {
		d.wait(noon.Sub(d.now()))
	}
	for _, who := range []string{"asha", "bilal", "chen"} {
		d.drives(who, d.where[who][0], d.where[who][1])
	}
	was := d.route("chen")
	var order []string // the last task first, a pickup before its drop
	for _, last := range slices.Backward(was) {
		id, _, _ := strings.Cut(last, " ")
		for _, s := range was {
			if strings.HasPrefix(s, id) && !slices.Contains(order, s) {
				order = append(order, s)
			}
		}
	}
	var stops []map[string]string
	for _, s := range order {
		id, leg, _ := strings.Cut(s, " ")
		stops = append(stops, map[string]string{"task_id": id, "leg": leg})
	}
	d.do("desk", "POST", "/v1/users/driver/route", map[string]any{"driver_id": "chen", "stops": stops})
	if got := d.route("chen"); !slices.Equal(got, order) {
		t.Errorf("chen's route is %v, want %v", got, order)
	}
	d.say("the desk has turned chen's route round")

	// Bilal's van breaks down with one under way.
	stuck, _, _ := strings.Cut(d.route("bilal")[0], " ")
	verb("bilal", stuck, "start", nil)
	d.wait(5 * time.Minute)
	d.refused(409, "desk", "POST", "/v1/users/driver/handover", map[string]any{"from": "bilal", "to": "asha"})
	before := len(d.route("bilal"))
	had := len(d.route("asha"))
	d.do("desk", "POST", "/v1/users/driver/handover", map[string]any{"from": "bilal", "to": "asha", "force": true})
	if got := d.route("asha"); len(d.route("bilal")) != 0 || len(got) != had+before {
		t.Errorf("after the hand-over asha has %d stops, %d of them bilal's", len(got), before)
	}
	if v := d.sees(stuck); v.text(t, "phase") != "assigned" {
		t.Errorf("the customer of what was under way sees %v", v)
	}
	d.say("bilal's van has broken down; asha has taken over all of it, %d stops", before)

	// The desk takes back what chen completed by mistake.
	mistaken := next("chen", nil)
	d.do("desk", "POST", "/v1/task/reopen", map[string]any{"task_id": mistaken})
	if got := d.route("chen"); !slices.Contains(got, mistaken+" drop") {
		t.Errorf("after the reopening chen's route is %v", got)
	}
	d.say("the desk has reopened %s", d.task(mistaken).text(t, "order_id"))

	// A customer writes, and the afternoon takes its course.
	noted := d.tasks[20]
	d.do("", "POST", d.links[noted]+"/note", map[string]any{"text": "Please leave it with the neighbour"})
	if got := d.task(noted).text(t, "customer_note"); got != "Please leave it with the neighbour" {
		t.Errorf("the note reads %q", got)
	}
	for _, who := range []string{"chen", "asha"} {
		for len(d.route(who)) > 0 {
			id, _, _ := strings.Cut(d.route(who)[0], " ")
			if id == d.tasks[12] {
				d.do(who, "POST", "/v1/driver/tasks/"+id+"/start", nil)
				if strings.HasSuffix(d.route(who)[0], "pickup") {
					d.drives(who, at[id].pickup[0], at[id].pickup[1])
					verb(who, id, "pickup", nil)
				}
				d.drives(who, at[id].drop[0], at[id].drop[1])
				d.refused(409, who, "POST", "/v1/driver/tasks/"+id+"/complete", map[string]any{})
				d.do(who, "PUT", "/v1/driver/tasks/"+id+"/proof/signature", photo(t))
				verb(who, id, "complete", map[string]any{})
				continue
			}
			next(who, nil)
		}
		d.say("%s has nothing left to do", who)
	}

	// What stands at the end.
	done := map[string]int{}
	for _, id := range append(slices.Clone(d.tasks), again) {
		task := d.task(id)
		done[task.text(t, "status")+" "+task.text(t, "outcome")]++
		if v := d.sees(id); v.text(t, "phase") != "done" || v.at("position") != nil || len(v["path"].([]any)) > 0 {
			t.Errorf("behind the link of %s is %v", task.text(t, "order_id"), v)
		}
	}
	if done["completed succeeded"] != 24 || done["completed failed"] != 1 {
		t.Errorf("in the evening: %v", done)
	}
	late := map[string]int{}
	for _, id := range d.tasks {
		seq := 0.0
		for _, e := range d.do("desk", "GET", "/v1/events?limit=1000&task_id="+id, nil)["events"].([]any) {
			e := object(e.(map[string]any))
			if seq++; e.at("seq") != seq {
				t.Errorf("event %v of %s has seq %v", seq, id, e.at("seq"))
			}
			if e.text(t, "type") == "task.late" {
				late[id]++
			}
		}
	}
	if len(late) != 2 || late[d.tasks[7]] != 1 || late[d.tasks[15]] != 1 {
		t.Errorf("late: %v", late)
	}
	d.say("24 delivered, one failed and tried again, two late")
}
