package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/examples/courier/internal/trace"
	"github.com/seed-8aba7b13/tracking/httpadapter"
	"github.com/seed-8aba7b13/tracking/store/memory"
)

// realService is the service behind a real HTTP server.
func realService(t *testing.T) (svc *tracking.Service, url string) {
	t.Helper()
	svc, err := tracking.New(memory.New(), &tracking.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := httpadapter.New(svc, &httpadapter.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return svc, server.URL
}

// drivenAs plays a file as an app and returns the history of its trip, with the first fix at the
// beginning of 1970.
func drivenAs(t *testing.T, svc *tracking.Service, server string, args ...string) (out string, history []trace.Point) {
	t.Helper()
	inv, err := svc.InviteDriver(t.Context(), tracking.NewInvite{})
	if err != nil {
		t.Fatal(err)
	}
	out, log, err := courier(t, append([]string{"-server", server, "-code", fmt.Sprint(inv.Code), "-fast"}, args...)...)
	if err != nil || log != "" {
		t.Fatalf("error %v, log %q; output:\n%s", err, log, out)
	}
	trips, _, err := svc.Trips(t.Context(), tracking.TripFilter{DriverID: inv.DriverID})
	if err != nil || len(trips) != 1 || trips[0].Status != tracking.TripStopped {
		t.Fatalf("the trips of the driver are %+v, error %v; want one that has stopped", trips, err)
	}
	_, path, err := svc.TripPath(t.Context(), trips[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	var first time.Time
	for f, err := range path {
		if err != nil {
			t.Fatal(err)
		}
		if first.IsZero() {
			first = f.Time
		}
		history = append(history, trace.Point{
			LngLat: f.LngLat, Time: time.UnixMilli(0).UTC().Add(f.Time.Sub(first)), Speed: f.Speed, Bearing: f.Bearing,
		})
	}
	return out, history
}

// inFloat32 is a place as an app with coordinates of 32 bits sends it.
func inFloat32(p tracking.LngLat) tracking.LngLat {
	narrow := func(f float64) float64 {
		v, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', -1, 32), 64)
		return v
	}
	return tracking.LngLat{Lng: narrow(p.Lng), Lat: narrow(p.Lat)}
}

// TestMunichAsEveryApp plays the drive through Munich, whose phone is offline for five minutes and
// sends a batch twice, in each dialect. The history is each time that of the driver app, which is
// the trace: to the second and the last digit, but for OsmAnd, whose coordinates have 32 bits (half
// a metre at most).
func TestMunichAsEveryApp(t *testing.T) {
	dir := dataDir(t)
	munich := filepath.Join(dir, "barefoot", "munich-1hz.json")
	tr, err := trace.ReadFile(munich)
	if err != nil {
		t.Fatal(err)
	}
	svc, server := realService(t)
	_, plain := drivenAs(t, svc, server, munich)
	want := shifted(tr.Points, time.UnixMilli(0).Sub(tr.Points[0].Time))
	if d := cmp.Diff(want, plain); d != "" {
		t.Fatalf("the driver app's history is not the trace (-trace +history):\n%s", d)
	}
	for _, name := range append([]string{""}, appNames()...) {
		t.Run("as "+name, func(t *testing.T) {
			out, got := drivenAs(t, svc, server, "-as", name, "-offline", "5m", "-twice", munich)
			want := plain
			if name == "osmand" {
				want = slices.Clone(plain)
				for i := range want {
					want[i].LngLat = inFloat32(want[i].LngLat)
					if off := tracking.Distance(want[i].LngLat, plain[i].LngLat); off > 0.5 {
						t.Errorf("point %d is off by %.2f m", i, off)
					}
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("the history is not the driver app's: %d points, want %d (-want +got)\n%.2000s", len(got),
					len(want), d)
			}
			words := map[string]string{
				"": "Sent 1494 fixes:\n  live         894  kept: it was the live position\n  late         299  kept: it joined the path, a newer one was live already\n" +
					// out of the tunnel
					"  jump           1  set aside: too far from the fix before it; in the path only if the next fix agrees with it\n  duplicate    300  ",
				"gpslogger": "Sent 2988 fixes:\n  taken       2988  ", // and the whole session again
			}
			said, own := words[name]
			if !own {
				said = "Sent 1494 fixes:\n  taken       1494  acknowledged"
			}
			if !strings.Contains(out, said) {
				t.Errorf("it says\n%swant\n%s", out, said)
			}
		})
	}
}

// TestUnits: speed and bearing arrive in m/s and degrees from every app, as exactly as the app
// sends them.
func TestUnits(t *testing.T) {
	svc, server := realService(t)
	// 3.5 m/s and 90°, then unknown
	file := write(t, strings.NewReplacer("45.3", "45.1001", "14.3", "14.1").Replace(driveGPX))
	for name, within := range map[string]float64{
		"": 0, "traccar8": 1e-4, "traccar9": 0, "traccar10": 0.01, "osmand": 0, "gpslogger": 0, "owntracks": 0.5 / 3.6,
		"overland": 0.5,
	} {
		t.Run(name, func(t *testing.T) {
			_, got := drivenAs(t, svc, server, "-as", name, file)
			if len(got) != 2 || !got[0].Speed.Known || !got[0].Bearing.Known || got[0].Bearing.Value != 90 ||
				got[1].Speed.Known || got[1].Bearing.Known {
				t.Fatalf("the history is %+v", got)
			}
			if !cmp.Equal(got[0].Speed.Value, 3.5, cmpopts.EquateApprox(0, within)) {
				t.Errorf("the speed is %v m/s, want 3.5 within %v", got[0].Speed.Value, within)
			}
		})
	}
}

// roundTrip stands for the network and a server.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answering(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Body: io.NopCloser(strings.NewReader(body))}
}

// gpsPhoneOf is a phone of an app before a network.
func gpsPhoneOf(t *testing.T, name string, patience time.Duration, network roundTrip) *gpsPhone {
	t.Helper()
	c := newClient("http://server", patience, io.Discard)
	c.http.Transport = roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Path == "/v1/driver/phone" {
			return answering(200, `{"success":true,"data":{"ingest_url":"http://server/ingest/tok","apps":[`+
				`{"name":"OsmAnd","template":"http://server/ingest/tok?lat={0}&lon={1}&timestamp={2}&accuracy={3}&altitude={4}&speed={5}&bearing={6}&eta={7}&dist={9}&speed_unit=ms"},`+
				`{"name":"GPSLogger","template":"http://server/ingest/tok?lat=%LAT&lon=%LON&timestamp=%TIMESTAMP&accuracy=%ACC&altitude=%ALT&speed=%SPD&bearing=%DIR&batt=%BATT&speed_unit=ms"}]}}`), nil
		}
		return network(r)
	})
	p, err := newGPSPhone(t.Context(), &appPhone{client: c, out: io.Discard}, name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestMessages shows what each app sends for a point that has everything and one that has little.
func TestMessages(t *testing.T) {
	at := time.Date(2026, 3, 4, 5, 6, 7, 890e6, time.UTC)
	points := []trace.Point{
		{
			LngLat: tracking.LngLat{Lng: 11.564388282625075, Lat: 48.16350662940509}, Time: at,
			Speed: tracking.Known(12.34), Bearing: tracking.Known(271.6),
		},
		{LngLat: tracking.LngLat{Lng: -5, Lat: 7}, Time: at.Add(time.Second)},
	}
	created := regexp.MustCompile(`"created_at":\d+`)
	for name, want := range map[string][]string{
		"traccar8": {
			"POST http://server/ingest/tok?id=tok&timestamp=1772600767&lat=48.16350662940509&lon=11.564388282625075&speed=23.9869856&bearing=271.6&altitude=0.0&accuracy=0.0&batt=80.0",
			"POST http://server/ingest/tok?id=tok&timestamp=1772600768&lat=7&lon=-5&speed=0.0&bearing=0.0&altitude=0.0&accuracy=0.0&batt=80.0",
		},
		"traccar9": {
			`POST http://server/ingest/tok {"device_id":"tok","location":{"_":"\u0026id=tok\u0026lat=48.16350662940509\u0026lon=11.564388282625075\u0026timestamp=2026-03-04T05:06:07.890Z\u0026",` +
				`"activity":{"type":"in_vehicle"},"battery":{"is_charging":false,"level":0.8},"coords":{"accuracy":-1,"altitude":0,"heading":271.6,"latitude":48.16350662940509,"longitude":11.564388282625075,"speed":12.34},` +
				`"event":"motionchange","extras":{},"is_moving":true,"odometer":0,"timestamp":"2026-03-04T05:06:07.890Z"}}`,
			`POST http://server/ingest/tok {"device_id":"tok","location":{"_":"\u0026id=tok\u0026lat=7\u0026lon=-5\u0026timestamp=2026-03-04T05:06:08.890Z\u0026",` +
				`"activity":{"type":"in_vehicle"},"battery":{"is_charging":false,"level":0.8},"coords":{"accuracy":-1,"altitude":0,"heading":-1,"latitude":7,"longitude":-5,"speed":-1},` +
				`"event":"motionchange","extras":{},"is_moving":true,"odometer":0,"timestamp":"2026-03-04T05:06:08.890Z"}}`,
		},
		"traccar10": {
			"POST http://server/ingest/tok id=tok&lat=48.16350662940509&lon=11.564388282625075&timestamp=1772600767&speed=23.99&bearing=271.6&batt=80.0&charge=false",
			"POST http://server/ingest/tok id=tok&lat=7&lon=-5&timestamp=1772600768&batt=80.0&charge=false",
		},
		"osmand": {
			"GET http://server/ingest/tok?lat=48.163506&lon=11.564388&timestamp=1772600767890&accuracy=0.0&altitude=0.0&speed=12.34&bearing=271.6&eta=0&dist=0&speed_unit=ms",
			"GET http://server/ingest/tok?lat=7&lon=-5&timestamp=1772600768890&accuracy=0.0&altitude=0.0&speed=0.0&bearing=0.0&eta=0&dist=0&speed_unit=ms",
		},
		"gpslogger": {
			"GET http://server/ingest/tok?lat=48.16350662940509&lon=11.564388282625075&timestamp=1772600767&accuracy=0.0&altitude=0.0&speed=12.34&bearing=271.6&batt=80.0&speed_unit=ms",
			"GET http://server/ingest/tok?lat=7&lon=-5&timestamp=1772600768&accuracy=0.0&altitude=0.0&speed=0.0&bearing=0.0&batt=80.0&speed_unit=ms",
		},
		"owntracks": {
			`POST http://server/ingest/tok {"_type":"location","batt":80,"bs":1,"cog":272,"conn":"m","created_at":0,"lat":48.16350662940509,"lon":11.564388282625075,"m":2,"t":"t","tid":"CO","topic":"owntracks/courier/phone","tst":1772600767,"vel":44}`,
			`POST http://server/ingest/tok {"_type":"location","batt":80,"bs":1,"conn":"m","created_at":0,"lat":7,"lon":-5,"m":2,"t":"t","tid":"CO","topic":"owntracks/courier/phone","tst":1772600768}`,
		},
		"overland": {
			`POST http://server/ingest/tok {"locations":[{"geometry":{"coordinates":[11.564388282625075,48.16350662940509],"type":"Point"},"properties":{"altitude":0,"battery_level":0.8,"battery_state":"unplugged","course":272,"course_accuracy":-1,"device_id":"phone","horizontal_accuracy":-1,"motion":["driving"],"speed":12,"speed_accuracy":-1,"timestamp":"2026-03-04T05:06:07Z","vertical_accuracy":-1,"wifi":""},"type":"Feature"},` +
				`{"geometry":{"coordinates":[-5,7],"type":"Point"},"properties":{"altitude":0,"battery_level":0.8,"battery_state":"unplugged","course":-1,"course_accuracy":-1,"device_id":"phone","horizontal_accuracy":-1,"motion":["driving"],"speed":-1,"speed_accuracy":-1,"timestamp":"2026-03-04T05:06:08Z","vertical_accuracy":-1,"wifi":""},"type":"Feature"}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			p := gpsPhoneOf(t, name, 0, func(r *http.Request) (*http.Response, error) {
				text := r.Method + " " + r.URL.String()
				if body, err := io.ReadAll(r.Body); err != nil {
					return nil, err
				} else if len(body) > 0 {
					text += " " + string(body)
				}
				got = append(got, created.ReplaceAllString(text, `"created_at":0`))
				return answering(200, map[string]string{"owntracks": "[]", "overland": `{"result":"ok"}`}[name]), nil
			})
			p.app.order = nil // GPSLogger's is random
			outcomes, err := p.send(t.Context(), points)
			if err != nil || !slices.Equal(outcomes, []tracking.FixOutcome{taken, taken}) {
				t.Errorf("outcomes %v, error %v", outcomes, err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got)\n%s", d)
			}
		})
	}
}

// TestOverlandBacklog: a long queue goes in batches of 200, each but the last with the newest
// position.
func TestOverlandBacklog(t *testing.T) {
	var seconds []float64
	for i := range 450 {
		seconds = append(seconds, float64(i))
	}
	var got []string
	p := gpsPhoneOf(t, "overland", 0, func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		got = append(got,
			fmt.Sprint(strings.Count(string(body), `"Feature"`), strings.Contains(string(body), `"current":`)))
		return answering(200, `{"result":"ok"}`), err
	})
	if outcomes, err := p.send(t.Context(), drawn(seconds...)); err != nil || len(outcomes) != 450 {
		t.Errorf("%d outcomes, error %v", len(outcomes), err)
	}
	if want := []string{"201 true", "201 true", "50 false"}; !slices.Equal(got, want) {
		t.Errorf("features, and whether there is a current one: %v, want %v", got, want)
	}
}

// TestRetries: a server that fails four times gets a message again as the app does it.
func TestRetries(t *testing.T) {
	for _, tt := range []struct {
		name  string
		waits []float64 // seconds before the second … try
		want  tracking.FixOutcome
	}{
		{"traccar8", []float64{30, 30, 30, 30}, taken},
		{"traccar9", []float64{1, 1, 1, 1}, taken},
		{"traccar10", []float64{5, 10, 20, 40}, taken},
		{"osmand", []float64{0, 0, 0, 0}, taken},
		{"gpslogger", []float64{30, 60}, lost},
		{"owntracks", []float64{1, 2, 4, 8}, taken},
		{"overland", []float64{30, 30, 30, 30}, taken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var at []float64
				last := time.Now()
				p := gpsPhoneOf(t, tt.name, time.Hour, func(r *http.Request) (*http.Response, error) {
					at = append(at, time.Since(last).Seconds())
					last = time.Now()
					switch len(at) {
					case 1:
						return answering(500, `[]{"result":"ok"}`), nil
					case 2:
						return nil, errors.New("no network")
					case 3:
						return answering(404, ""), nil
					case 4: // it takes a time-out to notice
						<-r.Context().Done()
						last = time.Now()
						return nil, r.Context().Err()
					}
					return answering(200, map[string]string{
						"owntracks": "[]", "overland": `{"result":"ok"}`,
					}[tt.name]), nil
				})
				outcomes, err := p.send(t.Context(), drawn(0))
				if err != nil || !slices.Equal(outcomes, []tracking.FixOutcome{tt.want}) {
					t.Errorf("outcomes %v, error %v; want %s", outcomes, err, tt.want)
				}
				if !slices.Equal(at[1:], tt.waits) {
					t.Errorf("it waits %v s, want %v", at[1:], tt.waits)
				}
			})
		})
	}
}

// TestWrongAnswers: what the app does not take for a yes is sent again, and after our patience
// given up.
func TestWrongAnswers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status int
		body   string
		ok     bool
	}{
		{"traccar8", 302, "", true},
		{"traccar8", 400, "", false},
		{"traccar9", 204, "", true},
		{"traccar9", 302, "", false},
		{"traccar10", 404, "", false},
		{"osmand", 429, "", false},
		{"owntracks", 200, "", false},
		{"owntracks", 200, "null", false},
		{"owntracks", 200, `[{"_type":"cmd"}]`, true},
		{"overland", 200, "[]", false},
		{"overland", 200, `{"error":"x"}`, false},
		{"overland", 201, `{"result":"ok"}`, false},
	} {
		p := gpsPhoneOf(t, tt.name, 0, func(*http.Request) (*http.Response, error) {
			return answering(tt.status, tt.body), nil
		})
		p.app.wait = 1 // longer than no patience
		_, err := p.send(t.Context(), drawn(0))
		if (err == nil) != tt.ok {
			t.Errorf("%s after %d %q: error %v", tt.name, tt.status, tt.body, err)
		}
		if err != nil && (strings.Contains(err.Error(), "tok") || !errors.Is(err, errNotTaken)) {
			t.Errorf("%s after %d %q: error %v", tt.name, tt.status, tt.body, err)
		}
	}
}

// TestHello: what has no position is taken, and no fix comes of it.
func TestHello(t *testing.T) {
	var got []string
	network := func(r *http.Request) (*http.Response, error) {
		if r.URL.Path != "/ingest/tok" {
			return answering(200, `{"success":true,"data":{"trip":{"_id":"t"}}}`), nil
		}
		body, err := io.ReadAll(r.Body)
		form, _ := url.ParseQuery(string(body))
		got = append(got,
			fmt.Sprint(len(body) == 0, form.Has("notificationToken"), form.Has("timestamp"),
				strings.Contains(string(body), "lat")))
		return answering(200, "[]"), err
	}
	for _, name := range appNames() {
		if err := gpsPhoneOf(t, name, 0, network).start(t.Context(), time.Now()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if want := []string{
		"false true false false", "false false true false", "false false false false", "true false false false",
	}; !slices.Equal(got, want) {
		t.Errorf("(empty, token, time, place) %v, want %v", got, want)
	}
}

// TestOffline: what is measured offline goes when the phone is online again and nothing newer is
// due; the last batch goes twice if asked for.
func TestOffline(t *testing.T) {
	for _, tt := range []struct {
		name   string
		points []trace.Point
		how    manner
		takes  []time.Duration
		want   []call
	}{
		{
			name: "fast", points: drawn(0, 10, 20, 30, 40), how: manner{
				fast: true, offline: 20 * time.Second, twice: true,
			},
			want: []call{
				{Verb: "start", At: -40}, {Verb: "send", Points: []float64{-40, -10, 0}},
				{Verb: "send", Points: []float64{-30, -20}}, {Verb: "send", Points: []float64{-30, -20}},
				{Verb: "stop"},
			},
		},
		{
			name: "in its time", points: drawn(0, 10, 20, 30, 40), how: manner{offline: 15 * time.Second},
			want: []call{
				{Verb: "start"}, {Verb: "send", Points: []float64{0}}, {Verb: "send", When: 10, Points: []float64{10}},
				{Verb: "send", When: 27.5, Points: []float64{20}}, {
					Verb: "send", When: 30, Points: []float64{30},
				}, {Verb: "send", When: 40, Points: []float64{40}}, {Verb: "stop", When: 40, At: 40},
			},
		},
		{
			name: "what is newer goes first", points: drawn(0, 10, 20, 28, 40), how: manner{offline: 15 * time.Second},
			takes: []time.Duration{28 * time.Second},
			want: []call{
				{Verb: "start"}, {Verb: "send", Points: []float64{0}}, {
					Verb: "send", When: 28, Points: []float64{10, 28},
				}, {Verb: "send", When: 28, Points: []float64{20}},
				{Verb: "send", When: 40, Points: []float64{40}}, {Verb: "stop", When: 40, At: 40},
			},
		},
		{
			name: "to the end", points: drawn(0, 10), how: manner{offline: time.Minute},
			want: []call{
				{Verb: "start"}, {Verb: "send", When: 35, Points: []float64{0, 10}}, {Verb: "stop", When: 35, At: 10},
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := fakePhone{began: time.Now(), takes: tt.takes}
				rep, err := play(t.Context(), &p, tt.points, tt.how)
				if err != nil || rep.left != 0 {
					t.Errorf("report %+v, error %v", rep, err)
				}
				if d := cmp.Diff(tt.want, p.calls); d != "" {
					t.Errorf("(-want +got)\n%s", d)
				}
			})
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := gpsPhoneOf(t, "osmand", time.Hour, func(*http.Request) (*http.Response, error) {
		return nil, errors.New("down")
	}).send(ctx, drawn(0)); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
