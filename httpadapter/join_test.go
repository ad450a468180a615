package httpadapter_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
)

func TestJoin(t *testing.T) {
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) { ho.ClientIP = forwarded })
	var source int
	fresh := func(body string) reply {
		source++
		return s.do("POST", "/v1/driver/join", body, fmt.Sprintf("X-Forwarded-For: 10.1.%d.%d", source/250, source%250))
	}
	invite := func() (token string, code float64) {
		v := s.data(s.app("POST", "/v1/invite_user", `{"user_id":"ravi"}`))
		return strings.TrimPrefix(text(v, "url"), s.base+"/join/"), at(v, "invite_code").(float64)
	}

	oldToken, oldCode := invite()
	token, code := invite() // kills the older one
	want := fresh(`{"invite_code":"000000"}`)
	s.check("no live code", want, 404, "")
	dead := []string{
		`{"invite_code":12345}`, `{"invite_code":"12345"}`, `{"invite_code":-5}`,
		`{"invite_code":99999999999999999999}`, `{"invite_code":"abc"}`, `{"invite_code":"\u0000"}`,
		fmt.Sprintf(`{"invite_code":"%.0f "}`, code), fmt.Sprintf(`{"invite_code":"0%.0f"}`, code),
		fmt.Sprintf(`{"invite_code":%.0f}`, oldCode), fmt.Sprintf(`{"invite":%q}`, oldToken), `{"invite":"nobody"}`,
		`{"invite":"\u0000"}`, fmt.Sprintf(`{"invite":"%.0f"}`, code), fmt.Sprintf(`{"invite_code":%q}`, token),
	}
	for _, body := range dead {
		if r := fresh(body); r.status != 404 || r.sameButID() != want.sameButID() {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	for body, field := range map[string]string{
		`{}`: "invite_code", `{"invite_code":true}`: "invite_code", `{"invite_code":1.5}`: "invite_code",
		`{"invite_code":[]}`: "invite_code", `{"invite_code":""}`: "invite_code", `{"invite":7}`: "invite",
		`{"invite":""}`:                  "invite",
		`{"invite":"a","invite_code":1}`: "invite", `{"invite":"a","nonce":7}`: "nonce",
		`{"invite":"a","nonce":"` + strings.Repeat("x", 129) + `"}`: "nonce",
	} {
		s.check(body, fresh(body), 400, field)
	}

	join := fmt.Sprintf(`{"invite_code":"%.0f","nonce":"n"}`, code)
	first := fresh(join)
	s.check("join", first, 200, "")
	if again := fresh(join); again.body != first.body {
		t.Errorf("asked again: %s, want %s", again.body, first.body)
	}
	for _, body := range []string{
		fmt.Sprintf(`{"invite_code":%.0f}`, code), fmt.Sprintf(`{"invite_code":%.0f,"nonce":"m"}`, code),
		fmt.Sprintf(`{"invite":%q}`, token),
	} {
		if r := fresh(body); r.sameButID() != want.sameButID() {
			t.Errorf("used: %s", r.body)
		}
	}
	s.clock.Advance(11 * time.Minute)
	if r := fresh(join); r.sameButID() != want.sameButID() {
		t.Errorf("asked again too late: %s", r.body)
	}

	token, code = invite()
	s.clock.Advance(2 * time.Hour)
	if r := fresh(fmt.Sprintf(`{"invite_code":%.0f}`, code)); r.sameButID() != want.sameButID() {
		t.Errorf("expired code: %s", r.body)
	}
	s.check("the link lives longer", fresh(fmt.Sprintf(`{"invite":%q}`, token)), 200, "")
}

func TestCodesAreLimitedBySource(t *testing.T) {
	s := newServer(t, func(_ *tracking.Options, ho *httpadapter.Options) { ho.ClientIP = forwarded })
	from := func(addr string) reply {
		return s.do("POST", "/v1/driver/join", `{"invite_code":1}`, "X-Forwarded-For: "+addr)
	}
	for _, addrs := range [][]string{
		{"192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1", "192.0.2.1", "192.0.2.1"},
		// one /64
		{"2001:db8::1", "2001:db8::2", "2001:db8::3%eth0", "2001:db8:0:0:ffff::4", "2001:db8::5", "2001:db8::6"},
	} {
		s.clock.Advance(time.Hour)
		for i, addr := range addrs {
			want := 404
			if i == 5 {
				want = 429
			}
			r := from(addr)
			s.check(fmt.Sprintf("guess %d from %s", i+1, addr), r, want, "")
			if want == 429 && r.header.Get("Retry-After") != "900" {
				t.Errorf("Retry-After is %q", r.header.Get("Retry-After"))
			}
		}
	}
	s.check("another source", from("2001:db8:0:1::1"), 404, "")
	inv := s.data(s.app("POST", "/v1/invite_user", ""))
	s.check("a link from there",
		s.do("POST", "/v1/driver/join", `{"invite":"`+strings.TrimPrefix(text(inv, "url"), s.base+"/join/")+`"}`,
			"X-Forwarded-For: 192.0.2.1"), 200, "")
}
