package httpadapter

import (
	"net/http"
	"time"

	"github.com/seed-8aba7b13/tracking"
	"github.com/seed-8aba7b13/tracking/httpadapter/web"
)

// trackPage shows what the holder of a tracking link may see.
func (h *Handler) trackPage(r *request) (answer, error) {
	v, err := r.svc.Tracking(r.Context(), r.path.of("token"))
	if err != nil {
		return nil, err
	}
	state, err := encode(h.view(v))
	if err != nil {
		return nil, err
	}
	site := h.site(v.App).For(v.OrderID, string(v.TaskID))
	page, err := h.fronts.Tracking(site, r.path.of("token"), state, r.Header.Get("Accept-Language"), h.now())
	return htmlPage(page), err
}

// driverPage is the app that drivers work with. Behind an invite's link it takes the invite from
// the address; the server does not look at it, so that opening a link, as previews do, changes and
// tells nothing.
func (h *Handler) driverPage(r *request) (answer, error) {
	page, err := h.fronts.Driver(h.opts.Site, r.Header.Get("Accept-Language"), h.now())
	return htmlPage(page), err
}

func (h *Handler) boardPage(r *request) (answer, error) {
	page, err := h.fronts.Board(h.opts.Site, r.Header.Get("Accept-Language"), h.now(), web.BoardOptions{
		Keys: h.ownKeys, Geocodes: h.svc.Options().Geocoder != nil, SilentAfter: h.svc.Options().MaxFixAge,
	})
	return htmlPage(page), err
}

// htmlPage is an answer that people read.
type htmlPage web.Page

func (p htmlPage) write(h *Handler, w *recorder, r *request) error {
	h.extend(w)
	web.Page(p).Serve(w, r.Request, http.StatusOK)
	return nil
}

// writeErrorPage is an error on a page. It is the same for every link that is not valid, so it has
// no request id; the log line has.
func (h *Handler) writeErrorPage(w http.ResponseWriter, r *request, status int) {
	if status == http.StatusNotFound {
		if page, err := h.fronts.Gone(h.opts.Site, r.Header.Get("Accept-Language")); err == nil {
			h.extend(w)
			page.Serve(w, r.Request, status)
			return
		}
	}
	hd := w.Header()
	hd.Set("Content-Type", "text/html; charset=utf-8")
	hd.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; form-action 'none'")
	hd.Set("Referrer-Policy", "strict-origin-when-cross-origin")
	hd.Set("X-Robots-Tag", "noindex, nofollow")
	hd.Set("X-Content-Type-Options", "nosniff")
	hd.Set("Cache-Control", "no-store")
	// Should this fail, the reader has gone.
	_ = h.writeBody(w, r, status, []byte(`<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>Not now</title></head>
<body><h1>This page cannot be shown now</h1><p>Please try again in a moment.</p></body>
</html>
`))
}

// served is an answer that package web writes.
type served func(w http.ResponseWriter, r *http.Request)

func (s served) write(h *Handler, w *recorder, r *request) error {
	h.extend(w)
	s(w, r.Request)
	return nil
}

func (h *Handler) asset(r *request) (answer, error) {
	return served(func(w http.ResponseWriter, hr *http.Request) { h.fronts.ServeAsset(w, hr, r.path.of("file")) }), nil
}

// baseMap serves a map of streets that a Site has.
func (h *Handler) baseMap(r *request) (answer, error) {
	m, ok := h.maps[r.path.of("file")]
	if !ok {
		return nil, errNoPath
	}
	return served(func(w http.ResponseWriter, hr *http.Request) { m.ServeHTTP(steady{w, h}, hr) }), nil
}

// steady gives each write its time, for bodies that are written in many.
type steady struct {
	http.ResponseWriter
	h *Handler
}

func (w steady) Write(b []byte) (int, error) {
	w.h.extend(w.ResponseWriter)
	return w.ResponseWriter.Write(b)
}

func (h *Handler) worker(*request) (answer, error) { return served(h.fronts.ServeWorker), nil }

func (h *Handler) manifest(*request) (answer, error) {
	return served(func(w http.ResponseWriter, hr *http.Request) { h.fronts.ServeManifest(w, hr, h.opts.Site) }), nil
}

// toFront sends those who left out the last slash to a front. What else the address holds stays
// behind.
func (h *Handler) toFront(path string) func(*request) (answer, error) {
	return func(*request) (answer, error) {
		return served(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", h.opts.Site.Prefix+path)
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(http.StatusPermanentRedirect)
		}), nil
	}
}

func (h *Handler) health(r *request) (answer, error) {
	if err := h.opts.Health(r.Context()); err != nil {
		return nil, &tracking.Error{
			Code: tracking.ErrUnavailable, Message: "The service is not healthy; see its log.",
			RetryAfter: 5 * time.Second, Err: err,
		}
	}
	return ok("OK", nil)
}
