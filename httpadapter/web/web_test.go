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

// The browser code is held to the same file by test/state.test.ts.
func TestPhases(t *testing.T) {
	data, err := os.ReadFile("testdata/phases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name                 string
		Tracking             json.RawMessage
		Phase, Place, Detail string
		Steps                []string
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	words := web.Words("en")
	at := regexp.MustCompile(`datetime="([^"]*)"`)
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			html := visible(track(t, web.Site{}, string(c.Tracking), "en"))
			if !strings.Contains(html, `data-phase="`+c.Phase+`"`) || !strings.Contains(html, ">"+words["track.headline."+c.Phase]+"</h1>") {
				t.Errorf("the page does not show phase %s", c.Phase)
			}
			if c.Detail != "" && !strings.Contains(html, words[c.Detail]) {
				t.Errorf("the page does not say %q", words[c.Detail])
			}
			var got []string
			for _, m := range stepPattern.FindAllStringSubmatch(html, -1) {
				step := m[1] + " " + m[2]
				if d := at.FindStringSubmatch(m[0]); d != nil {
					step += " " + d[1]
				}
				if !strings.Contains(m[0], ">"+words["track.step."+m[1]]+"<") || !strings.Contains(m[0], ", "+words["track.step."+m[2]]+"<") {
					t.Errorf("step %s lacks its words", m[1])
				}
				got = append(got, step)
			}
			if d := cmp.Diff(c.Steps, got); d != "" {
				t.Error(d)
			}
		})
	}
}

const underWay = `{"kind":"task","type":2,"status":"in_progress","outcome":"","order_id":"#1001","driver":{"name":"Ada"},
	"place":{"address":"12 Long Street","lnglat":[10,50]},"time":"2026-03-01T09:00:00.000Z","started_at":"2026-03-01T09:50:00.000Z",
	"position":{"lnglat":[10.01,50.01],"time":"2026-03-01T09:59:30.000Z","live":true},"path":[[10.02,50.02],[10.01,50.01]],
	"eta":{"time":"2026-03-01T10:11:00.000Z"}}`

func TestFactsWithoutScript(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zone database")
	}
	for _, c := range []struct {
		name, accept string
		zone         *time.Location
		want         []string
	}{
		{"English, UTC", "en", nil, []string{"Your order is on the way", "Ada", "12 Long Street", "#1001", "about 10:11 UTC", "Position of 09:59 UTC", `<html lang="en" dir="ltr">`}},
		{"German, zone of the brand", "fr;q=0.9, de-AT, en;q=0.5", berlin, []string{"Ihre Bestellung ist unterwegs", "gegen 11:11", "Position von 10:59", `<html lang="de" dir="ltr">`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			html := visible(track(t, web.Site{TimeZone: c.zone}, underWay, c.accept))
			for _, w := range c.want {
				if !strings.Contains(html, w) {
					t.Errorf("the page does not say %q", w)
				}
			}
		})
	}
}

func TestExpectedTime(t *testing.T) {
	for eta, want := range map[string]string{
		"10:00:29": "any moment now",
		"10:00:30": "about 10:01 UTC",
		"10:02:10": "about 10:02 UTC",
		"10:14:29": "about 10:14 UTC",
		"10:14:30": "about 10:15 UTC",
		"10:15:01": "about 10:20 UTC",
		"10:56:00": "about 11:00 UTC",
	} {
		if html := visible(track(t, web.Site{}, strings.Replace(underWay, "T10:11:00", "T"+eta, 1), "en")); !strings.Contains(html, want) {
			t.Errorf("expected at %s: the page does not say %q", eta, want)
		}
	}
}

func TestExpectedTimeThatHasPassed(t *testing.T) {
	html := visible(track(t, web.Site{}, strings.Replace(underWay, "T10:11:00", "T09:58:00", 1), "en"))
	if !strings.Contains(html, "any moment now") || strings.Contains(html, "about ") {
		t.Error("the page names a time in the past")
	}
}

func TestNothingAfterTheEnd(t *testing.T) {
	html := visible(track(t, web.Site{}, `{"kind":"task","type":2,"status":"completed","outcome":"succeeded","ended_at":"2026-02-28T09:40:00.000Z","path":[]}`, "en"))
	for _, no := range []string{"Position", `http-equiv="refresh"`, "modulepreload"} {
		if strings.Contains(html, no+" of") || no != "Position" && strings.Contains(html, no) {
			t.Errorf("a page of something that is over has %q", no)
		}
	}
	if !strings.Contains(html, "2026-02-28 09:40 UTC") {
		t.Error("the page does not say when it ended")
	}
}

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
		{"tiles", web.Site{Tiles: web.Tiles{URL: "https://tile.example/{z}/{x}/{y}.png"}}, `'self' https://tile\.example`, `\*`},
		{"tiles with subdomains", web.Site{Tiles: web.Tiles{URL: "https://{s}.tile.example:8443/{z}/{x}/{y}{r}.png"}}, `'self' https://\*\.tile\.example:8443`, `\*`},
		{"own tiles, framed by one", web.Site{Tiles: web.Tiles{URL: "/t/{z}/{x}/{y}"}, FrameAncestors: []string{"https://shop.example", "'self'"}}, `'self'`, `https://shop\.example 'self'`},
		{"logo as data", web.Site{Logo: "data:image/png;base64,AA=="}, `'self' data:`, `\*`},
		{"logo elsewhere", web.Site{Logo: "https://cdn.example/logo.svg"}, `'self' https://cdn\.example`, `\*`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.site.Check(); err != nil {
				t.Fatal(err)
			}
			want := `^default-src 'none'; script-src 'self'; ` + style + `; img-src ` + c.img + `; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors ` + c.fa + `$`
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
		{"help as script", web.Site{Help: "javascript:alert(1)"}, "Help"},
		{"help by telephone", web.Site{Help: "tel:+4930123456"}, ""},
		{"help without a scheme", web.Site{Help: "//evil.example"}, "Help"},
		{"tiles without z", web.Site{Tiles: web.Tiles{URL: "https://t.example/{x}/{y}"}}, "{z}"},
		{"tiles with {s} inside a label", web.Site{Tiles: web.Tiles{URL: "https://a{s}.t.example/{z}/{x}/{y}"}}, "{s}"},
		{"tiles with a policy in the host", web.Site{Tiles: web.Tiles{URL: "https://t.example;script-src/{z}/{x}/{y}"}}, "Tiles.URL"},
		{"ancestor with a policy", web.Site{FrameAncestors: []string{"https://a.example; script-src *"}}, "FrameAncestors"},
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
				"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", "X-Robots-Tag": "noindex, nofollow",
				"Referrer-Policy": "strict-origin-when-cross-origin", "X-Content-Type-Options": "nosniff", "X-Frame-Options": c.frame, "Content-Language": "en",
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

// Everything a page names is there, and all that a browser loads for the tracking page stays within 100 KB.
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
	load := func(p web.Page) (bytesOverWire int) {
		seen := map[string]bool{}
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
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Accept-Encoding", "gzip")
	tracking.Serve(w, r, 200)
	total := w.Body.Len() + load(tracking)
	t.Logf("tracking page: %d bytes over the wire", total)
	if total > 100_000 {
		t.Errorf("the tracking page loads %d bytes, want at most 100,000", total)
	}
	t.Logf("driver app: %d bytes over the wire", load(driver))

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
	if m.StartURL != "/p/driver/" || m.Scope != "/p/driver/" || m.Display != "standalone" || !strings.HasPrefix(m.Name, "Blue & <Bold>") {
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
	if w.Code != 200 || w.Header().Get("Cache-Control") != "no-cache" || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/javascript") {
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
