package httpadapter_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// gate is the way in for drivers, by fake time, behind a proxy that says where a request comes
// from.
type gate struct {
	*testing.T
	svc     *tracking.Service
	h       *httpadapter.Handler
	drivers atomic.Int64
}

func newGate(t *testing.T, opts httpadapter.Options) *gate {
	svc, err := tracking.New(memory.New(), &tracking.Options{Logger: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	opts.Logger = quiet()
	h, err := httpadapter.New(svc, &opts)
	if err != nil {
		t.Fatal(err)
	}
	return &gate{T: t, svc: svc, h: h}
}

// join posts to the route from an address and returns the status, and how long a caller who is
// refused is to wait.
func (g *gate) join(from, body string) (status int, wait time.Duration) {
	g.Helper()
	r := httptest.NewRequest("POST", "/v1/driver/join", strings.NewReader(body))
	r.RemoteAddr = "10.0.0.1:443" // the proxy's
	r.Header.Set("X-Forwarded-For", from)
	w := httptest.NewRecorder()
	g.h.ServeHTTP(w, r)
	if w.Code == 429 {
		seconds, err := strconv.Atoi(w.Header().Get("Retry-After"))
		if err != nil || seconds <= 0 {
			g.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
		}
		wait = time.Duration(seconds) * time.Second
	}
	return w.Code, wait
}

// guess tries a code that nobody has.
func (g *gate) guess(from string) (looked bool, wait time.Duration) {
	g.Helper()
	status, wait := g.join(from, `{"invite_code":"000000"}`)
	if status != 404 && status != 429 {
		g.Errorf("a wrong code from %s: %d", from, status)
	}
	return status == 404, wait
}

// honest lets an invited driver join from an address, by the code and by the link.
func (g *gate) honest(from string, code int, link int) {
	g.Helper()
	invite := func() tracking.Invitation {
		inv, err := g.svc.InviteDriver(g.Context(), tracking.NewInvite{
			DriverID: tracking.DriverID(fmt.Sprint("d", g.drivers.Add(1))),
		})
		if err != nil {
			g.Fatal(err)
		}
		return inv
	}
	if status, _ := g.join(from, fmt.Sprintf(`{"invite_code":%d}`, invite().Code)); status != code {
		g.Errorf("an honest driver's code from %s: %d, want %d", from, status, code)
	}
	body, err := json.Marshal(map[string]string{"invite": invite().Token})
	if err != nil {
		g.Fatal(err)
	}
	if status, _ := g.join(from, string(body)); status != link {
		g.Errorf("an honest driver's link from %s: %d, want %d", from, status, link)
	}
}

// most is the largest number of times within any span of d, its beginning included and its end not.
func most(times []time.Time, d time.Duration) (n int) {
	for i := range times {
		j := i
		for j < len(times) && times[j].Sub(times[i]) < d {
			j++
		}
		n = max(n, j-i)
	}
	return n
}

// TestOneSourceGuesses: one source gets at most 20 wrong codes looked at in a day, however it goes
// about it. Others behind the same proxy notice nothing, and links work from everywhere.
func TestOneSourceGuesses(t *testing.T) {
	for _, c := range []struct {
		name string
		from func(n int) string // of the attacker's nth guess
		next string             // an address next to it
	}{
		{"IPv4", func(int) string { return "192.0.2.1" }, "192.0.2.2"},
		{"IPv6, an address for each guess", func(n int) string {
			return fmt.Sprintf("2001:db8:0:7:%x::%x", n%0xffff, n)
		}, "2001:db8:0:8::1"},
		{"IPv4 in IPv6", func(n int) string {
			return []string{"::ffff:192.0.2.1", "192.0.2.1"}[n%2]
		}, "::ffff:192.0.2.2"},
	} {
		for _, every := range []time.Duration{10 * time.Second, 0} { // 0: just when it is told to
			t.Run(fmt.Sprint(c.name, " ", every), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					g := newGate(t, httpadapter.Options{ClientIP: forwarded})
					var looked []time.Time
					begin := time.Now()
					hour := begin
					for n := 0; time.Since(begin) < 5*24*time.Hour; n++ {
						ok, wait := g.guess(c.from(n))
						if ok {
							looked = append(looked, time.Now())
						}
						if every > 0 {
							wait = every
						}
						time.Sleep(wait)
						if time.Since(hour) >= time.Hour {
							hour = time.Now()
							g.honest(c.next, 200, 200)
						}
					}
					if n := most(looked, 24*time.Hour); n > 20 || n < 15 {
						t.Errorf("%d wrong codes were looked at within a day, want 15 to 20", n)
					}
					ok, _ := g.guess(c.from(0))
					for ok {
						ok, _ = g.guess(c.from(0))
					}
					g.honest(c.from(1), 429, 200) // a right code tells the attacker nothing either
				})
			})
		}
	}
}

// TestManySourcesGuess: all together get at most 20 wrong codes looked at in a minute. Links work
// all the time, and so do codes once it is over.
func TestManySourcesGuess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, httpadapter.Options{ClientIP: forwarded})
		var looked []time.Time
		for n := range 2 * 60 * 60 * 2 { // two a second, for two hours
			if ok, wait := g.guess(fmt.Sprintf("2001:db8:%x:%x::1", n>>16, n&0xffff)); ok {
				looked = append(looked, time.Now())
			} else if wait > time.Minute {
				t.Errorf("a source that never guessed before is to wait %v", wait)
			}
			time.Sleep(500 * time.Millisecond)
		}
		if n := most(looked, time.Minute); n != 20 {
			t.Errorf("%d wrong codes were looked at within a minute, want 20", n)
		}
		for n, more := 0, true; more; n++ {
			more, _ = g.guess(fmt.Sprint("198.51.100.", n))
		}
		g.honest("192.0.2.9", 429, 200)
		time.Sleep(time.Minute)
		g.honest("192.0.2.9", 200, 200)
	})
}

// TestGuessesAtOnce: many guesses at the same moment gain nothing.
func TestGuessesAtOnce(t *testing.T) {
	g := newGate(t, httpadapter.Options{ClientIP: forwarded})
	var one, all atomic.Int64
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if ok, _ := g.guess("192.0.2.1"); ok {
				one.Add(1)
			}
		})
	}
	wg.Wait()
	for i := range 100 {
		wg.Go(func() {
			if ok, _ := g.guess(fmt.Sprint("198.51.100.", i)); ok {
				all.Add(1)
			}
		})
	}
	wg.Wait()
	if one.Load() != 5 || one.Load()+all.Load() != 20 {
		t.Errorf("looked at: %d of one source, want 5; %d of all, want 20", one.Load(), one.Load()+all.Load())
	}
}

// TestProxyUnknown: without ClientIP all who come through a proxy are one source; links still work
// for them.
func TestProxyUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, httpadapter.Options{})
		for range 5 {
			g.guess("192.0.2.1")
		}
		g.honest("192.0.2.2", 429, 200)
		time.Sleep(15 * time.Minute)
		g.honest("192.0.2.2", 200, 200)
	})
}
