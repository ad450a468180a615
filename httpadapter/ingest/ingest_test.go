package ingest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/ingest"
)

var (
	now    = time.Date(2026, 5, 4, 3, 2, 1, 987654321, time.UTC)
	nowMs  = time.Date(2026, 5, 4, 3, 2, 1, 988e6, time.UTC)
	approx = cmpopts.EquateApprox(1e-9, 1e-12)
	known  = tracking.Known
)

const (
	form = "application/x-www-form-urlencoded"
	js   = "application/json"
)

// request makes one as an app would: GET with a query, or POST with a body.
func request(query, contentType, body string) ingest.Request {
	r := ingest.Request{Method: http.MethodGet, Query: query, Header: http.Header{}, Body: []byte(body)}
	if contentType != "" {
		r.Method = http.MethodPost
		r.Header.Set("Content-Type", contentType)
	}
	return r
}

func at(lng, lat float64, t time.Time) tracking.Fix {
	return tracking.Fix{LngLat: tracking.LngLat{Lng: lng, Lat: lat}, Time: t}
}

func utc(s string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		panic(err)
	}
	return t.UTC()
}

func TestDecode(t *testing.T) {
	t0 := utc("2013-08-22T13:14:27Z") // 1377177267
	bare := at(30, 60, t0)
	full := bare
	full.Accuracy, full.Speed, full.Bearing, full.Battery = known(8), known(10*1852.0/3600), known(90), known(0.87)
	metric := full
	metric.Speed = known(10)
	standing := bare // where 0 is a value
	standing.Accuracy, standing.Speed, standing.Bearing = known(8), known(0), known(0)
	vague := bare
	vague.Accuracy = known(8)

	const (
		where  = "lat=60.0&lon=30.0"
		when   = "timestamp=1377177267"
		extras = "speed=10&bearing=90&altitude=0&accuracy=8.0&batt=87"
	)
	tests := []struct {
		name    string
		in      ingest.Request
		dialect ingest.Dialect
		want    []tracking.Fix
	}{
		{
			"traccar 8: empty POST", request("id=123456&"+where+"&"+when+"&"+extras+"&mock=true&alarm=sos", "", ""),
			ingest.Traccar8, []tracking.Fix{full},
		},
		{
			"traccar 8: 0 is unknown", request(where+"&"+when+"&speed=0.0&bearing=0.0&accuracy=8.0", "", ""),
			ingest.Traccar8, []tracking.Fix{vague},
		},
		{"traccar 8: heartbeat", request("id=1&"+when, "", ""), ingest.Traccar8, nil},
		{"traccar 8: location", request("location=60.0,30.0&"+when, "", ""), ingest.Traccar8, []tracking.Fix{bare}},
		{
			"traccar 8: location with a blank", request("location=60.0,%2030.0&"+when, "", ""), ingest.Traccar8,
			[]tracking.Fix{bare},
		},
		{"traccar 8: half a location", request("location=60.0&"+when, "", ""), ingest.Traccar8, nil},
		{"traccar 8: no time", request(where, "", ""), ingest.Traccar8, []tracking.Fix{at(30, 60, nowMs)}},
		{
			"traccar 8: empty time", request(where+"&timestamp=", "", ""), ingest.Traccar8,
			[]tracking.Fix{at(30, 60, nowMs)},
		},
		{"traccar 8: not valid", request(where+"&"+when+"&valid=false", "", ""), ingest.Traccar8, nil},
		{"traccar 8: valid", request(where+"&"+when+"&valid=true", "", ""), ingest.Traccar8, []tracking.Fix{bare}},
		{"traccar 8: latitude alone", request("lat=60&"+when, "", ""), ingest.Traccar8, nil},
		{
			"traccar 8: broken parameters beside good ones", request("a=%zz&;&"+where+"&&=&%=1&"+when, "", ""),
			ingest.Traccar8, []tracking.Fix{bare},
		},
		{"traccar 8: first of two", request(where+"&lat=1&"+when, "", ""), ingest.Traccar8, []tracking.Fix{bare}},

		{
			"traccar 10", request("", form, "id=48241179&"+where+"&"+when+"&"+extras+"&charge=false"),
			ingest.Traccar10, []tracking.Fix{full},
		},
		{
			"traccar 10: 0 is a value", request("", form, where+"&"+when+"&speed=0.0&bearing=0.0&accuracy=8.0"),
			ingest.Traccar10, []tracking.Fix{standing},
		},
		{
			"traccar 10: unknown is left out", request("", form, "id=1&"+where+"&"+when), ingest.Traccar10,
			[]tracking.Fix{bare},
		},
		{
			"traccar 10: with a query", request("token=t&id=9", form, where+"&"+when), ingest.Traccar10,
			[]tracking.Fix{bare},
		},
		{
			"traccar 10: body before query", request("lat=1&lon=2&timestamp=5", form, where+"&"+when),
			ingest.Traccar10, []tracking.Fix{bare},
		},
		{
			"traccar 10: split over both",
			request(when+"&batt=87", form, where+"&"+strings.Replace(extras, "&batt=87", "", 1)), ingest.Traccar10,
			[]tracking.Fix{full},
		},
		{"traccar 10: heartbeat", request("", form, "id=1&"+when+"&batt=50"), ingest.Traccar10, nil},
		{"traccar 10: push token", request("", form, "id=1&notificationToken=abc%3Adef"), ingest.Traccar10, nil},
		{"traccar 10: no content type", request("", " ", where+"&"+when), ingest.Traccar10, []tracking.Fix{bare}},
		{"traccar 10: JSON array",
			request("", js,
				`[{"id":"1","lat":60,"lon":30,"timestamp":1377177267,"speed":10,"bearing":90,"accuracy":8,"batt":87,"charge":true},
			7, null, "x", [], {}, {"id":"1","timestamp":1377177268},
			{"lat":"60.0","lon":"30.0","timestamp":"1377177267","speed":0,"bearing":0,"accuracy":8}]`),
			ingest.Traccar10, []tracking.Fix{full, standing}},
		{
			"traccar 10: JSON object as a form", request("", form, `{"lat":60,"lon":30,"timestamp":1377177267}`),
			ingest.Traccar10, []tracking.Fix{bare},
		},
		{
			"traccar 10: JSON location text", request("", js, `{"location":"60,30","timestamp":1377177267}`),
			ingest.Traccar10, []tracking.Fix{bare},
		},
		{
			"traccar 10: array cut off", request("", js, `[{"lat":60,"lon":30,"timestamp":1377177267},{"lat":6`),
			ingest.Traccar10, []tracking.Fix{bare},
		},
		{"traccar 10: empty array", request("", js, `[]`), ingest.Traccar10, nil},
		{
			"traccar 10: byte order mark",
			request("", js, "\ufeff [{\"lat\":60,\"lon\":30,\"timestamp\":1377177267}]"), ingest.Traccar10,
			[]tracking.Fix{bare},
		},

		{
			"osmand",
			request(where+
				"&timestamp=1377177267000&accuracy=8.0&altitude=3.0&speed=10&bearing=90.0&eta=0&dist=0&speed_unit=ms&batt=87", "", ""),
			ingest.OsmAnd, []tracking.Fix{metric},
		},
		{
			"osmand: 0 is unknown",
			request(where+
				"&timestamp=1377177267000&accuracy=8.0&altitude=0.0&speed=0.0&bearing=0.0&eta=0&dist=0&speed_unit=ms",
				"", ""),
			ingest.OsmAnd, []tracking.Fix{vague},
		},
		{
			"gpslogger",
			request(where+"&"+when+"&accuracy=8&altitude=1&speed=10&bearing=90&batt=87.0&speed_unit=ms", "", ""),
			ingest.GPSLogger, []tracking.Fix{metric},
		},
		{
			"gpslogger: 0 is unknown",
			request(where+"&"+when+"&accuracy=8&altitude=0.0&speed=0.0&bearing=0.0&speed_unit=ms", "", ""),
			ingest.GPSLogger, []tracking.Fix{vague},
		},
		{
			"gpslogger: in a body", request("speed_unit=ms", form, where+"&"+when+"&speed=0.0&accuracy=8"),
			ingest.GPSLogger, []tracking.Fix{vague},
		},
		{
			"gpslogger: %ALL",
			request("lat=60&lon=30&sat=9&desc=&alt=1&acc=8&dir=90&prov=gps&spd_kph=36&spd=10&timestamp=1377177267&timeoffset=2013-08-22T15:14:27.5%2B0200&time=2013-08-22T13:14:27.500Z&batt=87&ischarging=false&hdop=&dist=3", "", ""),
			ingest.GPSLogger, []tracking.Fix{metric},
		},
		{
			"gpslogger: km/h only", request(where+"&"+when+"&spd_kph=36&acc=8&dir=90&batt=87", "", ""),
			ingest.GPSLogger, []tracking.Fix{metric},
		},
		{
			"gpslogger: its default URL", request("lat=60&longitude=30&time=2013-08-22T13:14:27.000Z&s=3", "", ""),
			ingest.Traccar8, []tracking.Fix{bare},
		},
		{
			"gpslogger: placeholder left alone",
			request(where+"&"+when+"&accuracy=8&bearing=%DIR&speed_unit=ms", "", ""), ingest.GPSLogger,
			[]tracking.Fix{vague},
		},
		{
			"gpslogger: a JSON body of one's own", request("", js, `{"lat":60,"lon":30,"acc":8,"tst":1377177267}`),
			ingest.GPSLogger, []tracking.Fix{vague},
		},
		{
			"km/h", request(where+"&"+when+"&accuracy=8&bearing=90&batt=87&speed=36&speed_unit=kmh", "", ""),
			ingest.GPSLogger, []tracking.Fix{metric},
		},
		{
			"knots, said", request(where+"&"+when+"&"+extras+"&speed_unit=kn", "", ""), ingest.GPSLogger,
			[]tracking.Fix{full},
		},
		{
			"a unit nobody knows", request(where+"&"+when+"&accuracy=8&speed=36&speed_unit=mph", "", ""),
			ingest.GPSLogger, []tracking.Fix{vague},
		},
		{
			"unit of a JSON array in the URL",
			request("speed_unit=ms", js,
				`[{"lat":60,"lon":30,"timestamp":1377177267,"speed":10,"bearing":90,"accuracy":8,"batt":87}]`),
			ingest.GPSLogger, []tracking.Fix{metric},
		},

		{"traccar 9",
			request("", js,
				`{"location":{"timestamp":"2013-08-22T13:14:27.000Z","coords":{"latitude":60,"longitude":30,"accuracy":8,"speed":10,"heading":90,"altitude":5},
			"battery":{"level":0.87,"is_charging":false},"extras":{"heartbeat":true},"_":"&id=1&lat=60&lon=30&timestamp=x&"},"device_id":"1"}`), ingest.Traccar9, []tracking.Fix{metric}},
		{"traccar 9: -1 is unknown, 0 is not",
			request("", js,
				`{"location":{"timestamp":"2013-08-22T13:14:27.000Z","coords":{"latitude":60,"longitude":30,"accuracy":8,"speed":-1,"heading":-1,"floor":null},
			"battery":{"level":-1}}}`), ingest.Traccar9, []tracking.Fix{vague}},
		{
			"traccar 9: standing",
			request("", js,
				`{"location":{"timestamp":"2013-08-22T13:14:27.000Z","coords":{"latitude":60,"longitude":30,"accuracy":8,"speed":0,"heading":0}}}`),
			ingest.Traccar9, []tracking.Fix{standing},
		},
		{
			"traccar 9: no coords",
			request("", js,
				`{"location":{"timestamp":"2013-08-22T13:14:27.000Z","extras":{"heartbeat":true}},"device_id":"1"}`),
			ingest.Traccar9, nil,
		},
		{"traccar 9: location null", request("", js, `{"location":null,"device_id":"1"}`), ingest.Traccar10, nil},
		{
			"traccar 9: wrong kinds",
			request("", js,
				`{"location":{"timestamp":1377177267000,"coords":{"latitude":60,"longitude":30,"accuracy":[],"speed":{},"heading":"north"},"battery":7}}`),
			ingest.Traccar9, []tracking.Fix{bare},
		},
		{
			"traccar 9: several",
			request("", js, `{"location":[{"timestamp":1377177267000,"coords":{"latitude":60,"longitude":30}},{},3]}`),
			ingest.Traccar9, []tracking.Fix{bare},
		},

		{"owntracks",
			request("", js+"; charset=utf-8",
				`{"_type":"location","_id":"05b6f5bf","acc":8,"alt":23,"batt":87,"bs":1,"cog":90,"conn":"w","created_at":1733842246,
			"lat":60,"lon":30,"m":1,"t":"u","tid":"JJ","topic":"owntracks/jane/phone","tst":1377177267,"vac":15,"vel":36}`), ingest.OwnTracks, []tracking.Fix{metric}},
		{
			"owntracks: left out",
			request("u=jane&d=phone", js, `{"_type":"location","lat":60,"lon":30,"tst":1377177267}`), ingest.OwnTracks,
			[]tracking.Fix{bare},
		},
		{
			"owntracks: made, not measured",
			request("", js, `{"_type":"location","lat":60,"lon":30,"created_at":1377177267}`), ingest.OwnTracks,
			[]tracking.Fix{bare},
		},
		{
			"owntracks: ping", request("", js, `{"_type":"location","lat":60,"lon":30,"tst":1377177267,"t":"p"}`),
			ingest.OwnTracks, nil,
		},
		{
			"owntracks: transition",
			request("", js, `{"_type":"transition","event":"enter","lat":60,"lon":30,"tst":1377177267,"t":"c"}`),
			ingest.OwnTracks, nil,
		},
		{
			"owntracks: waypoint",
			request("", js, `{"_type":"waypoint","desc":"x","lat":60,"lon":30,"rad":50,"tst":1377177267}`),
			ingest.OwnTracks, nil,
		},
		{"owntracks: lwt", request("", js, `{"_type":"lwt","tst":1377177267}`), ingest.OwnTracks, nil},
		{"owntracks: type of no text", request("", js, `{"_type":7,"lat":60,"lon":30}`), ingest.OwnTracks, nil},
		{"owntracks: cut off", request("", js, `{"_type":"location","lat":6`), ingest.OwnTracks, nil},
		{"owntracks: empty", request("", js, ""), ingest.OwnTracks, nil},

		{"overland", request("", js, `{"locations":[
			{"type":"Feature","geometry":{"type":"Point","coordinates":[30,60]},"properties":{"timestamp":"2013-08-22T06:14:27-0700","speed":10,"course":90,"horizontal_accuracy":8,"battery_level":0.87,"motion":["driving"]}},
			{"type":"Feature","geometry":{"type":"Point","coordinates":[30,60,5]},"properties":{"timestamp":"2013-08-22T13:14:27Z","speed":-1,"course":-1,"horizontal_accuracy":8,"battery_level":-1}},
			{"type":"Feature","geometry":{"type":"Point","coordinates":[30,60]},"properties":{"timestamp":"2013-08-22T13:14:27Z","speed":0,"course":0,"horizontal_accuracy":8}}]}`), ingest.Overland, []tracking.Fix{metric, vague, standing}},
		{"overland: no fixes", request("", js, `{"locations":[
			{"type":"Feature","properties":{"action":"will_terminate","timestamp":"2013-08-22T13:14:27Z"}},
			{"type":"Feature","geometry":{"type":"Point","coordinates":[30,60]},"properties":{"action":"visit","timestamp":"2013-08-22T13:14:27Z","arrival_date":"2013-08-22T13:00:00Z"}},
			{"type":"Feature","geometry":{"type":"Point","coordinates":[30,60]},"properties":{"type":"trip","timestamp":"2013-08-22T13:14:27Z"}},
			{"type":"Feature","geometry":null,"properties":null}, {"geometry":{"coordinates":[30]}}, {"geometry":{"coordinates":"30,60"}}, {"geometry":{"coordinates":[[30,60],[31,61]]}}, null, 5, []]}`), ingest.Overland, nil},
		{"overland: current first",
			request("", js,
				`{"locations":[{"geometry":{"type":"Point","coordinates":[30,60]},"properties":{"timestamp":"2013-08-22T13:14:27Z"}}],
			"current":{"type":"Feature","geometry":{"type":"Point","coordinates":[31,61]},"properties":{"timestamp":"2026-05-04T03:02:00Z"}},"trip":{"distance":5}}`), ingest.Overland, []tracking.Fix{
				at(31, 61, utc("2026-05-04T03:02:00Z")), bare,
			}},
		{"overland: nothing", request("", js, `{"locations":[]}`), ingest.Overland, nil},
		{"overland: locations of another kind", request("", js, `{"locations":{"0":{}}}`), ingest.Overland, nil},
		{"overland: cut off", request("", js, `{"locations":[{"geometry":`), ingest.Overland, nil},
		{"overland: more behind it", request("", js, `{"locations":[]} x`), ingest.Overland, nil},

		{
			"JSON that says nothing, with a query", request(where+"&"+when, js, `{"hello":1}`), ingest.Traccar8,
			[]tracking.Fix{bare},
		},
		{"JSON that says nothing", request("", js, `{"hello":1}`), ingest.Unknown, nil},
		{"not JSON", request("", js, `{{{`), ingest.Unknown, nil},
		{"not a form", request("", form, "\x00\xff\xfe"), ingest.Unknown, nil},
		{"empty POST", request("", " ", ""), ingest.Unknown, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := ingest.Decode(tt.in, now)
			if m.Dialect != tt.dialect {
				t.Errorf("dialect %s, want %s", m.Dialect, tt.dialect)
			}
			if d := cmp.Diff(tt.want, m.Fixes, approx, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("fixes (-want +got):\n%s", d)
			}
			if m.SignOfLife != (len(tt.want) == 0) {
				t.Errorf("sign of life: %v", m.SignOfLife)
			}
		})
	}
}

func TestOpenedByHand(t *testing.T) {
	for _, r := range []ingest.Request{request("", "", ""), request("utm_source=mail", "", "")} {
		m := ingest.Decode(r, now)
		if m.SignOfLife || m.Dialect != ingest.Unknown || len(m.Fixes) != 0 {
			t.Errorf("%q: %+v; a person's browser is no phone", r.Query, m)
		}
		for range m.Batches(10) {
			t.Errorf("%q: a batch", r.Query)
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, tt := range []struct {
		lat, lon string
		ok       bool
	}{
		{"60", "30", true}, {"90", "180", true}, {"-90", "-180", true}, {"0", "0", true}, {" 60.5 ", "+30", true},
		{"6e1", "3E1", true}, {".5", "5.", true},
		{"90.0001", "0", false}, {"-91", "0", false}, {"0", "180.0001", false}, {"0", "-181", false},
		{"NaN", "0", false}, {"0", "nan", false}, {"Inf", "0", false}, {"0", "-infinity", false}, {"1e999", "0", false},
		{"0", "-1e999", false},
		{"0x10", "0", false}, {"1_0", "0", false}, {"60,5", "0,25", true}, {"-60,5", "1,5e1", true},
		{"60,5,0", "0", false}, {"6,0.5", "0", false}, {"", "0", false}, {"sixty", "0", false}, {"60°", "30", false},
		{"６０", "30", false}, {"--6", "0", false},
	} {
		q := fmt.Sprintf("lat=%s&lon=%s&timestamp=1", strings.ReplaceAll(tt.lat, "+", "%2B"),
			strings.ReplaceAll(tt.lon, "+", "%2B"))
		body := fmt.Sprintf(`{"_type":"location","lat":%q,"lon":%q,"tst":1}`, tt.lat, tt.lon)
		for _, r := range []ingest.Request{request(q, "", ""), request("", form, q), request("", js, body)} {
			if got := len(ingest.Decode(r, now).Fixes) == 1; got != tt.ok {
				t.Errorf("%s %s: a fix: %v, want %v", r.Query, r.Body, got, tt.ok)
			}
		}
	}
	// Numbers that Go's own decoder would refuse together with the rest of the batch.
	m := ingest.Decode(request("", js, `[{"lat":1e999,"lon":0,"timestamp":1},{"lat":1,"lon":2,"timestamp":1}]`), now)
	if d := cmp.Diff([]tracking.Fix{at(2, 1, time.Unix(1, 0).UTC())}, m.Fixes); d != "" {
		t.Error(d)
	}
}

func TestTimes(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"1377177267", "2013-08-22T13:14:27Z"},
		{"1377177267.25", "2013-08-22T13:14:27.25Z"},
		{"1377177267250", "2013-08-22T13:14:27.25Z"},
		{"1.377177267e9", "2013-08-22T13:14:27Z"},
		{"2147483647", "2038-01-19T03:14:07Z"},
		{"2147483648", "1970-01-25T20:31:23.648Z"},
		{"253402300799998", "9999-12-31T23:59:59.998Z"},
		{"2016-01-27T18:55:47Z", "2016-01-27T18:55:47Z"},
		{"2016-01-27T18:55:47.1239Z", "2016-01-27T18:55:47.124Z"},
		{"2016-01-27T18:55:47+05:30", "2016-01-27T13:25:47Z"},
		{"2016-01-27T18:55:47-0700", "2016-01-28T01:55:47Z"},
		{"2016-01-27T18:55:47.5+01", "2016-01-27T17:55:47.5Z"},
		{"2016-01-27T18:55:47 0100", "2016-01-27T17:55:47Z"}, // "+" in a query
		{"2016-01-27T18:55:47", "2016-01-27T18:55:47Z"},
		{"2014-06-04 09:10:11", "2014-06-04T09:10:11Z"},
		{"2014-09-10 06:54:07+0200", "2014-09-10T04:54:07Z"},
		{"1901-12-13T20:45:52Z", "1901-12-13T20:45:52Z"},
		{"0", ""}, {"-5", ""}, {"253402300800000", ""}, {"1e300", ""}, {"NaN", ""}, {"-1377177267", ""}, {
			"0.0000001", "1970-01-01T00:00:00Z",
		},
		{"yesterday", ""}, {"2016-02-30T00:00:00Z", ""}, {"2016-01-27", ""}, {"2016-01-27T18:55", ""},
		{"2016-01-27T24:00:00Z", ""}, {"2016-01-27_18:55:47Z", ""},
		{"0001-01-01T00:00:00Z", ""}, {"0000-06-01T00:00:00Z", ""}, {"9999-12-31T23:59:59-0100", ""}, {
			"9999-12-31T23:59:59.9999Z", "",
		}, {"2016-01-27T18:55:47Z Z", ""},
	} {
		for name, r := range map[string]ingest.Request{
			"query": request("lat=1&lon=2&timestamp="+strings.ReplaceAll(tt.in, "+", "%2B"), "", ""),
			"flat":  request("", js, fmt.Sprintf(`{"lat":1,"lon":2,"timestamp":%q}`, tt.in)),
			"overland": request("", js,
				fmt.Sprintf(`{"locations":[{"geometry":{"coordinates":[2,1]},"properties":{"timestamp":%q}}]}`, tt.in)),
		} {
			fixes := ingest.Decode(r, now).Fixes
			var want []tracking.Fix
			if tt.want != "" {
				want = []tracking.Fix{at(2, 1, utc(tt.want))}
			}
			if d := cmp.Diff(want, fixes, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("%s %q (-want +got):\n%s", name, tt.in, d)
			}
		}
	}
}

func TestReadings(t *testing.T) {
	for _, tt := range []struct {
		q    string
		want tracking.Fix
	}{
		{"accuracy=-1&speed=-1&bearing=-1&batt=-1", tracking.Fix{}},
		{"accuracy=NaN&speed=Inf&bearing=361&batt=101", tracking.Fix{}},
		{"accuracy=1e999&speed=1e308&bearing=x&batt=", tracking.Fix{Speed: known(1e308 * 1852.0 / 3600)}},
		{"bearing=360&batt=0", tracking.Fix{Bearing: known(0), Battery: known(0)}},
		{"heading=359.5&batt=100&hacc=3", tracking.Fix{Bearing: known(359.5), Battery: known(1), Accuracy: known(3)}},
	} {
		m := ingest.Decode(request("", form, "lat=1&lon=2&timestamp=1&"+tt.q), now)
		want := tt.want
		want.LngLat, want.Time = tracking.LngLat{Lng: 2, Lat: 1}, time.Unix(1, 0).UTC()
		if d := cmp.Diff([]tracking.Fix{want}, m.Fixes, approx); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.q, d)
		}
	}
}

func TestAnswers(t *testing.T) {
	agent := func(r ingest.Request, h, v string) ingest.Request { r.Header.Set(h, v); return r }
	const contentType = "application/json; charset=utf-8"
	for _, tt := range []struct {
		name string
		in   ingest.Request
		want ingest.Answer
	}{
		{"traccar 8", request("id=1&lat=1&lon=2", "", ""), ingest.Answer{}},
		{"traccar 9", request("", js, `{"location":{},"device_id":"1"}`), ingest.Answer{}},
		{"traccar 10", request("", form, "id=1"), ingest.Answer{}},
		{"owntracks", request("", js, `{"_type":"location"}`), ingest.Answer{ContentType: contentType, Body: "[]"}},
		{
			"owntracks, encrypted", request("", js, `{"_type":"encrypted","data":"AAAA"}`),
			ingest.Answer{ContentType: contentType, Body: "[]"},
		},
		{"owntracks, empty", request("", js, ""), ingest.Answer{ContentType: contentType, Body: "[]"}},
		{
			"owntracks, empty, by its header", agent(request("", " ", ""), "X-Limit-U", "jane"),
			ingest.Answer{ContentType: contentType, Body: "[]"},
		},
		{
			"owntracks, unreadable, by its name",
			agent(request("", " ", "\x01\x02"), "User-Agent", "Owntracks-Android/gms/420504000"),
			ingest.Answer{ContentType: contentType, Body: "[]"},
		},
		{
			"overland", request("", js, `{"locations":[]}`),
			ingest.Answer{ContentType: contentType, Body: `{"result":"ok"}`},
		},
		{
			"overland, unreadable, by its name", agent(request("", js, `{]`), "User-Agent", "Overland/1.0"),
			ingest.Answer{ContentType: contentType, Body: `{"result":"ok"}`},
		},
		{"whatever", request("", js, `{"a":1}`), ingest.Answer{}},
	} {
		m := ingest.Decode(tt.in, now)
		if d := cmp.Diff(tt.want, m.Answer); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, d)
		}
		if m.Encrypted != strings.Contains(tt.name, "encrypted") {
			t.Errorf("%s: encrypted %v", tt.name, m.Encrypted)
		}
		w := httptest.NewRecorder()
		m.Answer.Write(w)
		if w.Code != http.StatusOK || w.Body.String() != tt.want.Body ||
			w.Header().Get("Content-Type") != tt.want.ContentType {
			t.Errorf("%s: wrote %d %q %q", tt.name, w.Code, w.Header().Get("Content-Type"), w.Body)
		}
	}
	for agentName, want := range map[string]ingest.Dialect{
		"OsmAnd~/4.7": ingest.OsmAnd, "GPSLogger": ingest.GPSLogger, "Dalvik/2.1.0": ingest.Traccar8,
	} {
		if got := ingest.Decode(agent(request("lat=1&lon=2", "", ""), "User-Agent", agentName),
			now).Dialect; got != want {
			t.Errorf("%s: %s, want %s", agentName, got, want)
		}
	}
}
