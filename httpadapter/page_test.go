package httpadapter_test

import (
	"io"
	"net/http"
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
		o.Sites = map[tracking.AppID]web.Site{"b": {Name: "Bakery", Tiles: web.Tiles{URL: "https://tiles.bakery.example/{z}/{x}/{y}.png"}}}
	})
	for app, want := range map[tracking.AppID]string{"a": "House", "b": "Bakery"} {
		svc := s.svc.ForApp(app)
		task, err := svc.CreateTask(t.Context(), tracking.NewTask{Type: tracking.Drop, Drop: &tracking.Place{Address: "x"}})
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
		if err != nil || res.StatusCode != http.StatusOK || strings.Contains(string(body), "House") != (want == "House") || !strings.Contains(string(body), want) {
			t.Errorf("%s: %d %v, and the page is not %s's", app, res.StatusCode, err, want)
		}
		if csp := res.Header.Get("Content-Security-Policy"); strings.Contains(csp, "tiles.bakery.example") != (app == "b") {
			t.Errorf("%s: CSP %q", app, csp)
		}
	}
	svc, err := tracking.New(struct{ tracking.Store }{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := httpadapter.New(svc, &httpadapter.Options{Sites: map[tracking.AppID]web.Site{"b": {Color: "red"}}}); err == nil {
		t.Error("a colour that is none was taken")
	}
}
