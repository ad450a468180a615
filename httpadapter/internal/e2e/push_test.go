package e2e_test

import (
	"strings"
	"testing"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// A pushed notice is shown in the driver's language and under the brand's name, whatever the app is
// doing. The push service is Chromium's own tool.
func TestPushedNotice(t *testing.T) {
	server := serve(t, web.Site{Name: "Blue Parcel", PushKey: "B" + strings.Repeat("A", 86)}, nil)
	p := newPerson(t, chromium(t), "the driver", server.URL)
	if _, err := chromedp.CallBrowser(p.ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "notifications"}, Setting: browser.PermissionSettingGranted,
		Origin:           server.URL,
		BrowserContextID: chromedp.FromContext(p.ctx).BrowserContextID,
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(p.ctx, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{
		UserAgent: "Mozilla/5.0 Chrome", AcceptLanguage: "de",
	}); err != nil {
		t.Fatal(err)
	}
	registrations := make(chan serviceworker.RegistrationID, 16)
	if err := chromedp.Listen(p.ctx, func(ev any) {
		if ev, ok := ev.(*serviceworker.EventWorkerRegistrationUpdated); ok {
			for _, r := range ev.Registrations {
				select {
				case registrations <- r.RegistrationID:
				default:
				}
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(p.ctx, serviceworker.Enable, cdp.Empty{}); err != nil {
		t.Fatal(err)
	}
	p.open(server.URL + "/driver/")
	p.eval(`navigator.serviceWorker.ready.then(() => true)`)
	// The language is the page's only, as it is emulated; so the worker keeps the shell that the
	// page is given.
	p.see("that the worker is in charge", `navigator.serviceWorker.controller !== null`)
	p.open(server.URL + "/driver/")
	p.eval(`(async () => { while (!(await (await caches.match(location.origin + '/driver/')).text()).includes('lang="de"')) await new Promise((done) => setTimeout(done, 50)); })()`)
	id := <-registrations
	for _, c := range []struct{ data, title, body, link string }{
		{`{"kind":"assigned","task_id":"a/b","tag":"t1"}`, "Neuer Auftrag", "Blue Parcel", "/driver/#task/a%2Fb"},
		{`{"kind":"cancelled","task_id":"x","tag":"t2"}`, "Ein Auftrag wurde storniert", "Blue Parcel", "/driver/"},
		{`{"kind":"assigned","tag":"t3","title":"Said by the host"}`, "Said by the host", "Blue Parcel", "/driver/"},
		{`no JSON`, "Blue Parcel", "", "/driver/"},
	} {
		// When it has just started, Chromium sometimes throws away what is shown; so a notice is
		// pushed until it stays. The tag makes it one.
		var got string
		for try := 0; got == "" && try < 12; try++ {
			if _, err := chromedp.Call(p.ctx, serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{
				Origin: server.URL, RegistrationID: id, Data: c.data,
			}); err != nil {
				t.Fatal(err)
			}
			var err error
			got, err = chromedp.Run(p.ctx, chromedp.Evaluate[string](`(async () => {
				const registration = await navigator.serviceWorker.ready;
				for (let i = 0; i < 100; i++) {
					const list = await registration.getNotifications();
					if (list.length) {
						list.forEach((n) => n.close());
						return list.map((n) => [n.title, n.body, n.data.url].join('|')).join();
					}
					await new Promise((done) => setTimeout(done, 50));
				}
				return '';
			})()`, chromedp.EvalAwaitPromise))
			if err != nil {
				t.Fatal(err)
			}
		}
		if want := c.title + "|" + c.body + "|" + server.URL + c.link; got != want {
			t.Errorf("%s shows %q, want %q", c.data, got, want)
		}
	}
}
