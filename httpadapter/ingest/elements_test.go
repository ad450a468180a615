package ingest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/ingest"
)

// TestElements: a position is read whatever container it is in, and by whichever of the names that
// apps have for it.
func TestElements(t *testing.T) {
	t0 := utc("2013-08-22T13:14:27Z")
	bare := at(30, 60, t0)
	later := at(31, 61, t0.Add(time.Minute))
	full := bare
	full.Accuracy, full.Speed, full.Bearing, full.Battery = known(8), known(10), known(90), known(0.87)
	const (
		coords  = `{"coords":{"latitude":60,"longitude":30,"accuracy":8,"speed":10,"heading":90},"timestamp":"2013-08-22T13:14:27Z","battery":{"level":0.87}}`
		second  = `{"coords":{"latitude":61,"longitude":31},"timestamp":"2013-08-22T13:15:27Z"}`
		flat    = `{"lat":60,"lon":30,"time":"2013-08-22T13:14:27.000Z","speed":10,"bearing":90,"accuracy":8,"batt":87}`
		feature = `{"type":"Feature","geometry":{"type":"Point","coordinates":[30,60]},"properties":{"timestamp":"2013-08-22T13:14:27Z"}}`
		point   = `{"type":"Point","coordinates":[30,60,510]}`
	)
	for _, tt := range []struct {
		name, body string
		want       []tracking.Fix
	}{
		// Transistor's location library, by each root that it can be given, alone and in batches.
		{"root locations", `{"locations":[` + coords + `,` + second + `]}`, []tracking.Fix{full, later}},
		{"root locations of one", `{"locations":` + coords + `}`, []tracking.Fix{full}},
		{"root location, several", `{"location":[` + coords + `,` + second + `]}`, []tracking.Fix{full, later}},
		{"no root", `[` + coords + `,` + second + `]`, []tracking.Fix{full, later}},
		{"array of roots", `[{"location":` + coords + `},{"location":[` + second + `]}]`, []tracking.Fix{full, later}},
		{
			"a root of one's own", `{"device":{"uuid":"x"},"batch":[` + coords + `,` + second + `]}`,
			[]tracking.Fix{full, later},
		},
		{"data of JSON:API", `{"data":[{"type":"position","attributes":` + flat + `}]}`, []tracking.Fix{full}},
		{
			"template in root locations",
			`{"locations":[{"lat":60,"lon":30,"time":"2013-08-22T13:14:27.000Z","ele":47.3},{"ele":0,"lat":61,"lon":31,"time":"2013-08-22T13:15:27Z"}]}`,
			[]tracking.Fix{bare, later},
		},
		{
			"template with a point",
			`{"timestamp":"2013-08-22T13:14:27Z","location":` + point +
				`,"batteryLevel":0.87,"speed":10,"bearing":90,"accuracy":8}`,
			[]tracking.Fix{full},
		},
		{"arrays in arrays", `[[[` + flat + `]],[` + second + `]]`, []tracking.Fix{full, later}},
		{"objects by number", `{"0":` + flat + `,"1":` + second + `}`, []tracking.Fix{full, later}},
		{"current beside a list", `{"current":` + coords + `,"queue":[` + second + `]}`, []tracking.Fix{full, later}},
		{"current first", `{"locations":[` + second + `],"current":` + flat + `}`, []tracking.Fix{full, later}},
		{"one a line", coords + "\n" + second + "\n", []tracking.Fix{full, later}},
		{
			"a position in a position", `{"lat":60,"lon":30,"timestamp":1377177267,"previous":` + second + `}`,
			[]tracking.Fix{bare, later},
		},
		{
			"positions deep in a position",
			`{"lat":60,"lon":30,"timestamp":1377177267,"queue":{"waiting":[{"x":` + second + `}]}}`,
			[]tracking.Fix{bare, later},
		},
		{
			"a position with a backlog", `{"lat":60,"lon":30,"timestamp":1377177267,"backlog":[` + second + `]}`,
			[]tracking.Fix{bare, later},
		},

		// GeoJSON.
		{"feature", feature, []tracking.Fix{bare}},
		{"features", `[` + feature + `,` + feature + `]`, []tracking.Fix{bare, bare}},
		{"collection", `{"type":"FeatureCollection","features":[` + feature + `]}`, []tracking.Fix{bare}},
		{
			"feature with its time beside",
			`{"type":"Feature","time":"2013-08-22T13:14:27Z","geometry":` + point + `,"properties":null}`,
			[]tracking.Fix{bare},
		},
		{
			"feature of a GeoJSON logger",
			`{"x":[{"type":"Feature","geometry":` + point +
				`,"properties":{"time":"2013-08-22T13:14:27Z","speed":10,"bearing":90,"accuracy":8,"battery_level":87}}]}`,
			[]tracking.Fix{full},
		},
		{
			"point with a time", `{"points":[{"type":"Point","coordinates":[30,60],"timestamp":1377177267}]}`,
			[]tracking.Fix{bare},
		},
		{
			"point in a record", `[[{"recorded_at":"2013-08-22T13:14:27Z","position":` + point + `}]]`,
			[]tracking.Fix{bare},
		},
		{
			"a line is no point",
			`{"features":[{"type":"Feature","geometry":{"type":"LineString","coordinates":[[30,60],[31,61]]},"properties":{"time":1377177267}}]}`,
			nil,
		},

		// By other names.
		{
			"this service's own",
			`{"fixes":[{"lnglat":[30,60],"time":"2013-08-22T13:14:27Z","accuracy":8,"speed":10,"bearing":90,"battery":87}]}`,
			[]tracking.Fix{full},
		},
		{"of a web page", `{"position":` + coords + `}`, []tracking.Fix{full}},
		{"capitals", `[{"Latitude":60,"Longitude":30,"Timestamp":1377177267,"HorizontalAccuracy":8,"Course":90,"Battery":87}]`, []tracking.Fix{reading(full, func(f *tracking.Fix) {
			f.Speed = tracking.Reading{}
		})}},
		{"joined otherwise", `{"p":{"lat":60,"long":30,"fixTime":"2013-08-22T13:14:27Z"}}`, []tracking.Fix{bare}},
		{"time by a common name", `[{"latitude":60,"longitude":30,"date":1377177267000}]`, []tracking.Fix{bare}},
		{
			"a date that is no time", `[{"latitude":60,"longitude":30,"date":"22.08.2013"}]`,
			[]tracking.Fix{at(30, 60, nowMs)},
		},
		{"place apart from its time", `{"when":{},"ts":1377177267,"gps":{"lat":60,"lng":30}}`, []tracking.Fix{bare}},
		{"texts for numbers", `{"list":[{"lat":"60","lon":"30","tst":"1377177267"}]}`, []tracking.Fix{bare}},

		// What is no position of the phone's.
		{"a place without a time", `{"timestamp":1377177267,"destination":{"lat":60,"lon":30}}`, nil},
		{"places without a time", `{"locations":[{"lat":60,"lon":30}],"x":[{"latitude":60,"longitude":30}]}`, nil},
		{
			"what a position says of itself",
			`{"coords":{"latitude":61,"longitude":31},"timestamp":"2013-08-22T13:15:27Z","extras":{"stop":` + flat +
				`},"geofence":` + coords + `}`,
			[]tracking.Fix{later},
		},
		{
			"waypoints",
			`{"_type":"waypoints","waypoints":[{"_type":"waypoint","lat":60,"lon":30,"tst":1377177267},` + flat + `]}`,
			nil,
		},
		{
			"control messages in a list",
			`{"messages":[{"_type":"transition","lat":60,"lon":30,"tst":1377177267},{"_type":"cmd","lat":60,"lon":30,"tst":1377177267},{"_type":"location","lat":61,"lon":31,"tst":1377177327}]}`,
			[]tracking.Fix{later},
		},
		{"a dump", `{"_type":"dump","configuration":{"waypoints":[` + flat + `]}}`, nil},
		{
			"actions and trips",
			`{"data":[{"type":"Feature","geometry":` + point +
				`,"properties":{"action":"visit","timestamp":1377177267}},{"type":"Feature","geometry":` + point +
				`,"properties":{"type":"trip","timestamp":1377177267}}]}`,
			nil,
		},
		{
			"Overland's trip",
			`{"locations":[],"trip":{"distance":5,"start_location":` + feature + `,"current_location":` + feature +
				`}}`,
			nil,
		},
		{"not valid", `{"list":[{"lat":60,"lon":30,"time":1377177267,"valid":false}]}`, nil},

		// What breaks off: what was whole before counts.
		{"a list that breaks off", `{"locations":[` + coords + `,{"coords":{"latitude":1,`, []tracking.Fix{full}},
		{"an element that breaks off", `{"locations":[{"lat":60,"lon":30,"time":1377177267`, nil},
		{"a time behind the break", `{"location":{"coords":{"latitude":60,"longitude":30}},"timest`, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := ingest.Decode(request("", js, tt.body), now)
			if d := cmp.Diff(tt.want, m.Fixes, approx, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("fixes (-want +got):\n%s", d)
			}
			if m.SignOfLife != (len(tt.want) == 0) {
				t.Errorf("sign of life: %v", m.SignOfLife)
			}
		})
	}
}

// TestColota: it calls things by names of its own, or by those of other apps, and always gives its
// speed in m/s.
func TestColota(t *testing.T) {
	t0 := time.Unix(1704067200, 0).UTC()
	moving := at(11.581981, 48.135124, t0)
	moving.Accuracy, moving.Speed, moving.Bearing, moving.Battery = known(12), known(15), known(180.5), known(0.85)
	straight := moving // no bearing
	straight.Bearing = tracking.Reading{}
	slow := moving
	slow.Speed = known(1.4)
	anchor := at(11.581981, 48.135124, t0)
	anchor.Accuracy, anchor.Battery = known(50), known(0.85)
	kmh := moving
	kmh.Speed = known(15 / 3.6)

	const own = `"lat":48.135124,"lon":11.581981,"acc":12,"alt":519,"batt":85,"bs":2,"tst":1704067200`
	const query = "id=colota&lat=48.135124&lon=11.581981&accuracy=12&altitude=519&speed=15&batt=85&charge=2&timestamp=1704067200&bearing=180.5"
	for name, tt := range map[string]struct {
		in      ingest.Request
		dialect ingest.Dialect
		want    tracking.Fix
	}{
		"its own names":             {post(`{` + own + `,"vel":15,"bear":180.5}`), ingest.Colota, moving},
		"its own names, slow":       {post(`{` + own + `,"vel":1.4,"bear":180.5}`), ingest.Colota, slow},
		"its own names, no bearing": {post(`{` + own + `,"vel":15}`), ingest.Colota, straight},
		"for Reitti": {
			post(`{"_type":"location",` + own + `,"vel":15,"bear":180.5}`), ingest.OwnTracks, moving,
		},
		"for Reitti, no bearing": {post(`{"_type":"location",` + own + `,"vel":15}`), ingest.OwnTracks, straight},
		"for Reitti, with a tid": {
			post(`{"_type":"location","tid":"AA",` + own + `,"vel":15,"bear":180.5}`), ingest.OwnTracks, moving,
		},
		"for Dawarich and OwnTracks": {
			post(`{"_type":"location","tid":"AA",` + own + `,"vel":15,"cog":180.5}`), ingest.OwnTracks, moving,
		},
		"a tenth of a metre a second": {
			post(`{"_type":"location","lat":48.135124,"lon":11.581981,"acc":12,"batt":85,"tst":1704067200,"vel":1.4,"cog":180.5}`),
			ingest.OwnTracks, slow,
		},
		"leaving a zone": {
			post(`{"_type":"location","lat":48.135124,"lon":11.581981,"acc":50,"batt":85,"bs":2,"tst":1704067200}`),
			ingest.OwnTracks, anchor,
		},
		"in a query, its own names": {
			request("lat=48.135124&lon=11.581981&acc=12&vel=15&batt=85&bs=1&tst=1704067200&bear=180.5", "", ""),
			ingest.Colota, moving,
		},
		"for Traccar, in a query": {request(query, "", ""), ingest.Colota, moving},
		"for Traccar, not charging": {
			request(strings.Replace(query, "charge=2", "charge=1", 1), "", ""), ingest.Colota, moving,
		},
		"for Overland": {
			post(`{"device_id":"colota","locations":[{"type":"Feature","geometry":{"type":"Point","coordinates":[11.581981,48.135124]},"properties":{"timestamp":"2024-01-01T00:00:00Z","horizontal_accuracy":12,"altitude":519,"speed":15,"course":180.5,"battery_level":0.85,"battery_state":"charging"}}]}`),
			ingest.Overland, moving,
		},
		"for PhoneTrack": {
			post(`{"useragent":"Colota","lat":48.135124,"lon":11.581981,"acc":12,"speed_unit":"ms","speed":15,"bat":85,"timestamp":1704067200,"bearing":180.5}`),
			ingest.GPSLogger, moving,
		},
		"OwnTracks itself": {
			post(`{"_type":"location","tid":"AA",` + own + `,"vel":15,"cog":180.5,"conn":"m"}`), ingest.OwnTracks, kmh,
		},
		"OwnTracks itself, by its id": {
			post(`{"_type":"location","_id":"05b6f5bf",` + own + `,"vel":15,"cog":180.5}`), ingest.OwnTracks, kmh,
		},
		"OwnTracks itself, by a topic": {
			post(`{"_type":"location","topic":"owntracks/a/b",` + own + `,"vel":15,"cog":180.5}`), ingest.OwnTracks,
			kmh,
		},
	} {
		m := ingest.Decode(tt.in, now)
		if d := cmp.Diff([]tracking.Fix{tt.want}, m.Fixes, approx); d != "" || m.Dialect != tt.dialect ||
			m.Unread != 0 {
			t.Errorf("%s: %s, %d unread (-want +got):\n%s", name, m.Dialect, m.Unread, d)
		}
	}
}

// TestDecimalCommas: phones in many languages fill a template so.
func TestDecimalCommas(t *testing.T) {
	want := at(13.4, 52.5, utc("2013-08-22T13:14:27.25Z"))
	want.Accuracy, want.Bearing = known(8.5), known(90.25)
	const q = "lat=52,5&lon=13,4&timestamp=1377177267,25&accuracy=8,5&bearing=90,25"
	for _, r := range []ingest.Request{
		request(q, "", ""), request("", form, q), request(strings.ReplaceAll(q, ",", "%2C"), "", ""),
		request("", js, `{"lat":"52,5","lon":"13,4","timestamp":"1377177267,25","accuracy":"8,5","bearing":"90,25"}`),
	} {
		if d := cmp.Diff([]tracking.Fix{want}, ingest.Decode(r, now).Fixes, approx); d != "" {
			t.Errorf("%s%s (-want +got):\n%s", r.Query, r.Body, d)
		}
	}
	m := ingest.Decode(request("", js,
		`{"locations":[{"geometry":{"coordinates":["13,4","52,5"]},"properties":{"timestamp":"2013-08-22T13:14:27,25Z"}}]}`), now)
	if d := cmp.Diff([]tracking.Fix{at(13.4, 52.5, want.Time)}, m.Fixes, approx); d != "" {
		t.Error(d)
	}
}

// TestUnread: what was meant as a position and cannot be read is counted. What is known, and holds
// none, is not.
func TestUnread(t *testing.T) {
	const fix = `{"lat":60,"lon":30,"timestamp":1377177267}`
	agent := func(r ingest.Request) ingest.Request { r.Header.Set("User-Agent", "Overland/1.0"); return r }
	for name, tt := range map[string]struct {
		in   ingest.Request
		want int
	}{
		// signs of life, and what is known
		"nothing":               {request("", " ", ""), 0},
		"OwnTracks' empty body": {post(""), 0},
		"opened by hand":        {request("", "", ""), 0},
		"opened from a mail":    {request("utm_source=mail", "", ""), 0},
		"heartbeat in a form":   {request("", form, "id=1&timestamp=1377177267&batt=50"), 0},
		"heartbeat in a query":  {request("id=1&timestamp=1377177267", "", ""), 0},
		"push token":            {request("", form, "id=1&notificationToken=abc"), 0},
		"not valid":             {request("", form, "lat=60&lon=30&valid=false"), 0},
		"the name of a place":   {request("location=Shop,+2+Home+St&timestamp=5", "", ""), 0},
		"empty place":           {request("lat=&lon=&timestamp=5", "", ""), 0},
		"heartbeat of Traccar 9": {
			post(`{"location":{"timestamp":"2013-08-22T13:14:27.000Z","extras":{"heartbeat":true},"odometer":12.5,"is_moving":false,"activity":{"type":"still","confidence":100},"battery":{"level":1}},"device_id":"1"}`),
			0,
		},
		"no location":  {post(`{"location":null,"device_id":"1"}`), 0},
		"empty batch":  {post(`{"locations":[]}`), 0},
		"empty array":  {post(`[]`), 0},
		"empty object": {post(`{}`), 0},
		"actions": {
			post(`{"locations":[{"properties":{"action":"will_terminate"}},{"geometry":{"type":"Point","coordinates":[30,60]},"properties":{"action":"visit"}}],"trip":{"distance":5}}`),
			0,
		},
		"ping":                    {post(`{"_type":"location","lat":60,"lon":30,"tst":1377177267,"t":"p"}`), 0},
		"a type without a place":  {post(`{"_type":"shout","text":"x"}`), 0},
		"a fix":                   {post(fix), 0},
		"a fix and where it goes": {post(`{"position":` + fix + `,"destination":{"lat":61,"lon":31}}`), 0},
		"a fix and what else":     {post(`{"position":` + fix + `,"battery_info":{"foo":1},"x":[{"y":2}]}`), 0},

		// unread
		"nonsense":                  {request("", " ", "nonsense"), 1},
		"bytes":                     {request("", " ", "\x01\x02\xff"), 1},
		"an unknown form":           {request("", form, "a=1&b=2"), 1},
		"XML":                       {request("", "application/xml", `<gpx><trkpt lat="60" lon="30"/></gpx>`), 1},
		"unknown JSON":              {post(`{"hello":1}`), 1},
		"unknown JSON, a list":      {post(`{"hello":[1,2]}`), 1},
		"unknown JSON in a list":    {post(`[{"hello":1},{"hello":2}]`), 1},
		"unknown names, known id":   {post(`{"device_id":"1","data":{"a":60.1,"b":30.1}}`), 1},
		"unknown names beside a id": {post(`{"device_id":"1","timestamp":1377177267,"a":60.12345,"b":30.12345}`), 1},
		"unknown names in a query":  {request("a=60.12345&b=30.12345&id=1", "", ""), 1},
		"broken JSON":               {post(`{]`), 1},
		"broken JSON of a known":    {agent(post(`{"x`)), 1},
		"breaks off after a fix":    {post(`[` + fix + `,{"lat":6`), 1},
		"no number":                 {request("lat=NaN&lon=30&timestamp=5", "", ""), 1},
		"decimal commas in a pair":  {request("location=13,08,80,27&timestamp=5", "", ""), 1},
		"three numbers":             {post(`[{"location":"13.0,80.2,5","timestamp":5},` + fix + `]`), 1},
		"half a place":              {request("", form, "lat=60&timestamp=5"), 1},
		"out of range": {
			post(`[{"lat":91,"lon":30,"timestamp":5},` + fix + `,{"lat":60,"lon":"181","timestamp":5}]`), 2,
		},
		"a time that is none":      {post(`{"lat":60,"lon":30,"timestamp":"yesterday"}`), 1},
		"places without a time":    {post(`{"points":[{"lat":60,"lon":30},{"lat":61,"lon":31}]}`), 2},
		"an unknown type, a place": {post(`{"_type":"fix","lat":60,"lon":30,"tst":1377177267}`), 1},
		"encrypted":                {post(`{"_type":"encrypted","data":"AAAA"}`), 1},
		"a line": {
			post(`{"type":"Feature","geometry":{"type":"LineString","coordinates":[[30,60],[31,61]]},"properties":{"foo":1}}`),
			1,
		},
		"too deep":               {post(strings.Repeat(`{"a":`, 40) + fix + strings.Repeat(`}`, 40)), 1},
		"more than one can give": {post(`[` + strings.Repeat(fix+",", ingest.MaxFixes+2) + fix + `]`), 3},
	} {
		m := ingest.Decode(tt.in, now)
		if m.Unread != tt.want {
			t.Errorf("%s: %d unread, want %d", name, m.Unread, tt.want)
		}
	}
	// The types of OwnTracks that are known to hold no position of the phone's, though some have a
	// place.
	for typ := range strings.FieldsSeq("transition waypoint waypoints lwt status steps dump beacon card configuration request cmd") {
		m := ingest.Decode(post(fmt.Sprintf(`{"_type":%q,"lat":60,"lon":30,"tst":1377177267,"waypoints":[{"lat":60,"lon":30,"tst":1377177267}]}`, typ)), now)
		if len(m.Fixes) != 0 || m.Unread != 0 || !m.SignOfLife || m.Answer.Body != "[]" {
			t.Errorf("%s: %+v", typ, m)
		}
	}
}

// TestUnreadQueryBesideBody: a query that was set up with the URL does not hide what the body is.
func TestUnreadQueryBesideBody(t *testing.T) {
	m := ingest.Decode(ingest.Request{
		Method: http.MethodPost, Query: "token=x", Header: http.Header{}, Body: []byte("what is this"),
	}, now)
	if m.Unread != 1 || !m.SignOfLife {
		t.Errorf("%+v", m)
	}
	m = ingest.Decode(ingest.Request{
		Method: http.MethodPost, Query: "lat=60&lon=30&timestamp=5", Header: http.Header{},
		Body: []byte(`{"hello":1}`),
	}, now)
	if m.Unread != 0 || len(m.Fixes) != 1 {
		t.Errorf("%+v", m)
	}
}
