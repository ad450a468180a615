package e2e_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

// hostCookie is the login of a program that has not thought of other sites.
const hostCookie = "host_login"

// evil is a page that has the browser of whoever opens it do what its reader may do elsewhere: by
// forms, which need nobody's leave, and by scripts. Its title tells when all is over, and what it
// could read.
const evil = `<!doctype html><title>at it</title>
<form method="post" enctype="text/plain" action="%[1]s/v1/task/create" target="a"><input name='{"type":2,"notes":"' value='","drop":{"address":"Evil 1"}}'></form>
<form method="post" action="%[1]s/v1/invite_user" target="b"><input name="user_id" value="mallory"></form>
<form method="post" action="%[1]s/v1/users/driver/delete" target="c"><input name="driver_id" value="dora"></form>
<script>
const call = (path, how) => fetch('%[1]s' + path, { credentials: 'include', ...how }).then((r) => r.text(), () => '');
const json = { method: 'POST', body: '{"type":2,"drop":{"address":"Evil 2"}}' };
(async () => {
	let read = '';
	for (const form of document.forms) {
		const frame = document.createElement('iframe');
		frame.name = form.target;
		document.body.append(frame);
		const over = new Promise((done) => (frame.onload = done));
		form.submit();
		await over;
	}
	read += await call('/v1/task/create', { ...json, mode: 'no-cors', headers: { 'Content-Type': 'text/plain' } });
	read += await call('/v1/task/create', { ...json, headers: { 'Content-Type': 'application/json' } });
	read += await call('/v1/task/create', { ...json, headers: { 'X-Api-Key': '' } });
	read += await call('/v1/session', { method: 'DELETE', mode: 'no-cors' });
	read += await call('/v1/session', { method: 'DELETE' });
	read += await call('/v1/task/list');
	document.title = 'over, read ' + read.length;
})();
</script>`

// What a page of another site has the browser of a dispatcher do is refused, whoever has signed him
// in. That the browser sends the cookie at all is looked at, too: from another port of the same host
// it sends even a strict one.
func TestOtherSites(t *testing.T) {
	chrome := chromium(t)
	for _, own := range []bool{true, false} {
		name := "session"
		if own {
			name = "login of the program"
		}
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			came := map[string]int{} // requests that change something and have a cookie, by their origin
			s := newService(t, "", func(_ *tracking.Options, o *httpadapter.Options) {
				keys := o.Authenticate
				o.Authenticate = func(r *http.Request) (httpadapter.Principal, error) {
					if r.Method != http.MethodGet && r.Header.Get("Cookie") != "" {
						mu.Lock()
						came[r.Header.Get("Origin")]++
						mu.Unlock()
					}
					if c, err := r.Cookie(hostCookie); own && err == nil && c.Value == "dispatcher" {
						return httpadapter.Principal{Actor: "user:dispatcher"}, nil
					}
					if key, _ := httpadapter.APIKey(r); key == apiKey {
						return httpadapter.Principal{}, nil
					}
					return httpadapter.Principal{}, tracking.ErrUnauthorized
				}
				if !own {
					o.Authenticate = keys
				}
			})
			s.invite("dora", "Dora")
			tasks := func() int {
				list, _, err := s.svc.Tasks(t.Context(), tracking.TaskFilter{})
				if err != nil {
					t.Fatal(err)
				}
				return len(list)
			}

			p := newPerson(t, chrome, "the dispatcher", s.origins[0])
			p.expected = append(p.expected, "blocked by CORS policy", "status of 40", "Failed to load resource", "Refused to display", "frame-ancestors")
			p.open(s.url + "/v1/openapi.json")
			if own {
				if _, err := chromedp.Call(p.ctx, network.SetCookie, network.SetCookieParams{
					Name: hostCookie, Value: "dispatcher", URL: s.url,
					Secure: new(true), SameSite: network.CookieSameSiteNone,
				}); err != nil {
					t.Fatal(err)
				}
			} else {
				p.eval(fmt.Sprintf(`fetch('/v1/session', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"key":%q}' })
					.then((r) => { if (!r.ok) throw new Error(r.status); })`, apiKey))
			}

			site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				if r.URL.Path == "/" {
					fmt.Fprintf(w, evil, s.url)
				}
			}))
			t.Cleanup(site.Close)
			at, err := url.Parse(site.URL)
			if err != nil {
				t.Fatal(err)
			}
			for _, origin := range []string{site.URL, "http://" + elsewhere + ":" + at.Port()} {
				p.open(origin)
				p.see("the end of it", `document.title.startsWith('over')`)
				p.see("that it could read nothing", `document.title === 'over, read 0'`)
				p.eval(fmt.Sprintf(`new Promise((done) => {
					const frame = document.createElement('iframe');
					frame.onload = done;
					frame.src = '%s/board/';
					document.body.append(frame);
				})`, s.url))
				p.complains("frame-ancestors 'none'")
				// The browser keeps cookies from the frames of other sites; it sends them where the whole
				// page goes there.
				p.eval(`setTimeout(() => { document.forms[0].target = ''; document.forms[0].submit(); })`)
				p.see("the refusal", `location.pathname === '/v1/task/create' && /"(forbidden|unauthorized)"/.test(document.body.innerText)`)
				if n := tasks(); n != 0 {
					t.Errorf("a page of %s has made %d tasks", origin, n)
				}
				if _, err := s.svc.Driver(t.Context(), "dora"); err != nil {
					t.Errorf("a page of %s has deleted a driver: %v", origin, err)
				}
				if list, _, err := s.svc.Drivers(t.Context(), tracking.DriverFilter{}); err != nil || len(list) != 1 {
					t.Errorf("a page of %s has invited somebody: %d drivers, %v", origin, len(list), err)
				}
			}
			if own {
				mu.Lock()
				for _, origin := range []string{site.URL, "http://" + elsewhere + ":" + at.Port()} {
					if came[origin] == 0 {
						t.Errorf("no cookie came from %s, so nothing is shown: %v", origin, came)
					}
				}
				mu.Unlock()
			}

			// The same from the server's own pages is done.
			p.open(s.url + "/v1/openapi.json")
			p.eval(`fetch('/v1/task/create', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: '{"type":2,"drop":{"address":"Good 1"}}' })
				.then((r) => { if (!r.ok) throw new Error(r.status); })`)
			if n := tasks(); n != 1 {
				t.Errorf("%d tasks after the one of the dispatcher's own", n)
			}
		})
	}
}

// complains waits until the browser has complained of something, which is no fault then.
func (p *person) complains(part string) {
	p.Helper()
	for began := time.Now(); ; {
		p.mu.Lock()
		n := len(p.problems)
		p.problems = slices.DeleteFunc(p.problems, func(problem string) bool { return strings.Contains(problem, part) })
		there := len(p.problems) < n
		p.mu.Unlock()
		if there {
			return
		}
		if time.Since(began) > patience {
			p.Fatalf("%s's browser does not complain of %s", p.name, part)
		}
		p.eval(`new Promise((done) => setTimeout(done, 50))`)
	}
}
