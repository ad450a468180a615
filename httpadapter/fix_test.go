package httpadapter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFixes(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	now := s.clock.Now()
	stamp := func(d time.Duration) string { return now.Add(d).Format("2006-01-02T15:04:05.000Z") }
	rows := []struct{ fix, outcome string }{
		{
			`{"lnglat":[80.1,13],"time":"` + stamp(-time.Minute) +
				`","accuracy":5,"speed":1.5,"bearing":90,"battery":0.5,"event_id":"e1"}`,
			"live",
		},
		{`{"lnglat":[80.1,13],"time":"` + stamp(-time.Minute) + `"}`, "duplicate"},
		{`{"lnglat":[80.1,13],"time":"` + stamp(-2*time.Minute) + `"}`, "late"},
		{`{"lnglat":[80.1,13],"time":"` + stamp(3*time.Minute) + `"}`, "future"},
		{`{"lnglat":[81.1,13],"time":"` + stamp(-30*time.Second) + `"}`, "jump"},
		{`{"lnglat":[80.1001,13],"time":"` + stamp(0) + `","unknown":{"a":[]},"accuracy":null}`, "live"},
		{`7`, "invalid"}, {`[]`, "invalid"}, {`null`, "invalid"}, {`{}`, "invalid"}, {`"x"`, "invalid"},
		{`{"lnglat":[80.1,13]}`, "invalid"},
		{`{"time":"` + stamp(1) + `"}`, "invalid"},
		{`{"lnglat":[0,0],"time":"` + stamp(1) + `"}`, "invalid"},
		{`{"lnglat":[181,0],"time":"` + stamp(1) + `"}`, "invalid"},
		{`{"lnglat":[1e999,0],"time":"` + stamp(1) + `"}`, "invalid"},
		{`{"lnglat":["80.1",13],"time":"` + stamp(1) + `"}`, "invalid"},
		{`{"lnglat":[80.1,13],"time":7}`, "invalid"},
		{`{"lnglat":[80.1,13],"time":"yesterday"}`, "invalid"},
		{`{"lnglat":[80.1,13],"Time":"` + stamp(1) + `"}`, "invalid"},
		{`{"lnglat":[80.1,13],"lnglat":[80.1,13],"time":"` + stamp(1) + `"}`, "invalid"},
		{`{"lnglat":[80.1,13],"time":"` + stamp(1) + `","x":{"y":1,"y":1}}`, "invalid"},
		{`{"lnglat":[80.1,13],"time":"` + stamp(1) + `","accuracy":-1}`, "invalid"},
		{`{"lnglat":[80.1,13],"time":"` + stamp(1) + `","battery":50}`, "invalid"},
		{`{"lnglat":[80.1,13],"time":"` + stamp(1) + `","speed":"1"}`, "invalid"},
		{`{"lnglat":[80.1,13],"time":"` + stamp(1) + `","event_id":"\ud800"}`, "invalid"},
		{`{"lnglat":[80.1,13],"time":"` + stamp(1) + `","event_id":"\u0000"}`, "invalid"},
	}
	var fixes []string
	var want []any
	for _, r := range rows {
		fixes, want = append(fixes, r.fix), append(want, r.outcome)
	}
	got := s.data(s.asDriver(token, "POST", "/v1/driver/fixes", `{"fixes":[`+strings.Join(fixes, ",")+`]}`))
	if d := cmp.Diff(want, got["outcomes"]); d != "" {
		t.Errorf("outcomes (-want +got)\n%s", d)
	}
	if d := s.data(s.app("GET", "/v1/users/driver?driver_id=ravi", "")); at(d, "driver", "lnglat", 0) != 80.1001 ||
		text(d, "driver", "located_at") != stamp(0) {
		t.Errorf("driver: %v", d)
	}
	if r := s.asDriver(token, "POST", "/v1/driver/fixes",
		`{"fixes":[]}`); r.body != `{"message":"Fixes recorded","success":true,"data":{"outcomes":[]}}`+"\n" {
		t.Errorf("no fixes: %s", r.body)
	}

	many := func(n int) string { return `{"fixes":[` + strings.Repeat("7,", n-1) + `7]}` }
	for _, b := range []bad{
		{body: `{}`, status: 400, field: "fixes"}, {
			body: `{"fixes":null}`, status: 400, field: "fixes",
		}, {body: `{"fixes":{}}`, status: 400, field: "fixes"}, {
			body: `{"Fixes":[]}`, status: 400, field: "fixes",
		}, {body: ``, status: 400}, {body: `{"fixes":[}`, status: 400},
		{body: `{"fixes":[],"a":1,"a":1}`, status: 400}, {
			body: `{"fixes":[{"x":` + strings.Repeat("[", 30) + strings.Repeat("]", 30) + `}]}`, status: 400,
		},
		{body: many(1000), status: 200}, {body: many(1001), status: 413, field: "fixes"},
		{
			body: `{"fixes":[` + strings.Repeat(" ", 1<<20-len(`{"fixes":[]}`)) + `]}`, status: 200,
		}, {body: `{"fixes":[` + strings.Repeat(" ", 1<<20) + `]}`, status: 413},
	} {
		s.check(b.body, s.asDriver(token, "POST", "/v1/driver/fixes", b.body), b.status, b.field)
	}
}

// The record says how the phone is: its charge, when its clock is wrong, and when its app sends what
// is not known; else it is silent.
func TestPhoneOfDriver(t *testing.T) {
	s := newServer(t)
	token := s.newDriver("ravi")
	record := func(want map[string]any) {
		t.Helper()
		lists := s.data(s.app("GET", "/v1/users/drivers", ""))["drivers"].([]any)
		for _, d := range []any{
			s.data(s.app("GET", "/v1/users/driver?driver_id=ravi", ""))["driver"], lists[0],
			s.data(s.asDriver(token, "GET", "/v1/driver/me", ""))["driver"],
		} {
			got := map[string]any{}
			for _, k := range []string{"battery", "clock_skew", "unread"} {
				if v, ok := d.(map[string]any)[k]; ok {
					got[k] = v
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("of the record (-want +got)\n%s", d)
			}
		}
	}
	send := func(d time.Duration, outcome string) {
		t.Helper()
		sent := s.clock.Now().Add(d).Format("2006-01-02T15:04:05.000Z")
		got := s.data(s.asDriver(token, "POST", "/v1/driver/fixes",
			`{"fixes":[{"lnglat":[80.1,13],"time":"`+sent+`","battery":0.5}]}`))
		if o := at(got, "outcomes", 0); o != outcome {
			t.Errorf("outcome %v, want %s", o, outcome)
		}
	}
	record(map[string]any{})
	send(121*time.Second, "future")
	record(map[string]any{"clock_skew": 121.0})
	if err := s.svc.NoteUnread(t.Context(), "ravi", 3); err != nil {
		t.Fatal(err)
	}
	record(map[string]any{"clock_skew": 121.0, "unread": 3.0})
	send(29*time.Second, "live")
	record(map[string]any{"battery": 0.5})
}
