package webmock

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"time"

	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// Board is a scene of the board. Its name signs in, as a key or as the token of a link.
type Board struct {
	Name    string
	Role    string
	Drivers []map[string]any
	Tasks   []map[string]any // those that are completed too
	Waiting map[string]map[string]any
	Moves   bool // each driver has another position every second
}

const boardCookie = "tracking_session"

func (s *Server) boardPage(w http.ResponseWriter, r *http.Request) {
	page, err := s.fronts.Board(s.Site, r.Header.Get("Accept-Language"), s.Now(),
		web.BoardOptions{Keys: true, SilentAfter: 10 * time.Minute})
	serve(w, r, page, http.StatusOK, err)
}

func (s *Server) boardOf(name string) *Board {
	for i := range s.Boards {
		if s.Boards[i].Name == name {
			return &s.Boards[i]
		}
	}
	return nil
}

// signedIn hands a call to its scene.
func (s *Server) signedIn(handle func(*Board, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := r.Cookie(boardCookie)
		if err == nil {
			if b := s.boardOf(c.Value); b != nil {
				handle(b, w, r)
				return
			}
		}
		fail(w, http.StatusUnauthorized, "You are not signed in.")
	}
}

func (s *Server) boardRoutes(mux *http.ServeMux) {
	p := s.Site.Prefix
	mux.HandleFunc("GET "+p+"/board/{$}", s.boardPage)
	mux.HandleFunc("POST "+p+"/v1/session", func(w http.ResponseWriter, r *http.Request) {
		var body struct{ Key, Token string }
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			fail(w, http.StatusBadRequest, "The body is no JSON object.")
			return
		}
		b := s.boardOf(body.Key + body.Token)
		if b == nil {
			fail(w, http.StatusUnauthorized, "The key is not valid.")
			return
		}
		http.SetCookie(w, &http.Cookie{
			Name: boardCookie, Value: b.Name, Path: p + "/", HttpOnly: true, SameSite: http.SameSiteStrictMode,
		})
		succeed(w, object{"session": b.session()})
	})
	mux.HandleFunc("DELETE "+p+"/v1/session", func(w http.ResponseWriter, _ *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: boardCookie, Path: p + "/", MaxAge: -1})
		succeed(w, nil)
	})
	mux.HandleFunc("GET "+p+"/v1/session", s.signedIn(func(b *Board, w http.ResponseWriter, _ *http.Request) {
		succeed(w, object{"session": b.session()})
	}))
	mux.HandleFunc("GET "+p+"/v1/live", s.signedIn(s.boardLive))
	mux.HandleFunc("GET "+p+"/v1/task/list", s.signedIn(func(b *Board, w http.ResponseWriter, r *http.Request) {
		tasks := []map[string]any{}
		for _, t := range b.Tasks {
			waits := b.Waiting[t["task_id"].(string)]
			switch {
			case r.FormValue("waiting") == "true" && waits != nil:
				tasks = append(tasks, merge(t, object{"waiting": waits}))
			case r.FormValue("status") == "completed" && t["status"] == "completed":
				tasks = append(tasks, t)
			}
		}
		succeed(w, object{"task_list": tasks, "has_more": false})
	}))
	mux.HandleFunc("GET "+p+"/v1/task/candidates", s.signedIn(func(b *Board, w http.ResponseWriter, r *http.Request) {
		data := object{"candidates": b.candidates()}
		if waits := b.Waiting[r.FormValue("task_id")]; waits != nil {
			data["waiting"] = waits
		}
		succeed(w, data)
	}))
	mux.HandleFunc("GET "+p+"/v1/users/driver/route", s.signedIn(func(b *Board, w http.ResponseWriter, r *http.Request) {
		var own []map[string]any
		for _, t := range b.Tasks {
			if t["driver_id"] == r.FormValue("driver_id") {
				own = append(own, t)
			}
		}
		list := list(stops(own))
		for i := range list {
			list[i]["eta"] = object{"time": ms(s.Now().Add(time.Duration(8+9*i) * time.Minute)), "source": "estimate"}
		}
		succeed(w, object{"stops": list, "version": 1})
	}))
	mux.HandleFunc("GET "+p+"/v1/events", s.signedIn(func(_ *Board, w http.ResponseWriter, _ *http.Request) {
		succeed(w, object{"events": []any{}, "has_more": false})
	}))
}

func (b *Board) session() object { return object{"actor": "user:dana", "role": b.Role} }

func (b *Board) candidates() []map[string]any {
	list := []map[string]any{}
	for i, d := range b.Drivers {
		fit := "yes"
		switch {
		case d["availability"] != true:
			fit = "off_duty"
		case d["open_tasks"].(int) > 3:
			fit = "busy"
		}
		list = append(list, object{
			"driver_id": d["driver_id"], "name": d["name"], "distance": 420 + 890*i, "open_tasks": d["open_tasks"],
			"fit": fit,
		})
	}
	return list[:min(len(list), 8)]
}

// boardLive sends the snapshot, and then holds the stream open.
func (s *Server) boardLive(b *Board, w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	send := func(event string, data any) {
		text, err := json.Marshal(data)
		if err != nil {
			panic(err) // a scene of ours
		}
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, text)
	}
	for _, d := range b.Drivers {
		send("driver", d)
	}
	for _, t := range b.Tasks {
		if t["status"] != "completed" {
			send("task", t)
		}
	}
	send("ready", object{"at": ms(s.Now())})
	w.(http.Flusher).Flush()
	beat := time.NewTicker(time.Second)
	defer beat.Stop()
	for n := 1; ; n++ {
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
		}
		fmt.Fprint(w, ": beat\n\n")
		for i, d := range b.Drivers {
			at, ok := d["lnglat"].([2]float64)
			if !b.Moves || !ok {
				break
			}
			angle := float64(i) + float64(n)/20
			send("position", object{
				"driver_id": d["driver_id"], "at": ms(s.Now()),
				"lnglat": [2]float64{at[0] + 0.002*math.Cos(angle), at[1] + 0.0012*math.Sin(angle)},
			})
		}
		w.(http.Flusher).Flush()
	}
}

func boardScenes(now time.Time) []Board {
	drivers, tasks, waiting := company(now)
	large := Board{Name: "large", Role: "dispatch", Moves: true}
	large.Drivers, large.Tasks = crowd(now, 200, 500)
	return []Board{
		{Name: "busy", Role: "dispatch", Drivers: drivers, Tasks: tasks, Waiting: waiting},
		{Name: "view", Role: "view", Drivers: drivers, Tasks: tasks, Waiting: waiting},
		{Name: "calm", Role: "dispatch", Drivers: drivers[:2]},
		{Name: "empty", Role: "dispatch"},
		large,
	}
}

// company is one at work: a late task, two that wait, one that failed, a silent driver.
func company(now time.Time) (drivers, tasks []map[string]any, waiting map[string]map[string]any) {
	ago := func(d time.Duration) string { return ms(now.Add(-d)) }
	in := func(d time.Duration) string { return ms(now.Add(d)) }
	driver := func(id, name string, at [2]float64, seen time.Duration, open int, more object) {
		drivers = append(drivers, merge(object{
			"driver_id": id, "name": name, "availability": true, "lnglat": at, "located_at": ago(seen),
			"last_seen_at": ago(seen), "open_tasks": open, "version": 1, "mobile": "+49 170 12345" + fmt.Sprint(open),
			"properties": object{},
		}, more))
	}
	driver("asha", "Asha Raman", [2]float64{13.382, 52.517}, 3*time.Second, 4, object{"battery": 0.82})
	driver("bilal", "Bilal Aydın", [2]float64{13.404, 52.523}, 5*time.Second, 2, object{"clock_skew": 95})
	driver("chen", "Chen Wei", [2]float64{13.421, 52.512}, 2*time.Second, 0, object{"battery": 0.14})
	driver("dora", "Dora Schmidt-Wernigerode", [2]float64{13.391, 52.507}, 14*time.Minute, 2, object{"unread": 4})
	driver("emre", "Emre Koç", [2]float64{13.368, 52.526}, 12*time.Minute, 0, object{"availability": false})
	driver("fay", "Fay Long", [2]float64{13.412, 52.532}, 8*time.Second, 1, object{"located_at": ago(24 * time.Minute)})

	streets := []string{"Lindenstraße", "Torstraße", "Auguststraße", "Invalidenstraße", "Brunnenstraße", "Linienstraße"}
	n := 0
	task := func(status, driver string, more object) string {
		n++
		id := fmt.Sprintf("t-%02d", n)
		tasks = append(tasks, merge(object{
			"task_id": id, "type": 2, "status": status, "outcome": "", "order_id": fmt.Sprint(4100 + n), "driver_id": driver,
			"drop": object{
				"address":  fmt.Sprintf("%s %d, 10117 Berlin", streets[n%len(streets)], 3+7*n%90),
				"lnglat":   [2]float64{13.37 + 0.0061*float64(n*5%10), 52.505 + 0.0034*float64(n*7%10)},
				"customer": object{"name": "Ada Long", "mobile": "+49 170 7654321"},
			},
			"created_at": ago(time.Duration(60-n) * time.Minute), "version": 3, "customer_note": "",
			"window": object{"from": in(time.Duration(n-6) * 10 * time.Minute), "to": in(time.Duration(n+2) * 10 * time.Minute)},
		}, more))
		return id
	}
	bakery := object{"address": "Bakery, Mill Lane 3, 10117 Berlin", "lnglat": [2]float64{13.396, 52.519}}
	task("in_progress", "asha", object{"window": object{"to": ago(12 * time.Minute)}, "promised": ago(12 * time.Minute), "late": true})
	task("assigned", "bilal", object{"promised": ago(3 * time.Minute), "window": object{"to": ago(3 * time.Minute)}, "late": true})
	for i := range 3 {
		task("assigned", "asha", object{"type": 2 + i%2, "pickup": bakery})
	}
	task("in_progress", "bilal", object{"type": 3, "pickup": bakery})
	task("in_progress", "dora", nil)
	task("assigned", "dora", object{
		"stuck": []object{{"driver_id": "bilal", "step": "complete", "at": ago(7 * time.Minute), "why": "gone"}},
	})
	task("in_progress", "fay", nil)
	waits := task("created", "", object{"created_at": ago(9 * time.Minute)})
	unfit := task("created", "", object{"created_at": ago(5 * time.Minute), "requires": object{"fridge": "yes"}})
	waiting = map[string]map[string]any{
		waits: {"since": ago(9 * time.Minute), "reason": "busy"}, unfit: {"since": ago(5 * time.Minute), "reason": "unfit"},
	}
	for i := range 5 {
		task("created", "", object{"window": object{"from": in(time.Duration(i+2) * time.Hour), "to": in(time.Duration(i+4) * time.Hour)}})
	}
	task("completed", "asha", object{"outcome": "failed", "reason_code": "not_home", "completed_at": ago(21 * time.Minute)})
	for range 4 {
		task("completed", "asha", object{"outcome": "succeeded", "completed_at": ago(time.Minute)})
	}
	task("completed", "chen", object{"outcome": "succeeded", "completed_at": ago(time.Minute)})
	for _, t := range tasks {
		if w := waiting[t["task_id"].(string)]; w != nil {
			t["waiting"] = object{"since": w["since"]}
		}
	}
	return drivers, tasks, waiting
}

// crowd is many drivers and tasks in one city, at places that depend on nothing but their numbers.
func crowd(now time.Time, drivers, tasks int) (d, t []map[string]any) {
	at := func(i int) [2]float64 {
		angle, far := float64(i)*2.39996, 0.0042*math.Sqrt(float64(i))
		return [2]float64{13.405 + far*math.Cos(angle)*1.6, 52.52 + far*math.Sin(angle)}
	}
	open := make([]int, drivers)
	for i := range tasks {
		status, driver := "assigned", fmt.Sprintf("d-%03d", i%drivers)
		switch {
		case i%25 == 0:
			status, driver = "created", ""
		case i < drivers:
			status = "in_progress"
		}
		if driver != "" {
			open[i%drivers]++
		}
		t = append(t, object{
			"task_id": fmt.Sprintf("t-%03d", i), "type": 2, "status": status, "outcome": "", "order_id": fmt.Sprint(9000 + i),
			"driver_id": driver, "drop": object{"address": fmt.Sprintf("Street %d", i), "lnglat": at(i)}, "version": 1,
			"created_at": ms(now.Add(-time.Hour)), "window": object{"to": ms(now.Add(time.Duration(i+30) * time.Minute))},
		})
	}
	for i := range drivers {
		d = append(d, object{
			"driver_id": fmt.Sprintf("d-%03d", i), "name": fmt.Sprintf("Driver %03d", i), "availability": true,
			"lnglat": at(i*2 + 1), "located_at": ms(now), "last_seen_at": ms(now), "open_tasks": open[i], "version": 1,
			"properties": object{},
		})
	}
	return d, t
}
