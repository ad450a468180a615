package httpadapter_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// TestRecordedRequests sends what phone apps were recorded to send, each for a driver of its own.
// The driver is then where the request says, and nowhere if it says no place.
func TestRecordedRequests(t *testing.T) {
	s := newServer(t)
	now := s.clock.Now().Format("2006-01-02T15:04:05.000Z")
	type place struct {
		lng, lat float64
		time     string // "": no fix
	}
	for _, c := range []struct {
		file, answer string
		want         []place
	}{
		{"traccar-osmand-query.txt", "", []place{
			{}, // cells and access points only
			{30, 60, "2013-08-22T13:14:27.000Z"},
			{-88.23412, 42.06288, "2016-01-27T18:55:47.000Z"},
			{-88.23412, 42.06288, "2015-09-12T14:38:06.579Z"},
			{6.15788, 49.60688, "2014-06-04T09:10:11.000Z"},
			{30, 60, "2013-08-22T13:14:27.000Z"},
			{30, 60, "2013-08-22T13:14:27.000Z"},
			{30, 60, now},
			{-0.883333, 41.666667, now},
			{30, 60, "2013-08-22T13:14:27.000Z"},
			{-74.0061408571, 40.7232948571, "2017-09-07T05:56:50.000Z"},
		}},
		{"traccar-osmand-json.jsonl", "", []place{
			{-122.084, 37.4219983, "2025-06-15T13:45:12.862Z"},
			{-122.084, 37.4219983, "2025-06-15T13:45:12.862Z"},
			{-122.406417, 37.785834, "2025-05-09T04:11:30.579Z"},
			{106.6837015, -6.1148096, "2021-07-21T08:06:34.444Z"},
		}},
		{"traccar-owntracks.jsonl", "[]", []place{
			{11.1512805, 46.0681247, "2019-03-06T12:21:18.000Z"},
			{2.29513, 48.85833, "2017-06-13T10:21:56.000Z"},
			{2.29513, 48.85833, "2017-06-13T10:21:56.000Z"},
			{2.295, 48.85, "2017-06-14T21:40:56.000Z"},
			{-122, 37, "2025-01-06T10:59:29.000Z"},
			{13.654704, 47.420051, "2025-01-10T14:26:07.000Z"},
		}},
		{"overland-readme.json", `{"result":"ok"}`, []place{{-122.030581, 37.3318, "2015-10-01T15:00:00.000Z"}}},
	} {
		b, err := os.ReadFile(filepath.Join(dataDir(t), "payloads", c.file))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(b)), "\n")
		if len(lines) != len(c.want) {
			t.Fatalf("%s has %d requests, want %d", c.file, len(lines), len(c.want))
		}
		for i, line := range lines {
			id := fmt.Sprintf("%s-%d", c.file, i)
			_, ingest := s.phone(id)
			s.clock.Advance(time.Second)
			want := map[string]any{"last_seen_at": s.clock.Now().Format("2006-01-02T15:04:05.000Z")}
			if w := c.want[i]; w.time != "" {
				want["lnglat"], want["located_at"] = []any{w.lng, w.lat}, w.time
				if w.time == now {
					want["located_at"] = want["last_seen_at"]
				}
			}
			var r reply
			if _, target, ok := strings.Cut(line, "\t/"); ok {
				r = s.do("POST", ingest+target, "")
			} else {
				r = s.do("POST", ingest, line, "Content-Type: application/json")
			}
			if r.status != 200 || r.body != c.answer {
				t.Errorf("%s: %d %s", line, r.status, r.body)
			}
			got := map[string]any{}
			d := s.data(s.app("GET", "/v1/users/driver?driver_id="+url.QueryEscape(id), ""))
			for _, name := range []string{"lnglat", "located_at", "last_seen_at"} {
				if v := at(d, "driver", name); v != nil {
					got[name] = v
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", line, diff)
			}
		}
	}
}

// history is the path of a trip: a time of day and a latitude for each point.
func (s *server) history(trip string) (list []string) {
	s.Helper()
	for _, p := range s.data(s.app("GET", "/v1/triphistory/"+trip, ""))["loc"].([]any) {
		list = append(list, fmt.Sprintf("%s %v", text(p, "time")[11:19], at(p, "lnglat", 1)))
	}
	return list
}

// TestANightOffDuty: a phone that goes on sending all night after its driver went off duty leaves a
// sign of life and nothing else, neither at once nor when the night's queue comes in the morning.
func TestANightOffDuty(t *testing.T) {
	s := newServer(t)
	s.clock.Advance(12 * time.Hour) // 21:00
	token, ingest := s.phone("ravi")
	send := func(lat float64, at time.Time) {
		t.Helper()
		unix, iso := at.Unix(), at.Format("2006-01-02T15:04:05.000Z")
		for _, c := range []struct{ query, body, contentType, answer string }{
			{fmt.Sprintf("?lat=%v&lon=80&timestamp=%d", lat, unix), "", "", ""},
			{"", fmt.Sprintf("id=1&lat=%v&lon=80&timestamp=%d", lat, unix+1), "application/x-www-form-urlencoded", ""},
			{"", fmt.Sprintf(`{"_type":"location","lat":%v,"lon":80,"tst":%d}`, lat, unix+2), "application/json", "[]"},
			{
				"",
				fmt.Sprintf(`{"locations":[{"type":"Feature","geometry":{"type":"Point","coordinates":[80,%v]},"properties":{"timestamp":"%s"}}]}`, lat, iso),
				"application/json", `{"result":"ok"}`,
			},
		} {
			if r := s.do("POST", ingest+c.query, c.body, "Content-Type: "+c.contentType); r.status != 200 ||
				r.body != c.answer {
				t.Fatalf("%s%s: %d %s", c.query, c.body, r.status, r.body)
			}
		}
	}
	driver := func() map[string]any {
		t.Helper()
		return s.data(s.app("GET", "/v1/users/driver?driver_id=ravi", ""))["driver"].(map[string]any)
	}
	evening := s.clock.Now()
	trip := text(s.data(s.asDriver(token, "POST", "/v1/driver/trips", `{"tracking_id":"T"}`)), "trip", "_id")
	send(13, evening)
	s.clock.Advance(time.Minute)
	s.data(s.asDriver(token, "POST", "/v1/driver/trips/"+trip+"/stop", ""))
	s.data(s.asDriver(token, "POST", "/v1/driver/availability", `{"availability":false}`))
	before, path := driver(), s.history(trip)
	events := s.app("GET", "/v1/events", "").body

	s.clock.Advance(time.Minute)
	for range 100 {
		s.clock.Advance(5 * time.Minute)
		send(13.001, s.clock.Now())
	}
	night := driver()
	if got := text(night, "last_seen_at"); got != s.clock.Now().Format("2006-01-02T15:04:05.000Z") {
		t.Errorf("a phone that sends is alive: last seen %s", got)
	}
	delete(before, "last_seen_at")
	delete(night, "last_seen_at")
	if d := cmp.Diff(before, night); d != "" {
		t.Errorf("of the driver (-evening +night)\n%s", d)
	}
	if d := cmp.Diff(path, s.history(trip)); d != "" {
		t.Errorf("of the trip (-evening +night)\n%s", d)
	}
	if after := s.app("GET", "/v1/events", "").body; after != events {
		t.Errorf("events of the night: %s", after)
	}

	// In the morning: what was measured at night is dropped, and a trip that is said to have begun
	// in the evening finds none of it.
	s.data(s.asDriver(token, "POST", "/v1/driver/availability", `{"availability":true}`))
	send(13.001, evening.Add(3*time.Hour))
	s.clock.Advance(time.Minute)
	send(13.002, s.clock.Now())
	other := text(s.data(s.asDriver(token, "POST", "/v1/driver/trips",
		`{"tracking_id":"U","at":"`+evening.Format(time.RFC3339)+`"}`)), "trip", "_id")
	clock := s.clock.Now().Format("15:04:")
	want := []string{
		"21:00:00 13", "21:00:01 13", "21:00:02 13", clock + "00 13.002", clock + "01 13.002", clock + "02 13.002",
	}
	if d := cmp.Diff(want[3:], s.history(other)[max(0, len(s.history(other))-3):]); d != "" ||
		len(s.history(other)) > len(want) {
		t.Errorf("a trip over the night has the path %v, want none of the night", s.history(other))
	}
}

// TestLateForATrip: what was measured on a trip joins its path whenever it comes, also when the
// driver has long been off duty; what was measured after it does not.
func TestLateForATrip(t *testing.T) {
	s := newServer(t)
	token, ingest := s.phone("ravi")
	start := s.clock.Now()
	send := func(lat float64, after time.Duration) {
		t.Helper()
		if r := s.do("POST", fmt.Sprintf("%s?lat=%v&lon=80&timestamp=%d", ingest, lat, start.Add(after).Unix()),
			""); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	trip := text(s.data(s.asDriver(token, "POST", "/v1/driver/trips", `{"tracking_id":"T"}`)), "trip", "_id")
	send(13, 0)
	s.clock.Advance(10 * time.Minute)
	s.data(s.asDriver(token, "POST", "/v1/driver/trips/"+trip+"/stop", ""))
	s.clock.Advance(time.Minute)
	s.data(s.asDriver(token, "POST", "/v1/driver/availability", `{"availability":false}`))
	s.clock.Advance(8 * time.Hour)
	for _, minute := range []int{7, 3, 10, 11, 5, 3} {
		send(13+float64(minute)/1000, time.Duration(minute)*time.Minute)
	}
	if d := cmp.Diff([]string{
		"09:00:00 13", "09:03:00 13.003", "09:05:00 13.005", "09:07:00 13.007", "09:10:00 13.01",
	}, s.history(trip)); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}

	// Off duty on a trip, it is as on duty.
	trip = text(s.data(s.asDriver(token, "POST", "/v1/driver/trips", `{"tracking_id":"U"}`)), "trip", "_id")
	start = s.clock.Now()
	send(13.02, 0)
	if got := s.history(trip); len(got) != 1 {
		t.Errorf("off duty on a trip: %v", got)
	}
}

// TestTrainAndOddFixes: a train at 70 m/s stays; a fix whose sign flipped, one at 0,0 and one of
// the future are neither live nor in the path.
func TestTrainAndOddFixes(t *testing.T) {
	s := newServer(t)
	token, ingest := s.phone("ravi")
	trip := text(s.data(s.asDriver(token, "POST", "/v1/driver/trips", `{"tracking_id":"T"}`)), "trip", "_id")
	begin := s.clock.Now()
	send := func(lat, lng float64, second int) {
		t.Helper()
		if r := s.do("POST", fmt.Sprintf("%s?lat=%v&lon=%v&timestamp=%d", ingest, lat, lng, begin.Unix()+int64(second)),
			""); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	live := func(want float64) {
		t.Helper()
		if d := s.data(s.app("GET", "/v1/users/driver?driver_id=ravi", "")); at(d, "driver", "lnglat", 1) != want {
			t.Errorf("the driver is at %v, want the latitude %v", at(d, "driver", "lnglat"), want)
		}
	}
	const step = 70 / (2 * 3.14159265 * 6371008.8 / 360) // degrees of latitude in a second
	var want []string
	for i := range 30 {
		lat := 13 + float64(i)*step
		s.clock.Advance(time.Second)
		send(lat, 80, i)
		live(lat)
		want = append(want, fmt.Sprintf("%s %v", begin.Add(time.Duration(i)*time.Second).Format("15:04:05"), lat))
	}
	last := 13 + 29*step
	s.clock.Advance(10 * time.Second)
	for _, odd := range [][3]float64{{last, -80, 31}, {0, 0, 32}, {-last, 80, 33}, {last, 80, 400}} {
		send(odd[0], odd[1], int(odd[2]))
		live(last)
	}
	send(last+step, 80, 35)
	live(last + step)
	want = append(want, fmt.Sprintf("%s %v", begin.Add(35*time.Second).Format("15:04:05"), last+step))
	if d := cmp.Diff(want, s.history(trip)); d != "" {
		t.Errorf("path (-want +got)\n%s", d)
	}
}

// FuzzIngest sends anything to a driver's ingest address. It is always taken, unless the method is
// none of the apps', and never breaks the server or the driver.
func FuzzIngest(f *testing.F) {
	svc, err := tracking.New(memory.New(), &tracking.Options{Logger: quiet()})
	if err != nil {
		f.Fatal(err)
	}
	h, err := httpadapter.New(svc, &httpadapter.Options{
		Keys: map[string]httpadapter.Principal{"k": {}}, Logger: quiet(),
	})
	if err != nil {
		f.Fatal(err)
	}
	inv, err := svc.InviteDriver(f.Context(), tracking.NewInvite{DriverID: "ravi"})
	if err != nil {
		f.Fatal(err)
	}
	joined, err := svc.Join(f.Context(), tracking.JoinRequest{Token: inv.Token})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := svc.SetAvailability(f.Context(), "ravi", true, time.Time{}); err != nil {
		f.Fatal(err)
	}
	for _, c := range [][4]string{
		{"id=1&timestamp=1377177267&lat=60.0&lon=30.0&speed=0.0&bearing=0.0&accuracy=8.0&batt=87", "", "", ""},
		{
			"", "application/x-www-form-urlencoded", "okhttp/4",
			"id=1&lat=37.42&lon=-122.08&timestamp=1750000000&speed=12.34&charge=false",
		},
		{"", "application/x-www-form-urlencoded", "", "id=1&notificationToken=x"},
		{
			"", "application/json", "",
			`{"location":{"timestamp":"2025-06-15T13:45:12.862Z","coords":{"latitude":37.4,"longitude":-122.0,"speed":-1}},"device_id":"1"}`,
		},
		{
			"u=j&d=p", "application/json", "Owntracks",
			`{"_type":"location","lat":48.8,"lon":2.2,"tst":1733842245,"vel":6}`,
		},
		{"", "application/json", "Owntracks", ``},
		{
			"", "application/json", "Overland",
			`{"locations":[{"type":"Feature","geometry":{"type":"Point","coordinates":[-122.0,37.3]},"properties":{"timestamp":"2015-10-01T08:00:00-0700"}},{"properties":{"action":"visit"}}],"current":{}}`,
		},
		{"lat=NaN&lon=1e999&timestamp=99999999999999999999&;%zz", "text/plain", "", "\xff\x00[[[[{"},
	} {
		f.Add(true, c[0], c[1], c[2], []byte(c[3]), "")
	}
	f.Add(false, "lat=1&lon=2&eta=0&speed_unit=ms", "", "OsmAnd", []byte(nil), "HEAD")
	f.Fuzz(func(t *testing.T, post bool, query, contentType, agent string, body []byte, method string) {
		if method == "" {
			method = map[bool]string{true: "POST", false: "GET"}[post]
		}
		if strings.ContainsFunc(method, func(r rune) bool { return r < 'A' || r > 'Z' }) {
			return // what is no method does not get past net/http
		}
		r := httptest.NewRequest("POST", "/ingest/"+joined.IngestToken, strings.NewReader(string(body)))
		r.Method, r.URL.RawQuery = method, query
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("User-Agent", agent)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		want := 405
		switch {
		case method == "OPTIONS":
			want = 204
		case method == "GET" || method == "POST" || method == "HEAD":
			want = 200
			if len(body) > 1<<20 {
				want = 413
			}
		}
		if w.Code != want {
			t.Errorf("%s ?%s: %d %s", method, query, w.Code, w.Body)
		}
		if typ := w.Header().Get("Content-Type"); strings.HasPrefix(typ, "application/json") && method != "HEAD" &&
			!json.Valid(w.Body.Bytes()) {
			t.Errorf("the answer %q is no JSON", w.Body)
		}
		d, err := svc.Driver(t.Context(), "ravi")
		if err != nil ||
			d.Position.Located() &&
				(!d.Position.Fix.LngLat.Valid() || d.Position.Fix.Time.After(time.Now().Add(3*time.Minute))) {
			t.Errorf("the driver is at %+v, %v", d.Position, err)
		}
		shown := httptest.NewRecorder()
		h.ServeHTTP(shown, httptest.NewRequest("GET", "/v1/users/driver?driver_id=ravi&apikey=k", nil))
		if shown.Code != 200 {
			t.Errorf("the driver cannot be shown: %d %s", shown.Code, shown.Body)
		}
	})
}
