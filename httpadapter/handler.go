package httpadapter

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/microcosm-cc/bluemonday"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// Options set up a [Handler]. The zero value of each field means its default.
type Options struct {
	// Authenticate tells who is calling an application route, before the handler of that route
	// runs. The message of a [*tracking.Error] is what the caller reads; of a bare code, such as
	// [tracking.ErrUnauthorized], and of any other error, which counts as unauthorized, the caller
	// reads a sentence of this package and nothing of its text; the log has its types, which may
	// show that the login is away, and says what is wrong with an error that makes no sense. The
	// default is [KeyAuth] with Keys.
	//
	// It may go by a cookie of the program's own, or by HTTP Basic: what a page of another site has
	// a browser do by these is refused. No answer asks a browser for a name and password: a page of
	// the program's own does (WWW-Authenticate), and goes on to [Handler.SignInURL].
	//
	// Whom it does not know may have signed in by POST /v1/session: with a token of
	// [tracking.Service.SignIn], and with a key only where this is not set.
	Authenticate func(*http.Request) (Principal, error)

	// Keys are API keys fixed by the program, besides those that the store keeps. They are used by
	// the default of Authenticate only.
	Keys map[string]Principal

	// BaseURL is the public address of the server, such as "https://example.com", that links begin
	// with. It may have a path when a proxy in front takes that path away. The default is the
	// scheme and host of each request, of which the host is the caller's word.
	BaseURL string

	// Prefix is a path such as "/delivery" under which everything is served; the default is none.
	// Links carry it.
	Prefix string

	// ClientIP tells where a request comes from, for counting wrong codes. The default is the peer
	// address, which behind a proxy is the proxy's: there [BehindProxies] says. The zero address
	// counts as one source of its own.
	ClientIP func(*http.Request) netip.Addr

	// CORSOrigins are the origins, such as "https://shop.example", whose pages may call. "*" stands
	// for all and opens only the routes that need neither key nor token. The default is none.
	CORSOrigins []string

	// FrameAncestors are the sources that may show tracking pages in a frame, as in the CSP
	// directive frame-ancestors: keywords in their quotes ("'self'", or "'none'" alone), origins
	// without a path. The default is "*".
	FrameAncestors []string

	// Site says how the tracking page, the driver app and the board look: name, colour, logo, words,
	// reasons, links to contact, help and feedback, time zone, map. The default is a neutral look, with a plain
	// grid for a map. Its Prefix and FrameAncestors are taken from these options.
	Site web.Site

	// Sites are the looks of the tracking pages of single applications; the others have Site. The
	// driver app and the board, which are opened before it is known for whom, always have Site.
	Sites map[tracking.AppID]web.Site

	// NoBoard leaves out /board/, where people dispatch: for programs that have a board of their own.
	NoBoard bool

	// Health is asked by GET /healthz, which is served only if it is set. An error is answered 503
	// and logged.
	Health func(context.Context) error

	// ReadTimeout limits how long a body may take to arrive; default 10 s. Batches of positions,
	// which phones send over slow networks, have six times as long once the token has been found
	// good.
	ReadTimeout time.Duration

	// WriteTimeout limits how long a single write of an answer may take, a streamed one included;
	// default 30 s.
	WriteTimeout time.Duration

	// Heartbeat is the longest silence on a live stream; default 15 s.
	Heartbeat time.Duration

	// MaxStreams is how many live streams one tracking link may have at once; default 200.
	MaxStreams int

	// Logger gets one line a request, when it is over: method, route (its pattern), status, duration,
	// bytes of the answer, request_id, app and actor, which is the caller's role or "driver", and
	// client, the address that ClientIP tells. It never holds a key, a token, a query or an id of a
	// person. The default is slog.Default().
	Logger *slog.Logger
}

// Principal is who calls an application route.
type Principal struct {
	App   tracking.AppID // default: the application of the Service that the Handler was made with
	Actor string         // what events name, such as "user:42"; default "key:static"
	Role  tracking.Role  // what the caller may do; default tracking.RoleDispatch

	expiresAt time.Time // of a session
}

// withDefaults fills in what is zero, and refuses what cannot be meant.
func (o Options) withDefaults(svc *tracking.Service) (Options, error) {
	if o.Authenticate == nil {
		for key := range o.Keys {
			if key == "" {
				return o, errors.New("httpadapter: Options.Keys holds an empty key; a key needs at least one character")
			}
		}
		o.Authenticate = KeyAuth(svc, o.Keys)
	}
	var basePath string
	if o.BaseURL != "" {
		u, err := url.Parse(o.BaseURL)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
			strings.ContainsAny(o.BaseURL, "?#") || u.User != nil {
			return o, errors.New("httpadapter: Options.BaseURL must be an http or https address without query, such as https://example.com")
		}
		o.BaseURL = strings.TrimRight(o.BaseURL, "/")
		basePath = strings.TrimRight(u.EscapedPath(), "/")
		if basePath != "" && (path.Clean(basePath) != basePath || web.Site{Prefix: basePath}.Check() != nil) {
			return o, errors.New("httpadapter: Options.BaseURL must have no path, or a plain one such as /delivery")
		}
	}
	if o.Prefix != "" {
		o.Prefix = strings.TrimRight(o.Prefix, "/")
		if o.Prefix != "" &&
			(o.Prefix[0] != '/' || path.Clean(o.Prefix) != o.Prefix || strings.ContainsAny(o.Prefix, "?#%{} ")) {
			return o, errors.New("httpadapter: Options.Prefix must be a plain path such as /delivery")
		}
	}
	for _, origin := range o.CORSOrigins {
		if origin != "*" && !isOrigin(origin) {
			return o, fmt.Errorf("httpadapter: Options.CORSOrigins: %q is no origin as browsers send it; it needs scheme and host only, such as https://shop.example, in small letters, with xn-- for other scripts and without the usual port", origin)
		}
	}
	if o.FrameAncestors == nil {
		o.FrameAncestors = []string{"*"}
	}
	// Browsers see the path that the proxy takes away, too.
	o.Site.Prefix, o.Site.FrameAncestors = basePath+o.Prefix, o.FrameAncestors
	if err := checkSite(o.Site, svc); err != nil {
		return o, fmt.Errorf("httpadapter: Options.Site: %w", err)
	}
	o.Sites = maps.Clone(o.Sites)
	for _, app := range slices.Sorted(maps.Keys(o.Sites)) {
		site := o.Sites[app]
		site.Prefix, site.FrameAncestors = o.Site.Prefix, o.FrameAncestors
		if err := checkSite(site, svc); err != nil {
			return o, fmt.Errorf("httpadapter: Options.Sites[%q]: %w", app, err)
		}
		o.Sites[app] = site
	}
	for _, d := range []struct {
		name  string
		value *time.Duration
		unset time.Duration
	}{
		{"ReadTimeout", &o.ReadTimeout, 10 * time.Second}, {"WriteTimeout", &o.WriteTimeout, 30 * time.Second},
		{"Heartbeat", &o.Heartbeat, 15 * time.Second},
	} {
		if *d.value < 0 {
			return o, fmt.Errorf("httpadapter: Options.%s is %v; it must be positive, or 0 for %v", d.name, *d.value,
				d.unset)
		}
		if *d.value == 0 {
			*d.value = d.unset
		}
	}
	if o.MaxStreams < 0 {
		return o, fmt.Errorf("httpadapter: Options.MaxStreams is %d; it must be positive, or 0 for 200", o.MaxStreams)
	}
	if o.MaxStreams == 0 {
		o.MaxStreams = 200
	}
	if o.ClientIP == nil {
		o.ClientIP = peerIP
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, nil
}

// checkSite says what is wrong with a look of the pages, or nil.
func checkSite(site web.Site, svc *tracking.Service) error {
	err := site.Check()
	known := svc.Reasons()
	for _, code := range slices.Sorted(maps.Keys(site.Reasons)) {
		if err == nil && !slices.Contains(known, tracking.ReasonCode(code)) {
			err = fmt.Errorf("the word %q in Reasons is none that can be given as a reason; name it in tracking.Options.Reasons too", code)
		}
	}
	return err
}

// isOrigin reports whether a browser may send this as an Origin (RFC 6454, section 6.2). They are
// compared letter by letter.
func isOrigin(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.Host == "" || s != u.Scheme+"://"+u.Host || s != strings.ToLower(s) {
		return false
	}
	return !strings.ContainsFunc(s, func(c rune) bool {
		return c > '~'
	}) && !(u.Scheme == "https" && u.Port() == "443" || u.Scheme == "http" && u.Port() == "80")
}

// Handler serves the HTTP interface. It is safe for concurrent use.
type Handler struct {
	svc    *tracking.Service
	opts   Options
	table  map[int][]*route // by the number of path segments
	fixed  map[call]match
	feeds  feeds
	told   liveCache
	unread unreadLog
	clean  *bluemonday.Policy // for descriptions
	keys   keyring            // for sessions …
	cross  *http.CrossOriginProtection

	now     func() time.Time // by the Service's clock
	ownKeys bool             // … which keys are taken for: there is no other login
	fronts  *web.Fronts
	maps    map[string]*web.Map // of all sites, by their names
}

// New makes a Handler for svc. Nil options work: then the keys are those that the store keeps.
func New(svc *tracking.Service, opts *Options) (*Handler, error) {
	if svc == nil {
		return nil, errors.New("httpadapter: New needs a Service")
	}
	if opts == nil {
		opts = &Options{}
	}
	o, err := opts.withDefaults(svc)
	if err != nil {
		return nil, err
	}
	fronts, err := web.New()
	if err != nil {
		return nil, err
	}
	cross := http.NewCrossOriginProtection()
	if o.BaseURL != "" { // as browsers know it, whatever name a proxy calls us by
		u, err := url.Parse(o.BaseURL)
		if err == nil {
			err = cross.AddTrustedOrigin(u.Scheme + "://" + u.Host)
		}
		if err != nil {
			return nil, fmt.Errorf("httpadapter: Options.BaseURL: %w", err)
		}
	}
	h := &Handler{
		keys: newKeyring(svc, o.Keys), cross: cross, ownKeys: opts.Authenticate == nil,
		svc: svc, opts: o, now: svc.Options().Now, table: map[int][]*route{}, clean: descPolicy(), fronts: fronts,
	}
	h.maps = map[string]*web.Map{}
	for _, site := range append(slices.Collect(maps.Values(o.Sites)), o.Site) {
		if site.Map != nil {
			h.maps[site.Map.Name()] = site.Map
		}
	}
	h.feeds.open, h.feeds.log, h.feeds.quiet = map[string]*feed{}, o.Logger, o.Heartbeat
	h.told.of = map[liveKey][]byte{}
	for _, rt := range h.routes() {
		rt.name = rt.method + " " + o.Prefix + rt.pattern
		rt.segments = strings.Split(rt.pattern[1:], "/")
		h.table[len(rt.segments)] = append(h.table[len(rt.segments)], &rt)
	}
	h.fixed = h.fixedRoutes()
	return h, nil
}

// Mount registers the handler's paths under the prefix on mux: /v1/, /track/, /join/, /driver/,
// /ingest/, /board/ unless Options.NoBoard is set, and /healthz if Options.Health is.
//
// A mux of net/http answers a path that is not clean, such as //v1/task?apikey=KEY, with a redirect
// to the clean one, and the key is in its Location header and body. The redirect goes to the caller
// who sent the key, but it may pass logs on its way. A server that has nothing else to serve can
// use the Handler itself, which answers such paths with 404.
func (h *Handler) Mount(mux *http.ServeMux) {
	paths := []string{"/v1", "/track", "/join", "/driver", "/ingest"}
	if !h.opts.NoBoard {
		paths = append(paths, "/board")
	}
	for _, p := range paths {
		// Without the pattern that has no slash at its end, the mux would redirect there, too.
		mux.Handle(h.opts.Prefix+p, h)
		mux.Handle(h.opts.Prefix+p+"/", h)
	}
	if h.opts.Health != nil {
		mux.Handle(h.opts.Prefix+"/healthz", h)
	}
}

// request is one call, as the handlers of routes see it.
type request struct {
	*http.Request
	h     *Handler
	w     http.ResponseWriter
	began time.Time
	id    string
	route *route
	path  pathValues
	query strict.Query

	svc     *tracking.Service // for the caller's application, in the caller's name
	driver  tracking.DriverID // on a driver's routes: the caller
	person  string            // … and which of those who have had that id
	caller  Principal         // on an application's routes
	refused error             // … and what Options.Authenticate has said, if not who it is
	token   string            // on a driver's routes: what says who calls
	body    *bodyRoom         // what it is read into, if the handler keeps nothing of that
	limited bool              // … and it has its time to arrive
	headers []string          // of the answer
}

func (r *request) taskID() tracking.TaskID { return tracking.TaskID(r.path.of("task_id")) }
func (r *request) tripID() tracking.TripID { return tracking.TripID(r.path.of("trip_id")) }

// ServeHTTP answers one call.
func (h *Handler) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	// In one piece of memory, and filled there: what is copied to where pointers may be, the garbage
	// collector has to be told of while it runs.
	both := new(struct {
		request
		recorder
		headers [6]string
	})
	r, rec := &both.request, &both.recorder
	r.Request, r.h, r.w, r.began, r.id, r.svc = hr, h, w, time.Now(), requestID(hr), h.svc
	rec.ResponseWriter = w
	r.headers = both.headers[:0]
	defer r.release()
	r.header(requestIDHeader, r.id)
	var cause error
	defer func() {
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler {
				panic(v)
			}
			cause = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
			if rec.status != 0 { // too late for an answer: break it off, so that nobody takes it for whole
				h.log(r, rec, cause)
				panic(http.ErrAbortHandler)
			}
			h.writeError(rec, r, &tracking.Error{
				Code: tracking.ErrInternal, Message: "Something went wrong on our side.",
			})
		}
		h.log(r, rec, cause)
	}()
	cause = h.serve(rec, r)
}

// serve runs the checks in their order and then the route. The error is for the log; the answer has
// been given.
func (h *Handler) serve(w *recorder, r *request) error {
	fail := func(err error) error {
		h.writeError(w, r, err)
		return err
	}
	found, path := h.match(r)
	if path == nil {
		return fail(errNoPath)
	}
	h.writeCORS(w.Header(), r, path.who)
	if r.Method == http.MethodOptions {
		r.limitBody()
		h.writeOptions(w, r)
		return nil
	}
	if found == nil {
		w.Header().Set("Allow", h.allowed(r))
		return fail(errMethod)
	}
	r.route = found
	// Whoever wraps the handler counts and names requests by it, as by that of an http.ServeMux.
	r.Pattern = found.name
	if found.who != driver || found.takes == nil { // else readBody does, which allowSlowBody may come before
		r.limitBody()
	}

	if found.lenient {
		w.Header().Set("X-Robots-Tag", "noindex, nofollow")
		res, err := found.handle(r)
		if err != nil {
			return fail(err)
		}
		return res.write(h, w, r)
	}
	if len(r.URL.RawQuery) > maxQuery {
		return fail(errLongQuery)
	}
	if err := r.query.Parse(r.URL.RawQuery); err != nil {
		return fail(err)
	}
	if err := h.authorize(r); err != nil {
		return fail(err)
	}
	res, err := found.handle(r)
	if err != nil {
		return fail(err)
	}
	return res.write(h, w, r)
}

// log writes the line of one call. The path is the route's pattern, because a path may hold a
// token.
func (h *Handler) log(r *request, answer *recorder, cause error) {
	level, status := slog.LevelInfo, answer.status
	if gone := r.Context().Err() == context.Canceled && errors.Is(cause, context.Canceled); status >= 500 && !gone {
		level = slog.LevelError
	}
	if !h.opts.Logger.Enabled(r.Context(), level) {
		return
	}
	ctx := context.WithoutCancel(r.Context())
	now := time.Now()
	var room [12]slog.Attr
	attrs := append(room[:0],
		slog.String("request_id", r.id), slog.String("method", knownMethod(r.Method)), slog.Int("status", status),
		slog.Duration("duration", now.Sub(r.began)), slog.Int64("bytes", answer.bytes),
	)
	if client := h.opts.ClientIP(r.Request); client.IsValid() {
		attrs = append(attrs, slog.String("client", client.String()))
	}
	if r.route != nil {
		attrs = append(attrs, slog.String("route", r.route.pattern))
		if actor := r.actor(); actor != "" {
			attrs = append(attrs, slog.String("app", string(r.svc.App())), slog.String("actor", actor))
		}
	}
	switch {
	case cause == nil:
	case status < 400: // the answer was good; it did not arrive
		attrs = append(attrs, slog.Bool("broken_off", true))
	default:
		e, _ := asError(cause)
		attrs = append(attrs, slog.String("code", string(e.Code)))
		if e.Code == tracking.ErrUnauthorized && r.refused != nil && !errors.Is(r.refused, tracking.ErrUnauthorized) {
			attrs = append(attrs, slog.String("login_error", types(r.refused))) // a database that is away, perhaps
		}
	}
	if cause != nil && level == slog.LevelError {
		attrs = append(attrs, slog.String("err", cause.Error()))
	}
	pc := logSource.Load()
	if pc == 0 {
		var here [1]uintptr
		runtime.Callers(1, here[:])
		pc = here[0]
		logSource.Store(pc)
	}
	line := slog.NewRecord(now, level, "request", pc)
	line.AddAttrs(attrs...)
	_ = h.opts.Logger.Handler().Handle(ctx, line) // as LogAttrs does
}

// logSource is where the lines of calls come from, for loggers that tell. LogAttrs finds it for each
// anew, which takes as long as to write the line's attributes.
var logSource atomic.Uintptr

// knownMethod keeps words of the caller's own out of the log.
func knownMethod(m string) string {
	switch m {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT":
		return m
	}
	return "other"
}

// actor is who calls, as far as a log may know: the role, or "driver"; "" for whoever was not found
// out.
func (r *request) actor() string {
	switch {
	case r.route.who == driver && r.driver != "":
		return "driver"
	case r.route.who == application:
		return string(r.caller.Role)
	}
	return ""
}

// requestIDHeader names a call, in what a proxy sends and in each answer.
const requestIDHeader = "X-Request-Id"

// requestID is the name that a proxy, or the caller, has given to a call, if it can stand in a log; else
// a new one.
func requestID(r *http.Request) string {
	var id string
	if v := r.Header[requestIDHeader]; len(v) > 0 {
		id = v[0]
	}
	odd := func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.')
	}
	if len(id) < 8 || len(id) > 64 || strings.ContainsFunc(id, odd) {
		return newRequestID()
	}
	return id
}

func newRequestID() string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], rand.Uint64()) // no secret: it names a line of the log
	return hex.EncodeToString(b[:])
}

// recorder notes the status and the length of an answer.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
