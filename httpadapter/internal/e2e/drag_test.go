package e2e_test

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
)

// While the map of the board is dragged, what is drawn on it is moved and not painted anew: of the
// tiles that Chromium paints a page in, few are painted in a frame, which all of the map's would be
// otherwise.
func TestBoardDragPaintsLittle(t *testing.T) {
	const few = 15 // measured: 4; 45 where all is painted
	p := largeBoard(t, 1920, 1080)
	p.see("the map", drawn)
	count, whole := map[string]int{}, make(chan struct{})
	chromedp.Listen(p.ctx, func(e any) {
		switch e := e.(type) {
		case *tracing.EventDataCollected:
			for _, text := range e.Value {
				var of struct{ Name, Ph string }
				if json.Unmarshal(text, &of) == nil && of.Ph == "X" {
					count[of.Name]++
				}
			}
		case *tracing.EventTracingComplete:
			close(whole)
		}
	})
	categories := []string{"devtools.timeline", "disabled-by-default-devtools.timeline", "cc"}
	if _, err := chromedp.Call(p.ctx, tracing.Start, tracing.StartParams{
		TransferMode: "ReportEvents", TraceConfig: &tracing.TraceConfig{IncludedCategories: categories},
	}); err != nil {
		t.Fatal(err)
	}
	x, y := p.middle(`document.querySelector('.map')`)
	p.leftButton("down", x, y)
	for i := range 120 {
		angle := float64(i) / 20
		p.leftButton("move", x+120*math.Sin(angle), y+90*math.Sin(angle/1.7))
	}
	p.leftButton("up", x+30, y+30)
	if _, err := chromedp.Call(p.ctx, tracing.End, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-whole:
	case <-p.ctx.Done():
		t.Fatal(p.ctx.Err())
	}
	frames, painted := count["ProxyMain::BeginMainFrame"], count["RasterTask"]
	t.Logf("%d tiles painted in %d frames", painted, frames)
	if frames < 20 || painted == 0 {
		t.Fatalf("%d frames and %d tiles were traced", frames, painted)
	}
	if painted > few*frames {
		t.Errorf("%d tiles were painted in %d frames, more than %d in each", painted, frames, few)
	}
}
