package httpadapter

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/seed-8aba7b13/tracking/httpadapter/internal/gzipped"
)

// answer is what a route's handler makes. The error of write is for the log: an answer that has
// begun cannot become another one.
type answer interface {
	write(h *Handler, w *recorder, r *request) error
}

// success is the usual answer: the envelope with its data.
type success struct {
	Message string `json:"message"`
	Success bool   `json:"success"`
	Data    any    `json:"data,omitempty"`
}

func ok(message string, data any) (answer, error) { return success{message, true, data}, nil }

func (s success) write(h *Handler, w *recorder, r *request) error {
	return h.writeJSON(w, r, http.StatusOK, s)
}

// smaller is a success that is compressed for those who take it.
type smaller success

func (s smaller) write(h *Handler, w *recorder, r *request) error {
	body, err := encode(success(s))
	w.Header().Add("Vary", "Accept-Encoding")
	if err != nil || !gzipped.Accepts(r.Header) {
		return success(s).write(h, w, r)
	}
	r.jsonHeaders()
	w.Header().Set("Content-Encoding", "gzip")
	return h.writeBody(w, r, http.StatusOK, gzipped.Whole(body))
}

// list is the data of an answer that has a single name.
type list map[string]any

// writeJSON encodes first, so that a value that cannot be encoded is an error and no half answer.
func (h *Handler) writeJSON(w http.ResponseWriter, r *request, status int, v any) error {
	body, err := encode(v)
	if err != nil {
		return h.writeUnencoded(w, r, err)
	}
	r.jsonHeaders()
	return h.writeBody(w, r, status, body)
}

// writeUnencoded answers instead of what cannot be encoded.
func (h *Handler) writeUnencoded(w http.ResponseWriter, r *request, err error) error {
	body, _ := encode(failure{
		Message: "Something went wrong on our side.", Error: failureDetail{Code: "internal", RequestID: r.id},
	})
	r.jsonHeaders()
	return firstError(err, h.writeBody(w, r, http.StatusInternalServerError, body))
}

func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

func firstError(errs ...error) error {
	if i := slices.IndexFunc(errs, func(err error) bool { return err != nil }); i >= 0 {
		return errs[i]
	}
	return nil
}

// header sets what each answer has: as Header.Set does, but in memory that the request has anyway.
func (r *request) header(name, value string) {
	r.headers = append(r.headers, value)
	last := len(r.headers) - 1
	r.w.Header()[name] = r.headers[last : last+1 : last+1]
}

func (r *request) jsonHeaders() {
	r.header("Cache-Control", "no-store")
	r.header("X-Content-Type-Options", "nosniff")
	r.header("Content-Type", "application/json; charset=utf-8")
}

// shortAnswer is the length up to which net/http tells an answer's length by itself, which spares a
// header that it would copy and read.
const shortAnswer = 2048

// writeBody sends a whole answer within the time for one write.
func (h *Handler) writeBody(w http.ResponseWriter, r *request, status int, body []byte) error {
	if len(body) > shortAnswer || r.Method == http.MethodHead {
		r.header("Content-Length", strconv.Itoa(len(body)))
	}
	h.extend(r.w) // which w would have to be asked for
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return nil
	}
	_, err := w.Write(body)
	return err
}

// extend gives the next write its time. Servers that cannot do it have limits of their own.
func (h *Handler) extend(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.opts.WriteTimeout))
}

// lift ends the time of a write that is done, where more will follow: in HTTP/2 it would end an
// answer in which nothing is being written. Before the answer's end, extend has to give the
// server's own last write its time.
func lift(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{})
}

// writeOptions answers OPTIONS.
func (h *Handler) writeOptions(w *recorder, r *request) {
	hd, allowed := w.Header(), h.allowed(r)
	hd.Set("Allow", allowed)
	hd.Set("Cache-Control", "no-store")
	hd.Set("X-Content-Type-Options", "nosniff")
	if hd.Get("Access-Control-Allow-Origin") != "" && r.Header.Get("Access-Control-Request-Method") != "" {
		hd.Set("Access-Control-Allow-Methods", allowed)
		hd.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-Api-Key")
		hd.Set("Access-Control-Max-Age", "600")
	}
	h.extend(w)
	w.WriteHeader(http.StatusNoContent)
}

// writeCORS lets a page of a configured origin read the answer. Credentials of browsers are never
// allowed; keys and tokens are sent by hand.
func (h *Handler) writeCORS(hd http.Header, r *request, w who) {
	if len(h.opts.CORSOrigins) == 0 {
		return
	}
	hd.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	open := w == public && slices.Contains(h.opts.CORSOrigins, "*")
	switch {
	case open:
		hd.Set("Access-Control-Allow-Origin", "*")
	case origin != "" && origin != "*" && slices.Contains(h.opts.CORSOrigins, origin):
		hd.Set("Access-Control-Allow-Origin", origin)
	default:
		return
	}
	hd.Set("Access-Control-Expose-Headers", "Retry-After, "+requestIDHeader)
}
