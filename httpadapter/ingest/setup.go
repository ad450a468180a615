package ingest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"strings"
)

// Setup holds what a driver taps, scans or pastes to make a phone app send to one ingest URL.
// Whoever has one of its texts can send positions as that driver.
type Setup struct {
	Traccar      string // link for Traccar Client from 9 on; it asks, then configures itself. Also as a QR code
	TraccarQR    string // URL to scan in Traccar Client from 9 on
	TraccarStart string // link that starts tracking in Traccar Client
	TraccarStop  string // link that stops it
	OwnTracks    string // link that configures OwnTracks
	Overland     string // link that configures Overland
	// link that loads the profile of GPSLogger, which the server has at the ingest URL +
	// ".properties": see [Profile]
	GPSLogger    string
	GPSLoggerURL string // custom URL for GPSLogger, where the profile is not wanted
	OsmAnd       string // web address for OsmAnd: Plugins → Trip recording → Online tracking
	URL          string // the ingest URL itself, for any app that asks for no more
}

// Links gives the set-up texts for an ingest URL: an absolute http or https URL that ends in the
// ingest token and has no query.
//
// The apps are asked for a position every 10 or 15 seconds, or every 25 metres.
func Links(ingestURL string) (Setup, error) {
	u, err := parseIngestURL(ingestURL)
	if err != nil {
		return Setup{}, err
	}
	config, err := ownTracksConfig(ingestURL)
	if err != nil {
		return Setup{}, err
	}
	token := url.QueryEscape(path.Base(u.Path))
	self := url.QueryEscape(ingestURL)
	const settings = "accuracy=high&interval=15&distance=25&stop_detection=false&buffer=true"
	return Setup{
		Traccar:      "org.traccar.client://host/?url=" + self + "&id=" + token + "&" + settings,
		TraccarQR:    ingestURL + "?id=" + token + "&" + settings,
		TraccarStart: "org.traccar.client://action/start",
		TraccarStop:  "org.traccar.client://action/stop",
		OwnTracks:    "owntracks:///config?inline=" + config,
		Overland:     "overland://setup?url=" + self + "&token=" + token + "&device_id=phone&unique_id=no",
		GPSLogger:    "gpslogger://properties/" + ingestURL + ".properties",
		GPSLoggerURL: gpsLoggerURL(ingestURL),
		OsmAnd: ingestURL +
			"?lat={0}&lon={1}&timestamp={2}&accuracy={3}&altitude={4}&speed={5}&bearing={6}&eta={7}&dist={9}&speed_unit=ms",
		URL: ingestURL,
	}, nil
}

// Profile is the text of GPSLogger's profile for an ingest URL, a Java properties file in ASCII.
// Serve it as text/plain.
//
// GPSLogger tries a request three times and then loses it; so the profile also makes it send the
// whole session again, every hour and at its end. Doubles do no harm.
func Profile(ingestURL string) (string, error) {
	if _, err := parseIngestURL(ingestURL); err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range [][2]string{
		{"current_profile_name", "Tracking"},
		{"log_customurl_enabled", "true"},
		{"log_customurl_method", "GET"},
		{"log_customurl_url", gpsLoggerURL(ingestURL)},
		{"log_customurl_body", ""},
		{"log_customurl_headers", ""},
		{"log_plain_text", "true"}, // the file that the session is sent from again
		{"autocustomurl_enabled", "true"},
		{"autosend_enabled", "true"},
		{"autosend_frequency_minutes", "60"},
		{"autosend_frequency_whenstoppressed", "true"},
		{"time_before_logging", "15"},
		{"distance_before_logging", "0"},
		{"keep_fix", "true"},
	} {
		fmt.Fprintf(&b, "%s=%s\n", p[0], p[1])
	}
	return b.String(), nil
}

func gpsLoggerURL(ingestURL string) string {
	return ingestURL +
		"?lat=%LAT&lon=%LON&timestamp=%TIMESTAMP&accuracy=%ACC&altitude=%ALT&speed=%SPD&bearing=%DIR&batt=%BATT&speed_unit=ms"
}

// parseIngestURL checks that texts can be made of s by appending to it: printable ASCII without
// what a template or a properties file reads in a way of its own.
func parseIngestURL(s string) (*url.URL, error) {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' || c == '\\' || c == '{' || c == '%' {
			return nil, errors.New("the ingest URL has characters that some app would not keep; use ASCII letters, digits and -._~ in host, prefix and token")
		}
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return nil, errors.New("the ingest URL cannot be parsed") // err would show the token
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return nil, errors.New("the ingest URL must be absolute, http or https")
	case u.RawQuery != "", u.ForceQuery, u.Fragment != "", strings.HasSuffix(s, "#"):
		return nil, errors.New("the ingest URL must have no query and no fragment")
	case u.Path == "", strings.HasSuffix(u.Path, "/"):
		return nil, errors.New("the ingest URL must end in the token")
	}
	return u, nil
}

// ownTracksConfig is the base64 of OwnTracks' configuration. Apps differ in whether they decode the
// query before the base64, so the result is made to have letters and digits only: in base64 of
// ASCII text "+" and "/" come from ">", "~", "?" and DEL alone, and "=" from a length that is no
// multiple of three.
func ownTracksConfig(ingestURL string) (string, error) {
	b, err := json.Marshal(struct {
		Type       string `json:"_type"`
		Mode       int    `json:"mode"` // 3: HTTP
		URL        string `json:"url"`
		Monitoring int    `json:"monitoring"`              // 2: move
		Interval   int    `json:"moveModeLocatorInterval"` // seconds
	}{"configuration", 3, ingestURL, 2, 10})
	if err != nil {
		return "", err
	}
	b = bytes.ReplaceAll(b, []byte("~"), []byte(`\u007e`)) // ">" is escaped by Marshal, and "?" is in no ingest URL
	for len(b)%3 != 0 {
		b = append(b, ' ')
	}
	return base64.StdEncoding.EncodeToString(b), nil
}
