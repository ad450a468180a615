// Package web holds the web front ends of the service: the tracking page behind a webUrl, the app
// that drivers work with, and the board of those who dispatch.
//
// The browser code is written in TypeScript under src, built by "npm run build" into dist, and dist
// is committed and embedded, so that a Go program needs no Node. Package httpadapter serves it; a
// host uses this package directly only to render a page of its own:
//
//	fronts, err := web.New()                               // once
//	err = site.Check()                                     // once for each application's Site
//	page, err := fronts.Tracking(site.For(order, task), token, stateJSON, acceptLanguage, time.Now())
//	page.Serve(w, r, http.StatusOK)
//
// The routes below the prefix that a handler needs are
//
//	GET /track/{token}                   Fronts.Tracking, or Fronts.Gone with 404
//	GET /join/{token}                    Fronts.Driver
//	GET /driver/                         Fronts.Driver
//	GET /board/                          Fronts.Board
//	GET /driver/assets/{file}            Fronts.ServeAsset, for all pages
//	GET /driver/map/{file}               Map.ServeHTTP of the Map with that Name
//	GET /driver/sw.js                    Fronts.ServeWorker
//	GET /driver/manifest.webmanifest     Fronts.ServeManifest
//
// A tracking page asks /track/{token}/state and /track/{token}/live of the same prefix; the driver
// app calls /v1/driver/… there, and the board the routes of an application. None sends a request to another origin, except for the map tiles
// and the logo that the Site names.
//
// What a task asks for as proof the driver app asks at its end; a photo is made a JPEG of at most
// 1,600 px there, without what the camera wrote into it. All of it is kept on the phone until it was
// sent, in the order in which it was done. A PIN that is given without a network is compared later:
// if it was wrong the driver is told by the order's number, and gives another. Where the service
// cannot keep a picture now, what is done with its task waits for it, and nothing else does.
//
// A spreadsheet that is pasted into the board becomes tasks by POST /v1/task/batch, each row with a
// key. An order's number makes two rows the same, whatever else they hold: where the row has changed
// since, it is refused and the task stays. A row without a number is the same on one day only, as
// who is supplied daily is pasted daily; where it holds a time, that tells the days apart. Equal rows
// of one paste are as many tasks. Times are those of Site.TimeZone.
package web

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Site says how the pages of one application look and what they may load. The zero Site works: no
// tiles, no logo, a neutral name.
type Site struct {
	// Prefix is the path under which browsers see the service, "" or like "/delivery": it begins
	// with a slash and does not end with one. Behind a proxy that takes a path away, that path
	// belongs to it.
	Prefix string

	Name  string // shown in the header and in titles; "" is "Tracking"
	Color string // of the brand, as #rrggbb; "" is DefaultColor. Shades with enough contrast are derived from it
	Logo  string // an image: a path on this host, an http(s) URL, or a data: URL of an image; "" is none

	// ContactURL is where a customer reaches somebody about a delivery, HelpURL where one gets help,
	// and FeedbackURL where one says how it was. Each is a path on this host or an http(s), mailto:,
	// tel: or sms: URL, such as "mailto:help@shop.example?subject=Order%20{order_id}". {order_id} and
	// {task_id} stand for what the link shows, percent-encoded, after the host; for nothing where
	// there is none. "" is none.
	ContactURL, HelpURL, FeedbackURL string

	// Reasons are the words in which the pages say why a task failed, was declined or was cancelled,
	// by reason_code and in whatever language the page is. They replace the shipped ones, which
	// [Words] lists as "reason.not_home" and so on, and name those of the application's own, of which
	// there are no others. "" leaves a reason out.
	Reasons map[string]string

	// ShowProof lets a tracking link show who received a task, and its photos, once it has succeeded
	// or failed.
	ShowProof bool

	// TimeZone is what times are shown in. Nil: the browser's own, and UTC where the page is read
	// without JavaScript.
	TimeZone *time.Location

	// Words replace texts, by language (a BCP 47 tag such as "en" or "pt-BR") and key; [Words]
	// lists the keys. A language that is not shipped may be added: its missing keys are taken from
	// English. Its key "lang.dir" is "rtl" for one written from right to left.
	Words map[string]map[string]string

	Tiles Tiles

	// Map is a map of streets from one file of the program's own, instead of Tiles; nil is none. With
	// neither, maps show a plain grid with a scale.
	Map *Map

	// FrameAncestors are the sources that may frame a tracking page, as CSP's frame-ancestors
	// writes them: "https://shop.example", "https://*.shop.example", "'self'" with its quotes, or
	// "'none'" alone; no entry is "*", everyone. The driver app is never framed.
	FrameAncestors []string

	// PushKey is the public VAPID key (base64url, uncompressed P-256 point) for notices to locked
	// phones; "": the app offers none.
	PushKey string
}

// Tiles is a source of raster map tiles in Web Mercator. The zero Tiles is none.
type Tiles struct {
	// URL has {z}, {x} and {y}, and may have {r} (becomes "@2x" on fine screens) and, as the whole
	// first label of the host, {s} (becomes a, b or c). It is an http(s) URL or a path on this
	// host.
	URL string

	DarkURL string // for dark mode, on the same terms; "": URL with its lightness inverted

	Attribution    string // plain text, shown on the map
	AttributionURL string // where the attribution links to; "" is no link

	MaxZoom int // the largest zoom that tiles exist for; 0 is 19
}

// DefaultColor is the brand colour of a Site that names none.
const DefaultColor = "#1857d6"

const defaultName = "Tracking"

var (
	prefixPattern = regexp.MustCompile(`^(/[A-Za-z0-9._~-]+)*$`)
	colorPattern  = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)
	sourcePattern = regexp.MustCompile(`^https?://[A-Za-z0-9.-]+(:[0-9]+)?$`)
	pushPattern   = regexp.MustCompile(`^[A-Za-z0-9_-]{87}$`)
	reasonPattern = regexp.MustCompile(`^[a-z0-9_]{1,32}$`)
	langPattern   = regexp.MustCompile(`^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$`)
)

// Check says in a sentence what is wrong with the Site, or nil.
func (s Site) Check() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if !prefixPattern.MatchString(s.Prefix) {
		bad("Prefix must be empty or begin with a slash and not end with one")
	}
	if s.Color != "" && !colorPattern.MatchString(s.Color) {
		bad("Color must have the form #rrggbb")
	}
	if s.Logo != "" {
		if _, err := imageSource(s.Logo); err != nil {
			bad("Logo: %w", err)
		}
	}
	for _, l := range []struct{ name, url string }{
		{"ContactURL", s.ContactURL}, {"HelpURL", s.HelpURL}, {"FeedbackURL", s.FeedbackURL},
	} {
		if err := checkLink(l.url); err != nil {
			bad("%s: %w", l.name, err)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(s.Reasons)) {
		if !reasonPattern.MatchString(code) {
			bad("Reasons: %.40q is no reason_code; it must be 1 to 32 characters of a to z, 0 to 9 and _", code)
		}
	}
	for _, t := range []struct{ name, url string }{{"Tiles.URL", s.Tiles.URL}, {"Tiles.DarkURL", s.Tiles.DarkURL}} {
		if t.url == "" {
			continue
		}
		for _, part := range []string{"{z}", "{x}", "{y}"} {
			if !strings.Contains(t.url, part) {
				bad("%s must contain %s", t.name, part)
			}
		}
		if _, err := tileSource(t.url); err != nil {
			bad("%s: %w", t.name, err)
		}
	}
	if s.Map != nil && s.Tiles.URL != "" {
		bad("Map and Tiles.URL cannot both be set")
	}
	if s.Map != nil && s.Map.AttributionURL != "" && !linkable(s.Map.AttributionURL) {
		bad("Map.AttributionURL must be a path or an http or https URL")
	}
	if s.Tiles.DarkURL != "" && s.Tiles.URL == "" {
		bad("Tiles.DarkURL needs Tiles.URL")
	}
	if u := s.Tiles.AttributionURL; u != "" && !linkable(u) {
		bad("Tiles.AttributionURL must be a path or an http or https URL")
	}
	if s.Tiles.MaxZoom < 0 || s.Tiles.MaxZoom > 24 {
		bad("Tiles.MaxZoom must be between 0 and 24")
	}
	if err := checkAncestors(s.FrameAncestors); err != nil {
		errs = append(errs, err)
	}
	if s.PushKey != "" && !pushPattern.MatchString(s.PushKey) {
		bad("PushKey must be an uncompressed P-256 point in base64url without padding")
	}
	checkWords(s.Words, bad)
	return errors.Join(errs...)
}

func (s Site) name() string {
	if s.Name == "" {
		return defaultName
	}
	return s.Name
}

func (s Site) color() string {
	if s.Color == "" {
		return DefaultColor
	}
	return strings.ToLower(s.Color)
}

// checkLink says what is wrong with a URL that may hold {order_id} and {task_id}, or nil.
func checkLink(u string) error {
	if u == "" {
		return nil
	}
	a, b := fill(u, "order_id", "a", "task_id", "a"), fill(u, "order_id", "b", "task_id", "b")
	if strings.ContainsAny(a, "{}") {
		return errors.New("it may hold {order_id} and {task_id}, and no other braces")
	}
	if !linkable(a) || !linkable(b) {
		return errors.New("it must be a path, or an http, https, mailto, tel or sms URL")
	}
	at, errA := url.Parse(a)
	to, errB := url.Parse(b)
	if errA != nil || errB != nil || at.Host != to.Host || at.User.String() != to.User.String() {
		return errors.New("{order_id} and {task_id} may stand only after the host")
	}
	return nil
}

// For is the Site of one link's page, with the ids of what that shows in its URLs. A URL that makes no
// sense with them is left out.
func (s Site) For(orderID, taskID string) Site {
	for _, u := range []*string{&s.ContactURL, &s.HelpURL, &s.FeedbackURL} {
		filled := fill(*u, "order_id", escaped(orderID), "task_id", escaped(taskID))
		if !linkable(filled) {
			filled = ""
		}
		*u = filled
	}
	return s
}

// escaped is a text for any part of a URL: all is percent-encoded that is not unreserved (RFC 3986,
// 2.3).
func escaped(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// linkable reports whether a page may link to u.
func linkable(u string) bool {
	p, err := url.Parse(u)
	if err != nil {
		return false
	}
	switch p.Scheme {
	case "http", "https":
		return p.Host != ""
	case "mailto", "tel", "sms":
		return p.Opaque != ""
	case "":
		return strings.HasPrefix(u, "/") && !strings.HasPrefix(u, "//")
	}
	return false
}

// origin is the CSP source of an http(s) URL, or 'self' for a path on this host.
func origin(u string) (string, error) {
	if strings.HasPrefix(u, "/") && !strings.HasPrefix(u, "//") {
		return "'self'", nil
	}
	p, err := url.Parse(u)
	if err != nil || (p.Scheme != "http" && p.Scheme != "https") || p.Host == "" || p.User != nil {
		return "", errors.New("it must be a path on this host or an http or https URL")
	}
	src := p.Scheme + "://" + strings.ToLower(p.Host)
	if !sourcePattern.MatchString(src) {
		return "", errors.New("its host must be plain ASCII letters, digits, dots and hyphens")
	}
	return src, nil
}

// tileSource is the CSP source of a tile URL. CSP knows a wildcard only as the whole first label of
// a host, so {s} may stand only there.
func tileSource(u string) (string, error) {
	const sub = "{s}."
	scheme, rest, ok := strings.Cut(u, "://")
	if ok && strings.HasPrefix(rest, sub) {
		src, err := origin(scheme + "://" + strings.TrimPrefix(rest, sub))
		if err != nil {
			return "", err
		}
		return strings.Replace(src, "://", "://*.", 1), nil
	}
	if host, _, _ := strings.Cut(rest, "/"); ok && strings.ContainsAny(host, "{}") {
		return "", errors.New("its host may hold {s} only as the whole first label")
	}
	// The braces are no part of the origin; without them the URL parses.
	return origin(strings.NewReplacer("{", "", "}", "").Replace(u))
}

// imageSource is the CSP source of an image.
func imageSource(u string) (string, error) {
	if strings.HasPrefix(u, "data:image/") {
		return "data:", nil
	}
	return origin(u)
}
