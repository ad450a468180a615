package httpadapter

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// Codes that only HTTP has.
const (
	codeMethod    tracking.ErrorCode = "method_not_allowed"
	codeURI       tracking.ErrorCode = "uri_too_long"
	codeMediaType tracking.ErrorCode = "unsupported_media_type"
)

// maxQuery is the longest query string in bytes.
const maxQuery = 8 << 10

var (
	errNoPath = &tracking.Error{Code: tracking.ErrNotFound, Message: "There is nothing at this path."}
	errMethod = &tracking.Error{
		Code: codeMethod, Message: "This path does not take this method; the Allow header names those that it takes.",
	}
	errLongQuery = &tracking.Error{
		Code: codeURI, Message: "The query is longer than " + strconv.Itoa(maxQuery) + " bytes.",
	}
	errNoKey = &tracking.Error{
		Code:    tracking.ErrUnauthorized,
		Message: "A valid API key is required, as the query parameter apikey or in the header X-Api-Key.",
	}
	errNoToken = &tracking.Error{
		Code:    tracking.ErrUnauthorized,
		Message: "A valid driver token is required, in the header Authorization: Bearer.",
	}
	errTwoKeys = &tracking.Error{
		Code: tracking.ErrInvalid, Field: "apikey",
		Message: "The parameter apikey and the header X-Api-Key hold different keys; send one of them.",
	}
)

// notSignedIn is what a caller is told whom Options.Authenticate does not know and has no words
// for. The login may know nothing of keys.
const notSignedIn = "You are not signed in, or what you signed in with is not valid here."

// statusOf is the HTTP status of a code. Every code of package tracking and of this package is
// here.
func statusOf(code tracking.ErrorCode) (status int, ok bool) {
	switch code {
	case tracking.ErrInvalid:
		return http.StatusBadRequest, true
	case tracking.ErrUnauthorized:
		return http.StatusUnauthorized, true
	case tracking.ErrNotFound:
		return http.StatusNotFound, true
	case codeMethod:
		return http.StatusMethodNotAllowed, true
	case tracking.ErrForbidden:
		return http.StatusForbidden, true
	case tracking.ErrConflict:
		return http.StatusConflict, true
	case tracking.ErrTooLarge:
		return http.StatusRequestEntityTooLarge, true
	case codeURI:
		return http.StatusRequestURITooLong, true
	case codeMediaType:
		return http.StatusUnsupportedMediaType, true
	case tracking.ErrRateLimited:
		return http.StatusTooManyRequests, true
	case tracking.ErrInternal:
		return http.StatusInternalServerError, true
	case tracking.ErrUnavailable:
		return http.StatusServiceUnavailable, true
	}
	return 0, false
}

// failure is the body of an answer that is no success.
type failure struct {
	Message string        `json:"message"`
	Success bool          `json:"success"`
	Error   failureDetail `json:"error"`
}

type failureDetail struct {
	Code      tracking.ErrorCode `json:"code"`
	Field     string             `json:"field,omitempty"`
	RequestID string             `json:"request_id"`
}

// asError is what the caller gets to see of err, and its status. Anything that does not say what it
// is, is internal.
func asError(err error) (e *tracking.Error, status int) {
	if errors.As(err, &e) {
		if status, ok := statusOf(e.Code); ok {
			return e, status
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return &tracking.Error{
			Code: tracking.ErrUnavailable, Message: "The call was ended before it was answered.",
		}, http.StatusServiceUnavailable
	}
	return &tracking.Error{
		Code: tracking.ErrInternal, Message: "Something went wrong on our side.",
	}, http.StatusInternalServerError
}

// retryAfter is the number of whole seconds to wait, at least 1.
func retryAfter(d time.Duration) string {
	return strconv.FormatInt(max(1, int64((d+time.Second-1)/time.Second)), 10)
}

// writeError is the one place where an error becomes an answer.
func (h *Handler) writeError(w http.ResponseWriter, r *request, err error) {
	r.limitBody()
	e, status := asError(err)
	hd := w.Header()
	switch e.Code {
	case tracking.ErrRateLimited, tracking.ErrUnavailable:
		hd.Set("Retry-After", retryAfter(e.RetryAfter))
	case tracking.ErrUnauthorized:
		if r.route != nil && r.route.who == driver {
			hd.Set("WWW-Authenticate", "Bearer")
		}
	}
	if errors.Is(err, errBodyBroken) || e.Code == tracking.ErrTooLarge {
		hd.Set("Connection", "close") // what is left of the body is not read
	}
	if r.route != nil && r.route.page {
		h.writeErrorPage(w, r, status)
		return
	}
	message := e.Message
	if message == "" {
		message = http.StatusText(status) + "."
	}
	h.writeJSON(w, r, status, failure{
		Message: message, Error: failureDetail{Code: e.Code, Field: e.Field, RequestID: r.id},
	})
}
