package ingest_test

import (
	"bytes"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/ingest"
)

// sound checks what holds for every message, whatever was sent.
func sound(t *testing.T, r ingest.Request) {
	t.Helper()
	m := ingest.Decode(r, now)
	if len(m.Fixes) > ingest.MaxFixes {
		t.Errorf("%d fixes", len(m.Fixes))
	}
	if m.SignOfLife && len(m.Fixes) > 0 {
		t.Error("a sign of life, and fixes")
	}
	switch m.Dialect {
	case ingest.Unknown, ingest.Traccar8, ingest.Traccar9, ingest.Traccar10, ingest.OsmAnd, ingest.GPSLogger,
		ingest.OwnTracks, ingest.Overland, ingest.Colota:
	default:
		t.Errorf("dialect %q", m.Dialect)
	}
	if m.Unread < 0 || m.Unread > len(r.Body)+1 {
		t.Errorf("%d unread of %d bytes", m.Unread, len(r.Body))
	}
	in := func(r tracking.Reading, low, high float64) bool {
		return r == (tracking.Reading{}) || r.Known && r.Value >= low && r.Value <= high
	}
	for _, f := range m.Fixes {
		switch {
		case !f.LngLat.Valid():
			t.Errorf("place %v", f.LngLat)
		case f.Time.IsZero(), f.Time.Year() < 1, f.Time.Year() > 9999, f.Time.Location() != time.UTC,
			f.Time.Nanosecond()%1e6 != 0:
			t.Errorf("time %v", f.Time)
		case !in(f.Accuracy, 0, math.MaxFloat64), !in(f.Speed, 0, math.MaxFloat64), !in(f.Bearing, 0, 359.999999999),
			!in(f.Battery, 0, 1):
			t.Errorf("readings %+v", f)
		case f.EventID != "", f.Trusted:
			t.Errorf("a phone cannot say this: %+v", f)
		}
	}
	// The same request gives the same message: the apps send again, and the time of a fix is its
	// identity.
	if d := cmp.Diff(m, ingest.Decode(r, now)); d != "" {
		t.Errorf("another message the second time:\n%s", d)
	}
}

func FuzzQuery(f *testing.F) {
	for _, s := range []string{
		"", "id=123456&timestamp=1377177267&lat=60.0&lon=30.0&speed=0.0&bearing=0.0&altitude=0&accuracy=8.0&batt=87",
		"lat=60&lon=30&timestamp=1377177267000&eta=0&speed_unit=ms", "location=60,30&valid=0",
		"lat=NaN&lon=1e999&timestamp=1e18", "lat=1&lon=2&time=2016-01-27T18:55:47+0100",
		"lat=1&lon=2&spd_kph=3&spd=x&dir=360", "%zz=%zz&;&=&&lat", "lat=1&lon=2&timestamp=9999-12-31T23:59:59.9996Z",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, query string) { sound(t, ingest.Request{Method: http.MethodGet, Query: query}) })
}

func FuzzForm(f *testing.F) {
	f.Add("", "id=1&lat=37.42&lon=-122.08&timestamp=1750000000&accuracy=5.0&altitude=5.0&speed=12.34&bearing=90.0&batt=80.0&charge=false&alarm=sos")
	f.Add("lat=1&lon=2", "id=1&notificationToken=x")
	f.Add("speed_unit=kmh", "lat=1&lon=2&speed=1e308")
	f.Fuzz(func(t *testing.T, query, body string) { sound(t, request(query, form, body)) })
}

// FuzzAnything is whatever a phone may send: any bytes, as any type, packed or not.
func FuzzAnything(f *testing.F) {
	for _, s := range []string{
		`{"locations":[{"coords":{"latitude":60,"longitude":30},"timestamp":1377177267}]}`,
		`{"data":{"0":[[{"Lat":1,"Long":2,"fixTime":"2013-08-22T13:14:27Z"}]]}}`,
		`{"type":"FeatureCollection","features":[{"type":"Feature","geometry":{"type":"Point","coordinates":[1,2]},"properties":{"time":1377177267000000}}]}`,
		`{"ts":1377177267000000000,"position":{"type":"Point","coordinates":["1,5",2]}}`,
		`{"_type":"location","lat":"1,5","lon":2,"tst":3,"vel":1.5,"bear":9,"bs":1}`,
		`{"_type":"waypoints","waypoints":[{"lat":1,"lon":2,"tst":3}]}`,
		strings.Repeat(`[{"location":`, 50), `{"lat":1,"lon":2}` + "\n" + `{"lat":1,"lon":`, "\x1f\x8b\x08\x00",
		"\x78\x9c", "<gpx/>", "lat=1,5&lon=2", "a=1.23456&b=2.34567",
	} {
		f.Add([]byte(s), "", js, "")
		f.Add([]byte(s), s, form, "deflate")
	}
	f.Fuzz(func(t *testing.T, body []byte, query, contentType, encoding string) {
		r := httptest.NewRequest(http.MethodPost, "/ingest/token", bytes.NewReader(body))
		r.URL.RawQuery = query
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Content-Encoding", encoding)
		req, err := ingest.Read(httptest.NewRecorder(), r)
		if tooLarge := (*http.MaxBytesError)(nil); err != nil && !errors.As(err, &tooLarge) {
			t.Fatal(err)
		}
		if len(req.Body) > ingest.MaxBody {
			t.Errorf("%d bytes", len(req.Body))
		}
		sound(t, req)
	})
}

// fuzzJSON holds a decoder of JSON to the same, beginning with these bodies.
func fuzzJSON(f *testing.F, bodies ...string) {
	for _, b := range bodies {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, body string) { sound(t, request("", js, body)) })
}

func FuzzTraccar9(f *testing.F) {
	fuzzJSON(f, `{"location":{"timestamp":"2025-06-15T13:45:12.862Z","coords":{"latitude":37.4,"longitude":-122.084,"accuracy":5,"speed":0,"heading":-1},"battery":{"level":1}},"device_id":"1"}`,
		`{"location":[{"timestamp":1e12,"coords":{"latitude":"1","longitude":2}}]}`,
		`{"coords":{"latitude":1,"longitude":2}}`)
}

func FuzzTraccar10(f *testing.F) {
	fuzzJSON(f, `[{"id":"1","lat":60,"lon":30,"timestamp":1377177267,"time":"2013-08-22T13:14:27.5Z","speed":10,"batt":87}]`, `{"lat":1,"latitude":2,"lon":3,"lng":4}`, `[1,null,[],{"location":"1,2"}]`)
}

func FuzzOwnTracks(f *testing.F) {
	fuzzJSON(f, `{"_type":"location","acc":13,"alt":23,"batt":62,"cog":56,"created_at":1733842246,"lat":48.85833,"lon":2.29513,"t":"u","tst":1733842245,"vel":6}`,
		`{"_type":"encrypted","data":"AA=="}`, `{"_type":"transition","lat":1,"lon":2,"tst":3}`, `{"_type":null}`)
}

func FuzzOverland(f *testing.F) {
	fuzzJSON(f, `{"locations":[{"type":"Feature","geometry":{"type":"Point","coordinates":[-122.03,37.33]},"properties":{"timestamp":"2015-10-01T08:00:00-0700","speed":4,"course":90,"horizontal_accuracy":30,"battery_level":0.89}}],"current":{},"trip":{}}`,
		`{"locations":[{"properties":{"action":"visit"}}]}`,
		`{"current":{"geometry":{"coordinates":[1,2,3]},"properties":{}}}`)
}
