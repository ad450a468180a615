package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking/httpadapter/internal/gzipped"
)

// Page is a rendered page with the headers it needs.
type Page struct {
	HTML     []byte
	CSP      string // Content-Security-Policy
	Language string // of the texts, a BCP 47 tag

	unframed bool // never in a frame, whoever's
	located  bool // may ask for the phone's position
}

// Serve writes the page: its own headers, and those that every public page has (not stored, not
// indexed, no address given away).
func (p Page) Serve(w http.ResponseWriter, r *http.Request, status int) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", p.CSP)
	h.Set("Content-Language", p.Language)
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "strict-origin-when-cross-origin")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	h.Set("Permissions-Policy", "geolocation=(), camera=(), microphone=()")
	if p.unframed {
		h.Set("X-Frame-Options", "DENY")
	}
	if p.located {
		h.Set("Permissions-Policy", "geolocation=(self), screen-wake-lock=(self), camera=(), microphone=()")
	}
	h.Add("Vary", "Accept-Language, Accept-Encoding")
	body := p.HTML
	if gzipped.Accepts(r.Header) {
		h.Set("Content-Encoding", "gzip")
		body = gzipped.Whole(body)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}

// pageData is what the templates are given.
type pageData struct {
	Lang, Dir  string
	Words      map[string]string
	Title      string
	Name       string
	Color      string
	Style      template.CSS
	Logo, Help template.URL
	Assets     string
	Manifest   string
	Script     string
	Preload    []string
	Sheet      string
	Icon       string
	TouchIcon  string
	Config     any

	// of the tracking page
	Phase, Headline, Detail  string
	Ended, Map               bool
	Steps                    []stepText
	Expected, ExpectedLabel  string
	Due                      bool // Expected is a time worked out, not the one agreed
	Late, Stops              string
	Driver, Initial          string
	PlaceLabel, Address      string
	Order, Position, FinalAt string
	PlaceOnMap               bool
	PIN, ReceivedBy, Earlier string
	Photos                   []string // paths
	PhotoKey                 string
	Contact, Feedback        template.URL
}

type stepText struct {
	Key, Label, StateLabel string
	State                  stepState
	Time, ISO              string
}

// tilesConfig is Tiles as the browser code reads it.
type tilesConfig struct {
	URL            string `json:"url"`
	DarkURL        string `json:"dark_url,omitempty"`
	Attribution    string `json:"attribution,omitempty"`
	AttributionURL string `json:"attribution_url,omitempty"`
	MaxZoom        int    `json:"max_zoom"`
}

// mapConfig is a Map as the browser code reads it.
type mapConfig struct {
	URL            string `json:"url"`
	Attribution    string `json:"attribution,omitempty"`
	AttributionURL string `json:"attribution_url,omitempty"`
	MaxZoom        int    `json:"max_zoom"`
}

// linksConfig are the URLs of a Site for what a link shows.
type linksConfig struct {
	Contact  string `json:"contact,omitempty"`
	Help     string `json:"help,omitempty"`
	Feedback string `json:"feedback,omitempty"`
}

// config is what both pages hand to their script, as a block of JSON in the document.
type config struct {
	Base     string            `json:"base"` // the prefix
	Lang     string            `json:"lang"`
	TimeZone string            `json:"time_zone,omitempty"`
	Words    map[string]string `json:"words"`
	Tiles    *tilesConfig      `json:"tiles,omitempty"`
	Map      *mapConfig        `json:"map,omitempty"`
	Name     string            `json:"name"`

	Token    string          `json:"token,omitempty"`    // tracking page
	Tracking json.RawMessage `json:"tracking,omitempty"` // tracking page: the state it was rendered with
	// Unix milliseconds by the server's clock; phones' clocks are often wrong
	Now int64 `json:"now"`

	// the words of a reason_code, by the code; one that is not there is left out
	Reasons map[string]string `json:"reasons"`
	Links   *linksConfig      `json:"links,omitempty"` // tracking page

	PushKey string       `json:"push_key,omitempty"` // driver app
	Logo    template.URL `json:"logo,omitempty"`     // driver app, board; the tracking page's is in its HTML

	Keys        bool  `json:"keys,omitempty"`         // board
	Geocodes    bool  `json:"geocodes,omitempty"`     // board
	SilentAfter int64 `json:"silent_after,omitempty"` // board: ms
}

// config makes the configuration of a page from the whole table of texts, of which it gets those that
// begin with one of the prefixes.
func (f *Fronts) config(s Site, d pageData, now time.Time, prefixes ...string) config {
	c := config{
		Base: s.Prefix, Lang: d.Lang, Words: part(d.Words, prefixes...), Name: s.name(), Now: now.UnixMilli(),
		Reasons: s.reasons(d.Words),
	}
	if s.TimeZone != nil && s.TimeZone != time.Local {
		c.TimeZone = s.TimeZone.String()
	}
	if t := s.Tiles; t.URL != "" {
		c.Tiles = &tilesConfig{t.URL, t.DarkURL, t.Attribution, t.AttributionURL, t.MaxZoom}
		if c.Tiles.MaxZoom == 0 {
			c.Tiles.MaxZoom = 19
		}
	}
	if m := s.Map; m != nil {
		c.Map = &mapConfig{s.Prefix + "/driver/map/" + m.Name(), m.Attribution, m.AttributionURL, m.maxZoom}
	}
	return c
}

// data fills in what all pages have.
func (f *Fronts) data(s Site, accept, entry string) pageData {
	lang, words := f.words(s, accept)
	d := pageData{
		Lang: lang, Dir: words["lang.dir"], Words: words,
		Name: s.name(), Color: s.color(), Style: template.CSS(s.style()),
		Assets: s.Prefix + "/driver/assets/", Script: f.entries[entry+".js"], Sheet: f.entries[entry+".css"],
		Icon: f.entries["icon.svg"], TouchIcon: f.entries["icon-180.png"],
	}
	if s.Logo != "" {
		if _, err := imageSource(s.Logo); err == nil {
			d.Logo = template.URL(s.Logo)
		}
	}
	d.Help = template.URL(s.For("", "").HelpURL)
	return d
}

// csp is the policy of a page: nothing but our own files, the one style block, the tiles and the
// logo.
func (s Site) csp(d pageData, more ...string) string {
	sum := sha256.Sum256([]byte(d.Style))
	images := []string{"'self'"}
	add := func(src string, err error) {
		if err != nil {
			return
		}
		for _, have := range images {
			if have == src {
				return
			}
		}
		images = append(images, src)
	}
	if s.Logo != "" {
		add(imageSource(s.Logo))
	}
	if s.Tiles.URL != "" {
		add(tileSource(s.Tiles.URL))
	}
	if s.Tiles.DarkURL != "" {
		add(tileSource(s.Tiles.DarkURL))
	}
	return strings.Join(append([]string{
		"default-src 'none'",
		"script-src 'self'",
		"style-src 'self' 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'",
		"img-src " + strings.Join(images, " "),
		"connect-src 'self'",
		"base-uri 'none'",
		"form-action 'none'",
	}, more...), "; ")
}

func (s Site) frameAncestors() string {
	if len(s.FrameAncestors) == 0 {
		return "frame-ancestors *"
	}
	return "frame-ancestors " + strings.Join(s.FrameAncestors, " ")
}

func (f *Fronts) render(name string, d pageData) ([]byte, error) {
	var buf bytes.Buffer
	if err := f.pages.ExecuteTemplate(&buf, name, d); err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	return buf.Bytes(), nil
}

// Tracking renders the page behind a tracking link. State is the JSON object that
// /track/{token}/state sends as data.tracking; the page shows nothing else. The Site is [Site.For]
// what the link shows. Accept is the request's Accept-Language header and now the server's time.
func (f *Fronts) Tracking(s Site, token string, state []byte, accept string, now time.Time) (Page, error) {
	t, err := parseTracking(state)
	if err != nil {
		return Page{}, fmt.Errorf("web: %w", err)
	}
	s = s.For("", "") // whoever knows of whom has said so before
	d := f.data(s, accept, "track")
	cfg := f.config(s, d, now, "track.", "lang.")
	if l := (linksConfig{s.ContactURL, s.HelpURL, s.FeedbackURL}); l != (linksConfig{}) {
		cfg.Links = &l
	}
	cfg.Token, cfg.Tracking = token, state
	d.Config = cfg
	d.Preload = []string{f.entries["map.js"], f.entries["leaflet.js"]}

	d.Phase, d.Ended, d.Map = t.phase(), t.ended(), t.wantsMap(s.Tiles.URL != "" || s.Map != nil)
	d.Headline = d.Words["track.headline."+d.Phase]
	d.Title = d.Headline + " · " + d.Name
	d.Detail = d.Words[t.detail()]
	if t.ended() {
		d.Detail = s.reasons(d.Words)[t.ReasonCode]
	}
	for _, st := range t.steps() {
		text := stepText{
			Key: st.Key, Label: d.Words["track.step."+st.Key], State: st.State,
			StateLabel: d.Words["track.step."+string(st.State)],
		}
		if at, err := time.Parse(time.RFC3339, st.At); err == nil && !at.After(now) {
			text.Time, text.ISO = shown(st.At, now, s.TimeZone), st.At
		}
		d.Steps = append(d.Steps, text)
	}
	d.Expected, d.ExpectedLabel = t.expected(d.Words, now, s.TimeZone), d.Words[t.etaLabel()]
	d.Due = d.Expected != ""
	if !d.Due {
		d.Expected = t.planned(d.Words, now, s.TimeZone)
	}
	d.Late, d.Stops = t.late(d.Words, now, s.TimeZone), t.stops(d.Words)
	if t.ended() {
		d.FinalAt = shown(t.EndedAt, now, s.TimeZone)
	}
	if t.Driver != nil && t.Driver.Name != "" {
		d.Driver, d.Initial = t.Driver.Name, initial(t.Driver.Name)
	}
	if t.Place != nil {
		d.PlaceLabel, d.Address = d.Words[t.placeLabel()], t.Place.Address
		d.PlaceOnMap = d.Address == "" && len(t.Place.LngLat) == 2
	}
	d.Order = t.OrderID
	// The digits are apart: as one number nobody can follow them read out.
	d.PIN, d.ReceivedBy = strings.Join(strings.Split(t.PIN, ""), "\u00a0"), t.ReceivedBy
	d.Earlier, d.PhotoKey = t.earlier(d.Words, s.reasons(d.Words), now, s.TimeZone), strings.Join(t.Photos, ",")
	for _, id := range t.Photos {
		d.Photos = append(d.Photos, s.Prefix+"/track/"+url.PathEscape(token)+"/proof/"+url.PathEscape(id))
	}
	d.Contact, d.Feedback = template.URL(s.ContactURL), template.URL(s.FeedbackURL)
	switch {
	case t.ended() || !t.moving():
	case t.Position == nil:
		d.Position = d.Words["track.position.none"]
	case t.Position.Live:
		d.Position = fill(d.Words["track.position.at"], "time", shown(t.Position.Time, now, s.TimeZone))
	default:
		d.Position = fill(d.Words["track.position.last"], "time", shown(t.Position.Time, now, s.TimeZone))
	}
	html, err := f.render("track.html", d)
	return Page{HTML: html, CSP: s.csp(d, s.frameAncestors()), Language: d.Lang}, err
}

// initial is the first letter of a name, for the driver's badge.
func initial(name string) string {
	for _, r := range name {
		return strings.ToUpper(string(r))
	}
	return ""
}

// Gone renders the page of a link that is unknown, expired or revoked; it is one and the same for
// all three. It goes with status 404.
func (f *Fronts) Gone(s Site, accept string) (Page, error) {
	s.Tiles = Tiles{}
	d := f.data(s, accept, "track")
	d.Title = d.Words["track.gone.title"]
	html, err := f.render("gone.html", d)
	return Page{HTML: html, CSP: s.csp(d, s.frameAncestors()), Language: d.Lang}, err
}

// Driver renders the driver app, for /driver/ and for every /join/{token}: the app takes an invite
// from the address by itself, so the answer does not depend on whether the invite is live, and
// opening it consumes nothing.
func (f *Fronts) Driver(s Site, accept string, now time.Time) (Page, error) {
	d := f.data(s, accept, "driver")
	cfg := f.config(s, d, now, "driver.", "track.km", "track.m", "track.map.", "lang.")
	cfg.PushKey, cfg.Logo = s.PushKey, d.Logo
	d.Config = cfg
	d.Title = d.Name + " · " + d.Words["driver.title"]
	d.Manifest = s.Prefix + "/driver/manifest.webmanifest"
	html, err := f.render("driver.html", d)
	return Page{
		HTML: html, Language: d.Lang, unframed: true, located: true,
		CSP: s.csp(d, "manifest-src 'self'", "worker-src 'self'", "frame-ancestors 'none'"),
	}, err
}

// BoardOptions are what the board has to know of the service.
type BoardOptions struct {
	Keys        bool          // POST /v1/session takes API keys
	Geocodes    bool          // POST /v1/geocode knows addresses
	SilentAfter time.Duration // how long after the last sign of life a driver's phone counts as silent
}

// Board renders the board, for /board/. It is one and the same for all: who is signed in is asked by
// its script.
func (f *Fronts) Board(s Site, accept string, now time.Time, o BoardOptions) (Page, error) {
	d := f.data(s, accept, "board")
	cfg := f.config(s, d, now, "board.", "track.km", "track.m", "track.map.", "lang.")
	cfg.Logo, cfg.Keys, cfg.Geocodes, cfg.SilentAfter = d.Logo, o.Keys, o.Geocodes, o.SilentAfter.Milliseconds()
	d.Config = cfg
	d.Title = d.Words["board.title"] + " · " + d.Name
	html, err := f.render("board.html", d)
	return Page{HTML: html, Language: d.Lang, unframed: true, CSP: s.csp(d, "frame-ancestors 'none'")}, err
}

// ServeManifest serves the manifest that makes the driver app installable.
func (f *Fronts) ServeManifest(w http.ResponseWriter, r *http.Request, s Site) {
	type icon struct {
		Src     string `json:"src"`
		Sizes   string `json:"sizes"`
		Type    string `json:"type"`
		Purpose string `json:"purpose"`
	}
	lang, words := f.words(s, r.Header.Get("Accept-Language"))
	at := s.Prefix + "/driver/"
	src := func(name string) string { return at + "assets/" + f.entries[name] }
	body, err := json.Marshal(map[string]any{
		"id": at, "start_url": at, "scope": at,
		"name":       s.name() + " · " + words["driver.title"],
		"short_name": s.name(),
		"lang":       lang, "dir": words["lang.dir"],
		"display": "standalone", "orientation": "any",
		"theme_color": s.color(), "background_color": "#ffffff",
		"icons": []icon{
			{src("icon.svg"), "any", "image/svg+xml", "any"},
			{src("icon-192.png"), "192x192", "image/png", "any"},
			{src("icon-512.png"), "512x512", "image/png", "any"},
			{src("icon-maskable-512.png"), "512x512", "image/png", "maskable"},
		},
	})
	if err != nil {
		http.Error(w, "the manifest could not be made", http.StatusInternalServerError)
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/manifest+json")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Add("Vary", "Accept-Language, Accept-Encoding")
	if gzipped.Accepts(r.Header) {
		h.Set("Content-Encoding", "gzip")
		body = gzipped.Whole(body)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}
