package httpadapter

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/internal/strict"
)

const (
	maxBody      = 64 << 10
	maxFixesBody = 1 << 20
)

// errBodyBroken means that a body did not arrive whole.
var errBodyBroken = errors.New("the body did not arrive")

// readBody reads the whole body, at most limit bytes of it.
func readBody(r *request, limit int64) ([]byte, error) {
	tooLarge := &tracking.Error{Code: tracking.ErrTooLarge, Message: fmt.Sprintf("The body is larger than %d bytes.", limit)}
	if r.ContentLength > limit {
		return nil, tooLarge
	}
	if r.Body == nil { // not from a server of net/http's
		return nil, nil
	}
	var b bytes.Buffer
	_, err := b.ReadFrom(http.MaxBytesReader(r.w, r.Body, limit))
	if err == nil {
		return b.Bytes(), nil
	}
	if over := (*http.MaxBytesError)(nil); errors.As(err, &over) {
		return nil, tooLarge
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

// allowSlowBody gives the body of a phone that has shown its token more time.
func (h *Handler) allowSlowBody(r *request) {
	_ = http.NewResponseController(r.w).SetReadDeadline(time.Now().Add(6 * h.opts.ReadTimeout)) // as in ServeHTTP
}

// mediaType checks that the body is sent as it is, and returns its type; "" when the caller does not say.
func mediaType(r *request) (string, map[string]string, error) {
	if len(r.Header.Values("Content-Encoding")) > 0 {
		return "", nil, &tracking.Error{Code: codeMediaType, Message: "The body must be sent without a Content-Encoding."}
	}
	v := r.Header.Values("Content-Type")
	if len(v) == 0 || len(v) == 1 && v[0] == "" {
		return "", nil, nil
	}
	typ, params, err := mime.ParseMediaType(v[0])
	if cs, ok := params["charset"]; err != nil || len(v) > 1 || ok && !strings.EqualFold(cs, "utf-8") {
		return "", nil, errMediaType
	}
	return typ, params, nil
}

var errMediaType = &tracking.Error{Code: codeMediaType, Message: "The body must be JSON in UTF-8, with Content-Type: application/json."}

// json reads a body that has to be a JSON object.
func (r *request) json() (strict.Object, error) { return r.object(maxBody, false) }

// optionalJSON reads a body that may be left out, because all of its fields are optional.
func (r *request) optionalJSON() (strict.Object, error) { return r.object(maxBody, true) }

func (r *request) object(limit int64, optional bool) (strict.Object, error) {
	typ, _, err := mediaType(r)
	if err == nil && typ != "" && typ != "application/json" {
		err = errMediaType
	}
	if err != nil && (r.ContentLength > 0 || !optional) {
		return strict.Object{}, err
	}
	b, readErr := readBody(r, limit) // a length below 0 is not known: the body may still be empty, and then its type is nothing's
	if readErr != nil {
		return strict.Object{}, readErr
	}
	if len(b) == 0 {
		if !optional {
			return strict.Object{}, &tracking.Error{Code: tracking.ErrInvalid, Message: "The body must be a JSON object; it is empty."}
		}
		b = []byte("{}")
	} else if err != nil {
		return strict.Object{}, err
	}
	return strict.ParseObject(b)
}
