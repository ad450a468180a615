package ingest_test

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/ingest"
)

const ingestURL = "https://track.example.com:8443/app/ingest/t0ken_A-z"

func links(t *testing.T, ingestURL string) ingest.Setup {
	t.Helper()
	s, err := ingest.Links(ingestURL)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func query(t *testing.T, link string) url.Values {
	t.Helper()
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

func TestLinks(t *testing.T) {
	s := links(t, ingestURL)

	settings := url.Values{
		"id": {"t0ken_A-z"}, "accuracy": {"high"}, "interval": {"15"}, "distance": {"25"}, "stop_detection": {"false"},
		"buffer": {"true"},
	}
	if d := cmp.Diff(settings, query(t, s.TraccarQR)); d != "" {
		t.Errorf("TraccarQR (-want +got):\n%s", d)
	}
	if base, _, _ := strings.Cut(s.TraccarQR, "?"); base != ingestURL {
		t.Errorf("TraccarQR %s", s.TraccarQR)
	}
	settings.Set("url", ingestURL)
	if d := cmp.Diff(settings, query(t, s.Traccar)); d != "" ||
		!strings.HasPrefix(s.Traccar, "org.traccar.client://host/?url=https%3A%2F%2F") {
		t.Errorf("Traccar %s (-want +got):\n%s", s.Traccar, d)
	}
	want := url.Values{"url": {ingestURL}, "token": {"t0ken_A-z"}, "device_id": {"phone"}, "unique_id": {"no"}}
	if d := cmp.Diff(want, query(t, s.Overland)); d != "" || !strings.HasPrefix(s.Overland, "overland://setup?") {
		t.Errorf("Overland %s (-want +got):\n%s", s.Overland, d)
	}
	if s.GPSLogger != "gpslogger://properties/"+ingestURL+".properties" ||
		s.TraccarStart != "org.traccar.client://action/start" || s.TraccarStop != "org.traccar.client://action/stop" ||
		s.URL != ingestURL {
		t.Errorf("%+v", s)
	}
}

func TestOwnTracksLink(t *testing.T) {
	for _, u := range []string{
		ingestURL, ingestURL + "a", ingestURL + "ab", "http://[::1]:8080/~~~/~a~/ingest/x~", "https://h/ingest/>>>>",
		"https://h/i/a&b<c",
	} {
		inline, ok := strings.CutPrefix(links(t, u).OwnTracks, "owntracks:///config?inline=")
		if !ok || !regexp.MustCompile(`^[A-Za-z0-9]+$`).MatchString(inline) {
			t.Errorf("%s: %s is changed by decoding a query", u, inline)
		}
		b, err := base64.StdEncoding.DecodeString(inline)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{
			"_type": "configuration", "mode": 3.0, "url": u, "monitoring": 2.0, "moveModeLocatorInterval": 10.0,
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", u, d)
		}
	}
}

// What the apps make of our templates is read as what they mean.
func TestTemplates(t *testing.T) {
	want := at(11.5, 48.1, utc("2013-08-22T13:14:27Z"))
	want.Accuracy, want.Speed, want.Bearing = known(4), known(12.5), known(270)
	s := links(t, ingestURL)

	osmAnd := strings.NewReplacer("{0}", "48.1", "{1}", "11.5", "{2}", "1377177267000", "{3}", "4.0", "{4}", "510.0",
		"{5}", "12.5", "{6}", "270.0", "{7}", "1377178000000", "{8}", "0", "{9}", "9000", "{10}", "0").Replace(s.OsmAnd)
	if d := cmp.Diff([]tracking.Fix{want}, decodeURL(t, osmAnd, ingest.OsmAnd), approx); d != "" {
		t.Errorf("OsmAnd (-want +got):\n%s", d)
	}
	want.Battery = known(0.5)
	fill := strings.NewReplacer("%LAT", "48.1", "%LON", "11.5", "%TIMESTAMP", "1377177267", "%ACC", "4.0", "%ALT",
		"510.0", "%SPD", "12.5", "%DIR", "270.0", "%BATT", "50.0")
	if d := cmp.Diff([]tracking.Fix{want}, decodeURL(t, fill.Replace(s.GPSLoggerURL), ingest.GPSLogger),
		approx); d != "" {
		t.Errorf("GPSLogger (-want +got):\n%s", d)
	}

	profile, err := ingest.Profile(ingestURL)
	if err != nil {
		t.Fatal(err)
	}
	props := map[string]string{}
	for line := range strings.Lines(profile) {
		k, v, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if _, twice := props[k]; !ok || twice || strings.ContainsAny(line, "\\!#\r") {
			t.Errorf("line %q", line)
		}
		props[k] = v
	}
	if props["log_customurl_url"] != s.GPSLoggerURL || props["log_customurl_enabled"] != "true" ||
		props["log_customurl_method"] != "GET" {
		t.Errorf("profile %v", props)
	}
}

func decodeURL(t *testing.T, link string, dialect ingest.Dialect) []tracking.Fix {
	t.Helper()
	_, q, _ := strings.Cut(link, "?")
	m := ingest.Decode(request(q, "", ""), now)
	if m.Dialect != dialect {
		t.Errorf("%s: %s, want %s", link, m.Dialect, dialect)
	}
	return m.Fixes
}

func TestLinksRefused(t *testing.T) {
	for _, s := range []string{
		"", "/ingest/secret", "ftp://h/ingest/secret", "https:///ingest/secret", "https://h", "https://h/ingest/",
		"https://h/ingest/secret?a=b", "https://h/ingest/secret?", "https://h/ingest/secret#x",
		"https://h/ingest/secret#",
		"https://h/ingest/secret%20", "https://h/ingest/secret{0}", "https://h/ingest/secret\\n",
		"https://h/ingest/secret\nx=y", "https://hö/ingest/secret", "https://h:port/ingest/secret",
	} {
		_, err := ingest.Links(s)
		_, err2 := ingest.Profile(s)
		if err == nil || err2 == nil {
			t.Errorf("%q: taken", s)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: the error shows it: %v", s, err)
		}
	}
}
