package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking/httpadapter/internal/e2e/webmock"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// A customer sees the whole way on one page: stops before, a span that narrows, late said once, and
// the door. What comes below the times stands still while they change.
func TestTheWayOnThePage(t *testing.T) {
	now := time.Now().UTC()
	at := func(d time.Duration) string { return now.Add(d).Format("2006-01-02T15:04:05.000Z") }
	events := make(chan string)
	send := func(kind string, v map[string]any) {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		events <- fmt.Sprintf("event: %s\ndata: %s\n\n", kind, data)
	}
	mock, err := webmock.New(web.Site{}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	first := maps.Clone(mock.Track["on_the_way"])
	expected := func(d time.Duration) map[string]any {
		return map[string]any{"time": at(d), "computed_at": at(0), "source": "estimate"}
	}
	maps.Copy(first, map[string]any{
		"promised": at(90 * time.Minute), "stops_before": 3, "phase": "to_drop", "eta": expected(62 * time.Minute),
	})
	mock.Track["way"] = first
	server := serve(t, web.Site{}, func(next http.Handler) http.Handler {
		mocked := mock.Handler()
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if path.Base(r.URL.Path) != "live" {
				mocked.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			for {
				select {
				case e := <-events:
					_, _ = w.Write([]byte(e))
					w.(http.Flusher).Flush()
				case <-r.Context().Done():
					return
				}
			}
		})
	})
	p := newPerson(t, chromium(t), "the customer", server.URL)
	p.phone(844)
	p.open(server.URL + "/track/way")
	send("state", first)
	const main, late = `document.querySelector('#eta-main').textContent`, `document.querySelector('#late').textContent`
	const top = `document.querySelector('#steps').getBoundingClientRect().top`
	p.see("three stops before and a span",
		`document.querySelector('#stops').textContent === '3 stops before you' && /\bbetween /.test(`+main+`) && `+late+` === ''`)
	p.eval(`window.said = []; window.top1 = ` + top + `; window.main1 = ` + main + `;
		new MutationObserver(() => said.push(` + late + `)).observe(document.querySelector('#late'), {childList: true, characterData: true, subtree: true})`)
	move := func(d time.Duration, more map[string]any) {
		m := map[string]any{"position": first["position"], "path_add": []any{}, "eta": expected(d)}
		maps.Copy(m, more)
		send("move", m)
	}
	move(40*time.Minute, map[string]any{"stops_before": 3, "phase": "to_drop"})
	p.see("another span, and nothing that jumped", main+` !== main1 && `+top+` === top1`)
	move(8*time.Minute, map[string]any{"stops_before": 3, "phase": "to_drop"})
	p.see("minutes, and nothing that jumped", main+` === 'in about 8 minutes' && `+top+` === top1`)
	move(100*time.Minute, map[string]any{"stops_before": 1, "phase": "to_drop"})
	p.see("the old promise in words", `/^Later than promised: was /.test(`+late+`) && document.querySelector('#stops').textContent === '1 stop before you'`)
	move(101*time.Minute, map[string]any{"stops_before": 0, "phase": "to_drop"})
	p.see("who is next", `document.querySelector('#stops').textContent === 'You are next'`)
	move(102*time.Minute, map[string]any{"phase": "to_drop"})
	p.see("no number of stops any more", `document.querySelector('#stops').hidden`)
	move(4*time.Minute, map[string]any{"stops_before": 0, "phase": "arriving"})
	p.see("that it is near", `document.body.dataset.phase === 'arriving' && document.querySelector('[aria-current=step]').dataset.step === 'arriving'`)
	move(0, map[string]any{"stops_before": 0, "phase": "at_drop"})
	p.see("the door", `document.body.dataset.phase === 'at_door' && document.querySelector('#eta').hidden && `+late+` === ''`)
	said, err := chromedp.Run(p.ctx, chromedp.Evaluate[int](`said.filter((s) => s !== '').length`))
	if err != nil || said != 1 {
		t.Errorf("the broken promise was said %d times, %v", said, err)
	}
	done := maps.Clone(mock.Track["not_home"])
	send("state", done)
	p.see("why it failed", `document.querySelector('#detail').textContent === 'Nobody was at home' && !document.querySelector('#detail').hidden && `+late+` === ''`)
}

// A customer writes to the driver with a keyboard alone, hears what became of it, and keeps what was
// written when it did not get through.
func TestNoteToTheDriver(t *testing.T) {
	var mu sync.Mutex
	status := http.StatusServiceUnavailable
	var got []string
	held := make(chan struct{}, 9)
	server := serve(t, web.Site{}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if path.Base(r.URL.Path) != "note" {
				next.ServeHTTP(w, r)
				return
			}
			body, _ := io.ReadAll(r.Body)
			<-held
			mu.Lock()
			defer mu.Unlock()
			got = append(got, string(body))
			w.WriteHeader(status)
		})
	})
	p := newPerson(t, chromium(t), "the customer", server.URL)
	p.expected = append(p.expected, "status of 503", "status of 429")
	p.open(server.URL + "/track/ordered")
	p.see("where to write", `!document.querySelector('#note').hidden`)
	for i := 0; ; i++ {
		there, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](`document.activeElement.id === 'note-text'`))
		if err != nil || i == 20 {
			t.Fatalf("Tab does not lead to the note: %v", err)
		}
		if there {
			break
		}
		p.do("pressing Tab", chromedp.KeyEvent("\t"))
	}
	const said = `document.querySelector('#note-state').textContent`
	p.do("sending nothing", chromedp.KeyEvent("\t\r"))
	p.see("what is missing, and the focus there",
		said+` === 'Please write something first.' && document.activeElement.id === 'note-text'`)
	p.do("writing", chromedp.KeyEvent("Ring twice"))
	p.see("nothing said", said+` === ''`)
	p.do("sending", chromedp.KeyEvent("\t\r"))
	p.see("that it is on its way", said+` === 'Sending…' && document.querySelector('#note-send').ariaDisabled === 'true'`)
	p.do("sending again", chromedp.KeyEvent("\r"))
	answer := func(next int) {
		mu.Lock()
		status = next
		mu.Unlock()
		held <- struct{}{}
	}
	answer(http.StatusServiceUnavailable)
	const kept = ` && document.querySelector('#note-text').value === 'Ring twice'`
	p.see("that it failed, and the text", said+` === 'Not sent. Please try again.'`+kept)
	for code, text := range map[int]string{
		http.StatusTooManyRequests: "Too many notes today. Please call instead.",
		http.StatusOK:              "Sent. The driver can see it.",
	} {
		p.do("sending", chromedp.KeyEvent("\r"))
		answer(code)
		p.see("what became of it", said+` === '`+text+`'`+kept)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(got) != 3 || got[0] != `{"text":"Ring twice"}` {
		t.Errorf("the server got %q", got)
	}
}

// A page that was left open when a delivery failed shows the next try as soon as it is looked at
// again, and follows that.
func TestNextTryOnAnOpenPage(t *testing.T) {
	var mu sync.Mutex
	retried := false
	server := serve(t, web.Site{}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			again := retried
			mu.Unlock()
			base := path.Base(r.URL.Path)
			switch {
			case again && (base == "live" || base == "state"):
				r = r.Clone(r.Context())
				r.URL.Path = "/track/retry/" + base
			case base == "live":
				w.WriteHeader(http.StatusNoContent)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	p := newPerson(t, chromium(t), "the customer", server.URL)
	p.open(server.URL + "/track/not_home")
	const look = `document.dispatchEvent(new Event('visibilitychange'))`
	p.see("that it failed", `document.body.dataset.phase === 'not_delivered'`)
	p.eval(look)
	p.see("that nothing is new", `document.body.dataset.phase === 'not_delivered' && document.querySelector('#note').hidden`)
	mu.Lock()
	retried = true
	mu.Unlock()
	p.see("the next try and what became of the first", look+`, document.body.dataset.phase === 'ordered' && !document.body.hasAttribute('data-ended') &&
		/\bbetween /i.test(document.querySelector('#eta-main').textContent) &&
		document.querySelector('#earlier-value').textContent.endsWith('Nobody was at home') && !document.querySelector('#note').hidden`)
}
