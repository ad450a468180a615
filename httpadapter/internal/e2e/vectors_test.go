package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/seed-8aba7b13/tracking/httpadapter/internal/e2e/webmock"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// vectors are texts that others have broken pages with: our own list of scripts, and the naughty
// strings if they are at hand.
func vectors(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile("testdata/xss.txt")
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	folder := os.Getenv("TRACKING_DATA")
	if folder == "" {
		if os.Getenv("TRACKING_LONG") == "1" {
			t.Fatal("TRACKING_DATA is not set")
		}
		t.Log("without TRACKING_DATA only our own list is used")
		return list
	}
	if data, err = os.ReadFile(filepath.Join(folder, "blns", "blns.json")); err != nil {
		t.Fatal(err)
	}
	var naughty []string
	if err := json.Unmarshal(data, &naughty); err != nil {
		t.Fatal(err)
	}
	return append(list, naughty...)
}

// outline is the elements of a page with the names of their attributes, and not their texts.
func outline(t *testing.T, page []byte) string {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(string(page)))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	var walk func(n *html.Node, depth int)
	walk = func(n *html.Node, depth int) {
		if n.Type != html.TextNode {
			fmt.Fprintf(&b, "%s%d %s", strings.Repeat(" ", depth), n.Type, strings.TrimSpace(n.Data))
			for _, a := range n.Attr {
				b.WriteString(" " + a.Key)
			}
			b.WriteString("\n")
		}
		for c := range n.ChildNodes() {
			walk(c, depth+1)
		}
	}
	walk(doc, 0)
	return b.String()
}

func trackingWith(v string) map[string]any {
	return map[string]any{
		"kind": "task", "type": 2, "status": "in_progress", "outcome": "", "order_id": v,
		"driver": map[string]any{"name": v},
		"place":  map[string]any{"address": v, "lnglat": []float64{13.38, 52.51}}, "path": []any{},
		"position": map[string]any{
			"lnglat": []float64{13.37, 52.51}, "time": time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
			"live": true,
		},
	}
}

// As the server renders it, no text adds an element or an attribute.
func TestVectorsServerRendered(t *testing.T) {
	fronts, err := web.New()
	if err != nil {
		t.Fatal(err)
	}
	render := func(v string) []byte {
		state, err := json.Marshal(trackingWith(v))
		if err != nil {
			t.Fatal(err)
		}
		site := web.Site{
			Name: v, Words: map[string]map[string]string{"en": {"track.headline.on_the_way": v, "track.order": v}},
		}
		page, err := fronts.Tracking(site, "TOKEN", state, v, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		return page.HTML
	}
	want := outline(t, render("plain"))
	n := 0
	for _, v := range vectors(t) {
		if v == "" {
			continue // no text is no row
		}
		n++
		if d := cmp.Diff(want, outline(t, render(v))); d != "" {
			t.Errorf("%q changes the page:\n%s", v, d)
		}
	}
	t.Logf("%d of %d texts leave the page as it is", n, n)
}

// watch counts what a text must never bring into a page.
const watch = `
	window.hits = [];
	window.hit = (n) => window.hits.push('script ' + n);
	const bad = (e, deep = true) => {
		if (e.nodeType !== 1) return;
		const leaflet = e.closest('.leaflet-container');
		if (/^(script|iframe|object|embed|style|link|meta|base|video|audio|math|form|xss|marquee|template)$/i.test(e.localName)) window.hits.push('element ' + e.localName);
		if (!leaflet && /^(img|image|svg)$/i.test(e.localName) && !e.classList.contains('qr')) window.hits.push('element ' + e.localName);
		for (const a of e.attributes) {
			if (/^on|^ping$|^srcdoc$|^formaction$/i.test(a.name) || /^\s*(javascript|vbscript|data):/i.test(a.value)) window.hits.push('attribute ' + a.name + '=' + a.value);
			if (a.name === 'style' && /url|fixed|animation|expression|import/i.test(a.value)) window.hits.push('style ' + a.value);
			if (/^(href|src)$/i.test(a.name) && /foreign\.invalid/.test(a.value) && e.localName !== 'a') window.hits.push('attribute ' + a.name + '=' + a.value);
		}
		if (deep) for (const c of e.children) bad(c);
	};
	new MutationObserver((list) => {
		for (const m of list) {
			for (const n of m.addedNodes) bad(n);
			if (m.type === 'attributes') bad(m.target, false);
		}
	}).observe(document.body, { subtree: true, childList: true, attributes: true });`

// As the script of the tracking page renders it: one page that is shown each of them.
func TestVectorsTrackingPage(t *testing.T) {
	list := vectors(t)
	mock, err := webmock.New(web.Site{}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	mock.Track["v"] = trackingWith("first")
	mock.Then = map[string][]map[string]any{}
	for _, v := range list {
		mock.Then["v"] = append(mock.Then["v"], trackingWith(v))
	}
	mock.Then["v"] = append(mock.Then["v"], trackingWith("last"))
	server := httptest.NewServer(mock.Handler())
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })

	p := newPerson(t, chromium(t), "the customer", server.URL)
	p.beforeScripts(`document.addEventListener('DOMContentLoaded', () => {` + watch + `
		window.texts = new Set();
		new MutationObserver(() => window.texts.add(document.querySelector('#address').textContent)).observe(document.querySelector('#address'), { childList: true, characterData: true, subtree: true });
	})`)
	p.open(server.URL + "/track/v")
	p.see("all of them", `document.querySelector('#address').textContent === 'last'`)
	p.see("nothing but text",
		`(() => { if (window.hits.length) throw new Error(window.hits.slice(0, 5).join('; ')); return true; })()`)
	p.onlyFrom(server.URL)
}

// As the driver app renders it: in each text of tasks and requests, and in a description that no
// server has sanitised.
func TestVectorsDriverApp(t *testing.T) {
	list := vectors(t)
	mock, err := webmock.New(web.Site{}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	d := webmock.Driver{Name: "v", Me: map[string]any{"driver_id": "d", "name": list[0], "availability": false}}
	for i, v := range list {
		place := map[string]any{"address": v, "customer": map[string]any{"name": v, "mobile": v}}
		d.Tasks = append(d.Tasks, map[string]any{
			"task_id": fmt.Sprint("t", i), "type": 3, "status": "assigned", "outcome": "", "order_id": v, "notes": v,
			"reason": v, "customer_note": v,
			"pickup": place, "drop": place, "created_at": fmt.Sprint(i),
		})
		d.Requests = append(d.Requests, map[string]any{
			"tracking_id": fmt.Sprint("r", i, v), "message": v, "dest": map[string]any{"address": v}, "desc": v,
			"desc_html": v,
		})
		d.Apps = append(d.Apps, map[string]any{"name": fmt.Sprint(i, v), "link": v, "template": v})
	}
	mock.Drivers = []webmock.Driver{d}
	server := httptest.NewServer(mock.Handler())
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })

	p := newPerson(t, chromium(t), "the driver", server.URL)
	// The description is read into a document that runs nothing. The policy tells of what it would
	// not have let run there; into the page none of it comes.
	p.expected = append(p.expected, "Executing inline event handler violates", "Applying inline style violates",
		"Setting the document's base URI")
	p.beforeScripts(`document.addEventListener('DOMContentLoaded', () => {` + watch + `})`)
	p.open(server.URL + "/driver/")
	p.see("where to enter the code", `document.querySelector('input[name=code]') !== null`)
	p.eval(`window.hits.length = 0; document.querySelector('input[name=code]').value = '100000'; document.querySelector('form').requestSubmit()`)
	p.see("the tasks and requests",
		fmt.Sprintf(`document.querySelectorAll('.task').length > %d && document.querySelectorAll('.desc').length > 0`,
			len(list))) // two stops each, but for those whose texts are one place
	p.eval(fmt.Sprintf(`(async () => {
		const frames = () => new Promise((r) => requestAnimationFrame(() => requestAnimationFrame(r)));
		await frames();
		for (let i = 0; i < %d; i++) {
			location.hash = '#task/t' + i;
			await frames();
		}
		location.hash = '#order';
		await frames();
		location.hash = '#phone';
		await frames();
	})()`, len(list)))
	p.see("the set-up links", `document.querySelectorAll('.phone-app').length > 0`)
	p.see("nothing but text",
		`(() => { const h = window.hits.filter((x) => x !== 'element form'); if (h.length) throw new Error(h.slice(0, 5).join('; ')); return true; })()`)
	p.onlyFrom(server.URL)
}
