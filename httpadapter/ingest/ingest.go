// Package ingest reads what phone GPS apps send and turns it into fixes.
//
// A driver may use any of the apps that [Dialect] lists. Each posts to one URL that holds the driver's ingest token; which app it is shows in what
// it sends, so that one handler serves them all:
//
//	func (h *handler) ingest(w http.ResponseWriter, r *http.Request) {
//		app, driver, err := h.svc.AuthenticateDriver(r.Context(), tracking.IngestToken, r.PathValue("token"))
//		if err != nil {
//			http.Error(w, "unknown token", http.StatusUnauthorized) // or 503, if that is what err says
//			return
//		}
//		req, err := ingest.Read(w, r)
//		if err != nil {
//			http.Error(w, "too large", http.StatusRequestEntityTooLarge) // or the phone hung up
//			return
//		}
//		msg := ingest.Decode(req, h.svc.Options().Now())
//		for fixes := range msg.Batches(1000) {
//			if _, err := h.svc.ForApp(app).RecordFixes(r.Context(), driver, fixes); err != nil {
//				http.Error(w, "try again", http.StatusServiceUnavailable)
//				return
//			}
//		}
//		msg.Answer.Write(w)
//	}
//
// Answer once the fixes are committed and not before: a status of 2xx makes the app forget them. What [tracking.Service.RecordFixes] says of the single fixes
// does not matter here. The apps send the head of a queue again and again, so that one refused record would silence the phone for ever.
//
// # What is a fix
//
// [Decode] never fails. What it cannot read, it drops; the app is told that all is well. A record is a fix when it has a finite longitude within ±180,
// a finite latitude within ±90, and either a time that can be read or none at all, which means now. Other readings that cannot be read or make no sense
// (an accuracy below 0, a battery of 300 %) are unknown, and the fix stays. Whether a fix is old, doubled, from the future or at 0,0 is not judged here but
// by the service.
//
// Everything that is no fix is a sign of life: a heartbeat, a geofence that was crossed, a changed setting. So are, though they may have coordinates, a ping
// of OwnTracks (the last position with the present time), Overland's records of actions, visits and trips (likewise), and a record marked valid=false.
//
// The device id inside a request is ignored: the token says whose phone it is.
//
// # Units
//
// Fixes have metres, m/s, degrees and a battery of 0 to 1, whatever the app sends:
//
//	app             time                 speed   battery   unknown
//	Traccar 8       s                    knots   0 … 100   0
//	Traccar 9       ISO 8601             m/s     0 … 1     −1
//	Traccar 10      s                    knots   0 … 100   left out
//	OsmAnd          ms                   m/s     –         0
//	GPSLogger       s or ISO 8601        m/s     0 … 100   0
//	OwnTracks       s                    km/h    0 … 100   left out
//	Overland        ISO 8601, or −0700   m/s     0 … 1     −1
//
// Where 0 stands for unknown it also stands for 0, and nothing tells the two apart; accuracy, speed and bearing are unknown then. The parameter
// speed_unit (ms, kn or kmh), which the links of [Links] carry, says what the query form's speed is in; without it, knots.
//
// A time is a number of seconds below 2³¹ and of milliseconds from there on, or ISO 8601 with the offset as Z, +01:00, +0100 or +01, or
// "2006-01-02 15:04:05"; without an offset it is UTC. It is rounded to milliseconds.
package ingest

import (
	"bytes"
	"io"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// MaxBody is the longest body in bytes that [Read] takes. A point of Overland is about 600 bytes, and its largest batch has 1,000.
const MaxBody = 1 << 20

// MaxFixes is the most fixes that one request can give; further ones are dropped. It is ten times the largest batch that any of the apps sends.
const MaxFixes = 10_000

// Dialect is the way an app writes its positions.
type Dialect string

const (
	Unknown   Dialect = "unknown"   // nothing that any app sends
	Traccar8  Dialect = "traccar8"  // Traccar Client up to 8, and whatever else puts all in the query without being one of those below
	Traccar9  Dialect = "traccar9"  // Traccar Client 9: JSON, one nested location
	Traccar10 Dialect = "traccar10" // Traccar Client 10 and apps with its SDK: a form, a flat JSON object or an array of them
	OsmAnd    Dialect = "osmand"    // OsmAnd's online tracking, by the template of [Links]
	GPSLogger Dialect = "gpslogger" // GPSLogger's custom URL, by the template of [Links] or with %ALL
	OwnTracks Dialect = "owntracks" // OwnTracks in HTTP mode
	Overland  Dialect = "overland"  // Overland for iOS
)

// Request is what an app sent. The method does not matter, and of the headers only a few that name the app.
type Request struct {
	Method string
	Query  string // as it stands in the URL, without the "?"
	Header http.Header
	Body   []byte
}

// Read reads r to the end. A body of more than [MaxBody] bytes gives an *[http.MaxBytesError].
func Read(w http.ResponseWriter, r *http.Request) (Request, error) {
	req := Request{Method: r.Method, Query: r.URL.RawQuery, Header: r.Header}
	var err error
	if r.Body != nil {
		req.Body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBody))
	}
	return req, err
}

// Message is what a request says.
type Message struct {
	Dialect Dialect

	// Fixes in the order they were sent, but for Overland's current position, which comes first. Each has a valid place, a time in whole
	// milliseconds of the years 1 to 9999 in UTC, and finite readings.
	Fixes []tracking.Fix

	// SignOfLife: it holds no fix, but a phone has spoken. It is false, with no fixes, only for a request that no app sends: somebody opened the URL.
	SignOfLife bool

	// Encrypted: an OwnTracks message that cannot be read until the driver turns encryption off.
	Encrypted bool

	// Answer is what the app expects when all has been taken.
	Answer Answer
}

// Batches yields m's fixes in parts of at most n, and one empty part for a sign of life.
func (m Message) Batches(n int) iter.Seq[[]tracking.Fix] {
	if m.SignOfLife {
		return func(yield func([]tracking.Fix) bool) { yield(nil) }
	}
	return slices.Chunk(m.Fixes, n)
}

// Answer is an HTTP answer of status 200.
type Answer struct {
	ContentType string // "" with an empty body
	Body        string
}

// Write sends a.
func (a Answer) Write(w http.ResponseWriter) {
	if a.ContentType != "" {
		w.Header().Set("Content-Type", a.ContentType)
	}
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, a.Body)
}

// answerTo gives what the app expects. OwnTracks for Android shows an error for anything but a JSON array, also after its empty body;
// Overland keeps its batch for anything but this object; all others look at the status alone.
func answerTo(d Dialect) Answer {
	const contentType = "application/json; charset=utf-8"
	switch d {
	case OwnTracks:
		return Answer{contentType, "[]"}
	case Overland:
		return Answer{contentType, `{"result":"ok"}`}
	}
	return Answer{}
}

// Decode reads what an app sent at now, which is the time of a fix that has none. It does not keep r.
func Decode(r Request, now time.Time) Message {
	d := decoder{now: millis(now), query: r.Query, dialect: Unknown}
	body := bytes.TrimSpace(bytes.TrimPrefix(r.Body, []byte("\ufeff")))
	switch {
	case len(body) > 0 && (body[0] == '{' || body[0] == '['):
		// Whatever the content type says: a form never begins like this.
		d.json(body)
		if d.dialect == Unknown && len(d.fixes) == 0 {
			d.form(nil)
		}
	default:
		d.form(body)
	}
	if d.dialect == Unknown || d.dialect == Traccar8 {
		d.guess(r.Header, body)
	}
	m := Message{Dialect: d.dialect, Fixes: d.fixes, Encrypted: d.encrypted, Answer: answerTo(d.dialect)}
	m.SignOfLife = len(m.Fixes) == 0 && (m.Dialect != Unknown || len(body) > 0 || r.Method == http.MethodPost)
	return m
}

// decoder collects what a request holds.
type decoder struct {
	now       time.Time
	query     string
	dialect   Dialect
	fixes     []tracking.Fix
	encrypted bool
}

// add keeps f, if it is one.
func (d *decoder) add(f tracking.Fix, ok bool) {
	if ok && len(d.fixes) < MaxFixes {
		d.fixes = append(d.fixes, f)
	}
}

// guess names the app by what it says of itself, where the content leaves it open. It decides about the answer only.
func (d *decoder) guess(h http.Header, body []byte) {
	agent := strings.ToLower(h.Get("User-Agent"))
	isJSON := strings.HasPrefix(strings.ToLower(h.Get("Content-Type")), "application/json")
	switch {
	case d.dialect == Traccar8:
		switch {
		case strings.Contains(agent, "osmand"):
			d.dialect = OsmAnd
		case strings.Contains(agent, "gpslogger"):
			d.dialect = GPSLogger
		}
	case strings.Contains(agent, "overland"), bytes.Contains(body, []byte(`"locations"`)):
		d.dialect = Overland
	case strings.Contains(agent, "owntracks"), bytes.Contains(body, []byte(`"_type"`)), h.Get("X-Limit-U") != "", h.Get("X-Limit-D") != "":
		d.dialect = OwnTracks
	case len(body) == 0 && isJSON:
		d.dialect = OwnTracks // its empty message
	}
}

// parameters calls f for each parameter of a query or form that can be read, in order.
func parameters(s string, f func(key, value string)) {
	for pair := range strings.SplitSeq(s, "&") {
		k, v, _ := strings.Cut(pair, "=")
		key, err1 := url.QueryUnescape(k)
		value, err2 := url.QueryUnescape(v)
		if err1 == nil && err2 == nil {
			f(key, value)
		}
	}
}
