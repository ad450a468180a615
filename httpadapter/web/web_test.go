package web_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

var now = time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)

func newFronts(t testing.TB) *web.Fronts {
	t.Helper()
	f, err := web.New()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func track(t testing.TB, s web.Site, state, accept string) web.Page {
	t.Helper()
	p, err := newFronts(t).Tracking(s, "TOKEN", []byte(state), accept, now)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// visible is the text of the page without the block of JSON for the script.
func visible(p web.Page) string {
	s := string(p.HTML)
	if i := strings.Index(s, `<script type="application/json"`); i >= 0 {
		s = s[:i]
	}
	return s
}

var stepPattern = regexp.MustCompile(`<li data-step="([^"]*)" data-state="([^"]*)"[^\n]*`)

// A stored script must come out as text, in the page and in the block of JSON.
func TestEscaping(t *testing.T) {
	const evil = `</script><script>alert(1)</script>"'><img src=x onerror=alert(1)>{{7*7}}<!--`
	state, err := json.Marshal(map[string]any{
		"kind": "task", "type": 2, "status": "in_progress", "order_id": evil, "driver": map[string]string{"name": evil},
		"place": map[string]string{"address": evil}, "path": []int{},
	})
	if err != nil {
		t.Fatal(err)
	}
	site := web.Site{Name: evil, Tiles: web.Tiles{URL: "/t/{z}/{x}/{y}.png", Attribution: evil}}
	html := string(track(t, site, string(state), evil).HTML)
	for _, tag := range []string{"<script>", "<img", "onerror=alert(1)>"} {
		if strings.Contains(html, tag) {
			t.Errorf("the page has %s from a stored text", tag)
		}
	}
	if n := strings.Count(html, "<script"); n != 2 {
		t.Errorf("the page has %d script elements, want 2", n)
	}
	i := strings.Index(html, `id="config">`)
	block := html[i+len(`id="config">`):]
	block = block[:strings.Index(block, "</script>")]
	var cfg struct {
		Name     string
		Tracking struct{ Place struct{ Address string } }
	}
	if err := json.Unmarshal([]byte(block), &cfg); err != nil {
		t.Fatalf("the block of JSON does not parse: %v", err)
	}
	if cfg.Name != evil || cfg.Tracking.Place.Address != evil {
		t.Error("a text in the block of JSON came out changed")
	}
}

func TestCSP(t *testing.T) {
	style := `style-src 'self' 'sha256-[A-Za-z0-9+/=]{44}'`
	for _, c := range []struct {
		name string
		site web.Site
		img  string
		fa   string
	}{
		{"plain", web.Site{}, `'self'`, `\*`},
		{
			"tiles", web.Site{Tiles: web.Tiles{URL: "https://tile.example/{z}/{x}/{y}.png"}},
			`'self' https://tile\.example`, `\*`,
		},
		{
			"tiles with subdomains",
			web.Site{Tiles: web.Tiles{URL: "https://{s}.tile.example:8443/{z}/{x}/{y}{r}.png"}},
			`'self' https://\*\.tile\.example:8443`, `\*`,
		},
		{
			"own tiles, framed by one",
			web.Site{
				Tiles: web.Tiles{URL: "/t/{z}/{x}/{y}"}, FrameAncestors: []string{"https://shop.example", "'self'"},
			},
			`'self'`, `https://shop\.example 'self'`,
		},
		{"logo as data", web.Site{Logo: "data:image/png;base64,AA=="}, `'self' data:`, `\*`},
		{"logo elsewhere", web.Site{Logo: "https://cdn.example/logo.svg"}, `'self' https://cdn\.example`, `\*`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.site.Check(); err != nil {
				t.Fatal(err)
			}
			want := `^default-src 'none'; script-src 'self'; ` + style + `; img-src ` + c.img +
				`; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors ` + c.fa + `$`
			if got := track(t, c.site, underWay, "").CSP; !regexp.MustCompile(want).MatchString(got) {
				t.Errorf("CSP %s\nwant %s", got, want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name string
		site web.Site
		want string // part of the sentence, "" for none
	}{
		{"zero", web.Site{}, ""},
		{"prefix with a slash at its end", web.Site{Prefix: "/a/"}, "Prefix"},
		{"prefix with a quote", web.Site{Prefix: `/a"`}, "Prefix"},
		{"colour by name", web.Site{Color: "red"}, "Color"},
		{"logo as script", web.Site{Logo: "javascript:alert(1)"}, "Logo"},
		{"logo as another kind of data", web.Site{Logo: "data:text/html,x"}, "Logo"},
		{"help as script", web.Site{HelpURL: "javascript:alert(1)"}, "HelpURL"},
		{"help by telephone", web.Site{HelpURL: "tel:+4930123456"}, ""},
		{"help without a scheme", web.Site{HelpURL: "//evil.example"}, "HelpURL"},
		{"tiles without z", web.Site{Tiles: web.Tiles{URL: "https://t.example/{x}/{y}"}}, "{z}"},
		{"tiles with {s} inside a label", web.Site{Tiles: web.Tiles{URL: "https://a{s}.t.example/{z}/{x}/{y}"}}, "{s}"},
		{
			"tiles with a policy in the host",
			web.Site{Tiles: web.Tiles{URL: "https://t.example;script-src/{z}/{x}/{y}"}}, "Tiles.URL",
		},
		{
			"ancestor with a policy", web.Site{FrameAncestors: []string{"https://a.example; script-src *"}},
			"FrameAncestors",
		},
		{"unknown text", web.Site{Words: map[string]map[string]string{"en": {"track.nope": "x"}}}, "track.nope"},
		{"own language", web.Site{Words: map[string]map[string]string{"ar": {"lang.dir": "rtl"}}}, ""},
		{"push key", web.Site{PushKey: "abc"}, "PushKey"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.site.Check()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("Check: %v, want %q", err, c.want)
			}
		})
	}
}

// TestFrameAncestors: what a browser would pass over, or take for something else, is refused when
// the program starts.
func TestFrameAncestors(t *testing.T) {
	for _, good := range [][]string{
		nil,
		{"*"},
		{"'none'"},
		{"'self'", "https://shop.example", "'SELF'"},
		{"https:", "http:", "capacitor:"},
		{"https://*.shop.example", "*.shop.example", "https://*", "https://shop.example:*", "*:8443"},
		{"shop.example", "localhost:3000", "http://127.0.0.1:8080", "https://xn--bcher-kva.example", "intranet"},
	} {
		if err := (web.Site{FrameAncestors: good}).Check(); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, c := range []struct {
		sources []string
		want    string
	}{
		{[]string{"self"}, "self without quotes is a host of that name; write 'self'"},
		{[]string{"https://shop.example", "None"}, "None without quotes is a host of that name; write 'none'"},
		{[]string{"'none'", "https://shop.example"}, "'none' stands beside others"},
		{[]string{"https://shop.example", "'NONE'"}, "'NONE' stands beside others"},
		{[]string{`"self"`}, "no source"},
		{[]string{"'unsafe-inline'"}, "no source"},
		{[]string{""}, "no source"},
		{[]string{"https://a.example https://b.example"}, "an entry of its own"},
		{[]string{"https://a.example,https://b.example"}, "an entry of its own"},
		{[]string{"https://a.example; script-src *"}, "no source"},
		{[]string{"https://a.example\n"}, "no source"},
		{[]string{"shop.example:"}, "neither a scheme, such as https:, nor a host"},
		{[]string{"https://"}, "no host"},
		{[]string{"https:///x"}, "names no host"},
		{[]string{"://shop.example"}, "no source"},
		{[]string{"https://shop.example/"}, `write "https://shop.example"`},
		{[]string{"shop.example/checkout"}, `write "shop.example"`},
		{[]string{"https://shop.example:8443/a/b"}, `write "https://shop.example:8443"`},
		{[]string{"https://shop.*"}, "another place"},
		{[]string{"https://*shop.example"}, "another place"},
		{[]string{"https://a.*.shop.example"}, "another place"},
		{[]string{"**"}, "another place"},
		{[]string{"https://shop.example:"}, "port"},
		{[]string{"https://shop.example:0"}, "port"},
		{[]string{"https://shop.example:65536"}, "port"},
		{[]string{"https://shop.example:80:80"}, "port"},
		{[]string{"https://bücher.example"}, "xn--"},
		{[]string{"https://[::1]:8080"}, "IPv6"},
		{[]string{"https://user@shop.example"}, "plain letters"},
		{[]string{"https://shop..example"}, "plain letters"},
		{[]string{"-"}, "plain letters"},
	} {
		if err := (web.Site{FrameAncestors: c.sources}).Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want one that says %q", c.sources, err, c.want)
		}
	}
}

func TestWords(t *testing.T) {
	en := web.Words("en")
	for _, lang := range web.Languages() {
		words := web.Words(lang)
		for key := range en {
			if words[key] == "" {
				t.Errorf("%s lacks %s", lang, key)
			}
			if d := cmp.Diff(places(en[key]), places(words[key])); d != "" {
				t.Errorf("%s: %s has other places: %s", lang, key, d)
			}
		}
		if len(words) != len(en) {
			t.Errorf("%s has %d texts, want %d", lang, len(words), len(en))
		}
	}
	if web.Words("tlh") != nil {
		t.Error("a language that is not shipped has words")
	}
}

func places(text string) []string {
	p := regexp.MustCompile(`\{\w+\}`).FindAllString(text, -1)
	slices.Sort(p)
	return p
}

func TestOwnWords(t *testing.T) {
	site := web.Site{Words: map[string]map[string]string{
		"ar":    {"lang.dir": "rtl", "track.headline.on_the_way": "طلبك في الطريق"},
		"de":    {"track.headline.on_the_way": "Deine Pizza kommt"},
		"de-AT": {"track.order": "Bestellnummer"},
	}}
	for _, c := range []struct{ accept, lang, want string }{
		{"ar-EG,ar;q=0.9,en;q=0.8", "ar", "طلبك في الطريق"},
		{"ar", "ar", "Your driver"}, // what the language lacks is English
		{"de-CH", "de", "Deine Pizza kommt"},
		{"de-AT", "de-AT", "Deine Pizza kommt"},
		{"de-AT", "de-AT", "Bestellnummer"},
		{"de-AT", "de-AT", "Ihr Fahrer"},
		{"de;q=0, en", "en", "Your order is on the way"},
		{"tlh, *", "en", "Your order is on the way"},
		{"", "en", "Your order is on the way"},
		{"de;q=abc, ,;;, en;q=0.1, de;q=0.2", "de", "Deine Pizza kommt"},
	} {
		p := track(t, site, underWay, c.accept)
		if p.Language != c.lang || !strings.Contains(visible(p), c.want) {
			t.Errorf("%q: language %s without %q, want %s", c.accept, p.Language, c.want, c.lang)
		}
	}
	if p := track(t, site, underWay, "ar"); !strings.Contains(visible(p), `<html lang="ar" dir="rtl">`) {
		t.Error("the page of a right-to-left language is not right to left")
	}
}

// The app draws its own head, so it is told the logo; the page of a link has it in its HTML.
func TestLogoOfDriverApp(t *testing.T) {
	for logo, want := range map[string]string{
		"/logo.svg":                  `"logo":"/logo.svg"`,
		"data:image/png;base64,AA==": `"logo":"data:image/png;base64,AA=="`,
		"javascript:alert(1)":        "", // not refused where nobody has called Check
		"":                           "",
	} {
		p, err := newFronts(t).Driver(web.Site{Logo: logo}, "en", now)
		if err != nil {
			t.Fatal(err)
		}
		if html := string(p.HTML); want == "" && strings.Contains(html, `"logo"`) || !strings.Contains(html, want) {
			t.Errorf("%q: the app is not given %q", logo, want)
		}
	}
}

func TestStateThatIsNoJSON(t *testing.T) {
	if _, err := newFronts(t).Tracking(web.Site{}, "T", []byte("{"), "", now); err == nil {
		t.Error("no error")
	}
}

func TestServePages(t *testing.T) {
	f := newFronts(t)
	gone, err := f.Gone(web.Site{}, "en")
	if err != nil {
		t.Fatal(err)
	}
	driver, err := f.Driver(web.Site{Prefix: "/p"}, "en", now)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		page   web.Page
		method string
		gzip   bool
		frame  string
	}{
		{"gone", gone, "GET", true, ""},
		{"driver", driver, "GET", false, "DENY"},
		{"head", driver, "HEAD", true, "DENY"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, "/", nil)
			if c.gzip {
				r.Header.Set("Accept-Encoding", "br, gzip;q=0.5")
			}
			w := httptest.NewRecorder()
			c.page.Serve(w, r, http.StatusNotFound)
			h := w.Result().Header
			for k, want := range map[string]string{
				"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store",
				"X-Robots-Tag":    "noindex, nofollow",
				"Referrer-Policy": "strict-origin-when-cross-origin", "X-Content-Type-Options": "nosniff",
				"X-Frame-Options": c.frame, "Content-Language": "en",
			} {
				if got := h.Get(k); got != want {
					t.Errorf("%s: %q, want %q", k, got, want)
				}
			}
			if w.Code != http.StatusNotFound || (h.Get("Content-Encoding") == "gzip") != c.gzip {
				t.Errorf("status %d, encoding %q", w.Code, h.Get("Content-Encoding"))
			}
			body := w.Body.Bytes()
			if c.method == "HEAD" {
				if len(body) > 0 {
					t.Error("HEAD has a body")
				}
				return
			}
			if c.gzip {
				body = gunzip(t, body)
			}
			if !bytes.Equal(body, c.page.HTML) {
				t.Error("the body is not the page")
			}
		})
	}
	if !strings.Contains(driver.CSP, "frame-ancestors 'none'") || !strings.Contains(driver.CSP, "worker-src 'self'") {
		t.Errorf("CSP of the driver app: %s", driver.CSP)
	}
}

func gunzip(t *testing.T, b []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var assetPattern = regexp.MustCompile(`(?:src|href)="(/p/driver/assets/[^"]+)"`)

// Everything a page names is there, and all that a browser loads stays within 100 KB for the tracking
// page, 60 KB for the driver app before its map, and 130 KB for the board with its map (of streets, as above, more).
func TestAssets(t *testing.T) {
	f := newFronts(t)
	site := web.Site{Prefix: "/p"}
	tracking, err := f.Tracking(site, "TOKEN", []byte(underWay), "en", now)
	if err != nil {
		t.Fatal(err)
	}
	driver, err := f.Driver(site, "en", now)
	if err != nil {
		t.Fatal(err)
	}
	get := func(name string, header ...string) *http.Response {
		r := httptest.NewRequest("GET", "/"+name, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		f.ServeAsset(w, r, name)
		return w.Result()
	}
	imports := regexp.MustCompile(`"\./([\w-]+\.js)"`)
	load := func(p web.Page, without ...string) (bytesOverWire int) {
		seen := map[string]bool{}
		for _, name := range without {
			seen[name] = true
		}
		var add func(name string)
		add = func(name string) {
			if seen[name] {
				return
			}
			seen[name] = true
			res := get(name, "Accept-Encoding", "gzip")
			body, _ := io.ReadAll(res.Body)
			if res.StatusCode != 200 {
				t.Errorf("%s: %s", name, res.Status)
				return
			}
			bytesOverWire += len(body)
			if res.Header.Get("Content-Encoding") == "gzip" {
				body = gunzip(t, body)
			}
			if strings.HasSuffix(name, ".js") {
				for _, m := range imports.FindAllSubmatch(body, -1) {
					add(string(m[1]))
				}
			}
		}
		names := assetPattern.FindAllSubmatch(p.HTML, -1)
		if len(names) < 3 {
			t.Fatalf("the page names %d files", len(names))
		}
		for _, m := range names {
			add(string(m[1][strings.LastIndex(string(m[1]), "/")+1:]))
		}
		return bytesOverWire
	}
	size := func(p web.Page) int {
		w := httptest.NewRecorder()
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Accept-Encoding", "gzip")
		p.Serve(w, r, 200)
		return w.Body.Len()
	}
	var entries map[string]string
	data, err := os.ReadFile("dist/entries.json")
	if err == nil {
		err = json.Unmarshal(data, &entries)
	}
	if err != nil {
		t.Fatal(err)
	}
	total := size(tracking) + load(tracking, entries["basemap.js"])
	t.Logf("tracking page: %d bytes over the wire", total)
	if total > 70_000 {
		t.Errorf("the tracking page loads %d bytes, want at most 70,000", total)
	}
	more := load(tracking) - load(tracking, entries["basemap.js"])
	t.Logf("with a map of streets: %d bytes more", more)
	if more < 10_000 || more > 40_000 {
		t.Errorf("with a map of streets it loads %d bytes more, want at most 40,000", more)
	}
	total = size(driver) + load(driver, entries["map.js"])
	t.Logf("driver app before its map: %d bytes over the wire", total)
	if total > 60_000 {
		t.Errorf("the driver app loads %d bytes before its map, want at most 60,000", total)
	}
	board, err := f.Board(site, "en", now, web.BoardOptions{})
	if err != nil {
		t.Fatal(err)
	}
	total = size(board) + load(board, entries["basemap.js"])
	t.Logf("board with its map: %d bytes over the wire", total)
	if total > 130_000 {
		t.Errorf("the board loads %d bytes, want at most 130,000", total)
	}

	name := string(assetPattern.FindSubmatch(tracking.HTML)[1])
	name = name[strings.LastIndex(name, "/")+1:]
	res := get(name)
	if got := res.Header.Get("Cache-Control"); got != "public, max-age=31536000, immutable" {
		t.Errorf("Cache-Control %q", got)
	}
	if again := get(name, "If-None-Match", res.Header.Get("ETag")); again.StatusCode != http.StatusNotModified {
		t.Errorf("asked again: %s, want 304", again.Status)
	}
	if res := get("../web.go"); res.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown file: %s, want 404", res.Status)
	}
	if res := get(name, "Accept-Encoding", "gzip;q=0.0"); res.Header.Get("Content-Encoding") != "" {
		t.Error("gzip was refused and came all the same")
	}
}

func TestManifestAndWorker(t *testing.T) {
	f := newFronts(t)
	w := httptest.NewRecorder()
	f.ServeManifest(w, httptest.NewRequest("GET", "/", nil), web.Site{Prefix: "/p", Name: "Blue & <Bold>"})
	var m struct {
		StartURL string `json:"start_url"`
		Scope    string
		Name     string
		Display  string
		Icons    []struct{ Src, Purpose string }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	if m.StartURL != "/p/driver/" || m.Scope != "/p/driver/" || m.Display != "standalone" ||
		!strings.HasPrefix(m.Name, "Blue & <Bold>") {
		t.Errorf("manifest %+v", m)
	}
	for _, i := range m.Icons {
		rec := httptest.NewRecorder()
		f.ServeAsset(rec, httptest.NewRequest("GET", "/", nil), i.Src[strings.LastIndex(i.Src, "/")+1:])
		if rec.Code != 200 || !strings.HasPrefix(i.Src, "/p/driver/assets/") {
			t.Errorf("icon %s: %d", i.Src, rec.Code)
		}
	}
	w = httptest.NewRecorder()
	f.ServeWorker(w, httptest.NewRequest("GET", "/", nil))
	if w.Code != 200 || w.Header().Get("Cache-Control") != "no-cache" ||
		!strings.HasPrefix(w.Header().Get("Content-Type"), "text/javascript") {
		t.Errorf("worker: %d %v", w.Code, w.Header())
	}
}

// Any brand colour must give shades that stand out, and text on them that can be read.
func TestBrandShades(t *testing.T) {
	for _, color := range []string{"#ffff00", "#000000", "#ffffff", "#1857d6", "#ff0000", "#777777", "#00ff88"} {
		html := visible(track(t, web.Site{Color: color}, underWay, "en"))
		m := regexp.MustCompile(`--brand-light:(#\w{6});--on-brand-light:(#\w{6});--brand-dark:(#\w{6});--on-brand-dark:(#\w{6})`).FindStringSubmatch(html)
		if m == nil {
			t.Fatalf("%s: no shades", color)
		}
		for _, c := range []struct {
			a, b string
			want float64
		}{{m[1], "#ffffff", 3}, {m[3], "#1a1c20", 3}, {m[1], m[2], 4.5}, {m[3], m[4], 4.5}} {
			if r := web.Contrast(c.a, c.b); r < c.want {
				t.Errorf("%s: %s on %s has a contrast of %.2f, want %.1f", color, c.a, c.b, r, c.want)
			}
		}
	}
}
