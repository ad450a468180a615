package httpadapter

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/seed-8aba7b13/tracking"
)

// pageStyle is the one style sheet of the plain pages; the policy names its hash.
const pageStyle = `
body{font:1rem/1.5 system-ui,sans-serif;margin:0 auto;padding:1.5rem 1rem;max-width:36rem;color-scheme:light dark}
h1{font-size:1.5rem;margin:0 0 1rem}
dt{font-weight:600;margin-top:.75rem}
dd{margin:0;overflow-wrap:anywhere}
`

const pageLayout = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
{{if .Refresh}}<meta http-equiv="refresh" content="{{.Refresh}}">
{{end}}<title>{{.Title}}</title>
<style>{{.Style}}</style>
</head>
<body>
<h1>{{.Title}}</h1>
{{range .Text}}<p>{{.}}</p>
{{end}}{{if .Facts}}<dl>
{{range .Facts}}<dt>{{.Name}}</dt><dd dir="auto">{{.Value}}</dd>
{{end}}</dl>
{{end}}</body>
</html>
`

// htmlPage is an answer that people read.
type htmlPage struct {
	Title   string
	Text    []string
	Facts   []fact
	Refresh int // seconds until the browser asks again; 0: it does not
	status  int
	framed  bool // may be shown in a frame of the sources that the options name
}

type fact struct{ Name, Value string }

func (p htmlPage) Style() template.CSS { return pageStyle }

func (p htmlPage) write(h *Handler, w *recorder, r *request) error {
	return h.writePage(w, r, p)
}

func (h *Handler) writePage(w http.ResponseWriter, r *request, p htmlPage) error {
	var b bytes.Buffer
	if err := h.layout.Execute(&b, p); err != nil {
		return firstError(err, h.writeJSON(w, r, http.StatusInternalServerError, failure{Message: "Something went wrong on our side.", Error: failureDetail{Code: tracking.ErrInternal, RequestID: r.id}}))
	}
	ancestors := "'none'"
	if p.framed {
		ancestors = strings.Join(h.opts.FrameAncestors, " ")
	}
	sum := sha256.Sum256([]byte(pageStyle))
	hd := w.Header()
	hd.Set("Content-Type", "text/html; charset=utf-8")
	hd.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'; base-uri 'none'; form-action 'none'; frame-ancestors "+ancestors)
	hd.Set("Referrer-Policy", "strict-origin-when-cross-origin")
	hd.Set("X-Robots-Tag", "noindex, nofollow")
	hd.Set("X-Content-Type-Options", "nosniff")
	hd.Set("Cache-Control", "no-store")
	status := p.status
	if status == 0 {
		status = http.StatusOK
	}
	return h.writeBody(w, r, status, b.Bytes())
}

// writeErrorPage is an error on a page. It is the same for every link that is not valid, so it has no request id; the log line has.
func (h *Handler) writeErrorPage(w http.ResponseWriter, r *request, status int) {
	p := htmlPage{Title: "This link is not valid", Text: []string{"It may have expired, or it was typed or copied incompletely."}, status: status, framed: true}
	if status != http.StatusNotFound {
		p.Title, p.Text = "This page cannot be shown now", []string{"Please try again in a moment."}
	}
	_ = h.writePage(w, r, p) // what fails here is that the reader has gone
}

// trackPage shows the facts of a tracking link in words.
func (h *Handler) trackPage(r *request) (answer, error) {
	v, err := r.svc.Tracking(r.Context(), r.path["token"])
	if err != nil {
		return nil, err
	}
	p := htmlPage{Title: headline(v), framed: true}
	if !v.Ended {
		p.Refresh = 15
	}
	add := func(name, value string) {
		if value != "" {
			p.Facts = append(p.Facts, fact{name, value})
		}
	}
	add("Order", v.OrderID)
	add("Driver", v.DriverName)
	if v.Place != nil {
		where := v.Place.Address
		if where == "" && v.Place.LngLat != nil {
			where = latLng(v.Place.LngLat)
		}
		switch {
		case v.Kind == tracking.KindTask && v.Type != tracking.Drop && v.PickedUpAt.IsZero() && !(v.Ended && v.Type == tracking.PickupAndDrop):
			add("Pickup at", where)
		case v.Kind == tracking.KindTask:
			add("Delivery to", where)
		default:
			add("Destination", where)
		}
	}
	add("Planned for", clock(v.Time))
	add("Started", clock(v.StartedAt))
	add("Picked up", clock(v.PickedUpAt))
	add("Ended", clock(v.EndedAt))
	if v.Position != nil {
		name := "Last seen"
		if v.Position.Live {
			name = "Now at"
		}
		add(name, fmt.Sprintf("%.5f, %.5f (latitude, longitude) at %s", v.Position.LngLat.Lat, v.Position.LngLat.Lng, clock(v.Position.Time)))
	}
	return p, nil
}

func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2 January 2006, 15:04 UTC")
}

// headline says in a few words how things stand.
func headline(v tracking.Tracking) string {
	if v.Kind == tracking.KindTrip {
		switch {
		case !v.Ended:
			return "On the way"
		case v.Status == fmt.Sprint(int(tracking.Discarded)):
			return "This trip did not take place"
		}
		return "The trip has ended"
	}
	switch {
	case v.Outcome == tracking.Cancelled:
		return "Cancelled"
	case v.Outcome == tracking.Failed && v.Type == tracking.Pickup:
		return "Not picked up"
	case v.Outcome == tracking.Failed:
		return "Not delivered"
	case v.Outcome == tracking.Succeeded && v.Type == tracking.Pickup:
		return "Picked up"
	case v.Outcome == tracking.Succeeded:
		return "Delivered"
	case v.Status == string(tracking.StatusInProgress) && v.Type == tracking.PickupAndDrop && v.PickedUpAt.IsZero():
		return "On the way to the pickup"
	case v.Status == string(tracking.StatusInProgress):
		return "On the way"
	case v.Status == string(tracking.StatusAssigned):
		return "A driver is assigned"
	}
	return "Ordered"
}

// joinPage says what an invite's link is for. It does not look at the token: opening a link, as previews do, changes and tells nothing.
func (h *Handler) joinPage(r *request) (answer, error) {
	return htmlPage{
		Title: "You are invited as a driver",
		Text: []string{
			"Open this link with the driver app that your dispatcher uses, or enter there the 6-digit code that came with it.",
			"The invite can be used once. Opening this page does not use it up.",
		},
	}, nil
}

func (h *Handler) health(r *request) (answer, error) {
	if err := h.opts.Health(r.Context()); err != nil {
		return nil, &tracking.Error{Code: tracking.ErrUnavailable, Message: "The service is not healthy; see its log.", RetryAfter: 5 * time.Second, Err: err}
	}
	return ok("OK", nil)
}
