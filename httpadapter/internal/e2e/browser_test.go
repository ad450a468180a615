package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// patience is how long a browser on a busy machine may take for anything.
const patience = 60 * time.Second

// elsewhere is a name of this machine that browsers take for another machine's: over plain http
// they trust only their own.
const elsewhere = "phone.test"

// chromium starts a browser, or skips the test where there is none.
func chromium(t *testing.T) context.Context {
	t.Helper()
	if !slices.ContainsFunc([]string{"chromium", "chromium-browser", "google-chrome"}, func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	}) {
		if os.Getenv("TRACKING_LONG") == "1" {
			t.Fatal("Chromium is not installed")
		}
		t.Skip("Chromium is not installed")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("host-resolver-rules", "MAP "+elsewhere+" 127.0.0.1"))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("starting Chromium: %v", err)
	}
	return ctx
}

// person is somebody at a browser of their own, with nothing shared with others.
type person struct {
	*testing.T
	name string
	ctx  context.Context

	mu       sync.Mutex
	requests []string // URLs
	problems []string
	expected []string // parts of complaints that are no fault of the page
}

// newPerson opens an empty page. What the page complains of, and each dialog it opens, fails the
// test at its end.
func newPerson(t *testing.T, parent context.Context, name, origin string) *person {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	p := &person{T: t, name: name, ctx: ctx}
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	note := func(format string, args ...any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.problems = append(p.problems, fmt.Sprintf(format, args...))
	}
	messages := chromedp.Console(ctx)
	go func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			// A network that is gone is not the page's fault; that the page gets over it is what
			// tests look at.
			if m.IsException() || m.Type == "error" && !strings.Contains(m.Text, "net::ERR_") {
				note("console: %s %s", m, m.URL)
			}
		}
	}()
	err := chromedp.Listen(ctx, func(ev any) {
		switch ev := ev.(type) {
		case *network.EventRequestWillBeSent:
			p.mu.Lock()
			p.requests = append(p.requests, ev.Request.URL)
			p.mu.Unlock()
		case *page.EventJavascriptDialogOpening:
			note("a dialog: %s", ev.Message)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.CallBrowser(ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "geolocation"}, Setting: browser.PermissionSettingGranted,
		Origin:           origin,
		BrowserContextID: chromedp.FromContext(ctx).BrowserContextID,
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: 390, Height: 844, DeviceScaleFactor: 1, Mobile: true,
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		seen := map[string]bool{}
		for _, problem := range p.problems {
			if seen[problem] || slices.ContainsFunc(p.expected, func(part string) bool {
				return strings.Contains(problem, part)
			}) {
				continue
			}
			seen[problem] = true
			t.Errorf("%s's browser: %s", name, problem)
		}
	})
	return p
}

// onlyFrom holds every request so far to the origins given.
func (p *person) onlyFrom(origins ...string) {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.requests) == 0 {
		p.Errorf("%s's browser has asked for nothing", p.name)
	}
	for _, r := range p.requests {
		u, err := url.Parse(r)
		// What is data asks nobody: Chromium draws the icon of its own field for dates so.
		if err != nil || !slices.Contains(origins, u.Scheme+"://"+u.Host) && u.Scheme != "about" && u.Scheme != "data" {
			p.Errorf("%s's browser asked %s", p.name, r)
		}
	}
}

func (p *person) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		p.Fatalf("%s: %s: %v", p.name, what, err)
	}
}

func (p *person) open(url string) {
	p.Helper()
	p.do("opening "+url, chromedp.Navigate(url))
}

func (p *person) click(selector string) {
	p.Helper()
	p.do("clicking "+selector, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

func (p *person) eval(js string) {
	p.Helper()
	p.do(js, chromedp.Evaluate[chromedp.Void](js, chromedp.EvalAwaitPromise))
}

// beforeScripts runs a script in each document before its own.
func (p *person) beforeScripts(js string) {
	p.Helper()
	if _, err := chromedp.Call(p.ctx, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: js}); err != nil {
		p.Fatal(err)
	}
}

// see waits until a JavaScript expression is true on the page, also across a navigation.
func (p *person) see(what, expression string) {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	var err error
	for ctx.Err() == nil {
		err = chromedp.Do(ctx,
			chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingTimeout(patience),
				chromedp.WithPollingInterval(50*time.Millisecond)))
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "navigated") && !strings.Contains(err.Error(), "context") {
			break
		}
	}
	body, _ := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	p.Fatalf("%s does not see %s: %v\nthe page says: %s", p.name, what, err, body)
}

// framed waits until a JavaScript expression is true in the page's one frame. It gives up after the
// time given, and tells.
func (p *person) framed(expression string, wait time.Duration) error {
	nodes, err := chromedp.Run(p.ctx, chromedp.Nodes(chromedp.CSS("iframe")))
	if err != nil {
		return err
	}
	return chromedp.Do(p.ctx,
		chromedp.Poll[chromedp.Void](expression, chromedp.WithPollingInFrame(nodes[0]),
			chromedp.WithPollingTimeout(wait), chromedp.WithPollingInterval(50*time.Millisecond)))
}

func (p *person) seeFramed(what, expression string) {
	p.Helper()
	if err := p.framed(expression, patience); err != nil {
		p.Fatalf("%s does not see %s: %v\nthe frame says: %s", p.name, what, err,
			frameText(p, "document.body.dataset.phase + ' ' + document.body.innerText"))
	}
}

// stand moves the phone to a place.
func (p *person) stand(lng, lat float64) {
	p.Helper()
	accuracy := 5.0
	if _, err := chromedp.Call(p.ctx, emulation.SetGeolocationOverride, emulation.SetGeolocationOverrideParams{
		Longitude: &lng, Latitude: &lat, Accuracy: &accuracy,
	}); err != nil {
		p.Fatal(err)
	}
}

// gate is a network that can be cut.
type gate struct {
	next http.Handler

	mu     sync.Mutex
	server *httptest.Server
	closed bool
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	if closed {
		panic(http.ErrAbortHandler) // the connection breaks off without an answer
	}
	g.next.ServeHTTP(w, r)
}

func (g *gate) set(closed bool) {
	g.mu.Lock()
	g.closed = closed
	g.mu.Unlock()
	if closed {
		g.server.CloseClientConnections()
	}
}

// frameText evaluates an expression in the page's one frame.
func frameText(p *person, expression string) string {
	p.Helper()
	nodes, err := chromedp.Run(p.ctx, chromedp.Nodes(chromedp.CSS("iframe")))
	if err != nil {
		p.Fatal(err)
	}
	text, err := chromedp.Run(p.ctx,
		chromedp.Poll[string](expression, chromedp.WithPollingInFrame(nodes[0]), chromedp.WithPollingTimeout(patience)))
	if err != nil {
		p.Fatal(err)
	}
	return text
}
