package e2e_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
)

// How smooth the map of the board is with 500 tasks and 200 drivers, each of whom has another position
// every second: while nobody touches it, and while it is dragged about. It measures, and judges only
// that the map was drawn and moved; run it with -v.
func TestBoardFrames(t *testing.T) {
	if os.Getenv("TRACKING_LONG") != "1" {
		t.Skip("it measures for 15 seconds")
	}
	p := largeBoard(t, 1920, 1080)
	p.see("the map", drawn)
	p.eval(`(() => {
		window.frames_ = [];
		let last = performance.now();
		const tick = (now) => { frames_.push(now - last); last = now; requestAnimationFrame(tick); };
		requestAnimationFrame(tick);
	})()`)
	p.eval(`new Promise((done) => setTimeout(done, 2000))`) // it is drawn for the first time
	for _, zoomed := range []string{"whole", "one selected", "near"} {
		switch zoomed {
		case "one selected": // the rest is dim
			p.eval(row("driver", "d-003") + `.click()`)
			p.see("that the rest is dim", `document.querySelectorAll('.mark.dim').length > 500`)
			p.eval(`new Promise((done) => setTimeout(done, 1000))`)
		case "near":
			p.eval(row("driver", "d-003") + `.click()`)
			p.eval(`document.querySelector('.leaflet-control-zoom-in').click()`)
			p.eval(`new Promise((done) => setTimeout(done, 700))`)
			p.eval(`document.querySelector('.leaflet-control-zoom-in').click()`)
			p.eval(`new Promise((done) => setTimeout(done, 700))`)
		}
		p.frames(zoomed+", untouched", func() { p.eval(`new Promise((done) => setTimeout(done, 3000))`) })
		was := p.pictureOfMap()
		p.frames(zoomed+", dragged", func() {
			x, y := p.middle(`document.querySelector('.map')`)
			p.leftButton("down", x, y)
			for i, end := 0, time.Now().Add(4*time.Second); time.Now().Before(end); i++ {
				angle := float64(i) / 20
				p.leftButton("move", x+120*math.Sin(angle), y+90*math.Sin(angle/1.7))
			}
			p.leftButton("up", x+30, y+30)
		})
		if p.pictureOfMap() == was {
			t.Errorf("%s: dragging has not moved the map", zoomed)
		}
	}
}

// frames tells how long the frames took while something was done, and what of it was the page's own work.
func (p *person) frames(what string, do func()) {
	p.Helper()
	if _, err := chromedp.Call(p.ctx, performance.Enable, performance.EnableParams{}); err != nil {
		p.Fatal(err)
	}
	metrics := func() map[string]float64 {
		res, err := chromedp.Call(p.ctx, performance.GetMetrics, cdp.Empty{})
		if err != nil {
			p.Fatal(err)
		}
		by := map[string]float64{}
		for _, m := range res.Metrics {
			by[m.Name] = m.Value
		}
		return by
	}
	before := metrics()
	p.eval(`frames_.length = 0`)
	do()
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`JSON.stringify(frames_)`))
	if err != nil {
		p.Fatal(err)
	}
	after := metrics()
	var took []float64
	if err := json.Unmarshal([]byte(text), &took); err != nil {
		p.Fatal(err)
	}
	if len(took) == 0 {
		p.Fatalf("%s: no frame was drawn", what)
	}
	slices.Sort(took)
	quantile := func(q float64) float64 { return took[min(len(took)-1, int(q*float64(len(took))))] }
	work := func(name string) string {
		return fmt.Sprintf("%s %.1f", name, 1000*(after[name]-before[name])/float64(len(took)))
	}
	p.Logf("%-20s %3d frames: p50 %.1f ms, p95 %.1f, p99 %.1f; ms of a frame: %s, %s, %s, %s", what, len(took),
		quantile(0.5), quantile(0.95), quantile(0.99), work("TaskDuration"), work("ScriptDuration"),
		work("LayoutDuration"), work("RecalcStyleDuration"))
}

// drawn is a script's expression: the map shows drivers and tasks.
const drawn = `document.querySelectorAll('.mark').length > 20`

// pictureOfMap says where the map is.
func (p *person) pictureOfMap() string {
	p.Helper()
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](
		`JSON.stringify([...document.querySelectorAll('.map .leaflet-tile, .map .mark')].slice(0, 5).map((e) => { const r = e.getBoundingClientRect(); return [r.x, r.y]; }))`))
	if err != nil {
		p.Fatal(err)
	}
	return text
}
