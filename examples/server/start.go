package main

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed start.html
var startSource string

//go:embed start.css
var startStyle string

var startTemplate = template.Must(template.New("start").Parse(startSource))

// startPage is what a browser sees at /: where to go from here. All addresses are relative, so that
// they are right behind a proxy too.
type startPage struct {
	next  http.Handler // has everything else
	tiles http.Handler // has /demo/; nil: nobody

	name string
	demo bool
	kept bool // what the demo does is in a store

	mu     sync.Mutex
	driver string // where a driver begins
	links  []trackingLink
}

// trackingLink is a customer's, of a delivery under way.
type trackingLink struct{ Courier, Order, Path string }

// invites makes the page lead to an invite.
func (s *startPage) invites(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.driver = "join/" + token
}

// setsOff makes the page lead to the newest delivery of a courier.
func (s *startPage) setsOff(l trackingLink) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.links = slices.DeleteFunc(s.links, func(other trackingLink) bool { return other.Courier == l.Courier })
	s.links = slices.Insert(s.links, 0, l)
}

func (s *startPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.tiles != nil && strings.HasPrefix(r.URL.EscapedPath(), "/demo/") {
		s.tiles.ServeHTTP(w, r)
		return
	}
	if r.URL.EscapedPath() != "/" || r.Method != http.MethodGet && r.Method != http.MethodHead {
		s.next.ServeHTTP(w, r)
		return
	}
	s.mu.Lock()
	data := struct {
		Style        template.CSS
		Name, Driver string
		Demo, Kept   bool
		Links        []trackingLink
	}{template.CSS(startStyle), s.name, s.driver, s.demo, s.kept, slices.Clone(s.links)}
	s.mu.Unlock()
	if data.Name == "" {
		data.Name = "Tracking"
	}
	if data.Driver == "" {
		data.Driver = "driver/"
	}
	var page bytes.Buffer
	if err := startTemplate.Execute(&page, data); err != nil {
		http.Error(w, "The page cannot be shown.", http.StatusInternalServerError)
		return
	}
	sum := sha256.Sum256([]byte(startStyle))
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+
		base64.StdEncoding.EncodeToString(sum[:])+"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	h.Set("Content-Length", strconv.Itoa(page.Len()))
	w.Write(page.Bytes()) // to HEAD, net/http leaves it out
}
