package e2e_test

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// exampleServer builds examples/server and runs it until the test ends. It returns its address, and
// the link that signs in to the board once.
func exampleServer(t *testing.T, flags ...string) (base, signIn string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "server")
	build := exec.Command("go", "build", "-o", program, "./examples/server")
	build.Dir = "../../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the server: %v\n%s", err, out)
	}
	cmd := exec.Command(program, append([]string{"-addr", "127.0.0.1:0"}, flags...)...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	printed := make(chan [2]string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		var base string
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if at, ok := strings.CutPrefix(lines.Text(), "Open in a browser: "); ok {
				base = strings.TrimSuffix(at, "/")
			}
			if _, link, ok := strings.Cut(lines.Text(), "within 10 minutes): "); ok {
				printed <- [2]string{base, link}
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-read
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ends with %v", err)
		}
	})
	select {
	case at := <-printed:
		base, signIn = at[0], at[1]
	case <-read:
		t.Fatal("the server has ended without saying where it is")
	case <-time.After(patience):
		t.Fatal("the server does not say where it is")
	}
	return base, signIn
}

// links opens the start page, again and again until it has a customer's link of each courier: they
// set off within seconds.
func (p *person) links(base string) {
	p.Helper()
	for until := time.Now().Add(patience); time.Now().Before(until); {
		p.open(base + "/")
		n, err := chromedp.Run(p.ctx, chromedp.Evaluate[int](`document.querySelectorAll('.links a').length`))
		if err != nil {
			p.Fatal(err)
		}
		if n == 3 {
			return
		}
	}
	p.Fatalf("%s finds no customer's link of each courier", p.name)
}

// fits holds the page to the width of the screen.
func (p *person) fits(name string) {
	p.Helper()
	wide, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`
		[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1
			&& getComputedStyle(e).position !== 'absolute' && !e.closest('pre, .leaflet-container'))
			.map((e) => e.outerHTML.slice(0, 120)).slice(0, 3).join('\n')`))
	if err != nil {
		p.Fatal(err)
	}
	if wide != "" {
		p.Errorf("%s is wider than the screen:\n%s", name, wide)
	}
}

// TestFirstMinute: who starts the server and opens its page finds the API's description there, and
// what the couriers are at.
func TestFirstMinute(t *testing.T) {
	axe := readAxe(t)
	chrome := chromium(t)
	base, _ := exampleServer(t)
	for _, scheme := range []string{"light", "dark"} {
		t.Run(scheme, func(t *testing.T) {
			p := newPerson(t, chrome, "the newcomer", base)
			p.prefers(scheme)
			p.open(base + "/v1/docs")
			p.see("how a task is created", `document.querySelector('#createTask .call').innerText.includes('/v1/task/create')`)
			p.see("what the browser's search finds", `find('Give a task to a driver')`)
			p.fits("the description")
			p.accessible(axe, "the description")

			p.links(base)
			p.fits("the start page")
			p.accessible(axe, "the start page")
			p.click(".links a")
			p.see("a courier under way", `document.querySelector('.vehicle-icon') !== null`)
			p.see("the streets of the town", townTiles(scheme))
			p.onlyFrom(base)
		})
	}
}

// TestBoardOfTheDemo: the link that is printed leads to the board, which has somebody to see to at
// once, and the town below.
func TestBoardOfTheDemo(t *testing.T) {
	chrome := chromium(t)
	base, signIn := exampleServer(t)
	p := newPerson(t, chrome, "the newcomer", base)
	p.prefers("light")
	if _, err := chromedp.Call(p.ctx, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: 1280, Height: 800, DeviceScaleFactor: 1,
	}); err != nil {
		t.Fatal(err)
	}
	p.open(signIn)
	p.see("what needs somebody", `['Late', 'Will be late', 'nobody has what it requires', 'Nobody was at home', 'Diego', 'Silent']
		.every((text) => document.body.innerText.includes(text))`)
	p.see("the streets of the town", townTiles("light"))
	p.onlyFrom(base)
}

// townTiles is an expression that is true once tiles of the demo's town are there.
func townTiles(scheme string) string {
	return `[...document.querySelectorAll('img.leaflet-tile-loaded')].some((i) => i.naturalWidth === 256 && i.src.includes('/demo/` +
		scheme + `/'))`
}
