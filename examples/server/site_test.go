package main

import (
	"encoding/json"
	"html"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSite: what the flags say of name, logo and tiles stands on the pages, which may load these
// images and no others.
func TestSite(t *testing.T) {
	const (
		name        = `Ørsted & "Sons" <b>`
		logo        = "https://cdn.example.com/logo.svg?v=1&w=2"
		tiles       = "https://{s}.tiles.example.org/{z}/{x}/{y}{r}.png"
		attribution = "© the map's makers"
	)
	for _, tt := range []struct {
		args                           []string
		name, logo, tiles, attribution string
		images                         string // img-src of the policy
	}{
		{nil, "Tracking", "", "", "", "'self'"},
		{[]string{
			"-name", name, "-logo", logo, "-tiles", tiles, "-tiles-attribution", attribution,
		}, name, logo, tiles, attribution,
			"'self' https://cdn.example.com https://*.tiles.example.org"},
		{
			[]string{"-logo", "data:image/png;base64,AAAA", "-tiles", "/tiles/{z}/{x}/{y}.png"}, "Tracking",
			"data:image/png;base64,AAAA", "/tiles/{z}/{x}/{y}.png", "", "'self' data:",
		},
	} {
		s := start(t, tt.args...)
		task := s.call("", "/v1/task/create",
			`{"type":2,"drop":{"lnglat":[2.17,41.39],"address":"45 First Avenue"}}`).text(t, "task.task_id")
		invite := s.call("", "/v1/invite_user", `{"user_id":"dora"}`).text(t, "url")
		link := s.call("", "/v1/task/trackingurl/"+task, "").text(t, "webUrl")
		for _, address := range []string{link, invite, s.base + "/driver/"} {
			policy, text := s.page(address)
			directives := strings.Split(policy, "; ")
			for _, want := range []string{"default-src 'none'", "img-src " + tt.images} {
				if !slices.Contains(directives, want) {
					t.Errorf("server %q: the policy of %s is %s, want %s", tt.args, address, policy, want)
				}
			}
			if got := title.FindStringSubmatch(text); got == nil ||
				!strings.Contains(html.UnescapeString(got[1]), tt.name) {
				t.Errorf("server %q: the title of %s is %q, want %s in it", tt.args, address, got, tt.name)
			}
			if got := html.UnescapeString(image.FindString(text)); address == link && !strings.Contains(got, tt.logo) ||
				tt.logo == "" && got != "" {
				t.Errorf("server %q: %s has the logo %s, want %s", tt.args, address, got, tt.logo)
			}
			var config struct {
				Name  string
				Tiles struct{ URL, Attribution string }
			}
			if err := json.Unmarshal([]byte(block.FindStringSubmatch(text)[1]), &config); err != nil {
				t.Fatal(err)
			}
			if config.Name != tt.name || config.Tiles.URL != tt.tiles || config.Tiles.Attribution != tt.attribution {
				t.Errorf("server %q: the script of %s is told %+v", tt.args, address, config)
			}
		}
	}
}

// TestProofOnThePage: what the flags say of reasons, proofs and contacts stands on the customer's
// page, and the reasons are what a driver may give.
func TestProofOnThePage(t *testing.T) {
	s := start(t, "-color", "#aa00cc", "-time-zone", "Europe/Berlin", "-show-proof", "-contact-url", "mailto:shop@example.com?subject={order_id}", "-help-url", "/help",
		"-reason", "no_lift=The lift is broken")
	task := s.call("", "/v1/task/create",
		`{"type":2,"order_id":"A 1","drop":{"lnglat":[2.17,41.39],"address":"45 First Avenue"}}`).text(t, "task.task_id")
	s.call("", "/v1/task/complete", `{"task_id":"`+task+`","outcome":"failed","reason_code":"no_lift","received_by":"Ada"}`)
	_, text := s.page(s.call("", "/v1/task/trackingurl/"+task, "").text(t, "webUrl"))
	for _, want := range []string{"mailto:shop@example.com?subject=A%201", `href="/help"`, "The lift is broken", "Ada", "#aa00cc", "Europe/Berlin"} {
		if !strings.Contains(html.UnescapeString(text), want) {
			t.Errorf("the page of a delivery that failed does not say %q:\n%s", want, text)
		}
	}
}

var (
	title = regexp.MustCompile(`<title>([^<]*)</title>`)
	image = regexp.MustCompile(`<img [^>]*>`)
	block = regexp.MustCompile(`<script type="application/json" id="config">([^<]*)</script>`)
)

// page returns the policy and the text of a page.
func (s *server) page(address string) (policy, text string) {
	s.t.Helper()
	resp, err := http.Get(address)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		s.t.Fatalf("%s answers %s, error %v", address, resp.Status, err)
	}
	return resp.Header.Get("Content-Security-Policy"), string(body)
}
