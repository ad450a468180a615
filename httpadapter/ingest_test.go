package httpadapter_test

import (
	"fmt"
	"strings"
	"testing"
)

// phone is the ingest token of a driver who joins now.
func (s *server) phone(id string) (token, ingest string) {
	s.Helper()
	inv := s.data(s.app("POST", "/v1/invite_user", fmt.Sprintf(`{"user_id":%q}`, id)))
	link := text(inv, "url")
	joined := s.data(s.do("POST", "/v1/driver/join",
		fmt.Sprintf(`{"invite":%q}`, link[strings.LastIndex(link, "/")+1:])))
	token = text(joined, "token")
	s.data(s.asDriver(token, "POST", "/v1/driver/availability", `{"availability":true}`))
	return token, strings.TrimPrefix(text(joined, "ingest_url"), s.base)
}

// TestPhoneApps: each app's request records a fix for the driver whose token it is, and gets the
// answer that the app expects.
func TestPhoneApps(t *testing.T) {
	s := newServer(t)
	unix := s.clock.Now().Unix()
	iso := s.clock.Now().Format("2006-01-02T15:04:05Z")
	for i, c := range []struct{ app, method, query, contentType, body, answer string }{
		{
			"Traccar Client 8", "POST",
			"?id=other&timestamp=%[1]d&lat=13.0&lon=80.%[2]d&speed=0.0&bearing=0.0&altitude=0&accuracy=8.0&batt=87",
			"", "", "",
		},
		{
			"Traccar Client 9", "POST", "", "application/json",
			`{"location":{"timestamp":"%[3]s","coords":{"latitude":13.0,"longitude":80.%[2]d,"accuracy":5,"speed":-1,"heading":-1},"battery":{"level":-1}},"device_id":"other"}`,
			"",
		},
		{
			"Traccar Client 10", "POST", "", "application/x-www-form-urlencoded",
			"id=other&lat=13.0&lon=80.%[2]d&timestamp=%[1]d&accuracy=5.0&batt=80.0", "",
		},
		{"GPSLogger", "GET", "?lat=13.0&lon=80.%[2]d&timestamp=%[1]d&speed_unit=ms", "", "", ""},
		{
			"OwnTracks", "POST", "?u=x&d=y", "application/json",
			`{"_type":"location","tid":"zz","lat":13.0,"lon":80.%[2]d,"tst":%[1]d}`, "[]",
		},
		{
			"Overland", "POST", "", "application/json",
			`{"locations":[{"type":"Feature","geometry":{"type":"Point","coordinates":[80.%[2]d,13.0]},"properties":{"timestamp":"%[3]s","device_id":"other"}}]}`,
			`{"result":"ok"}`,
		},
	} {
		id := fmt.Sprintf("d%d", i)
		_, ingest := s.phone(id)
		fill := func(f string) string {
			if !strings.Contains(f, "%") {
				return f
			}
			return fmt.Sprintf(f+"%.0[1]d%.0[2]d%.0[3]s", unix, 10+i, iso)
		}
		r := s.do(c.method, ingest+fill(c.query), fill(c.body), "Content-Type: "+c.contentType)
		if r.status != 200 || r.body != c.answer {
			t.Errorf("%s: %d %q", c.app, r.status, r.body)
		}
		d := s.data(s.app("GET", "/v1/users/driver?driver_id="+id, ""))
		if want := 80 + float64(10+i)/100; at(d, "driver", "lnglat", 0) != want ||
			at(d, "driver", "lnglat", 1) != 13.0 {
			t.Errorf("%s: driver at %v, want %v", c.app, at(d, "driver", "lnglat"), want)
		}
	}
}

func TestPhonesAreNeverRefused(t *testing.T) {
	s := newServer(t)
	token, ingest := s.phone("ravi")
	for _, c := range []struct{ method, target, body string }{
		{"POST", ingest, "nonsense"}, {
			"POST", ingest, `{"_type":"waypoint"}`,
		}, {"POST", ingest, ""}, {"GET", ingest, ""}, {"HEAD", ingest, ""}, {
			"POST", ingest + "?a=%zz;b&a&a", "%zz",
		}, {"POST", ingest + "?lat=NaN&lon=1", ""}, {
			"POST", ingest, `{"locations":[1,{"a":{}}]}`,
		},
		{"POST", ingest + "?" + strings.Repeat("x", 9000), ""}, {
			"POST", ingest + "?apikey=nobody", "",
		}, {"POST", ingest, "\xff\xfe"},
	} {
		if r := s.do(c.method, c.target, c.body); r.status != 200 {
			t.Errorf("%s %.60s %s: %d %s", c.method, c.target, c.body, r.status, r.body)
		}
	}
	if got := s.data(s.app("GET", "/v1/users/driver?driver_id=ravi", "")); at(got, "driver", "lnglat") != nil {
		t.Errorf("a position came of nonsense: %v", got)
	}
	s.check("over 1 MiB", s.do("POST", ingest, strings.Repeat("x", 1<<20+1)), 413, "")
	s.check("PUT", s.do("PUT", ingest, ""), 405, "")

	for _, target := range []string{"/ingest/nobody", "/ingest/" + token, "/ingest/nobody.properties"} {
		s.check(target, s.do("POST", strings.TrimSuffix(target, ".properties"), ""), 401, "")
		s.check(target, s.do("GET", target, ""), 401, "")
	}
	if r := s.asDriver(strings.TrimPrefix(ingest, "/ingest/"), "GET", "/v1/driver/me", ""); r.status != 401 {
		t.Errorf("the ingest token acts as the driver: %d", r.status)
	}

	profile := s.do("GET", ingest+".properties", "")
	if profile.status != 200 || profile.header.Get("Content-Type") != "text/plain; charset=utf-8" ||
		!strings.Contains(profile.body, s.base+ingest) {
		t.Errorf("profile: %d %v %s", profile.status, profile.header, profile.body)
	}
	phone := s.data(s.asDriver(token, "GET", "/v1/driver/phone", ""))
	if text(phone, "ingest_url") != s.base+ingest || len(texts(phone["apps"], "name")) != 5 ||
		!strings.Contains(text(phone, "apps", 0, "link"), "org.traccar.client://") {
		t.Errorf("set-up links: %v", phone)
	}

	s.data(s.app("POST", "/v1/users/driver/revoke", `{"driver_id":"ravi"}`))
	s.check("revoked", s.do("POST", ingest, ""), 401, "")
}

func TestALongQueueOfAPhone(t *testing.T) {
	s := newServer(t)
	_, ingest := s.phone("ravi")
	var records []string
	for i := range 2500 { // more than one call of the service takes
		records = append(records,
			fmt.Sprintf(`{"id":"x","lat":13,"lon":%.5f,"timestamp":%d}`, 80+float64(i)*1e-5,
				s.clock.Now().Unix()-2500+int64(i)))
	}
	if r := s.do("POST", ingest, "["+strings.Join(records, ",")+"]",
		"Content-Type: application/json"); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	if d := s.data(s.app("GET", "/v1/users/driver?driver_id=ravi", "")); at(d, "driver", "lnglat", 0) != 80.02499 {
		t.Errorf("driver: %v", d)
	}
}
