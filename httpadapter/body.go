package httpadapter

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
)

// The largest bodies, in bytes.
const (
	maxBody      = 64 << 10
	maxFixesBody = 1 << 20
	maxTasksBody = 2 << 20
	maxPageBody  = 4 << 10
)

// The types of a body.
const (
	typeJSON      = "application/json"
	typeForm      = "application/x-www-form-urlencoded"
	typeMultipart = "multipart/form-data"
)

// atOnce is how soon a body is there that has come with its head. To look its token up once more would
// take as long as to record a fix, and tell nothing.
const atOnce = 100 * time.Microsecond

// errBodyBroken means that a body did not arrive whole.
var errBodyBroken = errors.New("the body did not arrive")

// readBody reads the whole body, at most limit bytes of it, behind what b has already.
func (r *request) readBody(b []byte, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	if r.Body == nil { // not from a server of net/http's
		return nil, nil
	}
	r.limitBody()
	b, err := readAll(b, r.Body, limit)
	if err == nil {
		if r.token != "" && r.ContentLength != 0 && time.Since(r.began) > atOnce { // the token may be dead by now
			err = r.knowDriver()
		}
		return b, err
	}
	if over := (*http.MaxBytesError)(nil); errors.As(err, &over) {
		return nil, tooLarge(limit)
	}
	message := "The body ended too early."
	if timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && timeout.Timeout() {
		message = "The body did not arrive in time."
	} else if !errors.Is(err, io.ErrUnexpectedEOF) {
		message = "The body could not be read."
	}
	return nil, &tracking.Error{Code: tracking.ErrInvalid, Message: message, Err: errors.Join(errBodyBroken, err)}
}

// readAll appends the whole of body to b, or returns a *http.MaxBytesError. It needs no memory of its own
// as a http.MaxBytesReader does, whose other task, to have the connection closed, is writeError's.
func readAll(b []byte, body io.Reader, limit int64) ([]byte, error) {
	most := len(b) + int(limit)
	for {
		if len(b) == cap(b) {
			b = slices.Grow(b, 512)
		}
		n, err := body.Read(b[len(b):min(cap(b), most+1)])
		b = b[:len(b)+n]
		switch {
		case len(b) > most:
			return b, &http.MaxBytesError{Limit: limit}
		case err == io.EOF:
			return b, nil
		case err != nil:
			return b, err
		}
	}
}

func tooLarge(limit int64) error {
	return &tracking.Error{
		Code: tracking.ErrTooLarge, Message: fmt.Sprintf("The body is larger than %d bytes.", limit),
	}
}

// bodies are the rooms of JSON bodies that have been answered, but for large ones.
var bodies = sync.Pool{New: func() any { return new(bodyRoom) }}

// bodyRoom is what a JSON body is read into, and read from.
type bodyRoom struct {
	text []byte
	json strict.Room
}

// release lets the next call have the body's room. What was read of it are copies.
func (r *request) release() {
	if r.body != nil && cap(r.body.text) <= largeBuffer {
		r.body.json = strict.Room{} // which may have been long
		bodies.Put(r.body)
	}
}

// How many times the usual time the body of a phone may take: a minute for fixes by default, and as
// long for a picture as the driver app waits, 3 minutes.
const (
	slowFixes   = 6
	slowPicture = 18
)

// allowSlowBody gives the body of a phone that has shown its token more time.
func (r *request) allowSlowBody(times time.Duration) {
	r.endBodyAt(r.began.Add(times * r.h.opts.ReadTimeout))
}

// limitBody gives a body its time to arrive, unless it has one. It has to be done before anybody reads,
// which Options.Authenticate may, and which the server does with what is left after an answer.
func (r *request) limitBody() {
	if !r.limited && r.Body != nil && r.Body != http.NoBody {
		r.endBodyAt(r.began.Add(r.h.opts.ReadTimeout))
	}
}

// endBodyAt can fail only where the server is not net/http's, which then has limits of its own.
func (r *request) endBodyAt(t time.Time) {
	r.limited = true
	_ = http.NewResponseController(r.w).SetReadDeadline(t)
}

// mediaType checks that the body is sent as it is, and returns its type; "" when the caller does
// not say.
func mediaType(r *request) (string, map[string]string, error) {
	if len(r.Header["Content-Encoding"]) > 0 {
		return "", nil, &tracking.Error{
			Code: codeMediaType, Message: "The body must be sent without a Content-Encoding.",
		}
	}
	v := r.Header["Content-Type"]
	if len(v) == 0 || len(v) == 1 && v[0] == "" {
		return "", nil, nil
	}
	if len(v) == 1 && v[0] == typeJSON { // the usual one, without the map of its parameters
		return typeJSON, nil, nil
	}
	typ, params, err := mime.ParseMediaType(v[0])
	if cs, ok := params["charset"]; err != nil || len(v) > 1 || ok && !strings.EqualFold(cs, "utf-8") {
		return "", nil, errMediaType
	}
	return typ, params, nil
}

var errMediaType = &tracking.Error{
	Code: codeMediaType, Message: "The body must be JSON in UTF-8, with Content-Type: application/json.",
}

// endpoint is a handler together with the type of the body that it is given.
type endpoint struct {
	handle   func(*request) (answer, error)
	fields   []strict.Field // of the body
	optional bool           // it may be left out
	texts    bool           // it may be a form, and the query may hold what it does not
	picture  bool           // it is a picture, which handle reads by itself
}

// body is an endpoint whose body is one JSON object.
func body[T any](handle func(*request, T) (answer, error)) *endpoint {
	return bodyUpTo(maxBody, false, handle)
}

// optionalBody is one whose body may be left out, because all of its fields are optional.
func optionalBody[T any](handle func(*request, T) (answer, error)) *endpoint {
	return bodyUpTo(maxBody, true, handle)
}

// batchBody is one whose body is large and has time to arrive, once the caller is known.
func batchBody[T any](limit int64, handle func(*request, T) (answer, error)) *endpoint {
	e := bodyUpTo(limit, false, handle)
	read := e.handle
	e.handle = func(r *request) (answer, error) {
		r.allowSlowBody(slowFixes)
		return read(r)
	}
	return e
}

// pageBody is one that a page sends on which anybody may look: it is small, and has to say that it is
// JSON, as no form of another site's can.
func pageBody[T any](handle func(*request, T) (answer, error)) *endpoint {
	e := bodyUpTo(maxPageBody, false, handle)
	read := e.handle
	e.handle = func(r *request) (answer, error) {
		if typ, _, err := mediaType(r); err != nil || typ != typeJSON {
			return nil, errMediaType
		}
		return read(r)
	}
	return e
}

func bodyUpTo[T any](limit int64, optional bool, handle func(*request, T) (answer, error)) *endpoint {
	shape := strict.ShapeOf[T]()
	return &endpoint{fields: shape.Fields(), optional: optional, handle: func(r *request) (answer, error) {
		b, err := r.json(limit, optional)
		if err != nil {
			return nil, err
		}
		v, err := shape.DecodeIn(&r.body.json, b)
		if err != nil {
			return nil, err
		}
		return handle(r, v)
	}}
}

// json reads a body that has to be JSON; one that is optional and left out is {}.
func (r *request) json(limit int64, optional bool) ([]byte, error) {
	typ, _, err := mediaType(r)
	if err == nil && typ != "" && typ != typeJSON {
		err = errMediaType
	}
	if err != nil && (r.ContentLength > 0 || !optional) {
		return nil, err
	}
	// A length below 0 is not known: the body may still be empty, and then its type is nothing's.
	r.body = bodies.Get().(*bodyRoom)
	b, readErr := r.readBody(r.body.text[:0], limit)
	r.body.text = b[:0]
	switch {
	case readErr != nil:
		return nil, readErr
	case len(b) > 0:
		return b, err
	case !optional:
		return nil, &tracking.Error{Code: tracking.ErrInvalid, Message: "The body must be a JSON object; it is empty."}
	}
	return []byte("{}"), nil
}
