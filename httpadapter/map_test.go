package httpadapter_test

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/maptest"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// Each application's pages name their own map of streets, which is served in parts under any prefix.
func TestStreetMap(t *testing.T) {
	open := func(name string, lng, lat float64) *web.Map {
		file := filepath.Join(t.TempDir(), name)
		if err := maptest.Write(file, lng, lat); err != nil {
			t.Fatal(err)
		}
		m, err := web.OpenMap(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.Close() })
		return m
	}
	one, other := open("one.pmtiles", 2, 41), open("other.pmtiles", 13, 52)
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) {
		ho.Prefix, ho.Site.Map = "/delivery", one
		ho.Sites = map[tracking.AppID]web.Site{"other": {Map: other}}
	})
	r := s.do("GET", "/delivery/driver/", "")
	block := regexp.MustCompile(`<script type="application/json" id="config">([^<]*)</script>`).FindStringSubmatch(r.body)
	var config struct {
		Map struct {
			URL, Attribution string
			MaxZoom          int `json:"max_zoom"`
		}
	}
	if block == nil || json.Unmarshal([]byte(block[1]), &config) != nil {
		t.Fatalf("the driver app has no configuration:\n%.500s", r.body)
	}
	if m := config.Map; m.URL != "/delivery/driver/map/"+one.Name() || m.Attribution != "© OpenStreetMap" ||
		m.MaxZoom != 14 {
		t.Errorf("the driver app's map is %+v", m)
	}
	for _, m := range []*web.Map{one, other} {
		req, err := http.NewRequest("GET", s.url+"/delivery/driver/map/"+m.Name(), nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Range", "bytes=0-6")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusPartialContent || resp.ContentLength != 7 {
			t.Errorf("a part of a map: %s with %d bytes", resp.Status, resp.ContentLength)
		}
	}
	if r := s.do("GET", "/delivery/driver/map/none.pmtiles", ""); r.status != 404 {
		t.Errorf("a map that is not there: %d", r.status)
	}
}
