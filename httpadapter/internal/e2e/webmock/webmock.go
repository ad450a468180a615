// Package webmock serves the web fronts before an API that answers from fixed scenes, so that
// each state of them can be looked at and tested by itself.
package webmock

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// Server serves the scenes. The tracking page of a scene is at /track/{name}, and its invite at
// /join/{name}; any code of six digits joins the scene of that number.
type Server struct {
	Site    web.Site
	Track   map[string]map[string]any // what /track/{name}/state has as data.tracking
	Drivers []Driver
	Boards  []Board
	Now     func() time.Time

	// Then are the states that a live stream of the scene goes through, one after the other, after
	// the first.
	Then map[string][]map[string]any

	fronts *web.Fronts
}

// Driver is a scene of the driver app.
type Driver struct {
	Name     string
	Me       map[string]any
	Tasks    []map[string]any
	Trips    []map[string]any
	Requests []map[string]any
	Apps     []map[string]any
	Revoked  bool // every call after joining is refused
	Refuses  bool // every step of a task is refused
	WrongPIN bool // no PIN is the right one
}

type object = map[string]any

// New prepares a Server with the scenes of this package.
func New(site web.Site, now func() time.Time) (*Server, error) {
	if err := site.Check(); err != nil {
		return nil, err
	}
	fronts, err := web.New()
	if err != nil {
		return nil, err
	}
	return &Server{Site: site, Track: trackScenes(now()), Drivers: driverScenes(now()), Boards: boardScenes(now()), Now: now, fronts: fronts}, nil
}

// Handler is the routes of the Server.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	p := s.Site.Prefix
	mux.HandleFunc("GET "+p+"/track/{token}", s.trackPage)
	mux.HandleFunc("GET "+p+"/track/{token}/state", s.trackState)
	mux.HandleFunc("GET "+p+"/track/{token}/live", s.trackLive)
	mux.HandleFunc("POST "+p+"/track/{token}/note", func(w http.ResponseWriter, _ *http.Request) { succeed(w, nil) })
	mux.HandleFunc("GET "+p+"/track/{token}/proof/{id}", photo)
	mux.HandleFunc("GET "+p+"/driver/assets/{file}", func(w http.ResponseWriter, r *http.Request) {
		s.fronts.ServeAsset(w, r, r.PathValue("file"))
	})
	if m := s.Site.Map; m != nil {
		mux.Handle("GET "+p+"/driver/map/"+m.Name(), m)
	}
	mux.HandleFunc("GET "+p+"/driver/sw.js", s.fronts.ServeWorker)
	mux.HandleFunc("GET "+p+"/driver/manifest.webmanifest", func(w http.ResponseWriter, r *http.Request) {
		s.fronts.ServeManifest(w, r, s.Site)
	})
	mux.HandleFunc("GET "+p+"/driver/{$}", s.driverPage)
	mux.HandleFunc("GET "+p+"/join/{token}", s.driverPage)
	mux.HandleFunc("GET "+p+"/tiles/{z}/{x}/{y}", tile)
	mux.HandleFunc("POST "+p+"/v1/driver/join", s.join)
	mux.HandleFunc(p+"/v1/driver/", s.driver)
	s.boardRoutes(mux)
	return mux
}

func (s *Server) trackPage(w http.ResponseWriter, r *http.Request) {
	state, ok := s.Track[r.PathValue("token")]
	page, status := web.Page{}, http.StatusOK
	var err error
	if ok {
		var data []byte
		if data, err = json.Marshal(state); err == nil {
			page, err = s.fronts.Tracking(s.Site, r.PathValue("token"), data, r.Header.Get("Accept-Language"), s.Now())
		}
	} else {
		page, err = s.fronts.Gone(s.Site, r.Header.Get("Accept-Language"))
		status = http.StatusNotFound
	}
	serve(w, r, page, status, err)
}

func (s *Server) driverPage(w http.ResponseWriter, r *http.Request) {
	page, err := s.fronts.Driver(s.Site, r.Header.Get("Accept-Language"), s.Now())
	serve(w, r, page, http.StatusOK, err)
}

func serve(w http.ResponseWriter, r *http.Request, page web.Page, status int, err error) {
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	page.Serve(w, r, status)
}

// photo is a parcel before a door.
func photo(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "image/svg+xml")
	fmt.Fprint(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 300" width="400" height="300">`+
		`<path fill="#8d99a6" d="M0 0h400v300H0z"/><path fill="#41586b" d="M130 30h140v230H130z"/>`+
		`<path fill="#b98b52" d="M150 190h90v70h-90z"/></svg>`)
}

func (s *Server) trackState(w http.ResponseWriter, r *http.Request) {
	state, ok := s.Track[r.PathValue("token")]
	if !ok {
		fail(w, http.StatusNotFound, "There is no such link.")
		return
	}
	succeed(w, object{"tracking": state})
}

func (s *Server) trackLive(w http.ResponseWriter, r *http.Request) {
	state, ok := s.Track[r.PathValue("token")]
	if !ok {
		fail(w, http.StatusNotFound, "There is no such link.")
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, state := range append([]map[string]any{state}, s.Then[r.PathValue("token")]...) {
		data, err := json.Marshal(state)
		if err != nil {
			panic(err) // a scene of ours
		}
		fmt.Fprintf(w, "event: state\ndata: %s\n\n", data)
	}
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func (s *Server) join(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Code   string `json:"invite_code"`
		Invite string `json:"invite"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		fail(w, http.StatusBadRequest, "The body is no JSON object.")
		return
	}
	for i, d := range s.Drivers {
		if body.Invite == d.Name || body.Code == fmt.Sprintf("%06d", 100000+i) {
			succeed(w, object{
				"driver": d.Me, "token": d.Name,
				"ingest_url": "http://" + r.Host + s.Site.Prefix + "/ingest/" + d.Name,
			})
			return
		}
	}
	fail(w, http.StatusNotFound, "This invite is not valid.")
}

// driver answers what the driver app asks of /v1/driver.
func (s *Server) driver(w http.ResponseWriter, r *http.Request) {
	token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	var d *Driver
	for i := range s.Drivers {
		if s.Drivers[i].Name == token && !s.Drivers[i].Revoked {
			d = &s.Drivers[i]
		}
	}
	if d == nil {
		fail(w, http.StatusUnauthorized, "The token is not valid.")
		return
	}
	path := strings.TrimPrefix(r.URL.Path, s.Site.Prefix+"/v1/driver/")
	switch {
	case path == "me":
		succeed(w, object{"driver": d.Me, "reorder": true, "undo_for": 600})
	case path == "route" && r.Method == http.MethodGet:
		succeed(w, object{"stops": list(stops(d.Tasks)), "version": 1})
	case path == "tasks":
		succeed(w, object{"task_list": list(d.Tasks)})
	case path == "trips" && r.Method == http.MethodGet:
		succeed(w, object{"trips": list(d.Trips)})
	case path == "requests":
		succeed(w, object{"requests": list(d.Requests)})
	case path == "phone":
		succeed(w, object{"apps": list(d.Apps)})
	case path == "notifications":
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, ": open\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	case r.Method == http.MethodPost && d.Refuses && strings.HasPrefix(path, "tasks/"):
		fail(w, http.StatusConflict, "The task is completed.")
	case r.Method == http.MethodPost && d.WrongPIN && strings.HasSuffix(path, "/complete"):
		refuse(w, http.StatusConflict, "This is not the PIN of the task.", "pin")
	case r.Method == http.MethodPut:
		succeed(w, object{})
	case r.Method == http.MethodPost:
		succeed(w, object{})
	default:
		fail(w, http.StatusNotFound, "There is no such path.")
	}
}

// stops are the route of a driver whose tasks are listed in its order: all pickups first, as where a
// van is loaded.
func stops(tasks []map[string]any) (pickups []map[string]any) {
	var drops []map[string]any
	for _, t := range tasks {
		if t["status"] == "completed" {
			continue
		}
		if t["type"] != 2 && t["picked_up_at"] == nil {
			pickups = append(pickups, object{"task_id": t["task_id"], "leg": "pickup"})
		}
		if t["type"] != 1 {
			drops = append(drops, object{"task_id": t["task_id"], "leg": "drop"})
		}
	}
	return append(pickups, drops...)
}

func list(l []map[string]any) []map[string]any {
	if l == nil {
		return []map[string]any{}
	}
	return l
}

func succeed(w http.ResponseWriter, data object) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	// fails only when the browser has gone
	_ = json.NewEncoder(w).Encode(object{"message": "OK", "success": true, "data": data})
}

func fail(w http.ResponseWriter, status int, message string) { refuse(w, status, message, "") }

// refuse fails for what is in a field.
func refuse(w http.ResponseWriter, status int, message, field string) {
	e := object{"code": "error"}
	if field != "" {
		e["field"] = field
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(object{"message": message, "success": false, "error": e})
}

// tile draws streets of no city: lines at places that depend on nothing but the tile's number.
func tile(w http.ResponseWriter, r *http.Request) {
	var z, x, y int
	if _, err := fmt.Sscanf(r.PathValue("z")+" "+r.PathValue("x")+" "+r.PathValue("y"), "%d %d %d.svg", &z, &x,
		&y); err != nil {
		http.NotFound(w, r)
		return
	}
	var b strings.Builder
	b.WriteString(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 256 256"><rect width="256" height="256" fill="#f3efe6"/>`)
	if (x+3*y)%7 == 0 {
		b.WriteString(`<rect x="70" y="66" width="120" height="124" rx="8" fill="#cfe6c4"/>`)
	}
	for i := range 4 {
		at := 64*i + 8
		width := 7
		if (x+i)%4 == 0 {
			width = 16
		}
		fmt.Fprintf(&b, `<path d="M%d 0V256" stroke="#fff" stroke-width="%d"/>`, at, width)
		width = 7
		if (y+i)%4 == 0 {
			width = 16
		}
		fmt.Fprintf(&b, `<path d="M0 %dH256" stroke="#fff" stroke-width="%d"/>`, at, width)
	}
	b.WriteString(`</svg>`)
	w.Header().Set("Content-Type", "image/svg+xml")
	_, _ = w.Write([]byte(b.String())) // fails only when the browser has gone
}

// Route is a drive through an imaginary grid of streets, from the depot to the door, as [longitude,
// latitude].
func Route() [][2]float64 {
	corners := [][2]float64{
		{13.3702, 52.5101}, {13.3702, 52.5148}, {13.3805, 52.5148}, {13.3805, 52.5196}, {13.3958, 52.5196},
		{13.3958, 52.5222},
	}
	route := [][2]float64{corners[0]}
	for _, c := range corners[1:] {
		last := route[len(route)-1]
		n := int(math.Ceil(math.Hypot((c[0]-last[0])*67_000, (c[1]-last[1])*111_000) / 25)) // a point about every 25 m
		for i := 1; i <= n; i++ {
			f := float64(i) / float64(n)
			route = append(route, [2]float64{last[0] + (c[0]-last[0])*f, last[1] + (c[1]-last[1])*f})
		}
	}
	return route
}
