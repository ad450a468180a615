// Package ingest reads what phone GPS apps send and turns it into fixes.
//
// A driver may use any of the apps that [Dialect] lists. Each posts to one URL that holds the
// driver's ingest token; which app it is shows in what it sends, so that one handler serves them
// all:
//
//	func (h *handler) ingest(w http.ResponseWriter, r *http.Request) {
//		app, driver, err := h.svc.DriverByToken(r.Context(), tracking.TokenIngest, r.PathValue("token"))
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
//		svc := h.svc.ForApp(app).AsDriver(driver)
//		for fixes := range msg.Batches(1000) {
//			if _, err := svc.RecordFixes(r.Context(), driver.ID, fixes); err != nil {
//				http.Error(w, "try again", http.StatusServiceUnavailable)
//				return
//			}
//		}
//		if msg.Unread > 0 {
//			_ = svc.NoteUnread(r.Context(), driver.ID, msg.Unread) // and a line in the log, without the content
//		}
//		msg.Answer.Write(w)
//	}
//
// Answer once the fixes are committed and not before: a status of 2xx makes the app forget them.
// What [tracking.Service.RecordFixes] says of the single fixes does not matter here. The apps send
// the head of a queue again and again, so that one refused record would silence the phone for ever.
//
// # What is a fix
//
// [Decode] never fails. A record is a fix when it has a finite longitude within ±180, a finite
// latitude within ±90, and a time that can be read. Where one of the apps below would put it, it
// may have no time, which means now. Other readings that cannot be read or make no sense (an
// accuracy below 0, a battery of 300 %) are unknown, and the fix stays. Whether a fix is old,
// doubled, from the future or at 0,0 is not judged here but by the service.
//
// JSON is read by element and not by container: any object in any nesting of arrays and objects, up
// to 32 deep, that has a place and a time is a fix. The place is lat and lon, or latitude and
// longitude, flat or in coords, location, position and the like; a GeoJSON Feature or Point; or
// lnglat, an array. The time is timestamp, time, tst, or another usual name, also when it is
// spelled with capitals, underscores or hyphens. So is one that lies in another; only what a fix
// says of its phone (extras, activity, geofence …) gives no more of them. Several JSON values may
// follow each other.
//
// What is wrong in one place takes nothing from the others. A value that is no JSON (NaN,
// undefined, a text with a control character or a wrong escape) is unknown, and the reading goes on
// after it; of a body that breaks off the elements before the break are read.
//
// What is no fix is a sign of life: a heartbeat, a geofence that was crossed, a changed setting. So
// are, though they may have coordinates, every type of OwnTracks' but location with all that it
// holds, a ping of OwnTracks (the last position with the present time), Overland's records of
// actions, visits and trips (likewise), and a record marked valid=false.
//
// What was meant as a position, or is in a form of which nothing is known, is dropped too, and the
// app is told that all is well; it is counted in [Message].Unread.
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
//	Colota          s                    m/s     0 … 100   left out
//	any other       any                  m/s     either    −1
//
// Where 0 stands for unknown it also stands for 0, and nothing tells the two apart; accuracy, speed
// and bearing are unknown then. The parameter speed_unit (ms, kn or kmh), which the links of
// [Links] carry, says what the speed is in; without it, knots where Traccar Client would send it,
// that is in a query, a form, and a flat object that is the body or in the array that is the body.
//
// Colota takes the shapes of other apps too, and keeps m/s in them: of OwnTracks, where it is told
// by bear, or by bs without any of the names that only OwnTracks has; and of Traccar's query, where
// its charge is a digit.
//
// A time is a number of seconds below 2³¹, of milliseconds from there on, of microseconds or
// nanoseconds where that is between 2001 and 2286; or ISO 8601 with the offset as Z, +01:00, +0100
// or +01, or "2006-01-02 15:04:05"; without an offset it is UTC. It is rounded to milliseconds.
// Numbers may have a decimal comma where they are texts.
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

// MaxFixes is the most fixes that one request can give; further ones are dropped, and count as
// unread. It is ten times the largest batch that any of the apps sends.
const MaxFixes = 10_000

// Dialect is the way an app writes its positions.
type Dialect string

const (
	Unknown Dialect = "unknown" // nothing that any app sends
	// Traccar Client up to 8, and whatever else puts all in the query without being one of those
	// below
	Traccar8 Dialect = "traccar8"
	Traccar9 Dialect = "traccar9" // Traccar Client 9: JSON, one nested location
	// Traccar Client 10 and apps with its SDK: a form, a flat JSON object or an array of them
	Traccar10 Dialect = "traccar10"
	OsmAnd    Dialect = "osmand"    // OsmAnd's online tracking, by the template of [Links]
	GPSLogger Dialect = "gpslogger" // GPSLogger's custom URL, by the template of [Links] or with %ALL
	OwnTracks Dialect = "owntracks" // OwnTracks in HTTP mode
	Overland  Dialect = "overland"  // Overland for iOS, and GeoJSON features
	// Colota by its own names, or by those of its template for Traccar; in OwnTracks' shape it is
	// OwnTracks
	Colota Dialect = "colota"
)

// Request is what an app sent. The method does not matter, and of the headers only a few that name
// the app.
type Request struct {
	Method string
	Query  string // as it stands in the URL, without the "?"
	Header http.Header
	Body   []byte
}

// Message is what a request says.
type Message struct {
	Dialect Dialect

	// Fixes in the order they were sent, but for Overland's current position, which comes first.
	// Each has a valid place, a time in whole milliseconds of the years 1 to 9999 in UTC, and
	// finite readings.
	Fixes []tracking.Fix

	// SignOfLife: it holds no fix, but a phone has spoken. It is false, with no fixes, only for a
	// request that no app sends: somebody opened the URL.
	SignOfLife bool

	// Unread is how many records, or places in them, were sent in a form that is not known; 1 where
	// that cannot be told. It is 0 for what is known and holds no position.
	Unread int

	// Encrypted: an OwnTracks message that cannot be read until the driver turns encryption off. It
	// counts as unread.
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

// answerTo gives what the app expects. OwnTracks for Android shows an error for anything but a JSON
// array, also after its empty body; Overland keeps its batch for anything but this object; all
// others look at the status alone.
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

// Decode reads what an app sent at now, which is the time of a fix that has none. It does not keep
// r.
func Decode(r Request, now time.Time) Message {
	d := decoder{now: millis(now), query: r.Query, dialect: Unknown}
	d.speedUnit = d.parameters(r.Query)["speed_unit"]
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
	if len(d.fixes) == 0 && d.unread == 0 {
		if d.unread = d.timeless; d.unread == 0 && d.strange {
			d.unread = 1
		}
	}
	if d.dialect == Unknown || d.dialect == Traccar8 {
		d.guess(r.Header, body)
	}
	m := Message{
		Dialect: d.dialect, Fixes: d.fixes, Unread: d.unread, Encrypted: d.encrypted, Answer: answerTo(d.dialect),
	}
	m.SignOfLife = len(m.Fixes) == 0 && (m.Dialect != Unknown || len(body) > 0 || r.Method == http.MethodPost)
	return m
}

// decoder collects what a request holds.
type decoder struct {
	now       time.Time
	query     string
	speedUnit string // what the query says of it
	dialect   Dialect
	fixes     []tracking.Fix
	encrypted bool

	unread int // what was meant as a position and could not be read
	// places without a time where one is needed; with other fixes beside them they are those of
	// something else
	timeless int
	strange  bool // there is something of which no name is known
}

// add keeps f, if it is one.
func (d *decoder) add(f tracking.Fix, ok bool) {
	if ok && len(d.fixes) < MaxFixes {
		d.fixes = append(d.fixes, f)
	} else {
		d.unread++
	}
}

// guess names the app by what it says of itself, where the content leaves it open. It decides about
// the answer only.
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
	case strings.Contains(agent, "owntracks"), bytes.Contains(body, []byte(`"_type"`)), h.Get("X-Limit-U") != "",
		h.Get("X-Limit-D") != "":
		d.dialect = OwnTracks
	case len(body) == 0 && isJSON:
		d.dialect = OwnTracks // its empty message
	}
}

// eachParameter calls f for each parameter of a query or form that can be read, in order.
func eachParameter(s string, f func(key, value string)) {
	for pair := range strings.SplitSeq(s, "&") {
		k, v, _ := strings.Cut(pair, "=")
		key, err1 := url.QueryUnescape(k)
		value, err2 := url.QueryUnescape(v)
		if err1 == nil && err2 == nil {
			f(key, value)
		}
	}
}
