package e2e_test

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking"
)

// The board in German has all its words, whole and within their boxes, on a desk and on a phone.
func TestBoardInGerman(t *testing.T) {
	s := newBoardService(t)
	for i, order := range []string{"1001", "1002", "1003"} {
		if id := s.order(order, nil); i > 0 {
			s.give(id, "asha")
		}
	}
	open, taken := s.order("1004", nil), s.order("1005", nil)
	s.give(taken, "asha")
	s.give(taken, "bilal")
	if _, err := s.svc.ReportStuck(t.Context(), "asha", taken, tracking.StuckStep{Step: "complete", Why: "gone"}); err != nil {
		t.Fatal(err)
	}
	token, err := s.svc.SignIn(t.Context(), "user:dana")
	if err != nil {
		t.Fatal(err)
	}
	dana := newPerson(t, chromium(t), "dana", s.origins[1])
	if _, err := chromedp.Call(dana.ctx, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{
		UserAgent: "Mozilla/5.0 Chrome", AcceptLanguage: "de",
	}); err != nil {
		t.Fatal(err)
	}
	dana.desk(1280, 800)
	dana.open(s.driver + "/board/#signin=" + token)
	dana.see("the board", live+` && document.documentElement.lang === 'de'`)
	dana.see("what did not get through", `document.querySelector('.need.stuck')?.innerText.includes('„Zugestellt“ kam nicht an')`)
	whole := func(where string) {
		t.Helper()
		dana.see("its words, whole: "+where, `(() => {
			const text = document.body.innerText;
			const wrong = /\b(board|track|driver)\.[a-z_.]+|Needs you|Unassigned|Drivers\b|New task|Give to|Sign out|Settled|Delete|Erase/.exec(text);
			if (wrong) throw new Error('it says ' + wrong[0]);
			for (const e of document.querySelectorAll('button, .card *, .panel *, .head *, .tabs *')) {
				if (e.closest('.map, .sr, .preview, .leaflet-container') || e.clientWidth === 0 || getComputedStyle(e).textOverflow === 'ellipsis') continue;
				if (e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== 'inline') throw new Error('too wide: ' + e.outerHTML.slice(0, 200));
			}
			return document.documentElement.scrollWidth <= innerWidth;
		})()`)
	}
	dana.keys("?")
	dana.see("the keys by their names", `(() => {
		const keys = [...document.querySelectorAll('.keylist kbd')].map((e) => e.textContent);
		return keys.includes('Entf') && !keys.includes('Del');
	})()`)
	dana.do("closing them", chromedp.KeyEvent("\x1b"))
	for _, width := range []int64{1280, 390} {
		dana.desk(width, 844)
		dana.eval(`location.hash = ''`)
		whole("the columns")
		for _, panel := range []string{
			"new", "paste", "search", "people", "day", "task/" + string(taken), "assign/" + string(open), "several/of:asha",
			"driver/asha",
		} {
			dana.eval(`location.hash = '#` + panel + `'`)
			dana.see(panel, `document.querySelector('.panel-body')?.children.length > 0`)
			whole(panel)
		}
	}
}
