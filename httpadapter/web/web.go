// Package web holds the two web front ends of the service: the tracking page behind a webUrl, and the app that drivers work with.
//
// The browser code is written in TypeScript under src, built by "npm run build" into dist, and dist is committed and embedded, so that a
// Go program needs no Node. Package httpadapter serves it; a host uses this package directly only to render a page of its own:
//
//	fronts, err := web.New()                               // once
//	err = site.Check()                                     // once for each application's Site
//	page, err := fronts.Tracking(site, token, stateJSON, r.Header.Get("Accept-Language"))
//	page.Serve(w, r, http.StatusOK)
//
// The routes below the prefix that a handler needs are
//
//	GET /track/{token}                   Fronts.Tracking, or Fronts.Gone with 404
//	GET /join/{token}                    Fronts.Driver
//	GET /driver/                         Fronts.Driver
//	GET /driver/assets/{file}            Fronts.ServeAsset, for both pages
//	GET /driver/sw.js                    Fronts.ServeWorker
//	GET /driver/manifest.webmanifest     Fronts.ServeManifest
//
// A tracking page asks /track/{token}/state and /track/{token}/live of the same prefix; the driver app calls /v1/driver/… there.
// Neither sends a request to another origin, except for the map tiles and the logo that the Site names.
package web

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Site says how the pages of one application look and what they may load. The zero Site works: no tiles, no logo, a neutral name.
type Site struct {
	// Prefix is the path under which browsers see the service, "" or like "/delivery": it begins with a slash and does not end with one.
	// Behind a proxy that takes a path away, that path belongs to it.
	Prefix string

	Name  string // shown in the header and in titles; "" is "Tracking"
	Color string // of the brand, as #rrggbb; "" is DefaultColor. Shades with enough contrast are derived from it
	Logo  string // an image: a path on this host, an http(s) URL, or a data: URL of an image; "" is none
	Help  string // where customers get help: a path, an http(s), mailto: or tel: URL; "" is none

	// TimeZone is what times are shown in. Nil: the browser's own, and UTC where the page is read without JavaScript.
	TimeZone *time.Location

	// Words replace texts, by language (a BCP 47 tag such as "en" or "pt-BR") and key; [Words] lists the keys. A language that is not
	// shipped may be added: its missing keys are taken from English. Its key "lang.dir" is "rtl" for one written from right to left.
	Words map[string]map[string]string

	Tiles Tiles

	// FrameAncestors are the sources that may frame a tracking page (CSP frame-ancestors); none is "*", everyone. The driver app is never framed.
	FrameAncestors []string

	// PushKey is the public VAPID key (base64url, uncompressed P-256 point) for notices to locked phones; "": the app offers none.
	PushKey string
}

// Tiles is a source of raster map tiles in Web Mercator. The zero Tiles is none: the map then shows a plain grid.
type Tiles struct {
	// URL has {z}, {x} and {y}, and may have {r} (becomes "@2x" on fine screens) and, as the whole first label of the host, {s} (becomes a, b or c).
	// It is an http(s) URL or a path on this host.
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
	sourcePattern = regexp.MustCompile(`^(\*|'self'|'none'|[A-Za-z][A-Za-z0-9+.-]*:|([A-Za-z][A-Za-z0-9+.-]*://)?(\*\.)?[A-Za-z0-9.-]+(:[0-9]+|:\*)?)$`)
	pushPattern   = regexp.MustCompile(`^[A-Za-z0-9_-]{87}$`)
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
	if s.Help != "" && !linkable(s.Help) {
		bad("Help must be a path, or an http, https, mailto or tel URL")
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
	if s.Tiles.DarkURL != "" && s.Tiles.URL == "" {
		bad("Tiles.DarkURL needs Tiles.URL")
	}
	if u := s.Tiles.AttributionURL; u != "" && !linkable(u) {
		bad("Tiles.AttributionURL must be a path or an http or https URL")
	}
	if s.Tiles.MaxZoom < 0 || s.Tiles.MaxZoom > 24 {
		bad("Tiles.MaxZoom must be between 0 and 24")
	}
	for _, a := range s.FrameAncestors {
		if !sourcePattern.MatchString(a) {
			bad("FrameAncestors must hold sources such as https://shop.example, 'self', 'none' or *")
		}
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

// linkable reports whether a page may link to u.
func linkable(u string) bool {
	p, err := url.Parse(u)
	if err != nil {
		return false
	}
	switch p.Scheme {
	case "http", "https":
		return p.Host != ""
	case "mailto", "tel":
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

// tileSource is the CSP source of a tile URL. CSP knows a wildcard only as the whole first label of a host, so {s} may stand only there.
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
