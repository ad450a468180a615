package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// An hour of a company with 40 drivers, as fast as the board takes it: each has another position every
// second, and some tasks change each second, in turns new, given, under way, ended and reopened. In its
// second half the board needs no more memory than in its first.
func TestBoardHour(t *testing.T) {
	if os.Getenv("TRACKING_LONG") != "1" {
		t.Skip("it plays an hour in 20 seconds")
	}
	const (
		drivers, tasks = 40, 100
		half           = 1800 // seconds
		perSecond      = 4    // tasks that change
	)
	base := time.Now().Add(-time.Hour)
	at := func(second int) string {
		return base.Add(time.Duration(second) * time.Second).UTC().Format(time.RFC3339Nano)
	}
	version := make([]int, tasks)
	task := func(i, second int) map[string]any {
		version[i]++
		d := fmt.Sprint("d", (i+version[i]/4)%drivers)
		task := map[string]any{
			"task_id": fmt.Sprint("t", i), "type": 2, "outcome": "", "order_id": fmt.Sprint(1000 + i), "version": version[i],
			"status": []string{"created", "assigned", "in_progress", "completed"}[version[i]%4], "driver_id": d,
			"drop":       map[string]any{"address": fmt.Sprint("Street ", i), "lnglat": []float64{13.4 + float64(i)/1000, 52.5}},
			"created_at": at(0), "updated_at": at(second),
		}
		switch version[i] % 4 {
		case 0:
			task["driver_id"], task["waiting"] = "", map[string]any{"since": at(second)}
		case 3:
			task["outcome"], task["completed_at"] = []string{"succeeded", "failed", "cancelled"}[version[i]/4%3], at(second)
		}
		return task
	}
	goOn, once := make(chan int), make(chan struct{}, 1)
	once <- struct{}{}
	stream := func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-once:
		default: // it is to take all in one stream
			t.Error("the board has asked for the stream again")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		send := func(event string, data map[string]any) {
			text, err := json.Marshal(data)
			if err != nil {
				panic(err)
			}
			fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event, text)
		}
		driver := func(i, version, second int) {
			send("driver", map[string]any{
				"driver_id": fmt.Sprint("d", i), "name": fmt.Sprint("Driver ", i), "availability": true, "open_tasks": i % 4,
				"lnglat": []float64{13.4, 52.5}, "located_at": at(0), "last_seen_at": at(second), "version": version,
			})
		}
		for i := range drivers {
			driver(i, 1, 0)
		}
		for i := range tasks {
			send("task", task(i, 0))
		}
		send("ready", map[string]any{"at": time.Now().UTC().Format(time.RFC3339Nano)})
		w.(http.Flusher).Flush()
		second := 1
		for {
			select {
			case <-r.Context().Done():
				return
			case <-time.After(time.Second):
				fmt.Fprint(w, ": beat\n\n")
				w.(http.Flusher).Flush()
				continue
			case until := <-goOn:
				for ; second <= until && r.Context().Err() == nil; second++ {
					for i := range drivers {
						send("position", map[string]any{
							"driver_id": fmt.Sprint("d", i), "at": at(second), "battery": 0.5,
							"lnglat": []float64{13.4 + float64((second+i*37)%400)/4000, 52.5 + float64(i)/1000},
						})
					}
					for i := range perSecond {
						send("task", task((second*perSecond+i)%tasks, second))
					}
					driver(second%drivers, 1+second, second)
				}
				// What is told last is seen on the page.
				send("driver", map[string]any{
					"driver_id": "d0", "name": fmt.Sprint("Second ", until), "availability": true, "open_tasks": 0,
					"last_seen_at": at(until), "version": 1_000_000 + until,
				})
				w.(http.Flusher).Flush()
			}
		}
	}
	server := serve(t, web.Site{}, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/live" {
				stream(w, r)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	p := newPerson(t, chromium(t), "the dispatcher", server.URL)
	p.desk(1280, 800)
	p.open(server.URL + "/board/#signin=calm")
	p.see("the board", live)
	p.play(goOn, half/6) // what is made once is made
	first := p.play(goOn, half)
	second := p.play(goOn, 2*half)
	t.Logf("after half an hour: %s; after an hour: %s", first, second)
	// 72,000 positions and 7,200 changes of tasks: one entry of each of those in a map is half a megabyte.
	if grown := second.heap - first.heap; grown > 200_000 {
		t.Errorf("the second half has left %.0f bytes more", grown)
	}
	if grown := second.nodes - first.nodes; grown > 500 {
		t.Errorf("the second half has left %.0f nodes more", grown)
	}
	if grown := second.listeners - first.listeners; grown > 50 {
		t.Errorf("the second half has left %.0f listeners more", grown)
	}
}

// used is what a page holds.
type used struct{ heap, nodes, listeners float64 }

func (u used) String() string {
	return fmt.Sprintf("%.2f MB, %.0f nodes, %.0f listeners", u.heap/1e6, u.nodes, u.listeners)
}

// play has the hour go on until a second of it, and tells what the board holds then.
func (p *person) play(goOn chan<- int, second int) (u used) {
	p.Helper()
	goOn <- second
	p.see("the last of it", fmt.Sprintf(`[...document.querySelectorAll('.driver.card')].some((e) => e.textContent.includes('Second %d'))`, second))
	p.eval(`new Promise((done) => setTimeout(done, 6000))`) // until nothing flashes any more
	if _, err := chromedp.Call(p.ctx, performance.Enable, performance.EnableParams{}); err != nil {
		p.Fatal(err)
	}
	for range 3 {
		if _, err := chromedp.Call(p.ctx, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
			p.Fatal(err)
		}
	}
	res, err := chromedp.Call(p.ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		p.Fatal(err)
	}
	for _, m := range res.Metrics {
		switch {
		case m.Name == "JSHeapUsedSize":
			u.heap = m.Value
		case m.Name == "Nodes":
			u.nodes = m.Value
		case strings.HasSuffix(m.Name, "EventListeners"):
			u.listeners = m.Value
		}
	}
	return u
}
