package main

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
)

// TestStartPage: what is printed leads to the start page, which leads to all that there is.
func TestStartPage(t *testing.T) {
	s := start(t, "-name", `Ørsted & "Sons" <b>`)
	page := s.wait(`Open in a browser: (\S+)\n`)
	policy, text := s.page(page)
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "script-src") {
		t.Errorf("the policy is %s", policy)
	}
	if !strings.Contains(text, "<title>Ørsted &amp; &#34;Sons&#34; &lt;b&gt;</title>") {
		t.Errorf("the page has another name:\n%s", text)
	}
	for _, link := range []string{"board/", "driver/", "v1/docs", "v1/openapi.json"} {
		if !strings.Contains(text, `href="`+link+`"`) {
			t.Errorf("the page does not lead to %s:\n%s", link, text)
		}
	}
	for _, path := range []string{"driver/", "v1/docs", "v1/openapi.json"} {
		s.page(page + path)
	}
	for _, r := range []struct {
		method, path string
		status       int
	}{
		{"HEAD", "/", 200}, {"POST", "/", 404}, {"GET", "//", 404}, {"GET", "/index.html", 404},
	} {
		req, err := http.NewRequest(r.method, s.base+r.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != r.status {
			t.Errorf("%s %s: %s, want %d", r.method, r.path, resp.Status, r.status)
		}
	}
}

// TestSignInLink: the link that is printed signs in, once.
func TestSignInLink(t *testing.T) {
	s := start(t)
	token := s.wait(`The board, signed in [^:]*: http://[^/]*/board/#signin=(\S+)\n`)
	signIn := func() *http.Response {
		resp, err := http.Post(s.base+"/v1/session", "application/json", strings.NewReader(`{"token":"`+token+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp
	}
	first := signIn()
	if first.StatusCode != 200 || len(first.Cookies()) != 1 {
		t.Fatalf("the link answers %s and gives %d cookies", first.Status, len(first.Cookies()))
	}
	req, err := http.NewRequest("GET", s.base+"/v1/task/list", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.AddCookie(first.Cookies()[0])
	list, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	list.Body.Close()
	if list.StatusCode != 200 {
		t.Errorf("signed in, the tasks are %s", list.Status)
	}
	if again := signIn(); again.StatusCode != 401 {
		t.Errorf("the second time the link answers %s", again.Status)
	}
}

// The page of the demo leads to the newest delivery of each courier, and to the invite.
func TestStartPageOfTheDemo(t *testing.T) {
	s := &startPage{next: http.NotFoundHandler(), demo: true}
	show := func() string {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
		return w.Body.String()
	}
	if text := show(); !strings.Contains(text, "in a moment") {
		t.Errorf("before anybody has set off:\n%s", text)
	}
	s.invites("INVITE")
	s.setsOff(trackingLink{"Anna", "#1", "track/A1"})
	s.setsOff(trackingLink{"Bilal", "#2", "track/B2"})
	s.setsOff(trackingLink{"Anna", "#3", "track/A3"})
	text := show()
	var links []string
	for _, m := range regexp.MustCompile(`href="((?:track|join)/[^"]*)"`).FindAllStringSubmatch(text, -1) {
		links = append(links, m[1])
	}
	if got, want := strings.Join(links, " "), "join/INVITE track/A3 track/A3 track/B2"; got != want {
		t.Errorf("the page leads to %s, want %s:\n%s", got, want, text)
	}
}
