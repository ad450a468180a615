package httpadapter_test

import (
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// Each application's customers see its own brand.
func TestSites(t *testing.T) {
	s := newServer(t, func(_ *tracking.Options, o *httpadapter.Options) {
		o.Site = web.Site{Name: "House"}
		o.Sites = map[tracking.AppID]web.Site{
			"b": {Name: "Bakery", Tiles: web.Tiles{URL: "https://tiles.bakery.example/{z}/{x}/{y}.png"}},
		}
	})
	for app, want := range map[tracking.AppID]string{"a": "House", "b": "Bakery"} {
		svc := s.svc.ForApp(app)
		task, err := svc.CreateTask(t.Context(), tracking.NewTask{
			Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "x"},
		})
		if err != nil {
			t.Fatal(err)
		}
		token, err := svc.TaskLink(t.Context(), task.ID)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.Get(s.url + "/track/" + token)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK ||
			strings.Contains(string(body), "House") != (want == "House") || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %v, and the page is not %s's", app, res.StatusCode, err, want)
		}
		if csp := res.Header.Get("Content-Security-Policy"); strings.Contains(csp,
			"tiles.bakery.example") != (app == "b") {
			t.Errorf("%s: CSP %q", app, csp)
		}
	}
	svc, err := tracking.New(struct{ tracking.Store }{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := httpadapter.New(svc, &httpadapter.Options{
		Sites: map[tracking.AppID]web.Site{"b": {Color: "red"}},
	}); err == nil {
		t.Error("a colour that is none was taken")
	}
}

// Behind a proxy that takes a path away, all that the pages name is still below that path.
func TestPagesBehindProxy(t *testing.T) {
	s := newServer(t, func(_ *tracking.Options, o *httpadapter.Options) {
		o.BaseURL, o.Prefix = "https://track.example/way/", "/delivery"
		o.Sites = map[tracking.AppID]web.Site{"b": {Name: "Bakery"}}
	})
	s.url = newHTTPServer(t, http.StripPrefix("/way", s.h))
	const base = "/way/delivery"
	if r := s.do("GET", base+"/driver", ""); r.status != http.StatusPermanentRedirect ||
		r.header.Get("Location") != base+"/driver/" {
		t.Errorf("/driver: %d to %q", r.status, r.header.Get("Location"))
	}
	if r := s.do("GET", base+"/board", ""); r.status != http.StatusPermanentRedirect ||
		r.header.Get("Location") != base+"/board/" {
		t.Errorf("/board: %d to %q", r.status, r.header.Get("Location"))
	}
	pages := []string{base + "/driver/", base + "/board/"}
	for _, app := range []tracking.AppID{"a", "b"} {
		svc := s.svc.ForApp(app)
		task, err := svc.CreateTask(t.Context(), tracking.NewTask{
			Type: tracking.TypeDrop, Drop: &tracking.Place{Address: "x"},
		})
		if err != nil {
			t.Fatal(err)
		}
		token, err := svc.TaskLink(t.Context(), task.ID)
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, base+"/track/"+token)
	}
	files := regexp.MustCompile(`(?:src|href)="(/[^"]*)"`)
	block := regexp.MustCompile(`id="config">(.*?)</script>`)
	for _, page := range pages {
		r := s.do("GET", page, "")
		if r.status != http.StatusOK {
			t.Errorf("%s: %d", page, r.status)
		}
		names := files.FindAllStringSubmatch(r.body, -1)
		if len(names) < 3 {
			t.Errorf("%s names %d files", page, len(names))
		}
		for _, name := range names {
			if f := s.do("GET", name[1], ""); !strings.HasPrefix(name[1], base+"/") || f.status != http.StatusOK {
				t.Errorf("%s names %s: %d", page, name[1], f.status)
			}
		}
		var config struct{ Base string }
		if m := block.FindStringSubmatch(r.body); m == nil || json.Unmarshal([]byte(m[1]), &config) != nil ||
			config.Base != base {
			t.Errorf("%s: the script is given the base %q", page, config.Base)
		}
	}
	var manifest struct {
		Start string `json:"start_url"`
		Scope string
		Icons []struct{ Src string }
	}
	r := s.do("GET", base+"/driver/manifest.webmanifest", "")
	if err := json.Unmarshal([]byte(r.body), &manifest); err != nil {
		t.Fatal(err)
	}
	if manifest.Start != base+"/driver/" || manifest.Scope != manifest.Start || len(manifest.Icons) == 0 ||
		!strings.HasPrefix(manifest.Icons[0].Src, base+"/driver/assets/") {
		t.Errorf("manifest: %+v", manifest)
	}
}

// The board is on the mux and says nothing of who calls; a program with a board of its own leaves it
// out.
func TestBoardPage(t *testing.T) {
	for _, without := range []bool{false, true} {
		s := newServer(t, func(_ *tracking.Options, o *httpadapter.Options) { o.NoBoard = without })
		mux := http.NewServeMux()
		s.h.Mount(mux)
		s.url = newHTTPServer(t, mux)
		r := s.do("GET", "/board/", "")
		if without {
			if r.status != http.StatusNotFound || strings.Contains(r.body, `class="board"`) {
				t.Errorf("left out, /board/ is %d", r.status)
			}
			continue
		}
		if r.status != http.StatusOK || !strings.Contains(r.body, `"keys":true`) ||
			!strings.Contains(r.body, `"silent_after":300000`) {
			t.Errorf("/board/: %d %.300s", r.status, r.body)
		}
		csp := r.header.Get("Content-Security-Policy")
		if !strings.Contains(csp, "frame-ancestors 'none'") || r.header.Get("X-Frame-Options") != "DENY" ||
			r.header.Get("Permissions-Policy") != "geolocation=(), camera=(), microphone=()" {
			t.Errorf("headers %v", r.header)
		}
	}
	own := newServer(t, func(_ *tracking.Options, o *httpadapter.Options) {
		o.Authenticate = func(*http.Request) (httpadapter.Principal, error) {
			return httpadapter.Principal{}, tracking.ErrUnauthorized
		}
	})
	if r := own.do("GET", "/board/", ""); strings.Contains(r.body, `"keys":true`) {
		t.Error("where there is a login of its own, the board asks for a key")
	}
}
